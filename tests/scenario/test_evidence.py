# SPDX-License-Identifier: Apache-2.0
"""The result and the evidence: complete, in the published form, and agreeing with what we see ourselves."""
import json
import os

import schema
from harness import ROOT, Host, case

FIELDS = ("id verdict reason exit_code signal language backend trust stdout stderr stdout_truncated stderr_truncated usage timing limits "
	  "findings evidence denied artifacts samples degraded warnings").split()


# Checks that are not called like the protection that gives them.
PROTECTION = {"inodes_limit": "disk_limit", "proc": "proc_subset", "inotify_instances": "user_counts", "inotify_watches": "user_counts"}


def load_schema():
	with open(os.path.join(ROOT, "data", "schemas", "result.json"), encoding="utf-8") as f:
		return json.load(f)


def check_form(t, r):
	wrong = schema.errors(r.json, load_schema())
	t.check(not wrong, "the result fits data/schemas/result.json", wrong[:5])
	try:
		import jsonschema
	except ImportError:
		return
	jsonschema.validate(r.json, load_schema())


@case("every kind of result fits the schema")
def fits_schema(t):
	runs = (("-c", "print(1)"), ("-c", "raise SystemExit(3)"), ("-c", "import os; os.abort()"), ("--timeout", 1, "-c", "while 1: pass"),
		("--memory", "4g", "-c", "1"), ("--output-limit", "10", "-c", "print('x' * 999999)"), ("-c", "import os; os.write(1, b'\\xff')"))
	seen = set()
	for words in runs:
		r = t.cell(*words, lang="python")
		check_form(t, r)
		seen.add(r.verdict)
	t.check({"ok", "error", "crash", "timeout", "refused", "output_limit"} <= seen, "kinds of results seen", seen)


@case("the schema is no rubber stamp: broken results do not fit")
def schema_refuses(t):
	good = t.cell("-c", "print(1)", lang="python").json
	for change in ({"verdict": "splendid"}, {"usage": 3}, {"evidence": {}}, {"stdout": None}, {"id": 7}):
		t.check(schema.errors({**good, **change}, load_schema()), f"{change} is noticed")
	for field in FIELDS:
		t.check(schema.errors({k: v for k, v in good.items() if k != field}, load_schema()), f"a missing {field} is noticed")


@case("all fields of a result are there")
def all_fields(t):
	r = t.cell("-c", "print(1)", lang="python")
	t.equal([f for f in FIELDS if f not in r.json], [], "missing fields")
	for name in ("wall_ms", "cpu_ms", "memory_peak_bytes", "pids_peak", "output_bytes"):
		t.check(isinstance(r.json["usage"].get(name), int), f"usage.{name}", r.json["usage"])
	for name in ("resolve_ms", "inspect_ms", "create_ms", "run_ms", "verify_ms", "release_ms", "total_ms"):
		t.check(isinstance(r.json["timing"].get(name), (int, float)), f"timing.{name}", r.json["timing"])
	t.equal(r.json["usage"]["output_bytes"], 2, "output_bytes", r)
	t.equal(r.json["trust"], "unknown", "trust", r)


@case("evidence: more than 25 promises, all kept, each with its source")
def evidence_kept(t):
	rows = t.verdict(t.cell("-c", "print(1)", lang="python"), "ok").json["evidence"]
	t.check(len(rows) > 25, "number of promises", len(rows))
	t.equal(len({row["check"] for row in rows}), len(rows), "each check once")
	for row in rows:
		t.check(row["kept"] or PROTECTION.get(row["check"], row["check"]) in Host.degraded, "kept", row)
		t.check(row["declared"] != "" and row["enforced"] != "", "row is filled in", row)
		t.check(row["source"] or not row["kept"], "what is kept has a source", row)
	if not Host.degraded:
		t.check(all(row["kept"] for row in rows), "nothing is degraded", rows)


@case("evidence agrees with what the program sees of itself")
def evidence_true(t):
	r = t.cell("--pids", 30, "--memory", "100m", "--timeout", t.secs(10), code="""
import os, resource
for line in open('/proc/self/status'):
    if line.split(':')[0] in ('Uid', 'Gid', 'NoNewPrivs', 'Seccomp', 'CapEff', 'CapBnd', 'Groups'):
        print(line.strip())
for ns in ('user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup', 'time'):
    print(ns, os.stat(f'/proc/self/ns/{ns}').st_ino if os.path.exists(f'/proc/self/ns/{ns}') else 'hidden')
print(resource.getrlimit(resource.RLIMIT_NOFILE))
""", lang="python")
	text = t.verdict(r, "ok").stdout.decode()
	rows = {row["check"]: row for row in r.json["evidence"]}
	for want in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"):
		t.check(want in text, f"{want!r} inside", text)
	for ns in {"user", "pid", "mnt", "net", "ipc", "uts"} - {name.removesuffix("_ns") for name in Host.degraded}:
		host = str(os.stat(f"/proc/self/ns/{ns}").st_ino)
		t.check(f"{ns} {host}\n" not in text, f"own {ns} namespace", text)
	if "memory_limit" not in Host.degraded:
		row = next((row for name, row in rows.items() if "memory" in name), None)
		t.check(row and str(100 << 20) in row["enforced"] or "100" in row["enforced"], "memory limit read back", row)


@case("two runs have two ids, and nothing of each other")
def independent(t):
	a = t.cell("-c", "import os; open('/tmp/mark', 'w').write('x'); print(sorted(os.listdir('/tmp')))", lang="python")
	b = t.cell("-c", "import os; print(sorted(os.listdir('/tmp')), os.listdir('/dev/shm'))", lang="python")
	t.check(a.json["id"] != b.json["id"], "ids differ", a.json["id"])
	t.check(b"mark" in a.stdout and b"mark" not in b.stdout, "no trace", b)


@case("usage is measured: cpu, memory, processes", needs=["memory_limit", "pids_limit", "cpu_time"])
def usage_measured(t):
	r = t.cell("--timeout", t.secs(15), code="""
import os, time
block = bytearray(40 << 20)
kids = [os.fork() for _ in range(1)]
if kids[0] == 0:
    end = time.process_time() + 0.2
    while time.process_time() < end: pass
    os._exit(0)
os.wait()
""", lang="python")
	u = t.verdict(r, "ok").json["usage"]
	t.check(u["cpu_ms"] >= 200, "the child's cpu time is in", u)
	t.check(u["memory_peak_bytes"] >= 40 << 20, "memory is in", u)
	t.check(u["pids_peak"] >= 2, "both processes are in", u)
	t.check(u["wall_ms"] >= 200, "wall time is in", u)
