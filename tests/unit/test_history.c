/* SPDX-License-Identifier: Apache-2.0 */
/* The history: what is kept and what is not, and that neither being killed nor damage loses or doubles anything. */
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

static void empty_folder(const char *path)
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

static void new_id(struct world *w)
{
	assert_int_equal(id_random(w->res.id, RUN_ID_LEN), 0);
}

static void fill_result(struct world *w)
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

static int set_up(void **state)
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
		.res = &w->res,
		.set = &w->set,
		.code = "print(1)\n",
		.code_len = 9,
		.file_name = "one.py",
		.policy_origin = "",
	};
	record_hash_code(&w->rec);
	*state = w;
	return 0;
}

static int tear_down(void **state)
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

static void say(struct world *w, struct record_stream *s, const char *text, size_t len)
{
	record_stream_release(s);
	record_stream_begin(s, true, history_head_max(&w->set));
	record_stream_add(s, text, len);
	record_stream_end(s);
}

static void add(struct world *w)
{
	if (history_add(&w->place, &w->rec, &w->notes, &w->err) < 0)
		fail_msg("history_add: %s", w->err.msg);
}

static void add_many(struct world *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		new_id(w);
		add(w);
	}
}

static void ingest(struct world *w)
{
	if (history_ingest(&w->place, &keep_all, 60 * SECOND, &w->notes, &w->err) < 0)
		fail_msg("history_ingest: %s", w->err.msg);
}

static json_t *list(struct world *w, const struct history_query *q)
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
static size_t count(struct world *w, const struct history_query *q)
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

static json_t *show(struct world *w, const char *prefix)
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

static const char *text_of(const json_t *doc, const char *part)
{
	return json_string_value(json_object_get(json_object_get(doc, part), "text"));
}

