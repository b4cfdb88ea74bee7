/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of an engine: finding it, negotiating a version, and the common part of every call (struct engine_call):
 * an escaped path, deadline, size limit, status, and for each failure one sentence that says how to fix it.
 */
#include "backend/docker/engine.h"

#include <stdio.h>
#include <string.h>

#include "backend/docker/engine_internal.h"
#include "base/clock.h"
#include "base/str.h"

/* ---- error messages -------------------------------------------------------------------------------- */

static const struct {
	enum engine_trouble trouble;
	enum brig_code code;
	const char *fix;
} troubles[] = {
#define TROUBLE(http, engine, code, fix) [http] = { engine, code, fix },
#include "backend/docker/troubles.def"
};

int engine_no_answer(struct engine *e, const char *what, enum http_trouble trouble, struct brig_error *err)
{
	char why[300];

	if (err->code == BRIG_E_NOMEM || err->code == BRIG_E_INTERNAL)
		return -err->code;
	/* TLS 1.3: an engine that rejects our certificate may just close the connection at the first request. */
	if (trouble == HTTP_CLOSED && e->tls && !e->about.api)
		trouble = HTTP_TLS;
	e->status = 0;
	e->trouble = troubles[trouble].trouble;
	return err_set(err, troubles[trouble].code, 0, "cannot %s: %s. %s", what,
		       answer_clean(why, sizeof(why), err->msg), troubles[trouble].fix);
}

int engine_said_no(struct engine *e, const char *what, const struct http_answer *answer, struct brig_error *err)
{
	char words[260];

	e->trouble = ENGINE_SAID_NO;
	(void)answer_message(words, sizeof(words), buf_str(&answer->body), answer->body.len);
	return err_set(err, BRIG_E_SYSTEM, 0, "cannot %s: the engine at %s answered %d: %s", what, e->about.address,
		       answer->status, words[0] ? words : "(without a reason)");
}

int engine_nonsense(struct engine *e, const char *what, struct brig_error *err)
{
	e->trouble = ENGINE_GARBAGE;
	return err_wrap(err, "cannot %s: the engine at %s makes no sense", what, e->about.address);
}

/* ---- calls ----------------------------------------------------------------------------------------- */

/*
 * Which names may be part of a path.  Escaping keeps a name in its place in transit, but servers decode it before they
 * interpret the path, so dots and slashes that would lead up must not occur at all.
 */
static bool is_name(const char *name, const char *extra)
{
	const char *p = name;

	for (; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9')) &&
		    (p == name || !strchr(extra, *p)))
			return false;
	return p > name && p - name <= NAME_MAX_BYTES && !strstr(name, "..") && !strstr(name, "//");
}

void call_object(struct engine_call *call, const char *kind, const char *name, const char *verb)
{
	call->bad_name = is_name(name, str_eq(kind, "images") ? "_.-/:@" : "_.-") ? NULL : name;
	(void)buf_addf(&call->path, "/%s/", kind);
	http_escape(&call->path, name);
	if (verb)
		(void)buf_addf(&call->path, "/%s", verb);
}

void call_query(struct engine_call *call, const char *key, const char *value)
{
	(void)buf_addf(&call->path, "%c%s=", memchr(buf_str(&call->path), '?', call->path.len) ? '&' : '?', key);
	http_escape(&call->path, value);
}

void call_label(struct engine_call *call, const char *label)
{
	json_t *filter = label ? json_pack("{s:[s]}", "label", label) : NULL;
	char *text = filter ? json_dumps(filter, JSON_COMPACT) : NULL;

	if (text)
		call_query(call, "filters", text);
	else if (label)
		call->path.no_memory = true; /* without the filter the result would be different */
	free(text);
	json_decref(filter);
}

uint64_t call_deadline(const struct engine *e, uint64_t limit_ms)
{
	uint64_t own = clock_now_ns() + limit_ms * NS_PER_MS;

	return e->deadline_ns ? min_u64(own, e->deadline_ns) : own;
}

