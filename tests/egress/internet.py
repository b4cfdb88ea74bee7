# SPDX-License-Identifier: Apache-2.0
"""
internet.py - a small internet for a worker of the egress suite: a network namespace behind a veth pair, with a name server
and servers on public, private and link-local addresses.  brig finds it by an /etc/resolv.conf and an /etc/hosts that are
mounted in the worker's own mount namespace; nothing of the machine is touched, and everything ends with the worker.

Each server answers HTTP with what it was asked, as JSON, and echoes everything else.  One speaks TLS, with a certificate of
a CA made for the worker (internet.ca is its file); one speaks first, as servers of databases do.  What is seen is written
to a log, one line each: `dns NAME TYPE`, `tcp ADDRESS PORT`, `http ADDRESS PORT FIRST-LINE`.

A case counts what was seen since its mark.  On a busy machine a server may take a connection long after it was made, and
that of one case must be seen by it and not by the next: so the log is looked at only when no server has anything left to take.
"""
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

HERE = ("8.9.10.1", "10.9.8.1", "2a00:1450::1")		# the worker's end: brig's own addresses
PUBLIC, OTHER, PRIVATE, META, PUBLIC6 = "8.9.10.2", "8.9.10.3", "10.9.8.2", "169.254.169.254", "2a00:1450::2"
TLS = "8.9.10.4"
TCP_PORTS = (80, 443, 8080)
GREETING = b"ready\n"
MARK_PORT = 7	# of PUBLIC: closes a connection when everything before it is in the log
TAKING = threading.Lock()	# between taking something and its line in the log
SERVED = []	# the sockets of this process that something may wait at
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
MS_BIND, MNT_DETACH = 4096, 2
libc = ctypes.CDLL(None, use_errno=True)

# What the name server says.  A list of lists: a different answer each time, and then the last one.
ZONE = {
	"listed.test": [[PUBLIC]], "a.wild.test": [[PUBLIC]], "wild.test": [[PUBLIC]], "other.test": [[OTHER]],
	"loop.test": [["127.0.0.1"]], "loop6.test": [["::1"]], "private.test": [[PRIVATE]], "meta.test": [[META]],
	"mapped.test": [["::ffff:127.0.0.1"]], "zero.test": [["0.0.0.0"]], "own.test": [[HERE[0]]],
	"mixed.test": [["127.0.0.1", PRIVATE, PUBLIC]], "six.test": [[PUBLIC6]],
	"rebind.test": [[PUBLIC], ["127.0.0.1"]], "rebind-back.test": [["127.0.0.1"], [PUBLIC]],
	"secure.test": [[TLS]], "a.tls.test": [[TLS]], "b.tls.test": [[TLS]], "misnamed.test": [[TLS]],
	"nat64.test": [["64:ff9b::7f00:1"]], "dead.test": [["8.9.10.99"]],
}


class Log:
	def __init__(self, path):
		self.fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

	def say(self, *words):
		os.write(self.fd, (" ".join(map(str, words)) + "\n").encode())


class Names:
	"""A name server that knows A and AAAA."""
	def __init__(self, log, sock):
		self.log, self.sock, self.asked = log, sock, {}

	def addresses(self, name, family):
		answers = ZONE.get(name)
		if answers is None:
			return None
		turn = self.asked[name] = self.asked.get(name, -1) + (1 if family == 4 else 0)	# A and AAAA come together
		found = answers[min(max(turn, 0), len(answers) - 1)]
		return [a for a in found if (":" in a) == (family == 6)]

	def answer(self, query):
		at, labels = 12, []
		while query[at]:
			labels.append(query[at + 1:at + 1 + query[at]].decode("ascii", "replace"))
			at += 1 + query[at]
		kind, = struct.unpack("!H", query[at + 1:at + 3])
		name = ".".join(labels).lower()
		self.log.say("dns", name, {1: "A", 28: "AAAA"}.get(kind, kind))
		found = self.addresses(name, 6 if kind == 28 else 4) if kind in (1, 28) else []
		flags = 0x8583 if found is None else 0x8580
		records = b""
		for a in found or []:
			packed = socket.inet_pton(socket.AF_INET6 if ":" in a else socket.AF_INET, a)
			records += b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed
		return query[:2] + struct.pack("!HHHHH", flags, 1, len(found or []), 0, 0) + query[12:at + 5] + records

	def serve(self):
		while True:
			select.select([self.sock], [], [])
			with TAKING:
				query, who = self.sock.recvfrom(2048)
				answer = self.answer(query)
			self.sock.sendto(answer, who)


