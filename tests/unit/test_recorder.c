/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder and those who ask it: what a hostile one can say, and what it cannot bring about. */
#include <brig/recorder.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "audit_bed.h"
#include "base/clock.h"
#include "base/sealed.h"
#include "base/when.h"
#include "executor/record.h"
#include "executor/record_link.h"
#include "executor/record_packet.h"
#include "server/recorder/recorder.h"
#include "sys/landlock.h"

#define ID    "abcdefghijklmnop"
#define OTHER "ponmlkjihgfedcba"

struct desk_bed {
	struct bed *b; /* a state folder and a record */
	struct brig *handle;
	struct brig_recorder *recorder;
	int ask, answer; /* ends of its socket */
};

static void open_recorder(struct desk_bed *d)
{
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	struct brig_error err = BRIG_ERROR_INIT;

	opts.policy_file = "";
	opts.state_dir = d->b->path;
	if (brig_open(&opts, &d->handle, &err) < 0 || brig_recorder_open(d->handle, &d->recorder, &err) < 0)
		fail_msg("%s", err.msg);
}

static void close_recorder(struct desk_bed *d)
{
	brig_recorder_close(d->recorder);
	brig_close(d->handle);
}

static int begin(void **state)
{
	struct desk_bed *d = calloc(1, sizeof(*d));
	int ends[2];

	if (set_up((void **)&d->b) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -1;
	d->ask = ends[0];
	d->answer = ends[1];
	(void)str_copy(d->b->res->id, sizeof(d->b->res->id), ID);
	d->b->rec.wall_ns = clock_wall_ns();
	open_recorder(d);
	*state = d;
	return 0;
}

static int end(void **state)
{
	struct desk_bed *d = *state;

	close_recorder(d);
	(void)close(d->ask);
	(void)close(d->answer);
	(void)tear_down((void **)&d->b);
	free(d);
	return 0;
}

/* Sends, lets the recorder do one step, and reads what it says: 1, or the error. */
static int say(struct desk_bed *d, const struct packet_out *w, struct packet_in *ret, struct brig_error *err)
{
	struct brig_error form = BRIG_ERROR_INIT;
	AUTO_FD reply = FD_NONE;

	assert_int_equal(link_ask(d->ask, w, &reply, err), 0);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &form), 1);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &form), 0);
	return link_answer(reply, ret, err);
}

/* What is sent as it is; the recorder must refuse its form with these words. */
static void expect_refused(struct desk_bed *d, const void *head, size_t head_len, const void *bytes, size_t len,
			   int file, const char *why)
{
	struct iovec pieces[] = { { .iov_len = head_len }, { .iov_len = len } };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	int ends[2], fds[2], rc;
	AUTO_FD ours = FD_NONE;
	AUTO_FD theirs = FD_NONE;

	memcpy(&pieces[0].iov_base, &head, sizeof(head));
	memcpy(&pieces[1].iov_base, &bytes, sizeof(bytes));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	ours = ends[0];
	theirs = ends[1];
	fds[0] = theirs;
	fds[1] = file;
	assert_int_equal(fd_send_record(d->ask, pieces, len ? 2 : 1, fds, file >= 0 ? 2 : 1, 0), 0);
	fd_closep(&theirs);
	rc = brig_recorder_step(d->recorder, d->answer, &err);
	assert_int_equal(rc, 1);
	assert_int_equal(err.code, BRIG_E_REFUSED); /* it is told whoever runs the recorder, too */
	err = (struct brig_error)BRIG_ERROR_INIT;
	assert_int_equal(link_answer(ours, &answer, &err), -BRIG_E_REFUSED);
	if (!strstr(err.msg, why))
		fail_msg("it says '%s', and not '%s'", err.msg, why);
}

static bool has_log(const struct desk_bed *d)
{
	return faccessat(d->b->state.fd, "audit", F_OK, 0) == 0;
}

