# SPDX-License-Identifier: Apache-2.0
"""Brokers, workers and fronts on one machine, each with an address of its own.

Every broker, worker and front is in a network namespace that this file makes, joined by veth pairs to a bridge in one more
namespace, so that links can be cut and nothing is heard outside.  A namespace is that of a process that sleeps, and gone with
it: `ip netns` would leave a mount behind, and its `exec` mounts /sys anew, below which brig looks for cgroups.  Fronts are asked over unix sockets, which know no network namespaces.
"""
import base64
import ctypes
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time

import harness

sys.path.insert(0, os.path.join(harness.TESTS, "scenario"))
import schema

with open(os.path.join(harness.ROOT, "data", "openapi.json"), encoding="utf-8") as _f:
	API = json.load(_f)
PATIENCE = 120 * max(harness.SLACK, 1)
SOON = 3	# seconds, after which a node that says nothing of a job is taken for dead, in cases in which one dies
CLONE_NEWNET = 0x40000000
SLEEP = "import time\nprint('up', flush=True)\ntime.sleep({})\nprint('whole')"


def wait_until(what, condition, patience=PATIENCE, step=0.05):
	end = time.monotonic() + patience
	while time.monotonic() < end:
		value = condition()
		if value:
			return value
		time.sleep(step)
	raise harness.Failed(f"{what}: not within {patience:.0f} s")


def described(t, document, name):
	t.equal(schema.errors(document, {"$ref": "#/components/schemas/" + name}, API), [], f"where it is no {name}")


def token(node, name, *words):
	"""Headers with a new token of this front."""
	p = node.command("token", "create", name, "--state", node.state, "--json", *words)
	if p.returncode:
		raise harness.Failed(f"brig token create: {p.stderr}")
	return {"Authorization": "Bearer " + json.loads(p.stdout)["secret"]}


def began(c, n=1):
	"""So many jobs have a claim."""
	nats = c.nats()
	try:
		wait_until(f"{n} claims", lambda: nats.messages("KV_brig-claims") >= n)
	finally:
		nats.close()


class Net:
	"""A network namespace."""
	def __init__(self):
		self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
		own = os.readlink("/proc/self/ns/net")
		self.path = f"/proc/{self.holder.pid}/ns/net"
		wait_until("a network namespace", lambda: os.readlink(self.path) != own, step=0.005)
		wait_until("its holder", lambda: open(f"/proc/{self.holder.pid}/comm").read().strip() == "sleep", step=0.005)

	def inside(self, function):
		"""What a function gives that this thread calls in it: a socket stays where it was made."""
		libc = ctypes.CDLL(None, use_errno=True)
		here, there = (os.open(path, os.O_RDONLY) for path in ("/proc/self/ns/net", self.path))
		try:
			if libc.setns(there, CLONE_NEWNET):
				raise OSError(ctypes.get_errno(), "setns")
			try:
				return function()
			finally:
				libc.setns(here, CLONE_NEWNET)
		finally:
			os.close(here)
			os.close(there)

	def enter(self):
		return ["nsenter", f"--net={self.path}"]

	def ip(self, *words):
		p = subprocess.run([*self.enter(), "ip", *words], capture_output=True, text=True)
		if p.returncode:
			raise harness.Failed(f"ip {' '.join(words)}: {p.stderr.strip()}")

	def remove(self):
		self.holder.kill()
		self.holder.wait()


def children(pid):
	"""Those of the process, by the names that they gave themselves."""
	found = {}
	try:
		with open(f"/proc/{pid}/task/{pid}/children") as f:
			pids = f.read().split()
	except OSError:
		return found
	for child in pids:
		try:
			with open(f"/proc/{child}/comm") as f:
				found[f.read().strip()] = int(child)
		except OSError:
			pass
	return found


