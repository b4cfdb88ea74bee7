/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Malicious intent, as far as the text shows it.  Running a command is a capability; concealing it is suspicious.
 * Functions that run commands or code are expected to be called openly: by their own name or as a member of their own
 * module, in a statement.  Reaching them in another way counts as hiding.
 */
#include "inspect/python.h"

#include <stdio.h>

static bool path_begins(const struct py_atom *a, const char *head)
{
	size_t n = strlen(head);

	return a->kind == PY_PATH && a->len >= n && memcmp(a->text, head, n) == 0;
}

/* True if a possible value is a path that begins with head. */
static bool may_begin(const struct py *p, uint32_t set, const char *head)
{
	for (unsigned i = 0; i < p->set[set].n; i++)
		if (path_begins(&p->atom[p->set[set].atom[i]], head))
			return true;
	return false;
}

static bool may_be(const struct py *p, uint32_t set, const char *path)
{
	for (unsigned i = 0; i < p->set[set].n; i++)
		if (py_atom_is(&p->atom[p->set[set].atom[i]], PY_PATH, path))
			return true;
	return false;
}

bool py_is_inside(const char *path, size_t len)
{
	static const char *const inside[] = {
		"os",       "posix",   "nt",     "subprocess",       "pty", "ctypes", "_ctypes",
		"builtins", "marshal", "socket", "_posixsubprocess", "imp"
	};

	if (memchr(path, '(', len)) /* an object, not a module */
		return false;
	for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
		size_t n = strlen(inside[i]);

		if (len >= n && memcmp(path, inside[i], n) == 0 && (len == n || path[n] == '.'))
			return true;
	}
	return false;
}

/* ---- functions that run something ----------------------------------------------------------------------- */

struct runner {
	const char *path; /* with a star: all paths with this prefix */
	bool strong;      /* ordinary programs neither pass it on nor rename it */
};

static const struct runner runners[] = {
	{ "builtins.exec", true },      { "builtins.eval", true },   { "os.system", true },
	{ "os.popen*", true },          { "os.exec*", true },        { "os.spawn*", true },
	{ "posix.system", true },       { "os.posix_spawn*", true }, { "pty.spawn", true },
	{ "subprocess.*", false },      { "commands.*", false },     { "builtins.compile", false },
	{ "builtins.execfile", true },  { "posix.exec*", true },     { "posix.popen", true },
	{ "posix.posix_spawn*", true },
};

static const struct runner *find_runner(const struct py_atom *a)
{
	for (size_t i = 0; a->kind == PY_PATH && i < ARRAY_LEN(runners); i++) {
		size_t n = strlen(runners[i].path);
		bool star = runners[i].path[n - 1] == '*';

		n -= star;
		if ((star ? a->len >= n : a->len == n) && memcmp(a->text, runners[i].path, n) == 0 &&
		    !memchr(a->text, '(', a->len))
			return &runners[i];
	}
	return NULL;
}

static const char *last_name(const struct py_atom *path, size_t *len)
{
	const char *dot = memrchr(path->text, '.', path->len), *name = dot ? dot + 1 : path->text;

	*len = path->len - (size_t)(name - path->text);
	return name;
}

/*
 * True if the source spells the name literally: no other letters that fold to these, no white space within a dotted
 * name.
 */
static bool is_spelt(const struct py *p, uint32_t node, const char *name, size_t len)
{
	return p->node[node].end - p->node[node].start == len && memcmp(p->text + p->node[node].start, name, len) == 0;
}

/* True if "from x import os" binds the name: it need not be the module of that name. */
static bool is_taken_from(const struct py *p, uint32_t node)
{
	bool builtin;
	uint32_t b = py_resolve(p, node, p->node[node].name, &builtin);

	for (uint32_t s = b == PY_NONE ? PY_NONE : p->binding[b].sites; s != PY_NONE; s = p->site[s].next)
		if (py_ancestor(p, p->site[s].node, PY_IMPORT_FROM) != PY_NONE)
			return true;
	return false;
}

