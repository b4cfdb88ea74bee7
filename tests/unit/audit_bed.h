/* SPDX-License-Identifier: Apache-2.0 */
/* A state folder with an audit log in it, for tests of the log. */
#ifndef TESTS_UNIT_AUDIT_BED_H
#define TESTS_UNIT_AUDIT_BED_H

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/log.h"
#include "base/fd.h"
#include "base/str.h"
#include "temp_folder.h"

#define ENTRIES 12

/* A state folder with a log of some runs in it, and what is needed to write more. */
struct bed {
	char path[64];
	struct statedir state;
	struct settings set;
	struct result *res;
	struct record rec;
};

static int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	struct brig_error err = BRIG_ERROR_INIT;

	b->res = calloc(1, sizeof(*b->res));
	(void)str_copy(b->path, sizeof(b->path), "/tmp/test-audit-XXXXXX");
	assert_non_null(mkdtemp(b->path));
	assert_int_equal(statedir_open(b->path, true, &b->state, &err), 0);
	b->set = (struct settings){
		.audit = AUDIT_REQUIRED, .audit_fsync_ms = 1000, .audit_file_size = 1 << 20, .audit_file_days = 30
	};
	result_init(b->res);
	(void)str_copy(b->res->id, sizeof(b->res->id), "abcdefgh");
	(void)str_copy(b->res->language, sizeof(b->res->language), "python");
	b->res->verdict = VERDICT_ok;
	b->rec = (struct record){ .wall_ns = 1700000000 * NS_PER_SEC,
				  .who = "",
				  .door = "",
				  .res = b->res,
				  .set = &b->set,
				  .policy_origin = "" };
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *b = *state;

	statedir_close(&b->state);
	(void)temp_folder_remove(b->path);
	free(b->res);
	free(b);
	return 0;
}

static inline void append(struct bed *b, int n)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct audit_log *log = NULL;

	if (audit_open(&b->state, &log, &err) < 0)
		fail_msg("%s", err.msg);
	for (int i = 0; i < n; i++)
		if (audit_ready(log, &b->set, &err) < 0 || audit_append(log, &b->rec, &err) < 0)
			fail_msg("%s", err.msg);
	audit_close(log);
}

#endif
