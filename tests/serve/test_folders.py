# SPDX-License-Identifier: Apache-2.0
"""Folders of commands through a service: the same changes, reports and artifacts as here, and nobody's rights but the caller's."""
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tarfile
import tempfile

import harness
from client import PATIENCE, ask_unix, mark, marked, wait_until
from commands import PYTHON, STRANGER, as_stranger, away, away_words, becomes, both, client_env, differences, known, need_users, overheard, service, tried
from harness import case

TESTS = "import unittest\nclass T(unittest.TestCase):\n\tdef test_a(self): pass\n\tdef test_b(self): self.assertEqual(1, %d)\n"
CHANGES = """
import os, sys
sys.path.insert(0, 'lib')
import helper
print(helper.NAME, sorted(os.listdir('.')), repr(open('.env').read()), os.readlink('link'))
open('list.txt', 'a').write('three\\n')
os.unlink('gone.txt')
os.symlink('list.txt', 'second')
os.makedirs('new/deep')
open('new/deep/file', 'w').write('n' * 1000)
os.chmod('script.sh', 0o700)
open('link', 'w').write('one\\n')
"""


def project(t, name="project"):
	"""A folder with what projects have: modules, a program, a link, a secret, a closed file, an empty folder."""
	top = t.path(name)
	for folder in ("lib", "empty", ".git/objects"):
		os.makedirs(os.path.join(top, folder))
	for path, text, mode in (("main.py", CHANGES, 0o644), ("lib/helper.py", "NAME = 'helper'\n", 0o644), ("list.txt", "one\ntwo\n", 0o644), ("gone.txt", "x", 0o600),
				 (".env", "SECRET=1\n", 0o600), ("script.sh", "echo hi\n", 0o755), (".git/HEAD", "ref: refs/heads/main\n", 0o644)):
		t.path(os.path.join(name, path), text, mode)
	os.symlink("list.txt", os.path.join(top, "link"))
	return top


def contents(top):
	"""Everything in a folder: kinds, permissions, bytes, targets."""
	found = {}
	for folder, folders, files in os.walk(top):
		for name in folders + files:
			path = os.path.join(folder, name)
			st = os.lstat(path)
			what = os.readlink(path) if stat.S_ISLNK(st.st_mode) else open(path, "rb").read() if stat.S_ISREG(st.st_mode) else None
			found[os.path.relpath(path, top)] = (stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), what)
	return found


def compared(t, path, words, names=("a", "b")):
	"""One command here and there, each with a project of its own at @: both results, and what became of the projects."""
	ends = []
	for name, command in zip(names, (t.brig, functools.partial(away, t, path))):
		top = project(t, name)
		p = command(*[str(w).replace("@", top) for w in words], stdin=b"")
		ends.append((p, contents(top)))
		shutil.rmtree(top)
	return ends


@case("a project, its changes and its tests are the same here and through the service, member by member")
def same_folders(t):
	kept = []
	with service(t) as (s, path):
		for name, words in {
			"cow": ("run", "--json", "@"),
			"applied": ("run", "--json", "--apply", "@"),
			"ro": ("exec", "--json", "--workspace", "@", "--set", "workspace_mode=ro", "--", "sh", "-c", "touch x; ls"),
			"command": ("exec", "--json", "--workspace", "@", "-c", "cat list.txt; rm -r lib; mkdir lib; echo x > lib/new"),
			"code from elsewhere": ("run", "--json", "--workspace", "@", *PYTHON, "print(open('list.txt').read()); open('main.py', 'w').write('1')"),
			"compiled": ("run", "--json", "--workspace", "@", "-l", "c", "-c", "int main(void) { return 7; }"),
			"failed": ("run", "--json", "--apply", "--workspace", "@", *PYTHON, "open('x', 'w'); raise SystemExit(3)"),
			"an archive of them": ("run", "--json", "--workspace", "@", "-a", "*.out", "--out-tar", t.path("out.tar"), *PYTHON, "open('a.out', 'w').write('x')"),
			"artifacts": ("run", "--json", "--workspace", "@", "-a", "*.out", "--inline-artifacts", "1k", *PYTHON, "open('a.out', 'w').write('x')"),
		}.items():
			(here, a), (there, b) = compared(t, path, words)
			x, y = json.loads(here.out), json.loads(there.out)
			if name == "compiled":	# whose cache has it is not the same
				x["cache"] = y["cache"] = None
				x["evidence"] = y["evidence"] = []
			if name == "an archive of them":
				with tarfile.open(t.path("out.tar")) as tar:
					t.equal(tar.getnames(), ["a.out"], name)
			t.equal(differences(x, y), {}, name, there)
			t.equal((there.rc, there.err), (here.rc, here.err), f"status and words of {name}")
			t.equal(b, a, f"the folder after {name}")
			kept += [y["id"]] if y["workspace"]["state"] == "kept" else []
			if name == "applied":
				t.check("second" in b and "gone.txt" not in b and y["workspace"]["state"] == "applied", "it was applied", b)
		t.check(kept, "changes are kept here")
		for run in kept:
			p = away(t, "", "workspace", "discard", run)
			t.equal(p.rc, 0, "changes are this user's", p)


