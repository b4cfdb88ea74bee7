/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sudo.c - strips the `sudo` that users of E2B put before commands
 *
 * In E2B's sandboxes the user may become root without a password. Here nobody can become root, so `sudo CMD` is treated
 * as CMD, just as the SDK's user `root` is treated as the only user. The inspection sees what is run, the command
 * without sudo, so nothing passes that would not pass without it. All other ways to change the user, and uses of sudo
 * beyond "as root" (a shell, a list, an editor), stay in the line and are refused by the inspection.
 *
 * The line is parsed only as far as needed to find where commands begin. When in doubt, the word stays: the inspection
 * refuses it, which is safe.
 */
#include "server/doors/e2b/sudo.h"

#include <string.h>

#include "base/str.h"

struct reader {
	const char *at;
	struct buf *out;
	bool begins; /* a command begins here */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool ends_word(char c)
{
	return c == '\0' || is_blank(c) || strchr("\n;&|()<>", c);
}

/* The length of a word, including quoted and escaped characters; 0: there is none. */
static size_t word_len(const char *at)
{
	size_t n = 0;

	while (!ends_word(at[n])) {
		char quote = at[n];

		if (quote == '\\' && at[n + 1]) {
			n += 2;
		} else if (quote == '\'' || quote == '"' || quote == '`') {
			for (n++; at[n] && at[n] != quote; n++)
				n += quote != '\'' && at[n] == '\\' && at[n + 1];
			n += at[n] != '\0';
		} else {
			n++;
		}
	}
	return n;
}

static bool is_word(const char *at, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(at, word, len) == 0;
}

static bool is_any(const char *at, size_t len, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_word(at, len, words[i]))
			return true;
	return false;
}

static const char *skip_blanks(const char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

/* Skips the options after `sudo` and returns the command; NULL: there is none, or an option is not understood. */
static const char *behind_options(const char *at)
{
	static const char *const plain[] = { "-E",
					     "-H",
					     "-n",
					     "-S",
					     "-k",
					     "-EH",
					     "-HE",
					     "-nE",
					     "-En",
					     "-nH",
					     "--preserve-env",
					     "--set-home",
					     "--non-interactive",
					     "--stdin" };
	static const char *const with_root[] = { "-u", "--user" };
	size_t len;

	for (at = skip_blanks(at); (len = word_len(at)) > 0 && *at == '-'; at = skip_blanks(at + len)) {
		if (is_word(at, len, "--user=root") || is_any(at, len, plain, ARRAY_LEN(plain)))
			continue;
		if (!is_any(at, len, with_root, ARRAY_LEN(with_root)))
			return NULL;
		at = skip_blanks(at + len);
		len = word_len(at);
		if (!is_word(at, len, "root"))
			return NULL;
	}
	return len > 0 ? at : NULL;
}

/* Words after which a command begins: keywords of the shell, and assignments. */
static bool leads_on(const char *at, size_t len)
{
	static const char *const words[] = { "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time" };
	size_t name = 0;

	while (name < len && (at[name] == '_' || (at[name] >= '0' && at[name] <= '9') ||
			      ((at[name] | 32) >= 'a' && (at[name] | 32) <= 'z')))
		name++;
	return is_any(at, len, words, ARRAY_LEN(words)) || (name > 0 && name < len && at[name] == '=');
}

static void read_word(struct reader *r)
{
	size_t len = word_len(r->at);
	const char *command =
		r->begins && is_word(r->at, len, "sudo") && is_blank(r->at[len]) ? behind_options(r->at + len) : NULL;

	if (command) {
		r->at = command;
		return;
	}
	if (*r->at == '#') /* a comment, to the end of the line */
		len = strcspn(r->at, "\n");
	r->begins = r->begins && leads_on(r->at, len);
	(void)buf_add(r->out, r->at, len);
	r->at += len;
}

static void read_sign(struct reader *r)
{
	bool is_list = *r->at == '(' && r->out->len > 0 && r->out->data[r->out->len - 1] == '=';

	if (!is_blank(*r->at))
		r->begins = strchr("\n;&|()", *r->at) && !is_list;
	(void)buf_add(r->out, r->at, 1);
	r->at++;
}

void e2b_without_sudo(const char *line, struct buf *out)
{
	struct reader r = { .at = line, .out = out, .begins = true };

	/* a here-document: its text is input for a program, not commands */
	if (!strstr(line, "sudo") || strstr(line, "<<")) {
		(void)buf_adds(out, line);
		return;
	}
	while (*r.at)
		if (ends_word(*r.at))
			read_sign(&r);
		else
			read_word(&r);
}
