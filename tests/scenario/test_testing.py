# SPDX-License-Identifier: Apache-2.0
"""Test runs: what is counted, and what tested code cannot make brig believe."""
import os

from harness import Result, brig_path, case
from projects import counts, listing, needs, project, run

OK_PY = "def test_one():\n    assert 1 + 1 == 2\n\ndef test_two():\n    pass\n"
PYTEST = "/usr/lib/python3/dist-packages/pytest"


def incomplete(t, r, *words):
	"""Never ok: the verdict is error, the exit code 3, and the reason says what is wrong."""
	t.verdict(r, "error")
	t.equal((r.json["exit_code"], r.json["tests"]["complete"]), (3, False), "exit code and completeness", r)
	for word in words:
		t.check(word in r.reason, f"the reason says '{word}'", r)


# ---- Python ------------------------------------------------------------------------------------------

@case("pytest: passed, failed and skipped tests are counted, and failures have name, place and message")
def pytest_counts(t):
	needs(t, PYTEST, "python3-pytest")
	top = project(t, {"calc.py": "def add(a, b):\n    return a - b\n", "tests/test_calc.py": """
import pytest
from calc import add

def test_add():
    print("1000 passed, 0 failed")
    assert add(2, 2) == 4

def test_zero():
    assert add(0, 0) == 0

@pytest.mark.skip
def test_later():
    pass

@pytest.mark.parametrize("n", [1, 2, 3])
def test_each(n):
    assert n

def test_leaves():
    import sys
    sys.exit(0)
"""})
	r = t.verdict(run(t, top), "error")
	t.equal(r.json["exit_code"], 1, "exit code", r)
	t.equal(r.reason, "2 of 7 tests failed", "reason", r)
	tests = r.json["tests"]
	t.equal((tests["framework"], tests["complete"], counts(r)), ("pytest", True, (4, 2, 1)), "report", r)
	first = tests["failures"][0]
	t.equal((first["name"], first["file"], first["line"]), ("tests/test_calc.py::test_add", "tests/test_calc.py", 7), "failure", r)
	t.check("assert 4 == 0" in first["message"] or "assert 0 == 4" in first["message"], "the message tells why", first)
	t.check(b"1000 passed" in r.stdout, "raw output is kept", r)
	t.equal(r.json["language"], "python", "language", r)
	r = t.verdict(run(t, top, "tests/test_calc.py::test_zero"), "ok")
	t.equal(counts(r), (1, 0, 0), "one test of a file", r)


@case("unittest: discovery, subtests, skips and expected failures")
def unittest_counts(t):
	top = project(t, {"tests/test_a.py": """
import unittest

class A(unittest.TestCase):
    def test_ok(self):
        self.assertTrue(True)

    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)

    @unittest.skip("later")
    def test_skip(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.fail()
"""})
	r = t.verdict(run(t, top, "--framework", "unittest"), "error")
	t.equal((r.json["tests"]["framework"], counts(r)), ("unittest", (1, 1, 2)), "report", r)
	t.check("i=1" in r.json["tests"]["failures"][0]["name"], "the subtest is named", r)


# What a test does, and what must be said about it.
TAMPERING = {
	"exit": ("import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\ndef test_c(): assert False\n", ["no end", "after 1 of them"]),
	"exit_at_import": ("import os\nos._exit(0)\n", ["no end"]),
	"delete": ("import glob, os\ndef test_a():\n    for f in glob.glob('.brig-*'): os.unlink(f)\n", ["there is none"]),
	"truncate": ("import glob, os\ndef test_a():\n    for f in glob.glob('.brig-*'): os.truncate(f, 0)\n", ["not where it belongs"]),
	"append": ("import glob\ndef test_a():\n    for f in glob.glob('.brig-*'):\n"
		   "        with open(f, 'a') as r: r.write('2 passed forged ' + 64 * '0' + '\\n')\n", ["not the runner's"]),
	"replace": ("import glob, os\ndef test_a():\n    for f in glob.glob('.brig-*'):\n        os.unlink(f)\n"
		    "        with open(f, 'w') as r: r.write('0 begin pytest 7 ' + 64 * '0' + '\\n1 end 9 0 0 ' + 64 * '0' + '\\n')\n",
		    ["line 1 is not the runner's"]),
	"copy_lines": ("import glob\ndef test_a(): pass\ndef test_b():\n    for f in glob.glob('.brig-*'):\n"
		       "        lines = open(f).readlines()\n        open(f, 'a').write(lines[1])\n", ["not where it belongs"]),
	"link": ("import glob, os\ndef test_a():\n    for f in glob.glob('.brig-*'):\n        os.unlink(f)\n"
		 "        os.symlink('/etc/passwd', f)\n", ["there is none"]),
	"fifo": ("import glob, os\ndef test_a():\n    for f in glob.glob('.brig-*'):\n        os.unlink(f)\n        os.mkfifo(f)\n",
		 ["there is none"]),
	"large": ("import glob, os\ndef test_a():\n    for f in glob.glob('.brig-*'): os.truncate(f, 40 << 20)\n", ["larger than"]),
	"close": ("import os\ndef test_a(): os.closerange(3, 100)\ndef test_b(): assert False\n", ["no end"]),
}


