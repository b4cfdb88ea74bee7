/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as container settings, field by field, and the engine's account against them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "backend/container/init.h"
#include "base/str.h"
#include "container_plan.h"

#define IMAGE "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct settings settings;
static struct backend_host host = { .set = &settings,
				    .self = { .boot_id = "boot", .machine_id = "machine-1" },
				    .disk = "/dev/disk" };
static json_t *make_body(void)
{
	struct brig_error err;
	struct cell *c = calloc(1, sizeof(*c));
	json_t *v;

	c->host = &host;
	c->plan = c->pump.plan = &plan;
	(void)str_copy(c->image, sizeof(c->image), IMAGE);
	v = map_plan_body(c, &err);
	free(c);
	assert_non_null(v);
	return v;
}

/* What packages take is added to no other place, and is no larger than they are. */
static void a_shown_folder_has_a_place_of_its_own(void **state)
{
	static const struct plan_bind bind = { .source = "/x", .target = "/opt/packages/pip" };
	struct cell *c = calloc(1, sizeof(*c));
	struct brig_error err;
	json_t *with, *without = make_body(), *places;

	(void)state;
	c->host = &host;
	c->plan = c->pump.plan = &plan;
	c->pump.folder = &bind;
	c->pump.shown = (struct project_out){ .entries = 7, .room = 8 * KiB };
	(void)str_copy(c->image, sizeof(c->image), IMAGE);
	with = map_plan_body(c, &err);
	places = json_object_get(json_object_get(with, "HostConfig"), "Tmpfs");
	assert_string_equal(json_string_value(json_object_get(places, "/opt/packages/pip")),
			    "rw,nosuid,nodev,exec,size=8192,nr_inodes=8,mode=0755,uid=1000,gid=1001");
	(void)json_object_del(places, "/opt/packages/pip");
	assert_true(json_equal(places, json_object_get(json_object_get(without, "HostConfig"), "Tmpfs")));
	json_decref(with);
	json_decref(without);
	free(c);
}

static void every_setting_is_written_out(void **state)
{
	static const struct {
		const char *path, *json;
	} rows[] = {
		{ "Image", "\"" IMAGE "\"" },
		{ "Entrypoint", "[\"" CONTAINER_INIT_PATH "\"]" },
		{ "Cmd", "[]" },
		{ "Env", "[]" },
		{ "User", "\"1000:1001\"" },
		{ "Tty", "false" },
		{ "OpenStdin", "true" },
		{ "StdinOnce", "true" },
		{ "NetworkDisabled", "true" },
		{ "Healthcheck", "{\"Test\":[\"NONE\"]}" },
		{ "StopSignal", "\"SIGKILL\"" },
		{ "HostConfig.Memory", "67108864" },
		{ "HostConfig.MemorySwap", "67108864" },
		{ "HostConfig.BlkioDeviceReadBps", "[{\"Path\":\"/dev/disk\",\"Rate\":1048576}]" },
		{ "HostConfig.BlkioDeviceWriteBps", "[{\"Path\":\"/dev/disk\",\"Rate\":1048576}]" },
		{ "HostConfig.PidsLimit", "20" },
		{ "HostConfig.CpuPeriod", "100000" },
		{ "HostConfig.CpuQuota", "50000" },
		{ "HostConfig.OomKillDisable", "false" },
		{ "HostConfig.NetworkMode", "\"none\"" },
		{ "HostConfig.CapDrop", "[\"ALL\"]" },
		{ "HostConfig.CapAdd", "[]" },
		{ "HostConfig.Privileged", "false" },
		{ "HostConfig.ReadonlyRootfs", "true" },
		{ "HostConfig.IpcMode", "\"none\"" },
		{ "HostConfig.PidMode", "\"\"" },
		{ "HostConfig.UTSMode", "\"\"" },
		{ "HostConfig.UsernsMode", "\"\"" },
		{ "HostConfig.CgroupnsMode", "\"private\"" },
		{ "HostConfig.Init", "false" },
		{ "HostConfig.LogConfig", "{\"Type\":\"none\"}" },
		{ "HostConfig.AutoRemove", "false" },
		{ "HostConfig.RestartPolicy", "{\"Name\":\"no\"}" },
		{ "HostConfig.Binds", "[]" },
		{ "HostConfig.Mounts", "[]" },
		{ "HostConfig.Devices", "[]" },
		{ "HostConfig.PublishAllPorts", "false" },
		{ "HostConfig.Ulimits",
		  "[{\"Name\":\"core\",\"Soft\":1,\"Hard\":1},{\"Name\":\"nofile\",\"Soft\":99,\"Hard\":99},"
		  "{\"Name\":\"fsize\",\"Soft\":8388608,\"Hard\":8388608},{\"Name\":\"stack\",\"Soft\":8388608,"
		  "\"Hard\":8388608},"
		  "{\"Name\":\"memlock\",\"Soft\":65536,\"Hard\":65536}]" },
	};
	json_t *body = make_body();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *want = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);

		if (!json_equal(want, answer_at(body, rows[i].path)))
			fail_msg("%s is not %s", rows[i].path, rows[i].json);
		json_decref(want);
	}
	json_decref(body);
}

