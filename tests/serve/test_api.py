# SPDX-License-Identifier: Apache-2.0
"""What the service does for those who ask properly."""
import base64
import hashlib
import io
import json
import re
import tarfile
import urllib.parse

from client import API, Raw, Server, job_request, marked, sleeper, wait_until
from harness import Host, case

GUARD = {"BRIG_INSPECTION": "guard"}
KNOWLEDGE = ["/v1/languages", "/v1/environments", "/v1/policy", "/v1/policy?trust=untrusted", "/v1/capabilities", "/v1/rules", "/v1/history", "/v1/statistics",
	     "/v1/queue", "/v1/cells", "/v1/whoami", "/v1/executions", "/v1/executions?state=running&limit=5", "/healthz", "/readyz", "/metrics"]


@case("every question is answered as described, and the description is the one of the tree")
def questions(t):
	with Server(t) as s, s.client() as c:
		for target in KNOWLEDGE:
			c.ask("GET", target, status=200)
		t.equal(c.ask("GET", "/openapi.json", status=200).json, API, "the description")
		t.equal(c.ask("GET", "/healthz").json, {"status": "ok"}, "health")
		t.check(any(row["name"] == "python" for row in c.ask("GET", "/v1/languages").json["languages"]), "python is a language")
		t.equal(c.ask("GET", "/v1/policy?trust=untrusted").json["trust"], "untrusted", "the policy's trust")
		t.equal(c.ask("GET", "/v1/whoami").json["admin"], True, "without tokens everybody is an admin")
		a = c.ask("GET", "/")
		t.check(a.status == 200 and a.header("content-type").startswith("text/html") and "default-src" in a.header("content-security-policy"), "the console", a)


@case("a program: its result, its request id, its place in the history")
def program(t):
	with Server(t) as s, s.client() as c:
		for target in ("/v1/history/", "/v1/executions/"):	# before anything was recorded
			t.check("/" not in c.ask("GET", target + "a" * 16, status=404).message, "no place of the host is named")
		a = c.ask("POST", "/v1/executions", {"language": "python", "code": "print(6 * 7)"}, {"X-Request-Id": "my.id-1"}, 200)
		r = a.json
		t.equal([r["verdict"], r["exit_code"], r["stdout"], r["language"]], ["ok", 0, "42\n", "python"], "the result", a)
		t.equal(a.header("x-request-id"), "my.id-1", "the request's id")
		t.check(c.ask("GET", "/healthz", headers={"X-Request-Id": "a b<c>"}).header("x-request-id") != "a b<c>", "an id that is not sane is not repeated")
		t.equal(c.ask("GET", f"/v1/executions/{r['id']}", status=200).json["result"], r, "asked for again")
		rows = c.ask("GET", "/v1/history?verdict=ok&language=python&limit=1", status=200).json["executions"]
		t.equal([row["id"] for row in rows], [r["id"]], "the history")
		t.equal(c.ask("GET", f"/v1/history/{r['id']}", status=200).json["code"]["text"], "print(6 * 7)", "its entry")
		c.ask("GET", "/v1/history/" + "a" * 16, status=404)
		c.ask("GET", "/v1/executions/" + "a" * 16, status=404)
		t.equal(c.ask("GET", "/v1/statistics").json["by"]["verdict"].get("ok"), 1, "statistics")


