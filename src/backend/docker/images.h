/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images for cells: which one a language runs in, whether what the engine has under its name is really it, and how it is
 * made when it is missing.
 *
 * Own images are called brig/<name>:<version>-<recipe>, the recipe being a hash over everything that goes into them, PID 1
 * included: images of different brigs live side by side, and two brigs that build the same one at once get the
 * same thing twice.  Containers are made from the id that was checked, never from a name.
 *
 * An image of somebody else (docker_image) gets one layer with our PID 1 on top, made by creating a container that is
 * never started, and is kept as brig/derived:<image id>-<init hash>.
 */
#ifndef DOCKER_IMAGES_H
#define DOCKER_IMAGES_H

#include "backend/docker/engine.h"

#define IMAGE_LABEL         "brig.image" /* name of the image; on every image of ours */
#define IMAGE_LABEL_VERSION "brig.image.version"
#define IMAGE_LABEL_RECIPE  "brig.image.recipe"
#define IMAGE_LABEL_HOW     "brig.image.how"  /* registry, host or derived */
#define IMAGE_LABEL_FROM    "brig.image.from" /* derived: the id below */
#define IMAGE_REF_MAX       300
#define IMAGE_TEXT_MAX      400

enum image_from { IMAGE_FROM_ANY, IMAGE_FROM_REGISTRY, IMAGE_FROM_HOST };
enum image_state { IMAGE_MISSING, IMAGE_GOOD, IMAGE_WRONG, IMAGE_STATE_COUNT };
extern const char *const image_state_name[IMAGE_STATE_COUNT];

/* How an image is asked for. */
struct image_options {
	const char *image; /* docker_image; "" or NULL: the language's own */
	bool may_build;    /* docker_build */
	bool rebuild;      /* even if a good one is there */
	bool pull;         /* fetch the base anew, from a registry or not at all */
	bool no_cache;     /* take nothing that the engine kept of earlier builds */
	enum image_from from;
	const struct setting_list *requirements; /* docker_requirements; NULL: none */
	engine_progress_fn progress;             /* may be NULL */
	void *arg;
	bool *no_registry; /* set when none could be reached, and then not tried again; may be NULL */
};

/* What the engine has. */
struct image_found {
	char ref[IMAGE_REF_MAX];
	char id[ENGINE_IMAGE_LEN + 1]; /* "": it has none */
	enum image_state state;
	char how[16]; /* registry, host, derived; "" unknown */
	char created[40];
	uint64_t bytes;
	char complaint[IMAGE_TEXT_MAX]; /* why it is wrong, and what to do; "": nothing */
};

/* The table of own images, in order; NULL past the last one. */
const char *image_name(size_t i);
const char *image_languages(size_t i); /* separated by spaces */
/* The image of a language, or the image called so; NULL if there is none. */
const char *image_of(const char *language_or_name);
/* "brig/python:0.1.0-0123456789abcdef"; false if there is no such image.  requirements: NULL for none. */
bool image_reference(const char *name, const struct setting_list *requirements, char *dst, size_t size);
/* Whether packages can be asked for in it. */
bool image_takes_requirements(const char *name);

/*
 * The id of an image that a cell of this language can be made from; builds or derives it where it must and may.
 * Building takes its time: the engine's deadline is moved for it, and stands at the caller's deadline_ns afterwards if
 * nothing was built, else as far from now as it was from the call.
 * BRIG_E_REFUSED: missing, and not to be built; or it is there and wrong.
 */
int image_ensure(struct engine *e, const char *language, const struct image_options *options, uint64_t deadline_ns,
		 char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
/* Looks at own image name, or (foreign) at any reference. */
int image_look(struct engine *e, const char *name, bool foreign, const struct setting_list *requirements,
	       struct image_found *ret, struct brig_error *err);

/* For the files of this folder. */
struct image_row {
	const char *name;
	const char *languages;
	unsigned groups;
	const unsigned char *dockerfile;
	const size_t *dockerfile_size;
	const char *dockerfile_hash;
};
const struct image_row *image_row(const char *name);
/* A text for people: cut and cleaned by the caller. */
void image_say(const struct image_options *options, const char *fmt, ...) PRINTF(2, 3);
int image_build(struct engine *e, const struct image_row *row, const struct image_options *options,
		char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
int image_derive(struct engine *e, const char *base_id, const struct image_options *options,
		 char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
/* A container of the image that nobody will start, for reading and writing its files; the caller's to remove. */
int image_unstarted(struct engine *e, const char *base_id, char ret[ENGINE_ID_LEN + 1], struct brig_error *err);
/* The numbers of "name" or "name:group" by the image's own /etc/passwd and /etc/group; never 0. */
int image_find_user(struct engine *e, const char *image_id, const char *user, uint32_t *ret_uid, uint32_t *ret_gid,
		    struct brig_error *err);

#endif
