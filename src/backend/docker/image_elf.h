/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program of this machine needs to start: its loader and its libraries, read from the file itself.  Nothing is
 * executed, and memory use is bounded whatever sizes the file claims.
 */
#ifndef DOCKER_IMAGE_ELF_H
#define DOCKER_IMAGE_ELF_H

#include "base/util.h"

#define ELF_NEEDED_MAX 64
#define ELF_NAME_MAX   128

struct elf_needs {
	char loader[256];   /* "": none (a library, or a static program) */
	char runpath[1024]; /* colon-separated directories; "$ORIGIN" stands for the file's own */
	char needed[ELF_NEEDED_MAX][ELF_NAME_MAX];
	size_t n;
};

/* 0, 1 if it is not an ELF file for this architecture, or -errno (-ENOEXEC: malformed). */
int elf_needs_read(int fd, struct elf_needs *ret);

#endif
