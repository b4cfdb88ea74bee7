/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: what is written, what is recovered, and what each change to it is called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "audit_bed.h"

/* ---- files of the log ------------------------------------------------------------------------------ */

static char *log_path(const struct bed *b, const char *name, char *dst, size_t size)
{
	(void)snprintf(dst, size, "%s/audit/%s", b->path, name);
	return dst;
}

struct text {
	char *line[256];
	size_t n;
	char *data;
};

static struct text load(const struct bed *b, const char *name)
{
	char path[160];
	struct text t = { .data = calloc(1, 1 << 20) };
	int fd = open(log_path(b, name, path, sizeof(path)), O_RDONLY);
	char *save = NULL;

	assert_true(fd >= 0);
	assert_true(fd_read_all(fd, t.data, (1 << 20) - 1) >= 0);
	close(fd);
	for (char *line = strtok_r(t.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		t.line[t.n++] = line;
	return t;
}

static void store(const struct bed *b, const char *name, struct text *t)
{
	char path[160];
	FILE *f = fopen(log_path(b, name, path, sizeof(path)), "w");

	assert_non_null(f);
	for (size_t i = 0; i < t->n; i++)
		fprintf(f, "%s\n", t->line[i]);
	assert_int_equal(fclose(f), 0);
	free(t->data);
}

static void remove_line(struct text *t, size_t at)
{
	memmove(&t->line[at], &t->line[at + 1], (t->n - at - 1) * sizeof(t->line[0]));
	t->n--;
}

static void insert_line(struct text *t, size_t at, char *line)
{
	memmove(&t->line[at + 1], &t->line[at], (t->n - at) * sizeof(t->line[0]));
	t->line[at] = line;
	t->n++;
}

/* The answer of audit_verify, for json_decref. */
static json_t *verify(const struct bed *b, int expected)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	json_t *doc;
	int rc = audit_verify(&b->state, &text, &err);

	if (rc < 0)
		fail_msg("%s", err.msg);
	if (rc != expected)
		fail_msg("%s", text);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	free(text);
	return doc;
}

static void expect_whole(const struct bed *b, int runs)
{
	json_t *doc = verify(b, 0);

	assert_int_equal(json_integer_value(json_object_get(doc, "runs")), runs);
	json_decref(doc);
}

/* line 0: not asked. */
static void expect_problem(const struct bed *b, const char *kind, const char *file, int line)
{
	json_t *doc = verify(b, 1), *p = json_object_get(doc, "problem");

	assert_string_equal(json_string_value(json_object_get(p, "kind")), kind);
	if (file)
		assert_string_equal(json_string_value(json_object_get(p, "file")), file);
	if (line)
		assert_int_equal(json_integer_value(json_object_get(p, "line")), line);
	json_decref(doc);
}

/* I1: two requests that differ in one argument or variable have different entries, wherever the bytes are divided. */
static void i1_arguments_and_environment_are_hashed(void **state)
{
	static const char *const lists[][2] = { { "ab", "c" }, { "a", "bc" } };
	/* printf '2:ab,1:c,' | sha256sum */
	static const char first[] =
		"\"args_sha256\":\"c574c25172ecac17c428975b6e876d2a98a72d84660fc96686f942390b360cd8\"";
	struct bed *b = *state;
	struct text t;

	for (size_t i = 0; i < 2; i++) {
		b->rec.args = b->rec.env = lists[i];
		b->rec.n_args = 2 - i; /* the second one has only "a" */
		b->rec.n_env = 2;
		record_hash_request(&b->rec);
		append(b, 1);
	}
	t = load(b, "000001.jsonl");
	assert_non_null(strstr(t.line[1], first));
	assert_null(strstr(t.line[2], first));
	assert_non_null(strstr(t.line[1], "\"trust\":\"unknown\",\"trust_source\":\"built-in\""));
	assert_memory_not_equal(strstr(t.line[1], "\"env_sha256\""), strstr(t.line[2], "\"env_sha256\""), 40);
	free(t.data);
	expect_whole(b, 2);
}

/* ---- writing ------------------------------------------------------------------------------------------ */

static void entries_verify(void **state)
{
	struct bed *b = *state;
	json_t *doc;

	append(b, ENTRIES);
	doc = verify(b, 0);
	assert_int_equal(json_integer_value(json_object_get(doc, "runs")), ENTRIES);
	assert_int_equal(json_integer_value(json_object_get(doc, "entries")), ENTRIES + 1);
	assert_true(json_is_null(json_object_get(doc, "problem")));
	json_decref(doc);
}

static void an_entry_has_every_field(void **state)
{
	static const char frame[] = "seq cp event time prev hash mac ";
	static const char *const names[] = {
#define FIELD(name, how, value, meaning) #name,
#include "audit/events.def"
	};
	struct bed *b = *state;
	struct text t;
	json_t *entry, *value;
	const char *name;
	int found = 0;

	append(b, 1);
	t = load(b, "000001.jsonl");
	entry = json_loads(t.line[1], JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(entry);
	assert_int_equal(json_object_size(entry), 7 + ARRAY_LEN(names));
	json_object_foreach(entry, name, value) found += strstr(frame, name) != NULL;
	assert_true(found >= 7);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!json_object_get(entry, names[i]))
			fail_msg("no member '%s'", names[i]);
	json_decref(entry);
	free(t.data);
}

static void strings_cannot_forge(void **state)
{
	static const char *const evil[] = {
		"\",\"verdict\":\"ok\"}\n{\"seq\":3,\"cp\":0,\"event\":\"run\"",
		"a\nb\rc\x01\x7f\\\" \xff\xfe \xe2\x80\xa8",
		"\\",
	};
	struct bed *b = *state;
	struct audit_filter f = { .verdict = "timeout", .rule = NULL };
	struct brig_error err = BRIG_ERROR_INIT;
	struct text t;

	for (size_t i = 0; i < ARRAY_LEN(evil); i++) {
		(void)str_copy(b->res->reason, sizeof(b->res->reason), evil[i]);
		b->rec.policy_origin = evil[i];
		b->rec.who = evil[i];
		append(b, 1);
	}
	memset(b->res->reason, '\n',
	       sizeof(b->res->reason) - 1); /* the longest there is, and all of it needs quoting */
	append(b, 1);
	expect_whole(b, ARRAY_LEN(evil) + 1);
	t = load(b, "000001.jsonl");
	assert_int_equal(t.n, ARRAY_LEN(evil) + 2);
	for (size_t i = 0; i < t.n; i++) {
		json_t *entry = json_loads(t.line[i], JSON_REJECT_DUPLICATES, NULL);

		assert_non_null(entry);
		if (i > 0)
			assert_string_equal(json_string_value(json_object_get(entry, "verdict")), "ok");
		json_decref(entry);
	}
	free(t.data);
	assert_int_equal(audit_read(&b->state, &f, NULL, NULL, &err), 0); /* the function would be called */
}

static void files_turn_by_size(void **state)
{
	struct bed *b = *state;
	json_t *doc;

	b->set.audit_file_size = 4096;
	append(b, 40);
	doc = verify(b, 0);
	assert_true(json_integer_value(json_object_get(doc, "files")) >= 8);
	assert_int_equal(json_integer_value(json_object_get(doc, "checkpoints")),
			 json_integer_value(json_object_get(doc, "files")) - 1);
	assert_int_equal(json_integer_value(json_object_get(doc, "runs")), 40);
	json_decref(doc);
}

/* The head with other times in it, as if it had been written then. */
static void change_head(struct bed *b, void (*change)(struct head *h))
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct log_key key;
	struct head h;
	int fd;

