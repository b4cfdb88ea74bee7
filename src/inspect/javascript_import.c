/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports and exports: the names that an import binds, and the values that an export passes on.  TypeScript has forms
 * of its own: import x = require("m"), import x = a.b, and enums, whose members are values like those of an object.
 */
#include "inspect/javascript.h"

static struct js_value unknown(void)
{
	return js_simple(JS_UNKNOWN);
}

static struct span source_span(const struct js_kid *k)
{
	return (struct span){ k->start, k->end };
}

/* import_specifier, namespace_import ...: binds one member to a name.  v[2]: member (undefined: all), target */
struct js_value js_eval_specifier(struct js *js, const struct js_frame *f)
{
	const struct js_kid *name = js_kid(js, f, FIELD_NAME), *alias = js_kid(js, f, FIELD_ALIAS);
	struct js_value both[2] = { js_text("default"), js_simple(JS_REF) };
	const struct js_kid *target = alias ? alias : name;

	if (!target || f->type_only)
		return unknown();
	if (name)
		both[0] = name->node == NODE_STRING ? name->value : js_literal(js, name->start, name->end);
	both[1].atom = js_atom_at(js, target->start, target->end);
	return js_list(js, JS_PAIR, both, 2);
}

/* Collects pairs, which the statement binds. */
struct js_value js_eval_import_clause(struct js *js, const struct js_frame *f)
{
	struct js_value list = js_collect(js, f, JS_ARRAY);

	for (uint32_t i = 0; list.kind == JS_ARRAY && i < list.n; i++) {
		if (list.v[i].kind == JS_REF) { /* import x, import * as x */
			struct js_value both[2] = { js_simple(JS_UNDEFINED), list.v[i] };

			list.v[i] = js_list(js, JS_PAIR, both, 2);
		}
	}
	return list;
}

static void bind_imports(struct js *js, const struct js_value *v, struct js_value module, unsigned depth)
{
	if (v->kind == JS_ARRAY && depth < 4) {
		for (uint32_t i = 0; i < v->n; i++)
			bind_imports(js, &v->v[i], module, depth + 1);
	} else if (v->kind == JS_PAIR) {
		if (v->v[0].kind == JS_STRING)
			module = js_member(js, module, &v->v[0], js->where);
		js_assign(js, &v->v[1], module, 0);
	} else if (v->kind == JS_REF) {
		js_assign(js, v, module, 0);
	}
}

/* import { type A, type B } from "m" is erased like import type. */
static bool only_types(const struct js *js, const struct js_frame *f)
{
	const struct js_kid *k = js_kid_at(js, f, 0);
	const struct js_value *list = k && k->node == NODE_IMPORT_CLAUSE ? &k->value : NULL;

	if (!list || list->kind != JS_ARRAY || list->n != 1 || list->v[0].kind != JS_ARRAY || list->v[0].n == 0)
		return false;
	for (uint32_t i = 0; i < list->v[0].n; i++)
		if (list->v[0].v[i].kind == JS_PAIR)
			return false;
	return true;
}

void js_eval_import(struct js *js, const struct js_frame *f)
{
	const struct js_kid *source = js_kid(js, f, FIELD_SOURCE);
	struct js_value module;

	if (f->type_only || !source || only_types(js, f))
		return;
	module = js_import(js, &source->value, source_span(source));
	js->where = source_span(source);
	for (uint32_t i = 0; i < js_kid_count(js, f); i++) {
		struct js_value v = js_kid_at(js, f, i)->value;

		if (js_kid_at(js, f, i)->field != FIELD_SOURCE)
			bind_imports(js, &v, module, 0);
	}
}

/* Reports an export of child_process: importers then start programs through a module with another name. */
void js_judge_export(struct js *js, const struct js_value *v, struct span where)
{
	const struct js_value *each;
	size_t n = js_alternatives(v, &each);

	for (size_t i = 0; i < n; i++)
		if (js_is(&each[i], JS_MODULE, "child_process"))
			js_check(js, "process-exported", where, "");
}

/* import x = require("m") */
void js_eval_import_require(struct js *js, const struct js_frame *f)
{
	const struct js_kid *source = js_kid(js, f, FIELD_SOURCE), *name = js_kid_at(js, f, 0);
	const struct js_frame *p = js_parent(js, 1);

	if (!source || (p && p->type_only))
		return;
	js->where = source_span(source);
	js_assign(js, &name->value, js_import(js, &source->value, source_span(source)), 0);
}

/* import x = a.b: an alias. */
void js_eval_import_alias(struct js *js, const struct js_frame *f)
{
	const struct js_kid *name = js_kid_at(js, f, 0), *source = js_kid_at(js, f, 1);

	if (js_kid_count(js, f) != 2 || name->value.kind != JS_REF)
		return;
	js->where = source_span(source);
	js_assign(js, &name->value, source->value, 0);
}

/* enum E { A = "text" }: the members of its body. */
struct js_value js_eval_enum(struct js *js, const struct js_frame *f)
{
	for (uint32_t i = 0; i < js_kid_count(js, f); i++)
		if (js_kid_at(js, f, i)->node == NODE_ENUM_BODY)
			return js_kid_at(js, f, i)->value;
	return unknown();
}

void js_eval_export(struct js *js, const struct js_frame *f)
{
	const struct js_kid *source = js_kid(js, f, FIELD_SOURCE);

	if (f->type_only)
		return;
	if (source) {
		struct js_value module = js_import(js, &source->value, source_span(source));

		js_mention(js, &module, source_span(source));
		js_judge_export(js, &module, source_span(source));
	}
	for (uint32_t i = 0; i < js_kid_count(js, f); i++)
		js_judge_export(js, &js_kid_at(js, f, i)->value, source_span(js_kid_at(js, f, i)));
	js_mention_kids(js, f);
}
