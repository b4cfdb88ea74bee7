/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages: installed in one cell, used in another.
 *
 * The install cell is a cell like any other, except that the egress proxy lets it connect to the registries, and
 * nothing else. It gets the files that list a project's dependencies, not the project; code that packages run during
 * installation runs there. When the cell is dead, all protections were kept and the requested packages are present, its
 * tree is copied to the store. The store key covers everything that determines the tree: the request, byte for byte,
 * the installer's script and environment, the runtime, the machine and its C library, the registry, and, of the cell,
 * the trust level and the protections missing on this host (see compile_cache.c for why). The cells that compile and
 * run the program have no network; they get the tree read-only and verified file by file at each use.
 *
 * If several requests need the same set, one installs it and the others wait (store_claim). The set stays in use, and
 * safe from eviction, until the request ends.
 *
 * Versions that are not pinned are resolved at installation and stay until the entry expires (packages_days).
 */
#include "executor/packages.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "executor/exchange.h"
#include "executor/outside.h"
#include "files/beneath.h"

#define RECIPE 2 /* to be incremented whenever the same key would mean another tree */
#define DAY_NS (86400 * NS_PER_SEC)

#define INSTALL_CONNECTIONS 10000 /* some registries close the connection after each file */

#define NAMES_SHOWN 5 /* of packages, in messages */

/* Precedes every script. Nothing in /tmp can be executed, which builds of packages need. */
#define PROLOGUE "umask 022\nmkdir -p " PACKAGES_OUT " tmp\n"
/* Follows every script: from a container, all of the workspace is transferred. */
#define EPILOGUE "rm -rf tmp\n"

bool packages_wanted(const struct brig_request *req)
{
	return req->n_packages > 0 || req->flags & BRIG_RUN_PROJECT_PACKAGES;
}

/* ---- requested packages -------------------------------------------------------------------------- */

const struct ecosystem *packages_ecosystem(const struct prepared_request *pr)
{
	const struct ecosystem *e = ecosystem_of_language(pr->subject.runtime);

	return !e && pr->workspace ? ecosystem_of_project(pr->workspace->fd) : e;
}

static int choose_ecosystem(struct packages *p, const struct packages_ask *ask, struct brig_error *err)
{
	const char *language = ask->request->subject.runtime;

	p->eco = packages_ecosystem(ask->request);
	if (!p->eco && ask->project)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the workspace has no requirements.txt, package.json or go.mod to take packages from");
	if (!p->eco)
		return err_set(err, BRIG_E_REFUSED, 0, "there are no packages for '%s': pip, npm and go have some",
			       language);
	return 0;
}

static int check_backend(const struct packages_ask *ask, struct brig_error *err)
{
	const struct settings *set = &ask->request->resolved.set;
	const struct backend_ops *ops = ask->chosen->ops;

	if (*set->rootfs || !ops->open_folder || !ops->listener || ops->brings_runtimes != (ops->identify != NULL))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "packages need the native backend with the host's own runtimes, or docker: not %s%s",
			       *set->rootfs ? "a rootfs" : "backend ", *set->rootfs ? "" : ops->name);
	return 0;
}

