/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with code in their arguments: shells and interpreters (-c, -e, standard input), editors, awk and sed, and
 * the many options of common tools whose value is a command.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "inspect/shell.h"

/* --- options with a command ------------------------------------------------------------------------------------ */

/* The value must begin with the prefix, which is removed; "" accepts all values. */
static const struct {
	const char *program, *option, *prefix;
} commands_in_options[] = {
	{ "tar", "--checkpoint-action", "exec=" },
	{ "tar", "--to-command", "" },
	{ "tar", "--use-compress-program", "" },
	{ "tar", "-I", "" },
	{ "tar", "--rsh-command", "" },
	{ "tar", "--rmt-command", "" },
	{ "tar", "-F", "" },
	{ "tar", "--info-script", "" },
	{ "tar", "--new-volume-script", "" },
	{ "bsdtar", "--use-compress-program", "" },
	{ "rsync", "-e", "" },
	{ "rsync", "--rsh", "" },
	{ "rsync", "--rsync-path", "" },
	{ "ssh", "-o", "ProxyCommand=" },
	{ "ssh", "-o", "ProxyCommand " },
	{ "ssh", "-o", "LocalCommand=" },
	{ "ssh", "-o", "KnownHostsCommand=" },
	{ "ssh", "-o", "RemoteCommand=" },
	{ "scp", "-o", "ProxyCommand=" },
	{ "scp", "-S", "" },
	{ "sftp", "-o", "ProxyCommand=" },
	{ "sftp", "-S", "" },
	{ "man", "-P", "" },
	{ "man", "--pager", "" },
	{ "man", "-H", "" },
	{ "zip", "-TT", "" },
	{ "zip", "--unzip-command", "" },
	{ "tcpdump", "-z", "" },
	{ "split", "--filter", "" },
	{ "sort", "--compress-program", "" },
	{ "ncat", "--sh-exec", "" },
	{ "ncat", "--exec", "" },
	{ "nc", "-e", "" },
	{ "nc", "-c", "" },
	{ "ncat", "-e", "" },
	{ "ncat", "-c", "" },
	{ "script", "-c", "" },
	{ "script", "--command", "" },
	{ "su", "-c", "" },
	{ "su", "--command", "" },
	{ "su", "--session-command", "" },
	{ "runuser", "-c", "" },
	{ "runuser", "--command", "" },
	{ "sg", "-c", "" },
	{ "flock", "-c", "" },
	{ "flock", "--command", "" },
	{ "gdb", "-ex", "!" },
	{ "gdb", "-ex", "shell " },
	{ "gdb", "--ex", "!" },
	{ "gdb", "-eval-command", "shell " },
	{ "less", "-c", "!" },
	{ "fzf", "--preview", "" },
	{ "fzf", "--bind", "execute(" },
	{ "git", "--upload-pack", "" },
	{ "git", "--receive-pack", "" },
	{ "git", "--exec", "" },
	{ "git", "-x", "" },
	{ "git", "--tree-filter", "" },
	{ "git", "--index-filter", "" },
	{ "git", "--env-filter", "" },
	{ "git", "--msg-filter", "" },
	{ "git", "--extcmd", "" },
	{ "git", "--open-files-in-pager", "" },
	{ "git", "-O", "" },
	{ "make", "--eval", "$(shell " },
	{ "make", "-e", "$(shell " },
	{ "psql", "-c", "\\!" },
	{ "mysql", "-e", "\\!" },
	{ "mysql", "-e", "system " },
	{ "sqlite3", "-cmd", ".shell " },
	{ "sqlite3", "-cmd", ".system " },
	{ "xterm", "-e", "" },
	{ "openvpn", "--up", "" },
	{ "openvpn", "--down", "" },
	{ "dnsmasq", "--dhcp-script", "" },
	{ "iptables", "--modprobe", "" },
	{ "fusermount", "-o", "" },
	{ "sshfs", "-o", "ssh_command=" },
	{ "borg", "--rsh", "" },
	{ "hg", "--config", "alias.x=!" },
	{ "pg_basebackup", "--compress", "" },
	{ "gpg", "--photo-viewer", "" },
	{ "crash", "-i", "" },
	{ "capsh", "-c", "" },
	{ "start-stop-daemon", "--exec", "" },
	{ "start-stop-daemon", "-x", "" },
	{ "logrotate", "-m", "" },
	{ "nmap", "--script", "" },
	{ "expect", "-c", "spawn " },
	{ "expect", "-c", "exec " },
	{ "expect", "-c", "system " },
	{ "tclsh", "-c", "exec " },
	{ "yarn", "-c", "" },
	{ "npx", "-c", "" },
	{ "npx", "--call", "" },
	{ "nix-shell", "--run", "" },
	{ "nix-shell", "--command", "" },
	{ "guix", "--run", "" },
	{ "devbox", "-c", "" },
	{ "chroot", "-c", "" },
	{ "newgrp", "-c", "" },
	{ "apt-get", "-o", "APT::Update::Pre-Invoke::=" },
	{ "apt", "-o", "APT::Update::Pre-Invoke::=" },
	{ "apt-get", "-o", "Dpkg::Pre-Invoke::=" },
	{ "grep", "--pre", "" },
	{ "rg", "--pre", "" },
	{ "pdftex", "-shell-escape", "" },
	{ "dstat", "--exec", "" },
};

