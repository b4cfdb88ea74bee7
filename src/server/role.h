/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process of the service is started: the program executes itself, so that the process gets a new address-space
 * layout and none of the master's memory.  It receives one struct and the descriptors in it.
 */
#ifndef SERVER_ROLE_H
#define SERVER_ROLE_H

#include "server/serve.h"

enum serve_role { ROLE_RECORDER, ROLE_RUNNER, ROLE_FRONT, ROLE_LINK, ROLES };
extern const char *const role_name[ROLES];

struct role_args {
	enum serve_role role;
	pid_t master_pid;
	struct serve_options options;
	struct listener listener[LISTENERS_MAX]; /* descriptors only for the front */
	size_t n_listeners;
	char url[160]; /* address of the console; "": on unix sockets only, or announced already */
	uint32_t channel_number;
	int control;                    /* socket to the master */
	int channel;                    /* between front and runner, or of the link to the runner; FD_NONE: none */
	int link;                       /* of the runner to the link; FD_NONE: none */
	int recorder;                   /* the runner's or the recorder's end of their socket; FD_NONE: none */
	struct certificate certificate; /* for the front */
};

/* Starts that process as a child of the master: its pid, or -errno.  program: an open descriptor of this program. */
pid_t role_spawn(const struct role_args *b, int program);

/* Whether this process was started by role_spawn(): then role_main() is its main function, and returns its exit status. */
bool role_is_spawned(int argc, char **argv);
int role_main(void);

#endif
