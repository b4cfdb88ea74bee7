/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment: a named set of packages, and those of its modules that are worth importing in advance.  This is its
 * document, one file in the state directory each; executor/environment.h uses it.
 */
#ifndef PACKAGES_ENVIRONMENT_H
#define PACKAGES_ENVIRONMENT_H

#include <jansson.h>

#include "model/environment.h"
#include "model/protection.h"
#include "packages/packages.h"

#define ENVIRONMENT_VERSION      1 /* of the document */
#define ENVIRONMENT_DOCUMENT_MAX (128 * KiB)
#define ENVIRONMENT_HASH_HEX     64

struct environment {
	char name[ENVIRONMENT_NAME_MAX + 1];
	const struct ecosystem *eco;
	uint64_t created_ns; /* wall clock, in milliseconds */
	char brig[32];       /* the version that made it */
	/* The cell that its packages were installed in: a cell with more protections, or more trust, does not get them.
	 */
	char backend[16];
	enum trust trust;
	protection_set missing;
	char **packages; /* heap: as they were asked for */
	size_t n_packages;
	char **warm; /* heap: modules to load beforehand, in this order */
	size_t n_warm;
	/* Of its packages; "" and 0 if it has none. */
	char key[ENVIRONMENT_HASH_HEX + 1];      /* the pin of the set in the store */
	char content[ENVIRONMENT_HASH_HEX + 1];  /* of everything in it */
	char made_for[ENVIRONMENT_HASH_HEX + 1]; /* the runtime, machine and C library that they are for */
	uint64_t files, bytes;
};

/* Reads a document; nothing in it is trusted.  BRIG_E_REFUSED: what is wrong with it, and *ret is empty. */
int environment_read(const char *text, size_t len, struct environment *ret, struct brig_error *err);
/* The document as an object; NULL: no memory. */
json_t *environment_json(const struct environment *e);
void environment_release(struct environment *e);

/* Appends a copy of a word.  False: no memory. */
bool environment_add_word(char ***list, size_t *n, const char *word);

#endif
