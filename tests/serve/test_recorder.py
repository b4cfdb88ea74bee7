# SPDX-License-Identifier: Apache-2.0
"""The process that writes audit log and history: what it may, what the runner may not, and what becomes of records when it dies."""
import fcntl
import glob
import json
import os
import random
import signal

import harness
from client import Raw, Server, children, job_request, read_quietly, request, status_field, tree, wait_until
from harness import case

RUNS, KILLS = 24, 6
RECORDED = ("audit", "keys", "history.db", "spool")	# below the state folder: what only the recorder writes


def entries(t):
	"""The runs of the audit log, in its order."""
	lines = b"".join(read_quietly(f) for f in sorted(glob.glob(f"{t.state}/audit/*.jsonl"))).splitlines()
	return [e for e in map(json.loads, lines) if e["event"] == "run"]


def verified(t):
	p = t.brig("audit", "verify", "--state", t.state)
	t.equal(p.rc, 0, "brig audit verify", p)


def open_files(pid):
	"""{path: whether it can be written} of a process's descriptors."""
	found = {}
	for n in harness.listing(f"/proc/{pid}/fd"):
		try:
			path = os.readlink(f"/proc/{pid}/fd/{n}")
		except OSError:
			continue
		flags = [line.split()[1] for line in read_quietly(f"/proc/{pid}/fdinfo/{n}").splitlines() if line.startswith(b"flags:")]
		found[path] = bool(flags) and int(flags[0], 8) & os.O_ACCMODE != os.O_RDONLY
	return found


def replaced(s, victim):
	"""Ends the recorder as nothing else could, and waits for another one."""
	os.kill(victim, signal.SIGKILL)
	return wait_until("another recorder", lambda: (now := s.processes().get("recorder")) != victim and now)


