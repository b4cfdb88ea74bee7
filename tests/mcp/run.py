#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The mcp suite: `brig mcp` as clients meet it.

wire: messages of every kind, the hostile ones above all, written by hand.
clients: the packages that agents use (clients.mjs), unchanged, in both eras of the protocol.
"""
import base64
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import harness
from harness import Failed, Skipped, case

PATIENCE = 120	# seconds after which an answer is counted as missing; decides no case that works
MODERN = "2026-07-28"
GUARD = {"BRIG_INSPECTION": "guard"}


class Client:
	"""A client without a library: it sends what it is told to, and reads in a thread so that nothing ever blocks."""
	def __init__(self, t, *args, env=None, modern=False):
		self.t, self.modern, self.last, self.told = t, modern, 0, []
		self.p = t.popen([harness.brig_path(), "mcp", *args], env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		self.lines = queue.Queue()
		threading.Thread(target=self.read, daemon=True).start()

	def __enter__(self):
		return self

	def __exit__(self, kind, *_):
		if self.p.poll() is None:
			self.p.kill() if kind else self.end()
		self.p.wait()
		for stream in (self.p.stdin, self.p.stdout, self.p.stderr):
			try:
				stream.close()
			except OSError:
				pass

	def read(self):
		for line in self.p.stdout:
			self.lines.put(line)
		self.lines.put(None)

	def raw(self, data):
		self.p.stdin.write(data)
		self.p.stdin.flush()

	def send(self, message):
		self.raw(json.dumps(message).encode() + b"\n")

	def get(self):
		try:
			line = self.lines.get(timeout=PATIENCE)
		except queue.Empty:
			raise Failed("no answer came") from None
		if line is None:
			raise Failed(f"the server ended: {self.p.wait()} {self.p.stderr.read()!r}")
		message = json.loads(line)
		if message.get("jsonrpc") != "2.0":
			raise Failed(f"not a message: {line!r}")
		return message

	def ask(self, method, params=None, ident=None, token=None):
		"""The request's id."""
		self.last += 1
		ident = self.last if ident is None else ident
		params = dict(params or {})
		meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}} if self.modern else {}
		if token is not None:
			meta["progressToken"] = token
		if meta:
			params["_meta"] = meta
		self.send({"jsonrpc": "2.0", "id": ident, "method": method, **({"params": params} if params else {})})
		return ident

	def answer(self, ident):
		"""The answer with this id; notifications before it are kept in told."""
		while True:
			m = self.get()
			if m.get("id") == ident and "method" not in m:
				return m
			self.told.append(m)

	def request(self, method, params=None, **kw):
		return self.answer(self.ask(method, params, **kw))

	def call(self, tool, token=None, **arguments):
		return self.request("tools/call", {"name": tool, "arguments": arguments}, token=token)

	def good(self, tool, **arguments):
		"""The structured content of a call that must end well."""
		m = self.call(tool, **arguments)
		if "result" not in m or m["result"].get("isError"):
			raise Failed(f"{tool} {arguments}: {m}")
		return m["result"]["structuredContent"]

	def bad(self, tool, *words, **arguments):
		"""The text of a call that must be answered with an error for the model, which has these words in it."""
		m = self.call(tool, **arguments)
		if not m.get("result", {}).get("isError"):
			raise Failed(f"{tool} {arguments} is no error: {m}")
		text = m["result"]["content"][0]["text"]
		for word in words:
			if word not in text:
				raise Failed(f"'{word}' is not in: {text}")
		return text

	def begin(self, **capabilities):
		r = self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}})
		self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
		return r["result"]

	def end(self):
		self.p.stdin.close()
		try:
			return self.p.wait(PATIENCE)
		except subprocess.TimeoutExpired:
			raise Failed("it goes on after the end of its input") from None


def project(t, **files):
	"""A folder with these files; names have '/' as '__'."""
	folder = t.path("project")
	for name, text in files.items():
		path = os.path.join(folder, name.replace("__", "/"))
		os.makedirs(os.path.dirname(path), exist_ok=True)
		with open(path, "wb") as f:
			f.write(text if isinstance(text, bytes) else text.encode())
	os.makedirs(folder, exist_ok=True)
	harness.give(folder)
	return folder


