/* SPDX-License-Identifier: Apache-2.0 */
/* A session's owner against cells that lie: frames of kernels, messages of stewards, descriptors of other kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "backend/guest/steward.h"
#include "base/fd.h"
#include "session/frames.h"
#include "session/session.h"

/* ---- frames ------------------------------------------------------------------------------------ */

static void test_frames_in_pieces(void **state)
{
	const struct brig_session_field fields[] = { { "main", "1", 1 }, { "text", "a\nb", 3 }, { "html", "", 0 } };
	AUTO_BUF out = BUF_INIT(4096);
	struct frame_reader r = FRAME_READER_INIT(4096);
	struct frame f;
	int found = 0;

	(void)state;
	frame_write(&out, "result", fields, ARRAY_LEN(fields));
	frame_write(&out, "done", NULL, 0);
	for (size_t i = 0; i < out.len; i++) {
		assert_true(frame_add(&r, out.data + i, 1));
		while (frame_next(&r, &f) > 0) {
			found++;
			if (found == 2) {
				assert_string_equal(f.kind, "done");
				continue;
			}
			assert_string_equal(f.kind, "result");
			assert_int_equal(f.n_fields, 3);
			assert_string_equal(frame_value(&f, "text"), "a\nb");
			assert_string_equal(frame_value(&f, "html"), "");
			assert_null(frame_value(&f, "svg"));
		}
	}
	assert_int_equal(found, 2);
	frame_reader_release(&r);
}

static void test_frames_that_are_none(void **state)
{
	static const char *const bad[] = {
		"\n",
		" 1\n",
		"result\n",
		"result \n",
		"result x\n",
		"result -1\n",
		"result 33\n",
		"result 99999999999999999999999\n",
		"Result 0\n",
		"result 0 \n",
		"result 1\ntext 3\nabcX",
		"result 1\ntext 1099511627777\n",
		"result 1\nte xt 1\na\n",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct frame_reader r = FRAME_READER_INIT(4096);
		struct frame f;

		assert_true(frame_add(&r, bad[i], strlen(bad[i])));
		if (frame_next(&r, &f) != -1)
			fail_msg("'%s' is taken for a frame, or for the beginning of one", bad[i]);
		frame_reader_release(&r);
	}
}

/* Gives a stream in pieces of this length to a reader for which it is too large. */
static void read_large(const struct buf *stream, size_t piece)
{
	struct frame_reader r = FRAME_READER_INIT(100);
	struct frame f;
	int found = 0;

	for (size_t at = 0; at < stream->len; at += piece) {
		assert_true(frame_add(&r, stream->data + at, min_u64(piece, stream->len - at)));
		while (frame_next(&r, &f) > 0) {
			assert_int_equal(f.is_cut, found == 1);
			assert_string_equal(f.kind, "result");
			assert_int_equal(f.n_fields, 3);
			assert_string_equal(frame_value(&f, "main"), "1");
			assert_string_equal(frame_value(&f, "text"), found == 1 ? "" : "abc");
			assert_string_equal(frame_value(&f, "html"), "<b>");
			found++;
		}
		assert_true(r.bytes.len < 200 + piece);
	}
	assert_int_equal(found, 3);
	frame_reader_release(&r);
}

static void test_frames_too_large(void **state)
{
	static const char large[5000] = "abc";
	struct brig_session_field fields[] = { { "main", "1", 1 }, { "text", large, 3 }, { "html", "<b>", 3 } };
	AUTO_BUF out = BUF_INIT(16384);

	(void)state;
	for (int i = 0; i < 3; i++) {
		fields[1].len = i == 1 ? sizeof(large) : 3;
		frame_write(&out, "result", fields, ARRAY_LEN(fields));
	}
	for (size_t piece = 1; piece < 200; piece++)
		read_large(&out, piece);
	read_large(&out, out.len);
}

/* ---- a steward that lies ----------------------------------------------------------------------- */

