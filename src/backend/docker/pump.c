/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that flows between the watcher, the engine's stream and a container's init.
 *
 *	program's stdout  engine's frames -> pipe -> watcher
 *	program's stderr  engine's frames -> what is init's is taken out (wire.h) -> pipe -> watcher
 *	program's stdin   watcher -> pipe -> messages to init -> engine's stream
 *
 * Nothing here waits and nothing grows: while a pipe has no room, nothing is read from the stream, and the engine in turn
 * stops reading from the program.  One epoll descriptor tells the watcher that there is something to move.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "backend/docker/cell.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"

static void watch_fd(struct cell *c, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	if (fd < 0)
		return;
	if (epoll_ctl(c->poll, EPOLL_CTL_MOD, fd, &e) < 0 && errno == ENOENT)
		(void)epoll_ctl(c->poll, EPOLL_CTL_ADD, fd, &e);
}

static void forget_fd(struct cell *c, int fd)
{
	if (fd >= 0 && c->poll >= 0)
		(void)epoll_ctl(c->poll, EPOLL_CTL_DEL, fd, NULL);
}

static int make_pipe(int *read_end, int *write_end)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	*read_end = fd[0];
	*write_end = fd[1];
	return 0;
}

int pump_open(struct cell *c, struct brig_error *err)
{
	int rc = make_pipe(&c->out.read, &c->out.write);

	if (rc == 0)
		rc = make_pipe(&c->err.read, &c->err.write);
	if (rc == 0)
		rc = make_pipe(&c->in_read, &c->in_write);
	if (rc == 0 && (c->poll = epoll_create1(EPOLL_CLOEXEC)) < 0)
		rc = -errno;
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot make pipes for the container");
	c->frames = (struct frames)FRAMES_INIT(FRAME_MAX);
	c->out.rest.max = c->err.rest.max = c->plan->limits.output_bytes + 64 * KiB;
	return 0;
}

/* ---- to init -------------------------------------------------------------------------------------- */

/* The root of a container is the image's, and closed: what the host trusts comes into a place that can be written. */
static const struct plan_file *certificates(const struct plan *plan)
{
	return plan->egress ? plan->egress->certificates : NULL;
}

/* Of the plan, and the certificates behind them; NULL: all are sent. */
static const struct plan_file *file_under_way(const struct cell *c)
{
	if (c->file < c->plan->n_files)
		return &c->plan->files[c->file];
	return c->file == c->plan->n_files ? certificates(c->plan) : NULL;
}

