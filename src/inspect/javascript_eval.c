/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk that computes values, from the leaves up: when a node is left, the values of its children are on a stack and
 * are replaced by the value of the node.  A value that is not followed further is judged there ("mentioned").
 */
#include "inspect/javascript.h"

#include <string.h>

static struct span span_of(const struct js_frame *f)
{
	return (struct span){ f->start, f->end };
}

static struct js_value unknown(void)
{
	return js_simple(JS_UNKNOWN);
}

static struct js_value last_value(struct js *js, const struct js_frame *f)
{
	uint32_t n = js_kid_count(js, f);

	return n ? js_kid_at(js, f, n - 1)->value : unknown();
}

static struct js_value first_value(struct js *js, const struct js_frame *f)
{
	return js_kid_count(js, f) ? js_kid_at(js, f, 0)->value : unknown();
}

/* --- names ---------------------------------------- */

static struct js_value global_name(struct js *js, uint32_t at)
{
	static const char *const global[] = { "global", "window", "self", "frames", "GLOBAL", "root", "top" };
	const struct js_atom *atom = &js->atoms[at];
	struct js_value v = js_path(atom->s, atom->len);

	for (size_t i = 0; i < ARRAY_LEN(global); i++)
		if (js_is(&v, JS_PATH, global[i]))
			return js_path("globalThis", 10);
	if (js_is(&v, JS_PATH, "arguments") && !js->scopes[js->scopes[js->scope].function].module_arguments)
		return unknown();
	if (js_is(&v, JS_PATH, "undefined"))
		return js_simple(JS_UNDEFINED);
	if (js_is_from_outside(js, &v))
		v.flags |= JS_OUTSIDE;
	return v;
}

static struct js_value read_name(struct js *js, const struct js_frame *f)
{
	uint32_t atom = js_atom_at(js, f->start, f->end);

	if (atom == UINT32_MAX)
		return unknown();
	if (js->atoms[atom].var != JS_NO_VAR)
		return js_read(js, atom);
	if (memchr(js->text + f->start, '\\', f->end - f->start) &&
	    js_is_engine_name(js, js->atoms[atom].s, js->atoms[atom].len))
		js_check(js, "assembled-name", span_of(f), js->atoms[atom].s);
	return global_name(js, atom);
}

/* The names of functions, classes and exports are not references. */
static bool names_something(const struct js_frame *f, const struct js_frame *p)
{
	if (!p)
		return false;
	switch (p->node) {
	case NODE_FUNCTION_DECLARATION:
	case NODE_FUNCTION_EXPRESSION:
	case NODE_GENERATOR:
	case NODE_GENERATOR_DECLARATION:
	case NODE_CLASS:
	case NODE_CLASS_DECLARATION:
	case NODE_ABSTRACT_CLASS:
	case NODE_ENUM:
	case NODE_NAMESPACE:
	case NODE_METHOD:
	case NODE_IMPORT_SPECIFIER:
		return f->field == FIELD_NAME;
	case NODE_EXPORT_SPECIFIER: /* judged by the statement, which knows whether it is a re-export */
		return true;
	default:
		return false;
	}
}

static struct js_value eval_identifier(struct js *js, const struct js_frame *f)
{
	if (f->bind != JS_BIND_NONE) {
		struct js_value ref = js_simple(JS_REF);

		ref.atom = js_atom_at(js, f->start, f->end);
		return ref;
	}
	return names_something(f, js_parent(js, 1)) ? unknown() : read_name(js, f);
}

static struct js_value eval_this(struct js *js)
{
	struct js_value v;

	if (js->scopes[js->scopes[js->scope].function].this != JS_THIS_GLOBAL)
		return js_simple(JS_THIS);
	v = js_path("globalThis", 10);
	v.flags = JS_WEAK;
	return v;
}

/* --- expressions ---------------------------------------- */

static struct js_value eval_member(struct js *js, struct js_frame *f)
{
	const struct js_kid *object = js_kid(js, f, FIELD_OBJECT), *property = js_kid(js, f, FIELD_PROPERTY);
	struct js_value name, both[2];

