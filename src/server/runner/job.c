/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - conversion of a message into a request for the library
 *
 * The message has been validated as a message; whether the request is valid is for the library to check
 * (brig_request_check).  Only what the library cannot know is checked here: the route, and the kinds of descriptors.
 */
#include "server/runner/job.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

/* ---- lists ------------------------------------------------------------------------------------------ */

static const char *const *take_list(struct job *job, enum field f, size_t *at, size_t *ret_n)
{
	const char **list = job->strings + *at;

	*ret_n = message_count(&job->m, f);
	message_texts(&job->m, f, list);
	*at += *ret_n;
	return *ret_n > 0 ? list : NULL;
}

static int read_lists(struct job *job, struct brig_error *err)
{
	struct brig_request *req = &job->req;
	size_t at = 0, n = message_count(&job->m, FIELD_arg) + message_count(&job->m, FIELD_variable) +
			   message_count(&job->m, FIELD_package) + message_count(&job->m, FIELD_warm) +
			   message_count(&job->m, FIELD_artifact) + message_count(&job->m, FIELD_hidden) +
			   message_count(&job->m, FIELD_source);

	job->strings = calloc(n + 1, sizeof(*job->strings));
	if (!job->strings)
		return err_nomem(err);
	req->args = take_list(job, FIELD_arg, &at, &req->n_args);
	req->env = take_list(job, FIELD_variable, &at, &req->n_env);
	req->packages = take_list(job, FIELD_package, &at, &req->n_packages);
	job->env.warm = take_list(job, FIELD_warm, &at, &job->env.n_warm);
	req->artifacts = take_list(job, FIELD_artifact, &at, &req->n_artifacts);
	req->hidden = take_list(job, FIELD_hidden, &at, &req->n_hidden);
	req->sources = take_list(job, FIELD_source, &at, &req->n_sources);
	return 0;
}

/* Splits "key=value" in the job's own copy. */
static int read_options(struct job *job, const struct brig_option *settings, size_t n_settings, struct brig_error *err)
{
	size_t n = message_count(&job->m, FIELD_option);
	AUTO_FREE const char **texts = calloc(n + 1, sizeof(*texts));

	job->options = calloc(n_settings + n + 1, sizeof(*job->options));
	if (!texts || !job->options)
		return err_nomem(err);
	for (size_t i = 0; i < n_settings; i++)
		job->options[job->n_options++] = settings[i];
	message_texts(&job->m, FIELD_option, texts);
	for (size_t i = 0; i < n; i++) {
		char *key = job->bytes + (texts[i] - job->m.bytes), *equals = strchr(key, '=');

		if (!equals || equals == key)
			return err_set(err, BRIG_E_USAGE, 0, "option '%.80s' has no key or no value", key);
		*equals = '\0';
		job->options[job->n_options++] = (struct brig_option){ key, equals + 1 };
	}
	return 0;
}

void job_wish_backend(struct job *job, const char *name)
{
	(void)str_copy(job->backend, sizeof(job->backend), name);
	job->options[job->n_options++] = (struct brig_option){ "backend", job->backend };
	job->req.options = job->options;
	job->req.n_options = job->n_options;
}

void job_lower(struct job *job, size_t from, const char *key, uint64_t most, size_t which)
{
	uint64_t n;

	for (size_t i = from; i < job->n_options; i++)
		if (str_eq(job->options[i].key, key) && str_to_u64(job->options[i].value, &n) && n > most && most > 0) {
			(void)snprintf(job->lowered[which], sizeof(job->lowered[which]), "%llu",
				       (unsigned long long)most);
			job->options[i].value = job->lowered[which];
		}
}

void job_leave(struct job *job, size_t from, const char *const *names, size_t n)
{
	bool is_said = false;
	size_t left = from;

	for (size_t i = 0; i < from; i++)
		for (size_t k = 0; k < n; k++)
			is_said |= str_eq(job->options[i].key, names[k]);
	for (size_t i = from; i < job->n_options; i++)
		if (!is_said || !str_eq(job->options[i].key, names[0]))
			job->options[left++] = job->options[i];
	job->n_options = left;
	job->req.n_options = left;
}

const char *job_wish(const struct job *job, const char *const *names, size_t n, size_t *ret_which)
{
	for (size_t i = job->n_options; i-- > 0;)
		for (size_t k = 0; k < n; k++)
			if (str_eq(job->options[i].key, names[k])) {
				*ret_which = k;
				return job->options[i].value;
			}
	return NULL;
}

