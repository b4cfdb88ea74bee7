/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.c - the listening sockets
 *
 * The default is loopback only; exposing the service to a network must be configured, and is not possible with
 * --no-auth.  A socket passed by systemd (LISTEN_FDS) replaces the default.  The command line has a socket of its own,
 * which carries records (front/relay.c).
 */
#include "server/listen.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/str.h"
#include "net/address.h"
#include "server/report.h"

#define BACKLOG           1024
#define FIRST_GIVEN       3 /* SD_LISTEN_FDS_START */
#define MODE_FOR_ALL      0666
#define MODE_FOR_SELF     0600
#define MODE_OF_FOLDER    0755
#define SOCKET_PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/* Fills in type and address of a socket. */
static int describe(struct listener *l, struct brig_error *err)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa), type_len = sizeof(int);
	char text[ADDRESS_TEXT_MAX];
	struct address a;
	int rc, type = 0;

	if (getsockname(l->fd, (struct sockaddr *)&sa, &len) < 0 ||
	    getsockopt(l->fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot look at a socket to listen on");
	rc = fd_set_nonblock(l->fd);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot use a socket to listen on");
	if (sa.ss_family == AF_UNIX) {
		l->is_unix = true;
		l->is_records = type == SOCK_SEQPACKET;
		(void)snprintf(l->address, sizeof(l->address), "%.*s", (int)(sizeof(l->address) - 1),
			       ((struct sockaddr_un *)&sa)->sun_path);
		return 0;
	}
	if (!address_from_sockaddr((struct sockaddr *)&sa, &a))
		return err_set(err, BRIG_E_USAGE, 0, "a socket to listen on is neither of TCP nor a unix socket");
	l->is_loopback = address_is_loopback(&a);
	(void)snprintf(l->address, sizeof(l->address), a.v6 ? "[%s]:%u" : "%s:%u", address_text(&a, text),
		       address_port((struct sockaddr *)&sa));
	return 0;
}

static int add(struct listeners *l, int *fd, struct brig_error *err)
{
	if (l->n == ARRAY_LEN(l->item))
		return err_set(err, BRIG_E_USAGE, 0, "more than %d places to listen at", LISTENERS_MAX);
	l->item[l->n] = (struct listener){ .fd = fd_move(fd) };
	return describe(&l->item[l->n++], err);
}

/* ---- TCP --------------------------------------------------------------------------------------------- */

/* "127.0.0.1:8377", "[::1]:0", "localhost:8377". */
static bool parse(const char *text, struct address *ret, uint16_t *ret_port)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char host[ADDRESS_TEXT_MAX + 2];
	uint64_t port;

	if (len == 0 || len >= sizeof(host) || !str_to_u64(colon + 1, &port) || port > UINT16_MAX)
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	*ret_port = (uint16_t)port;
	if (str_eq(host, "localhost"))
		return address_parse("127.0.0.1", ret);
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		return address_parse(host + 1, ret) && ret->v6;
	}
	return address_parse(host, ret) && !ret->v6;
}

static int open_tcp(struct listeners *l, const char *text, struct brig_error *err)
{
	struct sockaddr_storage sa;
	AUTO_FD fd = FD_NONE;
	const int on = 1;
	struct address a;
	uint16_t port;
	socklen_t len;

	if (!parse(text, &a, &port))
		return err_set(err, BRIG_E_USAGE, 0,
			       "--listen '%.80s' is no address and port, such as 127.0.0.1:8377 or [::1]:0", text);
	len = address_to_sockaddr(&a, port, &sa);
	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket for %.80s", text);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a.v6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot listen at %.80s%s", text,
			       errno == EADDRINUSE
				       ? ", where another process listens already: choose another with --listen"
				       : "");
	return add(l, &fd, err);
}

/* ---- unix sockets -------------------------------------------------------------------------------------- */

/* A unix socket to create. */
struct unix_place {
	const char *option, *path;
	int type; /* SOCK_STREAM, SOCK_SEQPACKET */
	bool no_auth;
};

/* Removes the socket of an earlier service; refuses one with a listener, and anything that is not a socket. */
static int remove_stale(const struct unix_place *p, const struct sockaddr_un *sa, struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;
	struct stat st;

	if (lstat(p->path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, BRIG_E_USAGE, 0, "--%s '%.200s' is there already, and no socket", p->option,
			       p->path);
	fd = socket(AF_UNIX, p->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno != ECONNREFUSED))
		return err_set(err, BRIG_E_SYSTEM, 0, "another process listens at %.200s already", p->path);
	return unlink(p->path) < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot remove the old %.200s", p->path) : 0;
}

/*
 * Any user may connect: the runner gets the peer's user from the kernel and the policy decides.  With --no-auth only
 * this user may.
 */
