# SPDX-License-Identifier: Apache-2.0
"""Interpreters that keep their state."""
import base64
import json
import os
import subprocess

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
		c.run("import asyncio\nhits = []\nasync def note():\n    hits.append(1)\ntask = asyncio.create_task(note())")
		same("a task of a piece that does not await", c.run("await asyncio.sleep(0)\nhits").text, "[1]")
		same("a loop of its own", c.run("async def main():\n    return await asyncio.create_task(asyncio.sleep(0, 5))\nasyncio.run(main())").text, "5")
		same("await", c.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nawait f()").text, "7")


@case("the value of a piece is that of its last statement if that is an expression, wherever its lines end")
def python_last(t):
	rows = (("a = 1\n(a +\n1)", "2"), ("a = '''\n7\n'''", None), ("'''\n7\n'''", "\n7\n"), ("a = [\n1,\n2]", None), ("[1,\n2][\n0\n]", "1"),
		("a = 1 + \\\n2", None), ("1 + \\\n2", "3"), ("if True:\n  a = 5\na", "5"), ("if True:\n  6\n", None), ("a = 8; a", "8"), ("9 # nine\n\n  ", "9"),
		("7 # seven\n# and a word", "7"), ("*(1, 2), 3", "(1, 2, 3)"), ("from __future__ import annotations\n4", "4"), ("3\r\n4", "4"), ("def f(): return 1\nf()", "1"),
		("for n in (1, 2):\n  n\nelse:\n  n", None), ("n == 2", "True"), ("'a' \\\n'b'", "ab"), ("x = 1\n\n\n", None), ("@str\ndef g(): pass\ng[:11]", "<function g"))
	with Owner(t) as owner:
		c = owner.session().context()
		for code, text in rows:
			r = c.run(code)
			same(repr(code), (r.text, r.verdict), (text, "ok"))
		r = c.run("a = 1\n\nnone_such")
		same("lines are those of the piece", 'line 3, in <module>\n    none_such\n' in r.errors[0]["traceback"], True)
		same("an error of form", c.run("a = 1\nb +").errors[0]["name"], "SyntaxError")
		same("and above", c.run("a = (\nb").errors[0]["name"], "SyntaxError")
		r = c.run("def f(): return 1 is 1\nf()")
		same("one warning", (r.text, r.err.count("SyntaxWarning")), ("True", 1))
		# A kernel gets ready while code is inspected: what earlier code has put in place of what that takes is no matter.
		c.run("import builtins\ndef no(*a, **b): raise ValueError\nreal, builtins.compile = compile, no")
		same("one that cannot get ready runs", c.run("1").errors[0]["name"], "ValueError")


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


@case("what notebooks show with: IPython's display, matplotlib's show(), lines that set how; input() says why it cannot be")
def python_shows(t):
	with Owner(t) as owner:
		s = owner.session()
		c = s.context()
		r = c.run("from IPython.display import display as d, HTML\nd(HTML('<b>'), 5)\nd({'text/html': '<i>', 'text/plain': 't'}, raw=True)")
		same("IPython", ([x.get("html") for x in r.results], r.results[1]["text"], r.out, r.errors), (["<b>", None, "<i>"], "5", "", []))
		same("input", c.run("input('name? ')").errors[0]["name"], "StdinNotImplementedError")
		# A library of this name that has what is used of it; the real one is large, and not everywhere.
		c.run("import os\nos.makedirs('matplotlib')\nfor n, text in (('__init__', ''), ('figure', 'class Figure:\\n def savefig(self, out, **_): out.write(b\"PNG\")'), "
		      "('pyplot', 'from .figure import Figure\\nopen_ = {1: Figure()}\\ndef get_fignums(): return list(open_)\\ndef figure(n): return open_[n]\\n"
		      "def close(f): open_.clear()\\ndef show(): raise OSError')):\n    open(f'matplotlib/{n}.py', 'w').write(text)")
		r = c.run("import sys; sys.path.insert(0, '.')\nimport matplotlib.pyplot as plt\nplt.show()\nprint('after')")
		same("show()", ([x.get("png") for x in r.results], r.out, r.errors), ([base64.b64encode(b"PNG").decode()], "after\n", []))


@case("lines of notebooks that are no Python: commands, magics, questions; where Python has such signs itself they stay its own")
def python_lines(t):
	with Owner(t) as owner:
		c = owner.session().context()
		for what, code, out, text in (
				("a command", "!echo one; echo two", "one\ntwo\n", None),
				("with values of the program, and of the shell", "x = [3]\n!echo {x[0] + 1} $x ${HOME} {a,b} '{print $1}'", "4 [3] /workspace a b {print $1}\n", None),
				("its lines", "lines = !printf 'a\\nb\\n'\nlines, lines.s", "", "(['a', 'b'], 'a b')"),
				("in a block, with an odd quote", "def f(n):\n    !echo \"it's {n}\"\nfor i in (1, 2): f(i)\nprint('after')", "it's 1\nit's 2\nafter\n", None),
				("over several lines", "!echo a \\\n  b\n_exit_code", "a b\n", "0"),
				("one that fails", "!exit 3\n_exit_code", "", "3"),
				("%cd, %pwd", "%cd -q /tmp\nhere = %pwd\n%cd -q -\nhere", "", "/tmp"),
				("%env", "%env A=1\nimport os\nos.environ['A']", "env: A=1\n", "1"),
				("how things are shown", "%matplotlib inline\n%load_ext autoreload\n6 * 7", "", "42"),
				("%%bash", "%%bash\nn=4\necho $n", "4\n", None),
				("%%writefile", "%%writefile w.txt\nline", "Writing w.txt\n", None),
				("what it wrote", "open('w.txt').read()", "", "line"),
				("%%capture", "%%capture kept\nprint('quiet')\n5", "", None),
				("what it captured", "kept.stdout", "", "quiet"),
				("text that only looks like it", "x = \"\"\"\n%matplotlib\n!ls\"\"\"\nx", "", "\n%matplotlib\n!ls"),
				("Python's own", "(7\n %4)", "", "3"),
				("code that is indented as a whole", "\n    if True:\n        y = 8\n    y", "", "8"),
				("a semicolon in a comment", "y # ;", "", "8"), ("one behind a value", "y ; # quiet", "", None)):
			r = c.run(code)
			same(what, (r.errors, r.out, r.text and r.text.strip("\n") if "looks" not in what else r.text), ([], out, text))
		r = c.run("%%time\nimport asyncio\nawait asyncio.sleep(0, 7)")
		same("%%time", (r.text, r.out.splitlines()[-1][:11]), ("7", "Wall time: "))
		holds("%timeit", c.run("%timeit -n 3 -r 2 f").out, "2 runs, 3 loops each")
		holds("a question", c.run("len?").out, "Return the number of items")
		same("%%html", c.run("%%html\n<b>").results[0]["html"], "<b>")
		for code, name, value in (("%nothing", "UsageError", "%nothing"), ("%%nothing\n1", "UsageError", "%%nothing"), ("%pip install x", "UsageError", "brig env create"), ("!pip install x", "UsageError", "brig env create"),
				("%%bash\nexit 4", "CalledProcessError", "exit status 4"), ("!true\nx = = 1", "SyntaxError", "line 2"), ("%time 1 / 0", "ZeroDivisionError", "division")):
			error = c.run(code).errors[0]
			same(code, error["name"], name)
			holds(code, error["value"], value)
			if "<notebook>" in error["traceback"]:
				raise Failed(f"the kernel's own frames are in it: {error['traceback']}")


FIGURES = """import datetime, json, matplotlib.pyplot as plt
_, a = plt.subplots(); a.plot([1, 2], [3, 4.5], label="up"); a.set(title="T", xlabel="time (s)", ylabel="y"); a.plot([1, 2], [float("nan"), 1]); plt.show()
_, a = plt.subplots(); a.plot([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], [1, 2]); a.set_yscale("log"); plt.show()
_, a = plt.subplots(); a.scatter(["p", "q"], [3, 4], label="s"); a.plot([0, 1], [3, 4]); plt.show()
_, a = plt.subplots(); a.bar(["p", "q"], [3, 4], label="g"); plt.show()
_, a = plt.subplots(); a.barh([0, 1], [3, 4]); a.set_yticks([0, 1], ["p", "q"]); plt.show()
_, a = plt.subplots(); a.pie([1, 3], labels=["x", "y"]); plt.show()
_, a = plt.subplots(); a.boxplot([[1, 2, 3, 4, 20], [2, 3, 4]]); plt.show()
f, (a, b) = plt.subplots(1, 2); a.plot([1], [2]); b.imshow([[1, 2]]); f.suptitle("both"); plt.show()
_, a = plt.subplots(); a.boxplot([1, 2]); a.cla(); plt.show()
_, a = plt.subplots(); a.plot(range(100000)); plt.show()
plt.figure(); plt.show()
plt.figure().add_subplot(projection="polar").plot([1], [2]); plt.show()"""


@case("figures of matplotlib have a chart: what they show, as data")
def python_charts(t):
	if subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], stderr=subprocess.DEVNULL, check=False).returncode:
		t.skip("matplotlib is not installed (apt-get install python3-matplotlib)")
	with Owner(t) as owner:
		r = owner.session({"output_limit": "10m"}).context().run(FIGURES)
		same("errors", (r.errors, all("png" in x for x in r.results)), ([], True))
		line, dates, cloud, bars, flat, pie, boxes, both, empty, large, bare, round_ = [json.loads(x.get("chart", "null")) for x in r.results]
		same("line", [line[k] for k in ("type", "title", "x_label", "x_unit", "y_label", "y_unit", "x_scale", "elements")],
		     ["line", "T", "time (s)", "s", "y", None, "linear", [{"label": "up", "points": [[1, 3], [2, 4.5]]}, {"label": "Line 1", "points": [[1, None], [2, 1]]}]])
		same("its ticks", len(line["x_ticks"]), len(line["x_tick_labels"]))
		same("dates", (dates["x_scale"], dates["y_scale"], dates["elements"][0]["points"][0]), ("datetime", "log", ["2020-01-01T00:00:00+00:00", 1]))
		same("scatter", (cloud["type"], cloud["x_scale"], cloud["elements"]), ("scatter", "categorical", [{"label": "s", "points": [["p", 3], ["q", 4]]}]))
		same("bar", (bars["type"], bars["elements"]), ("bar", [{"label": "p", "value": 3, "group": "g"}, {"label": "q", "value": 4, "group": "g"}]))
		same("bars that lie", [(x["label"], x["value"]) for x in flat["elements"]], [("p", 3), ("q", 4)])
		same("pie", (pie["type"], [(x["label"], round(x["angle"]), x["radius"]) for x in pie["elements"]]), ("pie", [("x", 90, 1), ("y", 270, 1)]))
		same("boxes", (boxes["type"], len(boxes["elements"]), boxes["elements"][0]),
		     ("box_and_whisker", 2, {"label": "1", "min": 1, "first_quartile": 2, "median": 3, "third_quartile": 4, "max": 4, "outliers": [20]}))
		same("several", (both["type"], both["title"], [x["type"] for x in both["elements"]]), ("superchart", "both", ["line", "unknown"]))
		same("others", (empty["type"], large, bare, round_["type"]), ("unknown", None, None, "unknown"))