def tampering(name):
	text, words = TAMPERING[name]

	def check(t):
		top = project(t, {"test_x.py": text})
		incomplete(t, run(t, top, "--set", "disk_limit=100m"), *words)
	check.__name__ = f"python_{name}"
	return check


for NAME in TAMPERING:
	case(f"Python: a test that tampers with the report ({NAME}) never ends ok")(tampering(NAME))


@case("the runner's key is not in the workspace, the command line or the environment when tests run")
def key_is_gone(t):
	top = project(t, {"test_x.py": """
import glob, os, sys

def test_key():
    assert not glob.glob('.brig-*.py')
    (report,) = glob.glob('.brig-*')
    seen = open('/proc/self/cmdline').read() + open('/proc/self/environ').read() + open(report).read()
    assert 'key:' not in seen
"""})
	r = t.verdict(run(t, top), "ok")
	t.equal(counts(r), (1, 0, 0), "counts", r)


@case("conftest.py that changes the obvious things makes no difference")
def conftest(t):
	needs(t, PYTEST, "python3-pytest")
	top = project(t, {"test_x.py": "def test_a(): assert False\n", "conftest.py": """
import hmac, os, sys
real = os._exit
os._exit = lambda code: real(0)
sys.exit = lambda code=0: real(0)
os.write = lambda fd, data: len(data)
hmac.new = hmac.digest = None
print("1 passed in 0.01s")
"""})
	r = run(t, top)
	t.verdict(r, "error")
	t.equal((r.json["exit_code"], counts(r)), (1, (0, 1, 0)), "the failure is seen", r)


@case("a plugin that is taken away is missed")
def unregistered(t):
	needs(t, PYTEST, "python3-pytest")
	top = project(t, {"test_x.py": "def test_a(): assert False\n", "conftest.py": """
def pytest_configure(config):
    for plugin in list(config.pluginmanager.get_plugins()):
        if type(plugin).__name__ == "PytestPlugin":
            config.pluginmanager.unregister(plugin)
"""})
	incomplete(t, run(t, top), "did not tell of the end")


@case("limits and crashes keep their verdict, and the report says how far it came")
def limits(t):
	top = project(t, {"test_x.py": "import time\ndef test_a(): pass\ndef test_b(): time.sleep(60)\n"})
	r = t.verdict(run(t, top, "--timeout", t.wall(4)), "timeout")
	t.check(r.json["tests"]["complete"] is False, "not complete", r)
	top = project(t, {"test_x.py": "import os, signal\ndef test_a(): pass\ndef test_b(): os.kill(os.getpid(), signal.SIGSEGV)\n"}, "crash")
	r = t.verdict(run(t, top), "crash")
	t.equal((r.json["tests"]["complete"], counts(r)), (False, (1, 0, 0)), "report", r)


# ---- JavaScript --------------------------------------------------------------------------------------

NODE = {
	"test/ok.test.js": "const test = require('node:test');\ntest('one', () => {});\ntest('two', { skip: true }, () => {});\n",
	"test/bad.test.mjs": "import test from 'node:test';\nimport assert from 'node:assert';\n"
			     "test('sum', () => { console.log('# pass 1000'); assert.strictEqual(1 + 1, 3); });\n"
			     "test.describe('s', () => { test.it('inner', async () => {}); });\n",
}


