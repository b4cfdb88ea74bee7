/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of environments in the state folder, for the files of this folder that make, list and remove them. */
#ifndef EXECUTOR_ENVIRONMENT_FILES_H
#define EXECUTOR_ENVIRONMENT_FILES_H

#include "executor/environment.h"
#include "store/store.h"
#include "sys/statedir.h"

/* The folder of the documents.  0 with a descriptor that is none: there is no environment yet. */
int environments_open(struct recorder *recorder, bool make, struct statedir *ret, struct brig_error *err);
/* Excludes others who change documents or pins until the folder is closed. */
int environments_lock(const struct statedir *dir, struct brig_error *err);

/* The names of all documents, sorted; heap, for environments_names_release(). */
struct environment_names {
	char **name;
	size_t n;
};
int environments_names(const struct statedir *dir, struct environment_names *ret, struct brig_error *err);
void environments_names_release(struct environment_names *names);

/* Whether there may be one more, of this name: before a set is installed for nothing, and within the lock when it is to be kept. */
int environments_check_free(const struct statedir *dir, const char *name, struct brig_error *err);

/* One document.  err->sys is ENOENT if there is none. */
int environment_load(const struct statedir *dir, const char *name, struct environment *ret, struct brig_error *err);
int environment_save(const struct statedir *dir, const struct environment *env, struct brig_error *err);
int environment_unlink(const struct statedir *dir, const char *name, struct brig_error *err);
/* Fills err: there is no environment of that name, and which there are. */
int environment_unknown(const struct statedir *dir, const char *name, struct brig_error *err);

/* The key of its set in the store. */
bool environment_key(const struct environment *env, struct store_key *ret);
/*
 * Within the lock: removes pins that no document names, left by a killed process.  Nothing if a document cannot be
 * read: what it names is not known.
 */
int environments_sweep(const struct statedir *dir, struct store *s, struct brig_error *err);

#endif
