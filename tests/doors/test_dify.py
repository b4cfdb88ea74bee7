# SPDX-License-Identifier: Apache-2.0
"""dify-sandbox: what Dify sends, and what it makes of the answers."""
import base64

from harness import case
from table import ANY, answer, ask, check, like, serve

RUN = "/v1/sandbox/run"


def good(stdout, **data):
	return {"code": 0, "message": "success", "data": {"stdout": stdout, "stderr": "", "error": "", "exit_code": 0, **data}}


def bad(code, message=ANY):
	return {"code": code, "message": message, "data": None}


def python(code, **more):
	return {"language": "python3", "code": code, "preload": "", "enable_network": True, **more}


# As Dify's template makes it.
INPUTS = base64.b64encode(b'{"a": "\xc3\xbc"}').decode()
WRAPPED = f"""
def main(a):
    return {{"result": a * 2}}
import json
from base64 import b64decode
inputs_obj = json.loads(b64decode('{INPUTS}').decode('utf-8'))
output_obj = main(**inputs_obj)
print(f'''<<RESULT>>{{json.dumps(output_obj, indent=4)}}<<RESULT>>''')
"""
WRAPPED_JS = f"""
function main({{a}}) {{ return {{ result: a + a }} }}
var inputs_obj = JSON.parse(Buffer.from('{INPUTS}', 'base64').toString('utf-8'))
var output_obj = main(inputs_obj)
console.log(`<<RESULT>>${{JSON.stringify(output_obj)}}<<RESULT>>`)
"""

ROWS = [
	("python", python("print('hello')"), 200, good("hello\n")),
	("nodejs", {"language": "nodejs", "code": "console.log(1 + 1)"}, 200, good("2\n")),
	("as Dify wraps a function", python(WRAPPED), 200, good(like(r'^<<RESULT>>\{\n    "result": "\\u00fc\\u00fc"\n\}<<RESULT>>\n$'))),
	("the same in JavaScript", {"language": "nodejs", "code": WRAPPED_JS, "preload": "", "enable_network": True}, 200, good('<<RESULT>>{"result":"üü"}<<RESULT>>\n')),
	("a blank line", python("\n"), 200, good("")),
	("stderr is no error", python("import sys; sys.stderr.write('w')"), 200, good("", stderr="w")),
	("an exit code", python("import sys; print(1); sys.exit(3)"), 200, good("1\n", error="process exited with code 3", exit_code=3)),
	("an exit code with details", python("import sys; sys.exit('why')"), 200, good("", error="process exited with code 1\nwhy\n", exit_code=1, stderr="why\n")),
	("an exception", python("1 / 0"), 200, good("", error=like(r"^process exited with code 1\nTraceback(.|\n)*ZeroDivisionError"), exit_code=1, stderr=like("ZeroDivisionError"))),
	("an exception of JavaScript", {"language": "nodejs", "code": "throw new Error('boo')"}, 200, good("", error=like("^process exited with code 1\n(.|\n)*boo"), exit_code=1, stderr=ANY)),
	("a crash", python("import os; os.kill(os.getpid(), 11)"), 200, good("", error=like("^process exited with code -1\nkilled by SIGSEGV"), exit_code=-1)),
	("code that is blocked", python("import os\nos.system('rm -rf /')"), 200, good("", error=like("^process exited with code 126\n(.|\n)*line 2"), exit_code=126)),
	("a network is not refused", python("print(4)", enable_network=True), 200, good("4\n")),
	("nor there", python("import socket\ntry:\n    socket.create_connection(('1.1.1.1', 80), 1)\nexcept OSError: print('none')"), 200, good("none\n")),
	("what is to be loaded before is left out", python("print(5)", preload="print(6)"), 200, good("5\n")),
	("letters", python("print('grüße 😀')"), 200, good("grüße 😀\n")),
	("much", python("print('x' * 300000)"), 200, good("x" * 300000 + "\n")),
	("bytes", python("import sys; sys.stdout.buffer.write(b'a\\xff')"), 200, good("a\ufffd")),
	("input is empty", python("import sys; print(repr(sys.stdin.read()))"), 200, good("''\n")),
	("another language", {"language": "ruby", "code": "1"}, 400, bad(-400, "unsupported language")),
	("its own names only", {"language": "python", "code": "1"}, 400, bad(-400, "unsupported language")),
	("no language", {"code": "1"}, 400, bad(-400, like("language"))),
	("no code", {"language": "python3"}, 400, bad(-400, like("code"))),
	("empty code is none", python(""), 400, bad(-400, like("code"))),
	("code of another kind", {"language": "python3", "code": 1}, 400, bad(-400)),
	("a flag of another kind", python("", enable_network="yes"), 400, bad(-400)),
	("a list", [], 400, bad(-400)),
]
WHATEVER = [
	("no JSON", "{", {"Content-Type": "application/json"}, 400, bad(-400, like("end of file"))),
	("no JSON, and no exact type", "{", {"Content-Type": "application/json; charset=utf-8"}, 200, bad(-400)),
	("no body", None, {"Content-Type": "application/json"}, 400, bad(-400)),
	("another type", '{"language": "python3", "code": "print(7)"}', {"Content-Type": "text/plain"}, 200, good("7\n")),
]
PLACES = [
	("health", "GET", "/health", None, 200, b'"ok"'),
	("packages", "GET", "/v1/sandbox/dependencies?language=python3", None, 200, {"code": 0, "message": "success", "data": {"dependencies": []}}),
	("packages of a language that has none", "GET", "/v1/sandbox/dependencies?language=nodejs", None, 400, bad(-400, "unsupported language")),
	("packages of no language", "GET", "/v1/sandbox/dependencies", None, 200, bad(-400, like("language"))),
	("packages anew", "GET", "/v1/sandbox/dependencies/refresh?language=python3", None, 200, {"code": 0}),
	("packages are not installed", "POST", "/v1/sandbox/dependencies/update", {"language": "python3"}, 200, bad(-400, like("nothing is installed"))),
	("another method", "GET", RUN, None, 405, {"code": -405}),
]