static bool is_joined(const struct py *p, uint32_t node)
{
	return p->node[node].end - p->node[node].start == p->node[py_field(p, node, PY_F_OBJECT)].end -
								  p->node[py_field(p, node, PY_F_OBJECT)].start + 1 +
								  p->node[py_field(p, node, PY_F_ATTRIBUTE)].end -
								  p->node[py_field(p, node, PY_F_ATTRIBUTE)].start;
}

/* system(), os.system(), o.system() after "import os as o" */
static bool is_plain(const struct py *p, uint32_t node, const struct py_atom *path)
{
	size_t len;
	const char *name = last_name(path, &len);
	uint32_t object;
	char module[64];

	if (p->node[node].sym == PY_IDENTIFIER)
		return is_spelt(p, node, name, len);
	if (p->node[node].sym != PY_ATTRIBUTE || !is_spelt(p, py_field(p, node, PY_F_ATTRIBUTE), name, len))
		return false;
	object = py_unwrap(p, py_field(p, node, PY_F_OBJECT));
	(void)snprintf(module, sizeof(module), "%.*s", (int)(path->len - len - 1), path->text);
	return strcmp(module, "builtins") != 0 && is_joined(p, node) && p->node[object].sym == PY_IDENTIFIER &&
	       (unsigned char)p->text[p->node[object].start] < 0x80 && may_be(p, p->node[object].value, module) &&
	       !is_taken_from(p, object);
}

/*
 * True if the function is the member of a call's or subscript's result, or has a non-ASCII name.  A plain alias does
 * not count, because programs often pass functions as parameters: def f(run=subprocess.run).
 */
static bool is_roundabout(const struct py *p, uint32_t node)
{
	uint32_t object = p->node[node].sym == PY_ATTRIBUTE ? py_unwrap(p, py_field(p, node, PY_F_OBJECT)) : node;

	if (object == PY_NONE)
		return false;
	if (p->node[node].sym == PY_IDENTIFIER)
		return (unsigned char)p->text[p->node[node].start] >= 0x80;
	return p->node[object].sym == PY_CALL || p->node[object].sym == PY_SUBSCRIPT;
}

/* ---- unusual places of calls ----------------------------------------------------------------------------- */

static bool is_operator_name(const struct py *p, uint32_t name)
{
	static const char *const plain[] = { "__init__",      "__call__",  "__enter__", "__exit__",
					     "__aenter__",    "__aexit__", "__del__",   "__new__",
					     "__post_init__", "__iter__",  "__next__",  "__main__" };
	const struct py_atom *a = name == PY_NONE ? NULL : &p->atom[name];

	if (!a || a->len < 5 || memcmp(a->text, "__", 2) != 0 || memcmp(a->text + a->len - 2, "__", 2) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (py_atom_is(a, PY_STR, plain[i]))
			return false;
	return true;
}

/* __add__ = lambda ... */
static bool is_named_operator(const struct py *p, uint32_t node)
{
	uint32_t name = PY_NONE;

	if (p->node[node].sym == PY_FUNCTION)
		name = py_field(p, node, PY_F_NAME);
	else if (p->node[node].sym == PY_ASSIGNMENT)
		name = py_field(p, node, PY_F_LEFT);
	return name != PY_NONE && p->node[name].sym == PY_IDENTIFIER && is_operator_name(p, p->node[name].name);
}

/* Why a reader would overlook a call here; NULL: it is a usual place. */
static const char *odd_place(const struct py *p, uint32_t node)
{
	for (uint32_t up = p->node[node].parent; up != PY_NONE; node = up, up = p->node[up].parent)
		switch (p->node[up].sym) {
		case PY_TYPE:
		case PY_TYPE_ALIAS:
		case PY_MEMBER_TYPE:
			return "in a type";
		case PY_DECORATOR:
			return "as a decorator";
		case PY_DEFAULT_PARAMETER:
		case PY_TYPED_DEFAULT_PARAMETER:
			return "in the default of a parameter";
		case PY_MATCH:
			if (p->node[node].field == PY_F_SUBJECT)
				return "in the subject of match";
			break;
		case PY_CLASS_DEFINITION:
			if (p->node[node].field == PY_F_SUPERCLASSES)
				return "among the bases of a class";
			break;
		case PY_STRING:
			if (p->node[up].parent != PY_NONE && p->node[p->node[up].parent].sym == PY_EXPRESSION_STATEMENT)
				return "in a text that nobody uses";
			break;
		case PY_FUNCTION:
		case PY_ASSIGNMENT:
			if (is_named_operator(p, up))
				return "in an operator";
			if (py_is_hook(p, up) && p->node[node].sym == PY_LAMBDA)
				return "in a hook of the interpreter";
			break;
		case PY_ARGUMENT_LIST:
			if (p->node[node].sym == PY_LAMBDA && py_is_hook(p, p->node[up].parent))
				return "in a hook of the interpreter";
			break;
		case PY_IF_CLAUSE:
			if (p->node[up].parent != PY_NONE && p->node[p->node[up].parent].sym == PY_CASE_CLAUSE)
				return "in a condition of match";
			break;
		case PY_SLICE:
			return "in a slice";
		case PY_SUBSCRIPT:
			if (p->node[node].field == PY_F_SUBSCRIPT)
				return "in an index";
			break;
		default:
			break;
		}
	return NULL;
}

static void judge_runner_call(struct py *p, uint32_t callee, uint32_t call)
{
	struct py_set s = p->set[p->node[callee].value];

	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom path = p->atom[s.atom[i]];
		const struct runner *r = find_runner(&path);
		const char *place = r && r->strong ? odd_place(p, call) : NULL;

		if (!r)
			continue;
		if (!is_plain(p, callee, &path) && (r->strong || is_roundabout(p, callee)))
			judge_check(p->j, "hidden-call", py_span(p, callee), "%.*s", (int)path.len, path.text);
		else if (p->j->in_text && !path_begins(&path, "builtins."))
			judge_check(p->j, "hidden-call", py_span(p, callee), "%.*s in a text", (int)path.len,
				    path.text);
		else if (place)
			judge_check(p->j, "hidden-call", py_span(p, callee), "%.*s %s", (int)path.len, path.text,
				    place);
	}
}

