# SPDX-License-Identifier: Apache-2.0
"""ME, CP, PI, DI: memory, time, processes and disk beyond their limits."""
import signal

from judge import Seen, attack, both, denied, ends, facts, hosted, in_cell, to_its_limit


def peak_below(megabytes):
	def judge(t, r, _seen):
		t.check(r.json["usage"]["memory_peak_bytes"] <= megabytes << 20, f"the peak stays below {megabytes} MB", r)
	return judge


def bounded(*verdicts, megabytes=48):
	"""The limit ended it, or an error number stopped it before; in no case more memory than allowed."""
	return both(ends(*verdicts), peak_below(megabytes))


# ---- memory ----------------------------------------------------------------------------------------------

attack("ME-01", "touches anonymous memory past the limit", "python", """
begun()
keep = []
while len(keep) < 512: keep.append(bytearray(b'x') * (1 << 20))
""", both(ends("memory_limit"), peak_below(48)), needs=["memory_limit"], memory="48m")

attack("ME-02", "reserves a huge address space, as honest runtimes do", "c", r"""
int main(void)
{
	void *p = mmap(NULL, 64UL << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	printf("FACT reserved %s\n", p == MAP_FAILED ? "no" : "yes");
	return 0;
}""", facts(reserved="yes"))

attack("ME-03a", "fills tmpfs in all places", "python", """
begun()
total = 0
for place in ('/tmp', '/dev/shm', '/workspace'):
    try:
        with open(place + '/fill', 'wb', buffering=0) as f:
            while total < 256 << 20: total += f.write(bytes(1 << 20))
    except OSError: pass
fact('total', total)
""", both(ends("ok", "disk_limit", "memory_limit"), lambda t, r, s: t.check(int(s.facts.get("total", 0)) <= 33 << 20, "bytes stored", r)))

attack("ME-03b", "hides memory in memfds", "python", """
begun()
keep = []
try:
    while len(keep) < 256:
        keep.append(os.memfd_create('x'))
        os.write(keep[-1], b'x' * (1 << 20))
except OSError as e: fact('stopped', e.strerror)
fact('kept', len(keep))
""", both(bounded("memory_limit", "ok"), lambda t, r, s: t.check(int(s.facts.get("kept", 0)) < 48, "megabytes kept", r)), needs=["memory_limit"], memory="48m")

attack("ME-03c", "hides memory in SysV segments", "c", r"""
#include <sys/ipc.h>
#include <sys/shm.h>
int main(void)
{
	begun();
	for (int i = 0; i < 256; i++) {
		int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
		char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
		if (p == (char *)-1) return 0;
		memset(p, 1, 1 << 20);
		shmdt(p);
	}
	return 0;
}""", bounded("memory_limit", "ok"), needs=["memory_limit"], memory="48m")

attack("ME-03d", "hides memory in deleted files that stay open", "python", """
begun()
keep = []
try:
    while len(keep) < 256:
        f = open('/tmp/gone', 'wb', buffering=0)
        os.unlink('/tmp/gone')
        f.write(b'x' * (1 << 20))
        keep.append(f)
except OSError as e: fact('stopped', e.strerror)
fact('kept', len(keep))
""", both(ends("ok", "disk_limit", "memory_limit"), lambda t, r, s: t.check(int(s.facts.get("kept", 0)) <= 32, "megabytes kept", r)))

attack("ME-05a", "hides memory in pipes", "python", """
import fcntl
begun()
keep = []
try:
    while True:
        a, b = os.pipe()
        keep.append((a, b))
        try: fcntl.fcntl(b, 1031, 1 << 20)
        except OSError: pass
        os.set_blocking(b, False)
        try:
            while True: os.write(b, b'x' * 65536)
        except BlockingIOError: pass
except OSError: pass
""", bounded("memory_limit", "ok"), needs=["memory_limit"], memory="48m")

