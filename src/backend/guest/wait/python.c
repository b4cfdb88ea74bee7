/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library does for CPython around the wait.
 *
 * When the interpreter first opens its program (zipimport checks whether it is an archive), it is initialised, `site`
 * is imported, the program's directory is not yet in sys.path, and the GIL is free.  If there is a list of modules,
 * even an empty one, they are imported then, and live objects are collected and moved out of reach of the garbage
 * collector (gc.freeze).  After the claim `__main__` becomes a new module with the same contents: the old one is frozen
 * too, and objects that the program attached to it would never be finalised.  Without a list nothing is done.
 *
 * Uses functions that every CPython since 3.9 has, looked up by name; if they are missing, the interpreter is not
 * Python.  A warmed Python's program is run from here, too (python_run.c), so that its end costs less (python_end.c).
 *
 * A process that was started in its cell needs no new seeds, since it is not a copy.  A zygote's child gets
 * them from the interpreter's own handlers, and here for what those miss.
 */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "backend/guest/wait/python.h"

struct python_api py;
static struct py_object *known; /* sys.modules before the list was imported; NULL: nothing was imported */

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

struct py_object *python_borrow(const char *name)
{
	struct py_object *modules = py.PyImport_GetModuleDict(); /* borrowed reference */
	bool was_there = py.PyDict_GetItemString(modules, name);
	struct py_object *module = py.PyImport_ImportModule(name);

	if (!module || (!was_there && py.PyDict_DelItemString(modules, name) < 0))
		wait_give_up();
	return module;
}

static void freeze(void)
{
	struct py_object *gc = python_borrow("gc");

	call(gc, "collect");
	call(gc, "freeze");
	py.Py_DecRef(gc);
}

/* Same contents in the same order, except for a fresh dictionary of annotations if there is one. */
static void renew_main(void)
{
	struct py_object *modules = py.PyImport_GetModuleDict();
	struct py_object *old = py.PyDict_GetItemString(modules, "__main__"); /* borrowed reference */
	struct py_object *fresh = py.PyModule_New("__main__"), *contents, *annotations;

	if (!old || !fresh)
		wait_give_up();
	contents = py.PyModule_GetDict(fresh); /* borrowed reference */
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

static int fork_state; /* result of PyGILState_Ensure() */

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

/* Calls module.attribute.method() if the module was imported. */
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

/* Renews what the interpreter's own handlers leave as it was in the zygote. */
void python_fork_child(void)
{
	py.PyOS_AfterFork_Child();
	call_in_module("threading", "_main_thread", "_set_native_id");
	call_in_module("numpy.random.mtrand", "_rand", "seed");
	end_note_changes();
	py.PyGILState_Release(fork_state);
}

/* Compiled and run by the same code as any other; it writes nothing, since nobody would expect that. */
_Noreturn void python_rehearse(void (*written)(void))
{
	static char text[] = "def f(a, b=1):\n    return [str(x) for x in range(a + b)]\n\n\nt = f'{len(f(2))}'\n";
	FILE *file = fmemopen(text, sizeof(text) - 1, "r");

	(void)py.PyGILState_Ensure();
	renew_main();
	end_rehearse(written);
	if (!file)
		_exit(GUEST_WAIT_FAILED);
	run_program(file, "main.py");
}

void python_before(const struct wait_order *o)
{
	int state;

	if (!o->warms || !find_python())
		return;
	state = py.PyGILState_Ensure();
	end_register();
	import_modules(o);
	end_note_modules();
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
	run_arm(o->path[0]);
	py.PyGILState_Release(state);
}
