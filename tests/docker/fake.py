#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
The fake engine suite: `brig run --backend docker` on an engine that breaks at every step in every way (fake_engine.py).

What must hold in every case: brig ends by itself, with a result whose verdict is among those that the table allows;
nothing that the engine invents becomes "ok"; nothing of brig is left, and no container is left on the engine, unless the
engine refuses to remove it, which the result then says.  Verdicts decide; how long something takes does not.

  tests/docker/fake.py [--filter REGEX] [--jobs N]     BRIG=... judges another build
"""
import collections
import os
import re
import shutil
import ssl
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import fake_engine as fake
import harness
from fake_engine import MISSING

NOT_RUN = ("failed", "refused")
PATIENT = "60000"	# milliseconds for what is not meant to run out
HASTY = {"startup": "100", "cleanup": "300"}	# for what is: brig gives an engine eleven times that

learnt = {}	# per worker: the hash of this brig's init


def settings(engine, hasty, extra):
	limits = {f"BRIG_{part.upper()}_TIMEOUT_MS": HASTY[part] if part in hasty else PATIENT for part in HASTY}
	return {"BRIG_DOCKER_HOST": engine.address, "BRIG_AUDIT": "off", "BRIG_HISTORY": "false", "BRIG_METRICS": "false",
		"BRIG_DOCKER_BUILD": "false", **limits, **(extra or {})}


def init_hash(t):
	"""Learnt by letting brig derive an image: the labels of the container that it makes for that name its init."""
	if "hash" not in learnt:
		engine = fake.Engine(t.tmp)
		try:
			r = t.cell("--backend", "docker", "-c", "print('hello')", "-i", "none", lang="python",
				   env=settings(engine, "", {"BRIG_DOCKER_IMAGE": "fake/base:1"}))
			hashes = {image["Config"]["Labels"].get("brig.init") for image in engine.images.values()} - {None, "0" * 64}
		finally:
			engine.close()
		t.check(len(hashes) == 1, "deriving an image names one init", r)
		learnt["hash"] = hashes.pop()
	return learnt["hash"]


def run(t, fault=None, hasty="", env=None, words=(), podman=False, tls=None):
	"""(result, engine after the end)"""
	engine = fake.Engine(t.tmp, fault, init_hash(t), podman, tls)
	try:
		r = t.cell("--backend", "docker", *words, "-c", "print('hello')", "-i", "none", lang="python",
			   env=settings(engine, hasty, env))
		engine.left = sorted(c.name for c in engine.containers.values())
	finally:
		engine.close()
	t.check(engine.trouble is None, "the fake itself is sound", engine.trouble)
	return r, engine


def judge(t, r, engine, wanted, may_stay=False):
	if r.verdict == "ok" and "ok" not in wanted:
		raise harness.Final(f"ok although the engine did not do what was asked: {r}")
	t.verdict(r, *wanted)
	warned = any("clean-up left behind" in w for w in r.json.get("warnings", []))
	if engine.left and not (may_stay and (warned or "cannot remove" in r.reason)):
		raise harness.Final(f"left on the engine: {engine.left}; requests {engine.requests}; {r}")
	if wanted is NOT_RUN:
		t.equal(r.stdout, b"", "output of a program that never ran", r)
	t.check("\x1b" not in r.reason, "the engine's words are cleaned", r)
	if r.verdict != "ok":
		t.check(len(r.reason) > 10, "there is a reason", r)


def add(name, title, fn):
	harness.add(f"fake.{name}", title, fn, "fake")


def case(name, title, **how):
	"""Registers one run.  how: fault, hasty (which limit is to run out: "startup" or "cleanup"), env, words, podman, wanted,
	may_stay, says, also"""
	def go(t):
		r, engine = run(t, how.get("fault"), how.get("hasty", ""), how.get("env"), how.get("words", ()), how.get("podman", False))
		judge(t, r, engine, how["wanted"], how.get("may_stay", False))
		if how.get("says"):
			t.check(re.search(how["says"], r.reason), f"the reason matches '{how['says']}'", r)
		if how.get("also"):
			how["also"](t, r, engine)
	add(name, title, go)


# ---- an engine that works ---------------------------------------------------------------------------

def is_hello(t, r, _engine):
	t.equal(r.stdout, b"hello\n", "output", r)
	t.equal(r.stderr, b"oh\n", "stderr", r)


case("good", "an engine that works", wanted=("ok",), also=is_hello)
case("good-200", "attach is answered with 200", fault={"plain_200": True}, wanted=("ok",), also=is_hello)
case("good-podman", "an engine that says it is Podman", podman=True, env={"BRIG_ALLOW_DEGRADED": "disk_limit,cgroup_ns"}, wanted=("ok",),
     also=is_hello)
case("good-derived", "an image of somebody else", env={"BRIG_DOCKER_IMAGE": "fake/base:1"}, wanted=("ok",), also=is_hello)


def blocked_first(t):
	"""The code is read before anything is made on the engine."""
	engine = fake.Engine(t.tmp, None, init_hash(t))
	try:
		r = t.cell("--backend", "docker", "-c", "import socket\nsocket.socket()", "--inspect", "guard", "--rule", "py-network=block", lang="python",
			   env=settings(engine, "", None))
	finally:
		engine.close()
	t.verdict(r, "blocked")
	t.equal([line for line in engine.requests if "POST" in line], [], "what the engine was asked to make", r)


add("blocked-first", "code that is blocked makes no container", blocked_first)


PASSWD = b"root:x:0:0:::\nnode:x:1000:1000:::\nother:x:1234:50:::\nroots:x:1000:0:::\n"
GROUP = b"root:x:0:\nsandbox:x:1000:\n"


def user(name, title, user, wanted, says=None, asked=None, **files):
	def also(t, r, engine):
		if asked:
			t.equal(engine.wanted[-1]["User"], asked, "what the engine is asked for", r)
	fault = {"files": {"/etc/passwd": PASSWD, "/etc/group": GROUP, **files.pop("files", {})}, **files}
	case(f"user-{name}", title, fault=fault, env={"BRIG_USER": user}, wanted=wanted, says=says, also=also)


user("name", "a user that the image knows by name", "node", ("ok",), asked="1000:1000")
user("group", "a user and a group", "node:sandbox", ("ok",), asked="1000:1000")
user("not-kept", "the numbers of a name are compared with what the kernel shows", "other", ("violated",), asked="1234:50")
user("unknown", "a user that the image does not have", "nobody-there", ("refused",), "has no 'nobody-there'")
user("root-group", "a user whose group is root", "roots", ("refused",), "never runs as user or group 0")
user("no-group", "a group that the image does not have", "node:wheel", ("refused",), "/etc/group of the image has no 'wheel'")
user("no-file", "an image without users", "node", ("refused",), "has no 'node'", files={"/etc/none": b""}, step="fetch_file", how="status", status=404)
user("link", "a file of users that is a link", "node", ("refused",), "link", files={"/etc/passwd": ("/proc/1/environ",)})
user("large", "a file of users that is too large", "node", NOT_RUN, files={"/etc/passwd": b"#" * (1 << 20)})
for kind in ("garbage", "truncated", "empty"):
	user(f"body-{kind}", f"the file of users is {kind}", "node", NOT_RUN, step="fetch_file", how="body",
	     body={"garbage": b"x" * 2048, "truncated": b"passwd" + b"\0" * 100, "empty": b""}[kind])


def asks_to_build(words, env, of_query, of_file):
	def go(t):
		engine = fake.Engine(t.tmp, {"no_image": True})
		try:
			p = t.brig("images", "build", "python", *words, env=settings(engine, "", env))
		finally:
			engine.close()
		t.check(engine.trouble is None, "the fake itself is sound", engine.trouble)
		t.check(p.rc != 0 and b"reaches no registry" in p.err, "the engine's words", p)
		t.equal(len(engine.builds), 1, "builds", engine.requests)
		query, dockerfile = engine.builds[0]
		t.equal({word for word in ("pull=1", "nocache=1") if word in query.split("&")}, of_query, "what the engine is asked", query)
		t.equal(of_file in dockerfile, True, "a line of the Dockerfile", dockerfile)
	return go


add("build-plain", "a build as it is", asks_to_build(("--from", "registry"), {}, set(), "FROM "))
add("build-pull", "a build with a base fetched anew and nothing kept",
    asks_to_build(("--pull", "--no-cache"), {"BRIG_DOCKER_REQUIREMENTS": "numpy,pandas==2.1"}, {"pull=1", "nocache=1"}, '"--", "numpy", "pandas==2.1"]'))


def asks_version(times):
	return lambda t, r, engine: t.equal(sum("GET /version" in line for line in engine.requests), times, "questions for the version", r)


for name, api, server, times in (("docker", b"1.41", b"Docker/20.10.24 (linux)", 0), ("docker-empty", b"1.41", b"Docker/", 0),
				 ("podman", b"1.41", b"Libpod/4.3.1 (linux)", 1), ("newer", b"1.48", b"Docker/28.0.0 (linux)", 1),
				 ("silly", b"x\x1b[31m", b"Docker/\x1b[31m (linux)", 1), ("long", b"1.41", b"Docker/" + b"9" * 4000, 0)):
	case(f"good-says-{name}", f"the answer to a ping says {server[:20]!r}", fault={"server": (api, server)}, wanted=("ok",), also=asks_version(times))

# ---- every step x every kind of wrong answer -----------------------------------------------------------

BODIES = {"garbage": b"<html>nothing</html>", "truncated": b'{"Id":"012345', "empty": b"", "list": b"[]", "null": b"null",
	  "deep": b"[" * 100000, "types": b'{"Id":7,"Warnings":"x","State":[],"HostConfig":null,"StatusCode":"x"}'}
FAULTS = [(f"status-{n}", {"how": "status", "status": n}) for n in (301, 400, 404, 409, 500)]
FAULTS += [(f"body-{name}", {"how": "body", "body": body}) for name, body in BODIES.items()]
FAULTS += [(name.replace("_", "-"), {"how": name}) for name in ("close", "close_in_head", "close_in_body", "hang", "hang_in_body",
								 "endless_head", "endless_body", "no_http", "pieces", "chunked")]
ANY_END = ("ok", "failed", "violated")


def expected(step, name, fault):
	"""Verdicts that are right for this step and kind of answer."""
	if fault["how"] in ("pieces", "chunked"):
		return ("ok",)
	if step in ("start", "remove") and fault["how"] == "body":
		return ("ok",)		# 2xx is all that counts there
	if step == "changes" and name in ("body-list", "body-null"):
		return ("ok",)		# that is how no change looks
	if step == "list":
		return ("ok",)		# what others have left is not this run's business
	if step == "remove":
		return ("ok",)		# it ran, and everything was kept; what stays is a warning
	if step == "wait" and fault["how"] in ("body", "endless_body", "close_in_body", "hang_in_body"):
		return ANY_END		# taken, and the end is seen elsewhere, too
	if step in ("inspect_after", "changes"):
		return ("failed", "violated")
	return NOT_RUN


def stays(step, fault):
	"""Only an engine that does not remove may keep a container."""
	return step == "remove" and fault["how"] in ("status", "hang")


for step in fake.STEPS:
	for name, fault in FAULTS:
		if step == "attach" and fault["how"] in ("body", "chunked"):
			continue	# behind 200 comes the stream: see below
		if step == "remove" and name == "status-404":
			continue	# an engine that does not know it any more cannot keep it
		slow = fault["how"].startswith("hang") or (step == "remove" and name == "status-409")
		slow = slow and step != "list"	# a look round has a limit of its own
		late = step in ("wait", "inspect_after", "changes", "remove") and not (step == "wait" and name == "hang")
		wanted = expected(step, name, fault)
		if slow and late and wanted == ("ok",):
			wanted = ("ok", "failed")	# on a busy machine other answers may be late, too
		case(f"{step}-{name}", f"{step.replace('_', ' ')}: {name}", fault={"step": step, **fault}, wanted=wanted,
		     hasty="" if not slow else "cleanup" if late else "startup", may_stay=step == "remove")

case("remove-409-then-gone", "a removal in progress that ends", fault={"step": "remove", "how": "status", "status": 409, "gone": True},
     wanted=("ok",), also=lambda t, r, e: t.equal(r.json.get("warnings"), [], "warnings", r))
for name, late in (("garbage", b"nothing"), ("null", b"null"), ("beyond", b'{"StatusCode":256}'), ("error", b'{"StatusCode":125,"Error":{"Message":"oh"}}')):
	case(f"wait-late-{name}", f"wait ends with {name}", fault={"step": "wait", "how": "late", "late": late}, wanted=ANY_END)

# ---- the attached stream ----------------------------------------------------------------------------

def raw(stream, size, padding=(0, 0, 0), data=b""):
	return bytes([stream, *padding]) + struct.pack(">I", size) + data


NONSENSE = {"stdin-frame": raw(0, 1, data=b"x"), "system-frame": raw(3, 4, data=b"oops"), "type-9": raw(9, 1, data=b"x"),
	    "type-255": raw(255, 1, data=b"x"), "padding": raw(1, 1, (0, 0, 1), b"x"), "oversized": raw(2, 0xffffffff, data=b"x"),
	    "16m": raw(1, (16 << 20) + 1, data=b"x"), "text": b"hello, this is no frame at all\n", "http": b"HTTP/1.1 500 Oh\r\n\r\n"}
for at in ("ready", "stdout", "stderr", "end", "after"):
	wanted = NOT_RUN if at == "ready" else ("failed",) if at != "after" else ("failed", "ok")
	for name, data in NONSENSE.items():
		case(f"stream-{at}-{name}", f"at {at}: {name}", fault={"init": {"at": at, "how": "raw", "bytes": data}}, wanted=wanted)
	case(f"stream-{at}-close", f"at {at}: the stream ends", fault={"init": {"at": at, "how": "close"}}, wanted=wanted)
	if at != "after":
		case(f"stream-{at}-half", f"at {at}: half of it, then the end", fault={"init": {"at": at, "how": "half"}}, wanted=wanted)
	silent = NOT_RUN if at == "ready" else ("timeout", "failed") if at != "after" else ("ok", "failed", "timeout")
	hasty = "startup" if at == "ready" else "cleanup"
	case(f"stream-{at}-hang", f"at {at}: silence", fault={"init": {"at": at, "how": "hang"}}, hasty=hasty, wanted=silent, words=("--timeout", "300ms"))
	if at != "after":
		case(f"stream-{at}-half-hang", f"at {at}: half of it, then silence", fault={"init": {"at": at, "how": "half_hang"}}, hasty=hasty,
		     wanted=silent, words=("--timeout", "300ms"))
case("stream-bye-hang", "init does not leave", fault={"init": {"at": "bye", "how": "hang"}}, hasty="cleanup", wanted=("ok", "failed"))
case("stream-early-stdout", "output before the program was started",
     fault={"init": {"at": "ready", "how": "say", "stream": 1, "bytes": b"surprise\n"}}, wanted=NOT_RUN)
case("stream-shell-error", "something else than init speaks",
     fault={"init": {"at": "ready", "how": "say", "bytes": b"exec /.brig/init: no such file or directory\n"}}, hasty="startup", wanted=NOT_RUN)

# ---- what flows -------------------------------------------------------------------------------------

def with_input(t, size):
	data = bytes(range(256)) * (size // 256)
	engine = fake.Engine(t.tmp, {"init": {"echo": True}}, init_hash(t))
	try:
		r = t.cell("--backend", "docker", "-c", "print('hello')", lang="python", stdin=data,
			   env=settings(engine, "", {}))
	finally:
		engine.close()
	t.verdict(r, "ok")
	t.check(r.stdout == data + b"hello\n", f"{size} bytes come back", f"{len(r.stdout)} bytes")


for size in (0, 256, 1 << 20, 8 << 20):
	add(f"input-{size}", f"{size} bytes of input come back", lambda t, size=size: with_input(t, size))
for stream in (1, 2):
	case(f"flood-{stream}", f"endless output on stream {stream}", fault={"init": {"flood": stream}}, wanted=("output_limit",),
	     words=("--output-limit", "100k"))
	case(f"flood-{stream}-deaf", f"endless output on stream {stream}, whatever the engine is told", hasty="cleanup",
	     fault={"init": {"flood": stream, "deaf": True}}, wanted=("output_limit", "failed"), words=("--output-limit", "100k"))


# ---- a compile step, and what it hands over ------------------------------------------------------------

def output(size, *data):
	return fake.frame(fake.OUTPUT, struct.pack("<Q", size)) + b"".join(fake.frame(fake.DATA, piece) for piece in data)


OUTPUTS = {"good": None, "none": b"", "short": output(9, b"x"), "beyond": output(1, b"xyz"), "huge": output(1 << 62), "twice": 2 * output(0),
	   "data-first": fake.frame(fake.DATA, b"x"), "cut": fake.frame(fake.OUTPUT, b"x")}


def compiled(t, frames):
	wanted = ("ok",) if frames is None else ("failed",)
	engine = fake.Engine(t.tmp, {"init": {"output": frames}} if frames is not None else None, init_hash(t))
	try:
		r = t.cell("--backend", "docker", "-c", "int main(void) { return 0; }", "-i", "none", lang="c",
			   env=settings(engine, "", {"BRIG_CACHE": "false"}))
		engine.left = sorted(c.name for c in engine.containers.values())
	finally:
		engine.close()
	t.check(engine.trouble is None, "the fake itself is sound", engine.trouble)
	judge(t, r, engine, wanted)
	t.equal(sum("containers/create" in line for line in engine.requests), 2 if wanted == ("ok",) else 1, "containers made", r)


for name, frames in OUTPUTS.items():
	add(f"compile-{name}", f"a compile step's output: {name}", lambda t, frames=frames: compiled(t, frames))

# ---- what init says --------------------------------------------------------------------------------

WORDS = {"no-ready": b"", "unknown": fake.frame(99), "zero": fake.frame(0), "too-long": struct.pack("<II", fake.FACT, 1 << 20),
	 "exit-early": fake.frame(fake.EXIT, bytes(64)), "ready-with-body": fake.frame(fake.READY, b"x"),
	 "fact-beyond": fake.frame(fake.FACT, struct.pack("<IIQ", 9999, 0, 0) + fake.text("") + fake.text("x")),
	 "fact-cut": fake.frame(fake.FACT, b"\0" * 7), "failed-beyond": fake.frame(fake.FAILED, struct.pack("<II", 9999, 1)),
	 "spaces-short": fake.frame(fake.SPACES, b"\0" * 8), "output-early": fake.frame(fake.OUTPUT, b"\0" * 8),
	 "padded": b"\1\1\0\0\0\0\0\0"}
for name, data in WORDS.items():
	case(f"init-{name}", f"init says {name}", fault={"init": {"instead": data}}, hasty="startup" if name == "no-ready" else "", wanted=NOT_RUN)
for number, step in enumerate(fake.WIRE_STEPS):
	case(f"init-fails-{step}", f"init cannot {step}", fault={"init": {"instead": fake.frame(fake.FAILED, struct.pack("<II", number, 1))}},
	     wanted=NOT_RUN)
for name, values in {"code-256": (1, 256, 0, 0), "exited-2": (2, 0, 0, 0), "signal-200": (0, 200, 0, 0), "expired-7": (1, 0, 7, 0)}.items():
	case(f"init-{name}", f"init's last word: {name}", fault={"init": {"exit": struct.pack("<IIIIQQQQQQ", *values, 0, 0, 0, 0, 0, 0)}},
	     wanted=("failed",))
case("init-exit-short", "init's last word is cut", fault={"init": {"exit": b"\0" * 8}}, wanted=("failed",))

# ---- what was in force, by init's reading -------------------------------------------------------------

BIG = 1 << 50
WEAKER = {"memory_max": BIG, "swap_max": 1, "pids_max": BIG, "cpu_quota_percent": 6400, "disk_max": BIG, "inodes_max": BIG,
	  "open_files_max": BIG, "core_dumps": "possible", "uid": 0, "gid": 0, "groups": "others", "capabilities": "3fffffffff",
	  "no_new_privs": 0, "seccomp_mode": 0, "landlock": 0, "interfaces": "lo eth0", "packets_out": 1, "root_flags": "rw",
	  "writable_mounts": "/workspace /etc", "processes_left": 1}
REFUSING = {"memory_max", "swap_max", "pids_max", "cpu_quota_percent"}
for name, value in WEAKER.items():
	case(f"fact-late-{name}", f"at the end {name} is {value}", fault={"init": {"late": {name: value}}}, wanted=("violated",))
	if name in REFUSING:
		case(f"fact-early-{name}", f"before the start {name} is {value}", fault={"init": {"early": {name: value}}}, wanted=("refused",))
	if name != "processes_left":
		case(f"fact-missing-{name}", f"nobody says {name}", fault={"init": {"early": {name: None}, "late": {name: None}}},
		     wanted=("violated",) if name not in REFUSING else ("ok", "violated"))	# the engine's own account has the limits
for number, space in enumerate(("user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time")):
	def shared(t, number=number, space=space):
		inode = os.stat(f"/proc/self/ns/{space}").st_ino
		spaces = [inode if i == number else i + 1 for i in range(8)]
		r, engine = run(t, {"init": {"spaces": spaces}})
		judge(t, r, engine, ("ok",) if space in ("user", "time") else ("violated",))
	add(f"space-{space}", f"the {space} namespace is brig's own", shared)

# ---- an engine that did less than asked: every field that is compared -----------------------------------

OTHER_ID = "sha256:" + "f" * 64


def more(value):
	"""Something else of the same kind."""
	if isinstance(value, bool):
		return not value
	if isinstance(value, int):
		return value + 1
	if isinstance(value, str):
		return value + "x"
	if isinstance(value, list):
		return value + ["x"]
	return {**(value or {}), "x": "y"}


def fewer_ulimits(value):
	return [{**row, "Hard": row["Hard"] + 1, "Soft": row["Soft"] + 1} for row in value]


def loose_tmpfs(value):
	return {k: v + ",exec" if k == "/tmp" else v for k, v in value.items()}


def unconfined(value):
	return [row if not row.startswith("seccomp=") else "seccomp=unconfined" for row in value]


def without(index):
	return lambda value: [row for i, row in enumerate(value) if i != index]


def other_label(value):
	return {k: v + "0" if k == "brig.owner.pid" else v for k, v in value.items()}


# By the kind of comparison in map_check.c.
ALTERED = {
	"SAME": [more, MISSING], "IMAGE": [OTHER_ID, MISSING], "ALL_CAPS": [[], ["CHOWN"], MISSING],
	"TMPFS": [more, MISSING, loose_tmpfs], "ULIMITS": [fewer_ulimits, MISSING, without(0)],
	"SECURITY": [unconfined, MISSING, without(0), without(1)], "LABELS": [MISSING, other_label],
	"NONE": [more], "NOT_HOST": ["host", "container:abc"], "IS_FALSE": [True],
	"NETWORKS": [{"bridge": {}}, {"none": {"IPAddress": "172.17.0.2"}}],
}
# Where we ask for nothing, nothing may be said; and what is false by default may be left out.
MAY_BE_LEFT_OUT = {"Config.Cmd", "Config.Tty", "HostConfig.BlkioDeviceReadBps", "HostConfig.BlkioDeviceWriteBps"}
ROW = re.compile(r'^\t\{ (?:NULL|"[\w.]+"), "([\w.]+)", (\w+), (\w+) \},', re.M)


def compared_fields():
	with open(os.path.join(fake.ROOT, "src/backend/docker/map_check.c"), encoding="utf-8") as f:
		return ROW.findall(f.read())


FIELDS = compared_fields()


def every_field_is_there(t):
	t.check(len(FIELDS) >= 40, "the table of map_check.c was found", FIELDS)
	t.check({how for _, how, _ in FIELDS} <= set(ALTERED), "every kind of comparison has alterations", FIELDS)


add("account-table", "the table of compared fields is read", every_field_is_there)
for field, how, when in FIELDS:
	for number, new in enumerate(ALTERED.get(how, [])):
		if new is MISSING and field in MAY_BE_LEFT_OUT:
			continue
		extra = {"BRIG_DOCKER_RUNTIME": "runc"} if field == "HostConfig.Runtime" else None
		fault = {"account": {field: new}}
		what = "missing" if new is MISSING else f"altered {number}"
		if when != "ENDED":
			case(f"before-{field}-{number}", f"before the start {field} is {what}", fault={"step": "inspect_before", **fault},
			     env=extra, wanted=("refused",), says=re.escape(field))
		if when != "RUNNING":
			running = field == "State.Running"
			case(f"after-{field}-{number}", f"at the end {field} is {what}", fault={"step": "inspect_after", **fault}, env=extra,
			     hasty="cleanup" if running else "", wanted=("failed", "violated") if running else ("violated",))

# ---- what changed in the root ---------------------------------------------------------------------------

for number, (path, wanted) in enumerate([("/usr/bin/x", "violated"), ("/etc/passwd", "violated"), ("/tmpx", "violated"), ("/", "violated"),
					  ("/workspace2/x", "violated"), ("/tmp/x", "ok"), ("/workspace/a/b", "ok"), ("/etc/hosts", "ok")]):
	case(f"changed-{number}", f"{path} is changed", fault={"changed": [{"Path": path, "Kind": 1}]}, wanted=(wanted,))

# ---- images ------------------------------------------------------------------------------------------------

IMAGES = {"recipe": {"Config.Labels": lambda v: {**v, "brig.image.recipe": "0" * 16}},
	  "name": {"Config.Labels": lambda v: {**v, "brig.image": "other"}}, "labels": {"Config.Labels": None},
	  "init": {"Config.Labels": lambda v: {**v, "brig.init": "1" * 64}}, "root": {"Config.User": "root"},
	  "entrypoint": {"Config.Entrypoint": ["/bin/sh"]}, "volumes": {"Config.Volumes": {"/data": {}}},
	  "healthcheck": {"Config.Healthcheck": {"Test": ["CMD", "x"]}}, "architecture": {"Architecture": "s390x"},
	  "system": {"Os": "windows"}, "id": {"Id": "latest"}, "id-path": {"Id": "../../x"}, "config": {"Config": 7}}
for name, edits in IMAGES.items():
	case(f"image-wrong-{name}", f"the image's {name} is wrong", fault={"image": edits}, wanted=NOT_RUN)
	if name in ("volumes", "healthcheck", "architecture", "system", "id"):
		case(f"foreign-wrong-{name}", f"somebody else's image: {name}", fault={"image": edits}, env={"BRIG_DOCKER_IMAGE": "fake/base:1"},
		     wanted=NOT_RUN)
case("image-missing", "the image is missing and may not be built", fault={"no_image": True}, wanted=("refused",), says="brig images build")
case("foreign-missing", "somebody else's image is missing", env={"BRIG_DOCKER_IMAGE": "fake/none:1"}, wanted=("refused",), says="docker pull")
for step in ("create", "archive", "commit", "tag", "remove"):
	for name, fault in FAULTS:
		if name in ("status-400", "status-404", "status-409", "status-500", "close", "close-in-body", "body-garbage", "body-types", "no-http"):
			if name.startswith("body") and step in ("archive", "tag", "remove") or (step == "remove" and name == "status-404"):
				continue
			if step == "remove" and name == "status-409":
				continue	# waits for minutes, as it should
			case(f"derive-{step}-{name}", f"deriving an image, {step}: {name}", fault={"step": step, **fault},
			     env={"BRIG_DOCKER_IMAGE": "fake/base:1"}, wanted=NOT_RUN, may_stay=step == "remove")

# ---- names from requests cannot leave their place -----------------------------------------------------------

NAMES = ["../../containers/json", "a/../../x", "x?force=1", "x#y", "x y", "x\r\nX-Evil: 1", "%2e%2e/x", "/x", "..", "x" * 250, "\u00e4",
	 "-x", "a//b"]


def with_name(t, name):
	"""Refused when the policy is read, or when the engine is asked; never part of another request."""
	engine = fake.Engine(t.tmp, None, init_hash(t))
	try:
		p = t.brig("run", "--backend", "docker", "-l", "python", "-c", "print('hello')", "-i", "none",
			   env=settings(engine, "", {"BRIG_DOCKER_IMAGE": name}))
	finally:
		engine.close()
	t.equal(p.rc, harness.VERDICT_STATUS["refused"], "exit status", p)
	t.check(len(p.err) > 10, "it says why", p)
	bad = [line for line in engine.requests if ".." in line or "Evil" in line or "force" in line or " /v1.41/containers" in line
	       and "/containers/json?all=1&filters=" not in line]	# the look for what a killed brig left
	t.equal(bad, [], "requests that a name has made", p)


for number, name in enumerate(NAMES):
	add(f"name-{number}", f"docker_image {name[:20]!r}", lambda t, name=name: with_name(t, name))

# ---- engines that cannot be used ---------------------------------------------------------------------------

VERSIONS = {"old": {"ApiVersion": "1.39"}, "new": {"ApiVersion": "1.99", "MinAPIVersion": "1.90"}, "silly": {"ApiVersion": "2"},
	    "number": {"ApiVersion": 1.41}, "negative": {"ApiVersion": "1.-5"}, "huge": {"ApiVersion": "1.99999999999999999999"}}
for name, version in VERSIONS.items():
	case(f"version-{name}", f"an engine of a {name} version", fault={"version": version}, wanted=NOT_RUN)
for name, host, says in (("absent", "unix:///nonexistent/sock", "systemctl start docker"), ("file", "unix:///etc/passwd", "cannot connect"),
			 ("scheme", "ssh://engine.example", "not understood"), ("plain", "tcp://engine.example:2375", "TLS")):
	case(f"engine-{name}", f"docker_host {host}", env={"BRIG_DOCKER_HOST": host}, wanted=("refused",), says=says)
case("runtime-unknown", "a runtime that the engine does not have", env={"BRIG_DOCKER_RUNTIME": "runsc"}, wanted=("refused",), says="runsc")


# ---- TLS -----------------------------------------------------------------------------------------------------

def openssl(*words):
	subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def authority(folder):
	"""ca.pem with a server's and a client's certificate, named as clients of engines expect them."""
	os.makedirs(folder)
	ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
	openssl("req", "-x509", *ec, "-days", "2", "-subj", "/CN=test authority", "-keyout", f"{folder}/ca-key.pem", "-out", f"{folder}/ca.pem")
	for name, key, extra in (("server", "server-key", "subjectAltName=IP:127.0.0.1"), ("cert", "key", "extendedKeyUsage=clientAuth")):
		with open(f"{folder}/{name}.ext", "w", encoding="ascii") as f:
			f.write(extra + "\n")
		openssl("req", *ec, "-subj", f"/CN={name}", "-keyout", f"{folder}/{key}.pem", "-out", f"{folder}/{name}.csr")
		openssl("x509", "-req", "-in", f"{folder}/{name}.csr", "-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca-key.pem", "-CAcreateserial",
			"-days", "2", "-extfile", f"{folder}/{name}.ext", "-out", f"{folder}/{name}.pem")


def over_tls(t, client, wanted, says=None, fault=None):
	"""client: whose certificates brig has: "good", "other" or None."""
	if not shutil.which("openssl"):
		t.skip("openssl is not installed")
	for name in ("good", "other"):
		authority(t.path(name))
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(t.path("good/server.pem"), t.path("good/server-key.pem"))
	context.load_verify_locations(t.path("good/ca.pem"))
	context.verify_mode = ssl.CERT_REQUIRED
	if client == "mixed":	# the right authority, and a certificate of another one
		for name in ("cert.pem", "key.pem"):
			shutil.copy(t.path(f"other/{name}"), t.path(f"good/{name}"))
	folder = {"good": t.path("good"), "mixed": t.path("good"), "other": t.path("other")}.get(client)
	r, engine = run(t, fault, env={"BRIG_DOCKER_CERT_PATH": folder} if folder else None, tls=context)
	judge(t, r, engine, wanted)
	if says:
		t.check(re.search(says, r.reason), f"the reason matches '{says}'", r)
	if wanted == ("ok",):
		is_hello(t, r, engine)


add("tls-good", "an engine behind TLS", lambda t: over_tls(t, "good", ("ok",)))
add("tls-pieces", "an engine behind TLS, byte by byte", lambda t: over_tls(t, "good", ("ok",), fault={"step": "attach", "how": "pieces"}))
add("tls-cut", "behind TLS the stream ends early", lambda t: over_tls(t, "good", ("failed",), fault={"init": {"at": "end", "how": "half"}}))
add("tls-nonsense", "behind TLS the stream makes no sense",
    lambda t: over_tls(t, "good", ("failed",), fault={"init": {"at": "stdout", "how": "raw", "bytes": NONSENSE["type-9"]}}))
add("tls-other-authority", "the engine's certificate is not ours to trust", lambda t: over_tls(t, "other", ("refused",), "docker_cert_path"))
add("tls-other-client", "the engine does not trust us", lambda t: over_tls(t, "mixed", ("refused",), "docker_cert_path"))
add("tls-none", "no TLS towards an engine that wants it", lambda t: over_tls(t, None, NOT_RUN))

# ---- what is left is found again ---------------------------------------------------------------------------

def reap(t, fault, check, meanwhile=lambda engine: None):
	"""A run whose container stays; then `brig reap`, with another fault.  Only an engine that says nothing is waited for briefly."""
	engine = fake.Engine(t.tmp, {"step": "remove", "how": "status", "status": 500}, init_hash(t))
	try:
		r = t.cell("--backend", "docker", "-c", "print('hello')", "-i", "none", lang="python", env=settings(engine, "", {}))
		t.verdict(r, "ok")
		t.equal(len(engine.containers), 1, "containers that stay", r)
		engine.fault = fault
		meanwhile(engine)
		check(t, engine, t.brig("reap", env=settings(engine, "startup cleanup" if fault.get("how") == "hang" else "", {})))
	finally:
		engine.close()


def reaped(t, engine, p):
	t.equal(p.rc, 0, "exit status", p)
	t.equal(len(engine.containers), 0, "containers after reap", p)


def complained(t, _engine, p):
	t.check(p.rc not in (0, None) and p.rc > 0, "reap says that it failed", p)
	t.check(len(p.err) > 10, "and why", p)


add("reap", "brig reap removes what an engine kept", lambda t: reap(t, {}, reaped))
for name, fault in (("list-garbage", {"step": "list", "how": "body", "body": b"nothing"}), ("list-500", {"step": "list", "how": "status", "status": 500}),
		    ("list-hang", {"step": "list", "how": "hang"}), ("list-no-ids", {"step": "list", "how": "body", "body": b'[{"Id":"../x","Labels":{}}]'}),
		    ("remove-500", {"step": "remove", "how": "status", "status": 500}), ("remove-hang", {"step": "remove", "how": "hang"})):
	add(f"reap-{name}", f"brig reap when {name}", lambda t, fault=fault: reap(t, fault, complained))


def ghost(t):
	"""An engine lists what it has removed; it answers 404 when asked for it."""
	def check(t, engine, p):
		reaped(t, engine, p)
		[ghost] = engine.ghosts
		for p in (p, t.brig("ps", "--json", env=settings(engine, "", {}))):
			t.equal(p.rc, 0, "exit status", p)
			t.check(ghost.id not in p.out.decode(), "it is not named", p)

	def leave(engine):
		engine.ghosts, engine.containers = list(engine.containers.values()), {}

	reap(t, {}, check, leave)


add("reap-ghost", "neither brig reap nor brig ps shows what is only a row in the engine's list", ghost)


# ---- a warm container ------------------------------------------------------------------------------------------

def start_pool(t, env):
	"""`brig pool` on this engine; its environment is the runs' as well."""
	log = t.path("pool.log", "")
	with open(log, "ab") as out:
		p = t.popen([harness.brig_path(), "pool", "--size", "1", "--lang", "python"], env=env, stdin=subprocess.DEVNULL,
			    stdout=subprocess.DEVNULL, stderr=out)
	deadline = time.monotonic() + fake.CEILING
	while True:
		with open(log, encoding="utf-8", errors="replace") as f:
			said = f.read()
		if "ready:" in said:
			return p
		if p.poll() is not None or time.monotonic() > deadline:
			raise harness.Failed(f"the pool does not fill: {said}")
		time.sleep(0.02)


