/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/piece.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "executor/inspection.h"
#include "executor/prepare.h"

struct piece_work {
	struct executor x;
	const struct piece *piece;
	struct brig_request req; /* the piece's request, with the announced id */
	char announced[RUN_ID_LEN + 1];
	struct prepared_piece prepared;
	struct recording recording;
	struct rules_in_use judged_by;
	struct inspect_job *job; /* NULL: there is nothing to inspect, or it is over */
	struct result *result;   /* NULL: it has not run */
	uint64_t begun_ns;
	bool is_prepared;
	int rc; /* of its beginning; negative: it is refused, and err says why */
	struct brig_error err;
};

static bool refuse(struct piece_work *p)
{
	p->result->verdict = VERDICT_refused;
	(void)str_copy(p->result->reason, sizeof(p->result->reason), p->err.msg);
	return false;
}

static int prepare(struct piece_work *p)
{
	int rc;

	p->req = *p->piece->req;
	p->recording.announced = !p->req.id && record_take_announced(p->x.recorder, p->announced);
	if (p->recording.announced)
		p->req.id = p->announced;
	rc = prepare_piece(p->piece->resolved, &p->req, &p->prepared, &p->err);
	p->is_prepared = rc == 0;
	return rc;
}

/* What of the result is known before the inspector has answered, and the record's beginning. */
static void describe(struct piece_work *p)
{
	const struct policy_resolved *resolved = p->piece->resolved;
	struct result *res = p->result;

	(void)str_copy(res->backend, sizeof(res->backend), backend_kind_name[BACKEND_NATIVE]);
	res->exit_code = -1;
	(void)str_copy(res->id, sizeof(res->id), p->prepared.id);
	res->trust = resolved->trust;
	(void)str_copy(res->trust_source, sizeof(res->trust_source), policy_layer_name[resolved->trust_from]);
	record_begin(&p->recording, &p->prepared.subject, &resolved->set);
	p->recording.digest = p->piece->digest;
	if (!p->is_prepared)
		return;
	res->inspection = (enum inspection)resolved->set.inspection;
	(void)str_copy(res->language, sizeof(res->language), p->prepared.subject.lang->name);
	(void)str_copy(res->step, sizeof(res->step), "run");
}

static bool block(struct piece_work *p, const struct findings *f)
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

static int inspect_start(struct piece_work *p)
{
	const struct settings *set = &p->prepared.resolved->set;
	struct inspect_request what = { .level = (enum inspection)set->inspection,
					.text = p->prepared.subject.text,
					.len = p->prepared.subject.len,
					.workspace = settings_workspace_alias(set),
					.strict_commands = set->strict_commands,
					.allowed_commands = &set->allowed_commands };
	int rc;

	if (!set->inspection || !subject_inspection(&p->prepared.subject, p->prepared.source_name, &what.kind))
		return 0;
	if (what.kind == INSPECT_PYTHON) /* its kernel accepts more than plain Python */
		what.kind = INSPECT_NOTEBOOK;
	rc = rulebook_get(p->x.rules, p->prepared.resolved, &p->judged_by, &p->err);
	return rc < 0 ? rc
		      : inspect_begin(rulebook_spares(p->x.rules, &p->judged_by), p->judged_by.set, &what, &p->job,
				      &p->err);
}

static bool inspect_end(struct piece_work *p)
{
	struct findings *found = &p->result->findings;

	if (inspect_finish_beside(MOVE_PTR(p->job), rulebook_spares(p->x.rules, &p->judged_by), found, &p->err) < 0)
		return refuse(p);
	if (p->prepared.resolved->set.network_mode == NETWORK_ALLOWLIST)
		inspection_allow_network(p->judged_by.set, found);
	inspection_tell_permits(p->prepared.resolved, found);
	return found->worst == SEVERITY_CRITICAL ? block(p, found) : true;
}

/* Another process inspects; meanwhile checks that the run, and the one that may follow it, can be recorded. */
static bool may_run(struct piece_work *p)
{
	struct brig_error why = BRIG_ERROR_INIT;
	int rc;

	if (p->rc < 0)
		return refuse(p);
	rc = record_prepare(p->x.recorder, &p->recording, p->result, &why);
	record_expect(p->x.recorder, p->recording.rec.set);
	if (p->job && !inspect_end(p))
		return false;
	p->err = why;
	return rc < 0 ? refuse(p) : true;
}

struct piece_work *executor_begin_piece(const struct executor *x, const struct piece *piece)
{
	struct piece_work *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->x = *x;
	p->piece = piece;
	p->begun_ns = clock_now_ns();
	p->recording.rec.wall_ns = clock_wall_ns();
	p->recording.meanwhile = (struct link_meanwhile){ piece->meanwhile, piece->arg };
	p->rc = prepare(p);
	if (p->rc == 0)
		p->rc = inspect_start(p);
	return p;
}

void executor_run_piece(struct piece_work *p, struct result *ret)
{
	uint64_t mark;

	p->result = ret;
	describe(p);
	if (may_run(p)) {
		mark = clock_now_ns();
		p->piece->execute(p->piece->arg, &p->recording, ret);
		ret->phase_ns[PHASE_RUN] = clock_now_ns() - mark;
	}
	ret->total_ns = clock_now_ns() - p->begun_ns;
	record_whole(p->x.recorder, &p->recording, policy_file(p->x.policy), ret);
}

void executor_finish_piece(struct piece_work *p)
{
	if (!p)
		return;
	inspect_cancel(p->job);
	if (p->result) {
		record_announce(p->x.recorder, p->recording.rec.set);
		record_count(p->x.recorder, &p->recording);
	}
	if (p->judged_by.set)
		rulebook_refill(p->x.rules, &p->judged_by);
	rules_put(&p->judged_by);
	prepared_piece_release(&p->prepared);
	free(p);
}
