/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "api/doctor.h"
#include "base/fd.h"
#include "base/str.h"
#include "policy/policy.h"

/* ---- probes ---------------------------------------------------------------------------------- */

static void probes_all_answer(void **state)
{
	struct probe_report r;

	(void)state;
	probe_host(&r);
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		if (r.row[i].detail[0] == '\0')
			fail_msg("%s says nothing", probe_info[i].name);
		if (r.row[i].status == PROBE_MISSING && probe_info[i].fix[0] == '\0')
			fail_msg("%s is missing without a fix", probe_info[i].name);
	}
}

static unsigned count_entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void read_link(const char *path, char *dst, size_t size)
{
	ssize_t n = readlink(path, dst, size - 1);

	assert_true(n > 0);
	dst[n] = '\0';
}

static volatile sig_atomic_t children_seen;

static void on_child(int sig)
{
	(void)sig;
	children_seen++;
}

/* Whatever is tried, the process that asks is the same afterwards. */
static void probes_leave_nothing_behind(void **state)
{
	static const char *const links[] = { "/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/ns/net",
					     "/proc/self/ns/pid_for_children" };
	char before[ARRAY_LEN(links)][64], after[64], mounts[2][65536];
	unsigned fds = count_entries("/proc/self/fd");
	int nnp = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), mode = prctl(PR_GET_SECCOMP);
	struct sigaction act = { .sa_handler = on_child }, old;
	struct probe_report r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		read_link(links[i], before[i], sizeof(before[i]));
	(void)fd_get_at(AT_FDCWD, "/proc/self/mountinfo", mounts[0], sizeof(mounts[0]));
	assert_int_equal(sigaction(SIGCHLD, &act, &old), 0);
	children_seen = 0;
	for (int i = 0; i < 5; i++)
		probe_host(&r);
	assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
	(void)fd_get_at(AT_FDCWD, "/proc/self/mountinfo", mounts[1], sizeof(mounts[1]));
	assert_int_equal(children_seen, 0);
	assert_int_equal(waitpid(-1, NULL, __WALL), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
	assert_string_equal(mounts[0], mounts[1]);
	assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), nnp);
	assert_int_equal(prctl(PR_GET_SECCOMP), mode);
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		read_link(links[i], after, sizeof(after));
		assert_string_equal(before[i], after);
	}
}

/* Runs a probe in a child whose circumstances were changed by prepare; its answers come back by a pipe. */
static bool probe_under(int (*prepare)(void), struct probe_report *ret)
{
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		static struct probe_report r;

		if (prepare() < 0)
			_exit(77);
		probe_cell(&r);
		_exit(fd_write_all(ends[1], &r, sizeof(r)) < 0);
	}
	close(ends[1]);
	status = fd_read_all(ends[0], ret, sizeof(*ret)) == (ssize_t)sizeof(*ret) ? 0 : -1;
	close(ends[0]);
	if (status == 0) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		return true;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 77);
	return false;
}

static int forbid_user_namespaces(void)
{
	if (unshare(CLONE_NEWUSER) < 0)
		return -1;
	return fd_put_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0");
}

static int filter_call(long number, unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int kill_on_unshare(void)
{
	return filter_call(SYS_unshare, SECCOMP_RET_KILL_PROCESS);
}

static int hide_fsopen(void)
{
	return filter_call(SYS_fsopen, SECCOMP_RET_ERRNO | ENOSYS);
}

static int hide_landlock(void)
{
	return filter_call(SYS_landlock_create_ruleset, SECCOMP_RET_ERRNO | EPERM);
}

static void probes_see_forbidden_user_namespaces(void **state)
{
	struct probe_report r;

	(void)state;
	if (!probe_under(forbid_user_namespaces, &r))
		skip();
	assert_int_equal(r.row[PROBE_user_ns].status, PROBE_MISSING);
	assert_int_equal(r.row[PROBE_user_ns].sys, ENOSPC);
}

static void probes_survive_being_killed(void **state)
{
	struct probe_report r;

	(void)state;
	if (!probe_under(kill_on_unshare, &r))
		skip();
	assert_int_equal(r.row[PROBE_user_ns].status, PROBE_MISSING);
	assert_int_equal(r.row[PROBE_seccomp].status, PROBE_MISSING);
	assert_non_null(strstr(r.row[PROBE_seccomp].detail, "could not be tried"));
}

static void probes_see_hidden_calls(void **state)
{
	struct probe_report r;

	(void)state;
	if (!probe_under(hide_fsopen, &r))
		skip();
	assert_int_equal(r.row[PROBE_disk_limit].status, PROBE_MISSING);
	assert_int_equal(r.row[PROBE_proc_subset].status, PROBE_MISSING);
	assert_true(probe_under(hide_landlock, &r));
	assert_int_equal(r.row[PROBE_landlock].status, PROBE_MISSING);
	assert_int_equal(r.row[PROBE_landlock_scope].status, PROBE_MISSING);
}

/* ---- the document ---------------------------------------------------------------------------- */

static void good_host(struct doctor_facts *f)
{
	memset(f, 0, sizeof(*f));
	for (size_t i = 0; i < PROBE_COUNT; i++) {
		f->host.row[i].status = PROBE_OK;
		(void)str_copy(f->host.row[i].detail, sizeof(f->host.row[i].detail), "works");
	}
	f->root = true;
	(void)str_copy(f->backend, sizeof(f->backend), "native");
	(void)str_copy(f->cgroup_version, sizeof(f->cgroup_version), "v2");
}

static json_t *render(const struct doctor_facts *f)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	json_t *doc;

	assert_int_equal(doctor_render(f, &text, &err), 0);
	doc = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(doc);
	return doc;
}

