# SPDX-License-Identifier: Apache-2.0
"""The process that speaks HTTP, seen from outside: what was taken from it, what it holds, what it is given."""
import os
import re
import socket
import subprocess

import harness
from client import PATIENCE, Server, read_quietly, status_field
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
