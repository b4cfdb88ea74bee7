/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that implement tools. */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include "mcp/server.h"

#define TOOL(name, needs_root)                                                               \
	int name##_prepare(struct call *call, struct invocation *p, struct brig_error *err); \
	enum job_next name##_finish(struct call *call, const struct outcome *o, struct answer *a);
#include "mcp/tools.def"
#undef TOOL

/* Begins a command in the project, if there is one; -BRIG_E_REFUSED if must and there is none. */
int plan_project(struct call *call, struct invocation *p, bool must, struct brig_error *err);
/* Adds what every run has: events, limits, packages, artifacts. */
void plan_run_options(const struct call *call, struct invocation *p);
/*
 * Converts an argument to a path relative to the project, with "./" in front; "" is the project itself. Refuses paths
 * that lead out.
 */
int argument_path(const struct call *call, const char *name, struct buf *ret, struct brig_error *err);
/* An argument that is a single command-line word: letters, digits, '-' and '_', starting with a letter or digit. */
int argument_word(const struct call *call, const char *name, const char **ret, struct brig_error *err);
/* If the child printed no document, answers with its complaint. False: it printed one. */
bool answer_complaint(const struct outcome *o, struct answer *a);

/* Adds a file to a tar archive; false: no memory. */
bool tar_add(struct buf *tar, const char *path, const char *data, size_t len);
bool tar_end(struct buf *tar);

#endif
