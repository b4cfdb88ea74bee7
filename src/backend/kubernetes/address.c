/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the API server, and the credentials for it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/api.h"
#include "base/fd.h"
#include "base/str.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_MAX       (16 * KiB)
#define TLS_PORT        443

static const char *environment(const char *name)
{
	const char *value = secure_getenv(name);

	return value ? value : "";
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || str_eq(host, "::1") || str_eq(host, "localhost");
}

/* "host", "host:port" or "[address]:port", with an optional trailing slash. */
static bool take_host(const char *text, struct http_target *t)
{
	const char *end = text + strcspn(text, "/"), *close = *text == '[' ? strchr(text, ']') : NULL;
	const char *from = close ? text + 1 : text;
	const char *colon = close ? (close[1] == ':' ? close + 1 : NULL) : memchr(text, ':', (size_t)(end - text));
	size_t len = (size_t)((close ? close : colon ? colon : end) - from);
	char digits[8] = "";
	uint64_t port = t->tls ? TLS_PORT : 80;

	if (len == 0 || len >= sizeof(t->host) || (*text == '[' && !close) || (*end && end[1]))
		return false;
	memcpy(t->host, from, len);
	t->host[len] = '\0';
	if (colon) {
		size_t n = (size_t)(end - colon - 1);

		if (n == 0 || n >= sizeof(digits))
			return false;
		memcpy(digits, colon + 1, n);
		if (!str_to_u64(digits, &port) || port == 0 || port > 65535)
			return false;
	}
	t->port = (unsigned)port;
	return true;
}

static int take_server(const char *server, struct http_target *t, struct brig_error *err)
{
	const char *host = NULL;

	t->tls = strncmp(server, "https://", 8) == 0;
	if (t->tls)
		host = server + 8;
	else if (strncmp(server, "http://", 7) == 0)
		host = server + 7;
	if (!host || !take_host(host, t))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"kubernetes_server '%s' is not understood: use https://host:port, as `kubectl config view` "
			"shows it",
			server);
	if (!t->tls && !is_loopback(t->host))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "kubernetes_server '%s' is another machine and without TLS: whoever listens on the way "
			       "would have the token. Use https://",
			       server);
	return 0;
}

static int find_server(const struct settings *set, struct http_target *t, struct brig_error *err)
{
	const char *host = environment("KUBERNETES_SERVICE_HOST"), *port = environment("KUBERNETES_SERVICE_PORT");
	char server[300];

	if (set->kubernetes_server[0])
		return take_server(set->kubernetes_server, t, err);
	if (!host[0])
		return err_set(
			err, BRIG_E_REFUSED, ENOENT,
			"there is no Kubernetes cluster to ask: brig does not run in a pod "
			"($KUBERNETES_SERVICE_HOST). Name the API server with kubernetes_server, and who asks with "
			"kubernetes_token_file and kubernetes_ca_file");
	(void)snprintf(server, sizeof(server), strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
		       port[0] ? port : "443");
	return take_server(server, t, err);
}

/* Tokens are renewed in place, so each run reads the file anew. */
static int read_token(const char *path, bool asked, struct api *a, struct brig_error *err)
{
	static const char scheme[] = "Authorization: Bearer ";
	AUTO_FREE char *token = malloc(TOKEN_MAX);
	ssize_t n;

	if (!token)
		return err_nomem(err);
	n = fd_get_at(AT_FDCWD, path, token, TOKEN_MAX);
	if (n < 0 && !asked)
		return 0;
	if (n < 0)
		return err_set(err, BRIG_E_REFUSED, (int)-n, "cannot read the token in kubernetes_token_file '%s'",
			       path);
	if (n == 0 ||
	    strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") != (size_t)n) {
		explicit_bzero(token, TOKEN_MAX);
		return err_set(err, BRIG_E_REFUSED, 0, "what is in kubernetes_token_file '%s' is no bearer token",
			       path);
	}
	a->authorization = malloc(sizeof(scheme) + (size_t)n);
	if (a->authorization) {
		memcpy(a->authorization, scheme, sizeof(scheme) - 1);
		memcpy(a->authorization + sizeof(scheme) - 1, token, (size_t)n + 1);
	}
	explicit_bzero(token, TOKEN_MAX);
	return a->authorization ? 0 : err_nomem(err);
}

static int take_ca(const struct settings *set, bool in_cluster, struct http_target *t, struct brig_error *err)
{
	const char *path = set->kubernetes_ca_file;

	if (!path[0] && in_cluster)
		path = SERVICE_ACCOUNT "/ca.crt";
	if (!path[0] || !t->tls)
		return 0; /* use the system's authorities */
	if (!str_copy(t->ca, sizeof(t->ca), path) || access(path, R_OK) < 0)
		return err_set(err, BRIG_E_REFUSED, errno, "cannot read kubernetes_ca_file '%s'", path);
	return 0;
}

static bool is_namespace(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n <= API_NAME_MAX && s[n] == '\0' && s[0] != '-' && s[n - 1] != '-';
}

static int take_namespace(const struct settings *set, bool in_cluster, struct api *a, struct brig_error *err)
{
	const char *wish = set->kubernetes_namespace;

	if (wish[0])
		(void)str_copy(a->namespace, sizeof(a->namespace), wish);
	else if (!in_cluster ||
		 fd_get_at(AT_FDCWD, SERVICE_ACCOUNT "/namespace", a->namespace, sizeof(a->namespace)) <= 0)
		(void)str_copy(a->namespace, sizeof(a->namespace), "default");
	if (is_namespace(a->namespace) && (!wish[0] || str_eq(wish, a->namespace)))
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "kubernetes_namespace '%.80s' is no name of a namespace: lower-case letters, digits and '-'",
		       wish);
}

int api_locate(const struct settings *set, struct http_target *target, struct api *a, struct brig_error *err)
{
	bool in_cluster = !set->kubernetes_server[0], asked = set->kubernetes_token_file[0] != '\0';
	int rc;

	*target = (struct http_target){ 0 };
	rc = find_server(set, target, err);
	if (rc == 0)
		rc = take_ca(set, in_cluster, target, err);
	if (rc == 0)
		rc = take_namespace(set, in_cluster, a, err);
	if (rc == 0 && (asked || in_cluster))
		rc = read_token(asked ? set->kubernetes_token_file : SERVICE_ACCOUNT "/token", asked, a, err);
	(void)snprintf(a->server, sizeof(a->server), "%s://%s:%u", target->tls ? "https" : "http", target->host,
		       target->port);
	return rc;
}
