/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of the engine.  A configured address (docker_host, then $DOCKER_HOST) is used or refused, never replaced
 * by another.  If none is configured, the usual sockets are examined in a fixed order, and the first accessible one is
 * used; one that exists but is not accessible is used only if there is no other, so that the error message is about it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/docker/engine_internal.h"
#include "base/str.h"

#define PORT_PLAIN 2375
#define PORT_TLS   2376

static const char *environment(const char *name)
{
	const char *value = secure_getenv(name);

	return value ? value : "";
}

static int set_socket(struct http_target *t, const char *path, struct brig_error *err)
{
	if (path[0] != '/')
		return err_set(err, BRIG_E_REFUSED, 0, "docker_host 'unix://%s' needs an absolute path", path);
	if (!str_copy(t->socket, sizeof(t->socket), path))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "docker_host: the path of a unix socket is at most %zu bytes long",
			       sizeof(t->socket) - 1);
	return 0;
}

/* host, host:port, [v6]:port; without a path. */
static int set_host(struct http_target *t, const char *text, struct brig_error *err)
{
	char host[sizeof(t->host)], *port, *end;
	uint64_t number = t->tls ? PORT_TLS : PORT_PLAIN;

	if (!str_copy(host, sizeof(host), text))
		return err_set(err, BRIG_E_REFUSED, 0, "docker_host: the name of the host is too long");
	end = host[0] == '[' ? strchr(host, ']') : NULL;
	port = end ? end + 1 : strchrnul(host, ':');
	if (end)
		*end = '\0';
	if (*port == ':') {
		if (!str_to_u64(port + 1, &number) || number == 0 || number > 65535)
			return err_set(err, BRIG_E_REFUSED, 0, "docker_host 'tcp://%s': '%s' is not a port", text,
				       port + 1);
		*port = '\0';
	}
	(void)str_copy(t->host, sizeof(t->host), host + (end ? 1 : 0));
	t->port = (unsigned)number;
	if (!t->host[0] ||
	    strspn(t->host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:") != strlen(t->host))
		return err_set(err, BRIG_E_REFUSED, 0, "docker_host 'tcp://%s' is not tcp://host:port", text);
	return 0;
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || str_eq(host, "::1") || str_eq(host, "localhost");
}

/*
 * With TLS the engine's certificate is always verified, and ours is always presented: an engine that accepts any client
 * would give root to all of them.
 */
static int set_tls(struct http_target *t, const struct settings *set, struct brig_error *err)
{
	const char *folder = set->docker_cert_path;
	char home[sizeof(t->ca) - 16];

	if (!folder[0] && !environment("DOCKER_TLS_VERIFY")[0])
		return 0;
	if (!folder[0])
		folder = environment("DOCKER_CERT_PATH");
	if (!folder[0]) {
		(void)snprintf(home, sizeof(home), "%s/.docker", environment("HOME"));
		folder = home;
	}
	if (strlen(folder) > sizeof(home) - 1)
		return err_set(err, BRIG_E_REFUSED, 0, "docker_cert_path is too long");
	t->tls = true;
	(void)snprintf(t->ca, sizeof(t->ca), "%s/ca.pem", folder);
	(void)snprintf(t->cert, sizeof(t->cert), "%s/cert.pem", folder);
	(void)snprintf(t->key, sizeof(t->key), "%s/key.pem", folder);
	for (size_t i = 0; i < 3; i++) {
		const char *path = i == 0 ? t->ca : i == 1 ? t->cert : t->key;

		if (access(path, R_OK) < 0)
			return err_set(err, BRIG_E_REFUSED, errno,
				       "TLS with the container engine needs ca.pem, cert.pem and key.pem in "
				       "docker_cert_path (or "
				       "$DOCKER_CERT_PATH); cannot read %s",
				       path);
	}
	return 0;
}

static int set_named(struct http_target *t, const struct settings *set, const char *host, struct brig_error *err)
{
	int rc;

	if (strncmp(host, "unix://", 7) == 0)
		return set_socket(t, host + 7, err);
	if (strncmp(host, "tcp://", 6) != 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "docker_host '%s' is not understood: use unix:///path/of/the.sock or tcp://host:port",
			       host);
	rc = set_tls(t, set, err);
	if (rc == 0)
		rc = set_host(t, host + 6, err);
	if (rc == 0 && !t->tls && !is_loopback(t->host))
		rc = err_set(err, BRIG_E_REFUSED, 0,
			     "docker_host '%s' is another machine and TLS is not set up: whoever listens on the way "
			     "would be root "
			     "there. Give a folder with ca.pem, cert.pem and key.pem as docker_cert_path",
			     host);
	return rc;
}

/* The usual sockets: below a directory from a variable, or absolute. */
static const struct {
	const char *variable;
	const char *path;
} usual[] = {
	{ NULL, "/run/docker.sock" },          { NULL, "/var/run/docker.sock" },
	{ "XDG_RUNTIME_DIR", "/docker.sock" }, { "XDG_RUNTIME_DIR", "/podman/podman.sock" },
	{ NULL, "/run/podman/podman.sock" },
};

static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int find_usual(struct http_target *t, struct brig_error *err)
{
	char path[sizeof(t->socket)];

	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		const char *folder = usual[i].variable ? environment(usual[i].variable) : "";
		int n = snprintf(path, sizeof(path), "%s%s", folder, usual[i].path);

		if ((usual[i].variable && folder[0] != '/') || n < 0 || (size_t)n >= sizeof(path) || !is_socket(path))
			continue;
		if (access(path, R_OK | W_OK) == 0)
			return set_socket(t, path, err);
		if (!t->socket[0])
			(void)str_copy(t->socket, sizeof(t->socket), path);
	}
	if (t->socket[0])
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, ENOENT,
		"there is no container engine here: none of /run/docker.sock, /var/run/docker.sock, "
		"$XDG_RUNTIME_DIR/docker.sock, $XDG_RUNTIME_DIR/podman/podman.sock and /run/podman/podman.sock is a "
		"socket. Install and start Docker or Podman, or name the engine with docker_host");
}

int engine_locate(const struct settings *set, struct http_target *target, char *address, size_t size,
		  struct brig_error *err)
{
	const char *host = set->docker_host[0] ? set->docker_host : environment("DOCKER_HOST");
	int rc;

	*target = (struct http_target){ 0 };
	rc = host[0] ? set_named(target, set, host, err) : find_usual(target, err);
	if (rc < 0)
		return rc;
	if (target->socket[0])
		(void)snprintf(address, size, "unix://%s", target->socket);
	else
		(void)snprintf(address, size, "tcp://%s:%u", target->host, target->port);
	return 0;
}
