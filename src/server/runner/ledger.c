/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/ledger.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/journal.h"

/* ---- reading ------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
	const struct ledger_past *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* The array is sorted by id. */
static struct ledger_past *find(const struct ledger *l, const char *id)
{
	struct ledger_past wanted = { .id = "" };

	if (l->n_past == 0 || !str_copy(wanted.id, sizeof(wanted.id), id))
		return NULL;
	return bsearch(&wanted, l->past, l->n_past, sizeof(*l->past), compare);
}

const struct ledger_past *ledger_find(const struct ledger *l, const char *id)
{
	return find(l, id);
}

struct ledger_line {
	char what, id[EXECUTION_ID_LEN + 2], word[TOKEN_NAME_MAX + 2];
	unsigned long long at_s;
};

/* Skips invalid lines, such as one truncated by a crash of the host. */
static bool next_line(FILE *in, struct ledger_line *ret)
{
	char line[256];

	while (fgets(line, sizeof(line), in))
		if (sscanf(line, "%c %17s %llu %65s", &ret->what, ret->id, &ret->at_s, ret->word) == 4 &&
		    strlen(ret->id) == EXECUTION_ID_LEN && strlen(ret->word) <= TOKEN_NAME_MAX)
			return true;
	return false;
}

static bool is_promise(const struct ledger_line *line, uint64_t now_s)
{
	return line->what == 'a' && line->at_s + LEDGER_PAST_S > now_s;
}

/* Reads the promises of the last week, the youngest LEDGER_PAST_MAX of them. */
static void read_promises(struct ledger *l, FILE *in)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;
	struct ledger_line line;
	size_t skip = 0, n = 0;

	while (next_line(in, &line))
		n += is_promise(&line, now_s);
	skip = n > LEDGER_PAST_MAX ? n - LEDGER_PAST_MAX : 0;
	rewind(in);
	while (next_line(in, &line) && l->n_past < LEDGER_PAST_MAX) {
		struct ledger_past *p = &l->past[l->n_past];

		if (!is_promise(&line, now_s) || (skip > 0 && skip--))
			continue;
		*p = (struct ledger_past){ .accepted_s = line.at_s };
		(void)str_copy(p->id, sizeof(p->id), line.id);
		(void)str_copy(p->owner, sizeof(p->owner), line.word);
		(void)str_copy(p->verdict, sizeof(p->verdict), LEDGER_LOST);
		l->n_past++;
	}
	qsort(l->past, l->n_past, sizeof(*l->past), compare);
}

static void read_ends(struct ledger *l, FILE *in)
{
	struct ledger_line line;

	while (next_line(in, &line)) {
		struct ledger_past *p = line.what == 'e' ? find(l, line.id) : NULL;

		if (p) {
			p->ended_s = line.at_s;
			(void)str_copy(p->verdict, sizeof(p->verdict), line.word);
		}
	}
}

static int read_file(struct ledger *l, struct brig_error *err)
{
	FILE *in = NULL;
	int rc = journal_open_file(&l->dir, LEDGER_NAME, &in, err);

	l->n_past = 0;
	if (rc < 0 || !in)
		return rc;
	read_promises(l, in);
	rewind(in);
	read_ends(l, in);
	(void)fclose(in);
	return 0;
}

/* ---- the history ---------------------------------------------------------------------------------------- */

static void take_history(struct ledger *l, const json_t *doc)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "executions"), i, row)
	{
		const char *id = json_string_value(json_object_get(row, "id"));
		const char *verdict = json_string_value(json_object_get(row, "verdict"));
		struct ledger_past *p = id && verdict ? find(l, id) : NULL;

		if (p && p->ended_s == 0) {
			p->ended_s = p->accepted_s;
			(void)str_copy(p->verdict, sizeof(p->verdict), verdict);
		}
	}
}

/*
 * A promise without an end may have ended nevertheless, if the process died between the end of the run and the ledger's
 * line.
 */
static void handle_history(struct ledger *l, struct brig *b)
{
	struct brig_history req = BRIG_HISTORY_INIT;
	uint64_t since_s = UINT64_MAX;
	char since[32], *text = NULL;
	json_t *doc;

	for (size_t i = 0; i < l->n_past; i++)
		if (l->past[i].ended_s == 0)
			since_s = min_u64(since_s, l->past[i].accepted_s);
	if (since_s == UINT64_MAX)
		return;
	(void)snprintf(since, sizeof(since), "@%llu", (unsigned long long)since_s);
	req.since = since;
	if (brig_history_json(b, &req, &text, NULL) < 0)
		return;
	doc = json_loads(text, JSON_ALLOW_NUL, NULL);
	brig_free(text);
	take_history(l, doc);
	json_decref(doc);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static void put_past(struct buf *out, const struct ledger_past *p)
{
	buf_addf(out, "a %s %llu %s\n", p->id, (unsigned long long)p->accepted_s, p->owner);
	if (p->ended_s)
		buf_addf(out, "e %s %llu %s\n", p->id, (unsigned long long)p->ended_s, p->verdict);
}

/* Rewrites the file atomically with what is in memory. */
static int write_anew(struct ledger *l, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(LEDGER_FILE_MAX);

	for (size_t i = 0; i < l->n_past; i++)
		put_past(&text, &l->past[i]);
	l->journal.dir = &l->dir;
	l->journal.name = LEDGER_NAME;
	return journal_replace(&l->journal, &text, err);
}

/* Nothing continues the promises of an earlier process. */
static void mark_lost(struct ledger *l)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;

	for (size_t i = 0; i < l->n_past; i++)
		if (l->past[i].ended_s == 0)
			l->past[i].ended_s = now_s;
}

int ledger_open(struct ledger *l, const char *state_dir, struct brig *b, struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	int rc = statedir_open(state_dir, true, &state, err);

	if (rc == 0)
		rc = statedir_open_sub(&state, "serve", true, &l->dir, err);
	if (rc < 0)
		return rc;
	l->past = calloc(LEDGER_PAST_MAX + 1, sizeof(*l->past));
	if (!l->past)
		return err_nomem(err);
	rc = read_file(l, err);
	if (rc < 0)
		return rc;
	handle_history(l, b);
	mark_lost(l);
	return write_anew(l, err);
}

void ledger_close(struct ledger *l)
{
	journal_close(&l->journal);
	statedir_close(&l->dir);
	free(l->past);
	l->past = NULL;
	l->n_past = 0;
}

static unsigned long long now_s(void)
{
	return clock_wall_ns() / NS_PER_SEC;
}

void ledger_accept(struct ledger *l, const char *id, const char *owner)
{
	buf_addf(&l->journal.pending, "a %s %llu %s\n", id, now_s(), owner);
}

void ledger_end(struct ledger *l, const char *id, const char *verdict)
{
	struct ledger_past *p = find(l, id);

	if (p) {
		p->ended_s = now_s();
		(void)str_copy(p->verdict, sizeof(p->verdict), verdict);
	}
	buf_addf(&l->journal.pending, "e %s %llu %s\n", id, now_s(), verdict);
}

int ledger_commit(struct ledger *l, bool to_disk, struct brig_error *err)
{
	int rc = journal_commit(&l->journal, to_disk, err);

	if (rc == 0 && l->journal.bytes > LEDGER_FILE_MAX && (rc = read_file(l, err)) == 0)
		rc = write_anew(l, err);
	return rc;
}
