/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the JSON of whoever makes containers: bytes in, values out, no input or output, nothing believed.  A path is a
 * dotted list of keys ("HostConfig.Memory"); keys that contain a dot cannot be named.  A value of another type is "not
 * there".
 */
#ifndef CONTAINER_ANSWER_H
#define CONTAINER_ANSWER_H

#include <jansson.h>

#include "base/err.h"

/* NULL and a reason unless the bytes are one whole JSON value without doubled keys. */
json_t *answer_parse(const char *data, size_t len, struct brig_error *err);
/* The same, also for what is neither an array nor an object. */
json_t *answer_parse_any(const char *data, size_t len, struct brig_error *err);
/* The same for an object; flags: of json_loadb(). */
json_t *answer_parse_object(const char *data, size_t len, size_t flags, struct brig_error *err);
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

/* Copies text from an engine or a guest for use in a message: printable characters only, cut to size. */
const char *answer_clean(char *dst, size_t size, const char *text);

#endif
