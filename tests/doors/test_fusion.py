# SPDX-License-Identifier: Apache-2.0
"""SandboxFusion: /run_code as trainers use it, cells of notebooks, judgements."""
import base64
import shutil

from harness import Skipped, case
from table import ANY, answer, ask, check, like, serve

RUN = "/run_code"


def b64(text):
	return base64.b64encode(text.encode()).decode()


def result(code=0, stdout="", stderr="", status="Finished"):
	return {"status": status, "execution_time": lambda v: isinstance(v, float), "return_code": code, "stdout": stdout, "stderr": stderr}


def whole(status, run, compiled=None, message="", files=None):
	return {"status": status, "message": message, "compile_result": compiled, "run_result": run, "executor_pod_name": None, "files": files if files is not None else {}}


def python(code, **more):
	return {"language": "python", "code": code, **more}


def invalid(kind, field):
	return {"detail": [{"type": kind, "loc": ["body", field], "msg": ANY, "input": ANY}]}


CPP = "#include <iostream>\nint main() { int a; std::cin >> a; std::cout << a * 2; }"
ROWS = [
	("python", python("print('hi')"), 200, whole("Success", result(0, "hi\n"))),
	("with every default", python("print(1)", compile_timeout=10, run_timeout=10, memory_limit_MB=-1, stdin=None, files={}, fetch_files=[]), 200, whole("Success", result(0, "1\n"))),
	("input", python("print(input() + '!')", stdin="a"), 200, whole("Success", result(0, "a!\n"))),
	("an exit code", python("import sys; sys.stderr.write('e'); sys.exit(2)"), 200, whole("Failed", result(2, "", "e"))),
	("an exception", python("1 / 0"), 200, whole("Failed", result(1, "", like("ZeroDivisionError")))),
	("an assertion, as of a test", python("assert 1 == 2"), 200, whole("Failed", result(1, "", like("AssertionError")))),
	("a crash", python("import os; os.kill(os.getpid(), 11)"), 200, whole("Failed", result(139))),
	("time is over, and output stays", python("print(1, flush=True)\nimport time\ntime.sleep(20)", run_timeout=0.3), 200, whole("Failed", result(None, "1\n", "", "TimeLimitExceeded"))),
	("more time than the policy's", python("print(2)", run_timeout=3600), 200, whole("Success", result(0, "2\n"))),
	("memory is over", python("x = b'1' * (200 << 20)", memory_limit_MB=64), 200, whole("Failed", result(137, "", ANY))),
	("code that is blocked", python("import os\nos.system('rm -rf /')"), 200, whole("Failed", result(126, "", like("line 2")))),
	("C++", {"language": "cpp", "code": CPP, "stdin": "21"}, 200, whole("Success", result(0, "42"), result(0))),
	("C++ that does not compile", {"language": "cpp", "code": "int main() { return x; }"}, 200, whole("Failed", None, result(1, "", like("not declared")))),
	("nodejs", {"language": "nodejs", "code": "console.log(3)"}, 200, whole("Success", result(0, "3\n"))),
	("bash", {"language": "bash", "code": "echo $((2 + 2))"}, 200, whole("Success", result(0, "4\n"))),
	("a language that is not here", {"language": "verilog", "code": ""}, 200, whole("SandboxError", None, message=like("language"))),
	("files", python("print(open('a.txt').read(), open('d/b').read())", files={"a.txt": b64("A"), "d/b": b64("ü"), "no": None}), 200, whole("Success", result(0, "A ü\n"))),
	("files come back", python("open('o.txt', 'w').write('out'); open('o.bin', 'wb').write(b'\\xff')", fetch_files=["o.txt", "./o.bin", "missing"]), 200, whole("Success", result(), files={"o.txt": b64("out"), "./o.bin": "/w=="})),
	("of those that came, the ones that are there", python("import os; os.remove('b'); open('c', 'w').write('C')", files={"a": b64("A"), "b": b64("B"), "c": b64("c"), "d": b64("D")}, fetch_files=["a", "b", "c", "../x"]), 200,
		whole("Success", result(), files={"a": b64("A"), "c": b64("C")})),
	("base64 in lines", python("print(open('a').read())", files={"a": "aGFs\r\nbG8=\n"}), 200, whole("Success", result(0, "hallo\n"))),
	("of files with one name the last one", python("print(open('a').read())", files={"a": b64("1"), "./a": b64("2"), "d//.//e": b64("3")}, fetch_files=["a", ".//a", "d/e"]), 200, whole("Success", result(0, "2\n"), files={"a": b64("2"), ".//a": b64("2"), "d/e": b64("3")})),
	("a file where another one needs a directory", python("", files={"x": b64("1"), "x/y": b64("2")}), 200, whole("SandboxError", None, message=like("'x' and 'x/y' cannot both be placed"))),
	("many bytes come back", python("for n in 'abcdefghij': open(n, 'wb').write(b'1' * 1500000)", fetch_files=list("abcdefghij")), 200, whole("Success", result(), files={n: b64("1" * 1500000) for n in "abcdefghij"})),
	("too many are told", python("for n in 'abc': open(n, 'wb').write(b'1' * 15000000)", fetch_files=list("abc")), 200, whole("Success", result(), message=like(r"could not all be returned.* 32 MB.*: 'c'$"), files={n: b64("1" * 15000000) for n in "ab"})),
	("many names", python("for i in range(90): open(f'f{i}', 'w').write('x')", fetch_files=[f"f{i}" for i in range(200)]), 200, whole("Success", result(), files={f"f{i}": b64("x") for i in range(90)})),
	("more files than the policy returns are told", python("for i in range(130): open(f'f{i}', 'w').write('x')", fetch_files=[f"f{i}" for i in range(130)]), 200,
		{"status": "Success", "message": like("^30 of fetch_files could not be returned: artifacts_limit"), "files": lambda files: len(files) == 100}),
	("more names than are looked for", python("open('a', 'w').write('x')", fetch_files=["a"] + ["b"] * 256), 200, whole("Success", result(), message=like("^fetch_files has 257 names"), files={"a": b64("x")})),
	("a name is no pattern", python("import os; os.mkdir('d')\nfor n in ('[a].txt', 'a', 'a*', 'd/a', 'b\\\\c', 'bd'): open(n, 'w').write('x')", fetch_files=["[a].txt", "a*", "?", "d", "b\\c", "b\\d"]), 200, whole("Success", result(), files={"[a].txt": b64("x"), "a*": b64("x"), "b\\c": b64("x")})),
	("of a link nothing comes back", python("import os; os.symlink('nothing', 'l')", fetch_files=["l"]), 200, whole("Success", result(), files={})),
	("a file that is no base64", python("", files={"a": "%"}), 200, whole("SandboxError", None, message=like("base64"))),
	("bytes", python("import sys; sys.stdout.buffer.write(b'\\xff')"), 200, whole("Success", result(0, like(r"^\[DecodeError\]")))),
	("letters", python("print('grüße')"), 200, whole("Success", result(0, "grüße\n"))),
	("no code", {"language": "python"}, 422, invalid("missing", "code")),
	("no language", {"code": ""}, 422, invalid("missing", "language")),
	("an unknown language", {"language": "klingon", "code": ""}, 422, invalid("literal_error", "language")),
	("code of another kind", {"language": "python", "code": 1}, 422, invalid("string_type", "code")),
	("a time of another kind", python("", run_timeout=[1]), 422, invalid("float_type", "run_timeout")),
	("a time that is no number", python("", run_timeout="soon"), 422, invalid("float_parsing", "run_timeout")),
	("a size that is no whole number", python("", memory_limit_MB="1.5"), 422, invalid("int_parsing", "memory_limit_MB")),
	("numbers as texts", python("print(1)", run_timeout="5", memory_limit_MB="256"), 200, whole("Success", result(stdout="1\n"))),
	("files of another kind", python("", files=[]), 422, invalid("dict_type", "files")),
	("files that are none", python("", files={"a": 1, "b": "", "c": []}), 422, {"detail": [{"type": "string_type", "loc": ["body", "files", "a"], "input": 1}, {"loc": ["body", "files", "c"]}]}),
	("names that are none", python("", fetch_files=["a", 1]), 422, {"detail": [{"type": "string_type", "loc": ["body", "fetch_files", 1]}]}),
	("a size with a fraction", python("", memory_limit_MB=1.5), 422, invalid("int_from_float", "memory_limit_MB")),
	("everything that is wrong", {"language": "klingon", "run_timeout": None}, 422, {"detail": [{"type": "missing", "loc": ["body", "code"], "input": {"language": "klingon"}}, {"type": "literal_error", "loc": ["body", "language"]}, {"type": "float_type"}]}),
	("a list of another kind", python("", fetch_files="a"), 422, invalid("list_type", "fetch_files")),
	("a list", [], 422, {"detail": [{"type": "model_attributes_type", "loc": ["body"]}]}),
	("no JSON", "{", 422, {"detail": [{"type": "json_invalid", "loc": ["body", 0], "msg": "JSON decode error"}]}),
	("no body", None, 422, {"detail": [{"type": "missing", "loc": ["body"]}]}),
]


