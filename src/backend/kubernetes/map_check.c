/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the server's account of a pod with what was requested.  A cluster may have admission plugins that add to
 * pods or change them (sidecars, volumes, variables, limits), so both directions are compared: everything requested is
 * there, and nothing is there that could widen the cell.  Before the program starts a difference refuses the run; after
 * the end it marks the run as violated.
 */
#include <stdio.h>
#include <string.h>

#include "backend/container/answer.h"
#include "backend/kubernetes/pod.h"
#include "base/str.h"

/* Fields that must be empty or missing, by their path in the pod, or (container) in its only container. */
static const char *const closed_pod[] = {
	"spec.initContainers",
	"spec.ephemeralContainers",
	"spec.hostNetwork",
	"spec.hostPID",
	"spec.hostIPC",
	"spec.shareProcessNamespace",
	"spec.hostAliases",
	"spec.resourceClaims",
	"spec.securityContext.sysctls",
	"spec.securityContext.supplementalGroups",
	"spec.securityContext.fsGroup",
	"spec.securityContext.seLinuxOptions",
	"spec.securityContext.windowsOptions",
};
static const char *const closed_container[] = {
	"args",
	"env",
	"envFrom",
	"ports",
	"volumeDevices",
	"lifecycle",
	"livenessProbe",
	"readinessProbe",
	"startupProbe",
	"securityContext.capabilities.add",
	"securityContext.privileged",
	"securityContext.seLinuxOptions",
};

/* ---- quantities ------------------------------------------------------------------------------------- */

static bool suffix_factor(const char *suffix, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		uint64_t thousandths;
	} rows[] = {
		{ "m", 1 },
		{ "", 1000 },
		{ "k", 1000 * 1000ULL },
		{ "M", 1000 * 1000000ULL },
		{ "G", 1000 * 1000000000ULL },
		{ "T", 1000 * 1000000000000ULL },
		{ "Ki", 1000 * (1ULL << 10) },
		{ "Mi", 1000 * (1ULL << 20) },
		{ "Gi", 1000 * (1ULL << 30) },
		{ "Ti", 1000 * (1ULL << 40) },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].suffix, suffix)) {
			*ret = rows[i].thousandths;
			return true;
		}
	return false;
}

/* The server normalizes quantities, but never to a fraction if there was none. */
bool map_quantity(const char *text, uint64_t *ret)
{
	uint64_t n = 0, factor;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return false;
	return suffix_factor(text, &factor) && !__builtin_mul_overflow(n, factor, ret);
}

/* ---- comparing --------------------------------------------------------------------------------------- */

struct check {
	char path[160];
	char *difference;
	size_t size;
};

static bool differs(const struct check *k, const json_t *found)
{
	char *said = found ? json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	char words[100];

	(void)snprintf(k->difference, k->size, "%s is %s", k->path,
		       said ? answer_clean(words, sizeof(words), said) : "left out");
	free(said);
	return false;
}

static bool is_empty(const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) || (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0) || (json_is_string(v) && json_string_length(v) == 0);
}

static bool same_text(const char *a, const char *b)
{
	uint64_t x, y;

	return str_eq(a, b) || (map_quantity(a, &x) && map_quantity(b, &y) && x == y);
}

static bool same(struct check *k, const json_t *asked, const json_t *found);

/* All requested keys must be there; others are the server's own, or must be empty according to the tables above. */
static bool same_object(struct check *k, const json_t *asked, const json_t *found)
{
	size_t len = strlen(k->path);
	const char *key;
	json_t *value;

	if (!json_is_object(found))
		return differs(k, found);
	json_object_foreach((json_t *)(uintptr_t)asked, key, value)
	{
		(void)snprintf(k->path + len, sizeof(k->path) - len, "%s%s", len ? "." : "", key);
		if (!same(k, value, json_object_get(found, key)))
			return false;
	}
	k->path[len] = '\0';
	return true;
}

/* Same length and order: an added element is a difference. */
static bool same_array(struct check *k, const json_t *asked, const json_t *found)
{
	size_t len = strlen(k->path);

	if (!json_is_array(found) || json_array_size(found) != json_array_size(asked))
		return differs(k, found);
	for (size_t i = 0; i < json_array_size(asked); i++) {
		(void)snprintf(k->path + len, sizeof(k->path) - len, "[%zu]", i);
		if (!same(k, json_array_get(asked, i), json_array_get(found, i)))
			return false;
	}
	k->path[len] = '\0';
	return true;
}

static bool same(struct check *k, const json_t *asked, const json_t *found)
{
	/* Where false is the default, it may be missing; where true is the default, false must be explicit. */
	bool said = strstr(k->path, "automount") || strstr(k->path, "allowPrivilege") ||
		    strstr(k->path, "enableService") || strstr(k->path, "hostUsers");

	if (is_empty(asked) && is_empty(found) && (found || !said))
		return true;
	if (json_is_object(asked))
		return same_object(k, asked, found);
	if (json_is_array(asked))
		return same_array(k, asked, found);
	if (json_is_string(asked) && json_is_string(found) &&
	    same_text(json_string_value(asked), json_string_value(found)))
		return true;
	return json_equal(asked, found) || differs(k, found);
}

static bool closed(struct check *k, const json_t *v, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_empty(answer_at(v, paths[i]))) {
			(void)str_copy(k->path, sizeof(k->path), paths[i]);
			return differs(k, answer_at(v, paths[i]));
		}
	return true;
}

bool map_check_pod(const json_t *asked, const json_t *found, char *difference, size_t size)
{
	struct check k = { .path = "", .difference = difference, .size = size };
	const json_t *container = json_array_get(answer_at(found, "spec.containers"), 0);

	if (!same(&k, asked, found))
		return false;
	return closed(&k, found, closed_pod, ARRAY_LEN(closed_pod)) &&
	       closed(&k, container, closed_container, ARRAY_LEN(closed_container));
}
