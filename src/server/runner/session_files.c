/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_files.c - files of a session
 *
 * The cell opens them, with the rights of its programs and where its links lead: no path of a client's or a program's is ever
 * looked for outside.  What comes back is a descriptor of a regular file, which is read or written here, never more than
 * SESSION_FILE_MAX bytes.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/answer.h"
#include "server/runner/asks.h"

/* ---- asking ---------------------------------------------------------------------------------------------------- */

struct file_ask {
	struct service *s;
	struct ask *ask;
	struct server_session *x;
	const char *path, *to;
	uint64_t tag;
	int body; /* FD_NONE: none */
};

typedef int (*file_fn)(struct file_ask *f, struct brig_error *err);

static int do_list(struct file_ask *f, struct brig_error *err)
{
	uint32_t depth = (uint32_t)min_u64(message_number(f->ask->m, FIELD_depth, 1), 64);
	uint32_t limit = (uint32_t)min_u64(message_number(f->ask->m, FIELD_limit, SESSION_LIST_MAX), SESSION_LIST_MAX);

	return brig_session_list(f->x->inside, f->path ? f->path : ".", depth, limit, &f->tag, err);
}

static int do_read(struct file_ask *f, struct brig_error *err)
{
	return brig_session_open(f->x->inside, f->path, BRIG_OPEN_READ, 0, &f->tag, err);
}

static int do_write(struct file_ask *f, struct brig_error *err)
{
	if (f->ask->beside.files < 0)
		return err_set(err, BRIG_E_USAGE, 0, "the bytes of the file did not arrive");
	f->body = fd_move(&f->ask->beside.files);
	return brig_session_open(f->x->inside, f->path, BRIG_OPEN_WRITE, 0644, &f->tag, err);
}

static int do_remove(struct file_ask *f, struct brig_error *err)
{
	return brig_session_remove(f->x->inside, f->path, &f->tag, err);
}

static int do_mkdir(struct file_ask *f, struct brig_error *err)
{
	return brig_session_mkdir(f->x->inside, f->path, &f->tag, err);
}

static int do_move(struct file_ask *f, struct brig_error *err)
{
	if (!f->to)
		return err_set(err, BRIG_E_USAGE, 0, "\"to\" is missing");
	return brig_session_move(f->x->inside, f->path, f->to, &f->tag, err);
}

static void ask_file(struct service *s, struct ask *ask, file_fn begin)
{
	struct file_ask f = { .s = s, .ask = ask, .body = FD_NONE };
	struct brig_error err = BRIG_ERROR_INIT;
	struct session_wait *w;

	f.x = session_find(s, ask);
	if (!f.x || !session_can_wait(s, ask, f.x))
		return;
	f.path = message_text(ask->m, FIELD_path);
	f.to = message_text(ask->m, FIELD_to);
	if (!f.path && begin != do_list) {
		answer_error(s, ask, 422, "\"path\" is missing");
		return;
	}
	if (begin(&f, &err) < 0) {
		session_trouble(s, ask, &err);
	} else if ((w = session_wait_for(s, ask, f.x, f.tag))) {
		w->body = fd_move(&f.body);
		w->files = begin == do_list ? json_array() : NULL;
	}
	fd_closep(&f.body);
	session_go_on(s, f.x);
}

void ask_session_files(struct service *s, struct ask *ask)
{
	ask_file(s, ask, do_list);
}

void ask_session_file(struct service *s, struct ask *ask)
{
	ask_file(s, ask, do_read);
}

void ask_session_file_put(struct service *s, struct ask *ask)
{
	ask_file(s, ask, do_write);
}

void ask_session_file_delete(struct service *s, struct ask *ask)
{
	ask_file(s, ask, do_remove);
}

void ask_session_folder(struct service *s, struct ask *ask)
{
	ask_file(s, ask, do_mkdir);
}

void ask_session_move(struct service *s, struct ask *ask)
{
	ask_file(s, ask, do_move);
}

/* ---- what is in a folder ------------------------------------------------------------------------------------------ */

static const char *type_of(uint32_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "folder" : S_ISLNK(mode) ? "link" : "other";
}

