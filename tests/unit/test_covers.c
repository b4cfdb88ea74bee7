/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths of a workspace are covered, by what the kernel says is mounted: one that was left out is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/native/covers.h"

#define TMPFS   " - tmpfs none rw\n"
#define OVERLAY " - overlay project rw\n"
#define TOP     "66 42 0:39 / / ro" TMPFS "79 66 0:43 / /workspace rw" OVERLAY
#define ENV     "80 79 0:39 /tmp/0 /workspace/.env ro,noexec" TMPFS
#define CONFIG  "81 79 0:39 /tmp/1 /workspace/.git/config ro,noexec" TMPFS
#define SPACE   "83 79 0:39 /tmp/2 /workspace/a\\040b/x.key ro,noexec" TMPFS
#define GIT     "84 79 0:43 /.git /workspace/.git ro" OVERLAY
#define INNER   "85 84 0:39 /tmp/1 /workspace/.git/config ro,noexec" TMPFS

static void read_text(struct covers *c, const char *text)
{
	char *copy = strdup(text), *rest = copy, *line;

	assert_non_null(copy);
	while ((line = strsep(&rest, "\n")) && *line) {
		struct mount_line m;

		assert_true(proc_parse_mount(line, &m));
		covers_note(c, &m);
	}
	free(copy);
}

/* How many of the three hidden paths and the sealed one are found covered. */
static int found(const char *text)
{
	static const char *const hidden[] = { ".env", ".git/config", "a b/x.key" };
	struct covers c = { .row = NULL };
	int n = 0;

	read_text(&c, text);
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		n += covers_hide(&c, hidden[i], i);
	n += covers_seal(&c, ".git");
	covers_release(&c);
	return n;
}

static void masked_counts_what_is_there(void **state)
{
	(void)state;
	assert_int_equal(found(TOP ENV CONFIG SPACE GIT INNER), 4);
	/* The kernel's order is none that could be relied on. */
	assert_int_equal(found(INNER GIT SPACE ENV CONFIG TOP), 4);
	/* Each that was skipped, one at a time. */
	assert_int_equal(found(TOP CONFIG SPACE GIT INNER), 3);
	assert_int_equal(found(TOP ENV CONFIG GIT INNER), 3);
	assert_int_equal(found(TOP ENV SPACE), 2);
	assert_int_equal(found(TOP), 0);
	assert_int_equal(found(""), 0);
}

static void masked_means_seen_by_the_program(void **state)
{
	(void)state;
	/* A seal that came without the mask in it covers that mask. */
	assert_int_equal(found(TOP ENV CONFIG SPACE GIT), 3);
	/* Writable; somebody else's object; another mask's; only a path that begins alike; below another workspace. */
	assert_int_equal(found(TOP "80 79 0:39 /tmp/0 /workspace/.env rw" TMPFS), 0);
	assert_int_equal(found(TOP "80 79 0:43 /.env /workspace/.env ro" OVERLAY), 0);
	assert_int_equal(found(TOP "80 79 0:39 /tmp/2 /workspace/.env ro" TMPFS), 0);
	assert_int_equal(found(TOP "80 79 0:39 /tmp/0 /workspace/.env2 ro" TMPFS), 0);
	assert_int_equal(found(TOP "80 79 0:39 /tmp/0//deleted /workspace/.env ro" TMPFS), 0);
	assert_int_equal(found(TOP "80 12 0:39 /tmp/0 /workspace/.env ro" TMPFS), 0);
	assert_int_equal(found(TOP ENV "90 79 0:50 / /workspace rw" OVERLAY), 0);
	assert_int_equal(found(TOP ENV "90 80 0:50 /x /workspace/.env ro" TMPFS), 0);
}

/* A program may move the folder that a mask is in; it may not be rid of one. */
static void masked_is_followed_to_the_end(void **state)
{
	struct covers c = { .row = NULL };

	(void)state;
	read_text(&c, TOP ENV CONFIG "83 79 0:39 /tmp/2 /workspace/moved/x.key ro,noexec" TMPFS GIT INNER);
	assert_true(covers_have(&c, 0) && covers_have(&c, 1) && covers_have(&c, 2));
	assert_false(covers_have(&c, 3));
	assert_int_equal(covers_seals(&c), 1);
	covers_release(&c);
	read_text(&c, TOP ENV CONFIG SPACE GIT); /* the mask below the seal is not seen */
	assert_true(covers_have(&c, 0) && !covers_have(&c, 1) && covers_have(&c, 2));
	covers_release(&c);
	read_text(&c, TOP ENV);
	assert_int_equal(covers_seals(&c), 0);
	covers_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masked_counts_what_is_there),
		cmocka_unit_test(masked_means_seen_by_the_program),
		cmocka_unit_test(masked_is_followed_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
