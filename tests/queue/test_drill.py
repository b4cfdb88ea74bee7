# SPDX-License-Identifier: Apache-2.0
"""Jobs while workers, fronts and brokers are killed with -9 and links are cut: BRIG_TEST_QUEUE_JOBS of them (`make drill-queue`)."""
import collections
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time

import harness
from cluster import SOON, Cluster, wait_until
from harness import Failed, case

JOBS = int(os.environ.get("BRIG_TEST_QUEUE_JOBS", "60"))
TROUBLE = 3	# seconds between two of them, at most
PROGRAM = "import time, random\ntime.sleep(random.random() / 4)\nprint('job {}')"


def accept(fronts, number, never, accepted, rng):
	"""Asks fronts until one promises.  A promise may have been made that nobody heard of: such a job has a result, too, but
	nobody to ask for it."""
	while True:
		try:
			f = rng.choice(fronts)
			a = f.ask("POST", "/v1/executions", {"language": "python", "code": PROGRAM.format(number), "async": True,
							     "retry": "never" if never else "allowed"}, timeout=20)
			if a.status == 202:
				accepted[a.json["id"]] = (number, never)
				return
		except (OSError, http.client.HTTPException, ValueError):
			pass
		time.sleep(0.1)


class Trouble(threading.Thread):
	"""One mishap after the other, each of which ends before the next begins."""
	def __init__(self, c, seed):
		super().__init__(daemon=True)
		self.c, self.rng, self.over, self.count = c, random.Random(seed), threading.Event(), {}

	def worker(self):
		w = self.rng.choice(self.c.workers)
		w.kill()
		w.begin()

	def front(self):
		f = self.rng.choice(self.c.fronts)
		f.kill()
		f.begin()

	def part(self):
		node = self.rng.choice(self.c.workers + self.c.fronts)
		node.kill(self.rng.choice(["brig-link", "brig-runner", "brig-recorder"]))

	def broker(self):
		b = self.rng.choice(self.c.brokers)
		try:
			leader = self.c.asked(lambda n: n.leader("BRIG_JOBS"), 5)
			b = next(x for x in self.c.brokers if x.name == leader)
		except (OSError, StopIteration, KeyError, Failed, ValueError):
			pass	# there is none now: any will do
		b.kill()
		time.sleep(0.5)
		b.begin()
		time.sleep(2)	# the others are to have a third one again

	def link(self):
		node = self.rng.choice(self.c.workers + self.c.fronts + self.c.brokers)
		node.cut()
		time.sleep(self.rng.random() * 4)
		node.mend()

	def run(self):
		kinds = [self.worker, self.front, self.part, self.broker, self.link]
		while not self.over.wait(self.rng.random() * TROUBLE):
			kind = self.rng.choice(kinds)
			kind()
			self.count[kind.__name__] = self.count.get(kind.__name__, 0) + 1


def ended(worker):
	"""How often each id ended on this node, as its audit log says."""
	p = subprocess.run([harness.brig_path(), "audit", "export", "--state", worker.state], capture_output=True, text=True,
			   env=harness.clean_env())
	return collections.Counter(e["id"] for e in map(json.loads, p.stdout.splitlines()) if e["event"] == "run")


def attempt(claim):
	"""The number of a sealed claim."""
	at = claim.index(b"\x07attempt") + 8 + 4
	return int.from_bytes(claim[at:at + 8], "little")


def most(c, n):
	"""Waits until there are so many results, while everything is in trouble."""
	wait_until(f"{n} results", lambda: c.asked(lambda nats: nats.messages("KV_brig-results"), 120) >= n, 120 + JOBS, 0.5)


@case("jobs on three brokers and three workers, two fronts; kills and cuts at random: each accepted one has one result or is lost by id")
def at_random(t):
	seed = int(os.environ.get("BRIG_TEST_SEED", random.randrange(1 << 30)))
	rng = random.Random(seed)
	with Cluster(t, brokers=3, workers=3, fronts=2, jobs=3, patience=SOON) as c:
		accepted, trouble, threads = {}, Trouble(c, seed), []
		numbers = iter(range(JOBS))
		lock = threading.Lock()

		def client(client_seed):
			own = random.Random(client_seed)
			while True:
				with lock:
					number = next(numbers, None)
				if number is None:
					return
				accept(c.fronts, number, number % 4 == 0, accepted, own)

		trouble.start()
		for _ in range(6):
			threads.append(threading.Thread(target=client, args=(rng.random(),), daemon=True))
			threads[-1].start()
		for one in threads:
			one.join()
		most(c, JOBS * 9 // 10)
		trouble.over.set()
		trouble.join()
		lost, patience = [], 90 + JOBS / 10
		for ident, (number, never) in accepted.items():
			def result(ident=ident):
				try:
					a = c.fronts[0].look(ident)
				except (OSError, http.client.HTTPException):
					return None
				return a.json if a.status == 200 and a.json["state"] in ("finished", "lost") else None
			r = wait_until(f"job {number} ({ident}, seed {seed}) ends", result, patience)
			if r["state"] == "lost":
				lost.append((ident, never))
			else:
				t.equal(r["result"]["stdout"], f"job {number}\n", f"the result of {ident}, seed {seed}")
		again = 0
		for ident, (_, never) in accepted.items():
			t.check(c.asked(lambda n, i=ident: n.get("results", i)) is not None, f"{ident} is recorded (seed {seed})")
			number = attempt(c.asked(lambda n, i=ident: n.get("claims", i)))
			again += number > 1
			t.check(not never or number == 1, f"{ident} said never, and has a claim of number {number} (seed {seed})")
		t.check(all(never for _, never in lost) or len(lost) < JOBS / 20, f"lost without having said never: {lost} (seed {seed})")
		runs = collections.Counter()
		for w in [w for w in c.workers if os.path.exists(os.path.join(w.state, "audit"))]:	# others have run nothing
			good, text = w.verified()
			t.check(good, f"the audit log of {w.name} (seed {seed}): {text}")
			runs += ended(w)
		twice = [i for i, (_, never) in accepted.items() if never and runs[i] > 1]
		t.equal(twice, [], f"jobs that said never and ran twice (seed {seed})")
		print(f"# {len(accepted)} accepted, {len(lost)} lost by id, {again} begun again, troubles {trouble.count}, seed {seed}",
		      file=sys.stderr, flush=True)
