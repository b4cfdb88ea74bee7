# SPDX-License-Identifier: Apache-2.0
"""
cluster.py - a real Kubernetes cluster of one node for a test run, and nothing left of it afterwards.

etcd, the API server, controller manager, scheduler and kubelet of build-cluster, with a Docker engine of its own below them, all
in the mount and network namespace of a guard (tests/engine/engine.py), which ends and removes everything however the test run ends.
Whoever asks the cluster has to be in that network namespace: Cluster.inside() is what to start a process with.

What this takes besides an engine, each found out the hard way:
  - the kubelet writes vm.overcommit_memory, kernel.panic and kernel.panic_on_oops, which no namespace has: saved and put back
  - root without CAP_SYS_RESOURCE cannot give a container a negative oom_score_adj, so a wrapper around runc raises it to 0
  - this old kubelet asks Docker for no cgroup namespace, which runtimes of today give on cgroup v2: the wrapper adds it, unless there is
    a file share-cgroup-namespace
  - no default route: with one, each lookup of a name waits for an answer that never comes
  - a network namespace with only lo has no address to bind to: a veth pair with both ends in it has
  - emptyDir in memory is bounded only with the feature gate SizeMemoryBackedVolumes (on by default since 1.22)
  - the kubelet takes a pod without an address for broken and starts it anew, so the engine has a bridge, in the guard's network only
  - there is no kube-proxy: the address of the service "kubernetes" is one more of the node's own, and the API server listens on its port

Here the kubelet's runtime is Docker (dockershim); containerd.py has the same cluster with containerd.

  cluster.py run COMMAND...   start, run COMMAND inside with KUBECONFIG and BRIG_KUBERNETES_* set, stop
"""
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "engine"))
sys.dont_write_bytecode = True
import engine

ADDRESS = "10.98.0.1"
SERVICES = "10.97.0"	# of which the first address is that of the service "kubernetes"
SERVER = f"https://{ADDRESS}:443"
CEILING = 180		# seconds until the node is ready; never decides on a machine that works
PIDS = 64		# podPidsLimit: brig's own default
MS_SHARED = 1 << 20
PAUSE = "brig-tests/pause:1"
SYSCTLS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "vm/panic_on_oom")

# An OCI runtime with what containers need on these nodes, in front of the real one.  BEFORE: more of it.
WRAPPER = """#!/usr/bin/python3 -SEs
import json, os, sys
words, program = sys.argv[1:], "PROGRAM"
if "create" in words and "--bundle" in words:
	path = os.path.join(words[words.index("--bundle") + 1], "config.json")
	with open(path) as f:
		config = json.load(f)
	config["process"]["oomScoreAdj"] = max(config["process"].get("oomScoreAdj", 0), 0)
	spaces = config["linux"]["namespaces"]
	if not any(space["type"] == "cgroup" for space in spaces) and not os.path.exists("SHARE"):
		spaces.append({"type": "cgroup"})
	with open(path, "w") as f:
		json.dump(config, f)
BEFORE
os.execv(program, [program] + words)
"""


def programs():
	found = subprocess.run([os.path.join(HERE, "build-cluster"), "--check"], stdout=subprocess.PIPE, check=False)
	if found.returncode:
		raise engine.Cannot("its programs are not built: tests/kubernetes/build-cluster builds them once, in 15 to 25 minutes")
	return found.stdout.decode().strip()


