# SPDX-License-Identifier: Apache-2.0
"""Sessions stay on their node; any front forwards to it; a node that goes away ends them with a reason."""
import base64
import hashlib
import http.client
import json
import os
import struct
import threading
import time

import harness
import sealed
from cluster import PATIENCE, Cluster, Inside, UnixConnection, described, token, wait_until
from harness import case


class Session:
	"""One of a cluster, asked for through a front."""
	def __init__(self, ident, headers=()):
		self.ident, self.headers = ident, headers

	def ask(self, front, method, path="", body=None, **more):
		return front.ask(method, f"/v1/sessions/{self.ident}{path}", body, self.headers, **more)

	def code(self, front, code):
		a = self.ask(front, "POST", "/runs", {"code": code})
		if a.status != 200:
			raise harness.Failed(f"run: {a.status} {a.body[:300]!r}")
		return a.json


def begin(t, front, headers=(), **wish):
	a = front.ask("POST", "/v1/sessions", wish, headers)
	t.equal(a.status, 201, f"a session begins: {a.body[:300]!r}")
	described(t, a.json, "Session")
	return Session(a.json["id"], headers), a.json


def upload(front, session, path, data):
	c = UnixConnection(front.socket, PATIENCE)
	try:
		c.request("PUT", f"/v1/sessions/{session.ident}/files/{path}", data, {"Content-Type": "application/octet-stream"})
		r = c.getresponse()
		return r.status, r.read()
	finally:
		c.close()


def takes_sessions(front):
	"""A worker has said what it takes."""
	wait_until("workers take commands", lambda: any("unknown.kind-command" in n["classes"] for n in front.ask("GET", "/v1/nodes").json["nodes"]))


@case("a session on a worker, used through two fronts: contexts, runs and their streams, commands, files, fork, end")
def anywhere(t):
	with Cluster(t, fronts=2, workers=2) as c:
		first, second = c.fronts
		takes_sessions(first)
		x, doc = begin(t, first, place="worker")
		t.check(doc["node"] in [w.name for w in c.workers], f"where it is: {doc['node']}")
		t.equal(x.code(first, "a = 6")["verdict"], "ok", "a run through one front")
		t.equal(x.code(second, "print(a * 7)")["stdout"], "42\n", "state, through the other")
		a = second.ask("POST", f"/v1/sessions/{x.ident}/runs", {"code": "print('now', flush=True); a"}, {"Accept": "text/event-stream"})
		events = [line[7:] for line in a.body.decode().splitlines() if line.startswith("event: ")]
		t.check("stdout" in events and "result" in events and events[-1] == "verdict", f"a stream: {events}")
		a = x.ask(second, "POST", "/processes", {"args": ["sh", "-c", "cat; exit 3"], "stdin": "in\n"})
		t.equal((a.json["stdout"], a.json["exit_code"]), ("in\n", 3), "a command")
		a = x.ask(first, "POST", "/processes", {"args": ["cat"], "interactive": True, "async": True})
		t.equal(a.status, 202, f"one that waits for input: {a.body}")
		number = a.json["process"]
		t.equal(x.ask(second, "POST", f"/processes/{number}/input", {"data": "typed\n", "close": True}).status, 200, "input, by the other front")
		a = x.ask(first, "GET", f"/processes/{number}/events")
		t.check(b"typed" in a.body, f"its events: {a.body[:500]!r}")
		long = os.urandom(1500000)
		t.equal(upload(second, x, "long", long)[0], 200, "a file longer than a message")
		t.equal(x.ask(first, "GET", "/files/long").body == long, True, "and back, whole")
		t.check(any(f["path"].endswith("long") and f["bytes"] == len(long) for f in x.ask(second, "GET", "/files").json["files"]), "a list of files")
		a = x.ask(second, "GET", "/files/none")
		t.equal((a.status, a.json["error"]["code"]), (404, "not_found"), "an error is the node's own")
		t.equal(x.ask(second, "POST", "/contexts", {"language": "bash"}).status, 201, "a context")
		a = x.ask(second, "POST", "/fork", {})
		t.equal((a.status, a.json["node"]), (201, doc["node"]), f"a fork stays there: {a.body[:200]!r}")
		t.equal(Session(a.json["id"]).ask(first, "GET", "/files/long").body == long, True, "with its files")
		local, other = begin(t, second)
		t.equal(other["node"], second.name, "without a wish it is on the front's host")
		t.equal(local.code(first, "print(1)")["stdout"], "1\n", "and the other front forwards to it")
		ids = sorted((x.ident, a.json["id"], local.ident))
		for f in c.fronts:
			there = wait_until("all are listed", lambda f=f: (lambda d: d if len(d["sessions"]) == 3 else None)(f.ask("GET", "/v1/sessions").json))
			described(t, there, "Sessions")
			t.equal((sorted(s["id"] for s in there["sessions"]), there["missing"]), (ids, []), "the list of all")
		t.equal(x.ask(second, "DELETE").status, 202, "its end")
		wait_until("it ends", lambda: x.ask(first, "GET").json["state"] == "ended")
		a = x.ask(first, "POST", "/runs", {"code": "1"})
		t.equal((a.status, "it was asked to" in a.json["error"]["message"]), (410, True), f"asked afterwards: {a.body}")


