/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy file: YAML events in, layers out.
 *
 * libyaml's event interface is used, never its documents: an event costs the bytes it stands for, so
 * nothing can be expanded.  Anchors, aliases and tags have no use here and are refused where they stand.
 * The reader goes on after a complaint, so that one look at a file finds everything; only broken YAML
 * and nesting beyond DEPTH_MAX end it early.
 */
#include "policy/internal.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"

#define DEPTH_MAX 8 /* trust_levels > level > section > list needs four */

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current one */
	bool stopped;       /* nothing more can be read; the complaint was made */
	unsigned depth;
	const char *name; /* of the file, printable */
	const char *text;
	size_t len;
	struct file_layers *out;
	struct policy_diags *diags;
};

/* The mapping that is being read. */
struct scope {
	struct layer *layer;
	const char *level;      /* trust level, or NULL */
	const char *section;    /* heading, or NULL */
	unsigned *section_line; /* of each heading seen in this scope */
};

typedef void (*entry_fn)(struct reader *r, struct scope *sc, const char *key, const struct place *at);

/* ---- places and syntax errors ------------------------------------------------------------------ */

static struct place place_of(const struct reader *r, yaml_mark_t mark)
{
	return (struct place){ r->name, (unsigned)mark.line + 1, (unsigned)mark.column + 1 };
}

static struct place place_of_event(const struct reader *r)
{
	return place_of(r, r->event.start_mark);
}

static struct place place_of_byte(const struct reader *r, size_t offset)
{
	struct place at = { r->name, 1, 1 };

	for (size_t i = 0; i < offset && i < r->len; i++) {
		if (r->text[i] == '\n') {
			at.line++;
			at.column = 1;
		} else if (((unsigned char)r->text[i] & 0xc0) != 0x80) {
			at.column++;
		}
	}
	return at;
}

static bool tab_at(const struct reader *r, yaml_mark_t mark)
{
	const char *line = r->text, *end = r->text + r->len;

	for (size_t n = 0; line && n < mark.line; n++) {
		line = memchr(line, '\n', (size_t)(end - line));
		line = line ? line + 1 : NULL;
	}
	return line && mark.column < (size_t)(end - line) && line[mark.column] == '\t';
}

static void complain_syntax(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	struct place at =
		p->error == YAML_READER_ERROR ? place_of_byte(r, p->problem_offset) : place_of(r, p->problem_mark);

	if (p->error == YAML_SCANNER_ERROR && tab_at(r, p->problem_mark))
		diag_add(r->diags, &at, "a tab stands where YAML allows only spaces");
	else
		diag_add(r->diags, &at, "not valid YAML: %s%s%s", p->problem ? p->problem : "cannot be read",
			 p->context ? " " : "", p->context ? p->context : "");
}

/* ---- events --------------------------------------------------------------------------------------- */

static void stop(struct reader *r)
{
	r->stopped = true;
}

static void refuse_anchor_and_tag(struct reader *r, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	struct place at = place_of_event(r);

	if (anchor)
		diag_add(r->diags, &at, "anchors (&name) are not accepted in a policy; write the value out");
	if (tag)
		diag_add(r->diags, &at, "tags (!name) are not accepted in a policy");
}

static void inspect_event(struct reader *r)
{
	struct place at = place_of_event(r);

	switch (r->event.type) {
	case YAML_ALIAS_EVENT:
		diag_add(r->diags, &at, "aliases (*name) are not accepted in a policy; write the value out");
		break;
	case YAML_SCALAR_EVENT:
		refuse_anchor_and_tag(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_anchor_and_tag(r, r->event.data.sequence_start.anchor, r->event.data.sequence_start.tag);
		r->depth++;
		break;
	case YAML_MAPPING_START_EVENT:
		refuse_anchor_and_tag(r, r->event.data.mapping_start.anchor, r->event.data.mapping_start.tag);
		r->depth++;
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		r->depth--;
		break;
	default:
		break;
	}
	if (r->depth > DEPTH_MAX) {
		diag_add(r->diags, &at, "nested more than %d deep", DEPTH_MAX);
		stop(r);
	}
}

/* Moves on to the next event; false when reading has stopped. */
static bool next(struct reader *r)
{
	if (r->stopped)
		return false;
	yaml_event_delete(&r->event);
	if (!yaml_parser_parse(&r->parser, &r->event)) {
		if (r->parser.error != YAML_MEMORY_ERROR)
			complain_syntax(r);
		stop(r);
		return false;
	}
	inspect_event(r);
	return !r->stopped;
}

/* The current event starts a node: moves to the event that ends it. */
static void skip_node(struct reader *r)
{
	unsigned depth = r->depth - 1;

	if (r->event.type != YAML_MAPPING_START_EVENT && r->event.type != YAML_SEQUENCE_START_EVENT)
		return;
	while (r->depth > depth && next(r))
		;
}

static bool scalar_is_null(const yaml_event_t *e)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };

	return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       name_index(words, ARRAY_LEN(words), (const char *)e->data.scalar.value) < ARRAY_LEN(words);
}

