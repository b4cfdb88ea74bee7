# SPDX-License-Identifier: Apache-2.0
"""PR, NS, CA: other processes, kernel files, namespaces, capabilities."""
import glob
import os
import signal
import subprocess
import time

import harness
from judge import Canaries, Seen, attack, denied, ends, facts, hosted, in_cell

# ---- process view and kernel files ---------------------------------------------------------------------

attack("PR-01a", "reads init's environment, memory, maps, files", "python", """
for name in ('environ', 'maps', 'mem', 'stack', 'syscall', 'auxv', 'pagemap', 'smaps', 'io'):
    attempt(name, read, '/proc/1/' + name)
for name in ('fd', 'map_files', 'fdinfo'): attempt(name, os.listdir, '/proc/1/' + name)
for name in ('exe', 'cwd', 'root', 'ns/net', 'ns/mnt', 'ns/user'): attempt(name, os.readlink, '/proc/1/' + name)
done()
""", denied(18))

attack("PR-01b", "counts the processes it can see", "python", """
pids = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())
fact('foreign', [p for p in pids if p > 20])
fact('own', os.getpid() in pids)
""", facts(foreign="[]", own="True"), harmless=True)

attack("PR-01c", "writes to init and to its memory", "python", """
for name in ('mem', 'oom_score_adj', 'comm', 'clear_refs', 'attr/current', 'coredump_filter', 'uid_map', 'sched', 'timerslack_ns', 'loginuid'):
    def poke(name=name):
        fd = os.open('/proc/1/' + name, os.O_WRONLY)
        return os.write(fd, b'0')
    attempt(name, poke)
done()
""", denied(10))

attack("PR-02a", "runs #!/proc/self/exe and /proc/1/exe to reach the launcher", "shell", r"""
for exe in /proc/1/exe /proc/$PPID/exe /proc/self/exe; do
	printf '#!%s\n' $exe >s; chmod 755 s
	attempt run-$exe sh -c './s </dev/null | grep -i brig'
	attempt copy-$exe sh -c "exec 3<$exe; head -c 4 <&3 | grep -q ELF && readlink $exe | grep -v -e /usr -e /bin"
done
attempt overwrite-init sh -c 'echo x >/proc/1/exe'
attempt append-init sh -c 'echo x >>/proc/1/exe'
done_
""", denied(8))

attack("PR-02b", "keeps the launcher's file open and writes once it is free", "c", r"""
int main(void)
{
	const char *names[] = { "/proc/1/exe", "/proc/self/exe", "@BRIG@" };
	for (int i = 0; i < 3; i++) {
		int fd = open(names[i], O_PATH);
		char self[64];
		snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
		attempt("reopen", i == 1 ? open(self, O_WRONLY) : open(fd < 0 ? names[i] : self, O_RDWR));
		attempt("trunc", truncate(names[i], 0));
	}
	return done();
}""", denied(6))

attack("PR-03a", "opens kernel settings for writing", "python", """
for name in ('kernel/core_pattern', 'kernel/modprobe', 'kernel/hostname', 'kernel/sysrq', 'kernel/panic', 'vm/drop_caches', 'vm/overcommit_memory',
             'fs/protected_hardlinks', 'kernel/unprivileged_bpf_disabled', 'net/ipv4/ip_forward', 'user/max_user_namespaces', 'kernel/ns_last_pid',
             'kernel/yama/ptrace_scope', 'kernel/randomize_va_space', 'fs/binfmt_misc/register'):
    attempt(name, open, '/proc/sys/' + name, 'w')
done()
""", denied(15))

attack("PR-03b", "opens sysrq-trigger and other controls of /proc for writing", "python", """
for name in ('sysrq-trigger', 'irq/default_smp_affinity', 'mtrr', 'bus/pci', 'acpi/wakeup', 'scsi/scsi', 'fs/nfsd', 'driver/rtc', 'timer_stats'):
    attempt(name, open, '/proc/' + name, 'r+')
done()
""", denied(9))

attack("PR-03c", "opens cgroup limits, release agents and sysfs controls", "python", """
paths = ['/sys/kernel/uevent_helper', '/sys/kernel/security', '/sys/kernel/debug', '/sys/module', '/sys/power/state', '/sys/fs/bpf', '/sys/kernel/mm',
         '/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/release_agent', '/sys/fs/cgroup/memory/release_agent', '/sys/fs/cgroup/memory.max',
         '/sys/fs/cgroup/memory/memory.limit_in_bytes', '/sys/fs/cgroup/pids/pids.max', '/sys/fs/cgroup/devices/devices.allow']
for path in paths: attempt(path, os.stat, path)
attempt('list', os.listdir, '/sys/fs/cgroup')
done()
""", denied(15), needs=["own_mounts"], harmless=True)

