/* SPDX-License-Identifier: Apache-2.0 */
/* Go: arguments of calls - programs they start, paths they open, permissions they set. */
#include "inspect/go.h"

#include <string.h>

#include "inspect/paths.h"

#define WORDS_MAX 64

enum {
	READS = 1 << 0,   /* argument 0 is a path */
	SECOND = 1 << 1,  /* argument 1 is a path, too */
	REMOVES = 1 << 2, /* destroys the named files or gives them away (owner, permissions) */
	MODE_1 = 1 << 3,  /* argument 1 is a file mode */
	MODE_2 = 1 << 4,
	ARGV = 1 << 5,       /* program and arguments, one per argument of the call */
	ARGV_1 = 1 << 6,     /* the same, from argument 1 on */
	ARGLIST = 1 << 7,    /* the program, then a list of its name and arguments */
	ENVIRON = 1 << 8,    /* argument 0 is the name of an environment variable */
	JOINS = 1 << 9,      /* argument 0 is a folder, argument 1 a path below it */
	ADDRESS_0 = 1 << 10, /* argument 0 is a network address */
	ADDRESS_1 = 1 << 11,
	ADDRESS_2 = 1 << 12,
	LISTENS = 1 << 13, /* the address is one to listen on */
	THIRD = 1 << 14,   /* argument 2 is a path */
	FOURTH = 1 << 15,
	MAKES = 1 << 16, /* creates the file in argument 0 */
};

/* Sorted by name for binary search. */
static const struct call_row {
	const char *name;
	unsigned does;
} call_rows[] = {
	{ "archive/zip.OpenReader", READS },
	{ "crypto/tls.Dial", ADDRESS_1 },
	{ "html/template.ParseFiles", READS },
	{ "html/template.ParseGlob", READS },
	{ "io/fs.Glob", JOINS },
	{ "io/fs.ReadDir", JOINS },
	{ "io/fs.ReadFile", JOINS },
	{ "io/fs.Stat", JOINS },
	{ "io/fs.WalkDir", JOINS },
	{ "io/ioutil.ReadDir", READS },
	{ "io/ioutil.ReadFile", READS },
	{ "io/ioutil.TempDir", READS },
	{ "io/ioutil.TempFile", READS },
	{ "io/ioutil.WriteFile", READS | MODE_2 | MAKES },
	{ "net.Dial", ADDRESS_1 },
	{ "net.DialTimeout", ADDRESS_1 },
	{ "net.Listen", ADDRESS_1 | LISTENS },
	{ "net.ListenPacket", ADDRESS_1 | LISTENS },
	{ "net.LookupAddr", ADDRESS_0 },
	{ "net.LookupHost", ADDRESS_0 },
	{ "net.LookupIP", ADDRESS_0 },
	{ "net.LookupMX", ADDRESS_0 },
	{ "net.LookupTXT", ADDRESS_0 },
	{ "net/http.DefaultClient.Get", ADDRESS_0 },
	{ "net/http.DefaultClient.Post", ADDRESS_0 },
	{ "net/http.Dir", READS },
	{ "net/http.Get", ADDRESS_0 },
	{ "net/http.Head", ADDRESS_0 },
	{ "net/http.ListenAndServe", ADDRESS_0 | LISTENS },
	{ "net/http.ListenAndServeTLS", ADDRESS_0 | LISTENS },
	{ "net/http.NewRequest", ADDRESS_1 },
	{ "net/http.NewRequestWithContext", ADDRESS_2 },
	{ "net/http.Post", ADDRESS_0 },
	{ "net/http.PostForm", ADDRESS_0 },
	{ "net/http.ServeFile", THIRD },
	{ "net/http.ServeFileFS", FOURTH },
	{ "net/rpc.Dial", ADDRESS_1 },
	{ "net/rpc.DialHTTP", ADDRESS_1 },
	{ "net/smtp.Dial", ADDRESS_0 },
	{ "net/smtp.SendMail", ADDRESS_0 },
	{ "os.Chdir", READS },
	{ "os.Chmod", READS | REMOVES | MODE_1 },
	{ "os.Chown", READS | REMOVES },
	{ "os.Chtimes", READS },
	{ "os.Create", READS | MAKES },
	{ "os.CreateTemp", READS },
	{ "os.DirFS", READS },
	{ "os.Getenv", ENVIRON },
	{ "os.Lchown", READS },
	{ "os.Link", READS | SECOND },
	{ "os.LookupEnv", ENVIRON },
	{ "os.Lstat", READS },
	{ "os.Mkdir", READS | MODE_1 },
	{ "os.MkdirAll", READS | MODE_1 },
	{ "os.MkdirTemp", READS },
	{ "os.Open", READS },
	{ "os.OpenFile", READS | MODE_2 },
	{ "os.OpenInRoot", READS | SECOND },
	{ "os.OpenRoot", READS },
	{ "os.ReadDir", READS },
	{ "os.ReadFile", READS },
	{ "os.Readlink", READS },
	{ "os.Remove", READS | REMOVES },
	{ "os.RemoveAll", READS | REMOVES },
	{ "os.Rename", READS | SECOND | REMOVES },
	{ "os.StartProcess", ARGLIST },
	{ "os.Stat", READS },
	{ "os.Symlink", READS | SECOND },
	{ "os.Truncate", READS | REMOVES },
	{ "os.WriteFile", READS | MODE_2 | MAKES },
	{ "os/exec.Command", ARGV },
	{ "os/exec.CommandContext", ARGV_1 },
	{ "path/filepath.EvalSymlinks", READS },
	{ "path/filepath.Glob", READS },
	{ "path/filepath.Walk", READS },
	{ "path/filepath.WalkDir", READS },
	{ "plugin.Open", READS },
	{ "syscall.Chmod", READS | MODE_1 },
	{ "syscall.Exec", ARGLIST },
	{ "syscall.ForkExec", ARGLIST },
	{ "syscall.Open", READS },
	{ "syscall.StartProcess", ARGLIST },
	{ "syscall.Unlink", READS | REMOVES },
	{ "text/template.ParseFiles", READS },
	{ "text/template.ParseGlob", READS },
};

