/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between session and kernel on the kernel's channel: frames of named fields.  The head is text, which a
 * shell can write, and values are raw bytes, which need no escaping.
 *
 *	"KIND COUNT\n", then COUNT times "NAME LENGTH\n", LENGTH bytes, "\n"
 *
 *	session -> kernel
 *	  run		code; language, for kernels that have several; env: KEY=VALUE, once for each variable
 *	  soon		no fields: a run is expected.  Only for kernels that prepare for one (kernels.def)
 *	kernel -> session
 *	  ready		the kernel accepts runs
 *	  result	fields as in struct brig_session_field; each time the code displays something
 *	  error		name, value, traceback
 *	  done		the run has ended, and its output is in the pipes; cpu: microseconds used, with children
 *
 * The reader does not trust the peer: KIND and NAME have at most FRAME_NAME_MAX letters, numbers are checked before
 * anything is stored, and after a malformed frame the channel is not used again.  A value for which there is no room is
 * read and dropped, so that one result that is too large costs nothing but itself: the frame arrives without that value,
 * marked as cut.
 */
#ifndef SESSION_FRAMES_H
#define SESSION_FRAMES_H

#include <brig/session.h>

#include "base/buf.h"

#define FRAME_NAME_MAX   32
#define FRAME_FIELDS_MAX 32
#define FRAME_PIECE_MAX  65536               /* received at once */
#define FRAME_HEADS_MAX  4096                /* all lines of a frame, and one that is incomplete */
#define FRAME_VALUE_MAX  ((uint64_t)1 << 40) /* of a value that is dropped: more is no length */

struct frame {
	char kind[FRAME_NAME_MAX + 1];
	struct brig_session_field field[FRAME_FIELDS_MAX];
	size_t n_fields;
	bool is_cut; /* values that were too large are empty */
};

struct frame_reader {
	struct buf bytes;
	size_t most;      /* the largest frame of which every value is kept */
	size_t used;      /* length of the frame returned last */
	uint64_t dropped; /* bytes of a value that are still to come and to be dropped */
	bool is_cut;      /* a value of the frame that is being read was dropped */
	char name[FRAME_FIELDS_MAX][FRAME_NAME_MAX + 1];
};

#define FRAME_READER_INIT(largest)                                                                   \
	{                                                                                            \
		.bytes = { .max = (largest) + FRAME_HEADS_MAX + FRAME_PIECE_MAX }, .most = (largest) \
	}

/* Forgets what has been received: another peer follows. */
void frame_reader_reset(struct frame_reader *r);
/* Appends received bytes, at most FRAME_PIECE_MAX; false: no memory.  Before the next call, frame_next() has returned 0. */
bool frame_add(struct frame_reader *r, const char *data, size_t len);
/* 1: *ret is the next frame, valid until the next call; 0: incomplete; -1: malformed. */
int frame_next(struct frame_reader *r, struct frame *ret);
void frame_reader_release(struct frame_reader *r);
/* The value of a field; NULL: no field of that name. */
const char *frame_value(const struct frame *f, const char *name);

void frame_write(struct buf *out, const char *kind, const struct brig_session_field *fields, size_t n);

#endif
