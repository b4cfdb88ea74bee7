# SPDX-License-Identifier: Apache-2.0
"""Who may ask for what."""
import json
import os
import re
import socket
import subprocess
import tempfile

import harness
from client import PATIENCE, Answer, Raw, Server, ask_unix, checked, read_quietly, request, sleeper, wait_until
from harness import Skipped, case

PROGRAM = {"language": "python", "code": "print(1)"}
OPEN = ("/healthz", "/readyz", "/openapi.json", "/")


@case("without a token, or with one that is nobody's, only what is open is answered", final="somebody without a token was served")
def nobody(t):
	with Server(t, auth=True) as s:
		good = s.token("good", "--admin")
		for token in (None, "brig_" + "a" * 32, good[:-1], good + "a", good.upper(), "", "x" * 5000):
			with s.client(token) as c:
				for target in ("/v1/whoami", "/v1/executions", "/v1/languages", "/v1/history", "/metrics", "/v1/cells", "/v1/queue"):
					a = c.ask("GET", target)
					t.check(a.status == 401 or token == "x" * 5000 and a.status in (400, 401, 431), f"{target} for {str(token)[:50]}", a)
				t.check(c.ask("POST", "/v1/executions", PROGRAM).status in (400, 401, 431), "a program")
		with s.client() as c:
			for target in OPEN:
				c.ask("GET", target, status=200)
			for headers in ({"Authorization": "Basic " + good}, {"Authorization": good}, {"Authorization": "Bearer"}, {"Authorization": f"Bearer {good} x"}, {"Cookie": f"token={good}"}):
				a = c.ask("GET", "/v1/whoami", headers=headers)
				t.check(a.status in (400, 401), f"{headers}", a)
			a = c.ask("GET", "/v1/whoami?token=" + good)
			t.check(a.status in (400, 401), "a token in the address", a)
			for headers in ({"Authorization": "Bearer " + good}, {"authorization": "bearer " + good}, {"X-API-Key": good}):
				t.equal(c.ask("GET", "/v1/whoami", headers=headers, status=200).json["name"], "good", f"{list(headers)}")
			t.equal(c.ask("GET", "/v1/history", headers={"X-API-Key": good}).json["total"], 0, "what ran")


@case("a token's end: revoked, expired; the server need not be told")
def ended_tokens(t):
	with Server(t, auth=True) as s:
		secret = s.token("short", "--expires", "1s")
		wait_until("it expires", lambda: s.get("/v1/whoami", secret).status == 401)
		secret = s.token("fleeting")
		t.equal(s.get("/v1/whoami", secret).status, 200, "a new one")
		ident = s.result(secret, **PROGRAM)["id"]
		p = t.brig("token", "revoke", "fleeting", "--state", t.state)
		t.equal([p.rc, s.get("/v1/whoami", secret).status, s.run(secret, None, **PROGRAM).status], [0, 401, 401], "revoked", p)
		other = s.token("fleeting")
		t.equal([s.get("/v1/whoami", secret).status, s.get("/v1/whoami", other).status], [401, 200], "the name goes on, the secret does not")
		t.check(ident, "it ran")


@case("the bounds of a token: trust, languages, memory; what is above them is refused by name", final="a request exceeded its token")
def bounds(t):
	with Server(t, auth=True) as s:
		low = s.token("low", "--max-trust", "untrusted", "--language", "python", "--memory", "256m")
		me = s.get("/v1/whoami", low, status=200).json
		t.equal([me["name"], me["max_trust"], me["admin"]], ["low", "untrusted", False], "whoami")
		r = s.result(low, **PROGRAM, options={"memory": "64m"})
		t.equal([r["verdict"], r["trust"]], ["ok", "untrusted"], "within them", r)
		for more in ({"trust": "trusted"}, {"trust": "unknown"}, {"language": "shell"}, {"options": {"memory": "300m"}},
			     {"options": {"memory_mb": 300}}, {"options": {"memory_mb": 300.5}}, {"options": {"memory_limit": "0.5 GiB"}}):
			a = s.run(low, 403, **{**PROGRAM, "options": {"memory": "64m"}, **more})	# however it is spelt
			t.check("low" in a.message, "it says whose bound", a)
		with s.client(low) as c:
			c.ask("POST", "/v1/commands", {"args": ["true"]}, status=403)
			c.ask("GET", "/v1/cells", status=403)


