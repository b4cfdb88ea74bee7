/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_files.c - descriptors, archives, batches and fields that no front would send */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/ustar.h"
#include "hostile.h"

/* ---- descriptors ------------------------------------------------------------------------------------------------------ */

/* As large as is said without a byte in it. */
int hollow(uint64_t size, enum seals how)
{
	static const int seals[] = {
		[SEALS_SOME] = F_SEAL_SHRINK | F_SEAL_GROW, [SEALS_ALL] = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
	};
	int fd = memfd_create("hollow", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || lseek(fd, (off_t)size - 1, SEEK_SET) < 0 || write(fd, "", 1) != 1 || lseek(fd, 0, SEEK_SET) < 0 ||
	    (how != SEALS_NONE && fcntl(fd, F_ADD_SEALS, seals[how]) < 0))
		return FD_NONE;
	return fd;
}

int archive_with(const char *path, const char *text)
{
	AUTO_BUF out = BUF_INIT(MiB);

	(void)ustar_add_file(&out, path, &(struct bytes){ text, strlen(text) });
	return ustar_to_file(&out);
}

static struct got send_as(enum field announced, int fd, const char *key)
{
	struct buf m;

	begin_shell(&m, mallory, "echo 1");
	message_put_number(&m, announced, 1);
	message_put_text(&m, FIELD_idempotency_key, key);
	if (announced == FIELD_has_out_fd)
		message_put_text(&m, FIELD_artifact, "*");
	return ask_with(&m, &fd, 1);
}

const char *row_no_archives(void)
{
	AUTO_FD open = hollow(4096, SEALS_NONE);
	AUTO_FD half = hollow(4096, SEALS_SOME);
	AUTO_FD huge = hollow((uint64_t)1 << 42, SEALS_ALL);
	const int kinds[] = { STDIN_FILENO,
			      STDERR_FILENO,
			      open,
			      half,
			      huge,
			      front->epoll,
			      front->listener[0].source.fd,
			      channel_fd(front->channel) };
	const char *why = NULL;

	for (size_t i = 0; i < ARRAY_LEN(kinds) && !why; i++) {
		/* With a key it is read whole before it is used. */
		AUTO_GOT keyed = send_as(FIELD_has_files, kinds[i], "files");
		AUTO_GOT plain = send_as(FIELD_has_files, kinds[i], NULL);
		struct buf m;

		begin(&m, ROUTE_workspace_put, mallory);
		message_put_number(&m, FIELD_has_files, 1);
		AUTO_GOT kept = ask_with(&m, &kinds[i], 1);
		if (keyed.status != 422 || plain.status != 422 || kept.status != 422)
			why = wrong("kind %zu: %d, %d, %d and not 422", i, keyed.status, plain.status, kept.status);
	}
	return why;
}

const char *row_no_streams(void)
{
	AUTO_FD memory = hollow(4096, SEALS_NONE);
	const int inputs[] = { STDIN_FILENO, memory, front->epoll };
	const int outs[] = { STDIN_FILENO, front->epoll, front->listener[0].source.fd };
	const char *why = NULL;

	for (size_t i = 0; i < ARRAY_LEN(inputs) && !why; i++) {
		AUTO_GOT g = send_as(FIELD_has_input_fd, inputs[i], NULL);
		why = expect(&g, 422);
	}
	for (size_t i = 0; i < ARRAY_LEN(outs) && !why; i++) {
		AUTO_GOT g = send_as(FIELD_has_out_fd, outs[i], NULL);
		why = expect(&g, 422);
	}
	return why;
}

/* It is answered, one way or another. */
const char *row_odd_streams(void)
{
	AUTO_FD full = hollow(4096, SEALS_ALL);
	AUTO_GOT to_full = send_as(FIELD_has_out_fd, full, NULL);
	AUTO_GOT of_listener = send_as(FIELD_has_input_fd, front->listener[0].source.fd, NULL);
	AUTO_GOT of_channel = send_as(FIELD_has_input_fd, front->master_source.fd, NULL);

	AUTO_FD large = hollow(300 * MiB, SEALS_ALL);
	AUTO_GOT keyed = send_as(FIELD_has_files, large, "large"); /* which takes a second to read */
	if (keyed.status != 422)
		return expect(&keyed, 422);
	return to_full.status < 0 || of_listener.status < 0 || of_channel.status < 0 ? "it is not answered" : NULL;
}

