/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between runner and link: records of a channel (server/channel.h) with fields (server/fields.def). */
#ifndef SERVER_LINK_PROTOCOL_H
#define SERVER_LINK_PROTOCOL_H

#include "base/util.h"

#define LINK_SUBJECT_MAX 256
#define LINK_WHOLE_MAX   ((size_t)(384 * KiB)) /* longer messages travel in pieces of this length */

/* The operation of a record (record.status); all records have type RECORD_ASK. */
enum link_op {
	/* to the link; those with a tag are answered by LINK_DONE */
	LINK_PUBLISH = 1, /* tag: key, class, sealed, seal: publish a job, once per key */
	/* tag: bucket, key, revision, sealed, seal: put if that is the current revision; LINK_ANY: in any case */
	LINK_PUT,
	LINK_GET,     /* tag: bucket, key (tokens may be "*"): the latest value with a matching key */
	LINK_LIST,    /* tag: bucket, key (likewise), offset: matching keys in byte order, starting with this one */
	LINK_TELL,    /* subject, sealed, seal: to current subscribers */
	LINK_WORD,    /* subject, word: acknowledgement of a delivered job */
	LINK_CREDIT,  /* credit */
	LINK_CLASSES, /* class ...: classes of jobs to fetch */
	LINK_LATER,   /* class ..., pause: those of them for which other nodes are warm (runner/queue_placement.c) */
	LINK_LISTEN,  /* subject */
	/* to the runner */
	/*
	 * Tag: state ("ok", "taken", "none"), revision; for LINK_GET sealed, seal; for LINK_LIST total, listed ...; or
	 * trouble
	 */
	LINK_DONE,
	LINK_JOB,     /* subject (for LINK_WORD), sealed, seal */
	LINK_TOLD,    /* subject, sealed, seal */
	LINK_UP,      /* credit: 1: ready; 0: no broker is connected */
	LINK_STATS,   /* stream_depth, oldest: state of the stream */
	LINK_TROUBLE, /* trouble: description of invalid data, or of where it was lost */
};
#define LINK_ANY    UINT64_MAX
#define LINK_BEHIND 0x7fffffff /* an offset beyond all keys: returns only their number */

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
