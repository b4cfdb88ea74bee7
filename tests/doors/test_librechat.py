# SPDX-License-Identifier: Apache-2.0
"""LibreChat's code interpreter: /exec as @librechat/agents 3.9.2 sends it, and files as LibreChat does."""
import json
import os
import re
import shutil

from harness import Skipped, case
from table import ANY, answer, ask, check, like, serve

EXEC = "/v1/exec"
AGENT = {"User-Agent": "LibreChat/1.0"}


def form(fields, files):
	"""A multipart body and its type: file names as they are, with a quotation mark as %22."""
	parts = [f'--b0\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields]
	for name, data in files:
		escaped = name.replace('"', "%22")
		parts.append(f'--b0\r\nContent-Disposition: form-data; name="file"; filename="{escaped}"\r\nContent-Type: application/octet-stream\r\n\r\n'.encode() + data + b"\r\n")
	return b"".join(parts) + b"--b0--\r\n", {"Content-Type": "multipart/form-data; boundary=b0", "User-Id": "user-1"}


USER = [("kind", "user"), ("id", "user-1")]


def upload(s, *files, batch=False, more=()):
	body, headers = form([*USER, *more], files)
	return ask(s, "POST", "/v1/upload/batch" if batch else "/v1/upload", body, headers)


def ref(reply, index=0):
	"""A reference to an uploaded file, as LibreChat keeps it."""
	d = reply.json
	return {"id": d["files"][index]["fileId"], "resource_id": "user-1", "name": d["files"][index]["filename"], "storage_session_id": d["storage_session_id"], "kind": "user"}


def run(s, code, lang="py", **more):
	return ask(s, "POST", EXEC, {"lang": lang, "code": code, **more}, AGENT)


def plain(stdout, stderr=""):
	return {"session_id": like("^[a-z2-7]{16}$"), "stdout": stdout, "stderr": stderr}


ROWS = [
	("python", "print('hi')", "py", {}, plain("hi\n")),
	("javascript", "console.log(1 + 1)", "js", {}, plain("2\n")),
	("typescript", "const n: number = 2; console.log(n)", "ts", {}, plain("2\n")),
	("bash", "echo $((2 + 3)); python3 -c 'print(6)'", "bash", {}, plain("5\n6\n")),
	("C", "#include <stdio.h>\nint main() { puts(\"c\"); }", "c", {}, plain("c\n")),
	("C++", "#include <iostream>\nint main() { std::cout << 7; }", "cpp", {}, plain("7")),
	("arguments", "import sys; print(sys.argv[1:])", "py", {"args": ["a", "b c"]}, plain("['a', 'b c']\n")),
	("what the client sends besides", "print(1)", "py", {"session_id": "x", "user_id": "u", "runtime_session_hint": "h", "files": []}, plain("1\n")),
	("an exception", "1 / 0", "py", {}, plain("", like("ZeroDivisionError"))),
	("an exit code", "import sys; print(2); sys.exit(3)", "py", {}, plain("2\n", "")),
	("a crash", "import os; os.kill(os.getpid(), 11)", "py", {}, plain("", like("SIGSEGV"))),
	("time is over", "print(1, flush=True)\nimport time\ntime.sleep(20)", "py", {"timeout": 300}, plain("1\n", "Time limit exceeded\n")),
	("memory is over", "x = b'1' * (900 << 20)", "py", {}, plain("", like("Out of memory|MemoryError"))),
	("code that is blocked", "import os\nos.system('rm -rf /')", "py", {}, plain("", like("line 2"))),
	("what does not compile", "int main() { return x; }", "c", {}, plain("", like("undeclared"))),
	("a language that is not here", "", "f90", {}, {"stdout": "", "stderr": like("language")}),
	("the folder of files", "import os; open('a', 'w'); print(os.path.exists('/mnt/data/a'))", "py", {}, plain("True\n")),
	("where a program starts", "import os; print(os.getcwd())", "py", {}, plain("/mnt/data\n")),
	("where a command does", "pwd; echo $PWD", "bash", {}, plain("/mnt/data\n/mnt/data\n")),
	("where what is compiled does", "#include <unistd.h>\n#include <stdio.h>\nint main() { char at[99]; puts(getcwd(at, 99)); }", "c", {}, plain("/mnt/data\n")),
	("arguments of a command", 'echo "$1-$2"', "bash", {"args": ["a", "b c"]}, plain("a-b c\n")),
	("a command that fails", "echo out; echo err >&2; exit 3", "bash", {}, plain("out\n", "err\n")),
	("much", "print('ü' * 500000)", "py", {}, plain("ü" * 500000 + "\n")),
	("nothing is typed", "import sys; print(repr(sys.stdin.read()))", "py", {}, plain("''\n")),
	("no network", "import socket\ntry: socket.create_connection(('1.1.1.1', 80), 1)\nexcept OSError: print('none')", "py", {}, plain("none\n")),
	("letters", "print('grüße 😀')", "py", {}, plain("grüße 😀\n")),
	("bytes", "import sys; sys.stdout.buffer.write(b'a\\xff')", "py", {}, plain("a\ufffd")),
	("a file that never was", "import os; print(os.path.exists('/mnt/data/x'))", "py", {"files": [{"id": "f" + "a" * 20, "name": "x", "storage_session_id": "a" * 16, "kind": "user", "resource_id": "u"}]}, plain("False\n")),
	("a file of somebody else's kind", "print(1)", "py", {"files": [{"id": "../../etc", "name": "x", "storage_session_id": "..", "kind": "user"}]}, plain("1\n")),
]
BAD = [
	("no language", {"code": ""}, 400),
	("an unknown one", {"lang": "cobol", "code": ""}, 400),
	("no code", {"lang": "py"}, 400),
	("code of another kind", {"lang": "py", "code": 1}, 400),
	("arguments of another kind", {"lang": "py", "code": "", "args": "x"}, 400),
	("an argument of another kind", {"lang": "py", "code": "", "args": [1]}, 400),
	("files of another kind", {"lang": "py", "code": "", "files": {}}, 400),
	("a file that is none", {"lang": "py", "code": "", "files": [1]}, 400),
	("a name that leads out", {"lang": "py", "code": "", "files": [{"id": "f", "name": "../x", "storage_session_id": "s"}]}, 400),
	("a list", [], 400),
	("no JSON", "{", 400),
]


@case("LibreChat: programs")
def rows(t):
	with serve(t, "librechat") as s:
		check(t, ROWS, lambda code, lang, more, want: answer(run(s, code, lang, **more), 200, want))
		check(t, BAD, lambda body, status: answer(ask(s, "POST", EXEC, body), status, {"error": ANY}))


@case("LibreChat: what a program makes comes back, and goes in again")
def files(t):
	with serve(t, "librechat") as s:
		made = run(s, "import json, os\njson.dump(41, open('/mnt/data/state.json', 'w'))\nos.makedirs('sub'); open('sub/ü.bin', 'wb').write(b'\\xff')").json
		t.equal(sorted(f["name"] for f in made["files"]), ["state.json", "sub/ü.bin"], "names", made)
		t.check(not any(f.get("inherited") for f in made["files"]) and len({f["storage_session_id"] for f in made["files"]}) == 1, "new ones", made)
		refs = [{**f, "kind": "user", "resource_id": "user-1"} for f in made["files"]]
		state = next(f for f in refs if f["name"] == "state.json")
		a = run(s, "print(int(open('/mnt/data/state.json').read()) + 1)", files=[state])
		t.equal(answer(a, 200, {"stdout": "42\n", "stderr": "", "files": [{**state, "inherited": True}]}), None, "one that is only read is as it was", a)
		a = run(s, "open('state.json', 'w').write('7')", files=refs)
		changed = next(f for f in a.json["files"] if f["name"] == "state.json")
		t.check(changed["id"] != state["id"] and "inherited" not in changed and changed["modified_from"]["id"] == state["id"], "one that was changed is another", a)
		t.check(any(f["name"] == "sub/ü.bin" and f.get("inherited") for f in a.json["files"]), "the other is not", a)
		a = run(s, "import os; os.remove('state.json')", files=[state])
		t.equal(a.json.get("deleted_files"), ["state.json"], "one that was removed", a)
		a = run(s, "print(open('state.json').read(), open('sub/ü.bin', 'rb').read())", files=[changed, next(f for f in refs if f["name"] != "state.json")])
		t.equal(a.json["stdout"], "7 b'\\xff'\n", "files of two sessions", a)
		a = ask(s, "GET", f"/v1/download/{changed['storage_session_id']}/{changed['id']}?kind=user&id=user-1")
		t.equal((a.status, a.body, a.headers["content-type"]), (200, b"7", "application/octet-stream"), "download", a)
		a = run(s, "import os; os.symlink('/etc/passwd', 'l'); os.mkfifo('p')")
		t.check("files" not in a.json, "only regular files", a)
		a = run(s, "import os; os.makedirs('d'); open('d/x', 'w').write('1'); print(sorted(os.listdir('/tmp')))", lang="py")
		t.equal([f["name"] for f in a.json["files"]], ["d/x"], "and nothing but files", a)
		a = run(s, "mkdir -p .cache/fontconfig d && echo 1 > .cache/fontconfig/f && echo 'v = 1' > d/own.py && python3 -c 'import d.own' && ls d", lang="bash")
		t.equal((a.json["stdout"], [f["name"] for f in a.json["files"]]), ("__pycache__\nown.py\n", ["d/own.py"]), "nothing that programs keep for themselves", a)


@case("LibreChat: files that may be executed")
def executable(t):
	with serve(t, "librechat") as s:
		made = run(s, "printf '#!/bin/sh\\necho ran\\n' >run; cp run not; chmod 755 run", lang="bash").json
		a = run(s, "./run; test -x not || echo no", lang="bash", files=[{**f, "kind": "user", "resource_id": "user-1"} for f in made["files"]])
		t.equal(answer(a, 200, {"stdout": "ran\nno\n", "stderr": ""}), None, "in the next call", a)


@case("LibreChat: files that cannot be returned are counted")
def lost(t):
	with serve(t, "librechat", "--set", "artifacts_limit=3") as s:
		code, delivery = "import os\nos.symlink('f0', 'l')\nfor i in range({}): open(f'f{{i}}', 'w').write('x')", {"code": "artifact_delivery_failed", "status": "partial", "attempted": 8, "delivered": 3, "failed": 5}
		a = run(s, code.format(3))
		t.equal((len(a.json["files"]), a.json.get("artifact_delivery")), (3, None), "all that is allowed", a)
		a = run(s, code.format(8))
		t.equal((len(a.json["files"]), a.json.get("artifact_delivery")), (3, delivery), "more than that", a)
		a = run(s, code.format(8), files=[ref(upload(s, ("in", b"x")))])
		t.equal((len(a.json["files"]), a.json.get("artifact_delivery")), (4, delivery), "beside a file that came", a)
		for lang, many in (("py", "for i in range(8): open(f'#{i}', 'w').write('x')\nprint(await get_weather())"), ("bash", ": &\nwait \"$!\"\nfor i in 1 2 3 4 5 6 7 8; do echo x >\"#$i\"; done\nget_weather '{}'")):
			a, made = rounds(s, many, lambda call: good("w"), lang=lang, tools=TOOLS[:1])
			t.equal((a.json.get("stdout"), len(made), a.json.get("artifact_delivery")), ("w\n", 1, delivery), "a call to a tool is not lost for them", a)
		a, _ = rounds(s, code.format(8), lambda call: good(None))
		t.equal((len(a.json["files"]), a.json.get("artifact_delivery")), (3, delivery), "of a program that calls tools", a)


@case("LibreChat: uploads")
def uploads(t):
	with serve(t, "librechat") as s:
		one = upload(s, ("a.txt", b"text"))
		t.equal(answer(one, 200, {"message": "success", "storage_session_id": like("^[a-z2-7]{16}$"), "files": [{"fileId": like("^f"), "filename": "a.txt"}]}), None, "one", one)
		many = upload(s, ("sub/b.txt", b"b"), ('q"ü.csv', b"1,2"), ("../x", b""), batch=True)
		t.equal(answer(many, 200, {"succeeded": 2, "failed": 1, "files": [{"status": "success", "filename": "sub/b.txt"}, {"status": "success", "filename": 'q"ü.csv'}, {"status": "error", "filename": "../x", "error": ANY}]}), None, "several", many)
		a = run(s, "for n in ('a.txt', 'sub/b.txt', 'q\"ü.csv'): print(open('/mnt/data/' + n).read())", files=[ref(one), ref(many), ref(many, 1)])
		t.equal(a.json["stdout"], "text\nb\n1,2\n", "in one run", a)
		own = upload(s, ("main.py", b"mine"))
		a = run(s, "print(open('/mnt/data/main.py').read())", files=[ref(own)])
		t.equal((a.json["stdout"], a.json["stderr"]), ("mine\n", ""), "a file that is called as programs are", a)
		fixed = upload(s, ("r.txt", b"keep"), batch=True, more=[("read_only", "true")])
		a = run(s, "open('r.txt', 'w').write('other'); print(open('r.txt').read())", files=[ref(fixed)])
		t.equal(answer(a, 200, {"stdout": "other\n", "files": [{**ref(fixed), "inherited": True}]}), None, "a read-only file that was changed is as it was", a)
		sid, fid = many.json["storage_session_id"], many.json["files"][0]["fileId"]
		check(t, [
			("when it was left", "GET", f"/v1/sessions/{sid}/objects/{fid}?kind=user&id=user-1", 200, {"lastModified": like(r"^\d{4}-\d\d-\d\dT")}),
			("all of them", "GET", f"/v1/files/{sid}?detail=full&kind=user&id=user-1", 200, [{"id": fid, "name": f"{sid}/{fid}.txt", "storage_session_id": sid, "metadata": {"original-filename": "sub/b.txt"}}, {"metadata": {"original-filename": 'q"ü.csv'}}]),
			("the bytes", "GET", f"/v1/download/{sid}/{fid}", 200, b"b"),
			("it is removed", "DELETE", f"/v1/sessions/{sid}/objects/{fid}", 200, {"message": "success"}),
			("and gone", "GET", f"/v1/sessions/{sid}/objects/{fid}", 404, {"error": ANY}),
			("for all", "GET", f"/v1/download/{sid}/{fid}", 404, {"error": ANY}),
			("twice", "DELETE", f"/v1/files/{sid}/{fid}", 404, {"error": ANY}),
			("the other one is not", "GET", f"/v1/files/{sid}", 200, [{"metadata": {"original-filename": 'q"ü.csv'}}]),
			("nor by its second name", "DELETE", f"/v1/files/{sid}/{many.json['files'][1]['fileId']}", 200, {"message": "success"}),
			("and then the session", "GET", f"/v1/files/{sid}", 404, {"error": ANY}),
			("a session that is none", "GET", "/v1/files/x", 404, {"error": ANY}),
			("a file that is none", "GET", f"/v1/download/{sid}/..%2f..", 404, ANY),
		], lambda method, path, status, want: answer(ask(s, method, path), status, want))
		body, headers = form([("id", "user-1")], [("a", b"")])
		t.equal(answer(ask(s, "POST", "/v1/upload", body, headers), 400, {"error": like("kind")}), None, "without a kind")
		body, headers = form(USER, [])
		t.equal(answer(ask(s, "POST", "/v1/upload", body, headers), 400, {"error": like("file")}), None, "without a file")
		for wrong, what in ((b"", "no body"), (b"--b0\r\n", "half a form"), (b"x" * 5000, "no form")):
			t.equal(answer(ask(s, "POST", "/v1/upload", wrong, headers), 400, {"error": ANY}), None, what)


@case("LibreChat: several files with one name")
def same_names(t):
	with serve(t, "librechat") as s:
		one, two, both = upload(s, ("a b.csv", b"one")), upload(s, ("a b.csv", b"two")), upload(s, ("a.txt", b"1"), ("a.txt", b"2"), batch=True)
		code, gone = "print(open('a b.csv').read())", {**ref(two), "id": "f" + "a" * 20}

		def passed(code, files, stdout, **more):
			a = run(s, code, files=files, **more)
			return answer(a, 200, {**plain(stdout), "files": [{**files[-1], "inherited": True}]})

		check(t, [
			("a file twice", code, [ref(one), ref(one)], "one\n"),
			("two uploads: the last one", code, [ref(one), ref(two)], "two\n"),
			("in the order of the request", code, [ref(two), ref(one)], "one\n"),
			("two of one upload", "print(open('a.txt').read())", [ref(both), ref(both, 1)], "2\n"),
			("the other way round", "print(open('a.txt').read())", [ref(both, 1), ref(both)], "1\n"),
			("a directory that is called as programs are", "print(open('main.py/x').read())", [ref(upload(s, ("main.py/x", b"mine")))], "mine\n"),
		], passed)
		t.equal(answer(run(s, code, files=[ref(one), gone]), 200, {**plain("one\n"), "files": [{**ref(one), "inherited": True}]}), None, "the last one of those that there are")
		a, _ = rounds(s, code, lambda call: good(None), files=[ref(one), ref(two)])
		t.equal(answer(a, 200, {"status": "completed", "stdout": "two\n"}), None, "of a program that calls tools", a)
		t.equal((run(s, code, files=[ref(two), ref(one)], runtime_session_hint="h").json["stdout"], run(s, code, runtime_session_hint="h").json["stdout"]), ("one\n", "one\n"), "in a stateful session")
		files, why = [ref(upload(s, ("x", b"1"))), ref(upload(s, ("x/y", b"2")))], like("'x' and 'x/y' cannot both be placed")
		t.equal(answer(run(s, "print(1)", files=files), 200, {"stdout": "", "stderr": why}), None, "a file where another one needs a directory")
		a, _ = rounds(s, "print(1)", lambda call: good(None), files=files)
		t.equal(answer(a, 200, {"status": "error", "error": "Execution failed or timed out", "stderr": why}), None, "of a program that calls tools", a)


@case("LibreChat: files of one token are nobody else's")
def owners(t):
	with serve(t, "librechat", auth=True) as s:
		a, b = s.token("one", "--door", "librechat"), s.token("two", "--door", "librechat")
		body, headers = form(USER, [("secret", b"s3cret")])
		up = ask(s, "POST", f"/t/{a}/v1/upload", body, headers)
		mine, path = ref(up), f"/v1/download/{up.json['storage_session_id']}/{up.json['files'][0]['fileId']}"
		job = {"lang": "py", "code": "import os; print(os.path.exists('/mnt/data/secret'))", "files": [mine]}
		check(t, [
			("its owner's", "GET", f"/t/{a}{path}", None, {}, 200, b"s3cret"),
			("not another's", "GET", f"/t/{b}{path}", None, {}, 404, {"error": ANY}),
			("nor anybody's", "GET", path, None, {}, 401, {"error": ANY}),
			("by header", "GET", path, None, {"X-API-Key": a}, 200, b"s3cret"),
			("in a run", "POST", f"/t/{a}{EXEC}", job, {}, 200, {"stdout": "True\n"}),
			("with the JWT of an installation that signs", "POST", f"/t/{a}{EXEC}", job, {"Authorization": "Bearer eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1In0.c2ln"}, 200, {"stdout": "True\n"}),
			("which alone is no key", "POST", EXEC, job, {"Authorization": "Bearer eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1In0.c2ln"}, 401, {"error": ANY}),
			("not in another's", "POST", f"/t/{b}{EXEC}", job, {}, 200, {"stdout": "False\n"}),
			("nor removed by that one", "DELETE", f"/t/{b}{path.replace('download', 'files')}", None, {}, 404, {"error": ANY}),
			("a wrong key", "POST", EXEC, job, {"Authorization": "Bearer bad"}, 401, {"error": ANY}),
		], lambda method, at, document, more, status, want: answer(ask(s, method, at, document, more), status, want))
		busy = s.token("busy", "--door", "librechat", "--runs-per-minute", "1")
		ask(s, "POST", f"/t/{busy}{EXEC}", {"lang": "py", "code": ""})
		late = ask(s, "POST", f"/t/{busy}{EXEC}", {"lang": "py", "code": ""})
		t.equal(answer(late, 429, {"error": "rate_limited", "retry_after_seconds": lambda n: n >= 1}), None, "too many runs", late)


SIGN = """
const crypto = require("crypto"), keys = { own: crypto.generateKeyPairSync("ed25519"), other: crypto.generateKeyPairSync("ed25519"), rsa: crypto.generateKeyPairSync("rsa", { modulusLength: 2048 }) };
const now = Math.floor(Date.now() / 1000), part = (doc) => Buffer.from(typeof doc === "string" ? doc : JSON.stringify(doc)).toString("base64url");
const claims = { iss: "librechat", aud: "codeapi", sub: "u1", tenant_id: "t", role: "USER", jti: "1", iat: now, exp: now + 120 };
const jwt = (more, key = "own", alg = "EdDSA") => {
	const text = `${part({ alg, typ: "JWT", kid: "k" })}.${part({ ...claims, ...more })}`;
	return `${text}.${crypto.sign(key === "rsa" ? "RSA-SHA256" : null, Buffer.from(text), keys[key].privateKey).toString("base64url")}`;
};
const good = jwt({}), [head, body, signature] = good.split(".");
console.log(JSON.stringify({
	pem: keys.own.publicKey.export({ type: "spki", format: "pem" }), jwk: JSON.stringify(keys.own.publicKey.export({ format: "jwk" })),
	rsa: keys.rsa.publicKey.export({ type: "spki", format: "pem" }),
	good: { plain: good, "of several for whom": jwt({ aud: ["x", "codeapi"] }), "a moment ago": jwt({ exp: now - 5 }) },
	bad: {
		"another key": jwt({}, "other"), "another algorithm": jwt({}, "rsa", "RS256"), "no algorithm": `${part({ alg: "none" })}.${body}.`,
		"claimed to be of the key's": jwt({}, "rsa", "EdDSA"), "other claims": `${head}.${part({ ...claims, sub: "root" })}.${signature}`, "another head": `${part({ alg: "EdDSA" })}.${body}.${signature}`,
		"no signature": `${head}.${body}.`, "two parts": `${head}.${body}`, "a letter less": good.slice(0, -1), "padding": good + "==", "nothing": "", "over": jwt({ exp: now - 600 }),
		"for ever": jwt({ exp: now + 86400 }), "no end": jwt({ exp: undefined }), "an end that is none": jwt({ exp: "tomorrow" }), "not yet": jwt({ nbf: now + 600 }), "made later": jwt({ iat: now + 600 }),
		"somebody else's": jwt({ iss: "other" }), "for somebody else": jwt({ aud: "other" }), "nobody": jwt({ sub: "" }), "claims that are none": (() => { const t = `${head}.${part("[]")}`; return `${t}.${crypto.sign(null, Buffer.from(t), keys.own.privateKey).toString("base64url")}`; })(),
	},
}));
"""


@case("LibreChat: with the key of an installation that signs, requests that it has not signed are refused")
def signed(t):
	node = shutil.which("node")
	if not node:
		raise Skipped("needs node, which signs as LibreChat does")
	made = json.loads(t.run([node, "-e", SIGN], stdin=b"").out)
	names = {}
	for kind in ("pem", "jwk", "rsa"):
		names[kind] = os.path.join(t.dir, kind)
		with open(names[kind], "w") as f:
			f.write(made[kind])
	job = {"lang": "py", "code": "print(6 * 7)"}
	for kind in ("pem", "jwk"):
		with serve(t, "librechat", "--librechat-jwt-key", names[kind], auth=True) as s:
			key = s.token(kind, "--door", "librechat")

			def asked(token, want, path=f"/t/{key}{EXEC}", more=None):
				headers = {**({"Authorization": f"Bearer {token}"} if token is not None else {}), **(more or {})}
				return answer(ask(s, "POST", path, job, headers), *want)
			yes, no = (200, {"stdout": "42\n"}), (401, {"error": like("JWT|token")})
			rows = [(name, token, yes) for name, token in made["good"].items()] if kind == "pem" else [("plain", made["good"]["plain"], yes)]
			rows += [(name, token, no) for name, token in made["bad"].items()] if kind == "pem" else [("another key", made["bad"]["another key"], no)]
			check(t, [*rows, ("none at all", None, no), ("beside a key in a line", made["good"]["plain"], yes, EXEC, {"X-API-Key": key}),
				("alone it is no key", made["good"]["plain"], no, EXEC), ("nor with a wrong one", made["good"]["plain"], no, EXEC, {"X-API-Key": "brig_wrong"})], asked)
	refused = t.brig("serve", "--librechat-jwt-key", names["rsa"], stdin=b"")
	t.check(refused.rc != 0 and b"Ed25519" in refused.err, "a key of another kind", refused.text())


@case("LibreChat: stateful sessions")
def stateful(t):
	with serve(t, "librechat", auth=True) as s:
		keys = {name: s.token(name, "--door", "librechat") for name in ("one", "two")}
		seen = {}

		def call(key, hint, lang, code, status, want, more=None):
			a = ask(s, "POST", f"/t/{keys[key]}{EXEC}", {"lang": lang, "code": code, **({"runtime_session_hint": hint} if hint else {}), **(more or {})}, AGENT)
			names = sorted(f["name"] for f in a.json.get("files", []) if not f.get("inherited")) if a.status == 200 else None
			have = {"stdout": a.json["stdout"], "files": names, "status": a.json.get("runtime_status")}
			seen.setdefault((key, hint), a.json.get("runtime_session_id"))
			same = seen[key, hint] == a.json.get("runtime_session_id")
			first = a.json.get("files", [{}])[0]
			seen["ref"] = seen.get("ref") or {**first, "kind": "user", "resource_id": "user-1"}
			return None if have == {"stdout": want, "files": status[1], "status": status[0]} and same else f"{have}, {a}"

		check(t, [
			("the first call", "one", "h", "py", "open('/mnt/data/n', 'w').write('1')", ("new", ["n"]), ""),
			("its file is there, and not new", "one", "h", "py", "print(open('n').read())", ("reused", []), "1\n"),
			("in another language", "one", "h", "bash", "echo 2 >>n; mkdir d; echo x >d/y; cat n", ("reused", ["d/y", "n"]), "12\n"),
			("what is deleted stays so, /tmp does not stay", "one", "h", "bash", "rm n; touch /tmp/q", ("reused", []), ""),
			("afterwards", "one", "h", "bash", "ls -d n d/y /tmp/q 2>/dev/null", ("reused", []), "d/y\n"),
			("what may be executed", "one", "x", "bash", "printf '#!/bin/sh\\necho ran\\n' >run; cp run not; chmod 755 run; touch a", ("new", ["a", "not", "run"]), ""),
			("may be so in the next call", "one", "x", "bash", "./run; test -x not || echo no", ("reused", []), "ran\nno\n"),
			("and in the one after it, if another file changes", "one", "x", "bash", "echo 1 >a", ("reused", ["a"]), ""),
			("still", "one", "x", "bash", "./run; chmod +x not; chmod -x run", ("reused", ["not", "run"]), "ran\n"),
			("the other one now", "one", "x", "bash", "./not; test -x run || echo no", ("reused", []), "ran\nno\n"),
			("another hint", "one", "g", "bash", "ls -d d", ("new", []), ""),
			("another token", "two", "h", "bash", "ls -d d", ("new", []), ""),
			("no hint", "one", None, "bash", "ls -d d", (None, []), ""),
		], call)
		t.equal(call("one", "h", "py", "print(open('n').read(), open('d/y').read())", ("reused", []), "1 x\n\n", {"files": [seen["ref"]]}), None, "a file that the call names")
		t.equal(call("one", "h", "py", "print(open('n').read())", ("reused", []), "1\n"), None, "and that stays")
		first = ask(s, "POST", f"/t/{keys['one']}/v1/exec/programmatic", {"code": "open('p', 'w').write(str(await f()))", "tools": [{"name": "f"}], "runtime_session_hint": "h"}).json
		done = ask(s, "POST", f"/t/{keys['one']}/v1/exec/programmatic", {"continuation_token": first["continuation_token"], "tool_results": [{"call_id": "call_001", "result": 9}]})
		t.equal(answer(done, 200, {"status": "completed", "runtime_status": "reused"}), None, "of a program that calls tools")
		t.equal(call("one", "h", "py", "print(open('p').read(), open('n').read())", ("reused", []), "9 1\n"), None, "what it left")


@case("LibreChat: requests for another deployment")
def elsewhere(t):
	workspace, worker, profile = "X-LibreChat-Code-Workspace-ID", "X-LibreChat-Code-Worker-ID", "X-CodeAPI-Expected-Profile"
	rows = [
		("an attached workspace", {workspace: "ws1"}, 409, {"error": "capability_mismatch", "message": ANY}),
		("an attached worker", {worker: "vm1", profile: "stateful"}, 409, {"error": "bridge_worker_mismatch", "message": ANY}),
		("an unknown profile", {profile: "weird"}, 409, {"error": "execution_profile_mismatch", "message": like("'default' and 'stateful'")}),
		("two profiles", {profile: "default, stateful"}, 409, {"error": "execution_profile_mismatch"}),
		("without a profile's name", {profile: ""}, 200, {"stdout": "1\n"}),
		("the usual profile", {profile: "default"}, 200, {"stdout": "1\n"}),
		("that with sessions", {profile: "stateful", "X-LibreChat-Code-Request-ID": "r"}, 200, {"stdout": "1\n"}),
	]
	with serve(t, "librechat", auth=True) as s:
		key = s.token("one", "--door", "librechat")
		body = {"lang": "py", "code": "print(1)", "tools": [{"name": "f"}]}
		for path in (EXEC, "/v1/exec/programmatic"):
			check(t, rows, lambda headers, status, want: answer(ask(s, "POST", f"/t/{key}{path}", body, headers), status, want))
		t.equal(answer(ask(s, "POST", f"/t/{key}/v1/exec/programmatic", {**body, "tools": []}, {workspace: "ws1"}), 409, {"error": "capability_mismatch"}), None, "a command in a workspace")
		t.equal(answer(ask(s, "POST", EXEC, body, {workspace: "ws1"}), 401, {"error": ANY}), None, "without a key")


TOOLS = [{"name": "get-weather", "description": "", "parameters": {}}, {"name": "2nd tool", "parameters": {}}, {"name": "import"}]


def rounds(s, code, host, **more):
	"""Plays the host: answers, calls that were made, in order."""
	a, made = ask(s, "POST", "/v1/exec/programmatic", {"code": code, "timeout": 15000, "tools": TOOLS, **more}, AGENT), []
	while a.status == 200 and a.json["status"] == "tool_call_required":
		results = []
		for call in a.json["tool_calls"]:
			made.append((call["id"], call["name"], call["input"]))
			results.append({"call_id": call["id"], **host(call)})
		a = ask(s, "POST", "/v1/exec/programmatic", {"continuation_token": a.json["continuation_token"], "tool_results": results}, AGENT)
	return a, made


def good(value):
	return {"result": value, "is_error": False}


@case("LibreChat: programs that call tools of the host")
def programmatic(t):
	with serve(t, "librechat") as s:
		a, made = rounds(s, "w = await get_weather(city='Köln')\nprint('it is', w['degrees'])\nprint(await _2nd_tool(n=w['degrees']))\nprint(await import_tool())",
			lambda call: good({"degrees": 21} if call["name"] == "get-weather" else [None, True]))
		t.equal(answer(a, 200, {"status": "completed", "session_id": ANY, "stdout": "it is 21\n[None, True]\n[None, True]\n", "stderr": ""}), None, "one after the other", a)
		t.equal(made, [("call_001", "get-weather", {"city": "Köln"}), ("call_002", "2nd tool", {"n": 21}), ("call_003", "import", {})], "what the host is asked")
		a, made = rounds(s, "import asyncio\nprint(await asyncio.gather(*[get_weather(city=c) for c in 'abc']))", lambda call: good(call["input"]["city"]))
		t.equal((a.json["stdout"], len(made)), ("['a', 'b', 'c']\n", 3), "side by side", a)
		a, _ = rounds(s, "try:\n    await get_weather()\nexcept Exception as e:\n    print('no:', e)", lambda call: {"result": None, "is_error": True, "error_message": "broken"})
		t.equal(a.json["stdout"], "no: broken\n", "a tool that fails", a)
		a, made = rounds(s, "open('out.txt', 'w').write('x'); print(1)", lambda call: good(None))
		t.equal((a.json["status"], made, [f["name"] for f in a.json["files"]]), ("completed", [], ["out.txt"]), "without a call, with a file", a)
		a, made = rounds(s, "a, b = await asyncio.gather(get_weather(city='x'), get_weather(city='y'))\nprint(json.dumps([a, b]))", lambda call: good(call["input"]["city"]))
		t.equal((a.json["stdout"], len(made)), ('["x", "y"]\n', 2), "asyncio and json are there", a)
		a, made = rounds(s, "async def main():\n    print(await asyncio.gather(get_weather(city='x'), get_weather(city='y')))\n    print(await get_weather(city='z'))\nasyncio.run(main())", lambda call: good(call["input"]["city"]))
		t.equal((a.json.get("stdout"), len(made)), ("['x', 'y']\nz\n", 3), "a loop of its own", a)
		a, _ = rounds(s, "w = await get_weather()\nprint(w)\nif w:\n    return\nprint('never')", lambda call: good("w"))
		t.equal((a.json["status"], a.json["stdout"]), ("completed", "w\n"), "it may return", a)
		a, _ = rounds(s, "1 / 0", lambda call: good(None))
		t.equal(answer(a, 200, {"status": "error", "error": "Sandbox exited with code 1", "stderr": like("ZeroDivisionError")}), None, "an exception", a)
		a, _ = rounds(s, "import time; time.sleep(20)", lambda call: good(None), timeout=300)
		t.equal(answer(a, 200, {"status": "error", "error": "Time limit exceeded"}), None, "time is over", a)
		a, _ = rounds(s, "import os\nos.system('rm -rf /')", lambda call: good(None))
		t.equal(answer(a, 200, {"status": "error", "stderr": like("sh-delete-tree|hidden")}), None, "the inspection reads it", a)
		up = upload(s, ("in.txt", b"data"))
		a, made = rounds(s, "print(open('/mnt/data/in.txt').read(), await get_weather())", lambda call: good("w"), files=[ref(up)])
		t.equal((a.json["stdout"], len(made)), ("data w\n", 1), "files in each round", a)
		check(t, [
			("no tools", {"code": "1", "tools": []}, 400, {"error": like("tools")}),
			("no such thing to go on with", {"continuation_token": "a" * 16, "tool_results": []}, 400, {"error": ANY}),
			("nothing to go on with", {"continuation_token": 5}, 400, {"error": ANY}),
			("a tool without a name", {"code": "1", "tools": [{}]}, 400, {"error": ANY}),
			("another language", {"code": "1", "tools": TOOLS, "lang": "js"}, 200, {"status": "error"}),
			("a list", [], 400, {"error": ANY}),
		], lambda body, status, want: answer(ask(s, "POST", "/v1/exec/programmatic", body), status, want))
		t.equal(answer(ask(s, "POST", "/v1/exec/programmatic/cancel", {"request_id": "x"}), 200), None, "to cancel")


HEAD = "Traceback (most recent call last):\n"
MAIN = '  File "<program>", line {}, in <module>\n    {}\n'
TRACEBACKS = [
	("an exception", "x = 1\nraise ValueError('no')", HEAD + MAIN.format(2, "raise ValueError('no')") + "ValueError: no\n"),
	("in a function", "def f():\n    raise KeyError(1)\n\nf()", HEAD + MAIN.format(4, "f()") + '  File "<program>", line 2, in f\n    raise KeyError(1)\nKeyError: 1\n'),
	("after a call", "w = await get_weather()\nraise ValueError(w)", HEAD + MAIN.format(2, "raise ValueError(w)") + "ValueError: w\n"),
	("in a task", "import asyncio\nasync def g():\n    await get_weather()\n    raise ValueError(3)\nawait g()", HEAD + MAIN.format(5, "await g()") + '  File "<program>", line 4, in g\n    raise ValueError(3)\nValueError: 3\n'),
	("with a cause", "try:\n    raise KeyError(1)\nexcept KeyError as e:\n    raise ValueError(2) from e", HEAD + MAIN.format(2, "raise KeyError(1)") + "KeyError: 1\n\nThe above exception was the direct cause of the following exception:\n\n" + HEAD + MAIN.format(4, "raise ValueError(2) from e") + "ValueError: 2\n"),
	("of a program that returns", "w = await get_weather()\nif w:\n    raise ValueError(w)\nreturn", HEAD + MAIN.format(3, "raise ValueError(w)") + "ValueError: w\n"),
	("what is no Python", "x = 1\nprint(1", '  File "<program>", line 2\n    print(1\n         ^\nSyntaxError: \'(\' was never closed\n'),
	("a tool that fails", "\nawait import_tool()", HEAD + MAIN.format(2, "await import_tool()") + "RuntimeError: broken\n"),
]


def without_marks(text):
	"""A traceback without the lines that point at columns, which not every Python has."""
	return re.sub(r"(?m)^    [ ~]*[\^]+[~^]*\n", "", text) if text.startswith(HEAD) else text


@case("LibreChat: tracebacks of programs that call tools are the program's")
def tracebacks(t):
	def fails(code, want):
		a, _ = rounds(s, code, lambda call: good("w") if call["name"] != "import" else {"is_error": True, "error_message": "broken"})
		have = without_marks(a.json["stderr"])
		return answer(a, 200, {"status": "error", "error": "Sandbox exited with code 1"}) or (None if have == want else have)

	with serve(t, "librechat") as s:
		check(t, TRACEBACKS, fails)


BASH = [
	("no call", "echo hi", "hi\n", 0),
	("a call", """w=$(get_weather '{"city": "Köln"}'); echo "it is $w" """, 'it is {"city":"Köln"}\n', 1),
	("one that writes itself", """get_weather '{"city": "it'"'"'s $HOME \\"q\\""}' | python3 -c 'import json; print(json.load(open(0))["city"])'""", 'it\'s $HOME "q"\n', 1),
	("a text is as it is", "_2nd_tool '{}'", "a 'text'\n", 1),
	("without input", "import; for_tool", "{}\n{}\n", 2),
	("one after the other", """for c in a b c; do get_weather "{\\"city\\": \\"$c\\"}"; done""", '{"city":"a"}\n{"city":"b"}\n{"city":"c"}\n', 3),
	("two alike", """echo "$(get_weather '{}')$(get_weather '{}')" """, "{}{}\n", 2),
	("side by side", """{ a=$(get_weather '{"city": "a"}'); echo "$a" >/mnt/data/a; } &\n{ b=$(get_weather '{"city": "b"}'); echo "$b" >b; } &\nwait\ncat a b""", '{"city":"a"}\n{"city":"b"}\n', 2),
	("the result decides", """if [ "$(get_weather '{}')" = '{}' ]; then get_weather '{"yes": 1}'; else get_weather '{"no": 1}'; fi""", '{"yes":1}\n', 2),
	("its standard input is the program's", "printf 'a\\nb\\n' | while read -r x; do get_weather '{}'; echo $x; done", "{}\na\n{}\nb\n", 2),
]


@case("LibreChat: programs of Bash that call tools of the host")
def programmatic_bash(t):
	tools = [{"name": "get-weather"}, {"name": "2nd.tool"}, {"name": "import"}, {"name": "for"}]

	def play(code, stdout, calls):
		a, made = rounds(s, f": &\nwait \"$!\"\n{code}", lambda call: good("a 'text'" if call["name"] == "2nd.tool" else call["input"]), lang="bash", tools=tools)
		return answer(a, 200, {"status": "completed", "session_id": ANY, "stdout": stdout, "stderr": ""}) or (None if len(made) == calls else f"{made}")

	with serve(t, "librechat") as s:
		check(t, BASH, play)
		a, _ = rounds(s, "if x=$(get_weather '{}'); then echo yes; else echo \"no $?\"; fi", lambda call: {"result": None, "is_error": True, "error_message": "broken"}, lang="bash", tools=tools)
		t.equal((a.json["stdout"], a.json["stderr"]), ("no 1\n", "broken\n"), "a tool that fails", a)
		a, made = rounds(s, "get_weather 'no JSON'", lambda call: good("w"), lang="bash", tools=tools)
		t.equal((a.json["stdout"], made), ("w\n", [("call_001", "get-weather", "no JSON")]), "input that is no object is a text", a)
		a, _ = rounds(s, "raw=$(get_weather '{}'); printf '%s' \"$raw\" > out.json; exit 4", lambda call: good("w"), lang="bash", tools=tools)
		t.equal(answer(a, 200, {"status": "error", "error": "Sandbox exited with code 4"}), None, "an exit code", a)
		a, _ = rounds(s, "raw=$(get_weather '{}'); printf '%s' \"$raw\" > out.json", lambda call: good("w"), lang="bash", tools=tools)
		t.equal([f["name"] for f in a.json["files"]], ["out.json"], "a file, and none of the calls'", a)
		a, _ = rounds(s, "rm -rf /", lambda call: good(None), lang="bash", tools=tools)
		t.equal(answer(a, 200, {"status": "error", "stderr": like("sh-delete-tree")}), None, "the inspection reads it", a)
