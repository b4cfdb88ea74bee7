/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The possible values of every expression.  All nodes are visited in the order of evaluation, once per round.  A
 * further round is needed only if a name grew after it had been read.  Functions are not called: their parameters
 * collect the arguments of all calls, and their result is the join of all return statements.
 */
#include "inspect/python.h"

/* ---- names ---------------------------------------------------------------------------------------------- */

static void grow_binding(struct py *p, uint32_t b, uint32_t value)
{
	uint32_t joined;

	if (b == PY_NONE)
		return;
	joined = py_join(p, p->binding[b].value, value);
	if (joined == p->binding[b].value)
		return;
	p->binding[b].value = joined;
	if (p->binding[b].read)
		p->changed = true;
}

void py_bind(struct py *p, uint32_t scope, uint32_t name, uint32_t value)
{
	if (name == PY_NONE)
		return;
	if (scope == PY_POOL ||
	    p->scope[scope].kind == PY_SCOPE_CLASS) /* a name bound in a class is an attribute of its objects */
		grow_binding(p, py_make_binding(p, PY_POOL, name), value);
	if (scope != PY_POOL)
		grow_binding(p, py_owner(p, scope, name), value);
}

static uint32_t read_binding(struct py *p, uint32_t b)
{
	p->binding[b].read = true;
	return p->binding[b].value;
}

static uint32_t eval_identifier(struct py *p, uint32_t node)
{
	uint32_t name = p->node[node].name, value = PY_NOTHING, b;
	bool builtin;

	if (name == PY_NONE)
		return PY_UNKNOWN;
	b = py_resolve(p, node, name, &builtin);
	if (b != PY_NONE)
		value = read_binding(p, b);
	if (builtin && py_name_is(p, name, "__builtins__"))
		value = py_join(p, value, py_set_text(p, PY_PATH, "builtins", 8));
	else if (builtin)
		value = py_set_add(p, value,
				   py_path_atom(p, "builtins", 8, ".", p->atom[name].text, p->atom[name].len));
	return value;
}

/* ---- targets -------------------------------------------------------------------------------------------- */

uint32_t py_element_of(struct py *p, uint32_t set)
{
	uint32_t all = PY_NOTHING;

	for (unsigned i = 0; i < p->set[set].n; i++) {
		const struct py_atom *a = &p->atom[p->set[set].atom[i]];

		if (a->kind != PY_LIST)
			return PY_UNKNOWN;
		for (uint32_t k = 0; k < a->len && k < PY_UNROLL_MAX; k++)
			all = py_join(p, all, p->atom[p->set[set].atom[i]].item[k]);
	}
	return p->set[set].open || !p->set[set].n ? py_set_open(p, all) : all;
}

/* The n-th element of an unpacked value. */
static uint32_t piece_of(struct py *p, uint32_t set, unsigned n)
{
	const struct py_atom *list = py_only(p, set, PY_LIST);

	if (list)
		return n < list->len ? list->item[n] : PY_UNKNOWN;
	return py_element_of(p, set);
}

#define TARGETS_MAX 64

struct target {
	uint32_t node, value;
};

static void bind_attribute(struct py *p, uint32_t node, uint32_t value)
{
	uint32_t name = py_field(p, node, PY_F_ATTRIBUTE);

	if (name != PY_NONE)
		py_bind(p, PY_POOL, p->node[name].name, value);
}

/* Pushes the parts of a pattern; a star in it makes positions uncertain. */
static unsigned push_pieces(struct py *p, struct target *todo, unsigned n, uint32_t node, uint32_t value)
{
	bool starred = false;
	unsigned k = 0;

	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next)
		starred |= p->node[c].sym == PY_LIST_SPLAT_PATTERN || p->node[c].sym == PY_LIST_SPLAT;
	for (uint32_t c = p->node[node].child; c != PY_NONE && n < TARGETS_MAX; c = p->node[c].next, k++)
		todo[n++] = (struct target){ c, starred ? py_element_of(p, value) : piece_of(p, value, k) };
	return n;
}

