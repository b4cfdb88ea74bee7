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

/* What packages add to the plans of the cells that use them.  Borrowed. */
struct provision {
	const char *const *env;
	size_t n_env;
	const struct plan_bind *binds;
	size_t n_binds;
	const struct plan_file *files; /* for a compile step */
	size_t n_files;
	const char *content; /* what it all is: decides along with the source what a compile step leaves */
	const char *beside;  /* a name in the workspace that one of the binds covers; NULL: none */
};

/* One plan and everything it points to. */
struct prepared {
	struct plan plan;
	struct lang_command command;
	const char **argv;
	const char **envp;
	char *joined;  /* heap: an entry of envp that two have a part in */
	char *sources; /* heap: words of argv, of files that are compiled with the code */
	struct plan_file file;
	struct plan_file files[PREPARED_FILES_MAX]; /* that one and those of the provision */
	struct plan_bind binds[PREPARED_BINDS_MAX];
	struct plan_egress way_out;
};

/* The stages share these. */
struct prepared_request {
	struct policy_resolved resolved;
	struct subject subject;
	const struct language *lang;         /* the subject's */
	char source_name[LANG_PATH_MAX + 1]; /* its path in the workspace */
	char id[RUN_ID_LEN + 1];
	uint32_t uid, gid;
	protection_set may_degrade;
	const struct provision *provision; /* NULL: none */
	const char *warm;                  /* plan.warm of the run */
	const char *environment;           /* and its plan.environment */
	struct workspace *archive;         /* the request's files, until work_open() takes them over; NULL: none */
	const struct certificates *certificates; /* for a step with a way out; NULL: not looked for */
	/* Of the workspace (work.h): */
	const struct plan_workspace *workspace; /* NULL: none */
	const char *const *venv_env;            /* a virtual environment's, for the program; NULL-terminated, or NULL */
	const struct plan_bind *venv_binds;     /* and what of the host it is, if it is not in the project */
	size_t n_venv_binds;
	const struct plan_workspace *sources; /* what a compile step is shown of it; NULL: the source alone */
	const struct language *run_lang;      /* not NULL: lang with another name for its output */
	unsigned source_mode;                 /* of the staged program: the project's own, if it covers that file */
	bool wants_view;                      /* what the run leaves will be read */
	bool brings_runtimes;                 /* tools are those of the backend's image, not the host's */
};

/* Whatever it returns, the request is to be released. */
int prepare_request(const struct policy *policy, const struct brig_request *req, struct prepared_request *ret,
		    struct brig_error *err);
void prepared_request_release(struct prepared_request *pr);

/* Code that runs in an existing cell: what is inspected and recorded of it.  It has no plan of its own. */
struct prepared_piece {
	const struct policy_resolved *resolved; /* its session's: some 50 kB, which are not copied for every piece */
	struct subject subject;
	char source_name[LANG_NAME_MAX + 1];
	char id[RUN_ID_LEN + 1];
};
/* Whatever it returns, the piece is to be released. */
int prepare_piece(const struct policy_resolved *resolved, const struct brig_request *req, struct prepared_piece *ret,
		  struct brig_error *err);
void prepared_piece_release(struct prepared_piece *p);
/* The compile stage; only for languages that have one. */
int prepare_compile(const struct prepared_request *pr, const struct brig_request *req, struct prepared *ret,
		    struct brig_error *err);
/* The run stage; compiled is what the compile stage left, or NULL. */
int prepare_run(const struct prepared_request *pr, const struct brig_request *req, const struct buf *compiled,
		struct prepared *ret, struct brig_error *err);
/* The words of an install step and what its cell is given.  Borrowed. */
struct install_step {
	const char *const *argv;
	size_t n_argv;
	const char *const *env; /* beyond the common one */
	size_t n_env;
	const struct plan_file *files;
	size_t n_files;
	const struct setting_list *hosts; /* that it may reach */
	enum syscall_family family;
	bool deny_write_exec;
};
int prepare_install(const struct prepared_request *pr, const struct install_step *step, struct prepared *ret,
		    struct brig_error *err);
/* Adds what packages bring, all of it or, with an error, nothing. */
int prepared_provide(struct prepared *p, const struct provision *v, bool is_run, struct brig_error *err);
void prepared_release(struct prepared *p);

/* Raises them to the most that cells of any kind have under these settings: of a run, a session, a compiler, an installer. */
void prepare_raise_limits(struct limits *most, const struct settings *set);
/* The protections that a list of allow_degraded names. */
protection_set prepare_degradable(const struct setting_list *names);

#endif