static int check_allowed(const struct packages_ask *ask, struct brig_error *err)
{
	if (!ask->request->resolved.set.packages)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the policy's 'packages: false' does not let requests have packages");
	if (check_backend(ask, err) < 0)
		return -err->code;
	if (ask->req->flags & BRIG_RUN_PROJECT_PACKAGES && !ask->project)
		return err_set(err, BRIG_E_USAGE, 0,
			       "the packages of a project are asked for, but there is no workspace");
	if (ask->req->n_packages > PACKAGES_WORDS_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "%zu packages are asked for; at most %d are accepted",
			       ask->req->n_packages, PACKAGES_WORDS_MAX);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int take_words(struct packages *p, const struct brig_request *req, struct brig_error *err)
{
	p->words = calloc(req->n_packages + 1, sizeof(*p->words));
	if (!p->words)
		return err_nomem(err);
	for (size_t i = 0; i < req->n_packages; i++) {
		int rc = packages_check_word(req->packages[i], err);

		if (rc < 0)
			return rc;
		p->words[i] = req->packages[i];
	}
	p->n_words = req->n_packages;
	if (p->n_words > 0)
		qsort(p->words, p->n_words, sizeof(*p->words), by_text);
	return 0;
}

static const char *policy_registry(const struct ecosystem *e, const struct settings *set)
{
	if (str_eq(e->setting, "pip_index"))
		return set->pip_index;
	return str_eq(e->setting, "npm_registry") ? set->npm_registry : set->go_proxy;
}

/* Variables by which the user tells an installer how much to verify. */
static void take_variables(struct packages *p)
{
	for (size_t i = 0; i < ARRAY_LEN(p->passed) && p->eco->pass_env[i]; i++) {
		const char *value = getenv(p->eco->pass_env[i]);

		if (value && strlen(value) <= PACKAGES_WORD_MAX)
			(void)snprintf(p->passed[i], sizeof(p->passed[i]), "%s=%s", p->eco->pass_env[i], value);
	}
}

static int gather(struct packages *p, const struct packages_ask *ask, struct brig_error *err)
{
	const struct settings *set = &ask->request->resolved.set;
	int rc = check_allowed(ask, err);

	if (rc == 0)
		rc = choose_ecosystem(p, ask, err);
	if (rc == 0)
		rc = take_words(p, ask->req, err);
	if (rc == 0 && ask->req->flags & BRIG_RUN_PROJECT_PACKAGES)
		rc = package_files_read(p->eco, ask->project, &p->files, err);
	if (rc == 0)
		rc = registry_find(p->eco, policy_registry(p->eco, set), &p->registry, err);
	if (rc < 0)
		return rc;
	take_variables(p);
	setting_list_copy(&p->hosts, &set->package_hosts);
	rc = registry_hosts(p->eco, &p->registry, &p->hosts, err);
	if (rc == 0 && egress_check(&p->hosts, err) < 0)
		return err_wrap(err, "package_hosts");
	return rc;
}

/* ---- the key ------------------------------------------------------------------------------------- */

static void add_words(struct store_key_maker *m, const char *name, const char *const *words, size_t n)
{
	store_key_number(m, name, n);
	for (size_t i = 0; i < n; i++)
		store_key_text(m, name, words[i]);
}

static size_t count_words(const char *const *words, size_t max)
{
	size_t n = 0;

	while (n < max && words[n])
		n++;
	return n;
}

/* Identifies the runtime: the image's, or the host's, which must have the installer if one is needed. */
static int identify(const struct packages *p, const struct packages_ask *ask, bool installs, enum lang_identity of,
		    struct buf *ret, struct brig_error *err)
{
	const struct selection *chosen = ask->chosen;
	const struct brig_request *req = ask->req;
	const struct backend_notice notify = { req->on_notice, req->user };
	char tool[PATH_MAX], image[128];
	int rc;

	if (chosen->ops->identify) {
		rc = chosen->ops->identify(chosen->host, ask->request->subject.runtime, &notify, image, sizeof(image),
					   err);
		return rc < 0 || buf_adds(ret, image) ? rc : err_nomem(err);
	}
	rc = installs ? ecosystem_find(p->eco, tool, sizeof(tool), err) : 0;
	if (rc < 0)
		return rc;
	ecosystem_tool(p->eco, tool, sizeof(tool));
	if (!lang_program_identity(tool, of, ret))
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot find out which %s this is", tool);
	return 0;
}

static void add_machine(struct store_key_maker *m, const char *backend, const struct buf *runtime,
			const struct utsname *host)
{
	store_key_add(m, "runtime", runtime->data, runtime->len);
	store_key_text(m, "machine", host->machine);
	store_key_text(m, "libc", gnu_get_libc_version());
	store_key_text(m, "backend", backend);
}

/* The machine that a set must have been made for to be of use in this cell. */
static int find_machine(struct packages *p, const struct packages_ask *ask, bool installs, enum lang_identity of,
			struct buf *runtime, struct utsname *host, struct brig_error *err)
{
	struct store_key_maker m;
	int rc = identify(p, ask, installs, of, runtime, err);

	if (rc < 0)
		return rc;
	if (uname(host) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot find out which machine this is");
	store_key_begin(&m, "machine");
	add_machine(&m, ask->chosen->ops->name, runtime, host);
	if (of == IDENTITY_HERE)
		store_key_end(&m, &p->made_for);
	return 0;
}

int packages_made_for(const struct ecosystem *e, const char *backend, enum lang_identity of,
		      char ret[STORE_HEX_LEN + 1], struct brig_error *err)
{
	AUTO_BUF runtime = BUF_INIT(4096);
	const struct backend_ops *ops;
	struct store_key_maker m;
	struct store_key key;
	struct utsname host;
	char tool[PATH_MAX];

	for (size_t i = 0; (ops = backend_at(i)) && !str_eq(ops->name, backend); i++)
		;
	if (!ops)
		return err_set(err, BRIG_E_REFUSED, 0, "there is no backend '%.16s' here", backend);
	if (ops->identify)
		return 0;
	ecosystem_tool(e, tool, sizeof(tool));
	if (uname(&host) < 0 || !lang_program_identity(tool, of, &runtime))
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot find out which %s this is", tool);
	store_key_begin(&m, "machine");
	add_machine(&m, backend, &runtime, &host);
	store_key_end(&m, &key);
	(void)hex_put(ret, key.hash, STORE_HASH_LEN);
	return 1;
}

static int make_key(struct packages *p, const struct packages_ask *ask, enum lang_identity of, struct store_key *ret,
		    struct brig_error *err)
{
	const struct ecosystem *e = p->eco;
	char kind[STORE_KIND_MAX + 1];
	AUTO_BUF runtime = BUF_INIT(4096);
	struct store_key_maker m;
	struct utsname host;
	int rc = find_machine(p, ask, /* installs= */ true, of, &runtime, &host, err);

	if (rc < 0)
		return rc;
	(void)snprintf(kind, sizeof(kind), "%s%s", of == IDENTITY_ANYWHERE ? EXCHANGE_PREFIX : "", e->name);
	store_key_begin(&m, kind);
	store_key_number(&m, "recipe", RECIPE);
	store_key_text(&m, "script", e->script);
	add_words(&m, "environment", e->install_env, count_words(e->install_env, ARRAY_LEN(e->install_env)));
	for (size_t i = 0; i < ARRAY_LEN(p->passed); i++)
		store_key_text(&m, "variable", p->passed[i]);
	add_words(&m, "packages", p->words, p->n_words);
	store_key_number(&m, "files", p->files.n);
	for (size_t i = 0; i < p->files.n; i++) {
		store_key_text(&m, "name", p->files.file[i].name);
		store_key_add(&m, "file", p->files.file[i].data, p->files.file[i].len);
	}
	store_key_text(&m, "registry", p->registry.url);
	add_machine(&m, ask->chosen->ops->name, &runtime, &host);
	store_key_text(&m, "trust", trust_name[ask->request->resolved.trust]);
	store_key_number(&m, "missing", p->missing);
	store_key_end(&m, ret);
	return 0;
}

/* ---- provision ----------------------------------------------------------------------------------- */

/*
 * Makes the tree available in the workspace, too, for tools that look only there. Not over a file or link of the
 * project, and not in a project to which nothing can be added.
 */
static bool can_be_beside(const struct packages *p, const struct packages_ask *ask)
{
	AUTO_FD fd = FD_NONE;
	struct stat st;

	if (!p->eco->beside)
		return false;
	if (!ask->project)
		return true;
	fd = beneath_look(ask->project->fd, p->eco->beside, &st);
	return fd < 0 ? fd == -ENOENT && !ask->project->read_only : S_ISDIR(st.st_mode);
}

static int stage_from_tree(struct packages *p, struct brig_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(p->eco->staged) && p->eco->staged[i]; i++) {
		AUTO_FD fd = beneath_open_file(p->tree.fd, p->eco->staged[i], NULL);
		struct buf *text = &p->staged_text[i];
		char piece[8192];
		ssize_t n = 0;

		if (fd == -ENOENT)
			continue;
		text->max = PACKAGES_TEXT_MAX;
		while (fd >= 0 && (n = fd_read_all(fd, piece, sizeof(piece))) > 0)
			(void)buf_add(text, piece, (size_t)n);
		if (fd < 0 || n < 0 || text->full || text->no_memory)
			return err_set(err, BRIG_E_SYSTEM, 0, "cannot read '%s' of the packages", p->eco->staged[i]);
		p->staged[p->provision.n_files++] = (struct plan_file){
			.name = p->eco->staged[i], .data = buf_str(text), .len = text->len, .mode = 0644
		};
	}
	p->provision.files = p->staged;
	return 0;
}

static int provide(struct packages *p, const struct packages_ask *ask, const char *content, struct brig_error *err)
{
	struct provision *v = &p->provision;

	*v = (struct provision){ .env = p->eco->run_env,
				 .n_env = count_words(p->eco->run_env, ARRAY_LEN(p->eco->run_env)),
				 .binds = p->bind,
				 .n_binds = 1,
				 .content = content };
	p->bind[0] = (struct plan_bind){ .source = p->tree.path, .target = p->eco->target };
	if (can_be_beside(p, ask)) {
		if (snprintf(p->beside_source, sizeof(p->beside_source), "%s/%s", p->tree.path, p->eco->beside) >=
		    (int)sizeof(p->beside_source))
			return err_set(err, BRIG_E_SYSTEM, ENAMETOOLONG, "cannot show %s", p->tree.path);
		(void)snprintf(p->beside_target, sizeof(p->beside_target), "%s/%s", PLAN_WORKSPACE, p->eco->beside);
		(void)snprintf(p->beside_same, sizeof(p->beside_same), "%s/%s", p->eco->target, p->eco->beside);
		p->bind[v->n_binds++] = (struct plan_bind){ .source = p->beside_source,
							    .target = p->beside_target,
							    .same_as = p->beside_same };
		v->beside = p->eco->beside;
	}
	return stage_from_tree(p, err);
}

static void note(struct packages *p, enum packages_state state, const struct store_info *info, struct result *res)
{
	struct result_packages *r = &res->packages;
	uint64_t now = clock_wall_ns();

	*r = (struct result_packages){ .state = state, .files = p->tree.files, .bytes = p->tree.bytes };
	(void)str_copy(r->ecosystem, sizeof(r->ecosystem), p->eco->name);
	(void)hex_put(r->key, p->key.hash, STORE_HASH_LEN);
	(void)hex_put(r->content, info->content, STORE_HASH_LEN);
	(void)hex_put(r->made_for, p->made_for.hash, STORE_HASH_LEN);
	r->missing = p->missing;
	r->age_ms = now > info->created_ns ? (now - info->created_ns) / NS_PER_MS : 0;
}

/* 1: found and ready. */
static int look_up(struct packages *p, const struct packages_ask *ask, enum packages_state state, struct result *res,
		   struct brig_error *err)
{
	struct store_info info = { .size = 0 };
	int rc = store_get_tree(p->store, &p->key, state != PACKAGES_HIT, &p->tree, &info, err);

	if (rc == STORE_DAMAGED)
		result_warn(res, "%s, and the packages are installed anew", err->msg);
	if (rc < 0 || rc != STORE_HIT)
		return rc < 0 ? rc : 0;
	store_release(p->store); /* releases the claim, so others may use the set */
	note(p, state, &info, res);
	rc = provide(p, ask, res->packages.content, err);
	return rc < 0 ? rc : 1;
}

int packages_open_store(struct recorder *recorder, const struct settings *set, struct store **ret,
			struct brig_error *err)
{
	const struct store_limits limits = { .bytes = set->packages_size, .ttl_ns = set->packages_days * DAY_NS };
	const struct statedir *dir;
	int rc = recorder_dir(recorder, &dir, err);

	return rc < 0 ? rc : store_open(dir, STORE_TREES, true, &limits, ret, err);
}

/* True if another host had the set and it is stored here now. */
static bool fetch(struct packages *p, const struct packages_ask *ask)
{
	struct brig_error err = BRIG_ERROR_INIT;

	return ask->exchange && ask->exchange->want && make_key(p, ask, IDENTITY_ANYWHERE, &p->shared, &err) == 0 &&
	       exchange_fetch(ask->exchange, p->store, &p->shared, &p->key, ask->req->cancel_fd);
}

int packages_begin(struct packages *p, const struct packages_ask *ask, struct result *res, struct brig_error *err)
{
	const struct settings *set = &ask->request->resolved.set;
	uint64_t begin = clock_now_ns(),
		 patience = set->startup_timeout_ms + set->install_timeout_ms + set->cleanup_timeout_ms;
	int rc;

	p->missing = res->degraded;
	rc = gather(p, ask, err);
	if (rc == 0)
		rc = make_key(p, ask, IDENTITY_HERE, &p->key, err);
	if (rc == 0)
		rc = packages_open_store(ask->recorder, set, &p->store, err);
	if (rc == 0)
		rc = store_claim(p->store, &p->key, patience, ask->req->cancel_fd, err);
	if (rc == STORE_CANCELLED)
		rc = err_set(err, BRIG_E_REFUSED, ECANCELED, "the caller gave up while the packages were waited for");
	if (rc >= 0)
		rc = look_up(p, ask, PACKAGES_HIT, res, err);
	if (rc == 0 && fetch(p, ask))
		rc = look_up(p, ask, PACKAGES_RECEIVED, res, err);
	res->phase_ns[PHASE_CACHE] += clock_now_ns() - begin;
	return rc;
}

/* ---- the set of an environment ------------------------------------------------------------------- */

/* The same conditions as for sets requested by packages, where they are part of the key. */
static int check_fits(const struct packages *p, const struct packages_ask *ask, const struct environment *env,
		      struct brig_error *err)
{
	enum trust trust = ask->request->resolved.trust;
	char made_for[STORE_HEX_LEN + 1];

	(void)hex_put(made_for, p->made_for.hash, STORE_HASH_LEN);
	if (!str_eq(env->backend, ask->chosen->ops->name))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "environment '%s' was made in cells of backend %s, and this run has one of %s",
			       env->name, env->backend, ask->chosen->ops->name);
	if (env->trust < trust)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"environment '%s' was made at trust '%s', and this run has trust '%s': use --trust %s, or "
			"make one at that trust",
			env->name, trust_name[env->trust], trust_name[trust], trust_name[env->trust]);
	if (env->missing & ~p->missing)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "environment '%s' was made in a cell with fewer protections than this run has; make it "
			       "again",
			       env->name);
	if (!str_eq(env->made_for, made_for))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "environment '%s' was made for another %s, or another C library, than cells have now; "
			       "make it again: brig env remove %s, then brig env create",
			       env->name, env->eco->languages[0], env->name);
	return 0;
}

