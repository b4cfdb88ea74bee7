/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h - package sets, compiled programs and environments that hosts give each other (docs/QUEUE.md, docs/PACKAGES.md)
 *
 * What is kept lies under two keys: one of this host, and one that means the same on every host, a hash of all that it was made
 * of with programs known by their bytes.  A handle that lacks something asks for it by the latter before it makes it; whether to
 * believe whoever answers is for the one who brings it, and brig checks that what came is the content that was promised.
 */
#ifndef BRIG_EXCHANGE_H
#define BRIG_EXCHANGE_H

#include <brig/brig.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BRIG_EXCHANGE_KIND_MAX    15            /* "shared-pip", "shared-compile" ... */
#define BRIG_EXCHANGE_HEX         64            /* of keys and of contents: SHA-256 */
#define BRIG_EXCHANGE_ENVIRONMENT "environment" /* the kind of an environment with its set, which is taken whole */

struct brig_exchange {
	uint32_t size;
	/*
	 * Somebody runs here what needs this, and it is not there.  Returns a descriptor that turns readable when there is no more
	 * to wait for, whether it came (brig_exchange_take()) or not, and is closed by the library; -1: nobody has it.  It is not
	 * waited for longer than two minutes, and made here then.
	 */
	int (*want)(void *user, const char *kind, const char *key);
	void *user;
};
#define BRIG_EXCHANGE_INIT                                \
	{                                                 \
		sizeof(struct brig_exchange), NULL, NULL, \
	}
/* For runs of this handle that begin from now on; want NULL: nobody is asked any more. */
BRIG_API int brig_exchange_set(struct brig *b, const struct brig_exchange *x, struct brig_error *err);

/* What could be given, the most recently used first, at most so many: { "kept": ["shared-pip:KEY", ...] } */
BRIG_API int brig_exchange_list_json(struct brig *b, uint32_t most, char **ret, struct brig_error *err);

/* What a giver says of something beside its bytes. */
struct brig_parcel {
	uint32_t size;
	char content[BRIG_EXCHANGE_HEX + 1]; /* what the bytes unpack to */
	uint64_t created;                    /* when it was made: seconds since 1970 */
};
#define BRIG_PARCEL_INIT                          \
	{                                         \
		sizeof(struct brig_parcel), "", 0 \
	}
/* Writes it, packed, to out, if it has at most so many bytes.  1; 0: it is not there.  Takes long. */
BRIG_API int brig_exchange_pack(struct brig *b, const char *kind, const char *key, uint64_t most, int out,
				struct brig_parcel *ret, struct brig_error *err);
/* The key of the environment of this name: the same on every host, whatever is in it. */
BRIG_API void brig_exchange_environment(const char *name, char key[BRIG_EXCHANGE_HEX + 1]);
/* Keeps what somebody packed, read from in, a file.  BRIG_E_REFUSED: it is not what the parcel says.  Takes long. */
BRIG_API int brig_exchange_take(struct brig *b, const char *kind, const char *key, const struct brig_parcel *p, int in,
				struct brig_error *err);

#ifdef __cplusplus
}
#endif

#endif
