/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head.c - the end of the log, in one small file that is rewritten in place.
 *
 * It lies within one sector and one page, so that neither a killed writer nor a power failure leaves half of it; its
 * MAC (HMAC with the log's key) shows whether it was tampered with.
 */
#include <fcntl.h>
#include <string.h>

#include "audit/internal.h"
#include "base/fd.h"

#define HEAD_MAGIC "brighead"

struct head_form {
	char magic[8];
	struct head h;
	uint8_t mac[SHA256_LEN];
};

static void head_mac(const struct log_key *key, const struct head_form *form, uint8_t mac[SHA256_LEN])
{
	hmac256(&key->mac, form, offsetof(struct head_form, mac), mac);
}

enum head_state head_read(int fd, const struct log_key *key, struct head *ret)
{
	struct head_form form;
	uint8_t mac[SHA256_LEN];
	ssize_t n = pread(fd, &form, sizeof(form), 0);

	if (n == 0)
		return HEAD_EMPTY;
	if (n != sizeof(form) || memcmp(form.magic, HEAD_MAGIC, sizeof(form.magic)) != 0)
		return HEAD_BAD;
	head_mac(key, &form, mac);
	if (!crypto_same(mac, form.mac, sizeof(mac)))
		return HEAD_BAD;
	*ret = form.h;
	return HEAD_GOOD;
}

int head_write(int fd, const struct log_key *key, const struct head *h)
{
	struct head_form form;
	ssize_t n;

	memset(&form, 0, sizeof(form)); /* padding, too: it is summed and written */
	memcpy(form.magic, HEAD_MAGIC, sizeof(form.magic));
	form.h = *h;
	head_mac(key, &form, form.mac);
	n = pwrite(fd, &form, sizeof(form), 0);
	if (n < 0)
		return -errno;
	return n == sizeof(form) ? 0 : -EIO;
}
