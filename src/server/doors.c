/* SPDX-License-Identifier: Apache-2.0 */
#include "server/doors.h"

#include <string.h>

#include "base/str.h"

const struct door_row door_rows[DOOR_COUNT] = {
	[DOOR_api] = { "api", "the API", 0, TOKEN_TRUSTED },
#define BEARER                               DOOR_KEY_BEARER
#define BASIC                                DOOR_KEY_BASIC
#define HEADER                               DOOR_KEY_HEADER
#define DOOR(name, title, keys, trust, move) [DOOR_##name] = { #name, title, keys, TOKEN_##trust },
#include "server/doors.def"
#undef BEARER
#undef BASIC
#undef HEADER
};

enum door door_find(const char *name)
{
	enum door d = 0;

	while (d < DOOR_COUNT && !str_eq(door_rows[d].name, name))
		d++;
	return d;
}

static int complain_name(const char *name, struct brig_error *err)
{
	const char *names[DOOR_COUNT], *near;
	size_t n = 0;

	for (enum door d = DOOR_api + 1; d < DOOR_COUNT; d++)
		names[n++] = door_rows[d].name;
	near = str_nearest(name, names, n);
	return err_set(err, BRIG_E_USAGE, 0,
		       "there is no door '%.40s'%s%s%s: docs/DOORS.md lists them, 'all' is every one", name,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* "NAME" or "NAME:TRUST". */
static int open_door(char *word, struct door_set *ret, struct brig_error *err)
{
	char *colon = strchr(word, ':');
	enum token_trust trust = TOKEN_TRUST_COUNT;
	bool is_all;
	enum door one;

	if (colon) {
		*colon = '\0';
		if (!token_trust_parse(colon + 1, &trust))
			return err_set(err, BRIG_E_USAGE, 0,
				       "door '%.40s': '%.40s' is no trust: write untrusted, unknown or trusted", word,
				       colon + 1);
	}
	is_all = str_eq(word, "all");
	one = door_find(word);
	if (!is_all && (one == DOOR_COUNT || one == DOOR_api))
		return complain_name(word, err);
	for (enum door d = DOOR_api + 1; d < DOOR_COUNT; d++)
		if (is_all || d == one) {
			ret->is_open[d] = true;
			ret->trust[d] = trust == TOKEN_TRUST_COUNT ? door_rows[d].trust : trust;
		}
	return 0;
}

int doors_parse(const char *text, struct door_set *ret, struct brig_error *err)
{
	static const char between[] = ", \t\n";
	char word[80];

	*ret = (struct door_set){ .trust = { [DOOR_api] = TOKEN_TRUSTED } };
	for (text += strspn(text, between); *text;) {
		size_t len = strcspn(text, between);

		if (len >= sizeof(word))
			return err_set(err, BRIG_E_USAGE, 0, "'%.40s...' is no door", text);
		memcpy(word, text, len);
		word[len] = '\0';
		if (open_door(word, ret, err) < 0)
			return -err->code;
		text += len + strspn(text + len, between);
	}
	return 0;
}

bool doors_any(const struct door_set *set)
{
	for (enum door d = DOOR_api + 1; d < DOOR_COUNT; d++)
		if (set->is_open[d])
			return true;
	return false;
}

bool doors_have_sockets(const struct door_set *set)
{
	static const struct {
		enum door door;
		enum door_body body;
	} rows[] = {
#define DOOR_ROUTE(door, method, path, body, access, handler, summary) { DOOR_##door, DOOR_BODY_##body },
#include "server/doors.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].body == DOOR_BODY_SOCKET && set->is_open[rows[i].door])
			return true;
	return false;
}
