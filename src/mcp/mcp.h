/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brig as a server of the Model Context Protocol (docs/MCP.md).
 *
 *	rpc         lines and messages of JSON-RPC
 *	session     the protocol: both eras, versions, roots; dispatches calls
 *	calls       running calls: queue, progress, cancellation, answers
 *	child       one brig command as a child process, read without blocking
 *	tools.def   the tools; tool_*.c convert arguments to a command line, and its outcome to an answer
 *	resources   executions and the policy, as resources
 *	stdio       the loop over standard input and output
 *
 * This process runs, inspects and reads nothing of a project itself: every call is a child `brig
 * run|exec|test|check|...`, so no call can block another one, and killing the server ends them all.
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include "base/err.h"

struct mcp_options {
	const char *workspace;                       /* the project's folder; NULL: the client's first root, if any */
	const char *policy, *preset, *trust, *state; /* as for every command; NULL: the default */
	const char *const *settings;                 /* "KEY=VALUE" for every run */
	size_t n_settings;
	bool apply;   /* write_file changes the project immediately */
	bool history; /* executions of others are visible as well */
};

/* Serves standard input and output until the input ends or stop_fd becomes readable. */
int mcp_serve_stdio(const struct mcp_options *options, int stop_fd, struct brig_error *err);

#endif