@case("figures of a run that fails are its own results, and nothing of them is in the next run's")
def figures_of_errors(t):
	if subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], stderr=subprocess.DEVNULL, check=False).returncode:
		t.skip("matplotlib is not installed (apt-get install python3-matplotlib)")
	with Owner(t) as owner:
		c = owner.session({"output_limit": "10m"}).context()
		r = c.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1 / 0")
		same("an error", ([x["name"] for x in r.errors], ["png" in x for x in r.results]), (["ZeroDivisionError"], [True]))
		r = c.run("'next'")
		same("after it", [x.get("text") for x in r.results], ["next"])
		c.run("plt.plot([1, 2])\nraise KeyboardInterrupt")
		same("after an interruption", len(c.run("'next'").results), 1)


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


@case("a run that reaches its cpu limit is interrupted, also by its children; what waits does not count, nor what earlier runs used")
def cpu_limit(t):
	with Owner(t) as owner:
		s = owner.session({"cpu_time_ms": "400", "execution_timeout_ms": "60000"})
		c, shell = s.context(), s.context("bash")
		c.run("a = 1\nimport time\ndef use(seconds):\n    end = time.process_time() + seconds\n    while time.process_time() < end: pass")
		for _ in range(2):
			same("less than the limit, again and again", c.run("use(0.25)").verdict, "ok")
		r = c.run("while True: pass")
		same("more", (r.verdict, r.result["reason"], r.errors[0]["name"]), ("cpu_limit", "it used more cpu time than cpu_time_ms", "KeyboardInterrupt"))
		same("state", c.run("a").text, "1")
		same("a child's", shell.run("sh -c 'while :; do :; done'").verdict, "cpu_limit")
		same("sleep", c.run("time.sleep(0.5); a").text, "1")


