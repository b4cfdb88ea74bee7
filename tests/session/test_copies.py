# SPDX-License-Identifier: Apache-2.0
"""The workspace of one session in another: what comes along, what does not, and what ends it."""
import json
import os

from harness import case
from owner import Owner, holds, same

# Everything below a folder: path, kind, mode, time, content or target; and which names are of one file.
TELL = r"""
import os, stat, hashlib, json
rows, files = [], {}
os.chmod("closed", 0o700)
for top, dirs, names in os.walk(".", followlinks=False):
    for name in sorted(dirs + names):
        path = os.path.join(top, name)
        st = os.lstat(path)
        kind = stat.S_IFMT(st.st_mode)
        what = ""
        if stat.S_ISLNK(st.st_mode):
            what = os.readlink(path)
        elif stat.S_ISREG(st.st_mode):
            if not path.startswith('./closed/'):
                files.setdefault(st.st_ino, []).append(path)
            os.chmod(path, 0o600)
            what = hashlib.sha256(open(path, "rb").read()).hexdigest() + " %d %d" % (st.st_size, st.st_blocks * 512 < st.st_size)
            os.chmod(path, stat.S_IMODE(st.st_mode))
        rows.append([path, kind, stat.S_IMODE(st.st_mode), st.st_mtime_ns, what])
os.chmod("closed", 0)
print(json.dumps([sorted(rows), sorted(sorted(n) for n in files.values() if len(n) > 1)]))
"""

FILL = r"""
import os
os.makedirs("a/empty"); os.makedirs("deep/" + "/".join("d%d" % i for i in range(100)))
open("a/plain", "w").write("plain\n")
os.link("a/plain", "other-name"); os.link("a/plain", "a/third-name")
os.symlink("a/plain", "link"); os.symlink("/etc/passwd", "out"); os.symlink("nowhere", "dangling"); os.symlink(".", "a/loop")
with open("sparse", "wb") as f:
    f.seek(20 << 20); f.write(b"end"); f.truncate(30 << 20)
open("hole-only", "wb").truncate(40 << 20)
open("big", "wb").write(bytes(range(256)) * 20000)
open("nothing", "w")
open("script", "w").write("#!/bin/sh\necho hi\n"); os.chmod("script", 0o755)
open("unreadable", "w").write("still"); os.chmod("unreadable", 0)
open(b"n\xff\n ame".decode("utf-8", "surrogateescape"), "w").write("odd")
os.mkfifo("fifo", 0o640)
os.makedirs("readonly"); open("readonly/in", "w").write("x"); os.chmod("readonly", 0o555)
os.makedirs("sticky"); os.chmod("sticky", 0o1777)
os.makedirs("closed"); open("closed/in", "w").write("c"); os.link("closed/in", "zz-first"); os.link("closed/in", "zz-second"); os.chmod("closed", 0)
for name in ("a/plain", "script", "a/empty", "a"):
    os.utime(name, ns=(10**18, 10**18 + 123456789))
os.utime("link", ns=(10**18, 10**18 + 1), follow_symlinks=False)
"""


def tell(s):
	rows, names = json.loads(s.command("python3", "-c", TELL).out)
	return {tuple(row) for row in rows} | {tuple(n) for n in names}


@case("a workspace is in another session what it was: links of both kinds, modes, times, holes, empty folders, odd names")
def faithful(t):
	file = t.path("saved")
	with Owner(t) as owner:
		s = owner.session()
		filled = s.command("python3", "-c", FILL)
		same("filled", (filled.err, filled.code), ("", 0))
		was = tell(s)
		saved = s.done("save", file=file)
		same("saved", (saved["error"], saved["left_out"]), ("", 0))
		same("holes are no bytes of it", os.path.getsize(file) < 12 << 20, True)
		same("the first is as it was", tell(s), was)
		other = owner.session()
		loaded = other.done("load", file=file)
		same("loaded", (loaded["error"], loaded["entries"], loaded["bytes"]), ("", saved["entries"], saved["bytes"]))
		same("what differs", sorted(map(str, tell(other) ^ was)), [])
		same("a mode that forbids", other.command("sh", "-c", "chmod 600 unreadable && cat unreadable && ./script").out, "stillhi\n")
		s.command("sh", "-c", "echo changed > a/plain; rm script")
		same("one does not see the other", other.command("cat", "a/plain", "script").out, "plain\n#!/bin/sh\necho hi\n")
		other.command("sh", "-c", "echo mine > link")
		same("nor the other the one", s.command("cat", "other-name").out, "changed\n")


