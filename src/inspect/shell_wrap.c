/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that run another program given in their arguments: env, sudo, timeout, xargs, find -exec and the like. */
#include <string.h>

#include "inspect/shell.h"

enum wrap_flag {
	WRAP_ASSIGNS = 1,
	WRAP_JOINS = 2 /* the words are joined to one text for sh -c */,
	WRAP_LIST = 4 /* -v only prints where the command is */
};

static const struct wrapper {
	const char *name;
	const char *with_value;  /* short options whose value is the next word */
	const char *long_values; /* the same for long options, separated by spaces */
	unsigned skip;           /* number of operands before the command */
	unsigned flags;
} wrappers[] = {
	{ "builtin", "", "", 0, 0 },
	{ "bwrap", "", "--bind --ro-bind --dev --proc --tmpfs --chdir --setenv", 0, 0 },
	{ "caffeinate", "", "", 0, 0 },
	{ "catchsegv", "", "", 0, 0 },
	{ "cgexec", "g", "", 0, 0 },
	{ "chpst", "uUbeo", "", 0, 0 },
	{ "chroot", "", "--userspec --groups", 1, 0 },
	{ "chronic", "", "", 0, 0 },
	{ "chrt", "TPD", "", 1, 0 },
	{ "command", "", "", 0, WRAP_LIST },
	{ "cpulimit", "lpe", "", 0, 0 },
	{ "daemonize", "aceopul", "", 0, 0 },
	{ "dbus-run-session", "", "--config-file", 0, 0 },
	{ "doas", "Cu", "", 0, 0 },
	{ "eatmydata", "", "", 0, 0 },
	{ "entr", "", "", 0, 0 },
	{ "env", "uCS", "--unset --chdir --split-string", 0, WRAP_ASSIGNS },
	{ "exec", "a", "", 0, 0 },
	{ "faketime", "f", "", 1, 0 },
	{ "fakeroot", "lsibu", "", 0, 0 },
	{ "firejail", "", "", 0, 0 },
	{ "flock", "wE", "--timeout --conflict-exit-code", 1, 0 },
	{ "gosu", "", "", 1, 0 },
	{ "gtimeout", "sk", "--signal --kill-after", 1, 0 },
	{ "hyperfine", "wrmMp", "", 0, WRAP_JOINS },
	{ "i386", "", "", 0, 0 },
	{ "ionice", "cnp", "--class --classdata", 0, 0 },
	{ "ld-linux-x86-64.so.2", "", "--library-path --preload", 0, 0 },
	{ "ld-linux.so.2", "", "--library-path --preload", 0, 0 },
	{ "ld.so", "", "--library-path --preload", 0, 0 },
	{ "linux32", "", "", 0, 0 },
	{ "linux64", "", "", 0, 0 },
	{ "logsave", "", "", 1, 0 },
	{ "ltrace", "oepusn", "", 0, 0 },
	{ "nice", "n", "--adjustment", 0, 0 },
	{ "nohup", "", "", 0, 0 },
	{ "nsenter", "tSGr", "--target", 0, 0 },
	{ "numactl", "", "", 0, 0 },
	{ "pkexec", "", "--user", 0, 0 },
	{ "prlimit", "p", "--pid", 0, 0 },
	{ "proot", "rbwq", "", 0, 0 },
	{ "proxychains", "f", "", 0, 0 },
	{ "proxychains4", "f", "", 0, 0 },
	{ "pty", "", "", 0, 0 },
	{ "rlwrap", "", "", 0, 0 },
	{ "runuser", "ugG", "--user --group", 0, 0 },
	{ "setarch", "", "", 1, 0 },
	{ "setpriv", "", "--reuid --regid --groups --bounding-set", 0, 0 },
	{ "setsid", "", "", 0, 0 },
	{ "setuidgid", "", "", 1, 0 },
	{ "softlimit", "amdostfclrn", "", 0, 0 },
	{ "sshpass", "pfde", "", 0, 0 },
	{ "start-stop-daemon", "pxnuagcdrNI", "--pidfile --exec --name --user --chuid --startas", 0, 0 },
	{ "stdbuf", "ioe", "--input --output --error", 0, 0 },
	{ "strace", "oepsuaEPSXbIO", "--output --trace", 0, 0 },
	{ "su-exec", "", "", 1, 0 },
	{ "sudo", "ughpCrtTUDRa", "--user --group --host --prompt --chdir --chroot", 0, WRAP_ASSIGNS },
	{ "systemd-run", "pGEut", "--unit --property --slice --setenv --uid --gid", 0, 0 },
	{ "systemd-inhibit", "", "--what --who --why --mode", 0, 0 },
	{ "taskset", "", "", 1, 0 },
	{ "time", "fo", "--format --output", 0, 0 },
	{ "timeout", "sk", "--signal --kill-after", 1, 0 },
	{ "torsocks", "", "", 0, 0 },
	{ "toybox", "", "", 0, 0 },
	{ "busybox", "", "", 0, 0 },
	{ "unbuffer", "", "", 0, 0 },
	{ "unshare", "RwSG", "--root --wd --setuid --setgid", 0, 0 },
	{ "valgrind", "", "", 0, 0 },
	{ "watch", "n", "--interval", 0, WRAP_JOINS },
	{ "xvfb-run", "aenfps", "--server-args --server-num", 0, 0 },
	{ "parallel", "jIaNLn", "--jobs --arg-file --colsep --delay --timeout --joblog", 0, WRAP_JOINS },
	{ "ssh", "bcDEeFIiJLlmOopQRSWw", "", 1, WRAP_JOINS },
	{ "autossh", "MbcDEeFIiJLlmOopQRSWw", "", 1, WRAP_JOINS },
	{ "dbclient", "pliLR", "", 1, WRAP_JOINS },
	{ "screen", "SXpct", "", 0, 0 },
	{ "ts", "", "", 0, 0 },
};

