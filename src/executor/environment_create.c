/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment is created by a run: of a small program that loads each module of the warm-up list and reports it,
 * with the packages requested as usual. So everything that applies to requests applies here: policy, install cell,
 * evidence, record. If the run succeeds, its package set is pinned and the document is written.
 *
 * Code in the cell reports which modules were loaded. A package that lies gains nothing: the list only affects start-up
 * time.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "executor/environment_files.h"
#include "executor/executor.h"
#include "executor/packages.h"

#define PROGRAM_MAX (64 * KiB)

static int end(struct result *r, enum verdict v, const char *reason)
{
	r->verdict = v;
	(void)str_copy(r->reason, sizeof(r->reason), reason);
	return -1;
}

static int end_with(struct result *r, const struct brig_error *err)
{
	return end(r, err->code == BRIG_E_REFUSED ? VERDICT_refused : VERDICT_failed, err->msg);
}

/* ---- validation ---------------------------------------------------------------------------------- */

static int check_wish(const struct brig_environment *w, const struct ecosystem **ret, struct brig_error *err)
{
	const char *language = w->language ? w->language : "python";

	if (!environment_is_name(w->name))
		return err_set(
			err, BRIG_E_USAGE, 0,
			"'%.80s' is no name for an environment: take lower-case letters, digits and ._- behind a "
			"letter or digit, at most %d, and not '" ENVIRONMENT_NONE "'",
			w->name, ENVIRONMENT_NAME_MAX);
	*ret = ecosystem_of_language(language);
	if (!*ret)
		return err_set(err, BRIG_E_USAGE, 0, "there are no packages for '%.40s': pip, npm and go have some",
			       language);
	if (w->n_packages == 0 && w->n_warm == 0)
		return err_set(err, BRIG_E_USAGE, 0,
			       "environment '%s' would have nothing: name packages, or modules to load beforehand",
			       w->name);
	if (w->n_warm > 0 && !(*ret)->load[0])
		return err_set(err, BRIG_E_USAGE, 0, "nothing of %s can be loaded beforehand", (*ret)->name);
	if (w->n_warm > WARM_MODULES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "%zu modules are to be loaded beforehand; at most %d are accepted",
			       w->n_warm, WARM_MODULES_MAX);
	for (size_t i = 0; i < w->n_warm; i++)
		if (!warm_is_module(w->warm[i]))
			return err_set(err, BRIG_E_USAGE, 0, "'%.80s' is no name of a module", w->warm[i]);
	return 0;
}

int environment_check_wish(const struct brig_environment *wish, struct brig_error *err)
{
	const struct ecosystem *e;

	return check_wish(wish, &e, err);
}

/* ---- the run ------------------------------------------------------------------------------------- */

static bool make_program(const struct brig_environment *w, const struct ecosystem *e, struct buf *ret)
{
	(void)buf_adds(ret, e->nothing);
	for (size_t i = 0; i < w->n_warm; i++)
		(void)buf_addf(ret, "%s%s%s%s%s", e->load[0], w->warm[i], e->load[1], w->warm[i], e->load[2]);
	return !ret->no_memory && !ret->full;
}

/* The first module not reported as loaded; NULL: all were. */
static const char *first_not_loaded(const struct brig_environment *w, const struct buf *out)
{
	for (size_t i = 0; i < w->n_warm; i++) {
		char line[WARM_MODULE_MAX + 16];
		int len = snprintf(line, sizeof(line), "\nloaded %s\n", w->warm[i]);

		if (!out->data || !memmem(out->data, out->len, line, (size_t)len))
			return w->warm[i];
	}
	return NULL;
}

