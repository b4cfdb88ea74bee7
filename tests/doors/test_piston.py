# SPDX-License-Identifier: Apache-2.0
"""Piston: its clients as they come, and what they never send."""
import os
import shutil

from harness import Skipped, case
from table import ANY, answer, ask, check, like, serve

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = "/api/v2/execute"
FILES = [{"content": "print(1)"}]


@case("three clients of Piston, as they come")
def clients(t):
	node = shutil.which("node")
	if not node or not os.path.isdir(os.path.join(HERE, "node_modules")):
		raise Skipped("needs node and the packages of tests/doors: npm ci --prefix tests/doors")
	with serve(t, "piston", "--refuse-keys", "e2b_bad,bad") as s:
		p = t.run([node, os.path.join(HERE, "piston.mjs"), f"http://127.0.0.1:{s.port}"], stdin=b"")
		t.check(p.rc == 0 and b"not ok" not in p.out and p.out.count(b"ok ") > 45, "what the clients say", p.text())


def job(**more):
	return {"language": "python", "version": "*", "files": FILES, **more}


def message(text):
	return {"message": text if not isinstance(text, str) else text}


# Each has all the faults that come behind its own in the order of the checks.
ORDER = [
	("no language", {}, "language is required as a string"),
	("an empty language", {"language": ""}, "language is required as a string"),
	("a language of another kind", {"language": 5, "version": "*"}, "language is required as a string"),
	("no version", {"language": "python"}, "version is required as a string"),
	("a version of another kind", {"language": "python", "version": 3}, "version is required as a string"),
	("no files", {"language": "nope", "version": "*"}, "files is required as an array"),
	("files of another kind", {"language": "nope", "version": "*", "files": {}}, "files is required as an array"),
	("a file without content", {"language": "nope", "version": "*", "files": [{"content": ""}, {"name": "x"}]}, "files[1].content is required as a string"),
	("a file that is none", {"language": "nope", "version": "*", "files": [7]}, "files[0].content is required as a string"),
	("an unknown runtime", {"language": "nope", "version": "1.x", "files": []}, "nope-1.x runtime is unknown"),
	("a version that is none", job(version="new"), "python-new runtime is unknown"),
	("no file of text", job(files=[{"content": "eA==", "encoding": "base64"}], run_timeout="x"), "files must include at least one utf8 encoded file"),
	("no file at all", job(files=[]), "files must include at least one utf8 encoded file"),
	("a memory limit of another kind", job(run_memory_limit="x", run_timeout="x"), "If specified, run_memory_limit must be a number"),
	("a time of another kind", job(compile_timeout=True), "If specified, compile_timeout must be a number"),
	("too long a time", job(run_timeout=3001), "run_timeout cannot exceed the configured limit of 3000"),
	("too long for the compiler", job(compile_cpu_time=10001), "compile_cpu_time cannot exceed the configured limit of 10000"),
	("a time below nothing", job(run_cpu_time=-1), "run_cpu_time must be non-negative"),
	("arguments of another kind", job(args="x"), "args must be an array"),
	("input of another kind", job(stdin=["x"]), "stdin must be a string"),
]

