/* SPDX-License-Identifier: Apache-2.0 */
/* Names and contents of a project's files, as strangers chose them: nothing beyond them is read, and case does not count. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workspace/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int never(void *arg, const char *rest)
{
	(void)arg;
	return *rest == '/' || !*rest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *path = malloc(size + 1), *upper = malloc(size + 1), *exact = malloc(size ? size : 1);

	if (!path || !upper || !exact)
		abort();
	memcpy(path, data, size);
	path[size] = '\0';
	for (size_t i = 0; i <= size; i++)
		upper[i] = (char)(path[i] >= 'a' && path[i] <= 'z' ? path[i] - 'a' + 'A' : path[i]);
	/* Folders that others name (.git, node_modules) are known by their spelling; what is at the end is not. */
	if (!strchr(path, '/') && secret_by_name(path, false) != secret_by_name(upper, false))
		abort();
	(void)secret_by_name(path, true);
	(void)secret_by_name(path, false);
	if (secret_tails(path, never, NULL) != 0)
		abort();
	memcpy(exact, data, size); /* no NUL behind it */
	for (enum secret_when w = SECRET_NEVER; w <= SECRET_ACCOUNT; w++)
		(void)secret_in_text(exact, size, w);
	return 0;
}
