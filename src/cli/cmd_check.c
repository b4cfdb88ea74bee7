/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_check.c - `brig check`: what `brig run` would report about code before it runs, for a file, a tree, a command
 * line or a path.  Exit status 0: nothing above MEDIUM, 1: warnings, 2: would be blocked.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/check_output.h"
#include "cli/commands.h"
#include "cli/rows.h"
#include "cli/service.h"
#include "cli/walk.h"

/* 2 means "blocked" here, so usage errors have the number from sysexits.h. */
#define EXIT_CHECK_USAGE 64

struct check_values {
	const char *code, *lang, *trust, *inspect, *format, *rules, *kind, *workspace, *policy;
	struct words rule;
	bool json, strict, no_color, local;
};

#define AT(member) offsetof(struct check_values, member)
static const struct option_row check_options[] = {
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", AT(lang), NULL,
	  "the language; without it the file's extension, then its first line, decides" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL,
	  "untrusted, unknown or trusted, as of a run; without it the policy's default" },
	{ "inspect", 0, OPTION_TEXT, "LEVEL", AT(inspect), NULL,
	  "report, guard or strict: how strict to be; without it what the trust level chooses" },
	{ "rule", 0, OPTION_LIST, "ID=ACTION", AT(rule), NULL,
	  "what one rule does: allow, note, warn or block; may be repeated" },
	{ "format", 'f', OPTION_TEXT, "FORMAT", AT(format), NULL, "text (the default), json or sarif" },
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "the same as --format json: one document per line and file" },
	{ "rules", 'r', OPTION_TEXT, "FILE", AT(rules), NULL, "rules of your own, over the built-in ones" },
	{ "strict", 0, OPTION_FLAG, NULL, AT(strict), NULL,
	  "in shell code allow only commands of the white-list, and no word that is computed" },
	{ "kind", 'k', OPTION_TEXT, "KIND", AT(kind), NULL, "what is checked: code (the default), command or path" },
	{ "workspace", 0, OPTION_TEXT, "DIR", AT(workspace), NULL,
	  "the directory that a path must stay in; without it /workspace" },
	{ "code", 'c', OPTION_TEXT, "CODE", AT(code), NULL, "check this text instead of a file" },
	{ "local", 0, OPTION_FLAG, NULL, AT(local), NULL,
	  "check it in this process, even if a service ('brig serve') could" },
	ROW_POLICY,
	ROW_NO_COLOR,
};

struct checker {
	const struct check_values *v;
	struct brig *b;
	struct service_place place;
	bool has_place; /* use the service there, unless it turns out that it cannot */
	struct check_output output;
	int worst;  /* 0, 1 or 2, as returned by brig_check() */
	int failed; /* exit status of the first failure, or 0 */
	json_t *languages;
	const char *rules; /* all --rule options; NULL: none */
};

static int fail(struct checker *c, int status)
{
	if (status == EXIT_USAGE)
		status = EXIT_CHECK_USAGE;
	if (!c->failed)
		c->failed = status;
	return -1;
}

static int fail_with(struct checker *c, const char *name, const struct brig_error *err)
{
	struct brig_error named = *err;

	(void)err_wrap(&named, "%.200s", name);
	return fail(c, ui_fail(&named));
}

/* ---- one text ----------------------------------------------------------------------------------- */

/* brig_check(), through a service if there is one. */
static int check_anywhere(struct checker *c, const struct brig_check *req, char **ret_json, struct brig_error *err)
{
	const struct check_values *v = c->v;
	const char *only_here = v->policy ? "--policy" : v->rules ? "--rules" : v->workspace ? "--workspace" : NULL;
	int status = 0, rc;

	if (c->has_place) {
		rc = service_check(&c->place, only_here ? only_here : service_own_policy(), req, ret_json, &status,
				   err);
		if (rc <= 0)
			return rc < 0 ? rc : status;
		c->has_place = false;
	}
	return brig_check(c->b, req, ret_json, err);
}

static int check_one(struct checker *c, const char *name, const char *base, const char *text, size_t len)
{
	const struct brig_check req = {
		.size = sizeof(req),
		.kind = c->v->kind,
		.language = c->v->lang,
		.file_name = base,
		.text = text,
		.len = len,
		.trust = c->v->trust,
		.workspace = c->v->workspace,
		.strict = c->v->strict,
		.inspect = c->v->inspect,
		.rules = c->rules,
	};
	struct checked one = { .name = name, .text = text, .len = len };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_TEXT json = NULL;
	int rc = check_anywhere(c, &req, &json, &err);

	if (rc < 0)
		return fail_with(c, name, &err);
	if (rc > c->worst)
		c->worst = rc;
	one.doc = document_read(json);
	if (!one.doc)
		return fail(c, EXIT_FAILED);
	check_output_add(&c->output, &one);
	json_decref(one.doc);
	return 0;
}

