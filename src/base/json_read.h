/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses an untrusted JSON document into a struct.  Each kind of object has a table of its members; one walk handles
 * all of them, so that every error says where it is ("cases[2].expected.compare") and an unknown member gets a
 * suggestion.
 */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

#define JSON_FILES_MAX   (64 * MiB) /* of the archive that is made of files */
#define JSON_MEMBERS_MAX 32         /* of one table */

/* What is read may need memory beyond the document: it belongs to the caller, who frees it as a whole. */
struct json_block {
	struct json_block *next;
	max_align_t data[];
};
/* NULL: there is none. */
void *json_blocks_alloc(struct json_block **blocks, size_t n, size_t size);
void json_blocks_free(struct json_block **blocks);

/* The state of one walk: the current position, and the memory in use. */
struct json_reader {
	struct brig_error *err;
	struct json_block **blocks;
	const char *whole;                            /* the name of the whole document in error messages: "the line" */
	const char *(*setting_of)(const char *alias); /* another name of a setting; NULL: there are none */
	char path[200];                               /* "cases[2].expected" */
};

typedef int (*json_read_fn)(struct json_reader *r, json_t *value, void *into);

struct json_member {
	const char *name;
	json_read_fn read;
	size_t offset;
};

/* Strings are owned by the document or the blocks, like everything that is read. */
struct json_strings {
	const char **item;
	size_t n;
	bool is_given;
};
struct json_settings {
	struct brig_option *item;
	size_t n;
};

/* Accepts UTF-8 with one value: a new reference; NULL with the reason otherwise.  flags: of jansson, in addition to
 * rejecting duplicate members. */
json_t *json_read_text(const char *text, size_t len, size_t flags, struct brig_error *err);
/* Names in error messages are truncated, possibly in the middle of a character. */
void json_read_mend(struct brig_error *err);

/* "args[1] must be a string": what is wrong with the current value. */
int json_complain(struct json_reader *r, const char *what);
/* Descends into a member or, if name is NULL, an index; returns the former length of the path, for json_leave(). */
size_t json_enter(struct json_reader *r, const char *name, size_t index);
void json_leave(struct json_reader *r, size_t len);
/* Reads every member of an object by its row; into is the struct that the rows' offsets refer to. */
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
