/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings.h"

#include <assert.h>

#include "base/str.h"

const char *const backend_kind_name[] = {
	[BACKEND_AUTO] = "auto",     [BACKEND_NATIVE] = "native",         [BACKEND_DOCKER] = "docker",
	[BACKEND_DIRECT] = "direct", [BACKEND_KUBERNETES] = "kubernetes",
};
const char *const seccomp_profile_name[] = {
	[SECCOMP_PROFILE_DEFAULT] = "default",
	[SECCOMP_PROFILE_STRICT] = "strict",
};
const char *const network_mode_name[] = { [NETWORK_NONE] = "none", [NETWORK_ALLOWLIST] = "allowlist" };
const char *const fallback_name[] = { [FALLBACK_NONE] = "none", [FALLBACK_DIRECT] = "direct" };
const char *const audit_mode_name[] = {
	[AUDIT_OFF] = "off",
	[AUDIT_OPTIONAL] = "optional",
	[AUDIT_REQUIRED] = "required",
};
const char *const audit_fsync_name[] = { [AUDIT_FSYNC_INTERVAL] = "interval", [AUDIT_FSYNC_ALWAYS] = "always" };
const char *const keep_name[] = { [KEEP_NONE] = "none", [KEEP_HEAD] = "head", [KEEP_ALL] = "all" };
const char *const workspace_mode_name[] = {
	[WORKSPACE_RO] = "ro",
	[WORKSPACE_COW] = "cow",
	[WORKSPACE_RW] = "rw",
};
const char *const workspace_alias_name[] = {
	[WORKSPACE_ALIAS_NONE] = "none",
	[WORKSPACE_MNT_DATA] = "/mnt/data",
	[WORKSPACE_HOME_USER] = "/home/user",
};
const char *const inspection_name[] = {
	[INSPECTION_OFF] = "off",
	[INSPECTION_REPORT] = "report",
	[INSPECTION_GUARD] = "guard",
	[INSPECTION_STRICT] = "strict",
};
const char *const rule_action_name[] = {
	[ACTION_ALLOW] = "allow",
	[ACTION_NOTE] = "note",
	[ACTION_WARN] = "warn",
	[ACTION_BLOCK] = "block",
};
const char *const trust_name[] = {
	[TRUST_UNTRUSTED] = "untrusted",
	[TRUST_UNKNOWN] = "unknown",
	[TRUST_TRUSTED] = "trusted",
};
static_assert(ARRAY_LEN(backend_kind_name) == BACKEND_KIND_COUNT, "backend_kind_name[] misses one");
static_assert(ARRAY_LEN(seccomp_profile_name) == SECCOMP_PROFILE_COUNT, "seccomp_profile_name[] misses one");
static_assert(ARRAY_LEN(network_mode_name) == NETWORK_MODE_COUNT, "network_mode_name[] misses one");
static_assert(ARRAY_LEN(fallback_name) == FALLBACK_COUNT, "fallback_name[] misses one");
static_assert(ARRAY_LEN(audit_mode_name) == AUDIT_MODE_COUNT, "audit_mode_name[] misses one");
static_assert(ARRAY_LEN(audit_fsync_name) == AUDIT_FSYNC_COUNT, "audit_fsync_name[] misses one");
static_assert(ARRAY_LEN(keep_name) == KEEP_COUNT, "keep_name[] misses one");
static_assert(ARRAY_LEN(workspace_mode_name) == WORKSPACE_MODE_COUNT, "workspace_mode_name[] misses one");
static_assert(ARRAY_LEN(workspace_alias_name) == WORKSPACE_ALIAS_COUNT, "workspace_alias_name[] misses one");
static_assert(ARRAY_LEN(inspection_name) == INSPECTION_COUNT, "inspection_name[] misses one");
static_assert(ARRAY_LEN(rule_action_name) == ACTION_COUNT, "rule_action_name[] misses one");
static_assert(ARRAY_LEN(trust_name) == TRUST_COUNT, "trust_name[] misses one");

/* The choices of each ENUM row; other rows have none. */
#define CHOICES_NUM(field)      NULL, 0
#define CHOICES_BOOL(field)     NULL, 0
#define CHOICES_TEXT(field)     NULL, 0
#define CHOICES_LIST(field)     NULL, 0
#define CHOICES_ENUM(field)     choices_##field, ARRAY_LEN(choices_##field)
#define choices_backend         backend_kind_name
#define choices_seccomp_profile seccomp_profile_name
#define choices_network_mode    network_mode_name
#define choices_fallback        fallback_name
#define choices_audit           audit_mode_name
#define choices_audit_fsync     audit_fsync_name
#define choices_keep_code       keep_name
#define choices_inspection      inspection_name
#define choices_keep_output     keep_name
#define choices_workspace_mode  workspace_mode_name
#define choices_workspace_alias workspace_alias_name
#define choices_default_trust   trust_name
#define choices_max_trust       trust_name

const struct setting_info setting_info[] = {
#define KEY(kind, field, section, unit, lo, hi, def, stricter, loosen, help) \
	{ #field,                                                            \
	  section,                                                           \
	  KIND_##kind,                                                       \
	  UNIT_##unit,                                                       \
	  lo,                                                                \
	  hi,                                                                \
	  def,                                                               \
	  STRICTER_##stricter,                                               \
	  LOOSEN_##loosen,                                                   \
	  help,                                                              \
	  offsetof(struct settings, field),                                  \
	  CHOICES_##kind(field) },
#include "model/keys.def"
};
static_assert(ARRAY_LEN(setting_info) == SETTING_COUNT, "setting_info[] misses a key");

const struct setting_alias setting_alias[] = {
#define ALIAS(name, field, unit, factor, help) { name, SET_##field, UNIT_##unit, factor, help },
#include "model/keys.def"
};
const size_t setting_alias_count = ARRAY_LEN(setting_alias);

const struct setting_word setting_word[] = {
#define WORD(name, field, yes, no, why) { name, SET_##field, yes, no, why },
#include "model/keys.def"
};
const size_t setting_word_count = ARRAY_LEN(setting_word);

bool setting_list_add(struct setting_list *list, const char *item)
{
	size_t size = strlen(item) + 1;

	if (list->n == SETTING_LIST_MAX || size > SETTING_ITEM_MAX || size > sizeof(list->text) - list->used)
		return false;
	memcpy(list->text + list->used, item, size);
	list->used = (uint16_t)(list->used + size);
	list->n++;
	return true;
}

bool setting_list_has(const struct setting_list *list, const char *item)
{
	for (const char *p = NULL; (p = setting_list_next(list, p));)
		if (str_eq(p, item))
			return true;
	return false;
}

void setting_list_copy(struct setting_list *to, const struct setting_list *from)
{
	setting_list_clear(to);
	memcpy(to->text, from->text, from->used);
	to->used = from->used;
	to->n = from->n;
}

void setting_list_clear(struct setting_list *list)
{
	memset(list->text, 0, list->used);
	list->used = list->n = 0;
}

const char *settings_workspace_alias(const struct settings *set)
{
	return set->workspace_alias == WORKSPACE_ALIAS_NONE ? NULL : workspace_alias_name[set->workspace_alias];
}