attack("PR-04a", "protects itself from the OOM killer", "python", """
def write(path, text):
    with open(path, 'w') as f: f.write(text)
attempt('negative', write, '/proc/self/oom_score_adj', '-1000')
attempt('lower', write, '/proc/self/oom_score_adj', '-1')
attempt('old', write, '/proc/self/oom_adj', '-17')
done()
""", denied(3))

attack("PR-04b", "writes its own maps, clocks and audit id", "python", """
def write(name, text):
    fd = os.open('/proc/self/' + name, os.O_WRONLY)
    return os.write(fd, text)
attempt('timens_offsets', write, 'timens_offsets', b'monotonic 100 0')
attempt('uid_map', write, 'uid_map', b'0 0 1')
attempt('gid_map', write, 'gid_map', b'0 0 1')
attempt('setgroups', write, 'setgroups', b'allow')
attempt('loginuid', write, 'loginuid', b'0')
attempt('projid_map', write, 'projid_map', b'0 0 1')
attempt('attr', write, 'attr/exec', b'unconfined')
done()
""", denied(7))

attack("PR-05a", "reads what the kernel tells about itself", "python", """
for name in ('kallsyms', 'kcore', 'kmsg', 'keys', 'key-users', 'interrupts', 'timer_list', 'slabinfo', 'iomem', 'ioports', 'modules', 'vmallocinfo', 'config.gz',
             'sched_debug', 'latency_stats', 'pagetypeinfo', 'cmdline', 'mounts/../cpuinfo', 'partitions', 'diskstats', 'swaps', 'crypto', 'devices'):
    attempt(name, read, '/proc/' + name)
done()
""", denied(23), needs=["proc_subset"], harmless=True)

attack("PR-05d", "looks for a word about the machine in /proc and /sys", "python", """
told = []
for path in ('/proc/kallsyms /proc/kcore /proc/keys /proc/key-users /proc/interrupts /proc/timer_list /proc/iomem /proc/ioports /proc/modules /proc/cmdline '
             '/proc/partitions /proc/diskstats /proc/swaps /proc/crypto /proc/devices /proc/vmstat /proc/zoneinfo /proc/buddyinfo /proc/softirqs /proc/locks '
             '/proc/misc /proc/schedstat /proc/consoles /proc/config.gz /proc/pressure/cpu /proc/bus/pci/devices /proc/irq/default_smp_affinity /proc/tty/drivers '
             '/sys/class/dmi/id/product_uuid /sys/class/net/lo/address /sys/kernel/notes /sys/module/kernel/parameters/consoleblank').split():
    try:
        if open(path, 'rb').read(16): told.append(path)
    except OSError: pass
print('FACT told', ' '.join(told) or 'nothing')
""", facts(told="nothing"))

attack("PR-05b", "reads the kernel log by syslog and /dev/kmsg", "c", r"""
int main(void)
{
	char block[4096];
	int actions[] = { 2, 3, 4, 9, 10 };
	for (int i = 0; i < 5; i++)
		attempt("syslog", syscall(SYS_syslog, actions[i], block, sizeof block));
	attempt("kmsg", open("/dev/kmsg", O_RDONLY));
	return done();
}""", denied(6))

attack("PR-05c", "reads serial numbers, power meters and addresses from sysfs", "python", """
for path in ('/sys/class/dmi/id/product_uuid', '/sys/class/dmi/id/board_serial', '/sys/class/powercap/intel-rapl:0/energy_uj', '/sys/firmware/acpi/tables/DSDT',
             '/sys/kernel/notes', '/sys/kernel/btf/vmlinux', '/sys/class/net', '/sys/devices/system/cpu/vulnerabilities', '/sys/block', '/proc/acpi', '/proc/device-tree'):
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else read(path))
done()
""", denied(11), needs=["own_mounts"])

