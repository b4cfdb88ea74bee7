/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells' groups, on whatever cgroup version the host has.
 *
 * Creating: one directory per tree, named brig-<id>, below brig's own group where the rules allow it, so that limits
 * around brig also apply to its cells.
 *
 * Removing: rmdir succeeds once the last task has left, which is a moment after it was killed, so the
 * first attempt usually does it; otherwise what is inside is killed and rmdir tried again with
 * growing pauses.  Nothing on that path allocates or uses stdio: the janitor that runs it was forked
 * from a process that may have had threads.
 */
#include "base/wait.h"
#include "sys/cgroup_internal.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define BASE_RETRIES 32 /* other brigs may remove the shared base between our steps; each attempt is independent */
static_assert(CGROUP_ENTRIES_MAX >= CONTROLLER_COUNT, "a leaf has no place");
#define FIRST_PAUSE_NS (50 * 1000)
#define LAST_PAUSE_NS  (5 * NS_PER_MS)

/* ---- small readers --------------------------------------------------------------------------- */

int cgroup_get_keyed(int dir, const char *file, const char *key, uint64_t *ret)
{
	char text[8192], *line = text, *rest;
	size_t key_len = strlen(key);
	ssize_t n = fd_get_at(dir, file, text, sizeof(text));

	if (n < 0)
		return (int)n;
	for (; line; line = rest) {
		rest = strchr(line, '\n');
		if (rest)
			*rest++ = '\0';
		if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ')
			return str_to_u64(line + key_len + 1, ret) ? 0 : -EINVAL;
	}
	return -ENODATA;
}

void cgroup_known(const struct cgroup_leaf *leaf, const char *file, uint64_t value, struct cgroup_readback *ret)
{
	int len = snprintf(ret->source, sizeof(ret->source), "%s/%s/%s", leaf->path, leaf->name, file);

	/* A long path is of no use cut at its end: keep the part that names the file. */
	if (len < 0 || (size_t)len >= sizeof(ret->source))
		(void)snprintf(ret->source, sizeof(ret->source), ".../%s/%s", leaf->name, file);
	ret->known = true;
	ret->value = value;
}

bool cgroup_limit_memory(const struct cgroup_limits *limits, uint64_t *ret)
{
	*ret = limits->memory_bytes;
	return limits->memory_bytes > 0;
}

bool cgroup_limit_pids(const struct cgroup_limits *limits, uint64_t *ret)
{
	*ret = limits->pids;
	return limits->pids > 0;
}

