/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pick.h"

#include <string.h>

#include "base/str.h"

static const char *id_of(const json_t *row)
{
	const char *id = json_string_value(json_object_get(row, "id"));

	return id ? id : "";
}

const json_t *pick_row(const json_t *rows, const char *word, const char *kind, const char *list, struct brig_error *err)
{
	const json_t *row, *found = NULL;
	AUTO_BUF names = BUF_INIT(256);
	size_t i, n = 0;

	json_array_foreach(rows, i, row)
	{
		if (str_eq(id_of(row), word))
			return row;
		if (!*word || strncmp(id_of(row), word, strlen(word)) != 0)
			continue;
		buf_addf(&names, "%s%s", n++ ? ", " : "", id_of(row));
		found = row;
	}
	if (n == 1)
		return found;
	if (n == 0)
		(void)err_set(err, BRIG_E_REFUSED, ENOENT, "no %s is called '%.60s'; '%s' shows them", kind, word,
			      list);
	else
		(void)err_set(err, BRIG_E_REFUSED, 0, "'%.60s' is the beginning of several: %s; write more of it", word,
			      buf_str(&names));
	return NULL;
}