attack("PR-06a", "ptrace on init, on its parent and on its own child", "c", r"""
int main(void)
{
	pid_t child = fork();
	if (child == 0) { pause(); _exit(0); }
	attempt("attach-init", ptrace(PTRACE_ATTACH, 1, 0, 0));
	attempt("seize-init", ptrace(PTRACE_SEIZE, 1, 0, 0));
	attempt("attach-parent", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
	attempt("attach-child", ptrace(PTRACE_ATTACH, child, 0, 0));
	attempt("attach-host", ptrace(PTRACE_ATTACH, @HOSTPID@, 0, 0));
	kill(child, SIGKILL);
	return done();
}""", denied(5))

attack("PR-06b", "reads and writes other memory by process_vm_readv", "c", r"""
int main(void)
{
	char here[64];
	struct iovec mine = { here, sizeof here }, theirs = { (void *)0x400000, sizeof here };
	pid_t who[] = { 1, getppid(), @HOSTPID@, getpid() };
	for (int i = 0; i < 4; i++) {
		if (i == 3) theirs.iov_base = here;
		attempt("read", process_vm_readv(who[i], &mine, 1, &theirs, 1, 0));
		attempt("write", process_vm_writev(who[i], &mine, 1, &theirs, 1, 0));
		attempt("madvise", syscall(SYS_process_madvise, syscall(SYS_pidfd_open, who[i], 0), &theirs, 1, MADV_COLD, 0));
	}
	return done();
}""", denied(12))

attack("PR-06c", "steals descriptors by pidfd_getfd, compares by kcmp", "c", r"""
int main(void)
{
	pid_t who[] = { 1, getppid(), @HOSTPID@ };
	for (int i = 0; i < 3; i++) {
		int pidfd = syscall(SYS_pidfd_open, who[i], 0);
		for (int fd = 0; fd < 8; fd++)
			attempt("getfd", syscall(SYS_pidfd_getfd, pidfd, fd, 0));
		attempt("kcmp", syscall(SYS_kcmp, who[i], getpid(), 0, 0, 0));
	}
	return done();
}""", denied(27))

attack("PR-07a", "kills and stops init", "c", r"""
int main(void)
{
	int signals[] = { SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGINT, SIGHUP, SIGUSR1, SIGTSTP, SIGXCPU, 34, 64 };
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		kill(1, signals[i]);
	for (int s = 1; s < 65; s++)
		syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, 1, 0), s, NULL, 0);
	usleep(200000);
	puts("FACT alive yes");
	return 0;
}""", facts(alive="yes"))

attack("PR-07b", "kill(-1, SIGKILL): only its own processes die", "c", r"""
int main(void)
{
	pid_t child = fork();
	if (child == 0) { for (;;) pause(); }
	begun();
	if (kill(-1, SIGKILL) < 0) kill(child, SIGKILL); // refused in a session, whose steward it would reach
	int status = 0;
	waitpid(child, &status, 0);
	printf("FACT child %d\n", WTERMSIG(status));
	return 0;
}""", ends("ok", "crash"))

attack("PR-07c", "signals host processes by number", "c", r"""
int main(void)
{
	attempt("kill", kill(@HOSTPID@, SIGKILL));
	attempt("tgkill", syscall(SYS_tgkill, @HOSTPID@, @HOSTPID@, SIGKILL));
	attempt("sigqueue", sigqueue(@HOSTPID@, SIGKILL, (union sigval){ 0 }));
	attempt("pidfd", syscall(SYS_pidfd_open, @HOSTPID@, 0));
	attempt("stop", kill(@HOSTPID@, SIGSTOP));
	attempt("group", kill(-@HOSTPID@, SIGKILL));
	for (int pid = 1000; pid < 9000; pid++)
		if (kill(pid, 0) == 0) attempt("found", pid);
	return done();
}""", denied(6))


@hosted("PR-09a", "crashes on purpose: no core handler starts, no core file appears")
def crash_core(t):
	r = in_cell(t, "c", r"""
int main(void)
{
	struct rlimit r;
	getrlimit(RLIMIT_CORE, &r);
	printf("FACT core %lu %lu\n", (unsigned long)r.rlim_cur, (unsigned long)r.rlim_max);
	begun();
	*(volatile int *)8 = 1;
	return 0;
}""")
	seen = Seen(r.stdout)
	ends("crash", signal=int(signal.SIGSEGV))(t, r, seen)
	t.equal(seen.facts.get("core"), "1 1", "RLIMIT_CORE, at which the kernel starts no handler")
	t.check(not glob.glob(t.path("core*")), "no core file")


