/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges all references once, when all values are known.  References count, not calls: a mentioned eval can be called
 * through a list, a decorator or an operator.
 */
#include "inspect/python.h"

/* ---- modules that are no longer followed ---------------------------------------------------------------- */

static uint32_t outside_parentheses(const struct py *p, uint32_t node)
{
	while (p->node[node].parent != PY_NONE && p->node[p->node[node].parent].sym == PY_PARENTHESIZED)
		node = p->node[node].parent;
	return node;
}

/* True if the inspector can follow the value from here: its attribute is read, or it is assigned to a name. */
static bool stays_in_sight(const struct py *p, uint32_t node)
{
	uint32_t up;

	node = outside_parentheses(p, node);
	up = p->node[node].parent;
	if (up == PY_NONE)
		return true;
	switch (p->node[up].sym) {
	case PY_ATTRIBUTE:
	case PY_MEMBER_TYPE:
	case PY_DOTTED_NAME:
	case PY_EXPRESSION_STATEMENT:
	case PY_DELETE:
	case PY_NAMED_EXPRESSION:
	case PY_LIST_SPLAT: /* [*os.popen()]: the parser puts the star inside */
		return true;
	case PY_ASSIGNMENT: {
		uint32_t left = py_field(p, up, PY_F_LEFT);

		return left != PY_NONE && p->node[left].sym == PY_IDENTIFIER && p->node[node].field == PY_F_RIGHT;
	}
	default:
		return (p->node[node].flags & PY_CONSUMED) != 0;
	}
}

static void judge_escape(struct py *p, uint32_t node)
{
	struct py_set s = p->set[p->node[node].value];

	if (s.n == 0 || stays_in_sight(p, node))
		return;
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom a = p->atom[s.atom[i]];

		if (a.kind == PY_PATH || (a.kind == PY_SPACE && a.len))
			py_judge_escape(p, a.text, a.len, py_span(p, node));
	}
}

/* ---- names ---------------------------------------------------------------------------------------------- */

static bool is_called(const struct py *p, uint32_t node)
{
	node = outside_parentheses(p, node);
	return p->node[node].parent != PY_NONE && p->node[p->node[node].parent].sym == PY_CALL &&
	       p->node[node].field == PY_F_FUNCTION;
}

static void judge_identifier(struct py *p, uint32_t node)
{
	struct py_node *n = &p->node[node];
	struct py_atom name;
	bool builtin;

	if ((n->flags & PY_STORE) || n->name == PY_NONE)
		return;
	name = p->atom[n->name];
	(void)py_resolve(p, node, n->name, &builtin);
	if (builtin) {
		judge_builtin(p->j, name.text, name.len, py_span(p, node));
		if (py_atom_is(&name, PY_STR, "getattr") && !is_called(p, node))
			judge_check(p->j, "dynamic-attribute", py_span(p, node), "getattr handed on as a function");
	}
	judge_escape(p, node);
	py_judge_intent_of_reference(p, node);
}

/* ---- attributes ----------------------------------------------------------------------------------------- */

static bool is_plain_builtins(const struct py *p, uint32_t set)
{
	for (unsigned i = 0; i < p->set[set].n; i++)
		if (py_atom_is(&p->atom[p->set[set].atom[i]], PY_PATH, "builtins"))
			return true;
	return false;
}

/* Only the whole chain is judged: os.path in os.path.join is not a separate reference. */
static bool is_inner_link(const struct py *p, uint32_t node)
{
	uint32_t up;

	node = outside_parentheses(p, node);
	up = p->node[node].parent;
	return up != PY_NONE && ((p->node[up].sym == PY_ATTRIBUTE && p->node[node].field == PY_F_OBJECT) ||
				 (p->node[up].sym == PY_MEMBER_TYPE && p->node[up].child == node));
}

static void judge_paths(struct py *p, uint32_t node, uint32_t object)
{
	struct py_set s = p->set[p->node[node].value];

	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom a = p->atom[s.atom[i]];

		if (a.kind != PY_PATH)
			continue;
		/* A builtin reached by its own name is judged at that name. */
		if (a.len > 9 && memcmp(a.text, "builtins.", 9) == 0 && !is_plain_builtins(p, object))
			continue;
		py_judge_path(p, a.text, a.len, py_span(p, node));
	}
}

static void judge_attribute_node(struct py *p, uint32_t node, uint32_t object, uint32_t name)
{
	if (object == PY_NONE || name == PY_NONE || p->node[name].name == PY_NONE)
		return;
	py_judge_attribute_name(p, p->node[py_unwrap(p, object)].value, p->atom[p->node[name].name].text,
				p->atom[p->node[name].name].len, py_span(p, name));
	if (!is_inner_link(p, node)) {
		judge_paths(p, node, p->node[py_unwrap(p, object)].value);
		py_judge_intent_of_reference(p, node);
	}
	judge_escape(p, node);
}

static void judge_subscript(struct py *p, uint32_t node)
{
	uint32_t object = py_unwrap(p, py_field(p, node, PY_F_VALUE)), sub = py_field(p, node, PY_F_SUBSCRIPT);
	const struct py_atom *key;
	struct py_set s;

	if (object == PY_NONE || sub == PY_NONE)
		return;
	s = p->set[p->node[object].value];
	key = py_only(p, p->node[sub].value, PY_STR);
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom a = p->atom[s.atom[i]];

		if (a.kind != PY_SPACE && !py_atom_is(&a, PY_PATH, "builtins"))
			continue;
		if (key)
			py_judge_attribute_name(p, PY_UNKNOWN, key->text, key->len, py_span(p, sub));
		else if (p->node[sub].sym != PY_SLICE)
			judge_check(p->j,
				    !a.len                        ? "dynamic-attribute"
				    : py_is_inside(a.text, a.len) ? "dynamic-module-attribute"
								  : "dynamic-module-member",
				    py_span(p, sub), "the key of a namespace");
		if (!is_inner_link(p, node))
			judge_paths(p, node, PY_UNKNOWN);
	}
	if (is_plain_builtins(p, p->node[object].value) && !is_inner_link(p, node))
		judge_paths(p, node, p->node[object].value);
}