/* Opens exactly the set that was kept, or fails. */
static int open_pin(struct packages *p, const struct environment *env, struct store_info *info, struct brig_error *err)
{
	char content[STORE_HEX_LEN + 1];
	int rc;

	(void)str_copy(p->key.kind, sizeof(p->key.kind), env->eco->name);
	if (!hex_get(env->key, p->key.hash, STORE_HASH_LEN))
		return err_set(err, BRIG_E_INTERNAL, 0, "the key of environment '%s' is none", env->name);
	rc = store_get_tree(p->store, &p->key, /* is_new= */ false, &p->tree, info, err);
	if (rc < 0)
		return rc;
	(void)hex_put(content, info->content, STORE_HASH_LEN);
	if (rc == STORE_HIT && str_eq(content, env->content))
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the packages of environment '%s' are %s; make it again: brig env remove %s, then brig env create",
		env->name, rc == STORE_MISS ? "not there any more" : "not what was kept", env->name);
}

int packages_take(struct packages *p, const struct packages_ask *ask, const struct environment *env, struct result *res,
		  struct brig_error *err)
{
	uint64_t begin = clock_now_ns();
	AUTO_BUF runtime = BUF_INIT(4096);
	struct store_info info = { .size = 0 };
	struct utsname host;
	int rc = check_backend(ask, err);

