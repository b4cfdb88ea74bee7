/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <sys/random.h>

int id_random(char *dst, size_t len)
{
	static const char alphabet[] = ID_ALPHABET;
	unsigned char bits[64];

	if (len > sizeof(bits))
		return -EINVAL;
	if (getrandom(bits, len, 0) != (ssize_t)len)
		return -EIO;
	for (size_t i = 0; i < len; i++)
		dst[i] = alphabet[bits[i] & 31];
	dst[len] = '\0';
	return 0;
}
