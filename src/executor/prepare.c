/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/prepare.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "egress/egress.h"

/* The default environment of every program; the language and then the request may replace entries. */
static const char *const common_env[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin:/run/brig/bin",
	"HOME=" PLAN_WORKSPACE,
	"TMPDIR=/tmp",
	"LANG=C.UTF-8",
	"USER=sandbox",
};

/*
 * Differences for runs in a project. HOME: files that tools store there are not changes of the project. EMAIL: for git
 * commits in repositories that configure none; the name is that of the cell's user. go: builds do not embed the state
 * of the repository, which would require git.
 */
static const char *const project_env[] = {
	"HOME=/tmp",
	"EMAIL=sandbox@localhost",
	"GOFLAGS=-buildvcs=false",
	"GOTOOLCHAIN=local",
	"npm_config_update_notifier=false",
	"npm_config_fund=false",
	"npm_config_audit=false",
};

/* For workspace_alias /home/user. */
static const char *const home_env[] = { "HOME=/home/user", "USER=user", "LOGNAME=user" };

protection_set prepare_degradable(const struct setting_list *names)
{
	protection_set set = 0;

	for (const char *item = NULL; (item = setting_list_next(names, item));) {
		enum protection p = protection_from_name(item);

		if (p != PROT_COUNT)
			set |= PROT_BIT(p);
	}
	return set;
}

/* The inspection does not see what a variable makes a program load or start. */
static int check_env(const struct brig_request *req, const struct policy_resolved *r, bool in_session,
		     struct brig_error *err)
{
	char why[256];

	for (size_t i = 0; i < req->n_env; i++) {
		if (!lang_env_is_refused(req->env[i], r->trust, in_session, why, sizeof(why)))
			continue;
		return err_set(err, BRIG_E_REFUSED, 0,
			       "environment variable '%.*s' is refused at trust '%s': %s; leave it out, %s",
			       (int)min_u64(strcspn(req->env[i], "="), 80), req->env[i], trust_name[r->trust], why,
			       r->set.max_trust == TRUST_TRUSTED
				       ? "or use --trust trusted"
				       : "for max_trust of the policy allows no trust that may set it");
	}
	return 0;
}

static int choose_id(const struct brig_request *req, char ret[RUN_ID_LEN + 1], struct brig_error *err)
{
	if (req->id)
		(void)str_copy(ret, RUN_ID_LEN + 1, req->id);
	else if (id_random(ret, RUN_ID_LEN) < 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the kernel gives no random numbers");
	return 0;
}

int prepare_piece(const struct policy_resolved *resolved, const struct brig_request *req, struct prepared_piece *ret,
		  struct brig_error *err)
{
	int rc = choose_id(req, ret->id, err);

	ret->resolved = resolved;
	if (rc == 0)
		rc = subject_begin(&ret->subject, req, err);
	if (rc == 0)
		rc = check_env(req, resolved, /* in_session= */ true, err);
	if (rc == 0)
		rc = subject_detect(&ret->subject, FD_NONE, err);
	if (rc == 0)
		(void)lang_source_name(ret->subject.lang, req->file_name, ret->source_name, sizeof(ret->source_name));
	return rc;
}

void prepared_piece_release(struct prepared_piece *p)
{
	subject_release(&p->subject);
}

int prepare_request(const struct policy *policy, const struct brig_request *req, struct prepared_request *ret,
		    struct brig_error *err)
{
	const struct settings *set = &ret->resolved.set;
	int rc = choose_id(req, ret->id, err);

	if (rc == 0)
		rc = subject_begin(&ret->subject, req, err);
	if (rc == 0)
		rc = policy_resolve(policy, req->trust, req->options, req->n_options, &ret->resolved, err);
	if (rc == 0)
		rc = check_env(req, &ret->resolved, req->kind == SUBJECT_SESSION, err);
	if (rc == 0 && req->files_fd)
		rc = workspace_from_archive(req->files_fd, req->cancel_fd, set, &ret->archive, err);
	if (rc == 0 && req->project_fd)
		rc = workspace_from_tree(req->project_fd, req->hidden, req->n_hidden, set, &ret->archive, err);
	if (rc == 0)
		rc = subject_detect(&ret->subject, ret->archive ? workspace_plan(ret->archive)->fd : FD_NONE, err);
	if (rc < 0)
		return rc;
	if (set->network_mode == NETWORK_ALLOWLIST && egress_check(&set->whitelist, err) < 0)
		return err_wrap(err, "whitelist");
	if (ret->subject.tests && set->workspace_mode == WORKSPACE_RO)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "test runs write a report into their workspace: workspace_mode ro is not for them");
	ret->lang = ret->subject.lang;
	(void)lang_source_name(ret->lang, req->file_name, ret->source_name, LANG_NAME_MAX + 1);
	ret->source_mode = 0644;
	ret->may_degrade = prepare_degradable(&set->allow_degraded);
	return 0;
}

