/* SPDX-License-Identifier: Apache-2.0 */
/* What every front end returns for every request; data/schemas/result.json is its JSON form. */
#ifndef MODEL_RESULT_H
#define MODEL_RESULT_H

#include "base/buf.h"
#include "base/err.h"
#include "model/attempts.h"
#include "model/cache.h"
#include "model/environment.h"
#include "model/evidence.h"
#include "model/finding.h"
#include "model/plan.h"
#include "model/sample.h"
#include "model/testing.h"

enum verdict {
#define VERDICT(name, status, meaning) VERDICT_##name,
#include "model/verdicts.def"
	VERDICT_COUNT
};

struct verdict_info {
	const char *name;
	int status;
	const char *meaning;
};
extern const struct verdict_info verdict_info[VERDICT_COUNT];

/* Steps of a run that are timed; names appear in timing{} as <name>_ms. */
enum run_phase {
	PHASE_RESOLVE,
	PHASE_INSPECT,
	PHASE_CACHE,
	PHASE_CREATE,
	PHASE_RUN,
	PHASE_VERIFY,
	PHASE_RELEASE,
	PHASE_COUNT
};
extern const char *const run_phase_name[PHASE_COUNT];

#define RESULT_WARNINGS_MAX 32
#define RESULT_TEXT_MAX     512

struct result {
	char id[RUN_ID_LEN + 1];
	enum verdict verdict;
	char reason[RESULT_TEXT_MAX];
	char hint[RESULT_TEXT_MAX]; /* what would help a program that failed; "": nothing is known */
	int exit_code;              /* -1: none */
	int signal;                 /* 0: none */
	char language[16];
	char backend[16];
	char step[16]; /* the step that decided: "run" or "compile" */
	enum trust trust;
	enum inspection inspection; /* how its code was judged */
	char trust_source[16];      /* who chose it: "request", or the layer that set the default */
	struct buf out, err;
	bool out_truncated, err_truncated;
	struct {
		uint64_t wall_ms, cpu_ms, memory_peak_bytes, pids_peak, output_bytes;
	} usage;
	uint64_t phase_ns[PHASE_COUNT];
	uint64_t total_ns;
	bool has_limits;
	struct limits limits;
	struct findings findings; /* of the static inspection */
	struct evidence evidence;
	struct sample_series samples;
	protection_set degraded;
	struct result_cache cache;
	bool kept;   /* its cell is of those that are made ahead of requests ... */
	bool warm;   /* ... and was there before this one */
	bool forked; /* its interpreter is a fork of one that others are forked from too */
	struct result_packages packages;
	char environment[ENVIRONMENT_NAME_MAX + 1]; /* that it used, or made; "": none */
	struct changes changes;
	struct buf diff; /* of these, unified; of use if: */
	bool has_diff, diff_is_cut;
	struct artifacts artifacts;
	struct artifacts left; /* files that were not requested; their contents are not read */
	struct denied denied;
	struct network network;
	struct test_report tests;
	char warning[RESULT_WARNINGS_MAX][RESULT_TEXT_MAX];
	size_t n_warnings;
	char leftovers[256];         /* what clean-up could not remove in time; "": nothing */
	uint64_t audit_seq;          /* number of its audit entry; 0: none */
	char audit_hash[2 * 32 + 1]; /* and its hash, in hex */
	char *receipt;               /* signed statement, heap; NULL: none was asked for */
};

void result_init(struct result *r);
/* The same for memory that is all zero: most of a result is never touched. */
void result_init_zeroed(struct result *r);
void result_release(struct result *r);
/* Keeps the first RESULT_WARNINGS_MAX; the last place says that there were more. */
void result_warn(struct result *r, const char *fmt, ...) PRINTF(2, 3);
/* Notes what a clean-up left behind, with a warning. */
void result_left_behind(struct result *r, const char *what);
/* What `brig run` exits with. */
int result_status(const struct result *r);
/* "SIGKILL", "SIGRTMIN+3", "SIG99"; into dst, returned. */
const char *result_signal_name(int sig, char *dst, size_t size);
/* The document of data/schemas/result.json, on the heap. */
int result_to_json(const struct result *r, char **ret, struct brig_error *err);

/* The same document around its member "audit": it can be made while another process writes that entry. */
struct result_text {
	char *before, *behind; /* heap; both NULL: there is none */
	enum verdict verdict;  /* of the result that it was made of */
	size_t n_warnings;
};
int result_text_make(const struct result *r, struct result_text *ret, struct brig_error *err);
/* Recording a result may change these: the text is of an earlier state then. */
bool result_text_is_current(const struct result_text *t, const struct result *r);
int result_text_join(const struct result_text *t, const struct result *r, char **ret, struct brig_error *err);
void result_text_release(struct result_text *t);

#endif