@case("snapshots of sessions on other nodes: made, listed, shown, used and removed through any front; they outlive their node's process")
def snapshots(t):
	with Cluster(t, fronts=2) as c:
		first, second = c.fronts
		worker = c.workers[0]
		takes_sessions(first)
		mine, hers = ([token(f, name, *words) for f in c.fronts] for name, words in (("mine", ()), ("hers", ())))
		small = token(second, "small", "--max-trust", "untrusted")
		theirs = [token(f, "mine2", "--admin") for f in c.fronts]
		x, _ = begin(t, first, mine[0], place="worker", trust="unknown", options={"memory_limit": "200M"})
		local, _ = begin(t, second, mine[1])
		for session, front in ((x, second), (local, first)):
			front.ask("POST", f"/v1/sessions/{session.ident}/runs", {"code": f"open('kept', 'w').write('of {session.ident}')"}, mine[c.fronts.index(front)])
		made = []
		for session, front, node in ((x, second, worker.name), (local, first, second.name)):
			a = front.ask("POST", f"/v1/sessions/{session.ident}/snapshots", {"name": node}, mine[c.fronts.index(front)])
			t.equal((a.status, a.json.get("node"), a.json.get("token")), (201, node, "mine"), f"one of a session on {node}: {a.body[:300]!r}")
			described(t, a.json, "Snapshot")
			made.append(a.json)
		for i, front in enumerate(c.fronts):
			a = front.ask("GET", "/v1/snapshots", headers=mine[i])
			described(t, a.json, "Snapshots")
			t.equal((sorted(s["id"] for s in a.json["snapshots"]), a.json["missing"]), (sorted(s["id"] for s in made), []), f"listed by {front.name}")
			t.equal(front.ask("GET", "/v1/snapshots", headers=hers[i]).json["snapshots"], [], "of another token none")
			for s in made:
				a = front.ask("GET", f"/v1/snapshots/{s['id']}", headers=mine[i])
				t.equal((a.status, a.json), (200, s | {"expires": a.json["expires"]}), "shown")
				for method in ("GET", "DELETE"):
					t.equal(front.ask(method, f"/v1/snapshots/{s['id']}", headers=hers[i]).status, 404, f"{method} by another token")
				t.equal(front.ask("POST", "/v1/sessions", {"snapshot": s["id"]}, hers[i]).status, 404, "nor does another token make a session of it")
		t.equal(second.ask("GET", "/v1/snapshots/" + "a" * 16, headers=mine[1]).status, 404, "one that never was")

		def restored(front, saved, headers, **wish):
			return front.ask("POST", "/v1/sessions", {"snapshot": saved["id"], **wish}, headers)
		for i, front in enumerate(c.fronts):
			for saved, session in zip(made, (x, local)):
				a = restored(front, saved, mine[i])
				t.equal((a.status, a.json.get("node"), a.json.get("from")), (201, saved["node"], saved["id"]), f"a session of it, by {front.name}: {a.body[:300]!r}")
				described(t, a.json, "Session")
				y = Session(a.json["id"], mine[i])
				t.equal(y.code(front, "print(open('kept').read())")["stdout"], f"of {session.ident}\n", "has its files")
				t.equal((a.json["trust"], a.json["token"]), (saved["trust"], "mine"), "and is what the first was")
				y.ask(front, "DELETE")
		a = restored(second, made[0], mine[1], place="here")
		t.equal((a.status, worker.name in a.json["error"]["message"]), (422, True), f"not where it is not: {a.body}")
		a = restored(first, made[1], mine[0], place="worker")
		t.equal((a.status, second.name in a.json["error"]["message"]), (422, True), f"nor on a worker if it is on a front: {a.body}")
		a = restored(first, made[0], mine[0], place="worker", options={"memory_limit": "100G"})
		t.check(a.status in (403, 422), f"limits of the token and the policy hold: {a.status} {a.body}")
		a = restored(second, made[0], theirs[1], place="worker")
		t.equal((a.status, a.json.get("token")), (201, "mine2"), f"an administrator may use it: {a.body[:200]!r}")
		t.equal(restored(second, made[0], small).status, 404, "a token without trust not")
		t.check(worker.kill("brig-runner"), "its node begins anew")
		again = wait_until("it is there again", lambda: (lambda b: b if b.status == 201 else None)(restored(second, made[0], mine[1])))
		t.equal((again.json["node"], Session(again.json["id"], mine[1]).code(second, "print(open('kept').read())")["stdout"]), (worker.name, f"of {x.ident}\n"), "and has its files still")
		a = first.ask("DELETE", f"/v1/snapshots/{made[0]['id']}", headers=mine[0])
		t.equal((a.status, a.json.get("id")), (200, made[0]["id"]), f"removed through any front: {a.body[:200]!r}")
		t.equal([f.ask("GET", f"/v1/snapshots/{made[0]['id']}", headers=mine[i]).status for i, f in enumerate(c.fronts)], [404, 404], "then it is nowhere")
		n = c.nats()
		forged = sealed.Known.instead_of(worker)
		n.put("sessions", "forged2snapshot3", sealed.Known("stranger").seal("snapshot", ("id", "forged2snapshot3"), ("who", "mine"), ("serves", 0)))
		t.equal(first.ask("GET", "/v1/snapshots/forged2snapshot3", headers=mine[0]).status, 404, "an address that no node has sealed is none")
		n.put("sessions", made[0]["id"], forged.seal("snapshot", ("id", made[1]["id"]), ("who", "mine"), ("serves", 1)))
		t.equal(first.ask("GET", f"/v1/snapshots/{made[0]['id']}", headers=mine[0]).status, 404, "nor one in the place of another")
		n.close()
		second.end()
		a = wait_until("the front's end is known", lambda: (lambda b: b if b.status == 503 and "not there now" in b.json["error"]["message"] else None)(first.ask("GET", f"/v1/snapshots/{made[1]['id']}", headers=mine[0])))
		t.check(second.name in a.json["error"]["message"], f"who has it, and is away: {a.body}")


