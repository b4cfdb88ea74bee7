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
/* The bytes that a text stands for, at most len / 4 * 3 of them into dst; how many, or -1 if it is not base64, padding and
 * unused bits included. */
ssize_t base64_get(void *dst, const char *text, size_t len);

#endif
