# SPDX-License-Identifier: Apache-2.0
"""
engine.py - a container engine of our own for a test run, and nothing left of it afterwards.

How it works.  A guard process is forked with a session, a mount namespace and a network namespace of its own; in
there /run and /dev/shm are fresh tmpfs, so that whatever the engine keeps in fixed places (shim sockets, locks,
network namespaces) is neither seen by other engines nor left behind, and docker0 of the machine is not touched.
The guard is a child subreaper: shims and containers that lose their parent become its children, so "everything
that this engine started" is exactly "the guard's descendants", found by parent pid and never by name.  Containers
stand below a cgroup that belongs to this engine alone.

The guard waits for one of: its lifeline (a pipe held by whoever started it) closes, SIGTERM, or the engine's own
death.  Then there is one way down, the same for all three: thaw and kill every descendant until none is left,
remove the cgroups, remove the folder; the mounts vanish with the namespace.  Since the lifeline closes however
its holder dies, an interrupted or killed test run cleans up as well.

  engine run COMMAND...   start, run COMMAND with DOCKER_HOST set, stop; exits with its status
  engine start            start and print DOCKER_HOST's value; lives until
  engine stop SOCKET      (as printed by start)

Exit status 77 means that the engine cannot be started on this machine; the reason is on stderr.
The folder is made in $BRIG_TEST_ENGINE_DIR or /var/tmp (workers of the suites cover /tmp with one of their own).
"""
import ctypes
import http.client
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CANNOT = 77
CEILING = 120	# seconds that an engine may take to answer, or to end: never decides on a machine that works
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)


class Cannot(Exception):
	"""This machine has no such engine; the text says why."""


class UnixConnection(http.client.HTTPConnection):
	def __init__(self, path, timeout=CEILING):
		super().__init__("localhost", timeout=timeout)
		self.path = path

	def connect(self):
		self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
		self.sock.settimeout(self.timeout)
		self.sock.connect(self.path)


def ask(sock, method, path, body=None, headers=None):
	"""(status, bytes) of one request to an engine."""
	connection = UnixConnection(sock)
	try:
		connection.request(method, path, body=body, headers=headers or {})
		answer = connection.getresponse()
		return answer.status, answer.read()
	finally:
		connection.close()


# ---- the two engines ---------------------------------------------------------------------------

def need(program, package):
	for folder in ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"):
		if os.access(os.path.join(folder, program), os.X_OK):
			return os.path.join(folder, program)
	raise Cannot(f"{program} is not installed (package {package})")


def write(path, text):
	with open(path, "w", encoding="utf-8") as f:
		f.write(text)
	return path


def docker_command(folder, name):
	"""Words and environment that start the engine with everything it keeps below folder."""
	need("containerd", "containerd")
	need("runc", "runc")
	words = [need("dockerd", "docker.io"), "--config-file", write(f"{folder}/daemon.json", "{}\n"),
		 "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid",
		 "-H", f"unix://{folder}/sock", "--cgroup-parent", f"/{name}", "--bridge", "none", "--iptables=false",
		 "--ip6tables=false", "--userland-proxy=false", "--log-level", "warn", "--exec-opt", "native.cgroupdriver=cgroupfs"]
	return words, {}


