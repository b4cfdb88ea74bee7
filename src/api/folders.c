/* SPDX-License-Identifier: Apache-2.0 */
/* folders.c - folders of requests run by another process: brig_folders_*(). */
#include <stdlib.h>

#include "api/handle.h"
#include "api/request.h"
#include "executor/away.h"

struct brig_folders {
	struct brig_request req;
	struct away *away;
};

int brig_folders_open(struct brig *b, const struct brig_request *req, struct brig_folders **ret, int *ret_too_large,
		      struct brig_error *err)
{
	AUTO_FREE struct brig_folders *f = calloc(1, sizeof(*f));
	bool too_large = false;
	struct executor x;
	int rc;

	if (!b || !req || !ret || !ret_too_large)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_folders_open needs a handle, a request and places for what it returns");
	if (!f)
		return err_nomem(err);
	rc = request_read(req, &f->req, err);
	if (rc < 0)
		return rc;
	x = handle_executor(b);
	rc = away_open(&x, &f->req, &f->away, &too_large, err);
	*ret_too_large = too_large;
	if (rc == 0)
		*ret = MOVE_PTR(f);
	return rc;
}

int brig_folders_project(const struct brig_folders *f)
{
	return f->away->project;
}

const char *const *brig_folders_hidden(const struct brig_folders *f, size_t *ret_n)
{
	*ret_n = f->away->n_hidden;
	return f->away->hidden;
}

int brig_folders_finish(struct brig_folders *f, int left_fd, struct brig_result *r, struct brig_error *err)
{
	if (!f || !r || left_fd < 0)
		return err_set(err, BRIG_E_USAGE, 0, "brig_folders_finish needs folders, what came back, and a result");
	return away_finish(f->away, left_fd, &r->r, err);
}

void brig_folders_close(struct brig_folders *f)
{
	if (!f)
		return;
	away_close(f->away);
	free(f);
}
