/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batch_progress.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/ui.h"
#include "cli/write.h"

#define TERMINAL_NS (250 * NS_PER_MS)
#define PLAIN_NS    (5 * NS_PER_SEC)
#define ERASE_LINE  "\r\033[K"

void batch_progress_init(struct batch_progress *p, bool is_quiet, const char *unit)
{
	*p = (struct batch_progress){ .is_quiet = is_quiet, .unit = unit, .is_terminal = isatty(STDERR_FILENO) };
	p->start_ns = clock_now_ns();
	p->next_ns = p->start_ns + (p->is_terminal ? TERMINAL_NS : PLAIN_NS);
}

void batch_progress_count(struct batch_progress *p, const char *word)
{
	size_t i = 0;

	p->done++;
	while (i < p->n_words && !str_eq(p->count[i].word, word))
		i++;
	if (i == p->n_words && i < BATCH_WORDS_MAX) {
		(void)str_copy(p->count[i].word, sizeof(p->count[i].word), word);
		p->n_words++;
	}
	if (i < BATCH_WORDS_MAX)
		p->count[i].n++;
}

uint64_t batch_progress_of(const struct batch_progress *p, const char *word)
{
	for (size_t i = 0; i < p->n_words; i++)
		if (str_eq(p->count[i].word, word))
			return p->count[i].n;
	return 0;
}

static void add_counts(const struct batch_progress *p, struct buf *line)
{
	for (size_t i = 0; i < p->n_words; i++)
		buf_addf(line, "%s%s %llu", i > 0 ? ", " : ": ", p->count[i].word, (unsigned long long)p->count[i].n);
}

/* "120/200 jobs, 38.2/s, 2.09 s left: ok 118, error 2" */
static void show(struct batch_progress *p)
{
	uint64_t ms = (clock_now_ns() - p->start_ns) / NS_PER_MS, so_far = p->finished + p->done;
	double rate = ms > 0 ? (double)p->done * 1000 / (double)ms : 0;
	AUTO_BUF line = BUF_INIT(4096);
	char text[32];

	buf_addf(&line, "%sbrig: %llu", p->is_terminal ? ERASE_LINE : "", (unsigned long long)so_far);
	if (p->total > 0)
		buf_addf(&line, "/%llu", (unsigned long long)p->total);
	buf_addf(&line, " %s, %.1f/s", p->unit, rate);
	if (p->total > so_far && p->done > 0)
		buf_addf(&line, ", %s left",
			 ui_millis(text, sizeof(text), (uint64_t)((double)(p->total - so_far) * 1000 / rate)));
	add_counts(p, &line);
	if (!p->is_terminal)
		buf_adds(&line, "\n");
	/* None of it is untrusted text.  A reader that is slow misses a line. */
	(void)write_part(STDERR_FILENO, buf_str(&line), line.len, -1, 0);
	p->is_shown = p->is_terminal;
}

int batch_progress_tick(struct batch_progress *p)
{
	uint64_t now = clock_now_ns();

	if (p->is_quiet)
		return -1;
	if (now >= p->next_ns) {
		show(p);
		p->next_ns = now + (p->is_terminal ? TERMINAL_NS : PLAIN_NS);
	}
	return (int)((p->next_ns - now) / NS_PER_MS) + 1;
}

static void clear_line(struct batch_progress *p)
{
	if (p->is_shown)
		(void)write_part(STDERR_FILENO, ERASE_LINE, strlen(ERASE_LINE), -1, 0);
	p->is_shown = false;
}

void batch_progress_notice(struct batch_progress *p, const char *text)
{
	char cut[sizeof(p->notice)];

	(void)str_copy(cut, sizeof(cut), text);
	if (p->is_quiet || str_eq(cut, p->notice))
		return;
	(void)str_copy(p->notice, sizeof(p->notice), cut);
	clear_line(p);
	ui_say("%s", text);
}

void batch_progress_end(struct batch_progress *p, bool is_cancelled, uint64_t dropped)
{
	uint64_t ms = (clock_now_ns() - p->start_ns) / NS_PER_MS;
	AUTO_BUF line = BUF_INIT(4096);
	char text[32];

	if (p->is_quiet)
		return;
	clear_line(p);
	buf_addf(&line, "%s%llu %s in %s", is_cancelled ? "cancelled after " : "", (unsigned long long)p->done, p->unit,
		 ui_millis(text, sizeof(text), ms));
	if (ms > 0)
		buf_addf(&line, " (%.1f/s)", (double)p->done * 1000 / (double)ms);
	add_counts(p, &line);
	if (p->finished)
		buf_addf(&line, "; %llu were finished before", (unsigned long long)p->finished);
	if (dropped)
		buf_addf(&line, "; %llu at work were ended and have no result", (unsigned long long)dropped);
	ui_say("%s", buf_str(&line));
}
