#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kills - what docker cells leave behind: nothing.

Needs DOCKER_HOST, an engine that is ours alone with brig's images on it (tests/docker/run gives both).

  killed    brig is killed with SIGKILL at 50 random moments of a run; then `brig reap`; then the engine has no
            container, and below the engine's control group there is no group and no process
  many      100 runs; no container is left, and brig's process, which made them all, has no descriptor more
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import harness

CEILING = 300	# seconds for something that has to happen; never decides on a machine that works
KILLS, RUNS = 50, 100


def words(*args):
	return [harness.brig_path(), "run", "--backend", "docker", *args]


def environment(state):
	return harness.clean_env({"HOME": state, "TMPDIR": state, "BRIG_STATE": os.path.join(state, "state")})


def control_groups():
	"""What is below the engine's own group: one folder per container."""
	name = os.environ.get("BRIG_TEST_ENGINE_CGROUP", "")
	if not name:
		return set()
	with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
		roots = [w[4] for w in map(str.split, f) if w[w.index("-") + 1] in ("cgroup", "cgroup2")]
	return {os.path.join(root, name, entry) for root in roots for entry in harness.listing(os.path.join(root, name))
		if os.path.isdir(os.path.join(root, name, entry))}


def left():
	return sorted(f"container {c['Names'][0]} ({c['State']})" for c in harness.engine_containers()) + sorted(control_groups())


def wait_until_gone():
	"""What is left when nothing changes any more; an engine may still be at work on what a dead brig asked for."""
	deadline = time.monotonic() + CEILING
	while left() and time.monotonic() < deadline:
		subprocess.run([harness.brig_path(), "reap"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
		time.sleep(0.1)
	return left()


def one_run_ms():
	start = time.monotonic()
	p = subprocess.run(words("--lang", "python", "-c", "print(1)"), env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
			   stderr=subprocess.PIPE, check=False)
	if p.returncode != 0 or p.stdout != b"1\n":
		raise harness.Failed(f"a plain run: status {p.returncode}, {p.stdout!r}, {p.stderr!r}")
	return time.monotonic() - start


def killed():
	"""50 random moments between start and end, several at a time so that they also meet each other."""
	length = max(one_run_ms() for _ in range(3))
	moments = [random.Random(7).uniform(0, 1.2 * length) for _ in range(KILLS)]
	seen = 0
	for batch in (moments[i:i + 3] for i in range(0, KILLS, 3)):
		started = time.monotonic()
		running = [subprocess.Popen(words("--lang", "python", "-c", "import time; time.sleep(0.2)"), env=ENV, stdin=subprocess.DEVNULL,
					    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in batch]
		for p, moment in sorted(zip(running, batch), key=lambda pair: pair[1]):
			time.sleep(max(0, started + moment - time.monotonic()))
			p.send_signal(signal.SIGKILL)
			seen += p.wait() == -signal.SIGKILL
	p = subprocess.run([harness.brig_path(), "reap", "--json"], env=ENV, capture_output=True, check=False)
	if p.returncode != 0:
		raise harness.Failed(f"brig reap: status {p.returncode}, {p.stdout!r}, {p.stderr!r}")
	rest = wait_until_gone()
	if rest:
		raise harness.Failed(f"left behind: {rest}")
	if seen == 0:
		raise harness.Failed("no run was still going when it was killed")
	return f"{seen} of {KILLS} were still running"


def many():
	"""Through the library, in one process: the program of the leak suite, which warms up with 50 runs and counts over as many
	more.  Its memory is that suite's business; here descriptors, threads, children, mounts and groups count."""
	program = os.path.join(os.environ.get("BRIG_TEST_BUILD", os.path.join(harness.ROOT, "build")), "tests", "leak", "leak")
	p = subprocess.run([program, str(RUNS - 50)], env={**ENV, "BRIG_BACKEND": "docker"}, capture_output=True, check=False)
	rows = [row for row in p.stdout.decode("utf-8", "replace").splitlines() if " - " in row and "KiB" not in row]
	bad = [row for row in rows if not row.startswith("ok")]
	if bad or not any("descriptors" in row for row in rows):
		raise harness.Failed(f"the leak program: status {p.returncode}, {bad or p.stdout[-600:]!r} {p.stderr[-600:]!r}")
	rest = left()
	if rest:
		raise harness.Failed(f"left behind: {rest}")
	return "; ".join(row.split(" - ", 1)[1] for row in rows if "descriptors" in row)


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument("--jobs", type=int, default=1, help="not used: these count everything")
	parser.add_argument("--only", default="")
	parser.add_argument("--list", action="store_true", help="nothing: a leftover is never a matter of a second try")
	options = parser.parse_args()
	if options.list:
		return 0
	counts = [0, 0]
	for name, title, fn in (("killed", "SIGKILL at 50 random moments, then reap: nothing is left", killed),
				("many", "100 runs in one process leave no container and no descriptor", many)):
		if options.only and options.only != name:
			continue
		start = time.monotonic()
		try:
			said = fn()
			print(f"ok - kills.{name}: {title} ({time.monotonic() - start:.1f} s; {said})", flush=True)
			counts[0] += 1
		except harness.Failed as e:
			print(f"not ok - kills.{name}: {title} # FINAL left behind\n#   {e}", flush=True)
			counts[1] += 1
	print(f"{counts[0]} passed, {counts[1]} failed, 0 skipped", flush=True)
	return 1 if counts[1] else 0


if __name__ == "__main__":
	with tempfile.TemporaryDirectory(prefix="kills-", dir="/var/tmp") as STATE:
		ENV = environment(STATE)
		sys.exit(main())
