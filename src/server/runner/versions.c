/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/versions.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define ASKED_BY "service"

/* The command that prints a version; %s is the path. */
static const struct {
	const char *language, *member, *command;
} rows[] = {
	{ "python", "runtime", "%s -V" },
	{ "javascript", "runtime", "%s -v" },
	{ "typescript", "runtime", "%s -v" }, /* it runs the compiled JavaScript */
	{ "go", "compiler", "%s version" },
	{ "bash", "runtime", "%s --version" },
	{ "c", "compiler", "%s -dumpfullversion" },
	{ "cpp", "compiler", "%s -dumpfullversion" },
	{ "rust", "compiler", "%s --version" },
	{ "java", "runtime", "%s -version" },
	{ "perl", "runtime", "%s -e 'print $^V'" },
	{ "ruby", "runtime", "%s -v" },
	{ "lua", "runtime", "%s -v" },
	{ "php", "runtime", "%s -v" },
	{ "r", "runtime", "%s --version" },
};

static const char *path_of(const json_t *languages, const char *language, const char *member)
{
	const json_t *row;
	size_t i;

	json_array_foreach(languages, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		const char *path = json_string_value(json_object_get(row, member));

		/* The path is put in quotes below, so paths with quotes are skipped. */
		if (name && path && str_eq(name, language) && !strpbrk(path, "'\n"))
			return path;
	}
	return NULL;
}

/* Runs all commands in parallel, each writing to its own file, then prints "language: text" lines. */
static void write_script(const json_t *languages, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *path = path_of(languages, rows[i].language, rows[i].member);
		char quoted[4200];

		if (!path || strlen(path) > 4000)
			continue;
		(void)snprintf(quoted, sizeof(quoted), "'%s'", path);
		(void)buf_adds(out, "( ");
		for (const char *at = rows[i].command; *at; at++)
			if (at[0] == '%' && at[1] == 's') {
				(void)buf_adds(out, quoted);
				at++;
			} else {
				(void)buf_add(out, at, 1);
			}
		(void)buf_addf(out, " ) >/tmp/%s 2>&1 </dev/null &\n", rows[i].language);
	}
	(void)buf_adds(out, "wait\ncd /tmp\nfor f in *; do echo \"$f:\" $(cat \"$f\"); done\n");
}

/* Finds the first "12.34" or "12.34.56" in a line, and writes three numbers. */
static bool find_version(const char *at, const char *end, char dst[48])
{
	for (; at < end; at++) {
		unsigned major, minor, patch = 0;
		int n = 0;

		if (*at < '0' || *at > '9')
			continue;
		if (sscanf(at, "%9u.%9u%n", &major, &minor, &n) == 2 && at + n <= end) {
			if (at[n] == '.')
				(void)sscanf(at + n, ".%9u", &patch);
			(void)snprintf(dst, 48, "%u.%u.%u", major, minor, patch);
			return true;
		}
		at += strspn(at, "0123456789") - 1;
	}
	return false;
}

static void read_lines(const char *text, json_t *versions)
{
	while (*text) {
		const char *end = text + strcspn(text, "\n"), *colon = memchr(text, ':', (size_t)(end - text));
		char name[32], version[48];

		if (colon && (size_t)(colon - text) < sizeof(name) && find_version(colon, end, version)) {
			(void)snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
			(void)json_object_set_new(versions, name, json_string(version));
		}
		text = *end ? end + 1 : end;
	}
}

json_t *versions_ask(struct host *h)
{
	struct brig_request req = BRIG_REQUEST_INIT;
	AUTO_BUF script = BUF_INIT(128 * KiB);
	struct brig_result *r = NULL;
	json_t *versions = json_object();
	size_t len = 0;

	write_script(h->languages, &script);
	req.kind = BRIG_KIND_SHELL;
	req.code = buf_str(&script);
	req.code_len = script.len;
	req.who = ASKED_BY;
	if (versions && !script.no_memory && brig_run(h->b, &req, &r, NULL) == 0)
		read_lines(brig_result_output(r, BRIG_STDOUT, &len), versions);
	brig_result_free(r);
	return versions;
}

char *versions_add(const char *languages, const json_t *versions)
{
	json_t *doc = json_loads(languages, 0, NULL), *row;
	char *text;
	size_t i;

	json_array_foreach(json_object_get(doc, "languages"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		json_t *version = name ? json_object_get(versions, name) : NULL;

		if (version)
			(void)json_object_set(row, "version", version);
	}
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return text;
}
