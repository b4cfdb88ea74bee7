/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programmatic.c - programs that call tools of LibreChat's host
 *
 *	request -> run until the program waits for a tool -> tool_call_required
 *	results -> run from the start with the results so far -> ... -> completed
 *
 * The host calls the tools; the program only requests calls, in a file that it leaves. Between two rounds, the program
 * and the results so far are kept in a workspace of the runner, whose id is the continuation token; it is useless with
 * another key.
 *
 * Programs may use await at top level, which Python allows only in code compiled for it. So the wrapper contains the
 * program as a string, which the inspection reads too, and more strictly than plain code. A program with a return at
 * top level, which upstream allows, becomes a function. Bash programs are handled by bash.c.
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/id.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/doors/librechat/librechat.h"

#define TOOLS_MAX   128
#define RESULTS_MAX 256
#define CALLS_FILE  "!brig_calls.json" /* before other names, so that no limit of artifacts leaves it out */
#define STATE_FILE  "state.json"

static const char program[] =
	"_count, _pending, _asked, _waits = 0, [], asyncio.Event(), False\n"
	"async def _ask(name, arguments):\n"
	"    global _count\n"
	"    _count += 1\n"
	"    ident = 'call_%03d' % _count\n"
	"    if ident in _results:\n"
	"        found = _results[ident]\n"
	"        if found.get('is_error'):\n"
	"            raise RuntimeError(found.get('error_message') or 'the tool failed')\n"
	"        return found.get('result')\n"
	"    _pending.append({'id': ident, 'name': name, 'input': arguments})\n"
	/* the program runs a loop of its own with asyncio.run(), which _main() does not watch */
	"    if not _waits:\n"
	"        await _others()\n"
	"        _leave()\n"
	"        raise SystemExit(0)\n"
	"    _asked.set()\n"
	"    await asyncio.get_running_loop().create_future()\n"
	"async def _others():\n" /* lets tasks that run in parallel make their calls, too */
	"    for _ in range(100):\n"
	"        await asyncio.sleep(0)\n"
	"def _leave():\n"
	"    with open('" CALLS_FILE "', 'w') as f:\n"
	"        json.dump(_pending, f)\n"
	"def _make(name):\n"
	"    async def tool(**arguments):\n"
	"        return await _ask(name, arguments)\n"
	"    return tool\n"
	"async def _main(started):\n"
	"    global _waits\n"
	"    _waits = True\n"
	"    task, asked = asyncio.ensure_future(started), asyncio.ensure_future(_asked.wait())\n"
	"    await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)\n"
	"    await _others()\n"
	"    if task.done():\n"
	"        asked.cancel()\n"
	"        return await task\n"
	"    _leave()\n"
	"    task.cancel()\n"
	"def _compile():\n"
	"    tree = compile(_source, _name, 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)\n"
	"    try:\n"
	"        return compile(tree, _name, 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n"
	"    except SyntaxError as error:\n"
	"        if \"'return' outside function\" not in str(error):\n"
	"            raise\n"
	"    whole = compile('async def _program(): pass\\nawait _program()', _name, 'exec',\n"
	"                    flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)\n"
	"    whole.body[0].body = tree.body\n"
	"    code = compile(whole, _name, 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n"
	/* to tracebacks, the function is the program, and the await this wrapper's */
	"    inner = [c.replace(co_name='<module>') if isinstance(c, type(code)) else c for c in code.co_consts]\n"
	"    return code.replace(co_filename=_compile.__code__.co_filename, co_consts=tuple(inner))\n"
	/* Tracebacks quote the program and begin with it: this wrapper's frames, and asyncio's before it, are left out. */
	"_name = '<program>'\n"
	"linecache.cache[_name] = len(_source), None, _source.splitlines(True), _name\n"
	"def _clean(error, seen):\n"
	"    if error is None or id(error) in seen:\n"
	"        return\n"
	"    seen.add(id(error))\n"
	"    rows, row, own = [], error.__traceback__, _clean.__code__.co_filename\n"
	"    while row:\n"
	"        rows.append((row.tb_frame.f_code.co_filename, row))\n"
	"        row = row.tb_next\n"
	"    names = [name for name, _ in rows]\n"
	"    first = names.index(_name) if _name in names else 0\n"
	"    rows = [row for name, row in rows[first:] if name != own]\n"
	"    for row, after in zip(rows, rows[1:] + [None]):\n"
	"        row.tb_next = after\n"
	"    error.__traceback__ = rows[0] if rows else None\n"
	"    for other in (error.__cause__, error.__context__, *getattr(error, 'exceptions', ())):\n"
	"        _clean(other, seen)\n"
	"def _say(kind, error, _):\n"
	"    _clean(error, set())\n"
	"    if kind is SyntaxError and error.filename == _name and not error.text:\n"
	"        error.text = linecache.getline(_name, error.lineno or 0)\n"
	"    traceback.print_exception(kind, error, error.__traceback__)\n"
	"sys.excepthook = _say\n"
	/* programs rely on these two modules */
	"_space = {'__name__': '__main__', 'asyncio': asyncio, 'json': json,\n"
	"          **{own: _make(name) for own, name in _tools.items()}}\n"
	"_started = eval(_compile(), _space)\n"
	"if _started is not None:\n" /* otherwise the program had no await and is done */
	"    asyncio.run(_main(_started))\n";