/* What was checked is what is run: the file cannot be changed, nor moved under who reads it. */
const char *row_archive_changes(void)
{
	AUTO_FD fd = archive_with("a.txt", "as it was sent");
	struct buf m;
	uint32_t tag;
	int got = 0;

	begin_shell(&m, mallory, "cat a.txt");
	message_put_number(&m, FIELD_has_files, 1);
	tag = put(&m, &fd, 1);
	if (write(fd, "x", 1) >= 0 || fcntl(fd, F_ADD_SEALS, 0) == 0)
		return "a sealed file can be changed";
	for (struct pollfd p = { .fd = channel_fd(front->channel), .events = POLLIN }; got == 0; got = poll(&p, 1, 0))
		if (lseek(fd, 512, SEEK_SET) != 512 || channel_flush(front->channel, NULL) < 0)
			return "the channel has ended";
	AUTO_GOT g = next_record();
	return g.tag == tag && is_ok(&g) && str_eq(member(&g, "stdout"), "as it was sent")
		       ? NULL
		       : wrong("%d, %s", g.status, member(&g, "verdict"));
}

/* ---- archives and batches that no front would send -------------------------------------------------------------------------- */

static int sealed_file(const struct buf *bytes)
{
	int fd = memfd_create("archive", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd_write_all(fd, bytes->data, bytes->len) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return FD_NONE;
	return fd;
}

static const char *put_workspace(struct buf *bytes, int status)
{
	AUTO_FD fd = sealed_file(bytes);
	struct buf m;

	begin(&m, ROUTE_workspace_put, mallory);
	message_put_number(&m, FIELD_has_files, 1);
	AUTO_GOT g = ask_with(&m, &fd, 1);
	return expect(&g, status);
}

const char *row_foul_archives(void)
{
	static const char *const paths[] = { "/etc/passwd", "../a", "a/../../b" };
	AUTO_BUF noise = BUF_INIT(MiB);
	AUTO_BUF many = BUF_INIT(8 * MiB);
	const char *why;
	char name[32];

	for (size_t i = 0; i < 4096; i++)
		(void)buf_adds(&noise, "noise");
	why = put_workspace(&noise, 422);
	for (size_t i = 0; i < ARRAY_LEN(paths) && !why; i++) {
		AUTO_BUF one = BUF_INIT(MiB);

		(void)ustar_add_file(&one, paths[i], &(struct bytes){ "x", 1 });
		(void)ustar_add_end(&one);
		why = put_workspace(&one, 422);
	}
	for (size_t i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof(name), "f%zu", i);
		(void)ustar_add_file(&many, name, &(struct bytes){ "", 0 });
	}
	(void)ustar_add_end(&many);
	return why ? why : put_workspace(&many, 422);
}

/* ---- names that lead out of the cell ------------------------------------------------------------------------------- */

/* A link in a head of tar, which knows no better than that it is one. */
static void add_link(struct buf *out, const char *path, const char *to)
{
	size_t at = out->len;
	unsigned sum = 0;

	(void)ustar_add_file(out, path, &(struct bytes){ "", 0 });
	out->data[at + 156] = '2';
	(void)snprintf(out->data + at + 157, 100, "%s", to);
	memset(out->data + at + 148, ' ', 8);
	for (size_t i = 0; i < USTAR_BLOCK; i++)
		sum += (unsigned char)out->data[at + i];
	(void)snprintf(out->data + at + 148, 8, "%06o", sum);
}

static const char *run_with_archive(struct buf *bytes)
{
	AUTO_FD fd = sealed_file(bytes);
	struct buf m;

	begin_shell(&m, mallory, "true");
	message_put_number(&m, FIELD_has_files, 1);
	AUTO_GOT g = ask_with(&m, &fd, 1);
	return g.status < 0 ? "the channel has ended" : NULL;
}

