/* SPDX-License-Identifier: Apache-2.0 */
/* The file of counters: nothing is lost between processes, nothing a file can hold breaks a reader or a writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "metrics/layout.h"
#include "temp_folder.h"

static char folder[256];
static struct statedir dir = STATEDIR_INIT;

static int make_folder(void **state UNUSED)
{
	const char *tmp = getenv("TMPDIR");
	struct brig_error err;

	(void)snprintf(folder, sizeof(folder), "%s/brig-metrics-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) && statedir_open(folder, true, &dir, &err) == 0 ? 0 : -1;
}

static int remove_folder(void **state UNUSED)
{
	statedir_close(&dir);
	return temp_folder_remove(folder);
}

/* ---- tools ------------------------------------------------------------------------------------ */

static struct settings settings;

/* A request that ran. */
static void make_result(struct result *r, enum verdict v, const char *language)
{
	result_init(r);
	r->verdict = v;
	(void)str_copy(r->language, sizeof(r->language), language);
	(void)str_copy(r->backend, sizeof(r->backend), "native");
	r->evidence.n = 1;
	r->usage.wall_ms = 20;
	r->usage.cpu_ms = 7;
	r->usage.memory_peak_bytes = 5 * MiB;
	r->usage.output_bytes = 100;
	r->phase_ns[PHASE_RUN] = 21 * NS_PER_MS;
	r->total_ns = 30 * NS_PER_MS;
}

static int count(const struct result *r, struct brig_error *err)
{
	const struct record rec = { .res = r, .set = &settings, .who = "", .policy_origin = "" };

	return metrics_count(&dir, &rec, err);
}

static void count_well(const struct result *r)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (count(r, &err) != 0)
		fail_msg("%s", err.msg);
}

static json_t *read_json(void)
{
	struct metrics_snapshot *s = NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc;

	if (metrics_read(&dir, &s, &err) < 0)
		fail_msg("%s", err.msg);
	doc = metrics_to_json(s);
	metrics_snapshot_free(s);
	assert_non_null(doc);
	return doc;
}

static void read_text(struct buf *out)
{
	struct metrics_snapshot *s = NULL;
	struct brig_error err = BRIG_ERROR_INIT;

	if (metrics_read(&dir, &s, &err) < 0)
		fail_msg("%s", err.msg);
	metrics_to_prometheus(s, out);
	metrics_snapshot_free(s);
}

static long long executions(void)
{
	json_t *doc = read_json();
	long long n = json_integer_value(json_object_get(doc, "executions"));

	json_decref(doc);
	return n;
}

static const char *file_path(const char *name)
{
	static char path[400];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void assert_line(const struct buf *text, const char *line)
{
	char want[300];

	(void)snprintf(want, sizeof(want), "\n%s\n", line);
	if (!strstr(buf_str(text), want))
		fail_msg("no line '%s' in:\n%s", line, buf_str(text));
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static void nothing_counted_is_zero(void **state UNUSED)
{
	AUTO_BUF text = BUF_INIT(MiB);

	assert_int_equal(executions(), 0);
	read_text(&text);
	assert_line(&text, "brig_output_bytes_total 0");
	assert_line(&text, "brig_request_duration_seconds_count 0");
	assert_int_not_equal(access(file_path(METRICS_FILE), F_OK), 0); /* reading makes nothing */
}

static void requests_are_counted(void **state UNUSED)
{
	static struct result r;
	const struct finding f = { .rule = "py-exec", .severity = SEVERITY_HIGH, .span = { 1, 2 } };
	AUTO_BUF text = BUF_INIT(MiB);
	json_t *doc;

	make_result(&r, VERDICT_ok, "python");
	r.degraded = PROT_BIT(0);
	r.cache.events.hit = 1;
	assert_true(findings_add(&r.findings, &f));
	count_well(&r);
	count_well(&r);
	result_release(&r);
	make_result(&r, VERDICT_timeout, "go");
	r.trust = TRUST_TRUSTED;
	count_well(&r);
	make_result(&r, VERDICT_refused, ""); /* nothing ran */
	r.evidence.n = 0;
	r.backend[0] = '\0';
	count_well(&r);
	read_text(&text);
	assert_line(&text,
		    "brig_executions_total{verdict=\"ok\",language=\"python\",backend=\"native\",trust=\"unknown\"} 2");
	assert_line(
		&text,
		"brig_executions_total{verdict=\"timeout\",language=\"go\",backend=\"native\",trust=\"trusted\"} 1");
	assert_line(
		&text,
		"brig_executions_total{verdict=\"refused\",language=\"none\",backend=\"none\",trust=\"unknown\"} 1");
	assert_line(&text, "brig_request_duration_seconds_count 4");
	assert_line(&text, "brig_request_duration_seconds_bucket{le=\"0.025\"} 0");
	assert_line(&text, "brig_request_duration_seconds_bucket{le=\"0.05\"} 4");
	assert_line(&text, "brig_request_duration_seconds_bucket{le=\"+Inf\"} 4");
	assert_line(&text, "brig_step_duration_seconds_count{step=\"run\"} 4");
	assert_line(&text, "brig_memory_peak_bytes_bucket{language=\"python\",le=\"4194304\"} 0");
	assert_line(&text, "brig_memory_peak_bytes_bucket{language=\"python\",le=\"16777216\"} 2");
	assert_line(&text, "brig_memory_peak_bytes_sum{language=\"python\"} 10485760");
	assert_line(&text, "brig_findings_total{rule=\"py-exec\"} 2");
	assert_line(&text, "brig_cache_events_total{event=\"hit\"} 2");
	assert_line(&text, "brig_output_bytes_total 300");
	doc = read_json();
	assert_int_equal(json_integer_value(json_object_get(doc, "executions")), 4);
	assert_true(json_real_value(json_object_get(json_object_get(doc, "rates"), "success")) == 0.5);
	assert_true(json_real_value(json_object_get(json_object_get(doc, "rates"), "timeout")) == 0.25);
	assert_true(json_real_value(json_object_get(json_object_get(doc, "cache"), "hit_rate")) == 1);
	json_decref(doc);
}

static void names_are_bounded(void **state UNUSED)
{
	static struct result r;
	AUTO_BUF text = BUF_INIT(MiB);
	char name[16];

	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "lang-%d", i);
		make_result(&r, VERDICT_ok, name);
		count_well(&r);
	}
	read_text(&text);
	assert_line(&text, "brig_wall_seconds_count{language=\"lang-14\"} 1");
	assert_line(&text, "brig_wall_seconds_count{language=\"other\"} 25");
	assert_null(strstr(buf_str(&text), "lang-15"));
}

