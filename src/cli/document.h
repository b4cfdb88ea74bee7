/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON documents of the library, shown as they are or as tables. */
#ifndef CLI_DOCUMENT_H
#define CLI_DOCUMENT_H

#include <jansson.h>

#include "cli/ui.h"

/* Prints the document itself, one line; the exit status. */
int document_print(const char *json, int ok_status);
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