/* ---- strings -------------------------------------------------------------------------------------------- */

/* A string that is only shown, compared or documentation is not the name of anything. */
static bool is_only_text(const struct py *p, uint32_t node)
{
	uint32_t up = p->node[node].parent;

	if (up == PY_NONE)
		return true;
	switch (p->node[up].sym) {
	case PY_EXPRESSION_STATEMENT:
	case PY_COMPARISON:
	case PY_INTERPOLATION:
		return true;
	case PY_ARGUMENT_LIST: {
		uint32_t callee = py_field(p, p->node[up].parent, PY_F_FUNCTION);

		return callee != PY_NONE && p->node[callee].sym == PY_IDENTIFIER &&
		       py_name_is(p, p->node[callee].name, "print");
	}
	case PY_ATTRIBUTE: /* "{0.__class__}".format() has a rule of its own */
		return true;
	case PY_PAIR: /* eval(text, {"__builtins__": {}}) removes them */
		return p->j->level != INSPECTION_STRICT && p->node[up].child == node;
	default:
		return false;
	}
}

static bool is_word_character(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* The rule for an attribute, or for a builtin whose name begins with underscores. */
static const struct rule *reflection_rule(const struct py *p, const char *name, size_t len)
{
	const struct rule *rule = rules_find(p->j->rules, RULE_PYTHON, RULE_ATTRIBUTE, name, len);

	if (!rule && len > 2 && memcmp(name, "__", 2) == 0)
		rule = rules_find(p->j->rules, RULE_PYTHON, RULE_BUILTIN, name, len);
	return rule && rule->severity[p->j->level] >= SEVERITY_HIGH ? rule : NULL;
}

/*
 * "__globals__" in a list, a default or a variable will be passed to getattr.  Also handles "0.__class__.__base__", but
 * not prose: only names joined by dots and brackets.
 */
static void judge_string(struct py *p, uint32_t node)
{
	const struct py_atom *a = py_only(p, p->node[node].value, PY_STR);
	uint32_t start = 0;

	if (!a || a->len < 4 || a->len > 120 || !memmem(a->text, a->len, "_", 1) || is_only_text(p, node))
		return;
	for (uint32_t i = 0; i < a->len; i++)
		if (!is_word_character(a->text[i]) && !strchr(".[]{}", a->text[i]))
			return;
	for (uint32_t i = 0; i <= a->len; i++) {
		if (i < a->len && is_word_character(a->text[i]))
			continue;
		if (reflection_rule(p, a->text + start, i - start)) {
			judge_check(p->j, "reflection-string", py_span(p, node), "%.*s", (int)(i - start),
				    a->text + start);
			return;
		}
		start = i + 1;
	}
}

/* a / b of pathlib. */
static void judge_division(struct py *p, uint32_t node)
{
	uint32_t op = py_field(p, node, PY_F_OPERATOR);

	if (op != PY_NONE && p->node[op].sym == PY_OP_DIV)
		py_judge_file(p, p->node[node].value, py_span(p, node));
}

static void judge_keyword_pattern(struct py *p, uint32_t node)
{
	uint32_t name = p->node[node].child;

	if (name != PY_NONE && p->node[name].name != PY_NONE)
		py_judge_attribute_name(p, PY_UNKNOWN, p->atom[p->node[name].name].text,
					p->atom[p->node[name].name].len, py_span(p, name));
}

static uint32_t last_child(const struct py *p, uint32_t node)
{
	uint32_t c = p->node[node].child;

	while (c != PY_NONE && p->node[c].next != PY_NONE)
		c = p->node[c].next;
	return c;
}

static void judge_node(struct py *p, uint32_t node)
{
	switch (p->node[node].sym) {
	case PY_IDENTIFIER:
		judge_identifier(p, node);
		break;
	case PY_ATTRIBUTE:
		judge_attribute_node(p, node, py_field(p, node, PY_F_OBJECT), py_field(p, node, PY_F_ATTRIBUTE));
		break;
	case PY_MEMBER_TYPE:
		judge_attribute_node(p, node, p->node[node].child, last_child(p, node));
		break;
	case PY_SUBSCRIPT:
		judge_subscript(p, node);
		break;
	case PY_CALL:
		py_judge_call(p, node);
		break;
	case PY_ASSIGNMENT:
		py_judge_intent_of_assignment(p, node);
		break;
	case PY_IMPORT:
	case PY_IMPORT_FROM:
		py_judge_import_statement(p, node);
		break;
	case PY_STRING:
	case PY_CONCATENATED:
		judge_string(p, node);
		break;
	case PY_BINARY:
		judge_division(p, node);
		break;
	case PY_KEYWORD_PATTERN:
		judge_keyword_pattern(p, node);
		break;
	case PY_EXEC_STATEMENT:
		judge_builtin(p->j, "exec", 4, py_span(p, node));
		break;
	default:
		break;
	}
}

void py_judge(struct py *p)
{
	/* Imports first, so that uses of a reported module are not reported again. */
	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (p->node[i].sym == PY_IMPORT || p->node[i].sym == PY_IMPORT_FROM)
			judge_node(p, i);
	for (uint32_t i = 0; i < p->n_nodes && py_steps(p, 1); i++)
		if (p->node[i].sym != PY_IMPORT && p->node[i].sym != PY_IMPORT_FROM)
			judge_node(p, i);
}
