/* SPDX-License-Identifier: Apache-2.0 */
#include "model/job.h"

#include <assert.h>
#include <string.h>

#define MAGIC   "brigjob"
#define VERSION '1'

struct head {
	char magic[7], version;
	uint64_t size;
	char id[RUN_ID_LEN];
};
static_assert(sizeof(struct head) == 32, "a job's head has no holes");

/* ---- writing ------------------------------------------------------------------------------------ */

static void put_num(struct buf *b, uint64_t value)
{
	(void)buf_add(b, &value, sizeof(value));
}

static void put_text(struct buf *b, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	put_num(b, text ? len : JOB_NULL);
	if (text)
		(void)buf_add(b, text, len + 1);
}

static void put_words(struct buf *b, const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	put_num(b, n);
	for (size_t i = 0; i < n; i++)
		put_text(b, words[i]);
}

static void put_plan(struct buf *b, const struct plan *plan)
{
	const struct plan_file *file = plan->n_files ? &plan->files[0] : NULL;

#define NUM(field, type) put_num(b, (uint64_t)plan->field);
#define TEXT(field)      put_text(b, plan->field);
#include "model/job.def"
	put_words(b, plan->argv);
	put_words(b, plan->envp);
	put_text(b, file ? file->name : NULL);
	put_num(b, file ? file->mode : 0);
	put_num(b, plan->n_binds);
	for (size_t i = 0; i < plan->n_binds; i++) {
		put_text(b, plan->binds[i].source);
		put_text(b, plan->binds[i].target);
		put_text(b, plan->binds[i].same_as);
	}
}

/* What a job has no words for. */
static const char *beyond_a_job(const struct plan *plan)
{
	if (plan->workspace || plan->wants_view)
		return "a workspace";
	if (plan->egress)
		return "a network";
	if (plan->n_files > 1)
		return "several files";
	if (plan->n_binds > JOB_BINDS_MAX)
		return "more folders of the host than a job can name";
	for (size_t i = 0; i < plan->n_binds; i++)
		if (plan->binds[i].checked)
			return "a folder that must be the one which the caller has open";
	return NULL;
}

int job_encode(const struct plan *plan, struct buf *ret, struct brig_error *err)
{
	struct head head = { .magic = MAGIC, .version = VERSION };
	const char *beyond = beyond_a_job(plan);

	if (beyond)
		return err_set(err, BRIG_E_USAGE, 0, "the plan needs %s", beyond);
	memcpy(head.id, plan->id, sizeof(head.id));
	ret->max = JOB_MAX;
	(void)buf_add(ret, &head, sizeof(head));
	put_plan(ret, plan);
	if (ret->full || ret->no_memory)
		return ret->full ? err_set(err, BRIG_E_USAGE, 0, "the plan has more than %llu bytes",
					   (unsigned long long)JOB_MAX)
				 : err_nomem(err);
	head.size = ret->len;
	memcpy(ret->data, &head, sizeof(head));
	return 0;
}

/* ---- reading ------------------------------------------------------------------------------------ */

struct reader {
	char *at, *end;
	bool bad;
};

static uint64_t get_num(struct reader *r)
{
	uint64_t value = 0;

	if (r->bad || (size_t)(r->end - r->at) < sizeof(value)) {
		r->bad = true;
		return 0;
	}
	memcpy(&value, r->at, sizeof(value));
	r->at += sizeof(value);
	return value;
}

/* NULL for NULL, and for what is no string. */
static const char *get_text(struct reader *r)
{
	uint64_t len = get_num(r);
	char *text = r->at;

	if (r->bad || len == JOB_NULL)
		return NULL;
	if (len >= (uint64_t)(r->end - r->at) || text[len] != '\0' || memchr(text, '\0', len)) {
		r->bad = true;
		return NULL;
	}
	r->at += len + 1;
	return text;
}

/* One that must be there. */
static const char *need_text(struct reader *r)
{
	const char *text = get_text(r);

	r->bad = r->bad || !text;
	return text ? text : "";
}

