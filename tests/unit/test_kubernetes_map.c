/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a pod, field by field; the API server's account against it; and what it says of a pod's state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/container/answer.h"
#include "backend/container/init.h"
#include "backend/kubernetes/pod.h"
#include "base/str.h"
#include "container_plan.h"

static struct settings settings;
static struct backend_host host = { .set = &settings,
				    .self = { .boot_id = "boot", .machine_id = "machine-1" },
				    .api = { .minor = 20 } };
static json_t *make_pod(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cell *c = calloc(1, sizeof(*c));
	json_t *pod;

	c->host = &host;
	c->plan = c->pump.plan = &plan;
	(void)str_copy(c->name, sizeof(c->name), "brig-abcdefghijklmnop-run");
	(void)str_copy(c->image, sizeof(c->image), "brig/python:1");
	pod = map_plan_pod(c, &err);
	free(c);
	assert_non_null(pod);
	return pod;
}

static const json_t *container_of(const json_t *pod)
{
	return json_array_get(answer_at(pod, "spec.containers"), 0);
}

static void assert_json(const json_t *v, const char *path, const char *want)
{
	char *got = json_dumps(answer_at(v, path), JSON_COMPACT | JSON_ENCODE_ANY);

	if (!got || !str_eq(got, want))
		fail_msg("%s is %s, not %s", path, got ? got : "left out", want);
	free(got);
}

static void every_setting_is_written_out(void **state)
{
	static const struct {
		const char *path, *json;
	} pods[] = {
		{ "metadata.name", "\"brig-abcdefghijklmnop-run\"" },
		{ "spec.restartPolicy", "\"Never\"" },
		{ "spec.activeDeadlineSeconds", "69" },
		{ "spec.automountServiceAccountToken", "false" },
		{ "spec.enableServiceLinks", "false" },
		{ "spec.hostNetwork", "false" },
		{ "spec.hostPID", "false" },
		{ "spec.hostIPC", "false" },
		{ "spec.shareProcessNamespace", "false" },
		{ "spec.dnsPolicy", "\"None\"" },
		{ "spec.securityContext.runAsNonRoot", "true" },
		{ "spec.securityContext.seccompProfile", "{\"type\":\"RuntimeDefault\"}" },
	}, containers[] = {
		{ "image", "\"brig/python:1\"" },
		{ "command", "[\"" CONTAINER_INIT_PATH "\"]" },
		{ "stdin", "true" },
		{ "stdinOnce", "true" },
		{ "tty", "false" },
		{ "resources.limits", "{\"cpu\":\"500m\",\"memory\":\"67108864\"}" },
		{ "resources.requests", "{\"cpu\":\"500m\",\"memory\":\"67108864\"}" },
		{ "securityContext.runAsUser", "1000" },
		{ "securityContext.runAsGroup", "1001" },
		{ "securityContext.privileged", "false" },
		{ "securityContext.allowPrivilegeEscalation", "false" },
		{ "securityContext.readOnlyRootFilesystem", "true" },
		{ "securityContext.capabilities", "{\"drop\":[\"ALL\"]}" },
	};
	json_t *pod = make_pod();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pods); i++)
		assert_json(pod, pods[i].path, pods[i].json);
	for (size_t i = 0; i < ARRAY_LEN(containers); i++)
		assert_json(container_of(pod), containers[i].path, containers[i].json);
	assert_null(answer_at(pod, "spec.hostUsers"));
	assert_null(answer_at(pod, "spec.runtimeClassName"));
	json_decref(pod);
}

static void places_are_in_memory_and_bounded(void **state)
{
	json_t *pod = make_pod(), *volume;
	uint64_t sum = 0, bytes;
	size_t i;

	(void)state;
	json_array_foreach(answer_at(pod, "spec.volumes"), i, volume)
	{
		assert_string_equal(answer_text_or(volume, "emptyDir.medium", ""), "Memory");
		assert_true(map_quantity(answer_text_or(volume, "emptyDir.sizeLimit", ""), &bytes));
		if (!str_eq(answer_text_or(volume, "name", ""), "mqueue"))
			sum += bytes / 1000;
	}
	assert_int_equal(sum, plan.limits.disk_bytes);
	json_decref(pod);
}

static void newer_clusters_are_asked_for_more(void **state)
{
	json_t *pod;

	(void)state;
	host.api.minor = HOST_USERS_MINOR;
	(void)str_copy(settings.kubernetes_runtime, sizeof(settings.kubernetes_runtime), "gvisor");
	pod = make_pod();
	assert_json(pod, "spec.hostUsers", "false");
	assert_json(pod, "spec.runtimeClassName", "\"gvisor\"");
	json_decref(pod);
	host.api.minor = 20;
	settings.kubernetes_runtime[0] = '\0';
}