attack("PR-09b", "changes RLIMIT_CORE so that the host's core handler would run", "c", r"""
int main(void)
{
	struct rlimit r[] = { { 0, 0 }, { 0, 1 }, { RLIM_INFINITY, RLIM_INFINITY }, { 1 << 20, 1 << 20 } };
	for (int i = 0; i < 4; i++) {
		attempt("setrlimit", syscall(SYS_setrlimit, RLIMIT_CORE, &r[i]));
		attempt("prlimit", syscall(SYS_prlimit64, 0, RLIMIT_CORE, &r[i], NULL));
		attempt("prlimit-high", syscall(SYS_prlimit64, 0, RLIMIT_CORE | 1UL << 32, &r[i], NULL));
	}
	return done();
}""", denied(12))


@hosted("PR-10a", "learns host paths from its own mount table")
def mount_table(t):
	r = in_cell(t, "shell", "cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats; echo FACT lines $(wc -l </proc/self/mountinfo)\n")
	facts(lines=lambda n: int(n) >= 3)(t, r, Seen(r.stdout))
	# Every session has what removes the types of TypeScript, from where it is: a path of this project only where no package has it.
	told = b"\n".join(line for line in r.stdout.splitlines() if b" /opt/brig/esbuild " not in line)
	for path in (t.dir, harness.ROOT, os.path.dirname(Canaries.current.dir), os.path.expanduser("~") + "/"):
		t.check(path == "//" or path.encode() not in told, f"{path} does not show", r)


attack("PR-10b", "learns cgroup paths, session and parents", "python", """
fact('cgroup', sorted({line.strip().split(':', 2)[2] for line in open('/proc/self/cgroup')}))
fact('parent', os.getppid())
fact('session', os.getsid(0) == os.getpid() or os.getsid(0) < 20)
fact('init', open('/proc/1/cmdline').read().replace('\\0', ' ') if os.access('/proc/1/cmdline', os.R_OK) else 'hidden')
""", facts(cgroup=lambda v: v in ("['/']", "[]"), parent=lambda v: int(v) < 20, session="True",
	   init=lambda v: "/workspace" not in v and "program" not in v and "--json" not in v), needs=["cgroup_ns"])

# ---- namespaces ------------------------------------------------------------------------------------------

FLAGS = """
	static const struct { const char *name; unsigned long flag; } ns[] = { { "user", 0x10000000 }, { "mnt", 0x00020000 }, { "pid", 0x20000000 },
		{ "net", 0x40000000 }, { "ipc", 0x08000000 }, { "uts", 0x04000000 }, { "cgroup", 0x02000000 }, { "time", 0x80 } };
"""

attack("NS-01a", "gets namespaces by unshare", "c", r"""
int main(void)
{""" + FLAGS + r"""
	for (int i = 0; i < 8; i++) {
		attempt(ns[i].name, unshare(ns[i].flag));
		attempt("with-user", unshare(ns[i].flag | 0x10000000));
	}
	return done();
}""", denied(16))

attack("NS-01b", "gets namespaces by clone", "c", r"""
int main(void)
{""" + FLAGS + r"""
	for (int i = 0; i < 7; i++) {
		long pid = syscall(SYS_clone, ns[i].flag | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) _exit(0);
		attempt(ns[i].name, pid);
		pid = syscall(SYS_clone, ns[i].flag | 0x10000000 | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) _exit(0);
		attempt("with-user", pid);
	}
	return done();
}""", denied(14))

CLONE3 = r"""
struct args { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup; };
"""

attack("NS-01c", "gets namespaces by clone3, whose flags hide behind a pointer", "c", CLONE3 + r"""
int main(void)
{""" + FLAGS + r"""
	for (int i = 0; i < 8; i++) {
		struct args a = { .flags = ns[i].flag | 0x10000000, .exit_signal = SIGCHLD };
		long pid = syscall(435, &a, sizeof a);
		if (pid == 0) _exit(0);
		attempt(ns[i].name, pid);
	}
	return done();
}""", denied(8, ("ENOSYS",)))

attack("NS-01d", "gets a user namespace with garbage in the upper flag bits", "c", r"""
int main(void)
{
	attempt("unshare", syscall(SYS_unshare, 0x10000000UL | 1UL << 32));
	attempt("unshare-high", syscall(SYS_unshare, 0x10000000UL | 0xdeadbeefUL << 32));
	for (int i = 0; i < 2; i++) {
		long pid = syscall(SYS_clone, 0x10000000UL | SIGCHLD | 1UL << (32 + i), 0, 0, 0, 0);
		if (pid == 0) _exit(0);
		attempt("clone", pid);
	}
	return done();
}""", denied(4))

