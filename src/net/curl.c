/* SPDX-License-Identifier: Apache-2.0 */
#include "net/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

/* The flavours differ in the TLS library behind them; their functions are the same. */
static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

static struct curl_library library;
static char trouble[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool look_up(void)
{
	static const char *const symbol[] = {
#define CURL_FUNCTION(name) "curl_" #name,
#include "net/curl.def"
	};
	void **const slot[] = {
#define CURL_FUNCTION(name) (void **)&library.name,
#include "net/curl.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(symbol); i++) {
		*slot[i] = dlsym(library.handle, symbol[i]);
		if (!*slot[i]) {
			(void)snprintf(trouble, sizeof(trouble), "libcurl has no function %s: update package libcurl4",
				       symbol[i]);
			return false;
		}
	}
	return true;
}

static void load(void)
{
	void *handle = NULL;

	for (size_t i = 0; i < ARRAY_LEN(names) && !handle; i++)
		handle = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		(void)snprintf(trouble, sizeof(trouble), "%s is not installed: install package libcurl4 (or libcurl)",
			       names[0]);
		return;
	}
	library.handle = handle;
	if (!look_up() || library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		if (!trouble[0])
			(void)snprintf(trouble, sizeof(trouble), "libcurl cannot be initialised");
		library.handle = NULL;
		(void)dlclose(handle);
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
