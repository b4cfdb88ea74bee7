/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own interface between its files; nothing of it is visible to the interpreter. */
#ifndef GUEST_WAIT_LIBRARY_H
#define GUEST_WAIT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/guest/wait.h"
#include "backend/guest/walls.h"

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
	const struct guest_walls *walls; /* of a zygote; NULL: it is none */
	size_t walls_size;
};

/* order.c: reads the variables and removes them from the environment; ends the process if they are not as agreed. */
void order_take(struct wait_order *o);

/* claim.c: all of these end the process instead of failing. */
_Noreturn void wait_give_up(void);
void wait_for_claim(const struct wait_order *o);
/* Whether it could be sent; fd may be negative. */
bool wait_say(int sock, enum guest_word_kind kind, uint64_t value, int fd);
_Noreturn void wait_report(const struct wait_order *o, enum guest_word_kind kind, size_t value);

/* shadow.c: whether the program's folder has a module of a name that was brought already. */
bool shadow_found(const char *program, bool (*brought)(const char *module));

/* zygote.c: has children as it is told; returns in each of them, which then stands in a cell behind all its walls. */
void zygote_have_children(struct wait_order *o);
/* clone.c: a child that shares our memory runs run(arg) on the stack and ends; we go on when it has.  Its pid, or -errno. */
long clone_sharing(void *stack, size_t size, const int *pid_inside, void (*run)(void *arg), void *arg);
/* walls.c: the child's own steps.  fds are those of GUEST_FORK, and all closed but one: the return value is the new socket's. */
int walls_put_up(const struct guest_walls *w, const int *fds);
_Noreturn void walls_failed(int sock, enum guest_join step, int rc);
/* For the fault suite: whether the step is to fail or be left out instead of being taken; *ret_rc is then its value. */
bool walls_fault(const struct guest_walls *w, enum guest_join step, int *ret_rc);
/* pages.c: what memory it has is made its own now, so that nobody waits for it later. */
void pages_copy(bool has_huge_pages);

/* python.c: around the wait, in the thread that waits.  Nothing is done in other interpreters. */
void python_before(const struct wait_order *o);
void python_after(const struct wait_order *o);
/* Around a fork.  before: false: this is no Python. */
bool python_fork_before(void);
void python_fork_parent(void);
void python_fork_child(void);

/* node.c: which modules it loads first, said to a Node before its main(), and taken back in the thread that waits. */
void node_before_main(const struct wait_order *o);
void node_before(void);

#endif
