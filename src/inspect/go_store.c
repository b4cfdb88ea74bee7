/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the Go inspector: an arena for strings and lists, three stacks, and the names in scope. */
#include "inspect/go.h"

#include <string.h>

#define CHUNK_SIZE (32 * KiB)

struct go_chunk {
	struct go_chunk *next;
	size_t used, size;
	_Alignas(16) char data[];
};

void go_give_up(struct go *g, struct span where, const char *why)
{
	if (!g->stop)
		(void)judge_check(g->j, "not-analysable", where, "%s", why);
	g->stop = true;
}

static struct span whole(const struct go *g)
{
	return (struct span){ 0, g->len };
}

static void out_of_memory(struct go *g)
{
	g->j->out_of_memory = true;
	g->stop = true;
}

void *go_alloc(struct go *g, size_t size)
{
	struct go_chunk *c = g->chunks;
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (!c || c->size - c->used < size) {
		size_t room = max_u64(size, CHUNK_SIZE);

		if (g->arena_used + room > GO_ARENA_MAX) {
			go_give_up(g, whole(g), "too many computed values");
			return NULL;
		}
		c = malloc(sizeof(*c) + room);
		if (!c) {
			out_of_memory(g);
			return NULL;
		}
		*c = (struct go_chunk){ .next = g->chunks, .size = room };
		g->chunks = c;
		g->arena_used += room;
	}
	p = c->data + c->used;
	c->used += size;
	return p;
}

/* Makes room for one more row; false: no memory. */
static bool grow(struct go *g, void **rows, size_t n, size_t *cap, size_t row_size)
{
	size_t wanted = *cap ? 2 * *cap : 64;
	void *more;

	if (n < *cap)
		return true;
	more = realloc(*rows, wanted * row_size);
	if (!more) {
		out_of_memory(g);
		return false;
	}
	*rows = more;
	*cap = wanted;
	return true;
}

bool go_push_value(struct go *g, const struct go_value *value)
{
	void *rows = g->value;
	bool ok = grow(g, &rows, g->n_values, &g->cap_values, sizeof(*g->value));

	g->value = rows;
	if (ok)
		g->value[g->n_values++] = *value;
	return ok;
}

bool go_push_frame(struct go *g, const struct go_frame *frame)
{
	void *rows = g->frame;
	bool ok = grow(g, &rows, g->n_frames, &g->cap_frames, sizeof(*g->frame));

	g->frame = rows;
	if (ok)
		g->frame[g->n_frames++] = *frame;
	return ok;
}

static uint32_t hash_name(const char *name, uint32_t len)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h ^ h >> 15;
}

void go_bind(struct go *g, const char *name, uint32_t len, const struct go_value *value)
{
	void *rows = g->binding;
	uint32_t hash = hash_name(name, len);
	struct go_binding *b;
	bool ok;

	if (len == 1 && name[0] == '_')
		return;
	ok = grow(g, &rows, g->n_bindings, &g->cap_bindings, sizeof(*g->binding));
	g->binding = rows;
	if (!ok)
		return;
	b = &g->binding[g->n_bindings];
	*b = (struct go_binding){
		.name = name, .len = len, .hash = hash, .next = g->bucket[hash % GO_BUCKETS], .value = *value
	};
	g->bucket[hash % GO_BUCKETS] = (int32_t)g->n_bindings++;
}

int32_t go_lookup(const struct go *g, const char *name, uint32_t len)
{
	uint32_t hash = hash_name(name, len);
	int32_t at = g->bucket[hash % GO_BUCKETS];

	while (at >= 0) {
		const struct go_binding *b = &g->binding[at];

		if (b->hash == hash && b->len == len && memcmp(b->name, name, len) == 0)
			return at;
		at = b->next;
	}
	return -1;
}

void go_unbind(struct go *g, size_t down_to)
{
	while (g->n_bindings > down_to) {
		const struct go_binding *b = &g->binding[--g->n_bindings];

		g->bucket[b->hash % GO_BUCKETS] = b->next;
	}
}

void go_release(struct go *g)
{
	while (g->chunks) {
		struct go_chunk *next = g->chunks->next;

		free(g->chunks);
		g->chunks = next;
	}
	free(g->frame);
	free(g->value);
	free(g->binding);
}
