/* SPDX-License-Identifier: Apache-2.0 */
/* The Engine API's calls on containers. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/docker/engine_internal.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/wait.h"

#define GONE_PAUSE_MS 20 /* interval for polling a container that is being removed */

/* A call on a container without a body; the answer's body is ignored. */
static int simple(struct engine *e, const char *method, const char *what, const char *id, const char *verb,
		  struct http_answer *answer, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT(method, what);

	call_object(&call, "containers", id, verb);
	return call_send(e, &call, answer, err);
}

int engine_create(struct engine *e, const char *name, json_t *body, char ret_id[ENGINE_ID_LEN + 1], char *warnings,
		  size_t warnings_size, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "create the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc;

	(void)buf_adds(&call.path, "/containers/create");
	call_query(&call, "name", name);
	call.body = body;
	rc = call_expect_success(e, &call, &answer, err);
	if (rc == 0 && answer_created(buf_str(&answer.body), answer.body.len, ret_id, warnings, warnings_size, err) < 0)
		rc = engine_nonsense(e, call.what, err);
	return rc;
}

int engine_inspect(struct engine *e, const char *id, json_t **ret, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	static const char what[] = "inspect the container";
	json_t *v;
	int rc = simple(e, "GET", what, id, "json", &answer, err);

	if (rc < 0)
		return rc;
	if (answer.status == 404)
		return 1;
	if (answer.status >= 300)
		return engine_said_no(e, what, &answer, err);
	v = answer_parse(buf_str(&answer.body), answer.body.len, err);
	if (v && !answer_is_id(answer_text(v, "Id"))) {
		json_decref(v);
		v = NULL;
		(void)err_set(err, BRIG_E_SYSTEM, 0, "the description of a container has no id");
	}
	if (!v)
		return engine_nonsense(e, what, err);
	*ret = v;
	return 0;
}

int engine_attach(struct engine *e, const char *id, bool with_stdin, struct http_stream **ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "attach to the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	struct http_request req = { .method = call.method, .deadline_ns = call_deadline(e, CALL_MS) };
	AUTO_FREE char *path = NULL;
	int rc;

	call_object(&call, "containers", id, "attach");
	call_query(&call, "stream", "1");
	call_query(&call, "stdout", "1");
	call_query(&call, "stderr", "1");
	if (with_stdin)
		call_query(&call, "stdin", "1");
	rc = call_check(&call, err);
	path = rc == 0 ? call_path(e, &call) : NULL;
	if (!path)
		return rc < 0 ? rc : err_nomem(err);
	req.path = path;
	e->trouble = ENGINE_FINE;
	rc = http_stream_open(e->http, &req, ret, &answer, &trouble, err);
	e->status = answer.status;
	if (rc == 0)
		return 0;
	return trouble == HTTP_FINE ? engine_said_no(e, call.what, &answer, err)
				    : engine_no_answer(e, call.what, trouble, err);
}

/* ---- waiting --------------------------------------------------------------------------------------- */

static const char wait_what[] = "wait for the container";

/* The engine rejected the call: its answer, if that arrives in time. */
static int wait_refused(struct engine *e, struct http_call *call, uint64_t deadline_ns, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	int rc = 0;

	while (rc == 0) {
		struct pollfd p = { .fd = http_call_fd(call), .events = POLLIN };
		uint64_t now = clock_now_ns();

		if (now >= deadline_ns)
			break;
		(void)wait_poll(&p, 1, (int)min_u64((deadline_ns - now) / NS_PER_MS + 1, CALL_MS));
		rc = http_call_step(call, &answer, &trouble, err);
	}
	if (rc < 0)
		return engine_no_answer(e, wait_what, trouble, err);
	if (rc == 0)
		answer.status = http_call_status(call);
	return engine_said_no(e, wait_what, &answer, err);
}

int engine_wait_begin(struct engine *e, const char *id, uint64_t until_ns, struct http_call **ret,
		      struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", wait_what);
	enum http_trouble trouble = HTTP_FINE;
	struct http_request req = { .method = call.method,
				    .deadline_ns = call_deadline(e, CALL_MS),
				    .max_body = 64 * KiB };
	AUTO_FREE char *path = NULL;
	struct http_call *wait = NULL;
	int rc;

	call_object(&call, "containers", id, "wait");
	call_query(&call, "condition", "next-exit");
	rc = call_check(&call, err);
	path = rc == 0 ? call_path(e, &call) : NULL;
	if (!path)
		return rc < 0 ? rc : err_nomem(err);
	req.path = path;
	e->status = 0;
	e->trouble = ENGINE_FINE;
	rc = http_call_open(e->http, &req, max_u64(until_ns, req.deadline_ns), &wait, &trouble, err);
	if (rc < 0)
		return engine_no_answer(e, call.what, trouble, err);
	e->status = http_call_status(wait);
	if (e->status != 200) {
		rc = wait_refused(e, wait, req.deadline_ns, err);
		http_call_close(wait);
		return rc;
	}
	*ret = wait;
	return 0;
}

