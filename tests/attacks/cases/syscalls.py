# SPDX-License-Identifier: Apache-2.0
"""SY, TT: the system call filter, foreign ABIs, terminals."""
import os
import pty
import subprocess

import harness
from judge import PRELUDE, Seen, attack, denied, ends, facts, hosted, killed_or_denied

attack("SY-01", "io_uring, whose operations no filter sees", "c", r"""
int main(void)
{
	char params[120] = { 0 };
	attempt("setup", syscall(425, 8, params));
	attempt("enter", syscall(426, 0, 0, 0, 0, 0));
	attempt("register", syscall(427, 0, 0, 0, 0));
	return done();
}""", denied(3, ("ENOSYS", "EPERM")))

attack("SY-02a", "a sweep of calls that no program needs", "c", r"""
#define TRY(name, ...) attempt(#name, syscall(SYS_##name, ##__VA_ARGS__))
int main(void)
{
	char b[256] = { 0 };
	TRY(bpf, 0, b, 64); TRY(perf_event_open, b, 0, -1, -1, 0); TRY(keyctl, 0, -3, 1); TRY(add_key, "user", "x", "y", 1, -3);
	TRY(request_key, "user", "x", 0, -3); TRY(kexec_load, 0, 0, 0, 0); TRY(userfaultfd, 1); TRY(init_module, b, 8, "");
	TRY(finit_module, 0, "", 0); TRY(delete_module, "x", 0); TRY(acct, "/tmp/acct"); TRY(swapon, "/tmp/x", 0); TRY(swapoff, "/tmp/x");
	TRY(quotactl, 0x800002 << 8, 0, 0, b); TRY(settimeofday, b, 0); TRY(clock_settime, 0, b); TRY(adjtimex, (b[0] = 1, b));
	TRY(clock_adjtime, 0, b); TRY(iopl, 3); TRY(ioperm, 0, 1, 1); TRY(modify_ldt, 1, b, 16); TRY(lookup_dcookie, 0L, b, 1);
	TRY(fanotify_init, 0, 0); TRY(fanotify_mark, 0, 0, 0, 0, 0); TRY(name_to_handle_at, -1, "", b, b, 0); TRY(vhangup);
	TRY(mbind, 0, 0, 0, 0, 0, 0); TRY(set_mempolicy, 0, 0, 0); TRY(migrate_pages, 0, 0, 0, 0); TRY(move_pages, 0, 0, 0, 0, 0, 0);
	TRY(nfsservctl, 0, 0, 0); TRY(uselib, "/tmp/x"); TRY(ustat, 0, b); TRY(sysfs, 1, "tmpfs"); TRY(_sysctl, b);
	TRY(io_setup, 8, b); TRY(seccomp, 3, 0, b); TRY(kcmp, 1, 1, 0, 0, 0); TRY(chroot, "/tmp"); TRY(mount, 0, 0, 0, 0, 0);
	TRY(umount2, "/tmp", 0); TRY(sethostname, "x", 1); TRY(setdomainname, "x", 1); TRY(ptrace, 0, 0, 0, 0); TRY(unshare, 0x10000000);
	TRY(setns, -1, 0); TRY(kexec_file_load, -1, -1, 0, 0, 0); TRY(open_by_handle_at, 0, b, 0);
	return done();
}""", denied(45))

attack("SY-02b", "a sweep of newer calls, by number", "c", r"""
int main(void)
{
	char b[256] = { 0 }, name[16];
	int numbers[] = { 443 /* quotactl_fd */, 447 /* memfd_secret */, 448 /* process_mrelease */, 451 /* cachestat */, 453 /* map_shadow_stack */,
			  457, 458, 459, 460 /* lsm_set_self_attr */, 461, 462 /* mseal */, 467, 468, 469 };
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		snprintf(name, sizeof name, "nr%d", numbers[i]);
		attempt(name, syscall(numbers[i], 0, b, 0, 0, 0, 0));
	}
	return done();
}""", denied(14, ("EPERM", "ENOSYS", "EINVAL", "EBADF", "EFAULT")))