void prepared_request_release(struct prepared_request *pr)
{
	subject_release(&pr->subject);
	workspace_close(MOVE_PTR(pr->archive));
}

static struct limits run_limits(const struct settings *s)
{
	return (struct limits){
		.cpu_percent = s->cpu_quota_percent,
		.cpu_time_ms = s->cpu_time_ms,
		.memory_bytes = s->mem_limit,
		.pids = s->pids_limit,
		.disk_bytes = s->disk_limit,
		.inodes = s->inodes_limit,
		.output_bytes = s->output_limit,
		.open_files = s->open_files,
		.startup_ms = s->startup_timeout_ms,
		.wall_ms = s->execution_timeout_ms,
		.cleanup_ms = s->cleanup_timeout_ms,
	};
}

/* A session lives long; what runs in it has the limits of a run, which the session's owner enforces. */
static struct limits session_limits(const struct settings *s)
{
	struct limits l = run_limits(s);

	l.wall_ms = s->session_timeout_ms;
	l.cpu_time_ms = s->session_cpu_time_ms;
	return l;
}

/* A compile step has disk and memory sizes of its own; all other limits are those of the run. */
static struct limits compile_limits(const struct settings *s)
{
	struct limits l = run_limits(s);

	l.cpu_percent = s->compile_cpu_percent;
	l.wall_ms = s->compile_timeout_ms;
	l.cpu_time_ms = s->compile_timeout_ms * max_u64(s->compile_cpu_percent / 100, 1);
	l.memory_bytes = s->compile_memory;
	l.disk_bytes = s->compile_disk;
	l.pids = s->compile_pids;
	l.inodes = max_u64(l.inodes, 16384);
	return l;
}

/* So does an install step, which combines compiling and downloading. */
static struct limits install_limits(const struct settings *s)
{
	struct limits l = compile_limits(s);

	l.wall_ms = s->install_timeout_ms;
	l.cpu_time_ms = s->install_timeout_ms * max_u64(s->compile_cpu_percent / 100, 1);
	l.memory_bytes = s->install_memory;
	l.disk_bytes = s->install_disk;
	l.inodes = max_u64(l.inodes, 1000000);
	return l;
}

static void raise_to(struct limits *most, const struct limits *l)
{
#define RAISE(field) most->field = max_u64(most->field, l->field)
	RAISE(cpu_percent);
	RAISE(cpu_time_ms);
	RAISE(memory_bytes);
	RAISE(pids);
	RAISE(disk_bytes);
	RAISE(inodes);
	RAISE(output_bytes);
	RAISE(open_files);
	RAISE(startup_ms);
	RAISE(wall_ms);
	RAISE(cleanup_ms);
#undef RAISE
}

void prepare_raise_limits(struct limits *most, const struct settings *set)
{
	const struct limits each[] = { run_limits(set), session_limits(set), compile_limits(set), install_limits(set) };

	for (size_t i = 0; i < ARRAY_LEN(each); i++)
		raise_to(most, &each[i]);
}

/* Appends, or replaces the entry of the same name. */
static bool env_put(const char **envp, size_t *n, const char *entry)
{
	size_t name_len = strcspn(entry, "=");

	for (size_t i = 0; i < *n; i++)
		if (strncmp(envp[i], entry, name_len + 1) == 0) {
			envp[i] = entry;
			return true;
		}
	if (*n == PREPARED_ENV_MAX)
		return false;
	envp[(*n)++] = entry;
	return true;
}

