# SPDX-License-Identifier: Apache-2.0
"""Signals, kill -9 of each process, and a short soak."""
import http.client
import json
import os
import random
import signal
import sqlite3
import sys
import time

import harness
from client import PATIENCE, Raw, Server, archive, children, content, job_request, mark, marked, read_quietly, sleeper, status_field, tree, upload, wait_until
from harness import case

REMEMBERED, REMEMBERED_KIB = 1024, 40	# results that a server has at hand, and what one of them comes to
GROWTH_KIB = 4096	# of its allocator, and the heaps of programs
KILLS = int(os.environ.get("BRIG_TEST_KILLS", "8"))
SOAK = int(os.environ.get("BRIG_TEST_SOAK", "300"))


def verified(t):
	p = t.brig("audit", "verify", "--state", t.state)
	t.equal(p.rc, 0, "brig audit verify", p)


@case("SIGTERM: what runs ends whole, nothing new begins, exit 0")
def drain(t):
	with Server(t, "--jobs", 3) as s:
		job = {"kind": "command", "args": ["sh", "-c", "echo up; sleep 2; echo whole", mark()]}
		with Raw(s, job_request(job)) as plain, s.client() as c:
			stream = c.stream("POST", "/v1/executions", job)
			t.equal(stream.until("stdout")["data"], "up\n", "it runs")
			ident = s.start(**sleeper())
			wait_until("all have begun", lambda: [x["started"] is not None for x in s.get("/v1/executions").json["executions"]] == [True] * 3)
			s.p.send_signal(signal.SIGTERM)
			wait_until("it takes nothing new", lambda: s.get("/readyz").status == 503)
			with s.client() as late:
				a = late.ask("POST", "/v1/executions", job, status=503)
				t.check(int(a.header("retry-after")) > 0, "when to come again", a)
			t.equal(s.get(f"/v1/executions/{ident}", status=200).json["state"], "running", "who asks for what runs is answered")
			t.equal(stream.until("verdict")["result"]["stdout"], "up\nwhole\n", "the stream is whole")
			t.equal(plain.answer().json["stdout"], "up\nwhole\n", "the answer is whole")
			with s.client() as late:
				late.ask("DELETE", f"/v1/executions/{ident}", status=202)
		t.equal(s.p.wait(PATIENCE), 0, "its status", s.stderr())
	verified(t)


@case("SIGTERM twice: what runs is cancelled at once; --drain has an end, too")
def drain_twice(t):
	for args, signals in (((), (signal.SIGTERM, signal.SIGTERM)), (("--drain", "0.2"), (signal.SIGTERM,)), ((), (signal.SIGINT, signal.SIGINT))):
		with Server(t, *args) as s:
			ident = s.start(**sleeper())
			wait_until("it runs", marked)
			t.equal(s.stop(*signals), 0, "its status", s.stderr())
			t.equal(marked(), [], "no cell is left")
		with Server(t) as s:
			d = s.get(f"/v1/executions/{ident}", status=200).json
			t.check(d["state"] in ("finished", "lost"), "it is accounted for", d)
	verified(t)


def kill_and_see(t, s, which):
	"""kill -9 of one process while something runs; the ids of what was accepted."""
	ids = [s.start(**sleeper()) for _ in range(3)]
	wait_until("two run", lambda: len({s.state(i) for i in ids} & {"running"}) and marked())
	victim = s.pid if which == "master" else s.processes()[which]
	os.kill(victim, signal.SIGKILL)
	if which == "master":
		s.p.wait()
		return ids
	wait_until("another one answers", lambda: s.processes().get(which) not in (None, victim) and s.answers())
	return ids


@case("kill -9 of the front: another one answers, what was accepted goes on", final="an accepted execution was lost track of")
def kill_front(t):
	with Server(t, "--jobs", 2) as s:
		ids = kill_and_see(t, s, "front")
		with s.client() as c:
			for i in ids:
				d = c.ask("GET", f"/v1/executions/{i}", status=200).json
				if d["state"] in ("queued", "running"):
					c.ask("DELETE", f"/v1/executions/{i}")
				t.equal(s.ended(i)["state"], "finished", "it is accounted for")
		wait_until("no cell is left", lambda: not marked())
		t.equal(s.result(language="shell", code="echo 1")["stdout"], "1\n", "the server goes on")
	verified(t)


