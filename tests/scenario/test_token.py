# SPDX-License-Identifier: Apache-2.0
"""brig token: secrets are shown once and kept nowhere, and what a token is bounded by is never dropped by a typing error."""
import hashlib
import json
import os
import re
import stat
import time

from harness import case

SECRET = re.compile(rb"brig_[a-z2-7]{32}\n")
UNBOUNDED = ("languages", "backends", "environments", "concurrent", "runs_per_minute", "cpu_seconds_per_hour", "memory_max", "expires",
	"revoked")


def made(t, *args, name="ci"):
	p = t.brig("token", "create", name, *args)
	t.equal(p.rc, 0, "exit status", p)
	t.check(SECRET.fullmatch(p.out), "stdout is the secret and nothing else", p)
	return p.out.strip().decode()


def refused(t, *args, status=2, says):
	p = t.brig("token", *args)
	t.equal(p.rc, status, "exit status", p)
	t.equal(p.out, b"", "stdout", p)
	t.check(says.encode() in p.err, f"it says '{says}'", p)
	return p


def listed(t):
	p = t.brig("token", "list", "--json")
	t.equal(p.rc, 0, "exit status", p)
	return {row["name"]: row for row in json.loads(p.out)["tokens"]}


def token_file(t):
	return os.path.join(t.dir, "state", "serve", "tokens")


def token_lines(t):
	with open(token_file(t), encoding="utf-8") as f:
		return [json.loads(line) for line in f]


@case("a token is made, its secret is shown once and kept as a hash")
def create(t):
	p = t.brig("token", "list")
	t.check(p.rc == 0 and b"no tokens" in p.out, "at first there is none", p)
	secret = made(t)
	t.check(made(t, name="other") != secret, "each has its own secret")
	lines = token_lines(t)
	t.equal([row["name"] for row in lines], ["ci", "other"], "names in the file")
	t.equal(lines[0]["hash"], hashlib.blake2b(secret.encode(), digest_size=32).hexdigest(), "hash of the secret")
	for folder, _, names in os.walk(os.path.join(t.dir, "state")):
		for name in names:
			with open(os.path.join(folder, name), "rb") as f:
				t.check(secret[5:].encode() not in f.read(), f"the secret is not in {name}")
	t.equal(stat.S_IMODE(os.stat(token_file(t)).st_mode), 0o600, "mode of the file")
	t.equal(stat.S_IMODE(os.stat(os.path.dirname(token_file(t))).st_mode), 0o700, "mode of the folder")
	p = t.brig("token", "list")
	t.check(b"ci" in p.out and b"other" in p.out and secret[5:].encode() not in p.out, "the list has names, no secrets", p)
	row = listed(t)["ci"]
	t.equal((row["state"], row["max_trust"], row["admin"]), ("active", "unknown", False), "what it is without options")
	t.equal({name: row[name] for name in UNBOUNDED}, dict.fromkeys(UNBOUNDED), "bounds without options")


@case("what a token is told to allow is what it says, in both forms")
def bounds(t):
	p = t.brig("token", "create", "class", "--max-trust", "untrusted", "--language", "py,node", "--language", "go", "--backend",
		"native", "--environment", "data", "--expires", "2h", "--concurrent", "4", "--runs-per-minute", "60",
		"--cpu-seconds-per-hour", "3600", "--memory", "1.5g", "--admin", "--json")
	t.equal(p.rc, 0, "exit status", p)
	doc = json.loads(p.out)
	t.check(SECRET.fullmatch(doc.pop("secret").encode() + b"\n"), "a secret", p)
	t.equal(doc["languages"], ["python", "javascript", "go"], "languages, by their own names")
	t.equal((doc["max_trust"], doc["backends"], doc["environments"]), ("untrusted", ["native"], ["data"]), "what it may use")
	t.equal((doc["concurrent"], doc["runs_per_minute"], doc["cpu_seconds_per_hour"], doc["memory_max"], doc["admin"]),
		(4, 60, 3600, 3 << 29, True), "quotas")
	t.check(abs(token_lines(t)[0]["expires"] - time.time() - 7200) < 600, "it expires in two hours", doc)
	t.equal(listed(t)["class"], doc, "the list says the same")
	p = t.brig("token", "list")
	for part in (b"untrusted", b"admin", b"python, javascript, go; on native; with data", b"4 at once; 60 a minute; 3600 cpu s an hour; 1.5 GB"):
		t.check(part in p.out, f"{part} in the list", p)