@case("what a program leaves beyond the limits is told as incomplete, and nothing of it is kept or applied")
def beyond(t):
	with service(t) as (_, path):
		for code, status in (("open('hole', 'w').truncate(300 << 20)", 123), ("import os\nfor i in range(200): os.mkdir('d'); os.chdir('d')\nfor i in range(200): os.mkdir('d'); os.chdir('d')", 123)):
			(here, a), (there, b) = compared(t, path, ("run", "--json", "--apply", "--workspace", "@", *PYTHON, code))
			x, y = json.loads(here.out), json.loads(there.out)
			t.equal((y["verdict"], y["workspace"]["state"], there.rc), (x["verdict"], x["workspace"]["state"], status), code, there)
			t.equal((y["workspace"]["state"], "hole" in b or "d" in b), ("incomplete", False), "nothing is applied", y["warnings"])


@case("brig test tells the same through the service, of folders and of paths in them")
def same_tests(t):
	with service(t) as (_, path):
		for name, text, words, status in (("good", TESTS % 1, (), 0), ("bad", TESTS % 2, (), 1), ("one", TESTS % 2, ("test_x.py",), 1), ("none", "", ("nothing.py",), None)):
			top = t.path(name)
			os.mkdir(top)
			t.path(f"{name}/test_x.py", text)
			here, there = both(t, path, "test", "--json", "--workspace", top, *words, stdin=b"")
			a, b = ({**r, **{k: re.sub(r"in [0-9.]+s", "", r[k]) for k in ("stdout", "stderr")}} for r in map(json.loads, (here.out, there.out)))
			t.equal(differences(a, b), {}, name, there)
			t.equal((there.rc, there.err), (here.rc, here.err), f"status of {name}")
			t.check(status is None or there.rc == status, name, there)


@case("--out writes what it writes here, and nothing into folders that it would not write to here")
def out(t):
	code = "import os\nos.mkdir('d')\nfor n in ('a.csv', 'd/b.csv', '.hidden', 'c.txt'): open(n, 'w').write(n)"
	with service(t) as (_, path):
		ends = []
		for name, env in (("here", {}), ("there", client_env(path))):
			folder = t.path(name)
			os.mkdir(folder)
			t.path(f"{name}/c.txt", "mine")
			p = t.brig("run", "--json", "--out", folder, *PYTHON, code, stdin=b"", env=env)
			ends.append((p, json.loads(p.out), contents(folder)))
		t.equal(differences(ends[0][1], ends[1][1]), {}, "the result", ends[1][0])
		t.equal(ends[1][2], ends[0][2], "the folder")
		t.equal(ends[1][2]["c.txt"][2], b"mine", "a file that was there")
		with tarfile.open(t.path("in.tar"), "w") as tar:
			tar.add(t.path("c.csv", "old"), "c.csv")
		ends = []
		for name, env in (("from here", {}), ("from there", client_env(path))):
			p = t.brig("run", "--json", "--files", t.path("in.tar"), "--out", t.path(name), *PYTHON, "open('c.csv', 'a').write('new'); open('d.csv', 'w')", stdin=b"", env=env)
			ends.append((p, json.loads(p.out), contents(t.path(name))))
		t.equal(differences(ends[0][1], ends[1][1]), {}, "of an archive", ends[1][0])
		t.equal((ends[1][2], ends[1][2]["c.csv"][2]), (ends[0][2], b"oldnew"), "what it changed of it")
		p = away(t, path, "run", "--out", "/etc", *PYTHON, "open('x', 'w')", stdin=b"")
		t.check(p.rc == 125 and b"/etc" in p.err and not os.path.exists("/etc/x"), "a folder of the system", p)
		p = away(t, path, "run", "--workspace", "/", *PYTHON, "1", stdin=b"")
		t.check(p.rc == 125, "the root as a project", p)