static const struct wrapper *find_wrapper(const char *program)
{
	for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
		if (strcmp(wrappers[i].name, program) == 0)
			return &wrappers[i];
	return NULL;
}

static bool in_list(const char *list, const struct sh_word *w)
{
	const char *at = strstr(list, w->s);

	return w->len && at && (at[w->len] == ' ' || at[w->len] == '\0');
}

/* The number of words of the option at w. */
static size_t option_words(const struct wrapper *wr, const struct sh_word *w)
{
	if (w->s[1] == '-')
		return in_list(wr->long_values, w) ? 2 : 1;
	for (size_t i = 1; i < w->len; i++)
		if (strchr(wr->with_value, w->s[i]))
			return i + 1 == w->len ? 2 : 1;
	return 1;
}

static bool is_assignment(const struct sh_word *w)
{
	const char *eq = strchr(w->s, '=');

	return eq && eq != w->s && !memchr(w->s, '/', (size_t)(eq - w->s));
}

static void judge_env_assign(struct shell *sh, const struct sh_command *cmd, const struct sh_word *w)
{
	const char *eq = strchr(w->s, '=');
	struct sh_word value = { .s = eq + 1, .len = (uint32_t)strlen(eq + 1), .flags = w->flags };

	sh_match_assign(sh, sh_copy(sh, w->s, (size_t)(eq - w->s)), &value, cmd->span);
}

/* The index of the inner command. */
static size_t skip_to_command(struct shell *sh, const struct wrapper *wr, const struct sh_command *cmd,
			      const struct sh_word *words, size_t n)
{
	size_t i = 1;

	for (unsigned skipped = 0; i < n;) {
		if (sh_is(&words[i], "--")) {
			i++;
			i += wr->skip - skipped;
			break;
		}
		if (words[i].len > 1 && words[i].s[0] == '-') {
			i += option_words(wr, &words[i]);
		} else if ((wr->flags & WRAP_ASSIGNS) && is_assignment(&words[i])) {
			judge_env_assign(sh, cmd, &words[i++]);
		} else if (skipped < wr->skip) {
			skipped++;
			i++;
		} else {
			break;
		}
	}
	return i < n ? i : n;
}

static struct sh_word join(struct shell *sh, const struct sh_word *words, size_t n)
{
	struct sh_buf text = { 0 };
	uint32_t flags = 0;

	for (size_t i = 0; i < n; i++) {
		sh_add(sh, &text, " ", i > 0);
		sh_add(sh, &text, words[i].s, words[i].len);
		flags |= words[i].flags & WORD_DYNAMIC;
	}
	return (struct sh_word){ .s = text.p ? text.p : "", .len = (uint32_t)text.len, .flags = flags };
}

/* env -S "rm -rf" / : splits the text into words and puts them before the others. */
static bool split_string(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_call call = { .program = "env", .words = words, .n = n, .cmd = cmd };
	struct sh_word text;
	size_t i;

	if (!sh_has_option(&call, "-S", &text) && !sh_has_option(&call, "--split-string", &text))
		return false;
	for (i = 1; i < n && words[i].s + words[i].len != text.s + text.len; i++)
		;
	if (i + 1 < n) {
		struct sh_word rest = join(sh, words + i + 1, n - i - 1);
		struct sh_word both[2] = { text, rest };

		text = join(sh, both, 2);
	}
	sh_run_word(sh, cmd, &text, "env -S");
	return true;
}

