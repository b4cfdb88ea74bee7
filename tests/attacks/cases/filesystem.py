# SPDX-License-Identifier: Apache-2.0
"""FS: reading, writing or executing what is not the program's."""
import hashlib
import os
import shutil
import threading

import harness
from harness import libc
from judge import Seen, attack, denied, facts, hosted, in_cell

attack("FS-01a", "reads a host secret by its absolute path", "python", """
attempt('open', read, '@SECRET@')
attempt('list', os.listdir, os.path.dirname('@SECRET@'))
done()
""", denied(2), harmless=True)

attack("FS-01b", "reads a host secret by .. chains", "python", """
for start in ('/workspace', '/tmp', '/proc/self/cwd', '/usr/..', '/dev/fd'):
    attempt(start, read, start + '/..' * 40 + '@SECRET@')
done()
""", denied(5), harmless=True)

attack("FS-01c", "reads a host secret through /proc/<pid>/root and cwd", "python", """
for pid in [p for p in os.listdir('/proc') if p.isdigit()] + ['1', '2', 'self', 'thread-self', '@HOSTPID@']:
    attempt(pid + '-root', read, f'/proc/{pid}/root@SECRET@')
    attempt(pid + '-cwd', read, f'/proc/{pid}/cwd/../../../../../..@SECRET@')
done()
""", denied(10), harmless=True)

attack("FS-01d", "climbs out through inherited directory descriptors", "python", """
for fd in range(0, 256):
    try: os.fstat(fd)
    except OSError: continue
    def climb(fd=fd): return os.open('../' * 40 + '@SECRET@'[1:], os.O_RDONLY, dir_fd=fd)
    attempt(f'fd{fd}', climb)
done()
""", denied(3))

attack("FS-01e", "looks for the host's private places", "python", """
for path in ('/root', '/home', '/etc/shadow', '/etc/gshadow', '/etc/ssh', '/var/log', '/var/lib/docker', '/boot', '/run/secrets',
             '/sys/class', '/mnt', '/media', '/srv', '/lost+found', '/.dockerenv', '/root/.ssh', '/etc/sudoers', '/var/run/docker.sock'):
    def look(path=path):
        entries = os.listdir(path) if os.path.isdir(path) else [read(path)]
        if not entries: raise OSError(2, 'empty')
        return entries
    attempt(path, look)
done()
""", denied(18, engine_gives=("/sys/class", "/.dockerenv")))

attack("FS-01f", "reads a host secret through links it makes itself", "python", """
os.symlink('@SECRET@', 'direct'); os.symlink('/proc/self/root@SECRET@', 'magic'); os.symlink('/proc/1/root', 'init')
os.symlink('.', 'here'); os.symlink('here/' * 30 + 'direct', 'chain')
for name in ('direct', 'magic', 'init@SECRET@', 'chain'): attempt(name.split('/')[0], read, name)
done()
""", denied(4), harmless=True)

attack("FS-03a", "chroot without chdir, then climbs out", "c", r"""
int main(void)
{
	mkdir("jail", 0755);
	int cwd = open(".", O_RDONLY | O_DIRECTORY);
	attempt("chroot", chroot("jail"));
	fchdir(cwd);
	for (int i = 0; i < 60; i++)
		chdir("..");
	attempt("chroot-up", chroot("."));
	attempt("secret", open("@SECRET@", O_RDONLY));
	return done();
}""", denied(3, ("EPERM", "ENOENT", "ENOSYS")))

attack("FS-03b", "pivot_root onto a directory of its own", "c", r"""
int main(void)
{
	mkdir("new", 0755); mkdir("new/old", 0755);
	attempt("pivot_root", syscall(SYS_pivot_root, "new", "new/old"));
	attempt("pivot_root-dot", syscall(SYS_pivot_root, ".", "."));
	return done();
}""", denied(2, ("EPERM", "ENOSYS")))

attack("FS-04", "open_by_handle_at with guessed root inodes", "c", r"""
int main(void)
{
	union { struct file_handle h; char room[sizeof(struct file_handle) + 128]; } u = { .h = { .handle_bytes = 128 } };
	int mount_id, root = open("/", O_RDONLY | O_DIRECTORY);
	name_to_handle_at(root, ".", &u.h, &mount_id, 0);
	attempt("own-handle", open_by_handle_at(root, &u.h, O_RDONLY));
	for (uint32_t inode = 1; inode < 4; inode++) {
		u.h.handle_bytes = 8;
		u.h.handle_type = 1;
		memcpy(u.h.f_handle, (uint32_t[]){ inode, 0 }, 8);
		attempt("guessed", open_by_handle_at(root, &u.h, O_RDONLY));
	}
	return done();
}""", denied(4, ("EPERM", "ENOSYS")))

