#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
real.py - pods as cells on a real Kubernetes cluster (cluster.py), and deploy/kubernetes held against its API server.

    tests/kubernetes/real.py [--build] [--only NAME,...] [--runtime dockershim,containerd]

    --build: first build the cluster's programs, if need be (15 to 25 minutes).  Every case is tried on a cluster whose kubelet has Docker
    below it, and on one with containerd (containerd.py); those of a RuntimeClass only on the latter.

Runs with the role that deploy/kubernetes/cells gives brig, so that it is shown to be enough.  Each run must leave no pod.
The cluster and all that it made are gone at the end.  A machine that cannot start it skips, and says why.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "deploy")]
sys.dont_write_bytecode = True
import cluster
import containerd
import engine

BRIG = os.path.abspath(os.environ.get("BRIG", os.path.join(ROOT, "build", "brig")))
NAMESPACE = "brig-cells"
CEILING = 300	# seconds that a run may take on a busy machine
CASES = []
CLUSTERS = {"dockershim": cluster.Cluster, "containerd": containerd.ContainerdCluster}


class Failed(Exception):
	pass


def case(fn):
	CASES.append(fn)
	fn.runtimes = tuple(CLUSTERS)
	return fn


def containerd_case(fn):
	case(fn).runtimes = ("containerd",)
	return fn


def check(condition, what, seen=""):
	if not condition:
		raise Failed(f"{what}: {seen}")


