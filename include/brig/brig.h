/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brig.h - run code that nobody has reviewed, and learn with evidence what happened.
 *
 * Typical use:
 *
 *	struct brig *b = NULL;
 *	struct brig_result *r = NULL;
 *	struct brig_error err = BRIG_ERROR_INIT;
 *	struct brig_request req = BRIG_REQUEST_INIT;
 *
 *	req.language = "python";
 *	req.code = "print(6 * 7)";
 *	req.code_len = strlen(req.code);
 *	if (brig_open(NULL, &b, &err) < 0 || brig_run(b, &req, &r, &err) < 0)
 *		fprintf(stderr, "%s\n", err.msg);
 *	else
 *		printf("%s\n", brig_result_verdict(r));
 *	brig_result_free(r);
 *	brig_close(b);
 *
 * Rules for every function here:
 *  - 0 is success, a negative value is failure; on failure *err holds the reason and nothing was
 *    stored through a ret_ parameter.  err may be NULL.
 *  - The library neither logs nor exits, and installs no signal handler.
 *  - Structs that callers fill start with their own size; use the _INIT macros.  New members are
 *    only ever appended, and zero (or the _INIT value) always means "as before": a program built
 *    against an older header keeps working, and one built against a newer header is refused only if
 *    it uses a member that this library does not know.
 *  - Strings handed in are borrowed until the call returns.  Strings handed out as const belong to
 *    the object they were asked of; strings handed out as char ** are freed with brig_free().
 *  - Different threads may use different handles; one handle serves one thread at a time.
 */
#ifndef BRIG_BRIG_H
#define BRIG_BRIG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BRIG_API __attribute__((visibility("default")))
#else
#define BRIG_API
#endif

#define BRIG_VERSION_MAJOR 0
#define BRIG_VERSION_MINOR 1
#define BRIG_VERSION_PATCH 0
#define BRIG_VERSION       "0.1.0"

/* Few codes, distinguished by what a caller can do about them. */
enum brig_code {
	BRIG_E_OK = 0,
	BRIG_E_USAGE = 1,   /* the call or the request is malformed: fix it and call again */
	BRIG_E_POLICY = 2,  /* a policy file, variable or preset is wrong */
	BRIG_E_REFUSED = 3, /* valid, but not allowed or not enforceable here; nothing ran */
	BRIG_E_SYSTEM = 4,  /* the kernel refused something that should work: see .sys */
	BRIG_E_NOMEM = 5,
	BRIG_E_INTERNAL = 6, /* an internal error */
};

struct brig_error {
	int code;      /* enum brig_code */
	int sys;       /* errno, or 0 */
	char msg[512]; /* one sentence: what, where, why, what to do */
};
#define BRIG_ERROR_INIT   \
	{                 \
		0, 0,     \
		{         \
			0 \
		}         \
	}

/* The version of the library that is actually loaded, "major.minor.patch". */
BRIG_API const char *brig_version(void);

/* ---- a handle: policy layers and what is known of this host -------------------------------- */

struct brig;

struct brig_open_opts {
	uint32_t size;
	const char *policy_file; /* NULL: $BRIG_POLICY, else /etc/brig/sandbox.yaml if it exists; "": none */
	const char *preset;      /* NULL: the file's or "standard" */
	uint32_t flags;          /* must be 0 */
	const char *rules_file;  /* more inspection rules, which override the policy's; NULL: none */
	const char *state_dir;   /* folder of audit log, history, cache; NULL: $BRIG_STATE, else /var/lib/brig for
				  * root and $XDG_STATE_HOME/brig (~/.local/state/brig) for others */
	/* At most this many cells of each kind are kept ready ahead of requests, by a separate process that lives until
	 * brig_close(): for programs that run many requests.  0: the policy's warm_cells, by default none. */
	uint32_t warm_cells;
	/* A socket to a recorder (brig_recorder_step()), which is duplicated: that process writes audit log, history
	 * and receipts, and this one does not open them.  0: this process writes them itself. */
	int recorder_fd;
	/* Another process starts keepers, under its own ceilings (brig_ceilings()); this one makes no cells.  Has one started at
	 * the other end of the socket, which it duplicates.  0 or -errno; must not block.  NULL: this process starts them. */
	int (*start_keeper)(void *user, int socket, int limits_disks);
	void *start_keeper_user;
};
#define BRIG_OPEN_OPTS_INIT                                                                \
	{                                                                                  \
		sizeof(struct brig_open_opts), NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL \
	}

/* opts may be NULL.  An invalid policy file fails with BRIG_E_POLICY and the first error in err; brig_policy_check()
 * lists all. */
BRIG_API int brig_open(const struct brig_open_opts *opts, struct brig **ret, struct brig_error *err);
BRIG_API void brig_close(struct brig *b); /* NULL is fine */
/*
 * For an idle handle: ends the processes that wait for texts to inspect, which use some megabytes.  The next run takes
 * a few milliseconds more and starts them again.  Not while runs are in progress.
 */
BRIG_API void brig_rest(struct brig *b); /* NULL is fine */
/*
 * For programs that start with one short run: forks the process that creates cells (docs/WARM.md), which otherwise the
 * first run starts, at a cost of about a millisecond.  Call it at the beginning of main(), with one thread, before any
 * input was read: the other process gets a copy of this one's memory.  It ends with the next brig_close(), or with this
 * process.  If forking fails, it is started later.
 */
BRIG_API void brig_fork_keeper(void);

/* For programs whose privileged process reads no requests, while another one does (start_keeper of its brig_open_opts): the
 * most that any request could have under the policy.  *ret_fd is a sealed memfd that the caller closes. */
