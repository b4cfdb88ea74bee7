/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Myers' algorithm: the furthest-reaching path with d edits on every diagonal, for d = 0, 1, 2 ...; each round is kept,
 * so that the way can be traced back.  Lines that both texts begin or end with are taken off first.  Time and memory
 * grow with the number of edits, which is capped: texts that differ more are shown as one removed and one added whole.
 */
#include "workspace/lines.h"

#include <string.h>

#define CONTEXT   3
#define EDITS_MAX 1500

struct lines {
	struct text *line; /* with their newlines */
	size_t n;
};

struct diff {
	struct lines a, b;
	bool *removed, *added; /* by line of a, of b */
};

/* ---- lines ------------------------------------------------------------------------------------- */

static bool split(struct text t, struct lines *ret)
{
	size_t n = 0, at = 0;

	for (size_t i = 0; i < t.len; i++)
		n += t.data[i] == '\n';
	ret->line = calloc(n + 1, sizeof(*ret->line));
	if (!ret->line)
		return false;
	while (at < t.len) {
		const char *newline = memchr(t.data + at, '\n', t.len - at);
		size_t len = newline ? (size_t)(newline - t.data) - at + 1 : t.len - at;

		ret->line[ret->n++] = (struct text){ t.data + at, len };
		at += len;
	}
	return true;
}

