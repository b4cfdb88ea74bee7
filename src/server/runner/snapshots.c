/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/snapshots.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

#define FILE_NAME_MAX 40
#define TREE          ".tree"
#define FILE_METADATA "file_metadata"
#define PART          ".part"

static uint64_t now_s(void)
{
	return clock_wall_ns() / NS_PER_SEC;
}

static const char *file_name(const char *id, const char *ending, char dst[FILE_NAME_MAX])
{
	(void)snprintf(dst, FILE_NAME_MAX, "%s%s", id, ending);
	return dst;
}

/* ---- the list --------------------------------------------------------------------------------------------- */

void snapshots_init(struct snapshots *t)
{
	TAILQ_INIT(&t->all);
	t->dir = (struct statedir)STATEDIR_INIT;
}

static void forget(struct snapshots *t, struct snapshot *x)
{
	TAILQ_REMOVE(&t->all, x, in_age);
	t->n--;
	t->bytes -= x->bytes;
	json_decref(x->about);
	free(x);
}

static void remove_one(struct snapshots *t, struct snapshot *x)
{
	char name[FILE_NAME_MAX];

	(void)unlinkat(t->dir.fd, x->id, 0);
	(void)unlinkat(t->dir.fd, file_name(x->id, TREE, name), 0);
	forget(t, x);
}

static bool is_old(const struct snapshot *x)
{
	return x->used_s + SNAPSHOT_UNUSED_S < now_s();
}

static void sweep(struct snapshots *t)
{
	struct snapshot *x, *next;

	for (x = TAILQ_FIRST(&t->all); x; x = next) {
		next = TAILQ_NEXT(x, in_age);
		if (is_old(x))
			remove_one(t, x);
	}
}

/* Maximum size of one more snapshot of this owner; 0: none, see *err. */
static uint64_t room_for(const struct snapshots *t, const char *owner, struct brig_error *err)
{
	uint64_t own = 0, left;
	const struct snapshot *x;
	size_t n = 0;

	TAILQ_FOREACH(x, &t->all, in_age)
	if (str_eq(x->owner, owner)) {
		n++;
		own += x->bytes;
	}
	if (n >= SNAPSHOTS_OF_TOKEN || own >= SNAPSHOTS_TOKEN_BYTES) {
		(void)err_set(err, BRIG_E_REFUSED, 0,
			      "the token %s may have %d snapshots of %llu MB together: remove one", owner,
			      SNAPSHOTS_OF_TOKEN, (unsigned long long)(SNAPSHOTS_TOKEN_BYTES / MiB));
		return 0;
	}
	if (t->n >= SNAPSHOTS_MAX || t->bytes >= SNAPSHOTS_BYTES_MAX) {
		(void)err_set(err, BRIG_E_NOMEM, 0, "there is no room for more snapshots: try again later");
		return 0;
	}
	left = min_u64(SNAPSHOTS_TOKEN_BYTES - own, SNAPSHOTS_BYTES_MAX - t->bytes);
	return min_u64(left, SNAPSHOT_BYTES_MAX);
}

void snapshot_answer_none(struct service *s, const struct request *req, const char *id)
{
	answer_error(s, req, 404, "there is no snapshot '%.20s'%s", id ? id : "",
		     req->token->admin ? "" : " of this token");
}

struct snapshot *snapshot_find(struct service *s, const struct request *req, const char *id)
{
	struct snapshot *x;

	sweep(&s->snapshots);
	TAILQ_FOREACH(x, &s->snapshots.all, in_age)
	if (id && str_eq(x->id, id) && access_owns(req->token, x->owner))
		return x;
	snapshot_answer_none(s, req, id);
	return NULL;
}

/* ---- files -------------------------------------------------------------------------------------------------- */

static int open_part(const struct snapshots *t, const char *id, struct brig_error *err)
{
	char name[FILE_NAME_MAX];

	return statedir_open_file(&t->dir, file_name(id, PART, name), O_CREAT | O_EXCL | O_RDWR, err);
}