enum { BRIG_CEILINGS_DISKS = 1 /* flags: its cells may have disk_io_bps, for which the host's disks are looked for */ };
BRIG_API int brig_ceilings(const struct brig_open_opts *opts, uint32_t flags, int *ret_fd, struct brig_error *err);
/* In a child that has dropped what cells do not need: serves the other end of the socket as its keeper; returns only -errno. */
BRIG_API int brig_become_keeper(int ceilings, int socket);

/* ---- a run ---------------------------------------------------------------------------------- */

/* One option of the request, spelled as in the policy file: { "timeout", "5" }, { "mem_limit", "128m" }.  An option can
 * tighten; it can loosen only what the trust level allows, otherwise the run is refused. */
struct brig_option {
	const char *key;
	const char *value;
};

struct brig_usage {
	uint64_t wall_ms;
	uint64_t cpu_ms;
	uint64_t memory_peak_bytes;
	uint64_t pids_peak;
	uint64_t output_bytes;
};

struct brig_sample {
	uint32_t size;
	uint64_t at_ms; /* since the program started */
	uint64_t cpu_ms;
	uint64_t memory_bytes;
	uint64_t pids;
	uint64_t output_bytes;
	uint64_t disk_bytes; /* that its own files take; 0: none, or the backend does not know */
};

enum brig_stream { BRIG_STDOUT = 1, BRIG_STDERR = 2 };

/* Called on the thread of brig_run() with each chunk of output as it arrives, byte for byte. */
typedef void (*brig_output_fn)(void *user, enum brig_stream stream, const void *data, size_t len);
/* Called every monitoring interval. */
typedef void (*brig_sample_fn)(void *user, const struct brig_sample *sample);
/* Called with a sentence for people that cannot wait for the result: that nothing isolates the program about to run, or
 * that something slow is in progress. */
typedef void (*brig_notice_fn)(void *user, const char *text);
/* Called once, when all protections are in force and the inspection has passed: the program is released now.  Never for
 * a run that is blocked or refused. */
struct brig_started {
	uint32_t size;
	const char *id, *backend, *language, *trust;
};
typedef void (*brig_started_fn)(void *user, const struct brig_started *what);
/* Called with each finding of the inspection, by position, before the program is released or blocked. */
struct brig_finding;
typedef void (*brig_finding_fn)(void *user, const struct brig_finding *finding);

/* A completed step of a run, whatever its outcome: what it was, when it ended, how long it took. */
struct brig_trace {
	uint32_t size;
	const char *stage; /* of which cell: "compile", "run" ...; "": of the request as a whole */
	const char *step;  /* "resolve", "begin", "watch" ...; for people: steps differ between versions */
	uint64_t at_ns;    /* CLOCK_MONOTONIC */
	uint64_t took_ns;  /* with the steps of its cells, if it has such */
};
typedef void (*brig_trace_fn)(void *user, const struct brig_trace *step);

/* Progress of installing packages. */
struct brig_install {
	uint32_t size;
	const char *installer; /* "pip", "npm", "go" */
	const char *packages;  /* what is installed, for people: "requests, numpy" */
	uint64_t elapsed_ms;
	uint64_t bytes;     /* received so far; with done, that are kept */
	int done;           /* 1: they are installed.  What fails is told by the result */
	uint32_t kept_days; /* how long they stay */
};
/* Called at the start, every second meanwhile, and at the end; not for packages that are already installed. */
typedef void (*brig_install_fn)(void *user, const struct brig_install *now);

struct brig_request {
	uint32_t size;
	const char *language;  /* NULL: from file_name's extension, then from the code's shebang */
	const char *file_name; /* base name shown to the program and in its tracebacks; may be NULL */
	const char *code;
	size_t code_len;
	const char *const *args; /* program arguments, without the program; n_args of them */
	size_t n_args;
	const char *const *env; /* "KEY=VALUE"; below trusted without variables that load or start other code */
	size_t n_env;
	const char *trust; /* NULL: the policy's default ("unknown"); above its max_trust: refused */
	const struct brig_option *options;
	size_t n_options;
	const char *stdin_data; /* used when stdin_fd is -1; NULL: empty input */
	size_t stdin_len;
	int stdin_fd;  /* read until end of file and fed to the program; -1: none; remains owned by the caller */
	int cancel_fd; /* when it becomes readable the run ends with verdict "cancelled"; -1: none */
	brig_output_fn on_output;
	brig_sample_fn on_sample;
	void *user;
	uint32_t flags; /* BRIG_RUN_* */
	brig_notice_fn on_notice;
	/* A project's folder, shown at /workspace; NULL: an empty one.  What the program may do with it is the setting
	 * workspace_mode; what it changed is in the result. */
	const char *workspace;
	const char *const *artifacts; /* patterns of files to fetch when it has ended: "*.png", "dist/" and all below */
	size_t n_artifacts;
	const char *out_dir; /* an existing folder that artifacts are copied to; NULL: they are only listed */
	const char *const
		*packages; /* "requests", "numpy==1.26.4": installed in a separate cell, then mounted read-only */
	size_t n_packages;
	uint32_t kind;         /* enum brig_kind */
	const char *test_path; /* BRIG_KIND_TESTS: below the workspace; NULL: all of it */
	/* BRIG_KIND_CODE: where the code is in the workspace, as a path below it.  If the file there has exactly that
	 * content the program runs in place, with its neighbours; NULL: file_name at the workspace's top. */
	const char *source_path;
	uint64_t inline_artifacts; /* artifact contents in the result's JSON, up to this many bytes; 0: none */
	brig_started_fn on_started;
	brig_finding_fn on_finding;
	/* Without workspace: a tar archive of files that are in it before the program starts, read to its end first; 0: none.
	 * Regular files and folders only.  The result tells what the program changed. */
	int files_fd;
	int out_fd;                 /* artifacts are written to it as a tar archive; 0: none */
	brig_install_fn on_install; /* NULL: on_notice is told that it begins */
	/* A folder of this host with a virtual environment of Python, used by the program and shown to it read-only; NULL:
	 * .venv or venv of the workspace, if there is one. */
	const char *venv;
	brig_trace_fn on_trace; /* called after each step */
	/* An environment created by brig_environment_create(); NULL: the policy's, "none": none. */
	const char *environment;
	/* The id of the run, if the caller must know it beforehand: 16 letters a to z and digits 2 to 7, and random,
	 * because records and cells are named after it; NULL: a new one. */
	const char *id;
	const char *who;  /* the name of the requester, for audit log and history: at most 64 bytes; NULL: none */
	const char *door; /* and of the protocol that the request came through, if not brig's own; NULL: none */
	/* Without workspace: a project as brig_folders_open() has packed it, which the requester has read with their
	 * own rights; 0: none.  hidden: paths of it that appear empty, a folder's with a trailing slash. */
	int project_fd;
	const char *const *hidden;
	size_t n_hidden;
	int left_fd; /* what is in the workspace at the end is written to it, for brig_folders_finish(); 0: none */
	/* BRIG_KIND_CODE in a language that is compiled, whose code lies in the workspace: other files there, by their
	 * paths below it, that are passed to its compiler in addition to the code. */
	const char *const *sources;
	size_t n_sources;
};