/* ---- the program ----------------------------------------------------------------------------------------------- */

void librechat_function_name(const char *tool, const char *joins, const char *const words[], char *dst, size_t size)
{
	size_t n = 0;

	if (*tool >= '0' && *tool <= '9')
		dst[n++] = '_';
	for (; *tool && n + 8 < size; tool++) {
		bool is_letter = (*tool >= 'a' && *tool <= 'z') || (*tool >= 'A' && *tool <= 'Z') ||
				 (*tool >= '0' && *tool <= '9') || *tool == '_';

		if (is_letter || strchr(joins, *tool))
			dst[n++] = is_letter ? *tool : '_';
	}
	dst[n] = '\0';
	for (size_t i = 0; words[i]; i++)
		if (str_eq(words[i], dst))
			(void)memcpy(dst + n, "_tool", sizeof("_tool"));
}

static json_t *functions_of(const json_t *doc)
{
	static const char *const words[] = { "False",  "None",     "True",  "and",    "as",       "assert",
					     "async",  "await",    "break", "class",  "continue", "def",
					     "del",    "elif",     "else",  "except", "finally",  "for",
					     "from",   "global",   "if",    "import", "in",       "is",
					     "lambda", "nonlocal", "not",   "or",     "pass",     "raise",
					     "return", "try",      "while", "with",   "yield",    NULL };
	json_t *functions = json_object(), *tool;
	size_t i;

	json_array_foreach(json_object_get(doc, "tools"), i, tool)
	{
		char name[128];

		librechat_function_name(json_string_value(json_object_get(tool, "name")), "- \t", words, name,
					sizeof(name));
		(void)json_object_set(functions, name, json_object_get(tool, "name"));
	}
	return functions;
}

/* Adds a document as a Python string literal that json.loads() parses. */
static bool add_document(struct buf *out, const char *name, json_t *doc)
{
	AUTO_FREE char *inner = doc ? json_dumps(doc, JSON_COMPACT) : NULL, *literal = NULL;
	json_t *text = inner ? json_string(inner) : NULL;

	literal = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
	json_decref(text);
	json_decref(doc);
	if (literal) /* may be long, so it is added without formatting */
		(void)(buf_addf(out, "%s = json.loads(", name) && buf_adds(out, literal) && buf_adds(out, ")\n"));
	return literal != NULL;
}

static bool is_bash(const json_t *doc)
{
	const char *lang = json_string_value(json_object_get(doc, "lang"));

	return lang && str_eq(lang, "bash");
}

char *librechat_wrap(const json_t *doc)
{
	AUTO_FREE char *source = json_dumps(json_object_get(doc, "code"), JSON_ENCODE_ANY);
	AUTO_BUF out = BUF_INIT(MESSAGE_MAX);

	if (is_bash(doc))
		return librechat_wrap_bash(doc);
	if (!source)
		return NULL;
	(void)buf_adds(&out, "import ast, asyncio, json, linecache, sys, traceback\n_source = ");
	(void)buf_adds(&out, source);
	(void)buf_adds(&out, "\n");
	if (!add_document(&out, "_tools", functions_of(doc)) ||
	    !add_document(&out, "_results", json_incref(json_object_get(doc, "results"))))
		return NULL;
	(void)buf_adds(&out, program);
	return out.full || out.no_memory ? NULL : buf_take(&out);
}

