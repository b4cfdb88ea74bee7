/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A foreign image with our PID 1 added.  A container is created from it and never started, so nothing of the image runs
 * and its ONBUILD instructions have no effect; our file is put into it, and it is committed.  The result is kept under
 * a name made of both hashes: the next run with the same image finds it.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/docker/answer.h"
#include "backend/docker/image_tar.h"
#include "backend/docker/images.h"
#include "backend/container/init.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

#define DERIVED_REPO    "brig/derived"
#define DERIVE_CEILING  (5 * 60 * NS_PER_SEC)
#define DERIVE_NAME_LEN 12
#define DERIVE_PREFIX   "brig-derive-"
#define DERIVE_STALE_S  600

/* Without "sha256:", and shortened: 96 bits of the image's id and 64 of our file's hash. */
static void derived_tag(const char *base_id, char *dst, size_t size)
{
	(void)snprintf(dst, size, "%.24s-%.16s", base_id + strlen("sha256:"), container_init_hash);
}

/* 1: found, and verified by its labels. */
static int find_derived(struct engine *e, const char *base_id, const char *tag, char ret_id[ENGINE_IMAGE_LEN + 1],
			struct brig_error *err)
{
	char ref[IMAGE_REF_MAX];
	json_t *image = NULL, *labels;
	const char *from, *init, *id;
	int rc;

	(void)snprintf(ref, sizeof(ref), "%s:%s", DERIVED_REPO, tag);
	rc = engine_image_inspect(e, ref, &image, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	labels = answer_at(image, "Config.Labels");
	from = json_string_value(json_object_get(labels, IMAGE_LABEL_FROM));
	init = json_string_value(json_object_get(labels, CONTAINER_INIT_LABEL));
	id = answer_text_or(image, "Id", "");
	rc = from && init && str_eq(from, base_id) && str_eq(init, container_init_hash) && answer_is_image_id(id);
	if (rc)
		(void)str_copy(ret_id, ENGINE_IMAGE_LEN + 1, id);
	json_decref(image);
	return rc;
}

/* A tar with the one file, which is small, in memory. */
static int put_init(struct engine *e, const char *container, struct brig_error *err)
{
	AUTO_FD fd = tar_temporary(err);
	struct tar tar;
	int rc;

	if (fd < 0)
		return -err->code;
	rc = tar_open(&tar, fd, err);
	if (rc < 0)
		return rc;
	tar_folder(&tar, ".brig", 0755, 0);
	tar_data(&tar, CONTAINER_INIT_PATH + 1, 0755, container_init_bytes, container_init_size);
	rc = tar_close(&tar, err);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		rc = err_set(err, BRIG_E_SYSTEM, errno, "a temporary file cannot be rewound");
	return rc < 0 ? rc : engine_put_archive(e, container, "/", NULL, 0, fd, err);
}

int image_unstarted(struct engine *e, const char *base_id, char ret[ENGINE_ID_LEN + 1], struct brig_error *err)
{
	char name[sizeof(DERIVE_PREFIX) + DERIVE_NAME_LEN] = DERIVE_PREFIX;
	json_t *body =
		json_pack("{s:s, s:[s], s:s, s:{s:s, s:s, s:s, s:s, s:s}, s:{s:s}}", "Image", base_id, "Cmd",
			  CONTAINER_INIT_PATH, "User", "1000:1000", "Labels", IMAGE_LABEL, "derived",
			  IMAGE_LABEL_VERSION, BRIG_VERSION, IMAGE_LABEL_HOW, "derived", IMAGE_LABEL_FROM, base_id,
			  CONTAINER_INIT_LABEL, container_init_hash, "HostConfig", "NetworkMode", "none");
	int rc;

	if (!body)
		return err_nomem(err);
	if (id_random(name + strlen(name), DERIVE_NAME_LEN) < 0) {
		json_decref(body);
		return err_set(err, BRIG_E_SYSTEM, 0, "the kernel gives no random numbers");
	}
	rc = engine_create(e, name, body, ret, NULL, 0, err);
	json_decref(body);
	if (rc < 0 && (engine_status(e) < 400 || engine_status(e) >= 500)) { /* it may have been created nevertheless */
		struct brig_error ignored = BRIG_ERROR_INIT;

		(void)engine_remove(e, name, &ignored);
	}
	return rc;
}

/*
 * Removes containers that a brig left when it was killed between create and remove.  They were never started; after ten
 * minutes none can be in use.
 */
static void sweep(struct engine *e)
{
	struct brig_error scrap = BRIG_ERROR_INIT;
	json_t *list = NULL, *row;
	size_t i;

	if (engine_list(e, IMAGE_LABEL "=derived", &list, &scrap) < 0)
		return;
	json_array_foreach(list, i, row)
	{
		const char *name = json_string_value(json_array_get(json_object_get(row, "Names"), 0));
		uint64_t created = 0;

		if (!name || strncmp(name + (*name == '/'), DERIVE_PREFIX, strlen(DERIVE_PREFIX)) != 0 ||
		    !str_eq(answer_text_or(row, "State", ""), "created") || !answer_u64(row, "Created", &created))
			continue;
		if (created + DERIVE_STALE_S < (uint64_t)time(NULL))
			(void)engine_remove(e, answer_text_or(row, "Id", ""), &scrap);
	}
	json_decref(list);
}

int image_derive(struct engine *e, const char *base_id, const struct image_options *options,
		 char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	char tag[64], container[ENGINE_ID_LEN + 1];
	struct brig_error second = BRIG_ERROR_INIT;
	int rc;

	engine_set_deadline(e, clock_now_ns() + DERIVE_CEILING);
	derived_tag(base_id, tag, sizeof(tag));
	rc = options->rebuild ? 0 : find_derived(e, base_id, tag, ret_id, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	sweep(e);
	image_say(options, "adding brig's first process to %.19s", base_id);
	rc = image_unstarted(e, base_id, container, err);
	if (rc == 0) {
		rc = put_init(e, container, err);
		if (rc == 0)
			rc = engine_commit(e, container, DERIVED_REPO, tag, ret_id, err);
		if (rc == 0)
			rc = engine_image_tag(e, ret_id, DERIVED_REPO, tag, err);
		if (engine_remove(e, container, &second) < 0 && rc == 0) {
			*err = second;
			rc = -err->code;
		}
	}
	return rc < 0 ? err_wrap(err, "no image could be derived from %.19s", base_id) : 0;
}
