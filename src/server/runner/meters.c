/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/meters.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

struct lines {
	struct buf *out;
	uint64_t wall_ns;
};

static void put_line(const struct admission_meters *m, void *arg)
{
	const struct lines *to = arg;

	buf_addf(to->out, "m %s %llu %llu\n", m->token, (unsigned long long)((to->wall_ns + m->runs_ns) / NS_PER_MS),
		 (unsigned long long)((to->wall_ns + m->cpu_ns) / NS_PER_MS));
}

struct reading {
	struct admission *a;
	uint64_t now_ns, wall_ms;
};

static uint64_t left_ns(const struct reading *r, unsigned long long at_ms)
{
	return at_ms > r->wall_ms ? min_u64(at_ms - r->wall_ms, UINT32_MAX) * NS_PER_MS : 0;
}

static bool take_line(void *arg, const char *line)
{
	const struct reading *r = arg;
	char token[ADMISSION_NAME_MAX + 2], more;
	unsigned long long runs_ms, cpu_ms;
	struct admission_meters m = { .token = token };

	_Static_assert(ADMISSION_NAME_MAX == 80, "the format below takes one more");
	if (sscanf(line, "m %81s %llu %llu %c", token, &runs_ms, &cpu_ms, &more) != 3 ||
	    strlen(token) > ADMISSION_NAME_MAX)
		return false;
	m.runs_ns = left_ns(r, runs_ms);
	m.cpu_ns = left_ns(r, cpu_ms);
	(void)admission_restore(r->a, &m, r->now_ns);
	return true;
}

static int write_anew(struct meters *m, const struct admission *a, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(JOURNAL_FILE_MAX);
	struct lines to = { &text, clock_wall_ns() };

	admission_each_meter(a, clock_now_ns(), put_line, &to);
	return journal_replace(&m->journal, &text, err);
}

int meters_open(struct meters *m, const struct statedir *dir, struct admission *a, struct brig_error *err)
{
	struct reading r = { a, clock_now_ns(), clock_wall_ns() / NS_PER_MS };
	int rc = journal_open(&m->journal, dir, METERS_NAME, "quotas of tokens are counted from nothing", take_line, &r,
			      err);

	return rc < 0 ? rc : write_anew(m, a, err);
}

int meters_commit(struct meters *m, struct admission *a, struct brig_error *err)
{
	struct lines to = { &m->journal.pending, clock_wall_ns() };
	bool was_failing = m->is_failing;
	int rc;

	if (!admission_is_metered(a))
		return 0;
	admission_each_metered(a, clock_now_ns(), put_line, &to);
	rc = journal_commit(&m->journal, false, err);
	if (rc == 0 && (journal_has_grown(&m->journal) || was_failing))
		rc = write_anew(m, a, err); /* includes charges that could not be written before */
	m->is_failing = rc < 0;
	return was_failing ? 0 : rc;
}

void meters_close(struct meters *m)
{
	journal_close(&m->journal);
}
