# SPDX-License-Identifier: Apache-2.0
"""Clocks, pause, the steward's end, the owner's; sessions against each other."""
import json
import os
import signal
import time

from harness import case
from owner import PATIENCE, PTY, Owner, find_below, holds, same


@case("a session has the walls of a run, and evidence of each")
def evidence(t):
	with Owner(t) as owner:
		s = owner.session()
		s.command("true")
		r = s.stop()
	same("verdict", (r["verdict"], r["language"]), ("ok", "session"))
	run = json.loads(t.brig("exec", "--json", "--", "true", stdin=b"").out)
	same("a run", run["verdict"], "ok")
	promises = lambda result: {e["check"]: e["declared"] for e in result["evidence"] if e["check"] not in ("wall_time", "cpu_time", "memory_peak")}
	mine, its = promises(r), promises(run)
	other = {name for name in its if mine.get(name) != its[name]}
	same("walls that differ from those of a run", {name for name in other if "time" not in name and "rlimit_cpu" not in name}, set())
	same("walls that were not kept", [e["check"] for e in r["evidence"] if not e["kept"] and e["check"] not in {d["protection"] for d in r["degraded"]}], [])


@case("its time ends it; it may be moved, within the policy's")
def time_to_live(t):
	with Owner(t) as owner:
		s = owner.session({"session_timeout_ms": "60000"}, timeout_ms=60000)
		holds("too long", s.ask("timeout", timeout_ms=60001, refused=True), "session_timeout_ms")
		s.command("true")
		s.ask("timeout", timeout_ms=100)
		holds("the reason", s.wait("stopping")["reason"], "time is over")
		same("verdict", s.wait("over")["result"]["verdict"], "ok")
		holds("more than the policy's", owner.ask("begin", options={"session_timeout_ms": "1000"}, timeout_ms=2000, refused=True), "cannot last longer")


@case("one that nothing is asked of ends by itself; one at work does not")
def idle(t):
	with Owner(t) as owner:
		s = owner.session({"session_idle_ms": "1000"})
		s.command("sleep", "2")
		holds("the reason", s.wait("stopping")["reason"], "session_idle_ms")
		s.wait("over")


def is_stopped(pid):
	"""Frozen, in whichever control group says so, or by a signal."""
	groups = [line.rstrip("\n").split(":", 2) for line in open(f"/proc/{pid}/cgroup")]
	for _, controllers, path in groups:
		if controllers == "freezer" and "/brig-" in path:
			return open(f"/sys/fs/cgroup/freezer{path}/freezer.state").read() == "FROZEN\n"
		if not controllers and path.endswith("/programs"):
			return "frozen 1" in open(f"/sys/fs/cgroup{path}/cgroup.events").read()
	return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T"


def busy(s):
	"""Processes that fork, and one that has left its parent; while they are paused nothing of them changes."""
	p = s.start("bash", "-c", "setsid sleep 1000 & echo up; while :; do (:); echo $((n++)) > count; done")
	p.said("up")
	return p


@case("however a paused session ends, nothing of it is left: by its owner's word, its owner's end, its steward's, its time")
def paused_ends(t):
	with Owner(t) as owner:
		for end in ("stop", "steward", "time"):
			s = owner.session()
			s.context()
			busy(s)
			same("paused", s.done("pause")["error"], "")
			how = next(e for e in s.stop()["evidence"] if e["check"] == "pause") if end == "stop" else None
			if end == "steward":
				os.kill(find_below(owner.p.pid, "/run/brig/steward"), signal.SIGKILL)
			elif end == "time":
				s.ask("timeout", timeout_ms=1)
			if end != "stop":
				same(end, s.wait("over")["result"]["verdict"], {"steward": "crash", "time": "ok"}[end])
			elif how:
				t.check(how["kept"] and how["enforced"] in ("freezer-v1", "freezer-v2", "signals"), "how it was stopped", how)
				freezer = os.path.isdir("/sys/fs/cgroup/freezer") or os.path.exists("/sys/fs/cgroup/cgroup.controllers")
				t.check(os.geteuid() != 0 or not freezer or how["enforced"] != "signals", "the freezer, where there is one", how)
	owner = Owner(t)
	with owner:
		s = owner.session()
		busy(s)
		same("paused", s.done("pause")["error"], "")
		owner.p.send_signal(signal.SIGKILL)
		same("its owner", owner.p.wait(PATIENCE), -9)


