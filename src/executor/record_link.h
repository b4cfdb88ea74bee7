/* SPDX-License-Identifier: Apache-2.0 */
/* What a handle asks its recorder for (record_packet.h): each is what the function of the same name does in this process. */
#ifndef EXECUTOR_RECORD_LINK_H
#define EXECUTOR_RECORD_LINK_H

#include "executor/record_packet.h"

/* Sends a question and returns at once: *ret_reply becomes readable when there is something for link_answer(). */
int link_ask(int link, const struct packet_out *w, int *ret_reply, struct brig_error *err);
/* 1: *ret; 0: not yet; negative: what the recorder says against it, or -BRIG_E_SYSTEM with err->sys EPIPE: it has died. */
int link_answer(int reply, struct packet_in *ret, struct brig_error *err);
/* Both, however often the recorder dies meanwhile, for LINK_PATIENCE. */
#define LINK_PATIENCE (30 * NS_PER_SEC)
int link_call(int link, const struct packet_out *w, struct packet_in *ret, struct brig_error *err);

int link_audit_ready(int link, const char *id, struct brig_error *err);
int link_receipt_ready(int link, const char *id, struct brig_error *err);
/*
 * history: NULL, or the record goes into the history by the same message, too; what became of that is in *history, and only if 0 is
 * returned.
 */
struct link_history {
	struct brig_error err; /* code 0: it is there */
	struct history_notes notes;
};
int link_audit_append(int link, struct record *rec, struct link_history *history, struct brig_error *err);
int link_audit_append_leftover(int link, const char *id, const char *what, struct brig_error *err);
int link_history_add(int link, const struct record *rec, struct history_notes *notes, struct brig_error *err);
int link_receipt_make(int link, const struct record *rec, char **ret, struct brig_error *err);

#endif
