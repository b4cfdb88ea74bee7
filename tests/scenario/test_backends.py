# SPDX-License-Identifier: Apache-2.0
"""The choice of a backend, running without isolation, and what is found and removed of killed runs."""
import json
import os
import signal
import stat
import subprocess

import schema
from harness import BACKEND, GUARD, ROOT, Failed, Result, as_in_a_cell, brig_path, case, is_root
from projects import contents, project

AUTO = {"BRIG_BACKEND": "auto"}
NO_ENGINE = {**AUTO, "DOCKER_HOST": "unix:///nonexistent/engine.sock", "BRIG_DOCKER_HOST": "unix:///nonexistent/engine.sock"}
DIRECT = {"SECURITY_ENABLE_SANDBOX": "false"}
EXTENSION = {"python": ".py", "javascript": ".js", "go": ".go", "shell": ".sh", "c": ".c"}


def cell(t, *words, env=None, prefix=(), **kw):
	"""`brig run --json` without the suite's extra words: which backend runs is the point here."""
	r = Result(t.run([*prefix, brig_path(), "run", "--json", *map(str, words)], env={**AUTO, **(env or {})}, **kw))
	t.ids.append(r.json.get("id"))
	return r


def direct(t, code, *words, lang="python", env=None):
	path = t.path("program" + EXTENSION[lang], code)
	return cell(t, "--lang", lang, *words, path, env={**DIRECT, **(env or {})})


def document(t, command, env=None):
	p = t.brig(command, "--json", env={**NO_ENGINE, **(env or {})})
	t.equal(p.rc, 0, f"exit status of brig {command}", p)
	return json.loads(p.out)


