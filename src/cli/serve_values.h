/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the two commands that run a service: `brig serve` and `brig worker`. */
#ifndef CLI_SERVE_VALUES_H
#define CLI_SERVE_VALUES_H

#include "cli/options.h"
#include "server/serve.h"

struct serve_common {
	const char *jobs, *warm, *drain, *preset;
	struct wishes settings;
	bool end_with_stdin;
};

/* Option rows for a struct that has the values as its member `common`. */
#define ROW_JOBS                                                                        \
	{                                                                               \
		"jobs", 0, OPTION_TEXT, "COUNT", AT(common.jobs), NULL,                 \
			"cells at once; without it two for each cpu, and at least four" \
	}
#define ROW_WARM                                                                                              \
	{                                                                                                     \
		"warm", 0, OPTION_TEXT, "COUNT", AT(common.warm), NULL,                                       \
			"cells of each kind that are kept ready; without it one for each of --jobs, up to 16" \
	}
#define ROW_DRAIN                                                                   \
	{                                                                           \
		"drain", 0, OPTION_TEXT, "TIME", AT(common.drain), NULL,            \
			"that executions have to end after SIGTERM; without it 30s" \
	}
#define ROW_END_WITH_STDIN                                                                                         \
	{                                                                                                          \
		"end-with-stdin", 0, OPTION_FLAG, NULL, AT(common.end_with_stdin), NULL,                           \
			"end when standard input does: for a program that starts it for itself, and may be killed" \
	}
#define ROW_PRESET                                                                              \
	{                                                                                       \
		"preset", 0, OPTION_TEXT, "NAME", AT(common.preset), NULL, "standard or strict" \
	}
#define ROW_SET                                                                    \
	{                                                                          \
		"set", 's', OPTION_WISH, "KEY=VALUE", AT(common.settings), NULL,   \
			"a setting that every execution asks for; may be repeated" \
	}

/* Parses a count of at least 1, or a time of at most a day; text NULL leaves *ret unchanged. */
int serve_read_count(const char *option, const char *text, uint64_t max, uint32_t *ret, struct brig_error *err);
int serve_read_time(const char *option, const char *text, uint64_t *ret, struct brig_error *err);
int serve_read_common(const struct serve_common *v, struct serve_options *o, struct brig_error *err);

/* Serves until it is stopped.  Returns the exit status. */
int serve_until_stopped(const struct command *self, const struct serve_options *o);

#endif
