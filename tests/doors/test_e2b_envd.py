# SPDX-License-Identifier: Apache-2.0
"""E2B: commands and files of a sandbox, with its client as it comes and with what it never sends."""
import gzip
import json
import struct

from harness import case
from sandbox import make, of, run_client
from table import answer, ask, check, like, serve

START, CONNECT = "/process.Process/Start", "/process.Process/Connect"
STAT, LIST = "/filesystem.Filesystem/Stat", "/filesystem.Filesystem/ListDir"
STREAM = {"Content-Type": "application/connect+json"}


@case("E2B's client: commands, terminals, files, watches")
def commands_and_files(t):
	with serve(t, "all", "--refuse-keys", "e2b_bad,bad") as s:
		run_client(t, s, "e2b_files.mjs", 50)


def frame(doc, flag=0):
	text = doc if isinstance(doc, bytes) else json.dumps(doc).encode()
	return struct.pack(">BI", flag, len(text)) + text


def frames(body):
	found = []
	while body:
		flag, size = struct.unpack(">BI", body[:5])
		found.append((flag, json.loads(body[5:5 + size])))
		body = body[5 + size:]
	return found


def ends(reply, code, message=""):
	"""What is wrong with a stream that was to be nothing but this error."""
	if reply.status != 200 or reply.headers["content-type"] != STREAM["Content-Type"]:
		return f"{reply}"
	(flag, doc), *more = frames(reply.body)
	good = not more and flag == 2 and doc["error"]["code"] == code and message in doc["error"]["message"]
	return None if good else f"{reply}"


@case("E2B: a command writes as much as the policy says, and 100 MB if it says nothing")
def output_limit(t):
	body = frame({"process": {"cmd": "/bin/bash", "args": ["-c", "head -c 20000 /dev/zero"]}})
	with open(t.path("policy.yaml"), "w", encoding="utf-8") as f:
		f.write("resources:\n  output_limit: 10k\n")
	for options, code in ((["--policy", t.path("policy.yaml")], 123), (["--set", "output_limit=10k", "--set", "timeout=20"], 123), ([], 0)):
		with serve(t, "e2b", *options) as s:
			r = ask(s, "POST", START, body, {**of(make(s)), **STREAM})
			end = [doc["event"]["end"] for _, doc in frames(r.body) if "end" in doc.get("event", {})]
			t.equal([e["exitCode"] for e in end], [code], f"with {options}", r)


@case("E2B: messages of streams that are none, and members that cannot be")
def streams(t):
	with serve(t, "e2b") as s:
		box = of(make(s))

		def stream(path, body, code, message=""):
			return ends(ask(s, "POST", path, body, {**box, **STREAM}), code, message)
		check(t, [
			("half a head", START, b"\0\0\0", "invalid_argument", "not whole"),
			("a message that is cut", START, frame({})[:-1], "invalid_argument", "not whole"),
			("one that is too long", START, b"\0\xff\xff\xff\xff{}", "invalid_argument", "not whole"),
			("a compressed one", START, frame({}, 1), "invalid_argument", "compressed"),
			("no message", START, b"", "invalid_argument", "no message"),
			("only an end", START, frame({}, 2), "invalid_argument", "no message"),
			("no JSON", START, frame(b"{"), "invalid_argument"),
			("no object", START, frame([]), "invalid_argument", "object"),
			("a command without a program", START, frame({"process": {"args": ["x"]}}), "invalid_argument", "cmd"),
			("a command that is a number", START, frame({"process": {"cmd": 5}}), "invalid_argument", "cmd"),
			("an argument that is none", START, frame({"process": {"cmd": "true", "args": [1]}}), "invalid_argument", "argument 1"),
			("one with a NUL", START, frame({"process": {"cmd": "true", "args": ["a\0b"]}}), "invalid_argument"),
			("a variable that is none", START, frame({"process": {"cmd": "true", "envs": {"A": 1}}}), "invalid_argument"),
			("a variable without a name", START, frame({"process": {"cmd": "true", "envs": {"": "1"}}}), "invalid_argument"),
			("another's home", START, frame({"process": {"cmd": "true", "cwd": "~root"}}), "invalid_argument", "cwd"),
			("a program that is not there", START, frame({"process": {"cmd": "/nope"}}), "invalid_argument"),
			("more arguments than a cell takes", START, frame({"process": {"cmd": "true", "args": ["x" * 90000, "y" * 90000]}}), "invalid_argument", "bytes"),
			("a process without a name", CONNECT, frame({"process": {}}), "invalid_argument", "pid"),
			("a process that is not there", CONNECT, frame({"process": {"tag": "nope"}}), "not_found"),
			("a watch of nothing", "/filesystem.Filesystem/WatchDir", frame({"path": "/nope"}), "not_found"),
		], stream)
		r = ask(s, "POST", START, frame({"process": {"cmd": "true"}}), {**box, **STREAM, "Authorization": "Basic bm9ib2R5Og=="})
		t.check(not ends(r, "unauthenticated"), "another user", str(r))
		r = ask(s, "POST", START, frame({"process": {"cmd": "echo", "args": ["x"]}, "stdin": False, "unknown": 1}), {**box, **STREAM})
		start, data, end, last = frames(r.body)
		t.equal([start[1]["event"]["start"]["pid"] > 1, data[1]["event"]["data"], end[1]["event"]["end"], last],
			[True, {"stdout": "eAo="}, {"exitCode": 0, "exited": True, "status": "exit status 0"}, (2, {})], "a good one", str(r))


