/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late - a child of the library that ends after everybody has given up waiting for it
 *
 * A janitor is stopped while its program runs, so that it cannot end in time; the result must say what was left.  Let go
 * on, it removes the groups and becomes a zombie, which the next request has to reap: a server that lives for months
 * would collect them.  That is so for a cell that this process makes, one with a project; one of the keeper's is the keeper's
 * to wait for, and what was left is said all the same.
 */
#include <brig/brig.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/temp_folder.h"

#define PATIENCE_SECONDS 60

struct process {
	pid_t parent;
	char state;
};

static struct process look_at(pid_t pid)
{
	struct process p = { .parent = -1, .state = '?' };
	char path[32], text[512];
	const char *after = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f))
		after = strrchr(text, ')'); /* the command's name before it may hold anything */
	if (!after || sscanf(after, ") %c %d", &p.state, &p.parent) != 2)
		p.parent = -1;
	if (f)
		fclose(f);
	return p;
}

/* The last child of a process that is listed for which accept() says yes; 0: none. */
static pid_t child_of(pid_t parent, int (*accept)(pid_t child))
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (dir && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && look_at(pid).parent == parent && accept(pid))
			found = pid;
	}
	if (dir)
		closedir(dir);
	return found;
}

static int any(pid_t pid)
{
	return pid > 0;
}

/* While a program runs, who makes its cell has two children: the cell's init, whose child the program is, and the janitor. */
static int is_alone(pid_t pid)
{
	return child_of(pid, any) == 0;
}

static int is_keeper(pid_t pid)
{
	char path[32], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	return strcmp(name, "brig-keeper\n") == 0;
}

struct stopped {
	int keeper_made; /* the cell was */
	pid_t janitor;   /* 0: not found */
	int input;       /* the program ends when this is closed */
};

static void stop_janitor(void *user, enum brig_stream stream, const void *data, size_t len)
{
	struct stopped *s = user;

	(void)stream;
	(void)data;
	(void)len;
	if (s->janitor == 0)
		s->janitor = child_of(s->keeper_made ? child_of(getpid(), is_keeper) : getpid(), is_alone);
	if (s->janitor > 0)
		kill(s->janitor, SIGSTOP);
	if (s->input >= 0)
		close(s->input);
	s->input = -1;
}

static int has_children(void)
{
	siginfo_t child;

	return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

/* A handle with that much time to clean up, one run, and what its result says. */
static char *run_once(const char *state, const char *workspace, const char *cleanup_ms, struct stopped *stopped)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	struct brig_result *r = NULL;
	struct brig *b = NULL;
	char *json = NULL;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return NULL;
	opts.state_dir = state;
	req.language = "shell";
	req.code = "echo hello; read end";
	req.code_len = strlen(req.code);
	req.workspace = workspace;
	req.stdin_fd = ends[0];
	req.on_output = stopped ? stop_janitor : NULL;
	req.user = stopped;
	if (stopped)
		stopped->input = ends[1];
	else
		close(ends[1]);
	if (setenv("BRIG_CLEANUP_TIMEOUT_MS", cleanup_ms, 1) < 0 || brig_open(&opts, &b, &err) < 0 ||
	    brig_run(b, &req, &r, &err) < 0 || brig_result_json(r, &json, &err) < 0)
		printf("# %s\n", err.msg);
	brig_result_free(r);
	brig_close(b);
	close(ends[0]);
	if (stopped && stopped->input >= 0)
		close(stopped->input);
	return json;
}

static void await_zombie(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	time_t end = time(NULL) + PATIENCE_SECONDS;

	while (look_at(pid).parent == getpid() && look_at(pid).state != 'Z' && time(NULL) < end)
		nanosleep(&pause, NULL);
}

static int say(int good, const char *what)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	return !good;
}

static void await_end(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	time_t end = time(NULL) + PATIENCE_SECONDS;

	while (look_at(pid).parent > 0 && look_at(pid).state != 'Z' && time(NULL) < end)
		nanosleep(&pause, NULL);
}

static int check_keeper(const char *state)
{
	struct stopped s = { .keeper_made = 1 };
	char *json = run_once(state, NULL, "500", &s);
	int failed = say(json && (s.janitor == 0 || strstr(json, "clean-up left behind: ")),
			 "what was left of a keeper's cell is said");

	brig_free(json);
	failed += say(!has_children(), "the keeper is gone with its handle");
	if (s.janitor > 0)
		kill(s.janitor, SIGCONT);
	await_end(s.janitor);
	return failed;
}

static int check(const char *state, const char *workspace, int *skipped)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;
	struct stopped s = { .janitor = 0 };
	char *json = run_once(state, workspace, "500", &s);
	pid_t janitor = s.janitor;
	int failed;

	if (json && janitor == 0) {
		printf("ok - late children # SKIP there is no janitor: this user has no control groups\n");
		brig_free(json);
		*skipped = 1;
		return 0;
	}
	failed = say(json && strstr(json, "clean-up left behind: "), "what was left is said");
	brig_free(json);
	failed += say(janitor > 0 && has_children(), "the janitor is there while it is stopped");
	if (janitor > 0)
		kill(janitor, SIGCONT);
	await_zombie(janitor);
	failed += say(look_at(janitor).state == 'Z', "when it goes on it ends");
	do /* on a busy machine the next run may have children that are late themselves */
		brig_free(run_once(state, workspace, "30000", NULL));
	while (has_children() && time(NULL) < end);
	return failed + say(!has_children(), "the next request buries it");
}

int main(void)
{
	char state[] = "/tmp/late-XXXXXX", workspace[] = "/tmp/late-XXXXXX";
	int failed, skipped = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(state) || !mkdtemp(workspace)) {
		printf("not ok - %s: %s\n0 passed, 1 failed, 0 skipped\n", state, strerror(errno));
		return 1;
	}
	failed = check(state, workspace, &skipped) + check_keeper(state);
	(void)temp_folder_remove(workspace);
	(void)temp_folder_remove(state);
	printf("%d passed, %d failed, %d skipped\n", (skipped ? 2 : 6) - failed, failed, skipped);
	return failed != 0;
}
