# SPDX-License-Identifier: Apache-2.0
"""Fronts hold no state: whoever asks another one for the same id is answered alike."""
import hashlib
import http.client
import json
import threading
import time

import sealed
from cluster import SLEEP, Cluster, began, children, described, token, wait_until
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


def know_each_other(c):
	for f in c.fronts:
		wait_until(f"{f.name} knows all fronts", lambda: sum(n["role"] == "front" and n["state"] == "live" for n in f.ask("GET", "/v1/nodes").json["nodes"]) == len(c.fronts))


@case("the list of executions has those of all fronts, each once and of its token, also when their front was killed; a node that does not answer is named")
def listed(t):
	with Cluster(t, fronts=2, jobs=1) as c:
		first, second = c.fronts
		mine, hers = ([token(front, name) for front in c.fronts] for name in ("ann", "eve"))

		def ask(front, who, code, **more):
			return front.ask("POST", "/v1/executions", {"language": "python", "code": code, **more}, who[c.fronts.index(front)]).json["id"]

		def listed(front, who, **query):
			a = front.ask("GET", "/v1/executions" + "".join(f"{'&' if i else '?'}{k}={v}" for i, (k, v) in enumerate(query.items())), headers=who[c.fronts.index(front)])
			described(t, a.json, "Executions")
			return a.json
		know_each_other(c)
		over = [ask(front, mine, "pass") for front in (first, second)]
		other = ask(first, hers, "pass")
		runs = ask(first, mine, STEPS.format(100), **{"async": True})
		began(c, 4)
		waits = [ask(first, mine, SLEEP.format(100), **{"async": True}) for _ in range(2)]
		for front in c.fronts:
			rows = listed(front, mine)["executions"]
			t.equal(sorted(x["id"] for x in rows), sorted(over + waits + [runs]), f"all of a token, by {front.name}")
			t.equal([x["created"] for x in rows], sorted((x["created"] for x in rows), reverse=True), "the youngest first")
			two = [x["id"] for x in listed(front, mine, limit=2)["executions"]]	# of one that a worker alone tells of, it is when it began
			t.check(len(set(two)) == 2 and set(two) <= {x["id"] for x in rows}, f"two of them: {two}")
			t.equal({x["id"] for x in listed(front, mine, state="finished")["executions"]}, set(over), "those that are over")
			t.equal([x["id"] for x in listed(front, hers)["executions"]], [other], "of another token")
		first.kill()
		answer = listed(second, mine)
		t.equal(answer["missing"], [first.name], "who does not answer any more")
		t.check(set(over + [runs]) <= {x["id"] for x in answer["executions"]}, f"what has begun is listed: {answer}")
		row = next(x for x in answer["executions"] if x["id"] == runs)
		t.equal((row["state"], row["node"], row["token"]), ("running", c.workers[0].name, "ann"), "as its worker knows it")
		t.equal({x["id"] for x in listed(second, mine, node=c.workers[0].name)["executions"]}, {x["id"] for x in answer["executions"]}, "by their node")
		for ident in (runs, *waits):
			second.ask("DELETE", f"/v1/executions/{ident}", headers=mine[1])