/* ---- references without a call --------------------------------------------------------------------------- */

static bool is_handed_on(const struct py *p, uint32_t node)
{
	uint32_t up = p->node[node].parent;

	while (up != PY_NONE && p->node[up].sym == PY_PARENTHESIZED) {
		node = up;
		up = p->node[up].parent;
	}
	if (up == PY_NONE || (p->node[up].sym == PY_CALL && p->node[node].field == PY_F_FUNCTION))
		return false;
	switch (p->node[up].sym) {
	case PY_ATTRIBUTE: /* os.system.__doc__ */
	case PY_DOTTED_NAME:
	case PY_ALIASED_IMPORT:
	case PY_EXPRESSION_STATEMENT:
	case PY_DELETE:
	case PY_COMPARISON:
	case PY_ASSIGNMENT: /* an alias: judged where it is called */
		return false;
	default:
		return true;
	}
}

/* list(map(eval, words)) is a common way to read numbers. */
static bool is_mapped(const struct py *p, uint32_t node)
{
	uint32_t up = p->node[node].parent, call = up == PY_NONE ? PY_NONE : p->node[up].parent, callee;

	if (call == PY_NONE || p->node[up].sym != PY_ARGUMENT_LIST || p->node[call].sym != PY_CALL)
		return false;
	callee = py_field(p, call, PY_F_FUNCTION);
	return callee != PY_NONE && may_be(p, p->node[callee].value, "builtins.map");
}

void py_judge_intent_of_reference(struct py *p, uint32_t node)
{
	struct py_set s = p->set[p->node[node].value];

	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom path = p->atom[s.atom[i]];
		const struct runner *r = find_runner(&path);
		bool eval = py_atom_is(&path, PY_PATH, "builtins.eval");

		if (!r || !r->strong || !is_plain(p, node, &path) || !is_handed_on(p, node) ||
		    (eval && is_mapped(p, node)))
			continue;
		judge_check(p->j, "hidden-call", py_span(p, node), "%.*s handed on as a value", (int)path.len,
			    path.text);
	}
}

