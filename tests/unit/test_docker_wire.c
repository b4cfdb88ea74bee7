/* SPDX-License-Identifier: Apache-2.0 */
/* What brig and a container's init say to each other: whole, in pieces, cut, forged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/container/wire.h"
#include "base/buf.h"
#include "base/str.h"

static struct wire_job *sample_job(void)
{
	struct wire_job *j = calloc(1, sizeof(*j));

	memset(j->key[0], 0x11, WIRE_KEY);
	memset(j->key[1], 0x22, WIRE_KEY);
	j->flags = WIRE_STRICT | WIRE_WORKSPACE_EXEC;
	j->family = 2;
	j->wall_ms = 1234567890123;
	j->cpu_time_ms = 5;
	j->disk_bytes = UINT64_MAX;
	j->open_files = 64;
	j->output_max = 77;
	j->shown_entries = 9;
	j->shown_bytes = 10;
	j->shown = "/opt/packages/npm";
	j->link = "node_modules";
	j->link_to = "/opt/packages/npm/node_modules";
	j->output = "program";
	j->argv[0] = "/usr/bin/python3";
	j->argv[1] = "";
	j->envp[0] = "A=\n";
	j->hidden[0] = "deep/.env";
	j->files[0] = (struct wire_file){ .name = "main.py", .mode = 0644, .len = 3 };
	j->n_files = 1;
	return j;
}

static size_t encode(const struct wire_job *j, char *dst, size_t size)
{
	size_t n = wire_job_encode(j, dst, size);

	if (n > 0)
		assert_int_equal(wire_head_decode(dst), (int64_t)(n - WIRE_HEAD));
	return n;
}

static void a_job_arrives_as_it_was_sent(void **state)
{
	char data[1024];
	struct wire_job *j = sample_job(), *got = calloc(1, sizeof(*got));
	size_t n = encode(j, data, sizeof(data));

	(void)state;
	assert_true(n > 0);
	assert_true(wire_job_decode(data + WIRE_HEAD, n - WIRE_HEAD, got));
	assert_memory_equal(got->key, j->key, sizeof(j->key));
	assert_int_equal(got->flags, j->flags);
	assert_int_equal(got->family, 2);
	assert_int_equal(got->wall_ms, j->wall_ms);
	assert_int_equal(got->disk_bytes, UINT64_MAX);
	assert_int_equal(got->open_files, 64);
	assert_int_equal(got->output_max, 77);
	assert_string_equal(got->output, "program");
	assert_int_equal(got->shown_entries, 9);
	assert_int_equal(got->shown_bytes, 10);
	assert_string_equal(got->shown, "/opt/packages/npm");
	assert_string_equal(got->link, "node_modules");
	assert_string_equal(got->link_to, "/opt/packages/npm/node_modules");
	assert_string_equal(got->argv[0], "/usr/bin/python3");
	assert_string_equal(got->argv[1], "");
	assert_null(got->argv[2]);
	assert_string_equal(got->envp[0], "A=\n");
	assert_null(got->envp[1]);
	assert_string_equal(got->hidden[0], "deep/.env");
	assert_null(got->hidden[1]);
	assert_int_equal(got->n_files, 1);
	assert_string_equal(got->files[0].name, "main.py");
	assert_int_equal(got->files[0].mode, 0644);
	assert_int_equal(got->files[0].len, 3);
	free(j);
	free(got);
}

static void a_tree_is_shown_below_opt_and_links_lead_into_it(void **state)
{
	static const struct {
		const char *shown, *link, *link_to;
		bool good;
	} rows[] = {
		{ "", "", "", true },
		{ "/opt/packages/pip", "", "", true },
		{ "/opt/p", "n", "/opt/p", true },
		{ "/etc", "", "", false },
		{ "/opt", "", "", false },
		{ "/opt/../etc", "", "", false },
		{ "", "n", "/opt/p", false },
		{ "", "", "/opt/p", false },
		{ "/opt/p", "a/b", "/opt/p", false },
		{ "/opt/p", "..", "/opt/p", false },
		{ "/opt/p", "n", "/opt/pq", false },
		{ "/opt/p", "n", "/opt/p/../../etc", false },
		{ "/opt/p", "n", "/etc/passwd", false },
	};
	struct wire_job *j = sample_job(), *got = calloc(1, sizeof(*got));
	char data[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n;

		j->shown = rows[i].shown;
		j->link = rows[i].link;
		j->link_to = rows[i].link_to;
		n = encode(j, data, sizeof(data));
		assert_int_equal(wire_job_decode(data + WIRE_HEAD, n - WIRE_HEAD, got), rows[i].good);
	}
	free(j);
	free(got);
}

static void a_cut_or_stretched_job_is_none(void **state)
{
	char data[1024];
	struct wire_job *j = sample_job(), *got = calloc(1, sizeof(*got));
	size_t n = encode(j, data, sizeof(data)) - WIRE_HEAD;

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		char *exact = malloc(cut + 1); /* so that a sanitizer sees a read behind it */

		memcpy(exact, data + WIRE_HEAD, cut);
		assert_false(wire_job_decode(exact, cut, got));
		free(exact);
	}
	assert_false(wire_job_decode(data + WIRE_HEAD, n + 1, got));
	assert_int_equal(wire_job_encode(j, data, n), 0); /* no room for the head */
	free(j);
	free(got);
}