@case("kill -9 of the runner: another one answers, what was accepted is finished or lost, cells are gone", final="an accepted execution was lost track of")
def kill_runner(t):
	with Server(t, "--jobs", 2) as s:
		s.result(language="shell", code="echo 1")
		done = s.start(language="shell", code="echo done")
		s.ended(done)
		with Raw(s, job_request(sleeper())) as r:
			ids = kill_and_see(t, s, "runner")
			a = r.answer()
			t.check(a and a.status == 503, "who waited is told", a)
		for i in ids:
			d = s.ended(i)
			t.check(d["state"] in ("finished", "lost"), "it is accounted for", d)
		t.equal(s.ended(done)["state"], "finished", "one that was over before")
		wait_until("no cell is left", lambda: not marked())
		t.equal(s.result(language="shell", code="echo 1")["stdout"], "1\n", "the server goes on")
	verified(t)


@case("kill -9 of the master: everything goes with it; the next start accounts for what was accepted", final="something outlived its master")
def kill_master(t):
	with Server(t, "--jobs", 2) as s:
		s.result(language="shell", code="echo 1")
		below = [p for p in tree(s.pid) if p != s.pid]
		ids = kill_and_see(t, s, "master")
		wait_until("no process is left", lambda: not [p for p in below if os.path.exists(f"/proc/{p}") and status_field(p, "State")[:1] not in ("Z", "")] and not marked())
	with Server(t) as s:
		for i in ids:
			d = s.ended(i)
			t.check(d["state"] in ("finished", "lost"), "it is accounted for", d)
		t.equal(s.result(language="shell", code="echo 1")["stdout"], "1\n", "the next one serves")
	verified(t)


def asked(s, method, target, body):
	"""The answer; None: nobody was there to give it."""
	try:
		with s.client() as c:
			return c.ask(method, target, body)
	except (OSError, http.client.HTTPException):
		return None


def submitted(s, rng, workspace):
	"""One more that was accepted, ("executions" or "batches", its id): short, long, many at once, one that leaves files.  None: nobody was there to accept it."""
	short, long = {"language": "shell", "code": "echo 1"}, {"language": "shell", "code": f"sleep {rng.uniform(0, 0.5):.3f}; echo 1"}
	place, body = rng.choice([("executions", {**short, "async": True}), ("executions", {**long, "async": True}), ("batches", {"jobs": [short, long, short]}),
		("executions", {"kind": "shell", "code": "date +%N > now.txt", "workspace": workspace, "keep": True, "async": True})])
	a = asked(s, "POST", "/v1/" + place, body)
	return (place, a.json["id"]) if a is not None and a.status == 202 else None


def victims(s, rng):
	"""Somebody, or everybody: each process of the service, the keepers below, the first one, all of them."""
	named, keepers = s.processes(), [p for p in tree(s.pid) if read_quietly(f"/proc/{p}/comm").strip() == b"brig-keeper"]
	return rng.choice([[p] for p in (*named.values(), *keepers, s.pid)] + [[s.pid, *named.values(), *keepers]])


def killed(t, s, rng):
	"""kill -9 of somebody; the server from then on, and the seconds until it took executions again."""
	chosen = victims(s, rng)
	for pid in chosen:
		try:
			os.kill(pid, signal.SIGKILL)
		except ProcessLookupError:
			pass
	wait_until("they are dead", lambda: all(status_field(pid, "State")[:1] in ("", "Z", "X") for pid in chosen))	# until then its children answer
	began = time.monotonic()
	wait_until("it answers or has ended", lambda: s.p.poll() is not None or s.answers())
	if s.p.poll() is not None:	# killed, or given up
		s.p.stdout.close()
		began = time.monotonic()	# whoever starts it anew notices by himself
		s = Server(t, "--jobs", 2)
	return s, time.monotonic() - began


def accounted(t, s, accepted):
	"""Each that was accepted has an end."""
	for place, ident in accepted:
		if place == "batches":
			d = wait_until(f"batch {ident} ends", lambda: (d := s.get(f"/v1/batches/{ident}", status=200).json)["state"] == "finished" and d)
			t.check(all(j["state"] in ("finished", "lost") for j in d["jobs"]) and len(d["jobs"]) == 3, "each job of it is accounted for", d)
			continue
		d = s.ended(ident)
		kept = d.get("result") or d.get("record") or d	# at hand, in the history, or in the book of what was accepted
		ended = kept.get("verdict") == "crash" and kept["signal"] == "SIGKILL"	# with its keeper
		t.check(d["state"] == "lost" or ended or kept["verdict"] in ("ok", "cancelled", "failed"), "it is accounted for", d)


def sound(t):
	"""Log and database are whole."""
	verified(t)
	with sqlite3.connect(os.path.join(t.state, "history.db")) as db:
		t.equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "the database")
	db.close()


