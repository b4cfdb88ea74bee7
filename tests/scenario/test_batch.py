# SPDX-License-Identifier: Apache-2.0
"""`brig batch` and `brig grade`: every job gets one whole line, judged where the judged code cannot reach."""
import base64
import csv
import json
import os
import signal
import subprocess
import time

import schema
from harness import ROOT, brig_path, case, give

JOB, LINE, RESULT = (json.load(open(os.path.join(ROOT, "data/schemas", name), encoding="utf-8")) for name in ("job.json", "batch.json", "result.json"))


def lines_of(jobs):
	return "".join((j if isinstance(j, str) else json.dumps(j)) + "\n" for j in jobs)


def parsed(data):
	return [json.loads(line) for line in data.splitlines()]


def batch(t, jobs, *words, status=0, **kw):
	"""The results of these jobs, in the order in which they were printed."""
	p = t.brig("batch", *words, t.path("jobs.jsonl", lines_of(jobs)), **kw)
	t.equal(p.rc, status, "exit status", p)
	return parsed(p.out)


def one(t, *words, **job):
	rows = batch(t, [{"language": "python", **job}], *words)
	t.equal(len(rows), 1, "lines", rows)
	return rows[0]


def echo(n):
	return [{"id": f"j{i}", "kind": "command", "args": ["echo", str(i)]} for i in range(n)]


def check_schemas(t, job, row):
	"""The job fits its schema, and so does its line: a head, and a result without it."""
	t.equal(schema.errors(job, JOB), [], f"schema of the job {job}")
	t.equal(schema.errors({k: v for k, v in row.items() if k in LINE["properties"]}, LINE), [], "schema of the line")
	t.equal(schema.errors({k: v for k, v in row.items() if k not in LINE["properties"]}, RESULT), [], "schema of the result")


# ---- completeness ------------------------------------------------------------------------------------

@case("200 jobs with four cells at once: each has one line, its own")
def complete(t):
	rows = batch(t, echo(200), "--jobs", "4")
	t.equal(sorted(r["job"] for r in rows), sorted(f"j{i}" for i in range(200)), "ids")
	for r in rows:
		t.equal((r["verdict"], r["stdout"]), ("ok", r["job"][1:] + "\n"), f"result of {r['job']}", r)
		without = {row["protection"] for row in r["degraded"]}
		t.check(r["evidence"] and all(e["kept"] or e["check"] in without for e in r["evidence"]), "its own evidence", r["evidence"])


@case("more cells than there are descriptors for: fewer run at once, none fails")
def few_descriptors(t):
	path = t.path("jobs.jsonl", lines_of(echo(60)))
	p = t.run(["sh", "-c", 'ulimit -n 256; exec "$0" "$@"', brig_path(), "batch", "-q", "--jobs", "60", path])
	t.equal((p.rc, {r["verdict"] for r in parsed(p.out)}, len(parsed(p.out))), (0, {"ok"}, 60), "results", p.err)
	t.check(b"cells at once, not 60" in p.err, "it is said", p.err)


@case("--ordered prints results in the order of the jobs, whatever they take")
def ordered(t):
	jobs = [{"id": str(i), "kind": "shell", "code": f"sleep {0.3 if i % 4 == 0 else 0}; echo {i}"} for i in range(24)]
	rows = batch(t, jobs, "--jobs", "4", "--ordered")
	t.equal([r["job"] for r in rows], [str(i) for i in range(24)], "order")
	t.equal([r["stdout"] for r in rows], [f"{i}\n" for i in range(24)], "output")


