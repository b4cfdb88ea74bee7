/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request, end to end:
 *
 *	resolve   policy and language become plans, which are immutable from here on
 *	probe     selects a backend; protections that it lacks refuse the run, unless the policy names them as optional
 *	inspect   inspects the code while the cell is built; a blocking finding ends the run before anything starts
 *	packages  looks up requested packages, or installs them in a cell of their own
 *	compile   in a cell of its own, for languages that need it, unless the output is cached
 *	run       in a fresh cell
 *	record    on every path, whatever the outcome of the other steps
 *
 * Each of packages, compile and run is a stage: begin, finish, watch, inspect, collect, verify, release (stage.c).
 * Every outcome is a verdict in the result; nothing is reported in any other way.
 */
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/str.h"
#include "executor/compile_cache.h"
#include "executor/environment.h"
#include "executor/executor.h"
#include "executor/hint.h"
#include "executor/inspection.h"
#include "executor/modules.h"
#include "executor/outside.h"
#include "executor/packages.h"
#include "executor/prepare.h"
#include "executor/record.h"
#include "executor/select.h"
#include "executor/sources.h"
#include "executor/stage.h"
#include "executor/trace.h"
#include "executor/user.h"
#include "executor/warm.h"
#include "executor/work.h"
#include "keeper/keeper.h"
#include "sys/proc.h"

#define TRIES_MAX         3 /* a waiting cell, a new cell, another keeper */
#define SESSION_SAMPLE_MS 1000

struct run {
	const struct executor *x;
	struct recording recording;
	const struct brig_request *req;
	struct result *result;
	struct prepared_request prepared;
	struct selection chosen;
	protection_set allowed; /* allow_degraded */
	struct rules_in_use judged_by;
	struct inspect_job *inspection; /* in progress */
	bool inspected;                 /* started, or not wanted */
	bool stopped;                   /* by its findings */
	struct asked_modules asked;
	struct used_environment environment;
	struct packages packages;
	struct certificates certificates;
	struct buf compiled;
	struct work work;
	struct keeper_use *keeper;
	struct brig_error err;
};

static int end_with(struct run *r, enum verdict v, const char *reason)
{
	r->result->verdict = v;
	(void)str_copy(r->result->reason, sizeof(r->result->reason), reason);
	return -1;
}

/* Refusals and invalid requests are reported as such, so nothing ran; anything else is a failure of brig. */
static int end_with_error(struct run *r)
{
	bool fault = r->err.code == BRIG_E_SYSTEM || r->err.code == BRIG_E_NOMEM || r->err.code == BRIG_E_INTERNAL;

	return end_with(r, fault ? VERDICT_failed : VERDICT_refused, r->err.msg);
}

/* Preparation may wait for input that never comes, such as an archive, until the caller cancels. */
static int end_unprepared(struct run *r)
{
	return r->err.sys == ECANCELED ? end_with(r, VERDICT_cancelled, r->err.msg) : end_with_error(r);
}

static int resolve_environment(struct run *r)
{
	struct used_environment *used = &r->environment;

	if (environment_find(used, &r->prepared, r->req, r->x->recorder, &r->err) < 0)
		return end_with_error(r);
	(void)str_copy(r->result->environment, sizeof(r->result->environment), used->env.name);
	r->prepared.warm = used->warm.len ? buf_str(&used->warm) : NULL;
	r->prepared.environment = *used->env.name ? used->env.name : NULL;
	return 0;
}

static int step_resolve(struct run *r)
{
	struct result *res = r->result;
	int rc = prepare_request(r->x->policy, r->req, &r->prepared, &r->err);

	(void)str_copy(res->id, sizeof(res->id), r->prepared.id);
	res->trust = r->prepared.resolved.trust;
	if (rc == 0)
		res->inspection = (enum inspection)r->prepared.resolved.set.inspection;
	(void)str_copy(res->trust_source, sizeof(res->trust_source),
		       policy_layer_name[r->prepared.resolved.trust_from]);
	/* A request that could not be resolved is recorded under the policy's base values. */
	record_begin(&r->recording, &r->prepared.subject,
		     rc < 0 ? policy_base(r->x->policy) : &r->prepared.resolved.set);
	if (rc < 0)
		return end_unprepared(r);
	(void)str_copy(res->language, sizeof(res->language), r->prepared.lang->name);
	if (work_open(&r->work, r->x->recorder, r->req, &r->prepared, &r->err) < 0)
		return end_with_error(r);
	if (r->work.venv.warning[0])
		result_warn(res, "%s", r->work.venv.warning);
	return resolve_environment(r);
}

