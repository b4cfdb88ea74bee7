/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges resolved values.  Only the last pass reports findings; the earlier ones learn the values of variables, so that
 * a use above the assignment is understood as well.
 */
#include "inspect/javascript.h"

#include <string.h>

void js_check(struct js *js, const char *check, struct span where, const char *detail)
{
	if (js->judging)
		(void)judge_check(js->judge, check, where, "%s", detail);
}

void js_judge_member(struct js *js, const char *path, size_t len, struct span where)
{
	if (js->judging)
		(void)judge_member(js->judge, path, len, where);
}

void js_judge_attribute(struct js *js, const char *name, size_t len, struct span where)
{
	if (js->judging)
		(void)judge_attribute(js->judge, name, len, where);
}

void js_judge_builtin(struct js *js, const char *name, size_t len, struct span where)
{
	if (js->judging)
		(void)judge_builtin(js->judge, name, len, where);
}

/* Names whose value is kept even if the program assigns to them. */
bool js_is_engine_name(struct js *js, const char *name, size_t len)
{
	static const char *const names[] = {
		"Array",  "Error",   "Function",    "Object",    "Promise", "Proxy",  "Reflect",
		"String", "Symbol",  "WebAssembly", "arguments", "eval",    "global", "globalThis",
		"module", "process", "require",     "self",      "window",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncmp(names[i], name, len) == 0 && names[i][len] == '\0')
			return true;
	return rules_find(js->judge->rules, js->judge->language, RULE_BUILTIN, name, len) != NULL;
}

static void mention_path(struct js *js, const struct js_value *v, struct span where)
{
	const char *dot = memchr(v->s, '.', v->n);

	if (js_is(v, JS_PATH, "require") || js_is(v, JS_PATH, "require.call") || js_is(v, JS_PATH, "require.apply") ||
	    js_is(v, JS_PATH, "require.bind"))
		js_check(js, "require-passed-on", where, "");
	else if (js_is(v, JS_PATH, "eval"))
		js_check(js, "eval-passed-on", where, "");
	else if (js_is(v, JS_PATH, "arguments"))
		js_check(js, "module-arguments", where, "");
	if (!dot && !(v->flags & JS_WEAK))
		js_judge_builtin(js, v->s, v->n, where);
}

static bool is_fs(const struct js_value *v)
{
	return v->kind == JS_MODULE && v->n >= 2 && memcmp(v->s, "fs", 2) == 0 && (v->n == 2 || v->s[2] == '.');
}

/* Judges a value that is passed to where it cannot be followed. */
void js_mention(struct js *js, const struct js_value *v, struct span where)
{
	const struct js_value *each;
	size_t n = js_alternatives(v, &each);

	for (size_t i = 0; i < n; i++) {
		if (each[i].kind == JS_PATH)
			mention_path(js, &each[i], where);
		else if (each[i].kind == JS_BOUND && each[i].v[0].kind == JS_PATH)
			mention_path(js, &each[i].v[0], where);
		else if (js_is(&each[i], JS_MODULE, "child_process"))
			js_check(js, "process-passed-on", where, "");
		else if (is_fs(&each[i]))
			js->fs_other++;
	}
}

/*
 * Judges a value that is assigned to a variable: the variable is followed, so only values that are findings by
 * themselves count.
 */
void js_mention_kept(struct js *js, const struct js_value *v, struct span where)
{
	static const char *const followed[] = { "require", "Function", "process", "arguments", "globalThis" };
	const struct js_value *each;
	size_t n = js_alternatives(v, &each);

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < ARRAY_LEN(followed) && !js_is(&each[i], JS_PATH, followed[k]))
			k++;
		if (each[i].kind == JS_PATH && k == ARRAY_LEN(followed))
			mention_path(js, &each[i], where);
	}
}

/* --- modules ---------------------------------------- */

static bool reads_only_stdin(const struct js *js)
{
	return js->fs_stdin > 0 && js->fs_stdin == js->fs_members && js->fs_other == 0;
}

static bool ends_with(const struct js_value *v, const char *end)
{
	size_t len = strlen(end);

	return v->n >= len && memcmp(v->s + v->n - len, end, len) == 0;
}

static void judge_import(struct js *js, const struct js_value *name, struct span where)
{
	if (!js->judging)
		return;
	if (js_starts(name, "data:") || js_starts(name, "http:") || js_starts(name, "https:") ||
	    js_starts(name, "blob:")) {
		js_check(js, "import-of-code", where,
			 js_starts(name, "data:") ? "a data: URL" : "code from the network");
		return;
	}
	if (ends_with(name, ".node"))
		js_check(js, "native-addon", where, "");
	if (js_starts(name, "/") || js_starts(name, "..") || js_starts(name, "file:") || js_starts(name, "./")) {
		judge_path(js->judge, name->s, name->n, where);
		return;
	}
	if (js_is(name, JS_STRING, "fs") && reads_only_stdin(js))
		return;
	(void)judge_module(js->judge, name->s, name->n, where);
}

