/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of JSON documents that are built in more than one place. */
#ifndef MODEL_JSON_H
#define MODEL_JSON_H

#include <jansson.h>

#include "base/err.h"
#include "model/finding.h"

/* Any bytes as a JSON string: what is not UTF-8 becomes U+FFFD.  NULL: no memory. */
json_t *json_text(const char *s);
/* The same; "" becomes null. */
json_t *json_text_or_null(const char *s);
/* Program output: unchanged if it is UTF-8, otherwise in base64; a character cut off by truncation is dropped.
 * *ret_encoding is "utf-8" or "base64".  NULL: no memory. */
json_t *json_bytes(const char *data, size_t len, bool truncated, const char **ret_encoding);
/* Counters are 64 bits without a sign, JSON readers have 63: "unlimited" becomes the largest one. */
json_t *json_count(uint64_t v);
/* {name: rows} as text; takes rows, which may be NULL, as it is when a row could not be made. */
int json_list_document(const char *name, json_t *rows, char **ret, struct brig_error *err);
/* The findings as an array of objects, in their order.  NULL: no memory. */
json_t *json_findings(const struct findings *f);

#endif
