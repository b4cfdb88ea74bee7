/* SPDX-License-Identifier: Apache-2.0 */
#include "server/front/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/library.h"

/* Function pointers; types come from the headers, nothing is linked. */
static struct openssl {
#define TLS_FUNCTION(name) __typeof__(name) *name;
#include "server/front/tls.def"
} openssl;

struct tls {
	SSL_CTX *ctx;
};

struct tls_session {
	SSL *ssl;
	bool wants_out, is_broken;
};

/* ---- setup ------------------------------------------------------------------------------------------ */

static int load(struct brig_error *err)
{
	static const char *const names[] = { "libssl.so.3", NULL };
	static const struct library_function functions[] = {
#define TLS_FUNCTION(name) { #name, offsetof(struct openssl, name) },
#include "server/front/tls.def"
	};
	const struct library library = { names, functions, ARRAY_LEN(functions) };
	void *handle;
	const char *why;
	int rc = library_load(&library, &openssl, &handle, &why);

	if (rc == -ENOENT)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "TLS needs OpenSSL 3, and %s is not installed: install package libssl3", names[0]);
	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, 0, "libssl has no function %s: update package libssl3", why);
	return 0;
}

static const char *reason(void)
{
	const char *text = openssl.ERR_reason_error_string(openssl.ERR_peek_last_error());

	return text ? text : "no reason is given";
}

/* There is nobody to enter a passphrase. */
static int no_passphrase(char *dst UNUSED, int size UNUSED, int is_write UNUSED, void *arg UNUSED)
{
	return 0;
}

/* The client's ALPN list is a sequence of length and name. */
static int choose_protocol(SSL *ssl UNUSED, const unsigned char **ret, unsigned char *ret_len,
			   const unsigned char *list, unsigned len, void *arg UNUSED)
{
	static const char ours[] = "http/1.1";

	for (unsigned at = 0; at < len && len - at > list[at]; at += list[at] + 1u)
		if (list[at] == strlen(ours) && memcmp(list + at + 1, ours, strlen(ours)) == 0) {
			*ret = list + at + 1;
			*ret_len = list[at];
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool set_rules(SSL_CTX *ctx)
{
	const uint64_t options = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE;
	const long modes =
		SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS;

	(void)openssl.SSL_CTX_set_options(ctx, options);
	(void)openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, modes, NULL);
	/* Session tickets hold the state for resumption, so no cache is needed. */
	(void)openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
	openssl.SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	return openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) == 1;
}

/* ---- the certificate --------------------------------------------------------------------------------- */

/* Contents of the file, which the caller wipes; NULL: errno. */
static char *read_file(int fd, size_t *ret_len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = size > 0 && (size_t)size <= CERTIFICATE_FILE_MAX ? malloc((size_t)size) : NULL;
	ssize_t n;

	if (!text)
		return NULL;
	n = lseek(fd, 0, SEEK_SET) < 0 ? -1 : fd_read_all(fd, text, (size_t)size);
	*ret_len = n > 0 ? (size_t)n : 0;
	return text;
}

