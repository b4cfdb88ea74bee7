# SPDX-License-Identifier: Apache-2.0
"""Sessions through the service: cells that stay, each its token's."""
import base64
import os
import re
import threading

from client import Server, mark, marked, wait_until
from harness import case
from session import EVENTS, Session


def ended(events):
	"""The verdict; and the stream is read to its end, so that its connection can be used again."""
	found = events.until("verdict")
	for _ in events:
		pass
	return found


@case("a session keeps its state between runs: values, errors with tracebacks, every form of a result, contexts side by side")
def contexts(t):
	with Server(t) as s, Session(s) as x:
		t.equal([x.made["state"], x.made["contexts"], x.made["verdict"]], ["ready", [], None], "what is answered", x.made)
		r = x.run("n = 20\nprint('out')\nimport sys; print('err', file=sys.stderr)")
		t.equal([r["verdict"], r["stdout"], r["stderr"], r["results"], r["error"], r["execution_count"]], ["ok", "out\n", "err\n", [], None, 1], "a run", r)
		r = x.run("n * 2 + 2")
		t.equal([r["results"][0]["text"], r["results"][0]["main"], r["execution_count"]], ["42", True, 2], "the state", r)
		r = x.run("def f():\n    return 1 / 0\nf()")
		t.equal([r["verdict"], r["error"]["name"], r["error"]["value"]], ["error", "ZeroDivisionError", "division by zero"], "an error", r)
		t.check("return 1 / 0" in r["error"]["traceback"], "its traceback", r["error"])
		r = x.run("class P:\n    def _repr_html_(self): return '<b>h</b>'\n    def _repr_png_(self): return b'\\x89PNG'\ndisplay(P())\n{'k': 1}")
		t.equal([r["results"][0]["html"], base64.b64decode(r["results"][0]["png"]), r["results"][1]["json"]], ["<b>h</b>", b"\x89PNG", '{"k": 1}'], "forms", r)
		other = x.ask("POST", "/contexts", {"language": "python"}, 201).json["id"]
		t.equal(x.run("n", context=other)["error"]["name"], "NameError", "another context knows nothing of it")
		t.equal([x.run("z=3", language="bash")["verdict"], x.run("echo $z", language="sh")["stdout"]], ["ok", "3\n"], "another language")
		t.equal([c["language"] for c in x.state()["contexts"]], ["python", "python", "shell"], "the list")
		first = x.state()["contexts"][0]["id"]
		x.ask("POST", f"/contexts/{first}/restart")
		t.equal(x.run("'n' in globals()", context=first)["results"][0]["text"], "False", "restarted")
		listed = x.ask("GET", "/contexts").json["contexts"]
		t.equal([(c["id"], c["default"], c["cwd"]) for c in listed[:2]], [(first, True, "/workspace"), (other, False, "/workspace")], "contexts", listed)
		x.process("mkdir", "sub")
		sub = x.ask("POST", "/contexts", {"cwd": "/workspace/sub"}, 201).json
		t.equal([sub["cwd"], x.run("import os; os.getcwd()", context=sub["id"])["results"][0]["text"]], ["/workspace/sub"] * 2, "a folder of its own", sub)
		x.ask("POST", "/contexts", {"cwd": "/workspace/none"}, 404)
		x.ask("DELETE", f"/contexts/{other}")
		x.run("1", context=other, status=404)
		x.ask("POST", "/contexts", {"language": "cobol"}, 422)
		x.ask("POST", "/runs", {"context": 1}, 400)
		x.ask("POST", "/runs", {"code": "1", "args": []}, 400)


