/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Engine API's calls for images.  Those that create an image answer with a stream of JSON objects, one per line:
 * progress, and at the end the id, or an error although the status was 200.
 */
#include <stdio.h>
#include <string.h>

#include "backend/docker/engine_internal.h"
#include "base/str.h"

/* ---- progress stream ------------------------------------------------------------------------------------ */

struct progress {
	struct answer_progress line; /* result of the lines so far */
	struct buf buf;
	size_t total;
	engine_progress_fn notify;
	void *arg;
};

static void take_line(struct progress *p)
{
	char text[512];

	answer_progress(buf_str(&p->buf), p->buf.len, &p->line, text, sizeof(text));
	if (text[0] && p->notify)
		p->notify(p->arg, text);
	p->buf.len = 0;
}

static int on_piece(void *arg, const char *data, size_t len)
{
	struct progress *p = arg;

	p->total += len;
	if (p->total > ANSWER_PROGRESS_TOTAL)
		return -1;
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) + 1 : len;

		if (buf_add(&p->buf, data, n) != n)
			return -1;
		if (end)
			take_line(p);
		data += n;
		len -= n;
	}
	return 0;
}

/* Sends a call whose answer is such a stream. */
static int call_stream(struct engine *e, struct engine_call *call, struct progress *p, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc;

	p->buf = (struct buf)BUF_INIT(ANSWER_PROGRESS_LINE);
	call->on_data = on_piece;
	call->arg = p;
	call->limit_ms = IMAGE_MS;
	rc = call_expect_success(e, call, &answer, err);
	if (rc == 0 && p->buf.len > 0)
		take_line(p);
	buf_release(&p->buf);
	if (rc == 0 && p->line.error[0]) {
		e->trouble = ENGINE_SAID_NO;
		rc = err_set(err, BRIG_E_SYSTEM, 0, "cannot %s: the engine at %s says: %s", call->what,
			     e->about.address, p->line.error);
	}
	return rc;
}

/* The id from the stream, otherwise the current id of the name. */
static int settle_id(struct engine *e, const struct progress *p, const char *name, char ret_id[ENGINE_IMAGE_LEN + 1],
		     struct brig_error *err)
{
	json_t *image = NULL;
	int rc;

	if (p->line.id[0]) {
		memcpy(ret_id, p->line.id, ENGINE_IMAGE_LEN + 1);
		return 0;
	}
	rc = engine_image_inspect(e, name, &image, err);
	if (rc < 0)
		return rc;
	if (rc > 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the engine at %s made image %s, but does not know it",
			       e->about.address, name);
	memcpy(ret_id, answer_text(image, "Id"), ENGINE_IMAGE_LEN + 1);
	json_decref(image);
	return 0;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

int engine_image_inspect(struct engine *e, const char *name, json_t **ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "look at the image");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	char id[ENGINE_IMAGE_LEN + 1];
	json_t *v;
	int rc;

	call_object(&call, "images", name, "json");
	rc = call_find(e, &call, &answer, err);
	if (rc != 0)
		return rc;
	v = answer_parse(buf_str(&answer.body), answer.body.len, err);
	if (v && !answer_image_id(answer_text(v, "Id"), id)) {
		json_decref(v);
		v = NULL;
		(void)err_set(err, BRIG_E_SYSTEM, 0, "the description of an image has no id");
	}
	if (v && json_object_set_new(v, "Id", json_string(id)) < 0) { /* always with prefix */
		json_decref(v);
		return err_nomem(err);
	}
	if (!v)
		return engine_nonsense(e, call.what, err);
	*ret = v;
	return 0;
}

static bool is_array(const json_t *list)
{
	return json_is_array(list);
}

int engine_image_list(struct engine *e, const char *label, json_t **ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "list images");

	(void)buf_adds(&call.path, "/images/json");
	call_label(&call, label);
	return call_list(e, &call, is_array, "images", ret, err);
}

int engine_image_import(struct engine *e, int tar_fd, const char *repo, const char *tag, const char *const *changes,
			char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "make an image of the files");
	struct progress p = { 0 };
	char name[NAME_MAX_BYTES];
	int rc;

	(void)buf_adds(&call.path, "/images/create");
	call_query(&call, "fromSrc", "-");
	call_query(&call, "repo", repo);
	call_query(&call, "tag", tag);
	for (size_t i = 0; changes && changes[i]; i++)
		call_query(&call, "changes", changes[i]);
	call.type = "application/x-tar";
	call.has_body_fd = true;
	call.body_fd = tar_fd;
	rc = call_stream(e, &call, &p, err);
	if (rc < 0)
		return rc;
	(void)snprintf(name, sizeof(name), "%s:%s", repo, tag);
	return settle_id(e, &p, name, ret_id, err);
}

static void call_query_json(struct engine_call *call, const char *key, const json_t *value)
{
	AUTO_FREE char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	if (text)
		call_query(call, key, text);
	else if (value)
		call->path.no_memory = true;
}

int engine_image_build(struct engine *e, const struct engine_build *b, char ret_id[ENGINE_IMAGE_LEN + 1],
		       struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "build the image");
	struct progress p = { .notify = b->progress, .arg = b->arg };
	int rc;

	(void)buf_adds(&call.path, "/build");
	call_query(&call, "t", b->tag);
	call_query(&call, "dockerfile", b->dockerfile ? b->dockerfile : "Dockerfile");
	call_query(&call, "rm", "1");
	call_query(&call, "forcerm", "1");
	if (b->pull)
		call_query(&call, "pull", "1");
	if (b->no_cache)
		call_query(&call, "nocache", "1");
	if (b->network)
		call_query(&call, "networkmode", b->network);
	call_query_json(&call, "buildargs", b->args);
	call_query_json(&call, "labels", b->labels);
	call.type = "application/x-tar";
	call.has_body_fd = true;
	call.body_fd = b->context_fd;
	rc = call_stream(e, &call, &p, err);
	return rc < 0 ? rc : settle_id(e, &p, b->tag, ret_id, err);
}

int engine_image_load(struct engine *e, int tar_fd, engine_progress_fn progress, void *arg, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "load the image");
	struct progress p = { .notify = progress, .arg = arg };

	(void)buf_adds(&call.path, "/images/load");
	call_query(&call, "quiet", "1");
	call.type = "application/x-tar";
	call.has_body_fd = true;
	call.body_fd = tar_fd;
	return call_stream(e, &call, &p, err);
}

int engine_image_tag(struct engine *e, const char *name, const char *repo, const char *tag, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "name the image");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;

	call_object(&call, "images", name, "tag");
	call_query(&call, "repo", repo);
	call_query(&call, "tag", tag);
	return call_expect_success(e, &call, &answer, err);
}

int engine_image_remove(struct engine *e, const char *name, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("DELETE", "remove the image");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;

	call_object(&call, "images", name, NULL);
	call_query(&call, "force", "1");
	return call_find(e, &call, &answer, err);
}
