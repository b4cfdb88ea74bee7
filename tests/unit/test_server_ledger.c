/* SPDX-License-Identifier: Apache-2.0 */
/* What the runner of the service remembers with a ceiling: promises of earlier lives, and keys of requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/idempotency.h"
#include "server/runner/ledger.h"
#include "temp_folder.h"

/* ---- the ledger ---------------------------------------------------------------------------------------------- */

struct bed {
	char state[256], path[300];
	struct brig *b;
	struct ledger ledger;
};

static int set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;

	assert_non_null(bed);
	*state = bed;
	bed->ledger = (struct ledger)LEDGER_INIT;
	assert_int_equal(temp_folder_make(bed->state, sizeof(bed->state), "ledger"), 0);
	opts.policy_file = "";
	opts.state_dir = bed->state;
	assert_int_equal(brig_open(&opts, &bed->b, NULL), 0);
	(void)snprintf(bed->path, sizeof(bed->path), "%s/serve", bed->state);
	assert_int_equal(mkdir(bed->path, 0700), 0);
	(void)snprintf(bed->path, sizeof(bed->path), "%s/serve/ledger", bed->state);
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	ledger_close(&bed->ledger);
	brig_close(bed->b);
	(void)temp_folder_remove(bed->state);
	free(bed);
	return 0;
}

static void write_ledger(const struct bed *bed, const struct buf *text)
{
	AUTO_FD fd = open(bed->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text->data, text->len), 0);
}

static void open_again(struct bed *bed)
{
	struct brig_error err = BRIG_ERROR_INIT;

	ledger_close(&bed->ledger);
	bed->ledger = (struct ledger)LEDGER_INIT;
	if (ledger_open(&bed->ledger, bed->state, bed->b, &err) < 0)
		fail_msg("%s", err.msg);
}

static const char *verdict_of(const struct bed *bed, const char *id)
{
	const struct ledger_past *p = ledger_find(&bed->ledger, id);

	return p ? p->verdict : "(none)";
}

static void promises_without_an_end_are_lost_and_stay_so(void **state)
{
	struct bed *bed = *state;
	struct brig_error err = BRIG_ERROR_INIT;

	open_again(bed);
	ledger_accept(&bed->ledger, "aaaaaaaaaaaaaaaa", "ann");
	ledger_accept(&bed->ledger, "bbbbbbbbbbbbbbbb", "uid:1000");
	ledger_end(&bed->ledger, "aaaaaaaaaaaaaaaa", "ok");
	assert_int_equal(ledger_commit(&bed->ledger, true, &err), 0);
	for (int i = 0; i < 3; i++) {
		open_again(bed);
		assert_string_equal(verdict_of(bed, "aaaaaaaaaaaaaaaa"), "ok");
		assert_string_equal(verdict_of(bed, "bbbbbbbbbbbbbbbb"), LEDGER_LOST);
		assert_string_equal(ledger_find(&bed->ledger, "bbbbbbbbbbbbbbbb")->owner, "uid:1000");
		assert_string_equal(verdict_of(bed, "cccccccccccccccc"), "(none)");
	}
	assert_null(ledger_find(&bed->ledger, "bbbbbbbbbbbbbbbbb"));
}

static void what_is_no_line_says_nothing(void **state)
{
	struct bed *bed = *state;
	unsigned long long now = clock_wall_ns() / NS_PER_SEC;
	AUTO_BUF text = BUF_INIT(MiB);

	buf_adds(&text, "\n\n% \x01\xff nonsense\na short 1 x\ne aaaaaaaaaaaaaaaa 1\n");
	buf_addf(&text, "a aaaaaaaaaaaaaaaaa %llu too_long\n", now);
	buf_addf(&text, "a bbbbbbbbbbbbbbbb %llu ann\n", now);
	buf_addf(&text, "a dddddddddddddddd %llu ann\n", now - LEDGER_PAST_S - 1); /* too long ago */
	for (int i = 0; i < 1000; i++)
		buf_adds(&text, "x");
	buf_addf(&text, "\na cccccccccccccccc %llu ann\ne cccccccccccccccc %llu ok\na eeeeeeee", now, now);
	write_ledger(bed, &text);
	open_again(bed);
	assert_int_equal(bed->ledger.n_past, 2);
	assert_string_equal(verdict_of(bed, "bbbbbbbbbbbbbbbb"), LEDGER_LOST);
	assert_string_equal(verdict_of(bed, "cccccccccccccccc"), "ok");
}

