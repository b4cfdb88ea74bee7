# SPDX-License-Identifier: Apache-2.0
"""The owner of sessions in a test: the driver and what it says.

With BRIG_WARM_CELLS in the environment each session is one that was made ahead: one of its kind is begun and ended first, then the next
one is waited for, and its result must say that it was there before it was asked for.
"""
import glob
import json
import os
import queue
import subprocess
import threading

import harness
from harness import Failed

PATIENCE = 120	# seconds after which an answer is counted as missing; decides no case that works
DRIVER = os.path.join(os.path.dirname(harness.brig_path()), "tests", "session", "session-driver")
STDIN, PTY = 2, 1	# BRIG_PROCESS_
STDOUT, STDERR = 1, 2
ROOM = {"startup_timeout_ms": str(harness.STARTUP_MS), "cleanup_timeout_ms": str(harness.CLEANUP_MS)}	# what a busy machine takes decides nothing


class Owner:
	def __init__(self, t, env=None):
		self.t, self.kept, self.known, self.begun = t, [], set(), 0
		self.makes_ahead = {**os.environ, **(env or {})}.get("BRIG_WARM_CELLS", "0") != "0"
		self.p = t.popen([DRIVER], {"BRIG_LIBEXEC": os.path.join(harness.ROOT, "node_modules"), **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		self.lines = queue.Queue()
		self.reader = threading.Thread(target=self.read, daemon=True)
		self.reader.start()

	def __enter__(self):
		return self

	def __exit__(self, kind, *_):
		if self.p.poll() is None:
			self.p.kill() if kind else self.end()
		self.p.wait()
		self.reader.join(PATIENCE)
		for stream in (self.p.stdin, self.p.stdout, self.p.stderr):
			try:
				stream.close()
			except OSError:
				pass

	def end(self):
		self.p.stdin.close()
		self.p.wait(PATIENCE)
		if self.p.returncode:
			raise Failed(f"the driver ended with {self.p.returncode}: {self.p.stderr.read()!r}")

	def read(self):
		for line in self.p.stdout:
			self.lines.put(line)
		self.lines.put(None)

	def next(self):
		try:
			line = self.lines.get(timeout=PATIENCE)
		except queue.Empty:
			raise Failed(f"no answer came; kept: {self.kept[-5:]}") from None
		if line is None:
			raise Failed(f"the driver ended: {self.p.wait()} {self.p.stderr.read()!r}")
		return json.loads(line)

	def wait(self, good):
		"""The first event that is good, now or later; others are kept."""
		for i, event in enumerate(self.kept):
			if good(event):
				return self.kept.pop(i)
		while True:
			event = self.next()
			if good(event):
				return event
			self.kept.append(event)

	def try_to(self, what, **members):
		"""Asks for what may be refused or not."""
		self.p.stdin.write(json.dumps({"do": what, **members}).encode() + b"\n")
		self.p.stdin.flush()
		return self.wait(lambda e: e["event"] == "asked")

	def ask(self, what, refused=False, **members):
		"""The tag; or, if it is to be refused, the message."""
		answer = self.try_to(what, **members)
		if (answer["rc"] < 0) != refused:
			raise Failed(f"{what}: {answer}")
		return answer["message"] if refused else answer["tag"]

	def session(self, options=None, **members):
		members["options"] = {**ROOM, "inspection": "off", **(options or {})}
		is_ready = self.makes_ahead and not members.get("env") and "network" not in members["options"]
		if is_ready:
			self.make_ready(members)
		return Session(self, self.ask("begin", **members), is_ready)

	def make_ready(self, members):
		kind = json.dumps([members["options"], members.get("trust")], sort_keys=True)
		if kind not in self.known:
			first = Session(self, self.ask("begin", **members), None)	# it may have one of another kind that differs in nothing that a cell has
			first.wait("ready")
			first.stop()
			self.known.add(kind)
			self.begun += 1
		while True:
			self.ask("pools")
			rows = [row for row in self.wait(lambda e: e["event"] == "pools")["pools"]["pools"] if row["language"] == "session"]
			if any(row["given_up"] or row["wanted"] == 0 for row in rows):
				raise Failed(f"sessions are not made ahead: {rows}")
			# Of a keeper that is busy it is told what it said last: then those before this one are not all counted.
			if sum(row["hits"] + row["misses"] for row in rows) >= self.begun and all(row["ready"] >= row["wanted"] for row in rows):
				self.begun += 1
				return


class Session:
	def __init__(self, owner, number, is_ready=False):
		self.owner, self.number, self.is_ready = owner, number, is_ready

	def ask(self, what, **members):
		return self.owner.ask(what, session=self.number, **members)

	def wait(self, kind, tag=None):
		return self.owner.wait(lambda e: e["event"] == kind and e.get("session") == self.number and tag in (None, e.get("tag")))

	def done(self, what, **members):
		"""Asks, and waits for the answer."""
		return self.wait("done", self.ask(what, **members))

	def take(self, kind, tag):
		"""Events that have come, in their order."""
		mine = [e for e in self.owner.kept if e["event"] == kind and e.get("session") == self.number and e.get("tag") == tag]
		self.owner.kept = [e for e in self.owner.kept if e not in mine]
		return mine

	def output(self, tag, stream):
		return "".join(e["data"] for e in self.owner.kept if e["event"] == "output" and e["session"] == self.number and e["tag"] == tag and e["stream"] == stream)

	def context(self, language="python", **members):
		tag = self.ask("context", language=language, **members)
		done = self.wait("done", tag)
		if done["error"]:
			raise Failed(f"no context of {language}: {done}")
		return Context(self, tag)

	def command(self, *argv, **members):
		"""A process to its end."""
		process = self.start(*argv, **members)
		return process.finish()

	def start(self, *argv, **members):
		tag = self.ask("start", argv=list(argv), **members)
		done = self.wait("done", tag)
		if done["error"]:
			raise Failed(f"{argv}: {done}")
		return Process(self, tag, done["pid"])

	def stop(self):
		"""The result of the cell."""
		self.ask("stop")
		result = self.wait("over")["result"]
		if self.is_ready is not None:
			same("whether it was there before it was asked for", result["warm"], self.is_ready)
		return result

	def end(self):
		"""The same of one that may have ended by itself."""
		self.owner.try_to("stop", session=self.number)
		return self.wait("over")["result"]


class Process:
	def __init__(self, session, tag, pid):
		self.session, self.tag, self.pid = session, tag, pid

	def input(self, data):
		self.session.ask("input", of=self.tag, data=data)

	def close(self):
		self.session.ask("close_input", of=self.tag)

	def signal(self, number):
		return self.session.done("signal", of=self.tag, signal=number)["error"]

	def said(self, text, stream=STDOUT):
		"""Waits until it has written the text."""
		while text not in self.session.output(self.tag, stream):
			self.session.owner.kept.append(self.session.owner.next())

	def finish(self):
		exited = self.session.wait("exited", self.tag)
		result = self.session.wait("ran", self.tag)["result"]
		self.out, self.err = self.session.output(self.tag, STDOUT), self.session.output(self.tag, STDERR)
		self.code, self.ended_by, self.flags, self.result = exited["code"], exited["signal"], exited["flags"], result
		return self


class Context:
	def __init__(self, session, tag):
		self.session, self.tag = session, tag

	def begin(self, code, **members):
		return Run(self, self.session.ask("run", context=self.tag, code=code, **members))

	def run(self, code, **members):
		return self.begin(code, **members).finish()


class Run:
	def __init__(self, context, tag):
		self.context, self.session, self.tag = context, context.session, tag

	said = Process.said

	def finish(self):
		ran = self.session.wait("ran", self.tag)
		shown = self.session.take("result", self.tag)
		self.out, self.err = self.session.output(self.tag, STDOUT), self.session.output(self.tag, STDERR)
		self.results = [e["fields"] for e in shown if e["form"] == "result"]
		self.errors = [e["fields"] for e in shown if e["form"] == "error"]
		self.count, self.result, self.verdict = ran["count"], ran["result"], ran["result"]["verdict"]
		main = [r for r in self.results if r["main"] == "1"]
		self.text = main[0]["text"] if main else None
		return self


def same(what, got, wanted):
	if got != wanted:
		raise Failed(f"{what}: {got!r}, not {wanted!r}")


def holds(what, text, part):
	if part not in text:
		raise Failed(f"{what}: {text!r} does not have {part!r}")


def read_live(path):
	"""Of a process; "" if it has ended meanwhile."""
	try:
		with open(path) as f:
			return f.read()
	except (FileNotFoundError, ProcessLookupError):
		return ""


def find_below(pid, command):
	"""The pid that the host has for a program below a process."""
	for child in " ".join(map(read_live, glob.glob(f"/proc/{pid}/task/*/children"))).split():
		found = int(child) if read_live(f"/proc/{child}/cmdline").startswith(command) else find_below(child, command)
		if found:
			return found
	return None
