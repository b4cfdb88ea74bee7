# SPDX-License-Identifier: Apache-2.0
"""
harness.py - what the end-to-end suites share: cases, running brig, and counting what it leaves behind.

How a suite runs.  The parent forks one worker per job.  As root, each worker makes a world of its own
(mount, ipc and net namespaces, with a peer group of its own so that a mount that leaks by propagation
shows) and, root or not, becomes a child subreaper: whatever brig starts and forgets is handed to the
worker by the kernel and counted.  So several suites can run on one machine and each sees only its own
leftovers.  A case is a function; it gets a fresh directory, runs brig, and raises Failed or Skipped.

A failed case may be repeated by tests/run (`--case ID`), and is flaky if it passes then.  What must not happen even once
says `# FINAL reason` on its line and is never repeated: something left behind, a result that is `violated` (its evidence shows
a promise that was not kept), and each failure of a case that is registered as final: an attack, a lost entry.

Configured by the environment:
  BRIG               the binary to judge (default: build/brig of this tree)
  BRIG_TEST_USER     run brig as this uid (or uid:gid); needs root
  BRIG_TEST_EXTRA    extra words for every `brig run`
  BRIG_TEST_SLACK    factor for time limits that must not decide a case (default 1; use 10 under emulation)
  BRIG_TEST_WORLD    "host": make no namespaces for the workers
  BRIG_TEST_BACKEND  the backend of every run (default: the policy's own choice, native).  With docker, DOCKER_HOST names
                     the engine (tests/engine), its containers are counted as leftovers, and an engine that is slow
                     on a busy machine decides nothing: start-up and clean-up may take minutes
  BRIG_ALLOW_DEGRADED  passed on to brig; what it names is skipped where a case needs it
"""
import argparse
import ctypes
import fcntl
import http.client
import importlib.util
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
SLACK = float(os.environ.get("BRIG_TEST_SLACK", "1"))
BACKEND = os.environ.get("BRIG_TEST_BACKEND", "")
ENGINE_MS = 300000	# what an engine may take to start or remove a container before it decides a case
STARTUP_MS, CLEANUP_MS = 120000, 60000	# what a busy machine may take to make and to remove a native cell before that decides a case
GUARD = max(180, 60 * SLACK) if BACKEND != "docker" else 2 * ENGINE_MS / 1000	# a brig that is still there after this many seconds is a failure of its own
GRACE = max(20, 5 * SLACK) if BACKEND != "docker" else 60	# how long leftovers may take to vanish

VERDICT_STATUS = {"timeout": 124, "cpu_limit": 124, "memory_limit": 137, "output_limit": 123, "disk_limit": 123,
		  "pids_limit": 123, "blocked": 126, "refused": 125, "violated": 122, "failed": 121, "cancelled": 130}


class Failed(Exception):
	pass


class Final(Failed):
	"""What must not happen even once: the case is not repeated."""


class Skipped(Exception):
	pass


# ---- cases -------------------------------------------------------------------------------------

class Case:
	"""final: what a failure of this case shows, if it is never to be repeated; empty for others."""
	def __init__(self, ident, title, fn, category="", needs=(), final=""):
		self.ident, self.title, self.fn, self.category, self.needs, self.final = ident, title, fn, category, tuple(needs), final


CASES = []


def add(ident, title, fn, category="", needs=(), final=""):
	if any(c.ident == ident for c in CASES):
		raise ValueError(f"two cases are called {ident}")
	CASES.append(Case(ident, title, fn, category, needs, final))


def case(title, needs=(), category="", final=""):
	"""Registers a function; needs names protections without which the case cannot be judged; final says what its failure would
	be that is never repeated.  A file that sets FINAL says so for all of its cases."""
	def register(fn):
		module = os.path.splitext(os.path.basename(fn.__code__.co_filename))[0].replace("test_", "", 1)
		add(f"{module}.{fn.__name__}", title, fn, category or module, needs, final or fn.__globals__.get("FINAL", ""))
		return fn
	return register


