#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The attack suite: hostile programs in cells, judged from outside.  docs/ATTACKS.md lists them."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
sys.dont_write_bytecode = True
import harness
import judge


def table(results):
	"""Attacks tried and contained, by category."""
	rows = {}
	for r in results:
		row = rows.setdefault(r["category"], [0, 0, 0, 0])
		if r["status"] == "skipped":
			row[2] += 1
			continue
		row[0] += 1
		row[1] += r["status"] == "passed"
		row[3] += r["leftovers"]
	total = [sum(column) for column in zip(*rows.values())] if rows else [0] * 4
	print(f"\n{'category':<16}{'tried':>8}{'contained':>12}{'skipped':>10}{'left behind':>14}")
	for name, row in [*sorted(rows.items()), ("all", total)]:
		print(f"{name:<16}{row[0]:>8}{row[1]:>12}{row[2]:>10}{row[3]:>14}")


def document():
	"""docs/ATTACKS.md: the text of overview.md, then every attack."""
	with open(os.path.join(HERE, "overview.md"), encoding="utf-8") as f:
		print(f.read().rstrip())
	for name in judge.CATEGORIES.values():
		cases = sorted((c for c in harness.CASES if c.category == name), key=lambda c: c.ident)
		print(f"\n## {name.capitalize()} ({len(cases)})\n\n| attack | what the hostile side does | what must happen | skipped without |\n|---|---|---|---|")
		for c in cases:
			print(f"| {c.ident} | {c.title} | {getattr(c.fn, 'says', 'nothing changes outside')} | {', '.join(c.needs)} |")


def main():
	parser = harness.arguments("attacks")
	parser.add_argument("--document", action="store_true", help="print docs/ATTACKS.md and stop")
	options = parser.parse_args()
	harness.load(os.path.join(HERE, "cases"), r"\w+\.py")
	if options.document:
		document()
		return 0
	if options.self_test:
		judge.register_self_test()
		return harness.main("attacks-self-test", options, judge.make_hooks, probe=False, final="the judge did not notice")
	return harness.main("attacks", options, judge.make_hooks, table, final="not contained")


if __name__ == "__main__":
	sys.exit(main())
