/* SPDX-License-Identifier: Apache-2.0 */
#include "server/certificate.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sealed.h"

static const char *const option_name[CERTIFICATE_FILES] = { "--tls-cert", "--tls-key" };

/* The buffer that held key material is wiped: 0 or -errno. */
static int copy(int from, int to)
{
	char piece[4096];
	size_t total = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = fd_read_all(from, piece, sizeof(piece))) > 0) {
		total += (size_t)n;
		rc = total > CERTIFICATE_FILE_MAX ? -EFBIG : fd_write_all(to, piece, (size_t)n);
	}
	if (rc == 0 && n < 0)
		rc = (int)n;
	explicit_bzero(piece, sizeof(piece));
	return rc;
}

static int read_file(const char *path, int *ret)
{
	/* O_NONBLOCK: opening a FIFO would otherwise block the whole service. */
	AUTO_FD from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO_FD to = FD_NONE;
	struct stat st;
	int rc;

	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	to = memfd_create("brig-certificate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (to < 0)
		return -errno;
	rc = copy(from, to);
	if (rc == 0)
		rc = sealed_close(to);
	if (rc == 0)
		*ret = fd_move(&to);
	return rc;
}

int certificate_read(const char *chain_path, const char *key_path, struct certificate *ret, struct brig_error *err)
{
	const char *const path[CERTIFICATE_FILES] = { chain_path, key_path };
	struct certificate fresh = CERTIFICATE_NONE;

	for (size_t i = 0; i < CERTIFICATE_FILES; i++) {
		int rc = read_file(path[i], &fresh.fd[i]);

		if (rc < 0) {
			certificate_close(&fresh);
			return err_set(err, BRIG_E_USAGE, -rc,
				       "%s %.200s cannot be read: name a PEM file of at most %zu KB", option_name[i],
				       path[i], CERTIFICATE_FILE_MAX / 1024);
		}
	}
	certificate_move(ret, &fresh);
	return 0;
}

bool certificate_is_there(const struct certificate *c)
{
	return c->fd[CERTIFICATE_CHAIN] >= 0;
}

void certificate_close(struct certificate *c)
{
	for (size_t i = 0; i < CERTIFICATE_FILES; i++)
		fd_closep(&c->fd[i]);
}

void certificate_move(struct certificate *to, struct certificate *from)
{
	certificate_close(to);
	*to = *from;
	*from = (struct certificate)CERTIFICATE_NONE;
}