def load(folder, pattern):
	for name in sorted(os.listdir(folder)):
		if re.fullmatch(pattern, name):
			spec = importlib.util.spec_from_file_location(os.path.splitext(name)[0], os.path.join(folder, name))
			spec.loader.exec_module(importlib.util.module_from_spec(spec))


# ---- running brig ------------------------------------------------------------------------------

def brig_path():
	return os.path.abspath(os.environ.get("BRIG", os.path.join(ROOT, "build", "brig")))


def test_ids():
	"""(uid, gid) that brig is to run as, or None for our own."""
	spec = os.environ.get("BRIG_TEST_USER", "")
	if not spec or os.getuid() != 0:
		return None
	uid, _, gid = spec.partition(":")
	return int(uid), int(gid or uid)


def give(path):
	"""A tree to whoever brig runs as: a project is the caller's own."""
	user = test_ids()
	if user:
		for folder, dirs, files in os.walk(os.fsencode(path)):	# a hostile project has names of any bytes
			for name in dirs + files:
				os.lchown(os.path.join(folder, name), *user)
		os.lchown(path, *user)


def as_in_a_cell(output):
	"""What a program of the direct backend says of its workspace, as it would say it in a cell."""
	return re.sub(rb"/tmp/brig-direct-[a-z2-7]{16}/work", b"/workspace", output)


def is_root():
	return os.getuid() == 0 and test_ids() is None