/* --- xargs ----------------------------------------------------------------------------------------------------- */

static const struct wrapper xargs = { "xargs", "IinPLdEsa", "--replace --max-args --max-procs --delimiter --arg-file",
				      0, 0 };

static void add_items(struct shell *sh, struct sh_words *list, const struct sh_stream *in)
{
	size_t start = 0;

	if (!in->text) {
		sh_push(sh, list, "\001", 1, WORD_DYNAMIC);
		return;
	}
	for (size_t i = 0; i <= in->len && list->n < 256; i++) {
		struct sh_word w;

		if (i < in->len && in->text[i] != ' ' && in->text[i] != '\n' && in->text[i] != '\t')
			continue;
		if (i > start) {
			w = sh_single(sh, in->text + start, i - start);
			sh_push(sh, list, w.s, w.len, w.flags);
		}
		start = i + 1;
	}
}

static void replace_in(struct shell *sh, struct sh_words *list, const struct sh_word *w, const char *mark,
		       const struct sh_word *with)
{
	const char *at = strstr(w->s, mark);
	struct sh_buf text = { 0 };

	if (!at || !*mark) {
		sh_push(sh, list, w->s, w->len, w->flags);
		return;
	}
	sh_add(sh, &text, w->s, (size_t)(at - w->s));
	sh_add(sh, &text, with->s, with->len);
	sh_add(sh, &text, at + strlen(mark), strlen(at) - strlen(mark));
	sh_push(sh, list, text.p ? text.p : "", text.len, w->flags | with->flags);
}

static void run_xargs(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n, unsigned level,
		      struct sh_stream *out)
{
	struct sh_call call = { .program = "xargs", .words = words, .n = n, .cmd = cmd };
	size_t start = skip_to_command(sh, &xargs, cmd, words, n);
	struct sh_words items = { 0 }, list = { 0 };
	struct sh_word mark = { .s = "" };
	bool replaces = sh_has_option(&call, "-I", &mark) || sh_has_option(&call, "-i", NULL);

	if (start == n)
		return;
	if (replaces && !mark.len)
		mark.s = "{}";
	add_items(sh, &items, &cmd->in);
	if (!replaces) {
		for (size_t i = start; i < n; i++)
			sh_push(sh, &list, words[i].s, words[i].len, words[i].flags);
		for (size_t i = 0; i < items.n; i++)
			sh_push(sh, &list, items.row[i].s, items.row[i].len, items.row[i].flags);
		sh_judge_words(sh, cmd, list.row, list.n, level + 1, out);
		return;
	}
	for (size_t k = 0; k < items.n && k < 8; k++) {
		list = (struct sh_words){ 0 };
		for (size_t i = start; i < n; i++)
			replace_in(sh, &list, &words[i], mark.s, &items.row[k]);
		sh_judge_words(sh, cmd, list.row, list.n, level + 1, out);
	}
}

/* --- find ------------------------------------------------------------------------------------------------------ */

static bool runs_command(const struct sh_word *w)
{
	return sh_is(w, "-exec") || sh_is(w, "-execdir") || sh_is(w, "-ok") || sh_is(w, "-okdir") || sh_is(w, "-x") ||
	       sh_is(w, "-X") || sh_is(w, "--exec") || sh_is(w, "--exec-batch");
}

/* The value of {}: the tree itself if it is a whole system tree, else a path below it. */
static struct sh_word found_file(struct shell *sh, const struct sh_word *words, size_t n)
{
	struct sh_buf text = { 0 };
	const struct sh_word *start = n > 1 && words[1].s[0] != '-' ? &words[1] : NULL;

	if (!start)
		return (struct sh_word){ .s = "./\001", .len = 3, .flags = WORD_DYNAMIC };
	if (sh_path_classes(sh, start) & PATH_ROOT)
		return *start;
	sh_add(sh, &text, start->s, start->len);
	sh_add(sh, &text, "/\001", 2);
	return (struct sh_word){ .s = text.p ? text.p : "", .len = (uint32_t)text.len, .flags = WORD_DYNAMIC };
}

