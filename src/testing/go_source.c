/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the tests that the sources of a Go project declare, to check Go's report, which the test programs influence: a
 * report that names tests that do not exist, or omits some that do, is rejected.
 *
 * Only certain facts count.  A test function is declared at the top level of a *_test.go file in the folder of its
 * package, so a scanner that knows comments, strings and brackets finds all of them.  A test is certainly compiled only
 * without build constraints, file names for other systems and cgo; otherwise it may be reported but need not be.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "testing/internal.h"

#define SOURCE_MAX (4u << 20)  /* bytes of one file */
#define TOTAL_MAX  (64u << 20) /* bytes of all files; above this, nothing is compared */
#define TESTS_MAX  200000

/* ---- the scanner ------------------------------------------------------------------------------------- */

struct source {
	const char *at, *end;
	int depth; /* number of open brackets */
	bool constrained;
};

static bool starts(const struct source *s, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

/* Skips to the end of a text that ends with mark; escapes: a backslash escapes the next character. */
static void skip_until(struct source *s, const char *mark, bool escapes)
{
	for (; s->at < s->end && !starts(s, mark); s->at++)
		if (escapes && *s->at == '\\' && s->at + 1 < s->end)
			s->at++;
	s->at += s->at < s->end ? strlen(mark) : 0;
}

/* Skips a comment, string or character; false: there is none here. */
static bool skip_text(struct source *s)
{
	char c = *s->at;

	if (starts(s, "//")) {
		if (starts(s, "//go:build") || starts(s, "// +build") || starts(s, "//+build"))
			s->constrained = true;
		skip_until(s, "\n", false);
	} else if (starts(s, "/*")) {
		s->at += 2;
		skip_until(s, "*/", false);
	} else if (c == '"' || c == '`' || c == '\'') {
		if (starts(s, "\"C\"")) /* cgo may be off */
			s->constrained = true;
		s->at++;
		skip_until(s, (const char[]){ c, '\0' }, c != '`');
	} else {
		return false;
	}
	return true;
}

static bool is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static size_t word_length(const struct source *s)
{
	size_t n = 0;

	while (s->at + n < s->end && is_letter(s->at[n]))
		n++;
	return n;
}

/* Finds the next top-level function that is not a method.  False: there is none. */
static bool next_function(struct source *s, const char **ret, size_t *ret_len)
{
	bool after_func = false;

	while (s->at < s->end) {
		size_t n = word_length(s);

		if (n > 0) {
			const char *word = s->at;

			s->at += n;
			if (after_func && s->depth == 0) {
				*ret = word;
				*ret_len = n;
				return true;
			}
			after_func = s->depth == 0 && n == 4 && memcmp(word, "func", 4) == 0;
			continue;
		}
		if (skip_text(s))
			continue;
		if (strchr("({[", *s->at) && *s->at)
			s->depth++;
		else if (strchr(")}]", *s->at) && *s->at && s->depth > 0)
			s->depth--;
		if (!isspace((unsigned char)*s->at))
			after_func = false;
		s->at++;
	}
	return false;
}

/* True if `go test` runs a function of this name: its kind, not followed by a lower case letter. */
static bool is_run(const char *name, size_t len, const char *kind)
{
	size_t n = strlen(kind);

	return len >= n && memcmp(name, kind, n) == 0 && (len == n || !islower((unsigned char)name[n]));
}

/* True if it certainly runs: a non-ASCII letter may be lower case, and TestMain is not a test. */
static bool is_surely_run(const char *name, size_t len)
{
	return is_run(name, len, "Test") && (len == 4 || (unsigned char)name[4] < 0x80) &&
	       !(len == 8 && memcmp(name, "TestMain", 8) == 0);
}

/* ---- the list ---------------------------------------------------------------------------------------- */

/* Not strndup(): the bytes may be the last of the file, without a NUL after them. */
static char *copy_of(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

static bool add_test(struct go_tests *g, const char *folder, size_t folder_len, const char *name, size_t len, bool sure)
{
	struct go_test *grown;

	if (g->n == TESTS_MAX)
		return false;
	if (g->n == g->cap) {
		size_t cap = g->cap ? 2 * g->cap : 64;

		grown = reallocarray(g->row, cap, sizeof(*grown));
		if (!grown)
			return false;
		g->row = grown;
		g->cap = cap;
	}
	g->row[g->n] =
		(struct go_test){ .folder = copy_of(folder, folder_len), .name = copy_of(name, len), .sure = sure };
	g->n++;
	return g->row[g->n - 1].folder && g->row[g->n - 1].name;
}

/* "a_windows_test.go", "a_arm64_test.go": may be compiled on other systems only, so its tests are not certain. */
static bool is_for_some_system(const char *name)
{
	static const char *const systems[] = {
		"aix",      "android", "darwin",  "dragonfly", "freebsd", "hurd",    "illumos", "ios",    "js",
		"linux",    "nacl",    "netbsd",  "openbsd",   "plan9",   "solaris", "unix",    "wasip1", "windows",
		"zos",      "386",     "amd64",   "arm",       "arm64",   "loong64", "mips",    "mipsle", "mips64",
		"mips64le", "ppc64",   "ppc64le", "riscv64",   "s390x",   "sparc64", "wasm",
	};

	for (size_t i = 0; i < ARRAY_LEN(systems); i++) {
		char part[32];

		(void)snprintf(part, sizeof(part), "_%s_", systems[i]);
		if (strstr(name, part))
			return true;
	}
	return false;
}

bool go_source_read(struct go_tests *g, const char *path, const char *text, size_t len)
{
	const char *slash = strrchr(path, '/'), *name;
	size_t folder = slash ? (size_t)(slash - path) : 0, first = g->n, n;
	struct source s = { .at = text, .end = text + len };

	/* the folder has test files, whatever is in this one */
	if (!add_test(g, path, folder, "", 0, false))
		return false;
	while (next_function(&s, &name, &n))
		if (is_run(name, n, "Test") || is_run(name, n, "Example") || is_run(name, n, "Fuzz"))
			if (!add_test(g, path, folder, name, n, is_surely_run(name, n)))
				return false;
	if (s.constrained || is_for_some_system(path))
		for (size_t i = first; i < g->n; i++)
			g->row[i].sure = false;
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct go_test *x = a, *y = b;
	int folders = strcmp(x->folder, y->folder);

	return folders ? folders : strcmp(x->name, y->name);
}

void go_source_sort(struct go_tests *g)
{
	if (g->n > 0)
		qsort(g->row, g->n, sizeof(*g->row), by_place);
}

const struct go_test *go_source_find(const struct go_tests *g, const char *folder, const char *name)
{
	const struct go_test wanted = { .folder = (char *)(uintptr_t)folder, .name = (char *)(uintptr_t)name };

	return g->n ? bsearch(&wanted, g->row, g->n, sizeof(*g->row), by_place) : NULL;
}

void go_source_release(struct go_tests *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->row[i].folder);
		free(g->row[i].name);
	}
	free(g->row);
	*g = (struct go_tests){ .n = 0 };
}

