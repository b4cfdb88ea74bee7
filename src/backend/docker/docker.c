/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells that are containers of a Docker Engine (or Podman's compatible service).
 *
 * The engine provides what engines can provide: namespaces, cgroups, a read-only root, no network, a system call
 * filter.  The rest of a native cell's protections come from our own init, from inside (../container/init): Landlock,
 * the exact filter, resource limits, the wall clock, evidence.  The engine's account of the container is checked before
 * the program starts, and again afterwards (map_check.c); what init reads from the kernel inside takes precedence over
 * it.
 *
 *	docker.c      this file: the backend's operations
 *	map_plan.c    plan -> container settings, and what cannot be promised
 *	map_check.c   container settings <- the engine's account
 *	container.c   prepare, create, start, stop, remove
 *	owner.c       ps, reap
 *	stats.c       samples
 *	read_back.c   facts
 *	changes.c     differences in the root afterwards
 *	way_out.c     the sockets of the egress proxy in its network
 *
 * The protocol between brig and init, and everything based on it, is in ../container, which other backends share.
 */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "backend/docker/images.h"
#include "backend/docker/pool.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/wait.h"
#include "sys/disk.h"

static int check_settings(struct backend_host *h, struct brig_error *err)
{
	const struct settings *set = h->set;
	struct engine_host info;
	int rc;

	if (set->rootfs[0])
		return err_set(err, BRIG_E_REFUSED, 0, "rootfs is for native cells; for docker cells set docker_image");
	if (str_eq(set->docker_userns, "host"))
		return err_set(err, BRIG_E_REFUSED, 0, "docker_userns 'host' would undo the engine's own id mapping");
	if (!set->docker_runtime[0])
		return 0;
	rc = engine_info(h->engine, &info, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_LEN(info.runtimes) && info.runtimes[i][0]; i++)
		if (str_eq(info.runtimes[i], set->docker_runtime))
			return 0;
	return err_set(err, BRIG_E_REFUSED, 0, "the engine has no runtime '%s'; `docker info` lists those it has",
		       set->docker_runtime);
}

static void docker_close(struct backend_host *h)
{
	if (!h)
		return;
	engine_close(h->engine);
	free(h);
}

/* Podman limits the bytes of a tmpfs but not its inodes, and provides no cgroup namespace on cgroup v1. */
static protection_set missing_with_podman(const struct backend_host *h)
{
	bool v1 = !h->local || access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0;

	return PROT_BIT(PROT_disk_limit) | (v1 ? PROT_BIT(PROT_cgroup_ns) : 0);
}

/*
 * Containers read from the disk that has the engine's images; their own places are in memory.  For an engine on this
 * host the disk can be determined, if its directory is on one.
 */
static bool find_disk(struct backend_host *h)
{
	struct brig_error ignored = BRIG_ERROR_INIT;
	struct disk_list disks = { .n = 0 };
	struct engine_host info;

	return h->local && !h->podman && engine_info(h->engine, &info, &ignored) == 0 && info.root[0] == '/' &&
	       disk_add_path(&disks, info.root) == 0 && disks.n == 1 &&
	       disk_node(disks.dev[0], h->disk, sizeof(h->disk)) == 0;
}

static int docker_open(const struct settings *set, struct backend_host **ret, protection_set *ret_missing,
		       struct brig_error *err)
{
	struct backend_host *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_nomem(err);
	h->set = set;
	rc = engine_open(set, clock_now_ns() + engine_patience_ms(set->startup_timeout_ms) * NS_PER_MS, &h->engine,
			 err);
	if (rc == 0)
		rc = check_settings(h, err);
	if (rc < 0) {
		docker_close(h);
		return rc;
	}
	h->podman = engine_about(h->engine)->podman;
	h->local = engine_about(h->engine)->local;
	owner_identify(&h->self);
	owner_sweep(h);
	*ret_missing = DOCKER_NEVER | (h->podman ? missing_with_podman(h) : 0);
	if (limits_disk_io(set) && !find_disk(h))
		*ret_missing |= PROT_BIT(PROT_disk_io);
	*ret = h;
	return 0;
}

static int docker_identify(struct backend_host *h, const char *language, const struct backend_notice *notify, char *dst,
			   size_t size, struct brig_error *err)
{
	const struct image_options options = { .image = h->set->docker_image,
					       .may_build = h->set->docker_build,
					       .progress = notify ? notify->fn : NULL,
					       .arg = notify ? notify->arg : NULL };
	uint64_t deadline = clock_now_ns() + engine_patience_ms(h->set->startup_timeout_ms) * NS_PER_MS;
	char id[ENGINE_IMAGE_LEN + 1];
	int rc;

	engine_set_deadline(h->engine, deadline);
	rc = image_ensure(h->engine, language, &options, deadline, id, err);
	if (rc == 0 && !str_copy(dst, size, id))
		rc = err_set(err, BRIG_E_INTERNAL, 0, "the id of an image is too long");
	return rc;
}

/* ---- carrier: frames from the engine, plain bytes to it ----------------------------------------------------- */

static ssize_t write_bytes(struct pump *p, const char *data, size_t len)
{
	return http_stream_write(p->stream, data, len);
}

static int take_frames(struct pump *p, const char *data, size_t len, struct brig_error *err)
{
	struct frames *f = &((struct cell *)p->carried)->frames;
	enum frame_stream stream;
	const char *piece;
	size_t n;
	int rc;

	while ((rc = frames_next(f, &data, &len, &stream, &piece, &n)) > 0) {
		rc = stream == FRAME_STDOUT ? pump_stdout(p, piece, n, err) : pump_stderr(p, piece, n, err);
		if (rc < 0)
			return -err->code;
	}
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the engine's stream makes no sense: %s",
			       frames_error_text(f->error));
	return 0;
}

