/* SPDX-License-Identifier: Apache-2.0 */
/* The images of the docker backend as documents: brig_images_build, _list and _check. */
#include <jansson.h>
#include <string.h>

#include "api/handle.h"
#include "api/request.h"
#include "backend/docker/answer.h"
#include "backend/docker/images.h"
#include "base/clock.h"
#include "base/str.h"
#include "model/json.h"
#include "model/requirement.h"

#define CALL_CEILING (60 * NS_PER_SEC)

/* Shared by the three. */
struct session {
	struct brig_images opts;
	struct policy_resolved *resolved;
	struct engine *engine;
	json_t *rows;
	struct brig_error *err;
	struct brig_error scrap;
	bool no_registry;
};

static void session_end(struct session *s)
{
	engine_close(s->engine);
	json_decref(s->rows);
	free(s->resolved);
}

static int session_begin(struct brig *b, const struct brig_images *opts, struct session *s, struct brig_error *err)
{
	int rc;

	*s = (struct session){ .opts = BRIG_IMAGES_INIT };
	s->err = err ? err : &s->scrap;
	if (!b)
		return err_set(s->err, BRIG_E_USAGE, 0, "images need a handle");
	if (opts) {
		rc = versioned_read(&s->opts, sizeof(s->opts), opts, "brig_images", s->err);
		if (rc < 0)
			return rc;
	}
	if (s->opts.flags != 0)
		return err_set(s->err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", s->opts.flags);
	s->rows = json_array();
	s->resolved = calloc(1, sizeof(*s->resolved));
	if (!s->rows || !s->resolved)
		return err_nomem(s->err);
	rc = policy_resolve(b->policy, NULL, NULL, 0, s->resolved, s->err);
	if (rc < 0)
		return rc;
	return engine_open(&s->resolved->set, clock_now_ns() + CALL_CEILING, &s->engine, s->err);
}

/* The caller's list replaces the policy's and is judged in the same way. */
static int take_requirements(struct session *s)
{
	struct setting_list *list = &s->resolved->set.docker_requirements;
	const char *name = s->opts.image ? image_of(s->opts.image) : NULL;
	struct requirement r;

	if (!s->opts.requirements)
		return 0;
	if (!name || !image_takes_requirements(name))
		return err_set(s->err, BRIG_E_USAGE, 0,
			       "requirements are packages of Python: brig images build python --requirements FILE");
	setting_list_clear(list);
	for (size_t i = 0; i < s->opts.n_requirements; i++) {
		const char *wrong = requirement_parse(s->opts.requirements[i], &r);
		char shown[80];

		if (!wrong && !setting_list_add(list, s->opts.requirements[i]))
			wrong = "there are too many, or it is too long";
		if (wrong)
			return err_set(s->err, BRIG_E_USAGE, 0, "requirement '%s': %s",
				       answer_clean(shown, sizeof(shown), s->opts.requirements[i]), wrong);
	}
	return 0;
}

static int add_row(struct session *s, const char *name, const char *spoken, const struct image_found *f,
		   const char *state)
{
	json_t *row =
		json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:o}", "name", json_text(name), "languages",
			  json_text_or_null(spoken), "reference", json_text(f->ref), "id", json_text_or_null(f->id),
			  "state", state, "how", json_text_or_null(f->how), "created", json_text_or_null(f->created),
			  "bytes", (json_int_t)f->bytes, "complaint", json_text_or_null(f->complaint));

	return json_array_append_new(s->rows, row) < 0 ? err_nomem(s->err) : 0;
}

static int session_document(struct session *s, char **ret)
{
	const struct engine_about *about = engine_about(s->engine);
	json_t *doc;

	if (!ret)
		return 0;
	doc = json_pack("{s:{s:o, s:o, s:o}, s:O}", "engine", "name", json_text(about->name), "version",
			json_text(about->version), "address", json_text(about->address), "images", s->rows);
	*ret = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return *ret ? 0 : err_nomem(s->err);
}

static int no_such_image(const struct session *s)
{
	const char *names[16];
	const char *near;
	size_t n = 0;

	while (n < ARRAY_LEN(names) && image_name(n)) {
		names[n] = image_name(n);
		n++;
	}
	near = str_nearest(s->opts.image, names, n);
	return err_set(s->err, BRIG_E_USAGE, 0, "there is no image and no language called '%s'%s%s", s->opts.image,
		       near ? "; did you mean " : "", near ? near : "");
}

/* Examines own image i and appends its row. 1: it is not good. */
static int look_at(struct session *s, size_t i)
{
	struct image_found found;
	int rc;

	engine_set_deadline(s->engine, clock_now_ns() + CALL_CEILING);
	rc = image_look(s->engine, image_name(i), false, &s->resolved->set.docker_requirements, &found, s->err);
	if (rc == 0)
		rc = add_row(s, image_name(i), image_languages(i), &found, image_state_name[found.state]);
	return rc < 0 ? rc : found.state != IMAGE_GOOD;
}

/* True if own image i was requested. */
static bool is_wanted(const struct session *s, size_t i)
{
	const char *name = s->opts.image ? image_of(s->opts.image) : NULL;

	return !s->opts.image || (name && str_eq(name, image_name(i)));
}

/* ---- build ------------------------------------------------------------------------------------- */

static void pass_on(void *arg, const char *line)
{
	struct session *s = arg;

	if (s->opts.on_progress)
		s->opts.on_progress(s->opts.user, line);
}

