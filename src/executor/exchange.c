/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/exchange.h"

#include "base/fd.h"
#include "base/wait.h"
#include "store/entry.h"

#define PATIENCE_MS 120000

struct question {
	const struct brig_exchange *x;
	const char *kind, *key;
	int answer;
};

static void ask(void *arg)
{
	struct question *q = arg;

	q->answer = q->x->want(q->x->user, q->kind, q->key);
}

static bool is_there(struct store *s, const struct store_key *shared, const struct store_key *own)
{
	struct brig_error err = BRIG_ERROR_INIT;

	return store_also(s, shared, own, 0, &err) == STORE_HIT;
}

bool exchange_fetch(const struct brig_exchange *x, struct store *s, const struct store_key *shared,
		    const struct store_key *own, int cancel_fd)
{
	char key[STORE_HEX_LEN + 1];
	struct question q = { .x = x, .kind = shared->kind, .key = key, .answer = FD_NONE };
	struct pollfd fds[2];

	if (!x || !x->want)
		return false;
	store_hex(shared->hash, key);
	if (is_there(s, shared, own))
		/* another program with the same contents made it, before an update that changed nothing */
		return true;
	wait_outside(ask, &q);
	if (q.answer < 0)
		return false;
	fds[0] = (struct pollfd){ .fd = q.answer, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = cancel_fd, .events = POLLIN };
	(void)wait_poll(fds, ARRAY_LEN(fds), PATIENCE_MS);
	fd_closep(&q.answer);
	return is_there(s, shared, own);
}

void exchange_offer(const struct brig_exchange *x, struct store *s, const struct store_key *own,
		    const struct store_key *shared)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (x && x->want)
		(void)store_also(s, own, shared, 0, &err);
}
