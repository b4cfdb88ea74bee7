/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules that an allow-list inspection permits because the request uses their packages.
 *
 * The inspection comes before the installation, because an installer is a program, too, and is not started for code
 * that will be blocked. So only names are known: the package's name in the spellings of imports, and, for packages
 * whose modules have other names, what hints.def lists. A package with the name of a standard module permits nothing:
 * an import of that name may well mean the standard one.
 */
#include "executor/modules.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static const struct {
	const char *module, *package, *debian;
} packages[] = {
#define PACKAGE(module, package, debian) { module, package, debian },
#include "executor/hints.def"
};

static const struct {
	const char *ecosystem;
	enum inspect_kind kind;
} kinds[] = {
	{ "pip", INSPECT_PYTHON },
	{ "npm", INSPECT_JAVASCRIPT },
	{ "go", INSPECT_GO },
};

struct search {
	struct asked_modules *found;
	const struct ecosystem *eco;
	struct brig_error *err;
};

static int add(const struct search *s, const char *module)
{
	struct asked_modules *m = s->found;

	if (ecosystem_has_own(s->eco, module))
		return 0;
	if (m->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 16;
		const char **name = reallocarray(m->name, cap, sizeof(*name));

		if (!name)
			return err_nomem(s->err);
		m->name = name;
		m->cap = cap;
	}
	m->name[m->n] = strdup(module);
	return m->name[m->n] ? (m->n++, 0) : err_nomem(s->err);
}

static void spell(const char *name, char joint, char *dst, size_t size)
{
	(void)snprintf(dst, size, "%s", name);
	for (char *c = dst; *c; c++)
		*c = strchr("-_.", *c) ? joint : *c;
}

/* "python-dateutil" of hints.def is dateutil; "google-cloud-storage" is imported as google.cloud.storage. */
static int add_python(const struct search *s, const char *name)
{
	char plain[PACKAGES_WORD_MAX + 1], dotted[PACKAGES_WORD_MAX + 1], other[PACKAGES_WORD_MAX + 1];
	int rc;

	spell(name, '_', plain, sizeof(plain));
	spell(name, '.', dotted, sizeof(dotted));
	rc = add(s, plain);
	if (rc == 0 && !str_eq(plain, dotted))
		rc = add(s, dotted);
	for (size_t i = 0; i < ARRAY_LEN(packages) && rc == 0; i++) {
		if (!packages[i].package)
			continue;
		spell(packages[i].package, '_', other, sizeof(other));
		if (strcasecmp(other, plain) == 0)
			rc = add(s, packages[i].module);
	}
	return rc;
}

static int take_name(void *arg, const char *name)
{
	const struct search *s = arg;

	return s->found->kind == INSPECT_PYTHON ? add_python(s, name) : add(s, name);
}

int asked_modules_find(struct asked_modules *ret, const struct ecosystem *e, const char *const *words, size_t n,
		       const struct plan_workspace *project, struct brig_error *err)
{
	struct search s = { .found = ret, .eco = e, .err = err };
	struct package_files files = { .n = 0 };
	int rc = project ? package_files_read(e, project, &files, err) : 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].ecosystem, e->name))
			ret->kind = kinds[i].kind;
	if (rc == 0)
		rc = packages_each_name(e, words, n, &files, take_name, &s, err);
	package_files_release(&files);
	return rc;
}

void asked_modules_release(struct asked_modules *m)
{
	for (size_t i = 0; i < m->n; i++)
		free((void *)(uintptr_t)m->name[i]);
	free(m->name);
	*m = (struct asked_modules){ .n = 0 };
}