char *call_path(const struct engine *e, const struct engine_call *call)
{
	AUTO_BUF path = BUF_INIT(PATH_MAX_BYTES + 64);

	if (call->path.full || call->path.no_memory)
		return NULL;
	if (e->about.api)
		(void)buf_addf(&path, "/v1.%u", e->about.api);
	(void)buf_adds(&path, buf_str(&call->path));
	return path.no_memory ? NULL : buf_take(&path);
}

/* Nothing is sent if a name is invalid: 0, or negative. */
int call_check(const struct engine_call *call, struct brig_error *err)
{
	char name[64];

	if (call->bad_name)
		return err_set(err, BRIG_E_REFUSED, 0, "cannot %s: '%s' is not a name that an engine knows", call->what,
			       answer_clean(name, sizeof(name), call->bad_name));
	if (call->path.full)
		return err_set(err, BRIG_E_REFUSED, 0, "cannot %s: what is asked for is too long", call->what);
	return 0;
}

int call_send(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err)
{
	AUTO_FREE char *path = call_path(e, call);
	AUTO_FREE char *body = call->body ? json_dumps(call->body, JSON_COMPACT) : NULL;
	enum http_trouble trouble = HTTP_FINE;
	struct http_request req = {
		.method = call->method,
		.path = path,
		.has_body_fd = call->has_body_fd,
		.body_fd = call->body_fd,
		.max_body = call->max ? call->max : ENGINE_ANSWER_MAX,
		.on_data = call->on_data,
		.arg = call->arg,
	};
	int rc = call_check(call, err);

	e->status = 0;
	e->trouble = ENGINE_FINE;
	if (rc < 0)
		return rc;
	if (!path || (call->body && !body))
		return err_nomem(err);
	req.body = body ? body : call->bytes;
	req.body_len = body ? strlen(body) : call->n_bytes;
	req.content_type = call->type ? call->type : body ? "application/json" : NULL;
	req.deadline_ns = call_deadline(e, call->limit_ms ? call->limit_ms : CALL_MS);
	rc = http_send(e->http, &req, ret, &trouble, err);
	if (rc < 0)
		return engine_no_answer(e, call->what, trouble, err);
	e->status = ret->status;
	return 0;
}

int call_expect_success(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err)
{
	int rc = call_send(e, call, ret, err);

	if (rc == 0 && ret->status >= 300)
		rc = engine_said_no(e, call->what, ret, err);
	return rc;
}

int call_find(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err)
{
	int rc = call_send(e, call, ret, err);

	if (rc < 0 || ret->status < 300)
		return rc;
	return ret->status == 404 ? 1 : engine_said_no(e, call->what, ret, err);
}

int call_list(struct engine *e, struct engine_call *call, bool (*is_one)(const json_t *list), const char *of,
	      json_t **ret, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	json_t *list;
	int rc = call_expect_success(e, call, &answer, err);

	if (rc < 0)
		return rc;
	list = answer_parse(buf_str(&answer.body), answer.body.len, err);
	if (list && !is_one(list)) {
		json_decref(list);
		list = NULL;
		(void)err_set(err, BRIG_E_SYSTEM, 0, "its list of %s is not one", of);
	}
	if (!list)
		return engine_nonsense(e, call->what, err);
	*ret = list;
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------------- */

static int no_engine(struct engine *e, struct brig_error *err)
{
	e->trouble = ENGINE_GARBAGE;
	return err_set(err, BRIG_E_SYSTEM, 0,
		       "what answers at %s is not a container engine. Check docker_host; an engine behind TLS needs "
		       "docker_cert_path",
		       e->about.address);
}

/*
 * Docker includes its name and API version in every answer, while asking for its version makes it run each of its
 * helpers, which takes longer than all other calls of a run.  true if nothing else must be asked; other engines, and
 * those with a newer API, are asked for the versions that they support.
 */
static bool introduces_itself(struct engine_about *me, const struct http_answer *answer)
{
	static const char docker[] = "Docker/";
	unsigned api;

	if (strncmp(answer->server, docker, strlen(docker)) != 0 || !answer_api(answer->api_version, &api) ||
	    api < ENGINE_API_OLDEST || api > ENGINE_API_NEWEST)
		return false;
	(void)answer_clean(me->version, sizeof(me->version), answer->server + strlen(docker));
	me->version[strcspn(me->version, " ")] = '\0';
	(void)str_copy(me->name, sizeof(me->name), "Docker");
	me->api = api;
	return true;
}

/* 1: the answer included name and version. */
static int ping(struct engine *e, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "reach the container engine");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc;

	call.max = 4 * KiB;
	(void)buf_adds(&call.path, "/_ping");
	rc = call_send(e, &call, &answer, err);
	if (rc < 0)
		return rc;
	if (answer.status >= 500)
		return engine_said_no(e, call.what, &answer, err);
	if (answer.status != 200 || !str_eq(buf_str(&answer.body), "OK"))
		return no_engine(e, err);
	return introduces_itself(&e->about, &answer);
}

