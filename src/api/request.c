/* SPDX-License-Identifier: Apache-2.0 */
#include "api/request.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/id.h"
#include "executor/environment.h"
#include "files/beneath.h"
#include "files/glob.h"
#include "model/plan.h"

#define VERSIONED_MAX  4096 /* a larger size must be uninitialised memory */
#define PACKAGES_MAX   256
#define WARM_MAX       64
#define ARGS_MAX       4096
#define ENV_MAX        1024
#define OPTIONS_MAX    256
#define ARTIFACTS_MAX  256
#define SOURCES_MAX    256
#define HIDDEN_MAX     1024 /* the limit for a project (workspace/hide.c) */
#define NAME_MAX_BYTES 255  /* of a file name in the cell */
#define WORD_MAX_BYTES 64   /* of a language, trust level or environment */

int versioned_read(void *ret, uint32_t known, const void *given, const char *what, struct brig_error *err)
{
	const unsigned char *bytes = given;
	uint32_t size;

	memcpy(&size, given, sizeof(size));
	if (size < sizeof(size) || size > VERSIONED_MAX)
		return err_set(err, BRIG_E_USAGE, 0,
			       "struct %s says that it has %u bytes: initialise it with its _INIT macro", what, size);
	for (uint32_t i = known; i < size; i++)
		if (bytes[i] != 0)
			return err_set(err, BRIG_E_USAGE, 0,
				       "struct %s uses a member that libbrig %s does not know: update the library",
				       what, BRIG_VERSION);
	memcpy(ret, given, size < known ? size : known);
	memcpy(ret, &known, sizeof(known));
	return 0;
}

static int check_word(const char *what, const char *word, struct brig_error *err)
{
	if (!word)
		return 0;
	if (!*word)
		return err_set(err, BRIG_E_USAGE, 0, "%s is empty: pass NULL for the default", what);
	if (strnlen(word, WORD_MAX_BYTES + 1) > WORD_MAX_BYTES)
		return err_set(err, BRIG_E_USAGE, 0, "%s is longer than %d bytes", what, WORD_MAX_BYTES);
	return 0;
}