static void put_file(struct world *w, const char *name, const void *data, size_t len)
{
	AUTO_FD fd = openat(w->dir.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
}

static char *get_file(struct world *w, const char *name, size_t *ret_len)
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

static bool is_there(struct world *w, const char *name)
{
	return faccessat(w->dir.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool was_noted(struct world *w, const char *word)
{
	for (size_t i = 0; i < w->notes.n; i++)
		if (strstr(w->notes.text[i], word))
			return true;
	return false;
}

/* ---- moments ------------------------------------------------------------------------------------- */

static void test_moments(void **state UNUSED)
{
	const uint64_t now = (uint64_t)1794798000 * SECOND; /* 2026-11-16T03:00:00Z */
	static const struct {
		const char *text;
		uint64_t secs;
	} good[] = {
		{ "now", 1794798000 },
		{ "2h", 1794798000 - 7200 },
		{ "7d", 1794798000 - 7 * 86400 },
		{ "45s", 1794798000 - 45 },
		{ "3w", 1794798000 - 3 * 604800 },
		{ "today", 1794787200 },
		{ "yesterday", 1794787200 - 86400 },
		{ "2026-11-16", 1794787200 },
		{ "2026-11-16 02:00", 1794787200 + 7200 },
		{ "2026-11-16T02:00:01", 1794787200 + 7201 },
		{ "2026-11-16T02:00:01Z", 1794787200 + 7201 },
		{ "2026-11-16T02:00:00+02:00", 1794787200 },
		{ "2026-11-15T23:00:00-01:00", 1794787200 },
		{ "@12", 12 },
		{ "99999999999999w", 0 },
	};
	static const char *const bad[] = {
		"",
		"2",
		"h",
		"-2h",
		"2 h",
		"2026-02-30",
		"2026-13-01",
		"2026-1-1",
		"2026-11-16T25:00",
		"2026-11-16T02:00:00X",
		"2026-11-16T02",
		"@",
		"@-1",
		"@99999999999999999999",
		"tomorrow",
		"1969-12-31",
		"2026-11-16T02:00:00+99:00",
		"9999-01-01",
	};
	char text[WHEN_TEXT_MAX];
	uint64_t ns;

	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	tzset();
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (!when_parse(good[i].text, now, &ns))
			fail_msg("'%s' is not read", good[i].text);
		if (ns != good[i].secs * SECOND)
			fail_msg("'%s' is %llu", good[i].text, (unsigned long long)(ns / SECOND));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (when_parse(bad[i], now, &ns))
			fail_msg("'%s' is read as %llu", bad[i], (unsigned long long)(ns / SECOND));
	assert_true(when_parse("2026-11-16T02:00:00.25Z", now, &ns) && ns % SECOND == SECOND / 4);
	assert_string_equal(when_utc(text, sizeof(text), ns), "2026-11-16T02:00:00.250Z");
	assert_string_equal(when_local(text, sizeof(text), ns), "2026-11-16 02:00:00");
}

/* ---- the redact list ------------------------------------------------------------------------------ */

static struct setting_list patterns(const char *const *items)
{
	struct setting_list l = { 0 };

	for (; *items; items++)
		(void)str_copy(l.item[l.n++], SETTING_ITEM_MAX, *items);
	return l;
}

static void check_redact(const char *const *items, struct redact_text t, const char *want)
{
	const struct setting_list l = patterns(items);
	AUTO_BUF out = BUF_INIT(64 * KiB);

	(void)redact(&l, &t, &out);
	if (!str_eq(buf_str(&out), want))
		fail_msg("'%.*s' with '%s' gave '%s', not '%s'", (int)t.len, t.data, items[0] ? items[0] : "",
			 buf_str(&out), want);
}

#define WHOLE(text) ((struct redact_text){ .data = (text), .len = strlen(text), .keep = strlen(text) })
#define LIST(...)   ((const char *const[]){ __VA_ARGS__, NULL })

static void test_redact(void **state UNUSED)
{
	check_redact(LIST(NULL), WHOLE("nothing to hide"), "nothing to hide");
	check_redact(LIST("secret"), WHOLE("a secret, secretly"), "a ***, ***ly");
	check_redact(LIST("token=*"), WHOLE("token=abc123; x\ntoken=d e"), "*** x\n*** e");
	check_redact(LIST("AKIA*X"), WHOLE("AKIA1X2X3 AKIA"), "***3 AKIA");
	check_redact(LIST("*secret"), WHOLE("my-secret is secret"), "*** is ***");
	check_redact(LIST("a*b*c"), WHOLE("axbxc a b c abc"), "*** a b c ***");
	check_redact(LIST("a**b"), WHOLE("ab axxb"), "*** ***");
	check_redact(LIST("*"), WHOLE("all of it\n"), "*** *** ***\n");
	check_redact(LIST("aa"), WHOLE("aaaaa"), "***a"); /* two in a row are one mark */
	check_redact(LIST("abc", "bcd"), WHOLE("xabcdx"), "x***x");
	check_redact(LIST(""), WHOLE("abc"), "abc");
	check_redact(LIST("pass word"), WHOLE("the pass word is"), "the *** is");
	check_redact(LIST("a*"), WHOLE("ä a\xff\xfe b"), "ä *** b");
	check_redact(LIST("secret"), WHOLE("secre secres ecret"), "secre secres ecret");
}

/* What the cut goes through is found by what is behind the cut, or by its beginning where that is not known. */
static void test_redact_at_the_cut(void **state UNUSED)
{
	const char *text = "key=secret tail";

	check_redact(LIST("secret"), (struct redact_text){ .data = text, .len = 15, .keep = 7, .cut = true },
		     "key=***");
	check_redact(LIST("secret"), (struct redact_text){ .data = text, .len = 7, .keep = 7, .cut = true }, "key=***");
	check_redact(LIST("secret"), (struct redact_text){ .data = text, .len = 7, .keep = 7 }, "key=sec");
	check_redact(LIST("k*"), (struct redact_text){ .data = text, .len = 9, .keep = 4, .cut = true }, "***");
	check_redact(LIST("tail"), (struct redact_text){ .data = text, .len = 15, .keep = 7, .cut = true }, "key=sec");
	/* A character is not cut in two, whether or not the rest of it is at hand. */
	check_redact(LIST(NULL), (struct redact_text){ .data = "ab€", .len = 5, .keep = 4 }, "ab");
	check_redact(LIST(NULL), (struct redact_text){ .data = "ab€", .len = 4, .keep = 4, .cut = true }, "ab");
	check_redact(LIST(NULL), (struct redact_text){ .data = "ab€", .len = 5, .keep = 5 }, "ab€");
	check_redact(LIST(NULL), (struct redact_text){ .data = "ab\x80\x80\x80", .len = 5, .keep = 4 }, "ab\x80\x80");
}

/* A pattern and a text that would make a search with steps back take for ever. */
static void test_redact_is_quick(void **state UNUSED)
{
	const struct setting_list l = patterns(LIST("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "a*a*a*a*a*a*a*a*a*a*a*a*b"));
	static char text[MiB];
	AUTO_BUF out = BUF_INIT(2 * MiB);

	memset(text, 'a', sizeof(text));
	assert_false(
		redact(&l, &(struct redact_text){ .data = text, .len = sizeof(text), .keep = sizeof(text) }, &out));
	assert_int_equal(out.len, sizeof(text));
}

/* ---- what is kept -------------------------------------------------------------------------------- */

static void test_everything_comes_back(void **state)
{
	struct world *w = *state;
	const struct finding f = { .rule = "py-process",
				   .severity = SEVERITY_HIGH,
				   .line = 3,
				   .column = 4,
				   .end_line = 3,
				   .end_column = 9,
				   .name = "os.system",
				   .message = "starts a process",
				   .remedy = "do not" };
	const json_t *samples;
	json_t *doc;

	assert_true(findings_add(&w->res.findings, &f));
	w->res.verdict = VERDICT_crash;
	w->res.exit_code = -1;
	w->res.signal = SIGSEGV;
	w->res.phase_ns[PHASE_RUN] = 1234567;
	w->rec.audit_seq = 12;
	say(w, &w->rec.out, "out\x00\xff", 5);
	say(w, &w->rec.err, "err\n", 4);
	add(w);
	doc = show(w, w->res.id);
	assert_string_equal(json_string_value(json_object_get(doc, "id")), w->res.id);
	assert_string_equal(json_string_value(json_object_get(doc, "verdict")), "crash");
	assert_true(json_is_null(json_object_get(doc, "exit_code")));
	assert_string_equal(json_string_value(json_object_get(doc, "signal")), "SIGSEGV");
	assert_int_equal(json_integer_value(json_object_get(doc, "uid")), 7);
	assert_int_equal(json_integer_value(json_object_get(doc, "audit_seq")), 12);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(doc, "usage"), "wall_ms")), 18);
	assert_true(json_integer_value(json_object_get(json_object_get(doc, "limits"), "inodes")) == INT64_MAX);
	assert_true(json_real_value(json_object_get(json_object_get(doc, "timing"), "run_ms")) == 1.234);
	assert_int_equal(json_array_size(json_object_get(doc, "findings")), 1);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(json_object_get(doc, "findings"), 0), "name")),
		"os.system");
	assert_true(json_is_true(json_object_get(json_array_get(json_object_get(doc, "evidence"), 0), "kept")));
	assert_string_equal(json_string_value(json_array_get(json_object_get(doc, "warnings"), 0)),
			    "the disk limit was reached");
	assert_int_equal(json_array_size(json_object_get(doc, "degraded")), 1);
	assert_string_equal(text_of(doc, "code"), "print(1)\n");
	assert_string_equal(text_of(doc, "stdout"), "b3V0AP8=");
	assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "stdout"), "encoding")), "base64");
	assert_string_equal(text_of(doc, "stderr"), "err\n");
	/* The chart's series is short, ends where it ended, and keeps the peak. */
	samples = json_object_get(doc, "samples");
	assert_int_equal(json_array_size(samples), HISTORY_SAMPLES_MAX);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(samples, 63), "at_ms")), 1990);
	for (size_t i = 0, peak = 0; i < HISTORY_SAMPLES_MAX; i++) {
		peak += json_integer_value(json_object_get(json_array_get(samples, i), "memory_bytes")) == 999;
		if (i == HISTORY_SAMPLES_MAX - 1)
			assert_int_equal(peak, 1);
	}
	json_decref(doc);
}

