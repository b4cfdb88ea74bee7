/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend is selected by asking: each candidate is opened, which reports the protections that this host cannot
 * provide, and the policy decides whether they may be missing. Three things can excuse a missing protection:
 *
 *	allow_degraded names it               for any backend
 *	the backend never provides it         if the backend was named: naming it accepts its nature
 *	the same, and auto selected it        as well, except essential protections for untrusted code
 *
 * All three are listed in degraded[] of the result; nothing is excused silently. A protection that a backend provides
 * elsewhere but not on this host leads to refusal like any other (INV-4). `direct` is a candidate of auto only with
 * fallback: direct.
 *
 * A backend host that serves more than one request stays open as long as the handle: probing costs more than a small
 * program, and on cgroup v2 it requires that brig is alone in its cgroup, which is only so before its first cell.
 *
 * Native comes first in the order, so where it works, the others are not even opened. Configuring an image
 * (docker_image) asks for its programs, which only a container has: then docker comes first, and if another backend is
 * selected, the selection says that the image is not used.
 */
#include "executor/select.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define CANDIDATES 3
static const enum backend_kind auto_order[CANDIDATES] = { BACKEND_NATIVE, BACKEND_DOCKER, BACKEND_DIRECT };
static const enum backend_kind image_order[CANDIDATES] = { BACKEND_DOCKER, BACKEND_NATIVE, BACKEND_DIRECT };

static const enum backend_kind *order_of(const struct settings *set)
{
	return set->docker_image[0] ? image_order : auto_order;
}

enum backend_kind select_kind(const struct settings *set)
{
	return set->enable_sandbox ? (enum backend_kind)set->backend : BACKEND_DIRECT;
}

static bool auto_may_take(const struct settings *set, enum backend_kind kind)
{
	return kind != BACKEND_DIRECT || set->fallback == FALLBACK_DIRECT;
}

static protection_set essential(void)
{
	protection_set set = 0;

	for (enum protection p = 0; p < PROT_COUNT; p++)
		if (protection_info[p].essential)
			set |= PROT_BIT(p);
	return set;
}

protection_set select_excused(const struct backend_ops *ops, protection_set missing, bool by_name, enum trust trust)
{
	protection_set excused = missing & ops->never;

	return by_name || trust != TRUST_UNTRUSTED ? excused : excused & ~essential();
}

/* Adds their names, separated by commas. */
static void list_names(protection_set set, const char *between, struct buf *out)
{
	for (enum protection p = 0; p < PROT_COUNT; p++)
		if (set & PROT_BIT(p))
			buf_addf(out, "%s%s", out->len ? between : "", protection_info[p].name);
}

/*
 * Reports everything that is missing at once; the suggested setting names those that may be missing, including those
 * already given up. Of several, the first and most important is explained.
 */
static int refuse(const struct backend_ops *ops, protection_set refused, protection_set given_up,
		  struct brig_error *err)
{
	AUTO_BUF names = BUF_INIT(1024), paste = BUF_INIT(1024);
	const char *where = str_eq(ops->name, "native") ? "this host" : ops->name;
	bool many = (refused & (refused - 1)) != 0;
	enum protection p = 0;

	while (!(refused & PROT_BIT(p)))
		p++;
	list_names(refused, ", ", &names);
	list_names((refused | given_up) & ~essential(), ",", &paste);
	if (refused & essential())
		return err_set(err, BRIG_E_REFUSED, 0, "%s cannot keep %s: %s. To have it: %s", where, buf_str(&names),
			       protection_info[p].lost, protection_info[p].fix);
	return err_set(err, BRIG_E_REFUSED, 0,
		       "%s cannot keep %s: %s%s. To have %s: %s. To run without: --allow-degraded %s", where,
		       buf_str(&names), protection_info[p].lost, many ? ", and more" : "", many ? "them" : "it",
		       many ? "'brig doctor' tells how" : protection_info[p].fix, buf_str(&paste));
}

/* ---- hosts ------------------------------------------------------------------------------------ */

struct kept_host {
	struct kept_host *next;
	const struct backend_ops *ops;
	struct backend_host *host;
	protection_set missing;
	struct settings set; /* it was opened with these */
	pid_t opened_by;     /* after a fork the child opens its own, because children are not shared */
};

static struct kept_host *find_kept(const struct kept_hosts *hosts, const struct backend_ops *ops,
				   const struct settings *set)
{
	struct kept_host *k = hosts->first;

	while (k && (k->ops != ops || k->opened_by != getpid() || !ops->same_host(&k->set, set)))
		k = k->next;
	return k;
}

