# SPDX-License-Identifier: Apache-2.0
"""Inspection as an axis of its own: its levels, single rules, and what permits a block."""
import json

from harness import brig_path, case

GUARD = {"BRIG_INSPECTION": "guard"}	# what is built in; suites switch it off for everybody else

# What strict blocks, since it can start programs and is on no list; harmless in a cell.
CAPABLE = "import os\nprint('it ran', os.getpid() > 0)\n"
# What every level that blocks at all blocks.
HARMFUL = "cat /etc/shadow; echo it ran\n"


def python(t, *words, **kw):
	return t.cell(*words, code=CAPABLE, lang="python", env={**GUARD, **kw.pop("env", {})}, **kw)


def shell(t, *words, **kw):
	return t.cell(*words, code=HARMFUL, lang="shell", env=GUARD, **kw)


def ask(t, *words):
	"""`brig`, with what is built in."""
	return t.brig(*words, env=GUARD)


@case("without a policy file the person at the command line chooses how code is judged, at any trust")
def levels(t):
	t.verdict(shell(t, "--inspect", "guard"), "blocked")
	t.verdict(python(t, "--inspect", "strict"), "blocked")
	for words in (["--inspect", "report"], ["--inspect", "off"], ["--no-inspect"]):
		for trust in ("untrusted", "unknown", "trusted"):
			r = t.verdict(python(t, "--trust", trust, *words), "ok")
			t.equal(r.json["inspection"], "report" if "report" in words else "off", "level", r)


@case("trust chooses a level where nobody else does: report, guard or strict")
def defaults(t):
	for trust, level in (("trusted", "report"), ("unknown", "guard"), ("untrusted", "strict")):
		words = [brig_path(), "check", "--json", "--trust", trust, "--lang", "shell", "-c", "echo 1"]
		row = json.loads(t.run(["env", "-u", "BRIG_INSPECTION", *words]).out)
		t.equal(row["level"], level, f"level of {trust}")
		row = json.loads(t.run(words, env={"BRIG_INSPECTION": "strict"}).out)
		t.equal(row["level"], "strict", f"level of {trust} where the environment says strict")
	p = t.brig("check", "--trust", "trusted", "--lang", "shell", "-c", HARMFUL)
	t.equal(p.rc, 1, "at report nothing blocks", p)


def file_of(t, text):
	return t.path("sandbox.yaml", text)


@case("under a policy file that sets inspection, rules or trust a request can only tighten")
def bound(t):
	for text in ("inspection: guard\n", "max_trust: unknown\n", "default_trust: unknown\n", "rules: {py-pickle: warn}\n"):
		policy = file_of(t, text)
		for words in (["--inspect", "off"], ["--inspect", "report"], ["--no-inspect"]):
			r = t.verdict(shell(t, "--policy", policy, *words), "refused")
			t.check("--trust" not in r.json["reason"], "a higher trust is proposed", r)
		t.verdict(python(t, "--policy", policy, "--inspect", "strict"), "blocked")
		r = shell(t, "--policy", policy, "--inspect", "guard")
		first = next(f["rule"] for f in t.verdict(r, "blocked").json["findings"] if f["severity"] == "CRITICAL")
		r = t.verdict(shell(t, "--policy", policy, "--rule", first + "=allow"), "refused")
		t.check("can only tighten" in r.json["reason"] and "--trust" not in r.json["reason"], "no reason", r)
	policy = file_of(t, "mem_limit: 512m\n")
	t.verdict(python(t, "--policy", policy, "--inspect", "off"), "refused")
	t.verdict(python(t, "--policy", policy, "--trust", "trusted", "--inspect", "off"), "ok")


@case("inspection: true and false are guard and off")
def switch(t):
	for word, level in (("true", "guard"), ("false", "off")):
		p = t.brig("policy", "show", "--policy", file_of(t, f"inspection: {word}\n"), env={"BRIG_INSPECTION": level})
		row = next(line for line in p.out.decode().splitlines() if line.split()[:1] == ["inspection"])
		t.check(level in row.split(), f"inspection: {word}", p)
		r = t.verdict(shell(t, "--policy", t.path("none.yaml", "mem_limit: 256m\n"), "--trust", "trusted", "--set", f"inspection={word}"),
			      "blocked" if level == "guard" else "ok", "error")
		t.equal(r.json["inspection"], level, f"--set inspection={word}", r)