/* Hashes only, the first 4 KB, or all of it. */
static void test_keep(void **state)
{
	struct world *w = *state;
	static char text[3 * RECORD_HEAD_MAX];
	static const struct {
		enum keep keep;
		size_t kept;
	} rows[] = { { KEEP_NONE, 0 }, { KEEP_HEAD, RECORD_HEAD_MAX }, { KEEP_ALL, sizeof(text) } };

	memset(text, 'x', sizeof(text));
	w->rec.code = text;
	w->rec.code_len = sizeof(text);
	record_hash_code(&w->rec);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *doc;

		w->set.keep_code = w->set.keep_output = rows[i].keep;
		say(w, &w->rec.out, text, sizeof(text));
		new_id(w);
		add(w);
		doc = show(w, w->res.id);
		for (const char *const *part = LIST("code", "stdout"); *part; part++) {
			const json_t *p = json_object_get(doc, *part);
			const char *kept = text_of(doc, *part);

			assert_int_equal(json_integer_value(json_object_get(p, "bytes")), sizeof(text));
			assert_int_equal(strlen(json_string_value(json_object_get(p, "sha256"))), SHA256_HEX);
			assert_int_equal(json_is_true(json_object_get(p, "truncated")), rows[i].kept < sizeof(text));
			assert_int_equal(kept ? strlen(kept) : 0, rows[i].kept);
			assert_int_equal(kept != NULL, rows[i].keep != KEEP_NONE);
		}
		json_decref(doc);
	}
}

static void test_redacted_before_the_disk(void **state)
{
	struct world *w = *state;
	static char text[RECORD_HEAD_MAX + 100];
	const struct finding f = { .rule = "r", .name = "hunter2", .message = "uses hunter2" };
	size_t len;
	AUTO_FREE char *spool = NULL;
	json_t *doc;

	w->set.redact = patterns(LIST("hunter2", "token=*"));
	/* One secret goes through the cut. */
	memset(text, ' ', sizeof(text));
	memcpy(text + RECORD_HEAD_MAX - 3, "hunter2", 7);
	w->rec.code = "pw = 'hunter2' # token=abcdef\n";
	w->rec.code_len = strlen(w->rec.code);
	(void)str_copy(w->res.reason, sizeof(w->res.reason), "hunter2 at line 1");
	result_warn(&w->res, "hunter2");
	assert_true(findings_add(&w->res.findings, &f));
	say(w, &w->rec.out, text, sizeof(text));
	add(w);
	spool = get_file(w, SPOOL_NAME, &len);
	assert_null(memmem(spool, len, "hunter2", 7));
	assert_null(memmem(spool, len, "hun", 3));
	assert_null(memmem(spool, len, "abcdef", 6));
	doc = show(w, w->res.id);
	assert_string_equal(text_of(doc, "code"), "pw = '***' # ***\n");
	assert_true(json_is_true(json_object_get(json_object_get(doc, "code"), "redacted")));
	assert_true(json_is_true(json_object_get(json_object_get(doc, "stdout"), "redacted")));
	assert_string_equal(json_string_value(json_object_get(doc, "reason")), "*** at line 1");
	json_decref(doc);
}

