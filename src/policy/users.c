/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users.c - `users` of the policy file: what users of this host may do on the unix sockets of a service
 *
 * A list of rows; the first match applies.  A row says whom it applies to (user or group: a name or a number; user "*"
 * is everyone) and what they may do: rows of users.def.  It is not a setting: no request and no variable can change it,
 * and a direct run ignores it.  So it is kept as the document that its readers get (policy_users_json), each row with
 * its position, because whether a user of that name exists is for the service to find out, on the host where it runs.
 */
#include "policy/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define USERS_MAX 256
#define WORDS_MAX 32 /* of one list, as a token may have */
#define NAME_MAX_ 64 /* of a user or group */

enum user_kind { USER_FLAG, USER_TRUST, USER_WORDS, USER_COUNT, USER_BYTES };

static const struct user_member {
	const char *name;
	enum user_kind kind;
	uint64_t max;
	const char *usual, *help;
} members[] = {
#define USER(name, kind, max, usual, help) { #name, USER_##kind, max, usual, help },
#include "policy/users.def"
};

static const char *const must_be[] = {
	[USER_FLAG] = "takes true or false",
	[USER_TRUST] = "takes untrusted, unknown or trusted",
	[USER_WORDS] = "takes a list of 1 to 32 names in lower case",
	[USER_COUNT] = "takes a whole number above 0, and not that large",
	[USER_BYTES] = "takes a size above 0, such as 2g",
};

/* ---- values ------------------------------------------------------------------------------------- */

static bool is_word(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789._+-");

	return len > 0 && len <= NAME_MAX_ && text[len] == '\0' && !strchr("._+-", text[0]);
}

static json_t *words_value(const struct setting_list *list)
{
	json_t *array = list->n >= 1 && list->n <= WORDS_MAX ? json_array() : NULL;

	for (const char *w = NULL; array && (w = setting_list_next(list, w));)
		if (!is_word(w) || json_array_append_new(array, json_string(w)) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *number_value(uint64_t n, uint64_t max)
{
	return n > 0 && n <= max ? json_integer((json_int_t)n) : NULL;
}

/* NULL: it is none of that kind. */
static json_t *value_of(const struct user_member *m, const struct raw_value *raw)
{
	uint64_t n;

	if (raw->list)
		return m->kind == USER_WORDS ? words_value(raw->list) : NULL;
	switch (m->kind) {
	case USER_FLAG:
		return str_eq(raw->text, "true") ? json_true() : str_eq(raw->text, "false") ? json_false() : NULL;
	case USER_TRUST:
		return name_index(trust_name, TRUST_COUNT, raw->text) < TRUST_COUNT ? json_string(raw->text) : NULL;
	case USER_COUNT:
		return str_to_u64(raw->text, &n) ? number_value(n, m->max) : NULL;
	case USER_BYTES:
		return str_to_bytes(raw->text, &n) ? number_value(n, m->max) : NULL;
	case USER_WORDS:
		break;
	}
	return NULL;
}

/* What accounts are called: nothing that a message, a shell or a file of accounts would take for something else. */
static bool is_account(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= NAME_MAX_ && text[0] != '-' && !strpbrk(text, ":,/ \t\"'\\") &&
	       str_utf8_prefix(text, len) == len && strcspn(text, "\n\r\x7f") == len;
}

/* ---- rows --------------------------------------------------------------------------------------- */

static const char *suggest_member(const char *key, char *dst, size_t size)
{
	const char *names[ARRAY_LEN(members) + 2] = { "user", "group" };

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		names[i + 2] = members[i].name;
	return suggest(key, names, ARRAY_LEN(names), dst, size);
}

static void put_whom(json_t *row, const char *key, const struct raw_value *raw, const struct place *value_at,
		     struct policy_diags *diags)
{
	bool anybody = raw->text && str_eq(raw->text, "*") && str_eq(key, "user");

	if (!raw->text || (!anybody && (!is_account(raw->text) || str_eq(raw->text, "*"))))
		diag_add(diags, value_at, "%s takes the name or number of one %s%s", key, key,
			 str_eq(key, "user") ? ", or \"*\" for everybody" : "");
	else
		(void)json_object_set_new(row, key, json_string(raw->text));
}

void user_put(json_t *row, const char *key, const struct raw_value *raw, const struct place *at,
	      const struct place *value_at, struct policy_diags *diags)
{
	char shown[POLICY_WORD_MAX], hint[96];

	if (json_object_get(row, key)) {
		diag_add(diags, at, "%s appears twice in this row", printable(key, shown, sizeof(shown)));
		return;
	}
	if (str_eq(key, "user") || str_eq(key, "group")) {
		put_whom(row, key, raw, value_at, diags);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		json_t *value;

		if (!str_eq(members[i].name, key))
			continue;
		value = value_of(&members[i], raw);
		if (value)
			(void)json_object_set_new(row, key, value);
		else
			diag_add(diags, value_at, "%s %s", key, must_be[members[i].kind]);
		return;
	}
	diag_add(diags, at, "unknown key '%s' in a row of users%s", printable(key, shown, sizeof(shown)),
		 suggest_member(key, hint, sizeof(hint)));
}

json_t *user_begin(json_t **users, const struct place *at, struct policy_diags *diags)
{
	char text[160];
	json_t *row = NULL;

	if (!*users)
		*users = json_array();
	if (json_array_size(*users) == USERS_MAX) {
		diag_add(diags, at, "users has more than %d rows: use groups", USERS_MAX);
		return NULL;
	}
	(void)snprintf(text, sizeof(text), "%.120s:%u", at->name, at->line);
	row = json_pack("{s:s}", "place", text);
	if (!row || json_array_append_new(*users, row) < 0)
		return NULL;
	return row;
}

void user_end(const json_t *row, const struct place *at, struct policy_diags *diags)
{
	bool user = json_object_get(row, "user"), group = json_object_get(row, "group");

	if (user == group)
		diag_add(diags, at, "a row of users is about one user or one group: %s",
			 user ? "leave one of them out"
			      : "write user: NAME, group: NAME, or user: \"*\" for everybody");
	if (json_is_true(json_object_get(row, "refuse")) && json_object_size(row) > 3)
		diag_add(diags, at, "a row that refuses says nothing else: leave out what it would allow");
}

/* ---- readers ------------------------------------------------------------------------------------- */

int users_to_json(const json_t *users, char **ret, struct brig_error *err)
{
	json_t *doc = users ? json_pack("{s:O}", "users", users) : json_pack("{s:[]}", "users");

	*ret = doc ? json_dumps(doc, JSON_INDENT(2)) : NULL;
	json_decref(doc);
	return *ret ? 0 : err_nomem(err);
}

void users_template(struct buf *out)
{
	buf_adds(out,
		 "\n# ---- who of this host may what at the unix sockets of 'brig serve'; the first row that fits "
		 "counts\n\n"
		 "# Root and who runs the service are administrators, and others have at most trust unknown, unless a "
		 "row says\n# otherwise; root's own row must name him.  user and group are names or numbers; user "
		 "\"*\" is everybody.\n#users:\n#  - user: alice\n");
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		buf_addf(out, "#    # %s\n#    %s: %s\n", members[i].help, members[i].name, members[i].usual);
	buf_adds(out, "#  - group: students\n#    max_trust: untrusted\n#  - user: \"*\"\n#    refuse: true\n");
}
