/* SPDX-License-Identifier: Apache-2.0 */
/* resources.c - the resources brig://policy, brig://executions and brig://executions/ID. */
#include <string.h>

#include "base/str.h"
#include "mcp_shared/text.h"
#include "mcp/tools.h"

static enum job_next give_document(struct call *call, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a)) {
		json_decref(a->content);
		a->content = resource_contents(text_member(call->args, "uri"), o->doc);
	}
	return JOB_DONE;
}

static int executions_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	invocation_begin(p, call->server->options, "history", INVOCATION_RECORD);
	invocation_add(p, "--json");
	invocation_add(p, "--limit=200");
	return 0;
}

/* Keeps only executions that the client may ask for. */
static enum job_next executions_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	json_t *rows = json_object_get(o->doc, "executions");

	for (size_t i = json_array_size(rows); i-- > 0;)
		if (!server_owns(call->server, text_member(json_array_get(rows, i), "id")))
			(void)json_array_remove(rows, i);
	(void)json_object_del(o->doc, "total");
	return give_document(call, o, a);
}

const struct job *resource_find(const char *uri, json_t **ret_args)
{
	static const struct job jobs[] = {
		[RESOURCE_POLICY] = { "policy", false, explain_policy_prepare, give_document },
		[RESOURCE_EXECUTIONS] = { "executions", false, executions_prepare, executions_finish },
		[RESOURCE_EXECUTION] = { "execution", false, get_execution_prepare, give_document },
	};
	const char *id;
	enum resource_kind kind = resource_parse(uri, &id);

	if (kind == RESOURCE_NONE)
		return NULL;
	*ret_args = json_pack("{s:s, s:s}", "uri", uri, "execution_id", id);
	return &jobs[kind];
}
