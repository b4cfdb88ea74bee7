/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one immutable outcome of resolving a request against the policy: everything a backend needs to
 * make a cell, and nothing else.  Pointers are borrowed from the executor, which outlives the cell.
 */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include "base/err.h"
#include "model/protection.h"
#include "model/settings.h"
#include "model/workspace.h"
#include "sys/loopback.h"
#include "sys/seccomp.h"

#define RUN_ID_LEN 16 /* lower-case base32 characters: 80 random bits */

/* The ceilings of one cell: chosen from the settings for a run or for a compile step. */
struct limits {
	uint64_t cpu_percent;
	uint64_t cpu_time_ms;
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t disk_bytes;
	uint64_t inodes;
	uint64_t output_bytes;
	uint64_t open_files;
	uint64_t startup_ms;
	uint64_t wall_ms;
	uint64_t cleanup_ms;
};

/* A file that is in the workspace before the program starts. */
struct plan_file {
	const char *name; /* a path below the workspace; the folders on it are the project's own */
	const void *data;
	size_t len;
	unsigned mode; /* permission bits */
};

/* A host file or directory shown read-only inside the cell, outside the host's /usr. */
struct plan_bind {
	const char *source; /* absolute host path */
	const char *
		target; /* absolute path in the cell, where it has nothing else, or directly in the workspace; made by us */
	/* Where another bind shows the very same folder: a backend that cannot show it twice links to that.  NULL: nowhere. */
	const char *same_as;
	bool checked; /* the path must lead to what fd is open on, or it is not shown */
	int fd;
};

#define PLAN_WORKSPACE "/workspace"
#define PLAN_USER      "sandbox" /* what a cell's own /etc/passwd calls the user PLAN_USER_ID, and the group */
#define PLAN_USER_ID   1000

/* Network access of a cell: sockets on its own loopback; the process that serves them decides what the program can
 * reach. */
#define EGRESS_PORT       3128 /* on 127.0.0.1: the proxy */
#define EGRESS_NAMES_PORT 53   /* likewise: lookups */
#define EGRESS_BACKLOG    256
#define EGRESS_PLACES_MAX 512

struct plan_egress {
	struct loopback_place place[EGRESS_PLACES_MAX];
	size_t n_places;
	/* What the program is to trust in TLS, by the name that backend->certificates says.  NULL: there is nothing. */
	const struct plan_file *certificates;
};

struct plan {
	char id[RUN_ID_LEN + 1];
	const char *step; /* "run", "compile" or "install" */
	const char *language;
	const char *environment; /* the named set of packages that it has; NULL: none */
	const char *output;      /* name of the file in the workspace that open_output will be asked for; NULL: none */
	enum trust trust;
	struct limits limits;
	uint64_t disk_io_bps; /* 0: no limit */
	const char *rootfs;   /* "": the host's own /usr */
	uint32_t uid, gid;    /* of the program, inside */
	enum syscall_family family;
	enum seccomp_profile profile;
	bool start_at_once;   /* finish may let the program go as soon as every wall is up */
	bool deny_write_exec; /* MDWE: no memory both written and executed */
	bool workspace_exec;
	enum workspace_alias workspace_alias;
	const char *const *argv; /* NULL-terminated; argv[0] is an absolute path in the cell */
	const char *const *envp; /* NULL-terminated and complete */
	/* Modules that a warm cell may import in advance, in this order: "numpy,pandas"; NULL: none.  They only change
	 * how long the imports take: a cell that is made for the run ignores them. */
	const char *warm;
	const struct plan_file *files;
	size_t n_files;
	const struct plan_bind *binds;
	size_t n_binds;
	const struct plan_workspace *workspace; /* NULL: an empty one of its own */
	bool wants_view; /* backend->workspace will be called: keep what the program leaves in its workspace until then */
	const struct plan_egress *egress; /* NULL: no way out; else backend->listener hands out its sockets */
	bool report_denied;               /* note what the program is refused */
	/*
	 * A cell that is made before there is a request for it: the path in the cell of the program's file, which is
	 * empty. A process in the cell waits until a request has filled it (guest/wait.h): the interpreter, which is
	 * started and stops when it opens that file, or the process that is going to execute it.  Of a session there is
	 * no such file, and its steward waits for its owner.  NULL: an ordinary cell.
	 */
	const char *waits_at;
	bool interpreter_waits;
	/* ... and its interpreter may be a fork of one that others are forked from too, if the host can do that. */
	bool forks;
	/* The program is the steward of a session (backend/guest/steward.h), which argv only names; its standard input is a
	 * SOCK_SEQPACKET socket, and cell_fds.in the other end of it. */
	bool session;
	protection_set may_degrade; /* allow_degraded */
};

/* Whether it is to be noted which hidden files the program opens; one that is opened before it is watched would be missed. */
static inline bool plan_watches_hidden(const struct plan *plan)
{
	return plan->report_denied && plan->workspace && plan->workspace->n_hidden > 0;
}

/* Where the program of a native cell begins: in its workspace, by the name that it is to see. */
static inline const char *plan_working_folder(const struct plan *plan)
{
	bool is_mounted_there = plan->workspace_alias != WORKSPACE_ALIAS_NONE && !plan->workspace;

	return is_mounted_there ? workspace_alias_name[plan->workspace_alias] : PLAN_WORKSPACE;
}

#endif
