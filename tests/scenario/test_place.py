# SPDX-License-Identifier: Apache-2.0
"""A cell as a place to work: what everyday programs expect of the machine that they run on."""
import json
import os

import harness
from harness import add, case

NATIVE = harness.BACKEND != "docker"


def has(*programs):
	return all(any(os.access(os.path.join(d, p), os.X_OK) for d in ("/usr/bin", "/usr/local/bin")) for p in programs)


@case("P1: Node runs in shell and Python cells")
def p1_node_everywhere(t):
	if not (has("node") and NATIVE):
		t.skip("this needs Node on the host")
	r = t.verdict(t.cell(code="node -e 'console.log([1, 2, 3].map(x => x * 2).join())'", lang="sh"), "ok")
	t.equal(r.stdout, b"2,4,6\n", "from a shell", r)
	r = t.verdict(t.cell(code="import subprocess\nsubprocess.run(['node', '-e', 'console.log(6 * 7)'], check=True)\n", lang="python"), "ok")
	t.equal(r.stdout, b"42\n", "from Python", r)


@case("P2: /dev/stdin, /dev/stdout and /dev/stderr can be opened, and only in their own direction")
def p2_streams_by_name(t):
	t.native_only("an engine makes the streams of its containers")
	r = t.verdict(t.cell(code="""
import os
print(open('/dev/stdin').read().strip(), file=open('/dev/stdout', 'w'))
print('err', file=open('/dev/stderr', 'w'))
for name, mode in (('stdin', os.O_WRONLY), ('stdout', os.O_RDONLY), ('stderr', os.O_RDONLY)):
	try:
		os.open('/dev/' + name, mode)
		print('opened', name)
	except PermissionError:
		pass
""", lang="python", stdin=b"in\n"), "ok")
	t.equal((r.stdout, r.stderr), (b"in\n", b"err\n"), "what came through", r)


@case("P3: /tmp is executable where the workspace is, and not where policy forbids it")
def p3_tmp_exec(t):
	code = "d=$(mktemp -d)\nprintf '#!/bin/sh\\necho ran\\n' >$d/x\nchmod 755 $d/x\n$d/x\n"
	r = t.verdict(t.cell(code=code, lang="sh"), "ok")
	t.equal(r.stdout, b"ran\n", "a script in mktemp -d", r)
	r = t.cell("--set", "workspace_exec=false", code=code, lang="sh")
	t.equal((r.verdict, r.stdout), ("error", b""), "with workspace_exec: false", r)


@case("P4: /proc tells the cell's limits, and nothing else of the machine")
def p4_machine(t):
	if not NATIVE or "proc_subset" in harness.Host.degraded:
		t.skip("this /proc is not ours")
	r = t.verdict(t.cell("--memory", "96m", code="""
import json, os
def read(name):
	return open('/proc/' + name).read()
mem = dict(line.split(':') for line in read('meminfo').splitlines())
cpus = read('cpuinfo').count('processor')
print(json.dumps({
	'memory': mem['MemTotal'].strip(), 'cpus': cpus,
	'stat': sum(line.startswith('cpu') for line in read('stat').splitlines()) - 1,
	'online': open('/sys/devices/system/cpu/online').read().strip(),
	'listed': [n for n in os.listdir('/proc') if not n.isdigit()],
	'reached': [n for n in ('kcore', 'sys', 'kallsyms', 'interrupts', 'vmstat', 'bus', 'cmdline', 'mounts', 'net') if os.path.lexists('/proc/' + n)],
	'written': [n for n in ('meminfo', 'stat') if os.access('/proc/' + n, os.W_OK)],
	'uptime': read('uptime'), 'load': read('loadavg'), 'version': read('version'),
	'release': os.path.exists('/etc/os-release') == os.path.exists('/usr/lib/os-release'),
}))
""", lang="python"), "ok")
	seen = json.loads(r.stdout)
	t.equal(seen["memory"], "98304 kB", "memory", seen)
	t.equal(seen["cpus"], 1, "cpus of a quota of 100 %", seen)
	t.equal((seen["stat"], seen["online"]), (1, "0"), "the same count everywhere", seen)
	t.equal((sorted(seen["listed"]), seen["reached"], seen["written"]), (["self", "thread-self"], [], []), "nothing else", seen)
	t.check(seen["release"] and seen["version"].startswith("Linux version"), "release and version", seen)
	row = {e["check"]: e for e in r.json["evidence"]}
	t.equal((row["proc"]["enforced"], row["machine_files"]["enforced"]), ("subset=pid", "masked"), "evidence")


