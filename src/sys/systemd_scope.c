/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delegated control group for an ordinary user, from systemd.
 *
 * The user's manager is asked over D-Bus (StartTransientUnit) for a scope that holds this process.
 * First through the manager's own socket, which needs no bus daemon, then through the session bus.
 * libsystemd is loaded only here: most runs never need it, and loading costs more than a cell.
 * For the same reason it is not needed to build brig: the few functions are declared below.
 *
 * The call is asynchronous and we drive the event loop ourselves, because the library's blocking call may wait for the
 * connection far longer than its own timeout.  The reply only says that a job was queued; that it is done shows in
 * /proc/self/cgroup.
 */
#include "sys/systemd_scope.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/library.h"
#include "base/str.h"
#include "sys/cgroup_internal.h"

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct sd_bus_slot sd_bus_slot;

struct bus_error { /* the public face of sd_bus_error */
	const char *name;
	const char *message;
	int need_free;
};

typedef int (*bus_handler)(sd_bus_message *m, void *arg, struct bus_error *ret_error);

#define BUS_CALLS(X)                                                                                           \
	X(int, sd_bus_new, (sd_bus **))                                                                        \
	X(int, sd_bus_set_address, (sd_bus *, const char *))                                                   \
	X(int, sd_bus_start, (sd_bus *))                                                                       \
	X(int, sd_bus_open_user, (sd_bus **))                                                                  \
	X(int, sd_bus_message_new_method_call,                                                                 \
	  (sd_bus *, sd_bus_message **, const char *, const char *, const char *, const char *))               \
	X(int, sd_bus_message_append, (sd_bus_message *, const char *, ...))                                   \
	X(int, sd_bus_call_async, (sd_bus *, sd_bus_slot **, sd_bus_message *, bus_handler, void *, uint64_t)) \
	X(int, sd_bus_process, (sd_bus *, sd_bus_message **))                                                  \
	X(int, sd_bus_wait, (sd_bus *, uint64_t))                                                              \
	X(const struct bus_error *, sd_bus_message_get_error, (sd_bus_message *))                              \
	X(sd_bus_message *, sd_bus_message_unref, (sd_bus_message *))                                          \
	X(sd_bus *, sd_bus_close_unref, (sd_bus *))

struct bus_library {
	void *handle;
#define X(result, name, args) result(*name) args;
	BUS_CALLS(X)
#undef X
};

struct request {
	struct bus_library lib;
	sd_bus *bus;
	uint64_t timeout_ns;
	uint64_t deadline_ns;
	char unit[48];
	bool answered;
	bool refused;
	char *why;
	size_t size;
};

static int fail(struct request *q, int r, const char *what)
{
	(void)snprintf(q->why, q->size,
		       "the systemd user manager gives no scope, %s (%s): run as root, or have a group delegated", what,
		       strerrordesc_np(-r) ?: "unknown error");
	return r;
}

static int load(struct bus_library *lib)
{
	static const char *const names[] = { "libsystemd.so.0", NULL };
	static const struct library_function functions[] = {
#define X(result, name, args) { #name, offsetof(struct bus_library, name) },
		BUS_CALLS(X)
#undef X
	};
	const struct library systemd = { names, functions, ARRAY_LEN(functions) };
	const char *why;

	return library_load(&systemd, lib, &lib->handle, &why);
}

/* The manager's own socket; its directory belongs to the user, so nobody else can pose as the manager. */
static bool private_socket(char *path, size_t size)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int len;

	if (runtime && runtime[0] == '/')
		len = snprintf(path, size, "%s/systemd/private", runtime);
	else
		len = snprintf(path, size, "/run/user/%u/systemd/private", (unsigned)geteuid());
	return len > 0 && (size_t)len < size && stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

static int connect_to(struct request *q, const char *address)
{
	int r;

	if (!address)
		return q->lib.sd_bus_open_user(&q->bus);
	r = q->lib.sd_bus_new(&q->bus);
	if (r >= 0)
		r = q->lib.sd_bus_set_address(q->bus, address);
	return r < 0 ? r : q->lib.sd_bus_start(q->bus);
}