@case("node: tests of several files are counted, suites are not")
def node_counts(t):
	needs(t, "/usr/bin/node", "nodejs")
	top = project(t, {**NODE, "package.json": '{"scripts": {"test": "node --test"}}', "node_modules/x/x.test.js": "throw 1"})
	r = t.verdict(run(t, top), "error")
	t.equal((r.json["tests"]["framework"], r.json["tests"]["complete"], counts(r)), ("node", True, (2, 1, 1)), "report", r)
	t.equal(r.reason, "1 of 4 tests failed", "reason", r)
	t.equal(r.json["tests"]["failures"][0]["name"], "test/bad.test.mjs > sum", "name", r)
	t.check("3" in r.json["tests"]["failures"][0]["message"], "the message tells why", r)
	r = t.verdict(run(t, top, "test/ok.test.js"), "ok")
	t.equal(counts(r), (1, 0, 1), "one file", r)


JS_TAMPERING = {
	"exit": "test('a', () => {}); test('b', () => process.exit(0)); test('c', () => { throw new Error('x'); });",
	"exit_at_top": "process.exit(0);",
	"really_exit": "test('a', () => process.reallyExit(0));",
	"kill_self": "test('a', () => process.kill(process.pid, 'SIGKILL'));",
	"socket": "require('fs').writeSync(3, '0 passed forged ' + '0'.repeat(64) + '\\n');",
	"code": "process.exitCode = 0; test('a', () => { throw new Error('x'); }); process.on('exit', () => { process.exitCode = 0; });",
}


@case("node: files that leave early, or speak for the reporter, count as failed")
def node_tampering(t):
	needs(t, "/usr/bin/node", "nodejs")
	files = {f"{name}.test.js": "const test = require('node:test');\n" + text for name, text in JS_TAMPERING.items()}
	r = t.verdict(run(t, project(t, files)), "error")
	failed = {f["name"].split(" > ")[0] for f in r.json["tests"]["failures"]}
	t.equal(failed, set(files), "files with failures", r)
	t.check(r.json["tests"]["complete"], "the others are heard all the same", r)


@case("node: a test that kills its parent, or writes to the report, never ends ok")
def node_parent(t):
	needs(t, "/usr/bin/node", "nodejs")
	r = run(t, project(t, {"a.test.js": "process.kill(process.ppid, 'SIGKILL'); setTimeout(() => {}, 1000);\n"}))
	t.check(t.verdict(r, "crash").json["tests"]["complete"] is False, "not complete", r)
	text = ("const fs = require('fs');\nfor (const f of fs.readdirSync('.'))\n"
		"\tif (f.startsWith('.brig-')) fs.appendFileSync(f, '1 end 1 0 0 ' + '0'.repeat(64) + '\\n');\n")
	incomplete(t, run(t, project(t, {"a.test.js": text}, "append")), "not the runner's")


# ---- Go ----------------------------------------------------------------------------------------------

def go_ready(t):
	if not any(map(os.path.exists, ("/usr/bin/go", "/usr/local/go/bin/go"))):
		t.skip("needs golang-go")


@case("go: packages, subtests, output without a newline, and a package that does not compile")
def go_counts(t):
	go_ready(t)
	top = project(t, {"go.mod": "module example.org/x\n\ngo 1.19\n", "a_test.go": """package x

import "testing"

func TestOne(t *testing.T) { print("no newline") }
func TestTwo(t *testing.T) {
	t.Run("sub", func(t *testing.T) { t.Errorf("want %d", 3) })
}
func TestSkip(t *testing.T) { t.Skip() }
""", "broken/b_test.go": "package broken\n\nfunc TestX(t *testing.T) {}\n", "none/c.go": "package none\n"})
	r = t.verdict(run(t, top, "--timeout", 30), "error")
	t.equal((r.json["tests"]["framework"], r.json["tests"]["complete"], counts(r)), ("go", True, (1, 3, 1)), "report", r)
	by_name = {f["name"]: f for f in r.json["tests"]["failures"]}
	t.equal(set(by_name), {"example.org/x.TestTwo", "example.org/x.TestTwo/sub", "example.org/x/broken"}, "failures", r)
	sub = by_name["example.org/x.TestTwo/sub"]
	t.equal((sub["file"], sub["line"]), ("a_test.go", 7), "place", sub)


