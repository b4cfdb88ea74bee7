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
