# SPDX-License-Identifier: Apache-2.0
"""An ordinary user with a range in /etc/subuid: the same separation of ids as for root."""
import os

import harness
from harness import case

UID, FIRST, COUNT = 4321, 700000, 65536
SCRIPT = ("mount --bind passwd /etc/passwd && mount --bind subuid /etc/subuid && mount --bind subuid /etc/subgid && "
	  f"exec setpriv --reuid {UID} --regid {UID} --clear-groups -- \"$@\"")
LIMITS = "memory_limit,swap_limit,pids_limit,cpu_quota,cpu_time,socket_memory"


def as_user_with_range(t, *args, first=FIRST, count=COUNT):
	"""Runs brig as an account that exists only in a mount namespace of this case."""
	with open("/etc/passwd", encoding="utf-8") as f:
		t.path("passwd", f.read() + f"cellmate:x:{UID}:{UID}::/:/bin/sh\n")
	t.path("subuid", f"cellmate:{first}:{count}\n")
	os.makedirs(t.state, mode=0o700, exist_ok=True)	# that user cannot make it in the case's folder
	os.chown(t.state, UID, UID)
	return harness.Result(t.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", SCRIPT, "sh", *t.run_args("--json", *args)],
				    env={"BRIG_ALLOW_DEGRADED": LIMITS}))


def needs_range(t):
	t.native_only("id ranges of an ordinary user")
	if not harness.is_root():
		t.skip("needs root to make the account in a mount namespace")
	missing = [p for p in ("/usr/bin/newuidmap", "/etc/subuid", "/etc/subgid") if not os.path.exists(p)]
	if missing:
		t.skip(f"{missing[0]} is not there")
	probe = t.run(["/usr/bin/setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "--", "/usr/bin/test", "-x",
		       harness.brig_path()])
	if probe.rc != 0:
		t.skip("other users cannot reach the binary under test")


def check_ids(t, first, count):
	r = t.verdict(as_user_with_range(t, "-c", "print('ran')", "--lang", "python", first=first, count=count), "ok")
	t.equal(r.stdout, b"ran\n", "output", r)
	rows = {row["check"]: row for row in r.json["evidence"]}
	t.check(rows["id_separation"]["kept"], "the ids are not separate", rows["id_separation"])
	seen = {int(rows[check]["enforced"]) for check in ("host_uid", "init_host_uid")}
	t.equal(len(seen), 2, "number of ids", seen)
	t.check(UID not in seen and all(first <= uid < first + count for uid in seen), "ids outside of the range", seen)
	t.check("id_separation" not in str(r.json["degraded"]), "id_separation is called degraded", r.json["degraded"])


@case("a user with a range in /etc/subuid gets two ids of it, neither of them its own")
def subordinate_ids(t):
	needs_range(t)
	check_ids(t, FIRST, COUNT)


@case("the same where the keeper cannot have the whole range in a user namespace, because the user's own id is in it")
def range_with_own_id(t):
	needs_range(t)
	check_ids(t, UID - 3, 65536)	# the kernel takes no map that has an id twice


@case("a user with a range gets back what a program left in its workspace, whatever modes it gave it")
def workspace_of_subordinate_ids(t):
	needs_range(t)
	top = t.path("project")
	os.mkdir(top)
	for name, mode in (("private", 0o600), (".env", 0o600), ("plain", 0o644)):
		os.chown(t.path("project/" + name, name, mode), UID, UID)
	os.chown(top, UID, UID)
	program = ("import os\nprint(open('private').read(), repr(open('.env').read()))\nopen('private', 'w').write('changed')\n"
		   "os.mkdir('d')\nopen('d/f', 'w').write('f')\nos.chmod('d/f', 0)\nos.chmod('d', 0)\nos.unlink('plain')\n")
	r = t.verdict(as_user_with_range(t, "--trust", "trusted", "--workspace", top, "-c", program, "--lang", "python"), "ok")
	t.equal(r.stdout, b"private ''\n", "output", r)
	seen = {(row["path"], row["change"]) for row in r.json["changes"]}
	t.equal(seen, {("private", "modified"), ("d", "added"), ("d/f", "added"), ("plain", "deleted")}, "changes", r)
	with open(os.path.join(top, "private"), encoding="utf-8") as f:
		t.equal(f.read(), "private", "the project's file")
