/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of the runtimes, for doors whose clients choose by them. */
#ifndef SERVER_RUNNER_VERSIONS_H
#define SERVER_RUNNER_VERSIONS_H

#include <jansson.h>

#include "server/runner/host.h"

/*
 * Asks each runtime for its own, all in one cell, once and before anybody is served: an object of languages and "3.11.2", a new
 * reference.  What did not tell is left out; NULL: there is no memory.
 */
json_t *versions_ask(struct host *h);
/* The list of languages (brig_languages_json) with them: for free(); NULL: no memory. */
char *versions_add(const char *languages, const json_t *versions);

#endif
