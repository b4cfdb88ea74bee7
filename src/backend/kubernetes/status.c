/* SPDX-License-Identifier: Apache-2.0 */
/* Parses what the server reports about a pod's state. */
#include <stdio.h>
#include <string.h>

#include "backend/container/answer.h"
#include "backend/kubernetes/pod.h"
#include "base/str.h"

/* Reasons for which a waiting container will never start. */
static const char *const hopeless[] = {
	"ErrImagePull",      "ImagePullBackOff",           "ErrImageNeverPull",    "InvalidImageName",
	"ImageInspectError", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
	"CrashLoopBackOff",  "PreStartHookError",
};

static void say_why(struct pod_status *s, const char *reason, const char *message)
{
	char text[600];

	(void)snprintf(text, sizeof(text), "%s%s%s", reason, reason[0] && message[0] ? ": " : "", message);
	(void)answer_clean(s->why, sizeof(s->why), text);
}

static bool is_hopeless(const char *reason)
{
	for (size_t i = 0; i < ARRAY_LEN(hopeless); i++)
		if (str_eq(hopeless[i], reason))
			return true;
	return false;
}

static void read_waiting(const json_t *state, struct pod_status *s)
{
	const char *reason = answer_text_or(state, "waiting.reason", "");

	if (!json_object_get(state, "waiting"))
		return;
	if (reason[0] && !str_eq(reason, "ContainerCreating") && !str_eq(reason, "PodInitializing"))
		say_why(s, reason, answer_text_or(state, "waiting.message", ""));
	if (is_hopeless(reason))
		s->phase = POD_BROKEN;
}

static void read_ended(const json_t *state, struct pod_status *s)
{
	if (!json_object_get(state, "terminated"))
		return;
	s->phase = POD_ENDED;
	(void)answer_i64(state, "terminated.exitCode", &s->code);
	s->oom = str_eq(answer_text_or(state, "terminated.reason", ""), "OOMKilled");
	if (!str_eq(answer_text_or(state, "terminated.reason", ""), "Completed"))
		say_why(s, answer_text_or(state, "terminated.reason", ""),
			answer_text_or(state, "terminated.message", ""));
}

/* A pod that cannot be scheduled says so in its conditions. */
static void read_conditions(const json_t *pod, struct pod_status *s)
{
	const json_t *list = answer_at(pod, "status.conditions"), *at;
	size_t i;

	json_array_foreach(list, i, at)
	{
		if (str_eq(answer_text_or(at, "type", ""), "PodScheduled") &&
		    str_eq(answer_text_or(at, "status", ""), "False") && !s->why[0])
			say_why(s, answer_text_or(at, "reason", ""), answer_text_or(at, "message", ""));
	}
}

void pod_status_read(const json_t *pod, struct pod_status *ret)
{
	const char *phase = answer_text_or(pod, "status.phase", "");
	const json_t *container = json_array_get(answer_at(pod, "status.containerStatuses"), 0);
	const json_t *state = json_object_get(container, "state");

	*ret = (struct pod_status){ .phase = POD_WAITS, .code = -1 };
	(void)answer_clean(ret->image_id, sizeof(ret->image_id), answer_text_or(container, "imageID", ""));
	if (json_object_get(state, "running"))
		ret->phase = POD_RUNS;
	read_waiting(state, ret);
	read_ended(state, ret);
	/* The whole pod: evicted, rejected by its node, past its deadline. */
	if (str_eq(phase, "Failed") || str_eq(phase, "Succeeded")) {
		ret->phase = POD_ENDED;
		if (answer_text(pod, "status.reason"))
			say_why(ret, answer_text(pod, "status.reason"), answer_text_or(pod, "status.message", ""));
	}
	if (ret->phase == POD_WAITS)
		read_conditions(pod, ret);
}
