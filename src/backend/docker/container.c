/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of a container:
 *
 *	prepare  finds or builds the image; packs what will be sent to init
 *	create   from the image's id, with the settings of map_plan.c
 *	attach, wait    before start, so that no output and no exit can be missed
 *	start    init runs, reads its job, sets up what the engine does not, and reports that it is ready
 *	inspect  the engine's account is compared with the request: a difference ends the run here
 *	go       the program runs
 *	stop     init kills all processes, reports the end, and exits when we close its stdin; the engine kills an init
 *	that does not answer
 *	inspect  again, and what changed in the root
 *	remove   always; its labels name its owner from the beginning, so if brig is killed, `brig reap` finds the
 *	container
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "backend/docker/images.h"
#include "backend/docker/pool.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/wait.h"

#define STOP_PATIENCE_MS 2000 /* for init to kill all processes, before the engine is asked to */

static uint64_t from_now(uint64_t ms)
{
	return clock_now_ns() + ms * NS_PER_MS;
}

static int find_image(struct cell *c, uint64_t deadline_ns, struct brig_error *err)
{
	const struct settings *set = c->host->set;
	const struct image_options options = { .image = set->docker_image,
					       .may_build = set->docker_build,
					       .requirements = &set->docker_requirements,
					       .progress = c->notify.fn,
					       .arg = c->notify.arg };

	return image_ensure(c->host->engine, c->plan->language, &options, deadline_ns, c->image, err);
}

/* Prepares the request to the engine. */
static int describe(struct cell *c, struct brig_error *err)
{
	int rc = c->host->podman ? map_plan_offer_profile(c, err) : 0;

	if (rc < 0)
		return rc;
	(void)snprintf(c->name, sizeof(c->name), "brig-%s-%s", c->plan->id, c->plan->step);
	c->asked = map_plan_body(c, err);
	return c->asked ? 0 : -err->code;
}

/* Limits that the engine says it ignores are missing protections; init later reads their values from the kernel. */
static int create(struct cell *c, struct brig_error *err)
{
	char warnings[256] = "";
	int rc;

	if (!c->cold && pool_take(c))
		return 0;
	rc = engine_create(c->host->engine, c->name, c->asked, c->id, warnings, sizeof(warnings), err);
	if (rc < 0) {
		int status = engine_status(c->host->engine);

		/*
		 * Only a definite refusal means that there is no container: a lost or malformed answer may stand for
		 * one that was created.
		 */
		c->perhaps = status < 400 || status >= 500;
		c->id[0] = '\0';
	}
	return rc;
}

int container_prepare(struct cell *c, struct brig_error *err)
{
	static int (*const steps[])(struct pump *, struct brig_error *) = {
		lifecycle_make_keys, pump_open, shown_pack, project_pack, pump_load,
	};
	uint64_t deadline = from_now(engine_patience_ms(c->plan->limits.startup_ms));
	int rc;

	engine_set_deadline(c->host->engine, deadline);
	rc = find_image(c, deadline, err);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(steps); i++)
		rc = steps[i](&c->pump, err);
	return rc < 0 ? rc : describe(c, err);
}

int container_create(struct cell *c, struct brig_error *err)
{
	struct engine *e = c->host->engine;
	int rc;

	engine_set_deadline(e, from_now(engine_patience_ms(c->plan->limits.startup_ms)));
	rc = create(c, err);
	if (rc == 0 && !c->pump.stream)
		rc = engine_attach(e, c->id, /* with_stdin= */ true, &c->pump.stream, err);
	return rc;
}

int container_start(struct cell *c, struct brig_error *err)
{
	struct engine *e = c->host->engine;
	uint64_t all = c->plan->limits.startup_ms + c->plan->limits.wall_ms + c->plan->limits.cleanup_ms;
	int rc = 0;

	if (pump_turn(&c->pump, err) < 0) /* sends as much as fits while the engine works */
		return -err->code;
	if (c->pool >= 0)
		return 0; /* it has been running for a while, and the pool handles its exit */
	/* Podman checks containers four times a second: asking at the end is faster. */
	if (!c->host->podman)
		rc = engine_wait_begin(e, c->id, from_now(all + 4 * (uint64_t)ENGINE_GRACE_MS), &c->wait, err);
	return rc < 0 ? rc : engine_start(e, c->id, err);
}

/* ---- ready ---------------------------------------------------------------------------------------- */

