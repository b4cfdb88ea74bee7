/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brig as a service (docs/SERVE.md).
 *
 *	serve       the master: listeners, the two processes below, signals, starting anew what died
 *	front/      HTTP: connections, routes, bodies, streams of events, the console; no privilege, no secret, no file
 *	runner/     the library's handle, tokens, the queue, executions; reads flat messages only
 *	channel     the way between both; message and fields.def: what travels on it; routes.def: what is answered
 *	tokens      who may ask for what; admission: who is next
 *
 * So text of strangers is read by a process that could do nothing with it, and the one that could reads no text (INV-1).
 */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include "base/err.h"

#define SERVE_PORT     8377
#define LISTENERS_MAX  8
#define HOST_NAMES_MAX 16

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
	const char *tls_cert, *tls_key; /* files; NULL: no TLS */
	uint32_t jobs, queue, warm;     /* cells at once, executions that may wait, cells kept ready; 0: defaults */
	uint64_t head_ms, body_ms, idle_ms, drain_ms; /* deadlines; 0: defaults */
	uint64_t body_max;                            /* bytes; 0: the default */
	uint32_t connections;                         /* at once; 0: the default */
	bool no_auth, json_log;
};

/*
 * Serves until SIGTERM or SIGINT, which this function handles while it lasts, as it does SIGHUP: 0 when it was told to stop.
 * Nobody may have started a thread before.  Writes "ready http://..." to standard output.
 */
int serve(const struct serve_options *options, struct brig_error *err);

/* ---- the two processes -------------------------------------------------------------------------------- */

/*
 * Words between the master and its two processes: records of one byte over a SOCK_SEQPACKET socket, whose end means that the
 * other has gone.  Who gets none that it knows leaves it.
 */
enum serve_word {
	WORD_READY =
		'r', /* to the master: everything is in place; before that the process says on stderr why not, and ends */
	WORD_DRAIN = 'd',  /* to both: nothing new; end with status 0 when nothing is left to do */
	WORD_NOW = 'q',    /* to both: cancel what runs, and end */
	WORD_RELOAD = 'h', /* to the runner: tokens and policy are read anew */
};

struct listener {
	int fd;
	bool is_unix, is_loopback;
	bool is_records;   /* a unix socket for the command line, which speaks records instead of HTTP */
	char address[128]; /* "127.0.0.1:8377"; of a unix socket its path */
};

/* What a process is given by the master; descriptors are its own. */
struct front_birth {
	const struct serve_options *options;
	struct listener listener[LISTENERS_MAX];
	size_t n_listeners;
	int channel; /* to the runner */
	int master;  /* enum serve_word */
};
struct runner_birth {
	const struct serve_options *options;
	int channel, master;
	const char *url; /* where the console is: "http://127.0.0.1:8377"; NULL: on a unix socket only */
	const struct listener *listener; /* whose descriptors are closed */
	size_t n_listeners;
};

/* The mains of both, which take the descriptors: return the exit status, 0 or the enum brig_code of what went wrong. */
int front_main(const struct front_birth *birth);
int runner_main(const struct runner_birth *birth);

#endif
