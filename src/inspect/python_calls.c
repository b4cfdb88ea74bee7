/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls: names of attributes and modules, code, commands; python_files.c: files. */
#include "inspect/python.h"

/* ---- names of attributes -------------------------------------------------------------------------------- */

/* "a.b.c": each part is the name of an attribute. */
static void judge_dotted(struct py *p, const char *text, size_t len, struct span where)
{
	size_t at = 0;

	while (at < len) {
		const char *dot = memchr(text + at, '.', len - at);
		size_t n = dot ? (size_t)(dot - (text + at)) : len - at;

		py_judge_attribute_name(p, PY_UNKNOWN, text + at, n, where);
		at += n + 1;
	}
}

/* Judges the paths that object.name may be. */
static void judge_attribute_value(struct py *p, uint32_t object, const struct py_atom *name, struct span where)
{
	struct py_set paths = p->set[py_attribute_of(p, object, name->text, name->len)];

	for (unsigned k = 0; k < paths.n; k++) {
		struct py_atom path = p->atom[paths.atom[k]];

		if (path.kind == PY_PATH)
			py_judge_path(p, path.text, path.len, where);
	}
}

/* getattr(self, f"visit_{x}"): whatever x is, the attribute belongs to the program. */
static bool begins_harmlessly(const struct py *p, const struct py_set *names)
{
	for (unsigned i = 0; i < names->n; i++) {
		const struct py_atom *n = &p->atom[names->atom[i]];

		if ((n->kind != PY_PART && n->kind != PY_STR) || n->len < 2 || n->text[0] == '_' || n->text[0] == '*')
			return false;
	}
	return names->n > 0;
}

/* Judges a name that is not constant; `check`: the check for this use of the name. */
static void judge_unknown_name(struct py *p, uint32_t object, const struct py_set *names, const char *check,
			       struct span where)
{
	struct py_set of = p->set[object];

	for (unsigned i = 0; i < of.n; i++) {
		struct py_atom a = p->atom[of.atom[i]];
		size_t matched;

		if (a.kind == PY_PATH &&
		    (py_module_rule(p, a.text, a.len, &matched) || py_atom_is(&a, PY_PATH, "builtins"))) {
			judge_check(p->j,
				    py_is_inside(a.text, a.len) ? "dynamic-module-attribute" : "dynamic-module-member",
				    where, "%.*s", (int)a.len, a.text);
			return;
		}
	}
	judge_check(p->j, begins_harmlessly(p, names) ? "dynamic-own-attribute" : check, where,
		    "the name is not a constant");
}

static void judge_named_attribute(struct py *p, uint32_t object, uint32_t name, const char *check, struct span where)
{
	struct py_set names = p->set[name];
	bool unknown = names.open || !names.n;

	for (unsigned i = 0; i < names.n; i++) {
		struct py_atom n = p->atom[names.atom[i]];

		if (n.kind != PY_STR) {
			unknown = true;
			continue;
		}
		judge_dotted(p, n.text, n.len, where);
		judge_attribute_value(p, object, &n, where);
	}
	if (unknown)
		judge_unknown_name(p, object, &names, check, where);
}

static void judge_access(struct py *p, const struct py_args *a, const char *check)
{
	if (a->n >= 1)
		p->node[a->node[0]].flags |= PY_CONSUMED;
	if (a->n >= 2)
		judge_named_attribute(p, p->node[a->node[0]].value, p->node[a->node[1]].value, check,
				      py_span(p, a->node[1]));
	else
		judge_check(p->j, check, py_span(p, a->call), "the name is not a constant");
}

static void judge_getattr(struct py *p, const struct py_args *a)
{
	judge_access(p, a, "dynamic-attribute");
	if (a->n >= 2)
		py_judge_cut_name(p, a->node[1]);
}

/* Setting or testing an attribute reveals nothing, unless it is a module's. */
static void judge_setattr(struct py *p, const struct py_args *a)
{
	judge_access(p, a, "dynamic-own-attribute");
}

static void judge_attrgetter(struct py *p, const struct py_args *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		const struct py_atom *n = py_only(p, p->node[a->node[i]].value, PY_STR);

		if (n)
			judge_dotted(p, n->text, n->len, py_span(p, a->node[i]));
		else if (i == 0)
			judge_check(p->j, "dynamic-attribute", py_span(p, a->node[i]), "the name is not a constant");
	}
}

/* ---- modules -------------------------------------------------------------------------------------------- */

