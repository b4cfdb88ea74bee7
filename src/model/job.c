/* SPDX-License-Identifier: Apache-2.0 */
#include "model/job.h"

#include <assert.h>
#include <string.h>

#include "files/beneath.h"

#define MAGIC   "brigjob"
#define VERSION '4'

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

static size_t words_of(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

static size_t bytes_of(const char *const *words)
{
	size_t n = 0;

	for (; *words; words++)
		n += sizeof(uint64_t) + strlen(*words) + 1;
	return n;
}

static void put_words(struct buf *b, const char *const *words)
{
	put_num(b, words_of(words));
	for (; *words; words++)
		put_text(b, *words);
}

/* The contents are passed separately.  Those of a program that arrives later are not part of the cell's kind. */
static void put_files(struct buf *b, const struct plan *plan)
{
	put_num(b, plan->n_files);
	for (size_t i = 0; i < plan->n_files; i++) {
		put_text(b, plan->files[i].name);
		put_num(b, plan->files[i].mode);
		put_num(b, plan->waits_at ? 0 : plan->files[i].len);
	}
}

static void put_binds(struct buf *b, const struct plan *plan)
{
	put_num(b, plan->n_binds);
	for (size_t i = 0; i < plan->n_binds; i++) {
		put_text(b, plan->binds[i].source);
		put_text(b, plan->binds[i].target);
		put_text(b, plan->binds[i].same_as);
		put_num(b, plan->binds[i].checked);
	}
}

static void put_egress(struct buf *b, const struct plan_egress *e)
{
	put_num(b, e ? e->n_places : JOB_NULL);
	for (size_t i = 0; e && i < e->n_places; i++) {
		put_num(b, e->place[i].address);
		put_num(b, e->place[i].port);
		put_num(b, e->place[i].datagrams);
	}
	if (e)
		put_num(b, e->certificates ? e->certificates->len : JOB_NULL);
}

static void put_workspace(struct buf *b, const struct plan_workspace *w)
{
	put_num(b, w ? w->n_hidden : JOB_NULL);
	if (!w)
		return;
	put_num(b, w->n_held);
	put_num(b, job_paths_size(w));
	put_num(b, w->read_only);
	put_text(b, w->path);
	put_text(b, w->covered);
}

static void put_plan(struct buf *b, const struct plan *plan)
{
#define NUM(field, type) put_num(b, (uint64_t)plan->field);
#define TEXT(field)      put_text(b, plan->field);
#include "model/job.def"
	put_words(b, plan->argv);
	put_words(b, plan->envp);
	put_files(b, plan);
	put_binds(b, plan);
	put_egress(b, plan->egress);
	put_workspace(b, plan->workspace);
}

int job_each_path(const struct plan_workspace *w, job_path_fn fn, void *arg)
{
	int rc = 0;

	for (size_t i = 0; i < w->n_hidden && rc == 0; i++)
		rc = fn(arg, w->hidden[i], strlen(w->hidden[i]) + 1);
	for (size_t i = 0; i < w->n_held && rc == 0; i++)
		rc = fn(arg, w->held[i], strlen(w->held[i]) + 1);
	return rc;
}

static int add_size(void *arg, const char *path UNUSED, size_t len_with_nul)
{
	*(uint64_t *)arg += len_with_nul;
	return 0;
}

uint64_t job_paths_size(const struct plan_workspace *w)
{
	uint64_t size = 0;

	(void)job_each_path(w, add_size, &size);
	return size;
}

static size_t bytes_of_paths(const struct plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_files; i++)
		n += strlen(plan->files[i].name);
	for (size_t i = 0; i < plan->n_binds; i++)
		n += strlen(plan->binds[i].source) + strlen(plan->binds[i].target);
	if (plan->workspace)
		n += strlen(plan->workspace->path) + (plan->workspace->covered ? strlen(plan->workspace->covered) : 0);
	return n;
}

const char *job_lacks(const struct plan *plan)
{
	if (plan->workspace && plan->workspace->n_hidden + plan->workspace->n_held > JOB_PATHS_MAX)
		return "more hidden and held files of a project than a job can name";
	if (plan->n_files > JOB_FILES_MAX)
		return "more files than a job can name";
	if (plan->n_binds > JOB_BINDS_MAX)
		return "more folders of the host than a job can name";
	if (plan->egress && plan->egress->n_places > EGRESS_PLACES_MAX)
		return "more places to listen at than a job can name";
	if (words_of(plan->argv) + words_of(plan->envp) > JOB_WORDS_MAX ||
	    bytes_of(plan->argv) + bytes_of(plan->envp) + bytes_of_paths(plan) > JOB_WORD_BYTES_MAX)
		return "more and longer arguments, variables and paths than a job can carry";
	return NULL;
}

