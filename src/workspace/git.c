/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and contents of a repository that may be applied.  A program wrote them, so this is an allow-list; what is
 * listed here is known to be plain data:
 *
 *	objects/ab/..., objects/pack/pack-*   bytes that git reads by their names.  Git itself tells whether they are what
 *	                                      they are called when it reads them, as with those of a remote.
 *	refs/heads, refs/tags, packed-refs    names by git's own rules, each with one hash
 *	HEAD                                  a branch, or a hash
 *	index                                 git writes files where it says, so each path in it is looked at, too
 */
#include "workspace/git.h"

#include <endian.h>
#include <string.h>

#include "base/str.h"
#include "files/beneath.h"

#define SHA1_HEX   40
#define REF_MAX    (4 * KiB)
#define PACKED_MAX (16 * MiB)
#define INDEX_MAX  (256 * MiB)

/* ---- names ------------------------------------------------------------------------------------- */

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr("0123456789abcdef", text[i]) || !text[i])
			return false;
	return len > 0;
}

static bool is_hash(const char *text, size_t len)
{
	return (len == SHA1_HEX || len == SHA256_HEX) && is_hex(text, len);
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(text + len - n, end, n) == 0;
}

/* One component, by the rules of git check-ref-format; a leading dash could be taken for an option. */
static bool component_sound(const char *text, size_t len)
{
	if (len == 0 || text[0] == '.' || text[0] == '-' || text[len - 1] == '.' || ends_with(text, len, ".lock"))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ' || c == 0x7f || strchr("~^:?*[\\", c))
			return false;
		if (i > 0 && ((c == '.' && text[i - 1] == '.') || (c == '{' && text[i - 1] == '@')))
			return false;
	}
	return len > 1 || text[0] != '@';
}

bool git_ref_sound(const char *name, size_t len)
{
	size_t at = 0;

	if (len == 0 || len >= PATH_MAX / 2)
		return false;
	while (at <= len) {
		const char *slash = memchr(name + at, '/', len - at);
		size_t end = slash ? (size_t)(slash - name) : len;

		if (!component_sound(name + at, end - at))
			return false;
		at = end + 1;
	}
	return true;
}

/* "heads/main", "tags/v1": what is behind "refs/". */
static bool is_branch_or_tag(const char *name, size_t len)
{
	static const char *const kinds[] = { "heads/", "tags/" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		size_t n = strlen(kinds[i]);

		if (len > n && memcmp(name, kinds[i], n) == 0)
			return git_ref_sound(name + n, len - n);
	}
	return false;
}

/* Behind "objects/". */
static enum git_part object_part(const char *name, bool is_dir)
{
	static const char pack[] = "pack/pack-";
	static const char *const ends[] = { ".pack", ".idx", ".rev" };
	size_t len = strlen(name);

	if (is_dir)
		return str_eq(name, "pack") || (len == 2 && is_hex(name, 2)) ? GIT_WAY : GIT_NEVER;
	if ((len == SHA1_HEX + 1 || len == SHA256_HEX + 1) && name[2] == '/' && is_hex(name, 2))
		return is_hex(name + 3, len - 3) ? GIT_OBJECT : GIT_NEVER;
	if (strncmp(name, pack, strlen(pack)) != 0)
		return GIT_NEVER;
	name += strlen(pack);
	len -= strlen(pack);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (ends_with(name, len, ends[i]) && is_hash(name, len - strlen(ends[i])))
			return GIT_OBJECT;
	return GIT_NEVER;
}

enum git_part git_part_of(const char *path, bool is_dir)
{
	static const char top[] = GIT_FOLDER "/", objects[] = "objects/", refs[] = "refs/";
	static const char *const ways[] = { "objects", "refs", "refs/heads", "refs/tags" };
	static const struct {
		const char *name;
		enum git_part part;
	} files[] = { { "HEAD", GIT_HEAD }, { "packed-refs", GIT_PACKED }, { "index", GIT_INDEX } };

	if (strncmp(path, top, strlen(top)) != 0)
		return GIT_NEVER;
	path += strlen(top);
	for (size_t i = 0; is_dir && i < ARRAY_LEN(ways); i++)
		if (str_eq(path, ways[i]))
			return GIT_WAY;
	for (size_t i = 0; !is_dir && i < ARRAY_LEN(files); i++)
		if (str_eq(path, files[i].name))
			return files[i].part;
	if (strncmp(path, objects, strlen(objects)) == 0)
		return object_part(path + strlen(objects), is_dir);
	if (strncmp(path, refs, strlen(refs)) == 0 &&
	    is_branch_or_tag(path + strlen(refs), strlen(path + strlen(refs))))
		return is_dir ? GIT_WAY : GIT_REF;
	return GIT_NEVER;
}

/* ---- contents ---------------------------------------------------------------------------------- */

size_t git_part_max(enum git_part part)
{
	return part == GIT_REF || part == GIT_HEAD ? REF_MAX
	       : part == GIT_PACKED                ? PACKED_MAX
	       : part == GIT_INDEX                 ? INDEX_MAX
						   : 0;
}

static bool ref_sound(const char *text, size_t len)
{
	return is_hash(text, len > 0 && text[len - 1] == '\n' ? len - 1 : len);
}

static bool head_sound(const char *text, size_t len)
{
	static const char symbolic[] = "ref: refs/heads/";
	size_t n = strlen(symbolic);

	if (len <= n || memcmp(text, symbolic, n) != 0)
		return ref_sound(text, len);
	return git_ref_sound(text + n, len - n - (text[len - 1] == '\n'));
}