static int compare_row(const void *key, const void *row)
{
	const struct go_value *name = key;
	const char *other = ((const struct call_row *)row)->name;
	size_t n = strlen(other);
	int order = memcmp(name->text, other, min_u64(name->len, n));

	return order ? order : name->len < n ? -1 : name->len > n;
}

static struct span span_of(const struct go_value *v)
{
	return (struct span){ v->start, v->end };
}

void go_judge_string(struct go *g, const struct go_value *v)
{
	if (g->touches_files && judge_looks_like_path(v->text, v->len))
		judge_path(g->j, v->text, v->len, span_of(v));
}

/* ---- programs ------------------------------------------------------------------------------------------- */

struct words {
	const char *word[WORDS_MAX];
	bool literal[WORDS_MAX];
	size_t n;
};

static void add_word(struct go *g, struct words *w, const struct go_value *v)
{
	bool known = v->kind == GO_STRING && !memchr(v->text, '\0', v->len);
	char *copy = known ? go_alloc(g, v->len + 1u) : NULL;

	if (w->n == WORDS_MAX)
		return;
	if (copy) {
		memcpy(copy, v->text, v->len);
		copy[v->len] = '\0';
	}
	w->literal[w->n] = copy != NULL;
	w->word[w->n++] = copy ? copy : "";
}

/* Adds the elements of a list: exec.Command(parts[0], parts[1:]...). */
static void add_words(struct go *g, struct words *w, const struct go_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].kind != GO_LIST) {
			add_word(g, w, &v[i]);
			continue;
		}
		for (uint32_t k = 0; k < v[i].len; k++)
			add_word(g, w, &v[i].items[k]);
	}
}

