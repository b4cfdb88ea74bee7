# SPDX-License-Identifier: Apache-2.0
"""Workspaces: a program works on a project, the project stays as it is, and what was changed is shown, applied or fetched."""
import json
import os
import stat

from harness import Result, case, test_ids


def project(t, files, name="project"):
	"""A folder of this case, as its user would have made it."""
	top = t.path(name)
	user = test_ids()
	os.makedirs(top, exist_ok=True)
	for path, text in files.items():
		full = os.path.join(top, path)
		os.makedirs(os.path.dirname(full), exist_ok=True)
		with open(full, "w", encoding="utf-8") as f:
			f.write(text)
	if user:
		for folder, _, names in os.walk(top):
			for one in [folder, *(os.path.join(folder, n) for n in names)]:
				os.chown(one, *user)
	return top


def read(*parts):
	with open(os.path.join(*parts), encoding="utf-8") as f:
		return f.read()


def tree(top):
	"""Every path with its content."""
	found = {}
	for folder, _, names in os.walk(top):
		for n in names:
			found[os.path.relpath(os.path.join(folder, n), top)] = read(folder, n)
	return found


def changes(r):
	signs = {"added": "+", "modified": "~", "deleted": "-"}
	return " ".join(signs[c["change"]] + c["path"] for c in r.json["changes"])


