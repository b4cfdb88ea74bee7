/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the policy engine share; cmocka.h and its companions come before it. */
#ifndef TESTS_POLICY_HELPERS_H
#define TESTS_POLICY_HELPERS_H

#include <string.h>

#include "policy/internal.h"

static struct policy_diags diags;
static struct policy_resolved resolved;

static inline int load_text(const char *text, size_t len, struct policy **ret, struct brig_error *err)
{
	struct policy_sources src = { .file = "etc/sandbox.yaml", .text = text, .text_len = len };

	return policy_load(&src, ret, &diags, err);
}

static inline struct policy *must_load(const struct policy_sources *src)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	if (policy_load(src, &p, &diags, &err) < 0)
		fail_msg("a good policy was refused: %s", err.msg);
	return p;
}

static inline struct policy *must_load_text(const char *text)
{
	struct policy_sources src = { .file = "etc/sandbox.yaml", .text = text, .text_len = strlen(text) };

	return must_load(&src);
}

static inline void must_resolve(const struct policy *p, const char *trust)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (policy_resolve(p, trust, NULL, 0, &resolved, &err) < 0)
		fail_msg("cannot resolve: %s", err.msg);
}

static inline enum setting_key key_named(const char *name)
{
	struct spelling sp;

	assert_true(spelling_find(name, &sp));
	return sp.key;
}

static inline void assert_value(const char *key, const char *text)
{
	char is[8192];

	assert_string_equal(policy_value_text(&resolved.set, key_named(key), is, sizeof(is)), text);
}

static inline void assert_origin(const char *key, enum policy_layer layer, const char *place)
{
	const struct policy_origin *o = &resolved.origin[key_named(key)];

	assert_int_equal(o->layer, layer);
	assert_string_equal(o->place, place);
}

static inline bool any_diag_has(const char *place, const char *part)
{
	for (size_t i = 0; i < diags.n; i++)
		if (strstr(diags.row[i].place, place) && strstr(diags.row[i].msg, part))
			return true;
	return false;
}

static inline void assert_diag(const char *place, const char *part)
{
	if (any_diag_has(place, part))
		return;
	for (size_t i = 0; i < diags.n; i++)
		print_message("# %s: %s\n", diags.row[i].place, diags.row[i].msg);
	fail_msg("no complaint at %s that says '%s'", place, part);
}

#endif
