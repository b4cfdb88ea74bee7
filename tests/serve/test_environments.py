# SPDX-License-Identifier: Apache-2.0
"""Package sets that have a name, made through the service; the registry is on loopback and made here."""
import glob
import os
import sys

import harness
from client import Server, wait_until
from harness import Host, case

sys.path.insert(0, os.path.join(harness.TESTS, "packages"))
from registries import Registry, wheel


def env_for(registry):
	return {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": registry.url + "/simple", "BRIG_INSTALL_TIMEOUT_MS": "300000",
		"BRIG_EXECUTION_TIMEOUT_MS": "30000", "BRIG_STARTUP_TIMEOUT_MS": "60000"}


def make(s, name, token=None, status=202, headers=None, **more):
	with s.client(token) as c:
		return c.ask("POST", "/v1/environments", {"name": name, **more}, headers=headers, status=status)


@case("an environment is made by an execution, followed while others run, used, and removed")
def environment(t):
	t.native_only("packages")
	if not glob.glob("/usr/lib/python3*/*-packages/pip"):
		t.skip("needs python3-pip")
	with Registry() as registry, Server(t, env=env_for(registry)) as s:
		registry.put_pip("hello", wheel("hello", {"hello/__init__.py": "VALUE = 6 * 7\n"}))
		registry.open.clear()	# the archive is not handed out yet
		a = make(s, "tools", packages=["hello"], warm=["hello"], headers={"Idempotency-Key": "one"})
		ident = a.json["id"]
		t.equal([a.header("location"), a.json["links"]["environment"]], [f"/v1/executions/{ident}", "/v1/environments/tools"], "where it is", a)
		wait_until("pip asks", lambda: registry.count("/files/") > 0)
		# Nobody waits for it: the service answers, runs others, and knows what is being made.
		t.equal(s.result(language="python", code="print(1)")["stdout"], "1\n", "another execution meanwhile")
		row = {"name": "tools", "state": "creating", "execution": ident}
		t.equal([s.get("/v1/environments/tools", status=200).json, s.get("/v1/environments", status=200).json["environments"]], [row, [row]], "meanwhile")
		t.equal(make(s, "tools", packages=["hello"], warm=["hello"], headers={"Idempotency-Key": "one"}).json["id"], ident, "the same request again")
		t.check(ident in make(s, "tools", packages=["hello"], status=409).message, "two at once")
		with s.client() as c:
			t.check(ident in c.ask("DELETE", "/v1/environments/tools", status=409).message, "removed while it is made")
		registry.open.set()
		x = s.ended(ident)
		t.equal([x["kind"], x["verdict"], x["result"]["environment"]], ["environment", "ok", "tools"], "how it ended", x)
		made = s.get("/v1/environments/tools", status=200).json
		t.equal([made["state"], made["packages"], made["warm"], made["ecosystem"]], ["ready", ["hello"], ["hello"], "pip"], "what it has", made)
		t.equal(s.get(f"/v1/history/{ident}", status=200).json["id"], ident, "it is on record under its id")
		make(s, "tools", packages=["hello"], status=409)
		r = s.result(language="python", code="import hello\nprint(hello.VALUE)", environment="tools")
		t.equal(r["stdout"], "42\n", "it is used", r)
		with s.client() as c:
			t.check(c.ask("DELETE", "/v1/environments/tools", status=200).json["packages"] in ("gone", "kept"), "it is removed; cells that wait may still have its packages")
			c.ask("DELETE", "/v1/environments/tools", status=404)
			c.ask("GET", "/v1/environments/tools", status=404)
		# One that cannot be made: its execution says why.  One that is given up.
		x = s.ended(make(s, "none-such", packages=["absent"]).json["id"])
		t.check(x["verdict"] != "ok" and "absent" in x["result"]["reason"], "a package that there is not", x)
		registry.put_pip("slow", wheel("slow", {"slow/__init__.py": ""}))
		registry.open.clear()
		ident = make(s, "given-up", packages=["slow"]).json["id"]
		wait_until("pip asks", lambda: registry.count("/files/slow") > 0)
		with s.client() as c:
			c.ask("DELETE", f"/v1/executions/{ident}", status=202)
		t.equal(s.ended(ident)["verdict"], "cancelled", "given up")
		t.equal(s.get("/v1/environments").json["environments"], [], "nothing is left")
		for body, text in (({}, "name"), ({"name": "a", "package": []}, "packages"), ({"name": 5}, "name")):
			with s.client() as c:
				t.check(text in c.ask("POST", "/v1/environments", body, status=400).message, f"{body}")
		for more, text in (({"name": "Upper"}, "no name"), ({"name": "none"}, "no name"), ({"name": "a"}, "nothing"), ({"name": "a", "language": "ruby", "packages": ["x"]}, "ruby")):
			t.check(text in make(s, status=422, **more).message, f"{more}")


