/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/host.h"

#include <string.h>

#include "base/str.h"
#include "server/control.h"

/* Parses and frees a document of the library.  NULL: out of memory; invalid JSON cannot occur. */
static json_t *read_document(char *text)
{
	json_t *doc = json_loads(text, JSON_ALLOW_NUL, NULL);

	brig_free(text);
	return doc;
}

static const char *text_of(const json_t *setting)
{
	const char *text = json_string_value(json_object_get(setting, "value"));

	return text ? text : "";
}

/* Whether a setting that selects backends, as spelled in the policy, selects direct runs. */
static bool chooses_direct(const char *key, const json_t *setting)
{
	const char *text = json_string_value(json_object_get(setting, "text"));

	if (!text)
		return false;
	if (str_eq(key, "enable_sandbox"))
		return str_eq(text, "false");
	return (str_eq(key, "backend") || str_eq(key, "backends") || str_eq(key, "fallback")) && strstr(text, "direct");
}

static void read_setting(struct host *h, struct host_level *level, const json_t *setting)
{
	const char *key = json_string_value(json_object_get(setting, "key"));

	if (!key)
		return;
	h->has_direct_runs = h->has_direct_runs || chooses_direct(key, setting);
	if (str_eq(key, "mem_limit"))
		level->memory = (uint64_t)json_integer_value(json_object_get(setting, "value"));
	else if (str_eq(key, "execution_timeout_ms"))
		level->time_ms = (uint64_t)json_integer_value(json_object_get(setting, "value"));
	else if (str_eq(key, "cpu_time_ms"))
		level->cpu_ms = (uint64_t)json_integer_value(json_object_get(setting, "value"));
	else if (str_eq(key, "compile_timeout_ms"))
		level->compile_ms = (uint64_t)json_integer_value(json_object_get(setting, "value"));
	else if (str_eq(key, "session_timeout_ms"))
		level->session_ms = (uint64_t)json_integer_value(json_object_get(setting, "value"));
	else if (str_eq(key, "cpu_quota_percent"))
		level->cpu_percent = (uint64_t)json_integer_value(json_object_get(setting, "value"));
	else if (str_eq(key, "disk_limit"))
		level->disk = (uint64_t)json_integer_value(json_object_get(setting, "value"));
	else if (str_eq(key, "environment"))
		(void)str_copy(level->environment, sizeof(level->environment), text_of(setting));
	else if (str_eq(key, "backend") && !str_eq(text_of(setting), "auto"))
		(void)str_copy(level->backend, sizeof(level->backend), text_of(setting));
	else if (str_eq(key, "inspection"))
		(void)str_copy(level->inspection, sizeof(level->inspection), text_of(setting));
	else if (str_eq(key, "network_mode"))
		(void)str_copy(level->network, sizeof(level->network), text_of(setting));
	else if (str_eq(key, "default_trust"))
		(void)token_trust_parse(text_of(setting), &h->default_trust);
}

/*
 * The most that a request may ask for: normally the limit itself.  For trust `unknown`, if neither policy nor operator
 * has set the limit, the maximum for that limit.
 */
static uint64_t most_of(const json_t *settings, enum token_trust trust, const char *limit_key, const char *most_key)
{
	uint64_t limit = 0, most = 0;
	bool is_stated = true;
	const json_t *setting;
	size_t i;

	json_array_foreach(settings, i, setting)
	{
		const char *key = json_string_value(json_object_get(setting, "key"));
		const char *layer = json_string_value(json_object_get(setting, "layer"));
		uint64_t value = (uint64_t)json_integer_value(json_object_get(setting, "value"));

		if (key && str_eq(key, limit_key)) {
			limit = value;
			is_stated = !layer || (!str_eq(layer, "built-in") && !str_eq(layer, "preset"));
		} else if (key && str_eq(key, most_key)) {
			most = value;
		}
	}
	return trust == TOKEN_UNKNOWN && !is_stated && most > limit ? most : limit;
}

