/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys with which this host signs: one at a time, made on first use, replaced by `brig key rotate`.
 *
 *	<state>/keys/public        every key of all times, one per line: id, public key, from, until ("-": still used)
 *	<state>/keys/<id>.secret   the seed of the current one, 0600; those of retired keys are wiped and removed
 *	<state>/keys/lock          held while these are changed
 *
 * An id is the first eight bytes of the public key's SHA-256.  Anyone who can read the secret can sign: keep the folder
 * to the user that brig runs as.
 */
#ifndef AUDIT_KEYS_H
#define AUDIT_KEYS_H

#include "sys/crypto.h"
#include "sys/statedir.h"

#define KEY_ID_LEN   16
#define KEY_TIME_LEN 24
#define KEYS_MAX     256

struct public_key {
	char id[KEY_ID_LEN + 1];
	uint8_t pub[SIGN_PUB_LEN];
	char from[KEY_TIME_LEN + 1];
	char until[KEY_TIME_LEN + 1]; /* "": still used */
};

struct keyring {
	struct public_key key[KEYS_MAX];
	size_t n;
};

void key_id(const uint8_t pub[SIGN_PUB_LEN], char dst[KEY_ID_LEN + 1]);
/* Every public key, oldest first; none is not an error.  With make, the first one is made. */
int keyring_load(const struct statedir *state, bool make, struct keyring *ret, struct brig_error *err);
const struct public_key *keyring_find(const struct keyring *ring, const char *id);
const struct public_key *keyring_current(const struct keyring *ring); /* NULL: none */

/* Signs with the current key, which is made if there is none.  Fills *ret_key with it. */
int keys_sign(const struct statedir *state, const void *data, size_t len, uint8_t sig[SIGN_LEN],
	      struct public_key *ret_key, struct brig_error *err);
/*
 * Replaces the current key by a new one.  announce is called when the new one is in the ring and the old one can still
 * sign, with the old key's signature over the text that key_rotation_text() makes; if it fails nothing is undone.
 */
typedef int (*key_announce_fn)(void *arg, const struct public_key *old, const struct public_key *now,
			       const uint8_t sig[SIGN_LEN], struct brig_error *err);
int keys_rotate(const struct statedir *state, key_announce_fn announce, void *arg, struct brig_error *err);
#define KEY_ROTATION_TEXT_MAX 256
size_t key_rotation_text(char dst[KEY_ROTATION_TEXT_MAX], const char *old_id, const uint8_t now[SIGN_PUB_LEN]);

#endif