/* Combines two values so that packages are found before those of a virtual environment. */
static const char *join_path(struct prepared *p, size_t n, const char *entry)
{
	static const char name[] = "PYTHONPATH=";

	for (size_t i = 0; i < n && strncmp(entry, name, strlen(name)) == 0 && !p->joined; i++)
		if (strncmp(p->envp[i], name, strlen(name)) == 0 &&
		    asprintf(&p->joined, "%s:%s", entry, p->envp[i] + strlen(name)) < 0)
			p->joined = NULL;
	return p->joined && strncmp(entry, name, strlen(name)) == 0 ? p->joined : entry;
}

/* req: for a run; NULL: for a compile step. */
static int fill_env(struct prepared *p, const struct lang_step *step, const struct prepared_request *pr,
		    const struct brig_request *req, bool egress, struct brig_error *err)
{
	const struct provision *more = pr->provision;
	bool in_project = req && pr->workspace;
	bool is_home =
		/* not for images */
		pr->resolved.set.workspace_alias == WORKSPACE_HOME_USER && !pr->brings_runtimes;
	size_t n = 0;
	bool ok = true;

	p->envp = calloc(PREPARED_ENV_MAX + 1, sizeof(*p->envp));
	if (!p->envp)
		return err_nomem(err);
	for (size_t i = 0; i < ARRAY_LEN(common_env); i++)
		ok = ok && env_put(p->envp, &n, common_env[i]);
	for (size_t i = 0; is_home && i < ARRAY_LEN(home_env); i++)
		ok = ok && env_put(p->envp, &n, home_env[i]);
	for (size_t i = 0; in_project && i < ARRAY_LEN(project_env); i++)
		ok = ok && env_put(p->envp, &n, project_env[i]);
	for (size_t i = 0; req && pr->venv_env && pr->venv_env[i]; i++)
		ok = ok && env_put(p->envp, &n, pr->venv_env[i]);
	for (size_t i = 0; egress && egress_env[i]; i++)
		ok = ok && env_put(p->envp, &n, egress_env[i]);
	for (size_t i = 0; egress && pr->certificates && i < pr->certificates->n_env; i++)
		ok = ok && env_put(p->envp, &n, pr->certificates->env[i]);
	for (size_t i = 0; i < LANG_ENV_MAX && step->env[i]; i++)
		ok = ok && env_put(p->envp, &n, step->env[i]);
	for (size_t i = 0; more && i < more->n_env; i++)
		ok = ok && env_put(p->envp, &n, join_path(p, n, more->env[i]));
	for (size_t i = 0; req && i < req->n_env; i++)
		ok = ok && env_put(p->envp, &n, req->env[i]);
	if (!ok)
		return err_set(err, BRIG_E_USAGE, 0, "more than %d environment variables", PREPARED_ENV_MAX);
	return 0;
}

/* extra: number of request arguments that follow the command's own words. */
static int fill_argv(struct prepared *p, const char *const *args, size_t extra, struct brig_error *err)
{
	if (extra > PREPARED_ARGS_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "more than %d arguments", PREPARED_ARGS_MAX);
	p->argv = calloc(p->command.argc + extra + 1, sizeof(*p->argv));
	if (!p->argv)
		return err_nomem(err);
	memcpy(p->argv, p->command.argv, p->command.argc * sizeof(*p->argv));
	for (size_t i = 0; i < extra; i++)
		p->argv[p->command.argc + i] = args[i];
	return 0;
}

/* The index behind the source in the command's words: linkers search libraries only for what precedes them. */
static size_t behind_source(const struct prepared *p, const char *source)
{
	for (size_t i = 1; i < p->command.argc; i++)
		if (strncmp(p->argv[i], PLAN_WORKSPACE "/", strlen(PLAN_WORKSPACE "/")) == 0 &&
		    str_eq(p->argv[i] + strlen(PLAN_WORKSPACE "/"), source))
			return i + 1;
	return p->command.argc;
}

