/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the environment of a run, and manages the existing ones.
 *
 * An environment gives a set of packages a name. A run that names it gets exactly the set that was installed when the
 * environment was created: nothing is resolved or installed again, and only removing the environment removes the set
 * (store_pin). The set is mounted, verified and recorded like one that a request asks for by packages. The policy's
 * `environments` says which names requests may use; whether they may request packages does not matter here.
 *
 * The warm-up list changes no run: it is passed with the plan, for warm cells.
 */
#include "executor/environment.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "executor/environment_files.h"
#include "executor/packages.h"

/* ---- what a run uses ----------------------------------------------------------------------------- */

static int check_wish(const struct policy_resolved *r, const struct brig_request *req, struct brig_error *err)
{
	const char *name = req->environment;
	char allowed[160];

	if (!environment_is_name(name))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.80s' is no name of an environment: these have lower-case letters, digits and ._-",
			       name);
	if (packages_wanted(req))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"packages and an environment exclude each other: make an environment that has all of them");
	if (setting_list_has(&r->set.environments, ENVIRONMENT_ANY) || setting_list_has(&r->set.environments, name))
		return 0;
	(void)policy_value_text(&r->set, SET_environments, allowed, sizeof(allowed));
	return err_set(err, BRIG_E_REFUSED, 0,
		       "environment '%s' is none of those that the policy lets trust '%s' use: %s (environments, %s)",
		       name, trust_name[r->trust], *allowed ? allowed : "there is none",
		       r->origin[SET_environments].place);
}

static int load_named(const char *name, struct recorder *recorder, struct environment *ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	int rc = environments_open(recorder, /* make= */ false, &dir, err);

	if (rc < 0)
		return rc;
	rc = dir.fd < 0 ? err_set(&why, BRIG_E_REFUSED, ENOENT, "there is none")
			: environment_load(&dir, name, ret, &why);
	if (rc < 0 && why.sys == ENOENT)
		return environment_unknown(&dir, name, err);
	if (rc < 0)
		*err = why;
	return rc;
}

/* Named by the request, in which case it must fit, or by the policy, which applies to all languages. */
static int find_named(struct used_environment *u, const struct prepared_request *pr, const struct brig_request *req,
		      struct recorder *recorder, struct brig_error *err)
{
	const struct ecosystem *own = ecosystem_of_language(pr->subject.runtime);
	const char *name = req->environment ? req->environment : pr->resolved.set.environment;
	int rc;

	if (str_eq(name, ENVIRONMENT_NONE) || !*name || (!req->environment && packages_wanted(req)))
		return 0;
	rc = req->environment ? check_wish(&pr->resolved, req, err) : 0;
	if (rc == 0)
		rc = load_named(name, recorder, &u->env, err);
	if (rc < 0 || own == u->env.eco)
		return rc;
	if (req->environment && own)
		return err_set(err, BRIG_E_REFUSED, 0, "environment '%s' is for %s, and this is a program in %s", name,
			       u->env.eco->languages[0], pr->subject.runtime);
	if (!req->environment)
		environment_release(&u->env);
	return 0;
}

static void add_module(struct buf *list, const char *module)
{
	(void)buf_addf(list, "%s%s", list->len ? "," : "", module);
}

int environment_find(struct used_environment *ret, const struct prepared_request *pr, const struct brig_request *req,
		     struct recorder *recorder, struct brig_error *err)
{
	const struct setting_list *warm = &pr->resolved.set.warm;
	int rc = find_named(ret, pr, req, recorder, err);

	if (rc < 0)
		return rc;
	ret->warm.max = (size_t)WARM_MODULES_MAX * (WARM_MODULE_MAX + 1);
	for (size_t i = 0; i < ret->env.n_warm; i++)
		add_module(&ret->warm, ret->env.warm[i]);
	if (!ret->env.eco && str_eq(pr->subject.runtime, "python"))
		for (const char *item = NULL; (item = setting_list_next(warm, item));)
			add_module(&ret->warm, item);
	return ret->warm.no_memory ? err_nomem(err) : 0;
}

