/* SPDX-License-Identifier: Apache-2.0 */
#include "server/exporter.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "net/http.h"
#include "server/confine.h"
#include "sys/landlock.h"
#include "sys/proc.h"
#include "sys/seccomp.h"
#include "server/report.h"

#define QUEUE_BYTES (2 * MiB)            /* requested size; the kernel may allow less */
#define BODY_MAX    ((size_t)(2 * MiB))  /* of one request */
#define ANSWER_MAX  ((size_t)(64 * KiB)) /* the response is ignored */
#define POST_NS     (5 * NS_PER_SEC)
#define START_MS    15000
#define LAST_NS     (3 * NS_PER_SEC)
#define OUR_SOCKET  3
#define TRACES_PATH "/v1/traces"

/* In memory shared by both processes. */
struct shared_counts {
	_Atomic uint64_t exported, failed;
};

struct exporter {
	int socket, pidfd;
	uint64_t dropped; /* spans that did not fit into the socket, or were sent after the exporter had died */
	bool has_said;
	struct shared_counts *counts;
};

struct record_head {
	uint32_t n_spans;
};

/* ---- the collector's address ------------------------------------------------------------------------------- */

struct collector {
	struct http_target target;
	char path[512];
};

static int complain_url(const char *url, const char *why, struct brig_error *err)
{
	return err_set(err, BRIG_E_USAGE, 0,
		       "'%.200s' is no address of a collector (%s): give one such as http://127.0.0.1:4318", url, why);
}

/* "host", "host:port", "[v6]:port". */
static int read_authority(const char *url, const char *at, size_t len, struct collector *ret, struct brig_error *err)
{
	const char *end = at + len, *port = NULL, *host_end = end;
	uint64_t n = ret->target.tls ? 443 : 80;
	char text[8] = "";

	if (len > 0 && *at == '[') {
		host_end = memchr(at, ']', len);
		if (!host_end)
			return complain_url(url, "a bracket is open", err);
		at++;
		port = host_end + 1 < end && host_end[1] == ':' ? host_end + 2 : NULL;
	} else if ((host_end = memchr(at, ':', len))) {
		port = host_end + 1;
	} else {
		host_end = end;
	}
	if (memchr(at, '@', (size_t)(end - at)))
		return complain_url(url, "it has a password in it", err);
	if (host_end == at || (size_t)(host_end - at) >= sizeof(ret->target.host))
		return complain_url(url, "there is no host in it", err);
	if (port && ((size_t)(end - port) >= sizeof(text) || end == port))
		return complain_url(url, "its port is no number", err);
	memcpy(ret->target.host, at, (size_t)(host_end - at));
	if (port)
		memcpy(text, port, (size_t)(end - port));
	if (port && (!str_to_u64(text, &n) || n == 0 || n > 65535))
		return complain_url(url, "its port is no number", err);
	ret->target.port = (unsigned)n;
	return 0;
}

static int read_url(const char *url, struct collector *ret, struct brig_error *err)
{
	static const char http[] = "http://", https[] = "https://";
	bool is_plain = strncmp(url, http, strlen(http)) == 0, is_tls = strncmp(url, https, strlen(https)) == 0;
	const char *at = url + (is_tls ? strlen(https) : strlen(http)), *path;
	size_t len;

	*ret = (struct collector){ .target = { .tls = is_tls } };
	if (!is_plain && !is_tls)
		return complain_url(url, "it begins with neither http:// nor https://", err);
	len = strcspn(at, "/");
	if (read_authority(url, at, len, ret, err) < 0)
		return -err->code;
	path = at + len;
	len = strlen(path);
	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len + sizeof(TRACES_PATH) > sizeof(ret->path) || strpbrk(path, "?# "))
		return complain_url(url, "its path is none", err);
	memcpy(ret->path, path, len);
	if (len < strlen(TRACES_PATH) || !str_eq(ret->path + len - strlen(TRACES_PATH), TRACES_PATH))
		(void)str_copy(ret->path + len, sizeof(ret->path) - len, TRACES_PATH);
	return 0;
}

