/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves all data between the watcher, a container's stream and the container's init.
 *
 *	program's stdout  the stream -> pipe -> watcher
 *	program's stderr  the stream -> init's frames are taken out (wire.h) -> pipe -> watcher
 *	program's stdin   watcher -> pipe -> messages to init -> the stream
 *
 * Nothing here blocks or grows: while a pipe is full, nothing is read from the stream, and the engine in turn stops
 * reading from the program.  One epoll descriptor tells the watcher that there is something to move.
 */
#include "backend/container/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"

static void watch_fd(struct pump *p, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	if (fd < 0)
		return;
	if (epoll_ctl(p->poll, EPOLL_CTL_MOD, fd, &e) < 0 && errno == ENOENT)
		(void)epoll_ctl(p->poll, EPOLL_CTL_ADD, fd, &e);
}

static void forget_fd(struct pump *p, int fd)
{
	if (fd >= 0 && p->poll >= 0)
		(void)epoll_ctl(p->poll, EPOLL_CTL_DEL, fd, NULL);
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

void pump_clear(struct pump *p, const struct plan *plan, const struct pump_carrier *carrier, void *carried)
{
	memset(p, 0, sizeof(*p));
	p->plan = plan;
	p->carrier = carrier;
	p->carried = carried;
	p->left = (struct buf)BUF_INIT(WIRE_LEFT_BYTES);
	p->out.read = p->out.write = p->err.read = p->err.write = FD_NONE;
	p->in_read = p->in_write = p->poll = p->output = p->tree.fd = FD_NONE;
}

int pump_open(struct pump *p, struct brig_error *err)
{
	int rc = make_pipe(&p->out.read, &p->out.write);

	if (rc == 0)
		rc = make_pipe(&p->err.read, &p->err.write);
	if (rc == 0)
		rc = make_pipe(&p->in_read, &p->in_write);
	if (rc == 0 && (p->poll = epoll_create1(EPOLL_CLOEXEC)) < 0)
		rc = -errno;
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot make pipes for the container");
	p->out.rest.max = p->err.rest.max = p->plan->limits.output_bytes + 64 * KiB;
	return 0;
}

/* ---- to init -------------------------------------------------------------------------------------- */

/* The container's root is the image's, and read-only: the host's certificates go to a writable place. */
static const struct plan_file *certificates(const struct plan *plan)
{
	return plan->egress ? plan->egress->certificates : NULL;
}

/* A file of the plan, then the certificates; NULL: all are sent. */
static const struct plan_file *file_under_way(const struct pump *p)
{
	if (p->file < p->plan->n_files)
		return &p->plan->files[p->file];
	return p->file == p->plan->n_files ? certificates(p->plan) : NULL;
}

static void fill_job(const struct pump *p, struct wire_job *j)
{
	const struct plan *plan = p->plan;
	size_t i;

	memcpy(j->key[0], p->reader.key, WIRE_KEY);
	memcpy(j->key[1], p->reader.tail.key, WIRE_KEY);
	j->flags = (plan->profile == SECCOMP_PROFILE_STRICT ? WIRE_STRICT : 0) |
		   (plan->deny_write_exec ? WIRE_DENY_WRITE_EXEC : 0) |
		   (plan->workspace_exec ? WIRE_WORKSPACE_EXEC : 0) |
		   (plan->may_degrade & PROT_BIT(PROT_landlock) ? WIRE_WITHOUT_LANDLOCK : 0) |
		   (p->project.data ? WIRE_PROJECT : 0) |
		   (plan->workspace && plan->workspace->read_only ? WIRE_READ_ONLY : 0) |
		   (plan->wants_view ? WIRE_RETURN : 0) | (left_wanted(p) ? WIRE_NAME_LEFT : 0) |
		   (p->in_pod ? WIRE_IN_POD : 0);
	j->pids = plan->limits.pids;
	j->tree_entries = tree_caps(p).entries;
	j->tree_bytes = tree_caps(p).bytes;
	j->room_bytes = p->project.room;
	j->room_inodes = p->project.entries;
	j->shown_entries = p->shown.entries;
	j->shown_bytes = p->shown.bytes;
	j->shown = p->folder ? p->folder->target : "";
	j->link = p->linked ? p->linked->target + strlen(PLAN_WORKSPACE "/") : "";
	j->link_to = p->linked ? p->linked->same_as : "";
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

int pump_load(struct pump *p, struct brig_error *err)
{
	AUTO_FREE struct wire_job *j = calloc(1, sizeof(*j));
	const size_t room = WIRE_HEAD + WIRE_META_MAX;

	p->head = malloc(room);
	if (!j || !p->head)
		return err_nomem(err);
	fill_job(p, j);
	p->head_len = wire_job_encode(j, p->head, room);
	explicit_bzero(j, sizeof(*j)); /* contains the keys */
	if (p->head_len == 0 || p->plan->n_files + !!certificates(p->plan) > WIRE_FILES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "the command and its environment are too long for a container");
	p->file = 0;
	p->sent = 0;
	return 0;
}

/* The tree to send next: the project, then the shown tree. */
static struct project_out *tree_waits(struct pump *p)
{
	if (p->project.data && !p->project.sent)
		return &p->project;
	return p->shown.data && !p->shown.sent ? &p->shown : NULL;
}

/* The part being sent: the job's head, a tree, a file, or a message; NULL: nothing. */
static const char *part(struct pump *p, size_t *len)
{
	const struct project_out *tree = tree_waits(p);

	if (p->head) {
		*len = p->head_len;
		return p->head;
	}
	if (tree) {
		*len = tree->len;
		return tree->data;
	}
	if (file_under_way(p)) {
		*len = file_under_way(p)->len;
		return file_under_way(p)->data;
	}
	*len = p->message_len;
	return p->message;
}

static bool nothing_to_send(struct pump *p)
{
	return !p->head && !tree_waits(p) && !file_under_way(p) && p->message_len == 0;
}

static void part_is_sent(struct pump *p)
{
	p->sent = 0;
	if (p->head) {
		explicit_bzero(p->head, p->head_len); /* contains the keys */
		free(MOVE_PTR(p->head));
	} else if (tree_waits(p)) {
		tree_waits(p)->sent = true;
	} else if (file_under_way(p)) {
		p->file++;
	} else {
		p->message_len = 0;
	}
}

/* Write errors end the writing, not the cell: a container that has stopped reading reports why in its own way. */
static void send_parts(struct pump *p)
{
	while (p->stream && !nothing_to_send(p)) {
		size_t len;
		const char *data = part(p, &len);
		ssize_t n = p->sent < len ? p->carrier->write(p, data + p->sent, len - p->sent) : 0;

		if (n == -EAGAIN)
			return;
		if (n < 0)
			n = (ssize_t)(len - p->sent);
		p->sent += (size_t)n;
		if (p->sent == len)
			part_is_sent(p);
	}
}

static bool send_message(struct pump *p, enum wire_message type, const void *body, size_t len)
{
	send_parts(p);
	if (!nothing_to_send(p))
		return false;
	wire_prefix(p->message, type, (uint32_t)len);
	memcpy(p->message + WIRE_PREFIX, body, len);
	p->message_len = WIRE_PREFIX + len;
	send_parts(p);
	return true;
}

bool pump_message(struct pump *p, enum wire_message type)
{
	return send_message(p, type, "", 0);
}

/* The mark is generated now, when no process but init is left to see it. */
void pump_request_mark(struct pump *p)
{
	uint8_t mark[WIRE_KEY];

	if (p->out_marked || getrandom(mark, sizeof(mark), 0) != (ssize_t)sizeof(mark) ||
	    !send_message(p, WIRE_MARK, mark, sizeof(mark)))
		return;
	wire_mark_init(&p->out_end, mark);
	p->out_marked = true;
}

/* Sends the program's stdin, one message at a time. */
static void take_input(struct pump *p)
{
	while (p->go_sent && p->in_read >= 0 && nothing_to_send(p) && !p->draining) {
		ssize_t n = read(p->in_read, p->message + WIRE_PREFIX, WIRE_BODY_MAX);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			forget_fd(p, p->in_read);
			fd_closep(&p->in_read);
			(void)pump_message(p, WIRE_INPUT_END);
			return;
		}
		wire_prefix(p->message, WIRE_INPUT, (uint32_t)n);
		p->message_len = WIRE_PREFIX + (size_t)n;
		send_parts(p);
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
			n = (ssize_t)(o->len - o->at); /* no reader */
		o->at += (size_t)n;
	}
	o->at = o->len = 0;
}

/* Each read from the stream adds at most one piece to each pipe. */
static void deliver(struct pump *p, struct pipe_out *o, const char *data, size_t len)
{
	if (p->draining) {
		(void)buf_add(&o->rest, data, len);
		return;
	}
	if (len > sizeof(o->piece) - o->len)
		len = sizeof(o->piece) - o->len; /* cannot happen, see pump_turn() */
	memcpy(o->piece + o->len, data, len);
	o->len += len;
}

static bool take_fact(struct pump *p, const char *body, size_t len)
{
	struct wire_fact f;
	struct facts *to = p->reader.state == WIRE_IN_HEAD ? &p->early : &p->late;

	if (!wire_get_fact(body, len, &f) || f.id >= FACT_COUNT)
		return false;
	if (f.is_text)
		fact_text(to, (enum fact_id)f.id, f.text, "%s", f.source);
	else
		fact_num(to, (enum fact_id)f.id, f.num, "%s", f.source);
	return true;
}

static bool take_output(struct pump *p, const char *body, size_t len)
{
	if (p->output >= 0 || !wire_get_number(body, len, &p->output_size) ||
	    p->output_size > p->plan->limits.disk_bytes)
		return false;
	p->output = memfd_create("brig-output", MFD_CLOEXEC);
	return p->output >= 0;
}

static bool take_data(struct pump *p, const char *body, size_t len)
{
	if (p->output < 0 || len > p->output_size - p->output_got)
		return false;
	p->output_got += len;
	return fd_write_all(p->output, body, len) == 0;
}

/* Handles one frame from init; false if it is invalid. */
static bool take_frame(struct pump *p, unsigned type, const char *body, size_t len)
{
	bool head = p->reader.state == WIRE_IN_HEAD || p->reader.state == WIRE_IN_GUEST;

	switch (type) {
	case WIRE_FACT:
		return take_fact(p, body, len);
	case WIRE_FAILED:
		p->failed_step = true;
		return wire_get_failure(body, len, &p->failure);
	case WIRE_SPACES:
		p->has_spaces = true;
		return head && wire_get_spaces(body, len, &p->spaces);
	case WIRE_READY:
		p->ready = true;
		return head && len == 0;
	case WIRE_EXIT:
		p->has_exit = true;
		return !head && wire_get_exit(body, len, &p->exit);
	case WIRE_OUTPUT:
		return !head && take_output(p, body, len);
	case WIRE_DATA:
		return !head && take_data(p, body, len);
	case WIRE_TREE:
		return !head && tree_take(p, body, len);
	case WIRE_TREE_END:
		return !head && tree_take_end(p, body, len);
	case WIRE_LEFT:
		return !head && left_take(p, body, len);
	case WIRE_END:
		p->final = p->reader.state == WIRE_DONE;
		return true;
	}
	return false;
}

static void keep_first_words(struct pump *p, const char *data, size_t len)
{
	size_t n = (size_t)min_u64(len, sizeof(p->first_words) - 1 - p->first_len);

	memcpy(p->first_words + p->first_len, data, n);
	p->first_len += n;
}

int pump_stderr(struct pump *p, const char *data, size_t len, struct brig_error *err)
{
	const char *all = data, *piece;
	size_t all_len = len, n;
	unsigned type;

	if (p->reader.state == WIRE_AT_KEY1 || p->reader.state == WIRE_BROKEN)
		keep_first_words(p, all, all_len);
	for (;;) {
		switch (wire_next(&p->reader, &data, &len, &type, &piece, &n)) {
		case WIRE_NOTHING:
			return 0;
		case WIRE_ITEM_GUEST:
			deliver(p, &p->err, piece, n);
			break;
		case WIRE_ITEM_FRAME:
			if (take_frame(p, type, piece, n))
				break;
			/* fall through */
		case WIRE_ITEM_BROKEN:
			return err_set(err, BRIG_E_SYSTEM, 0, "the container's init does not speak as it should");
		}
	}
}

int pump_stdout(struct pump *p, const char *data, size_t len, struct brig_error *err)
{
	const char *piece;
	size_t n;

	if (!p->go_sent)
		return err_set(err, BRIG_E_SYSTEM, 0, "the container wrote output before its program was started");
	if (!p->out_marked) {
		deliver(p, &p->out, data, len);
		return 0;
	}
	while (wire_mark_next(&p->out_end, &data, &len, &piece, &n))
		deliver(p, &p->out, piece, n);
	if (len > 0) /* no process is left that could have written it */
		return err_set(err, BRIG_E_SYSTEM, 0, "the container wrote output behind its end");
	return 0;
}

void pump_end_stream(struct pump *p)
{
	const char *rest;
	size_t n = wire_rest(&p->reader, &rest);

	if (n > 0)
		deliver(p, &p->err, rest, n);
	n = wire_mark_rest(&p->out_end, &rest);
	if (n > 0)
		deliver(p, &p->out, rest, n);
	p->stream_over = true;
	forget_fd(p, p->stream ? http_stream_fd(p->stream) : FD_NONE);
}

static bool is_full(const struct pump *p)
{
	return !p->draining && (p->out.len > 0 || p->err.len > 0);
}

static int read_stream(struct pump *p, struct brig_error *err)
{
	while (p->stream && !p->stream_over && !is_full(p)) {
		ssize_t n = http_stream_read(p->stream, p->piece, sizeof(p->piece));
		int rc;

		if (n == -EAGAIN)
			return 0;
		if (n <= 0) { /* end of file, or a broken connection: nothing more will come */
			pump_end_stream(p);
			return 0;
		}
		rc = p->carrier->take(p, p->piece, (size_t)n, err);
		flush(&p->out);
		flush(&p->err);
		if (rc < 0) {
			pump_end_stream(p); /* nothing after it can be trusted */
			return rc;
		}
	}
	return 0;
}

static void set_interest(struct pump *p)
{
	bool waits = !nothing_to_send(p) || (p->stream && !p->stream_over && p->carrier->holds && p->carrier->holds(p));
	uint32_t stream = (is_full(p) ? 0 : EPOLLIN) | (waits ? EPOLLOUT : 0);

	if (!p->stream_over && p->stream)
		watch_fd(p, http_stream_fd(p->stream), stream);
	watch_fd(p, p->out.write, p->out.len > 0 ? EPOLLOUT : 0);
	watch_fd(p, p->err.write, p->err.len > 0 ? EPOLLOUT : 0);
	if (p->go_sent && nothing_to_send(p) && !p->draining)
		watch_fd(p, p->in_read, EPOLLIN);
	else
		forget_fd(p, p->in_read); /* its hang-up would be reported over and over */
}

int pump_turn(struct pump *p, struct brig_error *err)
{
	int rc;

	flush(&p->out);
	flush(&p->err);
	send_parts(p);
	take_input(p);
	rc = read_stream(p, err);
	set_interest(p);
	return rc;
}

void pump_wait(struct pump *p, uint64_t deadline_ns)
{
	struct pollfd any = { .fd = p->poll, .events = POLLIN };
	uint64_t now = clock_now_ns();

	if (p->stream && !p->stream_over && http_stream_pending(p->stream))
		return;
	if (now < deadline_ns)
		(void)wait_poll(&any, 1, (int)min_u64((deadline_ns - now) / NS_PER_MS + 1, 60000));
}

/* ---- the end -------------------------------------------------------------------------------------- */

/* Replaces the pipe by a file under the same descriptor: contents of the pipe, piece and rest, in this order. */
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

static void finish(struct pump *p, struct pipe_out *o)
{
	if (o->write < 0)
		return;
	flush(o);
	forget_fd(p, o->write);
	if (o->len > 0 || o->rest.len > 0)
		become_file(o);
	fd_closep(&o->write);
	buf_release(&o->rest);
	o->at = o->len = 0;
}

void pump_hand_over(struct pump *p)
{
	finish(p, &p->out);
	finish(p, &p->err);
}

void pump_close(struct pump *p)
{
	int *const fds[] = { &p->out.read, &p->out.write, &p->err.read, &p->err.write,
			     &p->in_read,  &p->in_write,  &p->poll,     &p->output };

	http_stream_close(MOVE_PTR(p->stream));
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_closep(fds[i]);
	project_release(p);
	fd_closep(&p->tree.fd);
	buf_release(&p->left);
	buf_release(&p->out.rest);
	buf_release(&p->err.rest);
	if (p->head)
		explicit_bzero(p->head, p->head_len);
	free(MOVE_PTR(p->head));
	explicit_bzero(p->reader.key, sizeof(p->reader.key));
	explicit_bzero(p->reader.tail.key, sizeof(p->reader.tail.key));
}
