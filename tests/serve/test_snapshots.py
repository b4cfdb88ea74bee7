# SPDX-License-Identifier: Apache-2.0
"""Forks and snapshots of sessions through the service."""
import os
import threading
import time

from client import Server
from harness import case

SIZE = "stat -f -c %b ."	# in pages of 4 KiB


class Session:
	"""One that was made, and a connection to ask things of it."""
	def __init__(self, server, made, token=None):
		self.c, self.made, self.id = server.client(token), made, made["id"]
		self.at = "/v1/sessions/" + self.id

	def ask(self, method, rest, body=None, status=200, **kw):
		return self.c.ask(method, self.at + rest, body, status=status, **kw)

	def sh(self, text):
		r = self.ask("POST", "/processes", {"args": ["sh", "-c", text]}).json
		return r["stdout"]

	def run(self, code):
		return self.ask("POST", "/runs", {"code": code}).json

	def fork(self, status=201, **wish):
		return self.ask("POST", "/fork", wish, status)

	def snapshot(self, status=201, **wish):
		return self.ask("POST", "/snapshots", wish, status).json


def begin(server, token=None, **wish):
	return Session(server, server.client(token).ask("POST", "/v1/sessions", wish, status=201).json, token)


@case("a fork has the files, options and variables of the first, and no processes; neither sees what the other does then")
def fork(t):
	with Server(t) as s:
		x = begin(s, env={"COLOUR": "green"}, options={"inspection": "off", "disk_limit": "37MB"})
		x.sh("mkdir -p a/empty; echo one > a/one; ln -s a/one link; ln a/one other; mkfifo fifo; echo '#!/bin/sh' > run; chmod 750 run; touch -d @1000000000 run; printenv > env")
		x.run("n = 1; import socket; k = socket.socket(socket.AF_UNIX); k.bind('sock')")
		x.ask("POST", "/processes", {"args": ["sleep", "1000"], "async": True}, 202)
		made = x.fork(timeout=300)
		t.equal([made.json["state"], made.json["processes"], made.json["from"], made.json["left_out"], made.header("location")],
			["ready", "not copied", x.id, 1, "/v1/sessions/" + made.json["id"]], "what is answered", made.json)
		y = Session(s, made.json)
		t.check(y.id != x.id, "it is another")
		look = "find . -not -name sock | sort; stat -c '%a %Y %h' run a/one; readlink link; cat other; test -p fifo && echo fifo; echo $COLOUR; stat -f -c '%b %S' ."
		t.equal(y.sh(look), x.sh(look), "the same")
		t.check("green" in y.sh("echo $COLOUR"), "variables")
		t.equal(y.run("'n' in globals()")["results"][0]["text"], "False", "no state of interpreters")
		t.equal(y.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 100[0]'"), "0\n", "no processes")
		x.sh("echo x > a/one; rm run")
		y.sh("echo y > new")
		t.equal([y.sh("cat a/one; test -x run && echo run"), x.sh("cat a/one; test -e new || echo none")], ["one\nrun\n", "x\nnone\n"], "apart")
		t.equal(x.run("n + 1")["results"][0]["text"], "2", "the first goes on")
		z = Session(s, y.fork().json)
		t.equal(z.sh("cat new; echo $COLOUR"), "y\ngreen\n", "a fork of a fork")
		for _ in range(12):	# the two sides of a copy end in any order
			w = Session(s, x.fork().json)
			t.equal(w.made["left_out"], 1, "each says what was left out", w.made)
			w.ask("DELETE", "", status=202)


@case("forks are bounded: what does not fit or is too deep is said, the first goes on, and nothing is left of them")
def fork_bounds(t):
	with Server(t) as s:
		x = begin(s, options={"disk_limit": "30MB"})
		x.sh("python3 -c \"import os\nfor i in range(200): os.mkdir('d'); os.chdir('d')\"")
		e = x.fork(422).json["error"]
		t.check("128 folders deep" in e["message"] and "could not begin" in e["message"], "too deep", e)
		x.sh("rm -rf d; echo kept > file")
		t.equal(Session(s, x.fork().json).sh("cat file"), "kept\n", "afterwards")
		x.ask("POST", "/fork", {"timeout": 10**6}, 403)	# longer than the policy's
		x.ask("POST", "/fork", {"trust": "trusted"}, 400)
		s.client().ask("POST", "/v1/sessions/aaaaaaaaaaaaaaaa/fork", {}, status=404)
		t.equal(sorted(os.listdir(os.path.join(t.state, "serve", "snapshots"))), [], "files of the service")


@case("a snapshot outlives its session and the service, and sessions are made of it")
def snapshots(t):
	with Server(t) as s:
		x = begin(s, options={"disk_limit": "38MB"}, env={"SECRET": "hidden"})
		x.sh("mkdir d; echo first > d/f; chmod 600 d/f")
		made = x.snapshot(name="before the change")
		t.equal([made["session"], made["name"], made["files"], made["bytes"], made["left_out"], made["environment"]], [x.id, "before the change", 2, 6, 0, None], "what is answered", made)
		x.sh("echo second > d/f")
		x.ask("DELETE", "", status=202)
		t.equal([n["id"] for n in s.client().ask("GET", "/v1/snapshots").json["snapshots"]], [made["id"]], "the list")
	folder = os.path.join(t.state, "serve", "snapshots")
	t.check(b"hidden" not in b"".join(open(os.path.join(folder, n), "rb").read() for n in os.listdir(folder)), "variables are not kept")
	open(os.path.join(folder, "aaaaaaaaaaaaaaaa.part"), "w").close()
	with Server(t) as s:
		c = s.client()
		t.equal(c.ask("GET", "/v1/snapshots/" + made["id"]).json["name"], "before the change", "after a restart")
		y = begin(s, snapshot=made["id"], env={"EXTRA": "1"})
		t.equal([y.made["from"], y.made["processes"]], [made["id"], "not copied"], "what is answered", y.made)
		t.equal(y.sh("cat d/f; stat -c %a d/f; echo $SECRET$EXTRA; " + SIZE), f"first\n600\n1\n{38 << 8}\n", "as it was")
		z = begin(s, snapshot=made["id"], options={"disk_limit": "39MB"})
		t.equal(z.sh("cat d/f; " + SIZE), f"first\n{39 << 8}\n", "with another wish")
		c.ask("POST", "/v1/sessions", {"snapshot": "aaaaaaaaaaaaaaaa"}, status=404)
		c.ask("DELETE", "/v1/snapshots/" + made["id"])
		c.ask("GET", "/v1/snapshots/" + made["id"], status=404)
		t.equal([c.ask("GET", "/v1/snapshots").json["snapshots"], os.listdir(folder)], [[], []], "removed")
		t.equal(y.sh("cat d/f"), "first\n", "and who was made of it goes on")


@case("forks and snapshots are their token's; quotas count the new session; the key of a session makes none")
def owners(t):
	with Server(t, auth=True) as s:
		one, two = s.token("one", "--concurrent", "2"), s.token("two")
		x = begin(s, one)
		x.sh("echo mine > f")
		made = x.snapshot()
		other = s.client(two)
		for method, path, body in (("POST", x.at + "/fork", {}), ("POST", x.at + "/snapshots", {}), ("GET", "/v1/snapshots/" + made["id"], None),
				("DELETE", "/v1/snapshots/" + made["id"], None), ("POST", "/v1/sessions", {"snapshot": made["id"]})):
			other.ask(method, path, body, status=404)
		t.equal(other.ask("GET", "/v1/snapshots").json["snapshots"], [], "the list of another")
		x.fork()
		x.fork(429)
		begin_refused = s.client(one).ask("POST", "/v1/sessions", {"snapshot": made["id"]}, status=429)
		t.check("end one of them" in begin_refused.json["error"]["message"], "quota", begin_refused)


@case("a client that goes while its fork or snapshot is made leaves nothing; nor does the end of the first")
def gone(t):
	with Server(t) as s:
		x = begin(s)
		x.sh("head -c 20000000 /dev/urandom > big")
		for rest in ("/fork", "/snapshots"):
			c = s.client()
			c.c.request("POST", x.at + rest, b"{}", {"Content-Type": "application/json"})
			c.c.close()	# nobody waits for the answer
		t.equal(x.sh("stat -c %s big"), "20000000\n", "it goes on")
		while x.fork(None).status == 503:	# those two are still being copied
			time.sleep(0.02)
		answers = []
		waits = threading.Thread(target=lambda: answers.append(Session(s, x.made).fork(None).status))
		waits.start()
		x.ask("DELETE", "", status=202)
		waits.join()
		t.check(answers in ([201], [410]), "it is answered", answers)
	t.equal([n for n in os.listdir(os.path.join(t.state, "serve", "snapshots")) if n.endswith(".part")], [], "files of the service")
