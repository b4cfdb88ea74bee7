/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brig.c - the public functions of include/brig/brig.h.
 *
 * This layer knows nothing about sandboxes: it validates arguments, calls the layer below and returns its results. The
 * layer below can rely on pointers and sizes.
 */
#include <brig/brig.h>

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "api/cells.h"
#include "api/check.h"
#include "api/doctor.h"
#include "api/handle.h"
#include "api/languages.h"
#include "api/request.h"
#include "base/config_path.h"
#include "base/str.h"
#include "keeper/keeper.h"
#include "sys/proc.h"

#define DEFAULT_POLICY_FILE "/etc/brig/sandbox.yaml"

extern char **environ;

const char *brig_version(void)
{
	return BRIG_VERSION;
}

void brig_free(void *p)
{
	free(p);
}

void brig_rest(struct brig *b)
{
	if (b)
		rulebook_rest(&b->rules);
}

void brig_fork_keeper(void)
{
	keeper_fork();
}

int brig_become_keeper(int ceilings, int socket)
{
	return keeper_become(ceilings, socket);
}

int brig_ceilings(const struct brig_open_opts *opts, uint32_t flags, int *ret_fd, struct brig_error *err)
{
	AUTO_FREE struct keep_hello *most = calloc(1, sizeof(*most));
	struct brig *b = NULL;
	int rc;

	if (!ret_fd || flags & ~(uint32_t)BRIG_CEILINGS_DISKS)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_ceilings needs a place for the file, and flags that it knows");
	if (!most)
		return err_nomem(err);
	rc = brig_open(opts, &b, err);
	if (rc < 0)
		return rc;
	warm_ceilings(b->policy, &b->recorder, b->warm.wanted, flags & BRIG_CEILINGS_DISKS, most);
	brig_close(b);
	*ret_fd = keeper_seal_ceilings(most);
	return *ret_fd < 0 ? err_set(err, BRIG_E_SYSTEM, -*ret_fd, "cannot make a file in memory for the ceilings") : 0;
}

/* ---- handles --------------------------------------------------------------------------------- */

