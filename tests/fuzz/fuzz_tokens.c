/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tokens - token files that somebody has been at.
 *
 * What must hold: nothing crashes; what is refused leaves nothing and says at which line; what is read is within its bounds, has no
 * name twice, and reads the same when it is written again.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/token_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static void check_list(const struct token_list *list)
{
	must(list->n <= TOKEN_LIST_MAX, "lists have an end");
	for (size_t i = 0; i < list->n; i++)
		must(token_is_word(list->item[i]), "lists are of words");
}

static void check_sound(const struct token_entries *all, size_t i)
{
	const struct token *t = &all->item[i].token;

	must(token_is_name(t->name) && t->max_trust < TOKEN_TRUST_COUNT && t->created > 0,
	     "a token that was read is whole");
	must(t->quota.concurrent <= QUOTA_CONCURRENT_MAX && t->quota.runs_per_minute <= QUOTA_RUNS_MAX &&
		     t->quota.cpu_seconds_per_hour <= QUOTA_CPU_SECONDS_MAX && t->quota.memory <= QUOTA_MEMORY_MAX,
	     "quotas are within their bounds");
	check_list(&t->languages);
	check_list(&t->backends);
	check_list(&t->environments);
	for (size_t k = 0; k < i; k++)
		must(!str_eq(all->item[k].token.name, t->name), "no name comes twice");
}

static void check_again(const struct token_entries *all)
{
	AUTO_BUF text = BUF_INIT(2 * TOKENS_FILE_MAX), second = BUF_INIT(2 * TOKENS_FILE_MAX);
	struct brig_error err = BRIG_ERROR_INIT;
	struct token_entries twice = { 0 };

	for (size_t i = 0; i < all->n; i++)
		must(token_line_write(&all->item[i], &text, &err) == 0, "what was read can be written");
	must(token_lines_read(buf_str(&text), text.len, "again", &twice, &err) == 0, "and read");
	for (size_t i = 0; i < twice.n; i++)
		(void)token_line_write(&twice.item[i], &second, &err);
	must(text.len == second.len && memcmp(buf_str(&text), buf_str(&second), text.len) == 0, "and is the same");
	token_entries_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct token_entries all = { 0 };

	if (token_lines_read((const char *)data, size, "file", &all, &err) < 0) {
		must(strncmp(err.msg, "'file' line ", 12) == 0 && !all.item,
		     "what is refused leaves nothing and says where");
		return 0;
	}
	for (size_t i = 0; i < all.n; i++)
		check_sound(&all, i);
	check_again(&all);
	token_entries_release(&all);
	return 0;
}