attack("ME-05b", "hides memory in unix sockets, many one-byte datagrams", "python", """
import socket
begun()
keep = []
try:
    while True:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        a.setblocking(False)
        keep += [a, b]
        try:
            while True: a.send(b'x')
        except BlockingIOError: pass
except OSError: pass
""", bounded("memory_limit", "ok", "cpu_limit", "timeout"), needs=["memory_limit"], memory="48m")

attack("ME-05c", "hides memory in UDP and TCP queues of its own loopback", "python", """
import socket
begun()
keep = []
try:
    while len(keep) < 900:
        r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); r.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20); r.bind(('127.0.0.1', 0))
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setblocking(False); s.connect(r.getsockname())
        keep += [r, s]
        for _ in range(64):
            try: s.send(b'x' * 32768)
            except BlockingIOError: break
except OSError: pass
fact('sockets', len(keep))
""", bounded("memory_limit", "ok", megabytes=64),	# cgroup v2 lets packets in flight pass the limit by a little
        needs=["memory_limit", "socket_memory"], memory="48m")

attack("ME-06a", "fills page tables by touching one byte per 2 MiB", "c", r"""
int main(void)
{
	begun();
	for (int round = 0; round < 64; round++) {
		char *p = mmap(NULL, 32UL << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) break;
		madvise(p, 32UL << 30, MADV_NOHUGEPAGE);
		for (unsigned long at = 0; at < 32UL << 30; at += 2 << 20)
			(void)*(volatile char *)(p + at);
	}
	return 0;
}""", bounded("memory_limit", "ok"), needs=["memory_limit"], memory="48m")

attack("ME-06b", "makes 65 thousand mappings", "c", r"""
int main(void)
{
	long made = 0;
	begun();
	for (; made < 200000; made++)
		if (mmap(NULL, 4096, made & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
	printf("FACT made %ld\n", made);
	return 0;
}""", bounded("memory_limit", "ok", "timeout"), needs=["memory_limit"], memory="48m")

attack("ME-07", "stays below per-process limits by forking", "c", r"""
int main(void)
{
	begun();
	for (int i = 0; i < 16; i++)
		if (fork() == 0) {
			char *p = malloc(8 << 20);
			memset(p, 1, 8 << 20);
			__asm__ volatile("" : : "r"(p) : "memory");
			sleep(8);
			_exit(0);
		}
	while (wait(NULL) > 0) {}
	return 0;
}""", bounded("memory_limit"), needs=["memory_limit"], memory="48m")

attack("ME-08a", "locks memory beyond its allowance", "c", r"""
int main(void)
{
	char *p = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	attempt("mlock", mlock(p, 64 << 20));
	attempt("mlock2", syscall(SYS_mlock2, p, 64 << 20, 1));
	attempt("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
	attempt("locked", (long)mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
	return done();
}""", denied(4))

attack("ME-08b", "huge pages and secret memory", "c", r"""
int main(void)
{
	attempt("hugetlb", (long)mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0));
	attempt("secret", syscall(447, 0));
	int fd = syscall(SYS_memfd_create, "h", 4);
	attempt("memfd-huge", fd < 0 ? -1 : ftruncate(fd, 2 << 20) < 0 ? -1 : (long)mmap(NULL, 2 << 20, PROT_WRITE, MAP_SHARED, fd, 0));
	return done();
}""", denied(3))

attack("ME-09", "endless recursion: a crash, not a memory limit", "c", r"""
static int down(volatile char *p) { volatile char room[4096]; room[0] = *p; return down(room) + room[0]; }
int main(void) { char c = 0; begun(); return down(&c); }
""", ends("crash", signal=int(signal.SIGSEGV)))

attack("ME-10", "pushes its pages out to pass the limit", "c", r"""
int main(void)
{
	begun();
	for (int i = 0; i < 256; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(p, i + 1, 1 << 20);
		madvise(p, 1 << 20, MADV_PAGEOUT);
	}
	return 0;
}""", bounded("memory_limit"), needs=["memory_limit", "swap_limit"], memory="48m")