/* ---- requested calls ------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void on_kept(struct client *c, unsigned status, const struct message *m)
{
	struct librechat_exec *e = c->req->call->state;
	json_t *doc = door_answer_json(m);

	if (status == 201)
		(void)json_object_set(e->answer, "continuation_token", json_object_get(doc, "id"));
	if (status == 201)
		door_reply(c, 200, json_incref(e->answer));
	else
		door_error(c, status, door_answer_message(doc));
	json_decref(doc);
}

/* Keeps the request with all results so far for the next round. */
static void keep_state(struct client *c, json_t *calls, const json_t *result)
{
	struct librechat_exec *e = c->req->call->state;
	AUTO_FREE char *text = json_dumps(e->doc, JSON_COMPACT);
	AUTO_BUF tar = BUF_INIT(ARCHIVE_BYTES_MAX);
	struct bytes content = { text, text ? strlen(text) : 0 };
	AUTO_FD files = text && ustar_add_file(&tar, STATE_FILE, &content) ? ustar_to_file(&tar) : FD_NONE;

	e->answer = json_pack("{s:s, s:s, s:o}", "status", "tool_call_required", "session_id", text_of(result, "id"),
			      "tool_calls", calls);
	(void)door_fields(c);
	if (files < 0)
		door_error(c, 503, "there is no room for the program");
	else
		door_ask(c, ROUTE_workspace_put, files, FD_NONE, on_kept);
}

/* NULL: the program made no calls. */
static json_t *calls_of(const json_t *result)
{
	const json_t *artifact;
	size_t i;

	json_array_foreach(json_object_get(result, "artifacts"), i, artifact)
	{
		const json_t *content = json_object_get(artifact, "content");
		struct brig_error err = BRIG_ERROR_INIT;
		json_t *calls;

		if (!str_eq(text_of(artifact, "path"), CALLS_FILE) || !json_is_string(content))
			continue;
		/* the program may have written anything here: untrusted */
		calls = door_parse(json_string_value(content), json_string_length(content), &err);
		if (json_is_array(calls) && json_array_size(calls) > 0)
			return calls;
		json_decref(calls);
	}
	return NULL;
}

static void say_error(struct client *c, const json_t *result, const char *why)
{
	door_reply(c, 200,
		   json_pack("{s:s, s:s, s:s, s:o}", "status", "error", "session_id", text_of(result, "id"), "error",
			     why, "stderr", librechat_errors(result)));
}

bool librechat_take_calls(struct client *c, const json_t *result)
{
	static const struct {
		const char *verdict, *text;
	} rows[] = {
		{ "timeout", "Time limit exceeded" },
		{ "cpu_limit", "Time limit exceeded" },
		{ "memory_limit", "Out of memory" },
		{ "output_limit", "stdout length exceeded" },
		{ "blocked", "Execution failed or timed out" },
		{ "refused", "Execution failed or timed out" },
		{ "crash", "Execution failed or timed out" },
	};
	const char *verdict = text_of(result, "verdict");
	json_t *doc = ((struct librechat_exec *)c->req->call->state)->doc;
	json_t *calls = is_bash(doc) ? librechat_bash_calls(doc, result) : calls_of(result);
	char text[64];

	if (calls) {
		keep_state(c, calls, result);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].verdict, verdict)) {
			say_error(c, result, rows[i].text);
			return true;
		}
	if (!str_eq(verdict, "error"))
		return false;
	(void)snprintf(text, sizeof(text), "Sandbox exited with code %lld",
		       (long long)json_integer_value(json_object_get(result, "exit_code")));
	say_error(c, result, text);
	return true;
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