@case("a token that is no administrator's does not loosen how code is judged, nor what this host goes without", final="a request had more than it may")
def loosening(t):
	with Server(t, auth=True, env={"BRIG_INSPECTION": "guard"}) as s:
		plain, root = s.token("plain", "--max-trust", "unknown"), s.token("root", "--admin")
		for options in ({"inspection": "off"}, {"inspection": False}, {"inspection": "OFF"}, {"inspection": "no"}, {"inspect": "report"}, {"rules": "py-process=allow"}, {"rules": "py-process=block, py-network=note"},
				{"allow_degraded": "landlock"}, {"rootfs": "/"}):
			a = s.run(plain, 403, **PROGRAM, options=options)
			t.check("plain" in a.message, "it says whose bound", a)
		for options in ({"inspection": "strict"}, {"inspection": "guard"}, {"rules": "py-process=block"}):
			t.equal(s.result(plain, **PROGRAM, options=options)["verdict"], "ok", f"stricter is possible: {options}")
		t.equal(s.result(root, **PROGRAM, options={"inspection": "off"})["inspection"], "off", "an administrator may")


@case("what belongs to another token is not there: looked at, watched, fetched, cancelled, listed", final="somebody saw another's execution")
def foreign(t):
	with Server(t, auth=True) as s:
		ada, bob, root = s.token("ada-of-another"), s.token("bob"), s.token("root", "--admin")
		done = s.result(ada, language="python", code="open('x', 'w').write('secret')", artifacts=["x"])["id"]
		live = s.start(ada, **sleeper())
		with s.client(bob) as c:
			for ident in (done, live):
				for target in (f"/v1/executions/{ident}", f"/v1/executions/{ident}/events", f"/v1/executions/{ident}/artifacts/x", f"/v1/history/{ident}"):
					a = c.ask("GET", target, status=404)
					t.check("ada-of" not in a.message, "nothing is told", a)
				c.ask("DELETE", f"/v1/executions/{ident}", status=404)
			t.equal([c.ask("GET", "/v1/executions").json["executions"], c.ask("GET", "/v1/history").json["total"]], [[], 0], "lists")
			t.equal(c.ask("GET", f"/v1/history/{done[:4]}").status, 404, "a beginning of its id")
			a = c.ask("POST", "/v1/executions", PROGRAM, {"Idempotency-Key": "k"}, 200).json["id"]
		with s.client(ada) as c:
			t.check(c.ask("POST", "/v1/executions", PROGRAM, {"Idempotency-Key": "k"}, 200).json["id"] != a, "keys belong to tokens")
		t.equal(s.state(live, ada), "running", "it goes on")
		t.equal(s.get(f"/v1/executions/{done}/artifacts/x", ada, status=200).body, b"secret", "its own")
		with s.client(root) as c:
			t.equal({row["token"] for row in c.ask("GET", "/v1/executions", status=200).json["executions"]}, {"ada-of-another", "bob"}, "an admin sees all")
			t.equal(c.ask("GET", f"/v1/history/{done}", status=200).json["who"], "ada-of-another", "who asked")
			c.ask("DELETE", f"/v1/executions/{live}", status=202)
		s.ended(live, root)


