# SPDX-License-Identifier: Apache-2.0
"""denied[]: what a program was refused is listed, counted, and refused all the same, whatever the program does about it."""
import ctypes
import json
import os
import signal
import struct
import time

import harness
from harness import case, brig_path, is_root

TRUE_FALSE = ("true", "false")
# How many answers a program gets for free, and how many a second after that: src/backend/native/denied.c.
AT_ONCE, PER_SECOND = 4096, 25000

CALLS = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
NR = dict(zip(
	("ptrace", "mount", "bpf", "keyctl", "seccomp", "sethostname", "reboot", "clone3", "memfd_create", "prctl", "unknown"),
	(101, 165, 321, 250, 317, 170, 169, 435, 319, 157, 999) if platform.machine() == "x86_64" else
	(117, 40, 280, 219, 277, 161, 142, 435, 279, 167, 999)))
def call(name, *args):
	ctypes.set_errno(0)
	got = libc.syscall(NR[name], *(args or (0, 0, 0, 0, 0)))
	return got, errno.errorcode.get(ctypes.get_errno(), 0)
"""


def cell(t, code, *args, lang="python", **kw):
	t.native_only("only native cells see refused calls")
	return t.cell("--timeout", t.secs(20), *args, code=CALLS + code if lang == "python" else code, lang=lang, **kw)


def counts(r, kind):
	return {row["what"]: row["count"] for row in r.json["denied"] if row["kind"] == kind}


@case("refused calls: by name, each once, with the exact count, and the answer is the filter's own", needs=["seccomp"])
def names_and_counts(t):
	code = """
for name, times in (("ptrace", 3), ("mount", 2), ("bpf", 1), ("keyctl", 4), ("sethostname", 1)):
	for _ in range(times):
		print(name, *call(name))
"""
	r = t.verdict(cell(t, code), "ok")
	t.equal(counts(r, "syscall"), {"ptrace": 3, "mount": 2, "bpf": 1, "keyctl": 4, "sethostname": 1}, "what is listed", r)
	want = [(n, e) for n, e, c in (("ptrace", "EPERM", 3), ("mount", "EPERM", 2), ("bpf", "ENOSYS", 1), ("keyctl", "ENOSYS", 4),
		("sethostname", "EPERM", 1)) for _ in range(c)]
	t.equal(r.stdout.decode().split("\n")[:-1], [f"{n} -1 {e}" for n, e in want], "answers", r)
	for row in r.json["denied"]:
		t.check(row["why"] and row["fix"] is None, "a reason, and no policy that would help", row)


@case("without report_denied nothing is listed, and every answer is the same", needs=["seccomp"])
def same_answers(t):
	code = """
print([(nr, libc.syscall(nr, -1, -1, -1, -1, -1, -1) < 0 and errno.errorcode.get(ctypes.get_errno())) for nr in NR.values()])
print([call("prctl", option, 0, 0, 0, 0) for option in (21, 22, 35, 53, 59)])
"""
	seen = {value: t.verdict(cell(t, code, "--trust", "trusted", "--set", f"report_denied={value}"), "ok") for value in TRUE_FALSE}
	t.equal(seen["true"].stdout, seen["false"].stdout, "output with and without")
	t.equal(seen["false"].json["denied"], [], "the list without", seen["false"])
	t.check(counts(seen["true"], "syscall").keys() >= {"ptrace", "seccomp", "prctl"}, "the list with", seen["true"].json["denied"])


@case("what libraries try first and do well without is not listed")
def probes(t):
	r = t.verdict(cell(t, "print([call(n) for n in ('clone3', 'memfd_create', 'unknown')])"), "ok")
	t.equal(r.stdout, b"[" + b", ".join([b"(-1, 'ENOSYS')"] * 3) + b"]\n", "answers", r)
	t.equal(r.json["denied"], [], "the list", r)


@case("a call that is allowed with other arguments says so", needs=["seccomp"])
def arguments(t):
	r = t.verdict(cell(t, "import socket\ntry: socket.socket(17, 3, 0)\nexcept PermissionError: print('refused')\n"), "ok")
	t.equal((r.stdout, counts(r, "syscall")), (b"refused\n", {"socket": 1}), "output and list", r)
	t.check("arguments" in r.json["denied"][0]["why"], "the reason names the arguments", r.json["denied"])


@case("hosts that a program connects to are listed; its own loopback is not", needs=["seccomp", "net_ns"])
def hosts(t):
	code = """
