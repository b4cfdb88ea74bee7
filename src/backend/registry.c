/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/backend.h"

static const struct {
	enum backend_kind kind;
	const struct backend_ops *ops;
} registry[] = {
	{ BACKEND_NATIVE, &native_backend },
	{ BACKEND_DOCKER, &docker_backend },
	{ BACKEND_KUBERNETES, &kubernetes_backend },
	{ BACKEND_DIRECT, &direct_backend },
};

const struct backend_ops *backend_find(enum backend_kind kind, struct brig_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(registry); i++)
		if (registry[i].kind == kind)
			return registry[i].ops;
	(void)err_set(err, BRIG_E_REFUSED, 0,
		      "this build of brig has no '%s' backend; use backend native (or auto), which isolates fully",
		      backend_kind_name[kind]);
	return NULL;
}

const struct backend_ops *backend_at(size_t i)
{
	return i < ARRAY_LEN(registry) ? registry[i].ops : NULL;
}
