# SPDX-License-Identifier: Apache-2.0
"""The bytes that were inspected are the bytes that run, and the caller's own bytes stay the caller's."""
import hashlib
import json
import os
import signal
import subprocess
import threading
import time

import harness
from harness import BACKEND, Result, brig_path, as_in_a_cell, case

ROUNDS = int(os.environ.get("BRIG_TEST_ROUNDS", "60"))


def project(t, files, name="project"):
	top = t.path(name)
	os.makedirs(top, exist_ok=True)
	for path, text in files.items():
		with open(os.path.join(top, path), "w", encoding="utf-8") as f:
			f.write(text)
	user = harness.test_ids()
	if user:
		for one in [top, *(os.path.join(top, n) for n in files)]:
			os.chown(one, *user)
	return top


def changes(r):
	return [(row["change"], row["path"]) for row in r.json["changes"]]


def swap(path, text):
	"""Another file under the same name, at once."""
	new = os.path.dirname(path) + ".new"	# beside the project, not in it
	with open(new, "w", encoding="utf-8") as f:
		f.write(text)
	os.replace(new, path)


# ---- I2: the program of a workspace ---------------------------------------------------------------

AGAIN = """import sys
print('inspected', flush=True)
sys.stdin.readline()
print(open('main.py').read() == open(__file__).read(), 'swa' + 'pped' in open(__file__).read(), __file__)
"""


