/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence for masks and seals: for each path that must have one, we look at what the kernel reports as mounted in the
 * cell, rather than trust the number that init reports.  Mounts stack, and a later mount on a directory covers those
 * below it.  So a path is resolved as the kernel does it: from the workspace's mount to the first mount on the way, and
 * on from there; the last one is what the program sees.  There may be thousands of mounts, so they are sorted once.
 *
 * This is done twice: for each path before the program starts; and after its end, to check that all mounts seen then
 * are still visible, wherever the program has moved the directories that they are in.
 */
#include "backend/native/covers.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/plan.h"

struct cover {
	uint64_t id, parent;
	char *point; /* allocated; relative to the workspace, "" for itself */
	bool ro;
	long mask; /* number of our empty object; -1: something else */
};

/* Our empty objects are the files "0", "1" ... in /tmp of the tmpfs that is the cell's root. */
static long mask_number(const struct mount_line *m)
{
	const char *digits = m->root + strlen("/tmp/");
	uint64_t n;

	if (!str_eq(m->fstype, "tmpfs") || strncmp(m->root, "/tmp/", strlen("/tmp/")) != 0)
		return -1;
	return *digits >= '0' && *digits <= '9' && str_to_u64(digits, &n) && n < INT32_MAX ? (long)n : -1;
}

void covers_note(struct covers *c, const struct mount_line *m)
{
	size_t len = strlen(PLAN_WORKSPACE);
	const char *below = m->point + len;
	struct cover *place;

	if (strncmp(m->point, PLAN_WORKSPACE, len) != 0 || (*below != '/' && *below != '\0'))
		return;
	if (c->n == c->cap) {
		size_t more = c->cap ? 2 * c->cap : 16;
		struct cover *bigger = reallocarray(c->row, more, sizeof(*bigger));

		c->incomplete |= !bigger;
		if (!bigger)
			return;
		c->row = bigger;
		c->cap = more;
	}
	place = &c->row[c->n];
	*place = (struct cover){ .id = m->id,
				 .parent = m->parent,
				 .point = strdup(below + (*below == '/')),
				 .ro = proc_list_has(m->options, ',', "ro"),
				 .mask = mask_number(m) };
	c->incomplete |= !place->point;
	c->n += place->point != NULL;
}

/* ---- lookups ----------------------------------------------------------------------------------- */

static int compare(uint64_t parent, const char *point, size_t len, const struct cover *r)
{
	int order;

	if (parent != r->parent)
		return parent < r->parent ? -1 : 1;
	order = strncmp(point, r->point, len);
	return order ? order : r->point[len] ? -1 : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct cover *x = a, *y = b;

	return compare(x->parent, x->point, strlen(x->point), y);
}

/* The mount on parent whose mount point is the first len bytes of path. */
static const struct cover *mount_on(const struct covers *c, uint64_t parent, const char *path, size_t len)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(parent, path, len, &c->row[middle]);

		if (order == 0)
			return &c->row[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* The first mount on parent on the way to path; NULL: none. */
static const struct cover *next_on_way(const struct covers *c, uint64_t parent, const char *path)
{
	const struct cover *first = mount_on(c, parent, path, 0);

	for (size_t len = 0; !first && path[len];) {
		len += strcspn(path + len + (len > 0), "/") + (len > 0);
		first = mount_on(c, parent, path, len);
	}
	return first;
}

static bool has_id(const struct covers *c, uint64_t id)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->row[i].id == id)
			return true;
	return false;
}

/*
 * Sorts once, when all mounts are noted, and finds the workspace's own mount (the lowest one if several are stacked).
 */
static void put_in_order(struct covers *c)
{
	if (c->ordered)
		return;
	c->ordered = true;
	if (c->n > 0)
		qsort(c->row, c->n, sizeof(*c->row), by_place);
	for (c->lowest = 0; c->lowest < c->n; c->lowest++)
		if (!*c->row[c->lowest].point && !has_id(c, c->row[c->lowest].parent))
			break;
}

/* The mount that the program sees at path; NULL: the workspace itself is missing. */
static const struct cover *found_at(const struct covers *c, const char *path)
{
	const struct cover *at = c->lowest < c->n ? &c->row[c->lowest] : NULL, *next;

	for (size_t i = 0; i < c->n && at && (next = next_on_way(c, at->id, path)); i++)
		at = next;
	return at;
}

bool covers_hide(struct covers *c, const char *path, size_t i)
{
	const struct cover *at;

	put_in_order(c);
	at = found_at(c, path);
	return !c->incomplete && at && at->ro && at->mask == (long)i && str_eq(at->point, path);
}

bool covers_seal(struct covers *c, const char *path)
{
	const struct cover *at;

	put_in_order(c);
	at = found_at(c, path);
	return !c->incomplete && at && at->ro && (at->mask >= 0 || str_eq(at->point, path));
}

static bool is_seen(const struct covers *c, const struct cover *r)
{
	return r->ro && *r->point && found_at(c, r->point) == r;
}

bool covers_have(struct covers *c, size_t i)
{
	put_in_order(c);
	for (size_t k = 0; k < c->n; k++)
		if (c->row[k].mask == (long)i && is_seen(c, &c->row[k]))
			return !c->incomplete;
	return false;
}

size_t covers_seals(struct covers *c)
{
	size_t n = 0;

	put_in_order(c);
	for (size_t k = 0; k < c->n; k++)
		n += c->row[k].mask < 0 && is_seen(c, &c->row[k]);
	return n;
}

void covers_release(struct covers *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->row[i].point);
	free(c->row);
	*c = (struct covers){ .row = NULL };
}
