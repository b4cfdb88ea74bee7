# SPDX-License-Identifier: Apache-2.0
"""A data analysis with a plot: data goes in, a table and a picture come out.

    python3 examples/python/plot.py [picture.png]

The analysis is the kind of code that a model writes. It needs Matplotlib where cells find it: Debian's package
python3-matplotlib, or `packages=["matplotlib"]`.
"""

from __future__ import annotations

import sys

import brig

DATA = "month,visits\n1,120\n2,180\n3,150\n4,310\n5,290\n6,400\n"

ANALYSIS = """
import csv

rows = [(int(r["month"]), int(r["visits"])) for r in csv.DictReader(open("visits.csv"))]
n = len(rows)
mean_x, mean_y = sum(x for x, _ in rows) / n, sum(y for _, y in rows) / n
slope = sum((x - mean_x) * (y - mean_y) for x, y in rows) / sum((x - mean_x) ** 2 for x, _ in rows)
print(f"{slope:.1f} visits more each month")

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

plt.plot(*zip(*rows), "o-")
plt.plot([1, n], [mean_y + slope * (1 - mean_x), mean_y + slope * (n - mean_x)], "--")
plt.xlabel("month")
plt.ylabel("visits")
plt.savefig("visits.png")
"""


def main() -> int:
    result = brig.run(ANALYSIS, files={"visits.csv": DATA}, timeout=120)
    print(result.stdout, end="")
    if not result.ok:
        print(
            f"{result.verdict}: {result.reason or result.stderr.strip().splitlines()[-1]}",
            result.hint or "",
            file=sys.stderr,
        )
        return 1
    where = sys.argv[1] if len(sys.argv) > 1 else "visits.png"
    print("picture:", result.artifact("visits.png").save(where))
    return 0


if __name__ == "__main__":
    sys.exit(main())
