/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place where a plan becomes container settings.  Every field that could widen a cell is explicit, even if the
 * value is the engine's default: defaults change, and only explicit fields can be compared (map_check.c).
 *
 * Protections that Docker cannot promise, on any engine, are in DOCKER_NEVER (cell.h):
 *
 *	user_ns, id_separation  uid 1000 inside is uid 1000 of the host, for init and program alike, unless the engine
 *	remaps ids or is rootless; a container cannot request that
 *	time_ns                 the engine has no such setting: the program sees the host's uptime
 *	proc_subset             /proc is the engine's, with masks over files that describe the machine (masks.def), not
 *	subset=pid
 *	nested_userns           the sysctl is the host's; only the two system call filters forbid user namespaces
 *	user_counts             likewise: what the program uses is charged to uid 1000 of the host
 *	socket_memory           cgroup v1 has a separate limit for it, which the engine does not set
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/docker/cell.h"
#include "backend/container/init.h"
#include "backend/docker/profile.h"
#include "base/fd.h"
#include "base/str.h"

#define CPU_PERIOD_US 100000

static json_t *text(const char *fmt, ...) PRINTF(1, 2);
static json_t *text(const char *fmt, ...)
{
	char s[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	return json_string(s);
}

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)min_u64(n, INT64_MAX));
}

/*
 * A place that the program may write to.  Podman accepts no owner for a tmpfs; then the place is writable for all
 * users, of which the container has one.  Nor does it accept a number of inodes: only the memory limit, to which they
 * are charged, bounds them.
 */
static json_t *writable(const struct cell *c, bool is_exec, uint64_t bytes, uint64_t inodes, bool is_owned)
{
	char count[40] = "", owner[64] = "mode=1777";

	if (!c->host->podman)
		(void)snprintf(count, sizeof(count), "nr_inodes=%llu,", (unsigned long long)inodes);
	if (!c->host->podman && is_owned)
		(void)snprintf(owner, sizeof(owner), "mode=0755,uid=%u,gid=%u", c->plan->uid, c->plan->gid);
	return text("rw,nosuid,nodev,%s,size=%llu,%s%s", is_exec ? "exec" : "noexec", (unsigned long long)bytes, count,
		    owner);
}

static json_t *tmpfs(const struct cell *c)
{
	static const char *const names[] = { PLAN_WORKSPACE, "/tmp", "/dev/shm" };
	static const char *const closed[] = { "/run", "/var/tmp" };
	static const char closed_options[] = "ro,nosuid,nodev,noexec,size=4096,mode=0555";
	struct place_sizes s = lifecycle_places(&c->plan->limits);
	json_t *v = json_object();

	s.bytes[0] += c->pump.project.room; /* the limits apply to what the program adds */
	s.inodes[0] += c->pump.project.entries;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)json_object_set_new(
			v, names[i],
			writable(c, i < 2 && c->plan->workspace_exec, s.bytes[i], s.inodes[i], /* is_owned= */ i == 0));
	/*
	 * Init unpacks the shown tree there, and Landlock rules forbid writing to it; its libraries must be executable.
	 */
	if (c->pump.folder)
		(void)json_object_set_new(v, c->pump.folder->target,
					  writable(c, /* is_exec= */ true, max_u64(c->pump.shown.room, 4 * KiB),
						   c->pump.shown.entries + 1, /* is_owned= */ true));
	/* Podman would make these writable, without a limit. */
	for (size_t i = 0; c->host->podman && i < ARRAY_LEN(closed); i++)
		(void)json_object_set_new(v, closed[i], json_string(closed_options));
	/* The engine would mount a writable mqueue file system there. */
	(void)json_object_set_new(v, "/dev/mqueue",
				  json_string(c->host->podman
						      ? closed_options
						      : "ro,nosuid,nodev,noexec,size=4096,nr_inodes=1,mode=0555"));
	return v;
}

static json_t *ulimits(const struct cell *c)
{
	const struct plan *plan = c->plan;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		/* A piped core_pattern ignores 0 and starts a helper on the host; only 1 makes the kernel skip it. */
		{ "core", 1 },
		{ "nofile", plan->limits.open_files },
		{ "fsize", plan->limits.disk_bytes },
		{ "stack", 8 * MiB },
		{ "memlock", 64 * KiB },
		/*
		 * The last one is for Podman, which raises limits that are not named, to more than it is permitted to.
		 */
		{ "nproc", 16384 },
	};
	size_t n = ARRAY_LEN(rows) - (c->host->podman ? 0 : 1);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *row = json_object();

		(void)json_object_set_new(row, "Name", json_string(rows[i].name));
		(void)json_object_set_new(row, "Soft", number(rows[i].value));
		(void)json_object_set_new(row, "Hard", number(rows[i].value));
		(void)json_array_append_new(list, row);
	}
	return list;
}