@case("a program of the project is the copy that was inspected, whatever its owner makes of the file meanwhile")
def i2_program_is_the_inspected_copy(t):
	top = project(t, {"main.py": AGAIN})
	main = os.path.join(top, "main.py")
	p = t.popen(t.run_args("--workspace", top, main), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	t.equal(p.stdout.readline(), b"inspected\n", "first line")
	with open(main, "w", encoding="utf-8") as f:	# the very file, which no cache of names hides
		f.write("print('swapped')\n" + AGAIN)
	out, err = p.communicate(b"go\n", timeout=harness.GUARD)
	t.equal(as_in_a_cell(out), b"True False /workspace/main.py\n", "what the program finds under its own name", err)
	t.check(b"modified" not in err, "the owner's swap is called a change of the program's", err)


@case("a program that swaps with another while it is started is the inspected one each time")
def i2_swapped_while_it_starts(t):
	good, bad = "print('good')\n", "print('evil')\n"
	top = project(t, {"main.py": good})
	main, over = os.path.join(top, "main.py"), threading.Event()

	def swapper():
		while not over.is_set():
			swap(main, bad)
			swap(main, good)
	thread = threading.Thread(target=swapper)
	thread.start()
	ran = {}
	try:
		for _ in range(ROUNDS if not BACKEND else 5):
			r = t.verdict(t.cell("--workspace", top, main), "ok")
			ran[r.json["id"]] = {b"good\n": good, b"evil\n": bad}[r.stdout]
	finally:
		over.set()
		thread.join()
	entries = {e["id"]: e["code_sha256"] for e in map(json.loads, t.brig("audit", "show", "--json").out.splitlines())
		   if e.get("event") == "run"}
	wrong = [i for i, code in ran.items() if entries[i] != hashlib.sha256(code.encode()).hexdigest()]
	t.equal(wrong, [], f"of {len(ran)} runs, those whose entry has the hash of other code than what ran")


@case("a program of the project keeps its name, its neighbours and its mode, and what it does to itself is a change")
def i2_program_in_its_project(t):
	code = "import os, sib\nprint(__file__, sib.x, oct(os.stat('main.py').st_mode & 0o777), sorted(os.listdir('.')))\n"
	top = project(t, {"main.py": code, "sib.py": "x = 3\n"})
	main = os.path.join(top, "main.py")
	os.chmod(main, 0o750)
	r = t.verdict(t.cell("--env", "PYTHONDONTWRITEBYTECODE=1", "--workspace", top, main), "ok")
	t.equal(as_in_a_cell(r.stdout), b"/workspace/main.py 3 0o750 ['main.py', 'sib.py']\n", "output", r)
	t.equal(changes(r), [], "changes", r)
	swap(main, "open('main.py', 'a').write('# more\\n')\n")
	r = t.verdict(t.cell("--workspace", top, main), "ok")
	t.equal(changes(r), [("modified", "main.py")], "changes of a program that writes itself", r)
	swap(main, "import os\nos.remove('main.py')\n")
	r = t.verdict(t.cell("--workspace", top, main), "ok")
	t.equal(changes(r), [("deleted", "main.py")], "changes of a program that removes itself", r)


# ---- I3: code on standard input ----------------------------------------------------------------------

def inspected(t, *command, stdin=b"print(1)\n", trust="unknown", more=()):
	return Result(t.run([brig_path(), "exec", "--json", "--trust", trust, *more, "--", *command], stdin=stdin,
			    env={"BRIG_INSPECTION": "guard"}))


@case("a command whose program arrives on standard input is blocked below trusted, and says how to do it")
def i3_code_on_stdin(t):
	for command in (["awk", "-f", "-"], ["sh"], ["bash", "-s"], ["python3", "-"], ["python3", "-W", "ignore"], ["sh", "/dev/stdin"],
			["env", "sh"], ["sed", "-f", "/dev/stdin"]):
		for trust in ("untrusted", "unknown"):
			r = t.verdict(inspected(t, *command, trust=trust), "blocked")
			t.check(any(f["rule"] == "sh-stdin-code" for f in r.json["findings"]), f"{command}: no such finding", r)
	t.check("brig run" in str(r.json["findings"]), "the remedy names no other way", r.json["findings"])


@case("a command that reads data, or has no input, runs as before")
def i3_data_on_stdin(t):
	r = t.verdict(inspected(t, "awk", "{ print $1 }", stdin=b"a b\n"), "ok")
	t.equal(r.stdout, b"a\n", "output", r)
	t.verdict(inspected(t, "sh", more=("--stdin", "none")), "ok")


# ---- FIFO ------------------------------------------------------------------------------------------

@case("a FIFO that is named where a file belongs is refused at once")
def fifo_is_refused(t):
	fifo = t.path("pipe.py")
	os.mkfifo(fifo)
	os.chmod(fifo, 0o666)
	rows = [["run", fifo], ["check", fifo], ["run", "--stdin", fifo, "-c", "1", "--lang", "python"], ["receipt", "verify", fifo],
		["run", "--policy", fifo, "-c", "1", "--lang", "python"], ["run", "--receipt", fifo, "-c", "1", "--lang", "python"]]
	for words in rows:
		p = t.brig(*words)
		t.check(p.rc in (2, 64, 125), "not refused", p)
		t.check(b"FIFO" in p.err or b"No such device" in p.err, "the reason does not name it", p)


@case("rules in a FIFO are an error, not no rules")
def fifo_of_rules(t):
	fifo = t.path("rules.yaml")
	os.mkfifo(fifo)
	os.chmod(fifo, 0o666)
	p = t.brig("check", "--rules", fifo, t.path("x.py", "print(1)\n"))
	t.check(p.rc not in (0, 1) and b"FIFO" in p.err, "rules that cannot be read were taken for none", p)


@case("what the caller holds open is read as a stream: /dev/stdin, and a shell's <(command)")
def fifo_streams(t):
	p = t.brig("run", "--lang", "python", "/dev/stdin", stdin=b"print(6)\n")
	t.equal(p.out, b"6\n", "code from /dev/stdin", p)
	p = t.run(["/bin/bash", "-c", f"{brig_path()} run --lang python <(echo 'print(5)')"], stdin=b"")
	t.equal(p.out, b"5\n", "code from <(command)", p)


# ---- the caller's stdin ---------------------------------------------------------------------------

BLOCKED = "breakpoint()\n"


@case("a run that is blocked with its cell built prints nothing of the caller's input, and does not wait for its end")
def stdin_is_not_output(t):
	top = project(t, {".env": "KEY=1\n"})
	bad = t.path("bad.py", BLOCKED)
	r = t.verdict(t.cell("--workspace", top, bad, env={"BRIG_INSPECTION": "guard"}), "blocked")
	t.equal((r.stdout, r.stderr), (b"", b""), "output of a program that never ran", r)
	p = t.brig("run", "--workspace", top, bad, env={"BRIG_INSPECTION": "guard"})
	t.equal((p.rc, p.out), (126, b""), "status and output", p)


@case("a brig that is killed with its whole process group leaves nothing")
def stdin_killed_group(t):
	p = t.popen(t.run_args("--lang", "python", "-c", "print('up', flush=True); input()"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
		    stderr=subprocess.DEVNULL, start_new_session=True)
	t.equal(p.stdout.readline(), b"up\n", "first line")
	os.killpg(p.pid, signal.SIGKILL)
	p.wait()
	p.stdout.close()
	p.stdin.close()
	t.after_kill()	# what stays is counted after every case


# ---- leftovers -------------------------------------------------------------------------------------

def has_program(group):
	with open(os.path.join(group, "cgroup.procs"), encoding="utf-8") as f:
		pids = f.read().split()
	for pid in pids:
		with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
			if f.read().startswith("python"):
				return True
	return False


def groups_of(pid):
	"""The control groups of the cell that a brig has made, as far as its program is in them: one that is tried, or not ready, may go again."""
	with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
		roots = [w[4] for w in map(str.split, f) if w[w.index("-") + 1] in ("cgroup", "cgroup2")]
	found = [path for root in roots for path, _, _ in os.walk(root) if os.path.basename(path).startswith("brig-") and f"-{pid}-" in path]
	try:
		return [path for path in found if has_program(path)]
	except OSError:	# gone meanwhile
		return []


@case("what clean-up leaves behind is in the result, in the audit entry, in the history and in the metrics")
def settle_leftovers_are_recorded(t):
	t.native_only("control groups of native cells")
	if not harness.is_root():
		t.skip("needs root to hold a control group")
	p = t.popen(t.run_args("--json", "--lang", "python", "-c", "print(input())", "--set", "cleanup_timeout_ms=300"),
		    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	deadline = time.monotonic() + harness.GUARD
	groups = []
	while not groups and time.monotonic() < deadline:
		groups = groups_of(p.pid)
	t.check(groups, "the cell has no control group")
	held = os.path.join(groups[0], "held")
	os.mkdir(held)
	try:
		out, err = p.communicate(b"go\n", timeout=harness.GUARD)
		r = json.loads(out)
		t.equal((r["verdict"], r["stdout"]), ("ok", "go\n"), "the program's own end", r)
		t.check(any("left behind" in w for w in r["warnings"]), "no warning", r["warnings"])
		entry = [e for e in map(json.loads, t.brig("audit", "show", "--all", "--json").out.splitlines()) if e.get("event") == "leftover"]
		t.check([e["id"] for e in entry] == [r["id"]] and r["id"] in entry[0]["what"], "no audit entry names it", entry)
		t.equal(t.brig("audit", "verify").rc, 0, "the log's own verification")
		shown = t.brig("show", r["id"])
		t.check(b"left behind" in shown.out, "the history does not show it", shown)
		stats = t.brig("stats", "--prometheus")
		t.check(b"brig_leftovers_total 1" in stats.out, "the metrics do not count it", stats)
	finally:
		os.rmdir(held)	# the janitor goes on, and removes what it held


# ---- ids ---------------------------------------------------------------------------------------------

@case("cells of brigs in different pid namespaces have different host ids")
def ids_are_unique_across_pid_namespaces(t):
	t.native_only("host ids of native cells")
	if not harness.is_root():
		t.skip("needs root to make pid namespaces")
	runs = []
	for i in range(3):
		words = ["/usr/bin/unshare", "--pid", "--fork", "--mount-proc", *t.run_args("--json", "--lang", "python", "-c", "input()")]
		runs.append(t.popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
				    env={"BRIG_STATE": f"{t.state}-{i}"}))
	deadline = time.monotonic() + harness.GUARD
	while len([row for row in t.world.processes() if row.endswith(" python3")]) < 3 and time.monotonic() < deadline:
		time.sleep(0.02)	# all three cells are there at once
	seen = []
	for p in runs:
		out, err = p.communicate(b"\n", timeout=harness.GUARD)
		r = json.loads(out)
		t.equal(r["verdict"], "ok", "verdict", r)
		seen += [row["enforced"] for row in r["evidence"] if row["check"] in ("host_uid", "init_host_uid")]
	t.equal(len(set(seen)), 6, "number of host ids", seen)