class World:
	"""A cluster with brig's images and role, and brig that asks it."""
	def __init__(self, started):
		self.cluster = started
		self.policy = started.path("policy.yaml")
		self.write_policy()
		for image in ("python", "shell"):
			made = subprocess.run([BRIG, "images", "build", image], env={**os.environ, "DOCKER_HOST": started.host}, stdin=subprocess.DEVNULL,
					      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
			check(made.returncode == 0, f"brig images build {image}", made.stdout.decode())
		self.take_images()
		self.kubectl("apply", "-k", os.path.join(ROOT, "deploy/kubernetes/cells"))
		self.give_role()

	def take_images(self):
		images = json.loads(engine.ask(self.cluster.sock, "GET", "/images/json")[1])
		self.cluster.take_images([name for image in images for name in image["RepoTags"] or () if name.startswith("brig")])

	def kubectl(self, *words):
		p = self.cluster.kubectl(*words)
		check(p.returncode == 0, f"kubectl {' '.join(words)}", p.stdout.decode("utf-8", "replace"))
		return p.stdout.decode("utf-8", "replace")

	def give_role(self):
		"""Tokens of a file stand for users here; the role is what is tried."""
		self.kubectl("create", "rolebinding", "brig-test", "--role=brig-cells", "--user=brig", f"--namespace={NAMESPACE}")
		self.kubectl("create", "clusterrolebinding", "brig-test", "--clusterrole=brig-runtime-classes", "--user=brig")

	def write_policy(self, extra="", who="brig", startup_ms=60000):
		engine.write(self.policy, f"""backend: [kubernetes, native]
kubernetes:
  server: {cluster.SERVER}
  token_file: {self.cluster.path(who + ".token")}
  ca_file: {self.cluster.path("certs/apiserver.crt")}
  namespace: {NAMESPACE}
startup_timeout_ms: {startup_ms}
cleanup_timeout_ms: 60000
inspection: "off"
audit: "off"
{extra}""")

	def words(self, *words):
		return self.cluster.inside([BRIG, "run", "--policy", self.policy, "--backend", "kubernetes", "--json", *words])

	def run(self, *words, code=None, lang="python", stdin=b""):
		more = ["--lang", lang, "-c", code] if code is not None else []
		p = subprocess.run(self.words(*words, *more), input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=CEILING, check=False)
		try:
			return json.loads(p.stdout)
		except ValueError:
			raise Failed(f"no result: {p.stdout!r} {p.stderr!r}") from None

	def pods(self):
		return json.loads(self.kubectl("get", "pods", f"--namespace={NAMESPACE}", "-o", "json"))["items"]

	def await_no_pods(self):
		"""A pod that its node takes down is there for some time; the next brig does not wait for it."""
		deadline = time.monotonic() + CEILING
		while any(not pod["metadata"].get("deletionTimestamp") for pod in self.pods()):
			check(time.monotonic() < deadline, "pods that stay", [pod["metadata"]["name"] for pod in self.pods()])
			time.sleep(0.2)


def brief(r):
	return {key: r.get(key) for key in ("verdict", "reason", "exit_code", "signal", "stdout", "stderr", "warnings")}


def ok(r, stdout):
	bad = [row for row in r["evidence"] if not row["kept"] and row["check"] not in GIVEN_UP]
	check((r["verdict"], r["stdout"]) == ("ok", stdout), "verdict and output", {**brief(r), "not kept": bad})
	check(not bad, "promises that were not kept", bad)
	check(not any("clean-up" in w for w in r["warnings"]), "something was left", r["warnings"])


GIVEN_UP = {"user_ns", "time_ns", "id_separation", "socket_memory", "inodes_limit", "proc", "machine_files", "nested_userns", "user_counts",
	    "inotify_instances", "inotify_watches"}


# ---- runs ------------------------------------------------------------------------------------------------

@case
def hello(w):
	"""a program runs in a pod, with evidence for every promise"""
	r = w.run(code="print('hello')")
	ok(r, "hello\n")
	rows = {row["check"]: row for row in r["evidence"]}
	check("eth0" in rows["network"]["source"] and rows["network"]["enforced"] == "none", "the pod has a network that the program cannot reach", rows["network"])
	check("tried" in rows["pids_limit"]["source"], "the number of processes was tried", rows["pids_limit"])
	check(rows["engine"]["enforced"] == "as asked" and "sha256:" in rows["engine"]["source"], "the server's account and the image", rows["engine"])


@case
def shell(w):
	"""another language, from its own image"""
	ok(w.run(code="echo $((6 * 7)); pwd", lang="shell"), "42\n/workspace\n")


@case
def lasts(w):
	"""a program that outlasts several looks of the kubelet"""
	ok(w.run(code="import time\nfor i in range(4):\n  print(i, flush=True); time.sleep(1.5)"), "0\n1\n2\n3\n")


@case
def streams(w):
	"""megabytes through stdin and stdout, byte for byte"""
	data = os.urandom(1 << 20).hex().encode()
	r = w.run(code="import sys, hashlib\nd = sys.stdin.buffer.read()\nprint(len(d), hashlib.sha256(d).hexdigest())\nsys.stdout.write('x' * 3000000)", stdin=data)
	import hashlib
	check(r["verdict"] == "ok" and r["stdout"].startswith(f"{len(data)} {hashlib.sha256(data).hexdigest()}\n") and len(r["stdout"]) == 3000000 + 73,
	      "what came out", {**brief(r), "stdout": len(r["stdout"])})


@case
def verdicts(w):
	"""exit codes, signals, and every limit has its verdict"""
	table = [("import sys; sys.exit(3)", "error", ()), ("import os; os.kill(os.getpid(), 11)", "crash", ()),
		 ("import time; time.sleep(60)", "timeout", ("--timeout", "2")), ("while True: pass", "cpu_limit timeout", ("--timeout", "3")),
		 ("x = bytearray(1 << 30)", "memory_limit", ()), ("while True: print('x' * 10000)", "output_limit", ()),
		 ("open('/tmp/x', 'wb').write(bytes(200 << 20))", "disk_limit error", ())]
	for code, wanted, words in table:
		r = w.run(*words, code=code)
		check(r["verdict"] in wanted.split(), f"{code}: not {wanted}", brief(r))


@case
def project(w):
	"""a folder as workspace, and what became of it"""
	folder = w.cluster.path("project")
	os.mkdir(folder)
	engine.write(f"{folder}/in.txt", "42\n")
	r = w.run("--workspace", folder, code="n = int(open('in.txt').read())\nopen('out.txt', 'w').write(str(n + 1))\nprint(n)")
	check((r["verdict"], r["stdout"]) == ("ok", "42\n"), "verdict and output", brief(r))
	check([c["path"] for c in r["changes"]] == ["out.txt"], "what changed", r["changes"])
	check(not os.path.exists(f"{folder}/out.txt"), "the folder itself is as it was")


# ---- ends ------------------------------------------------------------------------------------------------

def start(w, code):
	"""A run that is under way, with its pod running."""
	p = subprocess.Popen(w.words("--timeout", "100", "--lang", "python", "-c", code), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
			     stderr=subprocess.PIPE)
	deadline = time.monotonic() + CEILING
	while not any(pod["status"]["phase"] == "Running" for pod in w.pods()):
		check(time.monotonic() < deadline and p.poll() is None, "the pod runs")
		time.sleep(0.1)
	time.sleep(1)
	return p


@case
def cancelled(w):
	"""SIGTERM ends program and pod"""
	p = start(w, "import time; time.sleep(90)")
	p.send_signal(signal.SIGTERM)
	out, _ = p.communicate(timeout=CEILING)
	check(json.loads(out)["verdict"] == "cancelled", "verdict", out)


@case
def removed(w):
	"""somebody deletes the pod: a failure with its reason, never ok"""
	p = start(w, "import time; time.sleep(90)")
	w.kubectl("delete", "pods", "--all", f"--namespace={NAMESPACE}", "--grace-period=1", "--wait=false")
	out, _ = p.communicate(timeout=CEILING)
	r = json.loads(out)
	check(r["verdict"] == "failed" and "pod" in r["reason"], "verdict and reason", brief(r))


@case
def killed(w):
	"""a brig that is killed leaves a pod whose program is dead, and that brig reap finds"""
	p = start(w, "import time; time.sleep(90)")
	p.kill()
	p.communicate()
	check(len(w.pods()) == 1, "one pod is left", w.pods())
	reaped = subprocess.run(w.cluster.inside([BRIG, "reap", "--policy", w.policy]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
				stderr=subprocess.STDOUT, timeout=CEILING, check=False)
	check(reaped.returncode == 0 and w.pods()[:1] == [] or w.pods()[0]["metadata"].get("deletionTimestamp"), "brig reap", reaped.stdout)


# ---- refusals ----------------------------------------------------------------------------------------------

def refused(w, says, *words, extra="", who="brig", code="print('ran')"):
	w.write_policy(extra, who)
	try:
		r = w.run(*words, code=code)
	finally:
		w.write_policy()
	check(r["verdict"] == "refused" and says in r["reason"] and r["stdout"] == "", f"refused because of '{says}'", brief(r))


@case
def refusals(w):
	"""what the cluster cannot keep or does not have is refused before the program starts"""
	refused(w, "podPidsLimit", extra="pids_limit: 30\n")
	refused(w, "no RuntimeClass 'elsewhere'", extra="kubernetes_runtime: elsewhere\n")
	refused(w, "ErrImage", extra="kubernetes_image: brig/nothing:1\n")
	refused(w, "forbids it", who="nobody")
	share = w.cluster.path("share-cgroup-namespace")
	engine.write(share, "")
	try:
		refused(w, "cgroup_ns")
	finally:
		os.unlink(share)


@case
def foreign_image(w):
	"""an image without brig's init is no cell"""
	r = None
	w.write_policy(f"kubernetes_image: {cluster.PAUSE}\n")
	try:
		r = w.run(code="print('ran')")
	finally:
		w.write_policy()
	check(r["verdict"] in ("refused", "failed") and r["stdout"] == "", "verdict", brief(r))


# ---- attacks -------------------------------------------------------------------------------------------------

ATTACKS = {
	"sockets": """import socket
for f in range(46):
  for k in (1, 2, 3, 5):
    if f != 1:
      try: socket.socket(f, k); print('GOT', f, k)
      except OSError: pass
print('done')""",
	"sockets by x32": """import ctypes
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(0x40000000 + 41, 2, 1, 0) >= 0: print('GOT x32')
print('done')""",
	"credentials of the cluster": """import os
for p in ('/var/run/secrets', '/run/secrets', '/var/run/secrets/kubernetes.io/serviceaccount/token'):
  if os.path.exists(p): print('GOT', p)
for k in os.environ:
  if 'KUBERNETES' in k or 'SERVICE' in k: print('GOT', k)
print('done')""",
	"the file for last messages": """try: open('/dev/termination-log', 'w').write('x'); print('GOT it')
except OSError: pass
print('done')""",
	"the root and files of the kubelet": """import os
for p in ('/x', '/etc/hosts', '/etc/resolv.conf', '/etc/hostname', '/dev/mqueue/q', '/.brig/init', '/usr/bin/x'):
  try: open(p, 'a').write('x'); print('GOT', p)
  except OSError: pass
print('done')""",
	"init": """import os, signal
for s in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
  try: os.kill(1, s)
  except OSError: pass
for p in ('/proc/1/mem', '/proc/1/environ', '/proc/1/fd/0'):
  try: open(p, 'rb').read(1); print('GOT', p)
  except OSError: pass
try: open('/proc/1/fd/2', 'wb').write(b'x'); print('GOT fd')
except OSError: pass
print('done')""",
	"namespaces and mounts": """import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000):
  if libc.unshare(flag) == 0: print('GOT', flag)
if libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0: print('GOT mount')
if libc.setns(0, 0) == 0: print('GOT setns')
print('done')""",
	"control groups and the machine": """import os
for top, _, files in os.walk('/sys/fs/cgroup'):
  for f in files:
    try: open(os.path.join(top, f), 'w').write('1'); print('GOT', top, f)
    except OSError: pass
for p in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/vm/overcommit_memory'):
  try: open(p, 'w').write('x'); print('GOT', p)
  except OSError: pass
print('done')""",
	"mounts that the runtime left writable": """import os
for line in open('/proc/self/mountinfo'):
  p = line.split()[4]
  if p in ('/workspace', '/tmp', '/dev/shm') or not os.path.isdir(p): continue
  try: open(p + '/x', 'w').write('x'); print('GOT', p)
  except OSError: pass
  try: os.mkdir(p + '/y'); print('GOT a folder in', p)
  except OSError: pass
print('done')""",
	"a forged last word": """import sys, os
os.write(2, b'brigjob3' * 100 + bytes(64))
print('done')""",
}


@case
def attacks(w):
	"""hostile programs in pods get nothing"""
	for name, code in ATTACKS.items():
		r = w.run(code=code)
		filtered = r["verdict"] == "crash" and r["signal"] == "SIGSYS" and r["stdout"] == ""	# calls of another ABI are answered with death
		check(filtered if "x32" in name else (r["verdict"], r["stdout"]) == ("ok", "done\n"), name, brief(r))


@case
def fork_bomb(w):
	"""a fork bomb meets the limit, and nothing of it is left"""
	r = w.run("--timeout", "5", code="import os\nwhile True:\n  try: os.fork()\n  except OSError: pass")
	# Init shares the pod's half of a processor with the bomb: on a busy machine it may be late, and the evidence says so.
	late = r["verdict"] == "violated" and "'wall_time'" in r["reason"]
	check(late or r["verdict"] in ("timeout", "cpu_limit"), "verdict", brief(r))
	bad = [row for row in r["evidence"] if not row["kept"] and row["check"] not in GIVEN_UP | {"wall_time"}]
	check(not bad, "promises that were not kept", bad)
	check(next(row for row in r["evidence"] if row["check"] == "no_process_left")["kept"], "nobody is left", r["evidence"])


# ---- RuntimeClass ----------------------------------------------------------------------------------------------

CLASSES = {"crun": "crun", "gvisor": "runsc", "hollow": "none"}	# the last one's handler no node has


def with_classes(w):
	for name, handler in CLASSES.items():
		path = engine.write(w.cluster.path("object.yaml"), json.dumps({
			"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler}))
		w.kubectl("apply", "-f", path)


def handler_state(w, pod):
	"""What the OCI runtime of a pod's container keeps of it: each has files of its own kind."""
	ident = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
	top = f"/proc/{w.cluster.pid}/root/run/containerd/runc/{containerd.NAMESPACE}"
	return sorted(name for name in os.listdir(f"{top}/{ident}"))


@containerd_case
def runtime_class(w):
	"""a RuntimeClass is in the pod, its handler runs it, and every promise is kept"""
	with_classes(w)
	for extra, name, keeps in (("", None, "state.json"), ("kubernetes_runtime: crun\n", "crun", "status")):
		w.write_policy(extra)
		try:
			p = start(w, "import time; print('there', flush=True); time.sleep(5)")
			pod = next(pod for pod in w.pods() if not pod["metadata"].get("deletionTimestamp"))
			check(pod["spec"].get("runtimeClassName") == name, f"runtimeClassName is {name}", pod["spec"].get("runtimeClassName"))
			check(keeps in handler_state(w, pod), f"the runtime of {name} runs it", handler_state(w, pod))
			out, _ = p.communicate(timeout=CEILING)
		finally:
			w.write_policy()
		ok(json.loads(out), "there\n")


@containerd_case
def attacks_in_class(w):
	"""hostile programs get nothing in a pod of a RuntimeClass either"""
	with_classes(w)
	w.write_policy("kubernetes_runtime: crun\n")
	try:
		attacks(w)
	finally:
		w.write_policy()


GIVES_UP = "landlock, cgroup_ns, ipc_ns, uts_ns, memory_limit, swap_limit, pids_limit, cpu_quota, disk_limit, read_only_root"


@containerd_case
def gvisor(w):
	"""gVisor's kernel lacks calls that init needs: refused before the start, whatever the policy gives up"""
	with_classes(w)
	for given_up in ("landlock", GIVES_UP):
		refused(w, "lacks a system call", extra=f"kubernetes_runtime: gvisor\nallow_degraded: [{given_up}]\n")


@containerd_case
def hollow_class(w):
	"""a RuntimeClass whose handler no node has: the pod does not start, and the reason says where to look"""
	with_classes(w)
	w.write_policy("kubernetes_runtime: hollow\n", startup_ms=2000)
	try:
		r = w.run(code="print('ran')")
	finally:
		w.write_policy()
	check(r["verdict"] in ("refused", "failed") and r["stdout"] == "" and "RuntimeClass 'hollow'" in r["reason"], "verdict and reason", brief(r))


# ---- brig in a pod ---------------------------------------------------------------------------------------------

IN_POD = "brig:in-pod"


def pod_of_brig(words, account="brig"):
	"""As the restricted standard wants pods; nothing says where the API server is, and who asks."""
	env = {"BRIG_BACKEND": "kubernetes", "BRIG_AUDIT": "off", "BRIG_HISTORY": "false", "BRIG_METRICS": "false", "BRIG_STATE": "/tmp/brig",
	       "BRIG_INSPECTION": "off", "BRIG_STARTUP_TIMEOUT_MS": "60000", "BRIG_CLEANUP_TIMEOUT_MS": "60000"}
	return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks", "namespace": NAMESPACE}, "spec": {
		"serviceAccountName": account, "automountServiceAccountToken": True, "restartPolicy": "Never",
		"securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
		"containers": [{"name": "brig", "image": IN_POD, "imagePullPolicy": "Never", "command": ["/usr/bin/brig", *words],
				"env": [{"name": name, "value": value} for name, value in env.items()],
				"securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
				"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}],
		"volumes": [{"name": "tmp", "emptyDir": {}}]}}


def brig_in_pod(w, *words, account="brig"):
	"""The last line that brig said in a pod of its own."""
	w.kubectl("apply", "-f", engine.write(w.cluster.path("object.yaml"), json.dumps(pod_of_brig(words, account))))
	deadline = time.monotonic() + CEILING
	try:
		while True:
			pod = json.loads(w.kubectl("get", "pod", "asks", f"--namespace={NAMESPACE}", "-o", "json"))
			if pod["status"]["phase"] in ("Succeeded", "Failed"):
				break
			check(time.monotonic() < deadline, "brig's own pod ends", pod["status"])
			time.sleep(0.2)
		return w.kubectl("logs", "asks", f"--namespace={NAMESPACE}")
	finally:
		w.kubectl("delete", "pod", "asks", f"--namespace={NAMESPACE}", "--grace-period=0", "--force")


@case
def in_cluster(w):
	"""brig in a pod asks as its service account, whose role is that of deploy/kubernetes/cells"""
	made = subprocess.run([os.path.join(ROOT, "tools/build-image"), "--build", os.path.dirname(BRIG), "--packages", "libcurl4,libwslay1", "--tag", IN_POD,
			       "--tar", w.cluster.path("in-pod.tar")], env={**os.environ, "DOCKER_HOST": w.cluster.host}, stdin=subprocess.DEVNULL,
			      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
	check(made.returncode == 0, "tools/build-image", made.stdout.decode())
	w.take_images()
	r = json.loads(brig_in_pod(w, "run", "--json", "--lang", "python", "-c", "print('from a pod')"))
	ok(r, "from a pod\n")
	check(r["backend"] == "kubernetes", "backend", r["backend"])
	w.kubectl("apply", "-f", engine.write(w.cluster.path("object.yaml"), json.dumps({
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other", "namespace": NAMESPACE}})))
	r = json.loads(brig_in_pod(w, "run", "--json", "--lang", "python", "-c", "print('from a pod')", account="other"))
	check(r["verdict"] == "refused" and "forbids it" in r["reason"] and r["stdout"] == "", "an account without the role", brief(r))


NEWER_FIELDS = {"appArmorProfile"}	# since 1.30


# ---- deploy ----------------------------------------------------------------------------------------------------

@case
def manifests(w):
	"""deploy/kubernetes: every object of a kind that 1.20 knows is taken by the API server (dry run)"""
	import overlays
	import yaml
	known = {line.split()[-1] for line in w.kubectl("api-resources", "--no-headers").splitlines()}
	versions = set(w.kubectl("api-versions").split())
	for overlay in ("small", "production"):
		objects = [o for o in overlays.build(os.path.join(ROOT, "deploy/kubernetes/overlays", overlay))]
		usable = [o for o in objects if o["kind"] in known and o["apiVersion"] in versions]
		left_out = sorted({f"{o['apiVersion']} {o['kind']}" for o in objects} - {f"{o['apiVersion']} {o['kind']}" for o in usable})
		print(f"#   {overlay}: {len(usable)} of {len(objects)} objects; 1.20 does not know {', '.join(left_out) or 'none of the others'}")
		for o in usable:
			if o["kind"] == "Namespace":
				p = w.cluster.kubectl("apply", "-f", engine.write(w.cluster.path("object.yaml"), yaml.safe_dump(o)))
				check(p.returncode == 0, o["metadata"]["name"], p.stdout.decode())
		for o in usable:
			path = engine.write(w.cluster.path("object.yaml"), yaml.safe_dump(o))
			p = w.cluster.kubectl("apply", "--dry-run=server", "-f", path)
			newer = re.findall(r'unknown field "(\w+)"', p.stdout.decode())
			if newer:	# kubectl's own check; the server leaves out what it does not know and looks at the rest
				print(f"#   {overlay}: 1.20 does not know {', '.join(newer)} of {o['kind']} {o['metadata']['name']}")
				check(set(newer) <= NEWER_FIELDS, "fields that no version knows", newer)
				p = w.cluster.kubectl("apply", "--dry-run=server", "--validate=false", "-f", path)
			check(p.returncode == 0, f"{overlay}: {o['kind']} {o['metadata']['name']}", p.stdout.decode())


def try_cases(kind, only):
	"""Each case on one cluster."""
	counts = {"passed": 0, "failed": 0, "skipped": 0}
	try:
		started = kind()
	except engine.Cannot as e:
		print(f"ok - pods on a real cluster with {kind.runtime} # SKIP {e}")
		return {**counts, "skipped": 1}
	with started:
		w = World(started)
		for fn in CASES:
			if kind.runtime not in fn.runtimes or (only and fn.__name__ not in only):
				continue
			began = time.monotonic()
			try:
				fn(w)
				w.await_no_pods()
				counts["passed"] += 1
				print(f"ok - {kind.runtime}.{fn.__name__}: {fn.__doc__} ({time.monotonic() - began:.1f} s)", flush=True)
			except Failed as e:
				counts["failed"] += 1
				print(f"not ok - {kind.runtime}.{fn.__name__}: {fn.__doc__}\n#   {e}", flush=True)
	return counts


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument("--build", action="store_true")
	parser.add_argument("--only", default="")
	parser.add_argument("--runtime", default=",".join(CLUSTERS))
	options = parser.parse_args()
	if options.build:
		subprocess.run([os.path.join(HERE, "build-cluster")], check=True)
	total = {"passed": 0, "failed": 0, "skipped": 0}
	for name in options.runtime.split(","):
		for key, n in try_cases(CLUSTERS[name], set(filter(None, options.only.split(",")))).items():
			total[key] += n
	print("{passed} passed, {failed} failed, {skipped} skipped".format(**total))
	return 1 if total["failed"] else 0


if __name__ == "__main__":
	sys.exit(main())
