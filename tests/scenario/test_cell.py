# SPDX-License-Identifier: Apache-2.0
"""What a program can do to its own init, to its user on the host, and to brig's look at what it left."""
import json
import os
import signal
import subprocess

import harness
from harness import case


def evidence(r):
	return {row["check"]: row for row in r.json["evidence"]}


# ---- what the caller's priorities are to the program ---------------------------------------------------------

SEE_SCHEDULING = "import os; print(os.sched_getscheduler(0), os.nice(0))"


@case("priorities of the caller: raised ones are not the program's, lowered ones are")
def scheduling(t):
	t.native_only("an engine starts programs with its own priorities")
	own, idle = os.nice(0), os.SCHED_IDLE
	raised = (("chrt -f 30", 0, own), ("chrt -r 5", 0, own), (f"nice -n {-5 - own}", 0, 0), ("ionice -c 1 -n 0", 0, own))
	lowered = (("nice -n 2", 0, own + 2), ("chrt -i 0", idle, own), ("ionice -c 3", 0, own))
	for command, policy, nice in (*raised, *lowered) if harness.is_root() else lowered:
		p = t.run([*command.split(), *t.run_args("--json", "--lang", "python", "-c", SEE_SCHEDULING)])
		r = json.loads(p.out)
		t.equal((r["verdict"], r["stdout"]), ("ok", f"{policy} {nice}\n"), command, r["reason"])
		row = {row["check"]: row for row in r["evidence"]}["scheduling"]
		t.equal((row["enforced"], row["kept"]), ("ordinary", True), f"evidence of {command}")


# ---- d1: what the kernel counts for a user -----------------------------------------------------------------

TAKE_INSTANCES = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
taken = 0
while taken < 1000 and libc.inotify_init1(0) >= 0:
	taken += 1
print(taken, errno.errorcode.get(ctypes.get_errno()))
"""


@case("D1: a program gets a few inotify instances, not all that its user has on the host")
def d1_inotify_instances(t):
	t.native_only("an engine has no user namespace whose counts could be bounded")
	r = t.verdict(t.cell("--set", "open_files=1024", code=TAKE_INSTANCES, lang="python"), "ok")
	t.equal(r.stdout, b"16 EMFILE\n", "instances and what ended them", r)
	rows = evidence(r)
	for check, most in (("inotify_instances", 16), ("inotify_watches", 4096)):
		t.check(rows[check]["kept"], f"{check} is not kept", rows[check])
		t.equal(rows[check]["enforced"], str(most), check)
	t.equal((rows["user_counts"]["enforced"], rows["user_counts"]["kept"]), ("bounded", True), "user_counts")


@case("D1: watches are bounded, too, and the runtimes' own watchers still work")
def d1_inotify_watches(t):
	t.native_only("an engine has no user namespace whose counts could be bounded")
	r = t.verdict(t.cell("--set", "inodes_limit=6000", code="""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
fd, taken = libc.inotify_init1(0), 0
while taken < 5000:
	os.mkdir(f"d{taken}")
	if libc.inotify_add_watch(fd, f"d{taken}".encode(), 0x100) < 0:
		break
	taken += 1
print(taken, errno.errorcode.get(ctypes.get_errno()))
""", lang="python"), "ok")
	t.equal(r.stdout, b"4096 ENOSPC\n", "watches and what ended them", r)
	r = t.verdict(t.cell(code="""
const fs = require('fs');
fs.mkdirSync('d');
const watcher = fs.watch('d', (event, name) => { console.log(event, name); watcher.close(); });
fs.writeFileSync('d/new', '');
""", lang="javascript"), "ok")
	t.equal(r.stdout, b"rename new\n", "what node saw", r)


# ---- r1: init is out of reach, also with the program's own user id -----------------------------------------

AT_INIT = """
import os, resource, signal
def attempt(what, call, *args):
	try:
		call(*args)
		print(what, "done")
	except PermissionError:
		pass
attempt("cpu", resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))
attempt("files", resource.prlimit, 1, resource.RLIMIT_NOFILE, (0, 0))
attempt("address space", resource.prlimit, 1, resource.RLIMIT_AS, (4096, 4096))
attempt("affinity", os.sched_setaffinity, 1, {0})
attempt("idle", os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))
attempt("nice", os.setpriority, os.PRIO_PROCESS, 1, 19)
attempt("nice of its group", os.setpriority, os.PRIO_PGRP, 1, 19)
attempt("nice of its user", os.setpriority, os.PRIO_USER, 0, 19)
for s in signal.SIGALRM, signal.SIGKILL, signal.SIGSTOP, signal.SIGXCPU:
	attempt(s.name, os.kill, 1, s)