/* The current scalar as a string: nothing is "", a NUL in it is a complaint and NULL. */
static const char *scalar_text(struct reader *r)
{
	const char *text = (const char *)r->event.data.scalar.value;
	struct place at = place_of_event(r);

	if (scalar_is_null(&r->event))
		return "";
	if (strlen(text) == r->event.data.scalar.length)
		return text;
	diag_add(r->diags, &at, "holds a NUL character");
	return NULL;
}

/* ---- mappings ---------------------------------------------------------------------------------------- */

/* The key that is the current event, into dst; false: it was a complaint. */
static bool read_key(struct reader *r, char *dst, size_t size, struct place *at)
{
	const char *text;

	*at = place_of_event(r);
	if (r->event.type != YAML_SCALAR_EVENT) {
		if (r->event.type != YAML_ALIAS_EVENT)
			diag_add(r->diags, at, "a key must be a plain word");
		skip_node(r);
		return false;
	}
	text = scalar_text(r);
	if (text && !str_copy(dst, size, text)) {
		diag_add(r->diags, at, "unknown key of %zu letters", r->event.data.scalar.length);
		return false;
	}
	return text != NULL;
}

/* The current event starts a mapping: hands each key to fn, with its value as the current event. */
static void read_mapping(struct reader *r, struct scope *sc, entry_fn fn)
{
	while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
		char key[POLICY_WORD_MAX];
		struct place at;
		bool good = read_key(r, key, sizeof(key), &at);

		if (!next(r))
			return;
		if (good && r->event.type != YAML_ALIAS_EVENT)
			fn(r, sc, key, &at);
		else
			skip_node(r);
	}
}