/* One line of packed-refs, without its end. */
static bool packed_line_sound(const char *line, size_t len, bool first)
{
	static const char head[] = "# pack-refs with:", refs[] = " refs/";
	const char *space = memchr(line, ' ', len);
	size_t at = space ? (size_t)(space - line) : len;

	if (first && len >= strlen(head) && memcmp(line, head, strlen(head)) == 0)
		return !memchr(line, '\0', len);
	if (len > 0 && line[0] == '^') /* what the tag of the line before leads to */
		return is_hash(line + 1, len - 1);
	return is_hash(line, at) && len > at + strlen(refs) && memcmp(line + at, refs, strlen(refs)) == 0 &&
	       git_ref_sound(line + at + strlen(refs), len - at - strlen(refs));
}

/* Of those that are neither branches nor tags. */
static bool is_other_ref(const char *line, size_t len)
{
	const char *name = memmem(line, len, " refs/", 6);

	return name && line[0] != '#' && line[0] != '^' && !is_branch_or_tag(name + 6, len - (size_t)(name + 6 - line));
}

/* The next such line from *at on; its length, 0: there is none. */
static size_t next_other(const char *text, size_t len, size_t *at, const char **ret)
{
	while (*at < len) {
		const char *line = text + *at, *end = memchr(line, '\n', len - *at);
		size_t n = end ? (size_t)(end - line) : len - *at;

		*at += n + 1;
		*ret = line;
		if (is_other_ref(line, n))
			return n;
	}
	return 0;
}

/* The program must not move remotes, notes and the stash: their lines must be unchanged. */
static bool same_others(const char *text, size_t len, const char *was, size_t was_len)
{
	size_t at = 0, was_at = 0, n, m;

	do {
		const char *line = NULL, *other = NULL;

		n = next_other(text, len, &at, &line);
		m = next_other(was, was_len, &was_at, &other);
		if (n != m || (n > 0 && memcmp(line, other, n) != 0))
			return false;
	} while (n > 0);
	return true;
}

static bool packed_sound(const char *text, size_t len, const char *was, size_t was_len)
{
	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : 0;

		if (!end || !packed_line_sound(text + at, n, at == 0))
			return false;
		at += n + 1;
	}
	return same_others(text, len, was, was_len);
}

/* ---- the index --------------------------------------------------------------------------------- */

struct index_reader {
	const char *text;
	size_t len, at; /* without the checksum at its end */
};

static bool get_u32(const struct index_reader *r, size_t at, uint32_t *ret)
{
	if (at > r->len || r->len - at < sizeof(*ret))
		return false;
	memcpy(ret, r->text + at, sizeof(*ret));
	*ret = be32toh(*ret);
	return true;
}

/* Files, links and submodules; what else there is in an index (sparse folders) needs an extension that is not taken. */
static bool mode_sound(uint32_t mode)
{
	return mode == 0100644 || mode == 0100755 || mode == 0120000 || mode == 0160000;
}

/*
 * Ten numbers of four bytes, the hash, two bytes of flags, two more if they say so, the path, and NULs up to a multiple
 * of eight.  Git writes files at these paths, and not everywhere asks whether it should.
 */
static bool entry_sound(struct index_reader *r, size_t hash_len, uint32_t version)
{
	enum { FIXED = 40, MODE = 24, MORE_FLAGS = 0x4000 };
	size_t head = FIXED + hash_len + 2, n;
	uint32_t mode;
	const char *path, *end;
	bool more;

	if (r->len - r->at < head + 2 || !get_u32(r, r->at + MODE, &mode) || !mode_sound(mode))
		return false;
	more = (unsigned char)r->text[r->at + head - 2] & (MORE_FLAGS >> 8);
	if (more && version < 3)
		return false;
	head += more ? 2 : 0;
	path = r->text + r->at + head;
	end = memchr(path, '\0', r->len - r->at - head);
	if (!end)
		return false;
	n = (size_t)(end - path);
	if (!beneath_is_path(path, n) || path_has_git(path))
		return false;
	r->at += (head + n + 8) / 8 * 8;
	return r->at <= r->len;
}

/* Of those that git writes by itself; one in small letters would name other files or change what entries mean. */
static bool extension_sound(struct index_reader *r)
{
	static const char *const known[] = { "TREE", "REUC", "EOIE", "IEOT" };
	uint32_t len;
	bool good = false;

	if (!get_u32(r, r->at + 4, &len))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		good |= memcmp(r->text + r->at, known[i], 4) == 0;
	if (!good || len > r->len - r->at - 8)
		return false;
	r->at += 8 + len;
	return true;
}

static bool index_sound(const char *text, size_t len, size_t hash_len)
{
	struct index_reader r = { .text = text, .len = len - hash_len, .at = 12 };
	uint32_t version, entries;

	if (len < 12 + hash_len || memcmp(text, "DIRC", 4) != 0 || !get_u32(&r, 4, &version) ||
	    !get_u32(&r, 8, &entries) || version < 2 || version > 3)
		return false;
	for (; entries > 0; entries--)
		if (!entry_sound(&r, hash_len, version))
			return false;
	while (r.at < r.len)
		if (!extension_sound(&r))
			return false;
	return r.at == r.len;
}

bool git_part_sound(enum git_part part, const char *text, size_t len, const char *was, size_t was_len,
		    bool sha256_names)
{
	switch (part) {
	case GIT_REF:
		return ref_sound(text, len);
	case GIT_HEAD:
		return head_sound(text, len);
	case GIT_PACKED:
		return packed_sound(text, len, was, was_len);
	case GIT_INDEX:
		return index_sound(text, len, (sha256_names ? SHA256_HEX : SHA1_HEX) / 2);
	case GIT_WAY:
	case GIT_OBJECT:
		return true;
	case GIT_NEVER:
		break;
	}
	return false;
}
