/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper as a process, and a caller of it that is hostile: what it sends is malformed, too large, replayed, or more than
 * the keeper was started for.  It gains no cell by it, and the keeper goes on, or ends if its caller makes no sense at all.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keeper/client.h"
#include "keeper/program.h"

#define PATIENCE_MS 20000

static char buffer[KEEP_BODY_MAX];

static const char *const argv_words[] = { "/usr/bin/python3", "/workspace/main.py", NULL };
static const char *const envp_words[] = { "PATH=/usr/bin:/bin", NULL };
static const struct plan_file file = { .name = "main.py", .mode = 0644, .data = "print(6*7)", .len = 10 };

static struct plan sample(void)
{
	return (struct plan){ .id = "abcdefghijklmnop",
			      .step = "run",
			      .language = "python",
			      .limits = { .cpu_percent = 100,
					  .cpu_time_ms = 30000,
					  .memory_bytes = 256 * MiB,
					  .pids = 32,
					  .disk_bytes = 16 * MiB,
					  .inodes = 1000,
					  .output_bytes = MiB,
					  .open_files = 256,
					  .startup_ms = 20000,
					  .wall_ms = 30000,
					  .cleanup_ms = 20000 },
			      .rootfs = "",
			      .uid = PLAN_USER_ID,
			      .gid = PLAN_USER_ID,
			      .family = FAMILY_INTERPRETER,
			      .workspace_exec = true,
			      .argv = argv_words,
			      .envp = envp_words,
			      .files = &file,
			      .n_files = 1,
			      .waits_at = "/workspace/main.py" };
}

static struct keep_hello ceilings(void)
{
	struct keep_hello h = { .most = sample().limits,
				.cells = 4,
				.waiting = 2,
				.waiting_of_kind = 1,
				.waiting_seconds = 60,
				.maps_projects = 1,
				.n_roots = 1 };

	(void)snprintf(h.shown[0], sizeof(h.shown[0]), "/var/lib/shown");
	return h;
}

static struct backend_host *start(void)
{
	const struct keep_hello h = ceilings();
	struct brig_error err = BRIG_ERROR_INIT;
	struct backend_host *host = NULL;

	if (keeper_start(&h, &host, &err) < 0)
		fail_msg("%s", err.msg);
	return host;
}

static bool ends(const struct backend_host *h)
{
	struct pollfd p = { .fd = h->pidfd, .events = POLLIN };

	return poll(&p, 1, PATIENCE_MS) == 1;
}

