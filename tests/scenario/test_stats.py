# SPDX-License-Identifier: Apache-2.0
"""brig stats: what was run is counted once, whatever it was, and the counters survive what happens to them."""
import json
import os
import signal
import subprocess

from harness import GUARD, ROOT, case, is_root

OK = "print('counted')\n"


def stats(t, **kw):
	p = t.brig("stats", "--json", **kw)
	t.equal(p.rc, 0, "exit status", p)
	return json.loads(p.out)


def metric(doc, name):
	"""{labels as a tuple of values: sample}"""
	rows = next(m for m in doc["metrics"] if m["name"] == name)["samples"]
	return {tuple(row["labels"].values()): row for row in rows}


def counters(t):
	return os.path.join(t.dir, "state", "metrics")


@case("before the first run there is nothing, and asking makes nothing")
def nothing_yet(t):
	doc = stats(t)
	t.equal(doc["executions"], 0, "executions")
	t.equal(doc["rates"]["success"], None, "a share of nothing")
	p = t.brig("stats")
	t.check(b"nothing has been counted" in p.out, "text", p)
	t.check(not os.path.exists(os.path.join(t.dir, "state")), "no folder was made")


@case("every request is counted by verdict, language, backend and trust")
def counted(t):
	inspect = {"BRIG_INSPECTION": "guard"}
	for _ in range(2):
		t.verdict(t.cell(code=OK, lang="python"), "ok")
	backend = t.cell(code="import sys; sys.exit(3)", lang="python").json["backend"]
	t.verdict(t.cell("--trust", "untrusted", code="exit 1\n", lang="shell"), "error")
	t.verdict(t.cell("--timeout", "1", "--trust", "trusted", code="while True: pass\n", lang="python"), "timeout", "cpu_limit")
	blocked = t.cell(code="import os\nos.kill(-1, 0)\n", lang="python", env=inspect)
	t.verdict(blocked, "blocked")
	t.verdict(t.cell("--set", "network_mode=allowlist", code=OK, lang="python"), "refused")
	doc = stats(t)
	t.equal(doc["executions"], 7, "executions", doc["by"])
	t.equal(doc["by"]["verdict"]["ok"], 2, "ok", doc["by"])
	t.equal(doc["by"]["verdict"]["error"], 2, "error", doc["by"])
	t.equal(doc["by"]["verdict"]["blocked"], 1, "blocked", doc["by"])
	t.equal(doc["by"]["verdict"]["refused"], 1, "refused", doc["by"])
	t.equal(doc["by"]["trust"], {"untrusted": 1, "unknown": 5, "trusted": 1}, "trust levels")
	t.equal(doc["by"]["language"]["shell"], 1, "shell", doc["by"])
	t.equal(round(sum(doc["rates"].values()), 9), 1, "rates together", doc["rates"])
	rows = metric(doc, "brig_executions_total")
	t.equal(rows["ok", "python", backend, "unknown"]["value"], 2, "one combination", list(rows))
	rules = metric(doc, "brig_findings_total")
	t.equal(sum(row["value"] for row in rules.values()), len(blocked.json["findings"]), "findings", rules)
	t.equal(metric(doc, "brig_request_duration_seconds")[()]["count"], 7, "requests timed")
	ran = metric(doc, "brig_wall_seconds")
	t.equal(ran["python",]["count"] + ran["shell",]["count"], 5, "programs that ran", list(ran))
	last = ran["python",]["buckets"][-1]
	t.equal((last["le"], last["count"]), (None, 4), "the bucket above all")
	t.check(ran["python",]["sum"] >= 1, "the time-out is in the sum", ran["python",]["sum"])
	memory = metric(doc, "brig_memory_peak_bytes")
	t.check(memory["python",]["count"] == 4, "memory of programs", memory)


@case("the table for people")
def table(t):
	t.cell(code=OK, lang="python")
	t.cell(code="import os\nos.kill(-1, 0)\n", lang="python", env={"BRIG_INSPECTION": "guard"})
	p = t.brig("stats")
	t.equal(p.rc, 0, "exit status", p)
	for word in ("2 executions", "success 50.0 %", "blocked 50.0 %", "VERDICT", "LANGUAGE", "STEP", "PROGRAMS", "RULE", "P95"):
		t.check(word in p.out.decode(), f"'{word}' is shown", p.out.decode())
	p = t.brig("stats", env={"LANG": "C", "LC_ALL": "C"})
	t.check(p.out.isascii() and b"####" in p.out, "bars without Unicode", p)


@case("the text for Prometheus passes promtool check metrics")
def prometheus(t):
	where = subprocess.run([os.path.join(ROOT, "tools", "promtool"), "--cached"], capture_output=True, text=True, timeout=GUARD,
			       check=False)
	if where.returncode == 77:
		t.skip(where.stderr.strip().splitlines()[-1] if where.stderr.strip() else "promtool cannot be had here")
	t.equal(where.returncode, 0, "tools/promtool", where)

	def check(what):
		text = t.brig("stats", "--prometheus")
		t.equal(text.rc, 0, "exit status", text)
		p = subprocess.run([where.stdout.strip(), "check", "metrics"], input=text.out, capture_output=True, timeout=GUARD, check=False)
		t.equal((p.returncode, p.stdout, p.stderr), (0, b"", b""), f"promtool on {what}", text.out[:2000])
		return text.out.decode()
	check("an empty file")
	t.cell(code=OK, lang="python")
	t.cell(code="import os\nos.kill(-1, 0)\n", lang="python", env={"BRIG_INSPECTION": "guard"})
	t.cell(code="exit 3\n", lang="shell")
	text = check("a few runs")
	t.check('brig_executions_total{verdict="error",language="shell"' in text, "a sample", text)
	t.equal(t.brig("stats", "--prometheus", "--json").rc, 2, "both at once")


