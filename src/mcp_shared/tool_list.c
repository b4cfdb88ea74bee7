/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_shared/tool_list.h"

#include "base/str.h"
#include "mcp_shared/text.h"

#define ELSE "without_project"

extern const unsigned char mcp_tools_bytes[];
extern const size_t mcp_tools_size;

json_t *tools_entry(const json_t *list, const char *name)
{
	json_t *tool;
	size_t i;

	json_array_foreach(list, i, tool) if (str_eq(text_member(tool, "name"), name)) return tool;
	return NULL;
}

/* An outputSchema that is a string names a schema shared by several tools. */
static int put_schema(json_t *tool, const json_t *schemas)
{
	const json_t *named = json_object_get(tool, "outputSchema");

	if (!json_is_string(named))
		return 0;
	return json_object_set(tool, "outputSchema", json_object_get(schemas, json_string_value(named)));
}

static void do_without_project(json_t *tool)
{
	json_t *how = json_object_get(tool, ELSE), *text = json_object_get(how, "description");
	json_t *arguments = json_object_get(json_object_get(tool, "inputSchema"), "properties");
	const json_t *name;
	size_t i;

	if (text)
		(void)json_object_set(tool, "description", text);
	json_array_foreach(json_object_get(how, "leaves_out"), i, name)(void)
		json_object_del(arguments, json_string_value(name));
}

json_t *tools_load(bool with_project, struct brig_error *err)
{
	json_t *doc = json_loadb((const char *)mcp_tools_bytes, mcp_tools_size, 0, NULL),
	       *list = json_object_get(doc, "tools");
	int rc = list ? 0 : -1;

	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *tool = json_array_get(list, i);

		if (!with_project && !json_object_get(tool, ELSE)) {
			(void)json_array_remove(list, i);
			continue;
		}
		rc |= put_schema(tool, json_object_get(doc, "schemas"));
		if (!with_project)
			do_without_project(tool);
		(void)json_object_del(tool, ELSE);
	}
	list = rc == 0 ? json_incref(list) : NULL;
	json_decref(doc);
	if (!list)
		(void)err_set(err, BRIG_E_INTERNAL, 0, "the list of tools cannot be read");
	return list;
}