/* What a request runs. */
enum brig_kind {
	BRIG_KIND_CODE = 0,    /* code in a language */
	BRIG_KIND_COMMAND = 1, /* args: a program and its arguments, run in the workspace; there is no code */
	BRIG_KIND_SHELL = 2,   /* code: a line for the shell, inspected as a command */
	BRIG_KIND_TESTS = 3,   /* the tests of the workspace; language may choose among several frameworks */
};
/* More than this is refused with BRIG_E_USAGE before anything is tried. */
#define BRIG_CODE_MAX             (16u << 20)  /* bytes of code */
#define BRIG_STRING_MAX           (128u << 10) /* bytes of one argument or environment entry, NUL included */
#define BRIG_STRINGS_MAX          (1u << 20)   /* bytes of all arguments and environment entries together */
#define BRIG_RUN_NO_CAPTURE       1u           /* do not keep output in the result: on_output has received it */
#define BRIG_RUN_RECEIPT          2u           /* sign a statement about this run: brig_result_receipt() */
#define BRIG_RUN_APPLY            4u           /* apply the changes of the workspace if the verdict is "ok" */
#define BRIG_RUN_PROJECT_PACKAGES 8u  /* install what requirements.txt, package.json or go.mod of the workspace name */
#define BRIG_RUN_APPLY_GIT        32u /* BRIG_RUN_APPLY, and with them commits, branches and tags made in .git */
#define BRIG_RUN_OVERWRITE        16u /* artifacts replace files with the same names in out_dir */
#define BRIG_RUN_DIFF             64u /* with files_fd: the result has the changes as a unified diff, too */
#define BRIG_REQUEST_INIT                                                                                            \
	{                                                                                                            \
		sizeof(struct brig_request), NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0, NULL, 0, -1, -1,  \
			NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, 0, NULL, NULL, 0, 0, \
			NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, NULL, 0                             \
	}

struct brig_result;

/* Whether brig_run() would accept it: 0, or BRIG_E_USAGE.  For callers that queue requests and report errors
 * immediately. */
BRIG_API int brig_request_check(const struct brig_request *req, struct brig_error *err);
/* Returns 0 whenever there is a result, including "refused" and "failed" ones; negative only when the arguments are
 * unusable (BRIG_E_USAGE) or memory is exhausted. */
BRIG_API int brig_run(struct brig *b, const struct brig_request *req, struct brig_result **ret, struct brig_error *err);
/*
 * The same run in steps, for callers with a poll loop: any number of them may be in progress on one handle.  Nothing
 * blocks, no thread is created, no signal is handled.
 *
 *	struct brig_run *run;
 *
 *	brig_run_begin(b, &req, &run, &err);
 *	while (brig_run_step(run, &err) > 0)
 *		poll(&(struct pollfd){ .fd = brig_run_fd(run), .events = POLLIN }, 1, -1);
 *	brig_run_end(run, &result, &err);
 *
 * All calls for one handle and its runs come from one thread.  Callbacks are made from within brig_run_step(), on its
 * caller's stack; they may begin, step and end other runs, and cancel any.  A run belongs to the process that began it.
 */
struct brig_run;
/* Nothing happens before the first step.  What the request points to remains owned by the caller and must not change
 * until brig_run_end(); the struct itself is copied.  Negative as with brig_run(), or if there are no descriptors left
 * (BRIG_E_SYSTEM). */
BRIG_API int brig_run_begin(struct brig *b, const struct brig_request *req, struct brig_run **ret,
			    struct brig_error *err);
/* Becomes readable when there is something to do, timeouts included.  The same descriptor from begin to end; only for
 * poll(2) and the like. */
BRIG_API int brig_run_fd(const struct brig_run *run);
/* Does what can be done without waiting.  1: there is more to do, now or later; 0: it has finished; negative: it cannot
 * be stepped here (BRIG_E_USAGE).  May be called at any time, even with nothing to do. */
