/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and removes the namespace's pods that brig created, running or orphaned (owners: ../container/owner.h). */
#include <string.h>
#include <time.h>

#include "backend/container/answer.h"
#include "backend/kubernetes/pod.h"
#include "base/clock.h"
#include "base/str.h"

/* "2026-01-02T03:04:05Z" */
static uint64_t seconds_of(const char *text)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	time_t at = end && !*end ? timegm(&tm) : 0;

	return at > 0 ? (uint64_t)at : 0;
}

static bool describe(const struct backend_host *h, const json_t *pod, struct cell_entry *ret)
{
	const json_t *labels = answer_at(pod, "metadata.labels");
	uint64_t created = seconds_of(answer_text_or(pod, "metadata.creationTimestamp", ""));
	uint64_t now = (uint64_t)time(NULL);
	struct owner o;

	*ret = (struct cell_entry){ .owner = 0 };
	if (!owner_read(labels, &o))
		return false;
	(void)str_copy(ret->id, sizeof(ret->id), owner_label(labels, LABEL_CELL));
	(void)answer_clean(ret->name, sizeof(ret->name), answer_text_or(pod, "metadata.name", ""));
	(void)answer_clean(ret->language, sizeof(ret->language), owner_label(labels, LABEL_LANGUAGE));
	ret->owner = (pid_t)o.pid;
	ret->orphan = owner_is_dead(&h->self, labels, &o) && (geteuid() == 0 || o.uid == getuid());
	if (created > 0 && created < now)
		ret->age_ms = (now - created) * 1000;
	return ret->name[0] != '\0';
}

static int visit(struct backend_host *h, const json_t *pod, bool remove, cell_entry_fn each, void *arg,
		 struct brig_error *err)
{
	struct cell_entry entry;
	int rc = 0;

	if (!describe(h, pod, &entry) || (remove && !entry.orphan))
		return 0;
	h->api.deadline_ns = clock_now_ns() + cluster_patience_ms(h->set->cleanup_timeout_ms) * NS_PER_MS;
	if (remove)
		rc = api_pod_delete(&h->api, entry.name, answer_text_or(pod, "metadata.uid", ""), 1, err);
	if (rc < 0 || !each)
		return rc < 0 ? rc : 0;
	return each(arg, &entry);
}

static int walk(const struct settings *set, bool remove, cell_entry_fn each, void *arg, struct brig_error *err)
{
	struct backend_host h = { .set = set };
	uint64_t deadline = clock_now_ns() + cluster_patience_ms(set->startup_timeout_ms) * NS_PER_MS;
	int rc = api_open(set, deadline, &h.api, err);
	json_t *list = NULL;

	if (rc < 0)
		return rc;
	owner_identify(&h.self);
	h.api.deadline_ns = deadline;
	rc = api_pod_list(&h.api, LABEL_CELL, &list, err);
	for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
		rc = visit(&h, json_array_get(list, i), remove, each, arg, err);
	json_decref(list);
	api_close(&h.api);
	return rc;
}

int pods_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return walk(set, /* remove= */ false, each, arg, err);
}

int pods_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err)
{
	return walk(set, /* remove= */ true, each, arg, err);
}