static const struct pump_carrier docker_carrier = { .write = write_bytes, .take = take_frames };

/* ---- a cell ------------------------------------------------------------------------------------------------ */

static void cell_clear(struct cell *c, struct backend_host *h, const struct plan *plan)
{
	memset(c, 0, sizeof(*c));
	pump_clear(&c->pump, plan, &docker_carrier, c);
	c->host = h;
	c->plan = plan;
	c->frames = (struct frames)FRAMES_INIT(FRAME_MAX);
	c->memory = c->cpu = c->pids = c->pool = c->profile = FD_NONE;
}

/* Releases the container and everything else of the cell. */
static int release(struct cell *c, char *leftovers, size_t size)
{
	int left = container_remove(c, leftovers, size);

	if (left == 0 && !c->left_to_pool)
		pool_give_up(c);
	fd_closep(&c->pool); /* the pool retries what could not be removed */
	stats_close(c);
	pump_close(&c->pump);
	http_call_close(MOVE_PTR(c->wait));
	fd_closep(&c->profile);
	json_decref(c->asked);
	json_decref(c->before);
	json_decref(c->after);
	return left;
}

static int docker_destroy(struct cell *c, char *leftovers, size_t size)
{
	int left;

	*leftovers = '\0';
	if (!c)
		return 0;
	left = release(c, leftovers, size);
	free(c);
	return left;
}

static int build(struct cell *c, struct brig_error *err)
{
	int rc = container_create(c, err);

	if (rc == 0)
		rc = container_start(c, err);
	return rc == 0 ? container_await_ready(c, err) : rc;
}

/* Nothing has run in the warm container: if it has a problem, a new container may not. */
static int build_cold(struct cell *c, struct brig_error *err)
{
	const struct backend_notice notify = c->notify;
	char leftovers[256];
	int rc;

	(void)release(c, leftovers, sizeof(leftovers));
	cell_clear(c, c->host, c->plan);
	c->notify = notify;
	c->cold = true;
	*err = (struct brig_error)BRIG_ERROR_INIT;
	rc = container_prepare(c, err);
	return rc < 0 ? rc : build(c, err);
}

static int docker_find_user(struct backend_host *h, const struct backend_user *user, uint32_t *ret_uid,
			    uint32_t *ret_gid, struct brig_error *err)
{
	const struct image_options options = { .image = h->set->docker_image,
					       .may_build = h->set->docker_build,
					       .requirements = &h->set->docker_requirements,
					       .progress = user->notify.fn,
					       .arg = user->notify.arg };
	uint64_t deadline = clock_now_ns() + engine_patience_ms(h->set->startup_timeout_ms) * NS_PER_MS;
	char image[ENGINE_IMAGE_LEN + 1];
	int rc;

	engine_set_deadline(h->engine, deadline);
	rc = image_ensure(h->engine, user->language, &options, deadline, image, err);
	return rc < 0 ? rc : image_find_user(h->engine, image, user->name, ret_uid, ret_gid, err);
}

