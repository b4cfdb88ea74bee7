/* SPDX-License-Identifier: Apache-2.0 */
/* What runner and link say to each other: records of a channel (server/channel.h), each with fields (server/fields.def). */
#ifndef SERVER_LINK_PROTOCOL_H
#define SERVER_LINK_PROTOCOL_H

#include "base/util.h"

#define LINK_SUBJECT_MAX 256
#define LINK_WHOLE_MAX   ((size_t)(384 * KiB)) /* longer ones travel in pieces of this length */

/* What a record between runner and link is about (record.status); all are of RECORD_ASK's type. */
enum link_op {
	/* to the link; those with a tag are answered by LINK_DONE */
	LINK_PUBLISH = 1, /* tag: key, class, sealed, seal: a job, once for each key */
	LINK_PUT,  /* tag: bucket, key, revision, sealed, seal: if that is the revision there; LINK_ANY: whatever is */
	LINK_GET,  /* tag: bucket, key, of which a word may be "*": the last one put that has such a key */
	LINK_LIST, /* tag: bucket, key (likewise), offset: its keys in the order of their bytes, from this one on */
	LINK_TELL, /* subject, sealed, seal: to who listens now */
	LINK_WORD, /* subject, word: to the stream, of a job that was handed over */
	LINK_CREDIT,  /* credit */
	LINK_CLASSES, /* class ...: that jobs are taken of */
	LINK_LATER,   /* class ..., pause: those of them that other nodes have warm (runner/queue_placement.c) */
	LINK_LISTEN,  /* subject */
	/* to the runner */
	LINK_DONE, /* tag: state ("ok", "taken", "none"), revision; of LINK_GET sealed, seal, of LINK_LIST total, listed ...; or trouble */
	LINK_JOB,     /* subject (for LINK_WORD), sealed, seal */
	LINK_TOLD,    /* subject, sealed, seal */
	LINK_UP,      /* credit: 1: everything is there; 0: there is no broker now */
	LINK_STATS,   /* depth, oldest: of the stream */
	LINK_TROUBLE, /* trouble: what somebody sent that is no sealed message, or where it was lost */
};
#define LINK_ANY    UINT64_MAX
#define LINK_BEHIND 0x7fffffff /* a place in the row behind all keys: how many there are, and none of them */

enum link_bucket {
	BUCKET_CLAIMS,
	BUCKET_RESULTS,
	BUCKET_BODIES,
	BUCKET_NODES,
	BUCKET_SESSIONS,
	BUCKET_KEYS,
	BUCKET_BATCHES,
	BUCKETS_OF_LINK,
	BUCKET_JOBS = BUCKETS_OF_LINK
};

#endif