/* Only a missing default file is ignored silently. */
static bool is_there(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* The host's policy, or NULL with 0 if there is none: no file, or only comments in it. */
static int load_hosts(const struct policy_sources *from, struct policy **ret, struct brig_error *err)
{
	struct policy_sources src = *from;
	int rc;

	*ret = NULL;
	if (!is_there(DEFAULT_POLICY_FILE))
		return 0;
	src.file = DEFAULT_POLICY_FILE;
	rc = policy_load(&src, ret, NULL, err);
	if (rc == 0 && !*policy_file(*ret)) {
		policy_free(*ret);
		*ret = NULL;
	}
	return rc;
}

/* Reads the named file, else the host's, which then is the only one, else the caller's own. */
static int open_policy(const struct brig_open_opts *opts, struct policy **ret, struct brig_error *err)
{
	struct policy_sources src = { .preset = opts->preset, .environ = (const char *const *)environ };
	const char *wanted = opts->policy_file ? opts->policy_file : secure_getenv("BRIG_POLICY");
	char own[PATH_MAX];
	int rc;

	if (opts->flags != 0)
		return err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", opts->flags);
	if (wanted) {
		src.file = *wanted ? wanted : NULL;
	} else {
		rc = load_hosts(&src, ret, err);
		if (rc < 0 || *ret)
			return rc;
		if (config_path(own, sizeof(own)) && is_there(own)) {
			src.file = own;
			src.is_users_own = true;
		}
	}
	return policy_load(&src, ret, NULL, err);
}

int brig_open(const struct brig_open_opts *opts, struct brig **ret, struct brig_error *err)
{
	struct brig_open_opts known = BRIG_OPEN_OPTS_INIT;
	AUTO_FREE struct brig *b = NULL;
	int rc;

	if (!ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_open needs a place for the handle");
	if (opts) {
		rc = versioned_read(&known, sizeof(known), opts, "brig_open_opts", err);
		if (rc < 0)
			return rc;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(err);
	if (known.rules_file && !str_copy(b->rules.extra, sizeof(b->rules.extra), known.rules_file))
		return err_set(err, BRIG_E_USAGE, 0, "rules_file has more than %zu bytes", sizeof(b->rules.extra) - 1);
	b->recorder = (struct recorder)RECORDER_INIT;
	if (known.state_dir && !str_copy(b->recorder.state, sizeof(b->recorder.state), known.state_dir))
		return err_set(err, BRIG_E_USAGE, 0, "state_dir has more than %zu bytes",
			       sizeof(b->recorder.state) - 1);
	rc = open_policy(&known, &b->policy, err);
	if (rc < 0)
		return rc;
	if (known.recorder_fd > 0) {
		b->recorder.link = fcntl(known.recorder_fd, F_DUPFD_CLOEXEC, 3);
		if (b->recorder.link < 0) {
			policy_free(b->policy);
			return err_set(err, BRIG_E_USAGE, errno, "recorder_fd is no descriptor");
		}
	}
	b->warm.wanted = known.warm_cells ? known.warm_cells : (unsigned)policy_base(b->policy)->warm_cells;
	b->warm.starter = (struct keeper_starter){ .start = known.start_keeper, .arg = known.start_keeper_user };
	*ret = MOVE_PTR(b);
	return 0;
}

void brig_close(struct brig *b)
{
	if (!b)
		return;
	warm_hang_up(&b->warm);
	rulebook_release(&b->rules);
	recorder_release(&b->recorder);
	kept_hosts_release(&b->hosts);
	policy_free(b->policy);
	warm_release(&b->warm);
	task_spares_release(&b->tasks);
	free(b);
	proc_reap_late();
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct executor handle_executor(struct brig *b)
{
	return (struct executor){ .policy = b->policy,
				  .rules = &b->rules,
				  .recorder = &b->recorder,
				  .hosts = &b->hosts,
				  .warm = &b->warm,
				  .exchange = &b->exchange };
}

struct brig_result *result_new(void)
{
	struct brig_result *result = calloc(1, sizeof(*result));

	if (result)
		result_init_zeroed(&result->r);
	return result;
}

int brig_run(struct brig *b, const struct brig_request *req, struct brig_result **ret, struct brig_error *err)
{
	struct brig_request known;
	struct brig_result *result;
	struct executor x;
	int rc;

	if (!b || !req || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_run needs a handle, a request and a place for the result");
	rc = request_read(req, &known, err);
	if (rc < 0)
		return rc;
	result = result_new();
	if (!result)
		return err_nomem(err);
	x = handle_executor(b);
	executor_run(&x, &known, &result->r);
	*ret = result;
	return 0;
}

int brig_result_from_error(const struct brig_error *why, struct brig_result **ret, struct brig_error *err)
{
	struct brig_result *result;

	if (!why || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_result_from_error needs an error and a place for the result");
	result = result_new();
	if (!result)
		return err_nomem(err);
	if (why->code == BRIG_E_USAGE || why->code == BRIG_E_POLICY || why->code == BRIG_E_REFUSED)
		result->r.verdict = VERDICT_refused;
	(void)str_copy(result->r.reason, sizeof(result->r.reason), why->msg);
	*ret = result;
	return 0;
}

void brig_result_free(struct brig_result *r)
{
	if (!r || atomic_fetch_sub(&r->others, 1) > 0)
		return;
	result_release(&r->r);
	result_text_release(&r->text);
	free(r);
}

const char *brig_result_id(const struct brig_result *r)
{
	return r->r.id;
}

const char *brig_result_verdict(const struct brig_result *r)
{
	return verdict_info[r->r.verdict].name;
}

const char *brig_result_reason(const struct brig_result *r)
{
	return r->r.reason;
}

const char *brig_result_backend(const struct brig_result *r)
{
	return r->r.backend;
}

const char *brig_result_language(const struct brig_result *r)
{
	return r->r.language;
}

const char *brig_result_step(const struct brig_result *r)
{
	return r->r.step;
}

int brig_result_exit_code(const struct brig_result *r)
{
	return r->r.exit_code;
}

int brig_result_signal(const struct brig_result *r)
{
	return r->r.signal;
}

int brig_result_status(const struct brig_result *r)
{
	return result_status(&r->r);
}

const char *brig_result_output(const struct brig_result *r, enum brig_stream stream, size_t *len)
{
	const struct buf *b = stream == BRIG_STDERR ? &r->r.err : &r->r.out;

	if (len)
		*len = b->len;
	return buf_str(b);
}

int brig_result_truncated(const struct brig_result *r, enum brig_stream stream)
{
	return stream == BRIG_STDERR ? r->r.err_truncated : r->r.out_truncated;
}

void brig_result_usage(const struct brig_result *r, struct brig_usage *ret)
{
	*ret = (struct brig_usage){
		.wall_ms = r->r.usage.wall_ms,
		.cpu_ms = r->r.usage.cpu_ms,
		.memory_peak_bytes = r->r.usage.memory_peak_bytes,
		.pids_peak = r->r.usage.pids_peak,
		.output_bytes = r->r.usage.output_bytes,
	};
}

void brig_result_evidence(const struct brig_result *r, size_t *ret_kept, size_t *ret_total)
{
	*ret_kept = r->r.evidence.kept;
	*ret_total = r->r.evidence.n;
}

const char *brig_result_cache(const struct brig_result *r)
{
	return cached_name[r->r.cache.compile];
}

void brig_result_changes(const struct brig_result *r, struct brig_changes *ret)
{
	const struct changes *c = &r->r.changes;
	const struct brig_changes known = { .size = ret->size,
					    .state = c->known ? changes_state_name[c->state] : "",
					    .added = c->added,
					    .modified = c->modified,
					    .deleted = c->deleted,
					    .git = c->git };

	memcpy(ret, &known, ret->size < sizeof(known) ? ret->size : sizeof(known));
}

int brig_result_artifact(const struct brig_result *r, size_t i, const char **ret_path, uint64_t *ret_size)
{
	if (i >= r->r.artifacts.n)
		return 0;
	*ret_path = r->r.artifacts.row[i].path;
	*ret_size = r->r.artifacts.row[i].size;
	return 1;
}

int brig_result_left(const struct brig_result *r, size_t i, const char **ret_path, uint64_t *ret_size)
{
	if (i >= r->r.left.n) {
		*ret_size = r->r.left.dropped;
		return 0;
	}
	*ret_path = r->r.left.row[i].path;
	*ret_size = r->r.left.row[i].size;
	return 1;
}

const char *brig_result_hint(const struct brig_result *r)
{
	return r->r.hint;
}

const char *brig_result_warning(const struct brig_result *r, size_t i)
{
	return i < r->r.n_warnings ? r->r.warning[i] : NULL;
}

int brig_result_degraded(const struct brig_result *r, size_t i, const char **ret_protection, const char **ret_lost,
			 const char **ret_fix)
{
	for (size_t p = 0; p < PROT_COUNT; p++) {
		if ((r->r.degraded & PROT_BIT(p)) == 0 || i-- > 0)
			continue;
		*ret_protection = protection_info[p].name;
		*ret_lost = protection_info[p].lost;
		*ret_fix = protection_info[p].fix;
		return 1;
	}
	return 0;
}

int brig_result_finding(const struct brig_result *r, size_t i, struct brig_finding *ret)
{
	struct brig_finding known;

	if (i >= r->r.findings.n || ret->size < sizeof(ret->size))
		return 0;
	known = inspection_public(&r->r.findings.row[i]);
	known.size = ret->size;
	memcpy(ret, &known, ret->size < sizeof(known) ? ret->size : sizeof(known));
	return 1;
}

int brig_result_tests(const struct brig_result *r, struct brig_tests *ret)
{
	const struct test_report *t = &r->r.tests;
	const struct brig_tests known = { .size = ret->size,
					  .framework = t->framework,
					  .complete = t->complete,
					  .passed = t->passed,
					  .failed = t->failed,
					  .skipped = t->skipped,
					  .sealed = t->sealed,
					  .held = t->held };

	if (!t->known || ret->size < sizeof(ret->size))
		return 0;
	memcpy(ret, &known, ret->size < sizeof(known) ? ret->size : sizeof(known));
	return 1;
}

int brig_result_test_failure(const struct brig_result *r, size_t i, struct brig_test_failure *ret)
{
	const struct test_failure *f;
	struct brig_test_failure known;

	if (i >= r->r.tests.n || ret->size < sizeof(ret->size))
		return 0;
	f = &r->r.tests.row[i];
	known = (struct brig_test_failure){ .size = ret->size,
					    .name = f->name ? f->name : "",
					    .message = f->message ? f->message : "",
					    .file = f->file,
					    .line = f->line };
	memcpy(ret, &known, ret->size < sizeof(known) ? ret->size : sizeof(known));
	return 1;
}

int brig_result_denied(const struct brig_result *r, size_t i, struct brig_denied *ret)
{
	const struct denied_row *d;
	struct brig_denied known;

	if (i >= r->r.denied.n || ret->size < sizeof(ret->size))
		return 0;
	d = &r->r.denied.row[i];
	known = (struct brig_denied){
		.size = ret->size,
		.kind = denied_kind_name[d->kind],
		.what = d->what,
		.why = d->why,
		.fix = d->fix,
		.count = d->count,
	};
	memcpy(ret, &known, ret->size < sizeof(known) ? ret->size : sizeof(known));
	return 1;
}

int brig_result_json(const struct brig_result *r, char **ret, struct brig_error *err)
{
	if (!r || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_result_json needs a result and a place for the text");
	return result_text_is_current(&r->text, &r->r) ? result_text_join(&r->text, &r->r, ret, err)
						       : result_to_json(&r->r, ret, err);
}

/* ---- documents ------------------------------------------------------------------------------- */

int brig_policy_json(struct brig *b, const char *trust, char **ret, struct brig_error *err)
{
	AUTO_FREE struct policy_resolved *resolved = NULL;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_policy_json needs a handle and a place for the text");
	resolved = calloc(1, sizeof(*resolved));
	if (!resolved)
		return err_nomem(err);
	rc = policy_resolve(b->policy, trust, NULL, 0, resolved, err);
	return rc < 0 ? rc : policy_to_json(resolved, ret, err);
}

int brig_policy_users_json(struct brig *b, char **ret, struct brig_error *err)
{
	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_policy_users_json needs a handle and a place for the text");
	return policy_users_json(b->policy, ret, err);
}

int brig_policy_template(char **ret, struct brig_error *err)
{
	if (!ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_policy_template needs a place for the text");
	return policy_template(ret, err);
}

int brig_policy_check(const char *path, char **ret, struct brig_error *err)
{
	AUTO_FREE struct policy_diags *diags = NULL;
	struct policy *policy = NULL;
	int rc, json_rc;

	if (!path || !*path || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_policy_check needs a file and a place for the text");
	diags = calloc(1, sizeof(*diags));
	if (!diags)
		return err_nomem(err);
	rc = policy_load(&(struct policy_sources){ .file = path }, &policy, diags, err);
	policy_free(policy);
	if (rc < 0 && rc != -BRIG_E_POLICY)
		return rc;
	json_rc = policy_diags_to_json(path, diags, ret, err);
	if (json_rc < 0)
		return json_rc;
	return rc < 0 ? 1 : 0;
}

int brig_doctor_json(struct brig *b, char **ret, struct brig_error *err)
{
	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_doctor_json needs a handle and a place for the text");
	return doctor_json(b->policy, b->recorder.state, ret, err);
}

int brig_ps_json(struct brig *b, char **ret, struct brig_error *err)
{
	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_ps_json needs a handle and a place for the text");
	return cells_json(b->policy, ret, err);
}

int brig_reap_json(struct brig *b, char **ret, struct brig_error *err)
{
	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_reap_json needs a handle and a place for the text");
	return cells_reap_json(b->policy, ret, err);
}

int brig_pool(struct brig *b, const struct brig_pool *what, struct brig_error *err)
{
	struct brig_pool known = BRIG_POOL_INIT;
	int rc;

	if (!b || !what)
		return err_set(err, BRIG_E_USAGE, 0, "brig_pool needs a handle and what to keep");
	rc = versioned_read(&known, sizeof(known), what, "brig_pool", err);
	return rc < 0 ? rc : cells_pool(b->policy, &known, err);
}

int brig_languages_json(struct brig *b, char **ret, struct brig_error *err)
{
	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_languages_json needs a handle and a place for the text");
	return languages_json(ret, err);
}

/* ---- inspection ------------------------------------------------------------------------------ */

int brig_check(struct brig *b, const struct brig_check *req, char **ret_json, struct brig_error *err)
{
	struct brig_check known = BRIG_CHECK_INIT;
	int rc;

	if (!b || !req)
		return err_set(err, BRIG_E_USAGE, 0, "brig_check needs a handle and a request");
	rc = versioned_read(&known, sizeof(known), req, "brig_check", err);
	return rc < 0 ? rc : check_text(b->policy, &b->rules, &known, ret_json, err);
}

int brig_rules_json(struct brig *b, char **ret_json, struct brig_error *err)
{
	if (!b || !ret_json)
		return err_set(err, BRIG_E_USAGE, 0, "brig_rules_json needs a handle and a place for the text");
	return check_rules_json(b->policy, &b->rules, ret_json, err);
}
