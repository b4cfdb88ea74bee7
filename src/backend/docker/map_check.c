/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the engine's account of a container, field by field, with the request.  One table for both times: before the
 * program starts a difference refuses the run, after the end it marks the run as violated.
 *
 * An engine may omit empty fields, and writes some values in its own way; each row says how it is compared.
 */
#include <stdio.h>
#include <string.h>

#include "backend/docker/answer.h"
#include "backend/docker/cell.h"
#include "base/str.h"

enum how {
	SAME,     /* equal; if we asked for something empty, it may also be missing */
	IMAGE,    /* the same id, with or without "sha256:" */
	ALL_CAPS, /* "ALL" was dropped, or (Podman) capabilities by name */
	TMPFS,    /* tmpfs at the same places, with the same options and no others */
	ULIMITS,  /* each that we asked for, as requested */
	SECURITY, /* no_new_privs, and exactly our profile */
	LABELS,   /* ours are present */
	NONE,     /* must be empty */
	NOT_HOST, /* neither "host" nor another container's */
	IS_FALSE, /* must be false or missing */
	NETWORKS, /* no network but "none" */
};

#define RUNNING 1 /* only while it runs */
#define ENDED   2 /* only after the end */
#define DOCKER  4 /* not for Podman, whose account omits it or writes it differently */

static const struct row {
	const char *asked; /* path in the body of the create call; NULL: not requested */
	const char *found; /* path in the engine's description */
	enum how how;
	unsigned when; /* 0: always */
} rows[] = {
	{ "Image", "Image", IMAGE, 0 },
	{ "Entrypoint", "Config.Entrypoint", SAME, 0 },
	{ "Cmd", "Config.Cmd", SAME, 0 },
	{ "User", "Config.User", SAME, 0 },
	{ "Tty", "Config.Tty", SAME, 0 },
	{ "OpenStdin", "Config.OpenStdin", SAME, 0 },
	{ "StdinOnce", "Config.StdinOnce", SAME, DOCKER },
	{ "Labels", "Config.Labels", LABELS, 0 },
	{ NULL, "Config.Volumes", NONE, 0 },
	{ "HostConfig.Memory", "HostConfig.Memory", SAME, 0 },
	{ "HostConfig.MemorySwap", "HostConfig.MemorySwap", SAME, 0 },
	{ "HostConfig.PidsLimit", "HostConfig.PidsLimit", SAME, 0 },
	{ "HostConfig.CpuPeriod", "HostConfig.CpuPeriod", SAME, 0 },
	{ "HostConfig.CpuQuota", "HostConfig.CpuQuota", SAME, 0 },
	{ "HostConfig.BlkioDeviceReadBps", "HostConfig.BlkioDeviceReadBps", SAME, 0 },
	{ "HostConfig.BlkioDeviceWriteBps", "HostConfig.BlkioDeviceWriteBps", SAME, 0 },
	{ "HostConfig.OomKillDisable", "HostConfig.OomKillDisable", IS_FALSE, 0 },
	{ "HostConfig.Ulimits", "HostConfig.Ulimits", ULIMITS, 0 },
	{ "HostConfig.NetworkMode", "HostConfig.NetworkMode", SAME, 0 },
	{ "HostConfig.CapDrop", "HostConfig.CapDrop", ALL_CAPS, 0 },
	{ "HostConfig.CapAdd", "HostConfig.CapAdd", NONE, 0 },
	{ "HostConfig.Privileged", "HostConfig.Privileged", IS_FALSE, 0 },
	{ "HostConfig.ReadonlyRootfs", "HostConfig.ReadonlyRootfs", SAME, 0 },
	{ "HostConfig.SecurityOpt", "HostConfig.SecurityOpt", SECURITY, 0 },
	{ "HostConfig.MaskedPaths", "HostConfig.MaskedPaths", SAME, DOCKER },
	{ "HostConfig.ReadonlyPaths", "HostConfig.ReadonlyPaths", SAME, DOCKER },
	{ "HostConfig.IpcMode", "HostConfig.IpcMode", NOT_HOST, 0 },
	{ "HostConfig.PidMode", "HostConfig.PidMode", NOT_HOST, 0 },
	{ "HostConfig.UTSMode", "HostConfig.UTSMode", NOT_HOST, 0 },
	{ "HostConfig.UsernsMode", "HostConfig.UsernsMode", NOT_HOST, 0 },
	{ "HostConfig.CgroupnsMode", "HostConfig.CgroupnsMode", NOT_HOST, 0 },
	{ "HostConfig.Tmpfs", "HostConfig.Tmpfs", TMPFS, 0 },
	{ "HostConfig.Runtime", "HostConfig.Runtime", SAME, 0 },
	{ "HostConfig.RestartPolicy.Name", "HostConfig.RestartPolicy.Name", SAME, 0 },
	{ "HostConfig.AutoRemove", "HostConfig.AutoRemove", IS_FALSE, 0 },
	{ NULL, "HostConfig.Binds", NONE, 0 },
	{ NULL, "HostConfig.Mounts", NONE, 0 },
	{ NULL, "HostConfig.Devices", NONE, 0 },
	{ NULL, "HostConfig.DeviceRequests", NONE, 0 },
	{ NULL, "HostConfig.DeviceCgroupRules", NONE, 0 },
	{ NULL, "HostConfig.VolumesFrom", NONE, 0 },
	{ NULL, "HostConfig.PortBindings", NONE, 0 },
	{ NULL, "HostConfig.Links", NONE, 0 },
	{ NULL, "HostConfig.Sysctls", NONE, 0 },
	{ NULL, "HostConfig.GroupAdd", NONE, 0 },
	{ NULL, "HostConfig.ExtraHosts", NONE, 0 },
	{ NULL, "HostConfig.PublishAllPorts", IS_FALSE, 0 },
	{ NULL, "Mounts", NONE, 0 },
	{ NULL, "NetworkSettings.Ports", NONE, 0 },
	{ NULL, "NetworkSettings.IPAddress", NONE, 0 },
	{ NULL, "NetworkSettings.GlobalIPv6Address", NONE, 0 },
	{ NULL, "NetworkSettings.Gateway", NONE, 0 },
	{ NULL, "NetworkSettings.Networks", NETWORKS, 0 },
	{ NULL, "State.Running", IS_FALSE, ENDED },
	{ NULL, "State.Error", NONE, 0 },
};

