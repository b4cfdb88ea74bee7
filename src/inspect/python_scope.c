/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes and bindings.  A name that is bound anywhere in a function is local there and shadows a builtin.  In a module
 * or class the builtin is visible until the binding has been executed, so there a binding shadows only the code after
 * it within the same suite ("if 0: eval = 1" shadows nothing after the if).
 */
#include "inspect/python.h"

static uint32_t binding_hash(uint32_t scope, uint32_t name)
{
	uint32_t h = (scope * 2654435761u) ^ (name * 2246822519u);

	return h ^ h >> 13;
}

uint32_t py_find_binding(const struct py *p, uint32_t scope, uint32_t name)
{
	if (!p->bindings.slot)
		return PY_NONE;
	for (uint32_t at = binding_hash(scope, name) & p->bindings.mask; p->bindings.slot[at];
	     at = (at + 1) & p->bindings.mask) {
		uint32_t b = p->bindings.slot[at] - 1;

		if (p->binding[b].scope == scope && p->binding[b].name == name)
			return b;
	}
	return PY_NONE;
}

static void put_binding(struct py *p, uint32_t b)
{
	uint32_t at = binding_hash(p->binding[b].scope, p->binding[b].name) & p->bindings.mask;

	while (p->bindings.slot[at])
		at = (at + 1) & p->bindings.mask;
	p->bindings.slot[at] = b + 1;
}

uint32_t py_make_binding(struct py *p, uint32_t scope, uint32_t name)
{
	uint32_t b = py_find_binding(p, scope, name);

	if (b != PY_NONE || name == PY_NONE)
		return b;
	if (py_table_grow(p, &p->bindings, p->n_bindings + 1))
		for (uint32_t i = 0; i < p->n_bindings; i++)
			put_binding(p, i);
	if (!p->bindings.slot || !py_reserve(p, &p->binding, &p->cap_bindings, p->n_bindings, sizeof(*p->binding)))
		return PY_NONE;
	p->binding[p->n_bindings] =
		(struct py_binding){ .scope = scope, .name = name, .value = PY_NOTHING, .sites = PY_NONE };
	put_binding(p, p->n_bindings);
	return p->n_bindings++;
}

uint32_t py_owner(const struct py *p, uint32_t scope, uint32_t name)
{
	for (uint32_t s = scope; s != PY_NONE; s = p->scope[s].parent) {
		uint32_t b = py_find_binding(p, s, name);

		if (b == PY_NONE || (s != scope && p->scope[s].kind == PY_SCOPE_CLASS))
			continue;
		if (p->binding[b].kind == PY_GLOBAL)
			return py_find_binding(p, 0, name);
		if (p->binding[b].kind == PY_BOUND)
			return b;
	}
	return PY_NONE;
}

/* ---- scopes --------------------------------------------------------------------------------------------- */

static uint32_t new_scope(struct py *p, enum py_scope_kind kind, uint32_t parent, uint32_t node)
{
	if (!py_reserve(p, &p->scope, &p->cap_scopes, p->n_scopes, sizeof(*p->scope)))
		return parent == PY_NONE ? 0 : parent;
	p->scope[p->n_scopes] = (struct py_scope){ kind, parent, node, PY_NOTHING, false };
	return p->n_scopes++;
}

static bool is_comprehension(enum py_symbol sym)
{
	return sym == PY_LIST_COMPREHENSION || sym == PY_SET_COMPREHENSION || sym == PY_DICT_COMPREHENSION ||
	       sym == PY_GENERATOR;
}

static bool opens_scope(enum py_symbol sym, enum py_scope_kind *kind)
{
	*kind = sym == PY_CLASS_DEFINITION ? PY_SCOPE_CLASS
		: is_comprehension(sym)    ? PY_SCOPE_COMPREHENSION
					   : PY_SCOPE_FUNCTION;
	return sym == PY_FUNCTION || sym == PY_LAMBDA || sym == PY_CLASS_DEFINITION || is_comprehension(sym);
}

/* True if a child of a scope's owner is evaluated outside of that scope. */
static bool evaluated_outside(const struct py *p, uint32_t owner, uint32_t child)
{
	enum py_field field = p->node[child].field;

	switch (p->node[owner].sym) {
	case PY_FUNCTION:
		return field == PY_F_NAME || field == PY_F_RETURN_TYPE;
	case PY_CLASS_DEFINITION:
		return field == PY_F_NAME || field == PY_F_SUPERCLASSES;
	default:
		return false;
	}
}