# Requests whose results must be those of the command line: name, the job, words of `brig run`.
SAME = [
	("output", {"language": "python", "code": "print('é', 6 * 7)"}, ["--lang", "python", "-c", "print('é', 6 * 7)"]),
	("error", {"language": "shell", "code": "echo no >&2; exit 3"}, ["--lang", "shell", "-c", "echo no >&2; exit 3"]),
	("input", {"language": "python", "code": "import sys, os; print(sys.stdin.read(), sys.argv[1:], os.environ['K'])", "stdin": "in", "args": ["-a", "b c"], "env": {"K": "v"}},
	 ["--lang", "python", "--env", "K=v", "--stdin", "@in", "-c", "import sys, os; print(sys.stdin.read(), sys.argv[1:], os.environ['K'])", "--", "-a", "b c"]),
	("bytes", {"language": "python", "code": "import os; os.write(1, b'\\xff\\0')"}, ["--lang", "python", "-c", "import os; os.write(1, b'\\xff\\0')"]),
	("limits", {"language": "shell", "code": "ulimit -n", "trust": "untrusted", "options": {"timeout": 7, "memory": "100m"}},
	 ["--lang", "shell", "--trust", "untrusted", "--timeout", "7", "--memory", "100m", "-c", "ulimit -n"]),
	("files", {"language": "python", "code": "open('b.txt', 'w').write(open('d/a.txt').read() * 2)", "files": {"d/a.txt": "hello"}, "artifacts": ["*.txt"], "inline_artifacts": "1m"},
	 ["--lang", "python", "--files", "@tar", "--artifact", "*.txt", "--inline-artifacts", "1m", "-c", "open('b.txt', 'w').write(open('d/a.txt').read() * 2)"]),
	("compiled", {"language": "c", "code": "int main( { }\n"}, ["--lang", "c", "-c", "int main( { }\n"]),
	("refused", {"language": "python", "code": "1", "options": {"memory": "900000g"}}, ["--lang", "python", "--memory", "900000g", "-c", "1"]),
	("blocked", {"language": "python", "code": "import os\nos.system('rm -rf /')"}, ["--lang", "python", "-c", "import os\nos.system('rm -rf /')"]),
]
# What no two runs share: moments, amounts, names, and whether a cell waited.
OWN = ("id", "usage", "timing", "audit", "samples", "warm", "forked", "cache")


def comparable(result):
	kept = {k: v for k, v in result.items() if k not in OWN}
	kept["evidence"] = sorted((row["check"], row["declared"], row["kept"]) for row in result["evidence"])
	return json.loads(json.dumps(kept).replace(result["id"] or "none", "ID"))


def tar_of(files):
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
		for name, text in files.items():
			info = tarfile.TarInfo(name)
			info.size = len(text)
			archive.addfile(info, io.BytesIO(text.encode()))
	return out.getvalue()


@case("a result over HTTP is, member by member, what brig run gives for the same request")
def same_as_run(t):
	places = {"@in": t.path("in", "in"), "@tar": t.path("files.tar", tar_of({"d/a.txt": "hello"}))}
	with Server(t, env=GUARD) as s:
		for name, job, words in SAME:
			there = s.result(**job)
			t.equal("diff" in there, "files" in job, f"a diff of '{name}'")	# which the service asks for, and the command does not
			there.pop("diff", None)
			here = t.cell(*[places.get(w, w) for w in words], env=GUARD).json
			a, b = comparable(there), comparable(here)
			for member in sorted(set(a) | set(b)):
				t.equal(a.get(member), b.get(member), f"{member} of '{name}'")


# What ends with each verdict; needs: a protection without which it cannot.
VERDICTS = [
	("ok", "", {"language": "python", "code": "pass"}),
	("error", "", {"language": "python", "code": "raise SystemExit(7)"}),
	("crash", "", {"language": "shell", "code": "kill -SEGV $$"}),
	("timeout", "", {"language": "shell", "code": "sleep 100", "options": {"execution_timeout_ms": 200}}),
	("cpu_limit", "cpu_time", {"language": "python", "code": "while True: pass", "options": {"cpu_time_ms": 200, "timeout": 20}}),
	("memory_limit", "memory_limit", {"language": "python", "code": "keep = []\nwhile True: keep.append(bytearray(1 << 20))", "options": {"memory": "64m"}}),
	("output_limit", "", {"language": "python", "code": "while True: print('x' * 1000)", "options": {"output_limit": "64k"}}),
	("disk_limit", "", {"language": "python", "code": "f = open('x', 'wb')\nwhile True: f.write(b'x' * 65536)", "options": {"disk": "4m"}}),
	("pids_limit", "pids_limit", {"language": "python", "code": "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(9)", "options": {"pids": 8, "timeout": 20}}),
	("blocked", "", {"language": "python", "code": "import os\nos.system('rm -rf /')"}),
	("refused", "", {"language": "python", "code": "1", "options": {"memory": "900000g"}}),
]


