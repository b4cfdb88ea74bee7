/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two eras of the protocol: what belongs to each, and how its results look.
 *
 * A request whose _meta names a protocol version is of the modern era (2026-07-28): it stands alone, and so does its
 * answer.  Every other one is of the legacy era (2024-11-05 to 2025-11-25), which begins with `initialize`.
 */
#ifndef MCP_SHARED_ERA_H
#define MCP_SHARED_ERA_H

#include "mcp_shared/rpc.h"

#define ERA_MODERN  "2026-07-28"
#define ERA_KEEP_MS (3600 * 1000) /* lists do not change while a server runs */

/* What models are told about brig, in front of and behind what is true of one kind of server. */
#define ERA_INSTRUCTIONS                                                                                               \
	"brig runs code and commands in isolated cells: no network unless the policy lists hosts, limits on time and " \
	"memory, a fresh /workspace each time."
#define ERA_ADVICE                                                                                                  \
	"When something is blocked or denied the answer says why and what to do instead; do not try to get around " \
	"it."

/* What is wrong with a request: for rpc_error(), which takes data. */
struct era_fault {
	enum rpc_code code;
	const char *why;
	json_t *data;
};

bool era_is_modern(const struct rpc_message *m);
/* Whether the envelope of a modern request is good. */
bool era_check(const struct rpc_message *m, struct era_fault *ret);
/* The version that a request of the modern era names; "": none. */
const char *era_version(const struct rpc_message *m);
/* A version of the legacy era that is served. */
bool era_has_legacy(const char *version);

/* Results of initialize and server/discover, not dressed. */
json_t *era_initialized(const char *wanted_version, const char *instructions);
json_t *era_discovered(const char *instructions);
/* A result as the era wants it: in the modern one with its type, who serves, and how long it may be kept (ttl_ms < 0: not
 * said).  Takes result; NULL: no memory. */
json_t *era_dress(json_t *result, bool modern, int ttl_ms);

/* ---- what can be read by address ------------------------------------------------------------------------ */

enum resource_kind { RESOURCE_NONE, RESOURCE_POLICY, RESOURCE_EXECUTIONS, RESOURCE_EXECUTION };
/* *ret_id: of an execution, in the address; "" of others. */
enum resource_kind resource_parse(const char *uri, const char **ret_id);
json_t *resources_list(void);
json_t *resources_templates(void);
/* The result of reading one, not dressed. */
json_t *resource_contents(const char *uri, const json_t *doc);

#endif
