/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/docker/image_groups.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/container/init.h"
#include "base/beside.h"
#include "base/str.h"

#if defined(__aarch64__)
#define ESBUILD_FILE "@esbuild/linux-arm64/bin/esbuild"
#else
#define ESBUILD_FILE "@esbuild/linux-x64/bin/esbuild"
#endif
#define ESBUILD_PLACE "/opt/brig/esbuild" /* where a cell expects a tool that is not below /usr */

static const struct file_row {
	unsigned group;
	const char *needed;
	const char *pattern;
	const char *except;
} rows[] = {
#define FILES(group, needed, pattern, except) { group, needed, pattern, except },
#include "backend/docker/images.def"
};

/* Mount points: runtimes keep the mode of an existing directory when they mount a tmpfs on it. */
static const struct {
	const char *path;
	unsigned mode;
} folders[] = {
	{ "/dev", 0755 },  { "/proc", 0555 }, { "/sys", 0555 },        { "/run", 0755 },
	{ "/tmp", 01777 }, { "/var", 0755 },  { "/workspace", 01777 },
};

/* Files of every image.  Host names do not resolve: there is no network for queries. */
static const struct {
	const char *path;
	const char *text;
} texts[] = {
	{ "/etc/passwd", "root:x:0:0:root:/:/bin/false\nsandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
			 "nobody:x:65534:65534:nobody:/:/bin/false\n" },
	{ "/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
	/* Engines may omit this file for a container without a network. */
	{ "/etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n" },
	{ "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
};

void image_group_hash(struct sha256 *h, unsigned groups)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].group & groups) {
			sha256_add(h, rows[i].pattern, strlen(rows[i].pattern) + 1);
			if (rows[i].except)
				sha256_add(h, rows[i].except, strlen(rows[i].except) + 1);
		}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		sha256_add(h, texts[i].text, strlen(texts[i].text) + 1);
}

/* "python3.11" for the host's Python; "python3" if there is none. */
static void python_name(char *dst, size_t size)
{
	static const char *const places[] = { "/usr/bin/python3", "/usr/local/bin/python3" };
	char real[PATH_MAX];

	(void)str_copy(dst, size, "python3");
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (realpath(places[i], real)) {
			(void)str_copy(dst, size, strrchr(real, '/') + 1);
			return;
		}
}

/* "12" from x86_64-linux-gnu-gcc-12; "*" if the name has no version. */
static void gcc_version(char *dst, size_t size)
{
	char real[PATH_MAX];
	const char *dash;

	(void)str_copy(dst, size, "*");
	if (!realpath("/usr/bin/gcc", real))
		return;
	dash = strrchr(real, '-');
	if (dash && dash[1] && strspn(dash + 1, "0123456789.") == strlen(dash + 1))
		(void)str_copy(dst, size, dash + 1);
}

bool image_group_expand(const char *pattern, char *dst, size_t size)
{
	static const struct {
		const char *word;
		void (*value)(char *dst, size_t size);
	} words[] = { { "@python@", python_name }, { "@gcc@", gcc_version } };
	char value[NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const char *at = strstr(pattern, words[i].word);

		if (!at)
			continue;
		words[i].value(value, sizeof(value));
		return snprintf(dst, size, "%.*s%s%s", (int)(at - pattern), pattern, value,
				at + strlen(words[i].word)) < (int)size;
	}
	return str_copy(dst, size, pattern);
}

static int add_row(const struct file_row *row, struct image_files *f, struct brig_error *err)
{
	char pattern[2048];
	int n;

	if (!image_group_expand(row->pattern, pattern, sizeof(pattern)))
		return err_set(err, BRIG_E_INTERNAL, 0, "a pattern of the images is too long: %.100s", row->pattern);
	n = image_files_add(f, pattern, row->except, err);
	if (n == 0 && row->needed)
		return err_set(err, BRIG_E_REFUSED, 0, "this host has no %s to make the image from: apt-get install %s",
			       row->needed, row->needed);
	return n < 0 ? n : 0;
}

/* The top-level links of hosts with a merged /usr. */
static int add_top(struct image_files *f, struct brig_error *err)
{
	static const char *const tops[] = { "/bin", "/sbin", "/lib", "/lib64" };
	char target[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(tops) && rc == 0; i++) {
		ssize_t n = readlink(tops[i], target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		rc = image_files_put_link(f, tops[i], target, err);
	}
	return rc;
}

static int add_own(struct image_files *f, struct brig_error *err)
{
	int rc = add_top(f, err);

	for (size_t i = 0; i < ARRAY_LEN(folders) && rc == 0; i++)
		rc = image_files_put_folder(f, folders[i].path, folders[i].mode, err);
	for (size_t i = 0; i < ARRAY_LEN(texts) && rc == 0; i++)
		rc = image_files_put(f, texts[i].path, 0644, texts[i].text, strlen(texts[i].text), err);
	if (rc == 0)
		rc = image_files_put(f, CONTAINER_INIT_PATH, 0755, container_init_bytes, container_init_size, err);
	return rc;
}

static bool found_tool(const char *path, void *arg)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && realpath(path, arg);
}

/* esbuild comes with brig as an npm package, or from the distribution. */
static int add_esbuild(struct image_files *f, struct brig_error *err)
{
	static const char *const packaged[] = { "/usr/bin/esbuild", "/usr/local/bin/esbuild" };
	char path[PATH_MAX];
	bool found = beside_find(ESBUILD_FILE, found_tool, path) || beside_find("esbuild", found_tool, path);
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(packaged) && !found; i++)
		found = found_tool(packaged[i], path);
	if (!found)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "esbuild is not installed: npm install --prefix /usr/local/lib/brig esbuild");
	rc = image_files_add_as(f, path, ESBUILD_PLACE, err);
	if (rc == 0)
		rc = image_files_put_link(f, "/usr/bin/esbuild", ESBUILD_PLACE, err);
	return rc;
}

int image_group_collect(unsigned groups, struct image_files *f, struct brig_error *err)
{
	int rc = add_own(f, err);

	for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++)
		if (rows[i].group & groups)
			rc = add_row(&rows[i], f, err);
	if (rc == 0 && groups & GROUP_PYTHON) /* as in a native cell, whatever the distribution calls it */
		rc = image_files_put_link(f, "/usr/bin/python", "python3", err);
	if (rc == 0 && groups & GROUP_NODE)
		rc = add_esbuild(f, err);
	return rc;
}