import socket
def go(family, kind, where):
	with socket.socket(family, kind) as s:
		try: s.connect(where)
		except OSError as e: print(errno.errorcode[e.errno])
for _ in range(2): go(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.7", 443))
go(socket.AF_INET, socket.SOCK_DGRAM, ("198.51.100.1", 53))
go(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::7", 80))
go(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 9))
go(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 9))
go(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 9))
go(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", 9))
go(socket.AF_UNIX, socket.SOCK_STREAM, "/tmp/a-rather-long-name-that-is-no-internet-address")
"""
	r = t.verdict(cell(t, code), "ok")
	t.equal(r.stdout.split(), [b"ENETUNREACH"] * 4 + [b"ECONNREFUSED"] * 4 + [b"ENOENT"], "answers", r)
	t.equal(counts(r, "host"), {"192.0.2.7:443": 2, "198.51.100.1:53": 1, "[2001:db8::7]:80": 1}, "the list", r)
	row = next(row for row in r.json["denied"] if row["what"] == "192.0.2.7:443")
	t.equal(row["why"], "the cell has no network", "why", row)
	t.check("network_mode: allowlist" in row["fix"] and "192.0.2.7:443" in row["fix"], "fix names the setting", row)


@case("loopback connections work while they are told of, and unreadable addresses are an error, not a hang", needs=["seccomp"])
def loopback(t):
	code = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
	for _ in range(200):
		with server.accept()[0] as s: s.sendall(s.recv(9))
threading.Thread(target=serve, daemon=True).start()
for i in range(200):
	with socket.create_connection(server.getsockname()) as s:
		s.sendall(b"%d" % i)
		assert int(s.recv(9)) == i
with socket.socket() as s:
	for pointer in (0, 1, 2**47, 2**64 - 1):
		got = libc.connect(s.fileno(), ctypes.c_void_p(pointer), 16)
		assert got == -1 and ctypes.get_errno() == errno.EFAULT, (pointer, got)
	for length in (0, 1, 15, 2**31 - 1, -1):
		assert libc.connect(s.fileno(), b"\\2" * 64, ctypes.c_int(length)) == -1
print("fine")
"""
	r = t.verdict(cell(t, code), "ok")
	t.equal((r.stdout, counts(r, "syscall")), (b"fine\n", {}), "output and refused calls", r)


@case("threads, children and signals: not one call lost, none counted twice", needs=["seccomp"])
def threads_and_signals(t):
	code = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <errno.h>
static volatile int wrong, ticks;
static void tick(int sig) { (void)sig; ticks++; }
static void *work(void *arg)
{
	for (int i = 0; i < 200; i++) {
		long got;

		/* A signal may come before brig has heard of the call: then it was not made, and is not counted. */
		do
			got = syscall(SYS_setdomainname, "x", 1);
		while (got == -1 && errno == EINTR);
		if (got != -1 || errno != EPERM)
			wrong++;
	}
	return arg;
}
int main(void)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = tick }; /* no SA_RESTART */
	pthread_t thread[4];
	int status = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	if (fork() == 0) {
		work(NULL);
		_exit(wrong != 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	while (wait(&status) < 0 && errno == EINTR)
		;
	printf("%d wrong, child %d\\n", wrong, status);
	return 0;
}
"""
	r = t.verdict(cell(t, code, lang="c"), "ok")
	t.equal(r.stdout, b"0 wrong, child 0\n", "output", r)
	t.equal(counts(r, "syscall"), {"setdomainname": 1000}, "the list", r)


@case("the strict profile kills at once; what it only refuses is listed", needs=["seccomp"])
def strict(t):
	r = cell(t, "call('sethostname')\nprint('on', flush=True)\ncall('ptrace')\nprint('never')\n", "--set", "seccomp_profile=strict")
	t.verdict(r, "crash")
	t.equal((r.signal, r.stdout), (int(signal.SIGSYS), b"on\n"), "signal and output", r)
	t.equal(counts(r, "syscall"), {"sethostname": 1}, "the list: a killed process tells nobody", r)


@case("a program that wants a filter or a listener of its own is refused as ever, and goes on", needs=["seccomp"])
def own_filter(t):
	code = """
prog = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 0xff, 0x7f]))
fprog = ctypes.create_string_buffer(16)
fprog[0:2] = (1).to_bytes(2, "little")
fprog[8:16] = ctypes.addressof(prog).to_bytes(8, "little")
print(call("prctl", 38, 1, 0, 0, 0), call("prctl", 22, 2, fprog, 0, 0), call("seccomp", 1, 0, fprog), call("seccomp", 1, 8, fprog))
"""
	r = t.verdict(cell(t, code), "ok")
	t.equal(r.stdout, b"(0, 0) (-1, 'EPERM') (-1, 'EPERM') (-1, 'EPERM')\n", "answers", r)
	t.equal(counts(r, "syscall"), {"prctl": 1, "seccomp": 2}, "the list", r)


def cpu_seconds(pid):
	"""Of a process itself, without its children."""
	try:
		with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
			fields = f.read().rsplit(")", 1)[1].split()
	except OSError:
		return 0
	return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


FLOOD = """
import threading
def flood():
	while True: call("reboot")
