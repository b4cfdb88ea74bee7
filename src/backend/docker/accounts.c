/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/docker/accounts.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define LINE_MAX_BYTES 1024
#define FIELDS_MAX     7
#define TAR_BLOCK      512

/* A line of a file, split into fields in place. */
struct row {
	char text[LINE_MAX_BYTES];
	char *field[FIELDS_MAX];
	size_t n; /* more than FIELDS_MAX: FIELDS_MAX + 1 */
};

static void split(struct row *r, const char *line, size_t len)
{
	char *at = r->text;

	memcpy(r->text, line, len);
	r->text[len] = '\0';
	for (r->n = 0; at; r->n += r->n <= FIELDS_MAX) {
		char *colon = strchr(at, ':');

		if (colon)
			*colon = '\0';
		if (r->n < FIELDS_MAX)
			r->field[r->n] = at;
		at = colon ? colon + 1 : NULL;
	}
}

static bool is_id(const char *text, uint32_t *ret)
{
	uint64_t id;

	if (!str_to_u64(text, &id) || id >= UINT32_MAX)
		return false;
	*ret = (uint32_t)id;
	return true;
}

/* A search in one file: the line of a name, with numbers in two of its fields. */
struct search {
	const char *file; /* for messages */
	const char *name;
	size_t fields; /* number of fields of a line */
	size_t second; /* a field with another number; 0: none */
	bool found;
	uint32_t id[2];
};

static int take_row(struct search *s, const struct row *r, struct brig_error *err)
{
	uint32_t id[2] = { 0, 0 };

	if (r->n != s->fields || !is_id(r->field[2], &id[0]) || (s->second && !is_id(r->field[s->second], &id[1])))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the row of '%s' in %s of the image makes no sense; write numbers: user: \"1000:1000\"",
			       s->name, s->file);
	if (s->found && memcmp(s->id, id, sizeof(id)) != 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%s' stands twice in %s of the image, with different numbers; write numbers: user: "
			       "\"1000:1000\"",
			       s->name, s->file);
	s->found = true;
	memcpy(s->id, id, sizeof(id));
	return 0;
}

/* Reads the whole file: a second line for the same name must be detected. */
static int look_up(struct search *s, const char *text, size_t len, struct brig_error *err)
{
	const char *end = text + len;
	size_t name_len = strlen(s->name);
	int rc = 0;

	if (len > ACCOUNTS_MAX || memchr(text, '\0', len))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "%s of the image is too large or no text; write numbers: user: "
			       "\"1000:1000\"",
			       s->file);
	while (text < end && rc == 0) {
		const char *stop = memchr(text, '\n', (size_t)(end - text)) ?: end;
		size_t n = (size_t)(stop - text);
		struct row r;

		/* Lines of other names are not checked. */
		if (n > name_len && memcmp(text, s->name, name_len) == 0 && text[name_len] == ':') {
			if (n >= sizeof(r.text))
				return err_set(err, BRIG_E_REFUSED, 0, "the row of '%s' in %s of the image is too long",
					       s->name, s->file);
			split(&r, text, n);
			rc = take_row(s, &r, err);
		}
		text = stop + 1;
	}
	if (rc == 0 && !s->found)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "%s of the image has no '%s'; name one that it has, or write numbers: user: "
			       "\"1000:1000\"",
			       s->file, s->name);
	return rc;
}

static int find_group(const struct accounts *a, const char *name, uint32_t *ret, struct brig_error *err)
{
	struct search s = { .file = "/etc/group", .name = name, .fields = 4 };
	int rc;

	if (is_id(name, ret))
		return 0;
	rc = look_up(&s, a->group ? a->group : "", a->group ? a->group_len : 0, err);
	*ret = s.id[0];
	return rc;
}

int accounts_find(const struct accounts *a, const char *user, uint32_t *ret_uid, uint32_t *ret_gid,
		  struct brig_error *err)
{
	char name[LINE_MAX_BYTES], *group;
	struct search s = { .file = "/etc/passwd", .name = name, .fields = 7, .second = 3 };
	int rc = 0;

	if (!str_copy(name, sizeof(name), user))
		return err_set(err, BRIG_E_REFUSED, 0, "the name of the user is too long");
	group = strchr(name, ':');
	if (group)
		*group++ = '\0';
	if (!group || !is_id(name, &s.id[0]))
		rc = look_up(&s, a->passwd, a->passwd_len, err);
	if (rc == 0 && group)
		rc = find_group(a, group, &s.id[1], err);
	if (rc < 0)
		return rc;
	if (s.id[0] == 0 || s.id[1] == 0)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"user '%s' is %u:%u in the image: a program never runs as user or group 0; name another one",
			user, s.id[0], s.id[1]);
	*ret_uid = s.id[0];
	*ret_gid = s.id[1];
	return 0;
}

/* ---- the tar stream of a file ----------------------------------------------------------------------- */

static bool octal(const char *text, size_t size, uint64_t *ret)
{
	size_t i = 0;

	for (*ret = 0; i < size && text[i] >= '0' && text[i] <= '7'; i++)
		*ret = *ret * 8 + (uint64_t)(text[i] - '0');
	return i > 0 && i < size && (text[i] == '\0' || text[i] == ' ');
}

static bool is_zero(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i])
			return false;
	return true;
}

int accounts_untar(const char *tar, size_t len, const char **ret, size_t *ret_len, struct brig_error *err)
{
	enum { SIZE = 124, TYPE = 156 };
	uint64_t size, padded;

	/* Skips headers with extended attributes. */
	while (len >= TAR_BLOCK && (tar[TYPE] == 'x' || tar[TYPE] == 'g')) {
		if (!octal(tar + SIZE, 12, &size) || size > len)
			break;
		padded = TAR_BLOCK + (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
		tar += min_u64(padded, len);
		len -= min_u64(padded, len);
	}
	if (len < TAR_BLOCK || !octal(tar + SIZE, 12, &size))
		return err_set(err, BRIG_E_SYSTEM, 0, "the archive with the file makes no sense");
	if (tar[TYPE] != '0' && tar[TYPE] != '\0')
		return err_set(err, BRIG_E_REFUSED, 0, "the file is a link or no file at all in the image");
	padded = (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	if (size > ACCOUNTS_MAX || padded > len - TAR_BLOCK ||
	    !is_zero(tar + TAR_BLOCK + padded, len - TAR_BLOCK - padded))
		return err_set(err, BRIG_E_SYSTEM, 0, "the archive with the file is cut off, too large, or holds more");
	*ret = tar + TAR_BLOCK;
	*ret_len = size;
	return 0;
}
