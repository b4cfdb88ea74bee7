/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/guest/confine.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "sys/caps.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

void guest_add_rlimit(struct guest_confine *c, int resource, uint64_t value)
{
	if (c->n_rlimits < GUEST_RLIMITS_MAX)
		c->rlimit[c->n_rlimits] = (struct guest_rlimit){ resource, value };
	c->n_rlimits++;
}

void guest_add_rlimits(struct guest_confine *c, uint64_t open_files, uint64_t file_bytes, uint64_t cpu_time_ms)
{
	const struct guest_rlimit rows[] = {
		{ RLIMIT_NOFILE, open_files },
		{ RLIMIT_FSIZE, file_bytes },
		{ RLIMIT_STACK, 8 * MiB },
		{ RLIMIT_MEMLOCK, 64 * KiB },
		{ RLIMIT_SIGPENDING, 256 },
		{ RLIMIT_MSGQUEUE, 64 * KiB },
		{ RLIMIT_NICE, 0 },
		{ RLIMIT_RTPRIO, 0 },
		/* Per process, and later than the clock that counts all of them. */
		{ RLIMIT_CPU, cpu_time_ms / 1000 + 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		guest_add_rlimit(c, rows[i].resource, rows[i].value);
}

void guest_add_rule(struct guest_confine *c, const char *path, unsigned grant)
{
	if (c->n_rules < GUEST_RULES_MAX)
		c->rule[c->n_rules++] = (struct landlock_rule){ .path = path, .grant = grant };
}

int guest_reset_signals(struct guest_confine *c UNUSED)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		(void)sigaction(s, &dfl, NULL); /* fails with EINVAL for SIGKILL, SIGSTOP and libc's own */
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

int guest_offer_to_oom_killer(struct guest_confine *c UNUSED)
{
	return fd_put_at(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
}

int guest_set_rlimits(struct guest_confine *c)
{
	if (c->n_rlimits > GUEST_RLIMITS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < c->n_rlimits; i++) {
		const struct guest_rlimit *row = &c->rlimit[i];
		struct rlimit now, want = { row->value, row->value };

		if (getrlimit((__rlimit_resource_t)row->resource, &now) < 0)
			return -errno;
		/* At most our own hard limit: raising it requires a privilege. */
		if (want.rlim_cur > now.rlim_max)
			want.rlim_cur = want.rlim_max = now.rlim_max;
		if (setrlimit((__rlimit_resource_t)row->resource, &want) < 0)
			return -errno;
	}
	return 0;
}

int guest_close_files(struct guest_confine *c)
{
	/* No descriptor is above INT_MAX, and gVisor refuses ~0U. */
	if (close_range(c->close_from, INT_MAX, 0) < 0)
		return -errno;
	return setsid() < 0 ? -errno : 0;
}

int guest_memory_rules(struct guest_confine *c)
{
	if (!c->deny_write_exec)
		return 0;
	/* Additional hardening, unknown to kernels before 6.3: not promised, so not an error. */
	if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

int guest_no_new_privs(struct guest_confine *c UNUSED)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/*
 * Direct system calls: the C library's wrappers signal every thread that it knows of, and wait for each.  A process
 * that was cloned while its parent had several threads does not have them, and would wait forever.
 */
int guest_set_ids(uid_t uid, gid_t gid)
{
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
	    syscall(SYS_setresuid, uid, uid, uid) < 0)
		return -errno;
	return 0;
}

int guest_take_ids(struct guest_confine *c)
{
	return c->own_ids ? guest_set_ids(c->uid, c->gid) : 0;
}

int guest_clear_caps(struct guest_confine *c UNUSED)
{
	return caps_clear();
}

int guest_apply_landlock(struct guest_confine *c)
{
	if (c->landlock_abi == 0)
		return -EOPNOTSUPP;
	return landlock_confine(c->landlock_abi, c->rule, c->n_rules);
}

int guest_probe_landlock(void)
{
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int size;

	if (null < 0)
		return errno;
	return ioctl(null, FIONREAD, &size) < 0 ? errno : 0;
}

int guest_install_filter(struct guest_confine *c)
{
	/*
	 * Reporting refused calls is optional, refusing them is not: so without a listener the plain form is installed.
	 */
	c->listener = FD_NONE;
	if (c->telling_filter.n > 0 && seccomp_install_telling(c->telling_filter, &c->listener) == 0)
		return 0;
	return seccomp_install(c->filter);
}

_Noreturn void guest_end(int status)
{
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
