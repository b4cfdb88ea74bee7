/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when it is first needed: see http.h for why.  Only its headers are needed at build time. */
#ifndef NET_CURL_H
#define NET_CURL_H

#ifndef CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_TYPECHECK /* its macros would replace the members below */
#endif
#ifndef CURL_DISABLE_DEPRECATION
#define CURL_DISABLE_DEPRECATION /* the newer spelling of CURLOPT_PROTOCOLS is not in older libraries */
#endif
#include <curl/curl.h>

#include "base/err.h"

/* Older headers define macros of the functions' names even so. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

struct curl_library {
	void *handle;
#define CURL_FUNCTION(name) __typeof__(curl_##name) *name;
#include "net/curl.def"
};

/* The library, or NULL and a reason; tried once per process. */
const struct curl_library *curl_library(struct brig_error *err);

#endif