/* A list for argv or envp, in the room that is left of words; the number that it took, its NULL included. */
static size_t get_words(struct reader *r, const char **words, size_t room)
{
	uint64_t n = get_num(r);

	if (n >= room)
		r->bad = true;
	if (r->bad)
		return 0;
	for (size_t i = 0; i < n; i++)
		words[i] = need_text(r);
	words[n] = NULL;
	return n + 1;
}

/* False: the value is none of the type's. */
#define FITS(value, type) ((uint64_t)(type)(value) == (value))

static void get_fields(struct reader *r, struct plan *plan)
{
	uint64_t value;

#define NUM(field, type)                       \
	value = get_num(r);                    \
	r->bad = r->bad || !FITS(value, type); \
	plan->field = (type)value;
#define TEXT(field) plan->field = get_text(r);
#include "model/job.def"
	/* As indexes they lead somewhere, and without these strings nothing can be said. */
	r->bad = r->bad || (unsigned)plan->trust >= TRUST_COUNT || (unsigned)plan->family >= FAMILY_COUNT ||
		 (unsigned)plan->profile >= SECCOMP_PROFILE_COUNT || !plan->step || !plan->language || !plan->rootfs;
}

static void get_file(struct reader *r, struct job *job)
{
	uint64_t mode;

	job->file.name = get_text(r);
	mode = get_num(r);
	job->file.mode = (unsigned)mode;
	r->bad = r->bad || mode > 0777 || (!job->file.name && mode != 0);
	job->plan.files = &job->file;
	job->plan.n_files = job->file.name ? 1 : 0;
}

static void get_binds(struct reader *r, struct job *job)
{
	uint64_t n = get_num(r);

	if (n > JOB_BINDS_MAX)
		r->bad = true;
	for (size_t i = 0; i < n && !r->bad; i++) {
		job->binds[i].source = need_text(r);
		job->binds[i].target = need_text(r);
		job->binds[i].same_as = get_text(r);
	}
	job->plan.binds = job->binds;
	job->plan.n_binds = r->bad ? 0 : (size_t)n;
}

static bool is_run_id(const char id[RUN_ID_LEN])
{
	for (size_t i = 0; i < RUN_ID_LEN; i++)
		if (!(id[i] >= 'a' && id[i] <= 'z') && !(id[i] >= '2' && id[i] <= '7'))
			return false;
	return true;
}

static bool get_head(struct job *job)
{
	struct head head;

	memcpy(&head, job->bytes, sizeof(head));
	memcpy(job->plan.id, head.id, sizeof(head.id));
	return memcmp(head.magic, MAGIC, sizeof(head.magic)) == 0 && head.version == VERSION &&
	       head.size == job->size && is_run_id(head.id);
}

static bool get_job(struct job *job)
{
	struct reader r = { .at = job->bytes + sizeof(struct head), .end = job->bytes + job->size };
	size_t used;

	if (!get_head(job))
		return false;
	get_fields(&r, &job->plan);
	job->plan.argv = job->words;
	used = get_words(&r, job->words, ARRAY_LEN(job->words) - 1);
	job->plan.envp = job->words + used;
	(void)get_words(&r, job->words + used, ARRAY_LEN(job->words) - used);
	get_file(&r, job);
	get_binds(&r, job);
	return !r.bad && r.at == r.end && used > 1;
}

struct job *job_decode(const void *bytes, size_t len)
{
	struct job *job;

	if (len < sizeof(struct head) || len > JOB_MAX)
		return NULL;
	job = calloc(1, sizeof(*job) + len);
	if (!job)
		return NULL;
	job->size = len;
	memcpy(job->bytes, bytes, len);
	if (get_job(job))
		return job;
	free(job);
	return NULL;
}

bool job_same_kind(const struct job *a, const struct job *b)
{
	const size_t head = sizeof(struct head);

	return a->size == b->size && memcmp(a->bytes + head, b->bytes + head, a->size - head) == 0;
}
