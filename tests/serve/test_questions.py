# SPDX-License-Identifier: Apache-2.0
"""Questions that take long: whoever asks one waits, and nobody else does."""
import json
import os
import signal

from client import Raw, Server, children, read_quietly, request, wait_until
from harness import case

OF_TOKEN, PROCESSES = 2, 32	# src/server/runner/answerers.h
LONG = "\n".join(f"x{i} = eval('1 + {i}')" for i in range(9000))	# takes long enough to be found at work


def inspection(code=LONG, *lines):
	return request("POST", "/v1/inspections", "Content-Type: application/json", *lines, body=json.dumps({"language": "python", "code": code}).encode())


def answerers(s):
	return [p for p in children(s.processes()["runner"]) if read_quietly(f"/proc/{p}/comm").strip() == b"brig-answerer"]


def stopped(s, n):
	"""The n processes that answer, once they are there, stopped: none of them answers until it is let go on."""
	pids = wait_until(f"{n} processes answer", lambda: len(answerers(s)) == n and answerers(s))
	for pid in pids:
		os.kill(pid, signal.SIGSTOP)
	return pids


@case("a question that takes long holds up nobody: executions, other questions; and it is answered when it is answered")
def beside(t):
	with Server(t) as s, Raw(s, inspection()) as asker:
		[pid] = stopped(s, 1)
		t.equal(s.get("/healthz").status, 200, "healthz")
		t.equal(s.result(language="shell", code="echo 1")["stdout"], "1\n", "an execution")
		ident = s.start(language="shell", code="echo 2")
		t.equal(s.ended(ident)["result"]["stdout"], "2\n", "an asynchronous one")
		with s.client() as c:
			a = c.ask("POST", "/v1/inspections", {"language": "python", "code": "eval('1')"}, status=200)
			t.check(a.json["findings"], "another inspection", a)
			for target in ("/v1/capabilities", "/v1/environments", "/v1/cells", "/v1/rules"):
				c.ask("GET", target, status=200)
		t.equal(answerers(s), [pid], "the first one is still at it")
		os.kill(pid, signal.SIGCONT)
		a = asker.answer()
		t.check(a and a.status == 200 and a.json["findings"], "its answer", a)
		wait_until("no process is left", lambda: not answerers(s))


@case("whoever hangs up ends the process that was to answer, and so does the end of the front")
def given_up(t):
	with Server(t) as s:
		with Raw(s, inspection()):
			stopped(s, 1)
		wait_until("it is gone with its asker", lambda: not answerers(s))
		with Raw(s, inspection()) as r:
			stopped(s, 1)
			os.kill(s.processes()["front"], signal.SIGKILL)
			t.equal(r.answer(), None, "the connection has gone")
			wait_until("it is gone with the front", lambda: not answerers(s))
		with Raw(s, inspection()) as r:
			[pid] = stopped(s, 1)
			os.kill(pid, signal.SIGKILL)
			t.equal(r.answer().status, 500, "one that died is answered for")
		t.equal(s.get("/v1/capabilities").status, 200, "others are answered")


@case("few questions are at work at one time, of one token fewer; the others wait, and there is an end to those who may")
def bounded(t):
	with Server(t, auth=True) as s:
		ada, bob = (f"Authorization: Bearer {s.token(name)}" for name in ("ada", "bob"))
		askers = [Raw(s, inspection(LONG, ada)) for _ in range(OF_TOKEN)]
		try:
			pids = stopped(s, OF_TOKEN)
			askers += [Raw(s, inspection(LONG, ada)) for _ in range(PROCESSES - OF_TOKEN)]
			wait_until("the others wait", lambda: len(answerers(s)) == PROCESSES)
			with Raw(s, inspection("1", bob)) as r:
				a = r.answer()
				t.check(a.status == 503 and a.header("retry-after"), "one too many", a)
			for asker in askers[3:]:
				asker.s.close()
			wait_until("they are gone", lambda: len(answerers(s)) == 3)
			with Raw(s, inspection("1", bob)) as r:	# while two of ada's are at work and one waits
				t.equal(r.answer().status, 200, "another token's turn comes")
			wait_until("its process is gone, and the three are still there", lambda: len(answerers(s)) == 3)
			for pid in pids:
				os.kill(pid, signal.SIGCONT)
			for asker in askers[:3]:
				t.equal(asker.answer().status, 200, "each has its answer")
		finally:
			for asker in askers:
				asker.s.close()