def start(t, code, *words, env=None, lang="shell"):
	"""A run that has said "ready" and goes on."""
	p = t.popen([brig_path(), "run", *words, "--lang", lang, t.path("program" + EXTENSION[lang], code)], env={**NO_ENGINE, **(env or {})},
		    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	line = p.stdout.readline()
	if line != b"ready\n":
		p.kill()
		raise Failed(f"the program did not begin: {line!r} {p.communicate()!r}")
	return p


def family(pid):
	"""A process and all that descend from it."""
	found = [pid]
	for up in found:
		try:
			with open(f"/proc/{up}/task/{up}/children", encoding="ascii") as f:
				found += map(int, f.read().split())
		except OSError:
			pass
	return found


def end_all(p):
	"""Supervisor, janitor and cell at one stroke: none of them can clean up after another."""
	pids = family(p.pid)
	for sig in (signal.SIGSTOP, signal.SIGKILL):
		for pid in pids:
			try:
				os.kill(pid, sig)
			except ProcessLookupError:
				pass
	p.communicate()


# ---- an image, and users by name --------------------------------------------------------------------

@case("an image without an engine: the next backend runs, and the result says that the image is not used")
def image_not_used(t):
	for env, words in ((NO_ENGINE, ()), ({**NO_ENGINE, "BRIG_BACKEND": "native"}, ()), (NO_ENGINE, ("--trust", "untrusted"))):
		r = cell(t, "--lang", "shell", "-c", "echo ran", *words, env={**env, "SECURITY_DOCKER_IMAGE": "python:3"})
		t.verdict(r, "ok")
		t.equal(r.json["backend"], "native", "backend", r)
		told = [w for w in r.json["warnings"] if "image 'python:3' (SECURITY_DOCKER_IMAGE) is not used" in w]
		t.equal(len(told), 1, "warnings about the image", r.json["warnings"])
		if env is NO_ENGINE:
			t.check(any("nonexistent" in w for w in r.json["warnings"]), "why docker was not taken", r.json["warnings"])


@case("a native cell knows one user by name, and refuses others with the remedy")
def native_user(t):
	r = cell(t, "--lang", "shell", "-c", "id -un; id -u", env={"BRIG_BACKEND": "native", "BRIG_USER": "sandbox:sandbox"})
	t.verdict(r, "ok")
	t.equal(r.stdout, b"sandbox\n1000\n", "the program's user", r)
	r = cell(t, "--lang", "shell", "-c", "echo ran", env={"BRIG_BACKEND": "native", "BRIG_USER": "node"})
	t.verdict(r, "refused")
	t.check("1000:1000" in r.reason and "docker" in r.reason, "the remedy", r)


# ---- direct ---------------------------------------------------------------------------------------

@case("direct: the result says so, loudly, and fits the schema")
def direct_is_loud(t):
	r = direct(t, "print(6 * 7)\n")
	t.verdict(r, "ok")
	t.equal((r.json["backend"], r.stdout), ("direct", b"42\n"), "backend and output", r)
	t.check(b"NO ISOLATION" in r.err, "stderr warns, with --json too", r.err)
	t.check(any("NO ISOLATION" in w for w in r.json["warnings"]), "the result warns", r.json["warnings"])
	with open(os.path.join(ROOT, "data", "schemas", "result.json"), encoding="utf-8") as f:
		wrong = schema.errors(r.json, json.load(f))
	t.check(not wrong, "the result fits data/schemas/result.json", wrong[:5])


@case("direct: every missing protection is listed, and what is kept has evidence")
def direct_degraded(t):
	r = direct(t, "print(1)\n")
	missing = {"user_ns", "pid_ns", "mount_ns", "net_ns", "ipc_ns", "uts_ns", "cgroup_ns", "time_ns", "memory_limit", "swap_limit",
		   "pids_limit", "cpu_quota", "cpu_time", "socket_memory", "disk_limit", "read_only_root", "proc_subset", "seccomp",
		   "landlock", "nested_userns", "user_counts"}
	if not is_root():
		missing |= {"id_separation", "no_capabilities"}
	t.equal(r.degraded, missing, "degraded", r)
	r = direct(t, "print(1)\n", "--set", "disk_io_bps=1m")
	t.equal(r.degraded, missing | {"disk_io"}, "degraded, with a promise more", r)
	kept = {row["check"] for row in r.json["evidence"] if row["kept"]}
	want = {"open_files", "core_dumps", "no_new_privs", "wall_time", "output", "no_process_left"}
	if is_root():
		want |= {"host_uid", "id_separation", "groups", "capabilities"}
	t.check(want <= kept, "kept", kept)
	shared = {row["check"]: row["enforced"] for row in r.json["evidence"]}
	t.equal(shared["net_ns"], "shared", "the network namespace")


@case("direct: verdicts are those of a cell")
def direct_verdicts(t):
	for words, code, verdict in (
		((), "raise SystemExit(3)", "error"),
		((), "import os; os.kill(os.getpid(), 11)", "crash"),
		(("--timeout", t.wall(1)), "import time; time.sleep(600)", "timeout"),
		(("--set", "cpu_time=1", "--timeout", 30), "while True: pass", "cpu_limit"),
		(("--output-limit", "1000"), "print('x' * 100000)", "output_limit"),
		(("--disk", "1m"), "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
		 "open('big', 'wb').write(b'x' * 4000000)", "disk_limit"),
	):
		t.verdict(direct(t, code + "\n", *words), verdict)


@case("direct: memory of all processes together is watched")
def direct_memory(t):
	r = direct(t, """
import os, time
for i in range(3):
	if os.fork() == 0:
		x = bytearray(60 << 20)
		for at in range(0, len(x), 4096):
			x[at] = 1
		time.sleep(600)
time.sleep(600)
""", "--memory", "100m", "--timeout", 30)
	t.verdict(r, "memory_limit")


@case("direct: languages, compiled ones too")
def direct_languages(t):
	for lang, code in (("shell", "echo hi\n"), ("javascript", "console.log('hi')\n"),
			   ("c", '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n')):
		r = direct(t, code, lang=lang)
		if r.verdict == "refused" and "not installed" in r.reason:
			continue
		t.verdict(r, "ok")
		t.equal((r.json["backend"], r.stdout), ("direct", b"hi\n"), f"{lang}: backend and output", r)


@case("direct: the environment is clean, the workspace private, stdin and arguments arrive")
def direct_surroundings(t):
	code = """
import os, stat, sys
print(sorted(os.environ))
print(oct(stat.S_IMODE(os.stat('.').st_mode)), sorted(os.listdir('.')), os.getuid() != 0 or 'root')
print(sys.argv[1:], sys.stdin.read(), os.path.realpath('.') == os.path.dirname(os.path.abspath(__file__)))
print([fd for fd in os.listdir('/proc/self/fd') if int(fd) > 3], os.getsid(0) == os.getpid())
"""
	r = cell(t, t.path("program.py", code), "--", "a b", env={**DIRECT, "SECRET": "x"}, stdin=b"input")
	t.verdict(r, "ok")
	lines = r.stdout.decode().splitlines()
	t.check("SECRET" not in lines[0] and "PATH" in lines[0], "environment", lines[0])
	t.equal(lines[1], "0o700 ['program.py'] True", "workspace and user", r)
	t.equal(lines[2], "['a b'] input True", "arguments, stdin, place", r)
	t.equal(lines[3], "[] True", "descriptors and session", r)


@case("direct: the inspection still reads the code first")
def direct_inspection(t):
	r = cell(t, "-l", "python", "-c", "import os; os.kill(-1, 0)", env={**DIRECT, "BRIG_INSPECTION": "guard"})
	t.verdict(r, "blocked")
	t.equal(r.stdout, b"", "nothing ran", r)


@case("direct: daemons and deep folders are gone afterwards")
def direct_leaves_nothing(t):
	r = direct(t, """
import os, time
for _ in range(3):
	if os.fork() == 0:
		os.setsid()
		if os.fork() == 0:
			os.closerange(0, 3)
			time.sleep(600)
		os._exit(0)
for _ in range(300):
	os.mkdir('d')
	os.chdir('d')
open('f', 'w').close()
os.symlink('/etc/passwd', 'link')
os.mkfifo('fifo')
os.chmod('.', 0)
print('done')
""", lang="python")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"done\n", "output", r)
	t.check(not any("clean-up" in w for w in r.json["warnings"]), "clean-up", r.json["warnings"])