static int end_blocked(struct run *r, const struct findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->row[i].severity == SEVERITY_CRITICAL) {
			char reason[RESULT_TEXT_MAX];

			(void)snprintf(reason, sizeof(reason), "%s at line %u: %s", f->row[i].rule, f->row[i].line,
				       f->row[i].message);
			return end_with(r, VERDICT_blocked, reason);
		}
	return end_with(r, VERDICT_blocked, "static inspection found more than it can list");
}

/* A request that asks for packages, and may, will import them; so will one that uses an environment with packages. */
static int find_asked_modules(struct run *r, struct inspect_request *what)
{
	const struct brig_request *req = r->req;
	const struct environment *env = &r->environment.env;
	const struct ecosystem *e = env->eco ? env->eco : packages_ecosystem(&r->prepared);
	bool of_project = req->flags & BRIG_RUN_PROJECT_PACKAGES;
	const char *const *words = env->eco ? (const char *const *)env->packages : req->packages;
	size_t n = env->eco ? env->n_packages : req->n_packages;

	if (!env->eco && (!packages_wanted(req) || !r->prepared.resolved.set.packages || !e))
		return 0;
	if (asked_modules_find(&r->asked, e, words, n, of_project ? r->prepared.workspace : NULL, &r->err) < 0)
		return -1;
	what->asked = r->asked.name;
	what->n_asked = r->asked.n;
	what->asked_kind = r->asked.kind;
	return 0;
}

static struct inspect_request what_to_inspect(const struct run *r)
{
	const struct settings *set = &r->prepared.resolved.set;

	return (struct inspect_request){ .level = (enum inspection)set->inspection,
					 .text = r->prepared.subject.text,
					 .len = r->prepared.subject.len,
					 .has_input = r->req->stdin_fd >= 0 || r->req->stdin_len > 0,
					 .workspace = settings_workspace_alias(set),
					 .strict_commands = set->strict_commands,
					 .allowed_commands = &set->allowed_commands };
}

/* A separate process runs the inspection. */
static int begin_inspection(struct run *r)
{
	const struct settings *set = &r->prepared.resolved.set;
	struct inspect_request what = what_to_inspect(r);

	if (r->inspected)
		return 0;
	r->inspected = true;
	/* The name in the workspace, not the caller's, because the runtime uses that one. */
	if (!set->inspection || !subject_inspection(&r->prepared.subject, r->prepared.source_name, &what.kind))
		return 0;
	if (find_asked_modules(r, &what) < 0 ||
	    rulebook_get(r->x->rules, &r->prepared.resolved, &r->judged_by, &r->err) < 0 ||
	    inspect_begin(rulebook_spares(r->x->rules, &r->judged_by), r->judged_by.set, &what, &r->inspection,
			  &r->err) < 0)
		return end_with_error(r);
	return 0;
}

static void tell_findings(const struct run *r)
{
	const struct findings *found = &r->result->findings;

	for (size_t i = 0; r->req->on_finding && i < found->n; i++) {
		struct brig_finding one = inspection_public(&found->row[i]);

		r->req->on_finding(r->req->user, &one);
	}
}

/* Inspects files that came with the code and are compiled with it. */
static int inspect_sources(struct run *r, struct findings *found)
{
	const struct inspect_request like = what_to_inspect(r);
	struct sources all = { .lang = r->prepared.lang,
			       .inspected = r->prepared.source_name,
			       .spares = rulebook_spares(r->x->rules, &r->judged_by),
			       .rules = r->judged_by.set,
			       .like = &like };

	if (!r->prepared.sources || !r->work.project || !workspace_is_archive(r->work.project))
		return 0;
	all.folder = workspace_folder(r->work.project)->fd;
	return sources_inspect(&all, found, &r->err);
}

