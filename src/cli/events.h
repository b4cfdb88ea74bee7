/* SPDX-License-Identifier: Apache-2.0 */
/* --events: events of a run, as lines of JSON on standard output (data/schemas/event.json). */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include "cli/live.h"

/* An incomplete character at the end of a stream's output so far. */
struct events_rest {
	char bytes[4];
	size_t len;
};

struct events {
	struct live live;
	struct events_rest rest[2]; /* for stdout and stderr */
};

void events_init(struct events *e);
/* Callbacks of brig_request; user is the struct events. */
void events_on_started(void *user, const struct brig_started *what);
void events_on_finding(void *user, const struct brig_finding *f);
void events_on_notice(void *user, const char *text);
void events_on_output(void *user, enum brig_stream stream, const void *data, size_t len);
void events_on_sample(void *user, const struct brig_sample *s);
/* Writes the last line, and waits until the reader has read everything.  json: a result.  Returns the exit status. */
int events_end(struct events *e, const char *json, int status);

#endif