/* The compiler gets files of the project in addition to the source. */
static int add_sources(struct prepared *p, const char *source, const struct brig_request *req, struct brig_error *err)
{
	AUTO_BUF words = BUF_INIT(BRIG_STRINGS_MAX + req->n_sources * sizeof(PLAN_WORKSPACE "/"));
	size_t at = behind_source(p, source);
	const char **argv = calloc(p->command.argc + req->n_sources + 1, sizeof(*argv));

	for (size_t i = 0; i < req->n_sources; i++)
		(void)(buf_addf(&words, PLAN_WORKSPACE "/%s", req->sources[i]) && buf_add(&words, "", 1));
	p->sources = argv && !words.full ? buf_take(&words) : NULL;
	if (!p->sources) {
		free(argv);
		return err_nomem(err);
	}
	memcpy(argv, p->argv, at * sizeof(*argv));
	argv[at] = p->sources;
	for (size_t i = 1; i < req->n_sources; i++)
		argv[at + i] = argv[at + i - 1] + strlen(argv[at + i - 1]) + 1;
	memcpy(argv + at + req->n_sources, p->argv + at, (p->command.argc - at) * sizeof(*argv));
	free(p->argv);
	p->argv = argv;
	return 0;
}

int prepared_provide(struct prepared *p, const struct provision *v, bool is_run, struct brig_error *err)
{
	struct plan *plan = &p->plan;
	size_t n_files = is_run ? 0 : v->n_files;

	if (v->n_binds > PREPARED_BINDS_MAX - plan->n_binds || n_files > PREPARED_FILES_MAX - plan->n_files)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"packages need %zu folders and %zu files in the cell of the %s step, beside %zu and %zu that "
			"are there: there is room for %d and %d; ask for fewer packages at once",
			v->n_binds, n_files, plan->step, plan->n_binds, plan->n_files, PREPARED_BINDS_MAX,
			PREPARED_FILES_MAX);
	for (size_t i = 0; i < v->n_binds; i++)
		p->binds[plan->n_binds++] = v->binds[i];
	for (size_t i = 0; i < n_files; i++)
		p->files[plan->n_files++] = v->files[i];
	return 0;
}

/*
 * What a compile step sees of the project besides the source; nothing if files of packages (go.mod) take the place of
 * the project's own.
 */
static const struct plan_workspace *sources_shown(const struct prepared_request *pr, const struct brig_request *req)
{
	bool replaced = pr->provision && pr->provision->n_files > 0 && !(req->flags & BRIG_RUN_PROJECT_PACKAGES);

	return replaced ? NULL : pr->sources;
}

/* The path of the source in the cell of the step that reads it. */
static const char *source_shown(const struct prepared_request *pr, const struct brig_request *req)
{
	const char *slash = strrchr(pr->source_name, '/');

	return pr->lang->compiles && slash && !sources_shown(pr, req) ? slash + 1 : pr->source_name;
}

static int fill_way_out(struct prepared *p, const struct prepared_request *pr, const struct setting_list *hosts,
			struct brig_error *err)
{
	p->way_out.certificates = pr->certificates && pr->certificates->file.data ? &pr->certificates->file : NULL;
	return egress_places(hosts, &p->way_out, err);
}

/* A step of the request that a plan is made for. */
struct planned_step {
	const struct prepared_request *pr;
	const struct brig_request *req;
	const struct lang_step *step;
	const char *name;
	bool is_run; /* otherwise it compiles */
	bool egress;
	const struct plan_workspace *workspace; /* NULL: none is shown */
	const struct language *lang;
};

static struct planned_step plan_step(const struct prepared_request *pr, const struct brig_request *req,
				     const struct lang_step *step, const char *name)
{
	struct planned_step s = { .pr = pr, .req = req, .step = step, .name = name, .is_run = str_eq(name, "run") };

	s.egress = s.is_run && pr->resolved.set.network_mode == NETWORK_ALLOWLIST;
	s.workspace = s.is_run ? pr->workspace : sources_shown(pr, req);
	s.lang = s.workspace && pr->run_lang ? pr->run_lang : pr->subject.lang;
	return s;
}

