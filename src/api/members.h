/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a document that another process made, read by tables: what an object has, and where it goes. */
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
	AS_WORD,      /* an enum: the place of the word among words */
	AS_WORD_FLAG, /* bool: words[1] is true */
	AS_MILLIS,    /* uint64_t of nanoseconds */
	AS_OTHER,     /* is there; it is read elsewhere */
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

/* Every member of the table is there and as it must be, and no other one is: 0, or -BRIG_E_USAGE with its name. */
int members_read(const json_t *object, const char *name, const struct member *members, size_t n, void *base,
		 struct brig_error *err);
/* One value, as the row says; to is its place. */
int member_read(const json_t *v, const struct member *m, void *to, struct brig_error *err);
int member_complain(struct brig_error *err, const char *name, const char *what);

#endif
