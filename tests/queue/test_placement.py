# SPDX-License-Identifier: Apache-2.0
"""Jobs go to nodes that have their kind warm, and to others when those have no place; to none that cannot keep the policy."""
import json
import os

import sealed
from cluster import SLEEP, SOON, Cluster, wait_until
from harness import case

JOBS = 12  # one after the other: by turns, half of them would be cold


def entry(f, w):
	"""What it says of itself; while it has said nothing, nothing."""
	return next((n for n in f.ask("GET", "/v1/nodes").json["nodes"] if n["name"] == w.name), {"hears": 0, "classes": [], "ready": [], "cannot": []})


@case("jobs go to the node that is warm; when it is full or killed the other one takes them, and none is lost")
def warm_first(t):
	with Cluster(t, workers=2, jobs=2, later=1, patience=SOON) as c:
		f, (w1, w2) = c.fronts[0], c.workers

		def ran_on(ident):
			return f.result(ident)["node"]
		t.equal(ran_on(f.accept("pass")), w1.name, "the only node")
		wait_until("it is warm", lambda: "unknown.python" in entry(f, w1)["ready"])
		w2.begin()
		wait_until("the other one takes jobs and has heard the first one", lambda: entry(f, w2)["classes"] and entry(f, w2)["hears"] == 2)
		t.equal((entry(f, w2)["ready"], entry(f, w2)["cannot"]), ([], []), "it is cold, and able")
		where = [ran_on(f.accept("pass")) for _ in range(JOBS)]
		t.check(where.count(w1.name) >= JOBS * 3 // 4, f"jobs of a kind that one of them is warm in: {where}")
		together = [f.accept(SLEEP.format(1)) for _ in range(4)]
		t.equal({ran_on(i) for i in together}, {w1.name, w2.name}, "more than the warm one has places for")
		t.check(wait_until("what was counted", lambda: entry(f, w1)["begun_warm"] >= JOBS // 2), "jobs that found it warm")
		w1.kill()
		t.equal({ran_on(f.accept("pass")) for _ in range(2)}, {w2.name}, "after the warm one was killed")


@case("a job that comes for a question from before another node was warm goes back once, and then is taken: nobody else wants it")
def hand_back(t):
	other = sealed.Known("other")
	with Cluster(t, later=1, jobs=1) as c:
		f, w = c.fronts[0], c.workers[0]
		with open(c.nodes_file, "a") as nodes:
			nodes.write(f"worker other {other.key}\n")
		w.begin()
		w.wait()
		n = c.nats()

		def consumer():
			doc = json.loads(n.request("$JS.API.CONSUMER.INFO.BRIG_JOBS.unknown_lua"))
			return doc if "error" not in doc else None

		def handed_out():
			"""How often one job is handed out that comes while the node waits and has just heard that another one is warm.  Its question
			may have ended meanwhile, since it lasts some seconds only: then it is once."""
			n.put("nodes", other.key, other.entry(("class", "unknown.lua")))
			wait_until("it waits for a job", lambda: (consumer() or {"num_waiting": 0})["num_waiting"] > 0)
			before = consumer()["delivered"]["consumer_seq"]
			n.put("nodes", other.key, other.entry(("class", "unknown.lua"), ("ready", "unknown.lua")))
			wait_until("it has heard the other one", lambda: entry(f, w)["hears"] == 2)
			r = f.result(f.accept("print('taken')", language="lua"))
			t.equal((r["node"], r["result"]["stdout"]), (w.name, "taken\n"), "what became of it")
			return consumer()["delivered"]["consumer_seq"] - before
		times = []
		while 2 not in times and len(times) < 8:
			times.append(handed_out())
		t.check(set(times) <= {1, 2} and 2 in times, f"how often jobs were handed out: {times}")
		t.equal(n.messages("KV_brig-claims"), len(times), "and begun")
		n.close()


@case("a node that cannot keep its policy asks for nothing and says why, in words of the doctor; an environment that is made later is taken without a word to the worker")
def able(t):
	with Cluster(t, workers=2, later=1, jobs=1) as c:
		f, (w1, w2) = c.fronts[0], c.workers
		policy = t.path("docker.yaml", "backend: docker\n")
		c.env = {"DOCKER_HOST": f"unix://{os.path.join(c.dir, 'nobody')}"}
		w2.begin("--jobs", "1", "--policy", policy)
		why = wait_until("it says why", lambda: [line for line in entry(f, w2)["cannot"] if "not known yet" not in line])
		t.check("docker" in " ".join(why), f"the reason: {why}")
		t.equal(entry(f, w2)["classes"], [], "what it takes")
		t.equal({f.result(f.accept("pass"))["node"] for _ in range(4)}, {w1.name}, "who runs jobs")
		p = w1.command("env", "create", "late", "--warm", "json", "--state", w1.state)
		t.equal(p.returncode, 0, f"an environment: {p.stderr}")
		r = f.result(f.accept("import json; print(json.dumps([1]))", environment="late"))
		t.equal((r["node"], r["result"]["stdout"], r["result"]["environment"]), (w1.name, "[1]\n", "late"), f"a job of it: {r['result']['reason']}")
