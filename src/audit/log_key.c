/* SPDX-License-Identifier: Apache-2.0 */
/* log_key.c - the key of the entries' MACs: 32 random bytes in hex, created with the log and never changed. */
#include <string.h>

#include "audit/internal.h"

static int make_key(const struct statedir *dir, uint8_t key[SHA256_LEN], struct brig_error *err)
{
	char text[SHA256_HEX + 2];
	int rc = crypto_random(key, SHA256_LEN);

	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "the kernel gives no random numbers");
	(void)hex_put(text, key, SHA256_LEN);
	text[SHA256_HEX] = '\n';
	rc = statedir_replace(dir, AUDIT_KEY, text, SHA256_HEX + 1, err);
	crypto_wipe(text, sizeof(text));
	return rc;
}

static int read_key(const struct statedir *dir, uint8_t key[SHA256_LEN], struct brig_error *err)
{
	char text[SHA256_HEX + 2];
	ssize_t n = statedir_read(dir, AUDIT_KEY, text, sizeof(text), err);
	bool good = n >= SHA256_HEX && hex_get(text, key, SHA256_LEN);

	crypto_wipe(text, sizeof(text));
	if (n < 0)
		return (int)n;
	if (good)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"'%.200s/%s' is not a key of brig: put the right one back, or move the folder away to begin a new log",
		dir->path, AUDIT_KEY);
}

int log_key_load(const struct statedir *dir, bool make, struct log_key *ret, struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	uint8_t key[SHA256_LEN], id[SHA256_LEN];
	int rc = read_key(dir, key, &local);

	if (rc < 0 && local.sys == ENOENT && make)
		rc = make_key(dir, key, &local);
	if (rc < 0) {
		if (err)
			*err = local;
		return rc;
	}
	hmac256_key(&ret->mac, key);
	crypto_wipe(key, sizeof(key));
	hmac256(&ret->mac, "id", 2, id);
	(void)hex_put(ret->id, id, AUDIT_ID_LEN / 2);
	return 0;
}