static void judge_dynamic_import(struct py *p, const struct py_args *a)
{
	uint32_t node = a->n ? a->node[0] : py_keyword(p, a->call, "name");
	struct py_set s = { .open = true };

	if (node != PY_NONE && !a->spread)
		s = p->set[p->node[node].value];
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom n = p->atom[s.atom[i]];

		if (n.kind == PY_STR) {
			py_judge_import(p, n.text, n.len, py_span(p, node));
			py_judge_hidden_import(p, a, node, &n);
		} else {
			s.open = true;
		}
	}
	if (!s.n || s.open)
		judge_check(p->j, "dynamic-import", py_span(p, node == PY_NONE ? a->call : node),
			    "the name is not a constant");
}

/* ---- code and commands ---------------------------------------------------------------------------------- */

/* eval(compile(text, name, "exec")): statements, run by a function for expressions */
static void judge_compiled(struct py *p, const struct py_args *a)
{
	uint32_t callee = py_unwrap(p, py_field(p, a->call, PY_F_FUNCTION)), inner;
	const struct py_atom *mode;
	struct py_args made;

	if (p->node[a->node[0]].sym != PY_CALL || callee == PY_NONE || !py_name_is(p, p->node[callee].name, "eval"))
		return;
	inner = py_unwrap(p, py_field(p, a->node[0], PY_F_FUNCTION));
	py_args(p, a->node[0], &made);
	mode = py_only(p, py_arg_value(p, &made, 2), PY_STR);
	if (inner != PY_NONE && py_name_is(p, p->node[inner].name, "compile") && mode &&
	    py_atom_is(mode, PY_STR, "exec"))
		judge_check(p->j, "statement-as-expression", py_span(p, a->node[0]), "%s", "");
}

static void judge_code_argument(struct py *p, const struct py_args *a)
{
	struct py_set s = p->set[py_arg_value(p, a, 0)];
	bool in_text = p->j->in_text;

	if (a->n) {
		py_judge_origin(p, a->node[0]);
		judge_compiled(p, a);
	}
	p->j->in_text = true;
	for (unsigned i = 0; i < s.n && i < 2; i++) {
		struct py_atom t = p->atom[s.atom[i]];

		if (t.kind == PY_STR || t.kind == PY_BYTES)
			judge_code(p->j, INSPECT_PYTHON, t.text, t.len, py_span(p, a->node[0]));
	}
	p->j->in_text = in_text;
}

/* timeit.timeit("code"): harmless with a function, but equivalent to eval with a string. */
static void judge_statement(struct py *p, const struct py_args *a)
{
	static const char *const keywords[] = { "stmt", "setup", "statement", "command" };
	uint32_t node = a->n ? a->node[0] : PY_NONE;
	struct py_set s;

	for (size_t i = 0; i < ARRAY_LEN(keywords) && node == PY_NONE; i++)
		node = py_keyword(p, a->call, keywords[i]);
	if (node == PY_NONE)
		return;
	s = p->set[p->node[node].value];
	if (s.n == 1 && !s.open && p->atom[s.atom[0]].kind == PY_FUNC)
		return;
	judge_check(p->j, "code-string", py_span(p, node), "%s", "");
	judge_code_argument(p, a);
}

static void judge_words(struct py *p, const struct py_atom *list, struct span where)
{
	const char *word[PY_ARGS_MAX];
	bool literal[PY_ARGS_MAX];
	char *copy[PY_ARGS_MAX] = { NULL };
	size_t n = 0;

	for (; n < list->len && n < PY_ARGS_MAX; n++) {
		const struct py_atom *a = py_only(p, list->item[n], PY_STR);

		literal[n] = a != NULL;
		copy[n] = a ? strndup(a->text, a->len) : NULL;
		word[n] = copy[n] ? copy[n] : "";
		if (py_only(p, list->item[n], PY_PATH) &&
		    py_atom_is(py_only(p, list->item[n], PY_PATH), PY_PATH, "sys.executable")) {
			word[n] = "python3";
			literal[n] = true;
		}
	}
	if (n && !literal[0])
		judge_check(p->j, "dynamic-program", where, "%s", "");
	if (n && (literal[0] || p->j->level == INSPECTION_STRICT))
		judge_argv(p->j, word, literal, n, where);
	for (size_t i = 0; i < n; i++)
		free(copy[i]);
}

