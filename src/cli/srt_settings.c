/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restrictions are passed as settings of the request: hidden files, a read-only workspace, no network, a backend that
 * isolates.  No request can grant network access, so that is passed as environment variables, as if the caller had set
 * them: without a policy file the user at the command line decides, and if a policy file says otherwise brig refuses to
 * start.
 */
#include "cli/srt_settings.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/ui.h"

static int read_file(const char *path, struct buf *ret, struct brig_error *err)
{
	AUTO_FD fd = request_open(path, FILE_STREAMS, err);
	char piece[16384];
	ssize_t n;

	if (fd < 0)
		return -err->code;
	do {
		n = fd_read_all(fd, piece, sizeof(piece));
		if (n < 0)
			return err_set(err, BRIG_E_USAGE, (int)-n, "cannot read it");
		buf_add(ret, piece, (size_t)n);
	} while ((size_t)n == sizeof(piece) && !ret->full);
	if (ret->full)
		return err_set(err, BRIG_E_USAGE, 0, "it is larger than 1 MB");
	return ret->no_memory ? err_nomem(err) : 0;
}

static bool has_wish(const struct request_values *v, const char *key)
{
	for (size_t i = 0; i < v->wishes.n; i++)
		if (str_eq(v->wishes.item[i].key, key))
			return true;
	return false;
}

/* If the caller sets the key as well, it occurs twice, which the library refuses. */
static int wish(struct request_values *v, const char *key, const char *value, struct brig_error *err)
{
	struct brig_option *grown = reallocarray(v->wishes.item, v->wishes.n + 1, sizeof(*grown));

	if (!grown)
		return err_nomem(err);
	grown[v->wishes.n++] = (struct brig_option){ key, value };
	v->wishes.item = grown;
	return 0;
}

/* ---- options that would bypass it ------------------------------------------------------------ */

static int judge_backend(const struct request_values *v, struct brig_error *err)
{
	for (size_t i = 0; i < v->wishes.n; i++) {
		const struct brig_option *o = &v->wishes.item[i];

		if (str_eq(o->key, "backend") && !str_eq(o->value, "native") && !str_eq(o->value, "docker"))
			return err_set(err, BRIG_E_USAGE, 0,
				       "--backend %.40s may not isolate: --srt-settings needs native or docker",
				       o->value);
	}
	return 0;
}

static int judge_variables(const struct request_values *v, const struct srt *s, struct brig_error *err)
{
	for (size_t i = 0; i < v->env.n; i++)
		for (size_t k = 0; k < s->denied_variables.n; k++) {
			size_t len = strlen(s->denied_variables.item[k]);

			if (strncmp(v->env.item[i], s->denied_variables.item[k], len) == 0 &&
			    v->env.item[i][len] == '=')
				return err_set(
					err, BRIG_E_USAGE, 0,
					"credentials.envVars[%zu] denies '%.80s', which --env sets: drop one of them",
					k, s->denied_variables.item[k]);
		}
	return 0;
}

static int judge_options(const struct request_values *v, const struct srt *s, struct brig_error *err)
{
	if (v->venv)
		return err_set(err, BRIG_E_USAGE, 0,
			       "--venv shows a folder that the file may deny: put the environment into the workspace, "
			       "as .venv");
	if (judge_backend(v, err) < 0 || judge_variables(v, s, err) < 0)
		return -err->code;
	return srt_settings_keep(v, s, err);
}

/* ---- resulting settings ---------------------------------------------------------------------- */

static int use_network(struct request_values *v, const struct srt *s, struct brig_error *err)
{
	static const char *const names[] = { "BRIG_NETWORK_MODE", "BRIG_NETWORK_ENABLED", "BRIG_WHITELIST" };

	if (s->whitelist.len == 0)
		return wish(v, "network_mode", "none", err);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (getenv(names[i]))
			return err_set(err, BRIG_E_USAGE, 0,
				       "network.allowedDomains sets what $%s sets already: unset it", names[i]);
	if (setenv("BRIG_NETWORK_MODE", "allowlist", 1) < 0 || setenv("BRIG_WHITELIST", buf_str(&s->whitelist), 1) < 0)
		return err_nomem(err);
	return 0;
}

static int use_workspace(struct request_values *v, const struct srt *s, struct brig_error *err)
{
	if (!s->has_workspace)
		return 0;
	if (!v->workspace && !v->files)
		v->workspace = ".";
	if (!s->may_write && wish(v, "workspace_mode", "ro", err) < 0)
		return -err->code;
	if (s->may_write && v->workspace && !has_wish(v, "workspace_mode"))
		v->apply = true;
	return s->hide.len ? wish(v, "workspace_hide", buf_str(&s->hide), err) : 0;
}

static void say_notices(const struct request_values *v, const struct srt *s)
{
	const char *line = buf_str(&s->notices);

	for (size_t len; !v->quiet && *line; line += len + 1) {
		len = strcspn(line, "\n");
		ui_say("%s: %.*s", v->srt_settings, (int)len, line);
	}
}

static int use(struct request_values *v, struct srt *s, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(SRT_FILE_MAX);
	char cwd[PATH_MAX], workspace[PATH_MAX];
	struct srt_place place = { .cwd = cwd, .home = getenv("HOME"), .workspace = workspace };

	if (read_file(v->srt_settings, &text, err) < 0)
		return -err->code;
	if (!getcwd(cwd, sizeof(cwd)) || cwd[0] != '/')
		return err_set(err, BRIG_E_USAGE, errno, "the current folder has no path");
	if (!realpath(v->workspace ? v->workspace : ".", workspace))
		return err_set(err, BRIG_E_USAGE, errno, "cannot find the workspace '%.200s'",
			       v->workspace ? v->workspace : ".");
	if (srt_read(s, buf_str(&text), text.len, &place, err) < 0 || judge_options(v, s, err) < 0 ||
	    use_workspace(v, s, err) < 0 || use_network(v, s, err) < 0)
		return -err->code;
	return has_wish(v, "backend") ? 0 : wish(v, "backend", "native", err);
}

int srt_settings_use(struct request_values *v, struct srt *s, struct brig_error *err)
{
	if (!v->srt_settings)
		return 0;
	if (use(v, s, err) < 0)
		return err_wrap(err, "%.200s", v->srt_settings);
	say_notices(v, s);
	return 0;
}

int srt_settings_keep(const struct request_values *v, const struct srt *s, struct brig_error *err)
{
	if (!v->srt_settings || s->has_workspace || !v->workspace)
		return 0;
	return err_set(
		err, BRIG_E_USAGE, 0,
		"filesystem.denyRead hides the workspace '%.200s': take it back in filesystem.allowRead, or run it "
		"elsewhere",
		v->workspace);
}