@case("every verdict is a good answer")
def verdicts(t):
	with Server(t, env=GUARD) as s, s.client() as c:
		for verdict, need, job in VERDICTS:
			if need in Host.degraded:
				continue
			r = c.ask("POST", "/v1/executions", job, status=200).json
			t.equal(r["verdict"], verdict, f"the verdict of {job}", r)
			kept = c.ask("GET", f"/v1/executions/{r['id']}").json
			t.equal([kept["state"], kept["result"]["verdict"]], ["finished", verdict], "its record")


@case("asynchronous: an id at once, the result later, events from the first on whenever one comes")
def asynchronous(t):
	with Server(t) as s, s.client() as c:
		a = s.run(status=202, **{**sleeper(), "async": True})
		ident = a.json["id"]
		t.equal(a.json["links"]["self"], f"/v1/executions/{ident}", "links")
		wait_until("it runs", lambda: s.state(ident) == "running" and marked())
		rows = c.ask("GET", "/v1/executions?state=running", status=200).json["executions"]
		t.equal([[row["id"], row["kind"], row["verdict"]] for row in rows], [[ident, "command", None]], "the list")
		with s.client() as watcher:
			stream = watcher.stream("GET", a.json["links"]["events"])
			t.equal(stream.until("stdout")["data"], "up\n", "its output while it runs")
			c.ask("DELETE", f"/v1/executions/{ident}", status=202)
			t.equal(stream.until("verdict")["verdict"], "cancelled", "the end of the stream")
			t.equal(list(stream), [], "nothing follows")
		d = s.ended(ident)
		t.equal([d["state"], d["result"]["verdict"]], ["finished", "cancelled"], "the end", d)
		with s.client() as late:
			again = late.stream("GET", f"/v1/executions/{ident}/events")
			t.equal([e for e in map(lambda x: x[0], again) if e != "sample"], [e for e in stream.names() if e != "sample"], "the events of one that is over")
		c.ask("DELETE", f"/v1/executions/{ident}", status=200)
		wait_until("its cell is gone", lambda: not marked())


@case("a stream: findings, start, output as it comes and its bytes, samples, the verdict last")
def stream(t):
	code = "import sys, time\nprint('ü', flush=True)\nsys.stderr.write('e')\nsys.stderr.flush()\nsys.stdout.buffer.write(b'\\xff')\nsys.stdout.flush()\ntime.sleep(0.3)\neval('1')\n"
	with Server(t, env={"BRIG_INSPECTION": "report"}) as s, s.client() as c:
		st = c.stream("POST", "/v1/executions", {"language": "python", "code": code, "options": {"monitoring_interval_ms": 100}})
		names = [event for event, _ in st]
		r = st.seen[-1][1]["result"]
		t.equal([names[-1], r["verdict"], st.seen[-1][1]["id"]], ["verdict", "ok", r["id"]], "the end", names)
		for name in ("started", "stdout", "stderr", "sample"):
			t.check(name in names, f"there is a {name}", names)
		t.equal(names.count("finding"), len(r["findings"]), "findings")
		t.check(names.index("started") < names.index("stdout"), "it starts before it speaks", names)
		data = b"".join(base64.b64decode(d["data"]) if d.get("encoding") == "base64" else d["data"].encode() for e, d in st.seen if e == "stdout")
		t.equal(data, "ü\n".encode() + b"\xff", "the bytes of its output")
		t.equal(c.ask("GET", "/healthz").status, 200, "the connection serves on")


