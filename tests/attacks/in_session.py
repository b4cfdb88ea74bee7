# SPDX-License-Identifier: Apache-2.0
"""
in_session.py - the same attacks from inside sessions.

With BRIG_ATTACKS_IN=session the program of an attack is a process of a session, with BRIG_ATTACKS_IN=context a program of Python
is code in a context of one; the judge is the same.  A second session of another owner stands beside it: while the hostile one
and whatever it left running are still there, it must answer, and only then are both ended.  The census and the canaries follow,
as after a run.

What differs from a run is what a session promises to differ (docs/SESSIONS.md): a limit of the whole cell ends a process and not
the cell.  So the judge is told "memory_limit" if the record of the session warns that the kernel killed something in it, and
"pids_limit" of a process that failed in a session that had as many processes as it may.  The record of the cell has to be "ok", or
"cpu_limit" where that is the subject: a program cannot end the session that it is in, nor break one of its promises.
"""
import base64
import json
import os
import sys

import harness
from harness import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "session"))

PLACE = os.environ.get("BRIG_ATTACKS_IN", "")
if PLACE not in ("", "session", "context"):
	sys.exit(f"BRIG_ATTACKS_IN={PLACE}: session and context are the places there are")

# In a context an interpreter that ends is a crash of the run, whatever status it chose; the judges of these want a status.
NOT_IN_CONTEXT = ("DK-03", "DK-04", "OU-04b")	# the last one finds the descriptor of its kernel: contexts.channel_taken of the session suite
KEYS = {"memory": "mem_limit", "pids": "pids_limit", "disk": "disk_limit"}
INPUT_MAX, INPUT_PIECE = 4 << 20, 512 << 10	# that wait for one process; in a line for the driver
COMMAND = {"python": "python3", "shell": "sh", "javascript": "node"}


def begin(owner, limits):
	options = {KEYS.get(key, key): str(value) for key, value in limits.items() if value is not None and key != "timeout"}
	if "cpu_time_ms" in limits:	# of a process that is its own time; what its children use counts for the session
		options["session_cpu_time_ms"] = str(max(limits["cpu_time_ms"], 1000))
	return owner.session({**options, "execution_timeout_ms": str(limits["timeout"] * 1000)})


def compiled(t, source):
	"""The words of a program of C, made outside: compilers are other attacks."""
	path = t.path("program.c", source)
	p = t.run(["gcc", "-w", "-O1", "-pthread", "-o", t.path("program"), path, "-lm"])
	t.check(p.rc == 0, "compiles", p)
	with open(t.path("program"), "rb") as f:
		return base64.b64encode(f.read()).decode()


def put(session, name, content):
	done = session.done("open", path=name, content=content)
	if done["error"]:
		raise Failed(f"no {name} in the session: {done}")


def start(t, session, lang, source, args, timeout_ms, stdin):
	"""The hostile program as a process."""
	import owner
	if lang == "c":
		put(session, "program.b64", compiled(t, source))
		made = session.command("sh", "-c", "base64 -d program.b64 >program && rm program.b64 && chmod 755 program")
		t.check(made.code == 0, "the program is there", made.err)
		words = ["./program"]
	else:
		put(session, "program" + harness.EXTENSION[lang], source)
		words = [COMMAND[lang], "program" + harness.EXTENSION[lang]]
	process = session.start(*words, *args, timeout_ms=timeout_ms, flags=owner.STDIN if stdin else 0)
	if stdin:
		feed(process, stdin)
	return process.tag


def feed(process, data):
	"""As much as is taken for a process that may not read, and may end at any time."""
	asks = [("input", {"data": data[at:at + INPUT_PIECE].decode()}) for at in range(0, min(len(data), INPUT_MAX), INPUT_PIECE)]
	for what, members in [*asks, ("close_input", {})]:
		answer = process.session.owner.try_to(what, session=process.session.number, of=process.tag, **members)
		if answer["rc"] < 0 and "no such process" in answer["message"]:
			return
		if answer["rc"] < 0:
			raise Failed(f"{what}: {answer}")


def streams(session, tag):
	"""What it wrote, in bytes: the driver tells text as text and anything else as numbers."""
	both = {1: b"", 2: b""}
	for e in session.take("output", tag):
		both[e["stream"]] += e["data"].encode() if isinstance(e["data"], str) else bytes(e["data"])
	return both[1], both[2]


def verdict_of(ran, record, limits):
	if record["verdict"] == "cpu_limit":
		return "cpu_limit"
	if ran["verdict"] in ("ok", "error", "crash") and any("memory" in w for w in record["warnings"]):
		return "memory_limit"
	if ran["verdict"] in ("error", "crash") and record["usage"]["pids_peak"] >= int(limits["pids"]):
		return "pids_limit"
	return ran["verdict"]


def result(ran, record, limits, out, err, words):
	"""In the shape of a run's: the cell's record, with what became of the program in it."""
	both = dict(record, verdict=verdict_of(ran, record, limits), exit_code=ran.get("exit_code"), signal=ran.get("signal"), reason=ran.get("reason", ""))
	for name, data in (("stdout", out), ("stderr", err)):
		both[name], both[name + "_encoding"] = base64.b64encode(data).decode(), "base64"
	r = harness.Result(harness.Proc(0, json.dumps(both).encode(), b"", 0, words))
	r.rc = harness.VERDICT_STATUS.get(r.verdict, 128 + r.signal if r.verdict == "crash" else r.json["exit_code"])
	return r


def has(ident, lang, stdin):
	"""Whether an attack that is a program and a judge can be made in this place."""
	return PLACE != "context" or lang == "python" and not stdin and ident not in NOT_IN_CONTEXT


def skip_others(t, lang, stdin, words, kw):
	"""What brig run is asked for beyond limits, a session is not."""
	others = [*words, *(key for key in kw if key != "env" and kw[key] != t.dir)]
	if others:
		t.skip(f"{others[0]} is asked of brig run")
	if lang not in COMMAND and lang != "c":
		t.skip(f"{lang} is compiled by brig run")
	if not isinstance(stdin, bytes):
		t.skip("a process of a session has no descriptor of the caller's")


def run(t, lang, source, words, limits, args, stdin, kw):
	"""An attack in a session, another session beside it; the result as of a run."""
	from owner import Owner, same
	skip_others(t, lang, stdin, words, kw)
	timeout_ms = limits["timeout"] * 1000
	with Owner(t, kw.get("env")) as mine, Owner(t) as other:
		neighbour = other.session()
		context = neighbour.context()
		session = begin(mine, limits)
		tag = session.context().begin(source, timeout_ms=timeout_ms).tag if PLACE == "context" else start(t, session, lang, source, args, timeout_ms, stdin)
		ran = session.wait("ran", tag)["result"]
		same("the session beside it", context.run("40 + 2").text, "42")
		same("a process of the session beside it", neighbour.command("echo", "ok").out, "ok\n")
		record = session.end()
		t.check(record["verdict"] in (["ok", "cpu_limit"] if "cpu_time_ms" in limits else ["ok"]), "the session outlives what is in it", record)
		out, err = streams(session, tag)
		same("the end of the session beside it", neighbour.stop()["verdict"], "ok")
	return result(ran, record, limits, out, err, [PLACE, lang])


def only_sessions():
	"""Cases that use brig run itself have their place in the other suite."""
	def not_here(t, *_words, **_kw):
		t.skip("an attack on brig run itself, or with a part in it")
	harness.Test.cell = harness.Test.run_args = harness.Test.brig = not_here