	if (f->node == NODE_SUBSCRIPT)
		property = js_kid(js, f, FIELD_INDEX);
	if (!object || !property)
		return unknown();
	name = f->node == NODE_SUBSCRIPT ? property->value : js_property_key(js, property);
	if (f->node == NODE_SUBSCRIPT)
		js_judge_subscript(js, object, property);
	if (property->value.flags & JS_PENDING)
		js_mention(js, &property->value, (struct span){ property->start, property->end });
	if (f->bind != JS_BIND_ASSIGN)
		return js_member(js, object->value, &name, span_of(f));
	/* a store: the member that is overwritten counts as a reference */
	(void)js_member(js, object->value, &name, span_of(f));
	both[0] = object->value;
	both[1] = name;
	return js_list(js, JS_MEMBER, both, 2);
}

static void mention_args(struct js *js, const struct js_kid *args)
{
	for (uint32_t i = 0; args->value.kind == JS_ARRAY && i < args->value.n; i++) {
		struct js_value v = args->value.v[i];

		if (v.flags & JS_PENDING)
			js_mention(js, &v, (struct span){ args->start, args->end });
	}
}

static bool takes_references(const struct js_value *callee)
{
	return js_is(callee, JS_PATH, "Reflect.apply") || js_is(callee, JS_PATH, "Reflect.construct") ||
	       js_is(callee, JS_PATH, "Function.prototype.call.call") ||
	       js_is(callee, JS_PATH, "Function.prototype.apply.call");
}

static struct js_value eval_call(struct js *js, struct js_frame *f)
{
	bool is_new = f->node == NODE_NEW;
	const struct js_kid *callee = js_kid(js, f, is_new ? FIELD_CONSTRUCTOR : FIELD_FUNCTION);
	const struct js_kid *args = js_kid(js, f, FIELD_ARGUMENTS);
	struct js_value function, list = js_simple(JS_UNDEFINED);

	if (!callee)
		return unknown();
	function = callee->value;
	if (callee->node == NODE_IMPORT_KEYWORD)
		function = js_path("require", 7);
	if (callee->node == NODE_SUPER)
		function = unknown();
	if (args) {
		list = args->value;
		if (args->node == NODE_TEMPLATE) { /* f`text` */
			struct js_value text = args->value;

			/*
			 * a tag function of the program gets an array of strings; functions of the engine are given the
			 * string
			 */
			if (function.kind == JS_FUNCTION)
				text = js_list(js, JS_ARRAY, &args->value, 1);
			list = js_list(js, JS_ARRAY, &text, 1);
		} else if (!takes_references(&function)) {
			mention_args(js, args);
		}
	}
	return js_call(js, function, list, is_new, span_of(f));
}

static struct js_value eval_pair(struct js *js, const struct js_frame *f, struct js_value value)
{
	bool by_name = f->node == NODE_METHOD || f->node == NODE_ENUM_ASSIGNMENT;
	const struct js_kid *key = js_kid(js, f, by_name ? FIELD_NAME : FIELD_KEY);
	struct js_value both[2] = { js_property_key(js, key), value };

	return js_list(js, JS_PAIR, both, 2);
}

static struct js_value eval_object(struct js *js, const struct js_frame *f, enum js_kind kind)
{
	uint32_t n = js_kid_count(js, f), at = 0;
	struct js_value list;

	if (!js_list_new(js, kind, n, &list))
		return list;
	for (uint32_t i = 0; i < n; i++) {
		const struct js_kid *k = js_kid_at(js, f, i);
		struct js_value key = unknown(), value = k->value;

		if (k->value.kind == JS_PAIR) {
			key = k->value.v[0];
			value = k->value.v[1];
		} else if (k->node == NODE_SHORTHAND || k->node == NODE_SHORTHAND_PATTERN) {
			key = js_property_key(js, k);
		} else if (k->value.kind == JS_DEFAULT && k->value.v[0].kind == JS_REF) { /* { a = 1 } */
			const struct js_atom *atom = &js->atoms[k->value.v[0].atom];

			key = js_string(js, atom->s, atom->len);
		} else if (k->value.kind == JS_SPREAD) {
			value = k->value.v[0];
		}
		if (kind == JS_OBJECT && value.flags & JS_PENDING)
			js_mention(js, &value, (struct span){ k->start, k->end });
		list.v[2 * at] = key;
		list.v[2 * at + 1] = value;
		at++;
	}
	return list;
}

static struct js_value eval_default(struct js *js, const struct js_frame *f)
{
	const struct js_kid *left = js_kid(js, f, FIELD_LEFT), *right = js_kid(js, f, FIELD_RIGHT);
	struct js_value both[2];

