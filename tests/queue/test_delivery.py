# SPDX-License-Identifier: Apache-2.0
"""Each accepted job ends in exactly one recorded result."""
import json
import time

import harness
from cluster import SLEEP, SOON, Cluster, began, children, described, wait_until
from harness import case


@case("a program, its stream, its files and a result longer than a message, through the queue")
def end_to_end(t):
	with Cluster(t) as c:
		f = c.fronts[0]
		a = f.run("print(6 * 7)")
		t.equal((a.status, a.json["verdict"], a.json["stdout"]), (200, "ok", "42\n"), "the result")
		a = f.run("1 / 0")
		t.equal(a.json["verdict"], "error", "a program's error is its own")
		a = f.run("import os; os.system('rm -rf /')", options={"inspection": "guard"})
		t.equal(a.json["verdict"], "blocked", "inspection is the worker's")
		a = f.run("print(len(open('in').read())); open('out','w').write('y' * 2000000)", files={"in": "x" * 1500000}, artifacts=["out"])
		t.equal(a.json["stdout"], "1500000\n", "long files arrive whole")
		t.equal(len(a.json["artifacts"][0]["content"]), 2000000, "and so do artifacts")
		a = f.ask("POST", "/v1/executions", {"language": "python", "code": "print('now')"}, {"Accept": "text/event-stream"})
		events = [line[7:] for line in a.body.decode().splitlines() if line.startswith("event: ") and line != "event: sample"]
		t.equal(list(dict.fromkeys(events)), ["started", "stdout", "verdict"], "live events; what is written may come in pieces")
		n = c.nats()
		wait_until("the stream is empty", lambda: n.messages("BRIG_JOBS") == 0)
		n.close()
		good, text = c.workers[0].verified()
		t.check(good, f"the worker's audit log: {text}")


@case("a worker says what it can enforce, what it takes and what waits ready; executions say where they ran")
def told(t):
	with Cluster(t) as c:
		f, w = c.fronts[0], c.workers[0]
		ident = f.accept("print(1)")
		ran = f.result(ident)
		described(t, ran, "Execution")
		t.equal(ran["node"], w.name, "where it ran")
		of_node, of_others = (f.ask("GET", f"/v1/executions?node={name}").json["executions"] for name in (w.name, "nobody"))
		t.equal(([x["id"] for x in of_node], of_others), ([ident], []), "executions by node")
		described(t, {"executions": of_node}, "Executions")

		def entry():
			nodes = f.ask("GET", "/v1/nodes").json
			found = nodes["nodes"] and nodes["nodes"][0]
			return nodes if found and found["begun"] == 1 and found["protections"] and found["ready"] else None
		nodes = wait_until("the node has told all", entry)
		described(t, nodes, "Nodes")
		t.equal((nodes["brokers"], nodes["published"], nodes["lost"], nodes["begun_again"]), (True, 1, 0, 0), "what was counted")
		node = nodes["nodes"][0]
		t.equal((node["name"], node["key"], node["state"], node["slots"]), (w.name, w.key, "live", c.jobs), "who it is")
		t.check(1 <= node["places"] <= c.jobs and node["until"] > node["seen"], f"places and lease: {node}")
		there = {row["protection"]: row["status"] == "ok" for row in f.ask("GET", "/v1/capabilities").json["rows"] if row["protection"]}
		t.equal({**dict.fromkeys(node["protections"], True), **dict.fromkeys(node["lacks"], False)}, there, "protections: the same host")
		t.check("native" in node["backends"] and "unknown.python" in node["classes"], f"backends and classes: {node}")
		t.equal(node["ready"], ["unknown.python"], "cells that wait")
		t.equal(f.ask("GET", "/v1/whoami").json["nodes"], True, "an admin may see them")
		text = f.ask("GET", "/metrics").body.decode()
		t.check(f'brig_queue_node_places{{node="{w.name}"}}' in text, "places in the metrics")


@case("a front is killed: another one answers for what it had promised")
def another_front(t):
	with Cluster(t, fronts=2) as c:
		first, second = c.fronts
		ident = first.accept(SLEEP.format(2))
		began(c)
		t.equal([second.look(ident).json[member] for member in ("state", "node")], ["running", c.workers[0].name], "what runs")
		first.kill()
		ended = second.result(ident)
		t.equal((ended["result"]["stdout"], ended["node"]), ("up\nwhole\n", c.workers[0].name), "what became of it")
		described(t, ended, "Execution")
		t.equal(second.look("a" * 16).status, 404, "what never was")