void py_bind_target(struct py *p, uint32_t target, uint32_t value)
{
	struct target todo[TARGETS_MAX] = { { target, value } };
	unsigned n = 1;

	while (n > 0 && py_steps(p, 1)) {
		struct target t = todo[--n];

		if (t.node == PY_NONE)
			continue;
		switch (p->node[t.node].sym) {
		case PY_IDENTIFIER:
			py_bind(p, p->node[t.node].scope, p->node[t.node].name, t.value);
			break;
		case PY_ATTRIBUTE:
			bind_attribute(p, t.node, t.value);
			break;
		case PY_TUPLE_PATTERN:
		case PY_LIST_PATTERN:
		case PY_PATTERN_LIST:
		case PY_TUPLE:
		case PY_LIST_:
			n = push_pieces(p, todo, n, t.node, t.value);
			break;
		case PY_LIST_SPLAT_PATTERN:
		case PY_LIST_SPLAT:
		case PY_DICT_SPLAT_PATTERN: {
			uint32_t list = py_list_atom(p, &t.value, 1);

			todo[n++] = (struct target){ p->node[t.node].child, py_set_open(p, py_set_of(p, list)) };
			break;
		}
		case PY_PARENTHESIZED:
		case PY_AS_PATTERN_TARGET:
			todo[n++] = (struct target){ p->node[t.node].child, t.value };
			break;
		default:
			break;
		}
	}
}

/* ---- attributes ----------------------------------------------------------------------------------------- */

static bool starts_with(const struct py_atom *a, const char *text)
{
	size_t n = strlen(text);

	return a->len >= n && memcmp(a->text, text, n) == 0;
}

const struct rule *py_reexport(const struct py *p, const struct py_atom *path, const char **name, size_t *len)
{
	char key[64] = "*.";

	if (starts_with(path, "builtins.") || memchr(path->text, '(', path->len))
		return NULL;
	while (*len > 1 && **name == '_') {
		++*name;
		--*len;
	}
	if (*len + 2 > sizeof(key) || (path->len == *len && memcmp(path->text, *name, *len) == 0)) /* socket.socket */
		return NULL;
	memcpy(key + 2, *name, *len);
	return rules_find(p->j->rules, RULE_PYTHON, RULE_MEMBER, key, *len + 2);
}

static bool is_name(const char *name, size_t len, const char *text)
{
	return strlen(text) == len && memcmp(name, text, len) == 0;
}

static uint32_t path_attribute(struct py *p, uint32_t atom, const char *name, size_t len)
{
	struct py_atom a = p->atom[atom];
	const char *other = name;
	size_t other_len = len;

	if (is_name(name, len, "__builtins__") || (is_name(name, len, "__self__") && starts_with(&a, "builtins.")))
		return py_text_atom(p, PY_PATH, "builtins", 8);
	if (is_name(name, len, "__dict__"))
		return py_text_atom(p, PY_SPACE, a.text, a.len);
	if (is_name(name, len, "__globals__"))
		return py_text_atom(p, PY_SPACE, "", 0);
	if (py_reexport(p, &a, &other, &other_len))
		return py_text_atom(p, PY_PATH, other, other_len);
	return py_path_atom(p, a.text, a.len, ".", name, len);
}

uint32_t py_attribute_of(struct py *p, uint32_t set, const char *name, size_t len)
{
	uint32_t result = PY_NOTHING;
	struct py_set s = p->set[set];

	for (unsigned i = 0; i < s.n; i++)
		switch (p->atom[s.atom[i]].kind) {
		case PY_PATH:
			result = py_set_add(p, result, path_attribute(p, s.atom[i], name, len));
			break;
		case PY_FUNC:
			if (is_name(name, len, "__globals__"))
				result = py_join(p, result, py_set_text(p, PY_SPACE, "", 0));
			break;
		default:
			s.open = true;
		}
	return s.open || !s.n ? py_set_open(p, result) : result;
}

static uint32_t eval_attribute(struct py *p, uint32_t object, uint32_t name)
{
	uint32_t result, b;
	const struct py_atom *text;

	if (object == PY_NONE || name == PY_NONE || p->node[name].name == PY_NONE)
		return PY_UNKNOWN;
	text = &p->atom[p->node[name].name];
	result = py_attribute_of(p, p->node[py_unwrap(p, object)].value, text->text, text->len);
	if (!p->set[result].open)
		return result;
	b = py_make_binding(p, PY_POOL, p->node[name].name);
	return b == PY_NONE ? result : py_set_open(p, py_join(p, result, read_binding(p, b)));
}

