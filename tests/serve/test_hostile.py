# SPDX-License-Identifier: Apache-2.0
"""Clients that break, cheat, dawdle or come in crowds.  After each of them the server must serve the next."""
import json
import random
import select
import socket
import time

import harness
from client import HOST, PATIENCE, Raw, Server, checked, job_request, request, status_field, tree, wait_until
from harness import case

JOB = json.dumps({"language": "shell", "code": "echo hi"}).encode()
OVER = b"GET /v1/languages HTTP/1.1\r\nHost: @HOST@\r\n\r\n"	# what smuggling would bring in


def post(*lines, body=b""):
	return "\r\n".join(["POST /v1/executions HTTP/1.1", "Host: @HOST@", "Content-Type: application/json", *lines]).encode("latin-1") + b"\r\n\r\n" + body


def get(target, *lines):
	return request("GET", target, *lines)


# Broken heads: bytes, statuses of which the first answer must have one.
HEADS = [
	(b"\0", {400}), (b"GET\r\n\r\n", {400}), (b"GET /\r\n\r\n", {400}), (b"GET / HTTP/0.9\r\n\r\n", {400, 505}), (b"GET / HTTP/2.0\r\nHost: @HOST@\r\n\r\n", {400, 505}),
	(b"GET / HTTP/1.1 x\r\nHost: @HOST@\r\n\r\n", {400}), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505}), (b"GET  / HTTP/1.1\r\nHost: @HOST@\r\n\r\n", {400}),
	(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 40, {400}), (b"G\x00T / HTTP/1.1\r\nHost: @HOST@\r\n\r\n", {400}), (b"GET /\x7f HTTP/1.1\r\nHost: @HOST@\r\n\r\n", {400}),
	(b"GET / HTTP/1.1\nHost: @HOST@\n\n", {400}), (b"GET / HTTP/1.1\r\nHost: @HOST@\r\nA\x00B: x\r\n\r\n", {400}), (b"GET / HTTP/1.1\r\nHost: @HOST@\r\nA: x\x00\r\n\r\n", {400}),
	(b"GET / HTTP/1.1\r\nHost: @HOST@\r\nA : x\r\n\r\n", {400}), (b"GET / HTTP/1.1\r\nHost: @HOST@\r\n A: x\r\n\r\n", {400}), (b"GET / HTTP/1.1\r\nHost: @HOST@\r\n: x\r\n\r\n", {400}),
	(b"GET / HTTP/1.1\r\nHost: @HOST@\r\nA: x\r\n folded\r\n\r\n", {400}), (b"GET / HTTP/1.1\r\nHost: @HOST@\r\nnocolon\r\n\r\n", {400}),
	(b"GET / HTTP/1.1\r\nHost: @HOST@\r\nA: x\ry\r\n\r\n", {400}), (get("/" + "a" * 40000), {414, 431}), (get("/v1/whoami", "A: " + "x" * 40000), {431}),
	(get("/v1/whoami", *[f"A{i}: x" for i in range(10000)]), {431}), (get("/v1/whoami", *["A: x"] * 10000), {431}), (b"x" * 100000, {400, 414, 431}),
	(b"CONNECT example.com:80 HTTP/1.1\r\nHost: @HOST@\r\n\r\n", {400, 405, 501}), (b"TRACE / HTTP/1.1\r\nHost: @HOST@\r\n\r\n", {400, 405, 501}),
	(b"BREW /v1/executions HTTP/1.1\r\nHost: @HOST@\r\n\r\n", {405, 501}), (b"GET http://evil.example/v1/whoami HTTP/1.1\r\nHost: @HOST@\r\n\r\n", {400, 421}),
	(b"GET /v1/whoami HTTP/1.1\r\nHost: @HOST@\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", {200, 400}),
	(b"GET /v1/whoami HTTP/1.1\r\nHost: @HOST@\r\nExpect: magic\r\n\r\n", {200, 400, 417}),
]
# Two readings of where a body ends: each must be refused and the connection closed, so that what follows is nobody's request.
SMUGGLING = [
	post("Content-Length: 5", "Content-Length: 6", body=JOB), post("Content-Length: 0, 0"), post("Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
	post("Transfer-Encoding: chunked", "Content-Length: 5", body=b"0\r\n\r\n"), post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
	post("Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), post("Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"), post("Transfer-Encoding: identity", body=b"0\r\n\r\n"),
	post("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), post("Transfer-Encoding : chunked", body=b"0\r\n\r\n"), post("Transfer-Encoding:\x0bchunked", body=b"0\r\n\r\n"),
	post("Content-Length: +5", body=JOB), post("Content-Length: -1"), post("Content-Length: 0x10", body=JOB), post("Content-Length: 1 1", body=JOB), post("Content-Length: ", body=b""),
	post("Content-Length: 99999999999999999999999"), post("Content-Length : 3", body=b"{}\n"), b"POST /v1/executions HTTP/1.0\r\nHost: @HOST@\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
]
CHUNKS = [
	b"x\r\n", b"-1\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b" 5\r\nhello\r\n0\r\n\r\n", b"5 \r\nhello\r\n0\r\n\r\n", b"5\nhello\r\n0\r\n\r\n", b"5\r\nhelloX\r\n0\r\n\r\n", b"5\r\nhello0\r\n\r\n",
	b"ffffffffffffffff\r\n", b"10000000000000000\r\n", b"\r\n", b"5;" + b"x" * 100000 + b"\r\nhello\r\n0\r\n\r\n", b"0\r\n" + b"A: " + b"x" * 100000 + b"\r\n\r\n", b"0\r\nbad trailer\r\n\r\n",
	b"00000000000000000000000005\r\nhello\r\n0\r\n\r\n",
]


def first(t, s, data, statuses):
	"""The first answer to these bytes, of these statuses; an answer of an error is as described."""
	with Raw(s, data) as r:
		a = r.answer()
		t.check(a and a.status in statuses, f"{data[:100]} is answered {statuses}", a)
		if a.status >= 400 and a.body:
			checked("GET", "/v1/none", a)
			t.check(b"(line 0" not in a.body, "a line that is named is there", a)
		return a


@case("broken heads: each gets its status, and the server goes on", final="a request that is misread")
def heads(t):
	with Server(t) as s:
		for data, statuses in HEADS:
			first(t, s, data, statuses)
		t.equal(s.get("/healthz").status, 200, "the server goes on")


@case("two readings of where a request ends: refused and closed, nothing behind it is served", final="a smuggled request was served")
def smuggling(t):
	with Server(t) as s:
		for data in SMUGGLING + [post("Transfer-Encoding: chunked", body=c) for c in CHUNKS]:
			with Raw(s, data + OVER) as r:
				a = r.answer()
				t.check(a and 400 <= a.status < 600, f"{data[-120:]} is refused", a)
				t.check(b"languages" not in a.body, "and what follows is not answered", a)
				more = r.answer()
				t.check(more is None, f"the connection is closed after {data[-120:]}", more)
		t.equal(s.get("/v1/history").json["total"], 0, "nothing ran")


@case("bodies: none, cut, longer than said, too long; chunks in every size, trailers, 100-continue")
def bodies(t):
	with Server(t) as s:
		first(t, s, post(), {400, 411})
		for data in (post("Content-Length: 999", body=JOB), post("Transfer-Encoding: chunked", body=b"ff\r\n{"), post("Transfer-Encoding: chunked", body=b"5\r\nhello\r\n")):
			with Raw(s, data) as r:	# and away
				r.s.shutdown(socket.SHUT_WR)
				a = r.answer()
				t.check(a is None or a.status in (400, 408), "a body that ends early", a)
		first(t, s, post("Content-Length: 9999999999"), {413})
		whole = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (JOB[i:i + 3] for i in range(0, len(JOB), 3)))
		for tail in (b"0\r\n\r\n", b"0;ext=1\r\n\r\n", b"000\r\nTrailer: x\r\n\r\n"):
			a = first(t, s, post("Transfer-Encoding: chunked", body=whole + tail), {200})
			t.equal(a.json["stdout"], "hi\n", "chunked")
		with Raw(s, post("Expect: 100-continue", f"Content-Length: {len(JOB)}")) as r:
			t.equal(r.answer().status, 100, "continue")
			r.send(JOB)
			t.equal(r.answer().status, 200, "then the answer")
		first(t, s, post("Expect: 100-continue", "Content-Length: 9999999999"), {413, 417})
		with Raw(s, post(f"Content-Length: {len(JOB) - 1}", body=JOB)) as r:
			t.equal([r.answer().status, r.answer().status], [400, 400], "one byte more than said is the beginning of another request")


@case("a body beyond the limit is refused, said before or found on the way", final="memory without a bound")
def oversized(t):
	with Server(t) as s:
		before = sum(rss(p) for p in tree(s.pid))
		with Raw(s, post("Transfer-Encoding: chunked")) as r:
			piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
			for _ in range(2048):
				if select.select([r.s], [], [], 0)[0]:
					break
				r.send(piece)
			a = r.answer()
			t.check(a and a.status == 413, "it ends with 413", a)
		wait_until("memory is as before", lambda: "asan" in harness.brig_path() or sum(rss(p) for p in tree(s.pid)) < before + (48 << 10))
		t.equal(s.get("/healthz").status, 200, "the server goes on")


def rss(pid):
	"""In KiB."""
	return int((status_field(pid, "VmRSS") or "0").split()[0])


# Ways out of a path; none leads anywhere.
TRICKS = ["/v1/executions/../../../etc/passwd", "/v1/executions/..%2f..%2fetc%2fpasswd", "/../etc/passwd", "/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/assets//etc/passwd",
	  "/assets/..%5c..%5cetc", "//v1/whoami", "/v1//whoami", "/v1/whoami/", "/v1/whoami%00", "/v1/%77hoami/x", "/v1/executions/%00", "/v1/executions/%", "/v1/executions/%zz", "/v1/executions/%c3%28",
	  "/v1/executions/" + "a" * 5000, "/V1/whoami", "/v1/whoami;x=1", "/%2fv1/whoami", "/v1/executions/aaaaaaaaaaaaaaaa/artifacts/", "/v1/executions/aaaaaaaaaaaaaaaa/events/x", "/assets/", "/index.html",
	  "/.git/config", "*"]


@case("paths that lead elsewhere lead nowhere")
def paths(t):
	with Server(t) as s:
		for target in TRICKS:
			a = first(t, s, get(target), {400, 404, 405, 414})
			t.check(b"root:" not in a.body and b"[core]" not in a.body, "nothing is shown", a)


@case("one byte at a time, and three requests at once: the same answers")
def splitting(t):
	with Server(t) as s:
		with Raw(s) as r:
			for byte in job_request({"language": "shell", "code": "echo split"}).replace(HOST, r.host):
				r.send(bytes([byte]))
			t.equal(r.answer().json["stdout"], "split\n", "byte by byte")
			r.send(job_request({"language": "shell", "code": "echo 1"}) + get("/v1/whoami") + job_request({"language": "shell", "code": "echo 2"}))
			a, b, c = r.answer(), r.answer(), r.answer()
			t.equal([a.json["stdout"], "admin" in b.json, c.json["stdout"]], ["1\n", True, "2\n"], "in their order")
			r.send(get("/healthz", "Connection: close"))
			a = r.answer()
			t.equal([a.status, a.closes, r.answer()], [200, True, None], "close")
		with Raw(s, b"GET /healthz HTTP/1.0\r\n\r\n") as r:
			a = r.answer()
			t.check(a.status in (200, 400) and r.answer() is None, "HTTP/1.0 ends with its answer", a)
		with Raw(s, request("HEAD", "/healthz") + get("/healthz")) as r:
			a = r.answer("HEAD")
			t.check(a.status in (200, 405), "HEAD", a)


@case("slow clients: nothing, half a head, half a body, drop by drop; 408 or closed, and others are served meanwhile")
def slow(t):
	half = [b"", b"GET /v1/who", get("/v1/whoami")[:-2], post("Content-Length: 50", body=b"{"), post("Transfer-Encoding: chunked"), post("Transfer-Encoding: chunked", body=b"1\r\n{\r\n")]
	with Server(t, "--head-timeout", "0.4", "--body-timeout", "0.4", "--idle-timeout", "0.4") as s:
		waiting = [Raw(s, data) for data in half]
		drops = Raw(s, b"GET /v1/whoami HTTP/1.1\r\nHost: @HOST@\r\nA: ")
		body = Raw(s, post("Content-Length: 100000"))
		idle = Raw(s, get("/healthz"))
		try:
			t.equal([idle.answer().status, s.get("/healthz").status], [200, 200], "others")
			until = time.monotonic() + PATIENCE
			open_drops = [drops, body]
			while open_drops:
				t.check(time.monotonic() < until, "drop by drop: it ends")
				for r in list(open_drops):
					r.send(b"x")
					if select.select([r.s], [], [], 0.05)[0]:
						open_drops.remove(r)
			for r in waiting + [drops, body]:
				a = r.answer()
				t.check(a is None or a.status == 408, "the answer", a)
				t.check(r.answer() is None, "then it is closed")
			t.check(idle.answer() is None, "an idle connection is closed")
		finally:
			for r in waiting + [drops, body, idle]:
				r.s.close()


@case("a program that takes longer than every time limit of a connection is waited for")
def patient(t):
	with Server(t, "--head-timeout", "0.3", "--body-timeout", "0.3", "--idle-timeout", "0.3") as s:
		t.equal(s.result(language="shell", code="sleep 1; echo late")["stdout"], "late\n", "its result")


@case("a client that does not read its stream holds up nobody, and can leave")
def unread(t):
	code = "import time\nfor i in range(200): print('x' * 40000, flush=True)\n"
	with Server(t, "--jobs", 2) as s:
		with Raw(s, job_request({"language": "python", "code": code, "options": {"output_limit": "10m", "timeout": 20}}, "Accept: text/event-stream")) as r:
			r.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
			t.equal(s.result(language="shell", code="echo other")["stdout"], "other\n", "others are served")
		t.equal(s.result(language="shell", code="echo after")["stdout"], "after\n", "and afterwards")
		wait_until("nothing runs", lambda: s.get("/v1/queue").json["running"] == 0)


@case("200 clients at once wait for their turn, and each gets its own answer")
def crowd(t):
	with Server(t, "--jobs", 2, "--queue", 500) as s:
		clients = [Raw(s, job_request({"language": "shell", "code": f"echo {i}"})) for i in range(200)]
		try:
			for i, r in enumerate(clients):
				a = r.answer()
				t.check(a and a.status == 200, f"client {i}", a)
				t.equal(a.json["stdout"], f"{i}\n", f"the answer of client {i}", a)
		finally:
			for r in clients:
				r.s.close()


@case("more connections than there is room for: turned away or left waiting, never a crash; then there is room again")
def too_many(t):
	with Server(t, "--connections", 20) as s:
		clients = []
		try:
			for _ in range(60):
				r = Raw(s)
				clients.append(r)
				r.send(get("/healthz"))
			t.equal(clients[0].answer().status, 200, "the first is served")
		finally:
			for r in clients:
				r.s.close()
		wait_until("there is room", s.answers)


@case("bytes from nowhere: 300 random heads and bodies are answered or closed, and the server goes on")
def noise(t):
	rng = random.Random(17)
	good = [job_request({"language": "shell", "code": "echo"}), get("/v1/whoami"), post("Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\n\r\n")]
	with Server(t, "--head-timeout", "0.5", "--body-timeout", "0.5") as s:
		pids = s.processes()
		for _ in range(300):
			data = bytearray(rng.choice(good))
			for _ in range(rng.randint(1, 6)):
				at = rng.randrange(len(data))
				data[at:at + rng.randint(0, 3)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 3)))
			with Raw(s) as r:
				r.send(bytes(data))
				r.s.shutdown(socket.SHUT_WR)
				a = r.answer()
				t.check(a is None or a.status in (100, 200) or 400 <= a.status < 510, "an answer", a)
		t.equal(s.processes(), pids, "no process had to be started anew")
