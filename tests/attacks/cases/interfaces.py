# SPDX-License-Identifier: Apache-2.0
"""FD, EN, OU, BL, SD, SU: descriptors, environment, output, compilers, other runs, the supervisor."""
import ast
import os
import subprocess
import time

import harness
from judge import PRELUDE, Canaries, Seen, attack, both, denied, ends, facts, hosted, in_cell, says, words

# ---- descriptors -------------------------------------------------------------------------------------------

attack("FD-01a", "looks for leaked descriptors", "c", r"""
int main(void)
{
	int extra = 0;
	struct stat st;
	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) != -1) extra++;
	printf("FACT extra %d\nFACT kinds", extra);
	for (int fd = 0; fd < 3; fd++)
		printf(" %s", fstat(fd, &st) ? "closed" : S_ISFIFO(st.st_mode) ? "pipe" : S_ISSOCK(st.st_mode) ? "socket" : S_ISREG(st.st_mode) ? "FILE" : S_ISDIR(st.st_mode) ? "DIR" : "other");
	puts("");
	return 0;
}""", facts(extra="0", kinds=lambda v: "FILE" not in v and "DIR" not in v))


@hosted("FD-01b", "re-opens its stdin for writing")
def reopen_stdin(t):
	path = t.path("input", "precious input\n", 0o666)
	r = in_cell(t, "python", """
begun()
for fd in range(3):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        try: os.write(os.open(f'/proc/self/fd/{fd}', flags | os.O_NONBLOCK), b'')
        except OSError: pass
try: os.write(0, b'overwritten')
except OSError: pass
try: os.ftruncate(0, 0)
except OSError: pass
print('FACT input', sys.stdin.readline().strip())
""", "--stdin", path)
	facts(input="precious input")(t, r, Seen(r.stdout))
	with open(path, encoding="ascii") as f:
		t.equal(f.read(), "precious input\n", "the caller's file")


@hosted("FD-01c", "re-opens an inherited stdin file for writing")
def reopen_inherited(t):
	path = t.path("input", "precious input\n", 0o666)
	with open(path, "r+b") as f:
		r = in_cell(t, "python", """
begun()
def spoil(fd): return os.write(fd, b'overwritten')
for flags in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC):
    try: spoil(os.open('/proc/self/fd/0', flags | os.O_NONBLOCK))
    except OSError: pass
for fn in (lambda: spoil(0), lambda: os.ftruncate(0, 0), lambda: os.pwrite(0, b'x', 0)):
    try: fn()
    except OSError: pass
""", stdin=f)
	ends("ok")(t, r, Seen(r.stdout))
	with open(path, encoding="ascii") as f:
		t.equal(f.read(), "precious input\n", "the caller's file")


attack("FD-02", "opens files until it may not, raises the limit", "python", """
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
attempt('raise', resource.setrlimit, resource.RLIMIT_NOFILE, (hard * 2, hard * 2))
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
keep = []
def fill():
    while len(keep) < 100000: keep.append(os.dup(0))
attempt('open', fill)
fact('opened', len(keep) <= 4096)
for fd in keep: os.close(fd)
done()
""", both(denied(2), facts(opened="True")))

attack("FD-04", "never reads its stdin, then closes it", "python", """
import time
begun()
time.sleep(0.3)
os.close(0)
time.sleep(0.2)
""", ends("ok"), stdin=b"z" * (8 << 20))

attack("FD-05", "sets flags on the output pipe, resizes it, reads it back", "python", """
import fcntl
for fd in (1, 2):
    for change in (lambda: os.set_blocking(fd, False), lambda: fcntl.fcntl(fd, 1031, 4096), lambda: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK),
                   lambda: os.read(os.open(f'/proc/self/fd/{fd}', os.O_RDONLY | os.O_NONBLOCK), 100)):
        try: change()
        except OSError: pass
import time
begun() # not before: it would read that word back, too, if nobody has fetched it yet
left = b'z' * 300000
while left:
    try: left = left[os.write(1, left):]
    except BlockingIOError: time.sleep(0.001)
""", both(ends("ok"), lambda t, r, s: t.equal(r.stdout.count(b"z"), 300000, "bytes that arrived", r.reason)))

