/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel and the session say to each other over the kernel's channel: frames of named fields, as text that a shell can
 * write and bytes that need no escaping.
 *
 *	"KIND COUNT\n", then COUNT times "NAME LENGTH\n", LENGTH bytes, "\n"
 *
 *	session -> kernel
 *	  run		code; language, for kernels that have several; env, each KEY=VALUE, as often as there are such
 *	  soon		nothing: a run is to be expected.  Only for kernels that get ready for one (kernels.def)
 *	kernel -> session
 *	  ready		it can be asked
 *	  result	struct brig_session_field; as often as the code shows something
 *	  error		name, value, traceback
 *	  done		the run has ended; all that it wrote before is in its pipes; cpu: microseconds that it used, with children
 *
 * The reader takes it for what it is, words of a stranger: KIND and NAME are up to FRAME_NAME_MAX letters, numbers are bounded
 * before anything is kept, and whatever is different makes the channel unsound for good.
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
	struct buf bytes; /* its max is the most that one frame may have */
	size_t used;      /* of the frame that was given last */
	char name[FRAME_FIELDS_MAX][FRAME_NAME_MAX + 1];
};

/* Adds what came; false: more than one frame may have, or no memory. */
bool frame_add(struct frame_reader *r, const char *data, size_t len);
/* 1: the next frame, which is good until the reader is used again; 0: it has not come yet; -1: this is none. */
int frame_next(struct frame_reader *r, struct frame *ret);
void frame_reader_release(struct frame_reader *r);
/* The value of a field; NULL: it has none of that name. */
const char *frame_value(const struct frame *f, const char *name);

void frame_write(struct buf *out, const char *kind, const struct brig_session_field *fields, size_t n);

#endif