bool cgroup_limit_cpu(const struct cgroup_limits *limits, uint64_t *ret)
{
	/* One percent is 1 ms per period: the smallest quota the kernel takes. */
	*ret = limits->cpu_percent * CGROUP_PERIOD_US / 100;
	return limits->cpu_percent > 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int name_cell(struct cgroup *cg, const char *id, struct brig_error *err)
{
	int len = snprintf(cg->name, sizeof(cg->name), "brig-%s", id);

	if (!id[0] || len < 0 || (size_t)len >= sizeof(cg->name) ||
	    strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != strlen(id))
		return err_set(err, BRIG_E_INTERNAL, 0,
			       "\"%.60s\" cannot name a control group: letters, digits, _ and - only", id);
	return 0;
}

/* Below a base that other brigs may remove at any time: as long as we are not in it, it may vanish between two steps. */
static int make_below_base(struct cgroup_leaf *leaf)
{
	unsigned controllers = leaf->controllers & ~CONTROLLER_BIT(CONTROLLER_CPUACCT);
	int r = -ENOENT;

	for (int i = 0; i < BASE_RETRIES && (r == -ENOENT || r == -ENODEV); i++) {
		fd_closep(&leaf->parent);
		if (mkdirat(leaf->top, leaf->base, 0755) < 0 && errno != EEXIST)
			return -errno;
		leaf->parent = openat(leaf->top, leaf->base, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = leaf->parent < 0 ? -errno : cgroup_v2_enable(leaf->parent, controllers);
		if (r == 0 && mkdirat(leaf->parent, leaf->name, 0755) < 0)
			r = -errno;
	}
	return r;
}

static int make_dir(struct cgroup_leaf *leaf)
{
	if (leaf->base)
		return make_below_base(leaf);
	return mkdirat(leaf->parent, leaf->name, 0755) < 0 ? -errno : 0;
}

static int limit_disks(const struct cgroup_leaf *leaf, const struct cgroup_limits *limits, struct brig_error *err)
{
	const struct disk_list *disks = limits->disks;

	for (size_t i = 0; limits->disk_io_bps > 0 && cgroup_leaf_has(leaf, CONTROLLER_IO) && i < disks->n; i++) {
		int r = leaf->ops->limit_disk(leaf, disks->dev[i], limits->disk_io_bps);

		if (r < 0)
			return err_set(err, BRIG_E_SYSTEM, -r,
				       "limiting disk %u:%u to %llu bytes per second in %.200s/%s",
				       major(disks->dev[i]), minor(disks->dev[i]),
				       (unsigned long long)limits->disk_io_bps, leaf->path, leaf->name);
	}
	return 0;
}

static int write_limits(const struct cgroup_leaf *leaf, const struct cgroup_limits *limits, struct brig_error *err)
{
	for (size_t i = 0; i < leaf->ops->n_limits; i++) {
		const struct cgroup_limit_file *f = &leaf->ops->limits[i];
		uint64_t value;
		int r;

		if (!cgroup_leaf_has(leaf, f->controller) || !f->value(limits, &value))
			continue;
		r = fd_putf_at(leaf->dir, f->file, "%llu", (unsigned long long)value);
		if (r == 0 || (r == -ENOENT && f->optional))
			continue;
		if (r == -EINVAL && leaf->ops->is_kept_outside && leaf->ops->is_kept_outside(leaf, f, value))
			continue;
		return err_set(err, BRIG_E_SYSTEM, -r, "writing %llu to %.200s/%s/%s", (unsigned long long)value,
			       leaf->path, leaf->name, f->file);
	}
	return limit_disks(leaf, limits, err);
}

static int make_leaf(struct cgroup_leaf *leaf, bool *made, struct brig_error *err)
{
	int r = make_dir(leaf);

	if (r < 0)
		return err_set(err, BRIG_E_SYSTEM, -r, "making the control group %.200s/%s", leaf->path, leaf->name);
	*made = true;
	leaf->dir = openat(leaf->parent, leaf->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (leaf->dir < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "opening the control group %.200s/%s", leaf->path,
			       leaf->name);
	if (!leaf->ops->entry_file)
		return 0;
	leaf->entry = openat(leaf->dir, leaf->ops->entry_file, O_WRONLY | O_CLOEXEC);
	if (leaf->entry < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "opening %.200s/%s/%s", leaf->path, leaf->name,
			       leaf->ops->entry_file);
	return 0;
}

static int prepare_leaf(const struct cgroup_tree *tree, struct cgroup *cg, struct cgroup_leaf *leaf)
{
	int held = fcntl(tree->dir, F_DUPFD_CLOEXEC, 3);

	if (held < 0)
		return -errno;
	*leaf = (struct cgroup_leaf){ .ops = tree->ops,
				      .base = tree->base,
				      .top = FD_NONE,
				      .parent = FD_NONE,
				      .dir = FD_NONE,
				      .entry = FD_NONE,
				      .controllers = tree->controllers,
				      .name = cg->name,
				      .path = tree->path };
	*(tree->base ? &leaf->top : &leaf->parent) = held;
	return 0;
}

int cgroup_prepare(struct cgroup_host *h, const char *id, struct cgroup **ret, struct brig_error *err)
{
	struct cgroup *cg = calloc(1, sizeof(*cg));
	int r;

	if (!cg)
		return err_nomem(err);
	cg->freezer = (struct cgroup_leaf){ .top = FD_NONE, .parent = FD_NONE, .dir = FD_NONE, .entry = FD_NONE };
	r = name_cell(cg, id, err);
	for (size_t i = 0; r == 0 && i < h->n_trees; i++) {
		int sys = prepare_leaf(&h->tree[i], cg, &cg->leaf[cg->n_leaves]);

		if (sys < 0)
			r = err_set(err, BRIG_E_SYSTEM, -sys, "holding the control group %.200s", h->tree[i].path);
		else
			cg->n_leaves++;
	}
	if (r == 0 && h->freezer.dir >= 0)
		(void)prepare_leaf(&h->freezer, cg, &cg->freezer); /* without it a session is stopped by signals */
	if (r < 0) {
		cgroup_free(cg);
		return r;
	}
	*ret = cg;
	return 0;
}

static void close_leaf(struct cgroup_leaf *leaf)
{
	fd_closep(&leaf->entry);
	fd_closep(&leaf->dir);
	fd_closep(&leaf->parent);
	fd_closep(&leaf->top);
}

int cgroup_make(struct cgroup *cg, struct brig_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < cg->n_leaves; i++) {
		bool made = false;

		r = make_leaf(&cg->leaf[i], &made, err);
		if (r == 0)
			continue;
		/* Do not remove what we did not create: a group of that name may belong to another cell. */
		for (size_t k = made ? i + 1 : i; k < cg->n_leaves; k++)
			close_leaf(&cg->leaf[k]);
		cg->n_leaves = made ? i + 1 : i;
	}
	return r;
}

int cgroup_limit(const struct cgroup *cg, const struct cgroup_limits *limits, struct brig_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < cg->n_leaves; i++)
		r = write_limits(&cg->leaf[i], limits, err);
	return r;
}

int cgroup_create(struct cgroup_host *h, const char *id, const struct cgroup_limits *limits, struct cgroup **ret,
		  struct brig_error *err)
{
	struct cgroup *cg = NULL;
	int r = cgroup_prepare(h, id, &cg, err);

	if (!cg)
		return r;
	r = cgroup_make(cg, err);
	if (r == 0)
		r = cgroup_limit(cg, limits, err);
	if (r < 0) {
		(void)cgroup_destroy(cg, clock_now_ns() + 100 * NS_PER_MS);
		return r;
	}
	*ret = cg;
	return 0;
}

/* ---- entering -------------------------------------------------------------------------------- */

int cgroup_clone_fd(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_leaves; i++)
		if (!cg->leaf[i].ops->entry_file)
			return cg->leaf[i].dir;
	return -1;
}

