/* SPDX-License-Identifier: Apache-2.0 */
/* What the host trusts in TLS, for cells with a way out. */
#ifndef EXECUTOR_CERTIFICATES_H
#define EXECUTOR_CERTIFICATES_H

#include "base/buf.h"
#include "model/plan.h"
#include "model/result.h"

#define CERTIFICATES_ENV_MAX 8

/* Of one request; zero is unused. */
struct certificates {
	struct buf text;
	struct plan_file file; /* data NULL: there are none */
	bool looked;
	char env[CERTIFICATES_ENV_MAX][96]; /* NAME=PATH: what programs look for */
	size_t n_env;
};

/* Reads them, the first time, and says by env that the cell has them at that path.  A host without any is a warning. */
void certificates_take(struct certificates *c, const char *path, struct result *res);
void certificates_release(struct certificates *c);

#endif
