/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and scopes.  A first walk finds every scope and declares its names (hoisting var, function and import), so that
 * later walks can resolve a name before its declaration.  Scopes are numbered in the order of the text.  Entering a
 * scope pushes its variables over the outer meanings of their names, leaving it pops them, so a lookup costs the same
 * at any depth.
 */
#include "inspect/javascript.h"

#include <string.h>

/* --- atoms ---------------------------------------- */

static uint32_t hash_bytes(const char *s, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 16777619u;
	return h;
}

static bool grow_slots(struct js *js)
{
	uint32_t size = js->atom_slots ? (js->atom_mask + 1) * 2 : 256;
	uint32_t *slots = calloc(size, sizeof(*slots));

	if (!slots) {
		js->judge->out_of_memory = js->exhausted = true;
		return false;
	}
	for (uint32_t i = 0; i < js->n_atoms; i++) {
		uint32_t at = js->atoms[i].hash & (size - 1);

		while (slots[at])
			at = (at + 1) & (size - 1);
		slots[at] = i + 1;
	}
	free(js->atom_slots);
	js->atom_slots = slots;
	js->atom_mask = size - 1;
	return true;
}

/* The number of a name; the bytes must live as long as js.  UINT32_MAX: no memory. */
static uint32_t intern(struct js *js, const char *s, size_t len)
{
	uint32_t hash = hash_bytes(s, len), at;

	if ((!js->atom_slots || js->n_atoms * 2 > js->atom_mask) && !grow_slots(js))
		return UINT32_MAX;
	for (at = hash & js->atom_mask; js->atom_slots[at]; at = (at + 1) & js->atom_mask) {
		const struct js_atom *a = &js->atoms[js->atom_slots[at] - 1];

		if (a->hash == hash && a->len == len && memcmp(a->s, s, len) == 0)
			return js->atom_slots[at] - 1;
	}
	if (!js_grow(js, &js->atoms, js->n_atoms, &js->cap_atoms, sizeof(*js->atoms)))
		return UINT32_MAX;
	js->atoms[js->n_atoms] = (struct js_atom){ .s = s, .len = (uint32_t)len, .hash = hash, .var = JS_NO_VAR };
	js->atom_slots[at] = ++js->n_atoms;
	return js->n_atoms - 1;
}

uint32_t js_atom_at(struct js *js, uint32_t start, uint32_t end)
{
	const char *s = js->text + start;
	struct js_value decoded;

	if (!memchr(s, '\\', end - start))
		return intern(js, s, end - start);
	decoded = js_literal(js, start, end);
	return decoded.kind == JS_STRING ? intern(js, decoded.s, decoded.n) : intern(js, s, end - start);
}

/* --- declarations ---------------------------------------- */

uint32_t js_declare(struct js *js, uint32_t scope, uint32_t atom)
{
	if (atom == UINT32_MAX || !js_grow(js, &js->vars, js->n_vars, &js->cap_vars, sizeof(*js->vars)))
		return JS_NO_VAR;
	js->vars[js->n_vars] = (struct js_var){
		.atom = atom,
		.outer = JS_NO_VAR,
		.scope = scope,
		.sibling = js->scopes[scope].first_var,
	};
	js->scopes[scope].first_var = js->n_vars;
	return js->n_vars++;
}

/* (function () { ... })(): inside, `this` is the global object. */
static bool called_at_once(struct js *js)
{
	for (unsigned up = 0; up < 4; up++) {
		const struct js_frame *f = js_parent(js, up), *p = js_parent(js, up + 1);

		if (!p)
			return false;
		if (p->node == NODE_CALL)
			return f->field == FIELD_FUNCTION;
		if (p->node != NODE_PARENTHESES)
			return false;
	}
	return false;
}

