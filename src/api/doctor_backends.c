/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of `brig doctor` that asks backends. The rows of protections describe the backend that runs would use; so
 * with backend auto, native comes first and is examined more closely than before a run, with the results of the probes.
 * Each backend then gets a row of its own, and a container engine, if found, some more.
 */
#include <stdio.h>
#include <string.h>

#include "api/doctor.h"
#include "backend/backend.h"
#include "backend/docker/engine.h"
#include "base/clock.h"
#include "base/str.h"
#include "executor/select.h"

#define ENGINE_PATIENCE_NS (5 * NS_PER_SEC)
#define ENGINE_FIX                                                                                             \
	"not needed as long as native works; for the docker backend, start Docker or Podman (systemctl start " \
	"docker), give your user access to its socket, or name it in docker_host"

#define CLUSTER_FIX                                                                                           \
	"not needed as long as native works; for the kubernetes backend, name the cluster's API server with " \
	"kubernetes_server, and who asks with kubernetes_token_file and kubernetes_ca_file"

static struct doctor_row *add_row(struct doctor_facts *f, const char *area, const char *name, enum probe_status status)
{
	struct doctor_row *r = &f->extra[f->n_extra < DOCTOR_ROWS_MAX ? f->n_extra++ : DOCTOR_ROWS_MAX - 1];

	*r = (struct doctor_row){ .area = area, .status = status };
	(void)str_copy(r->name, sizeof(r->name), name);
	return r;
}

/* What the native backend does not try before each run, to stay cheap. */
static protection_set missing_by_doing(const struct doctor_facts *f)
{
	protection_set missing = 0;

	for (enum probe_id id = 0; id < PROBE_COUNT; id++) {
		enum protection p = protection_from_name(probe_info[id].name);

		if (f->host.row[id].status == PROBE_MISSING && p < PROT_COUNT)
			missing |= PROT_BIT(p);
	}
	return missing;
}

static void add_names(char *dst, size_t size, protection_set set)
{
	size_t len = strlen(dst);

	for (enum protection p = 0; p < PROT_COUNT; p++)
		if (set & PROT_BIT(p) && len + 1 < size)
			len += (size_t)snprintf(dst + len, size - len, " %s", protection_info[p].name);
}

/* One backend by itself, as if the policy named it. */
static void add_backend(const struct settings *set, const struct backend_ops *ops, struct doctor_facts *f)
{
	struct doctor_row *r = add_row(f, "backends", ops->name, PROBE_OK);
	struct brig_error err = BRIG_ERROR_INIT;
	struct backend_host *host = NULL;
	protection_set missing = 0, lacking;

	r->fix = ops == &kubernetes_backend ? CLUSTER_FIX : ENGINE_FIX;
	if (ops->open(set, &host, &missing, &err) < 0) {
		r->status = PROBE_MISSING;
		(void)str_copy(r->detail, sizeof(r->detail), err.msg);
		return;
	}
	ops->close(host);
	if (ops == &native_backend)
		missing |= missing_by_doing(f);
	if (ops == &direct_backend) {
		r->status = PROBE_INFO;
		(void)str_copy(r->detail, sizeof(r->detail),
			       "isolates nothing; taken only by name, or with fallback: direct");
		return;
	}
	lacking = missing & ~f->may_degrade & ~ops->never;
	if (lacking) {
		r->status = PROBE_MISSING;
		r->fix = "see the rows of these protections";
	}
	(void)str_copy(r->detail, sizeof(r->detail), lacking ? "cannot keep the policy: lacks" : "can keep the policy");
	add_names(r->detail, sizeof(r->detail), lacking);
	if (missing & ops->never) {
		size_t len = strlen(r->detail);

		(void)snprintf(r->detail + len, sizeof(r->detail) - len, "; gives nowhere:");
		add_names(r->detail, sizeof(r->detail), missing & ops->never);
	}
}