attempt("pidfd", os.pidfd_open, 1)
for name in "mem", "environ", "oom_score_adj", "coredump_filter", "clear_refs", "fd/0":
	attempt(name, open, "/proc/1/" + name, "r+b" if name != "environ" else "rb", 0)
# What programs do to themselves and to their children works.
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))
resource.prlimit(0, resource.RLIMIT_STACK, (1 << 20, 1 << 20))
os.nice(5)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))
child = os.fork()
if child == 0:
	signal.pause()
os.setpriority(os.PRIO_PROCESS, child, 10)
os.kill(child, signal.SIGTERM)
print(os.WTERMSIG(os.waitpid(child, 0)[1]))
"""


@case("R1: a program cannot limit, slow, signal or open init, and the verdict is its own")
def r1_init_out_of_reach(t):
	r = t.verdict(t.cell(code=AT_INIT, lang="python"), "ok")
	t.equal(r.stdout, b"15\n", "what was not refused", r)


@case("R1: a signal that looks like the wall clock's changes nothing")
def r1_false_alarm(t):
	# Also by a descriptor of /proc/1, of which a filter sees only a number: mounts and Landlock forbid it, and init looks at the clock.
	r = t.verdict(t.cell(code="""
import os, signal, time
for _ in range(200):
	for send in (lambda: os.kill(1, signal.SIGALRM), lambda: signal.pidfd_send_signal(os.open("/proc/1", os.O_RDONLY), signal.SIGALRM)):
		try:
			send()
		except PermissionError:
			pass
