/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every name of a project passes here at the start of each run, so a row costs a comparison of one byte unless that
 * fits.  This is a net for what people forget, not a proof: a secret under an ordinary name is not found, and for those
 * there is workspace_hide.
 */
#include "workspace/secrets.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"

#define LOOK_MAX (256 * 1024) /* bytes that are looked through */

enum secret_where { WHERE_NAME, WHERE_BEGIN, WHERE_END, WHERE_TAIL };

static const struct secret_row {
	enum secret_where where;
	enum secret_when when;
	const char *text;
	size_t len;
} rows[] = {
#define SECRET(where, text, when) { WHERE_##where, SECRET_##when, text, sizeof(text) - 1 },
#include "workspace/secrets.def"
};

/* ---- names ------------------------------------------------------------------------------------- */

static bool ends_with(const char *s, size_t len, const struct secret_row *r)
{
	return len >= r->len && s[len - 1] == r->text[r->len - 1] && memcmp(s + len - r->len, r->text, r->len) == 0;
}

static bool fits(const struct secret_row *r, const char *path, size_t path_len, const char *name, size_t len,
		 bool is_dir)
{
	switch (r->where) {
	case WHERE_NAME:
		return name[0] == r->text[0] && len == r->len && memcmp(name, r->text, len) == 0;
	case WHERE_BEGIN:
		return !is_dir && name[0] == r->text[0] && len >= r->len && memcmp(name, r->text, r->len) == 0;
	case WHERE_END:
		return !is_dir && ends_with(name, len, r);
	case WHERE_TAIL:
		return ends_with(path, path_len, r) && (path_len == r->len || path[path_len - r->len - 1] == '/');
	}
	return false;
}

/* Submodules and worktrees keep their configurations below the .git folder of the whole. */
static bool is_inner_git_config(const char *path, const char *name)
{
	return (str_eq(name, "config") || str_eq(name, "config.worktree")) &&
	       (strncmp(path, ".git/", 5) == 0 || strstr(path, "/.git/"));
}

enum secret_when secret_by_name(const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t len = strlen(name), path_len = (size_t)(name - path) + len;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (fits(&rows[i], path, path_len, name, len, is_dir))
			return rows[i].when;
	return !is_dir && is_inner_git_config(path, name) ? SECRET_GIT : SECRET_NEVER;
}

/* ---- contents ---------------------------------------------------------------------------------- */

static bool has_word(const char *text, size_t len, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

/* "https://user:word@host" and "https://token@host", but not "ssh://git@host". */
static bool has_url_secret(const char *text, size_t len)
{
	const char *end = text + len, *p = text;

	while ((p = memmem(p, (size_t)(end - p), "://", 3))) {
		bool is_ssh = p - text >= 3 && memcmp(p - 3, "ssh", 3) == 0;
		bool has_colon = false;

		for (p += 3; p < end && *p != '/' && !isspace((unsigned char)*p); p++) {
			has_colon |= *p == ':';
			if (*p == '@' && (has_colon || !is_ssh))
				return true;
		}
	}
	return false;
}

bool secret_in_text(const char *text, size_t len, enum secret_when when)
{
	static const char *const key_words[] = { "PRIVATE KEY" };
	static const char *const token_words[] = { "oken",   "OKEN",        "assword",    "PASSWORD", "_auth", "secret",
						   "SECRET", "private_key", "http-basic", "oauth",    "bearer" };
	static const char *const git_words[] = { "extraheader", "extraHeader", "[credential",
						 "helper",      "assword",     "oken" };

	switch (when) {
	case SECRET_NEVER:
		return false;
	case SECRET_ALWAYS:
		return true;
	case SECRET_KEY:
		return has_word(text, len, key_words, ARRAY_LEN(key_words));
	case SECRET_TOKEN:
		return has_word(text, len, token_words, ARRAY_LEN(token_words)) || has_url_secret(text, len);
	case SECRET_GIT:
		return has_word(text, len, git_words, ARRAY_LEN(git_words)) || has_url_secret(text, len);
	}
	return true;
}

bool secret_in_file(int dir, const char *name, enum secret_when when)
{
	AUTO_FREE char *text = NULL;
	AUTO_FD fd = FD_NONE;
	struct stat st;
	ssize_t n;

	if (when == SECRET_NEVER || when == SECRET_ALWAYS)
		return when == SECRET_ALWAYS;
	fd = beneath_open_file(dir, name, &st);
	if (fd < 0 || st.st_size > LOOK_MAX)
		return fd != -EINVAL; /* a folder or a FIFO of that name holds nothing */
	text = malloc(LOOK_MAX);
	n = text ? fd_read_all(fd, text, LOOK_MAX) : -ENOMEM;
	return n < 0 || secret_in_text(text, (size_t)n, when);
}
