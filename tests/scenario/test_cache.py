# SPDX-License-Identifier: Apache-2.0
"""The compile cache: what is unchanged is compiled once, and nothing comes out of it that did not go in."""
import json
import os
import signal
import subprocess
import time

from harness import GUARD, ROOT, brig_path, case, is_root, test_ids
import schema

PROGRAM = {
	"go": 'package main\nimport "fmt"\nfunc main() { fmt.Println("kept %s") }\n',
	"c": '#include <stdio.h>\nint main(void) { puts("kept %s"); return 0; }\n',
	"typescript": "const who: string = '%s';\nconsole.log(`kept ${who}`);\n",
}
# Too few processes for any compiler (gcc tries again and again: it is given little time for that); what it made has
# limits of its own.
NO_COMPILER = ("--set", "compile_pids=2", "--set", "compile_timeout_ms=3s")


def needs_compiler(t, lang):
	for row in json.loads(t.brig("languages", "--json").out)["languages"]:
		if row["name"] == lang and not row["installed"]:
			t.skip(row["missing"])


def run(t, lang, what="one", *args, **kw):
	r = t.cell(*args, code=PROGRAM[lang] % what, lang=lang, **kw)
	if r.json["cache"] is None and r.json["backend"] not in ("native", "direct"):
		t.skip(f"backend {r.json['backend']} compiles with tools that are not known here")
	return r


def compiled(t, r, how, what="one"):
	"""The run went well, and its compile step went this way."""
	t.verdict(r, "ok")
	t.equal(r.stdout, f"kept {what}\n".encode(), "output", r)
	t.check(r.json["cache"] is not None, "the cache was asked", r)
	t.equal(r.json["cache"]["compile"], how, "compile step", f"{r} {r.json['warnings']}")
	return r


def entries(t):
	p = t.brig("cache", "list", "--json")
	t.equal(p.rc, 0, "exit status", p)
	return json.loads(p.out)


def folder(t, name):
	return os.path.join(t.dir, "state", "store", name)


def only_file(t, name):
	names = os.listdir(folder(t, name))
	t.equal(len(names), 1, f"files in store/{name}", names)
	return os.path.join(folder(t, name), names[0])


# ---- hits --------------------------------------------------------------------------------------

def compiled_once(t, lang):
	needs_compiler(t, lang)
	first = compiled(t, run(t, lang), "stored")
	again = compiled(t, run(t, lang, "one", *NO_COMPILER), "hit")	# no compiler could have made this
	t.equal(again.json["cache"]["content"], first.json["cache"]["content"], "hash of the program")
	t.check(again.json["cache"]["age_ms"] >= 0, "a hit has an age", again.json["cache"])
	t.check(again.json["timing"]["cache_ms"] > 0, "looking takes time", again.json["timing"])
	t.check(again.json["evidence"], "the run itself has its evidence", again)
	other = run(t, lang, "two", *NO_COMPILER)
	if "pids_limit" not in other.degraded:
		t.check(other.verdict != "ok", "another source is compiled, which cannot work so", other)
		compiled(t, run(t, lang, "two"), "stored", "two")
	with open(os.path.join(ROOT, "data", "schemas", "result.json"), encoding="utf-8") as f:
		rules = json.load(f)
	for r in (first, again, other):
		t.equal(schema.errors(r.json, rules), [], "differences from the schema")


@case("an unchanged Go program skips the compiler")
def go_once(t):
	compiled_once(t, "go")


@case("an unchanged C program skips the compiler")
def c_once(t):
	compiled_once(t, "c")


@case("an unchanged TypeScript program skips the transpiler")
def typescript_once(t):
	compiled_once(t, "typescript")


@case("languages without a compile step have nothing to do with the cache")
def interpreted(t):
	r = t.cell(code="print(1)", lang="python")
	t.verdict(r, "ok")
	t.equal(r.json["cache"], None, "cache")
	t.check(not os.path.exists(folder(t, "")), "no store was made")


@case("trust levels do not share compiled programs")
def trust_is_part_of_the_key(t):
	needs_compiler(t, "c")
	compiled(t, run(t, "c", "one", "--trust", "untrusted"), "stored")
	compiled(t, run(t, "c", "one", "--trust", "trusted"), "stored")
	compiled(t, run(t, "c", "one", "--trust", "untrusted"), "hit")
	t.equal(len(entries(t)["entries"]), 2, "entries")


@case("a program that does not compile is not kept, and complains each time")
def failures_are_not_kept(t):
	needs_compiler(t, "c")
	for _ in range(2):
		r = t.cell(code="int main(void) { return x; }\n", lang="c")
		t.verdict(r, "error")
		t.equal(r.json["step"], "compile", "step", r)
		t.check(b"x" in r.stderr, "the complaint is there", r)
		t.check(r.json["cache"] is None or r.json["cache"]["compile"] == "miss", "nothing is kept", r.json["cache"])
	t.equal(entries(t)["entries"], [], "entries")


@case("cache: false neither looks nor keeps")
def switched_off(t):
	needs_compiler(t, "c")
	off = {"BRIG_CACHE": "false"}
	for _ in range(2):
		r = run(t, "c", env=off)
		t.verdict(r, "ok")
		t.equal(r.json["cache"], None, "cache", r)
	t.equal(entries(t)["entries"], [], "entries")


