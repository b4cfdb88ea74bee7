/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a container, from its first instruction to its last (see inside.h and ../wire.h):
 *
 *	hide      nobody may look into this process
 *	job       read from stdin; a warm container waits here
 *	stage     a project and files into the workspace, packages into their place
 *	fork      the program's process builds its walls and waits
 *	ready     what is in force is said to brig, which compares and decides
 *	go        the program runs; everything else is watch.c
 *	end       everybody else is dead: how it ended and what was in force, under the key that nobody else has seen
 *	bye       brig has read the container's counters, has the end of stdout marked if it wants to, and ends the stream
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "backend/container/init/inside.h"
#include "base/fd.h"
#include "model/facts.h"

const char *const place_name[PLACE_COUNT] = { "/workspace", "/tmp", "/dev/shm" };

static int hide(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)umask(022);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return -errno;
	/* From a runtime we expect three descriptors; more would be the engine's.  Up to INT_MAX: gVisor takes the last one
	 * for a signed number, and refuses -1. */
	return close_range(STDERR_FILENO + 1, INT_MAX, 0) < 0 ? -errno : 0;
}

static int find_places(struct inside *in)
{
	for (size_t i = 0; i < PLACE_COUNT; i++) {
		AUTO_FD dir = open(place_name[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		/* The low numbers are the payload's, for its channels. */
		if (dir < 0 || (in->place[i] = fcntl(dir, F_DUPFD_CLOEXEC, 16)) < 0)
			return -errno;
	}
	return 0;
}

static void take(struct inside *in, enum wire_step step, int rc)
{
	if (rc < 0)
		fail(in, step, rc);
}

/* Every wall is up, or one is not. */
static void await_payload(struct inside *in)
{
	struct payload_word word;

	if (fd_read_all(in->status, &word, sizeof(word)) != (ssize_t)sizeof(word))
		fail(in, WIRE_STEP_fork, -ECHILD);
	if (word.step != WIRE_STEPS)
		fail(in, (enum wire_step)word.step, -(int)word.sys);
	in->landlock_abi = (int)word.abi;
	in->landlock_said = (int)word.probe;
}

static void say_ready(struct inside *in)
{
	wire_put_key(&in->out, in->job.key[0]);
	facts_add(in, /* ended= */ false);
	wire_put(&in->out, WIRE_READY, NULL, 0);
	wire_put(&in->out, WIRE_END, NULL, 0);
	speak(in);
}

static void await_go(void)
{
	char prefix[WIRE_PREFIX];
	unsigned type;
	uint32_t len;

	if (!control_read(prefix, sizeof(prefix)) || !wire_prefix_decode(prefix, &type, &len) || type != WIRE_GO ||
	    len > 0)
		end(INIT_DONE); /* brig is gone, or has decided against it */
}

static void say_end(struct inside *in, const struct wire_exit *how)
{
	struct wire_fact left = { .id = FACT_processes_left, .text = "", .source = "init: wait(2) and kill(2)" };

	/* Everyone in a pid namespace is init's descendant, and whoever loses its parent becomes init's child. */
	left.num = kill(-1, 0) == 0 || errno != ESRCH;
	wire_put_fact(&in->out, &left);
	wire_put_exit(&in->out, how);
	speak(in);
	if (in->job.output[0])
		send_output(in);
	if (in->job.flags & WIRE_RETURN)
		tree_send(in);
	if (in->job.flags & WIRE_NAME_LEFT)
		tree_name_left(in);
	wire_put(&in->out, WIRE_END, NULL, 0);
	speak(in);
}

int main(void)
{
	static char section[32 * KiB];
	static struct inside in = { .out = { .data = section, .cap = sizeof(section) } };
	struct wire_exit how = { .exited = 0 };
	int rc = hide();

	if (getpid() != 1)
		end(INIT_NOT_FIRST);
	job_read(&in);
	take(&in, WIRE_STEP_hide, rc);
	take(&in, WIRE_STEP_place, find_places(&in));
	take(&in, WIRE_STEP_project, tree_take(&in));
	take(&in, WIRE_STEP_shown, tree_show(&in));
	take(&in, WIRE_STEP_stage_files, job_stage_files(&in));
	in.local_only = in.job.flags & WIRE_IN_POD && !sockets_are_needless();
	take(&in, WIRE_STEP_fork, payload_fork(&in));
	await_payload(&in);
	say_ready(&in);
	await_go();
	watch(&in, &how);
	say_end(&in, &how);
	watch_bye();
	end(INIT_DONE);
}