attack("ME-11", "makes the OOM killer choose someone else", "python", """
fact('score', open('/proc/self/oom_score_adj').read().strip())
begun()
if os.fork() == 0:
    keep = []
    while len(keep) < 256: keep.append(bytearray(b'x') * (1 << 20))
    os._exit(0)
os.wait()
""", both(ends("memory_limit"), lambda t, r, s: t.check(int(s.facts["score"]) >= 0, "it is not protected", r)), needs=["memory_limit"], memory="48m")

# ---- time --------------------------------------------------------------------------------------------------

attack("CP-01", "sleeps and ignores every signal", "python", """
import signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
begun()
while True: time.sleep(1)
""", ends("timeout"), timeout=1)

for variant, (what, busy) in zip("abc", {"a busy loop": "while True: pass", "a catastrophic regex": "import re; re.match('(a+)+$', 'a' * 64 + 'b')",
					 "big-integer power": "print(len(str(7 ** 10 ** 9)))"}.items()):
	attack("CP-02" + variant, what + " without signal checks", "python", f"begun()\n{busy}\n", ends("timeout", "cpu_limit", "memory_limit"), timeout=1)

attack("CP-03", "catches SIGXCPU and raises its soft limits", "c", r"""
static void caught(int s) {}
int main(void)
{
	struct rlimit r;
	signal(SIGXCPU, caught);
	getrlimit(RLIMIT_CPU, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_CPU, &r);
	begun();
	for (;;) {}
}""", ends("cpu_limit", "timeout"), cpu_time_ms=500, timeout=6)

attack("CP-04", "spreads cpu time over short-lived children", "c", r"""
int main(void)
{
	begun();
	for (;;) {
		for (int i = 0; i < 4; i++)
			if (fork() == 0) { for (volatile int k = 0; k < 3000000; k++) {} _exit(0); }
		while (wait(NULL) > 0) {}
	}
}""", ends("cpu_limit"), needs=["cpu_time"], cpu_time_ms=600)

attack("CP-05a", "real-time class, negative nice, other processors", "c", r"""
int main(void)
{
	struct sched_param p = { 10 };
	struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t prio; uint64_t runtime, deadline, period; } a = { 48, 6, 0, 0, 0, 1000000, 10000000, 10000000 };
	attempt("fifo", sched_setscheduler(0, SCHED_FIFO, &p));
	attempt("rr", sched_setscheduler(0, SCHED_RR, &p));
	attempt("deadline", syscall(SYS_sched_setattr, 0, &a, 0));
	attempt("param", sched_setparam(0, &p));
	attempt("nice", setpriority(PRIO_PROCESS, 0, -10));
	attempt("rtprio", setrlimit(RLIMIT_RTPRIO, &(struct rlimit){ 99, 99 }));
	return done();
}""", denied(6))

attack("CP-05b", "slows init down", "c", r"""
int main(void)
{
	struct sched_param p = { 0 };
	attempt("nice", setpriority(PRIO_PROCESS, 1, 19));
	attempt("idle", sched_setscheduler(1, SCHED_IDLE, &p));
	attempt("limit", prlimit(1, RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }, NULL));
	return done();
}""", denied(3))

attack("CP-06a", "stops itself", "c", r"""
int main(void) { begun(); raise(SIGSTOP); kill(getpid(), SIGTSTP); for (;;) pause(); }
""", ends("timeout"), timeout=1)

attack("CP-06b", "waits for ever in vfork", "c", r"""
int main(void) { begun(); if (vfork() == 0) for (;;) pause(); return 0; }
""", ends("timeout"), timeout=1)

attack("CP-06c", "waits on a FIFO and on a full pipe", "c", r"""
int main(void)
{
	int p[2];
	char block[65536] = { 0 };
	mkfifo("/workspace/f", 0600);
	pipe(p);
	begun();
	if (fork() == 0) for (;;) write(p[1], block, sizeof block);
	open("/workspace/f", O_RDONLY);
	return 0;
}""", ends("timeout"), timeout=1)

