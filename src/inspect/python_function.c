/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions and classes of the text.  They are not called: a parameter collects the arguments of all calls, and a
 * result is the join of all return statements.  Method calls are matched by the method's name alone, because the
 * object's class is unknown.
 */
#include "inspect/python.h"

static uint32_t parameter_name(const struct py *p, uint32_t parameter)
{
	uint32_t n = parameter;

	if (p->node[n].sym == PY_DEFAULT_PARAMETER || p->node[n].sym == PY_TYPED_DEFAULT_PARAMETER)
		n = py_field(p, n, PY_F_NAME);
	else if (p->node[n].sym == PY_TYPED_PARAMETER || p->node[n].sym == PY_LIST_SPLAT_PATTERN)
		n = p->node[n].child;
	return n != PY_NONE && p->node[n].sym == PY_IDENTIFIER ? n : PY_NONE;
}

void py_eval_parameters(struct py *p, uint32_t node)
{
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		uint32_t name = parameter_name(p, c), value = PY_UNKNOWN, given = PY_NONE;

		if (p->node[c].sym == PY_DEFAULT_PARAMETER || p->node[c].sym == PY_TYPED_DEFAULT_PARAMETER)
			given = py_field(p, c, PY_F_VALUE);
		if (given != PY_NONE)
			value = py_set_open(p, p->node[given].value);
		if (name != PY_NONE)
			py_bind(p, p->node[name].scope, p->node[name].name, value);
		else
			py_bind_target(p, c, PY_UNKNOWN);
	}
}

/* Binds the arguments of a call to the parameters of a function of the text; `skip` parameters are already bound. */
static void pass_arguments(struct py *p, uint32_t call, uint32_t function, unsigned skip)
{
	uint32_t parameters = py_field(p, function, PY_F_PARAMETERS);
	struct py_args a;
	unsigned i = 0;

	if (parameters == PY_NONE)
		return;
	py_args(p, call, &a);
	for (uint32_t c = p->node[parameters].child; c != PY_NONE; c = p->node[c].next) {
		uint32_t name = parameter_name(p, c), value = PY_NONE, keyword;

		if (skip > 0) {
			skip--;
			continue;
		}
		if (i < a.n && !a.spread)
			value = p->node[a.node[i++]].value;
		if (name == PY_NONE)
			continue;
		keyword = py_keyword_atom(p, call, p->node[name].name);
		if (keyword != PY_NONE)
			value = p->node[keyword].value;
		if (value != PY_NONE)
			py_bind(p, p->node[name].scope, p->node[name].name, value);
	}
}

static bool is_static(const struct py *p, uint32_t function)
{
	uint32_t up = p->node[function].parent;

	if (up == PY_NONE || p->node[up].sym != PY_DECORATED)
		return false;
	for (uint32_t c = p->node[up].child; c != PY_NONE; c = p->node[c].next) {
		uint32_t name = p->node[c].sym == PY_DECORATOR ? p->node[c].child : PY_NONE;

		if (name != PY_NONE && py_name_is(p, p->node[name].name, "staticmethod"))
			return true;
	}
	return false;
}

uint32_t py_call_function(struct py *p, uint32_t call, uint32_t callee, uint32_t function)
{
	uint32_t inner = p->node[function].name;
	bool method = p->node[function].sym == PY_FUNCTION &&
		      p->scope[p->node[function].scope].kind == PY_SCOPE_CLASS && p->node[callee].sym == PY_ATTRIBUTE &&
		      !is_static(p, function);

	pass_arguments(p, call, function, method ? 1 : 0);
	p->scope[inner].read = true;
	return py_set_open(p, p->scope[inner].result);
}

void py_call_class(struct py *p, uint32_t call, uint32_t node)
{
	uint32_t b = py_find_binding(p, p->node[node].name, py_name(p, "__init__", 8));

	for (unsigned i = 0; b != PY_NONE && i < p->set[p->binding[b].value].n; i++) {
		struct py_atom a = p->atom[p->set[p->binding[b].value].atom[i]];

		if (a.kind == PY_FUNC)
			pass_arguments(p, call, (uint32_t)a.number, 1);
	}
}

void py_give_result(struct py *p, uint32_t scope, uint32_t value)
{
	uint32_t joined;

	while (p->scope[scope].kind == PY_SCOPE_COMPREHENSION)
		scope = p->scope[scope].parent;
	joined = py_join(p, p->scope[scope].result, value);
	if (joined != p->scope[scope].result && p->scope[scope].read)
		p->changed = true;
	p->scope[scope].result = joined;
}

void py_eval_definition(struct py *p, uint32_t node, enum py_atom_kind kind)
{
	uint32_t name = py_field(p, node, PY_F_NAME), value = py_set_of(p, py_number_atom(p, kind, node));

	if (name == PY_NONE)
		return;
	py_bind(p, p->node[node].scope, p->node[name].name, value);
}