@case("the summary line tells a hit")
def summary_says_so(t):
	needs_compiler(t, "c")
	run(t, "c")
	p = t.run(t.run_args("--summary", t.path("program.c")))
	t.equal(p.rc, 0, "exit status", p)
	t.check(b"compiled earlier" in p.err, "the summary tells a hit", p)


# ---- tampering ---------------------------------------------------------------------------------

def flip(path):
	with open(path, "r+b") as f:
		f.seek(40)
		byte = f.read(1)
		f.seek(40)
		f.write(bytes([byte[0] ^ 1]))


def cut(path):
	os.truncate(path, os.path.getsize(path) // 2)


def link_away(path):
	os.rename(path, path + ".moved")
	os.symlink(path + ".moved", path)


def open_up(path):
	os.chmod(path, 0o666)


def give_away(path):
	os.chown(path, 12345, 12345)


def make_fifo(path):
	os.unlink(path)
	os.mkfifo(path, 0o600)


@case("a tampered entry is detected, dropped and rebuilt", final="not contained")
def tampered(t):
	needs_compiler(t, "c")
	ways = [flip, cut, link_away, open_up, make_fifo] + ([give_away] if is_root() else [])
	compiled(t, run(t, "c"), "stored")
	for way in ways:
		for place in ("content", "index"):
			path = only_file(t, place)
			way(path)
			r = compiled(t, run(t, "c"), "stored")
			t.check(any("cache" in w and "compiled anew" in w for w in r.json["warnings"]),
				f"{way.__name__} of {place} is told", r.json["warnings"])
			compiled(t, run(t, "c", "one", *NO_COMPILER), "hit")
			for name in os.listdir(folder(t, place)):
				if name.endswith(".moved"):
					os.unlink(os.path.join(folder(t, place), name))


@case("a program of somebody else's making under the right name is not run", final="not contained")
def replaced_program(t):
	needs_compiler(t, "c")
	compiled(t, run(t, "c", "one"), "stored")
	one = only_file(t, "content")
	compiled(t, run(t, "c", "two"), "stored", "two")
	two = next(os.path.join(folder(t, "content"), n) for n in os.listdir(folder(t, "content")) if not one.endswith(n))
	with open(two, "rb") as source, open(one, "wb") as target:
		target.write(source.read())
	compiled(t, run(t, "c", "one"), "stored", "one")


# ---- several at once, and killed ones ------------------------------------------------------------

def start(t, words):
	return t.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(t, p):
	out, err = p.communicate(timeout=GUARD * 2)
	t.equal(p.returncode, 0, "exit status", err)
	return json.loads(out)


@case("of several brigs that want the same program one compiles it")
def single_flight(t):
	needs_compiler(t, "c")
	words = t.run_args("--json", t.path("program.c", PROGRAM["c"] % "once"))
	results = [finish(t, p) for p in [start(t, words) for _ in range(4)]]
	if results[0]["cache"] is None:
		t.skip("this backend is not cached")
	how = sorted(r["cache"]["compile"] for r in results)
	t.equal(how, ["hit", "hit", "hit", "stored"], "compile steps", [r["warnings"] for r in results])
	t.equal({r["stdout"] for r in results}, {"kept once\n"}, "output")
	t.equal(len(entries(t)["entries"]), 1, "entries")


def await_path(t, path, p):
	deadline = time.monotonic() + GUARD
	while not os.path.exists(path) and p.poll() is None:
		t.check(time.monotonic() < deadline, f"{path} never appeared")
		time.sleep(0.002)


@case("a brig that is killed while it compiles leaves nothing in the way")
def killed(t):
	needs_compiler(t, "c")
	words = t.run_args("--json", t.path("program.c", PROGRAM["c"] % "one"))
	for name in ("lock", "new", "content"):	# whichever moment that is: the outcome is the same
		p = start(t, words)
		await_path(t, folder(t, name), p)
		p.send_signal(signal.SIGKILL)
		p.communicate(timeout=GUARD)
	r = run(t, "c", "one")
	t.check(r.json["cache"]["compile"] in ("stored", "hit"), "it works as before", r.json["cache"])
	compiled(t, run(t, "c", "one", *NO_COMPILER), "hit")
	p = t.brig("cache", "verify")
	t.check(b"damaged" not in p.out, "nothing is torn", p)


# ---- commands ----------------------------------------------------------------------------------

@case("cache list, verify and prune")
def commands(t):
	needs_compiler(t, "c")
	t.equal(entries(t)["entries"], [], "entries of no folder at all")
	p = t.brig("cache", "verify")
	t.equal(p.rc, 0, "verifying nothing", p)
	for what in ("one", "two"):
		compiled(t, run(t, "c", what), "stored", what)
	compiled(t, run(t, "c", "one"), "hit")
	doc = entries(t)
	t.equal([row["kind"] for row in doc["entries"]], ["compile"] * 2, "kinds")
	t.equal([row["hits"] for row in doc["entries"]], [1, 0], "hits, the last used first", doc)
	t.equal(sum(row["bytes"] for row in doc["entries"]), doc["bytes"], "bytes")
	p = t.brig("cache", "list")
	t.check(b"compile" in p.out and b"2 entries" in p.out, "the table", p)
	p = t.brig("cache", "verify")
	t.equal(p.rc, 0, "all are good", p)
	flip(os.path.join(folder(t, "content"), doc["entries"][0]["content"]))
	p = t.brig("cache", "verify", "--json")
	t.equal(p.rc, 1, "one is not", p)
	t.equal([row["key"] for row in json.loads(p.out)["bad"]], [doc["entries"][0]["key"]], "which")
	t.equal(len(entries(t)["entries"]), 1, "entries left")
	t.equal(json.loads(t.brig("cache", "prune", "--json").out)["removed"], 0, "nothing is too old")
	p = t.brig("cache", "prune", "--all")
	t.equal(p.rc, 0, "prune", p)
	t.equal(entries(t)["entries"], [], "entries left")
	t.equal(t.brig("cache").rc, 2, "a word is missing")
	t.equal(t.brig("cache", "list", "more").rc, 2, "a word too many")


@case("cache_size is kept: the least recently used entries go")
def bounded(t):
	needs_compiler(t, "c")
	pad = "static char pad[150000] = { 1 };\nint use(int i) { return pad[i]; }\n"
	small = {"BRIG_CACHE_SIZE": "1m"}
	for n in range(9):
		r = t.cell(code=pad + PROGRAM["c"] % n, lang="c", env=small)
		t.verdict(r, "ok")
		if r.json["cache"] is None:
			t.skip("this backend is not cached")
		t.equal(r.json["cache"]["compile"], "stored", "compile step", r.json["warnings"])
		t.check(entries(t)["bytes"] <= 1 << 20, "never more than the ceiling", entries(t))
	t.check(len(entries(t)["entries"]) < 9, "some went", entries(t))
	r = t.cell(code=pad + PROGRAM["c"] % 8, lang="c", env=small)
	t.equal(r.json["cache"]["compile"], "hit", "the youngest is still there")


# ---- a disk that does not help -------------------------------------------------------------------

class Tmpfs:
	"""The state folder of a case on a small file system of its own."""
	def __init__(self, t, size):
		if not is_root():
			t.skip("mounting needs root")
		self.t, self.path = t, os.path.join(t.dir, "state")
		os.makedirs(self.path, mode=0o700, exist_ok=True)
		p = t.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", self.path])
		if p.rc != 0:
			t.skip(f"tmpfs cannot be mounted here: {p.err.decode().strip()}")

	def __enter__(self):
		return self

	def remount_read_only(self):
		self.t.equal(self.t.run(["mount", "-o", "remount,ro", self.path]).rc, 0, "remounting")

	def __exit__(self, *_):
		self.t.equal(self.t.run(["umount", self.path]).rc, 0, "unmounting")


# What the other records do with a full disk is theirs to test.
ONLY_CACHE = {"BRIG_AUDIT": "off", "BRIG_HISTORY": "false", "BRIG_METRICS": "false"}


@case("a full disk: the run goes on, with a warning")
def full_disk(t):
	needs_compiler(t, "c")
	big = "static char pad[400000] = { 1 };\nint use(int i) { return pad[i]; }\n" + PROGRAM["c"] % "big"
	with Tmpfs(t, "256k"):
		for _ in range(2):
			r = t.cell(code=big, lang="c", env=ONLY_CACHE)
			t.verdict(r, "ok")
			t.equal(r.stdout, b"kept big\n", "output")
			t.equal(r.json["cache"]["compile"], "miss", "compile step")
			t.check(any("not kept" in w for w in r.json["warnings"]), "it is told", r.json["warnings"])
		compiled(t, run(t, "c", env=ONLY_CACHE), "stored")	# what fits is kept all the same
		compiled(t, run(t, "c", env=ONLY_CACHE), "hit")


@case("a read-only state folder still gives what is in it")
def read_only(t):
	needs_compiler(t, "c")
	with Tmpfs(t, "4m") as disk:
		compiled(t, run(t, "c", env=ONLY_CACHE), "stored")
		disk.remount_read_only()
		compiled(t, run(t, "c", env=ONLY_CACHE), "hit")
		r = run(t, "c", "two", env=ONLY_CACHE)
		compiled(t, r, "miss", "two")
		t.check(any("not kept" in w for w in r.json["warnings"]), "it is told", r.json["warnings"])


@case("a state folder of somebody else is not used", final="not contained")
def foreign_folder(t):
	needs_compiler(t, "c")
	if not is_root():
		t.skip("giving a folder away needs root")
	path = os.path.join(t.dir, "theirs")
	os.mkdir(path, 0o700)
	os.chown(path, 12345, 12345)
	r = run(t, "c", env={**ONLY_CACHE, "BRIG_STATE": path})
	compiled(t, r, "miss")
	t.check(any("cache is not used" in w and "12345" in w for w in r.json["warnings"]), "it is told", r.json["warnings"])
	t.equal(os.listdir(path), [], "files in it")
