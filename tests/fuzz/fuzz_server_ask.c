/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the runner, up to where a cell would be made.  The first byte chooses the route and whether the rest is a message as
 * it came, or bytes that fields are made of, so that most of them are whole.  Each becomes a request that the library looks
 * at, or a complaint; a batch each of its jobs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "server/runner/idempotency.h"
#include "server/runner/job.h"

static const enum route routes[] = { ROUTE_execute, ROUTE_command, ROUTE_tests, ROUTE_batch };
static const struct brig_option settings[] = { { "mem_limit", "64m" } };

/* Of each field its number, a length, and so many bytes: texts get their end. */
static void make_fields(const unsigned char *data, size_t len, struct buf *out, bool with_jobs)
{
	for (size_t at = 0; at + 2 <= len;) {
		enum field f = data[at] % FIELD_COUNT;
		size_t n = min_u64(data[at + 1], len - at - 2);
		AUTO_BUF text = BUF_INIT(256);
		uint64_t number = 0;

		memcpy(&number, data + at + 2, n < sizeof(number) ? n : sizeof(number));
		buf_add(&text, data + at + 2, n);
		if (f == FIELD_job && with_jobs) {
			AUTO_BUF job = BUF_INIT(4096);

			make_fields(data + at + 2, n, &job, false);
			message_put_bytes(out, f, buf_str(&job), job.len);
		} else if (message_max_bytes(f) == sizeof(number)) {
			message_put_number(out, f, number);
		} else if (f == FIELD_code || f == FIELD_input || f == FIELD_text || f == FIELD_archive) {
			message_put_bytes(out, f, buf_str(&text), text.len);
		} else {
			message_put_text(out, f, buf_str(&text));
		}
		at += 2 + n;
	}
}

static void complain(const struct brig_error *err)
{
	if (err->code == 0 || err->msg[0] == '\0')
		abort();
}

static void take_job(const struct message *m, enum route route)
{
	static const char *const names[] = { "mem_limit", "memory_mb" };
	struct job_descriptors beside = JOB_DESCRIPTORS_NONE;
	struct brig_error err = BRIG_ERROR_INIT;
	uint8_t hash[SHA256_LEN];
	struct job *job = NULL;
	size_t which;

	if (idempotency_hash(m, route, FD_NONE, hash) < 0)
		abort();
	if (job_new(m, route, &beside, settings, ARRAY_LEN(settings), &job, &err) < 0) {
		complain(&err);
		return;
	}
	if (!job_wish(job, names, ARRAY_LEN(names), &which) || job_highest_fd(job) >= 0)
		abort();
	job_wish_backend(job, "native");
	if (brig_request_check(&job->req, &err) < 0)
		complain(&err);
	job_free(job);
}

static void take_message(const char *bytes, size_t len, enum route route)
{
	const char *why, *job;
	struct message m, inner;
	size_t at = 0, n;

	if (!message_read(bytes, len, &m, &why))
		return;
	if (route != ROUTE_batch) {
		take_job(&m, route);
		return;
	}
	while ((job = message_next(&m, FIELD_job, &at, &n)))
		if (message_read(job, n, &inner, &why))
			take_job(&inner, ROUTE_execute);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	AUTO_BUF made = BUF_INIT(MiB);
	char *exact;

	if (len == 0)
		return 0;
	if (data[0] & 0x80)
		buf_add(&made, data + 1, len - 1);
	else
		make_fields(data + 1, len - 1, &made, true);
	exact = malloc(made.len ? made.len : 1); /* so that one byte too far is seen */
	if (exact && made.len)
		memcpy(exact, made.data, made.len);
	if (exact)
		take_message(exact, made.len, routes[data[0] % ARRAY_LEN(routes)]);
	free(exact);
	return 0;
}