static int check_file_name(const char *name, struct brig_error *err)
{
	if (!name)
		return 0;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/'))
		return err_set(err, BRIG_E_USAGE, 0, "file_name '%.80s' is not a base name: leave out the directories",
			       name);
	if (strnlen(name, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
		return err_set(err, BRIG_E_USAGE, 0, "file_name is longer than %d bytes", NAME_MAX_BYTES);
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return err_set(err, BRIG_E_USAGE, 0,
				       "file_name has a control character at byte %zu: rename the file",
				       (size_t)(c - name));
	return 0;
}

static bool has_workspace(const struct brig_request *req)
{
	return req->workspace || req->project_fd || req->files_fd;
}

static int check_source_path(const struct brig_request *req, struct brig_error *err)
{
	const char *path = req->source_path;

	if (!path)
		return 0;
	if (req->kind != BRIG_KIND_CODE || !has_workspace(req))
		return err_set(err, BRIG_E_USAGE, 0, "source_path is for code that lies in a workspace");
	if (!beneath_is_path(path, strnlen(path, PATH_MAX)))
		return err_set(err, BRIG_E_USAGE, 0, "source_path '%.80s' is no path below the workspace", path);
	return 0;
}

/* env(1) would take such a name for an option or an assignment and not find the program. */
static int check_program(const struct brig_request *req, struct brig_error *err)
{
	const char *program = req->n_args > 0 && req->args ? req->args[0] : NULL;

	if (req->code || req->file_name)
		return err_set(err, BRIG_E_USAGE, 0, "a command is in the arguments: code and file_name must be NULL");
	if (!program || !*program)
		return err_set(err, BRIG_E_USAGE, 0, "there is no command: the first argument names the program");
	if (program[0] == '-' || strchr(program, '='))
		return err_set(err, BRIG_E_USAGE, 0,
			       "'%.80s' cannot be run as a command: a program's name has no '=' and no leading '-'",
			       program);
	return 0;
}

static int check_line(const struct brig_request *req, struct brig_error *err)
{
	if (!req->code)
		return err_set(err, BRIG_E_USAGE, 0, "there is no line for the shell");
	if (req->n_args > 0 || req->file_name)
		return err_set(err, BRIG_E_USAGE, 0,
			       "a line for the shell has no file_name and no arguments: write them into it");
	if (req->code_len >= BRIG_STRING_MAX || memchr(req->code, '\0', req->code_len))
		return err_set(
			err, BRIG_E_USAGE, 0,
			"the line for the shell is no string of at most %u bytes: run it as a shell program instead",
			BRIG_STRING_MAX - 1);
	return 0;
}

static int check_tests(const struct brig_request *req, struct brig_error *err)
{
	if (!req->workspace && !req->files_fd && !req->project_fd)
		return err_set(err, BRIG_E_USAGE, 0, "tests need a workspace: the folder of the project, or its files");
	if (req->code || req->file_name || req->n_args > 0)
		return err_set(err, BRIG_E_USAGE, 0, "a test run has no code, file_name or arguments of its own");
	if (req->test_path && (!*req->test_path || strnlen(req->test_path, PATH_MAX) == PATH_MAX))
		return err_set(err, BRIG_E_USAGE, 0, "test_path is empty or too long: pass NULL for all tests");
	return 0;
}

static int check_code(const struct brig_request *req, struct brig_error *err)
{
	switch (req->kind) {
	case BRIG_KIND_CODE:
		break;
	case BRIG_KIND_COMMAND:
		return check_program(req, err);
	case BRIG_KIND_SHELL:
		return check_line(req, err);
	case BRIG_KIND_TESTS:
		return check_tests(req, err);
	default:
		return err_set(err, BRIG_E_USAGE, 0, "kind %u is not known", req->kind);
	}
	if (!req->code)
		return err_set(err, BRIG_E_USAGE, 0, "the request has no code");
	if (req->code_len > BRIG_CODE_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "the code has %zu bytes; at most %u are accepted", req->code_len,
			       BRIG_CODE_MAX);
	return 0;
}

/* Adds the size of each string to *total; argv and envp share one area of the new process. */
static int check_strings(const char *what, const char *const *list, size_t n, size_t max, size_t *total,
			 struct brig_error *err)
{
	if (n > max)
		return err_set(err, BRIG_E_USAGE, 0, "%zu %s given; at most %zu are accepted", n, what, max);
	if (n > 0 && !list)
		return err_set(err, BRIG_E_USAGE, 0, "%zu %s announced, but the list is NULL", n, what);
	for (size_t i = 0; i < n; i++) {
		size_t size;

		if (!list[i])
			return err_set(err, BRIG_E_USAGE, 0, "number %zu of the %s is NULL", i + 1, what);
		size = strnlen(list[i], BRIG_STRING_MAX) + 1;
		if (size > BRIG_STRING_MAX)
			return err_set(err, BRIG_E_USAGE, 0, "number %zu of the %s is longer than %u bytes", i + 1,
				       what, BRIG_STRING_MAX - 1);
		*total += size;
	}
	if (*total > BRIG_STRINGS_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "arguments and environment take more than %u bytes together",
			       BRIG_STRINGS_MAX);
	return 0;
}

static int check_env_names(const char *const *env, size_t n, struct brig_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *equals = strchr(env[i], '=');
		size_t len = equals ? (size_t)(equals - env[i]) + 1 : 0;

		if (!equals)
			return err_set(err, BRIG_E_USAGE, 0, "environment entry '%.80s' has no '=': write NAME=VALUE",
				       env[i]);
		if (equals == env[i])
			return err_set(err, BRIG_E_USAGE, 0, "environment entry '%.80s' has no name: write NAME=VALUE",
				       env[i]);
		for (size_t k = 0; k < i; k++)
			if (strncmp(env[k], env[i], len) == 0)
				return err_set(err, BRIG_E_USAGE, 0, "environment name '%.*s' is given twice",
					       len < 80 ? (int)len - 1 : 80, env[i]);
	}
	return 0;
}

static int check_options(const struct brig_request *req, struct brig_error *err)
{
	if (req->n_options > OPTIONS_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "%zu options given; at most %d are accepted", req->n_options,
			       OPTIONS_MAX);
	if (req->n_options > 0 && !req->options)
		return err_set(err, BRIG_E_USAGE, 0, "%zu options announced, but the list is NULL", req->n_options);
	for (size_t i = 0; i < req->n_options; i++)
		if (!req->options[i].key || !*req->options[i].key || !req->options[i].value)
			return err_set(err, BRIG_E_USAGE, 0, "option number %zu has no key or no value", i + 1);
	return 0;
}

/* A descriptor that is open and, if asked, readable; -1 means none. */
static int check_fd(const char *what, int fd, bool readable, struct brig_error *err)
{
	int flags;

	if (fd == -1)
		return 0;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return err_set(err, BRIG_E_USAGE, errno, "%s is %d; give an open descriptor, or -1 for none", what, fd);
	if (readable && ((flags & O_ACCMODE) == O_WRONLY || flags & O_PATH))
		return err_set(err, BRIG_E_USAGE, 0, "%s (descriptor %d) is not open for reading", what, fd);
	return 0;
}

static int check_flags(uint32_t flags, struct brig_error *err)
{
	uint32_t unknown =
		flags & ~(BRIG_RUN_NO_CAPTURE | BRIG_RUN_RECEIPT | BRIG_RUN_APPLY | BRIG_RUN_PROJECT_PACKAGES |
			  BRIG_RUN_OVERWRITE | BRIG_RUN_APPLY_GIT | BRIG_RUN_DIFF);

	return unknown ? err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", unknown) : 0;
}

static int check_stdin(const struct brig_request *req, struct brig_error *err)
{
	if (req->stdin_len > 0 && !req->stdin_data)
		return err_set(err, BRIG_E_USAGE, 0, "stdin_len is %zu, but stdin_data is NULL", req->stdin_len);
	return check_fd("stdin_fd", req->stdin_fd, true, err);
}

static int check_folder(const char *what, const char *path, struct brig_error *err)
{
	if (!path)
		return 0;
	if (!*path || strnlen(path, PATH_MAX) == PATH_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "%s is no path: it has no bytes, or more than %d", what,
			       PATH_MAX - 1);
	return 0;
}

static int check_artifacts(const struct brig_request *req, struct brig_error *err)
{
	size_t strings = 0;
	int rc = check_strings("artifacts", req->artifacts, req->n_artifacts, ARTIFACTS_MAX, &strings, err);

	for (size_t i = 0; i < req->n_artifacts && rc == 0; i++)
		if (!glob_is_pattern(req->artifacts[i]))
			rc = err_set(err, BRIG_E_USAGE, 0,
				     "'%.80s' is no pattern for files of the workspace: write '*.png', 'dist/' or "
				     "'out/**/*.csv', without '..'",
				     req->artifacts[i]);
	return rc;
}

/* Only checks that there are names; the executor validates them. */
static int check_packages(const struct brig_request *req, struct brig_error *err)
{
	size_t strings = 0;

	if (req->flags & BRIG_RUN_PROJECT_PACKAGES && !req->workspace && !req->project_fd)
		return err_set(err, BRIG_E_USAGE, 0,
			       "there is no workspace whose packages could be installed: name one");
	return check_strings("packages", req->packages, req->n_packages, PACKAGES_MAX, &strings, err);
}

/* 0 means none here, although it could be a descriptor of the caller. */
static int check_archives(const struct brig_request *req, struct brig_error *err)
{
	int rc = req->files_fd ? check_fd("files_fd", req->files_fd, true, err) : 0;

	if (rc == 0 && req->out_fd)
		rc = check_fd("out_fd", req->out_fd, false, err);
	if (rc == 0 && (req->files_fd < 0 || req->out_fd < 0))
		rc = err_set(err, BRIG_E_USAGE, 0, "files_fd or out_fd is negative: 0 means none");
	if (rc == 0 && req->files_fd && req->workspace)
		rc = err_set(
			err, BRIG_E_USAGE, 0,
			"a workspace and an archive of files exclude each other: put the files into the workspace");
	if (rc == 0 && req->out_fd && req->out_dir)
		rc = err_set(err, BRIG_E_USAGE, 0, "artifacts go to a folder or into an archive, not to both");
	if (rc == 0 && req->out_fd && req->n_artifacts == 0)
		rc = err_set(err, BRIG_E_USAGE, 0, "out_fd is given, but no pattern of the artifacts that go there");
	return rc;
}

/* A packed project, and the descriptor for its final state. */
static int check_packed(const struct brig_request *req, struct brig_error *err)
{
	size_t strings = 0;
	int rc = req->project_fd ? check_fd("project_fd", req->project_fd, true, err) : 0;

	if (rc == 0 && req->left_fd)
		rc = check_fd("left_fd", req->left_fd, false, err);
	if (rc == 0 && (req->project_fd < 0 || req->left_fd < 0))
		rc = err_set(err, BRIG_E_USAGE, 0, "project_fd or left_fd is negative: 0 means none");
	if (rc == 0 && req->project_fd && (req->workspace || req->files_fd))
		rc = err_set(err, BRIG_E_USAGE, 0,
			     "a workspace, an archive of files and a packed project exclude each other");
	if (rc == 0 && req->n_hidden > 0 && !req->project_fd)
		rc = err_set(err, BRIG_E_USAGE, 0, "hidden is given, but no packed project of which it could be");
	if (rc == 0)
		rc = check_strings("hidden paths", req->hidden, req->n_hidden, HIDDEN_MAX, &strings, err);
	for (size_t i = 0; i < req->n_hidden && rc == 0; i++) {
		size_t len = strlen(req->hidden[i]);

		if (!beneath_is_path(req->hidden[i], len > 0 && req->hidden[i][len - 1] == '/' ? len - 1 : len))
			rc = err_set(err, BRIG_E_USAGE, 0, "hidden path '%.80s' is none below the project",
				     req->hidden[i]);
	}
	return rc;
}

static int check_sources(const struct brig_request *req, struct brig_error *err)
{
	size_t strings = 0;
	int rc = check_strings("sources", req->sources, req->n_sources, SOURCES_MAX, &strings, err);

	if (rc == 0 && req->n_sources > 0 && (req->kind != BRIG_KIND_CODE || !has_workspace(req)))
		rc = err_set(err, BRIG_E_USAGE, 0, "sources are for code that lies in a workspace, beside them");
	for (size_t i = 0; i < req->n_sources && rc == 0; i++)
		if (!beneath_is_path(req->sources[i], strlen(req->sources[i])))
			rc = err_set(err, BRIG_E_USAGE, 0, "source '%.80s' is no path below the workspace",
				     req->sources[i]);
	return rc;
}

/* What to read from the project, change in it, and fetch from it. */
static int check_work(const struct brig_request *req, struct brig_error *err)
{
	int rc = check_folder("workspace", req->workspace, err);

	if (rc == 0)
		rc = check_sources(req, err);
	if (rc == 0)
		rc = check_folder("venv", req->venv, err);
	if (rc == 0)
		rc = check_word("environment", req->environment, err);
	if (rc == 0)
		rc = check_packages(req, err);
	if (rc == 0)
		rc = check_archives(req, err);
	if (rc == 0)
		rc = check_packed(req, err);
	if (rc == 0)
		rc = check_folder("out_dir", req->out_dir, err);
	if (rc == 0)
		rc = check_artifacts(req, err);
	if (rc == 0 && (req->flags & (BRIG_RUN_APPLY | BRIG_RUN_APPLY_GIT)) && !req->workspace)
		rc = err_set(err, BRIG_E_USAGE, 0, "there is no workspace that changes could be applied to: name one");
	if (rc == 0 && req->out_dir && req->n_artifacts == 0)
		rc = err_set(err, BRIG_E_USAGE, 0, "out_dir is given, but no pattern of the artifacts that go there");
	if (rc == 0 && req->inline_artifacts && req->n_artifacts == 0)
		rc = err_set(err, BRIG_E_USAGE, 0, "inline_artifacts is given, but no pattern of the artifacts");
	if (rc == 0 && (req->flags & BRIG_RUN_DIFF) && !req->files_fd)
		rc = err_set(err, BRIG_E_USAGE, 0,
			     "there are no files that what the program leaves could be compared with: give files_fd");
	if (rc == 0 && (req->flags & BRIG_RUN_OVERWRITE) && !req->out_dir)
		rc = err_set(err, BRIG_E_USAGE, 0, "there is no folder in which files could be replaced: name out_dir");
	return rc;
}

static int check_id(const char *id, struct brig_error *err)
{
	if (!id || (strnlen(id, RUN_ID_LEN + 1) == RUN_ID_LEN && strspn(id, ID_ALPHABET) == RUN_ID_LEN))
		return 0;
	return err_set(err, BRIG_E_USAGE, 0,
		       "id '%.40s' is none: it has %d letters a to z and digits 2 to 7; pass NULL for a new one", id,
		       RUN_ID_LEN);
}

int request_check(const struct brig_request *req, struct brig_error *err)
{
	size_t strings = 0;
	int rc;

	if ((rc = check_code(req, err)) < 0 || (rc = check_word("language", req->language, err)) < 0 ||
	    (rc = check_file_name(req->file_name, err)) < 0 || (rc = check_source_path(req, err)) < 0 ||
	    (rc = check_word("trust", req->trust, err)) < 0 ||
	    (rc = check_strings("arguments", req->args, req->n_args, ARGS_MAX, &strings, err)) < 0 ||
	    (rc = check_strings("environment entries", req->env, req->n_env, ENV_MAX, &strings, err)) < 0 ||
	    (rc = check_env_names(req->env, req->n_env, err)) < 0 || (rc = check_options(req, err)) < 0 ||
	    (rc = check_stdin(req, err)) < 0 || (rc = check_fd("cancel_fd", req->cancel_fd, false, err)) < 0 ||
	    (rc = check_flags(req->flags, err)) < 0 || (rc = check_id(req->id, err)) < 0 ||
	    (rc = check_word("who", req->who, err)) < 0 || (rc = check_word("door", req->door, err)) < 0 ||
	    (rc = check_work(req, err)) < 0)
		return rc;
	return 0;
}

int request_read(const struct brig_request *given, struct brig_request *ret, struct brig_error *err)
{
	int rc;

	*ret = (struct brig_request)BRIG_REQUEST_INIT;
	rc = versioned_read(ret, sizeof(*ret), given, "brig_request", err);
	return rc < 0 ? rc : request_check(ret, err);
}

int brig_request_check(const struct brig_request *req, struct brig_error *err)
{
	struct brig_request known;

	if (!req)
		return err_set(err, BRIG_E_USAGE, 0, "brig_request_check needs a request");
	return request_read(req, &known, err);
}

static int environment_check(const struct brig_environment *e, struct brig_error *err)
{
	const struct brig_request wishes = { .options = e->options, .n_options = e->n_options };
	size_t strings = 0;
	int rc;

	if (!e->name)
		return err_set(err, BRIG_E_USAGE, 0, "the environment has no name");
	if ((rc = check_word("language", e->language, err)) < 0 || (rc = check_word("trust", e->trust, err)) < 0 ||
	    (rc = check_strings("packages", e->packages, e->n_packages, PACKAGES_MAX, &strings, err)) < 0 ||
	    (rc = check_strings("modules", e->warm, e->n_warm, WARM_MAX, &strings, err)) < 0 ||
	    (rc = check_options(&wishes, err)) < 0 || (rc = check_fd("cancel_fd", e->cancel_fd, false, err)) < 0 ||
	    (rc = check_id(e->id, err)) < 0 || (rc = check_word("who", e->who, err)) < 0)
		return rc;
	return environment_check_wish(e, err);
}

int environment_wish_read(const struct brig_environment *given, struct brig_environment *ret, struct brig_error *err)
{
	int rc;

	*ret = (struct brig_environment)BRIG_ENVIRONMENT_INIT;
	rc = versioned_read(ret, sizeof(*ret), given, "brig_environment", err);
	return rc < 0 ? rc : environment_check(ret, err);
}