static bool is_empty(const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) || (json_is_string(v) && !*json_string_value(v)) ||
	       (json_is_integer(v) && json_integer_value(v) == 0) || (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

static bool same_image(const json_t *asked, const json_t *found)
{
	static const char prefix[] = "sha256:";
	const char *ours = json_string_value(asked), *theirs = json_string_value(found);

	if (!ours || !theirs || strncmp(ours, prefix, sizeof(prefix) - 1) != 0)
		return false;
	return str_eq(ours, theirs) || str_eq(ours + sizeof(prefix) - 1, theirs);
}

/*
 * Podman lists the capabilities of its own defaults that it dropped; init verifies with the kernel that none is left.
 */
static bool drops_all(const json_t *found, bool podman)
{
	size_t i;
	json_t *item;
	bool all = false;

	json_array_foreach(found, i, item)
	{
		const char *s = json_is_string(item) ? json_string_value(item) : "";

		all = all || str_eq(s, "ALL") || str_eq(s, "CAP_ALL");
	}
	return all || (podman && json_array_size(found) > 0);
}

/* Whether list contains all options in words. */
static bool has_options(const char *list, const char *words)
{
	char word[128];

	while (*words) {
		size_t n = strcspn(words, ",");
		const char *at = list;
		bool found = false;

		if (n >= sizeof(word))
			return false;
		memcpy(word, words, n);
		word[n] = '\0';
		while (*at && !found) {
			size_t m = strcspn(at, ",");

			found = m == n && strncmp(at, word, n) == 0;
			at += m;
			at += *at == ',';
		}
		if (!found)
			return false;
		words += n;
		words += *words == ',';
	}
	return true;
}

/* Podman writes the options in another order, and adds some. */
static bool same_tmpfs(json_t *asked, json_t *found, bool podman)
{
	const char *key;
	json_t *value;

	if (json_object_size(asked) != json_object_size(found))
		return false;
	json_object_foreach(asked, key, value)
	{
		const char *theirs = json_string_value(json_object_get(found, key));

		if (!theirs || !(podman ? has_options(theirs, json_string_value(value))
					: str_eq(theirs, json_string_value(value))))
			return false;
	}
	return true;
}

/* Engines write "core", Podman "RLIMIT_CORE". */
static bool names_ulimit(const char *theirs, const char *ours)
{
	static const char prefix[] = "RLIMIT_";

	if (strncmp(theirs, prefix, sizeof(prefix) - 1) == 0)
		theirs += sizeof(prefix) - 1;
	return strcasecmp(theirs, ours) == 0;
}

static bool same_ulimits(const json_t *asked, const json_t *found)
{
	size_t i, j;
	json_t *want, *have;

	json_array_foreach(asked, i, want)
	{
		bool good = false;

		json_array_foreach(found, j, have) if (names_ulimit(answer_text_or(have, "Name", ""),
								    answer_text_or(want, "Name", "?"))) good =
			json_equal(json_object_get(want, "Hard"), json_object_get(have, "Hard")) &&
			json_equal(json_object_get(want, "Soft"), json_object_get(have, "Soft"));
		if (!good)
			return false;
	}
	return true;
}

/* Podman may omit the profile from its account: then only init's fact proves it. */
static bool same_security(const json_t *asked, const json_t *found, bool podman)
{
	bool no_new = false, loose = false, profile = podman;
	const char *ours = json_string_value(json_array_get(asked, 1));
	size_t i;
	json_t *item;

	json_array_foreach(found, i, item)
	{
		const char *s = json_is_string(item) ? json_string_value(item) : "";

		no_new = no_new || str_eq(s, "no-new-privileges") || str_eq(s, "no-new-privileges:true") ||
			 str_eq(s, "no-new-privileges=true");
		loose = loose || strstr(s, "unconfined") || strstr(s, "label=disable") || strstr(s, "label:disable");
		profile = profile || (ours && str_eq(s, ours));
		if (strncmp(s, "seccomp=", 8) == 0 && !(ours && str_eq(s, ours)))
			loose = true;
	}
	return no_new && profile && !loose;
}

static bool has_labels(json_t *asked, json_t *found)
{
	const char *key;
	json_t *value;

	json_object_foreach(asked, key, value) if (!json_equal(value, json_object_get(found, key))) return false;
	return true;
}

static bool is_not_host(const json_t *found)
{
	const char *s = json_is_string(found) ? json_string_value(found) : "";

	return !str_eq(s, "host") && strncmp(s, "container:", 10) != 0 && strncmp(s, "ns:", 3) != 0;
}

/* Only the network "none", without an address. */
static bool no_networks(json_t *found)
{
	const char *key;
	json_t *value;

	json_object_foreach(found, key, value) if (!str_eq(key, "none") || !answer_is_empty(value, "IPAddress") ||
						   !answer_is_empty(value, "GlobalIPv6Address") ||
						   !answer_is_empty(value, "Gateway")) return false;
	return true;
}

static bool holds(const struct row *r, json_t *asked, json_t *found, bool podman)
{
	switch (r->how) {
	case SAME:
		return is_empty(asked) ? is_empty(found) || json_equal(asked, found) : json_equal(asked, found);
	case IMAGE:
		return same_image(asked, found);
	case ALL_CAPS:
		return drops_all(found, podman);
	case TMPFS:
		return same_tmpfs(asked, found, podman);
	case ULIMITS:
		return same_ulimits(asked, found);
	case SECURITY:
		return same_security(asked, found, podman);
	case LABELS:
		return has_labels(asked, found);
	case NONE:
	case IS_FALSE:
		return is_empty(found);
	case NOT_HOST:
		return is_not_host(found);
	case NETWORKS:
		return no_networks(found);
	}
	return false;
}

static void describe(const struct row *r, const json_t *found, char *dst, size_t size)
{
	char *value = found ? json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	char clean[100];

	(void)snprintf(dst, size, "%s is %s", r->found, answer_clean(clean, sizeof(clean), value ? value : "missing"));
	free(value);
}

bool map_check(const json_t *asked, const json_t *found, bool podman, bool ended, char *difference, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		json_t *want = r->asked ? answer_at(asked, r->asked) : NULL;
		json_t *have = answer_at(found, r->found);

		if ((r->when == ENDED && !ended) || (r->when == RUNNING && ended) || (r->when == DOCKER && podman))
			continue;
		/* If no runtime was requested, the engine's default may have any name. */
		if (str_eq(r->found, "HostConfig.Runtime") && !want)
			continue;
		if (holds(r, want, have, podman))
			continue;
		describe(r, have, difference, size);
		return false;
	}
	return true;
}
