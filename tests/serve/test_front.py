# SPDX-License-Identifier: Apache-2.0
"""The process that speaks HTTP, seen from outside: what was taken from it, what it holds, what it is given."""
import json
import os
import re
import socket
import subprocess

import harness
from client import PATIENCE, Server, children, read_quietly, status_field, wait_until
from harness import case


@case("the front holds nothing that it could do harm with", final="the process that strangers talk to has a right too many")
def confined(t):
	canary = "front-canary-" + os.path.basename(t.state)
	with Server(t, env={"SERVE_CANARY": canary}) as s:
		s.result(language="shell", code="echo 1")
		front = s.processes()["front"]
		got = {name: status_field(front, name) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")}
		t.equal(got, {**dict.fromkeys(("CapEff", "CapPrm", "CapInh", "CapAmb"), "0" * 16), "NoNewPrivs": "1", "Seccomp": "2"}, "its rights")
		if os.geteuid() == 0:
			t.equal(status_field(front, "CapBnd"), "0" * 16, "what it could get")
			t.check("0" not in status_field(front, "Uid").split() + status_field(front, "Gid").split(), "its user", status_field(front, "Uid"))
			t.check(re.search(rb"^Groups:[ \t]*$", read_quietly(f"/proc/{front}/status"), re.M), "it has no groups")
			links = [os.readlink(f"/proc/{front}/fd/{n}") for n in harness.listing(f"/proc/{front}/fd") if n != "2"]
			others = [x for x in links if not x.startswith(("socket:", "anon_inode:[eventpoll]")) and x != "/dev/null"]
			t.equal(others, [], "what it has open besides sockets and the log")
			t.check(canary.encode() not in read_quietly(f"/proc/{front}/environ"), "variables of whoever started it are gone")


def mapped_kib(pid):
	return int(status_field(pid, "RssFile").split()[0])


def named(pids, *names):
	return [p for p in pids if read_quietly(f"/proc/{p}/comm").decode().strip() in names]


def resident_mib(s):
	"""Of all processes of the service without its cells, whose first processes are the keeper's children, too."""
	runner, keepers = children(s.processes()["runner"]), s.keepers()
	janitors = [j for k in keepers for j in named(children(k), "brig-janitor")]
	return sum(int(status_field(p, "VmRSS").split()[0]) for p in (s.pid, *s.processes().values(), *runner, *keepers, *janitors)) / 1024


@case("front and runner give memory back when they have nothing to do, and serve the next request as before; 20 MB are enough for all")
def rest(t):
	with Server(t) as s:
		for _ in range(3):	# from the second on there are inspectors that wait
			s.result(language="python", code="print(1)", options={"inspection": "guard"})
		s.result(language="shell", code="echo 1")
		busy = {pid: mapped_kib(pid) for pid in (s.processes()[name] for name in ("front", "runner"))}
		wait_until("pages of the program are let go", lambda: all(mapped_kib(pid) < kib / 2 for pid, kib in busy.items()))
		wait_until("nobody waits for texts", lambda: not named(children(s.processes()["runner"]), "brig-inspectors"))
		t.check("asan" in harness.brig_path() or resident_mib(s) <= 20, "resident MB of all", resident_mib(s))
		t.equal(s.result(language="shell", code="echo 2")["stdout"], "2\n", "a request after a rest")
		t.equal(s.result(language="shell", code="rm -rf /", options={"inspection": "guard"})["verdict"], "blocked", "and what is inspected after it")
		t.equal({s.processes()[name] for name in ("front", "runner")}, set(busy), "the processes are the same")


@case("sockets that systemd has opened are served in place of the default, and stay when the service ends")
def given_sockets(t):
	path = t.path("given.sock")
	with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
		tcp.bind(("127.0.0.1", 0))
		tcp.listen(16)
		local.bind(path)
		local.listen(16)
		script = f'exec 3<&{tcp.fileno()} 4<&{local.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=2; exec "$@"'
		words = ["bash", "-c", script, "bash", harness.brig_path(), "serve", "--state", t.state]
		with open(t.path("err"), "wb") as err:
			p = t.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, pass_fds=(tcp.fileno(), local.fileno()))
		try:
			line = p.stdout.readline()
			t.equal(line, f"ready http://127.0.0.1:{tcp.getsockname()[1]}\n".encode(), "its first line", read_quietly(t.path("err")))
			with socket.socket(socket.AF_UNIX) as s:
				s.settimeout(PATIENCE)
				s.connect(path)
				s.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				answer = s.makefile("rb").read()
			t.check(answer.startswith(b"HTTP/1.1 200 ") and re.search(rb'"name": ?"uid:%d"' % os.geteuid(), answer), "the kernel says who asks", answer)
			p.terminate()
			t.equal(p.wait(PATIENCE), 0, "its end", read_quietly(t.path("err")))
			t.check(os.path.exists(path), "the socket is systemd's")
		finally:
			p.kill()
			p.wait()
			p.stdout.close()


# Starts a program on a kernel that knows no Landlock: landlock_create_ruleset(2) is answered with ENOSYS.
WITHOUT_LANDLOCK = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]	# load nr; 444? ENOSYS : allow
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *r) for r in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
if os.geteuid() != 0:
	libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, program) != 0:
	sys.exit("no filter: %d" % ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"""


@case("on a kernel without Landlock the service says that its front has a wall less, and doctor says so too")
def without_landlock(t):
	words = ["/usr/bin/python3", "-c", WITHOUT_LANDLOCK, harness.brig_path()]
	with open(t.path("err"), "wb") as err:
		p = t.popen([*words, "serve", "--listen", "127.0.0.1:0", "--socket", "none", "--no-auth", "--state", t.state], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err)
	try:
		t.check(p.stdout.readline().startswith(b"ready "), "it serves", read_quietly(t.path("err")))
		p.terminate()
		t.equal(p.wait(PATIENCE), 0, "its end", read_quietly(t.path("err")))
	finally:
		p.kill()
		p.wait()
		p.stdout.close()
	t.check(b"no Landlock" in read_quietly(t.path("err")), "its log", read_quietly(t.path("err")))
	out = subprocess.run([*words, "doctor", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False).stdout
	row = [r for r in json.loads(out)["rows"] if r["name"] == "landlock"][0]
	t.check("front of brig serve" in row["fix"], "doctor", row)
	with Server(t) as s:
		t.check("Landlock" not in s.stderr(), "where there is one nothing is said", s.stderr())
