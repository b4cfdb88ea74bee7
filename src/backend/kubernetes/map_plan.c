/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place where a plan becomes a pod.  Every field that could widen a cell is explicit, even if the value is the
 * API's default: defaults change, admission plugins fill in missing fields, and only explicit fields can be compared
 * (map_check.c).
 */
#include <stdio.h>
#include <string.h>

#include "backend/container/init.h"
#include "backend/kubernetes/pod.h"
#include "base/str.h"

static json_t *text(const char *fmt, ...) PRINTF(1, 2);
static json_t *text(const char *fmt, ...)
{
	char s[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	return json_string(s);
}

/* A place in memory, which is charged to the container. */
static void add_place(json_t *volumes, json_t *mounts, const char *name, const char *path, uint64_t bytes,
		      bool read_only)
{
	json_t *volume = json_pack("{s:s, s:{s:s, s:o}}", "name", name, "emptyDir", "medium", "Memory", "sizeLimit",
				   text("%llu", (unsigned long long)bytes));
	json_t *mount = json_pack("{s:s, s:s}", "name", name, "mountPath", path);

	if (read_only)
		(void)json_object_set_new(mount, "readOnly", json_true());
	(void)json_array_append_new(volumes, volume);
	(void)json_array_append_new(mounts, mount);
}

static void add_places(const struct cell *c, json_t *volumes, json_t *mounts)
{
	struct place_sizes s = lifecycle_places(&c->plan->limits);

	/* The limits apply to what the program adds. */
	add_place(volumes, mounts, "workspace", PLAN_WORKSPACE, s.bytes[0] + c->pump.project.room, false);
	add_place(volumes, mounts, "tmp", "/tmp", s.bytes[1], false);
	add_place(volumes, mounts, "shm", "/dev/shm", s.bytes[2], false);
	/* Runtimes would mount a writable mqueue file system there. */
	add_place(volumes, mounts, "mqueue", "/dev/mqueue", 4 * KiB, true);
	/* Init unpacks the shown tree there, and Landlock rules forbid writing to it. */
	if (c->pump.folder)
		add_place(volumes, mounts, "shown", c->pump.folder->target, max_u64(c->pump.shown.room, 4 * KiB),
			  false);
}

static json_t *amounts(const struct limits *l)
{
	json_t *v = json_object();

	(void)json_object_set_new(v, "cpu", text("%llum", (unsigned long long)l->cpu_percent * 10));
	(void)json_object_set_new(v, "memory", text("%llu", (unsigned long long)l->memory_bytes));
	return v;
}

static json_t *profile(void)
{
	/* Our own profile would have to be a file on the node; init installs our filter for the program. */
	return json_pack("{s:s}", "type", "RuntimeDefault");
}

static json_t *container_security(const struct plan *plan)
{
	return json_pack("{s:b, s:b, s:b, s:b, s:I, s:I, s:{s:[s]}, s:o}", "allowPrivilegeEscalation", 0, "privileged",
			 0, "readOnlyRootFilesystem", 1, "runAsNonRoot", 1, "runAsUser", (json_int_t)plan->uid,
			 "runAsGroup", (json_int_t)plan->gid, "capabilities", "drop", "ALL", "seccompProfile",
			 profile());
}

static json_t *container(const struct cell *c, json_t *mounts)
{
	json_t *v = json_pack("{s:s, s:s, s:s, s:[s], s:s, s:b, s:b, s:b}", "name", POD_CONTAINER, "image", c->image,
			      "imagePullPolicy", "IfNotPresent", "command", CONTAINER_INIT_PATH, "workingDir", "/",
			      "stdin", 1, "stdinOnce", 1, "tty", 0);
	json_t *resources = json_object();

	/* Requests equal limits: nothing is overcommitted, and the node has what is promised. */
	(void)json_object_set_new(resources, "limits", amounts(&c->plan->limits));
	(void)json_object_set_new(resources, "requests", amounts(&c->plan->limits));
	(void)json_object_set_new(v, "resources", resources);
	(void)json_object_set_new(v, "securityContext", container_security(c->plan));
	(void)json_object_set_new(v, "volumeMounts", mounts);
	return v;
}

static json_t *spec(const struct cell *c)
{
	const struct limits *l = &c->plan->limits;
	uint64_t ms = l->startup_ms + l->wall_ms + l->cleanup_ms + 2 * (uint64_t)CLUSTER_GRACE_MS;
	json_int_t seconds = (json_int_t)(ms / 1000);
	json_t *volumes = json_array(), *mounts = json_array(), *v;

	add_places(c, volumes, mounts);
	v = json_pack("{s:s, s:I, s:I, s:b, s:b, s:b, s:b, s:b, s:b, s:s, s:s, s:{s:[s]}}", "restartPolicy", "Never",
		      "activeDeadlineSeconds", seconds + 1, "terminationGracePeriodSeconds", (json_int_t)1,
		      "automountServiceAccountToken", 0, "enableServiceLinks", 0, "hostNetwork", 0, "hostPID", 0,
		      "hostIPC", 0, "shareProcessNamespace", 0, "hostname", "cell", "dnsPolicy", "None", "dnsConfig",
		      "nameservers", "127.0.0.1");
	(void)json_object_set_new(v, "securityContext",
				  json_pack("{s:b, s:I, s:I, s:o}", "runAsNonRoot", 1, "runAsUser",
					    (json_int_t)c->plan->uid, "runAsGroup", (json_int_t)c->plan->gid,
					    "seccompProfile", profile()));
	if (c->host->api.minor >= HOST_USERS_MINOR)
		(void)json_object_set_new(v, "hostUsers", json_false());
	if (c->host->set->kubernetes_runtime[0])
		(void)json_object_set_new(v, "runtimeClassName", json_string(c->host->set->kubernetes_runtime));
	(void)json_object_set_new(v, "containers", json_array());
	(void)json_array_append_new(json_object_get(v, "containers"), container(c, mounts));
	(void)json_object_set_new(v, "volumes", volumes);
	return v;
}

json_t *map_plan_pod(const struct cell *c, struct brig_error *err)
{
	json_t *labels = owner_labels(&c->host->self, c->plan, 2 * (uint64_t)CLUSTER_GRACE_MS);
	json_t *pod = json_pack("{s:s, s:s, s:{s:s, s:o}, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", "name",
				c->name, "labels", labels, "spec", spec(c));

	if (!pod)
		(void)err_nomem(err);
	return pod;
}
