/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_shared/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define PLACE_MAX 120
#define WORD_MAX  (128 * 1024) /* longer strings are passed to a child by descriptor and may hold any byte */
/* jansson iterates over objects through non-const pointers; nothing is modified here. */
#define WALKED(object) ((json_t *)(uintptr_t)(object))

static int check(const json_t *schema, const json_t *value, const char *place, struct brig_error *err);

static bool is_of_type(const json_t *value, const char *type)
{
	return str_eq(type, "object")    ? json_is_object(value)
	       : str_eq(type, "array")   ? json_is_array(value)
	       : str_eq(type, "string")  ? json_is_string(value)
	       : str_eq(type, "integer") ? json_is_integer(value)
	       : str_eq(type, "number")  ? json_is_number(value)
	       : str_eq(type, "boolean") ? json_is_boolean(value)
					 : json_is_null(value);
}

/* "type" is one word or a list of them. */
static bool type_fits(const json_t *type, const json_t *value)
{
	const json_t *one;
	size_t i;

	if (json_is_string(type))
		return is_of_type(value, json_string_value(type));
	json_array_foreach(type, i, one) if (is_of_type(value, json_string_value(one))) return true;
	return !type;
}

static void list_words(const json_t *words, struct buf *out)
{
	const json_t *word;
	size_t i;

	json_array_foreach(words, i, word) buf_addf(out, "%s%s", i > 0 ? ", " : "", json_string_value(word));
}

static int check_type(const json_t *schema, const json_t *value, const char *place, struct brig_error *err)
{
	const json_t *type = json_object_get(schema, "type");
	AUTO_BUF words = BUF_INIT(128);

	if (type_fits(type, value))
		return 0;
	if (json_is_string(type))
		buf_adds(&words, json_string_value(type));
	else
		list_words(type, &words);
	return err_set(err, BRIG_E_USAGE, 0, "%s must be of type %s", place, buf_str(&words));
}

static int check_enum(const json_t *schema, const json_t *value, const char *place, struct brig_error *err)
{
	const json_t *allowed = json_object_get(schema, "enum"), *one;
	AUTO_BUF words = BUF_INIT(256);
	size_t i;

	if (!allowed)
		return 0;
	json_array_foreach(allowed, i, one) if (json_equal(one, value)) return 0;
	list_words(allowed, &words);
	return err_set(err, BRIG_E_USAGE, 0, "%s must be one of: %s", place, buf_str(&words));
}

/* Checks a number against "minimum" and "maximum", or a length against the pair for its type. */
static int check_range(const json_t *schema, const char *least, const char *most, double value, const char *what,
		       const char *place, struct brig_error *err)
{
	const json_t *low = least ? json_object_get(schema, least) : NULL, *high = json_object_get(schema, most);

	if (low && value < json_number_value(low))
		return err_set(err, BRIG_E_USAGE, 0, "%s must %s at least %.15g%s", place, *what ? "have" : "be",
			       json_number_value(low), what);
	if (high && value > json_number_value(high))
		return err_set(err, BRIG_E_USAGE, 0, "%s must %s at most %.15g%s", place, *what ? "have" : "be",
			       json_number_value(high), what);
	return 0;
}

static int check_size(const json_t *schema, const json_t *value, const char *place, struct brig_error *err)
{
	if (json_is_number(value))
		return check_range(schema, "minimum", "maximum", json_number_value(value), "", place, err);
	if (json_is_string(value) && json_number_value(json_object_get(schema, "maxLength")) <= WORD_MAX &&
	    strlen(json_string_value(value)) != json_string_length(value))
		return err_set(err, BRIG_E_USAGE, 0, "%s must have no NUL in it", place);
	if (json_is_string(value))
		return check_range(schema, "minLength", "maxLength", (double)json_string_length(value), " bytes", place,
				   err);
	if (json_is_array(value))
		return check_range(schema, "minItems", "maxItems", (double)json_array_size(value), " items", place,
				   err);
	if (json_is_object(value))
		return check_range(schema, NULL, "maxProperties", (double)json_object_size(value), " members", place,
				   err);
	return 0;
}

static int check_required(const json_t *schema, const json_t *value, const char *place, struct brig_error *err)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, name)
	{
		if (!json_object_get(value, json_string_value(name)))
			return err_set(err, BRIG_E_USAGE, 0, "%s is missing in %s", json_string_value(name), place);
	}
	return 0;
}

static int unknown_member(const json_t *known, const char *name, const char *place, struct brig_error *err)
{
	AUTO_BUF names = BUF_INIT(300);
	const char *key;
	json_t *one;

	json_object_foreach(WALKED(known), key, one) buf_addf(&names, "%s%s", names.len ? ", " : "", key);
	return err_set(err, BRIG_E_USAGE, 0, "'%.60s' is not known in %s; known are: %s", name, place, buf_str(&names));
}

static int check_members(const json_t *schema, const json_t *value, const char *place, struct brig_error *err)
{
	const json_t *properties = json_object_get(schema, "properties"),
		     *more = json_object_get(schema, "additionalProperties");
	const char *name;
	json_t *member;

	json_object_foreach(WALKED(value), name, member)
	{
		const json_t *known = json_object_get(properties, name);
		char where[PLACE_MAX];

		if (!known && json_is_false(more))
			return unknown_member(properties, name, place, err);
		known = known ? known : more;
		(void)snprintf(where, sizeof(where), "'%.100s'", name);
		if (json_is_object(known) && check(known, member, where, err) < 0)
			return -BRIG_E_USAGE;
	}
	return check_required(schema, value, place, err);
}

static int check(const json_t *schema, const json_t *value, const char *place, struct brig_error *err)
{
	const json_t *items = json_object_get(schema, "items"), *item;
	int rc = check_type(schema, value, place, err);
	size_t i;

	if (rc == 0)
		rc = check_enum(schema, value, place, err);
	if (rc == 0)
		rc = check_size(schema, value, place, err);
	if (rc == 0 && json_is_object(value))
		rc = check_members(schema, value, place, err);
	if (rc < 0 || !items)
		return rc;
	json_array_foreach(value, i, item) if (check(items, item, place, err) < 0) return -BRIG_E_USAGE;
	return 0;
}

int schema_check(const json_t *schema, const json_t *value, struct brig_error *err)
{
	return check(schema, value, "the arguments", err);
}
