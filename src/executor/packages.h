/* SPDX-License-Identifier: Apache-2.0 */
/* Packages for a request, from the store of the state folder or an install cell: see packages.c. */
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

/* For one request; unused if zero except for the trees. */
struct packages {
	const struct ecosystem *eco; /* NULL: no packages are requested */
	struct registry registry;
	char passed[ARRAY_LEN(((struct ecosystem *)0)->pass_env)][PACKAGES_WORD_MAX + 32]; /* NAME=VALUE; "": not set */
	struct setting_list hosts; /* the install cell may connect to these */
	struct package_files files;
	const char **words; /* heap: packages of the request, sorted */
	size_t n_words;
	struct store *store;
	struct store_key key;
	struct store_key shared;   /* the key on other hosts; zero: other hosts are not asked */
	struct store_key made_for; /* not a store key: a hash of the runtime, the machine and its C library */
	struct store_tree tree;
	struct store_import import;
	uint64_t begun_ns;      /* when the installation began; 0: the set was in the store */
	protection_set missing; /* protections that the install cell lacks */
	/* Referenced by the plans. */
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
	const struct brig_exchange *exchange; /* other hosts that may have the set; NULL: none */
	const struct plan_workspace *project; /* NULL: none */
};

bool packages_wanted(const struct brig_request *req);
/* The ecosystem for the request's language; NULL: none. */
const struct ecosystem *packages_ecosystem(const struct prepared_request *pr);
/* The store of package sets, in the state folder of the recorder. */
int packages_open_store(struct recorder *recorder, const struct settings *set, struct store **ret,
			struct brig_error *err);
/* 1: the set is available; 0: install it, in the cell of packages_prepare_install(); negative: it is not available. */
int packages_begin(struct packages *p, const struct packages_ask *ask, struct result *res, struct brig_error *err);
/*
 * Uses the set of an environment as it is, without installing. BRIG_E_REFUSED: it does not suit this cell or is gone;
 * err says what to do.
 */
int packages_take(struct packages *p, const struct packages_ask *ask, const struct environment *env, struct result *res,
		  struct brig_error *err);
/*
 * A hash of the machine that an environment is made for, valid on this host or on every host with the same programs
 * (of): 1; 0: the backend's own runtimes are the same everywhere.
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
/* What the install cell may connect to; points into p. */
struct egress_rules packages_rules(const struct packages *p, const struct settings *set);
void install_release(struct install *i);
/* Reports progress: bytes received or, if done, bytes kept. */
void packages_tell(const struct packages *p, const struct packages_ask *ask, uint64_t bytes, bool done);
/* Removes the registry's credentials from the installer's output. */
void packages_hide_secrets(const struct packages *p, struct buf *out, struct buf *err);
/* For the stage's on_harvest: takes the installed tree from a dead cell that kept all protections. */
int packages_harvest(void *packages, int tree, struct brig_error *err);
/* To be called after success. */
int packages_end(struct packages *p, const struct packages_ask *ask, struct result *res, struct brig_error *err);
/* After a failure: explains the reason in a sentence, also from the installer's output. */
void packages_explain(const struct packages *p, struct result *res, const struct buf *out, const struct buf *err);
void packages_release(struct packages *p);

#endif
