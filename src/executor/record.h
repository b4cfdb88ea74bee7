/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written down of each request, and by whom: audit log, history, metrics, receipt.
 *
 * A handle has one recorder, which opens the state folder when it is first needed and keeps it.  A request has one
 * recording: begun when it comes in, prepared at the last moment before anything of it runs (there policy's `audit:
 * required` refuses it if it could not be recorded), finished when its result is known, whatever that is.
 */
#ifndef EXECUTOR_RECORD_H
#define EXECUTOR_RECORD_H

#include "executor/record_link.h"
#include "model/record.h"
#include "sys/statedir.h"

struct audit_log;

/* A run that is still to come, of which the recorder has heard: it can be recorded. */
struct record_ahead {
	char id[RUN_ID_LEN + 1]; /* "": there is none */
	int reply;               /* where the recorder says so; it stays open until nobody waits for its end */
	uint64_t asked_ns;
};

/* Of one handle. */
struct recorder {
	int link; /* to a process that writes log and history in our place (record_packet.h); FD_NONE: we do */
	char state[STATEDIR_PATH_MAX]; /* as the caller named the folder; "": where it usually is */
	struct statedir dir;           /* fd FD_NONE: not open yet */
	pid_t opened_by;               /* a fork shares descriptors and their locks: it opens its own */
	struct audit_log *audit;
	char uncounted
		[RESULT_TEXT_MAX]; /* of a run that had been told already when it could not be counted: the next one says it */
	struct record_ahead ahead;
	struct link_pair pair; /* for the recorder's next answer */
	uint64_t ended_ns;     /* when the last run of record_announce() did */
};
#define RECORDER_INIT                                                                                               \
	{                                                                                                           \
		.link = FD_NONE, .dir = STATEDIR_INIT, .ahead = { .reply = FD_NONE }, .pair = { FD_NONE, FD_NONE }, \
	}

void recorder_release(struct recorder *r);
/* The state folder, made if it is not there; also for others who keep something in it (the cache). */
int recorder_dir(struct recorder *r, const struct statedir **ret, struct brig_error *err);

/* Of one request. */
struct recording {
	struct record rec;
	bool prepared;
	bool audited;   /* the log is open and has room */
	bool announced; /* so the recorder said before the run came */
	bool wants_receipt;
	bool in_history;                 /* it is there already, or will not be, and the result says so */
	struct policy_digest *digest;    /* of rec.set; NULL: nobody has one */
	struct link_meanwhile meanwhile; /* for record_whole(): what may be done while another process writes */
};

/* Of settings that many requests have in common: the first one fills it in. */
struct policy_digest {
	bool known;
	uint8_t sha256[SHA256_LEN];
};

/* Streams of the record may be added to from here on. */
struct subject;
void record_begin(struct recording *rg, const struct subject *what, const struct settings *set);
/*
 * Before anything runs: can this request be recorded as the policy demands?  -BRIG_E_REFUSED if it must and cannot;
 * what may fail becomes a warning of the result.  Cheap, and only done once.
 */
int record_prepare(struct recorder *r, struct recording *rg, struct result *res, struct brig_error *err);
/* When everything of the result is known but what the last clean-up leaves: the audit entry.  policy_file: "" if there is
 * none. */
void record_end(struct recorder *r, struct recording *rg, const char *policy_file, struct result *res);
/* When that is known, too: all the rest.  Both add to the result what recording has to say. */
void record_finish(struct recorder *r, struct recording *rg, struct result *res);
/*
 * Both, of a run after which nothing is to be cleaned up: a recorder of its own process hears of it in one message.  Only the metrics,
 * which prove nothing, are left for record_count(), when who waits for the result has got it: rec.res is what is counted.
 */
void record_whole(struct recorder *r, struct recording *rg, const char *policy_file, struct result *res);
void record_count(struct recorder *r, struct recording *rg);
/*
 * For runs that follow each other: when one is over, the recorder is asked whether the next can be recorded, so that this one need
 * not wait for it.  The id of that run, if the recorder has answered and not longer than RECORD_AHEAD_NS ago; else the run has
 * another id, and asks for itself.
 */
#define RECORD_AHEAD_NS (2 * NS_PER_SEC)
void record_announce(struct recorder *r, const struct settings *set);
bool record_take_announced(struct recorder *r, char ret_id[RUN_ID_LEN + 1]);

#endif
