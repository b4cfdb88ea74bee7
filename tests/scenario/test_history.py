# SPDX-License-Identifier: Apache-2.0
"""The history: every request leaves its record, whatever became of it, and nothing that happens to the record becomes
the run's trouble.  Each case has a state folder of its own (harness.py)."""
import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess

from harness import GUARD, add, brig_path, case, give, is_root

HELLO = "print('hello')\n"
ALONE = {"BRIG_AUDIT": "off", "BRIG_METRICS": "false", "BRIG_CACHE": "false"}	# the history and nothing else


def state(t, name=""):
	return os.path.join(t.dir, "state", name)


def history(t, *args, **kw):
	p = t.brig("history", "--json", *args, **kw)
	t.equal(p.rc, 0, "exit status of brig history", p)
	return json.loads(p.out)


def show(t, ident, *args, **kw):
	p = t.brig("show", "--json", ident, *args, **kw)
	t.equal(p.rc, 0, "exit status of brig show", p)
	return json.loads(p.out)


def ids(doc):
	return [row["id"] for row in doc["executions"]]


def run(t, code=HELLO, *args, env=None, lang="python"):
	"""A run as people start it: output is passed on and not captured."""
	return t.run(t.run_args("--lang", lang, *args, "-c", code), env={**ALONE, **(env or {})})


@case("every verdict is remembered, those included in which nothing ran")
def every_verdict(t):
	seen = {}
	for name, r in {
		"ok": t.cell(code=HELLO, lang="python"),
		"error": t.cell(code="raise SystemExit(3)", lang="python"),
		"timeout": t.cell("--timeout", t.wall(1), code="while True: pass", lang="python"),
		"output_limit": t.cell("--output-limit", "1000", code="print('x' * 100000)", lang="python"),
		"blocked": t.cell(code="import os\nos.kill(-1, 0)\n", lang="python", env={"BRIG_INSPECTION": "guard"}),
		"refused": t.cell("--memory", "900g", code=HELLO, lang="python"),
	}.items():
		t.verdict(r, name)
		seen[r.json["id"]] = name
	doc = history(t)
	t.equal({row["id"]: row["verdict"] for row in doc["executions"]}, seen, "the history")
	t.equal(doc["total"], len(seen), "total")
	t.equal(doc["history_warnings"], [], "warnings")
	t.equal(ids(doc), list(seen)[::-1], "the order, the youngest first")
	for ident, verdict in seen.items():
		t.equal(show(t, ident)["verdict"], verdict, "verdict of brig show")
		t.equal(ids(history(t, "--verdict", verdict)), [ident], f"--verdict {verdict}")


@case("filters by language, trust and time; limits; the beginning of an id")
def filters(t):
	a = t.cell(code=HELLO, lang="python").json["id"]
	b = t.cell("--trust", "untrusted", code="echo hello", lang="shell").json["id"]
	t.equal(ids(history(t, "--lang", "sh")), [b], "an alias of the language")
	t.equal(ids(history(t, "--lang", "python")), [a], "--lang")
	t.equal(ids(history(t, "--trust", "untrusted")), [b], "--trust")
	t.equal(ids(history(t, "--since", "1h")), [b, a], "--since 1h")
	t.equal(ids(history(t, "--until", "1h")), [], "--until 1h")
	t.equal(ids(history(t, "--since", "2000-01-01", "--until", "@1000000000")), [], "a time long ago")
	doc = history(t, "--limit", "1")
	t.equal((ids(doc), doc["total"]), ([b], 2), "--limit")
	length = next(n for n in range(1, 17) if a[:n] != b[:n])
	t.equal(show(t, a[:length])["id"], a, "the beginning of an id")
	if length > 1:
		t.equal(t.brig("show", a[:length - 1]).rc, 2, "an ambiguous beginning")


