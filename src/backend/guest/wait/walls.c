/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote's child confines itself as the payload of any other cell does: the same calls in the same order, except for
 * what it inherits from its zygote.  It is already in the cell's namespaces and cgroups and has every capability in the
 * cell's user namespace, until it drops them here.  If a step fails it exits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/guest/confine.h"
#include "backend/guest/wait/library.h"
#include "sys/caps.h"

#define SOCKET_FD 63 /* above the program's numbers, below those for which the descriptor table has to grow */

struct child {
	const struct guest_walls *walls;
	const int *fds;
	int sock;
	struct guest_confine confine;
};

bool walls_fault(const struct guest_walls *w, enum guest_join step, int *ret_rc)
{
	*ret_rc = -(int)w->fault_errno;
	return w->fault == 1 + (uint32_t)step;
}

_Noreturn void walls_failed(int sock, enum guest_join step, int rc)
{
	(void)wait_say(sock, GUEST_NOT_JOINED, (uint64_t)step << 32 | (uint32_t)-rc, -1);
	wait_give_up();
}

static int join_time(struct child *c)
{
	return setns(c->fds[GUEST_FD_TIME], 0) < 0 ? -errno : 0;
}

/* Connects the streams, and moves the socket out of the way. */
static int connect_streams(struct child *c)
{
	for (int i = 0; i < 3; i++)
		if (dup2(c->fds[GUEST_FD_IN + i], i) < 0)
			return -errno;
	if (dup3(c->sock, SOCKET_FD, O_CLOEXEC) < 0)
		return -errno;
	c->sock = SOCKET_FD;
	if (close_range(3, SOCKET_FD - 1, 0) < 0 || close_range(SOCKET_FD + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

/* A new session keyring.  A kernel without keyrings has none to share. */
static int new_session(struct child *c)
{
	(void)c;
	if (setsid() < 0 || (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS))
		return -errno;
	return 0;
}

/* Entering a user namespace has filled the bounding set again. */
static int lock_caps(struct child *c)
{
	(void)c;
	return caps_lock();
}

/* Changing ids makes us undumpable and our /proc files root's, until exec. */
static int take_ids(struct child *c)
{
	int rc = guest_take_ids(&c->confine);

	if (rc == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		rc = -errno;
	return rc;
}

static int clear_caps(struct child *c)
{
	return guest_clear_caps(&c->confine);
}

static int enter_workspace(struct child *c)
{
	char cwd[64];

	if (chdir(c->walls->folder) < 0)
		return -errno;
	/* "(unreachable)/..." would mean that we are outside of our root. */
	return getcwd(cwd, sizeof(cwd)) && strcmp(cwd, c->walls->folder) == 0 ? 0 : -EXDEV;
}

static int apply_landlock(struct child *c)
{
	return guest_apply_landlock(&c->confine);
}

static int install_filter(struct child *c)
{
	return guest_install_filter(&c->confine);
}

/* Turns the flat contents of the file into a struct with pointers into it. */
static void fill_confine(const struct guest_walls *w, struct guest_confine *ret)
{
	const struct guest_rule *rules = (const struct guest_rule *)(const void *)(w + 1);
	const struct sock_filter *insns = (const struct sock_filter *)(const void *)(rules + w->n_rules);

	*ret = (struct guest_confine){ .own_ids = true,
				       .uid = w->uid,
				       .gid = w->gid,
				       .landlock_abi = (int)w->landlock_abi,
				       .filter = { insns, (unsigned short)w->n_filter },
				       .telling_filter = { insns + w->n_filter, (unsigned short)w->n_telling },
				       .listener = FD_NONE };
	for (size_t i = 0; i < w->n_rules; i++)
		guest_add_rule(ret, rules[i].path, rules[i].grant);
}

static const struct {
	enum guest_join step;
	int (*run)(struct child *c); /* 0 or -errno */
} steps[] = {
	{ JOIN_child_time, join_time },
	{ JOIN_child_streams, connect_streams },
	{ JOIN_child_session, new_session },
	{ JOIN_child_lock_caps, lock_caps },
	{ JOIN_child_ids, take_ids },
	{ JOIN_child_caps, clear_caps },
	{ JOIN_child_workspace, enter_workspace },
	{ JOIN_child_landlock, apply_landlock },
};

static void take_step(struct child *c, enum guest_join step, int (*run)(struct child *))
{
	int rc;

	if (!walls_fault(c->walls, step, &rc))
		rc = run(c);
	if (rc < 0)
		walls_failed(c->sock, step, rc);
}

int walls_put_up(const struct guest_walls *w, const int *fds)
{
	struct child c = { .walls = w, .fds = fds, .sock = fds[GUEST_FD_SOCKET] };
	int probed;

	fill_confine(w, &c.confine);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		take_step(&c, steps[i].step, steps[i].run);
	probed = guest_probe_landlock();
	take_step(&c, JOIN_child_filter, install_filter);
	if (!wait_say(c.sock, GUEST_CONFINED, (uint64_t)probed, c.confine.listener))
		wait_give_up();
	fd_closep(&c.confine.listener);
	return c.sock;
}
