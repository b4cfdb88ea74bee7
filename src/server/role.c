/* SPDX-License-Identifier: Apache-2.0 */
/*
 * role.c - from a fork of the master to a process of its own
 *
 *	descriptor 3	a sealed file in memory: struct role_args, followed by its strings in the order of each_text()
 *	4 and up	the descriptors in the struct, in the order of descriptors_of(); all others are closed
 *	0, 1, 2		those of the master
 *	environment	the master's for runner and recorder, which find policy and state through it; else kept_variables
 *
 * Both ends are the same program, so the struct is copied as it is; its pointers are invalid in the new process and set
 * anew.  The signals that only the master handles are blocked from the fork until the new process has installed its own
 * handlers.
 */
#include "server/role.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"
#include "server/report.h"

#define ARGS_FD         3
#define ARGS_MAX        MiB
#define SAFE_FD         64 /* above the numbers that descriptors are moved to */
#define NO_TEXT         UINT32_MAX
#define DESCRIPTORS_MAX (4 + LISTENERS_MAX + CERTIFICATE_FILES)

const char *const role_name[ROLES] = { "recorder", "runner", "front", "link" };
static char *const process_name[ROLES] = { (char[]){ "brig-recorder" }, (char[]){ "brig-runner" },
					   (char[]){ "brig-front" }, (char[]){ "brig-link" } };
static const int signals_of_master[] = { SIGINT, SIGTERM, SIGHUP };

/* For the loader and for sanitizers.  Other variables may be secrets. */
static const char *const kept_variables[] = { "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS" };

/* ---- serialisation --------------------------------------------------------------------------------------------- */

typedef bool (*text_fn)(void *arg, const char **text);

static bool each_of(const char **list, size_t n, text_fn fn, void *arg)
{
	for (size_t i = 0; i < n; i++)
		if (!fn(arg, &list[i]))
			return false;
	return true;
}

/* Calls fn for all strings of the options; settings: a writable copy of o->settings. */
static bool each_text(struct serve_options *o, struct brig_option *settings, text_fn fn, void *arg)
{
	const char **one[] = { &o->unix_path,    &o->socket_path,       &o->policy,     &o->preset,
			       &o->state,        &o->port_domain,       &o->tls_cert,   &o->tls_key,
			       &o->otlp,         &o->queue_url,         &o->queue_ca,   &o->queue_cert,
			       &o->queue_key,    &o->queue_credentials, &o->nodes_file, &o->node_name,
			       &o->librechat_key };

	for (size_t i = 0; i < ARRAY_LEN(one); i++)
		if (!fn(arg, one[i]))
			return false;
	for (size_t i = 0; i < o->n_settings; i++)
		if (!fn(arg, &settings[i].key) || !fn(arg, &settings[i].value))
			return false;
	return each_of(o->listen, o->n_listen, fn, arg) && each_of(o->host_names, o->n_host_names, fn, arg) &&
	       each_of(o->refused_keys, o->n_refused_keys, fn, arg);
}

static size_t descriptors_of(struct role_args *b, int *ret[DESCRIPTORS_MAX])
{
	int *all[DESCRIPTORS_MAX] = { &b->control, &b->channel, &b->link, &b->recorder };
	size_t n = 4, found = 0;

	for (size_t i = 0; i < b->n_listeners; i++)
		all[n++] = &b->listener[i].fd;
	for (size_t i = 0; i < CERTIFICATE_FILES; i++)
		all[n++] = &b->certificate.fd[i];
	for (size_t i = 0; i < n; i++)
		if (*all[i] >= 0)
			ret[found++] = all[i];
	return found;
}

/* ---- the child of the master ------------------------------------------------------------------------------------ */

static bool put_text(void *arg, const char **text)
{
	struct buf *to = arg;
	uint32_t len = *text ? (uint32_t)strlen(*text) : NO_TEXT;

	(void)buf_add(to, &len, sizeof(len));
	if (*text)
		(void)buf_add(to, *text, len + 1);
	return true;
}

