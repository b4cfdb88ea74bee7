# SPDX-License-Identifier: Apache-2.0
"""The interface for programs: a run as lines of JSON, and files in and out as archives."""
import base64
import io
import json
import os
import pty
import subprocess
import tarfile

import schema
from harness import GUARD, case

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EVENT, RESULT = (json.load(open(os.path.join(ROOT, "data/schemas", name))) for name in ("event.json", "result.json"))


def events(t, p):
	"""Every line, checked against the schemas; the result is the last one, and the only one."""
	rows = [json.loads(line) for line in p.out.decode("utf-8").splitlines()]
	for row in rows:
		t.equal(schema.errors(row, EVENT), [], f"schema of {row.get('event')}", p)
	t.equal([row["event"] for row in rows].count("result"), 1, "results", p)
	t.equal(rows[-1]["event"], "result", "the last line", p)
	t.equal(schema.errors(rows[-1]["result"], RESULT), [], "schema of the result", p)
	return rows


def written(rows, stream):
	pieces = [row for row in rows if row["event"] == stream]
	return b"".join(base64.b64decode(r["data"]) if r.get("encoding") else r["data"].encode() for r in pieces)


def told(t, *args, **kw):
	return events(t, t.run(t.run_args("--events", "--timeout", t.secs(30), *args), **kw))


def archive(files, kind=tarfile.PAX_FORMAT):
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
		for name, data in files.items():
			info = tarfile.TarInfo(name)
			info.size, info.mode = len(data), 0o755 if data.startswith(b"#!") else 0o644
			tar.addfile(info, io.BytesIO(data))
	return out.getvalue()


def contents(data):
	with tarfile.open(fileobj=io.BytesIO(data)) as tar:
		return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


@case("a run is told in order: findings, started, what it wrote, the result")
def order(t):
	rows = told(t, "--inspect", "guard", "-l", "python", "-c", "import pickle, sys, time\nprint('out', flush=True)\ntime.sleep(.3)\nprint('err', file=sys.stderr)",
		    env={"BRIG_MONITORING_INTERVAL_MS": "20"})
	kinds = [row["event"] for row in rows]
	t.check(kinds.index("finding") < kinds.index("started") < kinds.index("stdout") < kinds.index("stderr"), "the order", kinds)
	t.check("sample" in kinds, "samples", kinds)
	result = rows[-1]["result"]
	t.equal((result["verdict"], result["stdout"], result["stderr"]), ("ok", "out\n", "err\n"), "the result has it all", result)
	t.equal(rows[kinds.index("started")]["id"], result["id"], "the id")
	t.equal([{k: v for k, v in row.items() if k != "event"} for row in rows if row["event"] == "finding"], result["findings"], "findings")


@case("bytes arrive as they are: characters in pieces, no UTF-8, NUL")
def exact_bytes(t):
	hostile = "ünï€𝄞".encode() + b"\x00\xff\xfe\xc3(" + "€".encode()
	code = f"import os, time\nfor b in bytes.fromhex('{hostile.hex()}') : os.write(1, bytes([b])); time.sleep(.001)\nos.write(2, b'\\xe2\\x82')"
	rows = told(t, "-l", "python", "-c", code)
	t.equal(written(rows, "stdout"), hostile, "stdout")
	t.equal(written(rows, "stderr"), b"\xe2\x82", "a character that never ends")


@case("what is blocked or refused has a result and never started")
def not_started(t):
	rows = told(t, "--inspect", "guard", "-l", "python", "-c", "import os\nos.system('rm -rf /')")
	t.check([r for r in rows if r["event"] == "finding" and r["severity"] == "CRITICAL"], "the finding", rows)
	t.equal((rows[-1]["result"]["verdict"], [r for r in rows if r["event"] == "started"]), ("blocked", []), "verdict, started")
	rows = told(t, "--memory", "1000g", "-l", "python", "-c", "pass")
	t.equal((rows[-1]["result"]["verdict"], len(rows)), ("refused", 1), "more than it may have")
	rows = told(t, "--no-such-option")
	t.equal((rows[-1]["result"]["verdict"], len(rows)), ("refused", 1), "wrong use")
	rows = told(t, "nothing-here.py")
	t.equal((rows[-1]["result"]["verdict"], len(rows)), ("refused", 1), "a file that is not there")


