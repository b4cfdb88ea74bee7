# SPDX-License-Identifier: Apache-2.0
"""What guests write does not steer the terminal of those who read it, and what tests report is about the project's tests."""
import json
import os
import pty
import select
import time

from harness import brig_path, case
from projects import counts, needs, project, run

# Carriage return, escape sequences, C1 as a character, direction marks, separators, invisible characters.
STEERING = ["\r", "\x1b[2J", "\x1b]0;owned\x07", "\x7f", "\x85", "\x9b", "\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029",
	"\u202e", "\u2060", "\u2066", "\u2069", "\ufeff", "\U000e0041"]
NAME = "x" + "".join(STEERING) + "y\nbrig: forged z"
# What a terminal of ours shows of itself: newlines (the line discipline makes CR LF of them), tabs, colours.
HARMFUL = {c for c in "".join(STEERING) if ord(c) < 32 or ord(c) > 126}
ALLOWED = [b"\r\n", b"\t"] + [b"\x1b[%dm" % n for n in (0, 1, 2, 31, 32, 33)]


def on_terminal(t, *words):
	"""Runs brig with standard output and error on a terminal of its own; everything that arrives there."""
	ours, theirs = pty.openpty()
	try:
		p = t.popen([brig_path(), *words], stdin=None, stdout=theirs, stderr=theirs, env={"TERM": "xterm"})
		os.close(theirs)
		theirs = -1
		seen, end = b"", time.monotonic() + 120
		while time.monotonic() < end:
			if not select.select([ours], [], [], 1)[0]:
				continue
			try:
				piece = os.read(ours, 65536)
			except OSError:  # EIO: nobody has it open any more
				break
			if not piece:
				break
			seen += piece
		p.wait(120)
		return seen
	finally:
		os.close(ours)
		if theirs >= 0:
			os.close(theirs)


def harmless(t, seen, what, *words):
	"""Nothing in it steers a terminal or hides from its reader, and no line of it is the guest's."""
	rest = seen
	for allowed in ALLOWED:
		rest = rest.replace(allowed, b"")
	text = rest.decode("utf-8", "surrogateescape")
	for c in text:
		t.check(ord(c) >= 32 and c not in HARMFUL and not 0xdc80 <= ord(c) <= 0xdcff,
			f"{what}: {c!r} reaches the terminal", seen)
	for line in seen.split(b"\r\n"):
		t.check(not line.startswith(b"brig: forged"), f"{what}: a line that brig did not write", seen)
	for word in words:
		t.check(word in seen, f"{what}: it shows {word}", seen)


# The whole name is made in the cell: the host's shell never has it.
HOSTILE_PY = f"""
import sys
name = {NAME!r}
open(name, "w").write("a\\r\\x1b[31mb\\u202ec\\n")
open("plain.txt", "w").write("one" + name + "\\n")
sys.stdout.write(name + "\\n")
sys.stderr.write("e" + name + "\\n")
"""


@case("t1: what a guest writes and names does not steer the terminal of its reader")
def t1_terminal(t):
	top = project(t, {"readme": "text\n"})
	r = t.cell("--workspace", top, code=HOSTILE_PY, lang="python")
	t.verdict(r, "ok")
	ident = r.json["id"]
	for words in (["workspace", "show", ident], ["workspace", "diff", ident], ["workspace", "list"], ["history"], ["show", ident],
			["audit", "show"], ["audit", "export"], ["audit", "show", "--json"]):
		harmless(t, on_terminal(t, *words), " ".join(words[:2]), b"\\x0d" if words[:2] == ["workspace", "show"] else b"")


@case("t1: findings, reasons and messages with names of others stay on their lines")
def t1_messages(t):
	bad = "bad" + "".join(STEERING).replace("/", "") + "\nbrig: forged.py"
	path = t.path("findings")
	os.makedirs(path, exist_ok=True)
	with open(os.path.join(path, bad), "w", encoding="utf-8") as f:
		f.write("import os\nos.system('\u202erm -rf /\u2066')\n")
	harmless(t, on_terminal(t, "check", path), "check", b"\\u202e")
	harmless(t, on_terminal(t, "check", "--format", "json", path), "check as JSON")
	harmless(t, on_terminal(t, "check", "--format", "sarif", path), "check as SARIF")
	harmless(t, on_terminal(t, "run", os.path.join(path, bad)), "run")
	harmless(t, on_terminal(t, "run", os.path.join(path, "absent" + bad)), "a file that is not there", b"\\x0a")
	harmless(t, on_terminal(t, "policy", "check", os.path.join(path, "absent" + bad)), "a policy that is not there")
	harmless(t, on_terminal(t, "workspace", "show", bad), "a run that is not there")
	harmless(t, on_terminal(t, "show", bad), "an execution that is not there")