/* Whether they are refused or end within the cell: the drill looks for files of that name when all is over. */
const char *row_ways_out(void)
{
	static const struct {
		enum field field;
		const char *text;
	} names[] = { { FIELD_file_name, ESCAPE "-a" },
		      { FIELD_file_name, "../../../../../.." ESCAPE "-b" },
		      { FIELD_environment, "../serve/tokens" },
		      { FIELD_environment, ESCAPE "-c" },
		      { FIELD_artifact, "../../../../../../tmp/**" } };
	static const char *const paths[] = { ESCAPE "-d", "../../../../.." ESCAPE "-e", "link/brig-drill-escape-f" };
	const char *why = NULL;
	struct buf m;

	for (size_t i = 0; i < ARRAY_LEN(paths) && !why; i++) {
		AUTO_BUF bytes = BUF_INIT(MiB);

		add_link(&bytes, "link", "/tmp");
		(void)ustar_add_file(&bytes, paths[i], &(struct bytes){ "x", 1 });
		(void)ustar_add_end(&bytes);
		why = run_with_archive(&bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(names) && !why; i++) {
		begin(&m, ROUTE_execute, mallory);
		message_put_text(&m, FIELD_language, "shell");
		message_put_bytes(&m, FIELD_code, "true", 4);
		message_put_text(&m, names[i].field, names[i].text);
		AUTO_GOT g = ask(&m);
		if (g.status < 0 || is_ok(&g))
			why = wrong("'%s': %d, %s", names[i].text, g.status, member(&g, "verdict"));
	}
	return why;
}

static const char *send_job(const char *name, size_t len)
{
	AUTO_BUF job = BUF_INIT(MiB);
	struct buf m;

	message_put_bytes(&job, FIELD_job_id, name, len);
	message_put_number(&job, FIELD_kind, BRIG_KIND_SHELL);
	message_put_bytes(&job, FIELD_code, "echo 1", 6);
	begin(&m, ROUTE_batch, mallory);
	message_put_bytes(&m, FIELD_job, buf_str(&job), job.len);
	AUTO_GOT g = ask(&m);
	return g.status >= 400 ? NULL : wrong("the answer is %d", g.status);
}

/* A name is written into a file of lines. */
const char *row_names_of_jobs(void)
{
	char line[80];
	const char *why;

	(void)snprintf(line, sizeof(line), "a\n%s b", shared->execution);
	why = send_job(line, strlen(line) + 1);
	if (!why)
		why = send_job("", 1);
	if (!why)
		why = send_job("no end", 6);
	return why ? why : send_job("\xff\xfe", 3);
}

const char *row_job_that_is_noise(void)
{
	struct buf m;

	begin(&m, ROUTE_batch, mallory);
	message_put_bytes(&m, FIELD_job, "noise", 5);
	AUTO_GOT g = ask(&m);
	return g.status >= 400 ? NULL : wrong("the answer is %d", g.status);
}

/* ---- fields at their bounds ---------------------------------------------------------------------------------------- */

/* Bytes that are no text, in each field that is one; then numbers that are too large.  Some answer comes. */
const char *row_noise_in_fields(void)
{
	static const enum field texts[] = { FIELD_language,  FIELD_file_name, FIELD_trust,     FIELD_environment,
					    FIELD_test_path, FIELD_arg,       FIELD_variable,  FIELD_option,
					    FIELD_package,   FIELD_artifact,  FIELD_workspace, FIELD_idempotency_key,
					    FIELD_since,     FIELD_until,     FIELD_verdict,   FIELD_state,
					    FIELD_id,        FIELD_path,      FIELD_execution };
	static const enum route routes[] = { ROUTE_execute, ROUTE_history, ROUTE_executions, ROUTE_artifact };
	static const enum field numbers[] = { FIELD_priority, FIELD_inline_artifacts, FIELD_limit, FIELD_async };
	struct buf m;

	for (size_t i = 0; i < ARRAY_LEN(texts) * ARRAY_LEN(routes); i++) {
		begin(&m, routes[i % ARRAY_LEN(routes)], mallory);
		message_put_number(&m, FIELD_kind, BRIG_KIND_COMMAND);
		message_put_text(&m, texts[i / ARRAY_LEN(routes)], "\xff\n\"}\x1b[2J=\xc3");
		AUTO_GOT g = ask(&m);
		if (g.status < 0 || is_ok(&g))
			return wrong("field %u by route %zu: %d", (unsigned)texts[i / ARRAY_LEN(routes)], i, g.status);
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers) * ARRAY_LEN(routes); i++) {
		begin(&m, routes[i % ARRAY_LEN(routes)], mallory);
		message_put_number(&m, numbers[i / ARRAY_LEN(routes)], UINT64_MAX);
		AUTO_GOT g = ask(&m);
		if (g.status < 0)
			return "the channel has ended";
	}
	return NULL;
}

/* More files than the runner can have open: it refuses some, and does not run out of them. */
const char *row_many_files(void)
{
	AUTO_FD files = archive_with("a.txt", "x");
	static char ids[FILES_MAX][32];
	size_t n = 0, refused = 0;
	struct buf m;

	for (size_t i = 0; i < FILES_MAX && refused < 8; i++) {
		begin_shell(&m, mallory, "sleep 600");
		message_put_number(&m, FIELD_async, 1);
		message_put_number(&m, FIELD_has_files, 1);
		AUTO_GOT g = ask_with(&m, &files, 1);
		if (g.status != 202 && g.status != 503)
			return wrong("execution %zu is answered %d", i, g.status);
		if (g.status == 202)
			(void)str_copy(ids[n++], sizeof(ids[0]), member(&g, "id"));
		refused += g.status == 503;
	}
	while (n > 0) {
		begin(&m, ROUTE_cancel, mallory);
		message_put_text(&m, FIELD_id, ids[--n]);
		AUTO_GOT g = ask(&m);
		if (g.status != 202) {
			begin(&m, ROUTE_execution, mallory);
			message_put_text(&m, FIELD_id, ids[n]);
			AUTO_GOT past = ask(&m);
			AUTO_FREE char *text = past.doc ? json_dumps(past.doc, JSON_COMPACT) : NULL;

			/* Its cell came when there was no descriptor left for it, and its record says so. */
			if (str_eq(member(&past, "verdict"), "failed"))
				continue;
			return wrong("cancelled: %d, %.400s", g.status, text ? text : "");
		}
	}
	return refused > 0 ? NULL : "none of them was refused";
}