attack("FS-05a", "renames and exchanges mount points", "python", """
libc = ctypes.CDLL(None, use_errno=True)
def renameat2(a, b, flags):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), flags): raise OSError(ctypes.get_errno(), 'renameat2')
os.mkdir('mine')
for place in ('/tmp', '/workspace', '/proc', '/dev', '/dev/shm', '/usr', '/etc'):
    attempt('move' + place, os.rename, place, '/workspace/moved')
    attempt('exchange' + place, renameat2, place, '/workspace/mine', 2)
done()
""", denied(14))

attack("FS-05b", "removes the workspace, /tmp and /dev/shm themselves", "python", """
for place in ('/workspace', '/tmp', '/dev/shm', '/proc', '/dev', '/'):
    attempt('rmdir' + place, os.rmdir, place)
done()
""", denied(6))

attack("FS-06a", "looks for any writable directory outside its own", "python", """
begun()
found, looked, queue = [], 0, ['/']
while queue and looked < 400:  # level by level, so that every place near the root is among them
    top = queue.pop(0)
    looked += 1
    try:
        os.close(os.open(top + '/.w', os.O_CREAT | os.O_WRONLY)); found.append(top); os.unlink(top + '/.w')
    except OSError: pass
    try: queue += sorted(e.path for e in os.scandir(top) if e.is_dir(follow_symlinks=False) and top != '/proc')
    except OSError: pass
fact('looked', looked)
fact('writable', [f for f in found if f.split('/')[1] not in ('workspace', 'tmp') and not f.startswith('/dev/shm')])
""", facts(looked=lambda n: int(n) > 50, writable="[]"))

attack("FS-06b", "changes files of the root tree", "python", """
tool = os.path.realpath(sys.executable)
for path in (tool, '/usr/bin/env', '/etc/passwd', '/usr', '/', '/dev', '/dev/null', '/etc'):
    attempt('chmod ' + path, os.chmod, path, 0o777)
    attempt('chown ' + path, os.chown, path, 1000, 1000)
    if path != '/dev/null': attempt('utime ' + path, os.utime, path, (1, 1))
for path in (tool, '/usr/bin/env', '/etc/passwd'):
    attempt('truncate ' + path, os.truncate, path, 0)
    attempt('write ' + path, open, path, 'r+b')
    attempt('unlink ' + path, os.unlink, path)
    attempt('rename ' + path, os.rename, path, path + '.old')
    attempt('xattr ' + path, os.setxattr, path, 'user.x', b'1')
attempt('create', open, '/usr/bin/evil', 'w')
attempt('mkdir', os.mkdir, '/evil')
attempt('symlink', os.symlink, '/tmp', '/etc/evil')
done()
""", denied(30))

attack("FS-07a", "remounts the root tree writable", "c", r"""
int main(void)
{
	const char *where[] = { "/", "/usr", "/etc", "/dev", "/proc", "/tmp" };
	for (int i = 0; i < 6; i++) {
		attempt("remount", mount(NULL, where[i], NULL, MS_REMOUNT, NULL));
		attempt("bind-remount", mount(NULL, where[i], NULL, MS_REMOUNT | MS_BIND, NULL));
		attempt("shared", mount(NULL, where[i], NULL, MS_SHARED | MS_REC, NULL));
	}
	return done();
}""", denied(18, ("EPERM", "ENOSYS")))

attack("FS-07b", "binds over and mounts file systems", "c", r"""
int main(void)
{
	const char *types[] = { "proc", "sysfs", "tmpfs", "ramfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "overlay", "ext4", "debugfs", "bpf", "fuse" };
	mkdir("m", 0755);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		attempt(types[i], mount("none", "m", types[i], 0, NULL));
	attempt("bind", mount("/workspace", "/usr", NULL, MS_BIND, NULL));
	attempt("move", mount("/tmp", "m", NULL, MS_MOVE, NULL));
	return done();
}""", denied(15, ("EPERM", "ENOSYS")))