	assert_int_equal(statedir_open_sub(&b->state, AUDIT_DIR, false, &dir, &err), 0);
	assert_int_equal(log_key_load(&dir, false, &key, &err), 0);
	fd = statedir_open_file(&dir, AUDIT_HEAD, O_RDWR, &err);
	assert_int_equal(head_read(fd, &key, &h), HEAD_GOOD);
	change(&h);
	assert_int_equal(head_write(fd, &key, &h), 0);
	close(fd);
}

static void begun_long_ago(struct head *h)
{
	h->begun_ns -= 31 * 86400 * NS_PER_SEC;
}

static void from_the_future(struct head *h)
{
	h->begun_ns += 1000 * 86400 * NS_PER_SEC;
	h->cp_ns += 1000 * 86400 * NS_PER_SEC;
	h->synced_ns += 1000 * 86400 * NS_PER_SEC;
}

static void files_turn_by_age(void **state)
{
	struct bed *b = *state;
	json_t *doc;

	append(b, 3);
	change_head(b, begun_long_ago);
	append(b, 3);
	doc = verify(b, 0);
	assert_int_equal(json_integer_value(json_object_get(doc, "files")), 2);
	json_decref(doc);
}

/* The clock was set back by years: entries go on, in order, and the checkpoint is not put off until then. */
static void a_clock_set_back_does_no_harm(void **state)
{
	struct bed *b = *state;
	json_t *doc;

	append(b, 3);
	change_head(b, from_the_future);
	b->rec.wall_ns = 1000 * NS_PER_SEC;
	append(b, 3);
	doc = verify(b, 0);
	assert_int_equal(json_integer_value(json_object_get(doc, "runs")), 6);
	assert_int_equal(json_integer_value(json_object_get(doc, "files")), 1);
	assert_int_equal(json_integer_value(json_object_get(doc, "checkpoints")), 1);
	json_decref(doc);
}

