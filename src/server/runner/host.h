/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's handle, and what must be known of its policy before a run: what a request gets that names nothing.  Tokens
 * are compared with that, too.
 *
 * When the policy is read anew there is a new one for what comes; executions keep the one that they were accepted under.
 */
#ifndef SERVER_RUNNER_HOST_H
#define SERVER_RUNNER_HOST_H

#include <jansson.h>

#include "server/runner/users.h"
#include "server/serve.h"
#include "server/tokens.h"

struct host_level {
	bool is_known; /* false: the policy lets no request have this trust */
	uint64_t memory;
	uint64_t time_ms, cpu_ms;             /* of the wall and of the processor */
	uint64_t compile_ms;                  /* of a compiler */
	uint64_t session_ms;                  /* that a session may last */
	uint64_t most_output, most_ms;        /* that a request may wish for: bytes; of the wall */
	uint64_t cpu_percent, disk;           /* of one cpu; bytes */
	char environment[TOKEN_WORD_MAX + 1]; /* "": none */
	char backend[TOKEN_WORD_MAX + 1];     /* "": the library chooses */
	char inspection[TOKEN_WORD_MAX + 1];
	char network[TOKEN_WORD_MAX + 1]; /* network_mode */
};

struct host {
	struct brig *b;
	size_t users;      /* who keeps it */
	json_t *languages; /* array of brig_languages_json() */
	enum token_trust default_trust;
	struct host_level level[TOKEN_TRUST_COUNT];
	struct users *served; /* who may what at unix sockets */
	bool has_direct_runs; /* somebody's runs may be without isolation */
};

/* recorder: socket to the process that writes log and history.  master: the socket to it, through which keepers are asked for; must
 * outlive the host. */
int host_open(const struct serve_options *options, int recorder, const int *master, uint32_t warm, struct host **ret,
	      struct brig_error *err);
struct host *host_keep(struct host *h);
void host_leave(struct host *h); /* the last one closes it; NULL is fine */

/* The language's own name, for a name or an alias; NULL: there is none such. */
const char *host_language(const struct host *h, const char *name);
/* The one whose files end so; NULL: none. */
const char *host_language_of_file(const struct host *h, const char *file_name);

#endif