/* Defaults and annotations of parameters are evaluated in the scope that contains the definition. */
static bool belongs_to_definition(const struct py *p, uint32_t node)
{
	enum py_symbol up = p->node[p->node[node].parent].sym;
	enum py_field field = p->node[node].field;

	return (up == PY_DEFAULT_PARAMETER && field == PY_F_VALUE) ||
	       (up == PY_TYPED_DEFAULT_PARAMETER && (field == PY_F_VALUE || field == PY_F_TYPE)) ||
	       (up == PY_TYPED_PARAMETER && field == PY_F_TYPE);
}

/* The first iterable of a comprehension is evaluated outside of it. */
static bool is_first_iterable(const struct py *p, uint32_t node)
{
	uint32_t clause = p->node[node].parent, whole;

	if (p->node[clause].sym != PY_FOR_IN || p->node[node].field != PY_F_RIGHT)
		return false;
	whole = p->node[clause].parent;
	for (uint32_t c = p->node[whole].child; c != PY_NONE; c = p->node[c].next)
		if (p->node[c].sym == PY_FOR_IN)
			return c == clause;
	return false;
}

/* A node that opens a scope stores its number in .name. */
static uint32_t scope_of(struct py *p, uint32_t i)
{
	uint32_t up = p->node[i].parent, scope;
	enum py_scope_kind kind;

	if (up == PY_NONE)
		return 0;
	scope = p->node[up].scope;
	if (opens_scope(p->node[up].sym, &kind) && !evaluated_outside(p, up, i))
		scope = p->node[up].name;
	else if ((belongs_to_definition(p, i) || is_first_iterable(p, i)) && p->scope[scope].parent != PY_NONE)
		scope = p->scope[scope].parent;
	return scope;
}

static void assign_scopes(struct py *p)
{
	enum py_scope_kind kind;

	new_scope(p, PY_SCOPE_MODULE, PY_NONE, 0);
	for (uint32_t i = 0; i < p->n_nodes && !p->failed; i++) {
		struct py_node *n = &p->node[i];

		n->scope = scope_of(p, i);
		if (opens_scope(n->sym, &kind))
			n->name = new_scope(p, kind, n->scope, i);
		if (n->sym == PY_IDENTIFIER) {
			uint32_t len;
			const char *text = py_identifier(p, n->start, n->end, &len);

			n->name = py_name(p, text, len);
		}
	}
}

/* ---- bindings ------------------------------------------------------------------------------------------- */

/* The smallest suite around a node: the statements that are executed together with it. */
static uint32_t suite_of(const struct py *p, uint32_t node)
{
	for (uint32_t up = p->node[node].parent; up != PY_NONE; up = p->node[up].parent)
		switch (p->node[up].sym) {
		case PY_BLOCK:
		case PY_MODULE:
		case PY_LAMBDA:
		case PY_EXCEPT_CLAUSE: /* the name is unbound after the clause */
		case PY_CASE_CLAUSE:
			return up;
		case PY_FOR: /* a loop without iterations binds nothing */
			return py_field(p, up, PY_F_BODY);
		case PY_NAMED_EXPRESSION: /* may be the right side of an `and` */
			return node;
		default:
			break;
		}
	return node;
}

static void bind_site(struct py *p, uint32_t scope, uint32_t node, uint32_t name)
{
	uint32_t b = py_make_binding(p, scope, name);

	if (b == PY_NONE)
		return;
	if (p->binding[b].kind == PY_GLOBAL)
		b = py_make_binding(p, 0, name);
	if (b == PY_NONE || !py_reserve(p, &p->site, &p->cap_sites, p->n_sites, sizeof(*p->site)))
		return;
	p->site[p->n_sites] = (struct py_site){ node, suite_of(p, node), p->binding[b].sites };
	p->binding[b].sites = p->n_sites++;
}

static void bind_identifier(struct py *p, uint32_t scope, uint32_t node)
{
	if (node == PY_NONE || p->node[node].sym != PY_IDENTIFIER)
		return;
	p->node[node].flags |= PY_STORE;
	bind_site(p, scope, node, p->node[node].name);
}

/* The scope that := inside a comprehension binds in: the enclosing function. */
static uint32_t walrus_scope(const struct py *p, uint32_t scope)
{
	while (p->scope[scope].kind == PY_SCOPE_COMPREHENSION)
		scope = p->scope[scope].parent;
	return scope;
}

static bool is_parameter_place(enum py_symbol up, enum py_field field)
{
	return up == PY_PARAMETERS || up == PY_LAMBDA_PARAMETERS ||
	       ((up == PY_DEFAULT_PARAMETER || up == PY_TYPED_DEFAULT_PARAMETER) && field == PY_F_NAME) ||
	       (up == PY_TYPED_PARAMETER && field != PY_F_TYPE);
}

