/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_files.c - files of a session
 *
 * The cell opens files, with the rights of its programs and following its own links: no path from a client or a program
 * is resolved outside the cell.  It returns a descriptor of a regular file, of which at most SESSION_FILE_MAX bytes are
 * read or written (session_transfers.c).
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
#include "server/runner/requests.h"

/* ---- requests -------------------------------------------------------------------------------------------------- */

struct file_ask {
	struct service *s;
	struct request *req;
	struct server_session *x;
	const char *path, *to;
	uint64_t tag;
	int body; /* FD_NONE: none */
	json_t *metadata;
};

typedef int (*file_fn)(struct file_ask *f, struct brig_error *err);

static int do_list(struct file_ask *f, struct brig_error *err)
{
	uint32_t depth = (uint32_t)min_u64(message_number(f->req->m, FIELD_depth, 1), 64);
	const char *path = f->path ? f->path : ".";
	uint32_t limit = (uint32_t)min_u64(message_number(f->req->m, FIELD_limit, SESSION_LIST_MAX), SESSION_LIST_MAX);

	if (depth == 0)
		return brig_session_stat(f->x->inside, path, &f->tag, err);
	return brig_session_list(f->x->inside, path, depth, limit, &f->tag, err);
}

static int do_read(struct file_ask *f, struct brig_error *err)
{
	return brig_session_open(f->x->inside, f->path, BRIG_OPEN_READ, 0, &f->tag, err);
}

static int do_write(struct file_ask *f, struct brig_error *err)
{
	if (f->req->beside.files < 0)
		return err_set(err, BRIG_E_USAGE, 0, "the bytes of the file did not arrive");
	if (session_metadata_read(f->x, f->req, &f->metadata, err) < 0)
		return -err->code;
	f->body = fd_move(&f->req->beside.files);
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

/* Keeps what is needed when the operation is done. */
static void keep_for_end(struct session_wait *w, struct file_ask *f, file_fn begin)
{
	w->body = fd_move(&f->body);
	w->metadata = MOVE_PTR(f->metadata);
	w->files = begin == do_list ? json_array() : NULL;
	if (begin == do_write || begin == do_move || begin == do_remove)
		w->path = strdup(f->path); /* out of memory: the metadata is not updated */
	if (begin == do_move)
		w->to = strdup(f->to);
}

static void ask_file(struct service *s, struct request *req, file_fn begin)
{
	struct file_ask f = { .s = s, .req = req, .body = FD_NONE };
	struct brig_error err = BRIG_ERROR_INIT;
	struct session_wait *w;

	f.x = session_find(s, req);
	if (!f.x || !session_can_wait(s, req, f.x))
		return;
	f.path = message_text(req->m, FIELD_path);
	f.to = message_text(req->m, FIELD_to);
	if (!f.path && begin != do_list) {
		answer_error(s, req, 422, "\"path\" is missing");
		return;
	}
	if (begin(&f, &err) < 0) {
		session_trouble(s, req, &err);
	} else if ((w = session_wait_for(s, req, f.x, f.tag))) {
		keep_for_end(w, &f, begin);
	}
	fd_closep(&f.body);
	json_decref(f.metadata);
	session_go_on(s, f.x);
}

void handle_session_files(struct service *s, struct request *req)
{
	ask_file(s, req, do_list);
}

void handle_session_file(struct service *s, struct request *req)
{
	ask_file(s, req, do_read);
}

void handle_session_file_put(struct service *s, struct request *req)
{
	ask_file(s, req, do_write);
}

void handle_session_file_delete(struct service *s, struct request *req)
{
	ask_file(s, req, do_remove);
}

void handle_session_folder(struct service *s, struct request *req)
{
	ask_file(s, req, do_mkdir);
}

void handle_session_move(struct service *s, struct request *req)
{
	ask_file(s, req, do_move);
}

/* ---- listings -------------------------------------------------------------------------------- */

static const char *type_of(uint32_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "folder" : S_ISLNK(mode) ? "link" : "other";
}

/* Of what is no file, folder or link; NULL: it is one of these. */
static const char *kind_of(uint32_t mode)
{
	return S_ISFIFO(mode)   ? "fifo"
	       : S_ISSOCK(mode) ? "socket"
	       : S_ISCHR(mode)  ? "character device"
	       : S_ISBLK(mode)  ? "block device"
				: NULL;
}

/* NULL for a name that is not UTF-8, which is omitted from listings. */
static json_t *plain_row(const struct brig_session_entry *e)
{
	char when[WHEN_TEXT_MAX];
	uint64_t seconds = e->mtime > 0 ? min_u64((uint64_t)e->mtime, UINT64_MAX / NS_PER_SEC / 2) : 0;
	uint64_t rest = e->mtime_ns > 0 ? min_u64((uint64_t)e->mtime_ns, NS_PER_SEC - 1) : 0;

	return json_pack("{s:s, s:s, s:s*, s:I, s:I, s:I, s:I, s:s}", "path", e->path, "type", type_of(e->mode), "kind",
			 kind_of(e->mode), "bytes", (json_int_t)min_u64(e->bytes, INT64_MAX), "mode",
			 (json_int_t)(e->mode & 07777), "uid", (json_int_t)e->uid, "gid", (json_int_t)e->gid, "changed",
			 when_utc(when, sizeof(when), seconds * NS_PER_SEC + rest));
}

json_t *session_entry_row(const struct server_session *x, const struct brig_session_entry *e)
{
	json_t *row = plain_row(e), *metadata = session_metadata_get(x, e->path);

	if (row && S_ISLNK(e->mode)) {
		(void)json_object_set_new(row, "target", json_string(e->target));
		(void)json_object_set_new(row, "target_type",
					  e->target_mode ? json_string(type_of(e->target_mode)) : json_null());
		(void)json_object_set_new(row, "target_mode", json_integer(e->target_mode & 07777));
	}
	if (row && metadata)
		(void)json_object_set(row, "metadata", metadata);
	return row;
}

static void add_entry(const struct server_session *x, struct session_wait *w, const struct brig_session_entry *e)
{
	json_t *row = session_entry_row(x, e);

	w->bytes += strlen(e->path) + strlen(e->target);
	if (row && w->bytes <= SESSION_LIST_BYTES)
		(void)json_array_append_new(w->files, row);
	else
		json_decref(row);
}

/* ---- contents -------------------------------------------------------------------------------- */

static uint16_t status_of(int error)
{
	return error == ENOENT || error == ENOTDIR                                       ? 404
	       : error == EACCES || error == EPERM || error == EROFS                     ? 403
	       : error == EEXIST || error == EISDIR || error == EINVAL || error == EBUSY ? 409
	       : error == ENOSPC || error == EDQUOT || error == EFBIG                    ? 413
											 : 422;
}

static void refuse(struct server_session *x, const struct session_wait *w, int error)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };

	if (error == EFBIG)
		answer_errno(x->service, &req, 413, error, "the file has more than %llu MB",
			     (unsigned long long)(SESSION_FILE_MAX / MiB));
	else
		answer_errno(x->service, &req, status_of(error), error, "the session says: %s", strerror(error));
}

