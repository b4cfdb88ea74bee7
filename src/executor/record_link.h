/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle asks its recorder for (record_packet.h): each is what the function of the same name does in this process. */
#ifndef EXECUTOR_RECORD_LINK_H
#define EXECUTOR_RECORD_LINK_H

#include "executor/record_packet.h"

/* Sends a question and returns at once: *ret_reply becomes readable when there is something for link_answer(). */
int link_ask(int link, const struct packet_out *w, int *ret_reply, struct brig_error *err);
/* 1: *ret; 0: not yet; negative: what the recorder says against it, or -BRIG_E_SYSTEM with err->sys EPIPE: it has died. */
int link_answer(int reply, struct packet_in *ret, struct brig_error *err);
/*
 * A socket to be answered on that is made before somebody waits for an answer, and closed when nobody does any more: both take
 * longer than to send the question.  All FD_NONE: there is none.
 */
struct link_pair {
	int ours, theirs;
};
void link_pair_renew(struct link_pair *p); /* closes what was used of it */
void link_pair_release(struct link_pair *p);
/* Both, however often the recorder dies meanwhile, for LINK_PATIENCE. */
#define LINK_PATIENCE (30 * NS_PER_SEC)
int link_call(int link, const struct packet_out *w, struct packet_in *ret, struct brig_error *err);

int link_audit_ready(int link, const char *id, struct brig_error *err);
/* Asks the same, and leaves the answer in *ret_reply. */
int link_announce(int link, const char *id, int *ret_reply, struct brig_error *err);
int link_receipt_ready(int link, const char *id, struct brig_error *err);
/*
 * history: NULL, or the record goes into the history by the same message, too; what became of that is in *history, and only if 0 is
 * returned.
 */
struct link_history {
	struct brig_error err; /* code 0: it is there */
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