@case("a kernel that dies ends its run with a verdict, and begins anew")
def kernel_dies(t):
	with Owner(t) as owner:
		c = owner.session().context()
		r = c.run("import os; print('last', flush=True); os._exit(3)")
		same("the run", (r.verdict, r.out, r.result["exit_code"]), ("crash", "last\n", 3))
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


@case("restart forgets; a context that is closed is gone, and what waits there with it")
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
		waiting = c.begin("1")
		s.ask("close", of=c.tag)
		same("the run", run.finish().verdict, "crash")
		same("one that waited", waiting.finish().verdict, "error")
		holds("a closed context", s.ask("run", context=c.tag, code="1", refused=True), "no such context")


@case("runs of one context wait for each other, in their order; one that nobody wants any more does not begin")
def queue(t):
	with Owner(t) as owner:
		s = owner.session()
		c = s.context()
		first = c.begin("seen = []\nprint('busy', flush=True)\nimport os\nwhile not os.path.exists('go'): pass")
		runs = [c.begin(f"seen.append({i}); seen") for i in range(127)]
		first.said("busy")
		runs.append(c.begin("seen.append(127); seen"))
		holds("too many", s.ask("run", context=c.tag, code="1", refused=True), "128 runs wait")
		s.ask("cancel", of=runs[7].tag)
		same("one that waits", (runs[7].finish().verdict, runs[7].count), ("cancelled", 0))
		s.context("bash").run("touch go")
		first.finish()
		order = [i for i in range(128) if i != 7]
		for at, i in enumerate(order):
			r = runs[i].finish()
			same("order", (r.text, r.count), (str(order[:at + 1]), at + 2))


