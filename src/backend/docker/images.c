/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/docker/images.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "backend/docker/answer.h"
#include "backend/docker/image_groups.h"
#include "backend/docker/image_python.h"
#include "backend/container/init.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/wait.h"
#include "sys/crypto.h"

#define BUILD_CEILING (30 * 60 * NS_PER_SEC)
#define LOCK_PAUSE_MS 50
#define RECIPE_FORMAT "2" /* changes if the same rows produce different files */

#define DECLARE(file)                              \
	extern const unsigned char file##_bytes[]; \
	extern const size_t file##_size;           \
	extern const char file##_hash[];
#define IMAGE(name, languages, groups, dockerfile) DECLARE(dockerfile)
#include "backend/docker/images.def"

static const struct image_row rows[] = {
#define IMAGE(name, languages, groups, dockerfile) \
	{ name, languages, groups, dockerfile##_bytes, &dockerfile##_size, dockerfile##_hash },
#include "backend/docker/images.def"
};

const char *const image_state_name[] = {
	[IMAGE_MISSING] = "missing",
	[IMAGE_GOOD] = "good",
	[IMAGE_WRONG] = "wrong",
};
_Static_assert(ARRAY_LEN(image_state_name) == IMAGE_STATE_COUNT, "image_state_name[] misses a state");

#if defined(__aarch64__)
#define OWN_ARCHITECTURE "arm64"
#else
#define OWN_ARCHITECTURE "amd64"
#endif

const char *image_name(size_t i)
{
	return i < ARRAY_LEN(rows) ? rows[i].name : NULL;
}

const char *image_languages(size_t i)
{
	return i < ARRAY_LEN(rows) ? rows[i].languages : NULL;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; len > 0 && (at = strstr(at, word)) != NULL; at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

const char *image_of(const char *what)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].name, what))
			return rows[i].name;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (has_word(rows[i].languages, what))
			return rows[i].name;
	return NULL;
}

const struct image_row *image_row(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static void hash_text(struct sha256 *h, const char *text)
{
	sha256_add(h, text, strlen(text) + 1);
}

/* A hash of everything that determines the image's contents, 16 hex digits. */
static void recipe(const struct image_row *row, const struct setting_list *requirements, char dst[17])
{
	char hex[SHA256_HEX + 1];
	uint8_t sum[SHA256_LEN];
	struct sha256 h;

	sha256_begin(&h);
	hash_text(&h, RECIPE_FORMAT);
	hash_text(&h, row->name);
	hash_text(&h, container_init_hash);
	hash_text(&h, row->dockerfile_hash);
	image_group_hash(&h, row->groups);
	if (row->groups & GROUP_PYTHON)
		image_python_hash(&h, requirements);
	sha256_end(&h, sum);
	(void)snprintf(dst, 17, "%.16s", hex_put(hex, sum, sizeof(sum)));
}

bool image_takes_requirements(const char *name)
{
	const struct image_row *row = image_row(name);

	return row && row->groups & GROUP_PYTHON;
}

bool image_reference(const char *name, const struct setting_list *requirements, char *dst, size_t size)
{
	const struct image_row *row = image_row(name);
	char hash[17];

	if (!row)
		return false;
	recipe(row, requirements, hash);
	return snprintf(dst, size, "brig/%s:%s-%s", name, BRIG_VERSION, hash) < (int)size;
}

void image_say(const struct image_options *options, const char *fmt, ...)
{
	char line[IMAGE_TEXT_MAX];
	va_list ap;

	if (!options->progress)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	options->progress(options->arg, line);
}

/* ---- verification ----------------------------------------------------------------------------------- */

static void complain(struct image_found *f, const char *fmt, ...) PRINTF(2, 3);
static void complain(struct image_found *f, const char *fmt, ...)
{
	va_list ap;

	f->state = IMAGE_WRONG;
	if (f->complaint[0])
		return; /* the first complaint is sufficient */
	va_start(ap, fmt);
	(void)vsnprintf(f->complaint, sizeof(f->complaint), fmt, ap);
	va_end(ap);
}

/* Checks for every image: it must not bypass the container's settings or run anything of its own. */
static void judge_any(const json_t *image, struct image_found *f)
{
	char text[64];
	const char *arch = answer_text_or(image, "Architecture", "");
	const char *os = answer_text_or(image, "Os", "linux");
	json_t *test = answer_at(image, "Config.Healthcheck.Test");

	if (!str_eq(arch, OWN_ARCHITECTURE))
		complain(f, "it is for %s, and brig's cells here are for %s: use an image for %s",
			 answer_clean(text, sizeof(text), arch), OWN_ARCHITECTURE, OWN_ARCHITECTURE);
	if (!str_eq(os, "linux"))
		complain(f, "it is for %s, not for Linux", answer_clean(text, sizeof(text), os));
	if (!answer_is_empty(image, "Config.Volumes"))
		complain(f, "it declares volumes, which would be writable and outlive the cell: take VOLUME out of its "
			    "Dockerfile");
	if (json_array_size(test) > 0 && !answer_has_item(image, "Config.Healthcheck.Test", "NONE"))
		complain(f, "it has a health check, which would run beside the program: add HEALTHCHECK NONE to its "
			    "Dockerfile");
}

/* A label's value; "" if missing.  Keys contain dots, so answer_at cannot be used. */
static const char *label_of(const json_t *image, const char *key)
{
	const char *value = json_string_value(json_object_get(answer_at(image, "Config.Labels"), key));

	return value ? value : "";
}

static void judge_own(const json_t *image, const struct image_row *row, const struct setting_list *requirements,
		      struct image_found *f)
{
	char hash[17];

	recipe(row, requirements, hash);
	if (!str_eq(label_of(image, IMAGE_LABEL), row->name) || !str_eq(label_of(image, IMAGE_LABEL_RECIPE), hash))
		complain(f, "its labels are not those of brig's image: brig images build --rebuild %s", row->name);
	if (!str_eq(label_of(image, CONTAINER_INIT_LABEL), container_init_hash))
		complain(f, "it has another brig's first process: brig images build --rebuild %s", row->name);
	if (!str_eq(answer_text_or(image, "Config.User", ""), "1000:1000"))
		complain(f, "its user is not 1000:1000: brig images build --rebuild %s", row->name);
	if (!answer_is_empty(image, "Config.Entrypoint"))
		complain(f, "it has an entrypoint: brig images build --rebuild %s", row->name);
}

/* Permits the characters of names, tags and digests.  The reference is percent-encoded in addition. */
static bool is_reference(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len >= IMAGE_REF_MAX || !isalnum((unsigned char)s[0]) || strstr(s, "..") || strstr(s, "//"))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("._-/:@", *s))
			return false;
	return true;
}

