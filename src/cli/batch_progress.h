/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a batch: one updating line on a terminal, elsewhere a line now and then, and a last line at the end. */
#ifndef CLI_BATCH_PROGRESS_H
#define CLI_BATCH_PROGRESS_H

#include "base/util.h"

#define BATCH_WORDS_MAX 32

struct batch_progress {
	bool is_quiet, is_terminal, is_shown;
	const char *unit;        /* "jobs" */
	uint64_t total;          /* 0: unknown */
	uint64_t done, finished; /* done: by this batch; finished: by an earlier one */
	uint64_t start_ns, next_ns;
	struct {
		char word[24]; /* a verdict or judgement */
		uint64_t n;
	} count[BATCH_WORDS_MAX];
	size_t n_words;
	char notice[512]; /* the last one */
};

void batch_progress_init(struct batch_progress *p, bool is_quiet, const char *unit);
/* Counts a finished job with this verdict or judgement. */
void batch_progress_count(struct batch_progress *p, const char *word);
/* Prints what is due; returns the milliseconds until the next time, or -1. */
int batch_progress_tick(struct batch_progress *p);
/* Prints a notice, once if many consecutive jobs have the same. */
void batch_progress_notice(struct batch_progress *p, const char *text);
/* Prints the last line. */
void batch_progress_end(struct batch_progress *p, bool is_cancelled, uint64_t dropped);
uint64_t batch_progress_of(const struct batch_progress *p, const char *word);

#endif
