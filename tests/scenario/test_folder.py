# SPDX-License-Identifier: Apache-2.0
"""Files of a program's that come into folders of the host: which folder, what of them, and what others do meanwhile."""
import concurrent.futures
import contextlib
import ctypes
import os
import signal
import stat

import harness
from harness import case, give

OWNER = 54321  # an ordinary user who owns the folder that the project is in
EXCHANGE = 2
AT_FDCWD = -100
libc = ctypes.CDLL(None, use_errno=True)

EDIT = "open('edit', 'w').write('two'); open('new', 'w').write('new')"


def folder(t, name, files=()):
	top = t.path(name)
	os.mkdir(top)
	for path, content in dict(files).items():
		full = os.path.join(top, path)
		os.makedirs(os.path.dirname(full), exist_ok=True)
		with open(full, "w") as f:
			f.write(content)
	give(top)
	return top


def text(*path):
	with open(os.path.join(*path)) as f:
		return f.read()


def run_id(r):
	return r.json["id"]


def exchange(a, b):
	return libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), EXCHANGE)


@contextlib.contextmanager
def swapping(a, b):
	"""Two names change places as fast as they can, by an ordinary user."""
	begun, told = os.pipe()
	pid = os.fork()
	if pid == 0:
		try:
			if os.geteuid() == 0:
				os.setgid(OWNER)
				os.setuid(OWNER)
			first = exchange(a, b)
			os.write(told, b"x" if first == 0 else b"-")
			while first == 0:
				exchange(a, b)
		finally:
			os._exit(1)
	try:
		if os.read(begun, 1) != b"x":
			raise AssertionError("nothing is swapped")
		yield
	finally:
		os.kill(pid, signal.SIGKILL)
		os.waitpid(pid, 0)
		os.close(begun)
		os.close(told)


@case("w2: a project that was replaced since the run is neither written nor read, and is when it is back")
def w2_replaced_before_apply(t):
	top = folder(t, "project", {"edit": "one"})
	outside = folder(t, "outside", {"edit": "secret of others"})
	run = run_id(t.verdict(t.cell("--workspace", top, code=EDIT, lang="python"), "ok"))
	os.rename(top, top + "-was")
	for plant in (lambda: os.symlink(outside, top), lambda: os.rename(outside, top)):
		plant()
		for what in ("apply", "diff"):
			p = t.brig("workspace", what, run)
			t.check(p.rc not in (0, 2), f"{what} of another folder", p)
			t.check(b"secret of others" not in p.out + p.err, f"{what} reads another folder", p)
		t.equal(text(top, "edit"), "secret of others", "the other folder")
		t.check(not os.path.lexists(os.path.join(top, "new")), "a file came into another folder")
		if os.path.islink(top):
			os.unlink(top)
	os.rename(top, outside)
	os.rename(top + "-was", top)
	p = t.brig("workspace", "apply", run)
	t.equal(p.rc, 0, "apply to the folder itself", p)
	t.equal(text(top, "edit"), "two", "the folder itself")


@case("w2: the owner of the folder above swaps the project for a link while root's run works, applies and copies")
def w2_swapped_under_root(t):
	if os.geteuid() != 0 or harness.test_ids():
		t.skip("two users are needed: root, and one whom root works for")
	above = t.path("above")
	os.mkdir(above)
	os.chown(above, OWNER, OWNER)
	outside = folder(t, "outside", {"edit": "one", "sub/x": "x"})
	before = sorted(os.listdir(outside)), os.stat(outside).st_mtime_ns
	ends = {"ok": 0, "other": 0}
	project, out, decoy = (os.path.join(above, name) for name in ("project", "out", "decoy"))
	for i in range(12):
		os.mkdir(project)
		with open(os.path.join(project, "edit"), "w") as f:
			f.write("one")
			os.fchown(f.fileno(), OWNER, OWNER)
		os.chown(project, OWNER, OWNER)
		os.mkdir(out)
		os.chown(out, OWNER, OWNER)
		os.symlink(outside, decoy)
		os.lchown(decoy, OWNER, OWNER)
		with swapping(project if i % 2 else out, decoy):
			r = t.cell("--workspace", project, "--apply", "--out", out, code=EDIT, lang="python")
		ends["ok" if r.verdict == "ok" else "other"] += 1
		t.check(r.verdict in ("ok", "refused", "failed"), "verdict", r)
		t.equal((sorted(os.listdir(outside)), os.stat(outside).st_mtime_ns), before, f"the folder outside in round {i}", r)
		t.equal(text(outside, "edit"), "one", f"the file outside in round {i}", r)
		for name in (project, out, decoy):
			if os.path.islink(name):
				os.unlink(name)
			else:
				t.run(["rm", "-r", name])
	t.equal(sum(ends.values()), 12, "rounds")