def request(method, path, token, ca, body=None, timeout=30):
	"""(status, object) of one call of the API."""
	context = ssl.create_default_context(cafile=ca)
	data = json.dumps(body).encode() if body is not None else None
	asked = urllib.request.Request(SERVER + path, data=data, method=method,
				       headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
	try:
		with urllib.request.urlopen(asked, timeout=timeout, context=context) as answer:
			return answer.status, json.loads(answer.read() or b"null")
	except urllib.error.HTTPError as e:
		text = e.read()
		try:
			return e.code, json.loads(text)
		except ValueError:
			return e.code, {"message": text.decode("utf-8", "replace")}


class ClusterGuard(engine.Guard):
	def __init__(self, folder, tell, lifeline):
		super().__init__("docker", folder, tell, lifeline)
		self.bin = programs()
		self.started = {}
		self.made_folders = []
		self.sysctls = {}

	# ---- its world ----

	def start(self):
		engine.libc.prctl(engine.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		self.save_sysctls()
		engine.own_world()
		self.own_places()
		self.own_network()
		self.start_engine()
		self.start_control_plane()
		self.start_node()

	def save_sysctls(self):
		for name in SYSCTLS:
			with open(f"/proc/sys/{name}", encoding="ascii") as f:
				self.sysctls[name] = f.read()

	def restore_sysctls(self):
		for name, value in self.sysctls.items():
			try:
				with open(f"/proc/sys/{name}", "w", encoding="ascii") as f:
					f.write(value)
			except OSError as e:
				print(f"cluster: {name} is not as it was: {e}", file=sys.stderr)

	# What programs of the node keep in fixed places: links to logs, sockets of plugins.
	places = ("/var/log", "/var/lib/kubelet")

	def own_places(self):
		for place in self.places:
			if not os.path.exists(place):
				self.made_folders.append(place)
			os.makedirs(place, exist_ok=True)
			if engine.libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, b"mode=0755,size=64m") != 0:
				raise engine.Cannot(f"no tmpfs on {place}")
		if engine.libc.mount(None, b"/", None, engine.MS_REC | MS_SHARED, None) != 0:
			raise engine.Cannot("mounts cannot be shared within the namespace")

	def own_network(self):
		for words in (["link", "set", "lo", "up"], ["addr", "add", f"{SERVICES}.1/32", "dev", "lo"],
			      ["link", "add", "eth0", "type", "veth", "peer", "name", "eth1"],
			      ["addr", "add", f"{ADDRESS}/24", "dev", "eth0"], ["link", "set", "eth0", "up"], ["link", "set", "eth1", "up"]):
			subprocess.run([engine.need("ip", "iproute2"), *words], check=True)

	# ---- its programs ----

	def spawn(self, name, words, env=None):
		path = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.folder, **(env or {})}
		with open(os.path.join(self.folder, f"{name}.log"), "wb") as out:
			self.started[name] = subprocess.Popen(words, env=path, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out,
							      start_new_session=True)
		return self.started[name]

	def wrapper(self, program, package, before=""):
		text = WRAPPER.replace("BEFORE", before).replace("PROGRAM", engine.need(program, package))
		path = engine.write(f"{self.folder}/oci-{program}", text.replace("SHARE", f"{self.folder}/share-cgroup-namespace"))
		os.chmod(path, 0o755)
		return path

	def start_engine(self):
		words, _ = engine.docker_command(self.folder, self.name)
		wrapper = self.wrapper("runc", "runc")
		at = words.index("--cgroup-parent")
		del words[at:at + 2]	# pods have parents of their own
		words[words.index("--bridge"):words.index("--bridge") + 2] = ["--bip", "10.99.0.1/24", "--ip-forward=false", "--ip-masq=false"]
		words += ["--add-runtime", f"wrapped={wrapper}", "--default-runtime", "wrapped"]
		self.process = self.spawn("dockerd", words)
		shutil.copy(os.path.join(self.folder, "dockerd.log"), os.path.join(self.folder, "log"))
		engine.wait_until_up(self.process, os.path.join(self.folder, "sock"), os.path.join(self.folder, "dockerd.log"))
		self.import_pause()

	def import_pause(self):
		"""What holds the namespaces of a pod: a program that waits."""
		rootfs = os.path.join(self.folder, "pause-image")
		os.mkdir(rootfs)
		subprocess.run([engine.need("gcc", "gcc"), "-static", "-O1", "-x", "c", "-", "-o", f"{rootfs}/pause"], check=True,
			       input=b"#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
		tar = subprocess.run(["tar", "-C", rootfs, "-c", "pause"], stdout=subprocess.PIPE, check=True).stdout
		name, _, tag = PAUSE.rpartition(":")
		changes = urllib.parse.quote('ENTRYPOINT ["/pause"]')
		status, text = engine.ask(os.path.join(self.folder, "sock"), "POST", f"/images/create?fromSrc=-&repo={name}&tag={tag}&changes={changes}",
					  body=tar, headers={"Content-Type": "application/x-tar"})
		if status != 200:
			raise engine.Cannot(f"the image of the pause container was not taken: {text!r}")

	def start_control_plane(self):
		f = self.folder
		subprocess.run([engine.need("openssl", "openssl"), "genrsa", "-out", f"{f}/sa.key", "2048"], check=True, stderr=subprocess.DEVNULL)
		self.tokens = {name: os.urandom(16).hex() for name in ("admin", "brig", "nobody")}
		engine.write(f"{f}/tokens.csv", f'{self.tokens["admin"]},admin,1,"system:masters"\n{self.tokens["brig"]},brig,2\n'
			     f'{self.tokens["nobody"]},nobody,3\n')
		for name, token in self.tokens.items():
			engine.write(f"{f}/{name}.token", token)
			os.chmod(f"{f}/{name}.token", 0o600)
		self.spawn("etcd", [engine.need("etcd", "etcd-server"), "--data-dir", f"{f}/etcd", "--unsafe-no-fsync",
				    "--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379",
				    "--listen-peer-urls", "http://127.0.0.1:2380"])
		self.spawn("apiserver", [f"{self.bin}/kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--service-cluster-ip-range={SERVICES}.0/24",
					 "--bind-address=0.0.0.0", f"--advertise-address={ADDRESS}", "--secure-port=443", "--insecure-port=0",
					 f"--cert-dir={f}/certs", f"--token-auth-file={f}/tokens.csv", "--authorization-mode=RBAC",
					 "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-signing-key-file={f}/sa.key",
					 f"--service-account-key-file={f}/sa.key", "--endpoint-reconciler-type=none",
					 "--kubelet-preferred-address-types=InternalIP"])
		self.await_call("apiserver", "/readyz", lambda status, _: status == 200, raw=True)
		kubeconfig = self.kubeconfig("admin")
		self.spawn("controller-manager", [f"{self.bin}/kube-controller-manager", f"--kubeconfig={kubeconfig}", "--leader-elect=false",
						  f"--service-account-private-key-file={f}/sa.key", "--use-service-account-credentials=false",
						  f"--root-ca-file={f}/certs/apiserver.crt", "--port=0", f"--cert-dir={f}/certs-controller",
						  f"--flex-volume-plugin-dir={f}/volume-plugins"])
		self.spawn("scheduler", [f"{self.bin}/kube-scheduler", f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--port=0",
					 f"--cert-dir={f}/certs-scheduler"])

	def kubeconfig(self, who):
		f = self.folder
		return engine.write(f"{f}/{who}.kubeconfig", json.dumps({
			"apiVersion": "v1", "kind": "Config", "current-context": "c",
			"clusters": [{"name": "c", "cluster": {"server": SERVER, "certificate-authority": f"{f}/certs/apiserver.crt"}}],
			"users": [{"name": "u", "user": {"token": self.tokens[who]}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))

	def start_node(self):
		f = self.folder
		for root in engine.cgroup_roots():
			os.makedirs(os.path.join(root, self.name), exist_ok=True)
		config = engine.write(f"{f}/kubelet.json", json.dumps({
			"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": ADDRESS,
			"authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
			"cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.name}", "failSwapOn": False, "enforceNodeAllocatable": [],
			"podPidsLimit": PIDS, "featureGates": {"SizeMemoryBackedVolumes": True}, "resolvConf": "",
			"imageGCHighThresholdPercent": 100, "evictionHard": {"memory.available": "1Mi"}, "healthzPort": 0}))
		self.spawn("kubelet", [f"{self.bin}/kubelet", f"--config={config}", f"--kubeconfig={f}/admin.kubeconfig", f"--root-dir={f}/kubelet",
				       f"--node-ip={ADDRESS}", "--hostname-override=node1", f"--cert-dir={f}/certs-kubelet",
				       f"--volume-plugin-dir={f}/volume-plugins", *self.runtime_words()])
		self.await_call("kubelet", "/api/v1/nodes/node1", lambda status, node: status == 200 and any(
			c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", [])))
		self.await_call("controller-manager", "/api/v1/namespaces/default/serviceaccounts/default", lambda status, _: status == 200)

	def runtime_words(self):
		"""What the kubelet makes containers with."""
		return ["--container-runtime=docker", f"--docker-endpoint=unix://{self.folder}/sock", "--network-plugin=",
			f"--pod-infra-container-image={PAUSE}", f"--experimental-dockershim-root-directory={self.folder}/dockershim"]

	def await_call(self, name, path, good, raw=False):
		ca = f"{self.folder}/certs/apiserver.crt"

		def call():
			try:
				status, said = request("GET", path, self.tokens["admin"], ca, timeout=5)
			except ValueError:
				if raw:
					return True	# "ok" is no JSON
				raise
			return good(status, said) or f"{status} {json.dumps(said)[:300]}"
		self.await_answer(name, call)

	def await_answer(self, name, call):
		"""Until call() is True; what else it returns is the last word of a program that is late."""
		deadline, last = time.monotonic() + CEILING, ""
		while True:
			log = os.path.join(self.folder, name + ".log")
			if self.started[name].poll() is not None:
				raise engine.Cannot(f"{name} ended: {engine.last_lines(log)}")
			try:
				last = call()
				if last is True:
					return
			except (OSError, ValueError) as e:
				last = str(e)
			if time.monotonic() > deadline:
				raise engine.Cannot(f"{name} is not up after {CEILING} s: {last}; {engine.last_lines(log)}")
			time.sleep(0.2)

	# ---- the end ----

	def remove(self):
		self.restore_sysctls()
		for place in self.made_folders:
			engine.libc.umount2(place.encode(), 2)
			try:
				os.rmdir(place)
			except OSError:
				pass
		keep = os.environ.get("BRIG_TEST_CLUSTER_LOGS")
		if keep:
			os.makedirs(keep, exist_ok=True)
			for name in os.listdir(self.folder):
				if name.endswith(".log"):
					shutil.copy(os.path.join(self.folder, name), keep)
		super().remove()


class Cluster(engine.Engine):
	"""A started cluster.  Raises engine.Cannot."""
	runtime = "dockershim"

	def guard(self, tell, lifeline):
		return ClusterGuard(self.folder, tell, lifeline)

	def take_images(self, names):
		"""Of the engine, in which they were built; the node has the same one."""

	def __init__(self):
		programs()
		super().__init__("docker")

	def path(self, name):
		return os.path.join(self.folder, name)

	def inside(self, words):
		"""A command that runs in the cluster's network."""
		return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *words]

	def env(self, who="brig"):
		return {"KUBECONFIG": self.path("admin.kubeconfig"), "BRIG_KUBERNETES_SERVER": SERVER,
			"BRIG_KUBERNETES_TOKEN_FILE": self.path(f"{who}.token"), "BRIG_KUBERNETES_CA_FILE": self.path("certs/apiserver.crt")}

	def kubectl(self, *words, **options):
		return subprocess.run(self.inside([os.path.join(programs(), "kubectl"), *words]), env={**os.environ, **self.env(), "HOME": self.folder},
				      stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)


def main(kind=Cluster):
	words = sys.argv[1:]
	if words[:1] != ["run"] or len(words) < 2:
		print(__doc__.strip(), file=sys.stderr)
		return 2
	try:
		with kind() as cluster:
			child = subprocess.Popen(cluster.inside(words[1:]), env={**os.environ, **cluster.env(), "DOCKER_HOST": cluster.host,
										"CLUSTER": cluster.folder, "CLUSTER_GUARD": str(cluster.pid)})
			for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
				signal.signal(sig, lambda s, _: child.send_signal(s))
			status = child.wait()
	except engine.Cannot as e:
		print(f"cluster: cannot be started here: {e}", file=sys.stderr)
		return engine.CANNOT
	return status if status >= 0 else 128 - status


if __name__ == "__main__":
	sys.exit(main())