@case("single rules do what is said by name, in policy, environment and request; a block names the rule that would permit it")
def by_name(t):
	r = t.verdict(python(t, "--inspect", "strict"), "blocked")
	rules = {}
	for finding in r.json["findings"]:
		if finding["severity"] == "CRITICAL":
			want = f"to permit this: --rule {finding['rule']}=allow"
			t.check(want in finding["remedy"] and "--trust" not in finding["remedy"], "no smallest change", r)
			rules[finding["rule"]] = "allow"
	t.check(rules, "nothing blocks", r)
	words = [word for rule in rules for word in ("--rule", rule + "=allow")]
	t.verdict(python(t, "--inspect", "strict", *words), "ok")
	t.verdict(python(t, "--inspect", "strict", env={"BRIG_RULES": ",".join(words[1::2])}), "ok")
	policy = file_of(t, "security:\n  inspection: strict\n  rules: {%s}\n" % ", ".join(rule + ": allow" for rule in rules))
	kw = {"env": {"BRIG_INSPECTION": "strict"}}
	t.verdict(python(t, "--policy", policy, **kw), "ok")
	# Blocking by name holds even where nothing else blocks.
	first = next(iter(rules))
	t.verdict(python(t, "--inspect", "report", "--rule", first + "=block"), "blocked")
	r = t.verdict(python(t, "--policy", policy, "--rule", first + "=block", **kw), "blocked")
	t.check("rules: {%s: allow} in the policy" % first in r.json["findings"][0]["remedy"], "remedy under a policy", r)
	t.check("--rule" not in r.json["findings"][0]["remedy"], "what would be refused is proposed", r)


@case("a rule that is not there is named, with the nearest one")
def unknown_rule(t):
	r = t.verdict(python(t, "--rule", "py-os-proces=allow"), "refused")
	t.check("no rule 'py-os-proces'" in r.json["reason"] and "did you mean 'py-os-process'" in r.json["reason"], "no suggestion", r)
	r = t.verdict(python(t, "--rule", "py-os-process=maybe"), "refused")
	t.check("allow, note, warn or block" in r.json["reason"], "actions are not named", r)
	p = ask(t, "run", "--policy", file_of(t, "rules: {py-os-proces: allow}\n"), "--lang", "python", "-c", "print(1)")
	t.check(p.rc == 125 and "did you mean 'py-os-process'" in p.err.decode(), "a policy with an unknown rule", p)


@case("a warning takes one line per rule, and the missing network one in all")
def lines(t):
	code = "import socket\nimport ssl\nimport urllib.request\nimport http.client\n"
	p = t.run(t.run_args("--inspect", "guard", "--rule", "py-network=warn", "--lang", "python", "-c", code), env=GUARD)
	said = [line for line in p.err.decode().splitlines() if "warning: code" in line]
	t.equal(len(said), 1, "lines", p)
	t.check("this cell has no network: socket will fail" in said[0], "not said in one line", p)
	p = t.run(t.run_args("--inspect", "guard", "--rule", "py-network=note", "--lang", "python", "-c", code), env=GUARD)
	t.check(p.rc == 0 and b"py-network" not in p.err, "a note is not for stderr", p)


@case("a file of rules extends a built-in rule's names")
def extend(t):
	rules = t.path("rules.yaml", "- extend: py-network\n  names: [ourcorp.wire]\n  match: ['import ourcorp.wire']\n")
	words = ["check", "--json", "--rule", "py-network=warn", "--lang", "python", "-c", "import ourcorp.wire\n"]
	t.equal(ask(t, *words).rc, 0, "without the file")
	p = ask(t, *words, "--rules", rules)
	t.check(p.rc == 1 and json.loads(p.out)["findings"][0]["rule"] == "py-network", "with the file", p)
	bad = t.path("bad.yaml", "- extend: py-network\n  names: [ourcorp.wire]\n  match: ['import ourcorp.text']\n")
	p = ask(t, *words, "--rules", bad)
	t.check(p.rc == 125 and "does not match its example" in p.err.decode(), "an example that does not hold", p)