/* Fills in arguments, variables and sockets of *ret. */
static int fill_command(const struct planned_step *s, struct prepared *ret, struct brig_error *err)
{
	const struct prepared_request *pr = s->pr;
	const struct settings *set = &pr->resolved.set;
	const struct subject_place place = { .set = set, .own_path = pr->venv_env, .in_image = pr->brings_runtimes };
	const char *source = source_shown(pr, s->req);
	struct subject what = pr->subject;
	size_t skip;
	int rc;

	what.lang = s->lang;
	rc = subject_command(&what, s->step, source, &place, &ret->command, &skip, err);
	if (rc == 0)
		rc = fill_argv(ret, what.args + skip, s->is_run ? what.n_args - skip : 0, err);
	if (rc == 0 && !s->is_run && s->workspace && s->req->n_sources > 0)
		rc = add_sources(ret, source, s->req, err);
	if (rc == 0)
		rc = fill_env(ret, s->step, pr, s->is_run ? s->req : NULL, s->egress, err);
	return rc == 0 && s->egress ? fill_way_out(ret, pr, &set->whitelist, err) : rc;
}

/* Fills in limits and permissions. */
static void fill_limits(const struct planned_step *s, struct plan *plan)
{
	const struct settings *set = &s->pr->resolved.set;
	bool is_strict = set->seccomp_profile == SECCOMP_PROFILE_STRICT;

	plan->trust = s->pr->resolved.trust;
	plan->limits = !s->is_run                        ? compile_limits(set)
		       : s->req->kind == SUBJECT_SESSION ? session_limits(set)
							 : run_limits(set);
	plan->disk_io_bps = limits_disk_io(set) ? set->disk_io_bps : 0;
	plan->rootfs = set->rootfs;
	plan->uid = s->pr->uid;
	plan->gid = s->pr->gid;
	plan->family = s->step->family;
	plan->profile = set->seccomp_profile;
	/* The program may start any other, and some use a JIT compiler; `strict` is for those that do not. */
	plan->deny_write_exec = s->step->deny_write_exec && (!s->is_run || is_strict);
	plan->workspace_exec = set->workspace_exec || !s->is_run;
	plan->workspace_alias = set->workspace_alias;
	plan->may_degrade = s->pr->may_degrade;
	plan->report_denied = set->report_denied;
}

static void fill_binds(const struct planned_step *s, struct prepared *ret)
{
	struct plan *plan = &ret->plan;

	if (ret->command.tool_target[0])
		ret->binds[plan->n_binds++] =
			(struct plan_bind){ .source = ret->command.tool, .target = ret->command.tool_target };
	for (size_t i = 0; s->is_run && i < s->pr->n_venv_binds && plan->n_binds < PREPARED_BINDS_MAX; i++)
		ret->binds[plan->n_binds++] = s->pr->venv_binds[i];
}

static int fill_plan(const struct planned_step *s, struct prepared *ret, struct brig_error *err)
{
	const struct prepared_request *pr = s->pr;
	struct plan *plan = &ret->plan;
	int rc = fill_command(s, ret, err);

	if (rc < 0)
		return rc;
	*plan = (struct plan){
		.step = s->name,
		.language = pr->subject.runtime,
		.output = s->is_run ? NULL : s->lang->output_name,
		.session = s->req->kind == SUBJECT_SESSION,
		.argv = ret->argv,
		.envp = ret->envp,
		.start_at_once = !s->egress, /* with egress, it starts once its proxy is ready */
		.egress = s->egress ? &ret->way_out : NULL,
		.files = ret->files,
		.warm = s->is_run ? pr->warm : NULL,
		.environment = s->is_run ? pr->environment : NULL,
		.binds = ret->binds,
		.workspace = s->workspace,
		.wants_view = s->is_run && pr->wants_view,
	};
	(void)snprintf(plan->id, sizeof(plan->id), "%s", pr->id);
	fill_limits(s, plan);
	if (ret->file.name)
		ret->files[plan->n_files++] = ret->file;
	fill_binds(s, ret);
	/* A mounted project has its own copies of the files that packages would add. */
	return pr->provision ? prepared_provide(ret, pr->provision, s->is_run || s->workspace, err) : 0;
}

