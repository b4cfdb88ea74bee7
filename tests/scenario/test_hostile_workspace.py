# SPDX-License-Identifier: Apache-2.0
"""Workspaces against programs, and projects, that mean harm: nothing of the host is written, nothing hidden is read."""
import hashlib
import os
import random
import signal
import socket
import stat
import subprocess
import threading
import time

import harness
from harness import BACKEND, case, give

FINAL = "not contained"
SECRET = "tell-nobody-4711"
OUTSIDE = "outside-of-the-project-0815"


def project(t, files, dirs=()):
	top = t.path("project")
	os.mkdir(top)
	for name in dirs:
		os.makedirs(os.path.join(top, name))
	for name, content in files.items():
		full = os.path.join(os.fsencode(top), os.fsencode(name))
		os.makedirs(os.path.dirname(full), exist_ok=True)
		with open(full, "wb") as f:
			f.write(content.encode())
	give(top)
	return top


def portrait(top):
	"""Everything about a tree that a program could have changed; access times are not among it."""
	seen = hashlib.sha256()
	for folder, dirs, files in os.walk(os.fsencode(top)):
		dirs.sort()
		for name in [b"."] + sorted(dirs + files):
			full = os.path.join(folder, name)
			st = os.lstat(full)
			seen.update(repr((full, st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns, st.st_ctime_ns,
					  st.st_nlink)).encode())
			if stat.S_ISREG(st.st_mode) and st.st_size < 1 << 20:
				with open(full, "rb") as f:
					seen.update(f.read())
	return seen.hexdigest()


def run(t, top, code, *args, **kw):
	t.native_only("mounts of native cells")
	before = portrait(top)
	r = t.cell("--trust", "trusted", "--workspace", top, "--timeout", t.secs(30), *args, code=code, lang="python", **kw)
	t.equal(portrait(top), before, "the project after the run", r)
	return r


def changes(r):
	return {(row["path"], row["change"]): row for row in r.json["changes"]}


TRY = """
import os
def attempt(what, call):
	try:
		print(what, "->", call())
	except (OSError, ValueError, AttributeError) as e:
		print(what, "->", getattr(e, "strerror", e))
"""


@case("a program that changes everything it can reach leaves the project as it was, and every change is listed")
def everything_changed(t):
	top = project(t, {"a": "a", "gone": "g", "d/x": "x", "d/y": "y", "keep": "k", "shut/f": "f"})
	os.chmod(os.path.join(top, "shut"), 0o555)
	r = run(t, top, TRY + """
import stat
open("a", "w").write("changed"); os.unlink("gone"); os.chmod("keep", 0o7777)
open("suid", "w").write("s"); os.chmod("suid", 0o6755)
os.unlink("d/x"); os.unlink("d/y"); os.rmdir("d"); open("d", "w").write("now a file")
os.mkfifo("fifo"); os.symlink("/etc/passwd", "link"); os.link("a", "hard")
import socket; s = socket.socket(socket.AF_UNIX); s.bind("sock")
attempt("device", lambda: os.mknod("dev", 0o600 | stat.S_IFCHR, os.makedev(1, 3)))
attempt("block", lambda: os.mknod("blk", 0o600 | stat.S_IFBLK, os.makedev(7, 0)))
attempt("chown", lambda: os.chown("a", 0, 0))
open(b"new\\nline", "w").write("n"); open(b"\\xff\\xfe", "w").write("b"); open("0000", "w").write("z"); os.chmod("0000", 0)
deep = "/".join(["l"] * 40); os.makedirs(deep); open(deep + "/end", "w").write("e"); os.chmod("l", 0o555)
""")
	t.verdict(r, "ok")
	for what in (b"device", b"block", b"chown"):
		t.check(what + b" -> None" not in r.stdout, f"{what} was allowed", r)
	seen = changes(r)
	for key in (("a", "modified"), ("gone", "deleted"), ("suid", "added"), ("hard", "added"), ("0000", "added"),
		    ("/".join(["l"] * 40) + "/end", "added"), ("link", "added")):
		t.check(key in seen, f"{key} is not listed", sorted(seen))
	t.check(not [path for path, _ in seen if path.startswith("shut")], "an unchanged folder is listed", sorted(seen))
	t.equal(seen[("link", "added")]["type"], "link", "the kind of the link")
	t.equal(seen[("suid", "added")]["mode"] & 0o7000, 0, "set-uid and the like in the list")
	t.check(any("new" in path and "line" in path for path, _ in seen), "a name with a newline is not listed", sorted(seen))
	regular = [row for (path, _), row in seen.items() if path in ("fifo", "sock")]
	t.check(all(row["type"] not in ("file", "directory", "link") for row in regular), "a FIFO passes for a file", regular)


