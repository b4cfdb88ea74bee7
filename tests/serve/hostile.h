/* SPDX-License-Identifier: Apache-2.0 */
/* The compromise drill (hostile_front.c): what its parts have in common. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <jansson.h>

#include "server/front/front.h"

#define PATIENCE_MS 60000                    /* for what must come; nothing is decided by it */
#define ESCAPE      "/tmp/brig-drill-escape" /* how files begin that must never be there */
#define FILES_MAX   512                      /* descriptors of each process of the service */

/* ---- what all lives of the front share, and what one has ------------------------------------------------------ */

struct shared {
	size_t row;                                                /* that is next */
	bool is_under;                                             /* it was begun by a front that is no more */
	char execution[32], running[32], batch[32], workspace[32]; /* alice's */
};
extern struct shared *shared;
extern const char *mallory, *alice; /* their tokens */
extern struct front *front;
extern uint32_t last_tag;
extern bool is_broken; /* the channel has ended */

/* A row of the drill has ended: why is NULL, or what is wrong. */
void tell(const char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say(const char *line);
/* What is wrong, good until the next call. */
const char *wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- asking ---------------------------------------------------------------------------------------------------- */

struct got {
	int status; /* -1: the channel has ended */
	uint32_t tag;
	enum record_type type;
	json_t *doc; /* NULL: no JSON */
	char who[80];
};

void got_release(struct got *g);
#define AUTO_GOT             \
	CLEANUP(got_release) \
	struct got

/* A message to be filled, which who sends it takes. */
void begin(struct buf *m, enum route route, const char *credential);
void begin_shell(struct buf *m, const char *credential, const char *code);
uint32_t put(struct buf *m, const int *fds, size_t n_fds);
struct got ask(struct buf *m);
struct got ask_with(struct buf *m, const int *fds, size_t n_fds);
struct got next_record(void);

const char *member(const struct got *g, const char *name); /* "": there is none */
bool is_ok(const struct got *g);
const char *expect(const struct got *g, int status);
/* The runner serves as before: mallory is who she is, and her program runs. */
const char *honest(void);
const char *honest_word(void);

/* ---- rows --------------------------------------------------------------------------------------------------------- */

int hostile_calls(const char *state); /* 0: none of the calls came through */

/* hostile_files.c: files in memory, and what is sent of them.  Each is NULL, or says what is wrong. */
enum seals { SEALS_NONE, SEALS_SOME, SEALS_ALL };
int hollow(uint64_t size, enum seals how);
int archive_with(const char *path, const char *text);
const char *row_no_archives(void);
const char *row_no_streams(void);
const char *row_odd_streams(void);
const char *row_archive_changes(void);
const char *row_foul_archives(void);
const char *row_names_of_jobs(void);
const char *row_job_that_is_noise(void);
const char *row_noise_in_fields(void);
const char *row_many_files(void);
const char *row_ways_out(void);

#endif