static void judge_command_argument(struct py *p, const struct py_args *a)
{
	struct py_set s;
	uint32_t node = a->n ? a->node[0] : py_keyword(p, a->call, "args");

	if (node == PY_NONE)
		return;
	py_judge_origin(p, node);
	s = p->set[p->node[node].value];
	for (unsigned i = 0; i < s.n && i < 3; i++) {
		struct py_atom t = p->atom[s.atom[i]];

		if (t.kind == PY_STR || t.kind == PY_BYTES)
			judge_command(p->j, t.text, t.len, py_span(p, node));
		else if (t.kind == PY_LIST)
			judge_words(p, &t, py_span(p, node));
	}
}

/* os.execvp("rm", ["rm", "-rf", "/"]), os.execl("/bin/rm", "rm", "-rf", "/") */
static void judge_exec_arguments(struct py *p, const struct py_args *a)
{
	uint32_t item[PY_ARGS_MAX];
	uint32_t n = 0;
	struct py_atom words;

	for (unsigned i = 0; i < a->n; i++) {
		const struct py_atom *list = py_only(p, p->node[a->node[i]].value, PY_LIST);

		if (list) {
			words = *list;
			judge_words(p, &words, py_span(p, a->node[i]));
			return;
		}
		item[n++] = p->node[a->node[i]].value;
	}
	words = (struct py_atom){ PY_LIST, n > 1 ? n - 1 : n, 0, .item = n > 1 ? item + 1 : item };
	judge_words(p, &words, py_span(p, a->call));
}

/* ---- calls that depend on their arguments --------------------------------------------------------------- */

static bool is_safe_loader(const struct py *p, uint32_t node)
{
	static const char *const safe[] = { "SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader" };

	if (node == PY_NONE)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(safe); i++) {
		size_t n = strlen(safe[i]), len = p->node[node].end - p->node[node].start;

		if (len >= n && memcmp(p->text + p->node[node].end - n, safe[i], n) == 0 &&
		    (len == n || p->text[p->node[node].end - n - 1] == '.'))
			return true;
	}
	return false;
}

static void judge_yaml_load(struct py *p, const struct py_args *a)
{
	uint32_t loader = a->n > 1 ? a->node[1] : py_keyword(p, a->call, "Loader");
	const struct py_atom *text = py_only(p, py_arg_value(p, a, 0), PY_STR);

	if (text && memmem(text->text, text->len, "!!python/", 9) && !is_safe_loader(p, loader))
		judge_check(p->j, "hidden-code", py_span(p, a->call), "%s", "calls in data");
	if (!is_safe_loader(p, loader))
		judge_check(p->j, "unsafe-load", py_span(p, a->call), "%s", "yaml without SafeLoader");
}

/* numpy.load(..., allow_pickle=True), in any library */
static void judge_allow_pickle(struct py *p, uint32_t call)
{
	uint32_t value = py_keyword(p, call, "allow_pickle");

	if (value != PY_NONE && p->node[value].sym != PY_FALSE)
		judge_check(p->j, "unsafe-load", py_span(p, value), "%s", "allow_pickle");
}

/* True if a field of a format, such as "{0.__class__}", names an attribute of the interpreter; "{{" is a brace. */
static bool field_reads_inside(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t end = i;

		if (text[i] != '{')
			continue;
		if (i + 1 < len && text[i + 1] == '{') {
			i++;
			continue;
		}
		while (end < len && text[end] != '}' && text[end] != '\n')
			end++;
		if (memmem(text + i, end - i, ".__", 3) || memmem(text + i, end - i, "[__", 3))
			return true;
	}
	return false;
}

/* "{0.__class__}".format(x) reads attributes. */
static void judge_format(struct py *p, uint32_t callee)
{
	uint32_t object = py_field(p, callee, PY_F_OBJECT), name = py_field(p, callee, PY_F_ATTRIBUTE);
	struct py_set s;

	if (object == PY_NONE || name == PY_NONE ||
	    !(py_name_is(p, p->node[name].name, "format") || py_name_is(p, p->node[name].name, "format_map") ||
	      py_name_is(p, p->node[name].name, "vformat")))
		return;
	s = p->set[p->node[py_unwrap(p, object)].value];
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom a = p->atom[s.atom[i]];

		if ((a.kind == PY_STR || a.kind == PY_PART) && field_reads_inside(a.text, a.len))
			judge_check(p->j, "format-attribute", py_span(p, object), "%s", "");
	}
}

/* ---- dispatch ------------------------------------------------------------------------------------------- */

struct call_kind {
	const char *path; /* "a.*": everything below a */
	void (*judge)(struct py *p, const struct py_args *a);
};

