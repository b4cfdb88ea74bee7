/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every name of a project passes here at the start of each run, so a row costs nothing unless its first byte, or its
 * last, is the name's.  This is a safety net for what people forget, not a guarantee: a secret under an ordinary name
 * is not found, and for those there is workspace_hide.
 */
#include "workspace/secrets.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"

#define LOOK_MAX    (256 * 1024) /* bytes that are looked through */
#define ACCOUNT_MIN 40           /* bytes of a service account's file */
#define ACCOUNT_MAX (64 * 1024)

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

/* How editors and people name copies of a file, besides the dot or the number sign that some put before it. */
static const char *const copy_ends[] = {
	".un~",      "~",       "#",         ".bak",      ".backup",      ".old",         ".orig",
	".original", ".save",   ".saved",    ".copy",     " copy",        ".tmp",         ".temp",
	".rej",      ".prev",   ".disabled", ".kate-swp", ".dpkg-old",    ".dpkg-dist",   ".dpkg-new",
	".rpmsave",  ".rpmnew", ".rpmorig",  ".ucf-old",  "___jb_tmp___", "___jb_old___", "___jb_bak___",
};
#define COPIES_MAX 3 /* of copies */

/* ---- names ------------------------------------------------------------------------------------- */

/* ASCII, whatever the locale says: the table is. */
static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* text is in lower case. */
static bool same_letters(const char *s, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (lower(s[i]) != text[i])
			return false;
	return true;
}

static bool ends_with(const char *s, size_t len, const char *text, size_t text_len)
{
	return len >= text_len && lower(s[len - 1]) == text[text_len - 1] &&
	       same_letters(s + len - text_len, text, text_len);
}

/* A name in its folder; both are parts of one path. */
struct candidate {
	const char *path, *name;
	size_t path_len, len;
	bool is_dir;
};

static bool fits(const struct secret_row *r, const struct candidate *c)
{
	switch (r->where) {
	case WHERE_NAME:
		return c->len == r->len && lower(c->name[0]) == r->text[0] && same_letters(c->name, r->text, r->len);
	case WHERE_BEGIN:
		return !c->is_dir && lower(c->name[0]) == r->text[0] && c->len >= r->len &&
		       same_letters(c->name, r->text, r->len);
	case WHERE_END:
		return !c->is_dir && ends_with(c->name, c->len, r->text, r->len);
	case WHERE_TAIL:
		return ends_with(c->path, c->path_len, r->text, r->len) &&
		       (c->path_len == r->len || c->path[c->path_len - r->len - 1] == '/');
	}
	return false;
}

/* For each byte the rows that begin with it, or end with it, as their kind is; in the order of the table. */
enum { BY_FIRST, BY_LAST };
#define NO_ROW INT16_MAX
static struct {
	int16_t head[2][UCHAR_MAX + 1], next[ARRAY_LEN(rows)];
	bool ends_copy[UCHAR_MAX + 1];
} by_byte;
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

static void make_index(void)
{
	for (size_t i = 0; i <= UCHAR_MAX; i++)
		by_byte.head[BY_FIRST][i] = by_byte.head[BY_LAST][i] = NO_ROW;
	for (size_t i = ARRAY_LEN(rows); i-- > 0;) {
		const struct secret_row *r = &rows[i];
		bool last = r->where == WHERE_END || r->where == WHERE_TAIL;
		int16_t *head = &by_byte.head[last ? BY_LAST : BY_FIRST][(unsigned char)r->text[last ? r->len - 1 : 0]];

		by_byte.next[i] = *head;
		*head = (int16_t)i;
	}
	for (size_t i = 0; i < ARRAY_LEN(copy_ends); i++)
		by_byte.ends_copy[(unsigned char)copy_ends[i][strlen(copy_ends[i]) - 1]] = true;
}

static const struct secret_row *row_of(const struct candidate *c)
{
	int16_t a = by_byte.head[BY_FIRST][(unsigned char)lower(c->name[0])];
	int16_t b = by_byte.head[BY_LAST][(unsigned char)lower(c->name[c->len - 1])];

	while (a != NO_ROW || b != NO_ROW) {
		int16_t *earlier = a < b ? &a : &b;

		if (fits(&rows[*earlier], c))
			return &rows[*earlier];
		*earlier = by_byte.next[*earlier];
	}
	return NULL;
}

/* Cuts len bytes off the end of the name, if something is left of it. */
static bool cut_end(struct candidate *c, size_t len)
{
	if (c->len <= len)
		return false;
	c->len -= len;
	c->path_len -= len;
	return true;
}

/* ".swp" and its successors ".swo", ".swn" ...; ".~1~", ".1" and "(1)" of numbered copies. */
static size_t numbered_end(const char *name, size_t len)
{
	size_t n = len;

	if (len > 4 && name[len - 4] == '.' && lower(name[len - 3]) == 's' && lower(name[len - 2]) >= 'v' &&
	    lower(name[len - 2]) <= 'w' && lower(name[len - 1]) >= 'a' && lower(name[len - 1]) <= 'z')
		return 4;
	if (n > 2 && (name[n - 1] == '~' || name[n - 1] == ')'))
		n--;
	if (n == 0 || name[n - 1] < '0' || name[n - 1] > '9')
		return 0;
	while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	if (n > 2 && (memcmp(name + n - 2, ".~", 2) == 0 || memcmp(name + n - 2, " (", 2) == 0))
		return len - (n - 2);
	return n > 1 && name[n - 1] == '.' && name[len - 1] != '~' && name[len - 1] != ')' ? len - (n - 1) : 0;
}

