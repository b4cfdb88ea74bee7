/* SPDX-License-Identifier: Apache-2.0 */
/* tool_run.c - run_code, run_command, run_tests. */
#include <string.h>

#include "mcp_shared/text.h"
#include "mcp/tools.h"

#define FILES_MAX (32 * MiB)

static enum job_next finish_run(struct call *call, const struct outcome *o, struct answer *a)
{
	server_own(call->server, text_member(o->doc, "id"));
	show_run(call->args, *call->server->root, o->doc, a);
	return JOB_DONE;
}

static int add_files(const struct call *call, struct invocation *p, struct brig_error *err)
{
	json_t *files = json_object_get(call->args, "files"), *text;
	AUTO_BUF tar = BUF_INIT(FILES_MAX);
	const char *path;
	bool good = true;

	if (json_object_size(files) == 0)
		return 0;
	json_object_foreach(files, path, text) good =
		good && tar_add(&tar, path, json_string_value(text), json_string_length(text));
	if (!good || !tar_end(&tar))
		return err_set(err, BRIG_E_REFUSED, 0, "The files take more than 32 MiB together: send fewer.");
	invocation_addf(p, "--files=fd:%d", invocation_inherit(p, tar.data, tar.len));
	return 0;
}

int run_code_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const json_t *code = json_object_get(call->args, "code"), *arg;
	bool in_project = json_is_true(json_object_get(call->args, "in_project"));
	int rc = 0;
	size_t i;

	if (in_project && json_object_size(json_object_get(call->args, "files")) > 0)
		return err_set(err, BRIG_E_USAGE, 0,
			       "files and in_project exclude each other: write_file changes the project.");
	invocation_begin(p, call->server->options, "run", INVOCATION_RUN);
	plan_run_options(call, p);
	if (in_project)
		rc = plan_project(call, p, true, err);
	if (rc == 0)
		rc = add_files(call, p, err);
	invocation_addf(p, "--lang=%s", text_member(call->args, "language"));
	invocation_input(p, json_string_value(code), json_string_length(code));
	invocation_add(p, "-");
	invocation_add(p, "--");
	json_array_foreach(json_object_get(call->args, "args"), i, arg) invocation_add(p, json_string_value(arg));
	return rc;
}

enum job_next run_code_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	return finish_run(call, o, a);
}

int run_command_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	invocation_begin(p, call->server->options, "exec", INVOCATION_RUN);
	plan_run_options(call, p);
	invocation_addf(p, "--shell=%s", text_member(call->args, "command"));
	return plan_project(call, p, false, err);
}

enum job_next run_command_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	return finish_run(call, o, a);
}

int run_tests_prepare(struct call *call, struct invocation *p, struct brig_error *err)
{
	const char *framework = text_member(call->args, "framework");
	AUTO_BUF path = BUF_INIT(8 * KiB);
	int rc = argument_path(call, "path", &path, err);

	invocation_begin(p, call->server->options, "test", INVOCATION_RUN);
	plan_run_options(call, p);
	if (rc == 0)
		rc = plan_project(call, p, true, err);
	if (*framework)
		invocation_addf(p, "--framework=%s", framework);
	if (json_is_true(json_object_get(call->args, "project_packages")))
		invocation_add(p, "--project-packages");
	if (path.len > strlen("./"))
		invocation_add(p, buf_str(&path)); /* starts with "./", so it cannot be taken for an option */
	return rc;
}

enum job_next run_tests_finish(struct call *call, const struct outcome *o, struct answer *a)
{
	return finish_run(call, o, a);
}
