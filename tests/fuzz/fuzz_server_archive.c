/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives that clients upload, as the service's front reads them.  What is taken is written anew, and that reads as the same
 * files, which are below their folder and have a name each; whatever is not is complained about.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/str.h"
#include "server/archive.h"
#include "server/front/front.h"

static void check_path(const char *path)
{
	if (path[0] == '\0' || path[0] == '/' || strstr(path, "//") || strncmp(path, "../", 3) == 0 ||
	    strstr(path, "/../") || str_eq(path, "..") || !str_is_utf8(path, strlen(path)))
		abort();
}

static void compare(struct archive *came, struct archive *made)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct archive_file a, b;

	while (archive_next(came, &a, &err) > 0) {
		if (archive_next(made, &b, &err) != 1 || strcmp(a.path, b.path) != 0 || a.len != b.len ||
		    memcmp(a.data, b.data, a.len) != 0 || a.may_execute != b.may_execute)
			abort();
		check_path(b.path);
	}
	if (archive_next(made, &b, &err) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD files = FD_NONE;
	char *exact = malloc(len + 1); /* so that one byte too far is seen */
	int rc;

	if (!exact)
		return 0;
	memcpy(exact, data, len);
	exact = realloc(exact, len ? len : 1);
	rc = tar_to_file(exact, len, &files, &err);
	if (rc < 0 && (err.code == 0 || err.msg[0] == '\0' || !str_is_utf8(err.msg, strlen(err.msg))))
		abort();
	if (rc == 0) {
		off_t size = lseek(files, 0, SEEK_END);
		char *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, files, 0);

		if (bytes == MAP_FAILED)
			abort();
		compare(&(struct archive){ .bytes = exact, .len = len },
			&(struct archive){ .bytes = bytes, .len = (size_t)size });
		(void)munmap(bytes, (size_t)size);
	}
	free(exact);
	return 0;
}