static void names_that_leave_the_workspace_are_refused(void **state)
{
	static const char *const names[] = { "", ".", "..", "a/../b", "a//b", "/etc/passwd" };
	char data[1024];
	struct wire_job *got = calloc(1, sizeof(*got));

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct wire_job *j = sample_job();
		size_t n;

		j->files[0].name = names[i];
		n = encode(j, data, sizeof(data));
		assert_false(wire_job_decode(data + WIRE_HEAD, n - WIRE_HEAD, got));
		j->files[0].name = "fine";
		if (names[i][0]) { /* no output is fine */
			j->output = names[i];
			n = encode(j, data, sizeof(data));
			assert_false(wire_job_decode(data + WIRE_HEAD, n - WIRE_HEAD, got));
		}
		free(j);
	}
	free(got);
}

static void a_strange_head_is_refused(void **state)
{
	char head[WIRE_HEAD] = WIRE_MAGIC;

	(void)state;
	assert_int_equal(wire_head_decode(head), 0);
	head[15] = 1; /* more than there is memory */
	assert_int_equal(wire_head_decode(head), -1);
	head[15] = 0;
	head[0] = 'x';
	assert_int_equal(wire_head_decode(head), -1);
}

static void prefixes_are_checked(void **state)
{
	char p[WIRE_PREFIX];
	unsigned type;
	uint32_t len;

	(void)state;
	wire_prefix(p, WIRE_INPUT, WIRE_BODY_MAX);
	assert_true(wire_prefix_decode(p, &type, &len));
	assert_int_equal(type, WIRE_INPUT);
	assert_int_equal(len, WIRE_BODY_MAX);
	wire_prefix(p, WIRE_INPUT, WIRE_BODY_MAX + 1);
	assert_false(wire_prefix_decode(p, &type, &len));
	wire_prefix(p, WIRE_INPUT, 0);
	p[2] = 1;
	assert_false(wire_prefix_decode(p, &type, &len));
}

/* ---- the mark at the end of stdout ------------------------------------------------------------------ */

/* Feeds what a program and then init wrote, in pieces; the program's part comes out, and nothing else. */
static void check_mark(const uint8_t key[WIRE_KEY], const char *guest, size_t guest_len, size_t step)
{
	char data[256], got[256];
	struct wire_mark m;
	size_t n = guest_len + WIRE_KEY, have = 0;

	assert_true(n <= sizeof(data));
	memcpy(data, guest, guest_len);
	memcpy(data + guest_len, key, WIRE_KEY);
	wire_mark_init(&m, key);
	for (size_t at = 0; at < n; at += step) {
		const char *from = data + at, *piece;
		size_t len = min_u64(step, n - at), piece_len;

		assert_false(wire_mark_found(&m));
		while (wire_mark_next(&m, &from, &len, &piece, &piece_len)) {
			assert_true(piece_len > 0 && have + piece_len <= guest_len);
			memcpy(got + have, piece, piece_len);
			have += piece_len;
		}
		assert_int_equal(len, 0);
	}
	assert_true(wire_mark_found(&m));
	assert_int_equal(have, guest_len);
	assert_memory_equal(got, guest, guest_len);
}