@case("to cancel a run interrupts it alone; one whose interpreter is not ready ends at once")
def cancel(t):
	with Owner(t) as owner:
		s = owner.session()
		tag = s.ask("context", language="python")
		early = s.ask("run", context=tag, code="while True: pass")
		s.ask("cancel", of=early)
		same("early", s.wait("ran", early)["result"]["verdict"] in ("cancelled", "error"), True)
		s.wait("done", tag)
		c = s.context()
		c.run("a = 1")
		run, after = c.begin("print('busy', flush=True)\nwhile True: pass"), c.begin("a + 1")
		run.said("busy")
		s.ask("cancel", of=run.tag)
		same("interrupted", run.finish().errors[0]["name"], "KeyboardInterrupt")
		same("the next, with the state", (after.finish().text, after.verdict), ("2", "ok"))
		holds("what is over", s.ask("cancel", of=run.tag, refused=True), "no such run")


@case("a run that nobody wants any more and that does not stop loses its interpreter, and the next one says so")
def stubborn(t):
	with Owner(t) as owner:
		s = owner.session({"execution_timeout_ms": "300000"})
		c = s.context()
		run = c.begin("while True:\n    try:\n        print('busy', flush=True)\n        while True: n = 1\n    except BaseException: pass")
		run.said("busy")
		s.ask("cancel", of=run.tag)
		r = run.finish()
		same("verdict", r.verdict, "cancelled")
		holds("why", r.result["reason"], "did not stop")
		after = c.run("1 + 1")
		same("the next", (after.text, after.count), ("2", 1))
		holds("what it says", after.err, "what it knew is gone")
		same("and the one behind it", c.run("2").err, "")


