/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A judgement follows from the verdict, which the program cannot write, and from a comparison made here, outside of its
 * cell.  Output is only ever compared: nothing that a program prints is interpreted.
 */
#include "cli/batch_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const char *const names[] = {
	[JUDGED_NOT] = "",
#define JUDGEMENT(name, meaning) [JUDGED_##name] = #name,
#include "cli/judgements.def"
};

static const struct {
	const char *verdict;
	enum judgement judgement;
} leads[] = {
#define LEADS(verdict, judgement) { verdict, judgement },
#include "cli/judgements.def"
};

static const char *const compare_names[] = {
	[COMPARE_TRIM] = "trim",
	[COMPARE_EXACT] = "exact",
	[COMPARE_TOKENS] = "tokens",
	[COMPARE_FLOAT] = "float",
};
_Static_assert(ARRAY_LEN(compare_names) == COMPARE_COUNT, "a way to compare has no name");

const char *judgement_name(enum judgement j)
{
	return names[j];
}

const char *judge_compare_name(enum judge_compare how)
{
	return compare_names[how];
}

/* ---- comparing --------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

/* Read position. */
struct cursor {
	const char *at, *end;
	size_t line;
};

static struct cursor cursor_at(const struct bytes *b)
{
	return (struct cursor){ .at = b->data, .end = b->data + b->len, .line = 1 };
}

/* The next line without trailing blanks; false: none. */
static bool next_line(struct cursor *c, struct bytes *ret)
{
	const char *end;

	if (c->at == c->end)
		return false;
	end = memchr(c->at, '\n', (size_t)(c->end - c->at));
	*ret = (struct bytes){ c->at, (size_t)((end ? end : c->end) - c->at) };
	while (ret->len > 0 && is_blank(ret->data[ret->len - 1]))
		ret->len--;
	c->at = end ? end + 1 : c->end;
	c->line++;
	return true;
}

/* The next word; false: none. */
static bool next_token(struct cursor *c, struct bytes *ret)
{
	for (; c->at < c->end && is_blank(*c->at); c->at++)
		c->line += *c->at == '\n';
	*ret = (struct bytes){ c->at, 0 };
	for (; c->at < c->end && !is_blank(*c->at); c->at++)
		ret->len++;
	return ret->len > 0;
}

