# SPDX-License-Identifier: Apache-2.0
"""Each language: hello, arguments, input, environment, exit codes, and what a compiler's complaint looks like."""
import json
import socket

from harness import BACKEND, EXTENSION, GUARD, SLACK, add, case

HELLO = {
	"python": "print('hello from python')\n",
	"javascript": "console.log('hello from javascript');\n",
	"typescript": "const who: string = 'typescript';\nconsole.log(`hello from ${who}`);\n",
	"go": 'package main\nimport "fmt"\nfunc main() { fmt.Println("hello from go") }\n',
	"shell": "echo hello from shell\n",
	"c": '#include <stdio.h>\nint main(void) { puts("hello from c"); return 0; }\n',
}

# Prints its arguments, the variable GREETING, its input in upper case; writes to stderr; exits with 7.
ECHO = {
	"python": """
import os, sys
print("|".join(sys.argv[1:]))
print(os.environ["GREETING"])
print(sys.stdin.read().upper(), end="")
print("to stderr", file=sys.stderr)
sys.exit(7)
""",
	"javascript": """
const fs = require('fs');
console.log(process.argv.slice(2).join('|'));
console.log(process.env.GREETING);
process.stdout.write(fs.readFileSync(0, 'utf8').toUpperCase());
console.error('to stderr');
process.exitCode = 7;
""",
	"typescript": """
declare const require: any, process: any;
const fs = require('fs');
const words: string[] = process.argv.slice(2);
console.log(words.join('|'));
console.log(process.env.GREETING);
process.stdout.write(fs.readFileSync(0, 'utf8').toUpperCase());
console.error('to stderr');
process.exitCode = 7;
""",
	"go": """
package main
import ("fmt"; "io"; "os"; "strings")
func main() {
	fmt.Println(strings.Join(os.Args[1:], "|"))
	fmt.Println(os.Getenv("GREETING"))
	in, _ := io.ReadAll(os.Stdin)
	fmt.Print(strings.ToUpper(string(in)))
	fmt.Fprintln(os.Stderr, "to stderr")
	os.Exit(7)
}
""",
	"shell": """
IFS='|'; echo "$*"
echo "$GREETING"
tr a-z A-Z
echo to stderr >&2
exit 7
""",
	"c": """
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	int c;
	for (int i = 1; i < argc; i++)
		printf("%s%s", i > 1 ? "|" : "", argv[i]);
	printf("\\n%s\\n", getenv("GREETING"));
	while ((c = getchar()) != EOF)
		putchar(toupper(c));
	fprintf(stderr, "to stderr\\n");
	return 7;
}
""",
}

# Compilers are slow under emulation, and the policy gives them a minute.
PATIENT = {"BRIG_COMPILE_TIMEOUT_MS": str(int(60000 * max(SLACK, 1)))}

BROKEN = {
	"typescript": ("const x: string = ;\n", ["program.ts"]),
	"go": ("package main\nfunc main() { undefinedThing() }\n", ["undefinedThing"]),
	"c": ("int main(void) { return undeclared_thing; }\n", ["undeclared_thing", "error"]),
}

def need(t, lang):
	for row in json.loads(t.brig("languages", "--json").out)["languages"]:
		if row["name"] == lang and not row["installed"]:
			t.skip(row["missing"])


def hello(lang):
	def run(t):
		need(t, lang)
		r = t.cell("--timeout", t.secs(20), code=HELLO[lang], lang=lang, env=PATIENT, guard=GUARD * 5)
		t.verdict(r, "ok")
		t.equal(r.stdout, f"hello from {lang}\n".encode(), "output", r)
		t.equal(r.json["language"], lang, "language", r)
		t.equal(r.json["backend"], BACKEND or "native", "backend", r)
	return run


def by_extension(lang):
	def run(t):
		need(t, lang)
		r = t.cell("--timeout", t.secs(20), t.path("hello" + EXTENSION[lang], HELLO[lang]), env=PATIENT, guard=GUARD * 5)
		t.verdict(r, "ok")
		t.equal(r.json["language"], lang, "language found by the file's extension", r)
	return run


def echo(lang):
	def run(t):
		need(t, lang)
		r = t.cell("--timeout", t.secs(20), "--env", "GREETING=good morning", "--", "one", "two words", "--three", "",
			   code=ECHO[lang], lang=lang, env=PATIENT, guard=GUARD * 5, stdin=b"line one\nline two\n")
		t.verdict(r, "error")
		t.equal(r.json["exit_code"], 7, "exit code", r)
		t.equal(r.stdout, b"one|two words|--three|\ngood morning\nLINE ONE\nLINE TWO\n", "output", r)
		t.check(b"to stderr\n" in r.stderr, "stderr arrives", r)
	return run


def broken(lang):
	def run(t):
		need(t, lang)
		code, words = BROKEN[lang]
		r = t.cell("--timeout", t.secs(20), code=code, lang=lang, env=PATIENT, guard=GUARD * 5)
		t.verdict(r, "error")
		t.equal(r.json.get("step"), "compile", "the step that ended it", r)
		for word in words:
			t.check(word in r.stderr.decode("utf-8", "replace"), f"the compiler's message names {word}", r)
		t.equal(r.stdout, b"", "nothing ran, so the output", r)
	return run


for name in HELLO:
	add(f"languages.hello_{name}", f"{name} says hello", hello(name), "languages")
	add(f"languages.extension_{name}", f"{name} is known by its extension", by_extension(name), "languages")
	add(f"languages.echo_{name}", f"{name}: arguments, environment, input, both streams, exit code", echo(name), "languages")
