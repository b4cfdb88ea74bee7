/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interfaces of the library; nothing of it is visible to the interpreter. */
#ifndef GUEST_WAIT_LIBRARY_H
#define GUEST_WAIT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "backend/guest/wait.h"
#include "backend/guest/walls.h"

#define WAIT_PATHS_MAX 4
#define WAIT_TEXT_MAX  1024

/* Contents of the environment variables.  Wiped when the program continues. */
struct wait_order {
	char paths[WAIT_TEXT_MAX]; /* strings, each with its NUL */
	char warm[WAIT_TEXT_MAX];
	bool warms;                       /* the list was given, possibly empty */
	const char *path[WAIT_PATHS_MAX]; /* the first is the program file */
	size_t n_paths;
	int sock;
	const struct guest_walls *walls; /* for a zygote; NULL: not a zygote */
	size_t walls_size;
};

/* order.c: reads the variables and removes them from the environment; exits if they are malformed. */
void order_take(struct wait_order *o);

/* claim.c: these exit the process instead of failing. */
_Noreturn void wait_give_up(void);
void wait_for_claim(const struct wait_order *o);
/* Whether the record could be sent; fd may be negative. */
bool wait_say(int sock, enum guest_word_kind kind, uint64_t value, int fd);
_Noreturn void wait_report(const struct wait_order *o, enum guest_word_kind kind, size_t value);

/* shadow.c: whether the program's directory has a module with a name that was imported already. */
bool shadow_found(const char *program, bool (*brought)(const char *module));

/* zygote.c: forks children as ordered; returns in each of them, inside its cell and confined. */
void zygote_have_children(struct wait_order *o);
/*
 * clone.c: runs run(arg) in a child that shares our memory, on the given stack; returns when it has exited.  Its pid,
 * or -errno.
 */
long clone_sharing(void *stack, size_t size, const int *pid_inside, void (*run)(void *arg), void *arg);
/*
 * walls.c: the child's own steps.  Closes fds, which are those of GUEST_FORK, except the socket, whose new number it
 * returns.
 */
int walls_put_up(const struct guest_walls *w, const int *fds);
_Noreturn void walls_failed(int sock, enum guest_join step, int rc);
/* For the fault suite: whether the step must fail or be omitted; *ret_rc is then its result. */
bool walls_fault(const struct guest_walls *w, enum guest_join step, int *ret_rc);
/*
 * pages.c: copies the pages that a program is going to write now, so that no request waits for that later.  A zygote
 * calls share once, learn before each fork and child_made after it.  A child calls copy as soon as it can, and
 * rehearse when the interpreter is set up as a fork: there the first one finds the pages, and the list is unmapped.
 */
void pages_share(void);
void pages_learn(void);
void pages_child_made(void);
void pages_rehearse(void);
void pages_copy(void);

/* python.c: called before and after the wait, in the thread that waits.  No effect in other interpreters. */
void python_before(const struct wait_order *o);
void python_after(const struct wait_order *o);
/* Called around a fork.  before returns false if the interpreter is not Python. */
bool python_fork_before(void);
void python_fork_parent(void);
void python_fork_child(void);
/* In a copy of a child: runs a small program to its end as a request's would be run, and calls written() at the end. */
_Noreturn void python_rehearse(void (*written)(void));

/*
 * python_run.c: called with every file that fopen() has opened.  If it is the program of a warmed Python, runs it and
 * exits as the interpreter would.
 */
void python_run(FILE *file, const char *path);

/* node.c: called before main() to make Node preload modules, and in the thread that waits to undo that. */
void node_before_main(const struct wait_order *o);
void node_before(void);

#endif