BRIG_API int brig_run_step(struct brig_run *run, struct brig_error *err);
/* As if cancel_fd had become readable: continue stepping, to the verdict "cancelled" unless it had already ended. */
BRIG_API int brig_run_cancel(struct brig_run *run);
/* Sends its program a signal, which it may catch.  -BRIG_E_USAGE: there is no such signal; -BRIG_E_REFUSED: no program
 * is running (perhaps its compiler is), or the backend cannot send one: brig_run_cancel() ends it nevertheless. */
BRIG_API int brig_run_signal(struct brig_run *run, int signal);
/* Consumes the run, finished or not.  An unfinished one is cancelled, and waited for until nothing of it is left: that
 * blocks, for at most cleanup_timeout_ms if the kernel does its part.  ret may be NULL. */
BRIG_API int brig_run_end(struct brig_run *run, struct brig_result **ret, struct brig_error *err);
/* A result that says why there was no run, for callers that answer every request with one: "refused", or "failed" if
 * *why is a system error.  It has no id: nothing is recorded about it. */
BRIG_API int brig_result_from_error(const struct brig_error *why, struct brig_result **ret, struct brig_error *err);
BRIG_API void brig_result_free(struct brig_result *r); /* NULL is fine */

BRIG_API const char *brig_result_id(const struct brig_result *r);
BRIG_API const char *brig_result_verdict(const struct brig_result *r);  /* "ok", "timeout", ... */
BRIG_API const char *brig_result_reason(const struct brig_result *r);   /* one sentence; "" if none */
BRIG_API const char *brig_result_backend(const struct brig_result *r);  /* "" if none was chosen */
BRIG_API const char *brig_result_language(const struct brig_result *r); /* "" if none was recognised */
BRIG_API const char *brig_result_step(const struct brig_result *r);     /* "run" or "compile"; "" if none */
BRIG_API int brig_result_exit_code(const struct brig_result *r);        /* the program's own; -1: none */
BRIG_API int brig_result_signal(const struct brig_result *r);           /* 0: none */
/* The exit status for a command line front end: one number for verdict and program together. */
BRIG_API int brig_result_status(const struct brig_result *r);
/* NUL-terminated for convenience; may hold NULs, so use *len. */
BRIG_API const char *brig_result_output(const struct brig_result *r, enum brig_stream stream, size_t *len);
/* 1 if the program wrote more than is kept, else 0. */
BRIG_API int brig_result_truncated(const struct brig_result *r, enum brig_stream stream);
BRIG_API void brig_result_usage(const struct brig_result *r, struct brig_usage *ret);
/* Promises read back from the kernel: how many were kept, of how many. */
BRIG_API void brig_result_evidence(const struct brig_result *r, size_t *ret_kept, size_t *ret_total);
/* The outcome of the compile step: "hit" (not compiled, found in the cache), "received" (another node had it), "stored",
 * "miss"; "": the cache was not consulted. */
BRIG_API const char *brig_result_cache(const struct brig_result *r);
/* What the program did to its workspace. */
struct brig_changes {
	uint32_t size;
	/* "none": nothing, or nothing is kept; "kept": for brig_workspace_apply(); "applied"; "incomplete": there was
	 * too much to examine, and nothing is kept; "": the request had no workspace */
	const char *state;
	uint64_t added, modified, deleted; /* files, folders and links */
	int git; /* 1: commits, branches or tags of the project's repository besides, for BRIG_APPLY_GIT */
};
#define BRIG_CHANGES_INIT                                   \
	{                                                   \
		sizeof(struct brig_changes), "", 0, 0, 0, 0 \
	}
BRIG_API void brig_result_changes(const struct brig_result *r, struct brig_changes *ret);
/* A file that was requested and fetched: its path below the workspace (any bytes) and its size.  1 if there is an i-th
 * one, else 0. */
BRIG_API int brig_result_artifact(const struct brig_result *r, size_t i, const char **ret_path, uint64_t *ret_size);
/* The same for files that the program left in its private workspace and that were not requested: the first few, without
 * dot files and caches; with i past the last one *ret_size is how many more there were. */
BRIG_API int brig_result_left(const struct brig_result *r, size_t i, const char **ret_path, uint64_t *ret_size);
/* What would help a program that failed, in a sentence: a package that is missing; "" if there is nothing to suggest.
 */
BRIG_API const char *brig_result_hint(const struct brig_result *r);
/* Warnings, in order; NULL past the last one. */
BRIG_API const char *brig_result_warning(const struct brig_result *r, size_t i);
/* A protection that was missing in the run because the policy's allow_degraded names it: its name, what is lost without
 * it and how to get it.  1 if there is an i-th one, else 0. */
BRIG_API int brig_result_degraded(const struct brig_result *r, size_t i, const char **ret_protection,
				  const char **ret_lost, const char **ret_fix);

/* A finding of the static inspection.  Lines and columns count from 1, columns in characters; the end is exclusive. */
struct brig_finding {
	uint32_t size;
	const char *rule;     /* "py-process" */
	const char *severity; /* "CRITICAL" blocks, "HIGH" warns, "MEDIUM" and "LOW" inform */
	const char *name;     /* what was found, resolved: "os.system" for an alias of it */
	const char *message, *remedy;
	uint32_t line, column, end_line, end_column;
	int network; /* 1: it only says that the code uses the network */
};
#define BRIG_FINDING_INIT                                                                \
	{                                                                                \
		sizeof(struct brig_finding), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0 \
	}
/* Findings by position: 1 if there is an i-th one, else 0.  The strings belong to the result. */
BRIG_API int brig_result_finding(const struct brig_result *r, size_t i, struct brig_finding *ret);