@case("kill -9 of a worker: its job is begun again elsewhere; one that says never is lost; no job has two results")
def worker_dies(t):
	with Cluster(t, workers=2, jobs=2, later=1, patience=SOON) as c:
		f, (w1, w2) = c.fronts[0], c.workers
		again, never = f.accept(SLEEP.format(4)), f.accept(SLEEP.format(4), retry="never")
		began(c, 2)
		w1.kill()
		w2.begin()
		r = f.result(again)
		t.equal((r["state"], r["result"]["stdout"]), ("finished", "up\nwhole\n"), "begun again")
		r = f.result(never)
		t.equal(r["state"], "lost", "not begun again")
		t.check(w1.name in r["result"]["reason"], f"who had it is named: {r['result']['reason']}")
		n = c.nats()
		t.equal(n.messages("KV_brig-results"), 2, "results")
		n.close()


@case("kill -9 of links and of runners: what runs goes on, or is begun again, and ends once")
def processes_die(t):
	with Cluster(t, jobs=4, patience=SOON) as c:
		f, w = c.fronts[0], c.workers[0]
		ident = f.accept(SLEEP.format(2))
		began(c)
		t.check(w.kill("brig-link"), "the worker's link is there")
		t.check(f.kill("brig-link"), "the front's link is there")
		t.equal(f.result(ident)["result"]["stdout"], "up\nwhole\n", "after the links' end")
		again, never = f.accept(SLEEP.format(2)), f.accept(SLEEP.format(2), retry="never")
		began(c, 3)
		t.check(w.kill("brig-runner"), "the runner is there")
		t.equal(f.result(again)["result"]["stdout"], "up\nwhole\n", "after the runner's end")
		t.equal(f.result(never)["state"], "lost", "one that says never")
		t.equal(f.run("print(1)").json["stdout"], "1\n", "a new one")


@case("SIGTERM: a worker ends what it runs, shown as draining, takes nothing new and leaves; a second one gives it back")
def drain(t):
	with Cluster(t, workers=2, jobs=1) as c:
		f, (w1, w2) = c.fronts[0], c.workers
		ids = [f.accept(SLEEP.format(2)) for _ in range(2)]
		began(c, 2)
		w1.proc.terminate()

		def state():
			return next(n["state"] for n in f.ask("GET", "/v1/nodes").json["nodes"] if n["name"] == w1.name)
		wait_until("it says so", lambda: state() == "draining")
		t.check(w1.proc.poll() is None, "while it ends what it has")
		last = f.accept("print('next')")
		t.equal([f.result(i)["result"]["stdout"] for i in ids], ["up\nwhole\n"] * 2, "what ran")
		t.equal(f.result(last)["result"]["stdout"], "next\n", "what came later")
		t.equal(w1.proc.wait(30), 0, "exit status")
		wait_until("it is gone, before its lease is over", lambda: state() == "gone", 10)
		ident = f.accept(SLEEP.format(3))
		began(c, 4)
		w1.begin()
		w1.wait()
		w2.proc.terminate()
		time.sleep(0.3)
		w2.proc.terminate()
		t.equal(f.result(ident)["result"]["stdout"], "up\nwhole\n", "what was given back")


@case("a worker that cannot reach its brokers: the job is lost or done elsewhere, and its own late result is refused")
def cut_off(t):
	with Cluster(t, workers=2, jobs=2, later=1, patience=SOON) as c:
		f, (w1, w2) = c.fronts[0], c.workers
		again, never = f.accept(SLEEP.format(8)), f.accept(SLEEP.format(8), retry="never")
		began(c, 2)
		w1.cut()
		w2.begin()
		t.equal(f.result(never)["state"], "lost", "presumed dead")
		time.sleep(5)
		w1.mend()
		r = f.result(again)
		t.equal(r["result"]["stdout"], "up\nwhole\n", "one result")
		wait_until("the late one is refused", lambda: "comes late" in w1.said() or "comes late" in w2.said())
		t.equal(f.look(never).json["state"], "lost", "lost stays lost")
		t.equal(f.look(again).json["result"], r["result"], "a result stays what it was")
		n = c.nats()
		t.equal(n.messages("KV_brig-results"), 2, "results")
		n.close()


@case("cancelling: what runs elsewhere ends, what waits never begins")
def cancel(t):
	with Cluster(t, jobs=1) as c:
		f = c.fronts[0]
		first = f.accept(SLEEP.format(20))
		began(c)
		second = f.accept("open('x','w'); print('begun')")
		t.equal(f.ask("DELETE", f"/v1/executions/{second}").status, 202, "one that waits")
		t.equal(f.ask("DELETE", f"/v1/executions/{first}").status, 202, "one that runs")
		t.equal(f.result(first)["verdict"], "cancelled", "what ran")
		r = f.result(second)
		t.equal((r["verdict"], r["result"]["stdout"]), ("cancelled", ""), "what waited")


