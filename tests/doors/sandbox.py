# SPDX-License-Identifier: Apache-2.0
"""sandbox.py - sandboxes of E2B, for the files of tests that use some."""
import os
import shutil

from harness import Skipped
from table import ask

HERE = os.path.dirname(os.path.abspath(__file__))


def run_client(t, s, script, least, *args):
	"""A file of tests/doors that uses the SDK; it says a line for each thing that it saw."""
	node = shutil.which("node")
	if not node or not os.path.isdir(os.path.join(HERE, "node_modules")):
		raise Skipped("needs node and the packages of tests/doors: npm ci --prefix tests/doors")
	p = t.run([node, os.path.join(HERE, script), f"http://127.0.0.1:{s.port}", *args], stdin=b"")
	t.check(p.rc == 0 and b"not ok" not in p.out and p.out.count(b"ok ") >= least, "what the client says", p.text())


def make(s, headers=None, **body):
	r = ask(s, "POST", "/v2/sandboxes", {"templateID": "base", **body}, headers)
	return r.json if r.status == 201 else r


def of(box, key=None):
	return {"E2b-Sandbox-Id": box["sandboxID"], "X-Access-Token": key or box["envdAccessToken"]}
