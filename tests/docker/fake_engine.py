# SPDX-License-Identifier: Apache-2.0
"""
fake_engine.py - a container engine that exists only as far as brig can see it, and that breaks where it is told to.

It speaks the Engine API on a unix socket and, behind an attached stream, what brig's own init says (src/backend/container/
wire.h); no container is ever run.  Every request belongs to a step (STEPS); a fault names a step and what goes wrong
there: an answer of another kind (a status, garbage, silence, a closed connection ...), a container that is not what was
asked for, or an init that says something else.  What the engine holds afterwards is what brig left behind.
"""
import copy
import hashlib
import io
import json
import os
import re
import socket
import ssl
import struct
import tarfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CEILING = 300	# seconds; nothing here is meant to last that long

# The requests of one run, in order.  inspect is asked twice: before the program starts and after its end.
STEPS = ["ping", "version", "list", "image", "create", "attach", "wait", "start", "inspect_before", "inspect_after", "changes", "remove"]


def table(path, pattern):
	with open(os.path.join(ROOT, path), encoding="utf-8") as f:
		return [m.group(1) for m in re.finditer(pattern, f.read(), re.M)]


FACTS = table("src/model/facts.def", r"^FACT\((\w+),")
WIRE_STEPS = table("src/backend/container/steps.def", r"^STEP\((\w+),")
END, FAILED, FACT, SPACES, READY, EXIT, OUTPUT, DATA = range(1, 9)
GO, INPUT, INPUT_END, STOP, MARK = range(1, 6)


def frame(kind, body=b""):
	return struct.pack("<II", kind, len(body)) + body


def text(s):
	data = s.encode() + b"\0"
	return struct.pack("<I", len(data)) + data


def fact(name, value, source="fake"):
	is_text = isinstance(value, str)
	return frame(FACT, struct.pack("<IIQ", FACTS.index(name), is_text, 0 if is_text else value) +
		     text(value if is_text else "") + text(source))


def multiplexed(stream, data, limit=32768):
	"""Frames of the engine around the bytes of one of the container's streams."""
	return b"".join(bytes([stream, 0, 0, 0]) + struct.pack(">I", len(data[i:i + limit])) + data[i:i + limit]
			for i in range(0, len(data), limit))


class Job:
	"""What brig sends to init before anything else."""
	def __init__(self, meta):
		self.meta, self.at = meta, 0
		self.keys = self.take(32), self.take(32)
		self.flags, self.family = self.numbers("<II")
		(self.wall_ms, self.cpu_ms, self.disk, self.files_max, self.pids, self.tree_entries, self.tree_bytes, self.room_bytes, self.room_inodes,
		 self.shown_entries, self.shown_bytes, self.output_max) = self.numbers("<12Q")
		self.shown, self.link, self.link_to = self.text(), self.text(), self.text()
		self.output = self.text()
		self.argv = [self.text() for _ in range(self.numbers("<I")[0])]
		self.env = [self.text() for _ in range(self.numbers("<I")[0])]
		self.hidden = [self.text() for _ in range(self.numbers("<I")[0])]
		self.files = [(self.text(), *self.numbers("<IIQ")) for _ in range(self.numbers("<I")[0])]

	def take(self, n):
		self.at += n
		return self.meta[self.at - n:self.at]

	def numbers(self, form):
		return struct.unpack(form, self.take(struct.calcsize(form)))

	def text(self):
		return self.take(self.numbers("<I")[0])[:-1].decode()


class Gone(Exception):
	"""The other side is not there any more, or the fake is to end."""


