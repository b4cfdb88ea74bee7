/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a job and back, and everything that is no job. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "model/job.h"

static const char *const argv_words[] = { "/usr/bin/python3", "/workspace/main.py", NULL };
static const char *const envp_words[] = { "PATH=/usr/bin", "EMPTY=", NULL };
static const struct plan_file file = { .name = "main.py", .mode = 0644 };
static const struct plan_file files[] = { { .name = "main.py", .mode = 0644, .data = "pass", .len = 4 },
					  { .name = "a/empty", .mode = 0600, .data = "", .len = 0 },
					  { .name = "b", .mode = 0755, .data = "xyz", .len = 3 } };
static const struct plan_file certificates = { .data = "PEM", .len = 3 };
static const struct plan_egress egress = { .place = { { 0x7f000001, 3128, false }, { 0x7f000001, 53, true } },
					   .n_places = 2,
					   .certificates = &certificates };
static const struct plan_bind binds[] = { { .source = "/var/lib/x", .target = "/opt/x", .same_as = NULL },
					  { .source = "/var/lib/y", .target = "/opt/y", .same_as = "/opt/x" } };

static struct plan sample(void)
{
	return (struct plan){ .id = "abcdefghijklmnop",
			      .step = "run",
			      .language = "python",
			      .trust = TRUST_UNTRUSTED,
			      .limits = { .cpu_percent = 50, .memory_bytes = 512 * MiB, .pids = 64, .wall_ms = 30000 },
			      .rootfs = "",
			      .uid = 1000,
			      .gid = 1000,
			      .family = FAMILY_INTERPRETER,
			      .profile = SECCOMP_PROFILE_DEFAULT,
			      .workspace_exec = true,
			      .argv = argv_words,
			      .envp = envp_words,
			      .files = &file,
			      .n_files = 1,
			      .binds = binds,
			      .n_binds = ARRAY_LEN(binds),
			      .waits_at = "/workspace/main.py",
			      .may_degrade = PROT_BIT(PROT_time_ns) };
}

/* All that a job can carry, for a cell that is made for it. */
static struct plan large_sample(void)
{
	static const struct plan_bind checked[] = {
		{ .source = "/srv/x", .target = "/opt/x", .checked = true, .fd = 7 },
		{ .source = "/srv/y", .target = "/opt/y" },
		{ .source = "/srv/z", .target = "/opt/z", .checked = true, .fd = 8 }
	};
	struct plan plan = sample();

	plan.waits_at = NULL;
	plan.start_at_once = plan.wants_view = true;
	plan.files = files;
	plan.n_files = ARRAY_LEN(files);
	plan.binds = checked;
	plan.n_binds = ARRAY_LEN(checked);
	plan.egress = &egress;
	return plan;
}

static const char *const hidden[] = { ".env", "keys/id" }, *const held[] = { "tests/test_a.py" };
static const struct plan_workspace project = { .fd = 7,
					       .path = "/srv/project",
					       .read_only = true,
					       .hidden = hidden,
					       .n_hidden = ARRAY_LEN(hidden),
					       .held = held,
					       .n_held = ARRAY_LEN(held),
					       .covered = "main.py" };
static struct plan project_sample(void)
{
	struct plan plan = large_sample();

	plan.workspace = &project;
	return plan;
}

static void encode(const struct plan *plan, struct buf *ret)
{
	struct brig_error err = BRIG_ERROR_INIT;

	assert_int_equal(job_encode(plan, ret, &err), 0);
}

static void comes_back(void **state)
{
	AUTO_BUF b = BUF_INIT(0);
	const struct plan plan = sample();
	AUTO_FREE struct job *job = NULL;

	(void)state;
	encode(&plan, &b);
	job = job_decode(b.data, b.len);
	assert_non_null(job);
	assert_string_equal(job->plan.id, plan.id);
	assert_string_equal(job->plan.argv[1], argv_words[1]);
	assert_null(job->plan.argv[2]);
	assert_string_equal(job->plan.envp[1], "EMPTY=");
	assert_null(job->plan.envp[2]);
	assert_memory_equal(&job->plan.limits, &plan.limits, sizeof(plan.limits));
	assert_int_equal(job->plan.family, plan.family);
	assert_int_equal(job->plan.may_degrade, plan.may_degrade);
	assert_string_equal(job->plan.waits_at, plan.waits_at);
	assert_null(job->plan.output);
	assert_null(job->plan.warm);
	assert_string_equal(job->plan.files[0].name, "main.py");
	assert_int_equal(job->plan.files[0].mode, 0644);
	assert_int_equal(job->plan.n_binds, 2);
	assert_null(job->plan.binds[0].same_as);
	assert_string_equal(job->plan.binds[1].same_as, "/opt/x");
}

