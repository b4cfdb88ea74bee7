/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "executor/inspection.h"
#include "model/json.h"
#include "policy/policy.h"

/* A parsed check request. */
struct question {
	const char *kind;            /* "code", "command" or "path" */
	const struct language *lang; /* if kind is "code" */
	bool inspected;              /* false: this language is not inspected */
	struct inspect_request what;
};

static int check_members(const struct brig_check *req, struct brig_error *err)
{
	if (req->flags != 0)
		return err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", req->flags);
	if (!req->text)
		return err_set(err, BRIG_E_USAGE, 0, "the check has no text");
	if (req->len > BRIG_CODE_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "the text has %zu bytes; at most %u are accepted", req->len,
			       BRIG_CODE_MAX);
	if (req->workspace && req->workspace[0] != '/')
		return err_set(err, BRIG_E_USAGE, 0, "workspace '%.80s' is not an absolute path", req->workspace);
	return 0;
}

static int understand_code(const struct brig_check *req, struct question *ret, struct brig_error *err)
{
	char name[LANG_NAME_MAX + 1];
	int rc = lang_detect(req->language, req->file_name, req->text, req->len, &ret->lang, err);

	if (rc < 0)
		return rc;
	ret->kind = "code";
	/* The file name that a run would use, so that both inspect the same program. */
	ret->inspected = inspection_kind(ret->lang, lang_source_name(ret->lang, req->file_name, name, sizeof(name)),
					 &ret->what.kind);
	return 0;
}

static int understand(const struct brig_check *req, struct question *ret, struct brig_error *err)
{
	static const struct {
		const char *kind;
		enum inspect_kind inspect;
	} kinds[] = { { "command", INSPECT_COMMAND }, { "path", INSPECT_PATH } };
	int rc = check_members(req, err);

	if (rc < 0)
		return rc;
	ret->what = (struct inspect_request){ .text = req->text, .len = req->len, .workspace = req->workspace };
	if (!req->kind || str_eq(req->kind, "code"))
		return understand_code(req, ret, err);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].kind, req->kind)) {
			ret->kind = kinds[i].kind;
			ret->what.kind = kinds[i].inspect;
			ret->inspected = true;
			return 0;
		}
	return err_set(err, BRIG_E_USAGE, 0, "kind '%.40s' is not known; there are code, command and path", req->kind);
}