/* ---- writers that were killed -------------------------------------------------------------------------- */

static void a_torn_entry_is_cut_off(void **state)
{
	struct bed *b = *state;
	char path[160];
	struct text t;
	int fd;

	append(b, 3);
	t = load(b, "000001.jsonl");
	fd = open(log_path(b, "000001.jsonl", path, sizeof(path)), O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, t.line[3], 100), 100);
	close(fd);
	free(t.data);
	expect_whole(b, 3); /* with a note */
	append(b, 1);
	expect_whole(b, 4);
	t = load(b, "000001.jsonl");
	assert_non_null(strstr(t.line[4], "\"why\":\"torn\",\"cut\":100"));
	free(t.data);
}

/* Killed between the entry and the head: the entry counts. */
static void an_entry_behind_the_head_is_adopted(void **state)
{
	struct bed *b = *state;
	char path[160], old[512];
	ssize_t n;
	int fd;

	append(b, 3);
	fd = open(log_path(b, "head", path, sizeof(path)), O_RDWR);
	n = pread(fd, old, sizeof(old), 0);
	append(b, 2);
	assert_int_equal(pwrite(fd, old, (size_t)n, 0), n);
	close(fd);
	expect_whole(b, 5);
	append(b, 1);
	expect_whole(b, 6);
}

/* Killed while it wrote the first entry of a new file: the head says that the file is empty. */
static void empty_second_file(struct head *h)
{
	h->file = 2;
	h->size = 0;
}

static void a_torn_file_is_begun_again(void **state)
{
	struct bed *b = *state;
	char path[160];
	FILE *f;

	append(b, 3);
	change_head(b, empty_second_file);
	f = fopen(log_path(b, "000002.jsonl", path, sizeof(path)), "w");
	fputs("{\"seq\":5,\"cp\":0,\"ev", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
	append(b, 1);
	expect_whole(b, 4);
}

/* ---- changes by others ----------------------------------------------------------------------------------- */

static void editing_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	memcpy(strstr(t.line[5], "\"verdict\":\"ok\""), "\"verdict\":\"no\"", 14);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "edited", "000001.jsonl", 6);
}