for name in BROKEN:
	add(f"languages.broken_{name}", f"a compile error in {name} is reported as such", broken(name), "languages")


@case("a shebang names the language")
def shebang(t):
	r = t.cell(t.path("script", "#!/usr/bin/env python3\nimport sys\nprint(sys.version_info[0])\n"))
	t.verdict(r, "ok")
	t.equal(r.stdout, b"3\n", "output", r)


@case("bash scripts may use bash")
def bash(t):
	r = t.cell(t.path("x.sh", "#!/bin/bash\na=(1 2 3)\n[[ ${#a[@]} == 3 ]] && echo \"${a[2]}\"\n"))
	t.verdict(r, "ok")
	t.equal(r.stdout, b"3\n", "output", r)


@case("-c takes the code from the command line")
def inline(t):
	r = t.cell("-c", "print(6 * 7)", lang="python")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"42\n", "output", r)


@case("- takes the code from stdin")
def from_stdin(t):
	r = t.cell("-", lang="python", stdin=b"print('read from stdin')\n")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"read from stdin\n", "output", r)


@case("--stdin FILE feeds the program")
def stdin_file(t):
	r = t.cell("--stdin", t.path("input", "from a file\n"), "-c", "print(input())", lang="python")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"from a file\n", "output", r)


@case("an unknown language is refused with the list of known ones")
def unknown_language(t):
	p = t.brig("run", "--lang", "cobol", "-c", "DISPLAY 'HI'.")
	t.check(p.rc not in (0, 1), "the exit status is not the program's", p)
	t.check("cobol" in p.text() and "python" in p.text(), "the message names it and what is known", p)


@case("a file of no known kind is refused")
def unknown_extension(t):
	p = t.brig("run", t.path("notes.xyz", "what am I\n"))
	t.check(p.rc not in (0, 1), "the exit status is not the program's", p)
	t.check("python" in p.text(), "the message lists what is known", p)


@case("the traceback shows the program's own file name")
def traceback_name(t):
	r = t.cell(t.path("my_script.py", "def f():\n    raise KeyError('lost')\nf()\n"))
	t.verdict(r, "error")
	t.equal(r.json["exit_code"], 1, "exit code", r)
	t.check(b"my_script.py\", line 2" in r.stderr, "file and line are shown", r)


@case("hostile file names stay names")
def hostile_names(t):
	for name in (b"--help.py", b"a b;$(touch x).py", b"new\nline.py", b"\xff\xfe.py", "ünï.py".encode(), b"-.py", b"%s%n.py",
		     b"x" * 240 + b".py"):
		t.path(name, "print('named')\n")
		p = t.run([*t.run_args("--json"), b"./" + name])
		try:
			verdict = json.loads(p.out)["verdict"]
		except ValueError:
			verdict = None
		if verdict is None:
			t.check(p.rc in (2, 121, 125), f"{name!r} is run or refused clearly", p)
			continue
		t.check(verdict in ("ok", "refused"), f"{name!r} is run or refused", p)
		t.check(verdict != "ok" or b"named" in p.out, f"{name!r} ran", p)


@case("standard libraries work: threads, subprocess, sqlite, asyncio, multiprocessing")
def python_libraries(t):
	r = t.cell("--timeout", t.secs(25), code="""
import asyncio, json, multiprocessing, sqlite3, subprocess, tempfile, threading
got = []
th = threading.Thread(target=lambda: got.append('thread')); th.start(); th.join()
got.append(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())
db = sqlite3.connect(tempfile.mktemp()); db.execute('create table t(x)'); db.execute("insert into t values('sqlite')")
db.commit(); got.append(db.execute('select x from t').fetchone()[0])
async def a():
    p = await asyncio.create_subprocess_exec('echo', 'async', stdout=asyncio.subprocess.PIPE)
    return (await p.communicate())[0].decode().strip()
got.append(asyncio.run(a()))
with multiprocessing.Pool(2) as pool:
    got.append(pool.map(len, ['pool'])[0])
print(json.dumps(got))
""", lang="python")
	t.verdict(r, "ok")
	t.equal(json.loads(r.stdout), ["thread", "child", "sqlite", "async", 4], "results", r)


@case("node works: workers, child processes, its own loopback server")
def node_libraries(t):
	r = t.cell("--timeout", t.secs(25), code="""
const { Worker } = require('worker_threads'), http = require('http'), cp = require('child_process');
console.log(cp.execSync('echo child').toString().trim());
new Worker("require('worker_threads').parentPort.postMessage('worker')", { eval: true }).on('message', m => {
	console.log(m);
	const s = http.createServer((q, a) => a.end('served')).listen(0, '127.0.0.1', () =>
		http.get({ host: '127.0.0.1', port: s.address().port }, a => a.on('data', d => { console.log(d.toString()); s.close(); })));
});
""", lang="javascript")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"child\nworker\nserved\n", "output", r)


@case("what the program sees: neutral names, uid 1000, a private home")
def neutral_view(t):
	r = t.cell(code="""
id -u; id -g; pwd; hostname 2>/dev/null || cat /etc/hostname
echo "$HOME" "$PATH"
env | cut -d= -f1 | sort | tr '\\n' ' '
""", lang="shell")
	t.verdict(r, "ok")
	lines = r.stdout.decode().splitlines()
	t.equal(lines[:3], ["1000", "1000", "/workspace"], "uid, gid and directory", r)
	t.check(lines[3] != socket.gethostname(), "the host's name is hidden", r)
