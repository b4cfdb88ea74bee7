# SPDX-License-Identifier: Apache-2.0
"""The process that runs cells, seen from outside: of root's rights it has those of its table, and so has all that it starts."""
import os
import re
import signal

import harness
from client import Server, children, read_quietly, status_field, tree, wait_until
from harness import ROOT, case

# linux/capability.h
NUMBERS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8, "NET_ADMIN": 12, "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SETFCAP": 31}


def table():
	"""{name: how it is needed}"""
	text = read_quietly(os.path.join(ROOT, "src/server/capabilities.def")).decode()
	return dict(re.findall(r"^CAPABILITY\((\w+), +IS_(NEEDED|STRICTER|DIRECT|FALLBACK|FORKS),", text, re.M))


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
			t.check(not own or held & ~most == 0, f"rights of {comm}", hex(held))
		t.check(not [p for p in tree(runner) if read_quietly(f"/proc/{p}/comm") == b"brig-keeper\n"], "the runner starts no keeper")
		keepers = s.keepers()
		t.equal(len(keepers), 1, "keepers of the master")
		for pid in (*keepers, *[c for c in children(keepers[0]) if read_quietly(f"/proc/{c}/comm") == b"brig-janitor\n"]):
			held = int(status_field(pid, "CapPrm"), 16)
			t.check(held & ~set_of("NEEDED", "DIRECT", "FALLBACK", "FORKS") == 0, f"rights of {pid}", hex(held))
		if os.geteuid() == 0:
			wait_until("cells are filled with forks", lambda: s.result(language="python", code="print(1)")["forked"])


@case("a keeper that was killed is replaced by the master, with all that cells and forks take; so is one of another policy")
def replaced(t):
	policy = t.path("policy.yaml", "mem_limit: 128m\nmax_mem_limit: 128m\n")
	with Server(t, "--policy", policy) as s:
		for _ in range(2):
			wait_until("a program runs", lambda: s.result(language="python", code="print(1)")["verdict"] == "ok")
			if os.geteuid() == 0:
				wait_until("cells are filled with forks", lambda: s.result(language="python", code="print(1)")["forked"])
			keeper, = s.keepers()
			os.kill(int(keeper), signal.SIGKILL)
			wait_until("the master has buried it", lambda: keeper not in s.keepers())
		before = wait_until("another one is there", lambda: s.result(language="shell", code="echo 1")["verdict"] == "ok" and s.keepers())
		more = {"language": "shell", "code": "echo 1", "options": {"mem_limit": "256m"}}
		t.equal(s.result(**more)["verdict"], "refused", "more than the policy has")
		with open(policy, "w", encoding="utf-8") as f:
			f.write("mem_limit: 128m\nmax_mem_limit: 512m\n")
		os.kill(s.pid, signal.SIGHUP)
		wait_until("the ceilings of the new policy are in force", lambda: s.result(**more)["verdict"] == "ok")
		wait_until("the keeper of the old one has gone", lambda: not set(before) & set(s.keepers()))


@case("rights of direct runs are the runner's only under a policy that has such runs, and come back with no policy")
def direct(t):
	if os.geteuid() != 0:
		t.skip("only root has something to keep")
	policy = t.path("direct.yaml", "enable_sandbox: false\n")
	leave = "import os\nos.mkdir('d')\nopen('d/x', 'w').close()\nos.chmod('d', 0o1777)\nprint(1)"
	with Server(t, "--policy", policy) as s:
		t.equal(int(status_field(s.processes()["runner"], "CapPrm"), 16), set_of("NEEDED", "STRICTER", "DIRECT"), "its rights")
		t.equal(s.result(language="python", code=leave)["verdict"], "ok", "a direct run")
		with open(policy, "w", encoding="utf-8") as f:
			f.write("mem_limit: 100m\n")
		os.kill(s.pid, signal.SIGHUP)
		wait_until("they are given up", lambda: int(status_field(s.processes()["runner"], "CapPrm"), 16) == set_of("NEEDED", "STRICTER"))
		t.equal(s.result(language="shell", code="echo 1")["backend"], "native", "runs have cells now")
		with open(policy, "w", encoding="utf-8") as f:
			f.write("enable_sandbox: false\n")
		os.kill(s.pid, signal.SIGHUP)
		wait_until("it is said that they are gone", lambda: "start the service anew" in s.stderr())
		t.equal(s.result(language="shell", code="echo 1")["backend"], "native", "the policy before stays in force")


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
	needed = {name for name, need in table().items() if need in ("NEEDED", "DIRECT")}
	t.equal(set(table()) - set(NUMBERS), set(), "numbers that this case knows")
	t.equal(named("packaging/systemd/brig.service.in", r"(?<=CAP_)([A-Z_]+)"), needed, "CapabilityBoundingSet")
	t.equal(named("docs/CONTAINER.md", r"--cap-add ([A-Z_]+)"), needed, "--cap-add")


@case("a part of the service that somebody starts by hand says what it is, and ends")
def by_hand(t):
	for name in ("brig-front", "brig-runner", "brig-recorder"):
		for fd in ("", "3</dev/null", f"3<{harness.brig_path()}"):
			p = t.run(["bash", "-c", f'exec -a {name} "$0" {fd}', harness.brig_path()])
			t.check(p.rc == 1 and b"a part of 'brig serve'" in p.err, f"{name} {fd}", p)
