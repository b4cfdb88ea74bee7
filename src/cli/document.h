/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON documents of the library, shown as they are or as tables. */
#ifndef CLI_DOCUMENT_H
#define CLI_DOCUMENT_H

#include <jansson.h>

#include "cli/ui.h"

/* Prints the document itself, one line; the exit status. */
int document_print(const char *json, int ok_status);
/*
 * A command that shows one document of the library: opens a handle, asks, closes it, and prints what came, as it is or in
 * words.  values are the command's options, for both functions.
 */
struct document_view {
	struct brig_open_opts opts;
	/* Fills *ret; the exit status, or negative with *err. */
	int (*ask)(struct brig *b, const void *values, char **ret, struct brig_error *err);
	/* Prints the document in words; the exit status, which is status unless printing failed. */
	int (*show)(const json_t *doc, const void *values, int status);
	const void *values;
	bool json;  /* print the document itself */
	int not_ok; /* the status of a document that is not "ok"; 0: it does not say */
};
int document_view(const struct document_view *view);
/* The last step of that, for a document that is there already. */
int document_show(const struct document_view *view, const char *json, int status);

/* The table of a list: titles, then one row for each member. */
struct document_table {
	const char *const *titles;
	size_t n_columns;
	void (*add)(struct ui_table *table, const json_t *row);
};
/* Appends it to out; nothing for an empty list if empty_too is false. */
void document_table(const struct document_table *how, const json_t *rows, bool empty_too, bool no_color,
		    struct buf *out);

/* How a command whose outcome is a result tells it. */
enum document_form { DOCUMENT_TEXT, DOCUMENT_JSON, DOCUMENT_EVENTS };
/* Prints a result that says why nothing ran; nothing if the form is text; the exit status. */
int document_refusal(enum document_form form, const struct brig_error *why, int status);
/* Reads it; NULL with a complaint made.  For json_decref(). */
json_t *document_read(const char *json);
/*
 * A member as text: lists joined by ", ", null and missing ones as "".  It is one safe line
 * (ui_line) and cut where it does not fit.
 */
const char *document_text(const json_t *object, const char *name, char *dst, size_t size);
bool document_true(const json_t *object, const char *name);

#endif