static int open_unix(struct listeners *l, const struct unix_place *p, struct brig_error *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	AUTO_FD fd = FD_NONE;
	mode_t before;
	int rc;

	if (!str_copy(sa.sun_path, sizeof(sa.sun_path), p->path) || *p->path == '\0')
		return err_set(err, BRIG_E_USAGE, 0, "--%s needs a path of 1 to %zu bytes", p->option,
			       sizeof(sa.sun_path) - 1);
	rc = remove_stale(p, &sa, err);
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, p->type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket for %.200s", p->path);
	before = umask((mode_t) ~(p->no_auth ? MODE_FOR_SELF : MODE_FOR_ALL) & 0777);
	rc = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, BACKLOG) < 0 ? -errno : 0;
	(void)umask(before);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot listen at %.200s", p->path);
	return add(l, &fd, err);
}

/* The directory of a socket's path; false: it is the root directory, or there is none. */
static bool folder_of(const char *path, char folder[SOCKET_PATH_BYTES])
{
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path || (size_t)(slash - path) >= SOCKET_PATH_BYTES)
		return false;
	memcpy(folder, path, (size_t)(slash - path));
	folder[slash - path] = '\0';
	return true;
}

/* World-readable, so that all users can reach the socket. */
static int make_folder(struct listeners *l, const char *path, struct brig_error *err)
{
	char folder[SOCKET_PATH_BYTES];

	if (!folder_of(path, folder))
		return 0;
	l->made_folder = mkdir(folder, MODE_OF_FOLDER) == 0;
	if (!l->made_folder)
		return errno == EEXIST ? 0
				       : err_set(err, BRIG_E_SYSTEM, errno, "cannot make the folder %.100s", folder);
	return chmod(folder, MODE_OF_FOLDER) < 0
		       ? err_set(err, BRIG_E_SYSTEM, errno, "cannot open the folder %.100s to all", folder)
		       : 0;
}

/* Has no effect if another service has created its socket there meanwhile. */
static void remove_folder(const struct listeners *l)
{
	char folder[SOCKET_PATH_BYTES];

	if (l->made_folder && folder_of(l->socket_path, folder))
		(void)rmdir(folder);
}

static bool is_given(const struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->item[i].is_records)
			return true;
	return false;
}

/* Failing to create the default socket is not fatal; one that was configured explicitly is. */
static int open_socket(struct listeners *l, const struct serve_options *o, struct brig_error *err)
{
	const struct unix_place place = { "socket", o->socket_path, SOCK_SEQPACKET, o->no_auth };
	int rc;

	if (!o->socket_path || (o->socket_is_usual && is_given(l)))
		return 0;
	rc = make_folder(l, o->socket_path, err);
	if (rc == 0)
		rc = open_unix(l, &place, err);
	if (rc == 0)
		l->socket_path = o->socket_path;
	if (rc == 0 || !o->socket_is_usual)
		return rc;
	report("commands of this host will not find this service: %s", err->msg);
	*err = (struct brig_error)BRIG_ERROR_INIT;
	return 0;
}

/* ---- sockets passed by systemd ------------------------------------------------------------------------------ */

static int take_given(struct listeners *l, struct brig_error *err)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t who = 0, n = 0;
	int rc = 0;

	if (!pid || !fds || !str_to_u64(pid, &who) || !str_to_u64(fds, &n) || who != (uint64_t)getpid())
		return 0;
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		int fd = FIRST_GIVEN + (int)i;

		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return err_set(err, BRIG_E_USAGE, errno, "LISTEN_FDS says %llu, but descriptor %d is not open",
				       (unsigned long long)n, fd);
		rc = add(l, &fd, err);
		if (rc == 0)
			l->item[l->n - 1].is_given = true;
	}
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return rc;
}

static int check_open_to_all(const struct listeners *l, const struct serve_options *o, struct brig_error *err)
{
	for (size_t i = 0; i < l->n; i++)
		if (o->no_auth && !l->item[i].is_unix && !l->item[i].is_loopback)
			return err_set(err, BRIG_E_USAGE, 0,
				       "--no-auth would let everybody who reaches %s run programs: it is for loopback "
				       "and unix sockets only; make tokens with 'brig token create'",
				       l->item[i].address);
	return 0;
}

int listeners_open(struct listeners *l, const struct serve_options *o, struct brig_error *err)
{
	char standard[32];

	if (take_given(l, err) < 0)
		return -err->code;
	for (size_t i = 0; i < o->n_listen; i++)
		if (open_tcp(l, o->listen[i], err) < 0)
			return -err->code;
	if (o->unix_path) {
		const struct unix_place place = { "unix", o->unix_path, SOCK_STREAM, o->no_auth };

		if (open_unix(l, &place, err) < 0)
			return -err->code;
		l->unix_path = o->unix_path;
	}
	(void)snprintf(standard, sizeof(standard), "127.0.0.1:%d", SERVE_PORT);
	if (l->n == (is_given(l) ? 1 : 0) && open_tcp(l, standard, err) < 0)
		return -err->code;
	return check_open_to_all(l, o, err) < 0 || open_socket(l, o, err) < 0 ? -err->code : 0;
}

void listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++)
		fd_closep(&l->item[i].fd);
	if (l->unix_path)
		(void)unlink(l->unix_path);
	if (l->socket_path) {
		(void)unlink(l->socket_path);
		remove_folder(l);
	}
	l->n = 0;
	l->unix_path = l->socket_path = NULL;
}
