/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a command if it is constant: echo and printf, and filters over constant input.  Any other output is
 * unknown, but is marked if it comes from the network or from a decoder.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "inspect/shell.h"

static bool any_dynamic(const struct sh_word *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (words[i].flags & WORD_DYNAMIC)
			return true;
	return false;
}

static void add_escaped(struct shell *sh, struct sh_buf *b, const char *s)
{
	for (size_t i = 0; s[i];)
		if (s[i] == '\\' && s[i + 1]) {
			i++;
			sh_add_escape(sh, b, s, &i);
		} else {
			sh_addc(sh, b, s[i++]);
		}
}

static void finish(struct sh_stream *out, const struct sh_buf *text)
{
	out->text = text->p ? text->p : "";
	out->len = text->len;
}

static void print_echo(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		       struct sh_stream *out)
{
	bool newline = true, escapes = false;
	struct sh_buf b = { 0 };
	size_t i = 1;

	(void)cmd;
	for (; i < n && words[i].s[0] == '-' && words[i].len > 1 && strspn(words[i].s + 1, "neE") == words[i].len - 1;
	     i++) {
		newline = newline && !strchr(words[i].s, 'n');
		escapes = escapes || strchr(words[i].s, 'e');
	}
	for (size_t k = i; k < n; k++) {
		sh_add(sh, &b, " ", k > i);
		if (escapes)
			add_escaped(sh, &b, words[k].s);
		else
			sh_add(sh, &b, words[k].s, words[k].len);
	}
	sh_add(sh, &b, "\n", newline);
	finish(out, &b);
}

/* Evaluates one conversion of printf; an unsupported one yields a hole. */
static void convert(struct shell *sh, struct sh_buf *b, const char *format, size_t *i, const struct sh_word *arg)
{
	char c;

	while (format[*i] && strchr("-+ #0123456789.*", format[*i]))
		(*i)++;
	c = format[*i];
	if (!c)
		return;
	(*i)++;
	if (c == '%')
		sh_addc(sh, b, '%');
	else if (!arg)
		return;
	else if (c == 's' || c == 'd' || c == 'i' || c == 'q')
		sh_add(sh, b, arg->s, arg->len);
	else if (c == 'b')
		add_escaped(sh, b, arg->s);
	else if (c == 'c')
		sh_add(sh, b, arg->s, arg->len > 0);
	else
		sh_addc(sh, b, MARK_HOLE);
}

static void print_printf(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
			 struct sh_stream *out)
{
	struct sh_buf b = { 0 };
	size_t first = n > 1 && sh_is(&words[1], "--") ? 2 : 1, arg = first + 1, before;

	(void)cmd;
	if (n <= first) {
		finish(out, &b);
		return;
	}
	do {
		const char *f = words[first].s;

		before = arg;
		for (size_t i = 0; f[i] && sh_step(sh);) {
			if (f[i] == '\\' && f[i + 1]) {
				i++;
				sh_add_escape(sh, &b, f, &i);
			} else if (f[i] == '%') {
				i++;
				convert(sh, &b, f, &i, arg < n ? &words[arg] : NULL);
				arg += f[i - 1] != '%';
			} else {
				sh_addc(sh, &b, f[i++]);
			}
		}
	} while (arg < n && arg > before && b.len < SH_WORD_MAX);
	finish(out, &b);
}

/* --- filters --------------------------------------------------------------------------------------------------- */

static void pass(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		 struct sh_stream *out)
{
	struct sh_call call = { .program = "", .words = words, .n = n, .cmd = cmd };
	const struct sh_word *file = sh_operand(&call, 0);
	const struct sh_file *f;

	if ((!file || sh_names_stdin(file)) && sh_reads_caller(cmd))
		out->flags |= STREAM_INPUT;
	if (!file || sh_is(file, "-")) {
		out->text = cmd->in.text;
		out->len = cmd->in.len;
		if (cmd->in.flags & STREAM_HERE)
			*out = cmd->in;
		return;
	}
	f = sh_file_find(sh, file->s);
	if (f) {
		out->text = sh_operand(&call, 1) ? NULL : f->text;
		out->len = f->len;
		out->flags |= f->flags;
	}
}