@case("SandboxFusion: run_code")
def rows(t):
	with serve(t, "fusion") as s:
		check(t, ROWS, lambda body, status, want: exact(ask(s, "POST", RUN, body), status, want))
		check(t, [("no datasets", "GET", "/list_datasets", 200, b"[]"), ("prompts of one", "POST", "/get_prompts", 400, {"detail": like("provided_data")}), ("metrics of one", "POST", "/get_metrics", 400, {"detail": ANY}),
			("ping", "GET", "/v1/ping", 200, b'"pong"'), ("another method", "GET", RUN, 405, {"detail": "Method Not Allowed"})],
			lambda method, path, status, want: answer(ask(s, method, path), status, want))


OF_SOME = [
	("php", "PHP without its tag", {"language": "php", "code": " echo 1 + 1;"}, whole("Success", result(0, "2"))),
	("java", "Java is compiled", {"language": "java", "code": "class Main { public static void main(String[] a) { System.out.println(3); } }", "run_timeout": 30}, whole("Success", result(0, "3\n"), result())),
	("java", "Java that does not compile", {"language": "java", "code": "class Main { int f() { return x; } }", "run_timeout": 30}, whole("Failed", None, result(1, "", like("cannot find symbol")))),
]


@case("SandboxFusion: languages that not every host has")
def of_some(t):
	there = [row for row in OF_SOME if shutil.which(row[0])]
	if not there:
		raise Skipped("needs php or java")
	with serve(t, "fusion") as s:
		check(t, [row[1:] for row in there], lambda body, want: exact(ask(s, "POST", RUN, body), 200, want))


