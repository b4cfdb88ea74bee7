/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: call(), apply(), bind() and Reflect are unwrapped until the function that really runs is found.  Then the
 * results of the engine's own functions are computed as far as they are constant, and their arguments are judged.
 */
#include "inspect/javascript.h"

#include <string.h>

struct call {
	struct js_value callee, self;
	struct js_value *args;
	size_t n;
	bool is_new, plain; /* plain: f(), not o.f() */
	struct span where;
	struct js_value spare; /* used as args if these are unknown */
};

static struct js_value arg(const struct call *c, size_t i)
{
	return i < c->n ? c->args[i] : js_simple(JS_UNDEFINED);
}

static bool arg_is_code(const struct call *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->args[i].kind == JS_STRING &&
		    (memmem(c->args[i].s, c->args[i].n, "return", 6) || memchr(c->args[i].s, '(', c->args[i].n)))
			return true;
	return false;
}

static void judge_text(struct js *js, const struct js_value *code, struct span where)
{
	if (js->judging && code->kind == JS_STRING && code->n)
		judge_code(js->judge, INSPECT_JAVASCRIPT, code->s, code->n, where);
}

/* --- functions of the engine ---------------------------------------- */

static struct js_value call_require(struct js *js, struct call *c)
{
	struct js_value name = arg(c, 0);

	return c->n ? js_import(js, &name, c->where) : js_simple(JS_UNKNOWN);
}

/* list.map(require): imports every name of the list. */
static bool call_require_each(struct js *js, const struct call *c, const struct js_value *list,
			      const struct js_value *f)
{
	if (!js_is(f, JS_PATH, "require") || list->kind != JS_ARRAY || !js_list_intact(list))
		return false;
	for (uint32_t i = 0; i < list->n; i++)
		(void)js_import(js, &list->v[i], c->where);
	return true;
}

/* new URL("data:..."): yields the text, which is code when it is loaded. */
static struct js_value call_url(struct js *js UNUSED, struct call *c)
{
	struct js_value text = arg(c, 0);

	return text.kind == JS_STRING && js_starts(&text, "data:") ? text : js_simple(JS_UNKNOWN);
}

static struct js_value call_eval(struct js *js, struct call *c)
{
	struct js_value code = arg(c, 0);

	js_judge_builtin(js, "eval", 4, c->where);
	if (c->n == 0)
		js_check(js, "eval-of-nothing", c->where, "");
	js_judge_run(js, &code, false, c->where);
	judge_text(js, &code, c->where);
	return js_simple(JS_UNKNOWN);
}

static struct js_value call_function(struct js *js, struct call *c)
{
	struct js_value code = c->n ? c->args[c->n - 1] : js_simple(JS_UNDEFINED);

	js_judge_builtin(js, "Function", 8, c->where);
	if (c->callee.flags & JS_BUILT)
		js_check(js, "constructor-chain", c->where, "");
	js_judge_run(js, &code, c->n > 1, c->where);
	judge_text(js, &code, c->where);
	return js_simple(JS_FUNCTION);
}

static struct js_value call_get(struct js *js, struct call *c)
{
	struct js_value name = arg(c, 1);

	return js_member(js, arg(c, 0), &name, c->where);
}

static struct js_value call_descriptor(struct js *js, struct call *c)
{
	struct js_value pair[2] = { js_text("value"), call_get(js, c) };

	if (c->n > 1 && js_is(&c->args[1], JS_STRING, "constructor"))
		js_check(js, "constructor-descriptor", c->where, "");
	return js_list(js, JS_OBJECT, pair, 1);
}

static struct js_value call_prototype(struct js *js UNUSED, struct call *c)
{
	return arg(c, 0); /* its constructor is the same, and no other member matters here */
}

static struct js_value call_define(struct js *js, struct call *c)
{
	struct js_value both[2] = { arg(c, 0), arg(c, 1) };
	struct js_value target = js_list(js, JS_MEMBER, both, 2), value = arg(c, 2);

