/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of documents, shared by those made of several kinds. */
#ifndef SERVER_FRONT_BODY_H
#define SERVER_FRONT_BODY_H

#include "base/json_read.h"
#include "server/front/front.h"

/* Parses a document, unless it is too deep or has too many values: a new reference; NULL: *err. */
json_t *body_parse(const char *text, size_t len, struct brig_error *err);
/* Writes a job as fields; *ret_files: an archive, owned by the caller, or FD_NONE. */
int body_read_job(struct json_reader *r, enum route route, json_t *doc, const struct body_parts *parts,
		  struct buf *fields, int *ret_files);

/* Write members as fields; member: the name used in error messages. */
int body_put_text(struct buf *fields, enum field f, const char *member, const char *text, struct brig_error *err);
int body_put_bytes(struct buf *fields, enum field f, const char *member, const struct bytes *bytes,
		   struct brig_error *err);
int body_put_texts(struct buf *fields, enum field f, const char *member, const struct json_strings *s,
		   struct brig_error *err);
int body_put_settings(struct buf *fields, const struct json_settings *s, struct brig_error *err);

/* session_body.c: requests about sessions */
int session_read(struct json_reader *r, enum route route, json_t *doc, struct buf *fields);

/* batch.c: {"jobs": [...]}, one field per job */
int batch_read(struct json_reader *r, json_t *doc, struct buf *fields);

#endif
