# SPDX-License-Identifier: Apache-2.0
"""Every verdict, its exit status, and the limit that gives it."""
import json
import os
import signal
import time

import harness
from harness import SLACK, Host, case, is_root

# The limit ends these programs, which would go on for a minute and more.  That it does so within a second is brig's own promise, in the
# evidence; here it only must not be another that ends them.
LATE_MS = 25000


def prompt(t, r, limit_ms):
	t.check(r.json["usage"]["wall_ms"] <= limit_ms + LATE_MS, f"the limit of {limit_ms} ms ends it", r)


@case("ok: exit code 0")
def ok(t):
	r = t.verdict(t.cell(code="exit 0\n", lang="shell"), "ok")
	t.equal((r.json["exit_code"], r.signal), (0, 0), "exit code and signal", r)


@case("error: the program's own exit codes pass through, the look-alikes of ours too")
def error_codes(t):
	for code in (1, 2, 42, 121, 122, 123, 124, 125, 126, 130, 137, 139, 255):
		r = t.verdict(t.cell("-c", f"exit {code}", lang="shell"), "error")
		t.equal((r.json["exit_code"], r.rc), (code, code), "exit code", r)


@case("crash: a program that kills itself is told by its signal")
def crash(t):
	for name in ("SEGV", "ABRT", "FPE", "KILL", "TERM", "BUS"):
		number = getattr(signal, "SIG" + name)
		r = t.verdict(t.cell("-c", f"kill -{name} $$", lang="shell"), "crash")
		t.equal((r.signal, r.rc), (number, 128 + number), f"signal of SIG{name}", r)


@case("crash: a null pointer")
def null_pointer(t):
	r = t.verdict(t.cell(code="int main(void) { return *(volatile int *)0; }\n", lang="c"), "crash")
	t.equal(r.signal, signal.SIGSEGV, "signal", r)


@case("timeout: partial output is kept")
def timeout(t):
	code = "import time\nprint('before', flush=True)\ntime.sleep(100)\nprint('after')\n"
	r, limit = t.at_limit(1, lambda limit: t.cell("--timeout", limit, code=code, lang="python"), lambda r: r.stdout)
	t.verdict(r, "timeout")
	t.equal(r.stdout, b"before\n", "output", r)
	t.check(r.json["usage"]["wall_ms"] >= 1000 * limit, "the time was given", r)
	prompt(t, r, 1000 * limit)


@case("timeout: signals are ignored, children too")
def timeout_stubborn(t):
	r, limit = t.at_limit(1, lambda limit: t.cell("--timeout", limit, code="""
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(3):
    if os.fork() == 0: break
print('deaf', flush=True)
while True: time.sleep(1)
""", lang="python"), lambda r: b"deaf" in r.stdout)
	t.verdict(r, "timeout")
	t.check(b"deaf" in r.stdout, "it got that far", r)
	prompt(t, r, 1000 * limit)


@case("timeout: the execution limit is taken in milliseconds, too")
def timeout_ms(t):
	r = t.verdict(t.cell("--set", "execution_timeout_ms=400", "-c", "sleep 100", lang="shell"), "timeout")
	prompt(t, r, 400)


@case("timeout: a limit that strikes before the program has begun; the evidence is whole")
def timeout_at_once(t):
	for _ in range(10):
		t.verdict(t.cell("--set", "execution_timeout_ms=10", "-c", "sleep 30", lang="shell"), "timeout")


@case("cpu_limit: a busy loop", needs=["cpu_time"])
def cpu_limit(t):
	r = t.cell("--set", "cpu_time_ms=300", "--timeout", t.secs(20), "-c", "while True: pass", lang="python")
	t.verdict(r, "cpu_limit")
	t.check(r.json["usage"]["cpu_ms"] >= 300, "the time was given", r)


@case("cpu_limit: time of all processes counts together", needs=["cpu_time"])
def cpu_limit_group(t):
	r = t.cell("--set", "cpu_time_ms=500", "--timeout", t.secs(20), code="""
while :; do
	for i in 1 2 3; do ( j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done ) & done
	wait
done
""", lang="shell")
	t.verdict(r, "cpu_limit")


