/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the program of a step, and makes the words to execute it with.
 *
 * The cell's root is the host's /usr, so a tool below /usr has the same path inside.  That holds only if no link on the
 * path leaves /usr: /usr/bin/cc may go through /etc/alternatives, and the cell has its own /etc.  Such a path is
 * replaced by the path that it resolves to.  A tool outside /usr is mounted in the cell as one read-only file below
 * LANG_TOOL_DIR; that suffices for programs without companions.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/beside.h"
#include "base/buf.h"
#include "base/str.h"
#include "lang/lang.h"

#define USR "/usr/"

static bool below_usr(const char *path)
{
	return strncmp(path, USR, strlen(USR)) == 0;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* True if resolving path never leaves /usr, not even temporarily. */
static bool stays_below_usr(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
	AUTO_FD usr = FD_NONE;
	AUTO_FD fd = FD_NONE;

	if (!below_usr(path))
		return false;
	usr = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (usr < 0)
		return false;
	fd = (int)syscall(SYS_openat2, usr, path + strlen(USR), &how, sizeof(how));
	return fd >= 0;
}

/* Sets path to the usable form of a candidate; false if there is no such program. */
static bool try_tool(const char *candidate, char *path, size_t size, bool *ret_bind)
{
	char real[PATH_MAX];

	if (!is_program(candidate))
		return false;
	if (stays_below_usr(candidate)) {
		*ret_bind = false;
		return str_copy(path, size, candidate);
	}
	if (!realpath(candidate, real))
		return false;
	*ret_bind = !below_usr(real);
	return str_copy(path, size, real);
}

struct candidate {
	char *path;
	size_t size;
	bool *bind;
};

static bool try_candidate(const char *path, void *arg)
{
	const struct candidate *c = arg;

	return try_tool(path, c->path, c->size, c->bind);
}

/* A file of an npm package: in the place that the operator named, next to brig, or where `make install` puts it. */
static bool try_package(const char *file, char *path, size_t size, bool *ret_bind)
{
	struct candidate c = { path, size, ret_bind };

	return beside_find(file, try_candidate, &c);
}

int lang_find_tool(const struct language *lang, const struct lang_step *step, char *path, size_t size, bool *ret_bind,
		   struct brig_error *err)
{
	char found[PATH_MAX];
	bool bind = false;

	for (size_t i = 0; i < ARRAY_LEN(step->tool) && step->tool[i]; i++) {
		const char *candidate = step->tool[i];
		bool hit = candidate[0] == '/' ? try_tool(candidate, found, sizeof(found), &bind)
					       : try_package(candidate, found, sizeof(found), &bind);

		if (!hit)
			continue;
		if (!str_copy(path, size, found))
			return err_set(err, BRIG_E_INTERNAL, 0, "the path of %s is too long: %s", step->program, found);
		*ret_bind = bind;
		return 0;
	}
	if (!step->tool[0])
		return err_set(err, BRIG_E_INTERNAL, 0, "%s runs its compiled output, not a tool", lang->name);
	return err_set(err, BRIG_E_REFUSED, 0, "%s is not installed: %s", step->program, step->install);
}

static void add_folder(struct buf *b, const char *path)
{
	const char *slash = strrchr(path, '/');

	(void)buf_add(b, slash ? path : ".", slash ? (size_t)(slash - path) : 1);
}

/* Adds one word of a row to the buffer and replaces its placeholders. */
static void expand(struct buf *b, const char *word, const char *source, const char *output)
{
	for (; *word; word++) {
		if (word[0] != '%') {
			(void)buf_add(b, word, 1);
			continue;
		}
		word++;
		if (*word == 'd')
			add_folder(b, source);
		else
			(void)buf_adds(b, *word == 's' ? source : *word == 'o' ? output : "%");
		if (!*word)
			break;
	}
	(void)buf_add(b, "", 1);
}

/* Adds the step's words after the program's own word, which must already be in the buffer. */
static int finish_words(const struct language *lang, const struct lang_step *step, const char *source,
			struct buf *words, struct lang_command *ret, struct brig_error *err)
{
	const char *at;

	for (ret->argc = 1; step->argv[ret->argc - 1]; ret->argc++)
		expand(words, step->argv[ret->argc - 1], source, lang->output_name ? lang->output_name : "");
	if (words->no_memory)
		return err_nomem(err);
	if (words->full)
		return err_set(err, BRIG_E_INTERNAL, 0, "the command line of %s is too long", lang->name);
	memcpy(ret->text, words->data, words->len);
	at = ret->text;
	for (size_t i = 0; i < ret->argc; i++, at += strlen(at) + 1)
		ret->argv[i] = at;
	return 0;
}

int lang_command_make(const struct language *lang, const struct lang_step *step, const char *source,
		      struct lang_command *ret, struct brig_error *err)
{
	AUTO_BUF words = BUF_INIT(sizeof(ret->text));
	bool bind = false;
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (!step->tool[0]) {
		expand(&words, PLAN_WORKSPACE "/%o", source, lang->output_name ? lang->output_name : "");
	} else {
		rc = lang_find_tool(lang, step, ret->tool, sizeof(ret->tool), &bind, err);
		if (rc < 0)
			return rc;
		if (bind)
			(void)snprintf(ret->tool_target, sizeof(ret->tool_target), "%s%s", LANG_TOOL_DIR,
				       strrchr(ret->tool, '/'));
		(void)buf_adds(&words, bind ? ret->tool_target : ret->tool);
		(void)buf_add(&words, "", 1);
	}
	return finish_words(lang, step, source, &words, ret, err);
}

int lang_command_make_in_image(const struct language *lang, const struct lang_step *step, const char *source,
			       struct lang_command *ret, struct brig_error *err)
{
	AUTO_BUF words = BUF_INIT(sizeof(ret->text));

	memset(ret, 0, sizeof(*ret));
	if (!step->tool[0])
		expand(&words, PLAN_WORKSPACE "/%o", source, lang->output_name ? lang->output_name : "");
	for (size_t i = 0; i < ARRAY_LEN(step->tool) && step->tool[i] && words.len == 0; i++)
		if (step->tool[i][0] == '/')
			(void)buf_add(&words, step->tool[i], strlen(step->tool[i]) + 1);
	return finish_words(lang, step, source, &words, ret, err);
}
