/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static inspection: reads code the way its engine will, before anything runs, and explains what it found.  It is a
 * guard rail with clear refusals; the security boundary is the cell.  "No finding" never means "safe".
 */
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include "base/err.h"
#include "inspect/rules.h"
#include "model/finding.h"
#include "model/settings.h"

/* The kind of a text.  There is no inspector for C. */
enum inspect_kind {
	INSPECT_PYTHON,
	INSPECT_NOTEBOOK, /* Python with commands and magics between its lines, as kernels accept it */
	INSPECT_JAVASCRIPT,
	INSPECT_TYPESCRIPT,
	INSPECT_TSX,
	INSPECT_GO,
	INSPECT_SHELL,   /* a script */
	INSPECT_COMMAND, /* one command line, as handed to sh -c */
	INSPECT_PATH,    /* a path, judged against a workspace */
	INSPECT_KIND_COUNT
};
extern const char *const inspect_kind_name[INSPECT_KIND_COUNT];

struct inspect_request {
	enum inspect_kind kind;
	enum inspection level;
	const char *text;
	size_t len;
	const char *workspace;                       /* for paths; NULL: "/workspace" */
	bool has_input;                              /* the program gets standard input that is not part of the text */
	bool strict_commands;                        /* only commands of the allow-list, no dynamic words */
	const struct setting_list *allowed_commands; /* further commands of the allow-list; NULL: none */
	/* Modules that came with the program, in the language of asked_kind: allowed together with their submodules. */
	const char *const *asked;
	size_t n_asked;
	enum inspect_kind asked_kind;
};

/*
 * Inspects in this process: only for trusted texts, because hostile nesting can exhaust the stack of a parser.  0: *ret
 * holds the findings (maybe none); negative: inspection was impossible (memory).  Text that cannot be analysed is a
 * finding, not an error.
 */
int inspect_text(const struct rule_set *rules, const struct inspect_request *req, struct findings *ret,
		 struct brig_error *err);
/*
 * Inspects in a child process with its own limits on memory, time and system calls, so that a parser bug cannot hurt
 * the caller.  If the child dies or exceeds a limit, that is a finding: check "not-analysable" (CRITICAL), or
 * "too-large" for a long text that takes too much time or memory.
 */
int inspect_confined(const struct rule_set *rules, const struct inspect_request *req, struct findings *ret,
		     struct brig_error *err);

/*
 * Pre-forked workers: a child process keeps up to `spares` of them, each used once (inspectors.c).  They have a copy of
 * these rules and use no others.  The child ends with inspectors_close() or with this process.
 */
#define INSPECTORS_SPARES_MAX 8
struct inspectors;
int inspectors_open(const struct rule_set *rules, unsigned spares, struct inspectors **ret, struct brig_error *err);
/*
 * Makes the child replace used workers; call it when no client waits for a result.  False: the child is gone; close it.
 */
bool inspectors_refill(struct inspectors *from);
void inspectors_close(struct inspectors *from); /* accepts NULL */

/*
 * inspect_confined() in two halves, so that the caller can do something else meanwhile.  Rules and text are borrowed
 * until the end. from: opened with these rules; NULL: none.  If it has no ready worker, one is forked.
 */
struct inspect_job;
int inspect_begin(struct inspectors *from, const struct rule_set *rules, const struct inspect_request *req,
		  struct inspect_job **ret, struct brig_error *err);
/* Waits for the findings; frees the job, whatever it returns. */
int inspect_finish(struct inspect_job *job, struct findings *ret, struct brig_error *err);
/*
 * inspect_finish() for a caller that has something urgent to do next: leaves it to the inspectors to reap a spare
 * worker that has answered.
 */
int inspect_finish_beside(struct inspect_job *job, struct inspectors *beside, struct findings *ret,
			  struct brig_error *err);
void inspect_cancel(struct inspect_job *job); /* accepts NULL */

#endif