static void add_engine(const struct settings *set, struct doctor_facts *f)
{
	uint64_t deadline = clock_now_ns() + ENGINE_PATIENCE_NS;
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine *e = NULL;
	AUTO_FREE struct engine_host *host = calloc(1, sizeof(*host));
	const struct engine_about *about;
	struct doctor_row *r;

	if (!host || engine_open(set, deadline, &e, &err) < 0)
		return; /* the backend's row has the reason */
	about = engine_about(e);
	r = add_row(f, "engines", "engine", PROBE_OK);
	(void)snprintf(r->detail, sizeof(r->detail), "%s %s, API 1.%u, at %s", about->name, about->version, about->api,
		       about->address);
	engine_set_deadline(e, deadline);
	if (engine_info(e, host, &err) == 0) {
		size_t len = 0;

		r = add_row(f, "engines", "engine_rootless", PROBE_INFO);
		(void)str_copy(r->detail, sizeof(r->detail),
			       host->rootless ? "rootless"
			       : host->userns ? "root, with user namespaces for containers"
					      : "root, and so are its containers' user ids");
		r = add_row(f, "engines", "engine_cgroup", PROBE_INFO);
		(void)snprintf(r->detail, sizeof(r->detail), "cgroup v%u, driver %s", host->cgroup_version,
			       host->cgroup_driver);
		r = add_row(f, "engines", "engine_runtimes", PROBE_INFO);
		for (size_t i = 0; i < ARRAY_LEN(host->runtimes) && host->runtimes[i][0]; i++)
			len += (size_t)snprintf(r->detail + len, sizeof(r->detail) - len, "%s%s%s", len ? ", " : "",
						host->runtimes[i],
						str_eq(host->runtimes[i], host->default_runtime) ? " (default)" : "");
	}
	engine_close(e);
}

/* The backend that a run would use; the rows of protections show what it lacks. */
static void choose(const struct select_ask *ask, struct doctor_facts *f)
{
	struct selection s;
	bool by_auto = select_kind(ask->set) == BACKEND_AUTO;
	int rc = select_backend(ask, &s, &f->backend_error);

	if (rc == 0 && s.ops == &native_backend) {
		s.missing |= missing_by_doing(f);
		f->missing = s.missing;
		(void)str_copy(f->backend, sizeof(f->backend), s.ops->name);
		if (s.missing & ~ask->may_degrade && by_auto) {
			struct brig_error why = { .code = BRIG_E_REFUSED, .msg = "native lacks" };

			add_names(why.msg, sizeof(why.msg), s.missing & ~ask->may_degrade);
			rc = select_next(ask, &s, &why);
			if (rc < 0)
				return; /* native's rows say what to do */
		}
	}
	if (rc < 0) {
		(void)str_copy(f->backend, sizeof(f->backend), backend_kind_name[select_kind(ask->set)]);
		return;
	}
	f->missing = s.missing;
	f->may_degrade |= s.excused;
	(void)snprintf(f->backend, sizeof(f->backend), "%s%s", s.ops->name,
		       by_auto && s.at > 0 ? ", as native cannot" : "");
	selection_release(&s);
}

/* A native backend that lacks something still reports what; only one that cannot be opened is an error of its own. */
static void choose_or_explain(const struct settings *set, const struct select_ask *ask, struct doctor_facts *f)
{
	enum backend_kind kind = select_kind(set);
	struct backend_host *host = NULL;

	choose(ask, f);
	if (f->backend_error.code == 0 || (kind != BACKEND_AUTO && kind != BACKEND_NATIVE))
		return;
	(void)str_copy(f->backend, sizeof(f->backend), native_backend.name);
	f->backend_error = (struct brig_error)BRIG_ERROR_INIT;
	if (native_backend.open(set, &host, &f->missing, &f->backend_error) < 0)
		return;
	native_backend.close(host);
	f->missing |= missing_by_doing(f);
}

void doctor_gather_backends(const struct settings *set, enum trust trust, struct doctor_facts *f)
{
	const struct select_ask ask = { .set = set, .may_degrade = f->may_degrade, .trust = trust };
	const struct backend_ops *ops;

	choose_or_explain(set, &ask, f);
	for (size_t i = 0; (ops = backend_at(i)); i++)
		add_backend(set, ops, f);
	add_engine(set, f);
}