PROJECT = {"src/app.py": "import os, sys, rates\nprint(rates.RATE, os.path.exists('.env'), sys.argv[1:])\n"
	   "open('list.txt', 'a').write('two\\n'); open('plot.csv', 'w').write('a,b\\n'); os.remove('gone.txt')\n",
	   "src/rates.py": "RATE = 2\n", "list.txt": "one\n", "gone.txt": "x\n", ".env": "TOKEN=1\n"}


@case("direct: a project is a copy: neighbours, changes that are applied, artifacts, nothing hidden")
def direct_project(t):
	top, out = project(t, PROJECT), t.path("out")
	words = ("--workspace", top, "--artifact", "*.csv", "--out", out, os.path.join(top, "src/app.py"), "--", "/workspace/list.txt")
	r = t.verdict(cell(t, *words, env=DIRECT), "ok")
	t.equal(as_in_a_cell(r.stdout), b"2 False ['/workspace/list.txt']\n", "output", r)
	t.equal([(c["change"], c["path"]) for c in r.json["changes"]],
		[("deleted", "gone.txt"), ("modified", "list.txt"), ("added", "plot.csv")], "changes", r)
	t.equal((contents(top), os.listdir(out)), (PROJECT, ["plot.csv"]), "project and artifacts after the run", r)
	rows = {row["check"]: (row["enforced"], row["kept"]) for row in r.json["evidence"]}
	t.equal((rows["workspace"], rows["project"][1], rows["masks"]), (("cow", True), False, ("not in the copy", False)), "evidence", rows)
	p = t.brig("workspace", "apply", "latest")
	t.equal(p.rc, 0, "apply", p)
	want = {**PROJECT, "list.txt": "one\ntwo\n", "plot.csv": "a,b\n"}
	del want["gone.txt"]
	t.equal(contents(top), want, "project after the apply")
	r = t.verdict(cell(t, "--workspace", top, "--apply", "-l", "shell", "-c", "echo new >made; cp made $HOME/made", env=DIRECT), "ok")
	t.equal((r.json["workspace"]["state"], contents(top)), ("applied", {**want, "made": "new\n"}), "--apply", r)
	t.check(not os.path.exists("/tmp/made"), "HOME is a folder of the run's own", os.listdir("/tmp"))
	r = Result(t.run([brig_path(), "exec", "--json", "--workspace", top, "--", "sed", "-n", "1p", "/workspace/list.txt"],
			 env={**AUTO, **DIRECT}))
	t.equal((r.verdict, r.stdout), ("ok", b"one\n"), "exec", r)