@case("w4: --out into a repository replaces no file, writes no hidden name and nothing of git's")
def w4_out_in_a_repository(t):
	out = folder(t, "repository", {"Makefile": "mine", ".git/config": "mine", ".git/HEAD": "mine", ".bashrc": "mine"})
	code = """
import os
for path in ("Makefile", ".git/config", ".git/hooks/post-checkout", ".bashrc", ".envrc", "sub/.profile", "result"):
	os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
	open(path, "w").write("evil")
"""
	r = t.verdict(t.cell("--out", ".", code=code, lang="python", cwd=out), "ok")
	t.equal([a["path"] for a in r.json["artifacts"]], ["result"], "what was copied", r)
	t.check(any("Makefile" in w and "--overwrite" in w for w in r.json["warnings"]), "the file that stays is named", r)
	t.check(any(".bashrc" in w for w in r.json["warnings"]), "the hidden file is named", r)
	for name in ("Makefile", ".git/config", ".git/HEAD", ".bashrc"):
		t.equal(text(out, name), "mine", name, r)
	for name in (".git/hooks", ".envrc", "sub/.profile"):
		t.check(not os.path.lexists(os.path.join(out, name)), f"{name} was written", r)
	r = t.verdict(t.cell("--out", out, "--overwrite", code=code, lang="python"), "ok")
	t.equal(text(out, "Makefile"), "evil", "a file that may be replaced", r)
	t.equal(text(out, ".git/config"), "mine", "git's own", r)
	p = t.run(t.run_args("--overwrite", "-c", "print(1)", "-l", "python"))
	t.equal(p.rc, 2, "--overwrite without --out", p)


@case("w4: --out takes no folder of the system, no home and not the state folder")
def w4_places(t):
	home = folder(t, "home")
	env = {"HOME": home}
	for bad in ("/", "/etc", "/usr/local", "/root", "/tmp", home):
		r = t.cell("--out", bad, code="open('x', 'w')", lang="python", env=env)
		t.verdict(r, "refused")
	sub = folder(t, "home/results")
	r = t.verdict(t.cell("--out", sub, code="open('x', 'w').write('x')", lang="python", env=env), "ok")
	t.equal(text(sub, "x"), "x", "a folder in the home", r)


@case("w5: permissions that came over are seen before, and give nobody else a right to write")
def w5_permissions(t):
	top = folder(t, "project", {"shared": "one", "plain": "one"})
	os.chmod(os.path.join(top, "shared"), 0o664)
	code = """
import os
os.umask(0)
for name in ("shared", "plain"):
	open(name, "w").write("two")
os.chmod("plain", 0o777)
open("new", "w").write("x"); os.chmod("new", 0o6777)
os.mkdir("dir"); os.chmod("dir", 0o3777); open("dir/x", "w")
"""
	run = run_id(t.verdict(t.cell("--workspace", top, code=code, lang="python"), "ok"))
	shown = t.brig("workspace", "show", run)
	t.check(b"0644 > 0755" in shown.out, "the modes in show", shown)
	diff = t.brig("workspace", "diff", run)
	t.check(b"old mode 100644\nnew mode 100755\n" in diff.out, "the modes in diff", diff)
	t.equal(t.brig("workspace", "apply", run).rc, 0, "apply")
	for name, mode in (("shared", 0o664), ("plain", 0o755), ("new", 0o755), ("dir", 0o755)):
		t.equal(stat.S_IMODE(os.stat(os.path.join(top, name)).st_mode), mode, name)


