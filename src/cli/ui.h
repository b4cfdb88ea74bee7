/* SPDX-License-Identifier: Apache-2.0 */
/* How the command line speaks: whole writes, messages, colours, tables. */
#ifndef CLI_UI_H
#define CLI_UI_H

#include "base/buf.h"
#include "base/err.h"

#define EXIT_USAGE     2
#define EXIT_REFUSED   125 /* as the verdict "refused": nothing ran */
#define EXIT_FAILED    121 /* as the verdict "failed" */
#define EXIT_CANCELLED 130

#define UI_TEXT_MAX (64 * MiB) /* ceiling of anything that is composed before it is written */

/*
 * Text goes out through one gate: control characters, marks that turn the direction of writing, characters that are not
 * seen and bytes that are not UTF-8 become visible (cli/sanitize.h), to a terminal and elsewhere.  Newlines, tabs and the
 * colours of ui_paint() pass, so what others wrote goes through ui_line() or ui_lines() when it is put into a text.
 * All return 0 or -errno.
 */
int ui_put(int fd, const struct buf *text);
/* The same for a JSON document, whose escapes mean the same as what they stand for. */
int ui_put_json(int fd, const struct buf *text);
/* Output that must be exact (a patch, the log): as it is, but not to a terminal. */
int ui_put_bytes(int fd, const struct buf *text, bool is_json);
/* The exit status after one of these wrote to standard output: ok_status unless it failed, which is said. */
int ui_written(int rc, int ok_status);
/* Writes a composed text to standard output: the exit status, ok_status unless writing failed. */
int ui_finish(const struct buf *text, int ok_status);
/* Appends an untrusted name or message: made visible, including newlines, so that it stays one line. */
void ui_line(const char *text, struct buf *out);
/* Appends untrusted text of several lines. */
void ui_lines(const char *text, size_t len, struct buf *out);
/* "brig: ..." on standard error: one line, whatever is in it. */
void ui_say(const char *fmt, ...) PRINTF(1, 2);
/* Says why a library call failed; returns the exit status for it. */
int ui_fail(const struct brig_error *err);
/* Says what is wrong with the command line and where its help is; returns EXIT_USAGE. */
int ui_usage(const char *command, const struct brig_error *err);
/* The one or the other, as the error's code says. */
int ui_fail_or_usage(const char *command, const struct brig_error *err);

/* Frees what the library handed out. */
static inline void ui_freep(char **text)
{
	brig_free(*text);
}
#define AUTO_TEXT         \
	CLEANUP(ui_freep) \
	char *

/* Colours go to terminals only, and never against NO_COLOR, TERM=dumb or --no-color. */
enum ui_color { UI_PLAIN, UI_GREEN, UI_YELLOW, UI_RED, UI_BOLD, UI_DIM, UI_COLOR_COUNT };
bool ui_has_color(int fd, bool no_color);
void ui_paint(struct buf *out, bool has_color, enum ui_color color, const char *text);

/* "18 ms", "1.25 s", "2 m 05 s"; into dst, returned. */
const char *ui_millis(char *dst, size_t size, uint64_t ms);

/*
 * A table whose columns are as wide as their widest cell.  Cells are copied and made safe.  The last
 * column is not padded.
 */
#define UI_COLUMNS_MAX 8
struct ui_table {
	size_t n_columns;
	struct {
		char *text;
		enum ui_color color;
	} * cell;
	size_t n_cells;
	size_t cap;
	bool no_memory;
};
void ui_table_add(struct ui_table *t, const char *text, enum ui_color color);
void ui_table_show(const struct ui_table *t, bool has_color, struct buf *out);
void ui_table_release(struct ui_table *t);

#endif
