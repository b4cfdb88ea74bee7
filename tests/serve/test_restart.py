# SPDX-License-Identifier: Apache-2.0
"""Processes of the service that die one by one, and what goes on meanwhile."""
import ctypes
import os
import resource
import signal
import socket
import struct
import subprocess

import harness
from client import PATIENCE, Raw, Server, children, client_env, job_request, mark, read_quietly, request, wait_until
from harness import Skipped, case

FRONT_KILLS = 20
SYS_PIDFD_GETFD = 438
CHANNEL = 3	# the front's descriptor of the way to the runner: the first one that it keeps


def waiting(name, **more):
	"""A program that says what its process is and waits for somebody to end its `sleep`; found by its name."""
	return {"kind": "command", "args": ["sh", "-c", "echo begin; sleep 600; echo end", mark() + name], "options": {"timeout": 120}, **more}


def found(name):
	"""Processes on this host whose program was given the name, by when they began."""
	word = (mark() + name).encode()
	pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and word in read_quietly(f"/proc/{p}/cmdline")]
	return sorted((pid, read_quietly(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19]) for pid in pids)


def running(name, n=1):
	"""The processes, once all of them are there and sleep."""
	return wait_until(f"{name} runs", lambda: len(found(name)) == n and all(children(pid) for pid, _ in found(name)) and found(name))


def let_end(name):
	for pid, _ in found(name):
		for child in children(pid):
			os.kill(child, signal.SIGTERM)


def kill_front(s):
	"""Another front answers, and the runner is the same."""
	before = s.processes()
	os.kill(before["front"], signal.SIGKILL)
	after = wait_until("another front answers", lambda: s.processes().get("front") not in (None, before["front"]) and s.answers() and s.processes())
	if after["runner"] != before["runner"]:
		raise harness.Failed(f"the runner was started anew: {before} {after}; {s.stderr()[-1500:]}")


