/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/idempotency.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/id.h"

/* Fields about the sender and the form of the answer, which are not part of the request. */
static bool is_of_the_call(enum field f)
{
	switch (f) {
	case FIELD_route:
	case FIELD_credential:
	case FIELD_has_peer:
	case FIELD_request_id:
	case FIELD_traceparent:
	case FIELD_parent_span:
	case FIELD_idempotency_key:
	case FIELD_session_id:
	case FIELD_stream:
		return true;
	default:
		return false;
	}
}

/*
 * Hashes number and count of a field, then length and bytes of each value, so that different messages never hash the
 * same bytes.
 */
static void add_field(struct sha256 *h, const struct message *m, enum field f)
{
	const uint32_t head[] = { (uint32_t)f, (uint32_t)message_count(m, f) };
	size_t at = 0, n;
	const char *bytes;

	sha256_add(h, head, sizeof(head));
	while ((bytes = message_next(m, f, &at, &n))) {
		const uint64_t len = n;

		sha256_add(h, &len, sizeof(len));
		sha256_add(h, bytes, n);
	}
}

static int add_files(struct sha256 *h, int files)
{
	AUTO_FREE char *piece = malloc(64 * KiB);
	struct stat st;
	off_t at = 0;
	ssize_t n;

	if (!piece)
		return -ENOMEM;
	if (fstat(files, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > IDEMPOTENCY_FILES_MAX)
		return -EFBIG;
	while ((n = pread(files, piece, 64 * KiB, at)) > 0) {
		sha256_add(h, piece, (size_t)n);
		at += n;
	}
	return n < 0 ? -errno : 0;
}

int idempotency_hash(const struct message *m, enum route route, int files, uint8_t ret[SHA256_LEN])
{
	const uint32_t by = route;
	struct sha256 h;
	int rc = 0;

	sha256_begin(&h);
	sha256_add(&h, &by, sizeof(by));
	for (enum field f = 0; f < FIELD_COUNT; f++)
		if (message_has(m, f) && !is_of_the_call(f))
			add_field(&h, m, f);
	if (files >= 0)
		rc = add_files(&h, files);
	sha256_end(&h, ret);
	return rc;
}

void idempotency_name(const char *token, const char *key, uint8_t ret[SHA256_LEN])
{
	struct sha256 h;

	sha256_begin(&h);
	sha256_add(&h, token, strlen(token) + 1);
	sha256_add(&h, key, strlen(key));
	sha256_end(&h, ret);
}

/* ---- the ring ---------------------------------------------------------------------------------------- */

static struct idempotency_entry *entry_at(const struct idempotency *t, size_t i)
{
	return &t->entry[(t->first + i) % IDEMPOTENCY_MAX];
}

const struct idempotency_entry *idempotency_find(const struct idempotency *t, const uint8_t name[SHA256_LEN],
						 uint64_t now_s)
{
	for (size_t i = t->n; i-- > 0;) {
		const struct idempotency_entry *e = entry_at(t, i);

		if (memcmp(e->name, name, SHA256_LEN) == 0 && e->id[0])
			return now_s < e->at_s + IDEMPOTENCY_S ? e : NULL;
	}
	return NULL;
}

/* NULL: out of memory. */
static struct idempotency_entry *next_entry(struct idempotency *t)
{
	if (!t->entry)
		t->entry = calloc(IDEMPOTENCY_MAX, sizeof(*t->entry));
	if (!t->entry)
		return NULL;
	if (t->n == IDEMPOTENCY_MAX)
		t->first = (t->first + 1) % IDEMPOTENCY_MAX;
	else
		t->n++;
	return entry_at(t, t->n - 1);
}

bool idempotency_add(struct idempotency *t, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN],
		     const char *id, uint64_t now_s)
{
	struct idempotency_entry *e = next_entry(t);

	if (!e)
		return false;
	*e = (struct idempotency_entry){ .at_s = now_s };
	memcpy(e->name, name, SHA256_LEN);
	memcpy(e->body, body, SHA256_LEN);
	memcpy(e->id, id, sizeof(e->id));
	return true;
}