static int sealed_program(void)
{
	int fd = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, file.data, file.len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* Sends a run, and returns our end of its channel. */
static int ask(const struct backend_host *h, const void *job, size_t len, int program)
{
	int ours, theirs, fds[KEEP_RUN_FDS];

	assert_int_equal(keeper_open_channel(&ours, &theirs), 0);
	fds[KEEP_FD_CHANNEL] = theirs;
	fds[KEEP_FD_CONTENTS] = program;
	assert_int_equal(keep_send(h->socket, KEEP_RUN, job, len, NULL, 0, fds, KEEP_RUN_FDS), 0);
	(void)close(theirs);
	return ours;
}

/* The next record of a channel; its kind, or 0 at its end. */
static uint32_t hear(int channel, struct keep_message *m)
{
	struct pollfd p = { .fd = channel, .events = POLLIN };

	if (poll(&p, 1, PATIENCE_MS) != 1)
		fail_msg("the keeper says nothing");
	return keep_receive(channel, buffer, m) == 1 ? m->head.kind : 0;
}

static void is_refused(const struct backend_host *h, const struct plan *plan, const char *why)
{
	AUTO_BUF job = BUF_INIT(0);
	AUTO_FD program = sealed_program(), channel = FD_NONE;
	struct brig_error err = BRIG_ERROR_INIT;
	struct keep_message m;
	struct keep_failed f;

	assert_int_equal(job_encode(plan, &job, &err), 0);
	channel = ask(h, job.data, job.len, program);
	assert_int_equal(hear(channel, &m), KEEP_FAILED);
	memcpy(&f, m.body, sizeof(f));
	assert_int_equal(f.code, BRIG_E_REFUSED);
	if (!strstr(f.text, why))
		fail_msg("'%s' does not name '%s'", f.text, why);
	assert_true(keeper_is_alive(h));
}

/* Each ceiling by itself. */
static void more_than_the_ceilings(void **state)
{
	static const struct plan_bind etc = { .source = "/etc", .target = "/opt/etc" };
	static const struct plan_bind up = { .source = "/var/lib/shown/../../../etc", .target = "/opt/etc" };
	static const struct plan_bind over = { .source = "/var/lib/shown/set", .target = "/../usr" };
	static const struct plan_bind beside = { .source = "/var/lib/shown-not", .target = "/opt/x" };
	static const struct plan_bind opened = { .source = "/etc", .target = "/opt/etc", .checked = true };
	static const struct plan_file up_file = { .name = "../main.py" }, hidden = { .name = ".main.py" },
				      absolute = { .name = "/main.py" }, inside_out = { .name = "a/../../main.py" };
	static const struct plan_egress elsewhere = { .place = { { 0x08080808, 53, true } }, .n_places = 1 };
	struct backend_host *h = start();
	struct plan base = sample(), p;

	(void)state;
#define REFUSED(change, why)            \
	do {                            \
		p = base;               \
		change;                 \
		is_refused(h, &p, why); \
	} while (0)
	REFUSED(p.limits.memory_bytes++, "memory_bytes");
	REFUSED(p.limits.pids++, "pids");
	REFUSED(p.limits.wall_ms++, "wall_ms");
	REFUSED(p.limits.disk_bytes++, "disk_bytes");
	REFUSED(p.limits.cpu_percent++, "cpu_percent");
	REFUSED(p.limits.memory_bytes = 0, "without a limit");
	REFUSED(p.limits.pids = 0, "without a limit");
	REFUSED(p.uid = 0, "user id");
	REFUSED(p.gid = 0, "user id");
	REFUSED(p.may_degrade = PROT_BIT(PROT_seccomp), "go without");
	REFUSED(p.rootfs = "/", "another root");
	REFUSED(p.disk_io_bps = 1, "disks");
	REFUSED((p.binds = &etc, p.n_binds = 1), "may not show");
	REFUSED((p.binds = &up, p.n_binds = 1), "may not show");
	REFUSED((p.binds = &over, p.n_binds = 1), "may not show");
	REFUSED((p.binds = &beside, p.n_binds = 1), "may not show");
	REFUSED(p.waits_at = "/etc/passwd", "elsewhere");
	REFUSED((p.files = &up_file, p.waits_at = "/workspace/../main.py"), "elsewhere");
	REFUSED((p.files = &hidden, p.waits_at = "/workspace/.main.py"), "elsewhere");
	REFUSED(p.n_files = 0, "elsewhere");
	REFUSED(p.session = true, "elsewhere"); /* its steward waits for no program */
	base.waits_at = NULL;                   /* cells that are made for the request */
	REFUSED(p.files = &up_file, "elsewhere");
	REFUSED(p.files = &absolute, "elsewhere");
	REFUSED(p.files = &inside_out, "elsewhere");
	REFUSED((p.binds = &etc, p.n_binds = 1), "may not show");
	REFUSED(p.egress = &elsewhere, "loopback");
	REFUSED((p.binds = &opened, p.n_binds = 1), "number of descriptors"); /* its own is missing */
#undef REFUSED
	keeper_backend.close(h);
}

static void is_no_job(const struct backend_host *h, const void *bytes, size_t len)
{
	AUTO_FD program = sealed_program(), channel = ask(h, bytes, len, program);
	struct keep_message m;

	assert_int_equal(hear(channel, &m), KEEP_FAILED);
	assert_true(keeper_is_alive(h));
}

static void malformed_jobs(void **state)
{
	AUTO_BUF job = BUF_INIT(0);
	struct backend_host *h = start();
	const struct plan plan = sample();
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	assert_int_equal(job_encode(&plan, &job, &err), 0);
	is_no_job(h, "", 0);
	is_no_job(h, "brigjob1", 8);
	is_no_job(h, job.data, job.len - 1);
	for (size_t at = 0; at < 32; at++) {
		job.data[at] ^= 0x40;
		is_no_job(h, job.data, job.len);
		job.data[at] ^= 0x40;
	}
	memset(buffer, 0xff, JOB_MAX);
	is_no_job(h, buffer, JOB_MAX);
	keeper_backend.close(h);
}

/* Anything that a caller can open, in the place of the channel or of the program. */
static void foreign_descriptors(void **state)
{
	static const char *const paths[] = { "/dev/null", "/dev/zero", "/", "/etc/passwd", "/proc/self/mem" };
	AUTO_BUF job = BUF_INIT(0);
	struct backend_host *h = start();
	const struct plan plan = sample();
	struct brig_error err = BRIG_ERROR_INIT;
	struct keep_message m;
	int ends_of_pipe[2];

	(void)state;
	assert_int_equal(job_encode(&plan, &job, &err), 0);
	assert_int_equal(pipe2(ends_of_pipe, O_CLOEXEC), 0);
	for (size_t i = 0; i < ARRAY_LEN(paths) + 2; i++) {
		AUTO_FD foreign = i < ARRAY_LEN(paths)    ? open(paths[i], O_RDONLY | O_CLOEXEC)
				  : i == ARRAY_LEN(paths) ? dup(ends_of_pipe[0])
							  : memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		AUTO_FD channel = ask(h, job.data, job.len, foreign), program = sealed_program();
		int fds[KEEP_RUN_FDS] = { foreign, program };

		assert_int_equal(hear(channel, &m), KEEP_FAILED);
		assert_int_equal(keep_send(h->socket, KEEP_RUN, job.data, job.len, NULL, 0, fds, KEEP_RUN_FDS), 0);
	}
	is_no_job(h, "", 0); /* it has read all of these by now */
	(void)close(ends_of_pipe[0]);
	(void)close(ends_of_pipe[1]);
	keeper_backend.close(h);
}

/* Who does not speak as we do is not spoken with: the keeper ends, and has made nothing. */
static void senseless_callers(void **state)
{
	const struct keep_hello hello = ceilings();
	struct backend_host *h;
	int one;

	(void)state;
	h = start();
	assert_int_equal(send(h->socket, "?", 1, MSG_NOSIGNAL), 1);
	assert_true(ends(h));
	keeper_backend.close(h);

	h = start(); /* a second greeting, with more in it */
	assert_int_equal(keep_send(h->socket, KEEP_HELLO, &hello, sizeof(hello), NULL, 0, NULL, 0), 0);
	assert_true(ends(h));
	keeper_backend.close(h);

	h = start(); /* a run without its program */
	one = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(keep_send(h->socket, KEEP_RUN, "x", 1, NULL, 0, &one, 1), 0);
	assert_true(ends(h));
	(void)close(one);
	keeper_backend.close(h);
}

static int talk_of_run(const struct backend_host *h)
{
	AUTO_BUF job = BUF_INIT(0);
	AUTO_FD program = sealed_program();
	const struct plan plan = sample();
	struct brig_error err = BRIG_ERROR_INIT;

	assert_int_equal(job_encode(&plan, &job, &err), 0);
	return ask(h, job.data, job.len, program);
}

static void say(int channel, enum keep_kind kind)
{
	assert_int_equal(keep_send(channel, kind, NULL, 0, NULL, 0, NULL, 0), 0);
}

/* One run, word by word; what comes back is whole. */
static void a_run(void **state)
{
	struct backend_host *h = start();
	AUTO_FD channel = talk_of_run(h), out = FD_NONE;
	struct keep_message m;
	struct keep_final f;
	char text[64] = "";

	(void)state;
	assert_int_equal(hear(channel, &m), KEEP_CREATED);
	assert_int_equal(m.n_fds, KEEP_CREATED_FDS);
	out = fd_move(&m.fds[KEEP_FD_OUT]);
	keep_message_release(&m);
	say(channel, KEEP_GO);
	assert_int_equal(hear(channel, &m), KEEP_FINAL);
	assert_true(read(out, text, sizeof(text) - 1) > 0); /* every writer is dead */
	assert_string_equal(text, "42\n");
	memcpy(&f, m.body, sizeof(f));
	assert_true(f.ended && f.exit.exited && f.exit.code == 0);
	assert_true(f.facts.row[FACT_seccomp_mode].known);
	if (geteuid() == 0)
		assert_int_equal(f.facts.row[FACT_seccomp_filters].num,
				 2); /* the program's, and the keeper's behind it */
	assert_int_equal(f.facts.row[FACT_processes_left].num, 0);
	assert_int_equal(hear(channel, &m), 0); /* nothing follows */
	keeper_backend.close(h);
}

/* Words at the wrong time end the cell, and nothing else. */
static void words_at_the_wrong_time(void **state)
{
	struct backend_host *h = start();
	struct keep_message m;

	(void)state;
	for (int i = 0; i < 3; i++) {
		AUTO_FD channel = talk_of_run(h);

		if (i == 0)
			say(channel, KEEP_GO); /* before its birth */
		if (i == 1)
			assert_int_equal(send(channel, "??", 2, MSG_NOSIGNAL), 2);
		if (i == 2)
			say(channel, KEEP_CREATED);
		while (hear(channel, &m) != 0)
			keep_message_release(&m);
		assert_true(keeper_is_alive(h));
	}
	keeper_backend.close(h);
}

static int send_single(const struct backend_host *h, const struct plan *plan, const int *more, size_t n_more)
{
	AUTO_BUF job = BUF_INIT(0);
	AUTO_FD program = sealed_program(), theirs = FD_NONE;
	struct brig_error err = BRIG_ERROR_INIT;
	int ours, fds[KEEP_FDS_MAX];

	assert_int_equal(job_encode(plan, &job, &err), 0);
	assert_int_equal(keeper_open_channel(&ours, &theirs), 0);
	fds[KEEP_FD_CHANNEL] = theirs;
	fds[KEEP_FD_CONTENTS] = program;
	if (n_more > 0)
		memcpy(&fds[KEEP_RUN_FDS], more, n_more * sizeof(*more));
	assert_int_equal(keep_send(h->socket, KEEP_RUN, job.data, job.len, NULL, 0, fds, KEEP_RUN_FDS + n_more), 0);
	return ours;
}

/* A cell that is made for its request: the word may come before it is built. */
static void a_run_that_does_not_wait(void **state)
{
	struct backend_host *h = start();
	struct plan plan = sample();
	struct keep_message m;
	struct keep_final f;
	char text[64] = "";

	(void)state;
	plan.waits_at = NULL;
	for (int early = 0; early < 2; early++) {
		AUTO_FD channel = FD_NONE, out = FD_NONE;

		plan.start_at_once = early;
		channel = send_single(h, &plan, NULL, 0);
		if (early)
			say(channel, KEEP_GO);
		assert_int_equal(hear(channel, &m), KEEP_CREATED);
		out = fd_move(&m.fds[KEEP_FD_OUT]);
		keep_message_release(&m);
		if (!early)
			say(channel, KEEP_GO);
		assert_int_equal(hear(channel, &m), KEEP_FINAL);
		memcpy(&f, m.body, sizeof(f));
		assert_true(f.ended && f.exit.exited && f.exit.code == 0);
		assert_int_equal(read(out, text, sizeof(text)), 3);
		assert_memory_equal(text, "42\n", 3);
		assert_int_equal(hear(channel, &m), 0);
	}
	keeper_backend.close(h);
}

/* ---- projects ----------------------------------------------------------------------------------- */

static const char *const hidden_paths[] = { ".env" };
static const char of_project[] = "print(open('a').read() + open('.env').read()); open('new', 'w')";
static const struct plan_file project_file = {
	.name = "main.py", .mode = 0644, .data = of_project, .len = sizeof(of_project) - 1
};

static struct plan project_plan(const struct plan_workspace *w)
{
	struct plan plan = sample();

	plan.waits_at = NULL;
	plan.wants_view = true;
	plan.files = &project_file;
	plan.workspace = w;
	return plan;
}

static void put_file(int dir, const char *name, const char *text)
{
	AUTO_FD made = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(made >= 0);
	assert_int_equal(fd_write_all(made, text, strlen(text)), 0);
}

/* A run on a project through the client, which sends what the keeper wants: what it sees, what it leaves, and the evidence. */
static void a_project(void **state)
{
	char path[] = "/tmp/test-keeper-XXXXXX", text[64] = "";
	AUTO_FD dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : FD_NONE, left = FD_NONE;
	const struct plan_workspace w = { .fd = dir, .path = path, .hidden = hidden_paths, .n_hidden = 1 };
	const struct plan plan = project_plan(&w);
	struct backend_host *h = start();
	struct brig_error err = BRIG_ERROR_INIT;
	struct workspace_view view = { .fd = FD_NONE };
	AUTO_FREE struct facts *facts = calloc(1, sizeof(*facts));
	struct cell_fds fds;
	struct cell *c = NULL;
	size_t len = 0;
	ssize_t n;

	(void)state;
	assert_true(dir >= 0);
	put_file(dir, "a", "shown");
	put_file(dir, ".env", "secret");
	if (keeper_backend.begin(h, &plan, NULL, &c, &err) < 0 || keeper_backend.finish(c, &err) < 0 ||
	    keeper_backend.start(c, &fds, &err) < 0)
		fail_msg("%s", err.msg);
	while (len < sizeof(text) - 1) {
		struct pollfd p = { .fd = fds.out, .events = POLLIN };

		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		n = read(fds.out, text + len, sizeof(text) - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	assert_string_equal(text, "shown\n"); /* and nothing of what is hidden */
	assert_int_equal(keeper_backend.stop(c, &err), 0);
	keeper_backend.read_back(c, facts);
	assert_string_equal(facts->row[FACT_masks].text, "in place");
	assert_string_equal(facts->row[FACT_project].text, "ro");
	assert_string_equal(facts->row[FACT_workspace].text, "cow");
	assert_int_equal(keeper_backend.workspace(c, &view, &err), 0);
	left = view.fd;
	assert_int_equal(faccessat(left, "new", F_OK, 0), 0);
	assert_int_equal(faccessat(dir, "new", F_OK, 0), -1); /* the project itself is as it was */
	(void)keeper_backend.destroy(c, text, sizeof(text));
	keeper_backend.close(h);
	(void)unlinkat(dir, "a", 0);
	(void)unlinkat(dir, ".env", 0);
	assert_int_equal(rmdir(path), 0);
}

/* One with these paths behind its program, and this for its folder; our end of the channel. */
static int ask_for_project(const struct backend_host *h, const struct plan_workspace *w, const char *paths, size_t len,
			   int folder)
{
	AUTO_BUF job = BUF_INIT(0);
	AUTO_FD contents = memfd_create("contents", MFD_CLOEXEC | MFD_ALLOW_SEALING), theirs = FD_NONE;
	const struct plan plan = project_plan(w);
	struct brig_error err = BRIG_ERROR_INIT;
	int ours, fds[KEEP_RUN_FDS + 1];

	assert_int_equal(fd_write_all(contents, project_file.data, project_file.len), 0);
	assert_int_equal(fd_write_all(contents, paths, len), 0);
	assert_int_equal(fcntl(contents, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), 0);
	assert_int_equal(job_encode(&plan, &job, &err), 0);
	assert_int_equal(keeper_open_channel(&ours, &theirs), 0);
	fds[KEEP_FD_CHANNEL] = theirs;
	fds[KEEP_FD_CONTENTS] = contents;
	fds[KEEP_RUN_FDS] = folder;
	assert_int_equal(keep_send(h->socket, KEEP_RUN, job.data, job.len, NULL, 0, fds, KEEP_RUN_FDS + (folder >= 0)),
			 0);
	return ours;
}

static void fails_with(const struct backend_host *h, int channel, const char *why)
{
	struct keep_message m;
	struct keep_failed f;

	assert_int_equal(hear(channel, &m), KEEP_FAILED);
	memcpy(&f, m.body, sizeof(f));
	if (!strstr(f.text, why))
		fail_msg("'%s' does not name '%s'", f.text, why);
	assert_true(keeper_is_alive(h));
}

/* A folder that is missing or none, and paths that lead out of it. */
static void hostile_projects(void **state)
{
	const struct plan_workspace w = { .path = "/tmp", .hidden = hidden_paths, .n_hidden = 1 };
	struct plan_workspace outside = w;
	AUTO_FD folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		passwd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	const struct {
		const struct plan_workspace *w;
		const char *paths;
		int folder;
		const char *why;
	} rows[] = { { &w, ".env", FD_NONE, "number of descriptors" },
		     { &w, ".env", passwd, "no folder" },
		     { &outside, ".env", folder, "elsewhere" },
		     { &w, "../x", folder, "contents" },
		     { &w, "/etc", folder, "contents" },
		     { &w, "./x/", folder, "contents" } };
	struct backend_host *h = start();

	(void)state;
	outside.covered = "../../etc/passwd";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FD channel =
			ask_for_project(h, rows[i].w, rows[i].paths, strlen(rows[i].paths) + 1, rows[i].folder);

		fails_with(h, channel, rows[i].why);
	}
	keeper_backend.close(h);
}

/* The stream of one that no keeper can mount: too large, no stream, no tree, cut off, or twice. */
static void hostile_streams(void **state)
{
	static const struct {
		struct keep_stream size;
		bool is_socket;
		const char *why;
	} rows[] = { { { 1 * GiB, 100 }, true, "memory" },
		     { { 64 * KiB, 1 * MiB }, true, "memory" },
		     { { UINT64_MAX, 1 }, true, "memory" },
		     { { 64 * KiB, 16 }, false, "socket" },
		     { { 64 * KiB, 16 }, true, "show_project" } };
	const struct plan_workspace w = { .path = "/proc/sys/fs", .hidden = hidden_paths, .n_hidden = 1 };
	AUTO_FD folder = open(w.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct backend_host *h = start();
	struct keep_message m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FD channel = ask_for_project(h, &w, ".env", 5, folder), source = FD_NONE;
		int ends_of_stream[2];

		assert_int_equal(hear(channel, &m), KEEP_PACK);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_of_stream), 0);
		source = ends_of_stream[0];
		assert_int_equal(send(ends_of_stream[1], "no tree", 7, MSG_NOSIGNAL), 7);
		(void)close(ends_of_stream[1]);
		assert_int_equal(keep_send(channel, KEEP_STREAM, &rows[i].size, sizeof(rows[i].size), NULL, 0,
					   rows[i].is_socket ? &source : &zero, 1),
				 0);
		fails_with(h, channel, rows[i].why);
		while (hear(channel, &m) != 0) /* until its cell is gone: the keeper has four at most */
			keep_message_release(&m);
	}
	/* Nobody has waited for this one: its cell ends. */
	AUTO_FD channel = talk_of_run(h);
	assert_int_equal(keep_send(channel, KEEP_STREAM, &rows[0].size, sizeof(rows[0].size), NULL, 0, &zero, 1), 0);
	while (hear(channel, &m) != 0)
		keep_message_release(&m);
	assert_true(keeper_is_alive(h));
	keeper_backend.close(h);
}

