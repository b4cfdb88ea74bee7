# SPDX-License-Identifier: Apache-2.0
"""The command line itself: a result on every path, silence on request, input that is left alone, help and completions."""
import json
import os
import shutil
import subprocess
import time

from harness import BACKEND, brig_path, case, give, is_root

PYTHON = ["-l", "python", "-c", "print(1)"]

# What is wrong, the words behind `brig`, the exit status, and a piece of the reason.
WRONG = [
	("a file that is not there", ["run", "--json", "not-there.py"], 2, "not-there.py"),
	("nothing to run", ["run", "--json"], 2, "nothing to run"),
	("an option that is not known", ["run", "--frobnicate", "--json", *PYTHON], 2, "--frobnicate"),
	("an option without its value", ["run", "--json", "--timeout"], 2, "--timeout"),
	("a value that cannot be read", ["run", "--json", "--timeout", "soon", *PYTHON], 125, "soon"),
	("a language that is not known", ["run", "--json", "-l", "klingon", "-c", "x"], 125, "klingon"),
	("a trust level that is not known", ["run", "--json", "-t", "blind", *PYTHON], 125, "blind"),
	("a policy that is not there", ["run", "--json", "-p", "not-there.yaml", *PYTHON], 125, "not-there.yaml"),
	("a policy that is wrong", ["run", "--json", "-p", "wrong.yaml", *PYTHON], 125, "mem_limitt"),
	("a receipt that cannot be written", ["run", "--json", "--receipt", "no/such/place", *PYTHON], 2, "no/such/place"),
	("an input that is not there", ["run", "--json", "-i", "not-there.txt", *PYTHON], 2, "not-there.txt"),
	("no command", ["exec", "-j"], 2, "nothing to run"),
	("a project that is not there", ["test", "--json", "--workspace", "not-there"], 125, "not-there"),
]


@case("--json prints a result on every path, with the exit status that the same call has without it")
def json_on_every_path(t):
	t.path("wrong.yaml", "mem_limitt: 1g\n")
	for what, words, status, piece in WRONG:
		p = t.run([brig_path(), *words], cwd=t.dir)
		doc = json.loads(p.out)
		t.equal((p.rc, doc["verdict"]), (status, "refused"), "status and verdict of " + what, p)
		t.check(piece in doc["reason"], "the reason of %s names it" % what, p)
		t.equal((doc["stdout"], doc["evidence"], doc["exit_code"]), ("", [], None), "the rest of " + what, p)


@case("version --json is a document")
def version_document(t):
	doc = json.loads(t.brig("version", "--json").out)
	t.equal("brig %s\n" % doc["version"], t.brig("version").out.decode(), "version")


@case("--quiet says nothing but why nothing ran")
def quiet(t):
	code = "import sys; sys.exit(3)"
	loud = t.brig("run", "--summary", "-l", "python", "-c", code)
	t.check(b"brig: " in loud.err, "a summary is on stderr", loud)
	p = t.brig("run", "--quiet", "--timeout", "0.3", "-l", "python", "-c", "while True: pass")
	t.equal((p.rc, p.out, p.err), (124, b"", b""), "a run that its limit ended", p)
	p = t.brig("run", "--quiet", "-l", "python", "-c", "print(1)")
	t.equal((p.rc, p.out, p.err), (0, b"1\n", b""), "a program's own output", p)
	p = t.brig("run", "--quiet", "-l", "klingon", "-c", "x")
	t.check(p.rc == 125 and b"klingon" in p.err, "a refusal is said", p)
	os.mkdir(t.path("project"), 0o777)
	os.chmod(t.path("project"), 0o777)
	p = t.brig("run", "-q", "--workspace", t.path("project"), "-l", "python", "-c", "open('left.txt', 'w').write('x')")
	t.equal((p.rc, p.err), (0, b""), "changes of a workspace are not told", p)


