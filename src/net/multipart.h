/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of several parts, multipart/form-data (RFC 7578), parsed incrementally: each chunk of data is passed on
 * immediately, and only the head of a part is kept.  Nothing is allocated.  Like net/http1.h it is strict: text before
 * the first part or after the last, blanks after a boundary, folded lines, and ambiguous names are refused.
 */
#ifndef NET_MULTIPART_H
#define NET_MULTIPART_H

#include "base/util.h"

#define MULTIPART_BOUNDARY_MAX 70
#define MULTIPART_PARTS_MAX    1000
#define MULTIPART_HEAD_MAX     4096

enum multipart_state {
	MULTIPART_IN_DATA, /* of a part; or before the first one, where there must be none */
	MULTIPART_IN_DELIMITER,
	MULTIPART_IN_HEAD,
	MULTIPART_BEHIND,
	MULTIPART_BROKEN
};

enum multipart_event {
	MULTIPART_MORE,     /* all bytes are taken */
	MULTIPART_PART,     /* a part begins: name, file_name and type are its own until the next one */
	MULTIPART_DATA,     /* some of its data */
	MULTIPART_PART_END, /* it is complete */
	MULTIPART_DONE,     /* the form is complete */
	MULTIPART_BAD
};

struct multipart {
	/* What the head of the part says. */
	const char *name;      /* UTF-8, as it was sent: %22 for a quotation mark is left as it is */
	const char *file_name; /* NULL: none, which is not the same as an empty one */
	const char *type;      /* Content-Type; NULL: none */
	size_t n_parts;
	unsigned status; /* of MULTIPART_BAD */
	const char *why;
	/* The reader's own. */
	enum multipart_state state;
	char delimiter[4 + MULTIPART_BOUNDARY_MAX]; /* CR LF - - boundary */
	size_t delimiter_len;
	size_t matched; /* bytes of the delimiter that have come, and are data if the next one is another */
	char tail[2];   /* what has come behind a delimiter, or behind the form */
	size_t n_tail;
	char head[MULTIPART_HEAD_MAX + 1];
	size_t n_head;
};

/* content_type: the value of the request's field.  False: it is no such form; status and why say so. */
bool multipart_begin(struct multipart *m, const char *content_type, size_t len);
/*
 * Consumes bytes until there is something to report: ret_used is the number consumed, and for MULTIPART_DATA ret_data
 * is the data, possibly in the parser's own memory and valid until the next call.  Call it again with the rest until it
 * returns MULTIPART_MORE or MULTIPART_BAD.
 */
enum multipart_event multipart_take(struct multipart *m, const char *bytes, size_t len, size_t *ret_used,
				    const char **ret_data, size_t *ret_data_len);
/* There are no more bytes.  False: the form is not complete; status and why say so. */
bool multipart_end(struct multipart *m);

#endif
