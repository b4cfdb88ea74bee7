/* SPDX-License-Identifier: Apache-2.0 */
/* Table-driven reader for objects of a document from another process: their members and where to store them. */
#ifndef API_MEMBERS_H
#define API_MEMBERS_H

#include <jansson.h>

#include "base/err.h"

enum member_kind {
	AS_TEXT,          /* char[size] */
	AS_TEXT_OR_NULL,  /* the same; null is "" */
	AS_COUNT,         /* uint64_t */
	AS_COUNT_OR_NULL, /* null is 0 */
	AS_U32,
	AS_U32_OR_NULL,
	AS_PORT, /* uint16_t */
	AS_FLAG,
	AS_WORD,      /* an enum: the index in words */
	AS_WORD_FLAG, /* bool: words[1] is true */
	AS_MILLIS,    /* uint64_t, in nanoseconds */
	AS_OTHER,     /* required; read elsewhere */
	AS_OTHER_MAYBE,
};

struct member {
	const char *name;
	enum member_kind kind;
	size_t at, size;
	const char *const *words;
	size_t n_words;
};

#define MEMBER_AT(name, kind, type, field)                                             \
	{                                                                              \
		name, kind, offsetof(type, field), sizeof(((type *)0)->field), NULL, 0 \
	}
#define MEMBER_AS(kind, type, field)     MEMBER_AT(#field, kind, type, field)
#define MEMBER_TEXT(type, field)         MEMBER_AS(AS_TEXT, type, field)
#define MEMBER_TEXT_OR_NULL(type, field) MEMBER_AS(AS_TEXT_OR_NULL, type, field)
#define MEMBER_COUNT(type, field)        MEMBER_AS(AS_COUNT, type, field)
#define MEMBER_WORD(name, kind, type, field, list)                          \
	{                                                                   \
		name, kind, offsetof(type, field), 0, list, ARRAY_LEN(list) \
	}
#define MEMBER_OTHER(name)                    \
	{                                     \
		name, AS_OTHER, 0, 0, NULL, 0 \
	}
#define MEMBER_MAYBE(name)                          \
	{                                           \
		name, AS_OTHER_MAYBE, 0, 0, NULL, 0 \
	}

/*
 * Reads all members of the table and refuses missing, malformed and unknown ones: 0, or -BRIG_E_USAGE with the member's
 * name.
 */
int members_read(const json_t *object, const char *name, const struct member *members, size_t n, void *base,
		 struct brig_error *err);
/* Reads one value to `to`, as the row says. */
int member_read(const json_t *v, const struct member *m, void *to, struct brig_error *err);
int member_complain(struct brig_error *err, const char *name, const char *what);

#endif
