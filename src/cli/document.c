/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/document.h"

#include <stdio.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/events.h"

int document_print(const char *json, int ok_status)
{
	AUTO_BUF line = BUF_INIT(SIZE_MAX / 2);

	buf_adds(&line, json);
	buf_adds(&line, "\n");
	return ui_written(ui_put_json(STDOUT_FILENO, &line), ok_status);
}

static int print_event(const char *json, int status)
{
	struct events e;

	events_init(&e);
	return events_end(&e, json, status);
}

int document_refusal(enum document_form form, const struct brig_error *why, int status)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig_result *r = NULL;
	AUTO_TEXT json = NULL;
	int rc;

	if (form == DOCUMENT_TEXT)
		return status;
	rc = brig_result_from_error(why, &r, &err);
	if (rc == 0)
		rc = brig_result_json(r, &json, &err);
	brig_result_free(r);
	if (rc < 0)
		return ui_fail(&err);
	return form == DOCUMENT_EVENTS ? print_event(json, status) : document_print(json, status);
}

json_t *document_read(const char *json)
{
	json_error_t why;
	/* A program's output may contain NUL bytes, which are \u0000 in the document. */
	json_t *doc = json_loads(json, JSON_ALLOW_NUL, &why);

	if (!doc)
		ui_say("the library handed out a document that cannot be read: %s", why.text);
	return doc;
}

int document_show(const struct document_view *view, const char *json, int status)
{
	json_t *doc;

	if (view->json && !view->not_ok)
		return document_print(json, status);
	doc = document_read(json);
	if (!doc)
		return EXIT_FAILED;
	if (view->not_ok && !document_true(doc, "ok"))
		status = view->not_ok;
	status = view->json ? document_print(json, status) : view->show(doc, view->values, status);
	json_decref(doc);
	return status;
}

int document_view(const struct document_view *view)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	int rc = brig_open(&view->opts, &b, &err);

	if (rc < 0)
		return command_open_failed(view->opts.policy_file, &err);
	rc = view->ask(b, view->values, &json, &err);
	brig_close(b);
	return rc < 0 ? ui_fail(&err) : document_show(view, json, rc);
}

void document_table(const struct document_table *how, const json_t *rows, bool empty_too, bool no_color,
		    struct buf *out)
{
	struct ui_table table = { .n_columns = how->n_columns };
	const json_t *row;
	size_t i;

	if (json_array_size(rows) == 0 && !empty_too)
		return;
	for (i = 0; i < how->n_columns; i++)
		ui_table_add(&table, how->titles[i], UI_BOLD);
	json_array_foreach(rows, i, row) how->add(&table, row);
	ui_table_show(&table, ui_has_color(STDOUT_FILENO, no_color), out);
	ui_table_release(&table);
}

static void add_value(struct buf *out, const json_t *value)
{
	const json_t *item;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_STRING:
		buf_adds(out, json_string_value(value));
		break;
	case JSON_INTEGER:
		buf_addf(out, "%lld", (long long)json_integer_value(value));
		break;
	case JSON_REAL:
		buf_addf(out, "%g", json_real_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		buf_adds(out, json_is_true(value) ? "yes" : "no");
		break;
	case JSON_ARRAY:
		json_array_foreach(value, i, item)
		{
			buf_adds(out, i > 0 ? ", " : "");
			add_value(out, item);
		}
		break;
	case JSON_OBJECT:
	case JSON_NULL:
		break;
	}
}

const char *document_text(const json_t *object, const char *name, char *dst, size_t size)
{
	const json_t *value = json_object_get(object, name);
	AUTO_BUF text = BUF_INIT(64 * KiB), safe = BUF_INIT(size - 1);

	if (value)
		add_value(&text, value);
	ui_line(buf_str(&text), &safe);
	safe.len = str_utf8_prefix(buf_str(&safe), safe.len); /* does not cut a character in half */
	(void)snprintf(dst, size, "%.*s", (int)safe.len, buf_str(&safe));
	return dst;
}

bool document_true(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}
