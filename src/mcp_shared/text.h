/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted text in messages: converted to UTF-8 and bounded. */
#ifndef MCP_SHARED_TEXT_H
#define MCP_SHARED_TEXT_H

#include <jansson.h>

#include "base/buf.h"

/* A JSON string, with U+FFFD for bytes that are not UTF-8; NULL: no memory. */
json_t *text_json(const char *s, size_t len);
/* Adds the text, or its beginning and end around a line that tells how much was left out; true in the latter case. */
bool text_add_cut(struct buf *out, const char *s, size_t len, size_t max);
/* The string member of that name, or "". */
const char *text_member(const json_t *object, const char *name);
/* The number of bytes that base64 text decodes to. */
size_t text_base64_bytes(const char *s, size_t len);
/* Decodes base64; false if it is invalid. */
bool text_from_base64(const char *s, size_t len, struct buf *out);
/* The media type of an image, from its name and its base64, or NULL. */
const char *text_image_type(const char *path, const char *base64);

/* Add blocks to the content of an answer. */
void content_add_text(json_t *content, const struct buf *text);
void content_add_image(json_t *content, const char *base64, const char *type);
/* The same for bytes not yet in base64. */
void content_add_picture(json_t *content, const char *data, size_t len, const char *type);

#endif
