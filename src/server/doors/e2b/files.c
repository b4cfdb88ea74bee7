/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - /files: contents of files in a sandbox
 *
 * An upload is either one file as the body, or a multipart form with several files whose file names are full paths. The
 * front keeps the body until the runner has stored every file, one request each; if one fails, the client gets that
 * file's error, and the files before it stay written. A gzip body is unpacked here, in the least privileged process,
 * and never to more than the body limit.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/sealed.h"
#include "base/str.h"
#include "net/multipart.h"
#include "server/doors/e2b/connect.h"
#include "server/doors/e2b/filesystem.h"

#define METADATA_PREFIX  "X-Metadata-"
#define METADATA_KEY_MAX 246
#define METADATA_MAX     4096
/* larger files are sent uncompressed: compressing them would block all clients */
#define PACKED_MAX  (4 * MiB)
#define GZIP_WINDOW (15 + 16)

/* ---- refusals -------------------------------------------------------------------------------------------------- */

/* Relays a refusal of the runner about a file, worded as the original does. */
static void refuse(struct client *c, unsigned status, const struct message *m, const char *path)
{
	uint64_t error = message_number(m, FIELD_error_number, 0);
	char shown[E2B_PATH_MAX + 1], text[E2B_PATH_MAX + 100];
	json_t *doc;

	if (e2b_is_gone(status, m)) {
		e2b_gone(c);
		return;
	}
	e2b_shown_path(path, shown);
	doc = door_answer_json(m);
	(void)snprintf(text, sizeof(text), "path '%s': %s", shown, door_answer_message(doc));
	json_decref(doc);
	if (error == ENOENT || error == ENOTDIR)
		(void)snprintf(text, sizeof(text), "path '%s' does not exist", shown);
	else if (error == EISDIR)
		(void)snprintf(text, sizeof(text), "path '%s' is a directory", shown);
	e2b_reply_error(c,
			error == ENOENT || error == ENOTDIR        ? 404
			: error == EISDIR || error == ENXIO        ? 400
			: error == ENOSPC || error == EDQUOT       ? 507
			: error == ENAMETOOLONG || error == EINVAL ? 400
								   : status,
			text);
}