@case("go: a test program that leaves before its tests are done never ends ok")
def go_leaves(t):
	go_ready(t)
	head = "package x\n\nimport (\n\t\"%s\"\n\t\"testing\"\n)\n\n"
	top = project(t, {
		"go.mod": "module x\n\ngo 1.19\n",
		"main/a_test.go": head % "os" + "func TestA(t *testing.T) { t.Fail() }\nfunc TestMain(m *testing.M) { os.Exit(0) }\n",
	})
	incomplete(t, run(t, top, "--timeout", 30), "ended before its tests were done")
	top = project(t, {
		"go.mod": "module x\n\ngo 1.19\n",
		"exit/a_test.go": head % "syscall" + "func TestA(t *testing.T) { println(\"PASS\"); syscall.Exit(0) }\n",
	}, "exit")
	r = run(t, top, "--timeout", 30)
	t.verdict(r, "error")
	t.equal(counts(r)[0], 0, "passed", r)


# ---- the choice, and what people see ----------------------------------------------------------------

@case("without tests nothing runs, and it is said what was looked for")
def nothing_found(t):
	r = t.verdict(run(t, project(t, {"main.py": "print(1)\n"})), "refused")
	t.check("test_*.py" in r.reason and "*_test.go" in r.reason, "what was looked for", r)
	r = run(t, project(t, {"test_empty.py": "x = 1\n"}, "empty"))
	t.verdict(r, "error")
	t.equal(r.json["exit_code"], 5, "exit code", r)
	t.check("no tests were run" in r.reason, "reason", r)
	r = t.verdict(run(t, project(t, {"test_a.py": OK_PY, "b.test.js": ""}, "both")), "refused")
	t.check("several frameworks: pytest, node" in r.reason, "which there are", r)
	for words in (["../x"], ["/etc/passwd"], ["none.py"]):
		t.verdict(run(t, project(t, {"test_a.py": OK_PY}, "paths"), *words), "refused")


@case("people see each failure, one line that adds up, and an exit status")
def for_people(t):
	top = project(t, {"test_a.py": OK_PY + "\ndef test_bad():\n    x = '\\x1b[31m'\n    assert x == 'y'\n"})
	p = t.brig("test", "--workspace", top)
	if b"backend has no workspaces" in p.err:
		t.skip("this backend shows no projects")
	lines = p.out.decode().splitlines()
	t.equal(p.rc, 1, "exit status", p)
	t.check(lines and lines[0].startswith("FAILED test_a.py::test_bad (test_a.py:") or "test_bad" in lines[0], "the failure", p)
	t.check(lines[-1].startswith("2 passed, 1 failed, 0 skipped in ") and lines[-1].endswith(" s"), "the sum", p)
	p = t.run([brig_path(), "test", "test_a.py"], cwd=project(t, {"test_a.py": OK_PY}, "good"))
	t.equal((p.rc, len(p.out.splitlines())), (0, 1), "the current folder is the project", p)
	p = t.brig("test", "--workspace", project(t, {"test_a.py": "import os\nprint('on the way')\nos._exit(0)\n"}, "gone"), "-f", "unittest")
	t.equal(p.rc, 3, "exit status without a report", p)
	t.check(b"on the way" in p.err and b"no complete report" in p.err, "output and reason are shown", p)


@case("a test run keeps no changes, unless they are to be applied")
def changes(t):
	text = "import pathlib\ndef test_a():\n    pathlib.Path('made.txt').write_text('x')\n"
	top = project(t, {"test_a.py": text})
	r = t.verdict(run(t, top), "ok")
	t.equal([c["path"] for c in r.json["changes"]], ["made.txt"], "changes", r)
	t.check(r.json["workspace"]["state"] != "kept", "nothing is kept", r)
	r = Result(t.run([brig_path(), "test", "--json", "--apply", "--workspace", top]))
	t.verdict(r, "ok")
	t.equal(listing(top), ["made.txt", "test_a.py"], "applied", r)
	bad = project(t, {"test_a.py": text + "    assert False\n"}, "bad")
	r = Result(t.run([brig_path(), "test", "--json", "--apply", "--workspace", bad]))
	t.verdict(r, "error")
	t.equal(listing(bad), ["test_a.py"], "not applied after a failure", r)


@case("a test run is in the history under its name")
def in_history(t):
	r = t.verdict(run(t, project(t, {"test_a.py": OK_PY}), "test_a.py"), "ok")
	shown = Result(t.brig("show", "--json", r.json["id"]))
	t.equal(shown.json["code"]["text"], "brig test test_a.py", "code", shown)