static bool has_prefix(const char *s, const char *prefix)
{
	return strncasecmp(s, prefix, strlen(prefix)) == 0;
}

static void run_part(struct shell *sh, struct sh_command *cmd, const struct sh_word *w, size_t skip, const char *who)
{
	struct sh_word code = { .s = w->s + skip, .len = w->len - (uint32_t)skip, .flags = w->flags & WORD_DYNAMIC };

	sh_run_word(sh, cmd, &code, who);
}

static void option_commands(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	for (size_t i = 0; i < ARRAY_LEN(commands_in_options); i++) {
		const char *option = commands_in_options[i].option, *prefix = commands_in_options[i].prefix;
		size_t len = strlen(option);

		if (strcmp(commands_in_options[i].program, call->program) != 0)
			continue;
		/* an option may be repeated, and every value counts */
		for (size_t k = 1; k < call->n; k++) {
			const struct sh_call rest = { .program = call->program,
						      .words = call->words + k - 1,
						      .n = call->n - k + 1 < 3 ? call->n - k + 1 : 3,
						      .cmd = call->cmd };
			struct sh_word value;

			if (call->words[k].s[0] != '-' || len == 0 || !sh_has_option(&rest, option, &value))
				continue;
			if (value.len && has_prefix(value.s, prefix))
				run_part(sh, cmd, &value, strlen(prefix), call->program);
		}
	}
}

/* --- interpreters ---------------------------------------------------------------------------------------------- */

enum interpreter_kind { KIND_SHELL, KIND_PYTHON, KIND_JAVASCRIPT, KIND_FOREIGN };

static const struct interpreter {
	const char *glob;
	enum interpreter_kind kind;
	const char *options; /* options whose value is code, separated by spaces */
} interpreters[] = {
	{ "sh", KIND_SHELL, "-c" },
	{ "bash", KIND_SHELL, "-c" },
	{ "dash", KIND_SHELL, "-c" },
	{ "ash", KIND_SHELL, "-c" },
	{ "zsh", KIND_SHELL, "-c" },
	{ "ksh*", KIND_SHELL, "-c" },
	{ "mksh", KIND_SHELL, "-c" },
	{ "rbash", KIND_SHELL, "-c" },
	{ "yash", KIND_SHELL, "-c" },
	{ "fish", KIND_SHELL, "-c" },
	{ "csh", KIND_SHELL, "-c" },
	{ "tcsh", KIND_SHELL, "-c" },
	{ "hush", KIND_SHELL, "-c" },
	{ "pwsh", KIND_FOREIGN, "-c" },
	{ "python", KIND_PYTHON, "-c" },
	{ "python2*", KIND_PYTHON, "-c" },
	{ "python3*", KIND_PYTHON, "-c" },
	{ "pypy*", KIND_PYTHON, "-c" },
	{ "ipython*", KIND_PYTHON, "-c" },
	{ "micropython", KIND_PYTHON, "-c" },
	{ "node", KIND_JAVASCRIPT, "-e -p --eval --print" },
	{ "nodejs", KIND_JAVASCRIPT, "-e -p --eval --print" },
	{ "bun", KIND_JAVASCRIPT, "-e --eval" },
	{ "deno", KIND_JAVASCRIPT, "" },
	{ "perl*", KIND_FOREIGN, "-e -E" },
	{ "ruby*", KIND_FOREIGN, "-e" },
	{ "php*", KIND_FOREIGN, "-r" },
	{ "lua*", KIND_FOREIGN, "-e" },
	{ "Rscript", KIND_FOREIGN, "-e" },
	{ "R", KIND_FOREIGN, "-e" },
	{ "julia", KIND_FOREIGN, "-e" },
	{ "tclsh*", KIND_FOREIGN, "" },
	{ "osascript", KIND_FOREIGN, "-e" },
	{ "groovy", KIND_FOREIGN, "-e" },
	{ "scala", KIND_FOREIGN, "-e" },
	{ "elixir", KIND_FOREIGN, "-e" },
	{ "erl", KIND_FOREIGN, "-eval" },
	{ "emacs", KIND_FOREIGN, "--eval --execute" },
	{ "guile", KIND_FOREIGN, "-c" },
	{ "racket", KIND_FOREIGN, "-e" },
	{ "jrunscript", KIND_FOREIGN, "-e" },
	{ "expect", KIND_FOREIGN, "-c" },
	{ "jjs", KIND_FOREIGN, "-e" },
	{ "ghc", KIND_FOREIGN, "-e" },
};

