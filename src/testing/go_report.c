/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the output of `go test -json`: one flat JSON object per line.
 *
 *	{"Time":"...","Action":"run","Package":"x/y","Test":"TestA"}
 *	{"Action":"output","Package":"x/y","Test":"TestA","Output":"    a_test.go:4: bad\n"}
 *	{"Action":"fail","Package":"x/y","Test":"TestA","Elapsed":0.01}
 *	{"Action":"fail","Package":"x/y","Elapsed":0.02}
 *
 * go derives these from the output of the test programs, so a program that prints the right lines can fake tests.  It
 * cannot fake the exit status of go, which is not 0 if that of a test program was not.  Therefore the report must be
 * consistent: every test with an outcome was started and has only one outcome, every test that was started has one,
 * every package ends once, and a package that succeeded has printed PASS, which `testing` does after the last test, but
 * not on an early exit.  The report must also match the sources (go_source.c): a test that no source declares, or one
 * that is missing in a package that passed, is forged.  A consistent forgery goes undetected, as docs/TESTS.md says.
 *
 * The scanner below reads only such objects: strings and bare words, no nesting.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sys/crypto.h"
#include "testing/internal.h"

#define TESTS_MAX  (1u << 18) /* maximum number of tests and packages */
#define OUTPUT_MAX 4096       /* bytes of output kept for a test while it runs */
#define TEXT_MAX   65536      /* bytes of one string in an object */

/* ---- one object ------------------------------------------------------------------------------------ */

enum field { FIELD_ACTION, FIELD_PACKAGE, FIELD_TEST, FIELD_OUTPUT, FIELD_COUNT };
static const char *const field_name[FIELD_COUNT] = { "Action", "Package", "Test", "Output" };

struct scan {
	const char *at, *end;
	char *text; /* buffers for strings: TEXT_MAX bytes for each of STRINGS */
};
#define STRINGS (FIELD_COUNT + 2) /* one for field names, one for unused fields */

static bool skip(struct scan *s, char c)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
		s->at++;
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	to[0] = (char)(0xe0 | c >> 12);
	to[1] = (char)(0x80 | (c >> 6 & 0x3f));
	to[2] = (char)(0x80 | (c & 0x3f));
	return 3;
}

/* Decodes an escape after its backslash.  Surrogates become question marks: go writes such characters unescaped. */
static bool scan_escape(struct scan *s, char *to, size_t *n)
{
	static const char from[] = "\"\\/bfnrt", as[] = "\"\\/\b\f\n\r\t";
	const char *known;
	uint32_t c = 0;

	if (s->at == s->end)
		return false;
	known = *s->at ? strchr(from, *s->at) : NULL;
	if (known) {
		to[(*n)++] = as[known - from];
		s->at++;
		return true;
	}
	if (*s->at != 'u' || s->end - s->at < 5)
		return false;
	for (int i = 1; i <= 4; i++) {
		char d = s->at[i];
		uint32_t v = d >= '0' && d <= '9'   ? (uint32_t)(d - '0')
			     : d >= 'a' && d <= 'f' ? (uint32_t)(d - 'a') + 10
			     : d >= 'A' && d <= 'F' ? (uint32_t)(d - 'A') + 10
						    : 16;

		if (v == 16)
			return false;
		c = c << 4 | v;
	}
	s->at += 5;
	*n += put_utf8(to + *n, c == 0 || (c >= 0xd800 && c < 0xe000) ? '?' : c);
	return true;
}

/* Reads a string into TEXT_MAX bytes at to; a longer one is truncated. */
static bool scan_string(struct scan *s, char *to)
{
	size_t n = 0;

	if (!skip(s, '"'))
		return false;
	while (s->at < s->end && *s->at != '"') {
		char c = *s->at++, ignored[4] = "";
		size_t none = 0;
		bool room = n + 4 < TEXT_MAX;

		if (c == '\\') {
			if (!scan_escape(s, room ? to : ignored, room ? &n : &none))
				return false;
		} else if (room && c != '\0') {
			to[n++] = c;
		}
	}
	to[n] = '\0';
	return skip(s, '"');
}