/* Adds the client's results to the state, keyed by call id. NULL: all of them are valid. */
static const char *add_results(json_t *state, const json_t *list)
{
	json_t *results = json_object_get(state, "results"), *result;
	size_t i;

	if (!json_is_array(list) || json_object_size(results) + json_array_size(list) > RESULTS_MAX)
		return "tool_results must be an array, of not too many";
	json_array_foreach(list, i, result)
	{
		if (!json_is_string(json_object_get(result, "call_id")))
			return "tool_results need a call_id each";
		(void)json_object_set(results, text_of(result, "call_id"), result);
	}
	return NULL;
}

/* NULL: the tools are valid. */
static const char *wrong_with(const json_t *doc)
{
	const json_t *tools = json_object_get(doc, "tools"), *tool, *lang = json_object_get(doc, "lang");
	size_t i;

	if (!json_is_array(tools) || json_array_size(tools) == 0 || json_array_size(tools) > TOOLS_MAX)
		return "tools is required: an array that is not empty";
	json_array_foreach(tools, i, tool) if (!json_is_string(json_object_get(tool, "name")) ||
					       !*text_of(tool, "name") ||
					       strlen(text_of(tool, "name")) > 100) return "tools need a name each";
	if (lang && !json_is_string(lang))
		return "lang must be a string";
	return NULL;
}

static void on_state(struct client *c, unsigned status, const struct message *m)
{
	struct librechat_exec *e = c->req->call->state;
	struct brig_error err = BRIG_ERROR_INIT;
	size_t len = 0;
	const char *bytes = status == 200 ? message_bytes(m, FIELD_body, &len) : NULL, *why;
	struct archive a = { .bytes = bytes, .len = len };
	struct archive_file f;
	json_t *state = NULL;

	if (bytes && archive_next(&a, &f, NULL) > 0 && str_eq(f.path, STATE_FILE))
		state = door_parse(f.data, f.len, &err);
	/* The token may name any workspace of this owner, with any content. */
	if (!state || !json_is_object(json_object_get(state, "results")) || wrong_with(state)) {
		json_decref(state);
		door_error(c, status == 200 || status == 404 ? 400 : status, "there is nothing to go on with");
		return;
	}
	why = add_results(state, json_object_get(e->doc, "tool_results"));
	json_decref(e->doc);
	e->doc = state;
	if (why)
		door_error(c, 400, why);
	else
		librechat_start(c);
}

static void first_round(struct client *c)
{
	struct librechat_exec *e = c->req->call->state;
	const char *why = wrong_with(e->doc), *lang = text_of(e->doc, "lang");
	bool is_python = !*lang || str_eq(lang, "py") || str_eq(lang, "python");

	if (why) {
		door_error(c, 400, why);
	} else if (!is_python && !is_bash(e->doc)) {
		door_reply(c, 200,
			   json_pack("{s:s, s:s}", "status", "error", "error",
				     "only programs of Python and Bash can call tools here"));
	} else {
		if (is_python)
			(void)json_object_set_new(e->doc, "lang", json_string("py"));
		(void)json_object_set_new(e->doc, "results", json_object());
		(void)json_object_set_new(e->doc, "keys", json_object());
		librechat_start(c);
	}
}

void librechat_programmatic(struct client *c)
{
	struct librechat_exec *e = librechat_is_elsewhere(c) ? NULL : librechat_new(c);
	struct brig_error err = BRIG_ERROR_INIT;
	const char *token;

	if (!e)
		return;
	e->calls_tools = true;
	e->doc = door_json(c, &err);
	token = text_of(e->doc, "continuation_token");
	if (!json_is_object(e->doc)) {
		door_error(c, 400, e->doc ? "an object is required" : err.msg);
	} else if (!json_object_get(e->doc, "continuation_token")) {
		first_round(c);
	} else if (!librechat_is_session(token)) {
		door_error(c, 400, "there is nothing to go on with");
	} else {
		message_put_text(door_fields(c), FIELD_id, token);
		door_ask(c, ROUTE_workspace_archive, FD_NONE, FD_NONE, on_state);
	}
}

static void cancelled(struct client *c)
{
	door_reply(c, 200, json_pack("{s:s}", "status", "ok"));
}

/* Nothing to do: the client also disconnects from its run, which ends it. */
void librechat_cancel(struct client *c)
{
	door_when_let_in(c, cancelled);
}
