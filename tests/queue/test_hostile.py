# SPDX-License-Identifier: Apache-2.0
"""What a broker, or a neighbour who has rights on one, may try: it is refused, named, and nothing is lost by it."""
import os
import time

from cluster import SLEEP, Cluster, Node, began, wait_until
from harness import case

OTHER = "b" * 16


@case("a job that was altered, replayed or made up: refused and named; the true one runs once")
def jobs(t):
	with Cluster(t) as c:
		f, w = c.fronts[0], c.workers[0]
		spy = c.nats()
		spy.subscribe("brig.jobs.>")
		ident = f.accept("print('mine')")
		subject, job = spy.next()
		t.equal(subject, f"brig.jobs.unknown.python.{ident}", "where it was published")
		t.check(b"print('mine')" in job, "what brokers see is no secret from them")
		f.result(ident)
		n = c.nats()
		n.publish(f"brig.jobs.unknown.python.{OTHER}", job.replace(b"print('mine')", b"print('evil')"))
		n.publish("brig.jobs.unknown.python." + "c" * 16, job)
		n.publish("brig.jobs.unknown.python." + "d" * 16, b"nonsense")
		n.publish("brig.jobs.unknown.python." + "e" * 16, b"brig stub 1\n" + b"\xff" * 40)
		wait_until("the altered one is named", lambda: "it was altered, or is forged" in w.said())
		wait_until("nonsense is named", lambda: "bytes that are not sealed" in w.said() and "a stub of a length" in w.said())
		wait_until("nothing of it stays in the stream", lambda: n.messages("BRIG_JOBS") == 0)
		t.equal((n.messages("KV_brig-claims"), n.messages("KV_brig-results")), (1, 1), "claims and results")
		t.equal(f.run("print('still')").json["stdout"], "still\n", "the next one")
		for one in (spy, n):
			one.close()


@case("copies of a job that runs: neither begun again nor a reason to call it lost")
def copies(t):
	with Cluster(t, workers=2, jobs=2) as c:
		f = c.fronts[0]
		spy, n = c.nats(), c.nats()
		spy.subscribe("brig.jobs.>")
		for words in ({"retry": "never"}, {}):
			ident = f.accept(SLEEP.format(3), **words)
			began(c)
			subject, job = spy.next()
			for _ in range(6):
				n.publish(subject, job)
				spy.next()
			t.equal(f.result(ident)["result"]["stdout"], "up\nwhole\n", f"with {words}")
		wait_until("they are named", lambda: "refused a copy of job" in c.workers[0].said() + c.workers[1].said())
		wait_until("and gone", lambda: n.messages("BRIG_JOBS") == 0)
		for w in c.workers:
			t.check("begun it" not in w.said(), "nobody took it for lost", w.said())
		spy.close()
		n.close()


@case("a result that was forged or is another job's: refused by the front; the true one takes its place")
def results(t):
	with Cluster(t) as c:
		f = c.fronts[0]
		n = c.nats()
		old = f.accept("print('old')")
		f.result(old)
		replayed = n.get("results", old)
		first, second, third = (f.accept(SLEEP.format(3)) for _ in range(3))
		began(c, 4)
		n.put("results", first, b"nonsense")
		n.put("results", second, replayed)
		n.put("results", third, replayed.replace(old.encode(), third.encode()))
		for ident in (first, second, third):
			t.equal(f.result(ident)["result"]["stdout"], "up\nwhole\n", f"the result of {ident}")
		said = f.said() + c.workers[0].said()
		for word in ("it was altered, or is forged", "bytes that are not sealed"):
			t.check(word in said, f"'{word}' is said", said)
		n.close()


@case("claims, cancellations, events and entries of nodes that nobody known has sealed do nothing")
def claims(t):
	with Cluster(t, jobs=1) as c:
		f, w = c.fronts[0], c.workers[0]
		n = c.nats()
		first = f.accept(SLEEP.format(2))
		began(c)
		claim = n.get("claims", first)
		waiting = [f.accept("print('begun')") for _ in range(2)]
		never = f.accept("print('begun')", retry="never")
		n.put("claims", never, b"nonsense")
		n.put("claims", waiting[0], b"nonsense")
		n.put("claims", waiting[1], claim.replace(first.encode(), waiting[1].encode()))
		n.publish(f"brig.cancel.{first}", b"nonsense")
		n.publish(f"brig.cancel.{first}", claim)
		n.put("nodes", "f" * 64, b"nonsense")
		t.equal(f.result(first)["result"]["stdout"], "up\nwhole\n", "nobody could cancel it")
		for ident in waiting:
			t.equal(f.result(ident)["result"]["stdout"], "begun\n", "a forged claim keeps nobody out")
		t.equal(f.result(never)["state"], "lost", "one that says never, and of whose claim nobody knows")
		t.check("refused a claim where a cancel has to be" in w.said(), "it is named", w.said())
		n.close()


@case("a front whose key no worker knows: its jobs are refused, and it says that they are lost")
def unknown_front(t):
	with Cluster(t) as c:
		stranger = Node(c, "front")
		both = os.path.join(stranger.dir, "nodes")
		with open(c.nodes_file) as known, open(both, "w") as f:
			f.write(known.read() + f"front {stranger.name} {stranger.key}\n")
		known_file, c.nodes_file = c.nodes_file, both
		stranger.begin()
		c.nodes_file = known_file
		stranger.wait()
		r = stranger.result(stranger.accept("print('in')"))
		t.equal(r["state"], "lost", "what becomes of it")
		t.check("which is no known node that may" in c.workers[0].said(), "the worker names it", c.workers[0].said())
		t.equal(c.fronts[0].run("print(1)").json["stdout"], "1\n", "others are served")


@case("floods and oversize messages: the service goes on, and its memory has a bound")
def floods(t):
	with Cluster(t) as c:
		f, w = c.fronts[0], c.workers[0]
		n = c.nats()
		for _ in range(3):
			n.publish("brig.cancel.x", b"x" * 1000000)
		for _ in range(20000):
			n.publish("brig.cancel.x", b"y" * 100)
			n.publish("brig.jobs.unknown.kind-command.q", b"z")
		n.flush()
		begin = time.monotonic()
		t.equal(f.run("print(1)").json["stdout"], "1\n", "a program meanwhile")
		t.check("so far)" in w.said(), f"it is counted ({time.monotonic() - begin:.1f} s)", w.said()[-500:])
		t.check(len(w.said()) < 200000, "and not told for each of them")
		n.close()
