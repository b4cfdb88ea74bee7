/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the engine's client share. */
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
	uint64_t deadline_ns; /* 0: none besides the ceilings */
	bool tls;
	int status;
	enum engine_trouble trouble;
};

/* One call, as its function describes it. */
struct engine_call {
	const char *method;
	const char *what;     /* "create the container", for messages */
	struct buf path;      /* below /v1.NN; the call's own */
	const char *bad_name; /* what was to be in it, and may not */
	json_t *body;         /* borrowed; may be NULL */
	int body_fd;          /* with a content type of its own */
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

/* Adds "/containers/<id>/verb" with the middle checked and escaped. */
void call_object(struct engine_call *call, const char *kind, const char *name, const char *verb);
/* Adds "?key=value" or "&key=value", the value escaped. */
void call_query(struct engine_call *call, const char *key, const char *value);
/* Adds filters={"label":["..."]}; NULL: none. */
void call_label(struct engine_call *call, const char *label);
/* When this call must be over. */
uint64_t call_deadline(const struct engine *e, uint64_t limit_ms);
/* The path with its version in front; the caller's.  NULL: too long, or no memory. */
char *call_path(const struct engine *e, const struct engine_call *call);
int call_check(const struct engine_call *call, struct brig_error *err);
/* Sends it and takes any status: 0, or negative when there is no answer. */
int call_send(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err);
/* Sends it; an answer of 400 and more fails with the engine's own words. */
int call_expect_success(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err);
/* The same, and 1 if the engine knows no such thing. */
int call_find(struct engine *e, struct engine_call *call, struct http_answer *ret, struct brig_error *err);
/* The same for a list of such things, which is the caller's then. */
int call_list(struct engine *e, struct engine_call *call, bool (*is_one)(const json_t *list), const char *of,
	      json_t **ret, struct brig_error *err);
/* The sentence for an answer that says no. */
int engine_said_no(struct engine *e, const char *what, const struct http_answer *answer, struct brig_error *err);
/* The sentence for an answer that there is not. */
int engine_no_answer(struct engine *e, const char *what, enum http_trouble trouble, struct brig_error *err);
/* The sentence for an answer that makes no sense: err says why already. */
int engine_nonsense(struct engine *e, const char *what, struct brig_error *err);

/* Where the engine is: fills target and address (for messages).  Looks, but does not connect. */
int engine_locate(const struct settings *set, struct http_target *target, char *address, size_t size,
		  struct brig_error *err);

#endif
