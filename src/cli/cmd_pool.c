/* SPDX-License-Identifier: Apache-2.0 */
/* `brig pool`: keeps containers warm for `brig run --backend docker` of the same user, until it is stopped. */
#include "base/str.h"
#include "cli/cancel.h"
#include "cli/commands.h"
#include "cli/rows.h"
#include "cli/ui.h"

#define SIZE_DEFAULT 2

struct pool_values {
	const char *policy, *preset, *trust, *size;
	struct words languages;
	struct wishes wishes;
};

#define AT(member) offsetof(struct pool_values, member)
static const struct option_row pool_options[] = {
	{ "size", 'n', OPTION_TEXT, "COUNT", AT(size), NULL, "containers of each kind that wait; without it 2" },
	{ "lang", 'l', OPTION_LIST, "LANGUAGE", AT(languages), NULL,
	  "for programs in this language; may be repeated; without it python" },
	{ "trust", 't', OPTION_TEXT, "LEVEL", AT(trust), NULL, "for runs of this trust level" },
	ROW_POLICY,
	{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },
	{ "set", 's', OPTION_WISH, "KEY=VALUE", AT(wishes), NULL, "a setting that the runs will ask for, too" },
};

static void on_notice(void *user UNUSED, const char *text)
{
	ui_say("pool: %s", text);
}

static int serve(const struct pool_values *v, const struct brig_pool *what)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = v->policy, .preset = v->preset };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	int rc;

	if (brig_open(&opts, &b, &err) < 0)
		return command_open_failed(v->policy, &err);
	rc = brig_pool(b, what, &err);
	brig_close(b);
	return rc < 0 ? ui_fail(&err) : EXIT_SUCCESS;
}

static int pool_values(const struct command *self, const struct pool_values *v)
{
	static const char *const python[] = { "python" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_pool what = BRIG_POOL_INIT;
	uint64_t size = SIZE_DEFAULT;

	if (v->size && (!str_to_u64(v->size, &size) || size < 1 || size > BRIG_POOL_MAX)) {
		(void)err_set(&err, BRIG_E_USAGE, 0, "--size takes a number from 1 to %d", BRIG_POOL_MAX);
		return ui_usage(self->name, &err);
	}
	what.containers = (uint32_t)size;
	what.languages = v->languages.n ? v->languages.item : python;
	what.n_languages = v->languages.n ? v->languages.n : 1;
	what.trust = v->trust;
	what.options = v->wishes.item;
	what.n_options = v->wishes.n;
	what.on_notice = on_notice;
	what.stop_fd = cancel_open();
	if (what.stop_fd < 0) {
		ui_say("cannot prepare for signals");
		return EXIT_FAILED;
	}
	return serve(v, &what);
}

static int pool_main(const struct command *self, int argc, char **argv)
{
	struct pool_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = pool_values(self, &v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_pool = {
	.name = "pool",
	.synopsis = "[OPTIONS]",
	.summary = "keep containers warm for the docker backend, in the foreground",
	.examples = "  brig pool python\n",
	.details = "A run with --backend docker of the same user, under the same policy, takes a container that is\n"
		   "already started; each is used once. Runs that ask for something else make their own, as\n"
		   "without a pool.\n"
		   "Ctrl-C or SIGTERM ends it and removes what waits; after a kill, 'brig reap' does.\n\n"
		   "Exit status: 0 when it was ended, 125 if it cannot be had here, 121 if it failed.\n",
	.options = pool_options,
	.n_options = ARRAY_LEN(pool_options),
	.run = pool_main,
};