@case("a workspace goes from one session to another at once, through a pipe; who reads no more, or is not given all, is heard of on both sides")
def at_once(t):
	pipe = t.path("pipe")
	os.mkfifo(pipe)
	with Owner(t) as owner:
		s = owner.session()
		filled = s.command("python3", "-c", FILL + "os.chmod('script', 0o4755)\nopen('large', 'wb').write(os.urandom(9 << 20) + b'.')\n")
		same("filled", (filled.err, filled.code), ("", 0))
		was = tell(s)
		for _ in range(5):
			other = owner.session()
			loads = other.ask("load", file=pipe)
			saved = s.done("save", file=pipe)
			loaded = other.wait("done", loads)
			same("both", (saved["error"], loaded["error"], loaded["entries"], loaded["bytes"]), ("", "", saved["entries"], saved["bytes"]))
			same("what differs", sorted(map(str, tell(other) ^ was)), [])
			other.stop()
		rows = (("no room", {"disk_limit": "1MB"}, 0, ("ENOSPC", "EFBIG"), ("EPIPE",)), ("too much", {}, 2000000, ("EPROTO",), ("EFBIG", "E2BIG")))
		for what, options, most, at_reader, at_writer in rows:
			other = owner.session(options)
			loads = other.ask("load", file=pipe)
			same(what, s.done("save", file=pipe, most=most)["error"] in at_writer, True)
			same(what + ", of the reader", other.wait("done", loads)["error"] in at_reader, True)
			same("it goes on after " + what, other.command("echo", "on").out, "on\n")
			other.stop()
		same("the first is as it was", tell(s), was)
		other = owner.session()
		loads = other.ask("load", file=pipe)
		s.ask("save", file=pipe)
		other.stop()	# while it reads
		same("the first goes on", s.command("echo", "on").out, "on\n")
		other = owner.session()
		loads = other.ask("load", file=pipe)
		s.ask("save", file=pipe)
		s.stop()
		same("what has not all come", other.wait("done", loads)["error"] in ("", "EPROTO"), True)


@case("sockets and devices are left out and counted; what is running goes on afterwards, and is of one moment in the copy")
def running(t):
	file = t.path("saved")
	with Owner(t) as owner:
		s = owner.session()
		c = s.context()
		c.run("import socket; n = 41; k = socket.socket(socket.AF_UNIX); k.bind('sock'); open('kept', 'w').write('1')")
		# At every moment the second file is the first, or one behind; much lies between them.
		p = s.start("python3", "-c", "import os\nopen('big', 'wb').write(os.urandom(1 << 24))\nn = 0\nwhile True:\n  n += 1\n  for f in ('x', 'y'):\n"
			"    open('new', 'w').write(str(n)); os.rename('new', f)\n  if n % 100 == 0: print('tick', flush=True)")
		p.said("tick")
		saved = s.done("save", file=file)
		same("saved", (saved["error"], saved["left_out"]), ("", 1))
		before = s.output(p.tag, 1).count("tick")
		while s.output(p.tag, 1).count("tick") <= before:
			owner.kept.append(owner.next())
		same("the context", c.run("n + 1").text, "42")
		other = owner.session()
		same("loaded", other.done("load", file=file)["error"], "")
		same("of one moment", other.command("python3", "-c", "print(int(open('x').read()) - int(open('y').read()) in (0, 1), open('kept').read())").out, "True 1\n")
		same("no socket", other.command("test", "-e", "sock").code, 1)
		same("paused stays so", (s.done("pause")["error"], s.done("save", file=file)["error"], s.done("resume")["error"]), ("", "", ""))


@case("a copy is bounded: bytes of the file, depth of the folders; and one at a time")
def bounded(t):
	file = t.path("saved")
	with Owner(t) as owner:
		s = owner.session()
		s.command("sh", "-c", "head -c 3000000 /dev/urandom > big")
		same("too large", s.done("save", file=file, most=1000000)["error"] in ("E2BIG", "EFBIG"), True)
		same("never more than that", os.path.getsize(file) <= 1000000, True)
		s.command("sh", "-c", "head -c 60000000 /dev/urandom > bigger")	# so that the first one is not over before the second is asked for
		first = s.ask("save", file=file)
		holds("at once", s.ask("save", file=t.path("another"), refused=True), "being copied")
		same("the first", s.wait("done", first)["error"], "")
		s.command("rm", "bigger")
		s.command("python3", "-c", "import os\nfor i in range(400):\n  os.mkdir('d'); os.chdir('d')")
		same("too deep", s.done("save", file=file)["error"], "ENAMETOOLONG")
		same("it goes on", s.command("test", "-s", "big").code, 0)


@case("what no steward wrote is no workspace: the session says so and goes on; one that is full says that")
def unsound(t):
	file = t.path("saved")
	with Owner(t) as owner:
		s = owner.session()
		s.command("sh", "-c", "mkdir d; head -c 3000000 /dev/urandom > d/big; ln d/big d/again")
		same("saved", s.done("save", file=file)["error"], "")
		whole = open(file, "rb").read()
		bad = {"empty": b"", "cut": whole[:-1], "half": whole[:len(whole) // 2], "noise": os.urandom(100000), "a name that leads out": whole.replace(b"again", b"../ag", 1),
		       "zeroes": bytes(4096)}
		for what, data in bad.items():
			broken = t.path("broken")
			open(broken, "wb").write(data)
			other = owner.session()
			same(what, other.done("load", file=broken)["error"], "EPROTO")
			same("it goes on after " + what, other.command("echo", "on").out, "on\n")
			other.stop()
		small = owner.session({"disk_limit": "1MB"})
		same("no room", small.done("load", file=file)["error"] in ("ENOSPC", "EFBIG"), True)


@case("a session that ends while it is copied ends at once, and so does an owner")
def ended(t):
	file = t.path("saved")
	with Owner(t) as owner:
		s = owner.session()
		s.command("sh", "-c", "head -c 30000000 /dev/urandom > big")
		s.ask("save", file=file)
		same("verdict", s.stop()["verdict"], "ok")
		s = owner.session()
		s.command("sh", "-c", "head -c 30000000 /dev/urandom > big")
		s.ask("save", file=file)
