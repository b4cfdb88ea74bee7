/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the program of a warmed Python, at the place where the interpreter has opened it for that.
 *
 * It does what Py_RunMain() does from there on, with the same functions and in the same order, so that no Python frame
 * exists around the program: sets __main__'s attributes, runs the file, flushes the streams, prints an exception,
 * finalises, exits.  The only difference is that the exit status is known before the interpreter is finalised, and told
 * to python_end.c.
 *
 * The interpreter itself handles SystemExit in PyErr_Print(), which then does not return; its status is read before.
 */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/guest/wait/python.h"

#define FILE_INPUT       257 /* Py_file_input */
#define STATUS_UNFLUSHED 120 /* Py_RunMain()'s if Py_FinalizeEx() fails */

static struct {
	bool armed;
	char path[WAIT_TEXT_MAX];
	/* Types of the interpreter, which are never freed; a program can take away their names. */
	struct py_object *integer, *system_exit, *keyboard_interrupt;
} program;

void run_arm(const char *path)
{
	if (strlen(path) < sizeof(program.path)) {
		strcpy(program.path, path);
		program.armed = true;
	}
}

/* ---- before it ------------------------------------------------------------------------------------------ */

/* Whether the interpreter would take it for compiled code (maybe_pyc_file()). */
static bool is_compiled(FILE *file)
{
	unsigned char first[2];
	bool is = fread(first, 1, sizeof(first), file) == sizeof(first) &&
		  (first[0] | first[1] << 8) == (py.PyImport_GetMagicNumber() & 0xffff);

	rewind(file);
	return is;
}

static struct py_object *contents_of(const char *module)
{
	struct py_object *found = py.PyDict_GetItemString(py.PyImport_GetModuleDict(), module); /* borrowed */

	return found ? py.PyModule_GetDict(found) : NULL;
}

static bool note_types(void)
{
	struct py_object *builtins = contents_of("builtins");

	program.integer = py.PyDict_GetItemString(builtins, "int");
	program.system_exit = py.PyDict_GetItemString(builtins, "SystemExit");
	program.keyboard_interrupt = py.PyDict_GetItemString(builtins, "KeyboardInterrupt");
	return program.integer && program.system_exit && program.keyboard_interrupt;
}

/* Gives the dictionary of __main__ what the program sees there.  False with an exception. */
static bool describe_file(struct py_object *dict, const char *path)
{
	struct py_object *importlib =
		py.PyDict_GetItemString(py.PyImport_GetModuleDict(), "_frozen_importlib_external");
	struct py_object *loader, *name = py.Py_BuildValue("s", path), *none = py.Py_BuildValue("");
	bool done = false;

	if (name && none && importlib && py.PyDict_SetItemString(dict, "__file__", name) == 0 &&
	    py.PyDict_SetItemString(dict, "__cached__", none) == 0) {
		loader = py.PyObject_CallMethod(importlib, "SourceFileLoader", "sO", "__main__", name);
		done = loader && py.PyDict_SetItemString(dict, "__loader__", loader) == 0;
		if (loader)
			py.Py_DecRef(loader);
	}
	if (name)
		py.Py_DecRef(name);
	if (none)
		py.Py_DecRef(none);
	return done;
}

/* ---- after it ------------------------------------------------------------------------------------------- */

static void flush_stream(const char *name)
{
	struct py_object *stream = py.PySys_GetObject(name), *result; /* borrowed */

	if (!stream)
		return;
	py.Py_IncRef(stream);
	result = py.PyObject_CallMethod(stream, "flush", NULL);
	if (result)
		py.Py_DecRef(result);
	else
		py.PyErr_Clear();
	py.Py_DecRef(stream);
}

/* Keeps the exception. */
static void flush_streams(void)
{
	struct py_object *type, *value, *traceback;

	py.PyErr_Fetch(&type, &value, &traceback);
	flush_stream("stderr");
	flush_stream("stdout");
	py.PyErr_Restore(type, value, traceback);
}

