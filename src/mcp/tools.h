/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of tools share. */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include "mcp/server.h"

#define TOOL(name, needs_root)                                                               \
	int name##_prepare(struct call *call, struct invocation *p, struct brig_error *err); \
	enum job_next name##_finish(struct call *call, const struct outcome *o, struct answer *a);
#include "mcp/tools.def"
#undef TOOL

/* Begins a command that works in the project, if there is one; -BRIG_E_REFUSED if there must be. */
int plan_project(struct call *call, struct invocation *p, bool must, struct brig_error *err);
/* What every run has: events, limits, packages, artifacts. */
void plan_run_options(const struct call *call, struct invocation *p);
/* An argument as a path below the project, behind "./"; "" is its top.  Refused if it leads out. */
int argument_path(const struct call *call, const char *name, struct buf *ret, struct brig_error *err);
/* An argument that is one word of a command line: letters, digits, '-' and '_', with a letter or a digit in front. */
int argument_word(const struct call *call, const char *name, const char **ret, struct brig_error *err);
/* A child that asks printed no document: says what it complained of.  False: it did print one. */
bool answer_complaint(const struct outcome *o, struct answer *a);

/* Files by path as a tar archive; false: no memory. */
bool tar_add(struct buf *tar, const char *path, const char *data, size_t len);
bool tar_end(struct buf *tar);

#endif
