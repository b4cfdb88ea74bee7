/* SPDX-License-Identifier: Apache-2.0 */
/* Environments of the state folder: made, found for a run, listed, removed.  See environment.c. */
#ifndef EXECUTOR_ENVIRONMENT_H
#define EXECUTOR_ENVIRONMENT_H

#include "executor/executor.h"
#include "executor/prepare.h"
#include "executor/record.h"
#include "model/result.h"
#include "packages/environment.h"

struct rulebook;

#define ENVIRONMENTS_MAX 256 /* of one state folder */

/* ---- what a run uses ----------------------------------------------------------------------------- */

struct used_environment {
	struct environment env; /* name "": none */
	struct buf warm;        /* modules with commas between them, the environment's or the policy's */
};

/*
 * The one that the request or else the policy names, and the warm-up list.  Not the policy's for a program of another
 * language, or one that asks for packages itself.  BRIG_E_REFUSED: there is none of that name, or it is not for this run.
 */
int environment_find(struct used_environment *ret, const struct prepared_request *pr, const struct brig_request *req,
		     struct recorder *recorder, struct brig_error *err);
void environment_drop(struct used_environment *u);

/* ---- care ---------------------------------------------------------------------------------------- */

/*
 * Makes one: installs its packages and loads the modules of its warm-up list in cells, as a run does, and keeps it if
 * all of that went well.  What went wrong is a verdict of *ret (initialised by the caller); negative: the request is
 * invalid.
 */
int environment_create(const struct executor *x, const struct brig_environment *wish, struct result *ret,
		       struct brig_error *err);

/* Whether environment_create() would try: 0, or what is no wish about it. */
int environment_check_wish(const struct brig_environment *wish, struct brig_error *err);

/* Where an environment's packages are. */
enum environment_set { ENVIRONMENT_NO_SET, ENVIRONMENT_SET_THERE, ENVIRONMENT_SET_MISSING };

struct environment_row {
	const char *name;
	const struct environment *env; /* NULL: its document cannot be read, and problem says why */
	const char *problem;
	enum environment_set set;
};
/* Calls each of them, by name in order; a name that is given: that one alone, and it is an error if there is none. */
typedef int (*environment_row_fn)(void *arg, const struct environment_row *row, struct brig_error *err);
int environment_each(struct recorder *recorder, const struct settings *set, const char *name, environment_row_fn each,
		     void *arg, struct brig_error *err);

/* What became of the packages of one that was removed. */
enum environment_left { ENVIRONMENT_LEFT_NOTHING, ENVIRONMENT_LEFT_GONE, ENVIRONMENT_LEFT_KEPT };
/* Removes one, also one whose document cannot be read. */
int environment_remove(struct recorder *recorder, const struct settings *set, const char *name,
		       enum environment_left *ret, struct brig_error *err);

/* ---- from host to host (environment_exchange.c) --------------------------------------------------- */

#define ENVIRONMENT_PARCEL "environment" /* the kind of what is exchanged (brig/exchange.h) */

struct environment_parcel {
	char content[ENVIRONMENT_HASH_HEX + 1]; /* a hash of its document, which has that of its set */
	uint64_t created_s;
};
/* By which others ask for the environment of this name. */
void environment_parcel_key(const char *name, char ret[ENVIRONMENT_HASH_HEX + 1]);
/* Writes the environment that is asked for by this key to out, with a set of at most so many bytes.  1; 0: there is none. */
int environment_pack(struct recorder *recorder, const struct settings *set, const char *key, uint64_t most, int out,
		     struct environment_parcel *ret, struct brig_error *err);
/*
 * Keeps what was packed so, read from in, as if it had been made here.  BRIG_E_REFUSED: it is not what content says, or not what was
 * asked for, or for another runtime, or there is one of its name already.
 */
int environment_unpack(struct recorder *recorder, const struct settings *set, const char *key, const char *content,
		       int in, struct brig_error *err);

#endif
