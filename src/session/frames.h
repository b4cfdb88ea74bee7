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
 * anything is stored, and after a malformed frame the channel is not used again.
 */
#ifndef SESSION_FRAMES_H
#define SESSION_FRAMES_H

#include <brig/session.h>

#include "base/buf.h"

#define FRAME_NAME_MAX   32
#define FRAME_FIELDS_MAX 32

struct frame {
	char kind[FRAME_NAME_MAX + 1];
	struct brig_session_field field[FRAME_FIELDS_MAX];
	size_t n_fields;
};

struct frame_reader {
	struct buf bytes; /* max: the largest permitted frame */
	size_t used;      /* length of the frame returned last */
	char name[FRAME_FIELDS_MAX][FRAME_NAME_MAX + 1];
};

/* Appends received bytes; false: more than a frame may have, or no memory. */
bool frame_add(struct frame_reader *r, const char *data, size_t len);
/* 1: *ret is the next frame, valid until the next call; 0: incomplete; -1: malformed. */
int frame_next(struct frame_reader *r, struct frame *ret);
void frame_reader_release(struct frame_reader *r);
/* The value of a field; NULL: no field of that name. */
const char *frame_value(const struct frame *f, const char *name);

void frame_write(struct buf *out, const char *kind, const struct brig_session_field *fields, size_t n);

#endif