/* Writes the sealed file: its descriptor, or -errno. */
static int write_down(const struct role_args *given)
{
	struct role_args b = *given;
	AUTO_BUF bytes = BUF_INIT(ARGS_MAX);

	(void)buf_add(&bytes, &b, sizeof(b));
	(void)each_text(&b.options, (struct brig_option *)(uintptr_t)b.options.settings, put_text, &bytes);
	if (bytes.full || bytes.no_memory)
		return bytes.full ? -E2BIG : -ENOMEM;
	return sealed_make("brig-role", bytes.data, bytes.len);
}

/* Moves a descriptor to this number, without close-on-exec. */
static int put_at(int *fd, int number)
{
	if (dup2(*fd, number) < 0)
		return -errno;
	*fd = number;
	return 0;
}

/* All are moved up first, so that none overwrites another. */
static int arrange(struct role_args *b, int *program)
{
	int *fds[DESCRIPTORS_MAX], rc = fd_move_up(program, SAFE_FD), file;
	size_t n = descriptors_of(b, fds);

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = fd_move_up(fds[i], SAFE_FD);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = put_at(fds[i], ARGS_FD + 1 + (int)i);
	file = rc < 0 ? rc : write_down(b);
	rc = file < 0 ? file : fd_move_up(&file, SAFE_FD);
	if (rc == 0)
		rc = put_at(&file, ARGS_FD);
	if (rc == 0 && close_range((unsigned)(ARGS_FD + 1 + (int)n), ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		rc = -errno;
	return rc;
}

/* kept: the selected variables and a final NULL. */
static char **variables_of(enum serve_role role, char *kept[ARRAY_LEN(kept_variables) + 1])
{
	size_t n = 0;

	if (role == ROLE_RUNNER || role == ROLE_RECORDER)
		return environ;
	for (char **e = environ; e && *e; e++)
		for (size_t i = 0; i < ARRAY_LEN(kept_variables) && n < ARRAY_LEN(kept_variables); i++)
			if (strncmp(*e, kept_variables[i], strlen(kept_variables[i])) == 0 &&
			    (*e)[strlen(kept_variables[i])] == '=')
				kept[n++] = *e;
	kept[n] = NULL;
	return kept;
}

static void block_signals(int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals_of_master); i++)
		(void)sigaddset(&set, signals_of_master[i]);
	(void)sigprocmask(how, &set, NULL);
}

static _Noreturn void execute(const struct role_args *given, int program)
{
	struct role_args b = *given;
	char *argv[] = { process_name[b.role], NULL }, *kept[ARRAY_LEN(kept_variables) + 1];
	int rc;

	(void)signal(SIGPIPE, SIG_DFL);
	(void)setpgid(0, 0); /* Ctrl-C is for the master only */
	rc = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : arrange(&b, &program);
	if (rc == 0) {
		(void)syscall(SYS_execveat, program, "", argv, variables_of(b.role, kept), AT_EMPTY_PATH);
		rc = -errno;
	}
	report("the %s cannot be started: %s", role_name[b.role], strerrordesc_np(-rc));
	_exit(BRIG_E_SYSTEM);
}

pid_t role_spawn(const struct role_args *b, int program)
{
	pid_t pid;

	block_signals(SIG_BLOCK); /* otherwise the child could run the master's handlers */
	pid = fork();
	if (pid == 0)
		execute(b, program);
	if (pid < 0)
		pid = -errno;
	block_signals(SIG_UNBLOCK);
	return pid;
}

/* ---- the new process -------------------------------------------------------------------------------------------- */

bool role_is_spawned(int argc, char **argv)
{
	if (argc != 1)
		return false;
	for (size_t i = 0; i < ROLES; i++)
		if (str_eq(argv[0], process_name[i]))
			return true;
	return false;
}

