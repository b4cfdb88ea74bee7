/* SPDX-License-Identifier: Apache-2.0 */
/* Environments in the state folder: creation, lookup for a run, listing, removal. See environment.c. */
#ifndef EXECUTOR_ENVIRONMENT_H
#define EXECUTOR_ENVIRONMENT_H

#include "executor/executor.h"
#include "executor/prepare.h"
#include "executor/record.h"
#include "model/result.h"
#include "packages/environment.h"

struct rulebook;

#define ENVIRONMENTS_MAX 256 /* per state folder */

/* ---- what a run uses ----------------------------------------------------------------------------- */

struct used_environment {
	struct environment env; /* name "": none */
	struct buf warm;        /* comma-separated modules, from the environment or the policy */
};

/*
 * Finds the environment that the request or else the policy names, and the warm-up list. The policy's is not used for a
 * program in another language or one that requests packages itself. BRIG_E_REFUSED: there is no such environment, or it
 * does not suit this run.
 */
int environment_find(struct used_environment *ret, const struct prepared_request *pr, const struct brig_request *req,
		     struct recorder *recorder, struct brig_error *err);
void environment_drop(struct used_environment *u);

/* ---- management ---------------------------------------------------------------------------------- */

/*
 * Creates an environment: installs its packages and loads the modules of its warm-up list in cells, as a run does, and
 * keeps it if all of that succeeds. Failures are a verdict in *ret (initialised by the caller); negative: the request
 * is invalid.
 */
int environment_create(const struct executor *x, const struct brig_environment *wish, struct result *ret,
		       struct brig_error *err);

/* Validates a request for environment_create(): 0, or an error. */
int environment_check_wish(const struct brig_environment *wish, struct brig_error *err);

/* The state of an environment's package set. */
enum environment_set { ENVIRONMENT_NO_SET, ENVIRONMENT_SET_THERE, ENVIRONMENT_SET_MISSING };

struct environment_row {
	const char *name;
	const struct environment *env; /* NULL: its document is unreadable; see problem */
	const char *problem;
	enum environment_set set;
};
/*
 * Calls each() for all environments in order of name, or only for the named one; it is an error if that does not exist.
 */
typedef int (*environment_row_fn)(void *arg, const struct environment_row *row, struct brig_error *err);
int environment_each(struct recorder *recorder, const struct settings *set, const char *name, environment_row_fn each,
		     void *arg, struct brig_error *err);

/* What happened to the packages of a removed environment. */
enum environment_left { ENVIRONMENT_LEFT_NOTHING, ENVIRONMENT_LEFT_GONE, ENVIRONMENT_LEFT_KEPT };
/* Removes an environment, even if its document is unreadable. */
int environment_remove(struct recorder *recorder, const struct settings *set, const char *name,
		       enum environment_left *ret, struct brig_error *err);

/* ---- exchange between hosts (environment_exchange.c) -------------------------------------------------- */

#define ENVIRONMENT_PARCEL "environment" /* its kind in an exchange (brig/exchange.h) */

struct environment_parcel {
	/* hash of its document, which contains the hash of its package set */
	char content[ENVIRONMENT_HASH_HEX + 1];
	uint64_t created_s;
};
/* The key by which other hosts ask for the environment of this name. */
void environment_parcel_key(const char *name, char ret[ENVIRONMENT_HASH_HEX + 1]);
/* Writes the environment of this key to out, with a package set of at most that many bytes. 1; 0: there is none. */
int environment_pack(struct recorder *recorder, const struct settings *set, const char *key, uint64_t most, int out,
		     struct environment_parcel *ret, struct brig_error *err);
/*
 * Reads a packed environment from in and keeps it as if it had been created here. BRIG_E_REFUSED: it does not match
 * content or key, is for another runtime, or its name is taken.
 */
int environment_unpack(struct recorder *recorder, const struct settings *set, const char *key, const char *content,
		       int in, struct brig_error *err);

#endif
