/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The document is the user's own, but a full disk, another version of brig or manual editing may have damaged it.  So
 * it is validated member by member: each must be present, of the right type and within bounds, and there must be no
 * others.  What passes can be shown, compared and passed on without further checks.
 */
#include "packages/environment.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"

bool environment_add_word(char ***list, size_t *n, const char *word)
{
	char **grown = reallocarray(*list, *n + 1, sizeof(*grown)), *copy = strdup(word);

	if (grown)
		*list = grown;
	if (!grown || !copy) {
		free(copy);
		return false;
	}
	grown[(*n)++] = copy;
	return true;
}

static void release_words(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void environment_release(struct environment *e)
{
	release_words(e->packages, e->n_packages);
	release_words(e->warm, e->n_warm);
	*e = (struct environment){ .n_warm = 0 };
}

/* ---- reading ------------------------------------------------------------------------------------- */

struct reading {
	const json_t *doc;
	struct environment *to;
	struct brig_error *err;
};

static int wrong(const struct reading *r, const char *member)
{
	return err_set(r->err, BRIG_E_REFUSED, 0, "its member '%s' is missing or not what brig writes there", member);
}

/* A string without NUL bytes that fits. */
static const char *text_of(const json_t *value, size_t max)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) && strlen(text) <= max ? text : NULL;
}

static int read_text(const struct reading *r, const char *member, char *dst, size_t size)
{
	const char *text = text_of(json_object_get(r->doc, member), size - 1);

	return text && *text && str_copy(dst, size, text) ? 0 : wrong(r, member);
}

static int read_count(const struct reading *r, const char *member, uint64_t *ret)
{
	const json_t *value = json_object_get(r->doc, member);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return wrong(r, member);
	*ret = (uint64_t)json_integer_value(value);
	return 0;
}

static int read_words(const struct reading *r, const char *member, size_t max, bool (*is_good)(const char *word),
		      char ***ret, size_t *ret_n)
{
	const json_t *list = json_object_get(r->doc, member), *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > max)
		return wrong(r, member);
	json_array_foreach(list, i, item)
	{
		const char *word = text_of(item, PACKAGES_WORD_MAX);

		if (!word || !is_good(word))
			return wrong(r, member);
		if (!environment_add_word(ret, ret_n, word))
			return err_nomem(r->err);
	}
	return 0;
}

static bool is_package(const char *word)
{
	return packages_check_word(word, NULL) == 0;
}

static int read_missing(const struct reading *r)
{
	const json_t *list = json_object_get(r->doc, "degraded"), *item;
	size_t i;

	if (!json_is_array(list))
		return wrong(r, "degraded");
	json_array_foreach(list, i, item)
	{
		const char *name = text_of(item, 64);
		enum protection p = name ? protection_from_name(name) : PROT_COUNT;

		if (p == PROT_COUNT)
			return wrong(r, "degraded");
		r->to->missing |= PROT_BIT(p);
	}
	return 0;
}

/* 64 digits; of one without packages null. */
static int read_hash(const struct reading *r, const char *member, char dst[ENVIRONMENT_HASH_HEX + 1])
{
	const json_t *value = json_object_get(r->doc, member);
	const char *text = text_of(value, ENVIRONMENT_HASH_HEX);

	if (r->to->n_packages == 0)
		return json_is_null(value) ? 0 : wrong(r, member);
	if (!text || strspn(text, "0123456789abcdef") != ENVIRONMENT_HASH_HEX)
		return wrong(r, member);
	(void)str_copy(dst, ENVIRONMENT_HASH_HEX + 1, text);
	return 0;
}

static int read_ecosystem(const struct reading *r)
{
	const char *text = text_of(json_object_get(r->doc, "ecosystem"), 16);

	for (size_t i = 0; text && i < ecosystem_count; i++)
		if (str_eq(ecosystems[i].name, text))
			r->to->eco = &ecosystems[i];
	return r->to->eco ? 0 : wrong(r, "ecosystem");
}

static int read_trust(const struct reading *r)
{
	const char *text = text_of(json_object_get(r->doc, "trust"), 16);

	for (enum trust t = 0; text && t < TRUST_COUNT; t++)
		if (str_eq(trust_name[t], text)) {
			r->to->trust = t;
			return 0;
		}
	return wrong(r, "trust");
}

