/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/nats.h"

#include "base/library.h"

const struct nats_library *nats_library(struct brig_error *err)
{
	static const char *const names[] = { "libnats.so.3.4", "libnats.so.3.10", "libnats.so.3.9", "libnats.so.3.8",
					     "libnats.so.3.7", "libnats.so.3.6",  "libnats.so",     NULL };
	static const struct library_function functions[] = {
#define NATS_FUNCTION(name) { #name, offsetof(struct nats_library, name) },
#include "queue/nats.def"
	};
	static const struct library nats = { names, functions, ARRAY_LEN(functions) };
	static struct nats_library library;
	const char *why;
	int rc;

	if (library.handle)
		return &library;
	rc = library_load(&nats, &library, &library.handle, &why);
	if (rc == -ENOENT)
		(void)err_set(err, BRIG_E_REFUSED, 0, "%s is not installed: install package libnats3.4", names[0]);
	else if (rc < 0)
		(void)err_set(err, BRIG_E_REFUSED, 0, "libnats has no function %s: update package libnats3.4", why);
	return rc < 0 ? NULL : &library;
}
