/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - runs that their caller steps, through the public library.
 *
 *	steps [RUNS [TOGETHER]]
 *
 * One thread and one handle: RUNS runs of which TOGETHER are really under way side by side, each with its own answer; a
 * run that is cancelled before each of its steps in turn; one that sleeps while others come and go; a caller that is late;
 * the same program by brig_run() and in steps.  After each, the process has the descriptors, children and cgroups that it had before.
 * In the end, runs of a process that may make no other one.
 */
#include <brig/brig.h>

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../leak/cgroups.h"
#include "../unit/temp_folder.h"

#define FEW              8 /* more than a handle keeps stacks of */
#define DEFAULT_RUNS     1000
#define DEFAULT_TOGETHER 250
#define STEPS_MAX        10000

static int passed, failed;

static void check(int good, const char *what, const char *why)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	if (!good)
		printf("# %s\n", why);
	*(good ? &passed : &failed) += 1;
}

/* ---- what is left ------------------------------------------------------------------------------ */

static long entries(const char *path)
{
	DIR *dir = opendir(path);
	long n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Of a cell that this process has made: its name has our pid. */
static int is_ours(const char *name, const void *arg)
{
	char mark[32];

	(void)arg;
	(void)snprintf(mark, sizeof(mark), "-%d-", (int)getpid());
	return !strncmp(name, "brig-", 5) && strstr(name, mark);
}

/* Zombies too. */
static long count_children(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	long n = 0;
	int pid;

	if (!f)
		return -1;
	while (fscanf(f, "%d", &pid) == 1)
		n++;
	fclose(f);
	return n;
}

static long descriptors_before, children_before;

static void check_left(const char *after)
{
	char what[128], why[160];
	long fds = entries("/proc/self/fd"), groups = count_cgroups(is_ours, NULL), children = count_children();

	(void)snprintf(what, sizeof(what), "%s leaves nothing behind", after);
	(void)snprintf(why, sizeof(why),
		       "descriptors %ld before, %ld after; cgroups %ld; children %ld before, %ld after",
		       descriptors_before, fds, groups, children_before, children);
	check(fds == descriptors_before && groups == 0 && children >= 0 && children == children_before, what, why);
}

/* ---- runs -------------------------------------------------------------------------------------- */

struct job {
	struct brig_run *run;
	char code[64], want[64];
	int done;
};

static struct brig_request request(const char *code)
{
	struct brig_request req = BRIG_REQUEST_INIT;

	req.language = "shell";
	req.code = code;
	req.code_len = strlen(code);
	return req;
}

static int begin(struct brig *b, struct job *j, int number)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req;

	(void)snprintf(j->code, sizeof(j->code), "echo job %d; exit %d", number, number % 7);
	(void)snprintf(j->want, sizeof(j->want), "job %d\n", number);
	req = request(j->code);
	if (brig_run_begin(b, &req, &j->run, &err) == 0)
		return 0;
	printf("# run %d cannot be begun: %s\n", number, err.msg);
	return -1;
}

/* 0 if it ended as it should. */
static int end(struct job *j, int number)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	int bad = brig_run_end(j->run, &r, &err) < 0;

	j->run = NULL;
	bad = bad || strcmp(brig_result_output(r, BRIG_STDOUT, NULL), j->want) != 0 ||
	      brig_result_exit_code(r) != number % 7;
	if (bad)
		printf("# run %d: %s: %s\n", number, r ? brig_result_verdict(r) : "no result",
		       r ? brig_result_reason(r) : err.msg);
	brig_result_free(r);
	return bad;
}

/* Steps those of the first n that have something to do; how many have finished. */
static int turn(struct job *jobs, struct pollfd *slots, int from, int n, int *bad)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int finished = 0;

	for (int i = from; i < n; i++)
		slots[i] = (struct pollfd){ .fd = jobs[i].done ? -1 : brig_run_fd(jobs[i].run), .events = POLLIN };
	if (poll(slots + from, (nfds_t)(n - from), 60000) <= 0)
		*bad += 1;
	for (int i = from; i < n; i++) {
		int rc = slots[i].revents ? brig_run_step(jobs[i].run, &err) : 1;

		if (rc > 0)
			continue;
		*bad += rc < 0 || end(&jobs[i], i);
		jobs[i].done = 1;
		finished++;
	}
	return finished;
}

