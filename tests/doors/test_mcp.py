# SPDX-License-Identifier: Apache-2.0
"""The Model Context Protocol over HTTP: its clients, unchanged (mcp.mjs), and what they do not send."""
import json
import os
import shutil

from harness import Skipped, add, case
from table import ANY, answer, ask, check, like, serve

HERE = os.path.dirname(os.path.abspath(__file__))
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
CODES = {"parse": -32700, "invalid": -32600, "method": -32601, "params": -32602, "header": -32020, "version": -32022}


def request(method, params=None, id=0):
	return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def notification(method, **params):
	return {"jsonrpc": "2.0", "method": method, "params": params}


INITIALIZE = request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}})


def envelope(version=MODERN, **more):
	return {META + "protocolVersion": version, META + "clientCapabilities": {}, **more}


def modern(method, params=None, id=0, meta=None):
	return request(method, {**(params or {}), "_meta": envelope() if meta is None else meta}, id)


def lines(method, name=None, version=MODERN):
	return {**BOTH, "MCP-Protocol-Version": version, "Mcp-Method": method, **({"Mcp-Name": name} if name else {})}


def error(code, id=0, **more):
	return {"jsonrpc": "2.0", "id": id, "error": {"code": CODES[code], "message": ANY, **more}}


def post(s, body, headers, status, want=ANY):
	return answer(ask(s, "POST", "/mcp", body, headers), status, want)


def events(reply):
	"""The messages of a stream."""
	return [json.loads(line[6:]) for line in reply.body.decode().split("\n") if line.startswith("data: ")]


def begin(s, **headers):
	"""The headers of a new session."""
	reply = ask(s, "POST", "/mcp", INITIALIZE, {**BOTH, **headers})
	assert reply.status == 200, str(reply)
	return {**BOTH, "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": reply.headers["mcp-session-id"], **headers}


def python(code, **more):
	return {"name": "run_code", "arguments": {"language": "python", "code": code}, **more}


def clients(t, kind):
	node = shutil.which("node")
	if not node or not os.path.isdir(os.path.join(HERE, "..", "mcp", "node_modules")):
		raise Skipped("needs node and the packages of tests/mcp: npm ci --prefix tests/mcp")
	with serve(t, "mcp", auth=True) as s:
		token = s.token("clients", "--door", "mcp")
		p = t.run([node, os.path.join(HERE, "mcp.mjs"), kind, f"http://127.0.0.1:{s.port}/mcp", token], stdin=b"")
		t.check(p.rc == 0 and b"not ok" not in p.out and p.out.count(b"ok ") > 22, "what the client says", p.text())


for kind, what in (("v1", "sdk 1.x"), ("v2", "client 2.x"), ("v2-auto", "client 2.x that asks which era is served"), ("v2-modern", "client 2.x, modern era only")):
	add(f"mcp.{kind}", f"mcp: {what}, unchanged", lambda t, kind=kind: clients(t, kind), "mcp", (), "")


# ---- both eras

WHATEVER = [
	("no JSON", "{", BOTH, 400, error("parse", None)),
	("no body", None, BOTH, 400, error("parse", None)),
	("no message", "{}", BOTH, 400, error("invalid", None)),
	("a number", "5", BOTH, 400, error("invalid", None)),
	("a batch", [INITIALIZE], BOTH, 400, error("invalid", None)),
	("no version", {"id": 1, "method": "ping"}, BOTH, 400, error("invalid", 1)),
	("an id that is none", {"jsonrpc": "2.0", "id": [], "method": "ping"}, BOTH, 400, error("invalid", None)),
	("a member twice", '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', BOTH, 400, error("parse", None)),
	("deep", '{"a":' * 100 + "1" + "}" * 100, BOTH, 400, error("parse", None)),
	("many values", '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"a":[' + "0," * 3000000 + "0]}}", BOTH, 400, error("parse", None)),
	("longer than a message may be", '{"jsonrpc":"2.0","id":0,"method":"' + "x" * (9 << 20) + '"}', BOTH, 400, error("parse", None)),
	("only JSON is taken", INITIALIZE, {**BOTH, "Accept": "application/json"}, 406, ANY),
	("only events are", INITIALIZE, {**BOTH, "Accept": "text/event-stream"}, 406, ANY),
	("everything is", INITIALIZE, {**BOTH, "Accept": "*/*"}, 200, {"id": 0}),
	("another type", json.dumps(INITIALIZE), {**BOTH, "Content-Type": "text/plain"}, 415, ANY),
	("a page of another origin", INITIALIZE, {**BOTH, "Origin": "http://evil.example"}, 403, ANY),
]