static void editing_with_a_right_hash_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;
	uint8_t hash[SHA256_LEN];
	char hex[SHA256_HEX + 1], *at;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	memcpy(strstr(t.line[5], "\"verdict\":\"ok\""), "\"verdict\":\"no\"", 14);
	at = strstr(t.line[5], ",\"hash\":\"");
	sha256(t.line[5], (size_t)(at - t.line[5]), hash);
	memcpy(at + 9, hex_put(hex, hash, sizeof(hash)), SHA256_HEX);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "edited", "000001.jsonl", 6);
}

static void editing_the_last_one_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	memcpy(strstr(t.line[t.n - 1], "\"verdict\":\"ok\""), "\"verdict\":\"no\"", 14);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "edited", "000001.jsonl", ENTRIES + 1);
}

static void deleting_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	remove_line(&t, 4);
	remove_line(&t, 4);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "deleted", "000001.jsonl", 5);
}

static void deleting_the_first_ones_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	remove_line(&t, 0);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "deleted", "000001.jsonl", 1);
}

static void inserting_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;
	char made_up[] = "{\"seq\":5,\"cp\":0,\"event\":\"run\"}";

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	insert_line(&t, 4, made_up);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "inserted", "000001.jsonl", 5);
}

static void inserting_a_copy_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	insert_line(&t, 6, t.line[3]);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "inserted", "000001.jsonl", 7);
}

static void appending_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;
	char made_up[] = "{\"seq\":14,\"cp\":0,\"event\":\"run\"}";

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	insert_line(&t, t.n, made_up);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "inserted", "000001.jsonl", ENTRIES + 2);
	append(b, 2); /* brig goes on, and what somebody wrote stays for all to see */
	expect_problem(b, "inserted", "000001.jsonl", ENTRIES + 2);
}

static void reordering_is_named(void **state)
{
	static const struct {
		size_t from, to;
	} moves[] = { { 4, 5 }, { 4, 9 }, { 9, 4 }, { 4, ENTRIES } };
	struct bed *b = *state;

	append(b, ENTRIES);
	for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
		struct text t = load(b, "000001.jsonl"), back = load(b, "000001.jsonl");
		char *line = t.line[moves[i].from];

		remove_line(&t, moves[i].from);
		insert_line(&t, moves[i].to, line);
		store(b, "000001.jsonl", &t);
		expect_problem(b, "reordered", "000001.jsonl", 0);
		store(b, "000001.jsonl", &back);
	}
	expect_whole(b, ENTRIES);
}

static void truncating_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	t.n -= 2;
	store(b, "000001.jsonl", &t);
	expect_problem(b, "truncated", NULL, 0);
	append(b, 3); /* goes on from where the head says: the gap shows for ever */
	expect_problem(b, "truncated", "000001.jsonl", ENTRIES);
}

static void truncating_within_an_entry_is_named(void **state)
{
	struct bed *b = *state;
	char path[160];
	struct stat st;

	append(b, ENTRIES);
	log_path(b, "000001.jsonl", path, sizeof(path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 30), 0);
	expect_problem(b, "truncated", NULL, 0);
	append(b, 1);
	expect_problem(b, "truncated", "000001.jsonl", 0);
}

static void removing_the_head_is_named(void **state)
{
	struct bed *b = *state;
	char path[160];
	struct text t;

	append(b, ENTRIES);
	t = load(b, "000001.jsonl");
	t.n -= 2;
	store(b, "000001.jsonl", &t);
	assert_int_equal(unlink(log_path(b, "head", path, sizeof(path))), 0);
	expect_problem(b, "lost_head", NULL, 0);
	append(b, 2);
	expect_problem(b, "lost_head", "000001.jsonl", ENTRIES);
}