static int read_created(const struct reading *r)
{
	const char *text = text_of(json_object_get(r->doc, "created"), WHEN_TEXT_MAX);
	char again[WHEN_TEXT_MAX];

	/* As brig writes moments, and no other way that people do. */
	if (!text || !when_parse(text, 0, &r->to->created_ns) ||
	    !str_eq(when_utc(again, sizeof(again), r->to->created_ns), text))
		return wrong(r, "created");
	return 0;
}

#define MEMBERS 15 /* that a document has, "version" included */

static int read_members(const struct reading *r)
{
	struct environment *e = r->to;
	uint64_t version = 0;
	int rc;

	if (!json_is_object(r->doc))
		return err_set(r->err, BRIG_E_REFUSED, 0, "it is no object");
	if ((rc = read_count(r, "version", &version)) < 0)
		return rc;
	if (version != ENVIRONMENT_VERSION)
		return err_set(r->err, BRIG_E_REFUSED, 0, "it is of version %llu, which this brig does not know",
			       (unsigned long long)version);
	if (json_object_size(r->doc) != MEMBERS)
		return err_set(r->err, BRIG_E_REFUSED, 0, "it has members that brig does not write");
	if ((rc = read_text(r, "name", e->name, sizeof(e->name))) < 0 || (rc = read_ecosystem(r)) < 0 ||
	    (rc = read_words(r, "packages", PACKAGES_WORDS_MAX, is_package, &e->packages, &e->n_packages)) < 0 ||
	    (rc = read_words(r, "warm", WARM_MODULES_MAX, warm_is_module, &e->warm, &e->n_warm)) < 0 ||
	    (rc = read_created(r)) < 0 || (rc = read_text(r, "brig", e->brig, sizeof(e->brig))) < 0 ||
	    (rc = read_text(r, "backend", e->backend, sizeof(e->backend))) < 0 || (rc = read_trust(r)) < 0 ||
	    (rc = read_missing(r)) < 0 || (rc = read_hash(r, "key", e->key)) < 0 ||
	    (rc = read_hash(r, "content", e->content)) < 0 || (rc = read_hash(r, "made_for", e->made_for)) < 0 ||
	    (rc = read_count(r, "files", &e->files)) < 0 || (rc = read_count(r, "bytes", &e->bytes)) < 0)
		return rc;
	return environment_is_name(e->name) ? 0 : wrong(r, "name");
}

int environment_read(const char *text, size_t len, struct environment *ret, struct brig_error *err)
{
	json_error_t why;
	json_t *doc = len <= ENVIRONMENT_DOCUMENT_MAX ? json_loadb(text, len, JSON_REJECT_DUPLICATES, &why) : NULL;
	struct reading r = { .doc = doc, .to = ret, .err = err };
	int rc;

	*ret = (struct environment){ .n_warm = 0 };
	if (!doc)
		return err_set(err, BRIG_E_REFUSED, 0, "it is no JSON of at most %d bytes",
			       (int)ENVIRONMENT_DOCUMENT_MAX);
	rc = read_members(&r);
	json_decref(doc);
	if (rc < 0)
		environment_release(ret);
	return rc;
}

/* ---- writing ------------------------------------------------------------------------------------- */

static json_t *json_words(char *const *list, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n && array; i++)
		if (json_array_append_new(array, json_string(list[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *json_missing(protection_set missing)
{
	json_t *array = json_array();

	for (enum protection p = 0; p < PROT_COUNT && array; p++)
		if (missing & PROT_BIT(p) && json_array_append_new(array, json_string(protection_info[p].name)) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

json_t *environment_json(const struct environment *e)
{
	char created[WHEN_TEXT_MAX];

	return json_pack("{s:i, s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:s?, s:I, s:I}", "version",
			 ENVIRONMENT_VERSION, "name", e->name, "ecosystem", e->eco->name, "packages",
			 json_words(e->packages, e->n_packages), "warm", json_words(e->warm, e->n_warm), "created",
			 when_utc(created, sizeof(created), e->created_ns), "brig", e->brig, "backend", e->backend,
			 "trust", trust_name[e->trust], "degraded", json_missing(e->missing), "key", or_null(e->key),
			 "content", or_null(e->content), "made_for", or_null(e->made_for), "files",
			 (json_int_t)e->files, "bytes", (json_int_t)e->bytes);
}
