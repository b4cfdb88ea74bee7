# SPDX-License-Identifier: Apache-2.0
"""Bodies that are no such thing: each door refuses them in its own words, and goes on."""
import json
import struct

from client import wait_until
from harness import case
from table import BODIES, ask, check, serve

GOOD = {
	"/api/v2/execute": {"language": "python", "version": "*", "files": [{"content": "print(1)"}]},
	"/v1/sandbox/run": {"language": "python3", "code": "print(1)"},
	"/run_code": {"language": "python", "code": "print(1)"},
	"/run_jupyter": {"cells": ["1"], "kernel": "python3", "files": {}, "fetch_files": [], "cell_timeout": 1},
	"/submit": {"dataset": "x", "id": 1, "completion": "```\nprint(1)\n```", "config": {"dataset_type": "CommonOJDataset", "language": "python", "provided_data": {"test": [{"input": {"stdin": ""}, "output": {"stdout": "1"}}]}}},
	"/v1/exec": {"lang": "py", "code": "print(1)"},
	"/mcp": {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
	"/v1/exec/programmatic": {"code": "print(1)", "tools": [{"name": "a"}]},
}
VALUES = [None, True, 0, -1, 1e308, "", "\0", "x" * 70000, [], {}, [[]], [None], {"a": {}}, {"": ""}]


@case("hostile bodies of every door")
def bodies(t):
	with serve(t, "all", "--body-limit", "2m") as s:
		for path, good in GOOD.items():
			# What is wrong with one member while the others are right.
			for name in good:
				for value in VALUES:
					a = ask(s, "POST", path, {**good, name: value})
					t.check(a.status in (200, 400, 422) and a.json is not None, f"{path}: {name} is {str(value)[:40]}", a)
			for body in BODIES:
				a = ask(s, "POST", path, body, {"Content-Type": "application/json"})
				t.check(a.status in (400, 422) and a.json is not None, f"{path}: {body[:20]!r}", a)
			a = ask(s, "POST", path, b"x" * (3 << 20))
			t.check(a.status == 413 and a.json is not None, f"{path}: too long a body", a)
			a = ask(s, "POST", path, json.dumps(good), {"Content-Encoding": "gzip"})
			t.equal(a.status, 415, f"{path}: an encoding", a)
			t.equal(ask(s, "POST", path, good).status, 200, f"{path}: and after all that")


# ---- the WebSocket ------------------------------------------------------------------------------

KEY = "dGhlIHNhbXBsZSBub25jZQ=="	# of RFC 6455, as is what is answered to it
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": KEY}


def frame(opcode, data, fin=0x80, mask=True, rsv=0, length=None):
	n = len(data) if length is None else length
	size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 1 << 16 else b"\x7f" + struct.pack(">Q", n)
	return bytes([fin | rsv | opcode, size[0] | (0x80 if mask else 0)]) + size[1:] + (b"\0" * 4 if mask else b"") + data


def connect(s):
	"""A connection on which only frames follow."""
	c = s.connect()
	c.sendall(b"GET /api/v2/connect HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % s.port + "".join(f"{k}: {v}\r\n" for k, v in UPGRADE.items()).encode() + b"\r\n")
	head = b""
	while b"\r\n\r\n" not in head:
		head += c.recv(1)
	return c, head


def close_in(data):
	"""The code of the close frame among these, or nothing."""
	while len(data) >= 2:
		n, at = data[1] & 0x7f, 2
		if n == 126:
			n, at = struct.unpack(">H", data[2:4])[0], 4
		if data[0] & 0xf == 8 and n >= 2 and len(data) >= at + 2:
			return struct.unpack(">H", data[at:at + 2])[0]
		data = data[at + n:]
	return None


def last_close(c):
	"""The code that the connection is closed with; 0: it just ends."""
	data = b""
	try:
		while close_in(data) is None and (piece := c.recv(65536)):
			data += piece
	except ConnectionError:
		pass
	return close_in(data) or 0


INIT = json.dumps({"type": "init", "language": "python", "version": "*", "files": [{"content": "import time; time.sleep(2.9)"}]}).encode()
FRAMES = [
	("without a mask", frame(1, b"{}", mask=False), (0, 1002)),
	("a reserved bit", frame(1, b"{}", rsv=0x40), (0, 1002)),
	("an unknown kind", frame(3, b""), (0, 1002)),
	("an unknown control frame", frame(0xb, b""), (0, 1002)),
	("a control frame in pieces", frame(9, b"", fin=0), (0, 1002)),
	("a control frame that is too long", frame(9, b"x" * 126), (0, 1002)),
	("a piece without a beginning", frame(0, b"x"), (0, 1002)),
	("text that is none", frame(1, b"\xff\xfe"), (1007,)),
	("a length beyond all", frame(1, b"", length=1 << 62), (0, 1002, 1009, 4001)),
	("a message in pieces that is too long", frame(1, b"x" * 600000, fin=0) + frame(0, b"x" * 600000), (1009,)),
	("a close of one byte", frame(8, b"x"), (0, 1002)),
	("an orderly close", frame(8, struct.pack(">H", 1000)), (1000,)),
	("bytes instead of text", frame(2, b"\x00\xff"), (4002,)),
	("deep JSON", frame(1, b"[" * 5000), (4002,)),
	("a message that is no object", frame(1, b"5"), (4002,)),
	("a type that is none", frame(1, b'{"type": []}'), (4001,)),
	("an init that is none", frame(1, b'{"type": "init", "files": 1}'), (4002,)),
	("a ping, an init, then nonsense", frame(9, b"p") + frame(1, INIT) + frame(1, b"{"), (4002,)),
	("data that is none", frame(1, INIT) + frame(1, b'{"type": "data", "stream": "stdin", "data": 5}'), (4002,)),
]


@case("hostile WebSockets")
def sockets(t):
	with serve(t, "piston", "--head-timeout", "20s") as s:
		head = connect(s)[1]
		t.check(b" 101 " in head and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, "the handshake of the RFC", head)

		def one(data, codes):
			c, _ = connect(s)
			with c:
				c.sendall(data)
				code = last_close(c)
			return None if code in codes else f"it is closed with {code}, not with {codes}"
		check(t, FRAMES, one)
		check(t, [(name, {**UPGRADE, **more}) for name, more in (
			("no upgrade", {"Upgrade": "h2c"}), ("another version", {"Sec-WebSocket-Version": "8"}), ("no key", {"Sec-WebSocket-Key": "x"}),
			("a key that is too long", {"Sec-WebSocket-Key": "A" * 44}), ("no connection", {"Connection": "close"}))],
			lambda headers: None if ask(s, "GET", "/api/v2/connect", None, headers).status in (400, 426) else "it is taken")
		c, _ = connect(s)
		c.sendall(frame(1, INIT))
		wait_until("it runs", lambda: s.get("/v1/queue").json["running"] == 1)
		c.close()
		wait_until("who hangs up has given up", lambda: s.get("/v1/executions").json["executions"][0]["verdict"] == "cancelled")