/* Before confinement: libcurl would start a thread for this, which a confined process cannot. */
static int look_up(struct collector *c, struct brig_error *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	AUTO_BUF found = BUF_INIT(sizeof(c->target.address) - 1);
	int rc = getaddrinfo(c->target.host, NULL, &hints, &list);
	char one[64];

	for (const struct addrinfo *a = list; a && rc == 0; a = a->ai_next) {
		rc = getnameinfo(a->ai_addr, a->ai_addrlen, one, sizeof(one), NULL, 0, NI_NUMERICHOST);
		(void)buf_addf(&found, "%s%s", found.len ? "," : "", one); /* as many addresses as fit */
	}
	(void)str_copy(c->target.address, sizeof(c->target.address), buf_str(&found));
	if (list)
		freeaddrinfo(list);
	if (str_eq(c->target.address, c->target.host)) /* the host is a numeric address itself */
		c->target.address[0] = '\0';
	return rc == 0 ? 0
		       : err_set(err, BRIG_E_SYSTEM, 0, "the collector of traces, %.100s, is not to be found: %s",
				 c->target.host, gai_strerror(rc));
}

/* ---- the process -------------------------------------------------------------------------------------------- */

static int confine_exporter(struct brig_error *err)
{
	/* CA certificates, for TLS. */
	static const char *const places[] = { "/etc/ssl", "/etc/pki", "/usr/lib/ssl", "/usr/share/ca-certificates",
					      "/usr/local/share/ca-certificates" };
	struct landlock_rule rules[ARRAY_LEN(places)];
	const struct confinement c = { .rules = rules,
				       .n_rules = confine_read_rules(places, ARRAY_LEN(places), rules),
				       .filter = seccomp_filter_for(FAMILY_PROXY, false) };
	const char *step;
	int rc = confine(&c, &step);

	return rc == 0 ? 0 : err_set(err, BRIG_E_REFUSED, -rc, "the exporter of traces cannot be confined (%s)", step);
}

static void begin_body(struct buf *body)
{
	buf_addf(body,
		 "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"
		 "{\"stringValue\":\"brig\"}},{\"key\":\"service.version\",\"value\":{\"stringValue\":\"%s\"}}]},"
		 "\"scopeSpans\":[{\"scope\":{\"name\":\"brig.serve\",\"version\":\"%s\"},\"spans\":[",
		 brig_version(), brig_version());
}

/*
 * Collects queued spans, as many as fit into one request; returns their number.  *ret_over: the runner has closed the
 * socket.
 */
static uint64_t gather(struct buf *body, char *record, bool *ret_over)
{
	uint64_t n = 0;

	begin_body(body);
	while (body->len + EXPORTER_RECORD_MAX < BODY_MAX) {
		ssize_t len = recv(OUR_SOCKET, record, EXPORTER_RECORD_MAX, MSG_DONTWAIT);
		struct record_head head;

		*ret_over = len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
		if (len < (ssize_t)sizeof(head))
			break;
		memcpy(&head, record, sizeof(head));
		if (n > 0)
			buf_adds(body, ",");
		buf_add(body, record + sizeof(head), (size_t)len - sizeof(head));
		n += head.n_spans;
	}
	buf_adds(body, "]}]}]}");
	return n;
}

static bool post(struct http_client *client, const struct collector *c, const struct buf *body)
{
	const struct http_request req = { .method = "POST",
					  .path = c->path,
					  .content_type = "application/json",
					  .body = body->data,
					  .body_len = body->len,
					  .deadline_ns = clock_now_ns() + POST_NS,
					  .max_body = ANSWER_MAX };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;

	return !body->no_memory && http_send(client, &req, &answer, NULL, &err) == 0 && answer.status / 100 == 2;
}

static void serve_runner(struct http_client *client, const struct collector *c, struct shared_counts *counts)
{
	AUTO_FREE char *record = malloc(EXPORTER_RECORD_MAX);
	bool is_over = record == NULL;

	while (!is_over) {
		struct pollfd p = { .fd = OUR_SOCKET, .events = POLLIN };
		AUTO_BUF body = BUF_INIT(BODY_MAX + KiB);
		uint64_t n;

		(void)poll(&p, 1, -1);
		n = gather(&body, record, &is_over);
		if (n > 0)
			atomic_fetch_add(post(client, c, &body) ? &counts->exported : &counts->failed, n);
	}
}

/* One byte on success, else the error. */
static void answer_start(const struct brig_error *err, int rc)
{
	(void)send(OUR_SOCKET, rc < 0 ? (const void *)err : "", rc < 0 ? sizeof(*err) : 1, MSG_NOSIGNAL);
}