@case("what cannot be understood is said, and is no crash")
def wrong_questions(t):
	t.equal(ids(history(t)), [], "an empty history")
	p = t.brig("history")
	t.check(p.rc == 0 and b"no such executions" in p.err, "an empty history is said", p)
	for words in (["history", "--verdict", "okk"], ["history", "--since", "tomorrow"], ["history", "--lang", "cobol"],
		      ["history", "--trust", "much"], ["history", "--limit", "x"], ["history", "x"], ["show"], ["show", "a", "b"],
		      ["show", "NOT-AN-ID"], ["show", "abcd"]):
		p = t.brig(*words)
		t.check(p.rc == 2 and p.err.startswith(b"brig: ") and not p.out, f"{words} is wrong use", p)
	t.check(b"did you mean 'ok'" in t.brig("history", "--verdict", "okk").err, "the nearest verdict is named")


@case("output that nobody captured is hashed, and its beginning kept")
def passing_output(t):
	text = "".join(f"line {i}: ünï\n" for i in range(2000))
	p = run(t, f"import sys\nsys.stdout.write(''.join(f'line {{i}}: ünï\\n' for i in range(2000)))\nsys.stderr.write('oops')\n")
	t.equal((p.rc, p.out), (0, text.encode()), "status and output", p.err)
	doc = show(t, ids(history(t))[0])
	t.equal(doc["stdout"]["sha256"], hashlib.sha256(text.encode()).hexdigest(), "hash of stdout")
	t.equal(doc["stdout"]["bytes"], len(text.encode()), "size of stdout")
	kept = doc["stdout"]["text"]
	t.check(text.startswith(kept) and 4090 <= len(kept.encode()) <= 4096, f"the first 4 KB are kept ({len(kept.encode())})")
	t.equal((doc["stdout"]["truncated"], doc["stdout"]["encoding"]), (True, "utf-8"), "truncated and encoding")
	t.equal((doc["stderr"]["text"], doc["stderr"]["truncated"]), ("oops", False), "stderr")


@case("the page of brig show: findings in their code, usage, evidence, output; nothing hostile reaches the terminal")
def page(t):
	code = "import os\nprint('\\x1b[31mred\\r\\x00')\nos.chmod('x', 0o777) if False else None\n"
	r = t.cell(code=code, lang="python", env={"BRIG_INSPECTION": "guard"})
	p = t.brig("show", r.json["id"], env={"COLUMNS": "70"})
	t.equal(p.rc, 0, "exit status", p)
	page = p.out.decode()
	t.check(r.json["id"] in page and f"verdict   {r.verdict}" in page, "id and verdict", p)
	t.check("\x1b" not in page and "\x00" not in page, "no control characters", p)
	for title in ("Used and allowed", "Time per step", "Code"):
		t.check(f"\n{title}\n" in page, f"the page has '{title}'", p)
	if r.json["evidence"]:
		t.check("Evidence" in page and "pids_limit" in page, "the evidence", p)
		t.check("  | \\x1b[31mred" in page, "output is quoted", p)
	for finding in r.json["findings"]:
		t.check(f"[{finding['rule']}]" in page, f"finding {finding['rule']}", p)
	if r.json["findings"]:
		t.check(re.search(r"^ +\d+ \| ", page, re.M) and "^^" in page, "a frame of code", p)


@case("a small chart of cpu and memory, as wide as the terminal and no wider", needs=("memory_limit", "cpu_quota"))
def chart(t):
	p = t.run(t.run_args("--timeout", t.secs(20), "--lang", "python", "-c", "import time\ntime.sleep(1)"),
		  env={**ALONE, "BRIG_MONITORING_INTERVAL_MS": "50"})
	t.equal(p.rc, 0, "exit status", p)
	ident = ids(history(t))[0]
	t.check(2 <= len(show(t, ident)["samples"]) <= 64, "between 2 and 64 samples")
	for width in (40, 80, 200):
		p = t.brig("show", ident, env={"COLUMNS": str(width), "LANG": "C.UTF-8"})
		lines = [line for line in p.out.decode().splitlines() if re.search(r"^ +[\d. %KMGB]*\|[ ▁▂▃▄▅▆▇█]*$", line)]
		t.check(len(lines) == 8 and all(len(line) <= width for line in lines), f"8 lines of at most {width} columns", p)
		t.check("█" in p.out.decode() and "memory, at most" in p.out.decode(), "blocks", p)
	for words, env in ((["--ascii"], {"LANG": "C.UTF-8"}), ([], {"LANG": "C"})):
		p = t.brig("show", *words, ident, env=env)
		t.check("█" not in p.out.decode() and "#" in p.out.decode(), "plain characters", p)
	p = t.brig("show", ident, env={"COLUMNS": "12"})
	t.check(p.rc == 0 and b"memory, at most" not in p.out, "no chart where there is no room", p)


