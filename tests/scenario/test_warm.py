# SPDX-License-Identifier: Apache-2.0
"""Cells that are there before their request: the same cells, used once, and gone with whoever had them."""
import json
import os
import re
import signal
import subprocess
import time

import harness
from harness import case

WARM = {"BRIG_WARM_CELLS": "1"}


def batch(t, codes, *words, lang="python", env=None, status=0):
	jobs = "".join(json.dumps({"id": str(i), "language": lang, "code": code}) + "\n" for i, code in enumerate(codes))
	p = t.brig("batch", "--quiet", "--ordered", *words, t.path("jobs.jsonl", jobs), env=env or {})
	t.equal(p.rc, status, "exit status", p)
	return [json.loads(line) for line in p.out.splitlines()]


def outputs(t, rows):
	for r in rows:
		t.equal(r["verdict"], "ok", f"verdict of job {r['job']}", (r["reason"], r["stderr"]))
	return [r["stdout"] for r in rows]


def row_of(e):
	"""Without what differs from one cell to the next: names of groups, process and namespace numbers, host ids, time that was used."""
	used = e["check"] in ("wall_time", "cpu_time")
	return e["check"], e["declared"], "" if used else re.sub(r"brig-[a-z2-7]{16}-[\d-]+|\b\d{4,}\b", "N", e["enforced"]), e["kept"]


# Interpreters that wait, one that waits behind its compile step; processes that wait before they execute an interpreter, or a program.
PROGRAMS = {
	"python": "print(1)", "javascript": "console.log(1)", "typescript": "const one: number = 1; console.log(one)", "php": "<?php echo 1, PHP_EOL;",
	"shell": "echo 1", "bash": "echo 1", "perl": "print 1, qq(\n);", "c": "#include <stdio.h>\nint main(void) { puts(\"1\"); }",
}


def is_installed(t, lang):
	return any(row["name"] == lang and row["installed"] for row in json.loads(t.brig("languages", "--json").out)["languages"])


def keepers(pid):
	"""Processes named so below this one."""
	with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
		children = f.read().split()
	found = []
	for child in children:
		try:
			with open(f"/proc/{child}/stat", encoding="ascii") as f:
				stat = f.read()
			if "(brig-keeper)" in stat and ") Z " not in stat:	# one that was killed may not be buried yet
				found.append(int(child))
		except OSError:
			pass
	return found


@case("INV-6: a warm cell and a cold one give the same evidence, row by row")
def evidence(t):
	t.native_only("only native cells wait")
	for lang, code in PROGRAMS.items():
		if not is_installed(t, lang):
			continue
		cold = t.cell(code=code, lang=lang).json
		warm = t.cell(code=code, lang=lang, env=WARM).json
		t.equal((warm["verdict"], warm["stdout"]), ("ok", "1\n"), f"{lang}: the run itself", warm)
		t.equal(len(warm["evidence"]), len(cold["evidence"]), f"{lang}: rows")
		for a, b in zip(cold["evidence"], warm["evidence"]):
			t.equal(row_of(b), row_of(a), f"{lang}: evidence of {a['check']}")
		t.equal(warm["degraded"], cold["degraded"], f"{lang}: what is missing")


@case("the interpreter of a batch waits in its cell, behind walls, before its job comes")
def waiting(t):
	t.native_only("only native cells wait")
	rows = batch(t, ["print(open('/proc/self/maps').read().count('brig-wait') > 0)"] * 12, "--jobs", "1", "--warm", "2")
	t.equal(outputs(t, rows), ["True\n"] * 12, "each was made by the keeper")
	hits = sum(r["warm"] for r in rows)
	t.check(hits > 0, "no cell was there before its job", [r["timing"] for r in rows])
	stats = t.brig("stats", "--prometheus").out.decode()
	t.check(f"brig_warm_hits_total {hits}\n" in stats and f"brig_warm_misses_total {12 - hits}\n" in stats, "the metrics count otherwise", stats)
	rows = batch(t, ["print(open('/proc/self/maps').read().count('brig-wait') > 0)"] * 2, "--warm", "0")
	t.equal(outputs(t, rows), ["False\n"] * 2, "without warm cells none is")
	t.check(not any(r["warm"] for r in rows), "a cold cell says that it is warm", rows)