/* Checks the user in the query or the header; false: the request was refused. */
static bool check_user(struct client *c)
{
	char name[65];

	if (!door_query(c, "username", name, sizeof(name)) || connect_is_user(name))
		return connect_check_user(c);
	e2b_reply_error(c, 401, "there is no such user");
	return false;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct reading {
	char path[E2B_PATH_MAX + 1];
};

/* Only a client that accepts gzip and nothing else gets it. */
static bool wants_gzip(const struct client *c)
{
	const char *accept = door_line(c, "Accept-Encoding");

	return accept && str_eq(accept, "gzip");
}

static bool pack(const char *bytes, size_t len, struct buf *out)
{
	z_stream z = { 0 };
	char piece[16 * KiB];
	int rc;

	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	memcpy(&z.next_in, &bytes, sizeof(bytes)); /* only read */
	z.avail_in = (uInt)len;
	do {
		z.next_out = (Bytef *)piece;
		z.avail_out = sizeof(piece);
		rc = deflate(&z, Z_FINISH);
		(void)buf_add(out, piece, sizeof(piece) - z.avail_out);
	} while (rc == Z_OK);
	(void)deflateEnd(&z);
	return rc == Z_STREAM_END && !out->full && !out->no_memory;
}

enum ranged { RANGE_WHOLE, RANGE_PART, RANGE_OUTSIDE };

/* A single range, "bytes=0-99", "bytes=100-" or "bytes=-100"; several, and what is none, are ignored as RFC 9110 permits. */
static enum ranged read_range(const char *line, size_t size, size_t *ret_at, size_t *ret_len)
{
	char text[48], *dash;
	uint64_t first, last = UINT64_MAX;

	if (!line || strncasecmp(line, "bytes=", 6) != 0 || !str_copy(text, sizeof(text), line + 6))
		return RANGE_WHOLE;
	dash = strchr(text, '-');
	if (!dash)
		return RANGE_WHOLE;
	*dash++ = '\0';
	if ((*dash || !*text) && !str_to_u64(dash, &last))
		return RANGE_WHOLE;
	if (!*text) { /* so many at the end */
		first = size - min_u64(last, size);
		last = UINT64_MAX;
	} else if (!str_to_u64(text, &first) || last < first) {
		return RANGE_WHOLE;
	}
	if (first >= size)
		return RANGE_OUTSIDE;
	*ret_at = first;
	*ret_len = min_u64(last, size - 1) - first + 1;
	return RANGE_PART;
}

/* If-Range: the range is meant for the file as it was then. */
static bool is_for_now(const struct client *c, const char *date)
{
	const char *line = door_line(c, "If-Range");

	return !line || str_eq(line, date);
}

static void say_outside(struct client *c, size_t size)
{
	static const char body[] = "{\"code\":416,\"message\":\"the file has nothing in this range\"}";
	char more[64];

	(void)snprintf(more, sizeof(more), "Content-Range: bytes */%zu\r\n", size);
	reply_send(c, &(struct reply){ .status = 416, .more = more, .body = body, .len = strlen(body) });
}

static void on_bytes(struct client *c, unsigned status, const struct message *m)
{
	const struct reading *r = c->req->call->state;
	struct reply a = { .status = 200, .content_type = "application/octet-stream" };
	AUTO_BUF packed = BUF_INIT(2 * PACKED_MAX);
	AUTO_BUF more = BUF_INIT(512);
	char date[32] = "";
	enum ranged ranged;
	const char *bytes;
	size_t size, at = 0;

	if (status != 200) {
		refuse(c, status, m, r->path);
		return;
	}
	if (message_has(m, FIELD_changed))
		reply_date_of(date, message_number(m, FIELD_changed, 0));
	bytes = message_bytes(m, FIELD_body, &size);
	a.len = size;
	ranged = is_for_now(c, date) ? read_range(door_line(c, "Range"), size, &at, &a.len) : RANGE_WHOLE;
	if (ranged == RANGE_OUTSIDE) {
		say_outside(c, size);
		return;
	}
	(void)buf_adds(&more, "Accept-Ranges: bytes\r\n");
	if (*date)
		(void)buf_addf(&more, "Last-Modified: %s\r\n", date);
	a.body = bytes ? bytes + at : NULL;
	if (ranged == RANGE_PART) {
		a.status = 206;
		(void)buf_addf(&more, "Content-Range: bytes %zu-%zu/%zu\r\n", at, at + a.len - 1, size);
	} else if (wants_gzip(c) && size > 0 && size <= PACKED_MAX && pack(bytes, size, &packed)) {
		a.body = packed.data;
		a.len = packed.len;
		(void)buf_adds(&more, "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
	}
	a.more = buf_str(&more);
	reply_send(c, &a);
}

static void read_found(struct client *c)
{
	char path[E2B_PATH_MAX + 1] = "";
	struct reading *r;
	struct buf *fields;

	if (!check_user(c))
		return;
	r = calloc(1, sizeof(*r));
	if (!r) {
		e2b_reply_error(c, 503, "there is no memory for the request");
		return;
	}
	c->req->call->state = r;
	c->req->call->release = free;
	if (!door_query(c, "path", path, sizeof(path)) || !filesystem_path(path, r->path)) {
		e2b_reply_error(c, 400, "path is missing, or is no path of this user");
		return;
	}
	fields = door_fields(c);
	message_put_text(fields, FIELD_path, r->path);
	door_ask(c, ROUTE_session_file, FD_NONE, FD_NONE, on_bytes);
}

void e2b_file_read(struct client *c)
{
	e2b_with_sandbox(c, E2B_ENVD, read_found);
}

/* ---- writing: files -------------------------------------------------------------------------------------------- */

struct upload {
	char *path;
	size_t at, len; /* within writing.bytes */
};

/* The uploaded files, and how many of them are stored. */
struct writing {
	struct front *front;
	struct buf bytes;
	size_t counted; /* added to front->spooled */
	struct upload *file;
	size_t n, done;
	json_t *metadata, *written;
};

static void writing_free(void *state)
{
	struct writing *w = state;

	w->front->spooled -= w->counted;
	for (size_t i = 0; i < w->n; i++)
		free(w->file[i].path);
	free(w->file);
	buf_release(&w->bytes);
	json_decref(w->metadata);
	json_decref(w->written);
	free(w);
}

/* NULL or the reason. */
static const char *add_file(struct writing *w, const char *path)
{
	char plain[E2B_PATH_MAX + 1];
	struct upload *more;

	if (!filesystem_path(path, plain))
		return "a file has no path, or one of another user";
	more = reallocarray(w->file, w->n + 1, sizeof(*more));
	if (!more)
		return "there is no memory for the files";
	w->file = more;
	w->file[w->n] = (struct upload){ .path = strdup(plain), .at = w->bytes.len };
	return w->file[w->n++].path ? NULL : "there is no memory for the files";
}

/* Undoes the escapes of form file names: a quotation mark and a line feed. */
static void unescape(const char *text, char *dst, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++) {
		bool is_quote = strncmp(text, "%22", 3) == 0, is_feed = strncasecmp(text, "%0A", 3) == 0;

		dst[n++] = (char)(is_quote ? '"' : is_feed ? '\n' : *text);
		text += is_quote || is_feed ? 2 : 0;
	}
	dst[n] = '\0';
}

struct part_reader {
	struct writing *w;
	const char *path; /* from the URL; NULL: each part names its own */
	bool is_file;     /* the current part is a file */
};

static const char *take_part(struct part_reader *r, const struct multipart *m, enum multipart_event event,
			     const struct bytes *data)
{
	char name[E2B_PATH_MAX + 1];

	if (event == MULTIPART_BAD)
		return m->why;
	if (event == MULTIPART_PART) {
		r->is_file = str_eq(m->name, "file");
		if (!r->is_file)
			return NULL;
		if (r->path && r->w->n > 0)
			return "there is one path, and more than one file";
		unescape(m->file_name ? m->file_name : "", name, sizeof(name));
		if (!r->path && !*name)
			return "a file has no name";
		return add_file(r->w, r->path ? r->path : name);
	}
	if (event == MULTIPART_DATA && r->is_file) {
		r->w->file[r->w->n - 1].len += data->len;
		if (buf_add(&r->w->bytes, data->data, data->len) < data->len)
			return "there is no memory for the files";
	}
	return NULL;
}

static const char *read_form(struct writing *w, const char *type, const struct bytes *form, const char *path)
{
	struct part_reader r = { .w = w, .path = path };
	enum multipart_event event;
	struct multipart m;
	const char *why;
	size_t at = 0;

	if (!multipart_begin(&m, type, strlen(type)))
		return m.why;
	do {
		struct bytes data = { 0 };
		size_t used = 0;

		event = multipart_take(&m, form->data + at, form->len - at, &used, &data.data, &data.len);
		at += used;
		why = take_part(&r, &m, event, &data);
		if (why)
			return why;
	} while (event != MULTIPART_MORE);
	if (!multipart_end(&m))
		return m.why;
	return w->n > 0 ? NULL : "the form has no file";
}

/* ---- writing: bodies ------------------------------------------------------------------------------------------- */

/* NULL or the reason; the buffer bounds the output. */
static const char *unpack(const struct bytes *packed, struct buf *out)
{
	z_stream z = { 0 };
	char piece[64 * KiB];
	int rc;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return "there is no memory for the body";
	memcpy(&z.next_in, &packed->data, sizeof(packed->data)); /* only read */
	z.avail_in = (uInt)packed->len;
	do {
		z.next_out = (Bytef *)piece;
		z.avail_out = sizeof(piece);
		rc = inflate(&z, Z_NO_FLUSH);
		(void)buf_add(out, piece, sizeof(piece) - z.avail_out);
	} while (rc == Z_OK && !out->full && !out->no_memory);
	(void)inflateEnd(&z);
	if (out->full || out->no_memory)
		return "the body is too long when it is unpacked";
	return rc == Z_STREAM_END ? NULL : "the body is no gzip, or not whole";
}

static bool is_type(const char *type, const char *wanted)
{
	return strncasecmp(type, wanted, strlen(wanted)) == 0;
}

static const char *read_plain(struct client *c, struct writing *w, const struct bytes *body)
{
	char path[E2B_PATH_MAX + 1];
	bool has_path = door_query(c, "path", path, sizeof(path)) && *path;
	const char *why;

	if (is_type(c->req->content_type, "multipart/form-data"))
		return read_form(w, c->req->content_type, body, has_path ? path : NULL);
	if (!has_path)
		return "path is missing";
	why = add_file(w, path);
	if (!why && buf_add(&w->bytes, body->data, body->len) < body->len)
		why = "there is no memory for the file";
	if (!why)
		w->file[0].len = body->len;
	return why;
}

static const char *read_body(struct client *c, struct writing *w)
{
	const char *encoding = door_line(c, "Content-Encoding"), *why = NULL;
	AUTO_BUF plain = BUF_INIT(c->front->body_max);
	struct bytes body = { buf_str(&c->req->body), c->req->body.len };

	if (encoding && !str_eq(encoding, "identity")) {
		if (!str_eq(encoding, "gzip"))
			return "the Content-Encoding must be gzip, or none";
		why = unpack(&body, &plain);
		body = (struct bytes){ buf_str(&plain), plain.len };
	}
	return why ? why : read_plain(c, w, &body);
}

/* From the X-Metadata-* header fields; NULL or the reason. */
static const char *read_metadata(const struct client *c, json_t *metadata)
{
	const char *name, *value;
	size_t at = 0, bytes = 0;

	while ((name = door_next_line(c, METADATA_PREFIX, &at, &value))) {
		const char *key = name + strlen(METADATA_PREFIX);
		json_t *text = json_string(value);

		bytes += strlen(key) + strlen(value);
		for (const char *p = value; *p; p++)
			if (*p < 0x20 || *p > 0x7e)
				bytes = SIZE_MAX / 2;
		if (!*key || strlen(key) > METADATA_KEY_MAX || bytes > METADATA_MAX || !text) {
			json_decref(text);
			return "metadata must be printable ASCII, 4096 bytes together, and a key at most 246";
		}
		(void)json_object_set_new(metadata, key, text);
	}
	return NULL;
}

/* ---- writing: one file at a time ------------------------------------------------------------------------------- */

static void write_next(struct client *c);

static void on_written(struct client *c, unsigned status, const struct message *m)
{
	struct writing *w = c->req->call->state;
	const struct upload *f = &w->file[w->done];
	char path[E2B_PATH_MAX + 1];
	json_t *row;

	if (status != 200) {
		refuse(c, status, m, f->path);
		return;
	}
	e2b_shown_path(f->path, path);
	row = json_pack("{s:s, s:s, s:s}", "path", path, "name", filesystem_name(path), "type", "file");
	if (json_object_size(w->metadata) > 0)
		(void)json_object_set(row, "metadata", w->metadata);
	(void)json_array_append_new(w->written, row);
	w->done++;
	if (w->done < w->n)
		write_next(c);
	else
		door_reply(c, 200, json_incref(w->written));
}

static void write_next(struct client *c)
{
	struct writing *w = c->req->call->state;
	const struct upload *f = &w->file[w->done];
	AUTO_FD bytes = sealed_make("file", buf_str(&w->bytes) + f->at, f->len);
	struct buf *fields = door_fields(c);
	const char *name;
	json_t *value;

	if (bytes < 0) {
		e2b_reply_error(c, 503, "there is no memory for the file");
		return;
	}
	message_put_text(fields, FIELD_path, f->path);
	json_object_foreach(w->metadata, name, value)
	{
		AUTO_BUF text = BUF_INIT(METADATA_MAX + 2);

		(void)buf_addf(&text, "%s=%s", name, json_string_value(value));
		message_put_text(fields, FIELD_file_metadata, buf_str(&text));
	}
	door_ask(c, ROUTE_session_file_put, bytes, FD_NONE, on_written);
}

/* The unpacked bytes count as spooled body until the request ends. */
static void count(struct writing *w)
{
	w->counted = w->bytes.len;
	w->front->spooled += w->counted;
}

static void write_found(struct client *c)
{
	struct writing *w;
	const char *why;

	if (!check_user(c))
		return;
	w = calloc(1, sizeof(*w));
	if (!w) {
		e2b_reply_error(c, 503, "there is no memory for the request");
		return;
	}
	c->req->call->state = w;
	c->req->call->release = writing_free;
	w->front = c->front;
	w->bytes = (struct buf)BUF_INIT(c->front->body_max);
	w->metadata = json_object();
	w->written = json_array();
	why = read_metadata(c, w->metadata);
	if (!why)
		why = read_body(c, w);
	if (!why && !w->file)
		why = "there is no file in the request";
	count(w);
	if (why)
		e2b_reply_error(c, 400, why);
	else
		write_next(c);
}

void e2b_file_write(struct client *c)
{
	e2b_with_sandbox(c, E2B_ENVD, write_found);
}