/* Selects the newest version that both sides support. */
static int agree(struct engine *e, unsigned oldest, unsigned newest, struct brig_error *err)
{
	struct engine_about *me = &e->about;

	if (newest < ENGINE_API_OLDEST) {
		e->trouble = ENGINE_TOO_OLD;
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"%s %s at %s is too old: it speaks API 1.%u, and brig needs 1.%u. Update it to Docker 19.03 or "
			"Podman 3.0, at least",
			me->name, me->version, me->address, newest, ENGINE_API_OLDEST);
	}
	if (oldest > ENGINE_API_NEWEST) {
		e->trouble = ENGINE_TOO_OLD;
		return err_set(err, BRIG_E_REFUSED, 0,
			       "%s %s at %s no longer speaks API 1.%u (its oldest is 1.%u): this brig is too old for "
			       "it. Update brig",
			       me->name, me->version, me->address, ENGINE_API_NEWEST, oldest);
	}
	me->api = newest < ENGINE_API_NEWEST ? newest : ENGINE_API_NEWEST;
	return 0;
}

static int read_version(struct engine *e, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "ask the engine for its version");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	unsigned oldest = 0, newest = 0;
	int rc;

	call.max = 256 * KiB;
	(void)buf_adds(&call.path, "/version");
	rc = call_expect_success(e, &call, &answer, err);
	if (rc < 0)
		return rc;
	if (answer_version(buf_str(&answer.body), answer.body.len, &e->about, &oldest, &newest, err) < 0)
		return engine_nonsense(e, call.what, err);
	return agree(e, oldest, newest, err);
}

int engine_open(const struct settings *set, uint64_t deadline_ns, struct engine **ret, struct brig_error *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	struct http_target target;
	int rc;

	if (!e)
		return err_nomem(err);
	rc = engine_locate(set, &target, e->about.address, sizeof(e->about.address), err);
	if (rc == 0)
		rc = http_open(&target, &e->http, err);
	e->about.local = target.socket[0] != '\0';
	e->tls = target.tls;
	e->deadline_ns = deadline_ns;
	if (rc == 0)
		rc = ping(e, err);
	if (rc == 0)
		rc = read_version(e, err);
	if (rc < 0) {
		engine_close(e);
		return rc;
	}
	e->deadline_ns = 0;
	*ret = e;
	return 0;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	http_close(e->http);
	free(e);
}

const struct engine_about *engine_about(const struct engine *e)
{
	return &e->about;
}

void engine_set_deadline(struct engine *e, uint64_t deadline_ns)
{
	e->deadline_ns = deadline_ns;
}

int engine_status(const struct engine *e)
{
	return e->status;
}

enum engine_trouble engine_trouble(const struct engine *e)
{
	return e->trouble;
}

int engine_info(struct engine *e, struct engine_host *ret, struct brig_error *err)
{
	AUTO_CALL call = CALL_INIT("GET", "ask the engine what it can do");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	int rc;

	(void)buf_adds(&call.path, "/info");
	rc = call_expect_success(e, &call, &answer, err);
	if (rc == 0 && answer_info(buf_str(&answer.body), answer.body.len, ret, err) < 0)
		rc = engine_nonsense(e, call.what, err);
	return rc;
}
