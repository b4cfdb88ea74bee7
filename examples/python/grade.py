# SPDX-License-Identifier: Apache-2.0
"""A grader for a class: every hand-in against the same tests, side by side, none able to harm another or the grader.

    python3 examples/python/grade.py

Hand-ins come from strangers: one loops, one eats memory, one reads what it should not, one prints the mark it wants.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Dict

import brig

TASK = [("3 4", "7"), ("-1 1", "0"), ("1000000000000 1", "1000000000001")]

HAND_INS = {
    "ada": "a, b = map(int, input().split())\nprint(a + b)\n",
    "ben": "a, b = map(int, input().split())\nprint(abs(a) + abs(b))\n",
    "cleo": "while True:\n    pass\n",
    "dan": "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n",
    "eve": "print(open('/etc/shadow').read())\n",
    "fay": "print('passed 3 of 3')\n",
}


async def grade(code: str) -> str:
    """How many of the task's cases a program gets right; the first other end counts."""
    right = 0
    async with brig.AsyncSandbox(timeout=5, memory="64m") as sandbox:
        for given, expected in TASK:
            result = await sandbox.run(code, "python", stdin=given + "\n", artifacts=[])
            if result.verdict not in ("ok", "error"):
                return result.verdict
            right += result.ok and result.stdout.strip() == expected
    return f"{right} of {len(TASK)}"


async def grade_all(hand_ins: Dict[str, str]) -> Dict[str, str]:
    marks = await asyncio.gather(*(grade(code) for code in hand_ins.values()))
    return dict(zip(hand_ins, marks))


def main() -> int:
    for name, mark in asyncio.run(grade_all(HAND_INS)).items():
        print(f"{name:5} {mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