static void writable_places_share_the_limit(void **state)
{
	static const uint64_t sizes[] = { 64 * KiB, 100 * MiB, 100 * MiB + 1, 12345678, GiB };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct limits l = { .disk_bytes = sizes[i], .inodes = 64 + i };
		struct place_sizes s = lifecycle_places(&l);

		assert_int_equal(s.bytes[0] + s.bytes[1] + s.bytes[2], sizes[i]);
		assert_int_equal(s.inodes[0] + s.inodes[1] + s.inodes[2], l.inodes);
		for (size_t k = 0; k < 3; k++)
			assert_true(s.bytes[k] >= 4096 && s.inodes[k] > 1); /* 0 would mean no limit */
	}
}

static const char *mount_of(json_t *body, const char *place)
{
	const char *s = json_string_value(json_object_get(answer_at(body, "HostConfig.Tmpfs"), place));

	assert_non_null(s);
	return s;
}

static void places_are_small_and_mostly_not_executable(void **state)
{
	json_t *body = make_body();

	(void)state;
	assert_string_equal(mount_of(body, "/tmp"), "rw,nosuid,nodev,noexec,size=2097152,nr_inodes=200,mode=1777");
	assert_string_equal(mount_of(body, "/workspace"),
			    "rw,nosuid,nodev,noexec,size=5242880,nr_inodes=500,mode=0755,uid=1000,gid=1001");
	assert_non_null(strstr(mount_of(body, "/dev/shm"), ",noexec,size=1048576,"));
	assert_non_null(strstr(mount_of(body, "/dev/mqueue"), "ro,"));
	json_decref(body);
	plan.workspace_exec = true;
	host.podman = true;
	body = make_body();
	assert_string_equal(mount_of(body, "/workspace"), "rw,nosuid,nodev,exec,size=5242880,mode=1777");
	assert_non_null(strstr(mount_of(body, "/tmp"), ",exec,"));
	assert_non_null(strstr(mount_of(body, "/dev/shm"), ",noexec,"));
	json_decref(body);
	plan.workspace_exec = false;
	host.podman = false;
}

/* The profile is JSON inside JSON: it must be whole, and refuse by default. */
static void the_profile_is_ours(void **state)
{
	static const char prefix[] = "seccomp=";

	(void)state;
	for (int strict = 0; strict < 2; strict++)
		for (enum syscall_family f = 0; f < FAMILY_COUNT; f++) {
			json_t *body, *profile;
			const char *option;

			plan.family = f;
			plan.profile = strict ? SECCOMP_PROFILE_STRICT : SECCOMP_PROFILE_DEFAULT;
			body = make_body();
			option = json_string_value(json_array_get(answer_at(body, "HostConfig.SecurityOpt"), 1));
			assert_int_equal(strncmp(option, prefix, sizeof(prefix) - 1), 0);
			profile = json_loads(option + sizeof(prefix) - 1, JSON_REJECT_DUPLICATES, NULL);
			assert_non_null(profile);
			assert_string_equal(answer_text(profile, "defaultAction"), "SCMP_ACT_ERRNO");
			assert_string_equal(
				json_string_value(json_array_get(answer_at(body, "HostConfig.SecurityOpt"), 0)),
				"no-new-privileges:true");
			json_decref(profile);
			json_decref(body);
		}
	plan.family = FAMILY_INTERPRETER;
	plan.profile = SECCOMP_PROFILE_DEFAULT;
}