@case("t1: names and messages of tests stay on their lines")
def t1_tests(t):
	top = project(t, {"test_names.py": "import unittest\n\nclass T(unittest.TestCase):\n\tdef test_it(self):\n"
		f"\t\tself.fail({NAME!r})\n"})
	seen = on_terminal(t, "test", "--framework", "unittest", "--workspace", top)
	harmless(t, seen, "test", b"FAILED", b"\\u202e")


@case("t2: JSON on a terminal has escapes instead of characters that steer it, and means the same")
def t2_json(t):
	top = project(t, {"readme": "text\n"})
	r = t.cell("--workspace", top, code=HOSTILE_PY, lang="python")
	t.verdict(r, "ok")
	seen = on_terminal(t, "workspace", "show", "--json", r.json["id"])
	harmless(t, seen, "workspace show --json", b"\\u202e")
	paths = [c["path"] for c in json.loads(seen)["changes"]]
	t.check(NAME in paths, "the document says the name as it is", paths)
	for words in (["history", "--json"], ["show", "--json", r.json["id"]], ["workspace", "list", "--json"]):
		seen = on_terminal(t, *words)
		harmless(t, seen, " ".join(words[:2]))
		json.loads(seen)
	code = t.path("hostile.py", HOSTILE_PY)
	seen = on_terminal(t, "run", "--json", code)
	harmless(t, seen, "run --json")
	t.check(NAME in json.loads(seen[seen.index(b"{"):].splitlines()[0])["stdout"], "the output is in the document as it was", seen)


# ---- tests of tests -----------------------------------------------------------------------------------

ATTACK_JS = """
const fs = require('node:fs'), { test } = require('node:test');
const GOOD = "require('node:test').test('b', () => {});\\n";
const tries = [
	() => fs.writeFileSync('b.test.js', GOOD),
	() => { fs.unlinkSync('b.test.js'); fs.writeFileSync('b.test.js', GOOD); },
	() => { fs.writeFileSync('new.js', GOOD); fs.renameSync('new.js', 'b.test.js'); },
	() => fs.writeFileSync('sub/test/c.js', GOOD),
	() => { fs.renameSync('sub/test', 'sub/aside'); fs.mkdirSync('sub/test'); fs.writeFileSync('sub/test/c.js', GOOD); },
	() => { fs.renameSync('sub', 'aside'); fs.mkdirSync('sub/test', { recursive: true }); fs.writeFileSync('sub/test/c.js', GOOD); },
];
test('a', () => {
	for (const attempt of tries)
		try { attempt(); } catch { }
	fs.writeFileSync('sub/test/snapshot.txt', 'beside a test');
});
"""
FAILING_JS = "require('node:test').test('it', () => { throw new Error('wrong'); });\n"


@case("ts: a test cannot rewrite or replace another test file before it runs (node)")
def ts_node(t):
	needs(t, "/usr/bin/node", "nodejs")
	top = project(t, {"a.test.js": ATTACK_JS, "b.test.js": FAILING_JS, "sub/test/c.js": FAILING_JS, "sub/.env": "S=1\n",
		"sub/test/.env": "S=2\n"})
	r = run(t, top)
	t.verdict(r, "error")
	t.equal(counts(r), (1, 2, 0), "the tests of the project, not those that were put in their place", r)
	paths = {c["path"]: c["change"] for c in r.json["changes"]}
	t.check(paths.get("sub/test/snapshot.txt") == "added", "a file beside a test can be written", r)
	t.check("b.test.js" not in paths and "sub/test/c.js" not in paths, "test files are as they were", r)