@case("the cell of a shell, of a compiled program and of TypeScript is there before its job, and nobody sees that")
def waiting_others(t):
	t.native_only("only native cells wait")
	look = "echo $$ $0; tr '\\0' '\\n' < /proc/$$/environ | sort; for f in /proc/$$/fd/*; do echo ${f##*/}; done; grep brig /proc/$$/maps | wc -l"
	for lang, code in (("shell", look), ("typescript", PROGRAMS["typescript"]), ("c", PROGRAMS["c"])):
		if not is_installed(t, lang):
			continue
		cold, = outputs(t, batch(t, [code], "--warm", "0", lang=lang))
		rows = batch(t, [code] * 10, "--jobs", "1", "--warm", "2", lang=lang)
		t.equal(outputs(t, rows), [cold] * 10, f"{lang}: what each has written")
		t.check(any(r["warm"] for r in rows), f"{lang}: no cell was there before its job", [r["timing"] for r in rows])


# Broken, so that the compile step is the one that decides and says of its own cell what it was.
BROKEN = {"c": "int main(void) { return }", "cpp": "int main() { return }", "go": "package main\nfunc main() { return 1 }", "rust": "fn main() { 1 }",
	  "typescript": "const one: number = ;"}


@case("the compiler's cell is there before its job, with the evidence of one that is made for it; what the program is given does not matter")
def waiting_compilers(t):
	t.native_only("only native cells wait")
	seen = 0
	for lang, code in BROKEN.items():
		if not is_installed(t, lang):
			continue
		seen += 1
		cold, = batch(t, [code], "--warm", "0", lang=lang)
		t.equal((cold["verdict"], cold["step"], cold["warm"]), ("error", "compile", False), f"{lang}: cold", cold)
		rows = batch(t, [code] * 6, "--jobs", "1", "--warm", "1", lang=lang)
		for r in rows:
			t.equal((r["verdict"], r["step"], r["stderr"], r["stdout"]), (cold["verdict"], cold["step"], cold["stderr"], cold["stdout"]), f"{lang}: the end", r)
			t.equal([row_of(e) for e in r["evidence"]], [row_of(e) for e in cold["evidence"]], f"{lang}: evidence")
		t.check(any(r["warm"] for r in rows), f"{lang}: no cell was there before its job", [r["timing"] for r in rows])
	if not seen:
		t.skip("no compiler is installed")


@case("a compiled program with arguments and variables runs the same whether its compiler's cell had waited or not")
def compiled_with_words(t):
	t.native_only("only native cells wait")
	if not is_installed(t, "c"):
		t.skip("needs a C compiler")
	code = "#include <stdio.h>\n#include <stdlib.h>\nint main(int n, char **v) { printf(\"%d %s %s\\n\", n, v[1], getenv(\"MINE\")); }\n"
	jobs = "".join(json.dumps({"language": "c", "code": code + f"// {i}\n", "args": ["word"], "env": {"MINE": "yes"}}) + "\n" for i in range(5))
	p = t.brig("batch", "--quiet", "--ordered", "--jobs", "1", "--warm", "1", t.path("jobs.jsonl", jobs))
	rows = [json.loads(line) for line in p.out.splitlines()]
	t.equal([(r["verdict"], r["stdout"], r["warm"]) for r in rows], [("ok", "2 word yes\n", False)] * 5, "what each did", p)


@case("verdicts of cells whose process waited: timeout, output, signal, exit code; and a program that has no room there")
def verdicts_others(t):
	for code, words, verdict in (
		("while :; do :; done", ("--timeout", "1"), "timeout"), ("while :; do echo xxxxxxxx; done", ("--output-limit", "1k"), "output_limit"),
		("kill -ABRT $$", (), "crash"), ("exit 3", (), "error")):
		t.verdict(t.cell(*words, code=code, lang="shell", env=WARM), verdict)
	large = "#" * (1500 << 10) + "\necho ran\n"
	cold, warm = (t.cell("--disk", "1m", code=large, lang="shell", env=env) for env in ({}, WARM))
	t.equal((warm.verdict, warm.json["reason"], warm.stdout), (cold.verdict, cold.json["reason"], cold.stdout), "the end of a program that does not fit", warm)


