/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value: text to number and back, its range, and which of two values is stricter.  The rules that
 * concern a single key only are in checks.c.
 */
#include "policy/internal.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* ---- what a value looks like, for messages --------------------------------------------------- */

/* Rows with factor 0 serve every factor. */
static const struct {
	enum setting_unit unit;
	uint64_t factor;
	const char *takes;
} unit_help[] = {
	{ UNIT_BYTES, 1, "bytes: 536870912, 512m or 1g" },
	{ UNIT_BYTES, 0, "megabytes: 512, or with a unit 512m, 1g" },
	{ UNIT_MILLIS, 1, "milliseconds: 5000, or with a unit 5s, 2m" },
	{ UNIT_MILLIS, 0, "seconds: 30, 1.5, or with a unit 500ms, 2m" },
	{ UNIT_PERCENT, 1, "percent of one cpu: 50, 50% or 200" },
	{ UNIT_PERCENT, 0, "a number of cpus: 2 or 0.5" },
	{ UNIT_COUNT, 0, "a whole number: 64" },
	{ UNIT_NONE, 0, "a whole number" },
};

static const char *takes_what(const struct spelling *sp)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(unit_help) &&
	       !(unit_help[i].unit == sp->unit && (unit_help[i].factor == 0 || unit_help[i].factor == sp->factor)))
		i++;
	return unit_help[i].takes;
}

/* "a, b or c" */
static const char *choices_text(const struct setting_info *info, char *dst, size_t size)
{
	size_t at = 0;

	*dst = '\0';
	for (size_t i = 0; i < info->n_choices && at < size; i++) {
		const char *glue = i == 0 ? "" : i + 1 == info->n_choices ? " or " : ", ";

		at += (size_t)snprintf(dst + at, size - at, "%s%s", glue, info->choices[i]);
	}
	return dst;
}

/* ---- values to text ---------------------------------------------------------------------------- */

static void bytes_text(uint64_t v, char *dst, size_t size)
{
	static const struct {
		uint64_t factor;
		const char *suffix;
	} units[] = { { GiB, "g" }, { MiB, "m" }, { KiB, "k" }, { 1, "" } };
	size_t i = 0;

	while (v % units[i].factor != 0 || (v == 0 && units[i].factor != 1))
		i++;
	(void)snprintf(dst, size, "%llu%s", (unsigned long long)(v / units[i].factor), units[i].suffix);
}

static void number_text(enum setting_unit unit, uint64_t v, char *dst, size_t size)
{
	switch (unit) {
	case UNIT_BYTES:
		bytes_text(v, dst, size);
		break;
	case UNIT_MILLIS:
		(void)snprintf(dst, size, "%llu%s", (unsigned long long)(v % 1000 ? v : v / 1000),
			       v % 1000 ? "ms" : "s");
		break;
	case UNIT_PERCENT:
		(void)snprintf(dst, size, "%llu%%", (unsigned long long)v);
		break;
	case UNIT_COUNT:
	case UNIT_NONE:
		(void)snprintf(dst, size, "%llu", (unsigned long long)v);
		break;
	}
}

static void list_text(const struct setting_list *list, char *dst, size_t size)
{
	struct buf b = BUF_INIT(size - 1);

	(void)buf_adds(&b, "[");
	for (const char *item = NULL; (item = setting_list_next(list, item));) {
		(void)buf_adds(&b, item != list->text ? ", " : "");
		(void)buf_adds(&b, item);
	}
	(void)buf_adds(&b, "]");
	(void)str_copy(dst, size, buf_str(&b));
	dst[str_utf8_prefix(dst, strlen(dst))] = '\0';
	buf_release(&b);
}

const char *value_text(enum setting_key k, const void *at, char *dst, size_t size)
{
	const struct setting_info *info = &setting_info[k];

	switch (info->kind) {
	case KIND_NUM:
		number_text(info->unit, *(const uint64_t *)at, dst, size);
		break;
	case KIND_BOOL:
		(void)str_copy(dst, size, *(const bool *)at ? "true" : "false");
		break;
	case KIND_ENUM:
		(void)str_copy(dst, size, info->choices[*(const int *)at]);
		break;
	case KIND_TEXT:
		(void)str_copy(dst, size, at);
		break;
	case KIND_LIST:
		list_text(at, dst, size);
		break;
	}
	return dst;
}

const char *policy_value_text(const struct settings *s, enum setting_key k, char *dst, size_t size)
{
	return value_text(k, setting_at_const(s, k), dst, size);
}

/* ---- text to values ------------------------------------------------------------------------------ */

/*
 * Strict on purpose: no sign, exponent, hexadecimal, underscore or leading zero (octal to some YAML
 * readers, decimal to others), and a fraction only where the unit gives it a meaning.
 */
