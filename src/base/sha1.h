/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (RFC 3174), for protocols that require it, such as the WebSocket handshake: it is not secure. */
#ifndef BASE_SHA1_H
#define BASE_SHA1_H

#include "base/util.h"

#define SHA1_LEN 20

void sha1(const void *data, size_t len, uint8_t ret[SHA1_LEN]);

#endif
