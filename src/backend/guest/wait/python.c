/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done for CPython around the wait.
 *
 * At the first opening of its program (zipimport looks whether it is an archive) the interpreter is initialised, `site`
 * is imported, the program's folder is not yet in sys.path, and the lock of the interpreter is free.  If there is a list
 * of modules, be it empty, they are imported then, and what lives is collected and put aside from the garbage collector
 * (gc.freeze).  After the claim `__main__` becomes a new module of the same contents: the old one is put aside too, and what the
 * program ties to it would never be finalised.  Without a list nothing at all is done.
 *
 * Through the functions that every CPython since 3.9 has had, found by name; where they are not, it is no Python.
 * A process that was started in its cell needs no new seeds: it was never a copy of another.  A zygote's child gets them
 * from the interpreter's own handlers, and here where those forget one.
 */
#include <dlfcn.h>
#include <string.h>

#include "backend/guest/wait/library.h"

struct py_object;

static struct {
#define PYTHON(result, name, arguments) result(*name) arguments;
#include "backend/guest/wait/python_api.def"
} py;
static struct py_object *known; /* sys.modules before the list was imported; NULL: nothing was done */

static bool find_python(void)
{
	const struct {
		void **where;
		const char *name;
	} rows[] = {
#define PYTHON(result, name, arguments) { (void **)&py.name, #name },
#include "backend/guest/wait/python_api.def"
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*rows[i].where = dlsym(RTLD_DEFAULT, rows[i].name);
		if (!*rows[i].where)
			return false;
	}
	return py.Py_IsInitialized && py.Py_IsInitialized();
}

static bool was_brought(const char *module)
{
	return py.PyDict_GetItemString(py.PyImport_GetModuleDict(), module) && !py.PyDict_GetItemString(known, module);
}

static void import_modules(const struct wait_order *o)
{
	char names[WAIT_TEXT_MAX], *rest = names, *name;
	struct py_object *module;

	known = py.PyDict_Copy(py.PyImport_GetModuleDict());
	if (!known)
		wait_give_up();
	if (o->warm[0] == '\0')
		return;
	memcpy(names, o->warm, sizeof(names));
	for (size_t i = 0; (name = strsep(&rest, ",")) != NULL; i++) {
		module = py.PyImport_ImportModule(name);
		if (!module)
			wait_report(o, GUEST_FAILED, i);
		py.Py_DecRef(module);
	}
}

static void call(struct py_object *object, const char *method)
{
	struct py_object *result = py.PyObject_CallMethod(object, method, NULL);

	if (!result)
		wait_give_up();
	py.Py_DecRef(result);
}

/* The module gc is not in sys.modules afterwards if it was not before. */
static void freeze(void)
{
	struct py_object *modules = py.PyImport_GetModuleDict(); /* borrowed */
	bool was_there = py.PyDict_GetItemString(modules, "gc");
	struct py_object *gc = py.PyImport_ImportModule("gc");

	if (!gc)
		wait_give_up();
	if (!was_there && py.PyDict_DelItemString(modules, "gc") < 0)
		wait_give_up();
	call(gc, "collect");
	call(gc, "freeze");
	py.Py_DecRef(gc);
}

/* Same contents in the same order; but the dictionary of annotations, if there is one, is as new as the module. */
static void renew_main(void)
{
	struct py_object *modules = py.PyImport_GetModuleDict();
	struct py_object *old = py.PyDict_GetItemString(modules, "__main__"); /* borrowed */
	struct py_object *fresh = py.PyModule_New("__main__"), *contents, *annotations;

	if (!old || !fresh)
		wait_give_up();
	contents = py.PyModule_GetDict(fresh); /* borrowed */
	if (py.PyDict_Update(contents, py.PyModule_GetDict(old)) < 0)
		wait_give_up();
	if (py.PyDict_GetItemString(contents, "__annotations__")) {
		annotations = py.PyDict_New();
		if (!annotations || py.PyDict_SetItemString(contents, "__annotations__", annotations) < 0)
			wait_give_up();
		py.Py_DecRef(annotations);
	}
	if (py.PyDict_SetItemString(modules, "__main__", fresh) < 0)
		wait_give_up();
	py.Py_DecRef(fresh);
}

/* ---- around a fork -------------------------------------------------------------------------------------- */

static int fork_state; /* of PyGILState_Ensure() */

bool python_fork_before(void)
{
	if (!known)
		return false;
	fork_state = py.PyGILState_Ensure();
	py.PyOS_BeforeFork();
	return true;
}

void python_fork_parent(void)
{
	py.PyOS_AfterFork_Parent();
	py.PyGILState_Release(fork_state);
}

/* object.attribute.method(), if the module is there. */
static void call_in_module(const char *module, const char *attribute, const char *method)
{
	struct py_object *found = py.PyDict_GetItemString(py.PyImport_GetModuleDict(), module), *object; /* borrowed */

	if (!found)
		return;
	object = py.PyObject_GetAttrString(found, attribute);
	if (!object)
		wait_give_up();
	call(object, method);
	py.Py_DecRef(object);
}

/* What the interpreter's own handlers leave as the zygote had it. */
void python_fork_child(void)
{
	py.PyOS_AfterFork_Child();
	call_in_module("threading", "_main_thread", "_set_native_id");
	call_in_module("numpy.random.mtrand", "_rand", "seed");
	py.PyGILState_Release(fork_state);
}

void python_before(const struct wait_order *o)
{
	int state;

	if (!o->warms || !find_python())
		return;
	state = py.PyGILState_Ensure();
	import_modules(o);
	freeze();
	py.PyGILState_Release(state);
}

void python_after(const struct wait_order *o)
{
	int state;

	if (!known)
		return;
	state = py.PyGILState_Ensure();
	if (o->warm[0] != '\0' && shadow_found(o->path[0], was_brought))
		wait_report(o, GUEST_UNFIT, 0);
	py.Py_DecRef(known);
	known = NULL;
	renew_main();
	py.PyGILState_Release(state);
	memset(&py, 0, sizeof(py));
}