/* What a heading takes: a mapping, or nothing at all. */
static void read_heading(struct reader *r, struct scope *sc, const char *key, entry_fn fn)
{
	struct place at = place_of_event(r);

	if (r->event.type == YAML_MAPPING_START_EVENT) {
		read_mapping(r, sc, fn);
		return;
	}
	if (r->event.type != YAML_SCALAR_EVENT || !scalar_is_null(&r->event))
		diag_add(r->diags, &at, "%s is a heading: indented 'key: value' lines stand below it", key);
	skip_node(r);
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* The current event starts a sequence: reads it to its end. */
static bool read_sequence(struct reader *r, const struct spelling *sp, struct setting_list *ret)
{
	bool good = true;

	ret->n = ret->used = 0;
	while (next(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
		struct place at = place_of_event(r);
		const char *text = r->event.type == YAML_SCALAR_EVENT ? scalar_text(r) : NULL;

		if (r->event.type != YAML_SCALAR_EVENT && r->event.type != YAML_ALIAS_EVENT)
			diag_add(r->diags, &at, "an item of %s must be one word", sp->name);
		if (text && setting_list_add(ret, text))
			continue;
		if (text && good)
			diag_add(r->diags, &at, "%s takes at most %d items of at most %d bytes, %d bytes together",
				 sp->name, SETTING_LIST_MAX, SETTING_ITEM_MAX - 1, SETTING_LIST_BYTES);
		good = false;
		skip_node(r);
	}
	return good && !r->stopped;
}

static void read_list_value(struct reader *r, struct scope *sc, const struct spelling *sp, const char *key,
			    const struct place *at)
{
	struct place value_at = place_of_event(r);
	struct setting_list list;
	struct raw_value raw = { .list = &list };

	if (setting_info[sp->key].kind != KIND_LIST && !backend_is_list(sp, &raw)) {
		diag_add(r->diags, &value_at, "%s takes one value, not a list", key);
		skip_node(r);
		return;
	}
	if (!read_sequence(r, sp, &list))
		return;
	if (backend_is_list(sp, &raw))
		(void)layer_put_backends(sc->layer, key, &raw, at, &value_at, r->diags);
	else
		(void)layer_put(sc->layer, sp, key, &raw, at, &value_at, r->diags);
}

/* "{py-network: allow}" is the item "py-network=allow"; the current event starts the mapping. */
static bool read_pairs(struct reader *r, const struct spelling *sp, struct setting_list *ret)
{
	bool good = true;

	ret->n = ret->used = 0;
	while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
		char key[POLICY_WORD_MAX], item[SETTING_ITEM_MAX];
		struct place at;
		bool named = read_key(r, key, sizeof(key), &at);
		const char *text;

		if (!next(r))
			return false;
		text = named && r->event.type == YAML_SCALAR_EVENT ? scalar_text(r) : NULL;
		if (text && (size_t)snprintf(item, sizeof(item), "%s=%s", key, text) < sizeof(item) &&
		    setting_list_add(ret, item))
			continue;
		if (named && r->event.type != YAML_ALIAS_EVENT)
			diag_add(r->diags, &at, "%s takes one word for each of at most %d names", sp->name,
				 SETTING_LIST_MAX);
		good = false;
		skip_node(r);
	}
	return good && !r->stopped;
}

static void read_pairs_value(struct reader *r, struct scope *sc, const struct spelling *sp, const char *key,
			     const struct place *at)
{
	struct place value_at = place_of_event(r);
	struct setting_list list;
	struct raw_value raw = { .list = &list };

	if (read_pairs(r, sp, &list))
		(void)layer_put(sc->layer, sp, key, &raw, at, &value_at, r->diags);
}

static void read_value(struct reader *r, struct scope *sc, const struct spelling *sp, const char *key,
		       const struct place *at)
{
	struct place value_at = place_of_event(r);
	struct raw_value raw = { 0 };

	if (r->event.type == YAML_SEQUENCE_START_EVENT) {
		read_list_value(r, sc, sp, key, at);
	} else if (r->event.type == YAML_MAPPING_START_EVENT && sp->key == SET_rules) {
		read_pairs_value(r, sc, sp, key, at);
	} else if (r->event.type == YAML_SCALAR_EVENT) {
		raw.text = scalar_text(r);
		if (raw.text)
			(void)layer_put(sc->layer, sp, key, &raw, at, &value_at, r->diags);
	} else {
		diag_add(r->diags, &value_at, "%s takes a value, not further keys", key);
		skip_node(r);
	}
}

/* ---- keys ------------------------------------------------------------------------------------------------ */

/* Keys of other sandboxes that ask for what a cell never gives. */
static const struct {
	const char *key, *reason;
} refused_keys[] = {
	{ "privileged", "a cell never has privileges" },
	{ "cap_add", "a cell never holds a capability" },
	{ "devices", "a cell sees no device of the host" },
	{ "volumes", "a cell shares no directory with the host" },
	{ "binds", "a cell shares no directory with the host" },
	{ "mounts", "a cell shares no directory with the host" },
	{ "pid_mode", "a cell always has its own processes" },
	{ "ipc_mode", "a cell always has its own queues" },
	{ "userns_mode", "a cell always has its own user ids" },
	{ "seccomp", "the system call filter is always on; seccomp_profile chooses which" },
};

static void complain_unknown(struct reader *r, const struct scope *sc, const char *key, const struct place *at)
{
	char shown[POLICY_WORD_MAX], hint[96];
	const char *names[SPELLINGS_MAX];

	if (r->diags->n == POLICY_DIAGS_MAX) { /* a suggestion nobody will see is not worth its time */
		r->diags->dropped++;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(refused_keys); i++)
		if (str_eq(refused_keys[i].key, key)) {
			diag_add(r->diags, at, "'%s' is refused: %s", key, refused_keys[i].reason);
			return;
		}
	(void)printable(key, shown, sizeof(shown));
	(void)suggest(key, names, spelling_names(sc->section, names), hint, sizeof(hint));
	if (!*hint && !sc->section) {
		size_t n = section_names(names);

		names[n++] = "preset";
		names[n++] = "env_file";
		names[n++] = "trust_levels";
		names[n++] = "users";
		(void)suggest(key, names, n, hint, sizeof(hint));
	}
	if (!*hint)
		(void)suggest_key(key, hint, sizeof(hint));
	diag_add(r->diags, at, "unknown key '%s'%s%s%s", shown, sc->section || sc->level ? " in " : "",
		 sc->section ? sc->section
		 : sc->level ? sc->level
			     : "",
		 hint);
}

/* Headings that files of other sandboxes put these keys under. */
static const struct {
	const char *section, *key;
} also_under[] = {
	{ "security", "enable_sandbox" },  { "security", "docker_image" },        { "security", "max_execution_time" },
	{ "security", "network_enabled" }, { "security", "memory_limit" },        { "security", "cpu_quota" },
	{ "resources", "timeout" },        { "resources", "max_execution_time" }, { "resources", "max_timeout" },
};

static bool may_stand_under(const char *section, const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(also_under); i++)
		if (str_eq(also_under[i].section, section) && str_eq(also_under[i].key, key))
			return true;
	return false;
}