@case("the history of all nodes: each execution with its node, of its token, through any front, also when the front that asked was killed")
def history(t):
	with Cluster(t, fronts=2, workers=2, jobs=1) as c:
		first, second = c.fronts
		mine, hers, admin = ([token(front, name, *words) for front in c.fronts] for name, words in (("ann", ()), ("eve", ()), ("root", ("--admin",))))

		def ask(front, who, code="print(7)", **more):
			a = front.ask("POST", "/v1/executions", {"language": "python", "code": code, **more}, who[c.fronts.index(front)])
			t.equal(a.status, 200, f"it runs: {a.body[:300]!r}")
			return a.json["id"]

		def past(front, who, query=""):
			a = front.ask("GET", "/v1/history" + query, headers=who[c.fronts.index(front)])
			t.equal(a.status, 200, f"the history: {a.body[:300]!r}")
			described(t, a.json, "History")
			return a.json
		know_each_other(c)
		wait_until("both workers are known", lambda: sum(n["role"] == "worker" and n["state"] == "live" for n in second.ask("GET", "/v1/nodes").json["nodes"]) == 2)
		over = [ask(front, mine) for front in (first, second, first, second)]
		wrong = ask(first, mine, "raise SystemExit(3)")
		other = ask(second, hers)
		nodes = {w.name for w in c.workers}
		for front in c.fronts:
			doc = past(front, mine)
			rows = doc["executions"]
			t.equal((sorted(x["id"] for x in rows), doc["total"], doc["missing"]), (sorted(over + [wrong]), 5, []), f"all of a token, by {front.name}")
			t.equal([x["time"] for x in rows], sorted((x["time"] for x in rows), reverse=True), "the youngest first")
			t.check({x["node"] for x in rows} <= nodes, f"where they ran: {[x['node'] for x in rows]}")
			t.equal([x["id"] for x in past(front, mine, "?verdict=error")["executions"]], [wrong], "filtered")
			two = past(front, mine, "?limit=2")
			t.equal(([x["id"] for x in two["executions"]], two["total"]), ([x["id"] for x in rows[:2]], 5), "two of them")
			t.equal([x["id"] for x in past(front, hers)["executions"]], [other], "of another token")
			t.equal(sorted(x["id"] for x in past(front, admin)["executions"]), sorted(over + [wrong, other]), "an administrator's")
			a = front.ask("GET", "/v1/history?since=whenever", headers=mine[c.fronts.index(front)])
			t.equal(a.status, 422, f"a wrong filter: {a.body[:200]!r}")
			for row in rows:
				a = front.ask("GET", f"/v1/history/{row['id']}", headers=mine[c.fronts.index(front)])
				t.equal((a.status, a.json.get("id"), a.json.get("node")), (200, row["id"], row["node"]), f"one of them: {a.body[:200]!r}")
				described(t, a.json, "HistoryEntry")
				t.equal(front.ask("GET", f"/v1/history/{row['id']}", headers=hers[c.fronts.index(front)]).status, 404, "which is not another token's")
			t.equal(front.ask("GET", "/v1/history/" + "a" * 16, headers=mine[c.fronts.index(front)]).status, 404, "one that never was")
		second.kill()
		doc = past(first, mine)
		t.equal((sorted(x["id"] for x in doc["executions"]), doc["missing"]), (sorted(over + [wrong]), [second.name]), "also of a front that was killed, and who does not answer")
		a = first.ask("GET", "/v1/history/" + "a" * 16, headers=mine[0])
		t.equal((a.status, second.name in a.json["error"]["message"]), (503, True), f"nobody knows what that one has: {a.body}")