OTHERS = [
	("a limit of nothing is the usual one", "POST", PATH, job(run_timeout=0, run_memory_limit=None), 200, {"run": {"stdout": "1\n"}}),
	("no memory limit", "POST", PATH, job(run_memory_limit=-1, compile_memory_limit=-1), 200, {"run": {"code": 0}}),
	("more memory than the policy's", "POST", PATH, job(run_memory_limit=1 << 40), 200, {"run": {"code": 0}}),
	("memory is over", "POST", PATH, job(files=[{"content": "x = b'1' * (200 << 20); print(2)"}], run_memory_limit=64 << 20), 200,
		{"run": {"status": "SG", "signal": "SIGKILL", "code": None}}),
	("a name that leads out", "POST", PATH, job(files=[{"name": "../x", "content": ""}]), 500, b""),
	("a name that leads elsewhere", "POST", PATH, job(files=[*FILES, {"name": "/etc/x", "content": ""}]), 500, b""),
	("an entry in a folder finds what lies beside it", "POST", PATH, job(files=[{"name": "src/main.py", "content": "import other; print(other.a, open('d').read())"}, {"name": "src/other.py", "content": "a = 5"}, {"name": "d", "content": "top"}]), 200,
		{"run": {"stdout": "5 top\n"}}),
	("of two files of one name the last one", "POST", PATH, job(files=[{"name": "m.py", "content": "print(open('d').read())"}, {"name": "d", "content": "1"}, {"name": "d", "content": "2"}]), 200, {"run": {"stdout": "2\n"}}),
	("a file where another one needs a directory", "POST", PATH, job(files=[*FILES, {"name": "d/e", "content": "1"}, {"name": "./d", "content": "2"}]), 400, message(like("'d' and 'd/e' cannot both be placed"))),
	("an encoding that is unknown is text", "POST", PATH, job(files=[{"content": "print(3)", "encoding": "latin"}]), 200, {"run": {"stdout": "3\n"}}),
	("base64 without an end, in either alphabet", "POST", PATH, job(files=[{"content": "print(open('a', 'rb').read(), open('b', 'rb').read(), open('c', 'rb').read())"}, {"name": "a", "content": "AAE", "encoding": "base64"}, {"name": "b", "content": "-_8\n=", "encoding": "base64"}, {"name": "c", "content": "aGFsbG8hIQ==", "encoding": "base64"}]), 200,
		{"run": {"stdout": "b'\\x00\\x01' b'\\xfb\\xff' b'hallo!!'\n"}}),
	("its version", "GET", "/", None, 200, message(like(r"^Piston v\d+[.]\d+[.]\d+$"))),
	("a slash at the end", "GET", "/api/v2/runtimes/", None, 200, ANY),
	("a path that is none", "GET", "/api/v2/nothing", None, 404, message("Not Found")),
	("nor for another method", "POST", "/api/v2/nothing/at/all", {}, 404, message("Not Found")),
	("no JSON", "POST", PATH, "{", 400, {"stack": like("end of file")}),
	("no body", "POST", PATH, None, 400, {"stack": ANY}),
	("a list", "POST", PATH, [], 400, message("language is required as a string")),
	("packages need JSON", "POST", "/api/v2/packages", "{}", 415, message("requests must be of type application/json")),
	("packages are not removed", "DELETE", "/api/v2/packages", {"language": "python", "version": "*"}, 403, message(like("nothing is removed"))),
	("packages by language", "GET", "/api/v2/packages?language=python", None, 200, [{"language": "python", "installed": True}]),
	("another method", "PUT", PATH, "", 404, message("Not Found")),
	("a socket without a handshake", "GET", "/api/v2/connect", None, 426, message(like("WebSocket"))),
	("what the inspection blocks", "POST", PATH, job(files=[{"content": "import os\nos.system('rm -rf /')"}]), 200, {"run": {"status": "RE", "code": 126, "stderr": like("line 2")}}),
]


@case("Piston: checks in their order, and other answers")
def rows(t):
	with serve(t, "piston") as s:
		check(t, ORDER, lambda body, text: answer(ask(s, "POST", PATH, body), 400, message(text)))
		check(t, OTHERS, lambda method, path, body, status, want: answer(ask(s, method, path, body), status, want))
		page = ask(s, "GET", "/", headers={"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip"})
		t.equal((page.status, page.headers["content-type"].split(";")[0]), (200, "text/html"), "the console, for a browser")


GO_MAIN = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(helper()) }\n"
GO_GOOD = "package main\n\nfunc helper() string { return \"helped\" }\n"
GO_BAD = "package main\n\nimport \"os/exec\"\n\nfunc helper() string {\n\tout, _ := exec.Command(\"sh\", \"-c\", \"cat /etc/shadow\").Output()\n\treturn string(out)\n}\n"
GO_MODULE = "module example\n\ngo 1.18\n"


@case("Piston: what is compiled with the entry is inspected like it")
def compiled_files(t):
	if not shutil.which("go"):
		raise Skipped("needs go (apt-get install golang-go)")

	def files(helper, *more):
		return job(language="go", files=[{"name": "main.go", "content": GO_MAIN}, {"name": "helper.go", "content": helper}, *more])
	module = {"name": "go.mod", "content": GO_MODULE}
	blocked = {"run": {"code": 126, "status": "RE", "stderr": like("(?s)helper[.]go: .*")}}
	rows = [
		("a good one", files(GO_GOOD), {"run": {"stdout": "helped\n"}}),
		("one that would be blocked", files(GO_BAD), blocked),
		("which a module finds", files(GO_BAD, module), blocked),
	]
	with serve(t, "piston") as s:
		check(t, rows, lambda body, want: answer(ask(s, "POST", PATH, body), 200, want))
