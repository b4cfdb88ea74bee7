#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Warm containers: claims, refills, mismatches, hostile claimers, kills; nothing is left.  Run by tests/docker/run."""
import array
import functools
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import harness
from harness import Failed, Result, brig_path, engine_containers

POOLS = []
CEILING = 180	# seconds that an event may take on a machine that is busy; never decides on one that works


def case(title, final=""):
	"""A case whose pools are gone afterwards, also when it fails; final as in the harness."""
	def register(fn):
		@functools.wraps(fn)
		def run(t):
			try:
				fn(t)
			finally:
				for pool in POOLS:
					if pool.poll() is None:
						pool.kill()
						pool.wait()
				POOLS.clear()
				t.brig("reap", env={"XDG_RUNTIME_DIR": os.path.join(t.dir, "run")})
		harness.add(f"pool.{fn.__name__}", title, run, "pool", final=final)
		return fn
	return register


def until(t, what, look):
	return t.until(what, look, CEILING)


class Pool:
	"""A `brig pool` with a runtime folder of its own, and what it says."""
	def __init__(self, t, *words, size=1):
		self.t = t
		self.folder = os.path.join(t.dir, "run")
		os.makedirs(self.folder, 0o700, exist_ok=True)
		os.chmod(self.folder, 0o700)
		self.env = {"XDG_RUNTIME_DIR": self.folder}
		self.log = t.path(f"pool-{len(POOLS)}.log", "")
		with open(self.log, "ab") as log:
			self.p = t.popen([brig_path(), "pool", "--size", str(size), "--lang", "shell", *words], env=self.env,
					 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
		POOLS.append(self.p)
		until(t, "the pool to say that it is ready", lambda: self.is_alive() and "ready:" in self.said())
		self.await_ready(size)

	def is_alive(self):
		if self.p.poll() is not None:
			raise Failed(f"the pool ended with {self.p.returncode}: {self.said()}")
		return True

	def said(self):
		with open(self.log, encoding="utf-8", errors="replace") as f:
			return f.read()

	def rows(self):
		p = self.t.brig("ps", "--json", env=self.env)
		return [row for row in json.loads(p.out)["cells"] if row["backend"] == "docker"]

	def waiting(self):
		return {row["name"] for row in self.rows() if row["owner"] == self.p.pid and row["waiting"]}

	def await_ready(self, size):
		"""So many wait; one that was only just made may not be handed out yet, and a run then starts cold."""
		until(self.t, "the pool to be filled", lambda: self.is_alive() and len(self.waiting()) >= size)

	def run(self, *words, code="echo hi", **kw):
		r = Result(self.t.run([brig_path(), "run", "--json", "--lang", "shell", *words, "-c", code], env=self.env, **kw))
		self.t.ids.append(r.json.get("id"))
		return r

	def stop(self):
		self.p.send_signal(signal.SIGTERM)
		self.p.wait(CEILING)
		if self.p.returncode != 0:
			raise Failed(f"the pool ended with {self.p.returncode}: {self.said()}")

	def socket(self):
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.settimeout(CEILING)
		s.connect(os.path.join(self.folder, "brig", "pool"))
		return s


def names():
	return {c["Id"] for c in engine_containers()}


@case("a run takes a waiting container, and it is replaced by another")
def claim(t):
	pool = Pool(t, size=2)
	first = pool.waiting()
	r = pool.run()
	t.verdict(r, "ok")
	t.equal((r.json["backend"], r.stdout), ("docker", b"hi\n"), "backend and output", r)
	t.equal([row for row in r.json["evidence"] if not row["kept"] and not row.get("degraded") and row["check"] not in r.degraded and
		 row["check"] not in DEGRADED_CHECKS], [], "broken promises", r)
	until(t, "a refill", lambda: len(pool.waiting()) == 2 and pool.waiting() != first)
	t.equal(len(first & pool.waiting()), 1, "one of the first is used up")
	until(t, "the used one to be removed", lambda: len(first & names()) == 1)
	pool.stop()
	until(t, "nothing to be left", lambda: not (pool_containers(pool) or os.listdir(os.path.join(pool.folder, "brig", "claims"))))


# Rows of protections that an engine gives nowhere: the result lists these in degraded[].
DEGRADED_CHECKS = {"user_ns", "host_uid", "init_host_uid", "uid_inside", "id_separation", "groups", "time_ns", "proc", "nested_userns",
		   "user_counts", "inotify_instances", "inotify_watches", "socket_memory"}


def pool_containers(pool):
	return [c["Id"] for c in engine_containers() if (c.get("Labels") or {}).get("brig.pool") == os.path.join(pool.folder, "brig")]


@case("each container is used once, and programs see nothing of each other", final="not contained")
def single_use(t):
	pool = Pool(t, size=2)
	seen = []
	for i in range(4):
		pool.await_ready(1)
		r = pool.run(code="ls -A /workspace /tmp | tr '\\n' ' '; echo left > /tmp/mark; echo left > mark; cat /proc/sys/kernel/random/uuid")
		t.verdict(r, "ok")
		seen.append(r.stdout.split(b" ")[-1])
		t.check(b"mark" not in r.stdout, f"run {i} finds nothing of the one before", r)
	t.equal(len(set(seen)), 4, "different runs", seen)
	pool.stop()


@case("other settings: a cold start, as without a pool")
def mismatch(t):
	pool = Pool(t)
	before = pool.waiting()
	r = pool.run("--memory", "100m")
	t.verdict(r, "ok")
	t.equal(r.json["limits"]["memory_bytes"], 100 << 20, "the limit is the run's", r.json["limits"])
	t.equal(pool.waiting(), before, "the waiting one was not taken")
	r = Result(t.run([brig_path(), "run", "--json", "--lang", "python", "-c", "print(1)"], env=pool.env))
	t.verdict(r, "ok")
	t.equal(pool.waiting(), before, "nor for another language")
	pool.stop()


@case("limits hold in a warm container, and verdicts are the same")
def verdicts(t):
	pool = Pool(t, size=2)
	for words, code, verdict in ((("--timeout", "2"), "sleep 600", "timeout"), ((), "exit 3", "error"), ((), "kill -SEGV $$", "crash"),
				     ((), "head -c 20000000 /dev/zero", "output_limit"),
				     ((), "head -c 900000000 /dev/zero | tail -c 800000000 | wc -c", "memory_limit")):
		pool.await_ready(1)
		t.verdict(pool.run(*words, code=code), verdict)
	pool.stop()


@case("input, arguments and a lot of output arrive whole")
def streams(t):
	pool = Pool(t)
	r = pool.run("--stdin", "-", code="cat; seq 1 200000; seq 1 100000 >&2", stdin=b"input\n")
	t.verdict(r, "ok")
	t.equal(r.stdout, b"input\n" + b"".join(b"%d\n" % i for i in range(1, 200001)), "stdout")
	t.equal(r.stderr, b"".join(b"%d\n" % i for i in range(1, 100001)), "stderr")
	pool.await_ready(1)
	r = pool.run("--stdin", "-", code="echo done", stdin=bytes(4 << 20))	# which nobody reads
	t.verdict(r, "ok")
	t.equal((r.stdout, r.stderr), (b"done\n", b""), "output", r)
	pool.await_ready(1)
	r = pool.run(code="(while :; do echo more; done) & (while :; do echo more >&2; done) & echo first; sleep 0.1; exit 0")
	t.verdict(r, "ok")
	for data in (r.stdout, r.stderr):	# what was written up to the end, and nothing of init's
		t.equal(set(data.split(b"\n")[:-1]) - {b"more", b"first"}, set(), "lines")
		t.check(b"more".startswith(data.split(b"\n")[-1]), "the last of them", data[-100:])
	pool.stop()


@case("hostile claimers: nonsense is answered by closing, and the pool goes on", final="not contained")
def hostile(t):
	pool = Pool(t)
	claim = b"brigask1" + struct.pack("<II", 1, 0) + bytes(32) + b"abcdefghij234567"
	for words in (b"", b"x", b"\0" * 64, claim[:-1], claim + b"x", claim.replace(b"\1", b"\2", 1), claim[:-1] + b"/", b"A" * 60000):
		with pool.socket() as s:
			try:
				s.send(words)
				t.equal(s.recv(200), b"", f"answer to {words[:20]!r}")
			except (BrokenPipeError, ConnectionResetError):
				pass
	with pool.socket() as s:	# a good question about a kind that is not kept
		s.send(claim)
		answer, fds, _, _ = socket.recv_fds(s, 200, 4)
		t.equal((answer[:8], struct.unpack("<I", answer[12:16])[0], fds), (b"brigans1", 3, []), "unknown")
	idle = [pool.socket() for _ in range(20)]	# says nothing
	with pool.socket() as s:	# descriptors that nobody asked for
		null = os.open("/dev/null", os.O_RDONLY)
		s.sendmsg([claim], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null]))])
		os.close(null)
		s.recv(200)
	t.verdict(pool.run(), "ok")
	for s in idle:
		s.close()
	t.equal(pool.p.poll(), None, "the pool is alive")
	pool.stop()