static int bad_reference(const char *name, struct brig_error *err)
{
	char clean[120];

	return err_set(err, BRIG_E_REFUSED, 0,
		       "docker_image '%s' is not the name of an image: write [host/]name[:tag], name@sha256:digest or "
		       "an image id",
		       answer_clean(clean, sizeof(clean), name));
}

static int look(struct engine *e, const char *ref, const struct image_row *row, const struct setting_list *requirements,
		struct image_found *ret, json_t **ret_image, struct brig_error *err)
{
	json_t *image = NULL;
	const char *id;
	int rc = engine_image_inspect(e, ref, &image, err);

	memset(ret, 0, sizeof(*ret));
	(void)str_copy(ret->ref, sizeof(ret->ref), ref);
	if (rc < 0 && !row && engine_status(e) == 400)
		return bad_reference(ref, err); /* valid characters, but not a reference for the engine */
	if (rc != 0)
		return rc < 0 ? rc : 0;
	id = answer_text_or(image, "Id", "");
	if (!answer_is_image_id(id)) {
		json_decref(image);
		return err_set(err, BRIG_E_SYSTEM, 0, "the engine names no id for the image %s", ref);
	}
	ret->state = IMAGE_GOOD;
	(void)str_copy(ret->id, sizeof(ret->id), id);
	(void)answer_clean(ret->how, sizeof(ret->how), label_of(image, IMAGE_LABEL_HOW));
	(void)answer_clean(ret->created, sizeof(ret->created), answer_text_or(image, "Created", ""));
	(void)answer_u64(image, "Size", &ret->bytes);
	judge_any(image, ret);
	if (row)
		judge_own(image, row, requirements, ret);
	if (ret_image)
		*ret_image = image;
	else
		json_decref(image);
	return 0;
}

int image_look(struct engine *e, const char *name, bool foreign, const struct setting_list *requirements,
	       struct image_found *ret, struct brig_error *err)
{
	char ref[IMAGE_REF_MAX];

	if (foreign)
		return is_reference(name) ? look(e, name, NULL, NULL, ret, NULL, err) : bad_reference(name, err);
	if (!image_reference(name, requirements, ref, sizeof(ref)))
		return err_set(err, BRIG_E_USAGE, 0, "there is no image called '%s'", name);
	return look(e, ref, image_row(name), requirements, ret, NULL, err);
}

/* ---- creating ---------------------------------------------------------------------------------------- */

/*
 * Lets only one process on this host build an image at a time, so that the others find it built.  An abstract socket
 * name: it is released with its holder, however that ends. If it does not work (another network namespace, an hour of
 * waiting), both build the same image, which only costs time.
 */
