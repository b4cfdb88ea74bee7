/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a warmed Python ends.
 *
 * When CPython ends it takes everything apart: it clears all modules, frees their objects and then its own types and
 * strings.  In a fork of a zygote that writes to nearly every page from before the program, and each first write copies
 * the page: more work than most programs do.  A program can notice only what becomes of its own objects.
 *
 * So two things are left out if the program's end is *plain*:
 *
 *	modules from before the program	are taken out of sys.modules, with a reference of ours: finalisation clears
 *					the program's own and those that it has imported
 *	the interpreter's own parts	when the last finaliser has run, the process exits, if its status is known
 *
 * Plain means: no other thread exists, stdout and stderr are those of the start and have nothing to flush, and each
 * module from before the program has the contents that it had, apart from submodules and values that refer to nothing
 * (numbers, strings).  All that is left to finalise is then the program's own, and nothing of it can tell the
 * difference (docs/WARM.md has the exceptions).  Otherwise the interpreter is finalised in full.
 *
 * That is decided by a handler that is registered before all others, and so called after them, when Py_FinalizeEx() has
 * waited for threads and before it takes anything apart.
 *
 * What exits the process is a capsule with the name __builtins__ in the dictionary of sys: the one name that
 * finalisation leaves in there until that dictionary itself is cleared, and that is the last thing done to the
 * interpreter's state.  In a version in which it is never released there, the process ends in full.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/guest/wait/python.h"

/* A module from before the program. */
struct before {
	struct py_object *name, *module, *contents; /* the last is a copy of its dictionary */
};

static const char *const simple_types[] = { "bool", "int", "float", "str", "bytes" };
#define N_SIMPLE_TYPES (sizeof(simple_types) / sizeof(simple_types[0]))

static struct {
	bool is_noted;
	struct before *modules;
	size_t n_modules;
	struct py_object *module_type, *simple_type[N_SIMPLE_TYPES], *out, *err;
	int status;
	void (*rehearsed)(void); /* called instead of exiting */
} before = { .status = END_UNKNOWN };

static struct py_object *module_named(const char *name)
{
	return py.PyDict_GetItemString(py.PyImport_GetModuleDict(), name); /* borrowed reference */
}

static bool is_module(struct py_object *object)
{
	return py.PyObject_IsInstance(object, before.module_type) == 1;
}

/* ---- before the program --------------------------------------------------------------------------------- */

/* Takes references that are never given back: gc.freeze() puts these objects aside, too. */
static bool note_module(struct py_object *name, struct py_object *module)
{
	struct py_object *contents = is_module(module) ? py.PyDict_Copy(py.PyModule_GetDict(module)) : NULL;

	if (!contents)
		return false;
	py.Py_IncRef(name);
	py.Py_IncRef(module);
	before.modules[before.n_modules++] = (struct before){ name, module, contents };
	return true;
}

/* False if something among them is no module, or without memory. */
static bool note_each(struct py_object *modules)
{
	struct py_object *name, *module, *program = module_named("__main__");
	ssize_t at = 0;

	before.modules = calloc((size_t)py.PyDict_Size(modules), sizeof(before.modules[0]));
	if (!before.modules)
		return false;
	while (py.PyDict_Next(modules, &at, &name, &module))
		if (module != program && !note_module(name, module))
			return false;
	return true;
}

void end_note_modules(void)
{
	struct py_object *builtins = py.PyModule_GetDict(module_named("builtins"));

	before.module_type = py.PyObject_Type(module_named("sys"));
	before.out = py.PySys_GetObject("stdout"); /* borrowed references, made ours */
	before.err = py.PySys_GetObject("stderr");
	if (!before.module_type || !before.out || !before.err)
		return;
	py.Py_IncRef(before.out);
	py.Py_IncRef(before.err);
	for (size_t i = 0; i < N_SIMPLE_TYPES; i++) /* borrowed, and never freed */
		before.simple_type[i] = py.PyDict_GetItemString(builtins, simple_types[i]);
	before.is_noted = note_each(py.PyImport_GetModuleDict());
	py.PyErr_Clear();
}

void end_set_status(int status)
{
	before.status = status;
}

void end_rehearse(void (*written)(void))
{
	before.rehearsed = written;
}

/* ---- whether the end is plain --------------------------------------------------------------------------- */

static bool is_only_thread(void)
{
	struct py_object *threads = module_named("_thread");
	struct py_object *count = threads ? py.PyObject_CallMethod(threads, "_count", NULL) : NULL;
	bool is = count && py.PyLong_AsLong(count) == 0;

	if (count)
		py.Py_DecRef(count);
	py.PyErr_Clear();
	return is;
}

/* Through its type, since the program may have given the object a method of its own. */
static bool is_flushed(const char *name, struct py_object *stream)
{
	struct py_object *type, *result;

	if (py.PySys_GetObject(name) != stream)
		return false;
	type = py.PyObject_Type(stream);
	result = type ? py.PyObject_CallMethod(type, "flush", "O", stream) : NULL;
	if (result)
		py.Py_DecRef(result);
	if (type)
		py.Py_DecRef(type);
	py.PyErr_Clear();
	return result;
}

