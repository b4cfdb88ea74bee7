/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brig as a service (docs/SERVE.md).
 *
 *	serve       the master: listeners, the three processes below, signals, restarting what died; control: messages between them
 *	front/      HTTP: connections, routes, bodies, streams of events, the console; no privilege, no secret, no file
 *	runner/     the library's handle, tokens, the queue, executions; reads flat messages only
 *	link/       speaks to brokers, where executions come from a queue or go there; no privilege, no secret of ours, no file
 *	recorder/   writes audit log and history for the runner, which cannot; no privilege, no network, one folder
 *	channel     the way between front and runner; message and fields.def: what travels on it; routes.def: what is answered
 *	tokens      who may ask for what; admission: who is next
 *
 * So text of strangers is read by a process that could do nothing with it, and the one that could reads no text (INV-1).
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

/* What is a pointer here is known to role.c, too, which hands all of it to the processes. */
struct serve_options {
	const char *listen[LISTENERS_MAX]; /* "127.0.0.1:0", "[::1]:8377"; none: the default */
	size_t n_listen;
	const char *unix_path;   /* of HTTP; NULL: none; for the two processes: also one that systemd made */
	const char *socket_path; /* of the command line (front/relay.c); NULL: none */
	bool socket_is_usual;    /* nobody named it: if it cannot be had there is none */
	const char *policy, *preset, *state; /* as of every command; NULL: theirs */
	const struct brig_option *settings;  /* that every execution wishes */
	size_t n_settings;
	const char *host_names[HOST_NAMES_MAX]; /* names that clients may call this host by, besides its addresses */
	size_t n_host_names;
	const char *port_domain;        /* servers of sessions have names below it: PORT-SESSION.DOMAIN */
	const char *tls_cert, *tls_key; /* files; NULL: no TLS */
	const char *otlp;               /* where traces are exported to (server/exporter.h); NULL: nowhere */
	uint32_t jobs, queue, warm;     /* cells at once, executions that may wait, cells kept ready; 0: defaults */
	uint64_t head_ms, body_ms, idle_ms, drain_ms; /* deadlines; 0: defaults */
	uint64_t body_max;                            /* bytes; 0: the default */
	uint32_t connections;                         /* at once; 0: the default */
	bool no_auth, json_log, ends_with_input;
	struct door_set doors;
	/* Of a queue (docs/QUEUE.md): executions are given to it, or taken from it.  NULL: none. */
	const char *queue_url;                         /* "nats://a:4222,b:4222" */
	const char *queue_ca, *queue_cert, *queue_key; /* files, for TLS */
	const char *queue_credentials;                 /* file */
	const char *nodes_file;                        /* who is known there (runner/peers.h) */
	const char *node_name;                         /* how this one is called */
	uint64_t queue_patience_ms; /* how long a node may say nothing of a job that it has; 0: the default */
	bool is_worker;             /* jobs are taken: there is no front, and no listener */
	const char *
		librechat_key; /* hex digits of the public key that LibreChat's requests are signed with; NULL: they need not be */
	const char *refused_keys[REFUSED_KEYS_MAX]; /* that nobody is let in with, not even under no_auth */
	size_t n_refused_keys;
};

/*
 * Serves until SIGTERM or SIGINT, which this function handles while it lasts, as it does SIGHUP: 0 when it was told to stop.
 * Writes "ready http://..." to standard output.
 */
int serve(const struct serve_options *options, struct brig_error *err);

/* ---- the processes -------------------------------------------------------------------------------- */

struct listener {
	int fd;
	bool is_unix, is_loopback;
	bool is_given;     /* by systemd, which listens on when we do not */
	bool is_records;   /* a unix socket for the command line, which speaks records instead of HTTP */
	char address[128]; /* "127.0.0.1:8377"; of a unix socket its path */
};

/* What a process is given by the master (role.h); descriptors are its own. */
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
	int channel, master; /* channel: FD_NONE of a worker */
	uint32_t channel_number;
	int link;        /* FD_NONE: there is no queue */
	int recorder;    /* socket to the recorder (brig_open_opts) */
	const char *url; /* where the console is: "http://127.0.0.1:8377"; NULL: on a unix socket only */
	const struct listener *listener; /* whose descriptors are closed */
	size_t n_listeners;
};

struct link_args {
	const struct serve_options *options;
	int channel, master;
};

struct recorder_args {
	const struct serve_options *options;
	int socket; /* that it is asked on; the master has both ends of it, too, so that nothing is lost with a recorder */
	int master;
};

/* Their mains, which take the descriptors: return the exit status, 0 or the enum brig_code of what went wrong. */
int front_main(const struct front_args *args);
int runner_main(const struct runner_args *args);
/* How many cells of each kind it wants to be kept ready, at most. */
uint32_t runner_warm_cells(const struct serve_options *options);
int link_main(const struct link_args *args);
int recorder_main(const struct recorder_args *args);

#endif
