/* SPDX-License-Identifier: Apache-2.0 */
/* Output of the command line: complete writes, messages, colours, tables. */
#ifndef CLI_UI_H
#define CLI_UI_H

#include "base/buf.h"
#include "base/err.h"

#define EXIT_USAGE     2
#define EXIT_REFUSED   125 /* as the verdict "refused": nothing ran */
#define EXIT_FAILED    121 /* as the verdict "failed" */
#define EXIT_CANCELLED 130

#define UI_TEXT_MAX (64 * MiB) /* limit for any text that is composed before it is written */

/*
 * All text is written by these functions: control characters, direction marks, invisible characters and bytes that are
 * not UTF-8 become visible (cli/sanitize.h), on a terminal and elsewhere.  Newlines, tabs and the colours of ui_paint()
 * pass, so untrusted parts must be added with ui_line() or ui_lines().  All return 0 or -errno.
 */
int ui_put(int fd, const struct buf *text);
/* The same for a JSON document, where characters become escapes with the same meaning. */
int ui_put_json(int fd, const struct buf *text);
/* Output that must be exact (a patch, the log): unchanged, but not to a terminal. */
int ui_put_bytes(int fd, const struct buf *text, bool is_json);
/*
 * The exit status after one of these wrote to standard output: ok_status, or an error message and another status if it
 * failed.
 */
int ui_written(int rc, int ok_status);
/* Writes a composed text to standard output; returns the exit status, ok_status unless writing failed. */
int ui_finish(const struct buf *text, int ok_status);
/* Appends an untrusted name or message, with newlines made visible so that it stays on one line. */
void ui_line(const char *text, struct buf *out);
/* Appends untrusted text of several lines. */
void ui_lines(const char *text, size_t len, struct buf *out);
/* Prints "brig: ..." on standard error, always as one line. */
void ui_say(const char *fmt, ...) PRINTF(1, 2);
/* Prints why a library call failed; returns the exit status for it. */
int ui_fail(const struct brig_error *err);
/* Prints what is wrong with the command line and how to get help; returns EXIT_USAGE. */
int ui_usage(const char *command, const struct brig_error *err);
/* ui_usage() or ui_fail(), depending on the error's code. */
int ui_fail_or_usage(const char *command, const struct brig_error *err);

/* Frees a string of the library. */
static inline void ui_freep(char **text)
{
	brig_free(*text);
}
#define AUTO_TEXT         \
	CLEANUP(ui_freep) \
	char *

/* Colours are used only on terminals, and not with NO_COLOR, TERM=dumb or --no-color. */
enum ui_color { UI_PLAIN, UI_GREEN, UI_YELLOW, UI_RED, UI_BOLD, UI_DIM, UI_COLOR_COUNT };
bool ui_has_color(int fd, bool no_color);
void ui_paint(struct buf *out, bool has_color, enum ui_color color, const char *text);

/* "18 ms", "1.25 s", "2 m 05 s"; returns dst. */
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