	if (target.kind == JS_MEMBER)
		js_judge_store(js, &target, &value, c->where);
	return both[0];
}

static struct js_value call_char_codes(struct js *js, struct call *c)
{
	struct js_value text = js_code_units(js, c->args, c->n);

	text.flags |= JS_DECODED;
	return text;
}

static struct js_value decode_first(struct js *js, struct call *c, const char *how)
{
	struct js_value text = arg(c, 0);

	text = js_to_string(js, &text, &text) ? js_decode(js, how, &text) : js_simple(JS_UNKNOWN);
	text.flags |= JS_DECODED;
	return text;
}

static struct js_value call_atob(struct js *js, struct call *c)
{
	return decode_first(js, c, "base64");
}

static struct js_value call_unescape(struct js *js, struct call *c)
{
	return decode_first(js, c, "percent");
}

static struct js_value call_char_codes_of(struct js *js, const struct js_value *list)
{
	struct js_value text = js_code_units(js, list->v, list->n);

	text.flags |= JS_DECODED;
	return text;
}

static struct js_value call_buffer(struct js *js, struct call *c)
{
	struct js_value from = arg(c, 0), how = arg(c, 1);

	struct js_value bytes = js_simple(JS_UNKNOWN);

	if (from.kind == JS_ARRAY)
		return call_char_codes_of(js, &from);
	if (how.kind != JS_STRING)
		return c->n > 1 || from.kind != JS_STRING ? bytes : from;
	how = js_string(js, how.s, how.n);
	if (from.kind == JS_STRING && how.kind == JS_STRING)
		bytes = js_decode(js, how.s, &from);
	if (js_is(&how, JS_STRING, "base64") || js_is(&how, JS_STRING, "base64url") || js_is(&how, JS_STRING, "hex"))
		bytes.flags |= JS_DECODED;
	return bytes;
}

static struct js_value call_string(struct js *js, struct call *c)
{
	struct js_value v = arg(c, 0);

	return js_to_string(js, &v, &v) ? v : js_simple(JS_UNKNOWN);
}

static struct js_value call_number(struct js *js, struct call *c)
{
	struct js_value v = arg(c, 0);
	double d;

	return c->n == 1 && js_to_number(js, &v, &d) ? js_number(d) : js_simple(JS_UNKNOWN);
}

static struct js_value call_first(struct js *js UNUSED, struct call *c)
{
	return arg(c, 0);
}

static struct js_value call_array_of(struct js *js, struct call *c)
{
	return js_list(js, JS_ARRAY, c->args, c->n);
}

static struct js_value call_array_from(struct js *js, struct call *c)
{
	struct js_value from = arg(c, 0), ret = js_simple(JS_UNKNOWN), by = js_text("");

	if (c->n > 1)
		return call_require_each(js, c, &from, &c->args[1]) ? js_simple(JS_UNKNOWN) : ret;
	if (from.kind == JS_STRING)
		(void)js_string_method(js, &from, "split", 5, &by, 1, &ret);
	return from.kind == JS_ARRAY ? from : ret;
}

/* Object.values(child_process).find(...): its functions are found without their names. */
static void judge_search(struct js *js, const struct call *c, const struct js_value *object)
{
	if (js_is(object, JS_MODULE, "child_process"))
		js_check(js, "roundabout-require", c->where, "its functions are looked for");
}

static struct js_value call_values(struct js *js, struct call *c)
{
	struct js_value from = arg(c, 0), list;

	judge_search(js, c, &from);
	js_judge_all_members(js, &from, c->where);
	if (from.kind != JS_OBJECT || !js_list_intact(&from) || !js_list_new(js, JS_ARRAY, from.n, &list))
		return js_simple(JS_UNKNOWN);
	for (uint32_t i = 0; i < from.n; i++)
		list.v[i] = from.v[2 * i + 1];
	return list;
}

static struct js_value call_keys(struct js *js, struct call *c)
{
	struct js_value from = arg(c, 0), list;