static void judge_program(struct go *g, unsigned does, const struct go_value *a, size_t n, struct span where)
{
	struct words w = { .n = 0 };
	bool has_input = g->j->has_input;

	if (does & ARGV_1 && n) {
		a++;
		n--;
	}
	if (!n)
		return;
	add_word(g, &w, &a[0]);
	if (!(does & ARGLIST))
		add_words(g, &w, a + 1, n - 1);
	else if (n > 1 && a[1].kind == GO_LIST && a[1].len)
		add_words(g, &w, a[1].items + 1, a[1].len - 1);
	go_judge_hidden(g, &a[0]);
	for (size_t i = 1; i < n && go_is_shell(&a[0]); i++)
		go_judge_hidden(g, &a[i]);
	/* A child started by os/exec reads nothing unless the program hands it its own input. */
	if (g->j->level == INSPECTION_GUARD && !memmem(g->text, g->len, "os.Stdin", 8))
		g->j->has_input = false;
	judge_argv(g->j, w.word, w.literal, w.n, where);
	g->j->has_input = has_input;
}

/* ---- files ---------------------------------------------------------------------------------------------- */

static void judge_file(struct go *g, unsigned does, const struct go_value *path)
{
	if (path->outside)
		(void)judge_check(g->j, "outside-path", span_of(path), "%s", "");
	if (path->kind != GO_STRING)
		return;
	if (does & REMOVES && path_is_precious(g->j->workspace, path->text, path->len))
		(void)judge_check(g->j, "remove-root", span_of(path), "%.*s", (int)min_u64(path->len, 80), path->text);
	if (does & MAKES && path->len > 5 && memcmp(path->text, "/tmp/", 5) == 0)
		(void)judge_check(g->j, "shared-temp", span_of(path), "%.*s", (int)min_u64(path->len, 80), path->text);
	judge_path(g->j, path->text, path->len, span_of(path));
}

/* Judges a script when it is written: the inspector may not see the command that starts it later. */
static void judge_content(struct go *g, const struct go_value *content)
{
	const char *line = content->kind == GO_STRING ? memchr(content->text, '\n', content->len) : NULL;

	g->wrote_hidden |= content->hidden;
	if (line && content->len > 2 && memcmp(content->text, "#!", 2) == 0 &&
	    memmem(content->text, (size_t)(line - content->text), "sh", 2))
		judge_command(g->j, content->text, content->len, span_of(content));
}

static void judge_mode(struct go *g, const struct go_value *mode)
{
	bool all = mode->kind == GO_MEMBER && (go_is(mode, "os.ModePerm") || go_is(mode, "io/fs.ModePerm"));

	if (all || (mode->kind == GO_INT && mode->number & 022))
		(void)judge_check(g->j, "wide-permissions", span_of(mode), "%.*s", (int)(mode->end - mode->start),
				  g->text + mode->start);
}

/* Reports environment variables whose names suggest a secret. */
static void judge_variable(struct go *g, const struct go_value *name)
{
	static const char *const words[] = { "SECRET",  "TOKEN",  "PASSW",   "CREDENTIAL",
					     "API_KEY", "APIKEY", "PRIVATE", "ACCESS_KEY" };

	if (name->kind != GO_STRING)
		return;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(name->text, name->len, words[i], strlen(words[i]))) {
			(void)judge_check(g->j, "secret-variable", span_of(name), "%.*s", (int)min_u64(name->len, 80),
					  name->text);
			return;
		}
}

static void judge_below(struct go *g, unsigned does, const struct go_value *folder, const struct go_value *name)
{
	struct go_value parts[2] = { *folder, *name }, path = go_join_path(g, parts, 2);

	path.start = name->start;
	path.end = name->end;
	judge_file(g, does, &path);
}

/* os.DirFS("/etc").Open("passwd"): a folder, and a method that takes a name below it. */
static void judge_method(struct go *g, const struct go_value *method, const struct go_value *arguments)
{
	static const char *const names[] = { "Open", "OpenFile", "ReadFile", "ReadDir",  "Create",
					     "Stat", "Lstat",    "Remove",   "RemoveAll" };

	for (size_t i = 0; i < ARRAY_LEN(names) && arguments->len; i++)
		if (go_is(method, names[i]))
			judge_below(g, 0, method->receiver, &arguments->items[0]);
}