LEAVE = """
import os, sys, json, socket, threading
for place in ('/tmp', '/dev/shm', '/workspace'):
    open(place + '/left', 'w').write('x')
os.environ['LEFT'] = '1'
json.left = True
sys.modules['left'] = json
s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen()
t = socket.socket(); t.bind(('127.0.0.1', 9999)); t.listen()
print('left')
"""
LOOK = """
import os, sys, json, socket
found = [p for p in ('/tmp/left', '/dev/shm/left', '/workspace/left') if os.path.exists(p)]
found += [k for k in os.environ if k in ('LEFT', 'LD_PRELOAD') or k.startswith('BRIG')]
found += ['module'] if hasattr(json, 'left') or 'left' in sys.modules else []
for family, address in ((socket.AF_UNIX, '\\0left'), (socket.AF_INET, ('127.0.0.1', 9999))):
    try:
        socket.socket(family).connect(address)
        found.append(str(address))
    except OSError:
        pass
found += [p for p in os.listdir('/proc') if p.isdigit() and p not in ('1', '2')]
found += ['descriptor ' + f for f in os.listdir('/proc/self/fd') if int(f) > 3]
print(found)
"""


@case("what one run leaves is invisible to the next: files, modules, variables, sockets, processes, descriptors")
def nothing_shared(t):
	rows = batch(t, [LEAVE, LOOK] * 8, "--jobs", "2", "--warm", "2")
	t.equal(outputs(t, rows), ["left\n", "[]\n"] * 8, "what each found")


@case("random state and ids differ from run to run; the hash seed where the result does not say that it is shared")
def differs(t):
	code = "import os, random, uuid\nprint(random.random(), uuid.uuid4(), os.urandom(8).hex(), hash('a'))"
	for policy, forks in (("warm_forks: 0\n", 0), ("warm_forks: 1\n", 1), ("warm_forks: 8\n", 8)):
		rows = batch(t, [code] * 24, "--jobs", "2", "--warm", "2", env={"BRIG_POLICY": t.path("sandbox.yaml", policy)})
		seen = [line.split() for line in outputs(t, rows)]
		for column in range(3):
			t.equal(len({words[column] for words in seen}), 24, f"{policy}different values in column {column}", seen)
		own = [words[3] for words, r in zip(seen, rows) if not r["forked"]]
		t.equal(len(set(own)), len(own), f"{policy}hash seeds of interpreters that were started for their program", seen)
		shared = [words[3] for words, r in zip(seen, rows) if r["forked"]]
		most = max((shared.count(seed) for seed in shared), default=0)
		t.check(most <= forks, f"{policy}{most} programs had the seed of one zygote", seen)
		t.check(forks or not shared, f"{policy}a fork", rows)


def can_fork(result):
	"""Whether brig has ids of its own to give to cells here, and control groups: root's, or those of a user with a range and a delegation."""
	return not {"id_separation", "memory_limit"} & {d["protection"] for d in result["degraded"]}


@case("forks: the second request of a kind makes an interpreter that later ones are forked from, and it is replaced")
def forked(t):
	t.native_only("only native cells are filled by forks")
	policy = t.path("sandbox.yaml", "warm_forks: 6\nwarm: [json]\n")
	code = "import os, sys, threading\nprint('json' in sys.modules, os.getpid(), os.getppid(), threading.main_thread().native_id)"
	rows = batch(t, [code] * 60, "--jobs", "1", "--warm", "2", env={"BRIG_POLICY": policy})
	t.equal(set(outputs(t, rows)), {"True 2 1 2\n"}, "what each saw")
	n = sum(r["forked"] for r in rows)
	if not can_fork(rows[0]):
		t.equal(n, 0, "forks: they need ids of their own, and control groups")
		return
	t.check(n > 6, f"{n} forks of 60, so that none was replaced", [(r["warm"], r["forked"]) for r in rows])
	t.check(not any(r["forked"] for r in rows[:2]), "a fork before there can be one", rows[:2])


@case("INV-6: a fork and a cold cell give the same evidence, row by row")
def forked_evidence(t):
	t.native_only("only native cells are filled by forks")
	cold = t.cell(code="print(1)", lang="python").json
	rows = [r for r in batch(t, ["print(1)"] * 30, "--jobs", "1", "--warm", "1") if r["forked"]]
	if not can_fork(cold):
		t.skip("forks need root, or a range of ids and control groups")
	t.check(rows, "no fork in thirty runs")
	for r in rows:
		t.equal(len(r["evidence"]), len(cold["evidence"]), "rows")
		for a, b in zip(cold["evidence"], r["evidence"]):
			t.equal(row_of(b), row_of(a), f"evidence of {a['check']}")


