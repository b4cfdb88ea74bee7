/* SPDX-License-Identifier: Apache-2.0 */
#include "model/environment.h"

#include <string.h>

#include "base/str.h"

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_made_of(const char *text, const char *first, const char *rest, size_t max)
{
	size_t len = strnlen(text, max + 1);

	return len > 0 && len <= max && strchr(first, *text) && strspn(text, rest) == len;
}

bool environment_is_name(const char *text)
{
	return is_made_of(text, LOWER DIGITS, LOWER DIGITS "._-", ENVIRONMENT_NAME_MAX) &&
	       !str_eq(text, ENVIRONMENT_NONE);
}

bool warm_is_module(const char *text)
{
	return is_made_of(text, LOWER UPPER "_@", LOWER UPPER DIGITS "_.@/:-", WARM_MODULE_MAX);
}