	if (!left || !right)
		return unknown();
	if (right->value.flags & JS_PENDING)
		js_mention(js, &right->value, (struct span){ right->start, right->end });
	both[0] = left->value;
	both[1] = right->value;
	return js_list(js, JS_DEFAULT, both, 2);
}

/* A parameter in TypeScript; its default is one of its values. */
static struct js_value eval_parameter(struct js *js, const struct js_frame *f)
{
	const struct js_kid *pattern = js_kid(js, f, FIELD_PATTERN), *value = js_kid(js, f, FIELD_VALUE);
	struct js_value both[2];

	if (!pattern)
		return unknown();
	if (!value)
		return pattern->value;
	both[0] = pattern->value;
	both[1] = value->value;
	if (value->value.flags & JS_PENDING)
		js_mention(js, &value->value, (struct span){ value->start, value->end });
	return js_list(js, JS_DEFAULT, both, 2);
}

static struct js_value wrap_one(struct js *js, enum js_kind kind, struct js_value v)
{
	return js_list(js, kind, &v, 1);
}

/* --- assignments ---------------------------------------- */

/* A string that grows in a loop or in another function has more values than one walk sees: adds JS_MAYBE. */
static struct js_value settle(struct js *js, const struct js_value *target, struct js_value value, bool literal)
{
	uint32_t var = target->kind == JS_REF && target->atom < js->n_atoms ? js->atoms[target->atom].var : JS_NO_VAR;
	bool elsewhere = var != JS_NO_VAR && js->scopes[js->vars[var].scope].function != js->scopes[js->scope].function;

	if (!literal && (value.kind == JS_STRING || value.kind == JS_ONE_OF) && (js->loops || elsewhere))
		value.flags |= JS_MAYBE;
	return value;
}

static struct js_value eval_assignment(struct js *js, struct js_frame *f)
{
	const struct js_kid *left = js_kid(js, f, FIELD_LEFT), *right = js_kid(js, f, FIELD_RIGHT);
	struct js_value value;

	if (!left || !right)
		return unknown();
	value = right->value;
	if (f->node == NODE_AUGMENTED && left->value.kind == JS_REF && left->value.atom < js->n_atoms) {
		uint32_t var = js->atoms[left->value.atom].var;
		struct js_value old = unknown();

		if (var != JS_NO_VAR)
			old = js->vars[var].assigned ? js->vars[var].now : js_read(js, left->value.atom);
		value = js_augmented(js, f, old, value);
	}
	js->where = span_of(f);
	js_assign(js, &left->value, settle(js, &left->value, value, right->node == NODE_STRING), 0);
	return value;
}

static void eval_declarator(struct js *js, struct js_frame *f)
{
	const struct js_kid *name = js_kid(js, f, FIELD_NAME), *value = js_kid(js, f, FIELD_VALUE);

	if (!name || !value)
		return;
	js->where = span_of(f);
	js_assign(js, &name->value, value->value, 0);
}

static void eval_for_in(struct js *js, struct js_frame *f)
{
	const struct js_kid *left = js_kid(js, f, FIELD_LEFT), *right = js_kid(js, f, FIELD_RIGHT);
	struct js_value any = unknown(), name = unknown();

	if (!left || !right)
		return;
	if (right->value.flags & JS_PENDING)
		js_mention(js, &right->value, (struct span){ right->start, right->end });
	if (f->of && right->value.kind == JS_ARRAY)
		any = js_member(js, right->value, &name, span_of(f));
	js->where = span_of(f);
	js_assign(js, &left->value, any, 0);
}

/* x++: the result is an unknown number. */
static void eval_update(struct js *js, const struct js_frame *f)
{
	for (uint32_t i = 0; i < js_kid_count(js, f); i++) {
		const struct js_kid *k = js_kid_at(js, f, i);
		struct js_value ref = js_simple(JS_REF);

		if (k->node != NODE_IDENTIFIER)
			continue;
		ref.atom = js_atom_at(js, k->start, k->end);
		if (ref.atom < js->n_atoms && js->atoms[ref.atom].var != JS_NO_VAR)
			js_assign(js, &ref, unknown(), 0);
	}
}

/* Assigns patterns and defaults of parameters; arguments are assigned at the calls. */
static void eval_parameters(struct js *js, const struct js_frame *f)
{
	js->where = span_of(f);
	for (uint32_t i = 0; i < js_kid_count(js, f); i++) {
		struct js_value v = js_kid_at(js, f, i)->value;

		if (v.kind == JS_DEFAULT || v.kind == JS_PATTERN_OBJECT || v.kind == JS_PATTERN_ARRAY)
			js_assign(js, &v, unknown(), 0);
	}
}