/* Text with a syntax of its own stays one label value. */
static void names_are_escaped(void **state UNUSED)
{
	static struct result r;
	struct finding f = { .severity = SEVERITY_LOW, .span = { 1, 2 } };
	AUTO_BUF text = BUF_INIT(MiB);

	make_result(&r, VERDICT_ok, "python");
	(void)str_copy(f.rule, sizeof(f.rule), "a\"} 7 \\");
	assert_true(findings_add(&r.findings, &f));
	f.span.start = 0;
	(void)str_copy(f.rule, sizeof(f.rule), "two\nlines");
	assert_true(findings_add(&r.findings, &f));
	count_well(&r);
	result_release(&r);
	read_text(&text);
	assert_line(&text, "brig_findings_total{rule=\"a\\\"} 7 \\\\\"} 1");
	assert_line(&text, "brig_findings_total{rule=\"unknown-1\"} 1");
}

/* ---- files that are not as they should be ------------------------------------------------------ */

static void overwrite(off_t at, const void *data, size_t len)
{
	int fd = open(file_path(METRICS_FILE), O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, len, at), len);
	close(fd);
}

static void spoil_header(void)
{
	overwrite(20, "X", 1);
}

static void spoil_layout(void)
{
	struct metrics_header h;
	struct metrics_layout l;

	metrics_layout_make(&l);
	l.hash ^= 1;
	metrics_header_make(&l, &h);
	overwrite(0, &h, sizeof(h));
}

static void spoil_cut(void)
{
	assert_int_equal(truncate(file_path(METRICS_FILE), 4096), 0);
}

static void spoil_empty(void)
{
	assert_int_equal(truncate(file_path(METRICS_FILE), 0), 0);
}

static void spoil_grown(void)
{
	assert_int_equal(truncate(file_path(METRICS_FILE), 1 << 20), 0);
}

static void spoil_linked(void)
{
	char other[400];

	(void)snprintf(other, sizeof(other), "%s/elsewhere", folder);
	(void)unlink(other);
	assert_int_equal(link(file_path(METRICS_FILE), other), 0);
}

static void spoiled_files_are_set_aside(void **state UNUSED)
{
	void (*const spoils[])(
		void) = { spoil_header, spoil_layout, spoil_cut, spoil_empty, spoil_grown, spoil_linked };
	static struct result r;

	make_result(&r, VERDICT_ok, "python");
	for (size_t i = 0; i < ARRAY_LEN(spoils); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		struct metrics_snapshot *s = NULL;

		(void)unlink(file_path(METRICS_FILE));
		(void)unlink(file_path(METRICS_FILE ".old"));
		count_well(&r);
		count_well(&r);
		spoils[i]();
		if (spoils[i] != spoil_linked) /* harmless for a reader */
			assert_true(metrics_read(&dir, &s, &err) < 0);
		if (count(&r, &err) != 1)
			fail_msg("spoiling %zu is not noticed", i);
		assert_non_null(strstr(err.msg, METRICS_FILE ".old"));
		assert_int_equal(access(file_path(METRICS_FILE ".old"), F_OK), 0);
		assert_int_equal(executions(), 1);
		count_well(&r); /* and no word about it any more */
		assert_int_equal(executions(), 2);
	}
}

