/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of heads, bodies and multipart share. */
#ifndef NET_HTTP1_INTERNAL_H
#define NET_HTTP1_INTERNAL_H

#include "net/http1.h"

extern const struct http1_trouble_info {
	unsigned status;
	const char *text;
} http1_trouble_info[HTTP1_TROUBLE_COUNT];

/* Of the name of a field. */
bool http1_is_name_char(unsigned char c);
/* Of its value: blanks, what can be seen, and what is beyond ASCII. */
bool http1_is_value_char(unsigned char c);
/* -1: no hexadecimal digit. */
int http1_hex_value(char c);
/* A byte of a head, and the one before it; '\0' before the first. */
enum http1_trouble http1_judge_byte(char before, char c);

/* Without the blanks around it. */
struct http1_text http1_trim(const char *bytes, struct http1_text text);
/* Cuts what is before the first c off *rest, and c itself.  False: there is no c; all of it is *ret then. */
bool http1_cut(const char *bytes, struct http1_text *rest, char c, struct http1_text *ret);
/* Cuts the next line off *rest; its CR LF is gone from both. */
struct http1_text http1_next_line(const char *bytes, struct http1_text *rest);
/* Fields that say how long a body is, and what Connection may not name. */
struct http1_framing {
	bool length, coding;
};
/* A field that means something here, or of which two readers could choose two. */
struct http1_field {
	const char *name;
	enum http1_trouble twice; /* HTTP1_ok: as often as one likes */
	enum http1_trouble (*take)(const char *bytes, struct http1_head *h, struct http1_text value,
				   struct http1_framing *f); /* NULL: it is checked elsewhere */
};
/* What a line says, if it is one of these n. */
enum http1_trouble http1_take_field(const struct http1_field *known, size_t n, const char *bytes, struct http1_head *h,
				    const struct http1_line *line, struct http1_framing *f);
enum http1_trouble http1_take_length(const char *bytes, struct http1_head *h, struct http1_text value,
				     struct http1_framing *f);
enum http1_trouble http1_take_coding(const char *bytes, struct http1_head *h, struct http1_text value,
				     struct http1_framing *f);
enum http1_trouble http1_take_connection(const char *bytes, struct http1_head *h, struct http1_text value,
					 struct http1_framing *f);
/* Whether another message may follow on the connection. */
bool http1_persists(const char *bytes, const struct http1_head *h);
/* Fills in what is wrong; at: a byte of the line that is to blame. */
enum http1_parse http1_refuse(const char *bytes, size_t at, enum http1_trouble trouble, struct http1_head *h);
enum http1_trouble http1_read_field(const char *bytes, struct http1_text text, struct http1_line *ret);

#endif
