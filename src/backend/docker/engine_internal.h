/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interfaces of the engine's client. */
#ifndef DOCKER_ENGINE_INTERNAL_H
#define DOCKER_ENGINE_INTERNAL_H

#include "backend/docker/answer.h"
#include "backend/docker/engine.h"

#define CALL_MS        30000
#define IMAGE_MS       3600000
#define PATH_MAX_BYTES (32 * KiB)
#define NAME_MAX_BYTES 512

struct engine {
	struct http_client *http;
	struct engine_about about;
	uint64_t deadline_ns; /* 0: only the timeouts of the calls */
	bool tls;
	int status;
	enum engine_trouble trouble;
};

/* An API call. */
struct engine_call {
	const char *method;
	const char *what;     /* "create the container", for messages */
	struct buf path;      /* below /v1.NN; owned by the call */
	const char *bad_name; /* an invalid name for the path */
	json_t *body;         /* borrowed; may be NULL */
	int body_fd;          /* with its own content type */
	bool has_body_fd;
	const void *bytes; /* or bytes of that type */
	size_t n_bytes;
	const char *type;  /* NULL: JSON if there is a body */
	uint64_t limit_ms; /* 0: CALL_MS */
	size_t max;        /* 0: ENGINE_ANSWER_MAX */
	http_data_fn on_data;
	void *arg;
};
#define CALL_INIT(m, w)                                                      \
	{                                                                    \
		.method = (m), .what = (w), .path = BUF_INIT(PATH_MAX_BYTES) \
	}
static inline void call_release(struct engine_call *call)
{
	buf_release(&call->path);
}
#define AUTO_CALL             \
	CLEANUP(call_release) \
	struct engine_call

/* Adds "/kind/name/verb", with the name checked and escaped. */
void call_object(struct engine_call *call, const char *kind, const char *name, const char *verb);
/* Adds "?key=value" or "&key=value", the value escaped. */
void call_query(struct engine_call *call, const char *key, const char *value);
/* Adds filters={"label":["..."]}; NULL: none. */
void call_label(struct engine_call *call, const char *label);
/* The deadline of a call. */
uint64_t call_deadline(const struct engine *e, uint64_t limit_ms);
/* The path with its version prefix; the caller frees it.  NULL: too long, or no memory. */
char *call_path(const struct engine *e, const struct engine_call *call);
int call_check(const struct engine_call *call, struct brig_error *err);
/* Sends it and accepts any status: 0, or negative if there is no answer. */
int call_send(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err);
/* Sends it; a status of 400 and above fails with the engine's message. */
int call_expect_success(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err);
/* The same, with 1 for "not found". */
int call_find(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err);
/* The same for a list, which the caller releases. */
int call_list(struct engine *e, struct engine_call *call, bool (*is_one)(const json_t *list), const char *of,
	      json_t **ret, struct brig_error *err);
/* The error for an answer with a failure status. */
int engine_said_no(struct engine *e, const char *what, const struct http_answer *answer, struct brig_error *err);
/* The error for a missing answer. */
int engine_no_answer(struct engine *e, const char *what, enum http_trouble trouble, struct brig_error *err);
/* The error for a malformed answer; err has the reason. */
int engine_nonsense(struct engine *e, const char *what, struct brig_error *err);

/* Locates the engine: fills target and address (for messages), without connecting. */
int engine_locate(const struct settings *set, struct http_target *target, char *address, size_t size,
		  struct brig_error *err);

#endif