/* Is this a place for that key?  Else says where it belongs. */
static bool in_place(struct reader *r, const struct scope *sc, enum setting_key k, const char *key,
		     const struct place *at)
{
	const char *home = setting_info[k].section;

	if (sc->level && (k == SET_default_trust || k == SET_max_trust)) {
		diag_add(r->diags, at, "%s cannot stand in a trust level: it chooses one", key);
		return false;
	}
	if (!sc->section || str_eq(home, sc->section) || may_stand_under(sc->section, key))
		return true;
	if (*home)
		diag_add(r->diags, at, "%s belongs under %s or at the top, not under %s", key, home, sc->section);
	else
		diag_add(r->diags, at, "%s belongs at the top, not under %s", key, sc->section);
	return false;
}

static void read_setting(struct reader *r, struct scope *sc, const char *key, const struct place *at)
{
	struct spelling sp;
	bool known = sc->section ? spelling_find_in(sc->section, key, &sp) : spelling_find(key, &sp);

	if (!known)
		complain_unknown(r, sc, key, at);
	if (known && in_place(r, sc, sp.key, key, at))
		read_value(r, sc, &sp, key, at);
	else
		skip_node(r);
}

/* Notes that a heading or another single key was met here; false and a complaint the second time. */
static bool first_time(struct reader *r, unsigned *line, const char *key, const struct place *at)
{
	if (*line) {
		diag_add(r->diags, at, "%s appears twice, first in line %u; join them", key, *line);
		skip_node(r);
		return false;
	}
	*line = at->line;
	return true;
}

/* One entry of the base or of a trust level: a heading or a setting. */
static void read_entry(struct reader *r, struct scope *sc, const char *key, const struct place *at)
{
	const char *sections[SECTIONS_MAX];
	size_t n = section_names(sections);
	size_t i = name_index(sections, n, key);
	struct scope inner = *sc;

	if (sc->level &&
	    (str_eq(key, "preset") || str_eq(key, "env_file") || str_eq(key, "trust_levels") || str_eq(key, "users"))) {
		diag_add(r->diags, at, "%s stands at the top of the file only", key);
		skip_node(r);
		return;
	}
	if (i == n) {
		read_setting(r, sc, key, at);
		return;
	}
	inner.section = sections[i];
	if (first_time(r, &sc->section_line[i], key, at))
		read_heading(r, &inner, key, read_setting);
}

static void read_level(struct reader *r, struct scope *sc, const char *key, const struct place *at)
{
	size_t t = name_index(trust_name, TRUST_COUNT, key);
	unsigned lines[SECTIONS_MAX] = { 0 };
	struct scope inner = { .section_line = lines };
	char shown[POLICY_WORD_MAX], hint[96];

	if (t == TRUST_COUNT) {
		diag_add(r->diags, at, "unknown trust level '%s'; there are untrusted, unknown and trusted%s",
			 printable(key, shown, sizeof(shown)),
			 suggest(key, trust_name, TRUST_COUNT, hint, sizeof(hint)));
		skip_node(r);
		return;
	}
	inner.layer = &r->out->trust[t];
	inner.level = trust_name[t];
	if (first_time(r, &sc->section_line[t], key, at))
		read_heading(r, &inner, key, read_entry);
}

