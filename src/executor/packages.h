/* SPDX-License-Identifier: Apache-2.0 */
/* Packages that a request asks for, from the store of the state folder or an install cell: see packages.c. */
#ifndef EXECUTOR_PACKAGES_H
#define EXECUTOR_PACKAGES_H

#include "egress/egress.h"
#include "executor/prepare.h"
#include "executor/record.h"
#include "executor/select.h"
#include "lang/lang.h"
#include "model/result.h"
#include "packages/environment.h"
#include "packages/packages.h"
#include "store/store.h"

/* Of one request; zero but for the trees is an unused one. */
struct packages {
	const struct ecosystem *eco; /* NULL: nothing is wanted */
	struct registry registry;
	char passed[ARRAY_LEN(((struct ecosystem *)0)->pass_env)][PACKAGES_WORD_MAX + 32]; /* NAME=VALUE; "": not set */
	struct setting_list hosts; /* that the install cell may reach */
	struct package_files files;
	const char **words; /* heap: packages of the request, sorted */
	size_t n_words;
	struct store *store;
	struct store_key key;
	struct store_key shared;   /* what others call it; zero: nobody is asked */
	struct store_key made_for; /* no entry's: a hash of the runtime, the machine and its C library */
	struct store_tree tree;
	struct store_import import;
	uint64_t begun_ns;      /* when its installation began; 0: it was there */
	protection_set missing; /* what its cell is known to go without */
	/* what the plans point to */
	struct provision provision;
	struct plan_bind bind[2];
	struct plan_file staged[ARRAY_LEN(((struct ecosystem *)0)->staged)];
	struct buf staged_text[ARRAY_LEN(((struct ecosystem *)0)->staged)];
	char beside_source[PATH_MAX], beside_target[64], beside_same[128];
};
#define PACKAGES_INIT                    \
	{                                \
		.tree = STORE_TREE_INIT, \
	}

struct packages_ask {
	const struct prepared_request *request;
	const struct selection *chosen;
	const struct brig_request *req;
	struct recorder *recorder;
	const struct brig_exchange *exchange; /* who may have them; NULL: nobody */
	const struct plan_workspace *project; /* NULL: none */
};

bool packages_wanted(const struct brig_request *req);
/* Whose packages they would be; NULL: nobody's. */
const struct ecosystem *packages_ecosystem(const struct prepared_request *pr);
/* The store of package sets, in the state folder of the recorder. */
int packages_open_store(struct recorder *recorder, const struct settings *set, struct store **ret,
			struct brig_error *err);
/* 1: they are there; 0: install them, in the cell of packages_prepare_install(); negative: they are not available. */
int packages_begin(struct packages *p, const struct packages_ask *ask, struct result *res, struct brig_error *err);
/*
 * The set of an environment, as it was made, instead: nothing is installed.  BRIG_E_REFUSED: it is not for this cell, or
 * not there any more, and err says what to do.
 */
int packages_take(struct packages *p, const struct packages_ask *ask, const struct environment *env, struct result *res,
		  struct brig_error *err);
/*
 * What an environment of this host says of the machine that it is for: 1, and a hash by which it is known here, or on every host
 * with the same programs; 0: that of the backend means the same everywhere.
 */
int packages_made_for(const struct ecosystem *e, const char *backend, enum lang_identity of,
		      char ret[STORE_HEX_LEN + 1], struct brig_error *err);
/* Everything that the install cell needs. */
struct install {
	struct prepared prepared;
	char registry_env[REGISTRY_URL_MAX + 64], trusted_env[SETTING_ITEM_MAX + 32];
	const char *argv[PACKAGES_WORDS_MAX + 8];
	const char *env[48];
	char *script; /* heap */
};
int packages_prepare_install(const struct packages *p, const struct packages_ask *ask, struct install *ret,
			     struct brig_error *err);
/* What its cell may reach; points to p. */
struct egress_rules packages_rules(const struct packages *p, const struct settings *set);
void install_release(struct install *i);
/* Tells the caller how far it is: bytes that were received or, when it is done, that are kept. */
void packages_tell(const struct packages *p, const struct packages_ask *ask, uint64_t bytes, bool done);
/* Takes the registry's credentials out of what an installer wrote. */
void packages_hide_secrets(const struct packages *p, struct buf *out, struct buf *err);
/* Given to the stage: takes over what the cell left, when it is dead and has kept every promise. */
int packages_harvest(void *packages, int tree, struct brig_error *err);
/* After a success. */
int packages_end(struct packages *p, const struct packages_ask *ask, struct result *res, struct brig_error *err);
/* After a failure: why, in a sentence, for people; by what the installer wrote, too. */
void packages_explain(const struct packages *p, struct result *res, const struct buf *out, const struct buf *err);
void packages_release(struct packages *p);

#endif
