/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/docker/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* ---- text ----------------------------------------------------------------------------------------- */

bool answer_is_id(const char *s)
{
	return s && strspn(s, "0123456789abcdef") == ENGINE_ID_LEN && s[ENGINE_ID_LEN] == '\0';
}

bool answer_is_image_id(const char *s)
{
	return s && strncmp(s, "sha256:", 7) == 0 && answer_is_id(s + 7);
}

bool answer_image_id(const char *text, char dst[ENGINE_IMAGE_LEN + 1])
{
	bool bare = answer_is_id(text);

	if (!bare && !answer_is_image_id(text))
		return false;
	(void)snprintf(dst, ENGINE_IMAGE_LEN + 1, "sha256:%.64s", bare ? text : text + 7);
	return true;
}

const char *answer_message(char *dst, size_t size, const char *data, size_t len)
{
	struct brig_error unused;
	json_t *v = answer_parse_object(data, len, 0, &unused);
	const char *text = answer_text(v, "message"); /* Docker's; Podman adds "cause" */

	if (size > 0)
		dst[0] = '\0';
	if (text)
		(void)answer_clean(dst, size, text);
	json_decref(v);
	return size > 0 ? dst : "";
}

static void take_text(char *dst, size_t size, const json_t *v, const char *path)
{
	(void)answer_clean(dst, size, answer_text_or(v, path, ""));
}

/* ---- kinds of answers ------------------------------------------------------------------------------ */

bool answer_api(const char *text, unsigned *ret)
{
	uint64_t minor;

	if (!text || strncmp(text, "1.", 2) != 0 || !str_to_u64(text + 2, &minor) || minor > 10000)
		return false;
	*ret = (unsigned)minor;
	return true;
}

/* Docker's components are "Engine", "containerd", "runc"; Podman's "Podman Engine", "Conmon", "OCI Runtime (crun)". */
static void take_components(const json_t *v, struct engine_about *ret)
{
	const json_t *list = answer_at(v, "Components");
	json_t *at;
	size_t i;

	json_array_foreach(list, i, at)
	{
		const char *name = answer_text_or(at, "Name", "");
		char joined[128];

		if (strncmp(name, "Podman", 6) == 0)
			ret->podman = true;
		if (!str_eq(name, "runc") && !str_eq(name, "crun") && strncmp(name, "OCI Runtime", 11) != 0)
			continue;
		(void)snprintf(joined, sizeof(joined), "%.40s %.80s", name, answer_text_or(at, "Version", ""));
		(void)answer_clean(ret->runtime, sizeof(ret->runtime), joined);
	}
}

int answer_version(const char *data, size_t len, struct engine_about *ret, unsigned *ret_oldest, unsigned *ret_newest,
		   struct brig_error *err)
{
	json_t *v = answer_parse_object(data, len, 0, err);
	int rc = 0;

	if (!v)
		return -BRIG_E_SYSTEM;
	if (!answer_api(answer_text(v, "ApiVersion"), ret_newest))
		rc = err_set(err, BRIG_E_SYSTEM, 0, "the engine does not say which version of its interface it speaks");
	else if (!answer_api(answer_text(v, "MinAPIVersion"), ret_oldest))
		*ret_oldest = 0;
	take_text(ret->version, sizeof(ret->version), v, "Version");
	take_components(v, ret);
	(void)str_copy(ret->name, sizeof(ret->name), ret->podman ? "Podman" : "Docker");
	json_decref(v);
	return rc;
}

/* Copies the strings of an array into rows of equal width; drops those that do not fit. */
static void take_list(char *rows, size_t n_rows, size_t width, const json_t *list)
{
	json_t *at;
	size_t i, n = 0;

	json_array_foreach(list, i, at) if (json_is_string(at) && n < n_rows)(void)
		answer_clean(rows + n++ * width, width, json_string_value(at));
}