struct reader {
	const char *at, *end;
};

static bool take_text(void *arg, const char **ret)
{
	struct reader *r = arg;
	uint32_t len;

	if ((size_t)(r->end - r->at) < sizeof(len))
		return false;
	memcpy(&len, r->at, sizeof(len));
	r->at += sizeof(len);
	*ret = len == NO_TEXT ? NULL : r->at;
	if (len == NO_TEXT)
		return true;
	if (len >= (size_t)(r->end - r->at) || r->at[len] != '\0')
		return false;
	r->at += len + 1;
	return true;
}

/* Strings stay in the sealed mapping, for the life of the process. */
static bool read_args(struct role_args *ret)
{
	off_t size = lseek(ARGS_FD, 0, SEEK_END);
	const char *bytes = size > (off_t)sizeof(*ret) ? sealed_map(ARGS_FD, (size_t)size) : NULL;
	struct brig_option *settings;
	struct reader r;

	if (!bytes)
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	r = (struct reader){ bytes + sizeof(*ret), bytes + size };
	settings = calloc(ret->options.n_settings + 1, sizeof(*settings));
	ret->options.settings = settings;
	return settings && each_text(&ret->options, settings, take_text, &r) && r.at == r.end;
}

static void do_nothing(int sig UNUSED)
{
}

/* A handler instead of SIG_IGN, because execve() resets it to the default. */
static void leave_signals_to_master(void)
{
	const struct sigaction act = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < ARRAY_LEN(signals_of_master); i++)
		(void)sigaction(signals_of_master[i], &act, NULL);
	block_signals(SIG_UNBLOCK);
}

static bool take_descriptors(struct role_args *b)
{
	int *fds[DESCRIPTORS_MAX];
	size_t n = descriptors_of(b, fds);

	for (size_t i = 0; i < n; i++)
		if (fcntl(*fds[i], F_SETFD, FD_CLOEXEC) < 0)
			return false;
	return close(ARGS_FD) == 0;
}

/* _exit(): nothing needs cleaning up, and the filter would forbid most of it. */
static int live_as_front(const struct role_args *b)
{
	struct front_args args = { .options = &b->options,
				   .n_listeners = b->n_listeners,
				   .channel = b->channel,
				   .master = b->control,
				   .certificate = b->certificate };

	memcpy(args.listener, b->listener, sizeof(args.listener));
	_exit(front_main(&args));
}

static int live_as_runner(const struct role_args *b)
{
	const struct runner_args args = { .options = &b->options,
					  .channel = b->channel,
					  .link = b->link,
					  .channel_number = b->channel_number,
					  .master = b->control,
					  .recorder = b->recorder,
					  .url = *b->url ? b->url : NULL,
					  .listener = b->listener,
					  .n_listeners = b->n_listeners };

	return runner_main(&args);
}

static int live_as_recorder(const struct role_args *b)
{
	const struct recorder_args args = { .options = &b->options, .socket = b->recorder, .master = b->control };

	_exit(recorder_main(&args));
}

static int live_as_link(const struct role_args *b)
{
	const struct link_args args = { .options = &b->options, .channel = b->channel, .master = b->control };

	_exit(link_main(&args));
}

int role_main(void)
{
	static int (*const live[ROLES])(const struct role_args *b) = { live_as_recorder, live_as_runner, live_as_front,
								       live_as_link };
	static struct role_args b; /* the process uses it until it exits */

	leave_signals_to_master();
	if (!read_args(&b) || (unsigned)b.role >= ROLES || b.n_listeners > LISTENERS_MAX || !take_descriptors(&b)) {
		report("this is a part of 'brig serve', which starts it");
		return BRIG_E_USAGE;
	}
	report_begin(role_name[b.role], b.options.json_log);
	/* Front and link repeat the prctl() after changing their ids, which resets it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != b.master_pid)
		return BRIG_E_SYSTEM;
	return live[b.role](&b);
}