/* All are begun; so many at a time are stepped. */
/* How many have finished; *ret_bad of them not as they should. */
static int run_together(struct brig *b, int runs, int together, int *ret_bad)
{
	struct job *jobs = calloc((size_t)runs, sizeof(*jobs));
	struct pollfd *slots = calloc((size_t)runs, sizeof(*slots));
	int begun = 0, started, from = 0, finished = 0, bad = 0;

	while (jobs && slots && begun < runs && begin(b, &jobs[begun], begun) == 0)
		begun++;
	started = together < begun ? together : begun;
	while (begun == runs && finished < runs && bad < 5) {
		finished += turn(jobs, slots, from, started, &bad);
		while (from < started && jobs[from].done)
			from++;
		started = finished + together < runs ? finished + together : runs;
	}
	for (int i = 0; i < begun; i++)
		if (jobs[i].run)
			(void)brig_run_end(jobs[i].run, NULL, NULL);
	free(jobs);
	free(slots);
	*ret_bad = bad;
	return finished;
}

static void many(struct brig *b, int runs, int together)
{
	int bad, finished = run_together(b, runs, together, &bad);
	char what[96], why[32];

	(void)snprintf(what, sizeof(what), "%d runs in one loop, %d side by side, end as they should", runs, together);
	(void)snprintf(why, sizeof(why), "%d did, %d did not", finished - bad, bad);
	check(finished == runs && bad == 0, what, why);
	check_left("the loop");
}

/* ---- cancelling -------------------------------------------------------------------------------- */

/* Cancels before step k; -1: something is wrong, 0: it had finished before, 1: it was in time. */
static int cancel_at(struct brig *b, int k, int in_end)
{
	struct brig_request req = request("echo begun; sleep 0.02; echo ended");
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	struct brig_run *run;
	const char *verdict;
	int rc, more = 1, in_time;

	if (brig_run_begin(b, &req, &run, &err) < 0)
		return -1;
	for (int i = 0; i < k && more > 0; i++) {
		struct pollfd p = { .fd = brig_run_fd(run), .events = POLLIN };

		(void)poll(&p, 1, 60000);
		more = brig_run_step(run, &err);
	}
	in_time = more > 0;
	if (in_time && !in_end)
		(void)brig_run_cancel(run);
	while (in_time && !in_end && (more = brig_run_step(run, &err)) > 0) {
		struct pollfd p = { .fd = brig_run_fd(run), .events = POLLIN };

		(void)poll(&p, 1, 60000);
	}
	rc = brig_run_end(run, &r, &err);
	verdict = rc == 0 ? brig_result_verdict(r) : "";
	/* Whoever gives up when the program has ended already has its result. */
	if (rc < 0 || (strcmp(verdict, "cancelled") != 0 && strcmp(verdict, "ok") != 0)) {
		printf("# cancelled before step %d: %s: %s\n", k, verdict, rc == 0 ? brig_result_reason(r) : err.msg);
		in_time = -1;
	}
	brig_result_free(r);
	return in_time;
}

static void cancel_everywhere(struct brig *b, int in_end)
{
	char what[96], why[64];
	int k = 0, rc;

	do {
		rc = cancel_at(b, k++, in_end);
	} while (rc > 0 && k < STEPS_MAX);
	(void)snprintf(what, sizeof(what), "a run can be %s before each of its steps", in_end ? "ended" : "cancelled");
	(void)snprintf(why, sizeof(why), "stopped at step %d", k);
	/* Resolve, inspect, build, watch, clean up: it waits more than a few times. */
	check(rc == 0 && k > 3, what, why);
	check_left("cancelling");
}

/* ---- never blocking ---------------------------------------------------------------------------- */

static void count_output(void *user, enum brig_stream stream, const void *data, size_t len)
{
	(void)stream;
	(void)data;
	*(size_t *)user += len;
}