attack("FS-07c", "unmounts what covers the host's tree", "c", r"""
int main(void)
{
	const char *where[] = { "/", "/proc", "/dev", "/dev/null", "/dev/shm", "/tmp", "/workspace", "/usr", "/etc" };
	for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
		attempt("umount", umount2(where[i], MNT_DETACH));
		attempt("expire", umount2(where[i], MNT_EXPIRE));
	}
	return done();
}""", denied(18, ("EPERM", "ENOSYS")))

attack("FS-08a", "makes device nodes", "python", """
import stat
for place in ('/workspace', '/tmp', '/dev/shm', '/dev'):
    for name, kind, major, minor in (('mem', stat.S_IFCHR, 1, 1), ('disk', stat.S_IFBLK, 254, 0), ('kmsg', stat.S_IFCHR, 1, 11), ('fuse', stat.S_IFCHR, 10, 229)):
        attempt(f'{place}/{name}', os.mknod, f'{place}/{name}', kind | 0o666, os.makedev(major, minor))
done()
""", denied(16))

attack("FS-08b", "opens devices it has no use for", "python", """
for name in ('mem', 'kmem', 'port', 'kmsg', 'kvm', 'fuse', 'vda', 'vda1', 'sda', 'sda1', 'nvme0', 'loop0', 'loop-control', 'net/tun',
             'tty', 'console', 'tty0', 'ttyS0', 'input/event0', 'dri/card0', 'vsock', 'vhost-vsock', 'vhost-net', 'userfaultfd', 'hpet',
             'cpu/0/msr', 'btrfs-control', 'mapper/control', 'uinput', 'snapshot', 'nvram', 'rtc0', 'watchdog', 'autofs', 'cuse', 'udmabuf'):
    attempt(name, os.open, '/dev/' + name, os.O_RDWR)
done()
""", denied(36, engine_gives=("tty",)))

attack("FS-08c", "takes stock of /dev: only harmless names are there", "python", """
allowed = {'null', 'zero', 'full', 'random', 'urandom', 'fd', 'stdin', 'stdout', 'stderr', 'shm', 'ptmx', 'pts'}
fact('entries', len(os.listdir('/dev')))
fact('extra', sorted(set(os.listdir('/dev')) - allowed))
""", facts(entries=lambda n: int(n) >= 5, extra="[]" if harness.BACKEND != "docker" else "['mqueue', 'tty']"), harmless=True)

attack("FS-09a", "hard-links files of the root tree into the workspace", "shell", """
for f in /usr/bin/env /etc/passwd /bin/sh /proc/self/status /dev/null; do attempt "link$f" ln "$f" /workspace/linked; done
done_
""", denied(5))

attack("FS-09b", "hard-links by descriptor", "c", r"""
int main(void)
{
	int fd = open("/usr/bin/env", O_RDONLY), path = open("/usr/bin/env", O_PATH);
	attempt("empty-path", linkat(fd, "", AT_FDCWD, "a", AT_EMPTY_PATH));
	attempt("empty-opath", linkat(path, "", AT_FDCWD, "b", AT_EMPTY_PATH));
	char name[64];
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	attempt("proc-fd", linkat(AT_FDCWD, name, AT_FDCWD, "c", AT_SYMLINK_FOLLOW));
	attempt("proc-exe", linkat(AT_FDCWD, "/proc/1/exe", AT_FDCWD, "d", AT_SYMLINK_FOLLOW));
	return done();
}""", denied(4))

attack("FS-10a", "leaves set-uid copies of programs and runs them", "python", """
import shutil, subprocess
begun()
shutil.copy('/usr/bin/id', 'idcopy')
try: os.chmod('idcopy', 0o6755)
except OSError: os.chmod('idcopy', 0o755)
out = subprocess.run(['./idcopy'], capture_output=True, text=True).stdout
fact('id', out.strip() or 'none')
""", facts(id=lambda v: "uid=1000" in v and "euid" not in v and "(root)" not in v and "=0" not in v))

attack("FS-10b", "runs the set-uid programs of the host's tree", "python", """
import glob, subprocess
begun()
found = [p for d in ('/usr/bin', '/usr/sbin', '/usr/lib/*') for p in glob.glob(d + '/*') if os.path.isfile(p) and os.stat(p).st_mode & 0o6000]
fact('found', len(found))
gained = []
for tool in ('su', 'sudo', 'mount', 'newgrp', 'passwd', 'chsh', 'pkexec'):
    try: p = subprocess.run([tool] + {'su': ['-c', 'id -u'], 'sudo': ['-n', 'id', '-u'], 'mount': ['-t', 'tmpfs', 'none', '/tmp']}.get(tool, ['--version']),
                            capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL)
    except Exception: continue
    if p.stdout.strip() == '0' or (tool == 'mount' and p.returncode == 0): gained.append(tool)
fact('gained', gained)
fact('uids', os.getresuid())
""", facts(found=lambda n: int(n) >= 0, gained="[]", uids="(1000, 1000, 1000)"))

