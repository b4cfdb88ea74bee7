/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands through a service that runs here (`brig serve`), whose keeper may give protections that this user cannot have.
 *
 *	service.c       where it is, whether it may be asked, what it says instead of a result
 *	service_ask.c   a request as a message, with descriptors beside it
 *	service_wait.c  records until the answer: events to callbacks, input to the program, the wish to cancel
 *
 * What the command shows afterwards is a result like any other (brig_result_from_json).  No path travels: the service opens
 * none for anybody.  So whatever names one runs here, as it does where there is no service.
 */
#ifndef CLI_SERVICE_H
#define CLI_SERVICE_H

#include <brig/brig.h>

#include "base/buf.h"
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

/*
 * Runs it there.  0: *ret; 1: it has to run here, and nothing was done; negative: it failed there.  only_here: what of it cannot
 * travel, or NULL.  files_fd of the request is read, if it has one, and a copy put in its place.
 */
int service_run(const struct service_place *place, const char *only_here, struct brig_request *req,
		struct brig_result **ret, struct brig_error *err);
/* brig_check() there: as above, with its status in *ret_status. */
int service_check(const struct service_place *place, const char *only_here, const struct brig_check *req,
		  char **ret_json, int *ret_status, struct brig_error *err);

/* ---- the parts of it ---------------------------------------------------------------------------------- */

/* What is sent, and our ends of what the service was given of it. */
struct service_ask {
	struct buf message;
	int fds[3]; /* to be sent, in the order of the message's fields */
	size_t n_fds;
	int input; /* a socket: what is written to it is the program's input; FD_NONE: it has none */
	int out;   /* a file in memory: artifacts; FD_NONE: none are wanted */
};
#define SERVICE_ASK_INIT                                                                   \
	{                                                                                  \
		.message = BUF_INIT(SERVICE_MESSAGE_MAX), .input = FD_NONE, .out = FD_NONE \
	}
#define SERVICE_MESSAGE_MAX (96 * MiB)

/* 0, or -code; -BRIG_E_REFUSED: it is more than a message can hold. */
int service_ask_fill(struct service_ask *a, struct brig_request *req, struct brig_error *err);
int service_ask_check(struct service_ask *a, const struct brig_check *req, struct brig_error *err);
void service_ask_release(struct service_ask *a);

/* What came back. */
struct service_answer {
	bool is_accepted; /* something of it has happened */
	unsigned status;  /* as of HTTP; 0: the service went without an answer */
	struct buf text;  /* the result, if it is one; else the document that was sent */
};
/* Takes the socket.  req: whose callbacks, input and wish to cancel count; NULL: none.  -code: the service broke off. */
int service_wait(int *sock, const struct service_ask *a, const struct brig_request *req, struct service_answer *ret,
		 struct brig_error *err);

#endif