static uint32_t last_child(const struct py *p, uint32_t node)
{
	uint32_t c = p->node[node].child;

	while (c != PY_NONE && p->node[c].next != PY_NONE)
		c = p->node[c].next;
	return c;
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

/* vars(x), globals(), __import__("m") and the like: values that are namespaces or modules. */
static uint32_t call_namer(struct py *p, const struct py_args *a, const struct py_atom *f)
{
	uint32_t first = a->n > 0 ? p->node[a->node[0]].value : PY_UNKNOWN;
	const struct py_atom *text = py_only(p, first, PY_STR), *name;

	if (py_atom_is(f, PY_PATH, "builtins.globals") || py_atom_is(f, PY_PATH, "builtins.locals"))
		return py_set_text(p, PY_SPACE, "", 0);
	if (py_atom_is(f, PY_PATH, "builtins.vars")) {
		const struct py_atom *path = py_only(p, first, PY_PATH);

		return a->n == 0 ? py_set_text(p, PY_SPACE, "", 0)
		       : path    ? py_set_text(p, PY_SPACE, path->text, path->len)
				 : PY_UNKNOWN;
	}
	if (text && (py_atom_is(f, PY_PATH, "builtins.__import__") || py_atom_is(f, PY_PATH, "importlib.__import__"))) {
		/* without a fromlist the result is the top package */
		const char *dot = memchr(text->text, '.', text->len);

		return py_set_text(p, PY_PATH, text->text, dot && a->n < 4 ? (size_t)(dot - text->text) : text->len);
	}
	if (text &&
	    (py_atom_is(f, PY_PATH, "importlib.import_module") || py_atom_is(f, PY_PATH, "builtins.import_module")))
		return py_set_text(p, PY_PATH, text->text, text->len);
	if (py_atom_is(f, PY_PATH, "builtins.getattr") && a->n >= 2) {
		name = py_only(p, p->node[a->node[1]].value, PY_STR);
		return name ? py_attribute_of(p, first, name->text, name->len) : PY_UNKNOWN;
	}
	return PY_NOTHING;
}

static uint32_t call_path(struct py *p, const struct py_args *a, uint32_t atom)
{
	struct py_atom f = p->atom[atom];
	uint32_t value = call_namer(p, a, &f);

	if (value != PY_NOTHING)
		return value;
	value = py_fold_function(p, a, &f);
	if (value != PY_UNKNOWN)
		return value;
	if (starts_with(&f, "builtins."))
		return PY_UNKNOWN;
	return py_set_of(p, py_path_atom(p, f.text, f.len, "()", "", 0));
}

/* globals().get("x"), vars(os).pop("system"): equivalent to a subscript. */
static uint32_t space_method(struct py *p, const struct py_args *a, struct py_atom space)
{
	const struct py_atom *only = a->n ? py_only(p, p->node[a->node[0]].value, PY_STR) : NULL;
	struct py_atom key;

	if (!only || !space.len)
		return only && py_atom_is(only, PY_STR, "__builtins__") ? py_set_text(p, PY_PATH, "builtins", 8)
									: PY_UNKNOWN;
	key = *only; /* making atoms moves them */
	return py_attribute_of(p, py_set_text(p, PY_PATH, space.text, space.len), key.text, key.len);
}

static uint32_t call_method(struct py *p, const struct py_args *a, uint32_t callee)
{
	uint32_t object = py_field(p, callee, PY_F_OBJECT), name = py_field(p, callee, PY_F_ATTRIBUTE), set;
	struct py_atom text;
	const struct py_atom *space;

	if (object == PY_NONE || name == PY_NONE || p->node[name].name == PY_NONE)
		return PY_UNKNOWN;
	set = p->node[py_unwrap(p, object)].value;
	text = p->atom[p->node[name].name];
	space = py_only(p, set, PY_SPACE);
	if (space)
		return space_method(p, a, *space);
	if (is_name(text.text, text.len, "__getattribute__") && a->n == 1) {
		const struct py_atom *key = py_only(p, p->node[a->node[0]].value, PY_STR);

		return key ? py_attribute_of(p, set, key->text, key->len) : PY_UNKNOWN;
	}
	return py_fold_method(p, a, set, text.text, text.len);
}

static uint32_t eval_call(struct py *p, uint32_t node)
{
	uint32_t callee = py_unwrap(p, py_field(p, node, PY_F_FUNCTION)), result = PY_NOTHING;
	struct py_args a;
	struct py_set s;

	if (callee == PY_NONE)
		return PY_UNKNOWN;
	py_args(p, node, &a);
	s = p->set[p->node[callee].value];
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom f = p->atom[s.atom[i]];

		if (f.kind == PY_PATH)
			result = py_join(p, result, call_path(p, &a, s.atom[i]));
		else if (f.kind == PY_FUNC)
			result = py_join(p, result, py_call_function(p, node, callee, (uint32_t)f.number));
		else if (f.kind == PY_CLASS)
			py_call_class(p, node, (uint32_t)f.number);
	}
	if (p->node[callee].sym == PY_ATTRIBUTE && result == PY_NOTHING)
		result = call_method(p, &a, callee);
	return result == PY_NOTHING ? PY_UNKNOWN : result;
}