@case("a run that streams: output and results as they come; an interrupt ends it and keeps the state, and so does its client's end; runs wait for each other")
def streamed(t):
	with Server(t) as s, Session(s) as x, s.client() as c:
		x.run("a = 1")
		context = x.state()["contexts"][0]["id"]
		events = x.stream(c, "POST", "/runs", {"code": "display('shown')\nprint('busy', flush=True)\nwhile True: pass"})
		events.until("stdout")
		with s.client() as gone:	# whether it has begun by then or waits: it must not go on
			gone.c.request("POST", x.at + "/runs", '{"code": "while True: pass"}', {"Content-Type": "application/json"})
		x.ask("POST", f"/contexts/{context}/interrupt")
		end = ended(events)
		t.equal([end["verdict"], end["result"]["error"]["name"], events.text()], ["error", "KeyboardInterrupt", "busy\n"], "interrupted", end)
		t.equal([d["result"]["text"] for e, d in events.seen if e == "result" and "text" in d["result"]], ["shown"], "what was shown", events.seen)
		t.equal(x.run("a")["results"][0]["text"], "1", "the state")
		with s.client() as gone:
			x.stream(gone, "POST", "/runs", {"code": "print('up', flush=True)\nwhile True: pass"}).until("stdout")
		wait_until("the run of a client that has gone is over", lambda: x.c.ask("POST", x.at + "/runs", {"code": "a"}).status == 200)
		t.equal(x.run("while True: pass", timeout=0.2)["verdict"], "timeout", "a time limit")
		t.equal(x.run("import os; os.environ['E']", env={"E": "v"})["results"][0]["text"], "v", "a variable of one run")
		parallel(t, s, x)


def parallel(t, s, x):
	"""Two contexts wait for each other."""
	def other(path, peer):
		return f"import os, time\nopen('{path}', 'w')\nwhile not os.path.exists('{peer}'): time.sleep(0.01)\n'{path}'"
	ids = [x.ask("POST", "/contexts", {}, 201).json["id"] for _ in range(2)]
	seen = {}

	def go(context, code):
		with s.client() as c:
			seen[context] = c.ask("POST", x.at + "/runs", {"code": code, "context": context}).json
	threads = [threading.Thread(target=go, args=a) for a in ((ids[0], other("p", "q")), (ids[1], other("q", "p")))]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	t.equal([seen[i]["results"][0]["text"] for i in ids], ["p", "q"], "contexts run side by side", seen)


@case("processes: input, signals, a terminal, asynchronous ones with their events from the first on; a pause")
def processes(t):
	with Server(t) as s, Session(s, env={"WHO": "me"}) as x, s.client() as c:
		r = x.process("sh", "-c", "read a; echo $a $WHO $EXTRA; exit 3", stdin="line\n", env={"EXTRA": "x"})
		t.equal([r["verdict"], r["exit_code"], r["stdout"]], ["error", 3, "line me x\n"], "one that is waited for", r)
		t.equal(x.process("no-such-program")["verdict"], "error", "one that is not there")
		p = x.process("sh", "-c", "echo up; cat; echo end", interactive=True, **{"async": True}, status=202)["process"]
		x.ask("POST", f"/processes/{p}/input", {"data": "one\n"})
		watch = x.stream(c, "GET", f"/processes/{p}/events")
		while "one" not in watch.text():
			watch.until("stdout")
		listed, = x.ask("GET", "/processes").json["processes"]
		t.equal([listed["state"], listed["args"][0], listed["env"], listed["pid"] > 1], ["running", listed["command"], {}, True], "the list", listed)
		x.ask("POST", f"/processes/{p}/input", {"data": {"base64": base64.b64encode(b"two\n").decode()}, "close": True})
		end = ended(watch)
		t.equal([end["verdict"], watch.text(), watch.seen[0]], ["ok", "up\none\ntwo\nend\n", ("started", {"event": "started", "process": p, "pid": listed["pid"], "pty": False})], "its events", watch.seen)
		t.equal([x.ask("GET", f"/processes/{p}").json["result"]["stdout"], x.ask("GET", f"/processes/{p}").json["state"]], ["up\none\ntwo\nend\n", "finished"], "later")
		late = x.stream(c, "GET", f"/processes/{p}/events")
		t.equal([ended(late)["verdict"], late.text()], ["ok", "up\none\ntwo\nend\n"], "its events once more")
		late = x.stream(c, "GET", f"/processes/{p}/events?live=1")
		t.equal([ended(late)["verdict"], late.text(), late.seen[0][0]], ["ok", "", "started"], "its end only")
		x.ask("POST", f"/processes/{p}/input", {"data": "x"}, 404)
		p = x.process("sh", "-c", "trap 'echo got; exit 5' USR1; echo up; while :; do sleep 0.01; done", **{"async": True}, status=202)["process"]
		watch = x.stream(c, "GET", f"/processes/{p}/events")
		watch.until("stdout")
		x.ask("POST", f"/processes/{p}/signal", {"signal": "SIGNONE"}, 400)
		x.ask("POST", f"/processes/{p}/signal", {"signal": "SIGUSR1"})
		t.equal([ended(watch)["result"]["exit_code"], watch.text()], [5, "up\ngot\n"], "a signal")
		terminal = x.stream(c, "POST", "/processes", {"args": ["sh", "-c", "stty size; read x; stty size"], "pty": True, "interactive": True, "rows": 30, "columns": 90})
		p = terminal.until("started")["process"]
		terminal.until("stdout")
		x.ask("POST", f"/processes/{p}/resize", {"rows": 40, "columns": 100})
		x.ask("POST", f"/processes/{p}/input", {"data": "\n"})
		ended(terminal)
		t.check("30 90" in terminal.text() and "40 100" in terminal.text(), "a terminal", terminal.seen)
		paused = x.ask("POST", "/pause").json
		t.equal(paused["state"], "paused", "a pause")
		for rest, body in (("/runs", {"code": "1"}), ("/runs", {"code": "1", "language": "bash"}), ("/processes", {"args": ["true"]}), ("/contexts", {})):
			t.check("resume it first" in x.ask("POST", rest, body, 409).message, "what is asked of it then")
		x.put("while-paused", b"1")
		t.equal(x.ask("GET", "/files/while-paused").body, b"1", "files")
		t.equal(x.ask("POST", "/resume").json["state"], "ready", "its end")
		t.equal(x.process("sleep", "60", timeout=0.2)["verdict"], "timeout", "a time limit")


