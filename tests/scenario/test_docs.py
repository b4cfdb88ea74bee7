# SPDX-License-Identifier: Apache-2.0
"""
Every brig command shown in README.md, docs/ and the manual page is run.

In Markdown, commands are taken from fences marked ```sh; a fence marked ```sh no-run is left alone.  A statement
(a line, its continuations and here-documents) is run if it uses brig or only makes a file; others (make, apt, git,
curl ...) are not ours.  It must exit 0, or with N where the line ends in `# exits N`.  Statements of one page share a
directory in which examples/ and config/ are those of the tree.  In the manual page, commands stand between .EX and .EE.
"""
import glob
import os
import re

from harness import ROOT, Host, add, brig_path, case
from pages import MAKES_FILE, fenced, statements

USES_BRIG = re.compile(r"(^|[\s|;&(`])(\./)?(build/)?brig\s")
NOT_OURS = re.compile(r"^(sudo|make|apt|apt-get|npm|git|docker|meson|ninja|cd|systemctl|curl|pip|su|man)\b")


def manual(text):
	for block in re.findall(r"^\.EX\n(.*?)^\.EE", text, re.S | re.M):
		yield block.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\e", "\\")


def wanted(statement):
	if not statement.strip() or statement.lstrip().startswith("#") or NOT_OURS.match(statement):
		return False
	return bool(USES_BRIG.search(statement) or MAKES_FILE.match(statement))


def runner(blocks):
	def run(t):
		os.mkdir(t.path("build"))
		os.symlink(brig_path(), t.path("build/brig"))
		for name in ("examples", "config", "data", "docs"):
			if os.path.isdir(os.path.join(ROOT, name)):
				os.symlink(os.path.join(ROOT, name), t.path(name))
		path = t.path("build") + ":/usr/local/bin:/usr/bin:/bin"
		ran = 0
		for statement in filter(wanted, (s for b in blocks for s in statements(b))):
			status = re.search(r"#.*\bexits? (?:with )?(\d+)", statement)
			if any(name in statement for name in Host.degraded):
				continue	# it shows a limit that this host does not have
			p = t.run(["bash", "-c", statement], env={"PATH": path, "BRIG_INSPECTION": "guard"})
			t.equal(p.rc, int(status.group(1)) if status else 0, f"status of `{statement}`", p)
			ran += 1
		t.check(ran > 0, "commands were found")
	return run


def pages():
	files = sorted(glob.glob(os.path.join(ROOT, "*.md")) + glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))
	for path in files:
		with open(path, encoding="utf-8") as f:
			yield os.path.relpath(path, ROOT), list(fenced(f.read()))
	for path in sorted(glob.glob(os.path.join(ROOT, "**", "brig.1"), recursive=True)):
		with open(path, encoding="utf-8") as f:
			yield os.path.relpath(path, ROOT), list(manual(f.read()))


@case("docs/ATTACKS.md lists the attacks that there are")
def attacks_listed(t):
	p = t.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "attacks", "run.py"), "--document"])
	with open(os.path.join(ROOT, "docs", "ATTACKS.md"), "rb") as f:
		t.check(p.out and p.out == f.read(), "refresh it: tests/attacks/run.py --document >docs/ATTACKS.md")


for page, found in pages():
	if any(wanted(s) for b in found for s in statements(b)):
		add(f"docs.{page}", f"the commands in {page} work", runner(found), "docs")