attack("NS-02", "the new mount interface", "c", r"""
int main(void)
{
	struct { uint64_t set, clr, prop, userns; } attr = { .clr = 1 };
	attempt("open_tree", syscall(428, AT_FDCWD, "/", 1));
	attempt("open_tree-plain", syscall(428, AT_FDCWD, "/", 0));
	attempt("move_mount", syscall(429, AT_FDCWD, "/tmp", AT_FDCWD, "/workspace", 0));
	attempt("fsopen", syscall(430, "tmpfs", 0));
	attempt("fsconfig", syscall(431, 0, 1, "source", "x", 0));
	attempt("fsmount", syscall(432, 0, 0, 0));
	attempt("fspick", syscall(433, AT_FDCWD, "/tmp", 0));
	attempt("mount_setattr", syscall(442, AT_FDCWD, "/", 0x8000, &attr, sizeof attr));
	attempt("statmount", syscall(457, NULL, NULL, 0, 0));
	attempt("listmount", syscall(458, NULL, NULL, 0, 0));
	attempt("open_tree_attr", syscall(467, AT_FDCWD, "/", 0, NULL, 0));
	return done();
}""", denied(11, ("EPERM", "ENOSYS")))

attack("NS-03", "mounts cgroup v1 in a nested namespace and sets release_agent", "shell", r"""
attempt unshare unshare -UrmC sh -c 'mkdir /tmp/c && mount -t cgroup -o memory c /tmp/c && echo /workspace/x >/tmp/c/release_agent'
attempt mount mount -t cgroup -o rdma cgroup /tmp
attempt cgroup2 mount -t cgroup2 none /tmp
attempt agent sh -c 'find / -path /usr -prune -o -name release_agent -print 2>/dev/null | grep .'
done_
""", denied(4))