static const char *profile_of(const struct plan *plan)
{
	return docker_profile[plan->family][plan->profile == SECCOMP_PROFILE_STRICT];
}

/* Podman requires the path of a file with the profile, which it reads during create: a memfd of ours. */
int map_plan_offer_profile(struct cell *c, struct brig_error *err)
{
	const char *profile = profile_of(c->plan);

	c->profile = memfd_create("brig-seccomp", MFD_CLOEXEC);
	if (c->profile < 0 || fd_write_all(c->profile, profile, strlen(profile)) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "the seccomp profile cannot be handed to Podman");
	return 0;
}

/*
 * Docker takes the profile's text, Podman the path of a file on its own host: a memfd has a path while we hold it open.
 * A remote Podman applies its own profile to the container; init's filter for the program is ours in any case.
 */
static void add_profile(struct buf *option, const struct cell *c)
{
	if (!c->host->podman) {
		(void)buf_adds(option, "seccomp=");
		(void)buf_adds(option, profile_of(c->plan));
	} else if (c->host->local && c->profile >= 0) {
		(void)buf_addf(option, "seccomp=/proc/%d/fd/%d", getpid(), c->profile);
	}
}

static const char *const masks[] = {
#define MASK(path) path,
#define READ_ONLY(path)
#include "backend/container/masks.def"
};
static const char *const read_only[] = {
#define MASK(path)
#define READ_ONLY(path) path,
#include "backend/container/masks.def"
};

/* For Podman they are another option: its Docker interface ignores MaskedPaths. */
static void add_masks(json_t *security, const struct cell *c)
{
	AUTO_BUF option = BUF_INIT(8 * KiB);

	if (!c->host->podman)
		return;
	for (size_t i = 0; i < ARRAY_LEN(masks); i++)
		(void)buf_addf(&option, "%s%s", i == 0 ? "mask=" : ":", masks[i]);
	(void)json_array_append_new(security, json_string(buf_str(&option)));
}

static json_t *paths(const char *const *path, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_string(path[i]));
	return list;
}

/* The strings of the engine's --security-opt. */
static json_t *security(const struct cell *c)
{
	AUTO_BUF option = BUF_INIT(MiB);
	json_t *list = json_array();

	add_profile(&option, c);
	(void)json_array_append_new(list, json_string("no-new-privileges:true"));
	if (option.len > 0)
		(void)json_array_append_new(list, json_string(buf_str(&option)));
	add_masks(list, c);
	return list;
}

static json_t *list_of(const char *item)
{
	json_t *list = json_array();

	if (item)
		(void)json_array_append_new(list, json_string(item));
	return list;
}

static json_t *named(const char *key, const char *value)
{
	json_t *v = json_object();

	(void)json_object_set_new(v, key, json_string(value));
	return v;
}

static void add_resources(json_t *v, const struct limits *l)
{
	(void)json_object_set_new(v, "Memory", number(l->memory_bytes));
	(void)json_object_set_new(v, "MemorySwap", number(l->memory_bytes)); /* memory and swap together: no swap */
	(void)json_object_set_new(v, "PidsLimit", number(l->pids));
	(void)json_object_set_new(v, "CpuPeriod", number(CPU_PERIOD_US));
	(void)json_object_set_new(v, "CpuQuota", number(l->cpu_percent * (CPU_PERIOD_US / 100)));
	(void)json_object_set_new(v, "OomKillDisable", json_false());
	(void)json_object_set_new(v, "OomScoreAdj", number(0)); /* the program sets its own; init must survive it */
}

/* For both directions; explicitly empty if there is no limit. */
static void add_disk_io(json_t *v, const struct cell *c)
{
	static const char *const names[] = { "BlkioDeviceReadBps", "BlkioDeviceWriteBps" };
	bool limited = c->plan->disk_io_bps > 0 && c->host->disk[0];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_t *list = json_array();

		if (limited) {
			json_t *row = named("Path", c->host->disk);

			(void)json_object_set_new(row, "Rate", number(c->plan->disk_io_bps));
			(void)json_array_append_new(list, row);
		}
		(void)json_object_set_new(v, names[i], list);
	}
}

