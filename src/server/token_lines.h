/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the token file: lines in, tokens out, and back.  token_members.def says what a line holds. */
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
	json_t *line; /* what was read: owns the words of the token's lists */
};

struct token_entries {
	struct token_entry *item;
	size_t n;
};

/*
 * -BRIG_E_REFUSED: the complaint names file and line, and nothing is stored.  Two tokens of one name, and two of one hash,
 * are complaints too.
 */
int token_lines_read(const char *text, size_t len, const char *file, struct token_entries *ret, struct brig_error *err);
void token_entries_release(struct token_entries *entries);
/* Appends the line of one; -BRIG_E_NOMEM. */
int token_line_write(const struct token_entry *entry, struct buf *out, struct brig_error *err);
/* What tokens_json() says of one, without its hash.  NULL: no memory. */
json_t *token_object(const struct token *token, int64_t now_s);

/* [A-Za-z0-9][A-Za-z0-9._-]*, at most TOKEN_NAME_MAX bytes. */
bool token_is_name(const char *text);
/* A language, a backend, an environment: [a-z0-9][a-z0-9._+-]*, at most TOKEN_WORD_MAX bytes. */
bool token_is_word(const char *text);

#endif
