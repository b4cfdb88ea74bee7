/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about CPython share: its functions, looked up by name, and what one does for the other. */
#ifndef GUEST_WAIT_PYTHON_H
#define GUEST_WAIT_PYTHON_H

#include <sys/types.h>

#include "backend/guest/wait/library.h"

struct py_object; /* CPython's PyObject */

/* CPython's PyMethodDef, part of its stable ABI. */
struct py_method {
	const char *name;
	struct py_object *(*call)(struct py_object *self, struct py_object *arguments);
	int flags;
	const char *doc;
};
#define PY_NO_ARGUMENTS 4 /* METH_NOARGS */

struct python_api {
#define PYTHON(result, name, arguments) result(*name) arguments;
#include "backend/guest/wait/python_api.def"
};
extern struct python_api py;

/* python.c: the module, new reference; not in sys.modules afterwards unless it was there. */
struct py_object *python_borrow(const char *name);

/* python_run.c: the next fopen() of the program is the interpreter's, to run it. */
void run_arm(const char *program);
/* Runs the program in file, and ends the process as Py_RunMain() does. */
_Noreturn void run_program(FILE *file, const char *path);

#define END_UNKNOWN (-1)

/* python_end.c: registers the handler that looks at how the program has ended; before modules are imported. */
void end_register(void);
/* Notes the modules that are there before the program; before gc.freeze(). */
void end_note_modules(void);
/* Again in a fork, whose handlers have changed some: threading has new locks. */
void end_note_changes(void);
/* The exit status that the process will have, once that is certain. */
void end_set_status(int status);
/* This process only rehearses: where it would exit after a plain end, written() is called. */
void end_rehearse(void (*written)(void));

#endif
