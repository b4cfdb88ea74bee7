/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/peers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "sys/statedir.h"

#define FILE_MAX (4 * MiB)
#define KEY_NAME "key"

/* ---- the operator's list ------------------------------------------------------------------------------------- */

static int complain(const char *path, size_t line, const char *why, struct brig_error *err)
{
	return err_set(err, BRIG_E_USAGE, 0,
		       "%.200s:%zu: %s: a line is 'front', 'worker' or 'both', a name, a public key of 64 hex digits "
		       "and, of "
		       "one whose package sets, compiled programs and environments workers take, 'gives'",
		       path, line, why);
}

static unsigned role_of(const char *word)
{
	static const struct {
		const char *word;
		unsigned roles;
	} rows[] = { { "front", PEER_FRONT }, { "worker", PEER_WORKER }, { "both", PEER_FRONT | PEER_WORKER } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].word, word))
			return rows[i].roles;
	return 0;
}

/* Parses one line, splitting it in place. */
static int read_line(struct peers *ret, const char *path, size_t number, char *line, struct brig_error *err)
{
	const char *role = strtok_r(line, " \t\r", &line), *name = strtok_r(NULL, " \t\r", &line);
	const char *key = strtok_r(NULL, " \t\r", &line), *more = strtok_r(NULL, " \t\r", &line);
	struct peer p = { .roles = role ? role_of(role) : 0 };

	if (!role || role[0] == '#')
		return 0;
	if (!p.roles)
		return complain(path, number, "no role", err);
	if (!name || !str_copy(p.name, sizeof(p.name), name) ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
		return complain(path, number, "no name of at most 64 letters, digits, '.', '_' and '-'", err);
	p.gives = more && str_eq(more, "gives");
	if (more && (!p.gives || strtok_r(NULL, " \t\r", &line)))
		return complain(path, number, "a word too many", err);
	if (!key || strlen(key) != SEAL_KEY_HEX || !hex_get(key, p.pub, sizeof(p.pub)))
		return complain(path, number, "no public key", err);
	if (ret->n == PEERS_MAX)
		return complain(path, number, "more nodes than can be known", err);
	(void)str_copy(p.key, sizeof(p.key), key);
	if (ret->n % 64 == 0) {
		struct peer *item = reallocarray(ret->item, ret->n + 64, sizeof(*item));

		if (!item)
			return err_nomem(err);
		ret->item = item;
	}
	ret->item[ret->n++] = p;
	return 0;
}

int peers_read(const char *path, struct peers *ret, struct brig_error *err)
{
	struct stat st;
	AUTO_FD fd = file_open(path, 0, &st);
	AUTO_FREE char *text = NULL;
	char *at, *line;
	size_t number = 0;

	*ret = (struct peers){ .n = 0 };
	if (fd < 0)
		return err_set(err, BRIG_E_USAGE, -fd, "cannot read the list of nodes, %.200s", path);
	text = (uint64_t)st.st_size <= FILE_MAX ? calloc(1, (size_t)st.st_size + 1) : NULL;
	if (!text || fd_read_all(fd, text, (size_t)st.st_size) != st.st_size)
		return err_set(err, BRIG_E_USAGE, 0, "the list of nodes, %.200s, is no text of at most %llu MB", path,
			       (unsigned long long)(FILE_MAX / MiB));
	at = text;
	while ((line = strsep(&at, "\n")))
		if (read_line(ret, path, ++number, line, err) < 0) {
			peers_release(ret);
			return -err->code;
		}
	return 0;
}

void peers_release(struct peers *p)
{
	free(p->item);
	*p = (struct peers){ .n = 0 };
}

const struct peer *peers_find(const struct peers *p, const char *key, enum peer_role role)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->item[i].roles & role && str_eq(p->item[i].key, key))
			return &p->item[i];
	return NULL;
}

/* ---- this node's key ------------------------------------------------------------------------------------------- */

static int make_key(const struct statedir *dir, uint8_t seed[SIGN_SEED_LEN], struct brig_error *err)
{
	char text[2 * SIGN_SEED_LEN + 2];
	int rc = crypto_random(seed, SIGN_SEED_LEN);

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot make the key of this node");
	(void)hex_put(text, seed, SIGN_SEED_LEN);
	text[2 * SIGN_SEED_LEN] = '\n';
	rc = statedir_replace(dir, KEY_NAME, text, 2 * SIGN_SEED_LEN + 1, err);
	crypto_wipe(text, sizeof(text));
	return rc;
}

int node_key_open(const char *state_dir, uint8_t seed[SIGN_SEED_LEN], char ret[SEAL_KEY_HEX + 1],
		  struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	char text[2 * SIGN_SEED_LEN + 8];
	uint8_t pub[SIGN_PUB_LEN];
	ssize_t n;

	if (statedir_open(state_dir, true, &state, err) < 0 || statedir_open_sub(&state, "queue", true, &dir, err) < 0)
		return -err->code;
	n = statedir_read(&dir, KEY_NAME, text, sizeof(text), err);
	if (n < 0 && err->sys == ENOENT) {
		*err = (struct brig_error)BRIG_ERROR_INIT;
		if (make_key(&dir, seed, err) < 0)
			return -err->code;
	} else if (n < 0) {
		return -err->code;
	} else if (n < 2 * SIGN_SEED_LEN || !hex_get(text, seed, SIGN_SEED_LEN)) {
		return err_set(err, BRIG_E_REFUSED, 0, "%s/%s is no key: move it away, and tell others the new one",
			       dir.path, KEY_NAME);
	}
	crypto_wipe(text, sizeof(text));
	if (!sign_public(seed, pub))
		return err_set(err, BRIG_E_SYSTEM, 0, "libsodium cannot be used");
	(void)hex_put(ret, pub, sizeof(pub));
	return 0;
}
