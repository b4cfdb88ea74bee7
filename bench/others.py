# SPDX-License-Identifier: Apache-2.0
"""What a request to `brig serve` is compared with: the same program through judges, sandboxes and an engine.

Those that are not obtainable as packages are represented by a stand-in (bench/judge-standin.c), and the tables say so.  Each
contestant is a name and a function that runs the program once and gives its milliseconds.  Each is there until the stack that it
was made on is closed.
"""

import contextlib
import os
import random
import socket
import subprocess
import sys
import time

import measure
import rivals

sys.path.insert(0, os.path.join(measure.REPO, "tests", "engine"))
import engine  # noqa: E402

CODE = b"pass\n"
DOCKER_EVERY = 8  # rounds: one of its runs takes as long as all others together


def own_groups(name):
    """Folders for groups of our own, one in each hierarchy that has a limit of brig's; none where there is no such place."""
    found = []
    with open("/proc/self/cgroup") as f:
        lines = [line.strip().split(":", 2) for line in f]
    for _, controllers, path in lines:
        for one in set(controllers.split(",")) & {"memory", "pids", "cpu"}:
            for folder in (f"/sys/fs/cgroup/{controllers}", f"/sys/fs/cgroup/{one}"):
                if os.path.isdir(folder + path):
                    found.append(os.path.join(folder + path, name))
                    break
    return list(dict.fromkeys(found))


class StandIn:
    """bench/judge-standin, and a connection to it."""

    def __init__(self, stack, program, mode, folder):
        root = os.path.join(folder, "root" + mode)
        os.mkdir(root)
        groups = own_groups(f"bench-{os.getpid()}{mode}")
        for group in groups:
            os.mkdir(group)
            stack.callback(os.rmdir, group)
        words = [word for group in groups for word in ("--group", group)]
        p = subprocess.Popen([program, mode, "--root", root, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        stack.callback(p.wait)
        stack.callback(p.terminate)
        stack.callback(p.stdout.close)
        line = p.stdout.readline().split()
        if len(line) != 2:
            raise measure.CommandFailed("judge-standin does not start")
        self.sock = stack.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", int(line[1])))))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def once(self):
        begin = time.perf_counter_ns()
        self.sock.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(CODE) + CODE)
        answer = self.sock.recv(4096)
        elapsed = (time.perf_counter_ns() - begin) / 1e6
        if b'"verdict":"ok"' not in answer:
            raise measure.CommandFailed(f"judge-standin answered {answer!r}")
        return elapsed


def command(argv):
    def once():
        elapsed, code = measure.run_once(argv)
        if code != 0:
            raise measure.CommandFailed(f"{' '.join(argv[:3])} ... exited {code}")
        return elapsed
    return once


def docker(stack, folder):
    """An engine of our own, and `docker run` on it; or why there is none."""
    try:
        host = stack.enter_context(engine.Engine("docker")).host
    except engine.Cannot as e:
        return None, str(e)
    before = os.environ.get("DOCKER_HOST")
    stack.callback(lambda: os.environ.pop("DOCKER_HOST") if before is None else os.environ.update(DOCKER_HOST=before))
    stack.callback(measure.ENV.pop, "DOCKER_HOST")
    os.environ["DOCKER_HOST"] = measure.ENV["DOCKER_HOST"] = host
    rival = rivals.Docker(folder)
    reason = rival.missing()
    if reason:
        return None, reason
    stack.callback(rival.close)
    return command(rival.argv(rivals.WORKLOADS[0])), None


def contestants(stack, folder, brig):
    """({name: once}, {name: why not})"""
    able, reasons = {}, {}
    program = os.path.join(os.path.dirname(os.path.realpath(brig)), "..", "..", "bench", "judge-standin")
    folder = os.path.join(folder, "others")
    os.mkdir(folder)
    os.chmod(folder, 0o755)  # a container's user reads the program there
    rivals.WORKLOADS[0].prepare(folder)
    for name, mode in (("go-judge (stand-in)", "--keep"), ("Piston with isolate (stand-in)", "--fresh")):
        if os.geteuid() != 0 or not os.path.exists(program):
            reasons[name] = "bench/judge-standin needs root" if os.path.exists(program) else "bench/judge-standin is not built"
        else:
            able[name] = StandIn(stack, os.path.normpath(program), mode, folder).once
    bubblewrap = rivals.Bubblewrap(folder)
    if bubblewrap.missing():
        reasons["bubblewrap"] = bubblewrap.missing()
    else:
        able["bubblewrap"] = command(bubblewrap.argv(rivals.WORKLOADS[0]))
    once, reason = docker(stack, folder)
    if once:
        able["docker run"] = once
    else:
        reasons["docker run"] = reason
    return able, reasons


def side_by_side(able, runs, pause):
    """{name: [milliseconds]}, in turn and in a new order in each round, with a pause before each."""
    times = {name: [] for name in able}
    for number in range(runs + 3):
        names = [name for name in able if name != "docker run" or number % DOCKER_EVERY == 0]
        random.shuffle(names)
        for name in names:
            time.sleep(pause)
            elapsed = able[name]()
            if number >= 3:
                times[name].append(elapsed)
    return times