/* builtins.print = os.system: the next print() runs a command. */
static void judge_replacement(struct py *p, uint32_t target, uint32_t value)
{
	for (unsigned i = 0; i < p->set[value].n; i++) {
		const struct runner *r = find_runner(&p->atom[p->set[value].atom[i]]);

		if (r && r->strong)
			judge_check(p->j, "hidden-call", py_span(p, target), "%s",
				    "a builtin function gets to run commands");
	}
}

/* f.__code__ = c */
void py_judge_intent_of_assignment(struct py *p, uint32_t node)
{
	uint32_t left = py_field(p, node, PY_F_LEFT), right = py_field(p, node, PY_F_RIGHT), name, object;

	if (left == PY_NONE || p->node[left].sym != PY_ATTRIBUTE)
		return;
	name = py_field(p, left, PY_F_ATTRIBUTE);
	object = py_unwrap(p, py_field(p, left, PY_F_OBJECT));
	if (object != PY_NONE && may_be(p, p->node[object].value, "builtins") && right != PY_NONE)
		judge_replacement(p, left, p->node[right].value);
	if (name != PY_NONE && py_name_is(p, p->node[name].name, "__code__") && object != PY_NONE &&
	    !py_name_is(p, p->node[object].name, "self"))
		judge_check(p->j, "hidden-call", py_span(p, left), "%s", "a function gets other code");
}

/* ---- modules by name ------------------------------------------------------------------------------------- */

void py_judge_hidden_import(struct py *p, const struct py_args *a, uint32_t node, const struct py_atom *name)
{
	uint32_t callee = py_unwrap(p, py_field(p, a->call, PY_F_FUNCTION));
	bool literal =
		p->node[node].sym == PY_STRING &&
		memmem(p->text + p->node[node].start, p->node[node].end - p->node[node].start, name->text, name->len);
	bool own = callee != PY_NONE && may_be(p, p->node[callee].value, "builtins.__import__");

	if (!py_is_inside(name->text, name->len))
		return;
	if ((own && !memchr(name->text, '.', name->len)) || (!literal && p->node[node].sym != PY_IDENTIFIER))
		judge_check(p->j, "hidden-call", py_span(p, node), "the module %.*s by a name in a string",
			    (int)name->len, name->text);
}

/* ---- processes ------------------------------------------------------------------------------------------- */

static bool is_endless(const struct py *p, uint32_t loop)
{
	uint32_t condition = py_unwrap(p, py_field(p, loop, PY_F_CONDITION));
	const struct py_atom *n = condition == PY_NONE ? NULL : py_only(p, p->node[condition].value, PY_INT);

	return n && n->number != 0;
}

/* while True: os.fork(), and its result is ignored */
static void judge_fork(struct py *p, const struct py_args *a)
{
	uint32_t loop = py_ancestor(p, a->call, PY_WHILE);

	if (p->node[p->node[a->call].parent].sym == PY_EXPRESSION_STATEMENT && loop != PY_NONE && is_endless(p, loop))
		judge_check(p->j, "fork-bomb", py_span(p, a->call), "%s", "fork in an endless loop");
}

/* def f(): while True: Process(target=f).start() */
static void judge_worker(struct py *p, const struct py_args *a)
{
	uint32_t target = py_keyword(p, a->call, "target"), loop = py_ancestor(p, a->call, PY_WHILE);
	uint32_t function = py_ancestor(p, a->call, PY_FUNCTION);
	const struct py_atom *f = target == PY_NONE ? NULL : py_only(p, p->node[target].value, PY_FUNC);

	if (f && loop != PY_NONE && is_endless(p, loop) && f->number == function)
		judge_check(p->j, "fork-bomb", py_span(p, a->call), "%s",
			    "a worker that starts itself in an endless loop");
}

static void judge_dup2(struct py *p, const struct py_args *a)
{
	if (a->n && may_begin(p, p->node[a->node[0]].value, "socket."))
		judge_check(p->j, "reverse-shell", py_span(p, a->call), "%s",
			    "a socket becomes standard input or output");
}