	p->missing = res->degraded;
	p->eco = env->eco;
	if (rc == 0)
		rc = find_machine(p, ask, /* installs= */ false, IDENTITY_HERE, &runtime, &host, err);
	if (rc == 0)
		rc = check_fits(p, ask, env, err);
	if (rc == 0)
		rc = packages_open_store(ask->recorder, &ask->request->resolved.set, &p->store, err);
	if (rc == 0)
		rc = open_pin(p, env, &info, err);
	if (rc == 0) {
		note(p, PACKAGES_HIT, &info, res);
		rc = provide(p, ask, res->packages.content, err);
	}
	res->phase_ns[PHASE_CACHE] += clock_now_ns() - begin;
	return rc;
}

/* ---- the install cell ---------------------------------------------------------------------------- */

static void add_env(struct install *i, size_t *n, const char *entry)
{
	if (*n < ARRAY_LEN(i->env) - 1)
		i->env[(*n)++] = entry;
}

/* The host's loopback, which is reached through the proxy, not the cell's. */
static bool is_loopback(const struct url *u)
{
	return strncmp(u->host, "127.", 4) == 0 || strncmp(u->host, "[::1]", 5) == 0 ||
	       strncasecmp(u->host, "localhost", 9) == 0;
}

/* By naming it, policy or user vouch for an http registry; pip must be told so. */
static void fill_registry_env(const struct packages *p, struct install *i, size_t *n)
{
	struct url u;

	(void)snprintf(i->registry_env, sizeof(i->registry_env), "%s=%s", p->eco->registry_env, p->registry.url);
	add_env(i, n, i->registry_env);
	if (!url_parse(p->registry.url, strlen(p->registry.url), &u))
		return;
	if (is_loopback(&u)) {
		add_env(i, n, "no_proxy=");
		add_env(i, n, "NO_PROXY=");
	}
	if (!str_eq(p->eco->name, "pip") || !u.plain)
		return;
	(void)snprintf(i->trusted_env, sizeof(i->trusted_env), "PIP_TRUSTED_HOST=%.*s", (int)u.host_len, u.host);
	add_env(i, n, i->trusted_env);
}