static void fill_job(const struct cell *c, struct wire_job *j)
{
	const struct plan *plan = c->plan;
	size_t i;

	memcpy(j->key[0], c->reader.key, WIRE_KEY);
	memcpy(j->key[1], c->reader.tail.key, WIRE_KEY);
	j->flags = (plan->profile == SECCOMP_PROFILE_STRICT ? WIRE_STRICT : 0) |
		   (plan->deny_write_exec ? WIRE_DENY_WRITE_EXEC : 0) |
		   (plan->workspace_exec ? WIRE_WORKSPACE_EXEC : 0) |
		   (plan->may_degrade & PROT_BIT(PROT_landlock) ? WIRE_WITHOUT_LANDLOCK : 0) |
		   (c->project.data ? WIRE_PROJECT : 0) |
		   (plan->workspace && plan->workspace->read_only ? WIRE_READ_ONLY : 0) |
		   (plan->wants_view ? WIRE_RETURN : 0) | (left_wanted(c) ? WIRE_NAME_LEFT : 0);
	j->tree_entries = tree_caps(c).entries;
	j->tree_bytes = tree_caps(c).bytes;
	j->room_bytes = c->project.room;
	j->room_inodes = c->project.entries;
	j->shown_entries = c->shown.entries;
	j->shown_bytes = c->shown.bytes;
	j->shown = c->folder ? c->folder->target : "";
	j->link = c->linked ? c->linked->target + strlen(PLAN_WORKSPACE "/") : "";
	j->link_to = c->linked ? c->linked->same_as : "";
	j->family = plan->family;
	j->wall_ms = plan->limits.wall_ms;
	j->cpu_time_ms = plan->limits.cpu_time_ms;
	j->disk_bytes = plan->limits.disk_bytes;
	j->open_files = plan->limits.open_files;
	j->output_max = plan->limits.disk_bytes;
	j->output = plan->output ? plan->output : "";
	for (i = 0; i < WIRE_ARGS_MAX && plan->argv[i]; i++)
		j->argv[i] = plan->argv[i];
	for (i = 0; i < WIRE_ENV_MAX && plan->envp[i]; i++)
		j->envp[i] = plan->envp[i];
	for (i = 0; plan->workspace && i < WIRE_HIDDEN_MAX && i < plan->workspace->n_hidden; i++)
		j->hidden[i] = plan->workspace->hidden[i];
	for (i = 0; i < plan->n_files && i < WIRE_FILES_MAX; i++)
		j->files[i] = (struct wire_file){ .name = plan->files[i].name,
						  .mode = plan->files[i].mode,
						  .len = plan->files[i].len };
	if (certificates(plan) && i < WIRE_FILES_MAX)
		j->files[i++] = (struct wire_file){ .name = CERTIFICATES_NAME,
						    .place = WIRE_IN_TMP,
						    .mode = certificates(plan)->mode,
						    .len = certificates(plan)->len };
	j->n_files = (uint32_t)i;
}

int pump_load(struct cell *c, struct brig_error *err)
{
	AUTO_FREE struct wire_job *j = calloc(1, sizeof(*j));
	const size_t room = WIRE_HEAD + WIRE_META_MAX;

	c->head = malloc(room);
	if (!j || !c->head)
		return err_nomem(err);
	fill_job(c, j);
	c->head_len = wire_job_encode(j, c->head, room);
	explicit_bzero(j, sizeof(*j)); /* the keys */
	if (c->head_len == 0 || c->plan->n_files + !!certificates(c->plan) > WIRE_FILES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "the command and its environment are too long for a container");
	c->file = 0;
	c->sent = 0;
	return 0;
}

/* A tree that is to be sent now: the project, then what is shown. */
static struct project_out *tree_waits(struct cell *c)
{
	if (c->project.data && !c->project.sent)
		return &c->project;
	return c->shown.data && !c->shown.sent ? &c->shown : NULL;
}

/* The part that is under way: the job's head, a tree, a file, or a message; NULL: nothing. */
static const char *part(struct cell *c, size_t *len)
{
	const struct project_out *tree = tree_waits(c);

	if (c->head) {
		*len = c->head_len;
		return c->head;
	}
	if (tree) {
		*len = tree->len;
		return tree->data;
	}
	if (file_under_way(c)) {
		*len = file_under_way(c)->len;
		return file_under_way(c)->data;
	}
	*len = c->message_len;
	return c->message;
}

static bool nothing_to_send(struct cell *c)
{
	return !c->head && !tree_waits(c) && !file_under_way(c) && c->message_len == 0;
}

static void part_is_sent(struct cell *c)
{
	c->sent = 0;
	if (c->head) {
		explicit_bzero(c->head, c->head_len); /* the keys */
		free(MOVE_PTR(c->head));
	} else if (tree_waits(c)) {
		tree_waits(c)->sent = true;
	} else if (file_under_way(c)) {
		c->file++;
	} else {
		c->message_len = 0;
	}
}

/* A container that does not listen any more has its own way of saying why: errors here end the writing, not the cell. */
static void send_parts(struct cell *c)
{
	while (c->stream && !nothing_to_send(c)) {
		size_t len;
		const char *data = part(c, &len);
		ssize_t n = c->sent < len ? http_stream_write(c->stream, data + c->sent, len - c->sent) : 0;

		if (n == -EAGAIN)
			return;
		if (n < 0)
			n = (ssize_t)(len - c->sent);
		c->sent += (size_t)n;
		if (c->sent == len)
			part_is_sent(c);
	}
}

