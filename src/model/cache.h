/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache did for a request. */
#ifndef MODEL_CACHE_H
#define MODEL_CACHE_H

#include "base/util.h"

#define CACHE_HASH_HEX 64

/* Things that happen in a store of contents; each is counted. */
#define CACHE_EVENTS(X)                                     \
	X(hit, "found, whole and young enough")             \
	X(miss, "not there")                                \
	X(stored, "made and kept")                          \
	X(damaged, "there, but not what was kept: dropped") \
	X(expired, "there, but too old: dropped")           \
	X(evicted, "dropped to make room")                  \
	X(failed, "made, but could not be kept")

struct cache_events {
#define X(name, help) uint64_t name;
	CACHE_EVENTS(X)
#undef X
};

/* What became of the compile step. */
enum cached {
	CACHED_NONE,     /* the cache was not consulted: no compile step, or it is off or useless here */
	CACHED_MISS,     /* compiled, and not kept */
	CACHED_STORED,   /* compiled, and kept */
	CACHED_HIT,      /* not compiled: the program was there */
	CACHED_RECEIVED, /* not compiled: another host had it */
	CACHED_COUNT
};
extern const char *const cached_name[CACHED_COUNT];

struct result_cache {
	enum cached compile;
	char content[CACHE_HASH_HEX + 1]; /* SHA-256 of the compiled program that ran; "" unless stored or hit */
	uint64_t age_ms;                  /* of a hit: since it was compiled */
	struct cache_events events;
};

#endif