static bool read_number(const struct spelling *sp, const char *text, uint64_t *ret)
{
	size_t len = strlen(text);
	size_t digits = strspn(text, "0123456789.");
	bool bare = digits == len;
	char percent[32];

	if (text[0] == '0' && isdigit((unsigned char)text[1]))
		return false;
	if (bare && sp->factor == 0) {
		uint64_t thousandths;

		if (!str_to_u64(text, &thousandths) || thousandths % 1000 != 0)
			return false;
		*ret = thousandths / 1000;
		return true;
	}
	if (bare) /* the multiplication is what str_to_millis() does with a bare number */
		return (sp->factor > 1 || !memchr(text, '.', len)) && str_to_millis(text, sp->factor, ret);
	switch (sp->unit) {
	case UNIT_BYTES:
		return str_to_bytes(text, ret);
	case UNIT_MILLIS:
		return str_to_millis(text, 1, ret);
	case UNIT_PERCENT:
		if (!str_eq(text + digits, "%") || !str_copy(percent, sizeof(percent), text))
			return false;
		percent[digits] = '\0';
		return str_to_u64(percent, ret);
	case UNIT_COUNT:
	case UNIT_NONE:
		break;
	}
	return false;
}

static bool read_num(const struct spelling *sp, const char *text, uint64_t *ret, char *why)
{
	const struct setting_info *info = &setting_info[sp->key];
	char shown[POLICY_WORD_MAX], lo[32], hi[32];
	uint64_t v;

	(void)printable(text, shown, sizeof(shown));
	if (!read_number(sp, text, &v)) {
		(void)snprintf(why, POLICY_WHY_MAX, "%s takes %s; '%s' is not that", sp->name, takes_what(sp), shown);
		return false;
	}
	if (v < info->min || v > info->max) {
		number_text(info->unit, info->min, lo, sizeof(lo));
		number_text(info->unit, info->max, hi, sizeof(hi));
		(void)snprintf(why, POLICY_WHY_MAX, "%s '%s' is too %s: it takes %s; from %s to %s", sp->name, shown,
			       v < info->min ? "small" : "large", takes_what(sp), lo, hi);
		return false;
	}
	*ret = v;
	return true;
}

static bool read_bool(const struct spelling *sp, const char *text, bool *ret, char *why)
{
	char shown[POLICY_WORD_MAX];

	if (str_to_bool(text, ret))
		return true;
	(void)snprintf(why, POLICY_WHY_MAX, "%s takes true or false; '%s' is neither", sp->name,
		       printable(text, shown, sizeof(shown)));
	return false;
}

static const struct {
	enum setting_key key;
	const char *value, *reason;
} refused_choices[] = {
	{ SET_network_mode, "host", "it would put the program into the host's network" },
	{ SET_network_mode, "bridge", "it would give the program an open network" },
	{ SET_network_mode, "default", "it would give the program an open network" },
	{ SET_network_mode, "slirp4netns", "it would give the program an open network" },
	{ SET_network_mode, "pasta", "it would give the program an open network" },
	{ SET_seccomp_profile, "unconfined", "a cell cannot be had without its system call filter" },
	{ SET_seccomp_profile, "off", "a cell cannot be had without its system call filter" },
	{ SET_seccomp_profile, "none", "a cell cannot be had without its system call filter" },
};

static bool read_enum(const struct spelling *sp, const char *text, int *ret, char *why)
{
	const struct setting_info *info = &setting_info[sp->key];
	size_t i = name_index(info->choices, info->n_choices, text);
	char shown[POLICY_WORD_MAX], choices[96], hint[96];
	bool on;

	if (i == info->n_choices && sp->key == SET_inspection && str_to_bool(text, &on))
		i = on ? INSPECTION_GUARD : INSPECTION_OFF; /* it was a switch once */
	if (i < info->n_choices) {
		*ret = (int)i;
		return true;
	}
	(void)choices_text(info, choices, sizeof(choices));
	for (i = 0; i < ARRAY_LEN(refused_choices); i++)
		if (refused_choices[i].key == sp->key && str_eq(refused_choices[i].value, text)) {
			(void)snprintf(why, POLICY_WHY_MAX, "%s '%s' is refused: %s; use %s", sp->name, text,
				       refused_choices[i].reason, choices);
			return false;
		}
	(void)snprintf(why, POLICY_WHY_MAX, "%s takes %s; '%s' is none of them%s", sp->name, choices,
		       printable(text, shown, sizeof(shown)),
		       suggest(text, info->choices, info->n_choices, hint, sizeof(hint)));
	return false;
}

static bool text_is_clean(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return str_is_utf8(text, strlen(text));
}

