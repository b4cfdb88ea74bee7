# SPDX-License-Identifier: Apache-2.0
"""Many jobs in one request."""
import json
import os
import signal

from client import Server, marked, sleeper, unfit, wait_until
from harness import case

PROGRAM = {"language": "python", "code": "print(1)"}
TRUE = {"kind": "command", "args": ["true"]}


def start(s, jobs, token=None, status=202, headers=None):
	"""The answer to a batch."""
	with s.client(token) as c:
		a = c.ask("POST", "/v1/batches", {"jobs": jobs}, headers=headers, status=status)
	if status == 202:
		s.t.equal([a.header("location"), a.json["total"]], ["/v1/batches/" + a.json["id"], len(jobs)], "what is told at once", a)
	return a


def look(s, ident, token=None):
	return s.get(f"/v1/batches/{ident}", token, status=200).json


def ended(s, ident, token=None):
	def over():
		d = look(s, ident, token)
		return d if d["state"] == "finished" else None
	return wait_until(f"batch {ident} ends", over)


def results(s, ident, token=None):
	a = s.get(f"/v1/batches/{ident}/results", token, status=200)
	lines = [json.loads(line) for line in a.body.decode().splitlines()]
	for line in lines:
		if unfit(line, "BatchResult"):
			s.t.check(False, f"a line: {unfit(line, 'BatchResult')}", line)
	return lines


@case("a batch: as a document and as lines; each job is an execution of its own, with its files, name, result and record")
def batch(t):
	jobs = [{"id": "six", "language": "python", "code": "print(6 * 7)"},
		{"kind": "command", "args": ["cat", "d/a.txt"], "files": {"d/a.txt": "hallo ü\n"}},
		{"id": "sum \"quoted\" é", "language": "python", "code": "import sys; print(sum(map(int, input().split()))); sys.exit(3)", "stdin": "1 2 3"},
		{"kind": "shell", "code": "echo a >&2", "options": {"timeout": 5}, "priority": 9, "receipt": True}]
	with Server(t) as s:
		first = start(s, jobs).json["id"]
		with s.client() as c:
			text = "\n\n".join(json.dumps(j) for j in jobs)
			second = c.ask("POST", "/v1/batches", text.encode(), {"Content-Type": "application/x-ndjson"}, status=202).json["id"]
		for ident, names in ((first, ["six", "2", jobs[2]["id"], "4"]), (second, ["six", "3", jobs[2]["id"], "7"])):
			d = ended(s, ident)
			t.equal([j["job"] for j in d["jobs"]], names, "names", d)
			t.equal([d["total"], d["states"], d["verdicts"]], [4, {"queued": 0, "running": 0, "finished": 4, "lost": 0}, {"ok": 3, "error": 1}], "counts", d)
			t.equal([j["verdict"] == "ok" for j in d["jobs"]], [True, True, False, True], "verdicts", d)
			lines = results(s, ident)
			t.equal([r["job"] for r in lines], names, "results are in the order of the jobs")
			t.equal([r["stdout"] for r in lines], ["42\n", "hallo ü\n", "6\n", ""], "output", lines)
			t.equal([lines[2]["exit_code"], lines[3]["stderr"]], [3, "a\n"], "the rest", lines)
			t.equal(lines[3]["receipt"]["statement"]["request"]["id"], lines[3]["id"], "a receipt is in its line")
			for j, r in zip(d["jobs"], lines):
				x = s.get(f"/v1/executions/{j['id']}", status=200).json
				t.equal([x["state"], x["result"]["stdout"], r["id"]], ["finished", r["stdout"], j["id"]], "the execution")
				s.get(f"/v1/history/{j['id']}", status=200)
		t.equal([b["id"] for b in s.get("/v1/batches").json["batches"]], [second, first], "the list")
		t.equal(len(s.get("/v1/batches?limit=1").json["batches"]), 1, "a shorter one")


@case("results as they come: those that are over first, then each as it ends, then done; who hangs up cancels nothing")
def stream(t):
	with Server(t, "--jobs", "1") as s:
		slow = sleeper(3)
		ident = start(s, [TRUE, slow, TRUE]).json["id"]
		with s.client() as c:
			events = c.stream("GET", f"/v1/batches/{ident}/results")
			t.equal(events.until("result")["job"], "1", "the first")
		t.check(look(s, ident)["state"] == "running", "it goes on")
		with s.client() as c:
			events = c.stream("GET", f"/v1/batches/{ident}/results")
			done = events.until("done")
			t.equal([events.names(), [d["job"] for _, d in events.seen[:3]], done["verdicts"]], [["result"] * 3 + ["done"], ["1", "2", "3"], {"ok": 3}], "the stream")
			t.equal(list(events), [], "its end")
			c.ask("GET", "/healthz", status=200)
			again = c.stream("GET", f"/v1/batches/{ident}/results")
			again.until("done")
			t.equal(again.names(), ["result"] * 3 + ["done"], "of one that is over")
			c.c.close()
			t.equal(c.ask("GET", f"/v1/batches/{ident}/results", headers={"Accept": "application/x-ndjson"}).status, 200, "by name")
			t.equal(c.ask("GET", f"/v1/batches/{ident}/results", headers={"Accept": "image/png"}).status, 406, "something else")


