/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a toolchain: a cached output is reused only if it was made with the same one.
 *
 * A compiler is more than its program: headers, linkers and libraries decide the output too.  Hashing them all takes
 * longer than many a compile, asking for a version runs the tool and misses a changed header.  So each file that a
 * row names is known by inode, size, mode and its times of modification and of change, to the nanosecond.  The latter
 * cannot be set: a file that was replaced or edited has another one, whatever its date says.  A new inode for the
 * same bytes costs one compile and nothing else.
 *
 * What no row can name, the other packages of the host, is covered by the package manager's own database: any
 * package that comes, goes or is upgraded changes it.
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "lang/lang.h"

static const char *const package_databases[] = {
	"/var/lib/dpkg/status",  "/var/lib/rpm",          "/usr/lib/sysimage/rpm",
	"/lib/apk/db/installed", "/var/lib/pacman/local",
};

static void add_file(const char *path, struct buf *out)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return; /* not being there is also an answer: nothing is added */
	buf_addf(out, "%s %llu %lld %o %lld.%09ld %lld.%09ld\n", path, (unsigned long long)st.st_ino,
		 (long long)st.st_size, (unsigned)st.st_mode, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		 (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

/* Every file that a pattern means; "%r" at its start is the folder above the one of the real tool. */
static void add_pattern(const char *pattern, const char *root, struct buf *out)
{
	bool beside = strncmp(pattern, "%r/", 3) == 0;
	char text[2 * PATH_MAX];
	glob_t found = { 0 };

	(void)snprintf(text, sizeof(text), "%s%s", beside ? root : "", pattern + (beside ? 2 : 0));
	if (glob(text, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_file(found.gl_pathv[i], out);
	globfree(&found);
}

bool lang_program_identity(const char *program, struct buf *out)
{
	char real[PATH_MAX];

	if (!realpath(program, real))
		return false;
	add_file(real, out);
	return out->len > 0 && !out->full && !out->no_memory;
}

static void cut_last_part(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

bool lang_tool_identity(const struct lang_step *step, const char *tool, struct buf *out)
{
	char real[PATH_MAX];

	if (!realpath(tool, real))
		return false;
	add_file(real, out);
	cut_last_part(real);
	cut_last_part(real);
	for (size_t i = 0; i < ARRAY_LEN(step->companions) && step->companions[i]; i++)
		add_pattern(step->companions[i], real, out);
	for (size_t i = 0; i < ARRAY_LEN(package_databases); i++)
		add_file(package_databases[i], out);
	return out->len > 0 && !out->full && !out->no_memory;
}