static bool decodes(const struct sh_word *words, size_t n)
{
	struct sh_call call = { .program = "", .words = words, .n = n };

	return sh_has_option(&call, "-d", NULL) || sh_has_option(&call, "-D", NULL) ||
	       sh_has_option(&call, "--decode", NULL);
}

static int digit_of(char c, unsigned bits)
{
	static const char base32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *set = bits == 5 ? base32 : base64, *at;

	if (bits == 4)
		return isdigit((unsigned char)c)    ? c - '0'
		       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
						    : -1;
	at = c ? strchr(set, c) : NULL;
	return at ? (int)(at - set) : -1;
}

static void decode(struct shell *sh, const struct sh_stream *in, unsigned bits, struct sh_stream *out)
{
	struct sh_buf b = { 0 };
	uint32_t hold = 0;
	unsigned have = 0;

	out->flags |= STREAM_DECODED | STREAM_ENCODED;
	if (!in->text || memchr(in->text, MARK_HOLE, in->len))
		return;
	for (size_t i = 0; i < in->len; i++) {
		int d = digit_of(in->text[i], bits);

		if (d < 0)
			continue;
		hold = hold << bits | (uint32_t)d;
		have += bits;
		if (have >= 8) {
			have -= 8;
			sh_addc(sh, &b, (char)(hold >> have & 0xff));
		}
	}
	finish(out, &b);
}

static void base64(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		   struct sh_stream *out)
{
	struct sh_stream in = { 0 };

	if (!decodes(words, n))
		return;
	pass(sh, cmd, words, n, &in);
	decode(sh, &in, sh_is(&words[0], "base32") ? 5 : 6, out);
}

static void hex(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		struct sh_stream *out)
{
	struct sh_call call = { .program = "", .words = words, .n = n };

	if (sh_has_option(&call, "-r", NULL))
		decode(sh, &cmd->in, 4, out);
}

static void openssl(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		    struct sh_stream *out)
{
	struct sh_call call = { .program = "", .words = words, .n = n };

	if (!sh_has_option(&call, "-d", NULL))
		return;
	if (n > 1 && (sh_is(&words[1], "base64") || sh_has_option(&call, "-base64", NULL)))
		decode(sh, &cmd->in, 6, out);
	out->flags |= STREAM_DECODED;
}

static void reverse(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		    struct sh_stream *out)
{
	struct sh_buf b = { 0 };
	size_t start = 0;

	(void)words;
	(void)n;
	out->flags |= STREAM_DECODED | STREAM_ENCODED;
	if (!cmd->in.text)
		return;
	for (size_t i = 0; i <= cmd->in.len; i++) {
		if (i < cmd->in.len && cmd->in.text[i] != '\n')
			continue;
		for (size_t k = i; k > start; k--)
			sh_addc(sh, &b, cmd->in.text[k - 1]);
		if (i < cmd->in.len)
			sh_addc(sh, &b, '\n');
		start = i + 1;
	}
	finish(out, &b);
}

/* The characters of a tr set: ranges, escapes and classes. */
static size_t tr_set(const char *s, unsigned char ret[256])
{
	size_t n = 0;

	if (strcmp(s, "[:space:]") == 0)
		s = " \t\n";
	else if (strcmp(s, "[:upper:]") == 0)
		s = "A-Z";
	else if (strcmp(s, "[:lower:]") == 0)
		s = "a-z";
	for (size_t i = 0; s[i] && n < 256; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\\' && s[i + 1]) {
			c = (unsigned char)s[++i];
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		if (s[i + 1] == '-' && s[i + 2]) {
			for (unsigned k = c; k <= (unsigned char)s[i + 2] && n < 256; k++)
				ret[n++] = (unsigned char)k;
			i += 2;
		} else {
			ret[n++] = c;
		}
	}
	return n;
}

static void translate(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		      struct sh_stream *out)
{
	struct sh_call call = { .program = "", .words = words, .n = n };
	const struct sh_word *from = sh_operand(&call, 0), *to = sh_operand(&call, 1);
	bool deletes = sh_has_option(&call, "-d", NULL);
	unsigned char a[256], z[256];
	struct sh_buf b = { 0 };
	size_t na, nz;

	out->flags |= STREAM_DECODED;
	if (!cmd->in.text || !from || (!deletes && !to) || sh_has_option(&call, "-c", NULL))
		return;
	na = tr_set(from->s, a);
	nz = to ? tr_set(to->s, z) : 0;
	for (size_t i = 0; i < cmd->in.len; i++) {
		const unsigned char *at = memchr(a, (unsigned char)cmd->in.text[i], na);
		size_t k = at ? (size_t)(at - a) : 0;

		if (!at)
			sh_addc(sh, &b, cmd->in.text[i]);
		else if (!deletes && nz)
			sh_addc(sh, &b, (char)z[k < nz ? k : nz - 1]);
	}
	finish(out, &b);
}