@case("BRIG_TRACE=1 tells each step of a run with its time on standard error, and changes nothing else")
def trace(t):
	plain = t.run([brig_path(), "run", *PYTHON], cwd=t.dir)
	for value, told in (("1", True), ("0", False), ("", False)):
		p = t.run([brig_path(), "run", *PYTHON], cwd=t.dir, env={"BRIG_TRACE": value})
		steps = [line.split("ms  ", 1)[1].rsplit(" ", 1)[0] for line in p.err.decode().splitlines() if line.startswith("brig: +")]
		t.equal((p.rc, p.out), (plain.rc, plain.out), "status and output", p)
		if not told:
			t.equal(p.err, plain.err, "silence without it", p)
			continue
		t.equal((steps[0], steps[-1]), ("resolve", "record"), "the first step and the last", p)
		order = ["resolve", "probe", "run: begin", "run: finish", "run: watch", "run: read back", "run: verify", "run: release", "run"]
		t.equal([s for s in steps if s in order], order, "the steps in their order", p)
	p = t.run([brig_path(), "run", "-t", "untrusted", "-l", "python", "-c", "eval(input())"], cwd=t.dir, env={"BRIG_TRACE": "1"})
	t.check(p.rc == 126 and b"run: watch" not in p.err and b"record" in p.err, "what is blocked ends before it starts", p)


@case("-n leaves the caller's input alone, so a shell loop gets all of its lines")
def input_left_alone(t):
	rows = "".join("line %d\n" % i for i in range(3))
	p = t.run(["sh", "-c", 'while read -r x; do "$0" run -n -l shell -c "echo got"; echo "$x"; done', brig_path()],
		  stdin=rows.encode())
	t.equal(p.out.decode(), "".join("got\nline %d\n" % i for i in range(3)), "lines of the loop", p)
	p = t.brig("run", "--stdin", "inherit", "-l", "python", "-c", "print(input())", stdin=b"mine\n")
	t.equal(p.out, b"mine\n", "inherited input", p)
	p = t.brig("run", "-n", "--stdin", "inherit", *PYTHON)
	t.equal(p.rc, 2, "both at once", p)


@case("no more of the caller's input is read ahead than a pipe holds")
def little_read_ahead(t):
	if BACKEND == "docker":
		t.skip("an engine's stream holds what it likes")
	source = t.path("input", "x" * 1000000)
	with open(source, "rb") as f:
		p = t.run([brig_path(), "run", "-l", "python", "-c", "import time; time.sleep(0.5)"], stdin=f)
		t.equal(p.rc, 0, "status", p)
		at = os.lseek(f.fileno(), 0, os.SEEK_CUR)
	t.check(0 < at <= 65536, "no more than a pipe holds was read", at)
	p = t.brig("run", "-l", "python", "-c", "import sys; print(len(sys.stdin.read()))", stdin=b"y" * 1000000)
	t.equal(p.out, b"1000000\n", "a program that reads gets all of it", p)


# ---- a policy of the user's own ------------------------------------------------------------------

def own_policy(t, text, mode=0o600):
	folder = t.path(".config/brig")
	os.makedirs(folder, 0o700, exist_ok=True)
	path = t.path(".config/brig/sandbox.yaml", text, mode)
	for name in (t.path(".config"), folder, path):
		give(name)
	return path


@case("the user's own policy is read where no other is named, and only if nobody else can write it")
def own_policy_file(t):
	if os.path.exists("/etc/brig/sandbox.yaml"):
		t.skip("this host has a policy, which is then the only one")
	path = own_policy(t, "timeout: 7\n")
	shown = json.loads(t.brig("policy", "show", "--json").out)
	row = next(r for r in shown["settings"] if r["key"] == "execution_timeout_ms")
	t.equal((row["text"], row["layer"]), ("7s", "file"), "the setting", row)
	p = t.brig("policy", "show", "--json", env={"BRIG_POLICY": ""})
	t.check('"7s"' not in p.out.decode(), "an empty $BRIG_POLICY means none", p)
	other = t.path("elsewhere")
	os.makedirs(os.path.join(other, "brig"), 0o755)
	p = t.brig("policy", "show", "--json", env={"XDG_CONFIG_HOME": other})
	t.check('"7s"' not in p.out.decode(), "$XDG_CONFIG_HOME goes first", p)
	os.chmod(path, 0o666)
	p = t.brig("run", "--json", *PYTHON)
	t.check(p.rc == 125 and "chmod" in json.loads(p.out)["reason"], "one that others can write is refused", p)
	os.chmod(path, 0o600)
	os.chmod(os.path.dirname(path), 0o777)
	p = t.brig("run", "--json", *PYTHON)
	t.check(p.rc == 125 and "folder" in json.loads(p.out)["reason"], "one in a folder that others can write is refused", p)
	os.chmod(os.path.dirname(path), 0o700)


