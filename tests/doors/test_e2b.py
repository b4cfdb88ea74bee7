# SPDX-License-Identifier: Apache-2.0
"""E2B: its clients as they come, and what they never send."""
import json

from client import wait_until
from harness import case
from sandbox import make, of, run_client
from table import ANY, BODIES, answer, ask, check, like, serve

# ---- sandboxes -------------------------------------------------------------------------------------

@case("E2B's client: sandboxes")
def sandboxes(t):
	with serve(t, "all", "--refuse-keys", "e2b_bad,bad") as s:
		run_client(t, s, "e2b.mjs", 40)


@case("an older client of E2B's, with the first version of its addresses")
def older(t):
	with serve(t, "all", "--refuse-keys", "e2b_bad,bad") as s:
		run_client(t, s, "e2b_older.mjs", 13)


GONE = {"message": "The sandbox was not found", "code": 502}


@case("E2B: a sandbox belongs to its token, and its key is good as long as that")
def tokens(t):
	with serve(t, "e2b", auth=True) as s:
		one, two = ({"X-API-KEY": s.token(name, "--door", "e2b")} for name in ("one", "two"))
		box, other = make(s, one), make(s, two)
		own = f"/sandboxes/{box['sandboxID']}"
		check(t, [
			("no key", "POST", "/v2/sandboxes", {"templateID": "base"}, {}, 401, {"code": 401}),
			("its own", "GET", own, None, one, 200, {"sandboxID": box["sandboxID"], "envdAccessToken": box["envdAccessToken"]}),
			("another's", "GET", own, None, two, 404, {"code": 404}),
			("another's end", "DELETE", own, None, two, 404, {"code": 404}),
			("another's connection", "POST", own + "/connect", {}, two, 404, {"code": 404}),
			("its list", "GET", "/v2/sandboxes", None, one, 200, [{"sandboxID": box["sandboxID"]}]),
			("another's list", "GET", "/v2/sandboxes", None, two, 200, [{"sandboxID": other["sandboxID"]}]),
			("with its key", "GET", "/nothing", None, of(box), 404, {"code": 404}),
			("with another's", "GET", "/nothing", None, of(box, other["envdAccessToken"]), 401, {"code": 401}),
			("with the token itself", "GET", "/nothing", None, of(box, one["X-API-KEY"]), 401, {"code": 401}),
			("debug mode", "GET", "/nothing", None, {"E2b-Sandbox-Id": "debug_sandbox_id"}, 502, GONE),
			("the key is none of the control plane's", "GET", own, None, {"X-API-KEY": box["envdAccessToken"]}, 401, {"code": 401}),
			("nor forks it", "POST", own + "/fork", {}, {"X-API-KEY": box["envdAccessToken"]}, 401, {"code": 401}),
			("nor keeps it", "POST", own + "/snapshots", {}, {"X-API-KEY": box["envdAccessToken"]}, 401, {"code": 401}),
			("nor as what it is", "POST", own + "/fork", {}, of(box), 404, {"code": 404}),
			("nor of the API's", "GET", f"/v1/sessions/{box['sandboxID']}", None, {"Authorization": "Bearer " + box["envdAccessToken"]}, 401, ANY),
		], lambda method, path, body, headers, status, want: answer(ask(s, method, path, body, headers), status, want))
		p = t.brig("token", "revoke", "one", "--state", t.state)
		t.equal(p.rc, 0, "revoked", p)
		t.equal(answer(ask(s, "GET", "/nothing", None, of(box)), 401, {"message": like("not good any more")}), None, "the key of a token that was revoked")
		t.equal(answer(ask(s, "GET", "/nothing", None, of(other)), 404), None, "the other's")


@case("E2B: as many sandboxes as the token may have")
def quota(t):
	with serve(t, "e2b", auth=True) as s:
		key = {"X-API-KEY": s.token("few", "--door", "e2b", "--concurrent", "1")}
		box = make(s, key)
		r = ask(s, "POST", "/v2/sandboxes", {"templateID": "base"}, key)
		t.equal(answer(r, 429, {"code": 429, "message": like("end one")}), None, "one too many")
		t.check(int(r.headers["retry-after"]) > 0, "when to try again", r.headers)
		t.equal(ask(s, "DELETE", f"/sandboxes/{box['sandboxID']}", None, key).status, 204, "its end")
		wait_until("there is room again", lambda: isinstance(make(s, key), dict))


@case("E2B: after the service was killed no sandbox is there")
def killed(t):
	with serve(t, "e2b") as s:
		box = make(s)
		s.kill()
	with serve(t, "e2b") as s:
		own = f"/sandboxes/{box['sandboxID']}"
		t.equal(answer(ask(s, "GET", own), 404, {"code": 404}), None, "asked for")
		t.equal(answer(ask(s, "DELETE", own), 404, {"code": 404}), None, "to end")
		for path in ("/health", "/nothing", "/files?path=x", "/metrics"):
			t.equal(answer(ask(s, "GET", path, None, of(box)), 502, {**GONE, "sandboxId": box["sandboxID"]}), None, path)
		t.equal(answer(ask(s, "POST", "/process.Process/Start", b"", {**of(box), "Content-Type": "application/connect+json"}), 502, GONE), None, "a command")