@case("a revoked token stays in the list as revoked, and its name is free")
def revoke(t):
	made(t)
	p = t.brig("token", "revoke", "ci")
	t.check(p.rc == 0 and b"token ci is revoked" in p.out, "it says so", p)
	t.equal(listed(t)["ci"]["state"], "revoked", "state")
	refused(t, "revoke", "ci", says="was revoked")
	refused(t, "revoke", "nobody", says="there is no token 'nobody'")
	before = token_lines(t)[0]["hash"]
	made(t)
	t.equal(listed(t)["ci"]["state"], "active", "state of the new one")
	t.check([row["hash"] for row in token_lines(t)] not in ([before], []), "one token, with another secret", token_lines(t))
	refused(t, "create", "ci", status=125, says="there is a token 'ci' already")
	p = t.brig("token", "revoke", "--json", "ci")
	t.equal((p.rc, json.loads(p.out)["state"]), (0, "revoked"), "as a document", p)


WRONG = [
	((), "takes the name of one token"),
	(("a", "b"), "takes the name of one token"),
	(("a b",), "cannot be the name"),
	(("x" * 65,), "at most 64 bytes"),
	(("x", "--max-trust", "high"), "must be untrusted, unknown or trusted"),
	(("x", "--language", "pyton"), "did you mean 'python'?"),
	(("x", "--language", ""), "names nothing"),	# an empty variable is not everything
	(("x", "--backend", ","), "names nothing"),
	(("x", "--environment", "a,,b"), "names nothing"),
	(("x", "--environment", "../b"), "cannot be among the environments"),
	(("x", "--backend", "auto"), "native, docker, kubernetes and direct"),
	(("x", "--expires", "soon"), "is no moment"),
	(("x", "--expires", "0d"), "not in the future"),
	(("x", "--expires", "2020-01-01"), "not in the future"),
	(("x", "--expires", "99999w"), "too long"),
	(("x", "--concurrent", "0"), "must be a number"),
	(("x", "--concurrent", "4294967297"), "must be a number"),
	(("x", "--runs-per-minute", "-1"), "must be a number"),
	(("x", "--cpu-seconds-per-hour", "1h"), "must be a number"),
	(("x", "--memory", "much"), "must be a size"),
]


@case("a description that is wrong makes no token")
def wrong(t):
	for args, says in WRONG:
		refused(t, "create", *args, says=says)
	t.equal(listed(t), {}, "tokens")


@case("a token file with a bad line, or open to others, is refused with what to do")
def bad_file(t):
	made(t)
	with open(token_file(t), "a", encoding="utf-8") as f:
		f.write('{"name":"second"}\n')
	for args in (("list",), ("create", "new"), ("revoke", "ci")):
		p = refused(t, *args, status=125, says="serve/tokens' line 2: hash is missing; fix or remove that line")
		t.check(b"until then no token is known" in p.err, "what it means", p)
	with open(token_file(t), "r+", encoding="utf-8") as f:
		f.truncate(f.read().index('{"name":"second"}'))
	t.equal(list(listed(t)), ["ci"], "fixed")
	os.chmod(token_file(t), 0o644)
	refused(t, "list", status=125, says="run 'chmod 600' on it")
	os.chmod(token_file(t), 0o600)
	os.chmod(os.path.dirname(token_file(t)), 0o755)
	refused(t, "list", status=125, says="run 'chmod 700' on it")