int snapshot_read(struct service *s, struct snapshot *x, struct brig_error *err)
{
	char name[FILE_NAME_MAX];
	int fd = statedir_open_file(&s->snapshots.dir, file_name(x->id, TREE, name), O_RDONLY, err);

	if (fd < 0)
		return fd;
	(void)futimens(fd, NULL); /* records the time of use, also for later processes */
	x->used_s = now_s();
	return fd;
}

static struct snapshot *add(struct snapshots *t, const char *id, json_t *about, uint64_t bytes, uint64_t used_s)
{
	const char *owner = json_string_value(json_object_get(about, "token"));
	struct snapshot *x = calloc(1, sizeof(*x));

	if (!x || !owner || !str_copy(x->owner, sizeof(x->owner), owner) || !str_copy(x->id, sizeof(x->id), id)) {
		free(x);
		json_decref(about);
		return NULL;
	}
	x->about = about;
	x->bytes = bytes;
	x->used_s = used_s;
	TAILQ_INSERT_TAIL(&t->all, x, in_age);
	t->n++;
	t->bytes += bytes;
	return x;
}

/* Written atomically but without fsync(); the file with the files of the session detects truncation itself. */
static int write_about(const struct snapshots *t, const char *id, const char *text, struct brig_error *err)
{
	char part[FILE_NAME_MAX];
	AUTO_FD fd = open_part(t, id, err);
	int rc = fd < 0 ? fd : fd_write_all(fd, text, strlen(text));

	if (fd < 0)
		return rc;
	if (rc == 0 && renameat(t->dir.fd, file_name(id, PART, part), t->dir.fd, id) < 0)
		rc = -errno;
	if (rc == 0)
		return 0;
	(void)unlinkat(t->dir.fd, file_name(id, PART, part), 0);
	return err_set(err, BRIG_E_SYSTEM, -rc, "cannot write '%.200s/%s'", t->dir.path, id);
}

/* Takes ownership of the document.  NULL: *err. */
static struct snapshot *keep(struct snapshots *t, const char *id, json_t *about, uint64_t bytes, struct brig_error *err)
{
	AUTO_FREE char *text = about ? json_dumps(about, JSON_COMPACT) : NULL;
	char part[FILE_NAME_MAX], tree[FILE_NAME_MAX];
	struct snapshot *x;

	if (text && strlen(text) >= SNAPSHOT_ABOUT_MAX)
		(void)err_set(err, BRIG_E_REFUSED, 0, "the options of the session have more than %llu KB",
			      (unsigned long long)(SNAPSHOT_ABOUT_MAX / KiB));
	else if (!text)
		(void)err_nomem(err);
	else if (renameat(t->dir.fd, file_name(id, PART, part), t->dir.fd, file_name(id, TREE, tree)) < 0)
		(void)err_set(err, BRIG_E_SYSTEM, errno, "cannot write '%.200s/%s'", t->dir.path, tree);
	else if (write_about(t, id, text, err) == 0) {
		x = add(t, id, about, bytes, now_s());
		return x ? x : (err_nomem(err), NULL);
	} else
		(void)unlinkat(t->dir.fd, tree, 0);
	json_decref(about);
	return NULL;
}

/* ---- startup --------------------------------------------------------------------------------------------------- */

static bool is_id(const char *name)
{
	return strlen(name) == EXECUTION_ID_LEN && strspn(name, ID_ALPHABET) == EXECUTION_ID_LEN;
}