for _ in range(8): threading.Thread(target=flood).start()
"""


@case("a flood of refused calls is answered at a bounded rate, and brig's own cpu time stays small", needs=["seccomp"])
def flood(t):
	t.native_only("only native cells see refused calls")

	def attempt(limit):
		p = t.popen(t.run_args("--json", "--timeout", limit, "--trust", "trusted", "--cpus", 1, t.path("flood.py", CALLS + FLOOD)), stdin=-3, stdout=-1,
			    stderr=-1)
		used, out = 0, None
		while out is None:
			used = max(used, cpu_seconds(p.pid))
			try:
				out, err = p.communicate(timeout=0.05)
			except harness.subprocess.TimeoutExpired:
				pass
		doc = json.loads(out)
		t.equal(doc["verdict"], "timeout", "verdict", err)
		return doc, used, {row["what"]: row["count"] for row in doc["denied"]}

	(doc, used, n), _ = t.at_limit(3, attempt, lambda seen: seen[2].get("reboot", 0) > 100)
	ran = doc["usage"]["wall_ms"] / 1000
	t.check(n.keys() == {"reboot"} and n["reboot"] > 100, "calls are counted", n)
	# The pace is kept by the clock, whatever the machine can do.
	t.check(n["reboot"] <= AT_ONCE + PER_SECOND * (ran + 1), f"no more than the pace allows in {ran} s", n)
	if harness.SLACK <= 1:
		t.check(used < ran / 2, f"brig used {used:.2f} s of cpu in {ran:.2f} s", n)


@case("brig stopped: a refused call waits, and the wall clock ends the cell", needs=["seccomp"])
def stopped(t):
	t.native_only("only native cells see refused calls")
	code = CALLS + "call('reboot')\nprint('up', flush=True)\nwhile True: assert call('reboot') == (-1, 'EPERM')\n"

	def attempt(limit):
		p = t.popen(t.run_args("--summary", "--timeout", limit, t.path("p.py", code)), stdin=-3, stdout=-1, stderr=-1)
		line = p.stdout.readline()
		if line:
			p.send_signal(signal.SIGSTOP)
			time.sleep(limit + 1.5)
			p.send_signal(signal.SIGCONT)
		return line, p, p.communicate(timeout=harness.GUARD)[1]

	(line, p, err), _ = t.at_limit(2, attempt, lambda seen: seen[0])
	t.equal(line, b"up\n", "first line")
	t.equal(p.returncode, 124, "exit status", err)
	t.check(b"brig: timeout" in err and b"refused: reboot" in err, "the verdict, and the call", err)


@case("brig killed: whoever waits for an answer dies with the cell", needs=["seccomp"])
def killed(t):
	t.native_only("only native cells see refused calls")
	p = t.popen(t.run_args("--timeout", t.secs(20), t.path("p.py", CALLS + "print('up', flush=True)\n" + FLOOD)), stdin=-3, stdout=-1, stderr=-1)
	t.equal(p.stdout.readline(), b"up\n", "first line")
	p.kill()
	p.communicate(timeout=harness.GUARD)	# the census after the case finds what is left
	t.equal(p.returncode, -signal.SIGKILL, "exit status")


@case("one line on stderr with --summary, none without anything to say")
def summary(t):
	t.native_only("only native cells see refused calls")
	p = t.run(t.run_args("--summary", t.path("p.py", CALLS + "call('ptrace'); call('ptrace'); call('mount')\n")))
	t.check(b"brig: refused: ptrace (2 times), mount; --json says why\n" in p.err, "the line", p)
	p = t.run(t.run_args("--summary", "-c", "true", "--lang", "shell"))
	t.check(b"refused" not in p.err, "no line", p)


def take_the_listener():
	"""In the child, before exec: a filter that allows everything, with a listener that stays open.  A process has one."""
	insn = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
	prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(insn)))
	number = 317 if os.uname().machine == "x86_64" else 277
	fd = harness.libc.syscall(number, 1, 8, prog)
	if fd < 0:
		os._exit(77)
	os.set_inheritable(fd, True)


@case("no listener to be had: the plain filter stands, and a warning says that nothing is listed", needs=["seccomp"])
def no_listener(t):
	t.native_only("only native cells see refused calls")
	if not is_root():
		t.skip("to take the one listener away needs root")
	argv = [brig_path(), "run", "--json", t.path("p.py", CALLS + "print(call('ptrace'))\n")]
	p = harness.subprocess.run(argv, env=harness.clean_env({"BRIG_STATE": t.state}), preexec_fn=take_the_listener, stdin=-3, stdout=-1,
				   stderr=-1, timeout=harness.GUARD, close_fds=False)
	if p.returncode == 77:
		t.skip("this kernel gives no listener")
	doc = json.loads(p.stdout)
	t.equal((doc["verdict"], doc["stdout"], doc["denied"]), ("ok", "(-1, 'EPERM')\n", []), "result", p)
	t.check(any("are not listed" in w for w in doc["warnings"]), "the warning", doc["warnings"])
	row = next(row for row in doc["evidence"] if row["check"] == "seccomp")
	t.check(row["kept"], "the filter is in force", row)


@case("hidden files of a workspace: listed when they are opened, from the first instruction on, and only then")
def hidden_files(t):
	t.native_only("only native cells see what is opened")
	project = os.path.join(t.dir, "project")
	for name, text in ((".env", "TOKEN=1"), ("deploy/.env", "TOKEN=2"), ("deploy/id_rsa", "KEY"), ("readme", "hello")):
		path = os.path.join(project, name)
		os.makedirs(os.path.dirname(path), exist_ok=True)
		with open(path, "w", encoding="utf-8") as f:
			f.write(text)
	if harness.test_ids():
		for folder, _, names in os.walk(project):
			for path in [folder, *(os.path.join(folder, name) for name in names)]:
				os.chown(path, *harness.test_ids())
	r = t.cell("--workspace", project, "-c", "cat .env .env; cat deploy/id_rsa; ls -lR >/dev/null; stat -c %n deploy/.env; cat readme", lang="shell")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"deploy/.env\nhello", "the files are shown empty", r)
	t.equal(counts(r, "file"), {".env": 1, "deploy/id_rsa": 1}, "the list", r.json["denied"])
	row = next(row for row in r.json["denied"] if row["what"] == ".env")
	t.check("hidden" in row["why"] and row["fix"] == "workspace_show: .env", "why and fix", row)
	r = t.cell("--workspace", project, "--trust", "trusted", "--set", "report_denied=false", "-c", "cat .env", lang="shell")
	t.equal((t.verdict(r, "ok").json["denied"], r.stdout), ([], b""), "the list without report_denied, and the file", r)