# ---- environment -------------------------------------------------------------------------------------------


@hosted("EN-01a", "searches the environment for secrets of the caller")
def environment(t):
	r = in_cell(t, "python", """
fact('names', sorted(os.environ))
for pid in ('self', '1', str(os.getppid())):
    try: print(read(f'/proc/{pid}/environ'))
    except OSError: pass
""", env={"API_KEY": Canaries.current.token, "AWS_SECRET_ACCESS_KEY": Canaries.current.token, "LD_LIBRARY_PATH_X": Canaries.current.token})
	allowed = {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TERM", "USER", "LOGNAME", "SHELL", "PWD", "TZ"}
	names = set(ast.literal_eval(Seen(r.stdout).facts.get("names", "[]")) or ["nothing was reported"])
	t.check({n for n in names if not n.startswith("PYTHON")} <= allowed, "only neutral variables", names)


attack("EN-01b", "searches for credential files", "shell", r"""
for f in ~/.ssh ~/.aws ~/.netrc ~/.git-credentials ~/.docker ~/.npmrc ~/.bash_history ~/.config ~/.gnupg /root/.ssh /etc/krb5.keytab /etc/ssl/private; do
	attempt "$f" sh -c "ls -A '$f' | grep ."
done
done_
""", denied(12))


@hosted("EN-02", "LD_PRELOAD from the request acts inside only, never in the launcher")
def preload_launcher(t):
	source = t.path("evil.c", '#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void on(void) '
			'{ FILE *f = fopen(TARGET, "w"); if (f) fclose(f); }\n')
	mark, library = t.path("mark"), t.path("evil.so")
	t.check(t.run(["gcc", "-shared", "-fPIC", f'-DTARGET="{mark}"', "-o", library, source]).rc == 0, "the library compiles")
	t.run(["true"], env={"LD_PRELOAD": library})
	t.check(os.path.exists(mark), "the library works outside")
	os.unlink(mark)
	for name in ("LD_PRELOAD", "LD_AUDIT"):
		r = in_cell(t, "shell", "echo BEGUN\n", "--trust", "trusted", "--env", f"{name}={library}")
		t.check(r.verdict in ("ok", "error", "refused"), "verdict", r)
		t.check(not os.path.exists(mark), f"{name} did not act outside", r)


@hosted("EN-03", "plants python3, sh, gcc in the caller's directory and PATH")
def planted_tools(t):
	mark = t.path("mark")
	for name in ("python3", "sh", "bash", "gcc", "cc", "node", "go", "newuidmap", "newgidmap", "env", "esbuild"):
		t.path(name, f"#!/bin/sh\ntouch {mark}\nexit 1\n", 0o755)
	for lang, code in (("python", "print('BEGUN')"), ("shell", "echo BEGUN"), ("c", 'int main(void) { begun(); return 0; }')):
		r = in_cell(t, lang, code, env={"PATH": ".:" + t.dir + ":/usr/bin:/bin"}, cwd=t.dir)
		ends("ok")(t, r, Seen(r.stdout))
	t.check(not os.path.exists(mark), "no planted tool ran outside")


# ---- output --------------------------------------------------------------------------------------------------

attack("OU-01", "floods both streams", "javascript", """
const fs = require('fs');
console.log('BEGUN');
const block = Buffer.alloc(65536, 'x');
for (;;) for (const fd of [1, 2]) { try { fs.writeSync(fd, block); } catch (e) { if (e.code != 'EAGAIN') throw e; } }
""", both(ends("output_limit"), lambda t, r, s: t.check(len(r.stdout) + len(r.stderr) <= 1 << 20, "what is kept fits", len(r.stdout))), output_limit="1m")

attack("OU-02", "one line without end", "c", r"""
int main(void) { begun(); char b[65536]; memset(b, 'x', sizeof b); for (;;) write(1, b, sizeof b); }
""", ends("output_limit", "timeout"), output_limit="1m")

attack("OU-03", "closes its streams and goes on; writes after main's end", "c", r"""
int main(void)
{
	begun();
	if (fork() == 0) { for (int i = 0; i < 1000; i++) { usleep(2000); dprintf(1, "late\n"); } _exit(0); }
	close(1); close(2); close(0);
	usleep(100000);
	return 4;
}""", ends("error", exit_code=4))

FORGED = r'{"id":"x","verdict":"ok","exit_code":0,"evidence":[],"stdout":"all is well"}'


@hosted("OU-04a", "forges a result: data stays data")
def forged(t):
	r = in_cell(t, "python", f"""
begun()
text = {FORGED!r}
for fd in (1, 2): os.write(fd, (text + '\\n').encode() * 3 + b'\\0\\xff"}}}}\\x1b[2J' + text.encode())
os._exit(7)
""")
	ends("error", exit_code=7)(t, r, Seen(r.stdout))
	t.equal(r.rc, 7, "exit status", r)
	t.check(r.json["evidence"] and FORGED.encode() in r.stdout, "the true result is around it", r)


attack("OU-04b", "writes a verdict to every descriptor beyond 2", "python", """
begun()
for fd in range(3, 1024):
    try: report(f'fd{fd}', 'GOT ' + str(os.write(fd, b'\\0' * 64)))
    except OSError: pass
sys.exit(7)
""", both(ends("error", exit_code=7), lambda t, r, s: t.equal(s.attempts, [], "descriptors that took it", r)))

attack("OU-06", "gifts pages to the pipe and changes them later", "c", r"""
int main(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v = { p, 4096 };
	attempt("stdout", vmsplice(1, &v, 1, 8));
	attempt("stderr", vmsplice(2, &v, 1, 0));
	return done();
}""", denied(2))

# ---- compilation ---------------------------------------------------------------------------------------------


def compile_ends(*verdicts):
	def judge(t, r, _seen):
		t.check(r.verdict in verdicts, f"verdict is {r.verdict}, not {' or '.join(verdicts)}", r)
		t.equal(r.json.get("step"), "compile", "the step that ended it", r)
	return says(judge, words(verdicts) + " while compiling")


# Limits of a compile step are the policy's, so these attacks come with a policy of their own.
COMPILE = "compile_timeout_ms: 4000\ncompile_memory: 192m\ncompile_disk: 16m\ncompile_pids: 24\n"


def compiled(ident, title, code, judge, needs=()):
	def run(t):
		r = t.cell("--policy", t.path("p.yaml", COMPILE), "--timeout", t.secs(20), code=Canaries.current.fill(code), lang="c")
		t.results = [r]
		judge(t, r, Seen(r.stdout))
	hosted(ident, title, needs)(says(run, judge.says))


compiled("BL-01a", "#include of /dev/zero", '#include "/dev/zero"\nint main(void) { return 0; }\n',
	 compile_ends("error", "timeout", "memory_limit", "cpu_limit", "disk_limit", "output_limit"))
compiled("BL-01b", "a file that includes itself", '#include __FILE__\n#include __FILE__\nint main(void) { return 0; }\n',
	 compile_ends("error", "timeout", "memory_limit", "cpu_limit", "output_limit"))
compiled("BL-01c", "a macro bomb", "#define A0 x,x,x,x,x,x,x,x,x,x\n" + "".join(
	f"#define A{i + 1} {','.join([f'A{i}'] * 10)}\n" for i in range(9)) + "int x; int main(void) { int a[] = { A9 }; return a[0]; }\n",
	 compile_ends("timeout", "memory_limit", "cpu_limit", "error", "crash"))
compiled("BL-01d", "#include of a FIFO's end and of the terminal", '#include "/dev/stdin"\n#include "/proc/self/fd/1"\nint x = ;\n',
	 compile_ends("error", "timeout", "cpu_limit", "memory_limit"))
compiled("BL-02a", "#include of a host file", '#include "@SECRET@"\nint main(void) { return 0; }\n', compile_ends("error"))
compiled("BL-02b", ".incbin of a host file", '__asm__(".incbin \\"@SECRET@\\"");\nint main(void) { return 0; }\n', compile_ends("error"))
compiled("BL-02c", "a huge object file", '__asm__(".data\\n.fill 1342177280, 1, 0x41");\nint main(void) { return 0; }\n',
	 compile_ends("error", "disk_limit", "timeout", "memory_limit", "cpu_limit", "crash"))


@hosted("BL-05", "poisons shared caches for the next run")
def caches(t):
	r = in_cell(t, "python", """
import json, py_compile, glob
begun()
target = json.__file__
places = [os.path.dirname(target) + '/__pycache__', '/usr/lib/python3/dist-packages', '/usr/local/lib', os.path.expanduser('~/.local/lib'), os.path.expanduser('~/.cache')]
won = []
for place in places:
    try:
        os.makedirs(place, exist_ok=True)
        with open(place + '/usercustomize.py', 'w') as f: f.write('print("POISONED")')
        won.append(place)
    except OSError: pass
fact('won', [p for p in won if p.startswith(('/usr', '/etc', '/opt'))])
fact('home', os.path.expanduser('~'))
""")
	both(ends("ok"), facts(won="[]"))(t, r, Seen(r.stdout))
	r = in_cell(t, "python", "import json\nfact('cache', os.path.exists(os.path.expanduser('~/.cache/usercustomize.py')))\n")
	facts(cache="False")(t, r, Seen(r.stdout))
	t.check(b"POISONED" not in r.stdout, "the next run is unaffected", r)


for variant, (what, bomb) in zip("abc", {
	"a hundred thousand parentheses": "eval('(' * 100000 + ')' * 100000)",
	"JSON nested a million deep": "import json; json.loads('[' * 1000000)",
	"a source of deep unary minus": "compile('-' * 200000 + '1', 'x', 'eval')"}.items()):
	attack("BL-06" + variant, "parser bomb: " + what, "python", f"begun()\n{bomb}\n", ends("error", "crash", "memory_limit", "cpu_limit", "timeout", "ok"))

# ---- other runs ----------------------------------------------------------------------------------------------

LEAVE = """
import socket
libc = ctypes.CDLL(None, use_errno=True)
begun()
for place in ('/tmp', '/dev/shm', '/workspace', os.path.expanduser('~'), '/var/tmp'):
    try: open(place + '/marker-file', 'w').write('x')
    except OSError: pass
fact('shm', libc.shmget(0x4252, 4096, 0o1666) >= 0)
fact('sem', libc.semget(0x4252, 1, 0o1666) >= 0)
fact('msg', libc.msgget(0x4252, 0o1666) >= 0)
"""
FIND = """
libc = ctypes.CDLL(None, use_errno=True)
found = [p for p in ('/tmp', '/dev/shm', '/workspace', os.path.expanduser('~'), '/var/tmp') if os.path.exists(p + '/marker-file')]
for name, call in (('shm', lambda: libc.shmget(0x4252, 4096, 0)), ('sem', lambda: libc.semget(0x4252, 1, 0)), ('msg', lambda: libc.msgget(0x4252, 0))):
    if call() >= 0: found.append(name)
fact('found', found)
"""


@hosted("SD-01a", "leaves markers for the next run: files, shared memory, queues")
def markers(t):
	first = in_cell(t, "python", LEAVE)
	ends("ok")(t, first, Seen(first.stdout))
	second = in_cell(t, "python", FIND)
	facts(found="[]")(t, second, Seen(second.stdout))


@hosted("SD-01b", "leaves markers for a run at the same time, abstract names too")
def markers_at_once(t):
	program = t.path("leave.py", PRELUDE["python"] + LEAVE + """
s = socket.socket(socket.AF_UNIX); s.bind('\\0marker-abstract'); s.listen()
print('READY', flush=True)
os.system('sleep 100')
""")
	p = t.popen(t.run_args("--timeout", t.secs(20), program), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
	try:
		while True:
			line = p.stdout.readline()
			t.check(line, "the first run is ready")
			if line == b"READY\n":
				break
		second = in_cell(t, "python", FIND + "import socket\nattempt('abstract', socket.socket(socket.AF_UNIX).connect, '\\0marker-abstract')\ndone()\n")
		both(facts(found="[]"), denied(1))(t, second, Seen(second.stdout))
	finally:
		p.send_signal(2)
		p.communicate(timeout=harness.GUARD)


attack("SD-04", "asks the page cache what others read", "c", r"""
int main(void)
{
	char out[64], range[16] = { 0 };
	attempt("cachestat", syscall(451, open("/usr/bin/env", O_RDONLY), range, out, 0));
	return done();
}""", denied(1, ("ENOSYS", "EPERM")))

attack("SD-05", "watches the load of the machine", "python", """
for path in ('/proc/vmstat', '/proc/pressure/cpu', '/proc/softirqs', '/proc/schedstat', '/proc/zoneinfo',
             '/proc/buddyinfo', '/sys/fs/cgroup/cpu.stat', '/sys/devices/system/node/node0/numastat', '/proc/net/../cpuinfo'):
    attempt(path, read, path)
done()
""", denied(9), needs=["proc_subset"], harmless=True)

attack("SD-05b", "watches the load of the machine in the files that a cell has of it", "python", """
import time
names = ('loadavg', 'stat', 'meminfo', 'uptime', 'cpuinfo')
first = [read('/proc/' + name) for name in names]
end = time.process_time() + 0.2
while time.process_time() < end: bytearray(1 << 20)
fact('changed', [name for name, was in zip(names, first) if read('/proc/' + name) != was])
""", facts(changed="[]"), needs=["proc_subset"], harmless=True)


@hosted("SD-06", "machine id, boot id, host name, uptime")
def identity(t):
	r = in_cell(t, "python", """
import socket, time
fact('name', socket.gethostname())
fact('boot', time.clock_gettime(time.CLOCK_BOOTTIME))
for name, path in (('machine', '/etc/machine-id'), ('dbus', '/var/lib/dbus/machine-id'), ('bootid', '/proc/sys/kernel/random/boot_id'), ('hostfile', '/etc/hostname')):
    try: fact(name, read(path).decode().strip() or 'empty')
    except OSError as e: fact(name, 'hidden')
""")
	seen = Seen(r.stdout)
	facts(name=lambda v: v != os.uname().nodename)(t, r, seen)
	for name, path in (("machine", "/etc/machine-id"), ("bootid", "/proc/sys/kernel/random/boot_id")):
		if os.path.exists(path) and not (name == "bootid" and "proc_subset" in harness.Host.degraded):
			with open(path, encoding="ascii") as f:
				real = f.read().strip()
			t.check(not real or seen.facts[name] != real, f"{name} is not the host's", seen.facts)
	t.check(seen.facts["hostfile"] != os.uname().nodename, "/etc/hostname is neutral", seen.facts)
	if "time_ns" not in harness.Host.degraded:
		t.check(abs(float(seen.facts["boot"]) - time.clock_gettime(time.CLOCK_BOOTTIME)) > 60 * 5
			or time.clock_gettime(time.CLOCK_BOOTTIME) < 60 * 10, "uptime is not the host's", seen.facts)


# ---- the supervisor --------------------------------------------------------------------------------------------


@hosted("SU-01", "brig is killed at several moments of a hostile run")
def killed_moments(t):
	program = t.path("p.sh", "setsid sleep 100 & while :; do (sleep 0.01 &) ; done\n")
	for delay in (0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.05, 0.2):
		p = t.popen(t.run_args("--timeout", 10, "--pids", 20, program), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		try:
			p.wait(timeout=delay)
		except subprocess.TimeoutExpired:
			pass
		p.kill()
		p.wait()
	t.after_kill()


@hosted("SU-06", "programs that cannot be executed are no crash of brig")
def not_executable(t):
	os.mkdir(t.path("dir.py"))
	for name, words in (("directory", [t.path("dir.py")]), ("missing", [t.path("missing.py")]), ("device", ["/dev/zero", "--lang", "python"]),
			    ("unreadable", [t.path("none.py", "", 0)])):
		p = t.run(t.run_args(*words))
		if name == "unreadable" and harness.is_root():
			continue
		t.check(0 < p.rc < 128 and p.err, f"{name}: a clear error", p)
	r = in_cell(t, "shell", "./nothing; echo FACT missing $?; printf x >junk; chmod 755 junk; ./junk; echo FACT junk $?; echo '#!/no/such' >s; chmod 755 s; ./s; echo FACT interp $?\n")
	facts(missing="127", junk=lambda v: v in ("126", "127", "2"), interp=lambda v: v in ("126", "127"))(t, r, Seen(r.stdout))
