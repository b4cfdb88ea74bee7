/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment_exchange.c - exchange of environments between hosts (brig/exchange.h)
 *
 * An environment travels as a parcel:
 *
 *	length of the document, eight bytes, little-endian
 *	the document, as in the state folder (packages/environment.c)
 *	its package set, in the store's packed form (store/give.c), if it has packages
 *
 * A parcel is requested by a hash of the name and identified by the hash of its document. The document contains the
 * hash of the set, which the store compares with what it unpacked, so the one hash covers everything.
 *
 * In a document of the state folder, the description of the machine includes inodes and times of the interpreter and is
 * valid on one host only. In a parcel it is replaced by a hash of the interpreter's contents. The receiver compares
 * that with its own interpreter, refuses a set for another one, and stores its own description instead.
 *
 * A received environment lasts like one created here, until it is removed here: it is pinned under the same key, and
 * later changes on the sending host do not affect it.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "executor/environment_files.h"
#include "executor/packages.h"
#include "store/entry.h"
#include "sys/crypto.h"

#define LENGTH_BYTES 8

void environment_parcel_key(const char *name, char ret[ENVIRONMENT_HASH_HEX + 1])
{
	struct store_key_maker m;
	struct store_key key;

	store_key_begin(&m, ENVIRONMENT_PARCEL);
	store_key_text(&m, "name", name);
	store_key_end(&m, &key);
	(void)hex_put(ret, key.hash, STORE_HASH_LEN);
}

static void hash_text(const char *text, size_t len, char ret[ENVIRONMENT_HASH_HEX + 1])
{
	uint8_t hash[SHA256_LEN];

	sha256(text, len, hash);
	(void)hex_put(ret, hash, sizeof(hash));
}

/* ---- out ------------------------------------------------------------------------------------------------ */

/* Finds the environment whose name has this key: 1, or 0. */
static int find(const struct statedir *dir, const char *key, struct environment *ret, struct brig_error *err)
{
	struct environment_names names = { .n = 0 };
	char its[ENVIRONMENT_HASH_HEX + 1];
	int rc = dir->fd < 0 ? 0 : environments_names(dir, &names, err);
	bool found = false;

	for (size_t i = 0; rc == 0 && !found && i < names.n; i++) {
		environment_parcel_key(names.name[i], its);
		found = str_eq(its, key);
		if (found)
			rc = environment_load(dir, names.name[i], ret, err);
	}
	environments_names_release(&names);
	return rc < 0 ? rc : found;
}

/* Converts to the form for all hosts, if the set still fits this one. */
static int make_for_all(struct environment *env, struct brig_error *err)
{
	char here[ENVIRONMENT_HASH_HEX + 1];
	int rc = env->n_packages ? packages_made_for(env->eco, env->backend, IDENTITY_HERE, here, err) : 0;

	if (rc <= 0)
		return rc;
	if (!str_eq(here, env->made_for))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "environment '%s' was made for another %s than there is here now", env->name,
			       env->eco->languages[0]);
	rc = packages_made_for(env->eco, env->backend, IDENTITY_ANYWHERE, env->made_for, err);
	return rc < 0 ? rc : 0;
}

static int write_document(const struct environment *env, int out, struct environment_parcel *ret,
			  struct brig_error *err)
{
	json_t *doc = environment_json(env);
	AUTO_FREE char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;
	uint8_t length[LENGTH_BYTES];
	int rc;

	json_decref(doc);
	if (!text)
		return err_nomem(err);
	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (uint8_t)((uint64_t)len >> (8 * i));
	hash_text(text, len, ret->content);
	ret->created_s = env->created_ns / NS_PER_SEC;
	rc = fd_write_all(out, length, sizeof(length));
	if (rc == 0)
		rc = fd_write_all(out, text, len);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot pack environment '%s'", env->name) : 0;
}

static int write_set(struct recorder *recorder, const struct settings *set, const struct environment *env,
		     uint64_t most, int out, struct brig_error *err)
{
	struct store_info info;
	struct store *s = NULL;
	struct store_key key;
	int rc;

	if (env->n_packages == 0)
		return 1;
	if (!environment_key(env, &key))
		return 0;
	rc = packages_open_store(recorder, set, &s, err);
	if (rc == 0)
		rc = store_pack(s, &key, most, out, &info, err);
	store_close(s);
	return rc < 0 ? rc : rc == STORE_HIT;
}

int environment_pack(struct recorder *recorder, const struct settings *set, const char *key, uint64_t most, int out,
		     struct environment_parcel *ret, struct brig_error *err)
{
	struct environment env = { .n_warm = 0 };
	AUTO_STATEDIR dir = STATEDIR_INIT;
	int rc = environments_open(recorder, /* make= */ false, &dir, err);

	if (rc == 0)
		rc = find(&dir, key, &env, err);
	if (rc <= 0)
		return rc;
	rc = make_for_all(&env, err);
	if (rc == 0)
		rc = write_document(&env, out, ret, err);
	if (rc == 0)
		rc = write_set(recorder, set, &env, most, out, err);
	environment_release(&env);
	return rc;
}

/* ---- in ------------------------------------------------------------------------------------------------- */

