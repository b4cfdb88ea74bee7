/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small chart of a value over time, in text:
 *
 *	cpu, at most 98 %
 *	   98 % | ▂▅███▇▆▁
 *	        |▄████████
 *	        0 s      1.20 s
 */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include "cli/ui.h"

#define CHART_ROWS      4
#define CHART_WIDTH_MIN 10
#define CHART_WIDTH_MAX 100

/* The value applies to the time since the previous point. */
struct chart_point {
	uint64_t at_ms, value;
};

struct chart {
	const char *title;
	const struct chart_point *point; /* sorted by time */
	size_t n;
	const char *(*label)(char *dst, size_t size, uint64_t value);
	enum ui_color color;
};

struct chart_look {
	size_t width; /* total width in columns */
	bool ascii;   /* no block characters */
	bool has_color;
};

/* Adds nothing if there are fewer than two points, only zeros, or no room. */
void chart_add(const struct chart *c, const struct chart_look *look, struct buf *out);
/* Width of standard output: the terminal's, otherwise $COLUMNS, otherwise 80. */
size_t chart_screen_width(void);
/* Whether the locale is UTF-8. */
bool chart_has_unicode(void);

#endif