@case("a batch with one bad job is refused whole: the place is named, and nothing runs")
def refused(t):
	rows = [
		([PROGRAM, {**PROGRAM, "lang": "x"}], 400, "jobs[1]"),
		([PROGRAM, {**PROGRAM, "args": ["a", 5]}], 400, "jobs[1].args[1]"),
		([{**PROGRAM, "async": True}], 400, "async"),
		([PROGRAM, PROGRAM, {**PROGRAM, "kind": "x"}], 400, "jobs[2]"),
		([{**PROGRAM, "expected": "1"}], 400, "expected"),
		([{**PROGRAM, "id": ""}], 400, "id"),
		([{**PROGRAM, "id": "a\nb"}], 400, "id"),
		([{**PROGRAM, "id": 5}], 400, "id"),
		([{**PROGRAM, "language": "x" * 100}], 400, "jobs[0]"),
		([PROGRAM, {"kind": "command"}], None, "job 2"),
		([PROGRAM, 5], 400, "jobs[1]"),
		([], 400, "1 to 1000"),
		([TRUE] * 1001, 400, "1 to 1000"),
		("x", 400, "jobs"),
	]
	with Server(t) as s:
		for jobs, status, text in rows:
			a = start(s, jobs, status=status) if status else start(s, jobs, status=422)
			t.check(text in a.message, f"{str(jobs)[-80:]}", a)
		with s.client() as c:
			for body, text in ((b"", "empty"), (b"\n \n", "1 to 1000"), (b'{"language": "python", "code": "1"}\n{', "line 2"), (b"[1]", "line 1"), (b"\xff", "line 1"), (b"[" * 100, "line 1"), (b'{"kind": "command", "args": ["true"]}\n' * 1001, "1 to 1000")):
				a = c.ask("POST", "/v1/batches", body, {"Content-Type": "application/x-ndjson"}, status=400)
				t.check(text in a.message, f"{body[:40]!r}", a)
			a = c.ask("POST", "/v1/batches", {"jobs": [PROGRAM], "more": 1}, status=400)
			t.equal(c.ask("POST", "/v1/batches", b"x", {"Content-Type": "text/plain"}).status, 415, "another type")
			t.equal(c.ask("POST", "/v1/executions", b"{}", {"Content-Type": "application/x-ndjson"}).status, 415, "lines elsewhere")
			t.equal([c.ask("GET", "/v1/batches/" + "a" * 16).status, c.ask("DELETE", "/v1/batches/x").status, c.ask("PUT", "/v1/batches").status], [404, 404, 405], "what there is not")
		t.equal([s.get("/v1/history").json["total"], s.get("/v1/batches").json["batches"], s.get("/v1/executions").json["executions"]], [0, [], []], "what ran")


@case("the bounds of a token hold for each job of a batch; another's batch is not there", final="a batch exceeded its token, or was seen by another")
def access(t):
	with Server(t, auth=True) as s:
		low, other, admin = s.token("low", "--max-trust", "untrusted", "--language", "python", "--memory", "256m"), s.token("other"), s.token("root", "--admin")
		fine = {**PROGRAM, "options": {"memory": "64m"}}
		for bad in ({**fine, "trust": "trusted"}, {**fine, "language": "shell", "code": "true"}, {**fine, "options": {"memory": "300m"}}):
			a = start(s, [fine, bad], low, 403)
			t.check("job 2" in a.message and "low" in a.message, "whose bound", a)
		ident = start(s, [fine, fine], low).json["id"]
		d = ended(s, ident, low)
		t.equal([d["token"], d["verdicts"]], ["low", {"ok": 2}], "within them", d)
		with s.client(other) as c:
			for method, target in (("GET", ""), ("GET", "/results"), ("DELETE", "")):
				c.ask(method, f"/v1/batches/{ident}{target}", status=404)
			t.equal(c.ask("GET", "/v1/batches").json["batches"], [], "another's list")
		t.equal([b["id"] for b in s.get("/v1/batches", admin).json["batches"]], [ident], "an admin's list")
		with s.client() as c:
			c.ask("POST", "/v1/batches", {"jobs": [fine]}, status=401)


