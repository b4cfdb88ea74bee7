# SPDX-License-Identifier: Apache-2.0
"""A session that floods the service, and clients of it that do not read, while another token's session is served."""
import os
import signal
import socket
import time

from client import Server, read_quietly, tree, wait_until
from harness import case
from session import Session, echoing

STREAMS = 6	# of each kind, that nobody reads
WAITING = 12	# runs in one context


def unread(server, token, method, target, body=None):
	"""A connection that asks and never reads the answer."""
	c = server.client(token)
	headers = {"Accept": "text/event-stream"}
	if body is not None:
		headers["Content-Type"] = "application/json"
	c.c.connect()
	c.c.request(method, target, body, {**headers, "Authorization": "Bearer " + token})
	return c


def flood(server, token, x):
	"""Output, changes, runs and a server's answers, without end and without a reader."""
	held = [unread(server, token, "GET", x.at + "/watches?recursive=1") for _ in range(STREAMS)]
	for _ in range(STREAMS):
		n = x.process("sh", "-c", "yes 'nobody reads this' & while :; do echo; done", **{"async": True}, status=202)["process"]
		held.append(unread(server, token, "GET", f"{x.at}/processes/{n}/events"))
	x.process("sh", "-c", "while :; do mkdir x; rmdir x; done", **{"async": True}, status=202)
	held += [unread(server, token, "POST", x.at + "/runs", '{"code": "while True: print(1)"}') for _ in range(WAITING)]
	port = echoing(x, server.client(token))
	answers = [unread(server, token, "GET", port + "/flood") for _ in range(STREAMS)]
	for c in answers:	# it is in a busy cell: one that is not served before that is gone would be told so
		c.c.sock.recv(1, socket.MSG_PEEK)
	return held + answers


def served(t, server, token, y, i):
	t.equal(y.run("n = %d\nn + 1" % i)["results"][0]["text"], str(i + 1), "code")
	t.equal(y.process("echo", "ok")["stdout"], "ok\n", "a process")
	with server.client(token) as c:
		events = c.stream("GET", y.at + "/watches", None, {"started": "SessionWatching", "changed": "SessionChanged"})
		events.until("started")
		y.put(f"f{i}", b"x" * 100000)
		t.equal(events.until("changed")["name"], f"f{i}", "a watch")
	t.equal(len(y.ask("GET", f"/files/f{i}").body), 100000, "a file")


def memory_of(pid):
	with open(f"/proc/{pid}/statm") as f:
		return int(f.read().split()[1]) * 4096


def find_script(server, script):
	"""The host's pid of a program in a session."""
	return wait_until(f"{script} runs", lambda: next((p for p in tree(server.pid) if read_quietly(f"/proc/{p}/cmdline").endswith(f"\0{script}\0".encode())), None))


@case("the front does not keep up with one token's changes: who watches them is told that some are lost, though no other comes; another's watch loses none")
def behind(t):
	with Server(t, auth=True) as s:
		ada, bob = s.token("ada"), s.token("bob")
		with Session(s, ada) as x, Session(s, bob) as y:
			watches = []
			for session, token, n in ((x, ada, 8), (y, bob, 1)):
				for _ in range(n):
					c = s.client(token)
					watches.append(c.stream("GET", session.at + "/watches", None, {"started": "SessionWatching", "changed": "SessionChanged"}))
					watches[-1].until("started")
			programs = (("python3", "import os\nwhile True: os.mkdir('x'); os.rmdir('x')"), ("sh", "trap 'touch late; exit' USR1; while :; do sleep 0.1; done"))
			for session, program in zip((x, y), programs):
				session.process(program[0], "-c", program[1], **{"async": True}, status=202)
			flood, touch = (find_script(s, script) for _, script in programs)
			front, runner = (s.processes()[name] for name in ("front", "runner"))
			os.kill(front, signal.SIGSTOP)
			try:
				before = memory_of(runner)
				wait_until("too much waits for the front, and no more comes", lambda: (lambda now: now > before + 3500000 and (time.sleep(0.2), memory_of(runner))[1] == now)(memory_of(runner)))
				os.kill(touch, signal.SIGUSR1)
				wait_until("the other has changed something", lambda: not os.path.exists(f"/proc/{touch}"))
				os.kill(flood, signal.SIGKILL)
				wait_until("nothing changes any more", lambda: not os.path.exists(f"/proc/{flood}"))
			finally:
				os.kill(front, signal.SIGCONT)
			t.equal(watches[-1].until("changed")["name"], "late", "the other's change")
			for w in watches[:-1]:
				while w.until("changed")["change"] != "lost":
					pass


@case("one token's session floods, and its clients do not read: another's is served, and a new one made")
def others_are_served(t):
	with Server(t, auth=True) as s:
		ada, bob = s.token("ada"), s.token("bob")
		with Session(s, ada) as x, Session(s, bob) as y:
			held = flood(s, ada, x)
			for i in range(4):
				served(t, s, bob, y, i)
			with Session(s, bob) as z:
				served(t, s, bob, z, 9)
			x.ask("DELETE", "", status=202)
			wait_until("it has ended", lambda: x.state()["state"] == "ended")
			served(t, s, bob, y, 5)
			t.equal([c.c.sock.recv(12) for c in held], [b"HTTP/1.1 200"] * len(held), "what those got who did not read")
			for c in held:
				c.c.close()