static int check_fd(struct checker *c, int fd, const char *name, const char *base)
{
	AUTO_BUF text = BUF_INIT(BRIG_CODE_MAX + 1); /* one byte more than permitted, so that the library refuses it */
	struct brig_error err = BRIG_ERROR_INIT;
	char piece[16384];
	ssize_t n;

	do {
		n = fd_read_all(fd, piece, sizeof(piece));
		if (n < 0) {
			(void)err_set(&err, BRIG_E_USAGE, (int)-n, "cannot be read");
			return fail_with(c, name, &err);
		}
		buf_add(&text, piece, (size_t)n);
	} while ((size_t)n == sizeof(piece) && !text.full);
	if (text.no_memory) {
		(void)err_nomem(&err);
		return fail_with(c, name, &err);
	}
	return check_one(c, name, base, buf_str(&text), text.len);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- a tree ------------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *ending)
{
	size_t len = strlen(name), n = strlen(ending);

	return len > n && strcasecmp(name + len - n, ending) == 0;
}

static bool tree_wants(void *user, const char *name)
{
	const struct checker *c = user;
	const json_t *language, *ending;
	size_t i, k;

	json_array_foreach(json_object_get(c->languages, "languages"), i, language)
		json_array_foreach(json_object_get(language, "extensions"), k,
				   ending) if (ends_with(name, json_string_value(ending))) return true;
	return false;
}

/* A file that cannot be inspected does not end the walk. */
static int tree_file(void *user, int fd, const char *path)
{
	struct checker *c = user;

	(void)check_fd(c, fd, path, base_name(path));
	return 0;
}

static void tree_trouble(void *user, const char *path, int error)
{
	ui_say("%s: cannot be read: %s", path, strerrordesc_np(error));
	(void)fail(user, EXIT_USAGE);
}

static int check_tree(struct checker *c, int dir, const char *path)
{
	struct walk w = { .wants = tree_wants, .file = tree_file, .trouble = tree_trouble, .user = c };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_TEXT json = NULL;
	int rc;

	if (brig_languages_json(c->b, &json, &err) < 0)
		return fail(c, ui_fail(&err));
	c->languages = document_read(json);
	if (!c->languages)
		return fail(c, EXIT_FAILED);
	rc = walk_sources(&w, dir, path, &err);
	return rc < 0 ? fail_with(c, path, &err) : 0;
}

/* ---- operands ------------------------------------------------------------------------------------ */

static int check_path(struct checker *c, const char *path)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD fd = FD_NONE;
	struct stat st;

	if (str_eq(path, "-"))
		return check_fd(c, STDIN_FILENO, "<stdin>", NULL);
	fd = file_open(path, FILE_STREAMS | FILE_FOLDERS, &st);
	if (fd < 0) {
		if (fd == -EINVAL)
			(void)err_set(&err, BRIG_E_USAGE, 0, "is %s, not a regular file or a folder",
				      file_kind(st.st_mode));
		else
			(void)err_set(&err, BRIG_E_USAGE, -fd, "cannot open");
		return fail_with(c, path, &err);
	}
	return S_ISDIR(st.st_mode) ? check_tree(c, fd, path) : check_fd(c, fd, path, base_name(path));
}

/* A command line or a path comes after "--", or from standard input. */
static int check_words(struct checker *c, const struct operands *ops)
{
	AUTO_BUF text = BUF_INIT(BRIG_CODE_MAX + 1);
	char name[32];

	(void)snprintf(name, sizeof(name), "<%s>", c->v->kind);
	if (ops->words.n == 1 && str_eq(ops->words.item[0], "-"))
		return check_fd(c, STDIN_FILENO, name, NULL);
	for (size_t i = 0; i < ops->rest.n; i++)
		buf_addf(&text, "%s%s", i > 0 ? " " : "", ops->rest.item[i]);
	return check_one(c, name, NULL, buf_str(&text), text.len);
}

static int check_targets(struct checker *c, const struct operands *ops)
{
	if (c->v->kind && !str_eq(c->v->kind, "code"))
		return check_words(c, ops);
	if (c->v->code)
		return check_one(c, "<code>", NULL, c->v->code, strlen(c->v->code));
	for (size_t i = 0; i < ops->words.n; i++)
		(void)check_path(c, ops->words.item[i]);
	return 0;
}

/* Validates the command line. */
static int check_usage(const struct check_values *v, const struct operands *ops, const struct check_format **ret_format,
		       struct brig_error *err)
{
	bool of_words = v->kind && !str_eq(v->kind, "code");
	size_t words = ops->words.n;

