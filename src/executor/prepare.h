/* SPDX-License-Identifier: Apache-2.0 */
/* From a resolved request to the plans of its stages. */
#ifndef EXECUTOR_PREPARE_H
#define EXECUTOR_PREPARE_H

#include "executor/certificates.h"
#include "executor/subject.h"
#include "lang/lang.h"
#include "model/plan.h"
#include "policy/policy.h"
#include "workspace/workspace.h"

#define PREPARED_ENV_MAX  256
#define PREPARED_ARGS_MAX 4096

#define PREPARED_BINDS_MAX 8
#define PREPARED_FILES_MAX 4

/* What packages add to the plans of cells that use them. Borrowed. */
struct provision {
	const char *const *env;
	size_t n_env;
	const struct plan_bind *binds;
	size_t n_binds;
	const struct plan_file *files; /* for a compile step */
	size_t n_files;
	const char *content; /* identifies all of it: part of the cache key of a compile step */
	const char *beside;  /* a name in the workspace that one of the binds covers; NULL: none */
};

/* A plan and everything it points to. */
struct prepared {
	struct plan plan;
	struct lang_command command;
	const char **argv;
	const char **envp;
	char *joined;  /* heap: an entry of envp composed of two parts */
	char *sources; /* heap: words of argv: files compiled together with the code */
	struct plan_file file;
	struct plan_file files[PREPARED_FILES_MAX]; /* file and the files of the provision */
	struct plan_bind binds[PREPARED_BINDS_MAX];
	struct plan_egress way_out;
};

/* Shared by the stages. */
struct prepared_request {
	struct policy_resolved resolved;
	struct subject subject;
	const struct language *lang;         /* the subject's */
	char source_name[LANG_PATH_MAX + 1]; /* its path in the workspace */
	char id[RUN_ID_LEN + 1];
	uint32_t uid, gid;
	protection_set may_degrade;
	const struct provision *provision;       /* NULL: none */
	const char *warm;                        /* plan.warm of the run */
	const char *environment;                 /* and plan.environment */
	struct workspace *archive;               /* the request's files, until work_open() takes them; NULL: none */
	const struct certificates *certificates; /* for a step with network access; NULL: not loaded */
	/* From the workspace (work.h): */
	const struct plan_workspace *workspace; /* NULL: none */
	const char *const *venv_env;            /* a virtual environment's, for the program; NULL-terminated, or NULL */
	const struct plan_bind *venv_binds;     /* binds for a virtual environment outside the project */
	size_t n_venv_binds;
	const struct plan_workspace *sources; /* the part of it visible to a compile step; NULL: only the source */
	const struct language *run_lang;      /* not NULL: lang with another output name */
	unsigned source_mode; /* mode of the staged program: that of the project's file if it replaces one */
	bool wants_view;      /* the workspace is read after the run */
	bool brings_runtimes; /* tools come from the backend's image, not the host */
};

/* The request must be released whatever this returns. */
int prepare_request(const struct policy *policy, const struct brig_request *req, struct prepared_request *ret,
		    struct brig_error *err);
void prepared_request_release(struct prepared_request *pr);

/* Code that runs in an existing cell: what is inspected and recorded of it.  It has no plan of its own. */
struct prepared_piece {
	const struct policy_resolved *resolved; /* the session's: some 50 kB, which are not copied for each piece */
	struct subject subject;
	char source_name[LANG_NAME_MAX + 1];
	char id[RUN_ID_LEN + 1];
};
/* The caller must release the piece, whatever this returns. */
int prepare_piece(const struct policy_resolved *resolved, const struct brig_request *req, struct prepared_piece *ret,
		  struct brig_error *err);
void prepared_piece_release(struct prepared_piece *p);
/* The plan of the compile stage; only for languages that have one. */
int prepare_compile(const struct prepared_request *pr, const struct brig_request *req, struct prepared *ret,
		    struct brig_error *err);
/* The plan of the run stage; compiled is the output of the compile stage, or NULL. */
int prepare_run(const struct prepared_request *pr, const struct brig_request *req, const struct buf *compiled,
		struct prepared *ret, struct brig_error *err);
/* The command of an install step and its cell's inputs. Borrowed. */
struct install_step {
	const char *const *argv;
	size_t n_argv;
	const char *const *env; /* beyond the common one */
	size_t n_env;
	const struct plan_file *files;
	size_t n_files;
	const struct setting_list *hosts; /* it may connect to these */
	enum syscall_family family;
	bool deny_write_exec;
};
int prepare_install(const struct prepared_request *pr, const struct install_step *step, struct prepared *ret,
		    struct brig_error *err);
/* Adds the provision; on error, nothing. */
int prepared_provide(struct prepared *p, const struct provision *v, bool is_run, struct brig_error *err);
void prepared_release(struct prepared *p);

/*
 * Raises the limits to the highest that a cell of any kind (run, session, compiler, installer) can have under these
 * settings.
 */
void prepare_raise_limits(struct limits *most, const struct settings *set);
/* The protections named in a list such as allow_degraded. */
protection_set prepare_degradable(const struct setting_list *names);

#endif
