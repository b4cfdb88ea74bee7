#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kills - kill -9 on everything that serves warm cells, while a batch runs.

	tests/warm/kills.py                     30 kills
	BRIG_TEST_KILLS=1000 tests/warm/kills.py    make drill-kills

A batch with warm cells goes on, is killed at random places (the caller, the keeper, its janitors, inits and interpreters, the
inspectors and their workers), and is taken up again with --resume if it was the caller.  Then:

  - every job has one result, and that is no lie: `ok` has the program's whole output and every promise kept, `crash` is the
    signal that was sent, `blocked` says that the inspection was killed, everything else is
    `failed` and says why;
  - nothing is left: no process, group, mount, file;
  - the next run works.

A janitor is there for the death of its keeper.  If both are killed, and in that order, the groups of their cell stay until
somebody removes them: so where a janitor was among those killed `brig reap` is given a chance, and how many cells it found is
said.
BRIG_TEST_SEED makes another sequence.
"""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import harness

KILLS = int(os.environ.get("BRIG_TEST_KILLS", "30"))
SEED = int(os.environ.get("BRIG_TEST_SEED", "1"))
KILLS_PER_ROUND = 50
JOBS_PER_ROUND = 200
LONGEST_PAUSE = 0.08	# seconds between two kills
GRACE = 60		# seconds; janitors go on for 30
JANITORS_GRACE = 2	# before `brig reap` helps; decides only what is counted as its work
# How often each is chosen, if it is there.  A handle starts eight keepers at most, so callers have to go now and then.
WEIGHTS = {"caller": 1, "keeper": 2, "inspectors": 2, "worker": 2, "janitor": 3, "init": 4, "interpreter": 4, "child": 2}
NAMES = {"brig-keeper": "keeper", "brig-inspectors": "inspectors", "brig-janitor": "janitor"}	# others have not got their name yet
Process = collections.namedtuple("Process", "pid parent name inside start")


def look_at(pid):
	"""A living process, or None.  inside: its number in its own pid namespace, 0 if that is ours."""
	try:
		with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
			stat = f.read()
		with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
			numbers = next((line.split()[1:] for line in f if line.startswith("NSpid:")), [])
	except OSError:
		return None
	rest = stat[stat.rindex(")") + 2:].split()
	if rest[0] in "ZX":
		return None
	return Process(int(pid), int(rest[1]), stat[stat.index("(") + 1:stat.rindex(")")], int(numbers[-1]) if len(numbers) > 1 else 0, rest[19])


def victims(caller):
	"""What each process below a batch is, by name of what it does."""
	everybody = [p for p in map(look_at, filter(str.isdigit, os.listdir("/proc"))) if p]
	children = collections.defaultdict(list)
	for p in everybody:
		children[p.parent].append(p)
	found = {"caller": [p for p in everybody if p.pid == caller]}
	for p in children[caller]:
		found.setdefault("init" if p.inside else NAMES.get(p.name, "child"), []).append(p)
	for p in found.get("inspectors", []):
		found.setdefault("worker", []).extend(children[p.pid])
	for p in found.get("keeper", []):
		for child in children[p.pid]:
			found.setdefault("init" if child.inside else "janitor" if child.name == "brig-janitor" else "child", []).append(child)
	for p in found.get("init", []):
		found.setdefault("interpreter", []).extend(children[p.pid])
	return found


def kill_one(rng, caller):
	"""Kills somebody below a batch and says whom; None: nobody was there any more."""
	found = {kind: them for kind, them in victims(caller).items() if them}
	if not found:
		return None
	kind = rng.choices(list(found), [WEIGHTS[k] for k in found])[0]
	victim = rng.choice(found[kind])
	try:
		fd = os.pidfd_open(victim.pid)
	except OSError:
		return None
	try:
		if look_at(victim.pid) != victim:	# numbers are given away again; the descriptor is this one's or nobody's
			return None
		signal.pidfd_send_signal(fd, signal.SIGKILL)
	except OSError:
		return None
	finally:
		os.close(fd)
	return kind


def program(number):
	return f"import time\nfor i in range(5):\n    print({number}, i, flush=True)\n    time.sleep(0.004)\n"


def output(number):
	return "".join(f"{number} {i}\n" for i in range(5))


def write_jobs(t, name):
	jobs = [json.dumps({"id": str(n), "language": "python", "code": program(n)}) for n in range(JOBS_PER_ROUND)]
	return t.path(name, "\n".join(jobs) + "\n")


def batch(t, jobs, results):
	words = [harness.brig_path(), "batch", "--quiet", "--jobs", "3", "--warm", "3", "--out", results]
	if os.path.exists(results):
		words.append("--resume")
	return t.popen([*words, jobs], env={"BRIG_INSPECTION": "guard"}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def check_result(t, r, counts):
	"""One line of the results: is it true?"""
	counts[r["verdict"] + (" warm" if r.get("warm") else "")] += 1
	if r["verdict"] == "ok":
		t.equal(r["stdout"], output(int(r["job"])), "output of a job that is said to be ok", r)
		t.check(all(row["kept"] for row in r["evidence"]), "ok with a promise that was not kept", r)
	elif r["verdict"] == "crash":
		t.equal(r["signal"], "SIGKILL", "signal", r)
		t.check(output(int(r["job"])).startswith(r["stdout"]), "output that is not the program's", r)
	elif r["verdict"] == "blocked":
		t.check("somebody killed it" in r["reason"], "blocked for something else than the end of an inspection", r)
	else:
		t.check(r["verdict"] == "failed" and r["reason"], "a verdict that cannot be true", r)


def check_results(t, path, counts):
	with open(path, encoding="utf-8") as f:
		rows = [json.loads(line) for line in f]
	t.equal(sorted(int(r["job"]) for r in rows), list(range(JOBS_PER_ROUND)), "jobs that have a result")
	for r in rows:
		check_result(t, r, counts)


def check_left(t, before, killed):
	"""Nothing; if a janitor was killed, nothing after `brig reap`.  How many cells that has removed."""
	removed = 0
	if killed["janitor"] and t.world.leftovers(before, JANITORS_GRACE):
		removed = len(json.loads(t.brig("reap", "--json").out)["removed"])
	left = t.world.leftovers(before, GRACE)
	t.check(not left, "left behind", ", ".join(left))
	return removed


def play_round(t, rng, number, kills, total):
	"""One batch, killed as often as asked or until it is done."""
	jobs, results = write_jobs(t, f"jobs{number}.jsonl"), t.path(f"results{number}.jsonl")
	before, killed = t.world.census(), collections.Counter()
	running = batch(t, jobs, results)
	while running.poll() is None:
		if killed.total() < kills:
			time.sleep(rng.uniform(0, LONGEST_PAUSE))
			who = kill_one(rng, running.pid)
			killed[who] += who is not None
		else:
			running.wait()
		if running.poll() is not None and running.returncode == -signal.SIGKILL:
			running.stderr.close()
			total["reaped"] += check_left(t, before | {"file": t.world.files()}, killed)
			running = batch(t, jobs, results)
	said = running.stderr.read()
	t.equal(running.returncode, 0, "exit status of the batch", said)
	running.stderr.close()
	total["reaped"] += check_left(t, before | {"file": t.world.files()}, killed)
	return results, +killed


@harness.case(f"{KILLS} kills under a batch with warm cells: no lie, nothing left, the next run works")
def kills(t):
	rng, total, verdicts, number = random.Random(SEED), collections.Counter(), collections.Counter(), 0
	while sum(total[kind] for kind in WEIGHTS) < KILLS:
		missing = KILLS - sum(total[kind] for kind in WEIGHTS)
		results, killed = play_round(t, rng, number, min(missing, KILLS_PER_ROUND), total)
		total.update(killed)
		number += 1
		check_results(t, results, verdicts)
		r = t.cell(code="print('fine')", lang="python", env={"BRIG_WARM_CELLS": "1"})
		t.equal(t.verdict(r, "ok").stdout, b"fine\n", "the next run", r)
		print(f"# killed {dict(total)}; results {dict(verdicts)}", flush=True)


if __name__ == "__main__":
	sys.exit(harness.main("kills", final="something was left, or a result was a lie"))