/* ---- asking -------------------------------------------------------------------------------------- */

static void test_filters(void **state)
{
	struct world *w = *state;
	const uint64_t now = w->rec.wall_ns;

	add(w);
	new_id(w);
	w->res.verdict = VERDICT_timeout;
	w->res.trust = TRUST_TRUSTED;
	w->rec.wall_ns = now - 2 * DAY;
	(void)str_copy(w->res.language, sizeof(w->res.language), "go");
	add(w);
	assert_int_equal(count(w, NULL), 2);
	assert_int_equal(count(w, &(struct history_query){ .verdict = "timeout" }), 1);
	assert_int_equal(count(w, &(struct history_query){ .verdict = "crash" }), 0);
	assert_int_equal(count(w, &(struct history_query){ .language = "python" }), 1);
	assert_int_equal(count(w, &(struct history_query){ .trust = "trusted" }), 1);
	assert_int_equal(count(w, &(struct history_query){ .since_ns = now - DAY }), 1);
	assert_int_equal(count(w, &(struct history_query){ .until_ns = now - DAY }), 1);
	assert_int_equal(count(w, &(struct history_query){ .since_ns = now, .until_ns = now }), 0);
	assert_int_equal(count(w, &(struct history_query){ .limit = 1 }), 2); /* of two, the youngest is listed */
}

static void test_youngest_first(void **state)
{
	struct world *w = *state;
	const uint64_t now = w->rec.wall_ns;
	char youngest[RUN_ID_LEN + 1];
	json_t *doc;

	/* The clock may go backwards: order is by what it said. */
	memcpy(youngest, w->res.id, sizeof(youngest));
	add(w);
	for (uint64_t i = 1; i < 4; i++) {
		w->rec.wall_ns = now - i * SECOND;
		new_id(w);
		add(w);
	}
	ingest(w);
	doc = list(w, &(struct history_query){ .limit = 1 });
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(json_object_get(doc, "executions"), 0), "id")),
		youngest);
	json_decref(doc);
}

static void test_prefix(void **state)
{
	struct world *w = *state;
	char *text = NULL;

	(void)str_copy(w->res.id, sizeof(w->res.id), "abcdefghijklmnop");
	add(w);
	(void)str_copy(w->res.id, sizeof(w->res.id), "abcx234567aaaaaa");
	add(w);
	json_decref(show(w, "abcd"));
	json_decref(show(w, "abcx234567aaaaaa"));
	assert_int_equal(history_show_json(&w->place, "abc", &w->notes, &text, &w->err), -BRIG_E_USAGE);
	assert_non_null(strstr(w->err.msg, "abcdefghijklmnop"));
	assert_non_null(strstr(w->err.msg, "abcx234567aaaaaa"));
	assert_int_equal(history_show_json(&w->place, "zz", &w->notes, &text, &w->err), -BRIG_E_USAGE);
	for (const char *const *bad = LIST("", "ABC", "a'b", "abcdefghijklmnopq", "%", "a1"); *bad; bad++)
		assert_int_equal(history_show_json(&w->place, *bad, &w->notes, &text, &w->err), -BRIG_E_USAGE);
	assert_null(text);
}

/* ---- the spool ------------------------------------------------------------------------------------ */

static int count_record(void *arg, const void *record, size_t len)
{
	char id[RUN_ID_LEN + 1];

	assert_true(packed_check(record, len, id));
	++*(size_t *)arg;
	return 0;
}

static size_t scan(const char *data, size_t len, struct spool_report *ret)
{
	size_t n = 0;

	assert_int_equal(spool_scan(data, len, count_record, &n, ret), 0);
	assert_int_equal(n, ret->records);
	return n;
}

/* Wherever a spool was cut, what was whole before stays, and what comes later is found. */
static void test_torn_at_every_byte(void **state)
{
	struct world *w = *state;
	size_t len, first;
	AUTO_FREE char *spool = NULL;
	struct spool_report report;

	w->res.samples.n = 0; /* small records: this is tried at every byte */
	w->res.degraded = 0;
	add_many(w, 1);
	free(get_file(w, SPOOL_NAME, &first));
	add_many(w, 1);
	spool = get_file(w, SPOOL_NAME, &len);
	assert_int_equal(scan(spool, len, &report), 2);
	assert_int_equal(report.damaged_bytes, 0);
	for (size_t cut = 0; cut < len; cut++) {
		size_t now;
		AUTO_FREE char *after = NULL;

		put_file(w, SPOOL_NAME, spool, cut);
		add_many(w, 1);
		after = get_file(w, SPOOL_NAME, &now);
		assert_int_equal(scan(after, now, &report), cut < first ? 1 : 2);
		if (cut == first || cut < SPOOL_HEAD)
			assert_int_equal(report.damaged_bytes, 0);
	}
	assert_int_equal(w->notes.n, 0);
}