@case("SIGTERM cancels, and the result still comes")
def cancelled(t):
	p = t.popen(t.run_args("--events", "--timeout", t.secs(100), "-l", "python", "-c", "print('here', flush=True)\nimport time\ntime.sleep(100)"),
		    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	seen = b""
	while b"here" not in seen:
		seen += p.stdout.readline()
	p.terminate()
	out, _ = p.communicate(timeout=GUARD)
	p.out = seen + out
	t.equal((events(t, p)[-1]["result"]["verdict"], p.returncode), ("cancelled", 130), "verdict, status")


@case("a reader that goes away ends the run", final="left running")
def reader_gone(t):
	for form in ("--json", "--events"):
		p = t.popen(t.run_args(form, "--timeout", t.secs(1000), "-l", "python", "-c", "import time\ntime.sleep(1000)"),
			    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		if form == "--events":
			t.check(b"started" in p.stdout.readline(), "it runs")
		p.stdout.close()
		p.wait(timeout=GUARD)  # long before its time is over
		p.stderr.close()


@case("files come as an archive, and what is new or changed goes as one")
def archives(t):
	sent = {"data/in.txt": b"one\n", "tool.sh": b"#!/bin/sh\necho tool\n", "same.txt": b"same", "gone.txt": b"x", "n" * 120 + "/x": b"long"}
	code = """
import os, subprocess
print(open('data/in.txt').read().strip(), subprocess.run(['./tool.sh'], capture_output=True, text=True).stdout.strip())
open('data/in.txt', 'a').write('two\\n')
os.makedirs('o' * 120)
open('o' * 120 + '/new.bin', 'wb').write(bytes(range(256)))
os.remove('gone.txt')
"""
	out = t.path("out.tar")
	for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
		rows = told(t, "--files", "-", "--out-tar", out, "-l", "python", "-c", code, stdin=archive(sent, kind))
		result = rows[-1]["result"]
		t.equal((result["verdict"], result["stdout"]), ("ok", "one tool\n"), "it ran", result)
		t.equal(contents(open(out, "rb").read()), {"data/in.txt": b"one\ntwo\n", "o" * 120 + "/new.bin": bytes(range(256))}, "what came back")
		t.equal({c["path"]: c["change"] for c in result["changes"] if c["type"] == "file"},
			{"data/in.txt": "modified", "gone.txt": "deleted", "o" * 120 + "/new.bin": "added"}, "changes")
		t.equal(result["workspace"]["state"], "none", "nothing that could be applied is kept")
	rows = told(t, "--files", t.path("in.tar", archive({"a.py": b"V = 5\n"})), "-l", "python", "-c", "import a\nprint(a.V)")
	t.equal(rows[-1]["result"]["stdout"], "5\n", "a module of the archive")


@case("archives travel through descriptors")
def descriptors(t):
	inward, outward = os.pipe(), os.pipe()
	os.write(inward[1], archive({"a": b"abc"}))
	os.close(inward[1])
	p = t.popen(t.run_args("--json", "--files", f"fd:{inward[0]}", "--out-tar", f"fd:{outward[1]}", "-l", "sh", "-c", "tr a-c x-z <a >b"),
		    stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(inward[0], outward[1]))
	os.close(inward[0])
	os.close(outward[1])
	with os.fdopen(outward[0], "rb") as f:
		t.equal(contents(f.read()), {"b": b"xyz"}, "what came back")
	out, err = p.communicate(timeout=GUARD)
	t.equal(json.loads(out)["verdict"], "ok", "verdict", err)


@case("what an archive must not hold refuses the run, and says what")
def bad_archives(t):
	link = tarfile.TarInfo("l")
	link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
	with_link = io.BytesIO()
	with tarfile.open(fileobj=with_link, mode="w") as tar:
		tar.addfile(link)
	for data, word in ((with_link.getvalue(), "is a link"), (archive({"../x": b"1"}), "'..'"), (archive({"a": b"1"})[:600], "too early"),
			   (b"no archive" * 100, "no sound tar archive"), (b"", "too early"), (archive({"a": b"0" * 40000000}), "mem_limit")):
		rows = told(t, "--memory", "64m", "--files", "-", "-l", "sh", "-c", "true", stdin=data)
		t.equal(rows[-1]["result"]["verdict"], "refused", word, rows)
		t.check(word in rows[-1]["result"]["reason"], word, rows[-1]["result"]["reason"])


@case("what excludes each other is said")
def exclusions(t):
	for args, word in ((("--files", "-", "-"), "both the code and the archive"), (("--files", "-", "--stdin", "-", "-c", "1", "-l", "sh"), "the program's input"),
			   (("--files", "fd:77", "-c", "1", "-l", "sh"), "no descriptor"), (("--files", "fd:1", "-c", "1", "-l", "sh"), "no descriptor"),
			   (("--files", "/etc/hostname", "--workspace", t.dir, "-c", "1", "-l", "sh"), "exclude each other"),
			   (("--out-tar", t.dir + "/x", "--out", t.dir, "-c", "1", "-l", "sh"), "not to both")):
		rows = told(t, *args, stdin=b"")
		t.equal(rows[-1]["result"]["verdict"], "refused", word, rows)
		t.check(word in rows[-1]["result"]["reason"], word, rows[-1]["result"]["reason"])


@case("a terminal is steered by nothing that a program wrote")
def on_a_terminal(t):
	main, side = pty.openpty()
	code = "import sys\nsys.stdout.buffer.write('\\x1b[2J\\u009b31m\\u202e'.encode())"
	p = t.popen(t.run_args("--events", "--timeout", t.secs(30), "-l", "python", "-c", code), stdout=side, stderr=side)
	os.close(side)
	seen = b""
	while True:
		try:
			piece = os.read(main, 65536)
		except OSError:
			break
		if not piece:
			break
		seen += piece
	os.close(main)
	t.equal(p.wait(timeout=GUARD), 0, "status", seen)
	t.check(b'"event":"result"' in seen and b"u202e" in seen, "all of it is there", seen[:2000])
	t.equal([word for word in (b"\x1b", "\u009b".encode(), "\u202e".encode()) if word in seen], [], "what would steer it", seen[:2000])


@case("exec tells the same way")
def of_commands(t):
	p = t.brig("exec", "--events", "--files", "-", "--", "cat", "a", stdin=archive({"a": b"hello\n"}))
	rows = events(t, p)
	t.equal(written(rows, "stdout"), b"hello\n", "stdout", p)


@case("tests of an archive are found, run and counted")
def of_tests(t):
	files = {"calc.py": b"def add(a, b):\n    return a + b\n",
		 "test_calc.py": b"import unittest\nimport calc\nclass T(unittest.TestCase):\n    def test_good(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
				 b"    def test_bad(self):\n        self.assertEqual(calc.add(1, 2), 4)\n"}
	p = t.brig("test", "--events", "--framework", "unittest", "--files", "-", stdin=archive(files))
	tests = events(t, p)[-1]["result"]["tests"]
	t.equal((tests["passed"], tests["failed"]), (1, 1), "counts", p)