static void labels_say_whose_it_is(void **state)
{
	static const char *const keys[] = { LABEL_CELL,  LABEL_STEP, LABEL_LANGUAGE, LABEL_UID,     LABEL_PID,
					    LABEL_START, LABEL_BOOT, LABEL_MACHINE,  LABEL_DEADLINE };
	json_t *body = make_body(), *labels = json_object_get(body, "Labels");
	uint64_t pid;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		assert_true(json_string_length(json_object_get(labels, keys[i])) > 0);
	assert_string_equal(json_string_value(json_object_get(labels, LABEL_CELL)), "abcdefghijklmnop");
	assert_true(str_to_u64(json_string_value(json_object_get(labels, LABEL_PID)), &pid));
	assert_int_equal(pid, getpid());
	json_decref(body);
}

/* ---- the engine's account -------------------------------------------------------------------------- */

/* What an honest engine says about such a container. */
static json_t *honest_account(json_t *body)
{
	static const char *const config[] = { "Entrypoint", "Cmd", "User", "Tty", "OpenStdin", "StdinOnce", "Labels" };
	json_t *v = json_object(), *c = json_object();

	for (size_t i = 0; i < ARRAY_LEN(config); i++)
		(void)json_object_set_new(c, config[i], json_deep_copy(json_object_get(body, config[i])));
	(void)json_object_set_new(v, "Config", c);
	(void)json_object_set_new(v, "HostConfig", json_deep_copy(json_object_get(body, "HostConfig")));
	(void)json_object_set_new(v, "Image", json_string(IMAGE));
	(void)json_object_set_new(v, "Mounts", json_array());
	(void)json_object_set_new(v, "State", json_pack("{s:b, s:s, s:i}", "Running", 1, "Error", "", "Pid", 4));
	(void)json_object_set_new(v, "NetworkSettings",
				  json_pack("{s:{}, s:s, s:{s:{s:s, s:s}}}", "Ports", "IPAddress", "", "Networks",
					    "none", "IPAddress", "", "Gateway", ""));
	return v;
}

static void set_at(json_t *v, const char *path, json_t *value)
{
	char text[128], *dot;

	(void)str_copy(text, sizeof(text), path);
	dot = strrchr(text, '.');
	if (dot) {
		*dot = '\0';
		v = answer_at(v, text);
	}
	assert_non_null(v);
	(void)json_object_set_new(v, dot ? dot + 1 : text, value);
}

static void an_honest_account_passes(void **state)
{
	char difference[200] = "";
	json_t *body = make_body(), *said = honest_account(body);

	(void)state;
	if (!map_check(body, said, false, false, difference, sizeof(difference)))
		fail_msg("%s", difference);
	assert_false(map_check(body, said, false, true, difference, sizeof(difference))); /* it still runs */
	set_at(said, "State.Running", json_false());
	assert_true(map_check(body, said, false, true, difference, sizeof(difference)));
	json_decref(said);
	json_decref(body);
}

