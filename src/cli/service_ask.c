/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_ask.c - a request as a message, with descriptors
 *
 * The service accepts no descriptor that could block it (runner/job.c), so none of ours is sent itself: an archive is
 * copied to a memfd, artifacts come back in one, and the program's input goes through a socket that we fill.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/sealed.h"
#include "cli/service.h"
#include "server/message.h"
#include "server/routes.h"

#define ARCHIVE_MAX (512 * MiB)
#define INPUT_AHEAD (32 * (int)KiB) /* input that may be in transit: the rest stays with the caller */

static int make_file(const char *name, struct brig_error *err)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot make a file in memory") : fd;
}

int service_copy_archive(int *fd, struct brig_error *err)
{
	AUTO_FD copy = make_file("brig-files", err);
	AUTO_FREE char *piece = malloc(64 * KiB);
	uint64_t total = 0;
	ssize_t n;
	int rc;

	if (copy < 0)
		return fd_move(&copy);
	if (!piece)
		return err_nomem(err);
	do {
		n = fd_read_all(*fd, piece, 64 * KiB);
		if (n < 0)
			return err_set(err, BRIG_E_USAGE, (int)-n, "cannot read the archive of files");
		total += (uint64_t)n;
		if (total > ARCHIVE_MAX)
			return err_set(err, BRIG_E_USAGE, 0,
				       "the archive of files has more than %llu MB, which a service does "
				       "not take: use --local",
				       (unsigned long long)(ARCHIVE_MAX / MiB));
		if (fd_write_all(copy, piece, (size_t)n) < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot keep the archive of files in memory");
	} while (n == (ssize_t)(64 * KiB));
	rc = lseek(copy, 0, SEEK_SET) < 0 ? -errno : sealed_close(copy);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot keep the archive of files in memory");
	*fd = fd_move(&copy);
	return 0;
}

/* Keeps a descriptor to be sent; the message announces it. */
static void add_descriptor(struct service_ask *a, enum field announces, int fd)
{
	message_put_number(&a->message, announces, 1);
	a->fds[a->n_fds++] = fd;
}

static int add_input(struct service_ask *a, struct brig_error *err)
{
	const int ahead = INPUT_AHEAD;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a socket for the program's input");
	(void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &ahead, sizeof(ahead));
	a->input = ends[0];
	add_descriptor(a, FIELD_has_input_fd, ends[1]);
	return 0;
}

/* A memfd: we keep *ret, and the service gets a duplicate. */
static int add_file(struct service_ask *a, enum field announces, const char *name, int *ret, struct brig_error *err)
{
	int copy;

	*ret = make_file(name, err);
	copy = *ret < 0 ? FD_NONE : fcntl(*ret, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (copy < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a file in memory for what comes back");
	add_descriptor(a, announces, copy);
	return 0;
}

/* Artifacts are taken from the workspace that comes back. */
static int add_folders(struct service_ask *a, const struct brig_folders *folders, struct brig_error *err)
{
	int project = brig_folders_project(folders), copy;
	size_t n;
	const char *const *hidden = brig_folders_hidden(folders, &n);

	if (project >= 0) {
		copy = fcntl(project, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (copy < 0)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot hold the project");
		add_descriptor(a, FIELD_has_project, copy);
	}
	for (size_t i = 0; i < n; i++)
		message_put_text(&a->message, FIELD_hidden, hidden[i]);
	return add_file(a, FIELD_has_left, "brig-left", &a->left, err);
}

/* In the order in which the receiver takes them. */
static int add_descriptors(struct service_ask *a, struct brig_request *req, const struct brig_folders *folders,
			   struct brig_error *err)
{
	int rc = 0, copy;

	if (req->files_fd > 0) {
		rc = service_copy_archive(&req->files_fd, err);
		copy = rc == 0 ? fcntl(req->files_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : FD_NONE;
		if (rc == 0)
			add_descriptor(a, FIELD_has_files, copy);
	}
	if (rc == 0 && req->stdin_fd >= 0)
		rc = add_input(a, err);
	if (rc == 0 && folders)
		return add_folders(a, folders, err);
	if (rc == 0 && req->out_fd > 0)
		rc = add_file(a, FIELD_has_out_fd, "brig-artifacts", &a->out, err);
	return rc;
}

static void add_list(struct buf *m, enum field f, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		message_put_text(m, f, list[i]);
}

int service_ask_options(struct buf *m, const struct brig_option *option, size_t n, struct brig_error *err)
{
	for (size_t i = 0; i < n; i++) {
		AUTO_BUF text = BUF_INIT(m->max);

		buf_adds(&text, option[i].key);
		buf_adds(&text, "=");
		buf_adds(&text, option[i].value);
		if (text.no_memory)
			return err_nomem(err);
		message_put_text(m, FIELD_option, buf_str(&text));
	}
	return 0;
}

/* Detects invalid messages before they are sent. */
static int check_message(const struct buf *m, struct brig_error *err)
{
	struct message read;
	const char *why;

	if (m->no_memory)
		return err_nomem(err);
	if (m->full || !message_read(m->data, m->len, &read, &why))
		return err_set(err, BRIG_E_REFUSED, 0, "the request has %s, which a service does not take: use --local",
			       m->full ? "too many bytes" : why);
	return 0;
}

int service_ask_fill(struct service_ask *a, struct brig_request *req, const struct brig_folders *folders,
		     struct brig_error *err)
{
	struct buf *m = &a->message;
	int rc = add_descriptors(a, req, folders, err);

	if (rc < 0)
		return rc;
	message_put_number(m, FIELD_has_peer, 1);
	message_put_number(m, FIELD_route, ROUTE_execute);
	message_put_number(m, FIELD_stream, 1);
	message_put_number(m, FIELD_kind, req->kind);
	if (!folders)
		message_put_number(m, FIELD_inline_artifacts, req->inline_artifacts);
	if (req->flags & BRIG_RUN_NO_CAPTURE)
		message_put_number(m, FIELD_no_capture, 1);
	if (req->flags & BRIG_RUN_RECEIPT)
		message_put_number(m, FIELD_receipt, 1);
	if (req->flags & BRIG_RUN_PROJECT_PACKAGES)
		message_put_number(m, FIELD_project_packages, 1);
	message_put_text(m, FIELD_language, req->language);
	message_put_text(m, FIELD_file_name, req->file_name);
	message_put_text(m, FIELD_trust, req->trust);
	message_put_text(m, FIELD_environment, req->environment);
	if (req->code)
		message_put_bytes(m, FIELD_code, req->code, req->code_len);
	if (req->stdin_fd < 0 && req->stdin_data)
		message_put_bytes(m, FIELD_input, req->stdin_data, req->stdin_len);
	add_list(m, FIELD_arg, req->args, req->n_args);
	add_list(m, FIELD_variable, req->env, req->n_env);
	add_list(m, FIELD_package, req->packages, req->n_packages);
	if (!folders)
		add_list(m, FIELD_artifact, req->artifacts, req->n_artifacts);
	message_put_text(m, FIELD_test_path, req->test_path);
	message_put_text(m, FIELD_source_path, req->source_path);
	rc = service_ask_options(m, req->options, req->n_options, err);
	return rc < 0 ? rc : check_message(m, err);
}

int service_ask_check(struct service_ask *a, const struct brig_check *req, struct brig_error *err)
{
	struct buf *m = &a->message;

	message_put_number(m, FIELD_has_peer, 1);
	message_put_number(m, FIELD_route, ROUTE_inspect);
	message_put_text(m, FIELD_check_kind, req->kind);
	message_put_text(m, FIELD_language, req->language);
	message_put_text(m, FIELD_file_name, req->file_name);
	message_put_text(m, FIELD_trust, req->trust);
	message_put_text(m, FIELD_level, req->inspect);
	message_put_text(m, FIELD_rules, req->rules);
	message_put_number(m, FIELD_strict, req->strict ? 1 : 0);
	message_put_bytes(m, FIELD_text, req->text, req->len);
	return check_message(m, err);
}

void service_ask_release(struct service_ask *a)
{
	for (size_t i = 0; i < a->n_fds; i++)
		fd_closep(&a->fds[i]);
	fd_closep(&a->input);
	fd_closep(&a->out);
	fd_closep(&a->left);
	buf_release(&a->message);
}
