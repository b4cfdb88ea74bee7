/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of environments in the state folder, shared by the files here that create, list and remove them. */
#ifndef EXECUTOR_ENVIRONMENT_FILES_H
#define EXECUTOR_ENVIRONMENT_FILES_H

#include "executor/environment.h"
#include "store/store.h"
#include "sys/statedir.h"

/* Opens the folder of the documents. 0 with an invalid descriptor: there is no environment yet. */
int environments_open(struct recorder *recorder, bool make, struct statedir *ret, struct brig_error *err);
/* Locks out other writers of documents or pins until the folder is closed. */
int environments_lock(const struct statedir *dir, struct brig_error *err);

/* The names of all documents, sorted; for environments_names_release(). */
struct environment_names {
	char **name;
	size_t n;
};
int environments_names(const struct statedir *dir, struct environment_names *ret, struct brig_error *err);
void environments_names_release(struct environment_names *names);

/*
 * Checks that the name is free and the limit not reached: once before installing a set, and again under the lock before
 * keeping it.
 */
int environments_check_free(const struct statedir *dir, const char *name, struct brig_error *err);

/* Reads one document; err->sys is ENOENT if there is none. */
int environment_load(const struct statedir *dir, const char *name, struct environment *ret, struct brig_error *err);
int environment_save(const struct statedir *dir, const struct environment *env, struct brig_error *err);
int environment_unlink(const struct statedir *dir, const char *name, struct brig_error *err);
/* Fills err: the environment does not exist; names those that do. */
int environment_unknown(const struct statedir *dir, const char *name, struct brig_error *err);

/* The store key of its package set. */
bool environment_key(const struct environment *env, struct store_key *ret);
/*
 * Under the lock: removes pins that no document names, left by a killed process. Does nothing if a document is
 * unreadable, since the set it names is unknown.
 */
int environments_sweep(const struct statedir *dir, struct store *s, struct brig_error *err);

#endif