static void read_one(struct snapshots *t, const char *id)
{
	AUTO_FREE char *text = malloc(SNAPSHOT_ABOUT_MAX + 1);
	char name[FILE_NAME_MAX];
	struct stat st;
	json_t *about;

	if (!text || t->n == SNAPSHOTS_MAX || statedir_read(&t->dir, id, text, SNAPSHOT_ABOUT_MAX + 1, NULL) < 0 ||
	    fstatat(t->dir.fd, file_name(id, TREE, name), &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return;
	about = json_loads(text, 0, NULL);
	if (about)
		(void)add(t, id, about, (uint64_t)st.st_size, (uint64_t)st.st_mtime);
}

/* Removes files without a document, which were not completed. */
static void remove_rest(const struct snapshots *t, const char *name)
{
	const struct snapshot *x;

	TAILQ_FOREACH(x, &t->all, in_age)
	if (strncmp(name, x->id, EXECUTION_ID_LEN) == 0)
		return;
	if (strstr(name, PART) || strstr(name, TREE))
		(void)unlinkat(t->dir.fd, name, 0);
}

static int each_name(struct snapshots *t, bool ids, struct brig_error *err)
{
	int fd = openat(t->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		int rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot list '%.200s'", t->dir.path);

		if (fd >= 0)
			(void)close(fd);
		return rc;
	}
	while ((entry = readdir(dir)))
		if (!ids)
			remove_rest(t, entry->d_name);
		else if (is_id(entry->d_name))
			read_one(t, entry->d_name);
	(void)closedir(dir);
	return 0;
}

int snapshots_open(struct service *s, struct brig_error *err)
{
	struct snapshots *t = &s->snapshots;
	int rc = statedir_open_sub(&s->ledger.dir, "snapshots", true, &t->dir, err);

	if (rc < 0 || (rc = each_name(t, true, err)) < 0 || (rc = each_name(t, false, err)) < 0)
		return rc;
	sweep(t);
	return 0;
}

void snapshots_close(struct service *s)
{
	struct snapshot *x;

	while ((x = TAILQ_FIRST(&s->snapshots.all)))
		forget(&s->snapshots, x);
	statedir_close(&s->snapshots.dir);
}

/* ---- creation -------------------------------------------------------------------------------- */

void handle_snapshot_make(struct service *s, struct request *req)
{
	struct server_session *x = session_find(s, req);
	char id[EXECUTION_ID_LEN + 1], name[FILE_NAME_MAX];
	struct brig_error err = BRIG_ERROR_INIT;
	struct session_wait *w;
	AUTO_FD file = FD_NONE;
	uint64_t tag = 0, most;

	if (!x || !session_can_wait(s, req, x) || !session_copy_is_allowed(s, req, x))
		return;
	sweep(&s->snapshots);
	most = room_for(&s->snapshots, req->token->name, &err);
	if (most == 0 || id_random(id, EXECUTION_ID_LEN) < 0) {
		answer_trouble(s, req, &err);
		return;
	}
	file = open_part(&s->snapshots, id, &err);
	if (file < 0) {
		answer_trouble(s, req, &err);
		return;
	}
	if (brig_session_save(x->inside, file, most, &tag, &err) < 0)
		session_trouble(s, req, &err);
	else if ((w = session_wait_for(s, req, x, tag))) {
		w->body = fd_move(&file);
		(void)str_copy(w->snapshot, sizeof(w->snapshot), id);
		(void)str_copy(w->name, sizeof(w->name),
			       message_text(req->m, FIELD_name) ? message_text(req->m, FIELD_name) : "");
	}
	if (file >= 0)
		(void)unlinkat(s->snapshots.dir.fd, file_name(id, PART, name), 0);
	session_go_on(s, x);
}

static json_t *document(const struct service *s, const struct snapshot *x)
{
	json_t *doc = json_copy(x->about);
	char when[WHEN_TEXT_MAX];

	(void)json_object_del(doc, FILE_METADATA); /* available when files are queried */
	if (session_node_name(s))
		(void)json_object_set_new(doc, "node", json_string(session_node_name(s)));
	(void)json_object_set_new(doc, "stored_bytes", json_integer((json_int_t)x->bytes));
	(void)json_object_set_new(
		doc, "expires",
		json_string(when_utc(when, sizeof(when), (x->used_s + SNAPSHOT_UNUSED_S) * NS_PER_SEC)));
	return doc;
}

static json_t *about_of(const struct server_session *x, const struct session_wait *w,
			const struct brig_session_event *event)
{
	char when[WHEN_TEXT_MAX];

	return session_settings(x, json_pack("{s:s, s:s, s:s, s:s?, s:s, s:I, s:I, s:I}", "id", w->snapshot, "token",
					     w->who, "session", x->id, "name", w->name[0] ? w->name : NULL, "created",
					     when_utc(when, sizeof(when), clock_wall_ns()), "files",
					     (json_int_t)event->entries, "bytes", (json_int_t)event->bytes, "left_out",
					     (json_int_t)event->left_out));
}

/* Adds the session's file metadata, if there is room for it. */
static json_t *with_metadata(json_t *about, json_t *metadata)
{
	AUTO_FREE char *text = metadata ? json_dumps(metadata, JSON_COMPACT) : NULL;

	if (about && text && strlen(text) <= SNAPSHOT_ABOUT_MAX / 2)
		(void)json_object_set(about, FILE_METADATA, metadata);
	return about;
}

json_t *snapshot_file_metadata(const struct snapshot *x)
{
	return json_object_get(x->about, FILE_METADATA);
}

void snapshot_tell(struct service *s, struct snapshot *x)
{
	const struct request req = { .tag = x->tag, .request_id = x->request_id };

	if (x->tag)
		answer_json(s, &req, 201, document(s, x));
	x->tag = 0;
}

void snapshots_all_gone(struct service *s)
{
	struct snapshot *x;

	TAILQ_FOREACH(x, &s->snapshots.all, in_age)
	if (!forwarded_is_tag(x->tag))
		x->tag = 0;
}

void snapshot_event(struct server_session *x, struct session_wait *w, const struct brig_session_event *event)
{
	const struct request req = { .tag = w->tag, .request_id = w->request_id };
	struct snapshots *t = &x->service->snapshots;
	struct brig_error err = BRIG_ERROR_INIT;
	struct snapshot *made = NULL;
	struct stat st;

	if (event->error) {
		session_copy_refuse(x, w->tag, w->request_id, event->error);
		session_wait_free(x, w); /* and removes its file */
		return;
	}
	if (fstat(w->body, &st) < 0)
		(void)err_set(&err, BRIG_E_SYSTEM, errno, "cannot look at a snapshot");
	/* other snapshots may have been created meanwhile */
	else if (room_for(t, w->who, &err) >= (uint64_t)st.st_size)
		made = keep(t, w->snapshot, with_metadata(about_of(x, w, event), x->metadata), (uint64_t)st.st_size,
			    &err);
	if (made) {
		w->snapshot[0] = '\0'; /* so that the wait does not remove the file */
		made->tag = w->tag;
		(void)str_copy(made->request_id, sizeof(made->request_id), w->request_id);
		if (!snapshot_address_put(x->service, made))
			snapshot_tell(x->service, made);
	} else if (err.code) {
		answer_trouble(x->service, &req, &err);
	} else {
		answer_error(x->service, &req, 413, "there is no room for a snapshot of so many bytes: remove one");
	}
	session_wait_free(x, w);
}

void snapshot_drop(const struct service *s, const char *id)
{
	char name[FILE_NAME_MAX];

	(void)unlinkat(s->snapshots.dir.fd, file_name(id, PART, name), 0);
	(void)unlinkat(s->snapshots.dir.fd, file_name(id, TREE, name), 0);
}

/* ---- queries --------------------------------------------------------------------------------- */

json_t *snapshots_list(const struct service *s, const struct request *req)
{
	json_t *list = json_array();
	const struct snapshot *x;

	TAILQ_FOREACH_REVERSE(x, &s->snapshots.all, snapshot_list, in_age)
	if (access_owns(req->token, x->owner) && !is_old(x))
		(void)json_array_append_new(list, document(s, x));
	return list;
}

void handle_snapshots(struct service *s, struct request *req)
{
	sweep(&s->snapshots);
	answer_json(s, req, 200, json_pack("{s:o}", "snapshots", snapshots_list(s, req)));
}

void handle_snapshot(struct service *s, struct request *req)
{
	const struct snapshot *x = snapshot_find(s, req, message_text(req->m, FIELD_id));

	if (x)
		answer_json(s, req, 200, document(s, x));
}

void handle_snapshot_delete(struct service *s, struct request *req)
{
	struct snapshot *x = snapshot_find(s, req, message_text(req->m, FIELD_id));

	if (!x)
		return;
	snapshot_tell(s, x);
	answer_json(s, req, 200, document(s, x));
	remove_one(&s->snapshots, x);
}
