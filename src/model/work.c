/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of workspace.h, attempts.h and testing.h: bounded, or bounded by who fills them. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "model/attempts.h"
#include "model/testing.h"
#include "model/workspace.h"

const char *const change_kind_name[] = {
	[CHANGE_ADDED] = "added",
	[CHANGE_MODIFIED] = "modified",
	[CHANGE_DELETED] = "deleted",
};
static_assert(ARRAY_LEN(change_kind_name) == CHANGE_KIND_COUNT, "change_kind_name[] misses one");

const char *const change_type_name[] = {
	[CHANGE_FILE] = "file",
	[CHANGE_DIR] = "directory",
	[CHANGE_LINK] = "link",
	[CHANGE_SPECIAL] = "special",
};
static_assert(ARRAY_LEN(change_type_name) == CHANGE_TYPE_COUNT, "change_type_name[] misses one");

const char *const changes_state_name[] = {
	[CHANGES_NONE] = "none",
	[CHANGES_KEPT] = "kept",
	[CHANGES_APPLIED] = "applied",
	[CHANGES_INCOMPLETE] = "incomplete",
};
static_assert(ARRAY_LEN(changes_state_name) == CHANGES_STATE_COUNT, "changes_state_name[] misses one");

const char *const denied_kind_name[] = {
	[DENIED_SYSCALL] = "syscall",
	[DENIED_FILE] = "file",
	[DENIED_HOST] = "host",
};
static_assert(ARRAY_LEN(denied_kind_name) == DENIED_KIND_COUNT, "denied_kind_name[] misses one");

const char denied_without_listener[] =
	"refused calls and hosts are not listed: this kernel, or what brig itself runs in, "
	"gives no listener for them, or it failed";
const char denied_without_watches[] =
	"hidden files that the program opened are not all listed: this user has no inotify watches left";

const char *const packages_state_name[] = {
	[PACKAGES_NONE] = "none",
	[PACKAGES_HIT] = "hit",
	[PACKAGES_INSTALLED] = "installed",
	[PACKAGES_RECEIVED] = "received",
};
static_assert(ARRAY_LEN(packages_state_name) == PACKAGES_STATE_COUNT, "packages_state_name[] misses one");

/* A place behind the last row of a heap array of n rows with room for *cap; NULL: no memory. */
static void *grow(void **rows, size_t n, size_t *cap, size_t size)
{
	if (n == *cap) {
		size_t more = *cap ? 2 * *cap : 8;
		void *bigger = reallocarray(*rows, more, size);

		if (!bigger)
			return NULL;
		*rows = bigger;
		*cap = more;
	}
	return (char *)*rows + n * size;
}

/* ---- projects ---------------------------------------------------------------------------------- */

bool plan_workspace_hides(void *arg, const char *path, bool is_dir UNUSED)
{
	const struct plan_workspace *w = arg;

	if (w->covered && str_eq(w->covered, path))
		return true;
	for (size_t i = 0; i < w->n_hidden; i++)
		if (str_eq(w->hidden[i], path))
			return true;
	return false;
}

/* ---- changes ----------------------------------------------------------------------------------- */

bool changes_add(struct changes *c, const struct change *one)
{
	struct change copy = *one;
	struct change *place;

	copy.path = strdup(one->path);
	place = copy.path ? grow((void **)&c->row, c->n, &c->cap, sizeof(*c->row)) : NULL;
	if (!place) {
		free(copy.path);
		return false;
	}
	*place = copy;
	c->n++;
	return true;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

void changes_sort(struct changes *c)
{
	if (c->n)
		qsort(c->row, c->n, sizeof(*c->row), by_path);
}

void changes_release(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->row[i].path);
	free(c->row);
	*c = (struct changes){ .known = false };
}

bool artifacts_add(struct artifacts *a, const struct artifact *one)
{
	struct artifact copy = *one;
	struct artifact *place;

	copy.path = strdup(one->path);
	place = copy.path ? grow((void **)&a->row, a->n, &a->cap, sizeof(*a->row)) : NULL;
	if (!place) {
		free(copy.path);
		free(copy.content);
		return false;
	}
	*place = copy;
	a->n++;
	return true;
}

void artifacts_release(struct artifacts *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->row[i].path);
		free(a->row[i].content);
	}
	free(a->row);
	*a = (struct artifacts){ .row = NULL };
}

/* ---- attempts ---------------------------------------------------------------------------------- */

bool denied_add(struct denied *d, const struct denied_row *one)
{
	struct denied_row *place;

	for (size_t i = 0; i < d->n; i++)
		if (d->row[i].kind == one->kind && str_eq(d->row[i].what, one->what)) {
			d->row[i].count += one->count;
			return true;
		}
	if (d->n == DENIED_MAX) {
		d->dropped += one->count;
		return true;
	}
	place = grow((void **)&d->row, d->n, &d->cap, sizeof(*d->row));
	if (!place)
		return false;
	*place = *one;
	d->n++;
	return true;
}

void denied_release(struct denied *d)
{
	free(d->row);
	*d = (struct denied){ .row = NULL };
}

bool network_add(struct network *net, const struct network_row *one)
{
	struct network_row *place;

	for (size_t i = 0; i < net->n; i++) {
		struct network_row *r = &net->row[i];

		if (r->port != one->port || r->allowed != one->allowed || !str_eq(r->host, one->host) ||
		    !str_eq(r->reason, one->reason))
			continue;
		r->count += one->count;
		r->sent_bytes += one->sent_bytes;
		r->received_bytes += one->received_bytes;
		return true;
	}
	if (net->n == NETWORK_MAX) {
		net->dropped += one->count;
		return true;
	}
	place = grow((void **)&net->row, net->n, &net->cap, sizeof(*net->row));
	if (!place)
		return false;
	*place = *one;
	net->n++;
	return true;
}

void network_release(struct network *net)
{
	free(net->row);
	*net = (struct network){ .row = NULL };
}

/* ---- tests ------------------------------------------------------------------------------------- */

static void failure_release(struct test_failure *f)
{
	free(f->name);
	free(f->message);
	free(f->file);
}

bool test_report_add(struct test_report *t, struct test_failure *one)
{
	struct test_failure *place = NULL;

	if (t->n == TEST_FAILURES_MAX) {
		t->dropped++;
		failure_release(one);
		return true;
	}
	place = grow((void **)&t->row, t->n, &t->cap, sizeof(*t->row));
	if (!place) {
		failure_release(one);
		return false;
	}
	*place = *one;
	t->n++;
	return true;
}

void test_report_release(struct test_report *t)
{
	for (size_t i = 0; i < t->n; i++)
		failure_release(&t->row[i]);
	free(t->row);
	*t = (struct test_report){ .known = false };
}
