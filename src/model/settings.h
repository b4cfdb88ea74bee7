/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of every setting, as one flat struct without pointers: it can be copied, compared and
 * handed over a process border as it is.  Rows in keys.def.
 */
#ifndef MODEL_SETTINGS_H
#define MODEL_SETTINGS_H

#include <string.h>

#include "base/util.h"

#define SETTING_TEXT_MAX   256
#define SETTING_LIST_MAX   64
#define SETTING_ITEM_MAX   96
#define SETTING_LIST_BYTES 2044

/*
 * The n items stand in text one after the other, each with its NUL; what is behind the used bytes is zero.  Packed,
 * because every run holds several structs full of lists that are nearly all empty, and pays for each page of them.
 */
struct setting_list {
	uint16_t n;
	uint16_t used;
	char text[SETTING_LIST_BYTES];
};

typedef uint64_t KEY_TYPE_NUM;
typedef bool KEY_TYPE_BOOL;
typedef int KEY_TYPE_ENUM;
typedef char KEY_TYPE_TEXT[SETTING_TEXT_MAX];
typedef struct setting_list KEY_TYPE_LIST;

struct settings {
#define KEY(kind, field, ...) KEY_TYPE_##kind field;
#include "model/keys.def"
};

/* One number per setting, for tables that run parallel to the struct (provenance, rows of `policy show`). */
enum setting_key {
#define KEY(kind, field, ...) SET_##field,
#include "model/keys.def"
	SETTING_COUNT
};

/* Values of the ENUM settings; the names are in settings.c, tied by static_assert. */
enum backend_kind {
	BACKEND_AUTO,
	BACKEND_NATIVE,
	BACKEND_DOCKER,
	BACKEND_DIRECT,
	BACKEND_KUBERNETES,
	BACKEND_KIND_COUNT
};
enum seccomp_profile { SECCOMP_PROFILE_DEFAULT, SECCOMP_PROFILE_STRICT, SECCOMP_PROFILE_COUNT };
enum network_mode { NETWORK_NONE, NETWORK_ALLOWLIST, NETWORK_MODE_COUNT };
enum fallback { FALLBACK_NONE, FALLBACK_DIRECT, FALLBACK_COUNT };
enum audit_mode { AUDIT_OFF, AUDIT_OPTIONAL, AUDIT_REQUIRED, AUDIT_MODE_COUNT };
enum audit_fsync { AUDIT_FSYNC_INTERVAL, AUDIT_FSYNC_ALWAYS, AUDIT_FSYNC_COUNT };
enum keep { KEEP_NONE, KEEP_HEAD, KEEP_ALL, KEEP_COUNT }; /* of code or output, in the history */
enum workspace_mode { WORKSPACE_RO, WORKSPACE_COW, WORKSPACE_RW, WORKSPACE_MODE_COUNT };
enum workspace_alias { WORKSPACE_ALIAS_NONE, WORKSPACE_MNT_DATA, WORKSPACE_HOME_USER, WORKSPACE_ALIAS_COUNT };
/* How code is judged before it runs, each stricter than the one before; what each does: inspect/rules.h. */
enum inspection { INSPECTION_OFF, INSPECTION_REPORT, INSPECTION_GUARD, INSPECTION_STRICT, INSPECTION_COUNT };
/* What the setting `rules` lets one rule do. */
enum rule_action { ACTION_ALLOW, ACTION_NOTE, ACTION_WARN, ACTION_BLOCK, ACTION_COUNT };
enum trust { TRUST_UNTRUSTED, TRUST_UNKNOWN, TRUST_TRUSTED, TRUST_COUNT };

extern const char *const backend_kind_name[BACKEND_KIND_COUNT];
extern const char *const seccomp_profile_name[SECCOMP_PROFILE_COUNT];
extern const char *const network_mode_name[NETWORK_MODE_COUNT];
extern const char *const fallback_name[FALLBACK_COUNT];
extern const char *const audit_mode_name[AUDIT_MODE_COUNT];
extern const char *const audit_fsync_name[AUDIT_FSYNC_COUNT];
extern const char *const keep_name[KEEP_COUNT];
extern const char *const workspace_mode_name[WORKSPACE_MODE_COUNT];
extern const char *const workspace_alias_name[WORKSPACE_ALIAS_COUNT];
extern const char *const inspection_name[INSPECTION_COUNT];
extern const char *const rule_action_name[ACTION_COUNT];
extern const char *const trust_name[TRUST_COUNT];

enum setting_kind { KIND_NUM, KIND_BOOL, KIND_ENUM, KIND_TEXT, KIND_LIST };
enum setting_unit { UNIT_NONE, UNIT_BYTES, UNIT_MILLIS, UNIT_COUNT, UNIT_PERCENT };
enum setting_stricter { STRICTER_LESS, STRICTER_MORE, STRICTER_SAME };
enum setting_loosen { LOOSEN_NOBODY, LOOSEN_TRUSTED, LOOSEN_UNSET, LOOSEN_PERSON, LOOSEN_NO_FILE };

/* What is known about a setting besides its value. */
struct setting_info {
	const char *name;
	const char *section;
	enum setting_kind kind;
	enum setting_unit unit;
	uint64_t min, max;
	const char *builtin;
	enum setting_stricter stricter;
	enum setting_loosen loosen;
	const char *help;
	size_t offset;              /* into struct settings */
	const char *const *choices; /* ENUM: the names, n_choices of them */
	size_t n_choices;
};
extern const struct setting_info setting_info[SETTING_COUNT];

struct setting_alias {
	const char *name;
	enum setting_key key;
	enum setting_unit unit;
	uint64_t factor;
	const char *help;
};
extern const struct setting_alias setting_alias[];
extern const size_t setting_alias_count;

/* A key of yes or no that stands for one value of a setting; NULL: that is refused. */
struct setting_word {
	const char *name;
	enum setting_key key;
	const char *yes, *no, *why;
};
extern const struct setting_word setting_word[];
extern const size_t setting_word_count;

static inline void *setting_at(struct settings *s, enum setting_key k)
{
	return (char *)s + setting_info[k].offset;
}

static inline const void *setting_at_const(const struct settings *s, enum setting_key k)
{
	return (const char *)s + setting_info[k].offset;
}

/* At its largest, which is the default, disk_io_bps is no limit: so a request that sets it can only tighten. */
static inline bool limits_disk_io(const struct settings *s)
{
	return s->disk_io_bps < setting_info[SET_disk_io_bps].max;
}

/* False: more than SETTING_LIST_MAX items, an item of SETTING_ITEM_MAX bytes or more, or no room. */
bool setting_list_add(struct setting_list *list, const char *item);
bool setting_list_has(const struct setting_list *list, const char *item);
void setting_list_copy(struct setting_list *to, const struct setting_list *from);
void setting_list_clear(struct setting_list *list);

/* for (const char *item = NULL; (item = setting_list_next(list, item));) */
static inline const char *setting_list_next(const struct setting_list *list, const char *item)
{
	const char *next = item ? item + strlen(item) + 1 : list->text;

	return next < list->text + list->used ? next : NULL;
}

/* The other name of the workspace; NULL: it has none. */
const char *settings_workspace_alias(const struct settings *set);

#endif
