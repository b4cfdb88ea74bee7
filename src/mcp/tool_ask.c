/* SPDX-License-Identifier: Apache-2.0 */
/* tool_ask.c - read-only tools: check_code, explain_finding, explain_policy, list_languages, get_execution,
 * verify_receipt. */
#include <string.h>

#include "base/str.h"
#include "mcp_shared/text.h"
#include "mcp/tools.h"

/* ---- inspection ----------------------------------------------------------------------------------- */

int check_code_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *kind = text_member(call->args, "kind"), *language = text_member(call->args, "language");
	const json_t *code = json_object_get(call->args, "code");
	bool is_code = !*kind || str_eq(kind, "code");

	if (is_code && !*language)
		return err_set(err, BRIG_E_USAGE, 0, "Say the language of the code; list_languages names them.");
	invocation_begin(p, call->server->options, "check", INVOCATION_POLICY | INVOCATION_TRUST);
	invocation_add(p, "--json");
	if (is_code)
		invocation_addf(p, "--lang=%s", language);
	else
		invocation_addf(p, "--kind=%s", kind);
	invocation_input(p, json_string_value(code), json_string_length(code));
	invocation_add(p, "-");
	return 0;
}

enum job_next check_code_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a))
		show_check(o->doc, a);
	return JOB_DONE;
}

int explain_finding_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *rule;
	int rc = argument_word(call, "rule", &rule, err);

	invocation_begin(p, call->server->options, "explain", INVOCATION_POLICY);
	invocation_add(p, "--json");
	invocation_add(p, rule);
	return rc;
}

enum job_next explain_finding_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a))
		show_rule(o->doc, a);
	return JOB_DONE;
}

/* ---- policy and languages ------------------------------------------------------------------------- */

int explain_policy_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	invocation_begin(p, call->server->options, "policy show",
			 INVOCATION_POLICY | INVOCATION_TRUST | INVOCATION_PRESET);
	invocation_add(p, "--json");
	return 0;
}

enum job_next explain_policy_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a))
		show_policy(call->args, o->doc, a);
	return JOB_DONE;
}

int list_languages_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	invocation_begin(p, call->server->options, "languages", 0);
	invocation_add(p, "--json");
	return 0;
}

enum job_next list_languages_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a))
		show_languages(o->doc, a);
	return JOB_DONE;
}

/* ---- the record ------------------------------------------------------------------------------------ */

int get_execution_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *id;
	int rc = argument_word(call, "execution_id", &id, err);

	if (rc < 0)
		return rc;
	if (!server_owns(call->server, id))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.64s' is no execution of this server. Give an execution_id that a run here had; with "
			       "--history the "
			       "server shows those of others, too.",
			       id);
	invocation_begin(p, call->server->options, "show", INVOCATION_RECORD);
	invocation_add(p, "--json");
	invocation_add(p, id);
	return 0;
}

enum job_next get_execution_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a))
		show_execution(o->doc, a);
	return JOB_DONE;
}

int verify_receipt_prepare(struct call *call, struct invocation *p, struct brig_error *err UNUSED)
{
	const json_t *receipt = json_object_get(call->args, "receipt");
	const char *key = text_member(call->args, "public_key");

	invocation_begin(p, call->server->options, "receipt verify", 0);
	invocation_add(p, "--json");
	if (*key)
		invocation_addf(p, "--key=%s", key);
	invocation_input(p, json_string_value(receipt), json_string_length(receipt));
	invocation_add(p, "/dev/stdin");
	return 0;
}

enum job_next verify_receipt_finish(struct call *call UNUSED, const struct outcome *o, struct answer *a)
{
	if (!answer_complaint(o, a))
		show_receipt(o->doc, a);
	return JOB_DONE;
}
