/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands.
 *
 * A command is a program and its arguments, without a shell in between. The inspection, which parses command lines,
 * gets the words quoted wherever a shell would interpret them, so `echo ';' rm` is an echo with two arguments there,
 * too. Audit log and history record the same line.
 *
 * The program is looked up as a shell in the cell would: along PATH. If the cell's programs are the host's, the lookup
 * happens beforehand, and a missing program refuses the run. Otherwise (an image, a root of its own, a PATH of the
 * request, a program in the workspace) env(1) looks it up inside, with its usual exit codes: 127 if it is missing, 126
 * if it cannot be executed.
 */
#include "executor/subject.h"

#include <stdio.h>
#include <string.h>

#include "backend/guest/steward.h"
#include "base/str.h"

#define LINE_MAX_BYTES (5 * (size_t)BRIG_STRINGS_MAX) /* a byte may need five: '\'' and the surrounding quotes */

/* ---- the text ------------------------------------------------------------------------------------ */

/* Words that a shell interprets although they contain no special characters. */
static bool is_reserved(const char *word)
{
	static const char *const reserved[] = { "if",   "then",     "else",   "elif",  "fi",    "do",
						"done", "case",     "esac",   "while", "until", "for",
						"in",   "function", "select", "time",  "coproc" };

	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (str_eq(reserved[i], word))
			return true;
	return false;
}

static bool is_plain(const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,-";

	return *word && strspn(word, plain) == strlen(word) && !is_reserved(word);
}

static void add_quoted(struct buf *b, const char *word)
{
	if (is_plain(word)) {
		(void)buf_adds(b, word);
		return;
	}
	(void)buf_adds(b, "'");
	for (const char *c = word; *c; c++)
		(void)(*c == '\'' ? buf_adds(b, "'\\''") : buf_add(b, c, 1));
	(void)buf_adds(b, "'");
}

/* Joins the words to a line for people and for the inspection. */
static int make_line(struct subject *s, const char *const *words, size_t n, struct brig_error *err)
{
	AUTO_BUF line = BUF_INIT(LINE_MAX_BYTES);

	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			(void)buf_adds(&line, " ");
		add_quoted(&line, words[i]);
	}
	if (line.no_memory || line.full)
		return err_nomem(err);
	s->line = strdup(buf_str(&line));
	if (!s->line)
		return err_nomem(err);
	s->text = s->line;
	s->len = strlen(s->line);
	return 0;
}

int subject_begin(struct subject *s, const struct brig_request *req, struct brig_error *err)
{
	*s = (struct subject){
		.req = req, .text = req->code, .len = req->code_len, .args = req->args, .n_args = req->n_args
	};
	switch (req->kind) {
	case BRIG_KIND_COMMAND:
		return make_line(s, req->args, req->n_args, err);
	case BRIG_KIND_TESTS:
		return make_line(s, (const char *const[]){ "brig", "test", req->test_path }, req->test_path ? 3 : 2,
				 err);
	case SUBJECT_SESSION:
		return make_line(s, (const char *const[]){ "brig", "session" }, 2, err);
	case BRIG_KIND_SHELL:
		s->line = strndup(req->code, req->code_len);
		s->text = s->line;
		s->args = &s->text;
		s->n_args = 1;
		return s->line ? 0 : err_nomem(err);
	default:
		return 0;
	}
}

void subject_release(struct subject *s)
{
	free(s->line);
	tests_free(s->tests);
	s->line = NULL;
	s->tests = NULL;
}

/* ---- the language -------------------------------------------------------------------------------- */

static const char *runtime_of(const char *program)
{
	const struct language *lang = lang_by_program(program);

	return lang ? lang->name : lang_shell_line.name;
}

static int detect_tests(struct subject *s, int archive, struct brig_error *err)
{
	int rc = tests_find(s->req, archive, &s->tests, err);

	if (rc < 0)
		return rc;
	s->lang = &s->tests->lang;
	s->runtime = s->lang->name;
	s->args = s->tests->run.argv;
	while (s->args[s->n_args])
		s->n_args++;
	return 0;
}

int subject_detect(struct subject *s, int archive, struct brig_error *err)
{
	const struct brig_request *req = s->req;
	int rc;

	switch (req->kind) {
	case BRIG_KIND_COMMAND:
		s->lang = &lang_command;
		s->runtime = runtime_of(req->args[0]);
		return 0;
	case BRIG_KIND_SHELL:
		s->lang = &lang_shell_line;
		s->runtime = lang_shell_line.name;
		return 0;
	case SUBJECT_SESSION:
		s->lang = &lang_session;
		s->runtime = lang_session.name;
		return 0;
	case BRIG_KIND_TESTS:
		return detect_tests(s, archive, err);
	default:
		rc = lang_detect(req->language, req->file_name, req->code, req->code_len, &s->lang, err);
		s->runtime = rc < 0 ? NULL : s->lang->name;
		return rc;
	}
}