def clean_env(extra=None):
	"""The environment of every brig started here: small and the same everywhere.  Programs of the suites are hostile on
	purpose and must reach the cell: only cases about the inspection ask for it.  How long a busy machine takes to make or remove
	a cell decides no case, but those that set these limits themselves.  A service that a developer has running is left alone."""
	env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LANG": "C.UTF-8",
	       "BRIG_HOST": "none", "BRIG_INSPECTION": "off", "BRIG_STARTUP_TIMEOUT_MS": str(STARTUP_MS), "BRIG_CLEANUP_TIMEOUT_MS": str(CLEANUP_MS)}
	for key in ("BRIG_STARTUP_TIMEOUT_MS", "BRIG_CLEANUP_TIMEOUT_MS", "BRIG_ALLOW_DEGRADED", "BRIG_POLICY", "DOCKER_HOST", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
		    "BRIG_LIBEXEC", "BRIG_WARM_CELLS", "BRIG_TEST_FORKS", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
		if key in os.environ:
			env[key] = os.environ[key]
	if BACKEND:
		env["BRIG_BACKEND"] = BACKEND
	if BACKEND == "docker":
		env["BRIG_STARTUP_TIMEOUT_MS"] = env["BRIG_CLEANUP_TIMEOUT_MS"] = str(ENGINE_MS)
	env.update(extra or {})
	return {key: value for key, value in env.items() if value is not None}	# None takes one away


CANARY = b"canary-on-the-callers-stdin"


def open_input():
	"""Both ends of a pipe that holds a canary and does not end."""
	ends = os.pipe()
	os.write(ends[1], CANARY + b"\n")
	return ends


class Proc:
	"""What a finished command left: status, both streams, seconds."""
	def __init__(self, rc, out, err, secs, argv):
		self.rc, self.out, self.err, self.secs, self.argv = rc, out, err, secs, argv

	def text(self):
		return self.out.decode("utf-8", "replace") + self.err.decode("utf-8", "replace")

	def __str__(self):
		words = " ".join(shlex.quote(w if len(w) < 60 else w[:57] + "...") for w in map(str, self.argv))
		return f"`{words}` exited {self.rc}; stdout {self.out[:600]!r}; stderr {self.err[:600]!r}"


class Result(Proc):
	"""A finished `brig run --json`."""
	made = []	# all of the case at work

	def __init__(self, proc):
		super().__init__(proc.rc, proc.out, proc.err, proc.secs, proc.argv)
		try:
			self.json = json.loads(proc.out)
		except ValueError as e:
			raise Failed(f"no JSON result ({e}): {proc}") from None
		self.verdict = self.json.get("verdict")
		self.reason = self.json.get("reason", "")
		Result.made.append(self)

	@property
	def signal(self):
		"""The signal's number, 0 for none."""
		name = self.json.get("signal")
		return int(getattr(signal.Signals, name, -1)) if name else 0

	@property
	def degraded(self):
		return frozenset(row["protection"] for row in self.json.get("degraded", []))

	def stream(self, name):
		data = self.json.get(name, "")
		if self.json.get(name + "_encoding") == "base64":
			import base64
			return base64.b64decode(data)
		return data.encode("utf-8")

	@property
	def stdout(self):
		return self.stream("stdout")

	@property
	def stderr(self):
		return self.stream("stderr")

	def __str__(self):
		short = {k: self.json.get(k) for k in ("verdict", "reason", "exit_code", "signal", "step", "usage")}
		broken = [row for row in self.json.get("evidence", []) if not row.get("kept") and row.get("check") not in self.degraded]
		return (f"exit {self.rc}, {json.dumps(short)}; stdout {self.stdout[-700:]!r}; stderr {self.stderr[-700:]!r}"
			+ (f"; not kept {json.dumps(broken)}" if broken else ""))


class Test:
	"""Handed to each case: its directory, ways to run things, and checks that say what they saw."""
	def __init__(self, base, world):
		self.world = world
		self.dir = tempfile.mkdtemp(prefix="case-", dir=base)
		self.tmp = os.path.join(self.dir, "tmp")
		self.state = os.path.join(self.dir, "state")	# made by brig; goes with the case
		os.mkdir(self.tmp)
		os.chmod(self.dir, 0o755)
		os.chmod(self.tmp, 0o1777)
		self.ids = []
		user = test_ids()
		if user:
			os.chown(self.dir, *user)

	def path(self, name, content=None, mode=0o644):
		"""A file of this case; written if content is given."""
		full = os.path.join(os.fsencode(self.dir), os.fsencode(name))
		if content is not None:
			with open(full, "wb") as f:
				f.write(content if isinstance(content, bytes) else content.encode())
			os.chmod(full, mode)
		return os.fsdecode(full)

	def secs(self, n):
		"""A time limit that must not decide the case, in seconds, stretched on slow machines (30 s is the policy's cap)."""
		return min(int(n * max(SLACK, 1)), 30)

	def wall(self, n):
		"""A time limit that is meant to be hit: long enough for the program to begin, even under emulation."""
		return min(int(n * min(max(SLACK, 1), 8)), 30)

	def at_limit(self, n, attempt, has_begun):
		"""attempt(limit) runs a program into its time limit; one that had not begun by then, or whose end was late, because the
		machine was busy, gets a longer one.  What the last attempt gave, and its limit."""
		for limit in sorted({self.wall(n), self.wall(n * 4), 30}):
			r = attempt(limit)
			if has_begun(r) and not (isinstance(r, Result) and is_late(r)):
				break
		return r, limit

	def popen(self, argv, env=None, cwd=None, **kw):
		user = test_ids()

		def become():
			signal.pthread_sigmask(signal.SIG_SETMASK, [])
			for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):	# a nohup around the suite is not brig's business
				signal.signal(sig, signal.SIG_DFL)
			if user:
				os.setgroups([])
				os.setresgid(user[1], user[1], user[1])
				os.setresuid(user[0], user[0], user[0])
		full_env = clean_env({"TMPDIR": self.tmp, "HOME": self.dir, "BRIG_STATE": self.state, **(env or {})})
		return subprocess.Popen(argv, env=full_env, cwd=cwd or self.dir, preexec_fn=become, **kw)

	def run(self, argv, stdin=None, env=None, cwd=None, guard=GUARD, **kw):
		"""Runs any command to its end with both streams captured.  Without stdin its input is like a terminal at which nobody
		types: a pipe that stays open, with a canary in it that must not turn up in the output.  What reads its input to
		the end is given stdin=b"", or what it is to read."""
		start = time.monotonic()
		feed = stdin if isinstance(stdin, bytes) else None
		canary = open_input() if stdin is None else None
		source = canary[0] if canary else subprocess.PIPE if feed is not None else stdin
		p = self.popen(argv, env, cwd, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
		try:
			out, err = p.communicate(feed, timeout=guard)
		except subprocess.TimeoutExpired:
			p.kill()
			out, err = p.communicate()
			raise Failed(f"still running after {guard} s: {Proc(None, out, err, guard, argv)}") from None
		finally:
			for fd in canary or ():
				os.close(fd)
		done = Proc(p.returncode, out, err, time.monotonic() - start, argv)
		if canary and CANARY in out + err:
			raise Failed(f"the caller's input became output: {done}")
		return done

	def brig(self, *args, **kw):
		"""Any brig command."""
		return self.run([brig_path(), *map(str, args)], **kw)

	def run_args(self, *args):
		return [brig_path(), "run", *shlex.split(os.environ.get("BRIG_TEST_EXTRA", "")), *map(str, args)]

	def cell(self, *args, code=None, lang=None, **kw):
		"""`brig run --json`, parsed.  With code, the program is a file of this case."""
		words = ["--json"]
		if lang:
			words += ["--lang", lang]
		tail = []
		if code is not None:
			tail = [self.path("program" + EXTENSION.get(lang, ""), code)]
		args, dashed = split_at_dashes(args)
		r = Result(self.run(self.run_args(*words, *args, *tail, *dashed), **kw))
		self.ids.append(r.json.get("id"))
		return r

	def until(self, what, look, seconds=None):
		"""What look() gives, once it is something: an event is awaited, however long it takes within reason."""
		deadline = time.monotonic() + (seconds or GUARD)
		while True:
			self.world.reap()
			found = look()
			if found:
				return found
			if time.monotonic() > deadline:
				raise Failed(f"waited {seconds or GUARD} s for {what}")
			time.sleep(0.02)

	def check(self, condition, message, seen=""):
		if not condition:
			raise Failed(f"{message}{': ' if str(seen) else ''}{seen}")

	def equal(self, got, want, what, seen=""):
		if got != want:
			raise Failed(f"{what} is {short(got)}, not {short(want)}{'; ' if str(seen) else ''}{seen}")

	def verdict(self, r, *wanted):
		"""The verdict is one of these, and the exit status agrees with the table of verdicts."""
		self.check(r.verdict in wanted, f"verdict is {r.verdict}, not {' or '.join(wanted)}", r)
		status = VERDICT_STATUS.get(r.verdict)
		if r.verdict in ("ok", "error"):
			status = r.json["exit_code"]
		elif r.verdict == "crash":
			status = 128 + r.signal
		self.equal(r.rc, status, f"exit status for {r.verdict}", r)
		return r

	def skip(self, reason):
		raise Skipped(reason)

	def native_only(self, why):
		"""For cases about what only native cells have."""
		if BACKEND not in ("", "native"):
			self.skip(f"{why}: not with the {BACKEND} backend")

	def after_kill(self):
		"""A brig that was killed leaves its container to the next one, which removes it when it starts or is asked to."""
		if BACKEND == "docker":
			p = self.brig("reap")
			self.equal(p.rc, 0, "brig reap", p)


EXTENSION = {"python": ".py", "javascript": ".js", "typescript": ".ts", "go": ".go", "shell": ".sh", "c": ".c"}


def split_at_dashes(args):
	args = list(args)
	if "--" in args:
		at = args.index("--")
		return args[:at], args[at:]
	return args, []


def short(value):
	text = repr(value)
	return text if len(text) < 300 else text[:297] + "..."


# ---- the worker's own world, and what is left in it -----------------------------------------------

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET = 0x00020000, 0x08000000, 0x40000000
MS_REC, MS_PRIVATE, MS_SHARED = 0x4000, 1 << 18, 1 << 20
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)


