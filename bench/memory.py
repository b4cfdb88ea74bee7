# SPDX-License-Identifier: Apache-2.0
"""brig's own peak memory: VmHWM of the supervisor while its payload sleeps.

Read from /proc while the run goes on, so that neither the interpreter nor any other child is counted, as the
resource usage of a waited-for process would.
"""

import os
import subprocess

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