@case("several processes at once lose nothing")
def at_once(t):
	words = t.run_args(t.path("program.py", OK))
	running = [t.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(6)]
	for p in running:
		_, err = p.communicate(timeout=GUARD)
		t.equal((p.returncode, b"metrics" in err), (0, False), "a run among others", err)
	t.equal(stats(t)["executions"], 6, "executions")


@case("a killed brig takes nothing with it but its own request")
def killed(t):
	t.cell(code=OK, lang="python")
	for _ in range(3):
		p = t.popen(t.run_args(t.path("wait.py", "input()\n")), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		p.send_signal(signal.SIGKILL)
		p.communicate(timeout=GUARD)
	r = t.cell(code=OK, lang="python")
	t.verdict(r, "ok")
	t.check(not any("metrics" in w for w in r.json["warnings"]), "the file is whole", r.json["warnings"])
	t.equal(stats(t)["executions"], 2, "executions")


def damage_header(path):
	with open(path, "r+b") as f:
		f.seek(10)
		f.write(b"XX")


def damage_cut(path):
	os.truncate(path, 100)


def damage_cut_behind_header(path):
	os.truncate(path, 8192)


def damage_grow(path):
	os.truncate(path, 1 << 22)


def damage_empty(path):
	os.truncate(path, 0)


@case("damaged counters are set aside with one warning, and the run is not")
def damaged(t):
	for damage in (damage_header, damage_cut, damage_cut_behind_header, damage_grow, damage_empty):
		t.cell(code=OK, lang="python")
		damage(counters(t))
		p = t.brig("stats")
		t.check(p.rc != 0 and b"counters" in p.err, f"{damage.__name__}: stats says so", p)
		r = t.cell(code=OK, lang="python")
		t.verdict(r, "ok")
		t.check(any("metrics.old" in w for w in r.json["warnings"]), f"{damage.__name__} is told", r.json["warnings"])
		r = t.cell(code=OK, lang="python")
		t.check(not any("metrics" in w for w in r.json["warnings"]), "once", r.json["warnings"])
		t.equal(stats(t)["executions"], 2, "counting began anew")
		t.check(os.path.exists(counters(t) + ".old"), "the old file is kept")


@case("counters that are cut while a program runs do no harm")
def cut_meanwhile(t):
	t.cell(code=OK, lang="python")
	p = t.popen(t.run_args("--json", t.path("wait.py", "print('up', flush=True)\ninput()\n")), stdin=subprocess.PIPE,
		    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	damage_cut_behind_header(counters(t))
	out, err = p.communicate(b"go\n", timeout=GUARD)
	r = json.loads(out)
	t.equal((p.returncode, r["verdict"]), (0, "ok"), "the run", err)
	t.check(any("metrics.old" in w for w in r["warnings"]), "it is told", r["warnings"])


@case("something planted at the counters' place is not followed")
def planted(t):
	t.cell(code=OK, lang="python")
	victim = t.path("victim", "untouched")
	os.unlink(counters(t))
	os.symlink(victim, counters(t))
	r = t.cell(code=OK, lang="python")
	t.verdict(r, "ok")
	t.check(any("metrics" in w for w in r.json["warnings"]), "it is told", r.json["warnings"])
	with open(victim, encoding="utf-8") as f:
		t.equal(f.read(), "untouched", "the link's target")


@case("metrics: false counts nothing")
def switched_off(t):
	t.verdict(t.cell(code=OK, lang="python", env={"BRIG_METRICS": "false"}), "ok")
	t.check(not os.path.exists(counters(t)), "no file")
	t.equal(stats(t)["executions"], 0, "executions")


@case("a full disk: the run goes on, with a warning")
def full_disk(t):
	if not is_root():
		t.skip("mounting needs root")
	state = os.path.join(t.dir, "state")
	os.makedirs(state, mode=0o700)
	p = t.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", state])
	if p.rc != 0:
		t.skip(f"tmpfs cannot be mounted here: {p.err.decode().strip()}")
	try:
		r = t.cell(code=OK, lang="python", env={"BRIG_AUDIT": "off", "BRIG_HISTORY": "false"})
		t.verdict(r, "ok")
		t.check(any("not in the metrics" in w for w in r.json["warnings"]), "it is told", r.json["warnings"])
		t.check(not os.path.exists(counters(t)), "no half file")
	finally:
		t.equal(t.run(["umount", state]).rc, 0, "unmounting")


@case("hits and misses of the compile cache are counted")
def cache_events(t):
	row = next(r for r in json.loads(t.brig("languages", "--json").out)["languages"] if r["name"] == "c")
	if not row["installed"]:
		t.skip(row["missing"])
	code = '#include <stdio.h>\nint main(void) { return 0; }\n'
	first = t.cell(code=code, lang="c")
	if first.json["cache"] is None:
		t.skip("this backend is not cached")
	for _ in range(3):
		t.verdict(t.cell(code=code, lang="c"), "ok")
	doc = stats(t)["cache"]
	t.equal((doc["miss"], doc["stored"], doc["hit"], doc["damaged"]), (1, 1, 3, 0), "events", doc)
	t.equal(doc["hit_rate"], 0.75, "hit rate")
	p = t.brig("stats")
	t.check(b"compile cache: 75.0 %" in p.out, "the line for people", p)
