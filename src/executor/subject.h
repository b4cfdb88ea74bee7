/* SPDX-License-Identifier: Apache-2.0 */
/* What a request runs: code in a language, a command, a shell line, or a project's tests. */
#ifndef EXECUTOR_SUBJECT_H
#define EXECUTOR_SUBJECT_H

#include "executor/inspection.h"
#include "executor/tests.h"
#include "lang/lang.h"

/* An internal kind of request: the cell belongs to a session (struct session_link). */
#define SUBJECT_SESSION 100

struct subject {
	const struct brig_request *req;
	const struct language *lang; /* its steps start the subject; commands have a row of their own */
	const char *runtime;         /* the language whose tools its cell needs */
	const char *text;            /* inspected and recorded; len bytes */
	size_t len;
	char *line;              /* heap: the text, if generated here */
	const char *const *args; /* n_args words that follow those of the step */
	size_t n_args;
	struct tests *tests; /* heap; NULL: not a test run */
};

/* Sets the text first, so that later failures are recorded with it. */
int subject_begin(struct subject *s, const struct brig_request *req, struct brig_error *err);
/* Determines the language. archive: the folder of the request's own files, or negative; tests are searched there. */
int subject_detect(struct subject *s, int archive, struct brig_error *err);
void subject_release(struct subject *s);

/* False: it is not inspected. source: its file name in the workspace. */
bool subject_inspection(const struct subject *s, const char *source, enum inspect_kind *ret);

/* Properties of the subject's cell. */
struct subject_place {
	const struct settings *set;
	bool own_path; /* the request's own PATH is searched as well */
	bool in_image; /* the cell brings its own tools: the host is not searched */
};
/* The words that start a step; the subject's args follow, except the first *ret_skip. */
int subject_command(const struct subject *s, const struct lang_step *step, const char *source,
		    const struct subject_place *place, struct lang_command *ret, size_t *ret_skip,
		    struct brig_error *err);
/* Improves on "exit code 127" if the cause is known; otherwise leaves reason unchanged. */
void subject_explain(const struct subject *s, int exit_code, char *reason, size_t size);

#endif
