/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ustar.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/sealed.h"

#define NAME_LEN 100

/* One header; numbers are octal and NUL-terminated, and the checksum is the sum of all bytes with its own field blank.
 */
static bool add_block(struct buf *out, const char *name, char type, unsigned mode, uint64_t size)
{
	char block[USTAR_BLOCK + 1] = { 0 }; /* and a NUL that is not written */
	size_t len = strlen(name);
	unsigned sum = 0;

	memcpy(block, name, len < NAME_LEN ? len : NAME_LEN);
	(void)snprintf(block + 100, 8, "%07o", mode);
	(void)snprintf(block + 108, 8, "%07o", 0);
	(void)snprintf(block + 116, 8, "%07o", 0);
	(void)snprintf(block + 124, 12, "%011llo", (unsigned long long)size);
	(void)snprintf(block + 136, 12, "%011o", 0);
	memset(block + 148, ' ', 8);
	block[156] = type;
	memcpy(block + 257, "ustar", 6);
	memcpy(block + 263, "00", 2);
	for (size_t i = 0; i < USTAR_BLOCK; i++)
		sum += (unsigned char)block[i];
	(void)snprintf(block + 148, 8, "%06o", sum);
	return buf_add(out, block, USTAR_BLOCK) == USTAR_BLOCK;
}

static bool add_padding(struct buf *out, uint64_t size)
{
	static const char zeroes[USTAR_BLOCK];

	return buf_add(out, zeroes, ustar_padding(size)) == ustar_padding(size);
}

/* A record "LEN path=PATH\n", where LEN counts its own digits, too. */
static bool add_long_path(struct buf *out, const char *path)
{
	size_t rest = strlen(" path=\n") + strlen(path), len = rest + 2;
	char digits[24];

	while ((size_t)snprintf(digits, sizeof(digits), "%zu", len) + rest != len)
		len++;
	return add_block(out, "path", 'x', 0644, len) && buf_addf(out, "%zu path=%s\n", len, path) &&
	       add_padding(out, len);
}

bool ustar_add_head(struct buf *out, const char *path, unsigned mode, uint64_t size)
{
	if (strlen(path) > NAME_LEN && !add_long_path(out, path))
		return false;
	return add_block(out, path, '0', mode & 0111 ? 0755 : 0644, size);
}

bool ustar_add_file(struct buf *out, const char *path, const struct bytes *content)
{
	return ustar_add_head(out, path, 0644, content->len) &&
	       buf_add(out, content->data, content->len) == content->len && add_padding(out, content->len);
}

bool ustar_add_end(struct buf *out)
{
	static const char zeroes[2 * USTAR_BLOCK];

	return buf_add(out, zeroes, sizeof(zeroes)) == sizeof(zeroes);
}

int ustar_to_file(struct buf *out)
{
	AUTO_FD fd = FD_NONE;
	int rc;

	if (!ustar_add_end(out))
		return out->no_memory ? -ENOMEM : -EFBIG;
	fd = memfd_create("brig-files", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, buf_str(out), out->len);
	if (rc < 0)
		return rc;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	rc = sealed_close(fd);
	return rc < 0 ? rc : fd_move(&fd);
}