static void labels_can_be_labels(void **state)
{
	json_t *pod = make_pod(), *value;
	const char *key;

	(void)state;
	json_object_foreach(answer_at(pod, "metadata.labels"), key, value)
	{
		const char *s = json_string_value(value);
		size_t n = strlen(s);

		assert_true(n <= 63 && n == strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-._"));
		assert_true(n == 0 || (s[0] != '-' && s[n - 1] != '-'));
	}
	json_decref(pod);
}

/* What the server says differs in one place; the tests of the fake server have the other ways. */
static void a_difference_is_named(void **state)
{
	json_t *asked = make_pod(), *found = json_deep_copy(asked);
	char difference[200] = "";

	(void)state;
	(void)json_object_del(json_object_get(found, "spec"), "hostPID"); /* left out is false */
	assert_true(map_check_pod(asked, found, difference, sizeof(difference)));
	(void)json_object_set_new(json_object_get(found, "spec"), "enableServiceLinks", json_true());
	assert_false(map_check_pod(asked, found, difference, sizeof(difference)));
	assert_string_equal(difference, "spec.enableServiceLinks is true");
	(void)json_object_del(json_object_get(found, "spec"), "enableServiceLinks"); /* left out is true */
	assert_false(map_check_pod(asked, found, difference, sizeof(difference)));
	assert_string_equal(difference, "spec.enableServiceLinks is left out");
	assert_false(map_check_pod(asked, NULL, difference, sizeof(difference)));
	json_decref(asked);
	json_decref(found);
}

static void quantities(void **state)
{
	static const struct {
		const char *text;
		uint64_t thousandths;
	} good[] = { { "500m", 500 },
		     { "1", 1000 },
		     { "64Mi", 67108864000ULL },
		     { "67108864", 67108864000ULL },
		     { "64M", 64000000000ULL } };
	static const char *const bad[] = { "", "m", "-1", "1.5", "1x", "99999999999999999999", "99999999999Ti" };
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(map_quantity(good[i].text, &n));
		assert_int_equal(n, good[i].thousandths);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(map_quantity(bad[i], &n));
}

static void states_of_pods(void **state)
{
	static const struct {
		const char *json;
		enum pod_phase phase;
		bool oom;
		const char *why;
	} rows[] = {
		{ "{}", POD_WAITS, false, "" },
		{ "{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable','"
		  "message':'no'}]}",
		  POD_WAITS, false, "Unschedulable: no" },
		{ "{'phase':'Running','containerStatuses':[{'state':{'running':{}}}]}", POD_RUNS, false, "" },
		{ "{'containerStatuses':[{'state':{'waiting':{'reason':'ContainerCreating'}}}]}", POD_WAITS, false,
		  "" },
		{ "{'containerStatuses':[{'state':{'waiting':{'reason':'ErrImagePull','message':'m'}}}]}", POD_BROKEN,
		  false, "ErrImagePull: m" },
		{ "{'containerStatuses':[{'state':{'terminated':{'exitCode':137,'reason':'OOMKilled'}}}]}", POD_ENDED,
		  true, "OOMKilled" },
		{ "{'phase':'Failed','reason':'Evicted','message':'low\\u001b'}", POD_ENDED, false, "Evicted: low" },
		{ "{'phase':7,'containerStatuses':'x'}", POD_WAITS, false, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[400];
		struct pod_status status;
		json_t *pod;

		(void)snprintf(text, sizeof(text), "{'status':%s}", rows[i].json);
		for (char *p = text; *p; p++)
			*p = *p == '\'' ? '"' : *p;
		pod = json_loads(text, 0, NULL);
		assert_non_null(pod);
		pod_status_read(pod, &status);
		assert_int_equal(status.phase, rows[i].phase);
		assert_int_equal(status.oom, rows[i].oom);
		assert_string_equal(status.why, rows[i].why);
		json_decref(pod);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_is_written_out),
		cmocka_unit_test(places_are_in_memory_and_bounded),
		cmocka_unit_test(newer_clusters_are_asked_for_more),
		cmocka_unit_test(labels_can_be_labels),
		cmocka_unit_test(a_difference_is_named),
		cmocka_unit_test(quantities),
		cmocka_unit_test(states_of_pods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