/* The members' texts are checked, so only memory can be lacking. */
static int document(const struct question *q, const struct findings *found, char **ret, struct brig_error *err)
{
	json_t *doc = json_pack("{s:s, s:s?, s:b, s:s, s:s, s:b, s:o, s:I}", "kind", q->kind, "language",
				q->lang ? q->lang->name : NULL, "inspected", q->inspected, "level",
				inspection_name[q->what.level], "worst", severity_name[found->worst], "blocked",
				found->worst == SEVERITY_CRITICAL, "findings", json_findings(found), "dropped",
				(json_int_t)found->dropped);
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

/* Determines the caller's exit status. */
static int outcome(enum severity worst)
{
	return worst == SEVERITY_CRITICAL ? 2 : worst == SEVERITY_HIGH ? 1 : 0;
}

/* Resolves like a run with these options. */
static int resolve(const struct policy *policy, const struct brig_check *req, struct policy_resolved *ret,
		   struct brig_error *err)
{
	struct brig_option wishes[2];
	size_t n = 0;

	if (req->inspect)
		wishes[n++] = (struct brig_option){ "inspection", req->inspect };
	if (req->rules)
		wishes[n++] = (struct brig_option){ "rules", req->rules };
	return policy_resolve(policy, req->trust, wishes, n, ret, err);
}

/* A check always inspects, even if runs do not, at the default level for the trust. */
static enum inspection level_of(const struct brig_check *req, const struct policy_resolved *r)
{
	static const enum inspection of_trust[TRUST_COUNT] = {
		[TRUST_UNTRUSTED] = INSPECTION_STRICT,
		[TRUST_UNKNOWN] = INSPECTION_GUARD,
		[TRUST_TRUSTED] = INSPECTION_REPORT,
	};

	return r->set.inspection || req->inspect ? (enum inspection)r->set.inspection : of_trust[r->trust];
}

int check_text(const struct policy *policy, struct rulebook *book, const struct brig_check *req, char **ret,
	       struct brig_error *err)
{
	AUTO_FREE struct policy_resolved *resolved = calloc(1, sizeof(*resolved));
	CLEANUP(findings_release)
	struct findings found = { 0 };
	struct question q = { .kind = NULL };
	CLEANUP(rules_put)
	struct rules_in_use rules = { .set = NULL };
	int rc;

	if (!resolved)
		return err_nomem(err);
	if ((rc = understand(req, &q, err)) < 0 || (rc = resolve(policy, req, resolved, err)) < 0 ||
	    (rc = rulebook_get(book, resolved, &rules, err)) < 0)
		return rc;
	q.what.level = level_of(req, resolved);
	q.inspected = q.inspected && q.what.level != INSPECTION_OFF;
	q.what.has_input = true; /* as for a run, unless the request says otherwise */
	q.what.strict_commands = req->strict || resolved->set.strict_commands;
	q.what.allowed_commands = &resolved->set.allowed_commands;
	if (q.inspected && (rc = inspect_confined(rules.set, &q.what, &found, err)) < 0)
		return rc;
	inspection_tell_permits(resolved, &found);
	if (ret && (rc = document(&q, &found, ret, err)) < 0)
		return rc;
	return outcome(found.worst);
}

/* ---- the list of rules ------------------------------------------------------------------------- */

static json_t *json_texts(const char *const *texts, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(array, json_text(texts[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *json_languages(uint32_t bits)
{
	const char *names[RULE_LANGUAGE_COUNT];
	size_t n = 0;

	for (enum rule_language l = 0; l < RULE_LANGUAGE_COUNT; l++)
		if (bits & 1u << l)
			names[n++] = rule_language_name[l];
	return json_texts(names, n);
}

static json_t *json_severity(const enum severity *severity)
{
	json_t *object = json_object();
	int failed = 0;

	for (enum inspection t = INSPECTION_REPORT; t < INSPECTION_COUNT; t++)
		failed |= json_object_set_new(object, inspection_name[t], json_string(severity_name[severity[t]]));
	if (failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *json_rule(const struct rule *r)
{
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:I}", "id", r->id, "languages",
			 json_languages(r->languages), "kind", rule_kind_name[r->kind], "names",
			 json_texts(r->names, r->n_names), "severity", json_severity(r->severity), "message",
			 json_text(r->message), "remedy", json_text(r->remedy), "match",
			 json_texts(r->match, r->n_match), "no_match", json_texts(r->no_match, r->n_no_match),
			 "network", r->network, "file", json_text(r->file), "line", (json_int_t)r->line);
}

int check_rules_json(const struct policy *policy, struct rulebook *book, char **ret, struct brig_error *err)
{
	AUTO_FREE struct policy_resolved *resolved = calloc(1, sizeof(*resolved));
	CLEANUP(rules_put)
	struct rules_in_use rules = { .set = NULL };
	json_t *rows;
	int rc, failed = 0;

	if (!resolved)
		return err_nomem(err);
	if ((rc = policy_resolve(policy, NULL, NULL, 0, resolved, err)) < 0 ||
	    (rc = rulebook_get(book, resolved, &rules, err)) < 0)
		return rc;
	rows = json_array();
	for (size_t i = 0; i < rules_count(rules.set); i++)
		failed |= json_array_append_new(rows, json_rule(rules_at(rules.set, i)));
	if (failed) {
		json_decref(rows);
		rows = NULL;
	}
	return json_list_document("rules", rows, ret, err);
}
