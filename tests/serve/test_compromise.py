# SPDX-License-Identifier: Apache-2.0
"""The compromise drill: foreign code in the front's place (hostile_front.c) gets nothing that its clients have not brought."""
import json
import os
import re
import socket
import subprocess

import harness
from client import PATIENCE, Server, children, read_quietly, status_field, wait_until
from harness import case

HOSTILE = os.path.join(os.path.dirname(harness.brig_path()), "tests", "serve", "hostile-front")
FILTERED = "asan" not in harness.brig_path()	# a build with sanitizers has no filter of system calls
RUNNER_MIB = 96	# that the runner may ever have had in memory, after 100000 answers that nobody read
POLICY = "mem_limit: 64m\nmax_mem_limit: 1g\nopen_files: 64\n"
JUDGED = {"BRIG_INSPECTION": None}	# as it is for users


def built(t):
	if not os.access(HOSTILE, os.X_OK):
		t.skip("the drill's program is not built")


def rows(text):
	"""What the program told of its rows, and which of them went wrong."""
	told = re.findall(r"^(ok|not ok) - (.*)$", text, re.M)
	return [name for _, name in told], [name for how, name in told if how != "ok"]


@case("system calls that would do harm end the front", final="code in the front's place is not held by its filter")
def calls(t):
	built(t)
	if not FILTERED:
		t.skip("there is no filter in a build with sanitizers")
	p = t.run([HOSTILE, "calls", t.state])
	told, wrong = rows(p.err.decode())
	t.equal((p.rc, wrong), (0, []), "what came through", p)
	t.check(len(told) > 90, "all of them were tried", len(told))


def secret(t, name, *args):
	p = t.brig("token", "create", name, *args, "--state", t.state, "--json")
	t.equal(p.rc, 0, "brig token create", p)
	return json.loads(p.out)["secret"]


def log_of(t):
	return read_quietly(os.path.join(t.state, "audit", "000001.jsonl"))


def knock(path):
	"""Two connections of whoever runs this, who is an administrator: one that is left at once, and one that is held."""
	held = []
	for _ in range(2):
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.connect(path)
		held.append(s)
		if len(held) == 1:
			s.close()
	return held[1]


def drilled(t, words, err_path):
	"""The drill from its first word to its end; the runner's most memory in KiB."""
	with open(err_path, "wb") as err:
		p = t.popen(words, JUDGED, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err)
	try:
		port = int(re.fullmatch(rb"ready http://127\.0\.0\.1:(\d+)\n", p.stdout.readline()).group(1))
		with knock(words[4]):
			wait_until("the drill ends", lambda: p.poll() is not None or b"drill done\n" in read_quietly(err_path))
		runner = [c for c in children(p.pid) if read_quietly(f"/proc/{c}/comm") == b"brig-runner\n"]
		peak = [int(status_field(c, "VmHWM").split()[0]) for c in runner]
		if FILTERED:
			socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()	# it still listens
		p.terminate()
		t.equal(p.wait(PATIENCE), 0, "its status", read_quietly(err_path))
		return peak
	finally:
		p.kill()
		p.wait()
		p.stdout.close()


@case("a front that is foreign code: no cell above the ceilings, nothing of another token's, no line of the log", final="a front that was taken over gets more than its clients brought")
def front(t):
	built(t)
	t.equal(t.brig("run", "--state", t.state, "--lang", "shell", "-c", "echo before").rc, 0, "a run before")
	before = log_of(t)
	policy, err_path = t.path("sandbox.yaml", POLICY), t.path("hostile.err")
	mallory, alice = secret(t, "mallory", "--max-trust", "unknown", "--memory", "256m"), secret(t, "alice")
	tokens = read_quietly(os.path.join(t.state, "serve", "tokens"))
	peak = drilled(t, [HOSTILE, "serve", t.state, policy, t.path("run.sock"), mallory, alice], err_path)
	err = read_quietly(err_path).decode()
	told, wrong = rows(err)
	t.equal(wrong, [], "what went wrong", err)
	t.equal([name for name in os.listdir("/tmp") if name.startswith("brig-drill-escape")], [], "files outside of cells")
	t.check("drill done" in err and len(told) > 80, "all of it was done", err)
	ended = [line for line in err.splitlines() if "of the service has ended" in line and "the front" not in line]
	t.check(not ended and "Sanitizer" not in err and "runtime error" not in err, "nobody else was ended by it", err)
	t.check(len(peak) == 1 and (peak[0] < RUNNER_MIB << 10 or not FILTERED), "memory of the runner", peak)
	t.check(before and log_of(t).startswith(before), "what was written in the log stays")
	t.equal(t.brig("audit", "verify", "--state", t.state).rc, 0, "brig audit verify")
	t.equal(read_quietly(os.path.join(t.state, "serve", "tokens")), tokens, "the tokens")
	with Server(t, "--policy", policy, auth=True, env=JUDGED) as s:
		t.equal(s.result(mallory, language="shell", code="echo 1")["stdout"], "1\n", "an honest service afterwards")


HOSTILE_RUNNER = os.path.join(os.path.dirname(HOSTILE), "hostile-runner")
REFUSED = "refused: the job asks for more than the keeper of cells was started for: "


@case("code in the runner's place gets no cell above the ceilings of the policy, whatever it tells master and keeper", final="a runner that was taken over chooses its ceilings")
def runner(t):
	if not os.access(HOSTILE_RUNNER, os.X_OK):
		t.skip("the drill's program is not built")
	if os.geteuid() != 0:
		t.skip("only root gets at another process's descriptors")
	policy = t.path("low.yaml", "default_trust: untrusted\nmem_limit: 64m\ncompile_memory: 256m\ninstall_memory: 256m\n")
	with Server(t, "--policy", policy, env=JUDGED) as s:
		t.equal(s.result(language="shell", code="echo 1")["stdout"], "1\n", "the service itself has cells")
		p = t.run([HOSTILE_RUNNER, str(s.processes()["runner"])])
		t.equal(p.rc, 0, "the drill", p)
		t.equal(p.out.decode().splitlines(), [
			"small: a cell", f"memory: {REFUSED}memory_bytes", f"processes: {REFUSED}pids", f"unlimited: {REFUSED}a cell without a limit",
			f"walls: {REFUSED}protections that it would go without", f"root: {REFUSED}another root", f"user: {REFUSED}the user id",
			"project: not mounted", "greeting: the end", f"again: {REFUSED}memory_bytes"], "what came of each attempt", p)
		wait_until("its keepers end with it", lambda: len(s.keepers()) == 1)
		t.equal(s.result(language="shell", code="echo 2")["stdout"], "2\n", "the service goes on")