static void what_is_no_message_changes_nothing(void **state)
{
	struct desk_bed *d = *state;
	struct packet_head head = { .protocol = PACKET_PROTOCOL, .kind = PACKET_KIND_audit_ready };
	AUTO_FREE char *much = calloc(1, PACKET_INLINE_MAX + 1);
	struct packet_head h;

	assert_non_null(much);
	head.len[PACKET_id] = sizeof(ID);
	expect_refused(d, "x", 1, NULL, 0, FD_NONE, "less than a message");
	expect_refused(d, &head, sizeof(head) - 1, NULL, 0, FD_NONE, "less than a message");
	expect_refused(d, &head, sizeof(head), much, PACKET_INLINE_MAX + 1, FD_NONE, "more than a message may have");
	expect_refused(d, &head, sizeof(head), NULL, 0, FD_NONE, "less than it says");
	expect_refused(d, &head, sizeof(head), ID, sizeof(ID) - 1, FD_NONE, "less than it says");
	expect_refused(d, &head, sizeof(head), ID "\0x", sizeof(ID) + 1, FD_NONE, "more than it says");
	expect_refused(d, &head, sizeof(head), "abcdefghijklmnopq", sizeof(ID), FD_NONE, "does not end where it says");
	expect_refused(d, &head, sizeof(head), "abcdefg\0ijklmnop", sizeof(ID), FD_NONE, "does not end where it says");
	expect_refused(d, &head, sizeof(head), "../../../etc/pass", sizeof(ID), FD_NONE, "does not end where it says");
	expect_refused(d, &head, sizeof(head), "ABCDEFGHIJKLMNOP", sizeof(ID), FD_NONE, "an id that no run has");
	h = head;
	h.protocol++;
	expect_refused(d, &h, sizeof(h), ID, sizeof(ID), FD_NONE, "another version");
	h = head;
	h.kind = PACKET_KINDS;
	expect_refused(d, &h, sizeof(h), ID, sizeof(ID), FD_NONE, "no kind");
	h.kind = PACKET_KIND_answer;
	expect_refused(d, &h, sizeof(h), ID, sizeof(ID), FD_NONE, "without a field");
	h.len[PACKET_id] = 0;
	h.len[PACKET_code] = 8;
	expect_refused(d, &h, sizeof(h), "12345678", 8, FD_NONE, "the recorder's own");
	h = head;
	h.kind = PACKET_KIND_ask_show;
	expect_refused(d, &h, sizeof(h), ID, sizeof(ID), FD_NONE, "no place there");
	h.kind = PACKET_KIND_append;
	expect_refused(d, &h, sizeof(h), ID, sizeof(ID), FD_NONE, "without a field");
	h = head;
	h.len[PACKET_id] = 0;
	expect_refused(d, &h, sizeof(h), NULL, 0, FD_NONE, "without a field");
	h.len[PACKET_id] = UINT32_MAX;
	expect_refused(d, &h, sizeof(h), ID, sizeof(ID), FD_NONE, "less than it says");
	h = head;
	h.kind = PACKET_KIND_ask_metrics;
	h.len[PACKET_id] = 0;
	h.len[PACKET_format] = 7;
	expect_refused(d, &h, sizeof(h), "1234567", 7, FD_NONE, "a number that is none");
	assert_false(has_log(d));
}

static void a_file_must_be_sealed_and_as_long_as_it_says(void **state)
{
	struct desk_bed *d = *state;
	struct packet_head h = { .protocol = PACKET_PROTOCOL, .kind = PACKET_KIND_audit_ready };
	AUTO_FD open = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	AUTO_FD sealed = sealed_make("test", ID, sizeof(ID));

	assert_true(open >= 0 && sealed >= 0);
	assert_int_equal(fd_write_all(open, ID, sizeof(ID)), 0);
	h.len[PACKET_id] = sizeof(ID);
	expect_refused(d, &h, sizeof(h), NULL, 0, open, "not sealed");
	expect_refused(d, &h, sizeof(h), ID, sizeof(ID), sealed, "bytes beside a file");
	h.len[PACKET_id] = sizeof(ID) - 1;
	expect_refused(d, &h, sizeof(h), NULL, 0, sealed, "not as long as it says");
	memset(h.len, 0xff, sizeof(h.len));
	expect_refused(d, &h, sizeof(h), NULL, 0, sealed, "bytes beside a file");
	assert_false(has_log(d));
}

