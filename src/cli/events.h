/* SPDX-License-Identifier: Apache-2.0 */
/* --events: what happens during a run, as lines of JSON on standard output (data/schemas/event.json). */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include "cli/live.h"

/* Of one stream of the program: the beginning of a character whose rest has not come yet. */
struct events_rest {
	char bytes[4];
	size_t len;
};

struct events {
	struct live live;
	struct events_rest rest[2]; /* of stdout, of stderr */
};

void events_init(struct events *e);
/* Callbacks of brig_request; user is the struct events. */
void events_on_started(void *user, const struct brig_started *what);
void events_on_finding(void *user, const struct brig_finding *f);
void events_on_notice(void *user, const char *text);
void events_on_output(void *user, enum brig_stream stream, const void *data, size_t len);
void events_on_sample(void *user, const struct brig_sample *s);
/* The last line, and waits until the reader has them all.  json: a result.  The exit status. */
int events_end(struct events *e, const char *json, int status);

#endif
