/* SPDX-License-Identifier: Apache-2.0 */
#include "server/archive.h"

#include <string.h>

#include "base/str.h"
#include "base/ustar.h"

/* Offsets in a tar header. */
enum {
	AT_MODE = 100,
	AT_SIZE = 124,
	AT_SUM = 148,
	AT_TYPE = 156,
	AT_MAGIC = 257,
	AT_PREFIX = 345,
	NAME_LEN = 100,
	SIZE_LEN = 12,
	PREFIX_LEN = 155,
};

/* What extended headers set for the following entry. */
struct extended {
	char path[ARCHIVE_PATH_MAX + 1];
	bool has_path, has_size;
	uint64_t size;
};

static int refuse(const struct archive *a, struct brig_error *err, const char *why)
{
	return err_set(err, BRIG_E_USAGE, 0, "the archive, byte %zu: %s", a->at, why);
}

/* Octal digits, with optional leading blanks, ended by a blank, a NUL or the end of the field. */
static bool read_octal(const char *field, size_t len, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	while (i < len && field[i] == ' ')
		i++;
	if (i == len || field[i] < '0' || field[i] > '7')
		return false;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		*ret = *ret << 3 | (uint64_t)(field[i] - '0');
	return i == len || field[i] == ' ' || field[i] == '\0';
}

static bool sum_is_right(const char *head)
{
	uint64_t told, sum = 0;

	for (size_t i = 0; i < USTAR_BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : (unsigned char)head[i];
	return read_octal(head + AT_SUM, 8, &told) && told == sum;
}

static bool is_empty(const char *head)
{
	for (size_t i = 0; i < USTAR_BLOCK; i++)
		if (head[i])
			return false;
	return true;
}

/* ---- names --------------------------------------------------------------------------------------------- */

static bool copy_path(char *dst, const char *text, size_t len)
{
	if (len > ARCHIVE_PATH_MAX || memchr(text, '\0', len))
		return false;
	memcpy(dst, text, len);
	dst[len] = '\0';
	return true;
}

/* The path in the header itself: prefix and name. */
static bool head_path(const char *head, char dst[ARCHIVE_PATH_MAX + 1])
{
	size_t name = strnlen(head, NAME_LEN), prefix = strnlen(head + AT_PREFIX, PREFIX_LEN);

	if (memcmp(head + AT_MAGIC, "ustar\0", 6) != 0)
		prefix = 0; /* old GNU headers use this area for other fields */
	memcpy(dst, head + AT_PREFIX, prefix);
	if (prefix > 0)
		dst[prefix++] = '/';
	memcpy(dst + prefix, head, name);
	dst[prefix + name] = '\0';
	return true;
}

/* Normalises "./a/b" and "a/b/" to "a/b".  NULL, or the reason why the path is invalid. */
static const char *clean_path(char *path)
{
	size_t len;

	while (path[0] == '.' && path[1] == '/')
		memmove(path, path + 2, strlen(path + 2) + 1);
	len = strlen(path);
	if (len > 0 && path[len - 1] == '/')
		path[--len] = '\0';
	if (len == 0 || str_eq(path, "."))
		return NULL;
	if (path[0] == '/')
		return "a path that is absolute";
	if (!str_is_utf8(path, len))
		return "a path that is not UTF-8";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f)
			return "a path with a control character";
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return "a path with '.', '..' or nothing between slashes";
	}
	return NULL;
}

/* ---- extended headers ------------------------------------------------------------------------------------ */

/* Records of the form "LENGTH KEY=VALUE\n"; keys other than path and size are ignored. */
static const char *read_pax(const char *data, size_t len, struct extended *x)
{
	for (size_t at = 0; at < len;) {
		uint64_t n = 0;
		size_t i = at;
		const char *key, *equals;

		for (; i < len && data[i] >= '0' && data[i] <= '9' && n <= len; i++)
			n = n * 10 + (uint64_t)(data[i] - '0');
		if (i == at || i >= len || data[i] != ' ' || n > len - at || n < i - at + 3 || data[at + n - 1] != '\n')
			return "an extended header that cannot be read";
		key = data + i + 1;
		equals = memchr(key, '=', (size_t)(data + at + n - 1 - key));
		if (!equals)
			return "an extended header without a value";
		if (equals - key == 4 && memcmp(key, "path", 4) == 0) {
			x->has_path = copy_path(x->path, equals + 1, (size_t)(data + at + n - 1 - equals - 1));
			if (!x->has_path)
				return "a path that is too long";
		}
		if (equals - key == 4 && memcmp(key, "size", 4) == 0) {
			x->size = 0;
			for (const char *d = equals + 1; d < data + at + n - 1; d++) {
				if (*d < '0' || *d > '9' || x->size > ARCHIVE_BYTES_MAX)
					return "a size that is none";
				x->size = x->size * 10 + (uint64_t)(*d - '0');
			}
			x->has_size = true;
		}
		at += n;
	}
	return NULL;
}

