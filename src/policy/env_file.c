/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_file: .env in a policy file reads variables from there, as if they were in the environment, which takes
 * precedence over them.  Only a policy file can request it, and the path is relative to its folder: nothing is read
 * just because it is in the current directory.  Such files hold secrets of other programs: what is not a setting of
 * brig is skipped, copied nowhere, and the text is wiped.
 */
#include "policy/internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "policy/dotenv.h"

#define ENV_FILE_MAX (64 * KiB)

static bool is_ours(const char *name)
{
	return strncmp(name, "BRIG_", 5) == 0 || strncmp(name, "SECURITY_", 9) == 0;
}

static void put_entry(const struct dotenv_entry *e, const struct place *at, struct env_layer *ret,
		      struct policy_diags *diags)
{
	const struct env_variable v = { .name = e->name, .value = e->value, .at = at };

	if (e->why)
		diag_add(diags, at, "%s", e->why);
	else if (env_is_reserved(e->name))
		diag_add(diags, at, "%s is read from the environment itself only; take it out of this file", e->name);
	else if (!is_ours(e->name))
		return;
	else if (e->cut)
		diag_add(diags, at, "the value of %s is longer than any setting's", e->name);
	else if (e->expands)
		diag_add(diags, at,
			 "the value of %s has a $ in it, and nothing is expanded here: write the value "
			 "itself, or the $ in single quotes",
			 e->name);
	else
		(void)env_put(&v, ret, diags);
}

/* The path that the policy means, and what to call it in messages. */
static bool find_path(const struct policy_sources *src, const char *file, char *dst, size_t size)
{
	const char *slash = strrchr(src->file, '/');

	return snprintf(dst, size, "%.*s%s", slash ? (int)(slash + 1 - src->file) : 0, src->file, file) < (int)size;
}

static void read_entries(const struct buf *text, const char *name, struct env_layer *ret, struct policy_diags *diags)
{
	struct dotenv d = DOTENV_INIT(text->data, text->len);
	struct dotenv_entry e;

	while (dotenv_next(&d, &e))
		put_entry(&e, &(struct place){ .name = name, .line = e.line, .column = 1 }, ret, diags);
	explicit_bzero(&e, sizeof(e));
}

int env_file_read(const struct policy_sources *src, const struct file_layers *file, struct env_layer *ret,
		  struct policy_diags *diags, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(POLICY_FILE_MAX);
	char path[PATH_MAX], shown[128], policy[128];
	struct place at = { .name = printable(src->file ? src->file : "policy", policy, sizeof(policy)),
			    .line = file->env_file_line,
			    .column = file->env_file_column };
	int rc;

	if (!*file->env_file)
		return 0;
	if (src->text || !src->file || !find_path(src, file->env_file, path, sizeof(path))) {
		diag_add(diags, &at, "env_file is relative to the folder of a policy file, and this policy is in none");
		return 0;
	}
	rc = yaml_file_read(path, src->is_users_own, &text, diags, err);
	if (rc < 0)
		return rc == -BRIG_E_NOMEM ? rc : 0;
	at = (struct place){ .name = printable(path, shown, sizeof(shown)) };
	if (text.len > ENV_FILE_MAX)
		diag_add(diags, &at, "the file is larger than %llu KB; is this the right file?",
			 (unsigned long long)(ENV_FILE_MAX / KiB));
	else
		read_entries(&text, at.name, ret, diags);
	if (text.len)
		explicit_bzero(text.data, text.len);
	return 0;
}
