# SPDX-License-Identifier: Apache-2.0
"""Commands through a service: the same results as here, and for an ordinary user the protections of root's keeper."""
import array
import fcntl
import hashlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import tarfile
import tempfile

import harness
from client import PATIENCE, Server, ask_unix, client_env, mark, marked, wait_until
from commands import PYTHON, STRANGER, as_stranger, both, differences, known, need_users, overheard, service, tried
from harness import case


REQUESTS = {
	"ok": ("run", *PYTHON, "print(6 * 7)"),
	"error": ("run", *PYTHON, "import sys; print('x', file=sys.stderr); sys.exit(3)"),
	"crash": ("run", *PYTHON, "import os; os.kill(os.getpid(), 11)"),
	"timeout": ("run", "--timeout", 1, *PYTHON, "import time; time.sleep(60)"),
	"memory_limit": ("run", "--memory", "64m", *PYTHON, "x = bytearray(400 << 20)"),
	"output_limit": ("run", "--set", "output_limit=4096", *PYTHON, "print('x' * 100000)"),
	"blocked": ("run", "--inspect", "strict", *PYTHON, "import os; os.system('x')"),
	"refused": ("run", "--memory", "64t", *PYTHON, "1"),
	"no language": ("run", "-l", "klingon", "-c", "1"),
	"bytes": ("run", *PYTHON, "import sys; sys.stdout.buffer.write(b'\\xff\\0\\xfe' * 10)"),
	"arguments": ("run", "-e", "A=b c", *PYTHON, "import os, sys; print(sys.argv[1:], os.environ['A'])", "--", "x", "y z", ""),
	"left": ("run", *PYTHON, "open('made.txt', 'w').write('x')"),
	"artifacts": ("run", "-a", "*.txt", "--inline-artifacts", "1k", *PYTHON, "open('made.txt', 'w').write('x')"),
	"c": ("run", "-l", "c", "-c", "int main(void) { return 7; }"),
	"command": ("exec", "--", "sh", "-c", "echo out; echo err >&2; exit 9"),
	"shell": ("exec", "-c", "echo $((6 * 7)) | cat"),
	"no command": ("exec", "--", "there-is-no-such-command"),
}


@case("a result is the same here and through the service, member by member, whatever the verdict")
def same_rows(t):
	seen = set()
	with service(t) as (_, path):
		for name, words in REQUESTS.items():
			here, there = both(t, path, words[0], "--json", *words[1:], stdin=b"")
			a, b = json.loads(here.out), json.loads(there.out)
			if words[2] == "c" and a["cache"] and b["cache"]:	# whose cache has it is not the same
				a["cache"] = b["cache"] = None
				a["evidence"] = b["evidence"] = []
			t.equal(differences(a, b), {}, name, there)
			t.equal(there.rc, here.rc, f"status of {name}", there)
			t.equal(there.err, here.err, f"what is said of {name}")
			seen.add(b["verdict"])
	t.check(seen >= {"ok", "error", "crash", "timeout", "memory_limit", "output_limit", "blocked", "refused"}, "verdicts", seen)


@case("what is printed for people is the same: output, remarks, summary, exit status")
def same_text(t):
	with service(t) as (_, path):
		for name, words in REQUESTS.items():
			here, there = both(t, path, *words, stdin=b"")
			t.equal((there.rc, there.out, there.err), (here.rc, here.out, here.err), name)


@case("the result is what the service has of it, byte for byte")
def same_document(t):
	with service(t) as (s, path):
		admin = s.token("admin", "--admin")
		for name, words in REQUESTS.items():
			p = t.brig(words[0], "--json", *words[1:], stdin=b"", env=client_env(path))
			mine = json.loads(p.out)
			if mine["id"] and mine["verdict"] != "refused":
				theirs = known(s, admin, f"/v1/executions/{mine['id']}")["result"]
				t.equal(mine, theirs, name)
				t.equal(list(mine), list(theirs), "the order")