@case("what waits has a position, can be cancelled, and never runs then")
def waiting(t):
	with Server(t, "--jobs", 1) as s, s.client() as c:
		first = s.start(**sleeper())
		second, third = (s.start(language="python", code="print('ran')") for _ in range(2))
		wait_until("the first runs", lambda: s.state(first) == "running")
		docs = [c.ask("GET", f"/v1/executions/{i}").json for i in (second, third)]
		t.equal([d["state"] for d in docs], ["queued", "queued"], "states")
		t.check(docs[0]["position"] < docs[1]["position"], "positions", docs)
		q = c.ask("GET", "/v1/queue").json
		t.equal([q["running"], q["waiting"], q["jobs"]], [1, 2, 1], "the queue", q)
		c.ask("DELETE", f"/v1/executions/{second}", status=202)
		t.equal(s.ended(second)["result"]["verdict"], "cancelled", "the second")
		c.ask("DELETE", f"/v1/executions/{first}", status=202)
		t.equal([s.ended(first)["result"]["verdict"], s.ended(third)["result"]["stdout"]], ["cancelled", "ran\n"], "the others")
		kept = c.ask("GET", f"/v1/executions/{second}").json["result"]
		t.equal([kept["stdout"], kept["evidence"]], ["", []], "nothing of it ran")


def gone(t, s, hang_up):
	"""A client that leaves: its cell goes, and it is recorded."""
	wait_until("the program runs", marked)
	hang_up()
	wait_until("its cell is gone", lambda: not marked())
	row = wait_until("it is recorded", lambda: s.get("/v1/history?limit=1").json["executions"])[0]
	t.equal(row["verdict"], "cancelled", "the verdict", row)


@case("a client that hangs up cancels what it waits for: plain, streaming, half closed; others go on")
def disconnect(t):
	with Server(t, "--jobs", 2) as s:
		for lines, how in (((), "close"), (("Accept: text/event-stream",), "close"), ((), "half")):
			with Raw(s, job_request(sleeper(), *lines)) as r:
				gone(t, s, r.s.close if how == "close" else lambda: r.s.shutdown(1))
		t.equal(s.result(language="python", code="print(1)")["stdout"], "1\n", "the server goes on")


@case("a client that hangs up while its program waits: it never runs; what is asynchronous stays")
def disconnect_waiting(t):
	with Server(t, "--jobs", 1) as s, s.client() as c:
		first = s.start(**sleeper())
		wait_until("it runs", lambda: s.state(first) == "running")
		with Raw(s, job_request({"language": "shell", "code": "echo no"})):
			wait_until("it waits", lambda: c.ask("GET", "/v1/queue").json["waiting"] == 1)
		wait_until("it waits no more", lambda: c.ask("GET", "/v1/queue").json["waiting"] == 0)
		kept = s.start(language="shell", code="echo yes")
		c.ask("DELETE", f"/v1/executions/{first}", status=202)
		t.equal(s.ended(kept)["result"]["stdout"], "yes\n", "an asynchronous one")
		t.equal([r["verdict"] for r in c.ask("GET", "/v1/history?language=shell&limit=50").json["executions"] if r["verdict"] == "ok"], ["ok"], "what ran")


@case("an idempotency key: the same answer for the same body, 409 for another")
def idempotency(t):
	with Server(t) as s, s.client() as c:
		job, key = {"language": "python", "code": "import random; print(random.random())"}, {"Idempotency-Key": "k-1"}
		a = c.ask("POST", "/v1/executions", job, key, 200).json
		t.equal(c.ask("POST", "/v1/executions", job, key, 200).json, a, "the second time")
		t.check(c.ask("POST", "/v1/executions", job, status=200).json["id"] != a["id"], "without the key it is another one")
		c.ask("POST", "/v1/executions", {**job, "stdin": "x"}, key, 409)
		c.ask("POST", "/v1/executions", job, {"Idempotency-Key": "k" * 2000}, 400)
		late = {**sleeper(), "async": True}
		one, two = (c.ask("POST", "/v1/executions", late, {"Idempotency-Key": "k-2"}, 202).json["id"] for _ in range(2))
		t.equal(one, two, "one that still runs")
		c.ask("DELETE", f"/v1/executions/{one}", status=202)
		s.ended(one)


