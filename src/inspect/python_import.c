/* SPDX-License-Identifier: Apache-2.0 */
/* Import statements: the names that they bind to modules, and whether the rules allow them. */
#include "inspect/python.h"

/* The text "a.b.c" of a dotted name, normalized (NFKC); false: too long. */
static bool dotted_path(const struct py *p, uint32_t node, char *out, size_t size, size_t *len)
{
	*len = 0;
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		const struct py_atom *a;

		if (p->node[c].sym != PY_IDENTIFIER || p->node[c].name == PY_NONE)
			continue;
		a = &p->atom[p->node[c].name];
		if (*len + a->len + 1 > size)
			return false;
		if (*len)
			out[(*len)++] = '.';
		memcpy(out + *len, a->text, a->len);
		*len += a->len;
	}
	return *len > 0;
}

struct import {
	uint32_t node;  /* node of the name, for the span */
	uint32_t bound; /* the identifier that is bound */
	char path[200];
	size_t len;
};

/* One clause of "import": a dotted name or an aliased import. */
static bool read_clause(const struct py *p, uint32_t c, struct import *ret)
{
	uint32_t name = p->node[c].sym == PY_ALIASED_IMPORT ? py_field(p, c, PY_F_NAME) : c;

	*ret = (struct import){ .node = name };
	if (name == PY_NONE || p->node[name].sym != PY_DOTTED_NAME)
		return false;
	ret->bound = name == c ? p->node[name].child : py_field(p, c, PY_F_ALIAS);
	return ret->bound != PY_NONE && dotted_path(p, name, ret->path, sizeof(ret->path), &ret->len);
}

static void bind(struct py *p, uint32_t statement, uint32_t bound, uint32_t value)
{
	py_bind(p, p->node[statement].scope, p->node[bound].name, value);
}

static void eval_plain(struct py *p, uint32_t node)
{
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		struct import i;
		const char *dot;

		if (p->node[c].field != PY_F_NAME || !read_clause(p, c, &i))
			continue;
		dot = p->node[c].sym == PY_DOTTED_NAME ? memchr(i.path, '.', i.len) : NULL;
		bind(p, node, i.bound, py_set_text(p, PY_PATH, i.path, dot ? (size_t)(dot - i.path) : i.len));
	}
}

void py_eval_import(struct py *p, uint32_t node)
{
	uint32_t module = py_field(p, node, PY_F_MODULE_NAME), from = PY_UNKNOWN;
	char path[200];
	size_t len;

	if (p->node[node].sym == PY_IMPORT) {
		eval_plain(p, node);
		return;
	}
	if (module != PY_NONE && p->node[module].sym == PY_DOTTED_NAME &&
	    dotted_path(p, module, path, sizeof(path), &len))
		from = py_set_text(p, PY_PATH, path, len);
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		struct import i;

		if (p->node[c].field == PY_F_NAME && read_clause(p, c, &i))
			bind(p, node, i.bound, py_attribute_of(p, from, i.path, i.len));
	}
}

/* ---- judgement ------------------------------------------------------------------------------------------ */

static void judge_plain(struct py *p, uint32_t node)
{
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		struct import i;

		if (p->node[c].field == PY_F_NAME && read_clause(p, c, &i))
			py_judge_import(p, i.path, i.len, py_span(p, i.node));
	}
}

static void judge_members(struct py *p, uint32_t node, const char *module, size_t len)
{
	uint32_t from = py_set_text(p, PY_PATH, module, len);

	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		struct import i;
		const struct py_atom *path;

		if (p->node[c].field != PY_F_NAME || !read_clause(p, c, &i))
			continue;
		py_judge_attribute_name(p, from, i.path, i.len, py_span(p, i.node));
		path = py_only(p, py_attribute_of(p, from, i.path, i.len), PY_PATH);
		if (path)
			py_judge_path(p, path->text, path->len, py_span(p, i.node));
	}
}

/* Modules with functions whose bare names tell nothing: system, open, run. */
static bool runs_code(const char *path, size_t len)
{
	static const char *const module[] = { "os", "posix", "nt", "builtins", "pty" };

	for (size_t i = 0; i < ARRAY_LEN(module); i++)
		if (strlen(module[i]) == len && memcmp(module[i], path, len) == 0)
			return true;
	return false;
}

/* "from . import subprocess" does not import the module that a reader expects. */
static void judge_relative(struct py *p, uint32_t node, uint32_t module)
{
	const char *text = p->text + p->node[module].start;
	size_t len = p->node[module].end - p->node[module].start, dots = strspn(text, ".");
	bool borrowed = dots < len && py_is_inside(text + dots, len - dots);

	py_judge_import(p, text, len, py_span(p, module));
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next) {
		struct import i;

		if (p->node[c].field == PY_F_NAME && read_clause(p, c, &i))
			borrowed |= py_is_inside(i.path, i.len);
	}
	if (borrowed)
		judge_check(p->j, "borrowed-name", py_span(p, node), "%s", "");
}

void py_judge_import_statement(struct py *p, uint32_t node)
{
	uint32_t module = py_field(p, node, PY_F_MODULE_NAME);
	char path[200];
	size_t len, matched;

	if (p->node[node].sym == PY_IMPORT) {
		judge_plain(p, node);
		return;
	}
	/* not in any list; its values are unknown */
	if (module != PY_NONE && p->node[module].sym == PY_RELATIVE_IMPORT)
		judge_relative(p, node, module);
	if (module == PY_NONE || p->node[module].sym != PY_DOTTED_NAME ||
	    !dotted_path(p, module, path, sizeof(path), &len))
		return;
	(void)py_judge_import(p, path, len, py_span(p, module));
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next)
		if (p->node[c].sym == PY_WILDCARD_IMPORT) {
			if (py_module_rule(p, path, len, &matched) && !py_is_allowed(p, path, len))
				judge_check(p->j, runs_code(path, len) ? "star-import-inside" : "star-import",
					    py_span(p, node), "%.*s", (int)len, path);
			return;
		}
	judge_members(p, node, path, len);
}