@case("quotas: runs per minute are 429 with Retry-After, concurrent ones wait, the queue has an end")
def quotas(t):
	with Server(t, "--jobs", 2, "--queue", 2, auth=True) as s:
		few, one, many = s.token("few", "--runs-per-minute", 2), s.token("one", "--concurrent", 1), s.token("many")
		for _ in range(2):
			s.run(few, 200, **PROGRAM)
		a = s.run(few, 429, **PROGRAM)
		t.check("few" in a.message or "runs" in a.message, "it says why", a)
		ids = [s.start(one, **sleeper()) for _ in range(2)]
		wait_until("the first runs", lambda: s.state(ids[0], one) == "running")
		t.equal(s.state(ids[1], one), "queued", "one at a time")
		t.equal(s.run(many, 200, **PROGRAM).json["verdict"], "ok", "others are not held up")
		more = [s.start(many, **sleeper()) for _ in range(2)]
		wait_until("one runs", lambda: s.state(more[0], many) == "running")
		a = s.run(many, 503, **PROGRAM)
		t.check("queue" in a.message or "wait" in a.message, "it says why", a)
		for token, row in ((one, ids), (many, more)):
			for ident in reversed(row):
				with s.client(token) as c:
					c.ask("DELETE", f"/v1/executions/{ident}", status=202)
				t.equal(s.ended(ident, token)["result"]["verdict"], "cancelled", "cancelled")


@case("fair: a token with much to do delays another by one turn")
def fair(t):
	with Server(t, "--jobs", 1, auth=True) as s:
		ada, bob = s.token("ada"), s.token("bob")
		first = s.start(ada, **sleeper())
		wait_until("it runs", lambda: s.state(first, ada) == "running")
		rows = [s.start(ada, language="shell", code="true") for _ in range(5)]
		last = s.start(bob, language="shell", code="true")
		with s.client(ada) as c:
			c.ask("DELETE", f"/v1/executions/{first}", status=202)
		ended = sorted(s.ended(i, ada)["ended"] for i in rows)
		t.check(s.ended(last, bob)["ended"] <= ended[2], "the other's turn comes", f"{s.ended(last, bob)} {ended}")


# Host and Origin: lines, and the status.
PLACES = [
	(("Host: @HOST@",), 200), (("Host: localhost:@PORT@",), 200), (("Host: LocalHost:@PORT@",), 200), (("Host: evil.example",), 421), (("Host: evil.example:@PORT@",), 421),
	(("Host: 127.0.0.1.evil.example",), 421), (("Host: 10.0.0.1:@PORT@",), 421), (("Host: named.example:@PORT@",), 200), ((), 400), (("Host: @HOST@", "Host: @HOST@"), 400),
	(("Host: a b",), 400), (("Host: @HOST@", "Origin: http://@HOST@"), 200), (("Host: @HOST@", "Origin: http://evil.example"), 403), (("Host: @HOST@", "Origin: null"), 403),
	(("Host: @HOST@", "Origin: https://@HOST@"), 403), (("Host: @HOST@", "Origin: http://127.0.0.1:1"), 403),
]


@case("other names for this host and other pages in a browser are refused", final="a foreign Host or Origin was served")
def places(t):
	with Server(t, "--host", "named.example") as s:
		for lines, status in PLACES:
			head = "\r\n".join(["GET /v1/whoami HTTP/1.1", *lines]).replace("@PORT@", str(s.port))
			with Raw(s, head.encode() + b"\r\n\r\n") as r:
				a = r.answer()
				t.check(a and (a.status == status or status == 421 and a.status == 400), f"{lines} is answered {status}", a)
		with Raw(s, request("OPTIONS", "/v1/executions", "Origin: http://evil.example", "Access-Control-Request-Method: POST")) as r:
			a = r.answer()
			t.check(a.status in (403, 405) and not any(h.startswith("access-control") for h in a.headers), "no preflight", a)