@case("E2B: a path of several doors goes to the one that the head names")
def owned(t):
	with serve(t, "all") as s:
		box = make(s)
		t.equal(answer(ask(s, "GET", "/health"), 200, b'"ok"'), None, "dify's, which comes first")
		t.equal(ask(s, "GET", "/health", None, of(box)).status, 204, "E2B's")
		t.equal(ask(s, "GET", "/metrics").status, 200, "the service's own")
		t.equal(answer(ask(s, "GET", "/v1/sessions", None, of(box)), 404, {"code": 404}), None, "the key of a sandbox is no way into the API")
		t.equal(answer(ask(s, "DELETE", "/files", None, of(box)), 405, {"code": 405}), None, "another method")
	with serve(t, "dify") as s:
		t.equal(answer(ask(s, "GET", "/health", None, {"E2b-Sandbox-Id": "x"}), 200, b'"ok"'), None, "where E2B's door is shut")


@case("E2B: what envd tells of a sandbox: its variables and what it uses, to who has its key")
def envd_looks(t):
	with serve(t, "e2b", auth=True) as s:
		own = {"X-API-KEY": s.token("ada", "--door", "e2b")}
		variables = {"A": "1", "LONG": "x" * 9000, "WITH_SIGNS": "a=b\n\u00fc"}
		box, bare = make(s, own, envVars=variables), make(s, own)
		r = ask(s, "GET", "/envs", None, of(box))
		t.equal([r.status, r.json], [200, variables], "variables")
		t.equal(ask(s, "GET", "/envs", None, of(bare)).json, {}, "none")
		metrics = {**dict.fromkeys(("ts", "cpu_count", "mem_total", "disk_total"), lambda n: type(n) is int and n > 0), **dict.fromkeys(("mem_used", "mem_cache", "disk_used"), lambda n: type(n) is int), "cpu_used_pct": lambda n: type(n) is float}
		t.equal(answer(ask(s, "GET", "/metrics", None, of(box)), 200, metrics), None, "what it uses")
		for path in ("/envs", "/metrics"):
			t.equal(ask(s, "GET", path, None, of(box, bare["envdAccessToken"])).status, 401, f"{path} with another's key")
		t.check("variables" not in ask(s, "GET", f"/sandboxes/{box['sandboxID']}", None, own).json, "they are told to who asks for them")
		t.equal(ask(s, "DELETE", f"/sandboxes/{box['sandboxID']}", None, own).status, 204, "its end")
		t.equal(ask(s, "GET", "/envs", None, of(box)).status, 502, "after it")


def lines_of(r):
	"""The kinds of the lines that a run answers, without those that keep a connection."""
	return [kind for kind in (json.loads(line)["type"] for line in r.body.splitlines()) if kind != "keepalive"]


