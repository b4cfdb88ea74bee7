/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm-runs - how long requests take through the library, next to the same interpreter started bare
 *
 *	warm-runs [--cold] [--lang NAME] [--code TEXT] [--pause MS] COUNT COMMAND...
 *
 * In turn: COMMAND, started and waited for, and one request in a warm cell of one handle.  Prints a line of JSON for each round.
 * --cold asks for ordinary cells instead.  --pause: between two rounds, so that cells are made again meanwhile.
 */
#include <brig/brig.h>

#include <getopt.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double run_bare(char **argv)
{
	double begin = now_ms();
	int status;
	pid_t pid;

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		exit(1);
	return now_ms() - begin;
}

static double run_request(struct brig *b, const struct brig_request *req, size_t *kept, size_t *all)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	double took, begin = now_ms();

	if (brig_run(b, req, &r, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	took = now_ms() - begin;
	if (strcmp(brig_result_verdict(r), "ok") != 0) {
		fprintf(stderr, "%s: %s\n", brig_result_verdict(r), brig_result_reason(r));
		exit(1);
	}
	brig_result_evidence(r, kept, all);
	if (getenv("SHOW")) {
		char *json = NULL;

		if (brig_result_json(r, &json, &err) == 0)
			puts(json);
		brig_free(json);
	}
	brig_result_free(r);
	return took;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "cold", 0, NULL, 'c' },
						 { "lang", 1, NULL, 'l' },
						 { "code", 1, NULL, 'x' },
						 { "pause", 1, NULL, 'p' },
						 { NULL, 0, NULL, 0 } };
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	unsigned pause_ms = 0;
	size_t kept, all;
	int c, count;

	opts.warm_cells = 2;
	req.language = "python";
	req.code = "pass";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		switch (c) {
		case 'c':
			opts.warm_cells = 0;
			break;
		case 'l':
			req.language = optarg;
			break;
		case 'x':
			req.code = optarg;
			break;
		case 'p':
			pause_ms = (unsigned)atoi(optarg);
			break;
		default:
			return 2;
		}
	if (argc - optind < 2)
		return 2;
	count = atoi(argv[optind++]);
	req.code_len = strlen(req.code);
	if (brig_open(&opts, &b, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < 3; i++) { /* the first one of a kind has nothing to find */
		(void)run_request(b, &req, &kept, &all);
		(void)usleep(100000);
	}
	for (int i = 0; i < count; i++) {
		double bare = run_bare(argv + optind), request = run_request(b, &req, &kept, &all);

		printf("{\"bare_ms\": %.3f, \"brig_ms\": %.3f, \"kept\": %zu, \"promises\": %zu}\n", bare, request,
		       kept, all);
		(void)fflush(stdout);
		(void)usleep(pause_ms * 1000);
	}
	brig_close(b);
	return 0;
}
