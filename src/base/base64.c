/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

void base64_put(char *dst, const void *data, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = data;

	for (size_t i = 0; i < len; i += 3, dst += 4) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)in[i] << 16 | (n > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (n > 2 ? in[i + 2] : 0);

		dst[0] = digits[v >> 18];
		dst[1] = digits[v >> 12 & 63];
		dst[2] = n > 1 ? digits[v >> 6 & 63] : '=';
		dst[3] = n > 2 ? digits[v & 63] : '=';
	}
}

/* The value of a digit; 64 for other characters. */
static uint32_t digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

ssize_t base64_get(void *dst, const char *text, size_t len)
{
	unsigned char *out = dst;

	if (len % 4 != 0)
		return -1;
	for (size_t i = 0; i < len; i += 4) {
		size_t padding = i + 4 < len || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			uint32_t digit = k < 4 - padding ? digit_value(text[i + k]) : 0;

			if (digit > 63)
				return -1;
			v = v << 6 | digit;
		}
		if (v & (padding == 2 ? 0xffff : padding == 1 ? 0xff : 0))
			return -1; /* otherwise two texts would decode to the same bytes */
		for (size_t k = 0; k < 3 - padding; k++)
			*out++ = (unsigned char)(v >> (16 - 8 * k));
	}
	return out - (unsigned char *)dst;
}