static bool send_message(struct cell *c, enum wire_message type, const void *body, size_t len)
{
	send_parts(c);
	if (!nothing_to_send(c))
		return false;
	wire_prefix(c->message, type, (uint32_t)len);
	memcpy(c->message + WIRE_PREFIX, body, len);
	c->message_len = WIRE_PREFIX + len;
	send_parts(c);
	return true;
}

bool pump_message(struct cell *c, enum wire_message type)
{
	return send_message(c, type, "", 0);
}

/* The mark is made now: no process but init, which passes it on, is left to see it. */
void pump_ask_mark(struct cell *c)
{
	uint8_t mark[WIRE_KEY];

	if (c->out_marked || getrandom(mark, sizeof(mark), 0) != (ssize_t)sizeof(mark) ||
	    !send_message(c, WIRE_MARK, mark, sizeof(mark)))
		return;
	wire_mark_init(&c->out_end, mark);
	c->out_marked = true;
}

/* The program's stdin, one message at a time. */
static void take_input(struct cell *c)
{
	while (c->let_go && c->in_read >= 0 && nothing_to_send(c) && !c->draining) {
		ssize_t n = read(c->in_read, c->message + WIRE_PREFIX, WIRE_BODY_MAX);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			forget_fd(c, c->in_read);
			fd_closep(&c->in_read);
			(void)pump_message(c, WIRE_INPUT_END);
			return;
		}
		wire_prefix(c->message, WIRE_INPUT, (uint32_t)n);
		c->message_len = WIRE_PREFIX + (size_t)n;
		send_parts(c);
	}
}

/* ---- from the container --------------------------------------------------------------------------- */

