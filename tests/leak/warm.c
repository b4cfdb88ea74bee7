/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.c - many runs in warm cells of one handle, and nothing may grow.
 *
 *	warm [RUNS [PAUSE_MS]]
 *
 * Counted are this process, the keeper of its cells and everything below the two: descriptors, processes, zombies, mounts,
 * cgroups, namespaces, memory.  One cell waits when nothing is under way; the counts are taken when it does, before the runs
 * and after them, and what has not come down to where it was within a minute has grown.
 *
 * PAUSE_MS between two runs lets the next cell be made, so that most runs find one.  How long they took is printed, the first
 * thousand next to the last, and decides nothing: the machine may have other things to do.  So is the cpu time that caller and keeper
 * took for them, which says the same on a machine that is busy.
 */
#include <brig/brig.h>

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../unit/temp_folder.h"
#include "cgroups.h"

#define WARM_UP_RUNS     50
#define DEFAULT_RUNS     200
#define COMPARED_RUNS    1000
#define PATIENCE_SECONDS 60
#define TREE_MAX         512
#define NAMESPACES_MAX   1024

/* What is counted, and by how much it may grow.  A leak of 100 bytes per run would show as 1 MB after 10 000. */
#define COUNTS(X)                                             \
	X(descriptors, 0, "descriptors of the caller")        \
	X(keeper_descriptors, 0, "descriptors of the keeper") \
	X(processes, 0, "processes below the caller")         \
	X(zombies, 0, "zombies among them")                   \
	X(namespaces, 0, "namespaces of all these")           \
	X(mounts, 0, "mounts")                                \
	X(cgroups, 0, "cgroups of the caller and the keeper") \
	X(heap_kib, 32, "KiB of heap in use, caller")         \
	X(own_kib, 256, "KiB of memory of its own, caller")   \
	X(keeper_own_kib, 128, "KiB of memory of its own, keeper")

struct counts {
#define X(field, slack, what) long field;
	COUNTS(X)
#undef X
};

/* ---- looking ------------------------------------------------------------------------------------ */

struct process {
	pid_t pid, parent;
	char state;
};

struct tree {
	struct process at[TREE_MAX]; /* the caller first */
	size_t n;
	pid_t keeper; /* 0: none */
};

static int look_at(pid_t pid, struct process *ret, char name[17])
{
	char path[32], text[512], *after = NULL, *open = NULL;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f)) {
		open = strchr(text, '(');
		after = strrchr(text, ')'); /* the name before it may hold anything */
	}
	if (f)
		fclose(f);
	ret->pid = pid;
	if (!open || !after || sscanf(after, ") %c %d", &ret->state, &ret->parent) != 2)
		return 0;
	(void)snprintf(name, 17, "%.*s", (int)(after - open - 1), open + 1);
	return 1;
}

/* Children have higher numbers than their parents only until numbers are given away again: so look until nothing is new. */
static struct tree *look_below(void)
{
	static struct tree t;
	static struct process all[8192];
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;
	char name[17];

	t = (struct tree){ .at = { { .pid = getpid() } }, .n = 1 };
	while (dir && n < sizeof(all) / sizeof(all[0]) && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && look_at(pid, &all[n], name)) {
			if (all[n].parent == getpid() && !strcmp(name, "brig-keeper"))
				t.keeper = pid;
			n++;
		}
	}
	if (dir)
		closedir(dir);
	for (size_t i = 0; i < t.n; i++)
		for (size_t k = 0; k < n && t.n < TREE_MAX; k++)
			if (all[k].parent == t.at[i].pid)
				t.at[t.n++] = all[k];
	return &t;
}

static long entries_of(pid_t pid, const char *folder)
{
	char path[64];
	DIR *dir;
	long n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, folder);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Anonymous pages, whether or not a fork still shares them: only those can grow with the number of runs. */
static long own_kib(pid_t pid)
{
	char path[64], line[256];
	long value = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Anonymous: %ld", &value) == 1)
			break;
	if (f)
		fclose(f);
	return value;
}

