/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves and loads the workspace (tree.h).  No other request is served meanwhile, so the saved copy is consistent;
 * requests wait in the socket.  Both end early if the owner closes the other end.
 */
#include <fcntl.h>

#include "backend/guest/steward/inside.h"
#include "backend/guest/steward/tree.h"

static void tell_copied(struct steward *s, int rc, const struct tree_counts *counts)
{
	const int64_t number[] = { -rc, (int64_t)counts->entries, (int64_t)counts->bytes, (int64_t)counts->left_out };

	fd_closep(&s->asked.fds[0]); /* so that the owner sees end of file before the answer */
	steward_tell(s, STEWARD_DONE, s->asked.head.tag, number, ARRAY_LEN(number), NULL, 0, FD_NONE);
}

void copies_save(struct steward *s)
{
	const int64_t *number = s->asked.head.number;
	const struct tree_counts most = { .entries = (uint64_t)number[0], .bytes = (uint64_t)number[1] };
	struct tree_counts counts = { .entries = 0 };
	int rc = s->is_paused ? 0 : others_stop(s);

	if (rc == 0)
		rc = tree_save(AT_FDCWD, s->asked.fds[0], &most, &counts);
	if (!s->is_paused)
		others_continue(s);
	tell_copied(s, rc, &counts);
}

void copies_load(struct steward *s)
{
	struct tree_counts counts;
	int rc = tree_load(AT_FDCWD, s->asked.fds[0], &counts);

	tell_copied(s, rc, &counts);
}