class UnixConnection(http.client.HTTPConnection):
	def __init__(self, path, timeout):
		super().__init__("localhost", timeout=timeout)
		self.path = path

	def connect(self):
		self.sock = socket.socket(socket.AF_UNIX)
		self.sock.settimeout(self.timeout)
		self.sock.connect(self.path)


class Answer:
	def __init__(self, status, body):
		self.status, self.body = status, body

	@property
	def json(self):
		return json.loads(self.body)


class Place:
	"""Something that runs in a namespace of its own."""
	def __init__(self, cluster, kind):
		self.cluster, self.number, self.kind = cluster, cluster.next_address(), kind
		self.name = f"{kind}{self.number}"
		self.net = Net()
		self.address = f"10.88.0.{self.number}"
		self.dir = os.path.join(cluster.dir, self.name)
		self.proc = None
		os.makedirs(self.dir, exist_ok=True)
		cluster.places.append(self)
		self.outer = f"v{self.number}"
		self.net.ip("link", "set", "lo", "up")
		cluster.hub.ip("link", "add", self.outer, "type", "veth", "peer", "name", "eth0", "netns", str(self.net.holder.pid))
		self.net.ip("addr", "add", f"{self.address}/24", "dev", "eth0")
		self.net.ip("link", "set", "eth0", "up")
		cluster.hub.ip("link", "set", self.outer, "master", "bridge", "up")

	def start(self, *words):
		self.out = open(os.path.join(self.dir, "out"), "ab")
		self.err = open(os.path.join(self.dir, "err"), "ab")
		self.proc = subprocess.Popen([*self.net.enter(), *words], stdin=subprocess.DEVNULL, stdout=self.out,
					     stderr=self.err, env={**harness.clean_env(), **self.cluster.env}, cwd=self.dir)

	def said(self, which="err"):
		with open(os.path.join(self.dir, which), encoding="utf-8", errors="replace") as f:
			return f.read()

	def kill(self, name=None):
		"""kill -9: all of it, or one of its processes, and none if it is about to be replaced."""
		pid = self.proc.pid if name is None else children(self.proc.pid).get(name)
		if not pid:
			return False
		try:
			os.kill(pid, signal.SIGKILL)
		except ProcessLookupError:
			return False
		if name is None:
			self.proc.wait()
		return True

	def end(self, patience=PATIENCE):
		if self.proc is None or self.proc.poll() is not None:
			return
		self.proc.terminate()
		try:
			self.proc.wait(patience)
		except subprocess.TimeoutExpired:
			self.proc.kill()
			self.proc.wait()

	def cut(self):
		self.cluster.hub.ip("link", "set", self.outer, "down")

	def mend(self):
		self.cluster.hub.ip("link", "set", self.outer, "up")

class Broker(Place):
	def __init__(self, cluster):
		super().__init__(cluster, "broker")
		self.url = f"nats://{self.address}:4222"

	def configure(self):
		others = [f"nats://{b.address}:6222" for b in self.cluster.brokers]
		config = [f'server_name: {self.name}', f'listen: "{self.address}:4222"', 'http: "127.0.0.1:8222"',
			  f'jetstream {{ store_dir: "{self.dir}/js", max_file: 8G, max_mem: 256M }}']
		if self.cluster.tls:
			config.append(f'tls {{ cert_file: "{self.cluster.dir}/right.pem", key_file: "{self.cluster.dir}/right.key" }}')
			config.append("authorization { user: brig, password: secret }")
		config += self.cluster.broker_lines
		if len(others) > 1:
			config.append(f'cluster {{ name: brig, listen: "{self.address}:6222", routes: {json.dumps(others)} }}')
		path = os.path.join(self.dir, "nats.conf")
		with open(path, "w") as f:
			f.write("\n".join(config) + "\n")
		return path

	def begin(self):
		self.start("nats-server", "-c", self.configure())

	def subscriptions(self):
		"""How often clients listen to what, but for their inboxes: { subject: n }."""
		found = {}
		with Inside(self.net):
			c = http.client.HTTPConnection("127.0.0.1", 8222, timeout=PATIENCE)
			c.connect()
		try:
			c.request("GET", "/connz?subs=1")
			for row in json.load(c.getresponse())["connections"]:
				for subject in row.get("subscriptions_list", []):
					if not subject.startswith("_INBOX."):
						found[subject] = found.get(subject, 0) + 1
		finally:
			c.close()
		return found