int engine_wait_step(struct http_call *call, struct engine_exit *ret, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc = http_call_step(call, &answer, NULL, err);

	if (rc == 0)
		return 0;
	if (rc > 0)
		rc = answer_exit(buf_str(&answer.body), answer.body.len, ret, err);
	if (rc < 0)
		return err_wrap(err, "cannot %s", wait_what);
	return 1;
}

/* ---- life cycle ------------------------------------------------------------------------------------ */

/* POST .../verb that is answered with 204. */
static int verb(struct engine *e, const char *what, const char *id, const char *name, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc = simple(e, "POST", what, id, name, &answer, err);

	if (rc == 0 && (answer.status < 200 || answer.status >= 300))
		rc = engine_said_no(e, what, &answer, err);
	return rc;
}

int engine_start(struct engine *e, const char *id, struct brig_error *err)
{
	return verb(e, "start the container", id, "start", err);
}

int engine_pause(struct engine *e, const char *id, struct brig_error *err)
{
	return verb(e, "pause the container", id, "pause", err);
}

int engine_unpause(struct engine *e, const char *id, struct brig_error *err)
{
	return verb(e, "let the container go on", id, "unpause", err);
}

/* Some versions of Podman have no status code for it. */
static bool says_not_running(const struct http_answer *answer)
{
	char words[256];

	(void)answer_message(words, sizeof(words), buf_str(&answer->body), answer->body.len);
	return strstr(words, "not running") || strstr(words, "can only kill running");
}

int engine_kill(struct engine *e, const char *id, const char *signal, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "kill the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc;

	call_object(&call, "containers", id, "kill");
	call_query(&call, "signal", signal);
	rc = call_send(e, &call, &answer, err);
	if (rc < 0)
		return rc;
	if (answer.status == 404 || answer.status == 409 || (answer.status == 500 && says_not_running(&answer)))
		return 1;
	return answer.status >= 300 ? engine_said_no(e, call.what, &answer, err) : 0;
}

/* Polls until the engine no longer knows the container. */
static int await_gone(struct engine *e, const char *id, uint64_t deadline_ns, struct brig_error *err)
{
	static const char what[] = "remove the container";

	for (;;) {
		AUTO_ANSWER answer = HTTP_ANSWER_INIT;
		int rc = simple(e, "GET", what, id, "json", &answer, err);

		if (rc < 0)
			return rc;
		if (answer.status == 404)
			return 0;
		if (clock_now_ns() >= deadline_ns) {
			e->trouble = ENGINE_LATE;
			return err_set(
				err, BRIG_E_SYSTEM, 0,
				"cannot %s: the engine at %s says that it is being removed, but it is still there",
				what, e->about.address);
		}
		wait_sleep(GONE_PAUSE_MS * NS_PER_MS);
	}
}

int engine_remove(struct engine *e, const char *id, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("DELETE", "remove the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	uint64_t deadline_ns = call_deadline(e, CALL_MS);
	int rc;

	call_object(&call, "containers", id, NULL);
	call_query(&call, "force", "1");
	call_query(&call, "v", "1");
	rc = call_send(e, &call, &answer, err);
	if (rc < 0)
		return rc;
	if (answer.status == 404)
		return 0;
	if (answer.status == 409)
		return await_gone(e, id, deadline_ns, err);
	return answer.status >= 300 ? engine_said_no(e, call.what, &answer, err) : 0;
}

/* Callers may rely on ids and labels. */
static bool is_container_list(const json_t *list)
{
	json_t *at;
	size_t i;

	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, at) if (!answer_is_id(answer_text(at, "Id")) ||
					    !json_is_object(answer_at(at, "Labels"))) return false;
	return true;
}

int engine_list(struct engine *e, const char *label, json_t **ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "list containers");

	(void)buf_adds(&call.path, "/containers/json");
	call_query(&call, "all", "1");
	call_label(&call, label);
	return call_list(e, &call, is_container_list, "containers", ret, err);
}

/* ---- statistics and archives ----------------------------------------------------------------------- */