/* ---- containers ----------------------------------------------------------------------------------------- */

static uint32_t eval_display(struct py *p, uint32_t node)
{
	uint32_t item[PY_UNROLL_MAX];
	uint32_t n = 0;

	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		if (n == PY_UNROLL_MAX || p->node[c].sym == PY_DICT_SPLAT)
			return PY_UNKNOWN;
		if (p->node[c].sym == PY_LIST_SPLAT) {
			const struct py_atom *list = py_only(p, p->node[c].value, PY_LIST);

			if (!list || n + list->len > PY_UNROLL_MAX)
				return PY_UNKNOWN;
			for (uint32_t k = 0; k < list->len; k++)
				item[n++] = list->item[k];
			continue;
		}
		item[n++] = p->node[c].value;
	}
	return py_set_of(p, py_list_atom(p, item, n));
}

/* Evaluates a comprehension with one `for x in constants` and no condition, element by element. */
static uint32_t unroll(struct py *p, uint32_t body, uint32_t target, const struct py_atom *list)
{
	uint32_t item[PY_UNROLL_MAX], b = py_find_binding(p, p->node[target].scope, p->node[target].name), saved;
	uint32_t n = list->len;
	const uint32_t *from = list->item;

	if (b == PY_NONE || n > PY_UNROLL_MAX || p->unrolling >= 2)
		return PY_UNKNOWN;
	saved = p->binding[b].value;
	p->unrolling++;
	for (uint32_t k = 0; k < n; k++) {
		p->binding[b].value = from[k];
		for (uint32_t o = p->node[body].post_first; o <= p->node[body].post && py_steps(p, 1); o++)
			py_eval_node(p, p->order[o]);
		item[k] = p->node[body].value;
	}
	p->unrolling--;
	p->binding[b].value = saved;
	return p->failed ? PY_UNKNOWN : py_set_of(p, py_list_atom(p, item, n));
}

/* A constant string as a list of its characters, bytes as a list of numbers. */
static uint32_t characters(struct py *p, uint32_t set)
{
	const struct py_atom *text = py_only(p, set, PY_STR), *bytes = py_only(p, set, PY_BYTES);
	struct py_atom a;
	uint32_t item[PY_UNROLL_MAX];

	if (!text && !bytes)
		return set;
	a = text ? *text : *bytes;
	if (a.len > PY_UNROLL_MAX)
		return PY_UNKNOWN;
	for (uint32_t i = 0; i < a.len; i++)
		item[i] = text ? py_set_text(p, PY_STR, a.text + i, 1) : py_set_number(p, (unsigned char)a.text[i]);
	return py_set_of(p, py_list_atom(p, item, a.len));
}

static uint32_t eval_comprehension(struct py *p, uint32_t node)
{
	uint32_t body = py_field(p, node, PY_F_BODY), clause = PY_NONE, left, right, value;
	const struct py_atom *list;
	unsigned clauses = 0;

	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next)
		if (p->node[c].sym == PY_FOR_IN || p->node[c].sym == PY_IF_CLAUSE) {
			clauses++;
			clause = c;
		}
	if (body == PY_NONE || clauses != 1)
		return body == PY_NONE ? PY_UNKNOWN
				       : py_set_open(p, py_set_of(p, py_list_atom(p, &p->node[body].value, 1)));
	left = py_field(p, clause, PY_F_LEFT);
	right = py_field(p, clause, PY_F_RIGHT);
	value = right == PY_NONE ? PY_UNKNOWN : characters(p, p->node[right].value);
	list = py_only(p, value, PY_LIST);
	if (list && left != PY_NONE && p->node[left].sym == PY_IDENTIFIER) {
		value = unroll(p, body, left, list);
		if (value != PY_UNKNOWN)
			return value;
	}
	return py_set_open(p, py_set_of(p, py_list_atom(p, &p->node[body].value, 1)));
}

/* ---- statements ----------------------------------------------------------------------------------------- */

