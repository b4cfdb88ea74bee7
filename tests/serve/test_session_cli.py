# SPDX-License-Identifier: Apache-2.0
"""brig session: sessions of a service from the command line."""
import base64
import contextlib
import fcntl
import io
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tarfile
import termios
import time

import harness
from client import PATIENCE, client_env, mark, marked, read_quietly, wait_until
from commands import as_stranger, service
from harness import Failed, case


class Commands:
	"""`brig session` at one service, with one session."""
	def __init__(self, t, path):
		self.t, self.env = t, client_env(path)
		p = self.brig("start", "--timeout", "10m")
		self.id = p.out.decode().strip()
		t.check(p.rc == 0 and re.fullmatch("[a-z2-7]{16}", self.id), "an id", p)

	def brig(self, *words, stdin=b"", **kw):
		return self.t.brig("session", *words, env=self.env, stdin=stdin, **kw)

	def run(self, code, *words, **kw):
		return self.brig("run", *words, self.id, "-c", code, **kw)

	def exec(self, *words, options=(), **kw):
		return self.brig("exec", *options, self.id, "--", *words, **kw)

	def files(self, verb, *words, options=(), **kw):
		return self.brig("files", *options, verb, self.id, *words, **kw)

	def json(self, *words, **kw):
		p = self.brig(*words, **kw)
		try:
			return json.loads(p.out)
		except ValueError:
			raise Failed(f"no JSON: {p}") from None

	def popen(self, *words, **kw):
		return self.t.popen([harness.brig_path(), "session", *words], self.env, **kw)


@contextlib.contextmanager
def session(t, *args):
	with service(t, *args) as (_, path):
		yield Commands(t, path)


@case("code in an interpreter that stays: output, the last value, pictures, errors and limits, with the statuses of brig run")
def runs(t):
	with session(t) as c:
		p = c.run("n = 20; print('said', end='')")
		t.equal([p.rc, p.out], [0, b"said"], "output", p)
		p = c.run("print('x', end='')\nn * 2 + 2")
		t.equal([p.rc, p.out, p.err], [0, b"x\n42\n", b""], "the value, on a line of its own", p)
		p = c.run("1 / 0")
		t.check(p.rc == 1 and p.out == b"" and b"ZeroDivisionError" in p.err, "an error", p)
		t.equal(c.run("while True: pass", "--timeout", "300ms").rc, 124, "a time limit")
		t.equal(c.run("import os; os.environ['E'] + str(n)", "-e", "E=v").out, b"v20\n", "a variable; and the state is there")
		t.equal(c.brig("run", c.id, "-", stdin=b"n + 1").out, b"21\n", "from standard input")
		t.equal(c.brig("run", c.id, t.path("code.js", b"[1, 2].map(x => x * 2)")).out, b"[ 2, 4 ]\n", "a file, by its extension")
		png = base64.b64encode(b"\x89PNG!").decode()
		shown = f"import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('{png}')\n    def __repr__(self): return 'P'\n"
		out = t.path("pictures")
		t.equal(c.run(shown + "display(P())\nP()", "--out", out).rc, 0, "pictures")
		t.equal({name: read_quietly(os.path.join(out, name)) for name in os.listdir(out)}, {"picture-1.png": b"\x89PNG!", "picture-2.png": b"\x89PNG!"}, "their files")
		t.equal(c.run("P()", "--out", out).rc, 0, "one more")
		t.equal(sorted(os.listdir(out)), ["picture-1.png", "picture-2.png", "picture-3.png"], "never over another")
		r = json.loads(c.run("n", "--json").out)
		t.equal([r["verdict"], r["results"][0]["text"], r["execution_count"] > 1], ["ok", "20", True], "the document", r)
		events = [json.loads(line) for line in c.run("print('a')\n5", "--events").out.splitlines()]
		t.equal([e.get("event", "verdict") for e in events], ["started", "stdout", "result", "verdict"], "events", events)
		for words in (("run", c.id), ("run", c.id, "a", "b"), ("run", "--context", "x", c.id, "-c", "1"), ("run", c.id, "--timeout", "soon", "-c", "1")):
			t.equal(c.brig(*words).rc, 2, f"wrong use: {words}")


