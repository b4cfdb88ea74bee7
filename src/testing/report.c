/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed reports (data/runners/python.py defines the format), and the outcome that follows from a report.
 *
 * The tested code could write to the file while it ran, so a line is trusted only after its seal was checked.  Reading
 * stops at a line that the runner did not write, or that is out of order; lines before it are kept, and the report is
 * incomplete. Everything is bounded: the file by TEST_REPORT_MAX, the list of failures by TEST_FAILURES_MAX, each of
 * their texts by the lengths below.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sys/crypto.h"
#include "testing/internal.h"

#define WORDS_MAX        8
#define FAILURE_NAME_MAX 512
#define MESSAGE_MAX      4096

static char *copy_text(const char *text, size_t max)
{
	size_t len = text ? strnlen(text, max) : 0;

	if (text && text[len] != '\0')
		/* truncates at a character boundary; other invalid bytes are left to the JSON writer */
		len = str_utf8_prefix(text, len);
	return text ? strndup(text, len) : NULL;
}

bool tests_add_failure(struct test_report *r, const char *name, const char *file, uint64_t line, const char *message)
{
	struct test_failure f = { .name = copy_text(name, FAILURE_NAME_MAX),
				  .message = copy_text(message, MESSAGE_MAX),
				  .file = file && *file ? copy_text(file, FAILURE_NAME_MAX) : NULL,
				  .line = line <= UINT32_MAX ? (uint32_t)line : 0 };

	r->failed++;
	return test_report_add(r, &f);
}

/* ---- one line ------------------------------------------------------------------------------------- */

struct line {
	char *word[WORDS_MAX]; /* unescaped; the first is the number, the second the kind */
	size_t n;
};

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes in place, since the result is never longer.  NUL bytes are dropped, because these are C strings. */
static void unescape(char *word)
{
	char *to = word;

	if (str_eq(word, "-")) {
		*word = '\0';
		return;
	}
	for (const char *c = word; *c; c++) {
		int high = *c == '%' ? hex_digit(c[1]) : -1, low = high >= 0 ? hex_digit(c[2]) : -1;
		char byte = low >= 0 ? (char)(high << 4 | low) : *c;

		c += low >= 0 ? 2 : 0;
		if (byte != '\0')
			*to++ = byte;
	}
	*to = '\0';
}

/* text: one line without its newline and seal, NUL-terminated. */
static bool split(char *text, struct line *ret)
{
	char *rest = NULL;

	ret->n = 0;
	for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
		if (ret->n == WORDS_MAX)
			return false;
		unescape(w);
		ret->word[ret->n++] = w;
	}
	return ret->n >= 2;
}

/* ---- the reader ------------------------------------------------------------------------------------ */

struct reader {
	const struct test_run *run;
	struct test_report *report;
	struct hmac256 seal;
	uint64_t number; /* number of the next line */
	bool begun, ended;
	char *why;
};

static bool give_up(struct reader *r, const char *fmt, ...) PRINTF(2, 3);
static bool give_up(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r->why, TEST_WHY_MAX, fmt, ap);
	va_end(ap);
	return false;
}

static bool take_begin(struct reader *r, const struct line *l)
{
	const struct framework *f = l->n >= 3 ? framework_by_name(l->word[2]) : NULL;

	if (!f || !str_eq(f->language, r->run->language))
		return give_up(r, "it is of a framework that was not started");
	(void)str_copy(r->report->framework, sizeof(r->report->framework), f->name);
	r->begun = true;
	return true;
}

static bool take_passed(struct reader *r, const struct line *l UNUSED)
{
	r->report->passed++;
	return true;
}

static bool take_skipped(struct reader *r, const struct line *l UNUSED)
{
	r->report->skipped++;
	return true;
}

static bool take_failed(struct reader *r, const struct line *l)
{
	uint64_t line = 0;

	if (l->n < 6 || !str_to_u64(l->word[4], &line))
		return give_up(r, "line %llu makes no sense", (unsigned long long)r->number + 1);
	return tests_add_failure(r->report, l->word[2], l->word[3], line, l->word[5]) ||
	       give_up(r, "no memory is left for it");
}

static bool take_stopped(struct reader *r, const struct line *l)
{
	return give_up(r, "%.*s", TEST_WHY_MAX - 1, l->n > 2 && *l->word[2] ? l->word[2] : "the runner stopped");
}

static bool take_end(struct reader *r, const struct line *l)
{
	const struct test_report *t = r->report;
	uint64_t n[3];

	for (size_t i = 0; i < ARRAY_LEN(n); i++)
		if (l->n != 5 || !str_to_u64(l->word[2 + i], &n[i]))
			return give_up(r, "its end makes no sense");
	if (n[0] != t->passed || n[1] != t->failed || n[2] != t->skipped)
		return give_up(r, "its end counts other tests than it has");
	r->ended = true;
	return true;
}