@hosted("NS-04", "the program is never the host's uid 0, seen from outside")
def host_uid(t):
	p = t.popen(t.run_args("--timeout", t.secs(20), "-c", "sleep 30", "--lang", "shell"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
		    stderr=subprocess.DEVNULL)
	try:
		uids, init_uids = wait_for_uids(t, p)
	finally:
		p.send_signal(signal.SIGINT)
		p.wait(timeout=harness.GUARD)
	caller = {harness.test_ids()[0]} if harness.test_ids() else {os.getuid()}
	t.check(0 not in uids, "host uid of the program", uids)
	if "id_separation" not in harness.Host.degraded:
		t.check(not uids & caller, "it is not the caller's either", uids)
		t.check(not uids & init_uids, "and not its init's", (uids, init_uids))
	t.check(os.getuid() != 0 or 0 not in init_uids, "init is not the host's root", init_uids)


def wait_for_uids(t, p):
	deadline = time.monotonic() + max(20 * harness.SLACK, harness.GUARD / 2)
	while time.monotonic() < deadline and p.poll() is None:
		for row in t.world.cell_processes():
			pid, name = row.split(" ", 1)
			if name != "sleep":
				continue
			try:
				with open(f"/proc/{pid}/status", encoding="ascii") as f:
					status = dict(line.split(":", 1) for line in f)
				# The chain upwards ends at the cell's init, the first process that is pid 1 inside.
				up = status
				while up["NSpid"].split()[-1] != "1":
					with open(f"/proc/{up['PPid'].strip()}/status", encoding="ascii") as f:
						up = dict(line.split(":", 1) for line in f)
				return {int(u) for u in status["Uid"].split()}, {int(u) for u in up["Uid"].split()}
			except (OSError, KeyError):
				continue
		time.sleep(0.02)
	t.check(False, "the program begins")
	return None


attack("NS-05", "setns by /proc files and by pidfd", "c", r"""
int main(void)
{
	const char *names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time" };
	char path[64];
	for (int i = 0; i < 8; i++) {
		snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
		attempt(names[i], setns(open(path, O_RDONLY), 0));
		snprintf(path, sizeof path, "/proc/1/ns/%s", names[i]);
		attempt("init", setns(open(path, O_RDONLY), 0));
	}
	attempt("pidfd", setns(syscall(SYS_pidfd_open, 1, 0), 0x7e020080));
	attempt("ns-ioctl", ioctl(open("/proc/self/ns/user", O_RDONLY), 0xb701));
	attempt("ns-parent", ioctl(open("/proc/self/ns/pid", O_RDONLY), 0xb702));
	return done();
}""", denied(19))

attack("NS-06", "mounts ramfs and tmpfs in a nested namespace to dodge the size limit", "c", r"""
int main(void)
{
	attempt("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS));
	mkdir("/workspace/m", 0755);
	attempt("ramfs", mount("none", "/workspace/m", "ramfs", 0, NULL));
	attempt("tmpfs", mount("none", "/workspace/m", "tmpfs", 0, "size=1g"));
	attempt("resize", mount("none", "/tmp", "tmpfs", MS_REMOUNT, "size=1g"));
	attempt("hugetlbfs", mount("none", "/workspace/m", "hugetlbfs", 0, NULL));
	return done();
}""", denied(5))

# ---- capabilities ------------------------------------------------------------------------------------------

attack("CA-01a", "looks for left-over capabilities, ids and groups", "python", """
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'): fact(name, int(status[name], 16))
fact('uid', status['Uid'].split()); fact('gid', status['Gid'].split()); fact('groups', status['Groups'].split())
""", facts(CapInh="0", CapPrm="0", CapEff="0", CapBnd="0", CapAmb="0", uid="['1000', '1000', '1000', '1000']",
	   gid="['1000', '1000', '1000', '1000']", groups=lambda v: "'0'" not in v and v in ("[]", "['1000']", "['65534']")))

attack("CA-01b", "raises hard limits and priorities", "python", """
import resource
for name in ('NOFILE', 'NPROC', 'STACK', 'MEMLOCK', 'SIGPENDING', 'MSGQUEUE', 'RTPRIO', 'NICE', 'FSIZE', 'CPU'):
    which = getattr(resource, 'RLIMIT_' + name)
    soft, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY: continue
    attempt(name, resource.setrlimit, which, (hard + 1, hard + 1))
attempt('nice', os.setpriority, os.PRIO_PROCESS, 0, -20)
attempt('nice-user', os.setpriority, os.PRIO_USER, 0, -5)
libc = ctypes.CDLL(None, use_errno=True)
def ioprio():
    if libc.syscall(251, 1, 0, 1 << 13) < 0: raise OSError(ctypes.get_errno(), 'ioprio_set')
attempt('ioprio', ioprio)
done()
""", denied(8))

attack("CA-02", "gains by capset, ambient sets and securebits", "c", r"""
int main(void)
{
	uint32_t head[2] = { 0x20080522, 0 }, data[6] = { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u };
	attempt("capset", syscall(SYS_capset, head, data));
	uint32_t some[6] = { 1 << 21, 1 << 21, 0, 0, 0, 0 };
	attempt("capset-sysadmin", syscall(SYS_capset, head, some));
	attempt("ambient", prctl(47, 2, 21, 0, 0));
	attempt("securebits", prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
	attempt("keepcaps", prctl(PR_SET_SECUREBITS, 1 << 4, 0, 0, 0));
	attempt("bounding", prctl(PR_CAPBSET_DROP, 0, 0, 0, 0));
	attempt("no-nnp", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	return done();
}""", denied(7))

attack("CA-03a", "becomes another user or group", "python", """
for uid in (0, 1, 1001, 65534, 4294967294):
    for name in ('setuid', 'setgid', 'seteuid', 'setegid'): attempt(f'{name}{uid}', getattr(os, name), uid)
    attempt(f'setresuid{uid}', os.setresuid, uid, uid, uid)
    attempt(f'setresgid{uid}', os.setresgid, uid, uid, uid)
    attempt(f'setgroups{uid}', os.setgroups, [uid])
attempt('setgroups-none', os.setgroups, [0, 1, 2, 3])
done()
""", denied(36))

attack("CA-03b", "keeps capabilities over a change of uid, changes fsuid", "c", r"""
int main(void)
{
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	attempt("setresuid", setresuid(0, 0, 1000));
	attempt("raw", syscall(SYS_setuid, 0));
	syscall(SYS_setfsuid, 0); syscall(SYS_setfsgid, 0);
	attempt("fsuid", syscall(SYS_setfsuid, -1) == 0 ? 0 : (errno = EPERM, -1));
	attempt("fsgid", syscall(SYS_setfsgid, -1) == 0 ? 0 : (errno = EPERM, -1));
	attempt("sethostname", sethostname("owned", 5));
	attempt("setdomainname", setdomainname("owned", 5));
	attempt("chown", chown("/tmp", 0, 0));
	return done();
}""", denied(7))