/* For an identifier within nested patterns: true if the outermost pattern is a target. */
static bool in_target(const struct py *p, uint32_t node)
{
	for (;;) {
		uint32_t up = p->node[node].parent;
		enum py_field field = p->node[node].field;
		enum py_symbol sym;

		if (up == PY_NONE)
			return false;
		sym = p->node[up].sym;
		if (sym == PY_ASSIGNMENT || sym == PY_AUGMENTED || sym == PY_FOR || sym == PY_FOR_IN)
			return field == PY_F_LEFT;
		if (is_parameter_place(sym, field) || sym == PY_AS_PATTERN_TARGET)
			return true;
		switch (sym) {
		case PY_TUPLE_PATTERN:
		case PY_LIST_PATTERN:
		case PY_PATTERN_LIST:
		case PY_LIST_SPLAT_PATTERN:
		case PY_DICT_SPLAT_PATTERN:
			break;
		case PY_TUPLE: /* with x as (a, b): tree-sitter parses the target as an expression */
		case PY_LIST_:
		case PY_LIST_SPLAT:
		case PY_PARENTHESIZED:
			if (py_ancestor(p, node, PY_AS_PATTERN_TARGET) == PY_NONE)
				return false;
			break;
		default:
			return false;
		}
		node = up;
	}
}

static bool is_pattern(enum py_symbol sym)
{
	return sym == PY_CASE_PATTERN || sym == PY_TUPLE_PATTERN || sym == PY_LIST_PATTERN || sym == PY_DICT_PATTERN ||
	       sym == PY_UNION_PATTERN || sym == PY_CLASS_PATTERN || sym == PY_KEYWORD_PATTERN;
}

/* In a case pattern, `x` captures, `a.b` is compared, `C(...)` is a class. */
static void bind_dotted_name(struct py *p, uint32_t node)
{
	uint32_t up = p->node[node].parent, first = p->node[node].child;

	if (up == PY_NONE || first == PY_NONE)
		return;
	for (uint32_t c = p->node[first].next; c != PY_NONE; c = p->node[c].next)
		p->node[c].flags |= PY_STORE; /* attribute names */
	if (p->node[first].next == PY_NONE && is_pattern(p->node[up].sym) &&
	    !(p->node[up].sym == PY_CLASS_PATTERN && p->node[up].child == node))
		bind_identifier(p, p->node[node].scope, first);
}

static void bind_import(struct py *p, uint32_t node)
{
	uint32_t alias = py_field(p, node, PY_F_ALIAS), name = py_field(p, node, PY_F_NAME), first;

	for (uint32_t i = node + 1; i <= node + (p->node[node].post - p->node[node].post_first); i++)
		if (p->node[i].sym == PY_IDENTIFIER)
			p->node[i].flags |= PY_STORE;
	if (p->node[node].sym == PY_ALIASED_IMPORT) {
		bind_identifier(p, p->node[node].scope, alias);
		return;
	}
	for (uint32_t c = name; c != PY_NONE; c = p->node[c].next) {
		if (p->node[c].field != PY_F_NAME || p->node[c].sym != PY_DOTTED_NAME)
			continue;
		first = p->node[c].child;
		bind_identifier(p, p->node[node].scope, first);
	}
}

static void declare(struct py *p, uint32_t node, enum py_binding_kind kind)
{
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		uint32_t b = py_make_binding(p, p->node[node].scope, p->node[c].name);

		p->node[c].flags |= PY_STORE;
		if (b != PY_NONE && p->node[node].scope != 0)
			p->binding[b].kind = kind;
		if (kind == PY_GLOBAL)
			py_make_binding(p, 0, p->node[c].name);
	}
}

static void note_deleted(struct py *p, uint32_t node)
{
	for (uint32_t i = node + 1; i <= node + (p->node[node].post - p->node[node].post_first); i++)
		if (p->node[i].sym == PY_IDENTIFIER && !(p->node[i].flags & PY_STORE)) {
			uint32_t up = p->node[i].parent;
			uint32_t b = py_make_binding(p, p->node[i].scope, p->node[i].name);

			if (b != PY_NONE && p->node[up].sym != PY_ATTRIBUTE && p->node[up].sym != PY_SUBSCRIPT)
				p->binding[b].deleted = true;
		}
}

/* True if the name is bound here: defined, caught, matched, or a target of an assignment. */
static bool is_bound_here(const struct py *p, uint32_t i)
{
	uint32_t up = p->node[i].parent;
	enum py_field field = p->node[i].field;

	switch (p->node[up].sym) {
	case PY_FUNCTION:
	case PY_CLASS_DEFINITION:
		return field == PY_F_NAME || in_target(p, i);
	case PY_EXCEPT_CLAUSE:
		return field == PY_F_ALIAS || in_target(p, i);
	case PY_AS_PATTERN:
		return p->node[p->node[up].parent].sym == PY_CASE_PATTERN || in_target(p, i);
	case PY_SPLAT_PATTERN:
		return true;
	default:
		return in_target(p, i);
	}
}