static void describe_function(struct js *js, const struct js_frame *f, struct js_scope *scope)
{
	const struct js_scope *outer = js->n_scopes ? &js->scopes[js->scopes[js->scope].function] : NULL;

	switch (f->node) {
	case NODE_PROGRAM:
		scope->this = JS_THIS_GLOBAL;
		scope->module_arguments = true;
		break;
	case NODE_ARROW:
		scope->this = outer ? outer->this : JS_THIS_GLOBAL;
		scope->module_arguments = outer && outer->module_arguments;
		break;
	case NODE_FUNCTION_EXPRESSION:
		scope->this = called_at_once(js) ? JS_THIS_GLOBAL : JS_THIS_OWN;
		break;
	case NODE_GENERATOR:
	case NODE_GENERATOR_DECLARATION:
		scope->generator = true;
		scope->this = JS_THIS_OWN;
		break;
	default:
		scope->this = JS_THIS_OWN;
		break;
	}
}

static void create_scope(struct js *js, struct js_frame *f)
{
	struct js_scope scope = { .first_var = JS_NO_VAR };

	if (!js_grow(js, &js->scopes, js->n_scopes, &js->cap_scopes, sizeof(*js->scopes)))
		return;
	for (size_t i = 0; i < JS_PARAMS_MAX; i++)
		scope.param[i] = JS_NO_VAR;
	if (js_traits[f->node] & TRAIT_FUNCTION || js->n_scopes == 0) {
		scope.function = js->n_scopes;
		describe_function(js, f, &scope);
	} else {
		scope.function = js->scopes[js->scope].function;
	}
	f->scope = true;
	f->outer_scope = js->scope;
	js->scope = js->n_scopes;
	js->scopes[js->n_scopes++] = scope;
}

/* Records simple parameters by position, so that calls can assign arguments. */
static void note_parameter(struct js *js, uint32_t var)
{
	struct js_scope *scope = &js->scopes[js->scope];
	const struct js_frame *p = js_parent(js, 1), *list = p;
	unsigned place = 0;

	if (p->node == NODE_REQUIRED_PARAMETER || p->node == NODE_OPTIONAL_PARAMETER ||
	    p->node == NODE_ASSIGNMENT_PATTERN)
		list = js_parent(js, 2);
	if (list && list->node == NODE_PARAMETERS)
		place = list->child - 1u;
	else if (p->node != NODE_ARROW)
		return;
	if (place < JS_PARAMS_MAX) {
		scope->param[place] = var;
		if (place >= scope->n_params)
			scope->n_params = (uint8_t)(place + 1);
	}
}

static bool erased_import(struct js *js)
{
	for (unsigned up = 1; up < 5; up++) {
		const struct js_frame *p = js_parent(js, up);

		if (!p)
			break;
		if (p->type_only)
			return true;
		if (p->node == NODE_IMPORT)
			break;
	}
	return false;
}

/*
 * With a variable of that name, sloppy engines read "await /code/g" as two divisions; the parser reads a regular
 * expression.
 */
static void check_await_name(struct js *js, const struct js_frame *f, uint32_t atom)
{
	const struct js_atom *a = &js->atoms[atom];

	if (a->len == 5 && (memcmp(a->s, "await", 5) == 0 || memcmp(a->s, "yield", 5) == 0))
		(void)judge_check(js->judge, "await-as-name", (struct span){ f->start, f->end }, "%.5s", a->s);
}

/*
 * A top-level var does not hide an existing engine name: "var require" keeps the module's require, and in a script "var
 * eval" keeps eval.  An initialiser hides it only if it certainly runs first and does not read the name itself.
 */
static void keep_engine_value(struct js *js, const struct js_frame *f, uint32_t var)
{
	const struct js_atom *a = &js->atoms[js->vars[var].atom];
	const struct js_frame *declarator = js_parent(js, 1), *program = js_parent(js, 3);
	bool wrapped =
		(a->len == 7 && memcmp(a->s, "require", 7) == 0) || (a->len == 6 && memcmp(a->s, "module", 6) == 0);
	bool plain = declarator->node == NODE_DECLARATOR, has_value = !plain || declarator->end > f->end;
	bool sure = program && program->node == NODE_PROGRAM;

	if (!js_is_engine_name(js, a->s, a->len))
		return;
	if (has_value && !wrapped)
		return;
	if (has_value && sure && plain && !memmem(js->text + f->end, declarator->end - f->end, a->s, a->len))
		return;
	js->vars[var].ever = js_path(a->s, a->len);
	js->vars[var].seen = true;
}