@case("E2B: a sandbox by the names of its ports alone, as with E2B_DOMAIN; no page of another origin, and no server in it, gets what is for the door")
def names(t):
	with serve(t, "e2b", auth=True) as s:
		own = {"X-API-KEY": s.token("ada", "--door", "e2b", "--door", "api")}
		box, other = make(s, own), make(s, own)
		domain, key = box["domain"], {"X-Access-Token": box["envdAccessToken"]}
		t.equal(domain, f"localhost:{s.port}", "below which the names are")
		envd, code = ({"Host": f"{port}-{box['sandboxID']}.{domain}"} for port in (49983, 49999))
		t.equal(ask(s, "GET", "/health", None, envd).status, 204, "health of envd")
		t.equal(answer(ask(s, "GET", "/health", None, code), 200, b'"OK"'), None, "of the interpreter")
		t.equal(ask(s, "POST", "/files?path=a", b"bytes", {**envd, **key, "Content-Type": "application/octet-stream"}).status, 200, "a file")
		for what, headers in {"read": {}, "of its own origin": {"Origin": "http://" + envd["Host"]}, "another sandbox's line": {"E2b-Sandbox-Id": other["sandboxID"], "E2b-Sandbox-Port": "1"}}.items():
			t.equal(answer(ask(s, "GET", "/files?path=a", None, {**envd, **key, **headers}), 200, b"bytes"), None, what)
		stat = ask(s, "POST", "/filesystem.Filesystem/Stat", {"path": "a"}, {**envd, **key})
		t.equal(answer(stat, 200, {"entry": {"name": "a", "size": ANY}}), None, "a call")
		run = ask(s, "POST", "/execute", {"code": "6*7"}, {**code, "E2B-Traffic-Access-Token": box["envdAccessToken"]})
		t.equal(lines_of(run), ["result", "number_of_executions", "end_of_execution"], "code", run)
		for what, status, path, headers in (
			("no key", 401, "/files?path=a", {}), ("another's key", 401, "/files?path=a", {"X-Access-Token": other["envdAccessToken"]}), ("a token", 401, "/files?path=a", {"X-Access-Token": own["X-API-KEY"]}),
			("a page of a stranger's", 403, "/files?path=a", {**key, "Origin": "http://evil.example"}), ("one of another port", 403, "/files?path=a", {**key, "Origin": "http://" + code["Host"]}),
			("a picture in one", 403, "/files?path=a", {**key, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}),
			("the API", 404, "/v1/sessions", {**key, "Authorization": "Bearer " + own["X-API-KEY"]}), ("the control plane", 404, "/v2/sandboxes", {**key, **own}), ("metrics of the service", 401, "/metrics", own)):
			t.equal(ask(s, "GET", path, None, {**envd, **headers}).status, status, what)
		t.equal(ask(s, "GET", "/health", None, {"Host": f"49983-{'a' * 16}.{domain}", **key}).status, 502, "no such sandbox")
		closed = {"sandboxId": box["sandboxID"], "message": "The sandbox is running but port is not open", "port": 49984, "code": 502}
		r = ask(s, "GET", "/", None, {"Host": f"49984-{box['sandboxID']}.{domain}", **key})
		t.equal([r.status, r.json], [502, closed], "another port is the sandbox's own, and nothing listens there")
		r = ask(s, "GET", f"/v1/sessions/{box['sandboxID']}/ports/49984/", None, key)
		t.check(r.status == 502 and "no process" in r.json["error"]["message"], "by its path it is the API's", r)
	with serve(t, "dify") as s:
		made = ask(s, "POST", "/v1/sessions", {})
		t.equal(made.status, 201, "a session", made)
		r = ask(s, "GET", "/health", None, {"Host": f"49983-{made.json['id']}.localhost:{s.port}"})
		t.check(r.status == 502 and "no process" in r.json["error"]["message"], "where E2B's door is shut these ports are like any other", r)


@case("E2B: an environment of the policy is a template")
def templates(t):
	with serve(t, "e2b") as s:
		for name in ("base", "code-interpreter-v1"):
			for text in ("{}", "{}:latest", "{}:default", "e2b/{}", "e2b/{}:latest"):
				t.equal(make(s, templateID=text.format(name))["templateID"], name, "a template that clients name on their own")
		for name in ("nope", "x" * 100, "a/b", "ü", "base:v2", "me/base", "base:latest:default", "nope:latest", "e2b/", ":latest"):
			t.equal(answer(make(s, templateID=name), 404, {"code": 404}), None, name)
		for body in ({"templateID": "mcp-gateway", "mcp": {"x": {}}}, {"templateID": "mcp-gateway"}, {"mcp": {"x": {}}}):
			t.equal(answer(make(s, **body), 501, {"code": 501, "message": like("MCP")}), None, f"{body}")


# ---- the code interpreter --------------------------------------------------------------------------

@case("E2B's code interpreter: runs, results, contexts, languages, timeouts")
def interpreter(t):
	with serve(t, "all", "--refuse-keys", "e2b_bad,bad") as s:
		run_client(t, s, "e2b_interpreter.mjs", 40)


@case("E2B: bodies that are no such thing, of the control plane")
def hostile(t):
	with serve(t, "e2b", "--body-limit", "2m") as s:
		own = f"/sandboxes/{make(s)['sandboxID']}"
		# A body that is wrong is refused before anything is done with it; an empty one has no wishes.
		for method, path in (("POST", "/v2/sandboxes"), ("POST", "/sandboxes"), ("POST", own + "/timeout"), ("POST", own + "/connect"), ("POST", own + "/refreshes"),
				("POST", own + "/pause"), ("PUT", own + "/network"), ("POST", own + "/snapshots"), ("POST", own + "/fork")):
			for body in BODIES[1:]:
				t.equal(answer(ask(s, method, path, body), 400, {"code": 400, "message": ANY}), None, f"{path}: {body[:20]!r}")
			t.equal(answer(ask(s, method, path, b"x" * (3 << 20)), 413, {"code": 413}), None, f"{path}: too long a body")
		members = {"timeout": 400, "metadata": 400, "envVars": 400, "network": 400, "templateID": 400}
		for name, status in members.items():
			for value in (True, -1, 1e308, "\0", ["x"], [[]], {"a": {}}):
				r = ask(s, "POST", "/v2/sandboxes", {"templateID": "base", name: value})
				t.check(r.status == status or (name == "network" and r.status == 201), f"{name} is {value!r}", r)
		t.equal(answer(ask(s, "GET", own), 200, {"state": "running"}), None, "and after all that")
