# SPDX-License-Identifier: Apache-2.0
"""Who opens which door."""
import base64
import json

from harness import case
from table import ANY, answer, ask, check, like, serve

PISTON = {"language": "python", "version": "*", "files": [{"content": "print(1)"}]}


def bearer(token):
	return {"Authorization": "Bearer " + token}


def basic(text):
	return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@case("a token of one door opens no other")
def tokens(t):
	with serve(t, "all", auth=True) as s:
		piston = s.token("p", "--door", "piston")
		both = s.token("b", "--door", "fusion,api")
		api = s.token("a")
		run, fusion = ("POST", "/api/v2/execute", PISTON), ("POST", "/run_code", {"language": "python", "code": "print(1)"})
		rows = [
			("piston opens piston", bearer(piston), run, 200),
			("by X-API-Key", {"X-API-Key": piston}, run, 200),
			("by password", basic("any:" + piston), run, 200),
			("by name", basic(piston + ":"), run, 200),
			("piston opens no other", bearer(piston), fusion, 401),
			("nor the API", bearer(piston), ("GET", "/v1/whoami", None), 401),
			("two that were named", bearer(both), fusion, 200),
			("the API among them", bearer(both), ("GET", "/v1/whoami", None), 200),
			("and no third", bearer(both), run, 401),
			("one of the API opens no door", bearer(api), run, 401),
			("but the API", bearer(api), ("GET", "/v1/whoami", None), 200),
			("a wrong one", bearer("brig_" + "a" * 32), run, 401),
			("a wrong one, and what is refused", bearer("brig_" + "a" * 32), ("POST", "/api/v2/execute", {**PISTON, "version": "1.x"}), 401),
			("none", {}, run, 401),
			("what is no key", {"Authorization": "Digest x"}, run, 401),
			("a path that is no key", {}, ("POST", "/t/%2e/api/v2/execute", PISTON), 401),
			("the API knows no key in the path", {}, ("GET", f"/t/{both}/v1/whoami", None), 404),
		]
		check(t, rows, lambda headers, what, status: answer(ask(s, *what, headers), status))
		check(t, [("in the path", ("POST", f"/t/{piston}/api/v2/execute", PISTON), 200), ("of another door", ("POST", f"/t/{both}/api/v2/execute", PISTON), 401)],
			lambda what, status: answer(ask(s, *what), status))
		p = t.brig("token", "create", "x", "--door", "nope", "--state", t.state)
		t.check(p.rc == 2 and b"docs/DOORS.md" in p.err, "an unknown door", p)


@case("doors are shut unless they are named, and run with no more trust than that says")
def opened(t):
	with serve(t, "fusion:untrusted") as s:
		t.equal(answer(ask(s, "POST", "/api/v2/execute", PISTON), 404), None, "one that is shut")
		t.equal(answer(ask(s, "POST", "/run_code", {"language": "python", "code": "print(1)"}), 200, {"status": "Success"}), None, "one that is open")
		row = s.get("/v1/executions", status=200).json["executions"][0]
		t.equal((row["door"], row["trust"]), ("fusion", "untrusted"), "which door, which trust", row)
		s.result(language="python", code="print(1)")
		t.equal([r["door"] for r in s.get("/v1/executions").json["executions"]], [None, "fusion"], "doors of the list")
		t.equal([r["door"] for r in s.get("/v1/history", status=200).json["executions"]], [None, "fusion"], "doors of the history")
		for door, want in (("fusion", ["fusion"]), ("none", [None]), ("piston", [])):
			t.equal([r["door"] for r in s.get(f"/v1/history?door={door}", status=200).json["executions"]], want, f"the history of {door}")
			p = t.brig("history", "--json", "--door", door, "--state", t.state)
			t.equal([r["door"] for r in json.loads(p.out)["executions"]], want, f"what brig history says of {door}")
		t.equal(s.get(f"/v1/history/{row['id']}", status=200).json["door"], "fusion", "one of it")
	with open(t.path("policy.yaml"), "w", encoding="utf-8") as f:
		f.write("doors: [piston, dify]\nrefuse_keys: [secret]\n")
	with s.__class__(t, "--policy", t.path("policy.yaml")) as s:
		t.equal(answer(ask(s, "POST", "/api/v2/execute", PISTON), 200), None, "one of the policy")
		t.equal(answer(ask(s, "POST", "/run_code", {"language": "python", "code": "print(1)"}), 404), None, "and not the rest")
		t.equal(answer(ask(s, "POST", "/api/v2/execute", PISTON, bearer("secret")), 401, {"message": like("refuse")}), None, "a key that the policy refuses")
	p = t.brig("serve", "--doors", "pistn", "--listen", "127.0.0.1:0", "--state", t.state)
	t.check(p.rc == 2 and b"did you mean 'piston'" in p.err, "a door that is none", p)


@case("pages of strangers open no door")
def origins(t):
	with serve(t, "all") as s:
		for path, body in (("/api/v2/execute", PISTON), ("/run_code", {"language": "python", "code": "print(1)"}), ("/v1/sandbox/run", {"language": "python3", "code": ""})):
			a = ask(s, "POST", path, body, {"Origin": "http://evil.example", "Content-Type": "text/plain"})
			t.equal(a.status, 403, f"a foreign Origin at {path}", a)
			a = ask(s, "POST", path, body, {"Host": "evil.example"})
			t.equal(a.status, 421, f"a foreign Host at {path}", a)