/* Names are the program's: one that is no text is left out of the list. */
static void add_entry(struct session_wait *w, const struct brig_session_entry *e)
{
	char when[WHEN_TEXT_MAX];
	uint64_t seconds = e->mtime > 0 ? min_u64((uint64_t)e->mtime, UINT64_MAX / NS_PER_SEC / 2) : 0;
	json_t *row = json_pack("{s:s, s:s, s:I, s:I, s:s}", "path", e->path, "type", type_of(e->mode), "bytes",
				(json_int_t)min_u64(e->bytes, INT64_MAX), "mode", (json_int_t)(e->mode & 07777),
				"changed", when_utc(when, sizeof(when), seconds * NS_PER_SEC));

	if (row && S_ISLNK(e->mode))
		(void)json_object_set_new(row, "target", json_string(e->target));
	w->bytes += strlen(e->path) + strlen(e->target);
	if (row && w->bytes <= SESSION_LIST_BYTES)
		(void)json_array_append_new(w->files, row);
	else
		json_decref(row);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------- */

/* 0, -EFBIG or -errno.  The program may change the file meanwhile: what is read is bounded by itself. */
static int read_bytes(int fd, struct buf *out)
{
	char piece[64 * KiB];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		if (buf_add(out, piece, (size_t)n) < (size_t)n)
			return out->no_memory ? -ENOMEM : -EFBIG;
	return n < 0 ? -errno : 0;
}

static int copy_bytes(int from, int to, uint64_t *ret)
{
	char piece[64 * KiB];
	ssize_t n;
	int rc;

	*ret = 0;
	if (lseek(from, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = read(from, piece, sizeof(piece))) > 0) {
		if (*ret + (uint64_t)n > SESSION_FILE_MAX)
			return -EFBIG;
		rc = fd_write_all(to, piece, (size_t)n);
		if (rc < 0)
			return rc;
		*ret += (uint64_t)n;
	}
	return n < 0 ? -errno : 0;
}

static uint16_t status_of(int error)
{
	return error == ENOENT || error == ENOTDIR                     ? 404
	       : error == EACCES || error == EPERM || error == EROFS   ? 403
	       : error == EEXIST || error == EISDIR || error == EINVAL ? 409
	       : error == ENOSPC || error == EDQUOT || error == EFBIG  ? 413
								       : 422;
}

static void refuse(struct server_session *x, const struct session_wait *w, int error)
{
	const struct ask ask = { .tag = w->tag, .request_id = w->request_id };

	if (error == EFBIG)
		answer_error(x->service, &ask, 413, "the file has more than %llu MB",
			     (unsigned long long)(SESSION_FILE_MAX / MiB));
	else
		answer_error(x->service, &ask, status_of(error), "the session says: %s", strerror(error));
}

static void answer_bytes(struct server_session *x, const struct session_wait *w, int fd)
{
	AUTO_BUF bytes = BUF_INIT(SESSION_FILE_MAX);
	int rc = read_bytes(fd, &bytes);

	if (rc < 0) {
		refuse(x, w, -rc);
		return;
	}
	answer_send(x->service, w->tag,
		    &(struct answer){ .status = 200,
				      .content_type = "application/octet-stream",
				      .who = w->who,
				      .body = buf_str(&bytes),
				      .len = bytes.len });
}

static void answer_written(struct server_session *x, const struct session_wait *w, int fd)
{
	const struct ask ask = { .tag = w->tag, .request_id = w->request_id };
	uint64_t n = 0;
	int rc = copy_bytes(w->body, fd, &n);

	if (rc < 0)
		refuse(x, w, -rc);
	else
		answer_json(x->service, &ask, 200, json_pack("{s:I}", "bytes", (json_int_t)n));
}

void session_file_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event)
{
	const struct ask ask = { .tag = w->tag, .request_id = w->request_id };

	if (event->kind == BRIG_SESSION_ENTRY) {
		add_entry(w, event->entry);
		return;
	}
	if (event->kind != BRIG_SESSION_DONE)
		return;
	if (event->error)
		refuse(x, w, event->error);
	else if (event->fd < 0 && (w->route == ROUTE_session_file || w->route == ROUTE_session_file_put))
		refuse(x, w, EINVAL);
	else if (w->route == ROUTE_session_file)
		answer_bytes(x, w, event->fd);
	else if (w->route == ROUTE_session_file_put)
		answer_written(x, w, event->fd);
	else if (w->route == ROUTE_session_files)
		answer_json(x->service, &ask, 200,
			    json_pack("{s:O, s:b}", "files", w->files, "truncated",
				      (event->flags & BRIG_SESSION_MORE) != 0 || w->bytes > SESSION_LIST_BYTES));
	else
		answer_json(x->service, &ask, 200, json_object());
	session_wait_free(x, w);
}
