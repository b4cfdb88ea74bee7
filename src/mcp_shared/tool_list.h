/* SPDX-License-Identifier: Apache-2.0 */
/* The tools as clients are shown them (data/mcp/tools.json). */
#ifndef MCP_SHARED_TOOL_LIST_H
#define MCP_SHARED_TOOL_LIST_H

#include <jansson.h>

#include "base/err.h"

/*
 * All of them, or only those that do without a project, in the words for that: entries of data/mcp/tools.json that have
 * `without_project`, with its description and without the arguments that it leaves out.  New; NULL: err says why.
 */
json_t *tools_load(bool with_project, struct brig_error *err);
/* The entry of one in what tools_load() gave. */
json_t *tools_entry(const json_t *tools, const char *name);

#endif
