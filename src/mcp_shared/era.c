/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_shared/era.h"

#include <brig/brig.h>
#include <string.h>

#include "base/str.h"
#include "mcp_shared/text.h"

#define META(name) "io.modelcontextprotocol/" name
#define EXECUTIONS "brig://executions"
#define POLICY     "brig://policy"
#define ID_MAX     64

static const char *const legacy_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26",
					       "2024-11-05" }; /* newest first */

static json_t *server_info(void)
{
	return json_pack("{s:s, s:s, s:s}", "name", "brig", "title", "brig", "version", brig_version());
}

json_t *era_dress(json_t *result, bool modern, int ttl_ms)
{
	if (!result || !modern)
		return result;
	(void)json_object_set_new(result, "resultType", json_string("complete"));
	(void)json_object_set_new(result, "_meta", json_pack("{s:o}", META("serverInfo"), server_info()));
	if (ttl_ms >= 0) {
		(void)json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
		(void)json_object_set_new(result, "cacheScope", json_string("private"));
	}
	return result;
}

static json_t *capabilities(void)
{
	return json_pack("{s:{}, s:{}}", "tools", "resources");
}

bool era_has_legacy(const char *version)
{
	for (size_t i = 0; i < ARRAY_LEN(legacy_versions); i++)
		if (str_eq(version, legacy_versions[i]))
			return true;
	return false;
}

json_t *era_initialized(const char *wanted_version, const char *instructions)
{
	return json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion",
			 era_has_legacy(wanted_version) ? wanted_version : legacy_versions[0], "capabilities",
			 capabilities(), "serverInfo", server_info(), "instructions", instructions);
}

json_t *era_discovered(const char *instructions)
{
	return json_pack("{s:[s], s:o, s:s}", "supportedVersions", ERA_MODERN, "capabilities", capabilities(),
			 "instructions", instructions);
}

bool era_is_modern(const struct rpc_message *m)
{
	return json_object_get(json_object_get(m->params, "_meta"), META("protocolVersion")) ||
	       str_eq(m->method, "server/discover");
}

const char *era_version(const struct rpc_message *m)
{
	return text_member(json_object_get(m->params, "_meta"), META("protocolVersion"));
}

bool era_check(const struct rpc_message *m, struct era_fault *ret)
{
	json_t *meta = json_object_get(m->params, "_meta"), *version = json_object_get(meta, META("protocolVersion")),
	       *info = json_object_get(meta, META("clientInfo"));

	if (!json_is_string(version) || !json_is_object(json_object_get(meta, META("clientCapabilities"))) ||
	    (info && !json_is_object(info))) {
		*ret = (struct era_fault){ RPC_PARAMS,
					   "_meta needs " META("protocolVersion") " (a string) and " META(
						   "clientCapabilities") " (an object)",
					   NULL };
		return false;
	}
	if (str_eq(json_string_value(version), ERA_MODERN))
		return true;
	*ret = (struct era_fault){ RPC_VERSION, "this protocol version is not served",
				   json_pack("{s:[s], s:O}", "supported", ERA_MODERN, "requested", version) };
	return false;
}

/* ---- resources ------------------------------------------------------------------------------------------ */

enum resource_kind resource_parse(const char *uri, const char **ret_id)
{
	const char *id = strncmp(uri, EXECUTIONS "/", strlen(EXECUTIONS "/")) == 0 ? uri + strlen(EXECUTIONS "/") : "";

	*ret_id = id;
	if (*id && strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == strlen(id) && strlen(id) <= ID_MAX)
		return RESOURCE_EXECUTION;
	return str_eq(uri, POLICY) ? RESOURCE_POLICY : str_eq(uri, EXECUTIONS) ? RESOURCE_EXECUTIONS : RESOURCE_NONE;
}

static json_t *entry(const char *member, const char *uri, const char *name, const char *text)
{
	return json_pack("{s:s, s:s, s:s, s:s}", member, uri, "name", name, "description", text, "mimeType",
			 "application/json");
}

json_t *resources_list(void)
{
	return json_pack("[o, o]",
			 entry("uri", POLICY, "policy", "Every setting in force for programs that this server runs."),
			 entry("uri", EXECUTIONS, "executions", "What this server has run, the newest first."));
}

json_t *resources_templates(void)
{
	return json_pack("[o]", entry("uriTemplate", EXECUTIONS "/{id}", "execution",
				      "Everything that is recorded of one execution."));
}

json_t *resource_contents(const char *uri, const json_t *doc)
{
	AUTO_FREE char *text = json_dumps(doc, JSON_COMPACT);

	return json_pack("[{s:s, s:s, s:s}]", "uri", uri, "mimeType", "application/json", "text", text ? text : "{}");
}
