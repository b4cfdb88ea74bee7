# SPDX-License-Identifier: Apache-2.0
"""A session that floods the service, and clients of it that do not read, while another token's session is served."""
import socket

from client import Server, wait_until
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
