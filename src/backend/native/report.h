/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that a cell's own processes send to the supervisor over SOCK_SEQPACKET sockets that the guest never holds.
 * Fixed size, checked completely before any field is used: a compromised cell can at worst make its own run fail.
 */
#ifndef NATIVE_REPORT_H
#define NATIVE_REPORT_H

#include "base/util.h"
#include "model/protection.h"
#include "model/user_counts.h"

enum step {
#define STEP(name, protection, what) STEP_##name,
#include "backend/native/steps.def"
	STEP_COUNT
};

struct step_info {
	const char *name;
	enum protection protection; /* PROT_COUNT: none */
	const char *what;
};
extern const struct step_info step_info[STEP_COUNT];

enum report_kind {
	REPORT_FAILED = 1, /* step, sys */
	REPORT_READY,      /* from init; carries the descriptors of enum handed_fd */
	REPORT_CONFINED,   /* from the payload: it is confined; value = errno of the Landlock probe */
	REPORT_ENDED,      /* from init: status and value of the program's end, and when */
	REPORT_EXPIRED,    /* from init: the wall clock expired, and the supervisor had not acted */
	REPORT_ENTER,      /* from the supervisor: the groups exist; with the descriptors for cgroup_enter() */
	REPORT_LISTENER,   /* from init: with the sockets of plan->egress, as one descriptor of loopback_offer() */
	REPORT_PROJECT,    /* from the supervisor: value = enum project_way, with its descriptor */
	REPORT_SEALED,     /* from init without a payload: it has detached the host's tree and confined itself */
	REPORT_WAITING,    /* from the interpreter of a waiting cell, as a record of guest/wait.h */
	REPORT_KIND_END
};

/* How a project gets into a cell. */
enum project_way {
	PROJECT_NONE,
	PROJECT_LOWER,  /* a detached read-only mount of it, id-mapped to the program: the lower layer of an overlay */
	PROJECT_STREAM, /* a stream of files/pack.h, unpacked into the scratch space */
};

#define REPORT_MAGIC 0x42524947u /* "BRIG" */

struct report {
	uint32_t magic;
	uint32_t kind;
	uint32_t step;
	int32_t sys;
	int32_t exited;          /* REPORT_ENDED: 1 exit code, 0 signal */
	int32_t value;           /* an exit code or signal, an enum project_way, the errno of the Landlock probe */
	uint64_t at_ns;          /* CLOCK_MONOTONIC */
	uint64_t blocks, inodes; /* REPORT_READY: free in the sealed root; REPORT_PROJECT: upper bounds for a copy */
	uint64_t own_bytes, own_inodes; /* REPORT_READY: scratch space beyond the program's limits */
};

/* Descriptors sent with REPORT_READY, in this order.  The namespaces come last. */
enum handed_fd {
	HANDED_ROOT,
	HANDED_WORKSPACE,
	HANDED_SCRATCH,       /* the file system that has the program's writes */
	HANDED_UPPER,         /* upper layer of a project's overlay; otherwise the workspace again */
	HANDED_MASKS,         /* directory of the empty objects over hidden files: "0", "1" ... in the plan's order */
	HANDED_NESTED_USERNS, /* /proc/sys/user/max_user_namespaces of the cell's user namespace */
	HANDED_USER_COUNT_FIRST, /* the files of model/user_counts.def in /proc/sys/user, likewise */
	HANDED_NS_USER = HANDED_USER_COUNT_FIRST + USER_COUNT_COUNT,
	HANDED_NS_PID,
	HANDED_NS_MNT,
	HANDED_NS_NET,
	HANDED_NS_IPC,
	HANDED_NS_UTS,
	HANDED_NS_CGROUP,
	HANDED_NS_TIME,
	HANDED_COUNT
};
#define HANDED_NS_FIRST HANDED_NS_USER

struct report report_make(enum report_kind kind);
/* True if the bytes are one well-formed report, which is then in *ret. */
bool report_decode(const void *bytes, size_t len, struct report *ret);
/* Async-signal-safe; 0 or -errno.  fds may be NULL with n 0. */
int report_send(int sock, const struct report *r, const int *fds, size_t n);
/* REPORT_FAILED for a step that returned rc, a negative errno. */
int report_failure(int sock, enum step step, int rc);

struct received {
	struct report report;
	int fds[HANDED_COUNT]; /* FD_NONE: not sent; the receiver owns them */
	size_t n_fds;
	pid_t sender; /* as translated into our pid namespace; needs SO_PASSCRED */
};
/*
 * Receives one record; wait: blocks for it.  1, 0 at end of file, -EAGAIN, -EPROTO for a malformed one, -EMFILE if its
 * descriptors exceeded our limit (they are closed).  Async-signal-safe.
 */
int report_receive(int sock, bool wait, struct received *ret);

#endif
