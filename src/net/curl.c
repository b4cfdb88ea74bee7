/* SPDX-License-Identifier: Apache-2.0 */
#include "net/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "base/library.h"

/* The flavours differ in the TLS library behind them; their functions are the same. */
static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", NULL };

static struct curl_library library;
static char trouble[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	static const struct library_function functions[] = {
#define CURL_FUNCTION(name) { "curl_" #name, offsetof(struct curl_library, name) },
#include "net/curl.def"
	};
	const struct library curl = { names, functions, ARRAY_LEN(functions) };
	const char *why;
	int rc = library_load(&curl, &library, &library.handle, &why);

	if (rc == -ENOENT)
		(void)snprintf(trouble, sizeof(trouble), "%s is not installed: install package libcurl4 (or libcurl)",
			       names[0]);
	else if (rc < 0)
		(void)snprintf(trouble, sizeof(trouble), "libcurl has no function %s: update package libcurl4", why);
	else if (library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		(void)snprintf(trouble, sizeof(trouble), "libcurl cannot be initialised");
		(void)dlclose(MOVE_PTR(library.handle));
	}
}

const struct curl_library *curl_library(struct brig_error *err)
{
	(void)pthread_once(&once, load);
	if (!library.handle) {
		(void)err_set(err, BRIG_E_REFUSED, 0, "%s", trouble);
		return NULL;
	}
	return &library;
}