SHOW_CAGE = "for line in open('/proc/self/status'):\n    if line.startswith(('Seccomp:', 'NoNewPrivs:')): print('FACT', *line.strip().replace(':', '').split())\n"


def accepted(t, r):
	"""A request may be refused for such variables; if it runs, the cage must have been closed before."""
	return r.verdict != "refused"


@hosted("SY-03a", "sitecustomize: code that runs before the program finds the filter in force")
def sitecustomize(t):
	path = t.path("sitecustomize.py", SHOW_CAGE)
	r = t.cell("--trust", "trusted", "--env", "PYTHONPATH=/workspace", path)
	t.results = [r]
	if accepted(t, r):
		facts(Seccomp="2", NoNewPrivs="1")(t, r, Seen(r.stdout))


@hosted("SY-03b", "NODE_OPTIONS: code that runs before the program finds the filter in force")
def node_options(t):
	early = ("data:text/javascript,import fs from 'fs';for(const l of fs.readFileSync('/proc/self/status','utf8').split('%5Cn'))"
		 "if(/^(Seccomp|NoNewPrivs):/.test(l))console.log('FACT',...l.replace(':','').split(/%5Cs+/))")
	r = t.cell("--trust", "trusted", "--timeout", t.secs(20), "--env", "NODE_OPTIONS=--import \"" + early + "\"", "-c", "console.log('main')", lang="javascript")
	t.results = [r]
	if accepted(t, r) and r.verdict == "ok":
		facts(Seccomp="2", NoNewPrivs="1")(t, r, Seen(r.stdout))
	else:
		t.check(r.verdict in ("refused", "error"), "refused, or node says no", r)


