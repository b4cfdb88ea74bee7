/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/work.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/pack.h"
#include "files/place.h"

#define PAGE_BYTES    4096 /* memory that a small file occupies in an in-memory file system */
#define DIFF_MAX      (512 * KiB)
#define SKIPPED_SHOWN 5 /* changes that were not applied, each a warning */

/* ---- before the cell --------------------------------------------------------------------------- */

#define APART_ROOM (LANG_NAME_MAX - (int)sizeof("brig--") + 1 - RUN_ID_LEN)

/* "brig-<id>-<name>", keeping the end of a name that is too long, since toolchains look at the extension. */
static void name_apart(char dst[LANG_NAME_MAX + 1], const char *id, const char *name)
{
	size_t len = strlen(name);

	if (len > (size_t)APART_ROOM)
		name += len - (size_t)APART_ROOM;
	while ((*name & 0xc0) == 0x80) /* do not start within a character */
		name++;
	(void)snprintf(dst, LANG_NAME_MAX + 1, "brig-%.*s-%.*s", RUN_ID_LEN, id, APART_ROOM, name);
}

/* Finds a name that hides nothing of the project in the folder of path. */
static bool name_free(const struct work *w, const char *id, const char *path, char dst[LANG_PATH_MAX + 1])
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash + 1 - path) : 0;
	char apart[LANG_NAME_MAX + 1];
	unsigned mode;

	if (workspace_at(w->project, path, NULL, 0, &mode) == WORKSPACE_ABSENT)
		return str_copy(dst, LANG_PATH_MAX + 1, path);
	name_apart(apart, id, path + folder);
	return snprintf(dst, LANG_PATH_MAX + 1, "%.*s%s", folder, path, apart) <= LANG_PATH_MAX;
}

/* If the program is a file of the project, it runs in place, next to its neighbours. */
static bool find_in_place(const struct work *w, const struct prepared_request *pr, char path[LANG_PATH_MAX + 1],
			  unsigned *ret_mode)
{
	const char *given = w->req->source_path ? w->req->source_path : pr->source_name;
	const char *slash = strrchr(given, '/');

	/* Not if its name had to be changed: a toolchain would take the original one for an option or skip it. */
	return str_eq(slash ? slash + 1 : given, pr->source_name) && str_copy(path, LANG_PATH_MAX + 1, given) &&
	       workspace_at(w->project, path, w->req->code, w->req->code_len, ret_mode) == WORKSPACE_SAME;
}

/* A compiler works on a copy, of which only its output is ever read. */
static void show_sources(struct work *w, struct prepared_request *pr)
{
	const char *needed = pr->lang->project_file;
	unsigned mode;

	if (needed && w->req->n_sources == 0 && workspace_at(w->project, needed, NULL, 0, &mode) == WORKSPACE_ABSENT)
		return;
	w->sources = *workspace_plan(w->project);
	w->sources.covered = pr->source_name;
	w->sources.read_only = false;
	pr->sources = &w->sources;
}

static void name_output(struct work *w, struct prepared_request *pr)
{
	const char *slash = pr->lang->output_beside && pr->sources ? strrchr(pr->source_name, '/') : NULL;
	int folder = slash ? (int)(slash + 1 - pr->source_name) : 0;
	char path[LANG_PATH_MAX + 1];

	if (snprintf(path, sizeof(path), "%.*s%s", folder, pr->source_name, pr->lang->output_name) > LANG_PATH_MAX ||
	    !name_free(w, pr->id, path, w->output_name))
		name_apart(w->output_name, pr->id, pr->lang->output_name);
	if (str_eq(w->output_name, pr->lang->output_name))
		return;
	w->renamed = *pr->lang;
	w->renamed.output_name = w->output_name;
	pr->run_lang = &w->renamed;
}

/*
 * Files added to the workspace hide no file of the project except the program itself, which appears at its own path as
 * the copy that was inspected.
 */
static void name_staged(struct work *w, struct prepared_request *pr)
{
	char path[LANG_PATH_MAX + 1];
	unsigned mode = 0;
	bool in_place;

	if (w->req->kind != BRIG_KIND_CODE)
		return;
	in_place = find_in_place(w, pr, path, &mode);
	if (in_place || (!pr->lang->compiles && name_free(w, pr->id, pr->source_name, path)))
		(void)str_copy(pr->source_name, sizeof(pr->source_name), path);
	if (pr->lang->compiles) {
		if (in_place)
			show_sources(w, pr);
		name_output(w, pr);
	} else if (in_place) {
		pr->source_mode = mode | 0400; /* the program must be able to read itself */
		workspace_cover(w->project, pr->source_name);
	}
}

