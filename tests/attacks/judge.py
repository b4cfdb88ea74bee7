# SPDX-License-Identifier: Apache-2.0
"""
judge.py - how an attack is described, run and judged.

An attack is a hostile program and a judge.  The program, run in a cell, reports in lines on stdout:

	ATTEMPT <name> denied <errno>	or	ATTEMPT <name> GOT <what>
	FACT <name> <value>
	BEGUN				the hostile part starts now
	END <number of attempts>

A judge never believes silence: it wants the line that shows that the attempt was really made, and then that it
was denied, or ended by the right limit.  After every attack, whatever its judge says, the canaries are looked at:
a secret file, listeners on loopback, abstract and pathname sockets, a bystander process, kernel settings and
the launcher's own bytes.  The preludes below give programs the reporting functions.
"""
import hashlib
import os
import re
import signal
import socket
import subprocess
import tempfile

import harness
import in_session
from harness import Failed, Proc, add, brig_path, libc

CATEGORIES = {"FS": "filesystem", "PR": "process view", "NS": "namespaces", "CA": "capabilities", "SY": "system calls", "TT": "terminal",
	      "NE": "network", "ME": "memory", "CP": "time", "PI": "processes", "FD": "descriptors", "EN": "environment",
	      "DI": "disk", "OU": "output", "BL": "compilation", "SD": "cross-run", "DK": "engine", "SU": "supervisor"}