@case("input, arguments, variables and files go in; artifacts come out byte by byte, and nothing else does")
def files(t):
	code = ("import sys, os\nos.makedirs('out')\nprint(sys.stdin.buffer.read(), sys.argv[1:], os.environ['K'], open('d/é.bin', 'rb').read())\n"
		"open('out/x.bin', 'wb').write(bytes(range(256)) * 999)\nopen('out/ü ?.svg', 'w').write('<svg/>')\nopen('hidden', 'w').write('h')\n")
	job = {"language": "python", "code": {"base64": base64.b64encode(code.encode()).decode()}, "stdin": {"base64": "/wA="}, "args": ["a b", "--x"],
	       "env": {"K": "v"}, "files": {"d/é.bin": {"base64": "AAH/"}}, "artifacts": ["out/*"]}
	with Server(t) as s, s.client() as c:
		a = c.ask("POST", "/v1/executions", job, status=200)
		r = a.json
		t.equal([r["verdict"], r["stdout"]], ["ok", "b'\\xff\\x00' ['a b', '--x'] v b'\\x00\\x01\\xff'\n"], "what went in", a)
		t.equal(sorted(x["path"] for x in r["artifacts"]), ["out/x.bin", "out/ü ?.svg"], "artifacts")
		for row in r["artifacts"]:
			b = c.ask("GET", f"/v1/executions/{r['id']}/artifacts/{urllib.parse.quote(row['path'])}", status=200)
			t.equal([len(b.body), hashlib.sha256(b.body).hexdigest()], [row["size"], row["sha256"]], row["path"])
			t.check("attachment" in b.header("content-disposition") and b.header("x-content-type-options") == "nosniff" and "html" not in b.header("content-type"), "how it is given", b)
		for path in ("hidden", "out", "out/no", "out/../hidden", "..%2f..%2fetc/passwd", "%2e%2e/x", "/etc/passwd", "out/x.bin%00", "out//x.bin"):
			a = c.ask("GET", f"/v1/executions/{r['id']}/artifacts/{path}")
			t.check(a.status in (400, 404), f"{path} is not there", a)


@case("multipart: the job, its code, its input and its files as parts")
def multipart(t):
	def part(name, data, file_name=None):
		head = f'Content-Disposition: form-data; name="{name}"' + (f'; filename="{file_name}"' if file_name else "")
		return b"--xyz\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n"
	blob, end, code = bytes(range(256)) * 4096, b"--xyz--\r\n", "import hashlib, sys\nprint(hashlib.sha256(open('d/é.bin','rb').read()).hexdigest(), open('b').read(), sys.stdin.read())"
	job, program = part("job", b'{"language": "python"}'), part("code", code.encode())
	body = job + program + part("stdin", b"in") + part("file", blob, "d/é.bin") + part("file", b"--xyz", "b") + end
	kind = {"Content-Type": "multipart/form-data; boundary=xyz"}
	with Server(t) as s, s.client() as c:
		r = c.ask("POST", "/v1/executions", body, kind, 200).json
		t.equal(r["stdout"], f"{hashlib.sha256(blob).hexdigest()} --xyz in\n", "its output", r["stderr"])
		for bad in (body[:-9], b"", end, part("job", b"{") + end, job + job + program + end, part("no", b"x") + end, job + program + part("file", b"x", "../x") + end, program + end,
			    job + program + part("file", b"x") + end, job + program + part("file", b"x", "a") * 2 + end,
			    part("job", b'{"code": "1", "language": "python", "files": {"a": "b"}}') + part("file", b"x", "c") + end):
			a = c.ask("POST", "/v1/executions", bad, kind)
			t.check(a.status in (400, 422) or a.status == 200 and a.json["verdict"] == "refused", "it is refused", f"{bad[:80]} {a}")
		c.ask("POST", "/v1/executions", body, {"Content-Type": "multipart/form-data"}, 400)


@case("commands and tests have paths of their own")
def kinds(t):
	with Server(t) as s, s.client() as c:
		r = c.ask("POST", "/v1/commands", {"args": ["echo", "a  b"]}, status=200).json
		t.equal([r["verdict"], r["stdout"]], ["ok", "a  b\n"], "a command")
		t.equal(c.ask("POST", "/v1/commands", {"code": "echo a | tr a b"}, status=200).json["stdout"], "b\n", "a line for the shell")
		t.equal(c.ask("POST", "/v1/executions", {"kind": "shell", "code": "echo $((1 + 1))"}, status=200).json["stdout"], "2\n", "the same by its kind")
		text = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): self.assertEqual(1, 2)\n"
		r = c.ask("POST", "/v1/tests", {"files": {"test_x.py": text}}, status=200).json
		t.equal([r["tests"]["passed"], r["tests"]["failed"], r["verdict"]], [1, 1, "error"], "tests", r)