static void read_preset(struct reader *r)
{
	struct place at = place_of_event(r);
	const char *text = r->event.type == YAML_SCALAR_EVENT ? scalar_text(r) : NULL;
	char shown[POLICY_WORD_MAX], hint[96];

	if (text && name_index(preset_names, preset_count, text) < preset_count)
		(void)str_copy(r->out->preset, sizeof(r->out->preset), text);
	else if (text)
		diag_add(r->diags, &at, "unknown preset '%s'; there are standard and strict%s",
			 printable(text, shown, sizeof(shown)),
			 suggest(text, preset_names, preset_count, hint, sizeof(hint)));
	else
		diag_add(r->diags, &at, "preset takes the name of a preset: standard or strict");
	skip_node(r);
}

/* In the folder of the policy, or below it: whoever may write one may write the other. */
static bool is_path_beneath(const char *path)
{
	size_t len = strlen(path);

	return len > 0 && len < sizeof(((struct file_layers *)NULL)->env_file) && *path != '/' && !str_eq(path, "..") &&
	       strncmp(path, "../", 3) != 0 && !strstr(path, "/../") && !(len >= 3 && str_eq(path + len - 3, "/.."));
}

static void read_env_file(struct reader *r)
{
	struct place at = place_of_event(r);
	const char *text = r->event.type == YAML_SCALAR_EVENT ? scalar_text(r) : NULL;
	char shown[POLICY_WORD_MAX];

	if (text && is_path_beneath(text)) {
		(void)str_copy(r->out->env_file, sizeof(r->out->env_file), text);
		r->out->env_file_line = at.line;
		r->out->env_file_column = at.column;
	} else
		diag_add(r->diags, &at,
			 "env_file takes a path relative to the folder of this file, without '..', such as .env; '%s' "
			 "is not that",
			 printable(text ? text : "this", shown, sizeof(shown)));
	skip_node(r);
}

/* One member of a row of users: a value or a list; the current event begins it. */
static void read_user_member(struct reader *r, json_t *row)
{
	char key[POLICY_WORD_MAX];
	struct place at, value_at;
	struct setting_list list;
	struct raw_value raw = { .text = NULL };
	bool good = read_key(r, key, sizeof(key), &at);

	if (!next(r))
		return;
	value_at = place_of_event(r);
	if (r->event.type == YAML_SEQUENCE_START_EVENT) {
		good &= read_sequence(r, &(struct spelling){ .name = "it" }, &list);
		raw.list = &list;
	} else if (r->event.type == YAML_SCALAR_EVENT) {
		raw.text = scalar_text(r);
	} else {
		diag_add(r->diags, &value_at, "a member of users takes a value or a list");
		skip_node(r);
	}
	if (good && (raw.text || raw.list))
		user_put(row, key, &raw, &at, &value_at, r->diags);
}

