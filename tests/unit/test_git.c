/* SPDX-License-Identifier: Apache-2.0 */
/* What of a repository may come over: names and contents, good ones as git writes them and bad ones as nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <endian.h>
#include <string.h>

#include "base/str.h"
#include "workspace/git.h"

#define H40 "0123456789abcdef0123456789abcdef01234567"
#define H64 H40 "0123456789abcdef01234567"

static void names_are_sorted_out(void **state UNUSED)
{
	static const struct {
		const char *path;
		bool is_dir;
		enum git_part part;
	} rows[] = {
		{ ".git/HEAD", false, GIT_HEAD },
		{ ".git/index", false, GIT_INDEX },
		{ ".git/packed-refs", false, GIT_PACKED },
		{ ".git/refs/heads/main", false, GIT_REF },
		{ ".git/refs/heads/a/b-c", false, GIT_REF },
		{ ".git/refs/tags/v1.0", false, GIT_REF },
		{ ".git/refs/heads/a", true, GIT_WAY },
		{ ".git/objects/ab", true, GIT_WAY },
		{ ".git/objects/pack", true, GIT_WAY },
		{ ".git/objects/01/23456789abcdef0123456789abcdef01234567", false, GIT_OBJECT },
		{ ".git/objects/pack/pack-" H40 ".pack", false, GIT_OBJECT },
		{ ".git/objects/pack/pack-" H64 ".idx", false, GIT_OBJECT },
		{ ".git/HEAD", true, GIT_NEVER },
		{ ".git/config", false, GIT_NEVER },
		{ ".git/config.worktree", false, GIT_NEVER },
		{ ".git/hooks", true, GIT_NEVER },
		{ ".git/hooks/pre-commit", false, GIT_NEVER },
		{ ".git/info/attributes", false, GIT_NEVER },
		{ ".git/objects/info", true, GIT_NEVER },
		{ ".git/objects/info/alternates", false, GIT_NEVER },
		{ ".git/objects/0G/23456789abcdef0123456789abcdef01234567", false, GIT_NEVER },
		{ ".git/objects/01/23456789abcdef0123456789abcdef0123456", false, GIT_NEVER },
		{ ".git/objects/pack/pack-" H40 ".keep", false, GIT_NEVER },
		{ ".git/objects/pack/pack-../../x.pack", false, GIT_NEVER },
		{ ".git/modules", true, GIT_NEVER },
		{ ".git/worktrees", true, GIT_NEVER },
		{ ".git/commondir", false, GIT_NEVER },
		{ ".git/gitdir", false, GIT_NEVER },
		{ ".git/logs/HEAD", false, GIT_NEVER },
		{ ".git/refs/remotes/origin/main", false, GIT_NEVER },
		{ ".git/refs/stash", false, GIT_NEVER },
		{ ".git/refs/heads/.hidden", false, GIT_NEVER },
		{ ".git/refs/heads/../x", false, GIT_NEVER },
		{ ".git/refs/heads/a..b", false, GIT_NEVER },
		{ ".git/refs/heads/x.lock", false, GIT_NEVER },
		{ ".git/refs/heads/-x", false, GIT_NEVER },
		{ ".git/refs/heads/a b", false, GIT_NEVER },
		{ ".git/refs/heads/a@{1}", false, GIT_NEVER },
		{ ".git/refs/heads/@", false, GIT_NEVER },
		{ ".git/refs/heads/a\nb", false, GIT_NEVER },
		{ ".git/refs/heads/a.", false, GIT_NEVER },
		{ "sub/.git/HEAD", false, GIT_NEVER },
		{ ".GIT/HEAD", false, GIT_NEVER },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (git_part_of(rows[i].path, rows[i].is_dir) != rows[i].part)
			fail_msg("%s", rows[i].path);
}

static bool sound(enum git_part part, const char *text, const char *was)
{
	return git_part_sound(part, text, strlen(text), was, strlen(was), false);
}

static void heads_and_branches_name_one_commit(void **state UNUSED)
{
	assert_true(sound(GIT_REF, H40 "\n", ""));
	assert_true(sound(GIT_REF, H64, ""));
	assert_false(sound(GIT_REF, "ref: refs/heads/x\n", ""));
	assert_false(sound(GIT_REF, H40 "\n\n", ""));
	assert_false(sound(GIT_REF, "", ""));
	assert_true(sound(GIT_HEAD, "ref: refs/heads/a/b\n", ""));
	assert_true(sound(GIT_HEAD, H40 "\n", ""));
	assert_false(sound(GIT_HEAD, "ref: refs/heads/\n", ""));
	assert_false(sound(GIT_HEAD, "ref: refs/heads/../../x\n", ""));
	assert_false(sound(GIT_HEAD, "ref: refs/remotes/o/x\n", ""));
	assert_false(sound(GIT_HEAD, "ref: refs/heads/a\nb\n", ""));
}

static void packed_names_move_branches_only(void **state UNUSED)
{
#define HEAD_LINE "# pack-refs with: peeled fully-peeled sorted \n"
#define REMOTE    H40 " refs/remotes/o/main\n"
	assert_true(sound(GIT_PACKED, HEAD_LINE H40 " refs/heads/main\n" H40 " refs/tags/v1\n^" H40 "\n", ""));
	assert_true(sound(GIT_PACKED, HEAD_LINE H40 " refs/heads/new\n" REMOTE, HEAD_LINE REMOTE));
	assert_false(sound(GIT_PACKED, HEAD_LINE REMOTE, HEAD_LINE));          /* one more */
	assert_false(sound(GIT_PACKED, HEAD_LINE, HEAD_LINE REMOTE));          /* one less */
	assert_false(sound(GIT_PACKED, H64 " refs/remotes/o/main\n", REMOTE)); /* another one */
	assert_false(sound(GIT_PACKED, H40 " refs/heads/../x\n", ""));
	assert_false(sound(GIT_PACKED, H40 " HEAD\n", ""));
	assert_false(sound(GIT_PACKED, H40 " refs/heads/main", "")); /* no end */
	assert_false(sound(GIT_PACKED, "x\n", ""));
	assert_false(sound(GIT_PACKED, H40 " refs/heads/a\n# pack-refs with: x\n", ""));
}

