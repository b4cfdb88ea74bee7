/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brig as a service (docs/SERVE.md).
 *
 *	serve       the master: listeners, the processes below, signals, restarting what died; control: messages between them
 *	front/      HTTP: connections, routes, bodies, event streams, the console; no privilege, no secret, no file
 *	runner/     the library's handle, tokens, the queue, executions; reads flat messages only
 *	link/       talks to brokers if there is a queue; no privilege, no secret of ours, no file
 *	recorder/   writes audit log and history for the runner, which cannot; no privilege, no network, one directory
 *	channel     records between front and runner; message and fields.def: their contents; routes.def: the API
 *	tokens      permissions of clients; admission: which execution is next
 *
 * So client input is parsed by a process without privileges, and the privileged one parses none (INV-1).
 */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "base/err.h"
#include "server/certificate.h"
#include "server/doors.h"

#define SERVE_PORT       8377
#define LISTENERS_MAX    8
#define HOST_NAMES_MAX   16
#define REFUSED_KEYS_MAX 32

/* Every pointer here must be listed in role.c, which serialises the options for the processes. */
struct serve_options {
	const char *listen[LISTENERS_MAX]; /* "127.0.0.1:0", "[::1]:8377"; none: the default address */
	size_t n_listen;
	/* HTTP over a unix socket; NULL: none.  In the child processes also one that systemd passed. */
	const char *unix_path;
	const char *socket_path;             /* for the command line (front/relay.c); NULL: none */
	bool socket_is_usual;                /* socket_path is the default: failing to create it is not an error */
	const char *policy, *preset, *state; /* as for every command; NULL: the defaults */
	const struct brig_option *settings;  /* settings applied to every execution */
	size_t n_settings;
	/* names, besides its addresses, that clients may use for this host */
	const char *host_names[HOST_NAMES_MAX];
	size_t n_host_names;
	const char *port_domain;        /* servers in sessions have names below it: PORT-SESSION.DOMAIN */
	const char *tls_cert, *tls_key; /* files; NULL: no TLS */
	const char *otlp;               /* trace collector (server/exporter.h); NULL: no export */
	uint32_t jobs, queue, warm;     /* concurrent cells, executions that may wait, cells kept ready; 0: defaults */
	uint64_t head_ms, body_ms, idle_ms, drain_ms; /* deadlines; 0: defaults */
	uint64_t body_max;                            /* bytes; 0: the default */
	uint32_t connections;                         /* concurrent ones; 0: the default */
	bool no_auth, json_log, ends_with_input;
	struct door_set doors;
	/* The queue (docs/QUEUE.md), to which executions are given or from which they are taken. */
	const char *queue_url;                         /* "nats://a:4222,b:4222"; NULL: no queue */
	const char *queue_ca, *queue_cert, *queue_key; /* files, for TLS */
	const char *queue_credentials;                 /* file */
	const char *nodes_file;                        /* list of known nodes (runner/peers.h) */
	const char *node_name;                         /* name of this node */
	uint64_t queue_patience_ms; /* how long a node may be silent about a job it has claimed; 0: the default */
	bool is_worker;             /* takes jobs from the queue: no front, no listeners */
	/* hex digits of the public key that verifies LibreChat's requests; NULL: they need no signature */
	const char *librechat_key;
	const char *refused_keys[REFUSED_KEYS_MAX]; /* keys that are always refused, even under no_auth */
	size_t n_refused_keys;
};

/*
 * Serves until SIGTERM or SIGINT; 0: stopped by a signal.  Handles these and SIGHUP while it runs.  Writes "ready
 * http://..." to standard output.
 */
int serve(const struct serve_options *options, struct brig_error *err);

/* ---- the processes -------------------------------------------------------------------------------- */

struct listener {
	int fd;
	bool is_unix, is_loopback;
	bool is_given;     /* passed by systemd, which keeps it open when the service stops */
	bool is_records;   /* a unix socket for the command line, with records instead of HTTP */
	char address[128]; /* "127.0.0.1:8377"; the path of a unix socket */
};

/* What the master passes to a process (role.h), which owns the descriptors. */
struct front_args {
	const struct serve_options *options;
	struct listener listener[LISTENERS_MAX];
	size_t n_listeners;
	int channel; /* to the runner */
	int master;  /* server/control.h */
	struct certificate certificate;
};
struct runner_args {
	const struct serve_options *options;
	int channel, master; /* channel: FD_NONE in a worker */
	uint32_t channel_number;
	int link;        /* FD_NONE: no queue */
	int recorder;    /* socket to the recorder (brig_open_opts) */
	const char *url; /* address of the console: "http://127.0.0.1:8377"; NULL: on unix sockets only */
	const struct listener *listener; /* descriptors are FD_NONE */
	size_t n_listeners;
};

struct link_args {
	const struct serve_options *options;
	int channel, master;
};

struct recorder_args {
	const struct serve_options *options;
	/*
	 * For requests of the runner.  The master keeps both ends open, so that queued records survive a recorder's
	 * death.
	 */
	int socket;
	int master;
};

/* The main functions; they take ownership of the descriptors and return the exit status: 0 or an enum brig_code. */
int front_main(const struct front_args *args);
int runner_main(const struct runner_args *args);
/* The maximum number of cells of each kind that the runner keeps ready. */
uint32_t runner_warm_cells(const struct serve_options *options);
int link_main(const struct link_args *args);
int recorder_main(const struct recorder_args *args);

#endif
