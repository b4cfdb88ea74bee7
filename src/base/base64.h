/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: base64 with padding (RFC 4648). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <sys/types.h>

#include "base/util.h"

/* The length of the text, without the NUL. */
static inline size_t base64_len(size_t len)
{
	return (len + 2) / 3 * 4;
}

/* dst has base64_len(len) bytes; no NUL is added. */
void base64_put(char *dst, const void *data, size_t len);
/* Decodes into dst, at most len / 4 * 3 bytes.  Returns their number, or -1 if the text is not valid base64, including
 * padding and unused bits. */
ssize_t base64_get(void *dst, const char *text, size_t len);

#endif
