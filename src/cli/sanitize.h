/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes hostile text safe to show (TT-02): the one rule for everything that brig prints and has not written itself.
 *
 * Passes: printable UTF-8.  Shown in visible form: control characters and bytes that are not UTF-8 (\x1b, \xff), C1
 * controls, line separators, marks that turn the direction of writing, and characters that are not seen (\u009b, \u202e,
 * \U000e0041).  What kind of text it is decides about a few: see sanitize_kind.
 */
#ifndef CLI_SANITIZE_H
#define CLI_SANITIZE_H

#include "base/buf.h"

enum sanitize_kind {
	SANITIZE_STREAM, /* what a program writes while it runs: newline, tab, carriage return and joiners pass */
	SANITIZE_LINES,  /* lines of our own page: newline and tab pass */
	SANITIZE_LINE,   /* a name, a message: what stands in one line and cannot make a second one */
	SANITIZE_JSON,   /* a JSON document, escaped as JSON does: it means the same as before */
};

/* One stream's state: the beginning of a character whose end has not arrived yet. */
struct sanitizer {
	enum sanitize_kind kind;
	char held[4];
	size_t n_held;
};

/* The most bytes that one byte can turn into. */
#define SANITIZE_GROWTH 6

/* Appends the safe form of the next piece of the stream to *out. */
void sanitize(struct sanitizer *s, const char *data, size_t len, struct buf *out);
/* The stream is over: what is held will never be completed. */
void sanitize_end(struct sanitizer *s, struct buf *out);
/* A whole text at once. */
void sanitize_text(enum sanitize_kind kind, const char *data, size_t len, struct buf *out);

#endif
