/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running commands through a service on this host (`brig serve`), whose keeper may provide protections that are not
 * available to this user.
 *
 *	service.c       its address, whether it may be used, its refusals
 *	service_ask.c   a request as a message, with descriptors
 *	service_wait.c  records until the answer: events to callbacks, input to the program, cancellation
 *	service_job.c   many calls at once, in steps: jobs of a batch
 *
 * The command then shows an ordinary result (brig_result_from_json).  No path is sent: the service opens none for a
 * caller.  Only this process reads and writes directories (brig_folders_open()); requests that name other places of
 * this host run here, as they do without a service.
 */
#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include <brig/brig.h>
#include <jansson.h>
#include <poll.h>

#include "base/buf.h"
#include "server/channel.h"
#include "server/socket_path.h"

/* The address of a possible service. */
struct service_place {
	char path[SOCKET_PATH_MAX];
	bool is_named; /* by $BRIG_HOST: then nothing runs here instead */
};

/* 1: *ret; 0: none, or none wanted; negative: $BRIG_HOST is invalid. */
int service_find(bool local, struct service_place *ret, struct brig_error *err);
/* Whether a command will look for a service and find a socket; usable before options are parsed. */
bool service_is_likely(void);

/*
 * What only this process can do, such as "--workspace"; NULL: a service can run it.  Depends also on variables and
 * files of this user.
 */
const char *service_own_policy(void);
/* The same for a request: settings that name places of this host, or that belong to this user. */
const char *service_only_here(const struct brig_request *req, bool is_named);
/* 1: run it here, because of why; -code: a service was named, and cannot run it. */
int service_stay_here(const struct service_place *place, const char *why, struct brig_error *err);

/*
 * Runs the request at the service.  0: *ret; 1: it must run here, and nothing was done; negative: it failed there.
 * only_here: the part of it that cannot be sent, or NULL. files_fd of the request, if any, is read and replaced by a
 * copy.
 */
int service_run(const struct service_place *place, const char *only_here, struct brig_request *req,
		struct brig_result **ret, struct brig_error *err);
/* brig_check() at the service: as above, with its status in *ret_status. */
int service_check(const struct service_place *place, const char *only_here, const struct brig_check *req,
		  char **ret_json, int *ret_status, struct brig_error *err);

/* ---- jobs of a batch: nothing here blocks ----------------------------------------------------------------- */

struct service_job;
/*
 * 0: *ret; 1: it must run here; negative: it cannot be run.  What the request points to stays the caller's; it has no
 * stdin_fd.  b reads its project now.  never_again: a queue starts it at most once.
 */
int service_job_begin(const struct service_place *place, struct brig *b, const struct brig_request *req,
		      bool never_again, struct service_job **ret, struct brig_error *err);
/* What to poll before the next step. */
struct pollfd service_job_waits(const struct service_job *j);
/*
 * 1: not finished; 0: finished; negative: the service broke off.  If the service has no room, the request is repeated
 * when it said.
 */
int service_job_step(struct service_job *j, struct brig_error *err);
void service_job_cancel(struct service_job *j); /* ends it with the next step, which need not wait */
/* Frees the job.  0: *ret; 1: it must run here. */
int service_job_end(struct service_job *j, struct brig_result **ret, struct brig_error *err);

/* ---- internal -------------------------------------------------------------------------------------------- */

/* A message to send, and our ends of the descriptors that go with it. */
struct service_ask {
	struct buf message;
	int fds[5]; /* to be sent, in the order of the message's fields */
	size_t n_fds;
	int input; /* socket for the program's input; FD_NONE: none */
	int out;   /* memfd for artifacts; FD_NONE: none wanted */
	int left;  /* the same for everything that is in the workspace at the end */
};
#define SERVICE_ASK_INIT                                                                                    \
	{                                                                                                   \
		.message = BUF_INIT(SERVICE_MESSAGE_MAX), .input = FD_NONE, .out = FD_NONE, .left = FD_NONE \
	}
#define SERVICE_MESSAGE_MAX (96 * MiB)

/* 0, or -code; -BRIG_E_REFUSED: the message would be too large.  folders NULL: the request has none. */
int service_ask_fill(struct service_ask *a, struct brig_request *req, const struct brig_folders *folders,
		     struct brig_error *err);
/* Copies an archive into a sealed memfd; *fd is then the copy, at offset 0. */
int service_copy_archive(int *fd, struct brig_error *err);
/* Adds settings, each as "key=value". */
int service_ask_options(struct buf *m, const struct brig_option *option, size_t n, struct brig_error *err);
int service_ask_check(struct service_ask *a, const struct brig_check *req, struct brig_error *err);
void service_ask_release(struct service_ask *a);

/* An answer of the service. */
struct service_answer {
	bool is_accepted;     /* execution has begun */
	unsigned status;      /* HTTP status; 0: the connection ended without an answer */
	uint64_t retry_after; /* seconds; 0: not given */
	struct buf text;      /* the result, if it is one; otherwise the document that was sent */
};
/* 0: *ret, connected; 1: no service, run it here. */
int service_reach(const struct service_place *place, int *ret, struct brig_error *err);
/* Turns a refusal into an error of the library; 1: run it here. */
int service_refusal(const struct service_place *place, const struct service_answer *a, struct brig_error *err);

/* A call in progress; it borrows everything.  service_call_step(): 1: not finished; 0: there is an answer. */
struct service_call;
int service_call_new(int *sock, const struct service_ask *a, const struct brig_request *req, struct service_answer *ret,
		     struct service_call **ret_call, struct brig_error *err);
struct pollfd service_call_waits(const struct service_call *c);
int service_call_step(struct service_call *c, struct brig_error *err);
void service_call_free(struct service_call *c); /* NULL is fine */
/* Cancels what was requested; the answer still has to be awaited.  Idempotent. */
int service_call_cancel(struct service_call *c, struct brig_error *err);

/*
 * Receives events if there is no request with callbacks: for runs in a session.  The answer to status 200 is then the
 * result that came with the last event.
 */
struct service_listener {
	void (*on_event)(void *user, enum event_kind kind, const json_t *event);
	void *user;
};
void service_call_listen(struct service_call *c, const struct service_listener *listener);
/* Passes on the output in an event of kind stdout or stderr. */
void service_output(const json_t *event, enum brig_stream stream,
		    void (*on_output)(void *user, enum brig_stream stream, const void *data, size_t len), void *user);

/* Takes the socket.  req: its callbacks, input and cancel_fd are used; NULL: none.  -code: the service broke off. */
int service_wait(int *sock, const struct service_ask *a, const struct brig_request *req, struct service_answer *ret,
		 struct brig_error *err);

#endif
