/* SPDX-License-Identifier: Apache-2.0 */
/* How far a batch is: on a terminal one line that updates, elsewhere a line now and then, and one at the end. */
#ifndef CLI_BATCH_PROGRESS_H
#define CLI_BATCH_PROGRESS_H

#include "base/util.h"

#define BATCH_WORDS_MAX 32

struct batch_progress {
	bool is_quiet, is_terminal, is_shown;
	const char *unit;        /* "jobs" */
	uint64_t total;          /* 0: not known */
	uint64_t done, finished; /* now, and before by another batch */
	uint64_t start_ns, next_ns;
	struct {
		char word[24]; /* a verdict or judgement */
		uint64_t n;
	} count[BATCH_WORDS_MAX];
	size_t n_words;
	char notice[512]; /* the last one */
};

void batch_progress_init(struct batch_progress *p, bool is_quiet, const char *unit);
/* One more is done, with this verdict or judgement. */
void batch_progress_count(struct batch_progress *p, const char *word);
/* Shows what is due; the milliseconds until the next time, or -1. */
int batch_progress_tick(struct batch_progress *p);
/* Says a sentence for people, once if many jobs in a row have the same. */
void batch_progress_notice(struct batch_progress *p, const char *text);
/* The last line. */
void batch_progress_end(struct batch_progress *p, bool is_cancelled, uint64_t dropped);
uint64_t batch_progress_of(const struct batch_progress *p, const char *word);

#endif