@case("an inspection says what a run would be told")
def inspections(t):
	with Server(t, env=GUARD) as s, s.client() as c:
		for ask, kind, blocked in (({"code": "import os\nos.system('rm -rf /')", "language": "python"}, "code", True), ({"code": "print(1)", "file_name": "a.py"}, "code", False),
					   ({"command": "rm -rf /"}, "command", True), ({"command": "ls"}, "command", False), ({"path": "/etc/shadow"}, "path", True),
					   ({"path": "a.txt"}, "path", False)):
			d = c.ask("POST", "/v1/inspections", ask, status=200).json
			t.equal([d["kind"], d["blocked"]], [kind, blocked], f"what is found in {ask}", d)
		for bad in ({}, {"code": "1", "command": "x"}, {"code": 1}, {"cod": "x"}, {"command": "ls", "level": "lax"}):
			a = c.ask("POST", "/v1/inspections", bad)
			t.check(a.status in (400, 422), f"{bad} is refused", a)


@case("a receipt is asked for, given, and holds; a changed one does not")
def receipts(t):
	with Server(t) as s, s.client() as c:
		r = c.ask("POST", "/v1/executions", {"language": "python", "code": "print(1)", "receipt": True}, status=200).json
		receipt = r["receipt"]
		t.equal(receipt["statement"]["request"]["id"], r["id"], "whose it is")
		for form in (receipt, json.dumps(receipt)):
			t.equal(c.ask("POST", "/v1/receipts/verify", {"receipt": form}, status=200).json["ok"], True, "it holds")
		t.equal(c.ask("POST", "/v1/receipts/verify", receipt, status=200).json["ok"], True, "sent as it is")
		receipt["statement"]["outcome"] = {"verdict": "ok"}
		for form in ({"receipt": receipt}, receipt):
			t.equal(c.ask("POST", "/v1/receipts/verify", form, status=200).json["ok"], False, "a changed one")
		c.ask("POST", "/v1/receipts/verify", {}, status=400)
		t.check("receipt" not in c.ask("POST", "/v1/executions", {"language": "python", "code": "print(1)"}).json, "nobody asked")