static void a_program_that_writes_most_of_the_mark_does_not_end_its_stdout(void **state)
{
	uint8_t key[WIRE_KEY];
	char guest[3 * WIRE_KEY + 1];

	(void)state;
	for (int repetitive = 0; repetitive < 2; repetitive++) {
		for (size_t i = 0; i < WIRE_KEY; i++)
			key[i] = repetitive ? (uint8_t)(i % 3 == 2 ? 'b' : 'a') : (uint8_t)(i * 5 + 3);
		for (size_t known = 1; known < WIRE_KEY; known++)
			for (size_t step = 1; step < 80; step += 7) {
				memcpy(guest, key, known);
				guest[known] = 'x';
				memcpy(guest + known + 1, key, known);
				check_mark(key, guest, known + 1, step);
				if (!repetitive) /* else two beginnings may be the whole */
					check_mark(key, guest, 2 * known + 1, step);
			}
		check_mark(key, "x", 0, 1);
	}
}

static void behind_the_mark_nothing_is_taken(void **state)
{
	uint8_t key[WIRE_KEY];
	char data[WIRE_KEY + 3];
	const char *from = data, *piece;
	size_t len = sizeof(data), n;
	struct wire_mark m;

	(void)state;
	memset(key, 7, sizeof(key));
	memcpy(data, key, sizeof(key));
	memset(data + WIRE_KEY, 7, 3);
	wire_mark_init(&m, key);
	assert_false(wire_mark_next(&m, &from, &len, &piece, &n));
	assert_true(wire_mark_found(&m));
	assert_int_equal(len, 3);
	assert_int_equal(wire_mark_rest(&m, &piece), 0);
	assert_true(wire_mark_found(&m));
}

static void a_mark_that_is_cut_is_the_programs(void **state)
{
	uint8_t key[WIRE_KEY];
	const char *from = (const char *)key, *piece;
	size_t len = WIRE_KEY - 1, n;
	struct wire_mark m;

	(void)state;
	for (size_t i = 0; i < WIRE_KEY; i++)
		key[i] = (uint8_t)(200 - i);
	wire_mark_init(&m, key);
	assert_false(wire_mark_next(&m, &from, &len, &piece, &n));
	assert_false(wire_mark_found(&m));
	assert_int_equal(wire_mark_rest(&m, &piece), WIRE_KEY - 1);
	assert_memory_equal(piece, key, WIRE_KEY - 1);
	assert_int_equal(wire_mark_rest(&m, &piece), 0);
}

/* ---- a container's stderr -------------------------------------------------------------------------- */

struct heard {
	struct buf guest;
	unsigned frames;
	struct wire_exit exit;
	bool ready, broken;
};

static void hear(struct wire_reader *r, const char *data, size_t len, struct heard *h)
{
	const char *piece;
	size_t n;
	unsigned type;

	for (;;) {
		switch (wire_next(r, &data, &len, &type, &piece, &n)) {
		case WIRE_NOTHING:
			assert_int_equal(len, 0);
			return;
		case WIRE_ITEM_GUEST:
			assert_true(n > 0);
			(void)buf_add(&h->guest, piece, n);
			break;
		case WIRE_ITEM_FRAME:
			h->frames++;
			h->ready = h->ready || type == WIRE_READY;
			if (type == WIRE_EXIT)
				assert_true(wire_get_exit(piece, n, &h->exit));
			break;
		case WIRE_ITEM_BROKEN:
			h->broken = true;
			return;
		}
	}
}

static void make_keys(uint8_t key[2][WIRE_KEY], bool repetitive)
{
	for (size_t i = 0; i < WIRE_KEY; i++) {
		key[0][i] = (uint8_t)(i * 7 + 1);
		key[1][i] = repetitive ? (uint8_t)(i % 3 == 2 ? 'b' : 'a') : (uint8_t)(i * 5 + 3);
	}
}

static size_t make_stream(uint8_t key[2][WIRE_KEY], const char *guest, size_t guest_len, char *dst, size_t cap)
{
	struct wire_out o = { .data = dst, .cap = cap };
	struct wire_exit e = { .exited = 1, .value = 42, .run_ns = 9, .cpu_ns = 8, .memory_peak = 7, .oom_kills = 1 };

	wire_put_key(&o, key[0]);
	wire_put(&o, WIRE_READY, NULL, 0);
	wire_put(&o, WIRE_END, NULL, 0);
	memcpy(o.data + o.len, guest, guest_len);
	o.len += guest_len;
	wire_put_key(&o, key[1]);
	wire_put_exit(&o, &e);
	wire_put(&o, WIRE_END, NULL, 0);
	assert_false(o.full);
	return o.len;
}