bool cgroup_host_enters_at_clone(const struct cgroup_host *h)
{
	for (size_t i = 0; i < h->n_trees; i++)
		if (!h->tree[i].ops->entry_file)
			return true;
	return false;
}

size_t cgroup_entries(const struct cgroup *cg, int *fds, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cg->n_leaves; i++)
		if (cg->leaf[i].entry >= 0 && n < max)
			fds[n++] = cg->leaf[i].entry;
	return n;
}

int cgroup_open_entries(const struct cgroup *cg, int *fds, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cg->n_leaves && n < max; i++) {
		const struct cgroup_leaf *leaf = &cg->leaf[i];
		const char *file = leaf->ops->entry_file ? leaf->ops->entry_file : "cgroup.procs";
		int fd = openat(leaf->dir, file, O_WRONLY | O_CLOEXEC);

		if (fd < 0) {
			int saved = errno;

			while (n > 0)
				fd_closep(&fds[--n]);
			return -saved;
		}
		fds[n++] = fd;
	}
	return (int)n;
}

int cgroup_enter(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (write(fds[i], "0", 1) < 0)
			return -errno;
	return 0;
}

int cgroup_enter_self(const struct cgroup *cg)
{
	int fds[CGROUP_ENTRIES_MAX];

	return cgroup_enter(fds, cgroup_entries(cg, fds, ARRAY_LEN(fds)));
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_counter(const struct cgroup_leaf *leaf, const struct cgroup_counter *c, uint64_t *ret)
{
	uint64_t value;
	int r = c->key ? cgroup_get_keyed(leaf->dir, c->file, c->key, &value)
		       : fd_get_u64_at(leaf->dir, c->file, &value);

	if (r == 0 && __builtin_mul_overflow(value, c->factor, ret))
		*ret = UINT64_MAX;
	return r;
}

/* One field of struct cgroup_usage by its offset, from whichever leaf has it. */
static int read_field(const struct cgroup *cg, size_t field, uint64_t *ret)
{
	for (size_t i = 0; i < cg->n_leaves; i++) {
		const struct cgroup_leaf *leaf = &cg->leaf[i];

		for (size_t k = 0; k < leaf->ops->n_counters; k++)
			if (leaf->ops->counters[k].field == field &&
			    cgroup_leaf_has(leaf, leaf->ops->counters[k].controller))
				return read_counter(leaf, &leaf->ops->counters[k], ret);
	}
	return -ENODATA;
}

int cgroup_read_cpu_ns(const struct cgroup *cg, uint64_t *ret)
{
	return read_field(cg, offsetof(struct cgroup_usage, cpu_ns), ret);
}

int cgroup_read_oom_kills(const struct cgroup *cg, uint64_t *ret)
{
	return read_field(cg, offsetof(struct cgroup_usage, oom_kills), ret);
}

int cgroup_read_memory(const struct cgroup *cg, uint64_t *ret)
{
	return read_field(cg, offsetof(struct cgroup_usage, memory_bytes), ret);
}

int cgroup_read(struct cgroup *cg, struct cgroup_usage *ret)
{
	*ret = (struct cgroup_usage){ 0 };
	if (cg->n_leaves == 0)
		return -ENODATA;
	for (size_t i = 0; i < cg->n_leaves; i++) {
		const struct cgroup_leaf *leaf = &cg->leaf[i];

		for (size_t k = 0; k < leaf->ops->n_counters; k++) {
			const struct cgroup_counter *c = &leaf->ops->counters[k];

			/* What this kernel does not count stays 0. */
			if (cgroup_leaf_has(leaf, c->controller))
				(void)read_counter(leaf, c, (uint64_t *)(void *)((char *)ret + c->field));
		}
	}
	cg->memory_peak_seen = max_u64(cg->memory_peak_seen, ret->memory_bytes);
	ret->memory_peak_bytes = max_u64(ret->memory_peak_bytes, cg->memory_peak_seen);
	return 0;
}

void cgroup_readback(const struct cgroup *cg, enum cgroup_resource r, struct cgroup_readback *ret)
{
	*ret = (struct cgroup_readback){ 0 };
	for (size_t i = 0; i < cg->n_leaves && !ret->known; i++)
		cg->leaf[i].ops->readback(&cg->leaf[i], r, ret);
}

void cgroup_readback_disks(const struct cgroup *cg, const struct disk_list *disks, struct cgroup_readback *ret)
{
	*ret = (struct cgroup_readback){ 0 };
	for (size_t i = 0; i < cg->n_leaves && !ret->known; i++) {
		const struct cgroup_leaf *leaf = &cg->leaf[i];
		uint64_t most = 0, value;
		int r = cgroup_leaf_has(leaf, CONTROLLER_IO) ? 0 : -ENODATA;

		for (size_t k = 0; r == 0 && k < disks->n; k++) {
			r = leaf->ops->read_disk(leaf, disks->dev[k], &value);
			most = r == 0 ? max_u64(most, value) : most;
		}
		if (r == 0)
			cgroup_known(leaf, leaf->ops->disk_file, most, ret);
	}
}

void cgroup_mark(const struct cgroup *cg, const char *text)
{
	for (size_t i = 0; i < cg->n_leaves; i++) {
		char path[32];

		/* The descriptor is a path only, which fsetxattr() does not take. */
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", cg->leaf[i].dir);
		(void)setxattr(path, CGROUP_MARK, text, strlen(text), 0);
	}
}

/* ---- tasks inside ---------------------------------------------------------------------------- */

/* 0: a task of a pid namespace that we cannot see.  -errno if the list cannot be read. */
static int each_task(const struct cgroup_leaf *leaf, void (*fn)(void *arg, pid_t pid), void *arg)
{
	AUTO_FD fd = openat(leaf->dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char text[4096];
	pid_t pid = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++) { /* a number may be split between two reads */
			if (text[i] != '\n') {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			fn(arg, pid);
			pid = 0;
		}
	}
	return n < 0 ? -errno : 0;
}

struct signalled {
	int sig, count;
	pid_t besides;
};

static void signal_task(void *arg, pid_t pid)
{
	struct signalled *s = arg;

	if (s->sig && pid > 1)
		(void)kill(pid, s->sig);
	s->count += s->besides == 0 || pid != s->besides;
}

/* Counts the tasks in one group but one and sends each the signal (0: none).  -errno if the list cannot be read. */
static int signal_tasks(const struct cgroup_leaf *leaf, int sig, pid_t besides)
{
	struct signalled s = { .sig = sig, .besides = besides };
	int rc = each_task(leaf, signal_task, &s);

	return rc < 0 ? rc : s.count;
}

static int count_all(const struct cgroup_leaf *leaf)
{
	return signal_tasks(leaf, 0, 0);
}

int cgroup_count_tasks(const struct cgroup *cg, pid_t besides)
{
	int most = -ENODATA;

	/* A task enters the trees one after another: whatever has entered any of them counts. */
	for (size_t i = 0; i < cg->n_leaves; i++) {
		int n = signal_tasks(&cg->leaf[i], 0, besides);
		int more = n < 0 ? 0 : cgroup_count_programs(&cg->leaf[i], count_all);

		n += more > 0 ? more : 0;
		if (n > most || (n < 0 && most == -ENODATA))
			most = n;
	}
	return most;
}

struct looked_for {
	pid_t one, two;
	bool has_one, has_two;
};

static void look_at_task(void *arg, pid_t pid)
{
	struct looked_for *l = arg;

	l->has_one |= pid == l->one;
	l->has_two |= pid == l->two;
}

bool cgroup_has_two(const struct cgroup *cg, pid_t one, pid_t two)
{
	for (size_t i = 0; i < cg->n_leaves; i++) {
		struct looked_for l = { .one = one, .two = two };

		if (cg->leaf[i].dir >= 0 && (each_task(&cg->leaf[i], look_at_task, &l) < 0 || !l.has_one || !l.has_two))
			return false;
	}
	return true;
}

static void kill_leaf(const struct cgroup_leaf *leaf)
{
	if (leaf->dir < 0 || (leaf->ops->kill_all && leaf->ops->kill_all(leaf)))
		return;
	/* A fork bomb outruns one pass, but not the limit on its number: each pass leaves fewer to fork.  A single task
	 * that is still listed has got its signal, and needs the CPU more than we do. */
	for (int pass = 0; pass < 16 && signal_tasks(leaf, SIGKILL, 0) > 1; pass++)
		;
}

void cgroup_kill(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_leaves; i++)
		kill_leaf(&cg->leaf[i]);
}