attack("FS-10c", "gives files capabilities and trusted attributes", "python", """
import struct
open('f', 'w').close()
caps = struct.pack('<5I', 0x02000001, 0xffffffff, 0, 0x1ff, 0)
for name in ('security.capability', 'trusted.x', 'security.selinux', 'security.ima', 'trusted.overlay.opaque'):
    attempt(name, os.setxattr, 'f', name, caps)
done()
""", denied(5))

attack("FS-11a", "executes from the workspace, /tmp and /dev/shm, where policy forbids it", "shell", r"""
for d in /workspace /tmp /dev/shm; do
	cp /usr/bin/id $d/prog; chmod 755 $d/prog
	attempt exec$d $d/prog
	printf '#!/bin/sh\nid\n' >$d/script; chmod 755 $d/script
	attempt script$d $d/script
	attempt loader$d $(ls /lib64/ld-linux* /lib/ld-linux* 2>/dev/null | head -1) $d/prog
done
done_
""", denied(9), workspace_exec="false")

attack("FS-11b", "maps files of noexec places executable", "c", r"""
int main(void)
{
	const char *where[] = { "/dev/shm/code", "/dev/shm/more" };
	for (int i = 0; i < 2; i++) {
		int fd = open(where[i], O_CREAT | O_RDWR, 0755);
		write(fd, "\xc3", 1);
		ftruncate(fd, 4096);
		attempt("mmap", (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
		char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		attempt("mprotect", mprotect(p, 4096, PROT_READ | PROT_EXEC));
		attempt("execveat", syscall(SYS_execveat, fd, "", (char *[]){ "x", NULL }, NULL, AT_EMPTY_PATH));
	}
	return done();
}""", denied(6))

attack("FS-11c", "executes from a memfd: still the same cage", "c", r"""
int main(int argc, char **argv)
{
	if (argc > 1) {
		char line[200];
		FILE *f = fopen("/proc/self/status", "r");
		while (fgets(line, sizeof line, f))
			if (!strncmp(line, "Seccomp:", 8) || !strncmp(line, "NoNewPrivs:", 11) || !strncmp(line, "CapEff:", 7))
				printf("FACT %.*s %s", (int)strcspn(line, ":"), line, line + strcspn(line, "\t") + 1);
		return 0;
	}
	begun();
	int in = open("/proc/self/exe", O_RDONLY), out = syscall(SYS_memfd_create, "x", 0);
	char block[65536];
	for (ssize_t n; (n = read(in, block, sizeof block)) > 0;)
		write(out, block, n);
	syscall(SYS_execveat, out, "", (char *[]){ "x", "again", NULL }, NULL, AT_EMPTY_PATH);
	puts("FACT Seccomp 2\nFACT NoNewPrivs 1\nFACT CapEff 0000000000000000");
	return 0;
}""", facts(Seccomp="2", NoNewPrivs="1", CapEff="0000000000000000"))

attack("FS-12a", "page-cache writing tools: splice, tee, vmsplice, AF_ALG", "c", r"""
int main(void)
{
	int file = open("/usr/bin/env", O_RDONLY), p[2], q[2];
	pipe(p); pipe(q);
	write(p[1], "x", 1);
	struct iovec v = { "y", 1 };
	attempt("splice", splice(file, NULL, p[1], NULL, 1, 0));
	attempt("tee", tee(p[0], q[1], 1, 0));
	attempt("vmsplice", vmsplice(p[1], &v, 1, 0));
	attempt("alg", socket(38, SOCK_SEQPACKET, 0));
	return done();
}""", denied(4), harmless=True)


def checksum(path):
	with open(path, "rb") as f:
		return hashlib.sha256(f.read()).hexdigest()


