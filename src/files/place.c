/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Homes are those of /etc/passwd, $HOME, and anything directly in a folder of homes: accounts of a directory service
 * are in no file, and querying them may wait for the network.
 */
#include "files/place.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

#define ACCOUNTS_FILE "/etc/passwd"
#define ACCOUNT_MAX   4096   /* bytes of a line */
#define ACCOUNTS_MAX  200000 /* lines */
#define PERSON_FROM   1000   /* ids below, but for root, are the system's own accounts */
#define NOBODY        65534

enum reach { ITSELF, CHILDREN, BELOW };

static const struct place {
	const char *path;
	enum reach reach;
} places[] = {
#define PLACE(path, reach) { path, reach },
#include "files/places.def"
};

/* Whether path is folder, or below it. */
static bool is_in(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (len == 1)
		return true; /* the root */
	return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static const struct place *place_of(const char *path)
{
	const struct place *best = &places[0];

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (is_in(path, places[i].path) && strlen(places[i].path) >= strlen(best->path))
			best = &places[i];
	return best;
}

static bool is_system(const char *path)
{
	const struct place *p = place_of(path);

	return p->reach == BELOW || str_eq(p->path, path);
}

/* ---- homes ------------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* By name; by what it is only if its last part is the same, so that no other home is touched, or mounted. */
static bool is_this(const struct folder *f, const char *home)
{
	struct stat st, own;

	if (str_eq(f->path, home))
		return true;
	return str_eq(last_part(f->path), last_part(home)) && stat(home, &st) == 0 && fstat(f->fd, &own) == 0 &&
	       st.st_dev == own.st_dev && st.st_ino == own.st_ino;
}

/* A line "name:password:uid:gid:text:home:shell".  A folder that contains a home folder cannot be a project either. */
static bool is_home_of(const struct folder *f, char *line)
{
	char *field[7], *next = line;
	uint64_t uid;
	size_t len;

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		if (!(field[i] = strsep(&next, ":")))
			return false;
	len = strlen(field[5]);
	while (len > 1 && field[5][len - 1] == '/')
		field[5][--len] = '\0';
	if (len < 2 || *field[5] != '/' || !str_to_u64(field[2], &uid))
		return false;
	if (is_this(f, field[5]))
		return true;
	return (uid == 0 || (uid >= PERSON_FROM && uid != NOBODY)) && is_in(field[5], f->path);
}

static bool is_home_of_account(const struct folder *f)
{
	FILE *in = fopen(ACCOUNTS_FILE, "re");
	char line[ACCOUNT_MAX];
	bool found = false;

	for (size_t i = 0; in && !found && i < ACCOUNTS_MAX && fgets(line, sizeof(line), in); i++)
		found = is_home_of(f, line);
	if (in)
		(void)fclose(in);
	return found;
}

static bool is_own_home(const struct folder *f)
{
	const char *home = secure_getenv("HOME");
	char real[PATH_MAX];

	return home && realpath(home, real) && str_eq(real, f->path);
}

static bool is_home(const struct folder *f)
{
	const struct place *p = place_of(f->path);

	if (p->reach == CHILDREN && !strchr(f->path + strlen(p->path) + 1, '/'))
		return true;
	return is_own_home(f) || is_home_of_account(f);
}

/* ---- the state folder -------------------------------------------------------------------------- */

/* The path without links, also if its last parts are not there yet: those are compared by name. */
static bool real_or_future(const char *path, char real[PATH_MAX])
{
	char part[PATH_MAX], found[PATH_MAX];
	const char *rest;

	if (!str_copy(part, sizeof(part), path))
		return false;
	while (!realpath(*part ? part : ".", found)) {
		char *slash = strrchr(part, '/');

		if (errno != ENOENT || !*part)
			return false;
		if (slash)
			slash[slash == part] = '\0';
		else
			*part = '\0';
	}
	rest = path + strlen(part);
	while (*rest == '/')
		rest++;
	return (size_t)snprintf(real, PATH_MAX, "%s%s%s", found, *rest ? "/" : "", rest) < PATH_MAX;
}

int place_check(const struct folder *f, const char *what, const char *state, struct brig_error *err)
{
	char real[PATH_MAX];

	if (is_system(f->path))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.200s' is a folder of the system, and cannot be the %s: name a folder of your own",
			       f->path, what);
	if (is_home(f))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"'%.200s' is a home folder, or holds one, and cannot be the %s: name a folder of its own in it",
			f->path, what);
	if (state && *state && real_or_future(state, real) && (is_in(real, f->path) || is_in(f->path, real)))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"brig keeps its state in '%.150s', which must not share a folder with the %s '%.150s': name "
			"another one with --state or $BRIG_STATE",
			real, what, f->path);
	return 0;
}
