# SPDX-License-Identifier: Apache-2.0
"""Files that stay between executions."""
import base64
import bz2
import gzip
import io
import json
import lzma
import os
import re
import shutil
import tarfile

from client import TAR, Server, archive, content, marked, read_quietly, sleeper, unpacked, upload, wait_until
from harness import ROOT, Skipped, case


@case("a workspace: uploaded, looked at, run on, downloaded, removed; a run changes it only if it is to be kept")
def workspace(t):
	long = "deep/" * 40 + "name-" + "x" * 120
	files = {"a.txt": b"one\n", "d/b.sh": b"#!/bin/sh\necho $1\n", "d/.hidden": bytes(range(256)), long: b"far", "empty": b"", "ü.txt": b"umlaut"}
	with Server(t) as s:
		for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
			made = upload(s, archive(files, form, ["./", "d/", "nothing-in-it/"])).json
			ident = made["id"]
			seen = s.get(f"/v1/workspaces/{ident}", status=200).json
			t.equal({f["path"]: (f["size"], f["executable"]) for f in seen["files"]}, {n: (len(d), n.endswith(".sh")) for n, d in files.items()}, "the list", seen)
			a = s.get(f"/v1/workspaces/{ident}/archive", status=200, headers={"Accept": "application/x-tar"})
			t.equal({n: d for n, (d, _) in unpacked(a.body).items()}, files, "the archive")
			t.check("attachment" in a.header("content-disposition"), "it is a download", a.headers)
		r = s.result(kind="command", args=["sh", "-c", "cat a.txt; ./d/b.sh hello; echo more >> a.txt"], workspace=ident)
		t.equal([r["verdict"], r["stdout"], "kept" in r, [[c["path"], c["change"]] for c in r["changes"]]], ["ok", "one\nhello\n", False, [["a.txt", "modified"]]], "a run", r)
		t.equal(content(s, ident), files, "it is as it was")
		d = s.get(f"/v1/workspaces/{ident}/diff", status=200).json
		t.equal([d["execution"], [c["path"] for c in d["changes"]]], [r["id"], ["a.txt"]], "what it changed", d)
		r = s.result(kind="shell", code="echo more >> a.txt; echo new > n; chmod +x n; rm -r d; mkdir -p x/y; echo z > x/y/z", workspace=ident, keep=True)
		t.equal([r["verdict"], r["kept"]], ["ok", {"workspace": ident, "kept": True, "reason": None}], "one that is kept", r)
		now = {long: b"far", "empty": b"", "ü.txt": b"umlaut", "a.txt": b"one\nmore\n", "n": b"new\n", "x/y/z": b"z\n"}
		t.equal(content(s, ident), now, "it is as it was left")
		t.equal(unpacked(s.get(f"/v1/workspaces/{ident}/archive").body)["n"][1], True, "what may be executed")
		r = s.result(kind="command", args=["sh", "-c", "cat n; rm a.txt; exit 1"], workspace=ident, keep=True)
		t.equal([r["kept"]["kept"], "verdict" in r["kept"]["reason"], content(s, ident)], [False, True, now], "one that failed", r)
		r = s.result(kind="shell", code="ln -s n l", workspace=ident, keep=True)
		t.equal([r["verdict"], r["kept"]["kept"], content(s, ident)], ["ok", False, now], "a link", r)
		r = s.result(kind="shell", code="for i in $(seq 150); do echo $i > many-$i; done", workspace=ident, keep=True)
		t.equal([r["kept"]["kept"], "artifacts_limit" in r["kept"]["reason"], content(s, ident)], [False, True, now], "more than is fetched", r["kept"])
		r = s.result(kind="shell", code="rm a.txt; mkdir a.txt; echo in > a.txt/in; rm -r x; echo file > x", workspace=ident, keep=True)
		t.equal([r["kept"]["reason"], {n: d for n, d in content(s, ident).items() if n[0] in "ax"}], [None, {"a.txt/in": b"in\n", "x": b"file\n"}], "files and folders change places", r)
		t.equal(len(s.get("/v1/workspaces").json["workspaces"]), 2, "the list")
		with s.client() as c:
			c.ask("DELETE", f"/v1/workspaces/{ident}", status=200)
			c.ask("DELETE", f"/v1/workspaces/{ident}", status=404)
		t.equal(s.run(None, 422, kind="command", args=["true"], workspace=ident).code, "unusable", "it is gone")
		t.equal(len([n for n in os.listdir(os.path.join(t.state, "serve", "workspaces")) if n.startswith(ident)]), 0, "its files, too")