static uint32_t eval_augmented(struct py *p, uint32_t node)
{
	uint32_t left = py_field(p, node, PY_F_LEFT), right = py_field(p, node, PY_F_RIGHT);
	uint32_t op = py_field(p, node, PY_F_OPERATOR), b, value = PY_UNKNOWN;
	enum py_symbol sym;

	if (left == PY_NONE || right == PY_NONE || p->node[left].sym != PY_IDENTIFIER)
		return PY_UNKNOWN;
	sym = op == PY_NONE ? PY_OTHER : p->node[op].sym;
	b = py_owner(p, p->node[left].scope, p->node[left].name);
	if (b != PY_NONE && (sym == PY_OP_ADD_AUG || sym == PY_OP_MUL_AUG || sym == PY_OP_MOD_AUG))
		value = py_fold_operator(p,
					 sym == PY_OP_ADD_AUG   ? PY_OP_ADD
					 : sym == PY_OP_MUL_AUG ? PY_OP_MUL
								: PY_OP_MOD,
					 p->binding[b].value, p->node[right].value);
	/* Joins without asking for another round: a sum that grows in every round would use up all rounds. */
	if (b != PY_NONE)
		p->binding[b].value = py_join(p, p->binding[b].value, value);
	return value;
}

static void eval_assignment(struct py *p, uint32_t node)
{
	uint32_t left = py_field(p, node, PY_F_LEFT), right = py_field(p, node, PY_F_RIGHT);

	if (right == PY_NONE)
		return;
	p->node[node].value = p->node[right].value;
	py_bind_target(p, left, p->node[right].value);
}

static void eval_loop(struct py *p, uint32_t node)
{
	uint32_t left = py_field(p, node, PY_F_LEFT), right = py_field(p, node, PY_F_RIGHT);

	if (left != PY_NONE && right != PY_NONE)
		py_bind_target(p, left, py_element_of(p, characters(p, p->node[right].value)));
}

static void eval_as_pattern(struct py *p, uint32_t node)
{
	uint32_t value = p->node[node].child, alias = py_field(p, node, PY_F_ALIAS);

	if (value == PY_NONE)
		return;
	p->node[node].value = p->node[value].value;
	if (alias != PY_NONE)
		py_bind_target(p, alias, p->node[value].value);
	else if (p->node[value].next != PY_NONE)
		py_bind_target(p, p->node[value].next, PY_UNKNOWN);
}

static void eval_named(struct py *p, uint32_t node)
{
	uint32_t name = py_field(p, node, PY_F_NAME), value = py_field(p, node, PY_F_VALUE);
	uint32_t scope = p->node[node].scope;

	if (name == PY_NONE || value == PY_NONE)
		return;
	while (p->scope[scope].kind == PY_SCOPE_COMPREHENSION)
		scope = p->scope[scope].parent;
	p->node[node].value = p->node[value].value;
	py_bind(p, scope, p->node[name].name, p->node[value].value);
}

static uint32_t child_value(const struct py *p, uint32_t node, unsigned n)
{
	uint32_t c = py_nth(p, node, n);

	return c == PY_NONE ? PY_UNKNOWN : p->node[c].value;
}

/* Statements and definitions, which bind names. */
static void eval_statement(struct py *p, uint32_t node)
{
	struct py_node *n = &p->node[node];

	switch (n->sym) {
	case PY_ASSIGNMENT:
		eval_assignment(p, node);
		break;
	case PY_AUGMENTED:
		n->value = eval_augmented(p, node);
		break;
	case PY_FOR_IN:
		eval_loop(p, node);
		break;
	case PY_AS_PATTERN:
		eval_as_pattern(p, node);
		break;
	case PY_NAMED_EXPRESSION:
		eval_named(p, node);
		break;
	case PY_FUNCTION:
		py_eval_definition(p, node, PY_FUNC);
		break;
	case PY_CLASS_DEFINITION:
		py_eval_definition(p, node, PY_CLASS);
		break;
	case PY_RETURN:
		py_give_result(p, n->scope, child_value(p, node, 0));
		break;
	case PY_PARAMETERS:
	case PY_LAMBDA_PARAMETERS:
		py_eval_parameters(p, node);
		break;
	case PY_IMPORT:
	case PY_IMPORT_FROM:
		py_eval_import(p, node);
		break;
	default:
		break;
	}
}

static uint32_t eval_lambda(struct py *p, uint32_t node)
{
	uint32_t body = py_field(p, node, PY_F_BODY);

	if (body != PY_NONE)
		py_give_result(p, p->node[node].name, p->node[body].value);
	return py_set_of(p, py_number_atom(p, PY_FUNC, node));
}

