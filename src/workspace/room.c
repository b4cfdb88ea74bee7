/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disk space for changesets: how much the stored ones take together, and which are removed to make room for another.
 *
 * What counts is what the disk has given (st_blocks), so a hole costs nothing.  Nothing is cached: the folders, which
 * are few, are measured each time, so no number can be wrong after a brig was killed.  The oldest go first; one that is
 * just being applied is waited for a moment, which usually ends with its removal, and then skipped.
 */
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "workspace/internal.h"

#define IN_USE_PATIENCE_NS NS_PER_SEC

struct kept {
	char name[80];
	uint64_t made_ns, bytes;
};

struct inventory {
	struct kept *row; /* heap */
	size_t n, cap;
	uint64_t bytes;
};

static int count_one(void *arg, const struct statedir *all, const char *name, struct brig_error *err)
{
	struct inventory *v = arg;
	AUTO_KEEPER k = KEEPER_INIT;
	struct kept one;

	if (*name == '.' || keeper_reach(&k, all, name) < 0)
		return 0; /* unfinished, or gone meanwhile */
	if (v->n == v->cap) {
		size_t more = v->cap ? 2 * v->cap : 16;
		struct kept *bigger = reallocarray(v->row, more, sizeof(*bigger));

		if (!bigger)
			return err_nomem(err);
		v->row = bigger;
		v->cap = more;
	}
	one = (struct kept){ .made_ns = keeper_made_ns(&k.dir), .bytes = keeper_disk(k.dir.fd) };
	(void)str_copy(one.name, sizeof(one.name), name);
	v->row[v->n++] = one;
	v->bytes += one.bytes;
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->made_ns != y->made_ns)
		return x->made_ns < y->made_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Whether it is gone. */
static bool forget(const struct statedir *all, const char *name)
{
	AUTO_KEEPER k = KEEPER_INIT;
	int rc = keeper_reach(&k, all, name);

	if (rc < 0)
		return rc == -ENOENT;
	if (fd_lock(k.dir.fd, LOCK_EX, IN_USE_PATIENCE_NS) < 0)
		return false;
	rc = keeper_drop(&k);
	return rc == 0 || rc == -ENOENT;
}

bool room_make(const struct statedir *all, uint64_t ceiling, uint64_t wanted, uint64_t *ret_forgotten)
{
	struct inventory v = { .row = NULL };
	bool known = wanted <= ceiling && keeper_each_in(all, count_one, &v, NULL) == 0;

	if (known && v.n)
		qsort(v.row, v.n, sizeof(*v.row), by_age);
	for (size_t i = 0; known && i < v.n && v.bytes > ceiling - wanted; i++)
		if (forget(all, v.row[i].name)) {
			v.bytes -= v.row[i].bytes;
			++*ret_forgotten;
		}
	free(v.row);
	return known && v.bytes <= ceiling - wanted;
}

int changeset_usage(const struct statedir *state, uint64_t *ret_count, uint64_t *ret_bytes, struct brig_error *err)
{
	struct inventory v = { .row = NULL };
	AUTO_STATEDIR all = STATEDIR_INIT;
	int rc = keeper_open_all(state, &all, err);

	if (rc > 0)
		rc = keeper_each_in(&all, count_one, &v, err);
	free(v.row);
	*ret_count = v.n;
	*ret_bytes = v.bytes;
	return rc;
}