class Node(Place):
	"""A worker or a front."""
	def __init__(self, cluster, kind):
		super().__init__(cluster, kind)
		self.state = os.path.join(self.dir, "state")
		p = subprocess.run([harness.brig_path(), "worker", "--show-key", "--state", self.state], capture_output=True, text=True,
				   env=harness.clean_env())
		if p.returncode:
			raise harness.Failed(f"brig worker --show-key: {p.stderr}")
		self.key = p.stdout.strip()
		self.extra = ["--jobs", str(cluster.jobs)] if kind == "worker" else []

	def begin(self, *extra):
		c = self.cluster
		if c.tls and not extra:
			self.extra += ["--queue-ca", c.ca]
		self.extra = list(extra) or self.extra
		words = [harness.brig_path(), "worker" if self.kind == "worker" else "serve", "--queue", c.url, "--nodes", c.nodes_file,
			 "--node-name", self.name, "--state", self.state, "--queue-patience", f"{c.patience}s"]
		if self.kind == "front":
			self.socket = os.path.join(self.dir, "s")
			words += ["--unix", self.socket, "--listen", "127.0.0.1:0", "--socket", "none"]
		self.start(*words, *self.extra, *c.node_words)

	def wait(self):
		wait_until(f"{self.name} is ready and hears brokers: {self.said()}",
			   lambda: "ready" in self.said("out") and "the brokers are there" in self.said())
		return self

	def wait_again(self):
		wait_until(f"{self.name} is ready again", lambda: self.said("out").count("ready http") >= 2 and self.said().count("the brokers are there") >= 2)
		return self

	def command(self, *words):
		return subprocess.run([*self.net.enter(), harness.brig_path(), *words], capture_output=True, text=True,
				      env={**harness.clean_env(), **self.cluster.env}, cwd=self.dir)

	def ask(self, method, path, body=None, headers=(), timeout=PATIENCE):
		c = UnixConnection(self.socket, timeout)
		try:
			c.request(method, path, json.dumps(body) if body is not None else None,
				  {**({"Content-Type": "application/json"} if body is not None else {}), **dict(headers)})
			r = c.getresponse()
			return Answer(r.status, r.read())
		finally:
			c.close()

	def run(self, code, **more):
		return self.ask("POST", "/v1/executions", {"language": "python", "code": code, **more})

	def accept(self, code, **more):
		a = self.run(code, **{"async": True, **more})
		if a.status != 202:
			raise harness.Failed(f"not accepted: {a.status} {a.body[:300]!r}")
		return a.json["id"]

	def look(self, ident):
		return self.ask("GET", f"/v1/executions/{ident}")

	def result(self, ident, patience=PATIENCE):
		def ended():
			a = self.look(ident)
			return a.json if a.status == 200 and a.json["state"] in ("finished", "lost") else None
		return wait_until(f"{ident} ends", ended, patience)

	def verified(self):
		p = subprocess.run([harness.brig_path(), "audit", "verify", "--state", self.state], capture_output=True, text=True,
				   env=harness.clean_env())
		return p.returncode == 0, p.stdout + p.stderr