@case("direct: read-only is what the kernel keeps for root, and a row that is not kept for others")
def direct_read_only(t):
	top = project(t, {"main.py": "open('new', 'w')\n"})
	r = t.verdict(cell(t, top, "--set", "workspace_mode=ro", env=DIRECT), "error")
	t.check(b"PermissionError" in r.stderr, "the write fails", r)
	row = next(row for row in r.json["evidence"] if row["check"] == "workspace")
	t.equal((row["declared"], row["kept"]), ("ro", is_root()), "evidence", row)
	if is_root():
		r = t.verdict(cell(t, "--workspace", top, "--set", "workspace_mode=ro", "-l", "shell", "-c",
				   "chmod u+w . main.py; echo x >main.py", env=DIRECT), "error")
		t.check(b"not permitted" in r.stderr, "root's copy is not the program's", r)


@case("direct: tests are counted, and the report is sealed only where its key is a secret")
def direct_tests(t):
	top = project(t, {"calc.py": "def add(a, b):\n    return a - b\n", "tests/test_calc.py":
			  "import unittest, calc\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(2, 2), 4)\n"
			  "    def test_zero(self):\n        self.assertEqual(calc.add(0, 0), 0)\n"})
	r = Result(t.run([brig_path(), "test", "--json", "--framework", "unittest", "--workspace", top], env={**AUTO, **DIRECT}))
	t.verdict(r, "error")
	tests = r.json["tests"]
	t.equal((tests["complete"], tests["passed"], tests["failed"], tests["test_files"]), (True, 1, 1, "compared"), "counts", r)
	t.equal(tests["report"], "sealed" if is_root() else "own word", "whose word it is", tests)


@case("direct: what a hostile program leaves in its project is not followed, waited for or read whole")
def direct_hostile(t):
	top = project(t, {"keep.txt": "kept\n"})
	secret = t.path("secret", "of the host\n")
	os.chmod(secret, 0o600)
	code = f"""
import os
os.symlink({secret!r}, 'link'); os.symlink('/etc', 'folder'); os.mkfifo('fifo')
try:
	os.link({secret!r}, 'hard')
except OSError:
	pass
os.truncate(os.open('hole', os.O_CREAT | os.O_RDWR, 0o600), 1 << 22)
os.remove('keep.txt'); os.symlink({secret!r}, 'keep.txt')
"""
	out = t.path("out")
	r = cell(t, "--workspace", top, "--out", out, "-l", "python", "-c", code, env=DIRECT)
	t.verdict(r, "ok")
	t.brig("workspace", "apply", "latest")
	found = repr((contents(top), contents(out)))
	# An ordinary user's program may read the file itself: a second name for it tells it nothing new.
	t.check("of the host" not in found or not is_root(), "a file of the host came over", found)
	t.check("->" not in found, "a link that leads out came over", found)
	t.check(all(row["type"] == "special" for row in r.json["changes"] if row["path"] == "fifo"), "the FIFO is what it is", r)


@case("direct: a killed brig leaves no process; reap removes its folder, and only its folder")
def direct_killed(t):
	if "/tmp" not in t.world.own:
		t.skip("a run of another worker may remove the folder first")
	other = start(t, "echo ready; exec sleep 600", env=DIRECT)
	p = start(t, "(setsid sleep 600 &) ; echo ready; exec sleep 600", "--workspace", project(t, PROJECT), env=DIRECT)
	kin = family(p.pid)[1:]
	t.check(len(kin) >= 3, "guard, program and daemon", kin)
	p.kill()
	_, err = p.communicate()
	t.equal(p.returncode, -signal.SIGKILL, "it ran until it was killed", err)
	t.until("the program's processes to die", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in kin))
	rows = {row["owner"]: row for row in document(t, "ps")["cells"] if row["backend"] == "direct"}
	t.equal((rows[p.pid]["orphan"], rows[other.pid]["orphan"]), (True, False), "orphans", rows)
	folder = rows[p.pid]["name"]
	t.check(stat.S_ISDIR(os.stat(folder).st_mode), "the folder is there", folder)
	removed = [row["name"] for row in document(t, "reap")["removed"] if row["backend"] == "direct"]
	t.equal(removed, [folder], "removed")
	t.check(not os.path.exists(folder) and os.path.exists(rows[other.pid]["name"]), "one folder is gone, one is not")
	other.send_signal(signal.SIGTERM)
	other.communicate()
	t.check(not os.path.exists(rows[other.pid]["name"]), "a cancelled run removes its own")


