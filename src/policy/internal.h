/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share.
 *
 * A source (preset, file, environment, trust level, request) is read into a struct layer: the values it
 * names, and where it named each of them.  Layers are then laid over each other in policy.c.  Values in a
 * layer are packed, and there are only entries for what it names: a dozen layers with room for everything would cost
 * every run many page faults.
 */
#ifndef POLICY_INTERNAL_H
#define POLICY_INTERNAL_H

#include <jansson.h>

#include "policy/policy.h"

#define POLICY_FILE_MAX (1 * MiB)
#define POLICY_WHY_MAX  280
#define POLICY_WORD_MAX 64 /* bytes of a foreign word that a message repeats */

/* ---- names.c: spellings of keys ------------------------------------------------------------- */

/* One way to spell a setting: a row of KEY, of ALIAS or of WORD. */
struct spelling {
	const char *name;
	enum setting_key key;
	enum setting_unit unit;
	uint64_t factor;                 /* what a bare number is multiplied by; 0: it is in thousandths */
	const struct setting_word *word; /* not NULL: it takes true or false, which stand for values */
};

#define SPELLINGS_MAX 256

/* By its full name or alias. */
bool spelling_find(const char *name, struct spelling *ret);
/* Under a heading also by its short name: "enabled" in monitoring is monitoring_enabled. */
bool spelling_find_in(const char *section, const char *name, struct spelling *ret);
/* Every name and alias; of one section, unless that is NULL.  Returns how many. */
size_t spelling_names(const char *section, const char *ret[SPELLINGS_MAX]);
/* "; did you mean 'x'?" or "". */
const char *suggest(const char *word, const char *const *candidates, size_t n, char *dst, size_t size);
/* suggest() among every name and alias. */
const char *suggest_key(const char *name, char *dst, size_t size);

/* Headings of the file, in the order of keys.def. */
#define SECTIONS_MAX 16
size_t section_names(const char *ret[SECTIONS_MAX]);

/* Index of a name in a table; n if it is not there. */
size_t name_index(const char *const *names, size_t n, const char *name);

/* ---- value.c and checks.c: text to value ---------------------------------------------------- */

/* A value as a source gave it: one text, or a list. */
struct raw_value {
	const char *text;
	const struct setting_list *list; /* not NULL: a list */
};

/* Room for the value of any one setting; each member is what struct settings has in that place. */
union slot {
	KEY_TYPE_NUM num;
	KEY_TYPE_BOOL on;
	KEY_TYPE_ENUM choice;
	KEY_TYPE_TEXT text;
	KEY_TYPE_LIST list;
};

/* A value in little room. */
struct packed {
	uint64_t num; /* NUM, BOOL, ENUM */
	char *text;   /* TEXT, and the n items of a LIST one after the other, each with its NUL */
	uint32_t n;
};

/* Reads, range-checks and checks one value into *dst; false: why[] says what it takes. */
bool value_read(const struct spelling *sp, const struct raw_value *raw, union slot *dst, char why[POLICY_WHY_MAX]);
/* The rules of one key beyond kind and range; may bring a value into its one true spelling. */
bool value_check(enum setting_key k, union slot *v, char why[POLICY_WHY_MAX]);
/* at points to a member of struct settings or of union slot. */
const char *value_text(enum setting_key k, const void *at, char *dst, size_t size);
void value_copy(enum setting_key k, void *at, const void *from);
bool value_pack(enum setting_key k, const void *at, struct packed *ret); /* false: no memory */
void value_unpack(enum setting_key k, const struct packed *v, void *at);
/* The same into a slot, whatever it held before. */
void value_unpack_slot(enum setting_key k, const struct packed *v, union slot *ret);

enum strictness { VALUE_SAME, VALUE_STRICTER, VALUE_LOOSER };
/* How a wish compares with what is there now. */
enum strictness value_compare(enum setting_key k, const void *wish, const void *now);

/* ---- layer.c --------------------------------------------------------------------------------- */

struct place {
	const char *name; /* of the file or variable, safe to print */
	unsigned line, column;
};

struct layer_entry {
	bool set;
	bool only_stricter; /* taken only where it tightens (built-in untrusted) */
	bool only_looser;   /* taken only where it loosens (built-in trusted) */
	unsigned line, column;
	struct packed val;
	char spelling[40];      /* as the source spelled it; "": not met yet */
	const char *implied_by; /* the key that says this too; NULL: it is written */
};

struct layer {
	enum policy_layer kind;
	char label[88];      /* of the source, for provenance; "": an entry's own spelling */
	union slot *scratch; /* borrowed, for layer_put() */
	bool no_memory;
	struct layer_entry *at[SETTING_COUNT]; /* NULL: not met; most layers name few settings */
};

/* Reads a value into the layer, or adds a complaint.  The same setting twice is a complaint naming both places.
 * at is where the key stands and what provenance names, value_at where its value does. */
bool layer_put(struct layer *l, const struct spelling *sp, const char *spelled, const struct raw_value *raw,
	       const struct place *at, const struct place *value_at, struct policy_diags *diags);
