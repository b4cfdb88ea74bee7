# SPDX-License-Identifier: Apache-2.0
"""Jobs go to nodes that have their kind warm, and to others when those have no place."""
from cluster import SLEEP, SOON, Cluster, wait_until
from harness import case

JOBS = 24  # one after the other: by turns, half of them would be cold


@case("jobs go to the node that is warm; when it is full or killed the other one takes them, and none is lost")
def warm_first(t):
	with Cluster(t, workers=2, jobs=2, later=1, patience=SOON) as c:
		f, (w1, w2) = c.fronts[0], c.workers

		def entry(w):
			return next((n for n in f.ask("GET", "/v1/nodes").json["nodes"] if n["name"] == w.name), None)

		def ran_on(ident):
			return f.result(ident)["node"]
		t.equal(ran_on(f.accept("pass")), w1.name, "the only node")
		wait_until("it is warm", lambda: "unknown.python" in entry(w1)["ready"])
		w2.begin()
		first = wait_until("the other one takes jobs", lambda: (entry(w2) or {"classes": []})["classes"] and entry(w2))
		t.equal((first["ready"], first["cannot"]), ([], []), "it is cold, and able")
		heard = wait_until("the first one says so again", lambda: entry(w1)["seen"] > first["seen"] and entry(w1)["seen"])
		wait_until("the other one has heard it, and said something since", lambda: entry(w2)["seen"] > heard)
		t.equal(entry(w2)["ready"], [], "it is still cold")
		where = [ran_on(f.accept("pass")) for _ in range(JOBS)]
		t.check(where.count(w1.name) >= JOBS * 3 // 4, f"jobs of a kind that one of them is warm in: {where}")
		together = [f.accept(SLEEP.format(2)) for _ in range(4)]
		t.equal({ran_on(i) for i in together}, {w1.name, w2.name}, "more than the warm one has places for")
		t.check(wait_until("what was counted", lambda: entry(w1)["begun_warm"] >= JOBS // 2), "jobs that found it warm")
		w1.kill()
		t.equal({ran_on(f.accept("pass")) for _ in range(4)}, {w2.name}, "after the warm one was killed")
