/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the framework in a package.json: its test script decides, then its dependencies. */
#include <jansson.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "testing/internal.h"

#define PACKAGE_MAX (1u << 20) /* bytes of a package.json */

static const char *const packages[] = {
#define PACKAGE(name) name,
#include "testing/frameworks.def"
};

static const char *const foreigners[] = {
#define FOREIGN(name) name,
#include "testing/frameworks.def"
};

static bool is_word_end(char c)
{
	return c == '\0' || strchr(" \t\n;&|()'\"/", c) != NULL;
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len)
		if ((at == text || is_word_end(at[-1])) && is_word_end(at[len]))
			return true;
	return false;
}

static bool depends_on(const json_t *doc, const char *name)
{
	return json_object_get(json_object_get(doc, "devDependencies"), name) ||
	       json_object_get(json_object_get(doc, "dependencies"), name);
}

static const char *find(const json_t *doc, const char *script, const char *const *names, size_t n, bool in_script)
{
	for (size_t i = 0; i < n; i++)
		if (in_script ? has_word(script, names[i]) : depends_on(doc, names[i]))
			return names[i];
	return NULL;
}

static void understand(const json_t *doc, const struct framework **ret, char *foreign)
{
	const char *script = json_string_value(json_object_get(json_object_get(doc, "scripts"), "test"));
	const char *ours = NULL, *other = NULL;

	/* the script first, because a project may depend on one framework and use another */
	for (int pass = 0; pass < 2 && !ours && !other; pass++) {
		ours = find(doc, script ? script : "", packages, ARRAY_LEN(packages), pass == 0);
		other = ours ? NULL : find(doc, script ? script : "", foreigners, ARRAY_LEN(foreigners), pass == 0);
		if (pass == 0 && script && strstr(script, "node --test"))
			return;
	}
	if (ours)
		*ret = framework_by_name(ours);
	else if (other)
		(void)str_copy(foreign, 24, other);
}

int package_framework(int project, const struct framework **ret, char *foreign, struct brig_error *err)
{
	AUTO_FREE char *text = malloc(PACKAGE_MAX);
	AUTO_FD fd = FD_NONE;
	json_error_t where;
	json_t *doc;
	ssize_t n;

	*ret = NULL;
	foreign[0] = '\0';
	if (!text)
		return err_nomem(err);
	fd = beneath_open_file(project, "package.json", NULL);
	n = fd < 0 ? 0 : fd_read_all(fd, text, PACKAGE_MAX);
	if (n <= 0)
		return 0;
	doc = (size_t)n < PACKAGE_MAX ? json_loadb(text, (size_t)n, 0, &where) : NULL;
	if (!doc)
		return err_set(err, BRIG_E_REFUSED, 0, "package.json of the workspace is no JSON document below 1 MB");
	understand(doc, ret, foreign);
	json_decref(doc);
	return 0;
}