def running_cells(t):
	"""Children of a server are brig run; their programs have this mark in their arguments."""
	return [p for p in os.listdir("/proc") if p.isdigit() and b"mcp-mark" in read_quietly(f"/proc/{p}/cmdline")]


def read_quietly(path):
	try:
		with open(path, "rb") as f:
			return f.read()
	except OSError:
		return b""


def wait_until(what, is_true):
	until = time.monotonic() + PATIENCE
	while not is_true():
		if time.monotonic() > until:
			raise Failed(f"never: {what}")
		time.sleep(0.02)


# ---- the wire -----------------------------------------------------------------------------------

# What is sent, and the code and id of the error that answers it.
HOSTILE = [
	(b"{", -32700, None),
	(b"nonsense", -32700, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}", -32700, None),
	(b"\xff\xfe{}", -32700, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xc3\"}", -32700, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}", -32700, None),
	(b"[" * 100000, -32700, None),
	(b"{\"a\":" * 100 + b"1" + b"}" * 100, -32700, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32700, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999999,\"method\":\"ping\"}", -32700, None),
	(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, None),
	(b"[]", -32600, None),
	(b"null", -32600, None),
	(b"\"ping\"", -32600, None),
	(b"{}", -32600, None),
	(b"{\"id\":7,\"method\":\"ping\"}", -32600, 7),
	(b"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", -32600, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}", -32600, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\\u0000x\"}", -32600, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600, None),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":[]}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"no/such\"}", -32601, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\"}", -32601, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}}", -32601, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"prompts/list\"}", -32601, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{\"protocolVersion\":3}}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"server/discover\"}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"no_such\"}}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":[]}}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"run_code\",\"arguments\":[]}}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"resources/read\"}", -32602, 7),
	(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"resources/read\",\"params\":{\"uri\":\"brig://executions/../x\"}}", -32002, 7),
]


@case("every broken message gets its error, and the server goes on", final="a message that is misread")
def hostile(t):
	with Client(t) as c:
		for data, code, ident in HOSTILE:
			c.raw(data + b"\n")
			m = c.get()
			t.equal([m.get("error", {}).get("code"), m.get("id")], [code, ident], "the error", f"{data[:80]} {m}")
		c.raw(b"\n \r\n")	# blank lines are nothing
		t.equal(c.request("ping", ident=0), {"jsonrpc": "2.0", "id": 0, "result": {}}, "ping after all that")
		t.equal(c.request("ping", ident="ü")["id"], "ü", "an id that is a string")


@case("a message of more than 8 MiB is refused, whole, and the next one is read")
def huge(t):
	with Client(t) as c:
		c.raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"" + b"a" * (9 << 20) + b"\"}}\n")
		t.equal([c.get()["error"]["code"], c.request("ping")["result"]], [-32700, {}], "too long")


@case("notifications, known or not, and answers to nothing are not answered")
def silence(t):
	with Client(t) as c:
		for m in ({"method": "notifications/no_such"}, {"method": "tools/call", "params": {"name": "list_languages"}}, {"method": "notifications/cancelled"},
			  {"method": "notifications/cancelled", "params": {"requestId": 5}}, {"id": 1, "result": {}}, {"id": "brig-roots-1", "result": {"roots": [1]}},
			  {"id": 4, "error": {"code": 1, "message": "x"}}):
			c.send({"jsonrpc": "2.0", **m})
		t.equal(c.request("ping", ident="last")["id"], "last", "the first answer")


