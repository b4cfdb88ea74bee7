/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - upload, listing, download and removal of LibreChat's files */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json_read.h"
#include "base/str.h"
#include "base/ustar.h"
#include "net/multipart.h"
#include "server/doors/librechat/jwt.h"
#include "server/doors/librechat/librechat.h"

#define VALUE_MAX 256

/* ---- names -------------------------------------------------------------------------------------------------- */

void librechat_new_id(bool read_only, char dst[LIBRECHAT_ID_LEN + 1])
{
	dst[0] = read_only ? 'r' : 'f';
	if (id_random(dst + 1, LIBRECHAT_ID_LEN - 1) < 0)
		dst[0] = '\0'; /* no id */
}

bool librechat_is_read_only(const char *id)
{
	return id[0] == 'r';
}

bool librechat_is_session(const char *id)
{
	return strlen(id) == 16 && strspn(id, ID_ALPHABET) == 16;
}

bool librechat_is_file(const char *id)
{
	return strlen(id) == LIBRECHAT_ID_LEN && (id[0] == 'r' || id[0] == 'f') &&
	       strspn(id + 1, ID_ALPHABET) == LIBRECHAT_ID_LEN - 1;
}

bool librechat_is_name(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > ARCHIVE_PATH_MAX - LIBRECHAT_ID_LEN - 1 || !str_is_utf8(name, len))
		return false;
	for (const char *at = name; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return false;
	for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return false;
	}
	return true;
}

const char *librechat_name_of(const struct archive_file *f, const char *id)
{
	const char *slash = strchr(f->path, '/');
	size_t len = slash ? (size_t)(slash - f->path) : 0;

	if (len != LIBRECHAT_ID_LEN || (id && (strlen(id) != len || memcmp(id, f->path, len) != 0)))
		return NULL;
	return slash + 1;
}

void librechat_error(struct client *c, unsigned status, const char *message)
{
	door_reply(c, status, json_pack("{s:s%}", "error", message, str_utf8_prefix(message, strlen(message))));
}

/* If a JWT key is configured, requests without a valid JWT are refused, whatever brig key they carry. */
bool librechat_lets_in(struct client *c)
{
	static const char word[] = "Bearer ";
	const char *key = c->front->options->librechat_key, *line = door_line(c, "Authorization");
	bool has_one = line && strncasecmp(line, word, strlen(word)) == 0;
	const char *fault;

	if (!key)
		return true;
	fault = has_one ? jwt_fault(line + strlen(word), strlen(line + strlen(word)), key,
				    (int64_t)(clock_wall_ns() / NS_PER_SEC))
			: "there is none";
	if (fault)
		reply_refuse(c, 401, "this needs the JWT that LibreChat signs: %s", fault);
	return !fault;
}

/* ---- uploads -------------------------------------------------------------------------------------------------- */

struct upload {
	bool is_batch;
	char kind[VALUE_MAX], id[VALUE_MAX], read_only[VALUE_MAX];
	char *value; /* buffer for the current part; NULL: a file part, or one to skip */
	size_t value_len;
	bool in_file;
	char name[ARCHIVE_PATH_MAX + 1];
	struct buf content, tar;
	json_t *files, *wrong; /* files stored; files refused, with the reason */
};

static void upload_free(void *p)
{
	struct upload *u = p;

	buf_release(&u->content);
	buf_release(&u->tar);
	json_decref(u->files);
	json_decref(u->wrong);
	free(u);
}

/* Browsers write a quotation mark as %22 and line ends as %0A or %0D. */
static void unescape(const char *from, char *dst, size_t size)
{
	size_t n = 0;

	for (; *from && n + 1 < size; n++) {
		if (strncmp(from, "%22", 3) == 0) {
			dst[n] = '"';
			from += 3;
		} else {
			dst[n] = *from++;
		}
	}
	dst[n] = '\0';
}

static void begin_part(struct upload *u, const struct multipart *m)
{
	u->value = str_eq(m->name, "kind")        ? u->kind
		   : str_eq(m->name, "id")        ? u->id
		   : str_eq(m->name, "read_only") ? u->read_only
						  : NULL;
	u->value_len = 0;
	u->in_file = str_eq(m->name, "file") && m->file_name;
	u->content.len = 0;
	if (u->in_file)
		unescape(m->file_name, u->name, sizeof(u->name));
}

static bool add_data(struct upload *u, const char *data, size_t len)
{
	if (u->in_file)
		return buf_add(&u->content, data, len) == len;
	if (!u->value)
		return true;
	if (u->value_len + len >= VALUE_MAX)
		return false;
	memcpy(u->value + u->value_len, data, len);
	u->value_len += len;
	u->value[u->value_len] = '\0';
	return true;
}

