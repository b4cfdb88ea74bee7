#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
The fake API server suite: `brig run` with backend kubernetes on an API server that breaks at every step (fake_api.py).

What must hold in every case: brig ends by itself, with a verdict that the table allows; nothing that the server invents becomes "ok";
no pod is left, unless the server refuses to remove it, which the result then says.  How long something takes decides nothing.

  tests/kubernetes/fake.py [--filter REGEX] [--jobs N]     BRIG=... judges another build
"""
import errno
import json
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
sys.dont_write_bytecode = True
import fake_api
import harness
from fake_engine import FAILED, MISSING, WIRE_STEPS, frame

NOT_RUN = ("failed", "refused")
PATIENT, HASTY = "60000", "50"	# milliseconds; brig gives a cluster eleven times that


def run(t, fault=None, hasty=(), env=None, words=()):
	"""(result, the server after the end)"""
	api = fake_api.Api(fault)
	limits = {f"BRIG_{part}_TIMEOUT_MS": HASTY if part in hasty else PATIENT for part in ("STARTUP", "CLEANUP")}
	try:
		r = t.cell(*words, "-c", "print('hello')", "-i", "none", lang="python",
			   env={"BRIG_BACKEND": "kubernetes", "BRIG_KUBERNETES_SERVER": api.address, "BRIG_AUDIT": "off", "BRIG_HISTORY": "false",
				"BRIG_METRICS": "false", **limits, **(env or {})})
		api.left = sorted(api.pods)
	finally:
		api.close()
	t.check(api.trouble is None, "the fake itself is sound", api.trouble)
	return r, api


def judge(t, r, api, wanted, may_stay):
	if r.verdict == "ok" and "ok" not in wanted:
		raise harness.Final(f"ok although the server did not do what was asked: {r}")
	t.verdict(r, *wanted)
	warned = any("clean-up left behind" in w for w in r.json.get("warnings", []))
	if api.left and not (may_stay and (warned or "brig reap" in r.reason)):
		raise harness.Final(f"left on the server: {api.left}; requests {api.requests}; {r}")
	if wanted is NOT_RUN:
		t.equal(r.stdout, b"", "output of a program that never ran", r)
	t.check("\x1b" not in r.reason, "the server's words are cleaned", r)


def case(name, title, wanted, fault=None, says=None, may_stay=False, also=None, **how):
	def go(t):
		r, api = run(t, fault, **how)
		judge(t, r, api, wanted, may_stay)
		if says:
			t.check(re.search(says, r.reason), f"the reason matches '{says}'", r)
		if also:
			also(t, r, api)
	harness.add(f"fake_kubernetes.{name}", title, go, "fake")


def complaints_of(pod):
	"""Against the schemas that deploy/ is held against; none where there is nothing to read them with."""
	try:
		import jsonschema
	except ImportError:
		return []
	with open(os.path.join(os.path.dirname(HERE), "deploy/schemas/kubernetes.json"), encoding="utf-8") as f:
		document = json.load(f)
	schema = {"$ref": f"#/definitions/{document['kinds']['v1/Pod']}", "definitions": document["definitions"]}
	return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in jsonschema.Draft7Validator(schema).iter_errors(pod)]


# ---- a server that works ------------------------------------------------------------------------------

def is_hello(t, r, api):
	t.equal((r.stdout, r.stderr), (b"hello\n", b"oh\n"), "output", r)
	t.equal(r.json["backend"], "kubernetes", "backend", r)
	row = next(row for row in r.json["evidence"] if row["check"] == "engine")
	t.check(row["kept"], "the server's account is in the evidence", row)
	complaints = complaints_of(api.asked)
	t.check(not complaints, "the pod is what the API of Kubernetes 1.33 describes", complaints)
	t.check(not any("Authorization" in line for line in api.requests), "no token without one", api.requests)


case("good", "an API server that works", ("ok",), also=is_hello)
case("good-ping", "a ping among the messages", ("ok",), {"ping": True}, also=is_hello)
case("good-new", "a cluster of today", ("ok",), {"minor": "33"}, also=is_hello)
case("good-runtime", "a RuntimeClass that is there", ("ok",), env={"BRIG_KUBERNETES_RUNTIME": "gvisor"}, also=is_hello)

# ---- answers of another kind, at each step ----------------------------------------------------------------

for step in fake_api.STEPS:
	ran = step in ("look_ended", "delete")	# the program has
	for status in (403, 500, *([409] if step in ("create", "delete") else [])):
		case(f"{step}-status-{status}", f"{step}: {status}", ("ok", "failed", "refused", "violated") if ran else NOT_RUN,
		     {"step": step, "how": "status", "status": status}, may_stay=step != "version", hasty=("STARTUP", "CLEANUP"))
	for how in ("close", "hang", "no_http"):
		case(f"{step}-{how}", f"{step}: {how}", ("ok", "failed", "refused", "violated") if ran else NOT_RUN, {"step": step, "how": how},
		     may_stay=step != "version", hasty=("STARTUP", "CLEANUP"))
case("busy", "the server is busy at first: 429 three times", ("ok",), {"step": "create", "how": "status", "status": 429, "times": 3}, also=is_hello)
case("busy-looking", "and when it is looked at", ("ok",), {"step": "look_ready", "how": "status", "status": 429, "times": 2}, also=is_hello)
case("garbage", "a version that is no object", NOT_RUN, {"step": "version", "how": "body", "body": b"[1]"})
case("old", "a cluster that is too old", NOT_RUN, {"step": "version", "how": "body", "body": b'{"major":"1","minor":"18"}'}, says="1.19")
case("nobody", "a token that nobody knows", NOT_RUN, {"step": "create", "how": "status", "status": 401}, says="kubernetes_token_file")
case("forbidden", "a role that may not make pods", NOT_RUN, {"step": "create", "how": "status", "status": 403}, says="deploy/kubernetes/cells")
case("no-runtime", "a RuntimeClass that is not there", NOT_RUN, env={"BRIG_KUBERNETES_RUNTIME": "kata"}, says="no RuntimeClass 'kata'")
case("not-here", "http to another machine", NOT_RUN, env={"BRIG_KUBERNETES_SERVER": "http://192.0.2.1:80"}, says="without TLS")

# ---- pods that do not start, or do not last -------------------------------------------------------------------

case("no-image", "an image that is not there", NOT_RUN, {"state": "no_image"}, says="ErrImagePull.*kubernetes_image")
case("unschedulable", "no node takes it", NOT_RUN, {"state": "unschedulable"}, says="Insufficient memory", hasty=("STARTUP",))
case("creating", "its node does not make it: a handler that it does not have, an address that it does not get", NOT_RUN, {"state": "creating"},
     says="in time.*kubectl get events -n default`(?!;)", hasty=("STARTUP",))
case("creating-class", "and there is a RuntimeClass, whose handler it may be", NOT_RUN, {"state": "creating"},
     env={"BRIG_KUBERNETES_RUNTIME": "gvisor"}, says="in time.*kubectl get events -n default`.*RuntimeClass 'gvisor'", hasty=("STARTUP",))
case("oom-at-start", "killed for want of memory before it began", NOT_RUN, {"state": "oom"}, says="memory limit is too small")
LOST = {"at": "stdout", "how": "close"}
case("oom", "init is killed with the program", ("memory_limit",), {"init": LOST, "ends": "oom"})
case("evicted", "its node ends it", ("failed",),
     {"init": LOST, "ends": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}}, says="Evicted.*low on resource")
case("deadline", "it is past its deadline", ("failed",),
     {"init": LOST, "ends": {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}},
     says="DeadlineExceeded")
case("cut", "the stream breaks while the program runs", ("failed",), {"init": LOST}, says="connection to the pod broke|ended the pod")
case("cut-in-message", "the stream breaks within a message", NOT_RUN, {"init": {"at": "ready", "how": "half"}})
case("other-channel", "a message on a channel that there is not", NOT_RUN, {"channel": 7}, says="channel 7")
case("not-websocket", "bytes that are no WebSocket", NOT_RUN, {"init": {"at": "ready", "how": "raw", "bytes": b"HTTP/1.1 400 Bad Request\r\n\r\n"}})
case("no-init", "what is in the image is not init", NOT_RUN, {"init": {"at": "ready", "how": "say", "bytes": b"usage: sleep NUMBER\n"}}, says="sleep NUMBER")
case("init-fails", "init cannot apply Landlock", ("refused",),
     {"init": {"instead": frame(FAILED, struct.pack("<II", WIRE_STEPS.index("landlock"), 95))}}, says="landlock")
# As gVisor does: no openat2(2).
case("kernel-lacks-call", "the runtime's kernel is not Linux", ("refused",),
     {"init": {"instead": frame(FAILED, struct.pack("<II", WIRE_STEPS.index("stage_files"), errno.ENOSYS))}}, says="lacks a system call.*runc, crun")

# ---- pods that are not what was asked for -----------------------------------------------------------------------

CHANGED = {
	"sidecar": {"spec.containers": lambda v: v + [{"name": "mesh", "image": "mesh"}]},
	"init-container": {"spec.initContainers": [{"name": "setup", "image": "x"}]},
	"host-network": {"spec.hostNetwork": True},
	"host-pid": {"spec.hostPID": True},
	"token": {"spec.automountServiceAccountToken": True},
	"token-unsaid": {"spec.automountServiceAccountToken": MISSING},
	"runtime": {"spec.runtimeClassName": "other"},
	"volume": {"spec.volumes": lambda v: v + [{"name": "host", "hostPath": {"path": "/"}}]},
	"groups": {"spec.securityContext.supplementalGroups": [0]},
	"sysctls": {"spec.securityContext.sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]},
	"root": {"spec.securityContext.runAsUser": 0},
	"deadline": {"spec.activeDeadlineSeconds": 86400},
	"labels": {"metadata.labels": {}},
}


def in_container(**edits):
	def edit(containers):
		made = dict(containers[0])
		for key, value in edits.items():
			made[key] = {**made.get(key, {}), **value} if isinstance(value, dict) else value
		return [made]
	return {"spec.containers": edit}


CHANGED |= {
	"privileged": in_container(securityContext={"privileged": True}),
	"capability": in_container(securityContext={"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}),
	"writable-root": in_container(securityContext={"readOnlyRootFilesystem": False}),
	"escalation": in_container(securityContext={"allowPrivilegeEscalation": True}),
	"unconfined": in_container(securityContext={"seccompProfile": {"type": "Unconfined"}}),
	"command": in_container(command=["/bin/sh"]),
	"environment": in_container(env=[{"name": "LD_PRELOAD", "value": "/x.so"}]),
	"memory": in_container(resources={"limits": {"cpu": "500m", "memory": "1Gi"}}),
	"probe": in_container(livenessProbe={"exec": {"command": ["true"]}}),
}
for name, edits in CHANGED.items():
	if name == "runtime":
		case(f"changed-{name}", f"the server changes the pod: {name}", NOT_RUN, {"pod": edits}, env={"BRIG_KUBERNETES_RUNTIME": "gvisor"},
		     says="did not make the pod")
	else:
		case(f"changed-{name}", f"the server changes the pod: {name}", NOT_RUN, {"pod": edits}, says="did not make the pod")
case("canonical", "quantities that the server writes in its own way", ("ok",),
     {"pod": in_container(resources={"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "500m", "memory": "512Mi"}})}, also=is_hello)

# ---- walls that are not there, by init's reading ---------------------------------------------------------------------

MISSING_WALLS = {
	"network": ({"early": {"interfaces": "lo eth0"}}, "network"),
	"processes": ({"early": {"pids_max": 2 ** 64 - 1}}, "podPidsLimit"),
	"processes-unsaid": ({"early": {"pids_max": None}}, "podPidsLimit"),
	"disk": ({"early": {"disk_max": 12 << 30}}, "SizeMemoryBackedVolumes"),
	"memory": ({"early": {"memory_max": 2 ** 64 - 1}}, "memory_limit"),
	"cgroup": ({"spaces": [1, 2, 3, 4, 5, 6, 0xEFFFFFFB, 8]}, "cgroup_ns"),
	"pid": ({"spaces": [1, 0xEFFFFFFC, 3, 4, 5, 6, 7, 8]}, "pid_ns"),
	# A runtime with a kernel of its own that shows less than Linux: by then nobody could convict the run but after its end.
	"mounts-unsaid": ({"spaces": [1, 2, 0, 4, 0, 0, 0, 0]}, "cannot see its 'mnt' namespace; protection 'mount_ns'"),
	**{f"{fact}-unsaid": ({"early": {fact: None}, "late": {fact: None}}, f"cannot see .*protection '{protection}'") for fact, protection in {
		"memory_max": "memory_limit", "swap_max": "swap_limit", "cpu_quota_percent": "cpu_quota", "capabilities": "no_capabilities",
		"no_new_privs": "no_new_privs", "seccomp_mode": "seccomp", "root_flags": "read_only_root", "writable_mounts": "read_only_root"}.items()},
}
for name, (words, says) in MISSING_WALLS.items():
	case(f"wall-{name}", f"the pod lacks a wall: {name}", NOT_RUN, {"init": words}, says=says)
case("wall-given-up", "and the policy does without", ("ok",), {"init": {"early": {"pids_max": 2 ** 64 - 1}, "late": {"pids_max": 2 ** 64 - 1}}},
     env={"BRIG_ALLOW_DEGRADED": "pids_limit"})
case("wall-unsaid-given-up", "and where nobody says whether it holds", ("ok",), {"init": {"early": {"memory_max": None}, "late": {"memory_max": None}}},
     env={"BRIG_ALLOW_DEGRADED": "memory_limit"})
case("wall-unsaid-class", "the RuntimeClass that shows too little is named", NOT_RUN, {"init": {"spaces": [1, 2, 0, 4, 0, 0, 0, 0]}},
     env={"BRIG_KUBERNETES_RUNTIME": "gvisor"}, says="RuntimeClass 'gvisor' does not show it")
for name, late in {"capabilities": {"capabilities": "200"}, "filter": {"seccomp_mode": 0}, "root": {"uid": 0}, "alive": {"processes_left": 3}}.items():
	case(f"violated-{name}", f"the evidence shows it: {name}", ("violated",), {"init": {"late": late}})


def reaps(t):
	"""A pod whose owner is dead is found by its labels and removed; one that lives, or is nobody's, is left alone."""
	api = fake_api.Api()
	env = {"BRIG_BACKEND": "kubernetes", "BRIG_KUBERNETES_SERVER": api.address}
	r = t.cell("-c", "print('hello')", "-i", "none", lang="python", env=env)
	t.verdict(r, "ok")
	api.close()
	api = fake_api.Api()
	env["BRIG_KUBERNETES_SERVER"] = api.address
	with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
		boot = f.read().strip()
	labels = {"brig.cell": "a" * 16, "brig.step": "run", "brig.language": "python", "brig.owner.uid": "0", "brig.owner.pid": "1",
		  "brig.owner.start": "1", "brig.owner.boot": boot, "brig.owner.machine": "elsewhere-1", "brig.deadline": "1"}
	for name, own in {"dead": labels, "fresh": {**labels, "brig.deadline": "99999999999"}, "foreign": {"app": "x"}}.items():
		api.pods[name] = {"metadata": {"name": name, "uid": name, "labels": own, "creationTimestamp": "2026-01-01T00:00:00Z"},
				  "status": fake_api.copy.deepcopy(fake_api.RECORDED["no_image"])}
	api.fault = {"state": "no_image"}
	try:
		p = t.brig("reap", env=env)
		left = sorted(api.pods)
	finally:
		api.close()
	t.equal(p.rc, 0, "brig reap", p)
	t.equal(left, ["foreign", "fresh"], "pods that stay", p)


harness.add("fake_kubernetes.reap", "brig reap removes pods of dead owners", reaps, "fake")


def main():
	harness.CASES.sort(key=lambda c: not re.search("hang|409|500|cut", c.ident))	# what waits for a limit first
	return harness.main("fake API server", probe=False)


if __name__ == "__main__":
	sys.exit(main())
