/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - entries as runs write them, without the runs: for tests that kill writers, and for large logs.
 *
 *	audit-writer STATE COUNT [FILE_SIZE]
 *
 * Prints one line with its number for each entry, once it is written; COUNT 0 goes on until it is killed, with a
 * millisecond between two entries: how much a slow killer lets it write must not decide whether the disk is full.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/str.h"

static const struct {
	enum verdict verdict;
	const char *language;
	enum trust trust;
} mix[] = {
	{ VERDICT_ok, "python", TRUST_UNKNOWN },        { VERDICT_ok, "javascript", TRUST_UNKNOWN },
	{ VERDICT_error, "python", TRUST_UNTRUSTED },   { VERDICT_ok, "go", TRUST_TRUSTED },
	{ VERDICT_timeout, "python", TRUST_UNTRUSTED }, { VERDICT_ok, "shell", TRUST_UNKNOWN },
	{ VERDICT_blocked, "python", TRUST_UNTRUSTED }, { VERDICT_ok, "typescript", TRUST_UNKNOWN },
};

static int write_entries(struct audit_log *log, struct record *rec, struct result *res, uint64_t count)
{
	struct brig_error err = BRIG_ERROR_INIT;

	for (uint64_t i = 0; count == 0 || i < count; i++) {
		size_t kind = i % ARRAY_LEN(mix);

		res->verdict = mix[kind].verdict;
		res->trust = mix[kind].trust;
		(void)str_copy(res->language, sizeof(res->language), mix[kind].language);
		rec->wall_ns = clock_wall_ns();
		if (audit_ready(log, rec->set, &err) < 0 || audit_append(log, rec, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		printf("%llu\n", (unsigned long long)rec->audit_seq);
		if (count == 0)
			(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings set = {
		.audit = AUDIT_REQUIRED, .audit_fsync_ms = 1000, .audit_file_size = 64 << 20, .audit_file_days = 30
	};
	static struct result res;
	struct record rec = {
		.who = "", .door = "", .res = &res, .set = &set, .policy_origin = "/etc/brig/sandbox.yaml"
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct statedir state = STATEDIR_INIT;
	struct audit_log *log = NULL;
	uint64_t count;
	int status;

	if (argc < 3 || !str_to_u64(argv[2], &count) || (argc > 3 && !str_to_u64(argv[3], &set.audit_file_size)))
		return 2;
	if (!isatty(STDOUT_FILENO))
		(void)setvbuf(stdout, NULL, count ? _IOFBF : _IOLBF, 1 << 16);
	result_init(&res);
	(void)str_copy(res.id, sizeof(res.id), "abcdefghijklmnop");
	(void)str_copy(res.backend, sizeof(res.backend), "native");
	(void)str_copy(res.step, sizeof(res.step), "run");
	res.exit_code = 0;
	res.has_limits = true;
	record_stream_begin(&rec.out, true, 0);
	record_stream_add(&rec.out, "hello\n", 6);
	record_stream_end(&rec.out);
	if (statedir_open(argv[1], true, &state, &err) < 0 || audit_open(&state, &log, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	status = write_entries(log, &rec, &res, count);
	audit_close(log);
	statedir_close(&state);
	return status;
}
