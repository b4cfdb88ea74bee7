# SPDX-License-Identifier: Apache-2.0
"""Sessions of different owners against each other: what one leaves, holds or uses up is nothing to the other."""
import os

from harness import case
from owner import Owner, find_below, same

FINAL = "a session reached another"

# Names, numbers and keys that are the same in every session.  `leave` makes each and stays; `find` looks for each, and says what it met.
SHARED = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
KEY, PORT = 0x62726967, 8211
def must(rc):
    if rc < 0: raise OSError(ctypes.get_errno(), 'refused')
    return rc
def path(place, flags): return lambda: os.close(os.open(place + '/mark-of-another', flags, 0o666))
def unix(name, call): return lambda: (keep.append(socket.socket(socket.AF_UNIX)), getattr(keep[-1], call)(name), call == 'bind' and keep[-1].listen())
def inet(family, address, kind, call):
    def do():
        keep.append(socket.socket(family, kind))
        getattr(keep[-1], call)((address, PORT))
        if kind == socket.SOCK_STREAM and call == 'bind': keep[-1].listen()
        if kind == socket.SOCK_DGRAM and call == 'connect': answered(keep[-1])
    return do
def answered(s):
    s.settimeout(1)
    s.send(b'x')
    try: s.recv(1)	# nobody there is an error at once; who is there says nothing
    except TimeoutError: pass
keep = []
def table(makes):
    call, flags, create = ('bind', os.O_CREAT | os.O_WRONLY, 0o1666) if makes else ('connect', os.O_RDONLY, 0)
    yield from ((place, path(place, flags)) for place in ('/tmp', '/dev/shm', '/workspace', '/var/tmp', '/run'))
    yield 'abstract socket', unix('\\0mark-of-another', call)
    yield 'socket', unix('/tmp/socket-of-another', call)
    yield 'tcp', inet(socket.AF_INET, '127.0.0.1', socket.SOCK_STREAM, call)
    yield 'udp', inet(socket.AF_INET, '127.0.0.1', socket.SOCK_DGRAM, call)
    yield 'tcp6', inet(socket.AF_INET6, '::1', socket.SOCK_STREAM, call)
    yield 'shared memory', lambda: must(libc.shmget(KEY, 4096 if makes else 0, create))
    yield 'semaphores', lambda: must(libc.semget(KEY, 1 if makes else 0, create))
    yield 'messages', lambda: must(libc.msgget(KEY, create))
    yield 'message queue', lambda: must(libc.mq_open(b'/mark-of-another', flags, 0o666, None))
    if os.uname().machine == 'x86_64':
        yield 'key', lambda: must(libc.syscall(248, b'user', b'mark-of-another', b'x', 1, -4) if makes else libc.syscall(249, b'user', b'mark-of-another', None, -4))
def try_all(makes):
    for name, call in table(makes):
        try:
            call()
            print(name, flush=True)
        except OSError: pass
"""
LEAVE = SHARED + "try_all(True)\nprint('left', flush=True)\nimport time; time.sleep(1000)\n"
FIND = SHARED + "try_all(False)\nprint('end')\n"


@case("nothing that one leaves under a name, a number or a key is there for the other")
def names(t):
	with Owner(t) as ada, Owner(t) as bob:
		a, b = ada.session(), bob.session()
		p = a.start("python3", "-c", LEAVE)
		p.said("left")
		made = set(a.output(p.tag, 1).splitlines())
		same("what is made under names at all", {"/tmp", "/dev/shm", "/workspace", "abstract socket", "socket", "tcp", "udp"} - made, set())
		same("what the other one finds", b.command("python3", "-c", FIND).out, "end\n")
		same("in a context", b.context().run(FIND).out, "end\n")
		found = set(a.command("python3", "-c", FIND).out.splitlines())
		same("what its own programs do not find", made - found - {"left"}, set())


@case("the number that a process of one has on the host is nobody in another")
def numbers(t):
	with Owner(t) as ada, Owner(t) as bob:
		a, b = ada.session(), bob.session()
		a.start("sleep", "1000")
		pid = find_below(ada.p.pid, "sleep\0001000")
		code = f"""import ctypes, os