/* ---- entries ------------------------------------------------------------------------------------------------- */

static int append_body(struct desk_bed *d, const char *id, const char *body, uint64_t began_ns, struct packet_in *ret,
		       struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(append);

	packet_text(&w, PACKET_id, id);
	packet_number(&w, PACKET_began_ns, began_ns);
	packet_bytes(&w, PACKET_body, body, strlen(body));
	return say(d, &w, ret, err);
}

static uint64_t append_it(struct desk_bed *d, const char *id, const char *body)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_PACKET_IN answer = PACKET_IN_INIT;

	if (append_body(d, id, body, clock_wall_ns(), &answer, &err) != 1)
		fail_msg("%s", err.msg);
	return packet_get_number(&answer, PACKET_seq, 0);
}

static void expect_no_entry(struct desk_bed *d, const char *id, const char *body, const char *why)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_PACKET_IN answer = PACKET_IN_INIT;

	assert_int_equal(append_body(d, id, body, clock_wall_ns(), &answer, &err), -BRIG_E_REFUSED);
	if (!strstr(err.msg, why))
		fail_msg("it says '%s', and not '%s'", err.msg, why);
}

static char *body_of(struct desk_bed *d, const char *id)
{
	AUTO_BUF text = BUF_INIT(AUDIT_BODY_MAX);

	(void)str_copy(d->b->res->id, sizeof(d->b->res->id), id);
	assert_int_equal(audit_body(&d->b->rec, &text, NULL), 0);
	return buf_take(&text);
}

static void expect_whole(struct desk_bed *d, json_int_t runs)
{
	char *text = NULL;
	json_t *doc;

	assert_int_equal(audit_verify(&d->b->state, &text, NULL), 0);
	doc = json_loads(text, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(doc, "runs")), runs);
	json_decref(doc);
	free(text);
}

static void an_entry_is_written_once_and_stays(void **state)
{
	struct desk_bed *d = *state;
	AUTO_FREE char *body = body_of(d, ID);
	AUTO_FREE char *others = body_of(d, OTHER);
	AUTO_FREE char *changed = strdup(body);
	uint64_t seq = append_it(d, ID, body);

	memcpy(strstr(changed, "python"), "PYTHON", 6);
	assert_int_equal(append_it(d, ID, body), seq);
	expect_no_entry(d, ID, changed, "stays");
	assert_int_equal(append_it(d, OTHER, others), seq + 1);
	/* The next recorder knows it from the log. */
	close_recorder(d);
	open_recorder(d);
	assert_int_equal(append_it(d, ID, body), seq);
	close_recorder(d);
	open_recorder(d);
	expect_no_entry(d, ID, changed, "stays");
	expect_whole(d, 2);
}

static void a_body_cannot_be_more_than_that(void **state)
{
	static const char *const ends[] = { ",\"seq\":1", "}", "\n", ",\"prev\":\"00\"", " ", ",", "\",\"x\":\"" };
	struct desk_bed *d = *state;
	AUTO_FREE char *body = body_of(d, ID);
	char text[8192];

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		(void)snprintf(text, sizeof(text), "%s%s", body, ends[i]);
		expect_no_entry(d, ID, text, "more members");
	}
	expect_no_entry(d, OTHER, body, "another run");
	expect_no_entry(d, ID, body + 1, "members");
	expect_no_entry(d, ID, "x", "members");
	(void)snprintf(text, sizeof(text), "%s", body);
	text[strlen(text) - 1] = '\0';
	expect_no_entry(d, ID, text, "none");
	for (const char *bad = "\n\x01\"\\\xff"; *bad; bad++) {
		(void)snprintf(text, sizeof(text), "%s", body);
		*strstr(text, "python") = *bad;
		expect_no_entry(d, ID, text, "");
	}
	assert_false(has_log(d));
	(void)append_it(d, ID, body);
	expect_whole(d, 1);
}