const struct brig_environment *job_environment(struct job *job)
{
	struct brig_environment *env = &job->env;
	const struct brig_request *req = &job->req;

	env->language = req->language;
	env->packages = req->packages;
	env->n_packages = req->n_packages;
	env->trust = req->trust;
	env->options = req->options;
	env->n_options = req->n_options;
	env->id = req->id;
	env->who = req->who;
	env->user = req->user;
	env->on_notice = req->on_notice;
	env->on_started = req->on_started;
	env->on_trace = req->on_trace;
	return env;
}

/* ---- the request --------------------------------------------------------------------------------------- */

/*
 * Clients or a compromised front choose the descriptors, and one on which the runner blocks would block all clients.
 * So each must be of a kind that cannot block: a sealed file in memory, a socket (which the library reads without
 * blocking, whatever its flags), or a file in memory to write to.  Regular files are refused, since they may be on
 * FUSE.
 */
static bool is_sealed(int fd)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & wanted) == wanted;
}

/* The sender shares the open file description and could move its offset, so the file is opened again. */
static int open_anew(int *fd)
{
	char path[64];
	int own;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	own = open(path, O_RDONLY | O_CLOEXEC);
	if (own < 0)
		return -errno;
	(void)close(*fd);
	*fd = own;
	return 0;
}

static int check_archive(int *fd, const char *what, struct brig_error *err)
{
	struct stat st;
	int rc;

	if (*fd < 0)
		return 0;
	if (!is_sealed(*fd) || fstat(*fd, &st) < 0)
		return err_set(err, BRIG_E_USAGE, 0, "%s is no sealed file in memory", what);
	if ((uint64_t)st.st_size > JOB_FILES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "%s has more than %llu MB", what,
			       (unsigned long long)(JOB_FILES_MAX / MiB));
	rc = open_anew(fd);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot open %s", what) : 0;
}

static int check_writable(int fd, const char *what, struct brig_error *err)
{
	return fd < 0 || fcntl(fd, F_GET_SEALS) >= 0 ? 0
						     : err_set(err, BRIG_E_USAGE, 0, "%s is no file in memory", what);
}

int job_check_descriptors(struct job_descriptors *beside, struct brig_error *err)
{
	struct stat st;
	int rc = check_archive(&beside->files, "the archive of the request's files", err);

	if (rc == 0)
		rc = check_archive(&beside->project, "the packed project", err);
	if (rc == 0 && beside->input >= 0 && (fstat(beside->input, &st) < 0 || !S_ISSOCK(st.st_mode)))
		rc = err_set(err, BRIG_E_USAGE, 0, "the program's input is no socket");
	if (rc == 0)
		rc = check_writable(beside->out, "the place for artifacts", err);
	return rc < 0 ? rc : check_writable(beside->left, "the place for the workspace", err);
}

/* Rewinds it: 0 or -code. */
static int use_archive(struct job *job, int fd, int *ret, struct brig_error *err)
{
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot read the request's files");
	job->held += (uint64_t)st.st_size;
	*ret = fd;
	return 0;
}

/* The descriptors have been checked, or come from the runner itself. */
static int use_descriptors(struct job *job, struct brig_error *err)
{
	int rc = use_archive(job, job->files, &job->req.files_fd, err);

	if (rc == 0)
		rc = use_archive(job, job->project, &job->req.project_fd, err);
	if (job->input >= 0)
		job->req.stdin_fd = job->input;
	if (job->out >= 0)
		job->req.out_fd = job->out;
	if (job->left >= 0)
		job->req.left_fd = job->left;
	return rc;
}

static int read_kind(struct job *job, enum route route, struct brig_error *err)
{
	uint64_t usual = route == ROUTE_tests ? BRIG_KIND_TESTS : BRIG_KIND_CODE, kind;

	if (route == ROUTE_command)
		usual = message_has(&job->m, FIELD_code) ? BRIG_KIND_SHELL : BRIG_KIND_COMMAND;
	kind = message_number(&job->m, FIELD_kind, usual);
	if (kind > BRIG_KIND_TESTS)
		return err_set(err, BRIG_E_USAGE, 0, "kind %llu is not known", (unsigned long long)kind);
	if ((route == ROUTE_command && kind != BRIG_KIND_SHELL && kind != BRIG_KIND_COMMAND) ||
	    (route == ROUTE_tests && kind != BRIG_KIND_TESTS))
		return err_set(err, BRIG_E_USAGE, 0, "kind does not go with %s: POST it to %s", route_rows[route].path,
			       route_rows[ROUTE_execute].path);
	job->req.kind = (uint32_t)kind;
	return 0;
}