/* Something that the program tried and was denied, with its count. */
struct brig_denied {
	uint32_t size;
	const char *kind; /* "syscall", "file" or "host" */
	const char *what; /* "ptrace", ".env", "1.2.3.4:443" */
	const char *why;
	const char *fix; /* what to change in the policy; "" if no setting could allow it */
	uint64_t count;
};
#define BRIG_DENIED_INIT                                              \
	{                                                             \
		sizeof(struct brig_denied), NULL, NULL, NULL, NULL, 0 \
	}
/* 1 if there is an i-th one, else 0.  The strings belong to the result. */
BRIG_API int brig_result_denied(const struct brig_result *r, size_t i, struct brig_denied *ret);

/* With BRIG_RUN_RECEIPT: a statement about the run, signed with this host's key, for brig_receipt_verify().  NULL if
 * none was asked for, or none could be made, which is then a warning. */
BRIG_API const char *brig_result_receipt(const struct brig_result *r);

/* What a test run (BRIG_KIND_TESTS) reported.  Counts of an incomplete report are those up to that point. */
struct brig_tests {
	uint32_t size;
	const char *framework; /* "pytest", "unittest", "node", "jest", "vitest", "go" */
	int complete;          /* 1: the report has its end, and agrees with how the tests ended */
	uint64_t passed, failed, skipped;
	int sealed; /* 1: the report was written by brig's runner; 0: by the test programs themselves (Go) */
	int held;   /* 1: no test could change a test file; 0: they were compared when all was over */
};
#define BRIG_TESTS_INIT                                           \
	{                                                         \
		sizeof(struct brig_tests), NULL, 0, 0, 0, 0, 0, 0 \
	}
struct brig_test_failure {
	uint32_t size;
	const char *name, *message;
	const char *file; /* NULL: not known */
	uint32_t line;    /* 0: not known */
};
#define BRIG_TEST_FAILURE_INIT                                        \
	{                                                             \
		sizeof(struct brig_test_failure), NULL, NULL, NULL, 0 \
	}
/* 1 if there is a report, else 0. */
BRIG_API int brig_result_tests(const struct brig_result *r, struct brig_tests *ret);
/* Failures in order: 1 if there is an i-th one, else 0.  At most 256 are kept.  The strings belong to the result. */
BRIG_API int brig_result_test_failure(const struct brig_result *r, size_t i, struct brig_test_failure *ret);

/* Everything, as in data/schemas/result.json. */
BRIG_API int brig_result_json(const struct brig_result *r, char **ret, struct brig_error *err);
/* What this header's functions report about a result and that document does not: { "network_findings": [ places in
 * findings ], "left_dropped" }.  For passing a result to another process. */
BRIG_API int brig_result_unlisted_json(const struct brig_result *r, char **ret, struct brig_error *err);
/*
 * The result that such a document describes, if it comes from another process: len bytes, of this version of brig.  It
 * may have two members more, "receipt" (that of brig_result_receipt()) and "unlisted" (the above).  BRIG_E_USAGE names
 * the member that is missing, not known or not what it must be.  brig_result_json() of it gives the same document.
 */
BRIG_API int brig_result_from_json(const char *json, size_t len, struct brig_result **ret, struct brig_error *err);

/* ---- static inspection without a run -------------------------------------------------------- */

/*
 * Inspects code, a command line or a path and reports what it found, as brig_run() does before it runs anything.  It is
 * a guard rail, not the wall: no finding does not mean harmless.
 */
struct brig_check {
	uint32_t size;
	const char *kind;      /* NULL: code; "command": what sh -c takes; "path": a path as a program would open it */
	const char *language;  /* of code; NULL: from file_name's extension, then from the shebang */
	const char *file_name; /* base name; may be NULL */
	const char *text;
	size_t len;
	const char *trust;     /* NULL: the policy's default */
	const char *workspace; /* the directory that paths must stay in; NULL: "/workspace" */
	int strict;            /* 1: only listed commands, no computed words */
	uint32_t flags;        /* must be 0 */
	const char *inspect; /* off, report, guard or strict, as far as the policy lets a request; NULL: the policy's */
	const char *rules;   /* actions of individual rules: "py-network=allow,sh-escape=block"; NULL: the policy's */
};
#define BRIG_CHECK_INIT                                                                            \
	{                                                                                          \
		sizeof(struct brig_check), NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL \
	}

/*
 * 0: nothing above MEDIUM, 1: worth a warning, 2: would be blocked; negative: inspection was impossible. *ret_json: {
 * "kind", "language", "inspected", "level", "worst", "blocked", "findings": [...], "dropped" }; "inspected" is false
 * for languages that are not inspected (C), and at the level off.  ret_json may be NULL.
 */
BRIG_API int brig_check(struct brig *b, const struct brig_check *req, char **ret_json, struct brig_error *err);
/* Every rule: { "rules": [ { "id", "languages", "kind", "names", "severity": { level: word }, "message", "remedy",
 * "match", "no_match", "file", "line" } ] }. */
BRIG_API int brig_rules_json(struct brig *b, char **ret_json, struct brig_error *err);

/* ---- the state folder ------------------------------------------------------------------------- */

#define BRIG_STATE_LOOK 1u /* only say what there is to do */
/*
 * Migrates what older versions of brig left in the state directory to the current format: { "ok", "folder", "parts": [
 * { "part", "where", "found", "known", "state", "problem" } ] }; found and known are versions, found is null where
 * there is nothing; state is absent, current, old (with BRIG_STATE_LOOK), upgraded or unreadable, which alone is not
 * "ok".  A directory in which a newer brig wrote anything is refused (BRIG_E_REFUSED), and nothing is changed.
 */
BRIG_API int brig_state_upgrade(struct brig *b, uint32_t flags, char **ret_json, struct brig_error *err);

/* ---- policy, host and languages, as JSON documents ------------------------------------------ */