FILES = {"a.txt": "one\ntwo\n", "gone.txt": "gone\n", "same.txt": "same\n", "lib/mod.py": "VALUE = 41\n", ".env": "KEY=canary\n",
	 ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[remote \"o\"]\n\turl = https://me:canary@example.org/x\n"}

EDIT = """
import os
open('a.txt', 'a').write('three\\n')
os.remove('gone.txt')
open('same.txt', 'w').write('same\\n')
os.mkdir('out')
open('out/new.txt', 'w').write('new\\n')
from lib.mod import VALUE
print(VALUE + 1)
"""

WANT = "~a.txt -gone.txt +out +out/new.txt"


@case("a program works on a project, which stays as it is until the changes are applied")
def copy_on_write(t):
	top = project(t, FILES)
	r = t.verdict(t.cell("--workspace", top, code=EDIT, lang="python"), "ok")
	t.equal(r.stdout, b"42\n", "output", r)
	t.equal(changes(r), WANT, "changes", r)
	t.equal({k: r.json["workspace"][k] for k in ("mode", "state", "added", "modified", "deleted")},
		{"mode": "cow", "state": "kept", "added": 2, "modified": 1, "deleted": 1}, "counts", r)
	t.equal(tree(top), FILES, "project after the run")
	listed = json.loads(t.brig("workspace", "list", "--json").out)["workspaces"]
	t.equal([w["id"] for w in listed], [r.json["id"]], "changes that wait")
	diff = t.brig("workspace", "diff", r.json["id"])
	t.check(b" two\n+three\n" in diff.out and b"-gone\n" in diff.out, "diff", diff)
	p = t.brig("workspace", "apply", r.json["id"])
	t.equal(p.rc, 0, "status of apply", p)
	want = {**FILES, "a.txt": "one\ntwo\nthree\n", "out/new.txt": "new\n"}
	del want["gone.txt"]
	t.equal(tree(top), want, "project after apply")
	user = test_ids()
	if user:
		t.equal(os.stat(os.path.join(top, "out/new.txt")).st_uid, user[0], "owner")
	p = t.brig("workspace", "apply", r.json["id"])
	t.check(p.rc == 125 and b"workspace list" in p.err, "a second apply is refused", p)


@case("secrets of a project are empty or absent in the cell, and changes of .git are dropped", final="not contained")
def secrets(t):
	top = project(t, FILES)
	code = """
import os
for name in ('.env', '.git/config'):
    try:
        print(repr(open(name).read()))
    except FileNotFoundError:
        print(repr(''))
print(repr(open('.git/HEAD').read()))
for name in ('.git/HEAD', '.git/hooks'):
    try:
        os.mkdir(name) if name.endswith('hooks') else open(name, 'w').write('x')
    except OSError:
        pass
"""
	r = t.verdict(t.cell("--workspace", top, code=code, lang="python"), "ok")
	t.equal(r.stdout, b"''\n''\n'ref: refs/heads/main\\n'\n", "what the program sees", r)
	t.equal(changes(r), "", "changes", r)
	t.equal(tree(top), FILES, "project")
	r = t.verdict(t.cell("--workspace", top, "--set", "workspace_hide=lib/", code="print(open('lib/mod.py').read())", lang="python"),
		      "error")
	t.check(b"VALUE" not in r.stdout, "what workspace_hide names is hidden", r)


@case("a request cannot show what the policy hides", final="not contained")
def no_show(t):
	top = project(t, FILES)
	r = t.verdict(t.cell("--workspace", top, "--set", "workspace_show=.env", code="print(1)", lang="python"), "refused")
	t.check("workspace_show" in r.reason, "reason", r)


@case("a read-only workspace cannot be written, and one is needed for writing back only by those who are trusted")
def modes(t):
	top = project(t, FILES)
	r = t.verdict(t.cell("--workspace", top, "--workspace-mode", "ro", code="open('new', 'w')", lang="python"), "error")
	t.check(b"Errno" in r.stderr, "the program was told", r)
	t.equal((r.json["workspace"]["state"], tree(top)), ("none", FILES), "state and project", r)
	t.verdict(t.cell("--workspace", top, "--workspace-mode", "rw", code="print(1)", lang="python"), "refused")
	r = t.verdict(t.cell("--workspace", top, "--workspace-mode", "rw", "--trust", "trusted", code="open('new', 'w').write('x')",
			     lang="python"), "ok")
	t.equal((r.json["workspace"]["state"], tree(top)), ("applied", {**FILES, "new": "x"}), "state and project", r)


@case("--apply moves changes over after a good end, and only then")
def apply_at_the_end(t):
	top = project(t, FILES)
	r = t.verdict(t.cell("--workspace", top, "--apply", code="open('new', 'w').write('x'); raise SystemExit(3)", lang="python"), "error")
	t.equal((r.json["workspace"]["state"], tree(top)), ("kept", FILES), "state and project", r)
	t.equal(t.brig("workspace", "discard", r.json["id"]).rc, 0, "status of discard")
	r = t.verdict(t.cell("--workspace", top, "--apply", code="open('new', 'w').write('x')", lang="python"), "ok")
	t.equal((r.json["workspace"]["state"], tree(top)), ("applied", {**FILES, "new": "x"}), "state and project", r)
	t.equal(t.brig("workspace", "list", "--json").out, b'{"workspaces":[]}\n', "nothing waits")


@case("changes are not applied to a project that has moved on")
def moved_on(t):
	top = project(t, FILES)
	r = t.verdict(t.cell("--workspace", top, code=EDIT, lang="python"), "ok")
	project(t, {"a.txt": "mine\n"})
	p = t.brig("workspace", "apply", r.json["id"])
	t.check(p.rc == 125 and b"'a.txt'" in p.err, "refused, with the file's name", p)
	t.equal(tree(top), {**FILES, "a.txt": "mine\n"}, "project")


@case("what a program plants is not moved over: links that lead out, special files, hooks, secrets", final="not contained")
def planted(t):
	top = project(t, {"a.txt": "a\n"})
	outside = t.path("outside", "canary")
	code = f"""
import os
os.symlink({outside!r}, 'absolute')
os.symlink('../outside', 'out')
os.symlink('a.txt', 'inside')
os.mkfifo('fifo')
os.makedirs('.git/hooks')
open('.git/hooks/post-commit', 'w').write('#!/bin/sh')
open('.env', 'w').write('x')
open('run', 'w').write('x')
os.chmod('run', 0o4755)
"""
	r = t.verdict(t.cell("--workspace", top, "--apply", code=code, lang="python"), "ok")
	t.equal(r.json["workspace"]["state"], "applied", "state", r)
	t.equal(sorted(os.listdir(top)), ["a.txt", "inside", "run"], "project", r)
	t.equal(stat.S_IMODE(os.stat(os.path.join(top, "run")).st_mode), 0o755, "permissions", r)
	t.check(sum("not applied" in w for w in r.json["warnings"]) >= 4, "warnings", r)	# a FIFO does not travel in a stream
	t.equal(read(outside), "canary", "file outside")


@case("the staged program covers no file of the project")
def staged_name(t):
	top = project(t, {"prog.py": "VALUE = 1\n", "program": "mine\n"})
	r = t.verdict(t.cell("--workspace", top, t.path("prog.py", "import prog\nprint(prog.VALUE, open('program').read())\n")), "ok")
	t.equal((r.stdout, changes(r)), (b"1 mine\n\n", ""), "output and changes", r)
	r = t.verdict(t.cell("--workspace", top, os.path.join(top, "prog.py")), "ok")
	t.equal(changes(r), "", "changes", r)


@case("folders that are no projects are refused")
def places(t):
	for path in ("/", "/etc", "/usr/bin", "/proc", t.state, t.dir, t.path("absent"), t.path("file", "x")):
		r = t.verdict(t.cell("--workspace", path, code="print(1)", lang="python"), "refused")
		t.check(len(r.reason) > 20, f"reason for {path}", r)


@case("artifacts are fetched by pattern, with and without a project, and nothing is followed", final="not contained")
def artifacts(t):
	out = project(t, {}, "out")
	outside = t.path("outside", "canary")
	code = f"""
import os
os.makedirs('dist/sub')
open('dist/sub/a.bin', 'w').write('aaa')
open('plot.png', 'w').write('png')
open('other', 'w').write('no')
os.symlink({outside!r}, 'link.png')
os.mkfifo('fifo.png')
"""
	r = t.verdict(t.cell("--artifact", "*.png", "--artifact", "dist/", "--out", out, code=code, lang="python"), "ok")
	t.equal([a["path"] for a in r.json["artifacts"]], ["dist/sub/a.bin", "plot.png"], "artifacts", r)
	t.equal(tree(out), {"dist/sub/a.bin": "aaa", "plot.png": "png"}, "folder", r)
	t.check(any("not fetched" in w for w in r.json["warnings"]), "a warning tells of the rest", r)
	top = project(t, FILES)
	r = t.verdict(t.cell("--workspace", top, "-a", "**", code=EDIT, lang="python"), "ok")
	t.equal([a["path"] for a in r.json["artifacts"]], ["a.txt", "out/new.txt"], "only what the run made", r)
	for bad in ("../x", "/../x", "a//b", ""):
		p = t.run(t.run_args("-a", bad, "-c", "print(1)", "-l", "python"))
		t.equal(p.rc, 2, f"status with the pattern '{bad}'", p)


@case("a run says in one line what it changed and how to go on")
def remark(t):
	top = project(t, FILES)
	p = t.run(t.run_args("--workspace", top, t.path("edit.py", EDIT)))
	t.check(b"2 added, 1 modified, 1 deleted" in p.err and b"brig workspace apply " in p.err, "remark", p)
	p = t.run(t.run_args("--workspace", top, "-c", "print(1)", "-l", "python"))
	t.check(b"workspace" not in p.err, "nothing is said of nothing", p)


# Of each cell its own: ids that no other has, and what it used.
OWN = ("host_uid", "init_host_uid", "id_separation", "wall_time", "cpu_time", "output_limit")


def rows(r):
	"""The evidence, without where each row was read, which has numbers of processes."""
	return {e["check"]: (e["declared"], "" if e["check"] in OWN else e["enforced"], e["kept"]) for e in r.json["evidence"]}


LONG = "x" * 70000	# more than a job can say: such a cell is made by the process that was asked


@case("a cell of a project is the same whoever makes it: the keeper, or for a job too long for it the process that was asked")
def same_cell(t):
	t.native_only("other backends have no keeper")
	code = EDIT + "open('.env').read()\nimport sys\nprint(len(sys.argv[1]) > 9)\n"
	short, long = (t.cell("--workspace", project(t, FILES, name), "-c", code, "--", word, lang="python") for name, word in (("p1", "x" * 10), ("p2", LONG)))
	t.equal(t.verdict(short, "ok").stdout, t.verdict(long, "ok").stdout, "what the program saw")
	t.equal(changes(short), WANT, "changes", short)
	t.equal(changes(long), WANT, "changes", long)
	t.equal(short.json["denied"], long.json["denied"], "what it was refused")
	a, b = rows(short), rows(long)
	t.equal({k: a.get(k) for k in a.keys() | b.keys() if a.get(k) != b.get(k)}, {}, "rows that differ", b)
