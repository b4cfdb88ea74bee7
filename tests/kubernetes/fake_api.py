# SPDX-License-Identifier: Apache-2.0
"""
fake_api.py - an API server of Kubernetes that exists only as far as brig can see it, and that breaks where it is told to.

It knows pods of one namespace; what it adds to them and says of them is recorded from a real cluster (recorded/answers.json).  Behind
attach it speaks v4.channel.k8s.io and what brig's own init says, which it has of the fake engine (tests/docker/fake_engine.py), as it
has the ways in which an answer can go wrong.  No pod is ever run.  What it holds afterwards is what brig left behind.
"""
import copy
import json
import os
import socket
import struct
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "docker"))
import fake_engine as fake

with open(os.path.join(HERE, "recorded", "answers.json"), encoding="utf-8") as f:
	RECORDED = json.load(f)

# The requests of one run, in order; looks at the pod are told apart by when they come.
STEPS = ["version", "create", "look_starting", "attach", "look_ready", "look_ended", "delete"]
NUMBERS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


class WebSocket:
	"""What fake.Engine.be_init calls a wire, over messages with a channel in front; frames of an engine become such messages."""
	def __init__(self, wire, fault):
		self.wire, self.fault, self.data = wire, fault, b""

	def message(self, channel, data):
		body = bytes([channel]) + data
		head = bytes([0x82, len(body)]) if len(body) < 126 else bytes([0x82, 126]) + struct.pack(">H", len(body)) \
			if len(body) < 65536 else bytes([0x82, 127]) + struct.pack(">Q", len(body))
		return head + body

	def more(self):
		"""One message of brig's; False when it is gone."""
		try:
			first, second = self.wire.take(2)
			size = second & 127
			if size == 126:
				size = struct.unpack(">H", self.wire.take(2))[0]
			elif size == 127:
				size = struct.unpack(">Q", self.wire.take(8))[0]
			mask = self.wire.take(4)
			body = bytes(b ^ mask[i % 4] for i, b in enumerate(self.wire.take(size)))
		except fake.Gone:
			return False
		if not second & 128:
			raise AssertionError("a client's frame is not masked")
		if first & 15 == 8:
			return False
		if first & 15 == 2 and body[:1] == b"\0":
			self.data += body[1:]
		return True

	def take(self, n):
		while len(self.data) < n:
			if not self.more():
				raise fake.Gone
		piece, self.data = self.data[:n], self.data[n:]
		return piece

	def send(self, data, piece=0):
		if data[1:4] != b"\0\0\0":
			self.wire.send(data)
			return
		while data:
			channel, size = data[0], struct.unpack(">I", data[4:8])[0] if len(data) >= 8 else 0
			if len(data) < 8 + size:	# half of something: the connection ends in a message
				self.wire.send(self.message(channel, b"x" * 200)[:100])
				return
			self.wire.send(self.message(self.fault.get("channel", channel), data[8:8 + size]), piece)
			data = data[8 + size:]

	def until_gone(self):
		self.wire.until_gone()


