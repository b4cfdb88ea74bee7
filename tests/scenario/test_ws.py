# SPDX-License-Identifier: Apache-2.0
"""Programs that live in a project: they run in their place, compilers and tools find what they need, and what is left is told."""
import base64
import json
import os
import shutil
import subprocess

from harness import BACKEND, Result, as_in_a_cell, brig_path, case, give, test_ids
from projects import project


def run(t, *words, command="run", want="ok", **kw):
	"""`brig run --json` or the like, by the words of its user."""
	r = Result(t.run([brig_path(), command, "--json", *map(str, words)], **kw))
	t.ids.append(r.json.get("id"))
	return t.verdict(r, want)


def paths(r):
	return sorted(c["path"] for c in r.json["changes"])


PYTHON = {
	"data/words.txt": "words\n",
	"src/app.py": "import os, sys, helper\nfrom inner import deep\n"
		      "print(helper.X, deep.Y, __file__, os.getcwd(), open('data/words.txt').read().strip())\n",
	"src/helper.py": "X = 5\n",
	"src/inner/__init__.py": "",
	"src/inner/deep.py": "Y = 6\n",
}


@case("a file of the workspace runs where it lies, with its neighbours, and is no change", final="not contained")
def in_place(t):
	top = project(t, PYTHON)
	os.chmod(os.path.join(top, "src"), 0o750)
	for words in (["--workspace", top, top + "/src/app.py"], ["--workspace", top, "--workspace-mode", "ro", top + "/src/app.py"]):
		r = run(t, *words)
		t.equal(as_in_a_cell(r.stdout), b"5 6 /workspace/src/app.py /workspace words\n", "output", r)
		t.equal(paths(r), [], "changes", r)


