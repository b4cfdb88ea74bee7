/* SPDX-License-Identifier: Apache-2.0 */
#include "model/record.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *const record_cache_name[] = { [CACHE_NONE] = "", [CACHE_MISS] = "miss", [CACHE_HIT] = "hit" };
static_assert(ARRAY_LEN(record_cache_name) == CACHE_COUNT, "record_cache_name[] misses a name");

void record_stream_begin(struct record_stream *s, bool hashed, size_t head_max)
{
	*s = (struct record_stream){ .hashed = hashed, .head = BUF_INIT(head_max) };
	if (hashed)
		sha256_begin(&s->hash);
}

static void add_tail(struct record_stream *s, const char *data, size_t len)
{
	size_t new = (size_t)min_u64(len, sizeof(s->tail)), keep = (size_t)min_u64(s->tail_len, sizeof(s->tail) - new);

	memmove(s->tail, s->tail + s->tail_len - keep, keep);
	memcpy(s->tail + keep, data + len - new, new);
	s->tail_len = keep + new;
}

void record_stream_add(struct record_stream *s, const void *data, size_t len)
{
	s->len += len;
	add_tail(s, data, len);
	if (s->hashed)
		sha256_add(&s->hash, data, len);
	if (s->head.len < s->head.max)
		(void)buf_add(&s->head, data, len);
}

void record_stream_end(struct record_stream *s)
{
	if (s->hashed && !s->ended)
		sha256_end(&s->hash, s->sha256);
	s->ended = true;
}

void record_stream_release(struct record_stream *s)
{
	buf_release(&s->head);
}

/* Each with its length before it: two lists must not hash alike because their bytes do. */
static void hash_list(const char *const *item, size_t n, uint8_t ret[SHA256_LEN])
{
	struct sha256 h;

	sha256_begin(&h);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(item[i]);
		char prefix[24];

		sha256_add(&h, prefix, (size_t)snprintf(prefix, sizeof(prefix), "%zu:", len));
		sha256_add(&h, item[i], len);
		sha256_add(&h, ",", 1);
	}
	sha256_end(&h, ret);
}

void record_hash_request(struct record *r)
{
	sha256(r->code, r->code_len, r->code_sha256);
	hash_list(r->args, r->n_args, r->args_sha256);
	hash_list(r->env, r->n_env, r->env_sha256);
}

/* A text and its end: two rows must not hash like one. */
static void add_text(struct sha256 *h, const char *text)
{
	sha256_add(h, text, strlen(text) + 1);
}

void record_hash_evidence(struct record *r)
{
	const struct evidence *e = &r->res->evidence;
	struct sha256 h;

	sha256_begin(&h);
	for (size_t i = 0; i < e->n; i++) {
		add_text(&h, e->row[i].check);
		add_text(&h, e->row[i].declared);
		add_text(&h, e->row[i].enforced);
		add_text(&h, e->row[i].kept ? "kept" : e->row[i].degraded ? "degraded" : "broken");
		add_text(&h, e->row[i].source);
	}
	sha256_end(&h, r->evidence_sha256);
}