@case("a batch that another front has accepted: its state, results, stream and end; also when that front was killed, and again by its Idempotency-Key")
def batches(t):
	with Cluster(t, fronts=2, jobs=1) as c:
		first, second = c.fronts
		mine, hers = ([token(front, name) for front in c.fronts] for name in ("ann", "eve"))

		def start(front, jobs, **headers):
			return front.ask("POST", "/v1/batches", {"jobs": [{"language": "python", "code": code, "id": f"job {i}"} for i, code in enumerate(jobs)]},
					 {**mine[c.fronts.index(front)], **headers})

		def state(front, ident, who=mine):
			return front.ask("GET", f"/v1/batches/{ident}", headers=who[c.fronts.index(front)])

		def over(ident):
			doc = state(second, ident).json
			return doc if doc["state"] == "finished" else None
		codes = [f"print({i})" for i in range(5)] + ["raise SystemExit(3)"]
		key = {"Idempotency-Key": "nightly"}
		quick, slow = start(first, codes, **key).json["id"], start(first, [STEPS.format(100)] * 4).json["id"]
		doc = wait_until("it ends", lambda: over(quick))
		described(t, doc, "Batch")
		t.equal((doc["states"]["finished"], doc["verdicts"], [j["job"] for j in doc["jobs"]]), (6, {"ok": 5, "error": 1}, [f"job {i}" for i in range(6)]), "as another front sees it")
		a = second.ask("GET", f"/v1/batches/{quick}/results", headers=mine[1])
		rows = [json.loads(line) for line in a.body.decode().splitlines()]
		t.equal([(r["job"], r["stdout"]) for r in rows], [(f"job {i}", f"{i}\n") for i in range(5)] + [("job 5", "")], "its results")
		t.equal([state(second, quick, hers).status, second.ask("DELETE", f"/v1/batches/{slow}", headers=hers[1]).status, state(second, "a" * 16).status], [404] * 3, "of another token, and of none")
		again = start(second, codes, **key)
		t.equal((again.status, again.json["id"], again.json["total"]), (202, quick, 6), "the same key at another front")
		t.equal(start(second, codes[:2], **key).status, 409, "for another batch")
		know_each_other(c)
		listed = second.ask("GET", "/v1/batches", headers=mine[1]).json
		described(t, listed, "Batches")
		t.equal({b["id"] for b in listed["batches"]}, {quick, slow}, "the list")
		began(c, 7)
		first.kill()
		doc = state(second, slow).json
		t.equal((doc["state"], doc["states"]), ("running", {"queued": 3, "running": 1, "finished": 0, "lost": 0}), "when its front is dead")
		watching = threading.Thread(target=lambda: seen.append(second.ask("GET", f"/v1/batches/{slow}/results", headers={"Accept": "text/event-stream", **mine[1]})))
		seen = []
		watching.start()
		a = second.ask("DELETE", f"/v1/batches/{slow}", headers=mine[1])
		t.equal(a.status, 202, "it is to end")
		doc = wait_until("it ends", lambda: over(slow))
		t.equal((doc["verdicts"], doc["states"]["lost"]), ({"cancelled": 4}, 0), "and ends")
		watching.join(60)
		events = [line for line in seen[0].body.decode().splitlines() if line.startswith("event: ")]
		t.equal((events.count("event: result"), events[-1]), (4, "event: done"), f"who watched: {events}")
		n = c.nats()
		t.equal(n.messages("KV_brig-batches"), 2, "batches that there are")
		n.close()


class Listing:
	"""Batches of two tokens at two fronts, and lists of them."""
	def __init__(self, t, c):
		self.t, self.c = t, c
		self.headers = {name: [token(front, name) for front in c.fronts] for name in ("ann", "eve")}

	def of(self, front, who):
		return self.headers[who][self.c.fronts.index(front)] if who else {}	# nobody: an administrator, at the socket

	def start(self, front, who, *codes):
		a = front.ask("POST", "/v1/batches", {"jobs": [{"language": "python", "code": code} for code in codes]}, self.of(front, who))
		self.t.equal(a.status, 202, f"a batch: {a.body[:300]}")
		return a.json["id"]

	def ask(self, front, who, query=""):
		a = front.ask("GET", "/v1/batches" + query, headers=self.of(front, who))
		described(self.t, a.json, "Batches")
		return a.json

	def whole(self, front, who, query=""):
		"""The rows by their ids, when all that the bucket has was read in time."""
		doc = wait_until("a whole list", lambda: (d := self.ask(front, who, query)) and "brig-batches" not in d["missing"] and d)
		return {row["id"]: row for row in doc["batches"]}

	def ended(self, front, who, ident):
		return wait_until(f"{ident} ends", lambda: (row := self.whole(front, who).get(ident)) and row["state"] == "finished" and row)


