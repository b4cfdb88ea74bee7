/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands through a service on this host (`brig serve`), whose keeper may provide protections that are not available
 * to this user.
 *
 *	service.c       where it is, whether it may be asked, what it says instead of a result
 *	service_ask.c   a request as a message, with descriptors beside it
 *	service_wait.c  records until the answer: events to callbacks, input to the program, the wish to cancel
 *	service_job.c   many calls at once, each a step at a time: jobs of a batch
 *
 * What the command shows afterwards is a result like any other (brig_result_from_json).  No path is sent: the service
 * opens none on a caller's behalf.  Folders are read and written by this process alone (brig_folders_open()); what
 * names other places of this host runs here, as it does where there is no service.
 */
#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include <brig/brig.h>
#include <jansson.h>
#include <poll.h>

#include "base/buf.h"
#include "server/channel.h"
#include "server/socket_path.h"

/* A service that may be there. */
struct service_place {
	char path[SOCKET_PATH_MAX];
	bool is_named; /* by $BRIG_HOST: then nothing runs here instead */
};

/* 1: *ret; 0: there is none, or none is wanted; negative: $BRIG_HOST makes no sense. */
int service_find(bool local, struct service_place *ret, struct brig_error *err);
/* Whether a command will look for one and find a socket: known before anything else is. */
bool service_is_likely(void);

/* Why nothing but this process can do it: "--workspace"; NULL: a service can.  Variables and files of this user's decide, too. */
const char *service_own_policy(void);
/* The same for a request: settings that name places of this host, and what is of this user's own. */
const char *service_only_here(const struct brig_request *req, bool is_named);
/* 1: it is to run here, because of why; -code: a service was named, and cannot do it. */
int service_stay_here(const struct service_place *place, const char *why, struct brig_error *err);

/*
 * Runs it there.  0: *ret; 1: it has to run here, and nothing was done; negative: it failed there.  only_here: what of it cannot
 * travel, or NULL.  files_fd of the request is read, if it has one, and a copy put in its place.
 */
int service_run(const struct service_place *place, const char *only_here, struct brig_request *req,
		struct brig_result **ret, struct brig_error *err);
/* brig_check() there: as above, with its status in *ret_status. */
int service_check(const struct service_place *place, const char *only_here, const struct brig_check *req,
		  char **ret_json, int *ret_status, struct brig_error *err);

/* ---- jobs of a batch: nothing here waits ------------------------------------------------------------------ */

struct service_job;
/* 0: *ret; 1: it has to run here; negative: it cannot be done.  What the request points to stays the caller's; it has no
 * stdin_fd.  A project of it is read by b, now.  never_again: a queue begins it once, or it is lost. */
int service_job_begin(const struct service_place *place, struct brig *b, const struct brig_request *req,
		      bool never_again, struct service_job **ret, struct brig_error *err);
/* What to wait for before the next step. */
struct pollfd service_job_waits(const struct service_job *j);
/* 1: not yet; 0: it is over; negative: the service broke off.  One that has no room now is asked again when it said. */
int service_job_step(struct service_job *j, struct brig_error *err);
void service_job_cancel(struct service_job *j); /* it is over with the next step, which need not wait */
/* Frees it.  0: *ret; 1: it has to run here. */
int service_job_end(struct service_job *j, struct brig_result **ret, struct brig_error *err);

/* ---- the parts of it ---------------------------------------------------------------------------------- */

/* What is sent, and our ends of what the service was given of it. */
struct service_ask {
	struct buf message;
	int fds[5]; /* to be sent, in the order of the message's fields */
	size_t n_fds;
	int input; /* a socket: what is written to it is the program's input; FD_NONE: it has none */
	int out;   /* a file in memory: artifacts; FD_NONE: none are wanted */
	int left;  /* the same for all that is in the workspace at the end */
};
#define SERVICE_ASK_INIT                                                                                    \
	{                                                                                                   \
		.message = BUF_INIT(SERVICE_MESSAGE_MAX), .input = FD_NONE, .out = FD_NONE, .left = FD_NONE \
	}
#define SERVICE_MESSAGE_MAX (96 * MiB)

/* 0, or -code; -BRIG_E_REFUSED: it is more than a message can hold.  folders: NULL: the request has none. */
int service_ask_fill(struct service_ask *a, struct brig_request *req, const struct brig_folders *folders,
		     struct brig_error *err);
/* All of an archive in memory, sealed; *fd is then the copy, at its beginning. */
int service_copy_archive(int *fd, struct brig_error *err);
/* Settings, as "key=value" each. */
int service_ask_options(struct buf *m, const struct brig_option *option, size_t n, struct brig_error *err);
int service_ask_check(struct service_ask *a, const struct brig_check *req, struct brig_error *err);
void service_ask_release(struct service_ask *a);

/* What came back. */
struct service_answer {
	bool is_accepted;     /* something of it has happened */
	unsigned status;      /* as of HTTP; 0: the service went without an answer */
	uint64_t retry_after; /* seconds; 0: none are named */
	struct buf text;      /* the result, if it is one; else the document that was sent */
};
/* 0: *ret, connected; 1: no answer, and it is to run here. */
int service_reach(const struct service_place *place, int *ret, struct brig_error *err);
/* What the service says instead of a result, as an error of the library's; 1: it is to run here. */
int service_refusal(const struct service_place *place, const struct service_answer *a, struct brig_error *err);

/* A call that is under way; it borrows everything.  service_call_step(): 1: not yet; 0: there is an answer. */
struct service_call;
int service_call_new(int *sock, const struct service_ask *a, const struct brig_request *req, struct service_answer *ret,
		     struct service_call **ret_call, struct brig_error *err);
struct pollfd service_call_waits(const struct service_call *c);
int service_call_step(struct service_call *c, struct brig_error *err);
void service_call_free(struct service_call *c); /* NULL is fine */
/* What it asked for is to end; the answer is still waited for.  Once is enough. */
int service_call_cancel(struct service_call *c, struct brig_error *err);

/* Where events go when there is no request with callbacks: of what is run in a session.  An answer of 200 is then the
 * result that came with the last event. */
struct service_listener {
	void (*on_event)(void *user, enum event_kind kind, const json_t *event);
	void *user;
};
void service_call_listen(struct service_call *c, const struct service_listener *listener);
/* What a program wrote, by an event of the kind stdout or stderr. */
void service_output(const json_t *event, enum brig_stream stream,
		    void (*on_output)(void *user, enum brig_stream stream, const void *data, size_t len), void *user);

/* Takes the socket.  req: whose callbacks, input and wish to cancel count; NULL: none.  -code: the service broke off. */
int service_wait(int *sock, const struct service_ask *a, const struct brig_request *req, struct service_answer *ret,
		 struct brig_error *err);

#endif