ATTACK_PY = """
import importlib.util, marshal, os, sys
GOOD = "import unittest\\nclass T(unittest.TestCase):\\n\\tdef test_b(self): pass\\n"
def pyc_files():
	st = os.stat("tests/test_b.py")
	stamp = (int(st.st_mtime) & 0xffffffff).to_bytes(4, "little") + (st.st_size & 0xffffffff).to_bytes(4, "little")
	tag = sys.implementation.cache_tag
	yield f"test_b.{tag}.pyc", importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
	if "pytest" in sys.modules:
		pytest = sys.modules["pytest"]
		yield f"test_b.{tag}-pytest-{pytest.__version__}.pyc", importlib.util.MAGIC_NUMBER + bytes(4) + stamp
def attempts():
	yield lambda: open("tests/test_b.py", "w").write(GOOD)
	yield lambda: (os.unlink("tests/test_b.py"), open("tests/test_b.py", "w").write(GOOD))
	for name, head in pyc_files():
		yield lambda: (os.makedirs("tests/__pycache__", exist_ok=True),
			open("tests/__pycache__/" + name, "wb").write(head + marshal.dumps(compile(GOOD, "tests/test_b.py", "exec"))))
	yield lambda: (os.rename("tests", "aside"), os.mkdir("tests"), open("tests/test_b.py", "w").write(GOOD))
for attempt in attempts():
	try:
		attempt()
	except OSError:
		pass
import unittest
class T(unittest.TestCase):
	def test_a(self): pass
"""
FAILING_PY = "import unittest\nclass T(unittest.TestCase):\n\tdef test_b(self): self.fail('wrong')\n"


@case("ts: a test module cannot rewrite another one before it is imported (Python)")
def ts_python(t):
	top = project(t, {"tests/test_a.py": ATTACK_PY, "tests/test_b.py": FAILING_PY, "tests/__init__.py": ""})
	for framework in ("unittest", "python"):
		r = run(t, top, "--framework", framework)
		t.verdict(r, "error")
		t.equal(counts(r), (1, 1, 0), f"{framework}: the tests of the project", r)


GO_LIES = """package lies
import ("fmt"; "os"; "testing")
func TestWrong(t *testing.T) { t.Fatal("wrong") }
func TestMain(m *testing.M) {
	fmt.Println("=== RUN   TestWrong\\n--- PASS: TestWrong (0.00s)\\nPASS")
	os.Exit(0)
}
"""


@case("go_report: the result says that Go's report is the test programs' own word, and what others' is")
def go_report_own_word(t):
	needs(t, "/usr/bin/go", "golang-go")
	top = project(t, {"go.mod": "module lies\n\ngo 1.18\n", "lies_test.go": GO_LIES})
	r = run(t, top, "--timeout", t.secs(30), guard=300)
	t.equal(r.json["tests"]["report"], "own word", "whose word the report is", r)
	p = t.brig("test", "--workspace", top, "--timeout", t.secs(30), guard=300)
	t.check(b"as the test programs themselves say" in p.out, "people are told", p)
	honest = run(t, project(t, {"test_a.py": FAILING_PY}, "honest"), "--framework", "unittest")
	t.equal(honest.json["tests"]["report"], "sealed", "a runner of brig's own", honest)
	t.check(honest.json["tests"]["test_files"] in ("held", "compared"), "what became of the test files is said", honest)


GO_INVENTS = """package lies
import ("fmt"; "os"; "testing")
func TestWrong(t *testing.T) { t.Fatal("wrong") }
func TestMain(m *testing.M) {
	fmt.Println("=== RUN   TestOther\\n--- PASS: TestOther (0.00s)\\nPASS")
	os.Exit(0)
}
"""


@case("go_report: a report that names tests which no source declares, and leaves out those that are, is not believed")
def go_report_fits_sources(t):
	needs(t, "/usr/bin/go", "golang-go")
	top = project(t, {"go.mod": "module example.org/lies\n\ngo 1.18\n", "sub/lies_test.go": GO_INVENTS})
	r = run(t, top, "--timeout", t.secs(30), guard=300)
	t.verdict(r, "error")
	t.check(not r.json["tests"]["complete"] and ("declares" in r.reason or "not in it" in r.reason), "the lie is named", r)