int prepare_compile(const struct prepared_request *pr, const struct brig_request *req, struct prepared *ret,
		    struct brig_error *err)
{
	struct lang_step step = pr->lang->compile;
	const struct planned_step planned = plan_step(pr, req, &step, "compile");

	ret->file = (struct plan_file){
		.name = source_shown(pr, req), .data = req->code, .len = req->code_len, .mode = 0644
	};
	if (sources_shown(pr, req) && pr->lang->project_argv[0] && req->n_sources == 0)
		memcpy(step.argv, pr->lang->project_argv, sizeof(step.argv));
	return fill_plan(&planned, ret, err);
}

int prepare_run(const struct prepared_request *pr, const struct brig_request *req, const struct buf *compiled,
		struct prepared *ret, struct brig_error *err)
{
	const struct language *lang = pr->run_lang ? pr->run_lang : pr->lang;
	const struct planned_step planned = plan_step(pr, req, &pr->lang->run, "run");
	int rc;

	if (req->kind == BRIG_KIND_CODE)
		ret->file = (struct plan_file){
			.name = pr->source_name, .data = req->code, .len = req->code_len, .mode = pr->source_mode
		};
	if (pr->subject.tests)
		ret->file = pr->subject.tests->run.file;
	if (compiled)
		ret->file = (struct plan_file){
			.name = lang->output_name, .data = compiled->data, .len = compiled->len, .mode = 0755
		};
	rc = fill_plan(&planned, ret, err);
	if (pr->subject.tests && !pr->subject.tests->run.on_stdout)
		ret->plan.output = pr->subject.tests->run.name[1];
	return rc;
}

static int fill_install_env(struct prepared *p, const struct install_step *step, const struct certificates *trusted,
			    struct brig_error *err)
{
	size_t n = 0;

	p->envp = calloc(PREPARED_ENV_MAX + 1, sizeof(*p->envp));
	if (!p->envp)
		return err_nomem(err);
	for (size_t i = 0; i < ARRAY_LEN(common_env); i++)
		(void)env_put(p->envp, &n, common_env[i]);
	for (size_t i = 0; i < step->n_env; i++)
		(void)env_put(p->envp, &n, step->env[i]);
	for (size_t i = 0; trusted && i < trusted->n_env; i++)
		(void)env_put(p->envp, &n, trusted->env[i]);
	return 0;
}

int prepare_install(const struct prepared_request *pr, const struct install_step *step, struct prepared *ret,
		    struct brig_error *err)
{
	const struct settings *set = &pr->resolved.set;
	int rc = fill_argv(ret, step->argv, step->n_argv, err);

	if (rc == 0)
		rc = fill_install_env(ret, step, pr->certificates, err);
	if (rc == 0)
		rc = fill_way_out(ret, pr, step->hosts, err);
	if (rc < 0)
		return rc;
	ret->plan = (struct plan){
		.step = "install",
		.language = pr->subject.runtime,
		.trust = pr->resolved.trust,
		.limits = install_limits(set),
		.disk_io_bps = limits_disk_io(set) ? set->disk_io_bps : 0,
		.rootfs = set->rootfs,
		.uid = pr->uid,
		.gid = pr->gid,
		.family = step->family,
		.profile = set->seccomp_profile,
		.deny_write_exec = step->deny_write_exec,
		.workspace_exec = true,
		.argv = ret->argv,
		.envp = ret->envp,
		.files = step->files,
		.n_files = step->n_files,
		.wants_view = pr->brings_runtimes, /* its output can be transferred */
		.egress = &ret->way_out,           /* starts once its proxy is ready */
		.report_denied = true,             /* a denied host is the usual cause of failures */
		.may_degrade = pr->may_degrade,
	};
	(void)snprintf(ret->plan.id, sizeof(ret->plan.id), "%s", pr->id);
	return 0;
}

void prepared_release(struct prepared *p)
{
	free(p->argv);
	free(p->envp);
	free(p->joined);
	free(p->sources);
	p->joined = p->sources = NULL;
	p->argv = p->envp = NULL;
}
