/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's process between fork and exec.  While init builds the file tree, it creates the network, ipc and uts
 * namespaces and takes every step of its confinement that needs no tree; then, in the cell's own root, the rest, with
 * the system call filter last.  It reports that it is confined, waits for permission to start (in a waiting cell also
 * for the program), and executes the program.
 *
 * Once it has begun to drop privileges there is no way back: any failure ends it.
 */
#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "backend/guest/claim.h"
#include "backend/guest/wait.h"
#include "backend/native/cell_spec.h"
#include "base/fd.h"

/* Where the two channels stay while all other descriptors above standard error are closed. */
#define GO_FD   3
#define MATE_FD 4
/* A waiting cell's library, which the interpreter then finds as GUEST_WAIT_LIBRARY, or a session's program. */
#define LIBRARY_FD 5
#define STEWARD_FD LIBRARY_FD
static_assert(GO_FD == GUEST_WAIT_SOCKET && MATE_FD == GUEST_WAIT_LIBRARY,
	      "the interpreter waits on descriptors of ours");

static int connect_stdio(struct cell_build *b)
{
	for (int i = 0; i < 3; i++)
		if (dup2(b->spec->stdio[i], i) < 0)
			return -errno;
	if (dup3(b->spec->go, GO_FD, O_CLOEXEC) < 0 || dup3(b->mate, MATE_FD, O_CLOEXEC) < 0)
		return -errno;
	if (b->spec->wait_library >= 0 && dup3(b->spec->wait_library, LIBRARY_FD, O_CLOEXEC) < 0)
		return -errno;
	if (b->spec->steward >= 0 && dup3(b->spec->steward, STEWARD_FD, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

/* Init waits to join these and then configures them: host name, loopback interface. */
static int make_namespaces(struct cell_build *b UNUSED)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return -errno;
	return mate_send(MATE_FD, MATE_NAMESPACES, 0, 0);
}

static int enter_cgroup(struct cell_build *b)
{
	return b->spec->enters_first ? 0 : build_enter_cgroup(b->spec, GO_FD);
}

/* Init's pivot_root also changes our root; this verifies that it did. */
static int await_tree(struct cell_build *b UNUSED)
{
	struct mate_message tree;
	struct stat root;
	int rc = mate_receive(MATE_FD, MATE_TREE, &tree);

	if (rc < 0)
		return rc;
	if (stat("/", &root) < 0)
		return -errno;
	return root.st_dev == tree.root_dev && root.st_ino == tree.root_ino ? 0 : -EXDEV;
}

static int enter_workspace(struct cell_build *b)
{
	const char *place = plan_working_folder(b->spec->plan);
	char cwd[64];

	if (chdir(place) < 0)
		return -errno;
	/* "(unreachable)/..." would mean that we are outside of our root. */
	if (!getcwd(cwd, sizeof(cwd)) || strcmp(cwd, place) != 0)
		return -EXDEV;
	return 0;
}

static const struct build_step steps[] = {
	{ STEP_stdio, .run = connect_stdio },
	{ STEP_namespaces, .run = make_namespaces },
	{ STEP_enter_cgroup, .run = enter_cgroup },
	{ STEP_cgroup_ns, .run = build_cgroup_ns },
	{ STEP_oom_score, .confine = guest_offer_to_oom_killer },
	{ STEP_rlimits, .confine = guest_set_rlimits },
	{ STEP_close_files, .confine = guest_close_files },
	{ STEP_memory_rules, .confine = guest_memory_rules },
	{ STEP_no_new_privs, .confine = guest_no_new_privs },
	/* From here on in the tree that init has built. */
	{ STEP_await_tree, .run = await_tree },
	{ STEP_payload_ids, .confine = guest_take_ids },
	{ STEP_clear_caps, .confine = guest_clear_caps },
	{ STEP_working_dir, .run = enter_workspace },
	{ STEP_landlock, .confine = guest_apply_landlock },
};
static const struct build_step filter_step[] = { { STEP_seccomp, .confine = guest_install_filter } };

static _Noreturn void give_up(int sock, enum step step, int rc)
{
	if (rc != -ECANCELED) /* otherwise init failed first, and has reported why */
		(void)report_failure(sock, step, rc);
	guest_end(125);
}

/* Waits until init has detached the host's tree and confined itself, and the supervisor has written every limit. */
static void await_go(void)
{
	struct mate_message sealed;
	char word;

	if (mate_receive(MATE_FD, MATE_SEALED, &sealed) < 0 || read(GO_FD, &word, 1) != 1)
		guest_end(125);
}

/*
 * The interpreter of a waiting cell gets two descriptors, which it closes when it continues; a steward needs no library
 * to wait.
 */
static int pass_to_interpreter(const struct cell_spec *spec)
{
	if (!spec->plan->waits_at || (spec->wait_library < 0 && spec->steward < 0))
		return 0;
	if (spec->wait_library >= 0 && dup2(LIBRARY_FD, GUEST_WAIT_LIBRARY) < 0)
		return -errno;
	return fcntl(GUEST_WAIT_SOCKET, F_SETFD, 0) < 0 ? -errno : 0;
}

/* In a waiting cell whose interpreter cannot wait, the payload waits: only exec is left to do. */
static int await_claim(const struct plan *plan)
{
	struct guest_word waiting = { .magic = GUEST_WORD_MAGIC, .kind = GUEST_WAITING };
	struct iovec whole = { .iov_base = &waiting, .iov_len = sizeof(waiting) };
	bool may_go = false;
	int rc = fd_send_record(GO_FD, &whole, 1, NULL, 0, 0);

	if (rc == 0)
		rc = guest_claim_take(GO_FD, plan->waits_at, &may_go);
	if (rc == 0 && FAULT_HIT(STEP_claim))
		rc = -FAULT_ERRNO;
	if (rc == 0 && !may_go)
		rc = guest_claim_await_go(GO_FD);
	return rc;
}

static int execute(const struct cell_spec *spec)
{
	int rc = FAULT_HIT(STEP_exec) ? -FAULT_ERRNO : pass_to_interpreter(spec);

	if (rc < 0)
		return rc;
	if (spec->steward >= 0)
		(void)execveat(STEWARD_FD, "", (char *const *)(uintptr_t)spec->plan->argv,
			       (char *const *)(uintptr_t)spec->envp, AT_EMPTY_PATH);
	else
		(void)execve(spec->plan->argv[0], (char *const *)(uintptr_t)spec->plan->argv,
			     (char *const *)(uintptr_t)spec->envp);
	return -errno;
}

_Noreturn void payload_main(struct cell_build *b)
{
	struct report confined = report_make(REPORT_CONFINED);
	enum step failed = STEP_stdio;
	int rc;

	b->confine = b->spec->confine;
	b->confine.listener = FD_NONE;
	b->confine.close_from = (b->spec->wait_library >= 0 || b->spec->steward >= 0 ? LIBRARY_FD : MATE_FD) + 1;
	rc = build_run(b, steps, 1, &failed);
	if (rc < 0)
		give_up(b->spec->go, failed, rc);
	rc = build_run(b, steps + 1, ARRAY_LEN(steps) - 1, &failed);
	confined.value = guest_probe_landlock();
	if (rc == 0)
		rc = build_run(b, filter_step, ARRAY_LEN(filter_step), &failed);
	if (rc < 0)
		give_up(GO_FD, failed, rc);
	/* The program does not get the listener: it is close-on-exec. */
	if (report_send(GO_FD, &confined, &b->confine.listener, b->confine.listener >= 0) < 0)
		guest_end(125);
	await_go();
	if (b->spec->plan->waits_at && b->spec->wait_library < 0 && b->spec->steward < 0) {
		rc = await_claim(b->spec->plan);
		if (rc < 0)
			give_up(GO_FD, STEP_claim, rc);
	}
	give_up(GO_FD, STEP_exec, execute(b->spec));
}
