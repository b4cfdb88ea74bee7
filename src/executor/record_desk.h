/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's side of record_packet.h. */
#ifndef EXECUTOR_RECORD_DESK_H
#define EXECUTOR_RECORD_DESK_H

#include "executor/record_packet.h"

struct desk;

struct desk_options {
	const char *state;          /* "": where it usually is */
	const struct settings *set; /* what policy says of recording; stays the caller's */
	/* Answers a question, in a child of this process: 0 or -code. */
	int (*answer)(void *arg, const struct packet_in *question, char **ret, struct brig_error *err);
	void *arg;
};

/* Opens the state folder, which is made if it is not there, and loads what is loaded late otherwise. */
int desk_open(const struct desk_options *options, struct desk **ret, struct brig_error *err);
void desk_close(struct desk *d); /* NULL is fine */
/*
 * Does what the next message of the socket asks for: 1; 0: there is none; negative: the socket can no longer be used.  With 1
 * and err->code set, what came was no message.
 */
int desk_step(struct desk *d, int sock, struct brig_error *err);

#endif