@case(f"kill -9 at {KILLS} random moments under load: each accepted execution is finished or lost, and the records are whole", final="an accepted execution was lost track of")
def kill_at_random(t):
	rng = random.Random(os.getpid())
	accepted, seconds, s = [], [], Server(t, "--jobs", 2)
	try:
		workspace = upload(s, archive({"a.txt": b"a"})).json["id"]
		for _ in range(KILLS):
			accepted += filter(None, [submitted(s, rng, workspace) for _ in range(rng.randint(1, 3))])
			time.sleep(rng.uniform(0, 0.05))
			s, took = killed(t, s, rng)
			seconds.append(took)
		accounted(t, s, accepted)
		t.check(len(accepted) >= KILLS // 2, "there was something to lose", accepted)
		t.equal(s.get("/v1/history?limit=5").status, 200, "the history opens")
		t.equal(content(s, workspace)["a.txt"], b"a", "the workspace is whole")
		t.equal(s.result(language="shell", code="echo 1")["stdout"], "1\n", "it serves on")
		t.equal(s.stop(), 0, "its status", s.stderr())
	finally:
		s.kill()
		s.p.stdout.close()
	t.equal(t.brig("reap").rc, 0, "brig reap")
	sound(t)
	if "BRIG_TEST_KILLS" in os.environ:	# for people: how long it was away
		seconds.sort()
		print(f"# {KILLS} kills, {len(accepted)} accepted; back after {seconds[len(seconds) // 2]:.3f} s (median), {seconds[-1]:.3f} s (longest)", file=sys.stderr)


@case("SIGHUP: what runs goes on; the policy is read anew, and if it is wrong the old one stays")
def reload(t):
	policy = t.path("sandbox.yaml", "mem_limit: 300m\n")
	program = {"language": "shell", "code": "true"}
	with Server(t, "--policy", policy, "--log", "json", auth=True) as s:
		def said(text, before):
			return [row["message"] for row in map(json.loads, s.stderr()[before:].splitlines()) if "message" in row and text in row["message"]]
		def memory():
			return s.result(token, **program)["limits"]["memory_bytes"] >> 20
		token = s.token("before")
		ident = s.start(token, kind="command", args=["sh", "-c", "sleep 1; echo whole", mark()])
		wait_until("it runs", marked)
		t.equal(memory(), 300, "the policy's limit")
		for text, wanted in (("mem_limit: 200m\n", 200), ("mem_limit: [\n", 200), ("mem_limit: 100m\n", 100)):
			t.path("sandbox.yaml", text)
			before = len(s.stderr())
			s.p.send_signal(signal.SIGHUP)
			if "[" in text:
				wait_until("it complains", lambda: said("the old one stays in force", before))
				t.check("sandbox.yaml:" in said("", before)[0], "why, and where", said("", before))
			else:
				wait_until("it says so", lambda: said("the policy was reloaded", before))
			wait_until(f"{text!r} counts", lambda: memory() == wanted)
			t.equal(len(said("", before)), 1, "and says it once", s.stderr()[before:])
		t.equal([s.get("/v1/whoami", x).status for x in (token, s.token("after"))], [200, 200], "tokens")
		t.equal(s.ended(ident, token)["result"]["stdout"], "whole\n", "what ran")


def footprint(s):
	"""Descriptors and resident KiB of each process of the server that stays: without cells, which come and go."""
	found = {}
	for pid in [s.pid, *children(s.pid)]:
		found[pid] = (len(harness.listing(f"/proc/{pid}/fd")), int((status_field(pid, "VmRSS") or "0").split()[0]))
	return found


@case(f"{SOAK} programs through one connection: no error, and neither descriptors nor memory grow")
def soak(t):
	job = job_request({"language": "python", "code": "print(1)"})
	with Server(t, "--jobs", 2) as s, Raw(s) as r:
		def some(n):
			for _ in range(n):
				r.send(job)
				a = r.answer()
				t.check(a and a.status == 200 and a.json["verdict"] == "ok" and a.json["stdout"] == "1\n", "each is answered", a)
		first = max(60, SOAK // 10)
		some(first)
		growth = GROWTH_KIB + REMEMBERED_KIB * min(SOAK, max(0, REMEMBERED - first))
		before = footprint(s)
		some(SOAK)
		after = footprint(s)
		t.equal(sorted(after), sorted(before), "the processes are the same")
		for pid, (fds, kib) in after.items():
			name = read_quietly(f"/proc/{pid}/comm").decode().strip()
			more = 80 if name == "brig-keeper" else 4	# each cell that waits or ends just now has some thirty there
			t.check(fds <= before[pid][0] + more, f"descriptors of {name}", f"{before} {after}")
			t.check("asan" in harness.brig_path() or kib <= before[pid][1] + growth, f"memory of {name}", f"{before} {after}")
	verified(t)
