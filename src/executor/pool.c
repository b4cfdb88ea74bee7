/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cells a pool keeps: those that a run of each language would use under the same policy. Their plans are made as
 * for a run, with an empty program; a warm cell contains nothing that depends on the program.
 */
#include "executor/pool.h"

#include "backend/backend.h"
#include "executor/prepare.h"
#include "executor/select.h"
#include "executor/user.h"

struct kinds {
	struct prepared_request request[POOL_LANGUAGES_MAX];
	struct prepared stage[2 * POOL_LANGUAGES_MAX];
	const struct plan *plan[2 * POOL_LANGUAGES_MAX];
	size_t n;
};

static struct brig_request request_of(const struct pool_wish *wish, size_t i)
{
	return (struct brig_request){ .size = sizeof(struct brig_request),
				      .language = wish->languages[i],
				      .code = "",
				      .trust = wish->trust,
				      .options = wish->options,
				      .n_options = wish->n_options };
}

static int add_language(struct kinds *k, const struct selection *docker, const struct pool_wish *wish, size_t i,
			struct brig_error *err)
{
	const struct brig_request req = request_of(wish, i);
	const struct buf nothing = BUF_INIT(0);
	struct prepared_request *pr = &k->request[i];
	int rc = user_find(pr, docker, &req, err);

	if (rc < 0)
		return rc;
	pr->brings_runtimes = true;
	if (pr->lang->compiles) {
		rc = prepare_compile(pr, &req, &k->stage[k->n], err);
		k->plan[k->n] = &k->stage[k->n].plan;
		k->n++;
	}
	if (rc == 0) {
		rc = prepare_run(pr, &req, pr->lang->compiles ? &nothing : NULL, &k->stage[k->n], err);
		k->plan[k->n] = &k->stage[k->n].plan;
		k->n++;
	}
	return rc;
}

static int serve(struct kinds *k, const struct pool_wish *wish, struct brig_error *err)
{
	struct backend_pool ask = {
		.plans = k->plan, .size = wish->size, .stop_fd = wish->stop_fd, .notify = { wish->notice, wish->arg }
	};
	struct selection docker = { .ops = backend_find(BACKEND_DOCKER, err) };
	int rc;

	if (!docker.ops || !docker.ops->pool)
		return docker.ops ? err_set(err, BRIG_E_REFUSED, 0, "the docker backend of this build keeps no pool")
				  : -err->code;
	rc = docker.ops->open(&k->request[0].resolved.set, &docker.host, &docker.missing, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < wish->n; i++)
		rc = add_language(k, &docker, wish, i, err);
	ask.n_plans = k->n;
	if (rc == 0)
		rc = docker.ops->pool(docker.host, &ask, err);
	selection_release(&docker);
	return rc;
}

int executor_pool(const struct policy *policy, const struct pool_wish *wish, struct brig_error *err)
{
	AUTO_FREE struct kinds *k = calloc(1, sizeof(*k));
	int rc = 0;

	if (!k)
		return err_nomem(err);
	if (wish->n == 0 || wish->n > POOL_LANGUAGES_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "a pool is kept for 1 to %d languages", POOL_LANGUAGES_MAX);
	for (size_t i = 0; rc == 0 && i < wish->n; i++) {
		const struct brig_request req = request_of(wish, i);

		rc = prepare_request(policy, &req, &k->request[i], err);
	}
	if (rc == 0)
		rc = serve(k, wish, err);
	for (size_t i = 0; i < ARRAY_LEN(k->request); i++)
		prepared_request_release(&k->request[i]);
	for (size_t i = 0; i < ARRAY_LEN(k->stage); i++)
		prepared_release(&k->stage[i]);
	return rc;
}
