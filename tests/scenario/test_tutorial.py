# SPDX-License-Identifier: Apache-2.0
"""docs/TUTORIAL.md from end to end: an agent fixes a failing test, and the repository changes only when somebody says so."""
import json
import os
import re
import shutil

from harness import ROOT, Result, brig_path, case

SECRET = "API_KEY=not-for-programs\n"


def repository(t):
	"""The files of the tutorial, made by its own commands, in a repository."""
	if not shutil.which("git"):
		t.skip("needs git")
	with open(os.path.join(ROOT, "docs", "TUTORIAL.md"), encoding="utf-8") as f:
		block = re.search(r"## A repository.*?```sh\n(.*?)```", f.read(), re.S).group(1)
	p = t.run(["bash", "-ec", block])
	t.equal(p.rc, 0, "making the repository", p)
	git(t, "init", "-q")
	git(t, "add", "-A")
	git(t, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "a shop")
	return t.path("shop")


def git(t, *words):
	p = t.run(["git", "-C", t.path("shop"), *words])
	t.equal(p.rc, 0, f"git {words}", p)
	return p.out.decode()


def run(t, command, shop, *words):
	r = Result(t.run([brig_path(), command, "--json", "--workspace", shop, *words], env={"BRIG_INSPECTION": "guard"}))
	t.ids.append(r.json.get("id"))
	if r.verdict == "refused" and "workspaces" in r.reason:
		t.skip(r.reason)
	return r


@case("an agent fixes a failing test: run, edit, look at the difference, apply, run again")
def agent(t):
	shop = repository(t)
	r = t.verdict(run(t, "test", shop), "error")
	t.equal((r.reason, r.json["tests"]["complete"]), ("1 of 2 tests failed", True), "the first run", r)
	t.check(r.json["tests"]["failures"][0]["name"].endswith("test_quarter"), "the failing test is named", r)

	t.verdict(run(t, "exec", shop, "--shell", "rm -rf / --no-preserve-root"), "blocked")
	r = t.verdict(run(t, "exec", shop, "--shell", "find . -type f -exec cat {} +"), "ok")
	t.check(b"def discount" in r.stdout and SECRET.encode() not in r.stdout, "files are seen, secrets are not", r)

	edit = t.verdict(run(t, "exec", shop, "--", "sed", "-i", "s/price - percent/price - price * percent \\/ 100/", "shop.py"), "ok")
	t.equal([(c["path"], c["change"]) for c in edit.json["changes"]], [("shop.py", "modified")], "changes of the edit", edit)
	t.equal(edit.json["workspace"]["state"], "kept", "state of the changes", edit)
	t.equal(git(t, "status", "--porcelain"), "", "nothing has changed yet")
	t.verdict(run(t, "test", shop), "error")

	p = t.brig("workspace", "diff", edit.json["id"])
	t.equal(p.rc, 0, "brig workspace diff", p)
	changed = [line for line in p.out.decode().splitlines() if re.match(r"[-+](?![-+])", line)]
	t.equal(changed, ["-    return price - percent", "+    return price - price * percent / 100"], "the difference", p)
	p = t.brig("workspace", "apply", edit.json["id"])
	t.equal(p.rc, 0, "brig workspace apply", p)

	t.equal(git(t, "status", "--porcelain"), " M shop.py\n", "one file has changed")
	with open(os.path.join(shop, ".env"), encoding="utf-8") as f:
		t.equal(f.read(), SECRET, "the secret")
	r = t.verdict(run(t, "test", shop), "ok")
	t.equal((r.json["tests"]["passed"], r.json["tests"]["failed"]), (2, 0), "the last run", r)
	t.equal(git(t, "status", "--porcelain"), " M shop.py\n", "test runs leave nothing")
	p = t.brig("audit", "verify", "--json")
	t.check(p.rc == 0 and json.loads(p.out)["ok"] is True, "every step is in the audit log", p)


@case("an edit with --apply is there at once, and only if it ended well")
def applied(t):
	shop = repository(t)
	t.verdict(run(t, "exec", shop, "--apply", "--shell", "echo broken >shop.py; exit 1"), "error")
	t.equal(git(t, "status", "--porcelain"), "", "a failed edit")
	t.verdict(run(t, "exec", shop, "--apply", "--", "sed", "-i", "s/price - percent/price - price * percent \\/ 100/", "shop.py"), "ok")
	t.equal(git(t, "status", "--porcelain"), " M shop.py\n", "a good edit")
	t.verdict(run(t, "test", shop), "ok")
