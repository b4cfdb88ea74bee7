# SPDX-License-Identifier: Apache-2.0
"""Commands: words that stay words, the inspection of command lines, programs that are not there, lines for the shell."""
import os

from harness import BACKEND, Result, brig_path, case

ON = {"BRIG_INSPECTION": "guard"}


def run(t, *words, **kw):
	"""`brig exec --json`, parsed."""
	r = Result(t.run([brig_path(), "exec", "--json", *map(str, words)], **kw))
	t.ids.append(r.json.get("id"))
	return r


@case("arguments reach the program as they are, whatever a shell would make of them")
def words_stay_words(t):
	words = ["a  b", "; rm -rf /", "$HOME", "`id`", "it's", "", "--", "*", "\\", "new\nline", "ä", "a=b", "~", "#x"]
	r = t.verdict(run(t, "--", "printf", "%s|", *words, env=ON), "ok")
	t.equal(r.stdout.decode(), "".join(w + "|" for w in words), "output", r)
	t.equal(r.json["language"], "command", "language", r)
	shown = t.brig("show", "--json", r.json["id"])
	t.check("'; rm -rf /'" in Result(shown).json["code"]["text"], "the history has the quoted line", shown)


@case("a command runs in the workspace as the cell's user, and its exit code is ours")
def place_and_status(t):
	r = t.verdict(run(t, "--", "pwd"), "ok")
	if BACKEND != "direct":
		t.equal(r.stdout, b"/workspace\n", "working directory", r)
	r = t.verdict(run(t, "--", "sh", "-c", "exit 7"), "error")
	t.equal(r.json["exit_code"], 7, "exit code", r)
	r = t.verdict(run(t, "--", "cat", stdin=b"fed"), "ok")
	t.equal(r.stdout, b"fed", "input", r)


@case("a line for the shell is run by a shell")
def shell_line(t):
	r = t.verdict(run(t, "--shell", "for i in 1 2 3; do echo $((i * i)); done | tail -n 1; exit 3"), "error")
	t.equal((r.stdout, r.json["exit_code"], r.json["language"]), (b"9\n", 3, "shell"), "output, exit code, language", r)


@case("runtimes with a just-in-time compiler and compilers work as commands")
def runtimes(t):
	if not os.path.exists("/usr/bin/node"):
		t.skip("no node")
	r = t.verdict(run(t, "--", "node", "-e", "console.log([1,2,3].map(x => x * 2).join())"), "ok")
	t.equal(r.stdout, b"2,4,6\n", "output", r)
	r = t.verdict(run(t, "--", "python3", "-c", "print(6 * 7)"), "ok")
	t.equal(r.stdout, b"42\n", "output", r)


BLOCKED = [
	(["--", "rm", "-rf", "/"], "sh-delete-tree"),
	(["--shell", "rm -rf /"], "sh-delete-tree"),
	(["--shell", "true; rm -rf /"], "sh-delete-tree"),
	(["--", "cat", "../../etc/shadow"], "sh-read-"),
	(["--shell", "curl http://localhost/x | sh"], "sh-downloaded-code"),
	(["--", "sh", "-c", "rm -rf /"], "sh-delete-tree"),
]


@case("a blocked command names its rule, and nothing runs")
def blocked(t):
	for words, rule in BLOCKED:
		r = t.verdict(run(t, *words, env=ON), "blocked")
		t.check(r.reason.startswith(rule), f"{words}: the reason names {rule}", r)
		t.equal((r.json["evidence"], r.stdout), ([], b""), f"{words}: traces of a run", r)


@case("words that only look like shell syntax are not blocked")
def not_blocked(t):
	for words in (["echo", "; rm -rf /"], ["echo", "$(rm -rf /)"], ["printf", "%s", "| sh"], ["echo", "&&", "rm", "-rf", "/"]):
		r = t.verdict(run(t, "--", *words, env=ON), "ok")
		t.check(r.stdout, f"{words}: it ran", r)


@case("strict mode runs commands of the white-list only")
def strict(t):
	strict_mode = ["--set", "strict_commands=true"]
	t.verdict(run(t, *strict_mode, "--", "ls", env=ON), "ok")
	for words in (["--", "nmap", "localhost"], ["--shell", "$X"], ["--", "env", "nmap", "localhost"]):
		r = t.verdict(run(t, *strict_mode, *words, env=ON), "blocked")
		t.check(r.reason.startswith("sh-"), f"{words}: the reason names a rule", r)


@case("a program that is not there: refused where that is known, 127 where only the cell knows")
def missing(t):
	r = run(t, "--", "no-such-program", "x")
	if BACKEND == "docker":
		t.equal(t.verdict(r, "error").json["exit_code"], 127, "exit code", r)
	else:
		t.verdict(r, "refused")
		t.check("no-such-program is not installed" in r.reason and "/usr/bin" in r.reason, "what and where", r)
	for words in (["./no-such"], ["sub/no-such"], ["/usr/bin/no-such"]):
		r = t.verdict(run(t, "--", *words), "error")
		t.equal(r.json["exit_code"], 127, "exit code", r)
		t.check(words[0] in r.reason and "not found" in r.reason, "the reason names it", r)
	r = t.verdict(run(t, "--trust", "trusted", "--env", "PATH=/nowhere", "--", "ls"), "error")
	t.equal(r.json["exit_code"], 127, "exit code with another PATH", r)


@case("what cannot be a command is a mistake of the caller")
def usage(t):
	for words in ([], ["ls"], ["--shell", "true", "--", "ls"], ["--", ""], ["--", "A=b", "ls"], ["--", "-x"]):
		p = t.brig("exec", *words)
		t.equal((p.rc, p.out), (2, b""), f"status and output of {words}", p)
		t.check(p.err.startswith(b"brig: "), f"{words}: something is said", p)


@case("the history and the audit log find commands by their language")
def found_again(t):
	t.verdict(run(t, "--", "true"), "ok")
	t.verdict(t.cell(code="print(1)", lang="python"), "ok")
	for words in (["history", "--lang", "command"], ["audit", "show", "--lang", "command"]):
		p = t.brig(*words)
		t.equal(p.rc, 0, "status", p)
		t.check(b"command" in p.out and b"python" not in p.out, "only the command", p)
