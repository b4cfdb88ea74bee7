/* SPDX-License-Identifier: Apache-2.0 */
/* The tools as shown to clients (data/mcp/tools.json). */
#ifndef MCP_SHARED_TOOL_LIST_H
#define MCP_SHARED_TOOL_LIST_H

#include <jansson.h>

#include "base/err.h"

/*
 * All tools, or only those that work without a project: the entries that have `without_project`, with the description
 * and without the arguments that it leaves out. A new reference; NULL: err says why.
 */
json_t *tools_load(bool with_project, struct brig_error *err);
/* The entry of a tool in the list from tools_load(). */
json_t *tools_entry(const json_t *tools, const char *name);

#endif
