/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes hostile text safe to display (TT-02): the one rule for everything that brig prints and has not written itself.
 *
 * Printable UTF-8 passes.  Shown in visible form: control characters and bytes that are not UTF-8 (\x1b, \xff), C1
 * controls, line separators, direction marks, and invisible characters (\u009b, \u202e, \U000e0041).  A few depend on
 * the kind of text: see sanitize_kind.
 */
#ifndef CLI_SANITIZE_H
#define CLI_SANITIZE_H

#include "base/buf.h"

enum sanitize_kind {
	SANITIZE_STREAM, /* output of a program as it runs: newline, tab, carriage return and joiners pass */
	SANITIZE_LINES,  /* lines of our own text: newline and tab pass */
	SANITIZE_LINE,   /* a name or message that must stay on one line */
	SANITIZE_JSON,   /* a JSON document, escaped as JSON: its meaning is unchanged */
};

/* State of a stream: an incomplete character at the end. */
struct sanitizer {
	enum sanitize_kind kind;
	char held[4];
	size_t n_held;
};

/* Maximum number of bytes that one byte can become. */
#define SANITIZE_GROWTH 6

/* Appends the safe form of the next piece of a stream to *out. */
void sanitize(struct sanitizer *s, const char *data, size_t len, struct buf *out);
/* End of the stream: appends what was held back. */
void sanitize_end(struct sanitizer *s, struct buf *out);
/* A complete text. */
void sanitize_text(enum sanitize_kind kind, const char *data, size_t len, struct buf *out);

#endif
