/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/idempotency.h"

#include <string.h>

/* What says who asks and how the answer is wanted, not what is to be run. */
static bool is_of_the_call(enum field f)
{
	switch (f) {
	case FIELD_route:
	case FIELD_credential:
	case FIELD_has_peer:
	case FIELD_request_id:
	case FIELD_traceparent:
	case FIELD_idempotency_key:
	case FIELD_stream:
		return true;
	default:
		return false;
	}
}

/* Number, count and then length and bytes of each: no two rows of fields give the same bytes. */
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
	off_t at = 0;
	ssize_t n;

	if (!piece)
		return -ENOMEM;
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
						 uint64_t now_ns)
{
	for (size_t i = t->n; i-- > 0;) {
		const struct idempotency_entry *e = entry_at(t, i);

		if (memcmp(e->name, name, SHA256_LEN) == 0 && e->id[0])
			return now_ns - e->at_ns < IDEMPOTENCY_NS ? e : NULL;
	}
	return NULL;
}

bool idempotency_add(struct idempotency *t, const uint8_t name[SHA256_LEN], const uint8_t body[SHA256_LEN],
		     const char *id, uint64_t now_ns)
{
	struct idempotency_entry *e;

	if (!t->entry)
		t->entry = calloc(IDEMPOTENCY_MAX, sizeof(*t->entry));
	if (!t->entry)
		return false;
	if (t->n == IDEMPOTENCY_MAX)
		t->first = (t->first + 1) % IDEMPOTENCY_MAX;
	else
		t->n++;
	e = entry_at(t, t->n - 1);
	memcpy(e->name, name, SHA256_LEN);
	memcpy(e->body, body, SHA256_LEN);
	memcpy(e->id, id, sizeof(e->id));
	e->at_ns = now_ns;
	return true;
}

void idempotency_forget(struct idempotency *t, const char *id)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(entry_at(t, i)->id, id) == 0)
			entry_at(t, i)->id[0] = '\0';
}

void idempotency_release(struct idempotency *t)
{
	free(t->entry);
	*t = (struct idempotency){ .entry = NULL };
}
