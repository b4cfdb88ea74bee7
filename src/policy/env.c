/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment: BRIG_<KEY> for every key and alias, and three names that existing sandbox set-ups use.  An unknown
 * BRIG_ variable is an error: a typo must not silently leave a limit open.
 */
#include "policy/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* A full name and the spelling of the setting it stands for. */
static const struct {
	const char *name, *key;
} other_names[] = {
	{ "SECURITY_ENABLE_SANDBOX", "enable_sandbox" },
	{ "SECURITY_DOCKER_IMAGE", "docker_image" },
	{ "SECURITY_MAX_EXECUTION_TIME", "timeout" },
};

/* Variables that belong to other parts of brig; one that ends in "_" stands for all that begin so. */
static const char *const reserved[] = {
	"BRIG_POLICY", "BRIG_STATE", "BRIG_HOST",  "BRIG_TOKEN",  "BRIG_LIBEXEC",
	"BRIG_BIN",    "BRIG_TRACE", "BRIG_TEST_", "BRIG_BENCH_",
};

bool env_is_reserved(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		size_t len = strlen(reserved[i]);

		if (str_eq(name, reserved[i]) || (reserved[i][len - 1] == '_' && strncmp(name, reserved[i], len) == 0))
			return true;
	}
	return false;
}

/* The key that a variable names, in lower case; false: it is none of ours. */
static bool key_of(const char *name, char *key, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(other_names); i++)
		if (str_eq(other_names[i].name, name))
			return str_copy(key, size, other_names[i].key);
	if (strncmp(name, "BRIG_", 5) != 0 || env_is_reserved(name))
		return false;
	(void)str_copy(key, size, name + 5);
	for (char *p = key; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return true;
}

static void complain_unknown(const char *key, const struct place *at, struct policy_diags *diags)
{
	const char *names[SPELLINGS_MAX];
	size_t n = spelling_names(NULL, names);
	const char *nearest;
	char upper[POLICY_WORD_MAX] = "";

	names[n++] = "preset";
	nearest = str_nearest(key, names, n);
	for (size_t i = 0; nearest && nearest[i] && i + 1 < sizeof(upper); i++)
		upper[i] = (char)toupper((unsigned char)nearest[i]);
	diag_add(diags, at, "this variable names no setting%s%s%s", *upper ? "; did you mean 'BRIG_" : "; unset it",
		 upper, *upper ? "'?" : "");
}

bool env_put(const struct env_variable *v, struct env_layer *ret, struct policy_diags *diags)
{
	char key[128], shown[POLICY_WORD_MAX];
	struct raw_value raw = { .text = v->value };
	struct place at = { .name = printable(v->name, shown, sizeof(shown)) };
	struct spelling sp;

	if (!key_of(v->name, key, sizeof(key)))
		return false;
	if (v->at) /* in a file */
		at = *v->at;
	if (str_eq(key, "preset"))
		(void)str_copy(ret->preset, sizeof(ret->preset), v->value);
	else if (!spelling_find(key, &sp))
		complain_unknown(key, &at, diags);
	else if (backend_is_list(&sp, &raw))
		(void)layer_put_backends(&ret->layer, shown, &raw, &at, &at, diags);
	else
		(void)layer_put(&ret->layer, &sp, shown, &raw, &at, &at, diags);
	return true;
}

void env_read(const char *const *vars, struct env_layer *ret, struct policy_diags *diags)
{
	for (; vars && *vars; vars++) {
		const char *equals = strchr(*vars, '=');
		char name[128];

		/* Nearly every variable is none of ours: look at two letters before anything is copied. */
		if (!equals || (strncmp(*vars, "BR", 2) != 0 && strncmp(*vars, "SE", 2) != 0))
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)min_u64((uint64_t)(equals - *vars), sizeof(name) - 1),
			       *vars);
		(void)env_put(&(struct env_variable){ .name = name, .value = equals + 1 }, ret, diags);
	}
}
