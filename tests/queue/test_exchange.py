# SPDX-License-Identifier: Apache-2.0
"""Package sets and compiled programs that workers give each other, and jobs that go where their set is."""
import hashlib
import os
import socket
import sys
import threading

import harness
import sealed
from cluster import SLEEP, Cluster, began, wait_until
from harness import case

sys.path.insert(0, os.path.join(harness.TESTS, "packages"))
from registries import Registry, wheel

C = '#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n'
HELLO = "import hello; print(hello.VALUE)"
JOBS = 8	# one after the other: by turns, half of them would be elsewhere


def env_for(registry):
	return {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": registry.url + "/simple", "BRIG_INSTALL_TIMEOUT_MS": "300000", "BRIG_STARTUP_TIMEOUT_MS": "60000"}


def entry(f, w):
	return next((n for n in f.ask("GET", "/v1/nodes").json["nodes"] if n["name"] == w.name), None)


def heard(f, by, n):
	"""It takes jobs, and knows so many nodes."""
	wait_until(f"{by.name} hears {n}", lambda: (entry(f, by) or {"hears": 0})["hears"] == n and entry(f, by)["classes"])


def hello(f, **more):
	return f.accept(HELLO, packages=["hello"], **more)


def compiled(f):
	return f.accept(C, language="c")


@case("a set that one node has: jobs for it go there; when it is full another node gets the set from it, and installs nothing; likewise a compiled program")
def given(t):
	with Cluster(t, workers=2, jobs=1, later=2, gives=True) as c:
		f, (w1, w2) = c.fronts[0], c.workers
		with w1.net.inside(Registry) as registry:	# nobody else can reach it
			registry.put_pip("hello", wheel("hello", {"hello/__init__.py": "VALUE = 6 * 7\n", "hello/data.py": "X = '" + "y" * 900000 + "'\n"}))
			c.env = env_for(registry)
			w1.begin()
			w1.wait()
			r = f.result(hello(f))
			t.equal((r["result"]["verdict"], r["node"]), ("ok", w1.name), f"installed: {r['result']['reason']}")
			t.equal((r["result"]["stdout"], r["result"]["packages"]["state"]), ("42\n", "installed"), "the only node installs it")
			r = f.result(compiled(f))
			t.equal((r["result"]["stdout"], r["result"]["cache"]["compile"]), ("compiled\n", "stored"), "and compiles")
			asked = len(registry.asked)
			w2.begin()
			w2.wait()
			heard(f, w2, 2)
			where = [f.result(hello(f))["node"] for _ in range(JOBS)]
			# The other one looks now and then for what is left over, and on a busy machine may find a job before the node that has the set.
			t.check(where.count(w1.name) > JOBS / 2, "jobs for a set that one node has", where)
			sleeper = None
			while not sleeper and len(where) < 3 * JOBS:	# until it is where the set is, which has no place then
				ident = f.accept(SLEEP.format(600), packages=["hello"])
				where.append(wait_until("it has begun", lambda: f.look(ident).json["node"]))
				began(c, len(where) + 2)
				if where[-1] == w1.name:
					sleeper = ident
				else:
					f.ask("DELETE", f"/v1/executions/{ident}")
					f.result(ident)
			t.check(sleeper, "one that sleeps where the set is", where)
			first = "hit" if w2.name in where else "received"
			r = f.result(hello(f))
			t.equal((r["node"], r["result"]["stdout"], r["result"]["packages"]["state"]), (w2.name, "42\n", first), "the other one has got the set")
			r = f.result(hello(f))
			t.equal((r["node"], r["result"]["packages"]["state"]), (w2.name, "hit"), "and keeps it")
			r = f.result(compiled(f))
			t.equal((r["node"], r["result"]["stdout"], r["result"]["cache"]["compile"]), (w2.name, "compiled\n", "received"), "likewise a program")
			t.equal(len(registry.asked), asked, "what the registry was asked since")
			for kind in ("pip", "compile"):
				t.check(f"{w1.name} gave shared-{kind}" in w2.said(), f"it says who gave it: {kind}", w2.said())
			for w in c.workers:
				p = w.command("cache", "verify", "--state", w.state)
				t.equal(p.returncode, 0, f"the store of {w.name}: {p.stdout}{p.stderr}")
			f.ask("DELETE", f"/v1/executions/{sleeper}")
			f.result(sleeper)


@case("an environment that one node has: jobs of it go there; when it is full, or an environment is of a front, another node gets it and runs them, and has it for good")
def environments(t):
	with Cluster(t, workers=2, jobs=1, later=2, gives=True) as c:
		f, (w1, w2) = c.fronts[0], c.workers
		with w1.net.inside(Registry) as registry:	# nobody else can reach it
			registry.put_pip("hello", wheel("hello", {"hello/__init__.py": "VALUE = 6 * 7\n", "hello/data.py": "X = '" + "y" * 900000 + "'\n"}))
			c.env = env_for(registry)
			p = w1.command("env", "create", "data.x", "--python", "hello", "--state", w1.state)
			t.equal(p.returncode, 0, f"an environment: {p.stderr}")
			asked = len(registry.asked)
			for w in (w1, w2):
				w.begin()
			for w in (w1, w2):
				w.wait()
				heard(f, w, 2)
			t.equal([n["classes"].count("unknown.env-data_x") for n in (entry(f, w1), entry(f, w2))], [1, 0], "who has it")
			t.equal(f.result(f.accept(HELLO, environment="data.x"))["node"], w1.name, "a job of an environment that one node has")
			sleeper = f.accept(SLEEP.format(600), environment="data.x")
			full = wait_until("it has begun", lambda: f.look(sleeper).json["node"])	# the first one, unless it was a moment too late
			other = next(w.name for w in (w1, w2) if w.name != full)
			r = f.result(f.accept(HELLO, environment="data.x"))
			t.equal((r["node"], r["result"]["stdout"], r["result"]["environment"]), (other, "42\n", "data.x"), f"the one that has a place has it, too: {r['result']['reason']}")
			t.check(f"{w1.name} gave environment" in w2.said(), "it says who gave it", w2.said())
			t.equal(len(registry.asked), asked, "what the registry was asked since")
			t.check(wait_until("it says that it has it", lambda: "unknown.env-data_x" in entry(f, w2)["classes"]), "its entry")
			p = w2.command("cache", "verify", "--state", w2.state)
			t.equal(p.returncode, 0, f"its store: {p.stdout}{p.stderr}")
			f.ask("DELETE", f"/v1/executions/{sleeper}")
			f.result(sleeper)
			w1.kill()
			r = f.result(f.accept(HELLO, environment="data.x"))
			t.equal((r["node"], r["result"]["stdout"]), (w2.name, "42\n"), "when who gave it is gone")
		ident = f.ask("POST", "/v1/environments", {"name": "made", "warm": ["json"]}).json["id"]
		t.equal(f.result(ident)["verdict"], "ok", "an environment that a front has made")
		r = f.result(f.accept("import json; print(json.dumps([1]))", environment="made"))
		t.equal((r["node"], r["result"]["stdout"]), (w2.name, "[1]\n"), f"a job of it: {r['result']['reason']}")
		r = f.result(f.accept("print(1)", environment="none"))
		t.equal((r["node"], r["result"]["stdout"]), (w2.name, "1\n"), "a job of none")


class Liar(threading.Thread):
	"""Answers whoever wants something of this node with one piece."""
	def __init__(self, c, node, piece):
		super().__init__(daemon=True)
		self.nats, self.node, self.piece, self.wanted = c.nats(), node, piece, []
		self.nats.subscribe(f"brig.give.{node.key}")
		self.start()

	def stop(self):
		self.nats.sock.shutdown(socket.SHUT_RDWR)
		self.join()
		self.nats.close()

	def run(self):
		while True:
			try:
				_, data = self.nats.next()
			except (OSError, ValueError, harness.Failed):
				return
			asked = sealed.fields_of(data)
			who = asked["node"][0].rstrip(b"\0").decode()
			self.wanted.append(asked["kept_kind"][0].rstrip(b"\0").decode())
			self.nats.publish(f"brig.give.{who}", self.piece(asked["id"][0]))


@case("a giver that lies, pieces that somebody else sealed, and a node that may not give: nothing of theirs is kept, and what was wanted is made here", final="what a stranger sent was run")
def lied(t):
	evil, other = sealed.Known("evil"), sealed.Known("other")
	with Cluster(t, workers=1, jobs=1, later=1, gives=True) as c:
		f, w = c.fronts[0], c.workers[0]
		with open(c.nodes_file, "a") as nodes:
			nodes.write(f"worker evil {evil.key} gives\nworker other {other.key}\n")
		w.begin()
		w.wait()
		r = f.result(compiled(f))
		t.equal(r["result"]["cache"]["compile"], "stored", "nobody else has it")
		n = c.nats()
		has = sealed.fields_of(wait_until("it says what it has", lambda: (e := n.get("nodes", w.key)) and b"shared-compile:" in e and e))["has"][0]
		t.check(has.startswith(b"shared-compile:"), f"what it has: {has}")

		def again(number, liar, words=()):
			"""The node has nothing any more; this one says that it has."""
			p = w.command("cache", "prune", "--all", "--state", w.state)
			t.equal(p.returncode, 0, "the store is empty")
			n.put("nodes", liar.key, liar.entry(("has", has)))
			heard(f, w, number)
			r = f.result(compiled(f))
			t.equal((r["result"]["stdout"], r["result"]["cache"]["compile"]), ("compiled\n", "stored"), f"made here {words}")
			for word in words:
				t.check(word in w.said(), f"'{word}' is said", w.said())
		body = b"#!/bin/sh\necho evil\n"

		def piece(ident, by=evil, content=None, **more):
			return by.seal("piece", ("id", ident), ("content_hash", content or hashlib.sha256(b"another").hexdigest()), ("created", 1), ("total", len(body)),
				       ("offset", 0), ("body", body))
		not_asked = Liar(c, other, lambda ident: piece(ident, other))
		again(2, other)
		t.equal(not_asked.wanted, [], "one that may not give is not asked")
		liar = Liar(c, evil, piece)
		again(3, evil, ["evil does not give shared-compile", "not what its hash says"])
		t.equal(liar.wanted, ["shared-compile"], "what it was asked for")
		liar.piece = lambda ident: piece(ident)[:-1] + b"x"
		n.put("nodes", evil.key, evil.entry(("has", has)))
		again(3, evil, ["is not that of evil", "it says nothing"])
		liar.piece = piece
		n.put("nodes", evil.key, evil.entry(("offers", "env-evil")))
		n.put("nodes", other.key, other.entry(("offers", "env-other")))
		jobs = [f.accept("print('begun')", environment=name) for name in ("evil", "other")]
		wait_until("it is asked for", lambda: "evil does not give the environment env-evil" in w.said())
		t.equal((liar.wanted[-1], not_asked.wanted), ("environment", []), "who is asked for an environment")
		t.equal(w.command("env", "show", "evil", "--state", w.state).returncode != 0, True, "and it is not kept")
		t.equal([f.look(ident).json["state"] for ident in jobs], ["running", "running"], "their jobs wait: they are with the queue")
		t.equal([n.get("claims", ident) for ident in jobs], [None, None], "and nobody has begun them")
		for one in (liar, not_asked):
			one.stop()
		n.close()
