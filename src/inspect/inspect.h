/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static inspection: reads code the way its engine will, before anything runs, and explains what it found. A guard rail
 * with clear refusals, not the wall: the cell is the wall.  "No finding" never means "safe".
 */
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include "base/err.h"
#include "inspect/rules.h"
#include "model/finding.h"
#include "model/settings.h"

/* What the text is.  C has no inspector. */
enum inspect_kind {
	INSPECT_PYTHON,
	INSPECT_NOTEBOOK, /* Python with commands and magics between its lines, as kernels take it */
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
	bool has_input;                              /* something comes on its standard input that is not in the text */
	bool strict_commands;                        /* only the white-list of commands, no dynamic words */
	const struct setting_list *allowed_commands; /* further ones of the white-list; NULL: none */
	/* Modules that came with the program, of the language of asked_kind: on the allow-list with all that is in them. */
	const char *const *asked;
	size_t n_asked;
	enum inspect_kind asked_kind;
};

/*
 * In this process: only for trusted texts, because hostile nesting can exhaust the stack of a parser.  0: *ret holds
 * the findings (maybe none); negative: inspection was impossible (memory).  Text that cannot be analysed is a finding,
 * not an error.
 */
int inspect_text(const struct rule_set *rules, const struct inspect_request *req, struct findings *ret,
		 struct brig_error *err);
/*
 * The same in a child process with its own limits on memory, time and system calls, so that a parser bug cannot
 * hurt the caller.  If the child dies or runs out of a limit, that is a CRITICAL finding (check "not-analysable").
 */
int inspect_confined(const struct rule_set *rules, const struct inspect_request *req, struct findings *ret,
		     struct brig_error *err);

/*
 * Workers that are ready before there is a text: a child process that only keeps up to `spares` of them, each used once
 * (inspectors.c).  They have a copy of these rules and use no others.  The child ends with inspectors_close() or with
 * this process.
 */
#define INSPECTORS_SPARES_MAX 8
struct inspectors;
int inspectors_open(const struct rule_set *rules, unsigned spares, struct inspectors **ret, struct brig_error *err);
/* Has the child replace used ones: call it when nothing waits for a result.  False: the child is gone; close it. */
bool inspectors_refill(struct inspectors *from);
void inspectors_close(struct inspectors *from); /* NULL is fine */

/*
 * The same in two halves, so that the caller can do something else meanwhile.  Rules and text are borrowed until the end.
 * from: made with these rules; NULL: none.  If no worker waits there, one is forked.
 */
struct inspect_job;
int inspect_begin(struct inspectors *from, const struct rule_set *rules, const struct inspect_request *req,
		  struct inspect_job **ret, struct brig_error *err);
/* Waits for the findings; the job is gone afterwards, whatever is returned. */
int inspect_finish(struct inspect_job *job, struct findings *ret, struct brig_error *err);
/* The same, for a caller that has something urgent to do next: a spare worker that has answered is left to the
 * inspectors to reap. */
int inspect_finish_beside(struct inspect_job *job, struct inspectors *beside, struct findings *ret,
			  struct brig_error *err);
void inspect_cancel(struct inspect_job *job); /* NULL is fine */

#endif