/* --- functions ---------------------------------------- */

static void eval_return(struct js *js, const struct js_frame *f)
{
	struct js_scope *scope = &js->scopes[js->scopes[js->scope].function];
	struct js_value v = last_value(js, f);

	if (v.kind == JS_MODULE || v.kind == JS_BOUND)
		js_mention_kids(js, f);
	js_mention_kept(js, &v, span_of(f));
	v.flags &= (uint8_t)~JS_PENDING;
	scope->result = scope->returns ? js_join(js, scope->result, v) : v;
	scope->returns = true;
}

static struct js_value eval_function(struct js *js, const struct js_frame *f)
{
	const struct js_kid *body = js_kid(js, f, FIELD_BODY);
	struct js_value v = js_simple(JS_FUNCTION);

	if (f->node == NODE_ARROW && body && body->node != NODE_BLOCK) {
		struct js_scope *scope = &js->scopes[js->scope];
		bool followed =
			body->value.kind == JS_THIS || body->value.kind == JS_MEMBER || body->value.kind == JS_STRING;

		if (!followed && body->value.flags & JS_PENDING)
			js_mention(js, &body->value, (struct span){ body->start, body->end });
		scope->result = body->value;
		scope->returns = true;
	}
	v.n = js->scope;
	return v;
}

/* Called after its scope is left: binds the name of a declaration to the function. */
static void bind_name(struct js *js, const struct js_frame *f, struct js_value v)
{
	const struct js_kid *name = js_kid(js, f, FIELD_NAME);
	struct js_value ref = js_simple(JS_REF);

	if (!name)
		return;
	ref.atom = js_atom_at(js, name->start, name->end);
	js->where = span_of(f);
	if (ref.atom < js->n_atoms && js->atoms[ref.atom].var != JS_NO_VAR)
		js_assign(js, &ref, v, 0);
}

/* --- modules ---------------------------------------- */

static struct js_value eval_export_specifier(struct js *js, const struct js_frame *f)
{
	const struct js_kid *name = js_kid(js, f, FIELD_NAME);
	struct js_frame reference = { .node = NODE_IDENTIFIER };

	if (!name || name->node != NODE_IDENTIFIER)
		return unknown();
	reference.start = name->start;
	reference.end = name->end;
	return read_name(js, &reference);
}

/* --- constructs that the parser misreads ---------------------------------------- */

/* In sloppy code `await` and `yield` can be names, and then a supposed regular expression after them is a division. */
static uint32_t skip_blank(const struct js *js, uint32_t at, uint32_t end)
{
	while (at < end) {
		const char *s = js->text + at, *stop = NULL;

		if (strchr(" \t\n\r*+-", *s) || (unsigned char)*s >= 0x80) {
			at++;
			continue;
		}
		if (end - at >= 4 && memcmp(s, "/*", 2) == 0)
			stop = memmem(s + 2, end - at - 2, "*/", 2);
		else if (end - at >= 2 && memcmp(s, "//", 2) == 0)
			stop = memchr(s, '\n', end - at);
		if (!stop)
			break;
		at = (uint32_t)(stop - js->text) + (*stop == '*' ? 2 : 1);
	}
	return at;
}

static void check_operand(struct js *js, const struct js_frame *f)
{
	uint32_t at = skip_blank(js, f->start + 5, f->end);

	if (at < f->end && (js->text[at] == '/' || (js->text[at] == '<' && js->source != INSPECT_TYPESCRIPT)))
		js_check(js, "await-before-regex", span_of(f), "");
	if (f->node == NODE_YIELD && !js->scopes[js->scopes[js->scope].function].generator)
		js_check(js, "await-as-name", span_of(f), "yield outside of a generator");
}

/* --- the walk ---------------------------------------- */

static bool is_loop(const struct js_frame *f)
{
	return f->node == NODE_FOR || f->node == NODE_FOR_IN || f->node == NODE_WHILE || f->node == NODE_DO;
}