attack("CP-07", "quadratic kernel work: thousands of file locks", "c", r"""
int main(void)
{
	int fd = open("/workspace/l", O_CREAT | O_RDWR, 0600);
	begun();
	for (long i = 0; i < 400000; i++) {
		struct flock l = { .l_type = i & 1 ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET, .l_start = i * 2, .l_len = 1 };
		if (fcntl(fd, F_SETLK, &l) < 0) return 0;
	}
	return 0;
}""", ends("cpu_limit", "timeout", "memory_limit"), cpu_time_ms=1000, timeout=4)

attack("CP-09a", "a storm of interval timers", "c", r"""
static void tick(int s) {}
int main(void)
{
	struct itimerval v = { { 0, 1 }, { 0, 1 } };
	signal(SIGALRM, tick); signal(SIGVTALRM, tick); signal(SIGPROF, tick);
	begun();
	setitimer(ITIMER_REAL, &v, NULL); setitimer(ITIMER_VIRTUAL, &v, NULL); setitimer(ITIMER_PROF, &v, NULL);
	for (;;) {}
}""", ends("timeout", "cpu_limit"), timeout=1)

attack("CP-09b", "ten thousand timers and queued signals", "c", r"""
int main(void)
{
	long timers = 0, queued = 0;
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	begun();
	for (timer_t t; timers < 10000 && timer_create(CLOCK_MONOTONIC, &e, &t) == 0; timers++) {}
	for (; queued < 10000 && sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0; queued++) {}
	printf("FACT timers %ld\nFACT queued %ld\n", timers, queued);
	return 0;
}""", both(ends("ok"), facts(timers=lambda n: int(n) < 10000, queued=lambda n: int(n) < 10000)))

# ---- processes ---------------------------------------------------------------------------------------------


def below_pids(limit):
	def judge(t, r, _seen):
		t.check(r.json["usage"]["pids_peak"] <= limit, "never more processes than allowed", r)
	return judge


attack("PI-01a", "a fork bomb", "c", r"""
int main(void)
{
	long n = 0;
	begun();
	for (int i = 0; i < 500; i++) {
		pid_t pid = fork();
		if (pid == 0) { for (;;) pause(); }
		if (pid < 0) { printf("FACT stopped %ld %s\n", n, strerrorname_np(errno)); fflush(stdout); return 1; }
		n++;
	}
	return 0;
}""", both(ends("pids_limit"), below_pids(24), lambda t, r, s: t.check("EAGAIN" in s.facts.get("stopped", ""), "fork was refused", r)),
       needs=["pids_limit"], pids=24)

attack("PI-01b", "a bomb whose children fork too, for ever", "c", r"""
int main(void) { begun(); for (;;) fork(); }
""", both(ends("pids_limit", "timeout", "cpu_limit"), below_pids(24)), needs=["pids_limit"], pids=24, timeout=2)

attack("PI-02a", "a thread bomb in one process", "c", r"""
static void *idle(void *p) { for (;;) pause(); }
int main(void)
{
	long n = 0;
	pthread_t t;
	begun();
	while (n < 2000 && pthread_create(&t, NULL, idle, NULL) == 0) n++;
	printf("FACT threads %ld\n", n);
	return n < 2000 ? 1 : 0;
}""", both(ends("pids_limit", "error"), below_pids(24), lambda t, r, s: t.check(int(s.facts["threads"]) < 24, "threads made", r)),
       needs=["pids_limit"], pids=24)

attack("PI-02b", "node starts workers without end", "javascript", """
const { Worker } = require('worker_threads');
console.log('BEGUN');
function more() { const w = new Worker('setInterval(() => {}, 1000)', { eval: true }); w.on('error', () => process.exit(3)); setImmediate(more); }
process.on('uncaughtException', () => process.exit(3));
more();
""", both(ends("pids_limit", "error", "crash", "memory_limit", "timeout", "cpu_limit"), below_pids(24)), needs=["pids_limit"], pids=24, timeout=5)