def warm(t, fault, wanted, also=None, hasty=""):
	"""One run in a container of a pool.  It must have been taken from there, and nothing is left when the pool has ended."""
	folder = os.path.join(t.dir, "run")
	os.mkdir(folder, 0o700)
	engine = fake.Engine(t.tmp, fault, init_hash(t))
	env = settings(engine, hasty, {"XDG_RUNTIME_DIR": folder})
	try:
		pool = start_pool(t, env)
		try:
			r = t.cell("--backend", "docker", "-c", "print('hello')", "-i", "none", lang="python", env=env)
		finally:
			pool.terminate()
			pool.wait()
		engine.left = sorted(c.name for c in engine.containers.values())
	finally:
		engine.close()
	t.check(engine.trouble is None, "the fake itself is sound", engine.trouble)
	t.check(not [line for line in engine.requests if "containers/create" in line and "-pool" not in line], "a warm one was taken", engine.requests)
	judge(t, r, engine, wanted)
	if also:
		also(t, r, engine)


def inspected(engine):
	"""How often the container was asked about that the run has taken."""
	names = [re.search("containers/([0-9a-f]{64})/json", line) for line in engine.requests]
	return max(collections.Counter(m[1] for m in names if m).values())


def left_to_pool(data):
	"""The run goes on at the mark: the pool has asked once, the run twice, and nobody whether it has ended."""
	def look(t, r, engine):
		t.equal((r.stdout, r.stderr, r.json.get("warnings")), (data, b"oh\n", []), "output and warnings", r)
		t.equal(inspected(engine), 3, "times that the engine was asked about the container", engine.requests)
	return look


