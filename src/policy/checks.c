/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that concern one key only.  A value that no cell could have is an error where it is written,
 * with the reason, instead of a surprise when something runs.
 */
#include "policy/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "net/host.h"
#include "model/environment.h"
#include "model/protection.h"
#include "model/requirement.h"

typedef bool (*check_fn)(union slot *v, char *why);

static bool say(char *why, const char *fmt, ...) PRINTF(2, 3);
static bool say(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, POLICY_WHY_MAX, fmt, ap);
	va_end(ap);
	return false;
}

static bool check_security_opt(union slot *v, char *why)
{
	static const char nnp[] = "no-new-privileges";
	struct setting_list *list = &v->list;
	char shown[POLICY_WORD_MAX];

	for (const char *item = NULL; (item = setting_list_next(list, item));) {
		if (strncmp(item, "seccomp", 7) == 0)
			return say(why,
				   "security_opt does not take '%s': the system call filter has its own key, "
				   "seccomp_profile",
				   printable(item, shown, sizeof(shown)));
		if (!str_eq(item, nnp) && !str_eq(item, "no-new-privileges:true") &&
		    !str_eq(item, "no-new-privileges=true"))
			return say(why, "security_opt item '%s' is not known; the one item is no-new-privileges",
				   printable(item, shown, sizeof(shown)));
	}
	if (list->n == 0)
		return say(why, "security_opt must hold no-new-privileges: a cell cannot be had without it");
	setting_list_clear(list);
	return setting_list_add(list, nnp);
}

static bool check_cap_drop(union slot *v, char *why)
{
	struct setting_list *list = &v->list;

	if (list->n != 1 || strcasecmp(list->text, "ALL") != 0)
		return say(why, "cap_drop must be [\"ALL\"]: a cell never holds a capability");
	setting_list_clear(list);
	return setting_list_add(list, "ALL");
}

static bool check_read_only(union slot *v, char *why)
{
	return v->on || say(why, "read_only must be true: the root tree of a cell is never writable; programs write to "
				 "the workspace and /tmp");
}

static bool id_is_good(const char *text)
{
	uint64_t id;

	return str_to_u64(text, &id) && id >= 1 && id <= 4294967294;
}

/* As tools that make accounts have them; what a name stands for only an image knows. */
static bool name_is_good(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";

	return *text && strchr(letters, *text) && text[strspn(text, more)] == '\0' && strlen(text) <= 32 &&
	       !str_eq(text, "root");
}

static bool check_user(union slot *v, char *why)
{
	char part[SETTING_TEXT_MAX], shown[POLICY_WORD_MAX];
	char *colon;

	(void)str_copy(part, sizeof(part), v->text);
	colon = strchr(part, ':');
	if (colon)
		*colon++ = '\0';
	if (colon ? (id_is_good(part) || name_is_good(part)) && (id_is_good(colon) || name_is_good(colon))
		  : name_is_good(part))
		return true;
	return say(why,
		   "user takes uid:gid as numbers from 1 to 4294967294, as in \"1000:1000\", or a name that the image "
		   "of a "
		   "docker cell has, as in node or node:node, and never 0 or root; '%s' is not that",
		   printable(v->text, shown, sizeof(shown)));
}

static bool check_whitelist(union slot *v, char *why)
{
	char shown[POLICY_WORD_MAX];
	struct host_rule rule;

	for (const char *item = NULL; (item = setting_list_next(&v->list, item));) {
		const char *wrong = host_rule_parse(item, &rule);

		if (wrong)
			return say(why, "whitelist entry '%s' is not a host: %s", printable(item, shown, sizeof(shown)),
				   wrong);
	}
	return true;
}

static bool check_allow_degraded(union slot *v, char *why)
{
	const char *names[PROT_COUNT];
	char shown[POLICY_WORD_MAX], hint[96];

	for (enum protection p = 0; p < PROT_COUNT; p++)
		names[p] = protection_info[p].name;
	for (const char *item = NULL; (item = setting_list_next(&v->list, item));) {
		enum protection p = protection_from_name(item);

		if (p == PROT_COUNT)
			return say(why, "allow_degraded item '%s' is not a protection%s",
				   printable(item, shown, sizeof(shown)),
				   suggest(item, names, PROT_COUNT, hint, sizeof(hint)));
		if (protection_info[p].essential)
			return say(why, "allow_degraded cannot name %s: without it there is no cell (%s)", item,
				   protection_info[p].lost);
	}
	return true;
}

/* Engines take the image as an argument: nothing that could be read as an option or hold a blank. */
static bool check_image(const union slot *v, const char *key, char *why)
{
	const char *image = v->text;
	char shown[POLICY_WORD_MAX];
	size_t good = strspn(image, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@");

	if (image[0] == '\0' || (image[good] == '\0' && isalnum((unsigned char)image[0])))
		return true;
	return say(why, "%s takes an image reference such as python:3.12-slim; '%s' is not one", key,
		   printable(image, shown, sizeof(shown)));
}

static bool check_docker_image(union slot *v, char *why)
{
	return check_image(v, "docker_image", why);
}

static bool check_kubernetes_image(union slot *v, char *why)
{
	return check_image(v, "kubernetes_image", why);
}

static bool check_requirements(union slot *v, char *why)
{
	char shown[POLICY_WORD_MAX];
	struct requirement r;

	for (const char *item = NULL; (item = setting_list_next(&v->list, item));) {
		const char *wrong = requirement_parse(item, &r);

		if (wrong)
			return say(
				why,
				"docker_requirements takes packages such as numpy or pandas==2.1; '%s' is not one: %s",
				printable(item, shown, sizeof(shown)), wrong);
	}
	return true;
}

/* The opened directory is judged again when a cell is made: links are none of this check's business. */
static bool check_rootfs(union slot *v, char *why)
{
	static const char *const never[] = { "/proc", "/sys", "/dev", "/run" };
	const char *path = v->text;
	char shown[POLICY_WORD_MAX];

	if (!*path)
		return true;
	(void)printable(path, shown, sizeof(shown));
	if (*path != '/' || strstr(path, "/../") || (strlen(path) >= 3 && str_eq(path + strlen(path) - 3, "/..")))
		return say(why, "rootfs takes an absolute path without '..'; '%s' is not one", shown);
	if (path[strspn(path, "/.")] == '\0')
		return say(why, "rootfs must not be the host's own root: leave it empty to use the host's /usr");
	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		size_t len = strlen(never[i]);

		if (strncmp(path, never[i], len) == 0 && (path[len] == '\0' || path[len] == '/'))
			return say(why, "rootfs must not lie in %s", never[i]);
	}
	return true;
}