/* An import adds a submodule to its package; printing an exception adds it to sys, and finalisation removes it. */
static bool may_be_new(struct py_object *name, struct py_object *value)
{
	static const char *const last[] = { "last_type", "last_value", "last_traceback", "last_exc" };

	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (py.PyUnicode_CompareWithASCIIString(name, last[i]) == 0)
			return true;
	return is_module(value);
}

/* Whether it is of a type whose objects refer to no others and have no finaliser, such as threading's flags. */
static bool refers_to_nothing(struct py_object *value)
{
	struct py_object *type = py.PyObject_Type(value);
	bool found = false;

	for (size_t i = 0; i < N_SIMPLE_TYPES && !found; i++)
		found = type == before.simple_type[i];
	py.Py_DecRef(type);
	return found;
}

/*
 * Walks both dictionaries side by side: they keep the order in which their names came, so what is new comes last.  A
 * name that was removed, even if it was added again, is a change.
 */
static bool is_unchanged(const struct before *m)
{
	struct py_object *name, *value, *old_name, *old;
	ssize_t at = 0, at_old = 0;
	bool has_old = true;

	if (py.PyDict_GetItem(py.PyImport_GetModuleDict(), m->name) != m->module)
		return false;
	while (py.PyDict_Next(py.PyModule_GetDict(m->module), &at, &name, &value)) {
		has_old = has_old && py.PyDict_Next(m->contents, &at_old, &old_name, &old);
		if (has_old && name != old_name)
			return false;
		if (!(has_old && value == old) && !refers_to_nothing(value) && (has_old || !may_be_new(name, value)))
			return false;
	}
	return !py.PyDict_Next(m->contents, &at_old, &old_name, &old);
}

static void note_changes(const struct before *m)
{
	struct py_object *name, *value;
	ssize_t at = 0;

	while (py.PyDict_Next(py.PyModule_GetDict(m->module), &at, &name, &value))
		if (py.PyDict_GetItem(m->contents, name) != value)
			(void)py.PyDict_SetItem(m->contents, name, value);
}

/* Of the library's modules only threading gets new attributes; whoever has it may have others that do. */
void end_note_changes(void)
{
	if (!module_named("threading"))
		return;
	for (size_t i = 0; before.is_noted && i < before.n_modules; i++)
		if (!is_unchanged(&before.modules[i]))
			note_changes(&before.modules[i]);
	py.PyErr_Clear();
}

static bool is_plain(void)
{
	if (!before.is_noted || !is_only_thread() || !is_flushed("stdout", before.out) ||
	    !is_flushed("stderr", before.err))
		return false;
	for (size_t i = 0; i < before.n_modules; i++)
		if (!is_unchanged(&before.modules[i]))
			return false;
	return true;
}

/* ---- a plain end ---------------------------------------------------------------------------------------- */

static void exit_at_last(struct py_object *capsule)
{
	(void)capsule;
	if (py.Py_IsInitialized())
		return;
	if (before.rehearsed)
		before.rehearsed();
	exit(before.status);
}

static void exit_when_finalised(void)
{
	struct py_object *capsule = py.PyCapsule_New(&before, NULL, exit_at_last);

	if (capsule) {
		(void)py.PySys_SetObject("__builtins__", capsule);
		py.Py_DecRef(capsule);
	}
	py.PyErr_Clear();
}

static void leave_out_modules(void)
{
	struct py_object *sys = module_named("sys"), *builtins = module_named("builtins");

	for (size_t i = 0; i < before.n_modules; i++) /* these two are the interpreter's own to clear */
		if (before.modules[i].module != sys && before.modules[i].module != builtins)
			(void)py.PyDict_DelItem(py.PyImport_GetModuleDict(), before.modules[i].name);
	py.PyErr_Clear();
}

/* With a frame, it is the program that has called the handlers; a rehearsal takes place where one exists. */
static struct py_object *at_end(struct py_object *self, struct py_object *arguments)
{
	(void)self;
	(void)arguments;
	if ((before.rehearsed || !py.PyEval_GetFrame()) && is_plain()) {
		leave_out_modules();
		if (before.status != END_UNKNOWN)
			exit_when_finalised();
	}
	return py.Py_BuildValue("");
}

/* The module is kept: Python 3.9 has a pointer to it from its first import on, without a reference. */
void end_register(void)
{
	static struct py_method method = { "at_end", at_end, PY_NO_ARGUMENTS, NULL };
	struct py_object *handlers = python_borrow("atexit"), *handler = py.PyCFunction_NewEx(&method, NULL, NULL);
	struct py_object *result = handler ? py.PyObject_CallMethod(handlers, "register", "O", handler) : NULL;

	if (!result)
		wait_give_up();
	py.Py_DecRef(result);
	py.Py_DecRef(handler);
}