/* The entry of a setting, made if it is not there; NULL: no memory, which the layer remembers. */
struct layer_entry *layer_entry(struct layer *l, enum setting_key k);
/* Whether it has a value for a setting. */
static inline bool layer_has(const struct layer *l, enum setting_key k)
{
	return l->at[k] && l->at[k]->set;
}
/* Lays a layer over values that are there already. */
void layer_apply(const struct layer *l, struct settings *set, struct policy_origin origin[SETTING_COUNT]);
void layer_apply_key(const struct layer *l, enum setting_key k, struct settings *set, struct policy_origin *origin);
void layer_release(struct layer *l);

/* ---- implied.c ------------------------------------------------------------------------------- */

/* Whether a request may choose this backend; `auto` stands for native and docker. */
bool backend_within(const struct setting_list *backends, int kind);
/* Adds what the layer's values mean beyond themselves.  name: of the file, safe to print; "": an entry's own spelling. */
void layer_imply(struct layer *l, const char *name, struct policy_diags *diags);
/* `backend` may be given as a list, which is put by the second function instead of layer_put(). */
bool backend_is_list(const struct spelling *sp, const struct raw_value *raw);
bool layer_put_backends(struct layer *l, const char *spelled, const struct raw_value *raw, const struct place *at,
			const struct place *value_at, struct policy_diags *diags);

/* ---- binding.c ------------------------------------------------------------------------------- */

/* The settings that a file sets, by itself or by naming a preset (NULL: it names none). */
void binding_collect(const struct layer *file, const struct layer *preset, bool ret[SETTING_COUNT]);
struct binding {
	const bool *bound;
	const struct settings *set; /* as the file leaves them */
	const struct policy_origin *origin;
};
void binding_check_environment(const struct layer *env, const struct binding *b, struct policy_diags *diags);
/* default_trust is never above max_trust: it follows it down, unless the layer that was applied last states it. */
void binding_settle_trust(const struct layer *l, const char *name, struct settings *set, struct policy_origin *origin,
			  struct policy_diags *diags);
/* of_file: "" if the file names no preset. */
void binding_check_preset(const char *chosen, const char *of_file, const char *place, struct policy_diags *diags);

/* Whether a file says how code is judged or who is trusted: then no layer above it loosens rows of loosen PERSON. */
bool binding_judges(const bool set[SETTING_COUNT]);

/* ---- diag.c ---------------------------------------------------------------------------------- */

void diag_add(struct policy_diags *d, const struct place *at, const char *fmt, ...) PRINTF(3, 4);
/* A foreign word made fit for a message: control bytes and broken UTF-8 replaced, length bounded. */
const char *printable(const char *word, char *dst, size_t size);

/* ---- sources --------------------------------------------------------------------------------- */

struct file_layers {
	char preset[16];                 /* "": the file names none */
	char env_file[SETTING_TEXT_MAX]; /* the same */
	unsigned env_file_line, env_file_column;
	struct layer base;
	struct layer trust[TRUST_COUNT];
	json_t *users; /* NULL: there are none */
};

/* users.c: a row is started, filled member by member and ended; what is wrong with it is a complaint. */
json_t *user_begin(json_t **users, const struct place *at, struct policy_diags *diags); /* NULL: not this one */
void user_put(json_t *row, const char *key, const struct raw_value *raw, const struct place *at,
	      const struct place *value_at, struct policy_diags *diags);
void user_end(const json_t *row, const struct place *at, struct policy_diags *diags);
int users_to_json(const json_t *users, char **ret, struct brig_error *err);
/* The rows of `brig init`'s file, behind '#'. */
void users_template(struct buf *out);

/* yaml.c */
/* guarded: only if no one but the caller and root could write it. */
int yaml_file_read(const char *path, bool guarded, struct buf *ret, struct policy_diags *diags, struct brig_error *err);
int yaml_parse(const char *path, const char *text, size_t len, struct file_layers *ret, struct policy_diags *diags,
	       struct brig_error *err);

/* What variables set, wherever they stand. */
struct env_layer {
	struct layer layer;
	char preset[64]; /* of BRIG_PRESET; "": it is not set */
};
struct env_variable {
	const char *name, *value;
	const struct place *at; /* NULL: in the environment */
};

/* env.c */
void env_read(const char *const *vars, struct env_layer *ret, struct policy_diags *diags);
/* One variable; false: it is none of ours. */
bool env_put(const struct env_variable *v, struct env_layer *ret, struct policy_diags *diags);
/* Whether it is brig's, and means something in the environment only. */
bool env_is_reserved(const char *name);

/* env_file.c: the variables of the file that the policy file src->file names. */
int env_file_read(const struct policy_sources *src, const struct file_layers *file, struct env_layer *ret,
		  struct policy_diags *diags, struct brig_error *err);

/* builtin.c: layers that are compiled in, from builtin.def. */
void builtin_layer(struct layer *ret);
void preset_layer(const char *name, struct layer *ret);
void trust_layer(enum trust t, struct layer *ret);

#endif