@case("versions: the one that is asked for, else the newest")
def versions(t):
	with Client(t) as c:
		for asked, given in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"),
				     ("1999-01-01", "2025-11-25"), (MODERN, "2025-11-25")):
			r = c.request("initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
			t.equal(r["result"]["protocolVersion"], given, "the version")


@case("the modern era: discovery, envelopes, the members that every result has, what is gone")
def modern(t):
	with Client(t, modern=True) as c:
		r = c.request("server/discover")["result"]
		t.equal([r["supportedVersions"], r["resultType"], r["cacheScope"], "tools" in r["capabilities"]], [[MODERN], "complete", "private", True], "discovery", r)
		for method, member in (("tools/list", "tools"), ("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")):
			r = c.request(method)["result"]
			t.check(r[member] and r["resultType"] == "complete" and r["ttlMs"] >= 0, method, r)
			t.equal(r["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "brig", "who serves")
		r = c.call("list_languages")["result"]
		t.equal([r["resultType"], "ttlMs" in r], ["complete", False], "a call")
		for method in ("ping", "initialize", "logging/setLevel", "resources/subscribe"):
			t.equal(c.request(method)["error"]["code"], -32601, method)
		t.equal(c.request("resources/read", {"uri": "brig://nothing"})["error"]["code"], -32602, "no such resource")
		c.modern = False
		name = "io.modelcontextprotocol/"
		m = c.request("tools/list", {"_meta": {name + "protocolVersion": "2031-01-01", name + "clientCapabilities": {}}})
		t.equal([m["error"]["code"], m["error"]["data"]], [-32022, {"supported": [MODERN], "requested": "2031-01-01"}], "another version")
		for meta in ({name + "protocolVersion": MODERN}, {name + "protocolVersion": 1, name + "clientCapabilities": {}},
			     {name + "protocolVersion": MODERN, name + "clientCapabilities": [], }):
			t.equal(c.request("tools/list", {"_meta": meta})["error"]["code"], -32602, "the envelope")


# Arguments that do not fit, and a word of what the model is told.
ARGUMENTS = [
	({}, "language is missing"), ({"language": "python"}, "code is missing"), ({"language": 1, "code": ""}, "'language' must be of type string"),
	({"language": "python", "code": "", "x": 1}, "'x' is not known"), ({"language": "python", "code": "", "timeout": "1"}, "'timeout' must be of type number"),
	({"language": "python", "code": "", "timeout": -1}, "'timeout' must be at least"), ({"language": "py\0thon", "code": ""}, "no NUL"),
	({"language": "python", "code": "", "args": "x"}, "'args' must be of type array"), ({"language": "python", "code": "", "args": [1]}, "'args' must be of type string"),
	({"language": "python", "code": "", "files": {"a": 1}}, "'a' must be of type string"),
	({"language": "python", "code": "", "files": {"../a": ""}}, "refused"), ({"language": "python", "code": "", "files": {"/a": ""}}, "refused"),
	({"language": "python", "code": "", "packages": ["--index-url=x"]}, "refused"), ({"language": "--help", "code": ""}, "unknown language"),
	({"language": "python", "code": "", "memory": "lots"}, "refused"), ({"language": "python", "code": "", "in_project": True}, "There is no project"),
]


@case("arguments that do not fit are told to the model, and nothing runs")
def arguments(t):
	with Client(t) as c:
		for args, word in ARGUMENTS:
			text = c.call("run_code", **args)["result"]
			t.check(text["isError"] and word.lower() in text["content"][0]["text"].lower(), word, f"{args} {text}")


@case("every tool has schemas, annotations and a description, and is in the document")
def listed(t):
	with Client(t) as c, open(os.path.join(ROOT, "docs", "MCP.md"), encoding="utf-8") as page:
		page = page.read()
		tools = c.request("tools/list")["result"]["tools"]
		t.equal([x["name"] for x in tools], "run_code run_command run_tests check_code explain_finding explain_policy list_languages read_file write_file "
			"list_files show_changes apply_changes get_execution verify_receipt".split(), "the tools, in this order")
		for tool in tools:
			t.equal([tool["inputSchema"]["type"], tool["outputSchema"]["type"]], ["object", "object"], "schemas of " + tool["name"])
			t.check(f"`{tool['name']}`" in page and tool["title"] and len(tool["description"]) > 40, tool["name"])
		hints = {x["name"]: (x["annotations"]["readOnlyHint"], x["annotations"]["destructiveHint"]) for x in tools}
		t.equal([hints["apply_changes"], hints["write_file"], hints["read_file"], hints["run_code"]], [(False, True), (False, False), (True, False), (False, False)], "hints")
	with Client(t, "--apply") as c:
		tools = {x["name"]: x for x in c.request("tools/list")["result"]["tools"]}
		t.check(tools["write_file"]["annotations"]["destructiveHint"], "a write_file that applies is destructive")


@case("a program: output, input, arguments, files, artifacts, images, an execution that can be asked for")
def program(t):
	code = ("import sys, os\nprint(sys.argv[1:], sys.stdin.read(), open('d/in.txt').read())\nprint('é', file=sys.stderr)\n"
		"open('x.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(9))\nopen('x.svg', 'w').write('<svg/>')\nopen('t.csv', 'w').write('1,2')\n")
	with Client(t) as c:
		m = c.call("run_code", language="python", code=code, stdin="in\0put", args=["-a", "b c"], files={"d/in.txt": "file", "d/" + "long" * 40 + ".txt": ""},
			   artifacts=["*"])
		d = m["result"]["structuredContent"]
		t.equal([d["verdict"], d["exit_code"], d["stdout"], d["stderr"]], ["ok", 0, "['-a', 'b c'] in\0put file\n", "é\n"], "the run", m)
		t.equal({f["path"]: f.get("content") for f in d["files"]}, {"t.csv": "1,2", "x.png": base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(9)).decode(), "x.svg": "<svg/>"},
			"files")
		images = [(x["mimeType"], base64.b64decode(x["data"])[:4]) for x in m["result"]["content"] if x["type"] == "image"]
		t.equal(images, [("image/png", b"\x89PNG"), ("image/svg+xml", b"<svg")], "images")
		shown = c.good("get_execution", execution_id=d["execution_id"])
		t.equal([shown["id"], shown["verdict"]], [d["execution_id"], "ok"], "the record")
		rows = json.loads(c.request("resources/read", {"uri": "brig://executions"})["result"]["contents"][0]["text"])["executions"]
		t.equal([r["id"] for r in rows], [d["execution_id"]], "executions")
		one = c.request("resources/read", {"uri": "brig://executions/" + d["execution_id"]})["result"]["contents"][0]
		t.equal([one["mimeType"], json.loads(one["text"])["id"]], ["application/json", d["execution_id"]], "one of them")
	with Client(t) as c:	# of another server
		c.bad("get_execution", "no execution of this server", execution_id=d["execution_id"])
		t.check("error" in c.request("resources/read", {"uri": "brig://executions/" + d["execution_id"]}), "nor by its address")
	with Client(t, "--history") as c:
		t.equal(c.good("get_execution", execution_id=d["execution_id"])["id"], d["execution_id"], "with --history")


@case("what goes wrong is said in words that help: errors, limits, findings, long output")
def trouble(t):
	with Client(t, env=GUARD) as c:
		c.bad("run_code", "exit code 3", "oh no", language="shell", code="echo oh no >&2; exit 3")
		c.bad("run_code", "Stopped at the time limit", "Do less at once", language="python", code="while True: pass", timeout=0.3)
		text = c.bad("run_code", "Blocked by the inspection: nothing ran", "line 2", "[sh-delete-tree]", "do instead:", language="shell", code=":\nrm -rf /")
		t.check("--rule" not in text, "how to permit it is no business of a model", text)
		c.bad("run_code", "Refused", "unknown language", language="klingon", code="")
		m = c.call("run_code", language="python", code="print('a' * 100000 + 'END')")["result"]
		t.check("bytes left out" in m["content"][0]["text"] and "END" in m["content"][0]["text"] and m["structuredContent"]["truncated"], "long output")
		t.check(len(m["content"][0]["text"]) < 40000, "bounded")
		m = c.call("run_code", language="python", code="import os; os.write(1, bytes(range(256)))")["result"]["structuredContent"]
		t.equal([base64.b64decode(m["stdout"]), m["stdout_encoding"]], [bytes(range(256)), "base64"], "bytes")


@case("what asks: inspection, rules, policy, languages, receipts")
def asking(t):
	with Client(t, env=GUARD) as c:
		t.equal(c.good("check_code", kind="command", code="rm -rf /")["blocked"], True, "a command")
		d = c.good("check_code", language="python", code="import os\nos.system('x')")
		t.check(not d["blocked"] and d["findings"][0]["line"] == 2, "code", d)
		c.bad("check_code", "language", code="x")
		t.equal(c.good("explain_finding", rule="py-process")["rule"], "py-process", "a rule")
		for rule in ("no-such", "--help", "a b"):
			c.bad("explain_finding", rule, rule=rule)
		t.check(any(s["key"] == "execution_timeout_ms" for s in c.good("explain_policy", setting="timeout")["settings"]), "a setting")
		t.check(len(c.good("explain_policy")["settings"]) > 50, "all settings")
		c.bad("explain_policy", "no setting", setting="nonsense")
		t.check(any(x["name"] == "python" and x["installed"] for x in c.good("list_languages")["languages"]), "languages")
		for method, params in (("tools/call", {"name": "list_languages", "arguments": None}), ("tools/list", {"cursor": None}), ("resources/list", {"cursor": None})):
			t.check("result" in c.request(method, params), f"{method}: null is none")
		policy = json.loads(c.request("resources/read", {"uri": "brig://policy"})["result"]["contents"][0]["text"])
		t.check(policy["settings"], "the policy by its address")
		receipt = t.path("receipt")
		t.brig("run", "--receipt", receipt, "-l", "sh", "-c", ":")
		with open(receipt, encoding="utf-8") as f:
			text = f.read()
		t.equal([c.good("verify_receipt", receipt=text)["ok"], c.good("verify_receipt", receipt=text.replace("ok", "no"))["ok"]], [True, False], "receipts")


@case("the project: files as cells see them, changes that wait, and are applied", final="a project that is not guarded")
def files(t):
	folder = project(t, src__a="one\n", **{".env": "SECRET=1", "bin__x.bin": bytes(range(256)), "p.png": b"\x89PNG\r\n\x1a\n", "uml": "aüüz"})
	outside = t.path("outside.txt", "mcp-outside")
	os.symlink(outside, os.path.join(folder, "out"))
	os.symlink(".env", os.path.join(folder, "env-link"))
	in_container = harness.BACKEND == "docker"	# which does not have the files that others show empty
	with Client(t, "--workspace", folder) as c:
		t.equal(sorted((e["path"], e["type"]) for e in c.good("list_files")["entries"]),
			([] if in_container else [(".env", "file")]) + [("bin", "directory"), ("bin/x.bin", "file"), ("env-link", "link"), ("out", "link"), ("p.png", "file"), ("src", "directory"), ("src/a", "file"), ("uml", "file")],
			"the list")
		t.equal([e["path"] for e in c.good("list_files", path="src")["entries"]], ["a"], "a folder")
		c.bad("list_files", "no such folder", path="nothing")
		t.equal(c.good("read_file", path="src/a")["content"], "one\n", "a file")
		t.equal(c.good("read_file", path="/workspace/./src//a")["content"], "one\n", "the same, as a program would say it")
		d = c.good("read_file", path="bin/x.bin", offset=10, length=5)
		t.equal([d["content"], d["size"], d["truncated"]], [bytes(range(10, 15)).decode(), 256, True], "a part of it")
		page = c.good("read_file", path="uml", length=4)	# the third letter has two bytes
		t.equal([page["content"], page["truncated"], c.good("read_file", path="uml", offset=3)["content"]], ["aü", True, "üz"], "a page that would end in a character")
		t.equal(base64.b64decode(c.good("read_file", path="bin/x.bin")["content"]), bytes(range(256)), "bytes")
		t.equal(c.call("read_file", path="p.png")["result"]["content"][0]["type"], "image", "an image")
		for path in (".env", "env-link"):
			text = c.bad("read_file", "no such file" if in_container else "hidden by the policy", path=path)
			t.check("SECRET" not in text, "the secret", text)
		for path in ("../outside.txt", "/etc/passwd", "src/../../outside.txt", "out", "nothing"):
			text = c.bad("read_file", path=path)
			t.check("mcp-outside" not in text and "root:" not in text, "what is outside", text)
		if in_container:
			t.equal(c.good("write_file", path=".env", content="mcp-written")["state"], "none", "a file that is hidden")
		for path in (() if in_container else (".env",)) + (".git/config", "../x", "/x", "out", "src", "", "sub/.GIT/hooks/x"):
			c.bad("write_file", path=path, content="mcp-written")
		wrote = [c.good("write_file", path=path, content="new\n") for path in ("deep/er/new.txt", "main.sh", "src/a")]
		wrote.append(c.good("write_file", path="raw", content=base64.b64encode(b"\0\xff").decode(), encoding="base64"))
		t.equal([w["state"] for w in wrote], ["kept"] * 4, "what was written")
		t.equal([open(os.path.join(folder, "src/a")).read(), os.path.exists(os.path.join(folder, "main.sh"))], ["one\n", False], "the project meanwhile")
		t.equal(c.good("write_file", path="src/a", content="one\n")["state"], "none", "the same again")
		t.equal({w["id"] for w in c.good("show_changes")["waiting"]}, {w["execution_id"] for w in wrote}, "what waits")
		t.check("-one\n+new\n" in c.good("show_changes", execution_id=wrote[2]["execution_id"])["diff"], "the difference")
		for w in wrote:
			t.check(c.good("apply_changes", execution_id=w["execution_id"])["applied"], "applied")
		t.equal([open(os.path.join(folder, p), "rb").read() for p in ("deep/er/new.txt", "main.sh", "src/a", "raw")], [b"new\n"] * 3 + [b"\0\xff"], "the project")
		for ident in (wrote[0]["execution_id"], "--help", "latest"):
			c.bad("apply_changes", execution_id=ident)
		changed = c.call("run_command", command="echo x >made; cat src/a")["result"]["structuredContent"]
		t.equal([changed["stdout"], changed["changes"]["state"], os.path.exists(os.path.join(folder, "made"))], ["new\n", "kept", False], "a command")
		seen = c.good("run_code", language="sh", code="cat src/a", in_project=True)
		t.equal(seen["stdout"], "new\n", "code in the project")
	t.equal([open(outside).read(), open(os.path.join(folder, ".env")).read()], ["mcp-outside", "SECRET=1"], "what is outside, and what is hidden")
	other = t.path("other")
	os.mkdir(other)
	harness.give(other)
	with Client(t, "--workspace", other) as c:
		t.equal(c.good("show_changes")["waiting"], [], "changes of another project")
		for tool in ("show_changes", "apply_changes"):
			c.bad(tool, "not of this project", execution_id=changed["execution_id"])
	with Client(t, "--workspace", other, "--apply") as c:
		t.equal([c.good("write_file", path="x/y", content="1")["state"], open(os.path.join(other, "x/y")).read()], ["applied", "1"], "with --apply")
	with Client(t) as c:
		for tool, args in (("list_files", {}), ("read_file", {"path": "x"}), ("write_file", {"path": "x", "content": ""}), ("run_tests", {}), ("show_changes", {})):
			c.bad(tool, "There is no project", **args)


@case("tests of the project are counted, and their failures named")
def tests(t):
	folder = project(t, **{"test_x.py": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): self.fail('mcp-why')\n",
		"sub__test_y.py": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"})
	with Client(t, "--workspace", folder) as c:
		m = c.call("run_tests", framework="unittest")["result"]
		d = m["structuredContent"]
		t.equal([m["isError"], d["tests"]["passed"], d["tests"]["failed"]], [True, 1, 1], "counts", m)
		t.equal(c.good("run_tests", path="./sub/", framework="unittest")["tests"]["passed"], 1, "a folder")
		for path in ("--help", "--trust=trusted", "--workspace=/", "-h", "../x", "/etc"):
			c.bad("run_tests", path=path)
		t.check("mcp-why" in m["content"][0]["text"] and "test_b" in m["content"][0]["text"], "the failure")


@case("roots of the client: asked for when it has some, the first folder counts, changes are heard")
def roots(t):
	folder, other = project(t, a="in a\n"), t.path("ü b")
	os.mkdir(other)
	with open(os.path.join(other, "b"), "w") as f:
		f.write("in b\n")
	harness.give(other)

	def answer(c, *uris):
		asked = c.get()
		t.equal([asked["method"], isinstance(asked["id"], str)], ["roots/list", True], "the question", asked)
		c.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": u} for u in uris]}})
	with Client(t) as c:
		c.begin(roots={"listChanged": True})
		ident = c.ask("tools/call", {"name": "list_files", "arguments": {}})	# before the answer: it waits
		answer(c, "https://example.com/", "file:///no/such/folder", "file://" + folder)
		t.equal([e["path"] for e in c.answer(ident)["result"]["structuredContent"]["entries"]], ["a"], "the first folder")
		c.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
		answer(c, "file://" + os.path.dirname(other) + "/%C3%BC%20b")
		t.equal(c.good("read_file", path="b")["content"], "in b\n", "the next one")
		c.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
		answer(c)
		c.bad("read_file", "There is no project", path="b")
	with Client(t, "--workspace", folder) as c:
		c.begin(roots={})
		t.equal([e["path"] for e in c.good("list_files")["entries"]], ["a"], "--workspace counts, and nothing is asked")
		t.equal(c.told, [], "questions")


@case("progress: live output under the token, 0 included, numbers that grow; no token, no progress")
def progress(t):
	code = "for i in range(3):\n    print('line', i, flush=True)\n    input()\n"
	with Client(t) as c:
		m = c.call("run_code", token=0, language="python", code="import time\nfor i in range(4):\n    print('line', i, flush=True)\n    time.sleep(0.2)\n")
		t.equal(m["result"]["structuredContent"]["verdict"], "ok", "the run", m)
		told = [x["params"] for x in c.told]
		t.check(told and all(x["method"] == "notifications/progress" for x in c.told), "progress", c.told)
		t.equal("".join(p["message"] for p in told), "line 0\nline 1\nline 2\nline 3\n", "the output")
		t.check([p["progress"] for p in told] == list(range(1, len(told) + 1)) and all(p["progressToken"] == 0 for p in told), "numbers", told)
		c.told = []
		c.call("run_code", language="python", code=code, stdin="\n\n\n")
		t.equal(c.told, [], "without a token")


@case("cancelling kills the cell, is not answered, and leaves the others alone")
def cancelling(t):
	with Client(t) as c:
		slow = c.ask("tools/call", {"name": "run_code", "arguments": {"language": "sh", "code": "echo there; sleep 100", "args": ["mcp-mark"]}}, token="t")
		while "there" not in c.get()["params"]["message"]:
			pass
		t.check(running_cells(t), "the program runs")
		t.equal(c.request("tools/call", {"name": "list_languages"}, ident=slow)["error"]["code"], -32600, "an id that is in use")
		c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": slow, "reason": "enough"}})
		wait_until("the cell is gone", lambda: not running_cells(t))
		t.equal(c.good("run_code", language="sh", code="echo next")["stdout"], "next\n", "another run")
		t.check(not [m for m in c.told if m.get("id") == slow], "no answer", c.told)


@case("the end of the input ends what runs, at once; so do SIGTERM and a kill of the server")
def ending(t):
	def started(*how):
		c = Client(t)
		c.ask("tools/call", {"name": "run_code", "arguments": {"language": "sh", "code": "echo there; sleep 100", "args": ["mcp-mark"]}}, token=1)
		c.get()
		return c
	with started() as c:
		t.equal(c.end(), 0, "the status at the end of the input")
		wait_until("the cell is gone", lambda: not running_cells(t))
	for sig, status in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
		with started() as c:
			c.p.send_signal(sig)
			t.equal(c.p.wait(PATIENCE), status, f"the status after signal {sig}")
			wait_until("the cell is gone", lambda: not running_cells(t))


@case("calls side by side: more than run at once wait, too many are refused, each is answered once")
def parallel(t):
	with Client(t) as c:
		asked = [c.ask("tools/call", {"name": "run_code", "arguments": {"language": "sh", "code": f"echo {i}"}}) for i in range(20)]
		got = {}
		while len(got) < len(asked):
			m = c.get()
			got[m["id"]] = m["result"]["structuredContent"]["stdout"]
		t.equal([got[ident] for ident in asked], [f"{i}\n" for i in range(20)], "answers")
		asked = [c.ask("tools/call", {"name": "run_code", "arguments": {"language": "sh", "code": "sleep 100", "args": ["mcp-mark"]}}) for _ in range(70)]
		t.equal([c.get()["error"]["code"] for _ in range(6)], [-32000] * 6, "too many")
		for ident in asked:
			c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}})
		t.equal(c.good("run_code", language="sh", code="echo last")["stdout"], "last\n", "afterwards")
		wait_until("all cells are gone", lambda: not running_cells(t))


