/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/when.h"

#define KEYS_DIR      "keys"
#define KEYS_RING     "public"
#define KEYS_LOCK     "lock"
#define KEYS_PATIENCE (10 * NS_PER_SEC)
#define RING_LINE_MAX 160
#define RING_MAX      (KEYS_MAX * RING_LINE_MAX)

void key_id(const uint8_t pub[SIGN_PUB_LEN], char dst[KEY_ID_LEN + 1])
{
	uint8_t hash[SHA256_LEN];

	sha256(pub, SIGN_PUB_LEN, hash);
	(void)hex_put(dst, hash, KEY_ID_LEN / 2);
}

const struct public_key *keyring_find(const struct keyring *ring, const char *id)
{
	for (size_t i = 0; i < ring->n; i++)
		if (str_eq(ring->key[i].id, id))
			return &ring->key[i];
	return NULL;
}

const struct public_key *keyring_current(const struct keyring *ring)
{
	return ring->n && !*ring->key[ring->n - 1].until ? &ring->key[ring->n - 1] : NULL;
}

/* ---- the ring's file ------------------------------------------------------------------------------ */

/* "<id> <public> <from> <until>" */
static bool ring_line(char *line, struct public_key *ret)
{
	char *save = NULL, id[KEY_ID_LEN + 1];
	const char *word[4];

	for (size_t i = 0; i < ARRAY_LEN(word); i++) {
		word[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!word[i])
			return false;
	}
	if (strlen(word[1]) != 2 * SIGN_PUB_LEN || !hex_get(word[1], ret->pub, SIGN_PUB_LEN) ||
	    !str_copy(ret->from, sizeof(ret->from), word[2]) ||
	    !str_copy(ret->until, sizeof(ret->until), str_eq(word[3], "-") ? "" : word[3]))
		return false;
	key_id(ret->pub, id);
	(void)str_copy(ret->id, sizeof(ret->id), id);
	return str_eq(id, word[0]); /* the name must be the key's own */
}

static int ring_read(const struct statedir *dir, struct keyring *ret, struct brig_error *err)
{
	AUTO_FREE char *text = malloc(RING_MAX);
	struct brig_error local = BRIG_ERROR_INIT;
	char *save = NULL;
	ssize_t n;

	ret->n = 0;
	if (!text)
		return err_nomem(err);
	n = statedir_read(dir, KEYS_RING, text, RING_MAX, &local);
	if (n < 0 && local.sys == ENOENT)
		return 0;
	if (n < 0) {
		if (err)
			*err = local;
		return (int)n;
	}
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (ret->n == KEYS_MAX || !ring_line(line, &ret->key[ret->n++]))
			return err_set(err, BRIG_E_REFUSED, 0,
				       "'%.200s/" KEYS_RING "' is not a list of keys of brig: put the right one back",
				       dir->path);
	return 0;
}

static int ring_write(const struct statedir *dir, const struct keyring *ring, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(RING_MAX);
	char hex[2 * SIGN_PUB_LEN + 1];

	for (size_t i = 0; i < ring->n; i++) {
		const struct public_key *k = &ring->key[i];

		buf_addf(&text, "%s %s %s %s\n", k->id, hex_put(hex, k->pub, SIGN_PUB_LEN), k->from,
			 *k->until ? k->until : "-");
	}
	if (text.no_memory || text.full)
		return err_nomem(err);
	return statedir_replace(dir, KEYS_RING, buf_str(&text), text.len, err);
}

/* ---- secrets ---------------------------------------------------------------------------------------- */

#define SECRET_NAME_MAX (KEY_ID_LEN + 16)

static void secret_name(char dst[SECRET_NAME_MAX], const char *id)
{
	(void)snprintf(dst, SECRET_NAME_MAX, "%.16s.secret", id);
}

static int secret_read(const struct statedir *dir, const struct public_key *key, uint8_t seed[SIGN_SEED_LEN],
		       struct brig_error *err)
{
	char name[SECRET_NAME_MAX], text[2 * SIGN_SEED_LEN + 2];
	uint8_t pub[SIGN_PUB_LEN];
	ssize_t n;
	bool good;

