/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LibreChat's code interpreter: programs, and the files that they share.
 *
 * A storage session is a workspace of the runner (runner/workspaces.h), accessible only to the token that owns it. Each
 * file lies there in a folder named by the file's id: "f2k.../sub/b.txt". The id also tells whether the file is
 * read-only.
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

/* A program being run; the state of the call. */
struct librechat_exec {
	json_t *doc; /* the request */
	struct librechat_ref ref[LIBRECHAT_REFS_MAX];
	size_t n_refs;
	struct buf tar;                 /* the input files, later the output files */
	json_t *answer, *files, *fresh; /* fresh: those of files that are new */
	size_t n_lost;                  /* output files that could not be delivered */
	bool calls_tools;               /* programmatic.c wraps the program and checks its result for calls first */
	/* runtime.c: the stateful session */
	const char *hint;                        /* points into doc; NULL: the call is stateless */
	char runtime[LIBRECHAT_RUNTIME_LEN + 1]; /* id of the session */
	char workspace[65];                      /* its workspace before this call; "": none */
	bool is_reused;
	struct buf kept, before; /* archives: the contents of that workspace; all input files */
	void (*then)(struct client *c);
};

/*
 * exec.c: librechat_new() allocates the state of the call (NULL: the request was answered); librechat_start() validates
 * e->doc and runs it.
 */
struct librechat_exec *librechat_new(struct client *c);
/* True if the headers ask for what only another deployment has; the request is then refused with that. */
bool librechat_is_elsewhere(struct client *c);
void librechat_start(struct client *c);
/* Converts the result of a run to the response. */
void librechat_take_result(struct client *c, const json_t *result);
json_t *librechat_errors(const json_t *result); /* the program's stderr plus brig's own messages */

struct librechat_ref *librechat_ref_of(struct librechat_exec *e,
				       const char *name); /* NULL: no existing file has this name */
bool librechat_is_deleted(const json_t *result, const char *name);
/*
 * The content of an artifact; raw: a buffer it may be decoded to, which the caller frees. data is NULL if there is no
 * content.
 */
struct bytes librechat_content(const json_t *artifact, char **raw);
/* Adds it to an archive as an executable file if it is one. False: no room. */
bool librechat_add_artifact(struct buf *tar, const char *path, const json_t *artifact, const struct bytes *content);

/* runtime.c: looks up the session of the hint, then calls then(). */
void librechat_with_runtime(struct client *c, void (*then)(struct client *c));
bool librechat_add_kept(struct librechat_exec *e); /* adds the session's files to the input; false: too much */
/* Stores the files left by the run as the session's, then calls then(). */
void librechat_keep_runtime(struct client *c, const json_t *result, void (*then)(struct client *c));
void librechat_runtimes_free(struct front *f);

/* programmatic.c: wraps a program that calls tools so that it can be run; the caller frees it. NULL: no memory. */
char *librechat_wrap(const json_t *doc);
/*
 * Relays tool calls, or the failure, of a run. True: the request was answered, or a runner request that does so was
 * sent.
 */
bool librechat_take_calls(struct client *c, const json_t *result);
/*
 * Makes a function name from a tool name: characters in joins become "_", other invalid ones are dropped, a leading
 * digit gets a "_" before it, and reserved words (a NULL-terminated list) get a suffix.
 */
void librechat_function_name(const char *tool, const char *joins, const char *const words[], char *dst, size_t size);

/*
 * bash.c: librechat_wrap_bash() does the same for Bash. librechat_bash_calls() numbers the calls of a run and records
 * the numbers in doc; NULL: the program made no calls.
 */
char *librechat_wrap_bash(const json_t *doc);
json_t *librechat_bash_calls(json_t *doc, const json_t *result);

/* A new file id; "" on failure. */
void librechat_new_id(bool read_only, char dst[LIBRECHAT_ID_LEN + 1]);
bool librechat_is_read_only(const char *id);
/* True if the id could be one of ours; others are never looked up. */
bool librechat_is_session(const char *id);
bool librechat_is_file(const char *id);
/* True for a name such as "sub/b.txt": relative, no "." or "..", no control characters. */
bool librechat_is_name(const char *name);
/* The file name in a path of a storage session if the path has this id (NULL: any id); NULL: it does not match. */
const char *librechat_name_of(const struct archive_file *f, const char *id);

#endif
