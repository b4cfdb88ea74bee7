# SPDX-License-Identifier: Apache-2.0
"""Files and ports of a session."""
import os
import stat

from harness import Failed, case
from owner import Owner, holds, same

CREATE, WRITE, REMOVE, RENAME, CHMOD = range(1, 6)


def entry(s, path):
	tag = s.ask("stat", path=path)
	done = s.wait("done", tag)
	found = s.take("entry", tag)
	return found[0]["entry"] if found else done["error"]


@case("files are written, read, told of, moved and removed; folders are made on the way")
def plain(t):
	with Owner(t) as owner:
		s = owner.session()
		same("written", s.done("open", path="a/b/c.txt", content="hällo\n")["written"], 7)
		same("read", s.done("open", path="/workspace/a/b/c.txt")["content"], "hällo\n")
		same("seen inside", s.command("cat", "a/b/c.txt").out, "hällo\n")
		e = entry(s, "a/b/c.txt")
		same("told", (e["path"], e["bytes"], stat.S_ISREG(e["mode"]), stat.S_IMODE(e["mode"])), ("a/b/c.txt", 7, True, 0o644))
		same("made", s.done("mkdir", path="d/e")["error"], "")
		same("again", s.done("mkdir", path="d/e")["error"], "EEXIST")
		same("moved", s.done("move", path="a/b/c.txt", to="f/g")["error"], "")
		same("gone", entry(s, "a/b/c.txt"), "ENOENT")
		same("there", s.done("open", path="f/g")["content"], "hällo\n")
		same("to another mount and back", [s.done("move", path="f/g", to="/tmp/x/g")["error"], s.done("move", path="/tmp/x/g", to="f/g")["error"]], ["", ""])
		same("as it was", (s.done("open", path="f/g")["content"], stat.S_IMODE(entry(s, "f/g")["mode"]), entry(s, "/tmp/x/g")), ("hällo\n", 0o644, "ENOENT"))
		same("a folder with all that is in it", [s.done("move", path="f", to="/tmp/y/f")["error"], s.done("move", path="/tmp/y/f", to="f")["error"]], ["", ""])
		same("not onto one that has files", [s.done("open", path="/tmp/z/file", content="x")["error"], s.done("move", path="f", to="/tmp/z")["error"]], ["", "ENOTEMPTY"])
		same("as it was then", s.done("open", path="f/g")["content"], "hällo\n")
		same("removed", s.done("remove", path="f")["error"], "")
		same("gone too", entry(s, "f/g"), "ENOENT")
		same("what is not there", (s.done("open", path="nope")["error"], s.done("open", path="d")["error"],
		     s.done("remove", path="nope")["error"]), ("ENOENT", "EISDIR", "ENOENT"))
		same("what is the cell's", s.done("open", path="/etc/passwd", content="x")["error"] != "", True)
		owner.kept = [k for k in owner.kept if k["event"] != "done"]


@case("folders are listed to a depth, bounded")
def listing(t):
	with Owner(t) as owner:
		s = owner.session()
		s.command("sh", "-c", "mkdir -p x/y/z; touch x/1 x/y/2 x/y/z/3; ln -s /etc/passwd x/link; ln -s nowhere x/dangling")

		def names(**members):
			tag = s.ask("list", **members)
			done = s.wait("done", tag)
			return sorted(e["entry"]["path"] for e in s.take("entry", tag)), done
		same("one level", names(path="x")[0], ["x/1", "x/dangling", "x/link", "x/y"])
		same("all", names(path="x", depth=9)[0], ["x/1", "x/dangling", "x/link", "x/y", "x/y/2", "x/y/z", "x/y/z/3"])
		few, done = names(path="x", depth=9, limit=3)
		same("some", (len(few), done["flags"]), (3, 1))
		same("what is no folder", names(path="x/1")[1]["error"], "ENOTDIR")
		link, dangling = entry(s, "x/link"), entry(s, "x/dangling")
		same("links", (stat.S_ISLNK(link["mode"]), link["target"], stat.S_ISREG(link["target_mode"]), dangling["target"], dangling["target_mode"]),
		     (True, "/etc/passwd", True, "", 0))