/* A run that waits for input which comes only when another one, stepped beside it, has ended. */
static void beside(struct brig *b)
{
	struct brig_request req = request("echo waiting; read line; echo got $line");
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	struct job other = { .done = 0 };
	struct brig_run *run = NULL;
	size_t heard = 0;
	int ends[2], bad = 0, more = 1;

	if (pipe(ends) < 0)
		return;
	req.stdin_fd = ends[0];
	req.on_output = count_output;
	req.user = &heard;
	bad += brig_run_begin(b, &req, &run, &err) < 0;
	while (!bad && more > 0 && heard == 0) /* it has begun, and now waits for us */
		more = brig_run_step(run, &err);
	bad = bad || begin(b, &other, 0) < 0;
	while (!bad && !other.done) {
		struct pollfd slot;

		more = brig_run_step(run, &err); /* returns, or this test would not end */
		bad += more != 1;
		(void)turn(&other, &slot, 0, 1, &bad);
	}
	(void)!write(ends[1], "now\n", 4);
	(void)close(ends[1]);
	while (!bad && (more = brig_run_step(run, &err)) > 0)
		(void)poll(&(struct pollfd){ .fd = brig_run_fd(run), .events = POLLIN }, 1, 60000);
	bad = bad || brig_run_end(run, &r, &err) < 0 ||
	      strcmp(brig_result_output(r, BRIG_STDOUT, NULL), "waiting\ngot now\n") != 0;
	check(!bad, "a step returns while its program waits, and another run passes by",
	      r ? brig_result_reason(r) : err.msg);
	brig_result_free(r);
	(void)close(ends[0]);
	check_left("waiting");
}

/* ---- signals ----------------------------------------------------------------------------------- */

/* The program may catch what it is sent, and goes on with its trap; before there is one nothing can be sent. */
static void signals(struct brig *b)
{
	struct brig_request req = request("trap 'echo caught; exit 7' TERM; echo up; while :; do sleep 0.02; done");
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	struct brig_run *run = NULL;
	size_t heard = 0;
	int bad = 0, more = 1;

	req.on_output = count_output;
	req.user = &heard;
	bad += brig_run_begin(b, &req, &run, &err) < 0;
	bad = bad || brig_run_signal(run, 0) != -BRIG_E_USAGE || brig_run_signal(NULL, SIGTERM) != -BRIG_E_USAGE ||
	      brig_run_signal(run, SIGTERM) != -BRIG_E_REFUSED;
	while (!bad && more > 0 && heard == 0)
		more = brig_run_step(run, &err);
	bad = bad || brig_run_signal(run, SIGTERM) != 0;
	while (!bad && (more = brig_run_step(run, &err)) > 0)
		(void)poll(&(struct pollfd){ .fd = brig_run_fd(run), .events = POLLIN }, 1, 60000);
	bad = bad || brig_run_signal(run, SIGTERM) != -BRIG_E_REFUSED || brig_run_end(run, &r, &err) < 0 ||
	      strcmp(brig_result_output(r, BRIG_STDOUT, NULL), "up\ncaught\n") != 0 || brig_result_exit_code(r) != 7;
	check(!bad, "a program catches a signal that it is sent", r ? brig_result_reason(r) : err.msg);
	brig_result_free(r);
	check_left("signals");
}

/* ---- late -------------------------------------------------------------------------------------- */

#define LATE_RUNS    12
#define LATE_SECONDS 3

/*
 * A caller that is away for longer than its programs may take, after each number of steps: a program that has not begun has lost
 * nothing of its time.  One that has may be over, its evidence with it; but no cell fails.
 */
static void late(struct brig *b)
{
	static const struct brig_option second = { "execution_timeout_ms", "1000" };
	struct brig_request req = request("echo job 0; exit 0");
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_run *runs[LATE_RUNS] = { NULL };
	int more[LATE_RUNS], bad = 0;

	req.options = &second;
	req.n_options = 1;
	for (int i = 0; i < LATE_RUNS; i++) {
		more[i] = brig_run_begin(b, &req, &runs[i], &err) == 0;
		for (int k = 0; k < i && more[i] > 0; k++) {
			(void)poll(&(struct pollfd){ .fd = brig_run_fd(runs[i]), .events = POLLIN }, 1, 60000);
			more[i] = brig_run_step(runs[i], &err);
		}
	}
	(void)sleep(LATE_SECONDS);
	for (int i = 0; i < LATE_RUNS; i++) {
		struct brig_result *r = NULL;

		while (more[i] > 0 && (more[i] = brig_run_step(runs[i], &err)) > 0)
			(void)poll(&(struct pollfd){ .fd = brig_run_fd(runs[i]), .events = POLLIN }, 1, 60000);
		if (brig_run_end(runs[i], &r, &err) < 0 || strcmp(brig_result_verdict(r), "failed") == 0) {
			printf("# late at step %d: %s\n", i, r ? brig_result_reason(r) : err.msg);
			bad++;
		}
		brig_result_free(r);
	}
	check(bad == 0, "the time before a program is let go is not its own", "a cell ended before its program began");
	check_left("being late");
}