class Cluster:
	def __init__(self, t, brokers=1, workers=1, fronts=1, jobs=4, later=0, tls=False, patience=60, url=None, broker_lines=(), node_words=(), env=None, gives=False):
		"""later: so many of the workers are known, and begin when the case says so.  url: of the first broker, for all nodes;
		broker_lines and node_words: what configurations of brokers and commands of nodes have besides; env: variables of nodes.  gives: workers
		believe each other what a package set is."""
		for need in ("nats-server", "nsenter", "ip"):
			if not any(os.access(os.path.join(d, need), os.X_OK) for d in os.environ.get("PATH", "/usr/bin:/usr/sbin").split(":") + ["/usr/sbin", "/sbin"]):
				raise harness.Skipped(f"needs {need}: tools/bootstrap queue")
		if not harness.is_root():
			raise harness.Skipped("needs root, for network namespaces")
		self.t, self.dir, self.places, self.addresses = t, os.path.join(t.dir, "cluster"), [], itertools.count(1)
		os.makedirs(self.dir)
		self.hub = None
		self.jobs, self.later, self.tls, self.patience = jobs, later, tls, patience
		self.sizes = (brokers, workers, fronts)
		self.own_url, self.broker_lines, self.node_words = url, list(broker_lines), list(node_words)
		self.env, self.gives = env or {}, gives

	def next_address(self):
		return next(self.addresses)

	def __enter__(self):
		try:
			self.hub = Net()
			self.hub.ip("link", "add", "bridge", "type", "bridge")
			self.hub.ip("link", "set", "bridge", "up")
			self.hub.ip("addr", "add", "10.88.0.254/24", "dev", "bridge")
			brokers, workers, fronts = self.sizes
			self.brokers = [Broker(self) for _ in range(brokers)]
			self.url = self.own_url or ",".join(b.url for b in self.brokers)
			if self.tls:
				self.make_certificates()
			self.nodes_file = os.path.join(self.dir, "nodes")
			self.workers = [Node(self, "worker") for _ in range(workers)]
			self.fronts = [Node(self, "front") for _ in range(fronts)]
			self.write_nodes()
			for b in self.brokers:
				b.begin()
			begun = self.workers[:workers - self.later]
			for n in begun:
				n.begin()
			for n in self.fronts:
				n.begin()
			for n in begun + self.fronts:
				n.wait()
		except BaseException:
			self.__exit__(None, None, None)
			raise
		return self

	def make_certificates(self):
		for name in ("right", "other"):
			p = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
					    "-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{self.brokers[0].address}",
					    "-keyout", os.path.join(self.dir, f"{name}.key"), "-out", os.path.join(self.dir, f"{name}.pem")], capture_output=True)
			if p.returncode:
				raise harness.Failed(f"openssl: {p.stderr}")
		self.url = f"tls://brig:secret@{self.brokers[0].address}:4222"
		self.ca, self.other_ca = os.path.join(self.dir, "right.pem"), os.path.join(self.dir, "other.pem")

	def write_nodes(self):
		with open(self.nodes_file, "w") as f:
			f.writelines(f"{n.kind} {n.name} {n.key}{' gives' if self.gives else ''}\n" for n in self.workers + self.fronts)

	def __exit__(self, kind, value, trace):
		nodes = [p for p in self.places if not isinstance(p, Broker)]
		if kind and os.environ.get("BRIG_TEST_SHOW"):
			for p in nodes:
				print(f"--- {p.name}\n{p.said() if p.proc else ''}", flush=True)
		for p in nodes:
			if p.proc and p.proc.poll() is None:
				p.proc.terminate()
		for p in nodes:
			p.end()
		for p in self.places:
			if isinstance(p, Broker) and p.proc:
				p.proc.kill()
				p.proc.wait()
		for p in self.places:
			p.net.remove()
		if self.hub:
			self.hub.remove()

	def nats(self, broker=0):
		return Nats(self.hub, self.brokers[broker].address)

	def asked(self, question, patience=PATIENCE):
		"""What a broker answers, of several times and brokers: while a leader is chosen nobody does."""
		end = time.monotonic() + patience
		for broker in itertools.cycle(range(len(self.brokers))):
			try:
				nats = self.nats(broker)
				nats.patience = 3
				try:
					return question(nats)
				finally:
					nats.close()
			except (OSError, KeyError, ValueError, harness.Failed):
				if time.monotonic() > end:
					raise
				time.sleep(0.2)


