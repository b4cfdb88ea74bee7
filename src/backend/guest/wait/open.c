/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is loaded into a guest's interpreter and stops it when it opens its program.
 *
 * A waiting cell is built before there is a program for it.  Fully confined, the payload executes the interpreter with
 * this library (LD_PRELOAD) and the path of a program file that is still empty.  The interpreter starts as usual; when
 * it opens that path, through one of the functions below, it waits for the supervisor's claim, fills the file (claim.c)
 * and continues as if nothing had happened.  Our variables are removed from the environment before the interpreter
 * looks at it (order.c).  A Python may import modules before it waits (python.c), a Node some of its own (node.c).
 * From then on every function here passes its call on, and the library's memory has no trace of what it did, except
 * that a warmed Python's program is run from here, so that its end costs less (python_run.c).  A zygote stops at the
 * same place, and its children continue (zygote.c).
 *
 * The library protects nothing and is not trusted: a program may do to it what it likes, and the program's confinement
 * was in force before exec.
 *
 * Any thread may be the one that waits, because Node reads ES modules in a worker; other threads that open the path
 * meanwhile wait with it. Files that the waiting thread itself opens, for instance a module to be imported, are passed
 * on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/guest/wait.h"
#include "backend/guest/wait/library.h"

static struct wait_order order;
static volatile bool armed; /* set before main(), cleared by the thread that has waited */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool inside __attribute__((tls_model("initial-exec"))); /* this is the thread that waits */

typedef int open_fn(const char *path, int flags, ...);
typedef int openat_fn(int dir, const char *path, int flags, ...);
typedef int open_2_fn(const char *path, int flags);
typedef int openat_2_fn(int dir, const char *path, int flags);
typedef FILE *fopen_fn(const char *path, const char *mode);

/* The interposed functions, as the next library defines them. */
static struct {
#define INTERPOSE(type, name) type *name;
#include "backend/guest/wait/functions.def"
} next;

/* Constructors of other libraries may run first and open files, so the first caller looks the functions up. */
static void find_next(void)
{
	const struct {
		void **where;
		const char *name;
	} rows[] = {
#define INTERPOSE(type, name) { (void **)&next.name, #name },
#include "backend/guest/wait/functions.def"
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		*rows[i].where = dlsym(RTLD_NEXT, rows[i].name);
	if (!next.openat)
		wait_give_up();
}

__attribute__((constructor)) static void begin(void)
{
	find_next();
	order_take(&order);
	node_before_main(&order);
	armed = true;
}

static void wait_once(void)
{
	inside = true;
	node_before();
	python_before(&order);
	if (order.walls) {
		zygote_have_children(&order);
		(void)munmap((void *)(uintptr_t)order.walls, order.walls_size);
	}
	wait_for_claim(&order);
	explicit_bzero(&order, sizeof(order));
	armed = false;
	inside = false;
}

static bool is_place(const char *path)
{
	for (size_t i = 0; i < order.n_paths; i++)
		if (strcmp(path, order.path[i]) == 0)
			return true;
	return false;
}

/* Called before every open: waits if the path is one to wait at. */
static void stop_at(const char *path)
{
	int saved = errno;

	if (!next.openat)
		find_next();
	if (armed && !inside && path && is_place(path))
		(void)pthread_once(&once, wait_once);
	errno = saved;
}

static bool has_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* The C library's headers redefine these names (inline versions, aliases), so ours are named for the linker only. */
#define PUBLIC(name) __asm__(#name) __attribute__((visibility("default")))

#define DEFINE_OPEN(name)                                                 \
	int public_##name(const char *path, int flags, ...) PUBLIC(name); \
	int public_##name(const char *path, int flags, ...)               \
	{                                                                 \
		mode_t mode = 0;                                          \
		va_list ap;                                               \
                                                                          \
		if (has_mode(flags)) {                                    \
			va_start(ap, flags);                              \
			mode = va_arg(ap, mode_t);                        \
			va_end(ap);                                       \
		}                                                         \
		stop_at(path);                                            \
		return next.name(path, flags, mode);                      \
	}

#define DEFINE_OPENAT(name)                                                        \
	int public_##name(int dir, const char *path, int flags, ...) PUBLIC(name); \
	int public_##name(int dir, const char *path, int flags, ...)               \
	{                                                                          \
		mode_t mode = 0;                                                   \
		va_list ap;                                                        \
                                                                                   \
		if (has_mode(flags)) {                                             \
			va_start(ap, flags);                                       \
			mode = va_arg(ap, mode_t);                                 \
			va_end(ap);                                                \
		}                                                                  \
		stop_at(path);                                                     \
		return next.name(dir, path, flags, mode);                          \
	}

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

/* What fortified code calls for open() without a mode. */
#define DEFINE_OPEN_2(name)                                          \
	int public_##name(const char *path, int flags) PUBLIC(name); \
	int public_##name(const char *path, int flags)               \
	{                                                            \
		stop_at(path);                                       \
		return next.name(path, flags);                       \
	}

#define DEFINE_OPENAT_2(name)                                                 \
	int public_##name(int dir, const char *path, int flags) PUBLIC(name); \
	int public_##name(int dir, const char *path, int flags)               \
	{                                                                     \
		stop_at(path);                                                \
		return next.name(dir, path, flags);                           \
	}

DEFINE_OPEN_2(__open_2)
DEFINE_OPEN_2(__open64_2)
DEFINE_OPENAT_2(__openat_2)
DEFINE_OPENAT_2(__openat64_2)

#define DEFINE_FOPEN(name)                                                    \
	FILE *public_##name(const char *path, const char *mode) PUBLIC(name); \
	FILE *public_##name(const char *path, const char *mode)               \
	{                                                                     \
		FILE *file;                                                   \
                                                                              \
		stop_at(path);                                                \
		file = next.name(path, mode);                                 \
		if (file)                                                     \
			python_run(file, path);                               \
		return file;                                                  \
	}

DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)