def exact(reply, status, want):
	"""As answer(); files that are there are those that are wanted, and no others."""
	found = answer(reply, status, want)
	if not found and isinstance(want.get("files"), dict) and set(reply.json["files"]) != set(want["files"]):
		found = f"files are {list(reply.json['files'])}"
	return found


@case("SandboxFusion: a token in the path, and too much to do")
def busy(t):
	with serve(t, "fusion", auth=True) as s:
		token = s.token("trainer", "--door", "fusion", "--runs-per-minute", "1")
		t.equal(answer(ask(s, "POST", f"/t/{token}{RUN}", python("print(1)")), 200, whole("Success", result(0, "1\n"))), None, "its own")
		t.equal(answer(ask(s, "POST", f"/t/{token}{RUN}", python("print(1)")), 504, {"detail": like("minute")}), None, "over the quota: the one status that is tried again")
		t.equal(answer(ask(s, "POST", RUN, python("")), 401, {"detail": ANY}), None, "without")


def cell(stdout="", stderr="", display=(), error=()):
	return {"stdout": stdout, "stderr": stderr, "display": list(display), "error": [{"ename": name, "evalue": ANY, "traceback": ANY} for name in error]}


def notebook(cells, status="Success", driver="Finished", files=None):
	return {"status": status, "message": "", "driver": {"status": driver}, "cells": cells, "executor_pod_name": None, "files": files or {}}


