/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batch_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define WORDS_MAX 40
#define START_MS  30000

struct words_of {
	const char *item[WORDS_MAX];
	size_t n;
};

static void add(struct words_of *w, const char *option, const char *value)
{
	if (!value || w->n + 3 > WORDS_MAX)
		return;
	w->item[w->n++] = option;
	w->item[w->n++] = value;
}

static void describe(struct words_of *w, const char *url, const struct queue_values *with, const char *state)
{
	w->item[w->n++] = "brig";
	w->item[w->n++] = "serve";
	w->item[w->n++] = "--end-with-stdin";
	add(w, "--queue", url);
	add(w, "--nodes", with->nodes);
	add(w, "--node-name", with->node_name);
	add(w, "--queue-ca", with->ca);
	add(w, "--queue-cert", with->cert);
	add(w, "--queue-key", with->key);
	add(w, "--queue-credentials", with->credentials);
	add(w, "--queue-patience", with->patience);
	add(w, "--state", state);
}

static int spawn(struct batch_queue *q, struct words_of *w, int input, int output, struct brig_error *err)
{
	posix_spawn_file_actions_t actions;
	char log[80];
	pid_t pid = 0;
	int rc;

	(void)snprintf(log, sizeof(log), "%s/log", q->dir);
	rc = posix_spawn_file_actions_init(&actions);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND,
						      0600);
	if (rc == 0) {
		char *argv[WORDS_MAX + 1] = { NULL };

		memcpy(argv, w->item, w->n * sizeof(argv[0])); /* posix_spawn() does not modify the strings */
		rc = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	q->pid = rc == 0 ? pid : 0;
	return rc == 0 ? 0 : err_set(err, BRIG_E_SYSTEM, rc, "cannot start a front for the queue");
}

/* Reports the last line that the front wrote before it exited. */
static int complain(const struct batch_queue *q, struct brig_error *err)
{
	char path[80], text[2048], *line;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/log", q->dir);
	n = fd_get_at(AT_FDCWD, path, text, sizeof(text));
	line = n > 0 ? strrchr(text, '\n') : NULL;
	return err_set(err, BRIG_E_SYSTEM, 0, "the front for the queue did not start: %.400s",
		       n <= 0 ? "it said nothing"
		       : line ? line + 1
			      : text);
}

/* Waits for "ready ..." on the front's standard output. */
static int await(const struct batch_queue *q, int output, struct brig_error *err)
{
	struct pollfd p = { .fd = output, .events = POLLIN };
	char byte;

	if (poll(&p, 1, START_MS) == 1 && read(output, &byte, 1) == 1)
		return 0;
	return complain(q, err);
}

int batch_queue_start(struct batch_queue *q, const char *url, const struct queue_values *with, const char *state,
		      struct service_place *ret, struct brig_error *err)
{
	struct words_of w = { .n = 0 };
	char unix_path[80];
	int in[2], out[2];

	q->input = FD_NONE;
	(void)str_copy(q->dir, sizeof(q->dir), "/tmp/brig-batch-XXXXXX");
	if (!mkdtemp(q->dir))
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a folder for the front of the queue");
	(void)snprintf(unix_path, sizeof(unix_path), "%s/http", q->dir);
	(void)snprintf(ret->path, sizeof(ret->path), "%s/run", q->dir);
	ret->is_named = true;
	describe(&w, url, with, state);
	add(&w, "--unix", unix_path);
	add(&w, "--socket", ret->path);
	if (pipe2(in, O_CLOEXEC) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
	AUTO_FD their_input = in[0];

	q->input = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
	AUTO_FD output = out[0];
	AUTO_FD their_output = out[1];

	if (spawn(q, &w, their_input, their_output, err) < 0)
		return -err->code;
	fd_closep(&their_output); /* otherwise we would not see end of file */
	return await(q, output, err);
}

void batch_queue_end(struct batch_queue *q)
{
	static const char *const files[] = { "log", "http", "run" };
	char path[80];

	if (!q->dir[0])
		return;
	fd_closep(&q->input);
	if (q->pid > 0)
		(void)waitpid(q->pid, NULL, 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", q->dir, files[i]);
		(void)unlink(path);
	}
	(void)rmdir(q->dir);
	q->dir[0] = '\0';
}
