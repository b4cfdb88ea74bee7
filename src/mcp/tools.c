/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/tools.h"

#include <string.h>

#include "base/str.h"
#include "mcp/text.h"

extern const unsigned char mcp_tools_bytes[];
extern const size_t mcp_tools_size;

#define TOOL(word, root) { .name = #word, .needs_root = root, .prepare = word##_prepare, .finish = word##_finish },
static const struct job tools[] = {
#include "mcp/tools.def"
};
#undef TOOL

const struct job *tool_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (str_eq(tools[i].name, name))
			return &tools[i];
	return NULL;
}

const json_t *tools_entry(const json_t *list, const char *name)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(list, i, tool) if (str_eq(text_member(tool, "name"), name)) return tool;
	return NULL;
}

/* A schema that several tools share is named by a word. */
static int put_schema(json_t *tool, const json_t *schemas)
{
	const json_t *named = json_object_get(tool, "outputSchema");

	if (!json_is_string(named))
		return 0;
	return json_object_set(tool, "outputSchema", json_object_get(schemas, json_string_value(named)));
}

json_t *tools_load(const struct mcp_options *options, struct brig_error *err)
{
	json_t *doc = json_loadb((const char *)mcp_tools_bytes, mcp_tools_size, 0, NULL),
	       *list = json_object_get(doc, "tools"), *tool;
	size_t i;
	int rc = list ? 0 : -1;

	json_array_foreach(list, i, tool)
	{
		rc |= put_schema(tool, json_object_get(doc, "schemas"));
		if (options->apply && str_eq(text_member(tool, "name"), "write_file"))
			rc |= json_object_set_new(json_object_get(tool, "annotations"), "destructiveHint", json_true());
	}
	list = rc == 0 ? json_incref(list) : NULL;
	json_decref(doc);
	if (!list)
		(void)err_set(err, BRIG_E_INTERNAL, 0, "the list of tools cannot be read");
	return list;
}

/* ---- what command lines share --------------------------------------------------------------------- */

int plan_project(struct call *call, struct invocation *p, bool must, struct brig_error *err)
{
	const char *root = call->server->root;

	if (!*root && must)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"There is no project: start the server with --workspace DIR, or let the client name a root. "
			"run_code works without one.");
	if (*root)
		invocation_addf(p, "--workspace=%s", root);
	return 0;
}

static void add_list(struct invocation *p, const char *option, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) invocation_addf(p, "--%s=%s", option, json_string_value(item));
}

void plan_run_options(const struct call *call, struct invocation *p)
{
	const json_t *timeout = json_object_get(call->args, "timeout"), *input = json_object_get(call->args, "stdin");
	const char *memory = text_member(call->args, "memory"), *environment = text_member(call->args, "environment");

	p->events = true;
	invocation_add(p, "--events");
	invocation_add(p, "--inline-artifacts=4m");
	if (timeout)
		invocation_addf(p, "--timeout=%.3fs", json_number_value(timeout));
	if (*memory)
		invocation_addf(p, "--memory=%s", memory);
	add_list(p, "packages", json_object_get(call->args, "packages"));
	if (*environment)
		invocation_addf(p, "--env-name=%s", environment);
	add_list(p, "artifact", json_object_get(call->args, "artifacts"));
	if (input)
		invocation_addf(p, "--stdin=/dev/fd/%d",
				invocation_inherit(p, json_string_value(input), json_string_length(input)));
	else
		invocation_add(p, "--stdin=none");
}

/* Adds the components of a path but "."; false if one is "..". */
static bool add_components(struct buf *out, const char *path)
{
	size_t begin = out->len;

	for (const char *part = path; *part; part += strspn(part, "/")) {
		size_t len = strcspn(part, "/");

		if (len == 2 && strncmp(part, "..", 2) == 0)
			return false;
		if (len > 1 || *part != '.')
			buf_addf(out, "%s%.*s", out->len > begin ? "/" : "", (int)len, part);
		part += len;
	}
	return true;
}

int argument_path(const struct call *call, const char *name, struct buf *ret, struct brig_error *err)
{
	const json_t *value = json_object_get(call->args, name);
	const char *path = value ? json_string_value(value) : "", *inside = "/workspace";

	if (value && strlen(path) != json_string_length(value))
		return err_set(err, BRIG_E_USAGE, 0, "A path has no NUL in it.");
	if (strncmp(path, inside, strlen(inside)) == 0 && (path[strlen(inside)] == '/' || !path[strlen(inside)]))
		path += strlen(inside) + strspn(path + strlen(inside), "/"); /* as programs in cells see it */
	buf_adds(ret, "./");
	if (*path == '/' || !add_components(ret, path))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"'%.200s' is not in the project: give a path below it, without '..' and without '/' in front.",
			path);
	return ret->no_memory ? err_nomem(err) : 0;
}

int argument_word(const struct call *call, const char *name, const char **ret, struct brig_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	*ret = text_member(call->args, name);
	if (**ret && **ret != '-' && strspn(*ret, letters) == strlen(*ret))
		return 0;
	return err_set(err, BRIG_E_USAGE, 0, "%s '%.60s' is none: it has letters, digits and '-' only.", name, *ret);
}

bool answer_complaint(const struct outcome *o, struct answer *a)
{
	if (json_is_object(o->doc))
		return false;
	(void)err_set(&a->why, BRIG_E_REFUSED, 0, "%.400s",
		      *o->complaint ? o->complaint : "brig gave no answer: ask again");
	return true;
}
