/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/native/made.h"

#include <fcntl.h>

#include "backend/native/cell.h"
#include "base/fd.h"

void native_set_owner(struct backend_host *h, pid_t owner)
{
	h->owner = owner;
}

enum cell_readiness native_made_pump(struct cell *c, struct brig_error *err)
{
	if (cell_pump(c, err) < 0)
		return CELL_SPOILED;
	if (!c->ready || !c->confined)
		return CELL_BUILDING;
	return cell_listen_to_init(c, err) < 0 ? CELL_SPOILED : CELL_CAN_BE_CLAIMED;
}

int native_made_let_go(struct cell *c, struct brig_error *err)
{
	return cell_let_go(c, err);
}

uint64_t native_made_started_ns(const struct cell *c)
{
	return c->started_ns;
}

int native_made_go(struct cell *c, struct brig_error *err)
{
	int rc = c->let_go ? 0 : cell_let_go(c, err);

	if (rc == 0)
		cell_read_back_start(c);
	return rc;
}

void native_ask_for_streams(struct backend_host *h, bool always)
{
	h->asks_for_streams = true;
	h->mounts_no_project = always;
}

bool native_made_wants_stream(const struct cell *c)
{
	return c->project.wants_stream;
}

int native_made_offer_stream(struct cell *c, int source, uint64_t bytes, uint64_t inodes, struct brig_error *err)
{
	return cell_offer_stream(c, source, bytes, inodes, err);
}

void native_made_rest(const struct cell *c, int ret[MADE_REST_FDS])
{
	ret[MADE_UPPER] = fcntl(c->handed[HANDED_UPPER], F_DUPFD_CLOEXEC, 0);
	ret[MADE_NS_USER] = fcntl(c->handed[HANDED_NS_USER], F_DUPFD_CLOEXEC, 0);
}

int native_made_way_out(struct cell *c)
{
	return fd_move(&c->way_out);
}
