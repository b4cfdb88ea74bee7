/* SPDX-License-Identifier: Apache-2.0 */
/* A job: a copy of the message that submitted it, laid out as a request for the library. */
#ifndef SERVER_RUNNER_JOB_H
#define SERVER_RUNNER_JOB_H

#include "server/message.h"
#include "server/routes.h"
#include "server/tokens.h"

#define INLINE_ARTIFACTS_DEFAULT (8 * MiB)  /* for a request that names artifacts but no limit */
#define INLINE_ARTIFACTS_MAX     (32 * MiB) /* so that a result fits a message */
#define JOB_FILES_MAX            (512 * MiB)

struct job {
	char *bytes; /* copy of the message, whose own bytes are valid only until the next one */
	struct message m;
	const char **strings; /* arguments, variables, packages, artifacts, hidden paths, one list after another */
	struct brig_option *options;
	size_t n_options;
	int files, input, out, project, left; /* FD_NONE: none */
	char backend[TOKEN_WORD_MAX + 1];     /* chosen by the token; "": none */
	char lowered[5][24];                  /* values written by job_lower() */
	uint64_t held;                        /* bytes of message and files */
	struct brig_request req;              /* points into the above; the caller sets callbacks, id and who */
	struct brig_environment env;          /* the environment to create instead of a run; name NULL: none */
};

/* Descriptors received with a message; job_new() takes them.  FD_NONE: none. */
struct job_descriptors {
	int files, input, out, project, left;
};
#define JOB_DESCRIPTORS_NONE                                \
	{                                                   \
		FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE \
	}

/*
 * Checks that these descriptors can be read and written without blocking, and that inputs cannot change: 0 or -code.
 * Must precede any use of them.
 */
int job_check_descriptors(struct job_descriptors *beside, struct brig_error *err);

/*
 * Takes the descriptors, which must have been checked.  settings: of the operator; they precede the request's own.
 * -BRIG_E_USAGE: the fields make no valid request.
 */
int job_new(const struct message *m, enum route route, struct job_descriptors *beside,
	    const struct brig_option *settings, size_t n_settings, struct job **ret, struct brig_error *err);
void job_free(struct job *job); /* NULL is allowed */
/* The highest of its descriptors; FD_NONE: there are none. */
int job_highest_fd(const struct job *job);

/* The last value given for a setting, under any of its n names; NULL: none. */
const char *job_wish(const struct job *job, const char *const *names, size_t n, size_t *ret_which);
/* The environment to create, with the current values of the request. */
const struct brig_environment *job_environment(struct job *job);
/* Caps a numeric setting of the request; which: index into `lowered`.  from: number of the operator's settings. */
void job_lower(struct job *job, size_t from, const char *key, uint64_t most, size_t which);
/*
 * Removes the request's setting names[0] if the operator sets it under any of its n names; from: number of the
 * operator's settings.
 */
void job_leave(struct job *job, size_t from, const char *const *names, size_t n);
/* Appends a setting `backend`. */
void job_wish_backend(struct job *job, const char *name);

#endif
