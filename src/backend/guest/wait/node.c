/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library does for Node.js before the wait.
 *
 * Node loads most of its own library when a program first needs it: the first console.log() to a pipe loads the modules
 * for sockets and streams, which takes a third of the time that a short program takes from its opening to its end.
 * They belong to Node, loading them runs no other code, and require() and import return the same objects afterwards; so
 * a Node that waits loads them first.  It is told by NODE_OPTIONS, the only way that needs no file in the cell and does
 * not appear in process.execArgv.  The variable is set before main(), which reads it once, and removed before the
 * program starts: neither the program nor its children see it.  If NODE_OPTIONS is set already, nothing is done.
 *
 * Worker threads inherit the parsed options, and load the same modules when they start.
 */
#include <dlfcn.h>
#include <string.h>

#include "backend/guest/wait/library.h"

#define VARIABLE "NODE_OPTIONS="

extern char **environ;

/* Modules for standard output and input, whatever these are connected to. */
static char options[] = VARIABLE "--require=net --require=tty --require=readline";

/* The entry in environ; NULL: none. */
static char **find_options(void)
{
	for (char **entry = environ; entry && *entry; entry++)
		if (strncmp(*entry, VARIABLE, strlen(VARIABLE)) == 0)
			return entry;
	return NULL;
}

/* order_take() has left room after the last entry. */
void node_before_main(const struct wait_order *o)
{
	size_t n = 0;

	if (!o->warms || !environ || !dlsym(RTLD_DEFAULT, "napi_module_register") || find_options())
		return;
	while (environ[n])
		n++;
	environ[n] = options;
	environ[n + 1] = NULL;
}

void node_before(void)
{
	char **entry = find_options();

	if (!entry || *entry != options)
		return;
	do
		entry[0] = entry[1];
	while (*entry++);
}