attack("PI-03", "main ends, a daemon keeps the pipes", "shell", """
echo BEGUN
setsid sh -c 'trap "" TERM HUP INT; while :; do echo late; sleep 1; done' &
(setsid sleep 1000 &) ; nohup sleep 1000 >/dev/null 2>&1 &
exit 0
""", ends("ok"))

attack("PI-04", "a fork rabbit whose pid changes for ever", "c", r"""
int main(void)
{
	begun();
	for (;;) {
		pid_t pid = fork();
		if (pid < 0) continue;
		if (pid > 0) { if (getpid() < 4) { for (;;) { wait(NULL); usleep(1000); } } _exit(0); }
		setsid();
	}
}""", ends("ok", "timeout", "cpu_limit", "pids_limit"), timeout=1)

attack("PI-05", "hundreds of orphans and zombies: init reaps", "c", r"""
int main(void)
{
	begun();
	int made = 0;
	for (int i = 0; i < 500; i++) {
		pid_t pid = fork();
		if (pid < 0) break;
		if (pid == 0) { if (fork() == 0) _exit(3); _exit(0); }
		waitpid(pid, NULL, 0);
		made++;
	}
	for (int i = 0; i < 40; i++)
		if (fork() == 0) _exit(0);
	printf("FACT made %d\n", made);
	return 0;
}""", facts(made="500"))


@hosted("PI-06", "exit codes and signals that look like brig's own")
def look_alikes(t):
	for code in (0, 1, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 137, 139, 159, 255):
		r = in_cell(t, "shell", f"exit {code}\n")
		t.verdict(r, "ok" if code == 0 else "error")
		t.equal((r.json["exit_code"], r.signal), (code, 0), "code and signal", r)
	for name in ("HUP", "INT", "QUIT", "ILL", "KILL", "SEGV", "PIPE", "ALRM", "USR1", "XCPU", "SYS"):
		r = in_cell(t, "shell", f"kill -{name} $$\n")
		t.verdict(r, "crash")
		t.equal(r.signal, int(getattr(signal, "SIG" + name)), "signal", r)


attack("PI-08", "the main thread ends, others go on", "c", r"""
static void *rest(void *p) { usleep(300000); printf("FACT rest ran\n"); fflush(stdout); _exit(9); }
int main(void) { pthread_t t; begun(); pthread_create(&t, NULL, rest, NULL); pthread_exit(NULL); }
""", both(ends("error", exit_code=9), lambda t, r, s: t.equal(s.facts.get("rest"), "ran", "the other thread", r)))


@hosted("PI-09", "forks while it is being killed, several rounds")
def fork_while_killed(t):
	# What dead processes had is charged until the kernel has freed it, which takes its time on a busy machine: memory is not the subject.
	limits = {"timeout": 1, "pids": 32, "memory": "1g"}
	for _ in range(5):
		r = to_its_limit(t, "c", "int main(void) { begun(); for (;;) if (fork() == 0 && fork() == 0) setsid(); }\n", limits=limits)
		ends("timeout", "pids_limit", "cpu_limit")(t, r, Seen(r.stdout))


attack("PI-10", "session leader, own group, subreaper, no parent-death signal", "c", r"""
int main(void)
{
	begun();
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			setsid(); setpgid(0, 0);
			prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
			prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
			prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
			prctl(PR_SET_NAME, "kworker/0:0", 0, 0, 0);
			for (int s = 1; s < 65; s++) signal(s, SIG_IGN);
			fork();
			for (;;) pause();
		}
	return 0;
}""", ends("ok"))

# ---- disk ----------------------------------------------------------------------------------------------------

attack("PI-11", "takes every inotify instance that its user has on the host", "c", r"""
#include <sys/inotify.h>
int main(void)
{
	int n = 0;
	while (n < 120 && inotify_init1(0) >= 0)
		n++;
	printf("FACT instances %s\n", n <= 16 ? "few" : "many");
	return 0;
}""", facts(instances="few"), needs=["user_counts"])

