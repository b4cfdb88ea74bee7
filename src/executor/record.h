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

#include "model/record.h"
#include "sys/statedir.h"

struct audit_log;

/* Of one handle. */
struct recorder {
	int link; /* to a process that writes log and history in our place (record_packet.h); FD_NONE: we do */
	char state[STATEDIR_PATH_MAX]; /* as the caller named the folder; "": where it usually is */
	struct statedir dir;           /* fd FD_NONE: not open yet */
	pid_t opened_by;               /* a fork shares descriptors and their locks: it opens its own */
	struct audit_log *audit;
	char uncounted
		[RESULT_TEXT_MAX]; /* of a run that had been told already when it could not be counted: the next one says it */
};
#define RECORDER_INIT                                  \
	{                                              \
		.link = FD_NONE, .dir = STATEDIR_INIT, \
	}

void recorder_release(struct recorder *r);
/* The state folder, made if it is not there; also for others who keep something in it (the cache). */
int recorder_dir(struct recorder *r, const struct statedir **ret, struct brig_error *err);

/* Of one request. */
struct recording {
	struct record rec;
	bool prepared;
	bool audited; /* the log is open and has room */
	bool wants_receipt;
	bool in_history;              /* it is there already, or will not be, and the result says so */
	struct policy_digest *digest; /* of rec.set; NULL: nobody has one */
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

#endif