@case("the list of batches has those of fronts that were killed, for their token; also at the same front when it is back")
def batches_of_killed(t):
	with Cluster(t, fronts=2, jobs=1) as c:
		first, second = c.fronts
		l, n = Listing(t, c), c.nats()
		quick, other = l.start(first, "ann", "print(1)", "raise SystemExit(3)"), l.start(first, "eve", "pass")
		t.equal([l.ended(first, "ann", quick)["verdicts"], set(l.whole(first, "eve"))], [{"ok": 1, "error": 1}, {other}], "while it lives")
		wait_until("it is kept how they ended", lambda: n.get("results", f"batch.{quick}"))
		l.ended(first, "eve", other)
		second_of = int(time.time())
		wait_until("they are of different seconds", lambda: int(time.time()) > second_of)
		slow = l.start(first, "ann", *[STEPS.format(100)] * 3)
		own = l.start(second, "ann", SLEEP.format(100))
		began(c, 4)
		wait_until("all that is not over is in the stream", lambda: n.messages("BRIG_JOBS") == 4)
		first.kill()

		def as_it_is(front, what):
			rows = l.whole(front, "ann")
			t.equal(set(rows), {quick, slow, own}, f"all of a token, {what}")
			row = rows[quick]
			t.equal([row["state"], row["token"], row["total"], row["verdicts"], row["ended"] is not None], ["finished", "ann", 2, {"ok": 1, "error": 1}, True], f"one that is over, {what}")
			t.equal([rows[slow]["state"], rows[slow]["states"]["running"], rows[slow]["states"]["lost"]], ["running", 1, 0], f"one that runs, {what}")
			t.equal(set(l.whole(front, "eve")), {other}, f"of another token, {what}")
			t.equal(set(l.whole(front, None)), {quick, slow, own, other}, f"an administrator's, {what}")
			two = [row["id"] for row in l.ask(front, "ann", "?limit=2")["batches"]]
			t.equal(set(two), {slow, own}, f"the youngest two, {what}")
		as_it_is(second, "at another front")
		first.begin()
		first.wait_again()
		as_it_is(first, "at the same one, which began anew")
		t.equal(n.get("results", f"batch.{slow}"), None, "nobody says that it has ended")
		t.equal(first.ask("DELETE", f"/v1/batches/{slow}", headers=l.of(first, "ann")).status, 202, "it is to end")
		t.equal(l.ended(second, "ann", slow)["verdicts"], {"cancelled": 3}, "and ends")
		wait_until("who has seen that keeps it for others", lambda: n.get("results", f"batch.{slow}"))
		t.equal(l.whole(first, "ann")[slow]["verdicts"], {"cancelled": 3}, "the list of another front")
		second.ask("DELETE", f"/v1/batches/{own}", headers=l.of(second, "ann"))
		l.ended(second, "ann", own)
		n.close()
		c.brokers[0].kill()
		wait_until("it is noticed", lambda: "no broker is there" in second.said())
		doc = l.ask(second, "ann")
		t.equal([{row["id"] for row in doc["batches"]}, "brig-batches" in doc["missing"]], [{own}, True], "without a broker")


@case("entries in the bucket of batches that were altered, copied or made up: refused, named, and not in the list, which says that it is not whole")
def forged_batches(t):
	with Cluster(t, fronts=2) as c:
		first, second = c.fronts
		l, n = Listing(t, c), c.nats()
		one, two = (l.start(first, "ann", "print(1)") for _ in range(2))
		for ident in (one, two):
			l.ended(first, "ann", ident)
			wait_until("it is kept how it ended", lambda: n.get("results", f"batch.{ident}"))
		first.kill()
		t.equal(set(l.whole(second, "ann")), {one, two}, "before")
		keys = {key.rsplit(".", 1)[1]: key for key in n.keys("batches")}
		when, owner, _ = keys[one].split(".")
		true = n.get("batches", keys[one])
		end = n.get("results", f"batch.{one}")

		def refused(place, data, word, ids):
			before = second.said().count(word)
			n.put(*place, data)
			doc = wait_until("it is named", lambda: (d := l.ask(second, "ann")) and second.said().count(word) > before and d)
			t.equal({row["id"] for row in doc["batches"]}, ids, f"the list: {word}")
			return doc["missing"]
		t.check("brig-batches" in refused(("batches", keys[one]), true.replace(b"ann\0", b"eve\0"), "refused a batch whose seal is not that of", {two}), "it is said that it is not whole")
		t.equal(set(l.ask(second, "eve")["batches"]), set(), "for whom it was altered")
		refused(("batches", keys[one]), b"nonsense", "bytes that are not sealed", {two})
		refused(("batches", keys[one]), b"", "what is not sealed", {two})
		refused(("batches", keys[one]), end, "refused a batch_end where a batch has to be", {two})
		refused(("batches", keys[one]), sealed.Known.instead_of(c.workers[0]).seal("batch", ("id", one), ("who", "ann"), ("issued", int(when)), ("job_ref", "a" * 16 + " 1")),
			"which is no known node that may", {two})
		n.put("batches", keys[one], true)
		t.equal(set(l.whole(second, "ann")), {one, two}, "the true one again")
		refused(("batches", f"9999999999.{owner}.{one}"), true, "in the place of 9999999999", {one, two})
		refused(("batches", f"1.{owner}.{'b' * 16}"), true, "refused the key of a batch that is none", {one, two})
		refused(("results", f"batch.{one}"), end.replace(b"\0ok\0", b"\0no\0").replace(b"ok\0", b"no\0"), "refused a batch_end whose seal is not that of", {one, two})
		refused(("results", f"batch.{one}"), n.get("results", f"batch.{two}"), "refused a batch_end of", {one, two})
		t.equal({row["id"]: row["verdicts"] for row in l.ask(second, "ann")["batches"]}, {one: {"ok": 1}, two: {"ok": 1}}, "what its job's own result says")
		n.close()


