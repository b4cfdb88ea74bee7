/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of a pod:
 *
 *	prepare  packs what will be sent to init, and builds the pod's description
 *	create   under a name that contains the run's id, so that the pod can be found again if the answer is lost
 *	running  polls the server until the container runs: a pod that cannot be scheduled, a missing image and the like
 *	end the run here, with the cluster's own message
 *	attach   init waits for its job on stdin, so none of its output can be missed
 *	ready    init has set up what Kubernetes does not; the server's account is compared with what was requested
 *	go       the program runs
 *	stop     init kills all processes and reports the end; then we close its stdin, and it exits
 *	remove   always.  If init has reported the end, it is the only process left and about to exit, so the server may
 *	forget the pod at once. Otherwise the node must first confirm that the container has ended; if that takes too
 *	long the pod is counted as left.  Its labels have its owner, and activeDeadlineSeconds ends pods that were
 *	forgotten.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backend/container/answer.h"
#include "backend/docker/images.h"
#include "backend/kubernetes/pod.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/wait.h"

#define LOOK_MS          50   /* interval for polling a pod that starts or ends */
#define STOP_PATIENCE_MS 2000 /* for init to kill all processes, before the node is asked to */
#define LOST_PATIENCE_MS 5000 /* for a node to report how a container ended: it checks once a second */
#define ENDED_GRACE      0
#define RUNNING_GRACE    1

static uint64_t from_now(uint64_t ms)
{
	return clock_now_ns() + ms * NS_PER_MS;
}

/* ---- starting ---------------------------------------------------------------------------------------- */

static int find_image(struct cell *c, struct brig_error *err)
{
	const char *own = image_of(c->plan->language);

	if (c->host->set->kubernetes_image[0])
		return str_copy(c->image, sizeof(c->image), c->host->set->kubernetes_image)
			       ? 0
			       : err_set(err, BRIG_E_REFUSED, 0, "kubernetes_image is too long");
	if (own && image_reference(own, NULL, c->image, sizeof(c->image)))
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "brig has no image of its own for language '%s': name one that has brig's init in it with "
		       "kubernetes_image",
		       c->plan->language ? c->plan->language : "");
}

int pod_prepare(struct cell *c, struct brig_error *err)
{
	static int (*const steps[])(struct pump *, struct brig_error *) = {
		lifecycle_make_keys, pump_open, shown_pack, project_pack, pump_load,
	};
	int rc = channels_open(&c->channels, err);

	c->pump.carried = c->channels;
	if (rc == 0)
		rc = find_image(c, err);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(steps); i++)
		rc = steps[i](&c->pump, err);
	if (rc < 0)
		return rc;
	(void)snprintf(c->name, sizeof(c->name), "brig-%s-%s", c->plan->id, c->plan->step);
	c->asked = map_plan_pod(c, err);
	return c->asked ? 0 : -err->code;
}

static int create(struct cell *c, struct brig_error *err)
{
	struct api *a = &c->host->api;
	json_t *made = NULL;
	int rc = api_pod_create(a, c->asked, &made, err);

	/*
	 * Only a definite refusal means that there is no pod: a lost or malformed answer may stand for one that was
	 * created.
	 */
	c->perhaps = rc < 0 && (a->status < 400 || a->status >= 500 || a->status == 409);
	if (rc == 0)
		(void)str_copy(c->uid, sizeof(c->uid), answer_text_or(made, "metadata.uid", ""));
	if (rc == 0 && !c->uid[0]) {
		c->perhaps = true;
		rc = err_set(err, BRIG_E_SYSTEM, 0, "the API server at %s made a pod without a uid", a->server);
	}
	json_decref(made);
	return rc;
}

/* *ret: the current pod, with its status; a pod with another uid is not ours. */
static int look(struct cell *c, json_t **ret, struct pod_status *status, struct brig_error *err)
{
	json_t *pod = NULL;
	int rc = api_pod_get(&c->host->api, c->name, &pod, err);

	if (rc == 0 && !str_eq(answer_text_or(pod, "metadata.uid", ""), c->uid)) {
		json_decref(pod);
		return 1;
	}
	if (rc != 0)
		return rc;
	pod_status_read(pod, status);
	*ret = pod;
	return 0;
}

/* What keeps a node from making the container at all, such as a handler that it does not have, is in events only. */
static int too_late(const struct cell *c, const struct pod_status *s, struct brig_error *err)
{
	const char *class = c->host->set->kubernetes_runtime;

	return err_set(
		err, BRIG_E_SYSTEM, ETIMEDOUT,
		"the pod did not start in time (startup_timeout_ms)%s%s. Its node says why in `kubectl get events -n "
		"%s`%s%s%s",
		s->why[0] ? ": " : "", s->why, c->host->api.namespace,
		class[0] ? "; perhaps it does not have the handler of RuntimeClass '" : "", class, class[0] ? "'" : "");
}