class World:
	"""Where a worker runs its cases, and the census of that place."""
	def __init__(self):
		libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		self.own = []		# places that nobody else writes to
		self.private = os.getuid() == 0 and os.environ.get("BRIG_TEST_WORLD") != "host" and self.enter()
		self.ours = set()	# processes that belong to the suite itself

	def enter(self):
		if libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET) != 0:
			return False
		for flag in (MS_PRIVATE, MS_SHARED):
			if libc.mount(None, b"/", None, MS_REC | flag, None) != 0:
				raise OSError(ctypes.get_errno(), "making the mounts of this worker private")
		self.own = [place for place in ("/dev/shm", "/tmp", "/var/tmp") if not holds_subject(place)]
		for place in self.own:
			libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, b"size=512m,mode=1777")
		raise_loopback()
		return True

	def census(self):
		return {"process": self.processes(), "mount": self.mounts(), "cgroup": self.cgroups(), "file": self.files(),
			"ipc": self.ipc(), "socket": self.sockets(), "container": self.containers()}

	def containers(self):
		"""Of the engine: those whose brig is gone.  The others belong to workers beside us."""
		if BACKEND != "docker":
			return set()
		return {f"{c['Names'][0]} ({c['State']})" for c in engine_containers() if not owner_lives(c.get("Labels") or {})}

	def processes(self, top=None):
		"""Everything below a process; with a given one, that one too."""
		parent, names = {}, {}
		for pid in filter(str.isdigit, os.listdir("/proc")):
			try:
				with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
					stat = f.read()
			except OSError:
				continue
			names[int(pid)] = stat[stat.index("(") + 1:stat.rindex(")")]
			parent[int(pid)] = int(stat[stat.rindex(")") + 2:].split()[1])
		found, frontier = set(), [top or os.getpid()]
		if top in names:
			found.add(f"{top} {names[top]}")
		while frontier:
			up = frontier.pop()
			for pid, ppid in parent.items():
				if ppid == up and pid not in self.ours:
					found.add(f"{pid} {names[pid]}")
					frontier.append(pid)
		return found

	def cell_processes(self):
		"""Those of the cells that brigs of this worker have made: below them, or below the engine."""
		own = self.processes()
		if BACKEND != "docker":
			return own
		pids = {row.split()[0] for row in own}
		found = set()
		for c in engine_containers():
			if (c.get("Labels") or {}).get("brig.owner.pid") in pids:
				first = engine_get(f"/v1.40/containers/{c['Id']}/json").get("State", {}).get("Pid")
				found |= self.processes(first) if first else set()
		return found

	def mounts(self):
		with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
			lines = [line.split() for line in f]
		return {" ".join([w[4], w[5], *w[w.index("-") + 1:]]) for w in lines}

	def cgroups(self):
		with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
			roots = [w[4] for w in map(str.split, f) if w[w.index("-") + 1] in ("cgroup", "cgroup2")]
		return {path for root in roots for path, _, _ in os.walk(root) if "brig" in os.path.basename(path).lower()}

	def foreign(self, item, ours):
		"""A control group in which only processes of others live, or one without any, as for a pause that may come, that a living
		brig of others has made: another one at work on this machine."""
		kind, _, path = item.partition(" ")
		if kind != "cgroup":
			return False
		pids = set()
		for top, _, names in os.walk(path):
			if "cgroup.procs" in names:
				try:
					with open(os.path.join(top, "cgroup.procs"), encoding="ascii") as f:
						pids |= set(f.read().split())
				except OSError:
					pass	# gone meanwhile, or a threaded group
		words = os.path.basename(path).split("-")	# brig, run, maker, time, pid namespace
		if not pids and len(words) == 5 and os.path.exists(f"/proc/{words[2]}"):
			pids = {words[2]}
		return bool(pids) and not pids & {row.split()[0] for row in ours}

	def files(self):
		found = set()
		for place in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/var/lib", "/run/netns", "/run/user"):
			everything = place in self.own or place == "/run/netns"
			found |= {os.path.join(place, n) for n in listing(place) if everything or "brig" in n.lower() and self.may_be_ours(place, n)}
		return found

	def may_be_ours(self, place, name):
		"""An ordinary user's brig makes no files of other users."""
		uid = test_ids()[0] if test_ids() else os.getuid()
		if name.startswith("brig-direct-") and is_locked(os.path.join(place, name)):
			return False	# the folder of a run that goes on beside us
		try:
			return uid == 0 or os.lstat(os.path.join(place, name)).st_uid == uid
		except OSError:
			return False

	def ipc(self):
		found = set()
		for kind in ("shm", "sem", "msg"):
			try:
				with open(f"/proc/sysvipc/{kind}", encoding="utf-8") as f:
					found |= {f"{kind} {line.split()[1]}" for line in f.readlines()[1:]}
			except OSError:
				pass
		return found if self.private else set()

	def sockets(self):
		try:
			with open("/proc/self/net/unix", encoding="utf-8", errors="replace") as f:
				names = {line.split()[-1] for line in f if "@" in line}
		except OSError:
			return set()
		return {n for n in names if self.private or "brig" in n.lower()}

	def reap(self):
		"""Orphans that ended are ours to collect; live ones stay in the census."""
		while True:
			try:
				pid, _ = os.waitpid(-1, os.WNOHANG)
			except ChildProcessError:
				return
			if pid == 0:
				return

	def leftovers(self, before, grace=None):
		"""What is here now and was not before, once it has had time to go away."""
		deadline = time.monotonic() + (GRACE if grace is None else grace)
		stayed = None
		while True:
			self.reap()
			now = self.census()
			new = {f"{kind} {item}" for kind in now for item in now[kind] - before[kind]}
			stayed = new if stayed is None else stayed & new
			stayed = {item for item in stayed if not self.foreign(item, now["process"])}
			if not stayed or time.monotonic() > deadline:
				return sorted(stayed)
			time.sleep(0.05)


