/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a repository is applied on request (--apply-git, workspace apply --git): commits and the names that lead to
 * them, and nothing that git executes or follows.  git.c knows names and contents, git_collect.c finds what a run made,
 * git_take.c adds it to the changes that are applied.
 */
#ifndef WORKSPACE_GIT_H
#define WORKSPACE_GIT_H

#include "workspace/internal.h"

#define GIT_FOLDER ".git"

enum git_part {
	GIT_NEVER,  /* hooks, config, alternates, logs, modules, worktrees and whatever else there is */
	GIT_WAY,    /* a folder that contains the others */
	GIT_OBJECT, /* named by its content, so that one which is there already is the same one */
	GIT_REF,    /* a branch or a tag */
	GIT_HEAD,
	GIT_PACKED, /* packed-refs */
	GIT_INDEX,
};

/* Of a path of the project. */
enum git_part git_part_of(const char *path, bool is_dir);
/* Most bytes that such a file is looked at with; 0: its content is not examined. */
size_t git_part_max(enum git_part part);
/* Whether it has a form that git gives it and names nothing that does not come over.  was: what the project has;
 * sha256_names: how its repository names objects, which the index does not say. */
bool git_part_sound(enum git_part part, const char *text, size_t len, const char *was, size_t was_len,
		    bool sha256_names);
/* Whether a name below refs/ is one that git allows. */
bool git_ref_sound(const char *name, size_t len);

/*
 * What a run made of the project's repository, its contents kept, into ret; only if a branch, a tag or HEAD is another
 * one: without that there is nothing that could be told from rubbish.  *ret_lost: why there is something that is not
 * kept, in words; NULL: there is not.
 */
int git_collect(const struct collect_ask *ask, struct keeper *k, struct changeset *ret, const char **ret_lost,
		struct brig_error *err);
/* Adds what was kept to the changes that are about to be applied to this project.  Refused if its .git is no folder. */
int git_take(const struct keeper *k, int project, struct changeset *set, struct brig_error *err);
/* Refused, with the reason, if the repository is one that nothing can be applied to. */
int git_check_project(int project, struct brig_error *err);

#endif