@case("sessions of another token are not there, through whatever front; quotas go with the token")
def owners(t):
	with Cluster(t, fronts=2) as c:
		first, second = c.fronts
		takes_sessions(first)
		mine, hers = ([token(f, name, *words) for f in c.fronts] for name, words in (("mine", ("--concurrent", "1")), ("hers", ())))
		x, _ = begin(t, first, mine[0], place="worker")
		for method, path, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/runs", {"code": "1"}), ("GET", "/files", None), ("GET", "/ports/80/", None)):
			a = second.ask(method, f"/v1/sessions/{x.ident}{path}", body, hers[1])
			t.equal(a.status, 404, f"{method} {path} by another token: {a.body[:200]!r}")
		t.equal(second.ask("GET", "/v1/sessions", headers=hers[1]).json["sessions"], [], "the list of another token")
		t.equal(second.ask("GET", f"/v1/sessions/{x.ident}", headers=mine[1]).status, 200, "its own")
		a = first.ask("POST", "/v1/sessions", {"place": "worker"}, mine[0])
		t.equal(a.status, 429, f"one more than the token may have there: {a.body}")
		t.equal(second.ask("GET", "/v1/sessions/" + "a" * 16, headers=mine[1]).status, 404, "one that never was")


@case("a node that goes away: its sessions have ended, with the reason; nobody hangs")
def node_goes(t):
	with Cluster(t, fronts=2, workers=2, later=1) as c:
		first, second = c.fronts
		(w1, w2) = c.workers
		takes_sessions(first)
		drained, _ = begin(t, first, place="worker")
		x, doc = begin(t, first, place="worker")
		t.equal(doc["node"], w1.name, "where it is")
		got = []
		waiting = threading.Thread(target=lambda: got.append(x.ask(second, "POST", "/runs", {"code": "import time; time.sleep(300)"})), daemon=True)
		waiting.start()
		wait_until("it runs", lambda: any(s["id"] == x.ident and s["contexts"] for s in first.ask("GET", "/v1/sessions").json["sessions"]))
		t.check(w1.kill("brig-runner"), "its runner is there")
		waiting.join(60)
		t.check(got and got[0].status == 410 and w1.name in got[0].json["error"]["message"], f"who waited: {got and got[0].body}")
		a = wait_until("others know", lambda: (lambda a: a if a.status == 410 else None)(x.ask(first, "POST", "/runs", {"code": "1"})))
		t.check(w1.name in a.json["error"]["message"], f"the reason: {a.body}")
		a = x.ask(second, "GET")
		described(t, a.json, "Session")
		t.equal((a.status, a.json["state"], a.json["verdict"], a.json["node"]), (200, "ended", "lost", w1.name), "its state")
		w2.begin()
		w2.wait()
		wait_until("both take sessions", lambda: sum("unknown.kind-command" in n["classes"] and n["state"] == "live" for n in first.ask("GET", "/v1/nodes").json["nodes"]) == 2)
		begun = dict((doc["node"], s) for s, doc in (begin(t, first, place="worker") for _ in range(4)))
		t.equal(sorted(begun), sorted((w1.name, w2.name)), "sessions go to the node that has fewer")
		w1.end()
		a = begun[w1.name].ask(second, "POST", "/runs", {"code": "1"})
		t.equal((a.status, "stopped" in a.json["error"]["message"]), (410, True), f"of a node that was stopped: {a.body}")
		w2.kill()
		a = begun[w2.name].ask(second, "POST", "/runs", {"code": "1"})
		t.check(a.status in (410, 503) and w2.name in a.json["error"]["message"], f"of one that was killed: {a.status} {a.body}")
		a = wait_until("its lease is over", lambda: (lambda a: a if a.status == 410 else None)(begun[w2.name].ask(second, "POST", "/runs", {"code": "1"})))
		t.equal(first.ask("POST", "/v1/sessions", {"place": "worker"}).status, 503, "no worker is there")


