/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handle's requests to its recorder (record_packet.h); each does what the function of the same name does in this
 * process.
 */
#ifndef EXECUTOR_RECORD_LINK_H
#define EXECUTOR_RECORD_LINK_H

#include "executor/record_packet.h"

/* Sends a request and returns at once: *ret_reply becomes readable when link_answer() has something to read. */
int link_ask(int link, const struct packet_out *w, int *ret_reply, struct brig_error *err);
/* 1: *ret; 0: not yet; negative: the recorder's error, or -BRIG_E_SYSTEM with err->sys EPIPE: it has died. */
int link_answer(int reply, struct packet_in *ret, struct brig_error *err);
/*
 * A reply socket pair that is created before anyone waits for an answer and closed when no one does any more, since
 * both take longer than sending the request. All FD_NONE: none.
 */
struct link_pair {
	int ours, theirs;
};
void link_pair_renew(struct link_pair *p); /* closes the used ends */
void link_pair_release(struct link_pair *p);
/* Send and wait in one, retrying for LINK_PATIENCE whenever the recorder dies. */
#define LINK_PATIENCE (30 * NS_PER_SEC)
int link_call(int link, const struct packet_out *w, struct packet_in *ret, struct brig_error *err);

int link_audit_ready(int link, const char *id, struct brig_error *err);
/* The same request, without waiting: the answer comes to pair->ours. */
int link_announce(int link, const char *id, struct link_pair *pair, struct brig_error *err);
int link_receipt_ready(int link, const char *id, struct brig_error *err);
/*
 * history: NULL, or the same message also adds the record to the history; *history has the outcome, valid only if 0 is
 * returned.
 */
struct link_history {
	struct brig_error err; /* code 0: it was added */
	struct history_notes notes;
};
/* What is to be done while the recorder works, once. */
struct link_meanwhile {
	void (*fn)(void *arg); /* NULL: nothing */
	void *arg;
};
int link_audit_append(int link, struct link_pair *pair, struct record *rec, struct link_history *history,
		      struct link_meanwhile *meanwhile, struct brig_error *err);
int link_audit_append_leftover(int link, const char *id, const char *what, struct brig_error *err);
int link_history_add(int link, const struct record *rec, struct history_notes *notes, struct brig_error *err);
int link_receipt_make(int link, const struct record *rec, char **ret, struct brig_error *err);

#endif
