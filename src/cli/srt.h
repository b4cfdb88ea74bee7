/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --srt-settings: a settings file of sandbox-runtime (srt) as settings of a request.  It can only make a run stricter
 * than the file says, with a notice, or refuse it; docs/SRT.md has the rules, srt.def the members.
 */
#ifndef CLI_SRT_H
#define CLI_SRT_H

#include "base/json_read.h"

#define SRT_FILE_MAX  (1 * MiB)
#define SRT_ITEMS_MAX 256 /* in one list */
#define SRT_TEXT_MAX  (64 * KiB)

/* Directories to which paths in the file are relative. */
struct srt_place {
	const char *cwd;       /* without links */
	const char *home;      /* NULL: unknown */
	const char *workspace; /* the directory that may become the workspace; without links */
};

struct srt {
	struct json_block *blocks;
	json_t *doc;
	bool has_workspace;         /* otherwise the program may not read it */
	bool may_write;             /* to the workspace */
	struct buf hide, whitelist; /* lists for the policy, separated by commas */
	struct buf notices;         /* lines that say what is stricter than in the file */
	struct json_strings denied_variables;
};
#define SRT_INIT                                                                                                       \
	{                                                                                                              \
		.hide = BUF_INIT(SRT_TEXT_MAX), .whitelist = BUF_INIT(SRT_TEXT_MAX), .notices = BUF_INIT(SRT_TEXT_MAX) \
	}

/* Parses the file for runs at that place.  Fails with the member that cannot be honoured, and what to do. */
int srt_read(struct srt *s, const char *text, size_t len, const struct srt_place *place, struct brig_error *err);
void srt_release(struct srt *s);
#define AUTO_SRT             \
	CLEANUP(srt_release) \
	struct srt

/* ---- internal -------------------------------------------------------------------------------- */

void srt_notice(struct srt *s, const char *fmt, ...) PRINTF(2, 3);

/* Converts allowedDomains to a whitelist, taking deniedDomains into account. */
int srt_domains(struct srt *s, struct json_reader *r, const struct json_strings *allowed,
		const struct json_strings *denied);

struct srt_files {
	struct json_strings deny_read, allow_read, allow_write, deny_write, credentials;
};
int srt_paths(struct srt *s, struct json_reader *r, const struct srt_files *files, const struct srt_place *place);

#endif
