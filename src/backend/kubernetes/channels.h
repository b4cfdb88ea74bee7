/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport of bytes to and from a pod: v4.channel.k8s.io, WebSocket messages whose first byte is the channel.  0 is
 * stdin, 1 stdout, 2 stderr, and 3 the server's final Status.  The protocol cannot express end of file on stdin except
 * by closing the connection; init's messages do not need it.
 */
#ifndef KUBERNETES_CHANNELS_H
#define KUBERNETES_CHANNELS_H

#include "backend/container/pump.h"

struct channels;
extern const struct pump_carrier channels_carrier; /* for a pump whose carried is a struct channels */

/* Loads wslay if necessary. */
int channels_open(struct channels **ret, struct brig_error *err);
void channels_close(struct channels *c); /* NULL is fine */
/* The server's final status, cleaned; "" if none. */
const char *channels_last_words(const struct channels *c);

#endif
