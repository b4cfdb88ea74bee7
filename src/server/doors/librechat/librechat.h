/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LibreChat's code interpreter: programs, and the files that they share.
 *
 * A storage session is a workspace of the runner's (runner/workspaces.h), which its token owns and nobody else's opens.  In it each file
 * has a folder of its own, named by the file's id: "f2k.../sub/b.txt".  What is read-only has an id that says so.
 */
#ifndef SERVER_DOORS_LIBRECHAT_H
#define SERVER_DOORS_LIBRECHAT_H

#include "server/archive.h"
#include "server/doors/door.h"

#define LIBRECHAT_ID_LEN      21
#define LIBRECHAT_REFS_MAX    256
#define LIBRECHAT_HINT_MAX    256
#define LIBRECHAT_RUNTIME_LEN 21

/* A file that a request names. */
struct librechat_ref {
	json_t *doc; /* as it was sent */
	const char *id, *session, *name;
	bool is_asked, is_there;
};

/* A program on its way, as the call's state. */
struct librechat_exec {
	json_t *doc; /* the request */
	struct librechat_ref ref[LIBRECHAT_REFS_MAX];
	size_t n_refs;
	struct buf tar;                 /* what goes in, then what has come out */
	json_t *answer, *files, *fresh; /* fresh: of files, those that are new */
	size_t n_lost;                  /* files that did not come out */
	bool calls_tools;               /* programmatic.c: it is written anew, and its result looked at there first */
	/* runtime.c: of a stateful session */
	const char *hint;                        /* of the document; NULL: it is none */
	char runtime[LIBRECHAT_RUNTIME_LEN + 1]; /* its id */
	char workspace[65];                      /* that it had before this call; "": none */
	bool is_reused;
	struct buf kept, before; /* that workspace; all that went in */
	void (*then)(struct client *c);
};

/* exec.c: makes the state of the call; NULL: it was answered.  Then, with doc in it, checks and runs. */
struct librechat_exec *librechat_new(struct client *c);
void librechat_start(struct client *c);
/* What a program left becomes its answer. */
void librechat_take_result(struct client *c, const json_t *result);
json_t *librechat_errors(const json_t *result); /* its stderr, and what brig has to say */

struct librechat_ref *librechat_ref_of(struct librechat_exec *e,
				       const char *name); /* NULL: no file that is there has it */
bool librechat_is_deleted(const json_t *result, const char *name);
/* The content of an artifact; raw: what it may lie in, for free().  NULL: it is not there. */
struct bytes librechat_content(const json_t *artifact, char **raw);

/* runtime.c: looks for the session that the hint stands for, then goes on. */
void librechat_with_runtime(struct client *c, void (*then)(struct client *c));
bool librechat_add_kept(struct librechat_exec *e); /* its files, to what goes in; false: too much */
/* What the run left becomes the session's, then goes on. */
void librechat_keep_runtime(struct client *c, const json_t *result, void (*then)(struct client *c));
void librechat_runtimes_free(struct front *f);

/* programmatic.c: the program that calls tools, as one that can be run: for free(); NULL: no memory. */
char *librechat_wrap(const json_t *doc);
/* True: it was answered. */
bool librechat_take_calls(struct client *c, const json_t *result);
/* A tool's name as a function's: one of joins is "_", other signs are nothing, no digit in front, none of the words (up to NULL). */
void librechat_function_name(const char *tool, const char *joins, const char *const words[], char *dst, size_t size);

/* bash.c: the same for a program of Bash.  The calls get numbers, which doc keeps; NULL: it wants none. */
char *librechat_wrap_bash(const json_t *doc);
json_t *librechat_bash_calls(json_t *doc, const json_t *result);

/* A new id of a file. */
void librechat_new_id(bool read_only, char dst[LIBRECHAT_ID_LEN + 1]);
bool librechat_is_read_only(const char *id);
/* Whether it can be one of ours: nothing else is asked for. */
bool librechat_is_session(const char *id);
bool librechat_is_file(const char *id);
/* "sub/b.txt": relative, no detours, nothing that cannot be seen. */
bool librechat_is_name(const char *name);
/* Of a path in a storage session: the file's name if it has this id (NULL: any); NULL: it has not. */
const char *librechat_name_of(const struct archive_file *f, const char *id);

#endif
