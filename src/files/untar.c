/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archive is read block by block with one small buffer and no seeking, so that it can come through a pipe.  An
 * entry is one or more heads (pax 'x' and GNU 'L' say something about the next one), then its content, padded to whole
 * blocks.  Each header carries a checksum: what is not an archive, or was spliced together, is detected immediately.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"
#include "files/beneath.h"
#include "files/tar.h"

#define PATH_BYTES 4096
#define META_MAX   (64 * 1024) /* of a pax header or a long name */
#define PAGE       4096

struct head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[8];
	char uname[32], gname[32], major[8], minor[8], prefix[155], fill[12];
};
_Static_assert(sizeof(struct head) == TAR_BLOCK, "a head is one block");

struct reader {
	int in, dir, cancel_fd;
	const struct untar_caps *caps;
	struct brig_error *err;
	uint64_t entries, bytes;
	uint64_t size;         /* of the entry under way */
	char path[PATH_BYTES]; /* the same; of a long name or pax header until its entry comes */
	bool has_size;
	char piece[64 * 1024];
};

/* ---- bytes ------------------------------------------------------------------------------------- */

static int bad(struct reader *r, const char *what)
{
	return err_set(r->err, BRIG_E_USAGE, 0, "the archive of files is no sound tar archive: %s%s%.200s", what,
		       *r->path ? " at " : "", r->path);
}

/* Waits until there is something to read, or the caller cancels. */
static int await(const struct reader *r)
{
	struct pollfd fds[] = { { .fd = r->in, .events = POLLIN }, { .fd = r->cancel_fd, .events = POLLIN } };

	while (wait_poll(fds, ARRAY_LEN(fds), -1) < 0)
		if (errno != EINTR)
			return -errno;
	return fds[0].revents == 0 ? -ECANCELED : 0;
}

static ssize_t take_some(const struct reader *r, void *dst, size_t len)
{
	int rc = await(r);
	ssize_t n = rc < 0 ? rc : read(r->in, dst, len);

	return rc == 0 && n < 0 ? -errno : n;
}

static int take(struct reader *r, void *dst, size_t len)
{
	char *at = dst;

	while (len > 0) {
		ssize_t n = take_some(r, at, len);

		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n == -ECANCELED)
			return err_set(r->err, BRIG_E_REFUSED, ECANCELED, "the caller gave up");
		if (n < 0)
			return err_set(r->err, BRIG_E_USAGE, (int)-n, "cannot read the archive of files");
		if (n == 0)
			return bad(r, "it ends too early");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static uint64_t padding(uint64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

/* ---- heads ------------------------------------------------------------------------------------- */

/* Octal digits, with spaces before and a space or NUL behind them. */
static bool get_octal(const char *field, size_t len, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++) {
		if (*ret >> 60)
			return false;
		*ret = *ret << 3 | (uint64_t)(field[i] - '0');
	}
	return i == len || field[i] == ' ' || field[i] == '\0';
}

static bool has_sum(const struct head *h)
{
	const unsigned char *byte = (const unsigned char *)h;
	const size_t from = offsetof(struct head, sum), to = from + sizeof(h->sum);
	uint64_t sum = 0, said;

	for (size_t i = 0; i < sizeof(*h); i++)
		sum += i >= from && i < to ? ' ' : byte[i];
	return get_octal(h->sum, sizeof(h->sum), &said) && said == sum;
}

static bool is_zero(const struct head *h)
{
	const char *byte = (const char *)h;

	return byte[0] == '\0' && memcmp(byte, byte + 1, sizeof(*h) - 1) == 0;
}

/* The name of a head, unless one before it has said a longer one. */
static void get_name(struct reader *r, const struct head *h)
{
	bool is_posix = memcmp(h->magic, "ustar\0", 6) == 0;
	int prefix = is_posix ? (int)strnlen(h->prefix, sizeof(h->prefix)) : 0;

	if (*r->path)
		return;
	(void)snprintf(r->path, sizeof(r->path), "%.*s%s%.*s", prefix, h->prefix, prefix ? "/" : "",
		       (int)strnlen(h->name, sizeof(h->name)), h->name);
}

/* ---- what is said before an entry ---------------------------------------------------------------- */

static int take_text(struct reader *r, char **ret)
{
	char *text;
	int rc;

	if (r->size > META_MAX)
		return bad(r, "a header of more than 64 KB");
	text = calloc(1, r->size + padding(r->size) + 1);
	if (!text)
		return err_nomem(r->err);
	rc = take(r, text, r->size + padding(r->size));
	*ret = text;
	return rc;
}

static int keep_path(struct reader *r, const char *path, size_t len)
{
	if (len == 0 || len >= sizeof(r->path) || memchr(path, '\0', len))
		return bad(r, "a path that is empty, too long or has a NUL in it");
	memcpy(r->path, path, len);
	r->path[len] = '\0';
	return 0;
}

/* One record "LEN KEY=VALUE\n"; LEN counts all of it.  Gives where the next one begins, NULL: it is not one. */
static const char *pax_record(const char *at, const char *end, const char **ret_key, size_t *ret_value_len)
{
	size_t len = 0, digits = 0;

	while (at + digits < end && at[digits] >= '0' && at[digits] <= '9' && digits < 6)
		len = len * 10 + (size_t)(at[digits++] - '0');
	if (digits == 0 || len < digits + 4 || len > (size_t)(end - at) || at[digits] != ' ' || at[len - 1] != '\n')
		return NULL;
	*ret_key = at + digits + 1;
	*ret_value_len = len - digits - 2;
	return at + len;
}

static int pax_apply(struct reader *r, const char *record, size_t len)
{
	static const char path[] = "path=", size[] = "size=";
	char digits[24];

	if (len >= strlen(path) && memcmp(record, path, strlen(path)) == 0)
		return keep_path(r, record + strlen(path), len - strlen(path));
	if (len < strlen(size) || memcmp(record, size, strlen(size)) != 0)
		return 0;
	len -= strlen(size);
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)min_u64(len, sizeof(digits) - 1), record + strlen(size));
	r->has_size = len < sizeof(digits) && str_to_u64(digits, &r->size);
	return r->has_size ? 0 : bad(r, "a size that is no number");
}