static void time_of_entry(struct desk_bed *d, char *dst, size_t size)
{
	char line[AUDIT_ENTRY_MAX];
	FILE *f;

	(void)snprintf(line, sizeof(line), "%s/audit/000001.jsonl", d->b->path);
	f = fopen(line, "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f)); /* the file's own */
	assert_non_null(fgets(line, sizeof(line), f));
	(void)fclose(f);
	(void)snprintf(dst, size, "%.24s", strstr(line, "\"time\":\"") + strlen("\"time\":\""));
}

static void an_entry_cannot_be_dated_back(void **state)
{
	struct desk_bed *d = *state;
	AUTO_FREE char *body = body_of(d, ID);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	char text[32], oldest[WHEN_TEXT_MAX], now[WHEN_TEXT_MAX];

	(void)when_utc(oldest, sizeof(oldest), clock_wall_ns() - 601 * NS_PER_SEC);
	assert_int_equal(append_body(d, ID, body, 1, &answer, &err), 1);
	(void)when_utc(now, sizeof(now), clock_wall_ns());
	time_of_entry(d, text, sizeof(text));
	assert_true(strcmp(oldest, text) <= 0 && strcmp(text, now) <= 0);
}

static void an_entry_cannot_come_from_the_future(void **state)
{
	struct desk_bed *d = *state;
	AUTO_FREE char *body = body_of(d, ID);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	char text[32], now[WHEN_TEXT_MAX];

	assert_int_equal(append_body(d, ID, body, UINT64_MAX, &answer, &err), 1);
	(void)when_utc(now, sizeof(now), clock_wall_ns());
	time_of_entry(d, text, sizeof(text));
	assert_true(strcmp(text, now) <= 0);
}

/* ---- history and receipts ------------------------------------------------------------------------------------- */

static int say_bytes(struct desk_bed *d, struct packet_out *w, enum packet_field f, const char *id,
		     const struct bytes *what, struct packet_in *ret, struct brig_error *err)
{
	packet_text(w, PACKET_id, id);
	packet_bytes(w, f, what->data, what->len);
	return say(d, w, ret, err);
}

static void the_history_takes_records_of_that_run_only(void **state)
{
	static const struct {
		const char *id;
		size_t len;
		bool good;
	} rows[] = { { OTHER, SIZE_MAX, false },
		     { ID, 1, false },
		     { ID, 40, false },
		     { ID, SIZE_MAX, true },
		     { ID, SIZE_MAX, true } };
	struct desk_bed *d = *state;
	AUTO_BUF packed = BUF_INIT(MiB);
	char *text = NULL;

	d->b->set.history = true;
	assert_int_equal(history_pack(&d->b->rec, &packed, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_PACKET_OUT w = PACKET_OUT_INIT(history);
		AUTO_PACKET_IN answer = PACKET_IN_INIT;
		struct brig_error err = BRIG_ERROR_INIT;
		const struct bytes what = { packed.data, min_u64(packed.len, rows[i].len) };
		int rc = say_bytes(d, &w, PACKET_packed, rows[i].id, &what, &answer, &err);

		assert_int_equal(rc, rows[i].good ? 1 : -BRIG_E_REFUSED);
	}
	assert_int_equal(brig_history_json(d->handle, NULL, &text, NULL), 0);
	assert_non_null(strstr(text, "\"total\":1,"));
	brig_free(text);
}

/* One message for both: the history says where the entry is, which only the recorder knows. */
static void an_entry_brings_its_record_along(void **state)
{
	struct desk_bed *d = *state;
	AUTO_FREE char *body = body_of(d, ID);
	AUTO_BUF packed = BUF_INIT(MiB);
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(append);
	AUTO_PACKET_OUT bad = PACKET_OUT_INIT(append);
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	AUTO_PACKET_IN other = PACKET_IN_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL, hash[SHA256_HEX + 1], wanted[128];

	d->b->set.history = true;
	assert_int_equal(history_pack(&d->b->rec, &packed, NULL), 0);
	packet_text(&w, PACKET_id, ID);
	packet_number(&w, PACKET_began_ns, clock_wall_ns());
	packet_bytes(&w, PACKET_body, body, strlen(body));
	packet_bytes(&w, PACKET_packed, packed.data, packed.len);
	assert_int_equal(say(d, &w, &answer, &err), 1);
	assert_null(answer.at[PACKET_message]);
	assert_int_equal(brig_show_json(d->handle, ID, &text, NULL), 0);
	(void)snprintf(wanted, sizeof(wanted), "%s",
		       hex_put(hash, (const uint8_t *)answer.at[PACKET_hash], SHA256_LEN));
	assert_non_null(strstr(text, wanted));
	brig_free(text);
	/* What is no record of the run leaves the entry as it is, and is said. */
	packet_text(&bad, PACKET_id, ID);
	packet_number(&bad, PACKET_began_ns, clock_wall_ns());
	packet_bytes(&bad, PACKET_body, body, strlen(body));
	packet_bytes(&bad, PACKET_packed, packed.data, 40);
	assert_int_equal(say(d, &bad, &other, &err), 1);
	assert_non_null(other.at[PACKET_message]);
	assert_memory_equal(other.at[PACKET_hash], answer.at[PACKET_hash], SHA256_LEN);
}

static void receipts_are_signed_for_claims_only(void **state)
{
	struct desk_bed *d = *state;
	AUTO_FREE char *body = body_of(d, ID);
	AUTO_FREE char *claims = NULL;
	char other[16384], *verdict = NULL;
	const struct {
		const char *text, *id;
		bool good;
	} rows[] = {
		{ "", ID, false }, { "{}", ID, false }, { other, ID, false }, { NULL, OTHER, false }, { NULL, ID, true }
	};

	(void)append_it(d, ID, body);
	assert_int_equal(receipt_claims(&d->b->rec, &claims, NULL), 0);
	(void)snprintf(other, sizeof(other), "{\"brig\":\"9\",%s", claims + 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_PACKET_OUT w = PACKET_OUT_INIT(receipt);
		AUTO_PACKET_IN answer = PACKET_IN_INIT;
		struct brig_error err = BRIG_ERROR_INIT;
		const char *text = rows[i].text ? rows[i].text : claims;
		const struct bytes what = { text, strlen(text) + (*text == '\0') };
		int rc = say_bytes(d, &w, PACKET_claims, rows[i].id, &what, &answer, &err);

		assert_int_equal(rc, rows[i].good ? 1 : -BRIG_E_REFUSED);
		if (!rows[i].good)
			continue;
		text = answer.at[PACKET_document];
		assert_int_equal(brig_receipt_verify(text, strlen(text), NULL, &verdict, &err), 0);
		assert_non_null(strstr(text, "\"entry\": 2"));
		brig_free(verdict);
	}
}

/* ---- who asks --------------------------------------------------------------------------------------------------- */

static void who_asks_is_told_of_its_end(void **state)
{
	struct desk_bed *d = *state;
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(ask_show);
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD reply = FD_NONE;

	assert_int_equal(link_ask(d->ask, &w, &reply, &err), 0);
	assert_int_equal(link_answer(reply, &answer, &err), 0); /* it has not been taken yet */
	packet_forget(&answer);
	{
		AUTO_PACKET_IN taken = PACKET_IN_INIT;
		const char *why = NULL;

		assert_int_equal(packet_receive(d->answer, false, &taken, &why), 1);
	}
	assert_int_equal(link_answer(reply, &answer, &err), -BRIG_E_SYSTEM);
	assert_int_equal(err.sys, EPIPE);
}

/* Of a run that follows another the recorder has heard before it comes; what it has not answered in time is asked anew. */
static void the_next_run_is_announced(void **state)
{
	struct desk_bed *d = *state;
	struct recorder r = RECORDER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct settings *set = calloc(1, sizeof(*set));
	char id[RUN_ID_LEN + 1] = "";

	assert_non_null(set);
	r.link = d->ask;
	set->audit = AUDIT_REQUIRED;
	record_announce(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err),
			 0); /* the first: none is to be expected yet */
	record_announce(&r, set);
	assert_false(record_take_announced(&r, id)); /* not answered */
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 1);
	record_announce(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 1);
	assert_true(record_take_announced(&r, id));
	assert_int_equal(strlen(id), RUN_ID_LEN);
	assert_false(record_take_announced(&r, id)); /* it is one run's */
	record_announce(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 1);
	r.ahead.asked_ns -= RECORD_AHEAD_NS;
	assert_false(record_take_announced(&r, id)); /* too long ago */
	set->audit = AUDIT_OFF;
	record_announce(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 0);
	r.link = FD_NONE;
	recorder_release(&r);
	free(set);
}