static void a_large_one_comes_back(void **state)
{
	AUTO_BUF b = BUF_INIT(0);
	const struct plan plan = large_sample();
	AUTO_FREE struct job *job = NULL;

	(void)state;
	encode(&plan, &b);
	job = job_decode(b.data, b.len);
	assert_non_null(job);
	assert_true(job->plan.start_at_once && job->plan.wants_view);
	assert_int_equal(job->plan.n_files, 3);
	assert_int_equal(job_bind_fds(job), 2);
	assert_true(job->plan.binds[0].checked && !job->plan.binds[1].checked);
	assert_int_equal(job->plan.binds[0].fd, -1); /* not the sender's number */
	assert_int_equal(job->plan.egress->n_places, 2);
	assert_memory_equal(&job->plan.egress->place[1], &egress.place[1], sizeof(egress.place[1]));
	assert_true(job_set_contents(job, "passxyzPEM", 10));
	assert_memory_equal(job->plan.files[0].data, "pass", 4);
	assert_memory_equal(job->plan.files[2].data, "xyz", 3);
	assert_memory_equal(job->plan.egress->certificates->data, "PEM", 3);
}

static void a_project_comes_back(void **state)
{
	static const char contents[] = "passxyzPEM"
				       ".env\0keys/id\0tests/test_a.py";
	AUTO_BUF b = BUF_INIT(0);
	const struct plan plan = project_sample();
	struct job *job;
	const struct plan_workspace *w;

	(void)state;
	encode(&plan, &b);
	job = job_decode(b.data, b.len);
	assert_non_null(job);
	w = job->plan.workspace;
	assert_int_equal(w->fd, -1); /* not the sender's number */
	assert_true(job_set_contents(job, contents, sizeof(contents)));
	assert_true(w->read_only);
	assert_string_equal(w->path, project.path);
	assert_string_equal(w->covered, "main.py");
	assert_int_equal(w->n_hidden, 2);
	assert_string_equal(w->hidden[1], "keys/id");
	assert_int_equal(w->n_held, 1);
	assert_string_equal(w->held[0], "tests/test_a.py");
	job_destroy(job);
}

/* Names that no tree has, fewer or more of them, or without an end. */
static void paths_that_are_none(void **state)
{
	static const char *const rows[] = { "/env\0keys/id\0tests/test_a.py",  "..\0v\0keys/id\0tests/test_a.py",
					    ".env\0keys//d\0tests/test_a.py",  ".env\0keys/id\0tests/../abc.py",
					    ".env\0keys/id\0tests/test\0a.py", ".env.keys/id\0tests/test_a.py",
					    "\0env\0keys/id\0tests/test_a.py" };
	char contents[] = "passxyzPEM"
			  ".env\0keys/id\0tests/test_a.py";
	const size_t before = strlen("passxyzPEM"), size = sizeof(contents) - before;
	AUTO_BUF b = BUF_INIT(0);
	const struct plan plan = project_sample();

	(void)state;
	encode(&plan, &b);
	for (size_t i = 0; i < ARRAY_LEN(rows) + 2; i++) {
		struct job *job = job_decode(b.data, b.len);

		if (i < ARRAY_LEN(rows))
			memcpy(contents + before, rows[i], size);
		else
			memcpy(contents + before, ".env\0keys/id\0tests/test_a.py", size);
		if (i == ARRAY_LEN(rows))
			contents[sizeof(contents) - 1] = 'x';
		assert_non_null(job);
		assert_int_equal(job_set_contents(job, contents, sizeof(contents)), i > ARRAY_LEN(rows));
		job_destroy(job);
	}
}

