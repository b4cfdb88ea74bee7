# SPDX-License-Identifier: Apache-2.0
"""
containerd.py - the cluster of cluster.py, whose kubelet makes containers with a containerd of its own, by CRI.

The Docker engine is there as before, but only builds images: they go from it into containerd.  Pods have an address of a bridge by
CNI, and there is a choice of runtimes for RuntimeClass objects (HANDLERS).  What that took:
  - the kubelet of 1.20 speaks CRI v1alpha2, which containerd has up to 1.6
  - a node without CNI is not ready: the plugins bridge and loopback of Debian's containernetworking-plugins, with a file of the test's
  - libcni caches its results in /var/lib/cni, whatever it is configured with
  - crun (1.8) does not know hybrid cgroups: its wrapper hides the second hierarchy, in a mount namespace of its own
  - Debian has runsc without its shim for containerd.  runc's shim waits for the process whose number runsc writes down, which is the
    sandbox's: of a second container in one sandbox it would never see the end.  So each container has a sandbox of its own, and what
    holds the pod's namespaces is started by runc
  - of one that has ended already runsc kill says so in words that this shim does not know: they are translated
  - runsc (of 2022) refuses to take over the interfaces of a network namespace on kernels of today, which it mistakes for the machine's
    own: --network=none, the container has lo only

  containerd.py run COMMAND...   as cluster.py does
"""
import os
import subprocess
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cluster
import engine

PLUGINS = "/usr/lib/cni"
NAMESPACE = "k8s.io"	# of containerd's, in which CRI keeps what it has
HANDLERS = ("runc", "crun", "runsc")	# the first is for pods that name none

CONFIG = """version = 2
root = "FOLDER/containerd"
state = "FOLDER/containerd-state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
	"io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
address = "FOLDER/cri"
[plugins."io.containerd.internal.v1.opt"]
path = "FOLDER/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/PAUSE"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "PLUGINS"
conf_dir = "FOLDER/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
"""
HANDLER = """[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.NAME]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.NAME.options]
BinaryName = "PATH"
"""
CNI = """{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": false,
"ipam": {"type": "host-local", "dataDir": "FOLDER/cni-addresses", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "10.96.0.0/24"}]]}}]}
"""
HIDE_HYBRID = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if os.path.ismount("/sys/fs/cgroup/unified"):
	if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x4000 | 1 << 18, None) or libc.umount2(b"/sys/fs/cgroup/unified", 2):
		sys.exit("crun: the second hierarchy cannot be hidden")
"""
OWN_SANDBOX = """
def mine(name):
	return os.path.join("FOLDER/runsc-containers", name)
if "create" in words and config.get("annotations", {}).get("io.kubernetes.cri.container-type") == "container":
	config["annotations"] = {}
	spaces[:] = [space for space in spaces if space["type"] != "cgroup"]	# which it does not know
	with open(path, "w") as f:
		json.dump(config, f)
	open(mine(words[-1]), "w").close()
if any("/" not in word and os.path.exists(mine(word)) for word in words):
	words[:0] = ["--network=none"]
	if "kill" in words:
		import subprocess
		done = subprocess.run([program] + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
		over = b"not running" in done.stdout
		os.write(2, b"container not running" if over else done.stdout)
		sys.exit(done.returncode)
else:
	program = "RUNC"
"""


class ContainerdGuard(cluster.ClusterGuard):
	places = (*cluster.ClusterGuard.places, "/var/lib/cni")

	def start_engine(self):
		super().start_engine()
		f = self.folder
		if not os.path.exists(os.path.join(PLUGINS, "bridge")):
			raise engine.Cannot(f"there is no {PLUGINS}/bridge (package containernetworking-plugins)")
		for made in ("cni", "runsc-containers"):
			os.mkdir(f"{f}/{made}")
		engine.write(f"{f}/cni/pods.conflist", CNI.replace("FOLDER", f))
		text = CONFIG.replace("PLUGINS", PLUGINS).replace("PAUSE", cluster.PAUSE)
		for name in HANDLERS:
			text += HANDLER.replace("NAME", name).replace("PATH", self.handler(name))
		config = engine.write(f"{f}/containerd.toml", text.replace("FOLDER", f))
		self.spawn("containerd", [engine.need("containerd", "containerd"), "--config", config, "--log-level", "info"])
		self.await_containerd()
		take_images(f, [cluster.PAUSE])

	def handler(self, name):
		if name == "runc":
			return f"{self.folder}/oci-runc"	# the engine's, too
		if name == "crun":
			return self.wrapper(name, name, HIDE_HYBRID)
		return self.wrapper(name, name, OWN_SANDBOX.replace("FOLDER", self.folder).replace("RUNC", engine.need("runc", "runc")))

	def await_containerd(self):
		self.await_answer("containerd", lambda: subprocess.run(ctr(self.folder, "version"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
								   stderr=subprocess.DEVNULL, check=False).returncode == 0)

	def runtime_words(self):
		return ["--container-runtime=remote", f"--container-runtime-endpoint=unix://{self.folder}/cri"]


def ctr(folder, *words):
	return [engine.need("ctr", "containerd"), "--address", f"{folder}/cri", "--namespace", NAMESPACE, *words]


def take_images(folder, names):
	path = f"{folder}/images.tar"
	query = "&".join(f"names={urllib.parse.quote(name, safe='')}" for name in names)
	status, data = engine.ask(f"{folder}/sock", "GET", f"/images/get?{query}")
	if status != 200:
		raise engine.Cannot(f"the engine does not give {names}: {data[:300]!r}")
	with open(path, "wb") as f:
		f.write(data)
	made = subprocess.run(ctr(folder, "images", "import", "--snapshotter", "overlayfs", path), stdin=subprocess.DEVNULL,
			      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
	os.unlink(path)
	if made.returncode:
		raise engine.Cannot(f"containerd does not take {names}: {made.stdout.decode('utf-8', 'replace')}")


class ContainerdCluster(cluster.Cluster):
	runtime = "containerd"

	def guard(self, tell, lifeline):
		return ContainerdGuard(self.folder, tell, lifeline)

	def take_images(self, names):
		take_images(self.folder, names)


if __name__ == "__main__":
	sys.exit(cluster.main(ContainerdCluster))