static int take_pax(struct reader *r)
{
	AUTO_FREE char *text = NULL;
	const char *at, *end, *record;
	uint64_t len = r->size;
	int rc = take_text(r, &text);

	*r->path = '\0';
	for (at = text, end = text + len; rc == 0 && at < end;) {
		size_t record_len;

		at = pax_record(at, end, &record, &record_len);
		rc = at ? pax_apply(r, record, record_len) : bad(r, "a pax header that makes no sense");
	}
	return rc;
}

static int take_long_name(struct reader *r)
{
	AUTO_FREE char *text = NULL;
	int rc = take_text(r, &text);

	return rc < 0 ? rc : keep_path(r, text, strnlen(text, r->size));
}

static int pass_over(struct reader *r)
{
	AUTO_FREE char *text = NULL;

	return take_text(r, &text);
}

/* ---- entries ----------------------------------------------------------------------------------- */

static int count(struct reader *r, uint64_t bytes)
{
	char text[32];

	r->entries++;
	r->bytes += (bytes + PAGE - 1) / PAGE * PAGE;
	if (r->entries <= r->caps->entries && bytes <= r->caps->bytes && r->bytes <= r->caps->bytes)
		return 0;
	return err_set(
		r->err, BRIG_E_REFUSED, 0,
		"the archive of files has more than %llu entries or %s (at '%.200s'): send fewer, or raise mem_limit, "
		"of which files may take half, and inodes_limit",
		(unsigned long long)r->caps->entries, str_bytes(text, sizeof(text), r->caps->bytes), r->path);
}

/* "./a/b/" is "a/b"; the folder itself is "". */
static int clean_path(struct reader *r)
{
	char *p = r->path;
	size_t len;

	while (p[0] == '.' && (p[1] == '/' || p[1] == '\0'))
		p += 1 + (p[1] == '/');
	len = strlen(p);
	while (len > 0 && p[len - 1] == '/')
		len--;
	p[len] = '\0';
	if (len > 0 && !beneath_is_path(p, len))
		return err_set(
			r->err, BRIG_E_USAGE, 0,
			"the archive of files names '%.200s': only paths below its folder, without '..', are accepted",
			r->path);
	memmove(r->path, p, len + 1);
	return 0;
}

static int make_folders(struct reader *r, const char *path)
{
	int rc = *path ? beneath_make_dirs(r->dir, path) : 0;

	return rc < 0 ? err_set(r->err, BRIG_E_USAGE, -rc, "cannot make the folder '%.200s' of the archive", path) : 0;
}