static bool take_line(struct reader *r, const struct line *l)
{
	static const struct {
		const char *kind;
		bool (*take)(struct reader *r, const struct line *l);
	} kinds[] = { { "begin", take_begin },   { "passed", take_passed },   { "skipped", take_skipped },
		      { "failed", take_failed }, { "stopped", take_stopped }, { "end", take_end } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].kind, l->word[1]))
			return kinds[i].take(r, l);
	return give_up(r, "line %llu makes no sense", (unsigned long long)r->number + 1);
}

/* text: len bytes without the newline.  Its contents are used only if it is the runner's next line. */
static bool read_line(struct reader *r, const char *text, size_t len)
{
	const size_t tail = 1 + SHA256_HEX;
	uint8_t given[SHA256_LEN], made[SHA256_LEN];
	uint64_t number;
	struct line l;
	AUTO_FREE char *copy = NULL;

	if (len > tail)
		hmac256(&r->seal, text, len - tail, made);
	if (len <= tail || text[len - tail] != ' ' || !hex_get(text + len - SHA256_HEX, given, sizeof(given)) ||
	    !crypto_same(given, made, sizeof(made)))
		return give_up(r, "line %llu is not the runner's: another process has written to it",
			       (unsigned long long)r->number + 1);
	if (r->ended)
		return give_up(r, "something follows its end");
	copy = strndup(text, len - tail);
	if (!copy)
		return give_up(r, "no memory is left for it");
	if (!split(copy, &l) || !str_to_u64(l.word[0], &number) || number != r->number ||
	    r->begun == str_eq(l.word[1], "begin"))
		return give_up(r, "line %llu is not where it belongs", (unsigned long long)r->number + 1);
	if (!take_line(r, &l))
		return false;
	r->number++;
	return true;
}

static void read_sealed(struct reader *r, const char *text, size_t len)
{
	const char *end;

	for (size_t at = 0; at < len; at = (size_t)(end - text) + 1) {
		end = memchr(text + at, '\n', len - at);
		if (!end) {
			(void)give_up(r, "its last line is cut");
			return;
		}
		if (!read_line(r, text + at, (size_t)(end - text) - at))
			return;
	}
	if (!r->ended)
		(void)give_up(r, "it has no end: the process was ended before its tests were done, after %llu of them",
			      (unsigned long long)r->report->passed + r->report->failed + r->report->skipped);
}

void testing_read(const struct test_run *t, const char *report, size_t len, struct test_report *ret, char *why)
{
	struct reader r = { .run = t, .report = ret, .why = why };
	uint8_t key[SHA256_LEN];

	*ret = (struct test_report){ .known = true, .sealed = !t->on_stdout };
	(void)str_copy(ret->framework, sizeof(ret->framework), t->framework);
	why[0] = '\0';
	if (len > TEST_REPORT_MAX) {
		(void)give_up(&r, "it is larger than %u MB", TEST_REPORT_MAX >> 20);
	} else if (t->on_stdout) {
		go_report_read(&t->declared, report, len, ret, why);
		r.ended = why[0] == '\0';
	} else if (len == 0) {
		(void)give_up(&r, "there is none: the runner did not begin, or it was removed");
	} else if (hex_get(t->key, key, sizeof(key))) {
		hmac256_key(&r.seal, key);
		read_sealed(&r, report, len);
	}
	ret->complete = r.ended && why[0] == '\0';
}

/* ---- the outcome -------------------------------------------------------------------------------- */

/* Our runners exit with 0 if no test failed and with 1 if one did; go exits with 0 or any other code. */
static bool agrees(const struct test_run *t, const struct test_report *r, int exit_code)
{
	return r->failed == 0 ? exit_code == 0 : t->on_stdout ? exit_code > 0 : exit_code == 1;
}

static enum test_outcome incomplete(struct test_report *r, char *why, const char *fmt, ...) PRINTF(3, 4);
static enum test_outcome incomplete(struct test_report *r, char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, TEST_WHY_MAX, fmt, ap);
	va_end(ap);
	r->complete = false;
	return TESTS_INCOMPLETE;
}

enum test_outcome testing_judge(const struct test_run *t, struct test_report *r, int exit_code, char *why)
{
	uint64_t total = r->passed + r->failed + r->skipped;
	char reason[TEST_WHY_MAX];

	(void)str_copy(reason, sizeof(reason), why);
	if (!r->complete)
		return incomplete(r, why, "the tests gave no complete report: %.250s", reason);
	if (!agrees(t, r, exit_code))
		return incomplete(r, why, "the report counts %llu failed tests, but %s ended with exit code %d",
				  (unsigned long long)r->failed, r->framework, exit_code);
	if (total == 0) {
		(void)snprintf(why, TEST_WHY_MAX, "no tests were run: %s found none", r->framework);
		return TESTS_NONE;
	}
	if (r->failed > 0) {
		(void)snprintf(why, TEST_WHY_MAX, "%llu of %llu tests failed", (unsigned long long)r->failed,
			       (unsigned long long)total);
		return TESTS_FAILED;
	}
	return TESTS_OK;
}
