/* SPDX-License-Identifier: Apache-2.0 */
/* What control.c, look.c and copies.c share: sandboxes as E2B's clients see them. */
#ifndef SERVER_DOORS_E2B_CONTROL_H
#define SERVER_DOORS_E2B_CONTROL_H

#include "server/doors/e2b/e2b.h"

/* The request body, valid until the request ends; NULL: it is not an object, and the request was answered. */
json_t *e2b_take_body(struct client *c);
/* A member in seconds, with a default; false: it is invalid, and the request was answered. */
bool e2b_take_seconds(struct client *c, const json_t *doc, const char *name, uint64_t usual, uint64_t *ret);
/* Sends one page of a list and takes the list; next: the token of the next page, "": this is the last one. */
void e2b_reply_list(struct client *c, json_t *list, const char *next);
/* Finds a snapshot of this owner by id or name in the runner's list; NULL: there is none. */
json_t *e2b_find_snapshot(const json_t *doc, const char *name, const char *who);
/* The response that describes a created or connected sandbox, from the session's full document: a new reference. */
json_t *e2b_sandbox(const struct client *c, const json_t *session);
/* True if the text has the form of an id of a session or snapshot. */
bool e2b_is_id(const char *text);
/* The token of a page in the query, "" if there is none; false: it cannot be one. */
bool e2b_read_token(const struct client *c, char *dst, size_t size);
#define E2B_BAD_TOKEN "nextToken is none of a list: give the one that came with the page before"
/* The note that was kept with the session, a new reference; an empty object if there is none. */
json_t *e2b_note(const json_t *session);
/* True if a request to the paused sandbox resumes it. */
bool e2b_goes_on(const json_t *note);
/* Relays a refusal of the runner in the control plane's format; a missing session becomes "Sandbox not found". */
void e2b_fail(struct client *c, unsigned status, const struct message *m);
void e2b_not_found(struct client *c);

#endif
