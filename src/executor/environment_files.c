/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of environments:
 *
 *	environments/NAME.json    the document (packages/environment.c), always replaced as a whole
 *
 * An environment with packages also has a pin in the store of package sets, under a key of its own. Creating or
 * removing one requires the lock of the folder. The pin is created before the document and removed after it; if the
 * process is killed in between, the pin has no document, and the next holder of the lock removes it.
 */
#include "executor/environment_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"

#define FOLDER           "environments"
#define ENDING           ".json"
#define LOCK_PATIENCE_MS 10000 /* it is held for milliseconds only */
#define LOCK_PAUSE_MS    10
#define NAMES_SHOWN_MAX  20

int environments_open(struct recorder *recorder, bool make, struct statedir *ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	const struct statedir *state;
	int rc = recorder_dir(recorder, &state, err);

	if (rc < 0)
		return rc;
	*ret = (struct statedir)STATEDIR_INIT;
	rc = statedir_open_sub(state, FOLDER, make, ret, &why);
	if (rc < 0 && why.sys == ENOENT && !make)
		return 0;
	if (rc < 0 && err)
		*err = why;
	return rc;
}

int environments_lock(const struct statedir *dir, struct brig_error *err)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * NS_PER_MS };
	uint64_t deadline = clock_now_ns() + LOCK_PATIENCE_MS * NS_PER_MS;

	while (flock(dir->fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return statedir_trouble(err, errno, "cannot lock the folder", dir->path, NULL);
		if (clock_now_ns() > deadline)
			return err_set(err, BRIG_E_SYSTEM, 0, "another process has held the lock of %s for %d s",
				       dir->path, LOCK_PATIENCE_MS / 1000);
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* ---- names --------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "data" for "data.json"; false: not a document of an environment. */
static bool name_of_file(const char *file, char name[ENVIRONMENT_NAME_MAX + 1])
{
	size_t len = strlen(file), end = strlen(ENDING);

	if (len <= end || len - end > ENVIRONMENT_NAME_MAX || !str_eq(file + len - end, ENDING))
		return false;
	(void)snprintf(name, ENVIRONMENT_NAME_MAX + 1, "%.*s", (int)(len - end), file);
	return environment_is_name(name);
}

static const char *file_of_name(const char *name, char file[ENVIRONMENT_NAME_MAX + sizeof(ENDING)])
{
	(void)snprintf(file, ENVIRONMENT_NAME_MAX + sizeof(ENDING), "%.*s" ENDING, ENVIRONMENT_NAME_MAX, name);
	return file;
}

int environments_names(const struct statedir *dir, struct environment_names *ret, struct brig_error *err)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char name[ENVIRONMENT_NAME_MAX + 1];
	bool failed = false;

	*ret = (struct environment_names){ .n = 0 };
	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return statedir_trouble(err, errno, "cannot list the folder", dir->path, NULL);
	}
	for (const struct dirent *e; !failed && ret->n < ENVIRONMENTS_MAX && (e = readdir(d));)
		if (name_of_file(e->d_name, name))
			failed = !environment_add_word(&ret->name, &ret->n, name);
	(void)closedir(d);
	if (failed) {
		environments_names_release(ret);
		return err_nomem(err);
	}
	if (ret->n > 0)
		qsort(ret->name, ret->n, sizeof(*ret->name), by_name);
	return 0;
}

void environments_names_release(struct environment_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->name[i]);
	free(names->name);
	*names = (struct environment_names){ .n = 0 };
}

int environments_check_free(const struct statedir *dir, const char *name, struct brig_error *err)
{
	struct environment_names names = { .n = 0 };
	int rc = environments_names(dir, &names, err);
	bool full = names.n >= ENVIRONMENTS_MAX, taken = false;

	for (size_t i = 0; i < names.n; i++)
		taken = taken || str_eq(names.name[i], name);
	environments_names_release(&names);
	if (rc < 0)
		return rc;
	if (taken)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "there is an environment '%s' already: remove it first with brig env remove %s", name,
			       name);
	if (full)
		return err_set(err, BRIG_E_REFUSED, 0, "there are %d environments already, and no more are kept",
			       ENVIRONMENTS_MAX);
	return 0;
}

