/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON document of somebody else's becomes a struct.  Each kind of object has a table of its members; one walk reads any of
 * them, so that every complaint says where it is ("cases[2].expected.compare") and an unknown member is answered with the one
 * that was probably meant.
 */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

#define JSON_FILES_MAX   (64 * MiB) /* of the archive that is made of files */
#define JSON_MEMBERS_MAX 32         /* of one table */

/* What is read may need memory beyond the document's: it is the caller's, who frees it at once. */
struct json_block {
	struct json_block *next;
	max_align_t data[];
};
/* NULL: there is none. */
void *json_blocks_alloc(struct json_block **blocks, size_t n, size_t size);
void json_blocks_free(struct json_block **blocks);

/* One document on its way: where one is in it, and whose memory is used. */
struct json_reader {
	struct brig_error *err;
	struct json_block **blocks;
	const char *whole;                            /* what a complaint about all of it begins with: "the line" */
	const char *(*setting_of)(const char *alias); /* another name of a setting; NULL: there are none */
	char path[200];                               /* "cases[2].expected" */
};

typedef int (*json_read_fn)(struct json_reader *r, json_t *value, void *into);

struct json_member {
	const char *name;
	json_read_fn read;
	size_t offset;
};

/* Strings that belong to the document or the blocks, as does all that is read. */
struct json_strings {
	const char **item;
	size_t n;
	bool is_given;
};
struct json_settings {
	struct brig_option *item;
	size_t n;
};

/* UTF-8 and one value: a new reference; NULL: none, and why.  flags: of jansson, beyond refusing a member that is there twice. */
json_t *json_read_text(const char *text, size_t len, size_t flags, struct brig_error *err);
/* Names in a complaint are cut, perhaps in the middle of a character. */
void json_read_mend(struct brig_error *err);

/* "args[1] must be a string": what is wrong with the value at which one is. */
int json_complain(struct json_reader *r, const char *what);
/* Goes on below a name or, if that is NULL, a number; the path's former length, for json_leave(). */
size_t json_enter(struct json_reader *r, const char *name, size_t index);
void json_leave(struct json_reader *r, size_t len);
/* Every member of an object by its row; into is the struct that the rows' offsets are of. */
int json_read_members(struct json_reader *r, json_t *object, const struct json_member *table, size_t n, void *into);

/* ---- single values: rows of such tables ---------------------------------------------------------------------- */

int json_read_string(struct json_reader *r, json_t *value, void *into); /* const char *, without NUL inside */
int json_read_bool(struct json_reader *r, json_t *value, void *into);   /* bool */
int json_read_bytes(struct json_reader *r, json_t *value, void *into);  /* struct bytes: text, or { "base64": ... } */
int json_read_strings(struct json_reader *r, json_t *value, void *into);
int json_read_env(struct json_reader *r, json_t *value, void *into);      /* struct json_strings: "NAME=VALUE" */
int json_read_settings(struct json_reader *r, json_t *value, void *into); /* struct json_settings */
int json_read_retry(struct json_reader *r, json_t *value, void *into);    /* bool: "never", and not "allowed" */
int json_read_files(struct json_reader *r, json_t *value, void *into);    /* int: an archive (ustar.h), the caller's */

#endif