@case("dify-sandbox: runs, errors, packages")
def rows(t):
	with serve(t, "dify") as s:
		check(t, ROWS, lambda body, status, want: answer(ask(s, "POST", RUN, body), status, want))
		check(t, WHATEVER, lambda body, headers, status, want: answer(ask(s, "POST", RUN, body, headers), status, want))
		check(t, PLACES, lambda method, path, body, status, want: answer(ask(s, method, path, body), status, want))


@case("dify-sandbox: the key")
def key(t):
	with serve(t, "dify", auth=True) as s:
		token = s.token("dify", "--door", "dify")
		body = python("print(8)")
		check(t, [
			("its own", {"X-Api-Key": token}, 200, good("8\n")),
			("a wrong one", {"X-Api-Key": "dify-sandbox"}, 401, b""),
			("one that cannot be", {"X-Api-Key": "a b"}, 401, b""),
			("none", {}, 401, b""),
		], lambda headers, status, want: answer(ask(s, "POST", RUN, body, headers), status, want))
		t.equal(answer(ask(s, "GET", "/health"), 200, b'"ok"'), None, "health needs no key")
		t.equal(answer(ask(s, "GET", "/v1/sandbox/dependencies", None, {"X-Api-Key": "no"}), 401, b""), None, "packages do")


@case("dify-sandbox: the policy's time is over")
def late(t):
	with serve(t, "dify", "--set", "execution_timeout_ms=300ms") as s:
		a = ask(s, "POST", RUN, python("print(1, flush=True)\nimport time\ntime.sleep(20)"))
		t.equal(answer(a, 200, good("1\n", error=like("^process exited with code -1\nerror: timeout\n"), exit_code=-1)), None, "an answer like any other", a)
