/* SPDX-License-Identifier: Apache-2.0 */
/* The history: what is kept and what is not, what can be asked, what is forgotten. */
#include <sys/file.h>

#include "history_helpers.h"

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
	record_hash_request(&w->rec);
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
	const struct finding f = { .rule = "r", .name = "Hunter2", .message = "uses Hunter2" };
	size_t len;
	AUTO_FREE char *spool = NULL;
	json_t *doc;

	w->set.redact = patterns(LIST("Hunter2", "token=*"));
	/* One secret goes through the cut.  No id or hash has its first letter. */
	memset(text, ' ', sizeof(text));
	memcpy(text + RECORD_HEAD_MAX - 3, "Hunter2", 7);
	w->rec.code = "pw = 'Hunter2' # token=abcdef\n";
	w->rec.code_len = strlen(w->rec.code);
	(void)str_copy(w->res.reason, sizeof(w->res.reason), "Hunter2 at line 1");
	result_warn(&w->res, "Hunter2");
	assert_true(findings_add(&w->res.findings, &f));
	say(w, &w->rec.out, text, sizeof(text));
	add(w);
	spool = get_file(w, SPOOL_NAME, &len);
	assert_null(memmem(spool, len, "Hunter2", 7));
	assert_null(memmem(spool, len, "Hun", 3));
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
	w->rec.who = "ci";
	(void)str_copy(w->res.language, sizeof(w->res.language), "go");
	add(w);
	assert_int_equal(count(w, NULL), 2);
	assert_int_equal(count(w, &(struct history_query){ .who = "ci" }), 1);
	assert_int_equal(count(w, &(struct history_query){ .who = "c" }), 0);
	assert_int_equal(count(w, &(struct history_query){ .who = "ci", .trust = "unknown" }), 0);
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
	assert_int_equal(spool_append(&w->dir, NULL, &record, &outcome, &w->err), 0);
	assert_int_equal(count(w, NULL), 1);
	assert_int_equal(w->notes.n, 0);
}

static void append_kept(struct world *w, int *kept, const char *id)
{
	AUTO_BUF record = BUF_INIT(64 * KiB);
	struct packed_writer p;
	struct spool_outcome outcome;

	spool_record_begin(&record);
	packed_begin(&p, &record);
	packed_row(&p, TABLE_executions);
	packed_text(&p, id);
	packed_num(&p, w->rec.wall_ns);
	assert_int_equal(spool_append(&w->dir, kept, &record, &outcome, &w->err), 0);
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* A writer that keeps the spool open locks it only while it writes, and notices that the importer took it. */
static void test_kept_open(void **state)
{
	struct world *w = *state;
	int kept = FD_NONE, other;
	ino_t first;

	append_kept(w, &kept, "abcdefghijklmnop");
	assert_true(kept >= 0);
	first = inode_of(kept);
	append_kept(w, &kept, "bbcdefghijklmnop");
	assert_true(inode_of(kept) == first);
	other = openat(w->dir.fd, SPOOL_NAME, O_RDONLY | O_CLOEXEC);
	assert_true(other >= 0);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
	(void)close(other);
	assert_int_equal(count(w, NULL), 2);
	append_kept(w, &kept, "cbcdefghijklmnop");
	assert_true(is_there(w, SPOOL_NAME));
	assert_int_equal(count(w, NULL), 3);
	(void)close(kept);
}

/* Whole by its checksum, and yet not understood: kept for somebody to look at. */
static void test_strange_record(void **state)
{
	struct world *w = *state;
	AUTO_BUF record = BUF_INIT(64 * KiB);
	struct spool_outcome outcome;

	spool_record_begin(&record);
	buf_adds(&record, "\x01 not a row");
	assert_int_equal(spool_append(&w->dir, NULL, &record, &outcome, &w->err), 0);
	add(w);
	assert_int_equal(count(w, NULL), 1);
	assert_true(was_noted(w, "not understood"));
	assert_true(is_there(w, SPOOL_TAKEN_NAME ".bad-1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_redact),
		cmocka_unit_test(test_redact_at_the_cut),
		cmocka_unit_test(test_redact_is_quick),
		IN_WORLD(test_everything_comes_back),
		IN_WORLD(test_kept_open),
		IN_WORLD(test_keep),
		IN_WORLD(test_redacted_before_the_disk),
		IN_WORLD(test_filters),
		IN_WORLD(test_youngest_first),
		IN_WORLD(test_prefix),
		IN_WORLD(test_age),
		IN_WORLD(test_size),
		IN_WORLD(test_later_record),
		IN_WORLD(test_strange_record),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
