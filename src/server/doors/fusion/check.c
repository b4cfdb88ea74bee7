/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - checks that a request has all required members (fusion.h)
 *
 * The original reports all errors at once, each with its location; its clients print them.
 */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/fusion/fusion.h"

#define ERRORS_MAX 64

/* ---- members --------------------------------------------------------------------------------------------------- */

bool fusion_is_text(const json_t *v)
{
	return json_is_string(v);
}

bool fusion_is_maybe_text(const json_t *v)
{
	return json_is_string(v) || json_is_null(v);
}

bool fusion_is_number(const json_t *v)
{
	return json_is_number(v);
}

bool fusion_is_whole(const json_t *v)
{
	return json_is_number(v) && json_number_value(v) == trunc(json_number_value(v));
}

bool fusion_is_maybe_number(const json_t *v)
{
	return json_is_number(v) || json_is_null(v);
}

bool fusion_is_files(const json_t *v)
{
	const json_t *item;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)v, key, item) if (!fusion_is_maybe_text(item)) return false;
	return json_is_object(v);
}

bool fusion_is_list(const json_t *v)
{
	const json_t *item;
	size_t i;

	json_array_foreach(v, i, item) if (!json_is_string(item)) return false;
	return json_is_array(v);
}

bool fusion_is_object(const json_t *v)
{
	return json_is_object(v);
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

/* Takes the input and the location below the body; place may be NULL. */
static json_t *error_at(const char *type, json_t *place, const char *msg, json_t *input)
{
	json_t *loc = json_pack("[s]", "body");

	(void)json_array_extend(loc, place);
	json_decref(place);
	return json_pack("{s:s, s:o, s:s, s:o}", "type", type, "loc", loc, "msg", msg, "input",
			 input ? input : json_null());
}

static void refuse(struct client *c, json_t *error)
{
	door_reply(c, 422, json_pack("{s:[o]}", "detail", error));
}

void fusion_refuse(struct client *c, const char *type, const char *field, const char *msg, json_t *input)
{
	refuse(c, error_at(type, json_pack("[s]", field), msg, input));
}

void fusion_refuse_body(struct client *c, const char *why)
{
	json_t *error;

	if (c->req->body.len == 0) {
		refuse(c, error_at("missing", json_array(), "Field required", json_null()));
		return;
	}
	error = error_at("json_invalid", json_pack("[i]", 0), "JSON decode error", json_object());
	(void)json_object_set_new(error, "ctx", json_pack("{s:s%}", "error", why, str_utf8_prefix(why, strlen(why))));
	refuse(c, error);
}

/* Adds an error for each item of a list, or of the files, that is not a string. */
static void add_items(json_t *errors, const struct fusion_member *row, json_t *value)
{
	json_t *item;
	const char *key;
	size_t i;

	json_array_foreach(value, i, item) if (!json_is_string(item) && json_array_size(errors) < ERRORS_MAX)(void)
		json_array_append_new(errors, error_at("string_type", json_pack("[s, i]", row->name, (int)i),
						       "Input should be a valid string", json_incref(item)));
	json_object_foreach(value, key, item) if (!fusion_is_maybe_text(item) && json_array_size(errors) < ERRORS_MAX)(
		void) json_array_append_new(errors, error_at("string_type", json_pack("[s, s]", row->name, key),
							     "Input should be a valid string", json_incref(item)));
}

static void add_error(json_t *errors, const struct fusion_member *row, json_t *value)
{
	bool is_list = row->is == fusion_is_list && json_is_array(value);
	bool is_files = row->is == fusion_is_files && json_is_object(value);
	bool is_part = row->is == fusion_is_whole && json_is_number(value);

	if (is_list || is_files)
		add_items(errors, row, value);
	else
		(void)json_array_append_new(
			errors,
			error_at(is_part ? "int_from_float" : row->type, json_pack("[s]", row->name),
				 is_part ? "Input should be a valid integer, got a number with a fractional part"
					 : row->msg,
				 json_incref(value)));
}

/*
 * The original accepts numbers that are written as strings, and booleans: both are converted to a number in doc. False:
 * the string is not a number, and an error was added. For an integer, the row's is() is fusion_is_whole().
 */
static bool read_number(json_t *errors, json_t *doc, const struct fusion_member *row, json_t *value)
{
	bool is_whole = row->is == fusion_is_whole;
	const char *text = json_string_value(value);
	double number;
	char *end;

	if (!is_whole && row->is != fusion_is_number && row->is != fusion_is_maybe_number)
		return true;
	if (json_is_boolean(value))
		(void)json_object_set_new(doc, row->name, json_integer(json_is_true(value)));
	if (!text)
		return true;
	number = strtod(text, &end);
	if (end > text && *end == '\0' && isfinite(number) && (!is_whole || number == trunc(number))) {
		(void)json_object_set_new(doc, row->name, json_real(number));
		return true;
	}
	(void)json_array_append_new(
		errors, error_at(is_whole ? "int_parsing" : "float_parsing", json_pack("[s]", row->name),
				 is_whole ? "Input should be a valid integer, unable to parse string as an integer"
					  : "Input should be a valid number, unable to parse string as a number",
				 json_incref(value)));
	return false;
}

static void check_member(json_t *errors, json_t *doc, const struct fusion_member *row)
{
	json_t *value = json_object_get(doc, row->name);

	if (!value && row->must)
		(void)json_array_append_new(
			errors, error_at("missing", json_pack("[s]", row->name), "Field required", json_incref(doc)));
	if (!value || !read_number(errors, doc, row, value))
		return;
	value = json_object_get(doc, row->name);
	if (!row->is(value))
		add_error(errors, row, value);
}

bool fusion_check(struct client *c, json_t *doc, const struct fusion_member *rows, size_t n)
{
	json_t *errors;

	if (!json_is_object(doc)) {
		refuse(c, error_at("model_attributes_type", json_array(),
				   "Input should be a valid dictionary or object to extract fields from",
				   json_incref(doc)));
		return false;
	}
	errors = json_array();
	for (size_t k = 0; k < n; k++)
		check_member(errors, doc, &rows[k]);
	if (json_array_size(errors) > 0) {
		door_reply(c, 422, json_pack("{s:o}", "detail", errors));
		return false;
	}
	json_decref(errors);
	return true;
}