static const char *read_long_name(const char *data, size_t len, struct extended *x)
{
	x->has_path = copy_path(x->path, data, strnlen(data, len));
	return x->has_path ? NULL : "a path that is too long";
}

/* ---- entries ------------------------------------------------------------------------------------------------ */

/*
 * Recognises output of 'tar -cz', 'tar -cj' and similar.  Called only if the first header is invalid, since a file's
 * name may begin with the same bytes.
 */
static bool is_compressed(const struct archive *a)
{
	static const struct {
		size_t len;
		const char *magic;
	} kinds[] = { { 2, "\37\213" }, { 3, "BZh" }, { 6, "\3757zXZ" }, { 4, "\50\265\57\375" } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (a->len >= kinds[i].len && memcmp(a->bytes, kinds[i].magic, kinds[i].len) == 0)
			return true;
	return false;
}

static int refuse_head(const struct archive *a, struct brig_error *err, const char *why)
{
	bool is_other = a->at == 0 && is_compressed(a);

	return refuse(a, err,
		      is_other ? "it is compressed: send it as 'tar -c' writes it, without -z, -j, -J or --zstd" : why);
}

/* The next header and its data: 1, 0 or -code. */
static int next_entry(struct archive *a, const char **ret_head, const char **ret_data, uint64_t *ret_len,
		      const struct extended *x, struct brig_error *err)
{
	const char *head = a->bytes + a->at;

	if (a->len - a->at < USTAR_BLOCK || is_empty(head))
		return a->at == a->len || a->len - a->at >= USTAR_BLOCK ? 0 : refuse_head(a, err, "it is cut");
	if (memcmp(head + AT_MAGIC, "ustar", 5) != 0 || !sum_is_right(head))
		return refuse_head(a, err, "this is no head of a tar archive (ustar or pax)");
	if (!read_octal(head + AT_SIZE, SIZE_LEN, ret_len))
		return refuse(a, err, "a size that is none");
	if (x->has_size)
		*ret_len = x->size;
	if (head[AT_TYPE] == '5')
		*ret_len = 0;
	if (*ret_len > a->len - a->at - USTAR_BLOCK)
		return refuse(a, err, "it is cut within a file");
	*ret_head = head;
	*ret_data = head + USTAR_BLOCK;
	return 1;
}

static void step_over(struct archive *a, uint64_t len)
{
	uint64_t whole = USTAR_BLOCK + len + ustar_padding(len);

	a->at = whole > a->len - a->at ? a->len : a->at + (size_t)whole;
}

/* Handles an entry that is not a file.  NULL, or the reason why it is refused. */
static const char *read_other(char type, const char *data, size_t len, struct extended *x)
{
	switch (type) {
	case 'x':
		return read_pax(data, len, x);
	case 'L':
		return read_long_name(data, len, x);
	case 'g':
	case '5':
		return NULL;
	case '1':
	case '2':
	case 'K':
		return "a link: only files and folders are taken";
	default:
		return "an entry that is neither a file nor a folder";
	}
}

static int take_file(struct archive *a, const char *head, const struct extended *x, struct archive_file *ret,
		     struct brig_error *err)
{
	uint64_t mode;
	const char *why;

	if (x->has_path)
		memcpy(ret->path, x->path, sizeof(x->path));
	else
		(void)head_path(head, ret->path);
	why = clean_path(ret->path);
	if (why || ret->path[0] == '\0')
		return refuse(a, err, why ? why : "a file without a name");
	ret->may_execute = read_octal(head + AT_MODE, 8, &mode) && (mode & 0100);
	return 1;
}

int archive_next(struct archive *a, struct archive_file *ret, struct brig_error *err)
{
	struct extended x = { .has_path = false };

	for (;;) {
		const char *head = NULL, *data = NULL, *why;
		uint64_t len = 0;
		int rc = next_entry(a, &head, &data, &len, &x, err);

		if (rc <= 0 || !head)
			return rc;
		if (head[AT_TYPE] == '0' || head[AT_TYPE] == '\0') {
			rc = take_file(a, head, &x, ret, err);
			ret->data = data;
			ret->len = (size_t)len;
			step_over(a, len);
			return rc;
		}
		why = read_other(head[AT_TYPE], data, (size_t)len, &x);
		if (why)
			return refuse(a, err, why);
		if (head[AT_TYPE] == '5')
			x = (struct extended){ .has_path = false };
		step_over(a, len);
	}
}

bool archive_put(struct buf *out, const struct archive_file *f)
{
	static const char zeroes[USTAR_BLOCK];
	size_t rest = ustar_padding(f->len);

	return ustar_add_head(out, f->path, f->may_execute ? 0755 : 0644, f->len) &&
	       buf_add(out, f->data, f->len) == f->len && buf_add(out, zeroes, rest) == rest;
}