/* Waits for the inspection's findings; -1 if they, or their absence, end the run. */
static int await_inspection(struct run *r)
{
	struct findings *found = &r->result->findings;

	if (begin_inspection(r) < 0)
		return -1;
	if (!r->inspection)
		return 0;
	if (inspect_finish_beside(MOVE_PTR(r->inspection), rulebook_spares(r->x->rules, &r->judged_by), found,
				  &r->err) < 0 ||
	    inspect_sources(r, found) < 0)
		return end_with_error(r);
	if (r->prepared.resolved.set.network_mode == NETWORK_ALLOWLIST)
		inspection_allow_network(r->judged_by.set, found);
	inspection_tell_permits(&r->prepared.resolved, found);
	if (found->dropped)
		result_warn(r->result, "inspection found %zu more than the %zu findings that are listed",
			    found->dropped, found->n);
	tell_findings(r);
	return found->worst == SEVERITY_CRITICAL ? end_blocked(r, found) : 0;
}

/* Checks that the run can be recorded as required. */
static int check_record(struct run *r)
{
	return record_prepare(r->x->recorder, &r->recording, r->result, &r->err) < 0 ? end_with_error(r) : 0;
}

static void tell_started(void *arg)
{
	const struct run *r = arg;
	const struct brig_started what = { .size = sizeof(what),
					   .id = r->result->id,
					   .backend = r->result->backend,
					   .language = r->result->language,
					   .trust = trust_name[r->result->trust] };

	if (r->req->on_started)
		r->req->on_started(r->req->user, &what);
}

/* Runs while the cell is built: nothing of the program has run, and nothing will before this returns. */
static int inspect_between(void *arg, struct brig_error *err)
{
	struct run *r = arg;
	bool unrecorded;

	/*
	 * Prepares the record while the code is inspected. A blocked request stays blocked even if it cannot be
	 * recorded.
	 */
	r->stopped = begin_inspection(r) < 0;
	unrecorded = !r->stopped && check_record(r) < 0;
	r->stopped = r->stopped || await_inspection(r) < 0 || unrecorded;
	return r->stopped ? err_set(err, BRIG_E_REFUSED, 0, "%s", r->result->reason) : 0;
}

/*
 * A compiler is a program, too: it is not started on code that will be blocked. Otherwise the inspection runs while the
 * cell is built.
 */
static int step_inspect(struct run *r)
{
	return r->prepared.lang->compiles ? await_inspection(r) : 0;
}

static struct select_ask what_to_ask(const struct run *r)
{
	return (struct select_ask){ .set = &r->prepared.resolved.set,
				    .hosts = r->x->hosts,
				    .may_degrade = r->allowed,
				    .trust = r->prepared.resolved.trust };
}

/* Issued before anything runs: afterwards may be too late. */
static void warn_of_direct(struct run *r)
{
	static const char text[] =
		"NO ISOLATION: the direct backend runs the program as an ordinary process of this host, "
		"with nothing but resource limits around it";

	result_warn(r->result, "%s", text);
	if (r->req->on_notice)
		r->req->on_notice(r->req->user, text);
}

/* A configured image means that its programs are expected. */
static void warn_of_image(struct run *r)
{
	const struct policy_resolved *p = &r->prepared.resolved;

	if (p->set.docker_image[0] && !str_eq(r->chosen.ops->name, backend_kind_name[BACKEND_DOCKER]))
		result_warn(r->result,
			    "the image '%s' (%s) is not used: a cell of backend %s has the programs of this host; the "
			    "image needs backend docker",
			    p->set.docker_image, p->origin[SET_docker_image].place, r->chosen.ops->name);
}

/* Plans are made for the selected backend: what it never provides is not promised. */
static void adopt_selection(struct run *r)
{
	const struct selection *s = &r->chosen;
	struct result *res = r->result;

	(void)str_copy(res->backend, sizeof(res->backend), s->ops->name);
	res->degraded = s->missing;
	r->prepared.brings_runtimes = s->ops->brings_runtimes;
	r->prepared.may_degrade = r->allowed | s->excused;
	if (s->why[0])
		result_warn(res, "backend %s was taken because the one before it cannot keep the policy: %s",
			    s->ops->name, s->why);
	warn_of_image(r);
	if (str_eq(s->ops->name, backend_kind_name[BACKEND_DIRECT]))
		warn_of_direct(r);
}