@case("w9: a git directory under another name does not come over, and git status runs nothing of it")
def w9_git_directory(t):
	top = folder(t, "project", {"keep": "x"})
	mark = t.path("mark")
	code = f"""
import os
for where in ("innocent", "."):
	for name in ("objects", "refs"):
		os.makedirs(os.path.join(where, name))
	open(os.path.join(where, "HEAD"), "w").write("ref: refs/heads/main\\n")
	open(os.path.join(where, "config"), "w").write("[core]\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = touch {mark}\\n")
open("result", "w").write("good")
"""
	r = t.verdict(t.cell("--workspace", top, "--apply", code=code, lang="python"), "ok")
	t.equal(text(top, "result"), "good", "the rest comes over", r)
	for name in ("HEAD", "config", "innocent/HEAD", "innocent/config"):
		t.check(not os.path.lexists(os.path.join(top, name)), f"{name} came over", r)
	for cwd in (top, os.path.join(top, "innocent")):
		if os.path.isdir(cwd):
			t.run(["git", "-c", "safe.directory=*", "status"], cwd=cwd)
	t.check(not os.path.exists(mark), "git ran what the program wrote", r)


@case("w1: links that are each inside, and lead out together, do not come over")
def w1_links(t):
	top = folder(t, "project", {"keep": "x"})
	t.path("secret", "tell nobody")
	code = """
import os
os.mkdir("d"); os.symlink("..", "d/up"); os.symlink("d/up/../../secret", "x"); os.symlink("keep", "good")
"""
	r = t.verdict(t.cell("--workspace", top, "--apply", code=code, lang="python"), "ok")
	t.check(not os.path.lexists(os.path.join(top, "x")), "the link came over", r)
	t.equal(os.readlink(os.path.join(top, "good")), "keep", "a link that stays inside", r)
	for folder_, dirs, files in os.walk(top):
		for name in dirs + files:
			real = os.path.realpath(os.path.join(folder_, name))
			t.check(real == top or real.startswith(os.path.realpath(top) + "/"), f"{name} leads to {real}", r)


@case("w6: of two applies at once that change one file, one is refused")
def w6_two_applies(t):
	code = "import os; os.mkdir('{0}'); [open(f'{0}/{{i}}', 'w').write('x' * 4096) for i in range(400)]; open('edit', 'w').write('{0}')"
	for i in range(3):
		top = folder(t, f"project{i}", {"edit": "one"})
		runs = [run_id(t.verdict(t.cell("--workspace", top, code=code.format(word), lang="python"), "ok")) for word in ("two", "three")]
		with concurrent.futures.ThreadPoolExecutor() as pool:
			ends = list(pool.map(lambda run: t.brig("workspace", "apply", run), runs))
		t.equal(sorted(p.rc == 0 for p in ends), [False, True], f"how they ended in round {i}", ends)
		t.equal(text(top, "edit"), "two" if ends[0].rc == 0 else "three", "what stands", ends)


@case("w10: a file that has the name of brig's own temporary one is left alone")
def w10_temporary_names(t):
	out = folder(t, "out", {".brig-artifact": "mine"})
	r = t.verdict(t.cell("--out", out, code="open('a', 'w').write('a'); open('.brig-artifact', 'w').write('b')", lang="python"), "ok")
	t.equal(text(out, ".brig-artifact"), "mine", "the file that was there", r)
	t.equal(text(out, "a"), "a", "what was asked for", r)
	t.check(any(".brig-artifact" in w for w in r.json["warnings"]), "what is not copied is named", r)
	t.equal(sorted(os.listdir(out)), [".brig-artifact", "a"], "nothing else is there", r)


@case("t1: a name with a newline makes no second line of what was not moved over")
def t1_names_of_what_stays(t):
	evil = "a\\nbrig: not applied: passwd"
	code = f'import os; os.symlink("/etc/passwd", "{evil}"); open("new", "w")'
	r = t.cell("--workspace", folder(t, "project"), "--apply", code=code, lang="python")
	t.verdict(r, "ok")
	named = [w for w in r.json["warnings"] if "not applied" in w]
	t.equal(len(named), 1, "warnings about what was not applied", named)
	t.check("a\\nbrig" in named[0], "the newline is not written as \\n", named)
