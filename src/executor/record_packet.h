/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: a separate process that writes audit log and history and signs receipts for processes that run
 * programs.
 *
 *	record.c           the record step of a run: writes it in this process, or asks the recorder
 *	record_link.c      client side: sends requests over a socket and awaits answers
 *	record_desk.c      the recorder's side: receives, checks, executes and answers messages
 *	record_packet.c    encoding and decoding; record_packet.def: kinds and fields of messages
 *
 *	handle  --- one SOCK_SEQPACKET socket, shared by all clients --->  recorder
 *	        <-- a socket pair per request, whose other end is sent along
 *
 * A message is a header with the length of each field, followed by the fields in order; a long message is passed in a
 * sealed memory file. Each is answered once, on the socket that came with it. If the recorder dies, clients whose
 * message it had taken see end-of-file and ask again; untaken messages wait in the socket for the next recorder, so the
 * process that starts recorders keeps both ends open.
 *
 *   RULE W1 The recorder trusts nothing: lengths, kinds, texts, and the form of entries, records and claims are checked
 *   before use; an invalid message is answered with the reason and changes nothing.
 *   RULE W2 It only appends. It accepts what an entry says about the run; number, chain, MACs, signatures and time
 *   bounds are its own, and it decides when a file is full and what the history removes.
 *   RULE W3 Repeated requests are written once: a run has one entry.
 *   RULE W4 Queries, and the import of the spool into the database, run in children of the recorder: slow work and
 *   parsing of untrusted text neither delay runs nor have access to the log's key.
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

/* ---- writing: fields must be added in order ------------------------------------------------------------------- */

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

void packet_text(struct packet_out *w, enum packet_field f, const char *text); /* NULL: nothing is added */
void packet_bytes(struct packet_out *w, enum packet_field f, const void *bytes, size_t len);
void packet_number(struct packet_out *w, enum packet_field f, uint64_t n);
void packet_release(struct packet_out *w);
#define AUTO_PACKET_OUT         \
	CLEANUP(packet_release) \
	struct packet_out

/* Sends it with a descriptor, or FD_NONE. 0 or -errno; -EAGAIN: the socket is full; -EMSGSIZE: a field was too long. */
int packet_send(int sock, const struct packet_out *w, int beside);

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* A valid message. Pointers point into memory that it owns. */
struct packet_in {
	enum packet_kind kind;
	const char *at[PACKET_FIELDS]; /* NULL: the field is missing */
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
 * Receives the next message, a request or an answer: 1; 0: none is available; -errno: -EPIPE at the end of the socket,
 * -EBADMSG if it is malformed: *ret_why tells the reason, and ret->beside may be there to answer on.
 */
int packet_receive(int sock, bool is_answer, struct packet_in *ret, const char **ret_why);
void packet_forget(struct packet_in *m);
#define AUTO_PACKET_IN         \
	CLEANUP(packet_forget) \
	struct packet_in

/* Validates a message: NULL, or what is wrong. For packet_receive() and its tests. */
const char *packet_check(const struct packet_head *head, const char *bytes, size_t len, struct packet_in *ret);

uint64_t packet_get_number(const struct packet_in *m, enum packet_field f, uint64_t without);

#endif
