/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own interface between its files; nothing of it is visible to the interpreter. */
#ifndef GUEST_WAIT_LIBRARY_H
#define GUEST_WAIT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/guest/wait.h"

#define WAIT_PATHS_MAX 4
#define WAIT_TEXT_MAX  1024

/* What the environment said.  All of it is wiped when the program goes on. */
struct wait_order {
	char paths[WAIT_TEXT_MAX]; /* texts with a zero byte after each */
	char warm[WAIT_TEXT_MAX];
	bool warms;                       /* the list was given, be it empty */
	const char *path[WAIT_PATHS_MAX]; /* the first is the program file */
	size_t n_paths;
	int sock;
};

/* order.c: reads the variables and removes them from the environment; ends the process if they are not as agreed. */
void order_take(struct wait_order *o);

/* claim.c: all of these end the process instead of failing. */
_Noreturn void wait_give_up(void);
void wait_for_claim(const struct wait_order *o);
_Noreturn void wait_report(const struct wait_order *o, enum guest_word_kind kind, size_t value);

/* shadow.c: whether the program's folder has a module of a name that was brought already. */
bool shadow_found(const char *program, bool (*brought)(const char *module));

/* python.c: around the wait, in the thread that waits.  Nothing is done in other interpreters. */
void python_before(const struct wait_order *o);
void python_after(const struct wait_order *o);

#endif
