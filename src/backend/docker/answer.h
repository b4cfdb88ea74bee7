/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the engine's JSON: bytes in, values out, no input or output, nothing believed.  A path is a dotted list of
 * keys ("HostConfig.Memory"); keys that contain a dot cannot be named.  A value of another type is "not there".
 */
#ifndef DOCKER_ANSWER_H
#define DOCKER_ANSWER_H

#include <jansson.h>

#include "backend/docker/engine.h"

/* NULL and a reason unless the bytes are one whole JSON value without doubled keys. */
json_t *answer_parse(const char *data, size_t len, struct brig_error *err);
/* The value at a path below v, borrowed; NULL if it is not there. */
json_t *answer_at(const json_t *v, const char *path);
const char *answer_text(const json_t *v, const char *path); /* NULL */
const char *answer_text_or(const json_t *v, const char *path, const char *otherwise);
bool answer_u64(const json_t *v, const char *path, uint64_t *ret); /* false: not there or negative */
bool answer_i64(const json_t *v, const char *path, int64_t *ret);
bool answer_bool(const json_t *v, const char *path, bool *ret);
/* true if it is missing, null, "", 0, false, [] or {}. */
bool answer_is_empty(const json_t *v, const char *path);
/* Does the array of texts at path hold this one? */
bool answer_has_item(const json_t *v, const char *path, const char *item);

/* 64 lower-case hex digits. */
bool answer_is_id(const char *s);
/* "sha256:" and 64 lower-case hex digits. */
bool answer_is_image_id(const char *s);
/* An image's id with or without its prefix (Podman) into dst, with it.  false: it is none; text may be NULL. */
bool answer_image_id(const char *text, char dst[ENGINE_IMAGE_LEN + 1]);
/* Copies text from an engine or a guest for use in a message: printable characters only, cut to size. */
const char *answer_clean(char *dst, size_t size, const char *text);
/* The engine's own words out of an error's body, or "" */
const char *answer_message(char *dst, size_t size, const char *data, size_t len);

/* "1.41" -> 41; false: it is no such version. */
bool answer_api(const char *text, unsigned *ret);

/* The bytes of each kind of answer. 0, or negative with err. */
int answer_version(const char *data, size_t len, struct engine_about *ret, unsigned *ret_oldest, unsigned *ret_newest,
		   struct brig_error *err);
int answer_info(const char *data, size_t len, struct engine_host *ret, struct brig_error *err);
int answer_created(const char *data, size_t len, char ret_id[ENGINE_ID_LEN + 1], char *warnings, size_t size,
		   struct brig_error *err);
int answer_exit(const char *data, size_t len, struct engine_exit *ret, struct brig_error *err);
/*
 * One line of the stream that image calls answer with.  text gets what a user wants to read of it, cleaned ("" if
 * nothing); *ret keeps the image's id and the first error, if the line has one.  A line that makes no sense is nothing.
 */
#define ANSWER_PROGRESS_LINE  (256 * KiB)
#define ANSWER_PROGRESS_TOTAL (256 * MiB)
struct answer_progress {
	char id[ENGINE_IMAGE_LEN + 1];
	char error[300];
};
void answer_progress(const char *data, size_t len, struct answer_progress *ret, char *text, size_t size);
int answer_stats(const char *data, size_t len, struct engine_stats *ret, struct brig_error *err);
int answer_changes(const char *data, size_t len, engine_change_fn each, void *arg, struct brig_error *err);

#endif