/* A backend whose cells lack the user is skipped like one that cannot enforce the policy. */
static int settle_user(struct run *r, const struct select_ask *ask, struct brig_error *err)
{
	while (user_find(&r->prepared, &r->chosen, r->req, err) < 0)
		if (err->code != BRIG_E_REFUSED || select_next(ask, &r->chosen, err) < 0)
			return -err->code;
	return 0;
}

static int step_probe(struct run *r)
{
	const struct settings *set = &r->prepared.resolved.set;
	struct select_ask ask;

	r->allowed = r->prepared.may_degrade;
	ask = what_to_ask(r);
	if (select_backend(&ask, &r->chosen, &r->err) < 0 || settle_user(r, &ask, &r->err) < 0) {
		enum backend_kind named = select_kind(set);

		if (named != BACKEND_AUTO)
			(void)str_copy(r->result->backend, sizeof(r->result->backend), backend_kind_name[named]);
		return end_with_error(r);
	}
	adopt_selection(r);
	return 0;
}

/* A backend that failed while building the cell has run nothing, so auto may try the next one. */
static bool moves_on(struct run *r, const struct stage *s)
{
	const struct select_ask ask = what_to_ask(r);
	struct brig_error why = { .code = BRIG_E_REFUSED };

	if (s->verdict != VERDICT_refused || r->stopped)
		return false;
	(void)str_copy(why.msg, sizeof(why.msg), s->reason);
	if (select_next(&ask, &r->chosen, &why) < 0 || settle_user(r, &ask, &why) < 0)
		return false;
	adopt_selection(r);
	return true;
}

static void adopt_verdict(struct run *r, const struct stage *s)
{
	struct result *res = r->result;

	res->verdict = s->verdict;
	res->exit_code = s->exit_code;
	res->signal = s->signal;
	(void)str_copy(res->step, sizeof(res->step), s->plan->step);
	(void)str_copy(res->reason, sizeof(res->reason), s->reason);
}

/* A step before the run has failed: its output becomes the result's output. */
static void report_failure(struct run *r, const struct stage *s, const char *why, struct buf *out, struct buf *err)
{
	struct result *res = r->result;
	const struct brig_request *req = r->req;
	struct buf *const from[] = { out, err };
	struct buf *const to[] = { &res->out, &res->err };
	struct record_stream *const rec[] = { &r->recording.rec.out, &r->recording.rec.err };

	adopt_verdict(r, s);
	if (s->verdict == VERDICT_error)
		(void)str_copy(res->reason, sizeof(res->reason), why);
	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		if (from[i]->len == 0)
			continue;
		to[i]->max = from[i]->max;
		record_stream_add(rec[i], from[i]->data, from[i]->len);
		if (!(req->flags & BRIG_RUN_NO_CAPTURE))
			(void)buf_add(to[i], from[i]->data, from[i]->len);
		if (req->on_output)
			req->on_output(req->user, i == 0 ? BRIG_STDOUT : BRIG_STDERR, from[i]->data, from[i]->len);
	}
}

/* If another process starts the keepers, this one creates no cells: it may lack the rights, and must not. */
static bool refuse_own_cell(struct stage *s, const struct plan *plan)
{
	const char *lacks = job_lacks(plan);

	s->exit_code = -1;
	s->verdict = lacks ? VERDICT_refused : VERDICT_failed;
	(void)snprintf(s->reason, sizeof(s->reason), lacks ? "the run needs %s: send less of it, or use --local" : "%s",
		       lacks ? lacks : "no keeper of cells can be had");
	return true;
}

/* One attempt; false: it failed before the program started, and another attempt may succeed. */
static bool execute_once(struct run *r, struct stage *s, struct plan *plan, bool may_wait)
{
	const struct warm_ask ask = { .request = &r->prepared,
				      .req = r->req,
				      .chosen = &r->chosen,
				      .recorder = r->x->recorder,
				      .named_packages = r->environment.env.name[0] != '\0',
				      .may_wait = may_wait };
	struct backend_host *keeper = warm_take(r->x->warm, &ask, plan, &r->keeper);

	if (!keeper && r->chosen.ops == &native_backend && r->x->warm->starter.start)
		return refuse_own_cell(s, plan);
	s->backend = keeper ? &keeper_backend : r->chosen.ops;
	s->host = keeper ? keeper : r->chosen.host;
	s->was_waiting = plan->waits_at ? keeper_cell_was_waiting : NULL;
	s->was_forked = plan->waits_at ? keeper_cell_was_forked : NULL;
	stage_execute(s);
	return s->built || s->may_have_begun || r->stopped || !keeper || (!plan->waits_at && keeper_is_alive(keeper));
}

