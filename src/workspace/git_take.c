/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a repository become rows of what is applied: checked, staged, moved and undone with all others (apply.c).
 * Whether each may come is decided here, from its name and what was kept of it, and not when it was kept.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "files/beneath.h"
#include "workspace/git.h"

#define CONFIG_MAX (1 * MiB)

int git_check_project(int project, struct brig_error *err)
{
	struct stat st;
	AUTO_FD fd = beneath_look(project, GIT_FOLDER, &st);

	if (fd >= 0 && S_ISDIR(st.st_mode))
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0, "%s",
		fd < 0 ? "the project has no repository (.git) that commits could be applied to: leave git out"
		       : "the project's .git is no folder (it is a worktree or a submodule, whose repository lies "
			 "elsewhere): apply without git, and commit there yourself");
}

int workspace_check_git(const struct workspace *w, struct brig_error *err)
{
	return git_check_project(w->fd, err);
}

/* All of a file, on the heap; NULL: it is larger, cannot be read, or there is no memory. */
static char *read_all(int fd, size_t max, size_t *ret_len)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size > max)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	n = text ? fd_read_all(fd, text, (size_t)st.st_size) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*ret_len = (size_t)n;
	return text;
}

/* The project's own configuration says so, in a word that those of other repositories do not have. */
static bool has_sha256_names(int project)
{
	AUTO_FD fd = beneath_open_file(project, GIT_FOLDER "/config", NULL);
	size_t len;
	AUTO_FREE char *text = read_all(fd, CONFIG_MAX, &len);

	return !text || strcasestr(text, "objectformat");
}

static bool is_sound(const struct keeper *k, int project, const struct kept_row *r, enum git_part part)
{
	size_t max = git_part_max(part), len = 0, was_len = 0;
	AUTO_FD fd = FD_NONE, old = FD_NONE;
	AUTO_FREE char *text = NULL, *was = NULL;

	if (r->change.kind == CHANGE_DELETED)
		return part == GIT_REF;
	if (r->change.type != (part == GIT_WAY ? CHANGE_DIR : CHANGE_FILE))
		return false;
	if (max == 0)
		return true;
	fd = keeper_content(k, r->change.sha256);
	old = beneath_open_file(project, r->change.path, NULL);
	text = read_all(fd, max, &len);
	was = read_all(old, max, &was_len);
	return text && git_part_sound(part, text, len, was ? was : "", was_len, has_sha256_names(project));
}

/* Another process has created it meanwhile: a folder on the way, or the same object. */
static bool is_there(int project, const struct kept_row *r, enum git_part part)
{
	struct stat st;
	AUTO_FD fd = part == GIT_WAY || part == GIT_OBJECT ? beneath_look(project, r->change.path, &st) : FD_NONE;

	return fd >= 0 && (part == GIT_WAY ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static int take_row(const struct keeper *k, int project, struct kept_row *from, struct changeset *set,
		    struct brig_error *err)
{
	enum git_part part = git_part_of(from->change.path, from->change.type == CHANGE_DIR);
	struct kept_row row = *from;

	if (part == GIT_NEVER || is_there(project, from, part))
		return 0;
	row.git = true;
	row.skip = is_sound(k, project, from, part) ? SKIP_NOT : SKIP_UNSOUND;
	from->change.path = from->target = NULL; /* it is the other's now */
	return changeset_add(set, &row) ? 0 : err_nomem(err);
}

/* Git itself takes these before it writes. */
static int check_locks(int project, struct brig_error *err)
{
	static const char *const locks[] = { GIT_FOLDER "/index.lock", GIT_FOLDER "/HEAD.lock",
					     GIT_FOLDER "/packed-refs.lock" };

	for (size_t i = 0; i < ARRAY_LEN(locks); i++) {
		AUTO_FD fd = beneath_look(project, locks[i], NULL);

		if (fd >= 0)
			return err_set(
				err, BRIG_E_REFUSED, 0,
				"git is at work in the project, or was killed there ('%s'): nothing was applied; "
				"try again when it has ended",
				locks[i]);
	}
	return 0;
}

int git_take(const struct keeper *k, int project, struct changeset *set, struct brig_error *err)
{
	struct changeset git = { .row = NULL };
	int rc = git_check_project(project, err);

	if (rc == 0)
		rc = check_locks(project, err);
	if (rc == 0 && set->git)
		rc = keeper_read_git(k, &git, err);
	for (size_t i = 0; i < git.n && rc == 0; i++)
		rc = take_row(k, project, &git.row[i], set, err);
	changeset_sort(set);
	changeset_release(&git);
	return rc;
}
