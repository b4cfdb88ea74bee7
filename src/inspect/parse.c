/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/parse.h"

#include "base/clock.h"

struct source {
	const char *text;
	size_t len;
};

static const char *read_source(void *payload, uint32_t at, TSPoint point UNUSED, uint32_t *ret_len)
{
	const struct source *s = payload;

	*ret_len = at < s->len ? (uint32_t)(s->len - at) : 0;
	return *ret_len ? s->text + at : "";
}

/* Called every few hundred operations of the parser; true aborts it. */
static bool is_late(TSParseState *state)
{
	return clock_now_ns() > *(const uint64_t *)state->payload;
}

TSTree *inspect_parse(struct judge *j, const TSLanguage *language, const char *text, size_t len)
{
	struct source source = { text, len };
	TSInput input = { .payload = &source, .read = read_source, .encoding = TSInputEncodingUTF8 };
	TSParseOptions options = { .payload = &j->deadline_ns, .progress_callback = is_late };
	struct span whole = { 0, (uint32_t)len };
	TSParser *parser = ts_parser_new();
	TSTree *tree = NULL;

	/* A grammar with another ABI is refused here: fail closed. */
	if (parser && ts_parser_set_language(parser, language))
		tree = ts_parser_parse_with_options(parser, NULL, input, options);
	if (!tree)
		(void)judge_check(j, judge_unfinished(j), whole, "parsing it takes too long");
	ts_parser_delete(parser);
	return tree;
}