/* sed 's/a/b/g' with literal text on both sides. */
static void edit(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		 struct sh_stream *out)
{
	struct sh_call call = { .program = "", .words = words, .n = n };
	const struct sh_word *script = sh_operand(&call, 0);
	const char *from, *to, *end;
	struct sh_buf b = { 0 };
	char delimiter;

	out->flags |= STREAM_DECODED;
	if (!cmd->in.text || !script || script->s[0] != 's' || !script->s[1])
		return;
	delimiter = script->s[1];
	from = script->s + 2;
	to = strchr(from, delimiter);
	end = to ? strchr(to + 1, delimiter) : NULL;
	if (!end || to == from || strpbrk(from, "\\^$*.[") != NULL || memchr(to, '&', (size_t)(end - to)))
		return;
	for (size_t i = 0; i < cmd->in.len;) {
		size_t len = (size_t)(to - from);

		if (i + len <= cmd->in.len && memcmp(cmd->in.text + i, from, len) == 0) {
			sh_add(sh, &b, to + 1, (size_t)(end - to) - 1);
			i += len;
		} else {
			sh_addc(sh, &b, cmd->in.text[i++]);
		}
	}
	finish(out, &b);
}

static void network(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		    struct sh_stream *out)
{
	(void)sh;
	(void)cmd;
	(void)words;
	(void)n;
	out->flags |= STREAM_NETWORK;
}

static void unpack(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		   struct sh_stream *out)
{
	(void)sh;
	(void)cmd;
	(void)words;
	(void)n;
	out->flags |= STREAM_DECODED;
}

static void private(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		    struct sh_stream *out)
{
	struct sh_call call = { .program = "", .words = words, .n = n, .cmd = cmd };

	(void)sh;
	if (!sh_operand(&call, 0))
		out->flags |= STREAM_PRIVATE;
}

/* A shell that reads its commands, or is interactive, may print anything. */
static void shell_prints(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
			 struct sh_stream *out)
{
	struct sh_call call = { .program = "", .words = words, .n = n, .cmd = cmd };

	(void)sh;
	if (sh_has_option(&call, "-i", NULL) || (n == 1 && !cmd->in.text))
		out->flags |= STREAM_PRIVATE;
}

static void own_processes(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
			  struct sh_stream *out)
{
	(void)sh;
	(void)cmd;
	(void)words;
	(void)n;
	out->flags |= STREAM_OWN;
}

/* Tools whose manual recommends eval "$(tool ...)". */
static bool prints_settings(const char *program)
{
	static const char *const names[] = {
		"ssh-agent", "dircolors", "pyenv",    "rbenv",    "nodenv",
		"goenv",     "jenv",      "asdf",     "mise",     "fnm",
		"direnv",    "conda",     "brew",     "minikube", "opam",
		"zoxide",    "starship",  "lesspipe", "keychain", "register-python-argcomplete",
		"getopt",    "luarocks",  "resize",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], program) == 0)
			return true;
	return false;
}

static void nothing(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		    struct sh_stream *out)
{
	(void)sh;
	(void)cmd;
	(void)words;
	(void)n;
	out->text = "";
	out->flags = 0;
}

