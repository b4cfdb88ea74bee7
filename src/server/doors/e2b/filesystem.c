/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystem.c - filesystem.Filesystem: files of a sandbox
 *
 * Each call is a request to the runner, most of them followed by a second one for the file's current entry. Paths are
 * normalized ("a//b/../c" becomes "a/c") before the request, as the original does; responses show them as clients know
 * them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "server/doors/e2b/connect.h"
#include "server/doors/e2b/filesystem.h"

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* Normalizes an absolute path in place. */
static void make_plain(char *path)
{
	char *to = path, *at = path;

	while (*at) {
		size_t len = strcspn(at, "/");

		if (len == 0) {
			at++;
			continue;
		}
		if (len == 2 && memcmp(at, "..", 2) == 0) {
			while (to > path && *--to != '/')
				;
		} else if (len != 1 || *at != '.') {
			*to++ = '/';
			memmove(to, at, len);
			to += len;
		}
		at += len;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

bool filesystem_path(const char *path, char dst[E2B_PATH_MAX + 1])
{
	char plain[E2B_PATH_MAX + 1];
	bool is_home = path[0] == '~' && (path[1] == '\0' || path[1] == '/');
	int len;

	if (path[0] == '~' && !is_home)
		return false;
	len = path[0] == '/' ? snprintf(plain, sizeof(plain), "%s", path)
			     : snprintf(plain, sizeof(plain), "%s/%s", E2B_HOME, path + is_home);
	if (len < 0 || (size_t)len >= sizeof(plain))
		return false;
	make_plain(plain);
	return e2b_path(plain, dst);
}

const char *filesystem_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static const char *type_name(const char *type)
{
	return str_eq(type, "file")     ? "FILE_TYPE_FILE"
	       : str_eq(type, "folder") ? "FILE_TYPE_DIRECTORY"
					: "FILE_TYPE_UNSPECIFIED";
}

#define PERMISSIONS_MAX 16 /* type, three special bits, nine others, NUL */

/* As the original's language writes a mode: a letter for each thing said, in this order, then "rwxr-xr-x". */
static void permissions(const json_t *row, char dst[PERMISSIONS_MAX])
{
	static const struct {
		const char *kind;
		char letter;
	} kinds[] = {
		{ "folder", 'd' }, { "link", 'L' },   { "block device", 'D' },
		{ "fifo", 'p' },   { "socket", 'S' }, { "character device", 'D' },
	};
	static const char others[] = "rwxrwxrwx";
	const char *type = connect_text(row, "type"), *kind = connect_text(row, "kind");
	uint64_t mode = connect_number(row, "mode");
	char *to = dst;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].kind, *kind ? kind : type))
			*to++ = kinds[i].letter;
	if (mode & S_ISUID)
		*to++ = 'u';
	if (mode & S_ISGID)
		*to++ = 'g';
	if (str_eq(kind, "character device"))
		*to++ = 'c';
	if (mode & S_ISVTX)
		*to++ = 't';
	if (to == dst)
		*to++ = '-';
	for (int i = 0; i < 9; i++)
		*to++ = mode & (0400u >> i) ? others[i] : '-';
	*to = '\0';
}

/* All programs of a session run as one user, shown as E2B_USER; uid 0 is shown as root. */
static const char *owner(const json_t *row, const char *id)
{
	return connect_number(row, id) == 0 ? "root" : E2B_USER;
}

