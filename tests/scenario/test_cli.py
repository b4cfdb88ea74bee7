# SPDX-License-Identifier: Apache-2.0
"""The command line itself: a result on every path, silence on request, input that is left alone, help and completions."""
import json
import os

from harness import BACKEND, brig_path, case

PYTHON = ["-l", "python", "-c", "print(1)"]

# What is wrong, the words behind `brig`, the exit status, and a piece of the reason.
WRONG = [
	("a file that is not there", ["run", "--json", "not-there.py"], 2, "not-there.py"),
	("nothing to run", ["run", "--json"], 2, "nothing to run"),
	("an option that is not known", ["run", "--frobnicate", "--json", *PYTHON], 2, "--frobnicate"),
	("an option without its value", ["run", "--json", "--timeout"], 2, "--timeout"),
	("a value that cannot be read", ["run", "--json", "--timeout", "soon", *PYTHON], 125, "soon"),
	("a language that is not known", ["run", "--json", "-l", "klingon", "-c", "x"], 125, "klingon"),
	("a trust level that is not known", ["run", "--json", "-t", "blind", *PYTHON], 125, "blind"),
	("a policy that is not there", ["run", "--json", "-p", "not-there.yaml", *PYTHON], 125, "not-there.yaml"),
	("a policy that is wrong", ["run", "--json", "-p", "wrong.yaml", *PYTHON], 125, "mem_limitt"),
	("a receipt that cannot be written", ["run", "--json", "--receipt", "no/such/place", *PYTHON], 2, "no/such/place"),
	("an input that is not there", ["run", "--json", "-i", "not-there.txt", *PYTHON], 2, "not-there.txt"),
	("no command", ["exec", "-j"], 2, "nothing to run"),
	("a project that is not there", ["test", "--json", "--workspace", "not-there"], 125, "not-there"),
]


@case("--json prints a result on every path, with the exit status that the same call has without it")
def json_on_every_path(t):
	t.path("wrong.yaml", "mem_limitt: 1g\n")
	for what, words, status, piece in WRONG:
		p = t.run([brig_path(), *words], cwd=t.dir)
		doc = json.loads(p.out)
		t.equal((p.rc, doc["verdict"]), (status, "refused"), "status and verdict of " + what, p)
		t.check(piece in doc["reason"], "the reason of %s names it" % what, p)
		t.equal((doc["stdout"], doc["evidence"], doc["exit_code"]), ("", [], None), "the rest of " + what, p)


@case("version --json is a document")
def version_document(t):
	doc = json.loads(t.brig("version", "--json").out)
	t.equal("brig %s\n" % doc["version"], t.brig("version").out.decode(), "version")


@case("--quiet says nothing but why nothing ran")
def quiet(t):
	code = "import sys; sys.exit(3)"
	loud = t.brig("run", "--summary", "-l", "python", "-c", code)
	t.check(b"brig: " in loud.err, "a summary is on stderr", loud)
	p = t.brig("run", "--quiet", "--timeout", "0.3", "-l", "python", "-c", "print(1, flush=True)\nwhile True: pass")
	t.equal((p.rc, p.out, p.err), (124, b"1\n", b""), "a run that its limit ended", p)
	p = t.brig("run", "--quiet", "-l", "klingon", "-c", "x")
	t.check(p.rc == 125 and b"klingon" in p.err, "a refusal is said", p)
	os.mkdir(t.path("project"), 0o777)
	os.chmod(t.path("project"), 0o777)
	p = t.brig("run", "-q", "--workspace", t.path("project"), "-l", "python", "-c", "open('left.txt', 'w').write('x')")
	t.equal((p.rc, p.err), (0, b""), "changes of a workspace are not told", p)


@case("-n leaves the caller's input alone, so a shell loop gets all of its lines")
def input_left_alone(t):
	rows = "".join("line %d\n" % i for i in range(3))
	p = t.run(["sh", "-c", 'while read -r x; do "$0" run -n -l shell -c "echo got"; echo "$x"; done', brig_path()],
		  stdin=rows.encode())
	t.equal(p.out.decode(), "".join("got\nline %d\n" % i for i in range(3)), "lines of the loop", p)
	p = t.brig("run", "--stdin", "inherit", "-l", "python", "-c", "print(input())", stdin=b"mine\n")
	t.equal(p.out, b"mine\n", "inherited input", p)
	p = t.brig("run", "-n", "--stdin", "inherit", *PYTHON)
	t.equal(p.rc, 2, "both at once", p)


@case("no more of the caller's input is read ahead than a pipe holds")
def little_read_ahead(t):
	if BACKEND == "docker":
		t.skip("an engine's stream holds what it likes")
	source = t.path("input", "x" * 1000000)
	with open(source, "rb") as f:
		p = t.run([brig_path(), "run", "-l", "python", "-c", "import time; time.sleep(0.5)"], stdin=f)
		t.equal(p.rc, 0, "status", p)
		at = os.lseek(f.fileno(), 0, os.SEEK_CUR)
	t.check(0 < at <= 65536, "no more than a pipe holds was read", at)
	p = t.brig("run", "-l", "python", "-c", "import sys; print(len(sys.stdin.read()))", stdin=b"y" * 1000000)
	t.equal(p.out, b"1000000\n", "a program that reads gets all of it", p)
