# SPDX-License-Identifier: Apache-2.0
"""A request cannot choose its own judge: trust, backend, what is inspected and recorded, and the environment."""
import hashlib
import json
import os

from harness import BACKEND, VERDICT_STATUS, Result, case

ON = {"BRIG_INSPECTION": "guard"}


def entry(t, ident):
	"""The audit entry of a request."""
	rows = [json.loads(line) for line in t.brig("audit", "show", "--json").out.splitlines() if ident.encode() in line]
	t.equal(len(rows), 1, f"audit entries of {ident}", rows)
	return rows[0]


def digest(items):
	return hashlib.sha256(b"".join(b"%d:%s," % (len(i.encode()), i.encode()) for i in items)).hexdigest()


@case("p1: a policy's default trust is the ceiling, and its backend binds")
def p1_ceiling(t):
	mark = t.path("mark")
	policy = t.path("p.yaml", "default_trust: untrusted\nbackend: native\n")
	everything = ("--trust", "trusted", "--backend", "direct", "--no-inspect")
	for words, piece in ((everything, "max_trust"), (("--trust", "unknown"), "max_trust"), (("--backend", "direct"), "backend"),
			     (("--backend", "docker"), "backend"), (("--no-inspect",), "inspection")):
		r = t.cell("--policy", policy, *words, "-c", f"touch {mark}; echo ran", lang="shell", env={**ON, "BRIG_BACKEND": "native"})
		t.verdict(r, "refused")
		t.check(piece in r.reason and "policy" in r.reason, f"{words}: what, and what to do", r)
		t.check(r.stdout == b"" and not os.path.exists(mark), f"{words}: nothing ran", r)


@case("p1: without a policy a request may say trusted, but not reach direct")
def p1_direct(t):
	mark = t.path("mark")
	r = t.cell("--trust", "trusted", "--backend", "direct", "-c", f"touch {mark}", lang="shell", env={"BRIG_BACKEND": "auto"})
	t.verdict(r, "refused")
	t.check("isolates nothing" in r.reason and "backend: [native, direct]" in r.reason, "why, and the remedy", r)
	t.check(not os.path.exists(mark), "nothing ran on the host", r)
	t.verdict(t.cell("--trust", "trusted", "-c", "exit 0", lang="shell"), "ok")


@case("p1: variables cannot loosen what a policy file states")
def p1_environment(t):
	policy = t.path("p.yaml", "default_trust: unknown\nbackend: native\naudit: required\n")
	for name, value in (("BRIG_MAX_TRUST", "trusted"), ("BRIG_BACKEND", "direct"), ("BRIG_FALLBACK", "direct"), ("SECURITY_ENABLE_SANDBOX", "false"),
			    ("BRIG_AUDIT", "off")):
		p = t.run(t.run_args("--policy", policy, "-c", "echo ran", "--lang", "shell"), env={**ON, "BRIG_BACKEND": "native", name: value})
		t.equal(p.rc, VERDICT_STATUS["refused"], f"exit status with {name}", p)
		t.check(name in p.text() and "p.yaml:" in p.text() and b"ran" not in p.out, f"{name}: what and where", p)


@case("p1: what a policy file says of inspection and record is not loosened at any trust")
def p1_bound(t):
	policy = t.path("p.yaml", "max_trust: trusted\nsecurity: {inspection: guard}\nmonitoring: {report_denied: true, enabled: true}\n"
			"record: {keep_code: all, keep_output: all}\n")
	for wish in ("inspection=off", "report_denied=false", "monitoring_enabled=false", "keep_code=none", "keep_output=none", "redact=*",
		     "history=false", "audit=off"):
		r = t.cell("--policy", policy, "--trust", "trusted", "--set", wish, "-c", "echo secret", lang="shell", env=ON)
		t.verdict(r, "refused")
		t.check(wish.split("=")[0] in r.reason and "policy" in r.reason, "what, and what to do", r)
	shown = json.loads(t.brig("show", "--json", r.json["id"]).out)
	t.equal(shown["code"]["text"], "echo secret", "the record of the refused one", shown)
	t.verdict(t.cell("--policy", policy, "--trust", "trusted", "--memory", "100m", "-c", "exit 0", lang="shell", env=ON), "ok")


@case("p1: result, audit entry and history say who chose the trust")
def p1_who_chose(t):
	policy = t.path("p.yaml", "default_trust: untrusted\n")
	for words, env, trust, source in (((), {}, "unknown", "built-in"), (("--trust", "trusted"), {}, "trusted", "request"),
					  (("--policy", policy), {}, "untrusted", "file"), ((), {"BRIG_DEFAULT_TRUST": "untrusted"}, "untrusted", "environment")):
		r = t.verdict(t.cell(*words, "-c", "exit 0", lang="shell", env={**ON, **env}), "ok")
		shown = json.loads(t.brig("show", "--json", r.json["id"]).out)
		for where, doc in (("result", r.json), ("audit", entry(t, r.json["id"])), ("history", shown)):
			t.equal((doc["trust"], doc["trust_source"]), (trust, source), f"trust in {where}", doc)
	r = t.verdict(t.cell("--policy", policy, "--trust", "trusted", "-c", "exit 0", lang="shell", env=ON), "refused")
	t.equal((r.json["trust"], r.json["trust_source"]), ("trusted", "request"), "what was asked for", r)
	t.check(b"chosen by: request" in t.brig("show", r.json["id"]).out, "brig show", r)