static void a_head_of_somebody_else_is_named(void **state)
{
	struct bed *b = *state;
	char path[160];
	int fd;

	append(b, ENTRIES);
	fd = open(log_path(b, "head", path, sizeof(path)), O_RDWR);
	assert_int_equal(pwrite(fd, "\x01", 1, 20), 1);
	close(fd);
	expect_problem(b, "lost_head", NULL, 0);
}

/* A log of several files. */
static void make_files(struct bed *b)
{
	b->set.audit_file_size = 4096;
	append(b, 30);
}

static void rename_log(const struct bed *b, const char *from, const char *to)
{
	char a[160], c[160];

	assert_int_equal(rename(log_path(b, from, a, sizeof(a)), log_path(b, to, c, sizeof(c))), 0);
}

static void swapping_files_is_named(void **state)
{
	struct bed *b = *state;

	make_files(b);
	rename_log(b, "000002.jsonl", "swap");
	rename_log(b, "000003.jsonl", "000002.jsonl");
	rename_log(b, "swap", "000003.jsonl");
	expect_problem(b, "swapped_files", "000002.jsonl", 1);
}

static void removing_a_file_is_named(void **state)
{
	struct bed *b = *state;
	char path[160];

	make_files(b);
	assert_int_equal(unlink(log_path(b, "000002.jsonl", path, sizeof(path))), 0);
	expect_problem(b, "deleted_file", "000003.jsonl", 1);
}

static void removing_the_first_file_is_named(void **state)
{
	struct bed *b = *state;
	char path[160];

	make_files(b);
	assert_int_equal(unlink(log_path(b, "000001.jsonl", path, sizeof(path))), 0);
	expect_problem(b, "deleted_file", "000002.jsonl", 1);
}

static void removing_the_last_file_is_named(void **state)
{
	struct bed *b = *state;
	char path[160];

	append(b, ENTRIES);
	b->set.audit_file_size = 1;
	append(b, 1);
	assert_int_equal(unlink(log_path(b, "000002.jsonl", path, sizeof(path))), 0);
	expect_problem(b, "truncated", NULL, 0);
	b->set.audit_file_size = 1 << 20;
	append(b, 1);
	expect_problem(b, "deleted_file", NULL, 0);
}

static void removing_a_checkpoint_is_named(void **state)
{
	struct bed *b = *state;
	struct text t;

	append(b, 3);
	change_head(b, from_the_future); /* makes one due */
	append(b, 3);
	t = load(b, "000001.jsonl");
	for (size_t i = 0; i < t.n; i++)
		if (strstr(t.line[i], "\"event\":\"checkpoint\"")) {
			remove_line(&t, i);
			break;
		}
	assert_int_equal(t.n, 7);
	store(b, "000001.jsonl", &t);
	expect_problem(b, "removed_checkpoint", "000001.jsonl", 5);
}

static void a_checkpoint_needs_a_known_key(void **state)
{
	struct bed *b = *state;
	char path[160];

	make_files(b);
	(void)snprintf(path, sizeof(path), "%s/keys/public", b->path);
	assert_int_equal(unlink(path), 0);
	expect_problem(b, "bad_signature", "000001.jsonl", 0);
}

static void rotation_keeps_old_checkpoints_true(void **state)
{
	struct bed *b = *state;
	struct brig_error err = BRIG_ERROR_INIT;
	struct audit_log *log = NULL;
	char *json = NULL;
	json_t *doc;

	make_files(b);
	assert_int_equal(audit_open(&b->state, &log, &err), 0);
	if (audit_key_rotate(log, &json, &err) < 0)
		fail_msg("%s", err.msg);
	audit_close(log);
	doc = json_loads(json, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(doc, "keys")), 2);
	json_decref(doc);
	free(json);
	append(b, 20);
	expect_whole(b, 50);
}