/* Every effective setting for a trust level (NULL: the default one), with the layer that set it. */
BRIG_API int brig_policy_json(struct brig *b, const char *trust, char **ret, struct brig_error *err);
/* Rows of `users` in the policy file, for programs that serve users of this host: { "users": [ { "place", "user" or
 * "group", ... } ] }. */
BRIG_API int brig_policy_users_json(struct brig *b, char **ret, struct brig_error *err);
/* Checks a file.  Returns 0 if it is valid, 1 if not; *ret lists each error with its position. */
BRIG_API int brig_policy_check(const char *path, char **ret, struct brig_error *err);
/* The text of a policy file with every setting, its default and its meaning, all commented out. */
BRIG_API int brig_policy_template(char **ret, struct brig_error *err);
/* What this host can enforce, row by row, with the fix for what is missing. */
BRIG_API int brig_doctor_json(struct brig *b, char **ret, struct brig_error *err);
/* Languages, their file extensions and whether their runtime is installed. */
BRIG_API int brig_languages_json(struct brig *b, char **ret, struct brig_error *err);

/*
 * Existing cells of any backend, whoever created them: { "ok", "cells": [ { "backend", "id", "name", "language",
 * "owner", "orphan", "waiting", "age_ms" } ], "notes": [ { "backend", "note" } ] }.  An orphan's owner is dead; a
 * waiting cell is an unclaimed warm one.  A backend that is not available on this host is a note; "ok" is false if an
 * available one could not be queried.
 */
BRIG_API int brig_ps_json(struct brig *b, char **ret, struct brig_error *err);
/*
 * Cells that this handle keeps ready ahead of requests (warm of brig_open_opts): { "pools": [ { "language",
 * "environment", "trust", "memory_limit", "ready", "building", "in_use", "wanted", "forks": "ready", "building" or null
 * if its interpreters are no forks, "made", "hits", "misses", "memory_bytes", "given_up": its interpreter cannot wait }
 * ] }.  One for each kind that was requested recently: what requests of the same language, packages and policy share.
 */
BRIG_API int brig_pools_json(struct brig *b, char **ret, struct brig_error *err);
/* Removes the orphans: the same document with "removed" instead of "cells". */
BRIG_API int brig_reap_json(struct brig *b, char **ret, struct brig_error *err);

/* ---- history: what was run ------------------------------------------------------------------- */

/* Which executions.  NULL: any. */
struct brig_history {
	uint32_t size;
	const char *verdict;  /* "ok", "timeout", ... */
	const char *language; /* a name or one of its aliases */
	const char *trust;    /* "untrusted", "unknown", "trusted" */
	const char *since,
		*until;   /* "2h", "7d": so long ago; "2026-11-16", "2026-11-16T08:30:00Z"; until: not included */
	uint32_t limit;   /* the newest ones; 0: all, up to 100000 */
	uint32_t flags;   /* must be 0 */
	const char *who;  /* the requester as named in the request */
	const char *door; /* and the protocol of the request; "none": brig's own */
};
#define BRIG_HISTORY_INIT                                                                   \
	{                                                                                   \
		sizeof(struct brig_history), NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL \
	}

/*
 * Executions, the newest first: { "executions": [ { "id", "time", "verdict", "language", "trust", "wall_ms", ... } ],
 * "total": how many there are without the limit, "history_warnings": [ ... ] }.  req may be NULL.
 */
BRIG_API int brig_history_json(struct brig *b, const struct brig_history *req, char **ret, struct brig_error *err);
/*
 * Everything that was kept of one execution; a unique prefix of its id is enough, and NULL is the newest: the members
 * of a result, "time", and "code", "stdout", "stderr" as { "sha256", "bytes", "kept", "text", "encoding", "truncated",
 * "redacted" }.
 */
BRIG_API int brig_show_json(struct brig *b, const char *id, char **ret, struct brig_error *err);

/* ---- images of the docker backend ------------------------------------------------------------ */

/* A line of text about something that takes long; without newline. */
typedef void (*brig_progress_fn)(void *user, const char *line);

struct brig_images {
	uint32_t size;
	const char *image; /* name of an image or a language; NULL: all.  For brig_images_check also any reference */
	const char *from;  /* how to build: "registry", "host"; NULL: from a registry if one can be reached */
	int rebuild;       /* 1: even if there is a good one */
	brig_progress_fn on_progress;
	void *user;
	uint32_t flags; /* must be 0 */
	int pull;       /* 1: pull the base image again: from a registry, or not at all */
	int no_cache;   /* 1: rebuild everything */
	/* Python packages instead of the policy's docker_requirements; NULL: the policy's. */
	const char *const *requirements;
	size_t n_requirements;
};
#define BRIG_IMAGES_INIT                                                                \
	{                                                                               \
		sizeof(struct brig_images), NULL, NULL, 0, NULL, NULL, 0, 0, 0, NULL, 0 \
	}

/*
 * All three query the policy's engine (docker_host) and return { "engine": { "name", "version", "address" }, "images":
 * [ { "name", "languages", "reference", "id", "state", "how", "created", "bytes", "complaint" } ] }; state is "good",
 * "missing", "wrong" or, in a list, "other": made by another brig or derived.  opts may be NULL, and so may ret_json.
 */
/* Builds what is missing. */
BRIG_API int brig_images_build(struct brig *b, const struct brig_images *opts, char **ret_json, struct brig_error *err);
BRIG_API int brig_images_list(struct brig *b, char **ret_json, struct brig_error *err);
/* 0: good, every one; 1: not. */
BRIG_API int brig_images_check(struct brig *b, const struct brig_images *opts, char **ret_json, struct brig_error *err);