def serve_http(s, log, where, first):
	data = first
	while b"\r\n\r\n" not in data:
		piece = s.recv(65536)
		if not piece:
			return
		data += piece
	head, _, body = data.partition(b"\r\n\r\n")
	lines = head.decode("latin-1").split("\r\n")
	fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
	want = int(fields.get("content-length", 0))
	while len(body) < want or (fields.get("transfer-encoding") == "chunked" and not body.endswith(b"0\r\n\r\n")):
		piece = s.recv(65536)
		if not piece:
			break
		body += piece
	log.say("http", *where, lines[0])
	path = lines[0].split()[1]
	text = b"x" * int(path[7:]) if path.startswith("/bytes/") else json.dumps(
		{"line": lines[0], "head": lines[1:], "body": body.decode("latin-1"), "at": where}).encode()
	s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
	s.settimeout(0.3)	# the connection stays open, as bad servers do: whatever comes now is a second request
	try:
		more = s.recv(65536)
	except OSError:
		more = b""
	if more:
		log.say("second", *where, more[:60])


def serve_one(s, log, where, tls):
	with s:
		try:
			if where[1] == 5432:
				s.sendall(GREETING)
			if tls:
				s = tls.wrap_socket(s, server_side=True)
			first = s.recv(65536)
			if first[:1].isupper() and b" " in first[:12] and b"HTTP/" in first:
				serve_http(s, log, where, first)
				return
			while first:
				s.sendall(first)
				first = s.recv(65536)
		except OSError:
			pass


def serve(sock, log, where, tls):
	while True:
		select.select([sock], [], [])
		with TAKING:
			s, _ = sock.accept()
			log.say("tcp", *where)
		threading.Thread(target=serve_one, args=(s, log, where, tls), daemon=True).start()


def settle():
	"""Waits until nothing is left that could still come into the log."""
	while True:
		with TAKING:
			if not select.select(SERVED, [], [], 0)[0]:
				return
		time.sleep(0.01)


def serve_marks(sock):
	while True:
		s, _ = sock.accept()
		settle()
		s.close()


def listen(address, port, log, tls=None):
	sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
	sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
	sock.setsockopt(socket.IPPROTO_IP, 15, 1)	# IP_FREEBIND: IPv6 addresses take a moment
	sock.bind((address, port))
	sock.listen(256)
	SERVED.append(sock)
	threading.Thread(target=serve, args=(sock, log, (address, port), tls), daemon=True).start()
	return sock


def ip(*words):
	subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def make_certificates(base):
	"""A CA, and a certificate of it for secure.test and names below tls.test."""
	def openssl(*words):
		subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, capture_output=True, cwd=base)
	key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")
	with open(os.path.join(base, "names.ext"), "w", encoding="ascii") as f:
		f.write("subjectAltName=DNS:secure.test,DNS:*.tls.test\n")
	openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=CA of the test", "-days", "2")
	openssl("req", *key, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=secure.test")
	openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "tls.pem", "-days", "2",
		"-extfile", "names.ext")
	os.chmod(os.path.join(base, "ca.pem"), 0o644)


def tls_context(base):
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(os.path.join(base, "tls.pem"), os.path.join(base, "tls.key"))
	return context