static bool is_ok(const json_t *doc)
{
	return json_is_true(json_object_get(doc, "ok"));
}

static const char *get(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

static json_t *find_row(const json_t *doc, const char *name)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "rows"), i, row) if (str_eq(get(row, "name"), name)) return row;
	fail_msg("no row '%s'", name);
	return NULL;
}

/* What holds for the document of any host. */
static void check_document(const json_t *doc)
{
	bool ok = true;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(doc, "rows"), i, row)
	{
		bool missing = str_eq(get(row, "status"), "missing");

		assert_int_equal(json_object_size(row), 9);
		assert_true(missing || str_eq(get(row, "status"), "ok") || str_eq(get(row, "status"), "info"));
		assert_true(get(row, "area")[0] && get(row, "name")[0] && get(row, "detail")[0]);
		if (missing && get(row, "fix")[0] == '\0')
			fail_msg("%s is missing without a fix", get(row, "name"));
		if (missing && json_is_true(json_object_get(row, "required")))
			ok = false;
	}
	assert_int_equal(is_ok(doc), ok);
	for (enum protection p = 0; p < PROT_COUNT; p++) {
		unsigned n = 0;

		json_array_foreach(json_object_get(doc, "rows"), i, row) n +=
			get(row, "protection") && str_eq(get(row, "protection"), protection_info[p].name);
		if (n != 1)
			fail_msg("%s has %u rows", protection_info[p].name, n);
	}
}

static void good_host_is_ok(void **state)
{
	struct doctor_facts f;
	json_t *doc;

	(void)state;
	good_host(&f);
	doc = render(&f);
	check_document(doc);
	assert_true(is_ok(doc));
	assert_string_equal(get(find_row(doc, "landlock"), "fix"), "");
	json_decref(doc);
}

/* Each protection in turn: its absence is a finding, unless the policy allows it. */
static void each_missing_protection_counts(void **state)
{
	struct doctor_facts f;

	(void)state;
	for (int root = 0; root < 2; root++)
		for (enum protection p = 0; p < PROT_COUNT; p++) {
			json_t *doc;

			good_host(&f);
			f.root = root;
			f.missing = PROT_BIT(p);
			doc = render(&f);
			check_document(doc);
			assert_false(is_ok(doc));
			assert_string_equal(get(find_row(doc, protection_info[p].name), "status"), "missing");
			json_decref(doc);

			f.may_degrade = PROT_BIT(p);
			doc = render(&f);
			check_document(doc);
			assert_true(is_ok(doc));
			assert_string_equal(get(find_row(doc, protection_info[p].name), "status"), "missing");
			assert_true(json_is_false(json_object_get(find_row(doc, protection_info[p].name), "required")));
			json_decref(doc);
		}
}

static void backend_speaks_for_itself(void **state)
{
	struct doctor_facts f;
	json_t *doc;

	(void)state;
	good_host(&f);
	f.backend_error.code = BRIG_E_REFUSED;
	(void)str_copy(f.backend_error.msg, sizeof(f.backend_error.msg), "there is no such backend");
	doc = render(&f);
	check_document(doc);
	assert_false(is_ok(doc));
	assert_string_equal(get(find_row(doc, "backend"), "detail"), "there is no such backend");
	json_decref(doc);
}