/* ---- callbacks --------------------------------------------------------------------------------- */

struct meddler {
	struct brig_run *run;
	int refused;
};

static void meddle(void *user, enum brig_stream stream, const void *data, size_t len)
{
	struct meddler *m = user;
	struct brig_error err = BRIG_ERROR_INIT;

	(void)stream;
	(void)data;
	(void)len;
	m->refused += brig_run_step(m->run, &err) == -BRIG_E_USAGE && brig_run_end(m->run, NULL, &err) == -BRIG_E_USAGE;
	(void)brig_run_cancel(m->run);
}

static void from_callback(struct brig *b)
{
	struct brig_request req = request("echo hello; sleep 60");
	struct brig_error err = BRIG_ERROR_INIT;
	struct meddler m = { .refused = 0 };
	struct brig_result *r = NULL;

	req.on_output = meddle;
	req.user = &m;
	if (brig_run_begin(b, &req, &m.run, &err) < 0)
		return;
	while (brig_run_step(m.run, &err) > 0)
		(void)poll(&(struct pollfd){ .fd = brig_run_fd(m.run), .events = POLLIN }, 1, 60000);
	(void)brig_run_end(m.run, &r, &err);
	check(m.refused == 1 && r && strcmp(brig_result_verdict(r), "cancelled") == 0,
	      "a callback can cancel its run but neither step nor end it", r ? brig_result_verdict(r) : err.msg);
	brig_result_free(r);
	check_left("a callback that cancels");
}

/* ---- the same ---------------------------------------------------------------------------------- */

/* Where the value behind one of these ends; NULL: none begins here.  They differ from run to run. */
static char *behind_own(char *at)
{
	static const char *const keys[][2] = { { "\"hash\":\"", "\"" },
					       { "\"source\":\"", "\"" },
					       { "\"samples\":[", "]" } };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strncmp(at, keys[i][0], strlen(keys[i][0])))
			return at + strlen(keys[i][0]) + strcspn(at + strlen(keys[i][0]), keys[i][1]);
	return NULL;
}

/* Ids, numbers and those become "#": what is left is the same for the same program. */
static void plain(char *json, const char *id)
{
	char *to = json, *at = json, *next;

	while (*at) {
		size_t digits = strspn(at, "0123456789.");

		if (!strncmp(at, id, strlen(id)))
			next = at + strlen(id);
		else
			next = digits ? at + digits : behind_own(at);
		*to++ = next ? '#' : *at;
		at = next ? next : at + 1;
	}
	*to = '\0';
}

static char *document(struct brig *b, int stepped)
{
	struct brig_request req = request("echo out; echo err >&2; cat; exit 3");
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	struct brig_run *run;
	char *json = NULL;
	int rc;

	req.stdin_data = "input\n";
	req.stdin_len = 6;
	rc = stepped ? brig_run_begin(b, &req, &run, &err) : brig_run(b, &req, &r, &err);
	while (rc == 0 && stepped && brig_run_step(run, &err) > 0)
		(void)poll(&(struct pollfd){ .fd = brig_run_fd(run), .events = POLLIN }, 1, 60000);
	if (rc == 0 && stepped)
		rc = brig_run_end(run, &r, &err);
	if (rc == 0 && brig_result_exit_code(r) == 3 && brig_result_json(r, &json, &err) == 0)
		plain(json, brig_result_id(r));
	else
		printf("# %s\n", err.msg);
	brig_result_free(r);
	return json;
}

