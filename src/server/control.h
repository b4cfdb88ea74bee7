/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages between the master and its processes: short records over a SOCK_SEQPACKET socket, whose end means that the
 * peer has gone.  An unknown message is ignored, and the descriptors that came with it are closed.
 */
#ifndef SERVER_CONTROL_H
#define SERVER_CONTROL_H

#include "base/util.h"

#define CONTROL_FDS_MAX 2

/*
 *	READY        to the master: the process is set up; one that cannot be says why on stderr and ends
 *	DRAIN        to front, runner and link: accept nothing new; exit with status 0 when nothing is left to do
 *	NOW          to all: cancel what runs, and exit
 *	RELOAD       to the runner: read tokens and policy again; from the runner: the policy is good; to the recorder: exit, to be
 *	             started again
 *	CHANNEL      to front, runner and link: the peer is a new process, at the other end of this descriptor; the number is
 *	             the channel's
 *	LINK         to the runner: the same about the link
 *	CERTIFICATE  to the front: use this chain and key from now on; answered by TAKEN or REFUSED
 *	TAKEN        from the front: the certificate of this number is in use
 *	REFUSED      from the front: it is not, and the front has said why
 *	KEEPER       from the runner: start a keeper for the other end of this socket (keepers.h); number 1: with limits on disks
 *	CUT          from the runner: the peer on the channel of this number violates the protocol
 */
enum control_kind {
	CONTROL_READY = 'r',
	CONTROL_DRAIN = 'd',
	CONTROL_NOW = 'q',
	CONTROL_RELOAD = 'h',
	CONTROL_CHANNEL = 'c',
	CONTROL_LINK = 'l',
	CONTROL_CERTIFICATE = 'k',
	CONTROL_TAKEN = 'y',
	CONTROL_REFUSED = 'n',
	CONTROL_KEEPER = 'm',
	CONTROL_CUT = 'x',
};

struct control_message {
	enum control_kind kind;
	uint32_t number;
	int fds[CONTROL_FDS_MAX]; /* owned by the receiver, which takes or closes them: control_close() */
	size_t n_fds;
};

/* Never blocks, and duplicates the descriptors: 0 or -errno; -EAGAIN: the peer does not read. */
int control_send(int sock, const struct control_message *m);
/* 1: *ret is the next message; 0: none yet; -EPIPE: the peer has gone. */
int control_receive(int sock, struct control_message *ret);
void control_close(struct control_message *m);

#endif
