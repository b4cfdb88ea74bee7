/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>

#include "base/str.h"

#define LEVELS   8 /* in one character's height */
#define GUTTER   10
#define LABELLED 32

size_t chart_screen_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return columns && str_to_u64(columns, &n) && n > 0 && n < 10000 ? (size_t)n : 80;
}

bool chart_has_unicode(void)
{
	/* The first of these that is set decides, as for setlocale(). */
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

/* The highest value in each column's interval; an interval without a point has the value of the next point. */
static uint64_t fill_columns(const struct chart *c, uint64_t *column, size_t width)
{
	uint64_t end = max_u64(c->point[c->n - 1].at_ms, 1), top = 0;
	size_t at = 0;

	for (size_t i = 0; i < width; i++) {
		uint64_t until = (i + 1) * end / width;

		column[i] = c->point[at].value;
		for (; at + 1 < c->n && c->point[at].at_ms <= until; at++)
			column[i] = max_u64(column[i], c->point[at].value);
		top = max_u64(top, column[i]);
	}
	/* The last point has no next one. */
	column[width - 1] = max_u64(column[width - 1], c->point[c->n - 1].value);
	return max_u64(top, column[width - 1]);
}

static const char *block(unsigned level, bool ascii)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const plain[] = { " ", ".", ".", ".", "=", "=", "=", "=", "#" };

	return ascii ? plain[level] : blocks[level];
}

/* One line of blocks; row 0 is the lowest. */
static void add_line(struct buf *out, const uint64_t *column, size_t width, uint64_t top, size_t row, bool ascii)
{
	for (size_t i = 0; i < width; i++) {
		/* A value above 0 is always visible: the lowest level is one. */
		double share = (double)column[i] / (double)top;
		size_t level = (size_t)(share * CHART_ROWS * LEVELS + 0.5);

		if (level == 0 && column[i] > 0)
			level = 1;
		level = level > row * LEVELS ? level - row * LEVELS : 0;
		buf_adds(out, block(level > LEVELS ? LEVELS : (unsigned)level, ascii));
	}
}

static void add_axis(struct buf *out, const struct chart *c, size_t width)
{
	char end[LABELLED];
	int room = (int)width - 3;

	(void)ui_millis(end, sizeof(end), c->point[c->n - 1].at_ms);
	buf_addf(out, "%*s0 s%*s\n", GUTTER + 2, "", room > 0 ? room : 0, end);
}

void chart_add(const struct chart *c, const struct chart_look *look, struct buf *out)
{
	uint64_t column[CHART_WIDTH_MAX], top;
	size_t width = look->width > GUTTER + 3 ? look->width - GUTTER - 3 : 0;
	char label[LABELLED];

	if (c->n < 2 || width < CHART_WIDTH_MIN)
		return;
	if (width > CHART_WIDTH_MAX)
		width = CHART_WIDTH_MAX;
	top = fill_columns(c, column, width);
	if (top == 0)
		return;
	(void)c->label(label, sizeof(label), top);
	buf_addf(out, "  %s, at most %s\n", c->title, label);
	for (size_t row = CHART_ROWS; row-- > 0;) {
		AUTO_BUF line = BUF_INIT(LEVELS * CHART_WIDTH_MAX);

		buf_addf(out, "%*s |", GUTTER, row == CHART_ROWS - 1 ? label : "");
		add_line(&line, column, width, top, row, look->ascii);
		while (line.len > 0 && line.data[line.len - 1] == ' ')
			line.data[--line.len] = '\0';
		ui_paint(out, look->has_color, c->color, buf_str(&line));
		buf_adds(out, "\n");
	}
	add_axis(out, c, width);
}
