/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a stage by themselves: what a watch does without a cell, and what fits into a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "backend/idmap.h"
#include "base/clock.h"
#include "base/fd.h"
#include "executor/inspection.h"
#include "executor/prepare.h"
#include "executor/watch.h"
#include "sys/proc.h"

static char piece[WATCH_PIECE], input[WATCH_PIECE];

static int fail_to_start(struct cell *c UNUSED, struct cell_fds *ret UNUSED, struct brig_error *err)
{
	return err_set(err, BRIG_E_REFUSED, 0, "it is not started");
}

/* The caller's input holds a canary, and stays open. */
static void stdin_a_watch_without_a_cell_reads_nothing(void **state)
{
	const struct backend_ops ops = { .name = "none", .start = fail_to_start };
	const struct plan plan = { .limits = { .output_bytes = 1024 } };
	const struct brig_request req = BRIG_REQUEST_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF kept = BUF_INIT(1024);
	struct watch w = WATCH_INIT;
	int ends[2], was = dup(STDIN_FILENO);

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "canary", 6), 6);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	w.backend = &ops;
	w.plan = &plan;
	w.req = &req;
	w.piece = piece;
	w.input = input;
	w.out.keep = w.err.keep = &kept;
	watch_run(&w, &err);
	assert_int_equal(w.ending, END_FAILED);
	assert_true(watch_drain(&w, clock_now_ns() + NS_PER_SEC));
	(void)dup2(was, STDIN_FILENO);
	assert_int_equal(kept.len, 0);
	(void)close(was);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* A writer that cannot be killed keeps its end open: what is there is taken, and the rest is not waited for. */
static void drain_ends_at_its_deadline(void **state)
{
	const struct plan plan = { .limits = { .output_bytes = 1024 } };
	const struct brig_request req = BRIG_REQUEST_INIT;
	AUTO_BUF kept = BUF_INIT(1024);
	struct watch w = WATCH_INIT;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(write(ends[1], "last words", 10), 10);
	w.plan = &plan;
	w.req = &req;
	w.piece = piece;
	w.out.keep = &kept;
	w.fds.out = ends[0];
	assert_false(watch_drain(&w, clock_now_ns() + 20 * NS_PER_MS));
	assert_string_equal(buf_str(&kept), "last words");
	(void)close(ends[1]);
	assert_true(watch_drain(&w, clock_now_ns() + 60 * NS_PER_SEC));
	(void)close(ends[0]);
}

static void binds_that_do_not_fit_are_refused(void **state)
{
	const struct plan_bind binds[PREPARED_BINDS_MAX + 1] = { { .source = "/usr", .target = "/opt/x" } };
	const struct plan_file files[PREPARED_FILES_MAX + 1] = { { .name = "x" } };
	struct provision v = { .binds = binds, .n_binds = PREPARED_BINDS_MAX, .files = files };
	struct prepared p = { .plan = { .step = "run", .n_binds = 0 } };
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	assert_int_equal(prepared_provide(&p, &v, true, &err), 0);
	assert_int_equal(p.plan.n_binds, PREPARED_BINDS_MAX);
	v.n_binds = 1;
	assert_int_equal(prepared_provide(&p, &v, true, &err), -BRIG_E_REFUSED);
	assert_int_equal(p.plan.n_binds, PREPARED_BINDS_MAX);
	assert_non_null(strstr(err.msg, "fewer packages"));
	p = (struct prepared){ .plan = { .step = "compile", .n_files = 1 } };
	v = (struct provision){ .files = files, .n_files = PREPARED_FILES_MAX };
	assert_int_equal(prepared_provide(&p, &v, false, &err), -BRIG_E_REFUSED);
	assert_int_equal(p.plan.n_files, 1);
	/* A run is given none of them. */
	assert_int_equal(prepared_provide(&p, &v, true, &err), 0);
}