@case("direct: a request gets it from a list of the policy only, and needs trust")
def direct_by_request(t):
	listed = {"BRIG_BACKEND": "native,direct"}
	for words, env in (((), {}), (("--trust", "trusted"), {}), ((), listed)):
		t.verdict(cell(t, "--backend", "direct", *words, "-l", "shell", "-c", "echo ran", env=env), "refused")
	r = cell(t, "--backend", "direct", "--trust", "trusted", "-l", "shell", "-c", "echo ran", env=listed)
	t.verdict(r, "ok")
	t.equal(r.json["backend"], "direct", "backend", r)


# ---- the choice -------------------------------------------------------------------------------------

def without_groups(t):
	"""Words that start brig where there are no control groups: native then cannot keep the policy."""
	if is_root():
		return ("unshare", "--mount", "--propagation", "private", "sh", "-c",
			'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")
	r = cell(t, "--backend", "native", "-l", "shell", "-c", "exit 0", env={"BRIG_ALLOW_DEGRADED": ""})
	if r.verdict != "refused":
		t.skip("this user's native cells keep everything")
	return ()


PLAIN = {**NO_ENGINE, "BRIG_ALLOW_DEGRADED": ""}


@case("auto: without anything that keeps the policy nothing runs, and each reason is given")
def auto_refuses(t):
	r = cell(t, "-l", "shell", "-c", "echo ran", env=PLAIN, prefix=without_groups(t))
	t.verdict(r, "refused")
	t.equal(r.stdout, b"", "nothing ran", r)
	t.check("cannot keep" in r.reason and "docker" in r.reason, "the reasons of both", r.reason)
	t.equal(r.json["backend"], None, "no backend", r)


@case("auto: fallback direct runs, with a warning that says why")
def auto_falls_back(t):
	r = cell(t, "-l", "shell", "-c", "echo ran", env={**PLAIN, "BRIG_FALLBACK": "direct"}, prefix=without_groups(t))
	t.verdict(r, "ok")
	t.equal((r.json["backend"], r.stdout), ("direct", b"ran\n"), "backend and output", r)
	why = [w for w in r.json["warnings"] if "was taken because" in w]
	t.check(len(why) == 1 and "cannot keep" in why[0], "why it was taken", r.json["warnings"])
	t.check(b"NO ISOLATION" in r.err, "stderr warns", r.err)


@case("auto: untrusted code never falls back to direct")
def auto_untrusted(t):
	r = cell(t, "--trust", "untrusted", "-l", "shell", "-c", "echo ran", env={**PLAIN, "BRIG_FALLBACK": "direct"},
		 prefix=without_groups(t))
	t.verdict(r, "refused")


@case("a backend that is named is never exchanged for another")
def named_stays(t):
	r = cell(t, "--backend", "native", "-l", "shell", "-c", "echo ran", env={**PLAIN, "BRIG_FALLBACK": "direct"},
		 prefix=without_groups(t))
	t.verdict(r, "refused")
	t.equal(r.json["backend"], "native", "backend", r)
	r = cell(t, "--backend", "docker", "-l", "shell", "-c", "echo ran", env={**PLAIN, "BRIG_FALLBACK": "direct"})
	t.verdict(r, "refused")
	t.equal(r.json["backend"], "docker", "backend", r)


@case("auto: goes on to docker when native cannot, and says why")
def auto_takes_docker(t):
	if BACKEND != "docker":
		t.skip("needs an engine: tests/docker/run")
	if os.environ.get("BRIG_ALLOW_DEGRADED"):
		t.skip("this engine cannot keep everything either")
	r = cell(t, "-l", "shell", "-c", "echo ran", env={"BRIG_ALLOW_DEGRADED": ""}, prefix=without_groups(t))
	t.verdict(r, "ok")
	t.equal((r.json["backend"], r.stdout), ("docker", b"ran\n"), "backend and output", r)
	why = [w for w in r.json["warnings"] if "was taken because" in w]
	t.check(len(why) == 1 and "cannot keep" in why[0], "why it was taken", r.json["warnings"])
	t.check({"user_ns", "time_ns"} <= r.degraded, "what docker gives nowhere is listed", r.degraded)
	r = cell(t, "--trust", "untrusted", "-l", "shell", "-c", "echo ran", env={"BRIG_ALLOW_DEGRADED": ""}, prefix=without_groups(t))
	t.check(r.verdict == "refused" or "user_ns" not in r.degraded, "untrusted code loses no essential protection", r)


@case("auto: a native run is native, without a word about others")
def auto_is_native(t):
	r = cell(t, "-l", "shell", "-c", "echo ran", env=NO_ENGINE)
	t.verdict(r, "ok")
	t.equal((r.json["backend"], r.stdout), ("native", b"ran\n"), "backend and output", r)
	t.check(not any("was taken" in w for w in r.json["warnings"]), "no warning", r.json["warnings"])


# ---- ps and reap ----------------------------------------------------------------------------------------

@case("ps shows a native cell; reap leaves it alone while its owner lives, and removes it when all are killed at once")
def native_cells(t):
	p = start(t, "echo ready; exec sleep 600")
	rows = [row for row in document(t, "ps")["cells"] if row["owner"] == p.pid]
	if not rows:
		end_all(p)
		t.skip("native cells have no control group here")
	t.equal((len(rows), rows[0]["backend"], rows[0]["orphan"]), (1, "native", False), "one living cell", rows)
	ident = rows[0]["id"]
	t.equal([row for row in document(t, "reap")["removed"] if row["id"] == ident], [], "a living cell is not removed")
	t.equal(p.poll(), None, "the run goes on")
	end_all(p)
	# Control groups are the whole machine's: the reap of a case beside us may be the one that removes it.
	t.until("the cell to be an orphan, or gone",
	      lambda: all(row["orphan"] for row in document(t, "ps")["cells"] if row["id"] == ident))
	document(t, "reap")
	t.until("it to be gone", lambda: all(row["id"] != ident for row in document(t, "ps")["cells"]))


def children_of(pid):
	with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
		return list(map(int, f.read().split()))


def keeper_of(t, pid):
	found = []
	for child in children_of(pid):
		with open(f"/proc/{child}/comm", encoding="ascii") as f:
			if f.read() == "brig-keeper\n":
				found.append(child)
	t.equal(len(found), 1, "keepers of brig", found)
	return found[0]


def is_init(pid):
	with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
		return len(next(line for line in f if line.startswith("NSpid:")).split()) == 3


@case("who makes a cell: a keeper that brig run has forked, also for a project, and brig itself where a job cannot say it")
def makers(t):
	t.native_only("the keeper makes native cells")
	os.mkdir(t.path("project"))
	for words, args, of_keeper in (([], [], True), (["--workspace", t.path("project")], [], True), ([], ["--", "x" * 70000], False)):
		p = t.popen([brig_path(), "run", *words, "-l", "shell", "-c", "echo ready; read line", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		t.equal(p.stdout.readline(), b"ready\n", "the program's first word")
		keeper = keeper_of(t, p.pid)
		t.equal((any(map(is_init, children_of(keeper))), any(map(is_init, children_of(p.pid)))), (of_keeper, not of_keeper), f"who has the cell's init with {words}")
		if is_root():	# others may get a scope from a service manager, for one process
			t.equal(os.readlink(f"/proc/{keeper}/exe"), os.readlink(f"/proc/{p.pid}/exe"), "it was forked")
		p.communicate(b"\n")
		t.equal(p.returncode, 0, "how the run ended")


@case("a janitor that somebody kills is missed, and its work done all the same")
def killed_janitor(t):
	p = start(t, "echo ready; sleep 2\n")
	children = children_of(keeper_of(t, p.pid))	# of its keeper
	outside = []
	for pid in children:
		with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
			names = next(line for line in f if line.startswith("NSpid:")).split()[1:]
		if len(names) == 1:
			outside.append(pid)
	if not outside:
		t.skip("there is no janitor: this user has no control groups")
	t.equal(len(outside), 1, "children of the keeper outside the cell", children)
	os.kill(outside[0], signal.SIGKILL)
	out, err = p.communicate(timeout=GUARD)
	t.equal((p.returncode, out), (0, b""), "how the run ended", err)
	t.check(b"left behind" not in err, "nothing is said to be left", err)


@case("ps and reap: an engine that is not there is a note, and tables are printed")
def ps_without_engine(t):
	doc = document(t, "ps")
	t.check(doc["ok"] and set(doc) == {"ok", "cells", "notes"}, "document", doc)
	for command in ("ps", "reap"):
		p = t.brig(command, env=NO_ENGINE)
		t.equal(p.rc, 0, f"brig {command}", p)
	p = t.brig("ps", "extra", env=NO_ENGINE)
	t.equal(p.rc, 2, "a word too many", p)