@case("p1: policy show names the implied ceiling and the backends of a list")
def p1_shown(t):
	policy = t.path("p.yaml", "default_trust: unknown\nbackend: [docker, native]\n")
	env = {**ON, **({"BRIG_BACKEND": "docker,native"} if BACKEND else {})}
	rows = {row["key"]: row for row in json.loads(t.brig("policy", "show", "--json", "--policy", policy, env=env).out)["settings"]}
	t.equal((rows["max_trust"]["value"], rows["max_trust"]["place"]), ("unknown", "p.yaml:1 by default_trust"), "max_trust")
	t.equal((rows["backend"]["value"], rows["backends"]["value"]), ("docker", ["docker", "native"]), "backend and backends")


# ---- the environment --------------------------------------------------------------------------------

HOSTILE = (
	("python", "import warnings", ("PYTHONWARNINGS=all:0:antigravity.x:0:0", "BROWSER=/bin/sh -c 'echo UNSEEN >&2' #%s")),
	("python", "print(1)", ("PYTHONSTARTUP=/workspace/x.py",)),
	("python", "print(1)", ("LD_PRELOAD=/workspace/x.so",)),
	("shell", "greet", ("BASH_FUNC_greet%%=() { echo UNSEEN; }",)),
	("shell", "echo $GREETING", ("GREETING=() { :; }; echo UNSEEN",)),
	("shell", "true", ("BASH_ENV=/workspace/x",)),
	("javascript", "console.log(1)", ("NODE_OPTIONS=--import=data:text/javascript,console.log('UNSEEN')",)),
	("javascript", "console.log(1)", ("node_options=x",)),
)


@case("i1: variables that load or start other code are refused below trusted")
def i1_refused(t):
	for lang, code, variables in HOSTILE:
		words = [w for v in variables for w in ("--env", v)]
		for trust in ("untrusted", "unknown"):
			r = t.cell("--trust", trust, *words, "-c", code, lang=lang)
			t.verdict(r, "refused")
			t.check(variables[0].split("=")[0] in r.reason and trust in r.reason, "the reason names variable and trust", r)
			t.check(b"UNSEEN" not in r.stdout + r.stderr, "nothing of it ran", r)


@case("i1: exec and test refuse them too")
def i1_commands(t):
	top = os.path.join(t.dir, "project")
	os.mkdir(top)
	with open(os.path.join(top, "test_one.py"), "w", encoding="utf-8") as f:
		f.write("def test_one():\n\tpass\n")
	for words in (("exec", "--json", "--env", "LD_PRELOAD=/x", "--", "ls"), ("exec", "--json", "--env", "LD_PRELOAD=/x", "--shell", "ls"),
		      ("test", "--json", "--env", "LD_PRELOAD=/x", top)):
		r = Result(t.brig(*words))
		t.verdict(r, "refused")
		t.check("LD_PRELOAD" in r.reason, f"{words[0]}: the reason", r)


@case("i1: plain variables arrive at every trust, and a trusted request may set any")
def i1_granted(t):
	for trust in ("untrusted", "unknown", "trusted"):
		r = t.verdict(t.cell("--trust", trust, "--env", "GREETING=good (morning) {x}", "--env", "TZ=UTC", "-c", 'echo "$GREETING"', lang="shell"), "ok")
		t.equal(r.stdout, b"good (morning) {x}\n", f"output at {trust}", r)
	r = t.verdict(t.cell("--trust", "trusted", "--env", "PYTHONOPTIMIZE=1", "-c", "import sys; print(sys.flags.optimize)", lang="python"), "ok")
	t.equal(r.stdout, b"1\n", "a start-up variable at trusted", r)


@case("i1: audit entry and receipt hold hashes of arguments and environment")
def i1_hashes(t):
	env, args = ["A=1", "B=two words"], ["x", "", "y z"]
	receipt = t.path("receipt.json")
	r = t.verdict(t.cell("--env", env[0], "--env", env[1], "--receipt", receipt, t.path("p.sh", "exit 0\n"), "--", *args), "ok")
	row = entry(t, r.json["id"])
	with open(receipt, encoding="utf-8") as f:
		request = json.load(f)["statement"]["request"]
	for where, doc in (("entry", row), ("receipt", request)):
		t.equal((doc["args_sha256"], doc["env_sha256"]), (digest(args), digest(env)), f"hashes in the {where}", doc)
	t.equal(t.brig("receipt", "verify", receipt).rc, 0, "the receipt holds")
	t.equal(t.brig("audit", "verify").rc, 0, "the log is whole")