libc, met = ctypes.CDLL(None, use_errno=True), []
for number in ({pid}, {ada.p.pid}):
    for call in (lambda: os.kill(number, 9), lambda: os.kill(-number, 9), lambda: os.pidfd_open(number), lambda: os.stat(f'/proc/{{number}}'), lambda: os.getpgid(number),
                 lambda: os.sched_getaffinity(number), lambda: os.getpriority(os.PRIO_PROCESS, number)):
        try: met.append(call())
        except OSError: pass
    met += [rc for rc in (libc.ptrace(16, number, 0, 0), libc.ptrace(0x4206, number, 0, 0), libc.process_vm_readv(number, None, 0, None, 0, 0)) if rc >= 0]
print(met)"""
		same("whom a process met", b.command("python3", "-c", code).out, "[]\n")
		same("whom code met", b.context().run(code).out, "[]\n")
		with open(f"/proc/{pid}/stat", encoding="ascii") as f:
			same("it lives", f.read().rsplit(")", 1)[1].split()[0] in "SRD", True)


@case("seen from outside, two sessions share no namespace, no user id and no control group")
def outside(t):
	with Owner(t) as ada, Owner(t) as bob:
		stewards = []
		for owner in (ada, bob, ada):
			s = owner.session()
			s.command("true")
			s.start("sleep", str(1000 + len(stewards)))
			stewards.append(find_below(owner.p.pid, f"sleep\000{1000 + len(stewards)}"))
		same("processes", len(set(stewards)), 3)
		for kind in ("user", "pid", "net", "ipc", "mnt", "uts"):
			same(kind, len({os.readlink(f"/proc/{pid}/ns/{kind}") for pid in stewards}), 3)
		groups = [open(f"/proc/{pid}/cgroup", encoding="ascii").read() for pid in stewards]
		if "brig" in groups[0]:	# a host that lets us have none tells so in what is degraded
			same("control groups", len(set(groups)), 3)
		if os.geteuid() == 0:
			same("user ids", len({os.stat(f"/proc/{pid}").st_uid for pid in stewards}), 3)


# Each takes what there is of something, says so, and keeps it.
TAKES = {
	"processes": "import os, time\nwhile True:\n    try:\n        if os.fork() == 0: time.sleep(1000)\n    except OSError: break\nprint('taken', flush=True)\ntime.sleep(1000)",
	"cpu": "import os, time\nfor i in range(8):\n    if os.fork() == 0:\n        while True: pass\nprint('taken', flush=True)\ntime.sleep(1000)",
	"disk": "import os, time\nfor place in ('/tmp', '/dev/shm', '/workspace'):\n    try:\n        with open(place + '/fill', 'wb', 0) as f:\n            while True: f.write(bytes(1 << 20))\n    except OSError: pass\nprint('taken', flush=True)\ntime.sleep(1000)",
	"files": "import os, time\nn = 0\ntry:\n    while n < 100000:\n        os.mkdir(f'/tmp/{n}'); n += 1\nexcept OSError: pass\nprint('taken', flush=True)\ntime.sleep(1000)",
	"descriptors": "import os, time\nfor i in range(40):\n    if os.fork() == 0:\n        try:\n            while True: os.pipe()\n        except OSError: time.sleep(1000)\nprint('taken', flush=True)\ntime.sleep(1000)",
	"pipes": "import fcntl, os, time\nkeep = []\ntry:\n    while True:\n        keep.append(os.pipe()); fcntl.fcntl(keep[-1][1], 1031, 1 << 20)\nexcept OSError: pass\nprint('taken', flush=True)\ntime.sleep(1000)",
	"watches": "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nfor i in range(30000):\n    try: os.mkdir(f'/tmp/w{i}')\n    except OSError: break\nfds = []\nwhile len(fds) < 1000:\n    fd = libc.inotify_init1(0o4000)\n"
		   "    if fd < 0: break\n    fds.append(fd)\nfor fd in fds[:1]:\n    for i in range(30000):\n        if libc.inotify_add_watch(fd, f'/tmp/w{i}'.encode(), 0xfff) < 0: break\nprint('taken', flush=True)\ntime.sleep(1000)",
	"signals": "import ctypes, os, signal, time\nlibc = ctypes.CDLL(None)\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])\nn = 0\nwhile n < 100000 and libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), ctypes.c_void_p(0)) == 0: n += 1\n"
		   "print('taken', flush=True)\ntime.sleep(1000)",
}
LIMITS = {"mem_limit": "96m", "pids_limit": "64", "disk_limit": "16m"}
# The same things, in the amounts that an ordinary program needs.
NEEDS = """import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None)
r, w = os.pipe()
fcntl.fcntl(w, 1031, 256 << 10)
fd = libc.inotify_init1(0)
assert fd >= 0 and libc.inotify_add_watch(fd, b'/tmp', 0xfff) > 0
pid = os.fork()
if pid == 0: os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
assert all(libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), ctypes.c_void_p(0)) == 0 for _ in range(8))
with open('/workspace/some', 'wb') as f: f.write(bytes(4 << 20))
assert len(bytearray(32 << 20)) == 32 << 20
print('ok')"""


def answers(session, context, what):
	"""All that a session is asked for."""
	same(f"code while the other one has all {what}", context.run("1 + 1").text, "2")
	p = session.command("python3", "-c", NEEDS)
	same(f"a process while the other one has all {what}", (p.out, p.err), ("ok\n", ""))
	same(f"a folder while the other one has all {what}", session.done("mkdir", path="seen-" + what)["error"], "")
	watch = session.ask("watch", path="seen-" + what)
	same(f"a watch while the other one has all {what}", session.wait("done", watch)["error"], "")
	same("a file", session.done("open", path=f"seen-{what}/f", content="x")["written"], 1)
	same("its name", session.wait("changed", watch)["name"], "f")


@case("a session that takes all there is of something leaves another what it needs")
def exhaustion(t):
	with Owner(t) as ada, Owner(t) as bob:
		b = bob.session()
		c = b.context()
		takers = []
		for what, code in TAKES.items():
			a = ada.session(LIMITS)
			a.start("python3", "-c", code).said("taken")
			takers.append(a)
			answers(b, c, what)
		same("a new one while all of these are there", bob.session().command("echo", "ok").out, "ok\n")
		for a in takers:
			same("the end of a taker", a.stop()["verdict"], "ok")


@case("a session that takes memory for ever is no matter to another", needs=("memory_limit",))
def memory(t):
	with Owner(t) as ada, Owner(t) as bob:
		a, b = ada.session(LIMITS), bob.session()
		c = b.context()
		p = a.start("sh", "-c", "while :; do python3 -c 'b = []\nwhile True: b.append(bytearray(1 << 20))'; echo again; done")
		for _ in range(3):
			p.said("again")
			a.take("output", p.tag)
			answers(b, c, "memory")
			b.done("remove", path="seen-memory")


@case("asks without end of one owner's session, that nobody hears, are no matter to another's")
def asks(t):
	with Owner(t) as ada, Owner(t) as bob:
		a, b = ada.session({"pids_limit": "64"}), bob.session()
		c = b.context()
		watch = a.ask("watch", path=".", recursive=1)
		a.wait("done", watch)
		p = a.start("sh", "-c", "while :; do mkdir x; rmdir x; done")
		loud = a.start("sh", "-c", "yes")
		loud.said("y")
		for _ in range(50):
			a.owner.try_to("list", session=a.number, path="/usr/bin", depth=1, limit=100)
		answers(b, c, "asks")
		a.wait("exited", loud.tag)	# at its output limit
		p.signal(9)