@case("kill -9 of the front: what nobody needs to wait for goes on in the same cells; who waited has gone, and so have their cells", final="an accepted execution was lost with the front")
def front_dies(t):
	path = t.path("run.sock")
	with Server(t, "--jobs", 8, "--socket", path) as s:
		ident = s.start(**waiting("later"))
		with s.client() as c:
			batch = c.ask("POST", "/v1/batches", {"jobs": [waiting("batch"), waiting("batch")]}, status=202).json["id"]
		command = t.popen([harness.brig_path(), "exec", "--", "sh", "-c", "sleep 600; :", mark() + "command"],
			client_env(path), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		with Raw(s, job_request(waiting("now"))) as raw, s.client() as streaming:
			stream = streaming.stream("POST", "/v1/executions", waiting("stream"))
			stream.until("stdout")
			before = [running("later"), running("batch", 2)]
			for name in ("now", "command"):
				wait_until(f"{name} runs", lambda name=name: found(name))
			kill_front(s)
			t.equal(raw.answer(), None, "who waited has no connection any more")
		t.check(command.wait(PATIENCE) != 0, "the command ends, and not well")
		for name in ("now", "stream", "command"):
			wait_until(f"the cell of '{name}' is gone", lambda name=name: not found(name))
		t.equal([found("later"), found("batch")], before, "the cells are the same")
		t.equal([s.state(ident), s.get(f"/v1/batches/{batch}").json["state"]], ["running", "running"], "it is known that they run")
		let_end("later")
		let_end("batch")
		d = s.ended(ident)
		t.equal([d["state"], d["result"]["verdict"], d["result"]["stdout"]], ["finished", "ok", "begin\nend\n"], "the whole output", d)
		jobs = wait_until("the batch ends", lambda: (b := s.get(f"/v1/batches/{batch}").json)["state"] == "finished" and b)["jobs"]
		t.equal([job["verdict"] for job in jobs], ["ok", "ok"], "the batch", jobs)


@case(f"the front killed {FRONT_KILLS} times in a row: one execution through all of it, and the runner grows by no descriptor")
def front_dies_often(t):
	with Server(t) as s:
		ident = s.start(**waiting("long"))
		before = running("long")
		kill_front(s)
		fds = len(harness.listing(f"/proc/{s.processes()['runner']}/fd"))
		for _ in range(FRONT_KILLS - 1):
			kill_front(s)
		t.equal(len(harness.listing(f"/proc/{s.processes()['runner']}/fd")), fds, "descriptors of the runner")
		t.equal(found("long"), before, "the cell is the same")
		let_end("long")
		t.equal(s.ended(ident)["result"]["stdout"], "begin\nend\n", "the whole output")
		t.equal(s.stderr().count("the front of the service has ended (signal 9); it is started anew"), FRONT_KILLS, "each is told of", s.stderr())


@case("kill -9 of the runner: the front goes on, who waited is answered 503, connections stay")
def runner_dies(t):
	with Server(t) as s, Raw(s, request("GET", "/healthz")) as idle, Raw(s, job_request(waiting("now"))) as raw, s.client() as streaming:
		t.equal(idle.answer().status, 200, "one that asks nothing")
		stream = streaming.stream("POST", "/v1/executions", waiting("stream"))
		stream.until("stdout")
		wait_until("both run", lambda: found("now") and found("stream"))
		before = s.processes()
		os.kill(before["runner"], signal.SIGKILL)
		a = raw.answer()
		t.check(a and a.status == 503 and a.header("retry-after") and not a.closes, "who waited is told", a)
		try:
			t.equal([e for e, _ in stream if e == "verdict"], [], "a stream has no verdict")
		except OSError:
			pass	# it was cut
		wait_until("another runner answers", s.answers)
		for r in (raw, idle):
			r.send(job_request({"language": "shell", "code": "echo 1"}))
			t.equal(r.answer().json["stdout"], "1\n", "the same connection serves on")
		t.equal(s.processes()["front"], before["front"], "the front is the same")
		wait_until("no cell is left", lambda: not found("now") and not found("stream"))


def record(kind, data=b"", tag=1, length=None, in_file=0):
	return struct.pack("=IHHII", tag, kind, 0, len(data) if length is None else length, in_file) + data


# What a front would never say: not a record, records of no kind or of the other side, lengths and descriptors that are not there, no message.
NONSENSE = {
	"short": b"x", "no kind": record(77), "the runner's own": record(3), "too long": record(0, b"abc", length=1 << 30), "cut": record(0, b"abc", length=2),
	"no file": record(0, in_file=1, length=100), "no message": record(0, b"\xff\xff\0\0\1\0\0\0x"), "an empty ask of a descriptor": record(0, struct.pack("=HHIQ", 0, 0, 8, 1)),
}


def say_as_front(front, data):
	"""A record on the front's own channel."""
	pidfd = os.pidfd_open(front)
	fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, CHANNEL, 0)
	os.close(pidfd)
	if fd < 0:
		raise Skipped("needs the right to take a descriptor of another process")
	with socket.socket(fileno=fd) as sock:
		sock.send(data)


@case("a front that speaks nonsense is ended and replaced; the runner and what runs do not notice", final="the front ended the runner")
def nonsense(t):
	with Server(t) as s:
		ident = s.start(**waiting("beside"))
		before, runner = running("beside"), s.processes()["runner"]
		for what, data in NONSENSE.items():
			front = s.processes()["front"]
			say_as_front(front, data)
			wait_until(f"another front answers after '{what}'", lambda front=front: s.processes().get("front") not in (None, front) and s.answers())
		t.equal([s.processes()["runner"], found("beside")], [runner, before], "the runner and the cell")
		let_end("beside")
		t.equal(s.ended(ident)["result"]["stdout"], "begin\nend\n", "the whole output")


@case("a front that cannot be started again is given up: what runs may finish, the exit status says that it went wrong", final="an accepted execution was lost with the front")
def given_up(t):
	with Server(t) as s:
		ident = s.start(**waiting("last"))
		running("last")
		resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (48, 48))	# enough for the first process, too few for the next front
		os.kill(s.processes()["front"], signal.SIGKILL)
		wait_until("it is given up", lambda: s.p.poll() is not None or s.processes().keys() == {"recorder", "runner"} and s.stderr().count("has ended (status") >= 5)
		t.check(found("last"), "what runs goes on", s.stderr())
		let_end("last")
		t.check(s.p.wait(PATIENCE) not in (0, None) and "it is given up" in s.stderr(), "its end", s.stderr())
	with Server(t) as s:
		t.equal(s.ended(ident)["verdict"], "ok", "it has finished")
