/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sarif.c - findings in the Static Analysis Results Interchange Format 2.1.0, for code hosts and editors.
 *
 * One run with the rules that were met and one result per finding.  Columns count characters (code points), names
 * of files are relative URIs where the user gave relative paths.
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "cli/check_output.h"

#define SARIF_SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

static const char *level_of(const json_t *severity)
{
	const char *word = json_string_value(severity);

	return str_eq(word, "CRITICAL") ? "error" : str_eq(word, "HIGH") ? "warning" : "note";
}

/* A path as a URI reference: everything outside the unreserved characters and '/' is percent-encoded. */
static json_t *uri(const char *path)
{
	AUTO_BUF out = BUF_INIT(UI_TEXT_MAX);
	json_t *text;

	for (const char *c = path; *c; c++)
		if (isalnum((unsigned char)*c) || strchr("-._~/", *c))
			buf_add(&out, c, 1);
		else
			buf_addf(&out, "%%%02X", (unsigned char)*c);
	text = json_string(buf_str(&out));
	return text;
}

static size_t rule_index(struct check_output *o, const char *id)
{
	size_t n = json_array_size(o->rules);

	for (size_t i = 0; i < n; i++)
		if (str_eq(json_string_value(json_object_get(json_array_get(o->rules, i), "id")), id))
			return i;
	if (json_array_append_new(o->rules, json_pack("{s:s}", "id", id)) < 0)
		o->out.no_memory = true;
	return n;
}

static json_t *region(const json_t *f)
{
	return json_pack("{s:O, s:O, s:O, s:O}", "startLine", json_object_get(f, "line"), "startColumn",
			 json_object_get(f, "column"), "endLine", json_object_get(f, "end_line"), "endColumn",
			 json_object_get(f, "end_column"));
}

static json_t *result(struct check_output *o, const struct checked *c, const json_t *f)
{
	const char *rule = json_string_value(json_object_get(f, "rule"));
	json_t *location = json_pack("{s:{s:{s:o}, s:o}}", "physicalLocation", "artifactLocation", "uri", uri(c->name),
				     "region", region(f));

	return json_pack("{s:s, s:I, s:s, s:{s:O}, s:[o], s:{s:O, s:O, s:O}}", "ruleId", rule, "ruleIndex",
			 (json_int_t)rule_index(o, rule), "level", level_of(json_object_get(f, "severity")), "message",
			 "text", json_object_get(f, "message"), "locations", location, "properties", "severity",
			 json_object_get(f, "severity"), "name", json_object_get(f, "name"), "remedy",
			 json_object_get(f, "remedy"));
}

void sarif_add(struct check_output *o, const struct checked *c)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(c->doc, "findings"), i,
			   f) if (json_array_append_new(o->results, result(o, c, f)) < 0) o->out.no_memory = true;
}

/* Adds the descriptions of the rules that were met. */
static void describe(json_t *met, const json_t *all)
{
	const json_t *rule;
	json_t *mine;
	size_t i, k;

	json_array_foreach(met, i, mine) json_array_foreach(all, k, rule)
	{
		if (!json_equal(json_object_get(rule, "id"), json_object_get(mine, "id")))
			continue;
		(void)json_object_set_new(mine, "shortDescription",
					  json_pack("{s:O}", "text", json_object_get(rule, "message")));
		if (*json_string_value(json_object_get(rule, "remedy")))
			(void)json_object_set_new(mine, "help",
						  json_pack("{s:O}", "text", json_object_get(rule, "remedy")));
		(void)json_object_set_new(mine, "properties",
					  json_pack("{s:O, s:O}", "kind", json_object_get(rule, "kind"), "tags",
						    json_object_get(rule, "languages")));
	}
}

void sarif_end(struct check_output *o, const char *rules)
{
	json_t *all = rules ? json_loads(rules, 0, NULL) : NULL, *doc;
	AUTO_FREE char *text = NULL;

	describe(o->rules, json_object_get(all, "rules"));
	doc = json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:O}}, s:s, s:O}]}", "$schema", SARIF_SCHEMA, "version",
			"2.1.0", "runs", "tool", "driver", "name", "brig", "version", brig_version(), "rules", o->rules,
			"columnKind", "unicodeCodePoints", "results", o->results);
	text = doc ? json_dumps(doc, JSON_INDENT(1)) : NULL;
	json_decref(doc);
	json_decref(all);
	if (!text)
		o->out.no_memory = true;
	else
		buf_addf(&o->out, "%s\n", text);
}