struct bed {
	struct session *s;
	int steward; /* the other end of its socket */
	int ready, done, entries, changed, stopping, exited;
	struct brig_session_event last;
};

static void on_event(void *user, const struct brig_session_event *e)
{
	struct bed *b = user;

	b->last = *e;
	b->ready += e->kind == BRIG_SESSION_READY;
	b->done += e->kind == BRIG_SESSION_DONE;
	b->entries += e->kind == BRIG_SESSION_ENTRY;
	b->changed += e->kind == BRIG_SESSION_CHANGED;
	b->stopping += e->kind == BRIG_SESSION_STOPPING;
	b->exited += e->kind == BRIG_SESSION_EXITED;
	if (e->fd >= 0)
		(void)close(e->fd);
}

static void step_all(struct bed *b)
{
	while (session_step(b->s))
		;
}

static void answer(struct bed *b, enum steward_kind kind, uint64_t tag, int64_t number, int fd)
{
	const struct steward_head head = { .kind = kind, .tag = tag, .number = { number, 7 } };

	assert_int_equal(steward_send(b->steward, &head, NULL, 0, &fd, fd >= 0, 0), 0);
	step_all(b);
}

static int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	const struct session_config config = { .on_event = on_event,
					       .user = b,
					       .most_ms = 3600000,
					       .timeout_ms = 3600000,
					       .idle_ms = 3600000,
					       .output_bytes = 1000,
					       .run_ms = 1000,
					       .cpu_ms = 1000 };
	int ends[2];

	if (!b || session_new(&config, &b->s, NULL) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	b->steward = ends[1];
	if (session_attach(b->s, ends[0], NULL) < 0)
		return -1;
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *b = *state;

	session_free(b->s);
	fd_closep(&b->steward);
	free(b);
	return 0;
}

static uint64_t ask(struct bed *b, enum steward_kind kind, const char *path)
{
	const struct session_ask what = { .kind = kind, .path = { path } };
	struct steward_message *m = malloc(sizeof(*m));
	uint64_t tag = 0;

	assert_non_null(m);
	assert_int_equal(session_ask(b->s, &what, &tag, NULL), 0);
	step_all(b);
	assert_int_equal(steward_receive(b->steward, m, MSG_DONTWAIT), 1);
	assert_int_equal(m->head.tag, tag);
	free(m);
	return tag;
}

static void test_nothing_is_sent_before_ready(void **state)
{
	struct bed *b = *state;
	const struct session_ask what = { .kind = STEWARD_STAT, .path = { "x" } };
	struct pollfd p = { .fd = b->steward, .events = POLLIN };

	assert_int_equal(session_ask(b->s, &what, NULL, NULL), 0);
	step_all(b);
	assert_int_equal(poll(&p, 1, 0), 0);
	answer(b, STEWARD_READY, 0, 2, FD_NONE);
	assert_int_equal(b->ready, 1);
	assert_int_equal(poll(&p, 1, 0), 1);
	answer(b, STEWARD_READY, 0, 2, FD_NONE); /* once is enough */
	assert_int_equal(b->ready, 1);
}

static void test_descriptors_are_looked_at(void **state)
{
	struct bed *b = *state;
	AUTO_FD device = open("/dev/zero", O_RDONLY | O_CLOEXEC), folder = open("/", O_RDONLY | O_CLOEXEC);
	AUTO_FD local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
		udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	AUTO_FD file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct {
		enum steward_kind kind;
		int fd, error;
	} rows[] = { { STEWARD_OPEN, device, EPROTO },   { STEWARD_OPEN, folder, EPROTO },
		     { STEWARD_OPEN, tcp, EPROTO },      { STEWARD_OPEN, FD_NONE, EPROTO },
		     { STEWARD_OPEN, file, 0 },          { STEWARD_CONNECT, file, EPROTO },
		     { STEWARD_CONNECT, local, EPROTO }, { STEWARD_CONNECT, udp, EPROTO },
		     { STEWARD_CONNECT, tcp, 0 } };

	answer(b, STEWARD_READY, 0, 2, FD_NONE);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t tag = ask(b, rows[i].kind, rows[i].kind == STEWARD_OPEN ? "x" : NULL);

		answer(b, STEWARD_DONE, tag, 0, rows[i].fd);
		assert_int_equal(b->last.kind, BRIG_SESSION_DONE);
		if (b->last.error != rows[i].error || (b->last.fd >= 0) != (rows[i].error == 0))
			fail_msg("row %zu: error %d, descriptor %d", i, b->last.error, b->last.fd);
	}
	assert_int_equal(b->stopping, 0);
}