static const char *state_path(const struct work *w, char dst[STATEDIR_PATH_MAX])
{
	if (statedir_path(w->recorder->state, dst, STATEDIR_PATH_MAX, NULL) < 0)
		*dst = '\0';
	return dst;
}

static bool has_project(const struct brig_request *req)
{
	return req->workspace || req->files_fd || req->project_fd;
}

static int open_project(struct work *w, struct prepared_request *pr, struct brig_error *err)
{
	const struct statedir *dir;
	char state[STATEDIR_PATH_MAX];
	int rc;

	if (!has_project(w->req))
		return 0;
	w->project = MOVE_PTR(pr->archive);
	rc = w->project ? 0 : workspace_open(w->req->workspace, state_path(w, state), w->set, &w->project, err);
	if (rc < 0)
		return rc;
	w->apply = !workspace_is_archive(w->project) &&
		   (w->set->workspace_mode == WORKSPACE_RW || w->req->flags & (BRIG_RUN_APPLY | BRIG_RUN_APPLY_GIT));
	if (w->req->flags & BRIG_RUN_APPLY_GIT && workspace_check_git(w->project, err) < 0)
		return -err->code;
	if (w->apply && recorder_dir(w->recorder, &dir, err) < 0)
		return err_wrap(err, "changes that are to be applied go through the state folder first");
	pr->workspace = workspace_plan(w->project);
	if (pr->subject.tests)
		pr->workspace = tests_workspace(pr->subject.tests, pr->workspace);
	name_staged(w, pr);
	return 0;
}

static int open_venv(struct work *w, struct prepared_request *pr, struct brig_error *err)
{
	char state[STATEDIR_PATH_MAX];
	int rc = 0;

	if (w->req->venv)
		rc = venv_open(w->req->venv, w->project, state_path(w, state), &w->venv, err);
	else if (!w->project || !venv_find(w->project, &w->venv))
		return 0;
	pr->venv_env = w->venv.env;
	pr->venv_binds = w->venv.bind;
	pr->n_venv_binds = w->venv.n_binds;
	return rc;
}

static int open_out(struct work *w, struct brig_error *err)
{
	static const char what[] = "folder for artifacts";
	char state[STATEDIR_PATH_MAX];
	bool made = false;
	int rc;

	if (!w->req->out_dir)
		return 0;
	rc = folder_open(w->req->out_dir, what, false, &w->out, err);
	/* Creates only the folder itself, not its parents: a wrong path is not built. */
	if (rc < 0 && err->sys == ENOENT && mkdir(w->req->out_dir, 0777) == 0) {
		made = true;
		rc = folder_open(w->req->out_dir, what, false, &w->out, err);
	}
	if (rc == 0)
		rc = place_check(&w->out, what, state_path(w, state), err);
	if (rc < 0 && made)
		(void)rmdir(w->req->out_dir);
	return rc;
}

int work_open(struct work *w, struct recorder *recorder, const struct brig_request *req, struct prepared_request *pr,
	      struct brig_error *err)
{
	int rc;

	w->req = req;
	w->set = &pr->resolved.set;
	w->recorder = recorder;
	rc = open_out(w, err);
	if (rc < 0)
		return rc;
	pr->wants_view =
		has_project(req) ? w->set->workspace_mode != WORKSPACE_RO : req->n_artifacts > 0 || req->left_fd;
	rc = open_project(w, pr, err);
	return rc < 0 ? rc : open_venv(w, pr, err);
}

void work_close(struct work *w)
{
	workspace_close(MOVE_PTR(w->project));
	folder_close(&w->out);
	venv_close(&w->venv);
}

int work_check(const struct work *w, const struct backend_ops *backend, struct brig_error *err)
{
	if (!w || w->venv.n_binds == 0 || (!backend->brings_runtimes && backend->listener && !w->set->rootfs[0]))
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "a virtual environment of the host is for the host's own Python in native cells, and not for "
		       "%s%s: use --packages instead of --venv",
		       w->set->rootfs[0] ? "a rootfs" : "backend ", w->set->rootfs[0] ? "" : backend->name);
}

