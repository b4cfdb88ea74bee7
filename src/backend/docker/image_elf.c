/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/docker/image_elf.h"

#include <elf.h>
#include <string.h>

#include "base/buf.h"

#define HEADERS_MAX 64
#define DYNAMIC_MAX 4096 /* entries */

#if defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_X86_64
#endif

/* The parts of the file that were read. */
struct elf_file {
	int fd;
	Elf64_Phdr header[HEADERS_MAX];
	size_t n_headers;
	Elf64_Dyn *dynamic;
	size_t n_dynamic;
	uint64_t strings, strings_len; /* the string table: large programs have megabytes of it */
};

static void elf_file_release(struct elf_file *f)
{
	free(f->dynamic);
}

/* Exactly len bytes; false: the file is too short, or an error. */
static bool read_at(int fd, void *dst, size_t len, uint64_t offset)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = pread(fd, (char *)dst + have, len - have, (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

/* 1: not an ELF file for this architecture. */
static int read_headers(struct elf_file *f)
{
	Elf64_Ehdr e;

	if (!read_at(f->fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB || e.e_machine != OWN_MACHINE ||
	    (e.e_type != ET_EXEC && e.e_type != ET_DYN))
		return 1;
	if (e.e_phnum > HEADERS_MAX || (e.e_phnum > 0 && e.e_phentsize != sizeof(Elf64_Phdr)) ||
	    !read_at(f->fd, f->header, e.e_phnum * sizeof(Elf64_Phdr), e.e_phoff))
		return -ENOEXEC;
	f->n_headers = e.e_phnum;
	return 0;
}

static const Elf64_Phdr *header_of(const struct elf_file *f, Elf64_Word type)
{
	for (size_t i = 0; i < f->n_headers; i++)
		if (f->header[i].p_type == type)
			return &f->header[i];
	return NULL;
}

/* Translates a virtual address into a file offset. */
static bool offset_of(const struct elf_file *f, uint64_t address, uint64_t *ret)
{
	for (size_t i = 0; i < f->n_headers; i++) {
		const Elf64_Phdr *h = &f->header[i];

		if (h->p_type == PT_LOAD && address >= h->p_vaddr && address - h->p_vaddr < h->p_filesz) {
			*ret = h->p_offset + (address - h->p_vaddr);
			return true;
		}
	}
	return false;
}

static int read_loader(const struct elf_file *f, struct elf_needs *ret)
{
	const Elf64_Phdr *h = header_of(f, PT_INTERP);

	if (!h)
		return 0;
	if (h->p_filesz == 0 || h->p_filesz >= sizeof(ret->loader) ||
	    !read_at(f->fd, ret->loader, h->p_filesz, h->p_offset))
		return -ENOEXEC;
	ret->loader[h->p_filesz] = '\0';
	return 0;
}

static uint64_t dynamic_value(const struct elf_file *f, Elf64_Sxword tag)
{
	for (size_t i = 0; i < f->n_dynamic; i++)
		if (f->dynamic[i].d_tag == tag)
			return f->dynamic[i].d_un.d_val;
	return 0;
}

/* The dynamic section and its string table.  1: a static program has none. */
static int read_dynamic(struct elf_file *f)
{
	const Elf64_Phdr *h = header_of(f, PT_DYNAMIC);

	if (!h)
		return 1;
	f->n_dynamic = h->p_filesz / sizeof(Elf64_Dyn);
	if (f->n_dynamic == 0 || f->n_dynamic > DYNAMIC_MAX)
		return -ENOEXEC;
	f->dynamic = calloc(f->n_dynamic, sizeof(*f->dynamic));
	if (!f->dynamic)
		return -ENOMEM;
	if (!read_at(f->fd, f->dynamic, f->n_dynamic * sizeof(*f->dynamic), h->p_offset))
		return -ENOEXEC;
	f->strings_len = dynamic_value(f, DT_STRSZ);
	if (f->strings_len == 0)
		return 1;
	return offset_of(f, dynamic_value(f, DT_STRTAB), &f->strings) ? 0 : -ENOEXEC;
}

/* A string that fits into dst; false otherwise. */
static bool take_text(const struct elf_file *f, uint64_t at, char *dst, size_t size)
{
	size_t len;

	if (at >= f->strings_len)
		return false;
	len = min_u64(size, f->strings_len - at);
	return read_at(f->fd, dst, len, f->strings + at) && memchr(dst, '\0', len);
}

static int read_needed(const struct elf_file *f, struct elf_needs *ret)
{
	for (size_t i = 0; i < f->n_dynamic && f->dynamic[i].d_tag != DT_NULL; i++) {
		uint64_t at = f->dynamic[i].d_un.d_val;
		bool ok = true;

		switch (f->dynamic[i].d_tag) {
		case DT_NEEDED:
			ok = ret->n < ELF_NEEDED_MAX && take_text(f, at, ret->needed[ret->n++], ELF_NAME_MAX);
			break;
		case DT_RPATH: /* the older form; ignored if there is a DT_RUNPATH */
			if (!ret->runpath[0])
				ok = take_text(f, at, ret->runpath, sizeof(ret->runpath));
			break;
		case DT_RUNPATH:
			ok = take_text(f, at, ret->runpath, sizeof(ret->runpath));
			break;
		default:
			break;
		}
		if (!ok)
			return -ENOEXEC;
	}
	return 0;
}

int elf_needs_read(int fd, struct elf_needs *ret)
{
	CLEANUP(elf_file_release)
	struct elf_file f = { .fd = fd };
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = read_headers(&f);
	if (rc != 0)
		return rc;
	rc = read_loader(&f, ret);
	if (rc < 0)
		return rc;
	rc = read_dynamic(&f);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return read_needed(&f, ret);
}
