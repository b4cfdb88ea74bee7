/* SPDX-License-Identifier: Apache-2.0 */
/* What control.c and look.c share: sandboxes as E2B's clients see them. */
#ifndef SERVER_DOORS_E2B_CONTROL_H
#define SERVER_DOORS_E2B_CONTROL_H

#include "server/doors/e2b/e2b.h"

/* The body, which is there until the request ends; NULL: it is no object, and that was answered. */
json_t *e2b_take_body(struct client *c);
/* Seconds, of a member that may be missing; false: it is something else, and that was answered. */
bool e2b_take_seconds(struct client *c, const json_t *doc, const char *name, uint64_t usual, uint64_t *ret);
/* A page of a list, which is taken; next: the token of the one behind it, "": there is none. */
void e2b_reply_list(struct client *c, json_t *list, const char *next);
/* The snapshot of this id or name among those of the runner's list, whose owner asks; NULL: there is none. */
json_t *e2b_find_snapshot(const json_t *doc, const char *name, const char *who);
/* The answer to a sandbox that was made or connected to, of the session's whole document: a new reference. */
json_t *e2b_sandbox(const struct client *c, const json_t *session);
/* What was kept with it, a new reference; an empty object where nothing was. */
json_t *e2b_note(const json_t *session);
/* Whether what is asked of it while it is paused resumes it. */
bool e2b_goes_on(const json_t *note);
/* What the runner refused, in words of the control plane; a session that is not there is a sandbox that is not. */
void e2b_fail(struct client *c, unsigned status, const struct message *m);
void e2b_not_found(struct client *c);

#endif
