# SPDX-License-Identifier: Apache-2.0
"""How the benchmarks measure: spawn a command, wait for it, look at the clock.

One run is the time from just before posix_spawn() (vfork underneath, so the size of this process does not
count) to the return of wait4().  Commands that are compared run interleaved, one run of each per round and in
a new order every round: whatever else the machine does then hits all of them alike, which running them one
after another does not give.
"""

import json
import os
import random
import shutil
import statistics
import time

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The same small environment for everybody: Node, for one, takes twice as long where it has to read certificates.
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LANG": "C.UTF-8", "BRIG_HOST": "none"}


class CommandFailed(Exception):
    pass


def find_brig():
    """The binary under measurement: $BRIG, else the one `make` builds."""
    return os.environ.get("BRIG") or os.path.join(REPO, "build", "brig")


def resolve(program):
    return shutil.which(program, path=ENV["PATH"]) or program


def quiet_files(stdout_fd=None):
    """File actions: no input, no output; or the output into stdout_fd."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    if stdout_fd is None:
        return actions + [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    return actions + [(os.POSIX_SPAWN_DUP2, stdout_fd, 1)]


def run_once(argv, stdout_fd=None):
    """Milliseconds of one run, and its exit code."""
    actions = quiet_files(stdout_fd)
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(resolve(argv[0]), argv, ENV, file_actions=actions)
    _, status, _ = os.wait4(pid, 0)
    elapsed = (time.perf_counter_ns() - begin) / 1e6
    return elapsed, os.waitstatus_to_exitcode(status)


def run_for_output(argv):
    """One run whose standard output is kept: (milliseconds, exit code, bytes)."""
    fd = os.memfd_create("output", os.MFD_CLOEXEC)
    try:
        elapsed, code = run_once(argv, fd)
        os.lseek(fd, 0, os.SEEK_SET)
        with os.fdopen(os.dup(fd), "rb") as f:
            return elapsed, code, f.read()
    finally:
        os.close(fd)


def interleaved(commands, rounds, warmup=3):
    """commands: {name: argv}.  Returns {name: [milliseconds]}; a run that fails fails the measurement."""
    times = {name: [] for name in commands}
    for number in range(warmup + rounds):
        order = list(commands)
        random.shuffle(order)
        for name in order:
            elapsed, code = run_once(commands[name])
            if code != 0:
                raise CommandFailed(f"{name}: exit code {code}: {' '.join(commands[name])}")
            if number >= warmup:
                times[name].append(elapsed)
    return times


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "p90": quantile(values, 0.9), "runs": len(values)}


def table(header, rows):
    """Rows of strings as aligned text: the first column to the left, the others to the right."""
    cells = [header] + rows
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row):
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        return "  ".join([row[0].ljust(widths[0])] + rest).rstrip()

    return "\n".join([line(header), "  ".join("-" * w for w in widths)] + [line(row) for row in rows])


def parse_result(data):
    """The result of `brig run --json`."""
    return json.loads(data.decode("utf-8", "replace"))
