/* SPDX-License-Identifier: Apache-2.0 */
/* The way between front and runner: short and long records, descriptors, a peer that does not read, one that lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/sealed.h"
#include "server/channel.h"
#include "server/message.h"

struct ends {
	struct channel *a, *b;
	int raw; /* of the far end, if that is no channel */
};

static struct ends make(bool is_raw)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct ends e = { .raw = FD_NONE };
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(channel_new(&sv[0], &e.a, &err), 0);
	if (is_raw)
		e.raw = sv[1];
	else
		assert_int_equal(channel_new(&sv[1], &e.b, &err), 0);
	return e;
}

static void end(struct ends *e)
{
	channel_free(e->a);
	channel_free(e->b);
	fd_closep(&e->raw);
}

static void send_bytes(struct channel *c, uint32_t tag, const void *data, size_t len)
{
	struct record r = { .tag = tag, .type = RECORD_ANSWER, .status = 200, .data = data, .len = len };
	struct brig_error err = BRIG_ERROR_INIT;

	if (channel_send(c, &r, &err) < 0)
		fail_msg("%s", err.msg);
}

static void expect_bytes(struct channel *c, uint32_t tag, const void *data, size_t len)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;

	assert_int_equal(channel_receive(c, &r, &err), 1);
	assert_int_equal(r.tag, tag);
	assert_int_equal(r.type, RECORD_ANSWER);
	assert_int_equal(r.status, 200);
	assert_int_equal(r.len, len);
	assert_memory_equal(r.data, data, len);
	assert_int_equal(r.n_fds, 0);
}

/* ---- what is sent arrives ----------------------------------------------------------------------- */

static void test_lengths(void **state)
{
	static const size_t lengths[] = { 0, 1, 1000, CHANNEL_INLINE_MAX, CHANNEL_INLINE_MAX + 1, 3 * MiB };
	char *bytes = malloc(3 * MiB);
	struct brig_error err;
	struct ends e = make(false);
	struct record r;

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < 3 * MiB; i++)
		bytes[i] = (char)(i * 7);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		send_bytes(e.a, (uint32_t)i, bytes, lengths[i]);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		expect_bytes(e.b, (uint32_t)i, bytes, lengths[i]);
		assert_int_equal(channel_flush(e.a, &err), 0);
	}
	assert_int_equal(channel_receive(e.b, &r, &err), 0);
	free(bytes);
	end(&e);
}

/* Descriptors come beside both kinds, and are the receiver's. */
/* Data that are in a file already: short and long ones, by and by written, closed and sent. */
static void test_files(void **state)
{
	static const size_t lengths[] = { 1, 1000, CHANNEL_INLINE_MAX + 1, 3 * MiB };
	char *bytes = malloc(3 * MiB);
	struct brig_error err = BRIG_ERROR_INIT;
	struct ends e = make(false);
	struct record r = { .tag = 7, .type = RECORD_ANSWER, .status = 200 };

	(void)state;
	memset(bytes, 'f', 3 * MiB);
	bytes[0] = 'F';
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		assert_int_equal(fd_write_all(fd, bytes, lengths[i]), 0);
		assert_int_equal(sealed_close(fd), 0);
		assert_int_equal(write(fd, "x", 1), -1); /* nobody changes it any more */
		r.len = lengths[i];
		assert_int_equal(channel_send_file(e.a, &r, fd, &err), 0);
		(void)close(fd);
		expect_bytes(e.b, 7, bytes, lengths[i]);
	}
	free(bytes);
	end(&e);
}

/* What is shorter than it says, or is said to be longer than any, is not sent; one that is not closed is not taken. */
static void test_bad_files(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct ends e = make(false);
	struct record r = { .tag = 7, .type = RECORD_ANSWER, .len = 100000 }, got;
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_true(channel_send_file(e.a, &r, fd, &err) < 0);
	r.len = MESSAGE_MAX + 1;
	assert_true(channel_send_file(e.a, &r, fd, &err) < 0);
	r.len = 0;
	assert_true(channel_send_file(e.a, &r, fd, &err) < 0);
	assert_int_equal(ftruncate(fd, 1000), 0);
	r.len = 1000;
	assert_int_equal(channel_send_file(e.a, &r, fd, &err), 0);
	assert_true(channel_receive(e.b, &got, &err) < 0);
	(void)close(fd);
	end(&e);
}