static bool read_text(const struct spelling *sp, const char *text, char *ret, size_t size, char *why)
{
	if (!text_is_clean(text)) {
		(void)snprintf(why, POLICY_WHY_MAX, "%s holds control characters or broken UTF-8", sp->name);
		return false;
	}
	if (strlen(text) >= size) {
		(void)snprintf(why, POLICY_WHY_MAX, "%s%s is longer than %zu bytes",
			       setting_info[sp->key].kind == KIND_LIST ? "an item of " : "", sp->name, size - 1);
		return false;
	}
	memset(ret, 0, size);
	return str_copy(ret, size, text);
}

static bool list_add(const struct spelling *sp, struct setting_list *list, const char *item, size_t len, char *why)
{
	char text[SETTING_ITEM_MAX + 1], read[SETTING_ITEM_MAX];

	if (list->n == SETTING_LIST_MAX) {
		(void)snprintf(why, POLICY_WHY_MAX, "%s has more than %d items", sp->name, SETTING_LIST_MAX);
		return false;
	}
	if (len == 0) {
		(void)snprintf(why, POLICY_WHY_MAX, "%s has an empty item", sp->name);
		return false;
	}
	(void)snprintf(text, sizeof(text), "%.*s", (int)min_u64(len, SETTING_ITEM_MAX), item);
	if (!read_text(sp, text, read, sizeof(read), why))
		return false;
	if (!setting_list_add(list, read)) {
		(void)snprintf(why, POLICY_WHY_MAX, "the items of %s have more than %d bytes together", sp->name,
			       SETTING_LIST_BYTES);
		return false;
	}
	return true;
}

/* "a, b" with or without brackets: the form of variables and options. */
static bool read_list_text(const struct spelling *sp, const char *text, struct setting_list *ret, char *why)
{
	size_t len = strlen(text);

	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (strspn(text, " ") >= len)
		return true;
	for (;;) {
		const char *comma = memchr(text, ',', len);
		size_t piece = comma ? (size_t)(comma - text) : len;
		size_t skip = strspn(text, " "), end = piece;

		while (end > skip && text[end - 1] == ' ')
			end--;
		skip = skip < end ? skip : end;
		if (!list_add(sp, ret, text + skip, end - skip, why))
			return false;
		if (!comma)
			return true;
		text += piece + 1;
		len -= piece + 1;
	}
}

static bool read_list(const struct spelling *sp, const struct raw_value *raw, struct setting_list *ret, char *why)
{
	ret->n = ret->used = 0; /* nothing to clear: a slot's unused bytes are never read */
	if (!raw->list)
		return read_list_text(sp, raw->text, ret, why);
	for (const char *item = NULL; (item = setting_list_next(raw->list, item));)
		if (!list_add(sp, ret, item, strlen(item), why))
			return false;
	return true;
}

static bool read_kind(const struct spelling *sp, const struct raw_value *raw, union slot *dst, char *why)
{
	enum setting_kind kind = setting_info[sp->key].kind;

	if (raw->list && kind != KIND_LIST) {
		(void)snprintf(why, POLICY_WHY_MAX, "%s takes one value, not a list", sp->name);
		return false;
	}
	switch (kind) {
	case KIND_NUM:
		return read_num(sp, raw->text, &dst->num, why);
	case KIND_BOOL:
		return read_bool(sp, raw->text, &dst->on, why);
	case KIND_ENUM:
		return read_enum(sp, raw->text, &dst->choice, why);
	case KIND_TEXT:
		return read_text(sp, raw->text, dst->text, SETTING_TEXT_MAX, why);
	case KIND_LIST:
		return read_list(sp, raw, &dst->list, why);
	}
	return false;
}

/* What true or false stands for; false: it is neither, or refused. */
static bool read_word(const struct spelling *sp, const struct raw_value *raw, struct raw_value *ret, char *why)
{
	bool on = false;

	if (!read_bool(sp, raw->list ? "[...]" : raw->text, &on, why))
		return false;
	*ret = (struct raw_value){ .text = on ? sp->word->yes : sp->word->no };
	if (!ret->text)
		(void)snprintf(why, POLICY_WHY_MAX, "%s %s is refused: %s", sp->name, on ? "true" : "false",
			       sp->word->why);
	return ret->text != NULL;
}

bool value_read(const struct spelling *sp, const struct raw_value *raw, union slot *dst, char why[POLICY_WHY_MAX])
{
	struct raw_value meant;

	if (sp->word && !read_word(sp, raw, &meant, why))
		return false;
	if (sp->word)
		raw = &meant;
	return read_kind(sp, raw, dst, why) && value_check(sp->key, dst, why);
}

/* ---- copies ------------------------------------------------------------------------------------------ */

static const size_t size_of_kind[] = {
	[KIND_NUM] = sizeof(KEY_TYPE_NUM),
	[KIND_BOOL] = sizeof(KEY_TYPE_BOOL),
	[KIND_ENUM] = sizeof(KEY_TYPE_ENUM),
	[KIND_TEXT] = sizeof(KEY_TYPE_TEXT),
};