/* What depends on user namespaces names the switch that takes them away. */
static void fixes_name_the_cause(void **state)
{
	struct doctor_facts f;
	json_t *doc;

	(void)state;
	good_host(&f);
	f.missing = PROT_BIT(PROT_user_ns) | PROT_BIT(PROT_net_ns) | PROT_BIT(PROT_memory_limit);
	f.host.row[PROBE_user_ns].status = PROBE_MISSING;
	f.host.row[PROBE_net_ns].status = PROBE_MISSING;
	f.host.row[PROBE_userns_apparmor].status = PROBE_MISSING;
	f.root = false;
	doc = render(&f);
	check_document(doc);
	assert_non_null(strstr(get(find_row(doc, "user_ns"), "fix"), "apparmor_restrict_unprivileged_userns=0"));
	assert_non_null(strstr(get(find_row(doc, "net_ns"), "fix"), "apparmor_restrict_unprivileged_userns=0"));
	assert_non_null(strstr(get(find_row(doc, "memory_limit"), "fix"), "Delegate="));
	assert_null(strstr(get(find_row(doc, "memory_limit"), "fix"), "unified_cgroup_hierarchy"));
	assert_true(json_is_true(json_object_get(find_row(doc, "userns_apparmor"), "required")));
	json_decref(doc);

	(void)str_copy(f.cgroup_version, sizeof(f.cgroup_version), "hybrid");
	doc = render(&f);
	assert_non_null(strstr(get(find_row(doc, "memory_limit"), "fix"), "unified_cgroup_hierarchy=1"));
	json_decref(doc);

	f.host.row[PROBE_userns_apparmor].status = PROBE_INFO;
	(void)str_copy(f.host.row[PROBE_container].detail, sizeof(f.host.row[0].detail), "looks like a container");
	doc = render(&f);
	assert_non_null(strstr(get(find_row(doc, "user_ns"), "fix"), "docker run"));
	json_decref(doc);
}

/* A switch that would forbid user namespaces does not count where they can be made all the same. */
static void attempt_beats_switch(void **state)
{
	struct doctor_facts f;
	json_t *doc;

	(void)state;
	good_host(&f);
	f.host.row[PROBE_userns_apparmor].status = PROBE_MISSING;
	doc = render(&f);
	check_document(doc);
	assert_true(is_ok(doc));
	assert_string_equal(get(find_row(doc, "userns_apparmor"), "status"), "info");
	json_decref(doc);
}

static void bytes_of_the_host_cost_no_row(void **state)
{
	struct doctor_facts f;
	json_t *doc;

	(void)state;
	good_host(&f);
	(void)str_copy(f.host.row[PROBE_core_pattern].detail, sizeof(f.host.row[0].detail), "\xff\xfe");
	doc = render(&f);
	check_document(doc);
	assert_true(is_ok(doc));
	assert_string_equal(get(find_row(doc, "core_pattern"), "detail"), "(not printable)");
	json_decref(doc);
}

static void this_host_gets_a_document(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *policy = NULL;
	char *text = NULL;
	json_t *doc;

	(void)state;
	assert_int_equal(policy_load(&(struct policy_sources){ 0 }, &policy, NULL, &err), 0);
	assert_int_equal(doctor_json(policy, NULL, &text, &err), 0);
	policy_free(policy);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	check_document(doc);
	assert_string_equal(get(find_row(doc, "kernel"), "status"), "info");
	assert_string_equal(get(find_row(doc, "python"), "area"), "languages");
	json_decref(doc);
	free(text);
}

/* A policy whose allow_degraded is the given list; NULL if the policy refuses that. */
static struct policy *policy_allowing(const char *list)
{
	char value[2048];
	const char *const environ_of_test[] = { value, NULL };
	struct policy *policy = NULL;

	(void)snprintf(value, sizeof(value), "BRIG_ALLOW_DEGRADED=%s", list);
	(void)policy_load(&(struct policy_sources){ .environ = environ_of_test }, &policy, NULL, NULL);
	return policy;
}

/* What the policy lets go is not required; what it never lets go is. */
static void policy_decides_what_is_required(void **state)
{
	char list[1024] = "", *text = NULL;
	protection_set allowed = 0;
	struct policy *policy;
	json_t *doc;

	(void)state;
	for (enum protection p = 0; p < PROT_COUNT; p++) {
		size_t n = strlen(list);

		policy = policy_allowing(protection_info[p].name);
		if (!policy)
			continue;
		policy_free(policy);
		allowed |= PROT_BIT(p);
		(void)snprintf(list + n, sizeof(list) - n, "%s%s", n ? "," : "", protection_info[p].name);
	}
	assert_true(allowed & PROT_BIT(PROT_landlock));
	policy = policy_allowing(list);
	assert_non_null(policy);
	assert_int_equal(doctor_json(policy, NULL, &text, NULL), 0);
	policy_free(policy);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	check_document(doc);
	for (enum protection p = 0; p < PROT_COUNT; p++)
		assert_int_equal(json_is_false(json_object_get(find_row(doc, protection_info[p].name), "required")),
				 (allowed & PROT_BIT(p)) != 0);
	json_decref(doc);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_all_answer),
		cmocka_unit_test(probes_leave_nothing_behind),
		cmocka_unit_test(probes_see_forbidden_user_namespaces),
		cmocka_unit_test(probes_survive_being_killed),
		cmocka_unit_test(probes_see_hidden_calls),
		cmocka_unit_test(good_host_is_ok),
		cmocka_unit_test(each_missing_protection_counts),
		cmocka_unit_test(backend_speaks_for_itself),
		cmocka_unit_test(fixes_name_the_cause),
		cmocka_unit_test(attempt_beats_switch),
		cmocka_unit_test(bytes_of_the_host_cost_no_row),
		cmocka_unit_test(this_host_gets_a_document),
		cmocka_unit_test(policy_decides_what_is_required),
	};

	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
