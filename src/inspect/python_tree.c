/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies tree-sitter's tree to a flat array: named nodes and operators only, no comments.  Parents come before their
 * children, and `order` lists the nodes in CPython's order of evaluation, so that later steps are loops.
 */
#include "inspect/python.h"

#include <assert.h>
#include <pthread.h>

#include "inspect/parse.h"

struct symbol_name {
	const char *text;
	uint16_t symbol;
};

#define X(name, text) { text, PY_##name },
static const struct symbol_name named[] = { PY_NAMED_SYMBOLS(X) };
static const struct symbol_name operators[] = { PY_OPERATOR_SYMBOLS(X) };
#undef X
#define X(name, text) { text, PY_F_##name },
static const struct symbol_name fields[] = { PY_FIELDS(X) };
#undef X

/* Maps tree-sitter's numbers to the inspector's; written once. */
#define TS_SYMBOLS_MAX 512
#define TS_FIELDS_MAX  64
static uint16_t symbol_of[TS_SYMBOLS_MAX];
static bool operator_of[TS_SYMBOLS_MAX];
static uint8_t field_of[TS_FIELDS_MAX];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/*
 * Most pairs differ in their first letter: calling strcmp() for each would cost a tenth of a millisecond in every run.
 */
static uint16_t find_symbol(const struct symbol_name *row, size_t n, const char *text)
{
	for (size_t i = 0; text && i < n; i++)
		if (row[i].text[0] == text[0] && strcmp(row[i].text, text) == 0)
			return row[i].symbol;
	return 0;
}

static void fill_tables(void)
{
	const TSLanguage *l = tree_sitter_python();

	for (uint32_t i = 0; i < ts_language_symbol_count(l) && i < TS_SYMBOLS_MAX; i++) {
		const char *name = ts_language_symbol_name(l, (TSSymbol)i);

		if (ts_language_symbol_type(l, (TSSymbol)i) == TSSymbolTypeRegular) {
			symbol_of[i] = find_symbol(named, ARRAY_LEN(named), name);
		} else if (ts_language_symbol_type(l, (TSSymbol)i) == TSSymbolTypeAnonymous) {
			symbol_of[i] = find_symbol(operators, ARRAY_LEN(operators), name);
			operator_of[i] = symbol_of[i] != PY_OTHER;
		}
	}
	for (uint32_t i = 1; i <= ts_language_field_count(l) && i < TS_FIELDS_MAX; i++)
		field_of[i] =
			(uint8_t)find_symbol(fields, ARRAY_LEN(fields), ts_language_field_name_for_id(l, (TSFieldId)i));
}

bool py_steps(struct py *p, uint64_t n)
{
	if (p->j->steps_left < n) {
		p->j->steps_left = 0;
		p->failed = true;
		return false;
	}
	p->j->steps_left -= n;
	return true;
}

struct reader {
	struct py *p;
	TSTreeCursor cursor;
	uint32_t *last_child; /* per node: its last child so far, while the tree is read */
	uint32_t n_order;
};

static bool grow(struct reader *r)
{
	struct py *p = r->p;
	uint32_t cap = p->cap_nodes ? p->cap_nodes * 2 : p->len + 64;
	struct py_node *node = realloc(p->node, cap * sizeof(*node));
	uint32_t *order, *last;

	if (node)
		p->node = node;
	order = realloc(p->order, cap * sizeof(*order));
	if (order)
		p->order = order;
	last = realloc(r->last_child, cap * sizeof(*last));
	if (last)
		r->last_child = last;
	if (!node || !order || !last) {
		p->j->out_of_memory = true;
		return false;
	}
	p->cap_nodes = cap;
	return true;
}

static bool wanted(TSNode n, TSSymbol symbol, TSFieldId field)
{
	if (ts_node_is_extra(n) && symbol != (TSSymbol)-1) /* comments, line continuations; not ERROR */
		return false;
	return ts_node_is_named(n) || (field && symbol < TS_SYMBOLS_MAX && operator_of[symbol]) ||
	       ts_node_is_missing(n);
}