CELLS = [
	("the example of its documents", {"cells": ["a = 123", "a", "print(a)", "import sys; _ = sys.stderr.write('stderr message')", "raise RuntimeError('error message')"]}, 200,
		notebook([cell(), cell(display=[{"text/plain": "123"}]), cell("123\n"), cell(stderr="stderr message"), cell(error=["RuntimeError"])])),
	("a string is shown as Python does, and an exception ends nothing", {"cells": ["a = 'hi'", "a", "assert False", "print(a)"]}, 200,
		notebook([cell(), cell(display=[{"text/plain": "'hi'"}]), cell(error=["AssertionError"]), cell("hi\n")])),
	("files", {"cells": ["print(open('d/a').read()); _ = open('o', 'wb').write(b'\\xff')"], "files": {"d/a": b64("ü"), "no": None}, "fetch_files": ["o", "./d/a", "none"]}, 200,
		notebook([cell("ü\n")], files={"o": "/w==", "./d/a": b64("ü")})),
	("a cell's time", {"cells": ["while True: pass", "print(2)"], "cell_timeout": 0.3}, 200, notebook([cell(error=["TimeoutError"]), cell("2\n")])),
	("the time of all, in the last one", {"cells": ["import time; time.sleep(9)"], "total_timeout": 0.5}, 200, notebook([ANY], "Failed", "TimeLimitExceeded")),
	("the time of all", {"cells": ["import time; time.sleep(9)", "print(3)"], "total_timeout": 0.5}, 200, notebook([ANY], "Failed", "TimeLimitExceeded")),
	("a kernel that dies", {"cells": ["import os; os._exit(3)", "print(4)"]}, 200, notebook([cell(error=["DeadKernelError"]), cell("4\n")])),
	("code that is blocked", {"cells": ["import os\nos.system('rm -rf /')", "print(5)"]}, 200, notebook([cell(error=["BlockedByPolicy"]), cell("5\n")])),
	("a form that has no name", {"cells": ["display({'text/plain': 't', 'application/x-own+json': {'a': 1}}, raw=True)"]}, 200,
		notebook([cell(display=[{"text/plain": "t", "application/x-own+json": {"a": 1}}])])),
	("forms", {"cells": ["class A:\n  def _repr_html_(self): return '<b>'\nA()"]}, 200, notebook([cell(display=[{"text/html": "<b>", "text/plain": like("A object")}])])),
	("no cells", {"cells": []}, 200, notebook([])),
	("a file that is no base64", {"cells": ["1"], "files": {"a": "%"}}, 200, {"status": "SandboxError", "message": like("base64"), "driver": None}),
	("another kernel", {"cells": [], "kernel": "ir"}, 422, invalid("literal_error", "kernel")),
	("no list of cells", {}, 422, invalid("missing", "cells")),
	("cells of another kind", {"cells": [1]}, 422, {"detail": [{"type": "string_type", "loc": ["body", "cells", 0]}]}),
]


@case("SandboxFusion: run_jupyter")
def cells(t):
	with serve(t, "fusion") as s:
		check(t, CELLS, lambda body, status, want: answer(ask(s, "POST", "/run_jupyter", body), status, want))
		left = [x for x in ask(s, "GET", "/v1/sessions").json["sessions"] if x["state"] == "ready" and x["token"] != ""]
		t.equal(left, [], "no session is left")


def fenced(code, language="python"):
	return f"Here it is:\n```{language}\n{code}\n```\nThat is all."


def problem(completion, tests, language="python", **extra):
	test = [{"input": {"stdin": i}, "output": {"stdout": o}} for i, o in tests] if isinstance(tests, list) else tests
	return {"dataset": "any", "id": 7, "completion": completion, "config": {"dataset_type": "CommonOJDataset", "language": language, "provided_data": {"id": 7, "test": test}, "extra": extra}}


def tested(completion, code, language="python", **more):
	return {"dataset": "any", "id": "p", "completion": completion, "config": {"dataset_type": "AutoEvalDataset", "provided_data": {"labels": {"programming_language": language}, "test": {"code": code, **more}}}}


def judged(*passed, **more):
	return {"id": ANY, "accepted": all(passed), "tests": [{"passed": p, "exec_info": ANY, "test_info": ANY} for p in passed], **more}


