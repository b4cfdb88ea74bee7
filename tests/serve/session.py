# SPDX-License-Identifier: Apache-2.0
"""A session of a server, and servers in it, for cases."""
EVENTS = {"verdict": "SessionVerdict", "result": "SessionShown", "started": "SessionStarted"}


class Session:
	"""One, and a connection to ask things of it."""
	def __init__(self, server, token=None, **wish):
		self.server, self.token = server, token
		self.c = server.client(token)
		made = self.c.ask("POST", "/v1/sessions", wish, status=201)
		self.made, self.id = made.json, made.json["id"]
		self.at = "/v1/sessions/" + self.id
		if made.header("location") != self.at:
			raise AssertionError(made)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.c.c.close()

	def ask(self, method, rest, body=None, status=200, **kw):
		return self.c.ask(method, self.at + rest, body, status=status, **kw)

	def run(self, code, status=200, **more):
		return self.ask("POST", "/runs", {"code": code, **more}, status).json

	def process(self, *args, status=200, **more):
		return self.ask("POST", "/processes", {"args": list(args), **more}, status).json

	def stream(self, client, method, rest, body=None):
		return client.stream(method, self.at + rest, body, EVENTS)

	def state(self):
		return self.ask("GET", "").json

	def put(self, path, data):
		return self.ask("PUT", "/files/" + path, data, headers={"Content-Type": "application/octet-stream"}).json


# ---- servers in it -------------------------------------------------------------------------------

# Answers with what it was sent, and with whatever bytes a client wishes: /raw?HEX (then it hangs up), /hold?HEX (it does not).
ECHO = r"""
import socket, threading
sent = []
def read(c):
    data = b''
    while b'\r\n\r\n' not in data:
        piece = c.recv(65536)
        if not piece: return data, b''
        data += piece
    head, _, rest = data.partition(b'\r\n\r\n')
    return head, rest
def body(c, head, rest):
    low = head.lower()
    if b'transfer-encoding: chunked' in low:
        while not rest.endswith(b'0\r\n\r\n'): rest += c.recv(65536)
        return rest
    n = [int(l.split(b':')[1]) for l in low.split(b'\r\n') if l.startswith(b'content-length:')]
    while n and len(rest) < n[0]: rest += c.recv(65536)
    return rest
def serve(c):
    head, rest = read(c)
    target = head.split(b' ')[1] if b' ' in head else b'/'
    if target.startswith(b'/raw') or target.startswith(b'/hold'):
        c.sendall(bytes.fromhex(target.partition(b'?')[2].decode()))
        if target.startswith(b'/hold?'): c.recv(1)
        c.close(); return
    if target == b'/flood':
        c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % (1 << 26))
        for _ in range(1 << 10):
            c.sendall(b'x' * (1 << 16)); sent.append(1)
        c.close(); return
    if target == b'/sent':
        c.sendall(b'HTTP/1.0 200 OK\r\n\r\n%d' % (len(sent) << 16)); c.close(); return
    if target == b'/endless':
        try:
            while True: c.sendall(b'HTTP/1.1 200 OK\r\nA: ' + b'a' * 60000)
        except OSError: pass
        c.close(); return
    got = head + b'\r\n\r\n' + body(c, head, rest)
    c.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n' % len(got) + got)
    c.close()
s = socket.create_server(('127.0.0.1', PORT)); s.listen(64)
print('up', flush=True)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


def started(x, client, *args):
	"""A server runs, and has said so."""
	n = x.process(*args, **{"async": True}, status=202)["process"]
	x.stream(client, "GET", f"/processes/{n}/events").until("stdout")
	client.c.close()


def echoing(x, client, port=3000):
	started(x, client, "python3", "-c", ECHO.replace("PORT", str(port)))
	return f"{x.at}/ports/{port}"