/* A child in namespaces of its own, which stays until the lifeline is closed. */
static pid_t start_in_namespace(const int lifeline[2])
{
	int ready[2];
	char word = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(lifeline[1]);
		if (unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0 && write(ready[1], "y", 1) == 1)
			(void)!read(lifeline[0], &word, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	if (read(ready[0], &word, 1) != 1)
		skip(); /* this host makes none for us, and so no cells */
	(void)close(ready[0]);
	return pid;
}

static void ids_come_from_numbers_that_do_not_repeat(void **state)
{
	struct idmap ids;
	uint64_t pair, mine, again;
	int lifeline[2];
	pid_t first, second;

	(void)state;
	assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
	first = start_in_namespace(lifeline);
	second = start_in_namespace(lifeline);
	assert_int_equal(proc_ns_number(first, "uts", &mine), 0);
	assert_int_equal(proc_ns_number(second, "uts", &again), 0);
	assert_true(mine != again);
	assert_int_equal(proc_ns_number(first, "user", &again), 0);
	assert_true(mine != again); /* one allocator for all kinds */
	(void)close(lifeline[1]);
	(void)waitpid(first, NULL, 0);
	(void)waitpid(second, NULL, 0);
	(void)close(lifeline[0]);
	assert_true(proc_ns_number(getpid(), "no-such", &mine) < 0);
	/* Root's own range is never gone through twice; a small one is. */
	ids = (struct idmap){ IDMAP_DIRECT, 0x70000000, 0x70000000, 0x07ff0000 };
	assert_int_equal(idmap_pair(&ids, 0x07ff0000 - 1, &pair), 0);
	assert_int_equal(pair, 0x07ff0000 - 1);
	assert_int_equal(idmap_pair(&ids, 0x07ff0000, &pair), -ERANGE);
	ids.pairs = 32768;
	assert_int_equal(idmap_pair(&ids, 32769, &pair), 0);
	assert_int_equal(pair, 1);
	ids.pairs = 0;
	assert_int_equal(idmap_pair(&ids, 0, &pair), -ERANGE);
}

static void add(struct findings *f, const char *rule)
{
	struct finding one = { .severity = SEVERITY_CRITICAL, .span = { (uint32_t)f->n, (uint32_t)f->n + 1 } };

	(void)strncpy(one.rule, rule, sizeof(one.rule) - 1);
	assert_true(findings_add(f, &one));
}

/* A rule of the user's own that says it is about the network is treated as the built-in ones are. */
static void network_is_a_property_of_rules(void **state)
{
	static const char text[] = "- id: my-client\n  languages: [python]\n  kind: module\n  names: [acme_client]\n"
				   "  network: true\n  severity: CRITICAL\n  message: talks to acme\n  remedy: do not\n"
				   "  match: [\"import acme_client\"]\n  no_match: [\"acme_client = 1\"]\n"
				   "- id: my-other\n  languages: [python]\n  kind: module\n  names: [acme_other]\n"
				   "  severity: CRITICAL\n  message: does harm\n  remedy: do not\n"
				   "  match: [\"import acme_other\"]\n  no_match: [\"acme_other = 1\"]\n";
	char path[] = "/tmp/test-rules-XXXXXX";
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *set = NULL;
	struct findings f = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
	assert_int_equal(rules_builtin(&set, &err), 0);
	if (rules_add_file(set, path, &err) < 0)
		fail_msg("%s", err.msg);
	(void)unlink(path);
	add(&f, "py-network");
	add(&f, "my-client");
	inspection_allow_network(set, &f);
	assert_int_equal(f.worst, SEVERITY_MEDIUM);
	add(&f, "my-other");
	inspection_allow_network(set, &f);
	assert_int_equal(f.worst, SEVERITY_CRITICAL);
	findings_release(&f);
	rules_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stdin_a_watch_without_a_cell_reads_nothing),
		cmocka_unit_test(drain_ends_at_its_deadline),
		cmocka_unit_test(binds_that_do_not_fit_are_refused),
		cmocka_unit_test(ids_come_from_numbers_that_do_not_repeat),
		cmocka_unit_test(network_is_a_property_of_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