# What cannot be a request: the body, the status, words of the message.
BAD = [
	(b"", 400, ""), (b"{", 400, "column 1"), (b"{\n\n1", 400, "line 3"), (b"[]", 400, "object"), (b"null", 400, "expected"), (b'{"code": "1"} x', 400, ""), (b'{"code": "\xff"}', 400, "UTF-8"),
	(b'{"code": "\xc3"}', 400, "UTF-8"), (b'{"code": "\\ud800"}', 400, ""), (b"[" * 100000, 400, ""), (b'{"options": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, 400, ""),
	(b'{"code": "1", "code": "2"}', 400, "code"), (b'{"cod": "1"}', 400, "'code'"), (b'{"language": 1, "code": "1"}', 400, "language"),
	(b'{"language": "python", "code": "1", "args": ["a", 1]}', 400, "args"), (b'{"language": "python", "code": {"base64": "!"}}', 400, "base64"),
	(b'{"language": "python", "code": "1", "priority": 10}', 400, "priority"), (b'{"language": "python", "code": "1", "priority": "high"}', 400, "priority"),
	(b'{"language": "python", "code": "1", "async": "yes"}', 400, "async"), (b'{"language": "python", "code": "1", "kind": "magic"}', 400, "kind"),
	(b'{"language": "python", "code": "1", "expected": "1"}', 400, "expected"), (b'{"language": "py\\u0000thon", "code": "1"}', 400, ""),
	(b'{"language": "python", "code": 1e999}', 400, ""), (b'{"language": "python", "code": "1", "env": {"A": 1}}', 400, "env"),
]


@case("what is no request is told where and why, and nothing runs")
def bad_requests(t):
	with Server(t) as s, s.client() as c:
		for body, status, word in BAD:
			a = c.ask("POST", "/v1/executions", body, {"Content-Type": "application/json"})
			t.check(a.status == status and word.lower() in a.message.lower(), f"{body[:90]} is answered {status} with '{word}'", a)
		for target in ("/v1/executions?limit=x", "/v1/executions?limit=-1", "/v1/executions?state=no", "/v1/executions?nope=1", "/v1/history?since=tomorrowish", "/v1/policy?trust=no"):
			a = c.ask("GET", target)
			t.check(a.status in (400, 422), f"{target} is refused", a)
		c.ask("POST", "/v1/executions", b"x=1", {"Content-Type": "application/x-www-form-urlencoded"}, 415)
		c.ask("POST", "/v1/executions", b'{"code": "1"}', {"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415)
		a = c.ask("POST", "/v1/executions", {"language": "klingon", "code": "x"})
		t.check(a.status == 422 or a.status == 200 and a.json["verdict"] == "refused", "a language that nobody speaks", a)
		c.ask("GET", "/v1/nothing", status=404)
		a = c.ask("PUT", "/v1/executions", {}, status=405)
		t.equal(sorted(re.findall("[A-Z]+", a.header("allow"))), ["GET", "HEAD", "POST"], "Allow")
		t.equal(c.ask("GET", "/v1/history").json["total"] <= 1, True, "nothing else ran")


@case("numbers for Prometheus are well formed, and count what was done")
def metrics(t):
	with Server(t) as s, s.client() as c:
		for _ in range(3):
			c.ask("POST", "/v1/executions", {"language": "shell", "code": "true"}, status=200)
		a = c.ask("GET", "/metrics", status=200)
		t.check(a.header("content-type").startswith("text/plain; version=0.0.4"), "its type", a.header("content-type"))
		seen, declared = {}, set()
		for line in a.body.decode().splitlines():
			if line.startswith("# TYPE "):
				name = line.split()[2]
				t.check(name not in declared, f"{name} is declared once")
				declared.add(name)
			elif line and not line.startswith("#"):
				m = re.fullmatch(r'([a-zA-Z_:][\w:]*)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (-?[0-9.e+-]+|\+Inf|NaN)', line)
				t.check(m, "a line that Prometheus reads", line)
				seen[m.group(1) + (m.group(2) or "")] = float(m.group(3))
				t.check(re.sub("_(bucket|sum|count)$", "", m.group(1)) in declared or m.group(1) in declared, f"{m.group(1)} is declared")
		t.equal(sum(v for k, v in seen.items() if k.startswith("brig_executions_total") and 'verdict="ok"' in k), 3.0, "executions")


@case("priorities: of one's own, the highest is the next")
def priorities(t):
	with Server(t, "--jobs", 1) as s, s.client() as c:
		first = s.start(**sleeper())
		wait_until("it runs", lambda: s.state(first) == "running")
		ids = {p: s.start(language="shell", code="true", priority=p) for p in (1, 5, 9, 3)}
		places = {p: c.ask("GET", f"/v1/executions/{i}").json["position"] for p, i in ids.items()}
		t.equal(sorted(places, key=places.get), [9, 5, 3, 1], "the order in which they wait", places)
		c.ask("DELETE", f"/v1/executions/{first}", status=202)
		ended = {p: s.ended(i)["ended"] for p, i in ids.items()}
		t.equal(sorted(ended, key=ended.get), [9, 5, 3, 1], "the order in which they ran", ended)


@case("several connections at once, keep-alive, and one request after another on each")
def side_by_side(t):
	with Server(t, "--jobs", 2) as s:
		clients = [s.client() for _ in range(4)]
		try:
			for _ in range(3):
				for i, c in enumerate(clients):
					c.c.request("POST", "/v1/executions", json.dumps({"language": "shell", "code": f"echo {i}"}), {"Content-Type": "application/json"})
				for i, c in enumerate(clients):
					r = c.c.getresponse()
					t.equal([r.status, json.loads(r.read())["stdout"]], [200, f"{i}\n"], "each its own")
		finally:
			for c in clients:
				c.c.close()
