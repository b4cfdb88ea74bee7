/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of an engine: the first byte chooses the kind, the rest is the answer.  What is accepted can be relied on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/docker/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool it)
{
	if (!it)
		abort();
}

static void must_be_clean(const char *text, size_t size)
{
	must(memchr(text, '\0', size) != NULL);
	for (; *text; text++)
		must(*text >= ' ' && *text <= '~');
}

static int on_change(void *arg, enum engine_change kind, const char *path)
{
	(void)arg;
	must(kind <= ENGINE_DELETED && path[0] == '/');
	return 0;
}

static void version(const char *data, size_t size, struct brig_error *err)
{
	struct engine_about about = { 0 };
	unsigned oldest = 0, newest = 0;

	(void)answer_version(data, size, &about, &oldest, &newest, err);
	must_be_clean(about.version, sizeof(about.version));
	must_be_clean(about.runtime, sizeof(about.runtime));
}

static void info(const char *data, size_t size, struct brig_error *err)
{
	struct engine_host host;

	if (answer_info(data, size, &host, err) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(host.runtimes); i++)
		must_be_clean(host.runtimes[i], sizeof(host.runtimes[i]));
	for (size_t i = 0; i < ARRAY_LEN(host.security); i++)
		must_be_clean(host.security[i], sizeof(host.security[i]));
	for (size_t i = 0; i < ARRAY_LEN(host.warnings); i++)
		must_be_clean(host.warnings[i], sizeof(host.warnings[i]));
	must(host.cgroup_version <= 2);
}

static void created(const char *data, size_t size, struct brig_error *err)
{
	char id[ENGINE_ID_LEN + 1], warnings[64];

	if (answer_created(data, size, id, warnings, sizeof(warnings), err) < 0)
		return;
	must(answer_is_id(id));
	must_be_clean(warnings, sizeof(warnings));
}

static void ended(const char *data, size_t size, struct brig_error *err)
{
	struct engine_exit e = { 0 };

	if (answer_exit(data, size, &e, err) < 0)
		return;
	must(e.code >= 0 && e.code <= 255);
	must_be_clean(e.error, sizeof(e.error));
}

static void progress(const char *data, size_t size)
{
	struct answer_progress p = { "", "" };
	char text[64];

	answer_progress(data, size, &p, text, sizeof(text));
	must(!p.id[0] || answer_is_image_id(p.id));
	must_be_clean(p.error, sizeof(p.error));
	must_be_clean(text, sizeof(text));
}

static void head(const char *data, size_t size)
{
	struct http_answer a = HTTP_ANSWER_INIT;
	int64_t length;
	ssize_t n = http_parse_head(data, size, &a, &length);

	must(n <= (ssize_t)size && length >= -1);
	must(n <= 0 || (a.status >= 100 && a.status <= 599));
	must_be_clean(a.content_type, sizeof(a.content_type));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *data = (const char *)bytes + 1;
	struct brig_error err = BRIG_ERROR_INIT;
	struct engine_stats stats;
	char text[64];

	if (size < 1)
		return 0;
	size--;
	switch (bytes[0]) {
	case 'v':
		version(data, size, &err);
		break;
	case 'i':
		info(data, size, &err);
		break;
	case 'c':
		created(data, size, &err);
		break;
	case 'e':
		ended(data, size, &err);
		break;
	case 's':
		(void)answer_stats(data, size, &stats, &err);
		break;
	case 'd':
		(void)answer_changes(data, size, on_change, NULL, &err);
		break;
	case 'p':
		progress(data, size);
		break;
	case 'm':
		must_be_clean(answer_message(text, sizeof(text), data, size), sizeof(text));
		break;
	case 'h':
		head(data, size);
		break;
	default:
		break;
	}
	return 0;
}