@case("the cpu time of a run is its own and its children's, of every language")
def cpu_time(t):
	with Owner(t) as owner:
		s = owner.session()
		for language, busy, idle in (
				("python", "import os, time\nwhile time.process_time() < 0.15: pass", "import time; time.sleep(0.1)"),
				("python", "!i=0; while [ $i -lt 25000 ]; do i=$((i+1)); done", "!sleep 0.1"),
				("javascript", "while (process.cpuUsage().user < 200000) ;", "await new Promise((r) => setTimeout(r, 100))"),
				("bash", "for ((i = 0; i < 150000; i++)); do :; done", "sleep 0.1")):
			c = s.context(language)
			used = [c.run(code).result["usage"] for code in (busy, idle)]
			t.check(used[0]["cpu_ms"] >= 40 and used[0]["cpu_ms"] <= 2 * used[0]["wall_ms"] + 100, f"{language}: {busy}", used)
			t.check(used[1]["cpu_ms"] < used[0]["cpu_ms"], f"{language}: {idle}", used)


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


@case("JavaScript is as in a notebook: declared again, awaited, imported, exported; errors have the code's own frames alone")
def javascript(t):
	with Owner(t) as owner:
		c = owner.session().context("javascript")
		texts = (("const a = 1; let b = 2; class C { m() { return 3 } }\na + b", "3"), ("const a = 10; class C { m() { return 4 } }\na + b + new C().m()", "16"),
			 ("const { d, e: [f] } = { d: 1, e: [2] };\n[d, f]", "[ 1, 2 ]"), ("for await (const x of [Promise.resolve(5)]) b = x\nb", "5"),
			 ("import path, { basename as base, join } from 'node:path'\nimport * as os from 'node:os'\n[base('/a/b'), path.join === join, typeof os.cpus]", "[ 'b', true, 'function' ]"),
			 ("join('x', 'y')", "x/y"), ("(await import('node:path')).basename('/c/d')", "d"), ("typeof require('fs').readFileSync", "function"),
			 ("export const g = 7\nexport default function h() { return g }\nh()", "7"), ("'import(x) // import y from z'", "import(x) // import y from z"),
			 ("{ k: 1 }", "{ k: 1 }"), ("5n", "5n"), ("-0", "-0"), ("Promise.resolve(8)", "8"), ("undefined", None), ("null", "null"), ("Symbol('s')", "Symbol(s)"),
			 ("setTimeout(() => console.log('later'), 0)\nawait new Promise((done) => setTimeout(done, 5))\n_ === null", "false"))
		for code, text in texts:
			same(code, c.run(code).text, text)
		for code, name, value in (("null.x", "TypeError", "Cannot read properties of null (reading 'x')"), ("let 1", "SyntaxError", None), ("throw 'text'", "Error", "text"),
					  ("await Promise.reject(new RangeError('far'))", "RangeError", "far"), ("class Own extends Error { name = 'Own' }\nthrow new Own('mine')", "Own", "mine")):
			error = c.run(code).errors[0]
			same(code, (error["name"], value or error["value"]), (name, error["value"]))
			for own in ("inspector", "eval1", "__brig"):
				if own in error["traceback"]:
					raise Failed(f"the kernel's own frames are in it: {error['traceback']}")
		holds("where", c.run("function deep() { throw new Error('here') }\n\ndeep()").errors[0]["traceback"], "at deep (cell-")
		run = c.begin("setTimeout(() => console.log('waits'), 1); await new Promise(() => {})")	# said when nothing but the promise is left
		run.said("waits")
		c.session.ask("interrupt", of=c.tag)
		holds("an await that is interrupted", run.finish().errors[0]["value"], "SIGINT")
		same("the state", c.run("a + b").text, "15")


@case("TypeScript is JavaScript without its types, with the same state")
def typescript(t):
	with Owner(t) as owner:
		c = owner.session().context("ts")
		r = c.run("interface P { x: number }\nenum Color { Red, Green }\nconst p: P = { x: 40 }\nfunction id<T>(v: T): T { return v }\nid<number>(p.x) + Color.Green")
		same("types", (r.text, r.errors), ("41", []))
		same("state, and an import that is used later", c.run("import { basename } from 'node:path'\nconst p: number = 1\nColor[0] as string").text, "Red")
		same("the import", c.run("const v: string = await Promise.resolve(basename('/a/b'))\nv").text, "b")
		same("an error", c.run("let q: number = ;").errors[0]["name"], "SyntaxError")
		holds("thrown", c.run("const bad: any = null\nbad.x").errors[0]["value"], "reading 'x'")
		same("language", r.result["language"], "typescript")


