/* SPDX-License-Identifier: Apache-2.0 */
#include "model/finding.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

const char *const severity_name[] = {
	[SEVERITY_NONE] = "NONE", [SEVERITY_LOW] = "LOW",           [SEVERITY_MEDIUM] = "MEDIUM",
	[SEVERITY_HIGH] = "HIGH", [SEVERITY_CRITICAL] = "CRITICAL",
};
static_assert(ARRAY_LEN(severity_name) == SEVERITY_COUNT, "severity_name[] misses one");

static bool is_duplicate(const struct findings *f, const struct finding *one)
{
	for (size_t i = f->n; i-- > 0;)
		if (f->row[i].span.start == one->span.start && f->row[i].span.end == one->span.end &&
		    str_eq(f->row[i].rule, one->rule))
			return true;
	return false;
}

static bool grow(struct findings *f)
{
	size_t cap = f->cap ? 2 * f->cap : 8;
	struct finding *row = reallocarray(f->row, cap, sizeof(*row));

	if (!row)
		return false;
	f->row = row;
	f->cap = cap;
	return true;
}

/* A full list keeps what matters: a worse finding takes the place of the mildest one. */
static struct finding *mildest(struct findings *f, enum severity below)
{
	struct finding *found = NULL;

	for (size_t i = f->n; i-- > 0;)
		if (f->row[i].severity < below && (!found || f->row[i].severity < found->severity))
			found = &f->row[i];
	return found;
}

bool findings_add(struct findings *f, const struct finding *one)
{
	struct finding *place;

	if (is_duplicate(f, one))
		return true;
	if (one->severity > f->worst)
		f->worst = one->severity;
	if (f->n == FINDINGS_MAX) {
		f->dropped++;
		place = mildest(f, one->severity);
		if (place)
			*place = *one;
		return true;
	}
	if (f->n == f->cap && !grow(f))
		return false;
	f->row[f->n++] = *one;
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->span.start != y->span.start)
		return x->span.start < y->span.start ? -1 : 1;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->span.end != y->span.end)
		return x->span.end < y->span.end ? -1 : 1;
	return strcmp(x->rule, y->rule);
}

void findings_sort(struct findings *f)
{
	if (f->n > 1)
		qsort(f->row, f->n, sizeof(*f->row), by_place);
}

void findings_release(struct findings *f)
{
	free(f->row);
	*f = (struct findings){ 0 };
}
