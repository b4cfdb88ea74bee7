/* SPDX-License-Identifier: Apache-2.0 */
/* A changeset in memory, and what the project's files were. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/place.h"
#include "workspace/internal.h"

#define HOLE_BLOCK (4 * KiB)

const char *const skip_reason[SKIP_COUNT] = {
	[SKIP_SPECIAL] = "it is neither a file nor a folder nor a link",
	[SKIP_LINK] = "it is a link that is absolute, leads out of the project, or could once others are there",
	[SKIP_SECRET] = "the policy hides files of that name, so programs do not write them",
	[SKIP_GIT] = "a program does not write to .git, nor to a folder that git takes for one (HEAD, objects, refs)",
	[SKIP_UNSOUND] = "it is not what git writes there, or says more than which commits there are",
	[SKIP_BRIG] = "names that begin with " STAGING_PREFIX " are brig's own",
};

bool changeset_add(struct changeset *c, struct kept_row *row)
{
	if (c->n == c->cap) {
		size_t more = c->cap ? 2 * c->cap : 16;
		struct kept_row *bigger = reallocarray(c->row, more, sizeof(*bigger));

		if (!bigger) {
			free(row->change.path);
			free(row->target);
			return false;
		}
		c->row = bigger;
		c->cap = more;
	}
	c->row[c->n++] = *row;
	return true;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct kept_row *)a)->change.path, ((const struct kept_row *)b)->change.path);
}

void changeset_sort(struct changeset *c)
{
	if (c->n)
		qsort(c->row, c->n, sizeof(*c->row), by_path);
}

static int path_of_row(const void *key, const void *row)
{
	return strcmp(key, ((const struct kept_row *)row)->change.path);
}

const struct kept_row *changeset_find(const struct changeset *c, const char *path)
{
	return c->n ? bsearch(path, c->row, c->n, sizeof(*c->row), path_of_row) : NULL;
}

void changeset_release(struct changeset *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->row[i].change.path);
		free(c->row[i].target);
	}
	free(c->row);
	paths_release(&c->hidden);
	*c = (struct changeset){ .row = NULL };
}

/* ---- contents ---------------------------------------------------------------------------------- */

static bool is_zero(const char *data, size_t len)
{
	return len > 0 && data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

/* Blocks of zeroes become holes; the last one needs the file's length to be set. */
static int write_holes(int to, const char *data, size_t len)
{
	int rc = 0;

	for (size_t at = 0; at < len && rc == 0; at += HOLE_BLOCK) {
		size_t n = (size_t)min_u64(len - at, HOLE_BLOCK);

		if (!is_zero(data + at, n))
			rc = fd_write_all(to, data + at, n);
		else if (lseek(to, (off_t)n, SEEK_CUR) < 0)
			rc = -errno;
	}
	return rc;
}

int copy_hashed(int from, int to, uint64_t max, uint64_t *ret_size, uint8_t hash[SHA256_LEN])
{
	char piece[64 * 1024];
	uint64_t size = 0;
	struct sha256 h;
	ssize_t n;

	sha256_begin(&h);
	while ((n = fd_read_all(from, piece, sizeof(piece))) > 0) {
		int rc;

		if ((uint64_t)n > max - size)
			return -EFBIG;
		size += (uint64_t)n;
		sha256_add(&h, piece, (size_t)n);
		rc = to < 0 ? 0 : write_holes(to, piece, (size_t)n);
		if (rc < 0)
			return rc;
	}
	if (n < 0)
		return (int)n;
	if (to >= 0 && ftruncate(to, (off_t)size) < 0)
		return -errno;
	sha256_end(&h, hash);
	*ret_size = size;
	return 0;
}

/* ---- before ------------------------------------------------------------------------------------ */

static void hash_file(int project, const char *path, uint64_t *budget, struct before *b)
{
	AUTO_FD fd = FD_NONE;
	uint64_t size;

	if (b->size > *budget)
		return;
	fd = beneath_open_file(project, path, NULL);
	b->hashed = fd >= 0 && copy_hashed(fd, -1, b->size, &size, b->sha256) == 0 && size == b->size;
	*budget -= b->size;
}

static void hash_link(int fd, struct before *b)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));

	b->hashed = n > 0 && (size_t)n < sizeof(target);
	if (b->hashed)
		sha256(target, (size_t)n, b->sha256);
}

int before_look(int project, const char *path, uint64_t *budget, struct before *ret)
{
	struct stat st;
	AUTO_FD fd = beneath_look(project, path, &st);

	*ret = (struct before){ .kind = BEFORE_NOTHING };
	/* Below a file or a link there is nothing either. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	ret->mode = st.st_mode & 0777;
	ret->inode = S_ISDIR(st.st_mode) ? st.st_ino : 0;
	ret->size = (uint64_t)st.st_size;
	ret->mtime_ns = (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_SEC + st.st_mtim.tv_nsec;
	if (S_ISREG(st.st_mode)) {
		ret->kind = BEFORE_FILE;
		hash_file(project, path, budget, ret);
	} else if (S_ISLNK(st.st_mode)) {
		ret->kind = BEFORE_LINK;
		hash_link(fd, ret);
	} else {
		ret->kind = S_ISDIR(st.st_mode) ? BEFORE_DIR : BEFORE_OTHER;
	}
	return 0;
}

bool before_same(const struct before *a, const struct before *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == BEFORE_NOTHING || a->kind == BEFORE_OTHER)
		return true;
	if (a->kind != BEFORE_LINK && a->mode != b->mode)
		return false;
	if (a->kind == BEFORE_DIR)
		return true;
	if (a->hashed && b->hashed)
		return memcmp(a->sha256, b->sha256, SHA256_LEN) == 0;
	return a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* ---- the project ------------------------------------------------------------------------------- */

/* The mount counts as long as its number means something. */
static bool is_same_project(const struct changeset *c, const struct folder_id *now)
{
	char boot[FOLDER_BOOT_LEN + 1];

	return folder_id_same(&c->folder, now, folder_boot(boot) && str_eq(boot, c->boot));
}

int changeset_project(const struct changeset *c, const struct folder *held, const char *state, struct folder *ret,
		      struct brig_error *err)
{
	int rc;

	if (c->folder.inode == 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "these changes were kept by a brig that did not note which folder '%.150s' was: run the "
			       "program again, and discard them",
			       c->project);
	rc = held ? folder_again(held, ret, err) : folder_open(c->project, "project", true, ret, err);
	if (rc == 0 && !is_same_project(c, &ret->id))
		rc = err_set(
			err, BRIG_E_REFUSED, 0,
			"'%.200s' is not the folder that the run worked in: it was replaced or mounted anew since. "
			"Put that one back, or run the program again and discard these changes",
			c->project);
	return rc < 0 ? rc : place_check(ret, "project", state, err);
}