static void add_isolation(json_t *v, const struct cell *c)
{
	const struct settings *set = c->host->set;

	(void)json_object_set_new(v, "NetworkMode", json_string("none"));
	(void)json_object_set_new(v, "CapDrop", list_of("ALL"));
	(void)json_object_set_new(v, "CapAdd", list_of(NULL));
	(void)json_object_set_new(v, "Privileged", json_false());
	(void)json_object_set_new(v, "ReadonlyRootfs", json_true());
	(void)json_object_set_new(v, "SecurityOpt", security(c));
	(void)json_object_set_new(v, "MaskedPaths", paths(masks, ARRAY_LEN(masks)));
	(void)json_object_set_new(v, "ReadonlyPaths", paths(read_only, ARRAY_LEN(read_only)));
	(void)json_object_set_new(v, "IpcMode", json_string("none"));
	(void)json_object_set_new(v, "PidMode", json_string(""));
	(void)json_object_set_new(v, "UTSMode", json_string(""));
	(void)json_object_set_new(v, "UsernsMode", json_string(set->docker_userns));
	(void)json_object_set_new(v, "CgroupnsMode", json_string("private"));
	if (set->docker_runtime[0])
		(void)json_object_set_new(v, "Runtime", json_string(set->docker_runtime));
}

static json_t *host_config(const struct cell *c)
{
	json_t *v = json_object();

	add_resources(v, &c->plan->limits);
	add_disk_io(v, c);
	add_isolation(v, c);
	(void)json_object_set_new(v, "Ulimits", ulimits(c));
	(void)json_object_set_new(v, "Tmpfs", tmpfs(c));
	(void)json_object_set_new(v, "Init", json_false()); /* PID 1 is ours */
	(void)json_object_set_new(v, "LogConfig", named("Type", "none"));
	(void)json_object_set_new(v, "AutoRemove", json_false()); /* it is inspected after its end */
	(void)json_object_set_new(v, "RestartPolicy", named("Name", "no"));
	(void)json_object_set_new(v, "Binds", list_of(NULL));
	(void)json_object_set_new(v, "Mounts", list_of(NULL));
	(void)json_object_set_new(v, "Devices", list_of(NULL));
	(void)json_object_set_new(v, "VolumesFrom", list_of(NULL));
	(void)json_object_set_new(v, "ExtraHosts", list_of(NULL));
	(void)json_object_set_new(v, "PublishAllPorts", json_false());
	return v;
}

json_t *map_plan_body(const struct cell *c, struct brig_error *err)
{
	json_t *v = json_object();

	if (!v) {
		(void)err_nomem(err);
		return NULL;
	}
	(void)json_object_set_new(v, "Image", json_string(c->image));
	(void)json_object_set_new(v, "Entrypoint", list_of(CONTAINER_INIT_PATH));
	(void)json_object_set_new(v, "Cmd", list_of(NULL));
	(void)json_object_set_new(v, "Env", list_of(NULL)); /* the program's environment comes with the job */
	(void)json_object_set_new(v, "WorkingDir", json_string("/"));
	(void)json_object_set_new(v, "User", text("%u:%u", c->plan->uid, c->plan->gid));
	(void)json_object_set_new(v, "Hostname", json_string("cell"));
	(void)json_object_set_new(v, "Domainname", json_string(""));
	(void)json_object_set_new(v, "Tty", json_false());
	(void)json_object_set_new(v, "OpenStdin", json_true());
	(void)json_object_set_new(v, "StdinOnce", json_true()); /* when our end closes, init sees end of file */
	(void)json_object_set_new(v, "AttachStdin", json_true());
	(void)json_object_set_new(v, "AttachStdout", json_true());
	(void)json_object_set_new(v, "AttachStderr", json_true());
	/*
	 * Otherwise Docker starts helpers for a network that does not exist, which doubles the time of a run.  The
	 * price: /etc/hosts is empty, so the name localhost has no address.
	 */
	(void)json_object_set_new(v, "NetworkDisabled", json_true());
	(void)json_object_set_new(v, "StopSignal", json_string("SIGKILL"));
	(void)json_object_set_new(v, "StopTimeout", number(0));
	{
		json_t *none = json_object();

		(void)json_object_set_new(none, "Test", list_of("NONE"));
		(void)json_object_set_new(v, "Healthcheck", none);
	}
	(void)json_object_set_new(v, "Labels", owner_labels(&c->host->self, c->plan, 2 * (uint64_t)ENGINE_GRACE_MS));
	(void)json_object_set_new(v, "HostConfig", host_config(c));
	return v;
}