@case("memory_limit: anonymous memory", needs=["memory_limit"])
def memory_anonymous(t):
	r = t.cell("--memory", "64m", "--timeout", t.secs(15), code="""
print('start', flush=True)
keep = []
while True: keep.append(bytearray(1 << 20))
""", lang="python")
	t.verdict(r, "memory_limit")
	t.equal(r.stdout, b"start\n", "output", r)
	t.check(r.json["usage"]["memory_peak_bytes"] <= 64 << 20, "the peak is below the limit", r)


@case("memory_limit: a child is killed though main ends with 0", needs=["memory_limit"])
def memory_child(t):
	r = t.cell("--memory", "64m", "--timeout", t.secs(15), code="""
import os
pid = os.fork()
if pid == 0:
    keep = []
    while True: keep.append(bytearray(1 << 20))
os.waitpid(pid, 0)
""", lang="python")
	t.verdict(r, "memory_limit")


@case("memory or disk: tmpfs cannot hold more than it may", needs=["memory_limit"])
def memory_tmpfs(t):
	r = t.cell("--memory", "64m", "--disk", "100m", "--timeout", t.secs(15), code="""
import os
fd = os.open('/tmp/fill', os.O_CREAT | os.O_WRONLY)
while True: os.write(fd, b'x' * (1 << 20))
""", lang="python")
	t.verdict(r, "memory_limit", "disk_limit")


@case("memory_limit: pipes and unix sockets are charged", needs=["memory_limit"])
def memory_pipes(t):
	r = t.cell("--memory", "32m", "--timeout", t.secs(15), code="""
import fcntl, os, socket
keep = []
print('start', flush=True)
while True:
    try:
        a, b = socket.socketpair()
        a.setblocking(False)
        keep += [a, b]
        while True: a.send(b'x' * 65536)
    except BlockingIOError: pass
    except OSError: break
print('bounded by descriptors', len(keep), flush=True)
""", lang="python")
	t.check(r.verdict in ("memory_limit", "ok"), "the limit or the number of descriptors ends it", r)
	t.check(b"start" in r.stdout, "it got that far", r)
	t.check(r.json["usage"]["memory_peak_bytes"] <= 32 << 20, "the peak is below the limit", r)


@case("output_limit: 1 GB is cut promptly and what fits is kept")
def output_limit(t):
	r = t.cell("--output-limit", "1m", "--timeout", t.secs(20), code="""
import os
block = b'0123456789abcdef' * 4096
for _ in range(16384): os.write(1, block)
""", lang="python")
	t.verdict(r, "output_limit")
	t.check(r.json["stdout_truncated"], "stdout_truncated", r)
	t.check(0 < len(r.stdout) <= 1 << 20, "what is kept fits the limit", r)
	t.check((b"0123456789abcdef" * 65537).startswith(r.stdout), "what is kept is the start, byte for byte", "")


@case("output_limit: both streams together, many small writes")
def output_limit_both(t):
	r = t.cell("--output-limit", "64k", "--timeout", t.secs(20), code="while :; do echo out; echo err >&2; done\n", lang="shell")
	t.verdict(r, "output_limit")
	t.check(len(r.stdout) + len(r.stderr) <= 65536, "what is kept fits the limit", r)


@case("output up to the limit is no breach")
def output_below_limit(t):
	r = t.cell("--output-limit", "1m", "--timeout", t.secs(20), "-c", "import os; os.write(1, b'y' * 65536)", lang="python")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"y" * 65536, "output")
	t.check(not r.json["stdout_truncated"], "nothing is cut", r)


@case("disk_limit: filling the workspace")
def disk_limit(t):
	r = t.cell("--disk", "8m", "--timeout", t.secs(20), code="""
import os
with open('big', 'wb', buffering=0) as f:
    while True: f.write(b'z' * 65536)
""", lang="python")
	t.verdict(r, "disk_limit")
	t.check(b"No space left" in r.stderr or b"too large" in r.stderr.lower(), "the program saw the error", r)


