# SPDX-License-Identifier: Apache-2.0
"""Fronts hold no state: whoever asks another one for the same id is answered alike."""
import json
import threading

from cluster import SLEEP, Cluster, began, children, token, wait_until
from harness import case

STEPS = "import time\nfor i in range({}):\n\tprint('step', i, flush=True)\n\ttime.sleep(0.3)"


def events(node, ident, headers=()):
	"""All of them, and what the program wrote to standard output."""
	a = node.ask("GET", f"/v1/executions/{ident}/events", headers={"Accept": "text/event-stream", **dict(headers)})
	if a.status != 200:
		return a.status, [], ""
	rows = [json.loads(line[6:]) for line in a.body.decode().splitlines() if line.startswith("data: ")]
	return 200, rows, "".join(r["data"] for r in rows if r["event"] == "stdout")


class Watching(threading.Thread):
	"""Somebody who reads events of an execution as they come."""
	def __init__(self, node, ident):
		super().__init__(daemon=True)
		self.node, self.execution, self.got = node, ident, None
		self.start()

	def run(self):
		self.got = events(self.node, self.execution)

	def result(self):
		self.join(120)
		return self.got


@case("events of what another front promised: from the first on, while it waits, while it runs and when it is over")
def events_elsewhere(t):
	with Cluster(t, fronts=2, jobs=1) as c:
		first, second = c.fronts
		ident = first.accept(STEPS.format(8))
		began(c)
		waiting = first.accept("print('at last')")
		early, queued = Watching(second, ident), Watching(second, waiting)
		whole = "".join(f"step {i}\n" for i in range(8))
		late = Watching(second, ident)	# another one at the same front
		for who, what in ((early, "while it runs"), (late, "by a second client")):
			status, rows, text = who.result()
			t.equal((status, text, rows[0]["event"], rows[-1]["event"]), (200, whole, "started", "verdict"), what)
		t.equal(rows[-1]["result"]["stdout"], whole, "the result that ends them")
		status, rows, text = queued.result()
		t.equal((status, text, rows[-1]["verdict"]), (200, "at last\n", "ok"), "of one that waited")
		first.kill()
		status, rows, text = events(second, ident)
		t.equal((status, text, rows[0]["event"]), (200, whole, "started"), "when it is over, and its front has gone")
		c.workers[0].kill()
		second.kill()
		second.begin()
		second.wait_again()
		status, rows, text = events(second, ident)
		t.equal((status, [r["event"] for r in rows]), (200, ["notice", "verdict"]), "when nobody remembers but the bucket")
		t.equal(rows[-1]["result"]["stdout"], whole, "which has the result")


