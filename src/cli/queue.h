/* SPDX-License-Identifier: Apache-2.0 */
/* Options of commands that join a queue: `brig worker`, `brig serve` and `brig batch` (docs/QUEUE.md). */
#ifndef CLI_QUEUE_H
#define CLI_QUEUE_H

#include "cli/options.h"
#include "server/serve.h"

struct queue_values {
	const char *nodes, *node_name, *ca, *cert, *key, *credentials, *patience;
};

/* Option rows for a struct that has the values as its member `with`. */
#define ROW_NODES                                                                                                 \
	{                                                                                                         \
		"nodes", 0, OPTION_TEXT, "FILE", AT(with.nodes), NULL,                                            \
			"who is known on the queue: lines of 'front', 'worker' or 'both', a name, a public key, " \
			"perhaps 'gives'"                                                                         \
	}
#define ROW_NODE_NAME                                                          \
	{                                                                      \
		"node-name", 0, OPTION_TEXT, "NAME", AT(with.node_name), NULL, \
			"how this node is called; without it its host's name"  \
	}
#define ROW_QUEUE_CA                                                                                     \
	{                                                                                                \
		"queue-ca", 0, OPTION_TEXT, "FILE", AT(with.ca), NULL,                                   \
			"certificates that brokers are known by (PEM); they are spoken to with TLS then" \
	}
#define ROW_QUEUE_CERT                                                     \
	{                                                                  \
		"queue-cert", 0, OPTION_TEXT, "FILE", AT(with.cert), NULL, \
			"certificate that is shown to brokers (PEM)"       \
	}
#define ROW_QUEUE_KEY                                                                            \
	{                                                                                        \
		"queue-key", 0, OPTION_TEXT, "FILE", AT(with.key), NULL, "its private key (PEM)" \
	}
#define ROW_QUEUE_CREDENTIALS                                                            \
	{                                                                                \
		"queue-credentials", 0, OPTION_TEXT, "FILE", AT(with.credentials), NULL, \
			"credentials for brokers (NATS .creds)"                          \
	}
#define ROW_QUEUE_PATIENCE                                                                                   \
	{                                                                                                    \
		"queue-patience", 0, OPTION_TEXT, "TIME", AT(with.patience), NULL,                           \
			"that a node may say nothing of a job before it is given to another; without it 30s" \
	}

/* "nats://..." or "tls://..."; false for NULL. */
bool queue_is_url(const char *text);
int queue_read(const char *url, const struct queue_values *v, struct serve_options *o, struct brig_error *err);

#endif
