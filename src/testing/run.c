/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the command line of a framework, and its runner with the key. */
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/str.h"
#include "files/beneath.h"
#include "sys/crypto.h"
#include "testing/internal.h"

#define NAME_RANDOM 16
#define TRIES       8

extern const unsigned char runner_python_bytes[], runner_node_bytes[];
extern const size_t runner_python_size, runner_node_size;

static const char *const python_env[] = { "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1",
					  NULL };
/* a cell does not allow io_uring, so libuv need not try it */
static const char *const node_env[] = { "UV_USE_IO_URING=0", "NO_COLOR=1", "CI=1", NULL };
/*
 * Test programs are executed in the folder where they are built, and /tmp is not executable; other files can be there.
 */
static const char *const go_env[] = {
	"GOCACHE=/tmp/go-build", "GOPATH=/tmp/go",    "GOTMPDIR=" PLAN_WORKSPACE, "GOENV=off", "GO111MODULE=on",
	"GOPROXY=off",           "GOTOOLCHAIN=local", "GOTELEMETRY=off",          NULL
};

/* How each runner is staged in the cell: */
static const struct {
	const char *ending, *comment;
	const unsigned char *bytes;
	const size_t *size;
	const char *const *env;
} runners[] = {
	[RUNNER_PYTHON] = { ".py", "#", runner_python_bytes, &runner_python_size, python_env },
	[RUNNER_NODE] = { ".cjs", "//", runner_node_bytes, &runner_node_size, node_env },
	[RUNNER_GO] = { NULL, NULL, NULL, NULL, go_env },
};

static bool is_free(int project, const char *name)
{
	return beneath_look(project, name, NULL) == -ENOENT;
}

/* Makes random file names that do not exist in the project. */
static int make_names(int project, const struct framework *f, struct test_run *t, struct brig_error *err)
{
	char id[NAME_RANDOM + 1];

	for (int i = 0; i < TRIES; i++) {
		if (id_random(id, NAME_RANDOM) < 0)
			return err_set(err, BRIG_E_SYSTEM, 0, "the kernel gives no random numbers");
		(void)snprintf(t->name[0], TEST_NAME_MAX, ".brig-%s%s", id, runners[f->runner].ending);
		(void)snprintf(t->name[1], TEST_NAME_MAX, ".brig-%s.report", id);
		(void)snprintf(t->name[2], TEST_NAME_MAX, ".brig-%s.report.reporter.cjs", id);
		if (is_free(project, t->name[0]) && is_free(project, t->name[1]) && is_free(project, t->name[2])) {
			for (t->n_ours = 0; t->n_ours < ARRAY_LEN(t->ours); t->n_ours++)
				t->ours[t->n_ours] = t->name[t->n_ours];
			return 0;
		}
	}
	return err_set(err, BRIG_E_SYSTEM, 0, "no name is free for the test runner in the workspace");
}

static int make_runner(const struct framework *f, struct test_run *t, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(*runners[f->runner].size + 128);
	uint8_t key[SHA256_LEN];

	if (crypto_random(key, sizeof(key)) < 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the kernel gives no random numbers");
	(void)hex_put(t->key, key, sizeof(key));
	crypto_wipe(key, sizeof(key));
	buf_add(&text, runners[f->runner].bytes, *runners[f->runner].size);
	buf_addf(&text, "%s key:%s\n", runners[f->runner].comment, t->key);
	t->file = (struct plan_file){ .name = t->name[0], .len = text.len, .mode = 0644 };
	t->text = buf_take(&text);
	t->file.data = t->text;
	return t->text ? 0 : err_nomem(err);
}

static void add_words(struct test_run *t, const char *const *words)
{
	size_t n = 0;

	while (t->argv[n])
		n++;
	for (; *words && n + 1 < TEST_ARGS_MAX; words++)
		t->argv[n++] = *words;
}

static int prepare_go(int project, const char *path, struct test_run *t, struct brig_error *err)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	struct stat st = { .st_mode = S_IFDIR };
	int fd = path ? beneath_look(project, path, &st) : -1;

	if (fd >= 0)
		(void)close(fd);
	if (is_free(project, "go.mod"))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "Go's tests need a go.mod at the top of the workspace: go mod init NAME");
	if (!path)
		(void)str_copy(t->path, sizeof(t->path), "./...");
	else if (S_ISDIR(st.st_mode))
		(void)snprintf(t->path, sizeof(t->path), "./%.4000s/...", path);
	else /* go tests a file together with its package */
		(void)snprintf(t->path, sizeof(t->path), "./%.*s", slash ? (int)(slash - path) : 0, path);
	t->on_stdout = true;
	if (!t->has_links)
		go_source_find_all(project, t, &t->declared);
	add_words(t, (const char *const[]){ "test", "-json", t->path, NULL });
	return 0;
}

static int prepare_runner(int project, const struct framework *f, bool exact, const char *path, struct test_run *t,
			  struct brig_error *err)
{
	static const char *const python_flags[] = { "-I", "-u", "-B", NULL };
	int rc = make_names(project, f, t, err);

	if (rc == 0)
		rc = make_runner(f, t, err);
	if (rc < 0)
		return rc;
	if (f->runner == RUNNER_PYTHON)
		add_words(t, python_flags);
	if (path)
		(void)str_copy(t->path, sizeof(t->path), path);
	/* Only inside the cell is it known whether pytest is installed. */
	add_words(t, (const char *const[]){ t->name[0], f->runner == RUNNER_PYTHON && !exact ? "any" : f->name,
					    t->name[1], path ? t->path : NULL, NULL });
	return 0;
}

int testing_find(int project, const char *wanted, const char *path, struct test_run *ret, struct brig_error *err)
{
	const struct framework *f = NULL;
	char clean[PATH_MAX];
	int rc;

	*ret = (struct test_run){ .language = NULL };
	if (path) {
		rc = tests_clean_path(project, path, clean, sizeof(clean), err);
		if (rc < 0)
			return rc;
		path = *clean ? clean : NULL; /* NULL for the project itself */
	}
	rc = tests_choose(project, wanted, path, &f, err);
	if (rc < 0)
		return rc;
	(void)str_copy(ret->framework, sizeof(ret->framework), f->name);
	ret->language = f->language;
	ret->env = runners[f->runner].env;
	rc = tests_list_files(project, ret, err);
	if (rc < 0)
		return rc;
	if (f->runner == RUNNER_GO)
		return prepare_go(project, path, ret, err);
	return prepare_runner(project, f, wanted && framework_by_name(wanted), path, ret, err);
}

void test_run_release(struct test_run *t)
{
	go_source_release(&t->declared);
	free(t->text);
	t->text = NULL;
	for (size_t i = 0; i < t->n_files; i++)
		free(t->files[i]);
	free(t->files);
	t->files = NULL;
	t->n_files = t->files_cap = 0;
}