@case("disk_limit: workspace, /tmp and /dev/shm count together")
def disk_limit_sum(t):
	r = t.cell("--disk", "8m", "--timeout", t.secs(20), code="""
import os
total = 0
for place in ('/workspace', '/tmp', '/dev/shm'):
    try:
        with open(place + '/fill', 'wb', buffering=0) as f:
            while total < 64 << 20: total += f.write(b'z' * 65536)
    except OSError as e: print(place, e.strerror)
print('TOTAL', total)
""", lang="python")
	t.check(r.verdict in ("ok", "disk_limit"), "verdict", r)
	total = int(r.stdout.split(b"TOTAL ")[1])
	t.check(total <= 8 << 20, "all places together hold no more than the limit", r)


@case("disk_io_bps: reading from disk takes its time where the kernel can see to it, else the run is refused or says so")
def disk_io(t):
	read = ("--timeout", t.secs(60), "--set", "disk_io_bps=1m")
	code = "import os, mmap, sys\nfd = os.open(sys.executable, os.O_RDONLY | os.O_DIRECT)\nroom = mmap.mmap(-1, 1 << 20)\n" \
	       "print(sum(os.readv(fd, [room]) for _ in range(3)) >> 20)\n"
	r = t.cell(*read, code=code, lang="python")
	if r.verdict == "refused":
		t.check("disk_io" in r.reason, "the reason", r)
		allowed = ",".join(filter(None, (os.environ.get("BRIG_ALLOW_DEGRADED"), "disk_io")))
		r = t.verdict(t.cell(*read, "--allow-degraded", allowed, code="print(1)", lang="python"), "ok")
		t.check("disk_io" in r.degraded, "it is told that the limit is missing", r)
		t.skip("disks cannot be limited here")
	t.verdict(r, "ok")
	row = next(row for row in r.json["evidence"] if row["check"] == "disk_io")
	t.equal((row["declared"], row["enforced"], row["kept"]), ("<= 1048576", "1048576", True), "evidence", row)
	t.equal(r.stdout, b"3\n", "MB read past the page cache", r)
	t.check(r.json["usage"]["wall_ms"] >= 1500, "three MB at one per second came at once", r)	# a slow machine only takes longer


@case("disk_limit: inodes", needs=["disk_limit"])
def inode_limit(t):
	r = t.cell("--set", "inodes_limit=200", "--timeout", t.secs(20), code="""
for i in range(1000): open(f'f{i}', 'w').close()
""", lang="python")
	t.verdict(r, "disk_limit")


@case("pids_limit: a fork bomb", needs=["pids_limit"])
def pids_limit(t):
	r = t.cell("--pids", 16, "--timeout", t.secs(20), code="""
import os, sys, time
try:
    for _ in range(100):
        if os.fork() == 0: time.sleep(60)
except OSError as e:
    print('refused', e.strerror, flush=True)
    sys.exit(3)
""", lang="python")
	t.verdict(r, "pids_limit")
	t.check(b"refused" in r.stdout, "fork failed inside", r)
	t.check(r.json["usage"]["pids_peak"] <= 16, "never more than the limit", r)


@case("pids_limit: an exponential bomb ends, and all of it", needs=["pids_limit"])
def fork_bomb(t):
	r, _ = t.at_limit(3, lambda limit: t.cell("--pids", 20, "--timeout", limit, "-c", "b() { b | b & }; b; sleep 1; wait", lang="shell"),
			  lambda r: b"fork" in r.stderr)
	t.verdict(r, "pids_limit", "timeout", "ok")	# the shell that lit it may well end with 0
	t.check(b"fork" in r.stderr, "fork failed inside", r)
	t.check(r.json["usage"]["pids_peak"] <= 20, "never more than the limit", r)


