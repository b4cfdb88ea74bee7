/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of `brig batch`, and what is compared.  Whatever a line holds, it is a job that the library can be asked with or a
 * complaint that can be printed; and any output agrees with itself.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/batch_job.h"
#include "cli/batch_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_job(const struct batch_job *job)
{
	if (job->id[0] == '\0' || !str_is_utf8(job->id, strlen(job->id)))
		abort();
	if (job->bad.code) {
		if (strncmp(job->bad.msg, "line ", 5) != 0 || !str_is_utf8(job->bad.msg, strlen(job->bad.msg)))
			abort();
		return;
	}
	if (job->n_cases == 0)
		abort();
	for (size_t i = 0; i < job->n_cases; i++) {
		struct brig_request req = batch_job_request(job, &job->cases[i]);

		if ((req.n_args && !req.args) || (req.stdin_len && !req.stdin_data) || (req.code_len && !req.code))
			abort();
		for (size_t k = 0; k < req.n_options; k++)
			if (!req.options[k].key || !req.options[k].value)
				abort();
	}
}

static void read_line(const char *line, size_t len, uint64_t number)
{
	const struct batch_defaults defaults = { .language = "python" };
	struct judge_expected how = JUDGE_EXPECTED_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct batch_case c = { .expected = how };
	struct batch_job *job = batch_job_new(), *owner = batch_job_new();
	struct bytes text = { line, len };

	if (!job || !owner)
		abort();
	batch_job_read(job, line, len, number, &defaults);
	check_job(job);
	if (batch_case_read(owner, line, len, &c, &err) < 0 && !err.code)
		abort();
	for (enum judge_compare way = 0; way < COMPARE_COUNT; way++)
		if (judge_differs(way, 0, &text, &text) != 0)
			abort();
	batch_job_free(job);
	batch_job_free(owner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FD fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct batch_lines lines = BATCH_LINES_INIT(fd, 64 * KiB);
	enum batch_line got = BATCH_LINE_WAIT;
	uint64_t counted;
	const char *line;
	size_t len;

	if (fd < 0 || fd_write_all(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	counted = batch_lines_count(fd);
	while (got != BATCH_LINE_END) {
		got = batch_lines_next(&lines, &line, &len);
		if (got == BATCH_LINE_WAIT && batch_lines_read(&lines) < 0)
			abort();
		if (got == BATCH_LINE_GOOD)
			read_line(line, len, lines.number);
	}
	if (lines.number != counted || lines.offset != size)
		abort();
	batch_lines_release(&lines);
	return 0;
}
