# SPDX-License-Identifier: Apache-2.0
"""Memory, read from /proc while things go on.

peaks: brig's own, VmHWM of the supervisor while its payload sleeps.  Neither the interpreter nor any other child is counted,
as the resource usage of a waited-for process would.

waiting: what it costs to have a cell ready: of the keeper the resident set, most of which is the program itself; of a waiting
cell the private dirty pages of its three processes (interpreter, init, janitor), which is what one more of them takes.  Pages of
program files and libraries are in the machine once, however many wait.
"""

import os
import subprocess
import time

PROGRAM = "import time\nprint('up', flush=True)\ntime.sleep(20)\n"


def status_kib(pid, key):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    return None


def descendants(pid):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(entry), *descendants(int(entry))]
    return found


def is_brig(pid, brig):
    try:
        return os.path.samefile(f"/proc/{pid}/exe", brig)
    except OSError:
        return False


def peaks(brig):
    """KiB of the supervisor, and of every process of brig together while the payload runs."""
    run = subprocess.Popen([brig, "run", "-c", PROGRAM, "--lang", "python", "--timeout", "25"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        if not run.stdout.readline().startswith(b"up"):
            return {"supervisor_peak_kib": None, "helpers_peak_kib": None}
        helpers = [p for p in descendants(run.pid) if is_brig(p, brig)]
        return {"supervisor_peak_kib": status_kib(run.pid, "VmHWM"),
                "helpers_peak_kib": sum(status_kib(p, "VmHWM") or 0 for p in helpers)}
    finally:
        run.terminate()
        run.wait()


def private_kib(pid):
    """Pages that it has written to and nobody else has.  Clean ones are the page cache's, and shared as soon as there are two."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next((int(line.split()[1]) for line in f if line.startswith("Private_Dirty:")), 0)


def comm(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def cells_of(keeper):
    """(init, interpreter) of each cell, and the janitors, which have nobody below them."""
    rows = [(p, children(p)) for p in children(keeper)]
    return [(p, below[0]) for p, below in rows if below], [p for p, below in rows if not below]


def settled(keeper):
    """The keeper's cells when they have come to rest: the same twice, and no cpu time used in between."""
    before, deadline = None, time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(0.5)
        try:
            cells, janitors = cells_of(keeper)
            now = cells, janitors, [open(f"/proc/{p}/schedstat").read().split()[0] for _, p in cells]
        except OSError:
            continue
        if cells and now == before:
            return cells, janitors
        before = now
    return [], []


def waiting(command, env):
    """KiB of the keeper, and of one waiting cell, of a command that prints a line when it has used some and then sleeps."""
    run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    try:
        run.stdout.readline()
        keeper = next((p for p in children(run.pid) if comm(p) == "brig-keeper"), None)
        cells, janitors = settled(keeper) if keeper else ([], [])
        if not cells:
            return None
        mean = lambda pids: round(sum(map(private_kib, pids)) / max(len(pids), 1))
        parts = {"interpreter_kib": mean([p for _, p in cells]), "init_kib": mean([p for p, _ in cells]), "janitor_kib": mean(janitors)}
        return {"keeper_kib": status_kib(keeper, "VmRSS"), "keeper_private_kib": private_kib(keeper), "cell_kib": sum(parts.values()), **parts}
    except PermissionError:
        return None  # an ordinary user may not look at processes that have other ids
    finally:
        run.terminate()
        run.wait()