class Wire:
	"""One connection: exact reads, sends in pieces."""
	def __init__(self, engine, sock):
		self.engine, self.sock, self.data = engine, sock, b""
		sock.settimeout(2)

	def more(self):
		"""False at the end."""
		until = time.monotonic() + CEILING
		while not self.engine.over.is_set() and time.monotonic() < until:
			try:
				piece = self.sock.recv(65536)
			except TimeoutError:
				continue
			except OSError:
				raise Gone from None
			self.data += piece
			return bool(piece)
		raise Gone

	def take(self, n):
		while len(self.data) < n:
			if not self.more():
				raise Gone
		piece, self.data = self.data[:n], self.data[n:]
		return piece

	def send(self, data, piece=0):
		view = memoryview(data)
		while view:
			if self.engine.over.is_set():
				raise Gone
			try:
				view = view[self.sock.send(view[:piece] if piece else view):]
			except TimeoutError:
				continue
			except OSError:
				raise Gone from None

	def until_gone(self):
		try:
			while self.more():
				self.data = b""
		except Gone:
			pass


class Container:
	def __init__(self, ident, name, body):
		self.id, self.name, self.body = ident, name, body
		self.state = "created"
		self.code = 0
		self.started, self.ended = threading.Event(), threading.Event()


class Engine:
	"""fault: None, or {"step": ..., "how": ..., more of it}; see Faults in fake.py."""
	def __init__(self, folder, fault=None, init_hash="0" * 64, podman=False, tls=None):
		self.fault, self.init_hash, self.podman = fault or {}, init_hash, podman
		self.containers, self.images, self.requests, self.ghosts = {}, {}, [], []
		self.wanted = []	# every body of a create call
		self.builds = []	# (query, Dockerfile) of every build
		self.lock = threading.Lock()
		self.over = threading.Event()
		self.seen_steps = []
		self.made = 0
		self.trouble = None	# an exception of ours: a bug of the fake, not of brig
		self.tls = tls	# an ssl.SSLContext: on loopback instead of a unix socket
		if tls:
			self.listening = socket.create_server(("127.0.0.1", 0), backlog=64)
			self.address = f"tcp://127.0.0.1:{self.listening.getsockname()[1]}"
		else:
			self.path = os.path.join(folder, "sock")
			self.address = "unix://" + self.path
			self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
			self.listening.bind(self.path)
			self.listening.listen(64)
		self.listening.settimeout(2)
		self.sockets = []
		self.threads = [threading.Thread(target=self.accept)]
		self.threads[0].start()

	def close(self):
		self.over.set()
		for c in list(self.containers.values()):
			c.started.set()
			c.ended.set()
		with self.lock:
			open_now = list(self.sockets)
		for sock in open_now:	# wakes whoever waits there
			try:
				sock.shutdown(socket.SHUT_RDWR)
			except OSError:
				pass
		with socket.socket(self.listening.family, socket.SOCK_STREAM) as wake:
			wake.connect(self.listening.getsockname())
		for thread in self.threads:
			thread.join()
		self.listening.close()
		if not self.tls:
			os.unlink(self.path)

	def accept(self):
		while not self.over.is_set():
			try:
				sock, _ = self.listening.accept()
			except TimeoutError:
				continue
			if self.over.is_set():
				sock.close()
				return
			with self.lock:
				self.sockets.append(sock)
			thread = threading.Thread(target=self.serve, args=(sock,))
			self.threads.append(thread)
			thread.start()

	def serve(self, sock):
		plain = sock
		try:
			if self.tls:
				sock.settimeout(CEILING)
				sock = self.tls.wrap_socket(sock, server_side=True)
			wire = Wire(self, sock)
			while self.one_request(wire):
				pass
		except (Gone, ssl.SSLError, ConnectionError):
			pass
		except Exception as e:	# pylint: disable=broad-except
			self.trouble = self.trouble or repr(e)
			raise
		finally:
			with self.lock:
				self.sockets.remove(plain)
			sock.close()

	# ---- HTTP ---------------------------------------------------------------------------------

	def one_request(self, wire):
		while b"\r\n\r\n" not in wire.data:
			if not wire.more():
				return False
		head, _, wire.data = wire.data.partition(b"\r\n\r\n")
		line, *rows = head.decode("latin-1").split("\r\n")
		method, target, _ = line.split(" ")
		headers = {k.lower(): v.strip() for k, _, v in (row.partition(":") for row in rows)}
		body = self.read_body(wire, headers)
		path, _, query = target.partition("?")
		with self.lock:
			self.requests.append(f"{method} {target}")
		return self.route(wire, method, path, query, body)

	@staticmethod
	def read_body(wire, headers):
		if headers.get("transfer-encoding") == "chunked":
			body = b""
			while True:
				while b"\r\n" not in wire.data:
					if not wire.more():
						raise Gone
				size, _, wire.data = wire.data.partition(b"\r\n")
				piece = wire.take(int(size, 16) + 2)[:-2]
				if not piece:
					return body
				body += piece
		return wire.take(int(headers.get("content-length", "0")))

	def route(self, wire, method, path, query, body):
		rows = [
			("GET", r"/_ping", self.ping), ("GET", r"/version", self.version), ("GET", r"/v1\.\d+/info", self.info),
			("GET", r"/v1\.\d+/images/(.+)/json", self.image), ("POST", r"/v1\.\d+/images/(.+)/tag", self.tag),
			("POST", r"/v1\.\d+/commit", self.commit), ("POST", r"/v1\.\d+/build", self.build),
			("POST", r"/v1\.\d+/containers/create", self.create), ("GET", r"/v1\.\d+/containers/json", self.listing),
			("POST", r"/v1\.\d+/containers/([\w.-]+)/attach", self.attach),
			("POST", r"/v1\.\d+/containers/([\w.-]+)/wait", self.wait),
			("POST", r"/v1\.\d+/containers/([\w.-]+)/start", self.start),
			("GET", r"/v1\.\d+/containers/([\w.-]+)/json", self.inspect),
			("GET", r"/v1\.\d+/containers/([\w.-]+)/changes", self.changes),
			("POST", r"/v1\.\d+/containers/([\w.-]+)/kill", self.kill),
			("PUT", r"/v1\.\d+/containers/([\w.-]+)/archive", self.archive),
			("GET", r"/v1\.\d+/containers/([\w.-]+)/archive", self.fetch_file),
			("DELETE", r"/v1\.\d+/containers/([\w.-]+)", self.remove),
		]
		for want, pattern, handler in rows:
			match = re.fullmatch(pattern, path)
			if match and want == method:
				return handler(wire, query, body, *match.groups())
		return self.answer(wire, None, 404, {"message": "page not found"})

	def answer(self, wire, step, status, value, raw=None):
		"""Sends an answer, unless the fault says otherwise.  Returns whether the connection goes on."""
		data = raw if raw is not None else b"" if value is None else json.dumps(value).encode()
		fault = self.fault if step and self.fault.get("step") == step else {}
		if fault.get("times"):
			with self.lock:
				self.made += 1
				if self.made > fault["times"]:
					fault = {}
		how = fault.get("how", "")
		if how in ANSWERS:
			return ANSWERS[how](wire, status, data, fault)
		wire.send(head_of(status, len(data)) + data)
		return True

	# ---- what it answers ------------------------------------------------------------------------

	def ping(self, wire, _query, _body):
		if "server" in self.fault:	# says who it is, as Docker does
			wire.send(b"HTTP/1.1 200 OK\r\nApi-Version: %s\r\nServer: %s\r\nContent-Length: 2\r\n\r\nOK" % self.fault["server"])
			return True
		return self.answer(wire, "ping", 200, None, raw=b"OK")

	def version(self, wire, _query, _body):
		value = {"Version": "4.3.1" if self.podman else "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12",
			 "Components": [{"Name": "Podman Engine" if self.podman else "Engine"}, {"Name": "runc", "Version": "1.1.5"}]}
		value.update(self.fault.get("version", {}))
		return self.answer(wire, "version", 200, value)

	def info(self, wire, _query, _body):
		return self.answer(wire, "info", 200, {"Runtimes": {"runc": {}}, "CgroupVersion": "1", "SecurityOptions": []})

	def describe_image(self, name):
		known = self.images.get(name)
		if known:
			return known
		match = re.fullmatch(r"brig/(\w+):(.*)-([0-9a-f]{16})", name)
		if not match and name != "fake/base:1":
			return None
		labels = {}
		if match:
			labels = {"brig.image": match[1], "brig.image.version": match[2], "brig.image.recipe": match[3],
				  "brig.image.how": "host", "brig.init": self.init_hash}
		ident = "sha256:" + hashlib.sha256(name.encode()).hexdigest()
		value = {"Id": ident, "Architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"),
			 "Os": "linux", "Size": 1000, "Created": "2024-01-01T00:00:00Z",
			 "Config": {"User": "1000:1000", "Labels": labels, "Entrypoint": None, "Volumes": None}}
		self.images[name] = self.images[ident] = value
		return value

	def image(self, wire, _query, _body, name):
		name = unquote(name)
		value = self.describe_image(name)
		if value is None or "no_image" in self.fault:
			return self.answer(wire, "image", 404, {"message": f"No such image: {name}"})
		value = copy.deepcopy(value)
		change(value, self.fault.get("image", {}))
		return self.answer(wire, "image", 200, value)

	def create(self, wire, query, body):
		wanted = json.loads(body)
		self.wanted.append(wanted)
		name = re.search(r"(?:^|&)name=([^&]*)", query)
		with self.lock:
			ident = hashlib.sha256(b"%d" % (len(self.requests) + 7919 * len(self.containers))).hexdigest()
			status = self.fault.get("status", 500) if self.fault.get("how") == "status" else 0
			# An engine that refuses has made nothing; one that breaks off may have.
			if not (self.fault.get("step") == "create" and 400 <= status < 500):
				self.containers[ident] = Container(ident, unquote(name.group(1)), wanted)
		value = {"Id": ident, "Warnings": []}
		change(value, self.fault.get("created", {}))
		return self.answer(wire, "create", 201, value)

	def find(self, name):
		with self.lock:
			for c in self.containers.values():
				if name in (c.id, c.name):
					return c
		return None

	def not_there(self, wire, name):
		return self.answer(wire, None, 404, {"message": f"No such container: {name}"})

	def wait(self, wire, _query, _body, name):
		c = self.find(name)
		if not c:
			return self.not_there(wire, name)
		if self.fault.get("step") == "wait" and self.fault["how"] != "ok":
			if "late" not in self.fault:
				return self.answer(wire, "wait", 200, {"StatusCode": 0})
		wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		self.await_event(c, c.ended)
		data = json.dumps({"StatusCode": c.code, "Error": None}).encode()
		if self.fault.get("step") == "wait":
			data = self.fault["late"]
		wire.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
		return True

	def await_event(self, c, event):
		while not event.wait(0.5):
			if self.over.is_set():
				raise Gone
		if self.over.is_set() or (event is c.started and c.state == "removed"):
			raise Gone

	def start(self, wire, _query, _body, name):
		c = self.find(name)
		if not c:
			return self.not_there(wire, name)
		c.state = "running"
		c.started.set()
		return self.answer(wire, "start", 204, None)

	def account(self, c):
		"""What a good engine says about a container."""
		body = c.body
		host = copy.deepcopy(body.get("HostConfig", {}))
		config = {k: v for k, v in body.items() if k not in ("HostConfig", "Image")}
		return {"Id": c.id, "Name": "/" + c.name, "Image": body["Image"], "Config": config, "HostConfig": host, "Mounts": [],
			"State": {"Status": c.state, "Running": c.state == "running", "Pid": 0, "ExitCode": c.code, "OOMKilled": False,
				  "Error": ""},
			"NetworkSettings": {"Ports": {}, "IPAddress": "", "GlobalIPv6Address": "", "Gateway": "",
					    "Networks": {"none": {"IPAddress": "", "Gateway": "", "GlobalIPv6Address": ""}}}}

	def inspect(self, wire, _query, _body, name):
		c = self.find(name)
		if not c:
			return self.not_there(wire, name)
		step = "inspect_after" if c.state == "exited" else "inspect_before"
		value = self.account(c)
		if self.fault.get("step") == step:
			change(value, self.fault.get("account", {}))
		return self.answer(wire, step, 200, value)

	def changes(self, wire, _query, _body, name):
		if not self.find(name):
			return self.not_there(wire, name)
		value = self.fault.get("changed", None)
		return self.answer(wire, "changes", 200, value, raw=json.dumps(value).encode())

	def kill(self, wire, _query, _body, name):
		c = self.find(name)
		if not c:
			return self.not_there(wire, name)
		if c.state != "running":
			return self.answer(wire, "kill", 409, {"message": "is not running"})
		self.exit(c, 137)
		return self.answer(wire, "kill", 204, None)

	def exit(self, c, code):
		with self.lock:
			if c.state == "running":
				c.state, c.code = "exited", code
		c.ended.set()

	def remove(self, wire, _query, _body, name):
		c = self.find(name)
		if not c:
			return self.not_there(wire, name)
		stays = self.fault.get("step") == "remove" and self.fault.get("how") in ("status", "hang") and not self.fault.get("gone")
		if self.fault.get("times") and self.made >= self.fault["times"]:
			stays = False
		if not stays:
			self.exit(c, 137)
			c.state = "removed"
			c.started.set()
			with self.lock:
				del self.containers[c.id]
		return self.answer(wire, "remove", 204, None)

	def listing(self, wire, _query, _body):
		with self.lock:
			rows = [{"Id": c.id, "Names": ["/" + c.name], "Labels": c.body.get("Labels", {}), "State": c.state}
				for c in self.containers.values()]
			rows += [{"Id": c.id, "Names": [], "Labels": c.body.get("Labels", {}), "State": "removing"} for c in self.ghosts]
		return self.answer(wire, "list", 200, rows)

	def archive(self, wire, _query, _body, name):
		if not self.find(name):
			return self.not_there(wire, name)
		return self.answer(wire, "archive", 200, None)

	def fetch_file(self, wire, query, _body, name):
		"""A file of the image as a tar stream; one whose contents are a tuple is a link."""
		path = unquote(re.search(r"path=([^&]*)", query).group(1))
		files = self.fault.get("files", {})
		if not self.find(name) or path not in files:
			return self.answer(wire, "fetch_file", 404, {"message": f"Could not find the file {path}"})
		packed = io.BytesIO()
		with tarfile.open(fileobj=packed, mode="w") as tar:
			entry = tarfile.TarInfo(os.path.basename(path))
			if isinstance(files[path], tuple):
				entry.type, entry.linkname = tarfile.SYMTYPE, files[path][0]
				tar.addfile(entry)
			else:
				entry.size = len(files[path])
				tar.addfile(entry, io.BytesIO(files[path]))
		return self.answer(wire, "fetch_file", 200, None, raw=packed.getvalue())

	def build(self, wire, query, body):
		"""Keeps what it was to build, and says no unless it is told to."""
		with tarfile.open(fileobj=io.BytesIO(body)) as context:
			self.builds.append((unquote(query), context.extractfile("Dockerfile").read().decode()))
		return self.answer(wire, "build", 200, {"error": "no base: the fake reaches no registry"})

	def commit(self, wire, query, _body):
		c = self.find(re.search(r"container=([^&]*)", query).group(1))
		if not c:
			return self.not_there(wire, "?")
		ident = "sha256:" + hashlib.sha256(c.id.encode()).hexdigest()
		value = copy.deepcopy(self.describe_image("fake/base:1"))
		value["Id"] = ident
		value["Config"]["Labels"] = c.body.get("Labels", {})
		self.images[ident] = value
		return self.answer(wire, "commit", 201, {"Id": ident})

	def tag(self, wire, _query, _body, _name):
		return self.answer(wire, "tag", 201, None)

	# ---- the attached stream, and init behind it ---------------------------------------------------

	def attach(self, wire, _query, _body, name):
		c = self.find(name)
		if not c:
			return self.not_there(wire, name)
		if self.fault.get("step") == "attach" and self.fault["how"] in ANSWERS and self.fault["how"] not in ("pieces", "chunked"):
			return self.answer(wire, "attach", 200, {"message": "because"})
		pieces = 1 if self.fault.get("step") == "attach" and self.fault["how"] == "pieces" else 0
		head = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
		if self.fault.get("plain_200"):
			head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"
		wire.send(head, pieces)
		try:
			self.be_init(c, wire, pieces)
		finally:
			self.exit(c, c.code)
		return False

	def be_init(self, c, wire, pieces):
		words = self.fault.get("init", {})
		head = wire.take(16)
		assert head[:8] == b"brigjob3", head
		job = Job(wire.take(struct.unpack("<Q", head[8:])[0]))
		for *_, size in job.files:
			wire.take(size)
		self.await_event(c, c.started)
		facts = good_facts(c, job)

		def say(at, stream, data):
			"""One thing that init or the program says; the fault may put something else there."""
			if words.get("at") == at:
				return self.misspeak(words, stream, data, wire, pieces)
			wire.send(multiplexed(stream, data), pieces)
			return True

		early = job.keys[0] + b"".join(fact(k, v) for k, v in {**facts, **words.get("early", {})}.items() if v is not None)
		early += frame(SPACES, struct.pack("<8Q", *words.get("spaces", range(1, 9))))
		if not say("ready", 2, early + words.get("instead", frame(READY)) + frame(END)):
			return
		kind, size = struct.unpack("<II", wire.take(8))
		if kind != GO:
			raise Gone
		if words.get("echo"):
			self.echo(wire)
		while words.get("flood") and (words.get("deaf") or not c.ended.is_set()):
			wire.send(multiplexed(words["flood"], b"flood\n" * 4096))
		if not say("stdout", 1, b"hello\n") or not say("stderr", 2, b"oh\n"):
			return
		late = {**facts, "processes_left": 0, **words.get("late", {})}
		tail = job.keys[1] + b"".join(fact(k, v) for k, v in late.items() if v is not None)
		how = words.get("exit", struct.pack("<IIIIQQQQQQ", 1, 0, 0, 0, 1000000, 1000000, 1 << 20, 1, 0, 0))
		tail += frame(EXIT, how)
		if job.output:
			program = b"no program at all"
			tail += words.get("output", frame(OUTPUT, struct.pack("<Q", len(program))) + frame(DATA, program))
		if not say("end", 2, tail + frame(END)) or not say("after", 2, b""):
			return
		if words.get("at") == "bye":
			self.misspeak(words, 2, b"", wire, pieces)
			return
		while wire.data or wire.more():	# until brig ends the stream
			kind, size = struct.unpack("<II", wire.take(8))
			data = wire.take(size)
			if kind == MARK and not say("mark", 1, words.get("before_mark", b"") + data):
				return

	@staticmethod
	def echo(wire):
		while True:
			kind, size = struct.unpack("<II", wire.take(8))
			data = wire.take(size)
			if kind != INPUT:
				return
			wire.send(multiplexed(1, data))

	def misspeak(self, words, stream, data, wire, pieces):
		"""Returns whether init goes on."""
		how = words["how"]
		if how == "close":
			return False
		if how == "hang":
			wire.until_gone()
			return False
		if how == "half":
			wire.send(multiplexed(stream, data)[:max(1, len(data) // 2)], pieces)
			return False
		if how == "half_hang":
			wire.send(multiplexed(stream, data)[:max(1, len(data) // 2)], pieces)
			wire.until_gone()
			return False
		if how == "raw":
			wire.send(words["bytes"] + (multiplexed(stream, data) if words.get("and_on") else b""), pieces)
			return True
		if how == "say":
			wire.send(multiplexed(words.get("stream", stream), words["bytes"]), pieces)
			return True
		raise ValueError(how)


def good_facts(c, job):
	host = c.body["HostConfig"]
	sizes = [dict(word.partition("=")[::2] for word in options.split(",")) for options in host["Tmpfs"].values()]
	return {"memory_max": host["Memory"], "swap_max": 0, "pids_max": host["PidsLimit"],
		"cpu_quota_percent": host["CpuQuota"] * 100 // host["CpuPeriod"],
		"disk_max": min(job.disk, sum(int(s["size"]) for s in sizes)), "inodes_max": sum(int(s.get("nr_inodes", 0)) for s in sizes),
		"open_files_max": job.files_max, "core_dumps": "none", "uid": 1000, "gid": 1000, "uid_map": "0->0+1",
		"host_uid": 1000, "init_host_uid": 1000, "groups": "", "capabilities": "0", "no_new_privs": 1, "seccomp_mode": 2,
		"seccomp_filters": 2, "landlock": 5, "interfaces": "lo", "packets_out": 0, "root_flags": "ro,nosuid",
		"writable_mounts": "/workspace /tmp /dev/shm"}


def unquote(s):
	return re.sub("%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), s)


MISSING = object()


def change(value, edits):
	"""{"HostConfig.Memory": 1} sets, {"...": MISSING} removes."""
	for path, new in edits.items():
		*folders, last = path.split(".")
		at = value
		for folder in folders:
			at = at[folder]
		if new is MISSING:
			at.pop(last, None)
		else:
			at[last] = new(at.get(last)) if callable(new) else new


# ---- how an answer goes wrong ----------------------------------------------------------------------

def head_of(status, length):
	return b"HTTP/1.1 %d Fake\r\nContent-Type: application/json\r\nApi-Version: 1.41\r\nContent-Length: %d\r\n\r\n" % (status, length)


def with_status(wire, _status, _data, fault):
	body = json.dumps({"message": "because\u001b[31m the fake says so"}).encode()
	wire.send(head_of(fault["status"], len(body)) + body)
	return True


def with_body(wire, status, _data, fault):
	wire.send(head_of(200 if status == 204 else status, len(fault["body"])) + fault["body"])
	return True


def in_pieces(wire, status, data, _fault):
	wire.send(head_of(status, len(data)) + data, 1)
	return True


def in_chunks(wire, status, data, _fault):
	wire.send(b"HTTP/1.1 %d Fake\r\nTransfer-Encoding: chunked\r\n\r\n" % status, 3)
	for i in range(0, len(data), 7):
		wire.send(b"%x\r\n%s\r\n" % (len(data[i:i + 7]), data[i:i + 7]))
	wire.send(b"0\r\n\r\n")
	return True


def close_at_once(_wire, _status, _data, _fault):
	return False


def close_in_head(wire, status, data, _fault):
	wire.send(head_of(status, len(data))[:20])
	return False


def close_in_body(wire, status, data, _fault):
	wire.send(head_of(200 if status == 204 else status, len(data) + 10) + data)
	return False


def hang(wire, _status, _data, _fault):
	wire.until_gone()
	return False


def hang_in_body(wire, status, data, _fault):
	wire.send(head_of(200 if status == 204 else status, len(data) + 10) + data)
	wire.until_gone()
	return False


def endless(part):
	def send(wire, status, _data, _fault):
		wire.send(b"HTTP/1.1 %d Fake\r\n" % (200 if status == 204 else status))
		if part == "body":
			wire.send(b"\r\n")
		while True:
			wire.send(b"X-Endless: yes\r\n" * 1000)
	return send


def no_http(wire, _status, _data, _fault):
	wire.send(b"220 mail.example ESMTP ready\r\n")
	return False


ANSWERS = {"status": with_status, "body": with_body, "pieces": in_pieces, "chunked": in_chunks, "close": close_at_once,
	   "close_in_head": close_in_head, "close_in_body": close_in_body, "hang": hang, "hang_in_body": hang_in_body,
	   "endless_head": endless("head"), "endless_body": endless("body"), "no_http": no_http}
