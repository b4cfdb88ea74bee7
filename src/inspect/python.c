/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the Python inspector; python.h explains how it works. */
#include "inspect/python.h"

static bool first_sets(struct py *p)
{
	struct py_set anything = { .open = true }, nothing = { 0 };

	return py_set_intern(p, &anything) == PY_UNKNOWN && py_set_intern(p, &nothing) == PY_NOTHING && !p->failed;
}

static void report_error(struct py *p)
{
	struct span where = { p->first_error, p->first_error + 1 };

	if (p->first_error != PY_NONE)
		judge_check(p->j, "parse-error", where, "%s", "");
}

void inspect_python(struct judge *j, const char *text, size_t len)
{
	struct py p = { .j = j, .text = text, .len = (uint32_t)len };
	struct span whole = { 0, (uint32_t)len };

	if (first_sets(&p) && py_read_tree(&p)) {
		report_error(&p);
		py_scopes(&p);
		if (!p.failed)
			py_evaluate(&p);
		if (p.n_scopes)
			py_judge(&p);
	}
	if (p.failed && !j->out_of_memory)
		judge_check(j, judge_unfinished(j), whole, "it takes too many steps");
	py_release(&p);
}
