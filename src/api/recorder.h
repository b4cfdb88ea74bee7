/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the recorder, for the files of this folder that answer them themselves if there is none. */
#ifndef API_RECORDER_H
#define API_RECORDER_H

#include <brig/recorder.h>

/* Asks, and waits for the answer; the members of q are in order. */
int handle_ask(struct brig *b, const struct brig_question *q, char **ret, struct brig_error *err);

#endif