static void take_runtimes(struct engine_host *ret, json_t *runtimes)
{
	const char *name;
	json_t *at;
	size_t n = 0;

	json_object_foreach(runtimes, name, at) if (n < ARRAY_LEN(ret->runtimes))(void)
		answer_clean(ret->runtimes[n++], sizeof(ret->runtimes[0]), name);
}

/* "name=seccomp,profile=default" */
static bool has_security(const struct engine_host *h, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(h->security); i++)
		if (strncmp(h->security[i], "name=", 5) == 0 && strncmp(h->security[i] + 5, name, n) == 0 &&
		    (h->security[i][5 + n] == '\0' || h->security[i][5 + n] == ','))
			return true;
	return false;
}

static bool true_unless_said(const json_t *v, const char *path)
{
	bool value = true;

	(void)answer_bool(v, path, &value);
	return value;
}

int answer_info(const char *data, size_t len, struct engine_host *ret, struct brig_error *err)
{
	json_t *v = answer_parse_object(data, len, 0, err);
	uint64_t version = 0;

	if (!v)
		return -BRIG_E_SYSTEM;
	*ret = (struct engine_host){ 0 };
	take_runtimes(ret, answer_at(v, "Runtimes"));
	take_list(ret->security[0], ARRAY_LEN(ret->security), sizeof(ret->security[0]),
		  answer_at(v, "SecurityOptions"));
	take_list(ret->warnings[0], ARRAY_LEN(ret->warnings), sizeof(ret->warnings[0]), answer_at(v, "Warnings"));
	take_text(ret->default_runtime, sizeof(ret->default_runtime), v, "DefaultRuntime");
	take_text(ret->cgroup_driver, sizeof(ret->cgroup_driver), v, "CgroupDriver");
	take_text(ret->storage_driver, sizeof(ret->storage_driver), v, "Driver");
	take_text(ret->root, sizeof(ret->root), v, "DockerRootDir");
	take_text(ret->architecture, sizeof(ret->architecture), v, "Architecture");
	take_text(ret->os_type, sizeof(ret->os_type), v, "OSType");
	if (str_to_u64(answer_text_or(v, "CgroupVersion", ""), &version) && version <= 2)
		ret->cgroup_version = (unsigned)version;
	(void)answer_u64(v, "NCPU", &ret->cpus);
	(void)answer_u64(v, "MemTotal", &ret->memory);
	ret->rootless = has_security(ret, "rootless");
	ret->userns = has_security(ret, "userns");
	ret->apparmor = has_security(ret, "apparmor");
	ret->seccomp = has_security(ret, "seccomp");
	ret->selinux = has_security(ret, "selinux");
	ret->memory_limit = true_unless_said(v, "MemoryLimit");
	ret->swap_limit = true_unless_said(v, "SwapLimit");
	ret->pids_limit = true_unless_said(v, "PidsLimit");
	ret->cpu_quota = true_unless_said(v, "CpuCfsQuota");
	json_decref(v);
	return 0;
}

/* Joins an array of strings into one line. */
static void join(char *dst, size_t size, const json_t *list)
{
	char text[160];
	size_t i, n = 0;
	json_t *at;

	if (size == 0)
		return;
	dst[0] = '\0';
	json_array_foreach(list, i, at)
	{
		if (!json_is_string(at) || n + 3 >= size)
			continue;
		(void)snprintf(dst + n, size - n, "%s%s", n ? "; " : "",
			       answer_clean(text, sizeof(text), json_string_value(at)));
		n = strlen(dst);
	}
}

int answer_created(const char *data, size_t len, char ret_id[ENGINE_ID_LEN + 1], char *warnings, size_t size,
		   struct brig_error *err)
{
	json_t *v = answer_parse_object(data, len, 0, err);
	const char *id = answer_text(v, "Id");
	int rc = 0;

	if (!v)
		return -BRIG_E_SYSTEM;
	if (answer_is_id(id))
		memcpy(ret_id, id, ENGINE_ID_LEN + 1);
	else
		rc = err_set(err, BRIG_E_SYSTEM, 0, "the engine made a container but gave no usable id for it");
	if (warnings)
		join(warnings, size, answer_at(v, "Warnings"));
	json_decref(v);
	return rc;
}

