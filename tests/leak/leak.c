/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak.c - many runs in one process, through the public library, and nothing may grow.
 *
 *	leak [RUNS]
 *
 * The first runs warm up what is made once (caches, allocator arenas); from then on the process's descriptors,
 * threads, children, mounts and heap must stay where they are, and no cgroup of a finished run may be left.  Each run
 * is recorded, in a state folder that is made and removed here; the audit log must be whole in the end.
 */
#include <brig/brig.h>

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/temp_folder.h"
#include "cgroups.h"

#define WARM_UP_RUNS 50
#define DEFAULT_RUNS 1000

/* What is counted, and by how much it may grow.  A leak of 100 bytes per run would show as 100 KiB of heap. */
#define METRICS(X)                                \
	X(descriptors, 0, "open descriptors")     \
	X(threads, 0, "threads")                  \
	X(children, 0, "child processes")         \
	X(mounts, 0, "mounts")                    \
	X(cgroups, 0, "cgroups of finished runs") \
	X(heap_kib, 16, "KiB of heap in use")     \
	X(resident_kib, 512, "KiB resident, files apart")

/* Ids of all runs so far: cgroups are named by them, and other brigs may be at work on this machine. */
static char (*run_ids)[32];
static size_t n_run_ids;

struct metrics {
#define X(field, slack, what) long field;
	METRICS(X)
#undef X
};

static long entries(const char *path)
{
	DIR *dir = opendir(path);
	long n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long lines(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = 0;
	int c;

	if (!f)
		return -1;
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static long status_value(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long value = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			value = strtol(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return value;
}

static int names_a_run(const char *folder, const void *arg)
{
	(void)arg;
	for (size_t i = 0; i < n_run_ids; i++)
		if (strstr(folder, run_ids[i]))
			return 1;
	return 0;
}

static struct metrics measure(void)
{
	siginfo_t child;

	/* What was freed and is kept for later is no leak; how much that is depends on what was freed last. */
	(void)malloc_trim(0);
	return (struct metrics){
		.descriptors = entries("/proc/self/fd"),
		.threads = entries("/proc/self/task"),
		/* Also those without an exit signal, which brig's own children are. */
		.children =
			waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD ? 0 : 1,
		.mounts = lines("/proc/self/mountinfo"),
		.cgroups = count_cgroups(names_a_run, NULL),
		.heap_kib = (long)(mallinfo2().uordblks / 1024),
		.resident_kib = status_value("RssAnon:"),
	};
}

/* One run; 0 if it ended as it should. */
static int run_once(struct brig *b, int number)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	struct brig_result *r = NULL;
	char *json = NULL;
	int bad = 1;

	req.language = "shell";
	req.code = "echo hello";
	req.code_len = strlen(req.code);
	if (brig_run(b, &req, &r, &err) < 0 || brig_result_json(r, &json, &err) < 0)
		printf("# run %d: %s\n", number, err.msg);
	else if (snprintf(run_ids[n_run_ids++], sizeof(run_ids[0]), "%s", brig_result_id(r)) < 8)
		printf("# run %d: has no id\n", number);
	else if (strcmp(brig_result_verdict(r), "ok") != 0)
		printf("# run %d: %s: %s\n", number, brig_result_verdict(r), brig_result_reason(r));
	else
		bad = 0;
	brig_free(json);
	brig_result_free(r);
	return bad;
}

static int run_many(struct brig *b, int runs)
{
	int bad = 0;

	/* The first few complaints tell the story; a thousand hide it. */
	for (int i = 0; i < runs && bad < 5; i++)
		bad += run_once(b, i);
	return bad;
}

/* The history moves what it has to its database now and then; the first time loads what that needs. */
static int read_history(struct brig *b)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *json = NULL;
	int rc = brig_history_json(b, NULL, &json, &err);

	if (rc < 0)
		printf("# history: %s\n", err.msg);
	brig_free(json);
	return rc < 0;
}

/* The log of all these runs; 0 if it is whole. */
static int check_log(struct brig *b)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *json = NULL;
	int rc = brig_audit_verify(b, &json, &err);

	printf("%s - the audit log is whole\n", rc == 0 ? "ok" : "not ok");
	if (rc != 0)
		printf("# %s\n", rc < 0 ? err.msg : json);
	brig_free(json);
	return rc != 0;
}

static int compare(const struct metrics *before, const struct metrics *after)
{
	int failed = 0;

#define X(field, slack, what)                                                                                          \
	{                                                                                                              \
		int good = after->field - before->field <= (slack);                                                    \
                                                                                                                       \
		printf("%s - %s: %ld before, %ld after\n", good ? "ok" : "not ok", what, before->field, after->field); \
		failed += !good;                                                                                       \
	}
	METRICS(X)
#undef X
	return failed;
}

/*
 * The C library's allocator keeps freed pieces in a cache of each thread and counts them as in use; which sizes are in
 * there when we look depends on the lengths of paths and times.  Without that cache the count is what the program holds.
 */
static void without_thread_cache(char **argv)
{
	if (getenv("GLIBC_TUNABLES") || setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1) < 0)
		return;
	(void)execv("/proc/self/exe", argv); /* if not, we count what there is to count */
}

int main(int argc, char **argv)
{
	int runs = argc > 1 ? atoi(argv[1]) : DEFAULT_RUNS;
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	struct metrics before, after;
	char state[] = "/tmp/leak-XXXXXX";
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	int checks = 2, failed = 0;

	without_thread_cache(argv);
	opts.state_dir = mkdtemp(state);
	run_ids = calloc((size_t)(runs > 0 ? runs : 0) + WARM_UP_RUNS, sizeof(run_ids[0]));
	if (!run_ids || !opts.state_dir || brig_open(&opts, &b, &err) < 0) {
		printf("not ok - open: %s\n0 passed, 1 failed, 0 skipped\n", err.msg);
		return 1;
	}
	failed += run_many(b, WARM_UP_RUNS) > 0 || read_history(b);
	before = measure();
	if (!failed)
		failed += run_many(b, runs) > 0;
	after = measure();
	printf("%s - %d runs end well\n", failed ? "not ok" : "ok", runs);
	failed += check_log(b);
	brig_close(b);
	(void)temp_folder_remove(state);
	free(run_ids);
#define X(field, slack, what) checks++;
	METRICS(X)
#undef X
	failed += compare(&before, &after);
	printf("%d passed, %d failed, 0 skipped\n", checks - failed, failed);
	return failed ? 1 : 0;
}