/* Searches from the youngest, which is looked up most often. */
static struct idempotency_entry *find_id(const struct idempotency *t, const char *id)
{
	for (size_t i = t->n; i-- > 0;)
		if (strcmp(entry_at(t, i)->id, id) == 0)
			return entry_at(t, i);
	return NULL;
}

void idempotency_forget(struct idempotency *t, const char *id)
{
	struct idempotency_entry *e = find_id(t, id);

	if (!e)
		return;
	if (e->is_kept)
		buf_addf(&t->journal.pending, "f %s\n", id);
	e->id[0] = '\0';
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static void put_line(struct buf *out, const struct idempotency_entry *e)
{
	char name[2 * SHA256_LEN + 1], body[2 * SHA256_LEN + 1];

	buf_addf(out, "%c %s %s %s %llu\n", e->is_promised ? 'a' : 's', hex_put(name, e->name, SHA256_LEN),
		 hex_put(body, e->body, SHA256_LEN), e->id, (unsigned long long)e->at_s);
}

void idempotency_keep(struct idempotency *t, const char *id, bool is_promised)
{
	struct idempotency_entry *e = find_id(t, id);

	if (!e || e->is_kept)
		return;
	e->is_promised = is_promised;
	e->is_kept = true;
	put_line(&t->journal.pending, e);
}

static bool is_id(const char *id)
{
	return strlen(id) == EXECUTION_ID_LEN && strspn(id, ID_ALPHABET) == EXECUTION_ID_LEN;
}

static bool take_line(void *arg, const char *line)
{
	char kind, name[2 * SHA256_LEN + 2], body[2 * SHA256_LEN + 2], id[EXECUTION_ID_LEN + 2], more;
	struct idempotency *t = arg;
	struct idempotency_entry e = { .is_kept = true, .is_past = true }, *place;
	unsigned long long at_s;

	if (sscanf(line, "f %17s %c", id, &more) == 1 && is_id(id)) {
		place = find_id(t, id);
		if (place)
			place->id[0] = '\0';
		return true;
	}
	if (sscanf(line, "%c %65s %65s %17s %llu %c", &kind, name, body, id, &at_s, &more) != 5 ||
	    (kind != 'a' && kind != 's') || strlen(name) != 2 * SHA256_LEN || strlen(body) != 2 * SHA256_LEN ||
	    !hex_get(name, e.name, SHA256_LEN) || !hex_get(body, e.body, SHA256_LEN) || !is_id(id))
		return false;
	memcpy(e.id, id, sizeof(e.id));
	e.is_promised = kind == 'a';
	e.at_s = at_s;
	place = next_entry(t);
	if (place)
		*place = e;
	return true;
}

/* Rewrites the file with the entries that have not expired. */
static int write_anew(struct idempotency *t, struct brig_error *err)
{
	uint64_t now_s = clock_wall_ns() / NS_PER_SEC;
	AUTO_BUF lines = BUF_INIT(JOURNAL_FILE_MAX);

	for (size_t i = 0; i < t->n; i++) {
		const struct idempotency_entry *e = entry_at(t, i);

		if (e->id[0] && e->is_kept && now_s < e->at_s + IDEMPOTENCY_S)
			put_line(&lines, e);
	}
	return journal_replace(&t->journal, &lines, err);
}

int idempotency_open(struct idempotency *t, const struct statedir *dir, struct brig_error *err)
{
	int rc = journal_open(&t->journal, dir, IDEMPOTENCY_NAME,
			      "a request that is repeated with an Idempotency-Key of the last day runs once more",
			      take_line, t, err);

	return rc < 0 ? rc : write_anew(t, err);
}

int idempotency_commit(struct idempotency *t, bool to_disk, struct brig_error *err)
{
	int rc;

	if (t->journal.pending.len == 0 && !t->journal.pending.no_memory)
		return 0;
	rc = journal_commit(&t->journal, to_disk, err);
	return rc == 0 && journal_has_grown(&t->journal) ? write_anew(t, err) : rc;
}

void idempotency_release(struct idempotency *t)
{
	journal_close(&t->journal);
	free(t->entry);
	*t = (struct idempotency)IDEMPOTENCY_INIT;
}
