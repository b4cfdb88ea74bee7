/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence: a plan and facts that keep it, then each fact spoilt in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "verify/verify.h"

static struct plan plan_of_test(void)
{
	return (struct plan){
		.step = "run",
		.limits = { .cpu_percent = 50,
			    .cpu_time_ms = 1000,
			    .memory_bytes = 64 * MiB,
			    .pids = 16,
			    .disk_bytes = MiB,
			    .inodes = 100,
			    .output_bytes = 1000,
			    .open_files = 64,
			    .wall_ms = 1000 },
		.uid = 1000,
		.gid = 1000,
	};
}

/* What a cell shows that keeps every promise of that plan. */
static const struct {
	enum fact_id fact;
	uint64_t num;
	const char *text; /* NULL: a number */
	uint64_t bad_num;
	const char *bad_text;
} rows[] = {
	{ FACT_memory_max, 64 * MiB, NULL, 64 * MiB + 1, NULL },
	{ FACT_swap_max, 0, NULL, 4096, NULL },
	{ FACT_socket_memory_max, 1 * MiB, NULL, UINT64_MAX, NULL },
	{ FACT_pids_max, 16, NULL, UINT64_MAX, NULL },
	{ FACT_cpu_quota_percent, 50, NULL, 51, NULL },
	{ FACT_disk_max, MiB, NULL, 2 * MiB, NULL },
	{ FACT_inodes_max, 104, NULL, 105, NULL },
	{ FACT_open_files_max, 64, NULL, 65, NULL },
	{ FACT_core_dumps, 0, "none", 0, "possible" },
	{ FACT_user_ns, 0, "own", 0, "shared" },
	{ FACT_pid_ns, 0, "own", 0, "shared" },
	{ FACT_mount_ns, 0, "own", 0, "shared" },
	{ FACT_net_ns, 0, "own", 0, "shared" },
	{ FACT_ipc_ns, 0, "own", 0, "shared" },
	{ FACT_uts_ns, 0, "own", 0, "shared" },
	{ FACT_cgroup_ns, 0, "own", 0, "shared" },
	{ FACT_time_ns, 0, "own", 0, "shared" },
	{ FACT_host_uid, 1879048193, NULL, 0, NULL },
	{ FACT_init_host_uid, 1879048192, NULL, 0, NULL },
	{ FACT_uid, 1000, NULL, 0, NULL },
	{ FACT_groups, 0, "", 0, "0 27" },
	{ FACT_capabilities, 0, "0", 0, "80000" },
	{ FACT_no_new_privs, 1, NULL, 0, NULL },
	{ FACT_seccomp_mode, 2, NULL, 0, NULL },
	{ FACT_landlock, 4, NULL, 0, NULL },
	{ FACT_interfaces, 0, "lo", 0, "lo eth0" },
	{ FACT_packets_out, 0, NULL, 1, NULL },
	{ FACT_root_flags, 0, "ro,nosuid,nodev", 0, "rw,relatime,nosuid" },
	{ FACT_writable_mounts, 0, "/tmp /workspace /dev/shm", 0, "/tmp /workspace /usr" },
	{ FACT_root_changed, 0, NULL, 1, NULL },
	{ FACT_proc_flags, 0, "subset=pid", 0, "rw" },
	{ FACT_nested_userns, 0, NULL, 15000, NULL },
	{ FACT_user_counts, 0, "bounded", 0, "max_net_namespaces" },
	{ FACT_inotify_instances, 16, NULL, 128, NULL },
	{ FACT_inotify_watches, 4096, NULL, 192505, NULL },
	{ FACT_wall_used_ms, 1200, NULL, 2001, NULL },
	{ FACT_cpu_used_ms, 900, NULL, 2001, NULL },
	{ FACT_output_used, 1000, NULL, 1001, NULL },
	{ FACT_processes_left, 0, NULL, 1, NULL },
};

static void put(struct facts *f, enum fact_id id, uint64_t num, const char *text)
{
	if (text)
		fact_text(f, id, text, "test");
	else
		fact_num(f, id, num, "test");
}

static void good_facts(struct facts *f)
{
	*f = (struct facts){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		put(f, rows[i].fact, rows[i].num, rows[i].text);
}

static void all_kept(void **state UNUSED)
{
	struct plan plan = plan_of_test();
	struct facts f;
	struct evidence e;
	struct verify_outcome v;

	good_facts(&f);
	v = verify_run(&plan, &f, &e);
	assert_null(v.first_broken);
	assert_int_equal(e.kept, e.n);
	assert_true(e.n > 30);
}

/* Every fact matters: a bad value, and no value at all, break a promise. */
static void each_fact_counts(void **state UNUSED)
{
	struct plan plan = plan_of_test();
	struct facts f;
	struct evidence e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		good_facts(&f);
		put(&f, rows[i].fact, rows[i].bad_num, rows[i].bad_text);
		assert_non_null(verify_run(&plan, &f, &e).first_broken);
		good_facts(&f);
		f.row[rows[i].fact].known = false;
		assert_non_null(verify_run(&plan, &f, &e).first_broken);
	}
}

/* Facts that not every backend has: without a value there is no promise, a bad value breaks it. */
static void known_fact_counts(void **state UNUSED)
{
	static const struct {
		enum fact_id fact;
		const char *good, *bad;
	} known[] = {
		{ FACT_scheduling, "ordinary", "real-time" },
		{ FACT_scheduling, "ordinary", "raised" },
		{ FACT_machine_files, "masked", "cpuinfo" },
		{ FACT_engine_account, "as asked", "privileged" },
	};
	struct plan plan = plan_of_test();
	struct facts f;
	struct evidence e;

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		good_facts(&f);
		put(&f, known[i].fact, 0, known[i].good);
		assert_null(verify_run(&plan, &f, &e).first_broken);
		put(&f, known[i].fact, 0, known[i].bad);
		assert_non_null(verify_run(&plan, &f, &e).first_broken);
	}
}

static void degraded_is_named_not_broken(void **state UNUSED)
{
	struct plan plan = plan_of_test();
	struct facts f;
	struct evidence e;
	struct verify_outcome v;

	plan.may_degrade = PROT_BIT(PROT_memory_limit);
	good_facts(&f);
	f.row[FACT_memory_max].known = false;
	v = verify_run(&plan, &f, &e);
	assert_null(v.first_broken);
	assert_int_equal(v.degraded, PROT_BIT(PROT_memory_limit));
	assert_int_equal(e.kept, e.n - 1);
	/* Leave for one protection is no leave for another. */
	f.row[FACT_pids_max].known = false;
	assert_string_equal(verify_run(&plan, &f, &e).first_broken, "pids_limit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kept),
		cmocka_unit_test(each_fact_counts),
		cmocka_unit_test(known_fact_counts),
		cmocka_unit_test(degraded_is_named_not_broken),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
