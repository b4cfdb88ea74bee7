/* SPDX-License-Identifier: Apache-2.0 */
/* Prints JSON documents of the library, unchanged or as tables. */
#ifndef CLI_DOCUMENT_H
#define CLI_DOCUMENT_H

#include <jansson.h>

#include "cli/ui.h"

/* Prints the document itself on one line; returns the exit status. */
int document_print(const char *json, int ok_status);
/*
 * A command that shows one document of the library: opens a handle, calls ask, closes the handle, and prints the
 * document, unchanged or as text.  values: the command's options, for both functions.
 */
struct document_view {
	struct brig_open_opts opts;
	/* Fills *ret; returns the exit status, or negative with *err. */
	int (*ask)(struct brig *b, const void *values, char **ret, struct brig_error *err);
	/* Prints the document as text; returns the exit status, which is status unless printing failed. */
	int (*show)(const json_t *doc, const void *values, int status);
	const void *values;
	bool json;  /* print the document itself */
	int not_ok; /* exit status for a document that is not "ok"; 0: documents have no such member */
};
int document_view(const struct document_view *view);
/* The last step of that, for an existing document. */
int document_show(const struct document_view *view, const char *json, int status);

/* A list as a table: titles, then one row for each element. */
struct document_table {
	const char *const *titles;
	size_t n_columns;
	void (*add)(struct ui_table *table, const json_t *row);
};
/* Appends the table to out; for an empty list only if empty_too. */
void document_table(const struct document_table *how, const json_t *rows, bool empty_too, bool no_color,
		    struct buf *out);

/* Output format of a command that has a result. */
enum document_form { DOCUMENT_TEXT, DOCUMENT_JSON, DOCUMENT_EVENTS };
/* Prints a result that says why nothing ran, unless form is text; returns the exit status. */
int document_refusal(enum document_form form, const struct brig_error *why, int status);
/* Parses it; NULL after an error message.  Release with json_decref(). */
json_t *document_read(const char *json);
/*
 * A member as text: lists joined by ", ", null and missing members as "".  One safe line (ui_line), truncated to size.
 */
const char *document_text(const json_t *object, const char *name, char *dst, size_t size);
bool document_true(const json_t *object, const char *name);

#endif