/* Whatever byte is wrong, the other records are found. */
static void test_any_byte_wrong(void **state)
{
	struct world *w = *state;
	size_t len;
	AUTO_FREE char *spool = NULL;
	struct spool_report report;

	w->res.samples.n = 0;
	add_many(w, 3);
	spool = get_file(w, SPOOL_NAME, &len);
	for (size_t i = 0; i < len; i++) {
		size_t n;

		spool[i] ^= 0x40;
		n = scan(spool, len, &report);
		assert_true(i < SPOOL_HEAD ? n == 0 : n == 2);
		assert_true(report.damaged_bytes > 0);
		spool[i] ^= 0x40;
	}
}

/* A program prints what looks like a record; the record of its run is torn: nothing is found inside the piece. */
static void test_no_forgery_from_inside(void **state)
{
	struct world *w = *state;
	size_t len, now;
	AUTO_FREE char *other = NULL, *spool = NULL;
	struct spool_report report;

	add_many(w, 1);
	other = get_file(w, SPOOL_NAME, &len);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, 0), 0);
	assert_true(len < RECORD_HEAD_MAX);
	say(w, &w->rec.out, other, len);
	add_many(w, 1);
	spool = get_file(w, SPOOL_NAME, &now);
	assert_non_null(memmem(spool, now, other, len));
	assert_int_equal(scan(spool, now - 1, &report), 0);
	assert_int_equal(report.damaged_bytes, now - 1 - SPOOL_HEAD);
}

static void test_damage_is_set_aside(void **state)
{
	struct world *w = *state;
	size_t len;
	AUTO_FREE char *spool = NULL;

	add_many(w, 3);
	spool = get_file(w, SPOOL_NAME, &len);
	spool[len - 1] ^= 1;
	put_file(w, SPOOL_NAME, spool, len);
	assert_int_equal(count(w, NULL), 2);
	assert_true(was_noted(w, "damaged"));
	assert_true(is_there(w, SPOOL_TAKEN_NAME ".bad-1"));
	assert_false(is_there(w, SPOOL_TAKEN_NAME));
	/* Nothing grows without end: the last of the names is used again. */
	for (int i = 0; i < 12; i++) {
		put_file(w, SPOOL_NAME, spool, len);
		assert_int_equal(count(w, NULL), 2);
	}
	assert_true(is_there(w, SPOOL_TAKEN_NAME ".bad-9"));
	assert_false(is_there(w, SPOOL_TAKEN_NAME ".bad-10"));
}

static void test_something_else_in_its_place(void **state)
{
	struct world *w = *state;
	static const char garbage[] = "these are 64 bytes of something that is not a spool at all......";

	put_file(w, SPOOL_NAME, garbage, sizeof(garbage));
	add(w);
	assert_true(was_noted(w, "no spool"));
	assert_true(is_there(w, SPOOL_NAME ".bad-1"));
	assert_int_equal(count(w, NULL), 1);
}

/* Neither followed nor waited for. */
static void test_no_regular_file(void **state)
{
	struct world *w = *state;

	assert_int_equal(symlinkat("/dev/null", w->dir.fd, SPOOL_NAME), 0);
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, 0), 0);
	assert_int_equal(mkfifoat(w->dir.fd, SPOOL_NAME, 0600), 0);
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, 0), 0);
	assert_int_equal(mkdirat(w->dir.fd, SPOOL_NAME, 0700), 0);
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, AT_REMOVEDIR), 0);
	add(w);
	assert_int_equal(count(w, NULL), 1);
}

static void test_full_spool(void **state)
{
	struct world *w = *state;
	AUTO_FD fd = FD_NONE;
	struct stat st;

	add(w);
	fd = openat(w->dir.fd, SPOOL_NAME, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)SPOOL_MAX - 10), 0); /* a hole: takes no room */
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_non_null(strstr(w->err.msg, "full"));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, SPOOL_MAX - 10);
	/* It is not lost: a reader makes room again. */
	assert_int_equal(count(w, NULL), 1);
	add_many(w, 1);
	assert_int_equal(count(w, NULL), 2);
}

