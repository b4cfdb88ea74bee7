/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piston.c - the REST part of Piston v2
 *
 * One of the clients sends JSON as text/plain, so /execute ignores the content type. That is safe only because requests
 * with a foreign Origin are refused before they get here (front/check.c).
 */
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "server/doors/piston/job.h"
#include "server/doors/piston/semver.h"

#define PISTON_VERSION "3.1.1" /* of the original's server */

void piston_error(struct client *c, unsigned status, const char *message)
{
	if (c->websocket) {
		piston_socket_error(c, message);
		return;
	}
	if (status == 404)
		message = "Not Found";
	door_reply(c, status, json_pack("{s:s}", "message", message));
}

static void answer(struct client *c, unsigned status, const struct brig_error *err)
{
	if (err->code == BRIG_E_REFUSED) /* no body, as the original's internal errors */
		door_reply_bytes(c, 500, "text/plain", "", 0);
	else
		piston_error(c, status, err->msg);
}

static void not_found(struct client *c)
{
	piston_error(c, 404, "Not Found");
}

void piston_no_path(struct client *c)
{
	door_when_let_in(c, not_found);
}

void piston_version_of_api(struct client *c)
{
	door_reply(c, 200, json_pack("{s:s}", "message", "Piston v" PISTON_VERSION));
}

/* ---- runtimes and packages ------------------------------------------------------------------------------ */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void list_runtimes(struct client *c, json_t *languages)
{
	json_t *list = json_array(), *row;
	size_t i;

	json_array_foreach(languages, i, row)
	{
		const char *name = piston_name(row);

		if (!json_is_true(json_object_get(row, "installed")))
			continue;
		json_t *entry = json_pack("{s:s, s:s, s:o}", "language", name, "version", piston_version(row),
					  "aliases", piston_aliases(row));

		if (str_eq(name, "javascript") || str_eq(name, "typescript"))
			(void)json_object_set_new(entry, "runtime", json_string("node"));
		(void)json_array_append_new(list, entry);
	}
	door_reply(c, 200, list);
}

void piston_runtimes(struct client *c)
{
	door_with_languages(c, true, list_runtimes);
}

static void list_packages(struct client *c, json_t *languages)
{
	json_t *list = json_array(), *row;
	char wanted[65] = "";
	size_t i;

	(void)door_query(c, "language", wanted, sizeof(wanted));
	json_array_foreach(languages, i, row) if (!*wanted || str_eq(wanted, piston_name(row)))(void)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:O}", "language", piston_name(row), "language_version",
						piston_version(row), "installed", json_object_get(row, "installed")));
	door_reply(c, 200, list);
}

void piston_packages(struct client *c)
{
	door_with_languages(c, true, list_packages);
}

static void find_package(struct client *c, json_t *languages)
{
	const json_t *doc = ((struct piston_job *)c->req->call->state)->doc;
	const char *name = text_of(doc, "language"), *version = text_of(doc, "version");
	json_t *row = piston_find(languages, name);

	if (!row || !semver_fits(piston_version(row), version)) {
		struct brig_error err = BRIG_ERROR_INIT;

		(void)err_set(&err, BRIG_E_USAGE, 0, "Requested package %.60s-%.60s does not exist", name, version);
		door_reply(c, 404, json_pack("{s:s}", "message", err.msg));
	} else if (str_eq(c->req->method, "DELETE")) {
		piston_error(c, 403, "languages are what this host has: nothing is removed");
	} else {
		door_reply(c, 200,
			   json_pack("{s:s, s:s}", "language", piston_name(row), "version", piston_version(row)));
	}
}

/* Parses the body to the call's state; NULL: the request was answered. */
static struct piston_job *take_body(struct client *c)
{
	struct piston_job *job = calloc(1, sizeof(*job));
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc = job ? door_json(c, &err) : NULL;

	if (!doc) {
		free(job);
		door_reply(c, 400, json_pack("{s:s}", "stack", err.msg));
		return NULL;
	}
	job->doc = doc;
	c->req->call->state = job;
	c->req->call->release = piston_job_free;
	return job;
}

void piston_package(struct client *c)
{
	if (strncasecmp(c->req->content_type, "application/json", strlen("application/json")) != 0)
		piston_error(c, 415, "requests must be of type application/json");
	else if (take_body(c))
		door_with_languages(c, true, find_package);
}

/* ---- execute ------------------------------------------------------------------------------------------------ */

/* The original has no such responses, so a violation of the policy is 400; overload stays 503. */
static void refuse(struct client *c, unsigned status, const json_t *doc)
{
	if (status == 422 || status == 403)
		status = 400;
	piston_error(c, status, door_answer_message(doc));
}

static json_t *compiled_well(void)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:n, s:n, s:n, s:i, s:i, s:i}", "stdout", "", "stderr", "", "output", "",
			 "code", 0, "signal", "message", "status", "memory", 0, "cpu_time", 0, "wall_time", 0);
}

static void on_result(struct client *c, unsigned status, const struct message *m)
{
	const struct piston_job *job = c->req->call->state;
	json_t *result = door_answer_json(m), *doc;

	if (status != 200) {
		refuse(c, status, result);
	} else if (str_eq(text_of(result, "verdict"), "refused")) {
		piston_error(c, 400, text_of(result, "reason"));
	} else {
		doc = json_pack("{s:o, s:s, s:s}", "run", piston_stage(result), "language", job->language, "version",
				job->version);
		if (job->compiles)
			(void)json_object_set_new(doc, "compile",
						  str_eq(text_of(result, "step"), "compile") ? piston_stage(result)
											     : compiled_well());
		door_reply(c, 200, doc);
	}
	json_decref(result);
}

static void run(struct client *c, json_t *languages)
{
	struct piston_job *job = c->req->call->state;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD files = FD_NONE;

	if (piston_choose(job, languages, &err) == 0 && piston_put(job, door_fields(c), &files, &err) == 0)
		door_ask(c, ROUTE_execute, files, FD_NONE, on_result);
	else if (c->req->call->is_fresh)
		answer(c, 400, &err);
	else
		door_with_languages(c, true, run);
}

void piston_execute(struct client *c)
{
	struct piston_job *job = take_body(c);
	struct brig_error err = BRIG_ERROR_INIT;

	if (!job)
		return;
	if (piston_read(job, job->doc, &err) < 0)
		answer(c, 400, &err);
	else
		door_with_languages(c, false, run);
}