@case("the first start makes a token, shows it once, and it works; the second start makes none")
def first_token(t):
	with Server(t, auth=True) as s:
		found = re.findall(r"brig_[a-z2-7]{32}", wait_until("it is shown", lambda: re.search("token brig_", s.stderr()) and s.stderr()))
		t.check(found and len(set(found)) == 1, "a token is shown", s.stderr())
		t.equal(s.get("/v1/whoami", found[0], status=200).json["name"], "first", "its name")
		t.check(f"http://127.0.0.1:{s.port}/#token={found[0]}" in s.stderr(), "an address to open", s.stderr())
	os.unlink(s.err_path)
	with Server(t, auth=True) as s:
		t.equal(s.get("/v1/whoami", found[0]).status, 200, "it is still good")
		t.check("brig_" not in s.stderr(), "and not shown again", s.stderr())
		t.check(f"console http://127.0.0.1:{s.port}/ (" in s.stderr(), "where the console is", s.stderr())
		t.equal(t.brig("token", "revoke", "first", "--state", t.state).rc, 0, "revoked")
	with Server(t, auth=True) as s:
		t.check("brig_" not in s.stderr(), "who revoked all is given none", s.stderr())


@case("what goes into a journal of systemd has no token, but says how to get one")
def token_in_journal(t):
	log = os.path.join(t.dir, "journal")
	with open(log, "wb") as f:
		st = os.fstat(f.fileno())
		env = {"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"}
		p = t.popen([harness.brig_path(), "serve", "--listen", "127.0.0.1:0", "--socket", "none", "--state", t.state], env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=f)
	try:
		t.check(p.stdout.readline().startswith(b"ready "), "it serves")
		with open(log, "rb") as f:
			said = f.read()
		t.check(b"brig_" not in said and b"brig token create NAME --admin --state" in said, "what the journal has", said)
		t.equal(t.brig("token", "list", "--state", t.state, "--json").out.count(b'"name"'), 0, "none was made")
		p.terminate()
		t.equal(p.wait(PATIENCE), 0, "its end")
	finally:
		p.kill()
		p.wait()
		p.stdout.close()


def logs_execution(s, form, ident, verdict):
	"""Whether a line of the log says which execution it was, and how it ended if it had."""
	if form == "text":
		wanted = f" execution={ident}" + (f" verdict={verdict}" if verdict else "")
		return any(wanted in line for line in s.stderr().splitlines())
	rows = [json.loads(line) for line in s.stderr().splitlines() if line.startswith("{")]
	return any(row.get("execution") == ident and row.get("verdict") == verdict for row in rows)


@case("nothing secret is in logs or in the state folder", final="a secret was written down")
def secrets(t):
	for form in ("text", "json"):
		with Server(t, "--log", form, auth=True) as s:
			begun = len(s.stderr())
			secret = s.token("quiet-" + form)
			done = s.run(secret, 200, **PROGRAM, env={"K": "env-canary"}, stdin="stdin-canary").json
			later = s.start(secret, **PROGRAM)
			with s.client("brig_" + "b" * 32) as c:
				c.ask("GET", "/v1/whoami?q=query-canary")
			s.get("/v1/whoami", secret)
		found = s.stderr().encode()
		for top, _, names in os.walk(t.state):
			for name in names:
				found += read_quietly(os.path.join(top, name))
		for word in (secret, "brig_" + "b" * 32, "env-canary", "stdin-canary"):
			t.check(word.encode() not in found, f"'{word}' is nowhere")
		for line in ((done["id"], "ok"), (later, None)):
			t.check(logs_execution(s, form, *line), f"the log names {line}", s.stderr()[-2000:])
	rows = [json.loads(line) for line in s.stderr()[begun:].splitlines()]
	t.check(any(row.get("status") == 200 and row.get("request_id") for row in rows), "every line is JSON", s.stderr()[-2000:])


# Options that cannot be: words, the exit status, a word of the complaint.
WRONG = [
	(["--no-auth", "--listen", "0.0.0.0:0"], "no-auth"), (["--no-auth", "--listen", "[::]:0"], "no-auth"), (["--listen", "127.0.0.1"], "listen"), (["--listen", "127.0.0.1:99999"], "listen"),
	(["--listen", "no.such.host.invalid:1"], "listen"), (["--jobs", "none"], "jobs"), (["--queue", "-1"], "queue"), (["--log", "xml"], "log"), (["--head-timeout", "x"], "head-timeout"),
	(["--tls-cert", "/no/such"], "tls"), (["--nonsense"], "nonsense"), (["operand"], "operand"), (["--policy", "/no/such/policy"], "policy"),
]