/* Distinct ones: a namespace that nobody is in and no descriptor holds is gone. */
static long count_namespaces(const struct tree *t)
{
	static const char *const kinds[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time" };
	static char seen[NAMESPACES_MAX][40];
	long n = 0;

	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			char path[64], name[40];
			ssize_t len;
			long s = 0;

			(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", t->at[i].pid, kinds[k]);
			len = readlink(path, name, sizeof(name) - 1);
			name[len > 0 ? len : 0] = '\0';
			while (s < n && strcmp(seen[s], name) != 0)
				s++;
			if (len > 0 && s == n && n < NAMESPACES_MAX)
				memcpy(seen[n++], name, sizeof(name));
		}
	return n;
}

static long count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = 0;
	int c;

	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* A group's name has the pid of the process that made it. */
static int is_ours(const char *name, const void *arg)
{
	const struct tree *t = arg;
	char caller[32], keeper[32];

	(void)snprintf(caller, sizeof(caller), "-%d-", getpid());
	(void)snprintf(keeper, sizeof(keeper), "-%d-", t->keeper);
	return !strncmp(name, "brig-", 5) && (strstr(name, caller) || strstr(name, keeper));
}

static long count_zombies(const struct tree *t)
{
	long n = 0;

	for (size_t i = 1; i < t->n; i++)
		n += t->at[i].state == 'Z';
	return n;
}

static struct counts count(void)
{
	const struct tree *t = look_below();

	(void)malloc_trim(0); /* what is free may lie anywhere */
	return (struct counts){
		.descriptors = entries_of(getpid(), "fd"),
		.keeper_descriptors = t->keeper ? entries_of(t->keeper, "fd") : 0,
		.processes = (long)t->n - 1,
		.zombies = count_zombies(t),
		.namespaces = count_namespaces(t),
		.mounts = count_lines("/proc/self/mountinfo"),
		.cgroups = count_cgroups(is_ours, t),
		.heap_kib = (long)(mallinfo2().uordblks / 1024),
		.own_kib = own_kib(getpid()),
		.keeper_own_kib = t->keeper ? own_kib(t->keeper) : 0,
	};
}

/* ---- comparing ---------------------------------------------------------------------------------- */

static void pause_ms(long ms)
{
	const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&time, NULL);
}

static int grown(const struct counts *before, const struct counts *after)
{
	int n = 0;

#define X(field, slack, what) n += after->field - before->field > (slack);
	COUNTS(X)
#undef X
	return n;
}

/* A cell is there whose interpreter was started: somebody below the keeper has a parent below the keeper. */
static int somebody_waits(void)
{
	const struct tree *t = look_below();

	for (size_t i = 1; i < t->n; i++)
		for (size_t k = 1; k < t->n; k++)
			if (t->keeper && t->at[k].pid == t->at[i].parent && t->at[k].parent == t->keeper)
				return 1;
	return 0;
}

/* The highest counts of some that are taken when a cell waits: what is there anyway, seen often enough. */
static struct counts count_settled(void)
{
	struct counts most = { 0 }, now;
	time_t end = time(NULL) + PATIENCE_SECONDS;

	while (!somebody_waits() && time(NULL) < end)
		pause_ms(50);
	for (int i = 0; i < 10; i++) {
		now = count();
#define X(field, slack, what) most.field = now.field > most.field ? now.field : most.field;
		COUNTS(X)
#undef X
		pause_ms(50);
	}
	return most;
}

/* What has come down by itself has not grown. */
static struct counts count_again(const struct counts *before)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;
	struct counts now = count();

	while (grown(before, &now) && time(NULL) < end) {
		pause_ms(100);
		now = count();
	}
	return now;
}

static int compare(const struct counts *before, const struct counts *after)
{
#define X(field, slack, what)                                                                                       \
	printf("%s - %s: %ld before, %ld after\n", after->field - before->field <= (slack) ? "ok" : "not ok", what, \
	       before->field, after->field);
	COUNTS(X)
#undef X
	return grown(before, after);
}

/* ---- runs --------------------------------------------------------------------------------------- */

static double now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* One run; 0 if it ended as it should. */
static int run_once(struct brig *b, int number, double *ret_ms, long *warm)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	struct brig_result *r = NULL;
	char *json = NULL;
	double begin;
	int bad = 1;

	req.language = "python";
	req.code = "print('hello')";
	req.code_len = strlen(req.code);
	begin = now_ms();
	if (brig_run(b, &req, &r, &err) < 0) {
		printf("# run %d: %s\n", number, err.msg);
		return 1;
	}
	*ret_ms = now_ms() - begin;
	if (brig_result_json(r, &json, &err) < 0) {
		printf("# run %d: %s\n", number, err.msg);
	} else if (strcmp(brig_result_verdict(r), "ok") != 0) {
		printf("# run %d: %s: %s\n", number, brig_result_verdict(r), brig_result_reason(r));
	} else {
		bad = 0;
		*warm += strstr(json, "\"warm\":true") || strstr(json, "\"warm\": true");
	}
	brig_free(json);
	brig_result_free(r);
	return bad;
}