@case("P5: a cell has terminals of its own; the strict profile has none")
def p5_ptys(t):
	if harness.BACKEND == "direct":
		t.skip("this backend has no terminals of its own")
	code = """
import os, pty
try:
	master, slave = pty.openpty()
except OSError as e:
	print('none')
else:
	os.write(slave, b'hello')
	print(os.ttyname(slave), os.read(master, 5).decode(), os.isatty(slave))
"""
	r = t.verdict(t.cell(code=code, lang="python"), "ok")
	t.equal(r.stdout, b"/dev/pts/0 hello True\n", "a pty", r)
	r = t.verdict(t.cell("--set", "seccomp_profile=strict", code=code, lang="python"), "ok")
	t.equal(r.stdout, b"none\n", "in the strict profile", r)


@case("P6: python is there wherever python3 is")
def p6_python(t):
	if not has("python3"):
		t.skip("this needs Python on the host")
	if not NATIVE:	# where the image of Python has it, which a shell's has not
		code = "import subprocess; print(subprocess.check_output(['python', '-c', 'print(1 + 1)']).decode(), end='')"
		t.equal(t.verdict(t.cell(code=code, lang="python"), "ok").stdout, b"2\n", "python")
		return
	r = t.verdict(t.cell(code="python -c 'print(1 + 1)'; printf '#!/usr/bin/env python\\nprint(3)\\n' >x; chmod 755 x; ./x\n", lang="sh"), "ok")
	t.equal(r.stdout, b"2\n3\n", "python and a script for it", r)
	r = t.brig("exec", "--", "python", "-c", "print(4)")
	t.equal((r.rc, r.out), (0, b"4\n"), "brig exec -- python", r)


@case("P7: a .sh without a first line runs in bash, with one in what that says")
def p7_bash(t):
	if not has("bash"):
		t.skip("this needs bash on the host")
	for name, code, want in (("a.sh", "x=(1 2 3); echo ${x[1]}\n", b"2\n"), ("b.sh", "#!/bin/sh\necho ${BASH_VERSION:-none}\n", b"none\n")):
		p = t.run(t.run_args(t.path(name, code)))
		t.equal((p.rc, p.out), (0, want), name, p)
	p = t.run(t.run_args("--lang", "sh", "-c", "echo ${BASH_VERSION:-none}"))
	t.equal((p.rc, p.out), (0, b"none\n"), "--lang sh means sh", p)


SAMPLES = {
	"cpp": ("g++", '#include <iostream>\n#include <vector>\nint main() { std::vector<int> v{1, 2}; std::cout << "sum " << v[0] + v[1] << "\\n"; }\n'),
	"perl": ("perl", 'my @v = (1, 2); print "sum ", $v[0] + $v[1], "\\n";\n'),
	"ruby": ("ruby", 'puts "sum #{[1, 2].sum}"\n'),
	"lua": ("lua5.4", 'local v = {1, 2}\nprint("sum " .. v[1] + v[2])\n'),
	"php": ("php", '<?php echo ctype_digit("12") ? "sum " : "no ", array_sum([1, 2]), "\\n";\n'),
	"java": ("java", 'public class Anything { public static void main(String[] a) { System.out.println("sum " + (1 + 2)); } }\n'),
	"rust": ("rustc", 'fn main() { println!("sum {}", vec![1, 2].iter().sum::<i32>()); }\n'),
	"r": ("Rscript", 'cat("sum", sum(c(1, 2)), "\\n", sep = " ")\n'),
}


def sample(lang):
	program, code = SAMPLES[lang]

	def run(t):
		if not NATIVE or not has(program):
			t.skip(f"this needs {program} on the host")
		r = t.verdict(t.cell("--trust", "trusted", "--memory", "1g", code=code, lang=lang), "ok")
		t.equal(r.stdout.strip(), b"sum 3", "output", r)
	add(f"place.p8_{lang}", f"P8: {lang}: a program, from its source to its output", run, "place")


for each in SAMPLES:
	sample(each)