void session_file_carried(struct server_session *x, const struct session_wait *w, int rc, uint64_t n)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };

	if (rc < 0)
		refuse(x, w, -rc);
	else
		answer_json(x->service, &req, 200, json_pack("{s:I}", "bytes", (json_int_t)n));
	if (rc == 0 && w->path)
		session_metadata_set(x, w->path, w->metadata);
}

void session_file_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };

	if (event->kind == BRIG_SESSION_ENTRY) {
		add_entry(x, w, event->entry);
		return;
	}
	if (event->kind != BRIG_SESSION_DONE)
		return;
	if (!event->error && event->fd >= 0 && (w->route == ROUTE_session_file || w->route == ROUTE_session_file_put)) {
		session_transfer_begin(x, w, event->fd, w->route == ROUTE_session_file);
		return;
	}
	if (event->error)
		refuse(x, w, event->error);
	else if (event->fd < 0 && (w->route == ROUTE_session_file || w->route == ROUTE_session_file_put))
		refuse(x, w, EINVAL);
	else if (w->route == ROUTE_session_files)
		answer_json(x->service, &req, 200,
			    json_pack("{s:O, s:b}", "files", w->files, "truncated",
				      (event->flags & BRIG_SESSION_MORE) != 0 || w->bytes > SESSION_LIST_BYTES));
	else
		answer_json(x->service, &req, 200, json_object());
	if (!event->error && w->path && w->route != ROUTE_session_file_put)
		session_metadata_move(x, w->path, w->to);
	session_wait_free(x, w);
}
