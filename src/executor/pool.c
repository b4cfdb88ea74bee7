/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cells a pool keeps: those that a run of each language would be given, under the same policy.  The plans are made
 * the same way as for a run, with an empty program; what depends on the program is not part of a warm cell.
 */
#include "executor/pool.h"

#include "backend/backend.h"
#include "executor/prepare.h"
#include "executor/select.h"

struct kinds {
	struct prepared_request request[POOL_LANGUAGES_MAX];
	struct prepared stage[2 * POOL_LANGUAGES_MAX];
	const struct plan *plan[2 * POOL_LANGUAGES_MAX];
	size_t n;
};

static int add_language(struct kinds *k, const struct policy *policy, const struct pool_wish *wish, size_t i,
			struct brig_error *err)
{
	const struct brig_request req = { .size = sizeof(req),
					  .language = wish->languages[i],
					  .code = "",
					  .trust = wish->trust,
					  .options = wish->options,
					  .n_options = wish->n_options };
	const struct buf nothing = BUF_INIT(0);
	struct prepared_request *pr = &k->request[i];
	int rc = prepare_request(policy, &req, pr, err);

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

static int serve(const struct kinds *k, const struct pool_wish *wish, struct brig_error *err)
{
	const struct backend_pool ask = { .plans = k->plan,
					  .n_plans = k->n,
					  .size = wish->size,
					  .stop_fd = wish->stop_fd,
					  .notice = wish->notice,
					  .arg = wish->arg };
	const struct backend_ops *ops = backend_find(BACKEND_DOCKER, err);
	struct backend_host *host = NULL;
	protection_set missing;
	int rc;

	if (!ops || !ops->pool)
		return ops ? err_set(err, BRIG_E_REFUSED, 0, "the docker backend of this build keeps no pool")
			   : -err->code;
	rc = ops->open(&k->request[0].resolved.set, &host, &missing, err);
	if (rc < 0)
		return rc;
	rc = ops->pool(host, &ask, err);
	ops->close(host);
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
	for (size_t i = 0; rc == 0 && i < wish->n; i++)
		rc = add_language(k, policy, wish, i, err);
	if (rc == 0)
		rc = serve(k, wish, err);
	for (size_t i = 0; i < ARRAY_LEN(k->request); i++)
		prepared_request_release(&k->request[i]);
	for (size_t i = 0; i < ARRAY_LEN(k->stage); i++)
		prepared_release(&k->stage[i]);
	return rc;
}