@case("a line that is no job gets a refused result with its place, and the batch goes on")
def bad_lines(t):
	good = '{"kind": "command", "args": ["true"]}'
	rows = [
		("not json", "line 1: column"),
		('{"id": "x", "langage": "c"}', "line 2: unknown member 'langage'; did you mean 'language'?"),
		(b'{"id": "\xff"}'.decode("latin-1"), "line 3"),
		('{"kind": "command", "args": ["a", 1]}', "line 4: args[1] must be a string"),
		('{"cases": [{}, {"expected": {"compare": "near"}}]}', "line 5: cases[1].expected.compare must be"),
		('{"id": "twice", "id": "twice"}', "line 6: column"),
		('{"kind": "dance"}', "line 7: kind 'dance'"),
		('{"stdin": {"base64": "a"}}', "line 8: stdin.base64 is not base64"),
		('{"args": ["a\\u0000b"]}', "line 9: args[0] has a NUL"),
		("[1, 2]", "line 10: the line must be an object"),
		('{"code": "print(1)", "workspace": "/etc"}', "line 11: unknown member 'workspace'"),
		("[" * 5000, "line 12: column"),
		('{"id": "big", "code": "' + "x" * (33 << 20) + '"}', "line 13: it has more than 32 MB"),
	]
	text = b"".join(line.encode("latin-1") + b"\n" for line, _ in rows) + b"\n   \n" + good.encode()
	p = t.brig("batch", "--ordered", t.path("jobs.jsonl", text))
	t.equal(p.rc, 0, "exit status", p)
	got = parsed(p.out)
	t.equal(len(got), len(rows) + 1, "lines", [r["reason"] for r in got])
	for r, (line, piece) in zip(got, rows):
		t.check(r["verdict"] == "refused" and piece in r["reason"], f"why {line[:60]!r} is refused: {piece}", r["reason"])
	t.equal((got[-1]["verdict"], got[-1]["job"]), ("ok", "16"), "the good one; its id is the number of its line", got[-1])
	t.equal(got[1]["job"], "x", "a bad line's own id")
	p = t.brig("batch", "--fail-on", "refused,timeout", "-q", t.path("jobs.jsonl", "{}\n"))
	t.equal((p.rc, p.err), (1, b""), "--fail-on", p)