@case("mcp: messages that are none, and heads that do not fit")
def broken(t):
	with serve(t, "mcp") as s:
		check(t, WHATEVER, lambda body, headers, status, want: post(s, body, headers, status, want))
		reply = ask(s, "GET", "/mcp", None, {"Accept": "text/event-stream"})
		t.equal((reply.status, reply.headers.get("allow")), (405, "POST, DELETE"), "GET", reply)
		t.equal(answer(ask(s, "POST", "/mcp/", INITIALIZE, BOTH), 200, {"id": 0}), None, "an address with a slash at its end")
		t.equal(ask(s, "DELETE", "/mcp").status, 405, "DELETE without a session")
		t.equal(ask(s, "PUT", "/mcp", "").status, 405, "PUT")


# ---- the legacy era

def unknown(name):
	return request("tools/call", {"name": name, "arguments": {}})


@case("mcp: the legacy era: sessions, versions, errors")
def legacy(t):
	with serve(t, "mcp") as s:
		session = begin(s)
		versions = [(v, request("initialize", {"protocolVersion": v}), BOTH, 200, {"result": {"protocolVersion": newest}})
			for v, newest in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25"))]
		check(t, versions + [
			("no version", request("initialize", {}), BOTH, 200, error("params")),
			("ping, id 0", request("ping"), session, 200, {"id": 0, "result": {}}),
			("an id that is text", request("ping", id="a"), session, 200, {"id": "a", "result": {}}),
			("initialized", notification("notifications/initialized"), session, 202, b""),
			("a notification that nobody knows", notification("notifications/nope"), session, 202, b""),
			("an answer to nothing", {"jsonrpc": "2.0", "id": 5, "result": {}}, session, 202, b""),
			("a cancelled call that is none", notification("notifications/cancelled", requestId=77), session, 202, b""),
			("no session", request("ping"), BOTH, 400, {"id": 0}),
			("no session, a notification", notification("notifications/initialized"), BOTH, 400, ANY),
			("an unknown session", request("ping"), {**session, "Mcp-Session-Id": "a" * 32}, 404, ANY),
			("no version means an old one", request("ping"), {k: v for k, v in session.items() if k != "MCP-Protocol-Version"}, 200, {"result": {}}),
			("an unknown version", request("ping"), {**session, "MCP-Protocol-Version": "1999-01-01"}, 400, ANY),
			("an unknown method", request("nope"), session, 200, error("method")),
			("a method of the other era", request("server/discover"), session, 400, error("params")),
			("a page that is none", request("tools/list", {"cursor": "x"}), session, 200, error("params")),
			("the first page, by name", request("tools/list", {"cursor": None}), session, 200, {"result": {"tools": ANY}}),
			("no arguments, by name", request("tools/call", {"name": "list_languages", "arguments": None}), session, 200, {"result": {"structuredContent": {"languages": ANY}}}),
			("an unknown tool", unknown("nope"), session, 200, error("params")),
			("a tool that needs a project", unknown("write_file"), session, 200, error("params")),
			("arguments that are none", request("tools/call", {"name": "run_code", "arguments": []}), session, 200, error("params")),
			("arguments that do not fit", unknown("run_code"), session, 200, {"result": {"isError": True}}),
			("an argument that only a project has", request("tools/call", {"name": "run_code", "arguments": {"language": "python", "code": "", "in_project": True}}), session, 200, {"result": {"isError": True}}),
			("an unknown resource", request("resources/read", {"uri": "brig://nope"}), session, 200, {"error": {"code": -32002}}),
		], lambda body, headers, status, want: post(s, body, headers, status, want))
		t.equal(ask(s, "DELETE", "/mcp", None, session).status, 200, "the session ends")
		t.equal(ask(s, "DELETE", "/mcp", None, session).status, 404, "once")
		t.equal(post(s, request("ping"), session, 404), None, "and is gone")


@case("mcp: a run is a stream of messages, with progress under the token 0")
def stream(t):
	with serve(t, "mcp") as s:
		session = begin(s)
		reply = ask(s, "POST", "/mcp", request("tools/call", python("print('a', flush=True)", _meta={"progressToken": 0})), session)
		t.equal((reply.status, reply.headers["content-type"]), (200, "text/event-stream"), "a stream", reply)
		got = events(reply)
		t.check(all(m["method"] == "notifications/progress" and m["params"]["progressToken"] == 0 for m in got[:-1]) and len(got) > 1, "progress", reply)
		t.equal((got[-1]["id"], got[-1]["result"]["structuredContent"]["stdout"]), (0, "a\n"), "the answer is the last message")
		got = events(ask(s, "POST", "/mcp", request("tools/call", python("print('b')"), 7), session))
		t.equal([(m.get("id"), m["result"]["structuredContent"]["stdout"]) for m in got], [(7, "b\n")], "no token, no progress")


@case("mcp: cancelling ends a run without an answer, of the own session only")
def cancelled(t):
	with serve(t, "mcp") as s:
		session, other = begin(s), begin(s)
		slow = json.dumps(request("tools/call", python("print('on', flush=True)\nimport time\ntime.sleep(60)", _meta={"progressToken": 1}), 18))
		c = s.connect()
		c.sendall(f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n{''.join(f'{k}: {v}' + chr(13) + chr(10) for k, v in session.items())}Content-Length: {len(slow)}\r\n\r\n{slow}".encode())
		got = b""
		while b'"message":"on' not in got:
			got += c.recv(4096)
		t.equal(post(s, notification("notifications/cancelled", requestId=18), other, 202, b""), None, "of another session")
		t.equal(post(s, notification("notifications/cancelled", requestId="18"), session, 202, b""), None, "of another kind of id")
		t.equal(post(s, notification("notifications/cancelled", requestId=18, reason="enough"), session, 202, b""), None, "of its own")
		while not got.endswith(b"0\r\n\r\n"):
			more = c.recv(4096)
			t.check(more, "the stream ends as it should", got)
			got += more
		t.check(b'"result"' not in got and b'"error"' not in got, "and has no answer", got)
		c.close()
		runs = request("resources/read", {"uri": "brig://executions"})
		while True:	# until the run has ended, or the case's time has
			rows = json.loads(ask(s, "POST", "/mcp", runs, session).json["result"]["contents"][0]["text"])["executions"]
			if rows:
				break
		t.equal([r["verdict"] for r in rows], ["cancelled"], "the program was ended")


# ---- the modern era

DISCOVER = modern("server/discover")
HELLO = modern("tools/call", {"name": "list_languages", "arguments": {}})
COMPLETE = {"resultType": "complete", "_meta": {META + "serverInfo": {"name": "brig"}}}
KEPT = {**COMPLETE, "ttlMs": ANY, "cacheScope": "private"}
STAND_ALONE = [
	("discovery", DISCOVER, lines("server/discover"), 200, {"id": 0, "result": {**KEPT, "supportedVersions": [MODERN], "capabilities": {"tools": {}}}}),
	("tools", modern("tools/list"), lines("tools/list"), 200, {"result": {**KEPT, "tools": lambda tools: len(tools) == 8}}),
	("resources", modern("resources/list"), lines("resources/list"), 200, {"result": {**KEPT, "resources": ANY}}),
	("templates", modern("resources/templates/list"), lines("resources/templates/list"), 200, {"result": KEPT}),
	("a resource", modern("resources/read", {"uri": "brig://policy"}), lines("resources/read", "brig://policy"), 200, {"result": {**KEPT, "contents": [{"uri": "brig://policy", "text": ANY}]}}),
	("an unknown one", modern("resources/read", {"uri": "brig://x"}), lines("resources/read", "brig://x"), 200, error("params")),
	("a tool", HELLO, lines("tools/call", "list_languages"), 200, {"result": {**COMPLETE, "structuredContent": {"languages": ANY}}}),
	("its name in base64", HELLO, lines("tools/call", "=?base64?bGlzdF9sYW5ndWFnZXM=?="), 200, {"result": COMPLETE}),
	("another name in base64", HELLO, lines("tools/call", "=?base64?eA==?="), 400, error("header")),
	("base64 that is none", HELLO, lines("tools/call", "=?base64?*?="), 400, error("header")),
	("another name", HELLO, lines("tools/call", "run_code"), 400, error("header")),
	("no name", HELLO, lines("tools/call"), 400, error("header")),
	("another method", DISCOVER, lines("tools/list"), 400, error("header")),
	("no method", DISCOVER, {**BOTH, "MCP-Protocol-Version": MODERN}, 400, error("header")),
	("no version in the head", DISCOVER, {**BOTH, "Mcp-Method": "server/discover"}, 400, error("header")),
	("another version in the head", DISCOVER, lines("server/discover", version="2025-11-25"), 400, error("header")),
	("a version that is not served", modern("tools/list", meta=envelope("2027-01-01")), lines("tools/list", version="2027-01-01"), 400, error("version", data={"supported": [MODERN], "requested": "2027-01-01"})),
	("no envelope", request("tools/list"), lines("tools/list"), 400, error("params")),
	("an envelope without capabilities", modern("tools/list", meta={META + "protocolVersion": MODERN}), lines("tools/list"), 400, error("params")),
	("a version that is no text", modern("tools/list", meta=envelope(5)), lines("tools/list"), 400, error("params")),
	("an unknown method", modern("nope"), lines("nope"), 404, error("method")),
	("what is gone: ping", modern("ping"), lines("ping"), 404, error("method")),
	("what is gone: initialize", modern("initialize"), lines("initialize"), 404, error("method")),
	("an unknown tool", modern("tools/call", {"name": "x"}), lines("tools/call", "x"), 200, error("params")),
	("arguments that do not fit", modern("tools/call", {"name": "run_code"}), lines("tools/call", "run_code"), 200, {"result": {**COMPLETE, "isError": True}}),
	("a notification", notification("notifications/cancelled", requestId=0), lines("notifications/cancelled"), 202, b""),
]


@case("mcp: the modern era: every request stands alone, and its head agrees with it")
def alone(t):
	with serve(t, "mcp") as s:
		check(t, STAND_ALONE, lambda body, headers, status, want: post(s, body, headers, status, want))
		got = events(ask(s, "POST", "/mcp", modern("tools/call", python("print('a')")), lines("tools/call", "run_code")))
		t.equal((got[-1]["id"], got[-1]["result"]["resultType"], got[-1]["result"]["structuredContent"]["stdout"]), (0, "complete", "a\n"), "a run")


# ---- who asks

@case("mcp: a session is of the token that began it; no token, no answer")
def owner(t):
	with serve(t, "mcp", auth=True) as s:
		one, two = ({"Authorization": "Bearer " + s.token(name, "--door", "mcp")} for name in ("one", "two"))
		elsewhere = {"Authorization": "Bearer " + s.token("three", "--door", "piston")}
		session = begin(s, **one)
		stolen = {**session, **two}
		for name, headers in (("none", {}), ("a wrong one", {"Authorization": "Bearer brig_x"}), ("of another kind", {"Authorization": "Basic YTpi"})):
			reply = ask(s, "POST", "/mcp", INITIALIZE, {**BOTH, **headers})
			t.equal((reply.status, like("^Bearer").search(reply.headers.get("www-authenticate", "")) is not None), (401, True), f"token: {name}", reply)
		t.equal(ask(s, "POST", "/mcp", "{", BOTH).status, 401, "before the message is looked at")
		t.equal(ask(s, "GET", "/mcp", None, BOTH).status, 401, "GET")
		t.equal(ask(s, "POST", "/mcp", INITIALIZE, {**BOTH, **elsewhere}).status, 401, "of another door")
		t.equal(post(s, request("ping"), stolen, 404), None, "a session of another token")
		t.equal(ask(s, "DELETE", "/mcp", None, stolen).status, 404, "cannot be ended, either")
		t.equal(post(s, request("ping"), session, 200, {"result": {}}), None, "and is there still")
		t.equal(ask(s, "POST", f"/t/{one['Authorization'][7:]}/mcp", INITIALIZE, BOTH).status, 200, "a token in the path")
		for _ in range(64):
			begin(s, **one)
		t.equal(post(s, request("ping"), session, 404), None, "the oldest of too many is gone")
		t.equal(post(s, request("ping"), begin(s, **two), 200, {"result": {}}), None, "of others none is")


@case("mcp: what the service refuses: quotas are errors of the protocol, what a token may not is for the model")
def refused(t):
	with serve(t, "mcp", auth=True) as s:
		run = lambda token, language: ask(s, "POST", "/mcp", modern("tools/call", {"name": "run_code", "arguments": {"language": language, "code": ""}}, 3), {**lines("tools/call", "run_code"), "Authorization": "Bearer " + token})
		busy = s.token("busy", "--door", "mcp", "--runs-per-minute", "1")
		t.equal(run(busy, "python").status, 200, "the first run")
		t.equal(answer(run(busy, "python"), 200, {"id": 3, "error": {"code": -32000, "message": ANY}}), None, "too many runs")
		strict = s.token("strict", "--door", "mcp", "--language", "shell")
		t.equal(answer(run(strict, "python"), 200, {"id": 3, "result": {"resultType": "complete", "isError": True, "content": [{"type": "text", "text": like("python")}]}}), None, "another language")