def holds_subject(place):
	"""Whether brig, this tree or the engine's socket lies there, so that it cannot be covered."""
	return any(path.startswith(place + "/") for path in (brig_path(), ROOT, os.environ.get("BRIG_POLICY", ""), engine_socket()))


# ---- the engine, if there is one -------------------------------------------------------------------

def engine_socket():
	return os.environ.get("DOCKER_HOST", "").replace("unix://", "", 1)


def engine_get(path):
	"""What the engine answers."""
	with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
		s.settimeout(ENGINE_MS / 1000)
		s.connect(engine_socket())
		connection = http.client.HTTPConnection("localhost")
		connection.sock = s
		connection.request("GET", path)
		return json.loads(connection.getresponse().read())


def engine_containers():
	"""What the engine has.  Docker 20.10 may go on listing one that it has removed, without a name, for as long as it lives: such
	a row counts unless the engine itself, asked for it by its id, says that there is no such container."""
	rows = []
	for row in engine_get("/v1.40/containers/json?all=1"):
		if not row.get("Names"):
			if "No such container" in engine_get(f"/v1.40/containers/{row['Id']}/json").get("message", ""):
				continue
			row["Names"] = [row["Id"][:12]]
		rows.append(row)
	return rows


def owner_lives(labels):
	"""Whether the process that made a container is still the one that its labels name."""
	try:
		with open(f"/proc/{int(labels['brig.owner.pid'])}/stat", "rb") as f:
			return f.read().rpartition(b")")[2].split()[19].decode() == labels["brig.owner.start"]
	except (OSError, KeyError, ValueError, IndexError):
		return False