/* Words that matter in a language without an inspector: they start programs or delete, connect, or decode. */
static const char *const foreign_starts[] = {
	"system",     "exec",         "popen",         "spawn",     "passthru",   "shell_exec",     "proc_open",
	"pcntl_exec", "qx",           "fork",          "unlink",    "rmtree",     "remove_tree",    "rm_rf",
	"rmdir",      "FileUtils",    "File.delete",   "os.remove", "os.execute", "io.popen",       "do shell script",
	"os:cmd",     "call-process", "shell-command", "%x",        "getRuntime", "ProcessBuilder", "file_get_contents",
	"syscall",    "kill",         "eval",          "run(`",
};
static const char *const foreign_connects[] = {
	"socket",    "Socket",     "TCPSocket",
	"fsockopen", "IO::Socket", "LWP",
	"Net::HTTP", "open-uri",   "stream_socket_client",
};
static const char *const foreign_decodes[] = {
	"base64_decode", "decode_base64", "MIME::Base64", "gzinflate", "gzuncompress", "str_rot13",
	"pack",          "unpack",        "unpack1",      "hex2bin",   "Base64",
};

static bool is_part_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool mentions(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !is_part_of_name(at[-1])) && !is_part_of_name(at[n]))
			return true;
	return false;
}

static const char *mentions_any(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mentions(text, words[i]))
			return words[i];
	return NULL;
}

/* Judges every string literal of the code that looks like a command as one. */
static void strings_as_commands(struct shell *sh, struct sh_command *cmd, const char *code, const char *who)
{
	bool outer = sh->guessing;

	for (const char *p = code; *p; p++) {
		const char *end = p + 1;
		struct sh_buf text = { 0 };
		struct sh_word w;

		if (*p != '"' && *p != '\'' && *p != '`')
			continue;
		for (; *end && *end != *p; end++) {
			if (*end == '\\' && end[1])
				end++;
			sh_addc(sh, &text, *end);
		}
		if (!*end)
			return;
		p = end;
		if (!text.len)
			continue;
		w = (struct sh_word){ .s = text.p, .len = (uint32_t)text.len };
		sh->guessing = true;
		sh_run_word(sh, cmd, &w, who);
		sh->guessing = outer;
	}
}