@hosted("SY-03c", "LD_PRELOAD and LD_AUDIT in the request act inside only")
def preload(t):
	for name in ("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "GCONV_PATH", "BASH_ENV"):
		r = t.cell("--trust", "trusted", "--env", f"{name}=/workspace/program.py", code=SHOW_CAGE, lang="python")
		t.results = [r]
		if accepted(t, r):
			facts(Seccomp="2", NoNewPrivs="1")(t, r, Seen(r.stdout))


attack("SY-04", "a SIGSYS handler that retries for ever", "c", r"""
static volatile long n;
static void again(int s) { n++; }
int main(void)
{
	signal(SIGSYS, again);
	begun();
	for (int i = 0; i < 1000; i++) {
		long rc = -1;
#ifdef __x86_64__
		__asm__ volatile("int $0x80" : "=a"(rc) : "a"(20) : "memory");
		if (rc >= 0) attempt("i386-getpid", rc);
#endif
	}
	attempt("retry", (errno = ENOSYS, -1));
	return done();
}""", killed_or_denied())

I386 = r"""
static long int80(long nr, long a, long b, long c)
{
	long rc = -38;
#ifdef __x86_64__
	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
#endif
	return rc;
}
static void try80(const char *name, long nr, long a, long b, long c)
{
	long rc = int80(nr, a, b, c);
	if (rc < 0 && rc > -4096) { errno = -rc; rc = -1; }
	attempt(name, rc);
}
"""

attack("SY-05a", "i386 system calls by int 0x80", "c", I386 + r"""
int main(void)
{
	begun();
	try80("getpid", 20, 0, 0, 0);
	try80("mount", 21, 0, 0, 0);
	try80("unshare", 310, 0x10000000, 0, 0);
	try80("ptrace", 26, 0, 0, 0);
	return done();
}""", killed_or_denied())

attack("SY-05b", "x32 numbers", "c", r"""
int main(void)
{
	begun();
	attempt("getpid", syscall(0x40000000 + 39));
	attempt("ptrace", syscall(0x40000000 + 521, 0, 0, 0, 0));
	attempt("execve", syscall(0x40000000 + 520, "/bin/true", NULL, NULL));
	return done();
}""", killed_or_denied())

attack("SY-05c", "i386 socketcall, whose family hides behind a pointer", "c", I386 + r"""
int main(void)
{
	uint32_t *args = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	begun();
	int families[] = { 38, 40, 17, 16, 44 };
	for (int i = 0; i < 5; i++) {
		args[0] = families[i]; args[1] = SOCK_DGRAM; args[2] = 0;
		try80("socketcall", 102, 1, (long)args, 0);
	}
	return done();
}""", killed_or_denied())

attack("SY-06a", "socket families with garbage in the upper 32 bits", "c", r"""
int main(void)
{
	long families[] = { 38, 40, 17, 44, 16, 31, 29, 42, 21 };
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		attempt("clean", syscall(SYS_socket, families[i], SOCK_RAW, families[i] == 16 ? 9 : 0));
		attempt("family", syscall(SYS_socket, families[i] | 1L << 32, SOCK_DGRAM, families[i] == 16 ? 9 : 0));
		attempt("type", syscall(SYS_socket, families[i], SOCK_SEQPACKET | 1L << 33, families[i] == 16 ? 9L | 1L << 40 : 0));
		attempt("all", syscall(SYS_socket, families[i] | -1L << 32, SOCK_RAW | -1L << 32, families[i] == 16 ? 9 : -1L << 32));
	}
	return done();
}""", denied(36))

attack("SY-06b", "ioctl, personality and prctl with garbage in the upper 32 bits", "c", r"""
int main(void)
{
	char c = 'x';
	attempt("tiocsti", syscall(SYS_ioctl, 0, 0x5412UL | 1UL << 32, &c));
	attempt("tioclinux", syscall(SYS_ioctl, 0, 0x541cUL | 0xffUL << 40, &c));
	attempt("personality", syscall(SYS_personality, 0x0400000UL | 1UL << 32));
	attempt("personality-query", syscall(SYS_personality, 0x0040000UL | 0xffffffffUL << 32));
	attempt("core", syscall(SYS_setrlimit, RLIMIT_CORE | 1UL << 32, &(struct rlimit){ 0, 0 }));
	attempt("set-mm", syscall(SYS_prctl, 35UL | 1UL << 32, 1, 0, 0, 0));
	return done();
}""", denied(6))

attack("SY-07", "clone3 answers ENOSYS, and threads still work", "c", r"""
static void *thread(void *p) { return (void *)7; }
int main(void)
{
	char args[88] = { 0 };
	pthread_t t;
	void *got = NULL;
	attempt("clone3", syscall(435, args, sizeof args));
	attempt("clone3-null", syscall(435, NULL, 0));
	if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, &got) || got != (void *)7)
		attempt("threads-broken", 0);
	return done();
}""", denied(2, ("ENOSYS",)))

attack("SY-08", "keyrings as storage", "c", r"""
int main(void)
{
	char b[64];
	int rings[] = { -1, -2, -3, -4, -5 };
	for (int i = 0; i < 5; i++) {
		attempt("add", syscall(SYS_add_key, "user", "note", "data", 4, rings[i]));
		attempt("read", syscall(SYS_keyctl, 11, rings[i], b, sizeof b));
	}
	attempt("join", syscall(SYS_keyctl, 1, NULL));
	attempt("request", syscall(SYS_request_key, "user", "note", NULL, -3));
	attempt("persistent", syscall(SYS_keyctl, 22, -1, -3));
	return done();
}""", denied(13))

attack("SY-09", "userfaultfd and FUSE to widen races", "c", r"""
int main(void)
{
	attempt("uffd", syscall(SYS_userfaultfd, 0));
	attempt("uffd-user", syscall(SYS_userfaultfd, 1));
	attempt("uffd-dev", open("/dev/userfaultfd", O_RDWR));
	attempt("fuse", open("/dev/fuse", O_RDWR));
	attempt("cuse", open("/dev/cuse", O_RDWR));
	return done();
}""", denied(5))

attack("SY-10a", "personality switches that weaken memory layout", "c", r"""
int main(void)
{
	unsigned long bad[] = { 0x0400000, 0x0100000, 0x0040000, 0x0200000, 0x8, 0x0020000, 0x4000000 };
	for (int i = 0; i < 7; i++)
		attempt("set", syscall(SYS_personality, bad[i]));
	if (syscall(SYS_personality, 0xffffffff) != 0)
		attempt("query-not-zero", 0);
	return done();
}""", denied(7))

attack("SY-10b", "maps page zero", "c", r"""
int main(void)
{
	attempt("zero", (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	attempt("zero-shared", (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	attempt("grows-down", (long)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, -1, 0));
	return done();
}""", denied(3))

attack("SY-11", "numbers that do not exist yet, and negative ones", "c", r"""
int main(void)
{
	int odd = 0;
	for (long nr = 470; nr < 1024; nr++)
		if (syscall(nr, 0, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS) { odd++; printf("FACT odd%ld %d\n", nr, errno); }
	attempt("range", odd ? odd : (errno = ENOSYS, -1));
	attempt("big", syscall(0x3fffffff));
	attempt("table-end", syscall(4095));
	return done();
}""", denied(3, ("ENOSYS",)))

attack("SY-12", "seconds of random system calls with random arguments", "c", r"""
static uint64_t state = 0x9e3779b97f4a7c15;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static char room[1 << 16];
static uint64_t argument(void)
{
	switch (next() % 8) {
	case 0: return next();
	case 1: return next() % 16;
	case 2: return (uint64_t)(room + next() % sizeof room);
	case 3: return (uint64_t)"/workspace/x";
	case 4: return 0;
	case 5: return -1;
	case 6: return 1UL << (next() % 64);
	default: return next() & 0xffff;
	}
}
static void storm(int round)
{
	/* exits, signals, and calls that only wait: they would end the storm, not test anything */
	static const int skip[] = { SYS_exit, SYS_exit_group, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_pause, SYS_rt_sigsuspend,
		SYS_select, SYS_pselect6, SYS_poll, SYS_ppoll, SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_rt_sigtimedwait, SYS_reboot,
		SYS_fork, SYS_vfork, SYS_clone, SYS_read, SYS_rt_sigreturn, SYS_wait4, SYS_waitid, SYS_close, SYS_close_range, SYS_dup2, SYS_dup3, SYS_alarm };
	state += round * 1000003;
	alarm(2);
	for (int i = 0; i < 4000; i++) {
		long nr = next() % 470, wanted = 1;
		for (size_t k = 0; k < sizeof skip / sizeof *skip; k++)
			if (nr == skip[k]) wanted = 0;
		if (wanted)
			syscall(nr, argument(), argument(), argument(), argument(), argument(), argument());
	}
	_exit(0);
}
int main(void)
{
	begun();
	int rounds = 0;
	for (; rounds < 60; rounds++) {
		pid_t pid = fork();
		if (pid == 0) storm(rounds);
		waitpid(pid, NULL, 0);
	}
	printf("FACT rounds %d\n", rounds);
	return 0;
}""", ends("ok", "timeout", "cpu_limit", "memory_limit", "output_limit", "disk_limit", "pids_limit", "error", "crash"), timeout=12)

attack("SY-13a", "terminal ioctls: typing for the user, console tricks", "c", r"""
int main(void)
{
	char c = 'x';
	unsigned long bad[] = { 0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */, 0x540e /* TIOCSCTTY */, 0x541d /* TIOCCONS */, 0x5423 /* TIOCSETD */, 0x4b3a, 0x5606 };
	for (int fd = 0; fd < 3; fd++)
		for (int i = 0; i < 7; i++)
			attempt("ioctl", ioctl(fd, bad[i], &c));
	return done();
}""", denied(21))

attack("SY-13b", "file system ioctls: flags, freeze, clone, labels", "c", r"""
int main(void)
{
	int file = open("/workspace/f", O_CREAT | O_RDWR, 0644), dir = open("/workspace", O_RDONLY), root = open("/usr", O_RDONLY);
	long flags = 0x10;
	int fds[] = { file, dir, root };
	for (int i = 0; i < 3; i++) {
		attempt("setflags", ioctl(fds[i], 0x40086602, &flags));
		attempt("freeze", ioctl(fds[i], 0xc0045877, 0));
		attempt("trim", ioctl(fds[i], 0xc0185879, &flags));
		attempt("clone", ioctl(fds[i], 0x40049409, root));
		attempt("fsxattr", ioctl(fds[i], 0x401c5820, &flags));
		attempt("loop", ioctl(fds[i], 0x4c00, file));
		attempt("btrfs", ioctl(fds[i], 0x5000940e, room_for_nothing()));
	}
	return done();
}""".replace("room_for_nothing()", "&flags"), denied(21))

attack("SY-14", "own filters that fake success for set-uid helpers", "c", r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
int main(void)
{
	struct sock_filter f[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setuid, 0, 1),
				   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog p = { 4, f };
	begun();
	syscall(SYS_seccomp, 1, 0, &p);
	prctl(PR_SET_SECCOMP, 2, &p);
	setuid(0);
	printf("FACT uid %d %d\n", getuid(), geteuid());
	attempt("secret", open("/etc/shadow", O_RDONLY));
	fflush(stdout);
	if (fork() == 0) { execl("/usr/bin/su", "su", "-c", "echo FACT su won", NULL); _exit(1); }
	wait(NULL);
	return done();
}""", lambda t, r, seen: (facts(uid="1000 1000")(t, r, seen), denied(1)(t, r, seen), t.check("su" not in seen.facts, "su gained nothing", r)))

# ---- terminal ------------------------------------------------------------------------------------------

TERMINAL = """
import fcntl, termios
for fd in range(3): fact(f'tty{fd}', os.isatty(fd))
attempt('open', os.open, '/dev/tty', os.O_RDWR)
for fd in range(3):
    attempt(f'sti{fd}', fcntl.ioctl, fd, 0x5412, b'x')
    attempt(f'ctty{fd}', fcntl.ioctl, fd, termios.TIOCSCTTY, 1)
    attempt(f'pgrp{fd}', os.tcsetpgrp, fd, os.getpgrp())
done()
"""
NO_TERMINAL = facts(tty0="False", tty1="False", tty2="False")

attack("TT-01a", "reaches for a controlling terminal", "python", TERMINAL,
       lambda t, r, seen: (NO_TERMINAL(t, r, seen), denied(10)(t, r, seen)))


@hosted("TT-01b", "types into the operator's terminal when brig runs on one")
def on_terminal(t):
	leader, follower = pty.openpty()
	program = t.path("p.py", PRELUDE["python"] + TERMINAL)
	p = t.popen(["setsid", "-c", *t.run_args("--json", "--timeout", t.secs(20), program)], stdin=follower, stdout=subprocess.PIPE, stderr=follower)
	os.close(follower)
	out, _ = p.communicate(timeout=harness.GUARD)
	r = harness.Result(harness.Proc(p.returncode, out, b"", 0, ["brig"]))
	os.set_blocking(leader, False)
	try:
		typed = os.read(leader, 4096)
	except OSError:
		typed = b""
	os.close(leader)
	t.results = [r]
	NO_TERMINAL(t, r, Seen(r.stdout))
	denied(10)(t, r, Seen(r.stdout))
	t.check(b"x" not in typed.replace(b"exit", b""), "nothing was typed", typed)


attack("TT-03", "exhausts pseudo-terminals", "c", r"""
int main(void)
{
	int n = 0;
	while (n < 100 && posix_openpt(O_RDWR | O_NOCTTY) >= 0)
		n++;
	printf("FACT opened %d\n", n);
	attempt("mknod", mknod("/workspace/ptmx", S_IFCHR | 0666, (5 << 8) | 2));
	return done();
}""", facts(opened=lambda n: int(n) <= 16 or harness.BACKEND == "docker"))

attack("TT-04", "types into a terminal of its own, and gives it other line disciplines", "c", r"""
int main(void)
{
	int lock = 0, n = 0, fd = posix_openpt(O_RDWR | O_NOCTTY);
	char name[32], c = 'x';
	ioctl(fd, TIOCSPTLCK, &lock);
	ioctl(fd, TIOCGPTN, &n);
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	int slave = open(name, O_RDWR);
	printf("FACT terminal %d\n", isatty(slave));
	unsigned long bad[] = { 0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */, 0x541d /* TIOCCONS */, 0x5423 /* TIOCSETD */, 0x4b3a, 0x5606 };
	for (int i = 0; i < 6; i++) {
		attempt("master", ioctl(fd, bad[i], &c));
		attempt("slave", ioctl(slave, bad[i], &c));
	}
	return done();
}""", denied(12))