static uint32_t eval_integer(struct py *p, uint32_t node)
{
	char digits[32];
	uint32_t n = 0, len = p->node[node].end - p->node[node].start;
	const char *text = p->text + p->node[node].start;
	bool prefixed = len > 2 && text[0] == '0' && strchr("bBoO", text[1]);
	char *end;
	long long number;

	for (uint32_t i = prefixed ? 2 : 0; i < len && n < sizeof(digits) - 1; i++)
		if (text[i] != '_')
			digits[n++] = text[i];
	digits[n] = '\0';
	errno = 0;
	number = strtoll(digits, &end, !prefixed ? 0 : strchr("bB", text[1]) ? 2 : 8);
	return errno || *end || end == digits ? PY_UNKNOWN : py_set_number(p, number);
}

void py_eval_node(struct py *p, uint32_t node)
{
	struct py_node *n = &p->node[node];

	switch (n->sym) {
	case PY_IDENTIFIER:
		if (!(n->flags & PY_STORE))
			n->value = eval_identifier(p, node);
		break;
	case PY_ATTRIBUTE:
		n->value = eval_attribute(p, py_field(p, node, PY_F_OBJECT), py_field(p, node, PY_F_ATTRIBUTE));
		break;
	case PY_MEMBER_TYPE:
		n->value = eval_attribute(p, n->child, last_child(p, node));
		break;
	case PY_CALL:
		n->value = eval_call(p, node);
		break;
	case PY_SUBSCRIPT:
		n->value = py_fold_subscript(p, node);
		break;
	case PY_STRING:
	case PY_CONCATENATED:
		n->value = py_fold_string(p, node);
		break;
	case PY_BINARY:
		n->value = py_fold_binary(p, node);
		break;
	case PY_UNARY:
		n->value = py_fold_unary(p, node);
		break;
	case PY_INTEGER:
		n->value = eval_integer(p, node);
		break;
	case PY_TRUE:
	case PY_FALSE:
		n->value = py_set_number(p, n->sym == PY_TRUE);
		break;
	case PY_LIST_:
	case PY_TUPLE:
	case PY_SET:
	case PY_EXPRESSION_LIST:
	case PY_PATTERN_LIST:
	case PY_DICTIONARY:
		n->value = eval_display(p, node);
		break;
	case PY_LIST_COMPREHENSION:
	case PY_SET_COMPREHENSION:
	case PY_GENERATOR:
		n->value = eval_comprehension(p, node);
		break;
	case PY_PAIR:
		n->value = child_value(p, node, 1);
		break;
	case PY_CONDITIONAL:
		n->value = py_join(p, child_value(p, node, 0), child_value(p, node, 2));
		break;
	case PY_BOOLEAN:
		n->value = py_join(p, child_value(p, node, 0), child_value(p, node, 1));
		break;
	case PY_LAMBDA:
		n->value = eval_lambda(p, node);
		break;
	case PY_PARENTHESIZED:
	case PY_LIST_SPLAT:
	case PY_TYPE:
	case PY_AWAIT:
	case PY_WITH_ITEM:
	case PY_INTERPOLATION:
		n->value = child_value(p, node, 0);
		break;
	default:
		eval_statement(p, node);
	}
}

/* A for statement binds its target before its body: done at the node after the iterable. */
static void enter_loop(struct py *p, uint32_t node)
{
	uint32_t up = p->node[node].parent;

	if (up != PY_NONE && p->node[node].field == PY_F_RIGHT && p->node[up].sym == PY_FOR)
		eval_loop(p, up);
}

/* Binds the name of a function or class before its body is visited, since the body may use it. */
static void enter_definition(struct py *p, uint32_t node)
{
	uint32_t up = p->node[node].parent;

	if (up != PY_NONE && p->node[node].field == PY_F_NAME &&
	    (p->node[up].sym == PY_FUNCTION || p->node[up].sym == PY_CLASS_DEFINITION))
		eval_statement(p, up);
}

void py_evaluate(struct py *p)
{
	unsigned round = 0;

	do {
		p->changed = false;
		for (uint32_t o = 0; o < p->n_nodes && py_steps(p, 1); o++) {
			py_eval_node(p, p->order[o]);
			enter_loop(p, p->order[o]);
			enter_definition(p, p->order[o]);
		}
	} while (p->changed && !p->failed && ++round < PY_ROUNDS_MAX);
}