static void run_foreign(struct shell *sh, struct sh_command *cmd, const struct sh_word *code, const char *who)
{
	const char *starts, *connects, *decodes;

	if (code->flags & WORD_DYNAMIC && code->s[0] == MARK_HOLE)
		judge_check(sh->j, "dynamic-code", cmd->span, "%s runs text that is known only at run time", who);
	starts = mentions_any(code->s, foreign_starts, ARRAY_LEN(foreign_starts));
	if (!starts && strchr(code->s, '`') && strncmp(who, "lua", 3) != 0)
		starts = "backticks";
	connects = mentions_any(code->s, foreign_connects, ARRAY_LEN(foreign_connects));
	decodes = mentions_any(code->s, foreign_decodes, ARRAY_LEN(foreign_decodes));
	if (starts)
		judge_check(sh->j, "inline-code", cmd->span, "%s in the code for %s", starts, who);
	if (connects)
		judge_check(sh->j, "inline-network", cmd->span, "%s in the code for %s", connects, who);
	if (starts && (connects || decodes))
		judge_check(sh->j, "inline-shell", cmd->span, "%s and %s in the code for %s", starts,
			    connects ? connects : decodes, who);
	if (starts || connects)
		strings_as_commands(sh, cmd, code->s, who);
}

static void run_code(struct shell *sh, struct sh_command *cmd, const struct interpreter *in, const struct sh_word *code,
		     const char *who)
{
	struct sh_stream s = { .text = code->s, .len = code->len };

	switch (in->kind) {
	case KIND_SHELL:
		sh_run_word(sh, cmd, code, who);
		break;
	case KIND_PYTHON:
	case KIND_JAVASCRIPT:
		if ((code->flags & WORD_DYNAMIC) && code->s[0] == MARK_HOLE)
			judge_check(sh->j, "dynamic-code", cmd->span, "%s runs text that is known only at run time",
				    who);
		else
			sh_run_stream(sh, cmd, &s, in->kind == KIND_PYTHON ? HERE_PYTHON : HERE_JAVASCRIPT, who);
		break;
	case KIND_FOREIGN:
		run_foreign(sh, cmd, code, who);
		break;
	}
}

/* Shells: -c may be part of a cluster, and its code is the first operand, not the next word. */
static bool shell_code(const struct sh_call *call, struct sh_word *code, size_t *operand)
{
	bool has_code = false;
	size_t i = 1;

	for (; i < call->n; i++) {
		const struct sh_word *w = &call->words[i];

		if (sh_is(w, "--") || sh_is(w, "-")) {
			i++;
			break;
		}
		if ((w->s[0] != '-' && w->s[0] != '+') || w->len < 2)
			break;
		if (w->s[1] == '-') {
			i += sh_is(w, "--rcfile") || sh_is(w, "--init-file");
			continue;
		}
		has_code = has_code || (w->s[0] == '-' && strchr(w->s, 'c'));
		i += w->s[w->len - 1] == 'o' || w->s[w->len - 1] == 'O';
	}
	*operand = i;
	if (has_code && i < call->n)
		*code = call->words[i];
	return has_code && i < call->n;
}

static enum here_use use_of(enum interpreter_kind kind)
{
	return kind == KIND_SHELL        ? HERE_SHELL
	       : kind == KIND_PYTHON     ? HERE_PYTHON
	       : kind == KIND_JAVASCRIPT ? HERE_JAVASCRIPT
					 : HERE_OTHER;
}

static void run_shell(struct shell *sh, struct sh_command *cmd, const struct interpreter *in,
		      const struct sh_call *call)
{
	struct sh_word code;
	size_t operand;

	if (shell_code(call, &code, &operand)) {
		struct sh_words mine = { 0 };
		struct sh_words *outer = sh->parameters;

		/* sh -c text name a b: $1 is a */
		for (size_t i = operand + 2; i < call->n; i++)
			sh_push(sh, &mine, call->words[i].s, call->words[i].len, call->words[i].flags);
		sh->parameters = &mine;
		if (operand + 1 < call->n)
			sh_var_set(sh, "0", 1,
				   (struct sh_value){ .s = call->words[operand + 1].s,
						      .len = call->words[operand + 1].len },
				   true);
		run_code(sh, cmd, in, &code, call->program);
		if (operand + 1 < call->n)
			sh_var_set(sh, "0", 1, (struct sh_value){ .s = "$0", .len = 2 }, true);
		sh->parameters = outer;
	} else if (operand < call->n && !sh_has_option(call, "-s", NULL) && !sh_names_stdin(&call->words[operand])) {
		if (call->words[operand].flags & WORD_DYNAMIC)
			judge_check(sh->j, "dynamic-source", cmd->span, "the script's name");
		sh_run_file(sh, cmd, &call->words[operand]);
	} else {
		sh_run_input(sh, cmd, use_of(in->kind), call->program);
	}
}

