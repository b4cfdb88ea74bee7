# SPDX-License-Identifier: Apache-2.0
"""Projects whose tests are run, and what `brig test` says of them."""
import os

from harness import Result, brig_path, test_ids


def project(t, files, name="project"):
	"""A folder with these files, readable for whoever runs brig."""
	top = t.path(name)
	for path, text in files.items():
		full = os.path.join(top, path)
		os.makedirs(os.path.dirname(full), exist_ok=True)
		with open(full, "w", encoding="utf-8") as f:
			f.write(text)
	for folder, _, names in os.walk(top):
		for path in [folder] + [os.path.join(folder, n) for n in names]:
			if test_ids():
				os.chown(path, *test_ids())
	return top


def listing(top):
	return sorted(os.path.relpath(os.path.join(d, n), top) for d, _, names in os.walk(top) for n in names)


def contents(top):
	"""Text of every regular file by its path; of a link, what it says."""
	found = {}
	for path in listing(top):
		full = os.path.join(top, path)
		if os.path.islink(full):
			found[path] = "-> " + os.readlink(full)
		elif os.path.isfile(full):
			with open(full, encoding="utf-8", errors="replace") as f:
				found[path] = f.read()
	return found


def run(t, top, *words, **kw):
	"""`brig test --json`, parsed; the project stays as it is."""
	before = listing(top)
	r = Result(t.run([brig_path(), "test", "--json", "--workspace", top, *map(str, words)], **kw))
	t.ids.append(r.json.get("id"))
	t.equal(listing(top), before, "files of the project", r)
	t.check(not any(c["path"].startswith(".brig-") for c in r.json.get("changes") or []), "what brig staged is no change", r)
	return r


def counts(r):
	tests = r.json["tests"]
	return tests["passed"], tests["failed"], tests["skipped"]


def needs(t, path, package):
	if not os.path.exists(path):
		t.skip(f"needs {package}")
