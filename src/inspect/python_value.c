/* SPDX-License-Identifier: Apache-2.0 */
/* Atoms and sets of atoms, each stored once, so that equal ones have equal numbers.  They share one memory budget. */
#include "inspect/python.h"

#define BLOCK_SIZE (32 * 1024)

struct py_block {
	struct py_block *next;
	_Alignas(max_align_t) char data[];
};

static bool give_up(struct py *p)
{
	p->failed = true;
	return false;
}

void *py_alloc(struct py *p, size_t size)
{
	void *at;

	size = (size + 7) & ~(size_t)7;
	if (p->memory + size > PY_MEMORY_MAX)
		return give_up(p), NULL;
	if (!p->blocks || p->block_used + size > p->block_size) {
		size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
		struct py_block *b = malloc(sizeof(*b) + room);

		if (!b) {
			p->j->out_of_memory = true;
			return give_up(p), NULL;
		}
		b->next = p->blocks;
		p->blocks = b;
		p->block_used = 0;
		p->block_size = room;
	}
	at = p->blocks->data + p->block_used;
	p->block_used += size;
	p->memory += size;
	return at;
}

bool py_reserve(struct py *p, void *array, uint32_t *cap, uint32_t n, size_t size)
{
	void **pointer = array, *more;
	uint32_t want = *cap ? *cap * 2 : 256;

	if (n < *cap)
		return true;
	if ((uint64_t)want * size > PY_MEMORY_MAX)
		return give_up(p);
	more = realloc(*pointer, want * size);
	if (!more) {
		p->j->out_of_memory = true;
		return give_up(p);
	}
	*pointer = more;
	*cap = want;
	return true;
}

void py_release(struct py *p)
{
	while (p->blocks) {
		struct py_block *next = p->blocks->next;

		free(p->blocks);
		p->blocks = next;
	}
	free(p->node);
	free(p->order);
	free(p->scope);
	free(p->binding);
	free(p->site);
	free(p->bindings.slot);
	free(p->atom);
	free(p->atoms.slot);
	free(p->set);
	free(p->sets.slot);
}

/* ---- hash tables ---------------------------------------------------------------------------------------- */

/* Makes room for one more entry; true: the table was rebuilt empty, and the caller must fill it again. */
bool py_table_grow(struct py *p, struct py_table *t, uint32_t entries)
{
	uint32_t slots = t->slot ? (t->mask + 1) * 2 : 256;

	if (t->slot && entries * 2 < t->mask)
		return false;
	while (slots < entries * 3)
		slots *= 2;
	free(t->slot);
	t->slot = calloc(slots, sizeof(*t->slot));
	t->mask = t->slot ? slots - 1 : 0;
	if (!t->slot) {
		p->j->out_of_memory = true;
		give_up(p);
	}
	return t->slot != NULL;
}

static void table_put(struct py_table *t, uint32_t hash, uint32_t number)
{
	uint32_t at = hash & t->mask;

	while (t->slot[at])
		at = (at + 1) & t->mask;
	t->slot[at] = number + 1;
}

static uint32_t hash_bytes(uint32_t h, const void *data, size_t len)
{
	const unsigned char *s = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ s[i]) * 16777619u;
	return h ^ h >> 15;
}

/* ---- atoms ---------------------------------------------------------------------------------------------- */

static bool is_text(enum py_atom_kind kind)
{
	return kind == PY_PATH || kind == PY_STR || kind == PY_BYTES || kind == PY_PART || kind == PY_SPACE;
}

static bool same_atom(const struct py_atom *a, const struct py_atom *b)
{
	if (a->hash != b->hash || a->kind != b->kind || a->len != b->len)
		return false;
	if (is_text(a->kind))
		return memcmp(a->text, b->text, a->len) == 0;
	if (a->kind == PY_LIST)
		return a->len == 0 || memcmp(a->item, b->item, a->len * sizeof(*a->item)) == 0;
	return a->number == b->number;
}

/* The atom's number, or PY_NONE without memory.  Copies the text or items. */
static uint32_t intern(struct py *p, struct py_atom want)
{
	size_t size = is_text(want.kind) ? want.len : want.kind == PY_LIST ? want.len * sizeof(*want.item) : 0;

	if (!py_steps(p, size / 4)) /* long strings cost more steps */
		return PY_NONE;
	if (py_table_grow(p, &p->atoms, p->n_atoms + 1))
		for (uint32_t i = 0; i < p->n_atoms; i++)
			table_put(&p->atoms, p->atom[i].hash, i);
	if (!p->atoms.slot)
		return PY_NONE;
	for (uint32_t at = want.hash & p->atoms.mask; p->atoms.slot[at]; at = (at + 1) & p->atoms.mask)
		if (same_atom(&p->atom[p->atoms.slot[at] - 1], &want))
			return p->atoms.slot[at] - 1;
	if (!py_reserve(p, &p->atom, &p->cap_atoms, p->n_atoms, sizeof(*p->atom)))
		return PY_NONE;
	if (size) {
		void *copy = py_alloc(p, size);

		if (!copy)
			return PY_NONE;
		memcpy(copy, want.text, size);
		want.text = copy;
	}
	p->atom[p->n_atoms] = want;
	table_put(&p->atoms, want.hash, p->n_atoms);
	return p->n_atoms++;
}