static void judge_streams(struct py *p, const struct py_args *a)
{
	static const char *const streams[] = { "stdin", "stdout", "stderr" };

	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		uint32_t value = py_keyword(p, a->call, streams[i]);

		if (value != PY_NONE && may_begin(p, p->node[value].value, "socket.socket()"))
			judge_check(p->j, "reverse-shell", py_span(p, value), "%s is a socket", streams[i]);
	}
}

static void judge_terminal(struct py *p, const struct py_args *a)
{
	judge_check(p->j, "reverse-shell", py_span(p, a->call), "%s", "a terminal for a program");
}

/* os.kill(-1, 9), os.kill(1, 9) */
static void judge_kill(struct py *p, const struct py_args *a)
{
	const struct py_atom *pid = py_only(p, py_arg_value(p, a, 0), PY_INT);

	if (pid && (pid->number == -1 || pid->number == 1))
		judge_check(p->j, "machine", py_span(p, a->call), "a signal to %s",
			    pid->number == 1 ? "process 1" : "all");
}

static void judge_chmod(struct py *p, const struct py_args *a)
{
	const struct py_atom *mode = py_only(p, py_arg_value(p, a, 1), PY_INT);

	if (mode && (mode->number & 06000))
		judge_check(p->j, "machine", py_span(p, a->call), "a program that runs as its owner");
}

/* f.__self__: the module of a builtin function. */
static bool is_self_of(const struct py *p, uint32_t object)
{
	uint32_t name = p->node[object].sym == PY_ATTRIBUTE ? py_field(p, object, PY_F_ATTRIBUTE) : PY_NONE;

	return name != PY_NONE && py_name_is(p, p->node[name].name, "__self__");
}

/* x(...).system("ls"), x[0].popen("ls"): whatever x is, the module was not imported by its name. */
static void judge_unnamed_module(struct py *p, const struct py_args *a, uint32_t callee)
{
	uint32_t name = py_field(p, callee, PY_F_ATTRIBUTE), object = py_unwrap(p, py_field(p, callee, PY_F_OBJECT));
	const struct py_atom *text =
		name == PY_NONE || p->node[name].name == PY_NONE ? NULL : &p->atom[p->node[name].name];

	if (name == PY_NONE || object == PY_NONE || a->n == 0)
		return;
	if (py_name_is(p, p->node[name].name, "__getattribute__") && may_begin(p, p->node[object].value, "os"))
		judge_check(p->j, "hidden-call", py_span(p, callee), "%s", "a member of os by a name in a string");
	if (p->node[object].sym != PY_CALL && p->node[object].sym != PY_SUBSCRIPT && !is_self_of(p, object))
		return;
	if (text && py_names_runner(text->text, text->len) && !may_begin(p, p->node[callee].value, "ctypes."))
		judge_check(p->j, "hidden-call", py_span(p, callee), "%.*s of something without a name", (int)text->len,
			    text->text);
}

/* types.FunctionType(compile(...), {}) */
static void judge_function_type(struct py *p, const struct py_args *a)
{
	if (a->n && p->node[a->node[0]].sym == PY_CALL)
		judge_check(p->j, "hidden-call", py_span(p, a->call), "%s", "a function made of code");
}

/* type(lambda: 0)(code, {}): types.FunctionType under another name. */
static void judge_made_function(struct py *p, uint32_t callee)
{
	uint32_t type = p->node[callee].sym == PY_CALL ? py_unwrap(p, py_field(p, callee, PY_F_FUNCTION)) : PY_NONE;
	struct py_args a;

	if (type == PY_NONE || !may_be(p, p->node[type].value, "builtins.type"))
		return;
	py_args(p, callee, &a);
	if (a.n == 1 && py_only(p, p->node[a.node[0]].value, PY_FUNC))
		judge_check(p->j, "hidden-call", py_span(p, callee), "%s", "a function made of code");
}

/* ---- classes --------------------------------------------------------------------------------------------- */

/* The object, function or value that an attribute, call or subscript applies to. */
static uint32_t inner_link(const struct py *p, uint32_t node)
{
	switch (p->node[node].sym) {
	case PY_ATTRIBUTE:
		return py_unwrap(p, py_field(p, node, PY_F_OBJECT));
	case PY_CALL:
		return py_unwrap(p, py_field(p, node, PY_F_FUNCTION));
	case PY_SUBSCRIPT:
		return py_unwrap(p, py_field(p, node, PY_F_VALUE));
	default:
		return PY_NONE;
	}
}

