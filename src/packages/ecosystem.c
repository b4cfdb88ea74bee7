/* SPDX-License-Identifier: Apache-2.0 */
#include <glob.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "files/beneath.h"
#include "packages/packages.h"

const struct ecosystem ecosystems[] = {
#define ECOSYSTEM(...) { __VA_ARGS__ },
#include "packages/ecosystems.def"
};
const size_t ecosystem_count = ARRAY_LEN(ecosystems);

const struct ecosystem *ecosystem_of_language(const char *language)
{
	for (size_t i = 0; i < ecosystem_count; i++)
		for (size_t k = 0; k < ARRAY_LEN(ecosystems[i].languages) && ecosystems[i].languages[k]; k++)
			if (str_eq(ecosystems[i].languages[k], language))
				return &ecosystems[i];
	return NULL;
}

const struct ecosystem *ecosystem_of_project(int project)
{
	for (size_t i = 0; i < ecosystem_count; i++) {
		AUTO_FD fd = beneath_look(project, ecosystems[i].manifest, NULL);

		if (fd >= 0)
			return &ecosystems[i];
	}
	return NULL;
}

static bool is_there(const char *pattern)
{
	glob_t found = { 0 };
	bool there = glob(pattern, 0, NULL, &found) == 0;

	globfree(&found);
	return there;
}

void ecosystem_tool(const struct ecosystem *e, char *tool, size_t size)
{
	*tool = '\0';
	for (size_t i = 0; i < ARRAY_LEN(e->tool) && e->tool[i] && !*tool; i++)
		if (access(e->tool[i], X_OK) == 0)
			(void)str_copy(tool, size, e->tool[i]);
}

int ecosystem_find(const struct ecosystem *e, char *tool, size_t size, struct brig_error *err)
{
	bool there = false;

	ecosystem_tool(e, tool, size);
	for (size_t i = 0; i < ARRAY_LEN(e->needs) && e->needs[i] && !there; i++)
		there = is_there(e->needs[i]);
	if (!*tool || !there)
		return err_set(err, BRIG_E_REFUSED, 0, "%s is not installed on this host: %s", e->name, e->install);
	return 0;
}

static const struct {
	const char *ecosystem, *name;
} own_modules[] = {
#define OWN(ecosystem, name) { ecosystem, name },
#include "packages/own_modules.def"
};

bool ecosystem_has_own(const struct ecosystem *e, const char *module)
{
	size_t len = strcspn(module, "./");

	if (str_eq(e->name, "go"))
		return !memchr(module, '.', strcspn(module, "/"));
	for (size_t i = 0; i < ARRAY_LEN(own_modules); i++)
		if (str_eq(own_modules[i].ecosystem, e->name) && strlen(own_modules[i].name) == len &&
		    strncasecmp(own_modules[i].name, module, len) == 0)
			return true;
	return false;
}

/* Installers get them as separate arguments, not through a shell; anything that looks like an option is not a package.
 */
int packages_check_word(const char *word, struct brig_error *err)
{
	size_t len = strnlen(word, PACKAGES_WORD_MAX + 1);

	if (len == 0)
		return err_set(err, BRIG_E_USAGE, 0, "the name of a package is empty");
	if (len > PACKAGES_WORD_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "the package '%.40s...' has more than %d bytes", word,
			       PACKAGES_WORD_MAX);
	if (*word == '-')
		return err_set(err, BRIG_E_USAGE, 0, "the package '%s' would be an option of the installer", word);
	for (size_t i = 0; i < len; i++)
		if (word[i] < ' ' || word[i] > '~')
			return err_set(err, BRIG_E_USAGE, 0, "the name of a package has the byte 0x%02x in it",
				       (unsigned char)word[i]);
	return 0;
}
