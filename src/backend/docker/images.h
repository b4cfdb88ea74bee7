/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images for cells: which one a language runs in, whether the engine's image of that name is the right one, and how it
 * is created when it is missing.
 *
 * Own images are called brig/<name>:<version>-<recipe>, where the recipe is a hash over everything that goes into them,
 * including PID 1: images of different brigs coexist, and two brigs that build the same one at once produce the same
 * image twice.  Containers are created from the id that was checked, never from a name.
 *
 * A foreign image (docker_image) gets one additional layer with our PID 1, by way of a container that is never started,
 * and is kept as brig/derived:<image id>-<init hash>.
 */
#ifndef DOCKER_IMAGES_H
#define DOCKER_IMAGES_H

#include "backend/docker/engine.h"

#define IMAGE_LABEL         "brig.image" /* the image's name; on every image of ours */
#define IMAGE_LABEL_VERSION "brig.image.version"
#define IMAGE_LABEL_RECIPE  "brig.image.recipe"
#define IMAGE_LABEL_HOW     "brig.image.how"  /* registry, host or derived */
#define IMAGE_LABEL_FROM    "brig.image.from" /* derived: id of the base image */
#define IMAGE_REF_MAX       300
#define IMAGE_TEXT_MAX      400

enum image_from { IMAGE_FROM_ANY, IMAGE_FROM_REGISTRY, IMAGE_FROM_HOST };
enum image_state { IMAGE_MISSING, IMAGE_GOOD, IMAGE_WRONG, IMAGE_STATE_COUNT };
extern const char *const image_state_name[IMAGE_STATE_COUNT];

/* Options for getting an image. */
struct image_options {
	const char *image; /* docker_image; "" or NULL: the language's own image */
	bool may_build;    /* docker_build */
	bool rebuild;      /* even if a good one exists */
	bool pull;         /* fetch the base again; requires a registry */
	bool no_cache;     /* do not use the engine's build cache */
	enum image_from from;
	const struct setting_list *requirements; /* docker_requirements; NULL: none */
	engine_progress_fn progress;             /* may be NULL */
	void *arg;
	bool *no_registry; /* set if no registry is reachable, which is then not tried again; may be NULL */
};

/* An image that the engine has. */
struct image_found {
	char ref[IMAGE_REF_MAX];
	char id[ENGINE_IMAGE_LEN + 1]; /* "": none */
	enum image_state state;
	char how[16]; /* registry, host, derived; "" unknown */
	char created[40];
	uint64_t bytes;
	char complaint[IMAGE_TEXT_MAX]; /* why it is wrong, and what to do; "": nothing */
};

/* The table of own images, in order; NULL after the last one. */
const char *image_name(size_t i);
const char *image_languages(size_t i); /* separated by spaces */
/* The image for a language or of this name; NULL: none. */
const char *image_of(const char *language_or_name);
/* "brig/python:0.1.0-0123456789abcdef"; false: no such image.  requirements: NULL for none. */
bool image_reference(const char *name, const struct setting_list *requirements, char *dst, size_t size);
/* Whether packages can be requested for it. */
bool image_takes_requirements(const char *name);

/*
 * The id of an image from which a cell for this language can be created; builds or derives it if necessary and
 * permitted.  Building takes long, so the engine's deadline is extended for it; afterwards it is the caller's
 * deadline_ns if nothing was built, otherwise postponed by the time that the build took. BRIG_E_REFUSED: missing and
 * not to be built, or wrong.
 */
int image_ensure(struct engine *e, const char *language, const struct image_options *options, uint64_t deadline_ns,
		 char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
/* Examines own image name or, if foreign, any reference. */
int image_look(struct engine *e, const char *name, bool foreign, const struct setting_list *requirements,
	       struct image_found *ret, struct brig_error *err);

/* Internal interfaces of this folder. */
struct image_row {
	const char *name;
	const char *languages;
	unsigned groups;
	const unsigned char *dockerfile;
	const size_t *dockerfile_size;
	const char *dockerfile_hash;
};
const struct image_row *image_row(const char *name);
/* A progress message for users; the caller cuts and cleans it. */
void image_say(const struct image_options *options, const char *fmt, ...) PRINTF(2, 3);
int image_build(struct engine *e, const struct image_row *row, const struct image_options *options,
		char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
int image_derive(struct engine *e, const char *base_id, const struct image_options *options,
		 char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
/* Creates a container of the image that is never started, to read and write its files; the caller removes it. */
int image_unstarted(struct engine *e, const char *base_id, char ret[ENGINE_ID_LEN + 1], struct brig_error *err);
/* The ids of "name" or "name:group" according to the image's own /etc/passwd and /etc/group; never 0. */
int image_find_user(struct engine *e, const char *image_id, const char *user, uint32_t *ret_uid, uint32_t *ret_gid,
		    struct brig_error *err);

#endif
