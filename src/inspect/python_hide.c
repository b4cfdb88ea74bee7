/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detours to functions that run commands or code: through a string that names a method, the cells of a closure, the
 * module of a builtin function, the interpreter's loaders, or an alias that is a builtin's name.  Also words that are
 * split so that they cannot be searched for: "imp" + "ort os".
 */
#include <ctype.h>

#include "inspect/python.h"

static bool may_be(const struct py *p, uint32_t set, const char *path)
{
	for (unsigned i = 0; i < p->set[set].n; i++)
		if (py_atom_is(&p->atom[p->set[set].atom[i]], PY_PATH, path))
			return true;
	return false;
}

static void hidden(struct py *p, uint32_t node, const char *how)
{
	judge_check(p->j, "hidden-call", py_span(p, node), "%s", how);
}

bool py_names_runner(const char *name, size_t len)
{
	static const char *const runs[] = { "system", "popen", "execv", "execvp", "execve", "spawnl", "spawnv" };

	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		if (strlen(runs[i]) == len && memcmp(runs[i], name, len) == 0)
			return true;
	return false;
}

/* ---- split words ----------------------------------------------------------------------------------------- */

static bool splits_word(const struct py_atom *a, const struct py_atom *b)
{
	return a && b && a->len && b->len && isalpha((unsigned char)a->text[a->len - 1]) &&
	       isalpha((unsigned char)b->text[0]);
}

static const struct py_atom *written(const struct py *p, uint32_t node)
{
	return node != PY_NONE && p->node[node].sym == PY_STRING ? py_only(p, p->node[node].value, PY_STR) : NULL;
}

/* "pri" + "nt(1)": both sides are literals, and they are joined within a word. */
static bool is_cut_sum(const struct py *p, uint32_t node)
{
	uint32_t left = py_field(p, node, PY_F_LEFT), right = py_field(p, node, PY_F_RIGHT);

	if (left == PY_NONE || right == PY_NONE ||
	    !memchr(p->text + p->node[left].end, '+', p->node[right].start - p->node[left].end))
		return false;
	if (p->node[left].sym == PY_BINARY)
		left = py_field(p, left, PY_F_RIGHT);
	return splits_word(written(p, left), written(p, right));
}

/* "".join(["pri", "nt(1)"]) */
static bool is_cut_list(const struct py *p, uint32_t call)
{
	uint32_t callee = py_field(p, call, PY_F_FUNCTION), object, name;
	const struct py_atom *between, *before = NULL;
	struct py_args a;

	if (callee == PY_NONE || p->node[callee].sym != PY_ATTRIBUTE)
		return false;
	name = py_field(p, callee, PY_F_ATTRIBUTE);
	object = py_field(p, callee, PY_F_OBJECT);
	between = written(p, object);
	if (name == PY_NONE || !py_name_is(p, p->node[name].name, "join") || !between || between->len)
		return false;
	py_args(p, call, &a);
	if (a.n != 1 || (p->node[a.node[0]].sym != PY_LIST_ && p->node[a.node[0]].sym != PY_TUPLE))
		return false;
	for (uint32_t item = p->node[a.node[0]].child; item != PY_NONE; item = p->node[item].next) {
		const struct py_atom *text = written(p, item);

		if (splits_word(before, text))
			return true;
		before = text;
	}
	return false;
}

bool py_is_cut(const struct py *p, uint32_t node)
{
	return p->node[node].sym == PY_BINARY ? is_cut_sum(p, node)
	       : p->node[node].sym == PY_CALL ? is_cut_list(p, node)
					      : false;
}

/* getattr(x, "__cla" + "ss__"): assembles the name of an interpreter attribute. */
void py_judge_cut_name(struct py *p, uint32_t node)
{
	const struct py_atom *name = py_only(p, p->node[node].value, PY_STR);

	if (name && name->len > 4 && memcmp(name->text, "__", 2) == 0 && py_is_cut(p, node))
		hidden(p, node, "an attribute of the interpreter by a name that is put together");
}

/* ---- detours --------------------------------------------------------------------------------------------- */

/* operator.methodcaller("system", "ls")(os) */
static void judge_methodcaller(struct py *p, const struct py_args *a)
{
	const struct py_atom *name = py_only(p, py_arg_value(p, a, 0), PY_STR);

	if (name && py_names_runner(name->text, name->len))
		hidden(p, a->call, "a function that runs commands by a name in a string");
}

/* importlib.util.find_spec("os") and module_from_spec(): an import in two steps. */
static void judge_spec(struct py *p, const struct py_args *a)
{
	const struct py_atom *name = py_only(p, py_arg_value(p, a, 0), PY_STR);

	if (name && py_is_inside(name->text, name->len) && memmem(p->text, p->len, "module_from_spec", 16))
		hidden(p, a->call, "a module that runs commands by way of its specification");
}

