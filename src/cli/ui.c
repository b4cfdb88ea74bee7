/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/sanitize.h"
#include "cli/write.h"

/* ---- the gate: everything that commands compose goes out through here -------------------------- */

static const char *const color_code[] = {
	[UI_PLAIN] = "", [UI_GREEN] = "32", [UI_YELLOW] = "33", [UI_RED] = "31", [UI_BOLD] = "1", [UI_DIM] = "2",
};
static_assert(ARRAY_LEN(color_code) == UI_COLOR_COUNT, "a colour has no code");
#define COLOR_END "\033[0m"

/* Length of a colour of ours at s; 0 if there is none. */
static size_t color_length(const char *s)
{
	size_t n;

	if (strncmp(s, COLOR_END, strlen(COLOR_END)) == 0)
		return strlen(COLOR_END);
	for (size_t i = UI_PLAIN + 1; i < UI_COLOR_COUNT; i++) {
		n = strlen(color_code[i]);
		if (strncmp(s, "\033[", 2) == 0 && strncmp(s + 2, color_code[i], n) == 0 && s[2 + n] == 'm')
			return n + 3;
	}
	return 0;
}

/* Of the control characters only newlines, tabs and our own colours pass, whatever a command forgot. */
static void add_gated(const struct buf *text, struct buf *out)
{
	const char *at = buf_str(text), *end = at + text->len;

	while (at < end) {
		const char *escape = memchr(at, '\033', (size_t)(end - at));
		size_t len = escape ? color_length(escape) : 0;
		const char *until = !escape ? end : len ? escape : escape + 1;

		sanitize_text(SANITIZE_LINES, at, (size_t)(until - at), out);
		buf_add(out, until, len);
		at = until + len;
	}
}

/* Its safe form, or itself: most texts have nothing to hide. */
static int put_safe(int fd, const struct buf *text, bool is_json)
{
	AUTO_BUF safe = BUF_INIT(SIZE_MAX / 2);

	if (text->no_memory || text->full)
		return -ENOMEM;
	if (is_json)
		sanitize_text(SANITIZE_JSON, buf_str(text), text->len, &safe);
	else
		add_gated(text, &safe);
	return safe.no_memory || safe.full ? -ENOMEM : write_all(fd, buf_str(&safe), safe.len, -1);
}

int ui_put(int fd, const struct buf *text)
{
	return put_safe(fd, text, false);
}

int ui_put_json(int fd, const struct buf *text)
{
	return put_safe(fd, text, true);
}

int ui_put_bytes(int fd, const struct buf *text, bool is_json)
{
	if (isatty(fd))
		return put_safe(fd, text, is_json);
	return text->no_memory || text->full ? -ENOMEM : write_all(fd, buf_str(text), text->len, -1);
}

int ui_written(int rc, int ok_status)
{
	if (rc == 0)
		return ok_status;
	if (rc != -EPIPE) /* a reader that has seen enough is no news */
		ui_say("cannot write to standard output: %s", strerrordesc_np(-rc));
	return EXIT_FAILED;
}

int ui_finish(const struct buf *text, int ok_status)
{
	return ui_written(ui_put(STDOUT_FILENO, text), ok_status);
}

void ui_line(const char *text, struct buf *out)
{
	sanitize_text(SANITIZE_LINE, text, strlen(text), out);
}

void ui_lines(const char *text, size_t len, struct buf *out)
{
	sanitize_text(SANITIZE_LINES, text, len, out);
}

void ui_say(const char *fmt, ...)
{
	AUTO_BUF text = BUF_INIT(64 * KiB);
	AUTO_BUF safe = BUF_INIT(SANITIZE_GROWTH * 64 * KiB);
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&text, fmt, ap);
	va_end(ap);
	buf_adds(&safe, "brig: ");
	ui_line(buf_str(&text), &safe);
	buf_adds(&safe, "\n");
	(void)write_all(STDERR_FILENO, buf_str(&safe), safe.len, -1); /* there is nowhere else to report it */
}