json_t *filesystem_entry(const json_t *row)
{
	const char *type = connect_text(row, "type");
	bool is_link = str_eq(type, "link");
	uint64_t mode = connect_number(row, is_link ? "target_mode" : "mode");
	char path[E2B_PATH_MAX + 1], target[E2B_PATH_MAX + 1], text[PERMISSIONS_MAX], size[24];
	json_t *entry;

	e2b_shown_path(connect_text(row, "path"), path);
	permissions(row, text);
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)connect_number(row, "bytes"));
	entry = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:s}", "name", filesystem_name(path), "type",
			  type_name(is_link ? connect_text(row, "target_type") : type), "path", path, "size", size,
			  "mode", (json_int_t)(mode & 0777), "permissions", text, "owner", owner(row, "uid"), "group",
			  owner(row, "gid"), "modifiedTime", connect_text(row, "changed"));
	if (is_link) { /* one that leads nowhere: its own path */
		e2b_shown_path(connect_text(row, *connect_text(row, "target_type") ? "target" : "path"), target);
		(void)json_object_set_new(entry, "symlinkTarget", json_string(target));
	}
	if (json_object_get(row, "metadata"))
		(void)json_object_set(entry, "metadata", json_object_get(row, "metadata"));
	return entry;
}

/* ---- current entry of a file ----------------------------------------------------------------------------------- */

struct wanted {
	char path[E2B_PATH_MAX + 1];
	bool is_there; /* a folder was to be created and the path exists: the entry tells what is there */
};

/* Keeps the path of the request in call->state; NULL: the request was refused. */
static struct wanted *keep_path(struct client *c, const char *path)
{
	struct wanted *w = calloc(1, sizeof(*w));

	if (!w) {
		connect_fail(c, CONNECT_unavailable, "there is no memory for the request");
		return NULL;
	}
	if (!filesystem_path(path, w->path)) {
		free(w);
		connect_fail(c, CONNECT_invalid_argument, "'%.200s' is no path of this user", path);
		return NULL;
	}
	c->req->call->state = w;
	c->req->call->release = free;
	return w;
}

static void fail_to_find(struct client *c, unsigned status, const struct message *m)
{
	const struct wanted *w = c->req->call->state;
	uint64_t error = message_number(m, FIELD_error_number, 0);
	char path[E2B_PATH_MAX + 1];

	e2b_shown_path(w->path, path);
	if (error == ENOENT || error == ENOTDIR)
		connect_fail(c, CONNECT_not_found, "path '%s' does not exist", path);
	else
		connect_refuse(c, status, m);
}

static void on_stat(struct client *c, unsigned status, const struct message *m)
{
	const struct wanted *w = c->req->call->state;
	char path[E2B_PATH_MAX + 1];
	json_t *doc, *row;

	if (status != 200) {
		fail_to_find(c, status, m);
		return;
	}
	doc = door_answer_json(m);
	row = json_array_get(json_object_get(doc, "files"), 0);
	e2b_shown_path(w->path, path);
	if (!row)
		connect_fail(c, CONNECT_internal, "the sandbox did not tell what the file is");
	else if (w->is_there && str_eq(connect_text(row, "type"), "folder"))
		connect_fail(c, CONNECT_already_exists, "directory already exists: %s", path);
	else if (w->is_there)
		connect_fail(c, CONNECT_invalid_argument, "path already exists but it is not a directory: %s", path);
	else
		connect_reply(c, json_pack("{s:o}", "entry", filesystem_entry(row)));
	json_decref(doc);
}

static void ask_entry(struct client *c)
{
	const struct wanted *w = c->req->call->state;
	struct buf *fields = door_fields(c);

	message_put_text(fields, FIELD_path, w->path);
	message_put_number(fields, FIELD_depth, 0);
	door_ask(c, ROUTE_session_files, FD_NONE, FD_NONE, on_stat);
}

static void ask_stat(struct client *c, const json_t *request)
{
	if (keep_path(c, connect_text(request, "path")))
		ask_entry(c);
}

/* ---- changes --------------------------------------------------------------------------------------------------- */

static void on_made(struct client *c, unsigned status, const struct message *m)
{
	struct wanted *w = c->req->call->state;
	uint64_t error = message_number(m, FIELD_error_number, 0);

	w->is_there = error == EEXIST;
	if (status == 200 || w->is_there)
		ask_entry(c);
	else
		connect_refuse(c, status, m);
}

