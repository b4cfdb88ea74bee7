/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a container, from start to end (see inside.h and ../wire.h):
 *
 *	hide      makes this process undumpable
 *	job       reads the job from stdin; a warm container waits here
 *	stage     stores project and files in the workspace, and packages at their place
 *	fork      the program's process confines itself and waits
 *	ready     reports what is in force to brig, which compares and decides
 *	go        the program runs; the rest is in watch.c
 *	end       all other processes are dead: reports how the program ended and what was in force, under key 2
 *	bye       brig has read the container's counters, may request the mark on stdout, and closes the stream
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
	/*
	 * A runtime provides three descriptors; any others would be the engine's.  Up to INT_MAX: gVisor reads the last
	 * one as a signed number, and refuses -1.
	 */
	return close_range(STDERR_FILENO + 1, INT_MAX, 0) < 0 ? -errno : 0;
}

static int find_places(struct inside *in)
{
	for (size_t i = 0; i < PLACE_COUNT; i++) {
		AUTO_FD dir = open(place_name[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		/* The payload uses the low numbers for its channels. */
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

/* Waits until the payload reports that it is confined, or which step failed. */
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

	/* All processes in a pid namespace descend from init, and orphans become init's children. */
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