attack("DI-01", "fills every writable place", "shell", r"""
echo BEGUN
for d in /workspace /tmp /dev/shm "$HOME" "$TMPDIR" /var/tmp /run; do dd if=/dev/zero of=$d/fill bs=65536 count=2048 2>/dev/null; done
echo "FACT kb $(du -skc /workspace /tmp /dev/shm 2>/dev/null | tail -1 | cut -f1)"
exit 1
""", both(ends("disk_limit", "error"), lambda t, r, s: t.check(0 < int(s.facts["kb"]) <= 17 << 10, "kilobytes stored", r)), disk="16m")

attack("DI-02a", "a sparse file of a tebibyte", "python", """
begun()
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
fd = os.open('big', os.O_CREAT | os.O_RDWR)
attempt('truncate', os.ftruncate, fd, 1 << 40)
attempt('seek-write', os.pwrite, fd, b'x', 1 << 40)
done()
""", denied(2, verdicts=("ok", "disk_limit")))

attack("DI-02b", "reserves blocks by fallocate", "c", r"""
int main(void)
{
	signal(SIGXFSZ, SIG_IGN);
	int fd = open("/workspace/big", O_CREAT | O_RDWR, 0600), tmp = open("/tmp/big", O_CREAT | O_RDWR, 0600);
	attempt("workspace", fallocate(fd, 0, 0, 1L << 33));
	attempt("tmp", fallocate(tmp, 0, 0, 1L << 33));
	attempt("keep-size", fallocate(tmp, 1, 0, 1L << 33));
	attempt("copy", syscall(SYS_copy_file_range, open("/dev/zero", O_RDONLY), NULL, fd, NULL, 1L << 33, 0));
	return done();
}""", denied(4, verdicts=("ok", "disk_limit")))

attack("DI-03", "uses up inodes", "python", """
begun()
made = 0
try:
    for place in ('/workspace', '/tmp', '/dev/shm'):
        for i in range(3000): os.symlink('x', f'{place}/l{i}'); made += 1
except OSError as e: fact('stopped', e.strerror)
fact('made', made)
sys.exit(1 if made < 9000 else 0)
""", both(ends("disk_limit", "error"), lambda t, r, s: t.check(int(s.facts["made"]) <= 1000, "files made", r)), inodes_limit=1000)

attack("DI-04", "deep trees, many names, directories without permissions", "python", """
begun()
for i in range(2000): open(f'/tmp/{i}' + 'n' * 200, 'w').close()
os.makedirs('/workspace/shut/in/side'); open('/workspace/shut/in/side/f', 'w').close(); os.chmod('/workspace/shut/in/side', 0); os.chmod('/workspace/shut', 0)
os.chdir('/workspace')
depth = 0
try:
    while depth < 3000: os.mkdir('d'); os.chdir('d'); depth += 1
except OSError: pass
fact('depth', depth)
""", facts(depth=lambda n: int(n) > 500))

attack("DI-05", "files that stay open, mapped and busy when the run ends", "c", r"""
int main(void)
{
	begun();
	for (int i = 0; i < 6; i++)
		if (fork() == 0) {
			char name[32];
			snprintf(name, sizeof name, "/tmp/busy%d", i);
			int fd = open(name, O_CREAT | O_RDWR, 0600);
			ftruncate(fd, 1 << 20);
			char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			memset(p, 1, 1 << 20);
			unlink(name);
			mkdir("/tmp/cwd", 0700); chdir("/tmp/cwd");
			for (;;) pause();
		}
	usleep(100000);
	return 0;
}""", ends("ok"))

attack("DI-06", "a storm of sync and fsync", "c", r"""
int main(void)
{
	char block[4096] = { 0 };
	int fd = open("/workspace/s", O_CREAT | O_RDWR, 0600), direct = open("/workspace/s", O_RDWR | O_DIRECT);
	begun();
	for (int i = 0; i < 20000; i++) { pwrite(fd, block, 4096, 4096L * (i % 100)); fsync(fd); fdatasync(direct); }
	return 0;
}""", ends("ok", "cpu_limit", "timeout"))
