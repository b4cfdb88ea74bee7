# SPDX-License-Identifier: Apache-2.0
"""Interpreters that keep their state."""
import base64
import json

from harness import Failed, case
from owner import Owner, holds, same


@case("a context of Python keeps its state, and shows the value of the last expression")
def python_state(t):
	with Owner(t) as owner:
		c = owner.session().context()
		same("no value", c.run("x = 20\ndef twice(n):\n    return n * 2").text, None)
		r = c.run("print('out')\nimport sys; print('err', file=sys.stderr)\ntwice(x) + 2")
		same("the value", (r.text, r.out, r.err, r.count, r.verdict), ("42", "out\n", "err\n", 2, "ok"))
		same("a string without its quotes", c.run("'hello'").text, "hello")
		same("the last value", c.run("_ * 2").text, "hellohello")
		same("a semicolon", c.run("x;").text, None)
		same("await", c.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nawait f()").text, "7")


@case("results have every form that their value has")
def python_forms(t):
	with Owner(t) as owner:
		c = owner.session().context()
		code = """class Shown:
    def _repr_html_(self): return "<b>h</b>"
    def _repr_markdown_(self): return "*m*"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_latex_(self): return "$l$"
    def _repr_json_(self): return {"a": [1]}
    def __repr__(self): return "Shown()"
display(Shown(), 5)
Shown()"""
		r = c.run(code)
		want = {"main": "1", "text": "Shown()", "html": "<b>h</b>", "markdown": "*m*", "svg": "<svg/>", "latex": "$l$",
			"json": '{"a": [1]}', "png": base64.b64encode(b"\x89PNG").decode()}
		same("forms", r.results[2], want)
		same("what was shown before", (r.results[0]["main"], r.results[0]["html"], r.results[1]["text"]), ("0", "<b>h</b>", "5"))
		same("an object", json.loads(c.run("{'k': [1, None]}").results[0]["json"]), {"k": [1, None]})


@case("an error has name, value and the traceback of the code alone, and the state stays")
def python_errors(t):
	with Owner(t) as owner:
		c = owner.session().context()
		c.run("y = 1")
		r = c.run("def f():\n    return 1 / 0\nf()")
		error = r.errors[0]
		same("error", (error["name"], error["value"], r.verdict, r.result["reason"]),
		     ("ZeroDivisionError", "division by zero", "error", "ZeroDivisionError: division by zero"))
		holds("traceback", error["traceback"], 'File "<cell 2>", line 2, in f')
		holds("traceback", error["traceback"], "return 1 / 0")
		if "<string>" in error["traceback"]:
			raise Failed(f"the kernel's own frames are in it: {error['traceback']}")
		same("syntax", c.run("def").errors[0]["name"], "SyntaxError")
		same("exit", c.run("import sys; sys.exit(3)").errors[0]["name"], "SystemExit")
		same("state", c.run("y").text, "1")


@case("an interrupt ends the run and keeps the state")
def interrupt(t):
	with Owner(t) as owner:
		s = owner.session()
		for language, setup, busy, name, look in (
				("python", "z = 3", "print('busy', flush=True)\nwhile True: pass", "KeyboardInterrupt", "z"),
				("javascript", "var z = 3", "console.log('busy'); while (true) {}", "Error", "z"),
				("bash", "z=3", "echo busy; while :; do :; done", "Interrupted", "echo $z"),
				("bash", "z=3", "echo busy; sleep 1000", "Interrupted", "echo $z")):
			c = s.context(language)
			c.run(setup)
			run = c.begin(busy)
			run.said("busy")
			s.ask("interrupt", of=c.tag)
			same(f"{language}'s error", run.finish().errors[0]["name"], name)
			after = c.run(look)
			same(f"{language}'s state", after.text or after.out.strip(), "3")


@case("a run that reaches its time limit is interrupted; one that does not stop loses its interpreter, and nothing else")
def time_limit(t):
	with Owner(t) as owner:
		s = owner.session()
		c, other = s.context(), s.context()
		c.run("a = 1")
		other.run("a = 2")
		r = c.run("while True: pass", timeout_ms=200)
		same("verdict", r.verdict, "timeout")
		same("state", c.run("a").text, "1")
		stubborn = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
		same("verdict of one that ignores it", c.run(stubborn, timeout_ms=200).verdict, "timeout")
		r = c.run("'a' in globals()")
		same("a new interpreter", (r.text, r.count), ("False", 1))
		same("the other one", other.run("a").text, "2")


@case("a kernel that dies ends its run with a verdict, and begins anew")
def kernel_dies(t):
	with Owner(t) as owner:
		c = owner.session().context()
		r = c.run("import os; print('last', flush=True); os._exit(3)")
		same("the run", (r.verdict, r.out), ("crash", "last\n"))
		same("anew", c.run("1 + 1").text, "2")
		r = c.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
		same("killed", (r.verdict, r.result["signal"]), ("crash", "SIGKILL"))


@case("what a program writes on its kernel's channel is taken for nothing that it is not")
def channel_taken(t):
	with Owner(t) as owner:
		s = owner.session()
		c = s.context()
		# It answers in the kernel's place: that is its own run's business.  Then it writes what is no frame.
		r = c.run("import os\nfor fd in os.listdir('/proc/self/fd'):\n    try:\n        os.write(int(fd), b'x' * 100000 + b'\\n')\n    except OSError: pass")
		same("verdict", r.verdict, "crash")
		same("anew", c.run("6 * 7").text, "42")


@case("restart forgets; a context that is closed is gone; a second run has to wait")
def restart(t):
	with Owner(t) as owner:
		s = owner.session()
		c = s.context()
		c.run("a = 1")
		s.ask("restart", of=c.tag)
		s.wait("done", c.tag)
		same("after restart", c.run("'a' in globals()").text, "False")
		run = c.begin("print('busy', flush=True)\nwhile True: pass")
		run.said("busy")
		holds("a second run", s.ask("run", context=c.tag, code="1", refused=True), "already")
		s.ask("close", of=c.tag)
		same("the run", run.finish().verdict, "crash")
		holds("a closed context", s.ask("run", context=c.tag, code="1", refused=True), "no such context")


@case("contexts of several languages run side by side")
def side_by_side(t):
	with Owner(t) as owner:
		s = owner.session()
		a, b, c = s.context("python"), s.context("javascript"), s.context("bash")
		waiting = a.begin("import os\nprint('waits', flush=True)\nwhile not os.path.exists('go'): pass\n'went'")
		waiting.said("waits")
		same("javascript", b.run("const k = 6; k * 7").text, "42")
		same("its state", b.run("k + 1").text, "7")
		same("await", b.run("const v = await Promise.resolve(5)\nv").text, "5")
		same("imports", b.run("import { basename } from 'node:path'\nbasename('/a/b')").text, "b")
		same("an object", b.run("({ a: 1 })").results[0]["json"], '{"a":1}')
		r = b.run("null.x")
		same("its error", (r.errors[0]["name"], r.verdict), ("TypeError", "error"))
		same("bash", c.run("cd /tmp; v=7; f() { echo f$1; }").verdict, "ok")
		same("its state", c.run("pwd; echo $v; f 1").out, "/tmp\n7\nf1\n")
		same("its status", c.run("false").errors[0]["value"], "exit status 1")
		c.run("touch /workspace/go")
		same("python", waiting.finish().text, "went")


@case("variables of a run are taken back; those of the session hold for all")
def variables(t):
	with Owner(t) as owner:
		s = owner.session(env=["OF_SESSION=1"])
		looks = {"python": "import os\n[os.environ.get('OF_SESSION'), os.environ.get('OF_RUN')]", "javascript": "[process.env.OF_SESSION, process.env.OF_RUN]",
			 "bash": 'echo "$OF_SESSION ${OF_RUN-None}"'}
		for language, look in looks.items():
			c = s.context(language)
			r = c.run(look, env=["OF_RUN=2"])
			holds(language, r.text or r.out, "2")
			r = c.run(look)
			holds(language, r.text or r.out, "1")
			if "2" in (r.text or r.out):
				raise Failed(f"{language} keeps it: {r.text or r.out}")


@case("output beyond the limit ends the run, not the context")
def output_limit(t):
	with Owner(t) as owner:
		c = owner.session({"output_limit": "100k"}).context()
		c.run("a = 1")
		r = c.run("while True: print('x' * 1000)")
		same("verdict", (r.verdict, len(r.out)), ("output_limit", 102400))
		same("state", c.run("a").text, "1")
		same("a result that is too large", c.run("'x' * 200000").verdict, "output_limit")
		same("after that", c.run("a").text, "1")


@case("what runs in a session is inspected, blocked and recorded by itself")
def inspected(t):
	with Owner(t) as owner:
		s = owner.session({"inspection": "guard"})
		c = s.context()
		same("harmless", c.run("1 + 1").verdict, "ok")
		r = c.run("import shutil\nshutil.rmtree('/')")
		same("blocked", r.verdict, "blocked")
		if not r.result["findings"]:
			raise Failed("there are no findings")
		same("the context", c.run("2 + 2").text, "4")
		tag = s.ask("start", argv=["rm", "-rf", "/"])
		same("a command", (s.wait("done", tag)["error"], s.wait("ran", tag)["result"]["verdict"]), ("EPERM", "blocked"))
		ended = s.stop()
		same("the cell", ended["verdict"], "ok")
	rows = json.loads(t.brig("history", "--json", stdin=b"").out)["executions"]
	same("history", sorted((row["language"], row["verdict"]) for row in rows),
	     sorted([("session", "ok"), ("python", "ok"), ("python", "blocked"), ("python", "ok"), ("command", "blocked")]))
	same("audit", t.brig("audit", "verify", stdin=b"").rc, 0)
