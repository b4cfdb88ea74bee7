/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brig as a server of the Model Context Protocol (docs/MCP.md).
 *
 *	rpc         lines and messages of JSON-RPC
 *	session     what the protocol says: both eras, versions, roots; hands calls on
 *	calls       calls that run: a queue, progress, cancelling, answers
 *	child       one command of this very program, as a child that is read without waiting
 *	tools.def   the tools; tool_*.c make of arguments a command line, and of its outcome an answer
 *	resources   executions and the policy, by address
 *	stdio       the loop over standard input and output
 *
 * Nothing is run, inspected or read from a project in this process: every call is a child `brig run|exec|test|check|...`,
 * so no call can make another one wait, and killing the server ends them all.
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include "base/err.h"

struct mcp_options {
	const char *workspace; /* the project's folder; NULL: the client's first root, if it has one */
	const char *policy, *preset, *trust, *state; /* as of every command; NULL: theirs */
	const char *const *settings;                 /* "KEY=VALUE" for every run */
	size_t n_settings;
	bool apply;   /* write_file changes the project at once */
	bool history; /* executions of others, too, can be asked for */
};

/* Serves standard input and output until the input ends or stop_fd becomes readable. */
int mcp_serve_stdio(const struct mcp_options *options, int stop_fd, struct brig_error *err);

#endif