static void test_descriptors(void **state)
{
	static char long_one[CHANNEL_INLINE_MAX + 100];
	static const size_t lengths[] = { 5, sizeof(long_one) };
	struct brig_error err = BRIG_ERROR_INIT;
	struct ends e = make(false);
	int pipes[2];

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct record r = { .tag = 1, .type = RECORD_ASK, .data = long_one, .len = lengths[i], .n_fds = 1 };
		char c = 0;

		r.fds[0] = pipes[1];
		assert_int_equal(channel_send(e.a, &r, &err), 0);
		memset(&r, 0, sizeof(r));
		assert_int_equal(channel_receive(e.b, &r, &err), 1);
		assert_int_equal(r.len, lengths[i]);
		assert_int_equal(r.n_fds, 1);
		assert_int_equal(write(r.fds[0], "x", 1), 1);
		fd_closep(&r.fds[0]);
		assert_int_equal(read(pipes[0], &c, 1), 1);
		assert_int_equal(c, 'x');
	}
	fd_closep(&pipes[0]);
	fd_closep(&pipes[1]);
	end(&e);
}

/* A peer that does not read: everything waits, nothing blocks, the order stays, and there is a ceiling. */
static void test_slow_peer(void **state)
{
	static char bytes[CHANNEL_INLINE_MAX];
	struct brig_error err = BRIG_ERROR_INIT;
	struct ends e = make(false);
	struct record r = { .type = RECORD_EVENT, .data = bytes, .len = sizeof(bytes) };
	uint32_t sent = 0, seen = 0;
	int rc;

	(void)state;
	while ((rc = channel_send(e.a, &r, &err)) == 0 && sent < 100000)
		r.tag = ++sent;
	assert_int_equal(rc, -BRIG_E_SYSTEM);
	assert_true(sent > 1000 && channel_waiting(e.a) <= CHANNEL_QUEUE_MAX);
	assert_true(channel_events(e.a) & POLLOUT);
	while (seen < sent) {
		assert_int_equal(channel_receive(e.b, &r, &err), 1);
		assert_int_equal(r.tag, seen++);
		assert_int_equal(channel_flush(e.a, &err), 0);
	}
	assert_int_equal(channel_waiting(e.a), 0);
	assert_false(channel_events(e.a) & POLLOUT);
	end(&e);
}

/* ---- a peer that lies ------------------------------------------------------------------------------ */

/* As channel.c has it. */
struct raw_head {
	uint32_t tag;
	uint16_t type, status;
	uint32_t len, in_file;
};

static void expect_end(struct raw_head head, const char *bytes, size_t n, int fd, const char *what)
{
	struct iovec pieces[] = { { &head, sizeof(head) }, { NULL, n } };
	struct brig_error err = BRIG_ERROR_INIT;
	struct ends e = make(true);
	struct record r;

	memcpy(&pieces[1].iov_base, &bytes, sizeof(bytes));
	assert_int_equal(fd_send_record(e.raw, pieces, 2, &fd, fd >= 0, 0), 0);
	if (channel_receive(e.a, &r, &err) != -BRIG_E_SYSTEM)
		fail_msg("%s is taken", what);
	end(&e);
}

