/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others on its way into messages: always UTF-8, always bounded. */
#ifndef MCP_SHARED_TEXT_H
#define MCP_SHARED_TEXT_H

#include <jansson.h>

#include "base/buf.h"

/* A string with U+FFFD for bytes that are not UTF-8; NULL: no memory. */
json_t *text_json(const char *s, size_t len);
/* Adds it, or its beginning and end with a line between them that says how much was left out; true if so. */
bool text_add_cut(struct buf *out, const char *s, size_t len, size_t max);
/* Of a member: "" if it is no string. */
const char *text_member(const json_t *object, const char *name);
/* How many bytes base64 stands for. */
size_t text_base64_bytes(const char *s, size_t len);
/* Bytes of base64; false if it is not. */
bool text_from_base64(const char *s, size_t len, struct buf *out);
/* The type of an image by its name and its base64, or NULL. */
const char *text_image_type(const char *path, const char *base64);

/* Adds blocks to the content of an answer. */
void content_add_text(json_t *content, const struct buf *text);
void content_add_image(json_t *content, const char *base64, const char *type);
/* The same of bytes that are not base64 yet. */
void content_add_picture(json_t *content, const char *data, size_t len, const char *type);

#endif
