/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's containers that brig created, running or orphaned (owners: ../container/owner.h). */
#include <string.h>
#include <time.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "backend/docker/pool.h"
#include "base/clock.h"
#include "base/str.h"

#define SWEEP_MS 2000

/*
 * Docker 20.10 keeps listing some containers whose removal it has finished, if their brig was killed meanwhile, until
 * the engine is restarted: without a name, and unknown when they are inspected.  There is nothing left to show or to
 * remove.
 */
bool owner_is_ghost(const json_t *row)
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
	if (owner_is_ghost(row) || !owner_read(labels, &o))
		return false;
	/* A container of a pool belongs to the pool until it is claimed. */
	ret->waiting = owner_label(labels, LABEL_POOL)[0] != '\0' &&
		       !pool_record_read(owner_label(labels, LABEL_POOL), o.uid, answer_text_or(row, "Id", ""), &o.pid,
					 &o.start);
	(void)str_copy(ret->id, sizeof(ret->id), owner_label(labels, LABEL_CELL));
	(void)str_copy(ret->name, sizeof(ret->name), answer_text_or(row, "Id", ""));
	(void)answer_clean(ret->language, sizeof(ret->language), owner_label(labels, LABEL_LANGUAGE));
	ret->owner = (pid_t)o.pid;
	ret->orphan = owner_is_dead(&h->self, labels, &o) && (geteuid() == 0 || o.uid == getuid());
	ret->waiting = ret->waiting && !ret->orphan;
	if (answer_u64(row, "Created", &created) && created < now)
		ret->age_ms = (now - created) * 1000;
	return true;
}

static void set_deadline(struct backend_host *h, uint64_t ms, uint64_t until_ns)
{
	engine_set_deadline(h->engine, until_ns ? until_ns : clock_now_ns() + engine_patience_ms(ms) * NS_PER_MS);
}

/* until_ns: limit for all containers together; 0: only the settings' limits for each. */
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
	if (remove && rc == 0)
		pool_records_sweep(list);
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
	owner_identify(&h.self);
	rc = walk(&h, remove, each, arg, 0, err);
	engine_close(h.engine);
	return rc;
}

/*
 * Removes what a killed brig left before the next run begins, if that is quick; otherwise `brig reap` reports the
 * problem.
 */
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