static void read_plain(struct job *job)
{
	const struct message *m = &job->m;
	struct brig_request *req = &job->req;

	req->language = message_text(m, FIELD_language);
	req->file_name = message_text(m, FIELD_file_name);
	req->trust = message_text(m, FIELD_trust);
	req->environment = message_text(m, FIELD_environment);
	req->test_path = message_text(m, FIELD_test_path);
	req->source_path = message_text(m, FIELD_source_path);
	req->code = message_bytes(m, FIELD_code, &req->code_len);
	req->stdin_data = message_bytes(m, FIELD_input, &req->stdin_len);
	req->flags = (message_number(m, FIELD_receipt, 0) ? BRIG_RUN_RECEIPT : 0) |
		     (message_number(m, FIELD_no_capture, 0) ? BRIG_RUN_NO_CAPTURE : 0) |
		     (message_number(m, FIELD_project_packages, 0) ? BRIG_RUN_PROJECT_PACKAGES : 0);
	req->options = job->options;
	req->n_options = job->n_options;
	if (req->n_artifacts > 0 || message_has(m, FIELD_inline_artifacts))
		req->inline_artifacts = min_u64(message_number(m, FIELD_inline_artifacts, INLINE_ARTIFACTS_DEFAULT),
						INLINE_ARTIFACTS_MAX);
}

static const char *const everything[] = { "**" };

static int fill(struct job *job, const struct message *m, enum route route, const struct brig_option *settings,
		size_t n_settings, struct brig_error *err)
{
	int rc;

	job->bytes = malloc(m->len + 1);
	if (!job->bytes)
		return err_nomem(err);
	memcpy(job->bytes, m->bytes, m->len);
	job->m = *m; /* offsets of fields are the same */
	job->m.bytes = job->bytes;
	job->held = m->len;
	job->req = (struct brig_request)BRIG_REQUEST_INIT;
	job->env = (struct brig_environment)BRIG_ENVIRONMENT_INIT;
	if ((rc = read_lists(job, err)) < 0 || (rc = read_options(job, settings, n_settings, err)) < 0 ||
	    (rc = read_kind(job, route, err)) < 0)
		return rc;
	read_plain(job);
	if (route == ROUTE_environment_make) {
		job->env.name = job->req.environment ? job->req.environment : "";
		if (!job->req.language)
			job->req.language = "python";
	}
	if (message_number(m, FIELD_keep, 0) && job->req.n_artifacts == 0) {
		job->req.artifacts = everything; /* all files that were changed */
		job->req.n_artifacts = ARRAY_LEN(everything);
	}
	if (job->files >= 0 && message_number(m, FIELD_diff, 0))
		job->req.flags |= BRIG_RUN_DIFF;
	return use_descriptors(job, err);
}

int job_new(const struct message *m, enum route route, struct job_descriptors *beside,
	    const struct brig_option *settings, size_t n_settings, struct job **ret, struct brig_error *err)
{
	struct job *job = calloc(1, sizeof(*job));
	int rc;

	if (!job)
		return err_nomem(err);
	job->files = fd_move(&beside->files);
	job->input = fd_move(&beside->input);
	job->out = fd_move(&beside->out);
	job->project = fd_move(&beside->project);
	job->left = fd_move(&beside->left);
	rc = fill(job, m, route, settings, n_settings, err);
	if (rc < 0) {
		job_free(job);
		return rc;
	}
	*ret = job;
	return 0;
}

int job_highest_fd(const struct job *job)
{
	const int fds[] = { job->files, job->input, job->out, job->project, job->left };
	int highest = FD_NONE;

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		highest = fds[i] > highest ? fds[i] : highest;
	return highest;
}

void job_free(struct job *job)
{
	if (!job)
		return;
	free(job->bytes);
	free(job->strings);
	free(job->options);
	fd_closep(&job->files);
	fd_closep(&job->input);
	fd_closep(&job->out);
	fd_closep(&job->project);
	fd_closep(&job->left);
	free(job);
}