	secret_name(name, key->id);
	n = statedir_read(dir, name, text, sizeof(text), err);
	good = n >= 2 * SIGN_SEED_LEN && hex_get(text, seed, SIGN_SEED_LEN) && sign_public(seed, pub) &&
	       memcmp(pub, key->pub, sizeof(pub)) == 0;
	crypto_wipe(text, sizeof(text));
	if (n < 0)
		return (int)n;
	return good ? 0
		    : err_set(err, BRIG_E_REFUSED, 0,
			      "'%.200s/%s' is not the secret of key %s: put the right one back, or remove the folder "
			      "to begin "
			      "with a new key",
			      dir->path, name, key->id);
}

/* A new key and its secret's file; the ring does not know it yet. */
static int key_make(const struct statedir *dir, struct public_key *ret, struct brig_error *err)
{
	char name[SECRET_NAME_MAX], text[2 * SIGN_SEED_LEN + 2], now[WHEN_TEXT_MAX];
	uint8_t seed[SIGN_SEED_LEN];
	int rc = crypto_random(seed, sizeof(seed));

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "the kernel gives no random numbers");
	*ret = (struct public_key){ .until = "" };
	(void)str_copy(ret->from, sizeof(ret->from), when_utc(now, sizeof(now), clock_wall_ns()));
	if (!sign_public(seed, ret->pub))
		return err_set(err, BRIG_E_INTERNAL, 0, "libsodium cannot be used");
	key_id(ret->pub, ret->id);
	secret_name(name, ret->id);
	(void)hex_put(text, seed, sizeof(seed));
	text[2 * SIGN_SEED_LEN] = '\n';
	rc = statedir_replace(dir, name, text, 2 * SIGN_SEED_LEN + 1, err);
	crypto_wipe(text, sizeof(text));
	crypto_wipe(seed, sizeof(seed));
	return rc;
}

/* Overwritten first: an unlinked file's blocks stay where they are. */
static void secret_destroy(const struct statedir *dir, const char *id)
{
	static const char zeros[2 * SIGN_SEED_LEN + 1];
	char name[SECRET_NAME_MAX];
	AUTO_FD fd = FD_NONE;

	secret_name(name, id);
	fd = statedir_open_file(dir, name, O_WRONLY, NULL);
	if (fd >= 0 && fd_write_all(fd, zeros, sizeof(zeros)) == 0)
		(void)fsync(fd);
	(void)unlinkat(dir->fd, name, 0);
}

/* ---- the folder ---------------------------------------------------------------------------------------- */

/* Opens the folder and takes its lock; *ret_lock is the caller's to close. */
static int keys_enter(const struct statedir *state, struct statedir *ret, int *ret_lock, struct brig_error *err)
{
	int rc = statedir_open_sub(state, KEYS_DIR, true, ret, err);

	if (rc < 0)
		return rc;
	*ret_lock = statedir_open_file(ret, KEYS_LOCK, O_RDWR | O_CREAT, err);
	if (*ret_lock < 0)
		return *ret_lock;
	rc = fd_lock(*ret_lock, LOCK_EX, KEYS_PATIENCE);
	return rc < 0 ? statedir_trouble(err, -rc, "cannot lock", ret->path, KEYS_LOCK) : 0;
}

/* The ring, whose last key is the current one: made if there is none. */
static int ring_with_key(const struct statedir *dir, struct keyring *ret, struct brig_error *err)
{
	int rc = ring_read(dir, ret, err);

	if (rc < 0 || keyring_current(ret))
		return rc;
	if (ret->n == KEYS_MAX)
		return err_set(err, BRIG_E_REFUSED, 0, "there are %d keys already; remove '%.200s' to begin anew",
			       KEYS_MAX, dir->path);
	rc = key_make(dir, &ret->key[ret->n], err);
	if (rc < 0)
		return rc;
	ret->n++;
	return ring_write(dir, ret, err);
}