bool subject_inspection(const struct subject *s, const char *source, enum inspect_kind *ret)
{
	*ret = INSPECT_COMMAND;
	if (s->req->kind == SUBJECT_SESSION)
		return false; /* the pieces run in it are inspected one by one */
	if (s->tests)
		return false; /* a project consists of many files, and the caller asked to run them */
	return s->req->kind == BRIG_KIND_COMMAND || s->req->kind == BRIG_KIND_SHELL ||
	       inspection_kind(s->lang, source, ret);
}

/* ---- the words that start it --------------------------------------------------------------------- */

static bool has_own_path(const struct brig_request *req)
{
	for (size_t i = 0; i < req->n_env; i++)
		if (strncmp(req->env[i], "PATH=", strlen("PATH=")) == 0)
			return true;
	return false;
}

static bool is_found_on_host(const struct subject *s, const struct subject_place *place)
{
	return !place->in_image && !place->own_path && !*place->set->rootfs && !strchr(s->req->args[0], '/') &&
	       !has_own_path(s->req) && s->req->n_packages == 0 && !(s->req->flags & BRIG_RUN_PROJECT_PACKAGES);
}

static int find_on_host(const struct subject *s, struct lang_command *ret, struct brig_error *err)
{
	static const char *const dirs[] = { "/usr/local/bin/", "/usr/bin/", "/bin/" };
	char paths[ARRAY_LEN(dirs)][PATH_MAX];
	const char *name = s->req->args[0];
	struct lang_step step = { .program = name,
				  .install = "install the package that has it; programs are looked for in "
					     "/usr/local/bin, /usr/bin and /bin" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "%s%.255s", dirs[i], name);
		step.tool[i] = paths[i];
	}
	/* If the host has only python3, the cell has it by both names. */
	if (str_eq(name, "python"))
		step.tool[ARRAY_LEN(dirs)] = "/usr/bin/python3";
	return lang_command_make(s->lang, &step, "", ret, err);
}

/* Code in this language may need a variant of its program; prefers that one. */
static int prefer_variant(const struct subject *s, const char *source, const struct subject_place *place,
			  struct lang_command *ret)
{
	const struct brig_request *req = s->req;
	const struct language *variant;

	/* Our own images have the variant; that of other images is unknown. */
	if (*place->set->rootfs || (place->in_image && *place->set->docker_image) || req->kind != BRIG_KIND_CODE ||
	    !lang_is_open(s->lang, req->language, req->code, req->code_len))
		return -ENOENT;
	variant = lang_by_name(s->lang->preferred_variant);
	return place->in_image ? lang_command_make_in_image(variant, &variant->run, source, ret, NULL)
			       : lang_command_make(variant, &variant->run, source, ret, NULL);
}

/* TypeScript contexts need esbuild to remove types; if it is not installed, they say so. */
static void show_esbuild(struct lang_command *ret)
{
	const struct language *lang = lang_by_name("typescript");
	bool bind = false;

	if (lang && lang_find_tool(lang, &lang->compile, ret->tool, sizeof(ret->tool), &bind, NULL) == 0 && bind)
		(void)snprintf(ret->tool_target, sizeof(ret->tool_target), "%s%s", LANG_TOOL_DIR,
			       strrchr(ret->tool, '/'));
}

int subject_command(const struct subject *s, const struct lang_step *step, const char *source,
		    const struct subject_place *place, struct lang_command *ret, size_t *ret_skip,
		    struct brig_error *err)
{
	*ret_skip = 0;
	if (s->req->kind == SUBJECT_SESSION) {
		*ret = (struct lang_command){ .argv = { STEWARD_PATH }, .argc = 1 };
		if (!place->in_image)
			show_esbuild(ret);
		return 0;
	}
	if (s->req->kind == BRIG_KIND_COMMAND && is_found_on_host(s, place)) {
		*ret_skip = 1;
		return find_on_host(s, ret, err);
	}
	if (prefer_variant(s, source, place, ret) == 0)
		return 0;
	return place->in_image ? lang_command_make_in_image(s->lang, step, source, ret, err)
			       : lang_command_make(s->lang, step, source, ret, err);
}

void subject_explain(const struct subject *s, int exit_code, char *reason, size_t size)
{
	if (s->req->kind != BRIG_KIND_COMMAND || (exit_code != 126 && exit_code != 127))
		return;
	(void)snprintf(reason, size, "exit code %d: '%.200s' %s in the cell, or ended with that code itself", exit_code,
		       s->req->args[0], exit_code == 127 ? "was not found" : "could not be executed");
}