@case("no broker: 503 and nothing promised; brokers come back: what waited goes on")
def brokers_away(t):
	with Cluster(t) as c:
		f, b = c.fronts[0], c.brokers[0]
		ident = f.accept(SLEEP.format(1))
		began(c)
		b.kill()
		a = f.run("print(1)")
		t.equal(a.status, 503, "without a broker")
		b.begin()
		t.equal(f.result(ident)["result"]["stdout"], "up\nwhole\n", "what ran meanwhile")
		t.equal(f.run("print(1)").json["stdout"], "1\n", "a new one")


@case("the same request with the same key is one job")
def same_key(t):
	with Cluster(t) as c:
		f = c.fronts[0]
		job = {"language": "python", "code": "print(1)", "async": True}
		ids = {f.ask("POST", "/v1/executions", job, {"Idempotency-Key": "k"}).json["id"] for _ in range(3)}
		t.equal(len(ids), 1, f"ids: {json.dumps(sorted(ids))}")
		f.result(ids.pop())
		n = c.nats()
		t.equal((n.messages("KV_brig-claims"), n.messages("KV_brig-results")), (1, 1), "claims and results")
		n.close()
		t.check("brig-link" in children(f.proc.pid), "the link is a process of its own")


@case("the same key after the front was killed is the same job, and its state is that of the queue")
def same_key_again(t):
	with Cluster(t) as c:
		f = c.fronts[0]
		job = {"language": "python", "code": SLEEP.format(1), "async": True}
		first = f.ask("POST", "/v1/executions", job, {"Idempotency-Key": "k"}).json["id"]
		f.kill()
		f.begin()
		f.wait_again()
		t.equal(f.ask("POST", "/v1/executions", job, {"Idempotency-Key": "k"}).json["id"], first, "the id")
		t.equal(f.result(first)["result"]["stdout"], "up\nwhole\n", "the result")
		n = c.nats()
		t.equal(n.messages("KV_brig-results"), 1, "results")
		n.close()


@case("brokers behind TLS, by name, with a user and a password; one with another certificate is not spoken to")
def tls(t):
	with Cluster(t, tls=True) as c:
		t.equal(c.fronts[0].run("print(1)").json["stdout"], "1\n", "a program")
		stranger = c.fronts[0]
		stranger.end()
		stranger.begin("--queue-ca", c.other_ca)
		wait_until("it is ready", lambda: stranger.said("out").count("ready http") >= 2)
		t.equal(stranger.run("print(1)").status, 503, "whose certificate is another's")


@case("a batch through the queue: each job has its result, in order")
def batch(t):
	with Cluster(t, fronts=1) as c:
		jobs = t.path("jobs.jsonl", "".join(json.dumps({"id": f"j{i}", "language": "python", "code": f"print({i})"}) + "\n" for i in range(20)))
		f = c.fronts[0]
		f.end()
		p = f.command("batch", "--queue", c.url, "--nodes", c.nodes_file, "--state", f.state, "--ordered", "--quiet", jobs)
		t.equal(p.returncode, 0, f"exit status: {p.stderr}")
		t.equal([json.loads(line)["stdout"] for line in p.stdout.splitlines()], [f"{i}\n" for i in range(20)], "results")


@case("a job of a batch that says never is lost with its worker; one that does not is begun again")
def batch_never(t):
	with Cluster(t, workers=2, jobs=2, later=1, patience=SOON) as c:
		lines = [{"id": "never", "language": "python", "code": SLEEP.format(4), "retry": "never"},
			 {"id": "allowed", "language": "python", "code": SLEEP.format(4), "retry": "allowed"}]
		jobs = t.path("jobs.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
		f, (w1, w2) = c.fronts[0], c.workers
		f.end()
		f.start(harness.brig_path(), "batch", "--queue", c.url, "--nodes", c.nodes_file, "--state", f.state, "--queue-patience", f"{SOON}s",
			"--ordered", "--quiet", "--jobs", "2", jobs)
		began(c, 2)
		w1.kill()
		w2.begin()
		f.proc.wait(60)
		never, allowed = [json.loads(line) for line in f.said("out").splitlines()[-2:]]
		t.equal((never["verdict"], w1.name in never["reason"]), ("failed", True), f"the one that says never: {never}")
		t.equal((allowed["verdict"], allowed["stdout"]), ("ok", "up\nwhole\n"), "the other one")
		bad = t.path("bad.jsonl", json.dumps({"language": "python", "code": "pass", "retry": "sometimes"}) + "\n")
		p = f.command("batch", "--local", "--quiet", bad)
		t.check('must be \\"never\\" or' in p.stdout, f"another word: {p.stdout} {p.stderr}")