static int on_reply(sd_bus_message *m, void *arg, struct bus_error *ret_error UNUSED)
{
	struct request *q = arg;
	const struct bus_error *error = q->lib.sd_bus_message_get_error(m);

	q->answered = true;
	q->refused = error != NULL;
	if (error)
		(void)snprintf(q->why, q->size, "the systemd user manager gives no scope: %.90s",
			       error->message ? error->message : error->name);
	return 1;
}

static int send_request(struct request *q)
{
	sd_bus_message *m = NULL;
	int r = q->lib.sd_bus_message_new_method_call(q->bus, &m, "org.freedesktop.systemd1",
						      "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
						      "StartTransientUnit");

	if (r >= 0)
		r = q->lib.sd_bus_message_append(m, "ssa(sv)a(sa(sv))", q->unit, "fail", 4, /* properties */
						 "Description", "s", "brig cells", "Delegate", "b", 1, "CollectMode",
						 "s", "inactive-or-failed", "PIDs", "au", 1, (uint32_t)getpid(),
						 0 /* further units */);
	if (r >= 0)
		r = q->lib.sd_bus_call_async(q->bus, NULL, m, on_reply, q, (uint64_t)60 * 1000000);
	q->lib.sd_bus_message_unref(m);
	return r;
}

static int await_reply(struct request *q)
{
	while (!q->answered) {
		uint64_t now = clock_now_ns();
		int r;

		if (now >= q->deadline_ns)
			return -ETIMEDOUT;
		r = q->lib.sd_bus_process(q->bus, NULL);
		if (r == 0)
			r = q->lib.sd_bus_wait(q->bus, (q->deadline_ns - now) / 1000 + 1);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return q->refused ? -EPERM : 0;
}

static bool is_inside(const struct request *q)
{
	char path[CGROUP_PATH_MAX];
	const char *last;

	if (cgroup_v2_own_path(path, sizeof(path)) < 0)
		return false;
	last = strrchr(path, '/');
	return last && str_eq(last + 1, q->unit);
}

static int await_move(const struct request *q)
{
	while (!is_inside(q)) {
		if (clock_now_ns() >= q->deadline_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
	}
	return 0;
}

static int ask(struct request *q, const char *address)
{
	int r = connect_to(q, address);

	if (r < 0)
		(void)fail(q, r, "no connection");
	if (r >= 0) {
		r = send_request(q);
		if (r >= 0)
			r = await_reply(q);
		if (r < 0 && !q->refused)
			(void)fail(q, r, "no answer");
	}
	if (r >= 0) {
		q->deadline_ns += q->timeout_ns; /* it is alive and working: do not give up too early */
		r = await_move(q);
		if (r < 0)
			(void)fail(q, r, "it did not move us");
	}
	if (q->bus)
		q->bus = q->lib.sd_bus_close_unref(q->bus); /* also drops the pending reply, which points at *q */
	return r < 0 ? r : 0;
}

int systemd_scope_enter(unsigned timeout_ms, char *why, size_t size)
{
	struct request q = { .why = why, .size = size, .timeout_ns = timeout_ms * NS_PER_MS };
	char address[160] = "unix:path=", random[9];
	bool has_socket = private_socket(address + strlen(address), sizeof(address) - strlen(address));
	int r;

	q.deadline_ns = clock_now_ns() + q.timeout_ns;
	/* Neither way can work: spare the loading of the library. */
	if (!has_socket && !secure_getenv("XDG_RUNTIME_DIR") && !secure_getenv("DBUS_SESSION_BUS_ADDRESS"))
		return fail(&q, -ENOENT, "there is none");
	r = id_random(random, sizeof(random) - 1);
	if (r < 0)
		return fail(&q, r, "no random name");
	(void)snprintf(q.unit, sizeof(q.unit), "brig-%d-%s.scope", (int)getpid(), random);
	r = load(&q.lib);
	if (r < 0) {
		r = fail(&q, r, "libsystemd.so.0 is missing or too old");
	} else {
		r = has_socket ? ask(&q, address) : fail(&q, -ENOENT, "it has no socket");
		if (r < 0 && !q.answered && clock_now_ns() < q.deadline_ns)
			r = ask(&q, NULL);
	}
	if (q.lib.handle)
		(void)dlclose(q.lib.handle);
	return r;
}