def waited_for(data):
	"""Without the mark, until the engine says that it has ended."""
	def look(t, r, engine):
		t.equal(r.stdout, data, "output", r)
		t.check(inspected(engine) > 3, "the engine was asked whether it has ended", engine.requests)
	return look


MARKS = {
	"good": ({}, left_to_pool(b"hello\n")), "late": ({"before_mark": b"more\n"}, left_to_pool(b"hello\nmore\n")),
	# Whatever is no mark is the program's: then the end is waited for as without a pool.
	"none": ({"at": "mark", "how": "say", "bytes": b""}, waited_for(b"hello\n")),
	"other": ({"at": "mark", "how": "say", "bytes": b"x" * 32}, waited_for(b"hello\n" + b"x" * 32)),
	"on-stderr": ({"at": "mark", "how": "say", "stream": 2, "bytes": b"x" * 32}, None),
	"close": ({"at": "mark", "how": "close"}, waited_for(b"hello\n")),
	"nonsense": ({"at": "mark", "how": "raw", "bytes": b"this is no frame\n"}, waited_for(b"hello\n")),
	"silence": ({"at": "mark", "how": "hang"}, waited_for(b"hello\n")),
	"half": ({"at": "mark", "how": "half"}, None),
}
for name, (words, also) in MARKS.items():
	add(f"warm-mark-{name}", f"a warm container's mark: {name}",
	    lambda t, words=words, also=also, name=name: warm(t, {"init": words}, ("ok", "failed") if also is None else ("ok",), also,
							      "cleanup" if name == "silence" else ""))