/* Contents of any other size are not the job's. */
static void contents_must_fit(void **state)
{
	AUTO_BUF b = BUF_INIT(0);
	const struct plan plan = large_sample();

	(void)state;
	encode(&plan, &b);
	for (size_t size = 0; size < 20; size++) {
		AUTO_FREE struct job *job = job_decode(b.data, b.len);

		assert_non_null(job);
		assert_int_equal(job_set_contents(job, "passxyzPEM", size), size == 10);
	}
}

/* The id makes no kind; everything else does. */
static void kinds_differ(void **state)
{
	AUTO_BUF a = BUF_INIT(0), b = BUF_INIT(0), c = BUF_INIT(0);
	struct plan plan = sample();
	AUTO_FREE struct job *one = NULL, *same = NULL, *other = NULL;

	(void)state;
	encode(&plan, &a);
	memcpy(plan.id, "bbbbbbbbbbbbbbbb", RUN_ID_LEN);
	encode(&plan, &b);
	plan.limits.memory_bytes++;
	encode(&plan, &c);
	one = job_decode(a.data, a.len);
	same = job_decode(b.data, b.len);
	other = job_decode(c.data, c.len);
	assert_true(job_same_kind(one, same));
	assert_false(job_same_kind(one, other));
}

/* Cut anywhere, longer by a byte, or with any byte changed: never more than "no job", and never read outside. */
static void damage(const struct plan *plan)
{
	AUTO_BUF b = BUF_INIT(0);

	encode(plan, &b);
	for (size_t len = 0; len < b.len; len++) {
		AUTO_FREE char *exact = malloc(len + 1);

		memcpy(exact, b.data, len);
		assert_null(job_decode(exact, len));
	}
	for (size_t at = 0; at < b.len; at++)
		for (int bit = 0; bit < 8; bit++) {
			AUTO_FREE char *copy = malloc(b.len);
			AUTO_FREE struct job *job = NULL;

			memcpy(copy, b.data, b.len);
			copy[at] = (char)(copy[at] ^ 1 << bit);
			job = job_decode(copy, b.len); /* some are jobs; the sanitizers watch */
			assert_true(!job || job->plan.argv[0]);
		}
	(void)buf_add(&b, "", 1);
	assert_null(job_decode(b.data, b.len));
}

static void damage_is_no_job(void **state)
{
	const struct plan small = sample(), large = large_sample(), with_project = project_sample();

	(void)state;
	damage(&small);
	damage(&large);
	damage(&with_project);
}

/* A number that is no value of its type. */
static void wrong_values(void **state)
{
	struct plan wrong[] = { sample(), sample(), sample(), large_sample(), sample() };

	(void)state;
	wrong[0].trust = TRUST_COUNT;
	wrong[1].family = FAMILY_COUNT;
	wrong[2].profile = SECCOMP_PROFILE_COUNT;
	wrong[3].waits_at = "/workspace/main.py"; /* and starts at once */
	wrong[4].workspace = &project;            /* and waits */
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		AUTO_BUF b = BUF_INIT(0);

		encode(&wrong[i], &b);
		assert_null(job_decode(b.data, b.len));
	}
}

static void beyond_a_job(void **state)
{
	static const struct plan_workspace workspace = { .path = "", .n_hidden = JOB_PATHS_MAX, .n_held = 1 };
	static const struct plan_egress far = { .n_places = EGRESS_PLACES_MAX + 1 };
	struct plan plans[] = { sample(), sample(), sample(), sample(), sample() };
	char *long_word = malloc(JOB_MAX + 1);
	const char *words[] = { long_word, NULL };

	(void)state;
	memset(long_word, 'x', JOB_MAX);
	long_word[JOB_MAX] = '\0';
	plans[0].workspace = &workspace;
	plans[1].n_binds = JOB_BINDS_MAX + 1;
	plans[2].n_files = JOB_FILES_MAX + 1;
	plans[3].argv = words;
	plans[4].egress = &far;
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		AUTO_BUF b = BUF_INIT(0);
		struct brig_error err = BRIG_ERROR_INIT;

		assert_int_equal(job_encode(&plans[i], &b, &err), -BRIG_E_USAGE);
		assert_true(strlen(err.msg) > 0);
	}
	free(long_word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_one_comes_back),
		cmocka_unit_test(contents_must_fit),
		cmocka_unit_test(a_project_comes_back),
		cmocka_unit_test(paths_that_are_none),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(kinds_differ),
		cmocka_unit_test(damage_is_no_job),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(beyond_a_job),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
