/* SPDX-License-Identifier: Apache-2.0 */
/* Languages as data (languages.def): how to recognise, compile and run each, and what to install for it. */
#ifndef LANG_LANG_H
#define LANG_LANG_H

#include "base/err.h"
#include "model/plan.h"

#define LANG_PATHS_MAX 6
#define LANG_ARGV_MAX 16
#define LANG_ENV_MAX 12

/* One program invocation: argv words may hold %s (source name), %o (compiled output), %t (tool path). */
struct lang_step {
	const char *tool[LANG_PATHS_MAX]; /* where its program may be, first hit wins; see lang_find_tool */
	const char *argv[LANG_ARGV_MAX];  /* without the tool itself; NULL-terminated */
	const char *env[LANG_ENV_MAX];	  /* KEY=VALUE beyond the common ones; NULL-terminated */
	enum syscall_family family;
	bool deny_write_exec;
};

struct language {
	const char *name;
	const char *aliases[6];
	const char *extensions[8];   /* with the dot */
	const char *interpreters[6]; /* what a shebang may name */
	const char *source_name;     /* file name in the workspace when the request has none */
	bool compiles;
	struct lang_step compile;
	const char *output_name; /* what the compile step leaves in the workspace */
	struct lang_step run;	 /* tool[0] == NULL: run the compiled output itself */
	const char *package;	 /* what to install when a tool is missing, as a sentence */
};

extern const struct language languages[];
extern const size_t language_count;

/* NULL if unknown. */
const struct language *lang_by_name(const char *name);
/* By explicit name, then extension of file_name, then shebang of the code. Fails with a message that lists what is known. */
int lang_detect(const char *name, const char *file_name, const char *code, size_t len, const struct language **ret,
		struct brig_error *err);
/*
 * The tool's real path.  Absolute candidates below /usr are used in the cell as they are; other hits
 * (an npm package beside brig) are shown in the cell below /opt/brig: *ret_bind says whether.
 */
int lang_find_tool(const struct language *lang, const struct lang_step *step, char *path, size_t size, bool *ret_bind,
		   struct brig_error *err);

#endif