static void check_stream(uint8_t key[2][WIRE_KEY], const char *guest, size_t guest_len, size_t piece)
{
	char data[4096];
	size_t n = make_stream(key, guest, guest_len, data, sizeof(data));
	struct wire_reader *r = malloc(sizeof(*r));
	struct heard h = { .guest = BUF_INIT(4096) };

	wire_reader_init(r, (const uint8_t(*)[WIRE_KEY])key);
	for (size_t at = 0; at < n; at += piece)
		hear(r, data + at, min_u64(piece, n - at), &h);
	assert_false(h.broken);
	assert_true(h.ready);
	assert_int_equal(r->state, WIRE_DONE);
	assert_int_equal(h.guest.len, guest_len);
	if (guest_len > 0)
		assert_memory_equal(h.guest.data, guest, guest_len);
	assert_int_equal(h.exit.value, 42);
	assert_int_equal(h.exit.oom_kills, 1);
	buf_release(&h.guest);
	free(r);
}

/* A program that guesses: every beginning of the key, doubled and broken off, in pieces of every size. */
static void the_program_cannot_hide_or_forge_the_end(void **state)
{
	uint8_t key[2][WIRE_KEY];

	(void)state;
	for (int repetitive = 0; repetitive < 2; repetitive++) {
		make_keys(key, repetitive);
		for (size_t known = 0; known < WIRE_KEY; known++) {
			char guest[3 * WIRE_KEY + 1];

			memcpy(guest, key[1], known);
			memcpy(guest + known, key[1], known);
			guest[2 * known] = 'x';
			memcpy(guest + 2 * known + 1, key[1], known);
			for (size_t piece = 1; piece < 80; piece += 13) {
				/* Twice the beginning of a key that repeats itself is that key: leave one out. */
				check_stream(key, guest + (repetitive ? known : 0), (repetitive ? 1 : 2) * known + 1,
					     piece);
				/* Broken off right before the real key. */
				if (!repetitive)
					check_stream(key, guest, 3 * known + 1, piece);
			}
		}
		check_stream(key, "", 0, 1);
		check_stream(key, "", 0, 4096);
	}
}

static void what_was_held_back_comes_at_the_end(void **state)
{
	uint8_t key[2][WIRE_KEY];
	char data[4096];
	struct wire_reader *r = malloc(sizeof(*r));
	struct heard h = { .guest = BUF_INIT(4096) };
	const char *rest;
	size_t n;

	(void)state;
	make_keys(key, false);
	n = make_stream(key, "ab", 2, data, sizeof(data));
	wire_reader_init(r, (const uint8_t(*)[WIRE_KEY])key);
	hear(r, data, WIRE_KEY + 2 * WIRE_PREFIX + 2 + 5, &h); /* five bytes of the key, then the container dies */
	assert_true(n > 100);
	assert_int_equal(h.guest.len, 2);
	assert_int_equal(wire_rest(r, &rest), 5);
	assert_memory_equal(rest, key[1], 5);
	assert_int_equal(wire_rest(r, &rest), 0);
	buf_release(&h.guest);
	free(r);
}

static void nothing_is_believed_without_the_first_key(void **state)
{
	uint8_t key[2][WIRE_KEY];
	char data[4096];
	struct wire_reader *r = malloc(sizeof(*r));
	struct heard h = { .guest = BUF_INIT(4096) };

	(void)state;
	make_keys(key, false);
	(void)make_stream(key, "", 0, data, sizeof(data));
	data[31] ^= 1;
	wire_reader_init(r, (const uint8_t(*)[WIRE_KEY])key);
	hear(r, data, 200, &h);
	assert_true(h.broken);
	assert_false(h.ready);
	h.broken = false;
	hear(r, (const char *)key[0], WIRE_KEY, &h);
	assert_true(h.broken); /* and stays so */
	free(r);
}

static void nothing_comes_behind_the_end(void **state)
{
	uint8_t key[2][WIRE_KEY];
	char data[4096];
	struct wire_reader *r = malloc(sizeof(*r));
	struct heard h = { .guest = BUF_INIT(4096) };
	size_t n;

	(void)state;
	make_keys(key, false);
	n = make_stream(key, "", 0, data, sizeof(data));
	data[n] = 'x';
	wire_reader_init(r, (const uint8_t(*)[WIRE_KEY])key);
	hear(r, data, n + 1, &h);
	assert_true(h.broken);
	assert_int_equal(h.exit.value, 42);
	free(r);
}