static bool is_code_option(const struct interpreter *in, const struct sh_word *w, size_t *attached)
{
	const char *o = in->options;

	*attached = 0;
	if (w->s[0] != '-' || w->len < 2)
		return false;
	while (*o) {
		size_t n = strcspn(o, " ");
		const char *eq = strchr(w->s, '=');

		if (n == 2 && w->s[1] != '-') {
			const char *at = strchr(w->s + 1, o[1]);

			if (at) {
				*attached = at[1] ? (size_t)(at + 1 - w->s) : 0;
				return true;
			}
		} else if ((w->len == n || (eq && (size_t)(eq - w->s) == n)) && strncmp(w->s, o, n) == 0) {
			*attached = eq ? n + 1 : 0;
			return true;
		}
		o += n + (o[n] == ' ');
	}
	return false;
}

static void run_interpreter(struct shell *sh, struct sh_command *cmd, const struct interpreter *in,
			    const struct sh_call *call)
{
	bool has_code = false;
	const struct sh_word *file;

	if (in->kind == KIND_SHELL) {
		run_shell(sh, cmd, in, call);
		return;
	}
	for (size_t i = 1; i < call->n; i++) {
		size_t attached;
		struct sh_word code;

		if (!is_code_option(in, &call->words[i], &attached))
			continue;
		has_code = true;
		code = attached          ? (struct sh_word){ .s = call->words[i].s + attached,
							     .len = call->words[i].len - (uint32_t)attached,
							     .flags = call->words[i].flags }
		       : i + 1 < call->n ? call->words[i + 1]
					 : (struct sh_word){ .s = "" };
		run_code(sh, cmd, in, &code, call->program);
		if (in->kind == KIND_PYTHON)
			return;
	}
	file = sh_script(call);
	if (!has_code && (!file || sh_names_stdin(file)) && !sh_has_option(call, "-m", NULL))
		sh_run_input(sh, cmd, use_of(in->kind), call->program);
	else if (!has_code && file)
		sh_run_download(sh, cmd, file, use_of(in->kind));
}

/* --- awk, sed, git, and others --------------------------------------------------------------------------------- */

static void run_awk(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	const struct sh_word *program = sh_operand(call, 0);

	for (size_t i = 1; i < call->n; i++) {
		const struct sh_word *w = &call->words[i];

		if (w != program && w->s[0] == '-')
			continue;
		if (strstr(w->s, "/inet/") || strstr(w->s, "/inet4/"))
			judge_check(sh->j, strstr(w->s, "getline") ? "inline-shell" : "inline-network", cmd->span,
				    "/inet in the code for awk");
		/* system("x"), "x" | getline, print | "x" */
		if (mentions(w->s, "system")) {
			const char *at = strstr(w->s, "system");

			if (!strpbrk(at, "\"'"))
				judge_check(sh->j, "dynamic-code", cmd->span, "awk's system() runs what it reads");
			strings_as_commands(sh, cmd, w->s, "awk");
		} else if (strstr(w->s, "getline") || strstr(w->s, "| \"") || strstr(w->s, "|\"") ||
			   strstr(w->s, "|&")) {
			strings_as_commands(sh, cmd, w->s, "awk");
		}
	}
}

/* One command of a sed script: e runs the rest of the line, s///e runs the result. */
static void sed_line(struct shell *sh, struct sh_command *cmd, const char *s, size_t len)
{
	size_t i = 0;

	while (i < len && (isdigit((unsigned char)s[i]) || strchr(" \t,$!{~+", s[i])))
		i++;
	if (i < len && s[i] == '/') {
		const char *end = memchr(s + i + 1, '/', len - i - 1);

		if (end)
			i = (size_t)(end - s) + 1;
		while (i < len && strchr(" \t,!{I", s[i]))
			i++;
	}
	if (i < len && s[i] == 'e' && (i + 1 == len || s[i + 1] == ' ')) {
		struct sh_word code = { .s = sh_copy(sh, s + i + 1, len - i - 1), .len = (uint32_t)(len - i - 1) };

		if (code.len)
			sh_run_word(sh, cmd, &code, "sed");
		else
			judge_check(sh->j, "dynamic-code", cmd->span, "sed runs the lines it reads");
	} else if (i + 1 < len && s[i] == 's' && ispunct((unsigned char)s[i + 1])) {
		char d = s[i + 1];
		unsigned seen = 0;

		for (i++; i < len && seen < 3; i++) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == d)
				seen++;
		}
		for (; i < len && isalnum((unsigned char)s[i]); i++)
			if (s[i] == 'e' && seen == 3) {
				judge_check(sh->j, "dynamic-code", cmd->span, "sed s///e runs the result");
				strings_as_commands(sh, cmd, s, "sed");
			}
	}
}