class Inside:
	"""What is connected by this thread meanwhile is connected from that network namespace."""
	def __init__(self, net):
		self.libc = ctypes.CDLL(None, use_errno=True)
		self.net = net

	def __enter__(self):
		self.here = os.open("/proc/self/ns/net", os.O_RDONLY)
		there = os.open(self.net.path, os.O_RDONLY)
		try:
			if self.libc.setns(there, CLONE_NEWNET):
				raise OSError(ctypes.get_errno(), "setns")
		finally:
			os.close(there)

	def __exit__(self, kind, value, trace):
		self.libc.setns(self.here, CLONE_NEWNET)
		os.close(self.here)


class Nats:
	"""A neighbour on the same brokers, who may say whatever he wants: the plain protocol of NATS."""
	def __init__(self, net, address):
		with Inside(net):
			self.sock = socket.create_connection((address, 4222), PATIENCE)
		self.file = self.sock.makefile("rb")
		self.file.readline()
		self.serial, self.patience = 0, PATIENCE
		self.send(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n')

	def send(self, data):
		self.sock.sendall(data)

	def publish(self, subject, data=b"", reply="", headers=None):
		if headers:
			head = b"NATS/1.0\r\n" + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items()) + b"\r\n"
			self.send(f"HPUB {subject} {reply} {len(head)} {len(head) + len(data)}\r\n".encode() + head + data + b"\r\n")
		else:
			self.send(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")

	def subscribe(self, subject):
		self.serial += 1
		self.send(f"SUB {subject} {self.serial}\r\n".encode())
		self.flush()

	def flush(self):
		self.send(b"PING\r\n")
		while self.file.readline() != b"PONG\r\n":
			pass

	def next(self):
		"""The next message: its subject and its bytes, without headers."""
		self.sock.settimeout(self.patience)
		while True:
			words = self.file.readline().decode().split()
			if not words:
				raise harness.Failed("the broker has hung up")
			if words[0] == "PING":
				self.send(b"PONG\r\n")
			if words[0] == "MSG":
				return words[1], self.file.read(int(words[-1]) + 2)[:-2]
			if words[0] == "HMSG":
				data = self.file.read(int(words[-1]) + 2)[:-2]
				return words[1], data[int(words[-2]):]

	def request(self, subject, data=b"", headers=None):
		self.serial += 1
		inbox = f"_INBOX.test{os.getpid()}.{self.serial}"
		self.send(f"SUB {inbox} {self.serial}\r\n".encode())
		self.publish(subject, data, inbox, headers)
		_, answer = self.next()
		self.send(f"UNSUB {self.serial}\r\n".encode())
		return answer

	def get(self, bucket, key):
		"""What is in a bucket, or None."""
		stream, subject = ("BRIG_JOBS", f"brig.jobs.*.*.{key}") if bucket == "jobs" else (f"KV_brig-{bucket}", f"$KV.brig-{bucket}.{key}")
		doc = json.loads(self.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps({"last_by_subj": subject}).encode()))
		return base64.b64decode(doc["message"]["data"]) if "message" in doc else None

	def put(self, bucket, key, data):
		return json.loads(self.request(f"$KV.brig-{bucket}.{key}", data))

	def keys(self, bucket):
		doc = json.loads(self.request(f"$JS.API.STREAM.INFO.KV_brig-{bucket}", b'{"subjects_filter":">"}'))
		return [subject.removeprefix(f"$KV.brig-{bucket}.") for subject in doc["state"].get("subjects") or {}]

	def messages(self, stream):
		return json.loads(self.request(f"$JS.API.STREAM.INFO.{stream}"))["state"]["messages"]

	def leader(self, stream):
		return json.loads(self.request(f"$JS.API.STREAM.INFO.{stream}"))["cluster"]["leader"]

	def close(self):
		self.file.close()
		self.sock.close()