static void judge_pager(struct py *p, const struct py_args *a)
{
	if (a->n > 1)
		hidden(p, a->call, "a command as the pager of the manual");
}

/* pickle.Unpickler(io.BytesIO(b"...")) */
static void judge_unpickler(struct py *p, const struct py_args *a)
{
	struct py_args inner;

	if (!a->n || p->node[a->node[0]].sym != PY_CALL)
		return;
	py_args(p, a->node[0], &inner);
	if (inner.n && py_only(p, p->node[inner.node[0]].value, PY_BYTES))
		judge_check(p->j, "hidden-code", py_span(p, a->node[0]), "%s", "objects in bytes");
}

/* Runs a literal string with an interpreter class, which is equivalent to exec(). */
static void judge_interpreter(struct py *p, const struct py_args *a)
{
	if (py_only(p, py_arg_value(p, a, 0), PY_STR))
		judge_check(p->j, "hidden-code", py_span(p, a->call), "%s", "a text for an interpreter of its own");
}

static void judge_field(struct py *p, const struct py_args *a)
{
	const struct py_atom *name = py_only(p, py_arg_value(p, a, 0), PY_STR);

	if (name && memmem(name->text, name->len, ".__", 3))
		judge_check(p->j, "format-attribute", py_span(p, a->call), "%s", "");
}

static const struct {
	const char *path;
	void (*judge)(struct py *p, const struct py_args *a);
} detours[] = {
	{ "operator.methodcaller", judge_methodcaller },
	{ "importlib.util.find_spec", judge_spec },
	{ "pydoc.pipepager", judge_pager },
	{ "pydoc.tempfilepager", judge_pager },
	{ "pickle.Unpickler", judge_unpickler },
	{ "_pickle.Unpickler", judge_unpickler },
	{ "dill.Unpickler", judge_unpickler },
	{ "string.Formatter().get_field", judge_field },
	{ "code.InteractiveInterpreter().runsource", judge_interpreter },
	{ "code.InteractiveInterpreter().runcode", judge_interpreter },
	{ "code.InteractiveConsole().runsource", judge_interpreter },
	{ "code.InteractiveConsole().push", judge_interpreter },
	{ "bdb.Bdb().run", judge_interpreter },
	{ "bdb.Bdb().runeval", judge_interpreter },
};

/* x.cell_contents(...), x.load_module("os"), object.__getattribute__(os, "system") */
static void judge_method(struct py *p, const struct py_args *a, uint32_t callee)
{
	uint32_t name = py_field(p, callee, PY_F_ATTRIBUTE);
	const struct py_atom *first = py_only(p, py_arg_value(p, a, 0), PY_STR);

	if (name == PY_NONE || !a->n)
		return;
	if (py_name_is(p, p->node[name].name, "cell_contents"))
		hidden(p, callee, "what a closure keeps is called");
	if (py_name_is(p, p->node[name].name, "load_module") && first && py_is_inside(first->text, first->len))
		hidden(p, callee, "a module that runs commands by way of a loader");
	if (py_name_is(p, p->node[name].name, "__getattribute__") && may_be(p, p->node[a->node[0]].value, "os"))
		hidden(p, callee, "a member of os by a name in a string");
}

void py_judge_detour(struct py *p, const struct py_args *a, uint32_t callee)
{
	struct py_set s = p->set[p->node[callee].value];

	if (p->node[callee].sym == PY_ATTRIBUTE)
		judge_method(p, a, callee);
	for (unsigned i = 0; i < s.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(detours); k++)
			if (py_atom_is(&p->atom[s.atom[i]], PY_PATH, detours[k].path))
				detours[k].judge(p, a);
}

/* ---- hooks of the interpreter ---------------------------------------------------------------------------- */

/* sys.settrace(lambda ...), sys.excepthook = lambda ...: the interpreter calls them, at any event. */
bool py_is_hook(const struct py *p, uint32_t node)
{
	static const char *const hooks[] = { "sys.excepthook",     "sys.displayhook",      "sys.unraisablehook",
					     "sys.settrace",       "sys.setprofile",       "sys.addaudithook",
					     "threading.settrace", "threading.setprofile", "sys.breakpointhook" };
	uint32_t target = PY_NONE;

	if (p->node[node].sym == PY_ASSIGNMENT)
		target = py_field(p, node, PY_F_LEFT);
	else if (p->node[node].sym == PY_CALL)
		target = py_field(p, node, PY_F_FUNCTION);
	for (size_t i = 0; target != PY_NONE && i < ARRAY_LEN(hooks); i++)
		if (may_be(p, p->node[target].value, hooks[i]))
			return true;
	return false;
}
