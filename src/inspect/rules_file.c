/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one rule file: YAML events in, rules out.  Used at build time for data/rules and at run time for users' files.
 *
 * Only libyaml's events are used, never its documents, so nothing can be expanded; anchors, aliases and tags are
 * refused. Reading stops at the first error: rules are a safety mechanism, so a file is loaded as a whole or not at
 * all.
 */
#include "inspect/rules_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"

const char *const rule_language_name[] = {
	[RULE_PYTHON] = "python", [RULE_JAVASCRIPT] = "javascript", [RULE_TYPESCRIPT] = "typescript",
	[RULE_GO] = "go",         [RULE_SHELL] = "shell",           [RULE_PATH] = "path",
};
const char *const rule_kind_name[] = {
	[RULE_MODULE] = "module",   [RULE_MODULE_ALLOW] = "module-allow",
	[RULE_BUILTIN] = "builtin", [RULE_ATTRIBUTE] = "attribute",
	[RULE_MEMBER] = "member",   [RULE_MEMBER_ALLOW] = "member-allow",
	[RULE_COMMAND] = "command", [RULE_COMMAND_ALLOW] = "command-allow",
	[RULE_PATH_DENY] = "path",  [RULE_DIRECTIVE] = "directive",
	[RULE_CHECK] = "check",
};
static_assert(ARRAY_LEN(rule_language_name) == RULE_LANGUAGE_COUNT, "rule_language_name[] misses one");
static_assert(ARRAY_LEN(rule_kind_name) == RULE_KIND_COUNT, "rule_kind_name[] misses one");

/* ---- memory: a chain of blocks, freed together ------------------------------------------------------------ */

struct rule_memory {
	struct rule_memory *next;
	_Alignas(max_align_t) char data[];
};

void *rule_list_keep(struct rule_list *list, size_t size)
{
	struct rule_memory *m = calloc(1, sizeof(*m) + size);

	if (!m)
		return NULL;
	m->next = list->memory;
	list->memory = m;
	return m->data;
}

void rule_list_release(struct rule_list *list)
{
	while (list->memory) {
		struct rule_memory *next = list->memory->next;

		free(list->memory);
		list->memory = next;
	}
	free(list->row);
	*list = (struct rule_list){ 0 };
}

/* ---- events --------------------------------------------------------------------------------------------- */

struct reader {
	yaml_parser_t parser;
	yaml_event_t event; /* the current event */
	const char *name;
	struct rule_list *out;
	struct brig_error *err;
};

static unsigned line_here(const struct reader *r)
{
	return (unsigned)r->event.start_mark.line + 1;
}

/* A word of the file, made safe for a message. */
static const char *shown(const char *word, char dst[64])
{
	size_t n = 0;

	for (; n < 60 && word[n]; n++)
		dst[n] = (word[n] >= 0x20 && word[n] < 0x7f) ? word[n] : '?';
	dst[n] = '\0';
	return dst;
}

static int complain(struct reader *r, unsigned line, const char *fmt, ...) PRINTF(3, 4);
static int complain(struct reader *r, unsigned line, const char *fmt, ...)
{
	char why[300];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return err_set(r->err, BRIG_E_POLICY, 0, "%s:%u: %s", r->name, line, why);
}