int job_encode(const struct plan *plan, struct buf *ret, struct brig_error *err)
{
	struct head head = { .magic = MAGIC, .version = VERSION };
	const char *beyond = job_lacks(plan);

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
	r->bad = r->bad || (plan->waits_at && plan->start_at_once);
	/* They are used as indexes, and messages need these strings. */
	r->bad = r->bad || (unsigned)plan->trust >= TRUST_COUNT || (unsigned)plan->family >= FAMILY_COUNT ||
		 (unsigned)plan->profile >= SECCOMP_PROFILE_COUNT || !plan->step || !plan->language || !plan->rootfs;
}

static bool get_flag(struct reader *r)
{
	uint64_t value = get_num(r);

	r->bad = r->bad || value > 1;
	return value == 1;
}

static void get_files(struct reader *r, struct job *job)
{
	uint64_t n = get_num(r);

	if (n > JOB_FILES_MAX)
		r->bad = true;
	for (size_t i = 0; i < n && !r->bad; i++) {
		uint64_t mode;

		job->files[i].name = need_text(r);
		mode = get_num(r);
		job->files[i].mode = (unsigned)mode;
		job->files[i].len = get_num(r);
		r->bad = r->bad || mode > 0777 || (job->plan.waits_at && job->files[i].len != 0);
	}
	job->plan.files = job->files;
	job->plan.n_files = r->bad ? 0 : (size_t)n;
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
		job->binds[i].checked = get_flag(r);
		job->binds[i].fd = -1;
	}
	job->plan.binds = job->binds;
	job->plan.n_binds = r->bad ? 0 : (size_t)n;
}

static void get_place(struct reader *r, struct loopback_place *p)
{
	uint64_t address = get_num(r), port = get_num(r);

	*p = (struct loopback_place){ .address = (uint32_t)address, .port = (uint16_t)port, .datagrams = get_flag(r) };
	r->bad = r->bad || address != p->address || port != p->port;
}

static void get_egress(struct reader *r, struct job *job)
{
	uint64_t n = get_num(r), certificates;

	if (r->bad || n == JOB_NULL)
		return;
	if (n > EGRESS_PLACES_MAX)
		r->bad = true;
	for (size_t i = 0; i < n && !r->bad; i++)
		get_place(r, &job->egress.place[i]);
	job->egress.n_places = r->bad ? 0 : (size_t)n;
	certificates = get_num(r);
	if (certificates != JOB_NULL) {
		job->certificates.len = certificates;
		job->egress.certificates = &job->certificates;
	}
	job->plan.egress = &job->egress;
}

/* What is hidden and held comes with the contents: until then there are as many places for it. */
static void get_workspace(struct reader *r, struct job *job)
{
	struct plan_workspace *w = &job->workspace;
	uint64_t n_hidden = get_num(r), n_held;

	if (r->bad || n_hidden == JOB_NULL)
		return;
	n_held = get_num(r);
	job->paths_size = get_num(r);
	r->bad = r->bad || n_hidden > JOB_PATHS_MAX || n_held > JOB_PATHS_MAX - n_hidden || job->plan.waits_at;
	w->fd = -1;
	w->read_only = get_flag(r);
	w->path = need_text(r);
	w->covered = get_text(r);
	w->n_hidden = r->bad ? 0 : (size_t)n_hidden;
	w->n_held = r->bad ? 0 : (size_t)n_held;
	job->plan.workspace = w;
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
	get_files(&r, job);
	get_binds(&r, job);
	get_egress(&r, job);
	get_workspace(&r, job);
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

void job_destroy(struct job *job)
{
	if (job)
		free(job->paths);
	free(job);
}

size_t job_bind_fds(const struct job *job)
{
	size_t n = 0;

	for (size_t i = 0; i < job->plan.n_binds; i++)
		n += job->plan.binds[i].checked;
	return n;
}

static bool give(struct plan_file *f, const char **at, uint64_t *left)
{
	if (f->len > *left)
		return false;
	f->data = *at;
	*at += f->len;
	*left -= f->len;
	return true;
}

static bool set_paths(struct job *job, const char *at, uint64_t size)
{
	struct plan_workspace *w = &job->workspace;
	const char *end = at + size;

	job->paths = calloc(w->n_hidden + w->n_held + 1, sizeof(*job->paths));
	if (!job->paths)
		return false;
	for (size_t i = 0; i < w->n_hidden + w->n_held; i++) {
		size_t len = at < end ? strnlen(at, (size_t)(end - at)) : 0;

		if (at + len >= end || !beneath_is_path(at, len))
			return false;
		job->paths[i] = at;
		at += len + 1;
	}
	w->hidden = job->paths;
	w->held = job->paths + w->n_hidden;
	return at == end;
}

bool job_set_contents(struct job *job, const char *contents, uint64_t size)
{
	for (size_t i = 0; i < job->plan.n_files; i++)
		if (!give(&job->files[i], &contents, &size))
			return false;
	if (job->egress.certificates && !give(&job->certificates, &contents, &size))
		return false;
	if (job->plan.workspace)
		return size == job->paths_size && set_paths(job, contents, size);
	return size == 0;
}

bool job_same_kind(const struct job *a, const struct job *b)
{
	const size_t head = sizeof(struct head);

	return a->size == b->size && memcmp(a->bytes + head, b->bytes + head, a->size - head) == 0;
}