/* Descriptors that are not what the job says: too few, too many, of the wrong kind, of another place. */
static void descriptors_of_binds(void **state)
{
	static const struct plan_bind etc = { .source = "/etc", .target = "/opt/etc", .checked = true };
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC), usr = open("/usr", O_PATH | O_CLOEXEC),
		right = open("/etc", O_PATH | O_CLOEXEC);
	const struct {
		int fds[2];
		size_t n;
	} rows[] = { { { right, right }, 2 }, { { null }, 1 }, { { usr }, 1 } };
	struct backend_host *h = start();
	struct plan plan = sample();
	struct keep_message m;

	(void)state;
	plan.waits_at = NULL;
	plan.binds = &etc;
	plan.n_binds = 1;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FD channel = send_single(h, &plan, rows[i].fds, rows[i].n);

		assert_int_equal(hear(channel, &m), KEEP_FAILED);
		assert_true(keeper_is_alive(h));
	}
	AUTO_FD channel = send_single(h, &plan, &right, 1);
	assert_int_equal(hear(channel, &m), KEEP_CREATED);
	keep_message_release(&m);
	keeper_backend.close(h);
}

static void contents_of_another_size(void **state)
{
	static const struct plan_file longer = { .name = "main.py", .mode = 0644, .data = "print(6*7)", .len = 11 };
	struct backend_host *h = start();
	struct plan plan = sample();
	struct keep_message m;

	(void)state;
	plan.waits_at = NULL;
	plan.files = &longer;
	AUTO_FD channel = send_single(h, &plan, NULL, 0);
	assert_int_equal(hear(channel, &m), KEEP_FAILED);
	assert_true(keeper_is_alive(h));
	keeper_backend.close(h);
}