static bool values_enter(struct js *js, struct js_frame *f)
{
	if (js_traits[f->node] & TRAIT_SKIPPED)
		return false;
	if (js_traits[f->node] & TRAIT_SCOPE || js->n_frames == 1)
		js_scope_enter(js, f);
	if (is_loop(f))
		js->loops++;
	js->forever += js_loops_forever(js, f);
	js->conditions += f->node == NODE_IF;
	switch (f->node) {
	case NODE_LESS:
		if (f->start + 4 <= js->len && memcmp(js->text + f->start, "<!--", 4) == 0)
			js_check(js, "html-comment", span_of(f), "");
		return false;
	case NODE_HTML_COMMENT:
		js_check(js, "html-comment", span_of(f), "");
		return false;
	case NODE_WITH:
		js_check(js, "with-statement", (struct span){ f->start, f->start + 4 }, "");
		return true;
	case NODE_STRING:
	case NODE_REGEX:
		return false;
	default:
		return true;
	}
}

static struct js_value eval_leaf(struct js *js, struct js_frame *f)
{
	struct js_value v;

	switch (f->node) {
	case NODE_IDENTIFIER:
	case NODE_SHORTHAND:
	case NODE_SHORTHAND_PATTERN:
		return eval_identifier(js, f);
	case NODE_STRING:
		return f->end - f->start < 2 ? js_text("") : js_written(js, f->start + 1, f->end - 1);
	case NODE_NUMBER:
		return js_number_literal(js, f);
	case NODE_REGEX:
		return (struct js_value){ .kind = JS_REGEX, .n = f->end - f->start, .s = js->text + f->start };
	case NODE_TRUE:
	case NODE_FALSE:
		v = js_simple(JS_BOOL);
		v.n = f->node == NODE_TRUE;
		return v;
	case NODE_NULL:
		return js_simple(JS_NULL);
	case NODE_UNDEFINED:
		return js_simple(JS_UNDEFINED);
	case NODE_THIS:
		return eval_this(js);
	default:
		return unknown();
	}
}

static struct js_value eval_statement(struct js *js, struct js_frame *f)
{
	switch (f->node) {
	case NODE_DECLARATOR:
		eval_declarator(js, f);
		break;
	case NODE_FOR_IN:
		eval_for_in(js, f);
		break;
	case NODE_RETURN:
		eval_return(js, f);
		break;
	case NODE_IMPORT:
		js_eval_import(js, f);
		break;
	case NODE_IMPORT_REQUIRE:
		js_eval_import_require(js, f);
		break;
	case NODE_IMPORT_ALIAS:
		js_eval_import_alias(js, f);
		break;
	case NODE_EXPORT:
		js_eval_export(js, f);
		break;
	case NODE_YIELD:
		check_operand(js, f);
		js_mention_kids(js, f);
		break;
	case NODE_DECORATOR:
		(void)js_call(js, last_value(js, f), unknown(), false, span_of(f));
		js_mention_kids(js, f);
		break;
	case NODE_PARAMETERS:
		eval_parameters(js, f);
		break;
	case NODE_UPDATE:
		eval_update(js, f);
		break;
	default:
		if (!js_kid_count(js, f))
			return eval_leaf(js, f);
		js_mention_kids(js, f);
		break;
	}
	return unknown();
}

static struct js_value eval_structure(struct js *js, struct js_frame *f)
{
	switch (f->node) {
	case NODE_ARRAY:
		js_mention_kids(js, f);
		return js_collect(js, f, JS_ARRAY);
	case NODE_ARGUMENTS:
		return js_collect(js, f, JS_ARRAY);
	case NODE_OBJECT:
	case NODE_ENUM_BODY:
		return eval_object(js, f, JS_OBJECT);
	case NODE_ENUM:
		return js_eval_enum(js, f);
	case NODE_OBJECT_PATTERN:
		return eval_object(js, f, JS_PATTERN_OBJECT);
	case NODE_ARRAY_PATTERN:
		return js_collect(js, f, JS_PATTERN_ARRAY);
	case NODE_PAIR:
	case NODE_PAIR_PATTERN:
	case NODE_ENUM_ASSIGNMENT:
		return eval_pair(js, f, js_kid(js, f, FIELD_VALUE) ? js_kid(js, f, FIELD_VALUE)->value : unknown());
	case NODE_REST:
		return wrap_one(js, JS_PATTERN_REST, last_value(js, f));
	case NODE_SPREAD:
		js_mention_kids(js, f);
		if (js_kid_count(js, f))
			js_judge_all_members(js, &js_kid_at(js, f, js_kid_count(js, f) - 1)->value, span_of(f));
		return wrap_one(js, JS_SPREAD, last_value(js, f));
	case NODE_ASSIGNMENT_PATTERN:
	case NODE_OBJECT_DEFAULT:
		return eval_default(js, f);
	case NODE_REQUIRED_PARAMETER:
	case NODE_OPTIONAL_PARAMETER:
		return eval_parameter(js, f);
	case NODE_IMPORT_SPECIFIER:
		return js_eval_specifier(js, f);
	case NODE_NAMED_IMPORTS:
		return js_collect(js, f, JS_ARRAY);
	case NODE_IMPORT_CLAUSE:
		return js_eval_import_clause(js, f);
	case NODE_EXPORT_SPECIFIER:
		return eval_export_specifier(js, f);
	default:
		return eval_statement(js, f);
	}
}

