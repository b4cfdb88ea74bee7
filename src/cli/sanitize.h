/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes hostile text safe to show on a terminal (TT-02).
 *
 * Passes: printable UTF-8, newline, tab and carriage return (a program can only overwrite its own line).
 * Shown in visible form: other control characters and bytes that are not UTF-8 (\x1b, \xff), C1 controls,
 * line separators, bidirectional overrides and invisible tags (\u009b, \u202e, \U000e0041).
 */
#ifndef CLI_SANITIZE_H
#define CLI_SANITIZE_H

#include "base/buf.h"

/* One stream's state: the beginning of a character whose end has not arrived yet. */
struct sanitizer {
	char held[4];
	size_t n_held;
};

/* The most bytes that one byte can turn into. */
#define SANITIZE_GROWTH 4

/* Appends the safe form of the next piece of the stream to *out. */
void sanitize(struct sanitizer *s, const char *data, size_t len, struct buf *out);
/* The stream is over: what is held will never be completed. */
void sanitize_end(struct sanitizer *s, struct buf *out);
/* A whole text at once. */
void sanitize_text(const char *data, size_t len, struct buf *out);

#endif