static size_t fill_env(const struct packages *p, struct install *i)
{
	size_t n = 0;

	for (const char *const *e = egress_env; *e; e++)
		add_env(i, &n, *e);
	add_env(i, &n, "TMPDIR=" PLAN_WORKSPACE "/tmp");
	for (size_t k = 0; k < ARRAY_LEN(p->eco->install_env) && p->eco->install_env[k]; k++)
		add_env(i, &n, p->eco->install_env[k]);
	for (size_t k = 0; k < ARRAY_LEN(p->passed); k++)
		if (p->passed[k][0])
			add_env(i, &n, p->passed[k]);
	fill_registry_env(p, i, &n);
	return n;
}

struct egress_rules packages_rules(const struct packages *p, const struct settings *set)
{
	struct egress_rules rules = outside_rules(&p->hosts, set);

	rules.connections = INSTALL_CONNECTIONS;
	rules.bytes = 4 * set->install_disk; /* archives, and data that is unpacked and discarded */
	return rules;
}

int packages_prepare_install(const struct packages *p, const struct packages_ask *ask, struct install *ret,
			     struct brig_error *err)
{
	static const char *const shell[] = { "/bin/sh", "-euc" };
	struct install_step step = {
		.argv = ret->argv, .env = ret->env, .files = p->files.file, .n_files = p->files.n, .hosts = &p->hosts
	};
	char *script;