def need_r(t):
	if not any(os.path.exists(path) for path in ("/usr/bin/Rscript", "/usr/local/bin/Rscript")):
		t.skip("Rscript is not installed (apt-get install r-base-core)")


@case("R keeps its state, prints values as it does, tells errors with the code's own calls, and plots are pictures")
def r_language(t):
	need_r(t)
	with Owner(t) as owner:
		s = owner.session()
		c = s.context("R")
		same("no value", c.run("x <- 20\ntwice <- function(n) n * 2").results, [])
		r = c.run("cat('out\\n'); message('err')\ntwice(x) + 2")
		same("the value", (r.text, r.out, r.err, r.count, r.verdict), ("[1] 42", "out\n", "err\n", 2, "ok"))
		r = c.run("'h\u00e9'; invisible(1); c(a = 1, b = 2)")
		same("every visible value", [(x["main"], x["text"]) for x in r.results], [("0", '[1] "h\u00e9"'), ("1", "a b \n1 2 ")])
		same("a table", c.run("data.frame(a = 1:2)").text, "  a\n1 1\n2 2")
		r = c.run("g <- function() stop('bad')\ng()")
		same("error", (r.errors[0]["name"], r.errors[0]["value"], r.errors[0]["traceback"], r.verdict),
		     ("simpleError", "bad", "Error in g(): bad\n1: g()", "error"))
		same("one that is not read", c.run("x +* 2").errors[0]["name"], "parseError")
		holds("a warning", c.run("invisible(as.numeric('a'))").err, "NAs introduced by coercion")
		same("quit", (c.run("q()").verdict, c.run("x").text), ("error", "[1] 20"))
		same("variables of a run", (c.run("Sys.getenv('OF_RUN')", env=["OF_RUN=2"]).text, c.run("Sys.getenv('OF_RUN')").text), ('[1] "2"', '[1] ""'))
		r = c.run("plot(1:3)\nhist(c(1, 2, 2))\ninvisible()")
		same("plots", (len(r.results), all(base64.b64decode(x["png"]).startswith(b"\x89PNG") if "png" in x else "<svg" in x["svg"] for x in r.results)), (2, True))
		same("after them", c.run("length(dev.list())").text, "[1] 0")
		run = c.begin("cat('busy\\n'); repeat {}")
		run.said("busy")
		s.ask("interrupt", of=c.tag)
		same("interrupted", run.finish().errors[0]["name"], "Interrupted")
		same("state", (c.run("x").text, r.result["language"]), ("[1] 20", "r"))
		same("time limit", (c.run("repeat {}", timeout_ms=200).verdict, c.run("x").text), ("timeout", "[1] 20"))
		same("its end", c.run("base::quit('no')").verdict, "crash")
		same("anew", c.run("exists('x')").text, "[1] FALSE")


@case("a language that is not installed is refused with what to install")
def not_installed(t):
	if any(os.path.exists(path) for path in ("/usr/bin/Rscript", "/usr/local/bin/Rscript")):
		t.skip("Rscript is installed here")
	with Owner(t) as owner:
		s = owner.session()
		holds("R", s.ask("context", language="r", refused=True), "Rscript is not installed: apt-get install r-base-core")


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
		s = owner.session({"output_limit": "100k"})
		c, js = s.context(), s.context("javascript")
		c.run("a = 1")
		r = c.run("while True: print('x' * 1000)")
		same("verdict", (r.verdict, len(r.out)), ("output_limit", 102400))
		same("state", c.run("a").text, "1")
		for what, code in (("a result", "'x' * 200000"), ("one that no buffer holds", "'x' * (8 << 20)"), ("an error", "raise ValueError('x' * (8 << 20))")):
			same(what + " that is too large", c.run(code).verdict, "output_limit")
			same("after " + what, c.run("a").text, "1")
		js.run("var a = 2")
		same("too large, in JavaScript", js.run("'x'.repeat(8 << 20)").verdict, "output_limit")
		same("after that", js.run("a").text, "2")


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
	     sorted([("session", "ok"), ("python", "ok"), ("python", "blocked"), ("python", "ok"), ("command", "blocked")] + [("session", "ok")] * len(owner.known)))
	same("audit", t.brig("audit", "verify", stdin=b"").rc, 0)
