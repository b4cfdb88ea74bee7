# SPDX-License-Identifier: Apache-2.0
"""A broker, a worker and a key for a front, on loopback: what the cluster page of the console is seen with."""
import json
import os
import shutil
import subprocess
import time

import harness

WORKER = "cell-1"
PATIENCE = 60	# seconds


def missing():
	"""Why there can be no cluster here, or None."""
	if not shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
		return "needs nats-server: tools/bootstrap queue"
	return None


def key_of(state):
	words = [harness.brig_path(), "worker", "--show-key", "--state", state]
	return subprocess.run(words, env=harness.clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


class Cluster:
	def __init__(self, place):
		self.dir, self.started = os.path.join(place, "cluster"), []
		self.states = {role: os.path.join(self.dir, role) for role in ("front", "worker")}
		os.mkdir(self.dir)
		try:
			self.url = self.broker()
			nodes = os.path.join(self.dir, "nodes")
			with open(nodes, "w", encoding="utf-8") as f:
				f.write(f"front web-1 {key_of(self.states['front'])}\nworker {WORKER} {key_of(self.states['worker'])}\n")
			self.words = ["--queue", self.url, "--nodes", nodes]
			self.start("worker.log", harness.brig_path(), "worker", *self.words, "--node-name", WORKER, "--state", self.states["worker"], "--jobs", "2")
		except BaseException:
			self.stop()
			raise

	def start(self, log, *words):
		with open(os.path.join(self.dir, log), "wb") as f:
			p = subprocess.Popen(words, env=harness.clean_env(), stdin=subprocess.DEVNULL, stdout=f, stderr=f, cwd=self.dir)
		self.started.append(p)
		return p

	def broker(self):
		"""Its address, at a port that was free: it tells which in a file."""
		p = self.start("broker.log", "nats-server", "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", os.path.join(self.dir, "stream"),
			       "--ports_file_dir", self.dir)
		path, until = os.path.join(self.dir, f"nats-server_{p.pid}.ports"), time.monotonic() + PATIENCE
		while time.monotonic() < until and p.poll() is None:
			try:
				with open(path, encoding="utf-8") as f:
					return json.load(f)["nats"][0]
			except (OSError, ValueError):
				time.sleep(0.02)
		raise SystemExit("Bail out! nats-server is not ready\n0 passed, 1 failed, 0 skipped")

	def stop(self):
		"""The broker, which began first, ends last."""
		for p in reversed(self.started):
			p.terminate()
			try:
				p.wait(timeout=PATIENCE)
			except subprocess.TimeoutExpired:
				p.kill()
				p.wait()