static const struct call_kind kinds[] = {
	{ "builtins.getattr", judge_getattr },
	{ "builtins.setattr", judge_setattr },
	{ "builtins.delattr", judge_setattr },
	{ "builtins.hasattr", judge_setattr },
	{ "inspect.getattr_static", judge_getattr },
	{ "builtins.__import__", judge_dynamic_import },
	{ "importlib.import_module", judge_dynamic_import },
	{ "importlib.__import__", judge_dynamic_import },
	{ "builtins.eval", judge_code_argument },
	{ "builtins.exec", judge_code_argument },
	{ "builtins.compile", judge_code_argument },
	{ "cProfile.run", judge_code_argument },
	{ "cProfile.runctx", judge_code_argument },
	{ "profile.run", judge_code_argument },
	{ "pdb.run", judge_code_argument },
	{ "pdb.runeval", judge_code_argument },
	{ "operator.attrgetter", judge_attrgetter },
	{ "operator.methodcaller", judge_attrgetter },
	{ "timeit.timeit", judge_statement },
	{ "timeit.repeat", judge_statement },
	{ "timeit.Timer", judge_statement },
	{ "timeit.main", judge_statement },
	{ "yaml.load", judge_yaml_load },
	{ "yaml.load_all", judge_yaml_load },
	{ "os.system", judge_command_argument },
	{ "os.popen*", judge_command_argument },
	{ "subprocess.*", judge_command_argument },
	{ "commands.*", judge_command_argument },
	{ "pty.spawn", judge_command_argument },
	{ "asyncio.create_subprocess_shell", judge_command_argument },
	{ "asyncio.create_subprocess_exec", judge_exec_arguments },
	{ "os.exec*", judge_exec_arguments },
	{ "os.spawn*", judge_exec_arguments },
	{ "os.posix_spawn*", judge_exec_arguments },
};

static bool is_kind(const struct call_kind *k, const struct py_atom *a)
{
	size_t n = strlen(k->path);

	if (k->path[n - 1] == '*')
		return a->len >= n - 1 && memcmp(a->text, k->path, n - 1) == 0;
	return a->len == n && memcmp(a->text, k->path, n) == 0;
}

static void judge_callee(struct py *p, const struct py_args *a, struct py_atom callee)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (is_kind(&kinds[i], &callee)) {
			kinds[i].judge(p, a);
			return;
		}
	py_judge_files(p, a, &callee);
}

/* x.__getattribute__("name"), vars(os).get("system") */
static void judge_reading_method(struct py *p, const struct py_args *a, uint32_t callee)
{
	uint32_t object = py_unwrap(p, py_field(p, callee, PY_F_OBJECT)), name = py_field(p, callee, PY_F_ATTRIBUTE);
	const struct py_atom *space;

	if (object == PY_NONE || name == PY_NONE)
		return;
	space = py_only(p, p->node[object].value, PY_SPACE);
	if (a->n == 0) { /* os.__dict__.values() */
		if (space && space->len)
			py_judge_escape(p, space->text, space->len, py_span(p, object));
		return;
	}
	if (py_name_is(p, p->node[name].name, "__getattribute__"))
		judge_named_attribute(p, p->node[object].value, p->node[a->node[a->n - 1]].value, "dynamic-attribute",
				      py_span(p, a->node[a->n - 1]));
	space = py_only(p, p->node[object].value, PY_SPACE); /* judging may have moved the atoms */
	if (space)
		judge_named_attribute(p, space->len ? py_set_text(p, PY_PATH, space->text, space->len) : PY_UNKNOWN,
				      p->node[a->node[0]].value, "dynamic-attribute", py_span(p, a->node[0]));
}

void py_judge_call(struct py *p, uint32_t node)
{
	uint32_t callee = py_unwrap(p, py_field(p, node, PY_F_FUNCTION));
	struct py_args a;
	struct py_set s;
	bool known = false;

	if (callee == PY_NONE)
		return;
	py_args(p, node, &a);
	judge_allow_pickle(p, node);
	py_judge_handed_on(p, &a);
	py_judge_intent_of_call(p, &a, callee);
	s = p->set[p->node[callee].value];
	for (unsigned i = 0; i < s.n; i++)
		if (p->atom[s.atom[i]].kind == PY_PATH) {
			judge_callee(p, &a, p->atom[s.atom[i]]);
			known = true;
		}
	if (p->node[callee].sym != PY_ATTRIBUTE)
		return;
	judge_format(p, callee);
	judge_reading_method(p, &a, callee);
	py_judge_file_method(p, &a, callee, known);
}
