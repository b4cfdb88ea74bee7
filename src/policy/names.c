/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static_assert(SETTING_COUNT < SPELLINGS_MAX / 2, "SPELLINGS_MAX is too small");

static struct spelling spelling_of_key(enum setting_key k)
{
	return (struct spelling){ setting_info[k].name, k, setting_info[k].unit, 1, NULL };
}

static struct spelling spelling_of_alias(const struct setting_alias *a)
{
	return (struct spelling){ a->name, a->key, a->unit, a->factor, NULL };
}

bool spelling_find(const char *name, struct spelling *ret)
{
	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		if (str_eq(setting_info[k].name, name)) {
			*ret = spelling_of_key(k);
			return true;
		}
	for (size_t i = 0; i < setting_alias_count; i++)
		if (str_eq(setting_alias[i].name, name)) {
			*ret = spelling_of_alias(&setting_alias[i]);
			return true;
		}
	for (size_t i = 0; i < setting_word_count; i++)
		if (str_eq(setting_word[i].name, name)) {
			*ret = (struct spelling){ setting_word[i].name, setting_word[i].key, UNIT_NONE, 1,
						  &setting_word[i] };
			return true;
		}
	return false;
}

bool spelling_find_in(const char *section, const char *name, struct spelling *ret)
{
	char full[POLICY_WORD_MAX];

	if (spelling_find(name, ret))
		return true;
	if (snprintf(full, sizeof(full), "%s_%s", section, name) >= (int)sizeof(full))
		return false;
	return spelling_find(full, ret) && str_eq(setting_info[ret->key].section, section);
}

size_t spelling_names(const char *section, const char *ret[SPELLINGS_MAX])
{
	size_t n = 0;

	for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
		size_t prefix = section ? strlen(section) : 0;
		const char *name = setting_info[k].name;

		if (section && !str_eq(setting_info[k].section, section))
			continue;
		ret[n++] = name;
		if (prefix && strncmp(name, section, prefix) == 0 && name[prefix] == '_')
			ret[n++] = name + prefix + 1;
	}
	for (size_t i = 0; i < setting_alias_count && n < SPELLINGS_MAX; i++)
		if (!section || str_eq(setting_info[setting_alias[i].key].section, section))
			ret[n++] = setting_alias[i].name;
	for (size_t i = 0; i < setting_word_count && n < SPELLINGS_MAX; i++)
		if (!section || str_eq(setting_info[setting_word[i].key].section, section))
			ret[n++] = setting_word[i].name;
	return n;
}

size_t section_names(const char *ret[SECTIONS_MAX])
{
	size_t n = 0;

	for (enum setting_key k = 0; k < SETTING_COUNT && n < SECTIONS_MAX; k++)
		if (*setting_info[k].section && name_index(ret, n, setting_info[k].section) == n)
			ret[n++] = setting_info[k].section;
	return n;
}

size_t name_index(const char *const *names, size_t n, const char *name)
{
	size_t i = 0;

	while (i < n && !str_eq(names[i], name))
		i++;
	return i;
}

const char *suggest(const char *word, const char *const *candidates, size_t n, char *dst, size_t size)
{
	const char *nearest = str_nearest(word, candidates, n);

	*dst = '\0';
	if (nearest)
		(void)snprintf(dst, size, "; did you mean '%s'?", nearest);
	return dst;
}

const char *suggest_key(const char *name, char *dst, size_t size)
{
	const char *names[SPELLINGS_MAX];

	return suggest(name, names, spelling_names(NULL, names), dst, size);
}
