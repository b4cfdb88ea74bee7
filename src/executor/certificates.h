/* SPDX-License-Identifier: Apache-2.0 */
/* The host's TLS trust store, for cells with network access. */
#ifndef EXECUTOR_CERTIFICATES_H
#define EXECUTOR_CERTIFICATES_H

#include "base/buf.h"
#include "model/plan.h"
#include "model/result.h"

#define CERTIFICATES_ENV_MAX 8

/* For one request; zero-initialized is unused. */
struct certificates {
	struct buf text;
	struct plan_file file; /* data NULL: the host has none */
	bool looked;
	char env[CERTIFICATES_ENV_MAX][96]; /* NAME=PATH: variables by which programs find the file */
	size_t n_env;
};

/*
 * Reads the certificates on the first call, and sets env to their path in the cell. A host without certificates is a
 * warning.
 */
void certificates_take(struct certificates *c, const char *path, struct result *res);
void certificates_release(struct certificates *c);

#endif