def podman_command(folder, name):
	# Root without CAP_SYS_RESOURCE cannot raise limits, and crun does not know hybrid cgroups: see default_ulimits, runc.
	conf = write(f"{folder}/containers.conf", f"""[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
cgroupns = "private"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
image_copy_tmp_dir = "{folder}/copy"
[engine.runtimes]
runc = ["{need("runc", "runc")}"]
[network]
network_config_dir = "{folder}/network"
""")
	storage = write(f"{folder}/storage.conf", f"""[storage]
driver = "overlay"
graphroot = "{folder}/data"
runroot = "{folder}/exec"
""")
	write(f"{folder}/policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}\n')
	need("conmon", "conmon")
	for made in ("copy", "network", "tmp", "home"):
		os.mkdir(f"{folder}/{made}")
	os.makedirs(f"{folder}/home/.config/containers")
	shutil.copy(f"{folder}/policy.json", f"{folder}/home/.config/containers/policy.json")
	words = [need("podman", "podman"), "--root", f"{folder}/data", "--runroot", f"{folder}/exec", "--tmpdir", f"{folder}/tmp",
		 "--cgroup-manager", "cgroupfs", "system", "service", "--time", "0", f"unix://{folder}/sock"]
	env = {"CONTAINERS_CONF": conf, "CONTAINERS_STORAGE_CONF": storage, "TMPDIR": f"{folder}/copy", "HOME": f"{folder}/home",
	       "XDG_CONFIG_HOME": f"{folder}/home/.config"}
	return words, env


COMMANDS = {"docker": docker_command, "podman": podman_command}


# ---- processes and control groups that belong to it -----------------------------------------------

def children():
	"""Everything below this process, nearest first; zombies included."""
	below = {}
	for pid in filter(str.isdigit, os.listdir("/proc")):
		try:
			with open(f"/proc/{pid}/stat", "rb") as f:
				parent = int(f.read().rpartition(b")")[2].split()[1])
		except (OSError, IndexError, ValueError):
			continue
		below.setdefault(parent, []).append(int(pid))
	found, frontier = [], [os.getpid()]
	while frontier:
		more = below.get(frontier.pop(0), [])
		found += more
		frontier += more
	return found


def reap():
	while True:
		try:
			pid, _ = os.waitpid(-1, os.WNOHANG)
		except ChildProcessError:
			return
		if pid == 0:
			return


def cgroup_roots():
	with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
		rows = [line.split() for line in f]
	return [w[4] for w in rows if w[w.index("-") + 1] in ("cgroup", "cgroup2")]


def groups(name):
	"""The control groups called so in each hierarchy and what is below them, deepest first."""
	return [path for root in cgroup_roots() for path, _, _ in os.walk(os.path.join(root, name), topdown=False)]


def pids_in(group):
	try:
		with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as f:
			return {int(line) for line in f}
	except (OSError, ValueError):
		return set()	# gone meanwhile


def thaw(names, ours):
	"""Frozen tasks do not even die: a paused container must be let go first."""
	for path in [path for name in names for path in groups(name) if pids_in(path) & ours]:
		for file, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
			try:
				if os.path.exists(os.path.join(path, file)):
					with open(os.path.join(path, file), "w", encoding="ascii") as f:
						f.write(text)
			except OSError:
				pass


def end_everything(names):
	"""Kills every descendant and waits for the last; then the control groups are empty and go, too."""
	deadline = time.monotonic() + CEILING
	while True:
		reap()
		left = children()
		if not left:
			break
		for pid in left:
			try:
				os.kill(pid, signal.SIGKILL)
			except ProcessLookupError:
				pass
		thaw(names, set(left))
		if time.monotonic() > deadline:
			print(f"engine: processes that do not end: {left}", file=sys.stderr)
			break
		time.sleep(0.01)
	remove_groups(names, deadline)


def remove_groups(names, deadline):
	"""A group that holds processes now is another engine's (podman's parent group has a fixed name)."""
	while True:
		stuck = [path for name in names for path in groups(name) if not try_rmdir(path)]
		if all(any(pids_in(below) for below, _, _ in os.walk(path)) for path in stuck):
			return
		if time.monotonic() > deadline:
			print(f"engine: control groups that do not go: {stuck}", file=sys.stderr)
			return
		time.sleep(0.01)


def try_rmdir(path):
	try:
		os.rmdir(path)
	except FileNotFoundError:
		pass
	except OSError:
		return False
	return True


# ---- the guard -----------------------------------------------------------------------------------

def own_world():
	if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
		raise Cannot(f"no namespaces for it: {os.strerror(ctypes.get_errno())}; an engine of our own needs root")
	if libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) != 0:
		raise Cannot(f"mounts cannot be made private: {os.strerror(ctypes.get_errno())}")
	for place in (b"/run", b"/dev/shm"):
		if libc.mount(b"tmpfs", place, b"tmpfs", 0, b"mode=0755,size=256m") != 0:
			raise Cannot(f"no tmpfs on {place.decode()}: {os.strerror(ctypes.get_errno())}")
	os.mkdir("/run/lock")


def last_lines(path, count=4):
	try:
		with open(path, encoding="utf-8", errors="replace") as f:
			return " | ".join(line.strip() for line in f.readlines()[-count:])
	except OSError:
		return ""


def wait_until_up(process, sock, log):
	deadline = time.monotonic() + CEILING
	while True:
		if process.poll() is not None:
			raise Cannot(f"it ended at once: {last_lines(log)}")
		try:
			if ask(sock, "GET", "/_ping")[0] == 200:
				return
		except (OSError, http.client.HTTPException):
			pass
		if time.monotonic() > deadline:
			raise Cannot(f"no answer after {CEILING} s: {last_lines(log)}")
		time.sleep(0.02)