static int complain_choice(struct reader *r, const char *what, const char *word, const char *const *choices, size_t n)
{
	char safe[64];
	const char *near = str_nearest(word, choices, n);

	return complain(r, line_here(r), "unknown %s '%s'%s%s%s", what, shown(word, safe),
			near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int next(struct reader *r)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	yaml_event_delete(&r->event);
	if (!yaml_parser_parse(&r->parser, &r->event)) {
		if (r->parser.error == YAML_MEMORY_ERROR)
			return err_nomem(r->err);
		return complain(r, (unsigned)r->parser.problem_mark.line + 1, "not YAML: %s",
				r->parser.problem ? r->parser.problem : "syntax error");
	}
	switch (r->event.type) {
	case YAML_ALIAS_EVENT:
		return complain(r, line_here(r), "aliases (*name) are not accepted; write the value out");
	case YAML_SCALAR_EVENT:
		anchor = r->event.data.scalar.anchor;
		tag = r->event.data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = r->event.data.sequence_start.anchor;
		tag = r->event.data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = r->event.data.mapping_start.anchor;
		tag = r->event.data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor || tag)
		return complain(r, line_here(r), "anchors (&name) and tags (!name) are not accepted");
	return 0;
}

/* The current event as a string that lives as long as the list.  NULL: an error was reported. */
static const char *text_here(struct reader *r, const char *what, size_t max)
{
	const char *s = (const char *)r->event.data.scalar.value;
	size_t len = r->event.data.scalar.length;
	char *copy;

	if (r->event.type != YAML_SCALAR_EVENT)
		return (void)complain(r, line_here(r), "%s takes a text here", what), NULL;
	if (len == 0 || len > max || memchr(s, '\0', len))
		return (void)complain(r, line_here(r), "%s is a text of 1 to %zu bytes without NUL", what, max), NULL;
	copy = rule_list_keep(r->out, len + 1);
	if (!copy)
		return (void)err_nomem(r->err), NULL;
	memcpy(copy, s, len);
	return copy;
}

static size_t index_of(const char *const *names, size_t n, const char *word)
{
	size_t i = 0;

	while (i < n && !str_eq(names[i], word))
		i++;
	return i;
}

/* ---- values --------------------------------------------------------------------------------------------- */

struct field;
typedef int (*read_fn)(struct reader *r, struct rule *rule, const struct field *f);

struct field {
	const char *name;
	read_fn read;
	size_t at, at_count; /* offsets in struct rule, for strings and lists of strings */
	size_t max, max_count;
};

static int read_text(struct reader *r, struct rule *rule, const struct field *f)
{
	const char *text = text_here(r, f->name, f->max);

	if (!text)
		return -BRIG_E_POLICY;
	memcpy((char *)rule + f->at, &text, sizeof(text));
	return 0;
}

static int read_id(struct reader *r, struct rule *rule, const struct field *f)
{
	const char *id = text_here(r, f->name, f->max);

	if (!id)
		return -BRIG_E_POLICY;
	if (strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(id) || id[0] < 'a' || id[0] > 'z')
		return complain(r, line_here(r), "an id is made of lower-case letters, digits and dashes");
	for (size_t i = 0; i < r->out->n; i++)
		if (str_eq(r->out->row[i].id, id))
			return complain(r, line_here(r), "rule %s appears twice, first in line %u", id,
					r->out->row[i].line);
	rule->id = id;
	return 0;
}

/* The id of an existing rule, which gets more names. */
static int read_extend(struct reader *r, struct rule *rule, const struct field *f)
{
	rule->extends = true;
	return read_id(r, rule, f);
}

/* Reads "[a, b]" or one word into a list in the rules' memory. */
static int read_list(struct reader *r, struct rule *rule, const struct field *f)
{
	AUTO_FREE const char **item = calloc(f->max_count, sizeof(*item));
	const char **kept;
	size_t n = 0;
	bool one = r->event.type == YAML_SCALAR_EVENT;
	int rc = 0;

	if (!item)
		return err_nomem(r->err);
	if (!one && r->event.type != YAML_SEQUENCE_START_EVENT)
		return complain(r, line_here(r), "%s takes a list", f->name);
	if (!one)
		rc = next(r);
	for (; rc == 0 && r->event.type != YAML_SEQUENCE_END_EVENT; n++) {
		if (n == f->max_count)
			return complain(r, line_here(r), "%s takes %zu entries at most", f->name, f->max_count);
		item[n] = text_here(r, f->name, f->max);
		if (!item[n])
			return -BRIG_E_POLICY;
		if (one) {
			n++;
			break;
		}
		rc = next(r);
	}
	if (rc < 0)
		return rc;
	kept = rule_list_keep(r->out, (n + 1) * sizeof(*kept));
	if (!kept)
		return err_nomem(r->err);
	memcpy(kept, item, n * sizeof(*kept));
	memcpy((char *)rule + f->at, &kept, sizeof(kept));
	memcpy((char *)rule + f->at_count, &n, sizeof(n));
	return 0;
}

static int read_languages(struct reader *r, struct rule *rule, const struct field *f)
{
	struct rule words = { 0 };
	const struct field list = {
		f->name, NULL, offsetof(struct rule, names), offsetof(struct rule, n_names), 16, RULE_LANGUAGE_COUNT
	};
	int rc = read_list(r, &words, &list);

	for (size_t i = 0; rc == 0 && i < words.n_names; i++) {
		size_t lang = index_of(rule_language_name, RULE_LANGUAGE_COUNT, words.names[i]);

		if (lang == RULE_LANGUAGE_COUNT && str_eq(words.names[i], "all"))
			rule->languages |= (1u << RULE_LANGUAGE_COUNT) - 1;
		else if (lang == RULE_LANGUAGE_COUNT)
			return complain_choice(r, "language", words.names[i], rule_language_name, RULE_LANGUAGE_COUNT);
		else
			rule->languages |= 1u << lang;
	}
	return rc;
}

static int read_kind(struct reader *r, struct rule *rule, const struct field *f)
{
	const char *word = text_here(r, f->name, f->max);
	size_t kind;

	if (!word)
		return -BRIG_E_POLICY;
	kind = index_of(rule_kind_name, RULE_KIND_COUNT, word);
	if (kind == RULE_KIND_COUNT)
		return complain_choice(r, "kind", word, rule_kind_name, RULE_KIND_COUNT);
	rule->kind = (enum rule_kind)kind;
	return 0;
}

static int read_severity_word(struct reader *r, enum severity *ret)
{
	const char *word = text_here(r, "severity", 16);
	size_t severity;

	if (!word)
		return -BRIG_E_POLICY;
	severity = index_of(severity_name, SEVERITY_COUNT, word);
	if (severity == SEVERITY_COUNT)
		return complain_choice(r, "severity", word, severity_name, SEVERITY_COUNT);
	*ret = (enum severity)severity;
	return 0;
}

/* One pair of {strict: CRITICAL, ...}; the key is the current event. */
static int read_level(struct reader *r, struct rule *rule, unsigned *seen)
{
	const char *level = text_here(r, "severity", 16);
	size_t t;
	int rc;

	if (!level)
		return -BRIG_E_POLICY;
	t = index_of(inspection_name, INSPECTION_COUNT, level);
	if (t == INSPECTION_COUNT || t == INSPECTION_OFF)
		return complain_choice(r, "level of inspection", level, inspection_name + 1, INSPECTION_COUNT - 1);
	if (*seen & 1u << t)
		return complain(r, line_here(r), "severity names %s twice", level);
	*seen |= 1u << t;
	rc = next(r);
	return rc < 0 ? rc : read_severity_word(r, &rule->severity[t]);
}

static int read_severity(struct reader *r, struct rule *rule, const struct field *f)
{
	enum severity all = SEVERITY_NONE;
	unsigned seen = 0;
	int rc;

	if (r->event.type == YAML_SCALAR_EVENT) {
		rc = read_severity_word(r, &all);
		for (size_t t = INSPECTION_REPORT; t < INSPECTION_COUNT; t++)
			rule->severity[t] = all;
		return rc;
	}
	if (r->event.type != YAML_MAPPING_START_EVENT)
		return complain(r, line_here(r), "%s takes one word, or {strict: ..., guard: ..., report: ...}",
				f->name);
	while ((rc = next(r)) == 0 && r->event.type != YAML_MAPPING_END_EVENT) {
		rc = read_level(r, rule, &seen);
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int read_flag(struct reader *r, struct rule *rule, const struct field *f)
{
	static const char *const words[] = { "false", "true" };
	const char *word = text_here(r, f->name, f->max);
	size_t value;
	bool flag;

	if (!word)
		return -BRIG_E_POLICY;
	value = index_of(words, ARRAY_LEN(words), word);
	if (value == ARRAY_LEN(words))
		return complain_choice(r, f->name, word, words, ARRAY_LEN(words));
	flag = value == 1;
	memcpy((char *)rule + f->at, &flag, sizeof(flag));
	return 0;
}

/* ---- one rule ------------------------------------------------------------------------------------------- */

enum { ID, LANGUAGES, KIND, NAMES, SEVERITY, MESSAGE, REMEDY, MATCH, NO_MATCH, NETWORK, EXTEND, FIELD_COUNT };

#define AT(member) offsetof(struct rule, member)
static const struct field fields[] = {
	[ID] = { "id", read_id, 0, 0, RULE_ID_LEN, 0 },
	[LANGUAGES] = { "languages", read_languages, 0, 0, 0, 0 },
	[KIND] = { "kind", read_kind, 0, 0, 16, 0 },
	[NAMES] = { "names", read_list, AT(names), AT(n_names), RULE_NAME_LEN, RULE_NAMES_MAX },
	[SEVERITY] = { "severity", read_severity, 0, 0, 0, 0 },
	[MESSAGE] = { "message", read_text, AT(message), 0, RULE_MESSAGE_LEN, 0 },
	[REMEDY] = { "remedy", read_text, AT(remedy), 0, RULE_REMEDY_LEN, 0 },
	[MATCH] = { "match", read_list, AT(match), AT(n_match), RULE_EXAMPLE_LEN, RULE_EXAMPLES_MAX },
	[NO_MATCH] = { "no_match", read_list, AT(no_match), AT(n_no_match), RULE_EXAMPLE_LEN, RULE_EXAMPLES_MAX },
	[NETWORK] = { "network", read_flag, AT(network), 0, 8, 0 },
	[EXTEND] = { "extend", read_extend, 0, 0, RULE_ID_LEN, 0 },
};
static_assert(ARRAY_LEN(fields) == FIELD_COUNT, "fields[] misses one");

#define BIT(f) (1u << (f))
#define ALWAYS (BIT(ID) | BIT(LANGUAGES) | BIT(KIND) | BIT(NAMES))
#define SPOKEN (ALWAYS | BIT(SEVERITY) | BIT(MESSAGE) | BIT(REMEDY))
#define PROVEN (SPOKEN | BIT(MATCH) | BIT(NO_MATCH))
/*
 * An exception needs no message, because the rule that it silences has one; a check's examples may not fit on one line,
 * so they are optional.
 */
static const unsigned wanted[RULE_KIND_COUNT] = {
	[RULE_MODULE] = PROVEN,    [RULE_MODULE_ALLOW] = PROVEN, [RULE_BUILTIN] = PROVEN, [RULE_ATTRIBUTE] = PROVEN,
	[RULE_MEMBER] = PROVEN,    [RULE_MEMBER_ALLOW] = ALWAYS, [RULE_COMMAND] = PROVEN, [RULE_COMMAND_ALLOW] = ALWAYS,
	[RULE_PATH_DENY] = PROVEN, [RULE_DIRECTIVE] = PROVEN,    [RULE_CHECK] = SPOKEN,
};

#define OF_EXTENSION (BIT(EXTEND) | BIT(NAMES) | BIT(MATCH) | BIT(NO_MATCH))

static int check_names(struct reader *r, const struct rule *rule)
{
	if (rule->n_names == 0)
		return complain(r, rule->line, "rule %s has no names", rule->id);
	for (size_t i = 0; i < rule->n_names; i++)
		for (const char *c = rule->names[i]; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				return complain(r, rule->line, "rule %s: a name holds a control character", rule->id);
	return 0;
}

static int check_extension(struct reader *r, const struct rule *rule, unsigned seen)
{
	for (size_t f = 0; f < FIELD_COUNT; f++)
		if (seen & BIT(f) & ~OF_EXTENSION)
			return complain(r, rule->line,
					"what extends %s has names, match and no_match; '%s' stays as it is there",
					rule->id, fields[f].name);
	return check_names(r, rule);
}

static int check_whole(struct reader *r, const struct rule *rule, unsigned seen)
{
	if (rule->extends)
		return check_extension(r, rule, seen);
	if (!rule->languages && (seen & BIT(LANGUAGES)))
		return complain(r, rule->line, "rule %s names no language", rule->id ? rule->id : "");
	for (size_t f = 0; f < FIELD_COUNT; f++)
		if (!(seen & BIT(f)) && (wanted[rule->kind] & BIT(f)))
			return complain(r, rule->line, "rule %s lacks '%s'", rule->id ? rule->id : "without id",
					fields[f].name);
	return check_names(r, rule);
}

/* One "key: value" of a rule; the key is the current event. */
static int read_field(struct reader *r, struct rule *rule, unsigned *seen)
{
	const char *names[FIELD_COUNT];
	const char *key;
	size_t f;
	int rc;

	for (f = 0; f < FIELD_COUNT; f++)
		names[f] = fields[f].name;
	key = text_here(r, "a rule", 64);
	if (!key)
		return -BRIG_E_POLICY;
	f = index_of(names, FIELD_COUNT, key);
	if (f == FIELD_COUNT)
		return complain_choice(r, "field", key, names, FIELD_COUNT);
	if (*seen & BIT(f))
		return complain(r, line_here(r), "%s appears twice in one rule", key);
	*seen |= BIT(f);
	rc = next(r);
	return rc < 0 ? rc : fields[f].read(r, rule, &fields[f]);
}

static int add_row(struct reader *r, const struct rule *rule)
{
	struct rule_list *list = r->out;

	if (list->n == RULES_ROWS_MAX)
		return complain(r, rule->line, "a file holds %d rules at most", RULES_ROWS_MAX);
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 32;
		struct rule *row = reallocarray(list->row, cap, sizeof(*row));

		if (!row)
			return err_nomem(r->err);
		list->row = row;
		list->cap = cap;
	}
	list->row[list->n++] = *rule;
	return 0;
}

static int read_rule(struct reader *r, const char *file)
{
	struct rule rule = { .file = file, .line = line_here(r), .message = "", .remedy = "" };
	unsigned seen = 0;
	int rc;

	if (r->event.type != YAML_MAPPING_START_EVENT)
		return complain(r, rule.line, "a file of rules is a list; each starts with '- id: ...'");
	while ((rc = next(r)) == 0 && r->event.type != YAML_MAPPING_END_EVENT) {
		rc = read_field(r, &rule, &seen);
		if (rc < 0)
			return rc;
	}
	if (rc == 0)
		rc = check_whole(r, &rule, seen);
	return rc < 0 ? rc : add_row(r, &rule);
}

/* ---- the file ------------------------------------------------------------------------------------------- */

static int read_rules(struct reader *r)
{
	size_t len = strlen(r->name) + 1;
	char *file = rule_list_keep(r->out, len);
	int rc;

	if (!file)
		return err_nomem(r->err);
	memcpy(file, r->name, len);
	/* stream start, document start (or nothing), the list */
	if ((rc = next(r)) < 0 || (rc = next(r)) < 0 || r->event.type == YAML_STREAM_END_EVENT || (rc = next(r)) < 0)
		return rc;
	if (r->event.type != YAML_SEQUENCE_START_EVENT)
		return complain(r, line_here(r), "a file of rules is a list; each starts with '- id: ...'");
	while ((rc = next(r)) == 0 && r->event.type != YAML_SEQUENCE_END_EVENT) {
		rc = read_rule(r, file);
		if (rc < 0)
			return rc;
	}
	if (rc < 0 || (rc = next(r)) < 0 || (rc = next(r)) < 0)
		return rc;
	if (r->event.type != YAML_STREAM_END_EVENT)
		return complain(r, line_here(r), "a second document starts here; a file of rules is one");
	return 0;
}

static unsigned line_of_byte(const char *text, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += text[i] == '\n';
	return line;
}

/*
 * Refuses YAML directives: they are only of use with tags, which are refused, and libyaml takes quadratic time for many
 * of them.
 */
static int check_bytes(struct reader *r, const char *text, size_t len)
{
	size_t good = str_utf8_prefix(text, len);
	const char *nul = len ? memchr(text, '\0', len) : NULL;

	if (len > RULES_FILE_MAX)
		return complain(r, 1, "longer than %u bytes", (unsigned)RULES_FILE_MAX);
	if (nul && (size_t)(nul - text) < good)
		return complain(r, line_of_byte(text, (size_t)(nul - text)), "holds a NUL byte");
	if (good < len)
		return complain(r, line_of_byte(text, good), "byte 0x%02x is not valid UTF-8",
				(unsigned char)text[good]);
	for (size_t i = 0; i < len; i++)
		if (text[i] == '%' && (i == 0 || text[i - 1] == '\n' || text[i - 1] == '\r'))
			return complain(r, line_of_byte(text, i), "directives (%%YAML, %%TAG) are not accepted");
	return 0;
}

int rule_list_parse(const char *name, const char *text, size_t len, struct rule_list *ret, struct brig_error *err)
{
	struct reader r = { .name = name, .out = ret, .err = err };
	int rc;

	*ret = (struct rule_list){ 0 };
	rc = check_bytes(&r, text, len);
	if (rc < 0)
		return rc;
	if (!yaml_parser_initialize(&r.parser))
		return err_nomem(err);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	rc = read_rules(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	if (rc < 0)
		rule_list_release(ret);
	return rc;
}