void environment_drop(struct used_environment *u)
{
	environment_release(&u->env);
	buf_release(&u->warm);
}

/* ---- management ---------------------------------------------------------------------------------- */

static enum environment_set find_set(const struct environment *env, const struct store_list *sets)
{
	struct store_key key;

	if (env->n_packages == 0 || !environment_key(env, &key))
		return ENVIRONMENT_NO_SET;
	for (size_t i = 0; i < sets->n; i++)
		if (memcmp(sets->row[i].key.hash, key.hash, sizeof(key.hash)) == 0)
			return ENVIRONMENT_SET_THERE;
	return ENVIRONMENT_SET_MISSING;
}

static int show_one(const struct statedir *dir, const char *name, const struct store_list *sets,
		    environment_row_fn each, void *arg, struct brig_error *err)
{
	struct environment_row row = { .name = name };
	struct brig_error why = BRIG_ERROR_INIT;
	struct environment env;
	int rc;

	if (environment_load(dir, name, &env, &why) < 0)
		row.problem = why.msg;
	else
		row.env = &env;
	if (why.sys == ENOENT) /* removed since the folder was read */
		return 0;
	row.set = row.env ? find_set(&env, sets) : ENVIRONMENT_NO_SET;
	rc = each(arg, &row, err);
	environment_release(&env);
	return rc;
}

int environment_each(struct recorder *recorder, const struct settings *set, const char *name, environment_row_fn each,
		     void *arg, struct brig_error *err)
{
	struct environment_names names = { .n = 0 };
	struct store_list sets = { .row = NULL };
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct store *s = NULL;
	bool found = false;
	int rc = environments_open(recorder, /* make= */ false, &dir, err);

	if (rc == 0 && dir.fd >= 0)
		rc = environments_names(&dir, &names, err);
	if (rc == 0 && names.n > 0)
		rc = packages_open_store(recorder, set, &s, err);
	if (rc == 0 && s)
		rc = store_list(s, &sets, err);
	for (size_t i = 0; rc == 0 && i < names.n; i++)
		if (!name || str_eq(names.name[i], name)) {
			found = true;
			rc = show_one(&dir, names.name[i], &sets, each, arg, err);
		}
	if (rc == 0 && name && !found)
		rc = environment_unknown(&dir, name, err);
	store_list_release(&sets);
	store_close(s);
	environments_names_release(&names);
	return rc;
}

/* To be called after removing the document: removes its pin, and unreferenced ones. */
static int remove_set(const struct statedir *dir, struct recorder *recorder, const struct settings *set,
		      const struct environment *env, enum environment_left *ret, struct brig_error *err)
{
	struct store *s = NULL;
	struct store_key key;
	bool gone = true;
	int rc = packages_open_store(recorder, set, &s, err);

	if (rc == 0 && env->n_packages > 0 && environment_key(env, &key)) {
		rc = store_unpin(s, &key, &gone, err);
		*ret = gone ? ENVIRONMENT_LEFT_GONE : ENVIRONMENT_LEFT_KEPT;
	}
	if (rc == 0)
		rc = environments_sweep(dir, s, err);
	store_close(s);
	return rc;
}

int environment_remove(struct recorder *recorder, const struct settings *set, const char *name,
		       enum environment_left *ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct environment env = { .n_warm = 0 };
	int rc = environments_open(recorder, /* make= */ false, &dir, err);

	*ret = ENVIRONMENT_LEFT_NOTHING;
	if (rc < 0)
		return rc;
	if (dir.fd < 0 || !environment_is_name(name)) /* the name is part of a path */
		return environment_unknown(&dir, name, err);
	rc = environments_lock(&dir, err);
	if (rc < 0)
		return rc;
	if (environment_load(&dir, name, &env, &why) < 0 && why.sys == ENOENT)
		return environment_unknown(&dir, name, err);
	rc = environment_unlink(&dir, name, err);
	if (rc == 0)
		rc = remove_set(&dir, recorder, set, &env, ret, err);
	environment_release(&env);
	return rc;
}