/* Nothing in it is trusted before the hash matches. */
static int read_document(int in, const char *key, const char *content, struct environment *ret, struct brig_error *err)
{
	AUTO_FREE char *text = malloc(ENVIRONMENT_DOCUMENT_MAX + 1);
	char hash[ENVIRONMENT_HASH_HEX + 1];
	uint8_t length[LENGTH_BYTES];
	uint64_t len = 0;

	if (!text)
		return err_nomem(err);
	if (fd_read_all(in, length, sizeof(length)) != (ssize_t)sizeof(length))
		return err_set(err, BRIG_E_REFUSED, 0, "what came is no environment");
	for (size_t i = sizeof(length); i-- > 0;)
		len = len << 8 | length[i];
	if (len > ENVIRONMENT_DOCUMENT_MAX || fd_read_all(in, text, len) != (ssize_t)len)
		return err_set(err, BRIG_E_REFUSED, 0, "what came is no environment");
	hash_text(text, len, hash);
	if (!str_eq(hash, content))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "what came is not what its hash says: it was altered, or is another's");
	if (environment_read(text, len, ret, err) < 0)
		return err_wrap(err, "the document of the environment that came");
	environment_parcel_key(ret->name, hash);
	if (str_eq(hash, key))
		return 0;
	environment_release(ret);
	return err_set(err, BRIG_E_REFUSED, 0, "what came is another environment than was asked for");
}

/* Converts to this host's form, if it has the same runtime. */
static int make_for_here(struct environment *env, struct brig_error *err)
{
	char anywhere[ENVIRONMENT_HASH_HEX + 1];
	int rc = env->n_packages ? packages_made_for(env->eco, env->backend, IDENTITY_ANYWHERE, anywhere, err) : 0;

	if (rc <= 0)
		return rc;
	if (!str_eq(anywhere, env->made_for))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "environment '%s' is for another %s, machine or C library than there is here: make it "
			       "here with brig env create",
			       env->name, env->eco->languages[0]);
	rc = packages_made_for(env->eco, env->backend, IDENTITY_HERE, env->made_for, err);
	return rc < 0 ? rc : 0;
}

/* A temporary key, from which the set gets pinned. */
static void passing_key(const struct environment *env, struct store_key *ret)
{
	struct store_key_maker m;

	store_key_begin(&m, env->eco->name);
	store_key_text(&m, "received environment", env->key);
	store_key_end(&m, ret);
}

static int unpack_set(struct store *s, const struct settings *set, const struct environment *env, int in,
		      struct brig_error *err)
{
	struct store_given g = { .in = in, .max = set->packages_size / 4 };
	struct store_key key;
	int rc;

	passing_key(env, &key);
	if (!store_unhex(env->content, g.content))
		return err_set(err, BRIG_E_REFUSED, 0, "the set of environment '%s' has no hash", env->name);
	rc = store_unpack(s, &key, &g, err);
	if (rc == STORE_TOO_LARGE)
		return err_set(err, BRIG_E_REFUSED, 0, "it is more than a quarter of what the store may take");
	return rc < 0 ? rc : 0;
}

static int pin(struct store *s, const struct environment *env, struct brig_error *err)
{
	struct store_key from, to;
	int rc;

	passing_key(env, &from);
	if (!environment_key(env, &to))
		return err_set(err, BRIG_E_REFUSED, 0, "the key of environment '%s' is none", env->name);
	rc = store_pin(s, &from, &to, err);
	if (rc == STORE_PIN_ABSENT)
		return err_set(err, BRIG_E_SYSTEM, 0,
			       "the packages are no longer in the cache: it was pruned meanwhile");
	if (rc == STORE_PIN_FULL)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"environments would take more than three quarters of packages_size: remove one, or raise it");
	return rc < 0 ? rc : 0;
}

/* The pin is created before the document (environment_files.c). */
static int keep(const struct statedir *dir, struct store *s, const struct environment *env, struct brig_error *err)
{
	struct store_key key;
	bool gone;
	int rc = environments_lock(dir, err);

	if (rc == 0)
		rc = environments_check_free(dir, env->name, err);
	if (rc == 0 && s)
		rc = pin(s, env, err);
	if (rc < 0)
		return rc;
	rc = environment_save(dir, env, err);
	if (rc < 0 && s && environment_key(env, &key))
		(void)store_unpin(s, &key, &gone, NULL);
	return rc;
}

int environment_unpack(struct recorder *recorder, const struct settings *set, const char *key, const char *content,
		       int in, struct brig_error *err)
{
	struct environment env = { .n_warm = 0 };
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct store *s = NULL;
	int rc = read_document(in, key, content, &env, err);

	if (rc < 0)
		return rc;
	rc = environments_open(recorder, /* make= */ true, &dir, err);
	if (rc == 0)
		rc = environments_check_free(&dir, env.name, err);
	if (rc == 0)
		rc = make_for_here(&env, err);
	if (rc == 0 && env.n_packages > 0)
		rc = packages_open_store(recorder, set, &s, err);
	if (rc == 0 && s)
		rc = unpack_set(s, set, &env, in, err);
	if (rc == 0)
		rc = keep(&dir, s, &env, err);
	store_close(s);
	environment_release(&env);
	return rc;
}
