/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test run is a run of the framework whose verdict needs two sources to agree: how the process ended, according to
 * the kernel, and the report (src/testing). It is `ok` only if both say so. A run ended from outside (a limit, a crash,
 * the caller) keeps that verdict, and the report tells how far it came.
 */
#include "executor/tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

/* Exit codes for results whose process reported something else or nothing; the same for all frameworks. */
static const int outcome_code[TEST_OUTCOME_COUNT] = {
	[TESTS_OK] = 0,
	[TESTS_FAILED] = 1,
	[TESTS_INCOMPLETE] = 3,
	[TESTS_NONE] = 5,
};

/* The language, with the test tool in place of a program. */
static void make_language(struct tests *t)
{
	const struct language *base = lang_by_name(t->run.language);
	const struct lang_step *step = base->compiles ? &base->compile : &base->run;

	t->lang = *base;
	t->lang.compiles = false;
	t->lang.run = (struct lang_step){ .program = step->program,
					  .install = step->install,
					  /*
					   * A compiler's seccomp filter allows no sockets, but here the compiled tests
					   * run.
					   */
					  .family = base->compiles ? FAMILY_GENERIC : step->family,
					  .deny_write_exec = step->deny_write_exec };
	memcpy(t->lang.run.tool, step->tool, sizeof(step->tool));
	for (size_t i = 0; t->run.env && i < LANG_ENV_MAX && t->run.env[i]; i++)
		t->lang.run.env[i] = t->run.env[i];
}

int tests_find(const struct brig_request *req, int archive, struct tests **ret, struct brig_error *err)
{
	AUTO_FD project = archive >= 0 ? fcntl(archive, F_DUPFD_CLOEXEC, 0)
				       : open(req->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct tests *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(err);
	rc = project < 0 ? err_set(err, BRIG_E_REFUSED, errno, "workspace '%.200s' cannot be opened", req->workspace)
			 : testing_find(project, req->language, req->test_path, &t->run, err);
	if (rc < 0) {
		tests_free(t);
		return rc;
	}
	make_language(t);
	*ret = t;
	return 0;
}

void tests_free(struct tests *t)
{
	if (!t)
		return;
	test_run_release(&t->run);
	buf_release(&t->report);
	free(t);
}

static bool has_run(enum verdict v)
{
	return v != VERDICT_refused && v != VERDICT_blocked && v != VERDICT_failed;
}

/*
 * True if the key of the report is secret: brig holds it, too, and a program that sees brig's processes and has their
 * user id can read it there.
 */
static bool keeps_key(const struct stage *s)
{
	const protection_set either = PROT_BIT(PROT_pid_ns) | PROT_BIT(PROT_id_separation);

	return (s->result->degraded & either) != either;
}

static void conclude(struct stage *s, void *arg)
{
	struct result *res = s->result;
	struct tests *t = arg;
	char why[TEST_WHY_MAX];
	enum test_outcome outcome;

	if (!has_run(s->verdict))
		return;
	testing_read(&t->run, buf_str(&t->report), t->report.len, &res->tests, why);
	res->tests.held = s->backend->holds_files;
	res->tests.sealed &= keeps_key(s);
	if (t->run.on_stdout && t->keep_output) {
		buf_release(&res->out);
		res->out = t->report;
		t->report = (struct buf){ .max = 0 };
	}
	if (s->verdict != VERDICT_ok && s->verdict != VERDICT_error)
		return;
	outcome = testing_judge(&t->run, &res->tests, s->exit_code, why);
	s->verdict = outcome == TESTS_OK ? VERDICT_ok : VERDICT_error;
	s->exit_code = outcome_code[outcome];
	(void)str_copy(s->reason, sizeof(s->reason), outcome == TESTS_OK ? "" : why);
}

const struct plan_workspace *tests_workspace(struct tests *t, const struct plan_workspace *project)
{
	t->workspace = *project;
	t->workspace.held = (const char *const *)t->run.files;
	t->workspace.n_held = t->run.n_files;
	return &t->workspace;
}

/*
 * Not every backend can protect files. Without protection, a modified test file invalidates the report: the tests that
 * ran are not the project's.
 */
static void compare(struct stage *s, void *arg)
{
	const struct changes *c = &s->result->changes;
	const struct tests *t = arg;

	if (!s->result->tests.known || (s->verdict != VERDICT_ok && s->verdict != VERDICT_error))
		return;
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < t->run.n_files; k++) {
			if (c->row[i].kind == CHANGE_ADDED || !str_eq(c->row[i].path, t->run.files[k]))
				continue;
			s->result->tests.complete = false;
			s->verdict = VERDICT_error;
			s->exit_code = outcome_code[TESTS_INCOMPLETE];
			(void)snprintf(
				s->reason, sizeof(s->reason),
				"the tests changed the test file '%.200s' while they ran: what was run is not what "
				"the project has",
				t->run.files[k]);
			return;
		}
}

void tests_prepare(struct tests *t, struct stage *s)
{
	buf_release(&t->report);
	s->conclude = conclude;
	s->conclude_arg = t;
	s->on_changes = compare;
	s->ours = t->run.ours;
	s->n_ours = t->run.n_ours;
	if (t->run.on_stdout) {
		t->report.max = s->plan->limits.output_bytes;
		t->keep_output = s->keep_out != NULL;
		s->keep_out = &t->report;
		return;
	}
	t->report.max = TEST_REPORT_MAX + 1;
	s->collect = t->run.name[1];
	s->collect_anyway = true;
	s->collected = &t->report;
}