@case("E2B: unary calls and files, row by row")
def unary(t):
	with serve(t, "e2b") as s:
		made = make(s)
		box, other = of(made), of(make(s))
		call = {**box, "Content-Type": "application/json"}
		raw = {**box, "Content-Type": "application/octet-stream"}
		packed = {**raw, "Content-Encoding": "gzip"}
		long = gzip.compress(bytes(80 << 20), 1)
		form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="one"\r\n\r\n1\r\n--b--\r\n'
		forms = {**box, "Content-Type": "multipart/form-data; boundary=b"}
		rows = [
			("no token", "POST", STAT, {"path": "."}, {"E2b-Sandbox-Id": made["sandboxID"]}, 401, {"code": "unauthenticated"}),
			("another's", "POST", STAT, {"path": "."}, {**box, "X-Access-Token": other["X-Access-Token"]}, 401, {"code": "unauthenticated"}),
			("a sandbox that is not there", "POST", STAT, {"path": "."}, {**box, "E2b-Sandbox-Id": "nope"}, 502, {"code": 502}),
			("another media type", "POST", STAT, "x", {**box, "Content-Type": "application/proto"}, 415, {"code": "invalid_argument"}),
			("another method", "GET", STAT, None, box, 405, {"code": 405}),
			("no JSON", "POST", STAT, "{", call, 400, {"code": "invalid_argument"}),
			("home", "POST", STAT, {}, call, 200, {"entry": {"path": "/home/user", "name": "user", "type": "FILE_TYPE_DIRECTORY", "owner": "user"}}),
			("a plain path", "POST", STAT, {"path": "/home/./user//../user/"}, call, 200, {"entry": {"path": "/home/user"}}),
			("no path of ours", "POST", STAT, {"path": "~root/x"}, call, 400, {"code": "invalid_argument"}),
			("a path that is too long", "POST", STAT, {"path": "x" * 5000}, call, 400, {"code": "invalid_argument"}),
			("a file that is not there", "POST", STAT, {"path": "nope"}, call, 404, {"code": "not_found", "message": like("/home/user/nope")}),
			("a number as text", "POST", LIST, {"path": "/tmp", "depth": "2"}, call, 200, {"entries": []}),
			("a signal that is none", "POST", "/process.Process/SendSignal", {"process": {"pid": 1}, "signal": "SIGNAL_X"}, call, 501, {"code": "unimplemented"}),
			("a signal to nothing", "POST", "/process.Process/SendSignal", {"process": {"pid": 99999}, "signal": 9}, call, 404, {"code": "not_found"}),
			("input that is no base64", "POST", "/process.Process/SendInput", {"process": {"pid": 1}, "input": {"stdin": "*"}}, call, 400, {"code": "invalid_argument"}),
			("a terminal of no size", "POST", "/process.Process/Update", {"process": {"pid": 1}, "pty": {"size": {}}}, call, 400, {"code": "invalid_argument"}),
			("no path to read", "GET", "/files", None, box, 400, {"code": 400}),
			("nothing to read", "GET", "/files?path=nope", None, box, 404, {"code": 404, "message": "path '/home/user/nope' does not exist"}),
			("a user that is not there", "GET", "/files?path=x&username=x", None, box, 401, {"code": 401}),
			("no path to write", "POST", "/files", b"x", raw, 400, {"code": 400}),
			("a body as it is", "POST", "/files?path=raw", b"raw", raw, 200, [{"path": "/home/user/raw", "name": "raw", "type": "file"}]),
			("a packed one", "POST", "/files?path=packed", gzip.compress(b"packed"), packed, 200, [{"path": "/home/user/packed"}]),
			("one that is not packed", "POST", "/files?path=packed", b"x", packed, 400, {"code": 400}),
			("one that is cut", "POST", "/files?path=packed", gzip.compress(b"packed")[:-9], packed, 400, {"code": 400}),
			("one that would be too long", "POST", "/files?path=packed", long, packed, 400, {"code": 400, "message": like("too long")}),
			("packed otherwise", "POST", "/files?path=packed", b"x", {**raw, "Content-Encoding": "br"}, 400, {"code": 400}),
			("a form", "POST", "/files", form, forms, 200, [{"path": "/home/user/one"}]),
			("a form for another path", "POST", "/files?path=two", form, forms, 200, [{"path": "/home/user/two"}]),
			("a form that is cut", "POST", "/files", form[:-8], forms, 400, {"code": 400}),
			("a form without a file", "POST", "/files", form.replace(b'"file"', b'"else"'), forms, 400, {"code": 400}),
			("metadata that is too long", "POST", "/files?path=m", b"x", {**raw, "X-Metadata-A": "x" * 4097}, 400, {"code": 400}),
			("metadata that is not ASCII", "POST", "/files?path=m", b"x", {**raw, "X-Metadata-A": "\xe9"}, 400, {"code": 400}),
		]
		check(t, rows, lambda method, path, body, headers, status, want: answer(ask(s, method, path, body, headers), status, want))
		t.equal([ask(s, "GET", "/files?path=packed", None, box).body, ask(s, "GET", "/files?path=two", None, box).body], [b"packed", b"1"], "what was written")
		ask(s, "POST", "/files?path=ten", b"0123456789", raw)
		changed = ask(s, "GET", "/files?path=ten", None, box).headers["last-modified"]
		parts = {"bytes=2-4": (206, b"234", "bytes 2-4/10"), "bytes=7-": (206, b"789", "bytes 7-9/10"), "bytes=-2": (206, b"89", "bytes 8-9/10"),
			"bytes=-99": (206, b"0123456789", "bytes 0-9/10"), "bytes=0-999": (206, b"0123456789", "bytes 0-9/10"), "bytes=9-9": (206, b"9", "bytes 9-9/10"),
			"bytes=10-": (416, b"the file has nothing in this range", "bytes */10"), "bytes=-0": (416, b"the file has nothing in this range", "bytes */10")}
		for line in ("bytes=4-2", "bytes=1-2,4-5", "bytes=-", "bytes=x-3", "lines=1-2", "bytes=99999999999999999999-"):
			parts[line] = (200, b"0123456789", None)
		for line, (status, body, content) in parts.items():
			r = ask(s, "GET", "/files?path=ten", None, {**box, "Range": line, "Accept-Encoding": "gzip" if status == 206 else "identity"})
			said = r.json["message"].encode() if status == 416 else r.body
			t.check(r.status == status and said == body and r.headers.get("content-range") == content, f"Range: {line}", r)
		for date, status in ((changed, 206), ("Tue, 17 Nov 2020 15:57:25 GMT", 200)):
			t.equal(ask(s, "GET", "/files?path=ten", None, {**box, "Range": "bytes=1-1", "If-Range": date}).status, status, f"If-Range: {date}")
		t.equal(ask(s, "GET", "/files?path=ten", None, box).headers["content-type"], "application/octet-stream", "the type")
		ask(s, "POST", "/execute", {"code": "import os\nfor n, t in ('late', 253402300800), ('later', 1 << 55), ('early', -5):\n    open(n, 'w').close()\n    os.utime(n, (t, t))"}, {**box, "E2b-Sandbox-Port": "49999"})
		for name in ("late", "later", "early"):
			r = ask(s, "GET", f"/files?path={name}", None, box)
			t.equal([r.status, r.headers.get("last-modified")], [200, None], f"{name}: a time that no date of HTTP can say")
		r = ask(s, "GET", "/files?path=packed", None, {**box, "Accept-Encoding": "gzip"})
		t.equal([r.headers.get("content-encoding"), gzip.decompress(r.body)], ["gzip", b"packed"], "who wants it packed")
