# SPDX-License-Identifier: Apache-2.0
"""What a project hides from programs: a file under all its names; and how much disk kept changes may take."""
import json
import os
import re

from harness import case, give

SECRET = "tell-nobody-0815"

# Everything that a program finds in the workspace, by every path, links to folders included.
READ_ALL = """
import json
import os
seen = set()
def look(folder):
	real = os.path.realpath(folder)
	if real in seen or not real.startswith("/workspace"):
		return
	seen.add(real)
	for name in sorted(os.listdir(folder)):
		path = os.path.join(folder, name)
		try:
			if os.path.isdir(path):
				look(path)
			else:
				print(path[len("/workspace/"):], len(open(path, "rb").read()), open(path, errors="replace").read(40).strip())
		except OSError as e:
			print(path[len("/workspace/"):], e.strerror)
look("/workspace")
"""


def project(t, files, links=(), twins=()):
	top = t.path("project")
	os.mkdir(top)
	for name, content in files.items():
		full = os.path.join(top, name)
		os.makedirs(os.path.dirname(full), exist_ok=True)
		with open(full, "w") as f:
			f.write(content)
	for name, target in links:
		os.symlink(target, os.path.join(top, name))
	for name, of in twins:
		os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
		os.link(os.path.join(top, of), os.path.join(top, name))
	give(top)
	return top


def read_all(t, top, *args):
	r = t.verdict(t.cell("--trust", "trusted", "--no-inspect", "--workspace", top, *args, code=READ_ALL, lang="python"), "ok")
	t.check(SECRET.encode() not in r.stdout, "a hidden file was read", r)
	rows = {row["check"]: row for row in r.json["evidence"]}
	t.check(rows["masks"]["kept"], "the masks are not in the evidence", rows["masks"])
	return r


@case("w3: a link through a linked folder, a chain, an absolute one and one through /workspace hide what they lead to")
def w3_links(t):
	top = project(t, {"config/production": SECRET, "deep/a/b": SECRET, "abs/cell": SECRET, "abs/host": SECRET, "back": SECRET,
			  "keys/mine": SECRET, "plain": "plain text"},
		      [("cfg", "config"), (".env", "cfg/production"), ("one", "deep/a"), ("two", "one/../a/b"), (".env.chain", "two"),
		       (".env.cell", "/workspace/abs/cell"), (".env.back", "../workspace/back"), (".ssh", "keys")])
	os.symlink(os.path.join(top, "abs/host"), os.path.join(top, ".env.host"))
	give(top)
	r = read_all(t, top)
	t.check(b"plain 10 plain text" in r.stdout, "the other files cannot be read", r)


@case("w3: every hard link of a hidden file is hidden, also of one in a hidden folder")
def w3_hard_links(t):
	top = project(t, {".env": SECRET, ".ssh/id": SECRET, "plain": "plain text"}, [("lib", "src")],
		      [("src/notes.txt", ".env"), ("src/deep/x", ".ssh/id"), ("also-plain", "plain")])
	r = read_all(t, top)
	t.check(b"also-plain 10 plain text" in r.stdout, "a hard link of an ordinary file is hidden", r)


@case("w8: names in any case, editors' copies, keys and accounts by content; ordinary files stay")
def w8_names(t):
	account = '{"type": "service_account", "private_key": "%s", "client_email": "robot@example.org", "client_id": "1"}' % SECRET
	hidden = [".env~", "..env.swp", ".ENV", "prod.env", "#.env#", "live.tfvars", "tls/A.KEY", ".vault-token", ".dev.vars",
		  "prod.kubeconfig", "web/.env.production", "id_rsa.bak", "secrets.yml~"]
	files = {name: SECRET for name in hidden}
	files.update({"TLS.PEM": "-----BEGIN PRIVATE KEY-----\n" + SECRET, "robot-1a2b.json": account})
	shown = ["environment.ts", "test.key.js", "keyboard.py", ".env.example", "example.env", "secrets.py", "README.md~", "data.json"]
	files.update({name: "shown: " + name for name in shown})
	files["public.pem"] = "-----BEGIN PUBLIC KEY-----"
	top = project(t, files)
	r = read_all(t, top)
	for name in shown:
		t.check(f"{name} {len(files[name])} shown: {name}".encode() in r.stdout, f"{name} is hidden", r)
	t.check(b"BEGIN PUBLIC KEY" in r.stdout, "a public key is hidden", r)


