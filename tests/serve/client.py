# SPDX-License-Identifier: Apache-2.0
"""
client.py - a server of one's own for each case, and clients that believe it nothing.

Every answer that comes through Client is held against data/openapi.json: its path, status, type and document.  What is
written by hand (raw) is split into answers by a reader of its own, which is as strict.
"""
import http.client
import io
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tarfile
import time

import harness
from harness import ROOT, Failed, Final

sys.path.insert(0, os.path.join(harness.TESTS, "scenario"))
import schema

PATIENCE = 120	# seconds after which an answer counts as missing; decides no case that works
with open(os.path.join(ROOT, "data", "openapi.json"), encoding="utf-8") as _f:
	API = json.load(_f)
PATHS = [(re.compile("^" + re.sub(r"\{path\}", ".+", re.sub(r"\{(id|item)\}", "[^/]+", p)) + "$"), item) for p, item in API["paths"].items()]
HOST = b"@HOST@"
EVENTS = {"verdict": "Verdict", "queued": "Queued", "result": "BatchResult", "done": "BatchSummary"}	# others are Event


# ---- the description ----------------------------------------------------------------------------

def followed(node):
	while "$ref" in node:
		node = schema.follow(API, node["$ref"])
	return node


def unfit(document, name):
	"""Where a document differs from a schema of the description."""
	return schema.errors(document, {"$ref": "#/components/schemas/" + name}, API)


def described(method, target):
	path = target.partition("?")[0]
	for pattern, item in PATHS:
		if pattern.match(path):
			return item.get(method.lower())
	return None


def body_trouble(method, target, a):
	"""Why an answer is not as described, or nothing."""
	kind = a.header("content-type").partition(";")[0].strip()
	if a.status == 200 and (target == "/" or target.startswith("/assets/")):
		return None	# the console, for people
	operation = described(method, target)
	if operation is None or str(a.status) not in operation["responses"]:
		if a.status < 400:
			return f"{a.status} is not described"
		return unfit(a.json, "Error") if kind == "application/json" else f"an error of type {kind}"
	content = followed(operation["responses"][str(a.status)]).get("content", {})
	if kind not in content and "*/*" not in content:
		return f"type {kind} is not among {list(content)}"
	if kind == "application/json" and kind in content:
		return schema.errors(a.json, content[kind]["schema"], API)
	return None


def head_trouble(target, a):
	if not re.fullmatch(r"[!-~]{1,128}", a.header("x-request-id")):
		return f"X-Request-Id is '{a.header('x-request-id')}'"
	if "server" in a.headers:
		return "it names its software"
	if target.startswith("/v1/") and "no-store" not in a.header("cache-control"):
		return "a cache may keep it"
	if any(name.startswith("access-control-") for name in a.headers):
		return "it has a header of CORS"
	wanted = {401: "www-authenticate", 405: "allow", 429: "retry-after", 503: "retry-after"}.get(a.status)
	if wanted and not a.header(wanted):
		return f"{a.status} without {wanted}"
	if a.status in (429, 503) and not re.fullmatch("[1-9][0-9]*", a.header("retry-after")):
		return "Retry-After is no number of seconds"
	return None


class Answer:
	def __init__(self, status, headers, body, closes=False):
		self.status, self.body, self.closes = status, body, closes
		self.headers = {name.lower(): value for name, value in headers}

	def header(self, name):
		return self.headers.get(name.lower(), "")

	@property
	def json(self):
		try:
			return json.loads(self.body)
		except ValueError as e:
			raise Failed(f"no JSON ({e}): {self}") from None

	@property
	def code(self):
		return self.json.get("error", {}).get("code")

	@property
	def message(self):
		return self.json.get("error", {}).get("message", "")

	def __str__(self):
		return f"{self.status} {self.headers} {self.body[:1500]!r}"


def checked(method, target, a):
	trouble = head_trouble(target, a) or body_trouble(method, target, a)
	if trouble:
		raise Failed(f"{method} {target} is not answered as described: {trouble}; {a}")
	return a


# ---- a server -----------------------------------------------------------------------------------

def children(pid):
	found = []
	for task in harness.listing(f"/proc/{pid}/task"):
		found += [int(p) for p in read_quietly(f"/proc/{pid}/task/{task}/children").split()]
	return found


def tree(pid):
	"""A process and all below it."""
	found = [pid]
	for p in found:
		found += children(p)
	return found


def read_quietly(path):
	try:
		with open(path, "rb") as f:
			return f.read()
	except OSError:
		return b""