/* ---- after the cell ---------------------------------------------------------------------------- */

#define OURS_MAX (PREPARED_FILES_MAX + PREPARED_BINDS_MAX + 8)

static bool covers(const struct plan *plan, const struct plan_file *f)
{
	return plan->workspace && plan->workspace->covered && str_eq(plan->workspace->covered, f->name);
}

static struct covering covering_of(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_files; i++) {
		const struct plan_file *f = &plan->files[i];

		if (covers(plan, f))
			return (struct covering){ .name = f->name, .data = f->data, .len = f->len, .mode = f->mode };
	}
	return (struct covering){ .name = NULL };
}

/* brig's own names in the workspace: staged files, a report, mount points. */
static size_t our_names(const struct stage *s, const char *ret[OURS_MAX])
{
	const struct plan *plan = s->plan;
	static const char top[] = PLAN_WORKSPACE "/";
	size_t n = 0;

	for (size_t i = 0; i < plan->n_files && n < OURS_MAX; i++)
		if (!covers(plan, &plan->files[i]))
			ret[n++] = plan->files[i].name;
	for (size_t i = 0; i < plan->n_binds && n < OURS_MAX; i++)
		if (strncmp(plan->binds[i].target, top, strlen(top)) == 0)
			ret[n++] = plan->binds[i].target + strlen(top);
	if (plan->output && n < OURS_MAX)
		ret[n++] = plan->output;
	for (size_t i = 0; i < s->n_ours && n < OURS_MAX; i++)
		ret[n++] = s->ours[i];
	return n;
}

/* Warns for each line "path: reason". done: "applied", "copied". Returns their number. */
static size_t warn_of_skipped(struct result *r, const struct buf *skipped, const char *done)
{
	const char *line = buf_str(skipped);
	size_t n = 0;

	for (; *line; line += strcspn(line, "\n") + 1)
		if (n++ < SKIPPED_SHOWN)
			result_warn(r, "not %s: %.*s", done, (int)strcspn(line, "\n"), line);
	if (n > SKIPPED_SHOWN)
		result_warn(r, "%zu more were not %s", n - SKIPPED_SHOWN, done);
	return n;
}

static int apply_changes(struct stage *s, const struct statedir *state)
{
	AUTO_BUF skipped = BUF_INIT(64 * KiB);
	struct changes *c = &s->result->changes;
	int rc;

	if (c->state == CHANGES_INCOMPLETE)
		return err_set(&s->err, BRIG_E_REFUSED, 0,
			       "more was changed in the workspace than changes_limit, disk_limit and changes_size let "
			       "brig look "
			       "at and keep: nothing was applied");
	if (c->state != CHANGES_KEPT)
		return 0;
	rc = changeset_apply(state, s->plan->id, workspace_folder(s->work->project),
			     s->work->req->flags & BRIG_RUN_APPLY_GIT, &skipped, &s->err);
	if (rc < 0)
		return rc;
	c->state = CHANGES_APPLIED;
	(void)warn_of_skipped(s->result, &skipped, "applied");
	return 0;
}

/* The folder for pending changes; NULL, with a warning, if there is none. */
static const struct statedir *state_for_changes(struct stage *s)
{
	const struct statedir *dir = NULL;
	struct brig_error why = BRIG_ERROR_INIT;

	if (recorder_dir(s->work->recorder, &dir, &why) < 0) {
		result_warn(s->result, "changes of the workspace are listed, but not kept: %s", why.msg);
		return NULL;
	}
	(void)changeset_expire(dir, s->work->set->changes_days, NULL);
	return dir;
}

static void tell_diff(struct stage *s, const struct workspace_view *view)
{
	struct result *r = s->result;

	r->diff = (struct buf)BUF_INIT(DIFF_MAX);
	r->has_diff = true;
	r->diff_is_cut = !workspace_diff(s->work->project, view, &r->changes, &r->diff) || r->changes.dropped > 0;
}

/* state: NULL: changes are only listed. */
static int find_changes(struct stage *s, const struct workspace_view *view, const struct statedir *state)
{
	const struct work *w = s->work;
	const char *ours[OURS_MAX];
	struct collect_ask ask = { .workspace = w->project,
				   .view = view,
				   .state = state,
				   .id = s->plan->id,
				   .ours = ours,
				   .n_ours = our_names(s, ours),
				   .covering = covering_of(s->plan),
				   .set = w->set };
	int rc = workspace_collect(&ask, &s->result->changes, &s->err);

	if (rc == 0 && s->on_changes)
		s->on_changes(s, s->conclude_arg);
	return rc;
}