/* The host's own certificate, followed by its chain. */
static bool use_chain(SSL_CTX *ctx, BIO *in)
{
	X509 *x = openssl.PEM_read_bio_X509_AUX(in, NULL, no_passphrase, NULL);
	bool is_good = x && openssl.SSL_CTX_use_certificate(ctx, x) == 1;

	openssl.X509_free(x);
	while (is_good && (x = openssl.PEM_read_bio_X509(in, NULL, no_passphrase, NULL))) {
		is_good = openssl.SSL_CTX_ctrl(ctx, SSL_CTRL_CHAIN_CERT, 0, x) == 1;
		if (!is_good)
			openssl.X509_free(x);
	}
	if (is_good && ERR_GET_REASON(openssl.ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		is_good = false; /* not end of file: a certificate cannot be parsed */
	if (is_good)
		openssl.ERR_clear_error();
	return is_good;
}

static bool use_key(SSL_CTX *ctx, BIO *in)
{
	EVP_PKEY *key = openssl.PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL);
	bool is_good = key && openssl.SSL_CTX_use_PrivateKey(ctx, key) == 1;

	openssl.EVP_PKEY_free(key);
	return is_good;
}

static bool use_file(SSL_CTX *ctx, int fd, bool (*use)(SSL_CTX *ctx, BIO *in))
{
	size_t len = 0;
	char *text = read_file(fd, &len);
	BIO *in = text ? openssl.BIO_new_mem_buf(text, (int)len) : NULL;
	bool is_good = false;

	openssl.ERR_clear_error();
	if (in)
		is_good = use(ctx, in);
	openssl.BIO_free(in);
	if (text)
		explicit_bzero(text, len);
	free(text);
	return is_good;
}

static int fill(SSL_CTX *ctx, const struct certificate *files, const struct tls_names *names, struct brig_error *err)
{
	if (!use_file(ctx, files->fd[CERTIFICATE_CHAIN], use_chain))
		return err_set(err, BRIG_E_USAGE, 0, "--tls-cert %.200s has no certificates (PEM) that can be used: %s",
			       names->chain, reason());
	if (!use_file(ctx, files->fd[CERTIFICATE_KEY], use_key))
		return err_set(err, BRIG_E_USAGE, 0,
			       "--tls-key %.200s has no private key (PEM, without a passphrase) that can be used: %s",
			       names->key, reason());
	if (openssl.SSL_CTX_check_private_key(ctx) != 1)
		return err_set(err, BRIG_E_USAGE, 0,
			       "--tls-key %.200s is not the key of the first certificate in %.200s", names->key,
			       names->chain);
	return 0;
}

int tls_use(struct tls *tls, const struct certificate *files, const struct tls_names *names, struct brig_error *err)
{
	SSL_CTX *ctx = openssl.SSL_CTX_new(openssl.TLS_server_method());
	int rc = 0;

	if (!ctx || !set_rules(ctx))
		rc = err_set(err, BRIG_E_SYSTEM, 0, "OpenSSL cannot be used: %s", reason());
	if (rc == 0)
		rc = fill(ctx, files, names, err);
	if (rc < 0) {
		openssl.SSL_CTX_free(ctx);
		return rc;
	}
	openssl.SSL_CTX_free(tls->ctx); /* sessions hold a reference */
	tls->ctx = ctx;
	return 0;
}

int tls_open(struct tls **ret, struct brig_error *err)
{
	struct tls *tls;

	if (load(err) < 0)
		return -err->code;
	tls = calloc(1, sizeof(*tls));
	if (!tls)
		return err_nomem(err);
	/* OpenSSL uses write(), which cannot suppress SIGPIPE. */
	(void)signal(SIGPIPE, SIG_IGN);
	*ret = tls;
	return 0;
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

struct tls_session *tls_begin(struct tls *tls, int fd)
{
	struct tls_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ssl = openssl.SSL_new(tls->ctx);
	if (!s->ssl || openssl.SSL_set_fd(s->ssl, fd) != 1) {
		tls_free(s);
		return NULL;
	}
	openssl.SSL_set_accept_state(s->ssl);
	return s;
}

void tls_free(struct tls_session *s)
{
	if (!s)
		return;
	openssl.SSL_free(s->ssl);
	free(s);
}

void tls_say_end(struct tls_session *s)
{
	if (!s || s->is_broken)
		return;
	openssl.ERR_clear_error();
	(void)openssl.SSL_shutdown(s->ssl);
	s->is_broken = true; /* nothing more may be written */
}

bool tls_wants_out(const struct tls_session *s)
{
	return s && s->wants_out;
}

/* Maps an OpenSSL result to that of recv() and send(). */
static ssize_t outcome(struct tls_session *s, int rc)
{
	s->wants_out = false;
	if (rc > 0)
		return rc;
	switch (openssl.SSL_get_error(s->ssl, rc)) {
	case SSL_ERROR_WANT_WRITE:
		s->wants_out = true;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_WANT_READ:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		s->is_broken = true;
		errno = EPROTO;
		return -1;
	}
}

ssize_t tls_read(struct tls_session *s, char *dst, size_t size)
{
	size_t got = 0;

	while (!s->is_broken && size - got >= TLS_RECORD_MAX) { /* RULE T3 */
		ssize_t n;

		openssl.ERR_clear_error();
		n = outcome(s, openssl.SSL_read(s->ssl, dst + got, (int)(size - got)));
		if (n <= 0 && got == 0)
			return n;
		if (n <= 0)
			break; /* the next call will report it again */
		got += (size_t)n;
	}
	if (got > 0)
		return (ssize_t)got;
	errno = EPROTO;
	return -1;
}

/* Copies up to one record of data from the pieces, starting at offset `from`. */
static size_t gather(const struct iovec *pieces, size_t n, size_t from, char record[TLS_RECORD_MAX])
{
	size_t len = 0;

	for (size_t i = 0; i < n && len < TLS_RECORD_MAX; i++) {
		size_t skip = from < pieces[i].iov_len ? from : pieces[i].iov_len;
		size_t take = pieces[i].iov_len - skip;

		from -= skip;
		if (take > TLS_RECORD_MAX - len)
			take = TLS_RECORD_MAX - len;
		if (take > 0)
			memcpy(record + len, (const char *)pieces[i].iov_base + skip, take);
		len += take;
	}
	return len;
}

ssize_t tls_write(struct tls_session *s, const struct iovec *pieces, size_t n)
{
	char record[TLS_RECORD_MAX];
	size_t sent = 0, len;

	while ((len = gather(pieces, n, sent, record)) > 0) {
		ssize_t rc;

		if (s->is_broken) {
			errno = EPIPE;
			return -1;
		}
		openssl.ERR_clear_error();
		rc = outcome(s, openssl.SSL_write(s->ssl, record, (int)len));
		s->wants_out = false; /* it applies to reads only */
		if (rc < 0 && errno == EAGAIN && sent > 0)
			break;
		if (rc == 0)
			errno = EPIPE;
		if (rc <= 0)
			return -1;
		sent += (size_t)rc;
	}
	return (ssize_t)sent;
}