/* ---- the project ------------------------------------------------------------------------------------- */

static bool read_text(int project, const char *path, struct buf *ret)
{
	AUTO_FD fd = beneath_open_file(project, path, NULL);
	char piece[16384];
	ssize_t n = 0;

	while (fd >= 0 && !ret->full && (n = fd_read_all(fd, piece, sizeof(piece))) > 0)
		(void)buf_add(ret, piece, (size_t)n);
	return fd >= 0 && n >= 0 && !ret->full && !ret->no_memory;
}

/* True for a folder that ./... does not include: one of another module, or excluded by its name. */
static bool is_elsewhere(int project, const char *path)
{
	char part[PATH_MAX], mod[PATH_MAX + 8];

	if (path[0] == '_' || strstr(path, "/_") || strncmp(path, "testdata/", 9) == 0 || strstr(path, "/testdata/") ||
	    !str_copy(part, sizeof(part), path))
		return true;
	for (char *slash = strrchr(part, '/'); slash; slash = strrchr(part, '/')) {
		AUTO_FD fd = FD_NONE;

		*slash = '\0';
		(void)snprintf(mod, sizeof(mod), "%s/go.mod", part);
		fd = beneath_look(project, mod, NULL);
		if (fd >= 0)
			return true;
	}
	return false;
}

static bool read_module(int project, struct go_tests *g)
{
	AUTO_BUF text = BUF_INIT(SOURCE_MAX);
	const char *at;

	if (!read_text(project, "go.mod", &text))
		return false;
	for (at = buf_str(&text); at && strncmp(at, "module ", 7) != 0;) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return false;
	at += 7 + strspn(at + 7, " \t\"");
	(void)snprintf(g->module, sizeof(g->module), "%.*s", (int)min_u64(strcspn(at, " \t\r\n\""), 500), at);
	return g->module[0] != '\0';
}

void go_source_find_all(int project, const struct test_run *t, struct go_tests *ret)
{
	size_t total = 0;
	bool good = read_module(project, ret);

	for (size_t i = 0; good && i < t->n_files; i++) {
		AUTO_BUF text = BUF_INIT(SOURCE_MAX);

		if (is_elsewhere(project, t->files[i]))
			continue;
		good = read_text(project, t->files[i], &text) &&
		       go_source_read(ret, t->files[i], buf_str(&text), text.len);
		total += text.len;
		good = good && total <= TOTAL_MAX;
	}
	if (!good)
		go_source_release(ret);
	go_source_sort(ret);
}
