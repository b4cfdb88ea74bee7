# SPDX-License-Identifier: Apache-2.0
"""The service behind TLS: who speaks it well is served as everybody else, who does not is let go of."""
import http.client
import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import warnings

from client import PATIENCE, Client, Raw, Server, marked, read_quietly, request, sleeper, wait_until
from harness import Failed, case
from session import Session, echoing


def certificate(t, name="host", *more):
	"""The paths of a certificate for this host and of its key."""
	cert, key = t.path(name + ".cert"), t.path(name + ".key")
	subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", *(more or ["-nodes"]), "-keyout", key, "-out", cert,
		"-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
	return cert, key


class SecureServer(Server):
	def __init__(self, t, *args, **kw):
		self.cert, self.key = certificate(t)
		super().__init__(t, "--tls-cert", self.cert, "--tls-key", self.key, *args, **kw)

	def read_ready(self):
		readable = select.select([self.p.stdout], [], [], PATIENCE)[0]
		line = self.p.stdout.readline() if readable else b""
		found = re.fullmatch(rb"ready https://127\.0\.0\.1:(\d+)\n", line)
		if not found:
			raise Failed(f"its first line is {line!r}; stderr {self.stderr()[-1500:]!r}")
		return int(found.group(1))

	def context(self, oldest=None, newest=None, protocols=()):
		context = ssl.create_default_context(cafile=self.cert)
		with warnings.catch_warnings():
			warnings.simplefilter("ignore", DeprecationWarning)	# old versions, on purpose
			if oldest:
				context.set_ciphers("ALL:@SECLEVEL=0")
				context.minimum_version = oldest
			if newest:
				context.maximum_version = newest
		if protocols:
			context.set_alpn_protocols(protocols)
		return context

	def client(self, token=None, **headers):
		c = Client(self, token, headers)
		c.c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=self.context())
		return c

	def plain(self):
		return super().connect()

	def connect(self, **kw):
		return self.context(**kw).wrap_socket(super().connect(), server_hostname="127.0.0.1")


@case("what a client sees behind TLS is what it sees without: requests one after the other, events, long bodies both ways")
def served(t):
	with SecureServer(t) as s:
		for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
			with s.connect(oldest=version, newest=version, protocols=["h2", "http/1.1"]) as c:
				t.equal([c.version(), c.selected_alpn_protocol()], [version.name.replace("_", "."), "http/1.1"], "what was agreed on")
		with s.client() as c:
			for word in ("a", "b", "c"):
				r = c.ask("POST", "/v1/executions", {"language": "python", "code": f"print('{word}')"}, status=200).json
				t.equal([r["verdict"], r["stdout"]], ["ok", word + "\n"], "one connection, several runs", r)
			text = "é" * 3000000
			r = c.ask("POST", "/v1/executions", {"kind": "command", "args": ["wc", "-c"], "stdin": text}, status=200).json
			t.equal(r["stdout"].strip(), str(2 * len(text)), "a long body", r)
			events = c.stream("POST", "/v1/executions", {"language": "python", "code": "for i in range(20000): print('x' * 100)"})
			verdict = events.until("verdict")
			t.equal([verdict["verdict"], len(events.text()), list(events)], ["ok", 20000 * 101, []], "a long stream")
			c.ask("GET", "/healthz", status=200)	# the connection goes on
		origin = f"https://127.0.0.1:{s.port}"
		t.equal(s.get("/healthz", headers={"Origin": origin}).status, 200, "its own origin")
		t.equal(s.get("/healthz", headers={"Origin": "https://example.org"}).status, 403, "another's")


@case("requests that come in one go behind TLS are all answered, however records are cut")
def pipelined(t):
	with SecureServer(t) as s:
		many = request("GET", "/healthz") * 2000	# more than one read takes
		with Raw(s, many) as raw:
			for i in range(2000):
				a = raw.answer()
				t.check(a and a.status == 200, f"answer {i}", a)
		with Raw(s) as raw:
			for byte in request("GET", "/healthz").replace(b"@HOST@", raw.host):
				raw.send(bytes([byte]))
			t.equal(raw.answer().status, 200, "a record for each byte")


@case("a client that reads slowly behind TLS gets every byte")
def slow_reader(t):
	with SecureServer(t) as s:
		whole = s.get("/openapi.json").body
		with Raw(s, request("GET", "/openapi.json") * 100) as raw:
			def more():
				data = raw.s.recv(700)
				raw.buffer += data
				return bool(data)
			raw.more = more
			for i in range(100):
				a = raw.answer()
				t.check(a and a.body == whole, f"answer {i}", str(a)[:300])