def is_locked(path):
	"""Whether somebody holds the lock on a folder."""
	try:
		fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
	except OSError:
		return False
	try:
		fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
		return False
	except OSError:
		return True
	finally:
		os.close(fd)


def listing(path):
	try:
		return os.listdir(path)
	except OSError:
		return []


def raise_loopback():
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
		fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))	# SIOCSIFFLAGS: up, running


# ---- what this host leaves out --------------------------------------------------------------------

class Host:
	"""Learnt once from a first run: which protections are degraded here.  own_mounts stands for a cell whose file systems
	are all brig's own: an engine mounts /sys, devpts and files in /etc itself."""
	degraded = frozenset()
	checked = None

	@classmethod
	def probe(cls, base, world):
		test = Test(base, world)
		cls.checked = test.cell("-c", "print('probe')", lang="python")
		test.verdict(cls.checked, "ok")
		cls.degraded = cls.checked.degraded | ({"own_mounts"} if BACKEND == "docker" else set())
		shutil.rmtree(test.dir, ignore_errors=True)


# ---- the runner -------------------------------------------------------------------------------------

def unkept(r):
	"""Checks of a result that do not hold; those of the first run are what this host goes without."""
	return {row["check"] for row in r.json.get("evidence") or [] if not row["kept"]} if r else set()