@case("input, an archive of files and one of artifacts travel as descriptors")
def descriptors(t):
	data = bytes(range(256)) * 20000
	archive = io.BytesIO()
	with tarfile.open(fileobj=archive, mode="w") as tar:
		entry = tarfile.TarInfo("in/a.bin")
		entry.size = len(data)
		tar.addfile(entry, io.BytesIO(data))
	code = "import hashlib, os, sys\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())\nb = open('in/a.bin', 'rb').read()\nopen('out.bin', 'wb').write(b[::-1])"
	with service(t) as (_, path):
		for env in ({}, client_env(path)):
			out = t.path("out.tar")
			p = t.brig("run", "--files", t.path("in.tar", archive.getvalue()), "--out-tar", out, *PYTHON, code, stdin=data, env=env)
			t.equal((p.rc, p.out.decode().strip()), (0, hashlib.sha256(data).hexdigest()), "its input", p)
			with tarfile.open(out) as tar:
				t.equal(tar.extractfile("out.bin").read(), data[::-1], "its artifact")
			os.unlink(out)
		p = t.brig("run", "--files", "-", *PYTHON, "print(len(open('in/a.bin', 'rb').read()))", stdin=archive.getvalue(), env=client_env(path))
		t.equal((p.rc, p.out), (0, b"%d\n" % len(data)), "an archive from standard input", p)
		p = t.brig("run", *PYTHON, "print('done')", env=client_env(path))	# whose input never ends
		t.equal((p.rc, p.out), (0, b"done\n"), "a program that reads none of it", p)


@case("--events tells the same, in the same order")
def events(t):
	code = "import os, sys\nprint('a\\u20ac', flush=True)\nsys.stderr.write('b')"
	with service(t) as (_, path):
		told = []
		for p in both(t, path, "run", "--events", "--inspect", "guard", *PYTHON, code, stdin=b""):
			lines = [json.loads(line) for line in p.out.splitlines()]
			streams = {name: "".join(line["data"] for line in lines if line["event"] == name) for name in ("stdout", "stderr")}	# in pieces as the pipe gave them
			others = [{key: value for key, value in line.items() if key != "id"} for line in lines if line["event"] in ("started", "finding", "notice")]
			told.append([streams, others, [line["event"] for line in lines if line["event"] in ("started", "finding", "notice", "result")]])
			t.equal(lines[-1]["result"]["verdict"], "ok", "the end")
		t.equal(told[1], told[0], "the events")
		p = t.brig("run", "--receipt", t.path("receipt"), *PYTHON, "1", stdin=b"", env=client_env(path))
		t.equal(p.rc, 0, "a receipt", p)
		p = t.brig("receipt", "verify", t.path("receipt"))
		t.equal(p.rc, 0, "it holds", p)


@case("brig doctor tells that commands go through a service, and not where they do not")
def doctor(t):
	with service(t) as (_, path):
		for env, args, wanted in ((client_env(path), (), True), (client_env(path), ("--preset", "strict"), False), (client_env(None, BRIG_HOST="none"), (), False)):
			p = t.brig("doctor", *args, env=env)
			t.equal(f"through the service at {path}" in p.out.decode(), wanted, f"with {args}", p)


