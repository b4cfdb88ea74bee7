/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process of the service is started: the program executes itself, so that nothing of the master's memory is in it and its
 * addresses are drawn anew.  What it is given is one struct and the descriptors in it.
 */
#ifndef SERVER_BIRTH_H
#define SERVER_BIRTH_H

#include "server/serve.h"

enum serve_role { ROLE_RECORDER, ROLE_RUNNER, ROLE_FRONT, ROLE_LINK, ROLES };
extern const char *const role_name[ROLES];

struct birth {
	enum serve_role role;
	pid_t master_pid;
	struct serve_options options;
	struct listener listener[LISTENERS_MAX]; /* with their descriptors for the front alone */
	size_t n_listeners;
	char url[160]; /* where the console is; "": on unix sockets only */
	uint32_t channel_number;
	int words;                      /* to the master */
	int channel;                    /* between front and runner, or the link's to the runner; FD_NONE: none */
	int link;                       /* the runner's to the link; FD_NONE: none */
	int recorder;                   /* the runner's end of that socket, or the recorder's; FD_NONE: none */
	struct certificate certificate; /* for the front */
};

/* A child of the master that becomes that process: its id, or -errno.  program: this one, opened. */
pid_t birth_begin(const struct birth *b, int program);

/* Whether this process was started by birth_begin(): then be_born() is its main function, and returns its exit status. */
bool is_being_born(int argc, char **argv);
int be_born(void);

#endif
