/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done for Node.js before the wait.
 *
 * Node loads most of its own library when a program first needs it: the first console.log() into a pipe brings the modules of
 * sockets and streams, which takes a third of the time that a short program takes from its opening to its end.  They come with
 * Node, nobody's code runs when they are loaded, and require() and import give the same objects afterwards; so a Node that
 * waits loads them first.  It is asked to by NODE_OPTIONS, which is the one way that needs no file in the cell and does not
 * show in process.execArgv.  The variable is set before main(), which reads it once, and taken back before the program is
 * there: neither the program nor its children see it.  A program with options of its own is left alone.
 *
 * Worker threads inherit the parsed options, and load the same modules when they start.
 */
#include <dlfcn.h>
#include <string.h>

#include "backend/guest/wait/library.h"

#define VARIABLE "NODE_OPTIONS="

extern char **environ;

/* Modules for standard output and input, whatever they are connected to. */
static char options[] = VARIABLE "--require=net --require=tty --require=readline";

/* An entry of environ; NULL: there is none. */
static char **find_options(void)
{
	for (char **entry = environ; entry && *entry; entry++)
		if (strncmp(*entry, VARIABLE, strlen(VARIABLE)) == 0)
			return entry;
	return NULL;
}

/* order_take() has left room behind the last entry. */
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
