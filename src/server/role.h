/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process of the service is started: the program executes itself, so that nothing of the master's memory is in it and its
 * addresses are drawn anew.  What it is given is one struct and the descriptors in it.
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
	struct listener listener[LISTENERS_MAX]; /* with their descriptors for the front alone */
	size_t n_listeners;
	char url[160]; /* where the console is; "": on unix sockets only, or it was told already */
	uint32_t channel_number;
	int control;                    /* socket to the master */
	int channel;                    /* between front and runner, or the link's to the runner; FD_NONE: none */
	int link;                       /* the runner's to the link; FD_NONE: none */
	int recorder;                   /* the runner's end of that socket, or the recorder's; FD_NONE: none */
	struct certificate certificate; /* for the front */
};

/* A child of the master that becomes that process: its id, or -errno.  program: this one, opened. */
pid_t role_spawn(const struct role_args *b, int program);

/* Whether this process was started by role_spawn(): then role_main() is its main function, and returns its exit status. */
bool role_is_spawned(int argc, char **argv);
int role_main(void);

#endif
