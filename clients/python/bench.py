#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bench - what Sandbox.run("pass") costs over `brig run` itself.

    BRIG_BIN=build/brig PYTHONPATH=clients/python/src clients/python/bench.py [ROUNDS]

Both are measured in turns in one process, so that whatever else the machine does falls on both alike: the program
started with posix_spawn and its result read, as cheaply as Python can, and a Sandbox that does the same with types,
files and artifacts.  Prints medians, and the median of the differences.
"""
import os
import statistics
import sys
import time

import brig


def bare(program: str) -> None:
    read, write = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, write, 1),
    ]
    words = [program, "run", "--json", "--lang", "python", "-c", "pass"]
    env = {name: value for name, value in os.environ.items() if name != "BRIG_BIN"}
    child = os.posix_spawn(program, words, env, file_actions=actions)
    os.close(write)
    while os.read(read, 1 << 18):
        pass
    os.close(read)
    os.waitpid(child, 0)


def timed(call: "object", *args: object) -> float:
    began = time.perf_counter()
    call(*args)  # type: ignore[operator]
    return (time.perf_counter() - began) * 1000


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    program = brig.find_binary()
    with brig.Sandbox() as empty, brig.Sandbox(files={"a.txt": "x" * 10000}) as filled:
        columns = {
            "brig run": lambda: bare(program),
            "Sandbox.run": lambda: empty.run("pass"),
            "with a file": lambda: filled.run("pass"),
            "artifacts=[]": lambda: empty.run("pass", artifacts=[]),
        }
        for call in columns.values():
            call()
        rows = [[timed(call) for call in columns.values()] for _ in range(rounds)]
    for n, name in enumerate(columns):
        median = statistics.median(row[n] for row in rows)
        over = statistics.median(row[n] - row[0] for row in rows)
        print(f"{name:14} {median:7.2f} ms   {over:+6.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
