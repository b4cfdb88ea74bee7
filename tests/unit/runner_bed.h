/* SPDX-License-Identifier: Apache-2.0 */
/* A runner of the service, driven as the front drives it: a process of its own, messages over a socket, real cells. */
#ifndef RUNNER_BED_H
#define RUNNER_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fd.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/channel.h"
#include "server/keepers.h"
#include "server/message.h"
#include "server/routes.h"
#include "server/serve.h"
#include "server/tokens.h"
#include "server/control.h"
#include "temp_folder.h"

#define PATIENCE_MS 60000 /* for what must come; nothing is decided by it */

/* ---- a runner ---------------------------------------------------------------------------------------------- */

struct bed {
	struct serve_options options;
	char state[256];
	pid_t runner, recorder, keeps; /* keeps: what a master does for cells */
	struct channel *channel;
	int master, recorder_master;
	uint32_t tag; /* the last one used */
};

static inline void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int rc;

	do
		rc = poll(&p, 1, PATIENCE_MS);
	while (rc < 0 && errno == EINTR);
	assert_int_equal(rc, 1);
}

/* The process that writes for the runner; *ret: the runner's end of its socket. */
static inline void start_recorder(struct bed *b, int *ret)
{
	int asked[2], master[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, asked), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, master), 0);
	b->recorder = fork();
	assert_true(b->recorder >= 0);
	if (b->recorder == 0) {
		const struct recorder_args args = { .options = &b->options, .socket = asked[1], .master = master[1] };

		_exit(recorder_main(&args));
	}
	(void)close(asked[1]);
	(void)close(master[1]);
	b->recorder_master = master[0];
	*ret = asked[0];
}

static inline void end_recorder(struct bed *b)
{
	fd_closep(&b->recorder_master); /* it does what waits, and ends */
	if (b->recorder > 0)
		assert_int_equal(waitpid(b->recorder, NULL, 0), b->recorder);
	b->recorder = 0;
}

/* What one side has said, for the other; keepers are started here.  False: that side has gone. */
static inline bool pass_word(int from, int to, struct keepers *k)
{
	struct control_message w;
	int rc = control_receive(from, &w);

	if (rc > 0 && w.kind == CONTROL_KEEPER && w.n_fds == 1)
		keepers_start(k, w.fds[0], w.number == 1);
	else if (rc > 0)
		(void)control_send(to, &w);
	control_close(&w);
	return rc >= 0;
}

/* Between the test, which is the master, and the runner: starts keepers, as a master does. */
static inline void keep_for(const struct bed *b, int test, int runner)
{
	struct pollfd p[] = { { .fd = test, .events = POLLIN }, { .fd = runner, .events = POLLIN } };
	struct keepers k = KEEPERS_NONE;
	struct brig_error err = BRIG_ERROR_INIT;
	bool goes_on = keepers_open(&k, &b->options, &err) == 0;

	while (goes_on && (poll(p, ARRAY_LEN(p), -1) > 0 || errno == EINTR))
		goes_on = (!p[0].revents || pass_word(test, runner, &k)) &&
			  (!p[1].revents || pass_word(runner, test, &k));
	(void)close(runner); /* it ends, and then its keepers do */
	keepers_close(&k, (uint64_t)PATIENCE_MS * NS_PER_MS);
	_exit(0);
}

static inline void start_keeping(struct bed *b, int *ret_runner)
{
	int test[2], runner[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, test), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, runner), 0);
	b->keeps = fork();
	assert_true(b->keeps >= 0);
	if (b->keeps == 0) {
		(void)close(test[0]);
		(void)close(runner[1]);
		(void)close(b->recorder_master);
		keep_for(b, test[1], runner[0]);
	}
	(void)close(test[1]);
	(void)close(runner[0]);
	b->master = test[0];
	*ret_runner = runner[1];
}

static inline void end_keeping(struct bed *b)
{
	fd_closep(&b->master);
	if (b->keeps > 0)
		assert_int_equal(waitpid(b->keeps, NULL, 0), b->keeps);
	b->keeps = 0;
}

