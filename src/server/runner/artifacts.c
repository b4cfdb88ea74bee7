/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifacts.c - download of one artifact of an execution
 *
 * The contents are in the result, base64-encoded, as far as inline_artifacts permits.  Since the program chose name and
 * contents, the content type is one that browsers do not render as a page: anything that could hold a script is
 * text/plain.
 */
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/str.h"
#include "server/runner/answer.h"
#include "server/runner/requests.h"

static const struct {
	const char *ending, *type;
} types[] = {
	{ ".png", "image/png" },
	{ ".jpg", "image/jpeg" },
	{ ".jpeg", "image/jpeg" },
	{ ".gif", "image/gif" },
	{ ".webp", "image/webp" },
	{ ".pdf", "application/pdf" },
	{ ".json", "application/json" },
	{ ".csv", "text/csv; charset=utf-8" },
	{ ".txt", "text/plain; charset=utf-8" },
	{ ".log", "text/plain; charset=utf-8" },
	{ ".md", "text/plain; charset=utf-8" },
	{ ".html", "text/plain; charset=utf-8" },
	{ ".htm", "text/plain; charset=utf-8" },
	{ ".svg", "text/plain; charset=utf-8" },
	{ ".xml", "text/plain; charset=utf-8" },
};

static const char *type_of(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		size_t n = strlen(types[i].ending);

		if (len > n && strcasecmp(path + len - n, types[i].ending) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}

/* Compares paths; a path that is not UTF-8 is base64-encoded in the document. */
static bool has_path(const json_t *artifact, const char *path)
{
	const char *own = json_string_value(json_object_get(artifact, "path"));
	const char *encoding = json_string_value(json_object_get(artifact, "path_encoding"));
	AUTO_FREE char *bytes = NULL;
	ssize_t n;

	if (!own || !encoding || !str_eq(encoding, "base64"))
		return own && str_eq(own, path);
	bytes = malloc(strlen(own) + 1);
	n = bytes ? base64_get(bytes, own, strlen(own)) : -1;
	return n >= 0 && (size_t)n == strlen(path) && memcmp(bytes, path, (size_t)n) == 0;
}

static const json_t *find_artifact(const json_t *result, const char *path)
{
	const json_t *artifact;
	size_t i;

	json_array_foreach(json_object_get(result, "artifacts"), i,
			   artifact) if (has_path(artifact, path)) return artifact;
	return NULL;
}

/* False: the document has no contents for it. */
static bool send_content(struct service *s, const struct request *req, const json_t *artifact, const char *path)
{
	const json_t *content = json_object_get(artifact, "content");
	const char *encoding = json_string_value(json_object_get(artifact, "content_encoding"));
	struct answer a = { .status = 200, .content_type = type_of(path), .who = req->token->name };
	AUTO_FREE char *bytes = NULL;
	ssize_t n;

	if (!json_is_string(content))
		return false;
	a.body = json_string_value(content);
	a.len = json_string_length(content);
	if (encoding && str_eq(encoding, "base64")) {
		bytes = malloc(a.len + 1);
		n = bytes ? base64_get(bytes, a.body, a.len) : -1;
		if (n < 0)
			return false;
		a.body = bytes;
		a.len = (size_t)n;
	}
	answer_send(s, req->tag, &a);
	return true;
}

void artifact_answer(struct service *s, const struct request *req, const char *id, const json_t *result,
		     const char *path)
{
	const json_t *artifact = find_artifact(result, path);

	if (!artifact)
		answer_error(s, req, 404, "the execution %s has no artifact '%.200s'", id, path);
	else if (!send_content(s, req, artifact, path))
		answer_error(s, req, 404,
			     "the content of '%.200s' is not kept: it was over inline_artifacts, which the request can "
			     "raise to %llu MB",
			     path, (unsigned long long)(INLINE_ARTIFACTS_MAX / MiB));
}

void handle_artifact(struct service *s, struct request *req)
{
	const char *path = message_text(req->m, FIELD_path);
	bool is_past;
	const struct execution *x = look_up(s, req, &is_past);
	json_t *result;

	path = path ? path : "";
	if (x && x->state == EXECUTION_FINISHED) {
		result = x->result ? json_loads(x->result, JSON_ALLOW_NUL, NULL) : NULL;
		artifact_answer(s, req, x->id, result, path);
		json_decref(result);
	} else if (x) {
		answer_error(s, req, 404, "the execution %s has not finished, nor made '%.200s'", x->id, path);
	} else if (is_past && s->queue.is_on) {
		front_look_up(s, req, message_text(req->m, FIELD_id), path);
	} else if (is_past) {
		answer_error(s, req, 404, "there is no execution of that id whose artifacts are kept");
	}
}
