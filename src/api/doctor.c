/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig doctor`: three sources, one table.
 *
 *   sys/probe          what the kernel lets this user do, found out by doing it
 *   backend->open()    which protections the policy's backend cannot give
 *   the policy         which of them may be missing (allow_degraded)
 *
 * A probe that is named like a protection is that protection's row; protections without a probe (the
 * limits of cgroups) have rows of their own.  So every protection has exactly one row.
 */
#include "api/doctor.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/str.h"
#include "lang/lang.h"
#include "policy/policy.h"
#include "sys/statedir.h"
#include "workspace/workspace.h"

#define DELEGATE_STEPS                                               \
	"sudo mkdir -p /etc/systemd/system/user@.service.d && "      \
	"printf '[Service]\\nDelegate=cpu memory pids\\n' | "        \
	"sudo tee /etc/systemd/system/user@.service.d/brig.conf && " \
	"sudo systemctl daemon-reload, then log in again"
#define DELEGATE_FIX "run brig as root, or delegate cgroup v2 to the users of a systemd host: " DELEGATE_STEPS
#define V1_DELEGATE_FIX                                                                             \
	"run brig as root, or boot with systemd.unified_cgroup_hierarchy=1 (only cgroup v2 can be " \
	"delegated to users), then: " DELEGATE_STEPS
#define CONTROLLER_FIX(name)                                                                                   \
	"boot with cgroup_enable=" name " and mount the controller: mount -t cgroup2 cgroup2 /sys/fs/cgroup; " \
	"in a container: docker run --privileged --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup"

/* The protections provided by cgroups. */
static const struct {
	enum protection protection;
	enum cgroup_resource resource;
	const char *fix; /* for root; other users need delegation first */
} cgroup_rows[] = {
	{ PROT_memory_limit, CGROUP_MEMORY, CONTROLLER_FIX("memory") },
	{ PROT_swap_limit, CGROUP_SWAP, "boot with swapaccount=1, or turn swap off: swapoff -a" },
	{ PROT_pids_limit, CGROUP_PIDS, CONTROLLER_FIX("pids") },
	{ PROT_cpu_quota, CGROUP_CPU, CONTROLLER_FIX("cpu") },
	{ PROT_cpu_time, CGROUP_CPU_TIME, CONTROLLER_FIX("cpuacct") },
	{ PROT_socket_memory, CGROUP_SOCKET_MEMORY,
	  "use cgroup v2 (boot with systemd.unified_cgroup_hierarchy=1), or a v1 kernel with "
	  "memory.kmem.tcp.limit_in_bytes" },
	{ PROT_disk_io, CGROUP_DISK_IO, CONTROLLER_FIX("blkio") " (only runs with disk_io_bps need it)" },
};

static const char *const status_name[] = { [PROBE_MISSING] = "missing", [PROBE_OK] = "ok", [PROBE_INFO] = "info" };

/* ---- gathering ------------------------------------------------------------------------------- */

/* PROT_COUNT if the probe belongs to no protection. */
static enum protection protection_of(enum probe_id id)
{
	return protection_from_name(probe_info[id].name);
}

static void gather_cgroups(struct doctor_facts *f)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct cgroup_host *h = NULL;

	if (cgroup_host_open(true, &h, &err) < 0) {
		(void)str_copy(f->cgroup_version, sizeof(f->cgroup_version), "unknown");
		for (size_t i = 0; i < CGROUP_RESOURCE_COUNT; i++)
			(void)str_copy(f->cgroup_why[i], sizeof(f->cgroup_why[i]), err.msg);
		return;
	}
	(void)str_copy(f->cgroup_version, sizeof(f->cgroup_version), cgroup_host_version(h));
	for (enum cgroup_resource r = 0; r < CGROUP_RESOURCE_COUNT; r++)
		(void)str_copy(f->cgroup_why[r], sizeof(f->cgroup_why[r]), cgroup_host_why(h, r));
	cgroup_host_free(h);
}

int doctor_gather(const struct policy *policy, struct doctor_facts *ret, struct brig_error *err)
{
	AUTO_FREE struct policy_resolved *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_nomem(err);
	rc = policy_resolve(policy, NULL, NULL, 0, p, err);
	if (rc < 0)
		return rc;
	memset(ret, 0, sizeof(*ret));
	ret->root = geteuid() == 0;
	for (enum protection i = 0; i < PROT_COUNT; i++)
		if (setting_list_has(&p->set.allow_degraded, protection_info[i].name))
			ret->may_degrade |= PROT_BIT(i);
	probe_host(&ret->host);
	gather_cgroups(ret);
	doctor_gather_backends(&p->set, p->trust, ret);
	return 0;
}

/* ---- rendering ------------------------------------------------------------------------------- */

struct row {
	const char *area, *name;
	enum probe_status status;
	const char *detail, *fix;
	enum protection protection; /* PROT_COUNT: none */
	bool required;
};

struct document {
	const struct doctor_facts *facts;
	json_t *rows;
	bool ok;
	bool no_memory;
};

static void add_row(struct document *d, const struct row *r)
{
	const struct protection_info *info = r->protection < PROT_COUNT ? &protection_info[r->protection] : NULL;
	json_t *o = json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:b, s:b}", "area", r->area, "name", r->name, "status",
			      status_name[r->status], "protection", info ? info->name : NULL, "lost",
			      info ? info->lost : NULL, "essential", info && info->essential, "required", r->required);
	json_t *detail = json_string(r->detail);

	/* A detail may contain arbitrary bytes of the host; invalid UTF-8 must not lose the row. */
	if (!detail)
		detail = json_string("(not printable)");
	if (json_object_set_new(o, "detail", detail) < 0 ||
	    json_object_set_new(o, "fix", json_string(r->status == PROBE_OK ? "" : r->fix)) < 0)
		d->no_memory = true;
	if (!o || json_array_append_new(d->rows, o) < 0)
		d->no_memory = true;
	if (r->status == PROBE_MISSING && r->required)
		d->ok = false;
}

static void add_protection(struct document *d, enum protection p, struct row *r)
{
	const struct doctor_facts *f = d->facts;
	bool missing = f->missing & PROT_BIT(p);

	r->name = protection_info[p].name;
	r->protection = p;
	r->required = !(f->may_degrade & PROT_BIT(p));
	/* A protection that is missing but not promised either is information only. */
	r->status = missing ? PROBE_MISSING : p == PROT_disk_io && *r->detail ? PROBE_INFO : PROBE_OK;
	if (missing && (!*r->detail || str_eq(r->detail, "works")))
		r->detail = protection_info[p].lost;
	if (!*r->detail)
		r->detail = "works";
	add_row(d, r);
}

static const enum probe_id userns_switches[] = { PROBE_userns_apparmor, PROBE_userns_sysctl, PROBE_userns_max };

static bool is_userns_switch(enum probe_id id)
{
	for (size_t i = 0; i < ARRAY_LEN(userns_switches); i++)
		if (userns_switches[i] == id)
			return true;
	return false;
}

/* What prevents user namespaces here, if that can be determined: fixing it fixes everything built on them. */
static const char *userns_fix(const struct doctor_facts *f)
{
	if (f->host.row[PROBE_user_ns].status != PROBE_MISSING)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(userns_switches); i++)
		if (f->host.row[userns_switches[i]].status == PROBE_MISSING)
			return probe_info[userns_switches[i]].fix;
	if (strstr(f->host.row[PROBE_container].detail, "looks like"))
		return "start the container with: docker run --security-opt seccomp=unconfined --security-opt "
		       "apparmor=unconfined --security-opt systempaths=unconfined";
	return NULL;
}

static void add_probes(struct document *d)
{
	const char *cause = userns_fix(d->facts);

	for (enum probe_id id = 0; id < PROBE_COUNT; id++) {
		const struct probe *p = &d->facts->host.row[id];
		bool on_userns = str_eq(probe_info[id].area, "namespaces") || str_eq(probe_info[id].area, "mounts");
		struct row r = {
			.area = probe_info[id].area,
			.name = probe_info[id].name,
			.status = p->status,
			.detail = p->detail,
			.fix = cause && on_userns ? cause : probe_info[id].fix,
			.protection = PROT_COUNT,
		};

		if (protection_of(id) < PROT_COUNT) {
			add_protection(d, protection_of(id), &r);
			continue;
		}
		if (is_userns_switch(id)) {
			r.required = !(d->facts->may_degrade & PROT_BIT(PROT_user_ns));
			/* A profile may permit brig all the same: the probe decides, not the sysctl. */
			if (r.status == PROBE_MISSING && d->facts->host.row[PROBE_user_ns].status == PROBE_OK)
				r.status = PROBE_INFO;
		}
		add_row(d, &r);
	}
}

static void add_cgroups(struct document *d)
{
	const struct doctor_facts *f = d->facts;
	const char *delegate = str_eq(f->cgroup_version, "v2") ? DELEGATE_FIX : V1_DELEGATE_FIX;
	char detail[64];

	(void)snprintf(detail, sizeof(detail), "cgroup %s", f->cgroup_version);
	add_row(d, &(struct row){ "limits", "cgroup", PROBE_INFO, detail, "", PROT_COUNT, false });
	for (size_t i = 0; i < ARRAY_LEN(cgroup_rows); i++)
		add_protection(d, cgroup_rows[i].protection,
			       &(struct row){
				       .area = "limits",
				       .detail = f->cgroup_why[cgroup_rows[i].resource],
				       .fix = f->root ? cgroup_rows[i].fix : delegate,
			       });
}

/* Protections covered by neither a probe nor a cgroup: only the backend knows about them. */
static void add_others(struct document *d)
{
	protection_set shown = 0;

	for (enum probe_id id = 0; id < PROBE_COUNT; id++)
		if (protection_of(id) < PROT_COUNT)
			shown |= PROT_BIT(protection_of(id));
	for (size_t i = 0; i < ARRAY_LEN(cgroup_rows); i++)
		shown |= PROT_BIT(cgroup_rows[i].protection);
	for (enum protection p = 0; p < PROT_COUNT; p++)
		if (!(shown & PROT_BIT(p)))
			add_protection(d, p,
				       &(struct row){ .area = "cell", .detail = "", .fix = protection_info[p].fix });
}

static void add_backend(struct document *d)
{
	const struct doctor_facts *f = d->facts;
	bool broken = f->backend_error.code != 0;

	add_row(d, &(struct row){
			   .area = "cell",
			   .name = "backend",
			   .status = broken ? PROBE_MISSING : PROBE_OK,
			   .detail = broken ? f->backend_error.msg : f->backend,
			   .fix = "set backend: native (or auto) and enable_sandbox: true in the policy file; "
				  "`brig policy show` says which layer set them",
			   .protection = PROT_COUNT,
			   .required = true,
		   });
}

static void add_backends(struct document *d)
{
	const struct doctor_facts *f = d->facts;

	for (size_t i = 0; i < f->n_extra; i++)
		add_row(d, &(struct row){ .area = f->extra[i].area,
					  .name = f->extra[i].name,
					  .status = f->extra[i].status,
					  .detail = f->extra[i].detail,
					  .fix = f->extra[i].fix ? f->extra[i].fix : "",
					  .protection = PROT_COUNT });
}

/* A language works if each of its steps finds its tool; the first one that does not is named. */
static void add_language(struct document *d, const struct language *lang)
{
	const struct lang_step *steps[] = { lang->compiles ? &lang->compile : NULL, &lang->run };
	struct brig_error why = BRIG_ERROR_INIT;
	char detail[2 * PATH_MAX] = "", path[PATH_MAX];
	struct row r = { "languages", lang->name, PROBE_OK, detail, "", PROT_COUNT, false };
	bool bind;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		size_t n = strlen(detail);

		if (!steps[i] || !steps[i]->tool[0])
			continue;
		if (lang_find_tool(lang, steps[i], path, sizeof(path), &bind, &why) < 0) {
			r.status = PROBE_MISSING;
			r.fix = steps[i]->install;
			r.detail = why.msg;
			break;
		}
		(void)snprintf(detail + n, sizeof(detail) - n, "%s%s", n ? ", " : "", path);
	}
	add_row(d, &r);
}

int doctor_render(const struct doctor_facts *facts, char **ret, struct brig_error *err)
{
	struct document d = { .facts = facts, .rows = json_array(), .ok = true };
	json_t *doc;
	char *text = NULL;

	add_backend(&d);
	add_others(&d);
	add_probes(&d);
	add_cgroups(&d);
	add_backends(&d);
	for (size_t i = 0; i < language_count; i++)
		add_language(&d, &languages[i]);
	doc = json_pack("{s:b, s:o}", "ok", d.ok, "rows", d.rows);
	if (doc && !d.no_memory)
		text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

/* Facilities that brig uses on this host, although they enforce nothing, are shown as well. */
static void gather_changes(const struct settings *set, const char *state, struct doctor_facts *f)
{
	struct doctor_row *r = &f->extra[f->n_extra < DOCTOR_ROWS_MAX ? f->n_extra++ : DOCTOR_ROWS_MAX - 1];
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	uint64_t count = 0, bytes = 0;
	char used[32], most[32];
	int rc = statedir_open(state, false, &dir, &why);

	*r = (struct doctor_row){ .area = "state", .status = PROBE_INFO };
	(void)str_copy(r->name, sizeof(r->name), "changes");
	if (rc == 0)
		rc = changeset_usage(&dir, &count, &bytes, &why);
	if (rc < 0 && why.sys != ENOENT) {
		(void)snprintf(r->detail, sizeof(r->detail), "not known: %.600s", why.msg);
		return;
	}
	(void)snprintf(r->detail, sizeof(r->detail),
		       "%llu changesets that wait to be applied take %s of %s (changes_size)",
		       (unsigned long long)count, str_bytes(used, sizeof(used), bytes),
		       str_bytes(most, sizeof(most), set->changes_size));
}

int doctor_json(const struct policy *policy, const char *state, char **ret, struct brig_error *err)
{
	AUTO_FREE struct doctor_facts *facts = calloc(1, sizeof(*facts));
	int rc;

	if (!facts)
		return err_nomem(err);
	rc = doctor_gather(policy, facts, err);
	if (rc < 0)
		return rc;
	gather_changes(policy_base(policy), state, facts);
	return doctor_render(facts, ret, err);
}