static inline void start(struct bed *b)
{
	int channel[2], master = FD_NONE, recorder = FD_NONE;
	struct brig_error err = BRIG_ERROR_INIT;
	char word = 0;

	b->options.state = b->state;
	(void)fflush(NULL);
	start_keeping(b, &master);
	start_recorder(b, &recorder);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), 0);
	b->runner = fork();
	assert_true(b->runner >= 0);
	if (b->runner == 0) {
		const struct runner_args args = {
			.options = &b->options, .channel = channel[1], .recorder = recorder, .master = master
		};

		(void)close(channel[0]);
		(void)close(b->master);
		exit(runner_main(&args)); /* as a process ends that looks for leaks then */
	}
	(void)close(channel[1]);
	(void)close(master);
	(void)close(recorder);
	assert_int_equal(channel_new(&channel[0], &b->channel, &err), 0);
	wait_readable(b->master);
	assert_int_equal(recv(b->master, &word, 1, 0), 1);
	assert_int_equal(word, CONTROL_READY);
}

static inline int end_of(struct bed *b)
{
	int status = -1;

	assert_int_equal(waitpid(b->runner, &status, 0), b->runner);
	b->runner = 0;
	end_recorder(b);
	end_keeping(b);
	channel_free(b->channel);
	b->channel = NULL;
	assert_true(WIFEXITED(status) || WIFSIGNALED(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int stop(struct bed *b)
{
	const char now = CONTROL_NOW;

	assert_int_equal(send(b->master, &now, 1, MSG_NOSIGNAL), 1);
	return end_of(b);
}

static inline int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	*state = b;
	b->options.no_auth = true;
	b->options.policy = "";
	b->master = b->recorder_master = FD_NONE;
	return temp_folder_make(b->state, sizeof(b->state), "runner");
}

static inline int tear_down(void **state)
{
	struct bed *b = *state;

	if (b->runner > 0) {
		(void)kill(b->runner, SIGKILL);
		(void)waitpid(b->runner, NULL, 0);
	}
	end_recorder(b);
	channel_free(b->channel);
	end_keeping(b);
	(void)temp_folder_remove(b->state);
	free(b);
	return 0;
}

/* ---- asking ------------------------------------------------------------------------------------------------- */

struct got {
	uint16_t status;
	enum record_type type;
	uint32_t tag;
	bool is_event;
	uint64_t retry_after;
	char content_type[128], who[80], location[300];
	char *body;
	size_t len;
	json_t *doc; /* NULL: the body is no JSON */
};

static inline void got_release(struct got *g)
{
	free(g->body);
	json_decref(g->doc);
	*g = (struct got){ 0 };
}
#define AUTO_GOT             \
	CLEANUP(got_release) \
	struct got

static inline void take_answer(const struct record *r, struct got *ret)
{
	struct message m;
	const char *why, *text;

	assert_true(message_read(r->data, r->len, &m, &why));
	text = message_bytes(&m, FIELD_body, &ret->len);
	ret->body = calloc(1, ret->len + 1);
	assert_non_null(ret->body);
	if (ret->len)
		memcpy(ret->body, text, ret->len);
	ret->retry_after = message_number(&m, FIELD_retry_after, 0);
	text = message_text(&m, FIELD_content_type);
	(void)str_copy(ret->content_type, sizeof(ret->content_type), text ? text : "");
	text = message_text(&m, FIELD_who);
	(void)str_copy(ret->who, sizeof(ret->who), text ? text : "");
	text = message_text(&m, FIELD_location);
	(void)str_copy(ret->location, sizeof(ret->location), text ? text : "");
}

static inline struct got next_record(struct bed *b)
{
	struct got g = { 0 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct record r;
	int rc;

	while ((rc = channel_receive(b->channel, &r, &err)) == 0)
		wait_readable(channel_fd(b->channel));
	if (rc < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(r.n_fds, 0);
	g.status = r.status;
	g.type = r.type;
	g.tag = r.tag;
	if (r.type == RECORD_EVENT) {
		g.body = strndup(r.data, r.len);
		g.len = r.len;
	} else {
		assert_int_equal(r.type, RECORD_ANSWER);
		take_answer(&r, &g);
	}
	g.doc = json_loadb(g.body, g.len, JSON_ALLOW_NUL, NULL);
	return g;
}

/* A message to be filled. */
static inline void begin_ask(struct buf *m, enum route route)
{
	*m = (struct buf)BUF_INIT(MESSAGE_MAX);
	message_put_number(m, FIELD_route, route);
	message_put_text(m, FIELD_request_id, "r-1");
}

static inline uint32_t send_with(struct bed *b, struct buf *m, const int *fds, size_t n_fds)
{
	struct record r = { .tag = ++b->tag, .type = RECORD_ASK, .data = m->data, .len = m->len, .n_fds = n_fds };
	struct brig_error err = BRIG_ERROR_INIT;

	for (size_t i = 0; i < n_fds; i++)
		r.fds[i] = fds[i];
	assert_int_equal(channel_send(b->channel, &r, &err), 0);
	buf_release(m);
	return r.tag;
}

static inline uint32_t send_ask(struct bed *b, struct buf *m)
{
	return send_with(b, m, NULL, 0);
}

static inline struct got ask(struct bed *b, struct buf *m)
{
	uint32_t tag = send_ask(b, m);
	struct got g = next_record(b);

	assert_int_equal(g.tag, tag);
	assert_int_equal(g.type, RECORD_ANSWER);
	return g;
}

static inline void begin_code(struct buf *m, const char *language, const char *code)
{
	begin_ask(m, ROUTE_execute);
	message_put_text(m, FIELD_language, language);
	message_put_bytes(m, FIELD_code, code, strlen(code));
}

static inline struct got ask_plain(struct bed *b, enum route route, const char *id, const char *credential)
{
	struct buf m;

	begin_ask(&m, route);
	message_put_text(&m, FIELD_id, id);
	message_put_text(&m, FIELD_credential, credential);
	return ask(b, &m);
}

static inline const char *text_in(const struct got *g, const char *member)
{
	const char *text = json_string_value(json_object_get(g->doc, member));

	if (!text)
		fail_msg("no '%s' in %u %s", member, g->status, g->body);
	return text;
}

static inline void expect_error(const struct got *g, uint16_t status, const char *code, const char *words)
{
	const json_t *error = json_object_get(g->doc, "error");
	const char *message = json_string_value(json_object_get(error, "message"));

	if (g->status != status || !message || !strstr(message, words))
		fail_msg("%u %s, not %u with '%s'", g->status, g->body, status, words);
	assert_string_equal(json_string_value(json_object_get(error, "code")), code);
	assert_string_equal(json_string_value(json_object_get(error, "request_id")), "r-1");
}

/* ---- executions --------------------------------------------------------------------------------------------- */

/* Events of one tag up to its answer; what was written, and the names of the events in their order. */
static inline void read_stream(struct bed *b, uint32_t tag, struct buf *ret_output, struct buf *ret_names,
			       char verdict[32])
{
	for (;;) {
		AUTO_GOT g = next_record(b);

		assert_int_equal(g.tag, tag);
		if (g.type == RECORD_ANSWER) {
			assert_int_equal(g.status, 200);
			return;
		}
		assert_in_range(g.status, 0, EVENT_KINDS - 1);
		assert_string_equal(text_in(&g, "event"), event_name[g.status]);
		if (g.status != EVENT_sample)
			buf_addf(ret_names, "%s ", event_name[g.status]);
		if (g.status == EVENT_stdout)
			buf_adds(ret_output, text_in(&g, "data"));
		if (g.status == EVENT_verdict) {
			assert_true(json_is_object(json_object_get(g.doc, "result")));
			(void)str_copy(verdict, 32, text_in(&g, "verdict"));
		}
	}
}

#define ENDLESS "while :; do sleep 1; done"

/* Accepted: its id. */
static inline void begin_async(struct bed *b, const char *code, const char *credential, char ret_id[32])
{
	struct buf m;
	AUTO_GOT g = { 0 };

	begin_code(&m, "shell", code);
	message_put_number(&m, FIELD_async, 1);
	message_put_text(&m, FIELD_option, "timeout=100");
	message_put_text(&m, FIELD_credential, credential);
	g = ask(b, &m);
	assert_int_equal(g.status, 202);
	(void)str_copy(ret_id, 32, text_in(&g, "id"));
	assert_int_equal(strncmp(g.location, "/v1/executions/", 15), 0);
	assert_string_equal(g.location + 15, ret_id);
}

static inline void wait_for_end(struct bed *b, const char *id, char verdict[32])
{
	AUTO_BUF output = BUF_INIT(MiB), names = BUF_INIT(MiB);
	struct buf m;

	begin_ask(&m, ROUTE_execution_events);
	message_put_text(&m, FIELD_id, id);
	read_stream(b, send_ask(b, &m), &output, &names, verdict);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