def status_field(pid, name):
	found = re.search(rb"^" + name.encode() + rb":\s*(.*)$", read_quietly(f"/proc/{pid}/status"), re.M)
	return found.group(1).decode() if found else ""


def wait_until(what, is_true, seconds=PATIENCE):
	until = time.monotonic() + seconds
	while True:
		found = is_true()
		if found:
			return found
		if time.monotonic() > until:
			raise Failed(f"never: {what}")
		time.sleep(0.01)


def mark():
	"""What stands in the arguments of programs that a case looks for; those of a worker beside this one are not ours."""
	return f"serve-mark-{os.getpid()}-"


def marked():
	"""Processes of cells whose program was given the mark."""
	return [int(p) for p in os.listdir("/proc") if p.isdigit() and mark().encode() in read_quietly(f"/proc/{p}/cmdline")]


class Server:
	"""`brig serve` for the length of a case.  With auth, token() makes tokens beside it; without, everybody may everything.
	through: words of a program that becomes it."""
	def __init__(self, t, *args, auth=False, env=None, ends=0, through=()):
		self.t, self.auth, self.ends = t, auth, ends
		self.err_path = t.path("serve.err")
		if "--socket" not in args:
			args = ("--socket", "none", *args)
		words = [*through, harness.brig_path(), "serve", "--listen", "127.0.0.1:0", "--state", t.state, *([] if auth else ["--no-auth"]), *map(str, args)]
		with open(self.err_path, "ab") as err:
			self.p = t.popen(words, env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err)
		self.pid = self.p.pid
		try:
			self.port = self.read_ready()
		except BaseException:
			self.p.kill()
			self.p.wait()
			self.p.stdout.close()
			raise

	def read_ready(self):
		readable = select.select([self.p.stdout], [], [], PATIENCE)[0]
		line = self.p.stdout.readline() if readable else b""
		found = re.fullmatch(rb"ready http://127\.0\.0\.1:(\d+)\n", line)
		if not found:
			raise Failed(f"its first line is {line!r}; stderr {self.stderr()[-1500:]!r}")
		return int(found.group(1))

	def stderr(self):
		return read_quietly(self.err_path).decode("utf-8", "replace")

	def __enter__(self):
		return self

	def __exit__(self, kind, *_):
		try:
			if kind:
				self.kill()
			elif self.p.poll() is None:
				status = self.stop()
				if status != self.ends:
					raise Failed(f"it ended with {status}: {self.stderr()[-1500:]}")
			if "Sanitizer" in self.stderr() or "runtime error" in self.stderr():
				raise Final(f"a sanitizer complains: {self.stderr()[:3000]}")
		finally:
			self.p.stdout.close()

	def kill(self):
		if self.p.poll() is None:
			self.p.kill()
		self.p.wait()

	def stop(self, *signals):
		for i, sig in enumerate(signals or (signal.SIGTERM,)):
			if i > 0:	# two that come before the first was seen are one
				wait_until("the first signal was heard", lambda: not self.answers())
			self.p.send_signal(sig)
		try:
			return self.p.wait(PATIENCE)
		except subprocess.TimeoutExpired:
			self.kill()
			raise Failed(f"it goes on after {signals or 'SIGTERM'}: {self.stderr()[-1500:]}") from None

	def token(self, name, *args):
		"""The secret of a new token."""
		p = self.t.brig("token", "create", name, *args, "--state", self.t.state, "--json")
		self.t.equal(p.rc, 0, "brig token create", p)
		return json.loads(p.out)["secret"]

	def client(self, token=None, **headers):
		return Client(self, token, headers)

	def connect(self):
		s = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
		s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		return s

	def get(self, target, token=None, **kw):
		with self.client(token) as c:
			return c.ask("GET", target, **kw)

	def run(self, token=None, status=200, headers=None, **job):
		"""The answer to a job."""
		with self.client(token) as c:
			return c.ask("POST", "/v1/executions", job, headers=headers, status=status)

	def result(self, token=None, **job):
		return self.run(token, **job).json

	def start(self, token=None, **job):
		"""The id of an asynchronous execution."""
		a = self.run(token, 202, **{**job, "async": True})
		self.t.equal(a.header("location"), "/v1/executions/" + a.json["id"], "Location", a)
		return a.json["id"]

	def state(self, ident, token=None):
		return self.get(f"/v1/executions/{ident}", token, status=200).json["state"]

	def ended(self, ident, token=None):
		"""The document of an execution, once it is over."""
		def over():
			d = self.get(f"/v1/executions/{ident}", token, status=200).json
			return d if d["state"] in ("finished", "lost") else None
		return wait_until(f"{ident} ends", over)

	def processes(self):
		"""{"front": pid, "runner": pid, "recorder": pid}, as far as they are there."""
		found = {read_quietly(f"/proc/{pid}/comm").decode().strip().removeprefix("brig-"): pid for pid in children(self.pid)}
		return {name: pid for name, pid in found.items() if name in ("front", "runner", "recorder")}

	def keepers(self):
		"""Processes that make cells, by the master's doing."""
		return [pid for pid in children(self.pid) if read_quietly(f"/proc/{pid}/comm") == b"brig-keeper\n"]

	def answers(self):
		try:
			return self.get("/readyz").status == 200
		except (OSError, http.client.HTTPException):
			return False