class Guard:
	"""Runs in the forked process; tell is the pipe on which the caller hears how the start went."""
	def __init__(self, kind, folder, tell, lifeline):
		self.kind, self.folder, self.tell, self.lifeline = kind, folder, tell, lifeline
		self.name = os.path.basename(folder)
		self.process = None
		self.stopped = False

	def names(self):
		"""Top-level groups of this engine: its own, and podman's fixed one."""
		return [self.name] + (["libpod_parent"] if self.kind == "podman" else [])

	def stop(self, *_):
		self.stopped = True

	def start(self):
		libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		own_world()
		words, extra = COMMANDS[self.kind](self.folder, self.name)
		env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **extra}
		log = os.path.join(self.folder, "log")
		with open(log, "wb") as out:
			self.process = subprocess.Popen(words, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out,
							start_new_session=True)
		wait_until_up(self.process, os.path.join(self.folder, "sock"), log)

	def watch(self):
		"""Until there is a reason to stop.  Orphans are collected meanwhile, or they would look alive to their engine."""
		while not self.stopped and self.process.poll() is None:
			ready = select.select([self.lifeline] if self.lifeline >= 0 else [], [], [], 0.2)[0]
			if ready:
				return
			self.collect_orphans()

	def collect_orphans(self):
		while True:
			try:
				ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
			except ChildProcessError:
				return
			if not ended or ended.si_pid == self.process.pid:
				return
			os.waitpid(ended.si_pid, 0)

	def main(self):
		for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
			signal.signal(sig, self.stop)
		try:
			self.start()
			os.write(self.tell, b"up")
			os.close(self.tell)
			self.watch()
		except Cannot as e:
			os.write(self.tell, str(e).encode()[:4000])
		except Exception as e:	# whatever it was, the way down is the same
			os.write(self.tell, f"{type(e).__name__}: {e}".encode()[:4000])
		finally:
			end_everything(self.names())
			keep = os.environ.get("BRIG_TEST_ENGINE_LOG")
			if keep:
				shutil.copy(os.path.join(self.folder, "log"), keep)
			self.remove()
		os._exit(0)

	def remove(self):
		deadline = time.monotonic() + CEILING
		while True:	# mounts of this namespace only; outside there never were any
			with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
				mounts = [w[4] for w in map(str.split, f) if w[4].startswith(self.folder)]
			for place in reversed(mounts):
				libc.umount2(place.encode(), 2)
			shutil.rmtree(self.folder, ignore_errors=True)
			if not os.path.exists(self.folder) or time.monotonic() > deadline:
				return
			time.sleep(0.05)


# ---- the caller's side ---------------------------------------------------------------------------

class Engine:
	"""A started engine: .host for DOCKER_HOST, .sock; close() when done.  Raises Cannot."""
	def __init__(self, kind, keep=False):
		base = os.environ.get("BRIG_TEST_ENGINE_DIR", "/var/tmp")
		if os.getuid() != 0:
			raise Cannot("an engine of our own needs root")
		self.folder = tempfile.mkdtemp(prefix="engine-", dir=base)
		self.kind, self.sock = kind, os.path.join(self.folder, "sock")
		self.host = "unix://" + self.sock
		hear, tell = os.pipe()
		lifeline, self.lifeline = (-1, -1) if keep else os.pipe()
		sys.stdout.flush()
		sys.stderr.flush()
		self.pid = os.fork()
		if self.pid == 0:
			self.become_guard(hear, tell, lifeline, keep)
		os.close(tell)
		if not keep:
			os.close(lifeline)
		said = self.hear(hear)
		if said != b"up":
			self.close()
			raise Cannot(said.decode("utf-8", "replace") or "the guard died")

	def guard(self, tell, lifeline):
		return Guard(self.kind, self.folder, tell, lifeline)

	def become_guard(self, hear, tell, lifeline, keep):
		try:
			os.setsid()
			os.close(hear)
			if not keep:
				os.close(self.lifeline)
			null = os.open("/dev/null", os.O_RDWR)
			os.dup2(null, 0)
			os.dup2(null, 1)
			write(os.path.join(self.folder, "guard"), str(os.getpid()))
			self.guard(tell, lifeline).main()
		finally:
			os._exit(1)

	def hear(self, fd):
		with os.fdopen(fd, "rb") as f:
			return f.read()

	def alive(self):
		return os.path.exists(self.sock)

	def close(self):
		if self.lifeline >= 0:
			os.close(self.lifeline)
			self.lifeline = -1
		if self.pid:
			try:
				os.waitpid(self.pid, 0)
			except ChildProcessError:
				pass
			self.pid = 0

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.close()


def env_of(engine):
	return {"DOCKER_HOST": engine.host, "BRIG_TEST_ENGINE": engine.kind, "BRIG_TEST_ENGINE_CGROUP": os.path.basename(engine.folder)}


def run(kind, words):
	with Engine(kind) as engine:
		child = subprocess.Popen(words, env={**os.environ, **env_of(engine)}, close_fds=True)

		def pass_on(sig, _):
			child.send_signal(sig)
		for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
			signal.signal(sig, pass_on)
		status = child.wait()
	return status if status >= 0 else 128 - status


def stop(host):
	folder = os.path.dirname(host.replace("unix://", "", 1))
	with open(os.path.join(folder, "guard"), encoding="ascii") as f:
		os.kill(int(f.read()), signal.SIGTERM)
	deadline = time.monotonic() + 2 * CEILING
	while os.path.exists(folder):
		if time.monotonic() > deadline:
			print(f"engine: {folder} is still there", file=sys.stderr)
			return 1
		time.sleep(0.02)
	return 0


def main(kind):
	words = sys.argv[1:]
	try:
		if words[:1] == ["run"] and len(words) > 1:
			return run(kind, words[1:])
		if words == ["start"]:
			print(Engine(kind, keep=True).host)
			return 0
		if words[:1] == ["stop"] and len(words) == 2:
			return stop(words[1])
	except Cannot as e:
		print(f"engine: {kind} cannot be started here: {e}", file=sys.stderr)
		return CANNOT
	print(__doc__.strip(), file=sys.stderr)
	return 2
