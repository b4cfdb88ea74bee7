/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How files are found.  Every path is brought into a form in which no directory on the way is a link ("/lib/x" becomes
 * "/usr/lib/x" if /lib is one), so that each file has one entry; the top-level links themselves are separate entries.
 * A link is an entry, and its target is added in turn.  For a file with an ELF header, its loader and libraries are
 * added in turn, searched where the loader would: the file's own run path, then the standard directories.  A library
 * that is not found is skipped, since directories contain modules that cannot be loaded anyway.
 */
#include "backend/docker/image_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/docker/image_elf.h"
#include "backend/docker/image_tar.h"
#include "base/str.h"

#define FILES_MAX 100000
#define BYTES_MAX (2 * GiB)
#define DEPTH_MAX 32 /* of directories, and of links to links */

#if defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

enum file_kind { FILE_FOLDER, FILE_PLAIN, FILE_LINK, FILE_DATA };

struct file {
	char *path; /* in the image; absolute */
	enum file_kind kind;
	unsigned mode;
	int64_t mtime;
	uint64_t size;
	bool walked; /* directory: with everything below, not only as a parent */
	char *text;  /* link: target; plain: host path if it differs; data: the bytes */
};

struct image_files {
	void *tree; /* tsearch(3) tree, by path */
	size_t count;
	uint64_t bytes;
};

static int add_path(struct image_files *f, const char *path, const char *except, unsigned depth,
		    struct brig_error *err);

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

static void file_free(void *p)
{
	struct file *file = p;

	if (!file)
		return;
	free(file->path);
	free(file->text);
	free(file);
}

static void file_freep(struct file **p)
{
	file_free(*p);
}

struct image_files *image_files_new(void)
{
	return calloc(1, sizeof(struct image_files));
}

void image_files_free(struct image_files *f)
{
	if (!f)
		return;
	tdestroy(f->tree, file_free);
	free(f);
}

size_t image_files_count(const struct image_files *f)
{
	return f->count;
}

uint64_t image_files_bytes(const struct image_files *f)
{
	return f->bytes;
}

static struct file *known(const struct image_files *f, const char *path)
{
	struct file key = { .path = (char *)(uintptr_t)path };
	void *const *at = tfind(&key, &f->tree, compare);

	return at ? *at : NULL;
}

/* Takes text.  An existing entry for the path stays, unless replace. */
static int keep(struct image_files *f, const struct file *as, const char *path, char *text, bool replace,
		struct brig_error *err)
{
	CLEANUP(file_freep)
	struct file *file = malloc(sizeof(*file));
	struct file **at;

	if (!file) {
		free(text);
		return err_nomem(err);
	}
	*file = *as;
	file->text = text;
	file->path = strdup(path);
	at = file->path ? tsearch(file, &f->tree, compare) : NULL;
	if (!at)
		return err_nomem(err);
	if (*at == file) {
		f->count++;
		f->bytes += file->size;
		file = NULL;
	} else if (replace) {
		struct file *old = *at;

		f->bytes += file->size - old->size;
		*at = MOVE_PTR(file);
		file_free(old);
	}
	if (f->count > FILES_MAX || f->bytes > BYTES_MAX)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the host's programs are too much for an image: more than %d files or 2 GB at %s",
			       FILES_MAX, path);
	return 0;
}