@case("a job has what the command line has: arguments, environment, input, files, options, artifacts, tests")
def vocabulary(t):
	code = "import sys, os\nprint(sys.argv[1:], os.environ['A'], sys.stdin.buffer.read(), open('d/x.bin', 'rb').read())\nopen('out.txt', 'w').write('made')"
	r = one(t, code=code, args=["a b"], env={"A": "1=2"}, stdin={"base64": base64.b64encode(b"\xff\0").decode()},
		files={"d/x.bin": {"base64": "AAE="}}, options={"timeout": 9, "memory": "200m"}, artifacts=["*.txt"], inline_artifacts="1k")
	t.equal((r["verdict"], r["stdout"]), ("ok", "['a b'] 1=2 b'\\xff\\x00' b'\\x00\\x01'\n"), "what it saw", r)
	t.equal((r["limits"]["wall_ms"], r["artifacts"][0].get("content")), (9000, "made"), "the rest", r["limits"])
	r = one(t, "--trust", "unknown", code="pass", trust="untrusted")
	t.equal((r["verdict"], r["trust"], r["trust_source"]), ("ok", "untrusted", "request"), "trust", r)
	r = one(t, "--timeout", "7", "--memory", "128m", code="pass", options={"timeout": "5"})
	t.equal((r["limits"]["wall_ms"], r["limits"]["memory_bytes"]), (5000, 128 << 20), "the job's own word counts", r["limits"])
	r = one(t, kind="tests", language="unittest", files={"test_a.py": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"})
	t.equal((r["verdict"], r["tests"]["passed"]), ("ok", 1), "tests", r)
	r = batch(t, [{"code": "print(1)"}], "--lang", "python")[0]
	t.equal(r["stdout"], "1\n", "--lang", r)


@case("members of the schema are those that are read, and no others")
def members(t):
	tables = [(JOB["properties"], lambda m: m), (JOB["$defs"]["expected"]["anyOf"][1]["properties"], lambda m: {"expected": m}),
		  (JOB["$defs"]["case"]["properties"], lambda m: {"cases": [m]}), (JOB["properties"]["checker"]["properties"], lambda m: {"checker": m})]
	known = [wrap({name: None}) for table, wrap in tables for name in table]
	other = [wrap({"klingon": None}) for _, wrap in tables]
	rows = batch(t, known + other, "--ordered", "-q")
	for job, r in zip(known + other, rows):
		t.equal((r["verdict"], "unknown member" in r["reason"]), ("refused", job in other), f"reason for {job}", r["reason"])


@case("big output of many jobs is whole, byte for byte")
def big_output(t):
	jobs = [{"id": str(i), "language": "python", "code": f"import sys; sys.stdout.write('{i}' * 1000000)"} for i in range(8)]
	for r in batch(t, jobs, "--jobs", "4"):
		t.check(r["stdout"] == r["job"] * 1000000, "output of " + r["job"], len(r["stdout"]))


# ---- streams -----------------------------------------------------------------------------------------------

@case("jobs of a slow writer are answered before it has written all")
def slow_writer(t):
	p = t.popen([brig_path(), "batch", "-q", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	for i in range(3):
		text = json.dumps(echo(3)[i]).encode() + b"\n"
		for piece in (text[:7], text[7:]):
			p.stdin.write(piece)
			p.stdin.flush()
			time.sleep(0.05)
		t.equal(json.loads(p.stdout.readline())["job"], f"j{i}", "the answer, while the input is open")
	p.stdin.close()
	t.equal((p.stdout.read(), p.wait()), (b"", 0), "the end")


@case("a reader that goes away ends the batch and what it runs")
def closed_stdout(t):
	jobs = [{"id": "first", "kind": "command", "args": ["true"]}] + [{"kind": "command", "args": ["sleep", "25"]}] * 3
	p = t.popen([brig_path(), "batch", "-q", "--jobs", "2", t.path("jobs.jsonl", lines_of(jobs))], stdout=subprocess.PIPE)
	t.equal(json.loads(p.stdout.readline())["job"], "first", "the first line")
	p.stdout.close()
	t.check(p.wait(timeout=20) != 0, "it ends, and not well", p.returncode)


@case("SIGINT ends a batch: what was printed is whole, what was at work has no line, and --resume does the rest")
def interrupted(t):
	jobs = echo(4) + [{"id": "long", "kind": "shell", "code": "sleep 3; echo slept"}]
	path, out = t.path("jobs.jsonl", lines_of(jobs)), t.path("results.jsonl")
	p = t.popen([brig_path(), "batch", "--jobs", "1", "--out", out, path], stderr=subprocess.PIPE)
	while not os.path.exists(out) or open(out, "rb").read().count(b"\n") < 4:
		time.sleep(0.02)
	p.send_signal(signal.SIGINT)
	err = p.communicate()[1]
	t.equal((p.returncode, b"cancelled after 4 jobs" in err), (130, True), "status and summary", err)
	t.equal([r["job"] for r in parsed(open(out, "rb").read())], ["j0", "j1", "j2", "j3"], "lines")
	p = t.brig("batch", "--out", out, path)
	t.check(p.rc == 2 and b"--resume" in p.err, "a file with results in it is not written over", p)
	p = t.brig("batch", "--out", out, "--resume", path)
	t.check(p.rc == 0 and b"4 were finished before" in p.err, "resumed", p)
	t.equal([r["job"] for r in parsed(open(out, "rb").read())], ["j0", "j1", "j2", "j3", "long"], "all lines")


@case("after kill -9 in the middle --resume cuts off a torn line and does each job that has none")
def killed(t):
	path, out = t.path("jobs.jsonl", lines_of(echo(80))), t.path("results.jsonl")
	p = t.popen([brig_path(), "batch", "-q", "--jobs", "3", "--out", out, path])
	while not os.path.exists(out) or os.path.getsize(out) < 50000:
		time.sleep(0.01)
	p.kill()
	p.wait()
	t.after_kill()
	before = open(out, "rb").read()
	t.check(before.count(b"\n") < 80, "it was killed in the middle", len(before))
	with open(out, "ab") as f:
		f.write(b'{"job":"j79","verdict":"ok","std')
	p = t.brig("batch", "-q", "--jobs", "3", "--out", out, "--resume", path)
	t.equal(p.rc, 0, "resumed", p)
	rows = parsed(open(out, "rb").read())
	t.equal(sorted(r["job"] for r in rows), sorted(f"j{i}" for i in range(80)), "each job once")
	whole = before[:before.rindex(b"\n") + 1]
	t.check(open(out, "rb").read().startswith(whole), "what was there has stayed")
	foreign = t.path("foreign.txt", "my letters\n")
	p = t.brig("batch", "--out", foreign, "--resume", path)
	t.check(p.rc == 2 and open(foreign).read() == "my letters\n", "a file that is something else is left alone", p)


def peak_kib(t, jobs, *words):
	p = t.run(["/usr/bin/python3", "-c", "import os, resource, subprocess, sys\n"
		   "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)\n"
		   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)",
		   brig_path(), "batch", "-q", *words, t.path("jobs.jsonl", lines_of(jobs))])
	t.equal(p.rc, 0, "batch", p)
	return int(p.out)


@case("memory is flat in the number of jobs")
def flat(t):
	if "asan" in brig_path():
		t.skip("a sanitizer keeps what was freed")

	def jobs(n):
		return [{"language": "klingon", "code": "x" * 20000}] * n + echo(20)
	small, large = peak_kib(t, jobs(200), "--ordered"), peak_kib(t, jobs(2000), "--ordered")
	t.check(large < 1.5 * small + 4096, "ten times as many jobs need no more memory", f"{small} and {large} KiB")


@case("that nothing isolates the programs is said, once for all of them")
def direct_is_loud(t):
	t.native_only("the policy leaves the choice")
	policy = t.path("p.yaml", "backend: [native, direct]\nmax_trust: trusted\n")
	jobs = [{"kind": "command", "args": ["true"], "trust": "trusted", "options": {"backend": "direct"}}] * 3
	p = t.brig("batch", "--policy", policy, t.path("jobs.jsonl", lines_of(jobs)), env={"BRIG_INSPECTION": "guard"})
	t.equal((p.rc, p.err.count(b"NO ISOLATION"), [r["backend"] for r in parsed(p.out)]), (0, 1, ["direct"] * 3), "notice", p)


# ---- judging ---------------------------------------------------------------------------------------------------

# (judgement, what the program is and what is expected)
WORDS = [
	("accepted", {"code": "print(42)", "expected": "42"}),
	("accepted", {"code": "print('a  ')\nprint()", "expected": {"stdout": "a", "compare": "trim"}}),
	("accepted", {"code": "print('a\\n\\n b')", "expected": {"stdout": "a b", "compare": "tokens"}}),
	("accepted", {"code": "print('x', 0.1 + 0.2, 1e9 + 1)", "expected": {"stdout": "x 0.3 1000000000", "compare": "float"}}),
	("accepted", {"code": "print(3.2)", "expected": {"stdout": "3.1", "compare": "float", "tolerance": 0.2}}),
	("accepted", {"code": "import sys; print('no', file=sys.stderr); sys.exit(3)", "expected": {"stderr": "no", "exit_code": 3}}),
	("accepted", {"code": "import sys; sys.stdout.buffer.write(b'\\xff\\0')", "expected": {"stdout": {"base64": "/wA="}, "compare": "exact"}}),
	("accepted", {"code": "print('anything')", "expected": {}}),
	("wrong_answer", {"code": "print(41)", "expected": "42"}),
	("wrong_answer", {"code": "print(42); print(1)", "expected": "42"}),
	("wrong_answer", {"code": "print('nan')", "expected": {"stdout": "0.3", "compare": "float"}}),
	("wrong_answer", {"code": "print(3.2)", "expected": {"stdout": "3.1", "compare": "float"}}),
	("wrong_answer", {"code": "pass", "expected": {"exit_code": 3}}),
	("presentation_error", {"code": "print('a  b')", "expected": "a b"}),
	("presentation_error", {"code": "print('a')", "expected": {"stdout": "a", "compare": "exact"}}),
	("runtime_error", {"code": "1 / 0", "expected": ""}),
	("runtime_error", {"code": "import os; os.abort()", "expected": ""}),
	("compile_error", {"language": "c", "code": "int main(", "expected": ""}),
	("time_limit", {"code": "while True: pass", "options": {"timeout": "0.5"}, "expected": ""}),
	("output_limit", {"code": "while True: print('x' * 1000)", "options": {"output_limit": "64k"}, "expected": ""}),
	("blocked", {"code": "import os; os.system('rm -rf /')", "options": {"inspect": "guard"}, "expected": ""}),
	("refused", {"language": "klingon", "code": "x", "expected": ""}),
	("judge_failed", {"code": "pass", "expected": "", "checker": {"language": "python", "code": "import sys; sys.exit(7)"}}),
	("judge_failed", {"code": "pass", "expected": "", "checker": {"language": "klingon", "code": "x"}}),
]


@case("each judgement follows from the verdict and from what was expected")
def words(t):
	jobs = [{"language": "python", **job} for _, job in WORDS]
	for row, (want, job) in zip(batch(t, jobs, "--ordered", "--jobs", "2"), WORDS):
		t.equal(row.get("judgement"), want, f"judgement of {job}", {k: row[k] for k in ("verdict", "reason", "stdout")})
		t.equal(row["judged"]["passed"], int(want == "accepted"), "passed", row["judged"])
		check_schemas(t, job, row)


@case("memory_limit is a judgement where the host has that limit", needs=("memory_limit",))
def memory_word(t):
	r = one(t, code="x = bytearray(1 << 30)", options={"memory": "64m"}, expected="")
	t.equal(r["judgement"], "memory_limit", "judgement", r)


@case("each case is a cell of its own, and the line shows the first that was not accepted")
def cases_of_a_job(t):
	code = "import os, sys\nn = int(input())\nprint(n * 2 if n < 3 else 'no', *sys.argv[1:])\nassert not os.path.exists('left')\nopen('left', 'w')"
	rows = [{"stdin": "1", "expected": "2"}, {"name": "two", "stdin": "2", "args": ["x"], "expected": "4 x"}, {"stdin": "3", "expected": "6"},
		{"stdin": "4", "expected": "8"}]
	r = one(t, code=code, cases=rows)
	t.equal([(c["name"], c["judgement"]) for c in r["judged"]["cases"]],
		[("1", "accepted"), ("two", "accepted"), ("3", "wrong_answer"), ("4", "wrong_answer")], "cases", r["judged"])
	check_schemas(t, {"language": "python", "code": code, "cases": rows}, r)
	t.equal((r["judgement"], r["judged"]["passed"], r["judged"]["total"], r["stdout"]), ("wrong_answer", 2, 4, "no\n"), "the line", r["judged"])
	t.equal(len({c["id"] for c in r["judged"]["cases"]}), 4, "cells")
	r = one(t, code=code, cases=rows, stop_at_failure=True)
	t.equal(len(r["judged"]["cases"]), 3, "stop_at_failure", r["judged"])


CHECKER = """import sys
given, actual, expected = (open(p).read().split() for p in sys.argv[1:])
print("saw", given, expected)
sys.exit(0 if sorted(actual) == sorted(expected) else 1 if actual else 2)
"""


@case("a checker in a cell of its own reads input, output and expectation, and decides")
def checker(t):
	for code, want in (("print('b a')", "accepted"), ("print('c')", "wrong_answer"), ("pass", "presentation_error"), ("1/0", "runtime_error")):
		r = one(t, code=code, stdin="in", expected={"stdout": "a b"}, checker={"language": "python", "code": CHECKER})
		t.equal(r["judgement"], want, f"judgement of {code}", r["judged"])
		if want != "runtime_error":
			t.equal(r["judged"]["message"], "saw ['in'] ['a', 'b']", "message", r["judged"])


SECRET = "tulip-7741"
SPY = """import os, sys
seen = []
for top in ("/workspace", "/tmp", "/proc", "/dev/shm", "/etc"):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as f:
                    seen.append(f.read(200000))
            except OSError:
                pass
seen += [os.environb.get(k, b"") for k in os.environb] + [a.encode() for a in sys.argv]
for fd in range(3, 64):
    try:
        seen.append(os.read(fd, 4096))
    except OSError:
        pass
found = any(b"tulip-" + b"7741" in s for s in seen)
print('{"job":"spy","judgement":"accepted","judged":{"message":"","passed":1,"total":1,"cases":[]}}')
print("found" if found else "nothing found in", len(seen))
"""


@case("what is judged finds neither expectation nor checker, and what it prints is no judgement", final="judged code reached its judge")
def hostile(t):
	check = {"language": "python", "code": f"# {SECRET}\nimport sys\nsys.exit(0 if '{SECRET}' in open('actual').read() else 1)"}
	jobs = [{"id": "plain", "expected": SECRET}, {"id": "checked", "expected": SECRET, "checker": check},
		{"id": "cases", "cases": [{"name": SECRET, "stdin": "", "expected": SECRET}]}]
	text = lines_of({"language": "python", "code": SPY, **j} for j in jobs)
	p = t.run([brig_path(), "batch", "--jobs", "3", "-"], stdin=text.encode(), env={"EXPECTED": SECRET})
	rows = parsed(p.out)
	t.equal(sorted(r["job"] for r in rows), ["cases", "checked", "plain"], "one line each", p)
	for r in rows:
		t.check(r["verdict"] == "ok" and "nothing found in" in r["stdout"], "it looked everywhere and found nothing", r["stdout"] + r["stderr"])
		t.equal(r["judgement"], "wrong_answer", "judgement of " + r["job"], r["judged"])


@case("a program that kills, fills or closes everything is judged by its end, and others are not touched")
def wild(t):
	jobs = [{"id": "kill", "code": "import os; os.kill(-1, 9); os.kill(os.getpid(), 9)", "expected": ""},
		{"id": "close", "code": "import os; os.close(1); os.close(2)", "expected": "x"},
		{"id": "good", "code": "print('x')", "expected": "x"}]
	got = {r["job"]: r["judgement"] for r in batch(t, [{"language": "python", **j} for j in jobs], "--jobs", "3")}
	t.equal((got["kill"], got["good"]), ("runtime_error", "accepted"), "judgements", got)
	t.check(got["close"] in ("wrong_answer", "runtime_error"), "closed streams are no answer", got)


# ---- grade ------------------------------------------------------------------------------------------------------------

def classroom(t):
	for name in ("subs", "subs/folder", "cases"):
		os.mkdir(t.path(name))
	for name, text in (("right.py", "print(int(input()) * 2)"), ("wrong.py", "print(int(input()) + 2)"), ("slow.py", "while True: pass"),
			   ("broken.c", "int main("), ("folder/main.py", "from half import f\nprint(f(input()))"),
			   ("folder/half.py", "def f(x): return 2 * int(x)"), ("=1+1.py", "print(1)")):
		t.path("subs/" + name, text)
	os.symlink("../cases/1.out", t.path("subs/link.py"))
	for n in (1, 2, 10):
		t.path(f"cases/{n}.in", f"{n}\n")
		t.path(f"cases/{n}.out", f"{2 * n}\n")
	for name in ("subs", "cases"):
		give(t.path(name))


WANTED = {"right.py": ("accepted", 3, None), "folder": ("accepted", 3, None), "wrong.py": ("wrong_answer", 1, "1"), "slow.py": ("time_limit", 0, "1"),
	  "broken.c": ("compile_error", 0, "1"), "link.py": ("refused", 0, "1"), "=1+1.py": ("wrong_answer", 0, "1")}


@case("grade: every submission against every case, as a table, CSV and a document")
def grade(t):
	classroom(t)
	p = t.brig("grade", t.path("subs"), "--cases", t.path("cases"), "--timeout", "2", "--json", "--csv", t.path("g.csv"))
	t.equal(p.rc, 0, "exit status", p)
	rows = {r["submission"]: r for r in json.loads(p.out)["submissions"]}
	t.equal({n: (r["judgement"], r["passed"], r["first_failure"]) for n, r in rows.items()}, WANTED, "grades")
	t.equal([c["case"] for c in rows["wrong.py"]["cases"]], ["1", "2", "10"], "cases, by number")
	t.equal(round(rows["wrong.py"]["score"]), 33, "score")
	with open(t.path("g.csv"), newline="", encoding="utf-8") as f:
		table = list(csv.DictReader(f))
	t.equal({r["submission"]: r["judgement"] for r in table}, {n.replace("=", "'="): w[0] for n, w in WANTED.items()}, "CSV; no formula")
	t.equal([table[0]["first_failure"]] + [r["10"] for r in table if r["submission"] == "right.py"], ["1", "accepted"], "columns")
	p = t.brig("grade", t.path("subs"), "--cases", t.path("cases"), "--timeout", "2", "-q")
	t.equal(p.rc, 0, "exit status", p)
	got = {line.split()[0]: line.split() for line in p.out.decode().splitlines()}
	t.check("accepted" in got["right.py"] and "3/3" in got["right.py"] and "time_limit" in got["slow.py"], "table", p)


@case("grade: cases by the line, points, a checker, names that would steer a terminal")
def grade_lines(t):
	os.mkdir(t.path("subs"))
	t.path("subs/a\033[2J.py", "pass")
	t.path("subs/b.py", "print(input()[::-1])")
	cases = t.path("subs/cases.jsonl", lines_of([{"name": "ab", "stdin": "ab", "expected": "ba", "points": 3}, {"stdin": "aa", "expected": "x"}]))
	give(t.path("subs"))
	p = t.brig("grade", t.path("subs"), "--cases", cases, "-q")
	t.check(p.rc == 0 and b"\033" not in p.out and b"75.0" in p.out, "the table", p)
	t.check(b"cases.jsonl" not in p.out, "the cases are no submission", p)
	check = t.path("check.py", "import sys; sys.exit(0)")
	p = t.brig("grade", t.path("subs"), "--cases", cases, "--checker", check, "--json")
	t.equal(json.loads(p.out)["submissions"][1]["judgement"], "accepted", "by the checker", p)
	bad = t.path("bad.jsonl", '{"stdin": "1"}\n{"stdinn": "1"}\n')
	p = t.brig("grade", t.path("subs"), "--cases", bad)
	t.check(p.rc == 2 and b"line 2" in p.err and b"did you mean 'stdin'" in p.err, "a bad case", p)


@case("grade: a submission that holds the cases is refused, and none sees another", final="a submission saw what it is judged by")
def grade_apart(t):
	for name in ("subs", "subs/holder", "subs/holder/cases"):
		os.mkdir(t.path(name))
	t.path("subs/holder/main.py", "print(open('cases/1.out').read())")
	t.path("subs/spy.py", SPY)
	t.path("subs/zz.py", f"print('{SECRET}')")
	t.path("subs/holder/cases/1.in", "")
	t.path("subs/holder/cases/1.out", SECRET)
	give(t.path("subs"))
	p = t.brig("grade", t.path("subs"), "--cases", t.path("subs/holder/cases"), "--json")
	rows = {r["submission"]: r["judgement"] for r in json.loads(p.out)["submissions"]}
	t.equal(rows, {"holder": "refused", "spy.py": "wrong_answer", "zz.py": "accepted"}, "judgements", p)
