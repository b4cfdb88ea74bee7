# SPDX-License-Identifier: Apache-2.0
"""Sessions that are made ahead of their request, and the Python in them."""
import json

from harness import case
from owner import Owner, same

AHEAD = {"BRIG_WARM_CELLS": "1"}
SPARE_PID = 3	# the first that the steward starts
# What a program sees of the interpreter that it runs in.
LOOK = """import gc, os, signal, stat, sys, threading
fds = {n: os.path.basename(os.readlink('/proc/self/fd/' + n)).split(':')[0] for n in ('0', '1', '2')}
[sys.argv, list(sys.flags), sorted(os.environ.items()), os.getcwd(), os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), fds, len(os.listdir('/proc/self/fd')),
 [(s.isatty(), s.seekable(), s.line_buffering, s.encoding) for s in (sys.stdin, sys.stdout, sys.stderr)], sys.stdin.read(), __name__, sorted(globals()),
 sorted(set(sys.modules) - {'_socket'}), gc.isenabled(), threading.active_count(), str(signal.getsignal(signal.SIGINT)).split(' at ')[0], int(signal.getsignal(signal.SIGTERM)),
 [l for l in open('/proc/self/status').read().splitlines() if l.split(':')[0] in ('Uid', 'Gid', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp', 'SigBlk', 'SigIgn', 'Groups')],
 open('/proc/self/limits').read(), open('/proc/self/oom_score_adj').read()]"""


def of_run(row):
	"""Of a check, what does not depend on the moment."""
	return row["check"], row["declared"], row["kept"]


@case("a session that was there before it was asked for is one like any other: walls, evidence, record, interpreter")
def same_session(t):
	seen, results = [], []
	for env in ({"BRIG_WARM_CELLS": "0"}, AHEAD):
		with Owner(t, env) as owner:
			s = owner.session()
			seen.append(s.context().run(LOOK).text)
			results.append(s.stop())
	same("what a program sees", eval(seen[1]), eval(seen[0]))
	same("whether they were made ahead", [r["warm"] for r in results], [False, True])
	same("evidence", [of_run(e) for e in results[1]["evidence"]], [of_run(e) for e in results[0]["evidence"]])
	same("the limits", results[1]["limits"], results[0]["limits"])
	rows = json.loads(t.brig("history", "--json", stdin=b"").out)["executions"]
	same("the record", [row["verdict"] for row in rows if row["id"] == results[1]["id"]], ["ok"])


@case("the Python that was started ahead is given once, to who asks for nothing else; nothing of it is shared with another session")
def given_once(t):
	with Owner(t, AHEAD) as owner:
		a, b = owner.session(), owner.session()
		elsewhere = a.context(cwd="/tmp").run("import os\n[os.getpid(), os.getcwd()]").text
		same("another folder has another process", [eval(elsewhere)[0] != SPARE_PID, eval(elsewhere)[1]], [True, "/tmp"])
		same("the first", a.context(cwd="/workspace").run("import os; os.getpid()").text, str(SPARE_PID))
		same("the second", a.context().run("import os; os.getpid() != %d" % SPARE_PID).text, "True")
		same("another language", a.context("bash").run("echo $$").out != f"{SPARE_PID}\n", True)
		look = "import os, random\n(hash('x'), random.random(), [l for l in open('/proc/self/maps') if '[stack]' in l][0].split()[0], os.getpid())"
		mine, other = (eval(s.context().run(look).text) for s in (owner.session(), b))
		same("both were", [mine[3], other[3]], [SPARE_PID, SPARE_PID])
		same("what they share", set(mine[:3]) & set(other[:3]), set())


@case("a Python that was started ahead and has died is replaced")
def spare_dies(t):
	with Owner(t, AHEAD) as owner:
		s = owner.session()
		# Until the steward has buried it.
		same("killed", s.command("sh", "-c", f"kill -9 {SPARE_PID}; while kill -0 {SPARE_PID} 2> /dev/null; do :; done; echo gone").out, "gone\n")
		same("a context", s.context().run("import os; 6 * 7, os.getpid() != %d" % SPARE_PID).text, "(42, True)")
		same("its verdict", s.stop()["verdict"], "ok")


@case("a session with variables of its own, and the first of a kind, have a cell made for them")
def not_ahead(t):
	with Owner(t, AHEAD) as owner:
		s = owner.session(env=["MINE=1"])
		same("its variable", s.context().run("import os; os.environ['MINE']").text, "1")
		same("made for it", s.stop()["warm"], False)
