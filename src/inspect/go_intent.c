/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go: the intent of a program.  Opening a connection or starting a program is normal.  The walk records what a program
 * does, and at its end the combination is judged: a shell and a connection, a downloaded file that is executed, the
 * environment read and something sent.
 */
#include "inspect/go.h"

#include <string.h>

/* ---- network -------------------------------------------------------------------------------------------- */

static bool begins(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && memcmp(s, prefix, n) == 0;
}

static bool is_local(const char *s, size_t len, bool listens)
{
	static const char *const hosts[] = { "localhost", "127.", "[::1]", "::1" };
	const char *scheme = memmem(s, len, "://", 3);

	if (scheme) {
		len -= (size_t)(scheme + 3 - s);
		s = scheme + 3;
	}
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (begins(s, len, hosts[i]))
			return true;
	if (len == 0 || s[0] == '/' || s[0] == '@')
		return true; /* a local socket */
	/* ":0" asks for any port, as tests do; ":8080" is meant to be reached by others */
	return s[0] == ':' && (!listens || (len == 2 && s[1] == '0'));
}

static bool mentions_local(const struct go *g, const struct go_value *v)
{
	static const char *const words[] = { "localhost", "127.0.0.1", "[::1]", ".URL", "Addr" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(g->text + v->start, v->end - v->start, words[i], strlen(words[i])))
			return true;
	return false;
}

void go_intent_client(struct go *g, const struct go_value *address, bool listens, struct span where)
{
	bool known = address->kind == GO_STRING, local;

	g->serves |= listens;
	g->dials |= !listens;
	local = known ? is_local(address->text, address->len, listens)
		      : listens || g->serves || mentions_local(g, address);
	if (local)
		return;
	g->reaches_out |= !listens;
	(void)judge_check(g->j, "network-call", where, "%.*s", known ? (int)min_u64(address->len, 80) : 0,
			  known ? address->text : "");
}

void go_intent_server(struct go *g, const struct go_value *elements)
{
	static const char key[] = "Addr";

	for (uint32_t i = 0; elements->kind == GO_LIST && i < elements->len; i++) {
		const struct go_value *one = &elements->items[i];

		if (one->kind == GO_STRING && one->end - one->start > sizeof(key) &&
		    memcmp(g->text + one->start, key, sizeof(key) - 1) == 0)
			go_intent_client(g, one, true, (struct span){ one->start, one->end });
	}
}

/* ---- programs ------------------------------------------------------------------------------------------- */

bool go_is_shell(const struct go_value *v)
{
	static const char *const shells[] = { "sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash", "zsh", "cmd.exe" };

	for (size_t i = 0; v->kind == GO_STRING && i < ARRAY_LEN(shells); i++)
		if (go_is(v, shells[i]))
			return true;
	return false;
}

static bool within_endless_loop(const struct go *g)
{
	for (size_t i = g->n_frames; i-- > 0;) {
		const struct go_frame *f = &g->frame[i];
		uint32_t at = f->start + 3;

		if (f->symbol != GO_for_statement)
			continue;
		while (at < f->end && (g->text[at] == ' ' || g->text[at] == '\t'))
			at++;
		if (at < f->end && g->text[at] == '{')
			return true;
	}
	return false;
}

static bool is_itself(const struct go *g, const struct go_value *v)
{
	static const char itself[] = "os.Args[0]";

	return v->end - v->start == sizeof(itself) - 1 && memcmp(g->text + v->start, itself, sizeof(itself) - 1) == 0;
}

void go_intent_program(struct go *g, const struct go_value *a, size_t n, struct span where)
{
	if (n == 0)
		return;
	if (go_is_shell(&a[0]) && (n == 1 || (n == 2 && a[1].kind == GO_STRING && go_is(&a[1], "-i"))))
		g->shell = where;
	if (a[0].kind == GO_STRING && (begins(a[0].text, a[0].len, "./") || begins(a[0].text, a[0].len, "/tmp/")))
		g->own_file = where;
	if (is_itself(g, &a[0]) && within_endless_loop(g))
		(void)judge_check(g->j, "fork-bomb", where, "%s", "");
}

/* cmd.Stdin = strings.NewReader(text): commands for a shell that was started without any. */
void go_intent_input(struct go *g, const struct go_value *target, const struct go_value *text)
{
	static const char input[] = ".Stdin";
	size_t len = target->end - target->start, n = sizeof(input) - 1;

	if (!g->judging || !g->shell.end || len <= n || memcmp(g->text + target->end - n, input, n) != 0)
		return;
	go_judge_hidden(g, text);
	if (text->kind == GO_STRING)
		judge_command(g->j, text->text, text->len, (struct span){ target->start, target->end });
}

void go_intent_finish(struct go *g)
{
	if (g->dials && g->shell.end)
		(void)judge_check(g->j, "reverse-shell", g->shell, "%s", "");
	if (g->reaches_out && g->own_file.end)
		(void)judge_check(g->j, "fetch-and-run", g->own_file, "%s", "");
	if (g->reaches_out && g->environment.end)
		(void)judge_check(g->j, "environment-sent", g->environment, "%s", "");
}

/*
 * True if a path is joined from an archive entry or the like, in a program that never checks that it stays below the
 * folder.
 */
static bool takes_entry(const struct go *g, const struct go_value *function, const struct go_value *arguments)
{
	bool joins = go_is(function, "path/filepath.Join") || go_is(function, "path.Join");

	for (uint32_t i = 0; joins && i < arguments->len; i++)
		if (arguments->items[i].outside)
			return !memmem(g->text, g->len, "HasPrefix", 9) && !memmem(g->text, g->len, "IsLocal", 7);
	return false;
}

bool go_asks_outside(const struct go *g, const struct go_value *function, const struct go_value *arguments)
{
	static const char *const methods[] = { ".FormValue", ".PostFormValue", ".PathValue", ".Query().Get" };
	size_t len = function->end - function->start;

	if (function->kind == GO_MEMBER)
		return go_is(function, "os.Getenv") || go_is(function, "os.LookupEnv") ||
		       takes_entry(g, function, arguments);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		size_t n = strlen(methods[i]);

		if (len > n && memcmp(g->text + function->end - n, methods[i], n) == 0)
			return true;
	}
	return false;
}

/* ---- imports -------------------------------------------------------------------------------------------- */

bool go_hides_import(const struct go *g, const struct go_value *children, size_t n)
{
	static const struct {
		const char *path, *name;
	} powerful[] = { { "os/exec", "exec" }, { "syscall", "sys" }, { "golang.org/x/sys/unix", "unix" } };
	const struct go_value *path = &children[n - 1], *alias = n > 1 ? &children[0] : NULL;
	size_t i = 0;

	while (i < ARRAY_LEN(powerful) && !go_is(path, powerful[i].path))
		i++;
	if (i == ARRAY_LEN(powerful))
		return false;
	if (g->text[path->start] == '`' || memchr(g->text + path->start, '\\', path->end - path->start))
		return true;
	if (!alias || (alias->end - alias->start == 1 && g->text[alias->start] == '_'))
		return false;
	return !memmem(g->text + alias->start, alias->end - alias->start, powerful[i].name, strlen(powerful[i].name));
}