static bool same_bytes(const struct bytes *a, const struct bytes *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Parses a word that is entirely a decimal number. */
static bool to_number(const struct bytes *word, double *ret)
{
	char text[64], *end;

	if (word->len == 0 || word->len >= sizeof(text) || memchr(word->data, '\0', word->len))
		return false;
	memcpy(text, word->data, word->len);
	text[word->len] = '\0';
	if (text[strspn(text, "+-.0123456789eE")] != '\0')
		return false; /* rejects hexadecimal and "nan" */
	*ret = strtod(text, &end);
	return *end == '\0' && isfinite(*ret);
}

static bool near_enough(const struct bytes *want, const struct bytes *got, double tolerance)
{
	double a, b;

	if (same_bytes(want, got))
		return true;
	return to_number(want, &a) && to_number(got, &b) && fabs(a - b) <= tolerance * (fabs(a) > 1 ? fabs(a) : 1);
}

static size_t differs_in_lines(const struct bytes *expected, const struct bytes *actual)
{
	struct cursor want = cursor_at(expected), got = cursor_at(actual);
	struct bytes a = { "", 0 }, b = a;

	for (;;) {
		size_t line = got.line;
		bool more_wanted = next_line(&want, &a), more_got = next_line(&got, &b);

		if (!more_wanted && !more_got)
			return 0;
		a.len = more_wanted ? a.len : 0; /* a missing line is like an empty one */
		b.len = more_got ? b.len : 0;
		if (!same_bytes(&a, &b))
			return line;
	}
}

static size_t differs_in_tokens(const struct bytes *expected, const struct bytes *actual, bool is_float,
				double tolerance)
{
	struct cursor want = cursor_at(expected), got = cursor_at(actual);
	struct bytes a, b;

	for (;;) {
		bool more_wanted = next_token(&want, &a), more_got = next_token(&got, &b);

		if (!more_wanted && !more_got)
			return 0;
		if (more_wanted != more_got || !(is_float ? near_enough(&a, &b, tolerance) : same_bytes(&a, &b)))
			return got.line;
	}
}

static size_t differs_in_bytes(const struct bytes *expected, const struct bytes *actual)
{
	size_t line = 1;

	if (same_bytes(expected, actual))
		return 0;
	for (size_t i = 0; i < expected->len && i < actual->len && expected->data[i] == actual->data[i]; i++)
		line += actual->data[i] == '\n';
	return line;
}

size_t judge_differs(enum judge_compare how, double tolerance, const struct bytes *expected, const struct bytes *actual)
{
	switch (how) {
	case COMPARE_TRIM:
		return differs_in_lines(expected, actual);
	case COMPARE_TOKENS:
	case COMPARE_FLOAT:
		return differs_in_tokens(expected, actual, how == COMPARE_FLOAT, tolerance);
	case COMPARE_EXACT:
	case COMPARE_COUNT:
		break;
	}
	return differs_in_bytes(expected, actual);
}

/* ---- judging ------------------------------------------------------------------------------------- */

static void say_reason(const struct brig_result *r, char message[JUDGE_MESSAGE_MAX])
{
	(void)str_copy(message, JUDGE_MESSAGE_MAX, brig_result_reason(r));
	message[str_utf8_prefix(message, strlen(message))] = '\0';
}

int judge_end(const struct judge_expected *e, const struct brig_result *r, enum judgement *ret,
	      char message[JUDGE_MESSAGE_MAX])
{
	const char *verdict = brig_result_verdict(r);
	bool has_run = str_eq(brig_result_step(r), "run");
	int code = brig_result_exit_code(r), wanted = e->exit_code < 0 ? 0 : e->exit_code;

	message[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(leads); i++)
		if (str_eq(leads[i].verdict, verdict)) {
			*ret = leads[i].judgement == JUDGED_runtime_error && !has_run ? JUDGED_compile_error
										      : leads[i].judgement;
			say_reason(r, message);
			return 0;
		}
	if (!has_run) {
		*ret = JUDGED_compile_error;
		(void)snprintf(message, JUDGE_MESSAGE_MAX, "the step '%s' failed", brig_result_step(r));
		return 0;
	}
	if (code == wanted)
		return 1;
	*ret = e->exit_code < 0 ? JUDGED_runtime_error : JUDGED_wrong_answer;
	(void)snprintf(message, JUDGE_MESSAGE_MAX, "exit code %d", code);
	return 0;
}

static enum judgement judge_stream(const struct judge_expected *e, const struct brig_result *r, enum brig_stream stream,
				   char message[JUDGE_MESSAGE_MAX])
{
	const struct bytes *want = stream == BRIG_STDOUT ? &e->out : &e->err;
	const char *name = stream == BRIG_STDOUT ? "stdout" : "stderr";
	struct bytes got;
	size_t line;

	if (!want->data)
		return JUDGED_accepted;
	got.data = brig_result_output(r, stream, &got.len);
	line = judge_differs(e->compare, e->tolerance, want, &got);
	if (line == 0)
		return JUDGED_accepted;
	if (judge_differs(COMPARE_TOKENS, 0, want, &got) == 0) {
		(void)snprintf(message, JUDGE_MESSAGE_MAX, "line %zu of %s is spaced in another way", line, name);
		return JUDGED_presentation_error;
	}
	(void)snprintf(message, JUDGE_MESSAGE_MAX, "line %zu of %s is another one", line, name);
	return JUDGED_wrong_answer;
}

enum judgement judge_output(const struct judge_expected *e, const struct brig_result *r,
			    char message[JUDGE_MESSAGE_MAX])
{
	enum judgement j = judge_stream(e, r, BRIG_STDOUT, message);

	return j == JUDGED_accepted ? judge_stream(e, r, BRIG_STDERR, message) : j;
}

enum judgement judge_checked(const struct brig_result *checker, char message[JUDGE_MESSAGE_MAX])
{
	/* The exit codes that checkers of programming contests use. */
	static const enum judgement by_code[] = { JUDGED_accepted, JUDGED_wrong_answer, JUDGED_presentation_error };
	const char *verdict = brig_result_verdict(checker);
	int code = brig_result_exit_code(checker);
	bool has_ended =
		(str_eq(verdict, "ok") || str_eq(verdict, "error")) && str_eq(brig_result_step(checker), "run");
	size_t len;
	const char *said = brig_result_output(checker, BRIG_STDOUT, &len);

	if (!has_ended || code < 0 || (size_t)code >= ARRAY_LEN(by_code)) {
		(void)snprintf(message, JUDGE_MESSAGE_MAX, "the checker ended with verdict %s, exit code %d: %.700s",
			       verdict, code, brig_result_reason(checker));
		message[str_utf8_prefix(message, strlen(message))] = '\0';
		return JUDGED_judge_failed;
	}
	(void)snprintf(message, JUDGE_MESSAGE_MAX, "%.*s", (int)min_u64(len, JUDGE_MESSAGE_MAX - 1), said);
	message[str_utf8_prefix(message, strlen(message))] = '\0';
	len = strlen(message);
	while (len > 0 && is_blank(message[len - 1]))
		message[--len] = '\0';
	return by_code[code];
}