/* Sends a request that needs only the path. */
static void ask_of_path(struct client *c, const json_t *request, enum route route,
			void (*on_answer)(struct client *c, unsigned status, const struct message *m))
{
	const struct wanted *w = keep_path(c, connect_text(request, "path"));

	if (!w)
		return;
	message_put_text(door_fields(c), FIELD_path, w->path);
	door_ask(c, route, FD_NONE, FD_NONE, on_answer);
}

static void ask_make_dir(struct client *c, const json_t *request)
{
	ask_of_path(c, request, ROUTE_session_folder, on_made);
}

static void on_moved(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200)
		ask_entry(c);
	else if (message_number(m, FIELD_error_number, 0) == ENOENT)
		connect_fail(c, CONNECT_not_found, "source file not found");
	else
		connect_refuse(c, status, m);
}

static void ask_move(struct client *c, const json_t *request)
{
	const struct wanted *w = keep_path(c, connect_text(request, "destination"));
	char from[E2B_PATH_MAX + 1];
	struct buf *fields;

	if (!w)
		return;
	if (!filesystem_path(connect_text(request, "source"), from)) {
		connect_fail(c, CONNECT_invalid_argument, "source is no path of this user");
		return;
	}
	fields = door_fields(c);
	message_put_text(fields, FIELD_path, from);
	message_put_text(fields, FIELD_to, w->path);
	door_ask(c, ROUTE_session_move, FD_NONE, FD_NONE, on_moved);
}

static void on_removed(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200 || message_number(m, FIELD_error_number, 0) == ENOENT)
		connect_reply(c, json_object());
	else
		connect_refuse(c, status, m);
}

static void ask_remove(struct client *c, const json_t *request)
{
	ask_of_path(c, request, ROUTE_session_file_delete, on_removed);
}

/* ---- folders --------------------------------------------------------------------------------------------------- */

/* Order of a walk: the contents of a folder come before its next sibling. */
static int compare(const void *a, const void *b)
{
	const char *x = connect_text(*(json_t *const *)a, "path"), *y = connect_text(*(json_t *const *)b, "path");

	while (*x && *x == *y) {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : (unsigned char)*x) - (*y == '/' ? 1 : (unsigned char)*y);
}

/* The runner lists entries in the file system's order, which is arbitrary. */
static json_t *sorted_entries(const json_t *files)
{
	size_t n = json_array_size(files);
	AUTO_FREE json_t **rows = calloc(n + 1, sizeof(json_t *));
	json_t *list = rows ? json_array() : NULL;

	for (size_t i = 0; list && i < n; i++)
		rows[i] = json_array_get(files, i);
	if (list)
		qsort(rows, n, sizeof(json_t *), compare);
	for (size_t i = 0; list && i < n; i++)
		(void)json_array_append_new(list, filesystem_entry(rows[i]));
	return list;
}

static void on_list(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc, *list;

	if (message_number(m, FIELD_error_number, 0) == ENOTDIR) {
		connect_fail(c, CONNECT_invalid_argument, "path is not a directory");
		return;
	}
	if (status != 200) {
		fail_to_find(c, status, m);
		return;
	}
	doc = door_answer_json(m);
	list = sorted_entries(json_object_get(doc, "files"));
	json_decref(doc);
	connect_reply(c, json_pack("{s:o}", "entries", list));
}

static void ask_list(struct client *c, const json_t *request)
{
	const struct wanted *w = keep_path(c, connect_text(request, "path"));
	uint64_t depth = connect_number(request, "depth");
	struct buf *fields;

	if (!w)
		return;
	fields = door_fields(c);
	message_put_text(fields, FIELD_path, w->path);
	message_put_number(fields, FIELD_depth, depth ? depth : 1);
	door_ask(c, ROUTE_session_files, FD_NONE, FD_NONE, on_list);
}

CONNECT_HANDLER(stat, ask_stat)
CONNECT_HANDLER(make_dir, ask_make_dir)
CONNECT_HANDLER(move, ask_move)
CONNECT_HANDLER(remove, ask_remove)
CONNECT_HANDLER(list_dir, ask_list)
