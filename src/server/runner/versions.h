/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of the runtimes, for doors whose clients select by version. */
#ifndef SERVER_RUNNER_VERSIONS_H
#define SERVER_RUNNER_VERSIONS_H

#include <jansson.h>

#include "server/runner/host.h"

/*
 * Runs all runtimes in one cell to get their versions, once at startup.  An object such as {"python": "3.11.2"}, a new
 * reference; runtimes that print no version are left out.  NULL: out of memory.
 */
json_t *versions_ask(struct host *h);
/* Adds the versions to the list of languages (brig_languages_json); the caller frees it.  NULL: out of memory. */
char *versions_add(const char *languages, const json_t *versions);

#endif