static void flush(struct pipe_out *o)
{
	while (o->at < o->len && o->write >= 0) {
		ssize_t n = write(o->write, o->piece + o->at, o->len - o->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			n = (ssize_t)(o->len - o->at); /* nobody reads it */
		o->at += (size_t)n;
	}
	o->at = o->len = 0;
}

/* One read from the stream brings at most one piece for each pipe. */
static void deliver(struct cell *c, struct pipe_out *o, const char *data, size_t len)
{
	if (c->draining) {
		(void)buf_add(&o->rest, data, len);
		return;
	}
	if (len > sizeof(o->piece) - o->len)
		len = sizeof(o->piece) - o->len; /* cannot be: see pump_turn */
	memcpy(o->piece + o->len, data, len);
	o->len += len;
}

static bool take_fact(struct cell *c, const char *body, size_t len)
{
	struct wire_fact f;
	struct facts *to = c->reader.state == WIRE_IN_HEAD ? &c->early : &c->late;

	if (!wire_get_fact(body, len, &f) || f.id >= FACT_COUNT)
		return false;
	if (f.is_text)
		fact_text(to, (enum fact_id)f.id, f.text, "%s", f.source);
	else
		fact_num(to, (enum fact_id)f.id, f.num, "%s", f.source);
	return true;
}

static bool take_output(struct cell *c, const char *body, size_t len)
{
	if (c->output >= 0 || !wire_get_number(body, len, &c->output_size) ||
	    c->output_size > c->plan->limits.disk_bytes)
		return false;
	c->output = memfd_create("brig-output", MFD_CLOEXEC);
	return c->output >= 0;
}

static bool take_data(struct cell *c, const char *body, size_t len)
{
	if (c->output < 0 || len > c->output_size - c->output_got)
		return false;
	c->output_got += len;
	return fd_write_all(c->output, body, len) == 0;
}

/* One frame of init's; false if it makes no sense. */
static bool take_frame(struct cell *c, unsigned type, const char *body, size_t len)
{
	bool head = c->reader.state == WIRE_IN_HEAD || c->reader.state == WIRE_IN_GUEST;

	switch (type) {
	case WIRE_FACT:
		return take_fact(c, body, len);
	case WIRE_FAILED:
		c->failed_step = true;
		return wire_get_failure(body, len, &c->failure);
	case WIRE_SPACES:
		c->has_spaces = true;
		return head && wire_get_spaces(body, len, &c->spaces);
	case WIRE_READY:
		c->ready = true;
		return head && len == 0;
	case WIRE_EXIT:
		c->has_exit = true;
		return !head && wire_get_exit(body, len, &c->exit);
	case WIRE_OUTPUT:
		return !head && take_output(c, body, len);
	case WIRE_DATA:
		return !head && take_data(c, body, len);
	case WIRE_TREE:
		return !head && tree_take(c, body, len);
	case WIRE_TREE_END:
		return !head && tree_take_end(c, body, len);
	case WIRE_LEFT:
		return !head && left_take(c, body, len);
	case WIRE_END:
		c->final = c->reader.state == WIRE_DONE;
		return true;
	}
	return false;
}

static void keep_first_words(struct cell *c, const char *data, size_t len)
{
	size_t n = (size_t)min_u64(len, sizeof(c->first_words) - 1 - c->first_len);

	memcpy(c->first_words + c->first_len, data, n);
	c->first_len += n;
}

static int take_stderr(struct cell *c, const char *data, size_t len, struct brig_error *err)
{
	const char *all = data, *piece;
	size_t all_len = len, n;
	unsigned type;

	if (c->reader.state == WIRE_AT_KEY1 || c->reader.state == WIRE_BROKEN)
		keep_first_words(c, all, all_len);
	for (;;) {
		switch (wire_next(&c->reader, &data, &len, &type, &piece, &n)) {
		case WIRE_NOTHING:
			return 0;
		case WIRE_ITEM_GUEST:
			deliver(c, &c->err, piece, n);
			break;
		case WIRE_ITEM_FRAME:
			if (take_frame(c, type, piece, n))
				break;
			/* fall through */
		case WIRE_ITEM_BROKEN:
			return err_set(err, BRIG_E_SYSTEM, 0, "the container's init does not speak as it should");
		}
	}
}

static int take_stdout(struct cell *c, const char *data, size_t len, struct brig_error *err)
{
	const char *piece;
	size_t n;

	if (!c->let_go)
		return err_set(err, BRIG_E_SYSTEM, 0, "the container wrote output before its program was started");
	if (!c->out_marked) {
		deliver(c, &c->out, data, len);
		return 0;
	}
	while (wire_mark_next(&c->out_end, &data, &len, &piece, &n))
		deliver(c, &c->out, piece, n);
	if (len > 0) /* nobody is left who could write */
		return err_set(err, BRIG_E_SYSTEM, 0, "the container wrote output behind its end");
	return 0;
}

static int take_bytes(struct cell *c, const char *data, size_t len, struct brig_error *err)
{
	enum frame_stream stream;
	const char *piece;
	size_t n;
	int rc;

	while ((rc = frames_next(&c->frames, &data, &len, &stream, &piece, &n)) > 0) {
		rc = stream == FRAME_STDOUT ? take_stdout(c, piece, n, err) : take_stderr(c, piece, n, err);
		if (rc < 0)
			return -err->code;
	}
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the engine's stream makes no sense: %s",
			       frames_error_text(c->frames.error));
	return 0;
}

static void end_of_stream(struct cell *c)
{
	const char *rest;
	size_t n = wire_rest(&c->reader, &rest);

	if (n > 0)
		deliver(c, &c->err, rest, n);
	n = wire_mark_rest(&c->out_end, &rest);
	if (n > 0)
		deliver(c, &c->out, rest, n);
	c->stream_over = true;
	forget_fd(c, c->stream ? http_stream_fd(c->stream) : FD_NONE);
}

static bool is_full(const struct cell *c)
{
	return !c->draining && (c->out.len > 0 || c->err.len > 0);
}

