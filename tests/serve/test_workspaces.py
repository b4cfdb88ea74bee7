# SPDX-License-Identifier: Apache-2.0
"""Files that stay between executions."""
import io
import json
import os
import tarfile

from client import Server, marked, sleeper, wait_until
from harness import case

TAR = {"Content-Type": "application/x-tar"}


def archive(files, form=tarfile.PAX_FORMAT, folders=(), edit=None):
	"""A tar archive of {path: bytes}."""
	out = io.BytesIO()
	with tarfile.open(fileobj=out, mode="w", format=form) as tar:
		for name in folders:
			info = tarfile.TarInfo(name)
			info.type = tarfile.DIRTYPE
			tar.addfile(info)
		for name, data in files.items():
			info = tarfile.TarInfo(name)
			info.size, info.mode = len(data), 0o755 if name.endswith(".sh") else 0o640
			if edit:
				edit(info)
			tar.addfile(info, io.BytesIO(data))
	return out.getvalue()


def unpacked(data):
	with tarfile.open(fileobj=io.BytesIO(data)) as tar:
		return {m.name: (tar.extractfile(m).read(), bool(m.mode & 0o100)) for m in tar if m.isfile()}


def upload(s, data, token=None, status=201):
	with s.client(token) as c:
		return c.ask("POST", "/v1/workspaces", data, TAR, status=status)


def content(s, ident, token=None):
	return {name: data for name, (data, _) in unpacked(s.get(f"/v1/workspaces/{ident}/archive", token, status=200).body).items()}


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
		(good[:700], "cut"), (good[:100], "cut"), (b"hello" * 1000, "no head"), (b"\x1f\x8b" + b"\0" * 2000, "no head"), (good[:10] + b"z" + good[11:], "no head"),
		(archive({"a": b"x"}).replace(b"a\0", b"\xff\0", 1), "no head"),
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
