/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact.c - how patterns are found: each is a small automaton that reads the text once.  A state remembers the
 * earliest place from which it was reached, so that the leftmost match is found and then made as long as it gets,
 * without going back: hostile text cannot make the search slow.
 */
#include "history/redact.h"

#include <string.h>

#include "base/str.h"

#define DEAD SIZE_MAX

struct pattern {
	char item[SETTING_ITEM_MAX]; /* '*' is the star: there is no other */
	size_t n;
};

/* For each state the earliest start, DEAD if it was not reached. */
struct states {
	size_t start[SETTING_ITEM_MAX + 1];
};

struct match {
	size_t start, end; /* start DEAD: none */
};

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Two stars are one. */
static void compile(const char *text, struct pattern *ret)
{
	ret->n = 0;
	for (; *text && ret->n < sizeof(ret->item); text++)
		if (*text != '*' || ret->n == 0 || ret->item[ret->n - 1] != '*')
			ret->item[ret->n++] = *text;
}

/* A star may also match nothing: reaching it means reaching what follows it. */
static void reach(const struct pattern *p, struct states *s, size_t state, size_t start)
{
	for (;; state++) {
		if (s->start[state] > start)
			s->start[state] = start;
		if (state == p->n || p->item[state] != '*')
			return;
	}
}

static bool read_byte(const struct pattern *p, const struct states *from, struct states *to, char c)
{
	bool alive = false;

	memset(to->start, 0xff, (p->n + 1) * sizeof(to->start[0]));
	for (size_t i = 0; i < p->n; i++) {
		if (from->start[i] == DEAD)
			continue;
		if (p->item[i] == '*' && !is_space(c)) {
			reach(p, to, i, from->start[i]);
			alive = true;
		} else if (p->item[i] != '*' && p->item[i] == c) {
			reach(p, to, i + 1, from->start[i]);
			alive = true;
		}
	}
	return alive;
}

/* Takes the match that ends here, unless it starts later than the one we have. */
static void accept(const struct pattern *p, struct states *s, size_t at, struct match *m)
{
	size_t start = s->start[p->n];

	if (start != DEAD && start < at && start <= m->start) {
		m->start = start;
		m->end = at;
	}
	if (m->start != DEAD)
		for (size_t i = 0; i <= p->n; i++)
			if (s->start[i] > m->start)
				s->start[i] = DEAD;
}

/* The end of a text that was cut: what may have become a match is one. */
static void accept_beginnings(const struct pattern *p, const struct states *s, size_t at, struct match *m)
{
	for (size_t i = 0; i < p->n; i++)
		if (s->start[i] < at && s->start[i] <= m->start) {
			m->start = s->start[i];
			m->end = at;
		}
}

/* Where a pattern can begin at all. */
static size_t skip(const struct pattern *p, const struct redact_text *t, size_t at)
{
	const char *found;

	if (p->item[0] == '*' || at >= t->len)
		return at;
	found = memchr(t->data + at, p->item[0], t->len - at);
	return found ? (size_t)(found - t->data) : t->len;
}

static struct match find(const struct pattern *p, const struct redact_text *t, size_t at)
{
	struct states a, b, *now = &a, *next = &b;
	struct match m = { .start = DEAD };
	bool alive = false;

	memset(now->start, 0xff, sizeof(now->start));
	for (;; at++) {
		struct states *swap = now;

		if (m.start == DEAD) {
			if (!alive)
				at = skip(p, t, at);
			reach(p, now, 0, at);
		}
		accept(p, now, at, &m);
		if (at >= t->len || (!alive && m.start != DEAD))
			break;
		alive = read_byte(p, now, next, t->data[at]);
		now = next;
		next = swap;
		if (!alive && m.start != DEAD)
			break;
	}
	if (t->cut && at >= t->len)
		accept_beginnings(p, now, t->len, &m);
	return m;
}

/* Where the kept part ends: not in the middle of a character. */
static size_t keep_end(const struct redact_text *t)
{
	size_t end = t->keep < t->len ? t->keep : t->len;

	for (size_t back = 1; back <= 3 && back <= end && (t->cut || end < t->len); back++) {
		const char *lead = t->data + end - back;
		unsigned char c = (unsigned char)*lead;
		size_t size = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

		if (size > back)
			return end - back;
		if (c < 0x80 || c >= 0xc0)
			break;
	}
	return end;
}

static void write_out(const struct redact_text *t, const char *hidden, struct buf *out)
{
	size_t end = keep_end(t), at = 0;

	while (at < end) {
		size_t from = at;

		while (at < end && !hidden[at])
			at++;
		buf_add(out, t->data + from, at - from);
		if (at == end)
			break;
		buf_adds(out, REDACT_MARK);
		while (at < end && hidden[at])
			at++;
	}
}

bool redact(const struct setting_list *patterns, const struct redact_text *t, struct buf *out)
{
	AUTO_FREE char *hidden = calloc(t->len + 1, 1); /* per byte: whether it is part of a match */
	bool any = false;

	if (!hidden) {
		out->no_memory = true;
		return false;
	}
	for (const char *item = NULL; (item = setting_list_next(patterns, item));) {
		struct pattern p;
		struct match m;

		compile(item, &p);
		for (size_t at = 0; p.n > 0 && at < t->len; at = m.end) {
			m = find(&p, t, at);
			if (m.start == DEAD)
				break;
			memset(hidden + m.start, 1, m.end - m.start);
			any = any || m.start < keep_end(t);
		}
	}
	write_out(t, hidden, out);
	return any;
}