/* Tries a waiting cell if possible, then a new cell, then, if the keeper was killed meanwhile, another keeper. */
static void execute(struct run *r, struct stage *s, struct plan *plan, bool may_wait)
{
	for (unsigned tries = 1; !execute_once(r, s, plan, may_wait && tries == 1) && tries < TRIES_MAX; tries++)
		s->err = (struct brig_error)BRIG_ERROR_INIT;
}

static int step_packages(struct run *r);

/* To be called before the plan of a step with network access is made. */
static void bring_certificates(struct run *r)
{
	certificates_take(&r->certificates, r->chosen.ops->certificates, r->result);
	r->prepared.certificates = &r->certificates;
}

struct install_tick {
	const struct packages *packages;
	const struct packages_ask *ask;
};

static void tell_progress(struct stage *s, void *arg)
{
	const struct install_tick *t = arg;

	packages_tell(t->packages, t->ask, max_u64(egress_received(s->proxy), 1), /* done= */ false);
}

/* In a cell of its own, with the registries as its only network. */
static int install_packages(struct run *r, const struct packages_ask *ask)
{
	CLEANUP(install_release)
	struct install i = { .script = NULL };
	AUTO_BUF out = BUF_INIT(0), err = BUF_INIT(0);
	const struct egress_rules outside = packages_rules(&r->packages, &r->prepared.resolved.set);
	struct install_tick tick = { .packages = &r->packages, .ask = ask };
	struct stage s = { .plan = &i.prepared.plan,
			   .egress = &outside,
			   .req = r->req,
			   .result = r->result,
			   .keep_out = &out,
			   .keep_err = &err,
			   .harvest = PACKAGES_OUT,
			   .on_harvest = packages_harvest,
			   .harvest_arg = &r->packages,
			   .on_tick = tell_progress,
			   .tick_arg = &tick };

	bring_certificates(r);
	if (packages_prepare_install(&r->packages, ask, &i, &r->err) < 0)
		return end_with_error(r);
	out.max = err.max = i.prepared.plan.limits.output_bytes;
	r->result->limits = i.prepared.plan.limits;
	r->result->has_limits = true;
	r->packages.begun_ns = clock_now_ns();
	packages_tell(&r->packages, ask, 0, /* done= */ false);
	execute(r, &s, &i.prepared.plan, /* may_wait= */ false);
	if (s.verdict == VERDICT_ok)
		return packages_end(&r->packages, ask, r->result, &r->err) < 0 ? end_with_error(r) : 0;
	if (moves_on(r, &s)) {
		packages_release(&r->packages);
		return step_packages(r); /* at most once per backend */
	}
	packages_hide_secrets(&r->packages, &out, &err);
	report_failure(r, &s, s.reason, &out, &err);
	packages_explain(&r->packages, r->result, &out, &err);
	return -1;
}

/* Nothing is installed: if the set is missing, the run fails. */
static int take_environment(struct run *r, const struct packages_ask *ask)
{
	r->packages = (struct packages)PACKAGES_INIT;
	if (packages_take(&r->packages, ask, &r->environment.env, r->result, &r->err) < 0)
		/* a finding that blocks takes precedence */
		return await_inspection(r) < 0 ? -1 : end_with_error(r);
	r->prepared.provision = &r->packages.provision;
	return 0;
}