/* An id that says its number. */
static void number_id(unsigned n, char dst[EXECUTION_ID_LEN + 1])
{
	memset(dst, 'a', EXECUTION_ID_LEN);
	dst[EXECUTION_ID_LEN] = '\0';
	for (size_t i = 0; n > 0; n /= 26, i++)
		dst[EXECUTION_ID_LEN - 1 - i] = (char)('a' + n % 26);
}

static void the_oldest_promises_go(void **state)
{
	enum { MORE = 500 };
	struct bed *bed = *state;
	unsigned long long now = clock_wall_ns() / NS_PER_SEC;
	AUTO_BUF text = BUF_INIT(16 * MiB);
	char id[EXECUTION_ID_LEN + 1];
	struct stat st;

	for (unsigned i = 0; i < LEDGER_PAST_MAX + MORE; i++) {
		number_id(i, id);
		buf_addf(&text, "a %s %llu ann\n", id, now);
	}
	write_ledger(bed, &text);
	open_again(bed);
	assert_int_equal(bed->ledger.n_past, LEDGER_PAST_MAX);
	number_id(MORE - 1, id);
	assert_string_equal(verdict_of(bed, id), "(none)");
	number_id(MORE, id);
	assert_string_equal(verdict_of(bed, id), LEDGER_LOST);
	number_id(LEDGER_PAST_MAX + MORE - 1, id);
	assert_string_equal(verdict_of(bed, id), LEDGER_LOST);
	assert_int_equal(stat(bed->path, &st), 0);
	assert_true((uint64_t)st.st_size == bed->ledger.journal.bytes);
}