static int read_level(struct host *h, enum token_trust trust, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	char *text = NULL;
	json_t *doc, *settings, *setting;
	size_t i;

	if (brig_policy_json(h->b, token_trust_name(trust), &text, &why) < 0) {
		if (why.code == BRIG_E_REFUSED)
			return 0;
		*err = why;
		return -why.code;
	}
	doc = read_document(text);
	if (!doc)
		return err_nomem(err);
	h->level[trust].is_known = true;
	settings = json_object_get(doc, "settings");
	json_array_foreach(settings, i, setting) read_setting(h, &h->level[trust], setting);
	h->level[trust].most_output = most_of(settings, trust, "output_limit", "max_output_limit");
	h->level[trust].most_ms = most_of(settings, trust, "execution_timeout_ms", "max_execution_timeout_ms");
	json_decref(doc);
	return 0;
}

/* One member of a document of the library, as a new reference. */
static int read_member(struct host *h, int (*document)(struct brig *b, char **ret, struct brig_error *err),
		       const char *name, json_t **ret, struct brig_error *err)
{
	char *text = NULL;
	int rc = document(h->b, &text, err);
	json_t *doc;

	if (rc < 0)
		return rc;
	doc = read_document(text);
	if (!doc)
		return err_nomem(err);
	*ret = json_incref(json_object_get(doc, name));
	json_decref(doc);
	return 0;
}

static int read_languages(struct host *h, struct brig_error *err)
{
	return read_member(h, brig_languages_json, "languages", &h->languages, err);
}

static int read_users(struct host *h, struct brig_error *err)
{
	json_t *users = NULL;
	int rc = read_member(h, brig_policy_users_json, "users", &users, err);

	if (rc == 0)
		rc = users_read(users, &h->served, err);
	json_decref(users);
	return rc;
}

/* Asks the master, which has the capabilities for cells and the ceilings, to start a keeper. */
static int ask_for_keeper(void *user, int socket, int limits_disks)
{
	const int *master = user;
	const struct control_message req = {
		.kind = CONTROL_KEEPER, .number = limits_disks != 0, .fds = { socket }, .n_fds = 1
	};

	return control_send(*master, &req);
}

int host_open(const struct serve_options *options, int recorder, const int *master, uint32_t warm, struct host **ret,
	      struct brig_error *err)
{
	struct brig_open_opts opts = BRIG_OPEN_OPTS_INIT;
	struct host *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_nomem(err);
	h->users = 1;
	h->default_trust = TOKEN_UNKNOWN;
	opts.policy_file = options->policy;
	opts.preset = options->preset;
	opts.state_dir = options->state;
	opts.warm_cells = warm;
	opts.recorder_fd = recorder;
	opts.start_keeper = ask_for_keeper;
	opts.start_keeper_user = (void *)(uintptr_t)master;
	rc = brig_open(&opts, &h->b, err);
	for (enum token_trust t = 0; rc == 0 && t < TOKEN_TRUST_COUNT; t++)
		rc = read_level(h, t, err);
	if (rc == 0)
		rc = read_languages(h, err);
	if (rc == 0)
		rc = read_users(h, err);
	if (rc < 0) {
		host_leave(h);
		return rc;
	}
	*ret = h;
	return 0;
}

struct host *host_keep(struct host *h)
{
	h->users++;
	return h;
}

void host_leave(struct host *h)
{
	if (!h || --h->users > 0)
		return;
	brig_close(h->b);
	json_decref(h->languages);
	users_free(h->served);
	free(h);
}

/* ---- languages -------------------------------------------------------------------------------------- */

static bool has_text(const json_t *list, const char *text, bool is_ending)
{
	size_t i, len = strlen(text);
	const json_t *item;

	json_array_foreach(list, i, item)
	{
		const char *s = json_string_value(item);
		size_t n = s ? strlen(s) : 0;

		if (s && (is_ending ? n < len && str_eq(text + len - n, s) : str_eq(text, s)))
			return true;
	}
	return false;
}

const char *host_language(const struct host *h, const char *name)
{
	const json_t *language;
	size_t i;

	json_array_foreach(h->languages, i, language)
	{
		const char *own = json_string_value(json_object_get(language, "name"));

		if (own && (str_eq(own, name) || has_text(json_object_get(language, "aliases"), name, false)))
			return own;
	}
	return NULL;
}

const char *host_language_of_file(const struct host *h, const char *file_name)
{
	const json_t *language;
	size_t i;

	json_array_foreach(h->languages, i,
			   language) if (has_text(json_object_get(language, "extensions"), file_name,
						  true)) return json_string_value(json_object_get(language, "name"));
	return NULL;
}