	judge_search(js, c, &from);
	if (from.kind != JS_OBJECT || !js_list_intact(&from) || !js_list_new(js, JS_ARRAY, from.n, &list))
		return js_simple(JS_UNKNOWN);
	for (uint32_t i = 0; i < from.n; i++)
		list.v[i] = from.v[2 * i];
	return list;
}

static struct js_value call_entries(struct js *js, struct call *c)
{
	struct js_value from = arg(c, 0);

	judge_search(js, c, &from);
	js_judge_all_members(js, &from, c->where);
	return js_simple(JS_UNKNOWN);
}

/* Object.assign: the result contains all arguments, and so does the target. */
static struct js_value call_assign(struct js *js, struct call *c)
{
	struct js_value all = arg(c, 0);

	for (size_t i = 1; i < c->n; i++) {
		js_judge_all_members(js, &c->args[i], c->where);
		all = js_join(js, all, c->args[i]);
	}
	if (c->n && (c->args[0].kind == JS_OBJECT || c->args[0].kind == JS_ARRAY))
		js_list_spoil(&c->args[0]);
	return all;
}

static struct js_value call_timer(struct js *js, struct call *c)
{
	struct js_value what = arg(c, 0);

	if (what.kind == JS_STRING) {
		js_check(js, "string-timer", c->where, "");
		if (js_origin(&what) & (JS_DECODED | JS_FETCHED))
			js_judge_run(js, &what, false, c->where);
		judge_text(js, &what, c->where);
	}
	return js_simple(JS_UNKNOWN);
}

static struct js_value call_fetch(struct js *js, struct call *c)
{
	struct js_value what = arg(c, 0);

	js_judge_builtin(js, "fetch", 5, c->where);
	(void)js_judge_client(js, c->args, c->n, c->where);
	if (js->judging && what.kind == JS_STRING && js_starts(&what, "file:"))
		judge_path(js->judge, what.s, what.n, c->where);
	what = js_simple(JS_UNKNOWN);
	what.flags = JS_FETCHED;
	return what;
}

static struct js_value call_web_socket(struct js *js, struct call *c)
{
	struct js_value socket = js_simple(JS_UNKNOWN);

	js_mention(js, &c->callee, c->where);
	(void)js_judge_client(js, c->args, c->n, c->where);
	socket.flags = JS_FETCHED;
	return socket;
}

/* A key without a name: obj[Symbol("x")] reaches only what the program stored there. */
static struct js_value call_symbol(struct js *js UNUSED, struct call *c UNUSED)
{
	return js_text("@@symbol");
}

static struct js_value call_proxy(struct js *js UNUSED, struct call *c)
{
	return c->is_new ? arg(c, 0) : js_simple(JS_UNKNOWN);
}

/* Sorted by name. */
static const struct engine_function {
	const char *name;
	struct js_value (*call)(struct js *js, struct call *c);
} engine_functions[] = {
	{ "Array", call_array_of },
	{ "Array.from", call_array_from },
	{ "Array.of", call_array_of },
	{ "Buffer.from", call_buffer },
	{ "EventSource", call_web_socket },
	{ "Function", call_function },
	{ "Number", call_number },
	{ "Object", call_first },
	{ "Object.assign", call_assign },
	{ "Object.create", call_prototype },
	{ "Object.defineProperties", call_define },
	{ "Object.defineProperty", call_define },
	{ "Object.entries", call_entries },
	{ "Object.freeze", call_first },
	{ "Object.getOwnPropertyDescriptor", call_descriptor },
	{ "Object.getOwnPropertyDescriptors", call_first },
	{ "Object.getPrototypeOf", call_prototype },
	{ "Object.keys", call_keys },
	{ "Object.seal", call_first },
	{ "Object.values", call_values },
	{ "Promise.resolve", call_first },
	{ "Proxy", call_proxy },
	{ "Reflect.defineProperty", call_define },
	{ "Reflect.get", call_get },
	{ "Reflect.getOwnPropertyDescriptor", call_descriptor },
	{ "Reflect.getPrototypeOf", call_prototype },
	{ "Reflect.set", call_define },
	{ "String", call_string },
	{ "String.fromCharCode", call_char_codes },
	{ "String.fromCodePoint", call_char_codes },
	{ "Symbol", call_symbol },
	{ "Symbol.for", call_symbol },
	{ "URL", call_url },
	{ "WebSocket", call_web_socket },
	{ "atob", call_atob },
	{ "decodeURI", call_unescape },
	{ "decodeURIComponent", call_unescape },
	{ "eval", call_eval },
	{ "fetch", call_fetch },
	{ "parseFloat", call_number },
	{ "parseInt", call_number },
	{ "process.getBuiltinModule", call_require },
	{ "require", call_require },
	{ "setImmediate", call_timer },
	{ "setInterval", call_timer },
	{ "setTimeout", call_timer },
	{ "structuredClone", call_first },
	{ "unescape", call_unescape },
};