@case("archives that are refused: the place is named, and nothing is kept", final="a hostile archive was taken")
def refused(t):
	def link(info):
		info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0

	def device(info):
		info.type, info.size = tarfile.CHRTYPE, 0

	def hard(info):
		info.type, info.linkname, info.size = tarfile.LNKTYPE, "a", 0
	good = archive({"a": b"x" * 2000})
	rows = [
		(archive({"../a": b""}), ".."), (archive({"/etc/a": b""}), "absolute"), (archive({"a/../../b": b""}), ".."), (archive({"a//b": b""}), "between slashes"),
		(archive({"a\nb": b""}), "control"), (archive({"l": b""}, edit=link), "link"), (archive({"l": b""}, edit=hard), "link"), (archive({"dev": b""}, edit=device), "neither"),
		(archive({"x" * 2000: b""}), "too long"), (archive({"a": b"", "a/b": b""}), "folder"), (archive({"a": b"", "./a": b"2"}), "twice"),
		(archive({f"{i}": b"" for i in range(4097)}), "4096"),
		(good[:700], "cut"), (good[:100], "cut"), (b"hello" * 1000, "no head"), (b"\x1f\x8b" + b"\0" * 2000, "compressed"), (good[:10] + b"z" + good[11:], "no head"),
		(archive({"a": b"x"}).replace(b"a\0", b"\xff\0", 1), "no head"), *((pack(good), "compressed") for pack in (gzip.compress, bz2.compress, lzma.compress)),
		(b"", "send a tar archive"),
	]
	with Server(t) as s:
		for data, text in rows:
			a = upload(s, data, status=400)
			t.check(text in a.message, f"{data[:40]!r}: {text}", a)
		with s.client() as c:
			t.equal(c.ask("POST", "/v1/workspaces", b"{}", {"Content-Type": "application/json"}).status, 415, "another type")
			t.equal(c.ask("POST", "/v1/executions", good, TAR).status, 415, "elsewhere")
			t.equal([c.ask("GET", "/v1/workspaces/" + "a" * 16).status, c.ask("GET", "/v1/workspaces/x/archive").status, c.ask("GET", "/v1/workspaces/x/diff").status], [404] * 3, "none")
		t.equal(s.get("/v1/workspaces").json["workspaces"], [], "what is there")
		ident = upload(s, archive({"BZh": b"x"})).json["id"]
		t.equal([x["path"] for x in s.get(f"/v1/workspaces/{ident}").json["files"]], ["BZh"], "a name that begins like something compressed")
		ident = upload(s, b"\0" * 1024).json["id"]
		t.equal(s.get(f"/v1/workspaces/{ident}").json["files"], [], "an empty one")
		job = {"kind": "command", "args": ["true"]}
		for more in ({"workspace": "x"}, {"workspace": "../../etc"}, {"keep": True}, {"workspace": ident, "files": {"a": "b"}}, {"workspace": ident, "keep": True, "artifacts": ["*"]}):
			s.run(None, 422, **job, **more)
		t.equal(s.run(None, 400, **job, workspace=5).code, "bad_request", "a number")
		s.get(f"/v1/workspaces/{ident}/diff", status=404)