@case("links in a project lead nowhere: not to host files, and what they name is not read back")
def links_out(t):
	outside = t.path("outside", OUTSIDE)
	top = project(t, {"plain": "p"})
	os.symlink(outside, os.path.join(top, "out"))
	os.symlink("../outside", os.path.join(top, "up"))
	os.symlink(t.dir, os.path.join(top, "folder"))
	give(top)
	r = run(t, top, TRY + """
for name in ("out", "up", "folder/outside", "../outside"):
	attempt(name, lambda: open(name).read())
os.unlink("plain"); os.symlink(%r, "plain"); os.symlink(%r, "fresh")
""" % (outside, outside))
	t.verdict(r, "ok")
	t.check(OUTSIDE.encode() not in r.stdout, "a link led out of the cell", r)
	for folder, _, files in os.walk(t.state):
		for name in files:
			with open(os.path.join(folder, name), "rb") as f:
				t.check(OUTSIDE.encode() not in f.read(), "what a link named was read back", name)


MASKED = TRY + """
import ctypes, errno, shutil, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
	ctypes.set_errno(0)
	got = getattr(libc, name)(*args)
	return got if got >= 0 else errno.errorcode[ctypes.get_errno()]
def dump(path):
	with open(path, "rb") as f:
		return f.read()
os.makedirs("aside")
for path in (".env", "sub/.env", "sub/deep/id_rsa"):
	b = path.encode()
	attempt("read", lambda: dump(path))
	attempt("size", lambda: os.stat(path).st_size)
	attempt("write", lambda: open(path, "w"))
	attempt("append", lambda: open(path, "a"))
	attempt("truncate", lambda: os.truncate(path, 10))
	attempt("chmod", lambda: os.chmod(path, 0o777))
	attempt("utime", lambda: os.utime(path))
	attempt("unlink", lambda: os.unlink(path))
	attempt("rename", lambda: os.rename(path, "moved"))
	attempt("replace", lambda: (open("mine", "w").close(), os.rename("mine", path)))
	attempt("exchange", lambda: call("renameat2", -100, b, -100, b"plain", 2))
	attempt("hard link", lambda: os.link(path, "linked"))
	attempt("hard link, followed", lambda: os.link(path, "linked", follow_symlinks=True))
	attempt("link", lambda: (os.symlink("/workspace/" + path, "soft"), dump("soft"), os.unlink("soft")))
	attempt("by /proc", lambda: dump("/proc/self/cwd/" + path))
	attempt("by root of 1", lambda: dump("/proc/1/root/workspace/" + path))
	attempt("umount", lambda: call("umount2", b"/workspace/" + b, 2))
	attempt("umount, again", lambda: call("umount2", b"/workspace/" + b, 8))
	attempt("mount", lambda: call("mount", b"/workspace", b"/workspace/aside", None, 4096 | 16384, None))
	attempt("open_tree", lambda: call("syscall", 428, -100, b"/workspace", 1))
	attempt("unshare", lambda: call("unshare", 0x10020000))
	attempt("chroot", lambda: os.chroot("/workspace"))
	attempt("handle", lambda: call("name_to_handle_at", -100, b, ctypes.create_string_buffer(b"\\x80" + b"\\0" * 150), ctypes.byref(ctypes.c_int()), 0))
attempt("rename the folder", lambda: os.rename("sub", "other"))
for path in ("sub", "other"):
	attempt("in the folder", lambda: [dump(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs])
	attempt("copy of the folder", lambda: shutil.copytree(path, "copy-" + path, symlinks=True))
	attempt("remove the folder", lambda: shutil.rmtree(path))
	attempt("exec", lambda: subprocess.run(["/bin/cat", path + "/.env", path + "/deep/id_rsa"], capture_output=True).stdout)
for d, _, fs in os.walk("/workspace"):
	for f in fs:
		attempt("everything", lambda: dump(os.path.join(d, f)))
for path in ("/tmp", "/dev/shm", "/tmp/0", "/tmp/lower", "/tmp/upper", "/proc/self/mountinfo"):
	attempt("places", lambda: os.listdir(path) if os.path.isdir(path) else dump(path))
"""


