# SPDX-License-Identifier: Apache-2.0
"""docs/SERVE.md: what it shows with curl is asked of a real server.  Its commands of brig are run by the scenario suite."""
import os
import re
import shutil

from client import API, Server
from harness import ROOT, case
from pages import MAKES_FILE, fenced, statements


def shown():
	"""Statements of the page's blocks that use curl or make a file for it."""
	with open(os.path.join(ROOT, "docs", "SERVE.md"), encoding="utf-8") as f:
		blocks = list(fenced(f.read()))
	return [s for b in blocks for s in statements(b) if s.startswith("curl ") or MAKES_FILE.match(s)]


@case("what docs/SERVE.md shows with curl works")
def examples(t):
	if not shutil.which("curl"):
		t.skip("curl is not installed")
	with Server(t, auth=True) as s:
		token = s.token("reader")
		found = shown()
		for statement in found:
			p = t.run(["bash", "-c", statement.replace(":8377", f":{s.port}")], env={"TOKEN": token})
			t.check(p.rc == 0 and (p.out or not statement.startswith("curl")), f"`{statement}` works", p)
		t.check(sum(x.startswith("curl") for x in found) >= 10, "examples were found")


@case("docs/SERVE.md names every path of the description, and no other")
def named(t):
	with open(os.path.join(ROOT, "docs", "SERVE.md"), encoding="utf-8") as f:
		page = f.read()
	table = page[page.index("## Requests"):page.index("## Examples")]
	told = {re.sub(r"\?.*", "", p) for p in re.findall(r"(/(?:v1/[\w/{}]+|healthz|readyz|metrics|openapi\.json))", table)}
	t.equal(sorted(told), sorted(API["paths"]), "the paths of the page")
