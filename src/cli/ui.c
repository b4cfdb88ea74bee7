/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui.h"

#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/sanitize.h"

/* What a descriptor that polls writable takes without blocking, so that cancelling and waiting always work. */
static size_t piece_size(int fd)
{
	return isatty(fd) ? 256 : PIPE_BUF;
}

ssize_t ui_write_part(int fd, const void *data, size_t len, int cancel_fd, int wait_ms)
{
	const size_t piece = piece_size(fd);
	const char *p = data;
	size_t done = 0;

	while (done < len) {
		struct pollfd fds[] = { { .fd = fd, .events = POLLOUT }, { .fd = cancel_fd, .events = POLLIN } };
		int ready = poll(fds, ARRAY_LEN(fds), wait_ms);
		ssize_t n;

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready == 0)
			break;
		if (fds[0].revents == 0 && fds[1].revents != 0)
			return -ECANCELED;
		if (fds[0].revents == 0)
			continue;
		n = write(fd, p + done, len - done < piece ? len - done : piece);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	return (ssize_t)done;
}

int ui_write(int fd, const void *data, size_t len, int cancel_fd)
{
	ssize_t n = ui_write_part(fd, data, len, cancel_fd, -1);

	return n < 0 ? (int)n : 0;
}

int ui_finish(const struct buf *text, int ok_status)
{
	int rc = text->no_memory || text->full ? -ENOMEM : ui_write(STDOUT_FILENO, buf_str(text), text->len, -1);

	if (rc == 0)
		return ok_status;
	if (rc != -EPIPE) /* a reader that has seen enough is no news */
		ui_say("cannot write to standard output: %s", strerrordesc_np(-rc));
	return EXIT_FAILED;
}

void ui_safe(const struct buf *text, struct buf *out)
{
	sanitize_text(buf_str(text), text->len, out);
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
	ui_safe(&text, &safe);
	buf_adds(&safe, "\n");
	(void)ui_write(STDERR_FILENO, buf_str(&safe), safe.len, -1); /* there is nobody else to tell */
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

/* ---- colours and numbers ---------------------------------------------------------------------- */

bool ui_has_color(int fd, bool no_color)
{
	const char *unwanted = getenv("NO_COLOR"), *term = getenv("TERM");

	return !no_color && !(unwanted && *unwanted) && term && !str_eq(term, "dumb") && isatty(fd);
}

void ui_paint(struct buf *out, bool has_color, enum ui_color color, const char *text)
{
	static const char *const code[] = {
		[UI_PLAIN] = "", [UI_GREEN] = "32", [UI_YELLOW] = "33",
		[UI_RED] = "31", [UI_BOLD] = "1",   [UI_DIM] = "2",
	};
	static_assert(ARRAY_LEN(code) == UI_COLOR_COUNT, "a colour has no code");

	if (has_color && color != UI_PLAIN)
		buf_addf(out, "\033[%sm%s\033[0m", code[color], text);
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

	sanitize_text(text, len, &safe);
	for (size_t i = 0; i < safe.len; i++)
		if (safe.data[i] == '\n' || safe.data[i] == '\r' || safe.data[i] == '\t')
			safe.data[i] = ' ';
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