@case("the recorder has the state folder and nothing else", final="the process that holds the keys has a right too many")
def confined(t):
	canary = "recorder-canary-" + os.path.basename(t.state)
	with Server(t, env={"SERVE_CANARY": canary}) as s:
		s.result(language="shell", code="echo 1", receipt=True)
		recorder = s.processes()["recorder"]
		got = {name: status_field(recorder, name) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")}
		t.equal(got, {**dict.fromkeys(("CapEff", "CapPrm", "CapInh", "CapAmb"), "0" * 16), "NoNewPrivs": "1", "Seccomp": "2"}, "its rights")
		if os.geteuid() != 0:
			return	# it cannot be looked into
		t.equal(status_field(recorder, "CapBnd"), "0" * 16, "what it could get")
		others = [p for p in open_files(recorder) if not p.startswith(("socket:", t.state)) and p not in ("/dev/null", s.err_path)]
		t.equal(others, [], "what it has open besides its folder and sockets")
		t.check(canary.encode() not in read_quietly(f"/proc/{recorder}/environ"), "variables of whoever started it are gone")


@case("the runner and all that it starts have no way open to what was recorded", final="who runs programs can write the log")
def runner_has_none(t):
	with Server(t) as s:
		ident = s.result(language="shell", code="echo 1", receipt=True)["id"]
		t.equal(s.get(f"/v1/history/{ident}", status=200).json["verdict"], "ok", "it is in the history")
		t.equal([e["id"] for e in entries(t)], [ident], "and in the log")
		pids = s.processes()
		for pid in tree(pids["runner"]) + [pids["front"], s.pid]:
			found = [p for p in open_files(pid) if any(p.startswith(f"{t.state}/{name}") for name in RECORDED)]
			t.equal(found, [], f"what {read_quietly(f'/proc/{pid}/comm')} has open of it")
		t.check(b"sqlite" not in read_quietly(f"/proc/{pids['runner']}/maps"), "the runner has no database library")
		t.check(any(p.startswith(f"{t.state}/audit/") and w for p, w in open_files(pids["recorder"]).items()) or os.geteuid() != 0, "the recorder has the log")
	verified(t)


@case(f"kill -9 of the recorder, {KILLS} times under load: each run is recorded once, and the chain holds", final="a run was not recorded")
def killed(t):
	rng = random.Random(os.getpid())
	with Server(t, "--jobs", 2) as s:
		before, ids = s.processes(), []
		recorder = before["recorder"]
		for i in range(RUNS):
			ids.append(s.start(language="shell", code=f"echo {i}"))
			if i % (RUNS // KILLS) == rng.randrange(RUNS // KILLS):
				recorder = replaced(s, recorder)
		ended = {i: s.ended(i) for i in ids}
		t.equal({d["state"] for d in ended.values()}, {"finished"}, "all end")
		t.equal({(d["result"]["verdict"], *d["result"]["warnings"]) for d in ended.values()}, {("ok",)}, "and are in order")
		listed = {e["id"] for e in s.get("/v1/history?limit=1000", status=200).json["executions"]}
		t.equal(set(ids) - listed, set(), "what the history lacks")
		t.equal({n: p for n, p in s.processes().items() if n != "recorder"}, {n: p for n, p in before.items() if n != "recorder"}, "the others went on")
	t.equal(sorted(e["id"] for e in entries(t)), sorted(ids), "an entry for each")
	verified(t)


@case("a recorder that hangs and is killed: the service answers meanwhile, and the run that waits for it is recorded by the next")
def hangs(t):
	with Server(t, "--jobs", 2) as s:
		recorder = s.processes()["recorder"]
		os.kill(recorder, signal.SIGSTOP)
		with Raw(s, job_request({"language": "shell", "code": "echo late"})) as r:
			wait_until("it runs", lambda: s.get("/v1/queue", status=200).json["running"] == 1)
			t.equal([s.get(p).status for p in ("/readyz", "/v1/whoami", "/v1/executions")], [200] * 3, "others are answered")
			replaced(s, recorder)
			got = r.answer().json
		t.equal((got["stdout"], got["warnings"]), ("late\n", []), "the run")
		t.equal([e["id"] for e in entries(t)], [got["id"]], "its entry")
	verified(t)


@case("a slow question keeps nobody waiting; if who answers it dies, it is to be asked again")
def slow_question(t):
	with Server(t, "--jobs", 2) as s:
		s.result(language="shell", code="echo 1")
		s.get("/v1/history", status=200)
		recorder = s.processes()["recorder"]
		wait_until("who answered has gone", lambda: not children(recorder))
		with open(f"{t.state}/history.lock", "r+b") as lock:
			fcntl.flock(lock, fcntl.LOCK_EX)
			r = Raw(s, request("GET", "/v1/history"))
			reader = wait_until("somebody is at it", lambda: children(recorder))[0]
			t.equal(s.result(language="shell", code="echo 2")["warnings"], [], "a run meanwhile")
			t.equal(len(entries(t)), 2, "is recorded")
			os.kill(reader, signal.SIGKILL)
			with r:
				a = r.answer()
			t.check(a.status == 503 and a.code == "unavailable" and a.header("retry-after"), "its answer", a)
		t.equal(len(s.get("/v1/history", status=200).json["executions"]), 2, "asked again")
		t.equal(s.processes()["recorder"], recorder, "the recorder went on")


@case("a record that is too long for a message is kept whole, and brought into the database with nobody asking")
def long_record(t):
	policy = t.path("sandbox.yaml", "keep_output: all\n")
	with Server(t, "--policy", policy) as s:
		got = s.result(language="shell", code="head -c 1500000 /dev/zero | tr '\\0' x")
		t.equal((len(got["stdout"]), got["warnings"]), (1500000, []), "the run")
		wait_until("it is in the database", lambda: os.path.exists(f"{t.state}/history.db") and not children(s.processes()["recorder"]))
		t.check(not os.path.exists(f"{t.state}/spool"), "nothing waits to be brought in")
		kept = s.get(f"/v1/history/{got['id']}", status=200).json["stdout"]
		t.check(kept["text"] == got["stdout"] and not kept["truncated"], "what is kept of it", str(kept)[:300])
		t.check("recorder" not in s.stderr(), "no recorder had to be started anew", s.stderr())


@case("policy demands a record and none can be written: nothing runs, and it is told so", final="a run without the record that policy demands")
def fails_closed(t):
	policy = t.path("sandbox.yaml", "audit: required\n")
	os.mkdir(t.state, 0o700)
	t.path("state/audit", "", 0o600)	# where the folder should be
	with Server(t, "--policy", policy) as s:
		got = s.result(language="shell", code="echo ran")
		t.check(got["verdict"] == "refused" and "policy demands an audit entry" in got["reason"] and got["stdout"] == "", "its verdict", got)
		os.unlink(f"{t.state}/audit")
		t.equal(s.result(language="shell", code="echo ran")["stdout"], "ran\n", "when it can")
	verified(t)