static bool end_part(struct upload *u)
{
	const struct bytes content = { buf_str(&u->content), u->content.len };
	char id[LIBRECHAT_ID_LEN + 1], path[LIBRECHAT_ID_LEN + ARCHIVE_PATH_MAX + 2];
	const char *name = u->name[0] == '/' ? u->name + 1 : u->name;

	if (!u->in_file)
		return true;
	if (!librechat_is_name(name)) {
		size_t len = str_utf8_prefix(name, strlen(name));

		(void)json_array_append_new(u->wrong, json_pack("{s:s, s:s%, s:s}", "status", "error", "filename", name,
								len, "error", "a file cannot have this name"));
		return true;
	}
	/* The read_only part may come before or after the files: mark_read_only() sets the final id at the end. */
	librechat_new_id(false, id);
	(void)snprintf(path, sizeof(path), "%s/%s", id, name);
	(void)json_array_append_new(u->files, json_pack("{s:s, s:s}", "fileId", id, "filename", name));
	return id[0] && json_array_size(u->files) <= ARCHIVE_FILES_MAX && ustar_add_file(&u->tar, path, &content);
}

/* NULL: the form was read completely. */
static const char *read_form(struct upload *u, struct client *c)
{
	const char *bytes = buf_str(&c->req->body);
	size_t len = c->req->body.len, at = 0;
	enum multipart_event event;
	struct multipart m;

	if (!multipart_begin(&m, c->req->content_type, strlen(c->req->content_type)))
		return m.why;
	do {
		const char *data = NULL;
		size_t used = 0, n = 0;

		event = multipart_take(&m, bytes + at, len - at, &used, &data, &n);
		at += used;
		if (event == MULTIPART_PART)
			begin_part(u, &m);
		if ((event == MULTIPART_DATA && !add_data(u, data, n)) || (event == MULTIPART_PART_END && !end_part(u)))
			return "the files are too many or too long";
		if (event == MULTIPART_BAD)
			return m.why;
	} while (event != MULTIPART_MORE);
	return multipart_end(&m) ? NULL : m.why;
}

/*
 * Read-only files have ids with another first character, of the same length: changes them in the list (rename_files()
 * does so in the archive).
 */
static void mark_read_only(struct upload *u)
{
	json_t *file;
	size_t i;

	json_array_foreach(u->files, i, file)
	{
		char id[LIBRECHAT_ID_LEN + 1];

		(void)str_copy(id, sizeof(id), json_string_value(json_object_get(file, "fileId")));
		id[0] = 'r';
		(void)json_object_set_new(file, "fileId", json_string(id));
	}
}

static void answer_upload(struct client *c, const struct upload *u, const char *session)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:O}", "message", "success", "storage_session_id", session, "files", u->files);
	json_t *file;
	size_t i;

	if (u->is_batch) {
		json_array_foreach(u->files, i, file)(void) json_object_set_new(file, "status", json_string("success"));
		(void)json_object_set_new(doc, "succeeded", json_integer((json_int_t)json_array_size(u->files)));
		(void)json_object_set_new(doc, "failed", json_integer((json_int_t)json_array_size(u->wrong)));
		(void)json_array_extend(u->files, u->wrong);
	}
	door_reply(c, 200, doc);
}

/* Relays a refusal of the runner in this protocol's terms. */
static void refuse(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = door_answer_json(m);

	librechat_error(c, status == 403 ? 413 : status, door_answer_message(doc));
	json_decref(doc);
}

static void on_put(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 201 ? door_answer_json(m) : NULL;
	const char *session = json_string_value(json_object_get(doc, "id"));

	if (session)
		answer_upload(c, c->req->call->state, session);
	else
		refuse(c, status == 201 ? 500 : status, m);
	json_decref(doc);
}

/* Rebuilds the archive with the read-only ids. */
static bool rename_files(struct upload *u)
{
	struct archive a = { .bytes = u->tar.data, .len = u->tar.len };
	struct buf out = BUF_INIT(ARCHIVE_BYTES_MAX);
	struct archive_file f;
	bool is_good = true;
	int rc;

	(void)ustar_add_end(&u->tar);
	a.len = u->tar.len;
	a.bytes = u->tar.data;
	while (is_good && (rc = archive_next(&a, &f, NULL)) > 0) {
		f.path[0] = 'r';
		is_good = archive_put(&out, &f);
	}
	buf_release(&u->tar);
	u->tar = out;
	return is_good;
}