/* Adds the cursor's node below `parent`; PY_NONE: not needed, or no memory. */
static uint32_t add_node(struct reader *r, uint32_t parent)
{
	struct py *p = r->p;
	TSNode n = ts_tree_cursor_current_node(&r->cursor);
	TSSymbol symbol = ts_node_symbol(n);
	TSFieldId field = ts_tree_cursor_current_field_id(&r->cursor);
	uint32_t i = p->n_nodes;
	bool error = symbol == (TSSymbol)-1 || ts_node_is_missing(n);

	if (error && p->first_error == PY_NONE)
		p->first_error = ts_node_start_byte(n);
	if (!wanted(n, symbol, field) || (i == p->cap_nodes && !grow(r)))
		return PY_NONE;
	p->node[i] = (struct py_node){
		.sym = error                     ? PY_ERROR
		       : symbol < TS_SYMBOLS_MAX ? symbol_of[symbol]
						 : PY_OTHER,
		.field = field < TS_FIELDS_MAX ? field_of[field] : PY_F_NONE,
		.start = ts_node_start_byte(n),
		.end = ts_node_end_byte(n),
		.parent = parent,
		.child = PY_NONE,
		.next = PY_NONE,
		.post_first = r->n_order,
		.name = PY_NONE,
	};
	assert(r->last_child); /* allocated by the same grow() as the nodes */
	r->last_child[i] = PY_NONE;
	if (parent != PY_NONE) {
		if (r->last_child[parent] == PY_NONE)
			p->node[parent].child = i;
		else
			p->node[r->last_child[parent]].next = i;
		r->last_child[parent] = i;
	}
	p->n_nodes++;
	return i;
}

static void leave(struct reader *r, uint32_t i)
{
	r->p->node[i].post = r->n_order;
	r->p->order[r->n_order++] = i;
}

/* Moves to the next node that is not below the current one, and leaves all nodes that end; false: end of the tree. */
static bool advance(struct reader *r, uint32_t *parent)
{
	while (!ts_tree_cursor_goto_next_sibling(&r->cursor)) {
		if (!ts_tree_cursor_goto_parent(&r->cursor))
			return false;
		leave(r, *parent);
		*parent = r->p->node[*parent].parent;
	}
	return true;
}

static bool copy_nodes(struct reader *r)
{
	uint32_t parent = PY_NONE;

	for (;;) {
		uint32_t i = add_node(r, parent);

		if (r->p->j->out_of_memory || !py_steps(r->p, 1))
			return false;
		if (i == PY_NONE) {
			if (!advance(r, &parent))
				break;
		} else if (ts_tree_cursor_goto_first_child(&r->cursor)) {
			parent = i;
		} else {
			leave(r, i);
			if (!advance(r, &parent))
				break;
		}
	}
	return r->p->n_nodes > 0;
}

bool py_read_tree(struct py *p)
{
	struct reader r = { .p = p };
	TSTree *tree;
	bool ok;

	(void)pthread_once(&tables_once, fill_tables);
	p->first_error = PY_NONE;
	tree = inspect_parse(p->j, tree_sitter_python(), p->text, p->len);
	if (!tree)
		return false;
	r.cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
	ok = copy_nodes(&r);
	ts_tree_cursor_delete(&r.cursor);
	ts_tree_delete(tree);
	free(r.last_child);
	return ok;
}

struct span py_span(const struct py *p, uint32_t node)
{
	return (struct span){ p->node[node].start, p->node[node].end };
}

uint32_t py_field(const struct py *p, uint32_t node, enum py_field field)
{
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next)
		if (p->node[c].field == field)
			return c;
	return PY_NONE;
}

uint32_t py_nth(const struct py *p, uint32_t node, unsigned n)
{
	uint32_t c = p->node[node].child;

	while (c != PY_NONE && n-- > 0)
		c = p->node[c].next;
	return c;
}

uint32_t py_unwrap(const struct py *p, uint32_t node)
{
	while (node != PY_NONE)
		switch (p->node[node].sym) {
		case PY_PARENTHESIZED:
		case PY_LIST_SPLAT:
		case PY_TYPE:
		case PY_AS_PATTERN_TARGET:
			if (p->node[node].child == PY_NONE)
				return node;
			node = p->node[node].child;
			break;
		default:
			return node;
		}
	return node;
}

uint32_t py_ancestor(const struct py *p, uint32_t node, enum py_symbol sym)
{
	while (node != PY_NONE && p->node[node].sym != sym)
		node = p->node[node].parent;
	return node;
}