static int build_lock(const struct image_row *row, const char *address)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	uint64_t until = clock_now_ns() + BUILD_CEILING;
	char text[sizeof(name.sun_path)], hex[SHA256_HEX + 1];
	uint8_t sum[SHA256_LEN];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return FD_NONE;
	sha256(address, strlen(address), sum);
	(void)snprintf(text, sizeof(text), "brig-image-%s-%.16s", row->name, hex_put(hex, sum, sizeof(sum)));
	memcpy(name.sun_path + 1, text, strlen(text));
	while (bind(fd, (const struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text))) < 0) {
		if (errno != EADDRINUSE || clock_now_ns() > until)
			break;
		wait_sleep(LOCK_PAUSE_MS * NS_PER_MS);
	}
	return fd;
}

/* These options ask for an image other than the existing one. */
static bool must_build(const struct image_options *options)
{
	return options->rebuild || options->pull || options->no_cache;
}

static int build_own(struct engine *e, const struct image_row *row, const struct image_options *options,
		     const char *ref, char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	struct image_found found;
	AUTO_FD lock = FD_NONE;
	int rc;

	engine_set_deadline(e, clock_now_ns() + BUILD_CEILING);
	lock = build_lock(row, engine_about(e)->address);
	rc = look(e, ref, row, options->requirements, &found, NULL, err);
	if (rc < 0)
		return rc;
	if (found.state == IMAGE_GOOD && !must_build(options)) { /* another brig has built it meanwhile */
		(void)str_copy(ret_id, ENGINE_IMAGE_LEN + 1, found.id);
		return 0;
	}
	engine_set_deadline(e, clock_now_ns() + BUILD_CEILING);
	rc = image_build(e, row, options, ret_id, err);
	if (rc < 0)
		return rc;
	rc = look(e, ret_id, row, options->requirements, &found, NULL, err);
	if (rc == 0 && found.state != IMAGE_GOOD)
		return err_set(err, BRIG_E_SYSTEM, 0, "the image just built for %s is not what was asked for: %s",
			       row->name, found.state == IMAGE_MISSING ? "the engine has lost it" : found.complaint);
	return rc;
}

static int ensure_own(struct engine *e, const char *language, const struct image_options *options, bool *ret_took_time,
		      char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	const char *name = image_of(language);
	char ref[IMAGE_REF_MAX];
	struct image_found found;
	int rc;

	if (!name || !image_reference(name, options->requirements, ref, sizeof(ref)))
		return err_set(err, BRIG_E_REFUSED, 0, "the docker backend has no image for %s: set docker_image",
			       language);
	rc = look(e, ref, image_row(name), options->requirements, &found, NULL, err);
	if (rc < 0)
		return rc;
	if (found.state == IMAGE_GOOD && !must_build(options)) {
		(void)str_copy(ret_id, ENGINE_IMAGE_LEN + 1, found.id);
		return 0;
	}
	if (!options->may_build)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the image for %s, %s, is %s%s%s and docker_build is false: brig images build %s",
			       language, ref, image_state_name[found.state], found.complaint[0] ? " (" : "",
			       found.complaint[0] ? "see brig images check)" : "", name);
	*ret_took_time = true;
	return build_own(e, image_row(name), options, ref, ret_id, err);
}

static int ensure_foreign(struct engine *e, const struct image_options *options, bool *ret_took_time,
			  char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	struct image_found found;
	json_t *image = NULL;
	int rc;

	if (!is_reference(options->image))
		return bad_reference(options->image, err);
	rc = look(e, options->image, NULL, NULL, &found, &image, err);
	if (rc < 0)
		return rc;
	if (found.state == IMAGE_MISSING)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the image '%s' of docker_image is not on the engine at %s: docker pull %s, or leave "
			       "docker_image empty",
			       options->image, engine_about(e)->address, options->image);
	rc = 0;
	if (found.state == IMAGE_WRONG)
		rc = err_set(err, BRIG_E_REFUSED, 0, "the image '%s' of docker_image cannot be used: %s",
			     options->image, found.complaint);
	else if (str_eq(label_of(image, CONTAINER_INIT_LABEL), container_init_hash))
		(void)str_copy(ret_id, ENGINE_IMAGE_LEN + 1, found.id);
	else {
		*ret_took_time = true;
		rc = image_derive(e, found.id, options, ret_id, err);
	}
	json_decref(image);
	return rc;
}

int image_ensure(struct engine *e, const char *language, const struct image_options *options, uint64_t deadline_ns,
		 char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err)
{
	uint64_t begun = clock_now_ns();
	bool took_time = false;
	int rc = options->image && options->image[0] ? ensure_foreign(e, options, &took_time, ret_id, err)
						     : ensure_own(e, language, options, &took_time, ret_id, err);

	if (took_time && deadline_ns > begun)
		deadline_ns = clock_now_ns() + (deadline_ns - begun);
	engine_set_deadline(e, deadline_ns);
	return rc;
}