/* A write that the kernel takes only a part of is taken back. */
static void test_no_room(void **state)
{
	struct world *w = *state;
	size_t len, after;
	AUTO_FREE char *spool = NULL, *now = NULL;
	int status;
	pid_t child;

	add(w);
	spool = get_file(w, SPOOL_NAME, &len);
	child = fork();
	if (child == 0) {
		const struct rlimit limit = { len + 100, len + 100 };

		(void)signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(2);
		_exit(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	now = get_file(w, SPOOL_NAME, &after);
	assert_int_equal(after, len);
	assert_memory_equal(spool, now, len);
}

/* ---- being killed ---------------------------------------------------------------------------------- */

static struct {
	const char *point;
	int after; /* so many of them */
} death;

static void die_there(const char *point)
{
	if (str_eq(point, death.point) && death.after-- == 0)
		(void)kill(getpid(), SIGKILL);
}

/* Brings in until it dies at that point.  False: it never came there. */
static bool killed_at(struct world *w, const char *point, int after)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		death.point = point;
		death.after = after;
		w->place.at = die_there;
		_exit(history_ingest(&w->place, &keep_all, 60 * SECOND, &w->notes, &w->err) < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void test_killed_while_bringing_in(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *point;
		int after;
	} points[] = {
		{ "taken", 0 },    { "record", 0 },    { "record", 2 },  { "record", 4 },
		{ "inserted", 0 }, { "committed", 0 }, { "removed", 0 }, { "taken", 1 },
	};
	size_t expected = 0;

	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		add_many(w, 5);
		expected += 5;
		assert_true(killed_at(w, points[i].point, points[i].after));
		/* And once more by the one who comes after. */
		(void)killed_at(w, points[i].point, points[i].after);
		add_many(w, 1);
		expected += 1;
		assert_int_equal(count(w, NULL), expected);
		assert_false(is_there(w, SPOOL_TAKEN_NAME));
	}
	assert_int_equal(w->notes.n, 0);
}

#define WRITERS    8
#define WRITES_MAX 60 /* some are killed while they write, some when they are done */

/* A writer tells of each record that is written; it is killed in the middle of the next ones. */
static pid_t start_writer(struct world *w, int *ret_fd)
{
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		(void)close(ends[0]);
		for (int i = 0; i < WRITES_MAX; i++) {
			if (id_random(w->res.id, RUN_ID_LEN) < 0 ||
			    history_add(&w->place, &w->rec, &w->notes, &w->err) < 0 || write(ends[1], "x", 1) != 1)
				_exit(1);
		}
		for (;;)
			(void)pause(); /* until it is killed */
	}
	assert_true(child > 0);
	(void)close(ends[1]);
	*ret_fd = ends[0];
	return child;
}

static void test_killed_writers(void **state)
{
	struct world *w = *state;
	size_t told = 0, most = 0, found;

	for (int round = 0; round < 3; round++) {
		pid_t writer[WRITERS];
		int fd[WRITERS];
		char told_of[4096];

		for (int i = 0; i < WRITERS; i++)
			writer[i] = start_writer(w, &fd[i]);
		for (int i = 0; i < WRITERS; i++) {
			ssize_t n;

			assert_int_equal(fd_read_all(fd[i], told_of, 10 + (size_t)i), 10 + i);
			assert_int_equal(kill(writer[i], SIGKILL), 0);
			assert_int_equal(waitpid(writer[i], NULL, 0), writer[i]);
			told += 10 + (size_t)i;
			while ((n = read(fd[i], told_of, sizeof(told_of))) > 0)
				told += (size_t)n;
			most++; /* written, and not told of */
			(void)close(fd[i]);
		}
		found = count(w, NULL);
		if (found < told || found > told + most)
			fail_msg("%zu executions, %zu were told of by %zu writers", found, told, most);
	}
	assert_int_equal(w->notes.n, 0);
}

/* Eight write while others bring in: each is there once. */
static void test_side_by_side(void **state)
{
	struct world *w = *state;
	pid_t child[WRITERS];
	int status;

	for (int i = 0; i < WRITERS; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			for (int k = 0; k < 25; k++) {
				if (id_random(w->res.id, RUN_ID_LEN) < 0 ||
				    history_add(&w->place, &w->rec, &w->notes, &w->err) < 0)
					_exit(1);
				if (k % 8 == i &&
				    history_ingest(&w->place, &keep_all, 60 * SECOND, &w->notes, &w->err) < 0)
					_exit(2);
			}
			_exit(w->notes.n > 0 ? 3 : 0);
		}
	}
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count(w, NULL), WRITERS * 25);
}

/* The one who writes past the mark brings in, unless somebody does already. */
static void test_writer_brings_in(void **state)
{
	struct world *w = *state;
	static char code[64 * KiB];
	size_t n = 0;

	memset(code, 'x', sizeof(code));
	w->set.keep_code = KEEP_ALL;
	w->rec.code = code;
	w->rec.code_len = sizeof(code);
	while (!is_there(w, DB_NAME)) {
		add_many(w, 1);
		assert_true(++n <= SPOOL_INGEST / sizeof(code) + 1);
	}
	assert_true(n >= SPOOL_INGEST / sizeof(code) - 1);
	assert_false(is_there(w, SPOOL_NAME));
	assert_int_equal(count(w, NULL), n);
}