@case("asks that were altered, made up or heard before: refused and named; addresses that nobody known has sealed do not count")
def forged(t):
	with Cluster(t, fronts=2) as c:
		first, second = c.fronts
		w = c.workers[0]
		takes_sessions(first)
		x, _ = begin(t, first, place="worker")
		n = c.nats()
		n.subscribe("brig.node.>")
		x.code(second, "n = 1")
		subject, ask = n.next()
		while b"n = 1" not in ask:
			subject, ask = n.next()
		n.publish(subject, ask.replace(b"n = 1", b"n = 9"))
		n.publish(subject, ask)
		n.publish(subject, b"nonsense")
		wait_until("the altered one is named", lambda: "refused an ask whose seal is not that of" in w.said())
		wait_until("so is the copy", lambda: "was heard before" in w.said())
		t.equal(x.code(second, "print(n)")["stdout"], "1\n", "what was done")
		n.close()
		n = c.nats()
		address = n.get("sessions", x.ident)
		other = "a" * 16
		n.put("sessions", other, address.replace(x.ident.encode(), other.encode()))
		t.equal(second.ask("GET", f"/v1/sessions/{other}").status, 404, "a made-up address")
		n.put("sessions", x.ident, b"nonsense")
		a = x.ask(second, "GET")
		t.equal(a.status, 404, "an address that is none")
		t.check("it was altered, or is forged" in second.said(), "it is named", second.said())
		n.close()