int ui_fail(const struct brig_error *err)
{
	static const int status[] = {
		[BRIG_E_OK] = EXIT_FAILED,       [BRIG_E_USAGE] = EXIT_USAGE,   [BRIG_E_POLICY] = EXIT_REFUSED,
		[BRIG_E_REFUSED] = EXIT_REFUSED, [BRIG_E_SYSTEM] = EXIT_FAILED, [BRIG_E_NOMEM] = EXIT_FAILED,
		[BRIG_E_INTERNAL] = EXIT_FAILED,
	};

	ui_say("%s", err->msg);
	return err->code > 0 && (size_t)err->code < ARRAY_LEN(status) ? status[err->code] : EXIT_FAILED;
}

int ui_usage(const char *command, const struct brig_error *err)
{
	ui_say("%s", err->msg);
	if (err->sys == 0) /* a file that is not there is no misunderstanding */
		ui_say("'brig help%s%s' lists what is possible", *command ? " " : "", command);
	return EXIT_USAGE;
}

int ui_fail_or_usage(const char *command, const struct brig_error *err)
{
	return err->code == BRIG_E_USAGE ? ui_usage(command, err) : ui_fail(err);
}

/* ---- colours and numbers ---------------------------------------------------------------------- */

bool ui_has_color(int fd, bool no_color)
{
	const char *unwanted = getenv("NO_COLOR"), *term = getenv("TERM");

	return !no_color && !(unwanted && *unwanted) && term && !str_eq(term, "dumb") && isatty(fd);
}

void ui_paint(struct buf *out, bool has_color, enum ui_color color, const char *text)
{
	if (has_color && color != UI_PLAIN)
		buf_addf(out, "\033[%sm%s" COLOR_END, color_code[color], text);
	else
		buf_adds(out, text);
}

const char *ui_millis(char *dst, size_t size, uint64_t ms)
{
	if (ms < 1000)
		(void)snprintf(dst, size, "%llu ms", (unsigned long long)ms);
	else if (ms < 60000)
		(void)snprintf(dst, size, "%.2f s", (double)ms / 1000);
	else
		(void)snprintf(dst, size, "%llu m %02llu s", (unsigned long long)(ms / 60000),
			       (unsigned long long)(ms / 1000 % 60));
	return dst;
}

/* ---- tables ----------------------------------------------------------------------------------- */

/* Columns on screen, near enough: one per character. */
static size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static char *safe_copy(const char *text)
{
	size_t len = strlen(text);
	struct buf safe = BUF_INIT(SANITIZE_GROWTH * len + 1);

	sanitize_text(SANITIZE_LINE, text, len, &safe);
	return buf_take(&safe);
}

void ui_table_add(struct ui_table *t, const char *text, enum ui_color color)
{
	if (t->n_cells == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		void *cell = reallocarray(t->cell, cap, sizeof(*t->cell));

		if (!cell) {
			t->no_memory = true;
			return;
		}
		t->cell = cell;
		t->cap = cap;
	}
	t->cell[t->n_cells].text = safe_copy(text);
	t->cell[t->n_cells].color = color;
	if (!t->cell[t->n_cells].text)
		t->no_memory = true;
	else
		t->n_cells++;
}

/* Ends the line without the blanks that padded an empty last cell. */
static void end_line(struct buf *out)
{
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->len--;
	buf_adds(out, "\n");
}

void ui_table_show(const struct ui_table *t, bool has_color, struct buf *out)
{
	size_t width[UI_COLUMNS_MAX] = { 0 };

	assert(t->n_columns > 0 && t->n_columns <= UI_COLUMNS_MAX);
	if (t->no_memory)
		out->no_memory = true;
	for (size_t i = 0; i < t->n_cells; i++)
		width[i % t->n_columns] = max_u64(width[i % t->n_columns], text_width(t->cell[i].text));
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t column = i % t->n_columns;
		bool last = column + 1 == t->n_columns;

		ui_paint(out, has_color, t->cell[i].color, t->cell[i].text);
		if (last)
			end_line(out);
		else
			buf_addf(out, "%*s", (int)(width[column] - text_width(t->cell[i].text) + 2), "");
	}
}

void ui_table_release(struct ui_table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cell[i].text);
	free(t->cell);
	*t = (struct ui_table){ 0 };
}