/* Adds the parent directories of path, with the host's modes if they exist there. */
static int keep_parents(struct image_files *f, const char *path, struct brig_error *err)
{
	char above[PATH_MAX];
	struct stat st;
	int rc;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		struct file folder = { .kind = FILE_FOLDER, .mode = 0755 };

		(void)snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		if (known(f, above))
			continue;
		if (stat(above, &st) == 0)
			folder.mtime = st.st_mtime;
		rc = keep(f, &folder, above, NULL, false, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int image_files_put(struct image_files *f, const char *path, unsigned mode, const void *data, size_t len,
		    struct brig_error *err)
{
	struct file file = { .kind = FILE_DATA, .mode = mode, .size = len };
	char *copy = malloc(len + 1);

	if (!copy)
		return err_nomem(err);
	memcpy(copy, data, len);
	copy[len] = '\0';
	if (keep_parents(f, path, err) < 0) {
		free(copy);
		return -err->code;
	}
	return keep(f, &file, path, copy, true, err);
}

int image_files_put_folder(struct image_files *f, const char *path, unsigned mode, struct brig_error *err)
{
	struct file folder = { .kind = FILE_FOLDER, .mode = mode };
	int rc = keep_parents(f, path, err);

	return rc < 0 ? rc : keep(f, &folder, path, NULL, true, err);
}

int image_files_put_link(struct image_files *f, const char *path, const char *target, struct brig_error *err)
{
	struct file link = { .kind = FILE_LINK };
	int rc = keep_parents(f, path, err);
	char *copy;

	if (rc < 0)
		return rc;
	copy = strdup(target);
	return copy ? keep(f, &link, path, copy, false, err) : err_nomem(err);
}

/* ---- finding ------------------------------------------------------------------------------------ */

/* Only these directories of the host may go into an image. */
static bool is_program_place(const char *path)
{
	static const char *const places[] = { "/usr/",   "/bin/",   "/sbin/",   "/lib/",
					      "/lib32/", "/lib64/", "/libx32/", "/etc/alternatives/" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

/* Adds the top-level link that a path goes through ("/lib") as a separate entry. */
static int keep_top_link(struct image_files *f, const char *path, struct brig_error *err)
{
	const char *slash = path[0] == '/' ? strchr(path + 1, '/') : NULL;
	char top[NAME_MAX + 2], target[PATH_MAX];
	ssize_t n;

	if (!slash || (size_t)(slash - path) >= sizeof(top))
		return 0;
	(void)snprintf(top, sizeof(top), "%.*s", (int)(slash - path), path);
	n = readlink(top, target, sizeof(target) - 1);
	if (n <= 0 || known(f, top))
		return 0;
	target[n] = '\0';
	return image_files_put_link(f, top, target, err);
}

/* Resolves links in the directory part of path; false: no such directory. */
static bool canonical(const char *path, char *dst, size_t size)
{
	char folder[PATH_MAX], real[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || slash[1] == '\0')
		return false;
	(void)snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (!realpath(folder, real))
		return false;
	return snprintf(dst, size, "%s/%s", str_eq(real, "/") ? "" : real, slash + 1) < (int)size;
}

static int add_link(struct image_files *f, const char *path, const struct stat *st, const char *except, unsigned depth,
		    struct brig_error *err)
{
	char target[PATH_MAX], next[2 * PATH_MAX];
	struct file link = { .kind = FILE_LINK, .mtime = st->st_mtime };
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	char *copy;
	int rc;

	if (n <= 0)
		return 0;
	target[n] = '\0';
	copy = strdup(target);
	rc = copy ? keep(f, &link, path, copy, false, err) : err_nomem(err);
	if (rc < 0)
		return rc;
	(void)snprintf(next, sizeof(next), "%.*s%s", target[0] == '/' ? 0 : (int)(strrchr(path, '/') - path) + 1, path,
		       target);
	return add_path(f, next, except, depth + 1, err);
}

static bool is_excepted(const char *name, const char *except)
{
	char pattern[64];

	while (except && *except) {
		size_t len = strcspn(except, ",");

		(void)snprintf(pattern, sizeof(pattern), "%.*s", (int)len, except);
		if (fnmatch(pattern, name, 0) == 0)
			return true;
		except += len + (except[len] == ',');
	}
	return false;
}

static int add_folder(struct image_files *f, const char *path, const struct stat *st, const char *except,
		      unsigned depth, struct brig_error *err)
{
	struct file folder = { .kind = FILE_FOLDER, .mode = 0755, .mtime = st->st_mtime, .walked = true };
	char below[PATH_MAX];
	int rc = keep(f, &folder, path, NULL, true, err);
	const struct dirent *d;
	DIR *dir;

	if (rc < 0)
		return rc;
	dir = opendir(path);
	if (!dir)
		return 0;
	while (rc >= 0 && (d = readdir(dir)) != NULL) {
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, "..") || is_excepted(d->d_name, except))
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, d->d_name) < (int)sizeof(below))
			rc = add_path(f, below, except, depth + 1, err);
	}
	(void)closedir(dir);
	return rc < 0 ? rc : 0;
}

/* Finds the library of this name for a file in origin; false: not found. */
static bool find_library(const char *name, const char *origin, const char *runpath, char *dst, size_t size)
{
	static const char standard[] = "/lib/" MULTIARCH ":/usr/lib/" MULTIARCH ":/lib64:/usr/lib64:/lib:/usr/lib:"
				       "/usr/local/lib/" MULTIARCH ":/usr/local/lib64:/usr/local/lib";
	const char *const lists[] = { runpath, standard };
	static const char own[] = "$ORIGIN";

	if (strchr(name, '/'))
		return str_copy(dst, size, name) && access(name, R_OK) == 0;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (const char *at = lists[i]; *at;) {
			size_t len = strcspn(at, ":");
			bool relative = strncmp(at, own, strlen(own)) == 0;
			size_t skip = relative ? strlen(own) : 0;

			if (len > skip || relative)
				(void)snprintf(dst, size, "%s%.*s/%s", relative ? origin : "", (int)(len - skip),
					       at + skip, name);
			if (len > 0 && access(dst, R_OK) == 0)
				return true;
			at += len + (at[len] == ':');
		}
	return false;
}

