/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words between the master and its processes: short records over a SOCK_SEQPACKET socket, whose end means that the other has
 * gone.  Who gets one that it does not know leaves it, and closes what came beside it.
 */
#ifndef SERVER_WORDS_H
#define SERVER_WORDS_H

#include "base/util.h"

#define WORD_FDS_MAX 2

enum serve_word {
	WORD_READY =
		'r', /* to the master: everything is in place; before that the process says on stderr why not, and ends */
	WORD_DRAIN = 'd', /* to front and runner: nothing new; end with status 0 when nothing is left to do */
	WORD_NOW = 'q',   /* to all: cancel what runs, and end */
	WORD_RELOAD =
		'h', /* to the runner: tokens and policy are read anew; back: the policy is good; to the recorder: end, and be started anew */
	WORD_CHANNEL =
		'c', /* to front and runner: the other one is new, and this descriptor leads to it; the number is the channel's */
	WORD_LINK = 'l',        /* to the runner: likewise of the link, which is told by WORD_CHANNEL */
	WORD_CERTIFICATE = 'k', /* to the front: this chain and this key from now on; it answers with one of these */
	WORD_TAKEN = 'y',       /* from the front: what had this number is in use */
	WORD_REFUSED = 'n',     /* from the front: it is not, and it has said why */
	WORD_KEEPER =
		'm', /* from the runner: something that makes cells, for who has the other end of this socket (keepers.h); 1: with limits on disks */
	WORD_CUT = 'x', /* from the runner: who is at the other end of the channel of this number speaks nonsense */
};

struct word {
	enum serve_word word;
	uint32_t number;
	int fds[WORD_FDS_MAX]; /* the receiver's, who takes or closes them: words_close() */
	size_t n_fds;
};

/* Never waits, and copies descriptors: 0 or -errno; -EAGAIN: the other does not listen. */
int words_say(int sock, const struct word *w);
/* The next one: 1; 0: there is none now; -EPIPE: the other has gone. */
int words_hear(int sock, struct word *ret);
void words_close(struct word *w);

#endif