@case("a long batch takes its turns: the quota makes it wait and not fail, and others are served meanwhile")
def fair(t):
	with Server(t, "--jobs", "2", "--queue", "20", auth=True) as s:
		ada, bob = s.token("ada", "--runs-per-minute", "120", "--concurrent", "2"), s.token("bob")
		ident = start(s, [TRUE] * 123, ada).json["id"]	# more than a minute's, and than the queue holds
		t.equal(s.result(bob, **PROGRAM)["verdict"], "ok", "another")
		d = ended(s, ident, ada)
		t.equal([d["verdicts"], d["states"]["lost"]], [{"ok": 123}, 0], "all of them", d)


@case("jobs of batches that wait have a ceiling of each token; others are not touched by it")
def ceiling(t):
	with Server(t, "--jobs", "1", auth=True) as s:
		ada, bob = s.token("ada"), s.token("bob")
		for _ in range(5):
			start(s, [TRUE] * 1000, ada)
		a = start(s, [TRUE] * 1000, ada, 429)
		t.check("ada" in a.message and a.header("retry-after"), "the sixth thousand", a)
		t.equal(ended(s, start(s, [TRUE], bob).json["id"], bob)["verdicts"], {"ok": 1}, "another's")
		t.equal(s.stop(signal.SIGTERM, signal.SIGTERM), 0, "its end")


@case("a batch is cancelled: what runs ends, what waits never begins")
def cancelled(t):
	with Server(t, "--jobs", "2") as s:
		ident = start(s, [sleeper()] * 60).json["id"]
		wait_until("two run", marked)
		one = look(s, ident)["jobs"][50]["id"]
		with s.client() as c:
			c.ask("DELETE", f"/v1/executions/{one}", status=202)	# one of those that wait beside the queue
			t.equal(s.ended(one)["verdict"], "cancelled", "one alone")
			c.ask("DELETE", f"/v1/batches/{ident}", status=202)
			d = ended(s, ident)
			t.equal(d["verdicts"], {"cancelled": 60}, "verdicts", d)
			c.ask("DELETE", f"/v1/batches/{ident}", status=200)
		wait_until("cells are gone", lambda: not marked())


@case("a repeated Idempotency-Key gets the same batch; with another body 409")
def repeated(t):
	with Server(t) as s:
		key = {"Idempotency-Key": "order 66"}
		first = start(s, [TRUE, TRUE], headers=key).json["id"]
		t.equal(start(s, [TRUE, TRUE], headers=key).json["id"], first, "again")
		start(s, [TRUE, TRUE, TRUE], headers=key, status=409)
		start(s, [TRUE, PROGRAM], headers=key, status=409)
		t.equal(len(s.get("/v1/batches").json["batches"]), 1, "batches")
		t.equal(ended(s, first)["states"]["finished"], 2, "jobs")


@case("kill -9 in the middle of a batch: afterwards every job is finished or lost, by the batch and by its own id", final="an accepted job was forgotten")
def killed(t):
	with Server(t, "--jobs", "2") as s:
		ident = start(s, [TRUE] * 10 + [sleeper()] * 5).json["id"]
		wait_until("some are over", lambda: look(s, ident)["states"]["finished"] >= 10 and marked())
		s.kill()
	with Server(t) as s:
		d = look(s, ident)
		cut = d["verdicts"].get("cancelled", 0)	# by a runner that saw its master's end before its own
		t.equal([d["state"], d["states"]["finished"] - cut, d["states"]["lost"] + cut, d["total"]], ["finished", 10, 5, 15], "by the batch", d)
		for j in d["jobs"]:
			x = s.get(f"/v1/executions/{j['id']}", status=200).json
			t.equal([x["state"], x.get("verdict")] if x["state"] == "lost" else x["state"], ["lost", None] if j["state"] == "lost" else "finished", "by the id", x)
		t.equal([[r["job"], r["verdict"] if r["verdict"] != "cancelled" else None] for r in results(s, ident)], [[str(i + 1), "ok" if i < 10 else None] for i in range(15)], "lines")
		running = start(s, [sleeper()] * 3).json["id"]
		wait_until("they run", marked)
		os.kill(s.processes()["runner"], signal.SIGKILL)
		wait_until("it answers again", s.answers)
		d = look(s, running)
		t.equal(d["states"], {"queued": 0, "running": 0, "finished": 0, "lost": 3}, "after the runner's end", d)
		wait_until("cells are gone", lambda: not marked())


@case("SIGTERM: the batch that was accepted is finished first")
def drained(t):
	with Server(t, "--jobs", "1") as s:
		ident = start(s, [TRUE] * 40).json["id"]
		t.equal(s.stop(), 0, "its end")
	with Server(t) as s:
		d = look(s, ident)
		t.equal(d["states"], {"queued": 0, "running": 0, "finished": 40, "lost": 0}, "jobs", d)
