/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many.c - runs many programs side by side from one thread, using only libbrig and poll(2).
 *
 *	many CODE...
 *
 * Each CODE is a line of Python; what it prints is shown as soon as it has ended, with its number.  Exit status: 0 if every
 * verdict is "ok", 1 if not, 2 if nothing could be run.
 *
 *	cc many.c -lbrig -o many
 */
#include <brig/brig.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int begin(struct brig *b, const char *code, struct brig_run **ret)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_request req = BRIG_REQUEST_INIT;

	req.language = "python";
	req.code = code; /* stays ours, and stays as it is until the run has ended */
	req.code_len = strlen(code);
	if (brig_run_begin(b, &req, ret, &err) == 0)
		return 0;
	fprintf(stderr, "many: %s\n", err.msg);
	return -1;
}

/* Takes a run that has finished; 1 if it did not end well. */
static int end(struct brig_run *run, int number)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	int bad = 1;

	if (brig_run_end(run, &r, &err) < 0) {
		fprintf(stderr, "many: %s\n", err.msg);
	} else {
		printf("%d: %s\n%s", number, brig_result_verdict(r), brig_result_output(r, BRIG_STDOUT, NULL));
		bad = strcmp(brig_result_verdict(r), "ok") != 0;
	}
	brig_result_free(r);
	return bad;
}

/* Until all have finished; how many did not end well. */
static int loop(struct brig_run **runs, struct pollfd *slots, int n)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int left = n, bad = 0;

	while (left > 0) {
		(void)poll(slots, (nfds_t)n, -1);
		for (int i = 0; i < n; i++)
			if (slots[i].fd >= 0 && slots[i].revents && brig_run_step(runs[i], &err) <= 0) {
				bad += end(runs[i], i + 1);
				slots[i].fd = -1; /* poll passes it over */
				left--;
			}
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_run **runs = calloc((size_t)argc, sizeof(struct brig_run *));
	struct pollfd *slots = calloc((size_t)argc, sizeof(*slots));
	struct brig *b = NULL;
	int n = 0, bad = 0;

	if (!runs || !slots || brig_open(NULL, &b, &err) < 0) {
		fprintf(stderr, "many: %s\n", b ? "no memory left" : err.msg);
		return 2;
	}
	while (n < argc - 1 && begin(b, argv[n + 1], &runs[n]) == 0) {
		slots[n].fd = brig_run_fd(runs[n]);
		slots[n].events = POLLIN;
		n++;
	}
	bad = n == 0 || n < argc - 1 ? 2 : loop(runs, slots, n) > 0;
	for (int i = 0; bad == 2 && i < n; i++)
		(void)brig_run_end(runs[i], NULL, &err); /* cancels it first */
	brig_close(b);
	free(runs);
	free(slots);
	return bad;
}