static int read_from(const struct session *s, enum image_from *ret)
{
	const char *from = s->opts.from;

	*ret = IMAGE_FROM_ANY;
	if (!from)
		return 0;
	if (str_eq(from, "registry"))
		*ret = IMAGE_FROM_REGISTRY;
	else if (str_eq(from, "host"))
		*ret = IMAGE_FROM_HOST;
	else
		return err_set(s->err, BRIG_E_USAGE, 0, "images are built from 'registry' or 'host', not from '%s'",
			       from);
	return 0;
}

static int build_wanted(struct session *s)
{
	struct image_options options = { .may_build = true,
					 .rebuild = s->opts.rebuild != 0,
					 .pull = s->opts.pull != 0,
					 .no_cache = s->opts.no_cache != 0,
					 .requirements = &s->resolved->set.docker_requirements,
					 .progress = pass_on,
					 .arg = s,
					 .no_registry = &s->no_registry };
	char id[ENGINE_IMAGE_LEN + 1];
	int rc = read_from(s, &options.from);

	if (rc == 0 && s->opts.image && !image_of(s->opts.image))
		rc = no_such_image(s);
	if (rc == 0 && options.pull && options.from == IMAGE_FROM_HOST)
		rc = err_set(
			s->err, BRIG_E_USAGE, 0,
			"a base can be fetched from a registry only, and an image from the host has none: leave out "
			"--pull or --from host");
	if (rc == 0)
		rc = take_requirements(s);
	for (size_t i = 0; rc >= 0 && image_name(i); i++) {
		if (!is_wanted(s, i))
			continue;
		rc = image_ensure(s->engine, image_name(i), &options, clock_now_ns() + CALL_CEILING, id, s->err);
		if (rc == 0)
			rc = look_at(s, i);
	}
	return rc < 0 ? rc : 0;
}

int brig_images_build(struct brig *b, const struct brig_images *opts, char **ret_json, struct brig_error *err)
{
	CLEANUP(session_end)
	struct session s;
	int rc = session_begin(b, opts, &s, err);

	if (rc == 0)
		rc = build_wanted(&s);
	return rc < 0 ? rc : session_document(&s, ret_json);
}

/* ---- list -------------------------------------------------------------------------------------- */

static bool is_listed(const struct session *s, const char *id)
{
	const json_t *row;
	size_t i;

	json_array_foreach(s->rows, i, row)
	{
		const char *known = json_string_value(json_object_get(row, "id"));

		if (known && str_eq(known, id))
			return true;
	}
	return false;
}

/* An image with our label that this brig did not make: from another brig, or derived. */
static int add_other(struct session *s, const json_t *image)
{
	const json_t *labels = json_object_get(image, "Labels");
	const char *id = answer_text_or(image, "Id", "");
	const char *name = json_string_value(json_object_get(labels, IMAGE_LABEL));
	const char *how = json_string_value(json_object_get(labels, IMAGE_LABEL_HOW));
	const char *tag = json_string_value(json_array_get(json_object_get(image, "RepoTags"), 0));
	struct image_found f = { 0 };
	char clean[64];

	if (!answer_is_image_id(id) || is_listed(s, id))
		return 0;
	(void)str_copy(f.id, sizeof(f.id), id);
	(void)answer_clean(f.ref, sizeof(f.ref), tag ? tag : "");
	(void)answer_clean(f.how, sizeof(f.how), how ? how : "");
	(void)answer_u64(image, "Size", &f.bytes);
	return add_row(s, answer_clean(clean, sizeof(clean), name ? name : ""), "", &f, "other");
}

int brig_images_list(struct brig *b, char **ret_json, struct brig_error *err)
{
	CLEANUP(session_end)
	struct session s;
	int rc = session_begin(b, NULL, &s, err);
	json_t *list = NULL, *image;
	size_t at;

	for (size_t i = 0; rc >= 0 && image_name(i); i++)
		rc = look_at(&s, i);
	if (rc >= 0)
		rc = engine_image_list(s.engine, IMAGE_LABEL, &list, s.err);
	json_array_foreach(list, at, image)
	{
		if (rc >= 0)
			rc = add_other(&s, image);
	}
	json_decref(list);
	return rc < 0 ? rc : session_document(&s, ret_json);
}

/* ---- check ------------------------------------------------------------------------------------- */

/* A foreign image. */
static int check_foreign(struct session *s)
{
	struct image_found found;
	int rc = image_look(s->engine, s->opts.image, true, NULL, &found, s->err);

	if (rc == 0)
		rc = add_row(s, s->opts.image, "", &found, image_state_name[found.state]);
	return rc < 0 ? rc : found.state != IMAGE_GOOD;
}

int brig_images_check(struct brig *b, const struct brig_images *opts, char **ret_json, struct brig_error *err)
{
	CLEANUP(session_end)
	struct session s;
	int rc = session_begin(b, opts, &s, err);
	bool bad = false;

	if (rc == 0 && s.opts.image && !image_of(s.opts.image)) {
		rc = check_foreign(&s);
		bad = rc > 0;
	} else {
		for (size_t i = 0; rc >= 0 && image_name(i); i++)
			if (is_wanted(&s, i)) {
				rc = look_at(&s, i);
				bad = bad || rc > 0;
			}
	}
	if (rc >= 0)
		rc = session_document(&s, ret_json);
	return rc < 0 ? rc : bad;
}