static int docker_begin(struct backend_host *h, const struct plan *plan, const struct backend_notice *notify,
			struct cell **ret, struct brig_error *err)
{
	struct cell *c = malloc(sizeof(*c));
	char leftovers[256];
	int rc;

	if (!c)
		return err_nomem(err);
	cell_clear(c, h, plan);
	if (notify)
		c->notify = *notify;
	rc = container_prepare(c, err);
	if (rc < 0) {
		(void)docker_destroy(c, leftovers, sizeof(leftovers));
		return rc;
	}
	*ret = c;
	return 0;
}

/* Excludes what the engine spent on the container before. */
static int start_program(struct cell *c, struct brig_error *err)
{
	c->cpu_seen_ns = 0;
	return lifecycle_start_program(&c->pump, err);
}

static int docker_finish(struct cell *c, struct brig_error *err)
{
	int rc = build(c, err);

	if (rc < 0 && c->pool >= 0)
		rc = build_cold(c, err);
	return rc == 0 && c->plan->start_at_once ? start_program(c, err) : rc;
}

static int docker_start(struct cell *c, struct cell_fds *ret, struct brig_error *err)
{
	int rc = c->pump.go_sent ? 0 : start_program(c, err);

	if (rc == 0)
		*ret = lifecycle_fds(&c->pump);
	return rc;
}

/*
 * The cgroup with the count may have disappeared with its last process: then the engine is asked, which learns it late.
 */
static bool was_out_of_memory(struct cell *c)
{
	const uint64_t deadline = clock_now_ns() + NS_PER_SEC;
	struct brig_error ignored = BRIG_ERROR_INIT;
	bool oom = stats_oom_kills(c) > 0, running = true;

	while (!oom && running) {
		json_t *v = NULL;

		if (engine_inspect(c->host->engine, c->id, &v, &ignored) != 0)
			return false;
		(void)answer_bool(v, "State.OOMKilled", &oom);
		(void)answer_bool(v, "State.Running", &running);
		json_decref(v);
		running = running && clock_now_ns() < deadline;
		if (!oom && running)
			wait_sleep(5 * NS_PER_MS);
	}
	c->oom_seen = oom ? max_u64(c->oom_seen, 1) : 0;
	return oom;
}

/* Init died without reporting the end: the OOM killer took the whole container, or it was killed from outside. */
static enum cell_event take_lost_init(struct cell *c, struct exit_info *info, struct brig_error *err)
{
	if (c->oom_seen == 0 && !was_out_of_memory(c)) {
		(void)err_set(err, BRIG_E_SYSTEM, 0,
			      "the container ended without reporting a result: it was killed from outside, or the "
			      "engine stopped");
		return CELL_FAILED;
	}
	*info = (struct exit_info){ .signal = SIGKILL, .at_ns = clock_now_ns() };
	return CELL_FINISHED;
}

static enum cell_event docker_on_event(struct cell *c, struct exit_info *info, struct brig_error *err)
{
	bool lost;
	enum cell_event event = lifecycle_event(&c->pump, info, &lost, err);

	return lost ? take_lost_init(c, info, err) : event;
}

static int docker_stop(struct cell *c, struct brig_error *err)
{
	fd_closep(&c->pump.in_write);
	return container_stop(c, err);
}

static void docker_usage(struct cell *c, struct cell_usage *ret)
{
	lifecycle_usage(&c->pump, c->cpu_seen_ns, c->oom_seen, ret);
}

static_assert(offsetof(struct cell, pump) == 0, "container_cell_*() take a cell for its pump");

const struct backend_ops docker_backend = {
	.name = "docker",
	.brings_runtimes = true,
	.never = DOCKER_NEVER,
	.open = docker_open,
	.close = docker_close,
	.find_user = docker_find_user,
	.identify = docker_identify,
	.begin = docker_begin,
	.finish = docker_finish,
	.start = docker_start,
	.on_event = docker_on_event,
	.close_stdin = container_cell_close_stdin,
	.sample = stats_sample,
	.cpu_ns = stats_cpu_ns,
	.oom_kills = stats_oom_kills,
	.read_back = docker_read_back,
	.stop = docker_stop,
	.usage = docker_usage,
	.open_output = container_cell_open_output,
	.open_folder = container_cell_open_folder,
	.listener = docker_listener,
	.certificates = CERTIFICATES_PATH,
	.workspace = container_cell_workspace,
	.left = container_cell_left,
	.list = owner_list,
	.reap = owner_reap,
	.pool = pool_serve,
	.destroy = docker_destroy,
};