static struct js_value module_named(const struct js_value *name)
{
	struct js_value v = *name;

	/* These two modules only export globals. */
	if (js_is(name, JS_STRING, "process"))
		return js_path("process", 7);
	if (js_is(name, JS_STRING, "buffer")) {
		v = js_path("globalThis", 10);
		v.flags |= JS_WEAK;
		return v;
	}
	v.kind = JS_MODULE;
	v.flags = JS_PENDING;
	return v;
}

/* A module name that is unknown before the code runs; if it begins with a path, it is a file of the program. */
static void judge_unknown_import(struct js *js, const struct js_value *name, struct span where)
{
	bool below = name->kind == JS_UNKNOWN && name->n && (name->s[0] == '.' || name->s[0] == '/');

	js_check(js, "dynamic-import", where, "");
	if (js_origin(name) & (JS_DECODED | JS_FETCHED))
		js_check(js, "decode-and-run", where, "");
	else if (!below && (js_origin(name) & JS_OUTSIDE || name->flags & JS_BUILT))
		js_check(js, "assembled-import", where, "");
}

/* require(name), import(name), import ... from name: judges the import and returns its value. */
struct js_value js_import(struct js *js, const struct js_value *name, struct span where)
{
	struct js_value all = js_simple(JS_UNKNOWN), text;
	const struct js_value *each;
	size_t n = js_alternatives(name, &each);
	bool first = true;

	if (name->flags & JS_MAYBE)
		judge_unknown_import(js, name, where);
	for (size_t i = 0; i < n; i++) {
		struct js_value one;

		if (each[i].kind == JS_UNKNOWN || !js_to_string(js, &each[i], &text)) {
			judge_unknown_import(js, &each[i], where);
			continue;
		}
		if (js_starts(&text, "node:")) {
			text.s += 5;
			text.n -= 5;
		}
		judge_import(js, &text, where);
		js_judge_way_to_module(js, &text, where);
		one = module_named(&text);
		all = first ? one : js_join(js, all, one);
		first = false;
	}
	return all;
}

/* --- arguments of modules' functions ---------------------------------------- */

static void judge_words(struct js *js, const struct js_value *args, size_t n, struct span where)
{
	const char *words[64];
	bool literal[64];
	size_t count = 0;

	if (args[0].kind != JS_STRING)
		return;
	words[count] = args[0].s;
	literal[count++] = true;
	for (uint32_t i = 0; n > 1 && args[1].kind == JS_ARRAY && i < args[1].n && count < ARRAY_LEN(words); i++) {
		struct js_value word = args[1].v[i], copy = js_text("");

		literal[count] = word.kind == JS_STRING;
		if (literal[count])
			copy = js_string(js, word.s, word.n); /* NUL-terminated */
		words[count++] = copy.kind == JS_STRING ? copy.s : "";
	}
	judge_argv(js->judge, words, literal, count, where);
}

static bool is_stdin(const struct js_value *arg)
{
	return (arg->kind == JS_NUMBER && arg->number == 0) || js_is(arg, JS_STRING, "/dev/stdin");
}

static void count_fs(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n)
{
	if (js->judging || !is_fs(callee))
		return;
	if (n && is_stdin(&args[0]) &&
	    (js_is(callee, JS_MODULE, "fs.readFileSync") || js_is(callee, JS_MODULE, "fs.readFile")))
		js->fs_stdin++;
	else
		js->fs_other++;
}

static void judge_module_call(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n,
			      struct span where)
{
	static const char *const shells[] = { "child_process.exec", "child_process.execSync" };
	static const char *const programs[] = { "child_process.spawn", "child_process.spawnSync",
						"child_process.execFile", "child_process.execFileSync" };

	count_fs(js, callee, args, n);
	if (!js->judging || n == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (js_is(callee, JS_MODULE, shells[i]) && args[0].kind == JS_STRING)
			judge_command(js->judge, args[0].s, args[0].n, where);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct js_value first = args[0].kind == JS_STRING ? js_string(js, args[0].s, args[0].n) : args[0];
		struct js_value both[2] = { first, n > 1 ? args[1] : js_simple(JS_UNDEFINED) };

		if (js_is(callee, JS_MODULE, programs[i]))
			judge_words(js, both, 2, where);
	}
	if (!js_starts(callee, "fs") && !js_starts(callee, "graceful-fs"))
		return;
	for (size_t i = 0; i < n && i < 2; i++)
		if (args[i].kind == JS_STRING && judge_looks_like_path(args[i].s, args[i].n) && !is_stdin(&args[i]))
			judge_path(js->judge, args[i].s, args[i].n, where);
}

/* A child reads from its own pipe unless it inherits the program's input. */
void js_judge_module_call(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n,
			  struct span where)
{
	bool has_input = js->judge->has_input;

	if (js->judge->level == INSPECTION_GUARD &&
	    !memmem(js->text + where.start, where.end - where.start, "inherit", 7))
		js->judge->has_input = false;
	judge_module_call(js, callee, args, n, where);
	js->judge->has_input = has_input;
}