static void test_lock_is_held(void **state)
{
	struct world *w = *state;
	AUTO_FD lock = history_lock(&w->place, 0, &w->err);

	assert_true(lock >= 0);
	add(w);
	assert_int_equal(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err), -BRIG_E_SYSTEM);
	assert_int_equal(w->err.sys, ETIMEDOUT);
	fd_closep(&lock);
	assert_int_equal(count(w, NULL), 1);
}

/* ---- forgetting ------------------------------------------------------------------------------------ */

static void test_age(void **state)
{
	struct world *w = *state;
	const uint64_t now = w->rec.wall_ns;
	const struct history_retention keep = { .days = 3, .bytes = keep_all.bytes };

	for (uint64_t days = 0; days < 6; days++) {
		w->rec.wall_ns = now - days * DAY + SECOND * 3600;
		add_many(w, 1);
	}
	assert_int_equal(history_ingest(&w->place, &keep, 0, &w->notes, &w->err), 0);
	assert_int_equal(count(w, NULL), 4);
	/* What belongs to the forgotten ones is forgotten too. */
	{
		AUTO_DB db = { .handle = NULL };
		int64_t n = -1;

		assert_int_equal(db_open(&db, &w->dir, DB_READ, &w->err), 0);
		assert_int_equal(db_number(&db, "SELECT count(*) FROM evidence", &n, &w->err), 0);
		assert_int_equal(n, 4);
		assert_int_equal(db_number(&db, "SELECT count(DISTINCT execution) FROM texts", &n, &w->err), 0);
		assert_int_equal(n, 4);
	}
}

static void test_size(void **state)
{
	struct world *w = *state;
	const struct history_retention keep = { .days = keep_all.days, .bytes = MiB };
	static char code[32 * KiB];
	char youngest[RUN_ID_LEN + 1];
	struct stat st;
	size_t n;

	memset(code, 'x', sizeof(code));
	w->set.keep_code = KEEP_ALL;
	w->rec.code = code;
	w->rec.code_len = sizeof(code);
	for (int i = 0; i < 60; i++) {
		w->rec.wall_ns += SECOND;
		add_many(w, 1);
		assert_int_equal(history_ingest(&w->place, &keep, 0, &w->notes, &w->err), 0);
	}
	memcpy(youngest, w->res.id, sizeof(youngest));
	assert_int_equal(fstatat(w->dir.fd, DB_NAME, &st, 0), 0);
	assert_true(st.st_size <= (off_t)(MiB + 64 * KiB));
	n = count(w, NULL);
	assert_true(n > 5 && n < 32);
	json_decref(show(w, youngest));
}

/* ---- a database that is no good --------------------------------------------------------------------- */

static void test_damaged_database(void **state)
{
	struct world *w = *state;
	static char garbage[8192];
	size_t len;
	AUTO_FREE char *good = NULL;

	add(w);
	assert_int_equal(count(w, NULL), 1);
	good = get_file(w, DB_NAME, &len);
	memset(garbage, 'g', sizeof(garbage));
	for (int kind = 0; kind < 3; kind++) {
		w->notes.n = 0;
		empty_folder(w->path);
		if (kind == 0) {
			put_file(w, DB_NAME, garbage, sizeof(garbage));
		} else if (kind == 1) {
			put_file(w, DB_NAME, good, len / 2); /* the end is missing */
		} else {
			AUTO_FREE char *bad = malloc(len);

			assert_non_null(bad);
			memcpy(bad, good, len);
			memset(bad + 4096, 0xee, len - 4096); /* all but the first page */
			put_file(w, DB_NAME, bad, len);
		}
		add_many(w, 2);
		assert_int_equal(count(w, NULL), 2);
		assert_true(was_noted(w, "history.db.bad-1"));
		assert_true(is_there(w, DB_NAME ".bad-1"));
		add_many(w, 1);
		assert_int_equal(count(w, NULL), 3);
	}
}

/* Damage that only a reader meets. */
static void test_damage_met_by_a_reader(void **state)
{
	struct world *w = *state;
	size_t len;
	AUTO_FREE char *db = NULL;
	json_t *doc;

	add_many(w, 20);
	assert_int_equal(count(w, NULL), 20);
	db = get_file(w, DB_NAME, &len);
	memset(db + 4096, 0xee, len - 4096);
	put_file(w, DB_NAME, db, len);
	doc = list(w, NULL);
	assert_int_equal(json_array_size(json_object_get(doc, "executions")), 0);
	json_decref(doc);
	assert_true(was_noted(w, "history.db.bad-1"));
	add_many(w, 1);
	assert_int_equal(count(w, NULL), 1);
}

static void exec_sql(struct world *w, const char *sql)
{
	AUTO_DB db = { .handle = NULL };

	assert_int_equal(db_open(&db, &w->dir, DB_WRITE, &w->err), 0);
	assert_int_equal(db_exec(&db, sql, &w->err), 0);
}

