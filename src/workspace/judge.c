/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which changes may be applied to a project, judged by the resulting tree: the project's own files, and the rows on top
 * of them.
 *
 * Folders.  Git accepts any folder with a few names in it as a repository, and runs what its configuration says.  Such
 * a folder may be complete in the project, in the changeset, or only in both together; what the changeset deletes is
 * counted as if it stayed.
 *
 * Links.  A link of the program's obeys link_stays(), so no chain of such links leads out.  But it may pass a link of
 * the project's own, which may do what it likes; and a link of the project's own that stays inside only because of
 * the folders it passes ("a/b/../../c") must not pass a link of the program's where a folder was.  Both are gone through
 * in the tree as it will be.
 */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/str.h"
#include "files/beneath.h"
#include "files/walk.h"
#include "workspace/internal.h"

struct judge {
	struct changeset *set;
	int project;
	struct path_list git; /* folders that are git's, as the tree will be */
	bool top_is_gits;     /* the project's own folder would be one: then it is these names that do not come */
	bool use_project_only;
	bool leads_out; /* a link of the project's own would, and did not */
};

/* ---- folders of git's -------------------------------------------------------------------------- */

static void parent_of(const char *path, char dst[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	memmove(dst, path, len); /* dst may be path */
	dst[len] = '\0';
}

/* One of the names that make a folder git's, as it comes. */
struct mark {
	char *folder;
	unsigned marks;
};

static int by_folder(const void *a, const void *b)
{
	return strcmp(((const struct mark *)a)->folder, ((const struct mark *)b)->folder);
}

/* The rows that have such names; *ret is the heap's, and their folders, too. */
static int collect_marks(const struct judge *j, struct mark **ret, size_t *ret_n)
{
	struct mark *row = calloc(j->set->n + 1, sizeof(*row));
	char parent[PATH_MAX];

	*ret = row;
	*ret_n = 0;
	for (size_t i = 0; row && i < j->set->n; i++) {
		const struct change *c = &j->set->row[i].change;
		const char *slash = strrchr(c->path, '/');
		unsigned marks = c->kind == CHANGE_DELETED ? 0 : git_mark(slash ? slash + 1 : c->path);

		if (!marks)
			continue;
		parent_of(c->path, parent);
		row[*ret_n] = (struct mark){ strdup(parent), marks };
		if (!row[*ret_n].folder)
			return -ENOMEM;
		++*ret_n;
	}
	return row ? 0 : -ENOMEM;
}

/* Folders that the changeset makes git's, alone or with what is there. */
static int find_completed(struct judge *j)
{
	struct mark *row;
	size_t n;
	int rc = collect_marks(j, &row, &n);

	if (rc == 0 && n > 0)
		qsort(row, n, sizeof(*row), by_folder);
	for (size_t i = 0; i < n && rc == 0;) {
		const char *folder = row[i].folder;
		unsigned marks = git_marks_in(j->project, folder);

		for (; i < n && str_eq(row[i].folder, folder); i++)
			marks |= row[i].marks;
		if (git_folder(marks) && !*folder)
			j->top_is_gits = true;
		else if (git_folder(marks) && !paths_add(&j->git, folder))
			rc = -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		free(row[i].folder);
	free(row);
	return rc;
}

/* Folders of the project's that are git's already, and that something is to change in. */
static int find_present(struct judge *j)
{
	char last[PATH_MAX] = "", at[PATH_MAX];

	if (j->set->n && git_folder(git_marks_in(j->project, "")) && !paths_add(&j->git, ""))
		return -ENOMEM;
	for (size_t i = 0; i < j->set->n; i++) {
		parent_of(j->set->row[i].change.path, at);
		if (str_eq(at, last))
			continue;
		(void)str_copy(last, sizeof(last), at);
		for (; *at; parent_of(at, at))
			if (git_folder(git_marks_in(j->project, at)) && !paths_add(&j->git, at))
				return -ENOMEM;
	}
	return 0;
}

/* Whether it is, or is in, one of the entries that make the project's own folder git's. */
static bool is_top_of_gits(const char *path)
{
	char first[NAME_MAX + 1];
	size_t len = strcspn(path, "/");

	if (len >= sizeof(first))
		return false;
	memcpy(first, path, len);
	first[len] = '\0';
	return git_mark(first) || strcasecmp(first, "config") == 0 || strcasecmp(first, "hooks") == 0;
}

static bool is_gits(const struct judge *j, const char *path)
{
	if (path_has_git(path) || (j->top_is_gits && is_top_of_gits(path)))
		return true;
	return (j->git.n && !*j->git.item[0]) || paths_cover(&j->git, path);
}

/* ---- links ------------------------------------------------------------------------------------- */

static bool read_project(const struct judge *j, const char *path, char target[PATH_MAX])
{
	struct stat st;
	AUTO_FD fd = beneath_look(j->project, path, &st);
	ssize_t n;

	if (fd < 0 || !S_ISLNK(st.st_mode))
		return false;
	n = readlinkat(fd, "", target, PATH_MAX - 1);
	target[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool read_future(void *arg, const char *path, char target[PATH_MAX])
{
	const struct judge *j = arg;
	const struct kept_row *r = j->use_project_only ? NULL : changeset_find(j->set, path);

	if (!r || r->skip != SKIP_NOT)
		return read_project(j, path, target);
	return r->change.kind != CHANGE_DELETED && r->change.type == CHANGE_LINK && r->target &&
	       str_copy(target, PATH_MAX, r->target);
}

static bool is_link(const struct kept_row *r)
{
	return r->skip == SKIP_NOT && r->change.kind != CHANGE_DELETED && r->change.type == CHANGE_LINK;
}

/* First those that are wrong by themselves; then what the others pass is right, or the project's own. */
static void judge_links(struct judge *j)
{
	struct changeset *c = j->set;
	char to[PATH_MAX];

	for (size_t i = 0; i < c->n; i++)
		if (is_link(&c->row[i]) && (!c->row[i].target || !link_stays(c->row[i].change.path, c->row[i].target)))
			c->row[i].skip = SKIP_LINK;
	for (size_t i = 0; i < c->n; i++)
		if (is_link(&c->row[i]) &&
		    (!link_leads(c->row[i].change.path, c->row[i].target, read_future, j, to) || is_gits(j, to)))
			c->row[i].skip = SKIP_LINK;
}

/* A link of the project's own that the changeset would lead out. */
static enum walk_next consider_own(void *arg, const struct walk_entry *e)
{
	struct judge *j = arg;
	char target[PATH_MAX], to[PATH_MAX];

	if (!S_ISLNK(e->st->st_mode) || !read_project(j, e->path, target) || link_stays(e->path, target))
		return WALK_ON;
	if (link_leads(e->path, target, read_future, j, to))
		return WALK_ON;
	j->use_project_only = true;
	j->leads_out = link_leads(e->path, target, read_future, j, to);
	j->use_project_only = false;
	return j->leads_out ? WALK_STOP : WALK_ON;
}

/* Only a link that stands where the project has a folder can do that to a link of the project's own. */
static int judge_own_links(struct judge *j, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX, .kinds_only = true };
	struct walk_outcome out = { .entries = 0 };
	bool any = false;
	int rc;

	for (size_t i = 0; i < j->set->n; i++)
		any |= is_link(&j->set->row[i]);
	if (!any)
		return 0;
	rc = walk_tree(j->project, &caps, consider_own, j, &out, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; (j->leads_out || out.cut) && i < j->set->n; i++)
		if (is_link(&j->set->row[i]))
			j->set->row[i].skip = SKIP_LINK;
	return 0;
}

/* ---- the whole --------------------------------------------------------------------------------- */

int changeset_judge(struct changeset *c, int project, struct brig_error *err)
{
	struct judge j = { .set = c, .project = project };
	int rc = find_completed(&j);

	if (rc == 0)
		rc = find_present(&j);
	paths_sort(&j.git);
	for (size_t i = 0; i < c->n && rc == 0; i++)
		if (c->row[i].skip != SKIP_NOT)
			continue;
		else if (!c->row[i].git && is_gits(&j, c->row[i].change.path))
			c->row[i].skip = SKIP_GIT;
		else if (strncmp(c->row[i].change.path, STAGING_PREFIX, strlen(STAGING_PREFIX)) == 0)
			c->row[i].skip = SKIP_BRIG;
	if (rc == 0)
		judge_links(&j);
	rc = rc < 0 ? err_nomem(err) : judge_own_links(&j, err);
	paths_release(&j.git);
	return rc;
}