static void run_sed(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	for (size_t i = 1; i < call->n; i++) {
		const char *s = call->words[i].s;
		size_t start = 0, len = call->words[i].len;

		if (s[0] == '-' && !(len > 2 && s[1] == 'e'))
			continue;
		start = s[0] == '-' ? 2 : 0;
		for (size_t k = start; k <= len; k++)
			if (k == len || s[k] == '\n' || s[k] == ';') {
				sed_line(sh, cmd, s + start, k - start);
				start = k + 1;
			}
	}
}

static bool git_key_runs(const char *key)
{
	static const char *const globs[] = { "core.pager*",
					     "core.editor*",
					     "core.sshcommand*",
					     "core.fsmonitor*",
					     "core.gitproxy*",
					     "core.askpass*",
					     "diff.external*",
					     "diff.*.textconv*",
					     "diff.*.command*",
					     "sequence.editor*",
					     "credential.helper*",
					     "credential.*.helper*",
					     "gpg.program*",
					     "gpg.*.program*",
					     "pager.*",
					     "filter.*.clean*",
					     "filter.*.smudge*",
					     "filter.*.process*",
					     "merge.*.driver*",
					     "mergetool.*.cmd*",
					     "difftool.*.cmd*",
					     "uploadpack.packobjectshook*",
					     "remote.*.uploadpack*",
					     "remote.*.receivepack*",
					     "remote.*.vcs*",
					     "browser.*.cmd*",
					     "sendemail.smtpserver*",
					     "interactive.difffilter*",
					     "alias.*" };
	char lower[128];
	size_t n = 0;

	for (; key[n] && n + 1 < sizeof(lower); n++)
		lower[n] = (char)tolower((unsigned char)key[n]);
	for (size_t i = 0; i < ARRAY_LEN(globs); i++)
		if (sh_glob(globs[i], strlen(globs[i]), lower, n))
			return true;
	return false;
}

static void git_setting(struct shell *sh, struct sh_command *cmd, const struct sh_word *key, const char *value,
			uint32_t flags)
{
	struct sh_word code = { .s = value, .len = (uint32_t)strlen(value), .flags = flags & WORD_DYNAMIC };
	bool alias = strncasecmp(key->s, "alias.", 6) == 0;

	if (strncasecmp(key->s, "core.hookspath", 14) == 0 || strncasecmp(key->s, "protocol.ext.allow", 18) == 0)
		judge_check(sh->j, "inline-code", cmd->span, "git runs programs because of %.40s", key->s);
	if (!git_key_runs(key->s) || (alias && value[0] != '!'))
		return;
	if (value[0] == '!') {
		code.s++;
		code.len--;
	}
	sh_run_word(sh, cmd, &code, "git");
}

static void run_git(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	for (size_t i = 1; i + 1 < call->n; i++) {
		const struct sh_word *w = &call->words[i + 1];
		const char *eq = strchr(w->s, '=');

		if (sh_is(&call->words[i], "-c") && eq)
			git_setting(sh, cmd, w, eq + 1, w->flags);
		else if (sh_is(&call->words[1], "config") && i + 2 < call->n && w->s[0] != '-')
			git_setting(sh, cmd, w, call->words[i + 2].s, call->words[i + 2].flags);
		else if (sh_is(&call->words[i], "foreach") || (sh_is(&call->words[i], "run") && i > 1))
			sh_run_word(sh, cmd, w, "git");
		if (strncmp(w->s, "ext::", 5) == 0)
			run_part(sh, cmd, w, 5, "git");
	}
}