class Api(fake.Engine):
	def __init__(self, fault=None):	# pylint: disable=super-init-not-called
		said = (fault or {}).get("init", {})
		says = {part: {"root_changed": 0, **said.get(part, {})} for part in ("early", "late")}	# an engine is asked for it
		self.fault = {**(fault or {}), "init": {**said, **says}}
		self.pods, self.requests, self.sockets = {}, [], []
		self.containers = {}
		self.lock, self.over = threading.Lock(), threading.Event()
		self.made, self.trouble, self.tls = 0, None, True
		self.attached = False
		self.listening = socket.create_server(("127.0.0.1", 0), backlog=64)
		self.listening.settimeout(2)
		self.address = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
		self.threads = [threading.Thread(target=self.accept)]
		self.threads[0].start()

	def serve(self, sock):
		try:
			wire = fake.Wire(self, sock)	# plain HTTP: on this host only
			while self.one_request(wire):
				pass
		except (fake.Gone, ConnectionError):
			pass
		except Exception as e:	# pylint: disable=broad-except
			self.trouble = self.trouble or repr(e)
			raise
		finally:
			with self.lock:
				self.sockets.remove(sock)
			sock.close()

	def route(self, wire, method, path, query, body):
		folder = "/api/v1/namespaces/default/pods"
		if path == "/version":
			return self.answer(wire, "version", 200, {**RECORDED["version"], "minor": self.fault.get("minor", "20")})
		if path.startswith("/apis/node.k8s.io/v1/runtimeclasses/"):
			known = path.endswith("/gvisor")
			return self.answer(wire, "runtime", 200 if known else 404, {} if known else RECORDED["status"]["404"])
		if path == folder and method == "POST":
			return self.create_pod(wire, json.loads(body))
		if path == folder and method == "GET":
			return self.answer(wire, "list", 200, {"kind": "PodList", "items": list(self.pods.values())})
		name, _, verb = path[len(folder) + 1:].partition("/")
		if not path.startswith(folder + "/") or name not in self.pods:
			return self.answer(wire, None, 404, RECORDED["status"]["404"])
		if method == "DELETE":
			return self.delete_pod(wire, name, json.loads(body))
		return self.attach_pod(wire, name, query) if verb == "attach" else self.look(wire, name)

	def create_pod(self, wire, asked):
		self.asked = asked
		pod = copy.deepcopy(asked)
		name = pod["metadata"]["name"]
		if name in self.pods:
			return self.answer(wire, "create", 409, RECORDED["status"]["409"])
		pod["metadata"].update(RECORDED["added"]["metadata"], uid=f"uid-{len(self.requests)}", creationTimestamp="2026-01-01T00:00:00Z")
		pod["spec"].update(copy.deepcopy(RECORDED["added"]["spec"]))
		for key in [k for k, v in pod["spec"].items() if v is False and k in ("hostNetwork", "hostPID", "hostIPC")]:
			del pod["spec"][key]	# the server leaves out what is false
		pod["spec"]["containers"][0].update(RECORDED["added"]["container"])
		fake.change(pod, self.fault.get("pod", {}))
		pod["status"] = copy.deepcopy(RECORDED[self.fault.get("state", "running")])
		refused = self.fault.get("step") == "create" and 400 <= self.fault.get("status", 0) < 500 and self.made < self.fault.get("times", 1)
		if not refused:	# any other answer may be lost on its way
			self.pods[name] = pod
		return self.answer(wire, "create", 201, pod)

	def look(self, wire, name):
		pod = self.pods[name]
		c = self.containers.get(name)
		step = "look_starting" if not self.attached else "look_ended" if c and c.ended.is_set() else "look_ready"
		return self.answer(wire, step, 200, pod)

	def delete_pod(self, wire, name, options):
		uid = options.get("preconditions", {}).get("uid")
		if uid and uid != self.pods[name]["metadata"]["uid"]:
			return self.answer(wire, "delete", 409, RECORDED["status"]["409"])
		if self.fault.get("step") == "delete" and self.fault.get("how") == "status":
			return self.answer(wire, "delete", 200, {})
		if options["gracePeriodSeconds"] == 0 or self.fault.get("state", "running") != "running":
			del self.pods[name]
		else:	# its node ends it
			self.pods[name]["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 137, "reason": "Error"}}
		return self.answer(wire, "delete", 200, {"kind": "Status", "status": "Success"})

	# ---- attach ----

	def attach_pod(self, wire, name, query):
		self.attached = True
		if self.fault.get("step") == "attach" and self.fault.get("how") in fake.ANSWERS:
			return self.answer(wire, "attach", 400, {"message": "because"})
		wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
			  b"Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n")
		pod = self.pods[name]
		c = self.containers[name] = fake.Container(name, name, {"HostConfig": limits_of(pod)})
		c.started.set()
		messages = WebSocket(wire, self.fault)
		for channel in (1, 2, 3):	# as the real one begins
			wire.send(messages.message(channel, b""))
		if self.fault.get("ping"):
			wire.send(b"\x89\x04ping")
		try:
			self.be_init(c, messages, 0)
		finally:
			ended = copy.deepcopy(RECORDED["oom"] if self.fault.get("ends") == "oom" else RECORDED["running"])
			if self.fault.get("ends") not in ("oom", None):
				ended.update(self.fault["ends"])
			elif self.fault.get("ends") is None:
				ended["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
			if name in self.pods:
				self.pods[name]["status"] = ended
			c.ended.set()
		return False


def quantity(text):
	for suffix, factor in NUMBERS.items():
		if text.endswith(suffix):
			return int(text[:-2]) * factor
	return int(text)


def limits_of(pod):
	"""What init would read inside, in the words of the fake engine."""
	container = pod["spec"]["containers"][0]
	most = container["resources"]["limits"]
	places = {m["mountPath"]: m["name"] for m in container["volumeMounts"] if not m.get("readOnly")}
	sizes = {v["name"]: quantity(v["emptyDir"]["sizeLimit"]) for v in pod["spec"]["volumes"] if "emptyDir" in v}
	return {"Memory": quantity(most["memory"]), "PidsLimit": 64, "CpuQuota": int(most["cpu"][:-1]) * 100, "CpuPeriod": 100000,
		"Tmpfs": {path: f"size={sizes[name]},nr_inodes=1" for path, name in places.items()}}