@case("files: written, read, listed, moved, removed, from inside the cell: a link that leads out leads nowhere", final="a file of the host was read or written through a session")
def files(t):
	secret = os.path.join(t.dir, "secret")
	with open(secret, "w", encoding="utf-8") as f:
		f.write("of the host")
	data = bytes(range(256)) * 1000
	with Server(t) as s, Session(s) as x:
		t.equal(x.put("d/e/all", data)["bytes"], len(data), "written")
		a = x.ask("GET", "/files/d/e/all")
		t.check(a.body == data and "attachment" in a.header("content-disposition"), "read", a.headers)
		t.equal([x.put("d/e/all", b"short")["bytes"], x.ask("GET", "/files/d/e/all").body, x.put("empty", b"")["bytes"]], [5, b"short", 0], "written anew")
		t.equal(x.process("cat", "d/e/all")["stdout"], "short", "the program sees it")
		x.ask("POST", "/folders", {"path": "new/folder"})
		x.ask("POST", "/moves", {"path": "d/e/all", "to": "new/all"})
		x.ask("GET", "/files/d/e/all", status=404)
		seen = x.ask("GET", "/files?path=new&depth=3").json
		t.equal([sorted((f["path"].split("new/")[-1], f["type"]) for f in seen["files"]), seen["truncated"]], [[("all", "file"), ("folder", "folder")], False], "listed", seen)
		x.ask("DELETE", "/files/new")
		x.ask("GET", "/files/new/all", status=404)
		x.process("sh", "-c", f"ln -s {secret} out; ln -s / root; mkfifo pipe; ln -s {os.path.dirname(secret)} there; ln -s /proc/self/oom_score_adj adj; ln -s /proc/self/status status")
		for path in ("adj", "status", "out", "there/secret", "root" + secret, "pipe", "root"):
			a = x.c.ask("GET", f"{x.at}/files/{path}")
			t.check(a.status >= 400, f"{path} is refused", a)
		x.c.ask("PUT", f"{x.at}/files/there/secret", b"gotcha", {"Content-Type": "text/plain"})
		x.c.ask("PUT", f"{x.at}/files/out", b"gotcha", {"Content-Type": "text/plain"})
		t.check(x.c.ask("PUT", f"{x.at}/files/adj", b"-1000", {"Content-Type": "text/plain"}).status >= 400, "the kernel's files are not written")
		x.c.ask("DELETE", f"{x.at}/files/there/secret")
		with open(secret, encoding="utf-8") as f:
			t.equal(f.read(), "of the host", "the host's file")
		for path in ("a/../b", "..", "a//b", "%2e%2e/x", "a%2fb"):
			t.check(x.c.ask("GET", f"{x.at}/files/{path}").status in (400, 404), path)