@case("hidden files stay hidden: read, moved, linked, unmounted, copied, replaced, with the folder that they are in")
def masks_hold(t):
	top = project(t, {".env": SECRET, "sub/.env": SECRET, "sub/deep/id_rsa": SECRET, "plain": "plain text"})
	r = run(t, top, MASKED)
	t.verdict(r, "ok")
	t.check(b"plain text" in r.stdout, "the other files cannot be read", r)
	t.check(SECRET.encode() not in r.stdout, "a hidden file was read", r)
	t.check(os.fsencode(t.dir) not in r.stdout, "the cell knows the project's path on the host", r)
	for path in (".env", "sub/.env", "sub/deep/id_rsa"):
		t.check(not [key for key in changes(r) if key[0] == path], f"{path} is listed as changed", r.json["changes"])
	rows = {row["check"]: row for row in r.json["evidence"]}
	t.check(rows["masks"]["kept"], "the masks are not in the evidence", rows["masks"])


@case("hidden folders and links are empty, and what is in them cannot be named")
def hidden_folder(t):
	top = project(t, {".ssh/key": SECRET, "real": SECRET, "plain": "p"})
	os.symlink("real", os.path.join(top, ".env"))
	give(top)
	r = run(t, top, TRY + """
attempt("list", lambda: os.listdir(".ssh"))
attempt("key", lambda: open(".ssh/key").read())
attempt("make", lambda: open(".ssh/new", "w"))
attempt("move", lambda: os.rename(".ssh", "ssh"))
attempt("link", lambda: open(".env").read())
""", env={"BRIG_WORKSPACE_HIDE": ".ssh"})
	t.verdict(r, "ok")
	t.check(b"list -> []" in r.stdout, "the hidden folder is not empty", r)
	t.check(SECRET.encode() not in r.stdout, "a hidden file was read", r)


@case("what becomes of .git in the copy is no change, and the project's own stays as it is")
def git_stays(t):
	files = {".git/config": "[core]", ".git/hooks/sample": "#", ".git/HEAD": "ref", "f": "f"}
	top = project(t, files)
	r = run(t, top, """
import os, shutil
print(open(".git/config").read())
open(".git/config", "a").write("[alias]")
open(".git/hooks/pre-commit", "w").write("#!/bin/sh")
os.unlink(".git/hooks/sample")
os.chmod(".git", 0o777)
shutil.copytree(".git", "other")
shutil.rmtree(".git")
os.mkdir(".git")
open(".git/config", "w").write("replaced")
""")
	t.verdict(r, "ok")
	t.check(b"[core]" in r.stdout, ".git cannot be read", r)
	t.check(not any(".git" in c["path"] for c in r.json["changes"]), "a change of .git is listed", r)
	t.brig("workspace", "apply", r.json["id"])
	for path, text in files.items():
		with open(os.path.join(top, path), encoding="utf-8") as f:
			t.equal(f.read(), text, path)
	t.check(not os.path.exists(os.path.join(top, ".git/hooks/pre-commit")), "a hook came over", r)


