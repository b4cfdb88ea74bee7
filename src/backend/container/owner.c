/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/container/owner.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/str.h"

#define LATE_SECONDS 3600

void owner_identify(struct owner_self *self)
{
	struct stat ns;
	char id[33];

	if (fd_get_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", self->boot_id, sizeof(self->boot_id)) < 0)
		self->boot_id[0] = '\0';
	if (fd_get_at(AT_FDCWD, "/etc/machine-id", id, sizeof(id)) < 0)
		id[0] = '\0';
	if (stat("/proc/self/ns/pid", &ns) < 0)
		ns.st_ino = 0;
	(void)snprintf(self->machine_id, sizeof(self->machine_id), "%.16s-%llx", id[0] ? id : "0",
		       (unsigned long long)ns.st_ino);
}

uint64_t owner_start_time(pid_t pid)
{
	char path[40], text[1024], *at;
	unsigned long long ticks = 0;
	int threads;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_get_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	at = strrchr(text, ')'); /* the command name before it may contain anything */
	if (!at || at[1] != ' ' ||
	    sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu", &threads,
		   &ticks) != 2)
		return 0;
	/*
	 * A zombie.  A thread group whose leader has exited before the other threads looks the same, except for their
	 * number.
	 */
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

json_t *owner_labels(const struct owner_self *self, const struct plan *plan, uint64_t grace_ms)
{
	const struct limits *l = &plan->limits;
	uint64_t ms = l->startup_ms + l->wall_ms + l->cleanup_ms + grace_ms;
	json_t *v = json_object();

	label(v, LABEL_CELL, "%s", plan->id);
	label(v, LABEL_STEP, "%s", plan->step);
	label(v, LABEL_LANGUAGE, "%s", plan->language ? plan->language : "");
	label(v, LABEL_UID, "%u", getuid());
	label(v, LABEL_PID, "%d", getpid());
	label(v, LABEL_START, "%llu", (unsigned long long)owner_start_time(getpid()));
	label(v, LABEL_BOOT, "%s", self->boot_id);
	label(v, LABEL_MACHINE, "%s", self->machine_id);
	label(v, LABEL_DEADLINE, "%llu", (unsigned long long)time(NULL) + ms / 1000 + 1);
	return v;
}

/* Label names contain dots, so they cannot be paths. */
const char *owner_label(const json_t *labels, const char *key)
{
	const char *s = json_string_value(json_object_get(labels, key));

	return s ? s : "";
}

static bool label_number(const json_t *labels, const char *key, uint64_t *ret)
{
	return str_to_u64(owner_label(labels, key), ret);
}

static bool is_cell_id(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz234567");

	return n == RUN_ID_LEN && s[n] == '\0';
}

bool owner_read(const json_t *labels, struct owner *ret)
{
	return is_cell_id(owner_label(labels, LABEL_CELL)) && label_number(labels, LABEL_UID, &ret->uid) &&
	       label_number(labels, LABEL_PID, &ret->pid) && ret->pid > 0 && ret->pid < INT32_MAX &&
	       label_number(labels, LABEL_START, &ret->start) && label_number(labels, LABEL_DEADLINE, &ret->deadline) &&
	       owner_label(labels, LABEL_BOOT)[0] && owner_label(labels, LABEL_MACHINE)[0];
}

bool owner_is_dead(const struct owner_self *self, const json_t *labels, const struct owner *o)
{
	size_t machine = strcspn(self->machine_id, "-");
	bool late = (uint64_t)time(NULL) > o->deadline + LATE_SECONDS;

	if (str_eq(owner_label(labels, LABEL_BOOT), self->boot_id))
		return str_eq(owner_label(labels, LABEL_MACHINE), self->machine_id)
			       ? owner_start_time((pid_t)o->pid) != o->start
			       : late;
	if (late)
		return true;
	/* The same machine was rebooted since; a machine without an id counts as unknown. */
	return machine > 1 && strncmp(owner_label(labels, LABEL_MACHINE), self->machine_id, machine + 1) == 0;
}
