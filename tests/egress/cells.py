# SPDX-License-Identifier: Apache-2.0
"""Cells of the egress suite: what programs in them begin with, how they are run, and what the result is asked."""
import json

import harness

NET = None	# the worker's internet: set by run.py

# What every program begins with: ways to speak to the proxy, and one line of JSON at the end.
PRELUDE = r'''
import json, os, socket, struct, sys, time
PROXY = ("127.0.0.1", 3128)
def read_all(s):
	out = b""
	try:
		while True:
			piece = s.recv(65536)
			if not piece:
				return out
			out += piece
	except OSError as e:
		return out + b"!" + type(e).__name__.encode()
def say(data, end=False):
	with socket.create_connection(PROXY, 20) as s:
		s.sendall(data)
		if end:
			s.shutdown(socket.SHUT_WR)
		return read_all(s).decode("latin-1")
def connect(target, data=b"", extra=b""):
	return say(b"CONNECT " + target.encode() + b" HTTP/1.1\r\n" + extra + b"\r\n" + data, True)
def get(url, host, extra="", body=b""):
	return say(f"GET {url} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode() + body)
def socks(kind, address, port, data=b"", command=1):
	with socket.create_connection(PROXY, 20) as s:
		s.sendall(b"\5\1\0")
		hello = s.recv(2)
		s.sendall(bytes([5, command, 0, kind]) + address + struct.pack("!H", port))
		reply = s.recv(10)
		if len(reply) == 10 and reply[1] == 0:
			s.sendall(data)
			s.shutdown(socket.SHUT_WR)
		return [hello.hex(), reply[1:2].hex(), read_all(s).decode("latin-1")]
def name(text):
	return bytes([len(text)]) + text.encode()
def done(**what):
	print(json.dumps(what))
'''



class Ran:
	"""A finished run: what it printed, and rows of the result by host and port."""
	def __init__(self, t, r):
		self.r, self.t = r, t
		try:
			self.said = json.loads(r.stdout)
		except ValueError:
			raise harness.Failed(f"the program did not get to its end: {r}") from None
		for row in r.json["network"]:
			row["reason"] = row["reason"] or ""

	def rows(self, host, port=None, allowed=None):
		return [n for n in self.r.json["network"] if n["host"] == host and port in (None, n["port"]) and allowed in (None, n["allowed"])]

	def refused(self, host, port, why, fix=None):
		"""One refused row, and one of denied that says what to do."""
		rows = [n for n in self.rows(host, port, False) if why in n["reason"]]
		self.t.check(len(rows) == 1, f"no row that {host}:{port} was refused ({why})", self.r.json["network"])
		self.t.check(rows[0]["sent_bytes"] == rows[0]["received_bytes"] == 0, "bytes of a refused host", rows)
		what = f"{host}:{port}" if host else why
		denied = [d for d in self.r.json["denied"] if d["kind"] == "host" and (d["what"] == what if host else why in d["what"])]
		self.t.check(len(denied) == 1, f"{what} is not in denied", self.r.json["denied"])
		if fix is not None:
			self.t.equal(denied[0]["fix"], fix or None, f"the fix for {what}")

	def served(self, host, port, sent=None, received=None, count=1):
		rows = [n for n in self.rows(host, port, True) if not n["reason"]]
		self.t.check(len(rows) == 1 and rows[0]["count"] == count, f"no row of {count} connections to {host}:{port}", self.r.json["network"])
		for key, want in (("sent_bytes", sent), ("received_bytes", received)):
			if want is not None:
				self.t.equal(rows[0][key], want, f"{key} of {host}:{port}")


def run(t, code, hosts, lang="python", prelude=True, names=True, verdict="ok", extra="", args=(), env=None):
	if names and NET.why:
		t.skip(NET.why)
	policy = t.path("policy.yaml", "network:\n  network_mode: allowlist\n  whitelist: " + json.dumps(hosts) + "\n" + extra)
	r = t.cell("--policy", policy, "--timeout", "30", *args, code=(PRELUDE if prelude else "") + code, lang=lang, env=env)
	t.verdict(r, verdict)
	network = [e for e in r.json["evidence"] if e["check"] == "network"]
	t.check(network and network[0]["kept"] and network[0]["enforced"] == "lo", "the cell has more than its loopback", network)
	return r


def ran(t, code, hosts, **kw):
	return Ran(t, run(t, code, hosts, **kw))
