# SPDX-License-Identifier: Apache-2.0
"""What is between clients and a session besides its runs: changes of its files, servers in it, links."""
import http.client

from client import Answer, Raw, Server, wait_until
from harness import case
from session import Session, echoing, started

WATCH_EVENTS = {"started": "SessionWatching", "changed": "SessionChanged"}


def watching(x, client, query=""):
	events = client.stream("GET", x.at + "/watches" + query, None, WATCH_EVENTS)
	events.until("started")
	return events


def change_of(events, name):
	"""The next change of a file, and no other one before it."""
	while True:
		event, data = next(events)
		if event != "changed":
			raise AssertionError((event, data))
		if data["name"] == name:
			return data["change"]


@case("a folder of a session is watched: what is made, written, moved, removed and given other rights is told as it happens")
def watched(t):
	with Server(t) as s, Session(s) as x, s.client() as c, s.client() as deep:
		x.process("mkdir", "-p", "d/e")
		events, below = watching(x, c, "?path=d"), watching(x, deep, "?recursive=1")
		x.process("touch", "d/a")
		t.equal([change_of(events, "a"), change_of(below, "d/a")], ["created", "created"], "made")
		x.process("sh", "-c", "echo x > d/a")
		wait = change_of(events, "a")
		while wait == "chmod":	# of touch
			wait = change_of(events, "a")
		t.equal(wait, "written", "written")
		x.process("chmod", "700", "d/a")
		while (wait := change_of(events, "a")) == "written":
			pass
		t.equal(wait, "chmod", "other rights")
		x.process("mv", "d/a", "d/b")
		t.equal([change_of(events, "a"), change_of(events, "b")], ["renamed", "created"], "moved")
		x.process("rm", "d/b")
		t.equal(change_of(events, "b"), "removed", "removed")
		x.process("touch", "d/e/f")
		t.equal(change_of(below, "d/e/f"), "created", "in a folder below")
		x.process("python3", "-c", "open(b'd/\\xff', 'w')")
		t.equal([next(events)[1] for _ in range(1)], [{"event": "changed", "change": "created", "name": "/w==", "encoding": "base64"}], "a name that is no text")
		x.ask("DELETE", "", status=202)
		t.check(events.until("notice")["text"], "the session ends")
		t.equal(list(events), [], "and the stream with it")


@case("a watch is its client's: it ends with it, there are so many of a session, and what cannot be watched is refused")
def watches_end(t):
	with Server(t) as s, Session(s) as x:
		x.put("file", b"1")
		x.ask("GET", "/watches?path=nothing", status=404, headers={"Accept": "text/event-stream"})
		x.ask("GET", "/watches?path=file", status=404, headers={"Accept": "text/event-stream"})
		x.ask("GET", "/watches", status=406, headers={"Accept": "application/json"})
		x.ask("GET", "/watches?deep=1", status=400, headers={"Accept": "text/event-stream"})
		clients = [s.client() for _ in range(16)]
		for c in clients:
			watching(x, c)
		x.ask("GET", "/watches", status=409, headers={"Accept": "text/event-stream"})
		for c in clients:
			c.c.close()

		def is_free():
			with s.client() as again:
				return again.send("GET", x.at + "/watches", None, {"Accept": "text/event-stream"}).status == 200
		wait_until("the place of a client that has gone is free", is_free)
		x.ask("DELETE", "", status=202)
		wait_until("the session has ended", lambda: x.state()["state"] == "ended")
		x.ask("GET", "/watches", status=410, headers={"Accept": "text/event-stream"})


