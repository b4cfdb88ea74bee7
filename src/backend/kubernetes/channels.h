/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How bytes travel to a pod and back: v4.channel.k8s.io, messages of a WebSocket whose first byte is the channel.  0 is
 * stdin, 1 stdout, 2 stderr, and 3 the server's own word (a Status) when it is over.  There is no way to say "stdin has
 * ended" but to hang up; init's messages need none.
 */
#ifndef KUBERNETES_CHANNELS_H
#define KUBERNETES_CHANNELS_H

#include "backend/container/pump.h"

struct channels;
extern const struct pump_carrier channels_carrier; /* of a pump whose carried is a struct channels */

/* Loads wslay if need be. */
int channels_open(struct channels **ret, struct brig_error *err);
void channels_close(struct channels *c); /* NULL is fine */
/* What the server said when it was over, cleaned; "" if nothing. */
const char *channels_last_words(const struct channels *c);

#endif