static void declare_here(struct js *js, const struct js_frame *f, enum js_bind how)
{
	uint32_t atom = js_atom_at(js, f->start, f->end);
	uint32_t scope = js->scope, var;
	const struct js_frame *p = js_parent(js, 1);

	if (how == JS_BIND_NONE || atom == UINT32_MAX)
		return;
	if (how == JS_BIND_IMPORT) {
		/* in "a as b" only b is bound */
		if (erased_import(js) ||
		    (p->node == NODE_IMPORT_SPECIFIER && f->field == FIELD_NAME && f->end < p->end))
			return;
		scope = 0;
	}
	check_await_name(js, f, atom);
	if (how == JS_BIND_ASSIGN)
		return;
	if (how == JS_BIND_VAR)
		scope = js->scopes[scope].function;
	var = js_declare(js, scope, atom);
	if (how == JS_BIND_VAR && scope == 0 && var != JS_NO_VAR)
		keep_engine_value(js, f, var);
	if (how == JS_BIND_PARAM && var != JS_NO_VAR)
		note_parameter(js, var);
}

/* The name of a function or class: bound in the outer scope for a declaration, in its own scope otherwise. */
static void declare_name(struct js *js, const struct js_frame *f, const struct js_frame *p)
{
	uint32_t scope = js->scope, atom;

	if (f->field != FIELD_NAME)
		return;
	switch (p->node) {
	case NODE_FUNCTION_DECLARATION:
	case NODE_GENERATOR_DECLARATION:
	case NODE_ENUM:
		scope = p->outer_scope;
		break;
	case NODE_FUNCTION_EXPRESSION:
	case NODE_GENERATOR:
	case NODE_CLASS:
	case NODE_CLASS_DECLARATION:
	case NODE_ABSTRACT_CLASS:
	case NODE_NAMESPACE:
		break;
	default:
		return;
	}
	atom = js_atom_at(js, f->start, f->end);
	if (js_declare(js, scope, atom) != JS_NO_VAR)
		check_await_name(js, f, atom);
}

static bool scopes_enter(struct js *js, struct js_frame *f)
{
	const struct js_frame *p = js_parent(js, 1);

	if (js_traits[f->node] & TRAIT_SKIPPED)
		return false;
	if (js_traits[f->node] & TRAIT_SCOPE || js->n_scopes == 0)
		create_scope(js, f);
	switch (f->node) {
	case NODE_IDENTIFIER:
	case NODE_SHORTHAND_PATTERN:
	case NODE_TYPE_NAME:
		if (p && f->named) {
			declare_here(js, f, f->bind);
			declare_name(js, f, p);
		}
		return false;
	case NODE_STRING:
	case NODE_REGEX:
		return false;
	case NODE_STAR: /* *method() {} */
		if (p && p->node == NODE_METHOD)
			js->scopes[js->scope].generator = true;
		return false;
	default:
		return !js->exhausted;
	}
}

static void scopes_leave(struct js *js, struct js_frame *f)
{
	if (f->scope)
		js->scope = f->outer_scope;
}

bool js_walk_scopes(struct js *js, TSNode root)
{
	static const struct js_visit visit = { scopes_enter, scopes_leave };

	return js_walk(js, root, &visit);
}

/* --- later walks ---------------------------------------- */

void js_scope_enter(struct js *js, struct js_frame *f)
{
	f->scope = true;
	f->outer_scope = js->scope;
	js->scope = js->next_scope++;
	for (uint32_t v = js->scopes[js->scope].first_var; v != JS_NO_VAR; v = js->vars[v].sibling) {
		struct js_var *var = &js->vars[v];
		struct js_atom *atom = &js->atoms[var->atom];

		var->assigned = false;
		var->pushed = atom->var == JS_NO_VAR || js->vars[atom->var].scope != js->scope;
		if (var->pushed) {
			var->outer = atom->var;
			atom->var = v;
		}
	}
}

void js_scope_leave(struct js *js, struct js_frame *f)
{
	for (uint32_t v = js->scopes[js->scope].first_var; v != JS_NO_VAR; v = js->vars[v].sibling)
		if (js->vars[v].pushed)
			js->atoms[js->vars[v].atom].var = js->vars[v].outer;
	js->scope = f->outer_scope;
}