static int make_parent(struct reader *r)
{
	const char *slash = strrchr(r->path, '/');
	char folder[PATH_BYTES];

	if (!slash)
		return 0;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - r->path), r->path);
	return make_folders(r, folder);
}

static int fill(struct reader *r, int fd)
{
	for (uint64_t left = r->size; left > 0;) {
		size_t n = (size_t)min_u64(left, sizeof(r->piece));
		int rc = take(r, r->piece, n);

		if (rc < 0)
			return rc;
		rc = fd_write_all(fd, r->piece, n);
		if (rc < 0)
			return err_set(r->err, BRIG_E_SYSTEM, -rc, "cannot keep '%.200s' of the archive", r->path);
		left -= n;
	}
	return take(r, r->piece, padding(r->size));
}

static int take_file(struct reader *r, unsigned mode)
{
	AUTO_FD fd = FD_NONE;
	int rc = count(r, r->size);

	if (rc == 0 && !*r->path)
		rc = bad(r, "a file without a name");
	if (rc == 0)
		rc = make_parent(r);
	if (rc < 0)
		return rc;
	fd = beneath_create(r->dir, r->path, 0600);
	if (fd < 0)
		return err_set(r->err, BRIG_E_USAGE, -fd, "cannot make '%.200s' of the archive", r->path);
	rc = fill(r, fd);
	if (rc == 0 && fchmod(fd, mode & 0111 ? 0755 : 0644) < 0)
		rc = err_set(r->err, BRIG_E_SYSTEM, errno, "cannot keep '%.200s' of the archive", r->path);
	return rc;
}

static int take_folder(struct reader *r)
{
	int rc = count(r, 0);

	return rc < 0 ? rc : make_folders(r, r->path);
}

static const struct {
	char type;
	const char *what;
} refused[] = {
	{ '1', "a hard link" },      { '2', "a link" },
	{ '3', "a device" },         { '4', "a device" },
	{ '6', "a FIFO" },           { 'S', "a file with holes in GNU's way" },
	{ 'M', "a part of a file" }, { 'D', "a dump of a folder" },
};

static int refuse(struct reader *r, char type)
{
	const char *what = "of a kind that is not known";

	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (refused[i].type == type)
			what = refused[i].what;
	return err_set(r->err, BRIG_E_USAGE, 0,
		       "'%.200s' of the archive of files is %s: only regular files and folders are accepted", r->path,
		       what);
}

static int take_entry(struct reader *r, const struct head *h)
{
	bool is_file = h->type == '0' || h->type == '\0' || h->type == '7', is_folder;
	uint64_t mode = 0;
	size_t len;
	int rc;

	get_name(r, h);
	if (!is_file && h->type != '5')
		return refuse(r, h->type);
	if (!get_octal(h->mode, sizeof(h->mode), &mode))
		return bad(r, "a mode that is no number");
	len = strlen(r->path);
	/* Archives of old have no type for folders but the slash behind their names. */
	is_folder = !is_file || (len > 0 && r->path[len - 1] == '/');
	rc = clean_path(r);
	if (rc == 0)
		rc = is_folder ? take_folder(r) : take_file(r, (unsigned)mode);
	*r->path = '\0';
	r->has_size = false;
	return rc;
}

/* 1: the archive is at its end. */
static int take_one(struct reader *r)
{
	struct head h;
	uint64_t size;
	int rc = take(r, &h, sizeof(h));

	if (rc < 0)
		return rc;
	if (is_zero(&h))
		return *r->path ? bad(r, "it ends too early") : 1;
	if (!has_sum(&h) || !get_octal(h.size, sizeof(h.size), &size))
		return bad(r, "a head that makes no sense");
	if (!r->has_size || h.type == 'x' || h.type == 'g' || h.type == 'L' || h.type == 'K')
		r->size = size;
	switch (h.type) {
	case 'x':
		return take_pax(r);
	case 'g':
	case 'K':
		return pass_over(r);
	case 'L':
		return take_long_name(r);
	default:
		return take_entry(r, &h);
	}
}

int untar(int in, int dir, const struct untar_caps *caps, int cancel_fd, struct brig_error *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	int rc = 0;

	if (!r)
		return err_nomem(err);
	r->in = in;
	r->dir = dir;
	r->cancel_fd = cancel_fd;
	r->caps = caps;
	r->err = err;
	while (rc == 0)
		rc = take_one(r);
	free(r);
	return rc < 0 ? rc : 0;
}
