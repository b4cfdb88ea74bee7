/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a call, by position and by name. */
#include "inspect/python.h"

void py_args(const struct py *p, uint32_t call, struct py_args *ret)
{
	uint32_t list = py_field(p, call, PY_F_ARGUMENTS);

	*ret = (struct py_args){ .call = call };
	if (list == PY_NONE)
		return;
	if (p->node[list].sym != PY_ARGUMENT_LIST) { /* f(x for x in y): the generator takes the place of the list */
		ret->node[ret->n++] = list;
		return;
	}
	for (uint32_t c = p->node[list].child; c != PY_NONE; c = p->node[c].next) {
		if (p->node[c].sym == PY_KEYWORD_ARGUMENT)
			continue;
		if (p->node[c].sym == PY_LIST_SPLAT || p->node[c].sym == PY_DICT_SPLAT || ret->n == PY_ARGS_MAX) {
			ret->spread = true;
			continue;
		}
		ret->node[ret->n++] = c;
	}
}

static uint32_t keyword_where(const struct py *p, uint32_t call, uint32_t atom, const char *text)
{
	uint32_t list = py_field(p, call, PY_F_ARGUMENTS);

	for (uint32_t c = list == PY_NONE ? PY_NONE : p->node[list].child; c != PY_NONE; c = p->node[c].next) {
		uint32_t name = p->node[c].sym == PY_KEYWORD_ARGUMENT ? py_field(p, c, PY_F_NAME) : PY_NONE;

		if (name != PY_NONE && (text ? py_name_is(p, p->node[name].name, text) : p->node[name].name == atom))
			return py_field(p, c, PY_F_VALUE);
	}
	return PY_NONE;
}

uint32_t py_keyword(const struct py *p, uint32_t call, const char *name)
{
	return keyword_where(p, call, PY_NONE, name);
}

uint32_t py_keyword_atom(const struct py *p, uint32_t call, uint32_t name)
{
	return keyword_where(p, call, name, NULL);
}

uint32_t py_arg_value(const struct py *p, const struct py_args *a, unsigned i)
{
	return i < a->n ? p->node[a->node[i]].value : PY_UNKNOWN;
}