@case("policy decides what is kept, and what is replaced")
def policy(t):
	secret = "hunter2"
	policy = t.path("policy.yaml", "record:\n  keep_code: none\n  keep_output: all\n  redact: [hunter2, 'token=*']\n")
	p = run(t, f"print('{secret} and token=abc.def, ' + 'x' * 9000)", "--policy", policy)
	t.equal(p.rc, 0, "exit status", p)
	doc = show(t, ids(history(t))[0])
	t.equal((doc["code"]["kept"], doc["code"]["text"], doc["code"]["bytes"] > 0), (False, None, True), "code")
	t.check(re.fullmatch("[0-9a-f]{64}", doc["code"]["sha256"]), "the code's hash", doc["code"])
	t.equal(doc["stdout"]["text"], "*** and *** " + "x" * 9000 + "\n", "output")
	t.equal((doc["stdout"]["redacted"], doc["stdout"]["truncated"]), (True, False), "redacted, not truncated")
	for name in os.listdir(state(t)):
		with open(state(t, name), "rb") as f:
			data = f.read()
		t.check(secret.encode() not in data and b"abc.def" not in data, f"the secret is in {name}")


@case("the history can be off")
def off(t):
	t.equal(run(t, env={"BRIG_HISTORY": "false"}).rc, 0, "exit status")
	t.check(not os.path.exists(state(t, "spool")), "no spool")
	t.equal(ids(history(t)), [], "the history")