static void test_others_databases(void **state)
{
	struct world *w = *state;

	/* A later version's is left alone, and what is spooled waits. */
	add(w);
	assert_int_equal(count(w, NULL), 1);
	exec_sql(w, "PRAGMA user_version = 99;");
	add_many(w, 1);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_non_null(strstr(w->err.msg, "newer"));
	assert_true(is_there(w, SPOOL_TAKEN_NAME));
	{
		struct db db = { .handle = NULL };

		assert_int_equal(db_open(&db, &w->dir, DB_READ, &w->err), 0);
		db_close(&db);
	}
	/* Another program's is set aside. */
	empty_folder(w->path);
	exec_sql(w, "PRAGMA application_id = 7;");
	add_many(w, 1);
	assert_int_equal(count(w, NULL), 1);
	assert_true(is_there(w, DB_NAME ".bad-1"));
}

static void test_database_is_no_file(void **state)
{
	struct world *w = *state;

	add(w);
	assert_int_equal(symlinkat("/etc/passwd", w->dir.fd, DB_NAME), 0);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, DB_NAME, 0), 0);
	assert_int_equal(mkfifoat(w->dir.fd, DB_NAME, 0600), 0);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, DB_NAME, 0), 0);
	assert_int_equal(mkdirat(w->dir.fd, DB_NAME, 0700), 0);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, DB_NAME, AT_REMOVEDIR), 0);
	/* Nothing was lost meanwhile. */
	assert_int_equal(count(w, NULL), 1);
}

/* Nobody else may read it, whatever the umask. */
static void test_modes(void **state)
{
	struct world *w = *state;
	mode_t was = umask(0);
	struct stat st;

	add(w);
	assert_int_equal(fstatat(w->dir.fd, SPOOL_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(count(w, NULL), 1);
	(void)umask(was);
	assert_int_equal(fstatat(w->dir.fd, DB_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* ---- records -------------------------------------------------------------------------------------- */

/* A later version may know more tables and columns. */
static void test_later_record(void **state)
{
	struct world *w = *state;
	AUTO_BUF record = BUF_INIT(64 * KiB);
	struct spool_outcome outcome;
	struct packed_writer p;

	spool_record_begin(&record);
	packed_begin(&p, &record);
	packed_row(&p, TABLE_executions);
	packed_text(&p, "abcdefghijklmnop");
	packed_num(&p, w->rec.wall_ns);
	for (int i = 0; i < 60; i++)
		packed_num(&p, (uint64_t)i);
	packed_row(&p, (enum history_table)200);
	packed_real(&p, 1.5);
	assert_int_equal(spool_append(&w->dir, &record, &outcome, &w->err), 0);
	assert_int_equal(count(w, NULL), 1);
	assert_int_equal(w->notes.n, 0);
}

/* Whole by its checksum, and yet not understood: kept for somebody to look at. */
static void test_strange_record(void **state)
{
	struct world *w = *state;
	AUTO_BUF record = BUF_INIT(64 * KiB);
	struct spool_outcome outcome;

	spool_record_begin(&record);
	buf_adds(&record, "\x01 not a row");
	assert_int_equal(spool_append(&w->dir, &record, &outcome, &w->err), 0);
	add(w);
	assert_int_equal(count(w, NULL), 1);
	assert_true(was_noted(w, "not understood"));
	assert_true(is_there(w, SPOOL_TAKEN_NAME ".bad-1"));
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_redact),
		cmocka_unit_test(test_redact_at_the_cut),
		cmocka_unit_test(test_redact_is_quick),
		IN_WORLD(test_everything_comes_back),
		IN_WORLD(test_keep),
		IN_WORLD(test_redacted_before_the_disk),
		IN_WORLD(test_filters),
		IN_WORLD(test_youngest_first),
		IN_WORLD(test_prefix),
		IN_WORLD(test_torn_at_every_byte),
		IN_WORLD(test_any_byte_wrong),
		IN_WORLD(test_no_forgery_from_inside),
		IN_WORLD(test_damage_is_set_aside),
		IN_WORLD(test_something_else_in_its_place),
		IN_WORLD(test_no_regular_file),
		IN_WORLD(test_full_spool),
		IN_WORLD(test_no_room),
		IN_WORLD(test_killed_while_bringing_in),
		IN_WORLD(test_killed_writers),
		IN_WORLD(test_side_by_side),
		IN_WORLD(test_writer_brings_in),
		IN_WORLD(test_lock_is_held),
		IN_WORLD(test_age),
		IN_WORLD(test_size),
		IN_WORLD(test_damaged_database),
		IN_WORLD(test_damage_met_by_a_reader),
		IN_WORLD(test_others_databases),
		IN_WORLD(test_database_is_no_file),
		IN_WORLD(test_modes),
		IN_WORLD(test_later_record),
		IN_WORLD(test_strange_record),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