/* ---- the audit log, keys and receipts ------------------------------------------------------- */

/* Which entries; all conditions must hold.  Moments as people write them: "2h", "7d", "2026-11-16T08:30:00Z". */
struct brig_audit {
	uint32_t size;
	const char *since, *until; /* NULL: open; until is excluded */
	const char *verdict;       /* "timeout" */
	const char *language;
	const char *trust;
	const char *rule; /* one that was found in the code: "py-process" */
	uint64_t last;    /* only the last ones; 0: all */
	uint32_t flags;   /* BRIG_AUDIT_RUNS */
};
#define BRIG_AUDIT_RUNS 1u /* requests only, not the log's entries about itself */
#define BRIG_AUDIT_INIT                                                             \
	{                                                                           \
		sizeof(struct brig_audit), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 \
	}
/* One entry: a line of JSON without its newline, not NUL-terminated.  Not 0 stops the reading. */
typedef int (*brig_line_fn)(void *user, const char *line, size_t len);
/* Returns entries, oldest first, in little memory.  It checks nothing: use brig_audit_verify().  req may be NULL. */
BRIG_API int brig_audit_read(struct brig *b, const struct brig_audit *req, brig_line_fn fn, void *user,
			     struct brig_error *err);
/*
 * Checks every entry of the log.  0: it is intact; 1: it is not; negative: it could not be checked. *ret: { "ok",
 * "log", "entries", "runs", "checkpoints", "files", "first", "last", "problem": null or { "kind", "file", "line",
 * "seq", "message" }, "notes": [...] }; kind is edited, inserted, deleted, reordered, truncated, swapped_files,
 * deleted_file, removed_checkpoint, bad_signature or lost_head.
 */
BRIG_API int brig_audit_verify(struct brig *b, char **ret, struct brig_error *err);
/* The keys that this host signs with: { "keys": [ { "id", "public", "from", "until", "current" } ] }.  The first one is
 * created if there is none. */
BRIG_API int brig_keys_json(struct brig *b, char **ret, struct brig_error *err);
/* Signs with a new key from now on; the audit log records it. */
BRIG_API int brig_key_rotate(struct brig *b, char **ret, struct brig_error *err);
/*
 * Checks a receipt; needs no handle, no state and no network.  public_key: 64 hex digits, or NULL to use the one that
 * the receipt names, which proves less.  0: it is valid; 1: it is not; negative: it could not be checked. *ret: { "ok",
 * "problem", "key": { "id", "public", "expected" }, "proven": [...], "not_proven": [...], "statement" }.
 */
BRIG_API int brig_receipt_verify(const char *text, size_t len, const char *public_key, char **ret,
				 struct brig_error *err);

/* What brig_metrics() returns. */
enum brig_metrics_format { BRIG_METRICS_JSON = 0, BRIG_METRICS_PROMETHEUS = 1 };

/* ---- the caches of compiled programs and of packages ---------------------------------------- */

/* { "entries": [ { "key", "kind", "content", "pinned", "bytes", "hits", "created", "used", "age_ms" } ], "bytes",
 * "max_bytes", "max_days", "packages": { "bytes", "max_bytes", "max_days" } }: compiled programs, then packages ("pip", "npm",
 * "go"), of each the most recently used first. */
BRIG_API int brig_cache_list_json(struct brig *b, char **ret, struct brig_error *err);
#define BRIG_PRUNE_ALL 1u /* everything except what is pinned, not only what is too old, too much or damaged */
/* { "entries", "bytes": what is left, "removed", "removed_bytes", "expired", "damaged", "stray" } */
BRIG_API int brig_cache_prune_json(struct brig *b, uint32_t flags, char **ret, struct brig_error *err);
/* Hashes every entry and drops those that are not what was stored.  0: all were; 1: some were not.  *ret as of
 * brig_cache_prune_json(), and "bad": [ { "key", "kind", "why" } ]. */
BRIG_API int brig_cache_verify_json(struct brig *b, char **ret, struct brig_error *err);

/* ---- environments: package sets that have a name --------------------------------------------- */

struct brig_environment {
	uint32_t size;
	const char *name;            /* [a-z0-9][a-z0-9._-]*, at most 64 bytes, and not "none" */
	const char *language;        /* whose packages they are: "python", "javascript", "go"; NULL: "python" */
	const char *const *packages; /* as of a request; may be none */
	size_t n_packages;
	const char *const *warm; /* modules that warm cells import in advance: "numpy" */
	size_t n_warm;
	const char *trust; /* at most this trust may use it; NULL: the policy's default */
	const struct brig_option *options;
	size_t n_options;
	int cancel_fd; /* as of a request, and so are all that follow */
	brig_notice_fn on_notice;
	brig_install_fn on_install;
	void *user;
	const char *id, *who;
	brig_started_fn on_started;
	brig_trace_fn on_trace;
};
#define BRIG_ENVIRONMENT_INIT                                                                                       \
	{                                                                                                           \
		sizeof(struct brig_environment), NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, 0, -1, NULL, NULL, NULL, \
			NULL, NULL, NULL, NULL                                                                      \
	}

/*
 * Installs the packages as a request with packages would, imports each module of the warm-up list in a cell without
 * network, and stores both under the name if all of that succeeded: the verdict of *ret is "ok", and its packages are
 * there until the environment is removed.  0 whenever there is a result, as of brig_run().
 */
BRIG_API int brig_environment_create(struct brig *b, const struct brig_environment *what, struct brig_result **ret,
				     struct brig_error *err);
