/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every command of `brig`.  To add one: a file cmd_<name>.c with its struct command, its line here, and
 * its line in commands.c.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/options.h"

extern const struct command command_run;
extern const struct command command_exec;
extern const struct command command_test;
extern const struct command command_batch;
extern const struct command command_grade;
extern const struct command command_check;
extern const struct command command_rules;
extern const struct command command_explain;
extern const struct command command_policy_show;
extern const struct command command_policy_check;
extern const struct command command_init;
extern const struct command command_doctor;
extern const struct command command_languages;
extern const struct command command_images_build, command_images_list, command_images_check;
extern const struct command command_ps;
extern const struct command command_reap;
extern const struct command command_kill;
extern const struct command command_completions;
extern const struct command command_pool;
extern const struct command command_history;
extern const struct command command_show;
extern const struct command command_audit_show;
extern const struct command command_audit_verify;
extern const struct command command_audit_export;
extern const struct command command_key_show;
extern const struct command command_key_rotate;
extern const struct command command_receipt_verify;
extern const struct command command_cache_list;
extern const struct command command_cache_prune;
extern const struct command command_cache_verify;
extern const struct command command_env_create, command_env_list, command_env_show, command_env_remove;
extern const struct command command_workspace_list, command_workspace_show, command_workspace_diff,
	command_workspace_apply, command_workspace_discard;
extern const struct command command_session_start, command_session_list, command_session_show, command_session_run,
	command_session_exec, command_session_attach, command_session_open, command_session_files,
	command_session_contexts, command_session_interrupt, command_session_restart, command_session_pause,
	command_session_resume, command_session_timeout, command_session_fork, command_session_snapshot,
	command_session_stop;
extern const struct command command_stats;
extern const struct command command_token_create, command_token_list, command_token_revoke;
extern const struct command command_mcp;
extern const struct command command_serve, command_worker;
extern const struct command command_upgrade_state;
extern const struct command command_version;
extern const struct command command_help;

extern const struct command *const commands[];
extern const size_t command_count;

/* The command named by the first words; *ret_words is their number.  NULL and *err if there is none. */
const struct command *command_find(int argc, char **argv, int *ret_words, struct brig_error *err);
/* Appends the list of commands. */
void commands_help(struct buf *out);
/* Appends the commands that begin with a word, such as "policy"; false if there are none. */
bool commands_group_help(const char *word, struct buf *out);
/* The first step of every command: parses options.  If it returns false, *ret_status is the exit status. */
bool command_begin(const struct command *self, int argc, char **argv, void *values, struct operands *ops,
		   int *ret_status);
/* For commands without operands: false, after an error message, if there are some. */
bool command_no_operands(const struct command *self, const struct operands *ops);
/*
 * Prints why brig_open() failed; returns the exit status.  For an invalid policy file all errors are printed, not only
 * the first.  path: of --policy, or NULL.
 */
int command_open_failed(const char *path, const struct brig_error *err);

#endif