/* The container ended before init reported anything: reports what the engine knows. */
static int died_early(struct cell *c, struct brig_error *err)
{
	json_t *v = NULL;
	char words[160] = "", said[160] = "";
	int64_t code = -1;
	bool oom = false;

	if (engine_inspect(c->host->engine, c->id, &v, err) == 0) {
		(void)answer_i64(v, "State.ExitCode", &code);
		(void)answer_bool(v, "State.OOMKilled", &oom);
		(void)answer_clean(words, sizeof(words), answer_text_or(v, "State.Error", ""));
		json_decref(v);
	}
	(void)answer_clean(said, sizeof(said), c->pump.first_words);
	if (oom || stats_oom_kills(c) > 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the memory limit is too small to start a container");
	return err_set(err, BRIG_E_SYSTEM, 0,
		       "the container ended with code %lld before its program could start%s%s%s%s", (long long)code,
		       words[0] ? ": " : "", words, said[0] ? "; it said: " : "", said);
}

int container_await_ready(struct cell *c, struct brig_error *err)
{
	uint64_t deadline = from_now(engine_patience_ms(c->plan->limits.startup_ms)), pid = 0;
	int rc = engine_inspect(c->host->engine, c->id, &c->before, err);

	if (rc > 0)
		return err_set(err, BRIG_E_SYSTEM, 0, "the container vanished while it started");
	if (rc == 0 && answer_u64(c->before, "State.Pid", &pid))
		stats_open(c, pid);
	if (rc == 0)
		rc = lifecycle_await_ready(&c->pump, deadline, err);
	if (rc <= 0)
		return rc < 0 ? rc : died_early(c, err);
	if (!map_check(c->asked, c->before, c->host->podman, /* ended= */ false, c->difference, sizeof(c->difference)))
		return err_set(err, BRIG_E_REFUSED, 0, "the engine did not make the container that was asked for: %s",
			       c->difference);
	return lifecycle_check_limits(&c->pump, "the engine", err);
}

/* ---- the end -------------------------------------------------------------------------------------- */

static bool is_running(struct cell *c, struct brig_error *err)
{
	bool running = false;
	json_t *v = NULL;

	if (engine_inspect(c->host->engine, c->id, &v, err) != 0)
		return false;
	(void)answer_bool(v, "State.Running", &running);
	json_decref(c->after);
	c->after = v;
	return running;
}

/* The engine needs a moment after the last process has exited. */
static int await_exit(struct cell *c, uint64_t deadline, struct brig_error *err)
{
	struct engine_exit how;
	int rc = 0;

	while (c->wait && rc == 0 && clock_now_ns() < deadline) {
		struct pollfd p = { .fd = http_call_fd(c->wait), .events = POLLIN };

		rc = engine_wait_step(c->wait, &how, err);
		if (rc == 0)
			(void)wait_poll(
				&p, 1,
				(int)min_u64((deadline - min_u64(clock_now_ns(), deadline)) / NS_PER_MS + 1, 1000));
	}
	while (is_running(c, err)) {
		if (clock_now_ns() >= deadline)
			return err_set(err, BRIG_E_SYSTEM, ETIMEDOUT, "the container did not end");
		wait_sleep(2 * NS_PER_MS);
	}
	if (c->after)
		return 0;
	return err->code ? -err->code
			 : err_set(err, BRIG_E_SYSTEM, 0,
				   "the engine no longer knows the container, so it is unknown what "
				   "was in force");
}

static void look_back(struct cell *c, bool ended)
{
	if (c->after && !map_check(c->asked, c->after, c->host->podman, ended, c->difference, sizeof(c->difference)))
		c->violated = true;
	changes_count(c);
}

/* Half of the remaining time, at most STOP_PATIENCE_MS, so that time is left for the engine. */
static uint64_t some_time(uint64_t deadline)
{
	uint64_t now = clock_now_ns();

	return now + min_u64((deadline - min_u64(now, deadline)) / 2, STOP_PATIENCE_MS * NS_PER_MS);
}

/*
 * A program from a pool that has ended normally is dead with everything that it started, according to init, and init
 * has reported everything.  What is left is an init that waits for end of file, and an engine that takes its time to
 * notice its exit: the pool can handle that.  The engine is asked for its account before init exits, while the rest of
 * the output is in transit.
 */
static bool leave_to_pool(struct cell *c, uint64_t deadline)
{
	struct brig_error ignored = BRIG_ERROR_INIT;

	if (c->pool < 0 || !c->pump.final || !c->pump.has_exit || c->pump.failed_step || c->pump.exit.expired ||
	    c->pump.exit.oom_kills > 0 || c->oom_seen > 0 || !pool_is_there(c))
		return false;
	pump_request_mark(&c->pump);
	if (engine_inspect(c->host->engine, c->id, &c->after, &ignored) != 0)
		return false;
	look_back(c, /* ended= */ false);
	c->left_to_pool = lifecycle_await_mark(&c->pump, some_time(deadline));
	return c->left_to_pool;
}

int container_stop(struct cell *c, struct brig_error *err)
{
	struct engine *e = c->host->engine;
	uint64_t deadline;
	int rc;

	if (c->stopped || !c->pump.go_sent)
		return 0;
	c->stopped = true;
	c->pump.draining = true;
	if (!c->pump.final && !c->pump.stream_over && pump_message(&c->pump, WIRE_STOP))
		lifecycle_await_final(&c->pump, from_now(STOP_PATIENCE_MS));
	deadline = from_now(
		engine_patience_ms(c->plan->limits.cleanup_ms)); /* init has had its time: the rest is for the engine */
	engine_set_deadline(e, deadline);
	(void)stats_oom_kills(c);
	(void)stats_cpu_ns(c);
	if (leave_to_pool(c, deadline)) {
		pump_hand_over(&c->pump);
		return 0;
	}
	if (!c->pump.final || http_stream_end_writing(c->pump.stream) < 0)
		(void)engine_kill(e, c->id, "SIGKILL", err);
	lifecycle_await_stream_end(&c->pump, some_time(deadline));
	if (!c->pump.stream_over) {
		(void)engine_kill(e, c->id, "SIGKILL", err);
		lifecycle_await_stream_end(&c->pump, some_time(deadline));
	}
	rc = await_exit(c, deadline, err);
	if (rc == 0)
		look_back(c, /* ended= */ true);
	pump_hand_over(&c->pump);
	return rc;
}

int container_remove(struct cell *c, char *leftovers, size_t size)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if ((!c->id[0] && !c->perhaps) || (c->left_to_pool && pool_is_there(c)))
		return 0;
	c->left_to_pool = false;
	engine_set_deadline(c->host->engine, from_now(engine_patience_ms(c->plan->limits.cleanup_ms)));
	if (engine_remove(c->host->engine, c->id[0] ? c->id : c->name, &err) == 0)
		return 0;
	(void)snprintf(leftovers, size, "container %s: %.150s (brig reap tries again)", c->name, err.msg);
	return 1;
}
