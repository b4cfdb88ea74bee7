/* SPDX-License-Identifier: Apache-2.0 */
#include "files/foreign.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "files/beneath.h"

#define LINKS_MAX 40 /* that one path may pass, as in the kernel */

/* ---- names ------------------------------------------------------------------------------------- */

/* Of at least three bytes: those of a character that HFS+ leaves out when it compares names (zero width, direction). */
static size_t ignored(const char *s)
{
	static const struct {
		char lead[3];
		unsigned char from, to; /* of the third byte */
	} rows[] = { { "\xe2\x80", 0x8c, 0x8f },
		     { "\xe2\x80", 0xaa, 0xae },
		     { "\xe2\x81", 0xaa, 0xaf },
		     { "\xef\xbb", 0xbf, 0xbf } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (memcmp(s, rows[i].lead, 2) == 0 && (unsigned char)s[2] >= rows[i].from &&
		    (unsigned char)s[2] <= rows[i].to)
			return 3;
	return 0;
}

/* ".git", ".GIT", ".git. .", ".git::$INDEX_ALLOCATION", the short name "GIT~1", and with characters that do not count. */
static bool is_git_name(const char *name, size_t len)
{
	char plain[NAME_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < len && n < NAME_MAX;) {
		size_t skip = len - i >= 3 ? ignored(name + i) : 0;

		if (skip == 0)
			plain[n++] = name[i++];
		i += skip;
	}
	plain[n] = '\0';
	if (strncasecmp(plain, "git~", 4) == 0)
		return n == 5 && plain[4] >= '1' && plain[4] <= '9';
	if (strncasecmp(plain, ".git", 4) != 0)
		return false;
	n = 4 + strspn(plain + 4, " .");
	return plain[n] == '\0' || plain[n] == ':';
}

bool path_has_git(const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (is_git_name(path, len))
			return true;
		path += len + (path[len] == '/');
	}
	return false;
}

bool path_has_hidden(const char *path)
{
	for (const char *p = path; *p; p += strcspn(p, "/"), p += strspn(p, "/"))
		if (*p == '.')
			return true;
	return false;
}

enum { MARK_HEAD = 1, MARK_OBJECTS = 2, MARK_REFS = 4, MARK_COMMONDIR = 8 };

static const struct {
	const char *name;
	unsigned mark;
} marks[] = {
	{ "HEAD", MARK_HEAD }, { "objects", MARK_OBJECTS }, { "refs", MARK_REFS }, { "commondir", MARK_COMMONDIR }
};

unsigned git_mark(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strcasecmp(name, marks[i].name) == 0)
			return marks[i].mark;
	return 0;
}

bool git_folder(unsigned seen)
{
	const unsigned store = MARK_OBJECTS | MARK_REFS;

	return seen & MARK_HEAD && (seen & MARK_COMMONDIR || (seen & store) == store);
}

unsigned git_marks_in(int root, const char *folder)
{
	unsigned seen = 0;
	AUTO_FD dir = beneath_look(root, folder, NULL);

	for (size_t i = 0; i < ARRAY_LEN(marks) && dir >= 0; i++)
		if (faccessat(dir, marks[i].name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			seen |= marks[i].mark;
	return seen;
}

/* ---- permissions ------------------------------------------------------------------------------- */

unsigned foreign_mode(unsigned wanted, unsigned before)
{
	return wanted & (0755u | (before & 0022u));
}

/* ---- links ------------------------------------------------------------------------------------- */

static bool is_up(const char *part, size_t len)
{
	return len == 2 && part[0] == '.' && part[1] == '.';
}

bool link_stays(const char *path, const char *target)
{
	size_t up = 0, depth = 0;
	bool leading = true;

	for (const char *p = path; *p; p++)
		depth += *p == '/';
	if (*target == '/' || *target == '\0')
		return false;
	while (*target) {
		size_t len = strcspn(target, "/");

		if (is_up(target, len)) {
			if (!leading || ++up > depth)
				return false;
		} else if (len > 0 && !(len == 1 && *target == '.')) {
			leading = false;
		}
		target += len + (target[len] == '/');
	}
	return true;
}

/* A path that grows and shrinks at its end. */
struct place_at {
	char path[PATH_MAX];
	size_t len;
};

static bool go_up(struct place_at *at)
{
	if (at->len == 0)
		return false;
	while (at->len > 0 && at->path[--at->len] != '/')
		;
	at->path[at->len] = '\0';
	return true;
}

static bool go_into(struct place_at *at, const char *part, size_t len)
{
	if (at->len + 1 + len >= sizeof(at->path))
		return false;
	if (at->len > 0)
		at->path[at->len++] = '/';
	memcpy(at->path + at->len, part, len);
	at->len += len;
	at->path[at->len] = '\0';
	return true;
}

/* Puts where a link leads in front of what is still to be gone; false: too long. */
static bool go_through(char rest[PATH_MAX], const char *remains, const char *target)
{
	char longer[PATH_MAX];

	if ((size_t)snprintf(longer, sizeof(longer), "%s/%s", target, remains) >= sizeof(longer))
		return false;
	return str_copy(rest, PATH_MAX, longer);
}

bool link_leads(const char *path, const char *target, link_read_fn read, void *arg, char dst[PATH_MAX])
{
	struct place_at at = { .len = 0 };
	char rest[PATH_MAX], next[PATH_MAX];
	const char *p = rest;

	if (*target == '/' || !str_copy(at.path, sizeof(at.path), path) || !str_copy(rest, sizeof(rest), target))
		return false;
	at.len = strlen(at.path);
	(void)go_up(&at);
	for (int links = 0; *p;) {
		size_t len = strcspn(p, "/");
		const char *part = p;

		p += len + (p[len] == '/');
		if (len == 0 || (len == 1 && *part == '.'))
			continue;
		if (is_up(part, len)) {
			if (!go_up(&at))
				return false;
			continue;
		}
		if (!go_into(&at, part, len))
			return false;
		if (!read(arg, at.path, next))
			continue;
		if (++links > LINKS_MAX || *next == '/' || !go_through(rest, p, next))
			return false;
		(void)go_up(&at);
		p = rest;
	}
	return str_copy(dst, PATH_MAX, at.path);
}
