/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host_policy.h"

#include <limits.h>
#include <string.h>

#include "base/config_path.h"
#include "base/str.h"
#include "cli/policy_file.h"

/* Whether the row is a missing protection. */
static bool is_missing(const json_t *row)
{
	char status[64], protection[64];

	return str_eq(document_text(row, "status", status, sizeof(status)), "missing") &&
	       *document_text(row, "protection", protection, sizeof(protection));
}

/*
 * Returns how many protections the policy gives up; 0 after an error message if one is missing that no policy can give
 * up.
 */
static size_t compose(const json_t *rows, struct buf *out, bool *ret_hopeless)
{
	char protection[64], lost[512];
	const json_t *row;
	size_t i, n = 0;

	buf_adds(out,
		 "# What this host cannot give, as 'brig doctor' found it.  Programs run without these, and the result "
		 "of each\n"
		 "# run lists them in `degraded`.  'brig doctor' tells how to get them; then remove their lines here.\n"
		 "allow_degraded:\n");
	json_array_foreach(rows, i, row)
	{
		if (!is_missing(row))
			continue;
		(void)document_text(row, "protection", protection, sizeof(protection));
		(void)document_text(row, "lost", lost, sizeof(lost));
		if (document_true(row, "essential")) {
			ui_say("no policy helps: there is no cell without %s: %s", protection, lost);
			*ret_hopeless = true;
		}
		buf_addf(out, "  - %s  # %s\n", protection, lost);
		n++;
	}
	return n;
}

static int write_to(const char *file, const struct buf *text)
{
	char own[PATH_MAX];

	if (!file && !config_path(own, sizeof(own))) {
		ui_say("$HOME names no place for a policy of your own: name a file");
		return EXIT_USAGE;
	}
	return policy_file_write(&(struct policy_file){ .path = file ? file : own,
							.mode = 0600,
							.advice = "remove it first, or name another file",
							.next = file ? "; --policy or $BRIG_POLICY names it"
								     : ", which is read from now on" },
				 text);
}

int host_policy_write(const json_t *rows, const char *file)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	bool hopeless = false;
	size_t n = compose(rows, &text, &hopeless);

	if (hopeless)
		return EXIT_FAILURE;
	if (n == 0) {
		ui_say("this host gives every protection: no policy is needed");
		return EXIT_SUCCESS;
	}
	return file && str_eq(file, "-") ? ui_finish(&text, EXIT_SUCCESS) : write_to(file, &text);
}