@case("who hangs up behind TLS has its run cancelled", final="a run went on without its client")
def hang_up(t):
	with SecureServer(t) as s:
		body = json.dumps(sleeper()).encode()
		c = s.connect()
		c.sendall(request("POST", "/v1/executions", "Content-Type: application/json", body=body, host=f"127.0.0.1:{s.port}"))
		wait_until("it runs", marked)
		c.close()
		wait_until("it is gone", lambda: not marked())


@case("who does not speak TLS, or an old one, or another protocol inside, is refused; the service goes on")
def refused(t):
	with SecureServer(t, "--head-timeout", "1s") as s:
		with Raw.__new__(Raw) as raw:	# by hand: without TLS
			raw.s, raw.buffer, raw.host = s.plain(), b"", f"127.0.0.1:{s.port}".encode()
			raw.send(request("GET", "/healthz"))
			a = raw.answer()
			t.check(a.status == 400 and "https" in a.message and a.closes, "plain HTTP", a)
			t.check(raw.closed(), "it is over")
		for garbage in (b"\x00" * 100, b"\x80\x2e\x01\x00\x02", b"\x16\x03\x01\xff\xff" + b"A" * 300, b"\x16\x03\x01\x00\x05hello", b"get / http/1.1\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x28"):
			with s.plain() as c:
				c.sendall(garbage)
				seen = b""
				while True:
					try:
						data = c.recv(4096)
					except ConnectionResetError:
						break
					if not data:
						break
					seen += data
				t.check(len(seen) < 100 and b"HTTP" not in seen, f"{garbage[:10]!r}", seen)
		for kw in ({"oldest": ssl.TLSVersion.TLSv1, "newest": ssl.TLSVersion.TLSv1}, {"oldest": ssl.TLSVersion.TLSv1_1, "newest": ssl.TLSVersion.TLSv1_1}, {"protocols": ["h2"]}):
			try:
				s.connect(**kw).close()
				raise Failed(f"{kw} was served")
			except (ssl.SSLError, ConnectionResetError):
				pass
		t.equal(s.get("/healthz").status, 200, "the service")


@case("a handshake that does not go on is dropped when the head of a request would be")
def half_handshake(t):
	with SecureServer(t, "--head-timeout", "1s") as s:
		hello = ssl.MemoryBIO(), ssl.MemoryBIO()
		client = s.context().wrap_bio(*hello, server_hostname="127.0.0.1")
		try:
			client.do_handshake()
		except ssl.SSLWantReadError:
			pass
		first = hello[1].read()
		for sent in (b"", first[:1], first[:50], first):
			with s.plain() as c:
				c.sendall(sent)
				while c.recv(4096):
					pass	# what the server says of itself, and then the end
		with s.connect() as c:
			t.equal(c.recv(1), b"", "a handshake, and then nothing")


@case("a client cannot have the keys made anew")
def renegotiation(t):
	with SecureServer(t) as s:
		p = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{s.port}", "-tls1_2", "-CAfile", s.cert], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
		try:
			seen = b""
			while b"Verify return code: 0" not in seen:
				seen += p.stdout.readline()
			p.stdin.write(b"R\n")
			p.stdin.flush()
			rest = p.communicate(timeout=PATIENCE)[0]
		finally:
			p.kill()
			p.wait()
		t.check(b"RENEGOTIATING" in rest and b"no renegotiation" in rest, "the attempt", rest[-600:])
		t.equal(s.get("/healthz").status, 200, "the service")


