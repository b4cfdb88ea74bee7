/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps warm cells for later runs of this user. */
#ifndef EXECUTOR_POOL_H
#define EXECUTOR_POOL_H

#include "policy/policy.h"

#define POOL_LANGUAGES_MAX 16

struct pool_wish {
	const char *const *languages; /* n of them */
	size_t n;
	const char *trust; /* NULL: the policy's default */
	const struct brig_option *options;
	size_t n_options;
	unsigned size; /* cells of each kind */
	int stop_fd;   /* the pool ends when it becomes readable */
	void (*notice)(void *arg, const char *text);
	void *arg;
};

/* Serves until stop_fd becomes readable. */
int executor_pool(const struct policy *policy, const struct pool_wish *wish, struct brig_error *err);

#endif
