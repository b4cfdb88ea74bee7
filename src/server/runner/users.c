/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/users.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

#define ACCOUNT_BYTES_MAX (1 * MiB) /* for one entry: a group may have many members */
#define GROUPS_MAX        65536     /* the maximum for a process */

struct users {
	json_t *rows; /* owns the strings in the lists */
	struct users_row *row;
	size_t n;
	bool has_groups;
};

/* ---- names ---------------------------------------------------------------------------------------------- */

/* 0: *ret is set; -ENOENT: no such name; -errno. */
static int find_account(bool is_group, const char *name, uint32_t *ret)
{
	AUTO_FREE char *room = malloc(ACCOUNT_BYTES_MAX);
	struct passwd user, *found = NULL;
	struct group group, *found_group = NULL;
	int rc;

	if (!room)
		return -ENOMEM;
	rc = is_group ? getgrnam_r(name, &group, room, ACCOUNT_BYTES_MAX, &found_group)
		      : getpwnam_r(name, &user, room, ACCOUNT_BYTES_MAX, &found);
	if (!found && !found_group)
		return rc == 0 || rc == ENOENT || rc == ESRCH ? -ENOENT : -rc;
	*ret = is_group ? found_group->gr_gid : found->pw_uid;
	return 0;
}

static int find_id(const char *place, bool is_group, const char *name, uint32_t *ret, struct brig_error *err)
{
	const char *what = is_group ? "group" : "user";
	uint64_t n;
	int rc;

	if (str_to_u64(name, &n)) {
		if (n >= UINT32_MAX)
			return err_set(err, BRIG_E_POLICY, 0, "%s: %s %s is no number of one", place, what, name);
		*ret = (uint32_t)n;
		return 0;
	}
	rc = find_account(is_group, name, ret);
	if (rc == 0)
		return 0;
	return err_set(err, BRIG_E_POLICY, rc == -ENOENT ? 0 : -rc,
		       "%s: there is no %s '%s' on this host: make it, write its number, or take the row out", place,
		       what, name);
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

static int read_list(const json_t *row, const char *name, struct token_list *ret, struct brig_error *err)
{
	const json_t *list = json_object_get(row, name);
	size_t n = json_array_size(list);

	if (n == 0)
		return 0;
	ret->item = calloc(n, sizeof(*ret->item));
	if (!ret->item)
		return err_nomem(err);
	for (; ret->n < n; ret->n++)
		ret->item[ret->n] = json_string_value(json_array_get(list, ret->n));
	return 0;
}

static uint64_t number_of(const json_t *row, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(row, name));

	return n > 0 ? (uint64_t)n : 0;
}

static int read_bounds(const json_t *row, struct token *may, struct brig_error *err)
{
	const char *trust = json_string_value(json_object_get(row, "max_trust"));
	int rc = read_list(row, "languages", &may->languages, err);

	if (rc == 0)
		rc = read_list(row, "backends", &may->backends, err);
	if (rc == 0)
		rc = read_list(row, "environments", &may->environments, err);
	may->max_trust = TOKEN_UNKNOWN;
	if (trust)
		(void)token_trust_parse(trust, &may->max_trust);
	may->admin = json_is_true(json_object_get(row, "admin"));
	may->quota = (struct quota){
		.concurrent = (uint32_t)min_u64(number_of(row, "concurrent"), QUOTA_CONCURRENT_MAX),
		.runs_per_minute = (uint32_t)min_u64(number_of(row, "runs_per_minute"), QUOTA_RUNS_MAX),
		.cpu_seconds_per_hour = min_u64(number_of(row, "cpu_seconds_per_hour"), QUOTA_CPU_SECONDS_MAX),
		.memory = min_u64(number_of(row, "memory_max"), QUOTA_MEMORY_MAX),
	};
	return rc;
}

static int read_row(const json_t *row, struct users_row *ret, struct brig_error *err)
{
	const char *user = json_string_value(json_object_get(row, "user"));
	const char *group = json_string_value(json_object_get(row, "group"));
	const char *place = json_string_value(json_object_get(row, "place"));
	int rc = 0;

	(void)str_copy(ret->place, sizeof(ret->place), place ? place : "users");
	ret->refuse = json_is_true(json_object_get(row, "refuse"));
	ret->kind = group ? USERS_OF_GROUP : user && str_eq(user, "*") ? USERS_ALL : USERS_ONE;
	if (!user && !group)
		return err_set(err, BRIG_E_POLICY, 0, "%s: a row of users names no user and no group", ret->place);
	if (ret->kind != USERS_ALL)
		rc = find_id(ret->place, group != NULL, group ? group : user, &ret->id, err);
	return rc < 0 ? rc : read_bounds(row, &ret->may, err);
}

int users_read(const json_t *rows, struct users **ret, struct brig_error *err)
{
	struct users *u = calloc(1, sizeof(*u));
	size_t n = json_array_size(rows);
	int rc = 0;

	if (u)
		u->row = calloc(n + 1, sizeof(*u->row));
	if (!u || !u->row) {
		free(u);
		return err_nomem(err);
	}
	u->rows = json_incref((json_t *)(uintptr_t)rows);
	while (rc == 0 && u->n < n) {
		struct users_row *row = &u->row[u->n];

		rc = read_row(json_array_get(rows, u->n++), row, err);
		u->has_groups |= row->kind == USERS_OF_GROUP;
	}
	if (rc < 0) {
		users_free(u);
		return rc;
	}
	*ret = u;
	return 0;
}

void users_free(struct users *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->n; i++) {
		free(u->row[i].may.languages.item);
		free(u->row[i].may.backends.item);
		free(u->row[i].may.environments.item);
	}
	json_decref(u->rows);
	free(u->row);
	free(u);
}

/* ---- lookup ------------------------------------------------------------------------------------------------- */

bool users_groups(const struct users *u, int peer, gid_t **ret, size_t *ret_n)
{
	socklen_t len = 64 * sizeof(gid_t);

	*ret = NULL;
	*ret_n = 0;
	if (!u || !u->has_groups)
		return true;
	for (int i = 0; i < 2 && len <= GROUPS_MAX * sizeof(gid_t); i++) {
		free(*ret);
		*ret = malloc(len + sizeof(gid_t));
		if (!*ret)
			return false;
		if (getsockopt(peer, SOL_SOCKET, SO_PEERGROUPS, *ret, &len) == 0) {
			*ret_n = len / sizeof(gid_t);
			return true;
		}
		if (errno != ERANGE) /* the kernel has stored the required length in len */
			return false;
	}
	return false;
}

static bool is_member(const struct users_peer *who, uint32_t group)
{
	for (size_t i = 0; i < who->n_groups; i++)
		if (who->groups[i] == group)
			return true;
	return who->gid == group;
}

const struct users_row *users_find(const struct users *u, const struct users_peer *who)
{
	bool is_other = who->uid != 0 && who->uid != geteuid();

	for (size_t i = 0; u && i < u->n; i++) {
		const struct users_row *row = &u->row[i];

		if ((row->kind == USERS_ONE && row->id == who->uid) || (row->kind == USERS_ALL && is_other) ||
		    (row->kind == USERS_OF_GROUP && is_other && is_member(who, row->id)))
			return row;
	}
	return NULL;
}