static _Noreturn void exporter_main(const char *url, int sock, struct shared_counts *counts, pid_t parent)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct http_client *client = NULL;
	struct collector c;
	int rc;

	(void)prctl(PR_SET_NAME, "brig-exporter");
	(void)signal(SIGPIPE, SIG_IGN);
	if (dup2(sock, OUR_SOCKET) < 0 || syscall(SYS_close_range, OUR_SOCKET + 1, ~0u, 0) < 0)
		_exit(1);
	rc = read_url(url, &c, &err);
	if (rc == 0)
		rc = look_up(&c, &err);
	if (rc == 0)
		rc = http_open(&c.target, &client, &err);
	if (rc == 0)
		rc = confine_exporter(&err);
	if (rc == 0 && getppid() != parent)
		_exit(1);
	answer_start(&err, rc);
	if (rc == 0)
		serve_runner(client, &c, counts);
	_exit(0);
}

/* ---- the runner's side ------------------------------------------------------------------------------------------ */

static int await_start(int sock, struct brig_error *err)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct brig_error why = BRIG_ERROR_INIT;
	ssize_t n = poll(&p, 1, START_MS) == 1 ? recv(sock, &why, sizeof(why), MSG_DONTWAIT) : -1;

	if (n == 1)
		return 0;
	if (n != (ssize_t)sizeof(why))
		return err_set(err, BRIG_E_SYSTEM, 0, "the exporter of traces does not start");
	why.msg[sizeof(why.msg) - 1] = '\0';
	*err = why;
	return -BRIG_E_SYSTEM;
}

static int fork_exporter(struct exporter *e, const char *url, struct brig_error *err)
{
	const int size = QUEUE_BYTES;
	AUTO_FD theirs = FD_NONE;
	pid_t parent = getpid(), pid;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket for the exporter of traces");
	e->socket = ends[0];
	theirs = ends[1];
	if (setsockopt(e->socket, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(e->socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	pid = fork();
	if (pid == 0)
		exporter_main(url, theirs, e->counts, parent);
	if (pid < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot start the exporter of traces");
	e->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (e->pidfd < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot watch the exporter of traces");
	fd_closep(&theirs); /* otherwise this process would not see the child's end close */
	return await_start(e->socket, err);
}

int exporter_start(const char *url, struct exporter **ret, struct brig_error *err)
{
	struct exporter *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return err_nomem(err);
	e->socket = e->pidfd = FD_NONE;
	e->counts = mmap(NULL, sizeof(*e->counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (e->counts == MAP_FAILED) {
		free(e);
		return err_nomem(err);
	}
	rc = fork_exporter(e, url, err);
	if (rc < 0)
		exporter_close(e);
	else
		*ret = e;
	return rc;
}

void exporter_send(struct exporter *e, const char *spans, size_t len, uint32_t n)
{
	struct record_head head = { .n_spans = n };
	struct iovec pieces[] = { { &head, sizeof(head) }, { (void *)(uintptr_t)spans, len } };
	const struct msghdr m = { .msg_iov = pieces, .msg_iovlen = ARRAY_LEN(pieces) };

	if (sizeof(head) + len <= EXPORTER_RECORD_MAX && sendmsg(e->socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return;
	e->dropped += n;
	if (errno == EPIPE && !e->has_said) {
		e->has_said = true;
		report("the exporter of traces has ended: restart the service to have traces exported again");
	}
}

void exporter_counts(const struct exporter *e, struct exporter_counts *ret)
{
	ret->exported = atomic_load(&e->counts->exported);
	ret->dropped = e->dropped + atomic_load(&e->counts->failed);
}

void exporter_close(struct exporter *e)
{
	if (!e)
		return;
	fd_closep(&e->socket); /* the exporter exits when it has sent what is queued */
	if (e->pidfd >= 0 && proc_reap(&e->pidfd, clock_now_ns() + LAST_NS, NULL) < 0 && e->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, e->pidfd, SIGKILL, NULL, 0);
		if (proc_reap(&e->pidfd, clock_now_ns() + LAST_NS, NULL) < 0)
			proc_leave(&e->pidfd);
	}
	(void)munmap(e->counts, sizeof(*e->counts));
	free(e);
}