@case("who may make, see and remove environments: an admin, or a token that may, and those of its list", final="a token made or saw an environment that is not its own")
def rights(t):
	with Registry() as registry, Server(t, auth=True, env=env_for(registry)) as s:
		root, ada = s.token("root", "--admin"), s.token("ada", "--make-environments", "--environment", "mine")
		bob, eve = s.token("bob"), s.token("eve", "--environment", "other")
		p = t.brig("token", "create", "mallory", "--make-environments", "--state", t.state)
		t.check(p.rc != 0 and b"--environment" in p.err, "the right without a list", p)
		t.equal(s.get("/v1/whoami", ada).json["makes_environments"], True, "whoami")
		for token in (bob, eve):
			t.check("may not make" in make(s, "mine", token, 403, warm=["json"]).message, "without the right")
		t.check("'yours'" in make(s, "yours", ada, 403, warm=["json"]).message, "a name that is not in the list")
		make(s, "mine", ada, 403, warm=["json"], trust="trusted")	# above its own
		make(s, "mine", ada, 403, warm=["json"], options={"allow_degraded": "all"})
		t.equal(s.ended(make(s, "mine", ada, warm=["json"]).json["id"], ada)["verdict"], "ok", "its own")
		t.equal([len(s.get("/v1/environments", token).json["environments"]) for token in (root, ada, bob, eve)], [1, 1, 1, 0], "who sees it")
		s.get("/v1/environments/mine", eve, status=404)
		for token, status in ((eve, 404), (bob, 403), (ada, 200)):
			with s.client(token) as c:
				c.ask("DELETE", "/v1/environments/mine", status=status)
		t.equal(s.ended(make(s, "yours", root, warm=["json"]).json["id"], root)["verdict"], "ok", "an admin's")


def pools(s, token=None):
	"""{(language, environment): row}"""
	return {(p["language"], p["environment"]): p for p in s.get("/v1/queue", token, status=200).json["pools"]}


@case("/v1/queue tells of the cells that are kept ready: by language and environment, who found one and who did not")
def kept_ready(t):
	t.native_only("cells that wait")
	code = {"language": "python", "code": "print(input())"}
	with Registry() as registry, Server(t, "--warm", "2", auth=True, env=env_for(registry)) as s:
		root, eve = s.token("root", "--admin"), s.token("eve", "--environment", "other")
		t.equal(pools(s, root), {}, "nobody has asked for any")
		t.equal(s.result(root, **code, stdin="1")["verdict"], "ok", "the first one")
		row = wait_until("a pool", lambda: pools(s, root).get(("python", None)))	# a busy keeper answers a little later
		t.equal([row["hits"], row["misses"], row["trust"], row["given_up"]], [0, 1, "unknown", False], "after the first", row)
		row = wait_until("one is ready", lambda: (p := pools(s, root)["python", None])["ready"] and p)
		t.check(row["made"] >= 2 and row["wanted"] >= 1 and (row["memory_bytes"] > 0 or "memory_limit" in Host.degraded), "one that is ready", row)
		t.equal(s.result(root, **code, stdin="2")["warm"], True, "the second one")
		wait_until("it is counted", lambda: [(p := pools(s, root)["python", None])["hits"], p["misses"]] == [1, 1])
		ident = s.start(root, language="python", code="import time\ntime.sleep(60)")
		wait_until("one is in use", lambda: pools(s, root)["python", None]["in_use"] == 1)
		with s.client(root) as c:
			c.ask("DELETE", f"/v1/executions/{ident}")
		wait_until("none is", lambda: pools(s, root)["python", None]["in_use"] == 0)
		t.equal(s.ended(make(s, "mine", root, warm=["json"]).json["id"], root)["verdict"], "ok", "an environment")
		t.equal(s.result(root, **code, stdin="3", environment="mine")["verdict"], "ok", "a run with it")
		wait_until("a pool of its own", lambda: ("python", "mine") in pools(s, root))
		t.equal(set(pools(s, eve)), {("python", None)}, "who may not use it does not see it")
