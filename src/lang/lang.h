/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages as data (languages.def): how to recognise, compile and run each, and what to install for it.
 *
 * A request goes through three steps: lang_detect() picks the row, lang_source_name() names the file in the workspace,
 * and lang_command_make() turns a step of the row into the words to execute and the one host file, if any, that must be
 * mounted in the cell for it.
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
#define LANG_PATH_MAX       512         /* bytes of its path in a project */
#define LANG_TOOL_DIR       "/opt/brig" /* mount point in a cell for tools from outside the host's /usr */

/*
 * One program invocation.  argv words may contain %s (source path), %d (its folder, "." for the workspace itself), %o
 * (compiled output) and %% (a percent sign).
 */
struct lang_step {
	const char *program;              /* its name in messages; NULL: the step runs the compiled output */
	const char *tool[LANG_PATHS_MAX]; /* candidate paths, the first that exists is used; see lang_find_tool */
	const char *argv[LANG_ARGV_MAX];  /* without the tool itself; NULL-terminated */
	const char *env[LANG_ENV_MAX];    /* KEY=VALUE in addition to the common ones; NULL-terminated */
	enum syscall_family family;
	bool deny_write_exec;
	/*
	 * The program opens the given file through the C library and runs it, after most of its startup is done.  So it
	 * can be started before there is a file for it (backend/guest/wait.h).
	 */
	bool waits;
	bool forks;          /* it has only one thread at that point and can be forked there (CPython) */
	const char *install; /* the command that installs it */
	/* Other files that decide the output of a compile step: paths and patterns, see lang_tool_identity */
	const char *companions[LANG_COMPANIONS_MAX];
};

struct language {
	const char *name;
	const char *title;             /* display name */
	const char *aliases[6];        /* other names of exactly this row */
	const char *preferred_variant; /* variant for code that names no interpreter, if it is installed */
	const char *variant_of;        /* name of the row whose extension or shebang may select this one */
	const char *extensions[8];     /* with the dot */
	const char *interpreters[6];   /* interpreters in a shebang; "python3" also stands for "python3.11" */
	const char *source_name;       /* file name in the workspace if the request has none */
	bool any_extension;            /* the runtime ignores the file's extension */
	const char *ignored_leading;   /* characters at the start of a name for which the toolchain ignores the file */
	const char *reserved_ending;   /* end of a stem that has a special meaning to the toolchain */
	bool compiles;
	struct lang_step compile;
	/* The words of a compile step that can read the source's project; [0] NULL: those of compile. */
	const char *project_argv[LANG_ARGV_MAX];
	const char *project_file; /* only a project with this file at its top is made readable; NULL: every project */
	bool output_beside;       /* the output of such a step is next to the source, not at the top */
	const char *output_name;  /* output of the compile step in the workspace */
	struct lang_step run;     /* tool[0] == NULL: run the compiled output itself */
};

extern const struct language languages[];
extern const size_t language_count;
/*
 * For requests that are not code in a language: any program, found by env(1), and a line for sh -c.  They are not rows
 * of the table, so they are never detected.
 */
extern const struct language lang_command, lang_shell_line;
/* The program of a session's cell, supplied by the backend. */
extern const struct language lang_session;

/* By name or alias, ignoring case; NULL if unknown. */
const struct language *lang_by_name(const char *name);
/* The language whose tools a program belongs to ("python3", "pytest", "npm"), by its base name; NULL: none. */
const struct language *lang_by_program(const char *program);
/* The name of a language in results, by name or alias, from the table or "command"; NULL if unknown. */
const char *lang_label(const char *name);
/*
 * By explicit name, then extension of file_name, then shebang of the code.  name and file_name may be NULL or "".
 * Fails with -BRIG_E_USAGE and a message that lists the known languages.
 */
int lang_detect(const char *name, const char *file_name, const char *code, size_t len, const struct language **ret,
		struct brig_error *err);
/*
 * True if lang_detect() did not choose between the row and its variants: neither the name, which may be NULL or "", nor
 * a shebang decided.
 */
bool lang_is_open(const struct language *lang, const char *name, const char *code, size_t len);
/*
 * A safe name for the source file in the workspace: one path component of valid UTF-8 without control characters, at
 * most LANG_NAME_MAX bytes, with an extension that the toolchain accepts, and otherwise as similar as possible to
 * file_name (may be NULL, may be a path).  size > LANG_NAME_MAX.  Returns dst.
 */
const char *lang_source_name(const struct language *lang, const char *file_name, char *dst, size_t size);
/*
 * The tool's path on this host.  Absolute candidates below /usr are used in the cell as they are; others (an npm
 * package next to brig) are mounted in the cell below LANG_TOOL_DIR, and *ret_bind is true.  Relative candidates are
 * searched in $BRIG_LIBEXEC and next to the executable.  The caller's $PATH is never used.  Fails with -BRIG_E_REFUSED
 * and a message that says what to install.
 */
int lang_find_tool(const struct language *lang, const struct lang_step *step, char *path, size_t size, bool *ret_bind,
		   struct brig_error *err);

/*
 * True if a variable set by a request decides which code is loaded or started (env.def); it is then refused below trust
 * `trusted`, and *ret_why, if not NULL, is the reason, worded as the end of a sentence.  in_session: the variable is
 * for a session or a process in one.
 */
bool lang_env_is_refused(const char *entry, enum trust trust, bool in_session, char *ret_why, size_t size);

/* How files are identified: by inode and times, which is quick but valid on this machine only, or by their bytes. */
enum lang_identity { IDENTITY_HERE, IDENTITY_ANYWHERE };

/*
 * Appends a text that changes whenever the toolchain of a compile step may have changed: the tool, its companions (glob
 * patterns; "%r" is the folder above the real tool's folder) and the host's packages.  False: the identity is unknown.
 */
bool lang_tool_identity(const struct lang_step *step, const char *tool, enum lang_identity of, struct buf *out);

/* The identity of one program alone, such as an interpreter whose packages are cached. */
bool lang_program_identity(const char *program, enum lang_identity of, struct buf *out);

/* A step ready to execute.  argv points into text: do not copy the struct. */
struct lang_command {
	const char *argv[LANG_ARGV_MAX + 2]; /* NULL-terminated; argv[0] is an absolute path in the cell */
	size_t argc;
	char tool[PATH_MAX];             /* host path of the tool; "": the compiled output runs */
	char tool_target[NAME_MAX + 32]; /* mount point of the tool in the cell; "": none is needed */
	char text[8192];
};
int lang_command_make(const struct language *lang, const struct lang_step *step, const char *source,
		      struct lang_command *ret, struct brig_error *err);
/* lang_command_make() for a cell with its own tools: uses the row's first absolute path without looking at the host. */
int lang_command_make_in_image(const struct language *lang, const struct lang_step *step, const char *source,
			       struct lang_command *ret, struct brig_error *err);

#endif
