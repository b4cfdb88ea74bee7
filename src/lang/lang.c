/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/lang.h"

#include <strings.h>

const struct language languages[] = {
#define LANGUAGE(...) { __VA_ARGS__ },
#include "lang/languages.def"
};
const size_t language_count = ARRAY_LEN(languages);

static bool has_alias(const struct language *lang, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(lang->aliases) && lang->aliases[i]; i++)
		if (strcasecmp(lang->aliases[i], name) == 0)
			return true;
	return false;
}

const struct language *lang_by_name(const char *name)
{
	for (size_t i = 0; i < language_count; i++)
		if (strcasecmp(languages[i].name, name) == 0 || has_alias(&languages[i], name))
			return &languages[i];
	return NULL;
}