@case("a workspace is its token's; it outlives the service", final="somebody saw another's workspace")
def owned(t):
	with Server(t, auth=True) as s:
		ada, bob, root = s.token("ada"), s.token("bob"), s.token("root", "--admin")
		ident = upload(s, archive({"secret": b"ada's"}), ada).json["id"]
		with s.client(bob) as c:
			for method, rest in (("GET", ""), ("GET", "/archive"), ("GET", "/diff"), ("DELETE", "")):
				c.ask(method, f"/v1/workspaces/{ident}{rest}", status=404)
			t.equal(c.ask("GET", "/v1/workspaces").json["workspaces"], [], "another's list")
			c.ask("POST", "/v1/executions", {"kind": "command", "args": ["cat", "secret"], "workspace": ident}, status=422)
			c.ask("POST", "/v1/batches", {"jobs": [{"kind": "command", "args": ["cat", "secret"], "workspace": ident}]}, status=422)
		t.equal([w["id"] for w in s.get("/v1/workspaces", root).json["workspaces"]], [ident], "an admin's list")
		t.equal(s.result(ada, kind="shell", code="echo 2 >> secret", workspace=ident, keep=True)["kept"]["kept"], True, "her own")
		s.kill()
	with Server(t, auth=True) as s:
		t.equal(content(s, ident, ada), {"secret": b"ada's2\n"}, "after kill -9")
		s.get(f"/v1/workspaces/{ident}", bob, status=404)
		old = os.stat(os.path.join(t.state, "serve", "workspaces", ident + ".tar"))
		os.utime(os.path.join(t.state, "serve", "workspaces", ident + ".tar"), (old.st_atime, old.st_mtime - 25 * 3600))
	with Server(t, auth=True) as s:
		s.get(f"/v1/workspaces/{ident}", ada, status=404)	# nobody used it for a day


@case("two runs that are to be kept: the later one does not undo the earlier; jobs of a batch share a workspace")
def meanwhile(t):
	with Server(t, "--jobs", "2") as s:
		ident = upload(s, archive({"a": b"0"})).json["id"]
		slow = s.start(**sleeper(1, workspace=ident, keep=True))
		wait_until("it runs", marked)
		t.equal(s.result(kind="shell", code="echo 1 > a", workspace=ident, keep=True)["kept"]["kept"], True, "the one that is first")
		r = s.ended(slow)["result"]
		t.equal([r["verdict"], r["kept"]["kept"], "meanwhile" in (r["kept"]["reason"] or ""), content(s, ident)], ["ok", False, True, {"a": b"1\n"}], "the one that is later", r)
		jobs = [{"kind": "command", "args": ["cat", "a"], "workspace": ident}] * 5
		with s.client() as c:
			batch = c.ask("POST", "/v1/batches", {"jobs": jobs}, status=202).json["id"]
			events = c.stream("GET", f"/v1/batches/{batch}/results")
			events.until("done")
			t.equal([d["stdout"] for e, d in events.seen if e == "result"], ["1\n"] * 5, "a batch")