@case("w8: what a program writes under a name that is hidden is not moved over, in any case")
def w8_not_written(t):
	top = project(t, {"plain": "p"})
	code = "for n in ('.ENV', 'PROD.env', 'x.KEY', '.env~', 'fine.txt'): open(n, 'w').write('mine')"
	t.verdict(t.cell("--trust", "trusted", "--apply", "--workspace", top, code=code, lang="python"), "ok")
	t.equal(sorted(os.listdir(top)), ["fine.txt", "plain"], "what was applied")


@case("masked: the evidence says how many were found, and a program that moves their folder keeps the promise kept")
def masked_counts(t):
	t.native_only("mounts of native cells")
	top = project(t, {".env": SECRET, "sub/.env": SECRET, "sub/x": "x"})
	code = "import os\ntry: os.rename('sub', 'moved')\nexcept OSError: pass\nos.makedirs('sub', exist_ok=True)\n"
	r = t.verdict(t.cell("--trust", "trusted", "--no-inspect", "--workspace", top, code=code, lang="python"), "ok")
	row = next(row for row in r.json["evidence"] if row["check"] == "masks")
	t.check(row["kept"] and re.search(r"2 masks of 2\b", row["source"]), "the evidence does not count what was found", row)


@case("d2: kept changes stay below changes_size, the oldest go first, and brig doctor says how much they take")
def d2_ceiling(t):
	top = project(t, {"plain": "p"})
	policy = t.path("policy.yaml", "changes_size: 3m\n")
	code = "import os; open('big', 'wb').write(os.urandom(1 << 20))"
	ids = []
	for _ in range(4):
		r = t.verdict(t.cell("--policy", policy, "--trust", "trusted", "--no-inspect", "--workspace", top, code=code, lang="python"), "ok")
		ids.append(r.json["id"])
	t.check(any("changes_size" in w for w in r.json["warnings"]), "nobody is told that changes were forgotten", r.json["warnings"])
	kept = os.listdir(os.path.join(t.state, "workspaces"))
	t.equal(sorted(kept), sorted(ids[2:]), "the changesets that are kept")
	doctor = t.brig("doctor", "--policy", policy, "--json")
	row = next(row for row in json.loads(doctor.out)["rows"] if row["name"] == "changes")
	t.check(row["detail"].startswith("2 changesets") and "3 MB" in row["detail"], "brig doctor does not say it", row)


@case("d2: changes that alone are larger are listed, not kept, and the warning names the remedy")
def d2_too_large(t):
	top = project(t, {"plain": "p"})
	policy = t.path("policy.yaml", "changes_size: 1m\n")
	code = "import os; open('big', 'wb').write(os.urandom(2 << 20))"
	r = t.verdict(t.cell("--policy", policy, "--trust", "trusted", "--no-inspect", "--workspace", top, code=code, lang="python"), "ok")
	t.equal([row["path"] for row in r.json["changes"]], ["big"], "the listed changes")
	t.check(any("changes_size" in w and "raise" in w for w in r.json["warnings"]), "the remedy is not named", r.json["warnings"])
	t.equal(os.listdir(os.path.join(t.state, "workspaces")), [], "what is kept")


@case("d2: a hole of many megabytes takes no disk when it is kept")
def d2_holes(t):
	top = project(t, {"plain": "p"})
	code = "f = open('sparse', 'wb'); f.seek(40 << 20); f.write(b'end')"
	r = t.verdict(t.cell("--trust", "trusted", "--no-inspect", "--workspace", top, code=code, lang="python"), "ok")
	folder = os.path.join(t.state, "workspaces", r.json["id"])
	used = sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in os.listdir(folder))
	t.check(used < 1 << 20, f"{used} bytes of disk are used")
