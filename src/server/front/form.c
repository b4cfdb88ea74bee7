/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form.c - multipart bodies (multipart/form-data)
 *
 *	job     the document
 *	code    the program, instead of a member of the document
 *	stdin   its input, likewise
 *	file    a file of the workspace, any number of times; the file name is its path
 *
 * Paths are validated by the reader of the archive.
 */
#include <string.h>

#include "base/json_read.h"
#include "base/str.h"
#include "base/ustar.h"
#include "net/multipart.h"
#include "server/front/front.h"

enum part_kind { PART_job, PART_code, PART_stdin, PART_file, PARTS };
static const char *const part_name[PARTS] = { "job", "code", "stdin", "file" };

struct form {
	struct buf part[PARTS]; /* the latest of each kind */
	bool is_there[PARTS];
	enum part_kind now;
	struct buf tar;
	char path[1025];
};

static int begin_part(struct form *f, const struct multipart *m, struct brig_error *err)
{
	const char *near = str_nearest(m->name, part_name, PARTS);

	f->now = 0;
	while (f->now < PARTS && !str_eq(m->name, part_name[f->now]))
		f->now++;
	if (f->now == PARTS)
		return err_set(err, BRIG_E_USAGE, 0, "part %zu: '%.60s' is none of job, code, stdin and file%s%s%s",
			       m->n_parts, m->name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	if (f->is_there[f->now] && f->now != PART_file)
		return err_set(err, BRIG_E_USAGE, 0, "part %zu: '%s' is there twice", m->n_parts, part_name[f->now]);
	if (f->now == PART_file &&
	    (!m->file_name || *m->file_name == '\0' || !str_copy(f->path, sizeof(f->path), m->file_name)))
		return err_set(err, BRIG_E_USAGE, 0, "part %zu: a file needs a file name of 1 to 1024 bytes: its path",
			       m->n_parts);
	f->is_there[f->now] = true;
	f->part[f->now].len = 0;
	return 0;
}

static int end_part(struct form *f, struct brig_error *err)
{
	const struct bytes content = { buf_str(&f->part[PART_file]), f->part[PART_file].len };

	if (f->now != PART_file || ustar_add_file(&f->tar, f->path, &content))
		return 0;
	return f->tar.no_memory
		       ? err_nomem(err)
		       : err_set(err, BRIG_E_USAGE, 0, "file '%.60s' does not fit: files have 64 MB together", f->path);
}

static int on_event(struct form *f, const struct multipart *m, enum multipart_event event, const struct bytes *data,
		    struct brig_error *err)
{
	switch (event) {
	case MULTIPART_PART:
		return begin_part(f, m, err);
	case MULTIPART_DATA:
		return buf_add(&f->part[f->now], data->data, data->len) == data->len ? 0 : err_nomem(err);
	case MULTIPART_PART_END:
		return end_part(f, err);
	case MULTIPART_BAD:
		return err_set(err, BRIG_E_USAGE, 0, "%s", m->why);
	default:
		return 0;
	}
}

static int read_form(struct form *f, struct multipart *m, const struct bytes *form, struct brig_error *err)
{
	enum multipart_event event;
	size_t at = 0;

	do {
		struct bytes data = { 0 };
		size_t used = 0;

		event = multipart_take(m, form->data + at, form->len - at, &used, &data.data, &data.len);
		at += used;
		if (on_event(f, m, event, &data, err) < 0)
			return -err->code;
	} while (event != MULTIPART_MORE);
	if (!multipart_end(m))
		return err_set(err, BRIG_E_USAGE, 0, "%s", m->why);
	return f->is_there[PART_job] ? 0
				     : err_set(err, BRIG_E_USAGE, 0, "the form has no part 'job' with the JSON object");
}

/* Refuses files in the document in addition to parts, which would be a second archive. */
static int add_files(struct form *f, int *files, struct brig_error *err)
{
	if (!f->is_there[PART_file])
		return 0;
	if (*files >= 0) {
		fd_closep(files);
		return err_set(err, BRIG_E_USAGE, 0,
			       "files are parts of the form, or \"files\" of the job, but not both");
	}
	*files = ustar_to_file(&f->tar);
	return *files < 0 ? err_set(err, BRIG_E_SYSTEM, -*files, "cannot keep the files that were sent") : 0;
}

static struct bytes part_of(const struct form *f, enum part_kind kind)
{
	return f->is_there[kind] ? (struct bytes){ buf_str(&f->part[kind]), f->part[kind].len } : (struct bytes){ 0 };
}

int form_to_fields(enum route route, const char *content_type, const struct bytes *form, struct buf *fields,
		   int *ret_files, struct brig_error *err)
{
	struct form f = { .tar = BUF_INIT(JSON_FILES_MAX) };
	struct bytes job;
	struct multipart m;
	int rc = 0;

	*ret_files = FD_NONE;
	for (size_t i = 0; i < PARTS; i++)
		f.part[i] = (struct buf)BUF_INIT(FRONT_BODY_MAX);
	if (!multipart_begin(&m, content_type, strlen(content_type)))
		rc = err_set(err, BRIG_E_USAGE, 0, "%s", m.why);
	if (rc == 0)
		rc = read_form(&f, &m, form, err);
	job = part_of(&f, PART_job);
	if (rc == 0)
		rc = body_to_fields(route, &job,
				    &(struct body_parts){ part_of(&f, PART_code), part_of(&f, PART_stdin) }, fields,
				    ret_files, err);
	if (rc == 0)
		rc = add_files(&f, ret_files, err);
	for (size_t i = 0; i < PARTS; i++)
		buf_release(&f.part[i]);
	buf_release(&f.tar);
	return rc;
}