static int step_packages(struct run *r)
{
	const struct packages_ask ask = { .request = &r->prepared,
					  .chosen = &r->chosen,
					  .req = r->req,
					  .recorder = r->x->recorder,
					  .exchange = r->x->exchange,
					  .project = r->prepared.workspace };
	int rc;

	if (r->environment.env.n_packages > 0)
		return take_environment(r, &ask);
	if (!packages_wanted(r->req))
		return 0;
	/* An installer is a program, too. */
	if (await_inspection(r) < 0 || check_record(r) < 0)
		return -1;
	r->packages = (struct packages)PACKAGES_INIT;
	rc = packages_begin(&r->packages, &ask, r->result, &r->err);
	if (rc < 0 && r->err.sys == ECANCELED)
		return end_with(r, VERDICT_cancelled, "the caller gave up");
	if (rc < 0)
		return end_with_error(r);
	if (rc == 0 && install_packages(r, &ask) < 0)
		return -1;
	r->prepared.provision = &r->packages.provision;
	return 0;
}

static int step_compile(struct run *r)
{
	CLEANUP(prepared_release)
	struct prepared p = { .argv = NULL };
	AUTO_BUF out = BUF_INIT(0), err = BUF_INIT(0);
	struct stage s = { .plan = &p.plan,
			   .req = r->req,
			   .result = r->result,
			   .keep_out = &out,
			   .keep_err = &err,
			   .collected = &r->compiled };
	const struct compile_ask ask = {
		.request = &r->prepared, .compile = &p, .chosen = &r->chosen, .req = r->req, .exchange = r->x->exchange
	};
	struct compile_cache cache;

	if (!r->prepared.lang->compiles)
		return 0;
	if (check_record(r) < 0)
		return -1;
	if (prepare_compile(&r->prepared, r->req, &p, &r->err) < 0)
		return end_with_error(r);
	out.max = err.max = p.plan.limits.output_bytes;
	r->compiled.max = p.plan.limits.disk_bytes;
	r->result->limits = p.plan.limits;
	r->result->has_limits = true;
	s.collect = p.plan.output;
	if (compile_cache_begin(&cache, r->x->recorder, &ask, &r->compiled, r->result))
		return 0;
	execute(r, &s, &p.plan, /* may_wait= */ true);
	compile_cache_end(&cache, s.verdict == VERDICT_ok ? &r->compiled : NULL, r->result);
	if (s.verdict == VERDICT_ok)
		return 0;
	if (moves_on(r, &s))
		return step_compile(r); /* at most once per backend */
	report_failure(r, &s, "the program does not compile", &out, &err);
	return -1;
}

/* A session lives long and may be one of hundreds of idle ones: sampling each ten times a second would load a CPU. */
static uint64_t sample_interval_ms(const struct run *r)
{
	const struct settings *set = &r->prepared.resolved.set;

	if (!set->monitoring_enabled)
		return 0;
	return r->req->kind == SUBJECT_SESSION ? max_u64(set->monitoring_interval_ms, SESSION_SAMPLE_MS)
					       : set->monitoring_interval_ms;
}

static int step_run(struct run *r)
{
	CLEANUP(prepared_release)
	struct prepared p = { .argv = NULL };
	const struct settings *set = &r->prepared.resolved.set;
	struct egress_rules outside = { .hosts = &set->whitelist };
	bool keep = !(r->req->flags & BRIG_RUN_NO_CAPTURE);
	struct stage s = { .plan = &p.plan,
			   .req = r->req,
			   .result = r->result,
			   .with_stdin = true,
			   .with_output = true,
			   .sample_interval_ms = sample_interval_ms(r),
			   .keep_out = keep ? &r->result->out : NULL,
			   .keep_err = keep ? &r->result->err : NULL,
			   .record_out = &r->recording.rec.out,
			   .record_err = &r->recording.rec.err,
			   .egress = &outside,
			   .between = inspect_between,
			   .on_ready = tell_started,
			   .between_arg = r,
			   .session = r->x->session,
			   .live = r->x->live,
			   .work = &r->work };

	if (set->network_mode == NETWORK_ALLOWLIST)
		bring_certificates(r);
	/* A finding that blocks takes precedence over an error in the plan. */
	if (prepare_run(&r->prepared, r->req, r->prepared.lang->compiles ? &r->compiled : NULL, &p, &r->err) < 0)
		return await_inspection(r) < 0 ? -1 : end_with_error(r);
	r->result->out.max = r->result->err.max = p.plan.limits.output_bytes;
	r->result->limits = p.plan.limits;
	r->result->has_limits = true;
	if (r->prepared.subject.tests)
		tests_prepare(r->prepared.subject.tests, &s);
	if (p.plan.egress)
		outside = outside_rules(&set->whitelist, set);
	execute(r, &s, &p.plan, /* may_wait= */ true);
	/* Compiled or installed output of one backend is not used with another. */
	if (!r->prepared.lang->compiles && !r->prepared.provision && moves_on(r, &s))
		return step_run(r);
	if (!r->stopped)
		adopt_verdict(r, &s);
	if (r->result->verdict == VERDICT_error)
		subject_explain(&r->prepared.subject, s.exit_code, r->result->reason, sizeof(r->result->reason));
	return 0;
}

