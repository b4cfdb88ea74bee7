/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader maps a file in segments.  Read-only segments share the file's own pages, which can be dropped at any time.
 * A segment that was writable has private pages, even if the loader made it read-only afterwards (relocations): if
 * dropped, these would come back without the relocations.
 */
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/memory.h"

static int leave_pages(struct dl_phdr_info *info, size_t size UNUSED, void *arg)
{
	const uintptr_t page = *(const uintptr_t *)arg;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + h->p_vaddr + page - 1) / page * page;
		uintptr_t to = (info->dlpi_addr + h->p_vaddr + h->p_filesz) / page * page;

		if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) && from < to)
			(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 0;
}

void memory_rest(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)malloc_trim(0);
	(void)dl_iterate_phdr(leave_pages, &page);
}