@case("the person at the command line gives up a protection; under a policy file only what that allows")
def allow_degraded_option(t):
	if BACKEND:
		t.skip("native protections")
	missing = os.environ.get("BRIG_ALLOW_DEGRADED", "")
	names = ",".join(filter(None, [missing, "landlock"]))
	p = t.brig("run", "--allow-degraded", names, *PYTHON)
	t.equal((p.rc, p.out), (0, b"1\n"), "without a file", p)
	strict = t.path("strict.yaml", "timeout: 5\n")
	p = t.brig("run", "--json", "-p", strict, "--allow-degraded", "landlock", *PYTHON)
	t.check(p.rc == 125 and "only the policy can loosen it" in json.loads(p.out)["reason"], "under a file", p)
	listed = t.path("listed.yaml", "allow_degraded: [landlock, time_ns%s]\n" % "".join(", " + n for n in missing.split(",") if n))
	p = t.brig("run", "-p", listed, "--allow-degraded", missing or "landlock", *PYTHON)
	t.equal(p.rc, 0, "what the file allows", p)
	p = t.brig("run", "--json", "--allow-degraded", "seccomp", *PYTHON)
	t.equal(p.rc, 125, "what no cell can be without", p)


@case("a refusal lists every missing protection with one line to paste, and that line helps; doctor writes the same as a policy")
def refusal_to_paste(t):
	if BACKEND or is_root():
		t.skip("an ordinary user without control groups of its own")
	def brig(*words):
		return t.run(["env", "-u", "BRIG_ALLOW_DEGRADED", brig_path(), *words])
	p = brig("run", "--json", "--backend", "native", *PYTHON)
	if p.rc == 0:
		t.skip("nothing is missing here")
	reason = json.loads(p.out)["reason"]
	t.check("--allow-degraded " in reason, "a line to paste", reason)
	names = reason.split("--allow-degraded ")[1].split()[0]
	p = brig("run", "--backend", "native", "--allow-degraded", names, *PYTHON)
	t.equal((p.rc, p.out), (0, b"1\n"), "pasted", p)
	p = brig("doctor", "--write-policy")
	t.equal(p.rc, 0, "doctor --write-policy", p)
	p = brig("run", "--backend", "native", *PYTHON)
	t.equal((p.rc, p.out), (0, b"1\n"), "with the policy that doctor wrote", p)
	p = brig("doctor", "--write-policy")
	t.check(p.rc != 0 and b"not replaced" in p.err, "a policy that is there stays", p)


def values(shown):
	return [(r["key"], r["value"]) for r in json.loads(shown.out)["settings"]]


@case("brig init writes every setting behind '#': a good file that changes nothing, and is not replaced unasked")
def init_policy(t):
	plain = t.brig("policy", "show", "--json", env={"BRIG_POLICY": ""})
	folder = t.path("made")
	p = t.brig("init", folder + "/")
	t.equal(p.rc, 0, "a folder that is not there is made", p)
	path = os.path.join(folder, "sandbox.yaml")
	t.equal(os.stat(path).st_mode & 0o022, 0, "writable for its owner only")
	p = t.brig("policy", "check", path)
	t.equal((p.rc, p.out), (0, f"{path}: ok\n".encode()), "policy check", p)
	shown = t.brig("policy", "show", "--json", "--policy", path)
	t.equal(values(shown), values(plain), "what is in force under it", shown)
	with open(path, encoding="utf-8") as f:
		text = f.read()
	for key, _ in values(plain):
		t.check(f"\n#{key}: " in text, f"{key} is in it")
	give(path)
	with open(path, "w", encoding="utf-8") as f:
		f.write(text.replace("#execution_timeout_ms: 30s", "execution_timeout_ms: 7s"))
	shown = t.brig("policy", "show", "--json", "--policy", path)
	t.check(("execution_timeout_ms", 7000) in values(shown), "a line without '#' is in force", shown)
	p = t.brig("init", folder)
	t.check(p.rc == 121 and b"--force" in p.err, "one that is there stays", p)
	p = t.brig("init", "--force", path)
	with open(path, encoding="utf-8") as f:
		t.equal((p.rc, f.read()), (0, text), "with --force it is as before", p)
	t.equal(os.listdir(folder), ["sandbox.yaml"], "nothing else is left")
	p = t.brig("init", "-")
	t.equal((p.rc, p.out.decode()), (0, text), "'-' is standard output", p)
	p = t.brig("init", folder, folder)
	t.equal(p.rc, 2, "two names are one too many", p)