def is_late(r):
	"""A machine that holds a cell's own clock up for a second makes its end late: brig says so of itself, and no wall was breached."""
	return r.verdict == "violated" and unkept(r) - unkept(Host.checked) in ({"wall_time"}, {"wall_time", "cpu_time"})


def why_final(item, left, results, error):
	"""Why the failure of a case stands at the first try, or nothing."""
	if left:
		return "left behind"
	broken = {check for r in results if r.verdict == "violated" and not is_late(r) for check in unkept(r) - unkept(Host.checked) or {"of an unknown name"}}
	if broken:
		return "a promise was not kept: " + ", ".join(sorted(broken))
	return "not contained" if isinstance(error, Final) else item.final


def run_case(item, base, world, hooks):
	start = time.monotonic()
	status, reason, error = "passed", "", None
	before = world.census()
	test = Test(base, world)
	Result.made = []
	try:
		missing = [n for n in item.needs if n in Host.degraded]
		if missing:
			raise Skipped(f"{', '.join(missing)} cannot be kept on this host")
		item.fn(test)
		for hook in hooks:
			hook(test)
	except Skipped as e:
		status, reason = "skipped", str(e)
	except Failed as e:
		status, reason, error = "failed", str(e), e
	except Exception:	# a broken case is a failed case
		status, reason = "failed", traceback.format_exc()
	left = world.leftovers(before)
	left += [f"file {n} in TMPDIR" for n in listing(test.tmp)]
	if left:
		status, reason = "failed", (reason + "; " if reason else "") + "left behind: " + ", ".join(left)
	shutil.rmtree(test.dir, ignore_errors=True)
	return {"id": item.ident, "title": item.title, "category": item.category, "status": status, "reason": reason,
		"final": why_final(item, left, Result.made, error) if status == "failed" else "", "leftovers": len(left), "seconds": round(time.monotonic() - start, 3)}


def worker(queue, out, cases, make_hooks, probe):
	"""Takes case numbers from the queue until it is dry; answers one JSON line each."""
	world = World()
	base = tempfile.mkdtemp(prefix="e2e-", dir="/var/tmp")	# not /tmp: a cell has a /tmp of its own, which would hide it
	os.chmod(base, 0o755)
	try:
		with os.fdopen(out, "w") as answers:
			try:
				if probe:
					Host.probe(base, world)
			except Failed as e:
				answers.write(json.dumps({"fatal": str(e)}) + "\n")
				return
			hooks = make_hooks(world, base)
			while True:
				number = os.read(queue, 4)
				if len(number) < 4:
					break
				item = cases[struct.unpack("I", number)[0]]
				answers.write(json.dumps(run_case(item, base, world, hooks)) + "\n")
				answers.flush()
	finally:
		shutil.rmtree(base, ignore_errors=True)