/*
 * The keeper or backend removes remains of the cells while the audit entry is written; what it cannot remove is
 * recorded afterwards.
 */
static void settle(struct run *r)
{
	const struct backend_ops *ops = r->chosen.ops;
	char leftovers[256];

	if (warm_settle(r->keeper, r->prepared.id, leftovers, sizeof(leftovers)) > 0)
		result_left_behind(r->result, leftovers);
	if (ops && ops->settle && ops->settle(r->chosen.host, r->prepared.id, leftovers, sizeof(leftovers)) > 0)
		result_left_behind(r->result, leftovers);
}

static const struct {
	const char *name; /* for traces */
	int (*run)(struct run *r);
	enum run_phase phase; /* PHASE_COUNT: the stage times itself */
} steps[] = {
	{ "resolve", step_resolve, PHASE_RESOLVE },
	/* Before the inspection's process exists: on cgroup v2, brig must be alone in its cgroup to divide it. */
	{ "probe", step_probe, PHASE_RESOLVE },
	{ "inspect", step_inspect, PHASE_INSPECT },
	{ "packages", step_packages, PHASE_COUNT },
	{ "compile", step_compile, PHASE_COUNT },
	{ "run", step_run, PHASE_COUNT },
};

/* Runs the steps in order until one decides the verdict. */
static void take_steps(struct run *r)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(steps) && rc >= 0; i++) {
		uint64_t mark = clock_now_ns(), now;

		rc = steps[i].run(r);
		now = clock_now_ns();
		if (steps[i].phase != PHASE_COUNT)
			r->result->phase_ns[steps[i].phase] += now - mark;
		trace_step(r->req, "", steps[i].name, mark, now);
	}
}

void executor_run(const struct executor *x, const struct brig_request *req, struct result *ret)
{
	uint64_t begin = clock_now_ns();
	struct run *r = calloc(1, sizeof(*r));

	if (!r) {
		ret->verdict = VERDICT_failed;
		(void)str_copy(ret->reason, sizeof(ret->reason), "no memory left");
		return;
	}
	proc_reap_late();
	r->packages = (struct packages)PACKAGES_INIT;
	r->x = x;
	r->work = (struct work)WORK_INIT;
	r->recording.rec.wall_ns = clock_wall_ns();
	r->req = req;
	r->result = ret;
	take_steps(r);
	if (ret->verdict == VERDICT_error)
		hint_find(r->recording.rec.err.tail, r->recording.rec.err.tail_len,
			  r->prepared.brings_runtimes ? HINT_IMAGE : HINT_HOST, ret->hint, sizeof(ret->hint));
	inspect_cancel(r->inspection);
	packages_release(&r->packages);
	certificates_release(&r->certificates);
	asked_modules_release(&r->asked);
	environment_drop(&r->environment);
	buf_release(&r->compiled);
	ret->total_ns = clock_now_ns() - begin;
	record_end(x->recorder, &r->recording, policy_file(x->policy), ret);
	work_close(&r->work);
	settle(r);
	record_finish(x->recorder, &r->recording, ret);
	trace_step(req, "", "record", begin + ret->total_ns, clock_now_ns());
	if (r->chosen.ops && str_eq(r->chosen.ops->name, backend_kind_name[BACKEND_NATIVE]))
		/* cells of other backends take so long to create that refilling would gain nothing */
		rulebook_refill(x->rules, &r->judged_by);
	warm_put(x->warm, &r->keeper);
	rules_put(&r->judged_by);
	prepared_request_release(&r->prepared);
	selection_release(&r->chosen);
	free(r);
}
