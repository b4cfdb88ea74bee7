/* SPDX-License-Identifier: Apache-2.0 */
/* workspace.c - pending changes: brig_workspace_*(). */
#include "workspace/workspace.h"

#include <string.h>

#include "api/handle.h"

#define DIFF_MAX        (16 * MiB)
#define NOT_APPLIED_MAX (1 * MiB)

/* Opens the state folder; 1: there is none yet. */
static int open_state(struct brig *b, struct statedir *ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	int rc = statedir_open(b->recorder.state, false, ret, &why);

	if (rc < 0 && why.sys == ENOENT)
		return 1;
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* The same for functions that need one of its changesets. */
static int open_for(struct brig *b, const char *id, struct statedir *ret, struct brig_error *err)
{
	int rc;

	if (!b || !id)
		return err_set(err, BRIG_E_USAGE, 0, "this needs a handle and the id of a run");
	rc = open_state(b, ret, err);
	return rc > 0 ? err_set(err, BRIG_E_REFUSED, ENOENT, "no changes are kept under '%.40s': nothing is kept yet",
				id)
		      : rc;
}

int brig_workspace_list_json(struct brig *b, char **ret, struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_workspace_list_json needs a handle and a place for the text");
	rc = open_state(b, &state, err);
	if (rc == 0)
		return changeset_list_json(&state, ret, err);
	if (rc < 0)
		return rc;
	*ret = strdup("{\"workspaces\":[]}");
	return *ret ? 0 : err_nomem(err);
}

int brig_workspace_show_json(struct brig *b, const char *id, char **ret, struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	int rc = open_for(b, id, &state, err);

	if (rc == 0 && !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_workspace_show_json needs a place for the text");
	return rc < 0 ? rc : changeset_show_json(&state, id, ret, err);
}

/* Passes a buffer's text to the caller. */
static int hand_out(struct buf *text, char **ret, struct brig_error *err)
{
	char *taken = text->no_memory ? NULL : text->len ? buf_take(text) : strdup("");

	if (!taken)
		return err_nomem(err);
	*ret = taken;
	return 0;
}

int brig_workspace_diff(struct brig *b, const char *id, char **ret, struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	AUTO_BUF text = BUF_INIT(DIFF_MAX);
	int rc = open_for(b, id, &state, err);

	if (rc == 0 && !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_workspace_diff needs a place for the text");
	if (rc == 0)
		rc = changeset_diff(&state, id, &text, err);
	if (rc < 0)
		return rc;
	if (text.full) {
		text.max += 128;
		(void)buf_adds(&text, "\n# and more: the differences have more bytes than are shown\n");
	}
	return hand_out(&text, ret, err);
}

int brig_workspace_apply(struct brig *b, const char *id, char **ret_not_applied, struct brig_error *err)
{
	return brig_workspace_apply_with(b, id, 0, ret_not_applied, err);
}

int brig_workspace_apply_with(struct brig *b, const char *id, uint32_t flags, char **ret_not_applied,
			      struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	AUTO_BUF skipped = BUF_INIT(NOT_APPLIED_MAX);
	int rc = open_for(b, id, &state, err);

	if (rc == 0 && flags & ~BRIG_APPLY_GIT)
		rc = err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", flags & ~BRIG_APPLY_GIT);
	if (rc == 0)
		rc = changeset_apply(&state, id, NULL, flags & BRIG_APPLY_GIT, &skipped, err);
	return rc < 0 || !ret_not_applied ? rc : hand_out(&skipped, ret_not_applied, err);
}

int brig_workspace_discard(struct brig *b, const char *id, struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	int rc = open_for(b, id, &state, err);

	return rc < 0 ? rc : changeset_discard(&state, id, err);
}