static void judge_address(struct go *g, unsigned does, const struct go_value *a, size_t n, struct span where)
{
	size_t at = does & ADDRESS_2 ? 2 : does & ADDRESS_1 ? 1 : 0;

	if (does & (ADDRESS_0 | ADDRESS_1 | ADDRESS_2) && n > at)
		go_intent_client(g, &a[at], (does & LISTENS) != 0, where);
}

/* client.Get("https://x.test/"), where client is a variable of the program. */
static void judge_client(struct go *g, const struct go_value *function, const struct go_value *address,
			 struct span where)
{
	static const char *const methods[] = { ".Get", ".Head", ".Post", ".PostForm" };
	size_t len = function->end - function->start;

	if (address->kind != GO_STRING || address->len < 8 || memcmp(address->text, "http", 4) != 0 ||
	    !memmem(address->text, min_u64(address->len, 8), "://", 3))
		return;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		size_t n = strlen(methods[i]);

		if (len > n && memcmp(g->text + function->end - n, methods[i], n) == 0)
			go_intent_client(g, address, false, where);
	}
}

/* Web routes and addresses look like paths but are not. */
bool go_takes_routes(const struct go *g, const struct go_value *function)
{
	static const char *const names[] = { "Handle",     "HandleFunc", "GET",      "POST",        "PUT",
					     "DELETE",     "Get",        "Post",     "Put",         "Delete",
					     "Patch",      "Group",      "Route",    "Head",        "Method",
					     "PathPrefix", "Static",     "Redirect", "StripPrefix", "NewRequest",
					     "SetBasePath" };
	const char *s = g->text + function->start;
	size_t len = function->end - function->start, from = len;

	if (function->kind == GO_MEMBER && function->len > 9 && memcmp(function->text, "net/http.", 9) == 0)
		return !go_is(function, "net/http.Dir") && !go_is(function, "net/http.ServeFile");
	while (from > 0 && s[from - 1] != '.')
		from--;
	for (size_t i = 0; from > 0 && i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len - from && memcmp(s + from, names[i], len - from) == 0)
			return true;
	return false;
}

void go_judge_call(struct go *g, const struct go_value *function, const struct go_value *arguments, struct span where)
{
	const struct call_row *row;
	const struct go_value *a = arguments->items;
	size_t n = arguments->len;

	if (function->kind == GO_METHOD)
		judge_method(g, function, arguments);
	if (function->kind == GO_UNKNOWN && n)
		judge_client(g, function, &a[0], where);
	if (function->kind == GO_MEMBER && go_is(function, "os.Environ"))
		g->environment = where;
	if (function->kind != GO_MEMBER || n == 0)
		return;
	go_judge_reflected(g, function, arguments);
	go_judge_pointer(g, function, arguments, where);
	row = bsearch(function, call_rows, ARRAY_LEN(call_rows), sizeof(call_rows[0]), compare_row);
	if (!row)
		return;
	if (row->does & (ARGV | ARGV_1 | ARGLIST))
		judge_program(g, row->does, a, n, where);
	if (row->does & ARGV)
		go_intent_program(g, a, n, where);
	judge_address(g, row->does, a, n, where);
	if (row->does & READS)
		judge_file(g, row->does, &a[0]);
	if (row->does & MAKES && n > 1)
		judge_content(g, &a[1]);
	if (row->does & SECOND && n > 1)
		judge_file(g, row->does, &a[1]);
	if (row->does & THIRD && n > 2)
		judge_file(g, row->does, &a[2]);
	if (row->does & FOURTH && n > 3)
		judge_file(g, row->does, &a[3]);
	if (row->does & JOINS && n > 1)
		judge_below(g, row->does, &a[0], &a[1]);
	if (row->does & MODE_1 && n > 1)
		judge_mode(g, &a[1]);
	if (row->does & MODE_2 && n > 2)
		judge_mode(g, &a[2]);
	if (row->does & ENVIRON)
		judge_variable(g, &a[0]);
}