/* Makes of the name of a copy the name of what it is a copy of. */
static bool cut_copy(struct candidate *c)
{
	size_t n = numbered_end(c->name, c->len);

	if (n > 0)
		return cut_end(c, n);
	if (!by_byte.ends_copy[(unsigned char)lower(c->name[c->len - 1])])
		return false;
	for (size_t i = 0; i < ARRAY_LEN(copy_ends); i++)
		if (ends_with(c->name, c->len, copy_ends[i], strlen(copy_ends[i])))
			return cut_end(c, strlen(copy_ends[i]));
	return false;
}

/* Without the dot of a swap file, "#" of an automatic copy and ".#" of a lock.  Such a name has no folder that counts. */
static const struct secret_row *row_of_rest(const struct candidate *c)
{
	size_t n = c->len > 2 && c->name[0] == '.' && c->name[1] == '#' ? 2 : c->name[0] == '.' || c->name[0] == '#';
	struct candidate rest = { .name = c->name + n, .len = c->len - n, .is_dir = c->is_dir };

	rest.path = rest.name;
	rest.path_len = rest.len;
	return n > 0 && rest.len > 0 ? row_of(&rest) : NULL;
}

/* The row of the file that this is a copy of; the innermost name that has one decides, so ".env.example~" is shown. */
static const struct secret_row *row_of_original(struct candidate *c)
{
	const struct secret_row *found = NULL, *row;

	if (c->len > 2 && c->name[0] == '.' && c->name[1] == '#')
		found = row_of_rest(c);
	for (int i = 0; i < COPIES_MAX && cut_copy(c); i++) {
		row = row_of(c);
		if (!row)
			row = row_of_rest(c);
		if (row)
			found = row;
	}
	return found;
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
	struct candidate c = { .path = path, .name = name, .path_len = path_len, .len = len, .is_dir = is_dir };
	struct candidate copy = c;
	const struct secret_row *row;

	if (len == 0)
		return SECRET_NEVER;
	(void)pthread_once(&indexed, make_index);
	row = row_of_original(&copy);
	if (!row)
		row = row_of(&c);
	/* Packages contain thousands of such files, and no account keys. */
	if (row && row->when == SECRET_ACCOUNT && strstr(path, "node_modules/"))
		return SECRET_NEVER;
	if (row)
		return row->when;
	return !is_dir && is_inner_git_config(path, name) ? SECRET_GIT : SECRET_NEVER;
}

int secret_tails(const char *name, secret_tail_fn each, void *arg)
{
	size_t len = strlen(name);
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++)
		if (rows[i].where == WHERE_TAIL && lower(name[0]) == rows[i].text[0] && rows[i].len > len &&
		    rows[i].text[len] == '/' && same_letters(name, rows[i].text, len))
			rc = each(arg, rows[i].text + len + 1);
	return rc;
}

/* ---- contents ---------------------------------------------------------------------------------- */

/* In any case; words are in lower case. */
static bool has(const char *text, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++)
		if (lower(text[i]) == word[0] && same_letters(text + i, word, n))
			return true;
	return false;
}

static bool has_one(const char *text, size_t len, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (has(text, len, words[i]))
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

/* What kubectl reads, with something in it that opens the door. */
static bool is_cluster_access(const char *text, size_t len)
{
	static const char *const keys[] = { "client-key", "token", "password", "auth-provider", "exec" };

	return has(text, len, "apiversion") && has(text, len, "clusters") && has(text, len, "users") &&
	       has_one(text, len, keys, ARRAY_LEN(keys));
}

bool secret_in_text(const char *text, size_t len, enum secret_when when)
{
	static const char *const token_words[] = { "token",       "password",   "_auth", "secret",
						   "private_key", "http-basic", "oauth", "bearer" };
	static const char *const git_words[] = { "extraheader", "[credential", "helper", "password", "token" };

	switch (when) {
	case SECRET_NEVER:
		return false;
	case SECRET_ALWAYS:
		return true;
	case SECRET_KEY:
		return has(text, len, "private key");
	case SECRET_TOKEN:
		return has_one(text, len, token_words, ARRAY_LEN(token_words)) || has_url_secret(text, len);
	case SECRET_GIT:
		return has_one(text, len, git_words, ARRAY_LEN(git_words)) || has_url_secret(text, len);
	case SECRET_CLUSTER:
		return is_cluster_access(text, len);
	case SECRET_ACCOUNT:
		return has(text, len, "\"private_key\"") && has(text, len, "\"service_account\"");
	}
	return true;
}

/* JSON is everywhere, and an account's key has a length: only such files are opened. */
static bool can_be_account(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	       (st.st_size >= ACCOUNT_MIN && st.st_size <= ACCOUNT_MAX);
}

bool secret_in_file(int dir, const char *path, enum secret_when when)
{
	AUTO_FREE char *text = NULL;
	AUTO_FD fd = FD_NONE;
	struct stat st;
	ssize_t n;

	if (when == SECRET_NEVER || when == SECRET_ALWAYS)
		return when == SECRET_ALWAYS;
	if (when == SECRET_ACCOUNT && !can_be_account(dir, path))
		return false;
	fd = beneath_open_file(dir, path, &st);
	if (fd < 0 || st.st_size > LOOK_MAX)
		return fd != -EINVAL; /* a folder or a FIFO of that name holds nothing */
	text = malloc(LOOK_MAX);
	n = text ? fd_read_all(fd, text, LOOK_MAX) : -ENOMEM;
	return n < 0 || secret_in_text(text, (size_t)n, when);
}
