/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be run: a copy of the message that asked for it, laid out as a request of the library. */
#ifndef SERVER_RUNNER_JOB_H
#define SERVER_RUNNER_JOB_H

#include "server/message.h"
#include "server/routes.h"
#include "server/tokens.h"

#define INLINE_ARTIFACTS_DEFAULT (8 * MiB)  /* of an execution that wants artifacts and says no number */
#define INLINE_ARTIFACTS_MAX     (32 * MiB) /* so that a result fits a message */
#define JOB_FILES_MAX            (512 * MiB)

struct job {
	char *bytes; /* the message's own, which lives no longer than the next one */
	struct message m;
	const char **strings; /* arguments, variables, packages, artifacts, hidden paths: one behind the other */
	struct brig_option *options;
	size_t n_options;
	int files, input, out, project, left; /* FD_NONE: none */
	char backend[TOKEN_WORD_MAX + 1];     /* that the token chose; "": none */
	char lowered[5][24];                  /* values that job_lower() wrote */
	uint64_t held;                        /* bytes of message and files */
	struct brig_request req;              /* points to the above; callbacks, id and who are the caller's to set */
	struct brig_environment env;          /* that it makes, instead of what the request says; name NULL: none */
};

/* Descriptors that came beside the message: who makes a job of it takes them.  FD_NONE: none. */
struct job_descriptors {
	int files, input, out, project, left;
};
#define JOB_DESCRIPTORS_NONE                                \
	{                                                   \
		FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE \
	}

/*
 * Whether those that were sent can be read and written without waiting for anybody, and cannot change meanwhile: 0 or -code.
 * To be asked before anything is done with them.
 */
int job_check_descriptors(struct job_descriptors *beside, struct brig_error *err);

/*
 * Takes the descriptors, which have been checked.  settings: wishes of every request, which its own come behind.  -BRIG_E_USAGE if the fields
 * make no request.
 */
int job_new(const struct message *m, enum route route, struct job_descriptors *beside,
	    const struct brig_option *settings, size_t n_settings, struct job **ret, struct brig_error *err);
void job_free(struct job *job); /* NULL is fine */
/* The highest number of its descriptors; FD_NONE: it has none. */
int job_highest_fd(const struct job *job);

/* The last value that a setting is given, by any of n names; NULL: none is. */
const char *job_wish(const struct job *job, const char *const *names, size_t n, size_t *ret_which);
/* What is to be made, of a job that makes an environment: as the request is now. */
const struct brig_environment *job_environment(struct job *job);
/* What is wished of this setting becomes at most so much; which: one of lowered. */
void job_lower(struct job *job, size_t from, const char *key, uint64_t most, size_t which);
/* Forgets what is wished of the first of n names if the operator sets it, by any of them; from: where the operator's end. */
void job_leave(struct job *job, size_t from, const char *const *names, size_t n);
/* One wish more. */
void job_wish_backend(struct job *job, const char *name);

#endif
