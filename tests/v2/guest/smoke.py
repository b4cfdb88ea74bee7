#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is this the machine the suites think it is?  Pure cgroup v2 with working controllers, below $V2_GROUP,
where the caller sits in a leaf.

Says so before the suites run: when something fails there, it is brig and not the VM.
"""

import ctypes
import os
import signal
import subprocess
import sys

GROUP = os.environ["V2_GROUP"]
PYTHON = "/usr/bin/python3"


def read(path):
    with open(path) as f:
        return f.read()


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


class Child:
    """A group of its own below GROUP, removed at the end."""

    def __init__(self, name, **limits):
        self.path = os.path.join(GROUP, f"smoke-{name}")
        os.mkdir(self.path)
        for key, value in limits.items():
            write(os.path.join(self.path, key.replace("_", ".")), value)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        write(os.path.join(self.path, "cgroup.kill"), "1")
        while "populated 1" in read(os.path.join(self.path, "cgroup.events")):
            pass
        os.rmdir(self.path)

    def get(self, name):
        return read(os.path.join(self.path, name))

    def start(self, code):
        def enter():
            write(os.path.join(self.path, "cgroup.procs"), "0")

        return subprocess.Popen([PYTHON, "-c", code], preexec_fn=enter, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)


def only_cgroup_v2():
    kinds = {line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo") if " - cgroup" in line}
    assert kinds == {"cgroup2"}, kinds


def controllers_are_delegated():
    have = set(read(os.path.join(GROUP, "cgroup.controllers")).split())
    assert {"cpu", "memory", "pids"} <= have, have
    write(os.path.join(GROUP, "cgroup.subtree_control"), "+cpu +memory +pids")


def memory_limit_kills():
    with Child("memory", memory_max="30000000") as group:
        code = group.start("x = b'x' * 100000000").wait()
        assert code == -signal.SIGKILL, code
        assert "oom_kill 1" in group.get("memory.events"), group.get("memory.events")
        assert int(group.get("memory.peak")) > 20000000, group.get("memory.peak")


def pids_limit_refuses():
    with Child("pids", pids_max="2") as group:
        code = group.start("import os\nos.fork() and os.fork()").wait()
        assert code == 1, code
        assert "max 0" not in group.get("pids.events"), group.get("pids.events")


def cpu_limit_is_accepted():
    with Child("cpu", cpu_max="50000 100000") as group:
        assert group.get("cpu.max").split() == ["50000", "100000"], group.get("cpu.max")


def cgroup_kill_kills():
    with Child("kill") as group:
        child = group.start("import time\ntime.sleep(600)")
        write(os.path.join(group.path, "cgroup.kill"), "1")
        assert child.wait() == -signal.SIGKILL


def user_namespaces_work():
    subprocess.run(["unshare", "-Urmn", "mount", "-t", "tmpfs", "x", "/mnt"], check=True)


def landlock_is_there():
    version = ctypes.CDLL(None).syscall(444, None, 0, 1)
    assert version >= 1, version


CHECKS = [only_cgroup_v2, controllers_are_delegated, memory_limit_kills, pids_limit_refuses, cpu_limit_is_accepted,
          cgroup_kill_kills, user_namespaces_work, landlock_is_there]


def main():
    failed = 0
    for number, check in enumerate(CHECKS, 1):
        title = check.__name__.replace("_", " ")
        try:
            check()
            print(f"ok {number} - {title}", flush=True)
        except (AssertionError, OSError, subprocess.CalledProcessError) as e:
            failed += 1
            print(f"not ok {number} - {title}\n#   {type(e).__name__}: {e}", flush=True)
    print(f"{len(CHECKS) - failed} passed, {failed} failed, 0 skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
