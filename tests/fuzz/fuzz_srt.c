/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings files of sandbox-runtime.  Whatever is in one, it is refused with a complaint that can be printed, or becomes lists
 * of the policy in which no item is empty or broken by a character of a path.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/srt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const struct buf *list)
{
	const char *at = buf_str(list);

	while (*at) {
		size_t len = strcspn(at, ",");

		if (len == 0 || at[len - 1] == ' ')
			abort();
		for (size_t i = 0; i < len; i++)
			if ((unsigned char)at[i] < ' ' || at[i] == '\\')
				abort();
		at += len;
		if (*at == ',' && *++at == '\0')
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct srt_place places[] = {
		{ .cwd = "/no-such/project", .home = "/no-such", .workspace = "/no-such/project" },
		{ .cwd = "/", .home = NULL, .workspace = "/" },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		AUTO_SRT s = SRT_INIT;

		if (srt_read(&s, (const char *)data, size, &places[i], &err) < 0) {
			if (!err.code || !*err.msg || !str_is_utf8(err.msg, strlen(err.msg)))
				abort();
			continue;
		}
		check_list(&s.hide);
		check_list(&s.whitelist);
		if (s.may_write && s.has_workspace && !strstr(buf_str(&s.hide), ".bashrc"))
			abort();
	}
	return 0;
}