@case("a session is its token's, and counts for its quota; it ends when it is told to, at its timeout and with the service", final="somebody used another's session")
def owned(t):
	with Server(t, auth=True) as s:
		ada, bob, root = s.token("ada", "--concurrent", "2"), s.token("bob"), s.token("root", "--admin")
		with Session(s, ada) as x, s.client(bob) as c:
			x.put("f", b"ada's")
			p = x.process("sleep", "60", **{"async": True}, status=202)["process"]
			for method, rest, body in (("GET", "", None), ("DELETE", "", None), ("GET", "/files", None), ("GET", "/files/f", None), ("DELETE", "/files/f", None), ("POST", "/runs", {"code": "1"}),
					("POST", "/processes", {"args": ["true"]}), ("GET", "/processes", None), ("GET", f"/processes/{p}", None), ("POST", f"/processes/{p}/signal", {"signal": 9}), ("POST", "/pause", None),
					("POST", "/contexts", {}), ("POST", "/timeout", {"timeout": 1}), ("POST", "/moves", {"path": "f", "to": "g"})):
				c.ask(method, x.at + rest, body, status=404)
			c.ask("PUT", x.at + "/files/f", b"x", {"Content-Type": "text/plain"}, status=404)
			t.equal(c.ask("GET", "/v1/sessions").json["sessions"], [], "another's list")
			t.equal([y["id"] for y in s.get("/v1/sessions", root).json["sessions"]], [x.id], "an admin's list")
			x.c.ask("POST", "/v1/sessions", {"timeout": 1e6}, status=403)
			with Session(s, ada, timeout=1) as short:
				a = x.c.ask("POST", "/v1/sessions", {}, status=429)
				t.check(a.header("retry-after"), "too many", a)
				wait_until("its time has passed", lambda: short.state()["state"] == "ended")
				t.check(short.state()["reason"], "why", short.state())
				short.ask("POST", "/runs", {"code": "1"}, 410)
			x.ask("POST", "/timeout", {"timeout": 100})
			t.equal(x.ask("DELETE", "", status=202).json["state"], "ending", "told to end")
			wait_until("it has ended", lambda: x.state()["state"] == "ended")
			x.ask("GET", "/files/f", status=410)
			x.ask("DELETE", "")
			x.c.ask("GET", "/v1/sessions/" + "a" * 16, status=404)
			text = s.get("/metrics", root).body.decode()
			t.equal(re.findall(r"^brig_service_(sess[^ ]*) (\d+)$", text, re.M), [("sessions", "0"), ("sessions_started_total", "2"), ('sessions_ended_total{reason="expired"}', "1"), ('sessions_ended_total{reason="asked"}', "1"),
				('sessions_ended_total{reason="service"}', "0"), ('sessions_ended_total{reason="broken"}', "0"), ('sessions_ended_total{reason="unbegun"}', "0"), ("session_runs_total", "1")], "they are counted", text)
			rows = s.get("/v1/history", root).json
			t.equal(sorted([r["language"], r["who"], r["verdict"]] for r in rows["executions"]), [["command", "ada", "cancelled"], ["session", "ada", "ok"], ["session", "ada", "ok"]], "the history", rows)