/* The status of sys.exit() without an argument, with None or with a number; END_UNKNOWN: the interpreter will see. */
static int status_of(struct py_object *code)
{
	struct py_object *none = py.Py_BuildValue("");
	int status = END_UNKNOWN;
	long number;

	if (code == none) {
		status = 0;
	} else if (py.PyObject_IsInstance(code, program.integer) == 1) {
		number = py.PyLong_AsLong(code);
		if (!py.PyErr_Occurred())
			status = (int)number & 0xff;
	}
	py.PyErr_Clear();
	py.Py_DecRef(none);
	return status;
}

/* For SystemExit itself: subclasses may compute their code. */
static int status_of_exception(void)
{
	struct py_object *type, *value, *traceback, *code;
	int status = END_UNKNOWN;

	py.PyErr_Fetch(&type, &value, &traceback);
	if (type == program.system_exit) {
		code = value && py.PyObject_IsInstance(value, type) == 1 ? py.PyObject_GetAttrString(value, "code")
									 : value;
		if (code)
			status = status_of(code);
		if (code && code != value)
			py.Py_DecRef(code);
		py.PyErr_Clear();
	}
	py.PyErr_Restore(type, value, traceback);
	return status;
}

static _Noreturn void end(int status, bool interrupted)
{
	if (!interrupted)
		end_set_status(status);
	if (py.Py_FinalizeEx() < 0)
		status = STATUS_UNFLUSHED;
	if (interrupted) { /* whoever waits for the process sees the signal */
		(void)signal(SIGINT, SIG_DFL);
		(void)kill(getpid(), SIGINT);
		status = 128 + SIGINT;
	}
	exit(status);
}

/* ---- it ------------------------------------------------------------------------------------------------- */

/* Whether it ended without an exception. */
static bool run_in(struct py_object *dict, FILE *file, const char *path)
{
	struct py_object *result = NULL;

	if (describe_file(dict, path))
		result = py.PyRun_FileExFlags(file, path, FILE_INPUT, dict, dict, 1, NULL);
	flush_streams();
	if (result)
		py.Py_DecRef(result);
	return result;
}

/* Does not return after SystemExit.  Otherwise says whether the program was interrupted. */
static bool print_exception(void)
{
	bool interrupted = py.PyErr_Occurred() == program.keyboard_interrupt;

	end_set_status(status_of_exception());
	py.PyErr_Print();
	end_set_status(END_UNKNOWN);
	return interrupted;
}

static void forget_file(struct py_object *dict)
{
	if (py.PyDict_DelItemString(dict, "__file__") < 0)
		py.PyErr_Clear();
	if (py.PyDict_DelItemString(dict, "__cached__") < 0)
		py.PyErr_Clear();
}

/* Nobody else may refer to __main__ when the interpreter is finalised: finalisers would find its contents cleared. */
_Noreturn void run_program(FILE *file, const char *path)
{
	struct py_object *module = py.PyDict_GetItemString(py.PyImport_GetModuleDict(), "__main__"); /* borrowed */
	struct py_object *dict = module ? py.PyModule_GetDict(module) : NULL;
	bool worked, interrupted = false;

	if (!dict || !note_types() || py.PyDict_GetItemString(dict, "__file__") || is_compiled(file))
		end(py.PyRun_AnyFileExFlags(file, path, 1, NULL) != 0, false);
	py.Py_IncRef(module);
	worked = run_in(dict, file, path);
	if (worked) {
		forget_file(dict);
		py.Py_DecRef(module);
	} else {
		py.Py_DecRef(module);
		interrupted = print_exception();
		if (contents_of("__main__") == dict) /* otherwise it may be gone, with the program's module */
			forget_file(dict);
		py.PyErr_Clear();
	}
	end(worked ? 0 : 1, interrupted);
}

void python_run(FILE *file, const char *path)
{
	int state;

	if (!program.armed || strcmp(path, program.path) != 0)
		return;
	program.armed = false;
	state = py.PyGILState_Ensure();
	if (!py.PyEval_GetFrame())
		run_program(file, path);
	py.PyGILState_Release(state);
}
