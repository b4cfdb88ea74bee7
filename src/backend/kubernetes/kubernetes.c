/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells that are pods of a Kubernetes cluster.
 *
 * The cluster provides what clusters can provide: namespaces, cgroups, a read-only root, its runtime's system call
 * filter, and a RuntimeClass (gVisor, Kata) if the policy names one.  The rest of a native cell's protections come from
 * our own init, from inside (../container/init): Landlock, the exact filter, resource limits, the wall clock, evidence.
 * What the API cannot express (the number of processes, whether size limits hold, which network there is) init
 * determines inside before the program starts, and the run is refused if a promise would not be kept.
 *
 *	kubernetes.c  this file: the backend's operations
 *	map_plan.c    plan -> pod
 *	map_check.c   pod <- the API server's account
 *	life.c        prepare, create, attach, stop, remove
 *	status.c      what the API server reports about a pod's state
 *	channels.c    bytes over the WebSocket of attach
 *	read_back.c   checks before the start, facts after the end
 *	reap.c        ps, reap
 *	api.c         API calls;  address.c  their target and credentials
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "backend/docker/images.h"
#include "backend/kubernetes/pod.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

static void kubernetes_close(struct backend_host *h)
{
	if (!h)
		return;
	api_close(&h->api);
	free(h);
}

static int check_settings(struct backend_host *h, struct brig_error *err)
{
	const char *runtime = h->set->kubernetes_runtime;
	int rc;

	if (h->set->rootfs[0])
		return err_set(err, BRIG_E_REFUSED, 0, "rootfs is for native cells; for pods set kubernetes_image");
	rc = runtime[0] ? api_runtime_class(&h->api, runtime, err) : 0;
	if (rc > 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the cluster has no RuntimeClass '%s'; `kubectl get runtimeclass` lists those it has",
			       runtime);
	return rc;
}

static int kubernetes_open(const struct settings *set, struct backend_host **ret, protection_set *ret_missing,
			   struct brig_error *err)
{
	struct backend_host *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_nomem(err);
	h->set = set;
	rc = api_open(set, clock_now_ns() + cluster_patience_ms(set->startup_timeout_ms) * NS_PER_MS, &h->api, err);
	if (rc == 0)
		rc = check_settings(h, err);
	if (rc < 0) {
		kubernetes_close(h);
		return rc;
	}
	owner_identify(&h->self);
	*ret_missing = KUBERNETES_NEVER | (limits_disk_io(set) ? PROT_BIT(PROT_disk_io) : 0);
	*ret = h;
	return 0;
}

/*
 * The image's name, which for our own images includes a hash of the contents; what was really run is in the evidence.
 */
static int kubernetes_identify(struct backend_host *h, const char *language, const struct backend_notice *notify UNUSED,
			       char *dst, size_t size, struct brig_error *err)
{
	const char *own = image_of(language);
	char image[300] = "";

	if (h->set->kubernetes_image[0])
		(void)str_copy(image, sizeof(image), h->set->kubernetes_image);
	else if (own)
		(void)image_reference(own, NULL, image, sizeof(image));
	if ((size_t)snprintf(dst, size, "kubernetes:%s", image) >= size)
		return err_set(err, BRIG_E_INTERNAL, 0, "the name of an image is too long");
	return 0;
}

static int kubernetes_destroy(struct cell *c, char *leftovers, size_t size)
{
	int left;

	*leftovers = '\0';
	if (!c)
		return 0;
	left = pod_remove(c, leftovers, size);
	pump_close(&c->pump);
	channels_close(c->channels);
	json_decref(c->asked);
	json_decref(c->before);
	json_decref(c->after);
	free(c);
	return left;
}

static int kubernetes_begin(struct backend_host *h, const struct plan *plan, const struct backend_notice *notify UNUSED,
			    struct cell **ret, struct brig_error *err)
{
	struct cell *c = calloc(1, sizeof(*c));
	char leftovers[256];
	int rc;

	if (!c)
		return err_nomem(err);
	pump_clear(&c->pump, plan, &channels_carrier, NULL);
	c->pump.in_pod = true;
	c->host = h;
	c->plan = plan;
	rc = pod_prepare(c, err);
	if (rc < 0) {
		(void)kubernetes_destroy(c, leftovers, sizeof(leftovers));
		return rc;
	}
	*ret = c;
	return 0;
}

static int kubernetes_finish(struct cell *c, struct brig_error *err)
{
	int rc = pod_start(c, err);

	if (rc == 0)
		rc = pod_await_ready(c, err);
	return rc == 0 && c->plan->start_at_once ? lifecycle_start_program(&c->pump, err) : rc;
}

static int kubernetes_start(struct cell *c, struct cell_fds *ret, struct brig_error *err)
{
	int rc = c->pump.go_sent ? 0 : lifecycle_start_program(&c->pump, err);

	if (rc == 0)
		*ret = lifecycle_fds(&c->pump);
	return rc;
}

static enum cell_event kubernetes_on_event(struct cell *c, struct exit_info *info, struct brig_error *err)
{
	bool lost;
	enum cell_event event = lifecycle_event(&c->pump, info, &lost, err);

	return lost ? pod_lost(c, info, err) : event;
}

static int kubernetes_stop(struct cell *c, struct brig_error *err)
{
	fd_closep(&c->pump.in_write);
	return pod_stop(c, err);
}

/* Clusters measure usage only every several seconds, if at all. */
static int kubernetes_sample(struct cell *c UNUSED, struct sample *ret UNUSED)
{
	return -ENODATA;
}

static uint64_t kubernetes_cpu_ns(struct cell *c UNUSED)
{
	return 0;
}

static uint64_t kubernetes_oom_kills(struct cell *c)
{
	return c->oom_seen;
}

static void kubernetes_usage(struct cell *c, struct cell_usage *ret)
{
	lifecycle_usage(&c->pump, 0, c->oom_seen, ret);
}

static_assert(offsetof(struct cell, pump) == 0, "container_cell_*() take a cell for its pump");

const struct backend_ops kubernetes_backend = {
	.name = "kubernetes",
	.brings_runtimes = true,
	.never = KUBERNETES_NEVER,
	.open = kubernetes_open,
	.close = kubernetes_close,
	.identify = kubernetes_identify,
	.begin = kubernetes_begin,
	.finish = kubernetes_finish,
	.start = kubernetes_start,
	.on_event = kubernetes_on_event,
	.close_stdin = container_cell_close_stdin,
	.sample = kubernetes_sample,
	.cpu_ns = kubernetes_cpu_ns,
	.oom_kills = kubernetes_oom_kills,
	.read_back = pod_read_back,
	.stop = kubernetes_stop,
	.usage = kubernetes_usage,
	.open_output = container_cell_open_output,
	.open_folder = container_cell_open_folder,
	.certificates = CERTIFICATES_PATH,
	.workspace = container_cell_workspace,
	.left = container_cell_left,
	.list = pods_list,
	.reap = pods_reap,
	.destroy = kubernetes_destroy,
};