DOUBLE = fenced("print(int(input()) * 2)")
ADD = fenced("def add(a, b):\n    return a + b")
SUBMISSIONS = [
	("right", problem(DOUBLE, [("1", "2"), ("4", "8\n")]), 200, judged(True, True, id=7, extracted_code="print(int(input()) * 2)", full_code=None)),
	("wrong: the rest is not told", problem(DOUBLE, [("1", "2"), ("4", "9"), ("5", "10")]), 200, judged(True, False)),
	("wrong: the rest as well", problem(DOUBLE, [("1", "3"), ("4", "8")], run_all_cases=True), 200, judged(False, True)),
	("case, blanks and digits", problem(fenced("print('HELLO ')\nprint(1 / 3)"), [("", "hello\n0.33333334\n\n")]), 200, judged(True)),
	("a line too many", problem(fenced("print(1)\nprint(2)"), [("", "1")]), 200, judged(False)),
	("an exception", problem(fenced("1 / 0"), [("", "")]), 200, judged(False)),
	("blocked is wrong", problem(fenced("import os\nos.system('rm -rf /')"), [("", "")]), 200, {"accepted": False, "tests": [{"exec_info": {"status": "Failed", "run_result": {"return_code": 126}}}]}),
	("C++", problem(fenced("#include <iostream>\nint main() { int a; std::cin >> a; std::cout << a + 1; }", "cpp"), [("1", "2"), ("2", "3")], "cpp"), 200, judged(True, True)),
	("C++ that does not compile", problem(fenced("int main(", "cpp"), [("1", "2")], "cpp"), 200, {"accepted": False, "tests": [{"exec_info": {"compile_result": {"return_code": 1}, "run_result": None}}]}),
	("of several blocks the one in its language", problem(fenced("echo 1", "bash") + fenced("print(7)"), [("", "7")]), 200, judged(True)),
	("a fence that is not closed", problem("```python\nprint(7)", [("", "7")]), 200, judged(True)),
	("no fence at all", problem("so\ndef f():\n    return 7\nprint(f())", [("", "7")]), 200, judged(False, extracted_code="def f():\n    return 7\n")),
	("tests as a text", problem(DOUBLE, '[{"input": {"stdin": "1"}, "output": {"stdout": "2"}}]'), 200, judged(True)),
	("a test behind the code", tested(ADD, "assert add(1, 2) == 3"), 200, judged(True, full_code="def add(a, b):\n    return a + b\nassert add(1, 2) == 3")),
	("a test that fails", tested(ADD, "assert add(1, 2) == 4"), 200, judged(False)),
	("a test around the code, and a file", tested(fenced("def f():\n    return open('d').read()"), "import json\n#<INSERT>\nassert f() == 'x'", asset={"d": b64("x")}), 200, judged(True)),
	("a language that is not here", problem(DOUBLE, [("1", "2")], "verilog"), 400, {"detail": like("language")}),
	("no language", problem(DOUBLE, [("1", "2")], None), 400, {"detail": like("config.language")}),
	("no tests", problem(DOUBLE, []), 400, {"detail": like("test")}),
	("a dataset of its own", {"dataset": "humaneval_python", "id": 0, "completion": "", "config": {}}, 400, {"detail": like("no eval class")}),
	("a database", {"dataset": "code_contests", "id": 0, "completion": "", "config": {"language": "python"}}, 400, {"detail": like("provided_data")}),
	("code for the service", {"dataset": "code_contests", "id": 0, "completion": "", "config": {"provided_data": {}, "custom_extract_logic": "x"}}, 400, {"detail": like("custom_extract_logic")}),
	("no id", {"dataset": "x", "completion": "", "config": {}}, 422, invalid("missing", "id")),
	("settings of another kind", {"dataset": "x", "id": 1, "completion": "", "config": {"run_timeout": "x"}}, 422, invalid("float_parsing", "run_timeout")),
]


@case("SandboxFusion: submit")
def submissions(t):
	with serve(t, "fusion") as s:
		check(t, SUBMISSIONS, lambda body, status, want: answer(ask(s, "POST", "/submit", body), status, want))
