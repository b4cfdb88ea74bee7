/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/piece.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "executor/inspection.h"
#include "executor/prepare.h"

struct piece_rest {
	struct executor x;
	const struct piece *piece;
	struct brig_request req; /* the piece's request, with the announced id */
	char announced[RUN_ID_LEN + 1];
	struct prepared_request prepared;
	struct recording recording;
	struct rules_in_use judged_by;
	struct result *result;
	struct brig_error err;
};

static bool refuse(struct piece_rest *p)
{
	p->result->verdict = VERDICT_refused;
	(void)str_copy(p->result->reason, sizeof(p->result->reason), p->err.msg);
	return false;
}

static bool resolve(struct piece_rest *p)
{
	struct result *res = p->result;
	int rc;

	p->req = *p->piece->req;
	p->recording.announced = !p->req.id && record_take_announced(p->x.recorder, p->announced);
	if (p->recording.announced)
		p->req.id = p->announced;
	p->prepared.in_session = true;
	p->prepared.known = p->piece->resolved;
	rc = prepare_request(p->x.policy, &p->req, &p->prepared, &p->err);
	(void)str_copy(res->id, sizeof(res->id), p->prepared.id);
	res->trust = p->prepared.resolved.trust;
	(void)str_copy(res->trust_source, sizeof(res->trust_source),
		       policy_layer_name[p->prepared.resolved.trust_from]);
	record_begin(&p->recording, &p->prepared.subject,
		     rc < 0 ? policy_base(p->x.policy) : &p->prepared.resolved.set);
	p->recording.digest = rc < 0 ? NULL : p->piece->digest;
	if (rc < 0)
		return refuse(p);
	res->inspection = (enum inspection)p->prepared.resolved.set.inspection;
	(void)str_copy(res->language, sizeof(res->language), p->prepared.lang->name);
	(void)str_copy(res->step, sizeof(res->step), "run");
	return true;
}

static bool block(struct piece_rest *p, const struct findings *f)
{
	struct result *res = p->result;

	res->verdict = VERDICT_blocked;
	(void)str_copy(res->reason, sizeof(res->reason), "static inspection found more than it can list");
	for (size_t i = 0; i < f->n; i++)
		if (f->row[i].severity == SEVERITY_CRITICAL) {
			(void)snprintf(res->reason, sizeof(res->reason), "%s at line %u: %s", f->row[i].rule,
				       f->row[i].line, f->row[i].message);
			break;
		}
	return false;
}

/* *ret is NULL if there is nothing to inspect. */
static bool inspect_start(struct piece_rest *p, struct inspect_job **ret)
{
	const struct settings *set = &p->prepared.resolved.set;
	struct inspect_request what = { .level = (enum inspection)set->inspection,
					.text = p->prepared.subject.text,
					.len = p->prepared.subject.len,
					.workspace = settings_workspace_alias(set),
					.strict_commands = set->strict_commands,
					.allowed_commands = &set->allowed_commands };

	if (!set->inspection || !subject_inspection(&p->prepared.subject, p->prepared.source_name, &what.kind))
		return true;
	if (what.kind == INSPECT_PYTHON) /* its kernel accepts more than plain Python */
		what.kind = INSPECT_NOTEBOOK;
	if (rulebook_get(p->x.rules, &p->prepared.resolved, &p->judged_by, &p->err) < 0 ||
	    inspect_begin(rulebook_spares(p->x.rules, &p->judged_by), p->judged_by.set, &what, ret, &p->err) < 0)
		return refuse(p);
	return true;
}

static bool inspect_end(struct piece_rest *p, struct inspect_job *job)
{
	struct findings *found = &p->result->findings;

	if (inspect_finish_beside(job, rulebook_spares(p->x.rules, &p->judged_by), found, &p->err) < 0)
		return refuse(p);
	if (p->prepared.resolved.set.network_mode == NETWORK_ALLOWLIST)
		inspection_allow_network(p->judged_by.set, found);
	inspection_tell_permits(&p->prepared.resolved, found);
	return found->worst == SEVERITY_CRITICAL ? block(p, found) : true;
}

/* Another process inspects; meanwhile checks that the run can be recorded. */
static bool may_run(struct piece_rest *p)
{
	struct brig_error why = BRIG_ERROR_INIT;
	struct inspect_job *job = NULL;
	int rc;

	if (!inspect_start(p, &job))
		return false;
	rc = record_prepare(p->x.recorder, &p->recording, p->result, &why);
	if (job && !inspect_end(p, job))
		return false;
	p->err = why;
	return rc < 0 ? refuse(p) : true;
}

void executor_run_piece(const struct executor *x, const struct piece *piece, struct result *ret,
			struct piece_rest **ret_rest)
{
	uint64_t begin = clock_now_ns(), mark;
	struct piece_rest *p = calloc(1, sizeof(*p));

	*ret_rest = p;
	if (!p) {
		ret->verdict = VERDICT_failed;
		(void)str_copy(ret->reason, sizeof(ret->reason), "no memory left");
		return;
	}
	p->x = *x;
	p->piece = piece;
	p->result = ret;
	p->recording.rec.wall_ns = clock_wall_ns();
	(void)str_copy(ret->backend, sizeof(ret->backend), backend_kind_name[BACKEND_NATIVE]);
	ret->exit_code = -1;
	if (resolve(p) && may_run(p)) {
		mark = clock_now_ns();
		piece->execute(piece->arg, &p->recording, ret);
		ret->phase_ns[PHASE_RUN] = clock_now_ns() - mark;
	}
	ret->total_ns = clock_now_ns() - begin;
	record_whole(x->recorder, &p->recording, policy_file(x->policy), ret);
}

void executor_finish_piece(struct piece_rest *p)
{
	if (!p)
		return;
	record_announce(p->x.recorder, p->recording.rec.set);
	record_count(p->x.recorder, &p->recording);
	if (p->judged_by.set)
		rulebook_refill(p->x.rules, &p->judged_by);
	rules_put(&p->judged_by);
	prepared_request_release(&p->prepared);
	free(p);
}
