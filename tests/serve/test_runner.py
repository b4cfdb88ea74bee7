# SPDX-License-Identifier: Apache-2.0
"""The process that runs cells, seen from outside: of root's rights it has those of its table, and so has all that it starts."""
import os
import re

import harness
from client import Server, children, read_quietly, status_field, tree, wait_until
from harness import ROOT, case

# linux/capability.h
NUMBERS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8, "NET_ADMIN": 12, "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SETFCAP": 31}


def table():
	"""{name: how it is needed}"""
	text = read_quietly(os.path.join(ROOT, "src/server/runner/capabilities.def")).decode()
	return dict(re.findall(r"^CAPABILITY\((\w+), +IS_(NEEDED|STRICTER|FALLBACK|KEEPERS),", text, re.M))


def set_of(*needs):
	"""Those of the table, as far as we have them ourselves."""
	return sum(1 << NUMBERS[name] for name, need in table().items() if need in needs) & int(status_field("self", "CapPrm"), 16)


def named(path, pattern):
	return set(re.findall(pattern, read_quietly(os.path.join(ROOT, path)).decode()))


@case("the runner, and all that it starts, have no capability that is not in its table", final="the process that runs cells has a right too many")
def confined(t):
	most = set_of("NEEDED", "STRICTER")
	with Server(t) as s:
		t.equal(s.result(language="python", code="print(1)")["stdout"], "1\n", "it runs programs")
		runner = s.processes()["runner"]
		if os.geteuid() == 0:
			t.equal({n: int(status_field(runner, n), 16) for n in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")}, {"CapEff": most, "CapPrm": most, "CapBnd": most, "CapInh": 0, "CapAmb": 0}, "its rights")
			t.equal(status_field(runner, "NoNewPrivs"), "1", "and it gets no others")
		for pid in tree(runner):
			held = int(status_field(pid, "CapPrm") or "0", 16)
			own = os.path.exists(f"/proc/{pid}/ns/user") and os.readlink(f"/proc/{pid}/ns/user") == os.readlink("/proc/self/ns/user")
			comm = read_quietly(f"/proc/{pid}/comm")
			its = set_of(*table().values()) if comm in (b"brig-keeper\n", b"brig-janitor\n") else most
			t.check(not own or held & ~its == 0, f"rights of {comm}", hex(held))
		t.check(any(read_quietly(f"/proc/{p}/comm") == b"brig-keeper\n" for p in children(runner)), "the keeper was among them")
		if os.geteuid() == 0:
			wait_until("cells are filled with forks", lambda: s.result(language="python", code="print(1)")["forked"])


# Becomes a program on a host that lets nobody make a user namespace: in one in which all ids are themselves.
NO_NAMESPACES = """
import ctypes, os, sys
libc, (r, w), (r2, w2) = ctypes.CDLL(None, use_errno=True), os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
	os.read(r, 1)
	for kind in ("uid", "gid"):
		with open(f"/proc/{os.getppid()}/{kind}_map", "w") as f: f.write("0 0 4294967295")
	os.write(w2, b"x")
	os._exit(0)
if libc.unshare(0x10000000) != 0: sys.exit("no user namespace: %d" % ctypes.get_errno())
os.write(w, b"x")
os.read(r2, 1)
os.waitpid(pid, 0)
with open("/proc/sys/user/max_user_namespaces", "w") as f: f.write("0")
os.execv(sys.argv[1], sys.argv[1:])
"""


@case("on a host that lets nobody else make user namespaces the runner keeps what it needs for that, and says so")
def fallback(t):
	if os.geteuid() != 0:
		t.skip("only root has something to keep")
	with Server(t, through=["/usr/bin/python3", "-c", NO_NAMESPACES]) as s:
		t.equal(int(status_field(s.processes()["runner"], "CapPrm"), 16), set_of("NEEDED", "STRICTER", "FALLBACK"), "its rights")
		t.check("the runner keeps it" in s.stderr(), "its log", s.stderr())


@case("each process of the service is a program that was executed anew: nothing of the master's memory, no address in common")
def executed(t):
	canary = "birth-canary-" + os.path.basename(t.state)
	with Server(t, "--host", canary.lower(), env={"SERVE_CANARY": canary}) as s:
		pids = {"master": s.pid, **s.processes()}
		t.equal({n: read_quietly(f"/proc/{p}/cmdline") for n, p in pids.items() if n != "master"}, {n: f"brig-{n}\0".encode() for n in pids if n != "master"}, "what they were started as")
		t.check(canary.encode() not in read_quietly(f"/proc/{pids['front']}/environ"), "the front was not even given the variables")
		if os.geteuid() != 0:
			return	# their memory cannot be looked at
		stacks = {n: re.search(rb"^(\w+-\w+) .*\[stack\]$", read_quietly(f"/proc/{p}/maps"), re.M).group(1) for n, p in pids.items()}
		t.equal(len(set(stacks.values())), len(pids), "where their stacks are", stacks)


@case("what the table names is what the unit of systemd and the container's command line give")
def same_lists(t):
	needed = {name for name, need in table().items() if need == "NEEDED"}
	t.equal(set(table()) - set(NUMBERS), set(), "numbers that this case knows")
	t.equal(named("packaging/systemd/brig.service.in", r"(?<=CAP_)([A-Z_]+)"), needed, "CapabilityBoundingSet")
	t.equal(named("docs/CONTAINER.md", r"--cap-add ([A-Z_]+)"), needed, "--cap-add")


@case("a part of the service that somebody starts by hand says what it is, and ends")
def by_hand(t):
	for name in ("brig-front", "brig-runner", "brig-recorder"):
		for fd in ("", "3</dev/null", f"3<{harness.brig_path()}"):
			p = t.run(["bash", "-c", f'exec -a {name} "$0" {fd}', harness.brig_path()])
			t.check(p.rc == 1 and b"a part of 'brig serve'" in p.err, f"{name} {fd}", p)
