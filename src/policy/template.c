/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy file that `brig init` writes: every setting with its default and what it means, all of it behind '#'.  It is
 * made from the tables, so it is never out of date, and sets nothing: what a file sets binds requests (binding.c), so that
 * a default which is written down is not the same as one which is not.
 *
 * "# " starts an explanation, '#' without a blank a line that can be activated by removing the '#'.
 */
#include "policy/internal.h"

#include <string.h>

#include "base/str.h"

#define TEMPLATE_MAX   (256 * KiB)
#define TEMPLATE_WIDTH 110

static const char intro[] =
	"# The policy of brig: what programs in cells may use, and how they are judged.\n"
	"#\n"
	"# Every setting is here with its default.  To change one, take the '#' before its name away and give it "
	"another value.\n"
	"# 'brig policy check FILE' checks the file, 'brig policy show' tells every value in force and who set it.\n"
	"#\n"
	"# What is set here binds: a request may tighten it, and loosen nothing of it but limits of resources.  A file "
	"in which\n"
	"# everything is behind '#', as in a new one, is no policy, as if it were not there.  The line 'preset: "
	"standard' alone\n"
	"# makes this file the host's policy, with the defaults, and no user has another one then.\n"
	"\n"
	"# ---- where to start from\n"
	"\n"
	"# standard, or strict: less of everything, and forbidden system calls kill the program.\n"
	"#preset: standard\n"
	"\n"
	"# Read BRIG_ variables from a file beside this one as well; those of the environment win.\n"
	"#env_file: \".env\"\n";

static const char trust_intro[] =
	"\n# ---- what a request gets by being more or less trusted; take away the '#' of the headings too\n\n"
	"# untrusted can only tighten what is set above.  What is built in is shown here; a value that is set replaces "
	"it.\n"
	"#trust_levels:\n";

/* Where blanks allow it, each line has at most TEMPLATE_WIDTH bytes. */
static void add_explanation(struct buf *out, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column > 0 && column + 1 + len > TEMPLATE_WIDTH) {
			buf_adds(out, "\n");
			column = 0;
		}
		if (column == 0) {
			buf_adds(out, "#");
			column = 1;
		}
		buf_addf(out, " %.*s", (int)len, text);
		column += 1 + len;
		text += len;
		text += strspn(text, " ");
	}
	buf_adds(out, "\n");
}

/* No built-in value has a quote or a backslash; the unit tests read every one. */
static void add_value(struct buf *out, const struct settings *set, enum setting_key k)
{
	const void *at = setting_at_const(set, k);
	char text[128];
	size_t n = 0;

	switch (setting_info[k].kind) {
	case KIND_TEXT:
		buf_addf(out, "\"%s\"", (const char *)at);
		break;
	case KIND_LIST:
		buf_adds(out, "[");
		for (const char *item = NULL; (item = setting_list_next(at, item)); n++)
			buf_addf(out, "%s\"%s\"", n ? ", " : "", item);
		buf_adds(out, "]");
		break;
	case KIND_NUM:
	case KIND_BOOL:
	case KIND_ENUM:
		buf_adds(out, policy_value_text(set, k, text, sizeof(text)));
		break;
	}
}

static const char *bound_text(enum setting_key k, uint64_t bound, char *dst, size_t size)
{
	union slot slot = { .num = bound };

	return value_text(k, &slot, dst, size);
}

/* A name that is a heading too can only stand below it. */
static bool is_heading(const char *name)
{
	const char *sections[SECTIONS_MAX];
	size_t n = section_names(sections);

	return name_index(sections, n, name) < n;
}

static void add_setting(struct buf *out, const struct settings *set, enum setting_key k)
{
	const struct setting_info *info = &setting_info[k];
	AUTO_BUF text = BUF_INIT(4 * KiB);
	char low[64], high[64];

	buf_adds(&text, info->help);
	if (info->kind == KIND_NUM)
		buf_addf(&text, " (%s to %s)", bound_text(k, info->min, low, sizeof(low)),
			 bound_text(k, info->max, high, sizeof(high)));
	buf_adds(out, "\n");
	add_explanation(out, buf_str(&text));
	if (is_heading(info->name))
		buf_addf(out, "#%s: { %s: ", info->section, info->name);
	else
		buf_addf(out, "#%s: ", info->name);
	add_value(out, set, k);
	buf_adds(out, is_heading(info->name) ? " }\n" : "\n");
}

static void add_section(struct buf *out, const struct settings *set, const char *section)
{
	buf_addf(out, "\n# ---- %s\n", *section ? section : "general");
	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		if (str_eq(setting_info[k].section, section))
			add_setting(out, set, k);
}

static int add_trust_level(struct buf *out, const struct policy *p, enum trust t, struct policy_resolved *r,
			   struct brig_error *err)
{
	int rc = policy_resolve(p, trust_name[t], NULL, 0, r, err);
	size_t n = 0;

	buf_addf(out, "#  %s:", trust_name[t]);
	for (enum setting_key k = 0; rc == 0 && k < SETTING_COUNT; k++) {
		if (r->origin[k].layer != LAYER_TRUST)
			continue;
		buf_addf(out, "\n#    %s: ", setting_info[k].name);
		add_value(out, &r->set, k);
		n++;
	}
	buf_adds(out, n ? "\n" : " {}\n");
	return rc;
}

static int compose(const struct policy *p, struct policy_resolved *r, struct buf *out, struct brig_error *err)
{
	const char *sections[SECTIONS_MAX];
	size_t n = section_names(sections);
	int rc = 0;

	buf_adds(out, intro);
	add_section(out, policy_base(p), "");
	for (size_t i = 0; i < n; i++)
		add_section(out, policy_base(p), sections[i]);
	users_template(out);
	buf_adds(out, trust_intro);
	for (enum trust t = 0; rc == 0 && t < TRUST_COUNT; t++)
		rc = add_trust_level(out, p, t, r, err);
	return rc;
}

int policy_template(char **ret, struct brig_error *err)
{
	AUTO_FREE struct policy_resolved *resolved = calloc(1, sizeof(*resolved));
	AUTO_BUF text = BUF_INIT(TEMPLATE_MAX);
	struct policy *p = NULL;
	int rc;

	if (!resolved)
		return err_nomem(err);
	rc = policy_load(&(struct policy_sources){ 0 }, &p, NULL, err);
	if (rc < 0)
		return rc;
	rc = compose(p, resolved, &text, err);
	policy_free(p);
	if (rc < 0)
		return rc;
	if (text.full || text.no_memory)
		return err_nomem(err);
	*ret = buf_take(&text);
	return *ret ? 0 : err_nomem(err);
}