static int never_started(const struct cell *c, const struct pod_status *s, struct brig_error *err)
{
	if (s->phase == POD_BROKEN)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"the pod cannot start: %s. Nodes need the image '%s': load it there or push it to a registry "
			"(docs/BACKENDS.md), or name another with kubernetes_image",
			s->why[0] ? s->why : "no reason was given", c->image);
	if (s->phase == POD_ENDED && s->oom)
		return err_set(err, BRIG_E_SYSTEM, 0, "the memory limit is too small to start a pod");
	if (s->phase == POD_ENDED)
		return err_set(err, BRIG_E_SYSTEM, 0, "the pod ended with code %lld before its program could start%s%s",
			       (long long)s->code, s->why[0] ? ": " : "", s->why);
	return too_late(c, s, err);
}

static int await_running(struct cell *c, uint64_t deadline, struct brig_error *err)
{
	struct pod_status status = { .phase = POD_WAITS };

	for (;;) {
		json_t *pod = NULL;
		int rc = look(c, &pod, &status, err);

		json_decref(pod);
		if (rc > 0)
			return err_set(err, BRIG_E_SYSTEM, 0,
				       "the pod vanished while it started: it was deleted from outside");
		if (rc < 0)
			return rc;
		if (status.phase == POD_RUNS)
			return 0;
		if (status.phase != POD_WAITS || clock_now_ns() >= deadline)
			return never_started(c, &status, err);
		wait_sleep(LOOK_MS * NS_PER_MS);
	}
}

int pod_start(struct cell *c, struct brig_error *err)
{
	struct api *a = &c->host->api;
	uint64_t deadline = from_now(cluster_patience_ms(c->plan->limits.startup_ms));
	int rc;

	a->deadline_ns = deadline;
	rc = create(c, err);
	/* The last look, too, has time for its answer: a pod that is late is not the API server's fault. */
	a->deadline_ns = deadline + LOST_PATIENCE_MS * NS_PER_MS;
	if (rc == 0)
		rc = await_running(c, deadline, err);
	if (rc == 0)
		rc = api_pod_attach(a, c->name, POD_CONTAINER, &c->pump.stream, err);
	return rc;
}

/* The container ended before init reported anything, or its process is not our init. */
static int died_early(struct cell *c, struct brig_error *err)
{
	struct pod_status status = { .phase = POD_WAITS, .code = -1 };
	uint64_t until = from_now(LOST_PATIENCE_MS);
	char said[160], words[160];
	json_t *pod = NULL;

	/* If the stream was malformed, the container may go on running. */
	while (look(c, &pod, &status, err) == 0 && status.phase == POD_RUNS && c->pump.stream_over &&
	       c->pump.reader.state != WIRE_BROKEN && clock_now_ns() < until) {
		json_decref(MOVE_PTR(pod));
		wait_sleep(LOOK_MS * NS_PER_MS);
	}
	json_decref(pod);
	if (status.phase == POD_ENDED && status.oom)
		return never_started(c, &status, err);
	(void)answer_clean(said, sizeof(said), c->pump.first_words);
	(void)answer_clean(words, sizeof(words), channels_last_words(c->channels));
	return err_set(
		err, BRIG_E_SYSTEM, 0,
		"the pod's init ended before the program could start (code %lld)%s%s%s%s. Is '%s' an image of this "
		"brig?",
		(long long)status.code, said[0] ? "; it said: " : "", said, words[0] ? "; the server said: " : "",
		words, c->image);
}

int pod_await_ready(struct cell *c, struct brig_error *err)
{
	uint64_t deadline = from_now(cluster_patience_ms(c->plan->limits.startup_ms));
	struct pod_status status;
	int rc = lifecycle_await_ready(&c->pump, deadline, err);

	if (rc <= 0)
		return rc < 0 ? rc : died_early(c, err);
	rc = look(c, &c->before, &status, err);
	if (rc > 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the pod vanished while it started: it was deleted from outside");
	if (rc < 0)
		return rc;
	if (!map_check_pod(c->asked, c->before, c->difference, sizeof(c->difference)))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the cluster did not make the pod that was asked for: %s. An admission plugin may have "
			       "changed it: exempt the namespace '%s' from it",
			       c->difference, c->host->api.namespace);
	return pod_check_walls(c, err);
}

/* ---- the end ------------------------------------------------------------------------------------------ */

enum cell_event pod_lost(struct cell *c, struct exit_info *info, struct brig_error *err)
{
	struct pod_status status = { .phase = POD_WAITS, .code = -1 };
	struct brig_error ignored = BRIG_ERROR_INIT;
	uint64_t until = from_now(LOST_PATIENCE_MS);
	json_t *pod = NULL;
	int rc;

	c->host->api.deadline_ns = from_now(LOST_PATIENCE_MS + CLUSTER_GRACE_MS);
	while ((rc = look(c, &pod, &status, &ignored)) == 0 && status.phase == POD_RUNS && clock_now_ns() < until) {
		json_decref(MOVE_PTR(pod));
		wait_sleep(LOOK_MS * NS_PER_MS);
	}
	json_decref(pod);
	if (rc == 0 && status.oom) {
		c->oom_seen = 1;
		*info = (struct exit_info){ .signal = SIGKILL, .at_ns = clock_now_ns() };
		return CELL_FINISHED;
	}
	if (rc > 0)
		(void)err_set(err, BRIG_E_SYSTEM, 0, "the pod was removed while its program ran");
	else if (rc == 0 && status.phase == POD_ENDED && status.why[0])
		(void)err_set(err, BRIG_E_SYSTEM, 0, "the cluster ended the pod while its program ran: %s", status.why);
	else
		(void)err_set(
			err, BRIG_E_SYSTEM, 0,
			"the connection to the pod broke while its program ran, which ended it: the API server or the "
			"node is in trouble");
	return CELL_FAILED;
}