static int compare_name(const struct js_value *v, const char *name)
{
	int order = strncmp(v->s, name, v->n);

	return order ? order : name[v->n] ? -1 : 0;
}

static const struct engine_function *find_engine(const struct js_value *path)
{
	size_t low = 0, high = ARRAY_LEN(engine_functions);

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = compare_name(path, engine_functions[mid].name);

		if (order == 0)
			return &engine_functions[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* Deno.readTextFile(path), Bun.file(path) */
static void judge_other_engine(struct js *js, const struct call *c)
{
	if (!js->judging || (!js_starts(&c->callee, "Deno.") && !js_starts(&c->callee, "Bun.")))
		return;
	for (size_t i = 0; i < c->n && i < 2; i++)
		if (c->args[i].kind == JS_STRING && judge_looks_like_path(c->args[i].s, c->args[i].n))
			judge_path(js->judge, c->args[i].s, c->args[i].n, c->where);
}

static struct js_value call_path(struct js *js, struct call *c)
{
	const struct engine_function *f = find_engine(&c->callee);

	if (f)
		return f->call(js, c);
	js_mention(js, &c->callee, c->where);
	if (js_starts(&c->callee, "console.") && js_origin_of_all(js, c->args, c->n) & JS_SECRET)
		js_check(js, "environment-shown", c->where, "");
	judge_other_engine(js, c);
	return js_simple(JS_UNKNOWN);
}

/* --- modules, methods, own functions ---------------------------------------- */

/* import("m").then(m => ...) */
static void hand_module_to_then(struct js *js, const struct call *c)
{
	struct js_value module = c->callee, f = arg(c, 0);
	const struct js_scope *scope;

	if (module.n < 6 || memcmp(module.s + module.n - 5, ".then", 5) != 0 || f.kind != JS_FUNCTION || f.n == 0 ||
	    f.n >= js->n_scopes)
		return;
	module.n -= 5;
	scope = &js->scopes[f.n];
	if (scope->n_params && scope->param[0] != JS_NO_VAR)
		js_set_parameter(js, scope->param[0], module);
}

static struct js_value call_module(struct js *js, struct call *c)
{
	static const char *const loaders[] = { "module._load", "module.require", "module.createRequire", "module" };

	struct js_value ret = js_simple(JS_UNKNOWN);

	js_judge_module_call(js, &c->callee, c->args, c->n, c->where);
	if (c->n && c->callee.n > 9 && memcmp(c->callee.s + c->callee.n - 9, "._compile", 9) == 0)
		js_judge_run(js, &c->args[0], false, c->where);
	ret.flags = (uint8_t)js_judge_intent(js, &c->callee, c->args, c->n, c->where);
	hand_module_to_then(js, c);
	if (js_is(&c->callee, JS_MODULE, "os.homedir"))
		return js_text("~");
	if (js_is(&c->callee, JS_MODULE, "module.createRequire"))
		return js_path("require", 7);
	for (size_t i = 0; i < ARRAY_LEN(loaders); i++)
		if (js_is(&c->callee, JS_MODULE, loaders[i]))
			return call_require(js, c);
	if (js_is(&c->callee, JS_MODULE, "util.promisify"))
		return arg(c, 0);
	if (js_is(&c->callee, JS_MODULE, "path.join") || js_is(&c->callee, JS_MODULE, "path.resolve")) {
		struct js_value list = js_list(js, JS_ARRAY, c->args, c->n), slash = js_text("/"), path;

		if (list.kind == JS_ARRAY && js_array_method(js, &list, "join", 4, &slash, 1, &path))
			return path;
	}
	return ret;
}

/* x.constructor(...): Function if x is a function; `new x.constructor(...)` creates another object of x's class. */
static void judge_constructor_call(struct js *js, const struct call *c)
{
	const struct js_value *object = &c->callee.v[0];
	bool own = object->kind == JS_THIS || c->is_new;

	if (!own || arg_is_code(c))
		js_judge_builtin(js, "Function", 8, c->where);
	if (arg_is_code(c))
		js_check(js, "constructor-chain", c->where, "");
}

/* For [][x][y](): true if the base of the chain is a literal, so that no name is involved. */
static bool is_literal(const struct js_value *v)
{
	return v->kind == JS_ARRAY || v->kind == JS_STRING || v->kind == JS_NUMBER || v->kind == JS_FUNCTION ||
	       v->kind == JS_REGEX || v->kind == JS_BOOL || v->kind == JS_OBJECT;
}

static struct js_value call_method(struct js *js, struct call *c)
{
	const struct js_value *object = &c->callee.v[0], *name = &c->callee.v[1];
	struct js_value ret = js_simple(JS_UNKNOWN), first = arg(c, 0);
	double radix;

	if (name->kind != JS_STRING) {
		if (c->n && (js_is(object, JS_PATH, "globalThis") || js_is(object, JS_PATH, "process")) &&
		    !(object->flags & JS_WEAK))
			js_check(js, "computed-engine-call", c->where, "");
		if (object->kind == JS_MEMBER && object->v[1].kind == JS_UNKNOWN && object->v[0].kind != JS_UNKNOWN &&
		    object->v[0].kind != JS_THIS && arg_is_code(c)) {
			js_check(js, "computed-call", c->where, "");
			if (is_literal(&object->v[0]))
				js_check(js, "computed-call-of-literal", c->where, "");
		}
		return ret;
	}
	js->serves |= js_is(name, JS_STRING, "listen");
	if (object->flags & JS_FETCHED)
		js_judge_sent(js, name, c->args, c->n, c->where);
	if (js_is(name, JS_STRING, "constructor"))
		judge_constructor_call(js, c);
	else if (js_is(name, JS_STRING, "require"))
		return call_require(js, c);
	else if (object->kind == JS_STRING)
		(void)js_string_method(js, object, name->s, name->n, c->args, c->n, &ret);
	else if (js_is(name, JS_STRING, "_compile"))
		js_judge_run(js, &first, false, c->where);
	else if (object->kind == JS_ARRAY && !call_require_each(js, c, object, &first))
		(void)js_array_method(js, object, name->s, name->n, c->args, c->n, &ret);
	else if (object->kind == JS_NUMBER && js_is(name, JS_STRING, "toString"))
		return js_number_text(js, object->number, c->n && js_to_number(js, &first, &radix) ? (int)radix : 10);
	else if (js_is(name, JS_STRING, "run") && first.kind == JS_STRING &&
		 memmem(first.s, first.n, "constructor", 11)) /* code for an interpreter or a sandbox */
		judge_text(js, &first, c->where);
	return ret;
}

static struct js_value call_own(struct js *js, struct call *c)
{
	struct js_scope *f;
	struct js_value ret, name;

	if (c->callee.n == 0 || c->callee.n >= js->n_scopes)
		return js_simple(JS_UNKNOWN);
	f = &js->scopes[c->callee.n];
	for (size_t i = 0; i < f->n_params && i < c->n; i++)
		if (f->param[i] != JS_NO_VAR)
			js_set_parameter(js, f->param[i], c->args[i]);
	if (!f->returns || c->is_new)
		return js_simple(JS_UNKNOWN);
	ret = f->result;
	if (!c->plain)
		return ret;
	if (ret.kind == JS_THIS) {
		ret = js_path("globalThis", 10);
	} else if (ret.kind == JS_MEMBER && ret.v[0].kind == JS_THIS) {
		name = ret.v[1];
		ret = js_member(js, js_path("globalThis", 10), &name, c->where);
	}
	if (ret.kind == JS_PATH)
		ret.flags |= JS_PENDING;
	return ret;
}

/* --- unwrapping ---------------------------------------- */

static void use_list(struct call *c, const struct js_value *list)
{
	if (list->kind == JS_ARRAY && js_list_intact(list)) {
		c->args = list->v;
		c->n = list->n;
	} else {
		c->spare = js_simple(JS_UNKNOWN);
		c->args = &c->spare;
		c->n = list->kind == JS_UNDEFINED || list->kind == JS_NULL ? 0 : 1;
	}
}

static void drop_args(struct call *c, size_t n)
{
	n = n < c->n ? n : c->n;
	c->args += n;
	c->n -= n;
}

/* The function whose member `call` is; returns the wrapper's name: call, apply or bind. */
static const char *wrapper_of(const struct js_value *callee, struct js_value *ret)
{
	static const char *const wrappers[] = { "call", "apply", "bind" };

	if (callee->kind == JS_MEMBER && callee->v[1].kind == JS_STRING) {
		for (size_t i = 0; i < ARRAY_LEN(wrappers); i++) {
			if (js_is(&callee->v[1], JS_STRING, wrappers[i])) {
				*ret = callee->v[0];
				return wrappers[i];
			}
		}
	}
	for (size_t i = 0; (callee->kind == JS_PATH || callee->kind == JS_MODULE) && i < ARRAY_LEN(wrappers); i++) {
		size_t len = strlen(wrappers[i]);

		if (callee->n > len + 1 && callee->s[callee->n - len - 1] == '.' &&
		    memcmp(callee->s + callee->n - len, wrappers[i], len) == 0) {
			*ret = *callee;
			ret->n -= (uint32_t)len + 1;
			return wrappers[i];
		}
	}
	return NULL;
}

static struct js_value bind_call(struct js *js, struct call *c, struct js_value function)
{
	struct js_value bound;
	size_t fixed = c->n > 1 ? c->n - 1 : 0;

	if (fixed == 0)
		return function;
	if (!js_list_new(js, JS_BOUND, fixed + 1, &bound))
		return function;
	bound.v[0] = function;
	memcpy(bound.v + 1, c->args + 1, fixed * sizeof(*c->args));
	bound.flags = JS_PENDING;
	return bound;
}

static bool unbind(struct js *js, struct call *c)
{
	struct js_value list, bound = c->callee;
	size_t fixed = bound.n - 1;

	if (!js_list_new(js, JS_ARRAY, fixed + c->n, &list))
		return false;
	memcpy(list.v, bound.v + 1, fixed * sizeof(list));
	if (c->n)
		memcpy(list.v + fixed, c->args, c->n * sizeof(list));
	c->callee = bound.v[0];
	c->args = list.v;
	c->n = list.n;
	return true;
}

/* Removes one wrapper; false if there is none.  *done: the call is evaluated and *ret its value. */
static bool unwrap(struct js *js, struct call *c, bool *done, struct js_value *ret)
{
	struct js_value inner, list;
	const char *how;

	if (c->callee.kind == JS_BOUND)
		return unbind(js, c);
	if (js_is(&c->callee, JS_PATH, "Reflect.apply") || js_is(&c->callee, JS_PATH, "Reflect.construct")) {
		list = arg(c, js_is(&c->callee, JS_PATH, "Reflect.apply") ? 2 : 1);
		c->callee = arg(c, 0);
		if (js_is(&c->callee, JS_PATH, "Function"))
			c->callee.flags |= JS_BUILT;
		use_list(c, &list);
		return true;
	}
	how = wrapper_of(&c->callee, &inner);
	if (!how)
		return false;
	if (*how == 'b') {
		*ret = bind_call(js, c, inner);
		*done = true;
		return true;
	}
	if (js_is(&inner, JS_PATH,
		  "Function.prototype")) { /* Function.prototype.call.call(f, this, ...) ends up here */
		c->callee = c->self;
	} else {
		c->callee = inner;
	}
	c->self = arg(c, 0);
	c->plain = true;
	list = arg(c, 1);
	if (*how == 'a')
		use_list(c, &list);
	else
		drop_args(c, 1);
	return true;
}

static struct js_value if_text_holds(struct js *js, struct js_value v)
{
	return js->engine_changed && (v.kind == JS_STRING || v.kind == JS_ARRAY) ? js_simple(JS_UNKNOWN) : v;
}

/* Gives the result of a call the origin of its arguments; only Object.keys drops the values. */
static struct js_value made_of(struct js *js, const struct call *c, struct js_value v)
{
	unsigned origin = js_origin_of_all(js, c->args, c->n);

	if (c->callee.kind == JS_MEMBER)
		origin |= js_origin(&c->callee.v[0]) | (c->callee.flags & JS_ORIGIN);
	if (js_is(&c->callee, JS_PATH, "Object.keys"))
		origin = 0;
	js_taint_parameters(js, c->args, c->n, origin & JS_FETCHED);
	if (v.kind == JS_STRING)
		v.flags |= JS_BUILT;
	if (v.kind == JS_UNKNOWN || v.kind == JS_STRING)
		v.flags |= (uint8_t)origin;
	return v;
}

static struct js_value call_one(struct js *js, struct call *c)
{
	struct js_value ret = js_simple(JS_UNKNOWN);
	bool done = false;

	for (unsigned i = 0; i < JS_NESTING_MAX && !done && unwrap(js, c, &done, &ret); i++)
		;
	if (done)
		return ret;
	switch (c->callee.kind) {
	case JS_PATH:
		return made_of(js, c, if_text_holds(js, call_path(js, c)));
	case JS_MODULE:
		return call_module(js, c);
	case JS_MEMBER:
		return made_of(js, c, if_text_holds(js, call_method(js, c)));
	case JS_FUNCTION:
		return call_own(js, c);
	default:
		return ret;
	}
}

/* Expands spread arrays into separate arguments. */
static struct js_value flat_args(struct js *js, const struct js_value *args)
{
	struct js_value flat;
	size_t n = 0;

	for (uint32_t i = 0; i < args->n; i++)
		n += args->v[i].kind == JS_SPREAD && args->v[i].v[0].kind == JS_ARRAY ? args->v[i].v[0].n : 1;
	if (!js_list_new(js, JS_ARRAY, n, &flat))
		return flat;
	n = 0;
	for (uint32_t i = 0; i < args->n; i++) {
		const struct js_value *one = &args->v[i], *inner = one->kind == JS_SPREAD ? &one->v[0] : NULL;

		if (inner && inner->kind == JS_ARRAY) {
			memcpy(flat.v + n, inner->v, inner->n * sizeof(flat));
			n += inner->n;
		} else {
			flat.v[n++] = inner ? js_simple(JS_UNKNOWN) : *one;
		}
	}
	return flat;
}

struct js_value js_call(struct js *js, struct js_value callee, struct js_value args, bool is_new, struct span where)
{
	struct js_value all = js_simple(JS_UNKNOWN);
	const struct js_value *each;
	size_t n = js_alternatives(&callee, &each);

	if (args.kind == JS_ARRAY)
		args = flat_args(js, &args);
	for (size_t i = 0; i < n; i++) {
		struct call c = { .callee = each[i],
				  .self = js_simple(JS_UNKNOWN),
				  .is_new = is_new,
				  .where = where,
				  .plain = each[i].kind == JS_FUNCTION };
		struct js_value one;

		use_list(&c, &args);
		one = call_one(js, &c);
		all = i ? js_join(js, all, one) : one;
	}
	return all;
}