	*ret_format = check_format_find(v->json ? "json" : v->format ? v->format : "text");
	if (!*ret_format)
		return err_set(err, BRIG_E_USAGE, 0, "format '%.40s' is not known; there are text, json and sarif",
			       v->format);
	if (of_words && !str_eq(v->kind, "command") && !str_eq(v->kind, "path"))
		return err_set(err, BRIG_E_USAGE, 0, "kind '%.40s' is not known; there are code, command and path",
			       v->kind);
	if (of_words && (v->code || v->lang))
		return err_set(err, BRIG_E_USAGE, 0, "--kind %s takes neither --code nor --lang", v->kind);
	if (of_words && words + (ops->rest.n > 0) != 1)
		return err_set(err, BRIG_E_USAGE, 0, "give the %s behind '--', or '-' to read it from standard input",
			       v->kind);
	if (of_words && words == 1 && !str_eq(ops->words.item[0], "-"))
		return err_set(err, BRIG_E_USAGE, 0, "the %s goes behind '--'", v->kind);
	if (!of_words && ops->rest.n > 0)
		return err_set(err, BRIG_E_USAGE, 0, "'%.80s': text behind '--' needs --kind command or --kind path",
			       ops->rest.item[0]);
	if (!of_words && words + (v->code != NULL) == 0)
		return err_set(err, BRIG_E_USAGE, 0,
			       "nothing to check: give files or folders, '-' for standard input, or -c CODE");
	if (v->code && words > 0)
		return err_set(err, BRIG_E_USAGE, 0, "'%.80s' is one too many beside --code", ops->words.item[0]);
	return 0;
}

static int run_checks(const struct check_values *v, const struct operands *ops, const struct check_format *format)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = v->policy, .rules_file = v->rules };
	struct brig_error err = BRIG_ERROR_INIT;
	struct checker c = { .v = v };
	AUTO_BUF rule = BUF_INIT(UI_TEXT_MAX);
	AUTO_TEXT rules = NULL;
	int status;

	status = service_find(v->local, &c.place, &err);
	if (status < 0)
		return ui_fail(&err) == EXIT_USAGE ? EXIT_CHECK_USAGE : EXIT_FAILED;
	c.has_place = status > 0;
	if (brig_open(&opts, &c.b, &err) < 0)
		return command_open_failed(v->policy, &err);
	for (size_t i = 0; i < v->rule.n; i++)
		buf_addf(&rule, "%s%s", i > 0 ? "," : "", v->rule.item[i]);
	c.rules = v->rule.n > 0 ? buf_str(&rule) : NULL;
	check_output_init(&c.output, format, ui_has_color(STDOUT_FILENO, v->no_color));
	(void)check_targets(&c, ops);
	/* "Would be blocked" takes precedence over files that could not be read. */
	status = c.worst == 2 ? 2 : c.failed ? c.failed : c.worst;
	if (c.output.counts.files > 0 || !c.failed) {
		if (format == check_format_find("sarif"))
			(void)brig_rules_json(c.b, &rules, &err);
		status = check_output_end(&c.output, rules, status);
	}
	check_output_release(&c.output);
	json_decref(c.languages);
	brig_close(c.b);
	return status;
}

static int check_main(const struct command *self, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct check_format *format;
	struct check_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (!command_begin(self, argc, argv, &v, &ops, &status)) {
		status = status == EXIT_USAGE ? EXIT_CHECK_USAGE : status;
	} else if (check_usage(&v, &ops, &format, &err) < 0) {
		(void)ui_usage(self->name, &err);
		status = EXIT_CHECK_USAGE;
	} else {
		status = run_checks(&v, &ops, format);
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_check = {
	.name = "check",
	.synopsis = "[OPTIONS] FILE|DIR|-",
	.summary = "say what inspection finds in code, without running it",
	.examples = "  brig check script.py\n"
		    "  brig check --json -l shell -c 'rm -rf /'\n",
	.details = "brig check --kind command -- 'rm -rf /'     a command line\n"
		   "brig check --kind path -- ../etc/passwd     a path, against --workspace\n\n"
		   "Of a folder, every file with a known extension is checked; links are not followed.\n"
		   "No finding does not mean harmless: inspection is a guard-rail, the cell is the wall.\n\n"
		   "Exit status:\n"
		   "    0  nothing above MEDIUM                 64  wrong use, or a file that cannot be read\n"
		   "    1  warnings (HIGH)                     125  the policy or a file of rules is wrong\n"
		   "    2  would be blocked (CRITICAL)         121  brig failed\n",
	.options = check_options,
	.n_options = ARRAY_LEN(check_options),
	.run = check_main,
};
