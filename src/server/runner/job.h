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
	const char **strings; /* arguments, variables, packages, artifacts: one behind the other */
	struct brig_option *options;
	size_t n_options;
	int files, input, out; /* FD_NONE: none */
	bool files_are_ours;
	char backend[TOKEN_WORD_MAX + 1]; /* that the token chose; "": none */
	uint64_t held;                    /* bytes of message and files */
	struct brig_request req;          /* points to the above; callbacks, id and who are the caller's to set */
};

/* Descriptors that came beside the message: who makes a job of it takes them.  FD_NONE: none. */
struct job_descriptors {
	int files, input, out;
	bool files_are_ours; /* the runner itself has made or opened them */
};
#define JOB_DESCRIPTORS_NONE                     \
	{                                        \
		FD_NONE, FD_NONE, FD_NONE, false \
	}

/*
 * Takes the descriptors.  settings: wishes of every request, which its own come behind.  -BRIG_E_USAGE if the fields
 * make no request.
 */
int job_new(const struct message *m, enum route route, struct job_descriptors *beside,
	    const struct brig_option *settings, size_t n_settings, struct job **ret, struct brig_error *err);
void job_free(struct job *job); /* NULL is fine */

/* The last value that a setting is given, by any of n names; NULL: none is. */
const char *job_wish(const struct job *job, const char *const *names, size_t n, size_t *ret_which);
/* One wish more. */
void job_wish_backend(struct job *job, const char *name);

#endif
