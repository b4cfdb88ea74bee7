/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a container.  Labels identify the process that created it: machine, boot, user, pid and the pid's start
 * time, a combination that is never reused.  A container is an orphan if that process is gone: the machine was rebooted
 * since, or no process has that pid and start time.  A process that cannot be seen from here (another machine, another
 * pid namespace) may be alive, so its containers are left alone until long after their deadline.
 *
 * Whoever may create containers can set any labels; still, a container is removed only if every label is present and
 * well-formed.
 */
#ifndef CONTAINER_OWNER_H
#define CONTAINER_OWNER_H

#include <jansson.h>
#include <sys/types.h>

#include "model/plan.h"

#define LABEL_CELL     "brig.cell"
#define LABEL_STEP     "brig.step"
#define LABEL_LANGUAGE "brig.language"
#define LABEL_UID      "brig.owner.uid"
#define LABEL_PID      "brig.owner.pid"
#define LABEL_START    "brig.owner.start"
#define LABEL_BOOT     "brig.owner.boot"
#define LABEL_MACHINE  "brig.owner.machine"
#define LABEL_DEADLINE "brig.deadline"

/* Pids are only meaningful within one pid namespace of one machine. */
struct owner_self {
	char boot_id[40];
	char machine_id[40];
};

struct owner {
	uint64_t uid, pid, start, deadline;
};

void owner_identify(struct owner_self *self);
/* All labels for a container that this process creates; grace_ms: time beyond the plan's. */
json_t *owner_labels(const struct owner_self *self, const struct plan *plan, uint64_t grace_ms);
const char *owner_label(const json_t *labels, const char *key); /* "" if missing */
/* false: some are missing. */
bool owner_read(const json_t *labels, struct owner *ret);
bool owner_is_dead(const struct owner_self *self, const json_t *labels, const struct owner *o);
/* In clock ticks since boot; 0: no such process. */
uint64_t owner_start_time(pid_t pid);

#endif
