/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members: the values of x.name, x["na" + "me"] and { name } = x.  Paths of the engine are kept canonical: every way to
 * require() becomes "require", every way to the Function constructor becomes "Function", every name of the global
 * object becomes "globalThis", and its members are the globals themselves.
 */
#include "inspect/javascript.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_LEN 200

static bool is_text(const struct js_value *v, const char *text)
{
	return js_is(v, JS_STRING, text);
}

static struct js_value unresolved(struct js *js, const struct js_value *object, const struct js_value *name)
{
	struct js_value both[2] = { *object, *name };

	/* Of a chain of unknown members only the last two names matter. */
	if (both[0].kind == JS_MEMBER && both[0].v[0].kind == JS_MEMBER) {
		struct js_value short_chain[2] = { js_simple(JS_UNKNOWN), both[0].v[1] };

		both[0] = js_list(js, JS_MEMBER, short_chain, 2);
	}
	return js_list(js, JS_MEMBER, both, 2);
}

/* --- paths of the engine ---------------------------------------- */

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* "X.prototype" */
static bool is_prototype(const struct js_value *path, size_t *ret_len)
{
	static const char end[] = ".prototype";
	size_t len = sizeof(end) - 1;

	if (path->n <= len || memcmp(path->s + path->n - len, end, len) != 0)
		return false;
	*ret_len = path->n - len;
	return true;
}

static bool is_function_path(const struct js_value *path)
{
	return memchr(path->s, '.', path->n) || is_upper(path->s[0]) || js_is(path, JS_PATH, "require") ||
	       js_is(path, JS_PATH, "eval") || js_is(path, JS_PATH, "fetch");
}

/* The Function constructor, reached through another object. */
static struct js_value derived_function(void)
{
	struct js_value v = js_path("Function", 8);

	v.flags |= JS_BUILT;
	return v;
}

static struct js_value path_constructor(struct js *js, const struct js_value *path, const struct js_value *name,
					struct span where)
{
	size_t len;

	if (is_prototype(path, &len))
		return js_path(path->s, len);
	if (js_is(path, JS_PATH, "globalThis"))
		return js_path("Object", 6);
	if (js_is(path, JS_PATH, "module")) {
		struct js_value module = js_text("module");

		return js_import(js, &module, where);
	}
	if (is_function_path(path))
		return derived_function();
	return unresolved(js, path, name);
}

static struct js_value path_proto(struct js *js, const struct js_value *path, const struct js_value *name)
{
	size_t len;

	if (is_prototype(path, &len))
		return js_path("Object.prototype", 16);
	if (is_function_path(path))
		return js_path("Function.prototype", 18);
	return unresolved(js, path, name);
}

/* The arguments of the function that CommonJS wraps around a module: exports, require, module, file, folder. */
static struct js_value module_argument(struct js *js, const struct js_value *name, struct span where)
{
	double at;

	if (is_text(name, "length"))
		return js_simple(JS_UNKNOWN);
	js_check(js, "module-arguments", where, "");
	if (js_to_number(js, name, &at) && at == 1)
		return js_path("require", 7);
	if (js_to_number(js, name, &at) && at == 2)
		return js_path("module", 6);
	return js_simple(JS_UNKNOWN);
}

static struct js_value global_member(struct js *js, const struct js_value *object, const struct js_value *name)
{
	static const char *const itself[] = { "globalThis", "global", "window", "self",
					      "frames",     "top",    "root",   "GLOBAL" };
	struct js_value v;

	for (size_t i = 0; i < ARRAY_LEN(itself); i++)
		if (is_text(name, itself[i]))
			return *object;
	v = js_string(js, name->s, name->n);
	if (v.kind != JS_STRING)
		return v;
	v.kind = JS_PATH;
	v.flags = JS_PENDING;
	return v;
}

static struct js_value canonical(struct js_value v)
{
	static const char *const requires[] = { "module.require", "require.main.require" };
	static const char *const modules[] = { "require.main", "process.mainModule", "module.parent",
					       "module.children" };

	for (size_t i = 0; i < ARRAY_LEN(requires); i++)
		if (js_is(&v, JS_PATH, requires[i]))
			return js_path("require", 7);
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		if (js_is(&v, JS_PATH, modules[i]))
			return js_path("module", 6);
	return v;
}

static struct js_value longer_path(struct js *js, const struct js_value *path, const struct js_value *name)
{
	size_t n = (size_t)path->n + 1 + name->n;
	char line[PATH_MAX_LEN + 1];
	struct js_value v;

	if (n > PATH_MAX_LEN)
		return unresolved(js, path, name);
	memcpy(line, path->s, path->n);
	line[path->n] = '.';
	memcpy(line + path->n + 1, name->s, name->n);
	v = js_string(js, line, n);
	if (v.kind == JS_STRING) {
		v.kind = path->kind;
		v.flags = JS_PENDING;
	}
	return v;
}

