# SPDX-License-Identifier: Apache-2.0
"""SandboxFusion: /run_code as trainers use it."""
import base64

from harness import case
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
	("of a link nothing comes back", python("import os; os.symlink('nothing', 'l')", fetch_files=["l"]), 200, whole("Success", result(), files={})),
	("a file that is no base64", python("", files={"a": "%"}), 200, whole("SandboxError", None, message=like("base64"))),
	("bytes", python("import sys; sys.stdout.buffer.write(b'\\xff')"), 200, whole("Success", result(0, like(r"^\[DecodeError\]")))),
	("letters", python("print('grüße')"), 200, whole("Success", result(0, "grüße\n"))),
	("no code", {"language": "python"}, 422, invalid("missing", "code")),
	("no language", {"code": ""}, 422, invalid("missing", "language")),
	("an unknown language", {"language": "klingon", "code": ""}, 422, invalid("literal_error", "language")),
	("code of another kind", {"language": "python", "code": 1}, 422, invalid("string_type", "code")),
	("a time of another kind", python("", run_timeout="soon"), 422, invalid("float_type", "run_timeout")),
	("files of another kind", python("", files=[]), 422, invalid("dict_type", "files")),
	("files that are none", python("", files={"a": 1}), 422, invalid("dict_type", "files")),
	("a list of another kind", python("", fetch_files="a"), 422, invalid("list_type", "fetch_files")),
	("a list", [], 422, {"detail": [{"type": "model_attributes_type"}]}),
	("no JSON", "{", 422, {"detail": [{"type": "json_invalid"}]}),
]


@case("SandboxFusion: run_code")
def rows(t):
	with serve(t, "fusion") as s:
		check(t, ROWS, lambda body, status, want: exact(ask(s, "POST", RUN, body), status, want))
		check(t, [("ping", "GET", "/v1/ping", 200, b'"pong"'), ("another method", "GET", RUN, 405, {"detail": "Method Not Allowed"})],
			lambda method, path, status, want: answer(ask(s, method, path), status, want))


def exact(reply, status, want):
	"""As answer(); files that are there are those that are wanted, and no others."""
	found = answer(reply, status, want)
	if not found and "files" in want and set(reply.json["files"]) != set(want["files"]):
		found = f"files are {list(reply.json['files'])}"
	return found


@case("SandboxFusion: a token in the path, and too much to do")
def busy(t):
	with serve(t, "fusion", auth=True) as s:
		token = s.token("trainer", "--door", "fusion", "--runs-per-minute", "1")
		t.equal(answer(ask(s, "POST", f"/t/{token}{RUN}", python("print(1)")), 200, whole("Success", result(0, "1\n"))), None, "its own")
		t.equal(answer(ask(s, "POST", f"/t/{token}{RUN}", python("print(1)")), 504, {"detail": like("minute")}), None, "over the quota: the one status that is tried again")
		t.equal(answer(ask(s, "POST", RUN, python("")), 401, {"detail": ANY}), None, "without")