static void planted_things_are_refused(void **state UNUSED)
{
	static struct result r;
	struct brig_error err = BRIG_ERROR_INIT;
	char other[400];
	struct stat st;

	make_result(&r, VERDICT_ok, "python");
	(void)snprintf(other, sizeof(other), "%s/victim", folder);
	close(open(other, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(symlink(other, file_path(METRICS_FILE)), 0);
	assert_true(count(&r, &err) < 0);
	assert_true(*err.msg);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(unlink(file_path(METRICS_FILE)), 0);
	assert_int_equal(mkfifo(file_path(METRICS_FILE), 0600), 0);
	assert_true(count(&r, &err) < 0); /* and does not wait for a reader */
	assert_int_equal(unlink(file_path(METRICS_FILE)), 0);
	assert_int_equal(mkdir(file_path(METRICS_FILE), 0700), 0);
	assert_true(count(&r, &err) < 0);
}

static void no_room_is_said(void **state UNUSED)
{
	static struct result r;
	struct brig_error err = BRIG_ERROR_INIT;
	struct rlimit old, tight;

	make_result(&r, VERDICT_ok, "python");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = (struct rlimit){ .rlim_cur = 4096, .rlim_max = old.rlim_max };
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_true(count(&r, &err) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_not_equal(access(file_path(METRICS_FILE), F_OK), 0);
	assert_int_not_equal(access(file_path(METRICS_FILE ".new"), F_OK), 0);
	count_well(&r);
	assert_int_equal(executions(), 1);
}

/* ---- several processes ------------------------------------------------------------------------ */

#define WRITERS 4
#define ROUNDS  200

static bool count_often(void)
{
	static struct result r;
	struct brig_error err;

	for (int i = 0; i < ROUNDS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "l%d", i % 20); /* more than there are places */
		make_result(&r, VERDICT_ok, name);
		if (count(&r, &err) != 0)
			return false;
	}
	return true;
}

static void no_addition_is_lost(void **state UNUSED)
{
	pid_t pid[WRITERS];
	int status;
	AUTO_BUF text = BUF_INIT(MiB);

	for (int i = 0; i < WRITERS; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			_exit(count_often() ? 0 : 1); /* the first ones also race for making the file */
	}
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(executions(), WRITERS * ROUNDS);
	read_text(&text);
	assert_line(&text, "brig_request_duration_seconds_count 800");
	assert_non_null(strstr(buf_str(&text), "language=\"other\""));
	assert_null(strstr(buf_str(&text), "unknown-")); /* no name is there twice or half */
}

static void killed_writers_spoil_nothing(void **state UNUSED)
{
	static struct result r;

	for (int round = 0; round < 30; round++) {
		int ready[2], status;
		char seen[32];
		pid_t pid;

		assert_int_equal(pipe(ready), 0);
		pid = fork();
		if (pid == 0)
			for (int i = 0;; i++) {
				struct brig_error err;
				char name[16];

				(void)snprintf(name, sizeof(name), "l%d", i % 20);
				make_result(&r, VERDICT_ok, name);
				(void)count(&r, &err);
				(void)!write(ready[1], "w", 1);
			}
		assert_int_equal(fd_read_all(ready[0], seen, (size_t)(1 + round)), 1 + round);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(ready[0]);
		close(ready[1]);
		make_result(&r, VERDICT_ok, "l0");
		count_well(&r); /* the file is as it should be */
	}
	assert_true(executions() >= 30);
}

/* ---- the table -------------------------------------------------------------------------------- */

static void table_is_sound(void **state UNUSED)
{
	struct metrics_layout l;

	metrics_layout_make(&l);
	assert_true(l.size < 128 * KiB);
	for (enum metric m = 0; m < METRIC_COUNT; m++) {
		const struct metric_info *info = &metric_info[m];
		size_t len = strlen(info->name);
		const struct metric_bounds *b = &metric_bounds[info->unit];

		assert_int_equal(l.numbers[m] % sizeof(uint64_t), 0);
		assert_true(strncmp(info->name, "brig_", 5) == 0);
		assert_true(*info->help && info->help[strlen(info->help) - 1] == '.');
		if (info->type == TYPE_COUNTER)
			assert_string_equal(info->name + len - 6, "_total");
		else
			assert_true(b->n > 0 && b->n <= METRIC_BOUNDS_MAX);
		for (size_t i = 1; i < b->n; i++)
			assert_true(b->at[i] > b->at[i - 1]);
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_counted_is_zero), TEST(requests_are_counted),        TEST(names_are_bounded),
		TEST(names_are_escaped),       TEST(spoiled_files_are_set_aside), TEST(planted_things_are_refused),
		TEST(no_room_is_said),         TEST(no_addition_is_lost),         TEST(killed_writers_spoil_nothing),
		TEST(table_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