/* Roots that are judged when a member is read, not when they are mentioned. */
static bool judged_by_member(const struct js_value *path)
{
	static const char *const roots[] = { "Function", "require", "module", "process", "globalThis", "Object" };

	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (js_is(path, JS_PATH, roots[i]))
			return true;
	return memchr(path->s, '.', path->n) != NULL;
}

static struct js_value computed_path(struct js *js, const struct js_value *path, const struct js_value *name,
				     struct span where)
{
	static const char *const guarded[] = { "globalThis", "process", "require", "module" };

	for (size_t i = 0; i < ARRAY_LEN(guarded); i++) {
		if (!js_is(path, JS_PATH, guarded[i]) || path->flags & JS_WEAK)
			continue;
		js_check(js, "computed-member", where, guarded[i]);
		if (name->flags & (JS_BUILT | JS_DECODED))
			js_check(js, "assembled-name", where, guarded[i]);
	}
	return unresolved(js, path, name);
}

/* Reads all members at once: Object.values(globalThis), { ...process } */
void js_judge_all_members(struct js *js, const struct js_value *object, struct span where)
{
	struct js_value unknown = js_simple(JS_UNKNOWN);

	if (object->kind == JS_PATH)
		(void)computed_path(js, object, &unknown, where);
}

/* globalThis["ev" + "al"], Reflect.get(globalThis, "eval"): reaches an engine name without writing it after a dot. */
static void judge_assembled(struct js *js, const struct js_value *path, const struct js_value *name, struct span where)
{
	static const char *const reflect[] = { "Reflect", "getOwnPropertyDescriptor" };
	bool global = js_is(path, JS_PATH, "globalThis"), detour = false;

	if (global && !js_is_engine_name(js, name->s, name->n))
		return;
	if (!global && !js_is(path, JS_PATH, "process") && !js_is(path, JS_PATH, "require") &&
	    !js_is(path, JS_PATH, "module"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(reflect); i++)
		detour |= memmem(js->text + where.start, min_u64(where.end - where.start, 40), reflect[i],
				 strlen(reflect[i])) != NULL;
	if (name->flags & (JS_BUILT | JS_DECODED) || (global && detour))
		js_check(js, "assembled-name", where, "");
}

static struct js_value path_member(struct js *js, const struct js_value *path, const struct js_value *name,
				   struct span where)
{
	struct js_value v;

	if (js_is(path, JS_PATH, "arguments"))
		return module_argument(js, name, where);
	if (name->kind != JS_STRING)
		return computed_path(js, path, name, where);
	if (!judged_by_member(path))
		js_judge_builtin(js, path->s, path->n, where);
	judge_assembled(js, path, name, where);
	if (is_text(name, "constructor"))
		return path_constructor(js, path, name, where);
	if (js_is(path, JS_PATH, "globalThis"))
		return global_member(js, path, name);
	if (is_text(name, "__proto__"))
		return path_proto(js, path, name);
	v = longer_path(js, path, name);
	if (v.kind != JS_PATH)
		return v;
	js_judge_member(js, v.s, v.n, where);
	if (js_is(&v, JS_PATH, "process.env.HOME") || js_is(&v, JS_PATH, "process.env.USERPROFILE"))
		return js_text("~");
	return canonical(v);
}

static struct js_value module_member(struct js *js, const struct js_value *module, const struct js_value *name,
				     struct span where)
{
	bool is_root = !memchr(module->s, '.', module->n);
	struct js_value v;

	if (js_starts(module, "fs") && !js->judging)
		js->fs_members++;
	if (js_is(module, JS_MODULE, "child_process") && name->flags & (JS_BUILT | JS_DECODED))
		js_check(js, "assembled-name", where, "child_process");
	if (name->kind != JS_STRING)
		return unresolved(js, module, name);
	if (is_text(name, "default"))
		return *module;
	if (is_text(name, "constructor"))
		return is_root ? unresolved(js, module, name) : derived_function();
	v = longer_path(js, module, name);
	if (v.kind == JS_MODULE)
		js_judge_member(js, v.s, v.n, where);
	if (js_is(&v, JS_MODULE, "module.Module") || js_is(&v, JS_MODULE, "module.prototype"))
		return *module;
	return v;
}

/* --- members of values ---------------------------------------- */

static struct js_value list_member(struct js *js, const struct js_value *list, const struct js_value *name)
{
	double at;

	if (!js_list_intact(list))
		return js_simple(JS_UNKNOWN);
	if (is_text(name, "length"))
		return js_number(list->n);
	if (js_to_number(js, name, &at) && !isnan(at)) {
		if (at >= 0 && at < list->n && floor(at) == at)
			return list->v[(size_t)at].kind == JS_SPREAD ? js_simple(JS_UNKNOWN) : list->v[(size_t)at];
		return js_simple(JS_UNDEFINED);
	}
	if (is_text(name, "constructor"))
		return js_path("Array", 5);
	if (name->kind == JS_UNKNOWN) {
		struct js_value any = js_simple(JS_UNKNOWN);

		for (uint32_t i = 0; i < list->n && i < 2 * JS_ONE_OF_MAX; i++)
			any = js_join(js, any, list->v[i]);
		return any.kind == JS_UNKNOWN ? unresolved(js, list, name) : any;
	}
	return unresolved(js, list, name);
}

static struct js_value string_member(struct js *js, const struct js_value *text, const struct js_value *name)
{
	double at;

	if (is_text(name, "length"))
		return js_number(text->n);
	if (name->kind != JS_UNKNOWN && js_to_number(js, name, &at) && !isnan(at)) {
		if (at >= 0 && at < text->n && floor(at) == at)
			return (struct js_value){ .kind = JS_STRING, .n = 1, .s = text->s + (size_t)at };
		return js_simple(JS_UNDEFINED);
	}
	if (is_text(name, "constructor"))
		return js_path("String", 6);
	return unresolved(js, text, name);
}

static struct js_value object_member(struct js *js, const struct js_value *object, const struct js_value *name)
{
	struct js_value any = js_simple(JS_UNKNOWN);

	if (!js_list_intact(object))
		return unresolved(js, &any, name);
	for (uint32_t i = object->n; i-- > 0;) {
		const struct js_value *key = &object->v[2 * i], *value = &object->v[2 * i + 1];

		if (name->kind != JS_STRING || key->kind != JS_STRING)
			any = js_join(js, any, *value);
		else if (key->n == name->n && memcmp(key->s, name->s, key->n) == 0)
			return *value;
	}
	if (is_text(name, "constructor"))
		return js_path("Object", 6);
	if (is_text(name, "__proto__"))
		return js_path("Object.prototype", 16);
	return any.kind == JS_UNKNOWN ? unresolved(js, object, name) : any;
}

static bool is_literal(const struct js_value *v)
{
	return v->kind == JS_STRING || v->kind == JS_NUMBER || v->kind == JS_ARRAY || v->kind == JS_OBJECT ||
	       v->kind == JS_REGEX || v->kind == JS_FUNCTION || v->kind == JS_BOOL;
}

/* x.name.member, where x.name is an unknown value. */
static struct js_value member_member(struct js *js, const struct js_value *object, const struct js_value *name)
{
	if (is_text(name, "constructor") && is_text(&object->v[1], "prototype"))
		return object->v[0];
	if (is_text(name, "constructor") && (is_text(&object->v[1], "constructor") || is_literal(&object->v[0])))
		return derived_function();
	return unresolved(js, object, name);
}

static struct js_value function_member(struct js *js, const struct js_value *object, const struct js_value *name)
{
	if (is_text(name, "constructor"))
		return derived_function();
	if (is_text(name, "__proto__"))
		return js_path("Function.prototype", 18);
	return unresolved(js, object, name);
}

static struct js_value wrapped_member(struct js *js, const struct js_value *object, const struct js_value *name)
{
	static const struct {
		enum js_kind kind;
		const char *constructor;
	} known[] = {
		{ JS_NUMBER, "Number" },
		{ JS_BOOL, "Boolean" },
		{ JS_REGEX, "RegExp" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (object->kind == known[i].kind && is_text(name, "constructor"))
			return js_path(known[i].constructor, strlen(known[i].constructor));
	return unresolved(js, object, name);
}

static struct js_value one_member(struct js *js, const struct js_value *object, const struct js_value *name,
				  struct span where)
{
	switch (object->kind) {
	case JS_PATH:
		return path_member(js, object, name, where);
	case JS_MODULE:
		return module_member(js, object, name, where);
	case JS_STRING:
		return string_member(js, object, name);
	case JS_ARRAY:
		return list_member(js, object, name);
	case JS_OBJECT:
		return object_member(js, object, name);
	case JS_MEMBER:
		return member_member(js, object, name);
	case JS_FUNCTION:
	case JS_BOUND:
		return function_member(js, object, name);
	default:
		return wrapped_member(js, object, name);
	}
}

struct js_value js_member(struct js *js, struct js_value object, const struct js_value *name, struct span where)
{
	struct js_value all = js_simple(JS_UNKNOWN);
	const struct js_value *objects, *names;
	size_t n_objects = js_alternatives(&object, &objects), n_names = js_alternatives(name, &names);
	bool first = true;

	for (size_t k = 0; k < n_names; k++) {
		struct js_value key = names[k], text;

		if (key.kind != JS_NUMBER && key.kind != JS_UNKNOWN)
			key = js_to_string(js, &key, &text) ? text : js_simple(JS_UNKNOWN);
		if (key.kind == JS_STRING)
			js_judge_attribute(js, key.s, key.n, where);
		for (size_t i = 0; i < n_objects; i++) {
			struct js_value one = one_member(js, &objects[i], &key, where);

			all = first ? one : js_join(js, all, one);
			first = false;
		}
	}
	if (name->flags & JS_MAYBE && name->kind != JS_UNKNOWN) {
		struct js_value unknown = js_simple(JS_UNKNOWN);

		for (size_t i = 0; i < n_objects; i++)
			if (objects[i].kind == JS_PATH)
				(void)computed_path(js, &objects[i], &unknown, where);
	}
	if (all.kind != JS_PATH && all.kind != JS_MODULE)
		all.flags |= object.flags & JS_ORIGIN;
	return all;
}

/*
 * [][(![]+[])[+[]]]: a member of an empty array by a name computed from empty arrays; whole programs can be written so.
 */
void js_judge_subscript(struct js *js, const struct js_kid *object, const struct js_kid *index)
{
	const char *s = js->text + index->start;

	if (object->node != NODE_ARRAY || object->value.kind != JS_ARRAY || object->value.n != 0)
		return;
	if (index->value.kind != JS_NUMBER && index->end - index->start > 2 && (*s == '(' || *s == '[' || *s == '!'))
		js_check(js, "constructor-chain", (struct span){ object->start, index->end }, "");
}

/* --- stores ---------------------------------------- */

/* Objects that all other code relies on; a prefix if it ends with a dot. */
static const char *const intrinsics[] = {
	"Array",
	"Function",
	"Function.prototype.apply",
	"Function.prototype.call",
	"Function.prototype.constructor",
	"Function.prototype.__proto__",
	"Object",
	"Object.prototype.",
	"Object.defineProperty",
	"Object.getOwnPropertyDescriptor",
	"Object.getPrototypeOf",
	"Object.setPrototypeOf",
	"Promise",
	"Promise.prototype.then",
	"Proxy",
	"Reflect",
	"Reflect.",
	"Symbol",
	"Symbol.for",
	"Symbol.species",
	"eval",
};

/* Options for starting a program.  If the caller omits one, it is read from Object.prototype. */
static bool is_start_option(const char *name, size_t len)
{
	static const char *const options[] = {
		"shell", "env", "NODE_OPTIONS", "execArgv", "execPath", "argv0", "input"
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strlen(options[i]) == len && memcmp(options[i], name, len) == 0)
			return true;
	return false;
}

static void judge_intrinsic(struct js *js, const struct js_value *path, struct span where)
{
	for (size_t i = 0; i < ARRAY_LEN(intrinsics); i++) {
		size_t len = strlen(intrinsics[i]);
		bool prefix = intrinsics[i][len - 1] == '.';

		if (path->n < len || memcmp(path->s, intrinsics[i], len) != 0 || (!prefix && path->n != len))
			continue;
		js_check(js, "intrinsic-changed", where, intrinsics[i]);
		if (prefix && is_start_option(path->s + len, path->n - len))
			js_check(js, "start-option-planted", where, "");
		return;
	}
}

/* Functions that folding relies on: if the program replaces one, folding stops. */
static bool changes_folding(const struct js_value *path)
{
	static const char *const prefixes[] = { "Array.",  "String.",  "Number.", "Object.",
						"Buffer.", "Reflect.", "RegExp.", "Function.prototype.",
						"Symbol." };

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (js_starts(path, prefixes[i]))
			return true;
	return false;
}

/* target is an engine name or an unresolved member. */
void js_judge_store(struct js *js, const struct js_value *target, const struct js_value *value, struct span where)
{
	struct js_value path = *target;

	if (target->kind == JS_MEMBER) {
		const struct js_value *object = &target->v[0], *name = &target->v[1];

		if (object->kind == JS_ARRAY || object->kind == JS_OBJECT) {
			js_list_spoil(object);
			return;
		}
		if (object->kind == JS_PATH && name->kind == JS_STRING)
			path = js_is(object, JS_PATH, "globalThis") ? global_member(js, object, name)
								    : longer_path(js, object, name);
		if (is_text(name, "constructor") && value->kind == JS_OBJECT)
			js_check(js, "intrinsic-changed", where, "constructor");
	}
	if (path.kind != JS_PATH)
		return;
	if (js_is(&path, JS_PATH, "module.exports"))
		js_judge_export(js, value, where);
	judge_intrinsic(js, &path, where);
	js->engine_changed |= changes_folding(&path);
}
