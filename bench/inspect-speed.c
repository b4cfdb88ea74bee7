/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect-speed FILE... - cpu time of the inspection in process, without the confined child: for each file the best of
 * several rounds, as a line "bytes nanoseconds findings name".  bench/inspect makes the files and the table.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "base/str.h"
#include "inspect/inspect.h"

#define ROUNDS   15
#define REPEATS  8
#define TEXT_MAX (1 << 20)

static const struct {
	const char *ending;
	enum inspect_kind kind;
} kinds[] = {
	{ ".py", INSPECT_PYTHON }, { ".js", INSPECT_JAVASCRIPT }, { ".ts", INSPECT_TYPESCRIPT },
	{ ".tsx", INSPECT_TSX },   { ".go", INSPECT_GO },         { ".sh", INSPECT_SHELL },
};

static bool kind_of(const char *path, enum inspect_kind *ret)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_LEN(kinds); i++)
		if (str_eq(dot, kinds[i].ending)) {
			*ret = kinds[i].kind;
			return true;
		}
	return false;
}

/* Time of our own: what else the machine does is not what is measured. */
static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Nanoseconds of one inspection, the mean of a few. */
static uint64_t one_round(const struct rule_set *rules, const struct inspect_request *req, size_t *ret_findings)
{
	struct brig_error err = BRIG_ERROR_INIT;
	uint64_t begin = cpu_now_ns();

	for (int i = 0; i < REPEATS; i++) {
		CLEANUP(findings_release)
		struct findings found = { 0 };

		if (inspect_text(rules, req, &found, &err) < 0) {
			fprintf(stderr, "inspect-speed: %s\n", err.msg);
			exit(1);
		}
		*ret_findings = found.n;
	}
	return (cpu_now_ns() - begin) / REPEATS;
}

static void measure(const struct rule_set *rules, const char *path, char *text)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -errno : fd_read_all(fd, text, TEXT_MAX);
	struct inspect_request req = { .level = INSPECTION_GUARD, .text = text };
	uint64_t best = UINT64_MAX;
	size_t findings = 0;

	if (len < 0 || !kind_of(path, &req.kind)) {
		fprintf(stderr, "inspect-speed: %s: cannot be read, or is of no language that is inspected\n", path);
		exit(1);
	}
	text[len] = '\0';
	req.len = (size_t)len;
	for (int i = 0; i < ROUNDS; i++)
		best = min_u64(best, one_round(rules, &req, &findings));
	printf("%zd %llu %zu %s\n", len, (unsigned long long)best, findings, path);
}

int main(int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FREE char *text = malloc(TEXT_MAX + 1);
	struct rule_set *rules = NULL;

	if (!text || rules_builtin(&rules, &err) < 0) {
		fprintf(stderr, "inspect-speed: %s\n", err.msg);
		return 1;
	}
	for (int i = 1; i < argc; i++)
		measure(rules, argv[i], text);
	rules_free(rules);
	return 0;
}