static void test_answers_nobody_asked_for(void **state)
{
	struct bed *b = *state;
	AUTO_FD file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t tag;

	answer(b, STEWARD_READY, 0, 2, FD_NONE);
	answer(b, STEWARD_DONE, 99, 0, file);
	answer(b, STEWARD_ENTRY, 99, 0, FD_NONE);
	answer(b, STEWARD_CHANGED, 0, 1, FD_NONE);
	answer(b, STEWARD_EXITED, 99, 4, FD_NONE);
	assert_int_equal(b->done + b->entries + b->changed + b->exited, 0);
	tag = ask(b, STEWARD_STAT, "x");
	answer(b, STEWARD_ENTRY, tag, 0, FD_NONE); /* it has no words */
	answer(b, STEWARD_DONE, tag, 0, file);     /* a descriptor where none belongs */
	answer(b, STEWARD_DONE, tag, 0, FD_NONE);  /* twice */
	assert_int_equal(b->entries, 0);
	assert_int_equal(b->done, 1);
	assert_int_equal(b->last.fd, -1);
	tag = ask(b, STEWARD_STAT, "x");
	answer(b, STEWARD_DONE, tag, -5, FD_NONE);
	assert_int_equal(b->last.error, EPROTO);
}

static void test_unsound_records_end_it(void **state)
{
	struct bed *b = *state;
	struct steward_head head = { .magic = STEWARD_MAGIC, .kind = STEWARD_DONE, .n_words = 3, .size = 4 };
	struct {
		struct steward_head head;
		char words[4];
	} record = { .head = head, .words = "a\0b" };

	answer(b, STEWARD_READY, 0, 2, FD_NONE);
	assert_int_equal(send(b->steward, &record, sizeof(record), 0), sizeof(record)); /* two words, not three */
	step_all(b);
	assert_int_equal(b->stopping, 1);
	assert_true(session_must_end(b->s));
	assert_true(session_ask(b->s, &(struct session_ask){ .kind = STEWARD_PAUSE }, NULL, NULL) < 0);
}

static void test_an_owners_message_from_inside(void **state)
{
	struct bed *b = *state;

	answer(b, STEWARD_READY, 0, 2, FD_NONE);
	answer(b, STEWARD_END, 1, 0, FD_NONE);
	assert_int_equal(b->stopping, 1);
	assert_true(session_must_end(b->s));
}

static void test_too_much_is_asked(void **state)
{
	struct bed *b = *state;
	const struct session_ask what = { .kind = STEWARD_STAT, .path = { "x" } };
	struct brig_error err = BRIG_ERROR_INIT;
	int n = 0;

	while (n < 5000 && session_ask(b->s, &what, NULL, &err) == 0)
		n++;
	assert_int_equal(n, 1024);
	assert_int_equal(err.code, BRIG_E_REFUSED);
	assert_true(session_ask(b->s, &(struct session_ask){ .kind = STEWARD_STAT, .path = { "" } }, NULL, NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_in_pieces),
		cmocka_unit_test(test_frames_that_are_none),
		cmocka_unit_test(test_frames_too_large),
		cmocka_unit_test_setup_teardown(test_nothing_is_sent_before_ready, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_descriptors_are_looked_at, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_answers_nobody_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unsound_records_end_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_owners_message_from_inside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_much_is_asked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