@case("a watch that is asked: what changed since the last time, until it is told to end")
def watch_that_is_asked(t):
	with Server(t) as s, Session(s) as x:
		x.process("mkdir", "d")
		at = f"/watches/{x.ask('POST', '/watches', {'path': 'd'}, 201).json['watch']}"
		seen = []
		x.process("sh", "-c", "echo x > d/a; rm d/a")
		wait_until("its changes", lambda: seen.extend(x.ask("GET", at).json["changes"]) or (seen and seen[-1]["change"] == "removed"))
		t.equal([c["change"] for c in seen if c["change"] != "written"], ["created", "removed"], "each once, in its order", seen)
		t.equal(x.ask("GET", at).json, {"changes": []}, "nothing is told twice")
		x.ask("DELETE", at)
		for method in ("GET", "DELETE"):
			x.ask(method, at, status=404)
		x.ask("POST", "/watches", {"path": "nothing"}, 404)
		t.equal([(f["path"], f["type"]) for f in x.ask("GET", "/files?path=d&depth=0").json["files"]], [("d", "folder")], "the folder itself")


# A file comes and goes.
CHURN = "import os\nfor i in range(3000):\n    open('d/a', 'w').close()\n    os.remove('d/a')\n"


@case("a watch that nobody asks keeps so many changes: what is left out is told as lost, in its place, and it goes on")
def watch_that_lost(t):
	with Server(t) as s, Session(s) as x:
		x.process("mkdir", "d")
		at = f"/watches/{x.ask('POST', '/watches', {'path': 'd'}, 201).json['watch']}"
		seen = []

		def has_lost():
			"""More comes each time than is kept until the next, wherever it is meanwhile."""
			x.process("python3", "-c", CHURN)
			changes = x.ask("GET", at).json["changes"]
			t.check(len(changes) <= 4096, "no more is kept", len(changes))
			seen.extend(changes)
			return any(c["change"] == "lost" for c in seen)
		wait_until("a loss is told", has_lost)
		i = [c["change"] for c in seen].index("lost")
		t.equal(seen[i], {"event": "changed", "change": "lost", "name": ""}, "of no file")
		t.check(0 < i < len(seen) - 1, "between what was told and what follows", seen[i - 1:i + 2])

		def goes_on():
			x.process("touch", "d/last")	# again: what is left of the others may take its place
			return any(c["name"] == "last" for c in x.ask("GET", at).json["changes"])
		wait_until("it goes on", goes_on)


# ---- servers --------------------------------------------------------------------------------------

# A WebSocket that gives back what it gets; other requests get a page, in chunks.
NODE = r"""
const http = require('http'), crypto = require('crypto');
const s = http.createServer((q, a) => { a.setHeader('Content-Type', 'text/html'); a.setHeader('Set-Cookie', ['own=1; Domain=localhost; Path=/', 'brig-port=1']); a.write('<b>'); a.end('page</b>'); });
s.on('upgrade', (q, c, head) => {
  const key = crypto.createHash('sha1').update(q.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  c.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + key + '\r\n\r\n');
  if (head.length) c.write(head);
  c.pipe(c);
});
s.listen(PORT, '127.0.0.1', () => console.log('up'));
"""


def asked(server, method, target, body=None, **headers):
	"""An answer of a server in a session: the head is still the service's."""
	with server.client() as c:
		r = c.send(method, target, body, headers)
		return Answer(r.status, r.getheaders(), r.read())


def raw(text):
	return "/raw?" + text.encode("latin-1").hex()