@case("what an execution changed comes as a unified diff too: as patch(1) reads it, bounded, binary files named, by text/x-diff or format=unified")
def unified(t):
	files = {"a.txt": b"one\ntwo\nthree\n", "no-end": b"x", "d/gone": b"1\n2\n", "bytes": bytes(range(256)), "latin": b"caf\xe9\n", "run.sh": b"echo\n"}
	change = ("printf 'one\\nTWO\\nthree' > a.txt; printf 'x\\n' > no-end; rm -r d; printf '\\0' >> bytes; printf 'caf\\351s\\n' > latin; "
		  "printf 'new\\n' > 'a b'; chmod -x run.sh; ln -s a.txt link; : > empty")
	want = {
		"a b": "new file mode 100644\n--- /dev/null\n+++ b/a b\n@@ -0,0 +1,1 @@\n+new\n",
		"a.txt": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+TWO\n+three\n\\ No newline at end of file\n",
		"bytes": "Binary files a/bytes and b/bytes differ\n",
		"d/gone": "deleted file mode 100644\n--- a/d/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n",
		"empty": "new file mode 100644\n",
		"latin": "--- a/latin\n+++ b/latin\n@@ -1,1 +1,1 @@\n-caf\udce9\n+caf\udce9s\n",
		"link": "new file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1,1 @@\n+a.txt\n\\ No newline at end of file\n",
		"no-end": "--- a/no-end\n+++ b/no-end\n@@ -1,1 +1,1 @@\n-x\n\\ No newline at end of file\n+x\n",
		"run.sh": "old mode 100755\nnew mode 100644\n",
	}
	with Server(t) as s:
		ident = upload(s, archive(files)).json["id"]
		r = s.result(kind="shell", code=change, workspace=ident)
		t.equal([r["verdict"], r["diff"]["encoding"], r["diff"]["truncated"]], ["ok", "base64", False], "a run", r)
		text = base64.b64decode(r["diff"]["text"])
		parts = text.decode("utf-8", "surrogateescape").split("diff --git ")[1:]
		t.equal({p.partition(" b/")[0][2:]: p.partition("\n")[2] for p in parts}, want, "the diff")
		for target, headers in ((f"?execution={r['id']}&format=unified", {}), ("", {"Accept": "text/x-diff"}), ("?format=unified", {"Accept": "text/*"})):
			a = s.get(f"/v1/workspaces/{ident}/diff{target}", headers=headers, status=200)
			t.equal([a.header("content-type"), a.body], ["text/x-diff; charset=utf-8", text], f"{target} {headers}")
		for target, headers in (("", {}), ("?format=json", {"Accept": "text/x-diff, application/json"}), ("", {"Accept": "application/json"})):
			t.equal(s.get(f"/v1/workspaces/{ident}/diff{target}", headers=headers, status=200).json["diff"], r["diff"], f"{target} {headers}")
		s.get(f"/v1/workspaces/{ident}/diff?format=ed", status=400)
		# More than is shown: whole files, and it says that there is more.
		r = s.result(kind="shell", code="for i in 1 2 3; do seq 100000 > $i; done", files={"a": "x"})
		t.equal([r["diff"]["truncated"], r["diff"]["text"].count("diff --git"), r["diff"]["text"][-7:]], [True, 0, ""], "too much", r["diff"]["text"][-200:])
		r = s.result(kind="shell", code="for i in 1 2 3; do seq 30000 > $i; done", files={"a": "x"})
		t.equal([r["diff"]["truncated"], r["diff"]["text"].count("diff --git"), r["diff"]["text"][-7:]], [True, 2, "+30000\n"], "too much of some", r["diff"]["text"][-200:])
		t.check("diff" not in s.result(kind="shell", code="echo"), "without files there is nothing to compare with")
		r = s.result(kind="shell", code="printf '\\n' >> a", files={"a": "x"})
		t.equal(r["diff"]["text"], "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-x\n\\ No newline at end of file\n+x\n", "files that came with the request", r["diff"])


def unit_capabilities():
	"""What the unit of systemd leaves to the service."""
	text = read_quietly(os.path.join(ROOT, "packaging", "systemd", "brig.service.in")).decode()
	return [word.removeprefix("CAP_").lower() for word in re.search("^CapabilityBoundingSet=(.*)$", text, re.M).group(1).split()]


@case("with the capabilities of the unit of systemd and no other, cells that get their files at the same time all begin")
def as_unit(t):
	if os.geteuid() != 0 or not shutil.which("setpriv"):
		raise Skipped("needs root, and setpriv to have less than root's rights")
	less = ["setpriv", "--inh-caps=-all", "--bounding-set=-all" + "".join(f",+{name}" for name in unit_capabilities())]
	with Server(t, "--jobs", 4, through=less) as s, s.client() as c:
		ident = upload(s, archive({"a": b"1\n"})).json["id"]
		batch = c.ask("POST", "/v1/batches", {"jobs": [{"kind": "command", "args": ["cat", "a"], "workspace": ident}] * 60}, status=202).json["id"]
		events = c.stream("GET", f"/v1/batches/{batch}/results")
		events.until("done")
		t.equal([d["stdout"] or d["reason"] for e, d in events.seen if e == "result"], ["1\n"] * 60, "each has its file")
