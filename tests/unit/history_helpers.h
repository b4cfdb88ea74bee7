/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the history share: a state folder, a record to put there, and questions. */
#ifndef HISTORY_HELPERS_H
#define HISTORY_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "base/when.h"
#include "history/db.h"
#include "history/encode.h"
#include "history/history.h"
#include "history/ingest.h"
#include "history/packed.h"
#include "history/redact.h"
#include "history/spool.h"

#define SECOND NS_PER_SEC
#define DAY    (86400 * SECOND)

/* ---- a state folder and a record to put there ---------------------------------------------------- */

struct world {
	char path[64];
	struct statedir dir;
	struct history_place place;
	struct history_notes notes;
	struct brig_error err;
	struct settings set;
	struct result res;
	struct record rec;
};

static const struct history_retention keep_all = { .days = 36500, .bytes = 1024 * GiB };

static inline void empty_folder(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)) != NULL) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) < 0)
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d)
		(void)closedir(d);
}

static inline void new_id(struct world *w)
{
	assert_int_equal(id_random(w->res.id, RUN_ID_LEN), 0);
}

static inline void fill_result(struct world *w)
{
	struct result *r = &w->res;

	result_init(r);
	new_id(w);
	r->verdict = VERDICT_ok;
	r->exit_code = 0;
	(void)str_copy(r->language, sizeof(r->language), "python");
	(void)str_copy(r->backend, sizeof(r->backend), "native");
	(void)str_copy(r->step, sizeof(r->step), "run");
	r->usage.wall_ms = 18;
	r->usage.memory_peak_bytes = 9 * MiB;
	r->has_limits = true;
	r->limits.wall_ms = 30000;
	r->limits.inodes = UINT64_MAX; /* no limit */
	r->evidence.n = r->evidence.kept = 1;
	r->evidence.row[0] =
		(struct evidence_row){ .check = "pids_limit", .declared = "<= 64", .enforced = "64", .kept = true };
	result_warn(r, "the disk limit was reached");
	r->degraded = PROT_BIT(0);
	for (uint64_t i = 0; i < 200; i++)
		sample_series_add(
			&r->samples,
			&(struct sample){ .at_ms = 10 * i, .cpu_ms = 5 * i, .memory_bytes = i == 77 ? 999 : i });
}

static inline int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	(void)snprintf(w->path, sizeof(w->path), "/tmp/history-test-XXXXXX");
	assert_non_null(mkdtemp(w->path));
	assert_int_equal(statedir_open(w->path, false, &w->dir, &w->err), 0);
	w->place.dir = &w->dir;
	w->set.history = true;
	w->set.keep_code = w->set.keep_output = KEEP_HEAD;
	w->set.history_days = keep_all.days;
	w->set.history_size = keep_all.bytes;
	fill_result(w);
	w->rec = (struct record){
		.wall_ns = clock_wall_ns(),
		.uid = 7,
		.who = "",
		.door = "",
		.res = &w->res,
		.set = &w->set,
		.code = "print(1)\n",
		.code_len = 9,
		.file_name = "one.py",
		.policy_origin = "",
	};
	record_hash_request(&w->rec);
	*state = w;
	return 0;
}

static inline int tear_down(void **state)
{
	struct world *w = *state;

	result_release(&w->res);
	record_stream_release(&w->rec.out);
	record_stream_release(&w->rec.err);
	statedir_close(&w->dir);
	empty_folder(w->path);
	assert_int_equal(rmdir(w->path), 0);
	free(w);
	return 0;
}

static inline void say(struct world *w, struct record_stream *s, const char *text, size_t len)
{
	record_stream_release(s);
	record_stream_begin(s, true, history_head_max(&w->set));
	record_stream_add(s, text, len);
	record_stream_end(s);
}

static inline void add(struct world *w)
{
	if (history_add(&w->place, &w->rec, &w->notes, &w->err) < 0)
		fail_msg("history_add: %s", w->err.msg);
}

static inline void add_many(struct world *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		new_id(w);
		add(w);
	}
}

static inline void ingest(struct world *w)
{
	if (history_ingest(&w->place, &keep_all, 60 * SECOND, &w->notes, &w->err) < 0)
		fail_msg("history_ingest: %s", w->err.msg);
}

static inline json_t *list(struct world *w, const struct history_query *q)
{
	static const struct history_query all;
	char *text = NULL;
	json_t *doc;

	if (history_list_json(&w->place, q ? q : &all, &w->notes, &text, &w->err) < 0)
		fail_msg("history_list_json: %s", w->err.msg);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	free(text);
	return doc;
}

/* How many there are, after the spool was brought in. */
static inline size_t count(struct world *w, const struct history_query *q)
{
	json_t *doc;
	size_t n;

	ingest(w);
	doc = list(w, q);
	n = (size_t)json_integer_value(json_object_get(doc, "total"));
	if (!q || !q->limit)
		assert_int_equal(json_array_size(json_object_get(doc, "executions")), n);
	json_decref(doc);
	return n;
}

static inline json_t *show(struct world *w, const char *prefix)
{
	char *text = NULL;
	json_t *doc;

	ingest(w);
	if (history_show_json(&w->place, prefix, &w->notes, &text, &w->err) < 0)
		fail_msg("history_show_json: %s", w->err.msg);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	free(text);
	return doc;
}

static inline const char *text_of(const json_t *doc, const char *part)
{
	return json_string_value(json_object_get(json_object_get(doc, part), "text"));
}

static inline void put_file(struct world *w, const char *name, const void *data, size_t len)
{
	AUTO_FD fd = openat(w->dir.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
}

static inline char *get_file(struct world *w, const char *name, size_t *ret_len)
{
	AUTO_FD fd = openat(w->dir.fd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size + 1);
	assert_non_null(data);
	assert_int_equal(fd_read_all(fd, data, (size_t)st.st_size), st.st_size);
	*ret_len = (size_t)st.st_size;
	return data;
}

static inline bool is_there(struct world *w, const char *name)
{
	return faccessat(w->dir.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline bool was_noted(struct world *w, const char *word)
{
	for (size_t i = 0; i < w->notes.n; i++)
		if (strstr(w->notes.text[i], word))
			return true;
	return false;
}

static inline struct setting_list patterns(const char *const *items)
{
	struct setting_list l = { 0 };

	for (; *items; items++)
		assert_true(setting_list_add(&l, *items));
	return l;
}

#define LIST(...)      ((const char *const[]){ __VA_ARGS__, NULL })
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