int keyring_load(const struct statedir *state, bool make, struct keyring *ret, struct brig_error *err)
{
	AUTO_STATEDIR dir = STATEDIR_INIT;
	AUTO_FD lock = FD_NONE;
	struct brig_error local = BRIG_ERROR_INIT;
	int rc;

	ret->n = 0;
	if (make) {
		rc = keys_enter(state, &dir, &lock, err);
		return rc < 0 ? rc : ring_with_key(&dir, ret, err);
	}
	rc = statedir_open_sub(state, KEYS_DIR, false, &dir, &local);
	if (rc == 0)
		return ring_read(&dir, ret, err);
	if (local.sys == ENOENT)
		return 0;
	if (err)
		*err = local;
	return rc;
}

/* The folder of keys, locked, and a ring that has one to sign with.  ring may be NULL: there is no memory. */
static int enter_with_key(const struct statedir *state, struct statedir *dir, int *lock, struct keyring *ring,
			  struct brig_error *err)
{
	int rc = ring ? keys_enter(state, dir, lock, err) : err_nomem(err);

	return rc < 0 ? rc : ring_with_key(dir, ring, err);
}

int keys_sign(const struct statedir *state, const void *data, size_t len, uint8_t sig[SIGN_LEN],
	      struct public_key *ret_key, struct brig_error *err)
{
	AUTO_STATEDIR dir = STATEDIR_INIT;
	AUTO_FD lock = FD_NONE;
	AUTO_FREE struct keyring *ring = calloc(1, sizeof(*ring));
	uint8_t seed[SIGN_SEED_LEN];
	int rc;

	rc = enter_with_key(state, &dir, &lock, ring, err);
	if (rc < 0)
		return rc;
	*ret_key = ring->key[ring->n - 1];
	rc = secret_read(&dir, ret_key, seed, err);
	if (rc == 0 && !sign_make(seed, data, len, sig))
		rc = err_set(err, BRIG_E_INTERNAL, 0, "libsodium cannot be used");
	crypto_wipe(seed, sizeof(seed));
	return rc;
}

size_t key_rotation_text(char dst[KEY_ROTATION_TEXT_MAX], const char *old_id, const uint8_t now[SIGN_PUB_LEN])
{
	char hex[2 * SIGN_PUB_LEN + 1];

	return (size_t)snprintf(dst, KEY_ROTATION_TEXT_MAX, "brig key rotation\nold %s\nnew %s\n", old_id,
				hex_put(hex, now, SIGN_PUB_LEN));
}

/* Announced before the ring changes: a key that signs without having been announced would be worse. */
int keys_rotate(const struct statedir *state, key_announce_fn announce, void *arg, struct brig_error *err)
{
	AUTO_STATEDIR dir = STATEDIR_INIT;
	AUTO_FD lock = FD_NONE;
	AUTO_FREE struct keyring *ring = calloc(1, sizeof(*ring));
	char text[KEY_ROTATION_TEXT_MAX];
	uint8_t seed[SIGN_SEED_LEN], sig[SIGN_LEN];
	struct public_key now, *old;
	int rc;

	rc = enter_with_key(state, &dir, &lock, ring, err);
	if (rc < 0)
		return rc;
	if (ring->n == KEYS_MAX)
		return err_set(err, BRIG_E_REFUSED, 0, "there are %d keys already", KEYS_MAX);
	old = &ring->key[ring->n - 1];
	rc = secret_read(&dir, old, seed, err);
	if (rc == 0)
		rc = key_make(&dir, &now, err);
	if (rc == 0 && !sign_make(seed, text, key_rotation_text(text, old->id, now.pub), sig))
		rc = err_set(err, BRIG_E_INTERNAL, 0, "libsodium cannot be used");
	crypto_wipe(seed, sizeof(seed));
	if (rc == 0)
		rc = announce(arg, old, &now, sig, err);
	if (rc < 0)
		return rc;
	(void)str_copy(old->until, sizeof(old->until), now.from);
	ring->key[ring->n++] = now;
	rc = ring_write(&dir, ring, err);
	if (rc == 0)
		secret_destroy(&dir, ring->key[ring->n - 2].id);
	return rc;
}
