/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing JSON from engines and API servers: bytes in, values out, no I/O, nothing trusted.  A path is a dotted list of
 * keys ("HostConfig.Memory"); keys that contain a dot cannot be expressed.  A value of another type counts as missing.
 */
#ifndef CONTAINER_ANSWER_H
#define CONTAINER_ANSWER_H

#include <jansson.h>

#include "base/err.h"

/* NULL and err unless the bytes are exactly one JSON value without duplicate keys. */
json_t *answer_parse(const char *data, size_t len, struct brig_error *err);
/* Also accepts values that are neither an array nor an object. */
json_t *answer_parse_any(const char *data, size_t len, struct brig_error *err);
/* For an object; flags: of json_loadb(). */
json_t *answer_parse_object(const char *data, size_t len, size_t flags, struct brig_error *err);
/* The value at a path below v, borrowed; NULL: missing. */
json_t *answer_at(const json_t *v, const char *path);
const char *answer_text(const json_t *v, const char *path); /* NULL: missing */
const char *answer_text_or(const json_t *v, const char *path, const char *otherwise);
bool answer_u64(const json_t *v, const char *path, uint64_t *ret); /* false: missing or negative */
bool answer_i64(const json_t *v, const char *path, int64_t *ret);
bool answer_bool(const json_t *v, const char *path, bool *ret);
/* true if it is missing, null, "", 0, false, [] or {}. */
bool answer_is_empty(const json_t *v, const char *path);
/* Whether the array of strings at path contains item. */
bool answer_has_item(const json_t *v, const char *path, const char *item);

/* Copies text from an engine or a guest for use in a message: printable characters only, cut to size. */
const char *answer_clean(char *dst, size_t size, const char *text);

#endif
