/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check_output.h"

#include <string.h>

#include "base/str.h"
#include "cli/frames.h"

struct check_format {
	const char *name;
	bool is_json;
	void (*add)(struct check_output *o, const struct checked *c);
	void (*end)(struct check_output *o, const char *rules);
};

/* How each severity is shown, and its effect on a run. */
static const struct look {
	const char *severity, *label;
	enum ui_color color;
	const char *effect;
} looks[] = {
	{ "CRITICAL", "critical", UI_RED, "blocks the run" },
	{ "HIGH", "high", UI_YELLOW, "is a warning" },
	{ "MEDIUM", "medium", UI_BOLD, "is only noted" },
	{ "LOW", "low", UI_BOLD, "is only noted" },
};

static const struct look *look_of(const char *severity)
{
	for (size_t i = 0; i < ARRAY_LEN(looks); i++)
		if (str_eq(looks[i].severity, severity))
			return &looks[i];
	return &looks[ARRAY_LEN(looks) - 1];
}

static size_t number(const json_t *object, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(object, name));

	return n > 0 ? (size_t)n : 0;
}

/* ---- text -------------------------------------------------------------------------------------- */

static void add_safe(struct check_output *o, const char *text, enum ui_color color)
{
	AUTO_BUF safe = BUF_INIT(UI_TEXT_MAX);

	ui_line(text, &safe);
	ui_paint(&o->out, o->has_color, color, buf_str(&safe));
}

static void add_note(struct check_output *o, size_t gutter, const char *label, const char *text)
{
	if (!*text)
		return;
	buf_addf(&o->out, " %*s ", (int)gutter, "");
	ui_paint(&o->out, o->has_color, UI_DIM, "=");
	buf_adds(&o->out, " ");
	ui_paint(&o->out, o->has_color, UI_BOLD, label);
	buf_adds(&o->out, ": ");
	add_safe(o, text, UI_PLAIN);
	buf_adds(&o->out, "\n");
}

void check_output_finding(struct check_output *o, const struct checked *c, const json_t *f)
{
	const struct look *look = look_of(json_string_value(json_object_get(f, "severity")));
	const struct frame_place at = { number(f, "line"), number(f, "column"), number(f, "end_line"),
					number(f, "end_column") };
	char rule[64], message[512], remedy[512], head[128], why[128];

	(void)document_text(f, "rule", rule, sizeof(rule));
	(void)document_text(f, "message", message, sizeof(message));
	(void)document_text(f, "remedy", remedy, sizeof(remedy));
	(void)snprintf(head, sizeof(head), "%s[%s]", look->label, rule);
	(void)snprintf(why, sizeof(why), "%s %s%s%s", look->severity, look->effect,
		       *o->level ? " at inspection level " : "", o->level);
	add_safe(o, c->name, UI_BOLD);
	buf_addf(&o->out, ":%zu:%zu: ", at.line, at.column);
	ui_paint(&o->out, o->has_color, look->color, head);
	buf_adds(&o->out, ": ");
	add_safe(o, message, UI_BOLD);
	buf_adds(&o->out, "\n");
	frame_show(c->text, c->len, &at, o->has_color, look->color, &o->out);
	add_note(o, frame_gutter(&at), "why", why);
	add_note(o, frame_gutter(&at), "help", remedy);
	buf_adds(&o->out, "\n");
}

static void text_add(struct check_output *o, const struct checked *c)
{
	size_t dropped = number(c->doc, "dropped"), i;
	const json_t *f;

	json_array_foreach(json_object_get(c->doc, "findings"), i, f) check_output_finding(o, c, f);
	if (dropped) {
		add_safe(o, c->name, UI_BOLD);
		buf_addf(&o->out, ": %zu more findings are not listed\n\n", dropped);
	}
	/* Results are shown before the next file is read. */
	(void)ui_put(STDOUT_FILENO, &o->out);
	o->out.len = 0;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void text_end(struct check_output *o, const char *rules UNUSED)
{
	const struct check_counts *n = &o->counts;
	size_t inspected = n->files - n->not_inspected;

	if (n->critical + n->high + n->lesser == 0) {
		buf_addf(&o->out, "brig: no findings in %zu text%s", inspected, plural(inspected));
	} else {
		buf_adds(&o->out, "brig: ");
		if (n->critical)
			buf_addf(&o->out, "%zu blocking, ", n->critical);
		if (n->high)
			buf_addf(&o->out, "%zu warning%s, ", n->high, plural(n->high));
		if (n->lesser)
			buf_addf(&o->out, "%zu remark%s, ", n->lesser, plural(n->lesser));
		buf_addf(&o->out, "in %zu text%s", inspected, plural(inspected));
	}
	if (o->level[0])
		buf_addf(&o->out, " at inspection level %s", o->level);
	if (n->not_inspected)
		buf_addf(&o->out, "; %zu not inspected: there is no inspector for %s", n->not_inspected,
			 n->not_inspected == 1 ? "its language" : "their language");
	if (n->critical + n->high)
		buf_adds(&o->out, "; 'brig explain RULE' tells more");
	buf_adds(&o->out, "\n");
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static void json_add(struct check_output *o, const struct checked *c)
{
	AUTO_FREE char *line = NULL;
	/* A name need not be UTF-8; invalid bytes become visible. */
	AUTO_BUF safe = BUF_INIT(UI_TEXT_MAX);

	ui_line(c->name, &safe);
	if (json_object_set_new(c->doc, "file", json_string(buf_str(&safe))) == 0)
		line = json_dumps(c->doc, JSON_COMPACT);
	if (!line) {
		o->out.no_memory = true;
		return;
	}
	buf_addf(&o->out, "%s\n", line);
}

static void json_end(struct check_output *o UNUSED, const char *rules UNUSED)
{
}

static const struct check_format formats[] = {
	{ "text", false, text_add, text_end },
	{ "json", true, json_add, json_end },
	{ "sarif", true, sarif_add, sarif_end },
};

const struct check_format *check_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (str_eq(formats[i].name, name))
			return &formats[i];
	return NULL;
}

void check_output_init(struct check_output *o, const struct check_format *format, bool has_color)
{
	*o = (struct check_output){ .format = format, .has_color = has_color, .out = BUF_INIT(UI_TEXT_MAX) };
	o->results = json_array();
	o->rules = json_array();
}

static void count(struct check_output *o, const json_t *doc)
{
	const json_t *f;
	size_t i;

	o->counts.files++;
	if (!document_true(doc, "inspected"))
		o->counts.not_inspected++;
	(void)document_text(doc, "level", o->level, sizeof(o->level));
	json_array_foreach(json_object_get(doc, "findings"), i, f)
	{
		const char *severity = json_string_value(json_object_get(f, "severity"));

		if (str_eq(severity, "CRITICAL"))
			o->counts.critical++;
		else if (str_eq(severity, "HIGH"))
			o->counts.high++;
		else
			o->counts.lesser++;
	}
}

void check_output_add(struct check_output *o, const struct checked *c)
{
	count(o, c->doc);
	o->format->add(o, c);
}

int check_output_end(struct check_output *o, const char *rules, int ok_status)
{
	o->format->end(o, rules);
	return ui_written(o->format->is_json ? ui_put_json(STDOUT_FILENO, &o->out) : ui_put(STDOUT_FILENO, &o->out),
			  ok_status);
}

void check_output_release(struct check_output *o)
{
	buf_release(&o->out);
	json_decref(o->results);
	json_decref(o->rules);
}