/* Relative, it would depend on where somebody happens to stand. */
static bool check_rules_file(union slot *v, char *why)
{
	char shown[POLICY_WORD_MAX];

	return !v->text[0] || v->text[0] == '/' ||
	       say(why, "rules_file takes an absolute path; '%s' is not one", printable(v->text, shown, sizeof(shown)));
}

/* Without repetitions, and with what auto stands for in its place. */
static bool check_backends(union slot *v, char *why)
{
	bool listed[BACKEND_KIND_COUNT] = { false };
	char shown[POLICY_WORD_MAX], hint[96];
	struct setting_list all = { 0 };

	for (const char *item = NULL; (item = setting_list_next(&v->list, item));) {
		size_t kind = name_index(backend_kind_name, BACKEND_KIND_COUNT, item);

		if (kind == BACKEND_KIND_COUNT)
			return say(why,
				   "backend takes auto, native, docker, kubernetes and direct; '%s' is none of them%s",
				   printable(item, shown, sizeof(shown)),
				   suggest(item, backend_kind_name, BACKEND_KIND_COUNT, hint, sizeof(hint)));
		for (size_t k = BACKEND_NATIVE; k < BACKEND_KIND_COUNT; k++) {
			bool meant =
				k == kind || (kind == BACKEND_AUTO && (k == BACKEND_NATIVE || k == BACKEND_DOCKER));

			if (meant && !listed[k])
				(void)setting_list_add(&all, backend_kind_name[k]);
			listed[k] |= meant;
		}
	}
	if (all.n == 0)
		return say(why, "backend takes at least one of auto, native, docker, kubernetes and direct");
	setting_list_copy(&v->list, &all);
	return true;
}

/* Whether there is such a rule is found when the rules are loaded. */
static bool check_rules(union slot *v, char *why)
{
	char shown[POLICY_WORD_MAX], hint[96];

	for (const char *item = NULL; (item = setting_list_next(&v->list, item));) {
		size_t id = strspn(item, "abcdefghijklmnopqrstuvwxyz0123456789-");

		(void)printable(item, shown, sizeof(shown));
		if (id == 0 || item[id] != '=')
			return say(why,
				   "rules takes the id of a rule and what it does, such as py-network=allow; '%s' is "
				   "not that",
				   shown);
		if (name_index(rule_action_name, ACTION_COUNT, item + id + 1) == ACTION_COUNT)
			return say(why, "rules: a rule does allow, note, warn or block; '%s' is none of them%s", shown,
				   suggest(item + id + 1, rule_action_name, ACTION_COUNT, hint, sizeof(hint)));
	}
	return true;
}

#define ENVIRONMENT_NAMES "lower-case letters, digits and ._- behind a letter or digit, at most 64"

/* Whether there is one is found when a program is to use it. */
static bool check_environment(union slot *v, char *why)
{
	char shown[POLICY_WORD_MAX];

	return !v->text[0] || environment_is_name(v->text) ||
	       say(why, "environment takes a name (" ENVIRONMENT_NAMES "); '%s' is none",
		   printable(v->text, shown, sizeof(shown)));
}

static bool check_environments(union slot *v, char *why)
{
	char shown[POLICY_WORD_MAX];

	for (const char *item = NULL; (item = setting_list_next(&v->list, item));)
		if (!str_eq(item, ENVIRONMENT_ANY) && !environment_is_name(item))
			return say(why, "environments takes names (" ENVIRONMENT_NAMES ") or \"*\"; '%s' is neither",
				   printable(item, shown, sizeof(shown)));
	return true;
}

static bool check_warm(union slot *v, char *why)
{
	char shown[POLICY_WORD_MAX];

	for (const char *item = NULL; (item = setting_list_next(&v->list, item));)
		if (!warm_is_module(item))
			return say(why, "warm takes names of modules such as json or numpy; '%s' is none",
				   printable(item, shown, sizeof(shown)));
	return true;
}

static const check_fn checks[SETTING_COUNT] = {
	[SET_environment] = check_environment,
	[SET_environments] = check_environments,
	[SET_warm] = check_warm,
	[SET_backends] = check_backends,
	[SET_rules_file] = check_rules_file,
	[SET_security_opt] = check_security_opt,
	[SET_cap_drop] = check_cap_drop,
	[SET_read_only] = check_read_only,
	[SET_user] = check_user,
	[SET_whitelist] = check_whitelist,
	[SET_allow_degraded] = check_allow_degraded,
	[SET_rules] = check_rules,
	[SET_docker_image] = check_docker_image,
	[SET_kubernetes_image] = check_kubernetes_image,
	[SET_docker_requirements] = check_requirements,
	[SET_rootfs] = check_rootfs,
};

bool value_check(enum setting_key k, union slot *v, char why[POLICY_WHY_MAX])
{
	return !checks[k] || checks[k](v, why);
}