void value_copy(enum setting_key k, void *at, const void *from)
{
	if (setting_info[k].kind == KIND_LIST)
		setting_list_copy(at, from);
	else
		memcpy(at, from, size_of_kind[setting_info[k].kind]);
}

static bool list_pack(const struct setting_list *list, struct packed *ret)
{
	ret->text = malloc(list->used + 1u);
	if (!ret->text)
		return false;
	memcpy(ret->text, list->text, list->used);
	ret->n = list->n;
	return true;
}

static void list_unpack(const struct packed *v, struct setting_list *list)
{
	const char *item = v->text;

	setting_list_clear(list);
	for (uint32_t i = 0; i < v->n; i++, item += strlen(item) + 1)
		(void)setting_list_add(list, item);
}

bool value_pack(enum setting_key k, const void *at, struct packed *ret)
{
	switch (setting_info[k].kind) {
	case KIND_NUM:
		ret->num = *(const KEY_TYPE_NUM *)at;
		return true;
	case KIND_BOOL:
		ret->num = *(const KEY_TYPE_BOOL *)at;
		return true;
	case KIND_ENUM:
		ret->num = (uint64_t) * (const KEY_TYPE_ENUM *)at;
		return true;
	case KIND_TEXT:
		ret->text = strdup(at);
		return ret->text != NULL;
	case KIND_LIST:
		return list_pack(at, ret);
	}
	return false;
}

void value_unpack(enum setting_key k, const struct packed *v, void *at)
{
	switch (setting_info[k].kind) {
	case KIND_NUM:
		*(KEY_TYPE_NUM *)at = v->num;
		break;
	case KIND_BOOL:
		*(KEY_TYPE_BOOL *)at = v->num != 0;
		break;
	case KIND_ENUM:
		*(KEY_TYPE_ENUM *)at = (int)v->num;
		break;
	case KIND_TEXT:
		memset(at, 0, SETTING_TEXT_MAX);
		(void)str_copy(at, SETTING_TEXT_MAX, v->text);
		break;
	case KIND_LIST:
		list_unpack(v, at);
		break;
	}
}

void value_unpack_slot(enum setting_key k, const struct packed *v, union slot *ret)
{
	ret->list.n = ret->list.used = 0; /* as in read_list() */
	value_unpack(k, v, ret);
}

/* ---- comparisons --------------------------------------------------------------------------------------- */

static bool list_within(const struct setting_list *a, const struct setting_list *b)
{
	for (const char *item = NULL; (item = setting_list_next(a, item));)
		if (!setting_list_has(b, item))
			return false;
	return true;
}

static enum strictness compare_numbers(uint64_t wish, uint64_t now, enum setting_stricter stricter)
{
	if (wish == now)
		return VALUE_SAME;
	if (stricter == STRICTER_SAME)
		return VALUE_LOOSER;
	return (wish < now) == (stricter == STRICTER_LESS) ? VALUE_STRICTER : VALUE_LOOSER;
}

static enum strictness compare_lists(const struct setting_list *wish, const struct setting_list *now,
				     enum setting_stricter stricter)
{
	bool within = list_within(wish, now), around = list_within(now, wish);

	if (within && around)
		return VALUE_SAME;
	if (stricter == STRICTER_SAME)
		return VALUE_LOOSER;
	return (stricter == STRICTER_LESS ? within : around) ? VALUE_STRICTER : VALUE_LOOSER;
}

/* auto leaves the choice open between these two, so naming one of them gives nothing up. */
static bool narrows_backend(int wish, int now)
{
	return now == BACKEND_AUTO && (wish == BACKEND_NATIVE || wish == BACKEND_DOCKER);
}

enum strictness value_compare(enum setting_key k, const void *wish, const void *now)
{
	const struct setting_info *info = &setting_info[k];

	switch (info->kind) {
	case KIND_NUM:
		return compare_numbers(*(const KEY_TYPE_NUM *)wish, *(const KEY_TYPE_NUM *)now, info->stricter);
	case KIND_BOOL:
		return compare_numbers(*(const KEY_TYPE_BOOL *)wish, *(const KEY_TYPE_BOOL *)now, info->stricter);
	case KIND_ENUM:
		if (k == SET_backend && narrows_backend(*(const int *)wish, *(const int *)now))
			return VALUE_STRICTER;
		return compare_numbers((uint64_t) * (const int *)wish, (uint64_t) * (const int *)now, info->stricter);
	case KIND_TEXT:
		return str_eq(wish, now) ? VALUE_SAME : VALUE_LOOSER;
	case KIND_LIST: /* a level may have backends of its own, but a request only fewer */
		return compare_lists(wish, now, k == SET_backends ? STRICTER_LESS : info->stricter);
	}
	return VALUE_LOOSER;
}