/* It is asked once about the next run: during one or, if that was long ago, at its end. */
static void a_run_may_be_announced_during_another(void **state)
{
	struct desk_bed *d = *state;
	struct recorder r = RECORDER_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct settings *set = calloc(1, sizeof(*set));
	char id[RUN_ID_LEN + 1] = "", other[RUN_ID_LEN + 1] = "";

	assert_non_null(set);
	r.link = d->ask;
	set->audit = AUDIT_REQUIRED;
	record_expect(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 0); /* no run before it: none is expected */
	record_announce(&r, set);
	record_expect(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 1);
	record_announce(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 0);
	assert_true(record_take_announced(&r, id));
	record_expect(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 1);
	assert_true(record_take_announced(&r, other));
	assert_string_not_equal(id, other);
	record_expect(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 1);
	r.ahead.asked_ns -= RECORD_FRESH_NS;
	record_announce(&r, set);
	assert_int_equal(brig_recorder_step(d->recorder, d->answer, &err), 1);
	assert_true(record_take_announced(&r, id));
	r.link = FD_NONE;
	recorder_release(&r);
	free(set);
}

/* ---- its walls ---------------------------------------------------------------------------------------------------- */

/* How a process ends that confines itself as the recorder does, and then tries that. */
static int try_confined(const char *state, int (*fn)(const char *state))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		const char *step;

		_exit(recorder_confine(state, &step) < 0 ? 99 : fn(state));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int open_outside(const char *state UNUSED)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 1;
}

