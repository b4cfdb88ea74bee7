/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: a separate process that writes audit log and history, and signs receipts, for processes that run
 * programs.
 *
 *	record.c           the record step of a run, which has two ways: write it in this process, or let the recorder
 *	record_link.c      the way there: asks over a socket and awaits the answer
 *	record_desk.c      the recorder's side: takes one message, looks through it, does it, answers it
 *	record_packet.c      messages, for both; record_packet.def: what there is to be said
 *
 *	handle  --- one SOCK_SEQPACKET socket, for everybody who asks --->  recorder
 *	        <-- a socket pair for each question, whose end is sent along
 *
 * A message is a head with a length for each field, and the fields' bytes in their order; a long one is passed along in
 * a sealed memory file.  Each is answered once, on the socket that came with it.  If the recorder dies, those whose
 * message it had taken see the end of theirs and ask again, and the others' messages wait in the socket for the next
 * recorder: so the process that starts recorders keeps both ends open.
 *
 *   RULE W1 The recorder trusts nothing: lengths, kinds, texts, the forms of entries, records and claims are checked
 *            before they are used, and what is wrong is answered with why and changes nothing.
 *   RULE W2 It only appends.  It accepts what an entry says about the run; number, chain, MACs, signatures and time
 *   bounds are its own, and it decides when a file is full and what the history removes. RULE W3 What is asked twice is
 *   written once: a run has one entry. RULE W4 Questions, and bringing the spool into the database, are done by
 *   children of the recorder: what takes long, or
 *            reads text of strangers, neither keeps runs waiting nor sees the log's key.
 */
#ifndef EXECUTOR_RECORD_PACKET_H
#define EXECUTOR_RECORD_PACKET_H

#include "audit/audit.h"
#include "history/history.h"
#include "model/plan.h"

#define PACKET_PROTOCOL   1
#define PACKET_MAX        (64 * MiB)
#define PACKET_INLINE_MAX (48 * KiB)

enum packet_field {
#define FIELD(name, type, max) PACKET_##name,
#include "executor/record_packet.def"
	PACKET_FIELDS
};

enum packet_kind {
#define KIND(name, must, may) PACKET_KIND_##name,
#include "executor/record_packet.def"
	PACKET_KINDS
};

/* ---- writing: a buffer of fields, which must come in their order ------------------------------------------- */

struct packet_head {
	uint32_t protocol, kind;
	uint32_t len[PACKET_FIELDS];
};

struct packet_out {
	struct packet_head head;
	struct buf bytes;
};
#define PACKET_OUT_INIT(k)                                                                                       \
	{                                                                                                        \
		.head = { .protocol = PACKET_PROTOCOL, .kind = PACKET_KIND_##k }, .bytes = BUF_INIT(PACKET_MAX), \
	}

void packet_text(struct packet_out *w, enum packet_field f, const char *text); /* NULL: nothing */
void packet_bytes(struct packet_out *w, enum packet_field f, const void *bytes, size_t len);
void packet_number(struct packet_out *w, enum packet_field f, uint64_t n);
void packet_release(struct packet_out *w);
#define AUTO_PACKET_OUT         \
	CLEANUP(packet_release) \
	struct packet_out

/* With a descriptor beside it, or FD_NONE.  0 or -errno; -EAGAIN: the socket is full; -EMSGSIZE: a field was too long. */
int packet_send(int sock, const struct packet_out *w, int beside);

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* A message that was found in order.  What points, points into memory of its own. */
struct packet_in {
	enum packet_kind kind;
	const char *at[PACKET_FIELDS]; /* NULL: it is not there */
	size_t len[PACKET_FIELDS];
	int beside; /* FD_NONE: none */
	char *bytes;
	void *mapped;
	size_t mapped_len;
};
#define PACKET_IN_INIT             \
	{                          \
		.beside = FD_NONE, \
	}

/*
 * The next message, which is an answer or is to be answered: 1; 0: there is none now; -errno: -EPIPE at the end of the
 * socket, -EBADMSG if what came is no message: *ret_why says why not, and ret->beside may be there to answer on.
 */
int packet_receive(int sock, bool is_answer, struct packet_in *ret, const char **ret_why);
void packet_forget(struct packet_in *m);
#define AUTO_PACKET_IN         \
	CLEANUP(packet_forget) \
	struct packet_in

/* Whether the bytes are a message: NULL, or why not.  For packet_receive() and its tests. */
const char *packet_check(const struct packet_head *head, const char *bytes, size_t len, struct packet_in *ret);

uint64_t packet_get_number(const struct packet_in *m, enum packet_field f, uint64_t without);

#endif