uint32_t py_text_atom(struct py *p, enum py_atom_kind kind, const char *text, size_t len)
{
	if (len > PY_STRING_MAX)
		return PY_NONE;
	return intern(p, (struct py_atom){ kind, (uint32_t)len, hash_bytes(2166136261u + kind, text, len),
					   .text = len ? text : "" });
}

uint32_t py_number_atom(struct py *p, enum py_atom_kind kind, int64_t number)
{
	return intern(p,
		      (struct py_atom){ kind, 0, hash_bytes(97u + kind, &number, sizeof(number)), .number = number });
}

uint32_t py_list_atom(struct py *p, const uint32_t *item, uint32_t n)
{
	if (n > PY_STRING_MAX / 8)
		return PY_NONE;
	return intern(p, (struct py_atom){ PY_LIST, n, hash_bytes(389u, item, n * sizeof(*item)), .item = item });
}

uint32_t py_path_atom(struct py *p, const char *base, size_t base_len, const char *sep, const char *name, size_t len)
{
	char path[256];
	size_t sep_len = strlen(sep);

	if (base_len + sep_len + len > sizeof(path))
		return PY_NONE;
	memcpy(path, base, base_len);
	memcpy(path + base_len, sep, sep_len);
	memcpy(path + base_len + sep_len, name, len);
	return py_text_atom(p, PY_PATH, path, base_len + sep_len + len);
}

uint32_t py_mark_decoded(struct py *p, uint32_t set)
{
	for (unsigned i = 0; i < p->set[set].n; i++)
		p->atom[p->set[set].atom[i]].decoded = true;
	return set;
}

bool py_atom_is(const struct py_atom *a, enum py_atom_kind kind, const char *text)
{
	return a->kind == kind && strlen(text) == a->len && memcmp(a->text, text, a->len) == 0;
}

/* ---- sets ----------------------------------------------------------------------------------------------- */

uint32_t py_set_intern(struct py *p, struct py_set *want)
{
	want->hash = hash_bytes(want->open ? 7u : 5u, want->atom, want->n * sizeof(want->atom[0]));
	if (py_table_grow(p, &p->sets, p->n_sets + 1))
		for (uint32_t i = 0; i < p->n_sets; i++)
			table_put(&p->sets, p->set[i].hash, i);
	if (!p->sets.slot)
		return PY_UNKNOWN;
	for (uint32_t at = want->hash & p->sets.mask; p->sets.slot[at]; at = (at + 1) & p->sets.mask) {
		const struct py_set *s = &p->set[p->sets.slot[at] - 1];

		if (s->hash == want->hash && s->n == want->n && s->open == want->open &&
		    memcmp(s->atom, want->atom, want->n * sizeof(want->atom[0])) == 0)
			return p->sets.slot[at] - 1;
	}
	if (!py_reserve(p, &p->set, &p->cap_sets, p->n_sets, sizeof(*p->set)))
		return PY_UNKNOWN;
	p->set[p->n_sets] = *want;
	table_put(&p->sets, want->hash, p->n_sets);
	return p->n_sets++;
}

uint32_t py_set_of(struct py *p, uint32_t atom)
{
	struct py_set s = { .n = 1, .atom = { atom } };

	return atom == PY_NONE ? PY_UNKNOWN : py_set_intern(p, &s);
}

uint32_t py_set_text(struct py *p, enum py_atom_kind kind, const char *text, size_t len)
{
	return py_set_of(p, py_text_atom(p, kind, text, len));
}

uint32_t py_set_number(struct py *p, int64_t number)
{
	return py_set_of(p, py_number_atom(p, PY_INT, number));
}

static bool set_insert(struct py_set *s, uint32_t atom)
{
	unsigned at = 0;

	if (atom == PY_NONE) {
		s->open = true;
		return false;
	}
	while (at < s->n && s->atom[at] < atom)
		at++;
	if (at < s->n && s->atom[at] == atom)
		return true;
	if (s->n == PY_SET_MAX) {
		s->open = true;
		return false;
	}
	memmove(s->atom + at + 1, s->atom + at, (s->n - at) * sizeof(s->atom[0]));
	s->atom[at] = atom;
	s->n++;
	return true;
}

uint32_t py_join(struct py *p, uint32_t a, uint32_t b)
{
	struct py_set s;

	if (a == b)
		return a;
	s = p->set[a];
	s.open |= p->set[b].open;
	for (unsigned i = 0; i < p->set[b].n; i++)
		set_insert(&s, p->set[b].atom[i]);
	return py_set_intern(p, &s);
}

uint32_t py_set_add(struct py *p, uint32_t set, uint32_t atom)
{
	struct py_set s = p->set[set];

	set_insert(&s, atom);
	return py_set_intern(p, &s);
}

uint32_t py_set_open(struct py *p, uint32_t set)
{
	return py_join(p, set, PY_UNKNOWN);
}

const struct py_atom *py_only(const struct py *p, uint32_t set, enum py_atom_kind kind)
{
	const struct py_set *s = &p->set[set];

	return s->n == 1 && !s->open && p->atom[s->atom[0]].kind == kind ? &p->atom[s->atom[0]] : NULL;
}