# ---- other commands on a broken engine -----------------------------------------------------------------------

def command(t, words, fault):
	engine = fake.Engine(t.tmp, fault, init_hash(t))
	try:
		p = t.brig(*words, env=settings(engine, "startup", {}))
	finally:
		engine.close()
	t.check(0 < p.rc < 128, "it says that it failed", p)
	t.check(len(p.text()) > 10 and "\x1b" not in p.text(), "and why", p)


for words in (("ps",), ("images", "list"), ("images", "check", "python")):
	step = "list" if words[0] == "ps" else "image"
	for name, fault in (("500", {"how": "status", "status": 500}), ("garbage", {"how": "body", "body": b"nothing"}), ("hang", {"how": "hang"}),
			    ("close", {"how": "close"}), ("types", {"how": "body", "body": b'[{"Id":7}]'})):
		add(f"{'-'.join(words)}-{name}", f"brig {' '.join(words)}: {name}",
		    lambda t, words=words, fault=fault, step=step: command(t, words, {"step": step, **fault}))

if __name__ == "__main__":
	# What waits for a limit first: it needs no processor, and the others fill the time.
	harness.CASES.sort(key=lambda c: not re.search("hang|409|Running|no-ready", c.ident))
	sys.exit(harness.main("fake engine", probe=False))