	if (asprintf(&script, "%s%s%s", PROLOGUE, p->eco->script, EPILOGUE) < 0)
		return err_nomem(err);
	ret->script = script;
	for (size_t i = 0; i < ARRAY_LEN(shell); i++)
		ret->argv[step.n_argv++] = shell[i];
	ret->argv[step.n_argv++] = script;
	ret->argv[step.n_argv++] = "install";
	for (size_t i = 0; i < p->n_words; i++)
		ret->argv[step.n_argv++] = p->words[i];
	step.n_env = fill_env(p, ret);
	step.family = p->eco->family;
	step.deny_write_exec = p->eco->deny_write_exec;
	return prepare_install(ask->request, &step, &ret->prepared, err);
}

void install_release(struct install *i)
{
	prepared_release(&i->prepared);
	free(i->script);
	i->script = NULL;
}

/* "requests, numpy and 3 more"; the packages of a project go by the name of the file that lists them. */
static void put_names(const struct packages *p, const struct brig_request *req, char *dst, size_t size)
{
	AUTO_BUF text = BUF_INIT(1024);
	size_t shown = min_u64(p->n_words, NAMES_SHOWN);

	for (size_t i = 0; i < shown; i++)
		(void)buf_addf(&text, "%s%.60s", i ? ", " : "", p->words[i]);
	if (shown < p->n_words)
		(void)buf_addf(&text, " and %zu more", p->n_words - shown);
	if (req->flags & BRIG_RUN_PROJECT_PACKAGES)
		(void)buf_addf(&text, "%swhat %s names", shown ? " and " : "", p->eco->manifest);
	(void)str_copy(dst, size, buf_str(&text));
}