@case("Ctrl-C interrupts the code and shows how it ended; the state stays; kill -9 of the command interrupts it, too")
def interrupted(t):
	with session(t) as c:
		c.run("n = 7")
		for sig, status in ((signal.SIGINT, 1), (signal.SIGKILL, -9)):
			p = c.popen("run", c.id, "-c", "print('up', flush=True)\nwhile True: pass", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
			t.equal(p.stdout.readline(), b"up\n", "it runs")
			p.send_signal(sig)
			_, err = p.communicate(timeout=PATIENCE)
			t.equal([p.returncode, sig == signal.SIGKILL or b"KeyboardInterrupt" in err], [status, True], f"after {sig.name}", err)
		wait_until("it can run again", lambda: c.run("n").out == b"7\n")
		p = c.popen("run", c.id, "-c", "print('up', flush=True)\nwhile True: pass", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		p.stdout.readline()
		t.equal(c.brig("interrupt", c.id).rc, 0, "by another command")
		p.communicate(timeout=PATIENCE)
		t.equal([p.returncode, c.run("n").out], [1, b"7\n"], "interrupted")
		t.equal([c.brig("restart", c.id).rc, c.run("n").rc], [0, 1], "begun anew")


@case("commands: input, signals and the exit status are the command's; one that is detached goes on", final="a command outlived what it belonged to")
def commands(t):
	data = os.urandom(3 << 20)
	with session(t) as c:
		p = c.exec("sh", "-c", "cat; echo err >&2; exit 3", stdin=b"in\n")
		t.equal([p.rc, p.out, p.err], [3, b"in\n", b"err\n"], "its descriptors", p)
		p = c.exec("sh", "-c", "until [ -s more ]; do head -c 1 >> more; done; wc -c", stdin=data)
		t.equal([p.rc, p.out.split()], [0, [b"%d" % (len(data) - 1)]], "more input than waits for a program", p)
		t.equal(c.exec("cat", stdin=data[:200000]).out, data[:200000], "bytes, both ways")
		t.equal(c.exec("cat", options=("-n",), stdin=b"x").out, b"", "no input")
		t.equal(c.exec("sh", "-c", "pwd; echo $V", options=("--cwd", "/tmp", "-e", "V=w")).out, b"/tmp\nw\n", "a folder and a variable")
		p = c.exec("no-such-command")
		t.check(p.rc == 127 and b"could not be started" in p.err, "one that is not there", p)
		t.equal([c.exec("sh", "-c", "kill -9 $$").rc, c.exec("sleep", "60", options=("--timeout", "300ms")).rc], [137, 124], "a crash, a time limit")
		p = c.popen("exec", c.id, "--", "sh", "-c", "trap 'echo got; exit 9' USR1; echo up; while :; do sleep 0.01; done", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		p.stdout.readline()
		p.send_signal(signal.SIGUSR1)
		t.equal([p.communicate(timeout=PATIENCE)[0], p.returncode], [b"got\n", 9], "a signal")
		for sig, status in ((signal.SIGTERM, 128 + 15), (signal.SIGKILL, -9)):
			p = c.popen("exec", c.id, "--", "sh", "-c", "echo up; sleep 60; :", mark(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
			p.stdout.readline()
			p.send_signal(sig)
			p.communicate(timeout=PATIENCE)
			t.equal(p.returncode, status, f"after {sig.name}")
			wait_until("nothing of it runs", lambda: not marked())
		for status, *words in ((128 + 9, "exec", c.id, "--", "sh", "-c", "while :; do echo y; done", mark()), (121, "exec", "--json", c.id, "--", "sh", "-c", "sleep 60; :", mark())):
			p = c.popen(*words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
			wait_until("it runs", marked)
			p.stdout.close()
			t.equal(p.wait(PATIENCE), status, "nothing reads what it writes, or what we print of it")
			wait_until("nothing of it runs", lambda: not marked())
		r = json.loads(c.exec("echo", "x", options=("--json",)).out)
		t.equal([r["verdict"], r["stdout"]], ["ok", "x\n"], "the document")
		p = c.exec("sh", "-c", "sleep 60; :", mark(), options=("--detach",))
		t.check(p.rc == 0 and p.out.strip().isdigit() and marked(), "one that goes on", p)
		t.check(p.out.strip() in c.brig("show", c.id).out, "it is shown")
		t.equal(c.brig("stop", c.id).rc, 0, "the end of the session")
		wait_until("and of all in it", lambda: not marked())


@case("files: sent, fetched, listed, moved, removed, folders and archives; nothing of this host is replaced unasked")
def files(t):
	data = bytes(range(256)) * 300
	with session(t) as c:
		source = t.path("a.bin", data)
		t.equal([c.files("put", source).rc, c.files("get", "a.bin", t.path("b.bin")).rc, read_quietly(t.path("b.bin"))], [0, 0, data], "there and back")
		p = c.files("get", "a.bin", t.path("b.bin"))
		t.check(p.rc == 2 and b"--overwrite" in p.err, "a file that is there", p)
		c.files("put", "-", "d/short", stdin=b"short")
		t.equal([c.files("get", "d/short", t.path("b.bin"), options=("--overwrite",)).rc, read_quietly(t.path("b.bin"))], [0, b"short"], "replaced when asked")
		t.equal(c.files("get", "a.bin", "-").out, data, "to standard output")
		tree = t.path("tree")
		os.makedirs(os.path.join(tree, "in"))
		for name in ("one", "in/two"):
			with open(os.path.join(tree, name), "w", encoding="utf-8") as f:
				f.write(name)
		os.symlink("/etc/passwd", os.path.join(tree, "link"))
		p = c.files("put", tree, "sent")
		t.check(p.rc == 0 and b"2 files" in p.out and b"link" in p.err, "a folder, without its links", p)
		listed = json.loads(c.files("ls", "sent", options=("--json", "--depth", "5")).out)
		t.equal(sorted(f["path"] for f in listed["files"] if f["type"] == "file"), ["sent/in/two", "sent/one"], "its list", listed)
		t.check(b"sent" in c.files("ls").out, "a table")
		with tarfile.open(fileobj=io.BytesIO(c.files("get", "sent", "-", options=("--tar",)).out)) as tar:
			t.equal({m.name: tar.extractfile(m).read() for m in tar.getmembers()}, {"one": b"one", "in/two": b"in/two"}, "as an archive")
		archive = io.BytesIO()
		with tarfile.open(fileobj=archive, mode="w") as tar:
			entry = tarfile.TarInfo("x/y")
			entry.size = 3
			tar.addfile(entry, io.BytesIO(b"tar"))
		t.equal([c.files("put", "-", "from", options=("--tar",), stdin=archive.getvalue()).rc, c.exec("cat", "from/x/y").out], [0, b"tar"], "an archive")
		for words in (("mv", "a.bin", "k/a"), ("rm", "sent"), ("mkdir", "new/er")):
			if words[0] == "mv":
				c.files("mkdir", "k")
			t.equal(c.files(*words).rc, 0, f"changed: {words}")
		t.equal(c.exec("sh", "-c", "ls -d a.bin k/a sent new/er 2>/dev/null").out, b"k/a\nnew/er\n", "what is left")
		t.equal([c.files("get", "gone", t.path("never")).rc, os.path.exists(t.path("never"))], [125, False], "one that is not there")
		t.equal([c.files("cp", "a").rc, c.files("mv", "a").rc, c.files("get").rc], [2, 2, 2], "wrong use")


@case("list, show, contexts, pause, timeout: the same as documents and in words; another user's session is not there", final="a user had another's session")
def looked_at(t):
	with service(t) as (_, path):
		c = Commands(t, path)
		t.equal([s["id"] for s in c.json("list", "--json")["sessions"]], [c.id], "the list")
		t.check(c.id.encode() in c.brig("list").out, "the table")
		made = c.json("contexts", "--json", "--add", "bash", c.id)
		t.equal([made["language"], c.json("contexts", "--json", c.id)["contexts"]], ["shell", [made]], "contexts")
		t.equal([c.run("echo $((6*7))", "--context", str(made["id"])).out, c.brig("contexts", "--remove", str(made["id"]), c.id).rc], [b"42\n", 0], "by its number")
		t.equal(c.json("contexts", "--json", c.id)["contexts"], [], "it has ended")
		t.equal([c.json("pause", "--json", c.id)["state"], c.json("resume", "--json", c.id[:5])["state"]], ["paused", "ready"], "a pause; the beginning of an id is enough")
		t.equal([c.brig("timeout", c.id, "5m").rc, c.brig("timeout", c.id, "never").rc], [0, 2], "a timeout")
		t.equal(c.json("show", "--json", c.id)["processes"], [], "shown")
		c.files("put", "-", "kept", stdin=b"a copy")
		snapshot = c.brig("snapshot", "--name", "first", c.id).out.decode().strip()
		for words in (("fork", "--timeout", "5m", c.id), ("start", "--snapshot", snapshot)):
			copy = c.brig(*words).out.decode().strip()
			t.equal([c.brig("exec", copy, "--", "cat", "kept").out, c.brig("stop", copy).rc], [b"a copy", 0], f"{words[0]}: its files")
		p = c.brig("show", "zzzz")
		t.check(p.rc == 125 and b"brig session list" in p.err, "one that there is not", p)
		if os.getuid() == 0:
			for words in (("show", c.id), ("run", c.id, "-c", "1"), ("stop", c.id), ("exec", c.id, "--", "true"), ("files", "ls", c.id)):
				p = as_stranger(t, path, "session", *words)
				t.check(p.rc == 125 and p.out == b"", f"a stranger: {words}", p)
		t.equal(c.brig("stop", c.id).rc, 0, "told to end")
		wait_until("it has ended", lambda: c.json("show", "--json", c.id)["state"] == "ended")
		t.equal([c.run("1").rc, c.exec("true").rc], [125, 125], "nothing runs in it")
	for env in (client_env(path), client_env(None, BRIG_HOST="none")):
		p = t.brig("session", "list", env=env)
		t.check(p.rc == 121 and b"brig serve" in p.err, "without a service", p)


class Terminal:
	"""A terminal with a command on it."""
	def __init__(self, c, *words):
		self.fd, end = os.openpty()
		self.size(24, 80)
		self.before = termios.tcgetattr(self.fd)
		self.p = c.t.popen(["setsid", "--ctty", harness.brig_path(), "session", *words], c.env, stdin=end, stdout=end, stderr=end)
		os.close(end)
		self.seen = b""

	def size(self, rows, columns):
		fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

	def until(self, text):
		end = time.monotonic() + PATIENCE
		while text not in self.seen:
			if time.monotonic() > end or not select.select([self.fd], [], [], 1)[0]:
				if time.monotonic() > end:
					raise Failed(f"{text!r} never came: {self.seen[-500:]!r}")
				continue
			self.seen += os.read(self.fd, 65536)
		self.seen = self.seen.partition(text)[2]

	def type(self, text):
		os.write(self.fd, text)

	def is_raw(self):
		return not termios.tcgetattr(self.fd)[3] & termios.ECHO


@case("a terminal: keys, ^C and its size reach the program; it is put back at its end, and after kill -9 of the command", final="a program outlived its terminal")
def terminal(t):
	with session(t) as c:
		w = Terminal(c, "open", c.id, "--", "sh", "-c", "trap 'echo stopped' INT; stty size; while :; do read x || continue; stty size; echo \"got <$x>\"; [ \"$x\" = end ] && exit 5; done; :", mark())
		w.until(b"24 80")
		t.check(w.is_raw(), "it is raw")
		w.size(33, 77)
		w.type(b"a\r")
		w.until(b"33 77")
		w.until(b"got <a>")
		w.type(b"\x03")
		w.until(b"stopped")
		w.type(b"end\r")
		w.until(b"got <end>")
		t.equal(w.p.wait(PATIENCE), 5, "its status")
		t.equal(termios.tcgetattr(w.fd), w.before, "the terminal is as it was")
		os.close(w.fd)
		for sig in (signal.SIGKILL, signal.SIGTERM):
			w = Terminal(c, "open", c.id, "--", "sh", "-c", "echo up; sleep 60; :", mark())
			w.until(b"up")
			os.kill(w.p.pid, sig)
			w.p.wait(PATIENCE)
			wait_until("the terminal is as it was", lambda: termios.tcgetattr(w.fd) == w.before)
			wait_until("nothing of it runs", lambda: not marked())
			os.close(w.fd)
		w = Terminal(c, "open", c.id)
		w.type(b"echo $((6*7)) $TERM; exit 4\r")
		w.until(b"42 ")
		t.equal(w.p.wait(PATIENCE), 4, "a shell")
		os.close(w.fd)
		number = c.exec("sh", options=("--detach", "--tty")).out.decode().strip()
		w = Terminal(c, "attach", "--tty", c.id, number)
		w.until(b"$ ")
		w.type(b"stty size; echo $((6*7))\r")
		w.until(b"24 80")
		w.until(b"42")
		os.kill(w.p.pid, signal.SIGTERM)
		t.equal([w.p.wait(PATIENCE), termios.tcgetattr(w.fd)], [130, w.before], "left")
		os.close(w.fd)
		t.check(f"process    {number} running".encode() in c.brig("show", c.id).out, "it goes on")
		w = Terminal(c, "attach", "--tty", c.id, number)
		w.until(b"42")
		w.type(b"exit 6\r")
		t.equal(w.p.wait(PATIENCE), 6, "its end")
		os.close(w.fd)
		number = c.exec("sh", "-c", "echo said; exit 8", options=("--detach",)).out.decode().strip()
		p = c.brig("attach", c.id, number)
		t.equal([p.rc, p.out], [8, b"said\n"], "one without a terminal, from its first output on", p)
		t.equal(c.brig("attach", c.id, "9999").rc, 125, "one that there is not")
		p = c.brig("open", c.id)
		t.check(p.rc == 2 and b"no terminal" in p.err, "without a terminal", p)


@case("what docs/SESSIONS.md shows works, as it stands")
def page(t):
	with open(os.path.join(harness.ROOT, "docs", "SESSIONS.md"), encoding="utf-8") as f:
		blocks = re.findall(r"^```sh no-run session\n(.*?)^```", f.read(), re.S | re.M)
	t.check(blocks, "there are commands")
	os.mkdir(t.path("bin"))
	os.symlink(harness.brig_path(), t.path("bin/brig"))
	with service(t) as (_, path):
		for block in blocks:
			p = t.run(["bash", "-euc", block], stdin=b"", env=client_env(path, PATH=t.path("bin") + ":/usr/local/bin:/usr/bin:/bin"))
			t.check(p.rc == 0 and b"42\nb\na\n" in p.out, "they work", p)
			t.equal(read_quietly(t.path("copy.txt")), b"hello\n", "a file that came back")


@case("with --end-with-stdin a service ends when its input does, and so do its sessions", final="a service outlived who started it")
def ends_with_input(t):
	path = t.path("http.sock")
	p = t.popen([harness.brig_path(), "serve", "--unix", path, "--socket", "none", "--no-auth", "--end-with-stdin", "--drain", "1s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
	try:
		t.check(p.stdout.readline().startswith(b"ready unix:"), "it is there")
		p.stdin.write(b"anything")
		p.stdin.flush()
		with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
			s.connect(path)
			s.sendall(b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
			t.check(s.recv(12) == b"HTTP/1.1 201", "a session")
		p.stdin.close()
		t.equal([p.wait(PATIENCE), os.path.exists(path)], [0, False], "its end")
	finally:
		p.kill()
		p.wait()
		p.stdout.close()