@case("certificates that cannot be used are said before anything is served; OpenSSL is where the key is and nowhere else")
def files(t):
	cert, key = certificate(t)
	other = certificate(t, "other")
	locked = certificate(t, "locked", "-passout", "pass:secret")
	nothing = t.path("nothing.pem")
	with open(nothing, "w", encoding="ascii") as f:
		f.write("nothing\n")
	rows = (
		(["--tls-cert", cert], 2, "--tls-key is missing"),
		(["--tls-key", key], 2, "--tls-cert is missing"),
		(["--tls-cert", cert, "--tls-key", t.path("absent")], 2, "cannot be read"),
		(["--tls-cert", nothing, "--tls-key", key], 2, "has no certificates"),
		(["--tls-cert", cert, "--tls-key", nothing], 2, "has no private key"),
		(["--tls-cert", cert, "--tls-key", other[1]], 2, "mismatch"),
		(["--tls-cert", locked[0], "--tls-key", locked[1]], 2, "without a passphrase"),
	)
	for words, rc, text in rows:
		p = t.brig("serve", "--listen", "127.0.0.1:0", "--no-auth", "--state", t.state, *words)
		t.check(p.rc == rc and text.encode() in p.err and b"ready" not in p.out, f"{words}", p)
	with SecureServer(t) as s:
		has_it = {name: b"libssl" in read_quietly(f"/proc/{pid}/maps") for name, pid in s.processes().items()}
		t.equal(has_it, {"front": True, "runner": False, "recorder": False}, "who has OpenSSL")
		t.check(b"libssl" not in read_quietly(f"/proc/{s.pid}/maps"), "the first process has not")
	with Server(t) as s:
		for name, pid in s.processes().items():
			t.check(b"libssl" not in read_quietly(f"/proc/{pid}/maps"), f"without a certificate {name} has none")


def served_certificate(s):
	"""What a client that believes everything is shown."""
	with s.plain() as plain, ssl._create_unverified_context().wrap_socket(plain) as c:
		return c.getpeercert(binary_form=True)


def der(path):
	with open(path, encoding="ascii") as f:
		return ssl.PEM_cert_to_DER_cert(f.read())


@case("SIGHUP: the certificate is read anew, connections go on; a bad one leaves the old one in force, and the next front has what was good", final="a bad certificate replaced a good one")
def renewed(t):
	with SecureServer(t) as s, s.client() as c:
		c.ask("GET", "/healthz", status=200)
		first, fresh, other = der(s.cert), certificate(t, "fresh"), certificate(t, "other")
		t.equal(served_certificate(s), first, "the first one")

		def renew(cert, key, said):
			before = len(s.stderr())
			for old, new in ((s.cert, cert), (s.key, key)):
				if new:
					os.replace(new, old)
				else:
					os.unlink(old)
			s.p.send_signal(signal.SIGHUP)
			wait_until(f"it says '{said}'", lambda: said in s.stderr()[before:])
			return s.stderr()[before:]

		second = der(fresh[0])
		renew(*fresh, "the certificate was reloaded")
		t.equal(served_certificate(s), second, "the second one")
		c.ask("GET", "/healthz", status=200)	# on the connection of the first
		with open(t.path("nothing"), "w", encoding="ascii") as f:
			f.write("-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n")
		front = s.processes()["front"]
		for cert, key, why in ((t.path("nothing"), other[1], "has no certificates"), (other[0], None, "cannot be read")):
			text = renew(cert, key, "the certificate stays as it was")
			t.check(why in text, "it says why", text)
			t.equal(served_certificate(s), second, "the second one is in force")
		t.equal(s.processes()["front"], front, "the front went on")
		os.kill(front, signal.SIGKILL)
		wait_until("another front", lambda: s.processes().get("front") not in (None, front))
		t.equal(served_certificate(s), second, "the next front has the last good one")
		s.cert = t.path("current.cert")	# what our own clients believe
		with open(s.cert, "w", encoding="ascii") as f:
			f.write(ssl.DER_cert_to_PEM_cert(second))
		t.equal(s.get("/healthz").status, 200, "it serves")


@case("servers of sessions behind TLS: long bodies both ways, addresses of links, a cookie that plain connections never see")
def ports(t):
	with SecureServer(t) as s, Session(s) as x, s.client() as c:
		at, big = echoing(x, c), bytes(range(256)) * 8192
		with s.client() as k:
			t.equal(k.send("PUT", at + "/", big).read().partition(b"\r\n\r\n")[2], big, "2 MB, there and back")
			t.equal(len(k.send("GET", at + "/flood").read()), 1 << 26, "64 MB")
			made = x.ask("POST", "/links", {"port": 3000}, 201).json
			host = f"3000-{x.id}.localhost:{s.port}"
			t.check(made["url"].startswith(f"https://{host}/?"), "the address", made)
			r = k.send("GET", "/?" + made["url"].partition("?")[2], None, {"Host": host})
			t.equal([r.status, r.getheader("Set-Cookie").endswith("; Secure")], [303, True], "the cookie")
			r.read()
			r = k.send("GET", "/", None, {"Host": host, "Cookie": r.getheader("Set-Cookie").partition(";")[0], "Origin": "https://" + host})
			t.check(b"X-Forwarded-Proto: https" in r.read(), "by its name")