@case("a request that is repeated with its Idempotency-Key at another front is not run again: waiting, streamed, asynchronous, and when its front was killed")
def repeated(t):
	with Cluster(t, fronts=2, jobs=2) as c:
		first, second = c.fronts
		mine, hers = ([token(front, name) for front in c.fronts] for name in ("ann", "eve"))

		def ask(front, who, key, code, **more):
			headers = {**who[c.fronts.index(front)], "Idempotency-Key": key}
			return front.ask("POST", "/v1/executions", {"language": "python", "code": code, **more}, headers)
		code = "import uuid\nprint(uuid.uuid4())"
		a, b = ask(first, mine, "k1", code), ask(second, mine, "k1", code)
		t.equal((a.status, b.status), (200, 200), f"both are answered: {a.body[:200]} {b.body[:200]}")
		t.equal((b.json["id"], b.json["stdout"]), (a.json["id"], a.json["stdout"]), "and one was run")
		b = ask(second, mine, "k1", "print(2)")
		t.equal((b.status, a.json["id"] in b.body.decode()), (409, True), "another request of the same key")
		b = ask(second, hers, "k1", code)
		t.check(b.status == 200 and b.json["id"] != a.json["id"], "the same key of another token")
		running = ask(first, mine, "k2", STEPS.format(10), **{"async": True})
		b = ask(second, mine, "k2", STEPS.format(10), **{"async": True})
		t.equal((running.status, b.status, b.json["id"]), (202, 202, running.json["id"]), "one that runs")
		def wait_in_vain():
			try:
				ask(first, mine, "k5", STEPS.format(5))
			except (OSError, http.client.HTTPException):
				pass	# it is killed
		waits = threading.Thread(target=wait_in_vain)
		waits.start()
		began(c, 4)
		first.kill()
		waits.join()
		b = ask(second, mine, "k5", STEPS.format(5))
		t.equal((b.status, b.json["stdout"].count("step")), (200, 5), "one that somebody waited for")
		b = ask(second, mine, "k2", STEPS.format(10))
		t.equal((b.status, b.body[:200]), (409, b.body[:200]), "another way to ask is another request")
		b = ask(second, mine, "k2", STEPS.format(10), **{"async": True})
		t.equal((b.status, b.json["id"]), (202, running.json["id"]), "when its front is dead")
		b = ask(second, mine, "k1", code)
		t.equal((b.status, b.json["stdout"]), (200, a.json["stdout"]), "likewise one that is over")
		t.equal(second.ask("GET", f"/v1/executions/{running.json['id']}", headers=mine[1]).status, 200, "and it is asked for by its id")
		n = c.nats()
		t.equal(n.messages("KV_brig-claims"), 4, "jobs that were begun")
		# Its front was killed when it had put the key, and not published the job: it is run under the id of the key.
		places = [hashlib.sha256(b"ann\0" + key).hexdigest() for key in (b"k1", b"k3", b"k4")]
		there = sealed.fields_of(n.get("keys", places[0]))
		dead = sealed.Known.instead_of(first)
		entry = dead.seal("key", ("key", places[1]), ("id", "never2published3"), ("who", "ann"), ("asked_hash", there["asked_hash"][0]), ("issued", int(time.time())))
		n.put("keys", places[1], entry)
		b = ask(second, mine, "k3", code)
		t.equal((b.status, b.json["id"]), (200, "never2published3"), "one that was promised, and never published")
		n.put("keys", places[2], entry)
		b = ask(second, mine, "k4", code)
		t.equal((b.status, "overwritten by another" in b.body.decode()), (409, True), "an entry in the place of another key")
		n.close()


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
