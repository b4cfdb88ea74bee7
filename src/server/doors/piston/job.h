/* SPDX-License-Identifier: Apache-2.0 */
/* What Piston's clients ask to be run, checked in the order and with the words of the original. */
#ifndef SERVER_DOORS_PISTON_JOB_H
#define SERVER_DOORS_PISTON_JOB_H

#include "server/doors/door.h"

struct piston_job {
	json_t *doc;                    /* as it was sent; ours */
	char language[65], version[65]; /* of the runtime that was chosen */
	json_t *row; /* of the service's languages, which has it for as long as the job is put together */
	bool compiles;
	size_t entry;          /* of its files */
	const char *file_name; /* that the entry can have; NULL: the language's usual one */
};

/* What can be said without knowing the languages; takes the document.  0 or -BRIG_E_USAGE. */
int piston_read(struct piston_job *job, json_t *doc, struct brig_error *err);
/* And with them. */
int piston_choose(struct piston_job *job, json_t *languages, struct brig_error *err);
/* As fields of an execution; *ret_files: an archive, the caller's, FD_NONE: none.  -BRIG_E_REFUSED: a name that leads elsewhere. */
int piston_put(const struct piston_job *job, struct buf *fields, int *ret_files, struct brig_error *err);
void piston_job_free(void *job);

/* files.c: its files as fields and an archive, likewise. */
int piston_put_files(const struct piston_job *job, struct buf *fields, int *ret_files, struct brig_error *err);
enum piston_encoding { PISTON_UTF8, PISTON_BASE64, PISTON_HEX };
enum piston_encoding piston_encoding_of(const json_t *file);
/* The last part of the entry's name, if that is a name of the language's: a compiler goes by it.  NULL: it is none. */
const char *piston_usable_name(const json_t *language, const json_t *file);

/* names.c: the language of a name, as door_language(); what Piston calls it, and which other names it has there, a new reference. */
json_t *piston_find(json_t *languages, const char *name);
const char *piston_name(const json_t *language);
json_t *piston_aliases(const json_t *language);
/* The version that a language's row has, three numbers. */
const char *piston_version(const json_t *language);
/* Of a result: "stdout", "stderr", "output", "code", "signal", "message", "status", "memory", "cpu_time", "wall_time". */
json_t *piston_stage(const json_t *result);

/* socket.c: the last word to a client of the WebSocket. */
void piston_socket_error(struct client *c, const char *message);

#endif
