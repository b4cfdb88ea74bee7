/* SPDX-License-Identifier: Apache-2.0 */
/* What a request runs, whatever its kind: code in a language, a command, a line for the shell, a project's tests. */
#ifndef EXECUTOR_SUBJECT_H
#define EXECUTOR_SUBJECT_H

#include "executor/inspection.h"
#include "executor/tests.h"
#include "lang/lang.h"

/* A kind of request that callers of the library do not make: the cell is a session's (struct session_link). */
#define SUBJECT_SESSION 100

struct subject {
	const struct brig_request *req;
	const struct language *lang; /* whose steps start it; commands have a row of their own */
	const char *runtime;         /* the language whose tools its cell needs */
	const char *text;            /* what is inspected and recorded; len bytes */
	size_t len;
	char *line;              /* heap: the text, if it is made here */
	const char *const *args; /* what follows the words of its step: n_args of them */
	size_t n_args;
	struct tests *tests; /* heap; NULL: it is no test run */
};

/* The text comes first, so that whatever goes wrong later is recorded with it. */
int subject_begin(struct subject *s, const struct brig_request *req, struct brig_error *err);
/* The language.  archive: the folder of the request's own files, or negative; tests are looked for there. */
int subject_detect(struct subject *s, int archive, struct brig_error *err);
void subject_release(struct subject *s);

/* False: it is not inspected.  source: the name of its file in the workspace. */
bool subject_inspection(const struct subject *s, const char *source, enum inspect_kind *ret);

/* Where its cell differs from others. */
struct subject_place {
	const struct settings *set;
	bool own_path; /* programs are looked for in places of the request's own, too */
	bool in_image; /* the cell brings its own tools: the host is not searched */
};
/* The words that start a step; the subject's args follow, without the first *ret_skip of them. */
int subject_command(const struct subject *s, const struct lang_step *step, const char *source,
		    const struct subject_place *place, struct lang_command *ret, size_t *ret_skip,
		    struct brig_error *err);
/* More than "exit code 127", where that is known.  reason has the usual words and keeps them if nothing is. */
void subject_explain(const struct subject *s, int exit_code, char *reason, size_t size);

#endif