@case("a pause is none that programs could see: what forks is caught, nothing changes, and what they have stopped stays stopped")
def paused_unseen(t):
	with Owner(t) as owner:
		s = owner.session()
		busy(s)
		stopped = s.start("bash", "-c", "trap 'echo continued' CONT; echo up; kill -STOP $$; sleep 1000")
		stopped.said("up")
		asleep = find_below(owner.p.pid, "bash\0-c\0trap")
		while open(f"/proc/{asleep}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
			pass
		for _ in range(3):
			same("paused", s.done("pause")["error"], "")
			before = s.done("open", path="count")["content"]
			time.sleep(0.05)
			same("nothing runs", s.done("open", path="count")["content"], before)
			same("resumed", s.done("resume")["error"], "")
		while s.done("open", path="count")["content"] == before:
			pass
		how = next(e for e in s.stop()["evidence"] if e["check"] == "pause")["enforced"]
		if how != "signals":
			same("what was stopped", s.output(stopped.tag, 1), "up\n")


@case("pause stops every process of it, resume lets them go on")
def pause(t):
	with Owner(t) as owner:
		s = owner.session()
		c = s.context()
		p = s.start("sh", "-c", "while :; do echo tick; sleep 0.02; done")
		p.said("tick")
		s.start("sleep", "1000")
		same("paused", s.done("pause")["error"], "")
		asleep = find_below(owner.p.pid, "sleep\0001000")
		while not is_stopped(asleep):
			pass	# by signals it stops as soon as it runs
		same("resumed", s.done("resume")["error"], "")
		before = s.output(p.tag, 1).count("tick")
		while s.output(p.tag, 1).count("tick") <= before + 5:
			owner.kept.append(owner.next())
		same("the context", c.run("1 + 1").text, "2")


@case("while it is paused files can be used and nothing can be run; limits of what runs stand still, and nobody takes it for idle")
def paused(t):
	with Owner(t) as owner:
		s = owner.session({"session_idle_ms": "1000"})
		c = s.context()
		r = c.begin("import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)", timeout_ms=3000)
		r.said("begun")
		p = s.start("sleep", "1000")
		same("paused", s.done("pause")["error"], "")
		time.sleep(3.2)	# longer than both limits: what does not stand still is over
		for what, members in (("start", {"argv": ["true"]}), ("run", {"context": c.tag, "code": "1"}), ("context", {"language": "bash"}), ("restart", {"of": c.tag}),
				("interrupt", {"of": c.tag}), ("connect", {"port": 80}), ("signal", {"of": p.tag, "signal": signal.SIGCONT})):
			holds(what, s.ask(what, refused=True, **members), "the session is paused: resume it first")
		same("a file", s.done("open", path="go", content="x")["written"], 1)
		same("read", s.done("open", path="go")["content"], "x")
		same("killed", p.signal(signal.SIGKILL), "")
		same("its end", s.wait("exited", p.tag)["signal"], signal.SIGKILL)
		same("resumed", s.done("resume")["error"], "")
		same("the run", r.finish().verdict, "ok")


@case("a steward that is killed ends the session, with a clear verdict")
def steward_killed(t):
	with Owner(t) as owner:
		s = owner.session()
		c = s.context()
		run = c.begin("print('now', flush=True)\nwhile True: pass")
		run.said("now")
		os.kill(find_below(owner.p.pid, "/run/brig/steward"), signal.SIGKILL)
		r = s.wait("over")["result"]
		same("the cell", (r["verdict"], r["signal"]), ("crash", "SIGKILL"))
		same("the run", run.finish().verdict, "cancelled")
		same("another session", owner.session().command("echo", "ok").out, "ok\n")


@case("the steward cannot be killed, stopped, looked into or traced by what it starts")
def steward_shielded(t):
	with Owner(t) as owner:
		s = owner.session()
		p = s.command("sh", "-c", "for sig in TERM INT HUP KILL STOP; do kill -$sig 2; kill -$sig -2; done; cat /proc/2/environ; ls /proc/2/fd; cat /proc/2/maps; echo end")
		same("what it saw", p.out, "end\n")
		code = """import ctypes, fcntl, os, signal, socket, struct
libc, refused = ctypes.CDLL(None, use_errno=True), []
here, there = socket.socketpair()
fcntl.fcntl(here, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
for name, call in (("kill all", lambda: os.kill(-1, 9)), ("pidfd_open", lambda: os.pidfd_open(2)),
                   ("which signal", lambda: fcntl.fcntl(here, 10, 9)), ("to whom", lambda: fcntl.fcntl(here, 8, 2)),
                   ("to which group", lambda: fcntl.fcntl(here, 8, -2)), ("to whom, of a struct", lambda: fcntl.fcntl(here, 15, struct.pack("ii", 1, 2))),
                   ("pidfd of /proc", lambda: signal.pidfd_send_signal(os.open("/proc/2", os.O_RDONLY | os.O_DIRECTORY), 9))):
    try:
        call()
    except OSError as e:
        refused.append((name, e.errno))
for name, words in (("tkill", (200, 2, 9)), ("tgkill", (234, 2, 2, 9)), ("queue", (129, 2, 9, 0))) if os.uname().machine == "x86_64" else ():
    if libc.syscall(*words) < 0:
        refused.append((name, ctypes.get_errno()))
there.send(b"x")
print(refused)"""
		r = s.context().run(code)
		same("what was refused", [e for e in eval(r.out) if e[1] != 1], [])
		same("how much", len(eval(r.out)), 10 if os.uname().machine == "x86_64" else 7)
		p = s.command("sh", "-c", "sleep 1000 & kill -9 $!; wait $!; echo $?")
		same("its own children", p.out, "137\n")
		same("it lives", s.command("echo", "ok").out, "ok\n")


@case("sessions cannot see, reach or signal each other")
def apart(t):
	with Owner(t) as owner:
		a, b = owner.session(), owner.session()
		server = a.start("python3", "-u", "-c", "import socket, time\ns = socket.socket(); s.bind(('0.0.0.0', 8200)); s.listen()\n"
			       "u = socket.socket(socket.AF_UNIX); u.bind('\\0shared'); u.listen()\nopen('/tmp/mark', 'w').close(); open('/dev/shm/mark', 'w').close()\nprint('up')\ntime.sleep(1000)")
		server.said("up")
		look = b.command("python3", "-c", "import os, socket\n"
				 "print(os.path.exists('/tmp/mark'), os.path.exists('/dev/shm/mark'))\n"
				 "print(socket.socket().connect_ex(('127.0.0.1', 8200)) == 0)\n"
				 "print(socket.socket(socket.AF_UNIX).connect_ex('\\0shared') == 0)\n"
				 "print(max(int(p) for p in os.listdir('/proc') if p.isdigit()))\n"
				 "n = 0\nfor p in range(3, 3000):\n    try:\n        if p != os.getpid(): os.kill(p, 9); n += 1\n    except OSError: pass\nprint(n)")
		words = look.out.split()
		same("what it saw", words[:4], ["False", "False", "False", "False"])
		same("whom it killed, but for the Python that one which was made ahead has", words[5], str(int(b.is_ready)))
		same("the server", a.command("python3", "-c", "import socket; print(socket.socket().connect_ex(('127.0.0.1', 8200)))").out, "0\n")


ATTEMPTS = """import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
done = []
def attempt(name, call):
    try:
        call()
        done.append(name)
    except (OSError, AssertionError):
        pass
def must(rc):
    assert rc == 0 or rc > 0
attempt('mount', lambda: must(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)))
attempt('unshare', lambda: must(libc.unshare(0x10000000)))
attempt('ptrace', lambda: must(libc.ptrace(16, 2, 0, 0)))
attempt('setuid', lambda: os.setuid(0))
attempt('chroot', lambda: os.chroot('/tmp'))
attempt('device', lambda: os.mknod('/workspace/disk', 0o60600, os.makedev(8, 0)))
attempt('raw socket', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9))
attempt('sysctl', lambda: open('/proc/sys/kernel/hostname', 'w').write('x'))
attempt('root', lambda: open('/usr/owned', 'w'))
attempt('init', lambda: open('/proc/1/mem', 'rb'))
attempt('steward', lambda: open('/proc/2/mem', 'rb'))
attempt('steward environment', lambda: open('/proc/2/environ', 'rb').read(1))
attempt('kill init', lambda: os.kill(1, 9))
attempt('out', lambda: socket.create_connection(('192.0.2.1', 80), 0.2))
attempt('stty', lambda: must(libc.ioctl(0, 0x5412, b'x')))
done"""


@case("what a program tries in a context, a process or on a terminal is refused as in a run", final="a wall does not hold")
def attacks(t):
	with Owner(t) as owner:
		s = owner.session()
		same("in a context", s.context().run(ATTEMPTS).text, "[]")
		program = ATTEMPTS[:-len("done")] + "print(done)"
		for flags in (0, PTY):
			p = s.command("python3", "-c", program, flags=flags)
			same("in a process", p.out.strip(), "[]")


@case("variables that load other code are refused, of the session, a process and a run")
def variables(t):
	with Owner(t) as owner:
		s = owner.session()
		tag = s.ask("start", argv=["true"], env=["LD_PRELOAD=/workspace/x.so"])
		same("a process", (s.wait("done", tag)["error"], s.wait("ran", tag)["result"]["verdict"]), ("EPERM", "refused"))
		same("a run", s.context().run("1", env=["LD_AUDIT=/workspace"]).verdict, "refused")
		refused = owner.session(env=["LD_PRELOAD=/workspace/x.so"])
		same("the session", refused.wait("over")["result"]["verdict"], "refused")


@case("a process that takes all memory is killed, and so is an interpreter; the session goes on", needs=("memory_limit",))
def memory(t):
	with Owner(t) as owner:
		s, other = owner.session({"mem_limit": "96m"}), owner.session()
		c = s.context()
		c.run("kept = 1")
		p = s.command("python3", "-c", "b = []\nwhile True: b.append(bytearray(1 << 20))")
		same("the process", (p.ended_by, p.result["verdict"]), (9, "crash"))
		same("the context", c.run("kept").text, "1")
		same("its own", c.run("b = []\nwhile True: b.append(bytearray(1 << 20))").verdict, "crash")
		same("anew", c.run("1 + 1").text, "2")
		same("another session", other.command("echo", "ok").out, "ok\n")
		ended = s.stop()
		same("the cell", (ended["verdict"], any("memory" in w for w in ended["warnings"])), ("ok", True))


@case("an owner that is killed takes its sessions with it", final="something is left behind")
def owner_killed(t):
	owner = Owner(t)
	with owner:
		s = owner.session()
		s.context()
		p = s.start("sh", "-c", "trap '' HUP TERM; setsid sleep 1000 & echo up; sleep 1000")
		p.said("up")
		owner.p.send_signal(signal.SIGKILL)
		same("its end", owner.p.wait(PATIENCE), -9)


@case("many sessions side by side")
def many(t):
	with Owner(t) as owner:
		sessions = [owner.session() for _ in range(12)]
		contexts = [s.context() for s in sessions]
		for i, c in enumerate(contexts):
			c.run(f"me = {i}")
		same("each is its own", [c.run("me").text for c in contexts], [str(i) for i in range(12)])