static void same(struct brig *b)
{
	char *direct = document(b, 0), *stepped = document(b, 1);
	int good = direct && stepped && strcmp(direct, stepped) == 0;

	check(good && strstr(direct, "input"), "brig_run() and steps give the same document",
	      "but for ids, times and other numbers they differ");
	if (!good && direct && stepped)
		printf("# %s\n# %s\n", direct, stepped);
	brig_free(direct);
	brig_free(stepped);
	check_left("both");
}

#define RETIRED 8 /* as INSPECTORS_SPARES_MAX, which is none of the public's business */

/* What is opened once is opened, and the count of descriptors begins. */
static struct brig *open_handle(const char *state)
{
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	int bad;

	opts.state_dir = state;
	if (!state || brig_open(&opts, &b, &err) < 0) {
		check(0, "a handle is opened", err.msg);
		return NULL;
	}
	/* What is opened once is opened now; the second run brings the process that keeps the inspection's workers. */
	brig_free(document(b, 0));
	brig_free(document(b, 1));             /* a sanitizer opens its log at the first switch of stacks */
	(void)run_together(b, FEW, FEW, &bad); /* a handle keeps some stacks, with what they wait by */
	for (int i = 0; i < RETIRED; i++)      /* and the last workers of the inspection until they are dead */
		brig_free(document(b, 1));
	descriptors_before = entries("/proc/self/fd");
	children_before = count_children();
	return b;
}

/* How long cells take to come and to go, hundreds of them, is this machine's business, and not what is tested. */
static void be_patient(void)
{
	static const char *const patience[][2] = { { "BRIG_EXECUTION_TIMEOUT_MS", "300000" },
						   { "BRIG_STARTUP_TIMEOUT_MS", "600000" },
						   { "BRIG_CLEANUP_TIMEOUT_MS", "600000" } };

	for (size_t i = 0; i < sizeof(patience) / sizeof(patience[0]); i++)
		(void)setenv(patience[i][0], patience[i][1], 1);
}

/* From now on this thread makes neither process nor thread. */
static int forbid_forks(void)
{
	static const int calls[] = { SYS_clone, SYS_clone3,
#ifdef SYS_fork
				     SYS_fork, SYS_vfork
#endif
	};
	struct sock_filter code[2 * sizeof(calls) / sizeof(calls[0]) + 2];
	struct sock_fprog program = { .filter = code };

	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/* Cells are the keeper's to make; a text for which no worker of the inspection is ready would be read by one that is forked
 * here, so there is none.  How many of three runs went well. */
static int run_without_forks(const char *state)
{
	struct brig *b = open_handle(state);
	char *first = b ? document(b, 0) : NULL; /* which starts the keeper */
	int good = first && forbid_forks(), n = 0;

	brig_free(first);
	for (; n < 3 && good; n++) {
		char *json = document(b, n % 2);

		good = json && strstr(json, "input");
		brig_free(json);
	}
	brig_close(b);
	return good ? n : 0;
}

/* In a process of its own, which cannot take it back, and ends without what a sanitizer does in the end: it makes a process. */
static void without_forks(const char *state)
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(run_without_forks(state));
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 3, "runs of a process that may make no other one",
	      "a run failed");
}

int main(int argc, char **argv)
{
	int runs = argc > 1 ? atoi(argv[1]) : DEFAULT_RUNS, together = argc > 2 ? atoi(argv[2]) : DEFAULT_TOGETHER;
	char place[] = "/tmp/steps-XXXXXX", *state = mkdtemp(place);
	struct rlimit files;
	struct brig *b;

	/* A run that is under way has some twenty descriptors. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	be_patient();
	b = open_handle(state);
	if (b) {
		same(b);
		beside(b);
		signals(b);
		late(b);
		from_callback(b);
		cancel_everywhere(b, 0);
		cancel_everywhere(b, 1);
		many(b, runs / 10, together / 10);
	}
	brig_close(b);
	/* A text is read in two seconds or not at all, which hundreds at once are not on every machine. */
	(void)setenv("BRIG_INSPECTION", "off", 1);
	b = open_handle(state);
	if (b)
		many(b, runs, together);
	brig_close(b);
	if (state)
		without_forks(state);
	if (state)
		(void)temp_folder_remove(state);
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed ? 1 : 0;
}
