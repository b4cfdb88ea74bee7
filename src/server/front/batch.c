/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - many jobs in one body
 *
 * Either { "jobs": [...] } or one job per line, as `brig batch` reads them.  Each job becomes a complete message,
 * including its files, in one field of the request: the runner parses it with the same code.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "server/batch.h"
#include "server/front/body.h"

/* Prefixes the error with the position, such as "jobs[2]: ", unless it has it already. */
static int place(struct brig_error *err, const char *where)
{
	char text[sizeof(err->msg)];

	if (strncmp(err->msg, where, strlen(where)) != 0) {
		(void)snprintf(text, sizeof(text), "%s: %.*s", where, (int)(sizeof(text) - strlen(where) - 3),
			       err->msg);
		memcpy(err->msg, text, sizeof(text));
	}
	return -err->code;
}

/* The job's name, chosen by the client; by default its number. */
static int take_name(json_t *job, size_t number, struct buf *fields, struct brig_error *err)
{
	const json_t *id = json_object_get(job, "id");
	const char *name = json_string_value(id);
	char text[24];

	if (json_object_get(job, "async"))
		return err_set(err, BRIG_E_USAGE, 0, "async is not for jobs of a batch: all of them are");
	(void)snprintf(text, sizeof(text), "%zu", number);
	if (id && (!name || json_string_length(id) == 0 || json_string_length(id) > BATCH_NAME_MAX))
		return err_set(err, BRIG_E_USAGE, 0, "id must be a text of 1 to %d bytes", BATCH_NAME_MAX);
	for (size_t i = 0; name && i < json_string_length(id); i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return err_set(err, BRIG_E_USAGE, 0, "id has a control character in it");
	message_put_text(fields, FIELD_job_id, name ? name : text);
	(void)json_object_del(job, "id");
	return 0;
}

/* The files travel inside the message: there may be more of them than descriptors per record. */
static int put_archive(struct buf *fields, int files, struct brig_error *err)
{
	off_t len = files < 0 ? 0 : lseek(files, 0, SEEK_END);
	void *bytes;

	if (len == 0)
		return 0;
	bytes = len < 0 ? MAP_FAILED : mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, files, 0);
	if (bytes == MAP_FAILED)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot read the files of a job");
	message_put_bytes(fields, FIELD_archive, bytes, (size_t)len);
	(void)munmap(bytes, (size_t)len);
	return 0;
}

static int put_job(struct json_reader *r, json_t *job, size_t number, struct buf *fields)
{
	AUTO_BUF one = BUF_INIT(MESSAGE_MAX);
	AUTO_FD files = FD_NONE;
	struct message m;
	const char *why;

	if (!json_is_object(job))
		return json_complain(r, "must be an object");
	if (take_name(job, number, &one, r->err) < 0 ||
	    body_read_job(r, ROUTE_execute, job, &(struct body_parts){ 0 }, &one, &files) < 0 ||
	    put_archive(&one, files, r->err) < 0)
		return -r->err->code;
	if (one.no_memory)
		return err_nomem(r->err);
	if (one.full)
		return err_set(r->err, BRIG_E_USAGE, 0, "it is longer than the %llu MB that can be passed on",
			       (unsigned long long)(MESSAGE_MAX / MiB));
	if (!message_read(one.data, one.len, &m, &why))
		return err_set(r->err, BRIG_E_USAGE, 0, "it has %s", why);
	message_put_bytes(fields, FIELD_job, one.data, one.len);
	return 0;
}

static int too_many(struct brig_error *err)
{
	return err_set(err, BRIG_E_USAGE, 0, "a batch has 1 to %d jobs", BATCH_JOBS_MAX);
}

int batch_read(struct json_reader *r, json_t *doc, struct buf *fields)
{
	json_t *jobs = json_object_get(doc, "jobs"), *job;
	size_t i, at = 0;

	if (!json_is_array(jobs) || json_object_size(doc) != 1)
		return err_set(r->err, BRIG_E_USAGE, 0, "the body must be {\"jobs\": [...]}, and nothing beside it");
	if (json_array_size(jobs) == 0 || json_array_size(jobs) > BATCH_JOBS_MAX)
		return too_many(r->err);
	at = json_enter(r, "jobs", 0);
	json_array_foreach(jobs, i, job)
	{
		size_t here = json_enter(r, NULL, i);

		if (put_job(r, job, i + 1, fields) < 0)
			return place(r->err, r->path);
		json_leave(r, here);
	}
	json_leave(r, at);
	return 0;
}

/* One line that is not blank. */
static int put_line(const char *line, size_t len, size_t number, struct buf *fields, struct brig_error *err)
{
	struct json_block *blocks = NULL;
	struct json_reader r = { .err = err, .blocks = &blocks, .whole = "the job", .setting_of = body_setting_of };
	json_t *doc = body_parse(line, len, err);
	int rc = doc ? put_job(&r, doc, number, fields) : -err->code;
	char where[32];

	(void)snprintf(where, sizeof(where), "line %zu", number);
	json_decref(doc);
	json_blocks_free(&blocks);
	return rc < 0 ? place(err, where) : 0;
}

static bool is_blank(const char *at, const char *stop)
{
	while (at < stop && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at == stop;
}

int batch_lines_to_fields(const char *text, size_t len, struct buf *fields, struct brig_error *err)
{
	const char *end = text + len;
	size_t number = 0, n = 0;

	for (const char *at = text; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (!stop)
			stop = end;
		number++;
		if (!is_blank(at, stop)) {
			if (++n > BATCH_JOBS_MAX)
				return too_many(err);
			if (put_line(at, (size_t)(stop - at), number, fields, err) < 0) {
				json_read_mend(err);
				return -err->code;
			}
		}
		at = stop + 1;
	}
	return n == 0 ? too_many(err) : 0;
}
