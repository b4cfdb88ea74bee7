/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files of installers, and the addresses in them: what comes out is an address without surprises. */
#include <string.h>

#include "packages/packages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(const char *text, size_t len)
{
	struct url u;

	if (!url_parse(text, len, &u))
		return;
	if (u.host_len == 0 || u.host < text || u.host + u.host_len > text + len)
		abort();
	if (u.user_len && (u.user < text || u.user + u.user_len >= u.host))
		abort();
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			abort();
}

static void check_value(bool found, const char *value, size_t size)
{
	if (!found)
		return;
	if (strnlen(value, size) == size || !*value)
		abort();
	check_address(value, strlen(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char value[64] = "";

	check_address(text, size);
	check_value(pip_conf_index(text, size, value, sizeof(value)), value, sizeof(value));
	check_value(npmrc_registry(text, size, value, sizeof(value)), value, sizeof(value));
	check_value(go_env_proxy(text, size, value, sizeof(value)), value, sizeof(value));
	return 0;
}
