# SPDX-License-Identifier: Apache-2.0
"""brig batch through a service: the same lines and statuses as here, quotas that slow it, signals and a service that dies."""
import base64
import json
import os
import re
import signal
import subprocess

import harness
from client import PATIENCE, mark, marked, wait_until
from commands import STRANGER, as_stranger, both, client_env, differences, known, need_users, service
from harness import case

JOBS = [
	{"id": "ok", "language": "python", "code": "print(6 * 7)"},
	{"id": "input", "language": "python", "code": "print(input()[::-1])", "stdin": "abc\n"},
	{"id": "bytes", "language": "python", "code": "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", "stdin": {"base64": base64.b64encode(bytes(range(256))).decode()}},
	{"id": "files", "kind": "command", "args": ["cat", "d/a.txt"], "files": {"d/a.txt": "hello"}},
	{"id": "artifacts", "language": "python", "code": "open('out.txt', 'w').write('x')", "artifacts": ["*.txt"], "inline_artifacts": "1k"},
	{"id": "tests", "kind": "tests", "files": {"test_a.py": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"}},
	{"id": "cases", "language": "python", "code": "print(int(input()) * 2)", "cases": [{"stdin": "2", "expected": "4"}, {"stdin": "3", "expected": "7"}, {"stdin": "4", "expected": "8"}]},
	{"id": "files in cases", "language": "python", "code": "print(open('n').read() + input())", "files": {"n": "5"}, "cases": [{"stdin": "1", "expected": "51"}, {"stdin": "2", "expected": "52"}]},
	{"id": "checker", "language": "python", "code": "print('b a')", "expected": "a b", "checker": {"language": "python", "code": "import sys\nsys.exit(sorted(open(sys.argv[2]).read().split()) != sorted(open(sys.argv[3]).read().split()))"}},
	{"id": "timeout", "language": "python", "code": "import time; time.sleep(60)", "options": {"timeout": 1}},
	{"id": "refused", "language": "python", "code": "1", "options": {"memory": "64t"}},
	{"id": "blocked", "language": "python", "code": "import os; os.system('rm -rf /')", "options": {"inspect": "strict"}},
	{"id": "unknown", "language": "klingon", "code": "1"},
	{"id": "bad", "no_such_member": 1},
]


def lines_of(text):
	return [json.loads(line) for line in text.splitlines()]


def judged(line):
	"""A line without what is each run's own, of its cases too."""
	line = {**line, **({"stdout": "", "stderr": ""} if line["job"] == "tests" else {})}	# which have times in them
	if "judged" in line:
		line["judged"] = {**line["judged"], "cases": [{k: c[k] for k in ("name", "judgement", "message", "verdict", "exit_code")} for c in line["judged"]["cases"]]}
	return line


@case("brig batch gives the same lines, words and status through the service, in order and not")
def same_batch(t):
	whole, short = (t.path(name, "".join(json.dumps(job) + "\n" for job in jobs) + "no job at all\n\n") for name, jobs in (("whole", JOBS), ("short", JOBS[:6])))
	with service(t) as (s, path):
		for jobs, more, status in ((whole, ("--ordered", "--fail-on", "wrong_answer"), 1), (short, ("--jobs", "6"), 0)):
			here, there = both(t, path, "batch", "-q", *more, jobs)
			said = re.sub(rb"==.*ASan doesn't fully support makecontext.*\n", b"", here.err)	# of cells that are made here
			t.equal((there.rc, there.err, there.rc), (here.rc, said, status), "status", there)
			a, b = lines_of(here.out), lines_of(there.out)
			if "--ordered" not in more:
				a, b = (sorted(x, key=lambda line: line["job"]) for x in (a, b))
			t.equal([x["job"] for x in b], [x["job"] for x in a], "the jobs")
			for x, y in zip(a, b):
				t.equal(differences(judged(x), judged(y)), {}, x["job"])
		ran = known(s, s.token("admin", "--admin"), "/v1/executions?limit=100")["executions"]
		t.check(len(ran) >= len(JOBS) + 6, "they were run by the service", ran)
		p = t.brig("batch", "-q", "--warm", "1", short, env=client_env(path))
		t.check(p.rc == 2 and b"--warm" in p.err and b"--local" in p.err, "what does not travel", p)


@case("many jobs go through with few at a time, and a quota makes a batch slower and not fail")
def many(t):
	need_users(t)
	n = 120
	jobs = "".join(json.dumps({"id": str(i), "kind": "command", "args": ["echo", str(i)]}) + "\n" for i in range(n)).encode()
	policy = t.path("policy.yaml", f"users:\n  - user: {STRANGER}\n    concurrent: 2\n  - user: {STRANGER + 1}\n    runs_per_minute: 60\n")
	with service(t, "--policy", policy, "--queue", "4", "--jobs", "4") as (_, path):
		p = as_stranger(t, path, "batch", "-q", "--ordered", "--jobs", "10", "-", stdin=jobs)
		t.equal(p.rc, 0, "a queue of four", p)
		t.equal([(x["job"], x["stdout"]) for x in lines_of(p.out)], [(str(i), f"{i}\n") for i in range(n)], "every one of them, once")
		few = b"".join(jobs.splitlines(True)[:61])	# one more than a minute has: it is put off for a second
		p = as_stranger(t, path, "batch", "-q", "--jobs", "8", "-", stdin=few, uid=STRANGER + 1)
		t.equal((p.rc, {x["verdict"] for x in lines_of(p.out)}, len(lines_of(p.out))), (0, {"ok"}, 61), "a quota", p)


@case("SIGINT ends a batch at the service, and so does its death: whole lines, the right status", final="a job outlived its batch")
def interrupted(t):
	jobs = [{"id": "quick", "kind": "command", "args": ["echo", "up"]}] + [{"id": f"long {i}", "kind": "command", "args": ["sh", "-c", "sleep 60; :", mark()]} for i in range(3)]
	file = t.path("jobs.jsonl", "".join(json.dumps(job) + "\n" for job in jobs))
	for how in ("signal", "death"):
		with service(t) as (s, path):
			words = [harness.brig_path(), "batch", "-q", "--jobs", "4", file]
			p = t.popen(words, client_env(path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
			t.equal(json.loads(p.stdout.readline())["stdout"], "up\n", "it runs")
			wait_until("the others run", lambda: len(marked()) >= 3)
			if how == "signal":
				p.send_signal(signal.SIGINT)
			else:
				os.kill(s.processes()["runner"], signal.SIGKILL)
			out, err = p.communicate(timeout=PATIENCE)
			t.equal((p.returncode, out), (130 if how == "signal" else 121, b""), how, err)
			t.check(how == "signal" or b"service" in err, "it says why", err)
			wait_until("nothing of it runs", lambda: not marked())
	p = t.brig("batch", "-q", file, env=client_env(path))
	t.check(p.rc == 121 and p.out == b"" and path.encode() in p.err, "a service that is named and not there", p)


@case("brig grade gives the same marks through the service, of files and of folders")
def same_grades(t):
	for name, text in {"good.py": "print(int(input()) * 2)", "wrong.py": "print(3)", "bad.py": "1 +", "folder/main.py": "import helper\nprint(helper.twice(int(input())))",
			"folder/helper.py": "def twice(x): return 2 * x", "folder/.env": "SECRET=1"}.items():
		path = os.path.join(t.path("submissions"), name)
		os.makedirs(os.path.dirname(path), exist_ok=True)
		with open(path, "w", encoding="utf-8") as f:
			f.write(text)
	cases = t.path("cases.jsonl", "".join(json.dumps({"name": str(i), "stdin": f"{i}\n", "expected": f"{2 * i}\n"}) + "\n" for i in (1, 7)))
	checker = t.path("check.py", "import sys\nsys.exit(open(sys.argv[2]).read() != open(sys.argv[3]).read())\n")

	def marks(p):
		doc = json.loads(p.out)
		return [(s["submission"], [(c["case"], c["judgement"]) for c in s["cases"]]) for s in doc["submissions"]]
	with service(t) as (s, path):
		for more in ((), ("--checker", checker)):
			here, there = both(t, path, "grade", "-q", "--json", *more, t.path("submissions"), "--cases", cases)
			t.equal((there.rc, there.err), (here.rc, here.err), "status", there)
			t.equal(marks(there), marks(here), "marks", there)
			t.check("wrong_answer" in there.out.decode() and there.out.count(b'"accepted"') >= 4, "some are good and some are not", there)
		ran = known(s, s.token("admin", "--admin"), "/v1/executions?limit=100")["executions"]
		t.check(len(ran) >= 16, "they were run by the service", len(ran))
		p = t.brig("grade", "-q", "--state", t.state, t.path("submissions"), "--cases", cases, env=client_env(path))
		t.check(p.rc not in (0, None) and b"--state" in p.err and b"--local" in p.err, "what does not travel", p)
