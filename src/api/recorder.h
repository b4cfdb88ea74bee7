/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to the recorder, for files of this folder that answer them themselves if there is no recorder. */
#ifndef API_RECORDER_H
#define API_RECORDER_H

#include <brig/recorder.h>

/* Sends a query and waits for the answer; q's fields must be in order. */
int handle_ask(struct brig *b, const struct brig_question *q, char **ret, struct brig_error *err);

#endif