@case("doctor says each fix once")
def fixes_once(t):
	p = t.run(["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$0" doctor', brig_path()]) \
		if is_root() else t.brig("doctor")
	fixes = [line.split(": ", 1)[1] for line in p.out.decode().split("What to do")[-1].splitlines() if line.startswith("  ") and ": " in line]
	t.equal(len(fixes), len(set(fixes)), "fixes and different ones", p)


# ---- tests, cells and changes ----------------------------------------------------------------------

@case("brig test takes paths as people write them")
def test_paths(t):
	project = t.path("project")
	os.makedirs(os.path.join(project, "tests"))
	t.path("project/tests/test_a.py", "def test_a():\n\tassert 1 + 1 == 2\n")
	t.path("project/test_top.py", "def test_top():\n\tpass\n")
	give(project)
	for path, passed in (("tests/", 1), ("./tests", 1), (".", 2), ("./tests//test_a.py", 1), (project, 2),
			     (os.path.join(project, "tests"), 1)):
		p = t.brig("test", "--json", path, cwd=project)
		doc = json.loads(p.out)
		t.equal((p.rc, (doc["tests"] or {}).get("passed")), (0, passed), "status and tests of " + path, p)
	for path, piece in (("/etc", "outside the workspace"), ("../project/tests", "without '..'"), ("nowhere/", "nowhere")):
		p = t.brig("test", "--json", path, cwd=project)
		t.check(p.rc == 125 and piece in json.loads(p.out)["reason"], "refusal of " + path, p)


@case("a failed test begins with what went wrong")
def error_lines_first(t):
	project = t.path("project")
	os.makedirs(project)
	t.path("project/test_notes.py", "def test_it():\n\tassert 1 + 1 == 3, '\\n'.join('note %d' % i for i in range(20))\n")
	give(project)
	p = t.brig("test", cwd=project)
	if b"test_notes.py::test_it" not in p.out:
		t.skip("no pytest")
	lines = p.out.decode().splitlines()
	at = next(i for i, line in enumerate(lines) if line.startswith("FAILED"))
	t.check(any("assert (1 + 1) == 3" in line or "assert 2 == 3" in line for line in lines[at + 1:at + 4]), "the assertion is near", p)


@case("brig kill ends a run by the beginning of its id, and its verdict is cancelled")
def kill_run(t):
	if BACKEND in ("docker", "direct") or not is_root():
		t.skip("cells that are found by their control groups")
	runner = t.popen([brig_path(), "run", "--json", "-n", "-l", "python", "-c", "import time; time.sleep(25)"],
			 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	try:
		mine = []
		for _ in range(600):
			cells = json.loads(t.brig("ps", "--json").out)["cells"]
			mine = [c for c in cells if c["owner"] == runner.pid]
			if mine:
				break
			time.sleep(0.05)
		t.check(mine, "the cell is listed")
		t.ids.append(mine[0]["id"])
		p = t.brig("kill", "zzzz")
		t.check(p.rc == 125 and b"brig ps" in p.err, "an id that nobody has", p)
		p = t.brig("kill", mine[0]["id"][:10])
		t.equal((p.rc, p.out.decode()), (0, "ended run %s\n" % mine[0]["id"]), "kill", p)
		out, _ = runner.communicate(timeout=60)
	finally:
		if runner.poll() is None:
			runner.kill()
			runner.communicate()
	t.equal((runner.returncode, json.loads(out)["verdict"]), (130, "cancelled"), "the run")


def leave_changes(t, project, name):
	r = t.cell("--workspace", project, "-c", "open('%s', 'w').write('x')" % name, lang="python")
	return t.verdict(r, "ok").json["id"]


@case("changes are named by the beginning of an id or by latest, listed newest first, and forgotten all at once")
def name_changes(t):
	project = t.path("project")
	os.makedirs(project)
	give(project)
	ids = [leave_changes(t, project, name) for name in ("one", "two", "three")]
	rows = json.loads(t.brig("workspace", "list", "--json").out)["workspaces"]
	t.equal([r["id"] for r in rows], ids[::-1], "newest first")
	p = t.brig("workspace", "apply", "latest")
	t.equal(p.out.decode(), "applied 1 change of run %s to %s\n" % (ids[2], project), "apply", p)
	t.check(os.path.exists(os.path.join(project, "three")), "it is applied")
	p = t.brig("workspace", "discard", ids[0][:12])
	t.equal(p.out.decode(), "discarded 1 change of run %s\n" % ids[0], "discard", p)
	p = t.brig("workspace", "show", "")
	t.equal(p.rc, 125, "nothing is the beginning of everything", p)
	p = t.brig("workspace", "discard", "--all")
	t.equal((p.rc, p.out.decode()), (0, "discarded 1 change of run %s\n" % ids[1]), "discard --all", p)
	t.equal(json.loads(t.brig("workspace", "list", "--json").out)["workspaces"], [], "nothing is left")


# ---- completions -------------------------------------------------------------------------------------

COMPLETE = r"""
source "$1"
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _brig; echo "${COMPREPLY[*]}"; }
try brig works; try brig workspace disc; try brig run --timeo; try brig workspace discard --al; try brig run --trust un; try brig run --inspect g
"""
# What _arguments would complete is shown as it is called: completing itself needs a terminal.
COMPLETE_ZSH = r"""
script=$1
compadd() { shift; print -r -- "$@" }
_arguments() { print -rl -- "$@" }
try() { words=("$@") CURRENT=$#; source "$script" }
try brig works; try brig workspace disc; try brig run --timeo
"""
COMPLETE_FISH = 'source $argv[1]; for line in "works" "workspace disc" "run --timeo" "workspace discard --al" "run --trust un"; complete -C "brig $line"; end'


def in_shell(t, shell, *words):
	"""What the shell says of its script, which it must be able to read; None where the shell is not installed."""
	path = t.path("completions." + shell, t.brig("completions", shell).out)
	if not shutil.which(shell):
		t.skip(f"{shell} is not installed: apt-get install {shell}")
	p = t.run([shell, "-n", path])
	t.equal((p.rc, p.err), (0, b""), "syntax", p)
	p = t.run([shell, *words, path])
	t.equal((p.rc, p.err), (0, b""), "the script is loaded", p)
	return p.out.decode().split("\n")


@case("completions of zsh are read by it, and name commands and options")
def completions_zsh(t):
	lines = in_shell(t, "zsh", "-f", "-c", COMPLETE_ZSH, "zsh")
	t.check("workspace" in lines[0].split() and "discard" in lines[1].split(), "commands", lines[:2])
	t.check(any(line.startswith("*--timeout[") for line in lines), "options of run", lines)
	t.check(any(line.endswith(":LEVEL:(off report guard strict)") for line in lines), "values", lines)


@case("completions of fish complete commands, options and values in it")
def completions_fish(t):
	lines = in_shell(t, "fish", "--no-config", "-c", COMPLETE_FISH)
	t.equal([line.split("\t")[0] for line in lines], ["workspace", "discard", "--timeout", "--all", "unknown", "untrusted", ""], "words", lines)


@case("completions of bash complete commands, options and values; those of zsh and fish name every option")
def completions(t):
	script = t.path("brig.bash", t.brig("completions", "bash").out)
	p = t.run(["bash", "-c", COMPLETE, "bash", script])
	t.equal(p.out.decode().split("\n"), ["workspace", "discard", "--timeout", "--all", "untrusted unknown", "guard", ""], "words", p)
	for shell in ("zsh", "fish"):
		text = t.brig("completions", shell).out.decode()
		t.check("allow-degraded" in text and "workspace" in text, shell)
	p = t.brig("completions", "csh")
	t.equal(p.rc, 2, "a shell that is not known", p)


@case("every command's help has an example")
def examples_in_help(t):
	names = [line.split("  ")[1].strip() for line in t.brig("help").out.decode().split("Commands:\n")[1].split("\n\n")[0].splitlines()]
	t.check(len(names) > 30, "commands", names)
	for name in names:
		if name == "help":	# its page is the list of all
			continue
		p = t.brig(*name.split(), "--help")
		t.check(b"\nExamples:\n  " in p.out, "examples of " + name, p)
