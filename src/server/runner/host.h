/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's handle together with the parts of its policy that the runner must know before a run: the defaults for
 * requests, against which tokens are checked.
 *
 * Reloading the policy creates a new host for new requests; executions keep the one under which they were accepted.
 */
#ifndef SERVER_RUNNER_HOST_H
#define SERVER_RUNNER_HOST_H

#include <jansson.h>

#include "server/runner/users.h"
#include "server/serve.h"
#include "server/tokens.h"

struct host_level {
	bool is_known; /* false: the policy permits no request this trust level */
	uint64_t memory;
	uint64_t time_ms, cpu_ms;      /* of wall-clock and CPU time */
	uint64_t compile_ms;           /* time limit of a compiler */
	uint64_t session_ms;           /* maximum lifetime of a session */
	uint64_t most_output, most_ms; /* the most that a request may ask for: bytes of output, wall-clock time */
	uint64_t cpu_percent, disk;    /* per cent of one CPU; bytes */
	char environment[TOKEN_WORD_MAX + 1]; /* "": none */
	char backend[TOKEN_WORD_MAX + 1];     /* "": the library chooses */
	char inspection[TOKEN_WORD_MAX + 1];
	char network[TOKEN_WORD_MAX + 1]; /* network_mode */
};

struct host {
	struct brig *b;
	size_t users;      /* reference count */
	json_t *languages; /* array of brig_languages_json() */
	enum token_trust default_trust;
	struct host_level level[TOKEN_TRUST_COUNT];
	struct users *served; /* permissions of clients on unix sockets */
	bool has_direct_runs; /* some trust level may run without isolation */
};

/*
 * recorder: socket to the recorder.  master: points to the socket to the master, for requesting keepers; must outlive
 * the host.
 */
int host_open(const struct serve_options *options, int recorder, const int *master, uint32_t warm, struct host **ret,
	      struct brig_error *err);
struct host *host_keep(struct host *h);
void host_leave(struct host *h); /* the last reference closes it; NULL is allowed */

/* The canonical name of a language, given its name or an alias; NULL: unknown. */
const char *host_language(const struct host *h, const char *name);
/* The language with this file extension; NULL: none. */
const char *host_language_of_file(const struct host *h, const char *file_name);

#endif
