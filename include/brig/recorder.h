/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h - another process that writes audit log and history for the handles of brig.h (docs/AUDIT.md) */
#ifndef BRIG_RECORDER_H
#define BRIG_RECORDER_H

#include <brig/brig.h>

#ifdef __cplusplus
extern "C" {
#endif

struct brig_recorder;
/*
 * For the recorder process: b has the policy and the state directory, and no recorder_fd.  Afterwards it opens nothing
 * outside the state directory and loads nothing, so that it can confine itself.  b remains owned by the caller, and in
 * use.
 */
BRIG_API int brig_recorder_open(struct brig *b, struct brig_recorder **ret, struct brig_error *err);
/*
 * Handles the next message on the socket: a Unix SOCK_SEQPACKET pair, whose other end the handles have.  Never waits
 * for a message.  1: that was one (and if err->code is set, one that was refused for its form: worth a line in a log);
 * 0: there is none now; negative: the socket cannot be used any more.
 */
BRIG_API int brig_recorder_step(struct brig_recorder *r, int socket, struct brig_error *err);
BRIG_API void brig_recorder_close(struct brig_recorder *r); /* NULL is fine */

/* A query to the recorder of a handle that has one, without waiting for the answer. */
enum brig_question_kind {
	BRIG_ASK_HISTORY = 0, /* brig_history_json(): history, which may be NULL */
	BRIG_ASK_SHOW = 1,    /* brig_show_json(): id */
	BRIG_ASK_METRICS = 2, /* brig_metrics(): format */
	BRIG_ASK_RECEIPT = 3  /* brig_receipt_verify(): text, len, public_key */
};
struct brig_question {
	uint32_t size;
	enum brig_question_kind kind;
	const struct brig_history *history;
	const char *id;
	enum brig_metrics_format format;
	const char *text;
	size_t len;
	const char *public_key;
};
#define BRIG_QUESTION_INIT                                                                                   \
	{                                                                                                    \
		sizeof(struct brig_question), BRIG_ASK_HISTORY, NULL, NULL, BRIG_METRICS_JSON, NULL, 0, NULL \
	}
/* The caller polls *ret_fd, passes it to brig_answer() when it is readable, and closes it. */
BRIG_API int brig_ask(struct brig *b, const struct brig_question *q, int *ret_fd, struct brig_error *err);
/* 1: *ret is what the function named above would have returned; 0: not yet; negative as there, or -BRIG_E_SYSTEM with
 * err->sys EPIPE if the recorder has died and EAGAIN if it is busy: ask again. */
BRIG_API int brig_answer(int fd, char **ret, struct brig_error *err);

#ifdef __cplusplus
}
#endif

#endif