void packages_tell(const struct packages *p, const struct packages_ask *ask, uint64_t bytes, bool done)
{
	const struct brig_request *req = ask->req;
	uint64_t elapsed_ms = (clock_now_ns() - p->begun_ns) / NS_PER_MS;
	char names[512], text[640];
	struct brig_install now = { .size = sizeof(now),
				    .installer = p->eco->name,
				    .packages = names,
				    .elapsed_ms = elapsed_ms,
				    .bytes = bytes,
				    .done = done,
				    .kept_days = (uint32_t)ask->request->resolved.set.packages_days };

	put_names(p, req, names, sizeof(names));
	if (req->on_install) {
		req->on_install(req->user, &now);
	} else if (req->on_notice && bytes == 0 && !done) { /* at least report the start of something slow */
		(void)snprintf(text, sizeof(text), "installing %s with %s", names, p->eco->name);
		req->on_notice(req->user, text);
	}
}

void packages_hide_secrets(const struct packages *p, struct buf *out, struct buf *err)
{
	if (out->len > 0)
		registry_hide(&p->registry, out->data, out->len);
	if (err->len > 0)
		registry_hide(&p->registry, err->data, err->len);
}

int packages_harvest(void *packages, int tree, struct brig_error *err)
{
	struct packages *p = packages;
	int rc = packages_present(p->eco, p->words, p->n_words, &p->files, tree, err);

	if (rc < 0)
		return rc;
	p->import = (struct store_import){ .dir = tree, .entries = PACKAGES_ENTRIES_MAX };
	return store_put_tree(p->store, &p->key, &p->import, err) < 0 ? err_wrap(err, "the packages cannot be kept")
								      : 0;
}