time.sleep(0.2)
print("alive")
""", lang="python"), "ok")
	t.equal(r.stdout, b"alive\n", "output", r)


def inits(t):
	"""Host pids of the processes of this case that are PID 1 of a namespace of their own."""
	for entry in t.world.processes():
		try:
			with open(f"/proc/{entry.split()[0]}/status", encoding="utf-8", errors="replace") as f:
				pids = next(line for line in f if line.startswith("NSpid:")).split()[1:]
		except (OSError, StopIteration):
			continue
		if len(pids) > 1 and pids[-1] == "1":
			yield int(pids[0])


@case("R1: init asks the clock before it believes an alarm, whoever sent it")
def r1_alarm_is_checked(t):
	t.native_only("the init of a container gives no signal a meaning")
	program = t.path("program.py", "import sys\nprint('up', flush=True)\nsys.stdin.read()\nprint('down')\n")
	with t.popen(t.run_args("--timeout", t.secs(60), program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
		t.equal(p.stdout.readline(), b"up\n", "the program's word")
		found = list(inits(t))
		t.check(found, "init was not found")
		for pid in found * 3:
			os.kill(pid, signal.SIGALRM)
		out, err = p.communicate()
	t.equal((p.returncode, out), (0, b"down\n"), "exit status and output", err)


# ---- f1: what a program leaves in its workspace is no fault of brig's ------------------------------------------

LEAVES = {
	"300 levels": ("for _ in range(300):\n\tos.mkdir('d')\n\tos.chdir('d')", "incomplete"),
	"a path of 10 000 bytes": ("for _ in range(50):\n\tos.mkdir('d' * 200)\n\tos.chdir('d' * 200)", "incomplete"),
	"holes of 1.8 GB": ("for i in range(30):\n\topen(f'h{i}', 'wb').truncate(60 << 20)", "incomplete"),
	"links to one file, larger together than the disk": (
		"open('f', 'wb').write(b'x' * (1 << 20))\nfor i in range(300):\n\tos.link('f', f'l{i}')", "incomplete"),
	"folders that nobody may enter": (
		"os.makedirs('a/b')\nopen('a/b/c', 'w').close()\nos.chmod('a/b/c', 0)\nos.chmod('a/b', 0)\nos.chmod('a', 0)", "kept"),
	"names that are no text": ("os.mkdir(b'\\xff\\xfe\\n')\nopen(b'\\xff\\xfe\\n/\\x1b[2J', 'w').close()", "kept"),
	"a fifo and a socket": ("import socket\nos.mkfifo('p')\nsocket.socket(socket.AF_UNIX).bind('s')", None),
	"a full disk": ("try:\n\topen('f', 'wb').write(b'x' * (200 << 20))\nexcept OSError:\n\tpass", None),
}


def leave(t, code, *args):
	top = t.path("project")
	if not os.path.exists(top):
		os.mkdir(top)
		for path in top, t.path("project/mine", "mine\n"):
			if harness.test_ids():
				os.lchown(path, *harness.test_ids())
	return t.cell("--trust", "trusted", "--workspace", top, "--disk", "64m", "--timeout", t.secs(60), *args,
		      code=f"import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{code}\n", lang="python")


def f1_case(name, code, state):
	def run(t):
		r = leave(t, code)
		t.check(r.verdict in ("ok", "disk_limit"), f"verdict is {r.verdict}", r)
		t.check(r.verdict == "ok" or "full disk" in name, f"verdict is {r.verdict}", r)
		if state:
			t.equal(r.json["workspace"]["state"], state, "state of the changes", r)
		t.equal(r.json["workspace"]["deleted"], 0, "deletions", r)
		if r.json["workspace"]["state"] == "incomplete":
			t.check(r.json["warnings"], "no warning says so", r)
	return run


for number, (what, (program, expected)) in enumerate(LEAVES.items()):
	harness.add(f"cell.f1_leaves_{number}", f"F1: a program that leaves {what} ended well all the same", f1_case(what, program, expected), "cell")


@case("F1: changes that are too many to be looked at are not applied, which is the disk limit's doing")
def f1_apply(t):
	r = leave(t, LEAVES["300 levels"][0], "--apply")
	t.verdict(r, "disk_limit")
	t.check("nothing was applied" in r.json["reason"], "the reason", r.json["reason"])
	t.equal(os.listdir(t.path("project")), ["mine"], "the project")


# ---- pr05: what tells of the machine -----------------------------------------------------------------------------

MACHINE = ("/proc/key-users /proc/keys /proc/interrupts /proc/iomem /proc/ioports /proc/diskstats /proc/swaps /proc/partitions /proc/modules "
	   "/proc/cmdline /proc/kallsyms /proc/vmstat /proc/zoneinfo /proc/softirqs /proc/locks /proc/crypto /proc/devices /proc/misc "
	   "/proc/buddyinfo /proc/schedstat /proc/timer_list /proc/consoles /proc/pressure /proc/bus /proc/irq /proc/fs /proc/tty "
	   "/sys/class /sys/block /sys/devices/system/node /sys/kernel /sys/module /sys/firmware /sys/power").split()


@case("PR-05: files of /proc and /sys that tell of the machine say nothing, and the evidence looks")
def pr05_machine_files(t):
	r = t.verdict(t.cell(code=f"""
import os
for path in {MACHINE!r}:
	try:
		said = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(64)
		if said:
			print(path, said)
	except OSError:
		pass
""", lang="python"), "ok")
	t.equal(r.stdout, b"", "what could be read", r)
	row = evidence(r).get("machine_files")
	t.check(row and row["kept"] and row["enforced"] == "masked", "the masks are not in place", row)


# ---- the workspace's other names -------------------------------------------------------------------------

ALIAS = """
import os, pwd
os.chdir(%r)
open('a', 'w').write('x')
open(%r, 'w').write('y')
print(os.getcwd(), sorted(os.listdir('/workspace')), pwd.getpwuid(os.getuid()).pw_name, os.environ['HOME'])
"""


@case("the workspace has another name where it is asked for, and evidence tells of it")
def alias(t):
	t.native_only("containers have none")
	for name, account, home in (("/home/user", "user", "/home/user"), ("/mnt/data", "sandbox", "/workspace")):
		r = t.verdict(t.cell("--set", f"workspace_alias={name}", code=ALIAS % (name, name + "/b"), lang="python"), "ok")
		t.equal(r.stdout.decode(), f"{name} ['a', 'b', 'program.py'] {account} {home}\n", name)
		t.check(name in evidence(r)["writable_places"]["enforced"], "it is read back", r)
	t.verdict(t.cell(code="open('/home/user/b', 'w')", lang="python"), "error", "blocked")
