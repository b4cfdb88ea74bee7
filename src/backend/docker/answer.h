/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing an engine's answers, in addition to the JSON helpers of ../container/answer.h. */
#ifndef DOCKER_ANSWER_H
#define DOCKER_ANSWER_H

#include <jansson.h>

#include "backend/container/answer.h"
#include "backend/docker/engine.h"

/* 64 lower-case hex digits. */
bool answer_is_id(const char *s);
/* "sha256:" and 64 lower-case hex digits. */
bool answer_is_image_id(const char *s);
/*
 * Normalizes an image id, with or without its prefix (Podman), to the form with prefix.  false: not an id; text may be
 * NULL.
 */
bool answer_image_id(const char *text, char dst[ENGINE_IMAGE_LEN + 1]);
/* The engine's message from the body of an error, or "". */
const char *answer_message(char *dst, size_t size, const char *data, size_t len);

/* "1.41" -> 41; false: malformed. */
bool answer_api(const char *text, unsigned *ret);

/* Each parses one kind of answer.  0, or negative with err. */
int answer_version(const char *data, size_t len, struct engine_about *ret, unsigned *ret_oldest, unsigned *ret_newest,
		   struct brig_error *err);
int answer_info(const char *data, size_t len, struct engine_host *ret, struct brig_error *err);
int answer_created(const char *data, size_t len, char ret_id[ENGINE_ID_LEN + 1], char *warnings, size_t size,
		   struct brig_error *err);
int answer_exit(const char *data, size_t len, struct engine_exit *ret, struct brig_error *err);
/*
 * Parses a line of the progress stream of image calls.  text gets the part for users, cleaned ("" if none); *ret keeps
 * the image's id and the first error, if the line has one. Malformed lines are ignored.
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