int answer_exit(const char *data, size_t len, struct engine_exit *ret, struct brig_error *err)
{
	json_t *v = answer_parse_object(data, len, 0, err);
	int64_t code = -1;
	int rc = 0;

	if (!v)
		return -BRIG_E_SYSTEM;
	take_text(ret->error, sizeof(ret->error), v, "Error.Message");
	if (!answer_i64(v, "StatusCode", &code) || code < 0 || code > 255)
		rc = err_set(err, BRIG_E_SYSTEM, 0, "the engine does not say with which status the program ended");
	else
		ret->code = (int)code;
	json_decref(v);
	return rc;
}

void answer_progress(const char *data, size_t len, struct answer_progress *ret, char *text, size_t size)
{
	/* Keys with an id: at the end of a build, of an import. */
	static const char *const places[] = { "aux.ID", "status" };
	struct brig_error unused;
	json_t *v = answer_parse_object(data, len, 0, &unused);
	const char *error = answer_text(v, "error");
	char line[128];

	text[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)answer_clean(line, sizeof(line), answer_text_or(v, places[i], ""));
		(void)answer_image_id(line, ret->id);
	}
	if (error && !ret->error[0])
		(void)answer_clean(ret->error, sizeof(ret->error), error[0] ? error : "(no reason)");
	else
		(void)answer_clean(text, size, answer_text_or(v, "stream", answer_text_or(v, "status", "")));
	json_decref(v);
}

/* Counters may need all 64 bits, which JSON integers do not have here: they are read as reals, exact up to 2^53. */
static void take_counter(const json_t *v, const char *path, uint64_t *ret)
{
	double value = json_real_value(answer_at(v, path)); /* 0 for other types */

	*ret = value <= 0 ? 0 : value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

int answer_stats(const char *data, size_t len, struct engine_stats *ret, struct brig_error *err)
{
	json_t *v = answer_parse_object(data, len, JSON_DECODE_INT_AS_REAL, err);
	const char *when;
	bool running;

	if (!v)
		return -BRIG_E_SYSTEM;
	take_counter(v, "cpu_stats.cpu_usage.total_usage", &ret->cpu_ns);
	take_counter(v, "memory_stats.usage", &ret->memory_bytes);
	take_counter(v, "memory_stats.max_usage", &ret->memory_peak_bytes);
	take_counter(v, "memory_stats.limit", &ret->memory_limit);
	take_counter(v, "pids_stats.current", &ret->pids);
	take_counter(v, "pids_stats.limit", &ret->pids_limit);
	when = answer_text_or(v, "read", "");
	/* A container that does not run has Go's zero time. */
	running = when[0] && strncmp(when, "0001-", 5) != 0;
	json_decref(v);
	return running ? 0 : 1;
}

int answer_changes(const char *data, size_t len, engine_change_fn each, void *arg, struct brig_error *err)
{
	json_t *v = answer_parse_any(data, len, err);
	json_t *at;
	size_t i;
	int rc = 0;

	if (!v)
		return -BRIG_E_SYSTEM;
	if (!json_is_array(v) && !json_is_null(v))
		rc = err_set(err, BRIG_E_SYSTEM, 0, "the engine's list of changed files is not a list");
	json_array_foreach(v, i, at)
	{
		const char *path = answer_text_or(at, "Path", "");
		int64_t kind = -1;

		if (rc < 0)
			break;
		if (!answer_i64(at, "Kind", &kind) || kind < 0 || kind > 2 || path[0] != '/')
			rc = err_set(err, BRIG_E_SYSTEM, 0, "the engine's list of changed files makes no sense");
		else
			rc = each(arg, (enum engine_change)kind, path);
	}
	json_decref(v);
	return rc < 0 ? rc : 0;
}
