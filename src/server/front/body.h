/* SPDX-License-Identifier: Apache-2.0 */
/* How documents are read, for those that are made of several. */
#ifndef SERVER_FRONT_BODY_H
#define SERVER_FRONT_BODY_H

#include "base/json_read.h"
#include "server/front/front.h"

/* A document that is neither too deep nor has too many values: a new reference; NULL: none, and why. */
json_t *body_parse(const char *text, size_t len, struct brig_error *err);
/* A job as fields; *ret_files: an archive, the caller's, FD_NONE: none. */
int body_read_job(struct json_reader *r, enum route route, json_t *doc, const struct body_parts *parts,
		  struct buf *fields, int *ret_files);

/* Members as fields; member: its name in a complaint. */
int body_put_text(struct buf *fields, enum field f, const char *member, const char *text, struct brig_error *err);
int body_put_bytes(struct buf *fields, enum field f, const char *member, const struct bytes *bytes,
		   struct brig_error *err);
int body_put_texts(struct buf *fields, enum field f, const char *member, const struct json_strings *s,
		   struct brig_error *err);
int body_put_settings(struct buf *fields, const struct json_settings *s, struct brig_error *err);

/* session_body.c: what is asked of a session. */
int session_read(struct json_reader *r, enum route route, json_t *doc, struct buf *fields);

/* batch.c: {"jobs": [...]}, each job a field. */
int batch_read(struct json_reader *r, json_t *doc, struct buf *fields);

#endif
