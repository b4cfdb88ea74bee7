/* SPDX-License-Identifier: Apache-2.0 */
/* Small tools with no knowledge of sandboxes: scope-bound cleanup, moves, array length. */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED            __attribute__((unused))
#define CLEANUP(fn)       __attribute__((cleanup(fn)))

#define KiB        ((uint64_t)1024)
#define MiB        (1024 * KiB)
#define GiB        (1024 * MiB)
#define NS_PER_MS  ((uint64_t)1000000)
#define NS_PER_SEC ((uint64_t)1000000000)

/* A build with AddressSanitizer, which needs more memory and other system calls than its programs do. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Descriptors start as -EBADF, so that a forgotten one fails loudly instead of being standard input. */
#define FD_NONE (-EBADF)

static inline void fd_closep(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		(void)close(*fd);
		errno = saved;
	}
	*fd = FD_NONE;
}

static inline int fd_move(int *fd)
{
	int taken = *fd;

	*fd = FD_NONE;
	return taken;
}

static inline void mem_freep(void *pp)
{
	free(*(void **)pp);
}

#define AUTO_FD            \
	CLEANUP(fd_closep) \
	int
#define AUTO_FREE CLEANUP(mem_freep)
#define MOVE_PTR(p)                        \
	({                                 \
		__typeof__(p) taken = (p); \
		(p) = NULL;                \
		taken;                     \
	})

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