void cgroup_lift_quota(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_leaves; i++)
		if (cg->leaf[i].dir >= 0 && cgroup_leaf_has(&cg->leaf[i], CONTROLLER_CPU))
			(void)fd_put_at(cg->leaf[i].dir, cg->leaf[i].ops->quota_file, cg->leaf[i].ops->no_quota);
}

/* ---- removing -------------------------------------------------------------------------------- */

static bool remove_leaf(const struct cgroup_leaf *leaf)
{
	/* The janitor was forked before the base was made and opened. */
	AUTO_FD late = leaf->parent < 0 ? openat(leaf->top, leaf->base, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
					: FD_NONE;
	int parent = leaf->parent < 0 ? late : leaf->parent;

	if (parent >= 0 && unlinkat(parent, leaf->name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENODEV) {
		struct cgroup_leaf opened = *leaf;
		AUTO_FD dir = leaf->dir < 0 ? openat(parent, leaf->name, O_PATH | O_DIRECTORY | O_CLOEXEC) : FD_NONE;

		if (opened.dir < 0)
			opened.dir = dir;
		cgroup_thaw_leaf(&opened);
		kill_leaf(&opened);
		cgroup_remove_programs(&opened);
		return false;
	}
	if (leaf->base)
		(void)unlinkat(leaf->top, leaf->base, AT_REMOVEDIR); /* stays while another cell is in it */
	return true;
}

bool cgroup_remove_once(const struct cgroup *cg, unsigned *left)
{
	const unsigned freezer = 1u << cg->n_leaves;

	*left &= 2 * freezer - 1;
	/* What is frozen dies in no other group either: it comes first. */
	if ((*left & freezer) && (cg->freezer.parent < 0 || remove_leaf(&cg->freezer)))
		*left &= ~freezer;
	for (size_t i = 0; i < cg->n_leaves; i++)
		if ((*left & 1u << i) && remove_leaf(&cg->leaf[i]))
			*left &= ~(1u << i);
	return *left == 0;
}

int cgroup_remove(const struct cgroup *cg, uint64_t deadline_ns)
{
	unsigned left = CGROUP_EVERY_LEAF;
	uint64_t begin = clock_now_ns(), now;

	for (;;) {
		uint64_t pause_ns;

		if (cgroup_remove_once(cg, &left))
			return 0;
		now = clock_now_ns();
		if (now >= deadline_ns)
			return -EBUSY;
		/* Usually a process is slow to die: at worst this waits an eighth of that time too long. */
		pause_ns = min_u64(max_u64((now - begin) / 8, FIRST_PAUSE_NS), LAST_PAUSE_NS);
		wait_sleep(pause_ns);
	}
}

const char *cgroup_name(const struct cgroup *cg)
{
	return cg->name;
}

void cgroup_take_name(struct cgroup *cg, const char *name)
{
	(void)str_copy(cg->name, sizeof(cg->name), name); /* which every leaf points to */
}

void cgroup_free(struct cgroup *cg)
{
	if (!cg)
		return;
	for (size_t i = 0; i < cg->n_leaves; i++)
		close_leaf(&cg->leaf[i]);
	close_leaf(&cg->freezer);
	free(cg);
}

int cgroup_destroy(struct cgroup *cg, uint64_t deadline_ns)
{
	int r = cg ? cgroup_remove(cg, deadline_ns) : 0;

	cgroup_free(cg);
	return r;
}

void cgroup_close_other_fds(const struct cgroup *cg, int keep)
{
	int kept[2 * CONTROLLER_COUNT + 2];
	size_t n = 0;
	int from = 0;

	kept[n++] = keep;
	if (cg->freezer.parent >= 0)
		kept[n++] = cg->freezer.parent;
	for (size_t i = 0; i < cg->n_leaves; i++) {
		if (cg->leaf[i].top >= 0)
			kept[n++] = cg->leaf[i].top;
		if (cg->leaf[i].parent >= 0)
			kept[n++] = cg->leaf[i].parent;
	}
	/* Closes the gaps between the kept ones, lowest first. */
	for (;;) {
		int next = -1;

		for (size_t i = 0; i < n; i++)
			if (kept[i] >= from && (next < 0 || kept[i] < next))
				next = kept[i];
		if (next < 0)
			break;
		if (next > from)
			(void)close_range((unsigned)from, (unsigned)next - 1, 0);
		from = next + 1;
	}
	(void)close_range((unsigned)from, ~0U, 0);
}
