/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/away.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/pack.h"
#include "sys/private_fs.h"

#define PAGE_BYTES 4096

/* ---- before the run -------------------------------------------------------------------------------- */

/* The limits of a cell's copy: half of its memory, with a page for each small file. */
static struct pack_caps caps_of(const struct away *a)
{
	uint64_t room = min_u64(a->prepared.resolved.set.mem_limit / 2, AWAY_BYTES_MAX);

	return (struct pack_caps){ .entries = room / PAGE_BYTES, .bytes = room };
}

static int too_large(const struct away *a, bool *ret_too_large, struct brig_error *err)
{
	char text[32];

	*ret_too_large = true;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "the project '%.200s' takes more than the %s that a service is sent (half of mem_limit, at most "
		       "512m): leave out with workspace_hide what is not needed, raise --memory, or use --local",
		       workspace_folder(a->work.project)->path, str_bytes(text, sizeof(text), caps_of(a).bytes));
}

static int pack_project(struct away *a, bool *ret_too_large, struct brig_error *err)
{
	/* The other process creates the file that covers the program's own, for which it needs the original. */
	struct plan_workspace shown = *workspace_plan(a->work.project);
	const struct pack_caps caps = caps_of(a);
	struct pack_counts counts;
	int rc;

	shown.covered = NULL;
	rc = pack_measure(shown.fd, &caps, plan_workspace_hides, &shown, &counts, err);
	if (rc < 0 && err->code != BRIG_E_REFUSED)
		return rc;
	if (rc < 0 || counts.room > caps.bytes)
		return too_large(a, ret_too_large, err);
	a->project = memfd_create("brig-project", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (a->project < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a file in memory for the project");
	rc = pack_tree(shown.fd, &caps, plan_workspace_hides, &shown, a->project, &counts, err);
	if (rc < 0)
		return rc;
	rc = lseek(a->project, 0, SEEK_SET) < 0 ? -errno : sealed_close(a->project);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot keep the project in memory") : 0;
}

static char *mark_hidden(int project, const char *path)
{
	struct stat st;
	AUTO_FD fd = beneath_look(project, path, &st);
	char *text = NULL;

	if (asprintf(&text, "%s%s", path, fd >= 0 && S_ISDIR(st.st_mode) ? "/" : "") < 0)
		return NULL;
	return text;
}

static int list_hidden(struct away *a, struct brig_error *err)
{
	const struct plan_workspace *p = workspace_plan(a->work.project);

	a->hidden = calloc(p->n_hidden + 1, sizeof(*a->hidden));
	if (!a->hidden)
		return err_nomem(err);
	for (size_t i = 0; i < p->n_hidden; i++) {
		a->hidden[i] = mark_hidden(p->fd, p->hidden[i]);
		if (!a->hidden[i])
			return err_nomem(err);
		a->n_hidden++;
	}
	return 0;
}

int away_open(const struct executor *x, const struct brig_request *req, struct away **ret, bool *ret_too_large,
	      struct brig_error *err)
{
	struct away *a = calloc(1, sizeof(*a));
	int rc;

	*ret_too_large = false;
	if (!a)
		return err_nomem(err);
	a->work = (struct work)WORK_INIT;
	a->project = FD_NONE;
	a->req = req;
	rc = prepare_request(x->policy, req, &a->prepared, err);
	if (rc == 0)
		rc = work_open(&a->work, x->recorder, req, &a->prepared, err);
	if (rc == 0 && req->workspace) /* an archive of files is passed on as it is */
		rc = list_hidden(a, err);
	if (rc == 0 && req->workspace)
		rc = pack_project(a, ret_too_large, err);
	if (rc < 0) {
		away_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

void away_close(struct away *a)
{
	if (!a)
		return;
	work_close(&a->work);
	prepared_request_release(&a->prepared);
	fd_closep(&a->project);
	for (size_t i = 0; i < a->n_hidden; i++)
		free((char *)(uintptr_t)a->hidden[i]);
	free(a->hidden);
	free(a);
}

/* ---- after the run --------------------------------------------------------------------------------- */

/* Unpacks what came back as the view of a dead cell. 1: nothing came, since nothing ran. */
static int unpack_left(const struct away *a, int left, struct workspace_view *ret, struct brig_error *err)
{
	const struct settings *set = &a->prepared.resolved.set;
	struct unpack_options options = { .caps = { .entries = set->inodes_limit + set->mem_limit / 2 / PAGE_BYTES,
						    .bytes = set->disk_limit + set->mem_limit / 2 },
					  .uid = UINT32_MAX,
					  .gid = UINT32_MAX,
					  .readable = geteuid() != 0 }; /* root may read whatever the mode */
	struct pack_counts counts;
	uint8_t head = 0;
	ssize_t n = lseek(left, 0, SEEK_SET) < 0 ? -errno : fd_read_all(left, &head, sizeof(head));
	AUTO_FD dir = FD_NONE;
	int rc;

	if (n == 0)
		return 1;
	options.caps.upper = !(head & LEFT_WHOLE);
	dir = private_fs(options.caps.bytes + options.caps.entries * PAGE_BYTES, options.caps.entries + 16);
	rc = n < 0 ? (int)n : head & ~LEFT_ALL ? -EPROTO : dir < 0 ? dir : unpack_tree(dir, left, &options, &counts);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc,
			       "what the service has sent back of the workspace cannot be read");
	*ret = (struct workspace_view){ .fd = fd_move(&dir),
					.whole = head & LEFT_WHOLE,
					.in_part = head & LEFT_IN_PART };
	return 0;
}

/* The staged program, as in the plan of a local run: unchanged, it is no change. */
static void make_plan(const struct away *a, const struct result *res, struct plan *plan, struct plan_file *file)
{
	const struct plan_workspace *w = a->work.project ? workspace_plan(a->work.project) : NULL;

	*plan = (struct plan){ .workspace = w };
	(void)str_copy(plan->id, sizeof(plan->id), res->id);
	if (!w || !w->covered)
		return;
	*file = (struct plan_file){
		.name = w->covered, .data = a->req->code, .len = a->req->code_len, .mode = a->prepared.source_mode
	};
	plan->files = file;
	plan->n_files = 1;
}

/* The same judgement as in stage.c. */
static void judge(struct stage *s, struct result *res)
{
	if (s->verdict == VERDICT_ok) {
		res->verdict = res->changes.state == CHANGES_INCOMPLETE ? VERDICT_disk_limit : VERDICT_failed;
		(void)snprintf(res->reason, sizeof(res->reason), "the program ended well, but %.470s", s->err.msg);
	} else {
		result_warn(res, "%s", s->err.msg);
	}
}

int away_finish(struct away *a, int left, struct result *res, struct brig_error *err)
{
	struct workspace_view view = { .fd = FD_NONE };
	int rc = unpack_left(a, left, &view, err);
	AUTO_FD fd = view.fd;
	struct plan_file file;
	struct plan plan;
	struct stage s = { .plan = &plan, .req = a->req, .result = res, .work = &a->work, .verdict = res->verdict };

	if (rc != 0)
		return rc < 0 ? rc : 0;
	/* The other process chose the effective mode; here it decides whether changes are applied after any end. */
	a->prepared.resolved.set.workspace_mode = res->changes.known ? res->changes.mode : WORKSPACE_COW;
	a->work.apply = a->req->workspace &&
			(res->changes.mode == WORKSPACE_RW || a->req->flags & (BRIG_RUN_APPLY | BRIG_RUN_APPLY_GIT));
	make_plan(a, res, &plan, &file);
	rc = work_take(&s, &view);
	if (rc == 0)
		return 0;
	if (a->work.apply || a->req->n_artifacts > 0) {
		judge(&s, res);
		return 0;
	}
	result_warn(res, "%s: the changes of the workspace are not known, and none are kept", s.err.msg);
	res->changes.state = CHANGES_INCOMPLETE;
	return 0;
}