@case("a read-only workspace takes no write, and is not among the writable places")
def read_only(t):
	top = project(t, {"f": "f", "d/x": "x", ".env": SECRET})
	r = run(t, top, TRY + """
import errno
for name, call in (("write", lambda: open("f", "w")), ("make", lambda: open("new", "w")), ("unlink", lambda: os.unlink("f")),
		   ("mkdir", lambda: os.mkdir("m")), ("chmod", lambda: os.chmod("f", 0o777)), ("rename", lambda: os.rename("f", "g")),
		   ("in a folder", lambda: open("d/y", "w")), ("utime", lambda: os.utime("f"))):
	try:
		call(); print("WROTE by", name)
	except OSError as e:
		print(name, errno.errorcode[e.errno])
open("/tmp/still", "w").write("fine"); print(open("f").read() + open("d/x").read())
""", env={"BRIG_WORKSPACE_MODE": "ro"})
	t.verdict(r, "ok")
	t.check(b"fx" in r.stdout and b"WROTE" not in r.stdout, "the workspace could be written to", r)
	rows = {row["check"]: row for row in r.json["evidence"]}
	t.equal(rows["workspace"]["enforced"], "ro", "the evidence")
	t.check("/workspace" not in rows["writable_places"]["enforced"], "it is a writable place", rows["writable_places"])


@case("the disk limit holds in a workspace, whether files are made or changed")
def disk_limit(t):
	top = project(t, {"old": "x" * 3000000, "small": "s"})
	for code in ("open('new', 'wb').write(bytes(1 << 20) * 16)",
		     "for i in range(64): open(f'n{i}', 'wb').write(b'y' * (1 << 18))",
		     "f = open('old', 'ab'); [f.write(b'z' * (1 << 18)) for _ in range(64)]"):
		r = run(t, top, code + "\n", "--env", "X=1", env={"BRIG_DISK_LIMIT": "8m"})
		t.verdict(r, "disk_limit")
		rows = {row["check"]: row for row in r.json["evidence"]}
		t.check(rows["disk_limit"]["kept"], "the limit is not kept", rows["disk_limit"])


@case("a sparse file of 1 TB in the project, and programs that make them, take nobody's disk")
def sparse(t):
	top = project(t, {"f": "f"})
	try:
		os.truncate(os.path.join(top, "f"), 1 << 40)
	except OSError as e:
		t.skip(f"this file system has no such files: {e.strerror}")
	r = run(t, top, TRY + """
print(os.stat("f").st_size, open("f", "rb").read(4))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
attempt("made", lambda: os.truncate("f", 5) or open("g", "w").truncate(1 << 40))
for i in range(40):
	open(f"s{i}", "w").truncate(90 << 20)
""")
	if r.verdict == "refused":	# it would have to be copied: an ordinary user, or a kernel without such overlays
		t.check("mem_limit" in r.json["reason"], "the reason does not say what to do", r)
	else:
		t.verdict(r, "ok")
		t.check(b"1099511627776" in r.stdout and b"made -> None" not in r.stdout, "the sizes of files", r)