@case("options that cannot be are refused before anything listens")
def wrong_options(t):
	for words, word in WRONG:
		p = t.brig("serve", "--state", t.state, *words, guard=PATIENCE)
		t.check(p.rc in (2, 125) and word.encode() in p.err and not p.out, f"{words} is refused", p)


@case("a port that is taken is said so")
def taken(t):
	with Server(t) as s:
		p = t.brig("serve", "--no-auth", "--listen", f"127.0.0.1:{s.port}", "--state", t.path("other"))
		t.check(p.rc not in (0, None) and str(s.port).encode() in p.err and b"ready" not in p.out, "the second one", p)


@case("the unix socket serves its own user, and is gone afterwards")
def unix_socket(t):
	path = t.path("serve.sock")
	with Server(t, "--unix", path):
		with socket.socket(socket.AF_UNIX) as sock:
			sock.settimeout(PATIENCE)
			sock.connect(path)
			sock.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			data = b""
			while True:
				piece = sock.recv(65536)
				if not piece:
					break
				data += piece
		head, _, body = data.partition(b"\r\n\r\n")
		rows = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
		checked("GET", "/v1/whoami", Answer(int(head.split()[1]), rows, body))
		t.check(head.startswith(b"HTTP/1.1 200 "), "it answers", data)
		t.check(os.stat(path).st_mode & 0o7 == 0, "strangers cannot open it")
	t.check(not os.path.exists(path), "it is gone")


@case("on the unix socket the kernel says who asks: root administers, others run what nobody vouches for")
def unix_users(t):
	if os.geteuid() != 0:
		raise Skipped("needs root, to be several users")
	with tempfile.TemporaryDirectory() as folder:
		os.chmod(folder, 0o755)
		path = os.path.join(folder, "serve.sock")
		with Server(t, "--unix", path, auth=True) as s:
			status, root = ask_unix(path, "/v1/whoami")
			t.equal([status, root["name"], root["admin"], root["max_trust"]], [200, "uid:0", True, "trusted"], "root")
			status, other = ask_unix(path, "/v1/whoami", 65534)
			t.equal([status, other["name"], other["admin"], other["max_trust"]], [200, "uid:65534", False, "unknown"], "another")
			t.equal(ask_unix(path, "/v1/cells", 65534)[0], 403, "what is for administrators")
			s.get("/v1/whoami", status=401)	# over TCP nobody is known


@case("brig token: made, listed without its secret, revoked; bad ones are refused")
def token_command(t):
	p = t.brig("token", "create", "ci", "--max-trust", "unknown", "--language", "python", "--expires", "30d", "--concurrent", "2", "--state", t.state)
	secret = re.search(rb"brig_[a-z2-7]{32}", p.out)
	t.check(p.rc == 0 and secret, "made", p)
	p = t.brig("token", "list", "--json", "--state", t.state)
	row = json.loads(p.out)["tokens"][0]
	t.equal([row["name"], row["max_trust"], row["languages"], row["concurrent"], secret.group() in p.out], ["ci", "unknown", ["python"], 2, False], "listed", p)
	t.equal(os.stat(os.path.join(t.state, "serve", "tokens")).st_mode & 0o777, 0o600, "the file's mode")
	for words in (["create", "ci"], ["create", "a b"], ["create", "../x"], ["create", "x", "--max-trust", "much"], ["create", "x", "--expires", "never-ever"], ["create"], ["revoke", "nobody"]):
		p = t.brig("token", *words, "--state", t.state)
		t.check(p.rc not in (0, None) and p.err, f"{words} is refused", p)
	t.equal(t.brig("token", "revoke", "ci", "--state", t.state).rc, 0, "revoked")