/* socat EXEC:cmd, SYSTEM:cmd */
static void run_socat(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	for (size_t i = 1; i < call->n; i++)
		if (has_prefix(call->words[i].s, "exec:") || has_prefix(call->words[i].s, "system:"))
			run_part(sh, cmd, &call->words[i],
				 (size_t)(strchr(call->words[i].s, ':') - call->words[i].s) + 1, "socat");
}

/* +!cmd, -c :!cmd, -c 'silent !cmd', system("cmd") */
static void run_editor(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	for (size_t i = 1; i < call->n; i++) {
		const struct sh_word *w = &call->words[i];
		bool script = w->s[0] == '+' || sh_is(&call->words[i - 1], "-c") || sh_is(&call->words[i - 1], "--cmd");
		const char *bang = script ? strchr(w->s, '!') : NULL;

		if (bang)
			run_part(sh, cmd, w, (size_t)(bang - w->s) + 1, call->program);
		else if (script && mentions(w->s, "system"))
			strings_as_commands(sh, cmd, w->s, call->program);
	}
}

/* make SHELL=x, make -f -, and a makefile written by the script: its recipes are commands. */
static void run_make(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	static const char *const usual[] = { "GNUmakefile", "makefile", "Makefile" };
	struct sh_word file;

	if (sh_has_option(call, "-f", &file) && sh_names_stdin(&file)) {
		if (!sh_reads_caller(cmd))
			sh_run_stream(sh, cmd, &cmd->in, HERE_SHELL, "make");
	} else if (sh_has_option(call, "-f", &file)) {
		sh_run_file(sh, cmd, &file);
	}
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		sh_run_file(sh, cmd, &(struct sh_word){ .s = usual[i], .len = (uint32_t)strlen(usual[i]) });
	for (size_t i = 1; i < call->n; i++)
		if (strncmp(call->words[i].s, "SHELL=", 6) == 0)
			run_part(sh, cmd, &call->words[i], 6, "make");
		else if (strstr(call->words[i].s, "$(shell "))
			run_part(sh, cmd, &call->words[i],
				 (size_t)(strstr(call->words[i].s, "$(shell ") - call->words[i].s) + 8, "make");
}

/* Programs that read command lines from standard input: at, batch, ed and ex scripts with !. */
static void run_batch(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	if (cmd->piped_in)
		sh_run_stream(sh, cmd, &cmd->in, HERE_SHELL, call->program);
}

static void run_database(struct shell *sh, struct sh_command *cmd, const struct sh_call *call)
{
	static const char *const prefixes[] = { ".shell ", ".system ", "\\! ", "system ", "\\!" };

	for (size_t i = 1; i < call->n; i++)
		for (size_t k = 0; k < ARRAY_LEN(prefixes); k++)
			if (has_prefix(call->words[i].s, prefixes[k])) {
				run_part(sh, cmd, &call->words[i], strlen(prefixes[k]), call->program);
				break;
			}
}

static const struct {
	const char *glob;
	void (*run)(struct shell *, struct sh_command *, const struct sh_call *);
} special[] = {
	{ "awk", run_awk },          { "gawk", run_awk },       { "mawk", run_awk },       { "nawk", run_awk },
	{ "sed", run_sed },          { "gsed", run_sed },       { "git", run_git },        { "socat", run_socat },
	{ "make", run_make },        { "gmake", run_make },     { "at", run_batch },       { "batch", run_batch },
	{ "sqlite3", run_database }, { "psql", run_database },  { "mysql", run_database }, { "ed", run_database },
	{ "vim", run_editor },       { "vi", run_editor },      { "nvim", run_editor },    { "view", run_editor },
	{ "ex", run_editor },        { "vimdiff", run_editor },
};

void sh_inline(struct shell *sh, struct sh_command *cmd, const char *program, const struct sh_word *words, size_t n,
	       unsigned level)
{
	const struct sh_call call = { .program = program, .words = words, .n = n, .cmd = cmd };

	(void)level;
	option_commands(sh, cmd, &call);
	for (size_t i = 0; i < ARRAY_LEN(interpreters); i++)
		if (interpreters[i].glob[0] == program[0] &&
		    sh_glob(interpreters[i].glob, strlen(interpreters[i].glob), program, strlen(program))) {
			run_interpreter(sh, cmd, &interpreters[i], &call);
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		if (strcmp(special[i].glob, program) == 0)
			special[i].run(sh, cmd, &call);
}