static bool plain(const struct js_value *v)
{
	return v->kind == JS_NUMBER || v->kind == JS_BOOL || v->kind == JS_NULL || v->kind == JS_UNDEFINED;
}

static void set_var(struct js *js, uint32_t at, struct js_value value)
{
	struct js_var *var = &js->vars[at];

	value.flags &= (uint8_t)~JS_PENDING;
	var->now = value;
	var->assigned = true;
	/* Counters and flags take many values: storing them all is of no use. */
	if (var->seen && plain(&value) && plain(&var->ever) && !js_same(&value, &var->ever))
		var->ever = js_simple(JS_UNKNOWN);
	else
		var->ever = var->seen ? js_join(js, var->ever, value) : value;
	var->seen = true;
}

/* Adds a value from elsewhere: an argument of a call. */
void js_set_parameter(struct js *js, uint32_t at, struct js_value value)
{
	struct js_var *var = &js->vars[at];

	value.flags &= (uint8_t)~JS_PENDING;
	var->ever = var->seen ? js_join(js, var->ever, value) : value;
	var->seen = true;
}

struct js_value js_read(struct js *js, uint32_t atom)
{
	const struct js_var *var = &js->vars[js->atoms[atom].var];
	struct js_value v;

	if (!var->seen)
		return js_simple(JS_UNKNOWN);
	v = var->ever;
	if (var->assigned && !js_same(&var->now, &var->ever))
		v = js_join(js, var->now, var->ever);
	if (v.kind == JS_PATH || v.kind == JS_ONE_OF)
		v.flags |= JS_PENDING;
	return v;
}

/* x = value where x is undeclared: creates a global variable, unless the engine has one of that name. */
static void assign_global(struct js *js, uint32_t atom, struct js_value value)
{
	const struct js_atom *a = &js->atoms[atom];
	uint32_t var;

	if (js_is_engine_name(js, a->s, a->len)) {
		struct js_value target = js_path(a->s, a->len);

		js_judge_store(js, &target, &value, js->where);
		return;
	}
	var = js_declare(js, 0, atom);
	if (var == JS_NO_VAR)
		return;
	js->vars[var].pushed = true;
	js->vars[var].outer = JS_NO_VAR;
	js->atoms[atom].var = var;
	set_var(js, var, value);
}

static void assign_object(struct js *js, const struct js_value *target, struct js_value value, unsigned depth)
{
	for (uint32_t i = 0; i < target->n; i++) {
		const struct js_value *key = &target->v[2 * i], *to = &target->v[2 * i + 1];
		struct js_value part = value;

		if (to->kind != JS_PATTERN_REST)
			part = js_member(js, value, key, js->where);
		js_assign(js, to, part, depth + 1);
	}
}

static void assign_array(struct js *js, const struct js_value *target, struct js_value value, unsigned depth)
{
	for (uint32_t i = 0; i < target->n; i++) {
		struct js_value index = js_number(i);
		struct js_value part = value;

		if (target->v[i].kind != JS_PATTERN_REST)
			part = js_member(js, value, &index, js->where);
		js_assign(js, &target->v[i], part, depth + 1);
	}
}

void js_assign(struct js *js, const struct js_value *target, struct js_value value, unsigned depth)
{
	if (depth > JS_NESTING_MAX)
		return;
	switch (target->kind) {
	case JS_REF:
		if (target->atom >= js->n_atoms)
			return;
		js_mention_kept(js, &value, js->where);
		if (js->atoms[target->atom].var == JS_NO_VAR)
			assign_global(js, target->atom, value);
		else
			set_var(js, js->atoms[target->atom].var, value);
		break;
	case JS_DEFAULT:
		js_assign(js, &target->v[0], js_join(js, value, target->v[1]), depth + 1);
		break;
	case JS_PATTERN_OBJECT:
		assign_object(js, target, value, depth);
		break;
	case JS_PATTERN_ARRAY:
		assign_array(js, target, value, depth);
		break;
	case JS_PATTERN_REST:
		js_assign(js, &target->v[0], value, depth + 1);
		break;
	default: /* a member of an object */
		js_mention(js, &value, js->where);
		js_judge_store(js, target, &value, js->where);
		break;
	}
}