/* Whether brig_environment_create() would try: 0, or BRIG_E_USAGE and why not. */
BRIG_API int brig_environment_check(const struct brig_environment *what, struct brig_error *err);
/* The same as a run that its caller steps, as of brig_run_begin(); what *what points to stays until brig_run_end(). */
BRIG_API int brig_environment_begin(struct brig *b, const struct brig_environment *what, struct brig_run **ret,
				    struct brig_error *err);
/* { "environments": [ { "name", "ecosystem", "packages", "warm", "created", "brig", "backend", "trust", "degraded", "key",
 * "content", "made_for", "files", "bytes", "set": "there", "missing" or null } ] }, by name; of one whose document cannot be
 * read { "name", "problem" }. */
BRIG_API int brig_environments_json(struct brig *b, char **ret, struct brig_error *err);
/* One of these objects; BRIG_E_REFUSED if there is none of that name. */
BRIG_API int brig_environment_json(struct brig *b, const char *name, char **ret, struct brig_error *err);
/* { "name", "packages": "gone", "kept": others have them, or a run uses them, until the cache is pruned, or null } */
BRIG_API int brig_environment_remove(struct brig *b, const char *name, char **ret, struct brig_error *err);

/* ---- workspaces: changes that wait to be applied ---------------------------------------------- */

/* { "workspaces": [ { "id", "project", "mode", "created", "age_ms", "added", "modified", "deleted", "bytes", "git" } ] }; id
 * is that of the run, git whether commits, branches or tags wait besides. */
BRIG_API int brig_workspace_list_json(struct brig *b, char **ret, struct brig_error *err);
/* One of them, with "changes": [ { "change", "type", "size", "mode", "path", "path_encoding", "not_applied": null or why
 * not } ]. */
BRIG_API int brig_workspace_show_json(struct brig *b, const char *id, char **ret, struct brig_error *err);
/* A unified diff against the project as it is now; binary files are named. */
BRIG_API int brig_workspace_diff(struct brig *b, const char *id, char **ret, struct brig_error *err);
/*
 * Applies the changes to the project and drops them: all or, if a file of the project is no longer what the run saw
 * (BRIG_E_REFUSED), none.  *ret_not_applied (may be NULL) has a line for each one that is never applied: links that
 * lead out, special files, files that the policy hides, .git; "" if there are none.
 */
BRIG_API int brig_workspace_apply(struct brig *b, const char *id, char **ret_not_applied, struct brig_error *err);
/* The same with BRIG_APPLY_*: also what the run committed, branched and tagged; never hooks or configuration. */
#define BRIG_APPLY_GIT 1u
BRIG_API int brig_workspace_apply_with(struct brig *b, const char *id, uint32_t flags, char **ret_not_applied,
				       struct brig_error *err);
/* Drops them. */
BRIG_API int brig_workspace_discard(struct brig *b, const char *id, struct brig_error *err);

/*
 * Folders of a request that another process runs, such as a service started by root: this process reads and writes
 * workspace and out_dir, with its own rights, and memory files are passed between them.
 *
 *	brig_folders_open(b, &req, &f, &err);         the folders as brig_run() takes them, the project packed
 *	... project_fd, hidden and left_fd of a request there; artifacts and the flags of a workspace stay here ...
 *	brig_folders_finish(f, left_fd, result, &err);    changes are kept or applied, artifacts fetched, as brig_run() does it
 */
struct brig_folders;
/* What the request points to must not change until the end.  BRIG_E_REFUSED: brig_run() would refuse it as well; or it
 * is too large to be passed (*ret_too_large), which brig_run() might accept. */
BRIG_API int brig_folders_open(struct brig *b, const struct brig_request *req, struct brig_folders **ret,
			       int *ret_too_large, struct brig_error *err);
/* The packed project, a sealed file in memory that stays theirs; -1: the request has none. */
BRIG_API int brig_folders_project(const struct brig_folders *f);
BRIG_API const char *const *brig_folders_hidden(const struct brig_folders *f, size_t *ret_n);
/* left_fd: a file that can be reread, empty if nothing ran.  The result is then as brig_run() would have it. */
BRIG_API int brig_folders_finish(struct brig_folders *f, int left_fd, struct brig_result *r, struct brig_error *err);
BRIG_API void brig_folders_close(struct brig_folders *f); /* NULL is fine */

/* ---- metrics --------------------------------------------------------------------------------- */

/* The counters of all brig processes with this state directory: { "since_ms", "executions", "rates", "by", "cache",
 * "metrics": [ ... ] }, or the text format of Prometheus (0.0.4). */
BRIG_API int brig_metrics(struct brig *b, enum brig_metrics_format format, char **ret, struct brig_error *err);

/* ---- warm containers --------------------------------------------------------------------------- */

/* Keeps containers of the docker backend running and ready, for later brig_run() calls of any process of this user. */
struct brig_pool {
	uint32_t size;
	const char *const *languages; /* n_languages of them */
	size_t n_languages;
	const char *trust;                 /* NULL: the policy's default */
	const struct brig_option *options; /* options that the runs will have, too */
	size_t n_options;
	uint32_t containers;      /* of each kind, 1 to BRIG_POOL_MAX */
	int stop_fd;              /* when it becomes readable the pool removes what waits and returns */
	brig_notice_fn on_notice; /* what happens, for people; may be called on another thread */
	void *user;
};
#define BRIG_POOL_MAX 64
#define BRIG_POOL_INIT                                                              \
	{                                                                           \
		sizeof(struct brig_pool), NULL, 0, NULL, NULL, 0, 2, -1, NULL, NULL \
	}
/* Returns 0 when it was told to stop. */
BRIG_API int brig_pool(struct brig *b, const struct brig_pool *what, struct brig_error *err);

BRIG_API void brig_free(void *p);

#ifdef __cplusplus
}
#endif
#endif