PRELUDE = {
	"c": r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
static int attempts;
static inline long attempt(const char *name, long rc)
{
	const char *e = rc == -1 ? strerrorname_np(errno) : NULL;
	attempts++;
	if (rc == -1)
		printf("ATTEMPT %s denied %s\n", name, e ? e : "?");
	else
		printf("ATTEMPT %s GOT %ld\n", name, rc);
	fflush(stdout);
	return rc;
}
static inline void begun(void) { puts("BEGUN"); fflush(stdout); }
static inline int done(void) { printf("END %d\n", attempts); fflush(stdout); return 0; }
#line 1 "attack.c"
""",
	"python": r"""
import ctypes, errno, os, sys
ATTEMPTS = 0
def report(name, text):
    global ATTEMPTS
    ATTEMPTS += 1
    print('ATTEMPT', name.replace(' ', '_'), text, flush=True)
def attempt(name, fn, *args, **kw):
    try: got = fn(*args, **kw)
    except OSError as e: report(name, 'denied ' + errno.errorcode.get(e.errno, str(e)))
    except ValueError as e: report(name, 'denied ' + str(e))  # how resource.setrlimit tells EPERM
    else: report(name, 'GOT ' + repr(got)[:200])
def read(path):
    with open(path, 'rb') as f: return f.read(200)
def fact(name, value): print('FACT', name, value, flush=True)
def begun(): print('BEGUN', flush=True)
def done(): print('END', ATTEMPTS, flush=True)
""",
	"shell": r"""#!/bin/sh
n=0
attempt() { name=$1; shift; n=$((n+1)); if got=$("$@" 2>&1); then echo "ATTEMPT $name GOT $(echo $got | head -c 150)"
	else echo "ATTEMPT $name denied $(echo $got | tail -c 60 | tr '\n' ' ')"; fi; }
done_() { echo "END $n"; }
""",
	"javascript": r"""
let attempts = 0;
const report = (name, text) => { attempts++; console.log(`ATTEMPT ${name} ${text}`); };
const done = () => console.log(`END ${attempts}`);
""",
	"go": "", "typescript": "",
}

# Few resources: an attack on brig must not become one on the machine that tests it.
LIMITS = {"timeout": 30, "memory": "128m", "pids": 64, "disk": "32m"}
ENDED = ("ok", "error", "crash", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "pids_limit")


class Seen:
	"""What the program reported, taken from its output."""
	def __init__(self, output):
		text = output.decode("utf-8", "replace")
		self.attempts = re.findall(r"^ATTEMPT (\S+) (denied|GOT) ?(.*)$", text, re.M)
		self.facts = dict(re.findall(r"^FACT (\S+) (.*)$", text, re.M))
		self.begun = re.search(r"^BEGUN$", text, re.M) is not None
		end = re.search(r"^END (\d+)$", text, re.M)
		self.end = int(end.group(1)) if end else None


# ---- judges ------------------------------------------------------------------------------------------

def says(judge, what):
	"""What must happen, for docs/ATTACKS.md."""
	judge.says = what
	return judge


def words(verdicts):
	return ", ".join(f"`{v}`" for v in verdicts)


def denied(at_least=1, errors=None, verdicts=("ok",), engine_gives=()):
	"""Every attempt was made and answered with an error; the program then ended by itself.  engine_gives names attempts at what
	every container has (devpts, /sys): they may succeed there."""
	given = set(engine_gives) if harness.BACKEND == "docker" else set()

	def judge(t, r, seen):
		t.check(r.verdict in verdicts, f"verdict is {r.verdict}, not {' or '.join(verdicts)}", r)
		t.check(seen.end is not None, "the program reached its end", r)
		t.equal(len(seen.attempts), seen.end, "attempts reported", r)
		t.check(seen.end >= at_least, f"at least {at_least} attempts were made", r)
		got = [f"{name} {what}" for name, how, what in seen.attempts if how != "denied" and name not in given]
		t.check(not got, "succeeded inside", ", ".join(got))
		if errors:
			odd = [f"{name} {what}" for name, _, what in seen.attempts if what.strip() not in errors]
			t.check(not odd, f"denied with another error than {errors}", odd)
	return says(judge, "denied" if verdicts == ("ok",) else "denied, or " + words(verdicts[1:]))


def facts(**wanted):
	"""Facts have these values: a string is compared, a function is asked."""
	def judge(t, r, seen):
		t.check(r.verdict == "ok", f"verdict is {r.verdict}, not ok", r)
		for name, want in wanted.items():
			t.check(name in seen.facts, f"{name} was reported", r)
			value = seen.facts[name]
			t.check(want(value) if callable(want) else value == want, f"{name} is {value!r}", r)
	return says(judge, "gains nothing")


def ends(*verdicts, marker=True, **more):
	"""The hostile part began, and this verdict (with these result fields) ended it."""
	def judge(t, r, seen):
		t.check(seen.begun or not marker, "the hostile part began", r)
		t.check(r.verdict in verdicts, f"verdict is {r.verdict}, not {' or '.join(verdicts)}", r)
		for name, want in more.items():
			t.equal(r.signal if name == "signal" else r.json.get(name), want, name, r)
	return says(judge, words(verdicts))


def killed_or_denied(at_least=1):
	"""For foreign ABIs: the filter's kill (SIGSYS), or an error for each attempt."""
	def judge(t, r, seen):
		t.check(seen.begun, "the hostile part began", r)
		if r.verdict == "crash":
			t.equal(r.signal, signal.SIGSYS, "signal", r)
			t.check(all(how == "denied" for _, how, _ in seen.attempts), "nothing succeeded before", r)
		else:
			denied(at_least)(t, r, seen)
	return says(judge, "denied, or killed by the filter")


def both(*judges):
	def judge(t, r, seen):
		for each in judges:
			each(t, r, seen)
	return says(judge, "; ".join(dict.fromkeys(each.says for each in judges if hasattr(each, "says"))))


# ---- canaries ------------------------------------------------------------------------------------------

SYSCTLS = ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/domainname", "kernel/panic", "kernel/sysrq",
	   "kernel/randomize_va_space", "vm/overcommit_memory", "fs/suid_dumpable", "vm/mmap_min_addr", "kernel/core_uses_pid")
PR_SET_PDEATHSIG = 1


