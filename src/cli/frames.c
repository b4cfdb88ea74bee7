/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/frames.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/sanitize.h"

#define TAB_STOP  8
#define WIDTH_MAX 140        /* columns of code */
#define LEAD_MAX  60         /* of these before the place, on long lines */
#define BYTES_MAX (64 * KiB) /* of a line that are examined */

/* Zero-width characters. */
static const struct range {
	uint32_t first, last;
} narrow[] = {
	{ 0x300, 0x36f },   { 0x483, 0x489 },   { 0x591, 0x5bd },   { 0x610, 0x61a },   { 0x64b, 0x65f },
	{ 0x6d6, 0x6dc },   { 0x900, 0x902 },   { 0x93c, 0x93c },   { 0x941, 0x948 },   { 0xe31, 0xe31 },
	{ 0xe34, 0xe3a },   { 0xe47, 0xe4e },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200f },
	{ 0x2060, 0x2064 }, { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
};
/* Double-width characters: East Asian wide and fullwidth, and emoji. */
static const struct range wide[] = {
	{ 0x1100, 0x115f }, { 0x231a, 0x231b },   { 0x23e9, 0x23ec },   { 0x25fd, 0x25fe },   { 0x2614, 0x2615 },
	{ 0x2648, 0x2653 }, { 0x26a1, 0x26a1 },   { 0x2705, 0x2705 },   { 0x274c, 0x274c },   { 0x2795, 0x2797 },
	{ 0x2e80, 0x303e }, { 0x3041, 0x33ff },   { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },
	{ 0xa960, 0xa97f }, { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
	{ 0xffe0, 0xffe6 }, { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static bool is_in(uint32_t c, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* A character of the line as it will be displayed. */
struct glyph {
	char text[16];
	size_t len;
	size_t width;
	size_t bytes; /* its length in the line */
};

static uint32_t code_point(const char *s, size_t n)
{
	uint32_t c = n == 1 ? (unsigned char)s[0] : (unsigned char)s[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

static struct glyph next_glyph(const char *s, size_t len, size_t column)
{
	struct glyph g = { .bytes = 1 };
	unsigned char lead = (unsigned char)s[0];
	AUTO_BUF shown = BUF_INIT(sizeof(g.text) - 1);

	if (lead == '\t') {
		g.width = g.len = TAB_STOP - column % TAB_STOP;
		memset(g.text, ' ', g.len);
		return g;
	}
	if (lead >= 0xc2) {
		size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

		g.bytes = n <= len && str_utf8_prefix(s, n) == n ? n : 1;
	}
	sanitize_text(SANITIZE_LINE, s, g.bytes, &shown);
	g.len = shown.len;
	memcpy(g.text, buf_str(&shown), shown.len);
	if (g.len == g.bytes && g.bytes > 1) { /* displayed unchanged */
		uint32_t c = code_point(s, g.bytes);

		g.width = is_in(c, narrow, ARRAY_LEN(narrow)) ? 0 : is_in(c, wide, ARRAY_LEN(wide)) ? 2 : 1;
	} else {
		g.width = g.len; /* ASCII, or an ASCII escape sequence */
	}
	return g;
}

/* The line with that number, without LF, CRLF or CR.  False: there is none. */
static bool find_line(const char *text, size_t len, size_t number, const char **ret, size_t *ret_len)
{
	size_t start = 0;

	for (size_t line = 1; start <= len; line++) {
		size_t end = start;

		while (end < len && text[end] != '\n' && text[end] != '\r')
			end++;
		if (line == number) {
			*ret = text + start;
			*ret_len = end - start < BYTES_MAX ? end - start : BYTES_MAX;
			return true;
		}
		if (end == len)
			break;
		start = end + (text[end] == '\r' && end + 1 < len && text[end + 1] == '\n' ? 2 : 1);
	}
	return false;
}

/* The columns of the characters from..to (counted from 1, to is exclusive). */
static void measure(const char *line, size_t len, size_t from, size_t to, size_t *ret_from, size_t *ret_to)
{
	size_t column = 0, character = 1, at = 0;

	*ret_from = *ret_to = SIZE_MAX;
	for (;; character++) {
		struct glyph g;

		if (character == from)
			*ret_from = column;
		if (character == to)
			*ret_to = column;
		if (at >= len)
			break;
		g = next_glyph(line + at, len - at, column);
		column += g.width;
		at += g.bytes;
	}
	if (*ret_from == SIZE_MAX)
		*ret_from = column;
	if (*ret_to == SIZE_MAX || *ret_to < *ret_from)
		*ret_to = column > *ret_from ? column : *ret_from;
}

/* Adds the part of the line in columns from..to. */
static void add_columns(struct buf *out, const char *line, size_t len, size_t from, size_t to)
{
	size_t column = 0;

	for (size_t at = 0; at < len && column < to;) {
		struct glyph g = next_glyph(line + at, len - at, column);

		if (column >= from && column + g.width <= to)
			buf_add(out, g.text, g.len);
		column += g.width;
		at += g.bytes;
	}
}

size_t frame_gutter(const struct frame_place *at)
{
	char number[32];

	return (size_t)snprintf(number, sizeof(number), "%zu", at->line);
}

static void add_bar(struct buf *out, size_t gutter, const char *number, bool has_color)
{
	char bar[64];

	(void)snprintf(bar, sizeof(bar), " %*s |", (int)gutter, number);
	ui_paint(out, has_color, UI_DIM, bar);
}

static void add_marks(struct buf *out, size_t before, size_t width, bool goes_on, bool has_color, enum ui_color color)
{
	AUTO_BUF marks = BUF_INIT(WIDTH_MAX + 16);

	for (size_t i = 0; i < (width ? width : 1); i++)
		buf_adds(&marks, "^");
	if (goes_on)
		buf_adds(&marks, "...");
	buf_addf(out, " %*s", (int)before, "");
	ui_paint(out, has_color, color, buf_str(&marks));
	buf_adds(out, "\n");
}

void frame_show(const char *text, size_t len, const struct frame_place *at, bool has_color, enum ui_color color,
		struct buf *out)
{
	bool goes_on = at->end_line > at->line;
	size_t gutter = frame_gutter(at), line_len, from, to, first = 0;
	char number[32];
	const char *line;

	if (!find_line(text, len, at->line, &line, &line_len))
		return;
	measure(line, line_len, at->column, goes_on ? SIZE_MAX : at->end_column, &from, &to);
	if (to > WIDTH_MAX)
		first = from > LEAD_MAX ? from - LEAD_MAX : 0;
	if (to > first + WIDTH_MAX)
		to = first + WIDTH_MAX;
	(void)snprintf(number, sizeof(number), "%zu", at->line);
	add_bar(out, gutter, number, has_color);
	buf_adds(out, first ? " ..." : " ");
	add_columns(out, line, line_len, first, first + WIDTH_MAX);
	buf_adds(out, "\n");
	add_bar(out, gutter, "", has_color);
	add_marks(out, from - first + (first ? 3 : 0), to - from, goes_on, has_color, color);
}