@case("root's service reads and writes a user's folders with that user's rights, whoever's files are in them", final="the service lent its rights")
def deputy(t):
	need_users(t)
	with service(t) as (_, path), tempfile.TemporaryDirectory() as top:
		os.chmod(top, 0o755)
		mine = os.path.join(top, "project")
		os.makedirs(os.path.join(mine, "closed"))
		for name, owner, mode in (("own.txt", STRANGER, 0o644), ("roots.txt", 0, 0o600), ("closed/key", 0, 0o644)):
			with open(os.path.join(mine, name), "w") as f:
				f.write("secret of root\n" if owner == 0 else "mine\n")
			os.chown(f.name, owner, owner)
			os.chmod(f.name, mode)
		os.symlink("/etc/shadow", os.path.join(mine, "shadow"))
		os.chmod(os.path.join(mine, "closed"), 0o700)
		os.chown(mine, STRANGER, STRANGER)
		look = "import os\nfor n in ('own.txt', 'roots.txt', 'closed/key', 'shadow'):\n\ttry: print(n, open(n).read())\n\texcept OSError as e: print(n, type(e).__name__)"
		p = as_stranger(t, path, "run", "--workspace", mine, *PYTHON, look)
		t.check(p.rc == 0 and b"own.txt mine" in p.out and b"secret" not in p.out and b"root:" not in p.out, "what it sees", p)
		before = contents(mine)
		p = as_stranger(t, path, "run", "--json", "--apply", "--workspace", mine, *PYTHON, "open('own.txt', 'w').write('changed\\n'); open('made', 'w').write('x')")
		r = json.loads(p.out)
		after = contents(mine)
		t.equal((r["verdict"], r["workspace"]["state"], r["degraded"]), ("ok", "applied", []), "its own", r)
		t.equal(after["own.txt"][2], b"changed\n", "what it changed")
		t.equal(os.stat(os.path.join(mine, "made")).st_uid, STRANGER, "whose the new file is")
		t.equal({n: after[n] for n in ("roots.txt", "closed/key", "shadow")}, {n: before[n] for n in ("roots.txt", "closed/key", "shadow")}, "what is not its own")
		os.mkdir(os.path.join(top, "roots"), 0o755)
		p = as_stranger(t, path, "run", "--out", os.path.join(top, "roots"), *PYTHON, "open('x', 'w').write('x')")
		t.check(b"not fetched" in p.err and not os.listdir(os.path.join(top, "roots")), "a folder that it may not write to", p)
		p = as_stranger(t, path, "run", "--workspace", os.path.join(mine, "closed"), *PYTHON, "print(open('key').read())")
		t.check(p.rc == 125 and b"secret" not in p.out, "a folder that it may not enter", p)


@case("a project that is too large for a service is an error that says so, and one that nobody named is passed over")
def large(t):
	top = t.path("large")
	os.mkdir(top)
	with open(os.path.join(top, "big"), "wb") as f:
		f.truncate(80 << 20)
	with service(t) as (_, path):
		p = away(t, path, "run", "--memory", "128m", "--workspace", top, *PYTHON, "1", stdin=b"")
		t.check(p.rc == 125 and b"--local" in p.err and b"64 MB" in p.err, "more than half of its memory", p)
		p = away(t, path, "run", "--memory", "512m", "--workspace", top, *PYTHON, "import os; print(os.stat('big').st_size)", stdin=b"")
		t.equal((p.rc, p.out), (0, b"%d\n" % (80 << 20)), "less than that", p)
		p = t.brig("run", "--memory", "128m", "--workspace", top, *PYTHON, "print('here')", stdin=b"", env=client_env("", BRIG_STATE=t.state, XDG_RUNTIME_DIR=os.path.dirname(os.path.dirname(path))))
		t.check(p.out == b"here\n" if os.getuid() == 0 else b"mem_limit" in p.err, "which runs here where nobody named a service", p)