class Canaries:
	"""Things outside that no attack may read, reach, change or kill."""
	current = None

	def __init__(self, world, base):
		Canaries.current = self
		self.token = "canary" + os.urandom(12).hex()
		self.dir = tempfile.mkdtemp(prefix="outside-", dir=base)
		os.chmod(self.dir, 0o755)
		self.secret = os.path.join(self.dir, "secret")
		with open(self.secret, "w", encoding="ascii") as f:
			f.write(self.token + "\n")
		os.chmod(self.secret, 0o666)	# permission bits must not be what saves it
		self.name = "outside-" + os.urandom(6).hex()
		self.listeners = [self.listen(socket.AF_INET, ("127.0.0.1", 0)), self.listen(socket.AF_UNIX, "\0" + self.name),
				  self.listen(socket.AF_UNIX, os.path.join(self.dir, "socket"))]
		self.port = self.listeners[0].getsockname()[1]
		os.chmod(os.path.join(self.dir, "socket"), 0o777)
		try:
			self.listeners.append(self.listen(socket.AF_INET6, ("::1", self.port)))
		except OSError:
			pass	# a host without IPv6
		self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		self.udp.bind(("127.0.0.1", self.port))
		self.udp.setblocking(False)
		self.bystander = self.start_bystander(world)
		self.before = self.state()

	def listen(self, family, address):
		s = socket.socket(family, socket.SOCK_STREAM)
		s.bind(address)
		s.listen(16)
		s.setblocking(False)
		return s

	def start_bystander(self, world):
		user = harness.test_ids()

		def become():
			if user:
				os.setgroups([])
				os.setresgid(user[1], user[1], user[1])
				os.setresuid(user[0], user[0], user[0])
			libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
		p = subprocess.Popen(["sleep", "infinity"], env={"CANARY": self.token}, cwd=self.dir, preexec_fn=become,
				     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		world.ours.add(p.pid)
		return p

	def state(self):
		values = {}
		for name in SYSCTLS:
			try:
				with open("/proc/sys/" + name, "rb") as f:
					values[name] = f.read()
			except OSError:
				pass
		for path in (brig_path(), self.secret):
			with open(path, "rb") as f:
				values[path] = hashlib.sha256(f.read()).hexdigest()
		values["files outside"] = sorted(os.listdir(self.dir))
		return values

	def visits(self):
		count = 0
		for s in self.listeners:
			try:
				while True:
					s.accept()[0].close()
					count += 1
			except BlockingIOError:
				pass
		try:
			while self.udp.recv(65536) is not None:
				count += 1
		except BlockingIOError:
			pass
		return count

	def check(self, t):
		t.equal(self.visits(), 0, "connections that reached a listener outside")
		t.check(self.bystander.poll() is None, "the bystander process lives")
		with open(f"/proc/{self.bystander.pid}/stat", encoding="ascii") as f:
			t.check(f.read().split(") ")[1][0] in "SI", "the bystander process is not stopped")
		changed = [k for k, v in self.state().items() if v != self.before.get(k)]
		t.check(not changed, "changed outside", changed)
		for r in getattr(t, "results", []):
			text = r.out + r.err + r.stdout + r.stderr
			t.check(self.token.encode() not in text, "the secret is in the output")

	def fill(self, text):
		"""Puts what is outside into an attack's program."""
		for key, value in {"@SECRET@": self.secret, "@PORT@": self.port, "@ABSTRACT@": self.name, "@BRIG@": brig_path(),
				   "@SOCKET@": os.path.join(self.dir, "socket"), "@HOSTPID@": self.bystander.pid}.items():
			text = text.replace(key, str(value))
		return text


def make_hooks(world, base):
	canaries = Canaries(world, base)
	if in_session.PLACE:
		in_session.only_sessions()
	return [canaries.check]


# ---- attacks ------------------------------------------------------------------------------------------

HARMLESS = []	# (id, language, program, judge): may run bare in --self-test


def limits_with(t, overrides):
	limits = {**LIMITS, **overrides}
	limits["timeout"] = overrides["timeout"] if "timeout" in overrides else t.secs(limits["timeout"])
	return limits


def limit_words(t, overrides):
	limits = limits_with(t, overrides)
	words = []
	for key in ("timeout", "memory", "pids", "disk"):
		if limits[key] is not None:
			words += ["--" + key, limits[key]]
	for key, value in limits.items():
		if key not in ("timeout", "memory", "pids", "disk"):
			words += ["--set", f"{key}={value}"]
	return words


def in_cell(t, lang, code, *words, limits=None, args=(), stdin=b"", **kw):
	"""Runs a program of an attack in a cell and keeps the result for the canaries."""
	source = PRELUDE[lang] + Canaries.current.fill(code)
	args = [Canaries.current.fill(word) for word in args]
	if in_session.PLACE:
		r = in_session.run(t, lang, source, words, limits_with(t, limits or {}), args, stdin, kw)
	else:
		tail = ["--", *args] if args else []
		r = t.cell(*limit_words(t, limits or {}), *words, *tail, code=source, lang=lang, stdin=stdin, **kw)
	t.results = getattr(t, "results", []) + [r]
	return r


def to_its_limit(t, lang, code, *words, limits, **kw):
	"""The same; with a time limit that is meant to be hit, the hostile part has begun before, however busy the machine is."""
	if "timeout" not in limits:
		return in_cell(t, lang, code, *words, limits=limits, **kw)
	r, _ = t.at_limit(limits["timeout"], lambda seconds: in_cell(t, lang, code, *words, limits={**limits, "timeout": seconds}, **kw),
			  lambda r: Seen(r.stdout).begun or r.verdict not in ("timeout", "cpu_limit"))
	return r


def attack(ident, title, lang, code, judge=None, needs=(), harmless=False, words=(), stdin=b"", **limits):
	judge = judge or denied()

	def run(t):
		r = to_its_limit(t, lang, code, *words, limits=limits, stdin=stdin)
		judge(t, r, Seen(r.stdout))
	if in_session.has(ident, lang, stdin):
		add(ident, title, says(run, getattr(judge, "says", "gains nothing")), CATEGORIES[ident[:2]], needs)
	if harmless:
		HARMLESS.append((ident, lang, code, judge))


def hosted(ident, title, needs=()):
	"""An attack whose judge plays a part outside while it runs."""
	def register(fn):
		if in_session.PLACE != "context":
			add(ident, title, fn, CATEGORIES[ident[:2]], needs)
		return fn
	return register


# ---- the judge judged ---------------------------------------------------------------------------------

class BareResult(Proc):
	"""An attack run without any cell, in the shape of a result."""
	def __init__(self, p):
		super().__init__(p.rc, p.out, p.err, p.secs, p.argv)
		self.verdict = "ok" if p.rc == 0 else "error" if p.rc > 0 else "crash"
		self.stdout, self.stderr, self.reason = p.out, p.err, ""
		self.signal = max(-p.rc, 0)
		self.json = {"verdict": self.verdict, "exit_code": p.rc, "usage": {}}


def run_bare(t, lang, code):
	source = t.path("program" + harness.EXTENSION[lang], PRELUDE[lang] + Canaries.current.fill(code))
	if lang == "c":
		t.check(t.run(["gcc", "-w", "-o", t.path("program"), source]).rc == 0, "compiles")
		return BareResult(t.run([t.path("program")]))
	tool = {"python": "/usr/bin/python3", "shell": "sh", "javascript": "node"}[lang]
	return BareResult(t.run([tool, source]))


def self_test_case(ident, lang, code, judge):
	def run(t):
		r = run_bare(t, lang, code)
		t.results = [r]
		caught = ""
		try:
			judge(t, r, Seen(r.stdout))
			Canaries.current.check(t)
		except Failed as e:
			caught = str(e)
		Canaries.current.visits()
		t.results = []
		t.check(caught, "the judge noticed what the attack did bare", r)
	return run


def register_self_test():
	harness.CASES.clear()
	for ident, lang, code, judge in HARMLESS:
		add(ident, "bare, it must be noticed", self_test_case(ident, lang, code, judge), "self-test")
	for kind, leak in leaks().items():
		add(f"leak-{kind}", f"a {kind} left behind must be noticed", leak_case(kind, leak), "self-test")


def leaks():
	"""Ways to leave something behind, each with its undoing: the census must see every one."""
	def daemon(t):
		p = subprocess.Popen(["sh", "-c", "setsid sleep 1000 & echo $!"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
		pid = int(p.stdout.readline())
		p.wait()
		p.stdout.close()
		return lambda: os.kill(pid, signal.SIGKILL)

	def mount(t):
		libc.mount(b"none", os.fsencode(t.tmp), b"tmpfs", 0, None)
		return lambda: libc.umount2(os.fsencode(t.tmp), 2)

	def file(_t):
		fd, path = tempfile.mkstemp(prefix="brig-", dir="/tmp")
		os.close(fd)
		return lambda: os.unlink(path)

	def queue(_t):
		ident = libc.msgget(0, 0o1600)
		return lambda: libc.msgctl(ident, 0, None)

	def name(_t):
		s = socket.socket(socket.AF_UNIX)
		s.bind("\0brig-leaked")
		return s.close

	def group(t):
		with open("/proc/self/mountinfo", encoding="utf-8") as f:
			roots = [w[4] for w in map(str.split, f) if w[w.index("-") + 1] in ("cgroup", "cgroup2")]
		t.check(roots, "control groups are mounted")
		path = os.path.join(roots[-1], "brig-leaked-" + str(os.getpid()))
		os.mkdir(path)
		return lambda: os.rmdir(path)
	return {"process": daemon, "mount": mount, "file": file, "ipc": queue, "socket": name, "cgroup": group}


def leak_case(kind, leak):
	def run(t):
		if kind in ("mount", "ipc", "cgroup") and not t.world.private:
			t.skip("needs root")
		before = t.world.census()
		undo = leak(t)
		try:
			left = t.world.leftovers(before, grace=0)
		finally:
			undo()
		t.check([item for item in left if item.startswith(kind + " ")], f"a leaked {kind} is seen", left)
	return run
