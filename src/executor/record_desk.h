/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's side of record_packet.h. */
#ifndef EXECUTOR_RECORD_DESK_H
#define EXECUTOR_RECORD_DESK_H

#include "executor/record_packet.h"

struct desk;

struct desk_options {
	const char *state;          /* "": the default */
	const struct settings *set; /* the policy's settings for recording; the caller keeps them */
	/* Answers a query, in a child of this process: 0 or -code. */
	int (*answer)(void *arg, const struct packet_in *question, char **ret, struct brig_error *err);
	void *arg;
};

/* Opens the state folder, creating it if missing, and preloads what would otherwise be loaded later. */
int desk_open(const struct desk_options *options, struct desk **ret, struct brig_error *err);
void desk_close(struct desk *d); /* accepts NULL */
/*
 * Handles the next message of the socket: 1; 0: there is none; negative: the socket is unusable. 1 with err->code set:
 * the message was malformed.
 */
int desk_step(struct desk *d, int sock, struct brig_error *err);

#endif