/* Half of the remaining time, at most STOP_PATIENCE_MS. */
static uint64_t some_time(uint64_t deadline)
{
	uint64_t now = clock_now_ns();

	return now + min_u64((deadline - min_u64(now, deadline)) / 2, STOP_PATIENCE_MS * NS_PER_MS);
}

/* Waits until the node confirms that all processes in the pod are dead, or the pod is gone. */
static bool await_dead(struct cell *c, uint64_t deadline, struct brig_error *err)
{
	struct pod_status status;
	int rc;

	for (;;) {
		json_t *pod = NULL;

		rc = look(c, &pod, &status, err);
		json_decref(pod);
		/* A container that was never started has no processes, and the node is being told to remove the pod. */
		if (rc != 0 || status.phase != POD_RUNS)
			return rc >= 0;
		if (clock_now_ns() >= deadline) {
			(void)err_set(err, BRIG_E_SYSTEM, ETIMEDOUT,
				      "its node does not say that everything in it is dead");
			return false;
		}
		wait_sleep(LOOK_MS * NS_PER_MS);
	}
}

/*
 * Looks up a pod that may have been created although the answer was lost, by its name, which only this run has.  1:
 * none.
 */
static int find_uid(struct cell *c, struct brig_error *err)
{
	json_t *pod = NULL;
	int rc = api_pod_get(&c->host->api, c->name, &pod, err);

	if (rc == 0 && (!str_eq(owner_label(answer_at(pod, "metadata.labels"), LABEL_CELL), c->plan->id) ||
			!str_copy(c->uid, sizeof(c->uid), answer_text_or(pod, "metadata.uid", ""))))
		rc = err_set(err, BRIG_E_SYSTEM, 0, "a pod of its name is not of this run");
	json_decref(pod);
	return rc;
}

/*
 * Ends all processes in the pod, and removes it.  The node gets a grace period of one second, and is trusted when it
 * reports that the container has ended. Removing the rest of a pod takes up to a minute, which is not waited for.
 */
static bool end_pod(struct cell *c, uint64_t deadline, struct brig_error *err)
{
	struct api *a = &c->host->api;
	bool dead = c->pump.final; /* except init, which exits with the stream */
	int rc = 0;

	a->deadline_ns = deadline;
	if (!c->uid[0])
		rc = find_uid(c, err);
	if (rc == 0 && !dead)
		rc = api_pod_delete(a, c->name, c->uid, RUNNING_GRACE, err);
	if (rc != 0)
		return rc > 0;
	dead = dead || await_dead(c, deadline, err);
	return dead && api_pod_delete(a, c->name, c->uid, ENDED_GRACE, err) >= 0;
}

static void look_back(struct cell *c)
{
	struct brig_error ignored = BRIG_ERROR_INIT;
	struct pod_status status;

	if (look(c, &c->after, &status, &ignored) == 0 &&
	    !map_check_pod(c->asked, c->after, c->difference, sizeof(c->difference)))
		c->violated = true;
}

int pod_stop(struct cell *c, struct brig_error *err)
{
	struct pump *p = &c->pump;
	uint64_t deadline;

	if (c->stopped || !p->go_sent)
		return 0;
	c->stopped = true;
	p->draining = true;
	if (!p->final && !p->stream_over && pump_message(p, WIRE_STOP))
		lifecycle_await_final(p, from_now(STOP_PATIENCE_MS));
	deadline = from_now(cluster_patience_ms(c->plan->limits.cleanup_ms));
	c->host->api.deadline_ns = deadline;
	if (p->final)
		(void)lifecycle_await_mark(p, some_time(deadline));
	look_back(c);
	if (!p->final) { /* init does not answer, or is dead: the node has to end the rest */
		pump_end_stream(p);
		http_stream_close(MOVE_PTR(p->stream)); /* init, if it lives, exits with it */
		c->gone = end_pod(c, deadline, err);
	}
	if (p->stream)
		pump_end_stream(p);
	pump_hand_over(p);
	return p->final || c->gone ? 0 : -err->code;
}

int pod_remove(struct cell *c, char *leftovers, size_t size)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (c->gone || (!c->uid[0] && !c->perhaps))
		return 0;
	http_stream_close(MOVE_PTR(c->pump.stream)); /* init exits with it */
	if (end_pod(c, from_now(cluster_patience_ms(c->plan->limits.cleanup_ms)), &err))
		return 0;
	(void)snprintf(leftovers, size, "pod %s in namespace %s: %.120s (brig reap tries again)", c->name,
		       c->host->api.namespace, err.msg);
	return 1;
}
