/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beside.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* The directory of the running executable, or the build tree itself; "" if unknown. */
static void executable_dir(char *dst, size_t size)
{
	static const char inside_build[] = "/src/cli";
	ssize_t n = readlink("/proc/self/exe", dst, size - 1);
	size_t len;
	char *slash;

	dst[n > 0 ? n : 0] = '\0';
	slash = strrchr(dst, '/');
	if (slash)
		*slash = '\0';
	len = strlen(dst);
	if (len > strlen(inside_build) && str_eq(dst + len - strlen(inside_build), inside_build))
		dst[len - strlen(inside_build)] = '\0';
}

bool beside_find(const char *file, bool (*try)(const char *path, void *arg), void *arg)
{
	static const struct {
		bool beside_brig;
		const char *dir;
	} places[] = {
		{ true, "/../node_modules" },
		{ true, "/../lib/brig/node_modules" },
		{ false, "/usr/local/lib/brig/node_modules" },
		{ false, "/usr/lib/brig/node_modules" },
	};
	const char *libexec = secure_getenv("BRIG_LIBEXEC");
	char exe[PATH_MAX], candidate[2 * PATH_MAX];

	if (libexec && libexec[0] == '/') {
		(void)snprintf(candidate, sizeof(candidate), "%s/%s", libexec, file);
		if (try(candidate, arg))
			return true;
	}
	executable_dir(exe, sizeof(exe));
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(candidate, sizeof(candidate), "%s%s/%s", places[i].beside_brig ? exe : "", places[i].dir,
			       file);
		if (try(candidate, arg))
			return true;
	}
	return false;
}