@case("a server in a session is reached by its port: methods, queries, bodies of a length and in chunks, both ways; what is the service's stays here")
def reached(t):
	with Server(t, auth=True) as s:
		token = s.token("ada")
		with Session(s, token) as x, s.client(token) as c:
			at = echoing(x, c)
			a = asked(s, "GET", at + "/a%20b//c?d=e", None, Authorization="Bearer " + token, Cookie="k=v", **{"X-Forwarded-For": "1.1.1.1", "X-Own": "1", "Keep-Alive": "1"})
			head = a.body.decode()
			t.equal(a.status, 200, "it is answered", a)
			t.equal(head.split("\r\n")[:2], ["GET /a%20b//c?d=e HTTP/1.1", "Host: localhost:3000"], "the target as it was written", head)
			t.check("X-Own: 1" in head and "Connection: close" in head and f"X-Forwarded-Prefix: {at}\r\n" in head, "lines", head)
			for secret in (token, "Authorization", "Cookie", "1.1.1.1", "Keep-Alive"):
				t.check(secret not in head, f"{secret} does not reach it", head)
			t.equal([a.header("content-security-policy"), a.header("x-content-type-options"), a.header("cache-control")], ["sandbox; frame-ancestors 'none'", "nosniff", "no-store"], "lines of our own")
			auth = {"Authorization": "Bearer " + token}
			big = bytes(range(256)) * 8192
			t.equal(asked(s, "PUT", at + "/", big, **auth).body.partition(b"\r\n\r\n")[2], big, "a body of 2 MB, there and back")
			with s.client(token) as k:
				k.c.request("POST", at + "/", iter([b"one", b"two"]), auth, encode_chunked=True)
				r = k.c.getresponse().read()
				t.check(r.endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"), "chunks", r)
				t.equal([k.ask("GET", x.at).status for _ in range(2)], [200, 200], "the connection goes on")
			t.equal(asked(s, "POST", at + "/", b"", **auth).body.count(b"Content-Length: 0"), 1, "an empty body")
			t.equal(asked(s, "HEAD", at + "/", None, **auth).body, b"", "HEAD")
			t.equal(asked(s, "OPTIONS", at + "/", None, **auth).body[:10], b"OPTIONS / ", "another method")
			a = asked(s, "GET", at, None, **auth)
			t.equal([a.status, a.header("location")], [308, at + "/"], "without the slash")
			x.put("page.html", b"<p>page</p>")
			started(x, c, "python3", "-u", "-m", "http.server", "3100", "--bind", "127.0.0.1")
			a = asked(s, "GET", f"{x.at}/ports/3100/page.html", None, **auth)
			t.equal([a.status, a.header("content-type"), a.header("server"), a.body], [200, "text/html", "", b"<p>page</p>"], "a server as people have them", a)
			let_in(t, s, x, at, token)


def let_in(t, s, x, at, token):
	"""By whom a port is reached, and by whom not."""
	link = x.ask("POST", "/links", {"port": 3000}, 201).json["token"]
	for name, value in (("X-API-Key", token), ("E2B-Traffic-Access-Token", link), ("Authorization", "Bearer " + link), ("X-Access-Token", link)):
		a = asked(s, "GET", at + "/", None, **{name: value})
		t.equal([a.status, value.encode() in a.body], [200, False], f"let in by {name} {value}", a)
	other = s.token("eve")
	for status, headers in ((401, {}), (401, {"X-Access-Token": "a" * 32}), (404, {"X-API-Key": other}), (401, {"X-API-Key": "brig_" + "a" * 32}), (401, {"Cookie": "brig-port=" + link}), (401, {"X-API-Key": link[:-1] + ("0" if link[-1] != "0" else "1")})):
		t.equal(asked(s, "GET", at + "/", None, **headers).status, status, f"not let in by {headers}")
	t.equal(asked(s, "GET", at.replace("3000", "3001") + "/", None, **{"X-API-Key": link}).status, 401, "a link is for one port")
	a = asked(s, "GET", at.replace("3000", "3001") + "/", None, **{"X-API-Key": token})
	t.check(a.status == 502 and "no process in the session listens" in a.message, "nobody listens", a)
	t.equal([asked(s, "GET", f"{x.at}/ports/{n}/", None, **{"X-API-Key": token}).status for n in (0, 65536, "x")], [404] * 3, "no port")
	x.ask("DELETE", "", status=202)
	wait_until("the session has ended", lambda: x.state()["state"] == "ended")
	t.equal(asked(s, "GET", at + "/", None, **{"X-API-Key": token}).status, 410, "an ended session")


@case("what a hostile server answers: heads without end, bombs, two lengths, bodies that are cut, upgrades nobody asked for; nothing of it is believed")
def hostile(t):
	with Server(t) as s, Session(s) as x, s.client() as c:
		at = echoing(x, c)
		ok = "HTTP/1.1 200 OK\r\n"
		for what, answer in {
			"no HTTP": "SSH-2.0-x\r\n", "another version": "HTTP/2.0 200 OK\r\n\r\n", "no status": "HTTP/1.1 abc\r\n\r\n", "a status of four digits": "HTTP/1.1 2000 OK\r\n\r\n",
			"two lengths": ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "length and chunks": ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"another coding": ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", "chunks of HTTP/1.0": "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"a length that is none": ok + "Content-Length: +5\r\n\r\nhello", "a bare LF": "HTTP/1.1 200 OK\nA: b\n\n", "a folded line": ok + "A: b\r\n c\r\n\r\n",
			"a blank before the colon": ok + "Content-Length : 5\r\n\r\nhello", "a NUL": ok + "A: \0\r\n\r\n", "too many lines": ok + "A: b\r\n" * 101 + "\r\n",
			"an upgrade": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", "interim answers without end": "HTTP/1.1 100 Continue\r\n\r\n" * 50,
			"nothing": "", "half of a head": ok + "A:",
		}.items():
			a = asked(s, "GET", at + raw(answer))
			t.equal([a.status, a.code], [502, "bad_gateway"], what, a)
		t.equal(asked(s, "GET", at + "/endless").status, 502, "a head without end")
		a = asked(s, "GET", at + raw("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"))
		t.equal([a.status, a.body, a.header("link")], [200, b"hi", ""], "what is behind an answer is nobody's")
		t.equal(asked(s, "GET", at + raw("HTTP/1.0 200 OK\r\n\r\nuntil the end")).body, b"until the end", "a body until the end")
		t.equal(asked(s, "GET", at + raw(ok + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n")).body, b"abc", "chunks")
		for what, answer in {"a length": ok + "Content-Length: 10\r\n\r\nhalf", "chunks": ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "a bad chunk": ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalfX"}.items():
			try:
				a = asked(s, "GET", at + raw(answer))
				t.check(False, f"{what} that is cut is told as whole", a)
			except http.client.IncompleteRead as e:
				t.equal(e.partial, b"half", f"{what} that is cut")
		lines(t, s, x, at)


def lines(t, s, x, at):
	"""Lines that a browser would keep for the whole service, or follow with a token."""
	bad = {"Set-Cookie": "a=b", "Clear-Site-Data": '"*"', "Access-Control-Allow-Origin": "*", "Alt-Svc": "h3", "Server": "x", "Content-Security-Policy": "default-src *", "Cache-Control": "public", "WWW-Authenticate": "Basic", "X-Named": "1", "Service-Worker-Allowed": "/"}
	a = asked(s, "GET", at + raw("HTTP/1.1 404 Nothing Here\r\nConnection: X-Named\r\nX-Kept: 1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in bad.items()) + "Content-Length: 0\r\n\r\n"))
	t.equal([a.status, a.header("x-kept"), a.header("content-security-policy"), a.header("cache-control")], [404, "1", "sandbox; frame-ancestors 'none'", "no-store"], "lines", a)
	t.equal([k for k in bad if k not in ("Content-Security-Policy", "Cache-Control") and a.header(k)], [], "left out", a)
	for place, to in (("/login?a=b", at + "/login?a=b"), ("http://localhost:3000/x", at + "/x"), ("http://127.0.0.1:3000", at + "/"), ("next", "next"), ("?q", "?q"),
		("/../../../v1/executions", ""), ("../../../executions", ""), ("/%2e%2e/x", ""), ("/a/.%2E/x", ""), ("//evil.example/", ""), ("/\\evil.example", ""), (f"http://127.0.0.1:{s.port}/v1/executions", ""), ("https://evil.example/", ""), ("javascript:alert(1)", ""), ("http://localhost:3000//evil.example", "")):
		a = asked(s, "GET", at + raw(f"HTTP/1.1 307 X\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"))
		t.equal(a.header("location"), to, f"a redirection to {place}", a)


@case("clients that break: smuggled requests, a body that is cut, 100-continue, early answers, one that does not read; a crowd of connections that were left")
def clients(t):
	with Server(t) as s, Session(s) as x, s.client() as c:
		at = echoing(x, c).encode()
		for what, head in {"two lengths": b"Content-Length: 3\r\nContent-Length: 4\r\n", "length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n", "a hidden length": b"Connection: Content-Length\r\nContent-Length: 4\r\n"}.items():
			a = Raw(s, b"POST " + at + b"/ HTTP/1.1\r\nHost: @HOST@\r\n" + head + b"\r\nabcd").answer()
			t.check(a.status in (400, 501), what, a)
		a = Raw(s, b"POST " + at + b"/ HTTP/1.1\r\nHost: @HOST@\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n0\r\nTrailing: 1\r\n\r\n").answer()
		t.equal(a.body.partition(b"\r\n\r\n")[2], b"4\r\nabcd\r\n0\r\n\r\n", "chunks are written anew")
		a = Raw(s, b"POST " + at + b"/ HTTP/1.1\r\nHost: @HOST@\r\nTransfer-Encoding: chunked\r\n\r\nXX\r\n").answer()
		t.equal(a.status, 400, "a chunk that is none", a)
		r = Raw(s, b"GET " + at + b"/1 HTTP/1.1\r\nHost: @HOST@\r\n\r\nGET " + at + b"/2 HTTP/1.1\r\nHost: @HOST@\r\n\r\n")
		t.equal([r.answer().body.split(b" ")[1], r.answer().body.split(b" ")[1]], [b"/1", b"/2"], "two at once, each its own")
		r = Raw(s, b"POST " + at + b"/ HTTP/1.1\r\nHost: @HOST@\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		t.equal(r.s.recv(25), b"HTTP/1.1 100 Continue\r\n\r\n", "100-continue")
		r.send(b"body")
		t.check(r.answer().body.endswith(b"body"), "and its body")
		early = b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n".hex().encode()
		a = Raw(s, b"POST " + at + b"/raw?" + early + b" HTTP/1.1\r\nHost: @HOST@\r\nContent-Length: 1000000\r\n\r\nabc").answer()
		t.equal([a.status, a.closes], [413, True], "an answer before the body is there")
		ones = [Raw(s, b"GET " + at + b"/hold?48 HTTP/1.1\r\nHost: @HOST@\r\n\r\n") for _ in range(40)]
		for one in ones:
			one.s.close()
		wait_until("it goes on without those that left", lambda: asked(s, "GET", at.decode() + "/").status == 200)
		begun = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun".hex().encode()
		one = Raw(s, b"GET " + at + b"/hold?" + begun + b" HTTP/1.1\r\nHost: @HOST@\r\n\r\n")
		while one.line():
			pass
		t.equal(one.take(5), b"begun", "an answer that never ends")
		t.equal([s.stop(), one.s.recv(1)], [0, b""], "ends with the service")


# One thread for all, for a session has so many processes: every answer is begun, and none but /short has an end.
HOLD = r"""
import socket
s, held = socket.create_server(('127.0.0.1', 3000), backlog=128), []
print('up', flush=True)
while True:
    c = s.accept()[0]
    is_short = c.recv(65536).startswith(b'GET /short ')
    c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\nbegun' % (5 if is_short else 9))
    if is_short: c.close()
    else: held.append(c)
"""


@case("a session has so many connections to its servers, which are nobody else's; one that is left is free again")
def many(t):
	with Server(t) as s, Session(s) as x, Session(s) as y, s.client() as c, s.client() as d:
		at, other = x.at + "/ports/3000", y.at + "/ports/3000"
		for session, client in ((x, c), (y, d)):
			started(session, client, "python3", "-c", HOLD)
		ones = [Raw(s, f"GET {at}/ HTTP/1.1\r\nHost: @HOST@\r\n\r\n".encode()) for _ in range(64)]
		for one in ones:
			while one.line():
				pass
			t.equal(one.take(5), b"begun", "a connection", one.buffer)
		a = asked(s, "GET", at + "/short")
		t.check(a.status == 503 and "as many connections" in a.message, "one too many", a)
		t.equal(asked(s, "GET", other + "/short").status, 200, "another session has its own")
		t.equal(x.run("1")["verdict"], "ok", "and this one goes on")
		ones.pop().s.close()
		wait_until("there is room again", lambda: asked(s, "GET", at + "/short").status == 200)
		for one in ones:
			one.s.close()


@case("a client that does not read stops the server in the session, and what waits for it here is bounded; when it reads it gets all of it")
def slow(t):
	with Server(t) as s, Session(s) as x, s.client() as c:
		at = echoing(x, c)
		r = Raw(s, f"GET {at}/flood HTTP/1.1\r\nHost: @HOST@\r\n\r\n".encode())
		seen = [-1]

		def stands_still():
			seen.append(int(asked(s, "GET", at + "/sent").body))
			return seen[-1] > 0 and seen[-1] == seen[-9 if len(seen) > 9 else 0]
		wait_until("the server waits", stands_still)
		t.check(seen[-1] < 48 << 20, "it waits before the end", seen[-3:])
		while r.line():
			pass
		n, piece = len(r.buffer), b"x"
		while piece and n < 1 << 26:
			piece = r.s.recv(1 << 20)
			n += len(piece)
		t.equal(n, 1 << 26, "all of it")


# ---- WebSockets -----------------------------------------------------------------------------------

def frame(text):
	data = text.encode()
	return bytes([0x81, 0x80 | len(data)]) + b"\0\0\0\0" + data


def upgraded(s, target, host="@HOST@", **headers):
	lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
	r = Raw(s, f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{lines}\r\n".encode())
	head = b""
	while not head.endswith(b"\r\n\r\n"):
		piece = r.s.recv(1)
		if not piece:
			break
		head += piece
	return r, head


def spoken(r, text):
	"""What comes back of a frame: the same bytes, as the server pipes them."""
	r.s.sendall(frame(text))
	got = b""
	while len(got) < len(frame(text)):
		got += r.s.recv(4096)
	return got


@case("a WebSocket to a server of node: the handshake, frames both ways, its end; and by a host name of its own, with links and cookies that only its own pages use", needs=("node",))
def sockets(t):
	with Server(t, auth=True) as s:
		token = s.token("ada")
		with Session(s, token) as x, s.client(token) as c:
			started(x, c, "node", "-e", NODE.replace("PORT", "8080"))
			at = f"{x.at}/ports/8080/"
			r, head = upgraded(s, at, X_API_Key=token)
			t.check(head.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, "the handshake", head)
			t.equal(spoken(r, "hello"), frame("hello"), "a frame")
			by_name(t, s, x, token, r)


def by_name(t, s, x, token, open_one):
	host = f"8080-{x.id}.localhost:{s.port}"
	made = x.ask("POST", "/links", {"port": 8080, "seconds": 60}, 201).json
	t.check(made["url"].startswith(f"http://{host}/?brig_token="), "the address of a link", made)
	query = made["url"].partition("?")[2]
	t.equal(asked(s, "GET", "/", None, Host=host).status, 401, "without anything")
	a = asked(s, "GET", "/p?a=1&" + query + "&b=2", None, Host=host)
	cookie = a.header("set-cookie").partition(";")[0]
	t.equal([a.status, a.header("location"), cookie], [303, "/p?a=1&b=2", "brig-port=" + made["token"]], "a link becomes a cookie", a)
	t.check("HttpOnly" in a.header("set-cookie") and "Domain" not in a.header("set-cookie"), "which is for this host alone", a)
	t.equal(asked(s, "GET", "//evil.example/?" + query, None, Host=host).header("location"), "/", "nobody is sent elsewhere")
	a = asked(s, "GET", "/", None, Host=host, Cookie="x=y; " + cookie)
	t.equal([a.status, a.body, a.header("content-security-policy"), a.header("set-cookie")], [200, b"<b>page</b>", "", "own=1; Path=/"], "its page", a)
	own = {"Host": host, "Cookie": cookie}
	for status, more in ((403, {"Origin": "http://evil.example"}), (403, {"Origin": "null"}), (403, {"Origin": f"http://localhost:{s.port}"}), (403, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}),
		(200, {"Origin": "http://" + host}), (200, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}), (200, {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"})):
		t.equal(asked(s, "GET", "/", None, **own, **more).status, status, f"a page with {more}")
	t.equal(asked(s, "GET", "/", None, Host=host, **{"X-Access-Token": token, "Origin": "http://evil.example"}).status, 200, "who has a token needs no origin")
	r, head = upgraded(s, "/", host, Cookie=cookie, Origin="http://" + host)
	t.equal([head[:13], spoken(r, "by name")], [b"HTTP/1.1 101 ", frame("by name")], "a WebSocket by name")
	t.equal(upgraded(s, "/", host, Cookie=cookie, Origin="http://evil.example")[1][:13], b"HTTP/1.1 403 ", "one of a stranger's page")
	for wrong in (f"8080-{x.id}.localhost", f"8080-{x.id}.evil.example:{s.port}", f"8080-{x.id}x.localhost:{s.port}", f"8080-{x.id}.localhost:1"):
		t.equal(asked(s, "GET", "/healthz", None, Host=wrong).status, 421, f"{wrong} is nobody's name")
	t.equal(asked(s, "GET", "/v1/sessions", None, Host=host, **{"X-API-Key": token}).body, b"<b>page</b>", "the API is not there")
	x.ask("DELETE", "", status=202)
	t.equal([r.s.recv(1), open_one.s.recv(1)], [b"", b""], "WebSockets end with the session")
	wait_until("the session has ended", lambda: x.state()["state"] == "ended")
	t.equal(asked(s, "GET", "/", None, **own).status, 410, "and so do links")


@case("links to files: read and written without a token until their end, and nothing else is")
def links(t):
	with Server(t, auth=True) as s:
		token = s.token("ada")
		with Session(s, token) as x:
			x.put("d/a%20b", b"bytes")
			made = x.ask("POST", "/links", {"path": "d/a b", "seconds": 600}, 201).json
			origin = f"http://127.0.0.1:{s.port}"
			t.check(made["url"].startswith(f"{origin}{x.at}/files/d/a%20b?expires="), "the address", made)
			read = made["url"][len(origin):]
			a = asked(s, "GET", read)
			t.equal([a.status, a.body], [200, b"bytes"], "read", a)
			write = x.ask("POST", "/links", {"path": "new", "operation": "write"}, 201).json
			t.equal(write["method"], "PUT", "how it is used", write)
			t.equal([asked(s, "PUT", write["url"][len(origin):], b"more").status, x.ask("GET", "/files/new").body], [200, b"more"], "written")
			later = read.replace("expires=", "expires=9")
			flipped = read[:-1] + ("0" if read[-1] != "0" else "1")
			for method, target in (("PUT", read), ("GET", write["url"][len(origin):]), ("DELETE", read), ("GET", later), ("GET", flipped), ("GET", read.replace("a%20b", "c")), ("GET", read.partition("&link")[0]), ("GET", read[:-1]), ("GET", f"{x.at}/files?link=" + read.partition("link=")[2]), ("GET", x.at + "?" + read.partition("?")[2])):
				a = asked(s, method, target, b"x" if method == "PUT" else None)
				t.check(a.status in (400, 401), f"{method} {target} is not let in", a)
			for wish in ({}, {"path": "a", "port": 1}, {"path": "/etc/passwd"}, {"path": "a/../b"}, {"path": "a", "operation": "port"}, {"path": "a", "operation": "delete"}, {"port": 70000}, {"port": 1, "operation": "read"}):
				x.ask("POST", "/links", wish, 422)
			t.equal(s.t.brig("token", "revoke", "ada", "--state", s.t.state).rc, 0, "the token is revoked")
			t.equal(asked(s, "GET", read).status, 401, "and its links with it")
