/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/docker/image_tar.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"

#define BLOCK   512
#define COLLECT (256 * 1024)

/* POSIX ustar; every string is NUL-padded, every number octal. */
struct header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[8];
	char user[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

int tar_open(struct tar *t, int fd, struct brig_error *err)
{
	*t = (struct tar){ .fd = fd, .out = malloc(COLLECT) };
	return t->out ? 0 : err_nomem(err);
}

static void flush(struct tar *t)
{
	if (t->error == 0 && t->have > 0) {
		int rc = fd_write_all(t->fd, t->out, t->have);

		if (rc < 0)
			t->error = -rc;
	}
	t->have = 0;
}

static void put(struct tar *t, const void *data, size_t len)
{
	const char *p = data;

	t->written += len;
	while (len > 0 && t->error == 0) {
		size_t n = min_u64(len, COLLECT - t->have);

		memcpy(t->out + t->have, p, n);
		t->have += n;
		p += n;
		len -= n;
		if (t->have == COLLECT)
			flush(t);
	}
}

static void pad(struct tar *t)
{
	static const char zeros[BLOCK];

	put(t, zeros, (BLOCK - t->written % BLOCK) % BLOCK);
}

/* Splits at a slash so that both halves fit; false: impossible. */
static bool put_name(struct header *h, const char *path)
{
	size_t len = strlen(path);

	if (len <= sizeof(h->name)) {
		memcpy(h->name, path, len);
		return true;
	}
	for (const char *slash = path + len; (slash = memrchr(path, '/', (size_t)(slash - path))) != NULL;) {
		size_t before = (size_t)(slash - path), after = len - before - 1;

		if (after > sizeof(h->name))
			return false;
		if (before <= sizeof(h->prefix) && after > 0) {
			memcpy(h->prefix, path, before);
			memcpy(h->name, slash + 1, after);
			return true;
		}
	}
	return false;
}

static void octal(char *dst, size_t size, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%0*llo", (int)size - 1, (unsigned long long)value);
	memcpy(dst, text, size - 1);
}

static void seal(struct header *h)
{
	unsigned sum = 0;
	char text[16];

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += ((const unsigned char *)h)[i];
	(void)snprintf(text, sizeof(text), "%06o", sum);
	memcpy(h->checksum, text, 7);
}

static void fill(struct header *h, char type, unsigned mode, uint64_t size, int64_t mtime)
{
	h->type = type;
	octal(h->mode, sizeof(h->mode), mode);
	octal(h->uid, sizeof(h->uid), 0);
	octal(h->gid, sizeof(h->gid), 0);
	octal(h->size, sizeof(h->size), size);
	octal(h->mtime, sizeof(h->mtime), mtime > 0 ? (uint64_t)mtime : 0);
	memcpy(h->magic, "ustar\00000", sizeof(h->magic));
}

/* An entry with a name that is too long for the next one: 'L' for its path, 'K' for its target. */
static void put_long(struct tar *t, char type, const char *text)
{
	struct header h = { .name = "././@LongLink" };

	fill(&h, type, 0, strlen(text) + 1, 0);
	seal(&h);
	put(t, &h, sizeof(h));
	put(t, text, strlen(text) + 1);
	pad(t);
}

static void entry(struct tar *t, char type, const char *path, unsigned mode, uint64_t size, int64_t mtime,
		  const char *target)
{
	struct header h = { 0 };

	if (!put_name(&h, path)) {
		put_long(t, 'L', path);
		memcpy(h.name, path, sizeof(h.name));
	}
	if (target && strlen(target) > sizeof(h.link))
		put_long(t, 'K', target);
	if (target)
		memcpy(h.link, target, strnlen(target, sizeof(h.link)));
	fill(&h, type, mode, size, mtime);
	seal(&h);
	put(t, &h, sizeof(h));
}

void tar_folder(struct tar *t, const char *path, unsigned mode, int64_t mtime)
{
	char named[4096];

	(void)snprintf(named, sizeof(named), "%s/", path);
	entry(t, '5', named, mode, 0, mtime, NULL);
}

void tar_link(struct tar *t, const char *path, const char *target, int64_t mtime)
{
	entry(t, '2', path, 0777, 0, mtime, target);
}

void tar_data(struct tar *t, const char *path, unsigned mode, const void *data, size_t len)
{
	entry(t, '0', path, mode & 0755, len, 0, NULL);
	put(t, data, len);
	pad(t);
}

void tar_file(struct tar *t, const char *path, unsigned mode, int64_t mtime, int from, uint64_t size)
{
	static const char zeros[BLOCK];
	char piece[65536];

	entry(t, '0', path, mode & 0755, size, mtime, NULL);
	while (size > 0 && t->error == 0) {
		ssize_t n = read(from, piece, min_u64(size, sizeof(piece)));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			t->error = errno;
		if (n <= 0)
			break;
		put(t, piece, (size_t)n);
		size -= (uint64_t)n;
	}
	for (; size > 0 && t->error == 0; size -= min_u64(size, sizeof(zeros)))
		put(t, zeros, min_u64(size, sizeof(zeros)));
	pad(t);
}

int tar_close(struct tar *t, struct brig_error *err)
{
	static const char zeros[2 * BLOCK];

	put(t, zeros, sizeof(zeros));
	flush(t);
	free(t->out);
	t->out = NULL;
	if (t->error == ENOSPC || t->error == EDQUOT)
		return err_set(err, BRIG_E_SYSTEM, t->error,
			       "no room for the image's files: make space where TMPDIR or /var/tmp is");
	return t->error == 0 ? 0 : err_set(err, BRIG_E_SYSTEM, t->error, "writing the image's files failed");
}

int tar_temporary(struct brig_error *err)
{
	const char *const places[] = { secure_getenv("TMPDIR"), "/var/tmp", "/tmp" };
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		if (!places[i] || places[i][0] != '/')
			continue;
		fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
	}
	fd = memfd_create("brig-image", MFD_CLOEXEC);
	if (fd < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "no temporary file for an image: set TMPDIR");
	return fd;
}
