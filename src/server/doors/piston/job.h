/* SPDX-License-Identifier: Apache-2.0 */
/* Piston's execution requests, validated in the order and with the error messages of the original. */
#ifndef SERVER_DOORS_PISTON_JOB_H
#define SERVER_DOORS_PISTON_JOB_H

#include "server/doors/door.h"

struct piston_job {
	json_t *doc;                    /* as it was sent; owned */
	char language[65], version[65]; /* of the chosen runtime */
	json_t *row; /* entry in the list of languages, which owns it; valid only while the job is assembled */
	bool compiles;
	size_t entry;          /* index into files */
	const char *file_name; /* name for the entry file; NULL: the language's default */
};

/* Validates what does not depend on the languages; takes the document. 0 or -BRIG_E_USAGE. */
int piston_read(struct piston_job *job, json_t *doc, struct brig_error *err);
/* Chooses the runtime and validates the rest. */
int piston_choose(struct piston_job *job, json_t *languages, struct brig_error *err);
/*
 * Adds the job as fields of an execution; *ret_files: an archive, which the caller owns, FD_NONE: none.
 * -BRIG_E_REFUSED: a file name leads out of the folder.
 */
int piston_put(const struct piston_job *job, struct buf *fields, int *ret_files, struct brig_error *err);
void piston_job_free(void *job);

/* files.c: adds the job's files, as fields and an archive, in the same way. */
int piston_put_files(const struct piston_job *job, struct buf *fields, int *ret_files, struct brig_error *err);
enum piston_encoding { PISTON_UTF8, PISTON_BASE64, PISTON_HEX };
enum piston_encoding piston_encoding_of(const json_t *file);
/* The base name of the file if its extension is one of the language's, which compilers rely on. NULL: it is not. */
const char *piston_usable_name(const json_t *language, const json_t *file);

/*
 * names.c: piston_find() finds a language by name, as door_language() does; piston_name() and piston_aliases() (a new
 * reference) give its names in Piston.
 */
json_t *piston_find(json_t *languages, const char *name);
const char *piston_name(const json_t *language);
json_t *piston_aliases(const json_t *language);
/* The version of a language, three numbers. */
const char *piston_version(const json_t *language);
/*
 * Converts a result: "stdout", "stderr", "output", "code", "signal", "message", "status", "memory", "cpu_time",
 * "wall_time".
 */
json_t *piston_stage(const json_t *result);

/* socket.c: sends an error and closes the WebSocket. */
void piston_socket_error(struct client *c, const char *message);

#endif
