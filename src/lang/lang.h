/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages as data (languages.def): how to recognise, compile and run each, and what to install for it.
 *
 * A request goes through here in three steps: lang_detect() picks the row, lang_source_name() names the
 * file in the workspace, lang_command_make() turns a step of the row into the words to execute and the
 * one host file, if any, that has to be shown in the cell for it.
 */
#ifndef LANG_LANG_H
#define LANG_LANG_H

#include <limits.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/plan.h"

#define LANG_PATHS_MAX      6
#define LANG_ARGV_MAX       16
#define LANG_ENV_MAX        12
#define LANG_COMPANIONS_MAX 24
#define LANG_NAME_MAX       128         /* bytes of a source file's name */
#define LANG_PATH_MAX       512         /* and of its path in a project */
#define LANG_TOOL_DIR       "/opt/brig" /* where tools from outside the host's /usr are shown in a cell */

/* One program invocation: argv words may hold %s (source path), %d (the folder that it is in, "." for the workspace itself),
 * %o (compiled output) and %% (a percent sign). */
struct lang_step {
	const char *program;              /* what it is called in messages; NULL: the step runs the compiled output */
	const char *tool[LANG_PATHS_MAX]; /* where its program may be, first hit wins; see lang_find_tool */
	const char *argv[LANG_ARGV_MAX];  /* without the tool itself; NULL-terminated */
	const char *env[LANG_ENV_MAX];    /* KEY=VALUE beyond the common ones; NULL-terminated */
	enum syscall_family family;
	bool deny_write_exec;
	/* Its program opens the given file through the C library and runs it, and has done most of its startup by then:
	 * it can be started before there is a program for it (backend/guest/wait.h). */
	bool waits;
	bool forks;          /* it does so with one thread and can be forked there (CPython) */
	const char *install; /* the command that installs it */
	/* What else decides the output of a compile step: paths and patterns, see lang_tool_identity */
	const char *companions[LANG_COMPANIONS_MAX];
};

struct language {
	const char *name;
	const char *title;             /* for people */
	const char *aliases[6];        /* other names of exactly this row */
	const char *preferred_variant; /* its variant for code that names no interpreter, where that is installed */
	const char *variant_of;        /* name of a row that an extension or a shebang may turn into this one */
	const char *extensions[8];     /* with the dot */
	const char *interpreters[6];   /* what a shebang may name; "python3" also stands for "python3.11" */
	const char *source_name;       /* file name in the workspace when the request has none */
	bool any_extension;            /* the runtime does not look at the file's extension */
	const char *ignored_leading;   /* characters at a name's start that make the toolchain skip the file */
	const char *reserved_ending;   /* end of a stem that means something else to the toolchain */
	bool compiles;
	struct lang_step compile;
	/* The words of a compile step that is shown the project which the source lies in; [0] NULL: those of compile. */
	const char *project_argv[LANG_ARGV_MAX];
	const char *project_file; /* only a project with this file at its top is shown to it; NULL: each */
	bool output_beside;       /* in such a step the output is next to the source, not at the top */
	const char *output_name;  /* what the compile step leaves in the workspace */
	struct lang_step run;     /* tool[0] == NULL: run the compiled output itself */
};

extern const struct language languages[];
extern const size_t language_count;
/* Of requests that are no code in a language: any program, found by env(1), and a line for sh -c.  They are no rows of the
 * table: nothing is detected as one of them. */
extern const struct language lang_command, lang_shell_line;
/* The program of a session's cell, which comes with the backend. */
extern const struct language lang_session;

/* By name or alias, in any case; NULL if unknown. */
const struct language *lang_by_name(const char *name);
/* The language whose tools a program belongs to ("python3", "pytest", "npm"), by its base name; NULL: none. */
const struct language *lang_by_program(const char *program);
/* A language as results call it, by name or alias: those of the table, and "command"; NULL if unknown. */
const char *lang_label(const char *name);
/*
 * By explicit name, then extension of file_name, then shebang of the code.  name and file_name may be
 * NULL or "".  Fails with -BRIG_E_USAGE and a message that lists what is known.
 */
int lang_detect(const char *name, const char *file_name, const char *code, size_t len, const struct language **ret,
		struct brig_error *err);
/*
 * Whether that left the choice between the row and its variants open: neither the name, which may be NULL or "", nor a
 * shebang made it.
 */
bool lang_is_open(const struct language *lang, const char *name, const char *code, size_t len);
/*
 * A safe name for the source file in the workspace: one path component of valid UTF-8 without control
 * characters, at most LANG_NAME_MAX bytes, with an extension that the toolchain accepts; as near to
 * file_name (may be NULL, may be a path) as that allows.  size > LANG_NAME_MAX.  Returns dst.
 */
const char *lang_source_name(const struct language *lang, const char *file_name, char *dst, size_t size);
/*
 * The tool's path on this host.  Absolute candidates below /usr are used in the cell as they are; other hits (an npm
 * package next to brig) are mounted in the cell below LANG_TOOL_DIR: *ret_bind says whether. Relative candidates are
 * looked for in $BRIG_LIBEXEC and in the places next to the executable. The caller's $PATH is never used.  Fails with
 * -BRIG_E_REFUSED and says what to install.
 */
int lang_find_tool(const struct language *lang, const struct lang_step *step, char *path, size_t size, bool *ret_bind,
		   struct brig_error *err);

/*
 * Whether a variable that a request sets decides what code is loaded or started (env.def), so that it is refused below
 * trust `trusted`: then *ret_why, if not NULL, is the reason, as the rest of a sentence about it.  in_session: of what a
 * session, or something in one, is to have.
 */
bool lang_env_is_refused(const char *entry, enum trust trust, bool in_session, char *ret_why, size_t size);

/* By what files are known: inode and times, which is quick and means nothing elsewhere, or their bytes. */
enum lang_identity { IDENTITY_HERE, IDENTITY_ANYWHERE };

/*
 * Appends a text that changes whenever the toolchain of a compile step may have changed: the tool, its companions
 * (glob patterns; "%r" is the folder above that of the real tool) and the host's packages.  False: it cannot be known.
 */
bool lang_tool_identity(const struct lang_step *step, const char *tool, enum lang_identity of, struct buf *out);

/* The same for one program alone, such as an interpreter whose packages are kept. */
bool lang_program_identity(const char *program, enum lang_identity of, struct buf *out);

/* A step ready to execute.  argv points into text: do not copy the struct. */
struct lang_command {
	const char *argv[LANG_ARGV_MAX + 2]; /* NULL-terminated; argv[0] is an absolute path in the cell */
	size_t argc;
	char tool[PATH_MAX];             /* host path of the tool; "": the compiled output runs */
	char tool_target[NAME_MAX + 32]; /* path in the cell where tool must be shown; "": it is there already */
	char text[8192];
};
int lang_command_make(const struct language *lang, const struct lang_step *step, const char *source,
		      struct lang_command *ret, struct brig_error *err);
/* The same for a cell that brings its own tools: the host is not searched, the row's first absolute path is used. */
int lang_command_make_in_image(const struct language *lang, const struct lang_step *step, const char *source,
			       struct lang_command *ret, struct brig_error *err);

#endif
