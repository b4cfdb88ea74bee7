/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose container it is.  Labels name the process that made it: machine, boot, user, pid and the pid's start time, which
 * together are never used twice.  A container is an orphan if that very process is gone: the machine has booted
 * since, or no process has that pid and start time.  Of a process that cannot be seen from here (another machine, another
 * pid namespace) nothing is known, so its containers are left alone until their deadline has long passed.
 *
 * Labels are the engine's, which only its users can set, and who may use it is root there; still a container is removed
 * only by its full id and only if every label is there and well-formed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "backend/docker/pool.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define LATE_SECONDS 3600
#define SWEEP_MS     2000

/* Pids mean something within one pid namespace of one machine. */
void owner_identify(struct backend_host *h)
{
	struct stat ns;
	char id[33];

	if (fd_get_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", h->boot_id, sizeof(h->boot_id)) < 0)
		h->boot_id[0] = '\0';
	if (fd_get_at(AT_FDCWD, "/etc/machine-id", id, sizeof(id)) < 0)
		id[0] = '\0';
	if (stat("/proc/self/ns/pid", &ns) < 0)
		ns.st_ino = 0;
	(void)snprintf(h->machine_id, sizeof(h->machine_id), "%.16s-%llx", id, (unsigned long long)ns.st_ino);
}

uint64_t owner_start_time(pid_t pid)
{
	char path[40], text[1024], *at;
	unsigned long long ticks = 0;
	int threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	at = strrchr(text, ')'); /* the command's name before it may hold anything */
	if (!at || at[1] != ' ' ||
	    sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu", &threads,
		   &ticks) != 2)
		return 0;
	/* Dead, and only not waited for; a first thread that has ended before the others looks the same. */
	if ((at[2] == 'Z' || at[2] == 'X') && threads <= 1)
		return 0;
	return ticks;
}