static int add_needs(struct image_files *f, const char *path, unsigned depth, struct brig_error *err)
{
	char origin[PATH_MAX], library[2 * PATH_MAX];
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	AUTO_FREE struct elf_needs *needs = malloc(sizeof(*needs));
	int rc = 0;

	if (!needs)
		return err_nomem(err);
	if (fd < 0)
		return 0;
	rc = elf_needs_read(fd, needs);
	if (rc != 0)
		return rc > 0 ? 0 : err_set(err, BRIG_E_SYSTEM, -rc, "what %s needs cannot be read from it", path);
	(void)snprintf(origin, sizeof(origin), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (needs->loader[0])
		rc = add_path(f, needs->loader, NULL, depth + 1, err);
	for (size_t i = 0; i < needs->n && rc >= 0; i++)
		if (find_library(needs->needed[i], origin, needs->runpath, library, sizeof(library)))
			rc = add_path(f, library, NULL, depth + 1, err);
	return rc;
}

static int add_plain(struct image_files *f, const char *path, const struct stat *st, unsigned depth,
		     struct brig_error *err)
{
	struct file file = {
		.kind = FILE_PLAIN, .mode = st->st_mode & 0755, .mtime = st->st_mtime, .size = (uint64_t)st->st_size
	};
	int rc = keep(f, &file, path, NULL, false, err);

	return rc < 0 ? rc : add_needs(f, path, depth, err);
}

/* Already added completely. */
static bool is_done(const struct image_files *f, const char *path)
{
	const struct file *file = known(f, path);

	return file && (file->kind != FILE_FOLDER || file->walked);
}

static int add_path(struct image_files *f, const char *given, const char *except, unsigned depth,
		    struct brig_error *err)
{
	char path[PATH_MAX];
	struct stat st;
	int rc;

	if (depth > DEPTH_MAX || !canonical(given, path, sizeof(path)) || !is_program_place(path) || is_done(f, path) ||
	    lstat(path, &st) < 0)
		return 0;
	rc = keep_top_link(f, given, err);
	if (rc == 0)
		rc = keep_parents(f, path, err);
	if (rc < 0)
		return rc;
	if (S_ISLNK(st.st_mode))
		return add_link(f, path, &st, except, depth, err);
	if (!(st.st_mode & S_IROTH)) /* not readable for every user: not added */
		return 0;
	if (S_ISDIR(st.st_mode))
		return add_folder(f, path, &st, except, depth, err);
	return S_ISREG(st.st_mode) ? add_plain(f, path, &st, depth, err) : 0;
}

int image_files_add(struct image_files *f, const char *pattern, const char *except, struct brig_error *err)
{
	glob_t found = { 0 };
	int rc = glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found);
	int n = 0;

	if (rc == GLOB_NOSPACE)
		rc = err_nomem(err);
	else
		rc = 0;
	for (size_t i = 0; i < found.gl_pathc && rc >= 0; i++) {
		rc = add_path(f, found.gl_pathv[i], except, 0, err);
		n++;
	}
	globfree(&found);
	return rc < 0 ? rc : n;
}

int image_files_add_as(struct image_files *f, const char *source, const char *path, struct brig_error *err)
{
	struct file file = { .kind = FILE_PLAIN };
	struct stat st;
	char *copy;
	int rc;

	if (stat(source, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return err_set(err, BRIG_E_REFUSED, errno, "%s cannot go into an image", source);
	rc = keep_parents(f, path, err);
	if (rc < 0)
		return rc;
	file.mode = st.st_mode & 0755;
	file.mtime = st.st_mtime;
	file.size = (uint64_t)st.st_size;
	copy = strdup(source);
	rc = copy ? keep(f, &file, path, copy, true, err) : err_nomem(err);
	return rc < 0 ? rc : add_needs(f, source, 0, err);
}

/* ---- writing ------------------------------------------------------------------------------------ */

struct writing {
	struct tar tar;
	char trouble[PATH_MAX]; /* the first file that could not be opened */
};

static void write_plain(struct writing *w, const struct file *file)
{
	AUTO_FD fd = open(file->text ? file->text : file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && !w->trouble[0])
		(void)str_copy(w->trouble, sizeof(w->trouble), file->path);
	if (fd >= 0)
		tar_file(&w->tar, file->path + 1, file->mode, file->mtime, fd, file->size);
}

static void write_one(const void *node, VISIT visit, void *arg)
{
	const struct file *file = *(const struct file *const *)node;
	struct writing *w = arg;

	if (visit != postorder && visit != leaf)
		return;
	switch (file->kind) {
	case FILE_FOLDER:
		tar_folder(&w->tar, file->path + 1, file->mode, file->mtime);
		break;
	case FILE_LINK:
		tar_link(&w->tar, file->path + 1, file->text, file->mtime);
		break;
	case FILE_DATA:
		tar_data(&w->tar, file->path + 1, file->mode, file->text, file->size);
		break;
	case FILE_PLAIN:
		write_plain(w, file);
		break;
	}
}

int image_files_write(const struct image_files *f, int fd, struct brig_error *err)
{
	AUTO_FREE struct writing *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return err_nomem(err);
	rc = tar_open(&w->tar, fd, err);
	if (rc < 0)
		return rc;
	twalk_r(f->tree, write_one, w);
	rc = tar_close(&w->tar, err);
	if (rc == 0 && w->trouble[0])
		return err_set(err, BRIG_E_SYSTEM, 0, "%s vanished while the image was made; try again", w->trouble);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "an image's temporary file cannot be rewound");
	return rc;
}