@case("cancelling and artifacts through another front; what is another token's is not there")
def others(t):
	with Cluster(t, fronts=2, jobs=1) as c:
		first, second = c.fronts
		mine, hers = ([token(f, name) for f in c.fronts] for name in ("mine", "hers"))
		running = first.ask("POST", "/v1/executions", {"language": "python", "code": SLEEP.format(60), "async": True}, mine[0]).json["id"]
		began(c)
		made = first.ask("POST", "/v1/executions", {"language": "python", "code": "open('a.bin','wb').write(bytes(range(256)) * 8000)",
							    "artifacts": ["a.bin"], "async": True}, mine[0]).json["id"]
		waiting = first.ask("POST", "/v1/executions", {"language": "python", "code": "print('begun')", "async": True}, mine[0]).json["id"]
		for path in (f"/{running}", f"/{running}/events", f"/{made}/artifacts/a.bin"):
			t.equal(second.ask("GET", "/v1/executions" + path, headers=hers[1]).status, 404, f"GET {path} by another token")
		t.equal(second.ask("DELETE", f"/v1/executions/{running}", headers=hers[1]).status, 404, "DELETE by another token")
		t.equal(second.ask("GET", f"/v1/executions/{made}/artifacts/a.bin", headers=mine[1]).status, 404, "a file before the end")
		a = second.ask("DELETE", f"/v1/executions/{waiting}", headers=mine[1])
		t.equal((a.status, a.json["state"]), (202, "queued"), "one that waits")
		a = second.ask("DELETE", f"/v1/executions/{running}", headers=mine[1])
		t.equal((a.status, a.json["state"]), (202, "running"), "one that runs")

		def ended(ident):
			doc = second.ask("GET", f"/v1/executions/{ident}", headers=mine[1]).json
			return doc if doc["state"] == "finished" else None
		t.equal(wait_until("it ends", lambda: ended(running))["verdict"], "cancelled", "what ran")
		r = wait_until("it ends", lambda: ended(waiting))
		t.equal((r["verdict"], r["result"]["stdout"]), ("cancelled", ""), "what waited")
		wait_until("the other one ends", lambda: ended(made))
		t.equal(second.ask("DELETE", f"/v1/executions/{made}", headers=mine[1]).json["state"], "finished", "cancelling what is over")
		first.kill()
		a = second.ask("GET", f"/v1/executions/{made}/artifacts/a.bin", headers=mine[1])
		t.equal((a.status, a.body == bytes(range(256)) * 8000), (200, True), "a file longer than a message, whole")
		t.equal(second.ask("GET", f"/v1/executions/{made}/artifacts/b", headers=mine[1]).status, 404, "a file that it has not made")
		t.equal(second.ask("GET", f"/v1/executions/{made}/artifacts/a.bin", headers=hers[1]).status, 404, "by another token")


@case("words that somebody watches, or wants an end, that no front has sealed do nothing")
def forged(t):
	with Cluster(t, fronts=2) as c:
		first, second = c.fronts
		n = c.nats()
		n.subscribe("brig.watch.>")
		ident = first.accept(STEPS.format(10))
		began(c)
		watching = Watching(second, ident)
		subject, watch = n.next()
		t.equal(subject, f"brig.watch.{ident}", "where it is said")
		spy = c.nats()
		spy.subscribe("brig.front.spy12345678901")
		front = watch[watch.index(b"\x08reply_to") + 13:][:16]
		n.publish(subject, watch.replace(front, b"spy1234567890123"))
		n.publish(subject, b"nonsense")
		n.publish(f"brig.cancel.{ident}", watch)
		wait_until("it is named", lambda: "refused a watch whose seal is not that of" in c.workers[0].said())
		t.equal(watching.result()[2], "".join(f"step {i}\n" for i in range(10)), "and the true one is served")
		for one in (n, spy):
			one.close()


def by_kind(subscriptions):
	"""{ subject: n }, without the names of runners, which are new with each."""
	found = {}
	for subject, n in subscriptions.items():
		kind = subject.rsplit(".", 1)[0] + ".ID" if subject.startswith(("brig.front.", "brig.node.")) else subject
		found[kind] = found.get(kind, 0) + n
	return found


@case("a new runner on a link that lives on listens once, and no longer to what the last one did")
def listens_once(t):
	with Cluster(t) as c:
		f, w = c.fronts[0], c.workers[0]
		before = c.brokers[0].subscriptions()
		t.equal(by_kind(before).get("$KV.brig-nodes.*"), 2, f"both hear of nodes: {before}")
		links = [children(n.proc.pid)["brig-link"] for n in (w, f)]
		for node in (w, f):
			t.check(node.kill("brig-runner"), "the runner is there")

		def listens():
			now = c.brokers[0].subscriptions()
			fresh = [s for s in now if s.startswith("brig.node.") and s not in before]
			counts = by_kind(now)
			return now if len(fresh) == 2 and all(counts.get(k, 0) >= n for k, n in by_kind(before).items()) else None
		after = wait_until("new runners listen", listens)
		t.equal([children(n.proc.pid)["brig-link"] for n in (w, f)], links, "the links are the same")
		t.equal(by_kind(after), by_kind(before), "subscriptions")
		t.equal(f.run("print(1)").json["stdout"], "1\n", "a program")