@case("links lead nowhere but into the cell, and what is no file is not handed out")
def links_out(t):
	secret = t.path("secret", "of the host")
	with Owner(t) as owner:
		s = owner.session()
		s.command("sh", "-c", f"ln -s {secret} out; ln -s ../../../../../../..{secret} up; ln -s /proc/1/root{secret} root; mkfifo pipe; ln -s /dev/zero zero; ln -s /etc/hostname own")
		for name in ("out", "up", "root"):
			done = s.done("open", path=name)
			if not done["error"]:
				raise Failed(f"{name} leads out: {done}")
		same("a fifo and a device", (s.done("open", path="pipe")["error"], s.done("open", path="zero")["error"]), ("ENXIO", "ENXIO"))
		own = s.done("open", path="own")["content"].strip()
		if own == os.uname().nodename:
			raise Failed("the link leads to the host's file")
		s.command("sh", "-c", "mkdir keep; echo 1 > keep/file; mkdir gone; ln -s ../keep gone/link")
		same("removing a link", (s.done("remove", path="gone")["error"], s.done("open", path="keep/file")["content"]), ("", "1\n"))


@case("changes below a watched folder are told, new folders included")
def watching(t):
	with Owner(t) as owner:
		s = owner.session()
		s.command("mkdir", "-p", "w/deep")
		flat, deep = s.ask("watch", path="w"), s.ask("watch", path="w", recursive=1)
		same("begun", (s.wait("done", flat)["error"], s.wait("done", deep)["error"]), ("", ""))

		def until(tag, change, name):
			return owner.wait(lambda e: e["event"] == "changed" and e["tag"] == tag and e["change"] == change and e["name"] == name)
		s.command("sh", "-c", "echo 1 > w/a; chmod 600 w/a; mv w/a w/b; rm w/b; mkdir w/new")
		for tag in (flat, deep):
			for change, name in ((CREATE, "a"), (WRITE, "a"), (CHMOD, "a"), (RENAME, "a"), (CREATE, "b"), (REMOVE, "b"), (CREATE, "new")):
				until(tag, change, name)
		s.command("sh", "-c", "echo 1 > w/deep/c; echo 1 > w/new/d")
		until(deep, CREATE, "deep/c")
		until(deep, CREATE, "new/d")
		# A tree at once: nobody could report what is in a folder before the folder itself was told.
		s.command("sh", "-c", "mkdir -p w/n1/n2/n3; echo 1 > w/n1/n2/f")
		for change, name in ((CREATE, "n1"), (CREATE, "n1/n2"), (CREATE, "n1/n2/n3"), (CREATE, "n1/n2/f"), (WRITE, "n1/n2/f")):
			until(deep, change, name)
		s.command("sh", "-c", "mv w/n1 w/m1")
		until(deep, CREATE, "m1")
		owner.kept = [e for e in owner.kept if e["event"] != "changed"]
		s.command("sh", "-c", "echo 1 > w/m1/n2/g; rm w/m1/n2/g; echo 1 > w/last")
		until(deep, CREATE, "last")
		told = [(e["change"], e["name"]) for e in owner.kept if e["event"] == "changed" and e["tag"] == deep]
		same("after a rename: once, by its new name", [name for change, name in told if change in (CREATE, REMOVE)], ["m1/n2/g"] * 2)
		same("unwatched", s.done("unwatch", of=deep)["error"], "")
		owner.kept = [e for e in owner.kept if e["event"] != "changed"]
		s.command("sh", "-c", "echo 1 > w/z")
		until(flat, CREATE, "z")
		if any(e.get("tag") == deep for e in owner.kept if e["event"] == "changed"):
			raise Failed("it is still told")
		same("what is not there", s.done("watch", path="nowhere")["error"], "ENOENT")


@case("a server in the cell is reached from outside through the session, and nowhere else")
def ports(t):
	with Owner(t) as owner:
		s, other = owner.session(), owner.session()
		same("nobody listens", s.done("connect", port=8123)["error"], "ECONNREFUSED")
		p = s.start("python3", "-u", "-c", "import http.server, sys\nopen('index.html', 'w').write('served')\n"
			    "h = http.server.HTTPServer(('127.0.0.1', 8123), http.server.SimpleHTTPRequestHandler)\nprint('up', flush=True)\nh.serve_forever()")
		p.said("up")
		holds("the answer", s.done("connect", port=8123)["content"], "served")
		same("another session", other.done("connect", port=8123)["error"], "ECONNREFUSED")
		same("the host", t.run(["python3", "-c", "import socket; print(socket.socket().connect_ex(('127.0.0.1', 8123)) != 0)"], stdin=b"").out, b"True\n")


@case("disk and inode limits hold for what comes from outside, too")
def limits(t):
	with Owner(t) as owner:
		s = owner.session({"disk_limit": "64k"})
		done = s.done("open", path="big", content="x" * 60000)
		same("fits", done["written"], 60000)
		done = s.done("open", path="more", content="x" * 60000)
		if done["written"] >= 60000:
			raise Failed(f"there was room for it: {done}")