# ---- files --------------------------------------------------------------------------------------

TAR = {"Content-Type": "application/x-tar"}


def archive(files, form=tarfile.PAX_FORMAT, folders=(), edit=None):
	"""A tar archive of {path: bytes}."""
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode="w", format=form) as tar:
		for name in folders:
			info = tarfile.TarInfo(name)
			info.type = tarfile.DIRTYPE
			tar.addfile(info)
		for name, data in files.items():
			info = tarfile.TarInfo(name)
			info.size, info.mode = len(data), 0o755 if name.endswith(".sh") else 0o640
			if edit:
				edit(info)
			tar.addfile(info, io.BytesIO(data))
	return out.getvalue()


def unpacked(data):
	with tarfile.open(fileobj=io.BytesIO(data)) as tar:
		return {m.name: (tar.extractfile(m).read(), bool(m.mode & 0o100)) for m in tar if m.isfile()}


def upload(s, data, token=None, status=201):
	with s.client(token) as c:
		return c.ask("POST", "/v1/workspaces", data, TAR, status=status)


def content(s, ident, token=None):
	return {name: data for name, (data, _) in unpacked(s.get(f"/v1/workspaces/{ident}/archive", token, status=200).body).items()}


# ---- programs -----------------------------------------------------------------------------------

def sleeper(seconds=60, **more):
	"""A program that is there until somebody ends it, and can be found."""
	return {"kind": "command", "args": ["sh", "-c", f"echo up; sleep {seconds}; :", mark()], "options": {"timeout": 25}, **more}


# ---- clients ------------------------------------------------------------------------------------

class Client:
	"""One keep-alive connection."""
	def __init__(self, server, token=None, headers=None):
		self.server, self.t = server, server.t
		self.headers = dict(headers or {})
		if token:
			self.headers["Authorization"] = "Bearer " + token
		self.c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.c.close()

	def send(self, method, target, body=None, headers=None):
		"""The response, of which nothing but the head has been read."""
		headers = {**self.headers, **(headers or {})}
		if isinstance(body, (dict, list)):
			body = json.dumps(body).encode()
			headers.setdefault("Content-Type", "application/json")
		self.c.request(method, target, body, headers)
		return self.c.getresponse()

	def ask(self, method, target, body=None, headers=None, status=None):
		r = self.send(method, target, body, headers)
		a = checked(method, target, Answer(r.status, r.getheaders(), r.read()))
		if status is not None and a.status != status:
			raise Failed(f"{method} {target} {str(body)[:300]} is answered {a.status}, not {status}: {a}")
		return a

	def stream(self, method, target, body=None, events=EVENTS, headers=()):
		r = self.send(method, target, body, {"Accept": "text/event-stream", **dict(headers)})
		a = Answer(r.status, r.getheaders(), b"")
		if a.status != 200 or not a.header("content-type").startswith("text/event-stream"):
			raise Failed(f"no stream: {a} {r.read()!r}")
		if head_trouble(target, a):
			raise Failed(f"{head_trouble(target, a)}: {a}")
		return Stream(r, events)


def client_env(path, **more):
	"""The environment of a command that asks the service at path, and of nothing else of ours: the policy is the service's."""
	env = {key: None for key in harness.clean_env() if key.startswith("BRIG_")}
	return {**env, "BRIG_STATE": None, "BRIG_HOST": "unix:" + path if path else None, **more}


def ask_unix(path, target, uid=0):
	"""A document from the unix socket, asked for as this user: (status, document)."""
	with socket.socket(socket.AF_UNIX) as sock:
		sock.settimeout(PATIENCE)
		os.seteuid(uid)
		try:
			sock.connect(path)	# the kernel notes now who it is
		finally:
			os.seteuid(0)
		sock.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
		data = b"".join(iter(lambda: sock.recv(65536), b""))
	head, _, body = data.partition(b"\r\n\r\n")
	return int(head.split()[1]), json.loads(body)