@case("a sandbox that was made through a door of one front is used through another: with the token, with the key of the sandbox alone, and by nobody else")
def doors(t):
	policy = t.path("doors.yaml", "doors: [e2b]\n")
	with Cluster(t, fronts=2, workers=0, env={"BRIG_POLICY": policy}) as c:
		first, second = c.fronts
		mine, hers = ([{"X-API-Key": token(front, name, "--door", "e2b")["Authorization"].split()[1]} for front in c.fronts] for name in ("ann", "eve"))
		a = first.ask("POST", "/v2/sandboxes", {"templateID": "base"}, mine[0])
		t.equal(a.status, 201, f"a sandbox: {a.body[:300]!r}")
		ident, key = a.json["sandboxID"], a.json["envdAccessToken"]

		def start(front, command, key=key, ident=ident):
			"""What a command writes, without a token."""
			body = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-c", command]}}).encode()
			conn = UnixConnection(front.socket, PATIENCE)
			try:
				conn.request("POST", "/process.Process/Start", struct.pack(">BI", 0, len(body)) + body,
					     {"Content-Type": "application/connect+json", "E2b-Sandbox-Id": ident, "X-Access-Token": key})
				r = conn.getresponse()
				status, data, out = r.status, r.read(), ""
			finally:
				conn.close()
			while status == 200 and data:
				size, = struct.unpack(">I", data[1:5])
				doc = json.loads(data[5:5 + size])
				out += base64.b64decode(doc.get("event", {}).get("data", {}).get("stdout", "")).decode() + json.dumps(doc.get("error", ""))[1:-1]
				data = data[5 + size:]
			return status, out
		t.equal(start(first, "echo kept > note; echo done"), (200, "done\n"), "where it is")
		t.equal(start(second, "cat note"), (200, "kept\n"), "through the other front")
		status, out = start(second, "cat note", "x" * len(key))
		t.check("kept" not in out and (status != 200 or "unauthenticated" in out or "not the key" in out), f"with another key: {status} {out}")
		t.equal(second.ask("GET", f"/sandboxes/{ident}", headers=mine[1]).json["sandboxID"], ident, "it is shown")
		wait_until("its front is known", lambda: [b["sandboxID"] for b in second.ask("GET", "/v2/sandboxes", headers=mine[1]).json] == [ident])
		t.equal([second.ask("GET", f"/sandboxes/{ident}", headers=hers[1]).status, second.ask("DELETE", f"/sandboxes/{ident}", headers=hers[1]).status], [404, 404], "of another token")
		t.equal(second.ask("POST", f"/sandboxes/{ident}/timeout", {"timeout": 100}, mine[1]).status, 204, "how long it lasts")
		a = second.ask("POST", f"/sandboxes/{ident}/snapshots", {"name": "saved"}, mine[1])
		t.equal(a.status, 201, f"a snapshot of it: {a.body[:300]!r}")
		a = second.ask("POST", "/v2/sandboxes", {"templateID": "saved"}, mine[1])
		t.equal(a.status, 201, f"which is a template at the other front, by its name: {a.body[:300]!r}")
		t.equal(start(second, "cat note", a.json["envdAccessToken"], a.json["sandboxID"]), (200, "kept\n"), "with its files")
		t.equal(second.ask("POST", "/v2/sandboxes", {"templateID": "saved"}, hers[1]).status, 404, "and nobody else's")
		second.ask("DELETE", f"/sandboxes/{a.json['sandboxID']}", headers=mine[1])
		t.equal(second.ask("DELETE", f"/sandboxes/{ident}", headers=mine[1]).status, 204, "it is ended")
		wait_until("it is gone", lambda: first.ask("GET", f"/sandboxes/{ident}", headers=mine[0]).status == 404)


