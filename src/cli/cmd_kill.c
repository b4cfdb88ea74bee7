/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig kill`: asks the brig that runs a cell to cancel it.  That brig tears its cell down and records the run as
 * cancelled, which no other process could do.
 *
 * A cell is identified by the pid of its owner, and pids are reused.  So a pidfd of that process is opened first, and
 * then the cells are listed again: a process that is still the owner then, and thus older than its cell, is the one
 * that the pidfd refers to.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/pick.h"
#include "cli/rows.h"

#define PATIENCE_MS 60000

struct kill_values {
	const char *policy;
};

#define AT(member) offsetof(struct kill_values, member)
static const struct option_row kill_options[] = { ROW_POLICY };

/* Finds the run with this id or prefix, and its owner.  Returns 0 or negative. */
static int find_run(struct brig *b, const char *word, char *ret_id, size_t size, pid_t *ret, struct brig_error *err)
{
	AUTO_TEXT json = NULL;
	const json_t *row;
	json_t *doc;
	int rc = brig_ps_json(b, &json, err);

	if (rc < 0)
		return rc;
	doc = document_read(json);
	row = doc ? pick_row(json_object_get(doc, "cells"), word, "running cell", "brig ps", err) : NULL;
	if (row) {
		(void)document_text(row, "id", ret_id, size);
		*ret = (pid_t)json_integer_value(json_object_get(row, "owner"));
		if (document_true(row, "orphan"))
			rc = err_set(err, BRIG_E_REFUSED, 0,
				     "the owner of run %s is dead; 'brig reap' removes its cell", ret_id);
		else if (document_true(row, "waiting"))
			rc = err_set(err, BRIG_E_REFUSED, 0,
				     "%s is no run: it waits for one, and ends with process %d, which keeps it", ret_id,
				     (int)*ret);
		else if (*ret <= 0)
			rc = err_set(err, BRIG_E_REFUSED, 0,
				     "run %s was started in another container or on another host", ret_id);
	} else {
		rc = doc ? -err->code : err_nomem(err);
	}
	json_decref(doc);
	return rc;
}

/* Refuses programs that use the library: a signal would end everything in them, not only this cell. */
static int check_is_brig(pid_t pid, const char *id, struct brig_error *err)
{
	char path[40], name[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (fd_get_at(AT_FDCWD, path, name, sizeof(name)) < 0)
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (str_eq(name, "brig"))
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "run %s belongs to process %d (%.16s), which is no brig command: cancel it there", id, (int)pid,
		       name);
}

static int end_process(int fd, pid_t pid, const char *id, struct brig_error *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
		return err_set(err, BRIG_E_REFUSED, errno, "run %s belongs to process %d, which cannot be told", id,
			       (int)pid);
	if (poll(&p, 1, PATIENCE_MS) <= 0)
		return err_set(err, BRIG_E_SYSTEM, ETIMEDOUT, "process %d, which runs %s, was told and has not ended",
			       (int)pid, id);
	return 0;
}

static int kill_run(struct brig *b, const char *word, struct brig_error *err)
{
	AUTO_BUF line = BUF_INIT(256);
	char id[64], again[64];
	pid_t pid, owner;
	AUTO_FD fd = FD_NONE;
	int rc = find_run(b, word, id, sizeof(id), &pid, err);

	if (rc < 0)
		return rc;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return err_set(err, BRIG_E_REFUSED, errno, "run %s has ended", id);
	rc = find_run(b, id, again, sizeof(again), &owner, err);
	if (rc == 0 && owner != pid)
		rc = err_set(err, BRIG_E_REFUSED, 0, "run %s has ended", id);
	if (rc == 0)
		rc = check_is_brig(pid, id, err);
	if (rc == 0)
		rc = end_process(fd, pid, id, err);
	if (rc < 0)
		return rc;
	buf_addf(&line, "ended run %s\n", id);
	return ui_finish(&line, EXIT_SUCCESS);
}

static int kill_values(const struct kill_values *v, const char *word)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = v->policy };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	int status;

	if (brig_open(&opts, &b, &err) < 0)
		return command_open_failed(v->policy, &err);
	status = kill_run(b, word, &err);
	brig_close(b);
	return status < 0 ? ui_fail(&err) : status;
}

static int kill_main(const struct command *self, int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct kill_values v = { 0 };
	struct operands ops = { 0 };
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status)) {
		if (ops.words.n == 1 && ops.rest.n == 0) {
			status = kill_values(&v, ops.words.item[0]);
		} else {
			(void)err_set(&err, BRIG_E_USAGE, 0,
				      "give the id of one run, or its beginning; 'brig ps' shows them");
			status = ui_usage(self->name, &err);
		}
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_kill = {
	.name = "kill",
	.synopsis = "[OPTIONS] RUN",
	.summary = "end a run that is under way",
	.examples = "  brig ps\n"
		    "  brig kill rmyx     # the beginning of an id is enough\n",
	.details = "RUN is an id of 'brig ps', or the beginning of one.  The brig that runs it takes its cell\n"
		   "down; the verdict of the run is 'cancelled'.\n\n"
		   "Exit status: 0 when it has ended, 125 if there is no such run or it is somebody else's.\n",
	.options = kill_options,
	.n_options = ARRAY_LEN(kill_options),
	.run = kill_main,
};