class Stream:
	"""Server-sent events, one after the other, each held against the description."""
	def __init__(self, response, events=EVENTS):
		self.response, self.events, self.seen = response, events, []

	def __iter__(self):
		return self

	def __next__(self):
		event, data, end = "", [], time.monotonic() + PATIENCE
		while True:
			line = self.response.readline()
			if time.monotonic() > end:	# comments keep a stream alive in which nothing happens
				raise Failed(f"no event in {PATIENCE} seconds after {self.seen[-3:]}")
			if not line:
				if event or data:
					raise Failed(f"the stream ends inside an event: {event} {data}")
				raise StopIteration
			line = line.decode().rstrip("\n")
			if line.startswith(":"):
				continue
			if not line:
				if not event and not data:
					continue	# behind a comment
				break
			name, _, value = line.partition(": ")
			if name == "event":
				event = value
			elif name == "data":
				data.append(value)
			elif name != "id":
				raise Failed(f"not a line of an event: {line!r}")
		document = json.loads("\n".join(data))
		trouble = unfit(document, self.events.get(event, "Event"))
		if trouble or event not in self.events and document["event"] != event:
			raise Failed(f"event {event} is not as described: {trouble} {document}")
		if self.seen and self.seen[-1][0] == "verdict":
			raise Failed(f"{event} comes after the verdict")
		self.seen.append((event, document))
		return event, document

	def until(self, wanted):
		"""The document of the next event of this name."""
		for event, document in self:
			if event == wanted:
				return document
		raise Failed(f"no {wanted} came: {self.seen}")

	def names(self):
		return [event for event, _ in self.seen]

	def text(self, stream="stdout"):
		return "".join(d["data"] for e, d in self.seen if e == stream)


class Raw:
	"""Bytes on a socket, and what comes back, split into answers by hand."""
	def __init__(self, server, data=b""):
		self.s, self.buffer, self.host = server.connect(), b"", f"127.0.0.1:{server.port}".encode()
		if data:
			self.send(data)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.s.close()

	def send(self, data):
		"""With the server's own address for HOST; a server that has seen enough may close before all is written."""
		try:
			self.s.sendall(data.replace(HOST, self.host))
		except (BrokenPipeError, ConnectionResetError):
			pass

	def more(self):
		try:
			data = self.s.recv(65536)
		except ConnectionResetError:
			data = b""
		except TimeoutError:
			raise Failed(f"no answer came; so far {self.buffer[:300]!r}") from None
		self.buffer += data
		return bool(data)

	def take(self, n):
		while len(self.buffer) < n:
			if not self.more():
				raise Failed(f"the answer is cut: {self.buffer[:500]!r}")
		data, self.buffer = self.buffer[:n], self.buffer[n:]
		return data

	def line(self):
		while b"\r\n" not in self.buffer:
			if not self.more():
				raise Failed(f"the answer is cut: {self.buffer[:500]!r}")
		line, _, self.buffer = self.buffer.partition(b"\r\n")
		return line.decode("latin-1")

	def answer(self, method="GET"):
		"""The next answer; None: the server has closed."""
		if not self.buffer and not self.more():
			return None
		found = re.fullmatch(r"HTTP/1\.1 (\d{3}) [ -~]*", self.line())
		if not found:
			raise Failed(f"not a status line before {self.buffer[:300]!r}")
		status, headers = int(found.group(1)), []
		while True:
			line = self.line()
			if not line:
				break
			name, _, value = line.partition(":")
			headers.append((name, value.strip()))
		fields = {name.lower(): value for name, value in headers}
		if status == 100:
			return Answer(status, headers, b"")
		if "transfer-encoding" in fields:
			body = self.chunks()
		else:
			body = self.take(int(fields["content-length"])) if method != "HEAD" else b""
		return Answer(status, headers, body, "close" in fields.get("connection", ""))

	def chunks(self):
		body = b""
		while True:
			size = int(self.line(), 16)
			body += self.take(size)
			if self.line():
				raise Failed("a chunk that does not end where it should")
			if size == 0:
				return body

	def closed(self):
		"""Nothing more comes, and the connection is over."""
		while not self.buffer:
			if not self.more():
				return True
		return False


def request(method="GET", target="/v1/whoami", *lines, body=b"", host=HOST.decode(), length=True):
	"""A request by hand; lines are further headers."""
	head = [f"{method} {target} HTTP/1.1", f"Host: {host}", *lines]
	if body and length:
		head.append(f"Content-Length: {len(body)}")
	return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


def job_request(job, *lines):
	return request("POST", "/v1/executions", "Content-Type: application/json", *lines, body=json.dumps(job).encode())