@case("the ports of a sandbox without public traffic need its key at a front without tokens too, wherever the sandbox is; with public traffic, or where tokens are asked for, they do not")
def closed_ports(t):
	policy = t.path("doors.yaml", "doors: [e2b]\n")
	with Cluster(t, fronts=2, workers=0, env={"BRIG_POLICY": policy}) as c:
		first, second = c.fronts
		second.end()
		second.begin("--no-auth")
		second.wait_again()
		hers = {"X-API-Key": token(first, "ann", "--door", "e2b", "--door", "api")["Authorization"].split()[1]}

		def make(front, headers, public):
			a = front.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": {"allowPublicTraffic": public}}, headers)
			t.equal(a.status, 201, f"a sandbox: {a.body[:300]!r}")
			return a.json["sandboxID"], a.json["envdAccessToken"]
		closed, key = make(first, hers, False)
		opened, _ = make(first, hers, True)
		own, own_key = make(second, {}, False)
		seen = [("nobody in particular, at the other front", second, closed, {}, 403),
			("the key, at the other front", second, closed, {"X-Access-Token": key}, 502),
			("the key of another sandbox", second, closed, {"X-Access-Token": own_key}, 401),
			("nobody in particular, and public traffic", second, opened, {}, 502),
			("nobody in particular, where it is", second, own, {}, 403),
			("the key, where it is", second, own, {"X-Access-Token": own_key}, 502),
			("its key, where tokens are asked for, of one that was made without", first, own, {"X-Access-Token": own_key}, 401),
			("its token, where it is", first, closed, {"X-API-Key": hers["X-API-Key"]}, 502)]
		for what, front, ident, headers, status in seen:
			path = f"/v1/sessions/{ident}/ports/8000/"
			a = wait_until(f"{what}: its address is known", lambda f=front, p=path, h=headers: (lambda b: b if b.status != 404 else None)(f.ask("GET", p, headers=h)))
			t.equal(a.status, status, f"{what}: {a.body[:300]!r}")


@case("a session that is asked for again with its Idempotency-Key, at any front, is made once: on a front and on a worker; another body, and one that has ended, is 409")
def repeated(t):
	with Cluster(t, fronts=2) as c:
		first, second = c.fronts
		takes_sessions(first)
		takes_sessions(second)
		mine, hers = ([token(front, name) for front in c.fronts] for name in ("ann", "eve"))

		def make(front, key, who=mine, **wish):
			return front.ask("POST", "/v1/sessions", wish, {**who[c.fronts.index(front)], "Idempotency-Key": key})

		def same(front, key, **wish):
			"""Its address may be on its way."""
			a = wait_until("it is known", lambda: (b := make(front, key, **wish)).status != 503 and b)
			return a.status, a.json.get("id"), a.json.get("node")
		for place, node in (("here", first.name), ("worker", c.workers[0].name)):
			a = make(first, place, place=place)
			t.equal((a.status, a.json["node"]), (201, node), f"a session: {a.body[:200]!r}")
			described(t, a.json, "Session")
			for front in (second, first, second):
				t.equal(same(front, place, place=place), (201, a.json["id"], node), f"asked for again at {front.name}")
			t.equal(make(second, place, place=place, timeout=100).status, 409, "another wish")
			other = make(second, place, hers, place=place)
			t.check(other.status == 201 and other.json["id"] != a.json["id"], "the same key of another token")
			x = Session(a.json["id"], mine[1])
			t.equal(x.code(second, "print('lives')")["stdout"], "lives\n", "and it is one")
			x.ask(second, "DELETE")
			wait_until("it has ended", lambda: make(second, place, place=place).status == 409)
		x, _ = begin(t, first, mine[0])
		saved = x.ask(first, "POST", "/snapshots", {}).json["id"]
		a = make(first, "restored", snapshot=saved)
		t.equal((a.status, same(second, "restored", snapshot=saved)[:2]), (201, (201, a.json["id"])), "one with files of a snapshot")
		t.equal(make(first, "refused", timeout=1e6).status, 403, "one that cannot be")
		a = make(first, "refused", timeout=1e6)
		t.equal(a.status, 403, f"nor again: {a.body[:200]!r}")
		entry = sealed.Known.instead_of(first)
		n = c.nats()
		place = hashlib.sha256(b"ann\0late").hexdigest()
		asked = sealed.fields_of(n.get("keys", hashlib.sha256(b"ann\0here").hexdigest()))["asked_hash"][0]

		def put(issued):
			n.put("keys", place, entry.seal("key", ("key", place), ("id", "never2published3"), ("who", "ann"), ("reply_to", "another2life3333"), ("asked_hash", asked), ("issued", issued)))
		put(int(time.time()))
		t.equal(make(second, "late", place="here").status, 503, "one that another front is about to make")
		put(int(time.time()) - 100)
		a = make(second, "late", place="here")
		t.equal((a.status, a.json["id"], a.json["node"]), (201, "never2published3", second.name), "one whose front was killed before it made it")
		n.close()