static void upload(struct client *c, bool is_batch)
{
	struct upload *u = calloc(1, sizeof(*u));
	const char *why;
	AUTO_FD files = FD_NONE;

	if (!u) {
		librechat_error(c, 503, "there is no memory");
		return;
	}
	*u = (struct upload){ .is_batch = is_batch,
			      .content = BUF_INIT(ARCHIVE_BYTES_MAX),
			      .tar = BUF_INIT(ARCHIVE_BYTES_MAX),
			      .files = json_array(),
			      .wrong = json_array() };
	c->req->call->state = u;
	c->req->call->release = upload_free;
	why = read_form(u, c);
	if (!why && (!u->kind[0] || !u->id[0]))
		why = "kind and id are required";
	if (!why && json_array_size(u->files) == 0)
		why = "there is no file whose name can be used";
	if (!why && str_eq(u->read_only, "true")) {
		mark_read_only(u);
		if (!rename_files(u))
			why = "there is no memory";
	}
	if (why) {
		librechat_error(c, 400, why);
		return;
	}
	files = ustar_to_file(&u->tar);
	(void)door_fields(c);
	if (files < 0)
		librechat_error(c, 503, "there is no room for the files");
	else
		door_ask(c, ROUTE_workspace_put, files, FD_NONE, on_put);
}

void librechat_upload(struct client *c)
{
	upload(c, false);
}

void librechat_upload_batch(struct client *c)
{
	upload(c, true);
}

/* ---- reads ----------------------------------------------------------------------------------------------------- */

/* Asks the runner about the storage session in the path; false: the id is invalid, and the request was answered. */
static bool ask_session(struct client *c, enum route route,
			void (*on_answer)(struct client *c, unsigned status, const struct message *m))
{
	const struct door_call *call = c->req->call;

	if (!librechat_is_session(call->id) || (*call->path && !librechat_is_file(call->path))) {
		librechat_error(c, 404, "Not Found");
		return false;
	}
	message_put_text(door_fields(c), FIELD_id, call->id);
	if (route == ROUTE_workspace_delete)
		message_put_text(&c->req->fields, FIELD_path, call->path);
	door_ask(c, route, FD_NONE, FD_NONE, on_answer);
	return true;
}

static void on_download(struct client *c, unsigned status, const struct message *m)
{
	size_t len = 0;
	const char *bytes = message_bytes(m, FIELD_body, &len);
	struct archive a = { .bytes = bytes, .len = len };
	struct archive_file f;

	if (status != 200) {
		refuse(c, status, m);
		return;
	}
	while (bytes && archive_next(&a, &f, NULL) > 0)
		if (librechat_name_of(&f, c->req->call->path)) {
			door_reply_bytes(c, 200, "application/octet-stream", f.data, f.len);
			return;
		}
	librechat_error(c, 404, "Not Found");
}

void librechat_download(struct client *c)
{
	(void)ask_session(c, ROUTE_workspace_archive, on_download);
}

/* "main.tar.gz" -> ".gz"; "" if there is none. */
static const char *extension_of(const char *name)
{
	const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash + 1 : name, '.');

	return dot ? dot : "";
}

static json_t *file_document(const struct client *c, const char *path, const json_t *row, const json_t *session)
{
	char id[LIBRECHAT_ID_LEN + 1], name[160];
	const char *own = path + LIBRECHAT_ID_LEN + 1;

	(void)snprintf(id, sizeof(id), "%.*s", LIBRECHAT_ID_LEN, path);
	(void)snprintf(name, sizeof(name), "%s/%s%.40s", c->req->call->id, id, extension_of(own));
	return json_pack("{s:s, s:s, s:s, s:O, s:O, s:{s:s}}", "id", id, "name", name, "storage_session_id",
			 c->req->call->id, "size", json_object_get(row, "size"), "lastModified",
			 json_object_get(session, "created"), "metadata", "original-filename", own);
}

/* Descriptions of all files of a session, or of the one that the path names. */
static json_t *documents(const struct client *c, const json_t *session)
{
	const char *wanted = c->req->call->path;
	json_t *list = json_array(), *row;
	size_t i;

	json_array_foreach(json_object_get(session, "files"), i, row)
	{
		const char *path = json_string_value(json_object_get(row, "path"));

		if (path && strlen(path) > LIBRECHAT_ID_LEN + 1 && path[LIBRECHAT_ID_LEN] == '/' &&
		    (!*wanted || strncmp(path, wanted, LIBRECHAT_ID_LEN) == 0))
			(void)json_array_append_new(list, file_document(c, path, row, session));
	}
	return list;
}

static void on_list(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = status == 200 ? door_answer_json(m) : NULL, *list;

	if (!doc) {
		refuse(c, status, m);
		return;
	}
	list = documents(c, doc);
	if (!*c->req->call->path)
		door_reply(c, 200, json_incref(list));
	else if (json_array_size(list) > 0)
		door_reply(c, 200, json_incref(json_array_get(list, 0)));
	else
		librechat_error(c, 404, "Not Found");
	json_decref(list);
	json_decref(doc);
}

void librechat_list(struct client *c)
{
	(void)ask_session(c, ROUTE_workspace, on_list);
}

static void on_removed(struct client *c, unsigned status, const struct message *m)
{
	if (status == 200)
		door_reply(c, 200, json_pack("{s:s}", "message", "success"));
	else
		refuse(c, status, m);
}

void librechat_remove(struct client *c)
{
	(void)ask_session(c, ROUTE_workspace_delete, on_removed);
}
