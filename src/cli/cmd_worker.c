/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_worker.c - `brig worker`: runs jobs from a queue, as `brig serve` runs requests of clients. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/queue.h"
#include "cli/rows.h"
#include "cli/serve_values.h"
#include "cli/ui.h"
#include "server/runner/peers.h"
#include "server/serve.h"

struct worker_values {
	const char *queue, *policy, *state, *otlp;
	struct serve_common common;
	struct queue_values with;
	bool show_key;
};

#define AT(member) offsetof(struct worker_values, member)
static const struct option_row worker_rows[] = {
	{ "queue", 0, OPTION_TEXT, "URL", AT(queue), NULL, "brokers of NATS: nats://HOST:PORT,HOST:PORT..." },
	ROW_NODES,
	ROW_NODE_NAME,
	{ "show-key", 0, OPTION_FLAG, NULL, AT(show_key), NULL,
	  "print the public key of this node, for the lists of others, and end" },
	ROW_JOBS,
	ROW_WARM,
	ROW_DRAIN,
	ROW_END_WITH_STDIN,
	{ "otlp", 0, OPTION_TEXT, "URL", AT(otlp), NULL,
	  "OpenTelemetry collector that executions are reported to as traces" },
	ROW_QUEUE_CA,
	ROW_QUEUE_CERT,
	ROW_QUEUE_KEY,
	ROW_QUEUE_CREDENTIALS,
	ROW_QUEUE_PATIENCE,
	ROW_POLICY,
	ROW_PRESET,
	ROW_SET,
	ROW_STATE,
};

static int read_values(const struct worker_values *v, struct serve_options *o, struct brig_error *err)
{
	if (!v->queue)
		return err_set(err, BRIG_E_USAGE, 0, "--queue URL is missing: brokers of NATS, nats://HOST:PORT");
	if (queue_read(v->queue, &v->with, o, err) < 0 || serve_read_common(&v->common, o, err) < 0)
		return -err->code;
	o->is_worker = o->no_auth = true; /* the front has authenticated clients, and its seal is verified */
	o->policy = v->policy;
	o->state = v->state;
	o->otlp = v->otlp;
	return 0;
}

static int show_key(const struct worker_values *v)
{
	struct brig_error err = BRIG_ERROR_INIT;
	uint8_t seed[SIGN_SEED_LEN];
	char key[SEAL_KEY_HEX + 1];

	if (node_key_open(v->state, seed, key, &err) < 0)
		return ui_fail(&err);
	crypto_wipe(seed, sizeof(seed));
	return printf("%s\n", key) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int work_with(const struct command *self, const struct worker_values *v)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct serve_options o = { 0 };

	if (v->show_key)
		return show_key(v);
	if (read_values(v, &o, &err) < 0)
		return ui_usage(self->name, &err);
	return serve_until_stopped(self, &o);
}

static int worker_main(const struct command *self, int argc, char **argv)
{
	struct worker_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = work_with(self, &v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_worker = {
	.name = "worker",
	.synopsis = "--queue URL --nodes FILE [OPTIONS]",
	.summary = "run jobs of a queue that other machines share",
	.examples = "  brig worker --show-key                      # for the lists of other nodes\n"
		    "  brig worker --queue nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222 --nodes nodes.list\n",
	.details =
		"Takes jobs that 'brig serve --queue' and 'brig batch --queue' publish, as many as there is room\n"
		"for, and puts their results where any of them finds them (docs/QUEUE.md).  Prints 'ready worker\n"
		"NAME' when it can run programs, whether a broker is there or not.\n\n"
		"SIGTERM and SIGINT: nothing new is taken, what runs ends; a second one gives it back to the queue.\n"
		"SIGHUP: policy and list of nodes are read anew.\n\n"
		"Exit status: 0 when it was asked to stop, 2 wrong use, 125 if the policy is wrong, 121 if it\n"
		"could not work.\n",
	.options = worker_rows,
	.n_options = ARRAY_LEN(worker_rows),
	.run = worker_main,
};