def sealed(data, seals=True):
	fd = os.memfd_create("x", os.MFD_ALLOW_SEALING)
	os.write(fd, data)
	os.lseek(fd, 0, os.SEEK_SET)
	if seals:
		fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
	return fd


@case("packed projects that lie, descriptors of the wrong kind and hidden paths that lead out are refused", final="a packed project had its way")
def hostile_project(t):
	top = project(t)
	ask, (stdin, tree, left) = overheard(t, "run", top)
	packed = os.pread(tree, 1 << 20, 0)
	with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own, service(t) as (s, path):
		def status(message=ask, project=tree, into=None):
			into = sealed(b"", False) if into is None else into
			ends = socket.socketpair()
			ends[0].shutdown(socket.SHUT_WR)
			with ends[0], ends[1]:
				return tried(path, (message, [ends[1].fileno(), project, into]))[-1]

		def verdicts():
			return [x["verdict"] for x in known(s, admin, "/v1/executions?limit=100")["executions"]]
		admin = s.token("admin", "--admin")
		t.equal((status(), verdicts()), (200, ["ok"]), "the real thing")
		t.equal(status(project=sealed(packed, False)), 422, "a project that can still be changed")
		t.equal(status(project=os.open(top, os.O_RDONLY)), 422, "a folder")
		t.equal(status(into=own.fileno()), 422, "a socket for what is left")
		t.equal(status(into=os.open("/dev/null", os.O_RDWR)), 422, "a device for it")
		for name, bad in (("nothing", b""), ("no stream", b"x" * 100), ("half of one", packed[:len(packed) // 2]), ("a path that leads out", packed.replace(b"main.py", b"../x.py")),
				  ("a name that is there twice", packed.replace(b"gone.txt", b"list.txt")), ("a whiteout", packed.replace(b"f\0\x80\x01", b"x\0\x80\x01", 1)), ("a block too long", b"\xff\xff\xff\xff" + packed[4:])):
			t.equal((status(project=sealed(bad)), set(verdicts()[:1])), (200, {"refused"}), name)
		t.equal(status(message=ask.replace(b".env\0", b"../x\0")), 422, "a hidden path that leads out")
		t.check(status(into=sealed(b"")) == 200 and verdicts()[0] == "failed", "a place that takes nothing is the run's misfortune")
		t.equal((status(), verdicts()[0]), (200, "ok"), "it serves as before")
	t.check(not os.path.exists(os.path.join(os.path.dirname(top), "x.py")), "nothing came out")


@case("commits made at the service come over with --apply-git, and a service that dies leaves the project as it was", final="a project was changed by a run that was lost")
def repository(t):
	top = t.path("repo")
	os.mkdir(top)
	t.path("repo/file", "one\n")

	def git(*words):
		return subprocess.run(["git", "-C", top, "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True, capture_output=True, env=harness.clean_env(), timeout=PATIENCE).stdout
	if not shutil.which("git"):
		t.skip("needs git")
	git("init", "-q", "-b", "main")
	git("add", "file")
	git("commit", "-qm", "first")
	with service(t) as (s, path):
		p = away(t, path, "exec", "--workspace", top, "--apply-git", "-c", "echo two >> file && git commit -qam second", stdin=b"")
		t.equal((p.rc, git("log", "--format=%s").split(), git("status", "--porcelain")), (0, [b"second", b"first"], b""), "a commit", p)
		before = contents(top)
		words = away_words(t, "exec", "--workspace", top, "--apply", "--", "sh", "-c", "echo three >> file; echo up; sleep 60; :", mark())
		p = t.popen(words, client_env(path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		t.equal(p.stdout.readline(), b"up\n", "it runs")
		os.kill(s.processes()["runner"], signal.SIGKILL)
		_, err = p.communicate(timeout=PATIENCE)
		t.check(p.returncode == 121 and b"service" in err, "it says why", err)
		wait_until("nothing of it runs", lambda: not marked())
		t.equal(contents(top), before, "the project")


@case("a service of an ordinary user's own does the same, where the program works on a copy of the project")
def own_service(t):
	need_users(t)
	with tempfile.TemporaryDirectory() as top:
		os.chmod(top, 0o755)
		mine = os.path.join(top, "project")
		shutil.copytree(project(t), mine, symlinks=True)
		for folder, folders, files in os.walk(top):
			for name in folders + files:
				os.lchown(os.path.join(folder, name), STRANGER, STRANGER)
		os.chown(top, STRANGER, STRANGER)
		path = os.path.join(top, "run.sock")
		env = harness.clean_env(client_env("", HOME=top, TMPDIR=top, BRIG_STATE=os.path.join(top, "state"),
						   BRIG_ALLOW_DEGRADED="id_separation,memory_limit,swap_limit,pids_limit,cpu_quota,cpu_time,socket_memory"))
		words = [harness.brig_path(), "serve", "--listen", "127.0.0.1:0", "--socket", path]
		with subprocess.Popen(words, env=env, cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=becomes(STRANGER)) as server:
			try:
				t.check(server.stdout.readline().startswith(b"ready"), "it serves")
				p = as_stranger(t, path, "run", "--json", "--apply", mine)
			finally:
				server.terminate()
				server.wait(PATIENCE)
		r, after = json.loads(p.out), contents(mine)
		t.equal((r["verdict"], r["workspace"]["state"]), ("ok", "applied"), "the run", r)
		t.equal({c["path"]: c["change"] for c in r["changes"]}, {"gone.txt": "deleted", "list.txt": "modified", "new": "added", "new/deep": "added", "new/deep/file": "added", "script.sh": "modified", "second": "added"}, "its changes")
		t.check("gone.txt" not in after and after["second"][2] == "list.txt" and after["script.sh"][1] == 0o700 and after[".env"][2] == b"SECRET=1\n", "the project", after)


# ---- users of the policy ---------------------------------------------------------------------------

POLICY = """
users:
  - user: %d
    max_trust: trusted
    admin: true
    concurrent: 3
  - group: %d
    max_trust: untrusted
    languages: [python]
  - user: "%d"
    refuse: true
  - group: root
    refuse: true
"""


@case("users and groups of the policy have what their row gives them, on both sockets", final="a user had more than the policy gives")
def mapped(t):
	need_users(t)
	group, other = STRANGER + 10, STRANGER + 2
	policy = t.path("policy.yaml", POLICY % (STRANGER, group, other))
	with tempfile.TemporaryDirectory() as folder:
		os.chmod(folder, 0o755)
		http = os.path.join(folder, "http.sock")
		with service(t, "--unix", http, "--policy", policy) as (s, path):
			status, me = ask_unix(http, "/v1/whoami", STRANGER)
			t.equal((status, me["name"], me["max_trust"], me["admin"], me["concurrent"]), (200, f"uid:{STRANGER}", "trusted", True, 3), "a user", me)
			t.equal(ask_unix(http, "/v1/cells", STRANGER)[0], 200, "who administers")
			t.equal(ask_unix(http, "/v1/whoami", other)[0], 403, "who is refused")
			t.equal(ask_unix(http, "/v1/whoami", 0)[1]["admin"], True, "root, whom no row for a group is about")
			t.equal(ask_unix(http, "/v1/whoami", STRANGER + 3)[0], 403, "whose process has root's group")
			p = as_stranger(t, path, "run", "--json", *PYTHON, "1", uid=STRANGER + 3)
			t.equal(json.loads(p.out)["trust"], "unknown", "whom no row is about", p)
			p = as_stranger(t, path, "run", "--trust", "trusted", *PYTHON, "1", uid=STRANGER + 3)
			t.check(p.rc == 125 and b"trusted" in p.err, "who has no more than that", p)
			p = as_stranger(t, path, "run", "--trust", "trusted", *PYTHON, "print(1)")
			t.equal((p.rc, p.out), (0, b"1\n"), "trusted", p)
			p = as_stranger(t, path, "run", "--json", *PYTHON, "print(1)", uid=STRANGER + 3, groups=(7, group, 8))
			t.equal(json.loads(p.out)["trust"], "untrusted", "a supplementary group", p)
			p = as_stranger(t, path, "exec", "--", "true", uid=STRANGER + 3, groups=(group,))
			t.check(p.rc == 125 and b"language" in p.err, "a language that it may not have", p)
			p = as_stranger(t, path, "run", *PYTHON, "1", uid=group)	# whose own group it is
			t.equal(p.rc, 0, "the group that a process has", p)
			p = as_stranger(t, path, "run", *PYTHON, "1", uid=other, groups=(group,))
			t.equal(p.rc, 0, "the first row counts", p)
			p = as_stranger(t, path, "run", *PYTHON, "1", uid=other)
			t.check(p.rc == 125 and b"policy.yaml:10" in p.err, "who is refused is told where", p)
			for text, is_read in ((f"users:\n  - user: {STRANGER}\n    refuse: true\n", lambda: ask_unix(http, "/v1/whoami", STRANGER)[0] == 403),
					      ("users:\n  - user: nobody-of-that-name\n", lambda: "nobody-of-that-name" in s.stderr()),
					      ("users: []\n", lambda: ask_unix(http, "/v1/whoami", STRANGER)[0] == 200)):
				t.equal(ask_unix(http, "/v1/whoami", STRANGER)[0] == 403, "refuse" not in text, "until then what was before, also after a wrong one")
				t.path("policy.yaml", text)
				os.kill(s.pid, signal.SIGHUP)
				wait_until("the policy is read anew", is_read)
			t.equal(ask_unix(http, "/v1/whoami", STRANGER)[1]["max_trust"], "unknown", "without a row")


@case("a user or group that is not there is an error with its place, and so is a row that makes no sense")
def wrong_users(t):
	for text, words in (("users:\n  - user: nobody-of-that-name\n", ("policy.yaml:2", "nobody-of-that-name")), ("users:\n\n  - group: no-such-group\n", ("policy.yaml:3", "no-such-group"))):
		policy = t.path("policy.yaml", text)
		p = t.brig("serve", "--listen", "127.0.0.1:0", "--no-auth", "--socket", "none", "--policy", policy, "--state", t.path("state"))
		t.check(p.rc == 125 and all(w.encode() in p.err for w in words), text, p)
		t.equal(t.brig("policy", "check", policy).rc, 0, "whose form is good")
	for text, place, word in (("users: all\n", "1:8", "list"), ("users:\n  - max_trust: trusted\n", "2:5", "one user or one group"), ("users:\n  - user: a\n    group: b\n", "2:5", "one user or one group"),
				  ("users:\n  - user: a\n    max_trus: trusted\n", "3:5", "max_trust"), ("users:\n  - user: a\n    max_trust: most\n", "3:16", "untrusted"),
				  ("users:\n  - user: a\n    languages: []\n", "3:16", "list"), ("users:\n  - user: a\n    concurrent: 0\n", "3:17", "above 0"), ("users:\n  - user: a:b\n", "2:11", "name"),
				  ("users:\n  - user: a\n    refuse: true\n    admin: true\n", "2:5", "nothing else"), ("users:\n  - user: a\n    user: b\n", "3:5", "twice"), ("users:\n  - a\n", "2:5", "key: value"),
				  ("users:\n  - user: a\n    languages: {x: y}\n", "3:16", "list"), ("trust_levels:\n  trusted:\n    users: []\n", "3:5", "top")):
		p = t.brig("policy", "check", t.path("policy.yaml", text))
		t.check(p.rc == 1 and f":{place}:".encode() in p.out and word.encode() in p.out, text, p)
	p = t.brig("policy", "show", "--policy", t.path("policy.yaml", POLICY % (1, 2, 3)))
	t.check(p.rc == 0 and b"group 2" in p.out and b"max_trust untrusted" in p.out and b"policy.yaml:3" in p.out, "it is shown", p)
	p = t.brig("policy", "show", "--json", "--policy", t.path("policy.yaml"))
	t.equal([row.get("user") or row["group"] for row in json.loads(p.out)["users"]], ["1", "2", "3", "root"], "and in the document", p)