static void bodies_are_checked(void **state)
{
	char data[2048];
	struct wire_out o = { .data = data, .cap = sizeof(data) };
	struct wire_fact f = { .id = 3, .is_text = true, .text = "own", .source = "init" }, got;
	struct wire_failure failure;
	struct wire_exit e = { .exited = 0, .value = 9 }, e2;
	size_t len;

	(void)state;
	wire_put_fact(&o, &f);
	len = o.len - WIRE_PREFIX;
	assert_true(wire_get_fact(data + WIRE_PREFIX, len, &got));
	assert_string_equal(got.text, "own");
	assert_string_equal(got.source, "init");
	for (size_t cut = 0; cut < len; cut++)
		assert_false(wire_get_fact(data + WIRE_PREFIX, cut, &got));
	o.len = 0;
	wire_put_failure(&o, WIRE_STEP_landlock, 38);
	assert_true(wire_get_failure(data + WIRE_PREFIX, 8, &failure));
	assert_int_equal(failure.step, WIRE_STEP_landlock);
	assert_int_equal(failure.sys, 38);
	data[WIRE_PREFIX] = (char)WIRE_STEPS;
	assert_false(wire_get_failure(data + WIRE_PREFIX, 8, &failure));
	o.len = 0;
	wire_put_exit(&o, &e);
	assert_true(wire_get_exit(data + WIRE_PREFIX, o.len - WIRE_PREFIX, &e2));
	assert_int_equal(e2.value, 9);
	data[WIRE_PREFIX + 4] = (char)200; /* no such signal */
	assert_false(wire_get_exit(data + WIRE_PREFIX, o.len - WIRE_PREFIX, &e2));
}

static void a_list_of_files_is_what_was_put_or_nothing(void **state)
{
	char data[64];
	const char *at = data, *path;
	size_t len = wire_left_encode(7, "a/b.txt", data, sizeof(data)), all;
	uint64_t size;

	(void)state;
	len += wire_left_encode(1ULL << 40, "c", data + len, sizeof(data) - len);
	assert_int_equal(wire_left_encode(1, "a name for which there is no room any more, none at all", data + len,
					  sizeof(data) - len),
			 0);
	all = len;
	assert_true(wire_left_next(&at, &len, &size, &path));
	assert_string_equal(path, "a/b.txt");
	assert_int_equal(size, 7);
	assert_true(wire_left_next(&at, &len, &size, &path));
	assert_string_equal(path, "c");
	assert_true(size == 1ULL << 40);
	assert_false(wire_left_next(&at, &len, &size, &path));
	for (size_t cut = 0; cut < 16; cut++) { /* within the first */
		at = data;
		len = cut;
		assert_false(wire_left_next(&at, &len, &size, &path));
	}
	for (const char *const *bad = (const char *const[]){ "/a/b.tx", "../b.tx", "a//b.tx", NULL }; *bad; bad++) {
		memcpy(data + 8, *bad, 8);
		at = data;
		len = all;
		assert_false(wire_left_next(&at, &len, &size, &path));
	}
}

static void a_full_section_says_so(void **state)
{
	char data[40];
	struct wire_out o = { .data = data, .cap = sizeof(data) };
	uint8_t key[WIRE_KEY] = { 0 };

	(void)state;
	wire_put_key(&o, key);
	wire_put(&o, WIRE_END, NULL, 0);
	assert_false(o.full);
	wire_put(&o, WIRE_END, NULL, 0);
	assert_true(o.full);
	assert_int_equal(o.len, sizeof(data));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_arrives_as_it_was_sent),
		cmocka_unit_test(a_tree_is_shown_below_opt_and_links_lead_into_it),
		cmocka_unit_test(a_cut_or_stretched_job_is_none),
		cmocka_unit_test(names_that_leave_the_workspace_are_refused),
		cmocka_unit_test(a_strange_head_is_refused),
		cmocka_unit_test(prefixes_are_checked),
		cmocka_unit_test(a_program_that_writes_most_of_the_mark_does_not_end_its_stdout),
		cmocka_unit_test(behind_the_mark_nothing_is_taken),
		cmocka_unit_test(a_mark_that_is_cut_is_the_programs),
		cmocka_unit_test(the_program_cannot_hide_or_forge_the_end),
		cmocka_unit_test(what_was_held_back_comes_at_the_end),
		cmocka_unit_test(nothing_is_believed_without_the_first_key),
		cmocka_unit_test(nothing_comes_behind_the_end),
		cmocka_unit_test(bodies_are_checked),
		cmocka_unit_test(a_full_section_says_so),
		cmocka_unit_test(a_list_of_files_is_what_was_put_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