def outside(ready, go, log_path):
	"""The other side: waits for its end of the pair, then serves until the worker dies."""
	libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
	libc.unshare(CLONE_NEWNET)
	os.write(ready, b"n")
	os.read(go, 1)
	ip("link", "set", "lo", "up")
	for address in ("8.9.10.2/24", "8.9.10.3/24", "8.9.10.4/24", "10.9.8.2/24", "169.254.169.254/16"):
		ip("addr", "add", address, "dev", "far")
	ip("-6", "addr", "add", "2a00:1450::2/64", "dev", "far", "nodad")
	ip("link", "set", "far", "up")
	log = Log(log_path)
	names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	names.bind((PUBLIC, 53))
	SERVED.append(names)
	threading.Thread(target=Names(log, names).serve, daemon=True).start()
	kept = [listen(a, p, log) for a in (PUBLIC, OTHER, PRIVATE, META, PUBLIC6) for p in TCP_PORTS]
	kept += [listen(TLS, 443, log, tls_context(os.path.dirname(log_path))), listen(TLS, 5432, log)]
	marks = socket.create_server((PUBLIC, MARK_PORT))
	threading.Thread(target=serve_marks, args=(marks,), daemon=True).start()
	os.write(ready, b"r")
	while kept:
		signal.pause()


class Internet:
	"""Made once for a worker; why is the reason if it cannot be had."""
	def __init__(self, world, base):
		self.why, self.base, self.log_path = "", base, os.path.join(base, "internet.log")
		self.ca = os.path.join(base, "ca.pem")
		if not world.private:
			self.why = "needs root and namespaces of its own"
		elif not shutil.which("ip"):
			self.why = "needs ip (package iproute2)"
		elif not shutil.which("openssl"):
			self.why = "needs openssl (package openssl)"
		else:
			make_certificates(base)
			self.start(world)

	def start(self, world):
		ready, ready_w = os.pipe()
		go_r, go = os.pipe()
		pid = os.fork()
		if pid == 0:
			try:
				outside(ready_w, go_r, self.log_path)
			finally:
				os._exit(1)
		os.close(ready_w)
		world.ours.add(pid)
		os.read(ready, 1)
		ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(pid))
		for address in ("8.9.10.1/24", "10.9.8.1/24"):
			ip("addr", "add", address, "dev", "near")
		ip("-6", "addr", "add", "2a00:1450::1/64", "dev", "near", "nodad")
		ip("link", "set", "near", "up")
		ip("route", "add", META, "dev", "near")
		os.write(go, b"g")
		if os.read(ready, 1) != b"r":
			self.why = "the test's own network could not be made"
			return
		self.log = Log(self.log_path)
		self.kept = [listen(a, p, self.log) for a, p in (("127.0.0.1", 80), ("127.0.0.1", 8080), ("127.0.0.1", 5432), ("::1", 80), ("8.9.10.1", 80))]
		self.cover("/etc/resolv.conf", f"nameserver {PUBLIC}\noptions timeout:1 attempts:1\nsearch evil.test\n")
		self.cover("/etc/hosts", "127.0.0.1 localhost hosts-loop.test\n8.9.10.2 hosts-listed.test\n")

	def cover(self, path, text):
		source = os.path.join(self.base, os.path.basename(path))
		with open(source, "w", encoding="ascii") as f:
			f.write(text)
		os.chmod(source, 0o644)
		if libc.mount(source.encode(), os.path.realpath(path).encode(), None, MS_BIND, None) != 0:
			self.why = f"cannot mount over {path}"

	@contextlib.contextmanager
	def without_certificates(self):
		"""Empty files are over those of the system."""
		source = os.path.join(self.base, "nothing")
		open(source, "w", encoding="ascii").close()
		places = [os.path.realpath(p) for p in ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
							"/etc/ssl/cert.pem") if os.path.exists(p)]
		for place in places:
			libc.mount(source.encode(), place.encode(), None, MS_BIND, None)
		try:
			yield
		finally:
			for place in reversed(places):
				libc.umount2(place.encode(), MNT_DETACH)

	def settle(self):
		with socket.create_connection((PUBLIC, MARK_PORT)) as s:
			s.recv(1)
		settle()

	def mark(self):
		self.settle()
		return os.path.getsize(self.log_path)

	def seen(self, mark, kind):
		"""What was seen since then, as words."""
		self.settle()
		with open(self.log_path, encoding="utf-8", errors="replace") as f:
			f.seek(mark)
			return [line.split(" ", 1)[1].strip() for line in f if line.startswith(kind + " ")]