static bool same(const struct diff *d, size_t i, size_t j)
{
	const struct text *a = &d->a.line[i], *b = &d->b.line[j];

	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* ---- edits ------------------------------------------------------------------------------------- */

/* The part of both texts that differs, and the rounds of the search: round d has 2d + 1 diagonals. */
struct search {
	struct diff *d;
	size_t from; /* lines before it are the same */
	int n, m;    /* lines in it */
	int **round; /* how far in a, by diagonal */
	int last;    /* the round that arrived */
};

static int reach(const struct search *s, int d, int k)
{
	return s->round[d][k + d];
}

/* Where diagonal k begins in round d: one step down or right from its neighbour in the round before. */
static int begin(const struct search *s, int d, int k)
{
	if (d == 0)
		return 0;
	if (k == -d || (k != d && reach(s, d - 1, k - 1) < reach(s, d - 1, k + 1)))
		return reach(s, d - 1, k + 1);
	return reach(s, d - 1, k - 1) + 1;
}

/* True: some diagonal has arrived at the end. */
static bool run_round(struct search *s, int d)
{
	for (int k = -d; k <= d; k += 2) {
		int x = begin(s, d, k), y = x - k;

		while (x < s->n && y >= 0 && y < s->m && same(s->d, s->from + (size_t)x, s->from + (size_t)y)) {
			x++;
			y++;
		}
		s->round[d][k + d] = x;
		if (x >= s->n && y >= s->m)
			return true;
	}
	return false;
}

/* 1: found; 0: too many edits; -1: no memory. */
static int find(struct search *s)
{
	int most = s->n + s->m < EDITS_MAX ? s->n + s->m : EDITS_MAX;

	s->round = calloc((size_t)most + 1, sizeof(*s->round));
	if (!s->round)
		return -1;
	for (s->last = 0; s->last <= most; s->last++) {
		s->round[s->last] = calloc((size_t)s->last * 2 + 1, sizeof(**s->round));
		if (!s->round[s->last])
			return -1;
		if (run_round(s, s->last))
			return 1;
	}
	s->last = most;
	return 0;
}

static void trace_back(const struct search *s)
{
	int x = s->n, y = s->m;

	for (int d = s->last; d > 0; d--) {
		int k = x - y;
		bool down = k == -d || (k != d && reach(s, d - 1, k - 1) < reach(s, d - 1, k + 1));
		int before = down ? k + 1 : k - 1;

		x = reach(s, d - 1, before);
		y = x - before;
		if (down)
			s->d->added[s->from + (size_t)y] = true;
		else
			s->d->removed[s->from + (size_t)x] = true;
	}
}

static bool mark_edits(struct diff *d)
{
	size_t from = 0, tail = 0, a = d->a.n, b = d->b.n;
	struct search s = { .d = d };
	int found;

	while (from < a && from < b && same(d, from, from))
		from++;
	while (tail < a - from && tail < b - from && same(d, a - tail - 1, b - tail - 1))
		tail++;
	s.from = from;
	s.n = (int)(a - from - tail);
	s.m = (int)(b - from - tail);
	found = find(&s);
	if (found > 0)
		trace_back(&s);
	else
		for (int i = 0; i < s.n || i < s.m; i++) {
			if (i < s.n)
				d->removed[from + (size_t)i] = true;
			if (i < s.m)
				d->added[from + (size_t)i] = true;
		}
	for (int i = 0; s.round && i <= s.last; i++)
		free(s.round[i]);
	free(s.round);
	return found >= 0;
}

/* ---- hunks ------------------------------------------------------------------------------------- */

static void put_line(struct buf *out, char sign, const struct text *line)
{
	(void)buf_add(out, &sign, 1);
	(void)buf_add(out, line->data, line->len);
	if (line->len == 0 || line->data[line->len - 1] != '\n')
		(void)buf_adds(out, "\n\\ No newline at end of file\n");
}

/* Moves on over one group of edits; false: there is none here. */
static bool skip_edits(const struct diff *d, size_t *i, size_t *j)
{
	size_t i0 = *i, j0 = *j;

	while (*i < d->a.n && d->removed[*i])
		++*i;
	while (*j < d->b.n && d->added[*j])
		++*j;
	return *i != i0 || *j != j0;
}

/* The end of the hunk that begins with the edits at *i, *j: behind the last group that is near. */
static void find_end(const struct diff *d, size_t *i, size_t *j)
{
	size_t end_i, end_j;

	do {
		size_t n = 0;

		(void)skip_edits(d, i, j);
		end_i = *i;
		end_j = *j;
		while (n < 2 * CONTEXT && *i < d->a.n && *j < d->b.n && !d->removed[*i] && !d->added[*j]) {
			n++;
			++*i;
			++*j;
		}
	} while ((*i < d->a.n && d->removed[*i]) || (*j < d->b.n && d->added[*j]));
	*i = end_i;
	*j = end_j;
}

static void put_hunk(const struct diff *d, struct buf *out, size_t i, size_t j, size_t end_i, size_t end_j)
{
	/* An empty side is said to begin before its first line. */
	(void)buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", i + (end_i > i), end_i - i, j + (end_j > j), end_j - j);
	while (i < end_i || j < end_j) {
		if (i < end_i && d->removed[i])
			put_line(out, '-', &d->a.line[i++]);
		else if (j < end_j && d->added[j])
			put_line(out, '+', &d->b.line[j++]);
		else {
			put_line(out, ' ', &d->a.line[i++]);
			j++;
		}
	}
}

static size_t at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void put_hunks(const struct diff *d, struct buf *out)
{
	size_t i = 0, j = 0;

	while (i < d->a.n || j < d->b.n) {
		size_t end_i, end_j, lead, tail;

		if (!(i < d->a.n && d->removed[i]) && !(j < d->b.n && d->added[j])) {
			i++;
			j++;
			continue;
		}
		end_i = i;
		end_j = j;
		find_end(d, &end_i, &end_j);
		lead = at_most(CONTEXT, at_most(i, j));
		tail = at_most(CONTEXT, at_most(d->a.n - end_i, d->b.n - end_j));
		put_hunk(d, out, i - lead, j - lead, end_i + tail, end_j + tail);
		i = end_i;
		j = end_j;
	}
}

bool lines_diff(struct text before, struct text after, struct buf *out)
{
	struct diff d = { .removed = NULL };
	bool ok = split(before, &d.a) && split(after, &d.b);

	if (ok) {
		d.removed = calloc(d.a.n + 1, sizeof(*d.removed));
		d.added = calloc(d.b.n + 1, sizeof(*d.added));
		ok = d.removed && d.added && mark_edits(&d);
	}
	if (ok)
		put_hunks(&d, out);
	free(d.a.line);
	free(d.b.line);
	free(d.removed);
	free(d.added);
	return ok && !out->no_memory;
}