@hosted("FS-12b", "Dirty-Pipe style write to a shared read-only file")
def dirty_pipe(t):
	path = "/usr/bin/env"
	before = checksum(path)
	r = in_cell(t, "c", r"""
int main(void)
{
	int fd = open("/usr/bin/env", O_RDONLY), p[2];
	loff_t off = 1;
	char block[4096] = { 0 };
	pipe(p);
	for (int i = 0; i < 16; i++) write(p[1], block, 4096);
	for (int i = 0; i < 16; i++) read(p[0], block, 4096);
	attempt("splice", splice(fd, &off, p[1], NULL, 1, 0));
	attempt("write-file", open("/usr/bin/env", O_RDWR));
	attempt("map-shared", (long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	write(p[1], "OWNED", 5);
	char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	memcpy(m, "OWNED", 5);
	madvise(m, 4096, MADV_DONTNEED);
	return done();
}""")
	denied(3)(t, r, Seen(r.stdout))
	t.equal(checksum(path), before, "checksum through the page cache")


def hostile_root(t, name, outside):
	"""A root tree whose directory `name` is a link to a place outside it."""
	root = t.path("root")
	for d in ("usr", "dev", "proc", "etc", "tmp", "workspace", "run", "var"):
		if d != name:
			os.makedirs(os.path.join(root, d))
	for link in ("bin", "sbin", "lib", "lib64", "lib32"):
		if os.path.islink("/" + link):
			os.symlink(os.readlink("/" + link), os.path.join(root, link))
	os.symlink(outside, os.path.join(root, name))
	if libc.mount(b"/usr", os.fsencode(os.path.join(root, "usr")), None, 0x1000, None) != 0:
		t.skip("cannot bind /usr into a root tree here")
	return root


def symlinked_target(name):
	def run(t):
		if not harness.is_root() or not t.world.private:
			t.skip("needs root, to build a root tree")
		outside = t.path("outside")
		os.mkdir(outside)
		os.chmod(outside, 0o777)
		root = hostile_root(t, name, outside)
		try:
			r = in_cell(t, "shell", "echo BEGUN; touch /dev/x /proc/x /etc/x /tmp/x /workspace/x\n", "--policy",
				    t.path("p.yaml", f"rootfs: {root}\n"))
		finally:
			libc.umount2(os.fsencode(os.path.join(root, "usr")), 2)
		t.check(r.verdict in ("refused", "failed", "ok", "error"), "refused, or mounted inside the root", r)
		t.check(r.verdict in ("refused", "failed") or b"BEGUN" in r.stdout, "it ran or was refused", r)
		t.equal(os.listdir(outside), [], "the place outside stays empty", r)
		with open("/proc/self/mountinfo", encoding="utf-8") as f:
			t.check(outside not in f.read(), "nothing is mounted there")
	return run


for variant, target in zip("abcd", ("dev", "proc", "tmp", "workspace")):
	hosted("FS-13" + variant, f"root tree whose /{target} is a link out of it")(symlinked_target(target))


@hosted("FS-14", "root tree with a false /dev/null")
def false_null(t):
	if not harness.is_root() or not t.world.private:
		t.skip("needs root, to build a root tree")
	victim = t.path("victim", "precious\n", 0o666)
	root = hostile_root(t, "nothing", "/nonexistent")
	os.symlink(victim, os.path.join(root, "dev", "null"))
	try:
		r = in_cell(t, "shell", "echo BEGUN; echo overwritten >/dev/null; ls -l /dev/null\n", "--policy", t.path("p.yaml", f"rootfs: {root}\n"))
	finally:
		libc.umount2(os.fsencode(os.path.join(root, "usr")), 2)
	t.check(r.verdict in ("refused", "failed", "ok", "error"), "refused, or the true device is used", r)
	with open(victim, encoding="ascii") as f:
		t.equal(f.read(), "precious\n", "the file behind the false device", r)


@hosted("FS-15", "two runs at once: each sees only its own mounts and files")
def at_once(t):
	results = {}

	def one(mark):
		mine = harness.Test(t.dir, t.world)
		results[mark] = in_cell(mine, "shell", f"""
echo {mark} >/tmp/mark; echo {mark} >mark; echo {mark} >/dev/shm/mark
sleep 0.3
echo "FACT seen $(cat /tmp/mark mark /dev/shm/mark | sort -u | tr '\\n' ' ')$(ls /tmp /dev/shm | grep -c mark)"
""")
		shutil.rmtree(mine.dir)
	threads = [threading.Thread(target=one, args=(f"mark{i}",)) for i in range(4)]
	for th in threads:
		th.start()
	for th in threads:
		th.join()
	t.equal(len(results), 4, "runs that ended")
	for mark, r in results.items():
		t.verdict(r, "ok")
		t.equal(Seen(r.stdout).facts.get("seen"), f"{mark} 2", "what the run saw", r)
