/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/tools.h"

#include <string.h>

#include "base/str.h"
#include "mcp_shared/text.h"

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

/* ---- shared by command lines ------------------------------------------------------------------------ */

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

/* Adds the components of a path except "."; false if one is "..". */
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
		/* the path as programs in cells see it */
		path += strlen(inside) + strspn(path + strlen(inside), "/");
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
