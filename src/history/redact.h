/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `redact` list: texts that must not be kept.  In a pattern * stands for any run of characters without spaces, as
 * many as possible; everything else stands for itself, byte for byte.  What a pattern finds becomes ***.
 *
 * This is a broom, not a wall: it does not know a secret that is encoded, split, or written with a space in between.
 */
#ifndef HISTORY_REDACT_H
#define HISTORY_REDACT_H

#include "base/buf.h"
#include "model/settings.h"

#define REDACT_MARK "***"

struct redact_text {
	const char *data;
	size_t len;
	size_t keep; /* only what begins before this place; a character is not cut in two */
	bool cut;    /* there was more behind len: what may be the beginning of a match counts as one */
};

/* Appends the text with every match replaced.  True if there was one.  Without memory nothing is appended and
 * out->no_memory says so: what could not be searched is not kept. */
bool redact(const struct setting_list *patterns, const struct redact_text *text, struct buf *out);

#endif
