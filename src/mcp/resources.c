/* SPDX-License-Identifier: Apache-2.0 */
/* resources.c - what can be read by address: brig://policy, brig://executions, brig://executions/ID. */
#include <string.h>

#include "base/str.h"
#include "mcp/text.h"
#include "mcp/tools.h"

#define EXECUTIONS "brig://executions"
#define POLICY     "brig://policy"

static void add_document(const struct call *call, const json_t *doc, struct answer *a)
{
	AUTO_FREE char *text = json_dumps(doc, JSON_COMPACT);

	(void)json_array_append_new(a->content, json_pack("{s:s, s:s, s:s}", "uri", text_member(call->args, "uri"),
							  "mimeType", "application/json", "text", text ? text : "{}"));
}

static enum job_next give_document(struct call *call, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a))
		add_document(call, o->doc, a);
	return JOB_DONE;
}

static int executions_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	invocation_begin(p, call->server->options, "history", INVOCATION_RECORD);
	invocation_add(p, "--json");
	invocation_add(p, "--limit=200");
	return 0;
}

/* Those that the client may ask for. */
static enum job_next executions_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	json_t *rows = json_object_get(o->doc, "executions");

	for (size_t i = json_array_size(rows); i-- > 0;)
		if (!server_owns(call->server, text_member(json_array_get(rows, i), "id")))
			(void)json_array_remove(rows, i);
	(void)json_object_del(o->doc, "total");
	return give_document(call, o, a);
}

static const struct job policy_job = { POLICY, false, explain_policy_prepare, give_document };
static const struct job executions_job = { EXECUTIONS, false, executions_prepare, executions_finish };
static const struct job execution_job = { EXECUTIONS "/{id}", false, get_execution_prepare, give_document };

const struct job *resource_find(const char *uri, json_t **ret_args)
{
	const char *id =
		strncmp(uri, EXECUTIONS "/", strlen(EXECUTIONS "/")) == 0 ? uri + strlen(EXECUTIONS "/") : NULL;
	const struct job *job = str_eq(uri, POLICY) ? &policy_job : str_eq(uri, EXECUTIONS) ? &executions_job : NULL;

	if (id && *id && strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == strlen(id) && strlen(id) < EXECUTION_ID_MAX)
		job = &execution_job;
	if (job)
		*ret_args = json_pack("{s:s, s:s}", "uri", uri, "execution_id", id ? id : "");
	return job;
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