static void label(json_t *v, const char *key, const char *fmt, ...) PRINTF(3, 4);
static void label(json_t *v, const char *key, const char *fmt, ...)
{
	char s[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	(void)json_object_set_new(v, key, json_string(s));
}

json_t *owner_labels(const struct cell *c)
{
	const struct limits *l = &c->plan->limits;
	uint64_t ms = l->startup_ms + l->wall_ms + l->cleanup_ms + 2 * ENGINE_GRACE_MS;
	json_t *v = json_object();

	label(v, LABEL_CELL, "%s", c->plan->id);
	label(v, LABEL_STEP, "%s", c->plan->step);
	label(v, LABEL_LANGUAGE, "%s", c->plan->language ? c->plan->language : "");
	label(v, LABEL_UID, "%u", getuid());
	label(v, LABEL_PID, "%d", getpid());
	label(v, LABEL_START, "%llu", (unsigned long long)owner_start_time(getpid()));
	label(v, LABEL_BOOT, "%s", c->host->boot_id);
	label(v, LABEL_MACHINE, "%s", c->host->machine_id);
	label(v, LABEL_DEADLINE, "%llu", (unsigned long long)time(NULL) + ms / 1000 + 1);
	return v;
}

/* ---- others' containers --------------------------------------------------------------------------- */

/* Labels have dots in their names, so they are not paths. */
static const char *label_of(const json_t *labels, const char *key)
{
	const char *s = json_string_value(json_object_get(labels, key));

	return s ? s : "";
}

static bool label_number(const json_t *labels, const char *key, uint64_t *ret)
{
	return str_to_u64(label_of(labels, key), ret);
}

static bool is_cell_id(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz234567");

	return n == RUN_ID_LEN && s[n] == '\0';
}

struct owner {
	uint64_t uid, pid, start, deadline;
};

static bool read_owner(const json_t *labels, struct owner *ret)
{
	return is_cell_id(label_of(labels, LABEL_CELL)) && label_number(labels, LABEL_UID, &ret->uid) &&
	       label_number(labels, LABEL_PID, &ret->pid) && ret->pid > 0 && ret->pid < INT32_MAX &&
	       label_number(labels, LABEL_START, &ret->start) && label_number(labels, LABEL_DEADLINE, &ret->deadline) &&
	       label_of(labels, LABEL_BOOT)[0] && label_of(labels, LABEL_MACHINE)[0];
}

static bool owner_is_dead(const struct backend_host *h, const json_t *labels, const struct owner *o)
{
	size_t machine = strcspn(h->machine_id, "-");
	bool late = (uint64_t)time(NULL) > o->deadline + LATE_SECONDS;

	if (str_eq(label_of(labels, LABEL_BOOT), h->boot_id))
		return str_eq(label_of(labels, LABEL_MACHINE), h->machine_id)
			       ? owner_start_time((pid_t)o->pid) != o->start
			       : late;
	if (late)
		return true;
	/* The same machine has booted since. */
	return machine > 0 && strncmp(label_of(labels, LABEL_MACHINE), h->machine_id, machine + 1) == 0;
}

/*
 * Docker 20.10 goes on listing some containers whose removal it has done, after their brig was killed in it, as long as the
 * engine lives: without a name, and unknown to it when it is asked for them.  There is nothing left to show or to remove.
 */
static bool is_ghost(const json_t *row)
{
	const json_t *names = json_object_get(row, "Names");

	return json_is_array(names) && json_array_size(names) == 0 &&
	       str_eq(answer_text_or(row, "State", ""), "removing");
}

static bool describe(const struct backend_host *h, const json_t *row, struct cell_entry *ret)
{
	json_t *labels = json_object_get(row, "Labels");
	struct owner o;
	uint64_t created = 0, now = (uint64_t)time(NULL);

	*ret = (struct cell_entry){ .owner = 0 };
	if (is_ghost(row) || !read_owner(labels, &o))
		return false;
	/* A pool's container is the pool's until somebody has claimed it. */
	ret->waiting =
		label_of(labels, LABEL_POOL)[0] != '\0' &&
		!pool_record_read(label_of(labels, LABEL_POOL), o.uid, answer_text_or(row, "Id", ""), &o.pid, &o.start);
	(void)str_copy(ret->id, sizeof(ret->id), label_of(labels, LABEL_CELL));
	(void)str_copy(ret->name, sizeof(ret->name), answer_text_or(row, "Id", ""));
	(void)answer_clean(ret->language, sizeof(ret->language), label_of(labels, LABEL_LANGUAGE));
	ret->owner = (pid_t)o.pid;
	ret->orphan = owner_is_dead(h, labels, &o) && (geteuid() == 0 || o.uid == getuid());
	ret->waiting = ret->waiting && !ret->orphan;
	if (answer_u64(row, "Created", &created) && created < now)
		ret->age_ms = (now - created) * 1000;
	return true;
}

static void set_deadline(struct backend_host *h, uint64_t ms, uint64_t until_ns)
{
	engine_set_deadline(h->engine, until_ns ? until_ns : clock_now_ns() + engine_patience_ms(ms) * NS_PER_MS);
}

/* until_ns: no longer than this in all; 0: as long as the settings allow for each. */
static int walk(struct backend_host *h, bool remove, cell_entry_fn each, void *arg, uint64_t until_ns,
		struct brig_error *err)
{
	json_t *list = NULL, *row;
	size_t i;
	int rc;

	set_deadline(h, h->set->startup_timeout_ms, until_ns);
	rc = engine_list(h->engine, LABEL_CELL, &list, err);
	if (rc < 0)
		return rc;
	json_array_foreach(list, i, row)
	{
		struct cell_entry entry;

		if (!describe(h, row, &entry) || (remove && !entry.orphan))
			continue;
		set_deadline(h, h->set->cleanup_timeout_ms, until_ns);
		if (remove)
			rc = engine_remove(h->engine, entry.name, err);
		if (remove && rc == 0)
			pool_record_forget(row, entry.name);
		if (rc == 0 && each)
			rc = each(arg, &entry);
		if (rc < 0)
			break;
	}
	json_decref(list);
	return rc;
}

static int with_engine(const struct settings *set, bool remove, cell_entry_fn each, void *arg, struct brig_error *err)
{
	struct backend_host h = { .set = set };
	int rc = engine_open(set, clock_now_ns() + engine_patience_ms(set->startup_timeout_ms) * NS_PER_MS, &h.engine,
			     err);

	if (rc < 0)
		return rc;
	owner_identify(&h);
	rc = walk(&h, remove, each, arg, 0, err);
	engine_close(h.engine);
	return rc;
}

/* What a killed brig left is gone before the next one begins, if that is quickly done; else `brig reap` says why not. */
void owner_sweep(struct backend_host *h)
{
	struct brig_error ignored = BRIG_ERROR_INIT;
	uint64_t deadline = clock_now_ns() + SWEEP_MS * NS_PER_MS;

	(void)walk(h, /* remove= */ true, NULL, NULL, deadline, &ignored);
}

int owner_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return with_engine(set, /* remove= */ false, each, arg, err);
}

int owner_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return with_engine(set, /* remove= */ true, each, arg, err);
}