int engine_stats(struct engine *e, const char *id, struct engine_stats *ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "take a sample of the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc;

	call_object(&call, "containers", id, "stats");
	call_query(&call, "stream", "false");
	if (e->about.api >= 41)
		call_query(&call, "one-shot", "true");
	rc = call_send(e, &call, &answer, err);
	if (rc < 0)
		return rc;
	if (answer.status == 404 || answer.status == 409)
		return 1;
	if (answer.status >= 300)
		return engine_said_no(e, call.what, &answer, err);
	*ret = (struct engine_stats){ 0 };
	rc = answer_stats(buf_str(&answer.body), answer.body.len, ret, err);
	return rc < 0 ? engine_nonsense(e, call.what, err) : rc;
}

int engine_stats_begin(struct engine *e, const char *id, struct http_call **ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "take a sample of the container");
	enum http_trouble trouble = HTTP_FINE;
	struct http_request req = { .method = call.method, .deadline_ns = call_deadline(e, CALL_MS), .max_body = MiB };
	AUTO_FREE char *path = NULL;
	int rc;

	call_object(&call, "containers", id, "stats");
	call_query(&call, "stream", "false");
	if (e->about.api >= 41)
		call_query(&call, "one-shot", "true");
	rc = call_check(&call, err);
	path = rc == 0 ? call_path(e, &call) : NULL;
	if (!path)
		return rc < 0 ? rc : err_nomem(err);
	req.path = path;
	rc = http_call_begin(e->http, &req, req.deadline_ns, ret, &trouble, err);
	return rc < 0 ? engine_no_answer(e, call.what, trouble, err) : 0;
}

int engine_stats_step(struct http_call *call, struct engine_stats *ret, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	struct engine_stats got = { 0 };
	int rc = http_call_step(call, &answer, NULL, err);

	if (rc <= 0)
		return rc;
	if (answer.status != 200)
		return err_set(err, BRIG_E_SYSTEM, 0, "the engine gives no sample of the container");
	rc = answer_stats(buf_str(&answer.body), answer.body.len, &got, err);
	if (rc < 0)
		return rc;
	*ret = got;
	return 1;
}

int engine_changes(struct engine *e, const char *id, engine_change_fn each, void *arg, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	static const char what[] = "list what changed in the container";
	int rc = simple(e, "GET", what, id, "changes", &answer, err);

	if (rc < 0)
		return rc;
	if (answer.status >= 300)
		return engine_said_no(e, what, &answer, err);
	rc = answer_changes(buf_str(&answer.body), answer.body.len, each, arg, err);
	return rc < 0 ? engine_nonsense(e, what, err) : 0;
}

int engine_commit(struct engine *e, const char *id, const char *repo, const char *tag,
		  char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("POST", "make an image of the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	json_t *v;
	int rc;

	(void)buf_adds(&call.path, "/commit");
	call_query(&call, "container", id);
	call_query(&call, "repo", repo);
	call_query(&call, "tag", tag);
	call.bytes = "{}";
	call.n_bytes = 2;
	call.type = "application/json";
	call.limit_ms = IMAGE_MS;
	rc = call_expect_success(e, &call, &answer, err);
	if (rc < 0)
		return rc;
	v = answer_parse(buf_str(&answer.body), answer.body.len, err);
	if (!v || !answer_image_id(answer_text(v, "Id"), ret_id)) /* Podman's has no prefix */
		rc = v ? err_set(err, BRIG_E_SYSTEM, 0, "it gave no id of the image") : -BRIG_E_SYSTEM;
	json_decref(v);
	return rc < 0 ? engine_nonsense(e, call.what, err) : 0;
}

int engine_put_archive(struct engine *e, const char *id, const char *path, const void *data, size_t len, int tar_fd,
		       struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("PUT", "copy files into the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;

	call_object(&call, "containers", id, "archive");
	call_query(&call, "path", path);
	call_query(&call, "noOverwriteDirNonDir", "1");
	call.type = "application/x-tar";
	call.bytes = data;
	call.n_bytes = len;
	call.has_body_fd = !data;
	call.body_fd = tar_fd;
	return call_expect_success(e, &call, &answer, err);
}

int engine_get_archive(struct engine *e, const char *id, const char *path, struct buf *ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "read a file of the container");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc;

	call_object(&call, "containers", id, "archive");
	call_query(&call, "path", path);
	call.max = ret->max;
	rc = call_find(e, &call, &answer, err);
	if (rc != 0)
		return rc;
	return buf_add(ret, answer.body.data, answer.body.len) == answer.body.len ? 0 : err_nomem(err);
}
