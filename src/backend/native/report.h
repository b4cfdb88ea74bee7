/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records that the cell's own processes send to the supervisor over SOCK_SEQPACKET sockets that
 * the guest never holds.  Fixed size, checked whole before any field is used: a cell that has been
 * taken over can at worst make its own run fail.
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
	REPORT_CONFINED,   /* from the payload: all walls are up, value = errno of the Landlock probe */
	REPORT_ENDED,      /* from init: status and value of the program's end, and when */
	REPORT_EXPIRED,    /* from init: the wall clock ran out and the supervisor had not acted */
	REPORT_ENTER,      /* from the supervisor: the groups are made; carries what to write "0" to, to enter them */
	REPORT_LISTENER,   /* from init: carries the sockets of plan->egress, as one descriptor of loopback_offer() */
	REPORT_PROJECT,    /* from the supervisor: value = enum project_way, and the descriptor that it needs */
	REPORT_SEALED,  /* from init of a cell that nobody is in yet: it has left the host's tree and confined itself */
	REPORT_WAITING, /* from the interpreter of a waiting cell, as a record of guest/wait.h */
	REPORT_KIND_END
};

/* How a project comes into a cell. */
enum project_way {
	PROJECT_NONE,
	PROJECT_LOWER,  /* a detached read-only mount of it, its owner mapped to the program: below an overlay */
	PROJECT_STREAM, /* a stream of files/pack.h, unpacked into the scratch space */
};

#define REPORT_MAGIC 0x42524947u /* "BRIG" */

struct report {
	uint32_t magic;
	uint32_t kind;
	uint32_t step;
	int32_t sys;
	int32_t exited;          /* REPORT_ENDED: 1 exit code, 0 signal */
	int32_t value;           /* an exit code or signal, an enum project_way, what Landlock answered */
	uint64_t at_ns;          /* CLOCK_MONOTONIC */
	uint64_t blocks, inodes; /* REPORT_READY: free in the sealed root; REPORT_PROJECT: what a copy takes at most */
	uint64_t own_bytes,
		own_inodes; /* REPORT_READY: of the scratch space, beyond what the limits give the program */
};

/* What init hands over with REPORT_READY, in this order.  The namespaces come last. */
enum handed_fd {
	HANDED_ROOT,
	HANDED_WORKSPACE,
	HANDED_SCRATCH, /* the file system that the program's writes go to */
	HANDED_UPPER,   /* what the program changed in a project that is below an overlay; else the workspace again */
	HANDED_MASKS,   /* the folder of the empty objects over hidden files: "0", "1" ... in the plan's order */
	HANDED_NESTED_USERNS,    /* /proc/sys/user/max_user_namespaces of the cell's user namespace */
	HANDED_USER_COUNT_FIRST, /* the files of /proc/sys/user in model/user_counts.def, likewise */
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
/* True if the bytes are one sound report, which is then in *ret. */
bool report_decode(const void *bytes, size_t len, struct report *ret);
/* Async-signal-safe; 0 or -errno.  fds may be NULL with n 0. */
int report_send(int sock, const struct report *r, const int *fds, size_t n);
/* REPORT_FAILED for a step that returned rc, a negative errno. */
int report_failure(int sock, enum step step, int rc);

struct received {
	struct report report;
	int fds[HANDED_COUNT]; /* FD_NONE where none came; the receiver's */
	size_t n_fds;
	pid_t sender; /* as the kernel sees it from here; needs SO_PASSCRED */
};
/* One record, waiting for it or not.  1, 0 at end of file, -EAGAIN, -EPROTO for an unsound one, -EMFILE for one whose
 * descriptors found no room (they are closed).  Async-signal-safe. */
int report_receive(int sock, bool wait, struct received *ret);

#endif