static void run_find(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n, unsigned level)
{
	struct sh_word file = found_file(sh, words, n);

	for (size_t i = 1; i < n; i++) {
		struct sh_words list = { 0 };
		struct sh_stream out;

		if (!runs_command(&words[i]))
			continue;
		for (i++; i < n && !sh_is(&words[i], ";") && !(sh_is(&words[i], "+") && sh_is(&words[i - 1], "{}"));
		     i++)
			replace_in(sh, &list, &words[i], "{}", &file);
		sh_judge_words(sh, cmd, list.row, list.n, level + 1, &out);
	}
}

/* --- other wrappers -------------------------------------------------------------------------------------------- */

/* xterm -e, tmux new-session, ip netns exec: the command follows a word. */
static const struct {
	const char *program, *word;
} followers[] = {
	{ "xterm", "-e" },        { "gnome-terminal", "--" }, { "konsole", "-e" },
	{ "ip", "exec" },         { "tmux", "new-session" },  { "tmux", "new" },
	{ "tmux", "new-window" }, { "tmux", "run-shell" },    { "tmux", "split-window" },
	{ "gdb", "--args" },      { "lldb", "--" },           { "perf", "record" },
	{ "perf", "stat" },       { "git", "run" },           { "npm", "exec" },
	{ "poetry", "run" },      { "pipenv", "run" },        { "uv", "run" },
	{ "conda", "run" },       { "bundle", "exec" },       { "cargo", "run" },
	{ "docker", "exec" },     { "kubectl", "exec" },      { "podman", "exec" },
	{ "coproc", "" },
};

static void run_follower(struct shell *sh, struct sh_command *cmd, const char *program, const struct sh_word *words,
			 size_t n, unsigned level)
{
	struct sh_command elsewhere = *cmd;
	struct sh_stream out;

	/* In a container, a shell's input is not the input from brig. */
	if (strcmp(program, "docker") == 0 || strcmp(program, "kubectl") == 0 || strcmp(program, "podman") == 0) {
		elsewhere.piped_in = true;
		elsewhere.in = (struct sh_stream){ .text = "", .flags = STREAM_GIVEN };
		cmd = &elsewhere;
	}
	for (size_t f = 0; f < ARRAY_LEN(followers); f++) {
		if (strcmp(followers[f].program, program) != 0)
			continue;
		for (size_t i = 1; i + 1 < n; i++)
			if (sh_is(&words[i], followers[f].word)) {
				/* the words between are options, a name, a container: tries every start */
				for (size_t k = i + 1; k < n && k < i + 6; k++)
					if (words[k].s[0] != '-' && !(words[k].flags & WORD_DYNAMIC)) {
						struct sh_word text = words[k];

						if (strchr(text.s, ' '))
							sh_run_word(sh, cmd, &text, program);
						else
							sh_judge_words(sh, cmd, words + k, n - k, level + 1, &out);
					}
				return;
			}
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* command -v rm only prints where rm is. */
static bool only_asks(const struct wrapper *wr, const struct sh_word *words, size_t n)
{
	return (wr->flags & WRAP_LIST) && n > 1 && words[1].s[0] == '-' &&
	       (strchr(words[1].s, 'v') || strchr(words[1].s, 'V'));
}

bool sh_unwrap(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n, unsigned level,
	       struct sh_stream *out)
{
	const char *program = base_name(words[0].s);
	const struct wrapper *wr = find_wrapper(program);
	size_t start;

	if (strcmp(program, "xargs") == 0) {
		run_xargs(sh, cmd, words, n, level, out);
		return true;
	}
	if (strcmp(program, "find") == 0 || strcmp(program, "fd") == 0 || strcmp(program, "fdfind") == 0)
		run_find(sh, cmd, words, n, level);
	run_follower(sh, cmd, program, words, n, level);
	if (!wr || only_asks(wr, words, n))
		return false;
	if (strcmp(program, "env") == 0 && split_string(sh, cmd, words, n))
		return true;
	start = skip_to_command(sh, wr, cmd, words, n);
	if (start == n)
		return false;
	if (wr->flags & WRAP_JOINS) {
		struct sh_word text = join(sh, words + start, n - start);

		/* judges options such as ProxyCommand as well */
		sh_inline(sh, cmd, program, words, n, level);
		sh_run_word(sh, cmd, &text, program);
		*out = (struct sh_stream){ .flags = STREAM_UNKNOWN |
						    (strcmp(program, "ssh") == 0 ? STREAM_NETWORK : 0u) };
		return true;
	}
	sh_inline(sh, cmd, program, words, n, level);
	sh_judge_words(sh, cmd, words + start, n - start, level + 1, out);
	return true;
}