@case("a claimer that goes away: its container is removed, never used again", final="left behind")
def deserter(t):
	pool = Pool(t)
	first = pool.waiting()
	p = t.popen([brig_path(), "run", "--lang", "shell", "-c", "echo ready; sleep 600"], env=pool.env, stdin=subprocess.DEVNULL,
		    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
	t.equal(p.stdout.readline(), b"ready\n", "the program runs")
	rows = [row for row in pool.rows() if row["name"] in first]
	t.equal([(row["owner"], row["orphan"], row["waiting"]) for row in rows], [(p.pid, False, False)], "it is the claimer's now")
	removed = json.loads(t.brig("reap", "--json", env=pool.env).out)["removed"]
	t.equal([row for row in removed if row["name"] in first], [], "reap leaves a living claimer's container alone")
	until(t, "a refill while it runs", lambda: pool.waiting() - first)
	p.kill()
	p.communicate()
	until(t, "the pool to remove it", lambda: not first & names())
	until(t, "its record to go", lambda: not os.listdir(os.path.join(pool.folder, "brig", "claims")))
	pool.await_ready(1)
	pool.stop()


@case("a killed pool: a run that has claimed goes on, new ones start cold, reap removes the rest", final="left behind")
def pool_killed(t):
	pool = Pool(t, size=2)
	p = t.popen([brig_path(), "run", "--json", "--lang", "shell", "-c", "echo ready; read line; echo $line"], env=pool.env,
		    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
	claimed = until(t, "the claim", lambda: {row["name"] for row in pool.rows() if row["owner"] == p.pid and not row["orphan"]})
	pool.p.kill()
	pool.p.wait()
	removed = {row["name"] for row in json.loads(t.brig("reap", "--json", env=pool.env).out)["removed"]}
	t.check(not removed & claimed, "the claimed one stays", removed)
	out, _ = p.communicate(b"word\n", timeout=CEILING)
	t.equal(json.loads(out)["stdout"], "ready\nword\n", "output", out)
	t.verdict(pool.run(), "ok")
	until(t, "nothing to be left", lambda: t.brig("reap", env=pool.env).rc == 0 and not pool_containers(pool))
	t.equal(os.listdir(os.path.join(pool.folder, "brig", "claims")), [], "records")
	again = Pool(t)	# the socket of the killed one is no obstacle
	t.verdict(again.run(), "ok")
	again.stop()


@case("pool and run killed at once: reap removes everything", final="left behind")
def all_killed(t):
	pool = Pool(t)
	p = t.popen([brig_path(), "run", "--lang", "shell", "-c", "echo ready; sleep 600"], env=pool.env, stdin=subprocess.DEVNULL,
		    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
	t.equal(p.stdout.readline(), b"ready\n", "the program runs")
	for q in (pool.p, p):
		q.send_signal(signal.SIGSTOP)
	for q in (pool.p, p):
		q.kill()
	p.communicate()
	pool.p.wait()
	until(t, "nothing to be left", lambda: t.brig("reap", env=pool.env).rc == 0 and not pool_containers(pool))
	t.equal(os.listdir(os.path.join(pool.folder, "brig", "claims")), [], "records")


@case("killed at any moment, now and then together with the pool: reap removes everything", final="left behind")
def killed_anywhere(t):
	moments = random.Random(5)
	pool = Pool(t)
	killed = set()
	for i in range(12):
		p = t.popen([brig_path(), "run", "--lang", "shell", "-c", "echo hi"], env=pool.env, stdin=subprocess.DEVNULL,
			    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		killed.add(str(p.pid))
		time.sleep(moments.random() * 0.06)	# it claims, runs, and is looked back at within that time
		p.kill()
		if i % 4 == 3:
			pool.p.kill()
			pool.p.wait()
			pool = Pool(t)
		p.wait()
		pool.await_ready(1)
	pool.stop()
	until(t, "nothing to be left", lambda: t.brig("reap", env=pool.env).rc == 0 and not pool_containers(pool) and not
	      [c for c in engine_containers() if (c.get("Labels") or {}).get("brig.owner.pid") in killed])
	# What removed a container may have been killed before it removed the record: the next reap finds that.
	t.equal((t.brig("reap", env=pool.env).rc, os.listdir(os.path.join(pool.folder, "brig", "claims"))), (0, []), "records")


@case("a record whose container is gone goes with the next reap; one of a living process stays")
def records(t):
	pool = Pool(t)
	pool.stop()
	claims = os.path.join(pool.folder, "brig", "claims")
	p = t.popen(["sleep", "600"])
	with open(f"/proc/{p.pid}/stat", encoding="ascii") as f:
		start = f.read().rpartition(")")[2].split()[19]
	for ident, text in (("a" * 64, f"{p.pid} {start}"), ("b" * 64, f"{p.pid} 1"), ("no id", f"{p.pid} 1")):
		with open(os.path.join(claims, ident), "w", encoding="ascii") as f:
			f.write(text)
	t.equal(t.brig("reap", env=pool.env).rc, 0, "reap")
	t.equal(sorted(os.listdir(claims)), ["a" * 64, "no id"], "what stays")
	p.kill()
	p.wait()
	t.equal(t.brig("reap", env=pool.env).rc, 0, "reap")
	t.equal(os.listdir(claims), ["no id"], "the process has ended")


@case("one pool for one user, in a folder that is that user's alone; remote engines have none")
def refusals(t):
	pool = Pool(t)
	p = t.brig("pool", env=pool.env)
	t.equal((p.rc, b"another pool" in p.err), (125, True), "a second pool", p)
	pool.stop()
	os.chmod(os.path.join(pool.folder, "brig"), 0o755)
	p = t.brig("pool", env=pool.env)
	t.equal((p.rc, b"0700" in p.err), (125, True), "a folder for everyone", p)
	for words in (("--size", "0"), ("--size", "65"), ("--size", "x")):
		t.equal(t.brig("pool", *words, env=pool.env).rc, 2, f"pool {words}")
	p = t.brig("pool", "--lang", "cobol", env=pool.env)
	t.check(p.rc in (2, 125), "an unknown language", p)


if __name__ == "__main__":
	if harness.BACKEND != "docker":
		print("pool.py needs an engine: tests/docker/run docker --only pool")
		sys.exit(2)
	sys.exit(harness.main("pool"))
