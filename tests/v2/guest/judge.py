#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""judge.py FILE PART-OF-A-GROUP: judges the result of one `brig run --json` that was started with no suite around.

Every promise must be kept by the kernel, and the limits must have been read back from files of cgroup v2 below the
group named.
"""

import json
import sys

LIMITS = {"memory.max", "memory.swap.max", "pids.max", "cpu.max"}


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    try:
        return json.loads(data)
    except ValueError:
        raise AssertionError(f"no JSON result: {data[:600]!r}") from None


def checks(path, group):
    result = load(path)
    yield "the program runs", result["verdict"] == "ok", {k: result.get(k) for k in ("verdict", "reason")}
    yield "nothing is degraded", result["degraded"] == [], result["degraded"]
    broken = [row for row in result["evidence"] if not row["kept"] and not row.get("degraded")]
    yield "every promise is kept", result["evidence"] and not broken, broken
    sources = [row["source"] for row in result["evidence"]]
    files = [source for source in sources if source.rpartition("/")[2] in LIMITS]
    yield "limits are read back from cgroup v2", {f.rpartition("/")[2] for f in files} == LIMITS, sources
    elsewhere = [f for f in files if group not in f and not f.startswith(".../")]  # brig shortens long paths
    yield f"limits are below {group}", not elsewhere, elsewhere


def main():
    failed = number = 0
    try:
        for number, (title, good, seen) in enumerate(checks(*sys.argv[1:]), 1):
            print(f"ok {number} - {title}" if good else f"not ok {number} - {title}\n#   {seen}")
            failed += not good
    except (AssertionError, KeyError, OSError, TypeError) as e:
        number, failed = number + 1, failed + 1
        print(f"not ok {number} - a complete result\n#   {type(e).__name__}: {e}")
    print(f"{number - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