int environment_unknown(const struct statedir *dir, const char *name, struct brig_error *err)
{
	struct environment_names there = { .n = 0 };
	AUTO_BUF list = BUF_INIT(300);

	if (dir->fd >= 0)
		(void)environments_names(dir, &there, NULL);
	for (size_t i = 0; i < there.n && i < NAMES_SHOWN_MAX; i++)
		(void)buf_addf(&list, "%s%s", i ? ", " : "", there.name[i]);
	if (there.n > NAMES_SHOWN_MAX)
		(void)buf_adds(&list, " ...");
	environments_names_release(&there);
	(void)err_set(err, BRIG_E_REFUSED, 0, "there is no environment '%.*s'; %s%s", ENVIRONMENT_NAME_MAX, name,
		      list.len ? "there are: " : "there is none: brig env create makes one", buf_str(&list));
	return -BRIG_E_REFUSED;
}

/* ---- documents ----------------------------------------------------------------------------------- */

int environment_load(const struct statedir *dir, const char *name, struct environment *ret, struct brig_error *err)
{
	AUTO_FREE char *text = malloc(ENVIRONMENT_DOCUMENT_MAX + 1);
	char file[ENVIRONMENT_NAME_MAX + sizeof(ENDING)];
	ssize_t len;

	*ret = (struct environment){ .n_warm = 0 };
	if (!text)
		return err_nomem(err);
	len = statedir_read(dir, file_of_name(name, file), text, ENVIRONMENT_DOCUMENT_MAX + 1, err);
	if (len < 0)
		return (int)len;
	if (environment_read(text, (size_t)len, ret, err) == 0 && !str_eq(ret->name, name)) {
		environment_release(ret);
		(void)err_set(err, BRIG_E_REFUSED, 0, "it is the document of another one");
	}
	if (ret->eco)
		return 0;
	return err_wrap(err, "environment '%s' cannot be used (%s/%s): remove it with brig env remove %s", name,
			dir->path, file, name);
}

int environment_save(const struct statedir *dir, const struct environment *env, struct brig_error *err)
{
	char file[ENVIRONMENT_NAME_MAX + sizeof(ENDING)];
	json_t *doc = environment_json(env);
	char *text = doc ? json_dumps(doc, JSON_INDENT(2)) : NULL;
	int rc;

	json_decref(doc);
	if (!text)
		return err_nomem(err);
	rc = statedir_replace(dir, file_of_name(env->name, file), text, strlen(text), err);
	free(text);
	return rc;
}

int environment_unlink(const struct statedir *dir, const char *name, struct brig_error *err)
{
	char file[ENVIRONMENT_NAME_MAX + sizeof(ENDING)];

	if (unlinkat(dir->fd, file_of_name(name, file), 0) < 0)
		return statedir_trouble(err, errno, "cannot remove", dir->path, file);
	(void)fsync(dir->fd);
	return 0;
}

/* ---- pins ---------------------------------------------------------------------------------------- */

bool environment_key(const struct environment *env, struct store_key *ret)
{
	*ret = (struct store_key){ .kind = "" };
	return str_copy(ret->kind, sizeof(ret->kind), env->eco->name) && hex_get(env->key, ret->hash, STORE_HASH_LEN);
}

/* 1: a document has this key; 0: none has; negative: one cannot be read. */
static int is_named(const struct statedir *dir, const struct environment_names *names, const struct store_key *key)
{
	for (size_t i = 0; i < names->n; i++) {
		struct environment env;
		struct store_key its;
		bool same;

		if (environment_load(dir, names->name[i], &env, NULL) < 0)
			return -1;
		same = environment_key(&env, &its) && memcmp(its.hash, key->hash, sizeof(its.hash)) == 0;
		environment_release(&env);
		if (same)
			return 1;
	}
	return 0;
}

int environments_sweep(const struct statedir *dir, struct store *s, struct brig_error *err)
{
	struct environment_names names = { .n = 0 };
	struct store_list list = { .row = NULL };
	int rc = environments_names(dir, &names, err), named = 0;
	bool gone;

	if (rc == 0)
		rc = store_list(s, &list, err);
	for (size_t i = 0; rc == 0 && named >= 0 && i < list.n; i++) {
		if (!list.row[i].pinned)
			continue;
		named = is_named(dir, &names, &list.row[i].key);
		if (named == 0)
			rc = store_unpin(s, &list.row[i].key, &gone, err);
	}
	store_list_release(&list);
	environments_names_release(&names);
	return rc;
}
