/* SPDX-License-Identifier: Apache-2.0 */
/* libnats, loaded when a process first needs a broker.  Only its headers are required at build time. */
#ifndef QUEUE_NATS_H
#define QUEUE_NATS_H

#include <nats/nats.h>

#include "base/err.h"

struct nats_library {
	void *handle;
#define NATS_FUNCTION(name) __typeof__(name) *name;
#include "queue/nats.def"
};

/* The library, or NULL and err. */
const struct nats_library *nats_library(struct brig_error *err);

#endif
