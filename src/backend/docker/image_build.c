/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an own image is created.  First from a registry: the engine gets the Dockerfile that brig carries, with two more
 * lines for PID 1, and fetches the base.  If the engine cannot reach a registry, the image is built from the host: this
 * host's own interpreter or compiler, with what it needs, is packed into a root file system and imported. Both result
 * in an image with the same labels; one of them says which way was used.
 */
#include <stdio.h>
#include <string.h>

#include "backend/docker/answer.h"
#include "backend/docker/image_groups.h"
#include "backend/docker/image_python.h"
#include "backend/docker/image_tar.h"
#include "backend/docker/images.h"
#include "backend/container/init.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

#define CONTEXT_INIT     "brig-init"
#define REGISTRY_CEILING (20 * 60 * NS_PER_SEC)

static void filesp_free(struct image_files **f)
{
	image_files_free(*f);
}

static void json_drop(json_t **j)
{
	json_decref(*j);
}

/* Splits "repo:tag". */
static void split_reference(const char *ref, char *repo, size_t repo_size, const char **ret_tag)
{
	const char *colon = strrchr(ref, ':');

	(void)snprintf(repo, repo_size, "%.*s", (int)(colon - ref), ref);
	*ret_tag = colon + 1;
}

static const char *recipe_of(const char *ref)
{
	return strrchr(ref, '-') + 1;
}

/* ---- from a registry ----------------------------------------------------------------------------------- */

static int write_context(const struct image_row *row, const struct image_options *options, int fd,
			 struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(64 * KiB);
	struct tar tar;
	int rc = tar_open(&tar, fd, err);

	if (rc < 0)
		return rc;
	(void)buf_add(&text, row->dockerfile, *row->dockerfile_size);
	if (image_takes_requirements(row->name))
		image_python_install(options->requirements, &text);
	(void)buf_addf(&text, "\nCOPY --chown=0:0 %s %s\n", CONTEXT_INIT, CONTAINER_INIT_PATH);
	tar_data(&tar, "Dockerfile", 0644, buf_str(&text), text.len);
	tar_data(&tar, CONTEXT_INIT, 0755, container_init_bytes, container_init_size);
	rc = tar_close(&tar, err);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		rc = err_set(err, BRIG_E_SYSTEM, errno, "a build context cannot be rewound");
	return rc;
}

static int build_from_registry(struct engine *e, const struct image_row *row, const char *ref,
			       const struct image_options *options, char ret_id[ENGINE_IMAGE_LEN + 1],
			       struct brig_error *err)
{
	CLEANUP(json_drop)
	json_t *labels = json_pack("{s:s, s:s, s:s, s:s, s:s}", IMAGE_LABEL, row->name, IMAGE_LABEL_VERSION,
				   BRIG_VERSION, IMAGE_LABEL_RECIPE, recipe_of(ref), IMAGE_LABEL_HOW, "registry",
				   CONTAINER_INIT_LABEL, container_init_hash);
	struct engine_build build = { .tag = ref,
				      .labels = labels,
				      .pull = options->pull,
				      .no_cache = options->no_cache,
				      .progress = options->progress,
				      .arg = options->arg };
	AUTO_FD context = tar_temporary(err);
	int rc;

	if (!labels)
		return err_nomem(err);
	if (context < 0)
		return -err->code;
	rc = write_context(row, options, context, err);
	if (rc < 0)
		return rc;
	build.context_fd = context;
	engine_set_deadline(e, clock_now_ns() + REGISTRY_CEILING);
	return engine_image_build(e, &build, ret_id, err);
}

/* ---- from the host --------------------------------------------------------------------------------------- */

#define LINE_MAX_LEN 160