/* In a child: the ceilings have the keeper's own number for them already, as any other descriptor, or another one. */
static _Noreturn void become(int ceilings, int caller, bool in_place)
{
	int high = fcntl(caller, F_DUPFD_CLOEXEC, KEEPER_CEILINGS_FD + 1);

	if (in_place && ceilings != KEEPER_CEILINGS_FD && dup3(ceilings, KEEPER_CEILINGS_FD, O_CLOEXEC) < 0)
		_exit(1);
	_exit(keeper_become(in_place ? KEEPER_CEILINGS_FD : ceilings, high) < 0);
}

/* Started by another process, with ceilings that no greeting changes: they hold for who has the socket. */
static void have_ceilings(bool in_place)
{
	struct keep_hello h = ceilings(), more = h;
	struct backend_host host = { .pools_channel = FD_NONE };
	AUTO_FD sealed = keeper_seal_ceilings(&h), theirs = FD_NONE;
	struct plan plan = sample();
	pid_t pid;

	assert_true(sealed >= 0);
	assert_int_equal(keeper_open_channel(&host.socket, &theirs), 0);
	pid = fork();
	if (pid == 0)
		become(sealed, theirs, in_place);
	host.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	fd_closep(&theirs);
	plan.limits.memory_bytes++;
	is_refused(&host, &plan, "memory_bytes");
	more.version = KEEP_VERSION;
	more.build = KEEP_BUILD;
	more.most.memory_bytes *= 2;
	assert_int_equal(keep_send(host.socket, KEEP_HELLO, &more, sizeof(more), NULL, 0, NULL, 0), 0);
	assert_true(ends(&host));
	keeper_release(&host);
}

