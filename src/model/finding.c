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

static bool comes_before(const struct finding *a, const struct finding *b)
{
	if (a->span.start != b->span.start)
		return a->span.start < b->span.start;
	if (a->severity != b->severity)
		return a->severity > b->severity;
	if (a->span.end != b->span.end)
		return a->span.end < b->span.end;
	return strcmp(a->rule, b->rule) < 0;
}

/* By hand: they are few and nearly in order, and qsort() asks the system for its memory, which a confined process must
 * not do. */
void findings_sort(struct findings *f)
{
	for (size_t i = 1; i < f->n; i++) {
		struct finding one = f->row[i];
		size_t at = i;

		while (at > 0 && comes_before(&one, &f->row[at - 1]))
			at--;
		memmove(&f->row[at + 1], &f->row[at], (i - at) * sizeof(*f->row));
		f->row[at] = one;
	}
}

void findings_release(struct findings *f)
{
	free(f->row);
	*f = (struct findings){ 0 };
}