static int read_stream(struct cell *c, struct brig_error *err)
{
	while (!c->stream_over && !is_full(c)) {
		ssize_t n = http_stream_read(c->stream, c->piece, sizeof(c->piece));
		int rc;

		if (n == -EAGAIN)
			return 0;
		if (n <= 0) { /* 0, or a connection that broke: in either case nothing more will come */
			end_of_stream(c);
			return 0;
		}
		rc = take_bytes(c, c->piece, (size_t)n, err);
		flush(&c->out);
		flush(&c->err);
		if (rc < 0) {
			end_of_stream(c); /* nothing that follows could be believed */
			return rc;
		}
	}
	return 0;
}

static void set_interest(struct cell *c)
{
	uint32_t stream = (is_full(c) ? 0 : EPOLLIN) | (nothing_to_send(c) ? 0 : EPOLLOUT);

	if (!c->stream_over)
		watch_fd(c, http_stream_fd(c->stream), stream);
	watch_fd(c, c->out.write, c->out.len > 0 ? EPOLLOUT : 0);
	watch_fd(c, c->err.write, c->err.len > 0 ? EPOLLOUT : 0);
	if (c->let_go && nothing_to_send(c) && !c->draining)
		watch_fd(c, c->in_read, EPOLLIN);
	else
		forget_fd(c, c->in_read); /* its hang-up would be told again and again */
}

int pump_turn(struct cell *c, struct brig_error *err)
{
	int rc;

	flush(&c->out);
	flush(&c->err);
	send_parts(c);
	take_input(c);
	rc = read_stream(c, err);
	set_interest(c);
	return rc;
}

void pump_wait(struct cell *c, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = c->poll, .events = POLLIN };
	uint64_t now = clock_now_ns();

	if (c->stream && !c->stream_over && http_stream_pending(c->stream))
		return;
	if (now < deadline_ns)
		(void)wait_poll(&p, 1, (int)min_u64((deadline_ns - now) / NS_PER_MS + 1, 60000));
}

/* ---- the end -------------------------------------------------------------------------------------- */

/* What the pipe cannot hold becomes a file under the same descriptor: pipe, piece and rest, in this order. */
static void become_file(struct pipe_out *o)
{
	AUTO_FD file = memfd_create("brig-rest", MFD_CLOEXEC);
	char piece[4096];
	ssize_t n;

	if (file < 0)
		return;
	while ((n = read(o->read, piece, sizeof(piece))) > 0)
		if (fd_write_all(file, piece, (size_t)n) < 0)
			return;
	if (fd_write_all(file, o->piece + o->at, o->len - o->at) == 0 &&
	    fd_write_all(file, buf_str(&o->rest), o->rest.len) == 0 && lseek(file, 0, SEEK_SET) == 0)
		(void)dup3(file, o->read, O_CLOEXEC);
}

static void finish(struct cell *c, struct pipe_out *o)
{
	if (o->write < 0)
		return;
	flush(o);
	forget_fd(c, o->write);
	if (o->len > 0 || o->rest.len > 0)
		become_file(o);
	fd_closep(&o->write);
	buf_release(&o->rest);
	o->at = o->len = 0;
}

void pump_hand_over(struct cell *c)
{
	finish(c, &c->out);
	finish(c, &c->err);
}

void pump_close(struct cell *c)
{
	int *const fds[] = { &c->out.read, &c->out.write, &c->err.read, &c->err.write,
			     &c->in_read,  &c->in_write,  &c->poll,     &c->output };

	http_stream_close(MOVE_PTR(c->stream));
	http_call_close(MOVE_PTR(c->wait));
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_closep(fds[i]);
	buf_release(&c->out.rest);
	buf_release(&c->err.rest);
	if (c->head)
		explicit_bzero(c->head, c->head_len);
	free(MOVE_PTR(c->head));
	explicit_bzero(c->reader.key, sizeof(c->reader.key));
	explicit_bzero(c->reader.tail.key, sizeof(c->reader.tail.key));
}