@case("eight runs at once, and readers beside them: each is there once", final="a lost entry")
def side_by_side(t):
	procs = [t.popen(t.run_args("--json", "--timeout", t.secs(30), "--lang", "shell", "-c", f"echo {i}"), env=ALONE,
			 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(8)]
	for _ in range(3):
		history(t)
	done = set()
	for p in procs:
		out, err = p.communicate(timeout=GUARD)
		t.equal(p.returncode, 0, "exit status", err)
		done.add(json.loads(out)["id"])
	doc = history(t)
	t.equal(set(ids(doc)), done, "the history")
	t.equal((doc["total"], doc["history_warnings"]), (8, []), "total and warnings")


@case("kill -9 of runs and of readers: what was finished is there, once", final="a lost entry")
def killed(t):
	done = set()
	for i in range(6):
		r = t.cell(code=HELLO, lang="python", env=ALONE)
		done.add(r.json["id"])
		# Killed when it has begun to print, at whatever it does then.
		p = t.popen(t.run_args("--lang", "shell", "-c", "echo begun; sleep 100"), env=ALONE, stdin=subprocess.DEVNULL,
			    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
		p.stdout.readline()
		p.send_signal(signal.SIGKILL)
		p.wait()
		p.stdout.close()
		q = t.popen([brig_path(), "history"], stdin=subprocess.DEVNULL,
			    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		if i % 2:
			q.send_signal(signal.SIGKILL)
		q.wait()
	doc = history(t)
	t.check(done <= set(ids(doc)), "every finished run is there", doc)
	t.equal(len(set(ids(doc))), len(ids(doc)), "each once")


def damage(name, data):
	def spoil(t):
		with open(state(t, name), "wb") as f:
			f.write(data)
		owner = os.stat(state(t))
		os.chown(state(t, name), owner.st_uid, owner.st_gid)
	return spoil


def plant_link(t):
	os.symlink("/etc/passwd", state(t, "spool"))


def plant_fifo(t):
	os.mkfifo(state(t, "spool"))


def give_away(t):
	if not is_root():
		t.skip("needs root")
	damage("spool", b"")(t)
	os.chown(state(t, "spool"), 12345, 12345)


TROUBLES = {
	# name: (what is done to the folder, whether the run warns, whether the run is remembered)
	"database": (damage("history.db", b"not a database" * 1000), False, True),
	"spool": (damage("spool", b"not a spool" * 100), True, True),
	"torn-spool": (damage("spool", b"brigspl1\0\0"), False, True),
	"link": (plant_link, True, False),
	"fifo": (plant_fifo, True, False),
	"foreign": (give_away, True, False),
}


def trouble(name):
	spoil, warns, remembered = TROUBLES[name]

	def run_all_the_same(t):
		first = t.cell(code=HELLO, lang="python", env=ALONE).json["id"]
		t.equal(ids(history(t)), [first], "the history before")
		spoil(t)
		r = t.verdict(t.cell(code=HELLO, lang="python", env=ALONE), "ok")
		said = [w for w in r.json["warnings"] if "history" in w]
		t.equal(bool(said), warns, "a warning in the result", r.json["warnings"])
		doc = history(t)
		t.equal(r.json["id"] in ids(doc), remembered, "the run is in the history", doc)
		if name == "database":
			t.check(any("history.db.bad-1" in w for w in doc["history_warnings"]), "set aside, and said", doc)
			t.check(os.path.exists(state(t, "history.db.bad-1")), "the damaged database is kept")
		else:
			t.check(first in ids(doc), "what was there is still there", doc)
	add(f"history.trouble_{name}", f"trouble in the state folder is not the run's: {name}", run_all_the_same, "history")


for trouble_name in TROUBLES:
	trouble(trouble_name)


@case("without SQLite runs go on, and readers say which package is missing")
def no_sqlite(t):
	os.mkdir(t.path("lib"))
	t.path("lib/libsqlite3.so.0", b"")
	env = {"LD_LIBRARY_PATH": t.path("lib")}
	r = t.verdict(t.cell(code=HELLO, lang="python", env={**ALONE, **env}), "ok")
	t.equal(r.json["warnings"], [], "warnings", r)
	p = t.brig("history", env=env)
	t.check(p.rc == 121 and b"libsqlite3-0" in p.err, "the package is named", p)
	t.equal(ids(history(t)), [r.json["id"]], "nothing is lost")


SMALL_DISK = """
set -e
mkdir -p "$1"
mount -t tmpfs -o size=64k,mode=700 none "$1"
"$BRIG_TEST_BINARY" run --json --lang python -c 'print(1)' >"$2/first.json"
dd if=/dev/zero of="$1/filler" bs=1k 2>/dev/null || true
set +e
# More than the rest of a page that the file may have already.
"$BRIG_TEST_BINARY" run --json --lang python -c 'print("2" * 9000)' >"$2/full.json"; echo $? >"$2/full.status"
"$BRIG_TEST_BINARY" history --json >"$2/full-history.json" 2>"$2/full-history.err"; echo $? >"$2/full-history.status"
rm "$1/filler"
mount -o remount,size=4m "$1"
"$BRIG_TEST_BINARY" run --json --lang python -c 'print(3)' >"$2/third.json"
"$BRIG_TEST_BINARY" history --json >"$2/history.json"
mount -o remount,ro "$1"
"$BRIG_TEST_BINARY" run --json --lang python -c 'print(4)' >"$2/ro.json"; echo $? >"$2/ro.status"
"$BRIG_TEST_BINARY" history --json >"$2/ro-history.json"; echo $? >"$2/ro-history.status"
"""


@case("a full disk, then a read-only one: the run goes on and says so, and nothing that was written is lost")
def full_disk(t):
	if not is_root():
		t.skip("needs root for a mount")
	script = t.path("small-disk.sh", SMALL_DISK)
	p = t.run(["unshare", "--mount", "sh", script, t.path("small"), t.dir], guard=180,
		  env={**ALONE, "BRIG_STATE": t.path("small"), "BRIG_TEST_BINARY": brig_path()})
	t.equal(p.rc, 0, "the script", p)

	def load(name):
		with open(t.path(name), encoding="utf-8") as f:
			return json.load(f) if name.endswith(".json") else f.read().strip()
	full, ro = load("full.json"), load("ro.json")
	for name, r in (("full", full), ("ro", ro)):
		t.equal((load(f"{name}.status"), r["verdict"]), ("0", "ok"), f"the run on a {name} disk")
		t.check(any("history" in w for w in r["warnings"]), f"a warning on a {name} disk", r["warnings"])
	t.check(load("full-history.status") in ("0", "121"), "reading on a full disk", load("full-history.err"))
	t.equal(ids(load("history.json")), [load("third.json")["id"], load("first.json")["id"]], "the history, with room again")
	t.equal(load("ro-history.status"), "0", "reading a read-only history")
	t.equal(ids(load("ro-history.json")), ids(load("history.json")), "a read-only history")


# ---- forms of older and newer versions -------------------------------------------------------------

def make_old(t):
	"""The database as the first version made it."""
	db = sqlite3.connect(state(t, "history.db"))
	db.executescript("ALTER TABLE executions DROP COLUMN trust_source; ALTER TABLE executions DROP COLUMN environment; ALTER TABLE executions DROP COLUMN door;"
			 "PRAGMA user_version = 1;")
	db.close()


def schema(t):
	db = sqlite3.connect(state(t, "history.db"))
	version = db.execute("PRAGMA user_version").fetchone()[0]
	db.close()
	return version


def upgrade(t, *args):
	p = t.brig("upgrade-state", "--json", *args)
	return p, {row["part"]: row for row in json.loads(p.out)["parts"]} if p.rc in (0, 1) else {}


@case("upgrade-state brings an old database up, loses nothing, and does nothing the second time")
def upgrade_state(t):
	t.brig("run", "-c", "echo 1", "--lang", "shell")
	t.brig("run", "-c", "echo 2", "--lang", "shell")
	before = [e["id"] for e in history(t)["executions"]]
	t.equal(len(before), 2, "executions")
	make_old(t)
	p, parts = upgrade(t, "--check")
	t.equal((p.rc, parts["history"]["state"], parts["history"]["found"], schema(t)), (1, "old", 1, 1), "only a look", p)
	p, parts = upgrade(t)
	t.equal((p.rc, parts["history"]["state"], schema(t)), (0, "upgraded", parts["history"]["known"]), "brought up", p)
	t.equal([e["id"] for e in history(t)["executions"]], before, "executions after it")
	t.equal(parts["audit log"]["state"], "current", "the audit log", p)
	p, parts = upgrade(t)
	t.equal((p.rc, {row["state"] for row in parts.values()} <= {"current", "absent"}), (0, True), "nothing to do", p)
	t.check(b"nothing to do" in t.brig("upgrade-state").out, "and that is said")


@case("upgrade-state leaves a folder alone of which a newer brig wrote anything")
def upgrade_newer(t):
	t.brig("run", "-c", "echo 1", "--lang", "shell")
	history(t)
	make_old(t)
	os.mkdir(state(t, "environments"), 0o700)
	with open(state(t, "environments/later.json"), "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as f:
		json.dump({"version": 9}, f)
	give(state(t, "environments"))
	give(state(t, "environments/later.json"))
	p, _ = upgrade(t)
	t.check(p.rc == 125 and b"newer brig" in p.err and b"environments" in p.err, "refused, and it is named", p)
	t.equal(schema(t), 1, "the old part is as it was")
	os.unlink(state(t, "environments/later.json"))
	db = sqlite3.connect(state(t, "history.db"))
	db.execute("PRAGMA user_version = 99")
	db.close()
	p, _ = upgrade(t)
	t.check(p.rc == 125 and b"history.db" in p.err and schema(t) == 99, "a newer database", p)


@case("upgrade-state says what it cannot read, leaves that as it is, and does the rest")
def upgrade_damaged(t):
	t.brig("run", "-c", "echo 1", "--lang", "shell")
	history(t)
	make_old(t)
	with open(state(t, "metrics"), "wb", opener=lambda p, f: os.open(p, f, 0o600)) as f:
		f.write(b"nonsense")
	p, parts = upgrade(t)
	t.equal((p.rc, parts["metrics"]["state"], parts["history"]["state"]), (1, "unreadable", "upgraded"), "states", p)
	t.check("damaged" in parts["metrics"]["problem"], "the problem", parts)
	with open(state(t, "metrics"), "rb") as f:
		t.equal(f.read(), b"nonsense", "what cannot be read")
