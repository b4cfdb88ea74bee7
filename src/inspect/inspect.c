/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a text into findings: bytes pass (bytes.c), parser (parse.c), the language's walk, judgement (judge.c),
 * positions. All work on one text shares one deadline and one budget of steps, however deep code is nested in strings.
 */
#include "inspect/inspect.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "inspect/dispatch.h"

#define TIME_MAX_NS (1500 * NS_PER_MS) /* together with the worker's own limits, hostile input is done within 2 s */
#define STEPS_MAX   20000000

const char *const inspect_kind_name[] = {
	[INSPECT_PYTHON] = "python",         [INSPECT_NOTEBOOK] = "notebook", [INSPECT_JAVASCRIPT] = "javascript",
	[INSPECT_TYPESCRIPT] = "typescript", [INSPECT_TSX] = "tsx",           [INSPECT_GO] = "go",
	[INSPECT_SHELL] = "shell",           [INSPECT_COMMAND] = "command",   [INSPECT_PATH] = "path",
};
static_assert(ARRAY_LEN(inspect_kind_name) == INSPECT_KIND_COUNT, "inspect_kind_name[] misses one");

enum rule_language inspect_language(enum inspect_kind kind)
{
	static const enum rule_language language[INSPECT_KIND_COUNT] = {
		[INSPECT_PYTHON] = RULE_PYTHON,
		[INSPECT_NOTEBOOK] = RULE_PYTHON,
		[INSPECT_JAVASCRIPT] = RULE_JAVASCRIPT,
		[INSPECT_TYPESCRIPT] = RULE_TYPESCRIPT,
		[INSPECT_TSX] = RULE_TYPESCRIPT,
		[INSPECT_GO] = RULE_GO,
		[INSPECT_SHELL] = RULE_SHELL,
		[INSPECT_COMMAND] = RULE_SHELL,
		[INSPECT_PATH] = RULE_PATH,
	};

	return language[kind];
}

enum inspect_kind inspect_example_kind(enum rule_language lang)
{
	static const enum inspect_kind kind[RULE_LANGUAGE_COUNT] = {
		[RULE_PYTHON] = INSPECT_PYTHON,         [RULE_JAVASCRIPT] = INSPECT_JAVASCRIPT,
		[RULE_TYPESCRIPT] = INSPECT_TYPESCRIPT, [RULE_GO] = INSPECT_GO,
		[RULE_SHELL] = INSPECT_SHELL,           [RULE_PATH] = INSPECT_PATH,
	};

	return kind[lang];
}

static void run_inspector(struct judge *j, enum inspect_kind kind, const char *text, size_t len)
{
	struct span whole = { 0, (uint32_t)len };

	switch (kind) {
	case INSPECT_PYTHON:
		inspect_python(j, text, len);
		break;
	case INSPECT_NOTEBOOK:
		inspect_notebook(j, text, len);
		break;
	case INSPECT_JAVASCRIPT:
	case INSPECT_TYPESCRIPT:
	case INSPECT_TSX:
		inspect_javascript(j, kind, text, len);
		break;
	case INSPECT_GO:
		inspect_go(j, text, len);
		break;
	case INSPECT_SHELL:
		inspect_shell(j, text, len);
		break;
	case INSPECT_COMMAND:
		judge_command(j, text, len, whole);
		break;
	case INSPECT_PATH:
		judge_path(j, text, len, whole);
		break;
	case INSPECT_KIND_COUNT:
		break;
	}
}

void inspect_dispatch(struct judge *j, enum inspect_kind kind, const char *text, size_t len)
{
	AUTO_FREE char *clean = NULL;

	j->language = inspect_language(kind);
	clean = inspect_bytes(j, text, len);
	if (clean)
		run_inspector(j, kind, clean, len);
}

/* ---- positions ------------------------------------------------------------------------------------------ */

/* Start of each line; computed only if there are findings to locate. */
struct lines {
	uint32_t *start;
	size_t n;
};

static bool is_line_end(const char *text, size_t len, size_t i)
{
	return text[i] == '\n' || (text[i] == '\r' && (i + 1 == len || text[i + 1] != '\n'));
}

static bool find_lines(const char *text, size_t len, struct lines *ret)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += is_line_end(text, len, i);
	ret->start = malloc(n * sizeof(*ret->start));
	if (!ret->start)
		return false;
	ret->start[0] = 0;
	ret->n = 1;
	for (size_t i = 0; i < len; i++)
		if (is_line_end(text, len, i))
			ret->start[ret->n++] = (uint32_t)i + 1;
	return true;
}

static void locate(const struct lines *lines, const char *text, uint32_t at, uint32_t *line, uint32_t *column)
{
	size_t lo = 0, hi = lines->n;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (lines->start[mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	*line = (uint32_t)lo + 1;
	*column = 1;
	for (uint32_t i = lines->start[lo]; i < at; i++)
		*column += ((unsigned char)text[i] & 0xc0) != 0x80;
}

static bool place_all(struct findings *f, const char *text, size_t len)
{
	struct lines lines;

	if (f->n == 0)
		return true;
	if (!find_lines(text, len, &lines))
		return false;
	for (size_t i = 0; i < f->n; i++) {
		struct finding *one = &f->row[i];

		locate(&lines, text, one->span.start, &one->line, &one->column);
		locate(&lines, text, one->span.end, &one->end_line, &one->end_column);
	}
	free(lines.start);
	return true;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

int inspect_text(const struct rule_set *rules, const struct inspect_request *req, struct findings *ret,
		 struct brig_error *err)
{
	struct findings found = { 0 };
	struct judge j = {
		.rules = rules,
		.language = inspect_language(req->kind),
		.level = req->level,
		.workspace = req->workspace ? req->workspace : "/workspace",
		.strict_commands = req->strict_commands,
		.allowed_commands = req->allowed_commands,
		.asked = req->asked,
		.n_asked = req->n_asked,
		.asked_language = inspect_language(req->asked_kind),
		.has_input = req->has_input,
		.text = req->text ? req->text : "",
		.len = req->text ? req->len : 0,
		.out = &found,
		.steps_left = STEPS_MAX,
		.deadline_ns = clock_now_ns() + TIME_MAX_NS,
	};

	inspect_dispatch(&j, req->kind, j.text, j.len);
	if (j.out_of_memory || !place_all(&found, j.text, j.len)) {
		findings_release(&found);
		return err_nomem(err);
	}
	findings_sort(&found);
	*ret = found;
	return 0;
}