/* ---- the index --------------------------------------------------------------------------------- */

struct index {
	char text[512];
	size_t len;
};

static void put_u32(struct index *x, uint32_t v)
{
	v = htobe32(v);
	memcpy(x->text + x->len, &v, sizeof(v));
	x->len += sizeof(v);
}

static void begin(struct index *x, uint32_t version, uint32_t entries)
{
	*x = (struct index){ .len = 4 };
	memcpy(x->text, "DIRC", 4);
	put_u32(x, version);
	put_u32(x, entries);
}

static void put_entry(struct index *x, uint32_t mode, const char *path, bool more)
{
	size_t from = x->len;

	x->len += 24;
	put_u32(x, mode);
	x->len += 12 + 20;
	x->text[x->len] = more ? 0x40 : 0;
	x->len += more ? 4 : 2;
	memcpy(x->text + x->len, path, strlen(path));
	x->len = from + (x->len - from + strlen(path) + 8) / 8 * 8;
}

static void put_extension(struct index *x, const char *name, uint32_t len)
{
	memcpy(x->text + x->len, name, 4);
	x->len += 4;
	put_u32(x, len);
	x->len += len;
}

static bool index_is_sound(struct index *x)
{
	x->len += 20; /* the checksum: git's to look at */
	return git_part_sound(GIT_INDEX, x->text, x->len, "", 0, false);
}

static void an_index_names_no_path_of_gits(void **state UNUSED)
{
	static const char *const bad[] = { ".git/hooks/x", "a/.git/x", ".GIT/x", "/etc/passwd", "../x", "a/../x",
					   "a//b",         "./a",      "" };
	struct index x;

	begin(&x, 2, 2);
	put_entry(&x, 0100644, "a.txt", false);
	put_entry(&x, 0120000, "folder/link", false);
	put_extension(&x, "TREE", 9);
	assert_true(index_is_sound(&x));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin(&x, 2, 1);
		put_entry(&x, 0100644, bad[i], false);
		if (index_is_sound(&x))
			fail_msg("'%s'", bad[i]);
	}
}

static void an_index_that_is_not_understood_is_not_taken(void **state UNUSED)
{
	static const struct {
		uint32_t version, entries, mode;
		const char *extension;
		bool more, good;
	} rows[] = {
		{ 3, 1, 0100755, "EOIE", true, true },   { 2, 1, 0100644, "TREE", true, false },
		{ 4, 1, 0100644, "TREE", false, false }, { 2, 2, 0100644, "TREE", false, false },
		{ 2, 0, 0100644, "TREE", false, false }, { 2, 1, 0040000, "TREE", false, false },
		{ 2, 1, 0104755, "TREE", false, false }, { 2, 1, 0100644, "link", false, false },
		{ 2, 1, 0100644, "FSMN", false, false }, { 2, 1, 0100644, "TREE", false, true },
	};
	struct index x;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin(&x, rows[i].version, rows[i].entries);
		put_entry(&x, rows[i].mode, "a.txt", rows[i].more);
		put_extension(&x, rows[i].extension, 8);
		if (index_is_sound(&x) != rows[i].good)
			fail_msg("row %zu", i);
	}
	/* Cut anywhere, it is none, and nothing is read behind its end. */
	begin(&x, 2, 1);
	put_entry(&x, 0100644, "a.txt", false);
	put_extension(&x, "TREE", 8);
	for (size_t len = 0; len < x.len + 20; len++) {
		AUTO_FREE char *exact = malloc(len + 1);

		memcpy(exact, x.text, len);
		(void)git_part_sound(GIT_INDEX, exact, len, "", 0, false);
		(void)git_part_sound(GIT_INDEX, exact, len, "", 0, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_sorted_out),
		cmocka_unit_test(heads_and_branches_name_one_commit),
		cmocka_unit_test(packed_names_move_branches_only),
		cmocka_unit_test(an_index_names_no_path_of_gits),
		cmocka_unit_test(an_index_that_is_not_understood_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
