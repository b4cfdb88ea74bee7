# SPDX-License-Identifier: Apache-2.0
"""What a service knows of its past after kill -9: keys that stand for executions, quotas that were used up."""
import os

from client import PATIENCE, Server, read_quietly, status_field, wait_until
from harness import case

PROGRAM = {"language": "shell", "code": "echo 1"}


def killed(s):
	"""kill -9 of the first process; the others go with it."""
	below = s.processes().values()
	s.kill()
	wait_until("all processes are gone", lambda: all(status_field(pid, "State")[:1] in ("", "Z", "X") for pid in below))


def keyed(s, token, key, **job):
	return s.run(token, None, {"Idempotency-Key": key}, **job)


@case("kill -9 and a new start: a key stands for the same execution or batch as before, another body is refused, what came to nothing runs", final="a repeated request ran twice")
def keys(t):
	jobs = {"jobs": [PROGRAM, PROGRAM]}
	with Server(t, auth=True) as s:
		token = s.token("ann")
		done = keyed(s, token, "done", **PROGRAM, **{"async": True}).json["id"]
		s.ended(done, token)
		now = keyed(s, token, "now", **PROGRAM).json["id"]
		lost = keyed(s, token, "lost", kind="command", args=["sleep", "600"], **{"async": True}).json["id"]
		with s.client(token) as c:
			batch = c.ask("POST", "/v1/batches", jobs, {"Idempotency-Key": "batch"}, 202).json["id"]
			c.c.request("POST", "/v1/executions", '{"kind": "command", "args": ["sleep", "600"]}', {**c.headers, "Content-Type": "application/json", "Idempotency-Key": "cut"})
			wait_until("both run", lambda: s.get("/v1/queue", token).json["running"] >= 2)
			killed(s)
	with Server(t, auth=True) as s:
		a = keyed(s, token, "done", **PROGRAM, **{"async": True})
		t.equal([a.status, a.json["id"], a.json["state"], a.header("location")], [202, done, "finished", "/v1/executions/" + done], "one that had finished", a)
		a = keyed(s, token, "lost", kind="command", args=["sleep", "600"], **{"async": True})
		t.equal([a.status, a.json["id"], a.json["state"]], [202, lost, "lost"], "one that had not", a)
		a = keyed(s, token, "now", **PROGRAM)
		t.check(a.status == 409 and now in a.message, "one whose result was told at once", a)
		a = keyed(s, token, "done", language="shell", code="echo 2", **{"async": True})
		t.check(a.status == 409 and done in a.message, "another body", a)
		a = keyed(s, s.token("bob"), "done", **PROGRAM)
		t.equal([a.status, a.json["stdout"]], [200, "1\n"], "another token's key", a)
		a = keyed(s, token, "cut", **PROGRAM)
		t.equal([a.status, a.json["stdout"]], [200, "1\n"], "the key of one that was cancelled is free", a)
		with s.client(token) as c:
			t.equal(c.ask("POST", "/v1/batches", jobs, {"Idempotency-Key": "batch"}, 202).json["id"], batch, "a batch")
		t.equal(s.get("/v1/executions", token).json["executions"][-1]["id"], a.json["id"], "nothing else was run")


@case("kill -9 and a new start: what a token has used of its quotas is still used", final="a quota was forgotten")
def meters(t):
	burn = {"language": "python", "code": "import time\nwhile time.process_time() < 1.3: pass"}
	with Server(t, auth=True) as s:
		few, lazy, free = s.token("few", "--runs-per-minute", 1), s.token("lazy", "--cpu-seconds-per-hour", 1), s.token("free")
		s.run(few, 200, **PROGRAM)
		s.run(lazy, 200, **burn)
		before = [int(s.run(token, 429, **PROGRAM).header("retry-after")) for token in (few, lazy)]
		killed(s)
	for _ in range(2):	# the second one has it from what the first has written anew
		with Server(t, auth=True) as s:
			after = [int(s.run(token, 429, **PROGRAM).header("retry-after")) for token in (few, lazy)]
			t.check(all(0 < a <= b for a, b in zip(after, before)), "they go on where they were", f"{before} {after}")
			s.run(free, 200, **PROGRAM)
			killed(s)


@case("a torn last line says nothing; a file that somebody else has written in refuses to start, and says what to do")
def damaged(t):
	with Server(t, auth=True) as s:
		token = s.token("ann", "--runs-per-minute", 1)
		ident = keyed(s, token, "k", **PROGRAM, **{"async": True}).json["id"]
		s.ended(ident, token)
	for name, loss in (("keys", "runs once more"), ("meters", "from nothing")):
		path = os.path.join(t.state, "serve", name)
		t.equal(os.stat(path).st_mode & 0o777, 0o600, f"the mode of {name}")
		whole = read_quietly(path)
		t.check(whole.count(b"\n") == 1, f"{name} has a line", whole)
		with open(path, "wb") as f:
			f.write(whole + whole[:20])
		with Server(t, auth=True) as s:
			t.equal(keyed(s, token, "k", **PROGRAM, **{"async": True}).json["id"], ident, f"{name} with a torn line")
		for bad in (b"nonsense\n" + whole, whole + b"\0" * 600 + b"\n", whole + b"x" * 2000):
			with open(path, "wb") as f:
				f.write(bad)
			p = t.brig("serve", "--listen", "127.0.0.1:0", "--socket", "none", "--state", t.state, guard=PATIENCE)
			t.check(p.rc not in (0, None) and path.encode() in p.err and b"move it away" in p.err and loss.encode() in p.err and not p.out, f"{name} that is damaged", p)
		with open(path, "wb") as f:
			f.write(whole)
	for name in ("keys", "meters"):
		os.unlink(os.path.join(t.state, "serve", name))
	with Server(t, auth=True) as s:
		t.check(keyed(s, token, "k", **PROGRAM).json["id"] != ident, "without the files it begins anew")