/* The current event starts the list. */
static void read_users(struct reader *r)
{
	struct place at = place_of_event(r);

	if (r->event.type != YAML_SEQUENCE_START_EVENT) {
		if (r->event.type != YAML_SCALAR_EVENT || !scalar_is_null(&r->event))
			diag_add(r->diags, &at,
				 "users is a list: rows that begin with '- user: NAME' or '- group: NAME'");
		skip_node(r);
		return;
	}
	while (next(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
		json_t *row;

		at = place_of_event(r);
		if (r->event.type != YAML_MAPPING_START_EVENT)
			diag_add(r->diags, &at, "a row of users is made of 'key: value' lines");
		row = r->event.type == YAML_MAPPING_START_EVENT ? user_begin(&r->out->users, &at, r->diags) : NULL;
		if (!row) {
			skip_node(r);
			continue;
		}
		while (next(r) && r->event.type != YAML_MAPPING_END_EVENT)
			read_user_member(r, row);
		if (!r->stopped)
			user_end(row, &at, r->diags);
	}
}

enum { LINE_PRESET = SECTIONS_MAX, LINE_ENV_FILE, LINE_LEVELS, LINE_USERS, LINE_COUNT };

static void read_top_entry(struct reader *r, struct scope *sc, const char *key, const struct place *at)
{
	unsigned lines[TRUST_COUNT] = { 0 };
	struct scope levels = { .section_line = lines };

	if (str_eq(key, "preset")) {
		if (first_time(r, &sc->section_line[LINE_PRESET], key, at))
			read_preset(r);
	} else if (str_eq(key, "env_file")) {
		if (first_time(r, &sc->section_line[LINE_ENV_FILE], key, at))
			read_env_file(r);
	} else if (str_eq(key, "trust_levels")) {
		if (first_time(r, &sc->section_line[LINE_LEVELS], key, at))
			read_heading(r, &levels, key, read_level);
	} else if (str_eq(key, "users")) {
		if (first_time(r, &sc->section_line[LINE_USERS], key, at))
			read_users(r);
	} else {
		read_entry(r, sc, key, at);
	}
}

/* ---- the file ---------------------------------------------------------------------------------------------- */

static void read_root(struct reader *r)
{
	unsigned lines[LINE_COUNT] = { 0 };
	struct scope top = { .layer = &r->out->base, .section_line = lines };
	struct place at = place_of_event(r);

	if (r->event.type == YAML_MAPPING_START_EVENT) {
		read_mapping(r, &top, read_top_entry);
		return;
	}
	if (r->event.type != YAML_SCALAR_EVENT || !scalar_is_null(&r->event))
		diag_add(r->diags, &at, "a policy is made of 'key: value' lines");
	skip_node(r);
}

static void read_stream(struct reader *r)
{
	struct place at;

	/* stream start, then a document or the end */
	if (!next(r) || !next(r) || r->event.type == YAML_STREAM_END_EVENT)
		return;
	if (!next(r))
		return;
	read_root(r);
	/* document end, then the end */
	if (!next(r) || !next(r) || r->event.type == YAML_STREAM_END_EVENT)
		return;
	at = place_of_event(r);
	diag_add(r->diags, &at, "a second document starts here; a policy is one document");
}

static bool line_starts_at(const char *text, size_t i)
{
	static const char *const breaks[] = { "\n", "\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9" };

	if (i == 0 || (i == 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0))
		return true;
	for (size_t k = 0; k < ARRAY_LEN(breaks); k++) {
		size_t len = strlen(breaks[k]);

		if (i >= len && memcmp(text + i - len, breaks[k], len) == 0)
			return true;
	}
	return false;
}

/* Directives serve tags, which are refused, and libyaml compares each one with all before it: minutes for a megabyte. */
static bool check_directives(const struct reader *r)
{
	const char *end = r->text + r->len;

	for (const char *p = r->text; p < end && (p = memchr(p, '%', (size_t)(end - p))); p++) {
		struct place at;

		if (!line_starts_at(r->text, (size_t)(p - r->text)))
			continue;
		at = place_of_byte(r, (size_t)(p - r->text));
		diag_add(r->diags, &at, "directives (%%YAML, %%TAG) are not accepted in a policy");
		return false;
	}
	return true;
}

/* YAML is UTF-8 here; what is not is named by its place before the parser sees it. */
static bool check_bytes(const struct reader *r)
{
	size_t good = str_utf8_prefix(r->text, r->len);
	const char *nul = r->len ? memchr(r->text, '\0', r->len) : NULL;
	struct place at;

	if (nul && (size_t)(nul - r->text) < good) {
		at = place_of_byte(r, (size_t)(nul - r->text));
		diag_add(r->diags, &at, "holds a NUL byte; a policy is text");
		return false;
	}
	if (good < r->len) {
		at = place_of_byte(r, good);
		diag_add(r->diags, &at, "byte 0x%02x is not valid UTF-8", (unsigned char)r->text[good]);
		return false;
	}
	return true;
}

int yaml_parse(const char *path, const char *text, size_t len, struct file_layers *ret, struct policy_diags *diags,
	       struct brig_error *err)
{
	char shown[128];
	struct reader r = {
		.name = printable(path, shown, sizeof(shown)), .text = text, .len = len, .out = ret, .diags = diags
	};
	size_t before = diags->n;
	bool no_memory;

	if (!check_bytes(&r) || !check_directives(&r))
		return -BRIG_E_POLICY;
	if (!yaml_parser_initialize(&r.parser))
		return err_nomem(err);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	read_stream(&r);
	no_memory = r.parser.error == YAML_MEMORY_ERROR;
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	if (no_memory)
		return err_nomem(err);
	return diags->n == before ? 0 : -BRIG_E_POLICY;
}