static int open_inside(const char *state)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/file", state);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0 && unlink(path) == 0 ? 0 : 1;
}

static int make_socket(const char *state UNUSED)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0;
}

static int start_program(const char *state UNUSED)
{
	return execl("/bin/true", "true", (char *)NULL);
}

static void it_has_one_folder_and_no_network(void **state)
{
	const struct desk_bed *d = *state;

	assert_int_equal(try_confined(d->b->path, open_inside), 0);
	if (landlock_abi() > 0)
		assert_int_equal(try_confined(d->b->path, open_outside), 0);
	if (SANITIZED) /* no filter there */
		return;
	assert_int_equal(try_confined(d->b->path, make_socket) & 0x7f, SIGSYS);
	assert_int_equal(try_confined(d->b->path, start_program) & 0x7f, SIGSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_no_message_changes_nothing, begin, end),
		cmocka_unit_test_setup_teardown(a_file_must_be_sealed_and_as_long_as_it_says, begin, end),
		cmocka_unit_test_setup_teardown(an_entry_is_written_once_and_stays, begin, end),
		cmocka_unit_test_setup_teardown(a_body_cannot_be_more_than_that, begin, end),
		cmocka_unit_test_setup_teardown(an_entry_cannot_be_dated_back, begin, end),
		cmocka_unit_test_setup_teardown(an_entry_cannot_come_from_the_future, begin, end),
		cmocka_unit_test_setup_teardown(the_history_takes_records_of_that_run_only, begin, end),
		cmocka_unit_test_setup_teardown(an_entry_brings_its_record_along, begin, end),
		cmocka_unit_test_setup_teardown(receipts_are_signed_for_claims_only, begin, end),
		cmocka_unit_test_setup_teardown(who_asks_is_told_of_its_end, begin, end),
		cmocka_unit_test_setup_teardown(the_next_run_is_announced, begin, end),
		cmocka_unit_test_setup_teardown(a_run_may_be_announced_during_another, begin, end),
		cmocka_unit_test_setup_teardown(it_has_one_folder_and_no_network, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