static void a_log_without_its_key_is_not_continued(void **state)
{
	struct bed *b = *state;
	struct brig_error err = BRIG_ERROR_INIT;
	struct audit_log *log = NULL;
	char path[160];

	append(b, 3);
	assert_int_equal(unlink(log_path(b, "log.key", path, sizeof(path))), 0);
	assert_int_equal(audit_open(&b->state, &log, &err), 0);
	assert_true(audit_ready(log, &b->set, &err) < 0);
	assert_non_null(strstr(err.msg, "log.key"));
	audit_close(log);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static int count_line(void *arg, const char *line UNUSED, size_t len UNUSED)
{
	++*(int *)arg;
	return 0;
}

static int count_matches(const struct bed *b, const struct audit_filter *f)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int n = 0;

	if (audit_read(&b->state, f, count_line, &n, &err) < 0)
		fail_msg("%s", err.msg);
	return n;
}

static void conditions_choose(void **state)
{
	struct bed *b = *state;
	struct finding found = { .rule = "py-process", .severity = SEVERITY_HIGH, .line = 1 };

	append(b, 3);
	b->res->verdict = VERDICT_timeout;
	b->rec.wall_ns += 3600 * NS_PER_SEC;
	append(b, 2);
	(void)str_copy(b->res->language, sizeof(b->res->language), "go");
	b->res->trust = TRUST_UNTRUSTED;
	assert_true(findings_add(&b->res->findings, &found));
	append(b, 1);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .last = 0 }), 7);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .runs_only = true }), 6);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .verdict = "timeout" }), 3);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .language = "go" }), 1);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .trust = "untrusted", .verdict = "timeout" }), 1);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .rule = "py-process" }), 1);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .rule = "py-proces" }), 0);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .since_ns = b->rec.wall_ns, .runs_only = true }), 3);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .until_ns = b->rec.wall_ns, .runs_only = true }), 3);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .last = 2 }), 2);
	findings_release(&b->res->findings);
}

static void lines_of_any_length_are_read(void **state)
{
	struct bed *b = *state;
	char path[160];
	FILE *f;

	append(b, 2);
	f = fopen(log_path(b, "000001.jsonl", path, sizeof(path)), "a");
	for (int i = 0; i < 3 * READER_BUF; i++)
		(void)putc('x', f);
	fputs("\nshort\n\n", f);
	assert_int_equal(fclose(f), 0);
	append(b, 2);
	expect_problem(b, "inserted", "000001.jsonl", 4);
	assert_int_equal(count_matches(b, &(struct audit_filter){ .runs_only = true }), 4);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(entries_verify),
		CASE(i1_arguments_and_environment_are_hashed),
		CASE(an_entry_has_every_field),
		CASE(strings_cannot_forge),
		CASE(files_turn_by_size),
		CASE(files_turn_by_age),
		CASE(a_clock_set_back_does_no_harm),
		CASE(a_torn_entry_is_cut_off),
		CASE(an_entry_behind_the_head_is_adopted),
		CASE(a_torn_file_is_begun_again),
		CASE(editing_is_named),
		CASE(editing_with_a_right_hash_is_named),
		CASE(editing_the_last_one_is_named),
		CASE(deleting_is_named),
		CASE(deleting_the_first_ones_is_named),
		CASE(inserting_is_named),
		CASE(inserting_a_copy_is_named),
		CASE(appending_is_named),
		CASE(reordering_is_named),
		CASE(truncating_is_named),
		CASE(truncating_within_an_entry_is_named),
		CASE(removing_the_head_is_named),
		CASE(a_head_of_somebody_else_is_named),
		CASE(swapping_files_is_named),
		CASE(removing_a_file_is_named),
		CASE(removing_the_first_file_is_named),
		CASE(removing_the_last_file_is_named),
		CASE(removing_a_checkpoint_is_named),
		CASE(a_checkpoint_needs_a_known_key),
		CASE(rotation_keeps_old_checkpoints_true),
		CASE(a_log_without_its_key_is_not_continued),
		CASE(conditions_choose),
		CASE(lines_of_any_length_are_read),
	};

	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
