/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two eras of the protocol: what belongs to each, and the form of its results.
 *
 * A request whose _meta names a protocol version is of the modern era (2026-07-28): neither it nor its answer depends
 * on other messages.  Any other request is of the legacy era (2024-11-05 to 2025-11-25), which begins with
 * `initialize`.
 */
#ifndef MCP_SHARED_ERA_H
#define MCP_SHARED_ERA_H

#include "mcp_shared/rpc.h"

#define ERA_MODERN  "2026-07-28"
#define ERA_KEEP_MS (3600 * 1000) /* lists do not change while a server runs */

/* Instructions for models: the first part and the last, around what differs between kinds of servers. */
#define ERA_INSTRUCTIONS                                                                                               \
	"brig runs code and commands in isolated cells: no network unless the policy lists hosts, limits on time and " \
	"memory, a fresh /workspace each time."
#define ERA_ADVICE                                                                                                  \
	"When something is blocked or denied the answer says why and what to do instead; do not try to get around " \
	"it."

/* The fault of a request, for rpc_error(), which takes data. */
struct era_fault {
	enum rpc_code code;
	const char *why;
	json_t *data;
};

bool era_is_modern(const struct rpc_message *m);
/* True if the envelope (_meta) of a modern request is valid. */
bool era_check(const struct rpc_message *m, struct era_fault *ret);
/* The protocol version that a modern request names; "": none. */
const char *era_version(const struct rpc_message *m);
/* True for a supported version of the legacy era. */
bool era_has_legacy(const char *version);

/* Results of initialize and server/discover, to be passed to era_dress(). */
json_t *era_initialized(const char *wanted_version, const char *instructions);
json_t *era_discovered(const char *instructions);
/*
 * Completes a result for its era: a modern one gets its type, the server info and how long it may be cached (ttl_ms <
 * 0: left out). Takes result; NULL: no memory.
 */
json_t *era_dress(json_t *result, bool modern, int ttl_ms);

/* ---- resources ------------------------------------------------------------------------------------------ */

enum resource_kind { RESOURCE_NONE, RESOURCE_POLICY, RESOURCE_EXECUTIONS, RESOURCE_EXECUTION };
/* *ret_id: for an execution, points to the id in uri; otherwise "". */
enum resource_kind resource_parse(const char *uri, const char **ret_id);
json_t *resources_list(void);
json_t *resources_templates(void);
/* The result of reading a resource, to be passed to era_dress(). */
json_t *resource_contents(const char *uri, const json_t *doc);

#endif