static void every_difference_is_found(void **state)
{
	static const struct {
		const char *path, *json;
	} lies[] = {
		{ "Image", "\"sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"" },
		{ "Config.Entrypoint", "[\"/bin/sh\"]" },
		{ "Config.Cmd", "[\"-c\"]" },
		{ "Config.User", "\"0:0\"" },
		{ "Config.Tty", "true" },
		{ "Config.StdinOnce", "false" },
		{ "Config.Labels", "{}" },
		{ "Config.Volumes", "{\"/data\":{}}" },
		{ "HostConfig.Memory", "0" },
		{ "HostConfig.Memory", "67108865" },
		{ "HostConfig.MemorySwap", "-1" },
		{ "HostConfig.BlkioDeviceReadBps", "null" },
		{ "HostConfig.BlkioDeviceWriteBps", "[{\"Path\":\"/dev/disk\",\"Rate\":2097152}]" },
		{ "HostConfig.PidsLimit", "null" },
		{ "HostConfig.CpuQuota", "0" },
		{ "HostConfig.CpuPeriod", "10" },
		{ "HostConfig.OomKillDisable", "true" },
		{ "HostConfig.Ulimits", "[]" },
		{ "HostConfig.NetworkMode", "\"bridge\"" },
		{ "HostConfig.CapDrop", "[]" },
		{ "HostConfig.CapDrop", "null" },
		{ "HostConfig.CapAdd", "[\"SYS_ADMIN\"]" },
		{ "HostConfig.Privileged", "true" },
		{ "HostConfig.ReadonlyRootfs", "false" },
		{ "HostConfig.SecurityOpt", "[\"no-new-privileges:true\"]" },
		{ "HostConfig.SecurityOpt", "[\"no-new-privileges:true\",\"seccomp=unconfined\"]" },
		{ "HostConfig.SecurityOpt", "null" },
		{ "HostConfig.IpcMode", "\"host\"" },
		{ "HostConfig.PidMode", "\"host\"" },
		{ "HostConfig.PidMode", "\"container:abc\"" },
		{ "HostConfig.UTSMode", "\"host\"" },
		{ "HostConfig.UsernsMode", "\"host\"" },
		{ "HostConfig.CgroupnsMode", "\"host\"" },
		{ "HostConfig.Tmpfs", "{}" },
		{ "HostConfig.Tmpfs", "null" },
		{ "HostConfig.AutoRemove", "true" },
		{ "HostConfig.RestartPolicy", "{\"Name\":\"always\"}" },
		{ "HostConfig.Binds", "[\"/:/host\"]" },
		{ "HostConfig.Mounts", "[{\"Type\":\"bind\"}]" },
		{ "HostConfig.Devices", "[{\"PathOnHost\":\"/dev/mem\"}]" },
		{ "HostConfig.DeviceRequests", "[{}]" },
		{ "HostConfig.VolumesFrom", "[\"other\"]" },
		{ "HostConfig.PortBindings", "{\"80/tcp\":[]}" },
		{ "HostConfig.Sysctls", "{\"kernel.shmmax\":\"1\"}" },
		{ "HostConfig.GroupAdd", "[\"docker\"]" },
		{ "HostConfig.PublishAllPorts", "true" },
		{ "Mounts", "[{\"Source\":\"/\"}]" },
		{ "NetworkSettings.Ports", "{\"80/tcp\":null}" },
		{ "NetworkSettings.IPAddress", "\"172.17.0.2\"" },
		{ "NetworkSettings.Networks", "{\"bridge\":{}}" },
		{ "NetworkSettings.Networks", "{\"none\":{\"IPAddress\":\"10.0.0.1\"}}" },
		{ "State.Error", "\"something\"" },
	};
	json_t *body = make_body();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		json_t *said = honest_account(body);
		char difference[200] = "", first[64];

		set_at(said, lies[i].path, json_loads(lies[i].json, JSON_DECODE_ANY, NULL));
		if (map_check(body, said, false, false, difference, sizeof(difference)))
			fail_msg("%s = %s was not noticed", lies[i].path, lies[i].json);
		(void)str_copy(first, sizeof(first), lies[i].path);
		if (strncmp(difference, first, strlen(first)) != 0)
			fail_msg("%s = %s was called: %s", lies[i].path, lies[i].json, difference);
		json_decref(said);
	}
	json_decref(body);
}

/* One option less on a tmpfs is a wider tmpfs. */
static void a_weaker_tmpfs_is_found(void **state)
{
	json_t *body = make_body(), *said = honest_account(body);
	char difference[200];

	(void)state;
	(void)json_object_set_new(answer_at(said, "HostConfig.Tmpfs"), "/tmp",
				  json_string("rw,nosuid,nodev,size=2097152"));
	assert_false(map_check(body, said, false, false, difference, sizeof(difference)));
	json_decref(said);
	said = honest_account(body);
	(void)json_object_set_new(answer_at(said, "HostConfig.Tmpfs"), "/opt", json_string("rw"));
	assert_false(map_check(body, said, false, false, difference, sizeof(difference)));
	json_decref(said);
	json_decref(body);
}

/* An account that lacks everything is no account. */
static void an_empty_account_fails(void **state)
{
	json_t *body = make_body(), *said = json_object();
	char difference[200];

	(void)state;
	assert_false(map_check(body, said, false, false, difference, sizeof(difference)));
	assert_string_equal(difference, "Image is missing");
	json_decref(said);
	json_decref(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_is_written_out),
		cmocka_unit_test(a_shown_folder_has_a_place_of_its_own),
		cmocka_unit_test(writable_places_share_the_limit),
		cmocka_unit_test(places_are_small_and_mostly_not_executable),
		cmocka_unit_test(the_profile_is_ours),
		cmocka_unit_test(labels_say_whose_it_is),
		cmocka_unit_test(an_honest_account_passes),
		cmocka_unit_test(every_difference_is_found),
		cmocka_unit_test(a_weaker_tmpfs_is_found),
		cmocka_unit_test(an_empty_account_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