static int collect_changes(struct stage *s, const struct workspace_view *view)
{
	const struct work *w = s->work;
	const struct statedir *state = NULL;
	struct changes *c = &s->result->changes;
	char size[32];
	int rc;

	/* Files left by tests are not kept unless requested. */
	if (!workspace_is_archive(w->project) && (w->apply || w->req->kind != BRIG_KIND_TESTS))
		state = state_for_changes(s);
	rc = find_changes(s, view, state);
	if (rc < 0)
		return rc;
	if (w->req->flags & BRIG_RUN_DIFF)
		tell_diff(s, view);
	if (c->forgotten)
		result_warn(
			s->result,
			"changes of %llu earlier runs that nobody had applied were forgotten, the oldest first: all "
			"together would take more than changes_size (%s); raise it in the policy, or apply and discard "
			"what 'brig workspace list' shows",
			(unsigned long long)c->forgotten, str_bytes(size, sizeof(size), w->set->changes_size));
	if (c->git_lost)
		result_warn(s->result, "commits, branches or tags that it made in its copy of .git are not kept: %s",
			    c->git_lost);
	if (c->too_large)
		result_warn(s->result,
			    "the changes of the workspace are listed, but not kept: there is no room for them below "
			    "changes_size (%s); raise it in the policy, or let the program write less",
			    str_bytes(size, sizeof(size), w->set->changes_size));
	else if (c->state == CHANGES_INCOMPLETE)
		result_warn(s->result,
			    "not all changes of the workspace could be looked at (changes_limit, disk_limit, "
			    "unreadable folders): none are kept");
	if (w->apply && s->verdict != VERDICT_violated && s->verdict != VERDICT_failed &&
	    (s->verdict == VERDICT_ok || w->set->workspace_mode == WORKSPACE_RW))
		return apply_changes(s, state);
	return 0;
}

static void warn_of_unmatched(struct stage *s, const bool *matched)
{
	const struct brig_request *req = s->work->req;

	for (size_t i = 0; i < req->n_artifacts; i++) {
		if (matched[i])
			continue;
		if (!str_eq(req->artifacts[i], "**"))
			result_warn(s->result, "the program left no file that matches '%.200s'", req->artifacts[i]);
		else if (!req->out_fd) /* a client that gets an archive of everything sees that it is empty */
			result_warn(s->result, "the program left no files");
	}
}

static void note_one(void *arg, const char *path, uint64_t size)
{
	workspace_left_one(arg, path, size);
}

/* With the cell dead: lists names by looking into the workspace; waits for nothing and reads no contents. */
static void note_left(struct stage *s)
{
	const char *ours[OURS_MAX];
	struct left_ask ask = { .ours = ours, .n_ours = our_names(s, ours), .ret = &s->result->left };
	AUTO_FD dir = s->backend->open_folder && !s->plan->workspace ? s->backend->open_folder(s->cell, "") : -1;

	if (dir >= 0)
		workspace_left(dir, &ask);
	else if (s->backend->left && !s->plan->workspace)
		s->backend->left(s->cell, note_one, &ask);
}

static int fetch_artifacts(struct stage *s, const struct workspace_view *view)
{
	const struct work *w = s->work;
	const char *ours[OURS_MAX];
	AUTO_BUF not_copied = BUF_INIT(1 * MiB);
	AUTO_FREE bool *matched = calloc(w->req->n_artifacts + 1, sizeof(*matched));
	const struct artifacts_ask ask = { .view = view,
					   .pattern = w->req->artifacts,
					   .n_patterns = w->req->n_artifacts,
					   .changes = w->project ? &s->result->changes : NULL,
					   .out = w->out.fd >= 0 ? &w->out : NULL,
					   .archive = w->req->out_fd,
					   .cancel_fd = w->req->cancel_fd,
					   .overwrite = w->req->flags & BRIG_RUN_OVERWRITE,
					   .not_copied = &not_copied,
					   .matched = matched,
					   .inline_bytes = w->req->inline_artifacts,
					   .ours = ours,
					   .n_ours = our_names(s, ours),
					   .set = w->set };
	struct artifacts *a = &s->result->artifacts;
	int rc = w->req->n_artifacts ? workspace_artifacts(&ask, a, &s->err) : 0;
	uint64_t named = warn_of_skipped(s->result, &not_copied, "copied");

	if (a->dropped > named)
		result_warn(
			s->result,
			"%llu files that were asked for were not fetched: no regular files, or beyond artifacts_limit "
			"or artifacts_size",
			(unsigned long long)(a->dropped - named));
	if (rc == 0 && matched)
		warn_of_unmatched(s, matched);
	return rc;
}