@case("what runs in its place is the inspected file, whatever the project's owner makes of it meanwhile")
def inspected_copy(t):
	top = project(t, {"src/app.py": "import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
				       "print('inspected' in open(__file__).read())\nopen(__file__, 'a').write('#by the program')\n"})
	file = os.path.join(top, "src/app.py")
	with t.popen([brig_path(), "run", "--workspace", top, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
		     stderr=subprocess.PIPE) as p:
		ready = p.stdout.readline()
		with open(file, "w", encoding="utf-8") as f:
			f.write("print('of the owner')")
		out, err = p.communicate(b"go\n", timeout=60)
	t.equal(ready + out, b"ready\nTrue\n", f"output, with {err}")
	t.check(b"0 added, 1 modified" in err, "its own file is a change when it changes it")
	with open(file, encoding="utf-8") as f:
		t.equal(f.read(), "print('of the owner')", "the project's file")


@case("TypeScript imports its neighbours, in a project", final="not contained")
def typescript(t):
	top = project(t, {"src/app.ts": "import { a } from './lib';\nimport { basename } from 'path';\n"
				       "if (require.main === module) console.log(a as number, __dirname, basename('x/y'));\n",
			  "src/lib.ts": "export const a: number = 4;\n"})
	r = run(t, "--workspace", top, top + "/src/app.ts")
	t.equal(as_in_a_cell(r.stdout), b"4 /workspace/src y\n", "output", r)
	t.equal(paths(r), [], "changes", r)


@case("C finds the headers of its project", final="not contained")
def c_headers(t):
	top = project(t, {"src/main.c": '#include <stdio.h>\n#include "k.h"\nint main(void) { printf("%d\\n", K); }\n',
			  "src/k.h": "#define K 12\n", "program": "a file of the project's\n"})
	r = run(t, "--workspace", top, top + "/src/main.c")
	t.equal(r.stdout, b"12\n", "output", r)
	with open(os.path.join(top, "src/k.h"), "w", encoding="utf-8") as f:
		f.write("#define K 13\n")
	r = run(t, "--workspace", top, top + "/src/main.c")
	t.equal(r.stdout, b"13\n", "output after a header was changed", r)


@case("a folder runs: a Go module of several files and packages", final="not contained")
def go_folder(t):
	top = project(t, {"go.mod": "module example.com/x\n\ngo 1.19\n",
			  "main.go": "package main\nimport (\"fmt\"; \"example.com/x/util\")\nfunc main() { fmt.Println(util.V, other()) }\n",
			  "other.go": "package main\nfunc other() int { return 9 }\n", "util/util.go": "package util\nconst V = 3\n"})
	r = run(t, top)
	t.equal(r.stdout, b"3 9\n", "output", r)
	t.equal(paths(r), [], "changes", r)


@case("a folder runs by the file that its program begins in, and is refused if there is none or more than one")
def folders(t):
	t.equal(run(t, project(t, {"main.py": "import a\nprint(a.A)\n", "a.py": "A = 1\n"}, "one")).stdout, b"1\n", "main.py")
	t.equal(run(t, project(t, {"package.json": '{"main": "./lib/start.js"}', "lib/start.js": "console.log(2)\n",
				   "index.js": "console.log('no')\n"}, "two")).stdout, b"2\n", "main of package.json")
	p = t.brig("run", project(t, {"main.py": "", "index.js": ""}, "three"))
	t.check(p.rc == 2 and b"more than one program: main.py and index.js" in p.err, "two programs are not refused", p)
	p = t.brig("run", project(t, {"notes.txt": ""}, "four"))
	t.check(p.rc == 2 and b"main.py" in p.err, "a folder without a program is not refused", p)


@case("git commits in the copy, and nothing of that is a change")
def git_commit(t):
	if not shutil.which("git") or BACKEND == "docker":
		t.skip("needs git in the cell")
	top = project(t, {"a.txt": "one\n"})
	for words in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one"]):
		t.equal(t.run(["git", "-c", "safe.directory=*", "-C", top, *words]).rc, 0, f"git {words}")
	before = t.run(["git", "-c", "safe.directory=*", "-C", top, "rev-parse", "HEAD"]).out
	r = run(t, "--workspace", top, "-c", "echo two >> a.txt && git commit -qam two && git log --format=%s%an", command="exec")
	t.equal(r.stdout, b"twosandbox\nonet\n", "log", r)
	t.equal(paths(r), ["a.txt"], "changes", r)
	t.equal(t.run(["git", "-c", "safe.directory=*", "-C", top, "rev-parse", "HEAD"]).out, before, "the project's own history")


def repository(t, name="repo"):
	"""A project with one commit, and how to ask git about it."""
	if not shutil.which("git") or BACKEND == "docker":
		t.skip("needs git in the cell")
	top = project(t, {"a.txt": "one\n"}, name)

	def git(*words, rc=0):
		p = t.run(["git", "-c", "safe.directory=*", "-c", "user.name=me", "-c", "user.email=me@localhost", "-C", top, *words])
		t.equal(p.rc, rc, f"git {words}", p)
		return p.out.decode()
	for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"], ["branch", "old"]):
		git(*words)
	give(top)
	return top, git


@case("git: commits, branches and tags come over when they are asked for, and the repository is whole afterwards")
def git_apply(t):
	top, git = repository(t)
	work = "echo two >>a.txt && git commit -qam two && git tag v1 && git branch -D old && git checkout -qb topic && echo b >b && " \
	       "git add b && git commit -qm three"
	r = run(t, "--workspace", top, "--no-inspect", "-c", work, command="exec")
	t.equal((paths(r), r.json["workspace"]["git"]), (["a.txt", "b"], True), "changes", r)
	t.equal(git("log", "--all", "--format=%s").split(), ["one"], "the project's history before")
	p = t.brig("workspace", "apply", "--git", "latest")
	t.equal(p.rc, 0, "apply --git", p)
	t.equal(git("log", "--format=%s").split(), ["three", "two", "one"], "history")
	t.equal(git("for-each-ref", "--format=%(refname)").split(), ["refs/heads/main", "refs/heads/topic", "refs/tags/v1"], "names")
	t.equal((git("status", "--porcelain"), git("branch", "--show-current")), ("", "topic\n"), "state of the work tree")
	git("fsck", "--strict")
	# All at once, packed, with nothing changed but the history.
	r = run(t, "--workspace", top, "--apply-git", "--no-inspect", "-c", "git commit -q --allow-empty -m four && git gc -q", command="exec")
	t.equal((r.json["workspace"]["state"], paths(r)), ("applied", []), "--apply-git", r)
	t.equal(git("log", "--format=%s").split(), ["four", "three", "two", "one"], "history after gc")
	t.equal(git("status", "--porcelain"), "", "state of the work tree after gc")
	git("fsck", "--strict")
	# Looking is no change.
	r = run(t, "--workspace", top, "-c", "git status >/dev/null; git add .", command="exec")
	t.equal((r.json["workspace"]["state"], r.json["workspace"]["git"]), ("none", False), "nothing to apply", r)


@case("git: hooks, configuration, alternates and names that lead elsewhere never come over")
def git_planted(t):
	top, git = repository(t)
	config = open(os.path.join(top, ".git/config"), encoding="utf-8").read()
	code = """
import hashlib, os, struct, subprocess
def put(path, text, mode=0o755):
    os.makedirs(os.path.dirname('.git/' + path), exist_ok=True)
    open('.git/' + path, 'wb').write(text.encode() if isinstance(text, str) else text)
    os.chmod('.git/' + path, mode)
subprocess.run(['git', 'commit', '-q', '--allow-empty', '-m', 'two'], check=True)
commit = subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=True, text=True).stdout
put('hooks/post-checkout', '#!/bin/sh\\ntouch /tmp/owned\\n')
put('config', '[core]\\n\\tfsmonitor = touch /tmp/owned\\n')
put('info/attributes', '* filter=x\\n')
put('objects/info/alternates', '/etc\\n')
put('modules/x/config', '[core]\\n')
put('worktrees/x/gitdir', '/tmp/x/.git\\n')
put('logs/refs/heads/main', 'x\\n')
put('refs/heads/good', commit)
put('refs/heads/a..b', commit)
put('refs/heads/x.lock', commit)
put('refs/heads/lead', 'ref: refs/remotes/origin/main\\n')
put('refs/heads/text', 'ssh://somewhere\\n')
put('refs/remotes/origin/main', commit)
os.symlink('/etc/passwd', '.git/refs/heads/link')
put('HEAD', 'ref: ../../etc/passwd\\n')
path = b'.git/hooks/pre-commit'
entry = b'\\0' * 24 + struct.pack('>I', 0o100755) + b'\\0' * 12 + b'\\0' * 20 + struct.pack('>H', len(path)) + path
body = b'DIRC' + struct.pack('>II', 2, 1) + entry + b'\\0' * (8 - len(entry) % 8)
put('index', body + hashlib.sha1(body).digest())
"""
	index = open(os.path.join(top, ".git/index"), "rb").read()
	run(t, "--workspace", top, "--no-inspect", "-l", "python", "-c", code)
	p = t.brig("workspace", "apply", "--git", "latest")
	t.equal(p.rc, 0, "apply --git", p)
	for path in (".git/HEAD", ".git/index", ".git/refs/heads/lead", ".git/refs/heads/text"):
		t.check(f"not applied: {path}: ".encode() in p.err, f"{path} is not named", p)
	t.equal(git("for-each-ref", "--format=%(refname)").split(), [f"refs/heads/{n}" for n in ("good", "main", "old")], "names")
	t.equal(open(os.path.join(top, ".git/config"), encoding="utf-8").read(), config, "configuration")
	t.equal(open(os.path.join(top, ".git/index"), "rb").read(), index, "index")
	found = [path for path in ("hooks/post-checkout", "info/attributes", "objects/info/alternates", "modules", "worktrees", "refs/remotes/origin/main")
		 if os.path.exists(os.path.join(top, ".git", path))]
	t.equal(found, [], "what came over")
	git("fsck")


@case("git: nothing is applied to a repository that has moved on, that git is at work in, or that lies elsewhere")
def git_refused(t):
	top, git = repository(t)
	commit = ("--workspace", top, "--no-inspect", "-c", "git commit -q --allow-empty -m two")
	run(t, *commit, command="exec")
	lock = os.path.join(top, ".git/index.lock")
	open(lock, "w", encoding="utf-8").close()
	p = t.brig("workspace", "apply", "--git", "latest")
	t.check(p.rc != 0 and b"git is at work" in p.err, "a lock of git's", p)
	os.unlink(lock)
	git("commit", "-q", "--allow-empty", "-m", "other")
	p = t.brig("workspace", "apply", "--git", "latest")
	t.check(p.rc != 0 and b".git/" in p.err and b"no longer what the run saw" in p.err, "another commit", p)
	t.equal(git("log", "--format=%s").split(), ["other", "one"], "history")
	t.equal(t.brig("workspace", "discard", "latest").rc, 0, "discard")
	git("worktree", "add", "-q", t.path("tree"))
	give(t.path("tree"))
	r = run(t, "--workspace", t.path("tree"), "--apply-git", "-c", "true", command="exec", want="refused")
	t.check("worktree" in r.reason, "reason", r)
	r = run(t, "--workspace", project(t, {"x": "x"}, "bare"), "--apply-git", "-c", "true", command="exec", want="refused")
	t.check("no repository" in r.reason, "reason", r)


@case("caches of tools are no changes")
def caches(t):
	top = project(t, {"a.py": "A = 1\n", "__pycache__/old.pyc": "old"})
	code = """
import os
for path in ("__pycache__/new.pyc", "pkg/__pycache__/x.pyc", ".pytest_cache/v", "node_modules/.cache/x/y", "real.txt"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "w").write("x")
os.remove("__pycache__/old.pyc")
"""
	r = run(t, "--workspace", top, "-l", "python", "-c", code)
	t.equal(paths(r), ["node_modules", "pkg", "real.txt"], "changes", r)


@case("files that nobody asked for are named at the end, and --out makes its folder")
def files_left(t):
	code = "import os\nfor n in ('plot.png', 'table.csv', '.hidden'):\n    open(n, 'w').write(n)\nos.makedirs('__pycache__')\n" \
	       "open('__pycache__/x.pyc', 'w').close()\n"
	if BACKEND != "direct":
		p = t.brig("run", "-l", "python", "-c", code)
		t.check(b"2 files left: plot.png, table.csv; --out DIR fetches them" in p.err, "what is left is not named", p)
		r = run(t, "-l", "python", "-c", code)
		t.equal([(f["path"], f["size"]) for f in r.json["left"]], [("plot.png", 8), ("table.csv", 9)], "left", r)
	out = t.path("made")
	r = run(t, "--out", out, "--artifact", "*.csv", "--artifact", "*.pdf", "-l", "python", "-c", code)
	t.equal(os.listdir(out), ["table.csv"], "files in the folder that was made", r)
	t.check(any("no file that matches '*.pdf'" in w for w in r.json["warnings"]), "a pattern without a match is not told", r)
	t.equal(r.json["left"], [], "left", r)
	r = run(t, "--out", t.path("absent/below"), "-l", "python", "-c", code, want="refused")
	t.check(not os.path.exists(t.path("absent")), "folders above were made", r)


@case("small artifacts come in the result itself, as far as there is room")
def inline_artifacts(t):
	code = "open('a.txt', 'w').write('text')\nopen('b.bin', 'wb').write(b'\\xff\\x00')\nopen('c.txt', 'w').write('x' * 100)\n"
	r = run(t, "--inline-artifacts", "50", "-l", "python", "-c", code)
	found = {a["path"]: a for a in r.json["artifacts"]}
	t.equal((found["a.txt"]["content"], found["a.txt"]["content_encoding"]), ("text", "utf-8"), "text", r)
	t.equal((base64.b64decode(found["b.bin"]["content"]), found["b.bin"]["content_encoding"]), (b"\xff\x00", "base64"), "bytes", r)
	t.check("content" not in found["c.txt"], "more than there is room for", r)


@case("a program that misses a package ends with a hint, of which nothing is the program's but the name")
def hints(t):
	r = run(t, "-l", "python", "-c", "import cv2_is_not_there", want="error")
	in_image = BACKEND == "docker"	# which --packages does not fix
	want = "docker_requirements: [cv2_is_not_there]" if in_image else "--packages cv2_is_not_there installs it"
	t.check(want in (r.json["hint"] or ""), "Python", r)
	p = t.brig("run", "-l", "js", "-c", "require('left-pad-2')")
	want = b"--packages left-pad-2 with backend native" if in_image else b"hint: package 'left-pad-2' is missing: --packages left-pad-2 installs it"
	t.check(want in p.err, "Node", p)
	r = run(t, "-l", "python", "-c", "import sys; sys.exit(\"ModuleNotFoundError: No module named 'a b'\")", want="error")
	t.equal(r.json["hint"], None, "a text that names no module", r)
	r = run(t, "-l", "python", "-c", "import sys; sys.stderr.write(\"ModuleNotFoundError: No module named 'x'\")")
	t.equal(r.json["hint"], None, "a program that ended well", r)


@case("packages of a virtual environment in the workspace, and of node_modules, are there")
def project_packages(t):
	top = project(t, {".venv/pyvenv.cfg": "home = /usr/bin\n", ".venv/lib/python3.11/site-packages/in_venv.py": "V = 8\n",
			  ".venv/bin/in-venv": "#!/bin/sh\necho by name\n", "src/app.py": "import in_venv\nprint(in_venv.V)\n",
			  "node_modules/in-node/index.js": "module.exports = 9\n", "src/app.js": "console.log(require('in-node'))\n",
			  "src/app.mjs": "import v from 'in-node'\nconsole.log(v)\n"})
	os.chmod(os.path.join(top, ".venv/bin/in-venv"), 0o755)
	t.equal(run(t, "--workspace", top, top + "/src/app.py").stdout, b"8\n", "Python")
	t.equal(run(t, "--workspace", top, top + "/src/app.js").stdout, b"9\n", "Node")
	t.equal(run(t, "--workspace", top, top + "/src/app.mjs").stdout, b"9\n", "an ES module")
	t.equal(run(t, "--workspace", top, "-c", "in-venv", command="exec").stdout, b"by name\n", "a program of the environment")
	t.equal(run(t, "--workspace", top, "--", "in-venv", command="exec").stdout, b"by name\n", "without a shell")


@case("make, npm test and go test work on the copy of a project")
def tools(t):
	if BACKEND == "docker":
		t.skip("one image has not all of these tools")
	top = project(t, {"Makefile": "x: x.c\n\tgcc -o x x.c\n\t./x\n", "x.c": "#include <stdio.h>\nint main(void) { puts(\"made\"); }\n",
			  "package.json": '{"name": "n", "version": "1.0.0", "scripts": {"test": "node t.js"}}', "t.js": "console.log('tested')\n",
			  "go.mod": "module example.com/x\n\ngo 1.19\n", "g/v.go": "package x\nconst V = 3\n",
			  "g/v_test.go": "package x\nimport \"testing\"\nfunc TestV(t *testing.T) { if V != 3 { t.Fatal(V) } }\n"})
	for program, words, want in (("make", ["make"], b"made\n"), ("npm", ["npm", "test"], b"tested\n"), ("go", ["go", "test", "./g"], b"ok  ")):
		if shutil.which(program):
			r = run(t, "--workspace", top, "--timeout", "30", "--", *words, command="exec")
			t.check(want in r.stdout, f"{program} does not work", r)
			t.equal(paths(r), ["x"] if program == "make" else [], f"changes of {program}", r)