/* A host that cannot be kept for lack of memory belongs to the selection. */
static void keep(struct kept_hosts *hosts, const struct settings *set, struct selection *s)
{
	struct kept_host *k = malloc(sizeof(*k));

	if (!k)
		return;
	*k = (struct kept_host){ .next = hosts->first,
				 .ops = s->ops,
				 .host = s->host,
				 .missing = s->missing,
				 .set = *set,
				 .opened_by = getpid() };
	hosts->first = k;
	s->kept = true;
}

void kept_hosts_release(struct kept_hosts *hosts)
{
	struct kept_host *k;

	while ((k = hosts->first)) {
		hosts->first = k->next;
		if (k->opened_by == getpid())
			k->ops->close(k->host);
		free(k);
	}
}

/* Fills ops, host, missing and kept. */
static int open_host(const struct select_ask *ask, const struct backend_ops *ops, struct selection *s,
		     struct brig_error *err)
{
	struct kept_hosts *hosts = ops->same_host ? ask->hosts : NULL;
	const struct kept_host *k = hosts ? find_kept(hosts, ops, ask->set) : NULL;
	int rc;

	s->missing = k ? k->missing : 0;
	s->kept = k;
	s->host = k ? k->host : NULL;
	rc = k ? 0 : ops->open(ask->set, &s->host, &s->missing, err);
	if (rc < 0)
		return rc;
	s->ops = ops;
	if (hosts && !k)
		keep(hosts, ask->set, s);
	return 0;
}

/* ---- choosing --------------------------------------------------------------------------------- */

/* Opens one backend; fills the selection if it can enforce the policy, and leaves it empty otherwise. */
static int try_backend(const struct select_ask *ask, enum backend_kind kind, bool by_name, struct selection *s,
		       struct brig_error *err)
{
	const struct backend_ops *ops = (ask->find ? ask->find : backend_find)(kind, err);
	protection_set refused, missing;
	int rc;

	if (!ops)
		return -err->code;
	rc = open_host(ask, ops, s, err);
	if (rc < 0)
		return rc;
	s->excused = select_excused(ops, s->missing, by_name, ask->trust);
	refused = s->missing & ~ask->may_degrade & ~s->excused;
	if (!refused)
		return 0;
	missing = s->missing;
	selection_release(s);
	return refuse(ops, refused, missing & ask->may_degrade, err);
}

/*
 * The first reason in full, further ones after it: fixing the first backend helps most. Of a reason that does not fit,
 * only the part before its details, or nothing.
 */
static void add_reason(struct brig_error *all, enum backend_kind kind, const struct brig_error *why)
{
	size_t len, room;
	int n;

	if (all->code == 0) {
		*all = *why;
		return;
	}
	len = strlen(all->msg);
	room = sizeof(all->msg) - len;
	n = snprintf(all->msg + len, room, "; and %s: %s", backend_kind_name[kind], why->msg);
	if (n >= 0 && (size_t)n >= room)
		n = snprintf(all->msg + len, room, "; and %s: %.*s", backend_kind_name[kind],
			     (int)strcspn(why->msg, ":;"), why->msg);
	if (n < 0 || (size_t)n >= room)
		all->msg[len] = '\0';
}

/* Tries the backends from *at on until one can enforce the policy. */
static int try_from(const struct select_ask *ask, size_t at, struct brig_error *reasons, struct selection *s,
		    struct brig_error *err)
{
	const enum backend_kind *order = order_of(ask->set);

	for (; at < CANDIDATES; at++) {
		struct brig_error why = BRIG_ERROR_INIT;

		if (!auto_may_take(ask->set, order[at]))
			continue;
		if (try_backend(ask, order[at], /* by_name= */ false, s, &why) == 0) {
			s->at = at;
			(void)str_copy(s->why, sizeof(s->why), reasons->code ? reasons->msg : "");
			return 0;
		}
		add_reason(reasons, order[at], &why);
	}
	*err = *reasons;
	return -err->code;
}

int select_backend(const struct select_ask *ask, struct selection *ret, struct brig_error *err)
{
	enum backend_kind kind = select_kind(ask->set);
	struct brig_error reasons = BRIG_ERROR_INIT;

	*ret = (struct selection){ .ops = NULL };
	if (kind != BACKEND_AUTO)
		return try_backend(ask, kind, /* by_name= */ true, ret, err);
	return try_from(ask, 0, &reasons, ret, err);
}

int select_next(const struct select_ask *ask, struct selection *s, struct brig_error *err)
{
	struct brig_error reasons = *err;
	size_t at = s->at + 1;

	if (select_kind(ask->set) != BACKEND_AUTO)
		return -err->code;
	selection_release(s);
	return try_from(ask, at, &reasons, s, err);
}

void selection_release(struct selection *s)
{
	if (s->ops && !s->kept)
		s->ops->close(s->host);
	s->ops = NULL;
	s->host = NULL;
}