static struct js_value eval_node(struct js *js, struct js_frame *f)
{
	if (js_traits[f->node] & TRAIT_FUNCTION && f->node != NODE_PROGRAM && f->node != NODE_CLASS_BODY)
		return eval_function(js, f);
	switch (f->node) {
	case NODE_MEMBER:
	case NODE_SUBSCRIPT:
	case NODE_NESTED_IDENTIFIER:
		return eval_member(js, f);
	case NODE_CALL:
	case NODE_NEW:
		return eval_call(js, f);
	case NODE_ASSIGNMENT:
	case NODE_AUGMENTED:
		return eval_assignment(js, f);
	case NODE_BINARY:
	case NODE_UNARY:
	case NODE_TERNARY:
		return js_operator(js, f);
	case NODE_TEMPLATE:
		return js_template(js, f);
	case NODE_AWAIT:
		check_operand(js, f);
		return last_value(js, f);
	case NODE_PARENTHESES:
	case NODE_SUBSTITUTION:
	case NODE_TYPE_ASSERTION:
	case NODE_COMPUTED_NAME:
	case NODE_NAMESPACE_IMPORT:
	case NODE_SEQUENCE:
		return last_value(js, f);
	case NODE_AS:
	case NODE_SATISFIES:
	case NODE_NON_NULL:
	case NODE_INSTANTIATION:
		return first_value(js, f);
	case NODE_CLASS:
	case NODE_CLASS_DECLARATION:
	case NODE_ABSTRACT_CLASS:
		js_mention_kids(js, f);
		return js_simple(JS_FUNCTION);
	default:
		return eval_structure(js, f);
	}
}

static void push_kid(struct js *js, const struct js_frame *f, struct js_value v)
{
	if (!js_grow(js, &js->kids, js->n_kids, &js->cap_kids, sizeof(*js->kids)))
		return;
	js->kids[js->n_kids++] = (struct js_kid){
		.value = v,
		.start = f->start,
		.end = f->end,
		.node = f->node,
		.field = f->field,
	};
}

static bool declares_name(uint8_t node)
{
	return node == NODE_FUNCTION_DECLARATION || node == NODE_GENERATOR_DECLARATION ||
	       node == NODE_CLASS_DECLARATION || node == NODE_ABSTRACT_CLASS || node == NODE_ENUM;
}

static void values_leave(struct js *js, struct js_frame *f)
{
	bool skipped = js_traits[f->node] & TRAIT_SKIPPED;
	struct js_value v = unknown();

	if (!skipped && f->named) {
		v = eval_node(js, f);
		if (f->node == NODE_METHOD && js_parent(js, 1) && js_parent(js, 1)->node == NODE_OBJECT)
			v = eval_pair(js, f, v);
	}
	if (f->field == FIELD_PARAMETER && js_parent(js, 1) && js_parent(js, 1)->node == NODE_CATCH && v.kind != JS_REF)
		js_assign(js, &v, unknown(), 0);
	if (is_loop(f))
		js->loops--;
	js->forever -= js_loops_forever(js, f);
	js->conditions -= f->node == NODE_IF;
	if (f->scope)
		js_scope_leave(js, f);
	if (declares_name(f->node))
		bind_name(js, f, v);
	js->n_kids = f->kids;
	if (js->n_frames > 1 && !skipped && (f->named || f->field == FIELD_OPERATOR))
		push_kid(js, f, v);
}

bool js_walk_values(struct js *js, TSNode root)
{
	static const struct js_visit visit = { values_enter, values_leave };

	js->n_kids = 0;
	js->loops = 0;
	js->forever = 0;
	js->conditions = 0;
	js->scope = 0;
	js->next_scope = 0;
	return js_walk(js, root, &visit);
}