/*
 * ().__class__.__base__.__subclasses__() finds all classes; A.__subclasses__() for a class of the program is harmless.
 */
static void judge_subclasses(struct py *p, uint32_t callee)
{
	static const char *const ways[] = { "__base__", "__bases__", "__mro__", "mro" };
	uint32_t name = p->node[callee].sym == PY_ATTRIBUTE ? py_field(p, callee, PY_F_ATTRIBUTE) : PY_NONE;

	if (name == PY_NONE || !py_name_is(p, p->node[name].name, "__subclasses__"))
		return;
	for (uint32_t n = inner_link(p, callee); n != PY_NONE; n = inner_link(p, n)) {
		uint32_t attribute = p->node[n].sym == PY_ATTRIBUTE ? py_field(p, n, PY_F_ATTRIBUTE) : PY_NONE;
		bool walks =
			may_be(p, p->node[n].value, "builtins.object") || may_be(p, p->node[n].value, "builtins.type");

		for (size_t i = 0; attribute != PY_NONE && i < ARRAY_LEN(ways); i++)
			walks |= py_name_is(p, p->node[attribute].name, ways[i]);
		if (walks) {
			judge_check(p->j, "subclass-walk", py_span(p, callee), "%s", "");
			return;
		}
	}
}

/* ctypes.CDLL(None).system: judges the function, whatever way the library was opened. */
static void judge_native_call(struct py *p, uint32_t callee)
{
	uint32_t object = py_unwrap(p, py_field(p, callee, PY_F_OBJECT)), name = py_field(p, callee, PY_F_ATTRIBUTE);
	char path[96];
	int n;

	if (object == PY_NONE || name == PY_NONE || p->node[name].name == PY_NONE ||
	    !may_begin(p, p->node[object].value, "ctypes."))
		return;
	n = snprintf(path, sizeof(path), "ctypes.libc.%.*s", (int)p->atom[p->node[name].name].len,
		     p->atom[p->node[name].name].text);
	if (n > 0 && (size_t)n < sizeof(path) && !may_be(p, p->node[object].value, "ctypes"))
		judge_member(p->j, path, (size_t)n, py_span(p, name));
}

/* ---- dispatch -------------------------------------------------------------------------------------------- */

struct intent {
	const char *path; /* with a star: all paths with this prefix */
	void (*judge)(struct py *p, const struct py_args *a);
};

static const struct intent intents[] = {
	{ "os.fork", judge_fork },
	{ "os.forkpty", judge_fork },
	{ "multiprocessing.Process", judge_worker },
	{ "threading.Thread", judge_worker },
	{ "os.dup2", judge_dup2 },
	{ "subprocess.*", judge_streams },
	{ "pty.spawn", judge_terminal },
	{ "os.kill", judge_kill },
	{ "os.killpg", judge_kill },
	{ "os.chmod", judge_chmod },
	{ "types.FunctionType", judge_function_type },
	{ "types.LambdaType", judge_function_type },
};

void py_judge_intent_of_call(struct py *p, const struct py_args *a, uint32_t callee)
{
	struct py_set s = p->set[p->node[callee].value];

	judge_runner_call(p, callee, a->call);
	judge_made_function(p, callee);
	py_judge_detour(p, a, callee);
	judge_subclasses(p, callee);
	if (p->node[callee].sym == PY_ATTRIBUTE) {
		judge_native_call(p, callee);
		judge_unnamed_module(p, a, callee);
	}
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom path = p->atom[s.atom[i]];

		if (path.kind != PY_PATH)
			continue;
		for (size_t k = 0; k < ARRAY_LEN(intents); k++) {
			size_t n = strlen(intents[k].path);
			bool star = intents[k].path[n - 1] == '*';

			if (star ? path.len >= n - 1 && memcmp(path.text, intents[k].path, n - 1) == 0
				 : py_atom_is(&path, PY_PATH, intents[k].path))
				intents[k].judge(p, a);
		}
		py_judge_flow(p, a, &path);
	}
}
