/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bash.c - Bash programs that call tools of LibreChat's host
 *
 * As in programmatic.c, every round runs the program from its start. Bash functions may run in processes of their own,
 * in parallel after a "&", so a variable cannot count the calls. A call is identified by a hash of tool and input plus
 * a number that tells identical calls apart; the number is claimed with mkdir, which succeeds for only one of several
 * processes.
 *
 * A call without a result writes a file with its request and stops. The first such call waits briefly for calls that
 * run in parallel, then kills the program; a call that comes later is requested in the next round.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/librechat/librechat.h"

#define CALLS_NAME   "!brig_calls" /* before other names, so that no limit of artifacts leaves it out */
#define CALLS_FOLDER CALLS_NAME "/"
#define KEY_DIGITS   32 /* of the hash, followed by "." and the number */
#define KEY_MAX      40
#define CALLS_MAX    256

static const char program[] =
	"_brig_home=$PWD _brig_dir=$(mktemp -d)\n"
	"_brig_call() {\n"
	"	local input=${2:-'{}'} key number=1\n"
	"	key=$(printf '%s\\n%s' \"$1\" \"$input\" | md5sum)\n"
	"	key=${key%% *}\n"
	"	until mkdir \"$_brig_dir/$key.$number\" 2>/dev/null; do\n"
	"		if [[ ! -d $_brig_dir || $number -gt 999 ]]; then return 1; fi\n"
	"		number=$((number + 1))\n"
	"	done\n"
	"	key=$key.$number\n"
	"	if [[ -v _brig_results[$key] ]]; then printf '%s\\n' \"${_brig_results[$key]}\"; return 0; fi\n"
	"	if [[ -v _brig_errors[$key] ]]; then printf '%s\\n' \"${_brig_errors[$key]}\" >&2; return 1; fi\n"
	"	printf '%s\\n%s' \"$1\" \"$input\" >\"$_brig_dir/$key.call\"\n"
	"	mkdir -p \"$_brig_home/" CALLS_NAME "\"\n"
	"	mv \"$_brig_dir/$key.call\" \"$_brig_home/" CALLS_FOLDER "$key\"\n"
	"	if mkdir \"$_brig_dir/first\" 2>/dev/null; then sleep 0.1; kill -KILL $$; fi\n"
	"	sleep 600\n"
	"}\n";

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* Checked because the key becomes part of a program. */
static bool is_key(const char *key)
{
	size_t len = strlen(key);

	return len >= KEY_DIGITS + 2 && len <= KEY_MAX && strspn(key, "0123456789abcdef") == KEY_DIGITS &&
	       key[KEY_DIGITS] == '.' && strspn(key + KEY_DIGITS + 1, "0123456789") == len - KEY_DIGITS - 1;
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void add_quoted(struct buf *out, const char *text)
{
	(void)buf_adds(out, "'");
	for (const char *at = text; *at; at++)
		(void)(*at == '\'' ? buf_adds(out, "'\\''") : buf_add(out, at, 1));
	(void)buf_adds(out, "'");
}

/* A tool's result: a string as it is, anything else as JSON. */
static void add_result(struct buf *out, const char *key, const json_t *found)
{
	const json_t *result = json_object_get(found, "result");
	bool is_error = json_is_true(json_object_get(found, "is_error"));
	AUTO_FREE char *json = json_is_string(result) ? NULL : json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *text = json_is_string(result) ? json_string_value(result) : json ? json : "null";

	if (is_error)
		text = *text_of(found, "error_message") ? text_of(found, "error_message") : "the tool failed";
	(void)buf_addf(out, "%s[%s]=", is_error ? "_brig_errors" : "_brig_results", key);
	add_quoted(out, text);
	(void)buf_adds(out, "\n");
}

static void add_functions(struct buf *out, const json_t *tools)
{
	static const char *const words[] = { "if",      "then",     "else",     "elif",   "fi",     "case",
					     "esac",    "for",      "while",    "until",  "do",     "done",
					     "in",      "function", "select",   "time",   "coproc", "declare",
					     "typeset", "local",    "readonly", "export", "unset",  NULL };
	const json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool)
	{
		char name[128];

		librechat_function_name(text_of(tool, "name"), "- \t.", words, name, sizeof(name));
		if (!*name)
			continue;
		(void)buf_addf(out, "%s() { _brig_call ", name);
		add_quoted(out, text_of(tool, "name"));
		(void)buf_adds(out, " \"${1-}\"; }\n");
	}
}

char *librechat_wrap_bash(const json_t *doc)
{
	const json_t *results = json_object_get(doc, "results");
	json_t *keys = json_object_get(doc, "keys"), *key;
	AUTO_BUF out = BUF_INIT(MESSAGE_MAX);
	const char *id;

	(void)buf_adds(&out, "declare -A _brig_results=() _brig_errors=()\n");
	json_object_foreach(keys, id, key) if (json_object_get(results, id) && json_is_string(key) &&
					       is_key(json_string_value(key)))
		add_result(&out, json_string_value(key), json_object_get(results, id));
	(void)buf_adds(&out, program);
	add_functions(&out, json_object_get(doc, "tools"));
	(void)buf_adds(&out, text_of(doc, "code"));
	return out.full || out.no_memory ? NULL : buf_take(&out);
}

/* ---- requested calls ------------------------------------------------------------------------------------------- */

/* "!brig_calls/KEY" -> KEY; NULL: not a call file. */
static const char *key_of(const char *path)
{
	const char *key = path + strlen(CALLS_FOLDER);

	return strncmp(path, CALLS_FOLDER, strlen(CALLS_FOLDER)) == 0 && is_key(key) ? key : NULL;
}

/* The input in the form that the host's tools expect: an object, or else the text itself. */
static json_t *input_of(const char *text, size_t len)
{
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *input = door_parse(text, len, &err);

	if (json_is_object(input))
		return input;
	json_decref(input);
	return json_stringn(text, len);
}

static void add_call(json_t *keys, json_t *calls, const char *key, const json_t *content)
{
	const char *text = json_string_value(content), *end = text ? strchr(text, '\n') : NULL;
	char id[32];

	if (!end || json_object_size(keys) >= CALLS_MAX)
		return;
	(void)snprintf(id, sizeof(id), "call_%03zu", json_object_size(keys) + 1);
	(void)json_object_set_new(keys, id, json_string(key));
	(void)json_array_append_new(
		calls, json_pack("{s:s, s:s%, s:o}", "id", id, "name", text, (size_t)(end - text), "input",
				 input_of(end + 1, json_string_length(content) - (size_t)(end + 1 - text))));
}

json_t *librechat_bash_calls(json_t *doc, const json_t *result)
{
	json_t *calls = json_array(), *artifact;
	size_t i;

	json_array_foreach(json_object_get(result, "artifacts"), i, artifact)
	{
		const char *key = key_of(text_of(artifact, "path"));

		/* A file that is not text comes as base64 and is not a call. */
		if (key && str_eq(text_of(artifact, "content_encoding"), "utf-8"))
			add_call(json_object_get(doc, "keys"), calls, key, json_object_get(artifact, "content"));
	}
	if (json_array_size(calls) > 0)
		return calls;
	json_decref(calls);
	return NULL;
}