@case("refused: a request for more than its trust allows")
def refused_loosening(t):
	for words in (("--memory", "4g"), ("--timeout", "600"), ("--pids", "5000"), ("--cpus", "8"), ("--disk", "10g"),
		      ("--set", "network_mode=allowlist"), ("--set", "seccomp_profile=off"), ("--set", "user=0:0"),
		      ("--set", "read_only=false"), ("--set", "allow_degraded=seccomp"), ("--set", "enable_sandbox=false"),
		      ("--backend", "direct")):
		p = t.run(t.run_args("--json", *words, "-c", "echo ran", "--lang", "shell"))
		t.equal(p.rc, 125, f"exit status for {' '.join(words)}", p)
		t.check(b'"stdout": "ran' not in p.out and b'"stdout":"ran' not in p.out, "nothing ran", p)


@case("refused: the result says why, with no exit code and no output")
def refused_result(t):
	r = t.verdict(t.cell("--memory", "4g", "-c", "echo ran", lang="shell"), "refused")
	t.check("mem" in r.reason, "the reason names the setting", r)
	t.equal((r.json["exit_code"] in (None, -1), r.stdout), (True, b""), "no exit code, no output", r)


@case("the limit keys of the result are what was asked for")
def limits_reported(t):
	r = t.verdict(t.cell("--memory", "100m", "--pids", 20, "--disk", "10m", "--timeout", 7, "-c", "exit 0", lang="shell"), "ok")
	values = set()
	for v in r.json["limits"].values():
		values.add(v["value"] if isinstance(v, dict) else v)
	for want in (100 << 20, 20, 10 << 20, 7000):
		t.check(want in values, f"limits hold {want}", r.json["limits"])


@case("cancelled: SIGINT, SIGTERM and SIGHUP to brig end the run")
def cancelled(t):
	for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
		out = open(t.path("out"), "wb")
		p = t.popen(t.run_args("--timeout", t.secs(30), "-c", "echo begun; sleep 100", "--lang", "shell", "--summary"),
			    stdin=-3, stdout=out, stderr=-1)
		deadline = time.monotonic() + max(20 * SLACK, harness.GUARD / 2)
		while b"begun" not in open(t.path("out"), "rb").read():
			t.check(time.monotonic() < deadline and p.poll() is None, "the program begins", p.returncode)
			time.sleep(0.02)
		p.send_signal(number)
		_, err = p.communicate(timeout=harness.GUARD)
		t.equal(p.returncode, 130, f"exit status after {number.name}", err)
		t.check(b"cancelled" in err, "the summary says so", err)


@case("cancelled: the JSON result is still written, partial output kept")
def cancelled_json(t):
	p = t.popen(t.run_args("--json", "--timeout", t.secs(30), "-c", "echo begun; sleep 100", "--lang", "shell"),
		    stdin=-3, stdout=-1, stderr=-1)
	marker = wait_for_cell(t, p)
	p.send_signal(signal.SIGINT)
	out, err = p.communicate(timeout=harness.GUARD)
	r = json.loads(out)
	t.equal((r["verdict"], p.returncode), ("cancelled", 130), "verdict and status", err)
	t.equal(r["stdout"], "begun\n", "output", marker)


def wait_for_cell(t, p):
	"""Until a process below brig sleeps: the program has begun.  Told by the kernel, not by a clock."""
	deadline = time.monotonic() + max(20 * SLACK, harness.GUARD / 2)
	while time.monotonic() < deadline and p.poll() is None:
		for row in t.world.cell_processes():
			if row.split(" ", 1)[1] == "sleep":
				return row
		time.sleep(0.02)
	t.check(False, "the program begins", p.returncode)
	return None


@case("SIGKILL of brig leaves nothing (leftovers are counted by the suite)")
def killed(t):
	p = t.popen(t.run_args("--timeout", t.secs(30), "-c", "sleep 100 & sleep 100", "--lang", "shell"),
		    stdin=-3, stdout=-3, stderr=-3)
	wait_for_cell(t, p)
	p.kill()
	p.wait()
	t.after_kill()


