/* SPDX-License-Identifier: Apache-2.0 */
/* The token file's text: parsing and writing lines.  token_members.def lists the members of a line. */
#ifndef SERVER_TOKEN_LINES_H
#define SERVER_TOKEN_LINES_H

#include <jansson.h>

#include "base/buf.h"
#include "server/tokens.h"
#include "sys/crypto.h"

#define TOKEN_LINE_MAX   (16 * KiB)
#define TOKENS_FILE_MAX  (4 * MiB)
#define TOKEN_MOMENT_MAX ((uint64_t)253402300799) /* the last second of the year 9999 */

struct token_entry {
	struct token token;
	uint8_t hash[BLAKE2B_LEN];
	json_t *line; /* the parsed line, which owns the strings in the token's lists */
};

struct token_entries {
	struct token_entry *item;
	size_t n;
};

/*
 * -BRIG_E_REFUSED: the message names file and line, and *ret is not set.  Two tokens with the same name or hash are
 * refused as well.
 */
int token_lines_read(const char *text, size_t len, const char *file, struct token_entries *ret, struct brig_error *err);
void token_entries_release(struct token_entries *entries);
/* Appends the entry's line; -BRIG_E_NOMEM. */
int token_line_write(const struct token_entry *entry, struct buf *out, struct brig_error *err);
/* The entry as in tokens_json(), without its hash.  NULL: out of memory. */
json_t *token_object(const struct token *token, int64_t now_s);

/* [A-Za-z0-9][A-Za-z0-9._-]*, at most TOKEN_NAME_MAX bytes. */
bool token_is_name(const char *text);
/* Names of languages, backends and environments: [a-z0-9][a-z0-9._+-]*, at most TOKEN_WORD_MAX bytes. */
bool token_is_word(const char *text);

#endif