/* The line that tells the error, without terminal control characters. */
static void put_error_line(const struct buf *text, char *dst, size_t size)
{
	const char *at = buf_str(text), *best = "";

	while (*at) {
		size_t len = strcspn(at, "\n");

		if (len > 0 && (memmem(at, len, "Error: ", 7) || !strstr(best, "Error: ")))
			best = at;
		at += len + (at[len] == '\n');
	}
	(void)snprintf(dst, size, "%.*s", (int)min_u64(strcspn(best, "\n"), size - 1), best);
	for (char *c = dst; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

/* Checks whether a successful run loaded everything, and explains a failed one. */
static int judge(const struct brig_environment *w, struct result *r)
{
	const char *module = first_not_loaded(w, &r->out);
	char line[200], was[200], reason[RESULT_TEXT_MAX];

	if (r->verdict == VERDICT_ok && !module)
		return 0;
	if (!module || !str_eq(r->step, "run") || r->verdict == VERDICT_violated)
		return r->verdict == VERDICT_ok ? end(r, VERDICT_failed, "the modules were not loaded") : -1;
	(void)snprintf(was, sizeof(was), "%.190s", r->verdict == VERDICT_ok ? "it ends the program" : r->reason);
	put_error_line(&r->err, line, sizeof(line));
	(void)snprintf(reason, sizeof(reason), "module '%s' of the warm-up list cannot be loaded: %s", module,
		       r->verdict == VERDICT_error && *line ? line : was);
	r->hint[0] = '\0'; /* it addresses programs that request packages */
	return end(r, r->verdict == VERDICT_ok ? VERDICT_error : r->verdict, reason);
}

static void run(const struct executor *x, const struct brig_environment *w, const struct ecosystem *e,
		const struct buf *program, struct result *ret)
{
	AUTO_FREE struct brig_option *options = calloc(w->n_options + 1, sizeof(*options));
	struct brig_request req = BRIG_REQUEST_INIT;

	if (!options) {
		(void)end(ret, VERDICT_failed, "no memory left");
		return;
	}
	if (w->n_options > 0)
		memcpy(options, w->options, w->n_options * sizeof(*options));
	options[w->n_options] = (struct brig_option){ .key = "network_mode", .value = "none" };
	req.language = e->languages[0];
	req.code = buf_str(program);
	req.code_len = program->len;
	req.packages = w->packages;
	req.n_packages = w->n_packages;
	req.environment = ENVIRONMENT_NONE;
	req.trust = w->trust;
	req.options = options;
	req.n_options = w->n_options + 1;
	req.cancel_fd = w->cancel_fd;
	req.on_notice = w->on_notice;
	req.on_install = w->on_install;
	req.on_started = w->on_started;
	req.on_trace = w->on_trace;
	req.user = w->user;
	req.id = w->id;
	req.who = w->who;
	executor_run(x, &req, ret);
}

/* ---- storage ------------------------------------------------------------------------------------- */

static int fill(struct environment *env, const struct brig_environment *w, const struct ecosystem *e,
		const struct result *r, struct brig_error *err)
{
	bool ok = true;

	*env = (struct environment){ .eco = e,
				     .created_ns = clock_wall_ns() / NS_PER_MS * NS_PER_MS,
				     .trust = r->trust,
				     .missing = r->packages.missing,
				     .files = r->packages.files,
				     .bytes = r->packages.bytes };
	(void)str_copy(env->name, sizeof(env->name), w->name);
	(void)str_copy(env->brig, sizeof(env->brig), BRIG_VERSION);
	(void)str_copy(env->backend, sizeof(env->backend), r->backend);
	(void)str_copy(env->content, sizeof(env->content), r->packages.content);
	(void)str_copy(env->made_for, sizeof(env->made_for), r->packages.made_for);
	for (size_t i = 0; i < w->n_packages; i++)
		ok = ok && environment_add_word(&env->packages, &env->n_packages, w->packages[i]);
	for (size_t i = 0; i < w->n_warm; i++)
		ok = ok && environment_add_word(&env->warm, &env->n_warm, w->warm[i]);
	return ok ? 0 : err_nomem(err);
}

/* A key that no request has: from the name, the set, and the time. */
static int pin_set(struct store *s, struct environment *env, const char *set_key, struct store_key *ret,
		   struct brig_error *err)
{
	struct store_key from = { .kind = "" };
	struct store_key_maker m;
	int rc;

	(void)str_copy(from.kind, sizeof(from.kind), env->eco->name);
	if (!hex_get(set_key, from.hash, STORE_HASH_LEN))
		return err_set(err, BRIG_E_INTERNAL, 0, "the key of the packages is none");
	store_key_begin(&m, env->eco->name);
	store_key_text(&m, "environment", env->name);
	store_key_text(&m, "set", set_key);
	store_key_number(&m, "created", env->created_ns);
	store_key_end(&m, ret);
	(void)hex_put(env->key, ret->hash, STORE_HASH_LEN);
	rc = store_pin(s, &from, ret, err);
	if (rc == STORE_PIN_ABSENT)
		return err_set(err, BRIG_E_SYSTEM, 0,
			       "the packages were installed, but are no longer in the cache: it was pruned meanwhile");
	if (rc == STORE_PIN_FULL)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"environments would take more than three quarters of packages_size: remove one, or raise it");
	return rc;
}

static int pin_and_save(const struct statedir *dir, struct recorder *recorder, const struct settings *set,
			struct environment *env, const char *set_key, struct brig_error *err)
{
	struct store *s = NULL;
	struct store_key pin;
	bool gone;
	int rc;

	if (env->n_packages == 0)
		return environment_save(dir, env, err);
	rc = packages_open_store(recorder, set, &s, err);
	if (rc == 0)
		rc = environments_sweep(dir, s, err);
	if (rc == 0)
		rc = pin_set(s, env, set_key, &pin, err);
	if (rc == 0) {
		rc = environment_save(dir, env, err);
		if (rc < 0)
			(void)store_unpin(s, &pin, &gone, NULL);
	}
	store_close(s);
	return rc;
}

static int keep(const struct statedir *dir, struct recorder *recorder, const struct settings *set,
		const struct brig_environment *w, const struct ecosystem *e, struct result *r, struct brig_error *err)
{
	struct environment env = { .n_warm = 0 };
	int rc = environments_lock(dir, err);

	if (rc == 0)
		rc = environments_check_free(dir, w->name, err);
	if (rc == 0)
		rc = fill(&env, w, e, r, err);
	if (rc == 0)
		rc = pin_and_save(dir, recorder, set, &env, r->packages.key, err);
	environment_release(&env);
	if (rc == 0)
		(void)str_copy(r->environment, sizeof(r->environment), w->name);
	return rc;
}

int environment_create(const struct executor *x, const struct brig_environment *wish, struct result *ret,
		       struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_BUF program = BUF_INIT(PROGRAM_MAX);
	AUTO_STATEDIR dir = STATEDIR_INIT;
	const struct ecosystem *e = NULL;
	int rc = check_wish(wish, &e, err);

	if (rc < 0)
		return rc;
	if (!make_program(wish, e, &program))
		return err_nomem(err);
	if (environments_open(x->recorder, /* make= */ true, &dir, &why) < 0 ||
	    environments_check_free(&dir, wish->name, &why) < 0) {
		(void)end_with(ret, &why);
		return 0;
	}
	run(x, wish, e, &program, ret);
	if (judge(wish, ret) == 0 && keep(&dir, x->recorder, policy_base(x->policy), wish, e, ret, &why) < 0)
		(void)end_with(ret, &why);
	return 0;
}