@case("many files and deep trees")
def many(t):
	count = 20000 if harness.is_root() else 2000
	deep = "/".join(["deep"] * 40)
	top = project(t, {f"d{i % 50}/f{i}": str(i) for i in range(count)} | {deep + "/end": "the end"})
	r = run(t, top, """
import os
print(sum(len(files) for _, _, files in os.walk(".")), open(%r).read())
for i in range(0, %d, 1000):
	open(f"d{i %% 50}/f{i}", "a").write("changed")
	os.unlink(f"d{(i + 1) %% 50}/f{i + 1}")
""" % (deep + "/end", count))
	t.verdict(r, "ok")
	t.equal(r.stdout.split(b"\n")[0], b"%d the end" % (count + 2), "what the program saw", r)	# and its own source
	kinds = [row["change"] for row in r.json["changes"]]
	t.equal((kinds.count("modified"), kinds.count("deleted")), (count // 1000, count // 1000), "changes", r)


@case("files that are swapped for links while a run begins and is collected lead nowhere")
def swapped(t):
	if BACKEND == "direct":
		t.skip("a program without walls follows links out of its copy")
	outside = t.path("outside", OUTSIDE)
	top = project(t, {f"f{i}": "inside" for i in range(40)})
	names = [os.path.join(top, f"f{i}") for i in range(40)]
	done = threading.Event()

	def swap():
		rng = random.Random(1)
		while not done.is_set():
			name = rng.choice(names)
			side = name + ".side"
			if rng.random() < 0.5:
				os.symlink(outside, side)
			else:
				with open(side, "w", encoding="utf-8") as f:
					f.write("inside")
			os.rename(side, name)
			time.sleep(0.0001)
	swapper = threading.Thread(target=swap)
	swapper.start()
	try:
		for _ in range(4):
			r = t.cell("--trust", "trusted", "--workspace", top, "--timeout", t.secs(20), lang="python", code="""
import os, shutil
for name in sorted(os.listdir(".")):
	try:
		print(open(name).read()); open(name, "a").write("changed")
	except OSError:
		pass
""")
			t.check(OUTSIDE.encode() not in r.stdout, "the program saw a file of the host", r)
	finally:
		done.set()
		swapper.join()
	with open(outside, encoding="utf-8") as f:
		t.equal(f.read(), OUTSIDE, "the file outside")
	for folder, _, files in os.walk(t.state):
		for name in files:
			with open(os.path.join(folder, name), "rb") as f:
				t.check(OUTSIDE.encode() not in f.read(), "a file of the host was read back", name)


@case("special files in a project neither hold up a run nor reach the program")
def special_files(t):
	top = project(t, {"f": "f"})
	os.mkfifo(os.path.join(top, "fifo"))
	with socket.socket(socket.AF_UNIX) as s:
		here = os.open(".", os.O_RDONLY)
		os.chdir(top)
		s.bind("sock")
		os.fchdir(here)
		os.close(here)
		if harness.is_root():
			os.mknod(os.path.join(top, "null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
		os.chmod(os.path.join(top, "f"), 0o4755)
		give(top)
		r = run(t, top, TRY + """
import socket
print(sorted(n for n in os.listdir(".") if n == "f"), os.stat("f").st_mode & 0o1000)
attempt("device", lambda: os.write(os.open("null", os.O_WRONLY), b"reached"))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).connect("sock"))
""")
	t.verdict(r, "ok")
	t.check(b"device -> 7" not in r.stdout and b"socket -> None" not in r.stdout, "a special file could be used", r)


@case("kill -9 at random moments leaves the project as it was, and nothing behind")
def killed(t):
	t.native_only("kills of native cells")
	top = project(t, {f"d/f{i}": str(i) for i in range(200)} | {".env": SECRET})
	program = t.path("program.py", "import os\nfor i in range(0, 200, 2): os.unlink(f'd/f{i}')\nfor i in range(99): open(f'n{i}', 'w').write('n')\n")
	before, census = portrait(top), t.world.census()
	rng = random.Random(7)
	words = t.run_args("--json", "--trust", "trusted", "--workspace", top, program)
	start = time.monotonic()
	p = t.run(words)
	longest = (time.monotonic() - start) * 1.2
	t.equal(p.rc, 0, "exit status without a kill", p)
	for _ in range(12):
		p = t.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		time.sleep(rng.uniform(0, longest))
		p.send_signal(signal.SIGKILL)
		p.wait()
		left = t.world.leftovers(census)
		t.check(not left, "left behind after kill -9", ", ".join(left))
	t.equal(portrait(top), before, "the project after all kills")