@case("SIGSTOP for longer than the limit, then SIGCONT: timeout, at once")
def stopped(t):
	def attempt(limit):
		p = t.popen(t.run_args("--summary", "--timeout", limit, "-c", "echo up; sleep 100", "--lang", "shell"), stdin=-3, stdout=-1, stderr=-1)
		# Passed on by brig itself: it is past its first look at the cell.
		line = p.stdout.readline()
		if line:
			p.send_signal(signal.SIGSTOP)
			time.sleep(limit + 0.5)
			p.send_signal(signal.SIGCONT)
		return line, p, p.communicate(timeout=harness.GUARD)[1]

	(line, p, err), _ = t.at_limit(2, attempt, lambda seen: seen[0])
	t.equal(line, b"up\n", "first line")
	t.equal(p.returncode, 124, "exit status", err)
	t.check(b"brig: timeout" in err, "the verdict is timeout, not another with the same status", err)


@case("a daemon that holds the pipes does not delay the result")
def daemon(t):
	r = t.cell("--timeout", t.secs(20), code="""
(setsid sh -c 'while :; do sleep 1; done' &)
echo main is done
""", lang="shell")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"main is done\n", "output", r)
	t.check(r.json["usage"]["wall_ms"] < 1000 * t.secs(20), "the limit was not waited for", r)


@case("closing stdout early and going on is fine")
def closes_output(t):
	r = t.verdict(t.cell("-c", "exec >&- 2>&-; sleep 0.1; exit 5", lang="shell"), "error")
	t.equal(r.json["exit_code"], 5, "exit code", r)


@case("enable_sandbox=false is never silent")
def direct_is_loud(t):
	p = t.brig("run", "--json", "-c", "echo ran", "--lang", "shell", env={"SECURITY_ENABLE_SANDBOX": "false"})
	if p.rc == 0:
		t.check("direct" in p.text(), "the result names the backend that isolates nothing", p)
	else:
		t.equal(p.rc, 125, "otherwise it is refused", p)


@case("SECURITY_MAX_EXECUTION_TIME and BRIG_<KEY> set limits")
def environment_limits(t):
	r = t.cell("-c", "sleep 30", lang="shell", env={"SECURITY_MAX_EXECUTION_TIME": "1"})
	t.verdict(r, "timeout")
	r = t.cell("-c", "sleep 30", lang="shell", env={"BRIG_EXECUTION_TIMEOUT_MS": "500"})
	t.verdict(r, "timeout")


@case("rootless states what is missing; root has nothing to state")
def degraded_stated(t):
	t.native_only("root's cells lack nothing")
	r = t.verdict(t.cell("-c", "exit 0", lang="shell"), "ok")
	if is_root() and not os.environ.get("BRIG_ALLOW_DEGRADED"):
		t.equal(r.json["degraded"], [], "degraded", r)
	elif r.json["degraded"]:
		asked = {w.strip() for w in os.environ.get("BRIG_ALLOW_DEGRADED", "").replace(",", " ").split()}
		t.check(r.degraded <= asked, "only what the policy names is given up", (r.degraded, asked))


@case("without cgroups, limits per process still hold")
def fallback_limits(t):
	if "memory_limit" in Host.degraded:
		r = t.cell("--memory", "64m", "-c", "x = bytearray(1 << 30)", lang="python")
		t.check(r.verdict in ("error", "memory_limit") and b"MemoryError" in r.stderr, "a gigabyte is not given", r)
	if "pids_limit" in Host.degraded:
		r = t.cell("--pids", 16, "--timeout", t.secs(20), code="""
import os, time
made = 0
try:
    for _ in range(200):
        if os.fork() == 0: time.sleep(60)
        made += 1
except OSError as e: print('refused', made)
""", lang="python")
		t.check(b"refused" in r.stdout and int(r.stdout.split()[-1]) < 16, "forks are refused at the limit", r)
	if "cpu_time" in Host.degraded:
		r = t.cell("--set", "cpu_time_ms=500", "--timeout", t.secs(20), "-c", "while True: pass", lang="python")
		t.verdict(r, "cpu_limit")
	if not {"memory_limit", "pids_limit", "cpu_time"} & Host.degraded:
		t.skip("this host has cgroups")