static bool scan_value(struct scan *s, char *to)
{
	if (s->at < s->end && *s->at == '"')
		return scan_string(s, to);
	to[0] = '\0';
	while (s->at < s->end && !strchr(",} \t\r\"{[", *s->at))
		s->at++;
	return s->at < s->end;
}

/* Sets field to strings, "" for missing ones.  False: not such an object. */
static bool scan_object(struct scan *s, char *field[FIELD_COUNT])
{
	char *name = s->text + FIELD_COUNT * (size_t)TEXT_MAX, *other = name + TEXT_MAX;

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		field[i] = s->text + i * TEXT_MAX;
		field[i][0] = '\0';
	}
	if (!skip(s, '{'))
		return false;
	do {
		char *to = other;

		if (!scan_string(s, name) || !skip(s, ':'))
			return false;
		for (size_t i = 0; i < FIELD_COUNT; i++)
			if (str_eq(field_name[i], name))
				to = field[i];
		if (!scan_value(s, to))
			return false;
	} while (skip(s, ','));
	return skip(s, '}');
}

/* ---- state of each test and package ----------------------------------------------------------------- */

struct test {
	uint64_t id;      /* hash of package and name; 0: free slot */
	uint64_t package; /* id of its package; for a package: 0 */
	bool ended;
	bool said_pass, has_failed, has_passed; /* for a package */
	const char *lost;                       /* the outcome, if go missed it in the output; else NULL */
	struct buf output;                      /* while it runs */
};

struct go_reader {
	struct test *row; /* allocated; an open hash table */
	size_t n, cap;
	size_t running; /* number of tests and packages that have started and not ended */
	const struct go_tests *declared;
	struct test_report *report;
	uint8_t hash_key[SHORT_HASH_KEY_LEN];
	char *why;
};

static void complain(struct go_reader *g, const char *what, const char *name)
{
	if (!g->why[0])
		(void)snprintf(g->why, TEST_WHY_MAX, "%s%s%.200s", what, *name ? ": " : "", name);
}

static struct test *place_of(struct test *row, size_t cap, uint64_t id)
{
	size_t i = id & (cap - 1);

	while (row[i].id && row[i].id != id)
		i = (i + 1) & (cap - 1);
	return &row[i];
}

static bool grow(struct go_reader *g)
{
	size_t cap = g->cap ? 2 * g->cap : 256;
	struct test *row = cap <= 2 * TESTS_MAX ? calloc(cap, sizeof(*row)) : NULL;

	if (!row)
		return false;
	for (size_t i = 0; i < g->cap; i++)
		if (g->row[i].id)
			*place_of(row, cap, g->row[i].id) = g->row[i];
	free(g->row);
	g->row = row;
	g->cap = cap;
	return true;
}

static uint64_t id_of(const struct go_reader *g, const char *package, const char *name)
{
	char key[1024];
	int len = snprintf(key, sizeof(key), "%.500s%c%.500s", package, '\n', name);

	return short_hash(g->hash_key, key, (size_t)len) | 1;
}

/* The row of a test, or of a package if name is ""; NULL: no room.  Valid until the next call. */
static struct test *test_of(struct go_reader *g, const char *package, const char *name, bool *ret_new)
{
	struct test *t;
	uint64_t id = id_of(g, package, name);

	if (2 * g->n >= g->cap && !grow(g)) {
		complain(g, "there are more tests than can be followed", name);
		return NULL;
	}
	t = place_of(g->row, g->cap, id);
	*ret_new = t->id == 0;
	if (*ret_new) {
		*t = (struct test){ .id = id,
				    .package = *name ? id_of(g, package, "") : 0,
				    .output = BUF_INIT(OUTPUT_MAX) };
		g->n++;
		g->running++;
	}
	return t;
}

/* ---- events -------------------------------------------------------------------------------------- */

/* The first "file:line" in the output, as in "    a_test.go:4: bad"; NULL if there is none. */
static char *find_place(char *text, uint64_t *ret_line)
{
	for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		char *name = line + strspn(line, " \t"), *colon = strstr(name, ".go:");
		size_t digits = colon ? strspn(colon + 4, "0123456789") : 0;
		char number[24];

		if (!colon || digits == 0 || digits >= sizeof(number) || colon[4 + digits] != ':' ||
		    strcspn(name, " \n") < (size_t)(colon - name))
			continue;
		(void)snprintf(number, sizeof(number), "%.*s", (int)digits, colon + 4);
		(void)str_to_u64(number, ret_line);
		return strndup(name, (size_t)(colon - name) + 3);
	}
	return NULL;
}