/* Classifies identifiers whose position alone decides. */
static void classify_identifier(struct py *p, uint32_t i)
{
	uint32_t up = p->node[i].parent;
	enum py_symbol sym = p->node[up].sym;
	enum py_field field = p->node[i].field;

	if ((sym == PY_ATTRIBUTE && field == PY_F_ATTRIBUTE) || (sym == PY_KEYWORD_ARGUMENT && field == PY_F_NAME) ||
	    (sym == PY_KEYWORD_PATTERN && p->node[up].child == i) || (sym == PY_MEMBER_TYPE && p->node[up].child != i))
		p->node[i].flags |= PY_STORE;
	else if (sym == PY_NAMED_EXPRESSION && field == PY_F_NAME)
		bind_identifier(p, walrus_scope(p, p->node[i].scope), i);
	else if (is_bound_here(p, i))
		bind_identifier(p, p->node[i].scope, i);
}

/* `type X = int` binds X; but tree-sitter parses `type(A()).x = f()` alike, which binds nothing. */
static void bind_type_alias(struct py *p, uint32_t node)
{
	uint32_t left = py_field(p, node, PY_F_LEFT);

	left = left == PY_NONE ? left : p->node[left].child;
	if (left != PY_NONE && p->node[left].sym == PY_IDENTIFIER)
		bind_identifier(p, p->node[node].scope, left);
}

/* Declarations first: they decide the scope of a binding. */
static void collect_declarations(struct py *p)
{
	for (uint32_t i = 1; i < p->n_nodes; i++) {
		if (p->node[i].sym == PY_GLOBAL_STATEMENT)
			declare(p, i, PY_GLOBAL);
		else if (p->node[i].sym == PY_NONLOCAL_STATEMENT)
			declare(p, i, PY_NONLOCAL);
	}
}

static void collect_bindings(struct py *p)
{
	for (uint32_t i = 1; i < p->n_nodes && py_steps(p, 1); i++) {
		switch (p->node[i].sym) {
		case PY_IDENTIFIER:
			if (!(p->node[i].flags & PY_STORE))
				classify_identifier(p, i);
			break;
		case PY_DOTTED_NAME:
			bind_dotted_name(p, i);
			break;
		case PY_IMPORT:
		case PY_IMPORT_FROM:
		case PY_FUTURE_IMPORT:
		case PY_ALIASED_IMPORT:
			bind_import(p, i);
			break;
		case PY_DELETE:
			note_deleted(p, i);
			break;
		case PY_TYPE_ALIAS:
			bind_type_alias(p, i);
			break;
		default:
			break;
		}
	}
}

void py_scopes(struct py *p)
{
	assign_scopes(p);
	if (p->failed)
		return;
	collect_declarations(p);
	collect_bindings(p);
}

/* ---- references ----------------------------------------------------------------------------------------- */

static bool is_within(const struct py *p, uint32_t node, uint32_t ancestor)
{
	return node >= ancestor && node <= ancestor + (p->node[ancestor].post - p->node[ancestor].post_first);
}

/* True if some binding has certainly been executed when control reaches the node. */
static bool surely_bound(const struct py *p, uint32_t b, uint32_t node)
{
	unsigned looked = 0;

	if (p->binding[b].deleted)
		return false;
	for (uint32_t s = p->binding[b].sites; s != PY_NONE && looked++ < 64; s = p->site[s].next)
		if (p->site[s].suite != PY_NONE && is_within(p, node, p->site[s].suite) && p->site[s].node < node)
			return true;
	return false;
}

uint32_t py_resolve(const struct py *p, uint32_t node, uint32_t name, bool *builtin)
{
	uint32_t start = p->node[node].scope;

	*builtin = false;
	for (uint32_t s = start; s != PY_NONE; s = p->scope[s].parent) {
		uint32_t b = py_find_binding(p, s, name);

		if (b == PY_NONE || (s != start && p->scope[s].kind == PY_SCOPE_CLASS))
			continue;
		if (p->binding[b].kind == PY_NONLOCAL)
			continue;
		if (p->binding[b].kind == PY_GLOBAL) {
			b = py_find_binding(p, 0, name);
			s = 0;
		}
		if (b == PY_NONE)
			break;
		if (p->scope[s].kind == PY_SCOPE_FUNCTION || p->scope[s].kind == PY_SCOPE_COMPREHENSION)
			return b;
		*builtin = !surely_bound(p, b, node);
		if (*builtin && p->scope[s].kind == PY_SCOPE_CLASS) /* then the name refers to the module's binding */
			continue;
		return b;
	}
	*builtin = true;
	return PY_NONE;
}
