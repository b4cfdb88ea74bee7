/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of requests: audit log, history, metrics, receipt.
 *
 * A handle has one recorder, which opens the state folder on first use and keeps it open. A request has one recording:
 * begun when the request arrives, prepared just before anything of it runs (where a policy with `audit: required`
 * refuses it if it could not be recorded), and finished when its result is known, whatever it is.
 */
#ifndef EXECUTOR_RECORD_H
#define EXECUTOR_RECORD_H

#include "executor/record_link.h"
#include "model/record.h"
#include "sys/statedir.h"

struct audit_log;

/* A future run that was announced to the recorder: it can be recorded. */
struct record_ahead {
	char id[RUN_ID_LEN + 1];
	uint64_t asked_ns;     /* 0: none is announced */
	struct link_pair pair; /* for the recorder's answer */
	/* For that about the run after it: its used ends are closed, and new ones made, after a result was delivered. */
	struct link_pair spare;
};

/* One per handle. */
struct recorder {
	/* to a recorder process that writes log and history (record_packet.h); FD_NONE: this process writes them */
	int link;
	char state[STATEDIR_PATH_MAX]; /* as the caller named the folder; "": the default */
	struct statedir dir;           /* fd FD_NONE: not open yet */
	pid_t opened_by; /* after a fork the child opens its own, because descriptors and locks are shared */
	struct audit_log *audit;
	char uncounted
		/* a failure to count a run whose result was already delivered: reported with the next one */
		[RESULT_TEXT_MAX];
	struct record_ahead ahead;
	struct link_pair pair; /* for the recorder's next answer */
	uint64_t ended_ns;     /* when the last announced run ended */
};
#define RECORDER_INIT                                                                     \
	{                                                                                 \
		.link = FD_NONE, .dir = STATEDIR_INIT,                                    \
		.ahead = { .pair = { FD_NONE, FD_NONE }, .spare = { FD_NONE, FD_NONE } }, \
		.pair = { FD_NONE, FD_NONE },                                             \
	}

void recorder_release(struct recorder *r);
/* The state folder, created if missing; also for others who keep data in it (the cache). */
int recorder_dir(struct recorder *r, const struct statedir **ret, struct brig_error *err);

/* One per request. */
struct recording {
	struct record rec;
	bool prepared;
	bool audited;   /* the log is open and has room */
	bool announced; /* the recorder confirmed before the run came */
	bool wants_receipt;
	bool in_history;                 /* it is in the history, or will not be and the result says so */
	struct policy_digest *digest;    /* of rec.set; NULL: none */
	struct link_meanwhile meanwhile; /* for record_whole(): what may be done while another process writes */
};

/* Cached digest of settings that many requests share; the first request computes it. */
struct policy_digest {
	bool known;
	uint8_t sha256[SHA256_LEN];
};

/* After this call, streams may be added to the record. */
struct subject;
void record_begin(struct recording *rg, const struct subject *what, const struct settings *set);
/*
 * To be called before anything runs: checks that the request can be recorded as the policy demands. -BRIG_E_REFUSED if
 * it must be and cannot; optional parts become warnings of the result. Cheap, and done only once.
 */
int record_prepare(struct recorder *r, struct recording *rg, struct result *res, struct brig_error *err);
/*
 * Writes the audit entry; to be called when the result is complete except for leftovers of the final clean-up.
 * policy_file: "" if there is none.
 */
void record_end(struct recorder *r, struct recording *rg, const char *policy_file, struct result *res);
/* Writes everything else, after the clean-up. Both add their warnings to the result. */
void record_finish(struct recorder *r, struct recording *rg, struct result *res);
/*
 * record_end() and record_finish() in one, for a run without clean-up: a recorder process gets a single message. Only
 * the metrics, which prove nothing, are left for record_count(), to be called with rec.res after the result was
 * delivered.
 */
void record_whole(struct recorder *r, struct recording *rg, const char *policy_file, struct result *res);
void record_count(struct recorder *r, struct recording *rg);
/*
 * For consecutive runs: during one, asks the recorder whether the next can be recorded, so the next need not wait for
 * the answer. record_take_announced() returns the id of that run if the recorder has answered and no more than
 * RECORD_AHEAD_NS have passed; otherwise the run gets another id and asks itself.
 *
 *	record_expect()    while it is inspected: nobody waits for the recorder then, and what it needs in order to write
 *	                   the entry of this run is in the CPU's caches when the run has ended
 *	record_announce()  after its end, unless the recorder was asked in the last RECORD_FRESH_NS
 */
#define RECORD_AHEAD_NS (2 * NS_PER_SEC)
#define RECORD_FRESH_NS (NS_PER_SEC / 2)
void record_expect(struct recorder *r, const struct settings *set);
void record_announce(struct recorder *r, const struct settings *set);
bool record_take_announced(struct recorder *r, char ret_id[RUN_ID_LEN + 1]);

#endif