static int import(struct engine *e, const struct image_row *row, const char *ref, int tar,
		  char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	static const char *const keys[] = { IMAGE_LABEL, IMAGE_LABEL_VERSION, IMAGE_LABEL_RECIPE, IMAGE_LABEL_HOW,
					    CONTAINER_INIT_LABEL };
	const char *const values[] = { row->name, BRIG_VERSION, recipe_of(ref), "host", container_init_hash };
	char line[ARRAY_LEN(keys)][LINE_MAX_LEN];
	const char *changes[ARRAY_LEN(keys) + 3] = { "USER 1000:1000", "WORKDIR /workspace" };
	char repo[IMAGE_REF_MAX];
	const char *tag;
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		(void)snprintf(line[i], sizeof(line[i]), "LABEL %s=%s", keys[i], values[i]);
		changes[i + 2] = line[i];
	}
	split_reference(ref, repo, sizeof(repo), &tag);
	rc = engine_image_import(e, tar, repo, tag, changes, ret_id, err);
	return rc < 0 ? rc : engine_image_tag(e, ret_id, repo, tag, err); /* Podman does not apply the tag */
}

static int build_from_host(struct engine *e, const struct image_row *row, const char *ref,
			   const struct image_options *options, char ret_id[ENGINE_IMAGE_LEN + 1],
			   struct brig_error *err)
{
	CLEANUP(filesp_free)
	struct image_files *files = image_files_new();
	AUTO_FD tar = FD_NONE;
	char size[32];
	int rc;

	if (!files)
		return err_nomem(err);
	rc = image_group_collect(row->groups, files, err);
	if (rc == 0 && image_takes_requirements(row->name))
		rc = image_python_collect(options->requirements, files, err);
	if (rc < 0)
		return rc;
	image_say(options, "%s: %zu files, %s of this host's own programs", row->name, image_files_count(files),
		  str_bytes(size, sizeof(size), image_files_bytes(files)));
	tar = tar_temporary(err);
	if (tar < 0)
		return -err->code;
	rc = image_files_write(files, tar, err);
	return rc < 0 ? rc : import(e, row, ref, tar, ret_id, err);
}

/* ---- both ------------------------------------------------------------------------------------------------ */

static void explain(struct brig_error *err, const char *name)
{
	if (strstr(err->msg, "no space left") || strstr(err->msg, "No space left"))
		(void)err_wrap(err,
			       "no room for the image %s on the engine (docker system df shows what it keeps, docker "
			       "system prune frees it)",
			       name);
	else
		(void)err_wrap(err, "the image %s cannot be built", name);
}

/* 0: built, 1: not possible this way. */
static int try_registry(struct engine *e, const struct image_row *row, const char *ref,
			const struct image_options *options, char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	int rc;

	if (options->from == IMAGE_FROM_HOST || (!options->pull && options->no_registry && *options->no_registry))
		return 1;
	image_say(options, "%s: asking the engine for its base", row->name);
	rc = build_from_registry(e, row, ref, options, ret_id, err);
	if (rc >= 0 || options->from == IMAGE_FROM_REGISTRY || options->pull)
		return rc;
	if (options->no_registry)
		*options->no_registry = true;
	image_say(options, "%s: %s", row->name, err->msg);
	image_say(options, "%s: no base from a registry; taking this host's own programs", row->name);
	return 1;
}

int image_build(struct engine *e, const struct image_row *row, const struct image_options *options,
		char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	uint64_t begun = clock_now_ns();
	char ref[IMAGE_REF_MAX];
	int rc;

	if (!image_reference(row->name, options->requirements, ref, sizeof(ref)))
		return err_set(err, BRIG_E_INTERNAL, 0, "the name of image %s is too long", row->name);
	image_say(options, "%s: building %s on %s %s", row->name, ref, engine_about(e)->name, engine_about(e)->version);
	rc = try_registry(e, row, ref, options, ret_id, err);
	if (rc > 0)
		rc = build_from_host(e, row, ref, options, ret_id, err);
	if (rc < 0) {
		explain(err, row->name);
		return rc;
	}
	image_say(options, "%s: built in %.1f s, %.19s", row->name,
		  (double)(clock_now_ns() - begun) / (double)NS_PER_SEC, ret_id);
	return 0;
}