def start_workers(cases, jobs, make_hooks, probe):
	queue_r, queue_w = os.pipe()
	fcntl.fcntl(queue_w, 1031, 1 << 20)	# F_SETPIPE_SZ
	os.write(queue_w, b"".join(struct.pack("I", i) for i in range(len(cases))))
	os.close(queue_w)
	sources, pids = {}, []
	for _ in range(jobs):
		r, w = os.pipe()
		sys.stdout.flush()
		pid = os.fork()
		if pid == 0:
			os.close(r)
			code = 1
			try:
				worker(queue_r, w, cases, make_hooks, probe)
				code = 0
			except BaseException:
				traceback.print_exc()
			finally:
				sys.stdout.flush()
				os._exit(code)
		os.close(w)
		sources[r] = b""
		pids.append(pid)
	os.close(queue_r)
	return sources, pids


def collect(sources, show):
	results, fatal = [], []
	while sources:
		for fd in select.select(list(sources), [], [])[0]:
			data = os.read(fd, 1 << 16)
			if not data:
				os.close(fd)
				del sources[fd]
				continue
			*lines, sources[fd] = (sources[fd] + data).split(b"\n")
			for line in map(json.loads, lines):
				if "fatal" in line:
					fatal.append(line["fatal"])
				else:
					results.append(line)
					show(len(results), line)
	return results, fatal


def show_tap(number, r):
	mark = {"passed": "ok", "failed": "not ok", "skipped": "ok"}[r["status"]]
	tail = f" # SKIP {r['reason']}" if r["status"] == "skipped" else f" # FINAL {r['final']}" if r["final"] else ""
	print(f"{mark} {number} - {r['id']}: {r['title']} ({r['seconds']} s){tail}")
	if r["status"] == "failed":
		print("\n".join("#   " + line for line in r["reason"].splitlines()))
	sys.stdout.flush()


def arguments(suite):
	p = argparse.ArgumentParser(description=f"the {suite} suite")
	p.add_argument("--filter", default="", help="only cases whose id or title matches this regular expression")
	p.add_argument("--case", action="append", default=[], metavar="ID", help="only the case with this id; may be given several times")
	p.add_argument("--jobs", type=int, default=1, help="workers at once")
	p.add_argument("--json-summary", metavar="PATH", help="write the outcome of each case there")
	p.add_argument("--list", action="store_true", help="name the cases and stop")
	p.add_argument("--self-test", action="store_true", help="run harmless attacks bare: the judge must notice each")
	return p


def no_hooks(_world, _base):
	return []


def selected(options):
	"""The cases that were asked for; one that is asked for by its id must be there."""
	cases = [c for c in CASES if re.search(options.filter, f"{c.ident} {c.title}")]
	unknown = set(options.case) - {c.ident for c in cases}
	if unknown:
		sys.exit(f"no case is called {', '.join(sorted(unknown))}; see --list")
	return [c for c in cases if not options.case or c.ident in options.case]


def main(suite, options=None, make_hooks=no_hooks, report=None, probe=True, final=""):
	"""Runs the registered cases; the process exits 0 only if some passed and none failed.  final is for suites no failure of which
	is ever repeated."""
	options = options or arguments(suite).parse_args()
	cases = selected(options)
	for c in cases:
		c.final = c.final or final
	if options.list:
		for c in cases:
			print(f"{c.ident}\t{c.category}\t{c.title}")
		return 0
	print(f"1..{len(cases)}", flush=True)
	sources, pids = start_workers(cases, max(1, min(options.jobs, len(cases))), make_hooks, probe)
	results, fatal = collect(sources, show_tap)
	for pid in pids:
		os.waitpid(pid, 0)
	for text in fatal:
		print(f"Bail out! the first run failed: {text}")
	count = {s: sum(r["status"] == s for r in results) for s in ("passed", "failed", "skipped")}
	count["failed"] += len(cases) - len(results)
	if report:
		report(results)
	if options.json_summary:
		with open(options.json_summary, "w", encoding="utf-8") as f:
			json.dump({"suite": suite, **count, "leftovers": sum(r["leftovers"] for r in results),
				   "degraded": sorted(Host.degraded), "cases": results}, f, indent=1)
	print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped", flush=True)
	return 0 if count["failed"] == 0 and count["passed"] > 0 else 1