static void given_ceilings(void **state)
{
	(void)state;
	have_ceilings(false);
	have_ceilings(true);
}

/* What is at the place of the ceilings and is none ends it. */
static void no_ceilings(void **state)
{
	AUTO_FD open_file = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING), theirs = FD_NONE;
	struct backend_host host = { .pools_channel = FD_NONE };
	pid_t pid;

	(void)state;
	assert_int_equal(keeper_open_channel(&host.socket, &theirs), 0);
	pid = fork();
	if (pid == 0)
		_exit(keeper_become(open_file, theirs) < 0);
	host.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	fd_closep(&theirs);
	assert_true(ends(&host));
	keeper_release(&host);
}

/* From before its first job on. */
static void it_filters_itself(void **state)
{
	struct backend_host *h = start();
	char path[64], text[8192] = "", *pid, *mode;

	(void)state;
	if (geteuid() != 0) { /* whose cells may need newuidmap */
		keeper_backend.close(h);
		skip();
	}
	is_no_job(h, "", 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", h->pidfd);
	assert_true(fd_get_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	pid = strstr(text, "Pid:");
	assert_non_null(pid);
	(void)snprintf(path, sizeof(path), "/proc/%ld/status", strtol(pid + strlen("Pid:"), NULL, 10));
	assert_true(fd_get_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	mode = strstr(text, "\nSeccomp:");
	assert_non_null(mode);
	assert_int_equal(strtol(mode + strlen("\nSeccomp:"), NULL, 10), 2);
	keeper_backend.close(h);
}

/* The same job again and again: as many cells as the ceilings allow, and no more. */
static void replayed_jobs(void **state)
{
	struct backend_host *h = start();
	int channels[12], created = 0, refused = 0;
	struct keep_message m;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		channels[i] = talk_of_run(h);
	for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
		uint32_t kind = hear(channels[i], &m);

		created += kind == KEEP_CREATED;
		refused += kind == KEEP_FAILED;
		keep_message_release(&m);
	}
	assert_int_equal(created + refused, ARRAY_LEN(channels));
	assert_true(created <= 4);
	for (size_t i = 0; i < ARRAY_LEN(channels); i++)
		(void)close(channels[i]);
	keeper_backend.close(h);
}

/* Descriptors that find no room are said to have found none: the record is not taken for unsound. */
static void no_room_for_descriptors(void **state UNUSED)
{
	const int beside[] = { STDIN_FILENO, STDIN_FILENO };
	struct rlimit was, none;
	struct keep_message m;
	int ours, theirs, rc;

	assert_int_equal(keeper_open_channel(&ours, &theirs), 0);
	assert_int_equal(keep_send(ours, KEEP_CREATED, NULL, 0, NULL, 0, beside, ARRAY_LEN(beside)), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)dup(STDIN_FILENO); /* the lowest that is free */
	assert_int_equal(close((int)none.rlim_cur), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	rc = keep_receive(theirs, buffer, &m);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(rc, -EMFILE);
	assert_int_equal(m.n_fds, 0);
	(void)close(ours);
	(void)close(theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_than_the_ceilings),
		cmocka_unit_test(malformed_jobs),
		cmocka_unit_test(foreign_descriptors),
		cmocka_unit_test(senseless_callers),
		cmocka_unit_test(a_run),
		cmocka_unit_test(a_run_that_does_not_wait),
		cmocka_unit_test(descriptors_of_binds),
		cmocka_unit_test(contents_of_another_size),
		cmocka_unit_test(a_project),
		cmocka_unit_test(hostile_projects),
		cmocka_unit_test(hostile_streams),
		cmocka_unit_test(it_filters_itself),
		cmocka_unit_test(given_ceilings),
		cmocka_unit_test(no_ceilings),
		cmocka_unit_test(words_at_the_wrong_time),
		cmocka_unit_test(replayed_jobs),
		cmocka_unit_test(no_room_for_descriptors),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
