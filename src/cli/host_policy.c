/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host_policy.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/config_path.h"
#include "base/fd.h"
#include "base/str.h"

/* Whether the row is a protection that is missing. */
static bool is_missing(const json_t *row)
{
	char status[64], protection[64];

	return str_eq(document_text(row, "status", status, sizeof(status)), "missing") &&
	       *document_text(row, "protection", protection, sizeof(protection));
}

/* Returns how many protections the policy gives up; 0 with a complaint if one is missing that no policy can. */
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

/* The folders of a path of ours, for nobody but us. */
static int make_folders(const char *path)
{
	char folder[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		(void)str_copy(folder, sizeof(folder), path);
		folder[slash - path] = '\0';
		if (mkdir(folder, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int put_file(const char *path, const struct buf *text)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	return ui_put_bytes(fd, text, false);
}

static int write_to(const char *file, const struct buf *text)
{
	char own[PATH_MAX];
	int rc = 0;

	if (!file && !config_path(own, sizeof(own))) {
		ui_say("$HOME names no place for a policy of your own: name a file");
		return EXIT_USAGE;
	}
	if (!file)
		rc = make_folders(own);
	if (rc == 0)
		rc = put_file(file ? file : own, text);
	if (rc == -EEXIST)
		ui_say("'%.200s' is there already and is not replaced: remove it first, or name another file",
		       file ? file : own);
	else if (rc < 0)
		ui_say("cannot write '%.200s': %s", file ? file : own, strerrordesc_np(-rc));
	else
		ui_say("wrote '%.200s'%s", file ? file : own,
		       file ? "; --policy or $BRIG_POLICY names it" : ", which is read from now on");
	return rc < 0 ? EXIT_FAILED : EXIT_SUCCESS;
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