@case("forks: a waiting one has copied what programs write to, not everything; also with modules whose locks are new in a fork")
def forked_memory(t):
	t.native_only("only native cells are filled by forks")
	policy = t.path("sandbox.yaml", "warm: [json, re, threading]\n")
	code = "import re\nprint(re.search(r'Private_Dirty: *(\\d+)', open('/proc/self/smaps_rollup').read())[1])"
	rows = batch(t, [code] * 40, "--jobs", "1", "--warm", "1", env={"BRIG_POLICY": policy})
	kib = [int(text) for text in outputs(t, rows)]
	own = [n for n, r in zip(kib, rows) if not r["forked"]]
	forks = sorted(n for n, r in zip(kib, rows) if r["forked"])
	if not can_fork(rows[0]):
		t.skip("forks need root, or a range of ids and control groups")
	t.check(own and len(forks) > 10, "interpreters of both kinds", kib)
	# The first has rehearsed, and its successor may have been made before the result was there.
	t.check(forks[len(forks) // 2] < 0.6 * min(own), "private memory of forks, in KiB, and of interpreters with their own", (forks, own))


@case("a program begins in its workspace by the name that it is to see, forked, waiting or cold")
def working_folder(t):
	t.native_only("containers have one name for it")
	for name in ("/home/user", "/mnt/data"):
		rows = batch(t, ["import os; print(os.getcwd())"] * 20, "--jobs", "1", "--warm", "1", "--set", f"workspace_alias={name}")
		t.equal(set(outputs(t, rows)), {name + "\n"}, "where each began", [(r["warm"], r["forked"]) for r in rows])
		t.check(not can_fork(rows[0]) or any(r["forked"] for r in rows), "no fork in twenty runs")


def status_of(pid):
	with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
		return {key: value.split() for key, _, value in (line.partition(":") for line in f)}


def find_zygote(keeper):
	"""The child of a keeper that executes a program and is in no cell."""
	with open(f"/proc/{keeper}/task/{keeper}/children", encoding="ascii") as f:
		children = f.read().split()
	for child in children:
		try:
			status = status_of(child)
			if status["Name"][0].startswith("python") and len(status["NSpid"]) == 1:
				return int(child), status
		except (OSError, KeyError):
			pass
	return None


@case("the interpreter that forks come from has no capability, an id of nobody's, and sees no process but itself")
def zygote_walls(t):
	t.native_only("only native cells are filled by forks")
	if not can_fork(t.cell(code="print(1)", lang="python").json):
		t.skip("forks need root, or a range of ids and control groups")
	if os.getuid() != 0:
		t.skip("needs root to look at it")
	jobs = t.path("jobs.jsonl", "".join(json.dumps({"language": "python", "code": "import time; time.sleep(0.2)"}) + "\n" for _ in range(100)))
	p = t.popen([harness.brig_path(), "batch", "--quiet", "--jobs", "2", "--warm", "2", jobs], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	try:
		until(t, "a zygote", lambda: any(map(find_zygote, keepers(p.pid))))
		keeper, = keepers(p.pid)
		pid, status = find_zygote(keeper)
		t.equal({key: status[key] for key in status if key.startswith("Cap")}, {f"Cap{s}": ["0" * 16] for s in ("Inh", "Prm", "Eff", "Bnd", "Amb")}, "capabilities")
		t.equal((status["NoNewPrivs"], status["Groups"]), (["1"], []), "no_new_privs and groups")
		ours = {"0", str((harness.test_ids() or (0, 0))[0])}
		t.check(len(set(status["Uid"])) == 1 and not ours & set(status["Uid"]), "its id", status["Uid"])
		if harness.is_root():	# who see others' whatever the mount says
			with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as f:
				shown = [line for line in f if line.split()[4] == "/proc"]
			t.check("hidepid=invisible" in shown[-1] and "subset=pid" in shown[-1], "its /proc", shown)
		else:
			t.equal(set(os.listdir(f"/proc/{pid}/root/proc")), {"self", str(pid)}, "what its /proc has")
		apart = {ns for ns in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup") if os.readlink(f"/proc/{pid}/ns/{ns}") != os.readlink(f"/proc/{keeper}/ns/{ns}")}
		t.equal(apart, {"mnt", "net", "ipc", "uts", "cgroup"}, "namespaces that it does not share with the keeper")
		t.equal(os.readlink(f"/proc/{keeper}/ns/user") == os.readlink("/proc/self/ns/user"), harness.is_root(), "whether the keeper stays in our user namespace")
		t.equal(status_of(keeper)["Seccomp"], ["2"], "the keeper's own filter")
	finally:
		p.kill()
		p.communicate()


HOSTILE = [
	"import ctypes; ctypes.string_at(0)",	# dies of its own memory
	"import ctypes; ctypes.memset(id(int), 0, 4096); print(int)",
	"import os, signal\nfor p in (1, os.getppid()):\n    try: os.kill(p, signal.SIGKILL)\n    except OSError: pass",
	"import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0)",
	"import os\nfor fd in range(3, 200):\n    try: os.write(fd, b'x' * 100)\n    except OSError: pass",
	"import os; os.closerange(0, 100)",
	"import os\nwhile os.fork(): pass",
]


@case("a guest that ruins its interpreter, its cell or its memory changes nothing for the next run")
def hostile(t):
	codes = [code for bad in HOSTILE for code in (bad, "print('fine')")]
	rows = batch(t, codes, "--jobs", "2", "--warm", "2", "--timeout", "3")
	t.equal(outputs(t, rows[1::2]), ["fine\n"] * len(HOSTILE), "the runs after them")
	t.check(not any(r["verdict"] in ("failed", "violated") for r in rows), "a guest made brig fail", [(r["verdict"], r["reason"]) for r in rows])


@case("verdicts of warm cells: timeout, memory, output, processes, signal, exit code")
def verdicts(t):
	for code, words, verdict in (
		("while True: pass", ("--timeout", "1"), "timeout"), ("x = bytearray(1 << 30)", ("--memory", "64m"), "memory_limit"),
		("print('x' * 100000)", ("--output-limit", "1k"), "output_limit"), ("import os; os.abort()", (), "crash"), ("import sys; sys.exit(3)", (), "error")):
		r = t.cell(*words, code=code, lang="python", env=WARM)
		lacks = verdict in [d["protection"] for d in r.json["degraded"]]	# then rlimits stand in, and the program sees them
		t.verdict(r, "error" if lacks else verdict)


@case("a keeper that is killed costs the runs of that moment, and no more; nothing of it is left")
def killed_keeper(t):
	t.native_only("only native cells wait")
	codes = ["import time; time.sleep(0.2); print('ok')"] * 60
	jobs = t.path("jobs.jsonl", "".join(json.dumps({"language": "python", "code": c}) + "\n" for c in codes))
	p = t.popen([harness.brig_path(), "batch", "--quiet", "--jobs", "2", "--warm", "2", jobs], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	kills = 0
	deadline = time.monotonic() + harness.GUARD
	while kills < 3 and p.poll() is None and time.monotonic() < deadline:
		for pid in keepers(p.pid):
			time.sleep(0.5)
			try:
				os.kill(pid, signal.SIGKILL)
				kills += 1
			except ProcessLookupError:
				pass
		time.sleep(0.05)
	out, err = p.communicate(timeout=harness.GUARD)
	rows = [json.loads(line) for line in out.splitlines()]
	t.equal((p.returncode, len(rows)), (0, 60), "every job has a line", err)
	t.equal(kills, 3, "keepers that were killed")
	bad = [r for r in rows if r["verdict"] != "ok"]
	t.check(all(r["verdict"] == "failed" and "keeper" in r["reason"] for r in bad), "another verdict", [(r["verdict"], r["reason"]) for r in bad])
	# Two at a time, and one that was handed over while its keeper died: whether its program had begun nobody knows any more.
	t.check(len(bad) <= 3 * 3, "more runs were lost than were under way", [r["reason"] for r in bad])


@case("a caller that is killed takes its keeper, its waiting cells and its runs along")
def killed_caller(t):
	t.native_only("only native cells wait")
	jobs = t.path("jobs.jsonl", "".join(json.dumps({"language": "python", "code": "import time; time.sleep(60)"}) + "\n" for _ in range(4)))
	for _ in range(3):
		p = t.popen([harness.brig_path(), "batch", "--quiet", "--jobs", "2", "--warm", "2", jobs], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		deadline = time.monotonic() + harness.GUARD
		while not keepers(p.pid) and time.monotonic() < deadline:
			time.sleep(0.02)
		t.check(keepers(p.pid), "no keeper was started")
		time.sleep(0.3)
		p.kill()
		p.communicate()


@case("INV-7: cells do not wait beyond the memory that they may have together")
def memory_ceiling(t):
	t.native_only("only native cells wait")
	for most, may_wait in (("1m", False), ("1g", True)):
		policy = t.path("sandbox.yaml", f"warm_memory: {most}\n")
		rows = batch(t, ["print(1)"] * 12, "--jobs", "1", "--warm", "4", env={"BRIG_POLICY": policy})
		t.equal(outputs(t, rows), ["1\n"] * 12, f"warm_memory {most}: what each wrote")
		if not any(d["protection"] == "memory_limit" for d in rows[0]["degraded"]):	# else nobody counts
			t.equal(any(r["warm"] for r in rows), may_wait, f"warm_memory {most}: whether any had waited")


@case("the policy's warm_cells, and modules of its list that are there already")
def policy(t):
	t.native_only("only native cells wait")
	policy = t.path("sandbox.yaml", "warm_cells: 1\nwarm: [json, decimal]\n")
	r = t.cell("--policy", policy, code="import sys; print('json' in sys.modules, 'decimal' in sys.modules)", lang="python")
	t.equal((r.verdict, r.stdout), ("ok", b"True True\n"), "modules before the first import", r)
	broken = t.path("broken.yaml", "warm_cells: 1\nwarm: [no_such_module]\n")
	r = t.cell("--policy", broken, code="print('cold')", lang="python")
	t.equal((r.verdict, r.stdout), ("ok", b"cold\n"), "with a module that cannot be loaded the run has a cell of the ordinary kind", r)


def cells_of(t, *owners):
	return [row for row in json.loads(t.brig("ps", "--json").out)["cells"] if row["owner"] in owners]


def until(t, what, condition):
	deadline = time.monotonic() + harness.GUARD
	while not condition():
		t.check(time.monotonic() < deadline, f"never happened: {what}")
		time.sleep(0.02)


@case("ps shows a warm cell as the run that it serves, and others as waiting; kill ends that run, reap touches neither")
def listed(t):
	t.native_only("only native cells wait")
	code = t.path("sleep.py", "import time\nprint('up', flush=True)\ntime.sleep(1000)\n")
	p = t.popen(t.run_args("--timeout", "30", code), env=WARM, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	t.equal(p.stdout.readline(), b"up\n", "the program's first line")
	keeper = keepers(p.pid)
	t.equal(len(keeper), 1, "keepers")
	if not cells_of(t, p.pid, *keeper):
		p.kill()
		p.communicate()
		t.skip("native cells have no control group here")
	until(t, "a cell that waits for another run", lambda: any(row["waiting"] for row in cells_of(t, *keeper)))
	mine, waiting = cells_of(t, p.pid), [row for row in cells_of(t, *keeper) if row["waiting"]]
	t.equal([(row["waiting"], row["orphan"]) for row in mine], [(False, False)], "the run's own cell", mine)
	refused = t.brig("kill", waiting[0]["id"])
	t.check(refused.rc == 125 and b"is no run" in refused.err, "a cell that waits was killed", refused)
	t.brig("reap")
	t.equal([row["id"] for row in cells_of(t, p.pid)], [mine[0]["id"]], "cells after reap")
	t.check(waiting[0]["id"] in [row["id"] for row in cells_of(t, *keeper)], "reap removed a cell that waits", waiting)
	ended = t.brig("kill", mine[0]["id"][:10])
	out, err = p.communicate(timeout=harness.GUARD)
	t.equal((ended.rc, p.returncode), (0, 130), "exit status of kill and of the run", (ended, out, err))
	shown = json.loads(t.brig("show", "--json", mine[0]["id"]).out)
	t.equal((shown["id"], shown["verdict"]), (mine[0]["id"], "cancelled"), "the id of ps is the run's")