@case("SIGINT cancels the run and shows its result; kill -9 of the command cancels it, too", final="a program outlived its command")
def cancelled(t):
	with service(t) as (s, path):
		admin = s.token("admin", "--admin")
		for sig, status in ((signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)):
			words = [harness.brig_path(), "exec", "--timeout", "25", "--", "sh", "-c", "echo up; sleep 60; :", mark()]
			p = t.popen(words, client_env(path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
			t.equal(p.stdout.readline(), b"up\n", "it runs")
			pid = p.pid
			p.send_signal(sig)
			p.communicate(timeout=PATIENCE)
			t.equal(p.returncode, status, f"status after {sig.name}")
			wait_until("nothing of it runs", lambda: not marked())
			wait_until("it is over", lambda: known(s, admin, "/v1/queue")["running"] == 0)
			last = known(s, admin, "/v1/executions?limit=1")["executions"][0]
			t.equal((last["verdict"], last["token"]), ("cancelled", f"uid:{os.getuid()}"), f"what is known of {pid}")


@case("an ordinary user has the protections of root's keeper, and not more than its trust", final="a protection was missing")
def ordinary(t):
	need_users(t)
	with service(t) as (s, path):
		r = json.loads(as_stranger(t, path, "run", "--json", *PYTHON, "import os; print(os.getuid())").out)
		t.equal((r["verdict"], r["degraded"], r["trust"]), ("ok", [], "unknown"), "the run", r)
		t.equal([e for e in r["evidence"] if not e["kept"]], [], "what was not kept")
		t.check({"memory_limit", "pids_limit", "cpu_quota"} <= {e["check"] for e in r["evidence"]}, "limits of groups are among it", r["evidence"])
		alone = json.loads(as_stranger(t, path, "run", "--local", "--json", *PYTHON, "1").out)
		t.check(alone["verdict"] == "refused" or alone["degraded"] or len(alone["evidence"]) < len(r["evidence"]), "which it has not alone", alone)
		p = as_stranger(t, path, "run", "--trust", "trusted", *PYTHON, "1")
		t.check(p.rc == 125 and b"trusted" in p.err, "trusted is more than it may have", p)
		p = as_stranger(t, path, "run", "--set", "allow_degraded=memory_limit", *PYTHON, "1")
		t.check(p.rc == 125 and b"allow_degraded" in p.err, "so is what the host does without", p)
		admin = s.token("admin", "--admin")
		t.equal({x["token"] for x in known(s, admin, "/v1/executions")["executions"]}, {f"uid:{STRANGER}"}, "who asked")


@case("a user does not see another one's executions", final="somebody else's execution was shown")
def foreign(t):
	need_users(t)
	with tempfile.TemporaryDirectory() as folder:
		os.chmod(folder, 0o755)
		http = os.path.join(folder, "http.sock")
		with service(t, "--unix", http) as (_, path):
			r = json.loads(as_stranger(t, path, "run", "--json", *PYTHON, "print('secret')").out)
			t.equal(ask_unix(http, f"/v1/executions/{r['id']}", STRANGER)[0], 200, "its own")
			t.equal(ask_unix(http, f"/v1/executions/{r['id']}", STRANGER + 1)[0], 404, "another one's")
			t.equal(ask_unix(http, "/v1/executions", STRANGER + 1)[1]["executions"], [], "a list of others")
			t.equal(ask_unix(http, f"/v1/history/{r['id']}", STRANGER + 1)[0], 404, "another one's history")
			t.equal(ask_unix(http, f"/v1/executions/{r['id']}", 0)[0], 200, "root's")


@case("the usual place is found without being named, and left where it is of no use")
def usual(t):
	need_users(t)
	with tempfile.TemporaryDirectory() as folder:
		os.chmod(folder, 0o755)
		place = os.path.join(folder, "brig", "run.sock")

		def who(*words, **more):
			p = as_stranger(t, "", "run", "--json", "--trust", "unknown", *words, *PYTHON, "1", XDG_RUNTIME_DIR=folder, **more)
			return "service" if json.loads(p.out)["id"] in [x["id"] for x in known(s, admin, "/v1/executions")["executions"]] else "here"
		with Server(t, "--socket", place, auth=True) as s:
			admin = s.token("admin", "--admin")
			t.equal(who(), "service", "the usual one")
			t.equal(who("--local"), "here", "--local")
			t.equal(who(BRIG_HOST="none"), "here", "none")
			t.equal(who("--preset", "strict"), "here", "a policy of one's own")
			t.equal(who(BRIG_TIMEOUT="5"), "here", "a variable of the policy")
			t.equal(who("--set", "allow_degraded=time_ns"), "here", "what the service does not let it have")
			os.chmod(place, 0o600)
			t.equal(who(), "here", "one that may not be used")
			os.chmod(place, 0o666)
			second = t.brig("serve", "--listen", "127.0.0.1:0", "--no-auth", "--socket", place, "--state", t.path("other"))
			t.check(second.rc == 121 and b"already" in second.err, "a live socket is not taken over", second)
		stale = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		os.makedirs(os.path.dirname(place), exist_ok=True)	# it went with the service that had made it
		stale.bind(place)
		stale.close()
		with Server(t, "--socket", place, auth=True) as s:	# one that died is replaced
			t.equal(who(), "service", "a new one")


@case("a service that is named and cannot do it is an error that says what to do")
def named(t):
	with service(t) as (_, path):
		for words, word in ((("--venv", "x"), "--venv"), (("--policy", "/dev/null"), "--policy"), (("--state", "x"), "--state")):
			p = t.brig("run", *words, *PYTHON, "1", stdin=b"", env=client_env(path))
			t.check(p.rc == 2 and b"--local" in p.err and word.encode() in p.err, f"{words}", p)
		p = t.brig("run", *PYTHON, "1", stdin=b"", env=client_env(path, BRIG_TIMEOUT="5"))
		t.check(p.rc == 2 and b"BRIG_TIMEOUT" in p.err, "a variable", p)
	p = t.brig("run", *PYTHON, "1", stdin=b"", env=client_env(path))
	t.check(p.rc == 121 and path.encode() in p.err and b"brig serve" in p.err, "nobody there", p)
	with socket.socket(socket.AF_UNIX) as http:	# as of --unix
		http.bind(t.path("http.sock"))
		http.listen()
		p = t.brig("run", *PYTHON, "1", stdin=b"", env=client_env(t.path("http.sock")))
		t.check(p.rc == 2 and b"--unix" in p.err, "the socket that speaks HTTP", p)
	p = t.brig("run", *PYTHON, "1", stdin=b"", env={"BRIG_HOST": "tcp://1.2.3.4"})
	t.check(p.rc == 2 and b"unix:PATH" in p.err, "no such place", p)


@case("brig check says the same through the service")
def checked(t):
	with service(t) as (_, path):
		for words in ((*PYTHON, "import os; os.system('x')"), (*PYTHON, "print(1)"), ("-k", "command", "-c", "rm -rf /"), (*PYTHON, "import socket; socket.socket()")):
			here, there = both(t, path, "check", "--inspect", "strict", "--json", *words)
			t.equal((there.rc, there.out, there.err), (here.rc, here.out, here.err), str(words))
		p = t.brig("check", "--inspect", "strict", *PYTHON, "import os; os.system('x')", env=client_env(path))
		t.check(p.rc == 2 and b"os.system" in p.out, "for people", p)


# ---- hostile commands -----------------------------------------------------------------------------

def with_archive(ask):
	"""The same, with an archive announced (has_files, the first of fields.def)."""
	body = struct.pack("<HHIQ", 0, 0, 8, 1) + ask[16:]
	return ask[:8] + struct.pack("<II", len(body), 0) + body


def endless():
	"""A sealed file in memory of terabytes that are not there."""
	fd = os.memfd_create("endless", os.MFD_ALLOW_SEALING)
	os.ftruncate(fd, 1 << 42)
	fcntl.fcntl(fd, 1033, 2 | 4 | 8)	# F_ADD_SEALS: shrink, grow, write
	return fd


@case("records that are none, lie about descriptors or bring those that could stop the service are refused", final="a hostile command had its way")
def hostile(t):
	ask, fds = overheard(t, "run", *PYTHON, "print(1)")
	t.equal(len(fds), 1, "descriptors beside it: its input")
	os.close(fds[0])
	ends = socket.socketpair()
	pipe = os.pipe()
	plain, huge = os.open(t.path("plain", b"x"), os.O_RDONLY), endless()
	with service(t) as (s, path), ends[0], ends[1]:
		good = ends[1].fileno()
		ends[0].shutdown(socket.SHUT_WR)
		t.equal(tried(path, (ask, [good])), [200], "the real thing")
		t.equal(tried(path, (ask, [pipe[0]])), [422], "a pipe for input")
		t.equal(tried(path, (ask, [plain])), [422], "a file for input")
		for name, archive in (("a file", plain), ("an end that never comes", huge)):
			t.equal(tried(path, (with_archive(ask), [archive, good])), [422], f"{name} for an archive")
		t.equal(tried(path, (ask, [])), [400], "a descriptor that is not there")
		t.equal(tried(path, (ask, [good, good])), [400], "one too many")
		other = bytearray(ask)
		other[6] ^= 1
		t.equal(tried(path, (bytes(other), [good])), [426], "another version")
		for name, bad in (("nothing", b"x"), ("half a head", ask[:8]), ("half a message", ask[:-3]), ("a longer one", ask + b"x"), ("an answer", ask[:4] + b"\3" + ask[5:]),
				  ("no type", ask[:4] + b"\xff" + ask[5:]), ("a file that is none", ask[:12] + b"\1\0\0\0" + ask[16:])):
			t.check(tried(path, (bad, [good])) in (["end"], ["reset"]), name)
		t.check(tried(path, (ask, [good]), (ask, [good]))[-1] in ("end", "reset"), "two at once")
		crowd = []
		for _ in range(400):	# more than there may be: the rest is turned away, and nobody else suffers
			c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
			c.setblocking(False)
			try:
				c.connect(path)
			except OSError:
				pass
			crowd.append(c)
		for c in crowd:
			c.close()
		wait_until("it serves again", lambda: t.brig("run", *PYTHON, "print('still')", stdin=b"", env=client_env(path)).out == b"still\n")
		s.get("/healthz", status=200)
	for fd in (*pipe, plain, huge):
		os.close(fd)