@case("a session that is asked for again with its Idempotency-Key is made once, of each token; another body, and one that has ended, is 409")
def repeated(t):
	with Server(t, auth=True) as s:
		ada, bob = s.token("ada"), s.token("bob")

		def made(key, body, token=ada, at="/v1/sessions", status=201):
			with s.client(token) as c:
				a = c.ask("POST", at, body, {"Idempotency-Key": key}, status=status)
				return a.json["id"] if status == 201 else a.message
		first = made("k", {"timeout": 60})
		t.equal(made("k", {"timeout": 60}), first, "the same")
		t.check(made("k", {"timeout": 60}, bob) != first, "another token's")
		t.check(first in made("k", {"timeout": 61}, status=409), "another body")
		together = []
		threads = [threading.Thread(target=lambda: together.append(made("both", {}))) for _ in range(4)]
		for thread in threads:
			thread.start()
		for thread in threads:
			thread.join()
		t.equal([len(together), len(set(together))], [4, 1], "at the same time")
		fork = made("fork", {}, at=f"/v1/sessions/{first}/fork")
		t.equal(made("fork", {}, at=f"/v1/sessions/{first}/fork"), fork, "a fork")
		with s.client(ada) as c:
			t.equal({x["id"] for x in c.ask("GET", "/v1/sessions").json["sessions"]}, {first, fork, together[0]}, "no others")
			c.ask("DELETE", "/v1/sessions/" + first, status=202)
			t.check("has ended" in made("k", {"timeout": 60}, status=409), "one that ends")
			t.equal(made("fork", {}, at=f"/v1/sessions/{first}/fork"), fork, "its fork is there all the same")
			c.ask("POST", "/v1/sessions", {"timeout": 1e6}, {"Idempotency-Key": "new"}, status=403)
			t.check(made("new", {}), "a key whose session was refused stands for nothing")


@case("a run, and a process, that is asked for again with its Idempotency-Key is run once, and goes on without who asked first; another body is 409")
def repeated_runs(t):
	with Server(t) as s, Session(s) as x, Session(s) as other:
		one, count = {"Idempotency-Key": "one"}, {"code": "n = globals().get('n', 0) + 1\nprint('once')\nn"}
		first, again = (x.ask("POST", "/runs", count, headers=one).json for _ in range(2))
		t.equal([again, again["results"][0]["text"], again["stdout"]], [first, "1", "once\n"], "the same result")
		t.equal(x.run("n")["results"][0]["text"], "1", "what it did")
		x.ask("POST", "/runs", {"code": "2"}, 409, headers=one)
		t.equal(other.ask("POST", "/runs", count, headers=one).json["id"] != first["id"], True, "another session's key")
		with s.client() as c, s.client() as d:
			late = {"code": "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('late')", "context": first["context"]}
			two = {"Idempotency-Key": "two"}
			gone = c.stream("POST", x.at + "/runs", late, EVENTS, headers=two)
			gone.until("started")
			c.c.close()
			events = d.stream("POST", x.at + "/runs", late, EVENTS, headers=two)
			events.until("started")
			x.put("go", b"")
			t.equal(ended(events)["result"]["stdout"], "late\n", "one whose first client has gone")
		added = {"args": ["sh", "-c", "echo x >> lines; wc -l < lines"]}
		both = [x.ask("POST", "/processes", added, headers={"Idempotency-Key": "three"}).json for _ in range(2)]
		t.equal([b["stdout"].strip() for b in both], ["1", "1"], "a process", both)
		promised = {"args": ["sleep", "100"], "async": True}
		both = [x.ask("POST", "/processes", promised, 202, headers={"Idempotency-Key": "four"}).json["process"] for _ in range(2)]
		t.equal(both[0], both[1], "one that is not waited for")


@case("the service ends, or is killed: sessions end with it, and nothing is left", final="something of a session outlived the service")
def ends(t):
	for how in ("drain", "kill"):
		with Server(t) as s:
			with Session(s) as x:
				x.process("sh", "-c", "echo up; sleep 60; :", mark(), **{"async": True}, status=202)
				x.run("1")
				wait_until("it runs", marked)
				if how == "kill":
					s.kill()
				else:
					s.stop()
			wait_until("nothing is left", lambda: not marked())