/* Of this process and of the keeper. */
static double cpu_ms(void)
{
	const pid_t keeper = look_below()->keeper;
	unsigned long long user = 0, system = 0;
	char path[32], text[512], *after = NULL;
	struct rusage own;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", keeper);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f))
		after = strrchr(text, ')');
	if (after)
		(void)sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
	if (f)
		fclose(f);
	(void)getrusage(RUSAGE_SELF, &own);
	return (double)(user + system) * 1e3 / (double)sysconf(_SC_CLK_TCK) +
	       (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) * 1e3 +
	       (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1e3;
}

/* How many runs at each end are compared. */
static int compared(int runs)
{
	return runs / 2 < COMPARED_RUNS ? runs / 2 : COMPARED_RUNS;
}

/* Before the first of them, after these, before the last of them, after those. */
static double cpu_at[4];

static void note_cpu(int done, int runs)
{
	const int at[] = { 0, compared(runs), runs - compared(runs), runs };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (done == at[i])
			cpu_at[i] = cpu_ms();
}

static int run_many(struct brig *b, int runs, long pause, double *took, long *warm)
{
	int bad = 0;

	note_cpu(0, runs);
	/* The first few complaints tell the story; a thousand hide it. */
	for (int i = 0; i < runs && bad < 5; note_cpu(++i, runs)) {
		bad += run_once(b, i, &took[i], warm);
		if (pause)
			pause_ms(pause);
	}
	return bad;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_size);
	return values[n / 2];
}

static void show_times(double *took, int runs, long warm)
{
	size_t n = (size_t)compared(runs);
	double first, last;

	printf("# %ld of %d runs found a cell that waited for them\n", warm, runs);
	if (n == 0)
		return;
	first = median(took, n);
	last = median(took + (size_t)runs - n, n);
	printf("# p50 of the first %zu: %.2f ms, of the last %zu: %.2f ms, %+.1f %% (aim: at most 10): %s\n", n, first,
	       n, last, (last / first - 1) * 100, last <= first * 1.1 ? "PASS" : "FAIL");
	first = (cpu_at[1] - cpu_at[0]) / (double)n;
	last = (cpu_at[3] - cpu_at[2]) / (double)n;
	printf("# cpu time of caller and keeper for each of them: %.3f ms, %.3f ms, %+.1f %%\n", first, last,
	       (last / first - 1) * 100);
}

/* The allocator's cache of each thread counts freed pieces as used; tests/leak/leak.c says more. */
static void without_thread_cache(char **argv)
{
	if (getenv("GLIBC_TUNABLES") || setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1) < 0)
		return;
	(void)execv("/proc/self/exe", argv); /* if not, we count what there is to count */
}

/* How many checks fail. */
static int check(struct brig *b, int runs, long pause, double *took)
{
	struct counts before, after;
	long warm = 0;
	int failed = run_many(b, WARM_UP_RUNS, 0, took, &warm) > 0;

	warm = 0;
	before = count_settled();
	if (!failed)
		failed = run_many(b, runs, pause, took, &warm) > 0;
	printf("%s - %d runs end well\n", failed ? "not ok" : "ok", runs);
	printf("%s - some of them found a cell that waited\n", warm > 0 ? "ok" : "not ok");
	failed += warm == 0;
	after = count_again(&before);
	show_times(took, runs, warm);
	return failed + compare(&before, &after);
}

int main(int argc, char **argv)
{
	int runs = argc > 1 ? atoi(argv[1]) : DEFAULT_RUNS, checks = 2, failed;
	long pause = argc > 2 ? atol(argv[2]) : 0;
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	char state[] = "/tmp/warm-XXXXXX";
	struct brig *b = NULL;
	double *took;

	without_thread_cache(argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	opts.state_dir = mkdtemp(state);
	opts.warm_cells = 1;
	took = calloc((size_t)(runs > 0 ? runs : 0) + WARM_UP_RUNS, sizeof(*took));
	if (!took || !opts.state_dir || brig_open(&opts, &b, &err) < 0) {
		printf("not ok - open: %s\n0 passed, 1 failed, 0 skipped\n", err.msg);
		return 1;
	}
	failed = check(b, runs, pause, took);
	brig_close(b);
	(void)temp_folder_remove(state);
	free(took);
#define X(field, slack, what) checks++;
	COUNTS(X)
#undef X
	printf("%d passed, %d failed, 0 skipped\n", checks - failed, failed);
	return failed ? 1 : 0;
}