static void add_failure(struct go_reader *g, const char *package, const char *name, struct test *t)
{
	AUTO_FREE char *place = NULL, *text = buf_take(&t->output);
	char full[1024];
	uint64_t line = 0;

	place = text ? find_place(text, &line) : NULL;
	(void)snprintf(full, sizeof(full), "%.400s%s%.500s", package, *name ? "." : "", name);
	if (!tests_add_failure(g->report, full, place, line, text ? text : ""))
		complain(g, "no memory is left for", full);
}

/*
 * Before 1.20, go misses the outcome of a test whose output does not end with a newline: "text--- PASS: TestA (0.00s)".
 */
static void note_lost(struct test *t, const char *name, const char *output)
{
	static const struct {
		const char *mark, *action;
	} marks[] = { { "--- PASS: ", "pass" }, { "--- FAIL: ", "fail" }, { "--- SKIP: ", "skip" } };
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		const char *at = strstr(output, marks[i].mark), *behind = at ? at + strlen(marks[i].mark) : "";

		if (at && strncmp(behind, name, len) == 0 && strncmp(behind + len, " (", 2) == 0)
			t->lost = marks[i].action;
	}
}

/* Ends the tests with a missed outcome, because their package has ended. */
static void end_lost_tests(struct go_reader *g, const char *name, struct test *package)
{
	for (size_t i = 0; i < g->cap; i++) {
		struct test *t = &g->row[i];

		if (!t->id || t->ended || !t->lost || t->package != package->id)
			continue;
		t->ended = true;
		g->running--;
		if (str_eq(t->lost, "fail")) {
			add_failure(g, name, "a test whose outcome got lost in its output", t);
			package->has_failed = true;
		} else if (str_eq(t->lost, "pass")) {
			g->report->passed++;
		} else {
			g->report->skipped++;
		}
	}
}

static void end_package(struct go_reader *g, const char *package, const char *action, struct test *t)
{
	end_lost_tests(g, package, t);
	if (str_eq(action, "fail") && !t->has_failed)
		add_failure(g, package, "", t); /* it did not compile, panicked, or exited */
	t->has_passed = str_eq(action, "pass");
	if (t->has_passed && !t->said_pass)
		complain(g, "the test program of a package ended before its tests were done", package);
}

static void end_test(struct go_reader *g, const char *package, const char *name, const char *action, struct test *t)
{
	bool is_new;

	if (str_eq(action, "pass")) {
		g->report->passed++;
	} else if (str_eq(action, "skip")) {
		g->report->skipped++;
	} else {
		add_failure(g, package, name, t);
		t = test_of(g, package, "", &is_new);
		if (t)
			t->has_failed = true;
	}
}

static bool is_end(const char *action)
{
	return str_eq(action, "pass") || str_eq(action, "fail") || str_eq(action, "skip");
}

static void take_output(struct test *t, const char *name, const char *output)
{
	/* Progress lines of the test are not part of its failure message. */
	if (*name)
		note_lost(t, name, output);
	if (strncmp(output, "=== ", 4) == 0 || strncmp(output + strspn(output, " "), "--- ", 4) == 0)
		return;
	if (!*name && str_eq(output, "PASS\n"))
		t->said_pass = true;
	buf_adds(&t->output, output);
}

/* ---- the report against the sources ------------------------------------------------------------------- */

/* The folder of a package of the project; NULL: it is not of the project, or its test files are unknown. */
static const char *folder_of(const struct go_reader *g, const char *package)
{
	size_t len = strlen(g->declared->module);
	const char *folder = package + len;

	if (g->declared->n == 0 || strncmp(package, g->declared->module, len) != 0 || (*folder && *folder != '/'))
		return NULL;
	folder += *folder == '/';
	return go_source_find(g->declared, folder, "") ? folder : NULL;
}