static void a_file_that_others_can_write_is_refused(void **state)
{
	struct bed *bed = *state;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF text = BUF_INIT(KiB);

	buf_adds(&text, "a bbbbbbbbbbbbbbbb 1 ann\n");
	write_ledger(bed, &text);
	assert_int_equal(chmod(bed->path, 0666), 0);
	assert_true(ledger_open(&bed->ledger, bed->state, bed->b, &err) < 0);
	assert_non_null(strstr(err.msg, "ledger"));
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void keys_are_found_until_they_are_old_or_too_many(void **state UNUSED)
{
	struct idempotency t = IDEMPOTENCY_INIT;
	uint8_t name[SHA256_LEN], other[SHA256_LEN], body[SHA256_LEN] = { 1 };
	char key[32];

	idempotency_name("ann", "0", name);
	idempotency_name("ann0", "", other);
	assert_memory_not_equal(name, other, SHA256_LEN);
	assert_null(idempotency_find(&t, name, 10));
	assert_true(idempotency_add(&t, name, body, "aaaaaaaaaaaaaaaa", 10));
	assert_string_equal(idempotency_find(&t, name, 10)->id, "aaaaaaaaaaaaaaaa");
	assert_null(idempotency_find(&t, other, 10));
	assert_non_null(idempotency_find(&t, name, 9 + IDEMPOTENCY_S));
	assert_null(idempotency_find(&t, name, 10 + IDEMPOTENCY_S));
	idempotency_forget(&t, "aaaaaaaaaaaaaaaa");
	assert_null(idempotency_find(&t, name, 10));
	assert_true(idempotency_add(&t, name, body, "bbbbbbbbbbbbbbbb", 11));
	assert_string_equal(idempotency_find(&t, name, 11)->id, "bbbbbbbbbbbbbbbb");
	for (unsigned i = 0; i < IDEMPOTENCY_MAX; i++) {
		(void)snprintf(key, sizeof(key), "k%u", i);
		idempotency_name("ann", key, other);
		assert_true(idempotency_add(&t, other, body, "cccccccccccccccc", 12));
	}
	assert_null(idempotency_find(&t, name, 12));
	assert_non_null(idempotency_find(&t, other, 12));
	assert_int_equal(t.n, IDEMPOTENCY_MAX);
	idempotency_release(&t);
}

static void open_keys(struct bed *bed, struct idempotency *t)
{
	struct brig_error err = BRIG_ERROR_INIT;

	idempotency_release(t);
	assert_int_equal(idempotency_open(t, &bed->ledger.dir, &err), 0);
}

/* An id for each number: 16 letters of the alphabet of ids. */
static void id_of(unsigned n, char id[EXECUTION_ID_LEN + 1])
{
	memset(id, 'a', EXECUTION_ID_LEN);
	id[EXECUTION_ID_LEN] = '\0';
	for (size_t i = 0; n > 0; n /= 26)
		id[i++] = (char)('a' + n % 26);
}

static void keys_that_were_kept_are_there_again_and_their_file_has_an_end(void **state)
{
	const unsigned many =
		(unsigned)(JOURNAL_FILE_MAX / 150) + IDEMPOTENCY_MAX; /* a line has more bytes than that */
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;
	struct idempotency t = IDEMPOTENCY_INIT;
	uint8_t name[SHA256_LEN] = { 0 }, body[SHA256_LEN] = { 1 };
	char id[EXECUTION_ID_LEN + 1];
	struct bed *bed = *state;
	struct stat st;

	open_again(bed);
	open_keys(bed, &t);
	for (unsigned i = 0; i <= many; i++) {
		memcpy(name, &i, sizeof(i));
		id_of(i, id);
		assert_true(idempotency_add(&t, name, body, id, now_s));
		if (i != many - 1)
			idempotency_keep(&t, id, i == many);
		if (i == many - 2)
			idempotency_forget(&t, id);
		if (i % 1000 == 0 || i == many)
			assert_int_equal(idempotency_commit(&t, false, NULL), 0);
	}
	assert_int_equal(fstatat(bed->ledger.dir.fd, IDEMPOTENCY_NAME, &st, 0), 0);
	assert_true((uint64_t)st.st_size < JOURNAL_FILE_MAX);
	open_keys(bed, &t);
	assert_string_equal(idempotency_find(&t, name, now_s)->id, id);
	assert_true(idempotency_find(&t, name, now_s)->is_promised);
	for (unsigned i = many - 2; i < many; i++) { /* one that was forgotten, one that was never kept */
		memcpy(name, &i, sizeof(i));
		assert_null(idempotency_find(&t, name, now_s));
	}
	memcpy(name, &(unsigned){ many - 3 }, sizeof(unsigned));
	assert_false(idempotency_find(&t, name, now_s)->is_promised);
	idempotency_release(&t);
}

/* The hash of a message with these fields. */
static void hash_of(const char *code, const char *arg, const char *request_id, uint8_t ret[SHA256_LEN])
{
	AUTO_BUF m = BUF_INIT(MiB);
	struct message read;
	const char *why;

	message_put_text(&m, FIELD_request_id, request_id);
	message_put_text(&m, FIELD_arg, arg);
	message_put_bytes(&m, FIELD_code, code, strlen(code));
	message_put_text(&m, FIELD_arg, "last");
	assert_true(message_read(m.data, m.len, &read, &why));
	assert_int_equal(idempotency_hash(&read, ROUTE_execute, FD_NONE, ret), 0);
}

static void a_request_is_the_same_by_what_it_runs(void **state UNUSED)
{
	uint8_t one[SHA256_LEN], same[SHA256_LEN], other[SHA256_LEN];

	hash_of("echo", "a", "r1", one);
	hash_of("echo", "a", "r2", same);
	assert_memory_equal(one, same, SHA256_LEN);
	hash_of("echo ", "a", "r1", other);
	assert_memory_not_equal(one, other, SHA256_LEN);
	hash_of("echo", "b", "r1", other);
	assert_memory_not_equal(one, other, SHA256_LEN);
	hash_of("echo", NULL, "r1", other);
	assert_memory_not_equal(one, other, SHA256_LEN);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(promises_without_an_end_are_lost_and_stay_so),
		CASE(what_is_no_line_says_nothing),
		CASE(the_oldest_promises_go),
		CASE(a_file_that_others_can_write_is_refused),
		cmocka_unit_test(keys_are_found_until_they_are_old_or_too_many),
		CASE(keys_that_were_kept_are_there_again_and_their_file_has_an_end),
		cmocka_unit_test(a_request_is_the_same_by_what_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
