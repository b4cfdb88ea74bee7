/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people write and read them. */
#ifndef BASE_WHEN_H
#define BASE_WHEN_H

#include "base/util.h"

/*
 * "30s", "45m", "2h", "7d", "4w": that long before now.  "now", "today", "yesterday": the last two are midnights of the
 * local zone.  "2026-11-16", "2026-11-16 08:30", "2026-11-16T08:30:05.25Z", "...+01:00": local time unless a zone is
 * named.  "@1763280000": seconds since 1970.  All in nanoseconds since 1970.
 */
bool when_parse(const char *s, uint64_t now_ns, uint64_t *ret_ns);
#define WHEN_FORMS "2h, 7d, 2026-11-16, 2026-11-16T08:30, 2026-11-16T08:30:00Z or @SECONDS"

#define WHEN_TEXT_MAX 40
/* "2026-11-16T08:30:05.250Z"; into dst, returned. */
const char *when_utc(char *dst, size_t size, uint64_t ns);
/* "2026-11-16 08:30:05", in the local zone. */
const char *when_local(char *dst, size_t size, uint64_t ns);

#endif