static int file_of(size_t len, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0 && ftruncate(fd, (off_t)len) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static void test_lies(void **state)
{
	const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	AUTO_FD open_file = file_of(100, 0), sealed = file_of(100, all),
		shrinkable = file_of(100, all & ~F_SEAL_SHRINK);

	(void)state;
	expect_end((struct raw_head){ .type = RECORD_TYPES }, "", 0, FD_NONE, "an unknown type");
	expect_end((struct raw_head){ .len = 3 }, "ab", 2, FD_NONE, "a record that is cut");
	expect_end((struct raw_head){ .len = 1 }, "ab", 2, FD_NONE, "a record that is too long");
	expect_end((struct raw_head){ .len = 100, .in_file = 1 }, "", 0, FD_NONE, "a file that is not there");
	expect_end((struct raw_head){ .len = 100, .in_file = 1 }, "", 0, open_file, "a file that can be changed");
	expect_end((struct raw_head){ .len = 100, .in_file = 1 }, "", 0, shrinkable, "a file that can be cut");
	expect_end((struct raw_head){ .len = 200, .in_file = 1 }, "", 0, sealed, "a file that is shorter than it says");
	expect_end((struct raw_head){ .len = 0, .in_file = 1 }, "", 0, sealed, "an empty file");
	expect_end((struct raw_head){ .len = 100, .in_file = 2 }, "", 0, sealed, "a place that nobody knows");
}

static void test_gone(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct ends e = make(true);
	struct record r;

	(void)state;
	fd_closep(&e.raw);
	assert_int_equal(channel_receive(e.a, &r, &err), -BRIG_E_SYSTEM);
	end(&e);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

static void test_message(void **state)
{
	AUTO_BUF m = BUF_INIT(1 * MiB);
	const char *texts[2], *why;
	struct message read;
	size_t len;

	(void)state;
	message_put_number(&m, FIELD_route, 7);
	message_put_text(&m, FIELD_arg, "one");
	message_put_text(&m, FIELD_language, "python");
	message_put_text(&m, FIELD_arg, "");
	message_put_text(&m, FIELD_trust, NULL);
	message_put_bytes(&m, FIELD_code, "a\0b", 3);
	assert_true(message_read(m.data, m.len, &read, &why));
	assert_int_equal(message_number(&read, FIELD_route, 0), 7);
	assert_int_equal(message_number(&read, FIELD_limit, 3), 3);
	assert_string_equal(message_text(&read, FIELD_language), "python");
	assert_null(message_text(&read, FIELD_trust));
	assert_int_equal(message_count(&read, FIELD_arg), 2);
	message_texts(&read, FIELD_arg, texts);
	assert_string_equal(texts[0], "one");
	assert_string_equal(texts[1], "");
	assert_memory_equal(message_bytes(&read, FIELD_code, &len), "a\0b", 3);
	assert_int_equal(len, 3);
	for (size_t cut = 1; cut < m.len; cut++)
		if (message_read(m.data, m.len - cut, &read, &why))
			assert_true(read.len < m.len); /* cut between two fields */
}

static void expect_no_message(const struct buf *m, const char *word)
{
	struct message read;
	const char *why = NULL;

	assert_false(message_read(m->data, m->len, &read, &why));
	if (!strstr(why, word))
		fail_msg("'%s' is not in: %s", word, why);
}

static void test_bad_messages(void **state)
{
	static char long_text[400];
	static const struct {
		enum field field;
		const char *bytes;
		size_t len;
		unsigned times;
		const char *word;
	} bad[] = {
		{ FIELD_route, "1234567", 7, 1, "eight" },
		{ FIELD_route, "12345678", 8, 2, "too often" },
		{ FIELD_language, "python", 6, 1, "does not end" },
		{ FIELD_language, "py\0hon", 7, 1, "does not end" },
		{ FIELD_language, "", 0, 1, "length" },
		{ FIELD_language, long_text, sizeof(long_text), 1, "length" },
		{ FIELD_job_id, "", 1, 1, "line" },
		{ FIELD_job_id, "one\ntwo", 8, 1, "line" },
		{ FIELD_job_id, "no end", 6, 1, "line" },
		{ FIELD_job_id, "\xff", 2, 1, "line" },
		{ FIELD_COUNT, "", 0, 1, "unknown" },
	};

	(void)state;
	memset(long_text, 'a', sizeof(long_text) - 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_BUF m = BUF_INIT(4096);

		for (unsigned n = 0; n < bad[i].times; n++)
			message_put_bytes(&m, bad[i].field, bad[i].bytes, bad[i].len);
		expect_no_message(&m, bad[i].word);
	}
}

/* A few large files fill the socket, so that what is on its way to a reader that sleeps is bounded in bytes. */
static void test_large_files_weigh(void **state)
{
	const size_t len = 24 * MiB;
	char *bytes = calloc(1, len);
	struct ends e = make(false);
	uint32_t sent = 0;

	(void)state;
	assert_non_null(bytes);
	while (channel_waiting(e.a) == 0 && sent < 12)
		send_bytes(e.a, sent++, bytes, len);
	assert_true(sent < 12);
	for (uint32_t i = 0; i < sent; i++) {
		expect_bytes(e.b, i, bytes, len);
		assert_int_equal(channel_flush(e.a, NULL), 0);
	}
	end(&e);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),      cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_slow_peer),    cmocka_unit_test(test_lies),
		cmocka_unit_test(test_gone),         cmocka_unit_test(test_message),
		cmocka_unit_test(test_bad_messages), cmocka_unit_test(test_large_files_weigh),
		cmocka_unit_test(test_files),        cmocka_unit_test(test_bad_files),
	};

	return cmocka_run_group_tests_name("server_channel", tests, NULL, NULL);
}