int packages_end(struct packages *p, const struct packages_ask *ask, struct result *res, struct brig_error *err)
{
	uint64_t begin = clock_now_ns();
	int rc;

	if (p->import.links_out || p->import.special || p->import.gits)
		result_warn(res,
			    "the packages came with %llu links that lead out of them, %llu special files and %llu git "
			    "directories, which are left out",
			    (unsigned long long)p->import.links_out, (unsigned long long)p->import.special,
			    (unsigned long long)p->import.gits);
	rc = look_up(p, ask, PACKAGES_INSTALLED, res, err);
	res->phase_ns[PHASE_CACHE] += clock_now_ns() - begin;
	if (rc == 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the packages were installed, but are not there any more");
	if (rc > 0 && p->shared.kind[0])
		exchange_offer(ask->exchange, p->store, &p->key, &p->shared);
	if (rc > 0)
		packages_tell(p, ask, p->tree.bytes, /* done= */ true);
	return rc < 0 ? rc : 0;
}

/* The proxy names the setting that usually lists its hosts; replace it. */
static void adapt_fix(struct denied_row *d)
{
	static const char usual[] = " to whitelist";
	const char *at = strstr(d->fix, usual);
	char fix[sizeof(d->fix)];

	if (!at)
		return;
	(void)snprintf(fix, sizeof(fix), "%.*s to package_hosts in the policy%.40s", (int)min_u64(at - d->fix, 100),
		       d->fix, at + strlen(usual));
	(void)str_copy(d->fix, sizeof(d->fix), fix);
}

/* A host that is not allowed, or one that resolves to an address that its name alone does not permit. */
static bool explain_denied(const struct packages *p, struct result *res)
{
	const struct network_row *row = NULL;
	const char *fix = "";
	char what[192];

	for (size_t i = 0; i < res->network.n && !row; i++)
		if (!res->network.row[i].allowed && res->network.row[i].host[0])
			row = &res->network.row[i];
	if (row)
		(void)snprintf(what, sizeof(what), "%.180s:%u", row->host, row->port);
	for (size_t i = 0; i < res->denied.n; i++) {
		adapt_fix(&res->denied.row[i]);
		if (row && res->denied.row[i].kind == DENIED_HOST && str_eq(res->denied.row[i].what, what))
			fix = res->denied.row[i].fix;
	}
	if (row)
		(void)snprintf(res->reason, sizeof(res->reason),
			       "packages could not be installed: %s asked for %.150s, %.128s%s%.150s", p->eco->name,
			       what, row->end == NETWORK_NOT_PUBLIC ? row->reason : "which is not allowed",
			       fix[0] ? "; " : "", fix);
	return row;
}

void packages_explain(const struct packages *p, struct result *res, const struct buf *out, const struct buf *err)
{
	char why[RESULT_TEXT_MAX];

	if (explain_denied(p, res))
		return;
	if (res->verdict == VERDICT_error &&
	    (packages_trouble_of_hosts(p->eco, &res->network, why, sizeof(why)) ||
	     packages_trouble_of_words(p->eco, err->data, err->len, why, sizeof(why)) ||
	     packages_trouble_of_words(p->eco, out->data, out->len, why, sizeof(why)))) {
		(void)snprintf(res->reason, sizeof(res->reason), "packages could not be installed from %.100s: %.360s",
			       p->registry.shown, why);
		return;
	}
	(void)str_copy(why, sizeof(why), res->reason);
	(void)snprintf(res->reason, sizeof(res->reason), "packages could not be installed from %.150s: %s: %.200s",
		       p->registry.shown, p->eco->name, why);
}

void packages_release(struct packages *p)
{
	store_tree_close(&p->tree);
	store_close(MOVE_PTR(p->store));
	package_files_release(&p->files);
	for (size_t i = 0; i < ARRAY_LEN(p->staged_text); i++)
		buf_release(&p->staged_text[i]);
	free(p->words);
	p->words = NULL;
	p->eco = NULL;
}