static const struct {
	const char *name;
	void (*print)(struct shell *, const struct sh_command *, const struct sh_word *, size_t, struct sh_stream *);
	bool constant; /* only if all words are constant */
} programs[] = {
	{ "echo", print_echo, false },
	{ "printf", print_printf, false },
	{ "cat", pass, true },
	{ "tee", pass, false },
	{ "head", pass, false },
	{ "tail", pass, false },
	{ "sort", pass, false },
	{ "uniq", pass, false },
	{ "base64", base64, true },
	{ "base32", base64, true },
	{ "xxd", hex, true },
	{ "openssl", openssl, false },
	{ "rev", reverse, true },
	{ "tac", pass, true },
	{ "tr", translate, true },
	{ "sed", edit, true },
	{ "curl", network, false },
	{ "wget", network, false },
	{ "wget2", network, false },
	{ "fetch", network, false },
	{ "aria2c", network, false },
	{ "lynx", network, false },
	{ "w3m", network, false },
	{ "links", network, false },
	{ "http", network, false },
	{ "https", network, false },
	{ "nc", network, false },
	{ "ncat", network, false },
	{ "netcat", network, false },
	{ "socat", network, false },
	{ "telnet", network, false },
	{ "ftp", network, false },
	{ "tftp", network, false },
	{ "sftp", network, false },
	{ "dig", network, false },
	{ "nslookup", network, false },
	{ "host", network, false },
	{ "GET", network, false },
	{ "gunzip", unpack, false },
	{ "zcat", unpack, false },
	{ "gzip", unpack, false },
	{ "bunzip2", unpack, false },
	{ "bzcat", unpack, false },
	{ "xzcat", unpack, false },
	{ "unxz", unpack, false },
	{ "uudecode", unpack, false },
	{ "basenc", unpack, false },
	{ "od", unpack, false },
	{ "hexdump", unpack, false },
	{ "gpg", unpack, false },
	{ "zstdcat", unpack, false },
	{ "ascii85", unpack, false },
	{ "env", private, false },
	{ "printenv", private, false },
	{ "sh", shell_prints, false },
	{ "bash", shell_prints, false },
	{ "dash", shell_prints, false },
	{ "zsh", shell_prints, false },
	{ "ksh", shell_prints, false },
	{ "jobs", own_processes, false },
	{ ":", nothing, false },
	{ "true", nothing, false },
	{ "false", nothing, false },
	{ "cd", nothing, false },
	{ "export", nothing, false },
	{ "local", nothing, false },
	{ "declare", nothing, false },
	{ "set", nothing, false },
	{ "shift", nothing, false },
	{ "read", nothing, false },
	{ "test", nothing, false },
	{ "[", nothing, false },
	{ "sleep", nothing, false },
	{ "return", nothing, false },
	{ "exit", nothing, false },
	{ "unset", nothing, false },
	{ "chmod", nothing, false },
	{ "mkdir", nothing, false },
	{ "touch", nothing, false },
	{ "shopt", nothing, false },
};

uint32_t sh_origins(const struct sh_stream *s)
{
	return (s->flags & (STREAM_NETWORK | STREAM_DECODED) ? ORIGIN_FETCHED : 0u) |
	       (s->flags & STREAM_PRIVATE ? ORIGIN_PRIVATE : 0u) | (s->flags & STREAM_OWN ? ORIGIN_OWN : 0u) |
	       (s->flags & STREAM_SETTINGS ? ORIGIN_SETTINGS : 0u) | (s->flags & STREAM_ENCODED ? ORIGIN_ENCODED : 0u);
}

void sh_output(struct shell *sh, const struct sh_command *cmd, const char *program, const struct sh_word *words,
	       size_t n, struct sh_stream *out)
{
	unsigned kept = out->flags & STREAM_FUNCTION;

	*out = (struct sh_stream){ .flags = kept };
	if (cmd->piped_in)
		out->flags |= cmd->in.flags &
			      (STREAM_NETWORK | STREAM_DECODED | STREAM_ENCODED | STREAM_PRIVATE | STREAM_OWN);
	for (size_t i = 1; i < n; i++)
		out->flags |= (words[i].flags & ORIGIN_FETCHED ? STREAM_DECODED : 0u) |
			      (words[i].flags & ORIGIN_ENCODED ? STREAM_ENCODED : 0u) |
			      (words[i].flags & ORIGIN_PRIVATE ? STREAM_PRIVATE : 0u) |
			      (words[i].flags & ORIGIN_OWN ? STREAM_OWN : 0u);
	if (prints_settings(program))
		out->flags |= STREAM_SETTINGS;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (strcmp(programs[i].name, program) == 0) {
			if (!programs[i].constant || !any_dynamic(words, n))
				programs[i].print(sh, cmd, words, n, out);
			break;
		}
	if (!out->text && !(out->flags & STREAM_HERE))
		out->flags |= STREAM_UNKNOWN;
}
