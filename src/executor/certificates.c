/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell has its own /etc, or an image's, without the host's trusted certificates.  So the host's bundle is put into
 * every cell with network access: the file that SSL_CERT_FILE names, as for every other program here, else the
 * system's.  Backends write it where the program can at most change it for itself.
 */
#include "executor/certificates.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/str.h"

#define BYTES_MAX (2 * MiB) /* about ten times a system's bundle */

/* Different programs read different ones. */
static const char *const variables[] = {
	"SSL_CERT_FILE",       /* OpenSSL, and so Python and Ruby; Go */
	"CURL_CA_BUNDLE",      /* curl */
	"REQUESTS_CA_BUNDLE",  /* Python's requests, which otherwise uses its own bundle */
	"PIP_CERT",            /* pip likewise */
	"GIT_SSL_CAINFO",      /* git */
	"NODE_EXTRA_CA_CERTS", /* Node.js, in addition to its own */
	"npm_config_cafile",   /* npm */
};
_Static_assert(ARRAY_LEN(variables) <= CERTIFICATES_ENV_MAX, "room for each");

static bool read_file(const char *path, struct buf *ret)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char piece[16 * KiB];
	ssize_t n = -1;

	while (fd >= 0 && (n = fd_read_all(fd, piece, sizeof(piece))) > 0)
		(void)buf_add(ret, piece, (size_t)n);
	if (n == 0 && ret->len > 0 && !ret->full && !ret->no_memory)
		return true;
	buf_release(ret);
	*ret = (struct buf)BUF_INIT(BYTES_MAX);
	return false;
}

static bool read_bundle(struct buf *ret)
{
	static const char *const places[] = {
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	};
	const char *own = getenv("SSL_CERT_FILE");

	*ret = (struct buf)BUF_INIT(BYTES_MAX);
	if (own && *own && read_file(own, ret))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (read_file(places[i], ret))
			return true;
	return false;
}

void certificates_take(struct certificates *c, const char *path, struct result *res)
{
	if (!c->looked && read_bundle(&c->text))
		c->file = (struct plan_file){ .data = c->text.data, .len = c->text.len, .mode = 0444 };
	else if (!c->looked)
		result_warn(
			res,
			"this host has no CA certificates to give to the cell, so programs in it cannot verify https "
			"hosts: install the package ca-certificates, or name a file of at most 2 MiB in "
			"SSL_CERT_FILE");
	c->looked = true;
	c->file.name = path;
	c->n_env = 0;
	for (size_t i = 0; c->file.data && path && i < ARRAY_LEN(variables); i++)
		(void)snprintf(c->env[c->n_env++], sizeof(c->env[0]), "%s=%s", variables[i], path);
}

void certificates_release(struct certificates *c)
{
	buf_release(&c->text);
}