int work_take(struct stage *s, const struct workspace_view *view)
{
	int rc = s->work->project ? collect_changes(s, view) : 0;

	return rc < 0 ? rc : fetch_artifacts(s, view);
}

static void warn_of_part(struct result *r)
{
	result_warn(r, "the program left more in its workspace than brig reads back: too deep, too many files, or too "
		       "many bytes with the holes in files and with their links");
}

struct leaving {
	const char *ours[OURS_MAX];
	size_t n_ours;
};

static bool is_ours(void *arg, const char *path, bool is_dir UNUSED)
{
	const struct leaving *l = arg;

	for (size_t i = 0; i < l->n_ours; i++)
		if (str_eq(path, l->ours[i]))
			return true;
	return false;
}

/*
 * The requesting process determines changes and artifacts itself (away.h). Only a test run looks here, for whether the
 * tests modified themselves.
 */
static int hand_over(struct stage *s, const struct workspace_view *view)
{
	const struct limits *l = &s->plan->limits;
	/* A copied project is returned with the rest. Holes count with their full size, as they do for changes. */
	const uint64_t copied = view->whole ? l->memory_bytes / 2 : 0;
	const struct pack_caps caps = { .entries = l->inodes + copied / PAGE_BYTES + 16,
					.bytes = min_u64(l->disk_bytes + copied, LEFT_BYTES_MAX),
					.in_part = true,
					.upper = !view->whole };
	uint8_t head = view->whole ? LEFT_WHOLE : 0;
	struct leaving leaving = { .n_ours = 0 };
	struct changes *c = &s->result->changes;
	struct pack_counts counts = { 0 };
	int left = s->work->req->left_fd, rc = 0;

	if (s->work->project && s->on_changes) {
		rc = find_changes(s, view, NULL);
		changes_release(c);
		*c = (struct changes){ .known = true, .mode = s->work->set->workspace_mode };
	}
	leaving.n_ours = our_names(s, leaving.ours);
	if (rc == 0 && fd_write_all(left, &head, sizeof(head)) < 0)
		rc = err_set(&s->err, BRIG_E_SYSTEM, errno, "cannot hand the workspace over");
	if (rc == 0)
		rc = pack_tree(view->fd, &caps, is_ours, &leaving, left, &counts, &s->err);
	if (rc < 0 || (!view->in_part && !counts.cut))
		return rc;
	if (!view->in_part)
		warn_of_part(s->result);
	head |= LEFT_IN_PART;
	return pwrite(left, &head, sizeof(head), 0) == sizeof(head)
		       ? 0
		       : err_set(&s->err, BRIG_E_SYSTEM, errno, "cannot hand the workspace over");
}

static int look_at_workspace(struct stage *s)
{
	struct workspace_view view = { .fd = FD_NONE };
	AUTO_FD fd = FD_NONE;
	int rc = s->backend->workspace(s->cell, &view, &s->err);

	if (rc < 0)
		return rc;
	fd = view.fd;
	if (view.in_part)
		warn_of_part(s->result);
	return s->work->req->left_fd ? hand_over(s, &view) : work_take(s, &view);
}

int work_collect(struct stage *s)
{
	struct work *w = s->work;
	int rc;

	if (!w)
		return 0;
	s->result->changes.known = w->project != NULL;
	s->result->changes.mode = w->set->workspace_mode;
	if (!s->plan->wants_view) {
		note_left(s);
		return 0;
	}
	rc = look_at_workspace(s);
	if (rc == 0 || w->apply || w->req->n_artifacts > 0 || w->req->left_fd)
		return rc;
	/* Leftovers were not requested, and the program may be the reason why they cannot be listed. */
	result_warn(s->result, "%s: the changes of the workspace are not known, and none are kept", s->err.msg);
	s->result->changes.state = CHANGES_INCOMPLETE;
	return 0;
}