SERVER = """
import hashlib, http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
	protocol_version = "HTTP/1.1"
	def answer(self, body):
		self.send_response(200)
		self.send_header("Content-Length", str(len(body)))
		self.end_headers()
		self.wfile.write(body)
	def do_GET(self):
		self.answer(b"0123456789abcdef" * (int(self.path.strip("/")) // 16))
	def do_POST(self):
		self.answer(hashlib.sha256(self.rfile.read(int(self.headers["Content-Length"]))).hexdigest().encode())
	def log_message(self, *words):
		pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def bare(front, path):
	"""Without a token, and not through the unix socket, whose clients are known by their user."""
	where = next(line.split()[1] for line in front.said("out").splitlines() if line.startswith("ready http"))
	host, port = where.removeprefix("http://").rstrip("/").rsplit(":", 1)
	with Inside(front.net):
		c = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
		c.connect()
	try:
		c.request("GET", path)
		r = c.getresponse()
		return r.status, r.read()
	finally:
		c.close()


def through(front, session, method, path, body=None):
	c = UnixConnection(front.socket, PATIENCE)
	try:
		c.request(method, f"/v1/sessions/{session.ident}/ports/8000/{path}", body)
		r = c.getresponse()
		return r.status, r.read()
	finally:
		c.close()


@case("a server in a session on a worker is reached through both fronts: whole bodies both ways, many at a time, until the session ends; so are links to files")
def ports(t):
	with Cluster(t, fronts=2) as c:
		takes_sessions(c.fronts[0])
		x, _ = begin(t, c.fronts[0], place="worker")
		a = through(c.fronts[1], x, "GET", "16")
		t.equal(a[0], 502, f"nobody listens yet: {a}")
		t.equal(x.ask(c.fronts[0], "POST", "/processes", {"args": ["python3", "-c", SERVER], "async": True}).status, 202, "the server")
		wait_until("it listens", lambda: through(c.fronts[1], x, "GET", "16")[0] == 200)
		length = 5000000 // 16 * 16
		got = []

		def client(front):
			got.append(through(front, x, "GET", str(length)))
		clients = [threading.Thread(target=client, args=(f,), daemon=True) for f in c.fronts * 3]
		for one in clients:
			one.start()
		for one in clients:
			one.join(60)
		t.equal([(status, body == b"0123456789abcdef" * (length // 16)) for status, body in got], [(200, True)] * 6, "what came, by each")
		data = os.urandom(3000000)
		t.equal(through(c.fronts[1], x, "POST", "", data), (200, hashlib.sha256(data).hexdigest().encode()), "what was sent")
		t.equal(upload(c.fronts[0], x, "f", b"linked")[0], 200, "a file")
		link = x.ask(c.fronts[0], "POST", "/links", {"path": "f"}).json["url"]
		query = link[link.index("?"):]
		for f in c.fronts:
			t.equal(bare(f, f"/v1/sessions/{x.ident}/files/f{query}"), (200, b"linked"), "a link, at each front")
		t.equal(bare(c.fronts[1], f"/v1/sessions/{x.ident}/files/g{query}")[0], 401, "a link to another file")
		t.equal(bare(c.fronts[1], f"/v1/sessions/{x.ident}/files/f")[0], 401, "no link, and no token")
		x.ask(c.fronts[0], "DELETE")
		wait_until("it is over", lambda: through(c.fronts[1], x, "GET", "16")[0] == 410)
		c.fronts[1].end(20)
		t.equal(c.fronts[1].proc.returncode, 0, "a front leaves with no connection open")
