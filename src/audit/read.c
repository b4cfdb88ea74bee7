/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - entries that meet conditions.
 *
 * The bytes `"verdict":"ok"` can only be that member (entry.c), so that a condition is a search for bytes, and most lines
 * are passed over without being taken apart.
 */
#include <stdio.h>
#include <string.h>

#include "audit/internal.h"
#include "base/str.h"
#include "base/when.h"

#define NEEDLES_MAX 5

struct needle {
	char text[128];
	size_t len;
};

struct matcher {
	struct needle needle[NEEDLES_MAX];
	size_t n;
	char since[WHEN_TEXT_MAX], until[WHEN_TEXT_MAX]; /* "": open */
};

static int add_needle(struct matcher *m, const char *name, const char *value, struct brig_error *err)
{
	struct needle *n = &m->needle[m->n];
	int len;

	if (!value)
		return 0;
	if (strpbrk(value, "\"\\"))
		return err_set(err, BRIG_E_USAGE, 0, "'%.60s' is no %s", value, name);
	len = snprintf(n->text, sizeof(n->text), "\"%s\":\"%s\"", name, value);
	if (len < 0 || (size_t)len >= sizeof(n->text))
		return err_set(err, BRIG_E_USAGE, 0, "'%.60s' is no %s", value, name);
	n->len = (size_t)len;
	m->n++;
	return 0;
}

static int matcher_make(const struct audit_filter *f, struct matcher *m, struct brig_error *err)
{
	int rc;

	*m = (struct matcher){ .n = 0 };
	if ((rc = add_needle(m, "verdict", f->verdict, err)) < 0 ||
	    (rc = add_needle(m, "language", f->language, err)) < 0 ||
	    (rc = add_needle(m, "trust", f->trust, err)) < 0 || (rc = add_needle(m, "rule", f->rule, err)) < 0)
		return rc;
	if (f->runs_only)
		(void)add_needle(m, "event", "run", err);
	if (f->since_ns)
		(void)when_utc(m->since, sizeof(m->since), f->since_ns);
	if (f->until_ns)
		(void)when_utc(m->until, sizeof(m->until), f->until_ns);
	return 0;
}

/* Times are written in one form, of one length: they compare like texts. */
static bool time_fits(const struct matcher *m, const char *line, size_t len)
{
	static const char name[] = "\"time\":\"";
	const char *at;

	if (!*m->since && !*m->until)
		return true;
	at = memmem(line, (size_t)min_u64(len, 160), name, sizeof(name) - 1);
	if (!at || (size_t)(line + len - at) < sizeof(name) + ENTRY_TIME_LEN)
		return false;
	at += sizeof(name) - 1;
	return (!*m->since || memcmp(at, m->since, ENTRY_TIME_LEN) >= 0) &&
	       (!*m->until || memcmp(at, m->until, ENTRY_TIME_LEN) < 0);
}

static bool line_fits(const struct matcher *m, const char *line, size_t len)
{
	for (size_t i = 0; i < m->n; i++)
		if (!memmem(line, len, m->needle[i].text, m->needle[i].len))
			return false;
	return time_fits(m, line, len);
}

/* ---- the last ones only ---------------------------------------------------------------------------- */

struct ring {
	struct kept {
		char *text;
		size_t len;
	} * line;
	size_t size, n; /* n counts all that were put in */
};

static int ring_put(struct ring *r, const char *line, size_t len, struct brig_error *err)
{
	struct kept *k = &r->line[r->n % r->size];
	char *copy = malloc(len + 1);

	if (!copy)
		return err_nomem(err);
	memcpy(copy, line, len);
	free(k->text);
	*k = (struct kept){ .text = copy, .len = len };
	r->n++;
	return 0;
}

static int ring_give(const struct ring *r, audit_line_fn fn, void *arg)
{
	int rc = 0;

	for (size_t i = r->n > r->size ? r->n - r->size : 0; i < r->n && rc >= 0; i++)
		rc = fn(arg, r->line[i % r->size].text, r->line[i % r->size].len);
	return rc < 0 ? rc : 0;
}

static void ring_release(struct ring *r)
{
	for (size_t i = 0; r->line && i < r->size; i++)
		free(r->line[i].text);
	free(r->line);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

static int read_lines(struct reader *r, const struct matcher *m, struct ring *ring, audit_line_fn fn, void *arg,
		      struct brig_error *err)
{
	const char *line;
	size_t len;
	int rc;

	while ((rc = reader_next(r, &line, &len, err)) > 0) {
		if (r->torn || r->oversized || !line_fits(m, line, len))
			continue;
		rc = ring->size ? ring_put(ring, line, len, err) : fn(arg, line, len);
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? rc : ring_give(ring, fn, arg);
}

int audit_read(const struct statedir *state, const struct audit_filter *f, audit_line_fn fn, void *arg,
	       struct brig_error *err)
{
	struct ring ring = { .size = (size_t)min_u64(f->last, AUDIT_LAST_MAX) };
	struct matcher m;
	struct reader r;
	int rc = matcher_make(f, &m, err);

	if (rc < 0)
		return rc;
	rc = reader_open(state, &r, err);
	if (rc < 0)
		return rc;
	if (ring.size)
		ring.line = calloc(ring.size, sizeof(*ring.line));
	if (ring.size && !ring.line)
		rc = err_nomem(err);
	else
		rc = read_lines(&r, &m, &ring, fn, arg, err);
	ring_release(&ring);
	reader_close(&r);
	return rc;
}
