/* SPDX-License-Identifier: Apache-2.0 */
/* `brig init`: writes a policy file with every setting and its default, commented out. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config_path.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/policy_file.h"

#define HOST_POLICY "/etc/brig/sandbox.yaml"
#define FILE_NAME   "sandbox.yaml"

struct init_values {
	bool force;
};

#define AT(member) offsetof(struct init_values, member)

static const struct option_row init_options[] = {
	{ "force", 'f', OPTION_FLAG, NULL, AT(force), NULL, "replace a file that is there" },
};

static bool is_folder(const char *path)
{
	size_t len = strlen(path);
	struct stat st;

	return (len > 0 && path[len - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

/* The path of the file; false after an error message. */
static bool choose_path(const char *wanted, char dst[PATH_MAX])
{
	bool ok = true;

	if (!wanted && geteuid() == 0)
		ok = str_copy(dst, PATH_MAX, HOST_POLICY);
	else if (!wanted && !config_path(dst, PATH_MAX)) {
		ui_say("$HOME names no place for a policy of your own: name a file");
		return false;
	} else if (wanted && is_folder(wanted))
		ok = snprintf(dst, PATH_MAX, "%s%s" FILE_NAME, wanted, wanted[strlen(wanted) - 1] == '/' ? "" : "/") <
		     PATH_MAX;
	else if (wanted)
		ok = str_copy(dst, PATH_MAX, wanted);
	if (!ok)
		ui_say("the name of the file has more than %d bytes", PATH_MAX - 1);
	return ok;
}

static int write_template(const char *wanted, bool force)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	AUTO_TEXT template = NULL;
	char path[PATH_MAX];

	if (brig_policy_template(&template, &err) < 0)
		return ui_fail(&err);
	buf_adds(&text, template);
	if (wanted && str_eq(wanted, "-"))
		return ui_finish(&text, EXIT_SUCCESS);
	if (!choose_path(wanted, path))
		return EXIT_USAGE;
	return policy_file_write(&(struct policy_file){ .path = path,
							.mode = 0644,
							.replace = force,
							.advice = "--force replaces it",
							.next = ": every setting is in it, behind '#'" },
				 &text);
}

static int init_main(const struct command *self, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct init_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status)) {
		const char *wanted = ops.words.n ? ops.words.item[0] : NULL;

		if (ops.words.n <= 1 && ops.rest.n == 0 && (!wanted || *wanted)) {
			status = write_template(wanted, v.force);
		} else {
			(void)err_set(&err, BRIG_E_USAGE, 0, "'brig init' takes one folder or file");
			status = ui_usage(self->name, &err);
		}
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_init = {
	.name = "init",
	.synopsis = "[OPTIONS] [DIR|FILE|-]",
	.summary = "write a policy file to start from: every setting, its default and its meaning",
	.details = "Everything in the file is behind '#', so that it changes nothing until a line is put in force.\n"
		   "In a folder it is called " FILE_NAME
		   "; '-' is standard output.  Without a name root's goes to\n" HOST_POLICY
		   ", which holds for every user, and that of others to\n"
		   "~/.config/brig/" FILE_NAME ".\n",
	.examples = "  brig init                      # the policy of this host, or your own\n"
		    "  brig init project/             # project/sandbox.yaml, for --policy\n",
	.options = init_options,
	.n_options = ARRAY_LEN(init_options),
	.run = init_main,
};
