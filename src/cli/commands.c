/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <string.h>

#include "base/str.h"
#include "cli/document.h"
#include "cli/ui.h"

const struct command *const commands[] = {
	&command_run,
	&command_exec,
	&command_test,
	&command_batch,
	&command_grade,
	&command_check,
	&command_rules,
	&command_explain,
	&command_policy_show,
	&command_policy_check,
	&command_init,
	&command_doctor,
	&command_languages,
	&command_images_build,
	&command_images_list,
	&command_images_check,
	&command_ps,
	&command_reap,
	&command_kill,
	&command_pool,
	&command_history,
	&command_show,
	&command_audit_show,
	&command_audit_verify,
	&command_audit_export,
	&command_key_show,
	&command_key_rotate,
	&command_receipt_verify,
	&command_cache_list,
	&command_cache_prune,
	&command_cache_verify,
	&command_env_create,
	&command_env_list,
	&command_env_show,
	&command_env_remove,
	&command_workspace_list,
	&command_workspace_show,
	&command_workspace_diff,
	&command_workspace_apply,
	&command_workspace_discard,
	&command_session_start,
	&command_session_list,
	&command_session_show,
	&command_session_run,
	&command_session_exec,
	&command_session_attach,
	&command_session_open,
	&command_session_files,
	&command_session_contexts,
	&command_session_interrupt,
	&command_session_restart,
	&command_session_pause,
	&command_session_resume,
	&command_session_timeout,
	&command_session_fork,
	&command_session_snapshot,
	&command_session_stop,
	&command_stats,
	&command_token_create,
	&command_token_list,
	&command_token_revoke,
	&command_upgrade_state,
	&command_mcp,
	&command_serve,
	&command_worker,
	&command_completions,
	&command_version,
	&command_help,
};
const size_t command_count = ARRAY_LEN(commands);

/* How many words of argv match a command's name; 0: a different command. */
static int name_matches(const char *name, int argc, char **argv)
{
	int words = 0;

	for (;; words++) {
		size_t len = strcspn(name, " ");

		if (words == argc || strlen(argv[words]) != len || memcmp(argv[words], name, len) != 0)
			return 0;
		if (name[len] == '\0')
			return words + 1;
		name += len + 1;
	}
}

/* Whether a command's name consists of this word and another. */
static bool is_in_group(const struct command *cmd, const char *word)
{
	size_t len = strlen(word);

	return strncmp(cmd->name, word, len) == 0 && cmd->name[len] == ' ';
}

/* 0 if no command begins with the word. */
static int complain_group(const char *word, struct brig_error *err)
{
	AUTO_BUF list = BUF_INIT(256);

	for (size_t i = 0; i < command_count; i++)
		if (is_in_group(commands[i], word))
			buf_addf(&list, "%s'brig %s'", list.len ? " or " : "", commands[i]->name);
	if (list.len == 0)
		return 0;
	return err_set(err, BRIG_E_USAGE, 0, "'brig %s' needs another word: %s", word, buf_str(&list));
}

const struct command *command_find(int argc, char **argv, int *ret_words, struct brig_error *err)
{
	const char *names[96], *near;
	size_t n = 0;

	for (size_t i = 0; i < command_count; i++) {
		*ret_words = name_matches(commands[i]->name, argc, argv);
		if (*ret_words > 0)
			return commands[i];
		if (n < ARRAY_LEN(names))
			names[n++] = commands[i]->name;
	}
	if (argc == 0) {
		(void)err_set(err, BRIG_E_USAGE, 0, "no command given");
		return NULL;
	}
	if (complain_group(argv[0], err) < 0)
		return NULL;
	near = str_nearest(argv[0], names, n);
	if (near)
		(void)err_set(err, BRIG_E_USAGE, 0, "unknown command '%.60s'; did you mean '%s'?", argv[0], near);
	else
		(void)err_set(err, BRIG_E_USAGE, 0, "unknown command '%.60s'", argv[0]);
	return NULL;
}

void commands_help(struct buf *out)
{
	buf_adds(out, "Usage: brig COMMAND [OPTIONS]\n\n"
		      "Runs code that nobody has reviewed, and says with evidence what happened.\n\nCommands:\n");
	for (size_t i = 0; i < command_count; i++)
		buf_addf(out, "  %-19s%s\n", commands[i]->name, commands[i]->summary);
	buf_adds(out, "\n'brig help COMMAND' tells more.\n");
}

bool commands_group_help(const char *word, struct buf *out)
{
	size_t start = out->len;

	for (size_t i = 0; i < command_count; i++)
		if (is_in_group(commands[i], word)) {
			if (out->len > start)
				buf_adds(out, "\n");
			options_help(commands[i], out);
		}
	return out->len > start;
}

/* The command line is invalid, so options are not parsed: looks for these anywhere. */
static enum document_form asked_form(int argc, char **argv)
{
	enum document_form form = DOCUMENT_TEXT;

	for (int i = 0; i < argc && !str_eq(argv[i], "--"); i++)
		if (str_eq(argv[i], "--events"))
			return DOCUMENT_EVENTS;
		else if (str_eq(argv[i], "--json") || str_eq(argv[i], "-j"))
			form = DOCUMENT_JSON;
	return form;
}

bool command_begin(const struct command *self, int argc, char **argv, void *values, struct operands *ops,
		   int *ret_status)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF page = BUF_INIT(UI_TEXT_MAX);
	int rc = options_parse(self, argc, argv, values, ops, &err);

	if (rc == OPTIONS_OK)
		return true;
	if (rc == OPTIONS_HELP) {
		options_help(self, &page);
		*ret_status = ui_finish(&page, EXIT_SUCCESS);
	} else {
		*ret_status = ui_usage(self->name, &err);
		if (self->gives_result)
			*ret_status = document_refusal(asked_form(argc, argv), &err, *ret_status);
	}
	return false;
}

bool command_no_operands(const struct command *self, const struct operands *ops)
{
	const struct words *list = ops->words.n ? &ops->words : &ops->rest;
	struct brig_error err = BRIG_ERROR_INIT;

	if (list->n == 0)
		return true;
	(void)err_set(&err, BRIG_E_USAGE, 0, "'brig %s' takes no argument '%.60s'", self->name, list->item[0]);
	(void)ui_usage(self->name, &err);
	return false;
}