def memory_of(p, what):
	"""KB, by a name of /proc/PID/status."""
	with open(f"/proc/{p.pid}/status", encoding="utf-8") as f:
		return int([line for line in f if line.startswith(what)][0].split()[1])


def ask_much(t, n):
	"""A server with n questions, whose answers have some 27 KB each, and the thread that asks."""
	p = t.popen([harness.brig_path(), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

	def feed():
		try:
			for i in range(n):
				p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/list"}).encode() + b"\n")
			p.stdin.flush()
		except (OSError, ValueError):
			pass	# it ended before it had read them all
	feeder = threading.Thread(target=feed, daemon=True)
	feeder.start()
	return p, feeder


@case("a client that does not read stops nothing for ever: what it asked for comes when it does, and memory is bounded")
def slow_reader(t):
	n = 3000	# some 80 MB of answers
	p, feeder = ask_much(t, n)
	t.equal([json.loads(p.stdout.readline())["id"] for _ in range(n)], list(range(n)), "every answer, in order")
	most = memory_of(p, "VmHWM")
	t.check(most < 50 << 10 or "asan" in harness.brig_path(), "memory in KB", most)
	feeder.join()
	p.stdin.close()
	t.equal(p.wait(PATIENCE), 0, "the end")
	p.stdout.close()


@case("a client that reads nothing and goes away is not waited for")
def deaf_client(t):
	p, feeder = ask_much(t, 1000)
	feeder.join()	# the pipe has them, or the server
	p.stdin.close()
	p.wait(PATIENCE)
	p.stdout.close()


@case("wrong use of the command line: said, and nothing served")
def usage(t):
	for words in (("--workspace", "/no/such"), ("--workspace", "/etc/passwd"), ("--no-such",), ("word",)):
		p = t.brig("mcp", *words, stdin=b"")
		t.check(p.rc == 2 and b"brig:" in p.err and not p.out, "usage", p)


# ---- the clients --------------------------------------------------------------------------------

def client_case(t, kind):
	modules = os.path.join(HERE, "node_modules")
	node = shutil.which("node")
	if not node or not os.path.isdir(modules):
		raise Skipped("needs node and the packages of tests/mcp: npm ci --prefix tests/mcp")
	folder = project(t, **{"a.txt": "text of a\n"})
	p = t.run([node, os.path.join(HERE, "clients.mjs"), kind, harness.brig_path(), folder], stdin=b"", env=GUARD)
	t.check(p.rc == 0 and b"not ok" not in p.out and p.out.count(b"\nok ") > 8, "what the client says",
		p.text())


# Whom brig is run by makes no difference to them.
for KIND, TITLE in () if harness.test_ids() else (("v1", "@modelcontextprotocol/sdk 1.x"), ("v2", "@modelcontextprotocol/client 2.x"), ("v2-auto", "the same, asking which era is served"),
		    ("v2-modern", "the same, modern era only")):
	harness.add(f"clients.{KIND}", f"{TITLE}, as it comes", lambda t, kind=KIND: client_case(t, kind))


@case("the inspector, as it comes, in both eras")
def inspector(t):
	"""Named by hand, because the Node.js that it needs is younger than the distribution's: MCP_INSPECTOR='NODE .../inspector/cli.js'."""
	words = os.environ.get("MCP_INSPECTOR", "").split()
	if not words:
		raise Skipped("needs Node.js 22.19: MCP_INSPECTOR='NODE PATH-OF-THE-INSPECTOR' names both")
	server = [harness.brig_path(), "mcp"]
	for era in ("legacy", "auto", "modern"):
		ask = lambda *more: t.run([*words, "--cli", *server, "--protocol-era", era, "--format", "json", "-q", *more], stdin=b"")
		p = ask("--method", "tools/list", "--strict")
		t.check(p.rc == 0 and b"verify_receipt" in p.out, "tools/list", p)
		p = ask("--method", "tools/call", "--tool-name", "run_code", "--tool-arg", "language=python", "--tool-arg", "code=print(6 * 7)")
		t.check(p.rc == 0 and b"42" in p.out, "tools/call", p)


if __name__ == "__main__":
	sys.exit(harness.main("mcp"))