/* A subtest counts as declared if its test is. */
static void check_declared(struct go_reader *g, const char *package, const char *name)
{
	const char *folder = folder_of(g, package);
	char top[512];

	(void)snprintf(top, sizeof(top), "%.*s", (int)min_u64(strcspn(name, "/"), sizeof(top) - 1), name);
	if (folder && !go_source_find(g->declared, folder, top))
		complain(g, "a test is reported that no source of the project declares", name);
}

static bool has_row(const struct go_reader *g, const char *package, const char *name)
{
	return g->cap > 0 && place_of(g->row, g->cap, id_of(g, package, name))->id != 0;
}

/* Checks that a package that passed has run every test that is certainly compiled and run. */
static void check_complete(struct go_reader *g)
{
	const struct go_tests *d = g->declared;

	for (size_t i = 0; i < d->n && g->cap > 0; i++) {
		const struct go_test *t = &d->row[i];
		char package[1024];

		if (!t->sure)
			continue;
		(void)snprintf(package, sizeof(package), "%.500s%s%.500s", d->module, *t->folder ? "/" : "", t->folder);
		if (place_of(g->row, g->cap, id_of(g, package, ""))->has_passed && !has_row(g, package, t->name))
			complain(g, "a test of a package that passed is not in it", t->name);
	}
}

static void take_event(struct go_reader *g, char *const field[FIELD_COUNT])
{
	const char *action = field[FIELD_ACTION], *package = field[FIELD_PACKAGE], *name = field[FIELD_TEST];
	struct test *t;
	bool is_new;

	if (!*package)
		return; /* a build event of newer versions; go reports the package later */
	t = test_of(g, package, name, &is_new);
	if (!t)
		return;
	if (t->ended && !str_eq(action, "output")) {
		complain(g, "something has two outcomes", *name ? name : package);
		return;
	}
	if (is_new && *name)
		check_declared(g, package, name);
	if (str_eq(action, "output")) {
		take_output(t, name, field[FIELD_OUTPUT]);
		return;
	}
	if (!is_end(action))
		return;
	if (is_new && *name)
		complain(g, "a test has an outcome, but was not started", name);
	t->ended = true;
	g->running--;
	if (*name)
		end_test(g, package, name, action, t);
	else
		end_package(g, package, action, t);
}

/* "FAIL\tx/y [build failed]": a line that go prints before it writes objects. */
static void take_plain(struct go_reader *g, const char *line, size_t len)
{
	char text[512];
	char *bracket;

	(void)snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : sizeof(text) - 1), line);
	bracket = strstr(text, " [");
	if (strncmp(text, "FAIL\t", 5) != 0 || !bracket)
		return;
	*bracket = '\0';
	bracket[strcspn(bracket + 2, "]") + 2] = '\0';
	if (!tests_add_failure(g->report, text + 5, NULL, 0, bracket + 2))
		complain(g, "no memory is left for", text + 5);
}

static void read_all(struct go_reader *g, char *strings, const char *text, size_t len)
{
	const char *end;

	for (size_t at = 0; at < len; at = (size_t)(end - text) + 1) {
		char *field[FIELD_COUNT];
		struct scan s = { .at = text + at, .text = strings };

		end = memchr(text + at, '\n', len - at);
		if (!end) {
			complain(g, "its last line is cut", "");
			return;
		}
		s.end = end;
		if (scan_object(&s, field))
			take_event(g, field);
		else
			take_plain(g, text + at, (size_t)(end - text) - at);
	}
	if (len == 0)
		complain(g, "go said nothing", "see its standard error");
	else if (g->running > 0)
		complain(g, "tests were started that have no outcome", "");
	check_complete(g);
}

void go_report_read(const struct go_tests *declared, const char *text, size_t len, struct test_report *ret, char *why)
{
	struct go_reader g = { .declared = declared, .report = ret, .why = why };
	AUTO_FREE char *strings = malloc(STRINGS * (size_t)TEXT_MAX);

	if (!strings || crypto_random(g.hash_key, sizeof(g.hash_key)) < 0)
		complain(&g, "no memory is left for it", "");
	else
		read_all(&g, strings, text, len);
	for (size_t i = 0; i < g.cap; i++)
		buf_release(&g.row[i].output);
	free(g.row);
}
